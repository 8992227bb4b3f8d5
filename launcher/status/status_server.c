/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/status/status_server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/keyvalq_struct.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "launcher/nodes/node_messages.h"
#include "launcher/status/page.h"
#include "runtime/net/socket.h"
#include "runtime/store/server/peer_uid.h"
#include "runtime/util/error.h"
#include "runtime/util/log.h"

#define CLIENTS 64     /* that wait or watch */
#define LEAST_TOKEN 16 /* characters */
#define UNREAD_MOST \
    (4 << 20) /* bytes that a slow watcher may have before it; then it misses some */
#define GOODBYE_TURNS 100

/* Who has asked and is answered when the nodes have looked. */
struct status_client {
    enum { WANTS_JSON, WANTS_METRICS, WATCHES } kind;
    struct evhttp_request *request; /* evhttp's */
    struct status_server *status;
    struct status_client *next, **link;
};

/* ---- Who may read -------------------------------------------------------------------- */

/* In a time that does not tell how much of it is right. */
static int same_token(const struct status_server *status, const char *given)
{
    const size_t length = strlen(status->token);
    unsigned char differs = 0;

    if (!given || strlen(given) != length)
        return 0;
    for (size_t i = 0; i < length; i++)
        differs |= (unsigned char)(given[i] ^ status->token[i]);
    return differs == 0;
}

/* "?token=..." or "Authorization: Bearer ...", as Prometheus sends it. */
static int has_token(const struct status_server *status, struct evhttp_request *request)
{
    const char *const query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(request));
    const char *const bearer =
        evhttp_find_header(evhttp_request_get_input_headers(request), "Authorization");
    struct evkeyvalq words;
    int has = bearer && !strncmp(bearer, "Bearer ", 7) && same_token(status, bearer + 7);

    if (!has && query && evhttp_parse_query_str(query, &words) == 0) {
        has = same_token(status, evhttp_find_header(&words, "token"));
        evhttp_clear_headers(&words);
    }
    return has;
}

static int is_own_process(const struct status_server *status, struct evhttp_request *request)
{
    const int fd = bufferevent_getfd(
        evhttp_connection_get_bufferevent(evhttp_request_get_connection(request)));
    struct sockaddr_storage peer = { 0 }, self = { 0 };
    socklen_t peer_size = sizeof peer, self_size = sizeof self;
    uid_t uid = 0;

    if (*status->options->status.path)
        return socket_peer(fd, NULL, &uid) == CT_OK && (uid == geteuid() || uid == 0);
    return getpeername(fd, (struct sockaddr *)&peer, &peer_size) == 0
           && getsockname(fd, (struct sockaddr *)&self, &self_size) == 0
           && peer_uid(status->netlink, &peer, &self, &uid) == PEER_HERE
           && (uid == geteuid() || uid == 0);
}

/* A page of the web may have this user's browser ask us, under a name of its own that it has
 * resolve to this host, and would then read the answer.  It can't choose what is no name, and no
 * name of ours. */
static int is_our_name(const struct status_server *status, struct evhttp_request *request)
{
    const char *const given = evhttp_find_header(evhttp_request_get_input_headers(request), "Host");
    char name[256], host[256] = "";
    const char *colon;

    if (!given || *given == '[' || *status->options->status.path)
        return 1;
    colon = strchr(given, ':');
    snprintf(name, sizeof name, "%.*s", colon ? (int)(colon - given) : (int)strlen(given), given);
    gethostname(host, sizeof host - 1);
    return name[strspn(name, "0123456789.")] == '\0' || !strcasecmp(name, "localhost")
           || !strcasecmp(name, host) || !strcasecmp(name, status->options->status.host);
}

/* NULL, or why not. */
static const char *refuses(const struct status_server *status, struct evhttp_request *request)
{
    if (has_token(status, request))
        return NULL;
    if (!is_own_process(status, request))
        return "this page shows a job of another user or host: it needs the token that ctrun "
               "printed, as ?token=TOKEN or in a header, Authorization: Bearer TOKEN\n";
    if (!is_our_name(status, request))
        return "ask for this page by the address at which ctrun serves it, or by this host's "
               "name\n";
    return NULL;
}

/* ---- Answers ------------------------------------------------------------------------- */

static const char json_type[] = "application/json";
static const char metrics_type[] = "text/plain; version=0.0.4; charset=utf-8";

static void facts_of(struct status_server *status, struct job_facts *facts, int *node, int *nodes)
{
    *facts = (struct job_facts){ .version = CT_VERSION };
    status->hooks->facts(status->arg, facts, node, nodes);
}

static void client_remove(struct status_client *client)
{
    *client->link = client->next;
    if (client->next)
        client->next->link = client->link;
    client->status->count--;
    free(client);
}

/* Its connection is gone, and the request with it. */
static void on_close(struct evhttp_connection *connection, void *arg)
{
    (void)connection;
    client_remove(arg);
}

static void send_event(struct status_client *client, const char *event, const struct text *json)
{
    struct evbuffer *const unread = bufferevent_get_output(
        evhttp_connection_get_bufferevent(evhttp_request_get_connection(client->request)));
    struct evbuffer *const chunk = evbuffer_new();

    if (!chunk || evbuffer_get_length(unread) > UNREAD_MOST) {
        if (chunk)
            evbuffer_free(chunk);
        return;
    }
    evbuffer_add_printf(chunk, "event: %s\ndata: ", event);
    evbuffer_add(chunk, json->data, json->used);
    evbuffer_add(chunk, "\n\n", 2);
    evhttp_send_reply_chunk(client->request, chunk);
    evbuffer_free(chunk);
}

/* All that wait are answered; who watches stays. */
static void answer_clients(struct status_server *status)
{
    struct text json = { 0 }, metrics = { 0 };
    struct job_facts facts;
    int node, nodes;

    facts_of(status, &facts, &node, &nodes);
    board_json(&status->board, &facts, &json);
    board_metrics(&status->board, &facts, &metrics);
    for (struct status_client *client = status->clients, *next; client; client = next) {
        const int is_json = client->kind == WANTS_JSON;
        const struct text *const body = is_json ? &json : &metrics;

        next = client->next;
        if (client->kind == WATCHES) {
            send_event(client, "job", &json);
            continue;
        }
        evhttp_connection_set_closecb(evhttp_request_get_connection(client->request), NULL, NULL);
        http_answer(client->request, HTTP_OK, is_json ? json_type : metrics_type, body->data,
                    body->used);
        client_remove(client);
    }
    free(json.data);
    free(metrics.data);
}

/* ---- Looks --------------------------------------------------------------------------- */

static void end_look(struct status_server *status)
{
    status->is_looking = 0;
    event_del(&status->turn);
    answer_clients(status);
    if (status->clients) /* they watch */
        event_add(&status->turn, &(struct timeval){ 1, 0 });
}

void status_rows(struct status_server *status, int restarts, struct text *rows)
{
    char host[64];

    node_host_name(status->options, host, sizeof host);
    node_rows_print(&status->rows, host, restarts, rows);
}

static void look_here(struct status_server *status, int node, int restarts)
{
    struct text rows = { 0 };

    status_rows(status, restarts, &rows);
    board_take(&status->board, node, status->board.look, 0, rows.data, rows.used);
    board_take(&status->board, node, status->board.look, 1, "", 0);
    free(rows.data);
}

static void begin_look(struct status_server *status)
{
    struct job_facts facts;
    int node, nodes;

    facts_of(status, &facts, &node, &nodes);
    if (board_set_nodes(&status->board, nodes) < 0)
        log_line(LOG_WARN, "out of memory: the page of --status does not show all of %d nodes",
                 nodes);
    status->is_looking = 1;
    status->board.look = (status->board.look + 1) & 0x7fffffff; /* as a number of an int's size */
    status->awaited = status->hooks->look(status->arg, status->board.look);
    if (status->rows.size > 0) {
        look_here(status, node, facts.restarts);
        status->awaited++;
    }
    event_add(&status->turn, &(struct timeval){ 1, 0 });
    if (board_answers(&status->board) >= status->awaited)
        end_look(status);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
    struct status_server *status = arg;

    (void)fd;
    (void)what;
    if (status->is_looking)
        end_look(status);
    else
        begin_look(status);
}

int status_take(struct status_server *status, int node, unsigned look, const char *rows,
                size_t bytes)
{
    if (!status->http.http || look != status->board.look)
        return 0; /* it comes too late */
    if (board_take(&status->board, node, look, bytes == 0, rows, bytes) < 0)
        return -1;
    if (status->is_looking && board_answers(&status->board) >= status->awaited)
        end_look(status);
    return 0;
}

/* ---- Requests ------------------------------------------------------------------------ */

static void client_add(struct status_server *status, struct evhttp_request *request, int kind)
{
    struct status_client *const client = status->count < CLIENTS ? calloc(1, sizeof *client) : NULL;

    if (!client) {
        const char why[] = "too many read this page already\n";

        http_answer(request, HTTP_SERVUNAVAIL, "text/plain", why, strlen(why));
        return;
    }
    client->kind = kind;
    client->request = request;
    client->status = status;
    client->link = &status->clients;
    if ((client->next = status->clients))
        client->next->link = &client->next;
    status->clients = client;
    status->count++;
    evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_close, client);
    if (kind == WATCHES) {
        struct evkeyvalq *const headers = evhttp_request_get_output_headers(request);

        evhttp_add_header(headers, "Content-Type", "text/event-stream");
        evhttp_add_header(headers, "Cache-Control", "no-store");
        evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
        evhttp_send_reply_start(request, HTTP_OK, NULL);
    }
    if (!status->is_looking)
        begin_look(status);
}

static void send_page(struct evhttp_request *request)
{
    struct evkeyvalq *const headers = evhttp_request_get_output_headers(request);

    evhttp_add_header(headers, "Content-Security-Policy",
                      "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                      "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
                      "frame-ancestors 'none'");
    evhttp_add_header(headers, "Referrer-Policy", "no-referrer"); /* the address has the token */
    http_answer(request, HTTP_OK, "text/html; charset=utf-8", status_page, strlen(status_page));
}

static void answer(struct evhttp_request *request, void *arg)
{
    static const struct {
        const char *path;
        int kind;
    } paths[] = { { "/api/job", WANTS_JSON },
                  { "/metrics", WANTS_METRICS },
                  { "/events", WATCHES } };
    struct status_server *const status = arg;
    const struct evhttp_uri *const uri = evhttp_request_get_evhttp_uri(request);
    const char *const path = uri && evhttp_uri_get_path(uri) ? evhttp_uri_get_path(uri) : "";
    const char *const why = refuses(status, request);
    const char none[] = "there are /, /events, /api/job and /metrics\n";

    if (why) {
        http_answer(request, 403, "text/plain", why, strlen(why));
        return;
    }
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (!strcmp(path, paths[i].path)) {
            if (evhttp_request_get_command(request) == EVHTTP_REQ_HEAD)
                http_answer(request, HTTP_OK, "text/plain", "", 0);
            else
                client_add(status, request, paths[i].kind);
            return;
        }
    if (!strcmp(path, "/") || !*path)
        send_page(request);
    else
        http_answer(request, HTTP_NOTFOUND, "text/plain", none, strlen(none));
}

/* ---- Open and closed ------------------------------------------------------------------ */

static int make_token(char *token)
{
    const char *const given = getenv("CT_STATUS_TOKEN");
    unsigned char bytes[16];

    if (given && *given && strlen(given) < LEAST_TOKEN) {
        log_line(LOG_ERROR, "CT_STATUS_TOKEN has %zu characters; it needs %d", strlen(given),
                 LEAST_TOKEN);
        return -1;
    }
    if (given && *given && strlen(given) >= STATUS_TOKEN) {
        log_line(LOG_ERROR, "CT_STATUS_TOKEN is longer than %d characters", STATUS_TOKEN - 1);
        return -1;
    }
    snprintf(token, STATUS_TOKEN, "%s", given ? given : "");
    if (*token)
        return 0;
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        log_line(LOG_ERROR, "--status: no token: %s", strerror(errno));
        return -1;
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* A socket that its server has left behind is in the way of the next one. */
static int listen_at_path(const char *path)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const mode_t mask = umask(0177);
    struct stat info;
    int result;

    memcpy(name.sun_path, path, strlen(path));
    if (fd >= 0 && lstat(path, &info) == 0 && S_ISSOCK(info.st_mode)
        && connect(fd, (struct sockaddr *)&name, sizeof name) < 0 && errno == ECONNREFUSED)
        unlink(path);
    result = fd < 0 || bind(fd, (struct sockaddr *)&name, sizeof name) < 0 || listen(fd, 64) < 0;
    umask(mask);
    if (result) {
        log_line(LOG_ERROR, "--status=unix:%s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
    }
    return result ? -1 : fd;
}

static int listen_for(const struct status_at *at)
{
    int fd = -1;

    if (*at->path)
        return listen_at_path(at->path);
    if (socket_listen(at->host, at->port, &fd) == CT_OK)
        return fd;
    log_line(LOG_ERROR, "--status: %s", ct_last_error());
    return -1;
}

static void say_where(const struct status_server *status, int listener)
{
    const struct status_at *const at = &status->options->status;
    const char *const open = strchr(at->host, ':') ? "[" : "", *const shut = *open ? "]" : "";
    const int is_any = !strcmp(at->host, "0.0.0.0") || !strcmp(at->host, "::");
    char host[256];

    node_host_name(status->options, host, sizeof host);
    if (*at->path)
        log_line(LOG_WARN, "the job's page: curl --unix-socket %s http://localhost/api/job",
                 at->path);
    else if (socket_is_loopback(listener))
        log_line(LOG_WARN, "the job's page: http://%s%s%s:%d/ on %s", open, at->host, shut,
                 socket_port(listener), host);
    else
        log_line(LOG_WARN, "the job's page: http://%s%s%s:%d/?token=%s", is_any ? "" : open,
                 is_any ? host : at->host, is_any ? "" : shut, socket_port(listener),
                 status->token);
}

int status_open(struct status_server *status, struct event_base *base,
                const struct options *options, const struct control_host *control, int serves,
                const struct status_hooks *hooks, void *arg)
{
    int listener;

    *status = (struct status_server){
        .options = options, .base = base, .netlink = -1, .hooks = hooks, .arg = arg
    };
    node_rows_setup(&status->rows, base, control);
    if (!options->status.is_on || !serves)
        return 0;
    if (make_token(status->token) < 0 || (listener = listen_for(&options->status)) < 0)
        return 1;
    status->netlink = peer_uid_open();
    say_where(status, listener);
    evtimer_assign(&status->turn, base, on_turn, status);
    if (http_server_open(&status->http, base, listener, answer, status) == 0)
        return 0;
    log_line(LOG_ERROR, "--status: out of memory");
    return 1;
}

void status_begin_round(struct status_server *status, struct worker *workers, int size)
{
    if (status->options->status.is_on && node_rows_begin(&status->rows, workers, size) < 0)
        log_line(LOG_WARN, "out of memory: the page of --status shows no share of time in calls");
}

void status_end_round(struct status_server *status)
{
    if (status->options)
        node_rows_end(&status->rows);
}

/* Those who watch see the end; the loop turns until it is sent, or for a moment. */
static void say_goodbye(struct status_server *status)
{
    struct job_facts facts;
    struct text json = { 0 };
    int node, nodes;

    if (!status->clients)
        return;
    facts_of(status, &facts, &node, &nodes);
    if (status->rows.size > 0)
        look_here(status, node, facts.restarts);
    board_json(&status->board, &facts, &json);
    for (struct status_client *client = status->clients, *next; client; client = next) {
        next = client->next;
        evhttp_connection_set_closecb(evhttp_request_get_connection(client->request), NULL, NULL);
        if (client->kind == WATCHES) {
            send_event(client, "over", &json);
            evhttp_send_reply_end(client->request);
        } else {
            http_answer(client->request, HTTP_OK, json_type, json.data, json.used);
        }
        client_remove(client);
    }
    free(json.data);
    for (int i = 0; i < GOODBYE_TURNS; i++) {
        event_base_loop(status->base, EVLOOP_NONBLOCK);
        usleep(1000);
    }
}

void status_close(struct status_server *status)
{
    if (!status->options)
        return;
    node_rows_end(&status->rows);
    if (!status->http.http)
        return;
    event_del(&status->turn);
    say_goodbye(status);
    http_server_close(&status->http);
    board_free(&status->board);
    if (status->netlink >= 0)
        close(status->netlink);
    if (*status->options->status.path)
        unlink(status->options->status.path);
}
