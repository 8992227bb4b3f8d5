/* SPDX-License-Identifier: Apache-2.0 */
/* slow_wire - a network with a delay, for kernels without netem.
 *
 *   slow_wire MICROSECONDS PID...
 *
 * It makes an interface eth0 in the network namespace of each process, says
 * "up", and then is the hub between them: each frame reaches all others after
 * the delay, in order.  One delay for all means that the oldest frame is always
 * the next one due, so a queue and one timeout do. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define MOST_HOSTS 16
#define FRAME 2048 /* an Ethernet frame, its MTU being 1500 */
#define QUEUE 4096 /* frames; more are lost, as in any switch */

struct frame {
    long long due;
    int from, bytes;
    char data[FRAME];
};

static struct frame queue[QUEUE];
static unsigned head, tail;

static long long now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static int interface_of(const char *pid)
{
    struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI, .ifr_name = "eth0" };
    char path[64];
    int space, tap;

    snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
    space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET) < 0)
        return -1;
    close(space);
    tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    return tap >= 0 && ioctl(tap, TUNSETIFF, &request) == 0 ? tap : -1;
}

static void take(int tap, int from, long long due)
{
    char lost[FRAME];

    for (;;) {
        struct frame *f = &queue[tail % QUEUE];
        const int full = tail - head == QUEUE;
        const ssize_t n = read(tap, full ? lost : f->data, FRAME);

        if (n <= 0)
            return;
        if (full)
            continue;
        f->due = due;
        f->from = from;
        f->bytes = (int)n;
        tail++;
    }
}

static void hand_on(const struct frame *f, const struct pollfd *taps, int n)
{
    for (int i = 0; i < n; i++)
        if (i != f->from && write(taps[i].fd, f->data, (size_t)f->bytes) < 0)
            continue; /* an interface that is down: the cable is out */
}

int main(int argc, char **argv)
{
    const long long delay = argc > 2 ? atoll(argv[1]) : -1;
    const int n = argc - 2;
    struct pollfd taps[MOST_HOSTS];

    if (delay < 0 || n > MOST_HOSTS) {
        fprintf(stderr, "usage: slow_wire MICROSECONDS PID...\n");
        return 2;
    }
    for (int i = 0; i < n; i++) {
        taps[i] = (struct pollfd){ .fd = interface_of(argv[i + 2]), .events = POLLIN };
        if (taps[i].fd < 0) {
            fprintf(stderr, "slow_wire: process %s: %s\n", argv[i + 2], strerror(errno));
            return 1;
        }
    }
    puts("up");
    fflush(stdout);

    for (;;) {
        const long long left = head == tail ? -1 : queue[head % QUEUE].due - now_us();
        const struct timespec rest = { left / 1000000, left % 1000000 * 1000 };

        if (left > 0 || head == tail) {
            const int ready = ppoll(taps, (nfds_t)n, head == tail ? NULL : &rest, NULL);

            for (int i = 0; ready > 0 && i < n; i++)
                if (taps[i].revents & POLLIN)
                    take(taps[i].fd, i, now_us() + delay);
        }
        while (head != tail && queue[head % QUEUE].due <= now_us())
            hand_on(&queue[head++ % QUEUE], taps, n);
    }
}
