/* SPDX-License-Identifier: Apache-2.0 */
/* fault_injection.c - when a fault's place is passed, and what happens there.
 *
 * Each thread knows the call it is in and how many hand-overs that has made; a place
 * compares them with each fault of the rank.  What happens is said (CT_LOG=warn) before it
 * does, since a killed process says nothing any more. */
#include "runtime/fault/fault_injection.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "runtime/util/log.h"

/* The call that this thread is in. */
static _Thread_local struct {
    ct_group *group; /* NULL: a call of none */
    int operation;
    uint64_t seq; /* 0: it has none */
    uint64_t call, any_call;
    uint32_t phase;
} now;

static void sleep_us(int64_t us)
{
    struct timespec left = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        continue;
}

static int is_here(const struct fault *fault)
{
    const uint64_t call = fault->operation == FAULT_ANY ? now.any_call : now.call;

    if (fault->operation != FAULT_ANY && fault->operation != now.operation)
        return 0;
    if (fault->phase != now.phase || (fault->seq && fault->seq != now.seq))
        return 0;
    if (fault->action == FAULT_ABORT && !now.group)
        return 0;
    return !fault->call || (fault->every ? call % fault->call == 0 : call == fault->call);
}

static void happens(const struct faults *faults, const struct fault *fault)
{
    static const char *const names[] = {
        [FAULT_KILL] = "kill",   [FAULT_STOP] = "stop", [FAULT_ABORT] = "abort",
        [FAULT_DELAY] = "delay", [FAULT_EXIT] = "exit",
    };

    log_line(LOG_WARN, "CT_FAULT: %s in %s, call %llu, seq %llu, phase %d", names[fault->action],
             fault_operation_name(now.operation), (unsigned long long)now.call,
             (unsigned long long)now.seq, (int)now.phase);
    switch (fault->action) {
    case FAULT_KILL:
        kill(getpid(), SIGKILL);
        break;
    case FAULT_STOP:
        kill(getpid(), SIGSTOP);
        break;
    case FAULT_ABORT:
        faults->abort(now.group);
        break;
    case FAULT_DELAY:
        sleep_us(fault->argument);
        break;
    case FAULT_EXIT:
        _exit((int)fault->argument);
    case FAULT_NOTHING:
        break;
    }
}

static void look(struct faults *faults)
{
    for (int i = 0; i < faults->count; i++) {
        struct fault *fault = &faults->list[i];

        if (is_here(fault) && (fault->every || !atomic_exchange(&fault->fired, 1)))
            happens(faults, fault);
    }
}

void faults_begin(struct faults *faults, ct_group *group, int operation, uint64_t seq)
{
    now.group = group;
    now.operation = operation;
    now.seq = seq;
    now.call = atomic_fetch_add(&faults->calls[operation], 1) + 1;
    now.any_call = atomic_fetch_add(&faults->all_calls, 1) + 1;
    now.phase = 0;
    look(faults);
}

void faults_pass(struct faults *faults)
{
    now.phase++;
    look(faults);
}

void faults_end(struct faults *faults)
{
    now.phase = FAULT_END;
    look(faults);
}

/* ---- Life ------------------------------------------------------------------ */

ct_status faults_from_environment(int rank, struct faults **faults)
{
    const char *text = getenv("CT_FAULT");
    struct faults *f;
    ct_status status;

    *faults = NULL;
    if (!text || !*text)
        return CT_OK;
    f = calloc(1, sizeof *f);
    if (!f)
        return ct_fail(CT_ERR_NOMEM, "no memory for CT_FAULT");
    status = faults_read(f, rank, text);
    if (status == CT_OK && (f->count > 0 || f->first_seq || f->host))
        *faults = f;
    else
        faults_free(f);
    return status;
}

void faults_free(struct faults *faults)
{
    if (!faults)
        return;
    free(faults->list);
    free(faults);
}
