/* SPDX-License-Identifier: Apache-2.0 */
/* test_link_tcp.c - what a connection costs before and after its hello. */
#include "tests/harness.h"

#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/hello.h"
#include "runtime/link.h"

enum { STRANGERS = 64, MOST_OF_ONE = 2048 };

static size_t memory_in_use(void)
{
    const struct mallinfo2 all = mallinfo2();

    return all.uordblks + all.hblkhd;
}

/* One end is the link's; the other is given. */
static struct link *accepted(int *other)
{
    int ends[2];
    struct link *link;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    link = link_tcp_accepted(ends[0]);
    assert_non_null(link);
    *other = ends[1];
    return link;
}

static void a_stranger_who_says_nothing_costs_next_to_no_memory(void **state)
{
    struct link *links[STRANGERS];
    const size_t before = memory_in_use();
    int others[STRANGERS];
    char word;

    (void)state;
    for (int i = 0; i < STRANGERS; i++) {
        links[i] = accepted(&others[i]);
        assert_int_equal(links[i]->ops->read(links[i], &word, 1), 0);
    }
    assert_true(memory_in_use() - before < STRANGERS * MOST_OF_ONE);
    for (int i = 0; i < STRANGERS; i++) {
        links[i]->ops->close(links[i]);
        close(others[i]);
    }
}

/* It comes in two halves, and with the second one what is behind it. */
static void what_is_behind_the_hello_is_read_ahead(void **state)
{
    char sent[sizeof(struct hello) + 10], got[sizeof sent];
    const size_t half = sizeof(struct hello) / 2, rest = sizeof(struct hello) - half;
    struct link *link;
    int other;

    (void)state;
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (char)i;
    link = accepted(&other);
    assert_int_equal(write(other, sent, half), half);
    assert_int_equal(link->ops->read(link, got, sizeof(struct hello)), half);
    assert_int_equal(write(other, sent + half, sizeof sent - half), sizeof sent - half);
    link->dry = 0; /* as after the next look */
    assert_int_equal(link->ops->read(link, got + half, rest), rest);
    assert_int_equal(link->ahead, 0);
    assert_int_equal(link->ops->read(link, got + sizeof(struct hello), 4), 4);
    assert_int_equal(link->ahead, 6);
    assert_int_equal(link->ops->read(link, got + sizeof(struct hello) + 4, 10), 6);
    assert_memory_equal(got, sent, sizeof sent);
    link->ops->close(link);
    close(other);
}

/* Whoever waits for something else sees it end: that changes no sentence of its own. */
static void why_a_link_ended_is_the_links_to_say(void **state)
{
    struct link *link;
    char word;
    int other;

    (void)state;
    link = accepted(&other);
    close(other);
    ct_fail(CT_ERR_INVALID, "what the program did");
    assert_int_equal(link->ops->read(link, &word, 1), -1);
    assert_string_equal(link->why, "it closed its connection");
    assert_string_equal(ct_last_error(), "what the program did");
    link->ops->close(link);
}

/* The link's end is the one that was accepted. */
static struct link *accepted_by_tcp(int *other)
{
    struct sockaddr_in here = { .sin_family = AF_INET };
    socklen_t length = sizeof here;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct link *link;

    *other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listener, (struct sockaddr *)&here, length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&here, &length), 0);
    assert_int_equal(connect(*other, (struct sockaddr *)&here, length), 0);
    link = link_tcp_accepted(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
    assert_non_null(link);
    close(listener);
    return link;
}

/* Else a small message waits until the one before it is acknowledged, which takes 40 ms. */
static void who_is_connected_delays_nothing_either(void **state)
{
    socklen_t length = sizeof(int);
    struct link *link;
    int other, on = 0;

    (void)state;
    link = accepted_by_tcp(&other);
    assert_int_equal(getsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, &length), 0);
    assert_true(on);
    link->ops->close(link);
    close(other);
}

/* Three parts, of which a piece ends in the last. */
static void much_is_written_in_pieces(void **state)
{
    enum { HEAD = 80, FIRST = 300000, SECOND = 600000, ALL = HEAD + FIRST + SECOND };
    char *const sent = malloc(ALL), *const got = malloc(ALL);
    const struct iovec parts[] = { { sent, HEAD },
                                   { sent + HEAD, FIRST },
                                   { sent + HEAD + FIRST, SECOND } };
    ssize_t taken, seen = 0;
    struct link *link;
    int other;

    (void)state;
    for (int i = 0; i < ALL; i++)
        sent[i] = (char)(i % 251);
    link = accepted_by_tcp(&other);
    taken = link->ops->write(link, parts, 3);
    assert_in_range(taken, 1, 512 << 10);
    while (seen < taken) {
        const ssize_t n = read(other, got + seen, (size_t)(taken - seen));

        assert_true(n > 0);
        seen += n;
    }
    assert_memory_equal(got, sent, taken);
    link->ops->close(link);
    close(other);
    free(sent);
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stranger_who_says_nothing_costs_next_to_no_memory),
        cmocka_unit_test(what_is_behind_the_hello_is_read_ahead),
        cmocka_unit_test(why_a_link_ended_is_the_links_to_say),
        cmocka_unit_test(who_is_connected_delays_nothing_either),
        cmocka_unit_test(much_is_written_in_pieces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
