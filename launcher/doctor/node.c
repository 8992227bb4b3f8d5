/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - runs `ctctl --doctor-node` on each host.
 *
 * This process checks the host and listens.  Then ctctl sends the list of all hosts, and commands.
 * A command has the number of pings, the number of bursts, and the distance to the host that is to
 * be measured (the number of that host minus the number of this host).  The results are lines on
 * standard output, with tabs between the words.  A line "done" follows the checks, the list, and
 * each command:
 *
 *     out  row LEVEL CHECK REMEDY TEXT
 *          listen "ADDRESS PORT"
 *          pair HOST TRIP BYTES/S SKEW REMEDY ERROR
 *     in   NAME ADDRESS PORT, for each host in order
 *          PINGS BURSTS DISTANCE, for each command
 *
 * A second process answers the other hosts.  It ends when this process ends, and this process ends
 * when its standard input ends. */
#include <endian.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/values/hosts_node.h"
#include "launcher/doctor/addresses.h"
#include "launcher/doctor/checks.h"
#include "launcher/doctor/doctor.h"
#include "runtime/net/interface.h"
#include "runtime/net/socket.h"
#include "runtime/util/clock.h"

/* longest connect(), enough for three attempts of the kernel at 0, 1 and 3 s */
#define CONNECT_MS 4000
#define STEP_MS 3000 /* longest wait for an answer */
#define PINGS_MS 200 /* no ping starts later than this; BURSTS_MS is the same for bursts */
#define BURSTS_MS 250
#define FIRST_BURST ((uint64_t)256 << 10)
#define LARGEST_BURST ((uint64_t)16 << 20)
#define BURST_NS 30000000 /* ns; if a burst took less, the next burst is larger */
#define CHUNK ((size_t)256 << 10)

struct doctor_peer {
    char name[256], address[128];
    int port; /* 0 if the peer can't be measured */
    struct host_pair pair;
};

struct doctor_node {
    struct hosts_node job; /* the run id is the secret that a peer must send */
    struct doctor_peer *peers;
};

static char chunk[CHUNK];

/* ---- Where others reach this host --------------------------------------------------------- */

/* Finds the address from which this host sends packets to `address`.  Clients of the store find
 * their own address in the same way.  Returns 1, or 0 if there is no such address or it is a
 * loopback address. */
static int address_towards(const char *address, char *text, size_t size)
{
    const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM };
    struct addrinfo *to;
    int fd, found;

    if (getaddrinfo(address, "29500", &hints, &to) != 0)
        return 0;
    fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    /* connect() of a UDP socket sends nothing */
    found = fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0
            && socket_local_address(fd, text, size) == CT_OK && !is_loopback_address(text);
    if (fd >= 0)
        close(fd);
    freeaddrinfo(to);
    return found;
}

static ct_status find_address(const char *iface, const char *head, char *text, size_t size)
{
    struct addresses addresses;

    if (*iface)
        return interface_address("--iface", iface, text, size);
    addresses_find(&addresses, head);
    for (int i = 0; i < addresses.count; i++)
        if (address_towards(addresses.text[i], text, size))
            return CT_OK;
    return interface_outward(text, size);
}

static void answer_pings_and_data(int fd, const char *secret)
{
    char theirs[sizeof((struct hosts_node *)0)->run_id] = "";
    const size_t length = strlen(secret);
    uint64_t bytes;

    if (socket_read_all(fd, theirs, length, deadline_after(STEP_MS)) != CT_OK
        || memcmp(theirs, secret, length) != 0)
        return;
    while (socket_read_all(fd, &bytes, sizeof bytes, deadline_after(STEP_MS)) == CT_OK) {
        uint64_t clock;

        for (uint64_t part, left = be64toh(bytes); left > 0; left -= part) {
            part = left < CHUNK ? left : CHUNK;
            if (socket_read_all(fd, chunk, part, deadline_after(STEP_MS)) != CT_OK)
                return;
        }
        clock = htobe64((uint64_t)clock_ns(CLOCK_REALTIME));
        if (socket_write_all(fd, &clock, sizeof clock, deadline_after(STEP_MS)) != CT_OK)
            return;
    }
}

/* Forks a process that answers the other hosts.  That process forks again for each connection, so
 * that no connection waits for another connection. */
static void answer_others(int listener, const char *secret)
{
    const pid_t parent = getpid();
    int fd;

    if (fork() != 0) /* if fork() failed, the other hosts report that this host does not answer */
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGCHLD, SIG_IGN);
    while (getppid() == parent) {
        if (socket_accept(listener, deadline_after(1000), &fd) != CT_OK)
            continue;
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            answer_pings_and_data(fd, secret);
            _exit(0);
        }
        close(fd);
    }
    _exit(0);
}

/* Prints the last word of a line.  Replaces tabs and newlines, which would start new words and
 * lines, by spaces.  The name of a folder or the output of ctrun may contain them. */
static void say_text(const char *text)
{
    for (; *text; text++)
        putchar((unsigned char)*text < ' ' || *text == 127 ? ' ' : *text);
    putchar('\n');
}

static void say_finding(enum finding_level level, const char *check, const char *text,
                        const char *remedy)
{
    printf("row\t%d\t%s\t%s\t", level, check, remedy);
    say_text(text);
}

static void listen_for_others(const struct hosts_node *job, const char *iface)
{
    char address[128];
    int listener;

    if (find_address(iface, job->head, address, sizeof address) != CT_OK
        || socket_listen(NULL, 0, &listener) != CT_OK) {
        say_finding(LEVEL_FAIL, "address", ct_last_error(),
                    "bring the interface up (ip link, ip addr), or name one: --iface");
        return;
    }
    printf("listen\t%s %d\n", address, socket_port(listener));
    answer_others(listener, job->run_id);
}

/* ---- The way to another host -------------------------------------------------------------- */

static void check_name(const char *name, int is_first)
{
    struct addresses found;
    char text[600];

    addresses_find(&found, name);
    if (found.count > 0 && !is_loopback_address(found.text[0]))
        return;
    snprintf(text, sizeof text, "it does not find %s: %s%s%s%s", name,
             found.count > 0 ? "it resolves to " : "",
             found.count > 0 ? found.text[0] : found.error,
             found.count > 0 ? ", which is this host itself" : "",
             is_first ? "; of the first host all others need it (MASTER_ADDR)" : "");
    say_finding(is_first ? LEVEL_FAIL : LEVEL_WARN, "names", text,
                "the same name server or /etc/hosts on all hosts, or --hosts with addresses");
}

/* Sends the bytes and reads the other host's clock.  Returns the time in ns; -1 if it failed. */
static int64_t exchange(struct host_pair *pair, int fd, uint64_t bytes)
{
    const int64_t deadline = deadline_after(STEP_MS), time = clock_ns(CLOCK_REALTIME);
    const int64_t began = clock_ns(CLOCK_MONOTONIC);
    uint64_t word = htobe64(bytes);
    ct_status status = socket_write_all(fd, &word, sizeof word, deadline);
    int64_t ns;

    for (uint64_t sent = 0; status == CT_OK && sent < bytes; sent += CHUNK)
        status = socket_write_all(fd, chunk, CHUNK, deadline);
    if (status != CT_OK || socket_read_all(fd, &word, sizeof word, deadline) != CT_OK)
        return -1;
    ns = clock_ns(CLOCK_MONOTONIC) - began;
    pair_take(pair, bytes, ns, time, (int64_t)be64toh(word));
    return ns;
}

/* Repeats exchange() until `times` exchanges are done, or `ms` have passed.  `bytes` is 0 for
 * pings.  For bursts, the number of bytes grows while the bursts take little time.  Returns 0, or
 * -1 if an exchange failed. */
static int exchange_often(struct host_pair *pair, int fd, uint64_t bytes, int times, int ms)
{
    const int64_t end = deadline_after(ms);

    for (int i = 0; i < times && (i == 0 || clock_ms() < end); i++) {
        const int64_t ns = exchange(pair, fd, bytes);

        if (ns < 0)
            return -1;
        if (ns < BURST_NS)
            bytes = 8 * bytes < LARGEST_BURST ? 8 * bytes : LARGEST_BURST;
    }
    return 0;
}

static const char route_remedy[] =
    "allow TCP between the hosts on all ports, in both directions (ip route get ADDRESS; nft list "
    "ruleset; cloud: the security group), or name another network: --iface";

static const char large_remedy[] =
    "the same MTU on all hosts and on the way (ip link; ping -M do -s 1472 HOST, 8972 where it is "
    "9000)";

/* Measures the connection to a peer.  Small packets may pass where large packets do not, since a
 * tunnel may allow less than the interface's MTU.  So a failure of the first burst has a separate
 * error message.  Returns NULL for success, or the start of an error message, which the caller
 * completes with ct_last_error().  Sets *remedy to what the user can do. */
static const char *node_measure(const struct doctor_node *node, struct doctor_peer *peer, int pings,
                                int bursts, const char **remedy)
{
    const char *failed = NULL;
    int fd;

    *remedy = route_remedy;
    if (socket_connect_once(peer->address, peer->port, deadline_after(CONNECT_MS), &fd) != CT_OK)
        return "";
    socket_give_up_after(fd, STEP_MS);
    if (socket_write_all(fd, node->job.run_id, strlen(node->job.run_id), deadline_after(STEP_MS))
            != CT_OK
        || exchange_often(&peer->pair, fd, 0, pings, PINGS_MS) < 0) {
        failed = "it connects, but gets no answer: ";
    } else if (exchange_often(&peer->pair, fd, FIRST_BURST, bursts, BURSTS_MS) < 0) {
        failed = "the connection broke in the middle of data: ";
        if (peer->pair.figure[BYTES_PER_S] == 0) {
            failed = "small packets pass, but 256 KiB do not: ";
            *remedy = large_remedy;
        }
    }
    close(fd);
    return failed;
}

/* Reads a command and measures.  Returns 0, or -1 after the last command. */
static int node_take_command(const struct doctor_node *node)
{
    struct doctor_peer *peer;
    const char *failed, *remedy;
    char text[600] = "";
    int pings, bursts, distance, to;

    if (scanf("%d %d %d", &pings, &bursts, &distance) != 3)
        return -1;
    to = (node->job.node + distance) % node->job.nodes;
    peer = &node->peers[to];
    if (peer->port == 0)
        return 0;
    if (peer->pair.figure[TRIP_US] == 0)
        check_name(peer->name, to == 0);
    failed = node_measure(node, peer, pings, bursts, &remedy);
    if (failed) {
        snprintf(text, sizeof text, "%s%s", failed, ct_last_error());
        peer->port = 0;
    }
    printf("pair\t%d\t%.3f\t%.0f\t%lld\t%s\t", to, peer->pair.figure[TRIP_US],
           peer->pair.figure[BYTES_PER_S], (long long)peer->pair.skew_ns, remedy);
    say_text(text);
    return 0;
}

/* ---- The whole --------------------------------------------------------------------------- */

static int read_peers(struct doctor_node *node)
{
    node->peers = calloc((size_t)node->job.nodes, sizeof *node->peers);
    for (int i = 0; node->peers && i < node->job.nodes; i++) {
        struct doctor_peer *peer = &node->peers[i];

        if (scanf("%255s %127s %d", peer->name, peer->address, &peer->port) != 3)
            return -1;
    }
    return node->peers ? 0 : -1;
}

/* Checks this host and measures connections until standard input ends.  Returns the exit code.  The
 * words are the path of ctctl where the user typed the command, the user's folder, the value of
 * --iface or "", and the path of the file with the secret or "". */
int doctor_node(char **words)
{
    const char *job = getenv(HOSTS_NODE_VARIABLE);
    static struct doctor_node node; /* never freed, since the process ends after this function */

    if (!job || hosts_node_read(&node.job, job) < 0)
        return 2;
    /* stderr goes to ctctl as well, which prints all lines that it does not know */
    dup2(STDOUT_FILENO, STDERR_FILENO);
    /* line-buffered, so that a forked process has no output of its parent left to write */
    setvbuf(stdout, NULL, _IOLBF, 0);
    setenv("CT_STORE_SECRET_FILE", words[3], 1);
    checks_run(node.job.nodes, words[0], words[1], say_finding);
    if (node.job.nodes > 1)
        listen_for_others(&node.job, words[2]);
    printf("done\n");
    if (read_peers(&node) < 0)
        return 0; /* ctctl has ended */
    do
        printf("done\n");
    while (node_take_command(&node) == 0);
    return 0;
}
