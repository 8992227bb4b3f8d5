/* SPDX-License-Identifier: Apache-2.0 */
/* strangers COUNT SECONDS HOW ADDRESS PORT... - keeps COUNT connections open to each port, for so
 * long, and opens those again that are closed.  HOW: silent, half (31 bytes of a hello), hello (a
 * whole one, and no proof), wrong (with a wrong one).  Prints "here" when all were opened once. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HELLO = 44, MAGIC = 0x33746863 };

static const char *how;

/* to: of all ranks in turn, so that some are the right ones. */
static void say(int fd, int to)
{
    unsigned char hello[HELLO + 32] = { 0 };
    const int32_t words[3] = { MAGIC, to == 0, to }; /* as rank 0, or to it */
    const size_t bytes = !strcmp(how, "half")    ? 31
                         : !strcmp(how, "hello") ? HELLO
                         : !strcmp(how, "wrong") ? sizeof hello
                                                 : 0;

    memcpy(hello, words, sizeof words);
    if (bytes > 0 && send(fd, hello, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; /* it will be opened again */
}

static int open_one(const char *address, int port, int to)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    inet_pton(AF_INET, address, &at.sin_addr);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    say(fd, to);
    return fd;
}

int main(int argc, char **argv)
{
    const int count = atoi(argv[1]), all = count * (argc - 5);
    const time_t end = time(NULL) + atoi(argv[2]);
    struct pollfd *const at = calloc((size_t)all, sizeof *at);
    struct rlimit limit;
    int first = 1;

    how = argv[3];
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int i = 0; i < all; i++)
        at[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
    while (time(NULL) < end) {
        for (int i = 0; i < all && time(NULL) < end; i++) {
            if (at[i].fd >= 0 && at[i].revents) {
                close(at[i].fd);
                at[i].fd = -1;
            }
            if (at[i].fd < 0)
                at[i].fd = open_one(argv[4], atoi(argv[5 + i % (argc - 5)]), i % 8);
        }
        if (first) {
            printf("here\n");
            fflush(stdout);
        }
        first = 0;
        poll(at, (nfds_t)all, 10);
    }
    return 0;
}
