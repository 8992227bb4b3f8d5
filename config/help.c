/* SPDX-License-Identifier: Apache-2.0 */
/* help.c - prints the option table for --help, with headings, names, values and defaults. */
#include "config/help.h"

#include <string.h>

#include "config/options.h"

static const struct option_row *ctrun_option(int i)
{
    return i < OPTIONS ? option_row(i) : NULL;
}

const struct program_words ctrun_words = { "ctrun", ctrun_option, NULL };

void option_help(FILE *out, const struct option_row *row, int width)
{
    char left[100];
    int used = snprintf(left, sizeof left, "  ");

    if (row->letter)
        used += snprintf(left + used, sizeof left - (size_t)used, "-%c, ", row->letter);
    used += snprintf(left + used, sizeof left - (size_t)used, "--%s", row->name);
    if (row->alias)
        used += snprintf(left + used, sizeof left - (size_t)used, ", --%s", row->alias);
    if (row->value)
        snprintf(left + used, sizeof left - (size_t)used, row->bare ? "[=%s]" : "=%s", row->value);
    if ((int)strlen(left) > width)
        fprintf(out, "%s\n%*s%s\n", left, width + 1, "", row->help);
    else
        fprintf(out, "%-*s %s\n", width, left, row->help);
}

/* Prints the option's variable and its default.  Quotes mark a default that the user may replace
 * with any word. */
static void print_sources(FILE *out, const struct option_row *row)
{
    const int has_default = row->value && row->fallback && *row->fallback;
    const char *quote = "", *variable = row->variables[0];

    if (has_default && (!strcmp(row->value, "ID") || !strcmp(row->value, "NAME")))
        quote = "\"";
    if (!has_default && !variable)
        return;
    fprintf(out, "%39s%s%s%s", "", variable ? "$" : "", variable ? variable : "",
            variable && has_default ? "; " : "");
    if (has_default)
        fprintf(out, "default: %s%s%s", quote, row->fallback, quote);
    fputc('\n', out);
}

void options_help(FILE *out)
{
    fputs("usage: ctrun [options] program [arguments]\n\n"
          "  ctrun --nproc-per-node=4 ./hello                  4 workers on this host\n"
          "  ctrun --nproc-per-node=gpu train.py --epochs 3    one for each GPU\n"
          "  ctrun --hosts=a:4,b:4 ./hello                     4 on each of two hosts, by ssh\n"
          "  ctrun --nproc-per-node=4 --max-restarts=3 ./job   all start again after a failure\n"
          "  ctrun --nproc-per-node=4 --exec-on=3:'gdb --args' ./hello\n\n"
          "Starts the workers of a job, watches them, and leaves none behind.  A program is\n"
          "anything that can be executed.  $PYTHON_EXEC, else python, else python3, runs\n"
          "*.py, *.pyc, *.pyz and zip files, -m modules, and files that can't be executed\n"
          "but begin with #!...python.\n\n",
          out);
    for (enum option i = 0; i < OPTIONS; i++) {
        const struct option_row *row = option_row(i);

        if (row->heading)
            fprintf(out, "%s%s:\n", i ? "\n" : "", row->heading);
        option_help(out, row, 38);
        print_sources(out, row);
    }
    fputs(
        "\nUnderscores may stand for dashes.  A job.ini sets options under [ctrun] and variables\n"
        "of the workers under [env] and [collectives].\n"
        "Command line > environment > job.ini > default.  --explain shows them all.\n"
        "Exit code: that of the first worker that failed (128 + signal); 1: the machine or\n"
        "the network refuses; 2: wrong usage; 126, 127: as a shell (docs/exit-codes.md).\n"
        "Manual: ctrun(1), ctrun.ini(5), ctrun-environment(7), ctctl(1), ct(3).\n",
        out);
}
