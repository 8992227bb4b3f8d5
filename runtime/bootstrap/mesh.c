/* SPDX-License-Identifier: Apache-2.0 */
/* mesh.c - how the ranks find each other.
 *
 * The ranks exchange their peer infos over the store (peer_info.c).  The ranks of a host then try
 * to share memory (host_segment_join.c).  If some can't, or there are several hosts, every rank
 * listens, and the ranks exchange their addresses in a second all-gather over the store. */
#include "runtime/transport/mesh.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/bootstrap/own_address.h"
#include "runtime/bootstrap/peer_info.h"
#include "runtime/bootstrap/store_all_gather.h"
#include "runtime/messaging/protocol.h"
#include "runtime/net/socket.h"
#include "runtime/trace/trace.h"
#include "runtime/transport/wireup.h"
#include "runtime/util/forks.h"
#include "runtime/util/log.h"

struct peer_address {
    char address[64];
    int32_t port;
    int32_t shared; /* this rank shares memory on its host */
};

/* ---- Exchanges ------------------------------------------------------------ */

/* On one host the token is enough, since wireup also gets the uid of the other end from the kernel.
 * Between hosts the token went over the network in clear, so wireup needs the job's secret, if
 * there is one. */
static ct_status wire_up(struct mesh *mesh, int listener)
{
    struct wireup_identity identity = { .rank = mesh->rank,
                                        .size = mesh->size,
                                        .one_host = mesh->nodes == 1 };
    ct_status status = mesh->nodes > 1 ? secret_read(&identity.secret, NULL) : CT_OK;

    memcpy(identity.token, mesh->token, sizeof identity.token);
    if (status != CT_OK) {
        close(listener);
        return status;
    }
    fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) | O_NONBLOCK);
    return wireup_start(&identity, listener, 1, &mesh->wireup);
}

static ct_status exchange_addresses(struct mesh *mesh, ct_store *store, int shared,
                                    int64_t deadline)
{
    struct peer_address own = { .shared = shared };
    struct peer_address *all = calloc((size_t)mesh->size, sizeof *all);
    int listener;
    ct_status status;

    if (!all)
        return ct_fail(CT_ERR_NOMEM, "no memory for %d addresses", mesh->size);
    status = own_address(store, mesh->nodes == 1 || fault_host(mesh->faults) >= 0, own.address,
                         sizeof own.address);
    if (status == CT_OK)
        status = socket_listen(own.address, 0, &listener);
    if (status == CT_OK) {
        own.port = socket_port(listener);
        status = wire_up(mesh, listener);
    }
    if (status == CT_OK)
        status = store_all_gather(store, "address", mesh->rank, mesh->size, &own, sizeof own, all,
                                  deadline);
    for (int i = 0; i < mesh->size && status == CT_OK; i++) {
        snprintf(mesh->peers[i].address, sizeof mesh->peers[i].address, "%.63s", all[i].address);
        mesh->peers[i].port = all[i].port;
    }
    free(all);
    return status;
}

/* Shared memory for the ranks of this host, and sockets if any rank needs them. */
static ct_status connect_ranks(struct mesh *mesh, ct_store *store, struct node_door *door,
                               const char *leader, int64_t deadline)
{
    const int may_share = !mesh->only_link || !strcmp(mesh->only_link, "shm");
    int shared = mesh->node.size == 1;
    ct_status status = CT_OK;

    if (mesh->node.size > 1 && may_share)
        status = node_join(&mesh->node, store, door, leader, deadline, &shared);
    else
        mesh->node.event_fds[mesh->node.rank] = door->event_fd, door->event_fd = -1;
    if (status != CT_OK)
        return status;
    fault_pass(mesh->faults); /* 2 */
    if (mesh->only_link && may_share && (!shared || mesh->nodes > 1))
        return ct_fail(CT_ERR_UNSUPPORTED, "CT_LINK=shm, but not all ranks can share memory; "
                                           "unset it or set CT_LINK=tcp");
    if (mesh->nodes > 1 || !shared)
        status = exchange_addresses(mesh, store, shared, deadline);
    if (status == CT_OK)
        fault_pass(mesh->faults); /* 3 */
    return status;
}

/* The infos are kept until the unix sockets of this host have been used. */
static ct_status find_peers(struct mesh *mesh, ct_store *store, int64_t deadline)
{
    struct node_door door = { -1, -1, "" };
    struct peer_info own, *infos = calloc((size_t)mesh->size, sizeof *infos);
    ct_status status =
        infos ? node_door_open(&door) : ct_fail(CT_ERR_NOMEM, "no memory for %d ranks", mesh->size);

    if (status == CT_OK)
        status = peer_info_fill(&own, mesh, &door);
    if (status == CT_OK)
        status = store_all_gather(store, "card", mesh->rank, mesh->size, &own, sizeof own, infos,
                                  deadline);
    if (status == CT_OK)
        status = peer_info_apply(mesh, infos);
    if (status == CT_OK) {
        fault_pass(mesh->faults); /* 1 */
        status =
            connect_ranks(mesh, store, &door, infos[mesh->node.ranks[0]].unix_socket, deadline);
    }
    node_door_close(&door);
    free(infos);
    return status;
}

/* ---- Life ---------------------------------------------------------------- */

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
    return ct_fail(CT_ERR_INVALID, "CT_LINK=%s is no link; there are \"shm\" and \"tcp\"", name);
}

/* CT_LINK, ctrun's control page, CT_FAULT and the trace. */
static ct_status read_environment(struct mesh *mesh)
{
    ct_status status = log_check();

    if (status == CT_OK)
        status = link_from_environment(mesh);
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

/* A pair of ranks may need two connections, and a host one descriptor for each of its ranks.  The
 * soft limit is raised only if it has no room for these and for what the program opens, since a
 * program that uses select() needs small numbers. */
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

/* The descriptors that the mesh keeps until its end. */
static void own_descriptors(const struct mesh *mesh)
{
    descriptor_own(mesh->control.memory_fd);
    descriptor_own(mesh->node.fd);
    for (int i = 0; i < mesh->node.size; i++)
        descriptor_own(mesh->node.event_fds[i]);
}

static void setup_waiter(struct mesh *mesh)
{
    struct node *node = &mesh->node;

    waiter_setup(&mesh->waiter, node->size);
    mesh->waiter.bells = node->base ? node->bells : NULL;
    mesh->waiter.bell = node->base ? &node->bells[node->rank] : &mesh->own_bell;
    mesh->waiter.event_fd = node->event_fds[node->rank];
    mesh->waiter.epoll_fd = -1;
    mesh->waiter.notices = mesh->control.event_fd >= 0 ? &mesh->control.head->notices : NULL;
}

/* A mesh without peers, which mesh_destroy() can free.  NULL: no memory. */
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
    m->node.fd = -1;
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
    uint64_t traced;
    ct_status status;

    if (!m)
        return ct_fail(CT_ERR_NOMEM, "no memory for %d ranks", size);
    raise_descriptor_limit(size);
    status = read_environment(m);
    traced = trace_init(m->trace);
    if (status == CT_OK)
        status = find_peers(m, store, deadline);
    if (status == CT_OK) {
        own_descriptors(m);
        setup_waiter(m);
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
    free(mesh);
}
