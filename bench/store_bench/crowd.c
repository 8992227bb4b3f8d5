/* SPDX-License-Identifier: Apache-2.0 */
/* crowd.c - all clients in one thread: each is a descriptor, a state and how many
 * bytes of its answer came, so that the processors are the server's.
 *
 *   GREETING -> ADDING -> WAITING -> GETTING -> MET
 *
 * Whom ADD answers W sets the key the others wait for.  A crowd that is only
 * there to be idle stops after GREETING.  At most WINDOW clients are in GREETING
 * at once: more than the listener's backlog would measure the kernel's
 * retransmission timer. */
#include "bench/store_bench/crowd.h"
#include "bench/store_bench/peer.h"
#include "bench/store_bench/stats.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define WINDOW 1024

enum state { GREETING, ADDING, WAITING, GETTING, MET };

struct guest {
    int fd;
    enum state state;
    unsigned got;
    char answer[16];
};

static const unsigned answer_bytes[] = {
    [GREETING] = 4, [ADDING] = 8, [WAITING] = 1, [GETTING] = GET_ANSWER
};

void script_write(struct script *script)
{
    const int tag = new_tag();
    char key[64];

    *script = (struct script){ .number = (unsigned)tag };
    put_validate(&script->magic);
    put_ping(&script->hello);
    snprintf(key, sizeof key, "/%d/arrived", tag);
    put_key(&script->add, ADD, key);
    put_u64(&script->add, 1);
    snprintf(key, sizeof key, "/%d/all", tag);
    put_key(&script->set, SET, key);
    put_text(&script->set, "1");
    put_one(&script->wait, WAIT, key);
    put_key(&script->get, GET, key);
}

void script_free(struct script *script)
{
    free(script->magic.data);
    free(script->hello.data);
    free(script->add.data);
    free(script->set.data);
    free(script->wait.data);
    free(script->get.data);
}

static int say(const struct guest *guest, const struct buffer *request)
{
    return send(guest->fd, request->data, request->size, MSG_NOSIGNAL) == (ssize_t)request->size
               ? 0
               : -1;
}

static int guest_start(struct crowd *crowd)
{
    const struct sockaddr_in *address = &crowd->server->address;
    struct guest *guest = &crowd->guests[crowd->started];
    struct epoll_event event = { .events = EPOLLOUT, .data.ptr = guest };
    const int one = 1;

    guest->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (guest->fd < 0)
        die("socket (ulimit -n?)");
    crowd->started++;
    setsockopt(guest->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (take_source(guest->fd, crowd->server, crowd->script.number) < 0)
        return -1;
    if (connect(guest->fd, (const struct sockaddr *)address, sizeof *address) < 0
        && errno != EINPROGRESS)
        return -1;
    return epoll_ctl(crowd->epoll, EPOLL_CTL_ADD, guest->fd, &event);
}

static int guest_connected(struct crowd *crowd, struct guest *guest)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = guest };

    if (say(guest, &crowd->script.magic) < 0 || say(guest, &crowd->script.hello) < 0)
        return -1;
    return epoll_ctl(crowd->epoll, EPOLL_CTL_MOD, guest->fd, &event);
}

/* The answer to what it last said is whole. */
static int guest_answered(struct crowd *crowd, struct guest *guest)
{
    int64_t arrived;

    guest->got = 0;
    switch (guest->state++) {
    case GREETING:
        crowd->greeted++;
        crowd->met += crowd->idle;
        return crowd->idle ? 0 : say(guest, &crowd->script.add);
    case ADDING:
        memcpy(&arrived, guest->answer, sizeof arrived);
        if (arrived == crowd->size && say(guest, &crowd->script.set) < 0)
            return -1;
        return say(guest, &crowd->script.wait);
    case WAITING:
        return say(guest, &crowd->script.get);
    default:
        crowd->met++;
        return 0;
    }
}

static int guest_readable(struct crowd *crowd, struct guest *guest)
{
    const unsigned wanted = answer_bytes[guest->state];
    const ssize_t n = recv(guest->fd, guest->answer + guest->got, wanted - guest->got, 0);

    if (n <= 0)
        return n < 0 && errno == EAGAIN ? 0 : -1;
    guest->got += (unsigned)n;
    return guest->got == wanted ? guest_answered(crowd, guest) : 0;
}

int crowd_meets(struct crowd *crowd, double deadline)
{
    struct epoll_event events[256];

    while (crowd->met < crowd->size) {
        int n;

        while (crowd->started < crowd->size && crowd->started - crowd->greeted < WINDOW)
            if (guest_start(crowd) < 0)
                return -1;
        n = epoll_wait(crowd->epoll, events, 256, 100);
        for (int i = 0; i < n; i++) {
            struct guest *guest = events[i].data.ptr;

            if ((events[i].events & EPOLLOUT ? guest_connected : guest_readable)(crowd, guest) < 0)
                return -1;
        }
        if (now() > deadline) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
    return 0;
}

void crowd_init(struct crowd *crowd, const struct server *server, int size)
{
    *crowd = (struct crowd){ .server = server, .size = size };
    crowd->guests = get_memory((size_t)size * sizeof *crowd->guests);
    crowd->epoll = epoll_create1(EPOLL_CLOEXEC);
    script_write(&crowd->script);
}

void crowd_leave(struct crowd *crowd)
{
    for (int i = 0; i < crowd->started; i++)
        close(crowd->guests[i].fd);
    close(crowd->epoll);
    free(crowd->guests);
    script_free(&crowd->script);
}
