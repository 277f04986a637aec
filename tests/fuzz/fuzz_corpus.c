/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens every file of a folder of malformed HDF5 files, each in a child of its own: a refusal or success is fine, a signal or
 * a hang is not. The folder is $MOESIM_KNOWN_ANSWERS/hdf5-malformed; where it is absent the test is skipped (status 77).
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fuzz/drain.h"

enum { SKIP = 77, SECONDS = 20 };

/* 0: refused or read, 1: crashed or hung. */
static int try_file(const char *path)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        moesim_error err = MOESIM_ERROR_INIT;
        alarm(SECONDS);
        const moesim_code code = fuzz_drain(path, &err);
        _exit(code == MOESIM_E_INTERNAL || (code != MOESIM_OK && err.text[0] == '\0') ? 1 : 0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("fork");
        exit(2);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    printf("%s: %s %d\n", path, WIFSIGNALED(status) ? "signal" : "status",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return 1;
}

int main(void)
{
    const char *answers = getenv("MOESIM_KNOWN_ANSWERS");
    char folder[4000];
    int files = 0, bad = 0;
    (void)snprintf(folder, sizeof folder, "%s/hdf5-malformed", answers != NULL ? answers : "");
    DIR *dir = answers != NULL ? opendir(folder) : NULL;
    if (dir == NULL) {
        printf("skipped: MOESIM_KNOWN_ANSWERS does not name a folder with hdf5-malformed/\n");
        return SKIP;
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char path[4300];
        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        files++;
        bad += try_file(path);
    }
    closedir(dir);
    printf("%d malformed files opened, %d crashed or hung\n", files, bad);
    return bad > 0 || files == 0;
}
