/* SPDX-License-Identifier: Apache-2.0 */
/* launcher_exchange.c - sends the address of rank 0's store to all ranks, with the help of the
 * launcher.
 *
 * Rank 0 serves the store at a port that the kernel chose.  carry() sends the port, the secret and
 * rank 0's addresses to all ranks.  The first row that applies decides what carry() does:
 *
 *   MPI is linked but not initialised, or finalised   refuses
 *   the launcher offers PMIx                          sends over PMIx
 *   MPI is initialised                                refuses, since MPI has the only connection
 *   the launcher offers PMI-1                         sends over PMI-1
 *
 * The first row is needed since an MPI_Init() after the exchange would fail.  With PMI-1 it would
 * find the connection closed.  Open MPI 4.1's MPI_Init() fails after PMIx_Init() and
 * PMIx_Finalize(), and Open MPI 5's fails after PMIx_Init() alone.
 *
 * Rank 0 knows its interfaces, but not which of the interfaces the other ranks can reach.  The
 * launcher does not know this either, since its daemons may use their own network or run on another
 * host.  So rank 0 publishes the addresses of all interfaces that lead out of its host, or only the
 * address of CT_INTERFACE.  Each other rank connects to all addresses at once and uses the first
 * that answers.  On another network, a foreign program may answer at such an address, but this
 * program does not know the secret.
 *
 * The secret is random and new in each job, so other users can't use the store, and the user need
 * not configure anything.  The secret is as private as the launcher's connections, which carry it.
 * If the user sets a secret with CT_STORE_SECRET, the ranks use that secret instead.
 *
 * PMI-1 allows only one exchange in a process, so a later init uses the same port. */
#include "runtime/exchange/launcher_exchange.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/exchange/mpi_state.h"
#include "runtime/exchange/pmi_exchange.h"
#include "runtime/exchange/pmix_exchange.h"
#include "runtime/net/interface.h"
#include "runtime/net/socket.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define TEXT 900          /* size of the text; PMI-1 allows values of up to 1024 bytes */
#define MOST_ADDRESSES 16 /* most addresses that a rank tries */

int launcher_exchange_is_offered(void)
{
    return pmix_is_offered() || pmi_is_offered();
}

/* Sends rank 0's text to the other ranks, which get it in `text`. */
static ct_status carry(int rank, char text[TEXT], int64_t deadline)
{
    const enum mpi_state mpi = mpi_state();

    if (mpi == MPI_EARLY || mpi == MPI_OVER)
        return ct_fail(CT_ERR_INVALID,
                       "this program is linked with MPI, which needs the connection to its "
                       "launcher for itself: call MPI_Init() before ct_init_process_group() and "
                       "MPI_Finalize() after it, or set MASTER_ADDR to rank 0's host and "
                       "MASTER_PORT to a free port there");
    if (pmix_is_offered())
        return pmix_broadcast(rank, text, TEXT, deadline);
    if (mpi == MPI_LIVES)
        return ct_fail(CT_ERR_INVALID,
                       "MPI_Init() took the only connection to the launcher, over which the ranks "
                       "would find rank 0: set MASTER_ADDR to rank 0's host and MASTER_PORT to a "
                       "free port there");
    return pmi_broadcast(rank, text, TEXT, deadline);
}

/* ---- Rank 0 ------------------------------------------------------------------ */

/* Listens at a port, and writes the text "port,secret,address,address,...".  The secret is "-" if
 * the user has set a secret, since then all ranks have it. */
static ct_status launcher_exchange_offer(struct launcher_meeting *m, char text[TEXT])
{
    char addresses[TEXT / 2];
    ct_status status = secret_read(&m->secret, NULL);
    const int has_own = m->secret.size > 0;

    if (status == CT_OK && !has_own)
        status = secret_make(&m->secret);
    if (status == CT_OK)
        status = interface_addresses(addresses, sizeof addresses);
    if (status == CT_OK)
        status = socket_listen(NULL, 0, &m->listener);
    if (status != CT_OK)
        return status;
    m->port = socket_port(m->listener);
    snprintf(m->address, sizeof m->address, "%.*s", (int)strcspn(addresses, ","), addresses);
    snprintf(text, TEXT, "%d,%.*s,%s", m->port, has_own ? 1 : (int)m->secret.size,
             has_own ? "-" : (const char *)m->secret.bytes, addresses);
    return CT_OK;
}

/* Replaces the two characters `of` by the two characters `by`.  Needed since a value of PMI-1 can't
 * contain a space or "=". */
static void exchange_characters(char *text, const char *of, const char *by)
{
    for (; *text; text++)
        for (int i = 0; i < 2; i++)
            if (*text == of[i])
                *text = by[i];
}
#define SPECIAL " ="
#define INSTEAD "\1\2"

/* Publishes rank 0's text.  The other ranks wait for the text, so if rank 0 can't serve the store,
 * it publishes "0," and the reason. */
static ct_status meet_as_rank_0(struct launcher_meeting *m, int64_t deadline)
{
    char text[TEXT], sentence[512] = "";
    const ct_status failed = launcher_exchange_offer(m, text);
    ct_status status;

    if (failed != CT_OK) {
        snprintf(sentence, sizeof sentence, "%s", ct_last_error());
        snprintf(text, sizeof text, "0,%s", sentence);
        exchange_characters(text, SPECIAL, INSTEAD);
    }
    status = carry(0, text, deadline);
    if (status != CT_OK && failed == CT_OK)
        close(m->listener);
    if (failed != CT_OK)
        return ct_fail(failed, "%s", sentence);
    return status;
}

/* ---- The other ranks ----------------------------------------------------------- */

/* Returns 1 if the socket is connected, 0 if it is not connected yet, or -1 with errno if the
 * connection has failed.  `events` are the events that poll() returned. */
static int is_connected(int fd, short events)
{
    int error = 0;
    socklen_t size = sizeof error;

    if (!events)
        return 0;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        error = errno;
    if (!error && socket_is_self_connected(fd))
        error = ECONNREFUSED;
    errno = error;
    return error ? -1 : 1;
}

/* Returns the index of the first socket that is connected, or -1 with errno if all connections have
 * failed or the deadline has passed. */
static int first_connected(struct pollfd *sockets, int count, const char *addresses,
                           int64_t deadline)
{
    struct long_wait wait = long_wait_begin();
    int pending = 0, error = ETIMEDOUT;

    for (int i = 0; i < count; i++)
        pending += sockets[i].fd >= 0;
    while (pending > 0) {
        if (poll(sockets, (nfds_t)count, time_left_ms(deadline, 1000)) == 0
            && time_left_ms(deadline, 1) == 0)
            break;
        if (long_wait_is_due(&wait))
            log_line(LOG_WAITS,
                     "waiting %d s for a connection to rank 0's host at %s; CT_INTERFACE names the "
                     "network interface that the hosts share",
                     LONG_WAIT_MS / 1000, addresses);
        for (int i = 0; i < count; i++) {
            const int connected =
                sockets[i].fd < 0 ? 0 : is_connected(sockets[i].fd, sockets[i].revents);

            if (connected > 0)
                return i;
            if (connected < 0) {
                error = errno;
                close(sockets[i].fd);
                sockets[i].fd = -1; /* poll() ignores a negative descriptor */
                pending--;
            }
        }
    }
    errno = error;
    return -1;
}

/* Connects to all addresses, and sets m->address to the first that answers. */
static ct_status choose_address(struct launcher_meeting *m, const char *addresses, int64_t deadline)
{
    struct pollfd sockets[MOST_ADDRESSES];
    char names[MOST_ADDRESSES][sizeof m->address];
    const int64_t start = clock_ms();
    int count = 0, first, error = EHOSTUNREACH;

    for (const char *at = addresses; *at && count < MOST_ADDRESSES;
         at += strcspn(at, ","), at += *at == ',', count++) {
        snprintf(names[count], sizeof *names, "%.*s", (int)strcspn(at, ","), at);
        sockets[count] = (struct pollfd){ .fd = -1, .events = POLLOUT };
        if (socket_connect_begin(names[count], m->port, &sockets[count].fd) != CT_OK) {
            error = errno;
            sockets[count].fd = -1;
        }
    }
    first = first_connected(sockets, count, addresses, deadline);
    if (first >= 0)
        snprintf(m->address, sizeof m->address, "%s", names[first]);
    else if (errno != ETIMEDOUT || clock_ms() >= deadline)
        error = errno;
    for (int i = 0; i < count; i++)
        if (sockets[i].fd >= 0)
            close(sockets[i].fd);
    if (first >= 0)
        return CT_OK;
    return ct_fail(CT_ERR_TIMEOUT,
                   "no connection to port %d of rank 0's host at %s in %lld ms: %s; set "
                   "CT_INTERFACE to the network interface that the hosts share",
                   m->port, addresses, (long long)(clock_ms() - start), strerror(error));
}

static ct_status meet_rank_0(struct launcher_meeting *m, int rank, int64_t deadline)
{
    char text[TEXT] = "", secret[sizeof m->secret.bytes + 1] = "";
    int addresses = 0;
    ct_status status = carry(rank, text, deadline);

    if (status != CT_OK)
        return status;
    if (!strncmp(text, "0,", 2)) {
        exchange_characters(text, INSTEAD, SPECIAL);
        return ct_fail(CT_ERR_PEER, "rank 0 can't serve the store: %s", text + 2);
    }
    if (sscanf(text, "%d,%256[^,],%n", &m->port, secret, &addresses) != 2 || addresses == 0)
        return ct_fail(CT_ERR_SYSTEM, "the launcher returned no valid address of rank 0: \"%.32s\"",
                       text);
    if (!strcmp(secret, "-")) {
        status = secret_read(&m->secret, NULL);
    } else {
        m->secret.size = strlen(secret);
        memcpy(m->secret.bytes, secret, m->secret.size);
    }
    return status == CT_OK ? choose_address(m, text + addresses, deadline) : status;
}

ct_status launcher_meet(struct launcher_meeting *m, int rank, int64_t deadline)
{
    struct launcher_meeting new = { .listener = -1 };
    ct_status status;

    if (m->port > 0)
        return CT_OK;
    status = rank == 0 ? meet_as_rank_0(&new, deadline) : meet_rank_0(&new, rank, deadline);
    if (status == CT_OK)
        *m = new;
    return status;
}
