/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_server.c - the store on real sockets: many clients, misbehaving ones, and their cost.
 */
#include "tests/harness.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/net/socket.h"
#include "runtime/store/server/server_thread.h"
#include "runtime/store/tcp_store.h"
#include "runtime/util/clock.h"

#define WIRE_BYTES 4096
#include "tests/runtime/store/wire_request.h"

enum { LIMIT_MS = 120000, MIB = 1 << 20 };

/* ---- A server, its address, and what the process had open before -------------- */

static struct store_thread *host;
static int port, open_before;

static int start_server(void **state)
{
    int fd;

    (void)state;
    unsetenv("CT_STORE_SECRET");
    unsetenv("CT_STORE_SECRET_FILE");
    open_before = open_descriptors();
    if (socket_listen("127.0.0.1", 0, &fd) != CT_OK)
        return -1;
    port = socket_port(fd);
    return store_thread_start(fd, &host);
}

static int stop_server(void **state)
{
    (void)state;
    store_thread_stop(host);
    return open_descriptors() == open_before ? 0 : -1;
}

/* The server counts its clients when it has dealt with all that happened. */
static void clients_are(int wanted)
{
    const int64_t deadline = deadline_after(LIMIT_MS);

    while (store_thread_clients(host) != wanted && clock_ms() < deadline)
        nap(2);
    assert_int_equal(store_thread_clients(host), wanted);
}

/* ---- Clients that send raw bytes ------------------------------------------------ */

static struct store_wire one_key(uint8_t command, const char *key)
{
    struct store_wire w = { .size = 0 };

    u8(&w, command), blob(&w, key);
    return w;
}

static struct store_wire add(const char *key)
{
    struct store_wire w = one_key(4, key);

    u64(&w, 1);
    return w;
}

static struct store_wire wait_of(const char *key)
{
    struct store_wire w = { .size = 0 };

    u8(&w, 6), u64(&w, 1), blob(&w, key);
    return w;
}

static void send_bytes(int fd, const void *data, size_t bytes)
{
    assert_int_equal(socket_write_all(fd, data, bytes, deadline_after(LIMIT_MS)), CT_OK);
}

static void request(int fd, struct store_wire wire)
{
    send_bytes(fd, wire.bytes, wire.size);
}

static void receive_bytes(int fd, void *data, size_t bytes)
{
    assert_int_equal(socket_read_all(fd, data, bytes, deadline_after(LIMIT_MS)), CT_OK);
}

static uint64_t receive_u64(int fd)
{
    uint64_t value;

    receive_bytes(fd, &value, sizeof value);
    return value;
}

static int silent(void)
{
    int fd;

    assert_int_equal(socket_connect("127.0.0.1", port, deadline_after(LIMIT_MS), &fd), CT_OK);
    return fd;
}

static void hello(int fd)
{
    send_bytes(fd, "\x00\xce\xf7\x85\x3c", 5);
}

/* When the echo arrives, the requests before it have been run. */
static void ping(int fd)
{
    char echo[4];

    send_bytes(fd, "\x0dnonc", 5);
    receive_bytes(fd, echo, 4);
    assert_memory_equal(echo, "nonc", 4);
}

static int client(void)
{
    const int fd = silent();

    hello(fd);
    ping(fd);
    return fd;
}

/* 0: the key is there. */
static int check(int fd, const char *key)
{
    struct store_wire w = { .size = 0 };
    char answer;

    u8(&w, 5), u64(&w, 1), blob(&w, key);
    request(fd, w);
    receive_bytes(fd, &answer, 1);
    return answer;
}

static void is_closed(int fd)
{
    char byte;

    assert_int_equal(socket_read_all(fd, &byte, 1, deadline_after(LIMIT_MS)), CT_ERR_PEER);
}

/* As if its process was killed with bytes unread. */
static void reset(int fd)
{
    const struct linger at_once = { .l_onoff = 1 };

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

/* ---- Many ------------------------------------------------------------------------- */

enum { CLIENTS = 300 };

/* Each gets another number from 1 to 300. */
static void three_hundred_clients_are_served_at_once(void **state)
{
    int fds[CLIENTS], told[CLIENTS + 1] = { 0 };

    (void)state;
    for (int i = 0; i < CLIENTS; i++)
        fds[i] = client();
    clients_are(CLIENTS);
    for (int i = 0; i < CLIENTS; i++)
        request(fds[i], add("/n"));
    for (int i = 0; i < CLIENTS; i++) {
        const uint64_t sum = receive_u64(fds[i]);

        assert_true(sum >= 1 && sum <= CLIENTS);
        assert_int_equal(told[sum]++, 0);
    }
    for (int i = 0; i < CLIENTS; i++)
        close(fds[i]);
    clients_are(0);
}

static double cpu_ms(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3
           + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
}

/* A loop that turns for nothing would take the whole second. */
static void idle_clients_cost_nothing(void **state)
{
    int fds[CLIENTS];
    double before;

    (void)state;
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client();
        if (i % 2)
            request(fds[i], wait_of("/never"));
    }
    before = cpu_ms();
    nap(1000);
    assert_true(cpu_ms() - before < 500);
    for (int i = 0; i < CLIENTS; i++)
        close(fds[i]);
}

enum { ADDS = 20000, AT_ONCE = 200 };

static void pipelined_requests_are_answered_in_order(void **state)
{
    const struct store_wire one = add("/n");
    const int fd = client();
    struct store_wire many;

    (void)state;
    for (int sent = 0; sent < ADDS; sent += AT_ONCE) {
        many.size = 0;
        for (int i = 0; i < AT_ONCE; i++, many.size += one.size)
            memcpy(many.bytes + many.size, one.bytes, one.size);
        request(fd, many);
    }
    for (uint64_t i = 1; i <= ADDS; i++)
        assert_int_equal(receive_u64(fd), i);
    close(fd);
}

/* ---- Large -------------------------------------------------------------------------- */

static unsigned char *pattern(size_t bytes)
{
    unsigned char *data = malloc(bytes);

    assert_non_null(data);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(i * 2654435761u >> 13);
    return data;
}

static void a_value_of_100_mib_comes_back_as_it_was(void **state)
{
    const size_t size = (size_t)100 * MIB;
    unsigned char *data = pattern(size);
    ct_store *store;
    void *got;
    size_t bytes;

    (void)state;
    assert_int_equal(
        store_client_connect("127.0.0.1", port, deadline_after(LIMIT_MS), LIMIT_MS, &store), CT_OK);
    assert_int_equal(ct_store_set(store, "large", data, size), CT_OK);
    assert_int_equal(ct_store_get(store, "large", LIMIT_MS, &got, &bytes), CT_OK);
    assert_int_equal(bytes, size);
    assert_int_equal(memcmp(got, data, size), 0);
    free(got);
    free(data);
    ct_store_close(store);
}

static long resident_kib(void)
{
    FILE *status = fopen("/proc/self/status", "re");
    char line[128];
    long kib = -1;

    while (status && kib < 0 && fgets(line, sizeof line, status))
        if (sscanf(line, "VmRSS: %ld", &kib) != 1)
            kib = -1;
    if (status)
        fclose(status);
    return kib;
}

enum { ANSWERS = 64 };

/* The answers share the value, of which the socket takes a part. */
static void one_that_does_not_read_holds_up_nobody(void **state)
{
    const int slow = client(), other = client();
    unsigned char *data = pattern(MIB), *got = malloc(MIB);
    struct store_wire set = one_key(1, "/big");
    long before;

    (void)state;
    assert_non_null(got);
    u64(&set, MIB);
    request(other, set);
    send_bytes(other, data, MIB);
    ping(other);
    before = resident_kib();
    for (int i = 0; i < ANSWERS; i++)
        request(slow, one_key(3, "/big"));
    for (uint64_t i = 1; i <= 1000; i++) {
        request(other, add("/n"));
        assert_int_equal(receive_u64(other), i);
    }
    assert_true(resident_kib() - before < 50 * 1024);
    for (int i = 0; i < ANSWERS; i++) { /* it gets all of them when it reads */
        assert_int_equal(receive_u64(slow), MIB);
        receive_bytes(slow, got, MIB);
        assert_memory_equal(got, data, MIB);
    }
    free(got);
    free(data);
    close(slow);
    close(other);
}

/* Small answers that the client does not read: the server stops reading, so the client can't send.
 */
static void one_that_only_asks_is_not_read_any_more(void **state)
{
    static char many[5 * 13001]; /* PINGs, and one more: send() may have cut the last */
    const int flooding = client(), other = client();
    const long before = resident_kib();
    size_t sent = 0;
    int stuck = 0;

    (void)state;
    for (size_t i = 0; i < sizeof many; i += 5)
        memcpy(many + i, "\x0dnonc", 5);
    while (stuck < 50 && sent < (size_t)256 * MIB) {
        const ssize_t n = send(flooding, many + sent % 5, sizeof many - 5, MSG_DONTWAIT);

        sent += n > 0 ? (size_t)n : 0;
        stuck = n > 0 ? 0 : stuck + 1;
        if (n <= 0)
            nap(2);
    }
    assert_true(sent < (size_t)256 * MIB);
    assert_true(resident_kib() - before < 50 * 1024);
    ping(other);
    reset(flooding);
    clients_are(1);
    close(other);
}

/* ---- Misbehaving -------------------------------------------------------------------- */

/* Both wait for the queue; only one of them can pop the value. */
static void a_client_that_is_killed_while_it_waits_is_forgotten(void **state)
{
    const int killed = client(), next = client(), pushing = client();
    struct store_wire push = one_key(14, "/q");
    char answer = 'x';

    (void)state;
    blob(&push, "e");
    request(killed, wait_of("/q"));
    ping(killed);
    request(next, wait_of("/q"));
    ping(next);
    reset(killed);
    clients_are(2);
    request(pushing, push);
    receive_bytes(next, &answer, 1);
    assert_int_equal(answer, 0);
    request(next, one_key(15, "/q"));
    assert_int_equal(receive_u64(next), 1);
    assert_int_equal(receive_u64(next), 1);
    receive_bytes(next, &answer, 1);
    assert_int_equal(answer, 'e');
    close(next);
    close(pushing);
}

static void requests_may_come_a_byte_at_a_time(void **state)
{
    const int fd = silent();
    struct store_wire w = { .size = 0 };
    char got[3];

    (void)state;
    memcpy(w.bytes, "\x00\xce\xf7\x85\x3c", w.size = 5);
    u8(&w, 1), blob(&w, "/k"), blob(&w, "val"); /* SET */
    u8(&w, 3), blob(&w, "/k");                  /* GET */
    u8(&w, 4), blob(&w, "/n"), u64(&w, 7);      /* ADD */
    for (size_t i = 0; i < w.size; i++)
        send_bytes(fd, w.bytes + i, 1);
    assert_int_equal(receive_u64(fd), 3);
    receive_bytes(fd, got, 3);
    assert_memory_equal(got, "val", 3);
    assert_int_equal(receive_u64(fd), 7);
    close(fd);
}

/* Cut at every byte, it has no effect. */
static void half_a_request_is_not_carried_out(void **state)
{
    const int other = client();
    struct store_wire set = one_key(1, "/half");

    (void)state;
    blob(&set, "v");
    for (size_t cut = 0; cut < set.size; cut++) {
        const int fd = client();

        send_bytes(fd, set.bytes, cut);
        close(fd);
    }
    clients_are(1);
    assert_int_equal(check(other, "/half"), 1);
    close(other);
}

static void what_is_no_request_is_closed_after_the_answers_before_it(void **state)
{
    const int fd = client(), other = client();

    (void)state;
    request(fd, add("/n"));
    assert_int_equal(receive_u64(fd), 1);
    send_bytes(fd, "\xff", 1);
    is_closed(fd);
    close(fd);
    ping(other);
    close(other);
}

static void one_that_says_nothing_is_closed_after_a_while(void **state)
{
    const int mute = silent(), stammering = silent(), known = client();

    (void)state;
    send_bytes(stammering, "\x00\xce", 2);
    clients_are(3);
    is_closed(mute);
    is_closed(stammering);
    clients_are(1);
    ping(known);
    close(mute);
    close(stammering);
    close(known);
}

/* ---- Out of descriptors --------------------------------------------------------------- */

enum { SPARE_DESCRIPTORS = 20, TOO_MANY = 60 };

/* Until the pipe says that the test is over. */
static _Noreturn void serve_with_few_descriptors(int listener, int over)
{
    const rlim_t most = (rlim_t)open_descriptors() + SPARE_DESCRIPTORS;
    const struct rlimit few = { most, most };
    struct store_thread *mine;
    char byte;

    if (setrlimit(RLIMIT_NOFILE, &few) < 0 || store_thread_start(listener, &mine) != CT_OK)
        _exit(1);
    if (read(over, &byte, 1) != 0)
        _exit(2);
    store_thread_stop(mine);
    _exit(0);
}

/* 0: the server closed it. */
static int is_served(int fd)
{
    char echo[4];

    return socket_write_all(fd, "\x00\xce\xf7\x85\x3c\x0dnonc", 10, deadline_after(LIMIT_MS))
               == CT_OK
           && socket_read_all(fd, echo, 4, deadline_after(LIMIT_MS)) == CT_OK;
}

static void more_than_there_are_descriptors_for(void)
{
    int fds[TOO_MANY], served = 0;

    for (int i = 0; i < TOO_MANY; i++)
        fds[i] = silent();
    for (int i = 0; i < TOO_MANY; i++)
        served += is_served(fds[i]);
    assert_true(served > 0 && served < TOO_MANY);
    for (int i = 0; i < TOO_MANY; i++)
        close(fds[i]);
}

static void a_server_out_of_descriptors_serves_again(void **state)
{
    const int before = open_descriptors();
    const int64_t deadline = deadline_after(LIMIT_MS);
    int over[2], listener, status, served = 0;
    pid_t child;

    (void)state;
    assert_int_equal(pipe(over), 0);
    assert_int_equal(socket_listen("127.0.0.1", 0, &listener), CT_OK);
    port = socket_port(listener);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(over[1]);
        serve_with_few_descriptors(listener, over[0]);
    }
    close(over[0]);
    close(listener);
    for (int round = 0; round < 3; round++)
        more_than_there_are_descriptors_for();
    while (!served && clock_ms() < deadline) { /* it may not have seen that the others closed */
        const int fd = silent();

        served = is_served(fd);
        close(fd);
    }
    close(over[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(served);
    assert_int_equal(status, 0);
    assert_int_equal(open_descriptors(), before);
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start_server, stop_server)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_out_of_descriptors_serves_again), /* forks: no thread yet */
        WITH_SERVER(three_hundred_clients_are_served_at_once),
        WITH_SERVER(idle_clients_cost_nothing),
        WITH_SERVER(pipelined_requests_are_answered_in_order),
        WITH_SERVER(a_value_of_100_mib_comes_back_as_it_was),
        WITH_SERVER(one_that_does_not_read_holds_up_nobody),
        WITH_SERVER(one_that_only_asks_is_not_read_any_more),
        WITH_SERVER(a_client_that_is_killed_while_it_waits_is_forgotten),
        WITH_SERVER(requests_may_come_a_byte_at_a_time),
        WITH_SERVER(half_a_request_is_not_carried_out),
        WITH_SERVER(what_is_no_request_is_closed_after_the_answers_before_it),
        WITH_SERVER(one_that_says_nothing_is_closed_after_a_while),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
