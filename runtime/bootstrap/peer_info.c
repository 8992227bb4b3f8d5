/* SPDX-License-Identifier: Apache-2.0 */
/* peer_info.c - fills in, checks and uses the infos that ranks publish about themselves at init.
 *
 * Each rank publishes the leader of its host, its process, its job, and the settings that must be
 * equal on all ranks.  The leader also publishes the host's name.  From the infos of all ranks,
 * every rank derives the hosts, in the order of their first ranks, and the ranks of each host. */
#include "runtime/bootstrap/peer_info.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/net/interface.h"
#include "runtime/trace/trace.h"

#define PEER_INFO_VERSION 13

/* ---- Own info --------------------------------------------------------------- */

static uint64_t name_space(const char *which)
{
    char path[64];
    struct stat info;

    snprintf(path, sizeof path, "/proc/self/ns/%s", which);
    return stat(path, &info) == 0 ? (uint64_t)info.st_ino : 0;
}

/* The name contains the network card, since virtual machines that were restored from one snapshot
 * have the same boot id and namespace numbers, but different network cards. */
void machine_name(char text[MACHINE_TEXT], const struct faults *faults)
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
        snprintf(text, MACHINE_TEXT, "%d/%u", fault_host(faults), (unsigned)geteuid());
    else
        snprintf(text, MACHINE_TEXT, "%.36s/%llx/%s/%u", boot,
                 (unsigned long long)name_space("net"), hardware, (unsigned)geteuid());
}

/* Returns the FNV-1a hash of the text, which is the same on all machines. */
static uint64_t peer_info_hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

/* The random number of this process, or of its parent before fork(); 0 until it is needed. */
static _Atomic uint64_t number;

uint64_t peer_info_number(void)
{
    uint64_t none = 0, random = 0;

    if (atomic_load(&number) == 0 && getrandom(&random, sizeof random, 0) == (ssize_t)sizeof random)
        atomic_compare_exchange_strong(&number, &none, random | 1);
    return atomic_load(&number) + (uint64_t)getpid(); /* a child of fork() has another number */
}

uint64_t peer_info_pid_space(void)
{
    return name_space("pid");
}

void peer_info_fill(struct peer_info *info, const struct mesh *mesh, int leader)
{
    memset(info, 0, sizeof *info);
    info->version = PEER_INFO_VERSION;
    info->leader = leader;
    info->pid = getpid();
    info->worker = mesh->control.worker;
    info->pid_space = peer_info_pid_space();
    info->generation = peer_info_hash_of(mesh->control.head->generation);
    snprintf(info->link, sizeof info->link, "%s", mesh->only_link ? mesh->only_link : "");
    if (getenv("CT_ORDER"))
        snprintf(info->order, sizeof info->order, "%s", getenv("CT_ORDER"));
    snprintf(info->encrypt, sizeof info->encrypt, "%d", mesh->encrypts);
    info->number = peer_info_number();
}

ct_status host_info_fill(struct host_info *info, int leader)
{
    memset(info, 0, sizeof *info);
    info->version = PEER_INFO_VERSION;
    info->leader = leader;
    if (gethostname(info->name, sizeof info->name - 1) < 0)
        snprintf(info->name, sizeof info->name, "?");
    if (getrandom(info->token, sizeof info->token, 0) != (ssize_t)sizeof info->token)
        return ct_fail(CT_ERR_SYSTEM, "getrandom: %s", strerror(errno));
    return CT_OK;
}

/* ---- Checks ----------------------------------------------------------------- */

/* Returns 1 if the info is valid and all its strings end with a NUL byte.  The check is needed
 * since other programs may write to the store. */
static int is_peer_info(const struct peer_info *info, int size)
{
    return info->version == PEER_INFO_VERSION && info->leader >= 0 && info->leader < size
           && memchr(info->link, 0, sizeof info->link) && memchr(info->order, 0, sizeof info->order)
           && memchr(info->encrypt, 0, sizeof info->encrypt);
}

static ct_status another_version(int rank)
{
    return ct_fail(CT_ERR_MISMATCH, "rank %d speaks another version of libct", rank);
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

/* ---- The roster ------------------------------------------------------------------ */

ct_status roster_alloc(struct roster *roster, int size, int hosts)
{
    *roster = (struct roster){ .size = size };
    roster->peers = calloc((size_t)size, sizeof *roster->peers);
    roster->host = calloc((size_t)hosts, sizeof *roster->host);
    return roster->peers && roster->host ? CT_OK
                                         : ct_fail(CT_ERR_NOMEM, "no memory for %d ranks", size);
}

static int is_host_info(const struct host_info *info, int leader)
{
    return info->version == PEER_INFO_VERSION && info->leader == leader
           && memchr(info->name, 0, sizeof info->name);
}

/* Adds the hosts in the order of their leaders.  roster_check() puts them in their final order. */
ct_status roster_add(struct roster *roster, int rank, const void *value, size_t bytes)
{
    struct peer_info *info = &roster->peers[rank];
    struct leader_info both;

    if (bytes != sizeof *info && bytes != sizeof both)
        return ct_fail(
            CT_ERR_MISMATCH,
            "rank %d speaks another version of libct (%zu bytes where %zu were expected)", rank,
            bytes, sizeof *info);
    memcpy(info, value, sizeof *info);
    if (!is_peer_info(info, roster->size) || (info->leader == rank) != (bytes == sizeof both))
        return another_version(rank);
    if (bytes == sizeof both) {
        memcpy(&both, value, sizeof both);
        if (!is_host_info(&both.host, rank))
            return another_version(rank);
        roster->host[roster->hosts++] = both.host;
    }
    return CT_OK;
}

/* Orders the hosts by their first ranks, which need not be their leaders. */
static ct_status order_hosts(struct roster *roster)
{
    struct host_info *ordered = calloc((size_t)roster->hosts + 1, sizeof *ordered);
    int *place = calloc((size_t)roster->size, sizeof *place); /* 1 + host's index, by leader */
    ct_status status =
        ordered && place ? CT_OK : ct_fail(CT_ERR_NOMEM, "no memory for %d ranks", roster->size);

    for (int i = 0; i < roster->hosts && status == CT_OK; i++)
        place[roster->host[i].leader] = i + 1;
    for (int i = 0, hosts = 0; i < roster->size && status == CT_OK; i++) {
        const int leader = roster->peers[i].leader;

        if (roster->peers[leader].leader != leader) {
            status = another_version(i);
        } else if (place[leader] > 0) {
            ordered[hosts++] = roster->host[place[leader] - 1];
            place[leader] = 0; /* the host was added */
        }
    }
    if (status == CT_OK)
        memcpy(roster->host, ordered, (size_t)roster->hosts * sizeof *ordered);
    free(ordered);
    free(place);
    return status;
}

ct_status roster_check(const struct mesh *mesh, struct roster *roster)
{
    const struct peer_info *own = &roster->peers[mesh->rank];
    ct_status status = CT_OK;

    for (int i = 0; i < mesh->size && status == CT_OK; i++) {
        const struct peer_info *info = &roster->peers[i];

        status = check_equal("CT_LINK", info->link, i, own->link, mesh->rank);
        if (status == CT_OK)
            status = check_equal("CT_ORDER", info->order, i, own->order, mesh->rank);
        if (status == CT_OK)
            status = check_equal("CT_ENCRYPT", info->encrypt, i, own->encrypt, mesh->rank);
    }
    return status == CT_OK ? order_hosts(roster) : status;
}

/* ---- Peers and node ---------------------------------------------------------- */

/* Fills in the mesh's hosts, peers and token, and counts the ranks of this host. */
static ct_status set_peers(struct mesh *mesh, const struct roster *roster)
{
    const struct peer_info *me = &roster->peers[mesh->rank];
    int *host_of = calloc((size_t)mesh->size, sizeof *host_of); /* the host's index, by leader */

    mesh->hosts = calloc((size_t)roster->hosts, sizeof *mesh->hosts);
    if (!host_of || !mesh->hosts) {
        free(host_of);
        return ct_fail(CT_ERR_NOMEM, "no memory for %d ranks", mesh->size);
    }
    mesh->nodes = roster->hosts;
    for (int i = 0; i < roster->hosts; i++) {
        host_of[roster->host[i].leader] = i;
        snprintf(mesh->hosts[i].name, sizeof mesh->hosts[i].name, "%s", roster->host[i].name);
    }
    for (int i = 0; i < mesh->size; i++) {
        const struct peer_info *info = &roster->peers[i];
        struct peer *peer = &mesh->peers[i];

        peer->node = host_of[info->leader];
        peer->pid = info->pid;
        peer->worker = me->worker >= 0 && info->generation == me->generation ? info->worker : -1;
        peer->local = info->leader == me->leader ? mesh->node.size++ : -1;
    }
    memcpy(mesh->token, roster->host[mesh->peers[0].node].token, sizeof mesh->token);
    mesh->node.rank = mesh->peers[mesh->rank].local;
    free(host_of);
    return CT_OK;
}

static int *no_descriptors(int count)
{
    int *fds = malloc((size_t)count * sizeof *fds);

    for (int i = 0; fds && i < count; i++)
        fds[i] = -1;
    return fds;
}

static ct_status fill_node(struct mesh *mesh, const struct peer_info *peers)
{
    struct node *node = &mesh->node;
    const size_t size = (size_t)node->size;

    node->ranks = calloc(size, sizeof *node->ranks);
    node->pids = calloc(size, sizeof *node->pids);
    node->ctrun_reports = calloc(size, sizeof *node->ctrun_reports);
    node->ended = calloc(size, sizeof *node->ended);
    node->pidfds = no_descriptors(node->size);
    if (!node->ranks || !node->pids || !node->ctrun_reports || !node->ended || !node->pidfds)
        return ct_fail(CT_ERR_NOMEM, "no memory for %d ranks of this host", node->size);
    for (int i = 0; i < mesh->size; i++) {
        const int local = mesh->peers[i].local;

        if (local < 0)
            continue;
        node->ranks[local] = i;
        node->ctrun_reports[local] = mesh->peers[i].worker >= 0;
        if (peers[i].pid_space == peers[mesh->rank].pid_space)
            node->pids[local] = peers[i].pid;
    }
    return CT_OK;
}

ct_status roster_apply(struct mesh *mesh, const struct roster *roster)
{
    const ct_status status = set_peers(mesh, roster);

    if (status != CT_OK)
        return status;
    trace_token(mesh->trace, mesh->token);
    return fill_node(mesh, roster->peers);
}

void roster_free(struct roster *roster)
{
    free(roster->peers);
    free(roster->host);
    *roster = (struct roster){ 0 };
}
