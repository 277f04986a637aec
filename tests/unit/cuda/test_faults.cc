/* SPDX-License-Identifier: Apache-2.0
 *
 * A GPU that is lost at any call: an error that names the call and the event, the same one ever after, nothing hangs, and
 * close gives everything back. And what a caller may ask wrongly.
 */
#include <cstdio>
#include <cstring>
#include <string>

#include <cuda_runtime.h>
#include "tests/unit/cuda/fake.h"

extern "C" {
#include "hwprofile/device_parts.h"
}

static int checks, bad;

static void check(bool right, const char *what, const char *call, unsigned n, const moesim_error &err)
{
    checks++;
    if (right)
        return;
    printf("%s (%s %u): %s\n", what, call, n, err.text);
    bad++;
}

static const moesim_geometry geometry = { "tiny", 2, 2, 6, 4, 128, 64, 1, 2, 1, 64, 100, 0, "made up" };

/* Everything once; the first failure ends it. */
static moesim_code use(moesim_device *device, moesim_error *err)
{
    static const uint16_t row[] = { 0, 1, 2 };
    static const moesim_device_expert hit = { 0, 0, 3, row }, moved[] = { { 1, 1, 2, row }, { 0, 2, 1, row } },
                                      cpu = { 0, 3, 3, row };
    const moesim_device_work work = { 3, 1, 2, 1, &hit, moved, &cpu };
    const moesim_device_ops &ops = moesim_device_cuda;
    moesim_device_times times;
    float out[9 * 128];
    double s, t;
    uint64_t bytes;
    moesim_code code = ops.fill(device, 0, 0, err);
    for (int i = 0; code == MOESIM_OK && i < 2; i++) {
        code = ops.gate(device, 3, &times, err);
        if (code == MOESIM_OK)
            code = ops.work(device, &work, err);
        if (code == MOESIM_OK)
            code = ops.end_pass(device, 3, true, &times, err);
        if (code == MOESIM_OK)
            code = ops.outputs(device, out, 9, err);
        if (code == MOESIM_OK)
            code = ops.fill(device, 0, 0, err);
    }
    if (code == MOESIM_OK)
        code = ops.time_copy(device, 10000, true, 2, 3, &s, err);
    if (code == MOESIM_OK)
        code = ops.time_return(device, 1000, 2, &s, &t, err);
    if (code == MOESIM_OK)
        code = ops.time_grouped(device, 2, 3, 2, &s, err);
    if (code == MOESIM_OK)
        code = ops.time_other(device, 3, 2, &s, &t, err);
    if (code == MOESIM_OK)
        code = ops.time_head(device, 3, 2, &s, err);
    if (code == MOESIM_OK)
        code = ops.load_begin(device, 5000, err);
    return code == MOESIM_OK ? ops.load_end(device, &bytes, &s, err) : code;
}

/* Loses the GPU at the n-th call of this name; false: there are fewer. */
static bool lose(const char *call, unsigned n)
{
    moesim_device_config config = {};
    moesim_error err = MOESIM_ERROR_INIT, again = MOESIM_ERROR_INIT;
    moesim_device *device = NULL;
    config.hidden = 128;
    config.intermediate = 64;
    config.max_rows = 4;
    config.top_k = 4;
    config.slots = 3;
    config.pool = 6;
    config.cpu.threads = 1;
    config.other = true;
    config.geometry = &geometry;
    config.context = 5;
    config.bandwidth_cap = 1e9;
    const size_t before = fake_memory();
    fake_lose(call, n);
    moesim_code code = moesim_device_cuda.open(&config, &device, &err);
    const bool opened = code == MOESIM_OK;
    if (opened)
        code = use(device, &err);
    const bool came = fake_left() == 0;
    check((code == MOESIM_OK) == !came, came ? "the failure was not told" : "failed without a failure", call, n, err);
    if (came && std::string(call) != "cudaHostRegister")
        check(strstr(err.text, "failed: ") != NULL && strstr(err.text, "event") != NULL, "the message lacks something", call, n, err);
    if (opened && came) {
        check(moesim_device_cuda.fill(device, 0, 0, &again) != MOESIM_OK, "usable after a failure", call, n, again);
        check(strcmp(again.text, err.text) == 0, "another error than the first", call, n, again);
    }
    moesim_device_cuda.close(&device);
    check(device == NULL && fake_memory() == before, "close leaves something behind", call, n, err);
    fake_lose("", 0);
    return came;
}

int main(void)
{
    static const char *const calls[] = {
        "cudaMalloc", "cudaMallocHost", "cudaHostRegister", "cudaStreamCreateWithFlags", "cudaMemcpyAsync", "cudaMemsetAsync",
        "cudaLaunchKernel", "cudaEventRecord", "cudaStreamWaitEvent", "cudaStreamSynchronize", "cudaEventQuery",
    };
    for (const char *call : calls)
        for (unsigned n = 1; lose(call, n); n += 1 + n / 2) {
        }
    printf("failures of a GPU checked: %d, %d wrong\n", checks, bad);
    return bad > 0;
}
