/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_error_json.c - whatever a worker left in its TORCHELASTIC_ERROR_FILE: it is read, and
 * copied to where ctrun was told to.  A copy of a structured one is one again, and says the
 * same.  The file is memory with a path; the copy goes to a folder of its own. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/report/error_file.h"
#include "tests/fuzz/input.h"

static char folder[] = "/tmp/fuzz_error_json.XXXXXX", copy[64];

static void remove_folder(void)
{
    unlink(copy);
    rmdir(folder);
}

static void check(const struct error_json *error)
{
    holds(isfinite(error->timestamp) && error->timestamp >= 0);
    holds((error->state != ERROR_BROKEN && error->state != ERROR_RAW) || error->why[0]);
    holds(error->state != ERROR_READ || error->bytes);
    holds(!error->bytes || error->bytes[error->size] == '\0');
    holds(!error->text || strlen(error->text) < 1 << 21);
}

static void copies(const struct error_json *error)
{
    struct error_json again;

    holds(error_json_copy(error, copy, 7) == 0);
    error_json_read(&again, copy);
    check(&again);
    if (error->structured) {
        holds(again.state == ERROR_READ && again.structured);
        holds(!error->text == !again.text && (!error->text || !strcmp(error->text, again.text)));
    }
    error_json_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int file = -1;
    static char path[64];
    struct error_json error;

    if (file < 0) {
        holds((file = memfd_create("error.json", MFD_CLOEXEC)) >= 0 && mkdtemp(folder));
        atexit(remove_folder);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        snprintf(copy, sizeof copy, "%s/copy", folder);
    }
    holds(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size);
    error_json_read(&error, path);
    holds((error.state == ERROR_ABSENT) == (size == 0));
    check(&error);
    if (error.bytes)
        copies(&error);
    error_json_free(&error);
    return 0;
}
