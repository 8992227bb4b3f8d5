/* SPDX-License-Identifier: Apache-2.0 */
/* trace_line.c - see trace_line.h. */
#include "launcher/trace/trace_line.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/trace/trace_json.h"
#include "runtime/util/json_writer.h"

#define LINE_MOST (64 << 10)

/* What a line looks like, with ' for ".  %n and %s are a number and a string that are copied only,
 * %a is any number of members; the others fill a field: %p process, %i id, %t ts, %d dur, %m and %w
 * the two clocks. */
static const struct {
    enum trace_line_kind kind;
    const char *form;
} forms[] = {
#define EVENT(phase) "{'ph':'" phase "','name':%s,'pid':%p,'tid':%n,'cat':%s,"
#define ABOUT(name) "{'ph':'M','name':'" name "','pid':%p,'tid':%n,'args':{"
    { LINE_SLICE, EVENT("X") "'ts':%t,'dur':%d,'args':{%a}}" },
    { LINE_OPEN, EVENT("B") "'ts':%t,'args':{%a}}" },
    { LINE_SENT, EVENT("s") "'ts':%t,'id':%i}" },
    { LINE_TAKEN, EVENT("f") "'ts':%t,'id':%i,'bp':'e'}" },
    { LINE_INSTANT, EVENT("i") "'s':'p','ts':%t}" },
    { LINE_NAME, ABOUT("process_name") "'name':%s}}" },
    { LINE_NAME, ABOUT("thread_name") "'name':%s}}" },
    { LINE_NAME, ABOUT("process_labels") "'labels':%s}}" },
#define PART                                                                                     \
    ABOUT("ctrun_part")                                                                          \
    "'node':%n,'nodes':%n,'host':%s,'generation':%s,'restarts':%n,'events':%n,'events_lost':%n," \
    "'clock_monotonic_ns':%m,'clock_realtime_ns':%w,"
    { LINE_PART, PART "'missing':null}}" },
    { LINE_PART, PART "'missing':%s}}" },
};

/* ---- Values ------------------------------------------------------------------ */

/* Each of these passes over what it is named after and returns 1; 0: something else is there, and
 * *at anywhere in it.  The text ends with a 0, which none of them passes. */
static int literal(const char **at, char c)
{
    if (**at != c)
        return 0;
    *at += 1;
    return 1;
}

static int escape(const char **at)
{
    const int size = **at != 'u' ? **at && strchr("\"\\n", **at)
                                 : 5 * (strspn(*at + 1, "0123456789abcdef") >= 4);

    *at += size;
    return size > 0;
}

/* The span is what stands between the quotes. */
static int string(const char **at, struct span *value)
{
    if (!literal(at, '"'))
        return 0;
    value->at = *at;
    while (**at != '"') {
        const char first = **at;
        const size_t size = json_character((const unsigned char *)*at, 4);

        if (size == 0 || (unsigned char)first < ' ')
            return 0;
        *at += size;
        if (first == '\\' && !escape(at))
            return 0;
    }
    value->size = (size_t)(*at - value->at);
    return literal(at, '"');
}

static int integer(const char **at, int64_t *value)
{
    const char *const digits = *at + (**at == '-');
    const size_t count = strspn(digits, "0123456789");

    if (count == 0 || (*digits == '0' && count > 1))
        return 0;
    errno = 0;
    *value = strtoll(*at, NULL, 10);
    *at = digits + count;
    return errno == 0;
}

/* "1234.567": microseconds, read as nanoseconds. */
static int microseconds(const char **at, struct span *text, int64_t *ns)
{
    text->at = *at;
    if (**at == '-' || !integer(at, ns) || *ns > TRACE_MOST_NS / 1000 || !literal(at, '.')
        || strspn(*at, "0123456789") != 3)
        return 0;
    *ns = *ns * 1000 + atoi(*at);
    *at += 3;
    text->size = (size_t)(*at - text->at);
    return 1;
}

static int members(const char **at)
{
    struct span key, value;
    int64_t number;

    if (**at == '}')
        return 1;
    do {
        if (!string(at, &key) || !literal(at, ':'))
            return 0;
        if (!strncmp(*at, "null", 4))
            *at += 4;
        else if (!(**at == '"' ? string(at, &value) : integer(at, &number)))
            return 0;
    } while (literal(at, ','));
    return 1;
}

/* ---- A line ------------------------------------------------------------------ */

static int field(const char **at, char which, struct trace_line *line)
{
    struct span text;
    int64_t number;

    switch (which) {
    case 's':
        return string(at, &text);
    case 'a':
        return members(at);
    case 'p':
        return integer(at, &line->process) && line->process > 0;
    case 'i':
        return integer(at, &line->id);
    case 't':
        return microseconds(at, &line->ts, &line->ns);
    case 'd':
        return microseconds(at, &line->dur, &line->dur_ns);
    case 'm':
        return integer(at, &line->monotonic_ns) && line->monotonic_ns >= 0
               && line->monotonic_ns <= TRACE_MOST_NS;
    case 'w':
        line->wall.at = *at;
        number = integer(at, &line->realtime_ns);
        line->wall.size = (size_t)(*at - line->wall.at);
        return (int)number && line->realtime_ns >= 0 && line->realtime_ns <= 4 * TRACE_MOST_NS;
    default:
        return integer(at, &number);
    }
}

static int has_form(const char **at, const char *form, struct trace_line *line)
{
    for (; *form; form++)
        if (*form == '%' ? !field(at, *++form, line) : !literal(at, *form == '\'' ? '"' : *form))
            return 0;
    return 1;
}

static int parse(const char **at, struct trace_line *line)
{
    const char *const from = *at;

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++, *at = from) {
        *line = (struct trace_line){ .kind = forms[i].kind };
        if (!has_form(at, forms[i].form, line))
            continue;
        line->text = (struct span){ from, (size_t)(*at - from) };
        return 1;
    }
    return 0;
}

/* ---- The file ---------------------------------------------------------------- */

ct_status trace_lines_fail(const struct trace_lines *lines, const char *what)
{
    return ct_fail(CT_ERR_INVALID, "%s:%zu: %s", lines->path, lines->number, what);
}

/* Our writer's lines are some hundred bytes long: a file of another kind is not read whole. */
static ssize_t get_line(struct trace_lines *lines)
{
    return fgets(lines->data, LINE_MOST, lines->file) ? (ssize_t)strlen(lines->data) : -1;
}

static ct_status read_line(struct trace_lines *lines)
{
    ssize_t size;

    if (!lines->data && !(lines->data = malloc(LINE_MOST)))
        return ct_fail(CT_ERR_NOMEM, "%s: out of memory", lines->path);
    size = get_line(lines);
    lines->number++;
    if (size > 0 && lines->data[size - 1] == '\n' && strlen(lines->data) == (size_t)size)
        return CT_OK;
    if (size < 0 && ferror(lines->file))
        return ct_fail(CT_ERR_SYSTEM, "%s: %s", lines->path, strerror(errno));
    return trace_lines_fail(lines, size < 0 ? "the file ends before the trace does"
                                            : "this is not a whole line");
}

ct_status trace_lines_open(struct trace_lines *lines, const char *path)
{
    struct stat info;

    *lines = (struct trace_lines){ .path = path, .more = -1 };
    /* Opening a FIFO would wait for a writer. */
    if (stat(path, &info) < 0 || (S_ISREG(info.st_mode) && !(lines->file = fopen(path, "re"))))
        return ct_fail(CT_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    if (!lines->file)
        return ct_fail(CT_ERR_INVALID, "%s: it is read twice, and is no regular file", path);
    if (read_line(lines) != CT_OK)
        return CT_ERR_INVALID;
    return !strcmp(lines->data, TRACE_FILE_HEAD "\n")
               ? CT_OK
               : trace_lines_fail(lines, "a trace of ctrun does not begin so");
}

static ct_status fail_of_line(const struct trace_lines *lines)
{
    return trace_lines_fail(lines, strstr(lines->data, "\"clock_error_ns\":")
                                       ? "this trace is merged already"
                                       : "a node's trace has no such line");
}

ct_status trace_lines_next(struct trace_lines *lines, struct trace_line *line)
{
    const char *at;
    ct_status status = read_line(lines);

    if (status != CT_OK)
        return status;
    at = lines->data;
    if (!strcmp(at, TRACE_FILE_TAIL) && lines->more <= 0) {
        line->kind = 0;
        return getc(lines->file) == EOF
                   ? CT_OK
                   : trace_lines_fail(lines, "the trace ends here, the file does not");
    }
    if (!lines->more || !parse(&at, line))
        return fail_of_line(lines);
    lines->more = literal(&at, ',');
    return !strcmp(at, "\n") ? CT_OK : fail_of_line(lines);
}

void trace_lines_close(struct trace_lines *lines)
{
    if (lines->file)
        fclose(lines->file);
    free(lines->data);
    *lines = (struct trace_lines){ 0 };
}
