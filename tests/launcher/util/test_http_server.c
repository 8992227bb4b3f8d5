/* SPDX-License-Identifier: Apache-2.0 */
/* test_http_server.c - how many connections it takes, and what becomes of others. */
#include "tests/harness.h"

#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/util/http_server.h"
#include "runtime/net/socket.h"
#include "runtime/util/clock.h"

enum { OTHERS = 300 };

static void answer(struct evhttp_request *request, void *arg)
{
    ++*(int *)arg;
    http_answer(request, HTTP_OK, "text/plain", "yes\n", 4);
}

static const struct http_hooks hooks = { .answer = answer };

static void turn(struct event_base *base)
{
    for (int i = 0; i < 20; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
}

static int client(int port)
{
    int fd = -1;

    assert_int_equal(socket_connect_once("127.0.0.1", port, NO_DEADLINE, &fd), CT_OK);
    return fd;
}

static int is_gone(int fd)
{
    char reply[500];

    return recv(fd, reply, sizeof reply, MSG_DONTWAIT) == 0;
}

static void asks(struct event_base *base, int fd)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    char reply[500] = "";

    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), (int)strlen(request));
    turn(base);
    assert_true(recv(fd, reply, sizeof reply - 1, MSG_DONTWAIT) > 0);
    assert_non_null(strstr(reply, "200 OK"));
    assert_non_null(strstr(reply, "\r\n\r\nyes\n"));
}

/* The first client sends a request and stays; the others send nothing.  The last one is one too
 * many. */
static void crowd(struct event_base *base, struct http_server *server, int port,
                  int clients[HTTP_CONNECTIONS])
{
    for (int i = 0; i < HTTP_CONNECTIONS; i++) {
        clients[i] = client(port);
        turn(base);
        if (i == 0)
            asks(base, clients[0]);
        assert_int_equal(event_pending(&server->again, EV_TIMEOUT, NULL) != 0,
                         i == HTTP_CONNECTIONS - 1);
    }
}

static void a_crowd_that_says_nothing_makes_room_for_a_client_that_asks(void **state)
{
    struct event_base *base = event_base_new();
    struct http_server server;
    int listener, port, others[OTHERS], clients[HTTP_CONNECTIONS], last, asked = 0;

    (void)state;
    assert_int_equal(socket_listen("127.0.0.1", 0, &listener), CT_OK);
    port = socket_port(listener);
    assert_int_equal(http_server_open(&server, base, listener, &hooks, &asked), 0);
    for (int i = 0; i < OTHERS; i++) /* other descriptors do not count */
        assert_true((others[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0);
    crowd(base, &server, port, clients);
    assert_int_equal(server.connections, HTTP_CONNECTIONS);
    for (int i = 0; i < HTTP_CONNECTIONS; i++) /* those that have been silent for longest */
        assert_int_equal(is_gone(clients[i]), i >= 1 && i <= HTTP_SHUT);
    last = client(port);
    event_active(&server.again, EV_TIMEOUT, 0); /* a moment later */
    turn(base);
    assert_false(event_pending(&server.again, EV_TIMEOUT, NULL));
    asks(base, last);
    asks(base, clients[0]);
    assert_int_equal(asked, 3);
    for (int i = 0; i < HTTP_CONNECTIONS; i++)
        close(clients[i]);
    close(last);
    for (int i = 0; i < OTHERS; i++)
        close(others[i]);
    http_server_close(&server);
    http_server_close(&server);
    event_base_free(base);
}

static void a_client_that_asks_for_nothing_is_shut_out_after_a_while(void **state)
{
    struct event_base *base = event_base_new();
    struct http_server server;
    int listener, late, in_time, asked = 0;

    (void)state;
    assert_int_equal(socket_listen("127.0.0.1", 0, &listener), CT_OK);
    assert_int_equal(http_server_open(&server, base, listener, &hooks, &asked), 0);
    late = client(socket_port(listener));
    turn(base);
    assert_int_equal(server.connections, 1);
    server.connection[0].since_ms -= 10000;
    in_time = client(socket_port(listener));
    turn(base);
    assert_true(is_gone(late));
    assert_false(is_gone(in_time));
    close(late);
    close(in_time);
    http_server_close(&server);
    event_base_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crowd_that_says_nothing_makes_room_for_a_client_that_asks),
        cmocka_unit_test(a_client_that_asks_for_nothing_is_shut_out_after_a_while),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
