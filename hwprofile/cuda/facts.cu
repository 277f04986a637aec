/* SPDX-License-Identifier: Apache-2.0
 *
 * Is there a GPU, and what is it.
 */
#include "hwprofile/cuda/state.cuh"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "base/text.h"
}

#define CAPABILITY_MIN 80        /* tensor cores that multiply bf16 */
#define DRIVER_VERSION "/sys/module/nvidia/version"

static bool no(char why[256], const char *text)
{
    snprintf(why, 256, "%s", text);
    return false;
}

static bool explain(cudaError_t e, char why[256])
{
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return no(why, "no NVIDIA driver is loaded on this machine (libcuda.so.1 was not found); use --device host");
    if (e == cudaErrorNoDevice)
        return no(why, "the NVIDIA driver finds no GPU on this machine; use --device host");
    if (e == cudaErrorInsufficientDriver)
        snprintf(why, 256,
                 "the NVIDIA driver is too old: it knows CUDA %d.%d and this build needs CUDA %d.%d; update the driver",
                 driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    else
        snprintf(why, 256, "the NVIDIA driver does not answer: %s (%s)", cudaGetErrorString(e), cudaGetErrorName(e));
    return false;
}

bool moesim_cuda_present(int index, char why[256])
{
    int count = 0, major = 0, minor = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e != cudaSuccess)
        return explain(e, why);
    if (index < 0 || index >= count) {
        snprintf(why, 256, "there is no GPU %d: this machine has %d, numbered from 0", index, count);
        return false;
    }
    e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index);
    if (e != cudaSuccess)
        return explain(e, why);
    if (major * 10 + minor < CAPABILITY_MIN) {
        snprintf(why, 256, "GPU %d has compute capability %d.%d; at least %d.%d is needed", index, major, minor,
                 CAPABILITY_MIN / 10, CAPABILITY_MIN % 10);
        return false;
    }
    return true;
}

/* First line of a file of the system, or false. */
static bool read_line(const char *path, char *out, size_t room)
{
    char line[128] = "";
    FILE *f = fopen(path, "re");
    const bool read = f != NULL && fgets(line, sizeof line, f) != NULL;
    if (f != NULL)
        fclose(f);
    if (read)
        moesim_text_clean(line, strcspn(line, "\n"), out, room);
    return read;
}

static bool read_pci(const struct moesim_cuda *d, const char *attribute, char *out, size_t room)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", d->pci, attribute);
    return read_line(path, out, room);
}

/* "gen5 x16": what the link does now; a link at rest may have slowed down. */
void moesim_cuda_read_pcie(struct moesim_cuda *d)
{
    static const struct { double transfers; int generation; } known[] = {
        { 2.5, 1 }, { 5, 2 }, { 8, 3 }, { 16, 4 }, { 32, 5 }, { 64, 6 },
    };
    char speed[64], width[32];
    snprintf(d->pcie, sizeof d->pcie, "not exposed");
    if (!read_pci(d, "current_link_speed", speed, sizeof speed) || !read_pci(d, "current_link_width", width, sizeof width))
        return;
    const double transfers = strtod(speed, NULL);
    snprintf(d->pcie, sizeof d->pcie, "%.40s x%.10s", speed, width);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (transfers == known[i].transfers)
            snprintf(d->pcie, sizeof d->pcie, "gen%d x%.10s", known[i].generation, width);
}

moesim_code moesim_cuda_read_facts(struct moesim_cuda *d, moesim_error *err)
{
    const int index = d->config.index;
    struct cudaDeviceProp properties;
    char text[32];
    MOESIM_CUDA(d, cudaGetDeviceProperties(&properties, index), err);
    MOESIM_CUDA(d, cudaDeviceGetPCIBusId(d->pci, (int)sizeof d->pci, index), err);
    MOESIM_CUDA(d, cudaRuntimeGetVersion(&d->runtime), err);
    snprintf(d->name, sizeof d->name, "%.100s", properties.name);
    d->memory = properties.totalGlobalMem;
    d->cache = (size_t)properties.l2CacheSize;
    d->multiprocessors = properties.multiProcessorCount;
    d->capability = properties.major * 10 + properties.minor;
    for (char *c = d->pci; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    d->numa = read_pci(d, "numa_node", text, sizeof text) ? (int)strtol(text, NULL, 10) : -1;
    if (!read_line(DRIVER_VERSION, d->driver, sizeof d->driver)) {
        int version = 0;
        MOESIM_CUDA(d, cudaDriverGetVersion(&version), err);
        snprintf(d->driver, sizeof d->driver, "CUDA %d.%d", version / 1000, version % 1000 / 10);
    }
    moesim_cuda_read_pcie(d);
    return MOESIM_OK;
}

typedef void write_fact(const struct moesim_cuda *d, char *out, size_t room);

static void write_gpu(const struct moesim_cuda *d, char *out, size_t room)
{
    snprintf(out, room, "%s", d->name);
}

static void write_driver(const struct moesim_cuda *d, char *out, size_t room)
{
    snprintf(out, room, "%s", d->driver);
}

static void write_cuda(const struct moesim_cuda *d, char *out, size_t room)
{
    snprintf(out, room, "%d.%d", d->runtime / 1000, d->runtime % 1000 / 10);
}

static void write_capability(const struct moesim_cuda *d, char *out, size_t room)
{
    snprintf(out, room, "%d.%d, %d multiprocessors", d->capability / 10, d->capability % 10, d->multiprocessors);
}

static void write_memory(const struct moesim_cuda *d, char *out, size_t room)
{
    snprintf(out, room, "%zu", d->memory);
}

static void write_cache(const struct moesim_cuda *d, char *out, size_t room)
{
    snprintf(out, room, "%zu", d->cache);
}

static void write_pcie(const struct moesim_cuda *d, char *out, size_t room)
{
    snprintf(out, room, "%s", d->pcie);
}

static void write_numa(const struct moesim_cuda *d, char *out, size_t room)
{
    if (d->numa < 0)
        snprintf(out, room, "one node");
    else
        snprintf(out, room, "node %d", d->numa);
}

static void write_pinned(const struct moesim_cuda *d, char *out, size_t room)
{
    snprintf(out, room, "%s", d->pinned ? "yes" : "no");
}

static void write_pool(const struct moesim_cuda *d, char *out, size_t room)
{
    snprintf(out, room, "%zu", d->sizes.pool);
}

static void write_slots(const struct moesim_cuda *d, char *out, size_t room)
{
    snprintf(out, room, "%zu", d->sizes.slots);
}

bool moesim_cuda_fact(moesim_device *device, size_t i, moesim_device_fact *out)
{
    static const struct { const char *key; write_fact *write; } row[] = {
        { "gpu", write_gpu }, { "driver", write_driver }, { "cuda", write_cuda }, { "capability", write_capability },
        { "gpu memory", write_memory }, { "gpu cache", write_cache }, { "pcie", write_pcie }, { "numa", write_numa },
        { "pinned", write_pinned }, { "pool bytes", write_pool }, { "slot bytes", write_slots },
    };
    const size_t rows = sizeof row / sizeof row[0];
    const struct moesim_cuda *d = moesim_cuda_of(device);
    if (i >= rows)
        return moesim_host_fact(d->team, i - rows, out);
    out->key = row[i].key;
    row[i].write(d, out->value, sizeof out->value);
    return true;
}
