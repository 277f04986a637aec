/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON of nvbandwidth (`nvbandwidth -j`): one object "nvbandwidth" with a list of test cases; rates are texts in GB/s.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "base/text.h"
#include "hwprofile/derive.h"
#include "hwprofile/parts.h"

#define MOST_BYTES (16 << 20)
#define TO_DEVICE "host_to_device_memcpy_ce"
#define TO_HOST "device_to_host_memcpy_ce"
#define REMEDY "run `nvbandwidth -j -t " TO_DEVICE "` again"

static moesim_code load(const char *path, json_t **out, moesim_error *err)
{
    struct stat info;
    json_error_t e;
    char plain[MOESIM_PLAIN_CHARS];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return moesim_fail(err, MOESIM_E_IO, "cannot open %s: %s", path, strerror(errno));
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > MOST_BYTES) {
        close(fd);
        return moesim_fail(err, MOESIM_E_IO, "cannot read %s: it is no regular file of at most 16 MiB", path);
    }
    *out = json_loadfd(fd, JSON_REJECT_DUPLICATES, &e);
    close(fd);
    if (*out == NULL)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s:%d:%d: no valid JSON: %s", path, e.line, e.column,
                           moesim_profile_plain(e.text, plain, sizeof plain));
    return MOESIM_OK;
}

static const json_t *find_case(const json_t *cases, const char *name)
{
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i);
        const char *is = json_string_value(json_object_get(one, "name"));
        if (is != NULL && strcmp(is, name) == 0)
            return one;
    }
    return NULL;
}

/* Row 0 is the CPU, columns are GPUs. */
static moesim_code rate_of(const char *path, const json_t *one, const char *name, uint32_t gpu, double *out,
                           moesim_error *err)
{
    const json_t *row = json_array_get(json_object_get(one, "bandwidth_matrix"), 0), *cell = json_array_get(row, gpu);
    const char *text = json_string_value(cell);
    double rate = json_is_number(cell) ? json_number_value(cell) : NAN;
    if (cell == NULL)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s: bandwidth_matrix has %zu GPUs, there is no GPU %u; choose another "
                           "with --index", path, name, json_array_size(row), gpu);
    if (text != NULL && moesim_parse_real(text, 0.0, 1e7, "rate", &rate, NULL) != MOESIM_OK)
        rate = NAN;
    if (!(rate > 0.0) || !(rate <= 1e7))
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s: bandwidth_matrix[0][%u] is no rate in GB/s; " REMEDY, path, name,
                           gpu);
    *out = rate * 1e9;
    return MOESIM_OK;
}

static moesim_code read_case(const char *path, const json_t *cases, const char *name, uint32_t gpu, double *out,
                             moesim_error *err)
{
    char plain[MOESIM_PLAIN_CHARS];
    const json_t *one = find_case(cases, name);
    const char *status = json_string_value(json_object_get(one, "status"));
    const char *why = json_string_value(json_object_get(one, "error"));
    if (one == NULL)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: there is no test case %s; " REMEDY, path, name);
    if (status == NULL || strcmp(status, "Passed") != 0) {
        char reason[MOESIM_PLAIN_CHARS];
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: test case %s has status %s, not Passed%s%s; " REMEDY, path, name,
                           moesim_profile_plain(status != NULL ? status : "(none)", plain, sizeof plain),
                           why != NULL ? ": " : "", moesim_profile_plain(why != NULL ? why : "", reason, sizeof reason));
    }
    return rate_of(path, one, name, gpu, out, err);
}

moesim_code moesim_nvbandwidth_read(const char *path, uint32_t gpu, moesim_nvbandwidth *out, moesim_error *err)
{
    json_t *root = NULL;
    memset(out, 0, sizeof *out);
    moesim_code code = load(path, &root, err);
    if (code != MOESIM_OK)
        return code;
    const json_t *body = json_object_get(root, "nvbandwidth"), *cases = json_object_get(body, "testcases");
    const char *version = json_string_value(json_object_get(body, "version"));
    const char *commit = json_string_value(json_object_get(body, "git_version")), *said = version != NULL ? version : commit;
    if (!json_is_array(cases))
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s: nvbandwidth.testcases is no list: not written by `nvbandwidth -j`", path);
    if (code == MOESIM_OK)
        code = read_case(path, cases, TO_DEVICE, gpu, &out->link, err);
    if (code == MOESIM_OK && read_case(path, cases, TO_HOST, gpu, &out->back, NULL) != MOESIM_OK)
        out->back = 0.0;
    if (said != NULL)
        moesim_text_clean(said, strlen(said), out->version, sizeof out->version);
    json_decref(root);
    return code;
}
