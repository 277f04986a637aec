/* SPDX-License-Identifier: Apache-2.0
 *
 * The team: persistent, pinned threads that wait for work, spinning first and then asleep.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "hwprofile/cpu_parts.h"
#include "hwprofile/device_parts.h"

#define BATCH 64u                /* most tokens that one pass over the weights serves: their activations stay in L2 */
#define SPIN_NS 250000u          /* idle threads spin so long before they sleep, a wake-up costing tens of µs … */
#define SPIN_SHORT_NS 20000u     /* … or so long where they leave no CPU to anybody else */
#define SPINS_A_LOOK 64u         /* pauses between two looks at the clock */
#define LINE_BYTES 64u
#define DONE UINT32_MAX          /* `finished` when all are */

enum kind { KIND_JOBS, KIND_CALL, KIND_STOP };

struct member {
    pthread_t thread;
    moesim_cpu_team *team;
    uint32_t index;
};

struct moesim_cpu_team {
    const moesim_cpu_kernel *kernel;
    moesim_cpu_places places;
    moesim_cpu_crew *crew;
    struct member *member;
    uint32_t threads;            /* that exist */
    uint32_t batch;

    /* What is asked for: written while all wait, published by `generation`. */
    enum kind kind;
    const moesim_cpu_job *job;
    uint32_t n;
    const uint16_t *x;
    uint64_t pass, next_pass;    /* number of the first pass of these jobs, and of those after them */
    void (*call)(void *context, uint32_t thread, uint32_t threads);
    void *context;
    uint64_t start_ns, end_ns;

    _Atomic uint64_t generation;
    _Atomic uint32_t finished;   /* threads, since start; DONE after the last one */
    _Atomic uint32_t sleepers;
    _Atomic uint64_t spin_ns;
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
};

/* ---- a thread ---------------------------------------------------------------------------------------------------- */

static void run_jobs(moesim_cpu_team *team, uint32_t thread)
{
    uint64_t pass = team->pass;
    for (uint32_t i = 0; i < team->n; i++) {
        const moesim_cpu_job *job = &team->job[i];
        for (uint32_t t = 0; t < job->tokens; t += team->batch) {
            const uint32_t n = job->tokens - t < team->batch ? job->tokens - t : team->batch;
            moesim_cpu_crew_pass(team->crew, thread, job, team->x, t, n, pass++);
        }
    }
}

/* Spins, then sleeps, until the generation is no longer `seen`. */
static void await_work(moesim_cpu_team *team, uint64_t seen)
{
    const uint64_t until = moesim_clock_ns() + atomic_load_explicit(&team->spin_ns, memory_order_relaxed);
    do {
        for (uint32_t i = 0; i < SPINS_A_LOOK; i++) {
            if (atomic_load_explicit(&team->generation, memory_order_acquire) != seen)
                return;
            moesim_cpu_relax();
        }
    } while (moesim_clock_ns() < until);
    pthread_mutex_lock(&team->lock);
    atomic_fetch_add(&team->sleepers, 1);
    while (atomic_load(&team->generation) == seen)
        pthread_cond_wait(&team->wake, &team->lock);
    atomic_fetch_sub(&team->sleepers, 1);
    pthread_mutex_unlock(&team->lock);
}

static void *member_main(void *context)
{
    const struct member *m = context;
    moesim_cpu_team *team = m->team;
    for (uint64_t seen = 0;; seen++) {
        await_work(team, seen);
        if (team->kind == KIND_STOP)
            return NULL;
        if (team->kind == KIND_CALL)
            team->call(team->context, m->index, team->places.threads);
        else
            run_jobs(team, m->index);
        if (atomic_fetch_add(&team->finished, 1) + 1 < team->places.threads)
            continue;
        pthread_mutex_lock(&team->lock);
        team->end_ns = moesim_clock_ns();
        atomic_store(&team->finished, DONE);
        pthread_cond_signal(&team->done);
        pthread_mutex_unlock(&team->lock);
    }
}

/* ---- the caller's side ------------------------------------------------------------------------------------------- */

static void publish(moesim_cpu_team *team, enum kind kind)
{
    team->kind = kind;
    atomic_store(&team->finished, 0);
    team->start_ns = moesim_clock_ns();
    atomic_fetch_add(&team->generation, 1);
    if (atomic_load(&team->sleepers) > 0) {
        pthread_mutex_lock(&team->lock);
        pthread_cond_broadcast(&team->wake);
        pthread_mutex_unlock(&team->lock);
    }
}

void moesim_cpu_team_start(moesim_cpu_team *team, const moesim_cpu_job *job, uint32_t n, const uint16_t *x)
{
    team->job = job;
    team->n = n;
    team->x = x;
    team->pass = team->next_pass;
    for (uint32_t i = 0; i < n; i++)
        team->next_pass += (job[i].tokens + team->batch - 1) / team->batch;
    publish(team, KIND_JOBS);
}

uint64_t moesim_cpu_team_wait(moesim_cpu_team *team)
{
    const uint64_t until = moesim_clock_ns() + atomic_load_explicit(&team->spin_ns, memory_order_relaxed);
    while (atomic_load(&team->finished) != DONE && moesim_clock_ns() < until)
        for (uint32_t i = 0; i < SPINS_A_LOOK; i++)
            moesim_cpu_relax();
    pthread_mutex_lock(&team->lock);
    while (atomic_load(&team->finished) != DONE)
        pthread_cond_wait(&team->done, &team->lock);
    const uint64_t ns = team->end_ns - team->start_ns;
    pthread_mutex_unlock(&team->lock);
    return ns;
}

bool moesim_cpu_team_done(const moesim_cpu_team *team)
{
    return atomic_load_explicit(&team->finished, memory_order_acquire) == DONE;
}

void moesim_cpu_team_call(moesim_cpu_team *team, void (*fn)(void *context, uint32_t thread, uint32_t threads), void *context)
{
    team->call = fn;
    team->context = context;
    publish(team, KIND_CALL);
}

void moesim_cpu_team_run(moesim_cpu_team *team, void (*fn)(void *context, uint32_t thread, uint32_t threads), void *context)
{
    moesim_cpu_team_call(team, fn, context);
    moesim_cpu_team_wait(team);
}

void moesim_cpu_team_spin(moesim_cpu_team *team, uint64_t ns)
{
    atomic_store(&team->spin_ns, ns);
}

struct reading {
    const moesim_cpu_team *team;
    const char *data;
    size_t lines;
    _Atomic uint64_t found;      /* so that nothing is optimised away */
};

static void read_share(void *context, uint32_t thread, uint32_t threads)
{
    struct reading *r = context;
    const size_t begin = r->lines * thread / threads, end = r->lines * (thread + 1) / threads;
    atomic_fetch_or(&r->found, r->team->kernel->read(r->data + begin * LINE_BYTES, (end - begin) * LINE_BYTES));
}

double moesim_cpu_team_read(moesim_cpu_team *team, const void *data, size_t bytes)
{
    const size_t skip = (LINE_BYTES - (uintptr_t)data % LINE_BYTES) % LINE_BYTES;
    if (bytes < skip + LINE_BYTES)
        return 0.0;
    struct reading r = { .team = team, .data = (const char *)data + skip, .lines = (bytes - skip) / LINE_BYTES };
    moesim_cpu_team_run(team, read_share, &r);
    return (double)r.lines * LINE_BYTES / ((double)(team->end_ns - team->start_ns + 1) * 1e-9);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static bool start_thread(moesim_cpu_team *team, uint32_t i)
{
    struct member *m = &team->member[i];
    m->team = team;
    m->index = i;
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0)
        return false;
    if (team->places.pinned) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(team->places.cpu[i], &set);
        pthread_attr_setaffinity_np(&attr, sizeof set, &set);
    }
    const bool ok = pthread_create(&m->thread, &attr, member_main, m) == 0;
    pthread_attr_destroy(&attr);
    return ok;
}

void moesim_cpu_team_destroy(moesim_cpu_team **out)
{
    moesim_cpu_team *team = *out;
    if (team == NULL)
        return;
    if (team->threads > 0 && team->threads == team->places.threads)
        moesim_cpu_team_wait(team);
    publish(team, KIND_STOP);
    for (uint32_t i = 0; i < team->threads; i++)
        pthread_join(team->member[i].thread, NULL);
    pthread_mutex_destroy(&team->lock);
    pthread_cond_destroy(&team->wake);
    pthread_cond_destroy(&team->done);
    moesim_cpu_crew_destroy(team->crew);
    free(team->member);
    free(team);
    *out = NULL;
}

static moesim_code check_sizes(uint32_t hidden, uint32_t intermediate, uint32_t max_tokens, moesim_error *err)
{
    if (hidden == 0 || intermediate == 0 || hidden % 64 != 0 || intermediate % 64 != 0 || hidden > MOESIM_CPU_SIZE_MAX ||
        intermediate > MOESIM_CPU_SIZE_MAX || max_tokens == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "cpu: hidden size %u and intermediate size %u must be multiples of 64 up to "
                           "%u, tokens (%u) at least one", hidden, intermediate, MOESIM_CPU_SIZE_MAX, max_tokens);
    return MOESIM_OK;
}

moesim_code moesim_cpu_team_create(const moesim_cpu_config *config, uint32_t hidden, uint32_t intermediate,
                                   uint32_t max_tokens, moesim_cpu_team **out, moesim_error *err)
{
    moesim_cpu_places places;
    const moesim_cpu_kernel *kernel;
    moesim_code code = check_sizes(hidden, intermediate, max_tokens, err);
    if (code == MOESIM_OK)
        code = moesim_cpu_kernel_find(config->isa, &kernel, err);
    if (code == MOESIM_OK)
        code = moesim_cpu_place(config, &places, err);
    if (code != MOESIM_OK)
        return code;
    moesim_cpu_team *team = calloc(1, sizeof *team);
    if (team == NULL)
        return moesim_fail_nomem(err, "the CPU threads", sizeof *team);
    team->kernel = kernel;
    team->places = places;
    team->batch = max_tokens < BATCH ? max_tokens : BATCH;
    atomic_store(&team->spin_ns, places.threads < places.allowed ? SPIN_NS : SPIN_SHORT_NS);
    atomic_store(&team->finished, DONE);
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->wake, NULL);
    pthread_cond_init(&team->done, NULL);
    team->crew = moesim_cpu_crew_create(kernel, places.threads, hidden, intermediate, team->batch);
    team->member = calloc(places.threads, sizeof *team->member);
    if (team->crew == NULL || team->member == NULL) {
        moesim_cpu_team_destroy(&team);
        return moesim_fail_nomem(err, "the CPU threads' activations",
                                 (size_t)places.threads * BATCH * (hidden + intermediate) * sizeof(float));
    }
    while (team->threads < places.threads && start_thread(team, team->threads))
        team->threads++;
    if (team->threads < places.threads) {
        moesim_cpu_team_destroy(&team);
        return moesim_fail(err, MOESIM_E_IO, "cpu: the system refused to start %u threads; use fewer (--threads)",
                           places.threads);
    }
    *out = team;
    return MOESIM_OK;
}

uint32_t moesim_cpu_team_threads(const moesim_cpu_team *team)
{
    return team->places.threads;
}

const char *moesim_cpu_team_isa(const moesim_cpu_team *team)
{
    return team->kernel->name;
}

const char *moesim_cpu_team_cpus(const moesim_cpu_team *team)
{
    return team->places.text;
}
