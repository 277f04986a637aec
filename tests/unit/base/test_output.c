/* SPDX-License-Identifier: Apache-2.0
 *
 * Safe output files: all or nothing, whatever fails.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/output.h"
#include "tests/unit/base/runner.h"

static char folder[64];

static void enter(void)
{
    snprintf(folder, sizeof folder, "%s", "output-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

/* Number of files in the folder, dot files too. */
static int files(void)
{
    int n = 0;
    DIR *dir = opendir(".");
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *d = readdir(dir); d != NULL; d = readdir(dir))
        n += strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
    closedir(dir);
    return n;
}

static void leave(void)
{
    DIR *dir = opendir(".");
    for (struct dirent *d = readdir(dir); d != NULL; d = readdir(dir))
        if (unlink(d->d_name) != 0)
            rmdir(d->d_name);
    closedir(dir);
    ck_assert_int_eq(chdir(".."), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

static void check_content(const char *path, const char *expected)
{
    char text[100] = "";
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    const size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    ck_assert_str_eq(text, expected);
}

START_TEST(commit_replaces_and_keeps_the_usual_mode)
{
    moesim_output *out = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    struct stat st;
    enter();
    umask(027);
    write_file("x", "old");
    ck_assert_int_eq(moesim_output_open("x", &out, &err), MOESIM_OK);
    fputs("new", moesim_output_stream(out));
    fflush(moesim_output_stream(out));
    check_content("x", "old");
    check_content(moesim_output_temporary(out), "new");
    ck_assert_int_eq(moesim_output_commit(&out, &err), MOESIM_OK);
    ck_assert_ptr_null(out);
    check_content("x", "new");
    ck_assert_int_eq(stat("x", &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0640);
    ck_assert_int_eq(files(), 1);
    leave();
}
END_TEST

START_TEST(discard_leaves_the_old_file)
{
    moesim_output *out = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    enter();
    write_file("x", "old");
    ck_assert_int_eq(moesim_output_open("x", &out, &err), MOESIM_OK);
    fputs("new", moesim_output_stream(out));
    moesim_output_discard(&out);
    ck_assert_ptr_null(out);
    moesim_output_discard(&out);
    check_content("x", "old");
    ck_assert_int_eq(files(), 1);
    leave();
}
END_TEST

START_TEST(a_link_stays_a_link)
{
    moesim_output *out = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    struct stat st;
    enter();
    write_file("x", "old");
    ck_assert_int_eq(symlink("x", "link"), 0);
    ck_assert_int_eq(moesim_output_open("link", &out, &err), MOESIM_OK);
    fputs("new", moesim_output_stream(out));
    ck_assert_int_eq(moesim_output_commit(&out, &err), MOESIM_OK);
    check_content("x", "new");
    ck_assert_int_eq(lstat("link", &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    leave();
}
END_TEST

START_TEST(refused_targets)
{
    static const char *const bad[] = { "", "folder", "socket", "dangling", "folder/", "none/x" };
    moesim_output *out = NULL;
    enter();
    ck_assert_int_eq(mkdir("folder", 0777), 0);
    ck_assert_int_eq(mknod("socket", S_IFSOCK | 0666, 0), 0);
    ck_assert_int_eq(symlink("nowhere", "dangling"), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        ck_assert_msg(moesim_output_open(bad[i], &out, &err) != MOESIM_OK, "opened '%s'", bad[i]);
        ck_assert_ptr_null(out);
        ck_assert_str_ne(err.text, "");
    }
    char name[300];
    moesim_error err = MOESIM_ERROR_INIT;
    memset(name, 'n', 255);
    name[255] = '\0';
    ck_assert_int_eq(moesim_output_open(name, &out, &err), MOESIM_OK);   /* the longest name there may be */
    ck_assert_int_eq(moesim_output_commit(&out, &err), MOESIM_OK);
    memset(name, 'n', 256);
    name[256] = '\0';
    ck_assert_int_eq(moesim_output_open(name, &out, &err), MOESIM_E_USAGE);
    ck_assert_int_eq(files(), 4);
    leave();
}
END_TEST

/* A file-size limit makes write(2) fail half way, as a full disk does. */
START_TEST(failed_write_keeps_nothing)
{
    moesim_output *out = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    struct rlimit old, small;
    enter();
    write_file("x", "old");
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 4096;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    ck_assert_int_eq(moesim_output_open("x", &out, &err), MOESIM_OK);
    for (int i = 0; i < 20000; i++)
        fputc('a', moesim_output_stream(out));
    const moesim_code code = moesim_output_commit(&out, &err);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    ck_assert_int_eq(code, MOESIM_E_IO);
    ck_assert_str_eq(err.text, "cannot write 'x': File too large; nothing was kept");
    check_content("x", "old");
    ck_assert_int_eq(files(), 1);
    leave();
}
END_TEST

/* The reason is known also where a write in the middle failed, of which stdio keeps no errno. */
START_TEST(full_standard_output_is_an_error)
{
    static const char line[] = "some characters, of which a thousand lines make more than a buffer full";
    if (access("/dev/full", W_OK) != 0)
        return;
    for (int lines = 1; lines <= 1000; lines += 999) {
        moesim_output *out = NULL;
        moesim_error err = MOESIM_ERROR_INIT;
        ck_assert_ptr_nonnull(freopen("/dev/full", "w", stdout));
        ck_assert_int_eq(moesim_output_open("-", &out, &err), MOESIM_OK);
        ck_assert_ptr_eq(moesim_output_stream(out), stdout);
        for (int i = 0; i < lines; i++)
            fputs(line, moesim_output_stream(out));
        errno = 0;
        ck_assert_int_eq(moesim_output_commit(&out, &err), MOESIM_E_IO);
        ck_assert_str_eq(err.text, "cannot write to standard output: No space left on device");
    }
}
END_TEST

/* Several names of descriptor `fd`; what is written there goes on where the descriptor stands. */
START_TEST(streams_are_written_through)
{
    char names[4][32];
    moesim_output *out = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    enter();
    write_file("x", "");
    const int fd = open("x", O_WRONLY);
    ck_assert_int_ge(fd, 3);
    ck_assert_int_eq(write(fd, "0", 1), 1);
    snprintf(names[0], sizeof names[0], "/dev/fd/%d", fd);
    snprintf(names[1], sizeof names[1], "/proc/self/fd/%d", fd);
    snprintf(names[2], sizeof names[2], "/proc/%ld/fd/%d", (long)getpid(), fd);
    snprintf(names[3], sizeof names[3], "link");
    ck_assert_int_eq(symlink(names[0], "link"), 0);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(moesim_output_open_file(names[i], &out, &err), MOESIM_E_USAGE);
        ck_assert_ptr_null(out);
        ck_assert_msg(moesim_output_open(names[i], &out, &err) == MOESIM_OK, "%s", err.text);
        fprintf(moesim_output_stream(out), "%zu", i + 1);
        ck_assert_int_eq(moesim_output_commit(&out, &err), MOESIM_OK);
    }
    ck_assert_int_eq(write(fd, "5", 1), 1);
    close(fd);
    check_content("x", "012345");
    ck_assert_int_eq(files(), 2);
    leave();
}
END_TEST

START_TEST(devices_and_pipes_are_written_through)
{
    char text[8] = "";
    moesim_output *out = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    enter();
    ck_assert_int_eq(mkfifo("fifo", 0666), 0);
    ck_assert_int_eq(moesim_output_open_file("fifo", &out, &err), MOESIM_E_USAGE);
    ck_assert_int_eq(moesim_output_open_file("/dev/null", &out, &err), MOESIM_E_USAGE);
    const int reader = open("fifo", O_RDONLY | O_NONBLOCK);
    ck_assert_int_ge(reader, 0);
    ck_assert_int_eq(moesim_output_open("fifo", &out, &err), MOESIM_OK);
    fputs("text", moesim_output_stream(out));
    ck_assert_int_eq(moesim_output_commit(&out, &err), MOESIM_OK);
    ck_assert_int_eq(read(reader, text, sizeof text - 1), 4);
    ck_assert_str_eq(text, "text");
    close(reader);
    ck_assert_int_eq(moesim_output_open("/dev/full", &out, &err), MOESIM_OK);
    fputs("text", moesim_output_stream(out));
    ck_assert_int_eq(moesim_output_commit(&out, &err), MOESIM_E_IO);
    ck_assert_str_eq(err.text, "cannot write to /dev/full: No space left on device");
    ck_assert_int_eq(files(), 1);
    leave();
}
END_TEST

/* Renaming over the file would take what standard output wrote to it. */
START_TEST(the_file_of_standard_output_is_refused_by_name)
{
    moesim_output *out = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    enter();
    ck_assert_ptr_nonnull(freopen("x", "w", stdout));
    ck_assert_int_eq(link("x", "y"), 0);
    ck_assert_int_eq(moesim_output_open("x", &out, &err), MOESIM_E_USAGE);
    ck_assert_int_eq(moesim_output_open("y", &out, &err), MOESIM_E_USAGE);
    ck_assert_int_eq(moesim_output_open("/dev/stdout", &out, &err), MOESIM_OK);
    ck_assert_ptr_eq(moesim_output_stream(out), stdout);
    ck_assert_int_eq(moesim_output_commit(&out, &err), MOESIM_OK);
    ck_assert_int_eq(files(), 2);
    leave();
}
END_TEST

START_TEST(trying_leaves_nothing)
{
    static const char *const good[] = { "new", "old", "-", "/dev/stdout", "/dev/null", "fifo" };
    static const char *const bad[] = { "none/x", ".", "folder", "" };
    moesim_error err = MOESIM_ERROR_INIT;
    enter();
    write_file("old", "old");
    ck_assert_int_eq(mkfifo("fifo", 0666), 0);
    ck_assert_int_eq(mkdir("folder", 0777), 0);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        ck_assert_msg(moesim_output_try(good[i], &err) == MOESIM_OK, "%s: %s", good[i], err.text);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(moesim_output_try(bad[i], &err) != MOESIM_OK, "'%s' passed", bad[i]);
    check_content("old", "old");
    ck_assert_int_eq(files(), 3);
    leave();
}
END_TEST

START_TEST(discard_all_removes_every_temporary)
{
    moesim_output *a = NULL, *b = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    enter();
    ck_assert_int_eq(moesim_output_open("a", &a, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_output_open("b", &b, &err), MOESIM_OK);
    ck_assert_int_eq(files(), 2);
    moesim_output_discard_all();
    ck_assert_int_eq(files(), 0);
    moesim_output_discard(&a);
    moesim_output_discard(&b);
    leave();
}
END_TEST

/* The number of a process that has ended and been waited for. */
static long ended_process(void)
{
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        _Exit(0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    return (long)pid;
}

static const char *temporary(const char *name, long pid, const char *rest)
{
    static char text[4][100];
    static unsigned next;
    char *out = text[next++ % 4];
    (void)snprintf(out, sizeof text[0], ".%s.%ld%s", name, pid, rest);
    return out;
}

START_TEST(cleaning_takes_what_ended_processes_left)
{
    enter();
    const long gone = ended_process();
    write_file(temporary("x", gone, "-0.tmp"), "left");
    write_file(temporary("x.12", gone, "-3.tmp"), "left");
    moesim_output_clean("x", false);
    ck_assert_int_eq(files(), 1);
    moesim_output_clean("./x", true);
    ck_assert_int_eq(files(), 0);
    leave();
}
END_TEST

START_TEST(cleaning_keeps_everything_else)
{
    moesim_output *out = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    enter();
    const long gone = ended_process();
    ck_assert_int_eq(moesim_output_open("x", &out, &err), MOESIM_OK);
    write_file("x", "itself");
    write_file(temporary("x", (long)getppid(), "-0.tmp"), "of a living process");
    write_file(temporary("y", gone, "-0.tmp"), "of another file");
    write_file(temporary("x.y", gone, "-0.tmp"), "of another file");
    write_file(temporary("x", gone, ".tmp"), "of another name");
    write_file(temporary("x", gone, "-.tmp"), "of another name");
    write_file(temporary("x", gone, "-0.tmp.h5"), "of another name");
    write_file(".x.-0.tmp", "of no process");
    write_file(".x.0-0.tmp", "of no process");
    write_file(".x.4294967297-0.tmp", "of a number that is none of a process");
    ck_assert_int_eq(symlink("x", temporary("x", gone, "-1.tmp")), 0);
    ck_assert_int_eq(mkdir(temporary("x", gone, "-2.tmp"), 0700), 0);
    moesim_output_clean("x", true);
    moesim_output_clean("none/x", true);
    moesim_output_clean("", true);
    ck_assert_int_eq(files(), 13);
    moesim_output_discard(&out);
    leave();
}
END_TEST

START_TEST(too_many_at_once)
{
    moesim_output *out[33];
    moesim_error err = MOESIM_ERROR_INIT;
    char name[8];
    enter();
    for (int i = 0; i < 32; i++) {
        snprintf(name, sizeof name, "f%d", i);
        ck_assert_int_eq(moesim_output_open(name, &out[i], &err), MOESIM_OK);
    }
    ck_assert_int_eq(moesim_output_open("more", &out[32], &err), MOESIM_E_LIMIT);
    moesim_output_discard(&out[5]);
    ck_assert_int_eq(moesim_output_open("more", &out[5], &err), MOESIM_OK);
    for (int i = 0; i < 32; i++)
        moesim_output_discard(&out[i]);
    ck_assert_int_eq(files(), 0);
    leave();
}
END_TEST

RUN_TESTS("output", commit_replaces_and_keeps_the_usual_mode, discard_leaves_the_old_file, a_link_stays_a_link,
          refused_targets, failed_write_keeps_nothing, full_standard_output_is_an_error, streams_are_written_through,
          devices_and_pipes_are_written_through, trying_leaves_nothing,
          the_file_of_standard_output_is_refused_by_name,
          discard_all_removes_every_temporary, cleaning_takes_what_ended_processes_left, cleaning_keeps_everything_else,
          too_many_at_once)
