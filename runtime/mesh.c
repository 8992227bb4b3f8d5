/* SPDX-License-Identifier: Apache-2.0 */
/* mesh.c - finding the peers.
 *
 * Each rank leaves a card at the store: on which host it is, which door it
 * opened there.  From all cards every rank derives the same picture: the hosts
 * in order of first appearance, and who shares memory with whom.  The ranks of
 * a host then try to share memory (node.c).  Where some can't, or are on other
 * hosts, everybody listens and a second round of cards says where. */
#include "runtime/mesh.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/address.h"
#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/meeting.h"
#include "runtime/message.h"
#include "runtime/socket.h"
#include "runtime/stop.h"
#include "runtime/trace.h"

#define CARD_VERSION 6

struct card {
    uint32_t version;
    uint32_t uid;
    char machine[64]; /* boot id and network name space: who may share memory */
    char host[64];    /* for messages */
    uint64_t pid_space;
    int32_t pid;
    int32_t worker; /* of ctrun's job; -1: there is no ctrun */
    int32_t may_agree;
    uint64_t steps;      /* of ct_should_stop() so far */
    char generation[64]; /* of that job */
    char link[12];       /* CT_LINK */
    char order[12];      /* CT_ORDER */
    char door[64];
    unsigned char token[16]; /* rank 0's counts */
};

struct address_card {
    char address[64];
    int32_t port;
    int32_t shared; /* could this rank share memory on its host? */
};

const char *mesh_peer_name(const struct mesh *mesh, int peer, char *text, size_t size)
{
    const struct peer *p = &mesh->peers[peer];

    snprintf(text, size, "rank %d (pid %d on %s)", peer, p->pid, p->host);
    return text;
}

/* ---- Cards --------------------------------------------------------------- */

static uint64_t name_space(const char *which)
{
    char path[64];
    struct stat info;

    snprintf(path, sizeof path, "/proc/self/ns/%s", which);
    return stat(path, &info) == 0 ? (uint64_t)info.st_ino : 0;
}

static ct_status fill_card(struct card *card, const struct mesh *mesh, const struct node_door *door)
{
    char boot[40] = "unknown";
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n;

    memset(card, 0, sizeof *card);
    if (fd >= 0) {
        n = read(fd, boot, sizeof boot - 1);
        boot[n > 0 ? strcspn(boot, "\n") : 0] = 0;
        close(fd);
    }
    card->version = CARD_VERSION;
    card->uid = (uint32_t)geteuid();
    snprintf(card->machine, sizeof card->machine, "%.36s/%llx", boot,
             (unsigned long long)name_space("net"));
    if (fault_host(mesh->faults) >= 0)
        snprintf(card->machine, sizeof card->machine, "host %d", fault_host(mesh->faults));
    if (gethostname(card->host, sizeof card->host - 1) < 0)
        snprintf(card->host, sizeof card->host, "?");
    card->pid_space = name_space("pid");
    card->pid = getpid();
    card->worker = mesh->control.worker;
    card->may_agree = mesh->control.head->may_agree;
    card->steps = stop_steps(mesh->control.own);
    memcpy(card->generation, mesh->control.head->generation, sizeof card->generation);
    snprintf(card->link, sizeof card->link, "%s", mesh->only_link ? mesh->only_link : "");
    if (getenv("CT_ORDER"))
        snprintf(card->order, sizeof card->order, "%s", getenv("CT_ORDER"));
    snprintf(card->door, sizeof card->door, "%s", door->name);
    if (getrandom(card->token, sizeof card->token, 0) != (ssize_t)sizeof card->token)
        return ct_fail(CT_ERR_SYSTEM, "getrandom: %s", strerror(errno));
    return CT_OK;
}

static int same_host(const struct card *a, const struct card *b)
{
    return !strcmp(a->machine, b->machine) && a->uid == b->uid;
}

/* It lay at the store, where others may write too: its texts must have an end. */
static int is_card(const struct card *card)
{
    return card->version == CARD_VERSION && memchr(card->machine, 0, sizeof card->machine)
           && memchr(card->host, 0, sizeof card->host)
           && memchr(card->generation, 0, sizeof card->generation)
           && memchr(card->link, 0, sizeof card->link) && memchr(card->order, 0, sizeof card->order)
           && memchr(card->door, 0, sizeof card->door);
}

static ct_status check_word(const char *variable, const char *theirs, int rank, const char *ours,
                            int own)
{
    if (!strcmp(theirs, ours))
        return CT_OK;
    return ct_fail(CT_ERR_MISMATCH,
                   "%s is \"%s\" on rank %d but \"%s\" on rank %d; give all ranks the same",
                   variable, theirs, rank, ours, own);
}

static ct_status check_cards(const struct card *cards, const struct mesh *mesh)
{
    const struct card *own = &cards[mesh->rank];
    ct_status status = CT_OK;

    for (int i = 0; i < mesh->size && status == CT_OK; i++) {
        if (!is_card(&cards[i]))
            return ct_fail(CT_ERR_MISMATCH, "rank %d speaks another version of libct", i);
        status = check_word("CT_LINK", cards[i].link, i, own->link, mesh->rank);
        if (status == CT_OK)
            status = check_word("CT_ORDER", cards[i].order, i, own->order, mesh->rank);
    }
    return status;
}

/* The same answer on all ranks: it decides how they stop. */
static int is_whole_job(const struct mesh *mesh, const struct card *cards)
{
    for (int i = 0; i < mesh->size; i++) {
        if (mesh->peers[i].worker < 0 || !cards[i].may_agree)
            return 0;
        for (int before = 0; before < i; before++)
            if (mesh->peers[before].worker == mesh->peers[i].worker)
                return 0;
    }
    return mesh->size == mesh->control.world;
}

/* Numbers the hosts, and the ranks of ours. */
static ct_status read_cards(struct mesh *mesh, const struct card *cards)
{
    struct node *node = &mesh->node;
    const struct card *me = &cards[mesh->rank];

    memcpy(mesh->token, cards[0].token, sizeof mesh->token);
    trace_token(mesh->trace, mesh->token);
    node->size = 0;
    for (int i = 0; i < mesh->size; i++) {
        struct peer *peer = &mesh->peers[i];
        int first = 0;

        while (!same_host(&cards[first], &cards[i]))
            first++;
        peer->node = first == i ? mesh->nodes++ : mesh->peers[first].node;
        peer->pid = cards[i].pid;
        peer->worker =
            me->worker >= 0 && !memcmp(cards[i].generation, me->generation, sizeof me->generation)
                ? cards[i].worker
                : -1;
        snprintf(peer->host, sizeof peer->host, "%.63s", cards[i].host);
        peer->local = same_host(&cards[i], me) ? node->size++ : -1;
        if (i == mesh->rank)
            node->rank = peer->local;
    }
    mesh->whole_job = is_whole_job(mesh, cards);
    for (int i = 0; mesh->whole_job && i < mesh->size; i++)
        stop_catch_up(mesh->control.own, cards[i].steps);
    node->ranks = calloc((size_t)node->size, sizeof *node->ranks);
    node->pids = calloc((size_t)node->size, sizeof *node->pids);
    node->told = calloc((size_t)node->size, sizeof *node->told);
    node->pidfds = malloc((size_t)node->size * sizeof *node->pidfds);
    node->ended = calloc((size_t)node->size, sizeof *node->ended);
    for (int i = 0; node->pidfds && i < node->size; i++)
        node->pidfds[i] = -1;
    node->event_fds = malloc((size_t)node->size * sizeof *node->event_fds);
    if (!node->ranks || !node->pids || !node->told || !node->pidfds || !node->ended
        || !node->event_fds)
        return ct_fail(CT_ERR_NOMEM, "no memory for %d ranks of this host", node->size);
    for (int i = 0; i < mesh->size; i++) {
        const int local = mesh->peers[i].local;

        if (local < 0)
            continue;
        node->ranks[local] = i;
        node->event_fds[local] = -1;
        node->told[local] = mesh->peers[i].worker >= 0;
        if (cards[i].pid_space == me->pid_space)
            node->pids[local] = cards[i].pid;
    }
    return CT_OK;
}

/* ---- Sockets ------------------------------------------------------------- */

static ct_status listen_and_tell(struct mesh *mesh, ct_store *store, int shared, int64_t deadline)
{
    struct address_card mine = { .shared = shared };
    struct address_card *all = calloc((size_t)mesh->size, sizeof *all);
    ct_status status;

    if (!all)
        return ct_fail(CT_ERR_NOMEM, "no memory for %d addresses", mesh->size);
    status = own_address(store, mesh->nodes == 1 || fault_host(mesh->faults) >= 0, mine.address,
                         sizeof mine.address);
    if (status == CT_OK)
        status = socket_listen(mine.address, 0, &mesh->listener);
    if (status == CT_OK) {
        mine.port = socket_port(mesh->listener);
        status = meet(store, "address", mesh->rank, mesh->size, &mine, sizeof mine, all, deadline);
    }
    for (int i = 0; i < mesh->size && status == CT_OK; i++) {
        snprintf(mesh->peers[i].address, sizeof mesh->peers[i].address, "%.63s", all[i].address);
        mesh->peers[i].port = all[i].port;
    }
    if (status == CT_OK)
        fcntl(mesh->listener, F_SETFL, fcntl(mesh->listener, F_GETFL) | O_NONBLOCK);
    free(all);
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

/* Memory for the ranks of this host, and sockets if somebody needs them. */
static ct_status connect_ranks(struct mesh *mesh, ct_store *store, struct node_door *door,
                               const struct card *cards, int64_t deadline)
{
    const int may_share = !mesh->only_link || !strcmp(mesh->only_link, "shm");
    const char *leader = cards[mesh->node.ranks[0]].door;
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
        status = listen_and_tell(mesh, store, shared, deadline);
    if (status == CT_OK)
        fault_pass(mesh->faults); /* 3 */
    return status;
}

static void setup_waiter(struct mesh *mesh)
{
    struct node *node = &mesh->node;

    waiter_setup(&mesh->waiter, node->size);
    mesh->waiter.rank = node->rank;
    mesh->waiter.bells = node->base ? node->bells : NULL;
    mesh->waiter.bell = node->base ? &node->bells[node->rank] : &mesh->own_bell;
    mesh->waiter.event_fd = node->event_fds[node->rank];
    mesh->waiter.epoll_fd = -1;
    mesh->waiter.news = mesh->control.event_fd >= 0 ? &mesh->control.head->news : NULL;
}

ct_status mesh_create(ct_store *store, int rank, int size, int64_t deadline, struct mesh **mesh)
{
    struct node_door door = { -1, -1, "" };
    struct mesh *m =
        aligned_alloc(CACHE_PAIR, (sizeof *m + CACHE_PAIR - 1) / CACHE_PAIR * CACHE_PAIR);
    struct card mine, *cards = calloc((size_t)size, sizeof *cards);
    uint64_t traced;
    ct_status status;

    if (!m || !cards) {
        free(m);
        free(cards);
        return ct_fail(CT_ERR_NOMEM, "no memory for %d ranks", size);
    }
    memset(m, 0, sizeof *m);
    m->rank = rank;
    m->size = size;
    m->listener = -1;
    m->waiter.epoll_fd = -1;
    pthread_mutex_init(&m->node.lock, NULL);
    pthread_rwlock_init(&m->node.regions_lock, NULL);
    m->node.fd = -1;
    m->peers = calloc((size_t)size, sizeof *m->peers);
    status = m->peers ? link_from_environment(m) : ct_fail(CT_ERR_NOMEM, "no memory");
    if (status == CT_OK)
        status = control_open(&m->control, rank);
    if (status == CT_OK)
        status = faults_from_environment(rank, ct_abort, &m->faults);
    if (status == CT_OK)
        fault_begin(m->faults, NULL, FAULT_INIT, 0);
    if (status == CT_OK)
        status = trace_open(rank, size, &m->trace);
    traced = trace_init(m->trace);
    if (status == CT_OK)
        status = node_door_open(&door);
    if (status == CT_OK)
        status = fill_card(&mine, m, &door);
    if (status == CT_OK)
        status = meet(store, "card", rank, size, &mine, sizeof mine, cards, deadline);
    if (status == CT_OK)
        status = check_cards(cards, m);
    if (status == CT_OK)
        status = read_cards(m, cards);
    if (status == CT_OK)
        fault_pass(m->faults); /* 1 */
    if (status == CT_OK)
        status = connect_ranks(m, store, &door, cards, deadline);
    if (status == CT_OK) {
        setup_waiter(m);
        status = messages_create(m);
    }
    trace_end(m->trace, traced, status);
    node_door_close(&door);
    free(cards);
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
    if (mesh->listener >= 0)
        close(mesh->listener);
    node_leave(&mesh->node);
    trace_close(mesh->trace);
    control_close(&mesh->control);
    faults_free(mesh->faults);
    free(mesh->peers);
    free(mesh);
}
