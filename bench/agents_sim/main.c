/* SPDX-License-Identifier: Apache-2.0 */
/* agents_sim - what a job of many nodes costs the ctrun that coordinates it.
 *
 *     agents_sim CTRUN [NODES...]
 *
 * CTRUN is started as node 0 of so many nodes, with one worker that sleeps; this process is the
 * ctruns of all others, each with a connection, the handshake and the messages of the real one
 * (node_messages.h), and 8 workers that are not there.  Printed are, for each number of nodes:
 *
 *     join     from the first connection until the last node was told to start its workers
 *     beats    of a processor, what CTRUN takes to be told each second that all nodes live
 *     death    from a worker's end until the last node knows it, the median of 21
 *     stop     from a worker's failure until the last node was told to stop
 *     over     from the last node's end of its workers until CTRUN has ended
 *
 * Both processes share this machine's processors. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/nodes/node_messages.h"
#include "runtime/net/socket.h"
#include "runtime/net/shared_secret.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

enum { WORKERS = 8, DEATHS = 21, BEATS = 10, DEADLINE_MS = 120000, SECRET_TEXT = 33 };

struct agent {
    int fd;
    unsigned char in[4 + NODE_TEXT];
    size_t got;
};

static struct job {
    int nodes, port, epoll;
    pid_t ctrun;
    struct agent *agents; /* [1, nodes) */
    char generation[NODE_GENERATION];
    int told[256]; /* how many agents were sent a message of this type; since forget() */
} job;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "agents_sim: %d nodes: %s (%s)\n", job.nodes, what, ct_last_error());
    if (job.ctrun > 0)
        kill(job.ctrun, SIGKILL);
    exit(1);
}

/* ---- Messages ---------------------------------------------------------------- */

static void give(int node, int type, const char *text)
{
    unsigned char out[5 + NODE_TEXT];
    const uint32_t size = (uint32_t)strlen(text) + 1;

    memcpy(out, &size, sizeof size);
    out[4] = (unsigned char)type;
    memcpy(out + 5, text, size - 1);
    if (socket_write_all(job.agents[node].fd, out, 4 + size, deadline_after(DEADLINE_MS)) != CT_OK)
        fail("a message is not taken");
}

static void take_message(const struct agent *agent, uint32_t size)
{
    char text[NODE_TEXT], mapping[NODE_MAPPING];
    struct plan plan;

    job.told[agent->in[4]]++;
    node_text(text, sizeof text, agent->in + 5, size - 1);
    if (agent->in[4] == NODE_REFUSED) {
        ct_fail(CT_ERR_SYSTEM, "%s", text);
        fail("a node was refused");
    }
    if (agent->in[4] == NODE_ROUND
        && node_round_read(text, WORKERS, &plan, job.generation, mapping) < 0)
        fail("a round can't be read");
}

static void take(struct agent *agent)
{
    const ssize_t n =
        recv(agent->fd, agent->in + agent->got, sizeof agent->in - agent->got, MSG_DONTWAIT);
    uint32_t size;

    if (n <= 0 && errno == EAGAIN)
        return;
    if (n <= 0)
        fail("a connection was closed");
    agent->got += (size_t)n;
    while (agent->got >= 4 && memcpy(&size, agent->in, 4) && size > 0 && size <= NODE_TEXT
           && agent->got >= 4 + size) {
        take_message(agent, size);
        agent->got -= 4 + size;
        memmove(agent->in, agent->in + 4 + size, agent->got);
    }
}

/* Takes what comes, until so many agents were told, or for so long. */
static void take_until(int type, int count, int64_t deadline)
{
    struct epoll_event ready[64];

    while (type < 0 || job.told[type] < count) {
        const int64_t left = deadline - clock_ms();
        int n;

        if (left <= 0 && type < 0)
            return;
        if (left <= 0)
            fail("the messages do not come");
        n = epoll_wait(job.epoll, ready, 64, (int)left);
        for (int i = 0; i < n; i++)
            take(ready[i].data.ptr);
    }
}

static void forget(int type)
{
    job.told[type] = 0;
}

static double ms_since(int64_t start_ns)
{
    return (double)(clock_ns(CLOCK_MONOTONIC) - start_ns) / 1e6;
}

/* ---- The job ----------------------------------------------------------------- */

static void start_ctrun(const char *program)
{
    char nodes[32], port[32];
    int free_port;

    if (socket_listen("127.0.0.1", 0, &free_port) != CT_OK)
        fail("no port");
    job.port = socket_port(free_port);
    close(free_port);
    snprintf(nodes, sizeof nodes, "--nnodes=%d", job.nodes);
    snprintf(port, sizeof port, "--master-port=%d", job.port);
    job.ctrun = fork();
    if (job.ctrun == 0) {
        if (!freopen("/dev/null", "w", stderr)) /* "node 1: exit code 7" */
            _exit(127);
        setenv("OMP_NUM_THREADS", "1", 1);
        execl(program, program, nodes, "--node-rank=0", "--nproc-per-node=1", "--rdzv-id=sim",
              "--master-addr=127.0.0.1", port, "--rdzv-conf=timeout=120", "sleep", "1000",
              (char *)NULL);
        _exit(127);
    }
}

static void join(const struct secret *secret, int node)
{
    struct agent *agent = &job.agents[node];
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = agent };
    struct node_join words = { .node = node,
                               .min = job.nodes,
                               .max = job.nodes,
                               .workers = WORKERS,
                               .version = CT_VERSION,
                               .pid = 1,
                               .role = "default",
                               .job = "sim" };
    char text[NODE_TEXT];

    snprintf(words.host, sizeof words.host, "node%d", node);
    if (socket_connect("127.0.0.1", job.port, deadline_after(DEADLINE_MS), &agent->fd) != CT_OK
        || secret_prove(secret, NULL, agent->fd, HELLO_AGENT, "ctrun", deadline_after(DEADLINE_MS))
               != CT_OK)
        fail("no connection");
    if (epoll_ctl(job.epoll, EPOLL_CTL_ADD, agent->fd, &event) < 0)
        fail("epoll");
    node_join_print(&words, text);
    give(node, NODE_JOIN, text);
}

/* Processor time of CTRUN until now, in ms. */
static double used_by_ctrun(void)
{
    char path[64];
    unsigned long user = 0, kernel = 0;
    FILE *stat;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)job.ctrun);
    stat = fopen(path, "re");
    if (!stat
        || fscanf(stat, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                  &kernel)
               != 2)
        fail("its processor time is not to be seen");
    fclose(stat);
    return (double)(user + kernel) * 1e3 / (double)sysconf(_SC_CLK_TCK);
}

/* Of the nodes up to that one, as each does every second. */
static void beat(int last)
{
    for (int node = 1; node <= last; node++)
        give(node, NODE_BEAT, "");
}

static double percent_for_beats(void)
{
    const int64_t start = clock_ns(CLOCK_MONOTONIC);
    const int64_t begin = clock_ms();
    const double used = used_by_ctrun();

    for (int second = 1; second <= BEATS; second++) {
        beat(job.nodes - 1);
        take_until(-1, 0, begin + 1000 * second);
    }
    return 100 * (used_by_ctrun() - used) / ms_since(start);
}

/* Beats in between, or the nodes count as silent. */
static double death(int number)
{
    const int node = 1 + number % (job.nodes - 1);
    struct node_death dead = { .count = 1 };
    char text[NODE_TEXT];
    int64_t start;

    beat(job.nodes - 1);
    take_until(-1, 0, deadline_after(100));
    forget(NODE_DIED);
    snprintf(dead.generation, sizeof dead.generation, "%s", job.generation);
    dead.death.rank = 1 + (node - 1) * WORKERS + number / (job.nodes - 1);
    dead.death.how = CLD_KILLED;
    dead.death.code = SIGKILL;
    dead.death.pid = 2;
    snprintf(dead.death.host, sizeof dead.death.host, "node%d", node);
    node_death_print(&dead, text);
    start = clock_ns(CLOCK_MONOTONIC);
    give(node, NODE_DIED, text);
    take_until(NODE_DIED, job.nodes - 2, deadline_after(DEADLINE_MS));
    return ms_since(start);
}

static double stop(void)
{
    const struct failure failure = { 1, -1, 7, 0, "exit code 7", 0 };
    char text[NODE_TEXT];
    int64_t start;

    node_failure_print(&failure, text);
    start = clock_ns(CLOCK_MONOTONIC);
    give(1, NODE_FAILED, text);
    take_until(NODE_STOP, job.nodes - 2, deadline_after(DEADLINE_MS));
    return ms_since(start);
}

static double over(void)
{
    const struct round_end end = { -1, 0 };
    char text[NODE_TEXT];
    int64_t start = 0;

    round_end_print(&end, text);
    for (int node = 1; node < job.nodes; node++) {
        start = clock_ns(CLOCK_MONOTONIC);
        give(node, NODE_ENDED, text);
    }
    take_until(NODE_OVER, job.nodes - 1, deadline_after(DEADLINE_MS));
    for (int node = 1; node < job.nodes; node++)
        close(job.agents[node].fd);
    waitpid(job.ctrun, NULL, 0);
    return ms_since(start);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void simulate(const char *program, const struct secret *secret, int nodes)
{
    double joined, beats, deaths[DEATHS], stopped;
    int64_t start;

    job = (struct job){ .nodes = nodes, .epoll = epoll_create1(EPOLL_CLOEXEC) };
    job.agents = calloc((size_t)nodes, sizeof *job.agents);
    if (job.epoll < 0 || !job.agents)
        fail("no memory");
    start_ctrun(program);
    start = clock_ns(CLOCK_MONOTONIC);
    for (int node = 1; node < nodes; node++) {
        join(secret, node);
        if (node % 1000 == 0)
            beat(node);
    }
    take_until(NODE_ROUND, nodes - 1, deadline_after(DEADLINE_MS));
    joined = ms_since(start);
    beats = percent_for_beats();
    for (int i = 0; i < DEATHS; i++)
        deaths[i] = death(i);
    qsort(deaths, DEATHS, sizeof *deaths, by_value);
    stopped = stop();
    printf("| %d | %.0f | %.1f | %.2f | %.2f | %.0f |\n", nodes, joined, beats, deaths[DEATHS / 2],
           stopped, over());
    fflush(stdout);
    close(job.epoll);
    free(job.agents);
}

int main(int argc, char **argv)
{
    struct rlimit files = { 0 };
    struct secret secret;
    char text[SECRET_TEXT];

    if (argc < 3) {
        fprintf(stderr, "usage: agents_sim CTRUN NODES...\n");
        return 2;
    }
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    log_setup("agents_sim", LOG_ERROR);
    snprintf(text, sizeof text, "%032d", 1);
    setenv("CT_STORE_SECRET", text, 1);
    if (secret_read(&secret, NULL) != CT_OK)
        fail("no secret");
    printf("| nodes | join ms | beats %% | death ms | stop ms | over ms "
           "|\n|---|---|---|---|---|---|\n");
    for (int i = 2; i < argc; i++)
        simulate(argv[1], &secret, atoi(argv[i]));
    return 0;
}
