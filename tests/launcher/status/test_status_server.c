/* SPDX-License-Identifier: Apache-2.0 */
/* test_status_server.c - which clients the page answers, with what, and when the nodes look.  The
 * job has no nodes; the loop turns when a test says so. */
#include "tests/harness.h"

#include <event2/event.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/status/status_server.h"
#include "runtime/net/socket.h"
#include "runtime/util/clock.h"

#define LINE (64 << 10)
#define WORD "?token=0123456789abcdef"

struct site {
    struct event_base *base;
    struct options options;
    struct control_host control;
    struct status_server status;
    struct text said;
    int looks, port, nodes;
};

static int look(void *arg, unsigned number)
{
    struct site *site = arg;

    (void)number;
    site->looks++;
    return site->nodes;
}

static void facts(void *arg, struct job_facts *facts)
{
    struct site *site = arg;

    facts->job = "job";
    facts->program = "./app";
    facts->state = "running";
    facts->said = &site->said;
}

static const struct status_hooks hooks = { look, facts };

static void turn(struct site *site)
{
    for (int i = 0; i < 20; i++)
        event_base_loop(site->base, EVLOOP_NONBLOCK);
}

static void open_site(struct site *site)
{
    *site = (struct site){ .base = event_base_new() };
    site->options.status.is_on = 1;
    snprintf(site->options.status.host, sizeof site->options.status.host, "127.0.0.1");
    setenv("CT_STATUS_TOKEN", "0123456789abcdef", 1);
    assert_int_equal(
        status_open(&site->status, site->base, &site->options, &site->control, 1, &hooks, site), 0);
    site->port = socket_port(event_get_fd(&site->status.http.incoming));
}

static void close_site(struct site *site)
{
    status_close(&site->status);
    free(site->said.data);
    event_base_free(site->base);
}

static int asks(struct site *site, const char *path)
{
    char request[200];
    int fd = -1, size = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n\r\n", path);

    assert_int_equal(socket_connect_once("127.0.0.1", site->port, NO_DEADLINE, &fd), CT_OK);
    assert_int_equal(send(fd, request, (size_t)size, MSG_NOSIGNAL), size);
    turn(site);
    return fd;
}

/* The time of the next look has come. */
static void looks(struct site *site)
{
    assert_true(event_pending(&site->status.turn, EV_TIMEOUT, NULL));
    event_active(&site->status.turn, EV_TIMEOUT, 0);
    turn(site);
}

/* What the server sent until now, with its end as "|". */
static const char *reply_to(int fd)
{
    static char reply[8000];
    size_t used = 0;
    ssize_t got;

    while ((got = recv(fd, reply + used, sizeof reply - 2 - used, MSG_DONTWAIT)) > 0)
        used += (size_t)got;
    snprintf(reply + used, 2, "%s", got == 0 ? "|" : "");
    return reply;
}

static void clients_that_ask_during_a_look_wait_for_its_end(void **state)
{
    int fd[6];
    struct site site;

    (void)state;
    open_site(&site);
    site.nodes = 1; /* which does not answer */
    for (int i = 0; i < 6; i++) {
        fd[i] = asks(&site, i % 2 ? "/metrics" WORD : "/api/job" WORD);
        event_del(&site.status.turn); /* time stands still */
        assert_string_equal(reply_to(fd[i]), "");
    }
    event_active(&site.status.turn, EV_TIMEOUT, 0);
    turn(&site);
    assert_int_equal(site.looks, 1);
    for (int i = 0; i < 6; i++) {
        assert_non_null(
            strstr(reply_to(fd[i]), i % 2 ? "\nctrun_world_size 0\n" : "{\"job\":\"job\","));
        close(fd[i]);
    }
    assert_false(event_pending(&site.status.turn, EV_TIMEOUT, NULL)); /* no client is left */
    close_site(&site);
}

static void two_looks_are_a_quarter_of_a_second_apart(void **state)
{
    struct site site;
    int64_t before;

    (void)state;
    open_site(&site);
    close(asks(&site, "/api/job" WORD));
    assert_int_equal(site.looks, 1);
    before = site.status.looked_ms;
    close(asks(&site, "/api/job" WORD));
    while (site.looks == 1)
        event_base_loop(site.base, EVLOOP_ONCE);
    assert_true(clock_ms() - before >= 240); /* the loop's clock may lag */
    close_site(&site);
}

static void a_client_that_watches_gets_each_look_and_the_end(void **state)
{
    struct site site;
    const char *reply;
    int fd;

    (void)state;
    open_site(&site);
    fd = asks(&site, "/events" WORD);
    reply = reply_to(fd);
    assert_null(strstr(reply, "Content-Length"));
    assert_non_null(strstr(reply, "\r\n\r\nevent: job\ndata: {\"job\":\"job\","));
    looks(&site);
    reply = reply_to(fd);
    assert_true(!strncmp(reply, "event: job\ndata: {", 18));
    assert_string_equal(reply + strlen(reply) - 3, "}\n\n");
    close_site(&site);
    reply = reply_to(fd);
    assert_true(!strncmp(reply, "event: over\ndata: {", 19));
    assert_string_equal(reply + strlen(reply) - 4, "}\n\n|");
    close(fd);
}

static void a_client_that_waits_at_the_end_is_answered(void **state)
{
    struct site site;
    int fd;

    (void)state;
    open_site(&site);
    site.status.is_looking = 1;
    fd = asks(&site, "/api/job" WORD);
    close_site(&site);
    assert_non_null(strstr(reply_to(fd), "\r\n\r\n{\"job\":\"job\","));
    close(fd);
}

static void sixty_four_clients_watch_and_one_more_is_refused(void **state)
{
    int fd[64], more;
    struct site site;

    (void)state;
    open_site(&site);
    for (int i = 0; i < 64; i++)
        fd[i] = asks(&site, "/events" WORD);
    more = asks(&site, "/metrics" WORD);
    assert_true(!strncmp(reply_to(more), "HTTP/1.1 503 ", 13));
    close(more);
    more = asks(&site, "/" WORD); /* needs no look */
    assert_true(!strncmp(reply_to(more), "HTTP/1.1 200 ", 13));
    close(more);
    close(fd[7]);
    turn(&site);
    fd[7] = asks(&site, "/events" WORD);
    assert_true(!strncmp(reply_to(fd[7]), "HTTP/1.1 200 ", 13));
    for (int i = 0; i < 64; i++)
        close(fd[i]);
    turn(&site);
    assert_int_equal(site.status.http.connections, 0);
    close_site(&site);
}

/* The kernel then holds little of what one end sends and the other does not read. */
static void hold_little(int fd)
{
    const int bytes = 4096;

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
}

static void a_client_that_watches_and_does_not_read_takes_the_memory_of_one_event(void **state)
{
    char line[LINE];
    struct http_connection *client;
    struct site site;
    size_t used;
    int fd;

    (void)state;
    open_site(&site);
    memset(line, 'x', sizeof line);
    for (int i = 0; i < 16; i++) {
        text_print(&site.said, "ctrun: ");
        text_add(&site.said, line, sizeof line);
        text_add(&site.said, "\n", 1);
    }
    site.status.is_looking = 1; /* it ends when the kernel has little room */
    fd = asks(&site, "/events" WORD);
    client = site.status.http.connection[0];
    hold_little(fd);
    hold_little(client->fd);
    event_active(&site.status.turn, EV_TIMEOUT, 0);
    turn(&site);
    used = client->answer.used;
    assert_in_range(used, 16 * LINE, 17 * LINE);
    for (int i = 0; i < 5; i++)
        looks(&site);
    assert_int_equal(client->answer.used, used);
    close_site(&site);
    close(fd);
}

static void only_a_token_that_is_right_opens_the_page_to_another_name(void **state)
{
    static const struct {
        const char *path, *headers, *status;
    } cases[] = {
        { "/", "", "403" },
        { "/?token=0123456789abcdeg", "", "403" },
        { "/?token=0123456789abcde", "", "403" },
        { "/?token=0123456789abcdef0", "", "403" },
        { "/?token=", "", "403" },
        { "/?tokens=0123456789abcdef", "", "403" },
        { "/?", "Authorization: Basic 0123456789abcdef\r\n", "403" },
        { "/", "Authorization: Bearer \r\n", "403" },
        { "/", "Authorization: Bearer 0123456789abcdef\r\n", "200" },
        { "/?a=b&token=0123456789abcdef&c", "", "200" },
        { "/nothing?token=0123456789abcdef", "", "404" },
    };
    char request[200];
    struct site site;

    (void)state;
    open_site(&site);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = -1, size = snprintf(request, sizeof request,
                                     "GET %s HTTP/1.1\r\nHost: evil.example:80\r\n%s\r\n",
                                     cases[i].path, cases[i].headers);
        const char *reply;

        assert_int_equal(socket_connect_once("127.0.0.1", site.port, NO_DEADLINE, &fd), CT_OK);
        assert_int_equal(send(fd, request, (size_t)size, MSG_NOSIGNAL), size);
        turn(&site);
        reply = reply_to(fd);
        if (strncmp(reply, "HTTP/1.1 ", 9) != 0 || strncmp(reply + 9, cases[i].status, 3) != 0)
            fail_msg("%s: %.20s", request, reply);
        close(fd);
    }
    close_site(&site);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_that_ask_during_a_look_wait_for_its_end),
        cmocka_unit_test(two_looks_are_a_quarter_of_a_second_apart),
        cmocka_unit_test(a_client_that_watches_gets_each_look_and_the_end),
        cmocka_unit_test(a_client_that_waits_at_the_end_is_answered),
        cmocka_unit_test(sixty_four_clients_watch_and_one_more_is_refused),
        cmocka_unit_test(a_client_that_watches_and_does_not_read_takes_the_memory_of_one_event),
        cmocka_unit_test(only_a_token_that_is_right_opens_the_page_to_another_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
