/* SPDX-License-Identifier: Apache-2.0 */
/* log_dir.h - the files of a run: what workers wrote, and their last words.
 *
 * torchrun's tree:
 *     <parent>/<run id>_XXXXXXXX/attempt_<start>/<local rank>/{stdout.log,stderr.log,error.json}
 *     <parent>/<run id>_XXXXXXXX/attempt_<start>/filtered_{stdout,stderr}.log
 * where the parent is --log-dir.  Without one it is in $TMPDIR, and it stays if output
 * was to go to files.  Else it is there for TORCHELASTIC_ERROR_FILE alone, in memory
 * if possible, and is gone when the job is. */
#ifndef LAUNCHER_STDIO_LOG_DIR_H
#define LAUNCHER_STDIO_LOG_DIR_H

#include <limits.h>
#include <stddef.h>

#include "config/options.h"

struct run_folder {
    char path[PATH_MAX]; /* absolute; "": there is none */
    int kept;            /* at the end */
    int unnamed;         /* kept, and the user can't know where unless we say it */
    int workers;
    int attempt; /* the present start of the workers, from 0; -1: before the first */
};

/* 0, or ctrun's exit code and the error is logged. */
int run_folder_create(struct run_folder *folder, const struct options *options, const char *run_id,
                      int workers);

/* The next start, whatever its reason: older files are left alone.  The same. */
int run_folder_next(struct run_folder *folder);

/* Of a file of this start: a local rank's, or the node's (-1).  "": there is no folder. */
void run_folder_file(const struct run_folder *folder, int local_rank, const char *name, char *path,
                     size_t size);

/* error.json of any start. */
void run_folder_error_file(const struct run_folder *folder, int attempt, int local_rank, char *path,
                           size_t size);

/* Unless it is kept.  What workers put beside their error.json stays.  Async-signal-safe. */
void run_folder_remove(const struct run_folder *folder);

#endif
