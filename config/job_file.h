/* SPDX-License-Identifier: Apache-2.0 */
/* job_file.h - job.ini as a list of settings, each with its line. */
#ifndef CONFIG_JOB_FILE_H
#define CONFIG_JOB_FILE_H

#include <stddef.h>

struct jobfile_entry {
    char *section, *key, *value;
    int line;
};

struct jobfile {
    char *path; /* NULL: no file was read */
    struct jobfile_entry *entries;
    int count;
};

/* Reads path.  0: done; -1: error has a sentence that starts with the file and, if it is known, the
 * line.  The names of sections and keys are not checked. */
int jobfile_read(struct jobfile *file, const char *path, char *error, size_t size);
void jobfile_free(struct jobfile *file);

#endif
