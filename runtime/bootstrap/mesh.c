/* SPDX-License-Identifier: Apache-2.0 */
/* mesh.c - creates a mesh: the ranks find each other, and choose shared memory or sockets.
 *
 * Each rank publishes its peer info at the store.  The leader of each host reads the infos of all
 * ranks and the names of all hosts, and sends them to the other ranks of its host (host_leader.c).
 * Then the ranks of the host try to share memory (host_segment_join.c).  If some ranks can't, or
 * there are several hosts, every rank listens, and the leaders exchange the addresses and ports of
 * their hosts over the store. */
#include "runtime/transport/mesh.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/bootstrap/claims.h"
#include "runtime/bootstrap/host_segment_join.h"
#include "runtime/bootstrap/own_address.h"
#include "runtime/bootstrap/peer_info.h"
#include "runtime/bootstrap/store_all_gather.h"
#include "runtime/bootstrap/network_figures.h"
#include "runtime/messaging/messages.h"
#include "runtime/net/socket.h"
#include "runtime/store/tcp_store.h"
#include "runtime/trace/trace.h"
#include "runtime/transport/wireup.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"
#include "runtime/util/log.h"

/* ---- Who is there -------------------------------------------------------------- */

/* Reads the cards of all ranks (claims.h) into the roster, and handles notices.  A leader's card
 * has the info of the host behind the leader's own info. */
static ct_status read_roster(struct mesh *mesh, ct_store *store, struct roster *roster,
                             int64_t deadline)
{
    struct gathered all;
    int notices = 0, is_notice;
    ct_status status;

    do {
        status =
            store_all_gather_next(store, "card", mesh->rank, mesh->size, notices++, deadline, &all);
        is_notice = all.notice != NULL;
        if (is_notice) {
            status = claim_heed(store, mesh, all.notice);
            gathered_free(&all);
        }
    } while (status == CT_OK && is_notice);
    for (int i = 0; i < mesh->size && status == CT_OK; i++) {
        const unsigned char *value = all.data + all.at[i];
        const size_t bytes = all.at[i + 1] - all.at[i];

        status = roster_add(roster, i, value, bytes);
    }
    gathered_free(&all);
    return status == CT_OK ? roster_check(mesh, roster) : status;
}

/* Reads the roster on the leader, accepts the other ranks of the host, and sends them the
 * roster. */
static ct_status lead(struct mesh *mesh, ct_store *store, struct host_leader *leader,
                      struct roster *roster, int64_t deadline)
{
    int32_t hosts;
    ct_status status = roster_alloc(roster, mesh->size, mesh->size);

    if (status == CT_OK)
        status = read_roster(mesh, store, roster, deadline);
    if (status == CT_OK)
        status = roster_apply(mesh, roster);
    if (status == CT_OK)
        status = host_leader_accept(leader, mesh, store, deadline);
    hosts = roster->hosts;
    if (status == CT_OK)
        status = host_give(leader, mesh, &hosts, sizeof hosts, deadline);
    if (status == CT_OK)
        status = host_give(leader, mesh, roster->peers, (size_t)mesh->size * sizeof *roster->peers,
                           deadline);
    if (status == CT_OK)
        status =
            host_give(leader, mesh, roster->host, (size_t)hosts * sizeof *roster->host, deadline);
    return status;
}

/* Gets the roster on a follower.  The leader sends its first message when all ranks of the job have
 * come, so only that wait may last long. */
static ct_status take_roster(struct mesh *mesh, ct_store *store, struct host_leader *leader,
                             struct roster *roster, int64_t deadline)
{
    const size_t size = (size_t)mesh->size;
    const int64_t start = clock_ms();
    int32_t hosts = 0;
    ct_status status = host_take(leader, store, &hosts, sizeof hosts, deadline);

    if (status == CT_ERR_TIMEOUT && clock_ms() >= deadline) {
        status = store_all_gather_late(store, "card", mesh->size, start);
        if (status == CT_OK)
            status = ct_fail(CT_ERR_TIMEOUT, "rank %d, which leads this host, does not answer",
                             leader->rank);
    }
    if (status == CT_OK && (hosts < 1 || hosts > mesh->size))
        status = ct_fail(CT_ERR_MISMATCH, "rank %d speaks another version of libct", leader->rank);
    if (status != CT_OK)
        return status;
    status = roster_alloc(roster, mesh->size, hosts);
    roster->hosts = hosts;
    if (status == CT_OK)
        status = host_take(leader, NULL, roster->peers, size * sizeof *roster->peers, deadline);
    if (status == CT_OK)
        status =
            host_take(leader, NULL, roster->host, (size_t)hosts * sizeof *roster->host, deadline);
    return status == CT_OK ? roster_apply(mesh, roster) : status;
}

/* Publishes this rank's info.  A follower first tries to connect to its leader, so that the
 * follower gets the leader's failure.  If too many ranks are connecting, find_peers() connects the
 * follower later. */
static ct_status mesh_publish(struct mesh *mesh, ct_store *store, struct host_leader *leader,
                              int64_t deadline)
{
    struct leader_info own;
    ct_status status;

    peer_info_fill(&own.peer, mesh, leader->rank);
    status = claim_size(store, mesh->rank, mesh->size, leader);
    if (status != CT_OK)
        return status;
    status = leader->is_self ? host_info_fill(&own.host, mesh->rank)
                             : host_leader_connect(leader, store, mesh->rank, clock_ms());
    return status == CT_OK || status == CT_ERR_TIMEOUT ? claim_rank(
               store, mesh, leader, &own, leader->is_self ? sizeof own : sizeof own.peer, deadline)
                                                       : status;
}

static ct_status find_peers(struct mesh *mesh, ct_store *store, struct host_leader *leader,
                            int64_t deadline)
{
    char machine[MACHINE_TEXT];
    struct roster roster = { 0 };
    ct_status status;

    machine_name(machine, mesh->faults);
    status = host_leader_elect(leader, store, mesh->rank, mesh->size, machine);
    if (status == CT_OK)
        status = mesh_publish(mesh, store, leader, deadline);
    if (status == CT_OK)
        status = host_leader_connect(leader, store, mesh->rank, deadline);
    if (status == CT_OK)
        status = leader->is_self ? lead(mesh, store, leader, &roster, deadline)
                                 : take_roster(mesh, store, leader, &roster, deadline);
    roster_free(&roster);
    if (status == CT_OK)
        fault_pass(mesh->faults); /* 1 */
    return status == CT_ERR_PEER ? claim_reason(store, mesh, leader, status) : status;
}

/* ---- Addresses and links ------------------------------------------------------------ */

#define ADDRESS_TEXT sizeof(((struct peer_host *)0)->address)

/* The start of the value that a host publishes.  The ports of its ranks follow, in rank order. */
struct host_place {
    char address[ADDRESS_TEXT];
    struct network_figures network;
};

static ct_status own_ports(struct mesh *mesh, struct host_leader *leader,
                           const struct host_place *place, int32_t port, int64_t deadline,
                           char **value, size_t *bytes)
{
    const size_t ports = (size_t)mesh->node.size * sizeof port;

    *bytes = sizeof *place + ports;
    *value = calloc(1, *bytes);
    if (!*value)
        return ct_fail(CT_ERR_NOMEM, "no memory for the ports of %d ranks", mesh->node.size);
    memcpy(*value, place, sizeof *place);
    if (mesh->node.size == 1) {
        memcpy(*value + sizeof *place, &port, sizeof port);
        return CT_OK;
    }
    return host_gather(leader, mesh, &port, sizeof port, *value + sizeof *place, deadline);
}

/* Sets the addresses and ports of all peers from `all`, which has the values of all hosts. */
static ct_status set_addresses(struct mesh *mesh, const struct gathered *all)
{
    size_t *at = calloc((size_t)mesh->nodes, sizeof *at); /* offset of each host's next port */
    ct_status status = CT_OK;

    if (!at)
        return ct_fail(CT_ERR_NOMEM, "no memory for %d hosts", mesh->nodes);
    for (int i = 0; i < mesh->nodes; i++) {
        struct host_place place = { "", { 0, 0 } };

        if (all->at[i + 1] - all->at[i] >= sizeof place)
            memcpy(&place, all->data + all->at[i], sizeof place);
        if (memchr(place.address, 0, ADDRESS_TEXT))
            memcpy(mesh->hosts[i].address, place.address, ADDRESS_TEXT);
        mesh->hosts[i].network = place.network;
        at[i] = all->at[i] + sizeof place;
    }
    for (int i = 0; i < mesh->size && status == CT_OK; i++) {
        const int host = mesh->peers[i].node;
        int32_t port = 0;

        if (at[host] + sizeof port <= all->at[host + 1])
            memcpy(&port, all->data + at[host], sizeof port);
        at[host] += sizeof port;
        mesh->peers[i].port = port;
        if (!mesh->hosts[host].address[0] || port <= 0 || port > UINT16_MAX)
            status = ct_fail(CT_ERR_MISMATCH, "rank %d speaks another version of libct", i);
    }
    free(at);
    return status;
}

/* Publishes the address and ports of this host, and reads the addresses and ports of all hosts.
 * Only leaders call this function. */
static ct_status exchange_ports(struct mesh *mesh, ct_store *store, void *value, size_t bytes,
                                int64_t deadline)
{
    const int host = mesh->peers[mesh->rank].node;
    size_t at[2] = { 0, bytes };
    struct gathered all = { .data = value, .at = at };
    ct_status status;

    if (mesh->nodes == 1)
        return set_addresses(mesh, &all);
    status = store_all_gather_give(store, "ports", host, mesh->nodes, deadline, value, bytes);
    if (status != CT_OK)
        return status;
    status = store_all_gather_take(store, "ports", host, mesh->nodes, deadline, &all);
    if (status == CT_OK)
        status = set_addresses(mesh, &all);
    gathered_free(&all);
    return status;
}

/* Sends all addresses and ports from the leader to the other ranks of its host. */
static ct_status spread_addresses(struct mesh *mesh, struct host_leader *leader, int64_t deadline)
{
    const size_t port_bytes = (size_t)mesh->size * sizeof(int32_t);
    const size_t host_bytes = (size_t)mesh->nodes * sizeof *mesh->hosts;
    int32_t *ports = malloc(port_bytes);
    ct_status status =
        ports ? CT_OK : ct_fail(CT_ERR_NOMEM, "no memory for %d addresses", mesh->size);

    for (int i = 0; i < mesh->size && status == CT_OK; i++)
        ports[i] = mesh->peers[i].port;
    if (status == CT_OK)
        status = leader->is_self ? host_give(leader, mesh, mesh->hosts, host_bytes, deadline)
                                 : host_take(leader, NULL, mesh->hosts, host_bytes, deadline);
    if (status == CT_OK)
        status = leader->is_self ? host_give(leader, mesh, ports, port_bytes, deadline)
                                 : host_take(leader, NULL, ports, port_bytes, deadline);
    for (int i = 0; i < mesh->size && status == CT_OK; i++)
        mesh->peers[i].port = ports[i];
    free(ports);
    return status;
}

/* Starts the wireup, which makes the connections.  Owns `listener`.  On one host the token is
 * enough to check a peer, since the kernel also returns the uid of the other end.  Between hosts,
 * the token went over the network unencrypted, so the wireup also uses the job's secret, if the job
 * has a secret. */
static ct_status wire_up(struct mesh *mesh, ct_store *store, int listener)
{
    struct wireup_identity identity = { .rank = mesh->rank,
                                        .size = mesh->size,
                                        .one_host = mesh->nodes == 1,
                                        .encrypts = mesh->encrypts };
    ct_status status =
        mesh->nodes > 1 || mesh->encrypts ? store_client_secret(store, &identity.secret) : CT_OK;

    memcpy(identity.token, mesh->token, sizeof identity.token);
    if (status != CT_OK) {
        close(listener);
        return status;
    }
    fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) | O_NONBLOCK);
    return wireup_start(&identity, listener, 1, &mesh->wireup);
}

/* Makes this rank listen, and exchanges the addresses and ports of all ranks.  All ranks of a host
 * listen at the address that their leader chose. */
static ct_status exchange_addresses(struct mesh *mesh, ct_store *store, struct host_leader *leader,
                                    int64_t deadline)
{
    struct host_place place = { "", { 0, 0 } };
    char *const address = place.address, *value = NULL;
    size_t bytes = 0;
    int listener;
    int32_t port = 0;
    ct_status status = CT_OK;

    if (leader->is_self) {
        status = own_address(store, mesh->nodes == 1 || fault_host(mesh->faults) >= 0, address,
                             ADDRESS_TEXT);
        if (status == CT_OK)
            status = host_give(leader, mesh, address, ADDRESS_TEXT, deadline);
        place.network = network_figures_read(store, address);
    } else {
        status = host_take(leader, NULL, address, ADDRESS_TEXT, deadline);
        address[ADDRESS_TEXT - 1] = 0;
    }
    if (status == CT_OK)
        status = socket_listen(address, 0, &listener);
    if (status == CT_OK) {
        port = socket_port(listener);
        status = wire_up(mesh, store, listener);
    }
    if (status == CT_OK)
        status = own_ports(mesh, leader, &place, port, deadline, &value, &bytes);
    if (status == CT_OK && leader->is_self)
        status = exchange_ports(mesh, store, value, bytes, deadline);
    free(value);
    if (status == CT_OK)
        status = spread_addresses(mesh, leader, deadline);
    if (status == CT_OK)
        mesh->network = network_figures_of_hosts(mesh->hosts, mesh->nodes);
    return status;
}

/* Sets up shared memory for the ranks of this host, and sockets if any rank needs them. */
static ct_status connect_ranks(struct mesh *mesh, ct_store *store, struct host_leader *leader,
                               int64_t deadline)
{
    const int may_share = !mesh->only_link || !strcmp(mesh->only_link, "shm");
    int shared = mesh->node.size == 1;
    ct_status status = CT_OK;

    mesh->node.has_processors = 1;
    if (mesh->node.size > 1)
        status = host_segment_join(leader, mesh, deadline, may_share, &shared);
    if (status != CT_OK)
        return status;
    fault_pass(mesh->faults); /* 2 */
    if (mesh->only_link && may_share && (!shared || mesh->nodes > 1))
        return ct_fail(CT_ERR_UNSUPPORTED, "CT_LINK=shm, but not all ranks can share memory; "
                                           "unset it or set CT_LINK=tcp");
    if (mesh->nodes > 1 || !shared)
        status = exchange_addresses(mesh, store, leader, deadline);
    if (status == CT_OK)
        fault_pass(mesh->faults); /* 3 */
    return status;
}

/* ---- Creation and destruction -------------------------------------------- */

static ct_status link_from_environment(struct mesh *mesh)
{
    const char *name = getenv("CT_LINK");

    if (!name || !*name)
        return CT_OK;
    for (int i = 0; link_kinds[i]; i++)
        if (!strcmp(name, link_kinds[i]->name)) {
            mesh->only_link = link_kinds[i]->name;
            return CT_OK;
        }
    return ct_fail(CT_ERR_INVALID, "CT_LINK=%s is not a link; use \"shm\" or \"tcp\"", name);
}

/* Reads CT_LINK, CT_ENCRYPT and CT_FAULT, and opens ctrun's control page and the trace. */
static ct_status mesh_read_environment(struct mesh *mesh)
{
    ct_status status = log_check();

    if (status == CT_OK)
        status = link_from_environment(mesh);
    if (status == CT_OK)
        status = encryption_asked(&mesh->encrypts);
    if (status == CT_OK)
        status = control_open(&mesh->control, mesh->rank);
    if (status == CT_OK)
        status = faults_from_environment(mesh->rank, &mesh->faults);
    if (status == CT_OK) {
        fault_begin(mesh->faults, NULL, FAULT_INIT, 0);
        status = trace_open(mesh->rank, mesh->size, &mesh->trace);
    }
    return status;
}

/* Raises the soft limit of open files if it may be too small for the mesh and the program.  A pair
 * of ranks may need two connections, and the leader of a host needs a connection to each rank of
 * the host.  A limit that is large enough is not raised, since a program that uses select() needs
 * small descriptors. */
static void raise_descriptor_limit(int ranks)
{
    const rlim_t need = 3 * (rlim_t)ranks + 256;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need
        || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        log_line(LOG_WARN, "can't raise the limit of open files (ulimit -n): %s", strerror(errno));
}

/* Registers the descriptors that the mesh keeps until its end. */
static void own_descriptors(const struct mesh *mesh)
{
    descriptor_own(mesh->control.memory_fd);
    descriptor_own(mesh->node.fd);
    descriptor_own(mesh->node.wake_fd);
}

static ct_status setup_waiter(struct mesh *mesh)
{
    struct node *node = &mesh->node;
    const ct_status status = wake_socket_open(&node->wake_fd);

    waiter_setup(&mesh->waiter, node->has_processors);
    mesh->waiter.bells = node->base ? node->bells : NULL;
    mesh->waiter.ranks = node->size;
    mesh->waiter.bell = node->base ? &node->bells[node->rank] : &mesh->own_bell;
    mesh->waiter.wake_fd = node->wake_fd;
    mesh->waiter.epoll_fd = -1;
    mesh->waiter.notices = mesh->control.event_fd >= 0 ? &mesh->control.head->notices : NULL;
    wake_socket_name(node->wake_fd, mesh->waiter.bell);
    return status;
}

/* Returns a mesh without peers, which mesh_destroy() can free, or NULL if memory is short. */
static struct mesh *mesh_alloc(int rank, int size)
{
    struct mesh *m =
        aligned_alloc(CACHE_PAIR, (sizeof *m + CACHE_PAIR - 1) / CACHE_PAIR * CACHE_PAIR);

    if (!m)
        return NULL;
    memset(m, 0, sizeof *m);
    m->rank = rank;
    m->size = size;
    m->waiter.epoll_fd = -1;
    scratch_open(&m->scratch);
    pthread_mutex_init(&m->node.lock, NULL);
    pthread_rwlock_init(&m->node.regions_lock, NULL);
    m->node.fd = m->node.wake_fd = -1;
    m->peers = calloc((size_t)size, sizeof *m->peers);
    if (!m->peers) {
        mesh_destroy(m);
        return NULL;
    }
    return m;
}

ct_status mesh_create(ct_store *store, int rank, int size, int64_t deadline, struct mesh **mesh)
{
    struct mesh *m = mesh_alloc(rank, size);
    struct host_leader leader = { .listener = -1, .socket = -1 };
    uint64_t traced;
    ct_status status;

    if (!m)
        return ct_fail(CT_ERR_NOMEM, "no memory for %d ranks", size);
    raise_descriptor_limit(size);
    status = mesh_read_environment(m);
    traced = trace_init(m->trace);
    if (status == CT_OK)
        status = find_peers(m, store, &leader, deadline);
    if (status == CT_OK)
        status = connect_ranks(m, store, &leader, deadline);
    host_leader_close(&leader, status);
    if (status == CT_OK)
        status = setup_waiter(m);
    if (status == CT_OK) {
        waiter_stand_apart(&m->waiter);
        own_descriptors(m);
        status = messages_create(m);
    }
    trace_end(m->trace, traced, status);
    if (status != CT_OK) {
        mesh_destroy(m);
        return status;
    }
    log_line(LOG_INFO, "%d ranks on %d hosts, %d on this one, %s", size, m->nodes, m->node.size,
             m->node.base ? "sharing memory" : "over sockets");
    fault_end(m->faults);
    *mesh = m;
    return CT_OK;
}

void mesh_destroy(struct mesh *mesh)
{
    if (!mesh)
        return;
    messages_destroy(mesh);
    wireup_stop(mesh->wireup);
    node_leave(&mesh->node);
    trace_close(mesh->trace);
    control_close(&mesh->control);
    faults_free(mesh->faults);
    scratch_close(&mesh->scratch);
    free(mesh->peers);
    free(mesh->hosts);
    free(mesh);
}
