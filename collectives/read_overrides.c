/* SPDX-License-Identifier: Apache-2.0 */
/* read_overrides.c - reads the user's overrides (read_overrides.h), which name algorithms of the
 * tables in registry.c.
 *
 * The world reads the environment once.  A group made from the world has the same overrides, or its
 * own. */
#include "collectives/read_overrides.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectives/registry.h"

/* ---- Text ------------------------------------------------------------------------ */

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

static enum path_number path_named(const char *name)
{
    for (int i = PATH_NCCL; i < PATH_COUNT; i++)
        if (!strcmp(device_path_name((enum path_number)i), name))
            return (enum path_number)i;
    return PATH_NONE;
}

/* Says whether an override may name a path.  If the ranks do not know each other's sizes, no path
 * may be named. */
static int has_paths(int operation)
{
    return !operation_is_barrier(operation) && !operation_is_agreement(operation)
           && operation_sizes_are_agreed(operation);
}

static ct_status add_override(struct choices *c, int operation, char *text, const char *source)
{
    const struct algorithm *const *rows = operation_algorithms(operation);
    char *size = strchr(text, ':');
    struct algorithm_override override = { .upto = SIZE_MAX };

    if (size) {
        *size++ = 0;
        override.upto = choices_size(size);
        if (override.upto == 0)
            return ct_fail(CT_ERR_INVALID,
                           "%s: \"%s\" of %s:%s is not a size; use a size such as 64K", source,
                           size, text, size);
    }
    override.path = has_paths(operation) ? path_named(text) : PATH_NONE;
    override.row = row_of(operation, text);
    if (override.row < 0 && override.path == PATH_NONE)
        return ct_fail(CT_ERR_INVALID, "%s=%s names no algorithm of %s; the first is \"%s\"",
                       source, text, operation_name(operation), rows[0]->name);
    if (c->count[operation] == MOST_OVERRIDES)
        return ct_fail(CT_ERR_INVALID, "%s: more than %d algorithms of %s", source, MOST_OVERRIDES,
                       operation_name(operation));
    c->overrides[operation][c->count[operation]++] = override;
    c->paths |= 1u << override.path;
    return CT_OK;
}

/* Replaces the overrides of an operation by those in `text`. */
static ct_status choices_add(struct choices *c, int operation, const char *text, const char *source)
{
    char *copy = strdup(text), *rest = copy, *word;
    ct_status status = copy ? CT_OK : ct_fail(CT_ERR_NOMEM, "%s: no memory to read it", source);

    c->count[operation] = 0;
    snprintf(c->source[operation], sizeof c->source[operation], "%s", source);
    while (status == CT_OK && (word = strtok_r(rest, ", \t", &rest)))
        status = add_override(c, operation, word, source);
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

/* Returns the model of a TCP network.  A message costs some system calls and a wake-up at either
 * end, and headers take 4 % of a wire. */
struct network_model network_model_of(const struct network_figures *known)
{
    const double overhead_us = 12;
    const double round_trip_us = known && known->round_trip_us ? known->round_trip_us : 12;
    const double mbit_per_s = known && known->mbit_per_s ? known->mbit_per_s : 10000;

    return (struct network_model){ .alpha_us = 2 * overhead_us + round_trip_us / 2,
                                   .overhead_us = overhead_us,
                                   .us_per_byte = 8 / (0.96 * mbit_per_s) };
}

/* Reads "30us,1.2GB/s" or "30us,1.2GB/s,3us".  The last value is the extra time of each further
 * message at the same time. */
static ct_status network_read(struct choices *choices, const char *text, const char *source)
{
    const locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    const locale_t of_program = uselocale(plain); /* the program's locale may write 1,2 for 1.2 */
    double latency = 0, bandwidth = 0, overhead = choices->network.overhead_us;
    int end = 0, read;

    read = sscanf(text, "%lfus,%lfGB/s%n,%lfus%n", &latency, &bandwidth, &end, &overhead, &end);
    uselocale(of_program);
    if (plain)
        freelocale(plain);
    if (read < 2 || end == 0 || text[end] || !(latency > 0 && latency < 1e9)
        || !(bandwidth > 1e-6 && bandwidth < 1e6) || !(overhead >= 0 && overhead < 1e9))
        return ct_fail(
            CT_ERR_INVALID,
            "%s: \"%s\" is not a network; use a latency and a bandwidth such as 30us,1.2GB/s",
            source, text);
    choices->network = (struct network_model){ latency, overhead, 1 / (1e3 * bandwidth) };
    choices->network_is_given = 1;
    return CT_OK;
}

static ct_status overrides_add_line(struct choices *c, char *line, const char *source)
{
    char *value = strchr(line, '='), *name;
    int operation;

    if (!value)
        return ct_fail(CT_ERR_INVALID, "%s: \"%s\" is not operation=algorithm", source, line);
    *value++ = 0;
    name = trim(line);
    if (!strcmp(name, "network"))
        return network_read(c, trim(value), source);
    operation = collective_named(name);
    if (operation < 0)
        return ct_fail(CT_ERR_INVALID,
                       "%s: \"%s\" is not an operation; use a name such as all_reduce", source,
                       name);
    return choices_add(c, operation, trim(value), source);
}

/* Adds the parts of a line, which are separated by semicolons.  number: the number of the line, for
 * messages; 0 if the text has only one line. */
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
            status = overrides_add_line(c, part, where);
    }
    return status;
}

/* Replaces comments by spaces, so that a ';' in a comment separates nothing. */
static void strip_comments(char *text)
{
    for (int inside = 0; *text; text++) {
        inside = *text == '#' || (inside && *text != '\n');
        if (inside)
            *text = ' ';
    }
}

/* Adds all overrides of `text`, each as "operation=override", separated by newlines or ';'.  '#'
 * begins a comment. */
static ct_status choices_add_all(struct choices *c, const char *text, const char *source)
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

/* ---- The environment ---------------------------------------------------------- */

/* Opens the file of CT_TUNING.  Uses O_NONBLOCK, since opening a FIFO would otherwise block until
 * another process writes to it.  Refuses a FIFO and every other file that is not regular. */
static ct_status overrides_open_file(const char *path, FILE **file)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;

    if (fd < 0)
        return ct_fail(CT_ERR_SYSTEM, "CT_TUNING: %s: %s", path, strerror(errno));
    if (fstat(fd, &info) == 0 && !S_ISREG(info.st_mode)) {
        close(fd);
        return ct_fail(CT_ERR_INVALID, "CT_TUNING: %s is not a regular file", path);
    }
    *file = fdopen(fd, "r");
    if (*file)
        return CT_OK;
    close(fd);
    return ct_fail(CT_ERR_NOMEM, "CT_TUNING: no memory to read %s", path);
}

static ct_status overrides_read_file(struct choices *choices, const char *path)
{
    char text[16384], source[80];
    FILE *file;
    ct_status status = overrides_open_file(path, &file);
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
        return ct_fail(
            CT_ERR_INVALID,
            "CT_TUNING: %s has more than the %zu bytes that a file of overrides may have", path,
            sizeof text - 2);
    snprintf(source, sizeof source, "CT_TUNING (%.46s)", path);
    return choices_add_all(choices, text, source);
}

static ct_status read_device(struct choices *choices)
{
    const char *word = getenv("CT_DEVICE");

    choices->device = word ? path_named(word) : PATH_NONE;
    if (!word || !*word || choices->device != PATH_NONE || !strcmp(word, "auto"))
        return CT_OK;
    return ct_fail(CT_ERR_INVALID, "CT_DEVICE=%s is not valid; use auto, fused, nccl or staged",
                   word);
}

static ct_status read_handover(struct choices *choices)
{
    const char *word = getenv("CT_HANDOVER");

    choices->by_streams = !word || strcmp(word, "host") != 0;
    if (!word || !*word || !choices->by_streams || !strcmp(word, "stream"))
        return CT_OK;
    return ct_fail(CT_ERR_INVALID, "CT_HANDOVER=%s is not valid; use host or stream", word);
}

/* Reads CT_TUNING and the other variables.  The variable of an operation replaces what the file
 * says about that operation. */
static ct_status overrides_read_environment(struct choices *choices)
{
    const char *path = getenv("CT_TUNING"), *explained = getenv("CT_EXPLAIN");
    const char *network = getenv("CT_NETWORK");
    ct_status status = path && *path ? overrides_read_file(choices, path) : CT_OK;

    if (status == CT_OK && network && *network)
        status = network_read(choices, network, "CT_NETWORK");

    choices->explain = explained && *explained && strcmp(explained, "0") != 0;
    if (status == CT_OK)
        status = read_device(choices);
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

/* The group begins with the model that all hosts know from their kernels or from the user.  The
 * model becomes a part of the history, so ranks that were told different networks get an error from
 * their first call. */
static ct_status network_open(ct_group *group)
{
    struct group_algorithms *a = &group->algorithms;
    uint64_t words[3];

    a->network = malloc(sizeof *a->network);
    if (!a->network)
        return ct_fail(CT_ERR_NOMEM, "no memory for the choice of algorithms");
    *a->network = (struct network){ .model = a->choices->network,
                                    .claimed = a->choices->network.us_per_byte,
                                    .is_given = a->choices->network_is_given };
    memcpy(words, &a->choices->network, sizeof words);
    if (group->order.hosts > 1)
        group->history = (uint32_t)(((words[0] * 31 + words[1]) * 31 + words[2]
                                     + (uint64_t)a->choices->network_is_given)
                                        * 0x9e3779b97f4a7c15u
                                    >> 32);
    return CT_OK;
}

/* Sets the choices of a group.  A root group reads the environment.  A group made from the root
 * shares the root's choices, or gets a copy to which its own overrides are added. */
ct_status choices_open(ct_group *group, const char *overrides)
{
    ct_status status = CT_OK;

    if (group->root != group && !overrides) {
        group->algorithms.choices = group->root->algorithms.choices;
        group->on_device.no_rendezvous = group->root->on_device.no_rendezvous;
        return network_open(group);
    }
    group->algorithms.choices = calloc(1, sizeof *group->algorithms.choices);
    if (!group->algorithms.choices)
        return ct_fail(CT_ERR_NOMEM, "no memory for the choice of algorithms");
    group->algorithms.owns_choices = 1;
    group->algorithms.choices->network =
        network_model_of(group->mesh ? &group->mesh->network : NULL);
    if (group->root == group)
        status = overrides_read_environment(group->algorithms.choices);
    else
        *group->algorithms.choices = *group->root->algorithms.choices;
    group->on_device.no_rendezvous = group->algorithms.choices->device == PATH_STAGED;
    if (status == CT_OK && overrides)
        status =
            choices_add_all(group->algorithms.choices, overrides, "ct_group_options.algorithms");
    if (status == CT_OK && overrides && !(group->algorithms.overrides = strdup(overrides)))
        status = ct_fail(CT_ERR_NOMEM, "no memory for the choice of algorithms");
    return status == CT_OK ? network_open(group) : status;
}
