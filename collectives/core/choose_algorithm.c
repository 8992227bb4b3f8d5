/* SPDX-License-Identifier: Apache-2.0 */
/* choose_algorithm.c - which algorithm carries out a call.
 *
 * The first that the user wishes (algorithm_wishes.h) and that can, else the first of the
 * operation's rows that can and that says it is good for so many bytes.  Only what all ranks agree
 * on decides, so all take the same; the number of the row travels in the signature, and ranks that
 * were told differently find out.
 *
 * The world reads the environment once; a group made from it has the same wishes, or its own. */
#include "collectives/core/algorithm_wishes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectives/core/registry.h"
#include "runtime/util/log.h"

/* ---- Choosing -------------------------------------------------------------- */

/* What a wish's size is compared with; blocks of which not all know the size count as large. */
static size_t size_of(const struct call *c)
{
    return c->signature.count == 0 && blocks_bytes(c, &c->send) + blocks_bytes(c, &c->recv) > 0
               ? SIZE_MAX
               : call_bytes(c);
}

static int can(const struct algorithm *row, const struct call *c)
{
    return !row->fits || row->fits(c);
}

/* -1: no wish is for this call. */
static int wished(const struct choices *choices, const struct call *c, int *cannot)
{
    const int operation = c->signature.operation;
    const struct algorithm *const *rows = operation_algorithms(operation);
    const size_t size = size_of(c);

    for (int i = 0; i < choices->count[operation]; i++) {
        const struct wish *w = &choices->wishes[operation][i];

        if (w->path != PATH_NONE || size > w->upto)
            continue;
        if (can(rows[w->row], c))
            return w->row;
        *cannot = w->row;
    }
    return -1;
}

/* The same of device memory. */
static enum path_number override_of(const struct choices *choices, const struct call *c)
{
    const int operation = c->signature.operation;

    for (int i = 0; i < choices->count[operation]; i++) {
        const struct wish *w = &choices->wishes[operation][i];

        if (w->path != PATH_NONE && size_of(c) <= w->upto)
            return w->path;
    }
    return PATH_NONE;
}

size_t choices_begin_line(const struct call *c, int on_device, char *line, size_t size)
{
    const size_t bytes = call_bytes(c);
    const uint64_t bit = (uint64_t)1 << (bytes ? 63 - __builtin_clzll(bytes) : 0);
    const int operation = c->signature.operation;

    if (atomic_fetch_or(&c->group->choices->explained[on_device][operation], bit) & bit
        || c->group->rank != 0)
        return 0;
    return (size_t)snprintf(
        line, size,
        "ct: %s, %zu bytes per rank%s, group %s of %d on %d host%s: ", operation_name(operation),
        bytes, on_device ? " on a device" : "", c->group->name, c->group->size, c->group->hosts,
        c->group->hosts == 1 ? "" : "s");
}

void choices_end_line(char *line, size_t used, size_t size)
{
    if (used > size - 2)
        used = size - 2;
    line[used++] = '\n';
    log_text(line, used);
}

static void explain(const struct choices *choices, const struct call *c, int by_wish)
{
    const int operation = c->signature.operation;
    const struct algorithm *const *rows = operation_algorithms(operation);
    char line[512];
    size_t used = choices_begin_line(c, 0, line, sizeof line);

    if (used == 0)
        return;
    if (used < sizeof line)
        used += (size_t)snprintf(line + used, sizeof line - used, "%s, %s", c->algorithm->name,
                                 by_wish ? choices->source[operation] : "the first that suits");
    for (int i = 0; rows[i] && used < sizeof line; i++)
        if (rows[i] != c->algorithm)
            used += (size_t)snprintf(line + used, sizeof line - used, "; %s %s", rows[i]->name,
                                     !can(rows[i], c)                              ? "can't"
                                     : rows[i]->most && size_of(c) > rows[i]->most ? "is for less"
                                                                                   : "could");
    choices_end_line(line, used, sizeof line);
}

/* One row alone, for any size. */
static int is_a_must(const struct choices *choices, int operation)
{
    size_t upto = 0;
    int rows = 0;

    for (int i = 0; i < choices->count[operation]; i++)
        if (choices->wishes[operation][i].path == PATH_NONE) {
            upto = choices->wishes[operation][i].upto;
            rows++;
        }
    return rows == 1 && upto == SIZE_MAX;
}

/* On device memory the algorithm is that of a call which goes through the host. */
static void choose_override(struct call *c)
{
    c->override = override_of(c->group->choices, c);
    c->signature.algorithm |= SIGNATURE_DEVICE | SIGNATURE_WAY(c->override);
}

ct_status call_choose(struct call *c)
{
    const struct algorithm *const *rows = operation_algorithms(c->signature.operation);
    struct choices *choices = c->group->choices;
    int row = -1, cannot = -1, by_wish;

    if (choices->count[c->signature.operation] > 0)
        row = wished(choices, c, &cannot);
    if (row < 0 && cannot >= 0 && is_a_must(choices, c->signature.operation))
        return ct_fail(CT_ERR_UNSUPPORTED, "algorithm \"%s\" can't do this call (%s)",
                       rows[cannot]->name, choices->source[c->signature.operation]);
    by_wish = row >= 0;
    if (!by_wish) /* the last row can always, and is for any size */
        for (row = 0; !can(rows[row], c) || (rows[row]->most && size_of(c) > rows[row]->most);)
            row++;
    c->signature.algorithm = (uint32_t)row;
    c->algorithm = rows[row];
    c->group->last_algorithm = c->algorithm->name;
    if (c->place.space && sizes_are_agreed(c))
        choose_override(c);
    if (choices->explain && !c->place.space)
        explain(choices, c, by_wish);
    return CT_OK;
}

const char *ct_algorithm(const char *operation, int i)
{
    const struct algorithm *const *rows;
    const int number = operation ? collective_named(operation) : -1;

    if (number < 0 || i < 0)
        return NULL;
    rows = operation_algorithms(number);
    for (int row = 0; row < i && rows[row]; row++)
        if (!rows[row + 1])
            return NULL;
    return rows[i] ? rows[i]->name : NULL;
}

const char *ct_last_algorithm(const ct_group *group)
{
    ct_group *g;

    return group_resolve((ct_group *)(uintptr_t)group, &g) == CT_OK ? g->last_algorithm : NULL;
}

/* ---- The user's wishes -------------------------------------------------------- */

/* A FIFO would hold us up until somebody writes there: it is opened without waiting, and refused.
 */
static ct_status open_file(const char *path, FILE **file)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;

    if (fd < 0)
        return ct_fail(CT_ERR_SYSTEM, "CT_TUNING: %s: %s", path, strerror(errno));
    if (fstat(fd, &info) == 0 && !S_ISREG(info.st_mode)) {
        close(fd);
        return ct_fail(CT_ERR_INVALID, "CT_TUNING: %s is no regular file", path);
    }
    *file = fdopen(fd, "r");
    if (*file)
        return CT_OK;
    close(fd);
    return ct_fail(CT_ERR_NOMEM, "CT_TUNING: no memory to read %s", path);
}

static ct_status read_file(struct choices *choices, const char *path)
{
    char text[16384], source[80];
    FILE *file;
    ct_status status = open_file(path, &file);
    size_t n;
    int cause;

    if (status != CT_OK)
        return status;
    n = fread(text, 1, sizeof text - 1, file);
    text[n] = 0;
    cause = ferror(file) ? errno : 0;
    fclose(file);
    if (cause)
        return ct_fail(CT_ERR_SYSTEM, "CT_TUNING: %s: %s", path, strerror(cause));
    if (n == sizeof text - 1)
        return ct_fail(CT_ERR_INVALID,
                       "CT_TUNING: %s has more than the %zu bytes that a file of wishes may have",
                       path, sizeof text - 2);
    snprintf(source, sizeof source, "CT_TUNING (%.46s)", path);
    return choices_add_all(choices, text, source);
}

static ct_status read_override(struct choices *choices)
{
    const char *word = getenv("CT_DEVICE");

    choices->override = word ? path_named(word) : PATH_NONE;
    if (!word || !*word || choices->override != PATH_NONE || !strcmp(word, "auto"))
        return CT_OK;
    return ct_fail(CT_ERR_INVALID, "CT_DEVICE=%s: it may be auto, fused, nccl or staged", word);
}

static ct_status read_handover(struct choices *choices)
{
    const char *word = getenv("CT_HANDOVER");

    choices->by_streams = word && !strcmp(word, "stream");
    if (!word || !*word || choices->by_streams || !strcmp(word, "host"))
        return CT_OK;
    return ct_fail(CT_ERR_INVALID, "CT_HANDOVER=%s: it may be host or stream", word);
}

/* A variable counts for more than the file. */
static ct_status read_environment(struct choices *choices)
{
    const char *path = getenv("CT_TUNING"), *explained = getenv("CT_EXPLAIN");
    ct_status status = path && *path ? read_file(choices, path) : CT_OK;

    choices->explain = explained && *explained && strcmp(explained, "0") != 0;
    if (status == CT_OK)
        status = read_override(choices);
    if (status == CT_OK)
        status = read_handover(choices);
    for (int i = OPERATION_BROADCAST; i < OPERATION_COUNT && status == CT_OK; i++) {
        char variable[48] = "CT_";
        const char *text;

        for (size_t at = 0; operation_name(i)[at] && at < sizeof variable - 4; at++)
            variable[3 + at] =
                operation_name(i)[at] == '_' ? '_' : (char)(operation_name(i)[at] - 'a' + 'A');
        text = getenv(variable);
        if (text && *text)
            status = choices_add(choices, i, text, variable);
    }
    return status;
}

/* Those of a group made from another are the other's, unless it has wishes of its own. */
ct_status choices_open(ct_group *group, const char *wishes)
{
    ct_status status = CT_OK;

    if (group->root != group && !wishes) {
        group->choices = group->root->choices;
        group->no_device_rendezvous = group->root->no_device_rendezvous;
        return CT_OK;
    }
    group->choices = calloc(1, sizeof *group->choices);
    if (!group->choices)
        return ct_fail(CT_ERR_NOMEM, "no memory for the choice of algorithms");
    group->owns_choices = 1;
    if (group->root == group)
        status = read_environment(group->choices);
    else
        *group->choices = *group->root->choices;
    group->no_device_rendezvous = group->choices->override == PATH_STAGED;
    if (status == CT_OK && wishes)
        status = choices_add_all(group->choices, wishes, "ct_group_options.algorithms");
    if (status == CT_OK && wishes && !(group->wishes = strdup(wishes)))
        status = ct_fail(CT_ERR_NOMEM, "no memory for the choice of algorithms");
    return status;
}
