/* SPDX-License-Identifier: Apache-2.0 */
/* manual.c - the program ct_manual, which writes a page from a template, or the pages of ct(3).
 *
 *   ct_manual page VERSION DATE <ctrun.1.in >ctrun.1
 *   ct_manual api VERSION DATE FOLDER snippets.c ct.h ct_cuda.h
 *
 * In a template, the program replaces @VERSION@ and @DATE@, and replaces a line "@NAME@" with a
 * list (lists.c). */
#include "packaging/manual/manual.h"

#include <stdlib.h>
#include <string.h>

/* Returns 1 if a sentence ends at text[at] and another sentence follows. */
static int is_end(const char *text, size_t length, size_t at)
{
    size_t next = at + 1;

    if (!strchr(".?!", text[at]) || at == 0 || text[at - 1] == '.')
        return 0;
    while (next < length && strchr(")]\"", text[next]))
        next++;
    if (next >= length || text[next] != ' ')
        return 0;
    next += strspn(text + next, " ");
    return next < length && (text[next] < 'a' || text[next] > 'z' || text[next - 2] == ' ');
}

/* Prints text for mdoc, where each sentence begins on a new line.  A line that begins with a dot
 * would be a macro in mdoc, so the dot is escaped. */
void print_text(FILE *out, const char *text, size_t length)
{
    for (size_t i = 0, begins = 1, ends = 0; i < length; i++) {
        ends |= is_end(text, length, i);
        if (ends && text[i] == ' ') {
            i += strspn(text + i, " ") - 1;
            fputc('\n', out);
            begins = 1;
            ends = 0;
            continue;
        }
        if (begins && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", out);
        begins = 0;
        if (text[i] == '\\')
            fputs("\\e", out);
        else
            fputc(text[i], out);
    }
}

static void print_line(const char *line, const char *version, const char *date)
{
    while (*line) {
        if (!strncmp(line, "@VERSION@", 9)) {
            fputs(version, stdout);
            line += 9;
        } else if (!strncmp(line, "@DATE@", 6)) {
            fputs(date, stdout);
            line += 6;
        } else {
            putchar(*line++);
        }
    }
}

static int write_page(const char *version, const char *date)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    int result = 0;

    while ((length = getline(&line, &room, stdin)) > 0) {
        if (length > 3 && line[0] == '@' && line[length - 2] == '@'
            && !memchr(line, ' ', (size_t)length)) {
            line[length - 2] = 0;
            if (print_list(stdout, line + 1) < 0) {
                fprintf(stderr, "ct_manual: there is no list @%s@\n", line + 1);
                result = 1;
            }
        } else {
            print_line(line, version, date);
        }
    }
    free(line);
    return fclose(stdout) == 0 ? result : 1;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "page"))
        return write_page(argv[2], argv[3]);
    if (argc > 6 && !strcmp(argv[1], "api"))
        return write_api_pages(argv + 6, argc - 6, argv[5], argv[4], argv[2], argv[3]) < 0;
    fputs("usage: ct_manual page VERSION DATE <TEMPLATE | api VERSION DATE FOLDER EXAMPLES "
          "HEADER...\n",
          stderr);
    return 2;
}
