/* SPDX-License-Identifier: Apache-2.0 */
/* job_rendezvous.c - finds or opens the store.  In a job on one node, this ctrun hosts the store on
 * the loopback interface, at a free port.  In a job on several nodes, node 0 hosts the store at
 * --master-addr and --master-port, or at --rdzv-endpoint.
 *
 * ctrun binds the socket first of all and keeps the socket open, so no other process can take the
 * port before the store uses it.  ctrun looks up a name only if the user named a host.  This file
 * also decides which connections the store admits.  If a job on one node has no secret, ctrun makes
 * a secret for its own workers. */
#include "launcher/nodes/job_rendezvous.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/values/slurm.h"
#include "runtime/exchange/launcher_exchange.h"
#include "runtime/net/interface.h"
#include "runtime/net/socket.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define EXCHANGE_MS 120000 /* time in which the ctrun of each node must start */

/* Writes a UUID of version 4, which is random except for six bits. */
static void new_uuid(char *text, size_t size)
{
    unsigned char b[16] = { 0 };

    if (getrandom(b, sizeof b, 0) < 0)
        memcpy(b, &(pid_t){ getpid() }, sizeof(pid_t));
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    snprintf(text, size, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}

static int shares_no_store(void)
{
    const char *text = getenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE");

    return text && !strcmp(text, "1");
}

static void job_rendezvous_plan(struct job_rendezvous *meet, const struct options *options,
                                const struct meeting *meeting)
{
    *meet = (struct job_rendezvous){ .listener = -1, .file_lock = -1, .policy = STORE_POLICY_INIT };
    meet->is_elastic = meeting->kind == MEET_DYNAMIC;
    meet->serves_only = meeting->serves_only;
    meet->title = meet->is_elastic ? "the coordinator" : "node 0";
    meet->is_coordinator =
        meeting->kind == MEET_ALONE || (meeting->kind == MEET_STATIC && options->node_rank == 0);
    meet->own_store = meeting->kind != MEET_STATIC && shares_no_store();
    snprintf(meet->address, sizeof meet->address, "%s", meeting->host);
    meet->port = meeting->port;
    if (meet->is_elastic && *meeting->file) {
        snprintf(meet->file, sizeof meet->file, "%s", meeting->file);
        snprintf(meet->address, sizeof meet->address, "%s",
                 options->local_addr ? options->local_addr : "127.0.0.1");
        meet->port = 0;
    }
    if (meeting->kind != MEET_ALONE && *options->rdzv_id)
        snprintf(meet->run_id, sizeof meet->run_id, "%s", options->rdzv_id);
    else
        new_uuid(meet->run_id, sizeof meet->run_id);
}

static int is_this_host_only(const char *address)
{
    return !strncmp(address, "127.", 4) || !strcmp(address, "::1") || !strcmp(address, "localhost");
}

ct_status job_secret_read(const struct options *options, struct secret *secret)
{
    const int from = options->settings[OPTION_STORE_SECRET_FILE].from;
    /* The command line overrides the environment, which overrides job.ini. */
    const ct_status status =
        secret_read(secret, from == FROM_COMMAND_LINE ? options->store_secret_file : NULL);

    return status == CT_OK && secret->size == 0 && from == FROM_FILE
               ? secret_read(secret, options->store_secret_file)
               : status;
}

ct_status job_secret_make(const struct options *options, char text[JOB_SECRET_TEXT])
{
    struct secret secret;
    ct_status status = job_secret_read(options, &secret);

    if (status == CT_OK && secret.size == 0)
        status = secret_make(&secret);
    if (status == CT_OK)
        snprintf(text, JOB_SECRET_TEXT, "%.*s", (int)secret.size, (const char *)secret.bytes);
    return status;
}

static ct_status plan_policy(struct job_rendezvous *meet, const struct options *options)
{
    struct store_policy *policy = &meet->policy;
    const struct secret exchanged = policy->secret;
    ct_status status = job_secret_read(options, &policy->secret);

    if (status == CT_OK && policy->secret.size == 0)
        policy->secret = exchanged;

    policy->memory = options->store_memory;
    policy->request = options->store_request;
    policy->clients = options->store_clients;
    policy->allow = options->store_allow;
    if (status == CT_OK && policy->secret.size == 0 && options->nnodes.max == 1)
        status = secret_make(&policy->secret);
    policy->encrypts = options->encrypt;
    if (status == CT_OK && policy->encrypts)
        status = encryption_check_secret(&policy->secret);
    policy->open = policy->secret.size == 0 && policy->allow.count == 0;
    return status;
}

/* Logs a warning if the store admits every connection from other hosts, as torchrun's store does.
 * Without a secret the store can't tell which user of another host connects. */
static void warn_if_open(const struct job_rendezvous *meet)
{
    if (meet->policy.open && meet->is_coordinator && !is_this_host_only(meet->address))
        log_line(
            LOG_WARN,
            "no job secret: every host that reaches %s port %d may read and write the store; to "
            "close it, give all nodes the same CT_STORE_SECRET (openssl rand -hex 32) or "
            "--store-secret-file=FILE",
            meet->address, meet->port);
}

/* Listens at --local-addr, or else on all interfaces, since --master-addr is not an address of this
 * host.  Either --node-rank is wrong, or a router or a Kubernetes service forwards the address to
 * this host. */
static ct_status listen_elsewhere(struct job_rendezvous *meet, const struct options *options)
{
    const char *at = options->local_addr;
    char why[300];
    ct_status status;

    snprintf(why, sizeof why, "%s", ct_last_error());
    snprintf(meet->elsewhere, sizeof meet->elsewhere, "%s", at ? at : "all interfaces");
    status = socket_listen(at, meet->port, &meet->listener);
    if (status != CT_OK || at)
        return status;
    if (meet->has_no_address)
        log_line(LOG_WARN, "%s; the store listens on all interfaces, port %d", why,
                 socket_port(meet->listener));
    else if (options->surroundings.is_host_of_job)
        log_line(LOG_WARN,
                 "%s is not an address of this host: the store listens on all interfaces, port %d; "
                 "--master-addr=ADDRESS names one by which all hosts reach it",
                 meet->address, socket_port(meet->listener));
    else
        log_line(
            LOG_WARN,
            "%s is not an address of this host: the store listens on all interfaces, port %d; is "
            "--node-rank=0 right? If it is, --local-addr=ADDRESS names the interface",
            meet->address, socket_port(meet->listener));
    return CT_OK;
}

/* Listens at meet->address only.  But a host's own name may resolve to its loopback interface
 * (127.0.1.1 on Debian), which other hosts can't reach.  Then listens on all interfaces. */
static ct_status listen_at_address(struct job_rendezvous *meet, const struct options *options)
{
    const ct_status status = socket_listen(meet->address, meet->port, &meet->listener);

    if (status != CT_OK || options->nnodes.max == 1 || !socket_is_loopback(meet->listener)
        || is_this_host_only(meet->address))
        return status;
    close(meet->listener);
    log_line(LOG_INFO, "%s is the loopback here; the store listens on all interfaces",
             meet->address);
    return socket_listen(NULL, meet->port, &meet->listener);
}

static ct_status listen_as_node_0(struct job_rendezvous *meet, const struct options *options)
{
    const ct_status status = listen_at_address(meet, options);

    meet->has_no_address = status != CT_OK && errno == ENOENT; /* a pod's name may resolve later */
    return status != CT_OK && options->nnodes.max > 1
                   && (meet->has_no_address || errno == EADDRNOTAVAIL)
               ? listen_elsewhere(meet, options)
               : status;
}

/* ---- An elastic job: is this node 0? ---------------------------------------------- */

/* Locks and empties the file.  Returns CT_ERR_PEER if another ctrun has locked the file.  The
 * kernel releases the lock when this process ends. */
static ct_status lock_file(struct job_rendezvous *meet)
{
    const int fd = open(meet->file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return ct_fail(CT_ERR_SYSTEM, "%s: %s", meet->file, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        meet->file_lock = fd; /* any content is from a ctrun that was killed */
        return ftruncate(fd, 0) == 0
                   ? CT_OK
                   : ct_fail(CT_ERR_SYSTEM, "%s: %s", meet->file, strerror(errno));
    }
    close(fd);
    return ct_fail(CT_ERR_PEER, "%s is locked by another ctrun", meet->file);
}

static ct_status job_rendezvous_write_file(const struct job_rendezvous *meet)
{
    if (!*meet->file
        || (ftruncate(meet->file_lock, 0) == 0
            && dprintf(meet->file_lock, "%s %d\n", meet->address, meet->port) > 0))
        return CT_OK;
    return ct_fail(CT_ERR_SYSTEM, "%s: %s", meet->file, strerror(errno));
}

ct_status job_rendezvous_look_up(struct job_rendezvous *meet)
{
    FILE *file = *meet->file ? fopen(meet->file, "re") : NULL;
    int got = 0;

    if (!*meet->file)
        return CT_OK;
    if (file) {
        got = fscanf(file, "%255s %d", meet->address, &meet->port);
        fclose(file);
    }
    return got == 2 ? CT_OK
                    : ct_fail(CT_ERR_PEER, "the file %s has no address of a node yet", meet->file);
}

/* Waits until the name of the endpoint resolves, since ctrun can tell only then whether the address
 * is its own.  Then listens at the address.  Sets *stopped to the number of a signal that ends the
 * wait.  The caller blocks all signals. */
static ct_status listen_when_it_resolves(struct job_rendezvous *meet, const struct options *options,
                                         int *stopped)
{
    const struct timespec pause = { 0, 500000000 };
    const int64_t start = clock_ms(), timeout = options->rdzv_conf.join_timeout * INT64_C(1000);
    int64_t speak = FIRST_WORD_MS;
    int number;
    ct_status status = listen_at_address(meet, options);

    while (status != CT_OK && errno == ENOENT && options->nnodes.max > 1) {
        const int64_t waited = clock_ms() - start;

        if (waited >= timeout)
            return ct_fail(CT_ERR_SYSTEM,
                           "%s did not resolve within %d s (--rdzv-conf=join_timeout=...)",
                           meet->address, options->rdzv_conf.join_timeout);
        if (waited >= speak) {
            log_line(LOG_WARN,
                     "waiting %d s for node 0: %s; does this host know the name (DNS, /etc/hosts)? "
                     "An address in --rdzv-endpoint needs no name",
                     (int)(waited / 1000), ct_last_error());
            speak += NEXT_WORD_MS;
        }
        number = sigtimedwait(&options->signals.set, NULL, &pause);
        if (number > 0) {
            *stopped = number;
            return CT_ERR_SYSTEM;
        }
        status = listen_at_address(meet, options);
    }
    return status;
}

/* Tries to bind the endpoint, without comparing names.  The ctrun that can bind the endpoint is
 * node 0.  The others connect to node 0. */
static ct_status listen_at_endpoint(struct job_rendezvous *meet, const struct options *options,
                                    int *stopped)
{
    const int asked = options->rdzv_conf.is_host;
    ct_status status = CT_OK;

    if (asked == 0)
        return CT_OK;
    if (*meet->file && (status = lock_file(meet)) == CT_ERR_SYSTEM)
        return status;
    if (status == CT_OK && asked == 1)
        status = listen_as_node_0(meet, options);
    else if (status == CT_OK)
        status = listen_when_it_resolves(meet, options, stopped);
    if (status != CT_OK
        && (meet->file_lock >= 0 || options->nnodes.max == 1 || *stopped || errno == ENOENT))
        return status; /* no other node can be node 0 */
    meet->is_coordinator = status == CT_OK;
    if (status != CT_OK && meet->serves_only)
        return ct_fail_in(status, "--nproc-per-node=0: the rendezvous can't be served here: ");
    return status == CT_OK || asked != 1 ? CT_OK : ct_fail_in(status, "--rdzv-conf=is_host=1: ");
}

/* Shortens DNS look-ups.  If the name servers are silent, glibc asks each server twice for 5 s, for
 * each of a pod's four domains.  ctrun handles no signal during a look-up, and it repeats a failed
 * look-up anyway. */
static void look_up_quickly(void)
{
    if (res_init() < 0)
        return;
    _res.retrans = 2;
    _res.retry = 1;
}

/* Gets node 0's address and port, and a secret, by PMIx or PMI from mpirun or mpiexec, which
 * started a ctrun on each node. */
static ct_status meet_by_launcher(struct job_rendezvous *meet, const struct options *options)
{
    struct launcher_meeting found = { .listener = -1 };
    ct_status status;

    if (!launcher_exchange_is_offered())
        return ct_fail(CT_ERR_INVALID,
                       "%s started ctrun on %d nodes, and neither PMIx nor PMI tells them where "
                       "node 0 is; add --master-addr=HOST, or --standalone for %d jobs",
                       options->surroundings.exchange_of, options->nnodes.max, options->nnodes.max);
    status = launcher_meet(&found, options->node_rank, clock_ms() + EXCHANGE_MS);
    if (status != CT_OK)
        return status;
    snprintf(meet->address, sizeof meet->address, "%s", found.address);
    meet->port = found.port;
    meet->listener = found.listener;
    meet->policy.secret = found.secret;
    return CT_OK;
}

/* Fails if the name of the first host of --hosts does not resolve on this host.  All hosts of
 * --hosts are up, so the name will not resolve later either.  The name may be an alias in
 * ~/.ssh/config of the user's host. */
static ct_status check_first_host(const struct job_rendezvous *meet, const struct options *options)
{
    struct addrinfo *found = NULL;
    int error;

    if (!options->surroundings.is_host_of_job || meet->is_coordinator
        || !options->settings[OPTION_MASTER_ADDR].set_by)
        return CT_OK;
    error = getaddrinfo(meet->address, NULL, NULL, &found);
    if (error == 0)
        freeaddrinfo(found);
    return error == EAI_NONAME
               ? ct_fail(CT_ERR_SYSTEM,
                         "the first host, %s, has no address here: --master-addr=ADDRESS gives "
                         "one by which all hosts reach it",
                         meet->address)
               : CT_OK;
}

/* Replaces the host name that Slurm gave node 0 by an address that Slurm knows.  Logs a warning if
 * Slurm knows no address, since the name may resolve later. */
static void find_slurm_node(struct job_rendezvous *meet, const struct options *options)
{
    const enum option option = meet->is_elastic ? OPTION_RDZV_ENDPOINT : OPTION_MASTER_ADDR;
    const char *set_by = options->settings[option].set_by;

    if (!set_by || strcmp(set_by, "srun") != 0
        || slurm_node_address(meet->address, sizeof meet->address) == 0)
        return;
    log_line(LOG_WARN,
             "node 0's host, %s, does not resolve, and scontrol gives no other address of it: "
             "--%s=ADDRESS, the same on all nodes, names one",
             meet->address, meet->is_elastic ? "rdzv-endpoint" : "master-addr");
}

int job_rendezvous_open(struct job_rendezvous *meet, const struct options *options,
                        const struct meeting *meeting)
{
    const char *fault;
    ct_status status;
    int stopped = 0;

    job_rendezvous_plan(meet, options, meeting);
    if (meeting->kind != MEET_ALONE)
        look_up_quickly();
    find_slurm_node(meet, options);
    /* Without this check, the ranks would try in vain to connect for 30 minutes. */
    fault = is_this_host_only(meet->address)
                ? interface_loopback_fault(!strcmp(meet->address, "localhost"))
                : NULL;
    if (fault) {
        log_line(LOG_ERROR, "%s: %s", meet->address, fault);
        return 1;
    }
    status = options->surroundings.exchange_of ? meet_by_launcher(meet, options) : CT_OK;
    if (status == CT_OK)
        status = check_first_host(meet, options);
    if (status == CT_OK)
        status = plan_policy(meet, options);
    if (status == CT_OK && meet->serves_only && meet->own_store)
        status = ct_fail(CT_ERR_INVALID,
                         "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 has worker 0 host the store at "
                         "--rdzv-endpoint, but with --nproc-per-node=0 no worker is there");
    if (status == CT_OK && meet->is_elastic)
        status = listen_at_endpoint(meet, options, &stopped);
    else if (status == CT_OK && meet->is_coordinator && meet->listener < 0)
        status = listen_as_node_0(meet, options);
    if (status == CT_OK && meet->is_coordinator) {
        meet->port = socket_port(meet->listener);
        warn_if_open(meet);
        if (options->surroundings.port_fd > STDERR_FILENO) { /* `ctrun --hosts` reads the port */
            dprintf(options->surroundings.port_fd, "%d\n", meet->port);
            close(options->surroundings.port_fd);
        }
        status = job_rendezvous_write_file(meet);
    }
    if (status == CT_OK)
        return 0;
    if (stopped)
        return 128 + stopped;
    log_line(LOG_ERROR, "%s", ct_last_error());
    return 1;
}

int job_rendezvous_serve(struct job_rendezvous *meet, struct event_base *base)
{
    const ct_status status =
        store_server_create(base, meet->listener, &meet->policy, &meet->server);

    meet->listener = -1;
    if (status == CT_OK)
        return 0;
    log_line(LOG_ERROR, "%s", ct_last_error());
    return 1;
}

/* Chooses a free port for a store that worker 0 hosts.  Another process may take the port before
 * worker 0 binds it, so worker 0 hosts the store only with TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1. */
static void choose_port(struct job_rendezvous *meet)
{
    int fd;

    if (socket_listen(NULL, 0, &fd) != CT_OK) {
        log_line(LOG_ERROR, "no port for the workers' store: %s", ct_last_error());
        return;
    }
    meet->port = socket_port(fd);
    close(fd);
}

void job_rendezvous_new_round(struct job_rendezvous *meet)
{
    uint64_t random = (uint64_t)getpid() << 32 | (uint64_t)clock_ms();

    if (getrandom(&random, sizeof random, 0) < 0)
        log_line(LOG_INFO, "no random numbers: the generation is made of pid and clock");
    snprintf(meet->generation, sizeof meet->generation, "%016llx", (unsigned long long)random);
    store_server_clear(meet->server);
    if (meet->own_store)
        choose_port(meet);
}

int job_rendezvous_arrived(const struct job_rendezvous *meet, int rank)
{
    char key[64];

    if (!meet->server)
        return 0;
    snprintf(key, sizeof key, "/ct/%s/arrived/%d", meet->generation, rank);
    return store_server_has(meet->server, key);
}

void job_rendezvous_post_death(const struct job_rendezvous *meet, int rank, const char *cause)
{
    char key[64];

    if (!meet->server || rank < 0)
        return;
    snprintf(key, sizeof key, "/ct/%s/dead/%d", meet->generation, rank);
    store_server_put(meet->server, key, cause, strlen(cause));
}

void job_rendezvous_close(struct job_rendezvous *meet)
{
    store_server_destroy(meet->server);
    if (meet->listener >= 0)
        close(meet->listener);
    if (meet->file_lock >= 0) {
        if (ftruncate(meet->file_lock, 0) < 0) /* later jobs may read an old address */
            log_line(LOG_INFO, "%s: %s", meet->file, strerror(errno));
        close(meet->file_lock);
    }
    *meet = (struct job_rendezvous){ .listener = -1, .file_lock = -1 };
}
