/* SPDX-License-Identifier: Apache-2.0 */
/* trace_line.c - parses the lines of a trace. */
#include "launcher/trace/trace_line.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/trace/trace_json.h"
#include "runtime/util/json_writer.h"

/* ---- Values ------------------------------------------------------------------ */

/* Each function below skips the item in its name, such as a string, at *at, and returns 1.  If
 * something else is there, it returns 0, and *at may point anywhere in it.  The text ends with a
 * null byte, which no function skips. */
static int word(const char **at, const char *text)
{
    const size_t size = strlen(text);

    if (strncmp(*at, text, size) != 0)
        return 0;
    *at += size;
    return 1;
}

static int escape(const char **at)
{
    const int size = **at != 'u' ? **at && strchr("\"\\n", **at)
                                 : 5 * (strspn(*at + 1, "0123456789abcdef") >= 4);

    *at += size;
    return size > 0;
}

/* Skips a string.  Sets *text to the text between the quotes. */
static int string(const char **at, struct token *text)
{
    if (!word(at, "\""))
        return 0;
    text->at = *at;
    while (**at != '"') {
        const char first = **at;
        const size_t size = json_character((const unsigned char *)*at, 4);

        if (size == 0 || (unsigned char)first < ' ')
            return 0;
        *at += size;
        if (first == '\\' && !escape(at))
            return 0;
    }
    text->size = (size_t)(*at - text->at);
    return word(at, "\"");
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

/* Reads a number.  A number with three decimals, such as "1234.567", is in us, and *value is in ns.
 * An integer is stored unchanged. */
static int line_number(const char **at, int64_t *value)
{
    const int is_negative = **at == '-';

    if (!integer(at, value))
        return 0;
    if (**at != '.')
        return 1;
    if (is_negative || *value > TRACE_MOST_NS / 1000 || strspn(*at + 1, "0123456789") != 3)
        return 0;
    *value = *value * 1000 + atoi(*at + 1);
    *at += 4;
    return 1;
}

/* ---- A line ------------------------------------------------------------------ */

#define CLOCK_MEMBERS 5 /* number of members that describe the clock in ctrun_part */

static int is(const struct token *key, const char *name)
{
    return key->size == strlen(name) && !memcmp(key->at, name, key->size);
}

static int keep(struct trace_line *line, const struct token *key, struct token value, int64_t read)
{
    if (is(key, "ts")) {
        line->moved = value;
        line->instead = NULL;
        line->ns = read;
        return *value.at != '"' && value.size > 4 && value.at[value.size - 4] == '.';
    }
    if (is(key, "labels") && !strncmp(value.at, "\"clock +-", strlen("\"clock +-"))) {
        line->moved = (struct token){ value.at + 1, strlen("clock") };
        line->instead = "placed by wall clocks, its own clock";
    }
    if (is(key, "clock")) {
        line->clock = value;
    } else if (is(key, "clock_error_ns")) {
        line->moved = value;
        line->instead = "null";
    } else if (is(key, "clock_realtime_ns")) {
        line->wall_ns += (uint64_t)read;
    } else if (is(key, "clock_monotonic_ns") || is(key, "clock_offset_ns")) {
        line->wall_ns -= (uint64_t)read;
    } else {
        return !is(key, "clock_shift_ns");
    }
    line->clocks++;
    return 1;
}

static int members(const char **at, struct trace_line *line, int are_args)
{
    do {
        struct token key, text, value;
        int64_t read = 0;

        if (!string(at, &key) || !word(at, ":"))
            return 0;
        value.at = *at;
        if (!are_args && word(at, "{")) {
            if (!word(at, "}") && !members(at, line, 1))
                return 0;
            continue;
        }
        if (!(**at == '"' ? string(at, &text) : word(at, "null") || line_number(at, &read)))
            return 0;
        value.size = (size_t)(*at - value.at);
        if (!keep(line, &key, value, read))
            return 0;
    } while (word(at, ","));
    return word(at, "}");
}

/* Parses an event such as {"ph":"X","name":"all_reduce","pid":1,"tid":100,... */
static int parse(const char **at, struct trace_line *line)
{
    const char *const from = *at;
    struct token text;
    int64_t track;
    const int is_ours = word(at, "{\"ph\":") && string(at, &text) && word(at, ",\"name\":")
                        && string(at, &text) && word(at, ",\"pid\":") && integer(at, &line->process)
                        && line->process > 0 && word(at, ",\"tid\":") && integer(at, &track)
                        && word(at, ",") && members(at, line, 0)
                        && line->clocks % CLOCK_MEMBERS == 0;

    line->text = (struct token){ from, (size_t)(*at - from) };
    return is_ours;
}

/* ---- The file ---------------------------------------------------------------- */

ct_status trace_lines_fail(const struct trace_lines *lines, const char *what)
{
    return ct_fail(CT_ERR_INVALID, "%s:%zu: %s", lines->path, lines->number, what);
}

static ct_status line_read_line(struct trace_lines *lines)
{
    const char *const line = fgets(lines->data, sizeof lines->data, lines->file);

    lines->number++;
    if (!line && ferror(lines->file))
        return ct_fail(CT_ERR_SYSTEM, "%s: %s", lines->path, strerror(errno));
    if (!line)
        return trace_lines_fail(lines, "the file ends before the trace does");
    return strchr(line, '\n') ? CT_OK : trace_lines_fail(lines, "this is not a whole line");
}

ct_status trace_lines_open(struct trace_lines *lines, const char *path)
{
    struct stat info;

    *lines = (struct trace_lines){ .path = path, .more = -1 };
    /* open() of a FIFO would wait for a writer, so the file's type is checked first. */
    if (stat(path, &info) < 0 || (S_ISREG(info.st_mode) && !(lines->file = fopen(path, "re"))))
        return ct_fail(CT_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    if (!lines->file)
        return ct_fail(CT_ERR_INVALID, "%s is not a regular file; ctctl must read a trace twice",
                       path);
    if (line_read_line(lines) != CT_OK)
        return CT_ERR_INVALID;
    return !strcmp(lines->data, TRACE_FILE_HEAD "\n")
               ? CT_OK
               : trace_lines_fail(lines, "a trace of ctrun does not begin with this line");
}

ct_status trace_lines_next(struct trace_lines *lines, struct trace_line *line)
{
    const ct_status status = line_read_line(lines);
    const char *at = lines->data;

    *line = (struct trace_line){ .process = 0 };
    if (status != CT_OK)
        return status;
    if (!strcmp(at, TRACE_FILE_TAIL) && lines->more <= 0)
        return getc(lines->file) == EOF
                   ? CT_OK
                   : trace_lines_fail(lines, "the trace ends here, but the file does not");
    if (lines->more && parse(&at, line)) {
        lines->more = word(&at, ",");
        if (!strcmp(at, "\n"))
            return CT_OK;
    }
    return trace_lines_fail(
        lines, strstr(lines->data, "\"clock_shift_ns\":") ? "this trace is merged already"
               : line->clocks % CLOCK_MEMBERS != 0 ? "this trace is of another version of ctrun"
                                                   : "a node's trace has no such line");
}

void trace_lines_close(struct trace_lines *lines)
{
    if (lines->file)
        fclose(lines->file);
}
