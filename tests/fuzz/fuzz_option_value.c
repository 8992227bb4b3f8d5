/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_option_value.c - one option, any text: the input is "name=value".  The value is parsed, and
 * then what is read of it later, for each rank and line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/options.h"
#include "launcher/stdio/output.h"
#include "launcher/stdio/line_prefix.h"
#include "tests/fuzz/input.h"

enum { WORLD = 12 };

static void look_at_ranks(const char *list)
{
    for (int rank = 0; rank < WORLD; rank++)
        ranks_have(list, rank, WORLD);
    holds(!ranks_have(list, -1, WORLD));
}

static void look_at_cpus(const char *lists)
{
    unsigned char set[1024];

    if (!strcmp(lists, "gpu") || !strcmp(lists, "numa") || !strcmp(lists, "core")
        || !strcmp(lists, "none"))
        return;
    for (;; lists++) {
        lists = cpu_list(lists, set, sizeof set);
        holds(lists != NULL); /* it was checked */
        if (!*lists)
            return;
    }
}

/* What is kept as text is read again when there are workers. */
static void look_at_text(enum option option, const struct options *o)
{
    const struct prefix_words words = { "role", "host", 3, 1 };
    struct rdzv_endpoint endpoint = { .port = -2 };
    struct why why = { .text = "" };

    if (option == OPTION_SHOW)
        look_at_ranks(o->show);
    else if (option == OPTION_EXEC_ON)
        look_at_ranks(o->exec_on.ranks);
    else if (option == OPTION_BIND)
        look_at_cpus(o->bind);
    else if (option == OPTION_LOCAL_RANKS_FILTER)
        rank_filter_has(o->local_ranks_filter, 3);
    else if (option == OPTION_DUPLICATE_STDOUT_FILTERS)
        filters_match(o->duplicate_stdout_filters, "a, line", 7);
    else if (option == OPTION_LOG_LINE_PREFIX_TEMPLATE)
        free(prefix_expand(o->log_line_prefix_template, &words));
    else if (option == OPTION_RDZV_ENDPOINT)
        holds(endpoint_parse(o->rdzv_endpoint, &endpoint, &why) == 0
                  ? endpoint.port >= -1 && endpoint.port <= 65535
                  : why.text[0]);
}

static void check_numbers(enum option option, const struct options *o)
{
    const int port = o->master_port;

    holds(option != OPTION_MASTER_PORT || (port >= 0 && port <= 65535));
    holds(option != OPTION_NNODES || (o->nnodes.min >= 1 && o->nnodes.max >= o->nnodes.min));
    holds(option != OPTION_MAX_RESTARTS || o->max_restarts.most >= 0);
    holds(option != OPTION_MAX_RESTARTS || o->max_restarts.window_seconds >= 0);
    holds(option != OPTION_ON_FAILURE || o->on_failure.least >= 0);
    holds(option != OPTION_MONITOR_INTERVAL || o->monitor_interval > 0);
    holds(option != OPTION_STORE_CLIENTS || o->store_clients >= 1);
    holds(option != OPTION_SHUTDOWN_TIMEOUT || o->shutdown_timeout >= 0);
    holds(option != OPTION_STDIN || o->stdin_to.rank >= 0);
    holds(option != OPTION_RDZV_CONF
          || (o->rdzv_conf.timeout >= 0 && o->rdzv_conf.join_timeout >= 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *value;
    struct options options = { 0 };
    struct why why = { .text = "" };
    const struct option_row *row;
    enum option option;

    holds(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    value = strchr(text, '=');
    if (value)
        *value++ = '\0';
    option = value ? option_named(text) : OPTIONS;
    row = option < OPTIONS ? option_row(option) : NULL;
    if (!row || !row->parse) {
        free(text);
        return -1;
    }
    if (row->parse(value, (char *)&options + row->field, &why) < 0) {
        holds(why.text[0]); /* no refusal without a reason */
    } else {
        check_numbers(option, &options);
        look_at_text(option, &options);
    }
    free(text);
    return 0;
}
