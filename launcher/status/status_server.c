/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/status/status_server.h"

#include <errno.h>
#include <event2/event.h>
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
#include "runtime/net/peer_uid.h"
#include "runtime/util/clock.h"
#include "runtime/util/error.h"
#include "runtime/util/log.h"

#define CLIENTS 64     /* most connections that wait for an answer or read /events */
#define LEAST_TOKEN 16 /* fewest characters of a token */
#define APART_MS 250   /* least time in ms between two looks, even if clients ask more often */

/* Kinds of answers that a client gets after a look.  A connection stores its kind. */
enum { WANTS_JSON, WANTS_METRICS, WATCHES, KINDS };

static const struct {
    const char *path, *type;
} paths[KINDS] = {
    [WANTS_JSON] = { "/api/job", "application/json" },
    [WANTS_METRICS] = { "/metrics", "text/plain; version=0.0.4; charset=utf-8" },
    [WATCHES] = { "/events", "text/event-stream" },
};

/* ---- Who may read -------------------------------------------------------------------- */

/* True if the token is right.  Compares all characters, so that the time does not show how many of
 * them are right. */
static int same_token(const struct status_server *status, const char *given)
{
    const size_t length = strlen(status->token);
    unsigned char differs = 0;

    if (strlen(given) != length)
        return 0;
    for (size_t i = 0; i < length; i++)
        differs |= (unsigned char)(given[i] ^ status->token[i]);
    return differs == 0;
}

/* True if the request has the token.  A client writes the token as "?token=...", or in the header
 * "Authorization: Bearer ...", as Prometheus does. */
static int has_token(const struct status_server *status, const struct http_connection *client)
{
    char *words = client->query, *word;
    int has = client->authorization && !strncmp(client->authorization, "Bearer ", 7)
              && same_token(status, client->authorization + 7);

    while ((word = strsep(&words, "&")))
        has |= !strncmp(word, "token=", 6) && same_token(status, word + 6);
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

/* True if the client used a name or address of this host.  This prevents DNS rebinding, where the
 * web page of a stranger makes this user's browser connect to this server under a name of the
 * stranger that resolves to this host.  The browser would then let that page read the answer.  A
 * stranger can't choose an address or a name of this host. */
static int is_our_name(const struct status_server *status, const char *given)
{
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

/* Returns NULL if the client may read the page, else the error message for the client. */
static const char *refuses(const struct status_server *status, const struct http_connection *client)
{
    if (has_token(status, client))
        return NULL;
    if (!is_own_process(status, client->fd))
        return status->is_local
                   ? "this page shows a job of another user: it needs the token that the user gave "
                     "to ctrun as CT_STATUS_TOKEN, as ?token=TOKEN or in a header, Authorization: "
                     "Bearer TOKEN\n"
                   : "this page shows a job of another user or host: it needs the token that ctrun "
                     "printed, as ?token=TOKEN or in a header, Authorization: Bearer TOKEN\n";
    if (!is_our_name(status, client->host))
        return "ask for this page by the address at which ctrun serves it, or by this host's "
               "name\n";
    return NULL;
}

/* ---- Answers ------------------------------------------------------------------------- */

static struct job_facts facts_of(const struct status_server *status)
{
    struct job_facts facts = { .version = CT_VERSION };

    status->hooks->facts(status->arg, &facts);
    return facts;
}

static int is_client(const struct http_connection *connection)
{
    return connection->state == HTTP_WAITS || connection->state == HTTP_STREAMS;
}

/* Returns the number of clients that wait for a look or read /events. */
static int clients(const struct status_server *status)
{
    int count = 0;

    for (int i = 0; i < status->http.connections; i++)
        count += is_client(status->http.connection[i]);
    return count;
}

static void print_page(const struct status_server *status, int kind, int is_over, struct text *page)
{
    const struct job_facts facts = facts_of(status);

    if (kind == WATCHES)
        text_print(page, "event: %s\ndata: ", is_over ? "over" : "job");
    (kind == WANTS_METRICS ? board_metrics : board_json)(&status->board, &facts, page);
    if (kind == WATCHES)
        text_add(page, "\n\n", 2);
}

/* Sends the result of the last look to all clients.  Prints each form only once, and only if a
 * client wants the form.  A client of /events misses an event if the previous event is not sent
 * yet, except for the last event, which is always sent. */
static void answer_all(struct status_server *status, int is_over)
{
    struct text pages[KINDS] = { { 0 } };

    for (int i = 0; i < status->http.connections; i++) {
        struct http_connection *const client = status->http.connection[i];
        struct text *const page = &pages[client->kind];

        if (is_client(client) && page->used == 0)
            print_page(status, client->kind, is_over, page);
        if (client->state == HTTP_WAITS)
            http_answer(client, "200 OK", paths[client->kind].type, "", page->data, page->used);
        else if (client->state == HTTP_STREAMS && (client->answer.used == 0 || is_over))
            http_send(client, page);
    }
    for (int kind = 0; kind < KINDS; kind++)
        free(pages[kind].data);
}

/* ---- Looks --------------------------------------------------------------------------- */

static void end_look(struct status_server *status)
{
    status->is_looking = 0;
    status->looked_ms = clock_ms();
    event_del(&status->turn);
    board_judge(&status->board);
    answer_all(status, 0);
    if (clients(status) > 0) /* only clients of /events are left */
        event_add(&status->turn, &(struct timeval){ 1, 0 });
}

void status_rows(struct status_server *status, int restarts, struct text *rows)
{
    char host[64];

    status->was_asked = 1;
    node_host_name(status->options, host, sizeof host);
    node_rows_print(&status->rows, host, restarts, rows);
}

static void look_here(struct status_server *status, const struct job_facts *facts)
{
    struct text rows = { 0 };

    status_rows(status, facts->restarts, &rows);
    board_take(&status->board, facts->node, status->board.look, 1, rows.data, rows.used);
    free(rows.data);
}

static void begin_look(struct status_server *status)
{
    const struct job_facts facts = facts_of(status);

    if (board_set_nodes(&status->board, facts.nodes) < 0)
        log_line(LOG_WARN, "out of memory: the page of --status does not show all of %d nodes",
                 facts.nodes);
    status->is_looking = 1;
    status->board.look = (status->board.look + 1) & 0x7fffffff; /* messages have an int */
    status->awaited = status->hooks->look(status->arg, status->board.look);
    if (status->rows.size > 0) {
        look_here(status, &facts);
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
    if (board_take(&status->board, node, look, bytes == 0, rows, bytes) < 0
        && !status->complained) {
        status->complained = 1;
        log_line(
            LOG_WARN,
            "--status: what node %d shows of its ranks can't be read; does it run another version?",
            node);
    }
    if (status->is_looking && board_answers(&status->board) >= status->awaited)
        end_look(status);
}

/* ---- Requests ------------------------------------------------------------------------ */

static void client_add(struct status_server *status, struct http_connection *client, int kind)
{
    const int left_ms = time_left_ms(status->looked_ms + APART_MS, APART_MS);

    if (clients(status) > CLIENTS) {
        http_refuse(client, "503 Service Unavailable", "too many read this page already\n");
        return;
    }
    client->kind = kind;
    if (kind == WATCHES)
        http_stream(client, paths[kind].type);
    if (is_client(client) && !status->is_looking)
        event_add(&status->turn, &(struct timeval){ 0, left_ms * 1000 });
}

static void send_page(struct http_connection *client)
{
    http_answer(client, "200 OK", "text/html; charset=utf-8",
                "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "
                "script-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "
                "form-action 'none'; frame-ancestors 'none'\r\n"
                "Referrer-Policy: no-referrer\r\n", /* the URL has the token */
                status_page, strlen(status_page));
}

static void on_request(struct http_connection *client, void *arg)
{
    const char *const why = refuses(arg, client);

    if (why) {
        http_refuse(client, "403 Forbidden", why);
        return;
    }
    for (int kind = 0; kind < KINDS; kind++)
        if (!strcmp(client->path, paths[kind].path)) {
            client_add(arg, client, kind);
            return;
        }
    if (!strcmp(client->path, "/"))
        send_page(client);
    else
        http_refuse(client, "404 Not Found", "there are /, /events, /api/job and /metrics\n");
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
    if (given && given[strspn(given, plain)]) { /* the token is a part of the page's URL */
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

/* True if a server that has died left its socket file, which would prevent a new server. */
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

int status_open(struct status_server *status, struct event_base *base,
                const struct options *options, const struct control_host *control, int serves,
                const struct status_hooks *hooks, void *arg)
{
    int listener;

    *status =
        (struct status_server){ .options = options, .netlink = -1, .hooks = hooks, .arg = arg };
    node_rows_setup(&status->rows, base, control);
    evtimer_assign(&status->turn, base, on_turn, status);
    if (!options->status.is_on || !serves)
        return 0;
    if (make_token(status->token) < 0
        || (listener = listen_for(&options->status, &status->socket_file)) < 0)
        return 1;
    status->netlink = peer_uid_open();
    status->is_local = *options->status.path || socket_is_loopback(listener);
    say_where(status, listener);
    http_server_open(&status->http, base, listener, on_request, status);
    return 0;
}

void status_begin_round(struct status_server *status, struct worker *workers, int size)
{
    status->was_asked = 0;
    if (node_rows_begin(&status->rows, workers, size, status->options->status.is_on) < 0)
        log_line(
            LOG_WARN,
            "out of memory: --status will not show the time in calls of the ranks on this host");
}

void status_end_round(struct status_server *status)
{
    if (status->options)
        node_rows_end(&status->rows);
}

/* Removes the socket file, unless another job has made its own socket file at the same path. */
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
    if (!status->options)
        return;
    node_rows_end(&status->rows);
    event_del(&status->turn);
    if (clients(status) > 0) {
        const struct job_facts facts = facts_of(status);

        if (status->rows.size > 0)
            look_here(status, &facts);
        board_judge(&status->board);
        answer_all(status, 1);
    }
    http_server_close(&status->http);
    remove_socket(status);
    node_rows_free(&status->rows);
    board_free(&status->board);
    if (status->netlink >= 0)
        close(status->netlink);
}
