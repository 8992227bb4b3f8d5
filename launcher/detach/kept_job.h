/* SPDX-License-Identifier: Apache-2.0 */
/* kept_job.h - the folder of a job that ctrun --detach started: its output and its exit code.
 *
 *     $XDG_STATE_HOME/ctrun/<host>/<pid of ctrun>/   or ~/.local/state/ctrun/...
 *         lock     locked while the keeper runs (detach.c); made when the job begins
 *         run_id   a link whose text is the run id, if the user gave one
 *         output   the last bytes of the output
 *         exit     a link whose text is the exit code; made when all output is in `output`
 *
 * Byte o of the output lies at o % bound in a ring, which follows a head in the file.  The head has
 * the number of bytes that were written.  A reader that is behind by more than the bound loses
 * bytes; it never makes the writer wait. */
#ifndef LAUNCHER_DETACH_KEPT_JOB_H
#define LAUNCHER_DETACH_KEPT_JOB_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct kept_job {
    char path[PATH_MAX]; /* absolute path of the folder */
    pid_t pid;           /* of ctrun; the folder's name */
};

/* Writes the path of the folder of all kept jobs of this host.  Returns 0, or -1 with errno set. */
int kept_jobs_folder(char *path, size_t size);

/* Finds a job by the pid of its ctrun, else by its run id, else (`name` is NULL) any job.  Of
 * several jobs it finds the newest one that runs, or else the newest.  Returns 0, or -1 if there is
 * no such job. */
int kept_job_find(struct kept_job *job, const char *name);

/* Removes all jobs of the folder that have ended, but for the newest `most`. */
void kept_jobs_prune(const char *path, int most);
void kept_job_remove(const char *path);

/* Returns 1 if the keeper still runs.  Waits for its end if `waits` is 1, and then returns 0. */
int kept_job_runs(const struct kept_job *job, int waits);
/* Returns the exit code of a job that has ended, or -1 if it is not known. */
int kept_job_code(const struct kept_job *job);

/* ---- The output ------------------------------------------------------------------ */

struct kept_head;

struct kept_output {
    int fd; /* of the file; -1 if it is not open */
    uint64_t bound;
    struct kept_head *head; /* mapped, shared with the writer and all readers */
    uint64_t at;            /* a reader's next byte */
    uint64_t lost;          /* bytes that this reader came too late for */
};

/* Makes the file in the folder `path`.  Returns 0, or -1 with errno set. */
int kept_output_create(struct kept_output *output, const char *path, uint64_t bound);
/* Adds bytes.  Returns 0, or -1 with errno set if they could not be written: a full disk. */
int kept_output_add(struct kept_output *output, const char *bytes, size_t size);

/* Opens the file for reading, from the last `lines` lines on, or from the first kept byte on if
 * `lines` is negative.  Returns 0, or -1 with errno set. */
int kept_output_open(struct kept_output *output, const struct kept_job *job, int lines);
/* Reads bytes that follow each other.  Returns their number, or 0 if the writer has added none.
 * After a loss the first byte begins a line, unless lines are longer than 4 KiB. */
size_t kept_output_read(struct kept_output *output, char *bytes, size_t size);

void kept_output_close(struct kept_output *output);

#endif
