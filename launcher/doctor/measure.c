/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - first pings, then data.
 *
 * The one that connects sends the token and then commands of 16 bytes: a letter and a number.
 *   'p'            answered by the other's clock
 *   'd' and bytes  so much data follows; answered when all of it is read
 * Of the pings the shortest counts, and of the bursts of data the fastest: other work on a host can
 * only make them longer.  Small packets may pass where large ones do not (a tunnel that is narrower
 * than the interface says), so what fails at the first burst has a sentence of its own. */
#include "launcher/doctor/measure.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/doctor/matrix.h"
#include "runtime/net/socket.h"
#include "runtime/util/clock.h"

#define CONNECT_MS 4000 /* three tries of the kernel: at 0, 1 and 3 s */
#define STEP_MS 3000    /* of an answer */
#define PINGS 60
#define PINGS_MS 200 /* no further one after that; the same for bursts */
#define BURSTS_MS 250
#define BURSTS 5
#define FIRST_BURST ((uint64_t)256 << 10)
#define LARGEST_BURST ((uint64_t)16 << 20)
#define BURST_NS 30000000 /* the next one is larger if it took less */
#define CHUNK ((size_t)256 << 10)

struct command {
    char letter, unused[7];
    uint64_t number;
};

static ct_status command_send(int fd, char letter, uint64_t number)
{
    const struct command command = { .letter = letter, .number = htobe64(number) };

    return socket_write_all(fd, &command, sizeof command, deadline_after(STEP_MS));
}

/* ---- This end ---------------------------------------------------------------------- */

static ct_status ping_all(struct measurement *m, int fd)
{
    const int64_t end = deadline_after(PINGS_MS);
    struct ping pings[PINGS];
    int count = 0;

    while (count < PINGS && (count < 3 || clock_ms() < end)) {
        struct ping *ping = &pings[count++];
        uint64_t theirs = 0;
        ct_status status;

        ping->sent = clock_ns(CLOCK_REALTIME);
        status = command_send(fd, 'p', 0);
        if (status == CT_OK)
            status = socket_read_all(fd, &theirs, sizeof theirs, deadline_after(STEP_MS));
        if (status != CT_OK)
            return status;
        ping->received = clock_ns(CLOCK_REALTIME);
        ping->theirs = (int64_t)be64toh(theirs);
    }
    m->skew_ns = skew_of_pings(pings, count, &m->trip_ns);
    return CT_OK;
}

static ct_status burst(int fd, const char *chunk, uint64_t bytes, int64_t *ns)
{
    const int64_t began = clock_ns(CLOCK_MONOTONIC), deadline = deadline_after(STEP_MS);
    uint64_t echo;
    ct_status status = command_send(fd, 'd', bytes);

    for (uint64_t sent = 0; status == CT_OK && sent < bytes; sent += CHUNK)
        status = socket_write_all(fd, chunk, CHUNK, deadline);
    if (status == CT_OK)
        status = socket_read_all(fd, &echo, sizeof echo, deadline);
    *ns = clock_ns(CLOCK_MONOTONIC) - began;
    return status;
}

static ct_status burst_all(struct measurement *m, int fd)
{
    const int64_t end = deadline_after(BURSTS_MS);
    char *chunk = calloc(1, CHUNK);
    uint64_t bytes = FIRST_BURST;
    ct_status status = chunk ? CT_OK : ct_fail(CT_ERR_SYSTEM, "out of memory");

    for (int i = 0; i < BURSTS && status == CT_OK && (i == 0 || clock_ms() < end); i++) {
        int64_t ns;

        status = burst(fd, chunk, bytes, &ns);
        if (status == CT_OK && (double)bytes * 1e9 / (double)ns > m->bytes_per_s)
            m->bytes_per_s = (double)bytes * 1e9 / (double)ns;
        if (ns < BURST_NS && bytes < LARGEST_BURST)
            bytes *= 8;
        if (bytes > LARGEST_BURST)
            bytes = LARGEST_BURST;
    }
    free(chunk);
    return status;
}

static const char route_remedy[] =
    "allow TCP between the hosts on all ports, in both directions (ip route get ADDRESS; nft list "
    "ruleset; cloud: the security group), or name another network: --iface";

static const char large_remedy[] =
    "the same MTU on all hosts and on the way (ip link; ping -M do -s 1472 HOST, 8972 where it is "
    "9000)";

static void fails(struct measurement *m, const char *what, const char *remedy)
{
    m->remedy = remedy;
    snprintf(m->error, sizeof m->error, "%s%.300s", what, ct_last_error());
}

void measure_peer(struct measurement *m, const char *address, int port, const char *token)
{
    ct_status status;
    int fd;

    *m = (struct measurement){ .trip_ns = -1, .remedy = "" };
    if (socket_connect_once(address, port, deadline_after(CONNECT_MS), &fd) != CT_OK) {
        fails(m, "", route_remedy);
        return;
    }
    socket_give_up_after(fd, STEP_MS);
    status = socket_write_all(fd, token, TOKEN, deadline_after(STEP_MS));
    if (status == CT_OK)
        status = ping_all(m, fd);
    if (status != CT_OK)
        fails(m, "it connects, but gets no answer: ", route_remedy);
    else if ((status = burst_all(m, fd)) != CT_OK && m->bytes_per_s == 0)
        fails(m, "small packets pass, but 256 KiB do not: ", large_remedy);
    else if (status != CT_OK)
        fails(m, "the connection broke in the middle of data: ", route_remedy);
    close(fd);
}

/* ---- The other end ------------------------------------------------------------------ */

static ct_status read_data(int fd, uint64_t bytes)
{
    char *chunk = malloc(CHUNK);
    ct_status status = chunk && bytes <= LARGEST_BURST ? CT_OK : CT_ERR_INVALID;

    for (uint64_t got = 0; status == CT_OK && got < bytes; got += CHUNK)
        status = socket_read_all(fd, chunk, CHUNK, deadline_after(STEP_MS));
    free(chunk);
    return status;
}

void measure_serve(int fd, const char *token)
{
    char theirs[TOKEN];
    struct command command;
    uint64_t answer;

    if (strlen(token) != TOKEN
        || socket_read_all(fd, theirs, TOKEN, deadline_after(STEP_MS)) != CT_OK
        || memcmp(theirs, token, TOKEN) != 0)
        return;
    while (socket_read_all(fd, &command, sizeof command, deadline_after(STEP_MS)) == CT_OK) {
        if (command.letter == 'd' && read_data(fd, be64toh(command.number)) != CT_OK)
            return;
        answer = htobe64((uint64_t)clock_ns(CLOCK_REALTIME));
        if (socket_write_all(fd, &answer, sizeof answer, deadline_after(STEP_MS)) != CT_OK)
            return;
    }
}
