/* SPDX-License-Identifier: Apache-2.0
 *
 * What the host is, as rows for every backend's facts.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "hwprofile/device_memory.h"

#define GOVERNOR "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"

typedef void write_fact(const moesim_cpu_team *team, char *out, size_t room);

static void write_cpu(const moesim_cpu_team *team, char *out, size_t room)
{
    (void)team;
    char line[512];
    FILE *f = fopen("/proc/cpuinfo", "re");
    snprintf(out, room, "unknown");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL)
            continue;
        colon += colon[1] == ' ' ? 2 : 1;
        moesim_text_clean(colon, strcspn(colon, "\n"), out, room);
        break;
    }
    if (f != NULL)
        fclose(f);
}

static void write_governor(const moesim_cpu_team *team, char *out, size_t room)
{
    (void)team;
    FILE *f = fopen(GOVERNOR, "re");
    char line[64] = "not exposed";
    if (f != NULL && fgets(line, sizeof line, f) == NULL)
        snprintf(line, sizeof line, "not readable");
    if (f != NULL)
        fclose(f);
    moesim_text_clean(line, strcspn(line, "\n"), out, room);
}

static void write_free(const moesim_cpu_team *team, char *out, size_t room)
{
    (void)team;
    char text[24];
    snprintf(out, room, "%s", moesim_memory_text(moesim_host_memory_free(), text));
}

static void write_isa(const moesim_cpu_team *team, char *out, size_t room)
{
    snprintf(out, room, "%s", moesim_cpu_team_isa(team));
}

static void write_threads(const moesim_cpu_team *team, char *out, size_t room)
{
    snprintf(out, room, "%u", moesim_cpu_team_threads(team));
}

static void write_cpus(const moesim_cpu_team *team, char *out, size_t room)
{
    snprintf(out, room, "%s", moesim_cpu_team_cpus(team));
}

bool moesim_host_fact(const moesim_cpu_team *team, size_t i, moesim_device_fact *out)
{
    static const struct { const char *key; write_fact *write; bool of_team; } row[] = {
        { "cpu", write_cpu, false }, { "governor", write_governor, false }, { "host memory free", write_free, false },
        { "isa", write_isa, true }, { "threads", write_threads, true }, { "cpus", write_cpus, true },
    };
    if (i >= sizeof row / sizeof row[0] || (row[i].of_team && team == NULL))
        return false;
    out->key = row[i].key;
    row[i].write(team, out->value, sizeof out->value);
    return true;
}
