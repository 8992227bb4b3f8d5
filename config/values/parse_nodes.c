/* SPDX-License-Identifier: Apache-2.0 */
/* parse_nodes.c - parses MIN:MAX (--nnodes), host:port (--rdzv-endpoint) and the keys of
 * --rdzv-conf. */
#include "config/values/parse_nodes.h"

#include "config/values/suggest.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

int parse_nnodes(const char *text, void *field, struct why *why)
{
    struct nodes_range range;
    char low[32];
    const char *colon = strchr(text, ':');

    snprintf(low, sizeof low, "%.*s", colon ? (int)(colon - text) : 31, text);
    if (value_int(low, &range.min) < 0 || value_int(colon ? colon + 1 : text, &range.max) < 0)
        return value_wrong(why, "'%s' is not in \"MIN:MAX\" format, nor a number of nodes", text);
    if (range.min < 1 || range.max < range.min)
        return value_wrong(why,
                           "min_nodes=%d, max_nodes=%d: it must be 1 <= min_nodes <= max_nodes",
                           range.min, range.max);
    *(struct nodes_range *)field = range;
    return 0;
}

/* ---- host[:port] ------------------------------------------------------------ */

static int parse_endpoint_port(const char *text, int *port)
{
    const size_t length = strspn(text, "0123456789");

    return length < 1 || length > 5 || text[length] || value_int(text, port) < 0 || *port > 65535
               ? -1
               : 0;
}

/* The port follows the last colon.  A text that is all in brackets, such as [::1], has no port. */
int endpoint_parse(const char *text, struct rdzv_endpoint *endpoint, struct why *why)
{
    const size_t length = strlen(text);
    const int all_brackets = length > 1 && text[0] == '[' && text[length - 1] == ']';
    const char *colon = all_brackets ? NULL : strrchr(text, ':');
    size_t host = colon ? (size_t)(colon - text) : length;

    *endpoint = (struct rdzv_endpoint){ "localhost", -1 };
    if (!*text)
        return 0;
    if (colon && parse_endpoint_port(colon + 1, &endpoint->port) < 0)
        return value_wrong(why,
                           "the port of the rendezvous endpoint '%s' must be an integer between 0 "
                           "and 65536",
                           text);
    if (host > 1 && text[0] == '[' && text[host - 1] == ']') {
        text++;
        host -= 2;
    }
    for (size_t i = 0; i < host; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("_.:-", text[i]) && !(text[i] & 0x80))
            host = 0;
    if (host == 0 || host >= sizeof endpoint->host)
        return value_wrong(why,
                           "the hostname of the rendezvous endpoint '%s' must be a dot-separated "
                           "list of labels, an IPv4 address, or an IPv6 address in brackets",
                           text);
    memcpy(endpoint->host, text, host);
    endpoint->host[host] = 0;
    return 0;
}

/* ---- k=v,k=v ---------------------------------------------------------------- */

struct conf_row {
    const char *key, *words; /* words is the key's name in torchrun's errors */
    size_t field;
    int least;
    unsigned read_by; /* the kinds of rendezvous that read the key, as bits */
};

enum { NEITHER = 0, FIXED = 1, DYNAMIC = 2 };

#define FIELD(name) offsetof(struct rdzv_conf, name)

static const struct conf_row conf_rows[] = {
    { "join_timeout", "join timeout", FIELD(join_timeout), 1, DYNAMIC },
    { "last_call_timeout", "last call timeout", FIELD(last_call_timeout), 0, DYNAMIC },
    { "close_timeout", "close timeout", FIELD(unread), 1, NEITHER },
    { "heartbeat_timeout", "heartbeat timeout", FIELD(unread), 1, NEITHER },
    { "keep_alive_interval", "keep-alive interval", FIELD(keep_alive_interval), 1,
      FIXED | DYNAMIC },
    { "keep_alive_max_attempt", "keep-alive attempts", FIELD(keep_alive_max_attempt), 1,
      FIXED | DYNAMIC },
    { "read_timeout", "read timeout", FIELD(unread), 1, NEITHER },
    { "timeout", "timeout", FIELD(timeout), 1, FIXED },
};

static int parse_boolean(const char *text, int *value)
{
    static const char *const yes[] = { "1", "true", "t", "yes", "y" };
    static const char *const no[] = { "0", "false", "f", "no", "n" };

    for (int i = 0; i < 5; i++)
        if (!strcasecmp(text, yes[i]) || !strcasecmp(text, no[i])) {
            *value = !strcasecmp(text, yes[i]);
            return 0;
        }
    return -1;
}

/* Stores the timeout, or the reason why it is wrong.  The reason is not an error yet.  Whether the
 * job uses the timeout is known only when all options are read. */
static void take_timeout(struct rdzv_conf *conf, const char *value)
{
    int number;

    conf->no_timeout[0] = 0;
    if (value_int(value, &number) < 0)
        snprintf(conf->no_timeout, sizeof conf->no_timeout,
                 "the option 'timeout' is not an integer: '%.80s'", value);
    else if (number < 1)
        snprintf(conf->no_timeout, sizeof conf->no_timeout,
                 "the timeout (timeout) must be positive, not %d", number);
    else
        conf->timeout = number;
}

static void nodes_note_unknown(struct rdzv_conf *conf, const char *key)
{
    struct suggestion best = { NULL, 0 };

    if (*conf->unknown)
        return;
    for (size_t i = 0; i < sizeof conf_rows / sizeof *conf_rows; i++)
        suggest(&best, key, conf_rows[i].key);
    suggest(&best, key, "is_host");
    suggest(&best, key, "store_type");
    snprintf(conf->unknown, sizeof conf->unknown, "%s", key);
    conf->meant = best.word;
}

/* Stores one key and its value.  Ignores an unknown key, as torchrun does, but notes it for ctrun's
 * warning. */
static int take_conf(struct rdzv_conf *conf, const char *key, const char *value, struct why *why)
{
    int known = !strcmp(key, "is_host") || !strcmp(key, "store_type");

    for (size_t i = 0; i < sizeof conf_rows / sizeof *conf_rows; i++) {
        const struct conf_row *row = &conf_rows[i];
        int number;

        if (strcmp(key, row->key) != 0)
            continue;
        known = 1;
        conf->given |= 1u << i;
        if (row->field == FIELD(timeout)) {
            take_timeout(conf, value);
            continue;
        }
        if (value_int(value, &number) < 0)
            return value_wrong(why, "the option '%s' is not an integer: '%s'", key, value);
        if (number < row->least)
            return value_wrong(why, "the %s (%s) must be positive, not %d", row->words, key,
                               number);
        *(int *)((char *)conf + row->field) = number;
        conf->keep_alive_given |= !strncmp(key, "keep_alive_", 11);
    }
    if (!strcmp(key, "is_host") && parse_boolean(value, &conf->is_host) < 0)
        return value_wrong(why, "the option 'is_host' is neither true nor false: '%s'", value);
    if (!strcmp(key, "store_type") && strcasecmp(value, "file") != 0
        && strcasecmp(value, "tcp") != 0)
        return value_wrong(why, "the option 'store_type' must be tcp or file, not '%s'", value);
    if (!strcmp(key, "store_type"))
        conf->in_a_file = !strcasecmp(value, "file");
    if (!known)
        nodes_note_unknown(conf, key);
    return 0;
}

const char *rdzv_conf_idle(const struct rdzv_conf *conf, int dynamic)
{
    for (size_t i = 0; i < sizeof conf_rows / sizeof *conf_rows; i++)
        if (conf->given >> i & 1 && !(conf_rows[i].read_by & (dynamic ? DYNAMIC : FIXED)))
            return conf_rows[i].key;
    if (!dynamic && conf->in_a_file)
        return "store_type";
    return !dynamic && conf->is_host >= 0 ? "is_host" : NULL;
}

/* Copies text[0..length) without the blanks around it. */
static void trimmed(const char *text, size_t length, char *to, size_t size)
{
    while (length > 0 && isspace((unsigned char)*text)) {
        text++;
        length--;
    }
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    snprintf(to, size, "%.*s", (int)length, text);
}

int parse_rdzv_conf(const char *text, void *field, struct why *why)
{
    struct rdzv_conf conf = { .join_timeout = 600,
                              .last_call_timeout = 30,
                              .keep_alive_interval = 5,
                              .keep_alive_max_attempt = 3,
                              .timeout = 900,
                              .is_host = -1 };
    const char *at = text + strspn(text, " \t\n");

    while (*at || (at > text && at[-1] == ',')) {
        const size_t item = strcspn(at, ","), name = strcspn(at, ",=");
        char key[64], value[256] = "";

        trimmed(at, name, key, sizeof key);
        if (name < item)
            trimmed(at + name + 1, item - name - 1, value, sizeof value);
        if (!*key)
            return value_wrong(why,
                               "the rendezvous configuration '%s' must be in format "
                               "<key1>=<value1>,...,<keyN>=<valueN>",
                               text);
        if (!*value)
            return value_wrong(why, "the rendezvous configuration option '%s' must have a value",
                               key);
        if (take_conf(&conf, key, value, why) < 0)
            return -1;
        if (!at[item])
            break;
        at += item + 1;
    }
    /* torchrun accepts millions of years, since Python's integers do not overflow. */
    if ((int64_t)conf.keep_alive_interval * conf.keep_alive_max_attempt > INT32_MAX)
        return value_wrong(why,
                           "keep_alive_interval=%d times keep_alive_max_attempt=%d is more than "
                           "%d s, 68 years",
                           conf.keep_alive_interval, conf.keep_alive_max_attempt, INT32_MAX);
    *(struct rdzv_conf *)field = conf;
    return 0;
}
