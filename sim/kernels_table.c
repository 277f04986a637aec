/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses a variant of the kernels once, by what the processor can do; MOESIM_CPU=base|avx2 overrides downwards.
 */
#include "sim/kernels.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

extern const moesim_kernels moesim_kernels_base;
#ifdef KERNELS_AVX2
extern const moesim_kernels moesim_kernels_avx2;
#endif

static const moesim_kernels *all[3];     /* best last, NULL-ended */
static const moesim_kernels *chosen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#ifdef KERNELS_AVX2
static bool has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt");
}
#endif

static void choose(void)
{
    size_t n = 0;
    all[n++] = &moesim_kernels_base;
#ifdef KERNELS_AVX2
    if (has_avx2())
        all[n++] = &moesim_kernels_avx2;
#endif
    chosen = all[n - 1];
    const char *wanted = getenv("MOESIM_CPU");
    for (size_t i = 0; wanted != NULL && i < n; i++) {
        if (strcmp(wanted, all[i]->name) == 0)
            chosen = all[i];
    }
}

const moesim_kernels *moesim_kernels_get(void)
{
    (void)pthread_once(&once, choose);
    return chosen;
}

moesim_code moesim_kernels_check(moesim_error *err)
{
    const char *wanted = getenv("MOESIM_CPU");
    char names[64] = "";
    (void)pthread_once(&once, choose);
    if (wanted == NULL || wanted[0] == '\0' || strcmp(wanted, chosen->name) == 0)
        return MOESIM_OK;
    for (size_t i = 0; all[i] != NULL; i++)
        moesim_text_add(names, sizeof names, "%s%s", i > 0 ? ", " : "", all[i]->name);
    return moesim_fail(err, MOESIM_E_USAGE, "the environment says MOESIM_CPU=%.40s, which is no variant that this machine can "
                       "run; those are: %s", wanted, names);
}

const moesim_kernels *const *moesim_kernels_all(void)
{
    (void)pthread_once(&once, choose);
    return all;
}
