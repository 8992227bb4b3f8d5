/* SPDX-License-Identifier: Apache-2.0 */
/* test_link_tcp.c - how bytes go through a connection, and how it says that it ended. */
#include "tests/harness.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/transport/link.h"

/* One end is the link's; the other is given. */
static struct link *accepted(int *other)
{
    int ends[2];
    struct link *link;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    link = link_tcp_over(ends[0], 1);
    assert_non_null(link);
    *other = ends[1];
    return link;
}

/* It comes in two halves, and with the second one what is behind it. */
static void what_is_behind_a_head_is_read_ahead(void **state)
{
    enum { HEAD = 32 };
    char sent[HEAD + 10], got[sizeof sent];
    const size_t half = HEAD / 2;
    struct link *link;
    int other;

    (void)state;
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (char)i;
    link = accepted(&other);
    assert_int_equal(write(other, sent, half), half);
    assert_int_equal(link->ops->read(link, got, half), half);
    assert_int_equal(write(other, sent + half, sizeof sent - half), sizeof sent - half);
    link->dry = 0; /* as after the next look */
    assert_int_equal(link->ops->read(link, got + half, half), half);
    assert_int_equal(link->ahead, 10);
    assert_int_equal(link->ops->read(link, got + HEAD, 4), 4);
    assert_int_equal(link->ahead, 6);
    assert_int_equal(link->ops->read(link, got + HEAD + 4, 10), 6);
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

static struct link *over_tcp(int *other)
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
    link = link_tcp_over(accept4(listener, NULL, NULL, SOCK_CLOEXEC), 1);
    assert_non_null(link);
    close(listener);
    return link;
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
    link = over_tcp(&other);
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
        cmocka_unit_test(what_is_behind_a_head_is_read_ahead),
        cmocka_unit_test(why_a_link_ended_is_the_links_to_say),
        cmocka_unit_test(much_is_written_in_pieces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
