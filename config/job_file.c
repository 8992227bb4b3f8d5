/* SPDX-License-Identifier: Apache-2.0 */
/* job_file.c - reads job.ini with inih.
 *
 * Debian's inih passes no line numbers to its handler, and silently splits a long line in two.  So
 * inih reads through next_line(), which counts the lines and refuses a line that is too long. */
#include "config/job_file.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    FILE *stream;
    struct jobfile *file;
    int line, too_long; /* too_long is the number of the first line that is too long; 0 if none */
    int no_memory;
};

/* Reads a line for inih, as fgets() would.  Returns NULL at the end of the file, for the first line
 * that is too long, and after that line. */
static char *next_line(char *text, int size, void *stream)
{
    struct reading *reading = stream;
    char *got = fgets(text, size, reading->stream);

    if (!got)
        return NULL;
    reading->line++;
    if (!strchr(text, '\n') && !feof(reading->stream) && !reading->too_long)
        reading->too_long = reading->line;
    return reading->too_long ? NULL : got;
}

static int add_entry(void *user, const char *section, const char *key, const char *value)
{
    struct reading *reading = user;
    struct jobfile *file = reading->file;
    struct jobfile_entry *grown = realloc(file->entries, ((size_t)file->count + 1) * sizeof *grown);
    struct jobfile_entry entry = { strdup(section), strdup(key), strdup(value), reading->line };

    if (grown)
        file->entries = grown;
    if (!grown || !entry.section || !entry.key || !entry.value) {
        free(entry.section);
        free(entry.key);
        free(entry.value);
        reading->no_memory = 1;
        return 0;
    }
    file->entries[file->count++] = entry;
    return 1;
}

int jobfile_read(struct jobfile *file, const char *path, char *error, size_t size)
{
    struct reading reading = { .file = file };
    int bad_line, read_error;

    if (!(reading.stream = fopen(path, "re"))) {
        snprintf(error, size, "%s: cannot be read: %s", path, strerror(errno));
        return -1;
    }
    file->path = strdup(path);
    errno = 0;
    bad_line = ini_parse_stream(next_line, &reading, add_entry, &reading);
    read_error = ferror(reading.stream) ? errno : 0; /* a folder can be opened, but not read */
    fclose(reading.stream);

    if (read_error)
        snprintf(error, size, "%s: cannot be read: %s", path, strerror(read_error));
    else if (reading.no_memory || !file->path)
        snprintf(error, size, "%s: out of memory", path);
    else if (reading.too_long)
        snprintf(error, size, "%s:%d: the line is longer than 198 characters", path,
                 reading.too_long);
    else if (bad_line)
        snprintf(error, size, "%s:%d: the line is neither [section] nor key = value", path,
                 bad_line);
    else
        return 0;
    jobfile_free(file);
    return -1;
}

void jobfile_free(struct jobfile *file)
{
    for (int i = 0; i < file->count; i++) {
        free(file->entries[i].section);
        free(file->entries[i].key);
        free(file->entries[i].value);
    }
    free(file->entries);
    free(file->path);
    *file = (struct jobfile){ 0 };
}
