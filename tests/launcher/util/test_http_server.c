/* SPDX-License-Identifier: Apache-2.0 */
/* test_http_server.c - heads as hostile clients send them, how many connections there are, and what
 * becomes of clients that send, read or close nothing.  The loop turns when a test says so. */
#include "tests/harness.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/util/http_server.h"
#include "runtime/net/socket.h"
#include "runtime/util/clock.h"

#define HEAD "GET / HTTP/1.1\r\nHost: localhost\r\n"
#define LARGE (16 << 20) /* more than the kernel takes from a server at once */

/* A server, and what it was asked last. */
struct site {
    struct event_base *base;
    struct http_server server;
    int port;
    int asked;
    struct http_connection *client;
    int answers_later;
    const char *body;
    size_t size;
};

static void on_request(struct http_connection *client, void *arg)
{
    struct site *site = arg;

    site->asked++;
    site->client = client;
    if (!site->answers_later)
        http_answer(client, "200 OK", "text/plain", "", site->body, site->size);
}

static void turn(struct site *site)
{
    for (int i = 0; i < 20; i++)
        event_base_loop(site->base, EVLOOP_NONBLOCK);
}

static void open_site(struct site *site)
{
    int listener;

    *site = (struct site){ .base = event_base_new(), .body = "yes\n", .size = 4 };
    assert_int_equal(socket_listen("127.0.0.1", 0, &listener), CT_OK);
    site->port = socket_port(listener);
    http_server_open(&site->server, site->base, listener, on_request, site);
}

static void close_site(struct site *site)
{
    http_server_close(&site->server);
    http_server_close(&site->server);
    event_base_free(site->base);
}

static int connect_to(struct site *site)
{
    int fd = -1;

    assert_int_equal(socket_connect_once("127.0.0.1", site->port, NO_DEADLINE, &fd), CT_OK);
    turn(site);
    return fd;
}

static void sends(struct site *site, int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);

        assert_true(sent > 0);
        bytes += sent;
        size -= (size_t)sent;
        turn(site);
    }
}

static int is_gone(int fd)
{
    char reply[500];

    return recv(fd, reply, sizeof reply, MSG_DONTWAIT) == 0;
}

/* What the server sent until now, with its end as "|". */
static const char *reply_to(int fd)
{
    static char reply[1000];
    size_t used = 0;
    ssize_t got;

    while ((got = recv(fd, reply + used, sizeof reply - 2 - used, MSG_DONTWAIT)) > 0)
        used += (size_t)got;
    snprintf(reply + used, 2, "%s", got == 0 ? "|" : "");
    return reply;
}

/* The status of the answer to a request on a new connection. */
static const char *answer_to(struct site *site, const char *request, size_t size)
{
    const int fd = connect_to(site);
    const char *reply;

    sends(site, fd, request, size);
    reply = reply_to(fd);
    close(fd);
    turn(site);
    assert_int_equal(site->server.connections, 0);
    return reply;
}

static void answered(struct site *site, const char *request, size_t size, const char *status)
{
    const char *const reply = answer_to(site, request, size);

    if (strncmp(reply, "HTTP/1.1 ", 9) != 0 || strncmp(reply + 9, status, strlen(status)) != 0
        || reply[strlen(reply) - 1] != '|')
        fail_msg("%.60s: %.40s instead of %s", request, reply, status);
}

static void asks(struct site *site, int fd)
{
    const int before = site->asked;

    sends(site, fd, HEAD "\r\n", strlen(HEAD "\r\n"));
    assert_string_equal(reply_to(fd),
                        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: no-store\r\n"
                        "X-Content-Type-Options: nosniff\r\nConnection: close\r\n"
                        "Content-Length: 4\r\n\r\nyes\n|");
    assert_int_equal(site->asked, before + 1);
}

/* ---- Heads --------------------------------------------------------------------------- */

static void a_head_may_come_in_two_pieces(void **state)
{
    const char request[] = HEAD "Accept: text/html\r\n\r\n";
    struct site site;

    (void)state;
    open_site(&site);
    for (size_t first = 1; first < strlen(request); first++) {
        const int fd = connect_to(&site);

        sends(&site, fd, request, first);
        assert_int_equal(site.asked, (int)first - 1);
        assert_string_equal(reply_to(fd), "");
        sends(&site, fd, request + first, strlen(request) - first);
        assert_int_equal(site.asked, (int)first);
        assert_non_null(strstr(reply_to(fd), "\r\n\r\nyes\n|"));
        close(fd);
    }
    close_site(&site);
}

static void a_request_is_handed_over_in_parts(void **state)
{
    const char request[] = "HEAD /a/b?c=d&e=?f HTTP/1.0\r\nhost:  there:80\r\nX-Host: no\r\n"
                           "AUTHORIZATION: Bearer a:b\r\nEmpty:\r\n\r\n";
    struct site site;
    int fd;

    (void)state;
    open_site(&site);
    site.answers_later = 1;
    fd = connect_to(&site);
    sends(&site, fd, request, strlen(request));
    assert_string_equal(site.client->path, "/a/b");
    assert_string_equal(site.client->query, "c=d&e=?f");
    assert_string_equal(site.client->host, "there:80");
    assert_string_equal(site.client->authorization, "Bearer a:b");
    http_stream(site.client, "text/plain");
    turn(&site);
    assert_non_null(strstr(reply_to(fd), "Connection: close\r\n\r\n|"));
    close(fd);
    fd = connect_to(&site);
    sends(&site, fd, "GET / HTTP/1.1\r\n\r\n", 18);
    assert_null(site.client->query);
    assert_null(site.client->host);
    assert_null(site.client->authorization);
    close(fd);
    close_site(&site);
}

static void head_gets_the_length_and_no_body(void **state)
{
    const char request[] = "HEAD / HTTP/1.1\r\n\r\n";
    struct site site;

    (void)state;
    open_site(&site);
    assert_non_null(
        strstr(answer_to(&site, request, strlen(request)), "Content-Length: 4\r\n\r\n|"));
    close_site(&site);
}

static void what_is_not_a_request_is_refused(void **state)
{
#define CASE(request, status)                \
    {                                        \
        request, sizeof(request) - 1, status \
    }
    static const struct {
        const char *request;
        size_t size;
        const char *status;
    } cases[] = {
        CASE("\r\n\r\n", "400"),
        CASE("GET\r\n\r\n", "400"),
        CASE("GET /\r\n\r\n", "400"),
        CASE(" / HTTP/1.1\r\n\r\n", "400"),
        CASE("GET  / HTTP/1.1\r\n\r\n", "400"),
        CASE("GET http://localhost/ HTTP/1.1\r\n\r\n", "400"),
        CASE("GET / HTTP/1.1 \r\n\r\n", "400"),
        CASE("GET / HTTP/2.0\r\n\r\n", "400"),
        CASE("GET / HTTP/1.\r\n\r\n", "400"),
        CASE("GET / HTTP/1.10\r\n\r\n", "400"),
        CASE("GET / more HTTP/1.1\r\n\r\n", "400"),
        CASE("PRI * HTTP/2.0\r\n\r\n", "400"),
        CASE("GET / HTTP/1.1\r\nno colon\r\n\r\n", "400"),
        CASE("GET / HTTP/1.1\r\nHost : localhost\r\n\r\n", "400"),
        CASE("GET / HTTP/1.1\r\nA: b\r\n folded: c\r\n\r\n", "400"),
        CASE("GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", "400"),
        CASE("\0GET / HTTP/1.1\r\n\r\n", "400"),
        CASE("GET / HTTP/1.1\r\n\0\r\n\r\n", "400"),
        CASE("\x16\x03\x01\x02\x00\x01\r\n\r\n", "400"),
        CASE("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "405 Method Not Allowed"),
        CASE("get / HTTP/1.1\r\n\r\n", "405"),
        CASE("GETS / HTTP/1.1\r\n\r\n", "405"),
    };
    struct site site;

    (void)state;
    open_site(&site);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        answered(&site, cases[i].request, cases[i].size, cases[i].status);
    assert_non_null(
        strstr(answer_to(&site, "PUT / HTTP/1.1\r\n\r\n", 18), "\r\nAllow: GET, HEAD\r\n"));
    assert_int_equal(site.asked, 0);
    close_site(&site);
}

/* Of "A: b" the last one is longer. */
static size_t head_of(char *head, size_t size)
{
    size_t used = strlen(HEAD);

    memcpy(head, HEAD, used);
    for (; used + 2 + 6 + 6 <= size; used += 6)
        memcpy(head + used, "A: b\r\n", 6);
    memcpy(head + used, "A: b", 4);
    memset(head + used + 4, 'c', size - used - 8);
    memcpy(head + size - 4, "\r\n\r\n", 4);
    return size;
}

static void a_head_of_more_than_8_kib_is_refused(void **state)
{
    char head[2 * HTTP_HEAD];
    struct site site;

    (void)state;
    open_site(&site);
    answered(&site, head, head_of(head, HTTP_HEAD), "200 OK");
    answered(&site, head, head_of(head, HTTP_HEAD + 1), "431 Request Header Fields Too Large");
    answered(&site, head, head_of(head, sizeof head), "431");
    memset(head, 'a', sizeof head);
    answered(&site, head, sizeof head, "431");
    assert_int_equal(site.asked, 1);
    close_site(&site);
}

static void a_second_request_on_a_connection_is_ignored(void **state)
{
    const char request[] = HEAD "\r\n" HEAD "\r\n";
    struct site site;
    int fd;

    (void)state;
    open_site(&site);
    answered(&site, request, strlen(request), "200");
    assert_int_equal(site.asked, 1);
    fd = connect_to(&site);
    asks(&site, fd);
    sends(&site, fd, HEAD "\r\n", strlen(HEAD "\r\n"));
    assert_string_equal(reply_to(fd), "|");
    assert_int_equal(site.asked, 2);
    close(fd);
    close_site(&site);
}

/* ---- Clients ------------------------------------------------------------------------- */

static void a_crowd_that_says_nothing_makes_room_for_a_client_that_asks(void **state)
{
    enum { SHUT_OUT = 40 };
    int clients[HTTP_CONNECTIONS + SHUT_OUT], last;
    struct site site;

    (void)state;
    open_site(&site);
    for (int i = 0; i < HTTP_CONNECTIONS + SHUT_OUT; i++) {
        clients[i] = connect_to(&site);
        if (i == 0) { /* it is answered later */
            site.answers_later = 1;
            sends(&site, clients[0], HEAD "\r\n", strlen(HEAD "\r\n"));
            site.answers_later = 0;
        }
    }
    assert_int_equal(site.server.connections, HTTP_CONNECTIONS);
    for (int i = 0; i < HTTP_CONNECTIONS + SHUT_OUT; i++) /* those that were silent for longest */
        assert_int_equal(is_gone(clients[i]), i >= 1 && i <= SHUT_OUT);
    last = connect_to(&site);
    asks(&site, last);
    asks(&site, clients[SHUT_OUT + 2]);
    http_answer(site.server.connection[0], "200 OK", "text/plain", "", "late\n", 5);
    turn(&site);
    assert_non_null(strstr(reply_to(clients[0]), "\r\n\r\nlate\n|"));
    for (int i = 0; i < HTTP_CONNECTIONS + SHUT_OUT; i++)
        close(clients[i]);
    close(last);
    turn(&site);
    assert_int_equal(site.server.connections, 0);
    close_site(&site);
}

static void a_crowd_takes_an_eighth_of_the_descriptors(void **state)
{
    struct rlimit before, few;
    struct site site;
    int clients[16];

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    open_site(&site);
    for (int i = 0; i < 16; i++)
        clients[i] = connect_to(&site);
    assert_int_equal(site.server.connections, 8);
    asks(&site, clients[15]);
    for (int i = 0; i < 16; i++)
        close(clients[i]);
    close_site(&site);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void a_crowd_that_was_answered_and_does_not_close_makes_room(void **state)
{
    int clients[HTTP_CONNECTIONS + 1];
    struct site site;

    (void)state;
    open_site(&site);
    for (int i = 0; i <= HTTP_CONNECTIONS; i++) {
        clients[i] = connect_to(&site);
        asks(&site, clients[i]);
    }
    assert_int_equal(site.server.connections, HTTP_CONNECTIONS);
    for (int i = 0; i <= HTTP_CONNECTIONS; i++)
        close(clients[i]);
    close_site(&site);
}

static void a_crowd_that_waits_for_answers_keeps_its_places(void **state)
{
    int clients[HTTP_CONNECTIONS], last;
    struct site site;

    (void)state;
    open_site(&site);
    site.answers_later = 1;
    for (int i = 0; i < HTTP_CONNECTIONS; i++) {
        clients[i] = connect_to(&site);
        sends(&site, clients[i], HEAD "\r\n", strlen(HEAD "\r\n"));
    }
    last = connect_to(&site);
    assert_true(is_gone(last));
    for (int i = 0; i < HTTP_CONNECTIONS; i++) {
        assert_false(is_gone(clients[i]));
        close(clients[i]);
    }
    close(last);
    close_site(&site);
}

static void a_client_that_asks_for_nothing_is_shut_out_after_a_while(void **state)
{
    struct timeval due, now;
    struct site site;
    int late, in_time;

    (void)state;
    open_site(&site);
    late = connect_to(&site);
    sends(&site, late, HEAD, strlen(HEAD)); /* not all of it */
    in_time = connect_to(&site);
    assert_true(event_pending(&site.server.connection[0]->late, EV_TIMEOUT, &due));
    event_base_gettimeofday_cached(site.base, &now);
    assert_in_range(due.tv_sec - now.tv_sec, 1, 10);
    event_active(&site.server.connection[0]->late, EV_TIMEOUT, 0); /* 10 s later */
    turn(&site);
    assert_true(is_gone(late));
    asks(&site, in_time);
    event_active(&site.server.connection[0]->late, EV_TIMEOUT, 0); /* it has not closed */
    turn(&site);
    assert_int_equal(site.server.connections, 0);
    close(late);
    close(in_time);
    close_site(&site);
}

static void a_client_may_shut_down_its_side_and_still_be_answered(void **state)
{
    struct site site;
    int fd;

    (void)state;
    open_site(&site);
    site.answers_later = 1;
    fd = connect_to(&site);
    sends(&site, fd, HEAD "\r\n", strlen(HEAD "\r\n"));
    shutdown(fd, SHUT_WR);
    turn(&site);
    http_answer(site.client, "200 OK", "text/plain", "", "yes\n", 4);
    turn(&site);
    assert_non_null(strstr(reply_to(fd), "\r\n\r\nyes\n|"));
    assert_int_equal(site.server.connections, 0);
    close(fd);
    close_site(&site);
}

/* With SO_LINGER of 0 s the kernel sends a reset. */
static void resets(int fd)
{
    const struct linger now = { 1, 0 };

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    close(fd);
}

static void a_client_that_leaves_leaves_no_connection(void **state)
{
    struct site site;

    (void)state;
    open_site(&site);
    for (int i = 0; i < 8; i++) {
        const int fd = connect_to(&site);

        site.answers_later = i >= 4;
        site.body = calloc(1, LARGE);
        site.size = LARGE;
        if (i >= 2)
            sends(&site, fd, HEAD "\r\n", strlen(HEAD "\r\n"));
        if (i >= 6)
            http_stream(site.client, "text/event-stream");
        turn(&site);
        assert_int_equal(site.server.connections, 1);
        i % 2 ? (void)close(fd) : resets(fd);
        turn(&site);
        if (i == 5) /* it could have shut down its side alone; the answer finds no one */
            http_answer(site.client, "200 OK", "text/plain", "", site.body, site.size);
        turn(&site);
        turn(&site);
        assert_int_equal(site.server.connections, 0);
        free((char *)site.body);
    }
    close_site(&site);
}

static void a_client_that_talks_on_is_shut_out(void **state)
{
    static const char talk[1 << 17];
    struct site site;
    int fd;

    (void)state;
    open_site(&site);
    site.answers_later = 1;
    fd = connect_to(&site);
    sends(&site, fd, HEAD "\r\n", strlen(HEAD "\r\n"));
    http_stream(site.client, "text/event-stream");
    turn(&site);
    assert_int_equal(site.server.connections, 1);
    assert_true(send(fd, talk, sizeof talk, MSG_NOSIGNAL | MSG_DONTWAIT) > 0);
    for (int i = 0; i < 100 && site.server.connections > 0; i++)
        turn(&site);
    assert_int_equal(site.server.connections, 0);
    close(fd);
    close_site(&site);
}

static size_t read_all(struct site *site, int fd)
{
    static char piece[1 << 16];
    size_t bytes = 0;
    ssize_t got;

    while ((got = recv(fd, piece, sizeof piece, MSG_DONTWAIT)) != 0) {
        if (got < 0 && errno != EAGAIN)
            fail_msg("after %zu bytes: %s", bytes, strerror(errno));
        bytes += got > 0 ? (size_t)got : 0;
        if (site)
            turn(site);
    }
    return bytes;
}

static void a_client_that_reads_slowly_gets_all_and_one_that_reads_nothing_is_shut_out(void **state)
{
    struct site site;
    int slow, deaf;

    (void)state;
    open_site(&site);
    site.body = calloc(1, LARGE);
    site.size = LARGE;
    slow = connect_to(&site);
    deaf = connect_to(&site);
    sends(&site, slow, HEAD "\r\n", strlen(HEAD "\r\n"));
    sends(&site, deaf, HEAD "\r\n", strlen(HEAD "\r\n"));
    assert_int_equal(site.server.connection[0]->state, HTTP_ANSWERED);
    assert_true(event_pending(&site.server.connection[1]->writable, EV_TIMEOUT, NULL));
    event_active(&site.server.connection[1]->writable, EV_TIMEOUT, 0); /* 10 s later */
    turn(&site);
    assert_int_equal(site.server.connections, 1);
    assert_true(read_all(&site, slow) > LARGE);
    close(slow);
    close(deaf);
    free((char *)site.body);
    close_site(&site);
}

static void answers_are_sent_though_the_loop_has_ended(void **state)
{
    struct site site;
    int deaf, watches, waits;
    int64_t begin;

    (void)state;
    open_site(&site);
    site.answers_later = 1;
    site.body = calloc(1, LARGE);
    deaf = connect_to(&site);
    sends(&site, deaf, HEAD "\r\n", strlen(HEAD "\r\n"));
    http_answer(site.client, "200 OK", "text/plain", "", site.body, LARGE);
    watches = connect_to(&site);
    sends(&site, watches, HEAD "\r\n", strlen(HEAD "\r\n"));
    http_stream(site.client, "text/event-stream");
    http_send(site.client, &(struct text){ .data = (char *)"over\n", .used = 5 });
    waits = connect_to(&site);
    sends(&site, waits, HEAD "\r\n", strlen(HEAD "\r\n"));
    http_answer(site.client, "200 OK", "text/plain", "", "last\n", 5);
    begin = clock_ms();
    http_server_close(&site.server);
    assert_in_range(clock_ms() - begin, 100, 60000); /* of the one that reads nothing */
    assert_non_null(strstr(reply_to(watches), "\r\n\r\nover\n|"));
    assert_non_null(strstr(reply_to(waits), "\r\n\r\nlast\n|"));
    close(deaf);
    close(watches);
    close(waits);
    free((char *)site.body);
    close_site(&site);
}

static void without_a_free_descriptor_the_listener_rests(void **state)
{
    int fd = -1, other, taken[64], count = 0;
    struct rlimit before, few;
    struct site site;

    (void)state;
    open_site(&site);
    other = connect_to(&site);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = (rlim_t)other + 10;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while ((taken[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        count++;
    close(taken[--count]); /* for the client's end */
    assert_int_equal(socket_connect_once("127.0.0.1", site.port, NO_DEADLINE, &fd), CT_OK);
    turn(&site);
    assert_int_equal(site.server.connections, 1);
    assert_false(event_pending(&site.server.incoming, EV_READ, NULL));
    assert_true(event_pending(&site.server.incoming, EV_TIMEOUT, NULL));
    asks(&site, other);
    while (count > 0)
        close(taken[--count]);
    event_active(&site.server.incoming, EV_TIMEOUT, 0); /* a second later */
    turn(&site);
    asks(&site, fd);
    assert_true(event_pending(&site.server.incoming, EV_READ, NULL));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(fd);
    close(other);
    close_site(&site);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_may_come_in_two_pieces),
        cmocka_unit_test(a_request_is_handed_over_in_parts),
        cmocka_unit_test(head_gets_the_length_and_no_body),
        cmocka_unit_test(what_is_not_a_request_is_refused),
        cmocka_unit_test(a_head_of_more_than_8_kib_is_refused),
        cmocka_unit_test(a_second_request_on_a_connection_is_ignored),
        cmocka_unit_test(a_crowd_that_says_nothing_makes_room_for_a_client_that_asks),
        cmocka_unit_test(a_crowd_takes_an_eighth_of_the_descriptors),
        cmocka_unit_test(a_crowd_that_was_answered_and_does_not_close_makes_room),
        cmocka_unit_test(a_crowd_that_waits_for_answers_keeps_its_places),
        cmocka_unit_test(a_client_that_asks_for_nothing_is_shut_out_after_a_while),
        cmocka_unit_test(a_client_may_shut_down_its_side_and_still_be_answered),
        cmocka_unit_test(a_client_that_leaves_leaves_no_connection),
        cmocka_unit_test(a_client_that_talks_on_is_shut_out),
        cmocka_unit_test(
            a_client_that_reads_slowly_gets_all_and_one_that_reads_nothing_is_shut_out),
        cmocka_unit_test(answers_are_sent_though_the_loop_has_ended),
        cmocka_unit_test(without_a_free_descriptor_the_listener_rests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
