/* SPDX-License-Identifier: Apache-2.0 */
/* algorithm_wishes.c - reading what the user wishes; see algorithm_wishes.h. */
#include "collectives/core/algorithm_wishes.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/core/registry.h"

size_t choices_size(const char *text)
{
    char *end;
    unsigned long long value;

    if (!isdigit((unsigned char)*text))
        return 0;
    errno = 0;
    value = strtoull(text, &end, 10);
    for (const char *unit = "KMGT"; *unit; unit++)
        if (toupper((unsigned char)*end) == *unit) {
            const int shift = 10 * (int)(unit - "KMGT" + 1);

            if (value > SIZE_MAX >> shift)
                return 0;
            value <<= shift;
            end++;
            break;
        }
    return errno || *end || value > SIZE_MAX ? 0 : (size_t)value;
}

static int row_of(int operation, const char *name)
{
    const struct algorithm *const *rows = operation_algorithms(operation);

    for (int row = 0; rows[row]; row++)
        if (!strcmp(rows[row]->name, name))
            return row;
    return -1;
}

enum path_number path_named(const char *name)
{
    for (int i = PATH_NCCL; i < PATH_COUNT; i++)
        if (!strcmp(device_path_name((enum path_number)i), name))
            return (enum path_number)i;
    return PATH_NONE;
}

/* Calls in which ranks may know nothing of each other's sizes take the path that they can. */
static int has_paths(int operation)
{
    return !operation_is_barrier(operation) && !operation_is_agreement(operation)
           && operation_sizes_are_agreed(operation);
}

static ct_status add_wish(struct choices *c, int operation, char *text, const char *source)
{
    const struct algorithm *const *rows = operation_algorithms(operation);
    char *size = strchr(text, ':');
    struct wish wish = { .upto = SIZE_MAX };

    if (size) {
        *size++ = 0;
        wish.upto = choices_size(size);
        if (wish.upto == 0)
            return ct_fail(CT_ERR_INVALID, "%s: \"%s\" of %s:%s is no size; 64K is one", source,
                           size, text, size);
    }
    wish.path = has_paths(operation) ? path_named(text) : PATH_NONE;
    wish.row = row_of(operation, text);
    if (wish.row < 0 && wish.path == PATH_NONE)
        return ct_fail(CT_ERR_INVALID, "%s=%s names no algorithm of %s; the first is \"%s\"",
                       source, text, operation_name(operation), rows[0]->name);
    if (c->count[operation] == MOST_WISHES)
        return ct_fail(CT_ERR_INVALID, "%s: more than %d algorithms of %s", source, MOST_WISHES,
                       operation_name(operation));
    c->wishes[operation][c->count[operation]++] = wish;
    c->overrides |= 1u << wish.path;
    return CT_OK;
}

ct_status choices_add(struct choices *c, int operation, const char *text, const char *source)
{
    char *copy = strdup(text), *rest = copy, *word;
    ct_status status = copy ? CT_OK : ct_fail(CT_ERR_NOMEM, "%s: no memory to read it", source);

    c->count[operation] = 0;
    snprintf(c->source[operation], sizeof c->source[operation], "%s", source);
    while (status == CT_OK && (word = strtok_r(rest, ", \t", &rest)))
        status = add_wish(c, operation, word, source);
    free(copy);
    return status;
}

static char *trim(char *text)
{
    size_t n;

    while (isspace((unsigned char)*text))
        text++;
    for (n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]);)
        text[--n] = 0;
    return text;
}

static ct_status add_line(struct choices *c, char *line, const char *source)
{
    char *value = strchr(line, '='), *name;
    int operation;

    if (!value)
        return ct_fail(CT_ERR_INVALID, "%s: \"%s\" is not operation=algorithm", source, line);
    *value++ = 0;
    name = trim(line);
    operation = collective_named(name);
    if (operation < 0)
        return ct_fail(CT_ERR_INVALID, "%s: \"%s\" is no operation; all_reduce is one", source,
                       name);
    return choices_add(c, operation, trim(value), source);
}

/* number: of the line, for messages; 0: there is only one. */
static ct_status add_parts(struct choices *c, char *line, const char *source, int number)
{
    char where[80], *part;
    ct_status status = CT_OK;

    if (number > 0)
        snprintf(where, sizeof where, "%.60s, line %d", source, number);
    else
        snprintf(where, sizeof where, "%s", source);
    while (status == CT_OK && (part = strsep(&line, ";"))) {
        part = trim(part);
        if (*part)
            status = add_line(c, part, where);
    }
    return status;
}

/* Comments become spaces: a ';' in one divides nothing. */
static void strip_comments(char *text)
{
    for (int inside = 0; *text; text++) {
        inside = *text == '#' || (inside && *text != '\n');
        if (inside)
            *text = ' ';
    }
}

ct_status choices_add_all(struct choices *c, const char *text, const char *source)
{
    char *copy = strdup(text), *rest = copy, *line;
    const int several = strchr(text, '\n') != NULL;
    ct_status status = copy ? CT_OK : ct_fail(CT_ERR_NOMEM, "%s: no memory to read it", source);
    int number = 0;

    if (copy)
        strip_comments(copy);
    while (status == CT_OK && (line = strsep(&rest, "\n")))
        status = add_parts(c, line, source, several ? ++number : 0);
    free(copy);
    return status;
}
