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

/* Reads path.  0, or -1 and a sentence that starts with the file and, if there is one, the line. It
 * does not check the names of sections and keys. */
int jobfile_read(struct jobfile *file, const char *path, char *error, size_t size);
void jobfile_free(struct jobfile *file);

#endif
