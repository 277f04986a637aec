/* SPDX-License-Identifier: Apache-2.0
 *
 * Products, attention and sums of the cuda device against double precision. Built twice: for a GPU by nvcc, and for the CPU
 * (tests/unit/cuda/cuda_runtime.h), where every index is checked.
 */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "hwprofile/cuda/kernels.cuh"
#include "hwprofile/cuda/state.cuh"

#define CUDA(call)                                                                                           \
    do {                                                                                                     \
        const cudaError_t e_ = (call);                                                                       \
        if (e_ != cudaSuccess) {                                                                             \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e_));                                      \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

static cudaStream_t stream;
static int checks, bad;

template <class T> struct buffer {
    T *data;
    size_t n;
    explicit buffer(size_t n_) : data(nullptr), n(n_) { CUDA(cudaMalloc((void **)&data, n * sizeof(T))); }
    ~buffer() { (void)cudaFree(data); }
    buffer(const buffer &) = delete;
    std::vector<T> read() const
    {
        std::vector<T> out(n);
        CUDA(cudaMemcpyAsync(out.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost, stream));
        CUDA(cudaStreamSynchronize(stream));
        return out;
    }
    void write(const std::vector<T> &in)
    {
        CUDA(cudaMemcpyAsync(data, in.data(), n * sizeof(T), cudaMemcpyHostToDevice, stream));
        CUDA(cudaStreamSynchronize(stream));
    }
    void poison() { CUDA(cudaMemsetAsync(data, 0xff, n * sizeof(T), stream)); }
};

static void fill(buffer<uint16_t> &b, uint64_t seed, float scale)
{
    const struct moesim_random r = { b.data, b.n, seed, scale };
    CUDA(moesim_launch_random(&r, stream));
}

static double value(uint16_t v)
{
    return (double)moesim_bf16_to_float(v);
}

static void compare(const char *what, const std::vector<double> &got, const std::vector<double> &want, double most)
{
    double off = 0, norm = 0;
    for (size_t i = 0; i < want.size(); i++) {
        off += (got[i] - want[i]) * (got[i] - want[i]);
        norm += want[i] * want[i];
    }
    const double error = sqrt(off / (norm > 0 ? norm : 1));
    checks++;
    if (!(error <= most)) {
        printf("%s: relative error %g, at most %g\n", what, error, most);
        bad++;
    }
}

static void test_product(uint32_t rows, uint32_t k, uint32_t tokens)
{
    buffer<uint16_t> w((size_t)rows * k), x((size_t)tokens * k);
    buffer<float> y((size_t)tokens * rows);
    fill(w, 1, 0.1f);
    fill(x, 2, 1.0f);
    y.poison();
    const struct moesim_product p = { w.data, x.data, y.data, rows, k, tokens };
    CUDA(moesim_launch_product(&p, stream));
    const std::vector<uint16_t> hw = w.read(), hx = x.read();
    const std::vector<float> hy = y.read();
    std::vector<double> want(hy.size());
    for (uint32_t t = 0; t < tokens; t++)
        for (uint32_t r = 0; r < rows; r++)
            for (uint32_t i = 0; i < k; i++)
                want[(size_t)t * rows + r] += value(hw[(size_t)r * k + i]) * value(hx[(size_t)t * k + i]);
    char what[64];
    snprintf(what, sizeof what, "product %u x %u, %u tokens", rows, k, tokens);
    compare(what, std::vector<double>(hy.begin(), hy.end()), want, 1e-5);
}

static void attend(const std::vector<float> &q, const std::vector<uint16_t> &keys, const std::vector<uint16_t> &values,
                   const struct moesim_attention &a, uint32_t row, uint32_t head, double *out)
{
    const uint32_t kv = head / (a.heads / a.kv_heads);
    std::vector<double> score(a.context);
    double best = -INFINITY, total = 0;
    for (uint32_t l = 0; l < a.context; l++) {
        for (uint32_t i = 0; i < a.dim; i++)
            score[l] += (double)q[row * a.width + head * a.dim + i] * value(keys[((size_t)l * a.kv_heads + kv) * a.dim + i]);
        score[l] /= sqrt((double)a.dim);
        best = fmax(best, score[l]);
    }
    for (uint32_t l = 0; l < a.context; l++) {
        total += exp(score[l] - best);
        for (uint32_t i = 0; i < a.dim; i++)
            out[i] += exp(score[l] - best) * value(values[((size_t)l * a.kv_heads + kv) * a.dim + i]);
    }
    for (uint32_t i = 0; i < a.dim && total > 0; i++)
        out[i] /= total;
}

static void test_attention(uint32_t rows, uint32_t heads, uint32_t kv_heads, uint32_t dim, uint32_t context)
{
    const uint32_t width = (heads + 2 * kv_heads) * dim;
    buffer<uint16_t> keys((size_t)(context + 1) * kv_heads * dim), values(keys.n), out((size_t)rows * heads * dim),
        raw((size_t)rows * width);
    buffer<float> qkv(raw.n);
    fill(keys, 3, 2.0f);
    fill(values, 4, 1.0f);
    fill(raw, 5, 2.0f);
    std::vector<float> q;
    for (uint16_t v : raw.read())
        q.push_back(moesim_bf16_to_float(v));
    qkv.write(q);
    out.poison();
    const struct moesim_attention a = {qkv.data, keys.data, values.data, out.data, rows, heads, kv_heads, dim, context, width};
    CUDA(moesim_launch_attention(&a, stream));
    std::vector<double> want(out.n), got;
    const std::vector<uint16_t> hk = keys.read(), hv = values.read();
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t h = 0; h < heads; h++)
            attend(q, hk, hv, a, r, h, &want[((size_t)r * heads + h) * dim]);
    for (uint16_t v : out.read())
        got.push_back(value(v));
    char what[96];
    snprintf(what, sizeof what, "attention of %u rows, %u heads (%u) of %u, context %u", rows, heads, kv_heads, dim, context);
    compare(what, got, want, 5e-3);
}

/* Sums of events in which the CPU had a share: of all routes of a row. */
static void test_sums(void)
{
    const uint32_t ROWS = 300, HIDDEN = 128, SLOTS = 3;
    moesim_device_config config = {};
    config.hidden = HIDDEN;
    config.intermediate = 64;
    config.max_rows = ROWS;
    config.top_k = 8;
    config.slots = SLOTS;
    config.pool = 6;
    config.seed = 3;
    config.cpu.threads = 1;
    moesim_device *device = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_device_times times;
    std::vector<uint16_t> row(ROWS);
    for (uint16_t i = 0; i < ROWS; i++)
        row[i] = i;
    moesim_code code = moesim_device_cuda.open(&config, &device, &err);
    for (uint32_t round = 0; code == MOESIM_OK && round < 12; round++) {
        const uint32_t rows = round % 2 == 0 ? ROWS : 7 + round;
        moesim_device_expert moved[5], cpu[3];
        for (uint32_t i = 0; i < 5; i++)
            moved[i] = { i % SLOTS, i, rows - i, row.data() + i };
        for (uint32_t i = 0; i < 3; i++)
            cpu[i] = { 0, 5 - i, rows / (i + 1), row.data() };
        const moesim_device_work work = { rows, 0, 5, 3, NULL, moved, cpu };
        const size_t routes = moesim_device_routes(&work);
        std::vector<float> y(routes * HIDDEN), sum((size_t)rows * HIDDEN);
        code = moesim_device_cuda.gate(device, rows, &times, &err);
        if (code == MOESIM_OK)
            code = moesim_device_cuda.work(device, &work, &err);
        if (code == MOESIM_OK)
            code = moesim_device_cuda.gate(device, 1, &times, &err);
        if (code == MOESIM_OK)           /* the sums first: nothing may have to be waited for after a gate */
            CUDA(cudaMemcpyAsync(sum.data(), moesim_cuda_of(device)->sum, sum.size() * sizeof sum[0], cudaMemcpyDeviceToHost,
                                 moesim_cuda_of(device)->compute));
        if (code == MOESIM_OK)
            code = moesim_device_cuda.outputs(device, y.data(), routes, &err);
        std::vector<double> want((size_t)rows * HIDDEN);
        size_t route = 0;
        for (const moesim_device_expert *e : { moved, moved + 1, moved + 2, moved + 3, moved + 4, cpu + 0, cpu + 1, cpu + 2 })
            for (uint32_t t = 0; t < e->tokens; t++, route++)
                for (uint32_t i = 0; i < HIDDEN; i++)
                    want[(size_t)e->row[t] * HIDDEN + i] += y[route * HIDDEN + i];
        compare("sums of rows", std::vector<double>(sum.begin(), sum.end()), want, 1e-5);
    }
    moesim_device_cuda.close(&device);
    if (code != MOESIM_OK) {
        puts(err.text);
        bad++;
    }
}

int main(void)
{
    char why[256];
    if (!moesim_cuda_present(0, why)) {
        printf("skipped: cuda: %s\n", why);
        return 77;
    }
    CUDA(cudaSetDevice(0));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    test_product(64, 64, 1);
    test_product(48, 128, 3);
    test_product(16, 1024, 9);
    test_product(80, 512, 17);
    test_product(112, 2048, 16);
    test_product(32, 256, 40);
    test_attention(3, 4, 2, 64, 100);
    test_attention(1, 2, 2, 128, 0);
    test_attention(2, 6, 3, 80, 17);
    test_attention(2, 2, 1, 256, 33);
    test_attention(1, 1, 1, 32, 1);
    test_sums();
    CUDA(cudaStreamDestroy(stream));
    printf("cuda kernels checked: %d, %d wrong\n", checks, bad);
    return bad > 0;
}
