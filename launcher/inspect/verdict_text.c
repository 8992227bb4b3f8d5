/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_text.c - writes verdicts with two tables of formats.  One table has the beginning of the
 * sentence for each kind of verdict.  The other table has a clause for each set of ranks.
 *
 * A word in {} is the name of a field, and the field's text replaces it.  A part in [] is left out
 * if its first field is empty.  If a verdict has no beginning, its sentence describes first the
 * ranks that the others wait for, then the ranks that wait. */
#include "launcher/inspect/verdict_text.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/inspect/ask.h"
#include "runtime/types/dtype.h"
#include "runtime/types/call_signature.h"
#include "runtime/util/signal_name.h"

#define MOST_PIDS 4
#define ANSWER_LIMIT "2 s"
_Static_assert(ASK_LIMIT_MS == 2000, "ANSWER_LIMIT is how long a reader waits for answers");

struct format {
    const char *name, *text;
};

static const struct format kinds[VERDICT_KINDS] = {
    [VERDICT_MISSING] = { "missing", "" },
    [VERDICT_MISMATCH] = { "mismatch", "group {group} has waited {time} as the {differ} differ: " },
    [VERDICT_DEADLOCK] = { "deadlock", "deadlock for {time}: {circle}, " },
    [VERDICT_HOSTS] = { "other_hosts", "" },
    [VERDICT_INIT] = { "init", "" },
    [VERDICT_STORE] = { "store", "no progress for {time}: " },
    [VERDICT_PROCESS] = { "process", "" },
    [VERDICT_QUIET] = { "quiet", "no process has used a processor or written output for {time}: " },
    [VERDICT_TOGETHER] = { "together", "group {group} has taken {time}, no rank is missing: " },
};

/* A clause of the sentence that describes a deadlock. */
#define RANKS_IN_CALL "{ranks}[ in {call}][ of group {own_group}][ at {where}]"

static const struct format activities[ACTIVITIES] = {
    [RANK_IN_CALL] = { "in_call", "{ranks} called {call}[ at {where}]" },
    [RANK_IN_CIRCLE] = { "in_call", RANKS_IN_CALL },
    [RANK_RETURNED] = { "returned", "{ranks} called {call} and returned from it" },
    [RANK_ENDED] = { "ended", "{ranks} {end}[ {since}] ({process})" },
    [RANK_DIED] = { "died", "{ranks} died silently[ {since}]: its process ({process}) is gone"
                            "[, but {wrapper}, which ctrun started, lives on]" },
    [RANK_STOPPED] = { "stopped", "a signal stopped {ranks}[ {since}]: kill -CONT lets the job "
                                  "continue ({process})" },
    [RANK_TRACED] = { "traced", "a debugger (pid {tracer}) holds {ranks}[ {since}] ({process})" },
    [RANK_SILENT] = { "silent", "{ranks} ({process}) {missed} and did not answer for " ANSWER_LIMIT
                                ", so a thread holds Python's lock (the GIL): ctctl stack shows "
                                "its C functions" },
    [RANK_LEFT] = { "left", "{ranks} left the group[ {since}] ({process})" },
    [RANK_IN_OTHER_CALL] = { "in_other_call", "{ranks} called {call} of group {group}[ at {where}] "
                                              "and did not return ({process})" },
    [RANK_AT_STORE] = { "at_store", "{ranks} cannot continue without {waits_for} ({process})" },
    [RANK_FAILED] = { "failed", "{ranks} made no call after {call} failed ({process})" },
    [RANK_NOT_STARTED] = { "not_started", "ctrun has not started {ranks} yet" },
    [RANK_NO_INIT] = { "no_init", "{ranks} ({process}) {has} not called {init}" },
    [RANK_INIT_FAILED] = { "init_failed", "{init} failed on {ranks} ({process})" },
    [RANK_IN_INIT] = { "in_init", "{ranks} called {init}[, which waits for {waits_for}] "
                                  "({process})" },
    [RANK_NOT_IN_GROUP] = { "not_in_group", "{ranks} did not make this group yet, or destroyed it "
                                            "({process})" },
    [RANK_IDLE] = { "idle", "{ranks} ({process}) {missed}; {its} last call was {last}" },
    [RANK_NO_CALL] = { "no_call", "{ranks} ({process}) {missed}; {it has} made no call yet" },
    [RANK_NOT_HERE] = { "not_here", "no process here shows {ranks}{perhaps}" },
    [RANK_BLOCKED] = { "blocked", "this also blocks " RANKS_IN_CALL },
    [RANK_QUIET] = { "quiet", "{ranks} ({process})" },
    [ALL_RANKS_STOPPED] = { "all_stopped", "a signal stopped all ranks here, {ranks}: kill -CONT "
                                           "lets the job continue ({process})" },
    [CTRUN_STOPPED] = { "ctrun_stopped",
                        "a signal stopped ctrun ({process}): kill -CONT lets it continue" },
};

/* Clauses for waiting ranks.  They follow the clauses for the ranks that the waiting ranks wait
 * for. */
static const char waits_in_call[] =
    "{ranks} {has} waited {time}[ in {new call}[ of group {other group}]][ at {where}]";
static const char waits_in_init[] = "{ranks} {has} waited {time} in {init}[ for {waits_for}]";

/* ---- Descriptions --------------------------------------------------------------- */

void describe_time(uint64_t ns, char *text, size_t size)
{
    const double seconds = (double)ns / 1e9;

    if (seconds < 120)
        snprintf(text, size, "%.1f s", seconds);
    else if (seconds < 7200)
        snprintf(text, size, "%.1f min", seconds / 60);
    else
        snprintf(text, size, "%.1f h", seconds / 3600);
}

void describe_call(const struct call_snapshot *call, int peer, char *text, size_t size)
{
    const struct signature signature = { .seq = call->seq,
                                         .count = call->count,
                                         .operation = (uint8_t)call->operation,
                                         .dtype = (uint8_t)call->dtype,
                                         .op = (int16_t)call->op,
                                         .root = call->root };
    char other[32];

    if (call->seq > 0) {
        signature_describe(&signature, text, size);
        return;
    }
    if (peer == PEER_UNSAID && call->op != OP_OF_PROBE) {
        snprintf(text, size, "%s (%llu %s, tag %d)", operation_name(call->operation),
                 (unsigned long long)call->count, dtype_name((ct_dtype)call->dtype), call->tag);
        return;
    }
    snprintf(other, sizeof other,
             peer >= 0             ? "rank %d"
             : peer == PEER_UNSAID ? "another rank"
                                   : "any rank",
             peer);
    if (call->op == OP_OF_PROBE) {
        if (call->tag == CT_ANY_TAG)
            snprintf(text, size, "probe for a message from %s", other);
        else
            snprintf(text, size, "probe for a message from %s (tag %d)", other, call->tag);
        return;
    }
    snprintf(text, size, "%s of %llu %s %s %s (tag %d)", operation_name(call->operation),
             (unsigned long long)call->count, dtype_name((ct_dtype)call->dtype),
             call->operation == OPERATION_SEND ? "to" : "from", other, call->tag);
}

void describe_death(const struct death_snapshot *death, char *text, size_t size)
{
    char name[32];

    if (death->how == CONTROL_HOST_LOST)
        snprintf(text, size, "was lost with its %s",
                 death->code == CONTROL_CLOSED ? "ctrun" : "host");
    else if (death->how == CLD_EXITED)
        snprintf(text, size, "exited with code %d", death->code);
    else
        snprintf(text, size, "was killed by %s", signal_name(death->code, name, sizeof name));
}

static const char *describe_state(const struct process_snapshot *process)
{
    static const struct format states[] = {
        { "R", "running" },
        { "D", "stuck in the kernel" },
        { "T", "stopped" },
        { "t", "held by a debugger" },
        { "Ssleep", "sleeping" },
        { "Sfutex", "waiting for a thread or a lock" },
        { "Sread", "waiting to read" },
        { "Swrite", "waiting to write" },
        { "Swait", "waiting for a child process" },
        { "Spoll", "waiting for input" },
        { "S", "waiting in the kernel" },
    };

    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (*states[i].name == process->state
            && (!states[i].name[1] || !strcmp(states[i].name + 1, process->waits_in)))
            return states[i].text;
    return "";
}

/* Returns the index of the last of the members from `first` on whose ranks are successive. */
static int last_in_row(const struct rank_set *set, int first)
{
    while (first + 1 < set->count && set->member[first + 1].rank == set->member[first].rank + 1)
        first++;
    return first;
}

/* Writes "rank 3" or "ranks 0-2,5".  A long list ends in "...", so that other clauses still fit. */
static void describe_ranks(const struct rank_set *set, char *text, size_t size)
{
    const struct set_member *member = set->member;
    size_t used = (size_t)snprintf(text, size, set->count > 1 ? "ranks " : "rank ");

    if (member->rank < 0)
        snprintf(text, size, "%d of its ranks", set->count);
    for (int i = 0, last; i < set->count && member->rank >= 0; i = last + 1) {
        last = last_in_row(set, i);
        if (used + 32 > size) {
            snprintf(text + used, size - used, ",...");
            return;
        }
        used += (size_t)snprintf(text + used, size - used, last > i ? "%s%d-%d" : "%s%d",
                                 i ? "," : "", member[i].rank, member[last].rank);
    }
}

/* Returns a process of the set if all processes of the set are in the same state.  Returns NULL if
 * their states differ, or if a rank is on another host. */
static const struct process_snapshot *common_process(const struct rank_set *set,
                                                     const struct job_snapshot *job)
{
    const struct process_snapshot *first = NULL;

    for (int i = 0; i < set->count && set->member[i].at >= 0; i++) {
        const struct process_snapshot *its = &job->rank[set->member[i].at].process;

        first = first ? first : its;
        if (its->state != first->state || strcmp(its->waits_in, first->waits_in) != 0)
            return NULL;
    }
    return first;
}

/* Returns where the main threads of the set are; "" if they are at different places. */
static const char *common_place(const struct rank_set *set, const struct job_snapshot *job)
{
    const char *first = NULL;

    for (int i = 0; i < set->count && set->member[i].at >= 0; i++) {
        const char *its = job->rank[set->member[i].at].main_place;

        first = first ? first : its;
        if (strcmp(its, first) != 0)
            return "";
    }
    return first ? first : "";
}

/* Returns the pid of a member of the set; 0 if the pid is not known. */
static pid_t pid_of(const struct rank_set *set, int member, const struct job_snapshot *job)
{
    const int at = set->member[member].at;

    return set->does.death                   ? set->does.death->pid
           : at >= 0                         ? job->rank[at].process.pid
           : set->does.kind == CTRUN_STOPPED ? job->launcher
                                             : 0;
}

/* Writes the pids, the host and the common state, such as "pids 4310, 4311 on node-a, sleeping". */
static void describe_processes(const struct rank_set *set, const struct job_snapshot *job,
                               const char *host, char *text, size_t size)
{
    const struct process_snapshot *common = set->does.death ? NULL : common_process(set, job);
    const char *state = common ? describe_state(common) : "";
    const char *place = common_place(set, job);
    size_t used = (size_t)snprintf(text, size, set->count > 1 ? "pids" : "pid");

    for (int i = 0; i < set->count && i < MOST_PIDS; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%d", i ? ", " : " ",
                                 (int)pid_of(set, i, job));
    used += (size_t)snprintf(text + used, size - used, "%s%s%s%s%s",
                             set->count > MOST_PIDS ? ", ..." : "", *host ? " on " : "", host,
                             *state ? ", " : "", state);
    if (*place && used < size && !*activity_where(&set->does))
        snprintf(text + used, size - used, "%s at %s", *state ? "" : ",", place);
}

/* ---- Fields ------------------------------------------------------------------------- */

enum {
    FLICKERS = 1, /* the sentence's key does not depend on the field */
    TEXT_ONLY = 2 /* the field is left out of JSON, which has the value as numbers */
};

struct fields {
    int count;
    struct field {
        const char *name;
        int flags;
        char text[240];
    } field[24];
};

static void set_field(struct fields *f, const char *name, int flags, const char *text)
{
    struct field *field = &f->field[f->count++];

    field->name = name;
    field->flags = flags;
    snprintf(field->text, sizeof field->text, "%s", text);
}

/* Returns text with the possible reasons why no process here has an entry for the ranks. */
static const char *perhaps(const struct rank_set *ranks, const struct job_snapshot *job)
{
    return job->own_memory
               ? ", which may have ended, may not have started, or may run on another host"
           : ranks->member->rank >= 0 ? ": run ctctl on the other hosts"
           : job->nodes > 1 ? ", which may have left the group, or may run on another host"
                            : ", which may have left the group";
}

/* Writes "0 -> 1 -> 2 -> 0", and leaves out the middle of a long circle. */
static void describe_circle(const struct verdict *verdict, char *text, size_t size)
{
    const int count = verdict->circled, shown = 8;
    size_t used = 0;

    *text = '\0';
    for (int i = 0; i < count; i++) {
        if (i == shown && i < count - 1) {
            used += (size_t)snprintf(text + used, size - used, "... -> ");
            i = count - 1;
        }
        used += (size_t)snprintf(text + used, size - used, "%d -> ", verdict->circle[i]);
    }
    if (count > 0)
        snprintf(text + used, size - used, "%d", verdict->circle[0]);
}

/* Returns the collective call that the missing ranks have not made; NULL if no set waits in a
 * collective. */
static const struct call_snapshot *missed_call(const struct verdict *verdict)
{
    for (int i = 0; i < verdict->sets; i++)
        if (verdict->set[i].does.waits && verdict->set[i].does.call
            && verdict->set[i].does.call->seq > 0)
            return verdict->set[i].does.call;
    return NULL;
}

/* Returns 1 if an earlier clause of the sentence already names the call. */
static int verdict_is_named(const struct verdict *verdict, const struct call_snapshot *call)
{
    const struct call_snapshot *missed = missed_call(verdict);

    for (int i = 0; i < verdict->sets; i++)
        if (verdict->set[i].does.kind == RANK_IDLE || verdict->set[i].does.kind == RANK_NO_CALL)
            return missed && call->seq == missed->seq;
    return 0;
}

/* Sets the fields that depend on singular or plural, and the fields about the call in which other
 * ranks wait. */
static void describe_grammar(struct fields *f, const struct verdict *verdict,
                             const struct rank_set *ranks)
{
    const int one = ranks->count == 1;
    const struct activity *does = &ranks->does;
    const struct call_snapshot *missed = missed_call(verdict);
    const char *other_group = strcmp(verdict->group, "world") != 0 ? verdict->group : "";
    char call[160], text[240];

    set_field(f, "has", TEXT_ONLY, one ? "has" : "have");
    set_field(f, "its", TEXT_ONLY, one ? "its" : "their");
    set_field(f, "it has", TEXT_ONLY, one ? "it has" : "they have");
    describe_time(verdict->waited_ns, text, sizeof text);
    set_field(f, "time", TEXT_ONLY | FLICKERS, text);
    snprintf(text, sizeof text, "%s in no call", one ? "is" : "are");
    if (missed) {
        describe_call(missed, -1, call, sizeof call);
        snprintf(text, sizeof text, "%s not joined %s%s%s", one ? "has" : "have", call,
                 *other_group ? " of group " : "", other_group);
    }
    set_field(f, "missed", TEXT_ONLY, text);
    snprintf(text, sizeof text, "#%llu", (unsigned long long)does->after);
    set_field(f, "last", TEXT_ONLY, text);
    *call = '\0';
    if (does->call && !verdict_is_named(verdict, does->call))
        describe_call(does->call, does->peer, call, sizeof call);
    set_field(f, "new call", TEXT_ONLY, call);
    set_field(f, "other group", TEXT_ONLY, other_group);
}

static void describe_set(struct fields *f, const struct verdict *verdict,
                         const struct rank_set *ranks, const struct job_snapshot *job)
{
    const struct activity *does = &ranks->does;
    static const struct rank_snapshot none; /* used for a rank of another host */
    const struct rank_snapshot *rank =
        ranks->member->at >= 0 ? &job->rank[ranks->member->at] : &none;
    const char *host = does->death ? does->death->host : job->nodes > 1 ? job->host : "";
    char text[240] = "";

    f->count = 0;
    describe_ranks(ranks, text, sizeof text);
    if (does->kind == RANK_IN_CIRCLE && ranks->count == verdict->circled && ranks->count > 1)
        snprintf(text, sizeof text, ranks->count == 2 ? "both" : "all");
    set_field(f, "ranks", TEXT_ONLY, text);
    describe_processes(ranks, job, host, text, sizeof text);
    set_field(f, "process", TEXT_ONLY | FLICKERS, text);
    set_field(f, "host", 0, host);
    set_field(f, "place", FLICKERS, common_place(ranks, job));
    set_field(f, "init", TEXT_ONLY,
              rank->observer != OBSERVER_NONE ? "init_process_group()" : "ct_init_process_group()");
    if (does->call)
        describe_call(does->call, does->peer, text, sizeof text);
    set_field(f, "call", 0, does->call ? text : "");
    set_field(f, "group", 0, does->line ? does->line->name : "");
    set_field(f, "own_group", TEXT_ONLY,
              does->line && does->call->seq > 0 && !*verdict->group ? does->line->name : "");
    set_field(f, "where", 0, activity_where(does));
    set_field(f, "waits_for", 0, does->waits_for);
    snprintf(text, sizeof text, "after #%llu", (unsigned long long)does->after);
    set_field(f, "since", TEXT_ONLY,
              does->in_call     ? "in the same call"
              : does->after > 0 ? text
              : rank == &none || rank->observer == OBSERVER_SILENT
                  ? "" /* the calls of that rank are not known */
                  : "before any call");
    if (does->death)
        describe_death(does->death, text, sizeof text);
    set_field(f, "end", 0, does->death ? text : "");
    snprintf(text, sizeof text, "%s (pid %d)", rank->wrapper.name, (int)rank->wrapper.pid);
    set_field(f, "wrapper", 0,
              rank->wrapper.state && !strchr("ZXx", rank->wrapper.state) ? text : "");
    snprintf(text, sizeof text, "%d", (int)rank->process.tracer);
    set_field(f, "tracer", 0, does->kind == RANK_TRACED ? text : "");
    set_field(f, "perhaps", TEXT_ONLY, perhaps(ranks, job));
    describe_grammar(f, verdict, ranks);
}

/* Finds the field with the name from `name` up to the next '}'.  A format contains only names of
 * fields that exist. */
static const struct field *find_field(const struct fields *f, const char *name)
{
    const size_t length = strcspn(name, "}");
    int i = 0;

    while (i < f->count - 1
           && (strlen(f->field[i].name) != length || memcmp(f->field[i].name, name, length) != 0))
        i++;
    return &f->field[i];
}

/* ---- A sentence ----------------------------------------------------------------------- */

struct sentence {
    char *text;
    size_t size, used;
    int is_cut;
    uint64_t key;
};

static void verdict_put(struct sentence *s, const char *text, size_t length, int is_in_key)
{
    const size_t room = s->size - 1 - s->used, fits = length < room ? length : room;

    memcpy(s->text + s->used, text, fits);
    s->used += fits;
    s->is_cut |= fits < length;
    for (size_t i = 0; i < length && is_in_key; i++) {
        s->key = (s->key ^ (unsigned char)text[i]) * 1099511628211u;
        if (text[i] == '#') /* so that the key is the same for the next call of a loop */
            i += strspn(text + i + 1, "0123456789");
    }
}

static void verdict_expand(struct sentence *s, const char *format, const struct fields *f)
{
    while (*format) {
        const size_t plain = strcspn(format, "{[]");

        verdict_put(s, format, plain, 1);
        format += plain;
        if (*format == '[' && !*find_field(f, strchr(format, '{') + 1)->text) {
            format = strchr(format, ']');
        } else if (*format == '{') {
            const struct field *field = find_field(f, format + 1);

            verdict_put(s, field->text, strlen(field->text), !(field->flags & FLICKERS));
            format = strchr(format, '}');
        }
        format += *format != '\0';
    }
}

/* Writes the clauses of the sets, from number `first` on.  The sets of waiting ranks come first in
 * a verdict. */
static void put_sets(struct sentence *s, const struct verdict *verdict,
                     const struct job_snapshot *job, int first)
{
    struct fields fields;

    for (int i = first; i < verdict->sets; i++) {
        const enum activity_kind kind = verdict->set[i].does.kind;

        describe_set(&fields, verdict, &verdict->set[i], job);
        if (i > first && kind == RANK_BLOCKED && verdict->set[i - 1].does.kind == kind) {
            verdict_expand(s, " and " RANKS_IN_CALL, &fields);
            continue;
        }
        verdict_put(s, "; ", i > first ? 2 : 0, 1);
        verdict_expand(s, activities[kind].text, &fields);
    }
}

/* Writes the awaited ranks, then the waiting ranks: "rank 3 has not joined all_reduce #5; its last
 * call was #4.  Ranks 0-2 have waited 2.0 s". */
static void put_culprits_first(struct sentence *s, const struct verdict *verdict,
                               const struct job_snapshot *job)
{
    struct fields fields;
    int waiting = 0;

    while (waiting < verdict->sets && verdict->set[waiting].does.waits)
        waiting++;
    put_sets(s, verdict, job, waiting);
    for (int i = 0; i < waiting; i++) {
        const enum activity_kind kind = verdict->set[i].does.kind;
        const int begins = i == 0 && waiting < verdict->sets;
        size_t start;

        describe_set(&fields, verdict, &verdict->set[i], job);
        verdict_put(s, begins ? ". " : "; ", begins || i > 0 ? 2 : 0, 1);
        start = s->used;
        verdict_expand(s,
                       kind == RANK_IN_CALL   ? waits_in_call
                       : kind == RANK_IN_INIT ? waits_in_init
                                              : activities[kind].text,
                       &fields);
        if (begins && s->used > start)
            s->text[start] = (char)toupper((unsigned char)s->text[start]);
    }
}

uint64_t verdict_text(const struct verdict *verdict, const struct job_snapshot *job, char *text,
                      size_t size)
{
    struct sentence s = { .text = text, .size = size, .key = 1469598103934665603u };
    struct fields fields = { .count = 0 };
    char time[32], circle[160];

    describe_time(verdict->waited_ns, time, sizeof time);
    set_field(&fields, "time", FLICKERS, time);
    set_field(&fields, "group", 0, verdict->group);
    set_field(&fields, "differ", 0, verdict->differ ? verdict->differ : "");
    describe_circle(verdict, circle, sizeof circle);
    set_field(&fields, "circle", 0, circle);
    verdict_expand(&s, kinds[verdict->kind].text, &fields);
    if (*kinds[verdict->kind].text)
        put_sets(&s, verdict, job, 0);
    else
        put_culprits_first(&s, verdict, job);
    if (s.is_cut) {
        s.used = size - 4;
        while ((text[s.used] & 0xc0) == 0x80) /* avoids cutting a UTF-8 character in half */
            s.used--;
        s.used += (size_t)snprintf(text + s.used, 4, "...");
    }
    text[s.used] = '\0';
    return s.key;
}

/* ---- Parts ------------------------------------------------------------------------------ */

/* Adds the ranks of a set to a list such as "0-2,5". */
static void list_add(struct text *list, const struct rank_set *set)
{
    for (int i = 0, last; i < set->count && set->member->rank >= 0; i = last + 1) {
        last = last_in_row(set, i);
        text_print(list, last > i ? "%s%d-%d" : "%s%d", list->used ? "," : "", set->member[i].rank,
                   set->member[last].rank);
    }
}

/* Takes the call, its place and its key from a set of waiting ranks. */
static void take_call(const struct verdict *verdict, const struct rank_set *set,
                      const struct job_snapshot *job, struct verdict_parts *parts)
{
    const struct call_snapshot *call = set->does.call;
    const char *of_group = strcmp(verdict->group, "world") != 0 ? verdict->group : "";
    char words[160];

    if (set->does.kind == RANK_IN_INIT) {
        snprintf(parts->key, sizeof parts->key, "init");
        snprintf(parts->call, sizeof parts->call, "%sinit_process_group()",
                 set->member->at >= 0 && job->rank[set->member->at].observer ? "" : "ct_");
    }
    if (!call)
        return;
    describe_call(call, set->does.peer, words, sizeof words);
    snprintf(parts->call, sizeof parts->call, "%s%s%s", words, *of_group ? " of group " : "",
             of_group);
    snprintf(parts->where, sizeof parts->where, "%s", activity_where(&set->does));
    if (call->seq > 0)
        snprintf(parts->key, sizeof parts->key, "%llx#%llu", (unsigned long long)set->does.line->id,
                 (unsigned long long)call->seq);
}

void verdict_parts(const struct verdict *verdict, const struct job_snapshot *job,
                   struct verdict_parts *parts)
{
    struct sentence s = { .text = parts->culprits, .size = sizeof parts->culprits };
    struct fields fields;

    memset(parts, 0, sizeof *parts);
    if (*kinds[verdict->kind].text && verdict->kind != VERDICT_TOGETHER)
        return; /* its sentence can't be taken apart */
    for (int i = 0; i < verdict->sets; i++) {
        const struct rank_set *set = &verdict->set[i];

        if (set->does.waits) {
            list_add(&parts->waiting, set);
            if (!*parts->call)
                take_call(verdict, set, job, parts);
        } else if (set->does.kind != RANK_NOT_HERE) {
            describe_set(&fields, verdict, set, job);
            verdict_put(&s, "; ", s.used ? 2 : 0, 0);
            verdict_expand(&s, activities[set->does.kind].text, &fields);
        } else if (set->member->rank >= 0) {
            list_add(&parts->awaited, set);
        } else {
            parts->unnamed += set->count;
        }
    }
    text_add(&parts->waiting, "", 1);
    text_add(&parts->awaited, "", 1);
}

void verdict_parts_free(struct verdict_parts *parts)
{
    free(parts->waiting.data);
    free(parts->awaited.data);
}

/* ---- JSON ------------------------------------------------------------------------------- */

static void json_set(struct json_text *json, const struct verdict *verdict,
                     const struct rank_set *set, const struct job_snapshot *job)
{
    const struct process_snapshot *common = common_process(set, job);
    struct fields fields;

    describe_set(&fields, verdict, set, job);
    json_open(json, NULL, '{');
    json_string(json, "reason", activities[set->does.kind].name);
    json_open(json, "ranks", '[');
    for (int i = 0; i < set->count && set->member[i].rank >= 0; i++)
        json_number(json, NULL, set->member[i].rank);
    json_close(json, ']');
    json_open(json, "pids", '[');
    for (int i = 0; i < set->count && pid_of(set, i, job) > 0; i++)
        json_number(json, NULL, pid_of(set, i, job));
    json_close(json, ']');
    json_number(json, "count", set->count);
    json_string(json, "state", common && *describe_state(common) ? describe_state(common) : NULL);
    json_number(json, "after", (long)set->does.after);
    json_bool(json, "in_call", set->does.waits || set->does.in_call);
    for (int i = 0; i < fields.count; i++)
        if (!(fields.field[i].flags & TEXT_ONLY))
            json_string(json, fields.field[i].name,
                        *fields.field[i].text ? fields.field[i].text : NULL);
    json_close(json, '}');
}

void verdict_json(struct json_text *json, const struct verdict *verdict,
                  const struct job_snapshot *job, const char *seconds)
{
    const struct call_snapshot *call = verdict->sets > 0 ? verdict->set->does.call : NULL;
    char text[VERDICT_TEXT];

    verdict_text(verdict, job, text, sizeof text);
    json_open(json, NULL, '{');
    json_string(json, "kind", kinds[verdict->kind].name);
    json_string(json, "group", *verdict->group ? verdict->group : NULL);
    json_real(json, seconds, (double)verdict->waited_ns / 1e9);
    json_string(json, "text", text);
    json_string(json, "operation", call ? operation_name(call->operation) : NULL);
    json_number(json, "sequence", call ? (long)call->seq : 0);
    json_string(json, "differ", verdict->differ);
    if (verdict->kind == VERDICT_DEADLOCK) {
        json_open(json, "circle", '[');
        for (int i = 0; i < verdict->circled; i++)
            json_number(json, NULL, verdict->circle[i]);
        json_close(json, ']');
    }
    for (int waits = 1; waits >= 0; waits--) {
        json_open(json, waits ? "waiting" : "missing", '[');
        for (int i = 0; i < verdict->sets; i++)
            if (verdict->set[i].does.waits == waits)
                json_set(json, verdict, &verdict->set[i], job);
        json_close(json, ']');
    }
    json_close(json, '}');
}

/* ---- What a rank does --------------------------------------------------------- */

/* Finds the first group in which the rank is in a call; NULL if the rank is in no call. */
static const struct group_snapshot *group_of_call(const struct rank_snapshot *rank)
{
    for (int i = 0; i < CONTROL_GROUPS; i++)
        if (rank->group[i].id && rank->group[i].now.phase == CONTROL_IN)
            return &rank->group[i];
    return NULL;
}

int rank_is_in_call(const struct rank_snapshot *rank)
{
    return group_of_call(rank) || *rank->waiting_for;
}

void describe_rank(const struct job_snapshot *job, const struct rank_snapshot *rank, char *text,
                   size_t size)
{
    const struct death_snapshot *death = snapshot_death_of(job, rank->rank);
    const struct group_snapshot *group = group_of_call(rank);
    char call[160];

    if (death) {
        describe_death(death, text, size);
    } else if (rank->process.pid == 0 || !rank->process.state) {
        snprintf(text, size, rank->process.pid ? "gone" : "not started yet");
    } else if (group) {
        describe_call(&group->now, group->now.root, call, sizeof call);
        snprintf(text, size, "%s on group %s%s%s", call, group->name, *group->where ? " at " : "",
                 group->where);
    } else if (*rank->waiting_for) {
        snprintf(text, size, "waits for %s", rank->waiting_for);
    } else if (rank->state == CONTROL_INIT) {
        snprintf(text, size, "%sinit_process_group()", rank->observer ? "" : "ct_");
    } else if (rank->process.state == 'T') {
        snprintf(text, size, "stopped by a signal");
    } else if (*rank->main_place) {
        snprintf(text, size, "at %s", rank->main_place);
    } else if (*rank->process.waits_in) {
        snprintf(text, size, "(%s)", rank->process.waits_in);
    } else {
        snprintf(text, size, "computing");
    }
}
