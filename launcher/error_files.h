/* SPDX-License-Identifier: Apache-2.0 */
/* error_files.h - where workers may leave their last words: TORCHELASTIC_ERROR_FILE.
 *
 * torchrun makes such a tree in /tmp and leaves it there.  Ours has the same
 * form below its top, and is gone when the job is. */
#ifndef LAUNCHER_ERROR_FILES_H
#define LAUNCHER_ERROR_FILES_H

#include <stddef.h>

struct error_files {
    char top[200]; /* "": there is none */
    int workers;
    int attempts; /* there may be */
};

/* A private folder.  Where there can be none, the job runs without. */
void error_files_create(struct error_files *files, int workers, int restarts);
void error_files_attempt(const struct error_files *files, int attempt);
/* "": none */
void error_files_path(const struct error_files *files, int attempt, int worker, char *path,
                      size_t size);
/* What workers put beside their error.json stays.  Async-signal-safe. */
void error_files_remove(const struct error_files *files);

#endif
