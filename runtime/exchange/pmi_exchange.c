/* SPDX-License-Identifier: Apache-2.0 */
/* pmi_exchange.c - sends a text from rank 0 to all ranks over PMI-1.  Rank 0 puts the text under a
 * key, all ranks enter a barrier, and then the other ranks get the value of the key.
 *
 * In PMI-1, a process writes lines "cmd=word key=value ..." to a socket (PMI_FD), and the launcher
 * answers each line with a line.  If a process sends "init" and ends without "finalize", the
 * launcher assumes that the process failed.  The launcher closes the connection after "finalize".
 * This file sends both in one exchange, since afterwards libct handles deaths, and the survivors
 * may continue.  So this process must not use MPI, which needs the connection for itself
 * (launcher_exchange.c).  The descriptor stays open.  Otherwise an MPI_Init() that comes too late
 * would write to another file that got the same descriptor number. */
#include "runtime/exchange/pmi_exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/net/socket.h"
#include "runtime/util/log.h"

#define LINE 2048
#define KEY "libct-store"

int pmi_is_offered(void)
{
    return getenv("PMI_FD") != NULL;
}

static ct_status pmi_failed(ct_status status, const char *what)
{
    return ct_fail(status, "PMI, by which the ranks of this launcher find rank 0: %s", what);
}

static ct_status write_line(int fd, const char *line, int64_t deadline)
{
    return socket_write_all(fd, line, strlen(line), deadline) == CT_OK
               ? CT_OK
               : pmi_failed(CT_ERR_SYSTEM,
                            "its connection is closed (a program of this process has used "
                            "it before; set MASTER_ADDR and MASTER_PORT instead)");
}

/* Reads a byte, and warns after a long wait.  The answer to a barrier comes only when all ranks
 * have entered the barrier. */
static ct_status read_byte(int fd, char *byte, struct long_wait *wait, int64_t deadline)
{
    const int64_t word = wait->since + LONG_WAIT_MS;
    ct_status status =
        socket_read_all(fd, byte, 1, wait->said || deadline < word ? deadline : word);

    if (status != CT_ERR_TIMEOUT || !long_wait_is_due(wait))
        return status;
    log_line(LOG_WAITS, WAITS_FOR_RANKS " (PMI's barrier)", LONG_WAIT_MS / 1000);
    return socket_read_all(fd, byte, 1, deadline);
}

/* Reads an answer byte by byte, so that no byte after the newline is read.  This is fast enough for
 * the few hundred bytes of an exchange. */
static ct_status pmi_read_line(int fd, char line[LINE], int64_t deadline)
{
    struct long_wait wait = long_wait_begin();

    *line = 0;
    for (size_t n = 0; n < LINE - 1; n++) {
        const ct_status status = read_byte(fd, line + n, &wait, deadline);

        if (status == CT_ERR_TIMEOUT)
            return pmi_failed(status, "not all ranks called ct_init_process_group() in time");
        if (status != CT_OK)
            return pmi_failed(CT_ERR_SYSTEM,
                              "its connection is closed (a program of this process has "
                              "used it before; set MASTER_ADDR and MASTER_PORT "
                              "instead)");
        if (line[n] == '\n') {
            line[n] = 0;
            return CT_OK;
        }
        line[n + 1] = 0;
    }
    return pmi_failed(CT_ERR_SYSTEM, "an answer is too long");
}

/* Writes the value of " key=value" in the line to `value`, or "" if the key is missing. */
static void pmi_value_of(const char *line, const char *key, char *value, size_t size)
{
    char pattern[32];
    const char *at;

    snprintf(pattern, sizeof pattern, " %s=", key);
    at = strstr(line, pattern);
    if (at)
        at += strlen(pattern);
    snprintf(value, size, "%.*s", at ? (int)strcspn(at, " ") : 0, at ? at : "");
}

/* Sends a request and reads the answer.  Fails unless the answer is cmd=<expected>, with rc=0 or
 * without rc. */
static ct_status pmi_ask(int fd, const char *request, const char *expected, char answer[LINE],
                         int64_t deadline)
{
    char start[64], rc[16], why[256];
    ct_status status = write_line(fd, request, deadline);

    if (status == CT_OK)
        status = pmi_read_line(fd, answer, deadline);
    if (status != CT_OK)
        return status;
    snprintf(start, sizeof start, "cmd=%s", expected);
    pmi_value_of(answer, "rc", rc, sizeof rc);
    if (!strncmp(answer, start, strlen(start)) && (!*rc || !strcmp(rc, "0")))
        return CT_OK;
    snprintf(why, sizeof why, "to %.*s it answered %.128s", (int)strcspn(request, " \n"), request,
             answer);
    return pmi_failed(CT_ERR_SYSTEM, why);
}

ct_status pmi_broadcast(int rank, char *text, size_t size, int64_t deadline)
{
    char line[LINE], answer[LINE] = "", space[256];
    const int fd = atoi(getenv("PMI_FD"));
    ct_status status = pmi_ask(fd, "cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init",
                               answer, deadline);

    if (status == CT_OK)
        status = pmi_ask(fd, "cmd=get_my_kvsname\n", "my_kvsname", answer, deadline);
    pmi_value_of(answer, "kvsname", space, sizeof space);
    snprintf(line, sizeof line, "cmd=put kvsname=%s key=" KEY " value=%s\n", space, text);
    if (status == CT_OK && rank == 0)
        status = pmi_ask(fd, line, "put_result", answer, deadline);
    if (status == CT_OK)
        status = pmi_ask(fd, "cmd=barrier_in\n", "barrier_out", answer, deadline);
    snprintf(line, sizeof line, "cmd=get kvsname=%s key=" KEY "\n", space);
    if (status == CT_OK && rank != 0) {
        status = pmi_ask(fd, line, "get_result", answer, deadline);
        pmi_value_of(answer, "value", text, size);
    }
    if (status == CT_OK)
        status = pmi_ask(fd, "cmd=finalize\n", "finalize_ack", answer, deadline);
    return status;
}
