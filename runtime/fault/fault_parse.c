/* SPDX-License-Identifier: Apache-2.0 */
/* fault_parse.c - what CT_FAULT says: each word is a row of a table.
 *
 * A word that is not understood, or that could never come true, is refused: a test whose
 * fault never happens would be green for nothing. */
#include "runtime/fault/fault_injection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INIT_PHASES = 4 };

static const char *const more_names[] = { "init", "store" }; /* from FAULT_INIT on */

const char *fault_operation_name(int operation)
{
    return operation < FAULT_INIT ? operation_name(operation) : more_names[operation - FAULT_INIT];
}

/* ---- Values: 0 when the text is one ------------------------------------------ */

static int number(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    char *end;

    if (*text < '0' || *text > '9')
        return -1;
    *value = strtoull(text, &end, 10); /* too large: ULLONG_MAX, which is above most */
    return *end || *value < least || *value > most ? -1 : 0;
}

static int take_rank(struct fault *fault, const char *text)
{
    uint64_t value;

    if (!strcmp(text, "*"))
        return 0;
    if (number(text, 0, INT32_MAX, &value) < 0)
        return -1;
    fault->rank = (int)value;
    return 0;
}

static int take_op(struct fault *fault, const char *text)
{
    if (!strcmp(text, "*"))
        return 0;
    for (int i = 0; i < FAULT_OPERATIONS; i++)
        if (!strcmp(text, fault_operation_name(i))) {
            fault->operation = i;
            return 0;
        }
    return -1;
}

static int take_phase(struct fault *fault, const char *text)
{
    uint64_t value;

    if (!strcmp(text, "end")) {
        fault->phase = FAULT_END;
        return 0;
    }
    if (number(text, 0, INT32_MAX, &value) < 0)
        return -1;
    fault->phase = (uint32_t)value;
    return 0;
}

static int take_seq(struct fault *fault, const char *text)
{
    return number(text, 1, UINT64_MAX - 1, &fault->seq);
}

static int take_call(struct fault *fault, const char *text)
{
    return number(text, 1, UINT64_MAX - 1, &fault->call);
}

static int take_every(struct fault *fault, const char *text)
{
    (void)text;
    fault->every = 1;
    return 0;
}

static int take_delay(struct fault *fault, const char *text)
{
    static const struct {
        const char *name;
        int64_t us;
    } units[] = { { "us", 1 }, { "ms", 1000 }, { "s", 1000000 } };
    const size_t digits = strspn(text, "0123456789");
    uint64_t value;
    char count[16];

    snprintf(count, sizeof count, "%.*s", (int)digits, text);
    if (digits >= sizeof count || number(count, 0, 1000000000, &value) < 0)
        return -1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(text + digits, units[i].name)) {
            fault->action = FAULT_DELAY;
            fault->delay_us = (int64_t)value * units[i].us;
            return 0;
        }
    return -1;
}

static int take_exit(struct fault *fault, const char *text)
{
    uint64_t value;

    if (number(text, 0, 255, &value) < 0)
        return -1;
    fault->action = FAULT_EXIT;
    fault->code = (int)value;
    return 0;
}

static int take_kill(struct fault *fault, const char *text)
{
    (void)text;
    fault->action = FAULT_KILL;
    return 0;
}

static int take_stop(struct fault *fault, const char *text)
{
    (void)text;
    fault->action = FAULT_STOP;
    return 0;
}

static int take_abort(struct fault *fault, const char *text)
{
    (void)text;
    fault->action = FAULT_ABORT;
    return 0;
}

/* ---- Words ------------------------------------------------------------------- */

static const struct word {
    const char *name;
    int (*take)(struct fault *fault, const char *text);
    const char *value; /* what it must be; NULL: it has none */
    int action;
} words[] = {
    { "rank", take_rank, "a rank from 0 up, or *", 0 },
    { "op", take_op, "a collective's name (all_reduce ...), send, recv, init, store, or *", 0 },
    { "phase", take_phase, "a number from 0 up, or end", 0 },
    { "seq", take_seq, "a number from 1 up", 0 },
    { "call", take_call, "a number from 1 up", 0 },
    { "every", take_every, NULL, 0 },
    { "kill", take_kill, NULL, 1 },
    { "stop", take_stop, NULL, 1 },
    { "abort", take_abort, NULL, 1 },
    { "delay", take_delay, "a time like 50ms, 2s or 300us", 1 },
    { "exit", take_exit, "a code from 0 to 255", 1 },
};
enum { WORDS = sizeof words / sizeof *words };

static const struct word *word_of(const char *text, size_t length)
{
    for (int i = 0; i < WORDS; i++)
        if (strlen(words[i].name) == length && !memcmp(words[i].name, text, length))
            return &words[i];
    return NULL;
}

static ct_status take_word(struct fault *fault, const char *text, unsigned *said)
{
    const size_t length = strcspn(text, ":");
    const struct word *word = word_of(text, length);
    const int has_value = text[length] == ':';
    unsigned bit;

    if (!word)
        return ct_fail(CT_ERR_INVALID,
                       "CT_FAULT: \"%s\" is no word of a fault; there are rank:, op:, phase:, "
                       "seq:, call:, every, and kill, stop, abort, delay:, exit:",
                       text);
    bit = 1u << (word - words);
    if (*said & bit)
        return ct_fail(CT_ERR_INVALID, "CT_FAULT: \"%s\": the fault says %s already", text,
                       word->name);
    if (word->action && fault->action != FAULT_NOTHING)
        return ct_fail(CT_ERR_INVALID,
                       "CT_FAULT: \"%s\": the fault does something already; one fault does one "
                       "thing, more are separated by ';'",
                       text);
    *said |= bit;
    if (!word->value && has_value)
        return ct_fail(CT_ERR_INVALID, "CT_FAULT: \"%s\": %s has no value", text, word->name);
    if (word->value && (!has_value || word->take(fault, text + length + 1) < 0))
        return ct_fail(CT_ERR_INVALID, "CT_FAULT: \"%s\": %s wants %s", text, word->name,
                       word->value);
    if (!word->value)
        word->take(fault, NULL);
    return CT_OK;
}

static int has_phase(int operation, uint32_t phase)
{
    switch (operation) {
    case FAULT_INIT:
        return phase < INIT_PHASES || phase == FAULT_END;
    case FAULT_STORE:
        return phase == 0;
    case OPERATION_RECV:
    case OPERATION_SEND:
        return phase == 0 || phase == FAULT_END;
    default: /* how many hand-overs a collective has is its algorithm's affair */
        return 1;
    }
}

/* Whether it can happen at all. */
static ct_status check(const struct fault *fault)
{
    const int op = fault->operation;
    const char *name = op == FAULT_ANY ? "*" : fault_operation_name(op);
    const int is_message = op == OPERATION_SEND || op == OPERATION_RECV;
    const int is_collective = op != FAULT_ANY && !is_message && op < OPERATION_COUNT;

    if (fault->action == FAULT_NOTHING)
        return ct_fail(CT_ERR_INVALID, "CT_FAULT: a fault without kill, stop, abort, delay: or "
                                       "exit: does nothing");
    if (fault->seq && !is_collective && op != FAULT_ANY)
        return ct_fail(
            CT_ERR_INVALID,
            "CT_FAULT: \"seq\": only collectives are numbered; for op:%s say call:", name);
    if (fault->action == FAULT_ABORT && (op == FAULT_INIT || op == FAULT_STORE))
        return ct_fail(CT_ERR_INVALID, "CT_FAULT: \"abort\": op:%s has no group to abort", name);
    if (!has_phase(op, fault->phase))
        return ct_fail(CT_ERR_INVALID, "CT_FAULT: \"phase\": op:%s has only %s", name,
                       op == FAULT_INIT    ? "0 to 3 and end"
                       : op == FAULT_STORE ? "0"
                                           : "0 and end");
    return CT_OK;
}

/* ---- All --------------------------------------------------------------------- */

static ct_status read_first_seq(struct faults *faults, const char *text)
{
    if (faults->first_seq || number(text, 1, INT64_MAX, &faults->first_seq) < 0)
        return ct_fail(CT_ERR_INVALID,
                       "CT_FAULT: \"first_seq:%s\": first_seq is said once, and is a number from "
                       "1 to %lld",
                       text, (long long)INT64_MAX);
    return CT_OK;
}

/* One number per rank, with points between them; that of rank counts here. */
static ct_status read_hosts(struct faults *faults, int rank, const char *text)
{
    const char *at = text;
    int host = 0;

    for (int i = 0; at; i++) {
        const size_t length = strcspn(at, ".");
        uint64_t value;
        char one[8];

        snprintf(one, sizeof one, "%.*s", (int)length, at);
        if (length >= sizeof one || number(one, 0, INT16_MAX, &value) < 0) {
            host = 0;
            break;
        }
        if (i == rank)
            host = (int)value + 1;
        at = at[length] ? at + length + 1 : NULL;
    }
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
    char *rest = NULL;
    unsigned said = 0;
    ct_status status = CT_OK;

    if (!strncmp(text, "first_seq:", 10))
        return read_first_seq(faults, text + 10);
    if (!strncmp(text, "hosts:", 6))
        return read_hosts(faults, rank, text + 6);
    for (char *word = strtok_r(text, ",", &rest); word && status == CT_OK;
         word = strtok_r(NULL, ",", &rest))
        status = take_word(&fault, word, &said);
    if (status == CT_OK)
        status = check(&fault);
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
    char *copy = strdup(text), *rest = NULL;
    ct_status status = copy ? CT_OK : ct_fail(CT_ERR_NOMEM, "no memory for CT_FAULT");

    for (char *part = copy ? strtok_r(copy, ";", &rest) : NULL; part && status == CT_OK;
         part = strtok_r(NULL, ";", &rest))
        status = read_fault(faults, rank, part);
    free(copy);
    return status;
}
