/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - writes the pages of ct(3) from the comments of ct.h and ct_cuda.h.
 *
 * The program reads a header line by line.  A line "---- Title ----" begins a section, which gets a
 * page with its types and a list of its functions.  A comment at the left margin describes
 * the declarations that follow it, up to an empty line or the next such comment.  A comment before
 * an empty line describes all functions of the section.
 *
 * Each function gets a page.  A sentence of its comment that begins with "Returns CT_ERR_" is
 * listed under ERRORS.  Any other sentence that begins with "Returns" is under RETURN VALUE.  The
 * sentence COMMON means the statuses that the comment at the top of ct.h lists.  The example is a
 * function of examples/snippets.c whose comment names the function. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "packaging/manual/manual.h"

#define COMMON "Returns the statuses of a call on a group."

struct source {
    char **line;
    int count, at;
};

/* A text in memory that is written through `out`. */
struct draft {
    FILE *out;
    char *text;
    size_t size;
};

struct writer {
    const char *folder, *version, *date, *header;
    struct source examples;
    struct draft common; /* the statuses of a call on a group, one "Returns CT_ERR_..." a line */
    struct draft index;  /* the sections of the header and their functions */
    /* The page of the section. */
    FILE *page;
    char name[48];          /* for example "ct-groups" */
    struct draft intro;     /* the comments that describe all functions of the section */
    struct draft functions; /* the list of the functions */
};

/* ---- Reading --------------------------------------------------------------------- */

static int starts(const char *line, const char *with)
{
    return !strncmp(line, with, strlen(with));
}

static int source_read(struct source *lines, const char *path)
{
    FILE *in = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t length;

    if (!in) {
        perror(path);
        return -1;
    }
    while ((length = getline(&line, &room, in)) > 0) {
        line[length - (line[length - 1] == '\n')] = 0;
        lines->line = realloc(lines->line, ((size_t)lines->count + 1) * sizeof *lines->line);
        if (!lines->line || !(lines->line[lines->count++] = strdup(line)))
            return -1;
    }
    free(line);
    return fclose(in);
}

static void source_free(struct source *lines)
{
    for (int i = 0; i < lines->count; i++)
        free(lines->line[i]);
    free(lines->line);
}

/* ---- Text ------------------------------------------------------------------------ */

static void draft_open(struct draft *text)
{
    *text = (struct draft){ 0 };
    text->out = open_memstream(&text->text, &text->size);
    if (!text->out) {
        perror("ct_manual");
        exit(1);
    }
}

static const char *draft_of(const struct draft *text)
{
    fflush(text->out);
    return text->text;
}

static void draft_close(struct draft *text)
{
    fclose(text->out);
    free(text->text);
}

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return line + (*line == '\n');
}

/* Prints a paragraph or a list item of a comment, one sentence a line.  Names in brackets at its
 * end, "[ncclSend; MPI_Send]", are similar functions of other libraries. */
static void print_paragraph(FILE *out, const char *text)
{
    const char *bracket = strrchr(text, '[');
    size_t length = strlen(text), rest = 0;

    if (length == 0)
        return;
    if (bracket && text[length - 1] == ']' && isalpha((unsigned char)bracket[1]))
        rest = strlen(bracket);
    fprintf(out, ".Pp\n%s", starts(text, "- ") ? "\\(bu " : "");
    text += starts(text, "- ") ? 2 : 0;
    for (length = strlen(text) - rest; length > 0 && text[length - 1] == ' ';)
        length--;
    print_text(out, text, length);
    if (rest > 0) {
        fputs(length > 0 ? "\n.Pp\nLike " : "Like ", out);
        print_text(out, bracket + 1, rest - 2);
        fputc('.', out);
    }
    fputc('\n', out);
}

/* Prints the comment that begins at the line lines->at.  Sets lines->at to the line behind the
 * comment. */
static void print_comment(FILE *out, struct source *lines)
{
    char paragraph[8192] = "";
    size_t used = 0;

    for (int is_first = 1, is_last = 0; !is_last && lines->at < lines->count; is_first = 0) {
        char *line = lines->line[lines->at++], *end = strstr(line, "*/");
        char *text = line + (is_first ? 2 : strspn(line, " "));

        text += !is_first && *text == '*';
        is_last = end != NULL;
        if (end)
            for (*end = 0; end > line && end[-1] == ' ';)
                *--end = 0;
        text += text < line + strlen(line) ? strspn(text, " ") : 0;
        if (!*text || starts(text, "- ")) {
            print_paragraph(out, paragraph);
            *paragraph = 0;
            used = 0;
        }
        if (*text && used < sizeof paragraph)
            used += (size_t)snprintf(paragraph + used, sizeof paragraph - used, "%s%s",
                                     used == 0                    ? ""
                                     : paragraph[used - 1] == '.' ? "  "
                                                                  : " ",
                                     text);
    }
    print_paragraph(out, paragraph);
}

enum part { ANY, DESCRIPTION, RETURN_VALUE, ERRORS };

static enum part part_of(const char *line)
{
    if (!starts(line, "Returns "))
        return DESCRIPTION;
    return starts(line, "Returns CT_ERR_") || starts(line, COMMON) ? ERRORS : RETURN_VALUE;
}

/* Prints the lines of the text that belong to a part of a page, and the line `first`.  `printed` is
 * 1 if the part has text already.  Returns 1 if it has text now. */
static int print_part(FILE *out, const char *text, enum part part, const char *first, int printed)
{
    for (int is_new = 0; *text; text = next_line(text)) {
        if (starts(text, ".Pp\n")) {
            is_new = 1;
        } else if (part == ANY || part == part_of(text) || text == first) {
            fprintf(out, "%s%.*s\n", is_new && printed ? ".Pp\n" : "", (int)strcspn(text, "\n"),
                    text);
            printed = 1;
            is_new = 0;
        }
    }
    return printed;
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

/* Prints the code at lines->at up to an empty line, a comment or the next function. */
static void print_code(FILE *out, struct source *lines)
{
    const int is_function = starts(lines->line[lines->at], "CT_API ");

    fputs(".Bd -literal\n", out);
    for (int begin = lines->at; lines->at < lines->count; lines->at++) {
        const char *line = lines->line[lines->at];

        if (!*line || is_comment(line) || starts(line, "#ifdef __cplusplus")
            || (lines->at > begin && starts(line, "CT_API ")))
            break;
        print_verbatim(out, is_function ? line + strlen("CT_API ") : line);
    }
    fputs(".Ed\n", out);
}

/* ---- Pages ------------------------------------------------------------------------- */

/* Opens a page, and prints its head.  `title` ends at a ".", at " --" or with its line. */
static FILE *open_page(const struct writer *w, const char *name, const char *title)
{
    const int has_capital = isupper((unsigned char)title[0]) && islower((unsigned char)title[1]);
    int length = (int)strcspn(title, "\n");
    char path[4096];
    FILE *out;

    snprintf(path, sizeof path, "%s/%s.3", w->folder, name);
    if (!(out = fopen(path, "w"))) {
        perror(path);
        exit(1);
    }
    printf("%s.3\n", name);
    if (strstr(title, " --"))
        length = (int)(strstr(title, " --") - title);
    length -= length > 0 && title[length - 1] == '.';
    fprintf(out, ".\\\" made from the header's comments by packaging/manual\n.Dd %s\n.Dt ",
            w->date);
    for (const char *c = name; *c; c++)
        fputc(toupper((unsigned char)*c), out);
    fprintf(out, " 3\n.Os libct %s\n.Sh NAME\n.Nm %s\n.Nd %c%.*s\n", w->version, name,
            has_capital ? tolower((unsigned char)*title) : *title, length - 1, title + 1);
    fprintf(out, ".Sh LIBRARY\nlibct (\\-lct)\n.Sh SYNOPSIS\n.In %s\n", w->header);
    return out;
}

/* ---- The page of a function ------------------------------------------------------------- */

/* Lists the statuses in `text`, each once with all its sentences. */
static void print_errors(FILE *out, const char *text)
{
    const size_t returns = strlen("Returns ");

    fputs(".Bl -tag -width Ds\n", out);
    for (const char *line = text, *same; *line; line = next_line(line)) {
        const size_t length = returns + strcspn(line + returns, " ") + 1;

        if (!starts(line, "Returns CT_ERR_"))
            continue;
        for (same = text; strncmp(same, line, length) != 0;)
            same = next_line(same);
        if (same < line) /* listed already */
            continue;
        fprintf(out, ".It Dv %.*s\n", (int)(length - returns - 1), line + returns);
        for (; *same; same = next_line(same))
            if (!strncmp(same, line, length))
                fprintf(out, "%c%.*s\n", toupper((unsigned char)same[length]),
                        (int)strcspn(same + length + 1, "\n"), same + length + 1);
    }
    fputs(".El\n", out);
}

/* Prints the body of the first function in examples/snippets.c whose comment names this one. */
static int print_example(FILE *out, const struct source *examples, const char *name)
{
    char call[64];
    int at = 0;

    snprintf(call, sizeof call, " %s()", name);
    while (at < examples->count
           && !(strstr(examples->line[at], call) && strchr("/ ", *examples->line[at])))
        at++;
    while (at < examples->count && strcmp(examples->line[at], "{") != 0)
        at++;
    if (at == examples->count) {
        fprintf(stderr, "ct_manual: examples/snippets.c has no example of %s()\n", name);
        return -1;
    }
    fputs(".Sh EXAMPLE\n.Bd -literal\n", out);
    while (strcmp(examples->line[++at], "}") != 0)
        print_verbatim(out, examples->line[at] + (*examples->line[at] ? 4 : 0));
    fputs(".Ed\n.Pp\nThis is from\n.Pa examples/snippets.c ,\nwhere\n.Fn check\nends the program "
          "if a call has failed.\n",
          out);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Prints references to the pages ct(3), the section's page, and the functions that the text names.
 */
static void print_see_also(const struct writer *w, FILE *out, const char *text, const char *but)
{
    char names[32][48] = { "ct" };
    int count = 2;

    snprintf(names[1], sizeof *names, "%s", w->name);
    for (const char *at = text; count < 32 && (at = strstr(at, "ct_")) != NULL; at++) {
        const size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_");

        if (starts(at + length, "()"))
            snprintf(names[count++], sizeof *names, "%.*s", (int)length, at);
    }
    qsort(names, (size_t)count, sizeof *names, by_name);
    fputs(".Sh SEE ALSO\n", out);
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], but) != 0 && (i == 0 || strcmp(names[i], names[i - 1]) != 0))
            fprintf(out, "%s.Xr %s 3", i ? " ,\n" : "", names[i]);
    fputc('\n', out);
}

/* Writes the page of the function at lines->at, which `comment` describes.  Sets lines->at to the
 * line behind the declaration. */
static int write_function(struct writer *w, struct source *lines, const char *name,
                          const char *comment)
{
    const char *first = next_line(comment), *declaration = lines->line[lines->at];
    const int returns_status = starts(declaration, "CT_API ct_status ");
    const char *intro = returns_status ? draft_of(&w->intro) : "", *common = draft_of(&w->common);
    FILE *out = open_page(w, name, first);
    struct draft errors;
    int result;

    draft_open(&errors);
    fprintf(errors.out, "%s%s", comment, intro);
    if (strstr(comment, COMMON) || strstr(intro, COMMON))
        fputs(common, errors.out);
    else if (strstr(declaration, "(ct_group *")) /* CT_ERR_INVALID */
        fprintf(errors.out, "%.*s", (int)(next_line(common) - common), common);

    fprintf(w->index.out, ".Xr %s 3\n", name);
    fprintf(w->functions.out, ".It Xr %s 3\n%.*s\n", name, (int)strcspn(first, "\n"), first);
    print_code(out, lines);
    fputs(".Sh DESCRIPTION\n", out);
    print_part(out, comment, DESCRIPTION, first, 0);
    print_part(out, intro, DESCRIPTION, NULL, 1);
    fputs(".Sh RETURN VALUE\n", out);
    print_part(out, comment, RETURN_VALUE, NULL, 0);
    if (returns_status)
        fputs("Returns\n.Dv CT_OK\non success, otherwise a status of the list below.\n"
              ".Xr ct_last_error 3\nreturns the error message.\n",
              out);
    fputs(".Sh ERRORS\n", out);
    if (strstr(draft_of(&errors), "Returns CT_ERR_"))
        print_errors(out, errors.text);
    else
        fputs("None.\n", out);
    result = print_example(out, &w->examples, name);
    print_see_also(w, out, comment, name);
    draft_close(&errors);
    return result | fclose(out);
}

/* ---- The page of a section -------------------------------------------------------------- */

static int end_section(struct writer *w)
{
    FILE *out = w->page;

    if (!out)
        return 0;
    fprintf(out, ".Sh FUNCTIONS\n.Bl -tag -width Ds\n%s.El\n", draft_of(&w->functions));
    print_see_also(w, out, "", w->name);
    draft_close(&w->intro);
    draft_close(&w->functions);
    w->page = NULL;
    return fclose(out);
}

/* The page of "Start and end" is ct-start-and-end(3).  The name ends at a ":" in the title. */
static int begin_section(struct writer *w, const char *title)
{
    const size_t length = (size_t)(strstr(title, " --") - title);
    const int result = end_section(w);
    size_t used = (size_t)snprintf(w->name, sizeof w->name, "ct-");

    for (size_t i = 0; i < length && title[i] != ':' && used < sizeof w->name - 1; i++)
        w->name[used++] =
            isalnum((unsigned char)title[i]) ? (char)tolower((unsigned char)title[i]) : '-';
    w->name[used] = 0;
    w->page = open_page(w, w->name, title);
    draft_open(&w->intro);
    draft_open(&w->functions);
    fputs(".Sh DESCRIPTION\nEach function that is listed below has a page.\n", w->page);
    fprintf(w->index.out, ".It Xr %s 3\n", w->name);
    return result;
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

/* Writes a comment and what it describes: functions to their own pages, anything else to the page
 * of the section. */
static int write_declarations(struct writer *w, struct source *lines)
{
    struct draft comment;
    char name[48];
    int result = 0;

    draft_open(&comment);
    if (is_comment(lines->line[lines->at]))
        print_comment(comment.out, lines);
    if (function_of(lines->line[lines->at], name, sizeof name)) {
        result = write_function(w, lines, name, draft_of(&comment));
    } else {
        print_part(w->page, draft_of(&comment), ANY, NULL, 1);
        if (*lines->line[lines->at])
            print_code(w->page, lines);
        else
            fputs(comment.text, w->intro.out);
    }
    draft_close(&comment);
    return result;
}

/* Writes the pages of all sections and functions of a header. */
static int write_pages(struct writer *w, struct source *lines)
{
    int result = 0;

    while (lines->at < lines->count && result == 0) {
        const char *line = lines->line[lines->at];

        if (is_title(line)) {
            result = begin_section(w, line + strlen("/* ---- "));
            lines->at++;
        } else if (starts(line, "#ifdef __cplusplus")) {
            while (++lines->at < lines->count && !starts(lines->line[lines->at], "#e"))
                ;
        } else if (!w->page || !*line || is_of_the_header(line)) {
            lines->at++;
        } else {
            result = write_declarations(w, lines);
        }
    }
    return result | end_section(w);
}

/* Writes the pages of a header.  The comment at its top is on the page ct(3) or ct_cuda(3), with a
 * list of all sections.  The top of ct.h lists the statuses of a call on a group. */
static int write_header(struct writer *w, struct source *lines)
{
    const char *title = strchr(lines->line[1], '-') + 2;
    struct draft top;
    int result;
    FILE *out;

    snprintf(w->name, sizeof w->name, "%.*s", (int)strcspn(w->header, "."), w->header);
    out = open_page(w, w->name, title);
    draft_open(&top);
    draft_open(&w->index);
    lines->at = 3; /* skips the licence, the title and an empty line */
    print_comment(top.out, lines);
    for (const char *line = draft_of(&top); *line; line = next_line(line))
        if (starts(line, "\\(bu CT_ERR_"))
            fprintf(w->common.out, "Returns %.*s\n", (int)strcspn(line + 5, "\n"), line + 5);
    fputs(".Sh DESCRIPTION\n", out);
    print_part(out, top.text, ANY, NULL, 0);
    result = write_pages(w, lines);
    fprintf(out,
            ".Sh PAGES\n.Bl -tag -width Ds\n%s.El\n.Sh SEE ALSO\n.Xr ctctl 1 ,\n.Xr ctrun 1 ,\n"
            ".Xr %s 3 ,\n.Xr ctrun-environment 7\n",
            draft_of(&w->index), strcmp(w->header, "ct.h") ? "ct" : "ct_cuda");
    draft_close(&w->index);
    draft_close(&top);
    return result | fclose(out);
}

int write_api_pages(char **headers, int count, const char *examples, const char *folder,
                    const char *version, const char *date)
{
    struct writer w = { .folder = folder, .version = version, .date = date };
    int result = source_read(&w.examples, examples);

    draft_open(&w.common);
    for (int i = 0; i < count && result == 0; i++) {
        const char *slash = strrchr(headers[i], '/');
        struct source lines = { 0 };

        w.header = slash ? slash + 1 : headers[i];
        result = source_read(&lines, headers[i]) || write_header(&w, &lines);
        source_free(&lines);
    }
    draft_close(&w.common);
    source_free(&w.examples);
    return result ? -1 : 0;
}
