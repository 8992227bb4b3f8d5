/* SPDX-License-Identifier: Apache-2.0 */
/* log_dir.h - the files of a run, which are the output of workers and their error files.
 *
 * The tree is that of torchrun:
 *     <parent>/<run id>_XXXXXXXX/attempt_<start>/<local rank>/{stdout.log,stderr.log,error.json}
 *     <parent>/<run id>_XXXXXXXX/attempt_<start>/filtered_{stdout,stderr}.log
 * The parent is --log-dir.  Without --log-dir, the parent is $TMPDIR or /tmp if output goes to
 * files, and the folder is kept.  If no output goes to files, the folder is only for
 * TORCHELASTIC_ERROR_FILE.  ctrun then makes the folder in memory if possible, and removes it at
 * the end of the job. */
#ifndef LAUNCHER_STDIO_LOG_DIR_H
#define LAUNCHER_STDIO_LOG_DIR_H

#include <limits.h>
#include <stddef.h>

#include "config/options.h"

struct run_folder {
    char path[PATH_MAX]; /* absolute path; "" if there is no folder */
    int kept;            /* 1 if the folder is not removed at the end of the job */
    int unnamed;         /* 1 if the folder is kept, but the user did not choose its path */
    int workers;
    int attempt; /* number of the current start of the workers, from 0; -1 before the first */
};

/* Makes the folder.  Returns 0, or ctrun's exit code after an error is logged. */
int run_folder_create(struct run_folder *folder, const struct options *options, const char *run_id,
                      int workers);

/* Makes the folders for the next start of the workers, and keeps those of earlier starts.  Returns
 * 0, or ctrun's exit code after an error is logged. */
int run_folder_next(struct run_folder *folder);

/* Writes the path of a file of the current start.  The file belongs to the worker local_rank, or to
 * the node if local_rank is -1.  Writes "" if there is no folder. */
void run_folder_file(const struct run_folder *folder, int local_rank, const char *name, char *path,
                     size_t size);

/* Writes the path of a worker's error.json of any start.  Writes "" if there is no folder. */
void run_folder_error_file(const struct run_folder *folder, int attempt, int local_rank, char *path,
                           size_t size);

/* Removes the folder, unless it is kept.  Leaves other files that workers wrote next to their
 * error.json.  Async-signal-safe. */
void run_folder_remove(const struct run_folder *folder);

#endif
