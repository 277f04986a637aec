/* SPDX-License-Identifier: Apache-2.0
 *
 * How many threads a team has and where they run: the CPUs that this process may use (affinity), the time that its cgroup
 * grants (quota, v1 and v2), physical cores before their second hardware threads.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hwprofile/cgroup.h"
#include "hwprofile/cpu_parts.h"

#define CPUS ((uint32_t)CPU_SETSIZE)
#define PATH_ROOM 4096

/* "0-7,16" into a set. */
static moesim_code parse_cpus(const char *text, cpu_set_t *set, moesim_error *err)
{
    CPU_ZERO(set);
    const char *p = text;
    do {
        char *end;
        if (*p < '0' || *p > '9')
            break;
        const unsigned long first = strtoul(p, &end, 10);
        unsigned long last = first;
        if (*end == '-' && end[1] >= '0' && end[1] <= '9')
            last = strtoul(end + 1, &end, 10);
        if (last < first || last >= CPUS)
            break;
        for (unsigned long i = first; i <= last; i++)
            CPU_SET(i, set);
        if (*end == '\0')
            return MOESIM_OK;
        p = end + 1;
        if (*end != ',')
            break;
    } while (true);
    return moesim_fail(err, MOESIM_E_USAGE, "cpu: '%s' is no list of CPUs below %u; write \"0-7,16\" or \"none\"", text, CPUS);
}

static void print_cpus(const cpu_set_t *set, char *out, size_t room)
{
    size_t at = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < CPUS; i++) {
        if (!CPU_ISSET(i, set))
            continue;
        uint32_t last = i;
        while (last + 1 < CPUS && CPU_ISSET(last + 1, set))
            last++;
        char item[32];
        const int n = last > i ? snprintf(item, sizeof item, "%s%u-%u", at > 0 ? "," : "", i, last)
                               : snprintf(item, sizeof item, "%s%u", at > 0 ? "," : "", i);
        if (at + (size_t)n + 4 >= room) {
            snprintf(out + at, room - at, ",…");
            return;
        }
        memcpy(out + at, item, (size_t)n + 1);
        at += (size_t)n;
        i = last;
    }
}

/* Is there a CPU of the set with a lower number on the same physical core? */
static bool is_second(uint32_t cpu, const cpu_set_t *set)
{
    char path[128], line[256];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return false;
    cpu_set_t siblings;
    const bool known = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    if (!known)
        return false;
    line[strcspn(line, "\n")] = '\0';
    if (parse_cpus(line, &siblings, NULL) != MOESIM_OK)
        return false;
    for (uint32_t i = 0; i < cpu; i++)
        if (CPU_ISSET(i, &siblings) && CPU_ISSET(i, set))
            return true;
    return false;
}

/* CPUs that one file of quotas grants, rounded down, at least 1; UINT32_MAX: no limit. */
static uint32_t read_quota(const char *folder, bool v2)
{
    char path[PATH_ROOM + 64], quota[32] = "";
    long long period = 0;
    snprintf(path, sizeof path, "%s/%s", folder, v2 ? "cpu.max" : "cpu.cfs_quota_us");
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return UINT32_MAX;
    const int n = fscanf(f, "%31s %lld", quota, &period);
    fclose(f);
    if (!v2) {
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        f = fopen(path, "re");
        if (f == NULL || fscanf(f, "%lld", &period) != 1)
            period = 0;
        if (f != NULL)
            fclose(f);
    }
    const long long granted = strtoll(quota, NULL, 10);
    if (n < 1 || granted <= 0 || period <= 0)
        return UINT32_MAX;
    const long long cpus = granted / period;
    return cpus < 1 ? 1 : cpus > (long long)UINT32_MAX ? UINT32_MAX : (uint32_t)cpus;
}

static void take_quota(void *cookie, const char *folder, bool v2)
{
    uint32_t *least = cookie;
    const uint32_t n = read_quota(folder, v2);
    *least = n < *least ? n : *least;
}

/* The least quota of our cgroup and those above it. */
static uint32_t quota(void)
{
    uint32_t least = UINT32_MAX;
    moesim_cgroup_each("cpu", take_quota, &least);
    return least;
}

/* CPUs of the set into cpu[], one a physical core first; returns how many, *cores of them on distinct cores. */
static uint32_t order_cpus(const cpu_set_t *set, uint32_t cpu[], uint32_t *cores)
{
    uint32_t n = 0;
    for (int second = 0; second < 2; second++) {
        for (uint32_t i = 0; i < CPUS && n < MOESIM_CPU_THREADS_MAX; i++)
            if (CPU_ISSET(i, set) && is_second(i, set) == (second == 1))
                cpu[n++] = i;
        if (second == 0)
            *cores = n;
    }
    return n;
}

/* The CPUs that are asked for: all that are ours, or a list of them. */
static moesim_code choose(const char *cpus, const cpu_set_t *ours, cpu_set_t *set, moesim_error *err)
{
    *set = *ours;
    if (cpus == NULL)
        return MOESIM_OK;
    const moesim_code code = parse_cpus(cpus, set, err);
    if (code != MOESIM_OK)
        return code;
    cpu_set_t both;
    CPU_AND(&both, set, ours);
    if (CPU_EQUAL(&both, set))
        return MOESIM_OK;
    char list[128];
    print_cpus(ours, list, sizeof list);
    return moesim_fail(err, MOESIM_E_USAGE, "cpu: not all CPUs of '%s' are ours (%s)", cpus, list);
}

moesim_code moesim_cpu_place(const moesim_cpu_config *config, moesim_cpu_places *out, moesim_error *err)
{
    memset(out, 0, sizeof *out);
    snprintf(out->text, sizeof out->text, "not pinned");
    if (config->threads > MOESIM_CPU_THREADS_MAX)
        return moesim_fail(err, MOESIM_E_USAGE, "cpu: %u threads are more than %u", config->threads, MOESIM_CPU_THREADS_MAX);
    cpu_set_t ours, set;
    CPU_ZERO(&ours);
    const bool known = sched_getaffinity(0, sizeof ours, &ours) == 0;
    const bool pin = known && (config->cpus == NULL || strcmp(config->cpus, "none") != 0);
    const moesim_code code = choose(pin ? config->cpus : NULL, &ours, &set, err);
    if (code != MOESIM_OK)
        return code;
    uint32_t cores = 0;
    uint32_t n = order_cpus(&set, out->cpu, &cores);
    if (n == 0) {
        const long online = sysconf(_SC_NPROCESSORS_ONLN);
        n = cores = online > 0 ? (uint32_t)online : 1;
    }
    out->allowed = n;
    const uint32_t granted = quota(), most = cores < granted ? cores : granted;
    out->threads = config->threads != 0 ? config->threads : most < MOESIM_CPU_THREADS_MAX ? most : MOESIM_CPU_THREADS_MAX;
    out->pinned = pin;
    if (!pin)
        return MOESIM_OK;
    CPU_ZERO(&set);
    for (uint32_t i = 0; i < out->threads; i++) {
        out->cpu[i] = out->cpu[i % n];
        CPU_SET(out->cpu[i], &set);
    }
    print_cpus(&set, out->text, sizeof out->text);
    return MOESIM_OK;
}
