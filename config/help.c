/* SPDX-License-Identifier: Apache-2.0 */
/* help.c - prints the option table for --help, with headings, names, values and defaults. */
#include "config/help.h"

#include <string.h>
#include <sys/ioctl.h>

#include "config/options.h"

static const struct option_row *ctrun_option(int i)
{
    return i < OPTIONS ? option_row(i) : NULL;
}

const struct program_words ctrun_words = { "ctrun", ctrun_option, NULL };

/* Returns the number of columns for a line: those of the terminal, at most 120; 80 for a file. */
static int columns(FILE *out)
{
    struct winsize window = { 0 };

    if (ioctl(fileno(out), TIOCGWINSZ, &window) != 0 || window.ws_col == 0)
        return 80;
    return window.ws_col < 120 ? window.ws_col : 120;
}

void print_wrapped(FILE *out, const char *text, int indent)
{
    const int width = columns(out);
    int column = indent;

    while (*text) {
        const int length = (int)strcspn(text, " ");

        if (column > indent && column + 1 + length > width) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        }
        column += fprintf(out, "%s%.*s", column > indent ? " " : "", length, text);
        text += length + (text[length] == ' ');
    }
    fputc('\n', out);
}

int first_sentence(const char *text)
{
    const char *end = strstr(text, ". ");
    const size_t length = strlen(text);

    return (int)(end ? (size_t)(end - text) : length - (length && text[length - 1] == '.'));
}

/* Writes the option's names and its value to `text`: "  -t, --tee=MAP". */
static void write_names(char *text, size_t size, const struct option_row *row)
{
    int used = snprintf(text, size, "  ");

    if (row->letter)
        used += snprintf(text + used, size - (size_t)used, "-%c, ", row->letter);
    used += snprintf(text + used, size - (size_t)used, "--%s", row->name);
    if (row->alias)
        used += snprintf(text + used, size - (size_t)used, ", --%s", row->alias);
    if (row->value)
        snprintf(text + used, size - (size_t)used, row->bare ? "[=%s]" : "=%s", row->value);
}

/* Returns the column in which the help of an option starts. */
static int help_column(FILE *out, int width)
{
    return columns(out) < width + 45 ? 8 : width + 1;
}

void option_help(FILE *out, const struct option_row *row, int width)
{
    const int column = help_column(out, width);
    char left[100];

    write_names(left, sizeof left, row);
    if ((int)strlen(left) >= column)
        fprintf(out, "%s\n%*s", left, column, "");
    else
        fprintf(out, "%-*s", column, left);
    print_wrapped(out, row->help, column);
}

/* Prints the option's variable and its default.  Quotes mark a default that the user may replace
 * with any word. */
static void print_sources(FILE *out, const struct option_row *row, int column)
{
    const int has_default = row->value && row->fallback && *row->fallback;
    const char *quote = "", *variable = row->variables[0];

    if (has_default && (!strcmp(row->value, "ID") || !strcmp(row->value, "NAME")))
        quote = "\"";
    if (!has_default && !variable)
        return;
    fprintf(out, "%*s%s%s%s", column, "", variable ? "$" : "", variable ? variable : "",
            variable && has_default ? "; " : "");
    if (has_default)
        fprintf(out, "default: %s%s%s", quote, row->fallback, quote);
    fputc('\n', out);
}

static void print_all(FILE *out)
{
    fputc('\n', out);
    print_wrapped(out,
                  "ctrun starts the workers of a job, watches them, and leaves none behind. A "
                  "program is anything that can be executed. $PYTHON_EXEC, else python, else "
                  "python3, runs *.py, *.pyc, *.pyz and zip files, -m modules, and files that "
                  "can't be executed but begin with #!...python.",
                  0);
    for (enum option i = 0; i < OPTIONS; i++) {
        const struct option_row *row = option_row(i);

        if (row->heading)
            fprintf(out, "\n%s:\n", row->heading);
        option_help(out, row, 38);
        print_sources(out, row, help_column(out, 38));
    }
    fputc('\n', out);
    print_wrapped(out,
                  "Options may be written with underscores instead of dashes. The command line "
                  "overrides the environment, the environment overrides job.ini, and job.ini "
                  "overrides the default. A job.ini sets options under [ctrun], and variables of "
                  "the workers under [env] and [collectives].",
                  0);
    fputs("\nExit codes (docs/exit-codes.md):\n"
          "  1         the machine or the network did not allow what the job needs\n"
          "  2         wrong usage\n"
          "  126, 127  the program can't be executed; it was not found\n"
          "  other     the exit code of the worker that failed first, or 128 + its signal\n\n"
          "Manual: ctrun(1), ctrun.ini(5), ctrun-environment(7), ctctl(1), ct(3).\n",
          out);
}

static void print_common(FILE *out)
{
    char left[100];

    fputc('\n', out);
    for (enum option i = 0; i < OPTIONS; i++) {
        const struct option_row *row = option_row(i);

        if (!row->is_common)
            continue;
        write_names(left, sizeof left, row);
        fprintf(out, "%-35s%.*s\n", left, first_sentence(row->help), row->help);
    }
    fprintf(out, "\nAll %d options: ctrun --help.  Manual: man ctrun.\n", OPTIONS);
}

void options_help(FILE *out, int common_only)
{
    fputs("usage: ctrun [options] program [arguments]\n\n"
          "  ctrun --nproc-per-node=4 ./hello                  4 workers on this host\n"
          "  ctrun --nproc-per-node=gpu train.py --epochs 3    one worker per GPU\n"
          "  ctrun --hosts=a:4,b:4 ./hello                     4 workers on each of 2 hosts\n"
          "  ctrun --nproc-per-node=4 --max-restarts=3 ./job   restart after a failure\n",
          out);
    if (common_only)
        print_common(out);
    else
        print_all(out);
}
