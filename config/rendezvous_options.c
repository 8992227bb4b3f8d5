/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous_options.c - resolves --standalone, --rdzv-backend, --rdzv-endpoint, --master-addr and
 * --master-port as torchrun does.
 *
 * A static job of one node without a port, such as `ctrun ./app`, needs no rendezvous.  In such a
 * job torchrun silently ignores --master-addr, but ctrun uses it. */
#include "config/rendezvous_options.h"

#include <stdio.h>
#include <string.h>

static enum outcome bad_endpoint(char *error, size_t size, const struct why *why)
{
    snprintf(error, size, "--rdzv-endpoint: %s", why->text);
    return OPTIONS_WRONG;
}

static enum outcome check_node_rank(const struct options *options, char *error, size_t size)
{
    const int last = options->nnodes.max - 1;
    char words[600];

    if (options->node_rank <= last)
        return OPTIONS_RUN;
    setting_words(options, OPTION_NODE_RANK, words, sizeof words);
    if (last > 0)
        snprintf(error, size, "%s: with --nnodes=%d the nodes are 0 to %d", words, last + 1, last);
    else
        snprintf(
            error, size,
            "%s: with --nnodes=1 the only node is 0; --standalone runs a job on this node alone",
            words);
    return OPTIONS_WRONG;
}

static enum outcome static_meeting(const struct options *options, struct meeting *meeting,
                                   char *error, size_t size)
{
    struct rdzv_endpoint endpoint;
    struct why why;

    meeting->kind = MEET_STATIC;
    if (*options->rdzv_endpoint) {
        if (endpoint_parse(options->rdzv_endpoint, &endpoint, &why) < 0)
            return bad_endpoint(error, size, &why);
        if (endpoint.port < 0) {
            snprintf(error, size,
                     "--rdzv-endpoint: the port is missing in endpoint '%s': write %s:%d",
                     options->rdzv_endpoint, options->rdzv_endpoint, STATIC_PORT);
            return OPTIONS_WRONG;
        }
        snprintf(meeting->host, sizeof meeting->host, "%s", endpoint.host);
        meeting->port = endpoint.port;
        meeting->why = "--rdzv-endpoint: node 0 hosts it";
        return OPTIONS_RUN;
    }
    if (options->surroundings.exchange_of) {
        strcpy(meeting->host, "<node 0>");
        meeting->port = 0;
        meeting->why = "the launcher's PMIx or PMI says where node 0 is";
        return OPTIONS_RUN;
    }
    meeting->port =
        options->master_port || options->surroundings.port_fd ? options->master_port : STATIC_PORT;
    meeting->why = options->nnodes.max > 1
                       ? "several nodes: node 0 hosts it; --master-addr says where"
                       : "--master-port: a static job";
    return OPTIONS_RUN;
}

static enum outcome dynamic_meeting(const struct options *options, struct meeting *meeting,
                                    char *error, size_t size)
{
    struct rdzv_endpoint endpoint;
    struct why why;

    meeting->kind = MEET_DYNAMIC;
    meeting->why = meeting->serves_only ? "--nproc-per-node=0: this ctrun hosts it"
                                        : "c10d: whoever can bind it hosts it";
    if (options->settings[OPTION_NODE_RANK].from != FROM_DEFAULT && options->node_rank != 0)
        meeting->warning = "node_rank is only used for static rdzv_backend: c10d orders the nodes";
    else if (!*options->rdzv_endpoint)
        meeting->warning =
            "master_addr is only used for static rdzv_backend and when rdzv_endpoint "
            "is not specified: meeting at localhost";
    if (options->rdzv_conf.in_a_file) {
        snprintf(meeting->file, sizeof meeting->file, "%s", options->rdzv_endpoint);
        meeting->why = "c10d with store_type=file: one host";
        return OPTIONS_RUN;
    }
    if (endpoint_parse(options->rdzv_endpoint, &endpoint, &why) < 0)
        return bad_endpoint(error, size, &why);
    snprintf(meeting->host, sizeof meeting->host, "%s", endpoint.host);
    meeting->port = endpoint.port < 0 ? C10D_PORT : endpoint.port;
    return OPTIONS_RUN;
}

/* Copies the host without brackets: users write "[::1]", but workers get "::1". */
static void copy_host(char *to, size_t size, const char *host)
{
    const size_t length = strlen(host);

    if (length > 2 && host[0] == '[' && host[length - 1] == ']')
        snprintf(to, size, "%.*s", (int)(length - 2), host + 1);
    else
        snprintf(to, size, "%s", host);
}

static void rendezvous_options_place_of(const struct options *options, struct meeting *meeting)
{
    const char *named = options->master_addr ? options->master_addr : options->local_addr;

    strcpy(meeting->host, "127.0.0.1");
    if (named && !options->standalone)
        copy_host(meeting->host, sizeof meeting->host, named);
}

static int has_no_workers(const struct options *options)
{
    return options->nproc.kind == NPROC_NUMBER && options->nproc.number == 0;
}

/* Checks the options of a ctrun that has no workers.  Such a ctrun only hosts the rendezvous of an
 * elastic job, and the job may then lose any node. */
static enum outcome check_server(const struct options *options, char *error, size_t size)
{
    char words[600];

    if (!options->standalone && !strcmp(options->rdzv_backend, "c10d") && options->nnodes.max > 1
        && options->rdzv_conf.is_host != 0)
        return OPTIONS_RUN;
    setting_words(options, OPTION_NPROC_PER_NODE, words, sizeof words);
    snprintf(error, size,
             "%s: 0 workers are too few for a job. Without workers, ctrun can host the rendezvous "
             "of an elastic job: give --rdzv-backend=c10d, --rdzv-endpoint=HOST:PORT of this host, "
             "and the --nnodes of the job, which is more than 1",
             words);
    return OPTIONS_WRONG;
}

enum outcome options_meeting(const struct options *options, struct meeting *meeting, char *error,
                             size_t size)
{
    const char *backend = options->rdzv_backend;
    const int is_static = !strcmp(backend, "static");

    *meeting = (struct meeting){ .kind = MEET_ALONE, .why = "one node: nothing is looked up" };
    rendezvous_options_place_of(options, meeting);
    meeting->serves_only = has_no_workers(options);
    if (meeting->serves_only && check_server(options, error, size) != OPTIONS_RUN)
        return OPTIONS_WRONG;
    if (options->standalone) {
        meeting->why = "--standalone: loopback, any free port";
        return OPTIONS_RUN;
    }
    if (is_static && *options->rdzv_conf.no_timeout) {
        snprintf(error, size, "--rdzv-conf: %s", options->rdzv_conf.no_timeout);
        return OPTIONS_WRONG;
    }
    if (is_static && !*options->rdzv_endpoint && options->master_port == 0
        && options->nnodes.max == 1) /* PET_NODE_RANK may be set for other jobs */
        return options->settings[OPTION_NODE_RANK].from == FROM_ENVIRONMENT
                   ? OPTIONS_RUN
                   : check_node_rank(options, error, size);
    if (is_static && check_node_rank(options, error, size) != OPTIONS_RUN)
        return OPTIONS_WRONG;
    if (is_static)
        return static_meeting(options, meeting, error, size);
    if (!strcmp(backend, "c10d"))
        return dynamic_meeting(options, meeting, error, size);
    if (!strcmp(backend, "etcd") || !strcmp(backend, "etcd-v2")) {
        snprintf(error, size,
                 "--rdzv-backend=%s: ctrun does not support etcd; use c10d, which needs only the "
                 "nodes and no server",
                 backend);
        return OPTIONS_WRONG;
    }
    snprintf(error, size,
             "--rdzv-backend: the rendezvous backend '%s' is not registered; use static or c10d",
             backend);
    return OPTIONS_WRONG;
}
