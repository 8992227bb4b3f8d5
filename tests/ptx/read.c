/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - a PTX file, line by line, as nvcc writes it: entries with one parameter, each with its
 * registers, then a statement a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/parts.h"

enum { MOST_LINE = 512 };

void *one_more(void *array, size_t count, size_t size)
{
    if ((count & (count - 1)) == 0)
        array = realloc(array, (count ? 2 * count : 1) * size);
    if (!array)
        abort();
    return array;
}

/* Where in the file it is. */
struct cursor {
    struct ptx *ptx;
    struct kernel *kernel; /* NULL: in none */
    int in_body;
    const char *line; /* in the file */
    unsigned number;
    char *words;
};

static int refuse(const struct cursor *c, const char *why)
{
    char line[MOST_LINE];

    snprintf(line, sizeof line, "%.*s", (int)strcspn(c->line, "\n"), c->line);
    snprintf(c->words, PTX_WORDS, "line %u of the PTX, `%.200s`: %.200s", c->number, line, why);
    return 0;
}

/* ---- Outside of bodies --------------------------------------------------------------- */

static struct kernel *add_kernel(struct ptx *ptx, const char *name)
{
    struct kernel *kernel;

    ptx->kernel = one_more(ptx->kernel, ptx->count, sizeof *ptx->kernel);
    kernel = &ptx->kernel[ptx->count++];
    *kernel = (struct kernel){ .most_threads = 1024 };
    snprintf(kernel->name, sizeof kernel->name, "%s", name);
    while (kernel->slots < FIRST_SLOT) {
        kernel->slot = one_more(kernel->slot, kernel->slots, sizeof *kernel->slot);
        kernel->slot[kernel->slots] = kernel->slots == ALWAYS;
        kernel->slots++;
    }
    return kernel;
}

/* The parameter begins at a multiple of its alignment, and of no more; and where no memory is. */
static int read_parameter(struct kernel *kernel, const char *line)
{
    unsigned alignment, bytes;

    if (kernel->parameter_bytes > 0
        || sscanf(line, ".param .align %u .b8 %79[A-Za-z0-9_$][%u]", &alignment, kernel->parameter,
                  &bytes)
               != 3)
        return 0;
    kernel->parameter_at = 4096 + alignment;
    kernel->parameter_bytes = bytes;
    return 1;
}

static int read_outside(struct cursor *c, const char *line)
{
    char name[64];
    unsigned x, y, z;

    if (!strncmp(line, ".version ", 9) || !strncmp(line, ".target sm_", 11)
        || !strcmp(line, ".address_size 64"))
        return c->kernel == NULL;
    if (sscanf(line, ".visible .entry %63[A-Za-z0-9_$](", name) == 1)
        return !c->kernel && (c->kernel = add_kernel(c->ptx, name));
    if (!c->kernel)
        return 0;
    if (!strncmp(line, ".param ", 7))
        return read_parameter(c->kernel, line);
    if (sscanf(line, ".maxntid %u, %u, %u", &x, &y, &z) == 3)
        return c->kernel->most_threads = x, y == 1 && z == 1;
    if (!strcmp(line, "{"))
        return c->in_body = 1;
    return !strcmp(line, ")") || !strncmp(line, ".minnctapersm ", 14);
}

/* ---- Bodies ---------------------------------------------------------------------------- */

/* .reg .b32 %r<135>;  Before a launch they hold what nobody has put there. */
static int read_registers(struct kernel *kernel, const char *line)
{
    struct registers *const kind = &kernel->registers[kernel->kinds];
    char type[8];
    int bits;

    if (kernel->count > 0 || kernel->kinds == MOST_KINDS
        || sscanf(line, ".reg .%7s %7[%a-z]<%u>;", type, kind->prefix, &kind->count) != 3)
        return 0;
    bits = strcmp(type, "pred") ? atoi(type + 1) : 1;
    kind->letter = bits == 1 ? 'p' : bits == 16 ? 'h' : bits == 32 ? 'w' : bits == 64 ? 'd' : 0;
    kind->first = kernel->slots;
    kernel->kinds++;
    for (uint32_t k = 0; k < kind->count; k++) {
        kernel->slot = one_more(kernel->slot, kernel->slots, sizeof *kernel->slot);
        kernel->slot[kernel->slots++] = bits == 1 ? k % 2 : UINT64_C(0xa5a5a5a5a5a5a5a5);
    }
    kernel->constants = kernel->slots;
    return kind->letter != 0;
}

static struct instruction *add_instruction(struct cursor *c)
{
    struct kernel *const kernel = c->kernel;

    kernel->code = one_more(kernel->code, kernel->count, sizeof *kernel->code);
    kernel->code[kernel->count] = (struct instruction){ .line = c->number, .text = c->line };
    return &kernel->code[kernel->count++];
}

static int is_statement(const char *line)
{
    return *line == '@' || (*line >= 'a' && *line <= 'z');
}

/* Labels may stand below the jumps to them, so they are found before a body is decoded. */
static void find_labels(struct kernel *kernel, const char *line)
{
    uint32_t index = 0;

    for (; *line && *line != '}'; line += strcspn(line, "\n"), line += *line == '\n') {
        line += strspn(line, " \t");
        if (*line == '$') {
            kernel->label = one_more(kernel->label, kernel->labels, sizeof *kernel->label);
            kernel->label[kernel->labels++] = (struct label){ line, index };
        }
        index += is_statement(line);
    }
}

/* The end of a body is a ret, which is not counted. */
static int end_body(struct cursor *c)
{
    char last[] = "ret", why[MOST_WHY];

    decode(c->kernel, add_instruction(c), last, why);
    c->kernel->ran = calloc(c->kernel->count--, 1);
    if (!c->kernel->ran)
        abort();
    c->in_body = 0;
    c->kernel = NULL;
    return 1;
}

static int read_in_body(struct cursor *c, char *line)
{
    const size_t length = strlen(line);
    char why[MOST_WHY];

    if (!strcmp(line, "}"))
        return end_body(c);
    if (*line == '$' && line[length - 1] == ':')
        return 1;
    if (line[length - 1] != ';')
        return refuse(c, "a statement ends with its line, as far as it is known here");
    if (!strncmp(line, ".reg ", 5))
        return read_registers(c->kernel, line) || refuse(c, "such registers are not known");
    if (!strncmp(line, ".pragma ", 8)) /* says how, not what */
        return 1;
    if (!is_statement(line))
        return refuse(c, "is not known in a body");
    line[length - 1] = 0;
    return decode(c->kernel, add_instruction(c), line, why) || refuse(c, why);
}

/* ---- The file ---------------------------------------------------------------------------- */

/* A copy of the line that is ours to cut: without comment and the spaces around it. */
static int read_line(struct cursor *c)
{
    const size_t length = strcspn(c->line, "\n");
    char copy[MOST_LINE], *end;
    int was_in_body = c->in_body;

    if (length >= sizeof copy)
        return refuse(c, "is too long");
    snprintf(copy, sizeof copy, "%.*s", (int)length, c->line);
    end = strstr(copy, "//");
    end = end ? end : copy + length;
    while (end > copy && strchr(" \t\r", end[-1]))
        end--;
    *end = 0;
    if (!*copy)
        return 1;
    if (was_in_body)
        return read_in_body(c, copy);
    if (!read_outside(c, copy))
        return refuse(c, "is not known outside of a body");
    if (c->in_body)
        find_labels(c->kernel, c->line + length + 1);
    return 1;
}

struct ptx *ptx_read(char *text, char *words)
{
    struct ptx *const ptx = calloc(1, sizeof *ptx);
    struct cursor c = { .ptx = ptx, .line = text, .number = 1, .words = words };

    if (!ptx)
        abort();
    ptx->text = text;
    for (; *c.line; c.number++) {
        c.line += strspn(c.line, " \t");
        if (!read_line(&c)) {
            ptx_free(ptx);
            return NULL;
        }
        c.line += strcspn(c.line, "\n");
        c.line += *c.line == '\n';
    }
    if (!c.kernel)
        return ptx;
    refuse(&c, "the file ends in a kernel");
    ptx_free(ptx);
    return NULL;
}

struct ptx *ptx_read_file(const char *path, char *words)
{
    FILE *const file = fopen(path, "r");
    char *text = NULL;
    size_t length = 0;

    if (!file) {
        snprintf(words, PTX_WORDS, "%.300s can't be opened", path);
        return NULL;
    }
    if (getdelim(&text, &length, 0, file) < 0) {
        free(text);
        text = strdup("");
    }
    fclose(file);
    return ptx_read(text, words);
}

void ptx_free(struct ptx *ptx)
{
    for (size_t k = 0; ptx && k < ptx->count; k++) {
        free(ptx->kernel[k].slot);
        free(ptx->kernel[k].code);
        free(ptx->kernel[k].ran);
        free(ptx->kernel[k].label);
    }
    if (ptx) {
        free(ptx->kernel);
        free(ptx->text);
    }
    free(ptx);
}
