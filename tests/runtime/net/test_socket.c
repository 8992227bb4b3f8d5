/* SPDX-License-Identifier: Apache-2.0 */
/* test_socket.c - connecting, listening and moving blocks, each by its deadline. */
#include "tests/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/net/socket.h"
#include "runtime/util/clock.h"

enum { PATIENCE_MS = 30000, SHORT_MS = 200 };

static int64_t patience(void)
{
    return deadline_after(PATIENCE_MS);
}

/* The words of a failure name the port too. */
static void names_port(int port)
{
    char text[16];

    snprintf(text, sizeof text, "port %d", port);
    EXPECT(strstr(ct_last_error(), text));
}

/* ---- Pairs --------------------------------------------------------------------- */

struct pair {
    int listener, ours, theirs;
};

/* host NULL: on all interfaces, and reached at `to`. */
static struct pair connected(const char *host, const char *to)
{
    struct pair pair;

    EXPECT_OK(socket_listen(host, 0, &pair.listener));
    EXPECT_OK(socket_connect(to, socket_port(pair.listener), patience(), &pair.ours));
    EXPECT_OK(socket_accept(pair.listener, patience(), &pair.theirs));
    return pair;
}

static void disconnect(const struct pair *pair)
{
    close(pair->ours);
    close(pair->theirs);
    close(pair->listener);
}

static int there_is_ipv6(void)
{
    int fd;

    if (socket_listen("::1", 0, &fd) != CT_OK)
        return 0;
    close(fd);
    return 1;
}

/* ---- Connecting ------------------------------------------------------------------ */

/* A port on which no process listens, and which no other process gets meanwhile.  REUSEADDR: but
 * a listener of ours may join it. */
static int held_port(int *held)
{
    const struct sockaddr_in any = { .sin_family = AF_INET,
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const int on = 1;

    *held = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(*held, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    assert_int_equal(bind(*held, (const struct sockaddr *)&any, sizeof any), 0);
    return socket_port(*held);
}

/* Listens when a connect has been refused for a while already. */
static void *listens_later(void *arg)
{
    int fd, accepted;

    nap(SHORT_MS);
    if (socket_listen("127.0.0.1", *(int *)arg, &fd) != CT_OK)
        return NULL;
    if (socket_accept(fd, patience(), &accepted) == CT_OK) {
        socket_write_all(accepted, "!", 1, patience());
        close(accepted);
    }
    close(fd);
    return NULL;
}

static void a_connect_waits_for_its_listener(void **state)
{
    int held, port = held_port(&held), fd;
    pthread_t thread;
    char byte;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, listens_later, &port), 0);
    EXPECT_OK(socket_connect("127.0.0.1", port, patience(), &fd));
    EXPECT_OK(socket_read_all(fd, &byte, 1, patience()));
    close(fd);
    pthread_join(thread, NULL);
    close(held);
}

static void a_connect_that_nobody_answers_ends_at_its_deadline(void **state)
{
    int held, fd;
    const int port = held_port(&held);
    const int64_t start = clock_ms();

    (void)state;
    EXPECT_ERROR(socket_connect("127.0.0.1", port, deadline_after(SHORT_MS), &fd), CT_ERR_TIMEOUT,
                 "127.0.0.1|refused| ms");
    names_port(port);
    EXPECT(clock_ms() - start < PATIENCE_MS);
    close(held);
}

static void connecting_once_does_not_wait(void **state)
{
    int held, fd;
    const int port = held_port(&held);

    (void)state;
    EXPECT_ERROR(socket_connect_once("127.0.0.1", port, NO_DEADLINE, &fd), CT_ERR_PEER,
                 "127.0.0.1|refused");
    names_port(port);
    close(held);
}

/* In a process that may open no more: what the call said. */
static int said_at_once(ct_status (*connects)(int *fd))
{
    const struct rlimit none = { 0, 0 };
    int fd;

    if (setrlimit(RLIMIT_NOFILE, &none) < 0)
        return 2;
    return connects(&fd) == CT_ERR_SYSTEM && strstr(ct_last_error(), "Too many open files") ? 0 : 1;
}

static ct_status connect_tcp(int *fd)
{
    return socket_connect("127.0.0.1", 1, NO_DEADLINE, fd);
}

static ct_status connect_unix(int *fd)
{
    return socket_connect_unix("nobody", NO_DEADLINE, fd);
}

static void who_may_open_no_more_files_does_not_wait_for_a_connection(void **state)
{
    ct_status (*const connects[])(int *fd) = { connect_tcp, connect_unix };

    (void)state;
    for (int i = 0; i < 2; i++) {
        const pid_t child = fork();
        int how;

        if (child == 0)
            _exit(said_at_once(connects[i]));
        EXPECT(waitpid(child, &how, 0) == child);
        EXPECT(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    }
}

/* In a network of its own, in which nothing is up.  2: the kernel does not let us. */
static int refused_without_loopback(void)
{
    const char *const hosts[] = { "127.0.0.1", "127.1.2.3" };
    int fd;

    if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
        return 2;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        if (socket_connect(hosts[i], 1, NO_DEADLINE, &fd) != CT_ERR_SYSTEM
            || !strstr(ct_last_error(), "the loopback interface is down (ip link set lo up)"))
            return 1;
    /* What another host's cable mends is waited for. */
    return socket_connect("10.77.7.7", 1, deadline_after(SHORT_MS), &fd) == CT_ERR_TIMEOUT ? 0 : 1;
}

static void a_loopback_that_is_down_is_not_waited_for(void **state)
{
    const pid_t child = fork();
    int how;

    (void)state;
    if (child == 0) {
        alarm(PATIENCE_MS / 1000);
        _exit(refused_without_loopback());
    }
    EXPECT(waitpid(child, &how, 0) == child);
    if (WIFEXITED(how) && WEXITSTATUS(how) == 2)
        skip();
    EXPECT(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

static int is_ready(int fd, int timeout_ms)
{
    struct pollfd ready = { .fd = fd, .events = POLLOUT };

    return poll(&ready, 1, timeout_ms) == 1;
}

/* A listener with a full queue answers nothing. */
static void a_connection_on_its_way_is_not_waited_for(void **state)
{
    int listener, fds[8], refused, held, error = 0, last = 0;
    const int nobody = held_port(&held);
    socklen_t size = sizeof error;

    (void)state;
    EXPECT_OK(socket_listen("127.0.0.1", 0, &listener));
    EXPECT(listen(listener, 0) == 0);
    for (last = 0; last < 8; last++) {
        EXPECT_OK(socket_connect_begin("127.0.0.1", socket_port(listener), &fds[last]));
        if (!is_ready(fds[last], 0))
            break;
    }
    EXPECT(last < 8);
    for (int i = 0; i <= last && i < 8; i++)
        close(fds[i]);
    EXPECT_OK(socket_connect_begin("127.0.0.1", nobody, &refused));
    EXPECT(is_ready(refused, PATIENCE_MS));
    EXPECT(getsockopt(refused, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == ECONNREFUSED);
    close(refused);
    close(listener);
    close(held);
}

/* "invalid" is reserved to be no name (RFC 6761). */
static void a_name_that_does_not_resolve_is_said(void **state)
{
    int fd;

    (void)state;
    EXPECT_ERROR(socket_connect("no-such-host.invalid", 1, deadline_after(SHORT_MS), &fd),
                 CT_ERR_TIMEOUT, "the name no-such-host.invalid did not resolve in");
    EXPECT_ERROR(socket_connect_once("no-such-host.invalid", 1, patience(), &fd), CT_ERR_PEER,
                 "no-such-host.invalid|does not resolve");
    EXPECT_ERROR(socket_listen("no-such-host.invalid", 0, &fd), CT_ERR_SYSTEM,
                 "no-such-host.invalid|does not resolve");
    EXPECT(errno == ENOENT);
}

static void ipv6_literals_may_have_brackets(void **state)
{
    static const char *const spellings[] = { "::1", "[::1]" };

    (void)state;
    if (!there_is_ipv6())
        skip();
    for (int i = 0; i < 4; i++) {
        const struct pair pair = connected(spellings[i / 2], spellings[i % 2]);

        disconnect(&pair);
    }
}

static void all_interfaces_are_reached_by_ipv4_and_ipv6(void **state)
{
    struct pair pair = connected(NULL, "127.0.0.1");

    (void)state;
    disconnect(&pair);
    if (!there_is_ipv6())
        return;
    pair = connected(NULL, "::1");
    disconnect(&pair);
}

/* ---- Listening ------------------------------------------------------------------- */

static void a_port_in_use_is_named_with_its_holder(void **state)
{
    char us[32];
    int first, second;

    (void)state;
    snprintf(us, sizeof us, "pid %d (test", (int)getpid());
    EXPECT_OK(socket_listen("127.0.0.1", 0, &first));
    EXPECT_ERROR(socket_listen("127.0.0.1", socket_port(first), &second), CT_ERR_SYSTEM,
                 "127.0.0.1|in use");
    names_port(socket_port(first));
    EXPECT(strstr(ct_last_error(), us));
    EXPECT_ERROR(socket_listen(NULL, socket_port(first), &second), CT_ERR_SYSTEM, "in use");
    EXPECT(strstr(ct_last_error(), us));
    close(first);
}

static void a_port_without_a_listener_is_nobodys(void **state)
{
    char owner[96] = "x";
    int held;

    (void)state;
    socket_port_owner(held_port(&held), owner, sizeof owner);
    assert_string_equal(owner, "");
    close(held);
}

static void an_accept_ends_at_its_deadline(void **state)
{
    int listener, fd;

    (void)state;
    EXPECT_OK(socket_listen("127.0.0.1", 0, &listener));
    EXPECT_ERROR(socket_accept(listener, deadline_after(50), &fd), CT_ERR_TIMEOUT, "nobody");
    close(listener);
}

/* ---- Blocks ---------------------------------------------------------------------- */

static void a_read_from_one_that_says_nothing_ends_at_its_deadline(void **state)
{
    const struct pair pair = connected("127.0.0.1", "127.0.0.1");
    char two[2];

    (void)state;
    EXPECT_OK(socket_write_all(pair.theirs, "x", 1, patience()));
    EXPECT_ERROR(socket_read_all(pair.ours, two, 2, deadline_after(50)), CT_ERR_TIMEOUT, "answer");
    assert_int_equal(two[0], 'x');
    disconnect(&pair);
}

static void a_write_to_one_that_does_not_read_ends_at_its_deadline(void **state)
{
    const size_t more_than_sockets_take = (size_t)64 << 20;
    const struct pair pair = connected("127.0.0.1", "127.0.0.1");
    char *data = calloc(1, more_than_sockets_take);

    (void)state;
    assert_non_null(data);
    EXPECT_ERROR(socket_write_all(pair.ours, data, more_than_sockets_take, deadline_after(50)),
                 CT_ERR_TIMEOUT, "read");
    free(data);
    disconnect(&pair);
}

struct block {
    int fd;
    unsigned char *data;
    size_t size;
    ct_status status;
};

static void *writes(void *arg)
{
    struct block *block = arg;

    block->status = socket_write_all(block->fd, block->data, block->size, patience());
    return NULL;
}

/* Byte i is i modulo 251. */
static void a_large_block_arrives_whole(void **state)
{
    const struct pair pair = connected("127.0.0.1", "127.0.0.1");
    struct block block = { .fd = pair.ours, .size = (size_t)16 << 20 };
    unsigned char *got = malloc(block.size);
    pthread_t thread;

    (void)state;
    block.data = malloc(block.size);
    assert_true(got && block.data);
    for (size_t i = 0; i < block.size; i++)
        block.data[i] = (unsigned char)(i % 251);
    assert_int_equal(pthread_create(&thread, NULL, writes, &block), 0);
    EXPECT_OK(socket_read_all(pair.theirs, got, block.size, patience()));
    pthread_join(thread, NULL);
    EXPECT_OK(block.status);
    assert_int_equal(memcmp(got, block.data, block.size), 0);
    free(got);
    free(block.data);
    disconnect(&pair);
}

static void an_end_of_file_is_a_peer_that_left(void **state)
{
    const struct pair pair = connected("127.0.0.1", "127.0.0.1");
    char two[2];

    (void)state;
    EXPECT_OK(socket_write_all(pair.theirs, "x", 1, patience()));
    shutdown(pair.theirs, SHUT_WR);
    EXPECT_ERROR(socket_read_all(pair.ours, two, 2, patience()), CT_ERR_PEER, "closed");
    disconnect(&pair);
}

static void a_reset_is_a_peer_that_left(void **state)
{
    const struct linger at_once = { .l_onoff = 1 };
    struct pair pair = connected("127.0.0.1", "127.0.0.1");
    struct pollfd hung_up = { .fd = pair.ours };
    char byte;

    (void)state;
    setsockopt(pair.theirs, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(pair.theirs);
    assert_int_equal(poll(&hung_up, 1, PATIENCE_MS), 1);
    EXPECT_ERROR(socket_read_all(pair.ours, &byte, 1, patience()), CT_ERR_PEER, "reset");
    EXPECT_ERROR(socket_write_all(pair.ours, "x", 1, patience()), CT_ERR_PEER, "broke");
    close(pair.ours);
    close(pair.listener);
}

/* ---- Where ----------------------------------------------------------------------- */

static void a_connection_to_itself_stays_here(void **state)
{
    struct pair pair = connected("127.0.0.1", "127.0.0.1");
    char host[64];

    (void)state;
    EXPECT(socket_stays_here(pair.ours) && socket_stays_here(pair.theirs));
    EXPECT(socket_is_loopback(pair.listener) && socket_is_loopback(pair.ours));
    EXPECT(!socket_stays_here(pair.listener)); /* it has no other end */
    EXPECT_OK(socket_local_address(pair.ours, host, sizeof host));
    assert_string_equal(host, "127.0.0.1");
    disconnect(&pair);
    pair = connected(NULL, "127.0.0.1"); /* mapped, where IPv6 is there */
    EXPECT(socket_stays_here(pair.ours) && socket_stays_here(pair.theirs));
    EXPECT(!socket_is_loopback(pair.listener));
    EXPECT(socket_is_loopback(pair.theirs));
    EXPECT_OK(socket_local_address(pair.theirs, host, sizeof host));
    assert_string_equal(host, "127.0.0.1");
    disconnect(&pair);
    if (!there_is_ipv6())
        return;
    pair = connected("::1", "::1");
    EXPECT(socket_stays_here(pair.ours) && socket_is_loopback(pair.ours));
    EXPECT_OK(socket_local_address(pair.ours, host, sizeof host));
    assert_string_equal(host, "::1");
    disconnect(&pair);
}

static int listener_of(const char *name)
{
    int fd;

    EXPECT_OK(socket_listen_unix(name, &fd));
    return fd;
}

static void a_unix_socket_is_found_by_its_name(void **state)
{
    char wanted[64], name[64], byte;
    int listener, ours, theirs, second;
    pid_t pid;
    uid_t uid;

    (void)state;
    snprintf(wanted, sizeof wanted, "ct-test-%d", (int)getpid());
    for (int invented = 0; invented < 2; invented++) {
        listener = listener_of(invented ? NULL : wanted);
        EXPECT_OK(socket_unix_name(listener, name, sizeof name));
        EXPECT(invented || !strcmp(name, wanted));
        EXPECT_ERROR(socket_listen_unix(name, &second), CT_ERR_SYSTEM, "in use");
        EXPECT(strstr(ct_last_error(), name));
        EXPECT_OK(socket_connect_unix(name, patience(), &ours));
        EXPECT_OK(socket_accept(listener, patience(), &theirs));
        EXPECT_OK(socket_peer(theirs, &pid, &uid));
        EXPECT(pid == getpid() && uid == geteuid());
        EXPECT_OK(socket_write_all(ours, "x", 1, patience()));
        EXPECT_OK(socket_read_all(theirs, &byte, 1, patience()));
        EXPECT(!socket_stays_here(ours) && !socket_is_loopback(ours)); /* those are of TCP */
        assert_int_equal(socket_port(ours), -1);
        close(ours);
        close(theirs);
        close(listener);
        EXPECT_ERROR(socket_connect_unix(name, deadline_after(50), &ours), CT_ERR_TIMEOUT,
                     "refused"); /* gone with its last descriptor */
        EXPECT(strstr(ct_last_error(), name));
    }
}

static void a_unix_name_that_is_too_long_is_refused(void **state)
{
    char name[200];
    int fd;

    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    EXPECT_ERROR(socket_listen_unix(name, &fd), CT_ERR_INVALID, "too long");
    EXPECT_ERROR(socket_connect_unix(name, patience(), &fd), CT_ERR_INVALID, "too long");
    name[107] = 0; /* the longest there is */
    EXPECT_OK(socket_listen_unix(name, &fd));
    close(fd);
}

/* A network of our own, whose clients all get port 40000: CANT where we may not. */
enum { CANT = 77 };

static int network_with_one_port(void)
{
    struct ifreq loopback = { .ifr_name = "lo", .ifr_flags = IFF_UP };
    int fd, ok;

    if (unshare(CLONE_NEWNET) < 0)
        return 0;
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    ok = ioctl(fd, SIOCSIFFLAGS, &loopback) == 0;
    close(fd);
    fd = open("/proc/sys/net/ipv4/ip_local_port_range", O_WRONLY);
    ok = ok && write(fd, "40000 40000", 11) == 11;
    close(fd);
    return ok;
}

static int connects_to_nobody(void)
{
    int fd;

    if (!network_with_one_port())
        return CANT;
    return socket_connect_once("127.0.0.1", 40000, patience(), &fd) == CT_ERR_PEER
                   && strstr(ct_last_error(), "refused")
               ? 0
               : 1;
}

static void nobody_is_connected_to_himself(void **state)
{
    int how;
    const pid_t child = fork();

    (void)state;
    if (child == 0)
        _exit(connects_to_nobody());
    EXPECT(waitpid(child, &how, 0) == child);
    if (WIFEXITED(how) && WEXITSTATUS(how) == CANT)
        skip();
    EXPECT(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

struct contender {
    pthread_barrier_t *start;
    int port, fd;
};

static void *contend(void *arg)
{
    struct contender *c = arg;

    pthread_barrier_wait(c->start);
    if (socket_listen("127.0.0.1", c->port, &c->fd) != CT_OK)
        c->fd = -1;
    return NULL;
}

/* Of 1000 such pairs two got no listener at all: the kernel may refuse both. */
static void of_two_that_listen_at_once_one_gets_the_port(void **state)
{
    pthread_barrier_t start;
    struct contender c[2];
    pthread_t other;
    int fd;

    (void)state;
    EXPECT_OK(socket_listen("127.0.0.1", 0, &fd));
    c[0] = c[1] = (struct contender){ .start = &start, .port = socket_port(fd) };
    close(fd);
    pthread_barrier_init(&start, NULL, 2);
    for (int i = 0; i < 1000; i++) {
        EXPECT(pthread_create(&other, NULL, contend, &c[1]) == 0);
        contend(&c[0]);
        pthread_join(other, NULL);
        EXPECT((c[0].fd >= 0) != (c[1].fd >= 0));
        close(c[0].fd >= 0 ? c[0].fd : c[1].fd);
    }
    pthread_barrier_destroy(&start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEAVES_NONE_OPEN(of_two_that_listen_at_once_one_gets_the_port),
        LEAVES_NONE_OPEN(a_connect_waits_for_its_listener),
        LEAVES_NONE_OPEN(a_connect_that_nobody_answers_ends_at_its_deadline),
        LEAVES_NONE_OPEN(connecting_once_does_not_wait),
        LEAVES_NONE_OPEN(a_connection_on_its_way_is_not_waited_for),
        cmocka_unit_test(who_may_open_no_more_files_does_not_wait_for_a_connection),
        cmocka_unit_test(a_loopback_that_is_down_is_not_waited_for),
        LEAVES_NONE_OPEN(a_name_that_does_not_resolve_is_said),
        LEAVES_NONE_OPEN(ipv6_literals_may_have_brackets),
        LEAVES_NONE_OPEN(all_interfaces_are_reached_by_ipv4_and_ipv6),
        LEAVES_NONE_OPEN(a_port_in_use_is_named_with_its_holder),
        LEAVES_NONE_OPEN(a_port_without_a_listener_is_nobodys),
        LEAVES_NONE_OPEN(an_accept_ends_at_its_deadline),
        LEAVES_NONE_OPEN(a_read_from_one_that_says_nothing_ends_at_its_deadline),
        LEAVES_NONE_OPEN(a_write_to_one_that_does_not_read_ends_at_its_deadline),
        LEAVES_NONE_OPEN(a_large_block_arrives_whole),
        LEAVES_NONE_OPEN(an_end_of_file_is_a_peer_that_left),
        LEAVES_NONE_OPEN(a_reset_is_a_peer_that_left),
        LEAVES_NONE_OPEN(a_connection_to_itself_stays_here),
        LEAVES_NONE_OPEN(nobody_is_connected_to_himself),
        LEAVES_NONE_OPEN(a_unix_socket_is_found_by_its_name),
        LEAVES_NONE_OPEN(a_unix_name_that_is_too_long_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
