/* SPDX-License-Identifier: Apache-2.0 */
/* fault_injection.c - parses CT_FAULT, and triggers a fault when a thread passes its place.
 *
 * Each word of a fault is a row of words[].  An unknown word, or a fault that could never happen,
 * is refused.  Otherwise a test would pass without its fault.
 *
 * Each thread knows its current call and how many hand-overs of that call it has passed.  At each
 * place, the thread compares these with each fault of the rank.  The fault is logged (CT_LOG=warn)
 * before it happens, since a killed process logs nothing. */
#include "runtime/fault/fault_injection.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/util/log.h"

static const char *const more_names[] = { "init", "store" }; /* names from FAULT_INIT on */

static const char *fault_name_of(int operation)
{
    return operation < FAULT_INIT ? operation_name(operation) : more_names[operation - FAULT_INIT];
}

/* ---- Values ------------------------------------------------------------------ */

struct word {
    const char *name;
    /* What a valid value is, for messages.  NULL if the word takes no value; then its field is set
     * to 1. */
    const char *wants;
    int (*read)(const struct word *word, const char *text, uint64_t *value);
    size_t field;         /* offset in struct fault of the field for the value */
    uint64_t least, most; /* bounds of a number */
    const char *other;    /* a text that is allowed instead of a number */
    uint64_t meaning;     /* the value of that text */
    enum fault_action action;
};

/* Reads the number at the start of text.  Returns the end of the number, or NULL if there is no
 * number within these bounds. */
static const char *fault_number(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    char *end;

    if (*text < '0' || *text > '9')
        return NULL;
    *value = strtoull(text, &end, 10); /* ULLONG_MAX, which is above `most`, if too large */
    return *value < least || *value > most ? NULL : end;
}

static int fault_read_number(const struct word *word, const char *text, uint64_t *value)
{
    const char *end;

    if (word->other && !strcmp(text, word->other)) {
        *value = word->meaning;
        return 0;
    }
    end = fault_number(text, word->least, word->most, value);
    return end && !*end ? 0 : -1;
}

static int read_operation(const struct word *word, const char *text, uint64_t *value)
{
    *value = word->meaning;
    if (!strcmp(text, word->other))
        return 0;
    for (*value = 0; *value < FAULT_OPERATIONS; ++*value)
        if (!strcmp(text, fault_name_of((int)*value)))
            return 0;
    return -1;
}

static int read_time(const struct word *word, const char *text, uint64_t *value)
{
    static const struct {
        const char *name;
        uint64_t us;
    } units[] = { { "us", 1 }, { "ms", 1000 }, { "s", 1000000 } };
    const char *const unit = fault_number(text, word->least, word->most, value);

    for (size_t i = 0; unit && i < sizeof units / sizeof *units; i++)
        if (!strcmp(unit, units[i].name)) {
            *value *= units[i].us;
            return 0;
        }
    return -1;
}

/* ---- Words ------------------------------------------------------------------- */

#define FIELD(name) .field = offsetof(struct fault, name)
#define NUMBER(name, from, to) .read = fault_read_number, FIELD(name), .least = from, .most = to
static const struct word words[] = {
    { "rank", "a rank from 0 up, or *", NUMBER(rank, 0, INT32_MAX), .other = "*",
      .meaning = FAULT_ANY },
    { "op", "a collective's name (all_reduce ...), send, recv, init, store, or *",
      .read = read_operation, FIELD(operation), .other = "*", .meaning = FAULT_ANY },
    { "phase", "a number from 0 up, or end", NUMBER(phase, 0, INT32_MAX), .other = "end",
      .meaning = FAULT_END },
    { "seq", "a number from 1 up", NUMBER(seq, 1, UINT64_MAX - 1) },
    { "call", "a number from 1 up", NUMBER(call, 1, UINT64_MAX - 1) },
    { "every", FIELD(every) },
    { "kill", FIELD(argument), .action = FAULT_KILL },
    { "stop", FIELD(argument), .action = FAULT_STOP },
    { "abort", FIELD(argument), .action = FAULT_ABORT },
    { "delay", "a time like 50ms, 2s or 300us", .read = read_time, FIELD(argument),
      .most = 1000000000, .action = FAULT_DELAY },
    { "exit", "a code from 0 to 255", NUMBER(argument, 0, 255), .action = FAULT_EXIT },
};
enum { WORDS = sizeof words / sizeof *words };

static ct_status fault_take_word(struct fault *fault, const char *text, unsigned *said)
{
    const size_t length = strcspn(text, ":");
    const char *const value = text[length] ? text + length + 1 : NULL;
    const struct word *word = words;
    uint64_t meant = 1;

    while (word < words + WORDS
           && (strlen(word->name) != length || memcmp(word->name, text, length) != 0))
        word++;
    if (word == words + WORDS)
        return ct_fail(
            CT_ERR_INVALID,
            "CT_FAULT: \"%s\" is not a word of a fault; the words are rank:, op:, phase:, "
            "seq:, call:, every, and kill, stop, abort, delay:, exit:",
            text);
    if (*said & 1u << (word - words))
        return ct_fail(CT_ERR_INVALID, "CT_FAULT: \"%s\": the fault says %s already", text,
                       word->name);
    if (word->action && fault->action)
        return ct_fail(CT_ERR_INVALID,
                       "CT_FAULT: \"%s\": the fault does something already; one fault does one "
                       "thing, more are separated by ';'",
                       text);
    if (!word->wants && value)
        return ct_fail(CT_ERR_INVALID, "CT_FAULT: \"%s\": %s has no value", text, word->name);
    if (word->wants && (!value || word->read(word, value, &meant) < 0))
        return ct_fail(CT_ERR_INVALID, "CT_FAULT: \"%s\": %s wants %s", text, word->name,
                       word->wants);
    *said |= 1u << (word - words);
    memcpy((char *)fault + word->field, &meant, sizeof meant);
    if (word->action)
        fault->action = word->action;
    return CT_OK;
}

/* ---- Checks -------------------------------------------------------------------- */

/* The phases of operations that are not collectives.  The phases of a collective depend on its
 * algorithm. */
static const struct {
    int operation;
    int64_t last;
    int has_end;
    const char *text;
} phases[] = {
    { FAULT_INIT, 3, 1, "0 to 3 and end" },
    { FAULT_STORE, 0, 0, "0" },
    { OPERATION_SEND, 0, 1, "0 and end" },
    { OPERATION_RECV, 0, 1, "0 and end" },
};

static ct_status check_phase(const struct fault *fault)
{
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
        if (phases[i].operation == fault->operation
            && !(fault->phase == FAULT_END ? phases[i].has_end : fault->phase <= phases[i].last))
            return ct_fail(CT_ERR_INVALID, "CT_FAULT: \"phase\": op:%s has only %s",
                           fault_name_of(phases[i].operation), phases[i].text);
    return CT_OK;
}

static ct_status fault_check(const struct fault *fault)
{
    const int op = (int)fault->operation, has_group = op < OPERATION_COUNT;

    if (!fault->action)
        return ct_fail(CT_ERR_INVALID, "CT_FAULT: a fault without kill, stop, abort, delay: or "
                                       "exit: does nothing");
    if (fault->seq && op != FAULT_ANY && (operation_is_message(op) || !has_group))
        return ct_fail(CT_ERR_INVALID,
                       "CT_FAULT: \"seq\": only collectives are numbered; for op:%s say call:",
                       fault_name_of(op));
    if (fault->action == FAULT_ABORT && !has_group)
        return ct_fail(CT_ERR_INVALID, "CT_FAULT: \"abort\": op:%s has no group to abort",
                       fault_name_of(op));
    return check_phase(fault);
}

/* ---- The variable------------------------------------------------------------- */

static ct_status read_first_seq(struct faults *faults, const char *text)
{
    const int again = faults->first_seq != 0;
    const char *const end = fault_number(text, 1, INT64_MAX, &faults->first_seq);

    if (again || !end || *end)
        return ct_fail(CT_ERR_INVALID,
                       "CT_FAULT: \"first_seq:%s\": first_seq is said once, and is a number from "
                       "1 to %lld",
                       text, (long long)INT64_MAX);
    return CT_OK;
}

/* Reads the host of `rank` from text, which has one number per rank, separated by points.  Returns
 * 1 + the number.  Returns 0 if text has no number for the rank or is not valid. */
static int fault_host_of(const char *text, int rank)
{
    uint64_t value;
    int host = 0;

    for (int i = 0;; i++) {
        text = fault_number(text, 0, INT16_MAX, &value);
        if (!text || (*text && *text != '.'))
            return 0;
        if (i == rank)
            host = (int)value + 1;
        if (!*text++)
            return host;
    }
}

static ct_status read_hosts(struct faults *faults, int rank, const char *text)
{
    const int host = fault_host_of(text, rank);

    if (!host || faults->host)
        return ct_fail(CT_ERR_INVALID,
                       "CT_FAULT: \"hosts:%s\": hosts is said once, and is a number for each rank, "
                       "like 0.0.1; rank %d finds none",
                       text, rank);
    faults->host = host;
    return CT_OK;
}

static ct_status read_fault(struct faults *faults, int rank, char *text)
{
    struct fault fault = { .rank = FAULT_ANY, .operation = FAULT_ANY };
    struct fault *list;
    unsigned said = 0;
    ct_status status = CT_OK;

    if (!strncmp(text, "first_seq:", 10))
        return read_first_seq(faults, text + 10);
    if (!strncmp(text, "hosts:", 6))
        return read_hosts(faults, rank, text + 6);
    for (char *word; status == CT_OK && (word = strsep(&text, ","));)
        if (*word)
            status = fault_take_word(&fault, word, &said);
    if (status == CT_OK)
        status = fault_check(&fault);
    if (status != CT_OK || (fault.rank != FAULT_ANY && fault.rank != rank))
        return status;
    list = realloc(faults->list, ((size_t)faults->count + 1) * sizeof *list);
    if (!list)
        return ct_fail(CT_ERR_NOMEM, "no memory for CT_FAULT");
    list[faults->count++] = fault;
    faults->list = list;
    return CT_OK;
}

ct_status faults_read(struct faults *faults, int rank, const char *text)
{
    char *const copy = strdup(text), *rest = copy;
    ct_status status = copy ? CT_OK : ct_fail(CT_ERR_NOMEM, "no memory for CT_FAULT");

    for (char *part; status == CT_OK && (part = strsep(&rest, ";"));)
        if (*part)
            status = read_fault(faults, rank, part);
    free(copy);
    return status;
}

/* ---- Places ------------------------------------------------------------------ */

/* The current call of this thread. */
static _Thread_local struct {
    ct_group *group; /* NULL if the call has no group */
    int operation;
    uint64_t seq; /* 0 if the call has no number */
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

static void inject(const struct faults *faults, const struct fault *fault)
{
    static const char *const names[] = {
        [FAULT_KILL] = "kill",   [FAULT_STOP] = "stop", [FAULT_ABORT] = "abort",
        [FAULT_DELAY] = "delay", [FAULT_EXIT] = "exit",
    };

    log_line(LOG_WARN, "CT_FAULT: %s in %s, call %llu, seq %llu, phase %d", names[fault->action],
             fault_name_of(now.operation), (unsigned long long)now.call,
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

static void fault_check_place(struct faults *faults)
{
    for (int i = 0; i < faults->count; i++) {
        struct fault *fault = &faults->list[i];

        if (is_here(fault) && (fault->every || !atomic_exchange(&fault->fired, 1)))
            inject(faults, fault);
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
    fault_check_place(faults);
}

void faults_pass(struct faults *faults)
{
    now.phase++;
    fault_check_place(faults);
}

void faults_end(struct faults *faults)
{
    now.phase = FAULT_END;
    fault_check_place(faults);
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
