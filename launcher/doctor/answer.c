/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - a child with a pipe.  getaddrinfo() has no deadline, and a name server that is
 * unreachable may take it half a minute; so that, too, is done by a child, which can be killed. */
#include "launcher/doctor/answer.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/util/clock.h"

#define LOOKUP_MS 3000

int answer_read(void (*run)(const void *arg), const void *arg, int ms, char *text, size_t size)
{
    const int64_t deadline = deadline_after(ms);
    size_t used = 0;
    int ends[2] = { -1, -1 }, over = 0;
    pid_t pid;

    *text = 0;
    if (pipe(ends) < 0 || (pid = fork()) < 0) {
        snprintf(text, size, "no process for it: %s", strerror(errno));
        if (ends[0] >= 0) {
            close(ends[0]);
            close(ends[1]);
        }
        return -1;
    }
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        run(arg);
        fflush(stdout);
        _exit(0);
    }
    close(ends[1]);
    while (!over && time_left_ms(deadline, ms) > 0) {
        struct pollfd ready = { ends[0], POLLIN, 0 };
        ssize_t got = 0;

        if (poll(&ready, 1, time_left_ms(deadline, ms)) <= 0)
            continue;
        got = read(ends[0], text + used, size - 1 - used);
        over = got <= 0; /* the end, or there is no room for more */
        used += got > 0 ? (size_t)got : 0;
    }
    close(ends[0]);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    text[used] = 0;
    if (!over)
        snprintf(text, size, "no answer within %d s", ms / 1000);
    return over ? 0 : -1;
}

/* ---- Names ------------------------------------------------------------------------- */

static void look_up(const void *arg)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    char text[64];
    const int error = getaddrinfo(arg, NULL, &hints, &found);

    if (error)
        printf("!%s\n", gai_strerror(error));
    for (const struct addrinfo *at = found; at; at = at->ai_next)
        if (getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST)
            == 0)
            printf("%s\n", text);
}

void addresses_find(struct addresses *addresses, const char *name)
{
    char text[1024], *rest = text, *line;

    *addresses = (struct addresses){ 0 };
    if (answer_read(look_up, name, LOOKUP_MS, text, sizeof text) < 0)
        snprintf(addresses->error, sizeof addresses->error, "%.190s", text);
    else if (*text == '!')
        snprintf(addresses->error, sizeof addresses->error, "%.*s", (int)strcspn(text + 1, "\n"),
                 text + 1);
    else
        while ((line = strsep(&rest, "\n")) && *line && addresses->count < 8)
            snprintf(addresses->text[addresses->count++], sizeof addresses->text[0], "%.63s", line);
    if (!*addresses->error && addresses->count == 0)
        snprintf(addresses->error, sizeof addresses->error, "it has no address");
}
