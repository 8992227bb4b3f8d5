/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - `ctctl --doctor-node`: what runs on each host.
 *
 * It checks the host, listens, and then does what lines of its standard input say; what it finds
 * out are lines of its standard output, words between tabs:
 *
 *   out  row LEVEL CHECK TEXT REMEDY    fact NAME VALUE    listen ADDRESS PORT
 *   in   token TOKEN    host NAME ADDRESS PORT, for each one in order    ready    measure HOST
 *   out  ready    pair HOST TRIP SKEW BYTES/S LOOKUP ERROR REMEDY
 *
 * A connection from another host, and each measurement, has a process of its own with an alarm, so
 * none can hold up the next.  The relay that started us (launcher/remote/relay.c) stops us when
 * ctctl is gone. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/rendezvous_options.h"
#include "launcher/doctor/answer.h"
#include "launcher/doctor/checks.h"
#include "launcher/doctor/doctor.h"
#include "launcher/doctor/measure.h"
#include "runtime/net/interface.h"
#include "runtime/net/socket.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/text.h"

struct doctor_peer {
    char *name, *address;
    int port;
};

struct doctor_node {
    int listener;
    char token[TOKEN + 1];
    struct doctor_peer *peers;
    int count;
};

/* ---- Lines ------------------------------------------------------------------------- */

/* A tab or a line's end in a word would be two. */
static void add_word(struct text *line, const char *word)
{
    const size_t begin = line->used;

    text_add(line, word, strlen(word));
    for (size_t i = begin; i < line->used; i++)
        if (line->data[i] == '\t' || line->data[i] == '\n')
            line->data[i] = ' ';
}

/* In one write: other processes write here, too. */
static void say(const char *const *words)
{
    struct text line = { 0 };

    for (int i = 0; words[i]; i++) {
        if (i > 0)
            text_add(&line, "\t", 1);
        add_word(&line, words[i]);
    }
    text_add(&line, "\n", 1);
    if (line.data && write(STDOUT_FILENO, line.data, line.used) < 0)
        _exit(1); /* the relay is gone */
    free(line.data);
}

static void say_finding(void *arg, const struct finding *finding)
{
    (void)arg;
    say((const char *[]){ "row", level_words[finding->level], finding->check, finding->text,
                          finding->remedy, NULL });
}

static void say_fact(void *arg, const char *name, const char *value)
{
    (void)arg;
    say((const char *[]){ "fact", name, value, NULL });
}

/* ---- Where others reach it --------------------------------------------------------------- */

/* The address from which packets to the first host go, as the store's clients have it. */
static int address_towards(const char *address, char *text, size_t size)
{
    struct sockaddr_storage to = { 0 };
    struct sockaddr_in *v4 = (struct sockaddr_in *)&to;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&to;
    socklen_t length = sizeof *v4;
    int fd, found;

    if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(STATIC_PORT);
    } else if (inet_pton(AF_INET6, address, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(STATIC_PORT);
        length = sizeof *v6;
    } else {
        return -1;
    }
    fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    found = fd >= 0 && connect(fd, (struct sockaddr *)&to, length) == 0 /* sends nothing */
            && socket_local_address(fd, text, size) == CT_OK;
    if (fd >= 0)
        close(fd);
    return found && strncmp(text, "127.", 4) != 0 && strcmp(text, "::1") != 0 ? 0 : -1;
}

static ct_status find_address(const char *iface, const char *head, char *text, size_t size)
{
    struct addresses addresses;

    if (*iface)
        return interface_address("--iface", iface, text, size);
    addresses_find(&addresses, head);
    for (int i = 0; i < addresses.count; i++)
        if (address_towards(addresses.text[i], text, size) == 0)
            return CT_OK;
    return interface_outward(text, size);
}

static void listen_there(struct doctor_node *node, const char *iface, const char *head)
{
    char address[128], port[16];

    if (find_address(iface, head, address, sizeof address) != CT_OK
        || socket_listen(NULL, 0, &node->listener) != CT_OK) {
        say((const char *[]){ "row", level_words[LEVEL_FAIL], "address", ct_last_error(),
                              "bring the interface up (ip link, ip addr), or name one: --iface",
                              NULL });
        say((const char *[]){ "listen", "-", "0", NULL });
        return;
    }
    snprintf(port, sizeof port, "%d", socket_port(node->listener));
    say((const char *[]){ "listen", address, port, NULL });
}

/* ---- Processes that measure --------------------------------------------------------------- */

/* 0: this is the new process, which ends in time. */
static pid_t begin(void)
{
    const pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGCHLD, SIG_DFL); /* it waits for those that look names up */
        alarm(MEASURE_SECONDS);
    }
    return pid;
}

static void serve(struct doctor_node *node)
{
    int fd;

    if (socket_accept(node->listener, deadline_after(100), &fd) != CT_OK)
        return;
    if (begin() == 0) {
        measure_serve(fd, node->token);
        _exit(0);
    }
    close(fd);
}

/* What is wrong with its name on this host; "": nothing. */
static void check_lookup(const char *name, char *text, size_t size)
{
    struct addresses addresses;

    *text = 0;
    addresses_find(&addresses, name);
    if (addresses.count == 0)
        snprintf(text, size, "%s", addresses.error);
    else if (!strncmp(addresses.text[0], "127.", 4) || !strcmp(addresses.text[0], "::1"))
        snprintf(text, size, "it resolves to %s, which is this host itself", addresses.text[0]);
}

static void measure(struct doctor_node *node, int to)
{
    struct measurement m;
    char number[16], trip[24], skew[24], bandwidth[32], lookup[256];
    pid_t pid;

    if (to < 0 || to >= node->count || (pid = begin()) > 0)
        return;
    snprintf(number, sizeof number, "%d", to);
    if (pid < 0) {
        say((const char *[]){ "pair", number, "0", "0", "0", "", "no process to measure it",
                              "raise the limits of processes and memory there", NULL });
        return;
    }
    check_lookup(node->peers[to].name, lookup, sizeof lookup);
    measure_peer(&m, node->peers[to].address, node->peers[to].port, node->token);
    snprintf(trip, sizeof trip, "%lld", (long long)m.trip_ns);
    snprintf(skew, sizeof skew, "%lld", (long long)m.skew_ns);
    snprintf(bandwidth, sizeof bandwidth, "%.0f", m.bytes_per_s);
    say((const char *[]){ "pair", number, trip, skew, bandwidth, lookup, m.error, m.remedy, NULL });
    _exit(0);
}

/* ---- What it is to do ------------------------------------------------------------------------ */

static void add_peer(struct doctor_node *node, const char *name, const char *address, int port)
{
    struct doctor_peer *more = realloc(node->peers, ((size_t)node->count + 1) * sizeof *more);

    if (!more) {
        log_line(LOG_ERROR, "out of memory for %d hosts", node->count + 1);
        exit(1);
    }
    node->peers = more;
    more[node->count++] = (struct doctor_peer){ strdup(name), strdup(address), port };
}

static void take_line(void *arg, char *line)
{
    struct doctor_node *node = arg;
    char *words[4] = { "", "", "", "" }, *word;

    for (int i = 0; i < 4 && (word = strsep(&line, "\t")); i++)
        words[i] = word;
    if (!strcmp(words[0], "token"))
        snprintf(node->token, sizeof node->token, "%s", words[1]);
    else if (!strcmp(words[0], "host"))
        add_peer(node, words[1], words[2], atoi(words[3]));
    else if (!strcmp(words[0], "ready"))
        say((const char *[]){ "ready", NULL });
    else if (!strcmp(words[0], "measure"))
        measure(node, atoi(words[1]));
}

/* 0: the input has ended. */
static int take_input(struct doctor_node *node, struct text *input)
{
    char data[4096];
    const ssize_t got = read(STDIN_FILENO, data, sizeof data);

    if (got <= 0)
        return got < 0 && (errno == EINTR || errno == EAGAIN);
    text_add(input, data, (size_t)got);
    text_take_lines(input, take_line, node);
    return 1;
}

static void node_close(struct doctor_node *node)
{
    for (int i = 0; i < node->count; i++) {
        free(node->peers[i].name);
        free(node->peers[i].address);
    }
    free(node->peers);
    if (node->listener >= 0)
        close(node->listener);
}

/* words: the path of ctctl where the user is, the folder there, --iface or "", the first host, how
 * many there are. */
int doctor_node(char **words)
{
    struct doctor_node node = { .listener = -1 };
    struct text input = { 0 };
    struct check_input checked;
    int count = 0, goes_on = 1;

    while (words[count])
        count++;
    if (count != 5)
        return 2;
    checked = (struct check_input){
        .hosts = atoi(words[4]), .ctctl = words[0], .folder = words[1], .cores = host_cores()
    };
    facts_say(&checked, say_fact, NULL);
    checks_run(&checked, say_finding, NULL);
    if (checked.hosts > 1)
        listen_there(&node, words[2], words[3]);
    else
        say((const char *[]){ "listen", "-", "0", NULL });
    signal(SIGCHLD, SIG_IGN); /* no process of ours is waited for from here on */
    while (goes_on) {
        struct pollfd ready[2] = { { STDIN_FILENO, POLLIN, 0 }, { node.listener, POLLIN, 0 } };

        if (poll(ready, 2, -1) < 0 && errno != EINTR)
            break;
        if (ready[1].revents)
            serve(&node);
        if (ready[0].revents)
            goes_on = take_input(&node, &input);
    }
    free(input.data);
    node_close(&node);
    return 0;
}
