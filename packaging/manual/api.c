/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - writes the pages of ct(3) from the comments of ct.h and ct_cuda.h.
 *
 * The program reads a header line by line.  A line "---- Title ----" begins a page.  A comment at
 * the left margin describes the declarations that follow it, up to an empty line or the next such
 * comment. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "packaging/manual/manual.h"

struct lines {
    char **line;
    int count, at;
};

struct page {
    FILE *out;
    char name[64];          /* for example "ct-groups" */
    char functions[64][48]; /* the functions that the page describes */
    int count;
};

struct writer {
    const char *folder, *version, *date;
    FILE *index; /* the index in ct(3): all pages and their functions */
    struct page page;
};

/* ---- Reading --------------------------------------------------------------------- */

static int starts(const char *line, const char *with)
{
    return !strncmp(line, with, strlen(with));
}

static int read_lines(struct lines *lines, const char *path)
{
    FILE *in = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t length;

    if (!in)
        return -1;
    while ((length = getline(&line, &room, in)) > 0) {
        line[length - (line[length - 1] == '\n')] = 0;
        lines->line = realloc(lines->line, ((size_t)lines->count + 1) * sizeof *lines->line);
        if (!lines->line || !(lines->line[lines->count++] = strdup(line)))
            return -1;
    }
    free(line);
    return fclose(in);
}

/* ---- Text ------------------------------------------------------------------------ */

/* Prints the text in "[ncclSend; MPI_Send]" at the end of a comment, which lists similar functions
 * of other libraries. */
static void print_alike(FILE *out, const char *text, size_t length)
{
    fputs(".Pp\nLike ", out);
    print_text(out, text, length);
    fputs(".\n", out);
}

/* Prints a line of a comment, given without its comment marks.  A line that begins with "- "
 * becomes a list item. */
static void print_comment_line(FILE *out, const char *line)
{
    const char *text = line + strspn(line, " ");
    size_t length = strlen(text);
    const char *bracket = length && text[length - 1] == ']' ? strrchr(text, '[') : NULL;

    if (length == 0) {
        fputs(".Pp\n", out);
        return;
    }
    if (starts(text, "- ")) {
        fputs(".Pp\n\\(bu ", out);
        text += 2;
        length -= 2;
    }
    if (bracket && bracket >= text && isalpha((unsigned char)bracket[1])) {
        if (bracket > text) {
            print_text(out, text, (size_t)(bracket - text) - (bracket[-1] == ' '));
            fputc('\n', out);
        }
        print_alike(out, bracket + 1, length - (size_t)(bracket - text) - 2);
        return;
    }
    print_text(out, text, length);
    fputc('\n', out);
}

/* Prints the comment that begins at the line lines->at.  Sets lines->at to the line behind the
 * comment. */
static void print_comment(FILE *out, struct lines *lines)
{
    for (int is_first = 1, is_last = 0; !is_last && lines->at < lines->count; is_first = 0) {
        char *line = lines->line[lines->at++], *end = strstr(line, "*/");
        char *text = line + (is_first ? 2 : strspn(line, " "));

        text += !is_first && *text == '*';
        is_last = end != NULL;
        if (end)
            for (*end = 0; end > line && end[-1] == ' ';)
                *--end = 0;
        if (!is_last || *text)
            print_comment_line(out, text);
    }
}

/* ---- Declarations ----------------------------------------------------------------- */

/* Writes the function's name to `name`: ct_wait for "CT_API ct_status ct_wait(ct_work *work);".
 * Returns 0 if the line declares no function. */
static int function_of(const char *line, char *name, size_t size)
{
    const char *open = strchr(line, '('), *begin = open;

    if (!starts(line, "CT_API ") || !open)
        return 0;
    while (begin > line && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_'))
        begin--;
    snprintf(name, size, "%.*s", (int)(open - begin), begin);
    return 1;
}

static int is_comment(const char *line)
{
    return starts(line, "/*");
}

static int is_title(const char *line)
{
    return starts(line, "/* ---- ");
}

static void print_verbatim(FILE *out, const char *line)
{
    if (*line == '.' || *line == '\'')
        fputs("\\&", out);
    for (; *line; line++)
        fputs(*line == '\\' ? "\\e" : (char[]){ *line, 0 }, out);
    fputc('\n', out);
}

static void print_code(struct page *page, struct lines *lines)
{
    fputs(".Bd -literal\n", page->out);
    for (; lines->at < lines->count; lines->at++) {
        const char *line = lines->line[lines->at];

        if (!*line || is_comment(line) || starts(line, "#ifdef __cplusplus"))
            break;
        if (page->count < 64
            && function_of(line, page->functions[page->count], sizeof *page->functions))
            page->count++;
        line += starts(line, "CT_API ") ? 7 : 0;
        print_verbatim(page->out, line);
    }
    fputs(".Ed\n", page->out);
}

/* Prints a heading with the functions that the comment at lines->at describes. */
static void print_heading(FILE *out, const struct lines *lines)
{
    int at = lines->at, found = 0;
    char name[48];

    if (is_comment(lines->line[at]))
        while (at < lines->count && !strstr(lines->line[at++], "*/"))
            ;
    for (; at < lines->count && *lines->line[at] && !is_comment(lines->line[at]); at++)
        if (function_of(lines->line[at], name, sizeof name))
            fprintf(out, "%s%s()", found++ ? ", " : ".Ss ", name);
    if (found)
        fputc('\n', out);
}

/* ---- Pages ------------------------------------------------------------------------- */

static FILE *open_page(const struct writer *w, const char *name)
{
    char path[4096];
    FILE *out;

    snprintf(path, sizeof path, "%s/%s.3", w->folder, name);
    out = fopen(path, "w");
    if (out)
        printf("%s.3\n", name);
    else
        fprintf(stderr, "ct_manual: %s: %s\n", path, strerror(errno));
    return out;
}

static void print_see_also(FILE *out, const char *of)
{
    fputs(".Sh SEE ALSO\n.Xr ctctl 1 ,\n.Xr ctrun 1 ,\n", out);
    if (strcmp(of, "ct") != 0)
        fputs(".Xr ct 3 ,\n", out);
    if (strcmp(of, "ct_cuda") != 0)
        fputs(".Xr ct_cuda 3 ,\n", out);
    fputs(".Xr ctrun-environment 7\n", out);
}

static int close_page(struct writer *w)
{
    struct page *page = &w->page;
    int result = 0;

    if (!page->out)
        return 0;
    print_see_also(page->out, page->name);
    result |= fclose(page->out);
    for (int i = 0; i < page->count; i++) {
        FILE *alias = open_page(w, page->functions[i]);

        if (!alias)
            return -1;
        fprintf(alias, ".so man3/%s.3\n", page->name);
        result |= fclose(alias);
        fprintf(w->index, "%s%s", i ? ", " : "", page->functions[i]);
    }
    fputc('\n', w->index);
    page->out = NULL;
    page->count = 0;
    return result;
}

/* Sets the page's name: "Start and end" becomes ct-start-and-end(3).  The name ends at a ":" in the
 * title. */
static void name_page(struct page *page, const char *title, size_t length)
{
    size_t used = (size_t)snprintf(page->name, sizeof page->name, "ct-");

    for (size_t i = 0; i < length && title[i] != ':' && used < sizeof page->name - 1; i++)
        page->name[used++] =
            isalnum((unsigned char)title[i]) ? (char)tolower((unsigned char)title[i]) : '-';
    page->name[used] = 0;
}

static void print_head(FILE *out, const struct writer *w, const char *name, const char *title,
                       int length)
{
    fprintf(out, ".\\\" made from the header's comments by packaging/manual\n.Dd %s\n.Dt ",
            w->date);
    for (const char *c = name; *c; c++)
        fputc(toupper((unsigned char)*c), out);
    fprintf(out, " 3\n.Os libct %s\n.Sh NAME\n.Nm %s\n.Nd %.*s\n", w->version, name, length, title);
}

static int begin_page(struct writer *w, const char *header, const char *title)
{
    const char *end = strstr(title, " --");
    const size_t length = end ? (size_t)(end - title) : strlen(title);
    struct page *page = &w->page;

    if (close_page(w) < 0)
        return -1;
    name_page(page, title, length);
    if (!(page->out = open_page(w, page->name)))
        return -1;
    print_head(page->out, w, page->name, title, (int)length);
    fprintf(page->out, ".Sh LIBRARY\nlibct (\\-lct)\n.Sh SYNOPSIS\n.In %s\n.Sh DESCRIPTION\n",
            header);
    fprintf(w->index, ".It Xr %s 3\n", page->name);
    return 0;
}

/* Returns 1 if the line belongs to the header itself, not to a declaration. */
static int is_of_the_header(const char *line)
{
    static const char *const words[] = { "#if", "#e", "#include", "extern", "}" };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (starts(line, words[i]))
            return 1;
    return starts(line, "#define ") && !strchr(line + strlen("#define "), ' ');
}

/* Writes all pages of a header.  The comment at the top of ct.h is on the page ct(3).  A smaller
 * header has only one page. */
static int write_pages(struct writer *w, struct lines *lines, const char *header)
{
    int result = 0;

    for (; lines->at < lines->count && result == 0;) {
        const char *line = lines->line[lines->at];

        if (is_title(line)) {
            result = begin_page(w, header, line + strlen("/* ---- "));
            lines->at++;
        } else if (starts(line, "#ifdef __cplusplus")) {
            while (++lines->at < lines->count && !starts(lines->line[lines->at], "#e"))
                ;
        } else if (!w->page.out || !*line || is_of_the_header(line)) {
            lines->at++;
        } else {
            print_heading(w->page.out, lines);
            if (is_comment(line)) {
                print_comment(w->page.out, lines);
                if (lines->at < lines->count && !*lines->line[lines->at])
                    continue;
            }
            print_code(&w->page, lines);
        }
    }
    return result | close_page(w);
}

int write_api_pages(const char *header, const char *folder, const char *version, const char *date)
{
    const char *slash = strrchr(header, '/'), *name = slash ? slash + 1 : header;
    struct lines lines = { 0 };
    struct writer w = { .folder = folder, .version = version, .date = date };
    char whole[64], *index = NULL;
    size_t size;
    FILE *out;
    int result;

    if (read_lines(&lines, header) < 0 || !(w.index = open_memstream(&index, &size))) {
        fprintf(stderr, "ct_manual: %s: %s\n", header, strerror(errno));
        return -1;
    }
    snprintf(whole, sizeof whole, "%.*s", (int)strcspn(name, "."), name);
    if (!(out = open_page(&w, whole)))
        return -1;
    lines.at = 1; /* skips the licence line */
    print_head(out, &w, whole, strchr(lines.line[1], '-') + 2,
               (int)strlen(strchr(lines.line[1], '-') + 2));
    lines.at = 3; /* skips the title and an empty line */
    fprintf(out, ".Sh LIBRARY\nlibct (\\-lct)\n.Sh SYNOPSIS\n.In %s\n.Sh DESCRIPTION\n", name);
    print_comment(out, &lines);
    if (!strcmp(whole, "ct")) {
        result = write_pages(&w, &lines, name);
    } else { /* a small header has only one page */
        w.page.out = out;
        snprintf(w.page.name, sizeof w.page.name, "%s", whole);
        result = write_pages(&w, &lines, name);
        out = NULL;
    }
    fclose(w.index);
    if (out) {
        fprintf(out, ".Sh PAGES\n.Bl -tag -width Ds\n%s.El\n", index);
        print_see_also(out, whole);
        result |= fclose(out);
    }
    free(index);
    for (int i = 0; i < lines.count; i++)
        free(lines.line[i]);
    free(lines.line);
    return result ? -1 : 0;
}
