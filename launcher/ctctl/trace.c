/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - implements ctctl trace merge, which merges the traces of several nodes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/ctctl/ctctl.h"
#include "launcher/trace/trace_merge.h"

static void trace_warn(const struct trace_merge *merge)
{
    int count = 0;

    for (int i = 0; i < merge->count; i++) {
        if (!trace_merge_shifts(merge, i))
            continue;
        if (count++ == 0)
            fprintf(stderr,
                    "ctctl: these files do not share the clock of %s; wall clocks place them:",
                    merge->paths[0]);
        fprintf(stderr, " %s", merge->paths[i]);
    }
    if (count > 0)
        fputs("\n", stderr);
}

/* Returns 1 if `output` is also an input file.  Writing such a file would destroy the input. */
static int is_input(const struct trace_merge *merge, const char *output)
{
    struct stat out, in;

    if (stat(output, &out) < 0)
        return 0;
    for (int i = 0; i < merge->count; i++)
        if (stat(merge->paths[i], &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return 1;
    return 0;
}

static int trace_fail(const char *what, const char *why)
{
    fprintf(stderr, "ctctl: %s%s%s\n", what, *what ? ": " : "", why);
    return CANNOT_MERGE;
}

static int trace_write_file(struct trace_merge *merge, const char *output)
{
    int code = 0;
    FILE *out;

    if (is_input(merge, output))
        return trace_fail(output, "it is one of the files to merge");
    if (!(out = fopen(output, "we")))
        return trace_fail(output, strerror(errno));
    if (trace_merge_write(merge, out) != CT_OK)
        code = trace_fail("", ct_last_error());
    else if (ferror(out) || fflush(out) != 0)
        code = trace_fail(output, strerror(errno));
    if (fclose(out) != 0 && code == 0)
        code = trace_fail(output, strerror(errno));
    return code;
}

int command_trace_merge(struct ctctl_options *options, char **words, int count)
{
    struct trace_merge merge;
    ct_status status = trace_merge_read(&merge, words, count);
    int code = 0;

    if (status == CT_OK) {
        trace_warn(&merge);
        if (options->output)
            code = trace_write_file(&merge, options->output);
        else
            status = trace_merge_write(&merge, stdout);
    }
    if (status != CT_OK)
        code = trace_fail("", ct_last_error());
    trace_merge_free(&merge);
    return code;
}
