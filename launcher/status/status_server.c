/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/status/status_server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/keyvalq_struct.h>
#include <errno.h>
#include <poll.h>
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
#include "runtime/util/clock.h"
#include "runtime/util/error.h"
#include "runtime/util/log.h"

#define CLIENTS 64            /* that wait or watch */
#define LEAST_TOKEN 16        /* characters */
#define UNREAD_MOST (4 << 20) /* bytes that wait for a slow watcher; then it misses events */
#define GOODBYE_MS 100
#define APART_MS 250 /* two looks; a client that asks in between gets the last one's rows */

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

static int is_own_process(const struct status_server *status, int fd)
{
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
    if (!is_own_process(status, http_request_fd(request)))
        return status->is_local
                   ? "this page shows a job of another user: it needs the token that the user gave "
                     "to ctrun as CT_STATUS_TOKEN, as ?token=TOKEN or in a header, Authorization: "
                     "Bearer TOKEN\n"
                   : "this page shows a job of another user or host: it needs the token that ctrun "
                     "printed, as ?token=TOKEN or in a header, Authorization: Bearer TOKEN\n";
    if (!is_our_name(status, request))
        return "ask for this page by the address at which ctrun serves it, or by this host's "
               "name\n";
    return NULL;
}

/* ---- Answers ------------------------------------------------------------------------- */

static const char events_type[] = "text/event-stream";
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

/* The connection is about to go.  evhttp frees the request with it, unless it has taken it off
 * before since its answer was not whole: then it is ours. */
static void on_close(struct evhttp_connection *connection, void *arg)
{
    struct status_client *const client = arg;

    (void)connection;
    if (!evhttp_request_get_connection(client->request))
        evhttp_request_free(client->request);
    client_remove(client);
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

/* The event loop has ended: what evhttp has queued goes now, as far as the other end takes it
 * by then. */
static void send_now(struct evhttp_connection *connection, int64_t end)
{
    struct bufferevent *const to = evhttp_connection_get_bufferevent(connection);
    struct evbuffer *const queue = bufferevent_get_output(to);

    evbuffer_unfreeze(queue, 1);
    while (evbuffer_get_length(queue) > 0 && clock_ms() < end) {
        struct pollfd ready = { bufferevent_getfd(to), POLLOUT, 0 };

        if (poll(&ready, 1, (int)(end - clock_ms())) < 1 || evbuffer_write(queue, ready.fd) < 0)
            break;
    }
    evbuffer_freeze(queue, 1);
}

/* What clients get, each form made when the first of them wants it. */
struct bodies {
    struct text json, metrics;
};

static const struct text *body_for(struct status_server *status, int kind, struct bodies *bodies)
{
    struct text *const body = kind == WANTS_METRICS ? &bodies->metrics : &bodies->json;
    struct job_facts facts;
    int node, nodes;

    if (body->used > 0)
        return body;
    facts_of(status, &facts, &node, &nodes);
    (kind == WANTS_METRICS ? board_metrics : board_json)(&status->board, &facts, body);
    return body;
}

/* One that does not watch gets all, and is gone. */
static void answer_client(struct status_client *client, const char *event, struct bodies *bodies)
{
    const struct text *const body = body_for(client->status, client->kind, bodies);

    if (client->kind == WATCHES) {
        send_event(client, event, body);
        return;
    }
    evhttp_connection_set_closecb(evhttp_request_get_connection(client->request), NULL, NULL);
    http_answer(client->request, HTTP_OK, client->kind == WANTS_METRICS ? metrics_type : json_type,
                body->data, body->used);
    client_remove(client);
}

static void bodies_free(struct bodies *bodies)
{
    free(bodies->json.data);
    free(bodies->metrics.data);
}

static void answer_all(struct status_server *status)
{
    struct bodies bodies = { .json = { 0 } };

    for (struct status_client *client = status->clients, *next; client; client = next) {
        next = client->next;
        answer_client(client, "job", &bodies);
    }
    bodies_free(&bodies);
}

/* The job is over: all clients get their last answer. */
static void say_goodbye(struct status_server *status)
{
    const int64_t end = clock_ms() + GOODBYE_MS;
    struct bodies bodies = { .json = { 0 } };

    for (struct status_client *client = status->clients, *next; client; client = next) {
        struct evhttp_request *const request = client->request;
        struct evhttp_connection *const connection = evhttp_request_get_connection(request);
        const int watches = client->kind == WATCHES;

        next = client->next;
        answer_client(client, "over", &bodies);
        if (watches) {
            evhttp_connection_set_closecb(connection, NULL, NULL);
            evhttp_send_reply_end(request);
            client_remove(client);
        }
        send_now(connection, end);
    }
    bodies_free(&bodies);
}

/* ---- Looks --------------------------------------------------------------------------- */

static void end_look(struct status_server *status)
{
    status->is_looking = 0;
    status->looked_ms = clock_ms();
    event_del(&status->turn);
    answer_all(status);
    if (status->clients) /* they watch */
        event_add(&status->turn, &(struct timeval){ 1, 0 });
}

void status_rows(struct status_server *status, int restarts, struct text *rows)
{
    char host[64];

    status->was_asked = 1;
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

void status_take(struct status_server *status, int node, unsigned look, const char *rows,
                 size_t bytes)
{
    if (!status->http.http)
        return;
    if (board_take(&status->board, node, look, bytes == 0, rows, bytes) < 0
        && !status->complained) {
        status->complained = 1;
        log_line(LOG_WARN,
                 "--status: what node %d shows of its ranks can't be read; is it another "
                 "version?",
                 node);
    }
    if (status->is_looking && board_answers(&status->board) >= status->awaited)
        end_look(status);
}

/* ---- Requests ------------------------------------------------------------------------ */

static void client_add(struct status_server *status, struct evhttp_request *request, int kind)
{
    const int is_head = evhttp_request_get_command(request) == EVHTTP_REQ_HEAD;
    struct bodies bodies = { .json = { 0 } };
    struct status_client *client;

    if (is_head && kind == WATCHES) {
        http_answer(request, HTTP_OK, events_type, "", 0);
        return;
    }
    client = status->count < CLIENTS ? calloc(1, sizeof *client) : NULL;
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

        evhttp_add_header(headers, "Content-Type", events_type);
        evhttp_add_header(headers, "Cache-Control", "no-store");
        evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
        evhttp_send_reply_start(request, HTTP_OK, NULL);
    }
    if (status->is_looking)
        return;
    if (clock_ms() - status->looked_ms >= APART_MS) {
        begin_look(status);
        return;
    }
    answer_client(client, "job", &bodies);
    bodies_free(&bodies);
    if (status->clients && !event_pending(&status->turn, EV_TIMEOUT, NULL))
        event_add(&status->turn, &(struct timeval){ 1, 0 });
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
    const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    unsigned char bytes[16];

    if (given && *given && strlen(given) < LEAST_TOKEN) {
        log_line(LOG_ERROR, "CT_STATUS_TOKEN has %zu characters; it needs at least %d",
                 strlen(given), LEAST_TOKEN);
        return -1;
    }
    if (given && *given && strlen(given) >= STATUS_TOKEN) {
        log_line(LOG_ERROR, "CT_STATUS_TOKEN is longer than %d characters", STATUS_TOKEN - 1);
        return -1;
    }
    if (given && given[strspn(given, plain)]) { /* it stands in an address */
        log_line(LOG_ERROR, "CT_STATUS_TOKEN may have letters, digits, '-', '.' and '_' only");
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

/* Its server is gone: then it is in the way of the next one. */
static int is_left_behind(const struct sockaddr_un *name)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat info;
    int is_dead = fd >= 0 && lstat(name->sun_path, &info) == 0 && S_ISSOCK(info.st_mode)
                  && connect(fd, (const struct sockaddr *)name, sizeof *name) < 0
                  && errno == ECONNREFUSED;

    if (fd >= 0)
        close(fd);
    return is_dead;
}

static int listen_at_path(const char *path, struct stat *socket_file)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const mode_t mask = umask(0177);
    int fails;

    memcpy(name.sun_path, path, strlen(path));
    if (is_left_behind(&name))
        unlink(path);
    fails = fd < 0 || bind(fd, (struct sockaddr *)&name, sizeof name) < 0 || listen(fd, 64) < 0;
    umask(mask);
    if (!fails && lstat(path, socket_file) == 0)
        return fd;
    log_line(LOG_ERROR, "--status=unix:%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static int listen_for(const struct status_at *at, struct stat *socket_file)
{
    int fd = -1;

    if (*at->path)
        return listen_at_path(at->path, socket_file);
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
    else if (status->is_local)
        log_line(LOG_WARN, "the job's page: http://%s%s%s:%d/ on %s", open, at->host, shut,
                 socket_port(listener), host);
    else
        log_line(LOG_WARN, "the job's page: http://%s%s%s:%d/?token=%s", is_any ? "" : open,
                 is_any ? host : at->host, is_any ? "" : shut, socket_port(listener),
                 status->token);
}

static const struct http_hooks http_hooks = { .answer = answer };

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
    if (make_token(status->token) < 0
        || (listener = listen_for(&options->status, &status->socket_file)) < 0)
        return 1;
    status->netlink = peer_uid_open();
    status->is_local = *options->status.path || socket_is_loopback(listener);
    say_where(status, listener);
    evtimer_assign(&status->turn, base, on_turn, status);
    if (http_server_open(&status->http, base, listener, &http_hooks, status) == 0)
        return 0;
    log_line(LOG_ERROR, "--status: out of memory");
    return 1;
}

void status_begin_round(struct status_server *status, struct worker *workers, int size)
{
    status->was_asked = 0;
    if (node_rows_begin(&status->rows, workers, size, status->options->status.is_on) < 0)
        log_line(LOG_WARN, "out of memory: --status shows no time of the ranks here");
}

void status_end_round(struct status_server *status)
{
    if (status->options)
        node_rows_end(&status->rows);
}

/* Another job may have its own there by now. */
static void remove_socket(const struct status_server *status)
{
    const char *const path = status->options->status.path;
    struct stat now;

    if (*path && lstat(path, &now) == 0 && now.st_ino == status->socket_file.st_ino
        && now.st_dev == status->socket_file.st_dev)
        unlink(path);
}

void status_close(struct status_server *status)
{
    struct job_facts facts;
    int node, nodes;

    if (!status->options)
        return;
    node_rows_end(&status->rows);
    if (status->http.http) {
        event_del(&status->turn);
        facts_of(status, &facts, &node, &nodes);
        if (status->clients && status->rows.size > 0)
            look_here(status, node, facts.restarts);
        say_goodbye(status);
        http_server_close(&status->http);
    }
    remove_socket(status);
    node_rows_free(&status->rows);
    board_free(&status->board);
    if (status->netlink >= 0)
        close(status->netlink);
}
