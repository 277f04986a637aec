/* SPDX-License-Identifier: Apache-2.0
 *
 * Mutation fuzzer: bytes of valid traces are changed at random, the result is opened and read whole. Fails on a crash, on an
 * error without a message, and on MOESIM_E_INTERNAL; prints seed and iteration, with which the same file comes again.
 * usage: fuzz_mutate ITERATIONS SEED SAMPLE [ONLY]   (ONLY: this one iteration, its file is left behind)
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "base/rng.h"
#include "tests/fuzz/drain.h"
#include "tests/unit/traces/tiny.h"

enum { MAX_FILE = 8 << 20, SEEDS = 4, SAMPLE_EVERY = 40 };

typedef struct image {
    unsigned char *data;
    size_t bytes;
} image;

static uint64_t seed, iteration;

/* Says which file it was. Only async-signal-safe calls. */
static void report(void)
{
    char text[128] = "fuzz_mutate: crash: seed ", digit[24];
    size_t n = strlen(text);
    const uint64_t numbers[2] = {seed, iteration};
    for (int i = 0; i < 2; i++) {
        size_t d = 0;
        for (uint64_t v = numbers[i]; d == 0 || v > 0; v /= 10)
            digit[d++] = (char)('0' + v % 10);
        while (d > 0)
            text[n++] = digit[--d];
        memcpy(text + n, i == 0 ? " iteration " : "\n", i == 0 ? 11 : 1);
        n += i == 0 ? 11 : 1;
    }
    if (write(STDERR_FILENO, text, n) < 0)
        _exit(3);
}

#if defined(__SANITIZE_ADDRESS__)
#define HOOK __attribute__((visibility("default"), used))
/* Called by the sanitizer when it has found an error, and asked by its leak checker. HDF5 1.10 itself forgets a few hundred
 * bytes whenever it refuses a damaged file. */
HOOK void __asan_on_error(void);
HOOK const char *__lsan_default_suppressions(void);

void __asan_on_error(void)
{
    report();
}

const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5\n";
}

static void watch(void)
{
}
#else
static void on_crash(int sig)
{
    report();
    signal(sig, SIG_DFL);
    raise(sig);
}

static void watch(void)
{
    const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
        signal(fatal[i], on_crash);
}
#endif

static image load(const char *path)
{
    image f = {malloc(MAX_FILE), 0};
    FILE *in = fopen(path, "rb");
    if (in == NULL || f.data == NULL) {
        perror(path);
        exit(2);
    }
    f.bytes = fread(f.data, 1, MAX_FILE, in);
    fclose(in);
    return f;
}

static void store(const char *path, const image *f)
{
    FILE *out = fopen(path, "wb");
    if (out == NULL || fwrite(f->data, 1, f->bytes, out) != f->bytes || fclose(out) != 0) {
        perror(path);
        exit(2);
    }
}

static void zstd(hid_t list)
{
    if (H5Pset_shuffle(list) < 0 || H5Pset_filter(list, MOESIM_FILTER_ZSTD, H5Z_FLAG_MANDATORY, 0, NULL) < 0)
        exit(2);
}

static void no_filters(hid_t list)
{
    (void)list;
}

/* Valid traces of three kinds: gzip, zstd, and without filters in the oldest objects that the reader takes. */
static image make(int kind)
{
    static tiny t;
    tiny_init(&t);
    for (int i = 0; i < t.items; i++) {
        t.item[i].filters = kind == 1 ? zstd : kind == 2 ? no_filters : NULL;
        if (t.item[i].layout == TINY_CONTIGUOUS && i % 2 == kind % 2 && t.item[i].rank == 1) {
            t.item[i].layout = TINY_CHUNKED;
            t.item[i].chunk[0] = 3;
        }
    }
    tiny_write(&t, tiny_path("seed.h5"));
    return load(tiny_path("seed.h5"));
}

/* One to eight changes: a bit, a byte, a run of a telling value, a copy of other bytes, or a cut. */
static void mutate(moesim_rng *r, image *f)
{
    static const unsigned char telling[] = {0, 1, 0x7f, 0x80, 0xfe, 0xff};
    for (uint32_t left = 1 + moesim_rng_below(r, 8); left > 0; left--) {
        const uint32_t at = moesim_rng_below(r, (uint32_t)f->bytes), from = moesim_rng_below(r, (uint32_t)f->bytes);
        const uint32_t most = (uint32_t)f->bytes - (at > from ? at : from), run = 1 + moesim_rng_below(r, most < 8 ? most : 8);
        switch (moesim_rng_below(r, 16)) {
        case 0:
            f->bytes = f->bytes > 100 && left == 1 ? at + 1 : f->bytes;
            break;
        case 1: case 2: case 3: case 4:
            f->data[at] ^= (unsigned char)(1u << moesim_rng_below(r, 8));
            break;
        case 5: case 6: case 7:
            memmove(f->data + at, f->data + from, run);
            break;
        case 8: case 9: case 10: case 11:
            memset(f->data + at, telling[moesim_rng_below(r, sizeof telling)], run);
            break;
        default:
            f->data[at] = (unsigned char)moesim_rng_below(r, 256);
            break;
        }
    }
}

static uint64_t number(const char *text, const char *what)
{
    moesim_error err = MOESIM_ERROR_INIT;
    uint64_t value = 0;
    if (moesim_parse_u64(text, 0, UINT64_MAX, what, &value, &err) != MOESIM_OK) {
        fprintf(stderr, "fuzz_mutate: %s\n", err.text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    if (argc != 4 && argc != 5)
        return 2;
    const uint64_t n = number(argv[1], "ITERATIONS");
    seed = number(argv[2], "SEED");
    const uint64_t only = argc == 5 ? number(argv[4], "ONLY") : UINT64_MAX;
    image seeds[SEEDS] = {make(0), make(1), make(2), load(argv[3])}, work = {malloc(MAX_FILE), 0};
    const char *path = argc == 5 ? "fuzz_mutate.h5" : tiny_path("mutated.h5");
    uint64_t opened = 0, refused = 0;
    if (work.data == NULL)
        return 2;
    watch();
    for (iteration = only < UINT64_MAX ? only : 0; iteration < n; iteration++) {
        moesim_rng rng;
        moesim_error err = MOESIM_ERROR_INIT;
        moesim_rng_seed(&rng, seed * 1000003 + iteration);
        const image *base = &seeds[iteration % SAMPLE_EVERY == 0 ? 3 : iteration % 3];
        memcpy(work.data, base->data, base->bytes);
        work.bytes = base->bytes;
        mutate(&rng, &work);
        store(path, &work);
        const moesim_code code = fuzz_drain(path, &err);
        opened += code == MOESIM_OK;
        refused += code != MOESIM_OK;
        if (code == MOESIM_E_INTERNAL || (code != MOESIM_OK && err.text[0] == '\0')) {
            fprintf(stderr, "fuzz_mutate: seed %llu iteration %llu: code %d, \"%s\"\n", (unsigned long long)seed,
                    (unsigned long long)iteration, (int)code, err.text);
            return 1;
        }
        if (only < UINT64_MAX)
            break;
    }
    printf("seed %llu: %llu files, %llu accepted, %llu refused, no crash\n", (unsigned long long)seed,
           (unsigned long long)(opened + refused), (unsigned long long)opened, (unsigned long long)refused);
    for (int i = 0; i < SEEDS; i++)
        free(seeds[i].data);
    free(work.data);
    return opened == 0 || refused == 0;   /* a run that only ever does one of the two tests nothing */
}
