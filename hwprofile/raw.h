/* SPDX-License-Identifier: Apache-2.0
 *
 * Raw samples of a machine: what `profile measure` writes and `profile fit` reads. One HDF5 file, `moesim-profile-raw/1`
 * (hwprofile/PROFILE.md): every sample of every point, with the facts of the device. Plain data; one thread at a time.
 */
#ifndef MOESIM_HWPROFILE_RAW_H
#define MOESIM_HWPROFILE_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MOESIM_RAW_FORMAT "moesim-profile-raw"
#define MOESIM_RAW_VERSION 1u
#define MOESIM_RAW_POINTS 4096u          /* most of a file */
#define MOESIM_RAW_SAMPLES 65536u        /* most of a point */
#define MOESIM_RAW_NOTHING 1e-9          /* seconds: stands for what hides behind the device altogether */
#define MOESIM_RAW_FACTS 64u
#define MOESIM_RAW_SWEEPS 2u             /* the whole is measured so often */
#define MOESIM_RAW_BESIDE 24u            /* hits of one token each beside the CPU experts of event_both */

/* What one sample says, always in seconds. The order is that of the file. */
enum moesim_raw_kind {
    MOESIM_RAW_COPY = 0,         /* one copy to the device of `bytes` */
    MOESIM_RAW_TO_HOST,          /* a small copy of `bytes` and waiting for it */
    MOESIM_RAW_TO_DEVICE,
    MOESIM_RAW_CPU,              /* `experts` jobs of `tokens` one after another on `threads`, from start to end */
    MOESIM_RAW_READ,             /* reading `bytes` of host memory with `threads` */
    MOESIM_RAW_GROUPED,          /* one grouped call of `experts` with `tokens` each */
    MOESIM_RAW_OTHER,            /* one layer's attention, router and shared expert with `rows`, on the device */
    MOESIM_RAW_OTHER_HOST,       /* what enqueuing it adds */
    MOESIM_RAW_HEAD,             /* LM head over `rows` */
    MOESIM_RAW_EMPTY,            /* gate to gate without work */
    MOESIM_RAW_EVENT_HITS,       /* gate to gate: `experts` hits of `tokens` each */
    MOESIM_RAW_EVENT_MOVED,      /* the same, moved */
    MOESIM_RAW_EVENT_CPU,        /* the same, on the CPU */
    MOESIM_RAW_EVENT_BOTH,       /* the same, on the CPU beside MOESIM_RAW_BESIDE hits */
    MOESIM_RAW_JOINT_CPU,        /* as CPU, while the link copies `bytes` without pause */
    MOESIM_RAW_JOINT_LINK,       /* one of those copies; threads 0: nothing runs on the CPU */
    MOESIM_RAW_KINDS
};

/* What makes a point one of its kind; fields that the kind does not use are 0. */
typedef struct moesim_raw_key {
    uint32_t kind;
    uint64_t bytes;
    uint32_t rows, experts, tokens, threads, streams, pinned;
} moesim_raw_key;

/* Row i of the table of fields, in the order of the file; name NULL ends it. most: of a key's field, larger than any that is
 * measured. */
typedef struct moesim_raw_field { const char *name; size_t offset; bool wide; uint64_t most; } moesim_raw_field;
extern const moesim_raw_field moesim_raw_fields[];
uint64_t moesim_raw_get(const moesim_raw_key *key, const moesim_raw_field *field);

/* Kinds by number: fields is a bit per row of moesim_raw_fields. zero: fields that may also be 0. */
typedef struct moesim_raw_kind_info { const char *name; uint32_t fields, zero; } moesim_raw_kind_info;
extern const moesim_raw_kind_info moesim_raw_kind_infos[MOESIM_RAW_KINDS];

/* "cpu threads 8 tokens 2 experts 4": for messages. Returns text. */
#define MOESIM_RAW_TEXT 128u
const char *moesim_raw_text(const moesim_raw_key *key, char text[MOESIM_RAW_TEXT]);

/* One point of one sweep, samples [n] from sample[begin] on. p10, p90: nearest rank; cv: standard deviation (n − 1) by mean. */
typedef struct moesim_raw_point {
    moesim_raw_key key;
    uint32_t sweep, n;
    uint32_t warm;               /* samples thrown away before */
    uint32_t agreed;             /* 1: two medians in a row agreed within 2 %; 0: the bound on warming came first */
    uint64_t begin;
    double median, p10, p90, cv;
} moesim_raw_point;

typedef struct moesim_raw {
    char device[32], model[64];
    uint32_t hidden, intermediate, top_k;
    uint64_t expert_bytes;
    uint32_t threads;            /* of the device: "all" */
    uint32_t quick;              /* 1: fewer points and samples */
    size_t num_facts, num_points, num_samples, room_points, room_samples;
    struct moesim_raw_fact { char key[32], value[128]; } fact[MOESIM_RAW_FACTS];
    moesim_raw_point *point;     /* owned */
    double *sample;              /* owned; seconds */
} moesim_raw;

/* Members of a point as columns: whole numbers (wide: 64 bits), and figures that follow from the samples (64-bit reals).
 * Offsets are those of moesim_raw_point. */
extern const moesim_raw_field moesim_raw_numbers[], moesim_raw_figures[];

/* Figures of a point from its samples; sorted: scratch of p->n values. */
void moesim_raw_work_out(moesim_raw_point *p, const double *sample, double *sorted);

void moesim_raw_init(moesim_raw *raw);
void moesim_raw_fini(moesim_raw *raw);

/* Adds a point with its samples (n ≥ 1, each positive and finite: else MOESIM_E_INTERNAL) and works out its figures. */
moesim_code moesim_raw_add(moesim_raw *raw, const moesim_raw_key *key, uint32_t sweep, const double *sample, uint32_t n,
                           uint32_t warm, bool agreed, moesim_error *err);

/* A fact of the machine; what does not fit is cut, what is over MOESIM_RAW_FACTS is left out. */
void moesim_raw_add_fact(moesim_raw *raw, const char *key, const char *value);
const char *moesim_raw_find_fact(const moesim_raw *raw, const char *key);    /* NULL: none */

/* The point of that key and sweep, or NULL. */
const moesim_raw_point *moesim_raw_find(const moesim_raw *raw, const moesim_raw_key *key, uint32_t sweep);

/* Median over both sweeps' medians (their mean); false: no such point. */
bool moesim_raw_median(const moesim_raw *raw, const moesim_raw_key *key, double *out);

/* How far the two sweeps are apart: |m1 − m2| / mean of the medians. */
typedef struct moesim_raw_gap {
    size_t n;                    /* points measured twice */
    double median, worst;        /* NaN without any */
    moesim_raw_key key;          /* of the worst */
} moesim_raw_gap;
/* Of one kind, or of all with MOESIM_RAW_KINDS. */
moesim_raw_gap moesim_raw_compare(const moesim_raw *raw, uint32_t kind);

/* The median (mean of the middle two) of n ≥ 1 values, which are sorted. */
double moesim_raw_sort_median(double *value, size_t n);

/* Written under a temporary name and renamed. */
moesim_code moesim_raw_write(const moesim_raw *raw, const char *path, moesim_error *err);

/* Strict: FORMAT errors name file, dataset, index, rule and remedy. *out is initialised and, on an error, empty. */
moesim_code moesim_raw_read(const char *path, moesim_raw *out, moesim_error *err);

#endif
