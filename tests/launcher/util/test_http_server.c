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

enum { OTHERS = 300, CLIENTS = 140 };

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

static void its_own_connections_count_and_no_other_descriptors(void **state)
{
    struct event_base *base = event_base_new();
    struct http_server server;
    int listener, port, others[OTHERS], clients[CLIENTS], asked = 0, gone = 0;
    char reply[500] = "";

    (void)state;
    assert_int_equal(socket_listen("127.0.0.1", 0, &listener), CT_OK);
    port = socket_port(listener);
    assert_int_equal(http_server_open(&server, base, listener, &hooks, &asked), 0);
    for (int i = 0; i < OTHERS; i++)
        assert_true((others[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = client(port);
        turn(base);
        assert_int_equal(event_pending(&server.again, EV_TIMEOUT, NULL) != 0, i >= 127);
    }
    event_active(&server.again, EV_TIMEOUT, 0); /* still too many */
    turn(base);
    assert_true(event_pending(&server.again, EV_TIMEOUT, NULL));
    assert_int_equal(server.connections, 128);
    server.connection[5].since_ms -= 10000; /* has asked for nothing for so long */
    event_active(&server.again, EV_TIMEOUT, 0);
    turn(base);
    event_active(&server.again, EV_TIMEOUT, 0);
    turn(base);
    for (int i = 0; i < CLIENTS; i++)
        gone += recv(clients[i], reply, sizeof reply, MSG_DONTWAIT) == 0;
    assert_int_equal(gone, 1);
    for (int i = 0; i < CLIENTS; i++)
        close(clients[i]);
    turn(base);
    event_active(&server.again, EV_TIMEOUT, 0); /* a moment later */
    turn(base);
    assert_false(event_pending(&server.again, EV_TIMEOUT, NULL));
    clients[0] = client(port);
    assert_int_equal(send(clients[0], "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL), 18);
    turn(base);
    assert_true(recv(clients[0], reply, sizeof reply - 1, 0) > 0);
    assert_non_null(strstr(reply, "200 OK"));
    assert_non_null(strstr(reply, "\r\n\r\nyes\n"));
    assert_int_equal(asked, 1);
    close(clients[0]);
    for (int i = 0; i < OTHERS; i++)
        close(others[i]);
    http_server_close(&server);
    http_server_close(&server);
    event_base_free(base);
}

static int is_admitted;

static int admits(int fd, void *arg)
{
    (void)fd;
    (void)arg;
    return is_admitted;
}

static void who_is_not_admitted_is_sent_away(void **state)
{
    static const struct http_hooks choosy = { .answer = answer, .admits = admits };
    struct event_base *base = event_base_new();
    struct http_server server;
    int listener, stranger, friend, asked = 0;
    char reply[500];

    (void)state;
    assert_int_equal(socket_listen("127.0.0.1", 0, &listener), CT_OK);
    assert_int_equal(http_server_open(&server, base, listener, &choosy, &asked), 0);
    is_admitted = 0;
    stranger = client(socket_port(listener));
    turn(base);
    assert_int_equal(recv(stranger, reply, sizeof reply, 0), 0);
    is_admitted = 1;
    friend = client(socket_port(listener));
    turn(base);
    assert_int_equal(recv(friend, reply, sizeof reply, MSG_DONTWAIT), -1); /* it may ask */
    assert_int_equal(server.connections, 1);
    close(stranger);
    close(friend);
    http_server_close(&server);
    event_base_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_own_connections_count_and_no_other_descriptors),
        cmocka_unit_test(who_is_not_admitted_is_sent_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
