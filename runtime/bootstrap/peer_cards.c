/* SPDX-License-Identifier: Apache-2.0 */
/* peer_cards.c - who the peers are.
 *
 * Each rank fills a card: on which host it is, which door it opened there, of which job it is, and
 * the words that must be the same on all ranks.  From all cards every rank derives the same
 * picture: the hosts in order of first appearance, and who shares memory with whom. */
#include "runtime/bootstrap/peer_cards.h"

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

#define CARD_VERSION 9

/* ---- One's own card -------------------------------------------------------- */

static uint64_t name_space(const char *which)
{
    char path[64];
    struct stat info;

    snprintf(path, sizeof path, "/proc/self/ns/%s", which);
    return stat(path, &info) == 0 ? (uint64_t)info.st_ino : 0;
}

/* Which kernel is it, and which network of it?  Virtual machines that were restored from one
 * snapshot have one boot id and equal numbers of name spaces, but each its own network card. */
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

ct_status card_fill(struct card *card, const struct mesh *mesh, const struct node_door *door)
{
    memset(card, 0, sizeof *card);
    card->version = CARD_VERSION;
    card->uid = (uint32_t)geteuid();
    name_machine(card->machine, sizeof card->machine, mesh->faults);
    if (gethostname(card->host, sizeof card->host - 1) < 0)
        snprintf(card->host, sizeof card->host, "?");
    card->pid_space = name_space("pid");
    card->pid = getpid();
    card->worker = mesh->control.worker;
    memcpy(card->generation, mesh->control.head->generation, sizeof card->generation);
    snprintf(card->link, sizeof card->link, "%s", mesh->only_link ? mesh->only_link : "");
    if (getenv("CT_ORDER"))
        snprintf(card->order, sizeof card->order, "%s", getenv("CT_ORDER"));
    snprintf(card->door, sizeof card->door, "%s", door->name);
    if (getrandom(card->token, sizeof card->token, 0) != (ssize_t)sizeof card->token)
        return ct_fail(CT_ERR_SYSTEM, "getrandom: %s", strerror(errno));
    return CT_OK;
}

/* ---- Are they of one mesh? ------------------------------------------------- */

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

/* ---- The picture ----------------------------------------------------------- */

static int same_host(const struct card *a, const struct card *b)
{
    return !strcmp(a->machine, b->machine) && a->uid == b->uid;
}

/* Numbers the hosts, and the ranks of ours. */
static void place_peers(struct mesh *mesh, const struct card *cards)
{
    const struct card *me = &cards[mesh->rank];

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
        peer->local = same_host(&cards[i], me) ? mesh->node.size++ : -1;
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

static ct_status fill_node(struct mesh *mesh, const struct card *cards)
{
    struct node *node = &mesh->node;
    const size_t size = (size_t)node->size;

    node->ranks = calloc(size, sizeof *node->ranks);
    node->pids = calloc(size, sizeof *node->pids);
    node->told = calloc(size, sizeof *node->told);
    node->ended = calloc(size, sizeof *node->ended);
    node->pidfds = no_descriptors(node->size);
    node->event_fds = no_descriptors(node->size);
    if (!node->ranks || !node->pids || !node->told || !node->ended || !node->pidfds
        || !node->event_fds)
        return ct_fail(CT_ERR_NOMEM, "no memory for %d ranks of this host", node->size);
    for (int i = 0; i < mesh->size; i++) {
        const int local = mesh->peers[i].local;

        if (local < 0)
            continue;
        node->ranks[local] = i;
        node->told[local] = mesh->peers[i].worker >= 0;
        if (cards[i].pid_space == cards[mesh->rank].pid_space)
            node->pids[local] = cards[i].pid;
    }
    return CT_OK;
}

ct_status cards_read(struct mesh *mesh, const struct card *cards)
{
    const ct_status status = check_cards(cards, mesh);

    if (status != CT_OK)
        return status;
    memcpy(mesh->token, cards[0].token, sizeof mesh->token);
    trace_token(mesh->trace, mesh->token);
    place_peers(mesh, cards);
    return fill_node(mesh, cards);
}
