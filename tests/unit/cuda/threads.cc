/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads of a block as contexts of one thread, begun by makecontext and switched by jumps, which make no system call. A warp's products of matrices and exchanges are barriers of its 32 lanes:
 * the last lane to arrive computes for all.
 */
#include <setjmp.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include "tests/unit/cuda/fake.h"

#define LANES 32u
#define STACK (64u << 10)
#define THREADS 1024u            /* most of a block */

dim3 blockIdx(0), threadIdx(0), gridDim(1);

namespace {

struct barrier { unsigned arrived = 0, generation = 0; };
struct warp { barrier meet; float c[LANES][4], value[LANES]; uint32_t a[LANES][4], b[LANES][2]; };
struct thread { ucontext_t first; jmp_buf at; std::vector<char> stack; bool begun, done; };

jmp_buf scheduler;
std::vector<thread> threads(THREADS);     /* a context holds pointers into itself: it stays where it is */
std::vector<warp> warps;
barrier block_meet;
unsigned current, alive;
uint64_t progress;
const std::function<void()> *body;

void yield()
{
    if (_setjmp(threads[current].at) == 0)
        _longjmp(scheduler, 1);
}

/* Waits until n have arrived; the last one calls `last` before anybody goes on. */
template <class F> void meet(barrier &b, unsigned n, F last)
{
    const unsigned mine = b.generation;
    if (++b.arrived == n) {
        last();
        b.arrived = 0;
        b.generation++;
        progress++;
        return;
    }
    while (b.generation == mine)
        yield();
}

void enter()
{
    (*body)();
    threads[current].done = true;
    alive--;
    progress++;
    _longjmp(scheduler, 1);
}

/* Until this thread yields or ends. */
void resume(thread &t)
{
    if (_setjmp(scheduler) != 0)
        return;
    if (t.begun)
        _longjmp(t.at, 1);
    t.begun = true;
    setcontext(&t.first);
}

float half(uint32_t pair, unsigned i)
{
    return __uint_as_float(i == 0 ? pair << 16 : pair & 0xffff0000u);
}

/* The layout of mma.m16n8k16: lane l holds, of A, rows l/4 (registers 0, 2) and l/4 + 8 (1, 3), elements 2(l%4), +1 (0, 1) and
 * +8, +9 (2, 3); of B, column l/4, the same elements; of C, rows l/4 and l/4 + 8, columns 2(l%4), +1. */
void multiply(warp &w)
{
    float a[16][16], b[16][8];
    for (unsigned l = 0; l < LANES; l++)
        for (unsigned i = 0; i < 2; i++) {
            for (unsigned r = 0; r < 4; r++)
                a[l / 4 + r % 2 * 8][2 * (l % 4) + i + r / 2 * 8] = half(w.a[l][r], i);
            for (unsigned r = 0; r < 2; r++)
                b[2 * (l % 4) + i + r * 8][l / 4] = half(w.b[l][r], i);
        }
    for (unsigned l = 0; l < LANES; l++)
        for (unsigned r = 0; r < 4; r++)
            for (unsigned k = 0; k < 16; k++)
                w.c[l][r] += a[l / 4 + r / 2 * 8][k] * b[k][2 * (l % 4) + r % 2];
}

void run_block(unsigned n, const std::function<void()> &kernel)
{
    body = &kernel;
    alive = n;
    block_meet = barrier();
    warps.assign((n + LANES - 1) / LANES, warp());
    for (unsigned t = 0; t < n; t++) {
        threads[t].begun = threads[t].done = false;
        if (threads[t].stack.size() == STACK)
            continue;
        threads[t].stack.resize(STACK);
        getcontext(&threads[t].first);
        threads[t].first.uc_stack.ss_sp = threads[t].stack.data();
        threads[t].first.uc_stack.ss_size = STACK;
        threads[t].first.uc_link = nullptr;
        makecontext(&threads[t].first, enter, 0);
    }
    while (alive > 0) {
        const uint64_t before = progress;
        for (current = 0; current < n; current++)
            if (!threads[current].done) {
                threadIdx = dim3(current);
                resume(threads[current]);
            }
        if (progress == before) {
            fputs("fake CUDA: threads wait for each other at different places\n", stderr);
            abort();
        }
    }
}

} // namespace

void fake_run(dim3 grid, dim3 block, const std::function<void()> &kernel)
{
    gridDim = grid;
    for (unsigned y = 0; y < grid.y; y++)
        for (unsigned x = 0; x < grid.x; x++) {
            blockIdx = dim3(x, y);
            run_block(block.x, kernel);
        }
}

void __syncthreads()
{
    meet(block_meet, alive, [] {});
}

float __shfl_xor_sync(uint32_t, float v, int lanes)
{
    const unsigned mine = current;
    warp &w = warps[mine / LANES];
    w.value[mine % LANES] = v;
    meet(w.meet, LANES, [] {});
    const float other = w.value[(mine % LANES) ^ (unsigned)lanes];
    meet(w.meet, LANES, [] {});
    return other;
}

void moesim_host_mma(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1);
void moesim_host_mma(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1)
{
    const unsigned mine = current, lane = mine % LANES;
    warp &w = warps[mine / LANES];
    const uint32_t a[4] = { a0, a1, a2, a3 }, b[2] = { b0, b1 };
    memcpy(w.c[lane], c, sizeof w.c[lane]);
    memcpy(w.a[lane], a, sizeof a);
    memcpy(w.b[lane], b, sizeof b);
    meet(w.meet, LANES, [&w] { multiply(w); });
    memcpy(c, w.c[lane], sizeof w.c[lane]);
}
