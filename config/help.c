/* SPDX-License-Identifier: Apache-2.0 */
/* help.c - the option table as --help prints it: headings, names, values, defaults. */
#include "config/help.h"

#include <string.h>

#include "config/options.h"

/* Quotes mark a default that the user could replace by any word. */
static void print_default(FILE *out, const struct option_row *row)
{
    const char *quote = !strcmp(row->value, "ID") || !strcmp(row->value, "NAME") ? "\"" : "";

    fprintf(out, "%39sdefault: %s%s%s\n", "", quote, row->fallback, quote);
}

void options_help(FILE *out)
{
    fputs("usage: ctrun [options] program [arguments]\n"
          "       ctrun --nproc-per-node=4 ./hello\n\n"
          "Starts the workers of a job, watches them, and leaves none behind.  A program is\n"
          "anything that can be executed.  $PYTHON_EXEC, else python, else python3, runs\n"
          "*.py, *.pyc, *.pyz and zip files, -m modules, and files that can't be executed\n"
          "but begin with #!...python.\n\n",
          out);
    for (enum option i = 0; i < OPTIONS; i++) {
        const struct option_row *row = option_row(i);
        char left[100];
        int used = snprintf(left, sizeof left, "  ");

        if (row->letter)
            used += snprintf(left + used, sizeof left - (size_t)used, "-%c, ", row->letter);
        used += snprintf(left + used, sizeof left - (size_t)used, "--%s", row->name);
        if (row->alias)
            used += snprintf(left + used, sizeof left - (size_t)used, ", --%s", row->alias);
        if (row->value)
            snprintf(left + used, sizeof left - (size_t)used, row->bare ? "[=%s]" : "=%s",
                     row->value);
        if (row->heading)
            fprintf(out, "%s%s:\n", i ? "\n" : "", row->heading);
        if (strlen(left) > 38)
            fprintf(out, "%s\n%39s%s\n", left, "", row->help);
        else
            fprintf(out, "%-38s %s\n", left, row->help);
        if (row->value && row->fallback && *row->fallback)
            print_default(out, row);
    }
    fputs("\nUnderscores may stand for dashes.  Most options are also variables: --nnodes is\n"
          "$PET_NNODES; those that torchrun does not have begin with CT_.  A job.ini sets\n"
          "options under [ctrun] and variables of the workers under [env] and [collectives].\n"
          "Command line > environment > job.ini > default.  --explain shows them all.\n"
          "Exit code: that of the first worker that failed (128 + signal); 1: the machine or\n"
          "the network refuses; 2: wrong usage; 126, 127: as a shell (docs/exit-codes.md).\n",
          out);
}
