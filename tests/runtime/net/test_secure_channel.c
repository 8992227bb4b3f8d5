/* SPDX-License-Identifier: Apache-2.0 */
/* test_secure_channel.c - a TLS connection over a pair of sockets: whole, in pieces, refused. */
#include "tests/harness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/net/libssl.h"
#include "runtime/net/secure_channel.h"
#include "runtime/util/clock.h"

#if defined __has_include
#if __has_include(<openssl/ssl.h>)
#include <openssl/err.h>
#include <openssl/ssl.h>
/* Where the headers are there, each row must be what they declare. */
#define SAME(result, name, parameters)                                                     \
    _Static_assert(                                                                        \
        __builtin_types_compatible_p(__typeof__(result(*) parameters), __typeof__(&name)), \
        #name " is declared otherwise in OpenSSL's headers");
SSL_FUNCTIONS(SAME)
#undef SAME
#endif
#endif

static const unsigned char ours[CHANNEL_KEY_BYTES] = "a key of thirty-two bytes, ours";
static const unsigned char another[CHANNEL_KEY_BYTES] = "a key of thirty-two bytes, more";

struct pair {
    int fd[2];
    struct secure_context *context[2];
    struct secure_channel *channel[2]; /* the client's, the server's */
};

static struct pair open_pair(const unsigned char *client, const unsigned char *server,
                             const char *purpose)
{
    struct pair p;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p.fd), 0);
    assert_int_equal(secure_context_create(client, "test", &p.context[0]), CT_OK);
    assert_int_equal(secure_context_create(server, purpose, &p.context[1]), CT_OK);
    for (int i = 0; i < 2; i++) {
        p.channel[i] =
            secure_channel_create(p.context[i], p.fd[i], i == 0 ? CHANNEL_CLIENT : CHANNEL_SERVER);
        assert_non_null(p.channel[i]);
    }
    return p;
}

static void close_pair(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        secure_channel_destroy(p->channel[i]);
        secure_context_destroy(p->context[i]);
        close(p->fd[i]);
    }
}

/* Both ends take steps until neither waits. */
static void shake_hands(struct pair *p, enum channel_step step[2])
{
    step[0] = step[1] = CHANNEL_WAITS;
    for (int turn = 0; turn < 10; turn++)
        for (int i = 0; i < 2; i++)
            if (step[i] == CHANNEL_WAITS)
                step[i] = secure_channel_handshake(p->channel[i]);
}

static struct pair connected(void)
{
    struct pair p = open_pair(ours, ours, "test");
    enum channel_step step[2];

    shake_hands(&p, step);
    assert_int_equal(step[0], CHANNEL_OPEN);
    assert_int_equal(step[1], CHANNEL_OPEN);
    for (int i = 0; i < 2; i++)
        secure_channel_read_ahead(p.channel[i]);
    return p;
}

static ssize_t write_bytes(struct secure_channel *channel, const void *data, size_t bytes)
{
    const struct iovec part = { (void *)(uintptr_t)data, bytes };

    return secure_channel_write(channel, &part, 1);
}

/* ---- Bytes -------------------------------------------------------------------- */

static void bytes_come_as_they_were_written(void **state)
{
    struct pair p = connected();
    char word[16];

    (void)state;
    assert_int_equal(secure_channel_read(p.channel[0], word, 1), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(write_bytes(p.channel[1], "to the client", 14), 14);
    assert_int_equal(write_bytes(p.channel[0], "to the server", 14), 14);
    assert_int_equal(secure_channel_read(p.channel[0], word, sizeof word), 14);
    assert_string_equal(word, "to the client");
    assert_true(secure_channel_is_dry(p.channel[0]));
    assert_int_equal(secure_channel_read(p.channel[1], word, sizeof word), 14);
    assert_string_equal(word, "to the server");
    close_pair(&p);
}

/* Three messages come with one recv(): the socket is empty then, and the channel is not. */
static void what_was_read_ahead_is_reported(void **state)
{
    struct pair p = connected();
    char word[8];

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(write_bytes(p.channel[0], "123456", 6), 6);
    assert_int_equal(secure_channel_has_more(p.channel[1]), 0); /* it was not read yet */
    for (int left = 17; left >= 0; left--) {
        assert_int_equal(secure_channel_read(p.channel[1], word, 1), 1);
        assert_int_equal(secure_channel_has_more(p.channel[1]), left > 0);
    }
    assert_int_equal(recv(p.fd[1], word, 1, MSG_DONTWAIT), -1);
    close_pair(&p);
}

/* As wireup needs it: the next message is in the socket, where epoll sees it. */
static void before_it_reads_ahead_it_takes_one_record(void **state)
{
    struct pair p = open_pair(ours, ours, "test");
    enum channel_step step[2];
    char word[16];

    (void)state;
    shake_hands(&p, step);
    assert_int_equal(write_bytes(p.channel[0], "first", 5), 5);
    assert_int_equal(write_bytes(p.channel[0], "second", 6), 6);
    assert_int_equal(secure_channel_read(p.channel[1], word, 5), 5);
    assert_int_equal(secure_channel_has_more(p.channel[1]), 0);
    assert_int_equal(recv(p.fd[1], word, 1, MSG_PEEK | MSG_DONTWAIT), 1);
    secure_channel_read_ahead(p.channel[1]);
    assert_int_equal(secure_channel_read(p.channel[1], word, sizeof word), 6);
    close_pair(&p);
}

/* The other end sees the same bytes; nothing of them is readable on the way. */
static void the_wire_does_not_have_the_bytes(void **state)
{
    struct pair p = connected();
    char seen[512];
    ssize_t n;

    (void)state;
    assert_int_equal(write_bytes(p.channel[0], "nobody can read this", 20), 20);
    n = recv(p.fd[1], seen, sizeof seen, MSG_PEEK);
    assert_true(n > 20);
    assert_null(memmem(seen, (size_t)n, "nobody", 6));
    close_pair(&p);
}

static unsigned char byte_at(size_t place)
{
    return (unsigned char)(place * 2654435761u >> 13);
}

/* What a rank's queue does: parts of many sizes, as many as the socket takes; of what was not
 * reported as written all but the first byte may be other bytes at the next write. */
struct sender {
    unsigned char *data;
    size_t sent, total;
    unsigned seed;
};

static int send_some(struct pair *p, struct sender *s)
{
    struct iovec parts[64];
    int count = 0;
    ssize_t n;

    for (size_t at = s->sent; at < s->total && count < 64;) {
        const size_t most = rand_r(&s->seed) % 4 == 0 ? 100000 : 80;
        size_t bytes = (size_t)rand_r(&s->seed) % most;

        bytes = bytes < s->total - at ? bytes : s->total - at;
        parts[count++] = (struct iovec){ s->data + at, bytes };
        at += bytes;
    }
    n = secure_channel_write(p->channel[0], parts, count);
    if (n < 0)
        assert_int_equal(errno, EAGAIN);
    s->sent += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static void exchange(struct pair *p, size_t total, unsigned seed)
{
    struct sender s = { malloc(total), 0, total, seed };
    unsigned char got[70000];
    size_t received = 0;

    assert_non_null(s.data);
    for (size_t i = 0; i < total; i++)
        s.data[i] = byte_at(i);
    while (received < total) {
        size_t most = 1 + (size_t)rand_r(&s.seed) % (rand_r(&s.seed) % 2 ? sizeof got : 50);
        ssize_t n;

        while (s.sent < total && rand_r(&s.seed) % 3 && send_some(p, &s))
            ;
        n = secure_channel_read(p->channel[1], got, most);
        if (n < 0)
            assert_int_equal(errno, EAGAIN);
        assert_int_not_equal(n, 0);
        for (ssize_t i = 0; i < n; i++)
            if (got[i] != byte_at(received + (size_t)i))
                fail_msg("byte %zu is wrong", received + (size_t)i);
        received += n > 0 ? (size_t)n : 0;
        /* a byte is reported as written before it can arrive, but for the one that is owed */
        assert_true(received <= s.sent + 1);
        if (s.sent < total && received > s.sent)
            send_some(p, &s);
    }
    while (s.sent < total)
        assert_true(send_some(p, &s));
    free(s.data);
}

static void large_writes_in_parts_arrive_whole(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 12; seed++) {
        struct pair p = connected();
        const int small = 4096 << seed % 6;

        setsockopt(p.fd[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
        exchange(&p, (size_t)1 << 20, seed);
        close_pair(&p);
    }
}

static void a_connection_gets_new_keys(void **state)
{
    struct pair p = connected();

    (void)state;
    secure_context_new_key_after(p.context[0], 3);
    exchange(&p, (size_t)1 << 20, 7);
    close_pair(&p);
}

/* ---- Ends --------------------------------------------------------------------- */

static void an_end_comes_behind_the_last_byte(void **state)
{
    struct pair p = connected();
    char word[16];

    (void)state;
    assert_int_equal(write_bytes(p.channel[0], "last", 4), 4);
    shutdown(p.fd[0], SHUT_RDWR);
    assert_int_equal(secure_channel_read(p.channel[1], word, 2), 2);
    assert_int_equal(secure_channel_has_more(p.channel[1]), 1);
    assert_int_equal(secure_channel_read(p.channel[1], word, sizeof word), 2);
    assert_int_equal(secure_channel_read(p.channel[1], word, sizeof word), 0);
    assert_int_equal(secure_channel_has_more(p.channel[1]), 1);
    assert_int_equal(secure_channel_read(p.channel[1], word, sizeof word), 0);
    assert_int_equal(write_bytes(p.channel[1], "more", 4), -1);
    assert_int_equal(errno, EPIPE);
    close_pair(&p);
}

/* Each byte of a record, changed on its way. */
static void a_changed_byte_ends_the_connection(void **state)
{
    (void)state;
    for (size_t at = 0; at < 31; at++) {
        struct pair p = connected();
        unsigned char record[64];
        char word[16];
        ssize_t n, got;

        assert_int_equal(write_bytes(p.channel[0], "123456789", 9), 9);
        n = recv(p.fd[1], record, sizeof record, 0);
        assert_int_equal(n, 31);
        record[at] ^= 1;
        assert_int_equal(send(p.fd[0], record, (size_t)n, 0), n);
        got = secure_channel_read(p.channel[1], word, sizeof word);
        assert_int_equal(got, -1);
        if (errno == EAGAIN) { /* its length: more is waited for */
            assert_in_range(at, 3, 4);
            close_pair(&p);
            continue;
        }
        assert_int_equal(errno, EPROTO);
        assert_int_equal(secure_channel_has_more(p.channel[1]), 1);
        assert_int_equal(write_bytes(p.channel[1], "x", 1), -1);
        close_pair(&p);
    }
}

static void a_record_does_not_count_twice(void **state)
{
    struct pair p = connected();
    unsigned char record[64];
    char word[16];

    (void)state;
    assert_int_equal(write_bytes(p.channel[0], "123456789", 9), 9);
    assert_int_equal(recv(p.fd[1], record, sizeof record, MSG_PEEK), 31);
    assert_int_equal(send(p.fd[0], record, 31, 0), 31);
    assert_int_equal(secure_channel_read(p.channel[1], word, 9), 9);
    assert_int_equal(secure_channel_read(p.channel[1], word, 9), -1);
    assert_int_equal(errno, EPROTO);
    close_pair(&p);
}

/* ---- Refusals ------------------------------------------------------------------ */

static void is_refused(struct pair p)
{
    enum channel_step step[2];

    shake_hands(&p, step);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(step[i], CHANNEL_FAILED);
        assert_non_null(strstr(secure_channel_why(p.channel[i]), "another secret"));
        assert_int_equal(secure_channel_status(p.channel[i]), CT_ERR_INVALID);
    }
    close_pair(&p);
}

static void another_key_is_refused_and_both_say_so(void **state)
{
    (void)state;
    is_refused(open_pair(ours, another, "test"));
}

static void a_key_for_another_purpose_is_refused(void **state)
{
    (void)state;
    is_refused(open_pair(ours, ours, "other"));
}

static void try_to_connect(int fd, ct_status wanted, const char *words)
{
    struct secure_context *context;
    struct secure_channel *channel = NULL;

    assert_int_equal(secure_context_create(ours, "test", &context), CT_OK);
    EXPECT_ERROR(secure_channel_connect(context, fd, "the-test", deadline_after(300), &channel),
                 wanted, words);
    assert_null(channel);
    secure_context_destroy(context);
}

static void what_a_client_says_of_a_plain_server(void **state)
{
    int fd[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    assert_int_equal(write(fd[1], secure_channel_refusal, CHANNEL_REFUSAL_BYTES), 7);
    try_to_connect(fd[0], CT_ERR_INVALID, "the-test|does not encrypt|CT_ENCRYPT=1");
    close(fd[0]);
    close(fd[1]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    assert_int_equal(write(fd[1], "220 mail.example.org\r\n", 22), 22);
    try_to_connect(fd[0], CT_ERR_PEER, "the-test|something else|CT_ENCRYPT=1");
    close(fd[0]);
    close(fd[1]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    shutdown(fd[1], SHUT_WR);
    try_to_connect(fd[0], CT_ERR_PEER, "the-test|closed the connection|CT_ENCRYPT=1");
    close(fd[0]);
    close(fd[1]);
}

static void a_silent_server_is_waited_for_until_the_deadline(void **state)
{
    const int64_t start = clock_ms();
    int fd[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    try_to_connect(fd[0], CT_ERR_TIMEOUT, "the-test|did not answer|CT_ENCRYPT=1");
    assert_in_range(clock_ms() - start, 290, 5000);
    close(fd[0]);
    close(fd[1]);
}

/* A server takes what comes as far as it goes, and waits in no step. */
static void a_client_that_stops_in_its_hello_blocks_no_step(void **state)
{
    struct pair p = open_pair(ours, ours, "test");
    unsigned char hello[8192];
    ssize_t bytes;

    (void)state;
    assert_int_equal(secure_channel_handshake(p.channel[0]), CHANNEL_WAITS);
    bytes = recv(p.fd[1], hello, sizeof hello, 0);
    assert_true(bytes > 64);
    for (ssize_t i = 0; i < bytes; i++) {
        assert_int_equal(secure_channel_handshake(p.channel[1]), CHANNEL_WAITS);
        assert_int_equal(send(p.fd[0], hello + i, 1, 0), 1);
    }
    assert_int_equal(secure_channel_handshake(p.channel[1]), CHANNEL_WAITS); /* it has answered */
    assert_int_equal(secure_channel_handshake(p.channel[0]), CHANNEL_OPEN);
    assert_int_equal(secure_channel_handshake(p.channel[1]), CHANNEL_OPEN);
    close_pair(&p);
}

static void a_plain_client_is_refused(void **state)
{
    struct pair p = open_pair(ours, ours, "test");

    (void)state;
    assert_int_equal(write(p.fd[0],
                           "\xC7"
                           "ctrun and more bytes of a hello",
                           32),
                     32);
    assert_int_equal(secure_channel_handshake(p.channel[1]), CHANNEL_FAILED);
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_as_they_were_written),
        cmocka_unit_test(what_was_read_ahead_is_reported),
        cmocka_unit_test(before_it_reads_ahead_it_takes_one_record),
        cmocka_unit_test(the_wire_does_not_have_the_bytes),
        cmocka_unit_test(large_writes_in_parts_arrive_whole),
        cmocka_unit_test(a_connection_gets_new_keys),
        cmocka_unit_test(an_end_comes_behind_the_last_byte),
        cmocka_unit_test(a_changed_byte_ends_the_connection),
        cmocka_unit_test(a_record_does_not_count_twice),
        cmocka_unit_test(another_key_is_refused_and_both_say_so),
        cmocka_unit_test(a_key_for_another_purpose_is_refused),
        cmocka_unit_test(what_a_client_says_of_a_plain_server),
        cmocka_unit_test(a_silent_server_is_waited_for_until_the_deadline),
        cmocka_unit_test(a_client_that_stops_in_its_hello_blocks_no_step),
        cmocka_unit_test(a_plain_client_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
