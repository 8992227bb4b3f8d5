/* SPDX-License-Identifier: Apache-2.0 */
/* job_file.h - reads job.ini into a list of settings, each with its line. */
#ifndef CONFIG_JOB_FILE_H
#define CONFIG_JOB_FILE_H

#include <stddef.h>

struct jobfile_entry {
    char *section, *key, *value;
    int line;
};

struct jobfile {
    char *path; /* NULL if no file was read */
    struct jobfile_entry *entries;
    int count;
};

/* Reads the file at `path`.  Returns 0, or -1 with an error message in `error`.  The message starts
 * with the file and, if known, the line.  The names of sections and keys are not checked. */
int jobfile_read(struct jobfile *file, const char *path, char *error, size_t size);
void jobfile_free(struct jobfile *file);

#endif
