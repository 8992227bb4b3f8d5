/* SPDX-License-Identifier: Apache-2.0 */
/* log_dir.h - the files of a run: the output of workers, and their error files.
 *
 * torchrun's tree:
 *     <parent>/<run id>_XXXXXXXX/attempt_<start>/<local rank>/{stdout.log,stderr.log,error.json}
 *     <parent>/<run id>_XXXXXXXX/attempt_<start>/filtered_{stdout,stderr}.log
 * where the parent is --log-dir.  Without --log-dir, the folder is in $TMPDIR, and is kept if
 * output goes to files.  If none does, it is only for TORCHELASTIC_ERROR_FILE: it is in memory if
 * possible, and is removed at the end of the job. */
#ifndef LAUNCHER_STDIO_LOG_DIR_H
#define LAUNCHER_STDIO_LOG_DIR_H

#include <limits.h>
#include <stddef.h>

#include "config/options.h"

struct run_folder {
    char path[PATH_MAX]; /* absolute; "": there is no folder */
    int kept;            /* 1: it is kept at the end */
    int unnamed;         /* kept, and the user knows the place only if ctrun prints it */
    int workers;
    int attempt; /* the current start of the workers, from 0; -1: not started */
};

/* Makes the folder.  0; or ctrun's exit code, after an error in the log. */
int run_folder_create(struct run_folder *folder, const struct options *options, const char *run_id,
                      int workers);

/* Makes the folders of the next start, for whatever reason, and keeps older files.  Returns the
 * same. */
int run_folder_next(struct run_folder *folder);

/* Gives the path of a file of this start: of a local rank, or of the node (-1).  "": there is no
 * folder. */
void run_folder_file(const struct run_folder *folder, int local_rank, const char *name, char *path,
                     size_t size);

/* Gives the path of error.json of any start. */
void run_folder_error_file(const struct run_folder *folder, int attempt, int local_rank, char *path,
                           size_t size);

/* Removes the folder, unless it is kept.  Other files that workers put next to their error.json
 * stay.  Async-signal-safe. */
void run_folder_remove(const struct run_folder *folder);

#endif
