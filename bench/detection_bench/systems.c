/* SPDX-License-Identifier: Apache-2.0 */
/* systems.c - see systems.h.
 *
 * A launcher gets the whole row by one command on each node, in which %w is the number of ranks, %l
 * those of a node, %i the node's number and %p a port.  Plain ranks get what they need by
 * variables. What a run leaves behind is adopted (PR_SET_CHILD_SUBREAPER in main.c) and killed. */
#include "bench/detection_bench/systems.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_WORDS 48

/* Starts as { .count = 0 }. */
struct words {
    char room[8192];
    size_t used;
    char *list[MOST_WORDS];
    int count;
};

/* ---- The words of a command, and the process that it becomes ----------------------------- */

extern char **environ;

static void put(struct words *words, const char *text, size_t length)
{
    char *at = words->room + words->used;

    if (words->used + length + 1 > sizeof words->room || words->count + 1 >= MOST_WORDS) {
        errno = E2BIG;
        die("a command");
    }
    memcpy(at, text, length);
    at[length] = 0;
    words->used += length + 1;
    words->list[words->count++] = at;
    words->list[words->count] = NULL;
}

static void words_put(struct words *words, const char *text)
{
    put(words, text, strlen(text));
}

/* The words of text, which spaces part; each %LETTER is replaced by that letter's value. */
static void words_put_all(struct words *words, const char *text, const char *letters,
                          const int *values)
{
    while (*text) {
        char word[1024];
        size_t length = 0;

        for (; *text && *text != ' '; text++) {
            const char *letter = *text == '%' && text[1] ? strchr(letters, text[1]) : NULL;

            if (length + 16 > sizeof word)
                die("a word of a command is too long");
            if (letter) {
                length += (size_t)sprintf(word + length, "%d", values[letter - letters]);
                text++;
            } else {
                word[length++] = *text;
            }
        }
        if (length > 0)
            put(words, word, length);
        text += *text == ' ';
    }
}

/* Starts them.  in, out: what becomes stdin and stdout; -1: /dev/null.  quiet: stderr is not shown.
 */
static pid_t words_spawn(struct words *words, int quiet, int in, int out)
{
    posix_spawn_file_actions_t files;
    pid_t pid;
    int error;

    posix_spawn_file_actions_init(&files);
    if (in >= 0)
        posix_spawn_file_actions_adddup2(&files, in, 0);
    else
        posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    if (out >= 0)
        posix_spawn_file_actions_adddup2(&files, out, 1);
    else
        posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    if (quiet) /* what launchers say about deaths that we caused is no news */
        posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    error = posix_spawnp(&pid, words->list[0], &files, NULL, words->list, environ);
    posix_spawn_file_actions_destroy(&files);
    if (error) {
        errno = error;
        die(words->list[0]);
    }
    return pid;
}

/* ---- Systems ----------------------------------------------------------------------------- */

#define LEAVE_MS 5000
#define FIRST_PORT 20000 /* below the range of clients' ports, so that none sits there */
#define PORTS 10000

const char *node_words[MOST_NODES];

struct system systems[] = {
    { .name = "ctrun", .start = LAUNCHED, .share = 1 },
    { .name = "libct", .start = PLAIN, .share = 1 },
    { .name = "gloo", .start = SERVED, .share = 6 },
    { .name = "openmpi", .start = LAUNCHED, .share = 12, .by_signal = 1 },
    { .name = "hydra", .start = LAUNCHED, .share = 12, .by_signal = 1 },
    { .name = "torchrun", .start = LAUNCHED, .share = 6, .by_signal = 1 },
    { .name = "ctrun-stop", .start = LAUNCHED, .share = 1, .by_signal = 1 },
};
const int system_count = (int)(sizeof systems / sizeof *systems);

void die(const char *what)
{
    fprintf(stderr, "detection_bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

struct system *system_find(const char *name)
{
    for (int i = 0; i < system_count; i++)
        if (!strcmp(systems[i].name, name))
            return &systems[i];
    return NULL;
}

/* ---- Variables ---------------------------------------------------------------- */

static int next_port(void)
{
    static int given;

    if (given == 0)
        given = (int)(stamp() / 1000 % PORTS);
    return FIRST_PORT + given++ % PORTS;
}

static void set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static const char *node_before(const struct row *row, int node)
{
    return row->layout->nodes > 1 ? node_words[node] : "";
}

static const char *master(const struct row *row)
{
    return row->layout->nodes > 1 ? "10.77.0.1" : "127.0.0.1";
}

/* ---- The three ways to start --------------------------------------------------- */

static void start_launchers(struct job *job, const char *page)
{
    const struct layout *layout = job->row->layout;
    const int port = next_port();

    for (int node = 0; node < layout->nodes; node++) {
        const int values[] = { layout->ranks, layout->ranks / layout->nodes, node, port };
        struct words words = { .count = 0 };

        words_put_all(&words, node_before(job->row, node), "", NULL);
        words_put_all(&words, job->system->command[layout->nodes - 1], "wlip", values);
        words_put(&words, page);
        words_put(&words, job->row->kind->place);
        job->pids[job->count++] = words_spawn(&words, 1, -1, -1);
    }
}

static void start_ranks(struct job *job, const char *page)
{
    const struct layout *layout = job->row->layout;
    const int local = layout->ranks / layout->nodes;

    setenv("MASTER_ADDR", master(job->row), 1);
    set_number("MASTER_PORT", next_port());
    set_number("WORLD_SIZE", layout->ranks);
    set_number("LOCAL_WORLD_SIZE", local);
    for (int rank = 0; rank < layout->ranks; rank++) {
        struct words words = { .count = 0 };

        set_number("RANK", rank);
        set_number("LOCAL_RANK", rank % local);
        words_put_all(&words, node_before(job->row, rank / local), "", NULL);
        words_put_all(&words, job->system->command[layout->nodes - 1], "", NULL);
        words_put(&words, page);
        words_put(&words, job->row->kind->place);
        job->pids[job->count++] = words_spawn(&words, 0, -1, -1);
    }
    for (const char *const *name =
             (const char *const[]){ "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
                                    "RANK", "LOCAL_RANK", NULL };
         *name; name++)
        unsetenv(*name);
}

static struct server *server_on(struct job *job, int node, const char *page)
{
    const int nodes = job->row->layout->nodes;
    struct server *server = &job->system->servers[nodes > 1 ? 1 + node : 0];
    struct words words = { .count = 0 };
    int orders[2], answers[2];

    if (server->pid)
        return server;
    if (pipe2(orders, O_CLOEXEC) < 0 || pipe2(answers, O_CLOEXEC) < 0)
        die("pipe2");
    words_put_all(&words, node_before(job->row, node), "", NULL);
    words_put_all(&words, job->system->command[nodes - 1], "", NULL);
    setenv("GLOO_SOCKET_IFNAME", nodes > 1 ? "eth0" : "lo", 1);
    words_put(&words, page);
    server->pid = words_spawn(&words, 0, orders[0], answers[1]);
    unsetenv("GLOO_SOCKET_IFNAME");
    close(orders[0]);
    close(answers[1]);
    server->orders = fdopen(orders[1], "w");
    server->answers = fdopen(answers[0], "r");
    return server;
}

static void order_ranks(struct job *job, const char *page)
{
    const struct layout *layout = job->row->layout;
    const int local = layout->ranks / layout->nodes, port = next_port();

    for (int node = 0; node < layout->nodes; node++) {
        struct server *server = server_on(job, node, page);

        fprintf(server->orders, "%s %d %d %d %s %d\n", job->row->kind->place, layout->ranks,
                node * local, local, master(job->row), port);
        fflush(server->orders);
    }
}

void job_start(struct job *job, struct system *system, const struct row *row, const char *page)
{
    *job = (struct job){ .system = system, .row = row };
    if (row->layout->link)
        setenv("CT_LINK", row->layout->link, 1);
    if (system->start == LAUNCHED)
        start_launchers(job, page);
    else if (system->start == PLAIN)
        start_ranks(job, page);
    else
        order_ranks(job, page);
    unsetenv("CT_LINK");
}

/* ---- The end ------------------------------------------------------------------- */

int job_is_over(struct job *job)
{
    for (int i = 0; i < job->count; i++)
        if (job->pids[i] > 0) {
            if (waitpid(job->pids[i], NULL, WNOHANG) == 0)
                return 0;
            job->pids[i] = 0;
            if (i == 0)
                job->ended = stamp();
        }
    return job->count > 0;
}

static void kill_ranks(struct page *page)
{
    for (int rank = 0; rank < MOST_RANKS; rank++)
        if (page->pid[rank] > 0)
            kill((pid_t)page->pid[rank], SIGKILL);
}

static int is_server(pid_t pid)
{
    for (int s = 0; s < system_count; s++)
        for (int i = 0; i <= MOST_NODES; i++)
            if (systems[s].servers[i].pid == pid)
                return 1;
    return 0;
}

static int kill_adopted(void)
{
    char path[64];
    int pid, others = 0;
    FILE *children;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    children = fopen(path, "r");
    while (children && fscanf(children, "%d", &pid) == 1)
        if (!is_server(pid)) {
            others++;
            kill(pid, SIGKILL);
            waitpid(pid, NULL, WNOHANG);
        }
    if (children)
        fclose(children);
    return others;
}

void job_end(struct job *job, struct page *page)
{
    char answer[16];

    atomic_store(&page->leave, 1);
    if (job->system->start == SERVED) {
        kill_ranks(page); /* those of gloo have left, or never will */
        for (int node = 0; node < job->row->layout->nodes; node++)
            if (!fgets(answer, sizeof answer, server_on(job, node, NULL)->answers))
                die("a server of PyTorch ranks has ended");
        return;
    }
    for (int waited = 0; waited < LEAVE_MS && !job_is_over(job); waited++) {
        if (waited == LEAVE_MS / 2)
            kill_ranks(page);
        usleep(1000);
    }
    while (kill_adopted() > 0)
        usleep(500);
}

void servers_stop(void)
{
    for (int s = 0; s < system_count; s++)
        for (int i = 0; i <= MOST_NODES; i++) {
            struct server *server = &systems[s].servers[i];

            if (server->pid) {
                fclose(server->orders); /* it reads the end, and ends */
                waitpid(server->pid, NULL, 0);
                fclose(server->answers);
                server->pid = 0;
            }
        }
}
