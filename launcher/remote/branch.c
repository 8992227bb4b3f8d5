/* SPDX-License-Identifier: Apache-2.0 */
/* branch.c - starts ssh with a socket as its standard input and output.  If the first host of a
 * branch is this host, starts the relay here without ssh.  ssh inherits ctrun's standard error, so
 * the user reads the messages of ssh.
 *
 * The command line has only the host and the path of the program.  Words, variables and the job's
 * secret go through the socket. */
#include "launcher/remote/branch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <ifaddrs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher/util/shell_words.h"
#include "launcher/workers/program.h"
#include "launcher/workers/signals.h"
#include "launcher/workers/spawn.h"
#include "runtime/util/log.h"

#define REAP_TURNS 200 /* turns of 5 ms that an ssh has to end after its socket is closed */

/* ---- The command ------------------------------------------------------------------- */

/* Options for ssh.  ssh must not ask questions, since no user could answer.  The wait for a host
 * that is down has a limit, and keepalive messages detect a cut cable.  The words of --ssh come
 * before these options, and ssh uses the first value that it reads for an option. */
static const char *const ssh_words[] = { "-T", "-x",
                                         "-o", "BatchMode=yes",
                                         "-o", "ConnectTimeout=30",
                                         "-o", "ServerAliveInterval=5",
                                         "-o", "ServerAliveCountMax=3" };
enum { SSH_WORDS = sizeof ssh_words / sizeof *ssh_words };

/* A shell script that runs the program at the same path as on this host.  If the other host has no
 * program at that path, the script searches the PATH of that host. */
static const char script[] =
    "test -x \"$0\" && exec \"$0\" " NODE_WORD "; exec \"${0##*/}\" " NODE_WORD;

/* Returns the name of a known command, which is "ssh" or the command of a batch system, or NULL if
 * the command is not known. */
static const char *known_name(const char *command)
{
    static const char *const known[] = { "ssh", "blaunch", "qrsh", "srun" };
    const char *slash = strrchr(command, '/');

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(slash ? slash + 1 : command, known[i]))
            return known[i];
    return NULL;
}

static int is_ssh(const char *command)
{
    return known_name(command) && !strcmp(known_name(command), "ssh");
}

/* True if the command is that of a batch system, which passes the words to execve().  ssh passes
 * the words to a shell. */
static int takes_words(const char *command)
{
    return known_name(command) && !is_ssh(command);
}

/* Returns "exec sh -c 'script' 'path'", which any login shell can run.  The caller frees the text.
 * Returns NULL if memory runs out. */
static char *shell_line(const char *path)
{
    char *line = NULL;
    size_t size;
    FILE *out = open_memstream(&line, &size);

    if (!out)
        return NULL;
    fputs("exec sh -c ", out);
    shell_quote(out, script);
    putc(' ', out);
    shell_quote(out, path);
    return fclose(out) == 0 ? line : NULL;
}

/* Copies the list of words and their text into one block, which the caller frees. */
static char **in_one_block(const char *const *words, int count)
{
    size_t bytes = ((size_t)count + 1) * sizeof(char *);
    char **block, *at;

    for (int i = 0; i < count; i++)
        bytes += strlen(words[i]) + 1;
    if (!(block = malloc(bytes)))
        return NULL;
    at = (char *)(block + count + 1);
    for (int i = 0; i < count; i++) {
        block[i] = strcpy(at, words[i]);
        at += strlen(at) + 1;
    }
    block[count] = NULL;
    return block;
}

char **branch_command(const struct start *start, const char *host, struct why *why)
{
    char open = 0, **given = shell_split(start->shell, &open), *line = shell_line(start->path);
    const char **words = NULL;
    char **block = NULL;
    int count = 0;

    while (given && given[count])
        count++;
    if (given && given[0] && line)
        words = calloc((size_t)count + SSH_WORDS + 6, sizeof *words);
    count = 0;
    if (!words) {
        value_wrong(why, open ? "--ssh=%.100s: the %c is not closed" : "--ssh=%.100s: no command",
                    start->shell, open);
    } else {
        for (; given[count]; count++)
            words[count] = given[count];
        for (int i = 0; is_ssh(given[0]) && i < SSH_WORDS; i++)
            words[count++] = ssh_words[i];
        words[count++] = host;
        if (takes_words(given[0])) {
            words[count++] = "sh";
            words[count++] = "-c";
            words[count++] = script;
            words[count++] = start->path;
        } else {
            words[count++] = line;
        }
        if (!(block = in_one_block(words, count)))
            value_wrong(why, "out of memory for %d words", count);
    }
    free(words);
    free(given);
    free(line);
    return block;
}

/* ---- Which hosts are this one ------------------------------------------------------ */

/* True if the text is an address of this host.  A bind() to the address would not show this, since
 * bind() accepts every address if net.ipv4.ip_nonlocal_bind is set. */
static int is_own_address(const char *host)
{
    unsigned char bytes[16];
    const int family = inet_pton(AF_INET, host, bytes) == 1    ? AF_INET
                       : inet_pton(AF_INET6, host, bytes) == 1 ? AF_INET6
                                                               : 0;
    struct ifaddrs *all = NULL;
    int own = family == AF_INET && bytes[0] == 127;

    if (!family || getifaddrs(&all) < 0)
        return own;
    for (const struct ifaddrs *one = all; one && !own; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != family)
            continue;
        own = family == AF_INET
                  ? !memcmp(&((struct sockaddr_in *)(void *)one->ifa_addr)->sin_addr, bytes, 4)
                  : !memcmp(&((struct sockaddr_in6 *)(void *)one->ifa_addr)->sin6_addr, bytes, 16);
    }
    freeifaddrs(all);
    return own;
}

/* True if the host is this one.  Compares only names and addresses that are known here, since a
 * look-up for each of a thousand hosts would burden the name server. */
static int is_this_host(const char *host)
{
    char name[HOST_NAME] = "";
    const char *dot = strchr(host, '.');

    gethostname(name, sizeof name - 1);
    return !strcmp(host, "localhost") || !strcmp(host, name) || is_own_address(host)
           || (dot && !strchr(name, '.') && strlen(name) == (size_t)(dot - host)
               && !strncmp(host, name, strlen(name)) && !strchr(host, '@'));
}

/* ---- One branch -------------------------------------------------------------------- */

/* Reaps the ssh of a branch, which ends soon after its socket is closed.  Returns 1 if ssh was
 * reaped, and writes the way in which ssh ended into `how`.  Returns 0 if ssh still runs, which is
 * possible only with WNOHANG in `flags`. */
static int branch_reap(struct branch *branch, int flags, char *how, size_t size)
{
    int status = 0;
    const pid_t got = waitpid(branch->pid, &status, flags);

    if (got == 0)
        return 0;
    branch->pid = 0;
    if (got < 0)
        snprintf(how, size, "%s ended", branch->by);
    else if (WIFEXITED(status))
        snprintf(how, size, "%s exited with %d", branch->by, WEXITSTATUS(status));
    else
        snprintf(how, size, "%s was killed by signal %d", branch->by, WTERMSIG(status));
    return 1;
}

static void reap_all(struct branch *branches, int count, char *how, size_t size)
{
    const struct timespec pause = { 0, 5000000 };
    int left = count;

    for (int turn = 0; left > 0; turn++) {
        left = 0;
        for (int i = 0; i < count; i++) {
            if (branches[i].pid > 0 && turn == REAP_TURNS)
                kill(branches[i].pid, SIGKILL);
            left += branches[i].pid > 0
                    && !branch_reap(&branches[i], turn < REAP_TURNS ? WNOHANG : 0, how, size);
        }
        if (left > 0)
            nanosleep(&pause, NULL);
    }
}

/* Closes the connection at once, so that the program at the other end sees the end now.  libevent
 * alone would close the socket in the next turn of its loop, and that turn may never come. */
static void hang_up(struct branch *branch)
{
    if (!branch->link)
        return;
    shutdown(bufferevent_getfd(branch->link), SHUT_RDWR);
    bufferevent_free(branch->link);
    branch->link = NULL;
}

static void branch_end(struct branch *branch, const char *why)
{
    char how[300];

    hang_up(branch);
    reap_all(branch, 1, how, sizeof how);
    branch->hooks->gone(branch->arg, branch, why ? why : how);
}

static void branch_readable(struct bufferevent *link, void *arg)
{
    struct branch *branch = arg;
    struct evbuffer *in = bufferevent_get_input(link);
    struct relay_frame frame;
    int got;

    while ((got = frame_peek(in, &frame)) > 0) {
        branch->hooks->frame(branch->arg, branch, &frame);
        if (!branch->link)
            return;
        frame_drop(in, &frame);
    }
    if (got < 0) {
        char first[80] = "", why[300];

        evbuffer_copyout(in, first, sizeof first - 1);
        for (char *c = first; *c; c++)
            if (*c < ' ' || *c > '~')
                *c = *c == '\n' ? 0 : '?';
        snprintf(why, sizeof why,
                 "its shell printed '%s' before %s began: what starts a shell there must print "
                 "nothing",
                 first, branch->program);
        branch_end(branch, why);
    }
}

static void branch_event(struct bufferevent *link, short what, void *arg)
{
    (void)link;
    /* A failed write shows only that the peer no longer reads.  Data that the peer sent before must
     * be read first, so only the end of the input ends the branch. */
    if (what & BEV_EVENT_WRITING)
        return;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        branch_end(arg, NULL);
}

static int branch_spawn(struct branch *branch, const struct start *start, int *fd)
{
    const int here = is_this_host(branch->host);
    char *own[] = { start->path, NODE_WORD, NULL }, **command = NULL, path[4096];
    int pair[2], execed, cause;
    struct why why;
    sigset_t ignored;

    if (!here && !(command = branch_command(start, branch->host, &why))) {
        log_line(LOG_ERROR, "%s", why.text);
        return -1;
    }
    snprintf(path, sizeof path, "%s", start->path);
    if (!here && (cause = program_search(command[0], path, sizeof path)) != 0) {
        log_line(LOG_ERROR,
                 "%s can't be run to start %s on %s: %s (--ssh=COMMAND names another command)",
                 command[0], branch->program, branch->host, strerror(cause));
        free(command);
        return -1;
    }
    branch->by = here                     ? branch->program
                 : known_name(command[0]) ? known_name(command[0])
                                          : "the command of --ssh";
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        log_line(LOG_ERROR, "no socket for %s: %s", branch->host, strerror(errno));
        free(command);
        return -1;
    }
    signals_ignored(&ignored);
    branch->pid = spawn(&(struct spawn_args){ .path = path,
                                              .argv = here ? own : command,
                                              .envp = environ,
                                              .in = pair[1],
                                              .out = pair[1],
                                              .err = -1,
                                              /* A relay on this host must outlive this ctrun, to
                                               * stop the node's ctrun. */
                                              .outlives = here,
                                              .ignored = &ignored },
                        &execed);
    if (branch->pid < 0)
        log_line(LOG_ERROR, "%s, which starts %s on %s: %s", path, branch->program, branch->host,
                 strerror(errno));
    free(command);
    close(pair[1]);
    if (branch->pid < 0)
        close(pair[0]);
    *fd = pair[0];
    return branch->pid < 0 ? -1 : 0;
}

static int branch_open(struct branch *branch, struct event_base *base, const struct start *start)
{
    size_t size;
    char *data;
    int fd, result;

    if (branch_spawn(branch, start, &fd) < 0)
        return -1;
    evutil_make_socket_nonblocking(fd);
    branch->link = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (!branch->link) {
        close(fd);
        log_line(LOG_ERROR, "out of memory for host %s", branch->host);
        return -1;
    }
    bufferevent_setcb(branch->link, branch_readable, NULL, branch_event, branch);
    bufferevent_enable(branch->link, EV_READ | EV_WRITE);
    data = start_write(start, branch->first, branch->count, &size);
    result = data ? frame_send(branch->link, FRAME_START, branch->first, 0, data, size) : -1;
    free(data);
    if (result < 0)
        log_line(LOG_ERROR, "out of memory for host %s", branch->host);
    return result;
}

/* ---- All of them ------------------------------------------------------------------- */

int branches_open(struct branches *branches, struct event_base *base, const struct start *start,
                  int first, int count, const struct branch_hooks *hooks, void *arg)
{
    const int ways = count < FAN_OUT ? count : FAN_OUT;

    *branches = (struct branches){ .list = calloc((size_t)ways + 1, sizeof *branches->list) };
    if (!branches->list) {
        log_line(LOG_ERROR, "out of memory for %d hosts", count);
        return -1;
    }
    for (int i = 0; i < ways; i++) {
        struct branch *branch = &branches->list[branches->count++];
        const int begin = (int)((long)count * i / ways), end = (int)((long)count * (i + 1) / ways);

        *branch = (struct branch){ .first = first + begin,
                                   .count = end - begin,
                                   .host = start->hosts.hosts[first - start->first + begin].name,
                                   .program = start_program(start),
                                   .hooks = hooks,
                                   .arg = arg };
        if (branch_open(branch, base, start) < 0)
            return -1;
    }
    return 0;
}

void branches_send(struct branches *branches, const struct relay_frame *frame)
{
    for (int i = 0; i < branches->count; i++) {
        struct branch *branch = &branches->list[i];

        if (branch->link
            && (frame->node == FRAME_ALL
                || (frame->node >= branch->first && frame->node < branch->first + branch->count)))
            frame_send(branch->link, frame->type, frame->node, frame->number, frame->data,
                       frame->size);
    }
}

void branches_read(struct branches *branches, int reads)
{
    for (int i = 0; i < branches->count; i++)
        if (branches->list[i].link)
            (reads ? bufferevent_enable : bufferevent_disable)(branches->list[i].link, EV_READ);
}

int branches_alive(const struct branches *branches)
{
    for (int i = 0; i < branches->count; i++)
        if (branches->list[i].link)
            return 1;
    return 0;
}

void branches_close(struct branches *branches)
{
    char how[300];

    for (int i = 0; i < branches->count; i++)
        hang_up(&branches->list[i]);
    reap_all(branches->list, branches->count, how, sizeof how);
    free(branches->list);
    *branches = (struct branches){ 0 };
}
