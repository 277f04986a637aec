/* SPDX-License-Identifier: Apache-2.0
 *
 * Guarded access to HDF5: preparation of the library, the look at a file's first bytes, opening and closing.
 */
#include "traces/h5.h"
#include "traces/h5text.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "columns are read as they lie in the file: little-endian");

static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock;
static bool needs_lock;
static const char *prepare_failure;
static hid_t type_ids[MOESIM_H5_TYPES];

/* IEEE half precision: HDF5 1.10 has no predefined type for it; this is what h5py writes for float16. */
static hid_t make_f16(void)
{
    const hid_t id = H5Tcopy(H5T_IEEE_F32LE);
    if (id < 0 || H5Tset_fields(id, 15, 10, 5, 0, 10) < 0 || H5Tset_size(id, 2) < 0 || H5Tset_ebias(id, 15) < 0)
        return H5I_INVALID_HID;
    return id;
}

static void prepare(void)
{
    pthread_mutexattr_t attr;
    if (pthread_mutexattr_init(&attr) != 0 || pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE) != 0 ||
        pthread_mutex_init(&lock, &attr) != 0) {
        prepare_failure = "no mutex could be made";
        return;
    }
    (void)pthread_mutexattr_destroy(&attr);

    /* Must come before anything else initialises the library: its clean-up at exit crashes after damaged files. */
    hbool_t safe = false;
    if (H5dont_atexit() < 0 || H5open() < 0 || H5is_library_threadsafe(&safe) < 0) {
        prepare_failure = "the library does not start";
        return;
    }
    needs_lock = !safe;
    /* An unknown filter number in a file must never make HDF5 load a shared object. */
    if (H5PLset_loading_state(0) < 0 || H5Zregister(moesim_filter_zstd_class()) < 0) {
        prepare_failure = "plug-ins cannot be switched off or the zstd filter cannot be registered";
        return;
    }
    if (!moesim_h5_heap_prepare()) {
        prepare_failure = "the type for references to text cannot be registered";
        return;
    }
    type_ids[MOESIM_H5_U8] = H5T_STD_U8LE;
    type_ids[MOESIM_H5_U16] = H5T_STD_U16LE;
    type_ids[MOESIM_H5_U32] = H5T_STD_U32LE;
    type_ids[MOESIM_H5_U64] = H5T_STD_U64LE;
    type_ids[MOESIM_H5_I32] = H5T_STD_I32LE;
    type_ids[MOESIM_H5_I64] = H5T_STD_I64LE;
    type_ids[MOESIM_H5_F16] = make_f16();
    type_ids[MOESIM_H5_F32] = H5T_IEEE_F32LE;
    type_ids[MOESIM_H5_F64] = H5T_IEEE_F64LE;
    type_ids[MOESIM_H5_STRING] = H5I_INVALID_HID;
    if (type_ids[MOESIM_H5_F16] < 0)
        prepare_failure = "the half-precision type cannot be made";
}

moesim_code moesim_h5_enter(moesim_error *err)
{
    static _Thread_local bool silent;   /* HDF5 keeps an error stack, with its printer, for each thread */
    (void)pthread_once(&prepared, prepare);
    if (prepare_failure != NULL)
        return moesim_fail(err, MOESIM_E_INTERNAL, "HDF5 cannot be used: %s", prepare_failure);
    if (needs_lock)
        (void)pthread_mutex_lock(&lock);
    if (!silent) {
        (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
        silent = true;
    }
    return MOESIM_OK;
}

void moesim_h5_leave(void)
{
    if (needs_lock)
        (void)pthread_mutex_unlock(&lock);
}

moesim_code moesim_h5_init(moesim_error *err)
{
    const moesim_code code = moesim_h5_enter(err);
    if (code == MOESIM_OK)
        moesim_h5_leave();
    return code;
}

hid_t moesim_h5_type_id(enum moesim_h5_type type)
{
    return type_ids[type];
}

/* ---- the first bytes, without HDF5 --------------------------------------------------------------------------------- */

#define HEAD_BYTES 48   /* superblock versions 2 and 3 */
#define OPEN_FOR_WRITING 0x5u   /* consistency flags of version 3: open by a writer, by a single writer beside readers */

static uint64_t get_u64(const unsigned char *p)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

/* Superblock 2 or 3: signature 8, version 1, size of addresses 1, of lengths 1, flags 1, base 8, extension 8, end 8, root 8. */
static moesim_code check_superblock(const unsigned char *head, bool old_format, int fd, moesim_h5_file *out,
                                    moesim_error *err)
{
    const char *path = out->path;
    const uint64_t bytes = out->bytes;
    if (bytes < HEAD_BYTES)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: the file was cut short inside its HDF5 superblock (%llu bytes)", path,
                           (unsigned long long)bytes);
    if (head[9] != 8 || head[10] != 8)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: HDF5 addresses of %u and lengths of %u bytes; only 8 are supported",
                           path, head[9], head[10]);
    if (head[8] == 3 && (head[11] & OPEN_FOR_WRITING) != 0)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: the file is marked as open for writing: its program is still running, or "
                           "was killed; then `moesim trace salvage IN OUT` closes a trace", path);
    const uint64_t base = get_u64(head + 12), end = get_u64(head + 28), root = get_u64(head + 36);
    if (base != 0)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: HDF5 base address %llu; files with a user block are not supported",
                           path, (unsigned long long)base);
    if (end > bytes)
        return moesim_fail(err, MOESIM_E_FORMAT,
                           "%s: the file was cut short: its HDF5 superblock says %llu bytes, it has %llu; copy it again", path,
                           (unsigned long long)end, (unsigned long long)bytes);
    unsigned char magic[4] = {0};
    if (root < end && end - root >= sizeof magic && pread(fd, magic, sizeof magic, (off_t)root) == (ssize_t)sizeof magic &&
        memcmp(magic, "OHDR", sizeof magic) == 0)
        return MOESIM_OK;
    out->old = true;   /* a new superblock around objects without checksums */
    return old_format ? MOESIM_OK
                      : moesim_fail(err, MOESIM_E_FORMAT,
                                    "%s: the root group at byte %llu is damaged or in HDF5's old format without checksums (no "
                                    "\"OHDR\" there). Repack it once with `moesim trace convert --old-format IN OUT`, or add "
                                    "--old-format to this command",
                                    path, (unsigned long long)root);
}

static moesim_code check_head(const char *path, bool old_format, int fd, moesim_h5_file *out, moesim_error *err)
{
    static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    unsigned char head[HEAD_BYTES] = {0};
    const ssize_t n = pread(fd, head, sizeof head, 0);
    if (n < 0)
        return moesim_fail(err, MOESIM_E_IO, "%s: cannot read: %s", path, strerror(errno));
    if (n < 9 || memcmp(head, signature, sizeof signature) != 0)
        return moesim_fail(err, MOESIM_E_FORMAT,
                           "%s: not an HDF5 file (no signature at byte 0), so not a trace; other formats are brought in by "
                           "`moesim trace import`",
                           path);
    out->hdf5 = true;
    if (head[8] < 2) {
        out->old = true;
        return old_format ? MOESIM_OK
                          : moesim_fail(err, MOESIM_E_FORMAT,
                                        "%s: HDF5 superblock version %u; damaged files of that age crash the HDF5 library, so "
                                        "only version 2 or later is read. Repack it once with `moesim trace convert "
                                        "--old-format IN OUT`, or add --old-format to this command",
                                        path, head[8]);
    }
    if (head[8] > 3)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: HDF5 superblock version %u is unknown; versions 2 and 3 are read", path,
                           head[8]);
    return check_superblock(head, old_format, fd, out, err);
}

moesim_code moesim_h5_precheck(const char *path, bool old_format, moesim_h5_file *out, moesim_error *err)
{
    *out = (moesim_h5_file){.id = -1, .path = path};
    /* O_NONBLOCK: a pipe must not hang the open. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        const int why = errno;
        if (fd >= 0)
            (void)close(fd);
        return moesim_fail(err, MOESIM_E_IO, "%s: cannot open: %s", path, strerror(why));
    }
    moesim_code code = MOESIM_OK;
    if (!S_ISREG(st.st_mode))
        code = moesim_fail(err, MOESIM_E_IO, "%s: %s, not a regular file", path,
                           S_ISDIR(st.st_mode) ? "a directory" : "a device, pipe or socket");
    else if (st.st_size == 0)
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s: the file is empty", path);
    if (code == MOESIM_OK) {
        out->bytes = (uint64_t)st.st_size;
        code = check_head(path, old_format, fd, out, err);
    }
    (void)close(fd);
    return code;
}

moesim_code moesim_h5_open(const char *path, bool old_format, moesim_h5_file *out, moesim_error *err)
{
    moesim_code code = moesim_h5_precheck(path, old_format, out, err);
    if (code == MOESIM_OK)
        code = moesim_h5_enter(err);
    if (code != MOESIM_OK)
        return code;
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    /* Traces appear by rename, complete, so a lock protects nothing and fails on some network file systems. */
    if (access < 0 || H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0 || H5Pset_file_locking(access, false, true) < 0)
        code = moesim_fail(err, MOESIM_E_INTERNAL, "%s: HDF5 refuses its access properties", path);
    else if ((out->id = H5Fopen(path, H5F_ACC_RDONLY, access)) < 0)
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s: HDF5 cannot open it: the file is damaged or was cut short", path);
    if (access >= 0)
        (void)H5Pclose(access);
    moesim_h5_leave();
    return code;
}

void moesim_h5_close(moesim_h5_file *file)
{
    if (file->id < 0 || moesim_h5_enter(NULL) != MOESIM_OK)
        return;
    (void)H5Fclose(file->id);
    file->id = -1;
    moesim_h5_leave();
}
