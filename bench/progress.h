/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - the progress line of a benchmark: which case of how many, for how long, and about
 * how long still.  It stands on a terminal only, ours or ctrun's, and after the first second. */
#ifndef BENCH_PROGRESS_H
#define BENCH_PROGRESS_H

struct progress {
    const char *program;
    int room;            /* characters that it may have; 0: there is no such line */
    int of, done;        /* cases */
    double began, shown; /* seconds */
    int stands;          /* characters of it on the terminal */
};

void progress_begin(struct progress *progress, const char *program, int of);

/* The next case begins; the words say which. */
void progress_case(struct progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Before other lines, and at the end. */
void progress_wipe(struct progress *progress);

#endif
