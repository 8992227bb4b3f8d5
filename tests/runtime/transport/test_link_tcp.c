/* SPDX-License-Identifier: Apache-2.0 */
/* test_link_tcp.c - how bytes go through a connection, and how it says that it ended. */
#include "tests/harness.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/net/secure_channel.h"
#include "runtime/transport/link.h"
#include "runtime/util/clock.h"

/* One end is the link's; the other is given. */
static struct link *accepted(int *other)
{
    int ends[2];
    struct link *link;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    link = link_tcp_over(ends[0], NULL, 1);
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
    link = link_tcp_over(accept4(listener, NULL, NULL, SOCK_CLOEXEC), NULL, 1);
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

/* ---- Encrypted ---------------------------------------------------------------- */

struct encrypted {
    struct link *link;
    struct secure_channel *other;
    int fd;
};

static struct encrypted encrypted(void)
{
    static const unsigned char key[CHANNEL_KEY_BYTES] = "a key of thirty-two bytes, ours";
    struct secure_context *context;
    struct secure_channel *own;
    struct encrypted e;
    int ends[2], done = 0;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(secure_context_create(key, "test", &context), CT_OK);
    own = secure_channel_create(context, ends[0], CHANNEL_SERVER);
    e.other = secure_channel_create(context, ends[1], CHANNEL_CLIENT);
    e.fd = ends[1];
    secure_context_destroy(context);
    for (int i = 0; i < 10 && !done; i++) {
        const int client = secure_channel_handshake(e.other) == CHANNEL_OPEN;

        done = secure_channel_handshake(own) == CHANNEL_OPEN && client;
    }
    assert_true(done);
    e.link = link_tcp_over(ends[0], own, 1);
    assert_non_null(e.link);
    return e;
}

static void encrypted_close(struct encrypted *e)
{
    e->link->ops->close(e->link);
    secure_channel_destroy(e->other);
    close(e->fd);
}

/* Or else epoll would not see it, and no look would read it. */
static void what_left_an_encrypted_socket_is_counted_as_ahead(void **state)
{
    enum { MESSAGES = 9, BYTES = 15000 }; /* more than is read ahead */
    struct encrypted e = encrypted();
    char sent[BYTES], got[BYTES];
    size_t came = 0;

    (void)state;
    memset(sent, 7, sizeof sent);
    for (int i = 0; i < MESSAGES; i++)
        EXPECT_OK(secure_write_all(e.other, e.fd, sent, BYTES, NO_DEADLINE));
    while (came < MESSAGES * BYTES) {
        const ssize_t n = e.link->ops->read(e.link, got, 1 + came % 3000);
        char byte;

        assert_true(n > 0);
        came += (size_t)n;
        if (e.link->ahead == 0 && came < MESSAGES * BYTES)
            assert_int_equal(recv(e.link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT), 1);
        e.link->dry = 0;
    }
    assert_int_equal(e.link->ahead, 0);
    assert_int_equal(e.link->ops->read(e.link, got, 1), 0);
    encrypted_close(&e);
}

static void an_encrypted_link_says_that_it_ended(void **state)
{
    struct encrypted e = encrypted();
    char got[8];

    (void)state;
    EXPECT_OK(secure_write_all(e.other, e.fd, "last", 4, NO_DEADLINE));
    shutdown(e.fd, SHUT_RDWR);
    assert_int_equal(e.link->ops->read(e.link, got, sizeof got), 4);
    e.link->dry = 0;
    assert_int_equal(e.link->ops->read(e.link, got, sizeof got), -1);
    assert_string_equal(e.link->why, "it closed its connection");
    encrypted_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_behind_a_head_is_read_ahead),
        cmocka_unit_test(why_a_link_ended_is_the_links_to_say),
        cmocka_unit_test(much_is_written_in_pieces),
        cmocka_unit_test(what_left_an_encrypted_socket_is_counted_as_ahead),
        cmocka_unit_test(an_encrypted_link_says_that_it_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
