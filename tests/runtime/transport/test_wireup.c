/* SPDX-License-Identifier: Apache-2.0 */
/* test_wireup.c - how two ranks get a connection to each other, and no other process does.
 *
 * The ranks have no thread here: each test turns both sides until what it waits for is there. */
#include "tests/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/net/secure_channel.h"
#include "runtime/net/socket.h"
#include "runtime/transport/wireup.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"

enum { PATIENCE_MS = 20000, SILENT = 400 };

struct rank {
    struct wireup *wireup;
    int port;
};

static struct wireup_identity identity_of(int rank, const char *secret)
{
    struct wireup_identity identity = { .rank = rank, .size = 3 };

    memcpy(identity.token, "the mesh's token", sizeof identity.token);
    identity.secret.size = strlen(secret);
    memcpy(identity.secret.bytes, secret, strlen(secret));
    return identity;
}

static struct rank rank_with(struct wireup_identity identity)
{
    struct rank rank;
    int listener;

    assert_int_equal(socket_listen("127.0.0.1", 0, &listener), CT_OK);
    fcntl(listener, F_SETFL, O_NONBLOCK);
    rank.port = socket_port(listener);
    assert_int_equal(wireup_start(&identity, listener, 0, &rank.wireup), CT_OK);
    return rank;
}

static struct rank rank_of(int rank, const char *secret)
{
    return rank_with(identity_of(rank, secret));
}

/* Turns both until `a` has an arrival. */
static struct arrival next_of(struct rank a, struct rank b)
{
    const int64_t end = clock_ms() + PATIENCE_MS;
    struct arrival arrival = { .peer = -2 };

    while (!wireup_take(a.wireup, &arrival) && clock_ms() < end) {
        wireup_turn(a.wireup, 1);
        wireup_turn(b.wireup, 1);
    }
    assert_int_not_equal(arrival.peer, -2);
    return arrival;
}

static int has_arrival(struct rank a)
{
    struct arrival arrival;
    const int has = wireup_take(a.wireup, &arrival);

    if (has && arrival.fd >= 0)
        descriptor_close(arrival.fd);
    return has;
}

static void begin(struct rank from, int peer, struct rank to)
{
    assert_int_equal(wireup_connect(from.wireup, peer, "127.0.0.1", to.port), CT_OK);
}

static void stop(struct rank a, struct rank b)
{
    wireup_stop(a.wireup);
    wireup_stop(b.wireup);
}

/* A stranger's connection to it. */
static int connection_to(struct rank rank)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)rank.port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* Turns it until the other end of fd is closed or has sent so many bytes; how many came. */
static ssize_t answer_of(struct rank rank, int fd, void *data, size_t bytes)
{
    const int64_t end = clock_ms() + PATIENCE_MS;
    size_t got = 0;
    ssize_t n;

    do {
        wireup_turn(rank.wireup, 1);
        n = recv(fd, (char *)data + got, bytes - got, MSG_DONTWAIT);
        got += n > 0 ? (size_t)n : 0;
    } while (n != 0 && got < bytes && clock_ms() < end
             && !(n < 0 && errno != EAGAIN && errno != EINTR));
    return (ssize_t)got;
}

static void carries(int from, int to)
{
    char word[6] = "";

    assert_int_equal(write(from, "hello", 5), 5);
    assert_int_equal(read(to, word, 5), 5);
    assert_string_equal(word, "hello");
}

static void both_get(const char *secret)
{
    const struct rank one = rank_of(1, secret), two = rank_of(2, secret);
    struct arrival a, b;

    begin(one, 2, two);
    a = next_of(one, two);
    b = next_of(two, one);
    assert_true(a.peer == 2 && !a.accepted && b.peer == 1 && b.accepted);
    carries(a.fd, b.fd);
    carries(b.fd, a.fd);
    descriptor_close(a.fd);
    descriptor_close(b.fd);
    stop(one, two);
}

static void two_ranks_get_a_connection_with_a_secret_and_without(void **state)
{
    (void)state;
    both_get("");
    both_get("a secret of the job's");
}

/* ---- CT_ENCRYPT ------------------------------------------------------------------ */

static struct rank encrypting(int rank, const char *secret)
{
    struct wireup_identity identity = identity_of(rank, secret);

    identity.encrypts = 1;
    return rank_with(identity);
}

static void drop(struct arrival *arrival)
{
    secure_channel_destroy(arrival->channel);
    descriptor_close(arrival->fd);
}

/* What one rank writes before the other has taken the connection is not lost, and is still in the
 * socket, where epoll sees it. */
static void two_ranks_get_an_encrypted_connection(void **state)
{
    const struct rank one = encrypting(1, "a secret of the job's"),
                      two = encrypting(2, "a secret of the job's");
    struct arrival a, b;
    char word[64] = "";

    (void)state;
    begin(one, 2, two);
    a = next_of(one, two);
    assert_true(a.peer == 2 && a.channel);
    EXPECT_OK(secure_write_all(a.channel, a.fd, "early", 5, NO_DEADLINE));
    b = next_of(two, one);
    assert_true(b.peer == 1 && b.accepted && b.channel);
    EXPECT_OK(secure_write_all(b.channel, b.fd, "answer", 6, NO_DEADLINE));
    assert_false(secure_channel_has_more(a.channel) || secure_channel_has_more(b.channel));
    assert_true(recv(b.fd, word, sizeof word, MSG_PEEK) > 5);
    assert_null(memmem(word, sizeof word, "early", 5));
    EXPECT_OK(secure_read_all(b.channel, b.fd, word, 5, NO_DEADLINE));
    assert_memory_equal(word, "early", 5);
    EXPECT_OK(secure_read_all(a.channel, a.fd, word, 6, NO_DEADLINE));
    assert_memory_equal(word, "answer", 6);
    drop(&a);
    drop(&b);
    stop(one, two);
}

static void with_another_secret_there_is_no_encrypted_connection(void **state)
{
    const struct rank one = encrypting(1, "a secret of the job's"),
                      two = encrypting(2, "another secret");
    struct arrival a;

    (void)state;
    begin(one, 2, two);
    a = next_of(one, two);
    assert_true(a.fd < 0 && !a.channel);
    assert_non_null(strstr(a.why, "another secret than this process (CT_STORE_SECRET"));
    assert_false(has_arrival(two));
    stop(one, two);
}

/* All is right but that it does not encrypt: nothing of the mesh is said to it. */
static void a_plain_connection_is_refused_where_the_mesh_encrypts(void **state)
{
    const struct rank two = encrypting(2, "a secret of the job's");
    const struct hello hello = { .magic = HELLO_MAGIC, .from = 1, .to = 2 };
    const int fd = connection_to(two);
    unsigned char answer[sizeof(struct hello)];

    (void)state;
    assert_int_equal(write(fd, &hello, sizeof hello), sizeof hello);
    assert_in_range(answer_of(two, fd, answer, sizeof answer), 0, 7); /* TLS's alert */
    close(fd);
    assert_false(has_arrival(two));
    wireup_stop(two.wireup);
}

static void what_is_in_its_handshake_is_closed_with_the_mesh(void **state)
{
    const struct rank one = encrypting(1, "a secret of the job's"),
                      two = encrypting(2, "a secret of the job's");
    const int silent = connection_to(two);

    (void)state;
    begin(one, 2, two);
    wireup_turn(one.wireup, 10);
    wireup_turn(two.wireup, 10);
    close(silent);
    stop(one, two);
}

static void encryption_needs_a_secret(void **state)
{
    struct wireup_identity identity = identity_of(1, "");
    struct wireup *wireup;
    int listener;

    (void)state;
    identity.encrypts = 1;
    assert_int_equal(socket_listen("127.0.0.1", 0, &listener), CT_OK);
    EXPECT_ERROR(wireup_start(&identity, listener, 0, &wireup), CT_ERR_INVALID,
                 "CT_ENCRYPT=1 needs the job's secret|CT_STORE_SECRET_FILE");
}

/* What a rank writes when the last proof has come is not lost in what was read for the proof. */
static void what_follows_the_proof_is_the_meshs(void **state)
{
    const struct rank one = rank_of(1, ""), two = rank_of(2, "");
    struct arrival a, b;
    char word[6] = "";

    (void)state;
    begin(one, 2, two);
    a = next_of(one, two);
    assert_int_equal(write(a.fd, "early", 5), 5);
    b = next_of(two, one);
    assert_int_equal(read(b.fd, word, 5), 5);
    assert_string_equal(word, "early");
    descriptor_close(a.fd);
    descriptor_close(b.fd);
    stop(one, two);
}

static void another_secret_is_refused_and_named(void **state)
{
    const struct rank one = rank_of(1, "a secret of the job's"), two = rank_of(2, "another secret");
    struct arrival a;

    (void)state;
    begin(one, 2, two);
    a = next_of(one, two);
    assert_true(a.fd < 0 && a.peer == 2);
    assert_non_null(strstr(a.why, "CT_STORE_SECRET"));
    assert_false(has_arrival(two));
    stop(one, two);
}

/* As of another round: all is right but the mesh. */
static void another_meshs_token_is_refused(void **state)
{
    struct wireup_identity other = identity_of(1, "a secret of the job's");
    struct rank one, two = rank_of(2, "a secret of the job's");
    struct arrival a;

    (void)state;
    memcpy(other.token, "another mesh's..", sizeof other.token);
    one = rank_with(other);
    begin(one, 2, two);
    a = next_of(one, two);
    assert_true(a.fd < 0 && a.peer == 2);
    assert_false(has_arrival(two));
    stop(one, two);
}

/* All that rank 1 sent to rank 2, recorded on the way. */
static void what_was_overheard_lets_nobody_in(void **state)
{
    const struct wireup_identity identity = identity_of(1, "a secret of the job's");
    const struct rank two = rank_of(2, "a secret of the job's");
    struct hello hello = { .magic = HELLO_MAGIC, .from = 1, .to = 2 };
    unsigned char nonce[NONCE_BYTES], proof[PROOF_BYTES], welcome[PROOF_BYTES];
    int fd;

    (void)state;
    for (int again = 0; again < 2; again++) {
        fd = connection_to(two);
        assert_int_equal(write(fd, &hello, sizeof hello), sizeof hello);
        assert_int_equal(answer_of(two, fd, nonce, sizeof nonce), sizeof nonce);
        if (!again)
            assert_int_equal(wireup_proof(&identity, "connect", &hello, nonce, proof), CT_OK);
        assert_int_equal(write(fd, proof, sizeof proof), sizeof proof);
        assert_int_equal(answer_of(two, fd, welcome, sizeof welcome), again ? 0 : sizeof welcome);
        assert_int_equal(has_arrival(two), !again);
        close(fd);
    }
    wireup_stop(two.wireup);
}

/* Hellos to another rank, from ranks that there are not, of another version, and a proof without
 * the secret. */
static void strangers_are_sent_away(void **state)
{
    static const struct hello wrong[] = { { .magic = HELLO_MAGIC, .from = 1, .to = 1 },
                                          { .magic = HELLO_MAGIC, .from = 3, .to = 2 },
                                          { .magic = HELLO_MAGIC, .from = -1, .to = 2 },
                                          { .magic = HELLO_MAGIC, .from = 2, .to = 2 },
                                          { .magic = 0x32746863u, .from = 1, .to = 2 } };
    const struct hello right = { .magic = HELLO_MAGIC, .from = 1, .to = 2 };
    const struct rank two = rank_of(2, "a secret of the job's");
    unsigned char answer[64];

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const int fd = connection_to(two);

        assert_int_equal(write(fd, &wrong[i], sizeof wrong[i]), sizeof wrong[i]);
        assert_int_equal(answer_of(two, fd, answer, 1), 0);
        close(fd);
    }
    {
        const int fd = connection_to(two);

        assert_int_equal(write(fd, &right, sizeof right), sizeof right);
        assert_int_equal(answer_of(two, fd, answer, NONCE_BYTES), NONCE_BYTES);
        memcpy(answer, "the mesh's token", 16); /* is known, and not enough */
        assert_int_equal(write(fd, answer, PROOF_BYTES), PROOF_BYTES);
        assert_int_equal(answer_of(two, fd, answer, 1), 0);
        close(fd);
    }
    assert_false(has_arrival(two));
    wireup_stop(two.wireup);
}

/* The process that has the port of rank 2 answers with given bytes, or with rubbish. */
static void an_impostor_is_no_rank(void **state)
{
    (void)state;
    for (int echoes = 0; echoes < 2; echoes++) {
        const struct rank one = rank_of(1, "a secret of the job's");
        unsigned char said[PROOF_BYTES], hello[sizeof(struct hello)], nonce[NONCE_BYTES] = { 7 };
        struct arrival a = { .fd = 0 };
        struct rank impostor = { 0 };
        int listener, fd;

        assert_int_equal(socket_listen("127.0.0.1", 0, &listener), CT_OK);
        impostor.port = socket_port(listener);
        begin(one, 2, impostor);
        wireup_turn(one.wireup, 100); /* the wish */
        fd = accept(listener, NULL, NULL);
        assert_int_equal(answer_of(one, fd, hello, sizeof hello), sizeof hello);
        assert_int_equal(write(fd, nonce, sizeof nonce), sizeof nonce);
        assert_int_equal(answer_of(one, fd, said, sizeof said), sizeof said);
        if (!echoes)
            said[5] ^= 1;
        assert_int_equal(write(fd, said, sizeof said), sizeof said);
        while (!wireup_take(one.wireup, &a))
            wireup_turn(one.wireup, 10);
        assert_true(a.fd < 0 && a.peer == 2);
        assert_non_null(strstr(a.why, "does not know the job's secret"));
        close(fd);
        close(listener);
        wireup_stop(one.wireup);
    }
}

/* Only where the kernel can be asked, and by root: it becomes another user. */
static void on_one_host_another_users_port_is_told_nothing(void **state)
{
    struct wireup_identity identity = identity_of(1, "");
    struct arrival a = { .fd = 0 };
    struct rank one;
    int listener, fd = -1, other;
    pid_t child;

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(socket_listen("127.0.0.1", 0, &listener), CT_OK);
    if ((child = fork()) == 0) {
        if (setuid(65534) == 0 && (other = socket(AF_INET, SOCK_STREAM, 0)) >= 0) {
            struct sockaddr_in at = { .sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
            unsigned char token[64], nonce[NONCE_BYTES] = { 0 };
            socklen_t size = sizeof at;
            int port, talk;

            if (bind(other, (struct sockaddr *)&at, size) < 0 || listen(other, 1) < 0
                || getsockname(other, (struct sockaddr *)&at, &size) < 0)
                _exit(3);
            port = ntohs(at.sin_port);
            fd = accept(listener, NULL, NULL); /* inherited: where to say the port */
            if (write(fd, &port, sizeof port) != sizeof port)
                _exit(3);
            talk = accept(other, NULL, NULL);
            if (recv(talk, token, sizeof(struct hello), MSG_WAITALL) != sizeof(struct hello))
                _exit(0);
            if (write(talk, nonce, sizeof nonce) != sizeof nonce)
                _exit(0);
            _exit(recv(talk, token, sizeof token, MSG_WAITALL) > 0 ? 2 : 0);
        }
        _exit(3);
    }
    {
        const struct rank there = { .port = socket_port(listener) };
        struct rank impostor = { 0 };
        int how;

        fd = connection_to(there);
        assert_int_equal(read(fd, &impostor.port, sizeof impostor.port), sizeof impostor.port);
        identity.one_host = 1;
        one = rank_with(identity);
        begin(one, 2, impostor);
        while (!wireup_take(one.wireup, &a))
            wireup_turn(one.wireup, 10);
        assert_true(a.fd < 0 && a.peer == 2);
        assert_non_null(strstr(a.why, "another user"));
        wireup_stop(one.wireup);
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0); /* 2: it was shown the token */
    }
    close(fd);
    close(listener);
}

/* More than there is room for; then a rank of the mesh comes. */
static void silent_strangers_keep_nobody_out(void **state)
{
    const struct rank one = rank_of(1, ""), two = rank_of(2, "");
    const struct hello hello = { .magic = HELLO_MAGIC, .from = 0, .to = 2 };
    struct rlimit before, few;
    int silent[SILENT];
    struct arrival a;
    int64_t begun;

    (void)state;
    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = before.rlim_cur < 1024 ? before.rlim_cur : 1024; /* room for 256 */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < SILENT; i++) {
        silent[i] = connection_to(two);
        if (i % 3 == 0)
            assert_int_equal(write(silent[i], "half of a hello", 15), 15);
        if (i % 3 == 1) /* a whole one, and no proof */
            assert_int_equal(write(silent[i], &hello, sizeof hello), sizeof hello);
        wireup_turn(two.wireup, 0);
    }
    begun = clock_ms();
    begin(one, 2, two);
    a = next_of(one, two);
    assert_true(a.fd >= 0 && clock_ms() - begun < 5000); /* they would all be closed at 10 s */
    descriptor_close(a.fd);
    for (int i = 0; i < SILENT; i++)
        close(silent[i]);
    stop(one, two);
    setrlimit(RLIMIT_NOFILE, &before);
}

/* Its first connections end before their welcome, as they do where a peer has no room. */
static void a_connection_that_ends_unheard_is_made_again(void **state)
{
    struct rank one = rank_of(1, ""), two, stand_in;
    struct arrival a;
    int listener;

    (void)state;
    assert_int_equal(socket_listen("127.0.0.1", 0, &listener), CT_OK);
    stand_in.port = socket_port(listener);
    begin(one, 2, stand_in);
    for (int i = 0; i < 3; i++) {
        char hello[sizeof(struct hello)];
        int fd = -1;

        fcntl(listener, F_SETFL, O_NONBLOCK);
        while ((fd = accept(listener, NULL, NULL)) < 0)
            wireup_turn(one.wireup, 10);
        if (i > 0)
            while (recv(fd, hello, i == 1 ? 10 : sizeof hello, MSG_DONTWAIT) < 0)
                wireup_turn(one.wireup, 10);
        close(fd);
    }
    {
        const struct wireup_identity identity = identity_of(2, "");

        assert_int_equal(wireup_start(&identity, listener, 0, &two.wireup), CT_OK);
    }
    a = next_of(one, two);
    assert_true(a.fd >= 0 && a.peer == 2);
    descriptor_close(a.fd);
    stop(one, two);
}

static void a_rank_that_has_left_is_said_to_refuse(void **state)
{
    const struct rank one = rank_of(1, ""), two = rank_of(2, "");
    struct arrival a = { .fd = 0 };

    (void)state;
    wireup_stop(two.wireup);
    begin(one, 2, two);
    while (!wireup_take(one.wireup, &a))
        wireup_turn(one.wireup, 10);
    assert_true(a.fd < 0 && a.peer == 2);
    assert_non_null(strstr(a.why, "Connection refused"));
    wireup_stop(one.wireup);
}

/* The limit is what is in use now. */
static struct rlimit use_up_descriptors(void)
{
    struct rlimit before, none;
    const int top = dup(0);

    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = (rlim_t)top;
    close(top);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    return before;
}

static void a_rank_without_descriptors_says_so_and_uses_no_processor(void **state)
{
    const struct rank two = rank_of(2, "");
    const int fd = connection_to(two);
    const struct rlimit before = use_up_descriptors();
    const int64_t begun = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    char why[160] = "";

    (void)state;
    while (!wireup_is_full(two.wireup, why, sizeof why))
        wireup_turn(two.wireup, 1000);
    assert_non_null(strstr(why, "ulimit -n"));
    assert_true(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begun < 1000000000); /* of two seconds */
    setrlimit(RLIMIT_NOFILE, &before);
    close(fd);
    wireup_stop(two.wireup);
}

static void a_rank_that_gets_descriptors_again_goes_on(void **state)
{
    const struct rank one = rank_of(1, ""), two = rank_of(2, "");
    const struct rlimit before = use_up_descriptors();
    struct arrival a;

    (void)state;
    begin(one, 2, two);
    for (int i = 0; i < 10; i++) {
        wireup_turn(one.wireup, 10);
        wireup_turn(two.wireup, 10);
    }
    setrlimit(RLIMIT_NOFILE, &before);
    a = next_of(one, two);
    assert_true(a.fd >= 0);
    descriptor_close(a.fd);
    stop(one, two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEAVES_NONE_OPEN(two_ranks_get_a_connection_with_a_secret_and_without),
        LEAVES_NONE_OPEN(two_ranks_get_an_encrypted_connection),
        LEAVES_NONE_OPEN(with_another_secret_there_is_no_encrypted_connection),
        LEAVES_NONE_OPEN(a_plain_connection_is_refused_where_the_mesh_encrypts),
        LEAVES_NONE_OPEN(what_is_in_its_handshake_is_closed_with_the_mesh),
        LEAVES_NONE_OPEN(encryption_needs_a_secret),
        LEAVES_NONE_OPEN(what_follows_the_proof_is_the_meshs),
        LEAVES_NONE_OPEN(another_secret_is_refused_and_named),
        LEAVES_NONE_OPEN(another_meshs_token_is_refused),
        LEAVES_NONE_OPEN(what_was_overheard_lets_nobody_in),
        LEAVES_NONE_OPEN(strangers_are_sent_away),
        LEAVES_NONE_OPEN(an_impostor_is_no_rank),
        LEAVES_NONE_OPEN(on_one_host_another_users_port_is_told_nothing),
        LEAVES_NONE_OPEN(silent_strangers_keep_nobody_out),
        LEAVES_NONE_OPEN(a_connection_that_ends_unheard_is_made_again),
        LEAVES_NONE_OPEN(a_rank_that_has_left_is_said_to_refuse),
        LEAVES_NONE_OPEN(a_rank_without_descriptors_says_so_and_uses_no_processor),
        LEAVES_NONE_OPEN(a_rank_that_gets_descriptors_again_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
