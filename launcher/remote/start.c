/* SPDX-License-Identifier: Apache-2.0 */
/* start.c - writes and reads a struct start as a sequence of strings.  Each string ends with a 0
 * byte.  Numbers are written as decimal text. */
#include "launcher/remote/start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/text.h"

static void start_put(struct text *text, const char *string)
{
    text_add(text, string, strlen(string) + 1);
}

static void put_number(struct text *text, int number)
{
    char digits[16];

    snprintf(digits, sizeof digits, "%d", number);
    start_put(text, digits);
}

static void put_list(struct text *text, char *const *list)
{
    int count = 0;

    while (list[count])
        count++;
    put_number(text, count);
    for (int i = 0; i < count; i++)
        start_put(text, list[i]);
}

char *start_write(const struct start *start, int first, int count, size_t *size)
{
    struct text text = { 0 };

    put_number(&text, start->nodes);
    put_number(&text, first);
    put_number(&text, start->terminals);
    put_number(&text, start->at_once);
    start_put(&text, start->head);
    start_put(&text, start->run_id);
    start_put(&text, start->folder);
    start_put(&text, start->path);
    start_put(&text, start->shell);
    put_number(&text, count);
    for (int i = 0; i < count; i++) {
        const struct host_slots *host = &start->hosts.hosts[first - start->first + i];

        start_put(&text, host->name);
        put_number(&text, host->slots);
    }
    put_list(&text, start->words);
    put_list(&text, start->variables);
    *size = text.used;
    return text.data;
}

/* ---- Reading (after a failed step all later steps fail) --------------------------------- */

struct start_reading {
    char *at, *end;
    int broken;
};

static char *start_get(struct start_reading *in)
{
    char *string = in->at;

    if (in->broken || in->at >= in->end) {
        in->broken = 1;
        return "";
    }
    in->at += strlen(in->at) + 1; /* at most in->end, since the block ends with a 0 byte */
    return string;
}

static int get_number(struct start_reading *in, int most)
{
    char *end, *text = start_get(in);
    const long number = strtol(text, &end, 10);

    if (!*text || *end || number < 0 || number > most)
        in->broken = 1;
    return in->broken ? 0 : (int)number;
}

static char **get_list(struct start_reading *in)
{
    const int count = get_number(in, (int)(in->end - in->at));
    char **list = calloc((size_t)count + 1, sizeof *list);

    for (int i = 0; list && i < count; i++)
        list[i] = start_get(in);
    in->broken |= !list;
    return list;
}

static void get_hosts(struct start_reading *in, struct host_list *hosts)
{
    const int count = get_number(in, (int)(in->end - in->at));

    hosts->hosts = calloc((size_t)count + 1, sizeof *hosts->hosts);
    in->broken |= !hosts->hosts || count == 0;
    for (int i = 0; !in->broken && i < count; i++) {
        snprintf(hosts->hosts[i].name, sizeof hosts->hosts[i].name, "%s", start_get(in));
        hosts->hosts[i].slots = get_number(in, 1 << 22);
    }
    hosts->count = count;
}

int start_read(struct start *start, const char *data, size_t size)
{
    struct start_reading in = { .broken = size == 0 || data[size - 1] != 0 };

    *start = (struct start){ .block = malloc(size + 1) };
    if (!start->block)
        return -1;
    memcpy(start->block, data, size);
    start->block[size] = 0;
    in.at = start->block;
    in.end = start->block + size;
    start->nodes = get_number(&in, 1 << 22);
    start->first = get_number(&in, 1 << 22);
    start->terminals = get_number(&in, 3);
    start->at_once = get_number(&in, 1);
    start->head = start_get(&in);
    start->run_id = start_get(&in);
    start->folder = start_get(&in);
    start->path = start_get(&in);
    start->shell = start_get(&in);
    get_hosts(&in, &start->hosts);
    start->words = get_list(&in);
    start->variables = get_list(&in);
    if (!in.broken && in.at == in.end && start->first + start->hosts.count <= start->nodes)
        return 0;
    start_free(start);
    return -1;
}

void start_free(struct start *start)
{
    host_list_free(&start->hosts);
    free(start->words);
    free(start->variables);
    free(start->block);
    *start = (struct start){ 0 };
}

const char *start_program(const struct start *start)
{
    const char *slash = strrchr(start->path, '/');

    return slash ? slash + 1 : start->path;
}
