/* SPDX-License-Identifier: Apache-2.0 */
/* floor.c - the least that a server can do on these sockets.
 *
 * One thread, epoll, accept4(), one recv() and one send() for a client's wake-up:
 * what it needs is the kernel's and nearly nothing else.  It is no store.  There
 * are no keys: ADD counts, SET raises a flag, the WAITs for a key "/.../all" are
 * answered when it is up, all others at once; count and flag begin anew when the
 * last client left.  Requests must come whole, as this client sends them. */
#include "bench/store_bench/modes.h"
#include "bench/store_bench/stats.h"
#include "bench/store_bench/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_CLIENTS 65536

static int clients, flag, waiting;
static int64_t count;
static int waiters[MOST_CLIENTS];

static size_t blob_bytes(const unsigned char *blob)
{
    uint64_t size;

    memcpy(&size, blob, sizeof size);
    return sizeof size + size;
}

/* "/1/all", not "/1/value". */
static int is_meeting(const unsigned char *end_of_key)
{
    return end_of_key[-1] == 'l';
}

static void release(void)
{
    flag = 1;
    for (int i = 0; i < waiting; i++)
        send(waiters[i], "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    waiting = 0;
}

static unsigned char *answer(unsigned char *out, const void *data, size_t bytes)
{
    memcpy(out, data, bytes);
    return out + bytes;
}

/* One request: returns its end and moves *out behind its answer. */
static const unsigned char *serve(int fd, const unsigned char *at, unsigned char **out)
{
    static const unsigned char value[16] = { 8, [8] = '1', '2', '3', '4', '5', '6', '7', '8' };
    static const unsigned char one[9] = { 1, [8] = '1' };
    const unsigned char *arguments = at + 1;

    switch (*at) {
    case VALIDATE:
        return arguments + 4;
    case PING:
        *out = answer(*out, arguments, 4);
        return arguments + 4;
    case SET:
        release();
        arguments += blob_bytes(arguments);
        return arguments + blob_bytes(arguments);
    case COMPARE_SET:
        *out = answer(*out, value, sizeof value);
        arguments += blob_bytes(arguments);
        arguments += blob_bytes(arguments);
        return arguments + blob_bytes(arguments);
    case GET:
        arguments += blob_bytes(arguments);
        *out = is_meeting(arguments) ? answer(*out, one, sizeof one)
                                     : answer(*out, value, sizeof value);
        return arguments;
    case ADD:
        count++;
        *out = answer(*out, &count, sizeof count);
        return arguments + blob_bytes(arguments) + 8;
    case CHECK:
    case WAIT: /* of one key */
        arguments += 8 + blob_bytes(arguments + 8);
        if (*at == WAIT && is_meeting(arguments) && !flag)
            waiters[waiting++] = fd;
        else
            *out = answer(*out, "", 1);
        return arguments;
    default:
        fprintf(stderr, "store_bench: floor does not know command %d\n", *at);
        _exit(1);
    }
}

static void client_left(int fd)
{
    close(fd);
    if (--clients == 0)
        count = flag = waiting = 0;
}

static void client_readable(int fd)
{
    unsigned char in[4096], answers[8192], *out = answers;
    const ssize_t n = recv(fd, in, sizeof in, 0);

    if (n <= 0) {
        client_left(fd);
        return;
    }
    for (const unsigned char *at = in; at < in + n;)
        at = serve(fd, at, &out);
    if (out > answers)
        send(fd, answers, (size_t)(out - answers), MSG_NOSIGNAL);
}

static void accept_all(int epoll, int listener)
{
    int fd;

    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
        clients++;
    }
}

static int listen_and_say(const char *path)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t length = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    FILE *file;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0
        || listen(fd, SOMAXCONN) < 0 || getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        die("floor");
    file = fopen(path, "w");
    if (!file || fprintf(file, "127.0.0.1 %d\n", ntohs(address.sin_port)) < 0 || fclose(file))
        die(path);
    return fd;
}

_Noreturn void floor_server(const char *path)
{
    const int listener = listen_and_say(path), epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event events[256] = { { .events = EPOLLIN, .data.fd = listener } };

    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, events);
    for (;;) {
        const int n = epoll_wait(epoll, events, 256, -1);

        for (int i = 0; i < n; i++)
            if (events[i].data.fd == listener)
                accept_all(epoll, listener);
            else
                client_readable(events[i].data.fd);
    }
}
