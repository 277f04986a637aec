/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams, events and memory of tests/unit/cuda/cuda_runtime.h. MOESIM_FAKE_SEED chooses the order in which streams run.
 */
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include "tests/unit/cuda/fake.h"

#define PAGE 4096u
#define GARBAGE 0x5a             /* what fresh memory holds: no zeros */
#define COPY_US 4.0
#define BYTES_PER_US 50000.0
#define KERNEL_US 5.0
#define MEMORY ((size_t)2 << 30)

struct operation { std::function<bool()> ready; std::function<void()> run; double us; bool to_device; };

struct fake_stream { std::deque<operation> queue; double time = 0; };
struct fake_event { uint64_t recorded = 0, reached = 0; double time = 0; bool timed = true; };

namespace {

std::recursive_mutex lock;
std::vector<fake_stream *> streams;
std::map<const void *, size_t> device_memory, pinned_memory;
std::mt19937 random_order(getenv("MOESIM_FAKE_SEED") ? (unsigned)strtoul(getenv("MOESIM_FAKE_SEED"), nullptr, 10) : 1u);
double link_time;
cudaError_t lost = cudaSuccess;
unsigned haste = 1;              /* how much runs between two calls of the host */
std::string lose_at;
unsigned lose_after;

typedef std::lock_guard<std::recursive_mutex> guard;

cudaError_t enter(const char *call)
{
    if (lose_after > 0 && lose_at == call && --lose_after == 0)
        lost = cudaErrorIllegalAddress;
    return lost;
}

[[noreturn]] void broken(const char *what)
{
    fprintf(stderr, "fake CUDA: %s\n", what);
    abort();
}

/* Is all of it device memory, pinned memory? */
bool within(const std::map<const void *, size_t> &memory, const void *data, size_t bytes)
{
    auto at = memory.upper_bound(data);
    if (at == memory.begin())
        return false;
    --at;
    const uintptr_t begin = (uintptr_t)at->first, want = (uintptr_t)data;
    return want >= begin && want + bytes <= begin + at->second;
}

/* Runs the head of one stream that can go on; false: none can. Some stream is held back for a while, unless all the others
 * wait for it. */
bool step()
{
    static fake_stream *held;
    static unsigned steps;
    if (steps-- == 0) {
        steps = random_order() % 200;
        held = streams[random_order() % streams.size()];
        haste = random_order() % 3;
    }
    std::vector<fake_stream *> able;
    for (fake_stream *s : streams)
        if (!s->queue.empty() && s->queue.front().ready())
            able.push_back(s);
    if (able.empty())
        return false;
    if (able.size() > 1)
        able.erase(std::remove(able.begin(), able.end(), held), able.end());
    fake_stream *s = able[random_order() % able.size()];
    operation o = s->queue.front();
    s->queue.pop_front();
    double begin = s->time;
    if (o.to_device)
        begin = std::max(begin, link_time);
    s->time = begin + o.us;
    if (o.to_device)
        link_time = s->time;
    o.run();
    return true;
}

/* Until the next call of the host some of what is queued may run, or nothing at all. */
void some()
{
    for (unsigned n = random_order() % (1 + haste); n > 0 && step(); n--) {
    }
}

void until(const std::function<bool()> &done)
{
    while (!done())
        if (!step())
            broken("what is waited for can never happen");
}

void put(fake_stream *s, double us, bool to_device, std::function<void()> run)
{
    s->queue.push_back({ [] { return true; }, std::move(run), us, to_device });
    some();
}

cudaError_t allocate(std::map<const void *, size_t> &memory, void **data, size_t bytes)
{
    const size_t room = (bytes + PAGE - 1) / PAGE * PAGE;
    void *all = bytes == 0 || bytes > MEMORY ? MAP_FAILED
                                             : mmap(nullptr, room + PAGE, PROT_READ | PROT_WRITE,
                                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        return cudaErrorMemoryAllocation;
    if (mprotect((char *)all + room, PAGE, PROT_NONE) != 0)
        broken("mprotect");
    *data = (char *)all + (room - (bytes + 15) / 16 * 16);       /* ends at the guard page */
    memset(*data, GARBAGE, bytes);
    memory[*data] = bytes;
    return cudaSuccess;
}

cudaError_t release(std::map<const void *, size_t> &memory, void *data)
{
    const auto at = memory.find(data);
    if (at == memory.end())
        broken("memory is freed that was not allocated");
    for (fake_stream *s : streams)
        until([s] { return s->queue.empty(); });
    const size_t room = (at->second + PAGE - 1) / PAGE * PAGE;
    munmap((void *)((uintptr_t)data / PAGE * PAGE), room + PAGE);
    memory.erase(at);
    return cudaSuccess;
}

} // namespace

void fake_lose(const char *call, unsigned n)
{
    lost = cudaSuccess;
    lose_at = call;
    lose_after = n;
}

unsigned fake_left()
{
    return lose_after;
}

size_t fake_memory()
{
    return device_memory.size() + pinned_memory.size() + streams.size();
}

cudaError_t fake_launch(dim3 grid, dim3 block, std::function<void()> kernel, cudaStream_t stream)
{
    guard g(lock);
    const cudaError_t e = enter("cudaLaunchKernel");
    if (e == cudaSuccess)
        put(stream, KERNEL_US, false, [=] { fake_run(grid, block, kernel); });
    return e;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
    guard g(lock);
    const cudaError_t e = enter("cudaMemcpyAsync");
    if (e != cudaSuccess)
        return e;
    const bool up = kind == cudaMemcpyHostToDevice;
    if (!within(device_memory, up ? to : from, bytes))
        broken("a copy leaves device memory");
    put(stream, COPY_US + (double)bytes / BYTES_PER_US, up, [=] { memcpy(to, from, bytes); });
    if (!within(pinned_memory, up ? from : to, bytes))           /* pageable: the call does it all */
        until([stream] { return stream->queue.empty(); });
    return e;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    guard g(lock);
    const cudaError_t e = enter("cudaMemsetAsync");
    if (e == cudaSuccess && !within(device_memory, to, bytes))
        broken("a memset leaves device memory");
    if (e == cudaSuccess)
        put(stream, KERNEL_US, false, [=] { memset(to, value, bytes); });
    return e;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    guard g(lock);
    *stream = new fake_stream;
    streams.push_back(*stream);
    return enter("cudaStreamCreateWithFlags");
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    guard g(lock);
    streams.erase(std::find(streams.begin(), streams.end(), stream));
    delete stream;
    return lost;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    guard g(lock);
    const cudaError_t e = enter("cudaStreamSynchronize");
    if (e == cudaSuccess)
        until([stream] { return stream->queue.empty(); });
    return e;
}

cudaError_t cudaDeviceSynchronize()
{
    guard g(lock);
    for (fake_stream *s : streams) {
        if (lost != cudaSuccess)
            s->queue.clear();
        until([s] { return s->queue.empty(); });
    }
    return lost;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    guard g(lock);
    const uint64_t record = event->recorded;
    stream->queue.push_back({ [=] { return event->reached >= record; },
                              [=] { stream->time = std::max(stream->time, event->time); }, 0, false });
    some();
    return enter("cudaStreamWaitEvent");
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    *event = new fake_event;
    (*event)->timed = (flags & cudaEventDisableTiming) == 0;
    return lost;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return lost;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    guard g(lock);
    const uint64_t record = ++event->recorded;
    put(stream, 0, false, [=] {
        event->reached = record;
        event->time = stream->time;
    });
    return enter("cudaEventRecord");
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    guard g(lock);
    const cudaError_t e = enter("cudaEventQuery");
    if (e != cudaSuccess || event->reached >= event->recorded)
        return e;
    step();
    return event->reached >= event->recorded ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    guard g(lock);
    const cudaError_t e = enter("cudaEventSynchronize");
    if (e == cudaSuccess)
        until([event] { return event->reached >= event->recorded; });
    return e;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    guard g(lock);
    if (!from->timed || !to->timed || from->recorded == 0 || to->recorded == 0)
        return cudaErrorInvalidValue;
    if (from->reached < from->recorded || to->reached < to->recorded)
        return cudaErrorNotReady;
    *milliseconds = (float)((to->time - from->time) * 1e-3);
    return lost;
}

cudaError_t cudaMalloc(void **data, size_t bytes)
{
    guard g(lock);
    const cudaError_t e = enter("cudaMalloc");
    return e == cudaSuccess ? allocate(device_memory, data, bytes) : e;
}

cudaError_t cudaFree(void *data)
{
    guard g(lock);
    return release(device_memory, data);
}

cudaError_t cudaMallocHost(void **data, size_t bytes)
{
    guard g(lock);
    const cudaError_t e = enter("cudaMallocHost");
    return e == cudaSuccess ? allocate(pinned_memory, data, bytes) : e;
}

cudaError_t cudaFreeHost(void *data)
{
    guard g(lock);
    return release(pinned_memory, data);
}

cudaError_t cudaHostRegister(void *data, size_t bytes, unsigned)
{
    guard g(lock);
    const cudaError_t e = enter("cudaHostRegister");
    if (e == cudaSuccess)
        pinned_memory[data] = bytes;
    return e;
}

cudaError_t cudaHostUnregister(void *data)
{
    guard g(lock);
    pinned_memory.erase(data);
    return lost;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    return cudaDriverGetVersion(version);
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
    *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int)
{
    *properties = { "a GPU on the CPU", MEMORY, 9, 0, 1, 1 << 20 };
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int room, int)
{
    snprintf(id, (size_t)room, "none");
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    *free_bytes = *total = MEMORY;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int) { return lost; }
cudaError_t cudaSetDeviceFlags(unsigned) { return lost; }
cudaError_t cudaGetLastError() { return lost; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *, const void *) { return lost; }

const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaErrorMemoryAllocation ? "out of memory" : "a failure that was asked for";
}

const char *cudaGetErrorName(cudaError_t e)
{
    return e == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorIllegalAddress";
}
