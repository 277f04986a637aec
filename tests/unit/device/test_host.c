/* SPDX-License-Identifier: Apache-2.0
 *
 * What the host device alone has: copies past the caches, and where its threads run.
 */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "hwprofile/device_host.h"
#include "tests/unit/device/world.h"

#define ROOM 1024u
#define GUARD 0xa5

/* Every alignment of both sides, and sizes around those of a vector and of a line: as memcpy, and nothing beside it. */
START_TEST(copies)
{
    static const size_t sizes[] = { 0, 1, 15, 16, 17, 63, 64, 65, 79, 80, 127, 128, 200, 777 };
    unsigned char from[ROOM], to[ROOM];
    for (size_t i = 0; i < ROOM; i++)
        from[i] = (unsigned char)(i * 7 + 1);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t a = 0; a < 17; a++)
            for (size_t b = 0; b < 17; b++) {
                const size_t n = sizes[s];
                bool same = true;
                memset(to, GUARD, sizeof to);
                moesim_host_copy(to + 32 + a, from + b, n);
                for (size_t i = 0; i < ROOM; i++)
                    same = same && to[i] == (i >= 32 + a && i < 32 + a + n ? from[b + i - 32 - a] : GUARD);
                ck_assert_msg(same, "%zu bytes from %zu to %zu", n, b, a);
            }
}
END_TEST

/* Does a fact of the device name this CPU, −1: none? */
static void says_cpu(moesim_device *device, const char *key, int cpu)
{
    moesim_device_fact fact;
    char wanted[32] = "(CPU: not pinned)";
    bool found = false;
    if (cpu >= 0)
        snprintf(wanted, sizeof wanted, "(CPU: %d)", cpu);
    for (size_t i = 0; device->ops->fact(device, i, &fact); i++)
        found = found || (strcmp(fact.key, key) == 0 && strstr(fact.value, wanted) != NULL);
    ck_assert_msg(found, "%s does not say %s", key, wanted);
}

/* Threads of this process that may run on `cpu` alone. */
static unsigned pinned_to(unsigned cpu)
{
    unsigned n = 0;
    DIR *folder = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *e = readdir(folder); e != NULL; e = readdir(folder)) {
        cpu_set_t set;
        const int thread = atoi(e->d_name);
        n += thread > 0 && sched_getaffinity(thread, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1 && CPU_ISSET(cpu, &set);
    }
    closedir(folder);
    return n;
}

/* The first two CPUs that are ours; false: there is one. */
static bool two_cpus(const cpu_set_t *ours, unsigned cpu[2])
{
    unsigned n = 0;
    for (unsigned i = 0; i < CPU_SETSIZE && n < 2; i++)
        if (CPU_ISSET(i, ours))
            cpu[n++] = i;
    return n == 2;
}

/* On two CPUs the processor has the one that the team leaves, and link and CPU experts share the other; nothing is pinned where
 * the caller says so. */
START_TEST(two)
{
    cpu_set_t ours, set;
    unsigned cpu[2];
    char last[16];
    ck_assert_int_eq(sched_getaffinity(0, sizeof ours, &ours), 0);
    if (!two_cpus(&ours, cpu))
        return;
    CPU_ZERO(&set);
    CPU_SET(cpu[0], &set);
    CPU_SET(cpu[1], &set);
    ck_assert_int_eq(sched_setaffinity(0, sizeof set, &set), 0);
    snprintf(last, sizeof last, "%u", cpu[1]);
    const struct { const char *cpus; unsigned on_first, on_second; int link, gpu; } row[] = {
        { NULL, 2, 1, (int)cpu[0], (int)cpu[1] },
        { last, 1, 2, (int)cpu[1], (int)cpu[0] },
        { "none", 0, 0, -1, -1 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        moesim_device_config config = world_config();
        moesim_device *device = NULL;
        moesim_error err = MOESIM_ERROR_INIT;
        config.cpu.threads = 1;
        config.cpu.cpus = row[i].cpus;
        WORKS(moesim_device_host.open(&config, &device, &err));
        ck_assert_uint_eq(pinned_to(cpu[0]), row[i].on_first);
        ck_assert_uint_eq(pinned_to(cpu[1]), row[i].on_second);
        says_cpu(device, "link", row[i].link);
        says_cpu(device, "device", row[i].gpu);
        moesim_device_host.close(&device);
    }
    ck_assert_int_eq(sched_setaffinity(0, sizeof ours, &ours), 0);
}
END_TEST

RUN_TESTS("device host", copies, two)
