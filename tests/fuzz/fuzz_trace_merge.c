/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_trace_merge.c - files that `ctctl trace merge` is given.  They are refused with a sentence,
 * or what comes of them is JSON and times in it do not overflow.
 *
 * The input is up to three texts with a 0 between them.  The files are memory with a path. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/trace/trace_merge.h"
#include "tests/fuzz/input.h"
#include "tests/json_check.h"

enum { FILES = 3 };

static void merge_all(char *const *paths, int count)
{
    struct trace_merge merge;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    holds(out != NULL);
    if (trace_merge_read(&merge, paths, count) == CT_OK) {
        holds(trace_merge_write(&merge, out) == CT_OK);
        holds(fflush(out) == 0 && is_json(text, size));
    } else {
        holds(*ct_last_error());
    }
    trace_merge_free(&merge);
    fclose(out);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char names[FILES][64], *paths[FILES];
    int files[FILES], count = 0;

    do {
        const uint8_t *const end = size > 0 && count + 1 < FILES ? memchr(data, 0, size) : NULL;
        const size_t bytes = end ? (size_t)(end - data) : size;

        holds((files[count] = memfd_create("trace", MFD_CLOEXEC)) >= 0);
        holds(write(files[count], data, bytes) == (ssize_t)bytes);
        snprintf(names[count], sizeof names[count], "/proc/self/fd/%d", files[count]);
        paths[count] = names[count];
        count++;
        data += bytes + (end != NULL);
        size -= bytes + (end != NULL);
    } while (size > 0 && count < FILES);
    merge_all(paths, count);
    for (int i = 0; i < count; i++)
        close(files[i]);
    return 0;
}
