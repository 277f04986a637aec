/* SPDX-License-Identifier: Apache-2.0
 *
 * The decision log: read back with HDF5 it holds what was appended, and its digest is the documented one.
 */
#include <stdio.h>
#include <string.h>

#include "tests/unit/traces_write/common.h"
#include "traces/declog.h"
#include "traces/h5.h"

#define EVENTS 20000u
#define LAYERS 7u
#define EXPERTS 40u
#define LISTS 4

static const moesim_declog_header header = {
    .trace_digest = "0123", .model_id = "test/model", .policy = "lru", .options = "a=1,b=2", .config = "{\"cache\":9}",
    .num_layers = LAYERS, .num_experts = EXPERTS, .cache = 9, .seed = UINT64_C(1) << 40,
};

struct lists {
    uint16_t id[LISTS][EXPERTS];
    moesim_decision decision;
};

/* Event n: any function of n will do, as long as lists are sometimes empty. */
static void make(struct lists *l, uint64_t n)
{
    uint32_t *count[LISTS] = {&l->decision.n_hits, &l->decision.n_moved, &l->decision.n_cpu, &l->decision.n_evicted};
    l->decision = (moesim_decision){.pass = n / LAYERS * 3, .clock = n / LAYERS + 1, .layer = (uint32_t)(n % LAYERS),
                                    .counted = n % 3 != 0, .hits = l->id[0], .moved = l->id[1], .cpu = l->id[2],
                                    .evicted = l->id[3]};
    for (unsigned i = 0; i < LISTS; i++) {
        *count[i] = (uint32_t)((n * (i + 3)) % (i + 5));
        for (uint32_t e = 0; e < *count[i]; e++)
            l->id[i][e] = (uint16_t)((n + e * (i + 1)) % EXPERTS);
    }
}

/* traces/FORMAT.md, "Decision log", written down once more. */
static void digest_event(moesim_digest *digest, const struct lists *l)
{
    unsigned char bytes[32 + LISTS * (4 + 2 * EXPERTS)];
    size_t n = 0;
    const moesim_decision *d = &l->decision;
    const uint32_t count[LISTS] = {d->n_hits, d->n_moved, d->n_cpu, d->n_evicted};
    for (int b = 0; b < 8; b++)
        bytes[n++] = (unsigned char)(d->pass >> (8 * b));
    for (int b = 0; b < 8; b++)
        bytes[n++] = (unsigned char)(d->clock >> (8 * b));
    bytes[n++] = (unsigned char)d->layer;
    bytes[n++] = (unsigned char)(d->layer >> 8);
    bytes[n++] = d->counted != 0;
    for (int i = 0; i < LISTS; i++) {
        for (int b = 0; b < 4; b++)
            bytes[n++] = (unsigned char)(count[i] >> (8 * b));
        for (uint32_t e = 0; e < count[i]; e++) {
            bytes[n++] = (unsigned char)l->id[i][e];
            bytes[n++] = (unsigned char)(l->id[i][e] >> 8);
        }
    }
    moesim_digest_update(digest, bytes, n);
}

static void write_log(const char *path, uint64_t events, char digest[MOESIM_DIGEST_CHARS])
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_declog *log = NULL;
    static struct lists l;
    ck_assert_msg(moesim_declog_create(path, &header, &log, &err) == MOESIM_OK, "%s", err.text);
    for (uint64_t n = 0; n < events; n++) {
        make(&l, n);
        ck_assert_msg(moesim_declog_append(log, &l.decision, &err) == MOESIM_OK, "%s", err.text);
    }
    ck_assert_msg(moesim_declog_finish(&log, digest, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_ptr_null(log);
}

/* The whole dataset as bytes of its own type; the caller frees. */
static void *load(hid_t file, const char *name, size_t each, uint64_t *n)
{
    const hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    ck_assert_msg(set >= 0, "no %s", name);
    const hid_t type = H5Dget_type(set), space = H5Dget_space(set);
    ck_assert_uint_eq(H5Tget_size(type), each);
    *n = (uint64_t)H5Sget_simple_extent_npoints(space);
    void *data = malloc((size_t)*n * each + 1);
    ck_assert_int_ge(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), 0);
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(set);
    return data;
}

static void check_attributes(const char *path, const char *digest)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_h5_file file;
    const struct { const char *name, *text; } text[] = {
        {"format", "moesim-decisions"}, {"trace_digest", "0123"}, {"model_id", "test/model"}, {"policy", "lru"},
        {"options", "a=1,b=2"}, {"config", "{\"cache\":9}"}, {"digest", digest},
    };
    const struct { const char *name; uint64_t value; } number[] = {
        {"format_version", 1}, {"num_layers", LAYERS}, {"num_experts", EXPERTS}, {"cache", 9},
        {"seed", UINT64_C(1) << 40}, {"complete", 1},
    };
    ck_assert_msg(moesim_h5_open(path, false, &file, &err) == MOESIM_OK, "%s", err.text);
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
        char got[256];
        bool found;
        ck_assert_int_eq(moesim_h5_attr_text(&file, text[i].name, got, &found, &err), MOESIM_OK);
        ck_assert_str_eq(got, text[i].text);
    }
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++) {
        uint64_t got = 99;
        bool found;
        ck_assert_int_eq(moesim_h5_attr_u64(&file, number[i].name, &got, &found, &err), MOESIM_OK);
        ck_assert_uint_eq(got, number[i].value);
    }
    moesim_h5_close(&file);
}

static void check_lists(hid_t file)
{
    static const char *const offset_name[LISTS] = {"/hits/offset", "/moved/offset", "/cpu/offset", "/evicted/offset"};
    static const char *const expert_name[LISTS] = {"/hits/expert", "/moved/expert", "/cpu/expert", "/evicted/expert"};
    static struct lists l;
    uint64_t n;
    for (int i = 0; i < LISTS; i++) {
        uint64_t *offset = load(file, offset_name[i], 8, &n), total;
        uint16_t *expert = load(file, expert_name[i], 2, &total);
        ck_assert_uint_eq(n, EVENTS + 1);
        ck_assert_uint_eq(offset[0], 0);
        ck_assert_uint_eq(offset[EVENTS], total);
        for (uint64_t e = 0; e < EVENTS; e++) {
            make(&l, e);
            const uint32_t count[LISTS] = {l.decision.n_hits, l.decision.n_moved, l.decision.n_cpu, l.decision.n_evicted};
            ck_assert_uint_eq(offset[e + 1] - offset[e], count[i]);
            ck_assert_mem_eq(expert + offset[e], l.id[i], count[i] * sizeof *expert);
        }
        free(offset);
        free(expert);
    }
}

START_TEST(round_trip)
{
    static struct lists l;
    char digest[MOESIM_DIGEST_CHARS], want[MOESIM_DIGEST_CHARS];
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_digest *d = NULL;
    write_log(test_path("d.h5"), EVENTS, digest);
    ck_assert_uint_eq(count_entries(), 1);
    ck_assert_int_eq(moesim_digest_create(&d, &err), MOESIM_OK);
    for (uint64_t n = 0; n < EVENTS; n++) {
        make(&l, n);
        digest_event(d, &l);
    }
    moesim_digest_hex(d, want);
    moesim_digest_destroy(&d);
    ck_assert_str_eq(digest, want);
    check_attributes(test_path("d.h5"), want);

    ck_assert_int_eq(moesim_h5_enter(&err), MOESIM_OK);
    const hid_t file = H5Fopen(test_path("d.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    uint64_t n;
    uint64_t *pass = load(file, "/event/pass", 8, &n), *when = load(file, "/event/clock", 8, &n);
    uint16_t *layer = load(file, "/event/layer", 2, &n);
    uint8_t *counted = load(file, "/event/counted", 1, &n);
    ck_assert_uint_eq(n, EVENTS);
    for (uint64_t e = 0; e < EVENTS; e++) {
        make(&l, e);
        ck_assert(pass[e] == l.decision.pass && when[e] == l.decision.clock && layer[e] == l.decision.layer);
        ck_assert_uint_eq(counted[e], l.decision.counted);
    }
    check_lists(file);
    H5Fclose(file);
    moesim_h5_leave();
    free(pass);
    free(when);
    free(layer);
    free(counted);
}
END_TEST

START_TEST(same_bytes_and_digests)
{
    char a[MOESIM_DIGEST_CHARS], b[MOESIM_DIGEST_CHARS], c[MOESIM_DIGEST_CHARS];
    write_log(test_path("a.h5"), 500, a);
    write_log(test_path("b.h5"), 500, b);
    write_log(test_path("c.h5"), 501, c);
    ck_assert(same_bytes(test_path("a.h5"), test_path("b.h5")));
    ck_assert_str_eq(a, b);
    ck_assert_str_ne(a, c);
    write_log(test_path("e.h5"), 0, NULL);
    check_attributes(test_path("e.h5"), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
END_TEST

START_TEST(refusals)
{
    moesim_error err = MOESIM_ERROR_INIT;
    const uint16_t expert[] = {EXPERTS};
    const struct { moesim_decision decision; const char *part; } bad[] = {
        {{.layer = LAYERS}, "layer 7 of 7"},
        {{.n_hits = 1, .hits = expert}, "expert 40 in /hits/expert"},
        {{.n_moved = 1, .moved = expert}, "expert 40 in /moved/expert"},
        {{.n_cpu = 1, .cpu = expert}, "expert 40 in /cpu/expert"},
        {{.n_evicted = 1, .evicted = expert}, "expert 40 in /evicted/expert"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        moesim_declog *log = NULL;
        ck_assert_int_eq(moesim_declog_create(test_path("d.h5"), &header, &log, &err), MOESIM_OK);
        ck_assert_int_ne(moesim_declog_append(log, &bad[i].decision, &err), MOESIM_OK);
        check_error(&err, MOESIM_E_INTERNAL, bad[i].part);
        moesim_declog_discard(&log);
        ck_assert_ptr_null(log);
        ck_assert_uint_eq(count_entries(), 0);
    }
    moesim_declog *log = NULL;
    ck_assert_int_ne(moesim_declog_create(test_path("absent/d.h5"), &header, &log, &err), MOESIM_OK);
    ck_assert_ptr_null(log);
    moesim_declog_discard(&log);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("decision log");
    TCase *cases = tcase_create("declog");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, round_trip);
    tcase_add_test(cases, same_bytes_and_digests);
    tcase_add_test(cases, refusals);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
