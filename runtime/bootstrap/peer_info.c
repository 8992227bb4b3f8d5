/* SPDX-License-Identifier: Apache-2.0 */
/* peer_info.c - what the ranks know of each other.
 *
 * Each rank publishes its host, the unix socket on which it listens there, its job, and the
 * settings that must be equal on all ranks.  From the infos of all ranks every rank derives the
 * same: the hosts in order of first appearance, and which ranks share memory. */
#include "runtime/bootstrap/peer_info.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/net/interface.h"
#include "runtime/trace/trace.h"

#define PEER_INFO_VERSION 9

/* ---- Own info --------------------------------------------------------------- */

static uint64_t name_space(const char *which)
{
    char path[64];
    struct stat info;

    snprintf(path, sizeof path, "/proc/self/ns/%s", which);
    return stat(path, &info) == 0 ? (uint64_t)info.st_ino : 0;
}

/* The kernel and its network.  Virtual machines that were restored from one snapshot have the same
 * boot id and the same numbers of name spaces, but different network cards. */
static void name_machine(char *text, size_t size, const struct faults *faults)
{
    char boot[40] = "unknown", hardware[HARDWARE_TEXT];
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd >= 0) {
        n = read(fd, boot, sizeof boot - 1);
        boot[n > 0 ? strcspn(boot, "\n") : 0] = 0;
        close(fd);
    }
    default_hardware(hardware);
    if (fault_host(faults) >= 0)
        snprintf(text, size, "host %d", fault_host(faults));
    else
        snprintf(text, size, "%.36s/%llx/%s", boot, (unsigned long long)name_space("net"),
                 hardware);
}

ct_status peer_info_fill(struct peer_info *info, const struct mesh *mesh,
                         const struct node_door *door)
{
    memset(info, 0, sizeof *info);
    info->version = PEER_INFO_VERSION;
    info->uid = (uint32_t)geteuid();
    name_machine(info->machine, sizeof info->machine, mesh->faults);
    if (gethostname(info->host, sizeof info->host - 1) < 0)
        snprintf(info->host, sizeof info->host, "?");
    info->pid_space = name_space("pid");
    info->pid = getpid();
    info->worker = mesh->control.worker;
    memcpy(info->generation, mesh->control.head->generation, sizeof info->generation);
    snprintf(info->link, sizeof info->link, "%s", mesh->only_link ? mesh->only_link : "");
    if (getenv("CT_ORDER"))
        snprintf(info->order, sizeof info->order, "%s", getenv("CT_ORDER"));
    snprintf(info->unix_socket, sizeof info->unix_socket, "%s", door->name);
    if (getrandom(info->token, sizeof info->token, 0) != (ssize_t)sizeof info->token)
        return ct_fail(CT_ERR_SYSTEM, "getrandom: %s", strerror(errno));
    return CT_OK;
}

/* ---- Checks ----------------------------------------------------------------- */

/* Other programs may write to the store, too: the texts must end with a 0. */
static int is_peer_info(const struct peer_info *info)
{
    return info->version == PEER_INFO_VERSION && memchr(info->machine, 0, sizeof info->machine)
           && memchr(info->host, 0, sizeof info->host)
           && memchr(info->generation, 0, sizeof info->generation)
           && memchr(info->link, 0, sizeof info->link) && memchr(info->order, 0, sizeof info->order)
           && memchr(info->unix_socket, 0, sizeof info->unix_socket);
}

static ct_status check_equal(const char *variable, const char *theirs, int rank, const char *ours,
                             int own)
{
    if (!strcmp(theirs, ours))
        return CT_OK;
    return ct_fail(CT_ERR_MISMATCH,
                   "%s is \"%s\" on rank %d but \"%s\" on rank %d; give all ranks the same",
                   variable, theirs, rank, ours, own);
}

static ct_status check_infos(const struct peer_info *infos, const struct mesh *mesh)
{
    const struct peer_info *own = &infos[mesh->rank];
    ct_status status = CT_OK;

    for (int i = 0; i < mesh->size && status == CT_OK; i++) {
        if (!is_peer_info(&infos[i]))
            return ct_fail(CT_ERR_MISMATCH, "rank %d speaks another version of libct", i);
        status = check_equal("CT_LINK", infos[i].link, i, own->link, mesh->rank);
        if (status == CT_OK)
            status = check_equal("CT_ORDER", infos[i].order, i, own->order, mesh->rank);
    }
    return status;
}

/* ---- Peers and node ---------------------------------------------------------- */

static int same_host(const struct peer_info *a, const struct peer_info *b)
{
    return !strcmp(a->machine, b->machine) && a->uid == b->uid;
}

/* Numbers the hosts, and the ranks of this host. */
static void set_peers(struct mesh *mesh, const struct peer_info *infos)
{
    const struct peer_info *me = &infos[mesh->rank];

    for (int i = 0; i < mesh->size; i++) {
        struct peer *peer = &mesh->peers[i];
        int first = 0;

        while (!same_host(&infos[first], &infos[i]))
            first++;
        peer->node = first == i ? mesh->nodes++ : mesh->peers[first].node;
        peer->pid = infos[i].pid;
        peer->worker =
            me->worker >= 0 && !memcmp(infos[i].generation, me->generation, sizeof me->generation)
                ? infos[i].worker
                : -1;
        snprintf(peer->host, sizeof peer->host, "%.63s", infos[i].host);
        peer->local = same_host(&infos[i], me) ? mesh->node.size++ : -1;
    }
    mesh->node.rank = mesh->peers[mesh->rank].local;
}

static int *no_descriptors(int count)
{
    int *fds = malloc((size_t)count * sizeof *fds);

    for (int i = 0; fds && i < count; i++)
        fds[i] = -1;
    return fds;
}

static ct_status fill_node(struct mesh *mesh, const struct peer_info *infos)
{
    struct node *node = &mesh->node;
    const size_t size = (size_t)node->size;

    node->ranks = calloc(size, sizeof *node->ranks);
    node->pids = calloc(size, sizeof *node->pids);
    node->ctrun_reports = calloc(size, sizeof *node->ctrun_reports);
    node->ended = calloc(size, sizeof *node->ended);
    node->pidfds = no_descriptors(node->size);
    node->event_fds = no_descriptors(node->size);
    if (!node->ranks || !node->pids || !node->ctrun_reports || !node->ended || !node->pidfds
        || !node->event_fds)
        return ct_fail(CT_ERR_NOMEM, "no memory for %d ranks of this host", node->size);
    for (int i = 0; i < mesh->size; i++) {
        const int local = mesh->peers[i].local;

        if (local < 0)
            continue;
        node->ranks[local] = i;
        node->ctrun_reports[local] = mesh->peers[i].worker >= 0;
        if (infos[i].pid_space == infos[mesh->rank].pid_space)
            node->pids[local] = infos[i].pid;
    }
    return CT_OK;
}

ct_status peer_info_apply(struct mesh *mesh, const struct peer_info *infos)
{
    const ct_status status = check_infos(infos, mesh);

    if (status != CT_OK)
        return status;
    memcpy(mesh->token, infos[0].token, sizeof mesh->token);
    trace_token(mesh->trace, mesh->token);
    set_peers(mesh, infos);
    return fill_node(mesh, infos);
}
