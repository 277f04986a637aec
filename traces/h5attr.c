/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes of the root group: text (variable-length or fixed), integers of any width, reals. All are decoded here from
 * the file's own bytes, so HDF5 converts nothing.
 */
#include "traces/h5.h"
#include "traces/h5text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define MAX_FIXED_TEXT 65536   /* bytes of a fixed-length string attribute */

void moesim_h5_describe(hid_t type, char *out, size_t bytes)
{
    static const char *const names[] = {
        [H5T_INTEGER] = "integer", [H5T_FLOAT] = "float",     [H5T_TIME] = "time",         [H5T_STRING] = "string",
        [H5T_BITFIELD] = "bits",   [H5T_OPAQUE] = "opaque",   [H5T_COMPOUND] = "compound", [H5T_REFERENCE] = "reference",
        [H5T_ENUM] = "enum",       [H5T_VLEN] = "vlen array", [H5T_ARRAY] = "array",
    };
    const H5T_class_t class = H5Tget_class(type);
    const size_t size = H5Tget_size(type);
    const char *swapped = size > 1 && H5Tget_order(type) == H5T_ORDER_BE ? " big-endian" : "";
    if (class == H5T_INTEGER)
        (void)snprintf(out, bytes, "%sint%zu%s", H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "", size * 8, swapped);
    else if (class == H5T_FLOAT)
        (void)snprintf(out, bytes, "float%zu%s", size * 8, swapped);
    else if (class == H5T_STRING && H5Tis_variable_str(type) > 0)
        (void)snprintf(out, bytes, "variable-length string");
    else if (class >= H5T_INTEGER && (size_t)class < sizeof names / sizeof names[0])
        (void)snprintf(out, bytes, "%s of %zu bytes", names[class], size);
    else
        (void)snprintf(out, bytes, "unknown type");
}

/* An open attribute with its type. */
typedef struct attribute {
    hid_t id, type;
} attribute;

static void close_attribute(attribute *a)
{
    if (a->type >= 0)
        (void)H5Tclose(a->type);
    if (a->id >= 0)
        (void)H5Aclose(a->id);
}

static moesim_code open_attribute(const moesim_h5_file *file, const char *name, attribute *a, bool *found, moesim_error *err)
{
    *a = (attribute){-1, -1};
    *found = false;
    const htri_t exists = H5Aexists(file->id, name);
    if (exists == 0)
        return MOESIM_OK;
    if (exists < 0 || (a->id = H5Aopen(file->id, name, H5P_DEFAULT)) < 0 || (a->type = H5Aget_type(a->id)) < 0)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute %s cannot be opened: the file is damaged", file->path, name);
    const hid_t space = H5Aget_space(a->id);
    const H5S_class_t class = space >= 0 ? H5Sget_simple_extent_type(space) : H5S_NO_CLASS;
    if (space >= 0)
        (void)H5Sclose(space);
    if (class != H5S_SCALAR)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute %s is not a scalar; write a single value", file->path, name);
    *found = true;
    return MOESIM_OK;
}

static moesim_code wrong_type(const moesim_h5_file *file, const char *name, hid_t type, const char *want, moesim_error *err)
{
    char have[64];
    moesim_h5_describe(type, have, sizeof have);
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute %s has type %s, the format asks for %s", file->path, name, have,
                       want);
}

static moesim_code unreadable(const moesim_h5_file *file, const char *name, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute %s cannot be read: the file is damaged", file->path, name);
}

static moesim_code read_text(const moesim_h5_file *file, const char *name, const attribute *a, char *out, size_t room,
                             moesim_error *err)
{
    const size_t size = H5Tget_size(a->type);
    if (H5Tis_variable_str(a->type) > 0) {
        unsigned char raw[MOESIM_H5_HEAP_ID_BYTES];
        return H5Aread(a->id, moesim_h5_heap_id_type(), raw) < 0 ? unreadable(file, name, err)
                                                                 : moesim_h5_heap_text(file, name, raw, out, room, err);
    }
    if (size == 0 || size > MAX_FIXED_TEXT)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute %s is a string of %zu bytes, at most %d are allowed",
                           file->path, name, size, MAX_FIXED_TEXT);
    char *text = H5allocate_memory(size, true);
    if (text == NULL)
        return moesim_fail_nomem(err, name, size);
    moesim_code code = MOESIM_OK;
    if (H5Aread(a->id, a->type, text) < 0) {
        code = unreadable(file, name, err);
    } else {
        size_t length = strnlen(text, size);
        while (H5Tget_strpad(a->type) == H5T_STR_SPACEPAD && length > 0 && text[length - 1] == ' ')
            length--;
        moesim_text_clean(text, length, out, room);
    }
    (void)H5free_memory(text);
    return code;
}

moesim_code moesim_h5_attr_text(const moesim_h5_file *file, const char *name, char out[256], bool *found, moesim_error *err)
{
    attribute a;
    out[0] = '\0';
    moesim_code code = moesim_h5_enter(err);
    if (code != MOESIM_OK)
        return code;
    code = open_attribute(file, name, &a, found, err);
    if (code == MOESIM_OK && *found)
        code = H5Tget_class(a.type) == H5T_STRING ? read_text(file, name, &a, out, 256, err)
                                                  : wrong_type(file, name, a.type, "a string", err);
    close_attribute(&a);
    moesim_h5_leave();
    return code;
}

/* Bytes that the text may have, read off the type or the reference. */
static moesim_code text_bytes(const moesim_h5_file *file, const char *name, const attribute *a, size_t *bytes,
                              moesim_error *err)
{
    unsigned char raw[MOESIM_H5_HEAP_ID_BYTES];
    if (H5Tget_class(a->type) != H5T_STRING)
        return wrong_type(file, name, a->type, "a string", err);
    *bytes = H5Tget_size(a->type);
    if (H5Tis_variable_str(a->type) <= 0)
        return MOESIM_OK;
    if (H5Aread(a->id, moesim_h5_heap_id_type(), raw) < 0)
        return unreadable(file, name, err);
    *bytes = moesim_h5_heap_length(raw);
    return MOESIM_OK;
}

static moesim_code read_string(const moesim_h5_file *file, const char *name, const attribute *a, size_t max, char **out,
                               moesim_error *err)
{
    size_t bytes = 0;
    const moesim_code code = text_bytes(file, name, a, &bytes, err);
    if (code != MOESIM_OK)
        return code;
    if (bytes > max)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute %s is a string of %zu bytes, at most %zu are allowed",
                           file->path, name, bytes, max);
    if ((*out = malloc(bytes + 1)) == NULL)
        return moesim_fail_nomem(err, name, bytes + 1);
    return read_text(file, name, a, *out, bytes + 1, err);
}

moesim_code moesim_h5_attr_string(const moesim_h5_file *file, const char *name, size_t max, char **out, moesim_error *err)
{
    attribute a;
    bool found = false;
    *out = NULL;
    moesim_code code = moesim_h5_enter(err);
    if (code != MOESIM_OK)
        return code;
    code = open_attribute(file, name, &a, &found, err);
    if (code == MOESIM_OK && found)
        code = read_string(file, name, &a, max, out, err);
    close_attribute(&a);
    moesim_h5_leave();
    if (code != MOESIM_OK) {
        free(*out);
        *out = NULL;
    }
    return code;
}

/* Value of an integer of 1, 2, 4 or 8 bytes in either byte order; negative numbers are refused by the caller's rule. */
static moesim_code read_integer(const moesim_h5_file *file, const char *name, const attribute *a, uint64_t *out,
                                moesim_error *err)
{
    unsigned char raw[8] = {0};
    const size_t size = H5Tget_size(a->type);
    if (size > sizeof raw || H5Tget_precision(a->type) != size * 8)
        return wrong_type(file, name, a->type, "an integer of 1, 2, 4 or 8 bytes", err);
    if (H5Aread(a->id, a->type, raw) < 0)
        return unreadable(file, name, err);
    const bool big = H5Tget_order(a->type) == H5T_ORDER_BE;
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++)
        v = v << 8 | raw[big ? i : size - 1 - i];
    if (H5Tget_sign(a->type) == H5T_SGN_2 && (v >> (size * 8 - 1) & 1u) != 0)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute %s is negative", file->path, name);
    *out = v;
    return MOESIM_OK;
}

moesim_code moesim_h5_attr_u64(const moesim_h5_file *file, const char *name, uint64_t *out, bool *found, moesim_error *err)
{
    attribute a;
    *out = 0;
    moesim_code code = moesim_h5_enter(err);
    if (code != MOESIM_OK)
        return code;
    code = open_attribute(file, name, &a, found, err);
    if (code == MOESIM_OK && *found)
        code = H5Tget_class(a.type) == H5T_INTEGER ? read_integer(file, name, &a, out, err)
                                                   : wrong_type(file, name, a.type, "an integer", err);
    close_attribute(&a);
    moesim_h5_leave();
    return code;
}

static moesim_code read_real(const moesim_h5_file *file, const char *name, const attribute *a, double *out, moesim_error *err)
{
    uint64_t whole = 0;
    float narrow = 0.0f;
    if (H5Tget_class(a->type) == H5T_INTEGER) {
        const moesim_code code = read_integer(file, name, a, &whole, err);
        *out = (double)whole;
        return code;
    }
    if (H5Tequal(a->type, moesim_h5_type_id(MOESIM_H5_F64)) > 0)
        return H5Aread(a->id, a->type, out) < 0 ? unreadable(file, name, err) : MOESIM_OK;
    if (H5Tequal(a->type, moesim_h5_type_id(MOESIM_H5_F32)) <= 0)
        return wrong_type(file, name, a->type, "float64", err);
    if (H5Aread(a->id, a->type, &narrow) < 0)
        return unreadable(file, name, err);
    *out = (double)narrow;
    return MOESIM_OK;
}

moesim_code moesim_h5_attr_real(const moesim_h5_file *file, const char *name, double *out, bool *found, moesim_error *err)
{
    attribute a;
    moesim_code code = moesim_h5_enter(err);
    if (code != MOESIM_OK)
        return code;
    code = open_attribute(file, name, &a, found, err);
    if (code == MOESIM_OK && *found)
        code = read_real(file, name, &a, out, err);
    close_attribute(&a);
    moesim_h5_leave();
    return code;
}
