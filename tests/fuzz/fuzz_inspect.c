/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_inspect.c - a control page that another process has overwritten, as ctctl and --stall read
 * it, and the verdicts that are made from it.
 *
 * The page is that of three ranks in one group of four, one of which ended; all are in its
 * seventh call.  The first byte cuts it, the second says what the processes do; then come
 * changes: a byte for what (the head, a rank, a group's line, a call of the ring, a death), one for
 * which, one for where in it, one for how many bytes, then those. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/inspect/page_reader.h"
#include "launcher/inspect/rank_stage.h"
#include "launcher/inspect/verdict_text.h"
#include "runtime/types/call_signature.h"
#include "tests/fuzz/input.h"

enum { LOCAL = 3, WORLD = 4 };
#define SECOND UINT64_C(1000000000)

/* ---- The page ------------------------------------------------------------------- */

static void write_rank(struct control_rank *rank, int number)
{
    struct control_call call = { .seq = 7,
                                 .count = 4,
                                 .begun_ns = 100 * SECOND,
                                 .operation = OPERATION_ALL_REDUCE,
                                 .phase = CONTROL_IN,
                                 .root = -1 };

    rank->rank = rank->local_rank = number;
    rank->worker = rank->pid = 1000 + number;
    rank->state = CONTROL_READY;
    rank->calls = 7;
    rank->groups[0].id = 77;
    rank->groups[0].rank = number;
    rank->groups[0].size = WORLD;
    rank->groups[0].begun = 7;
    rank->groups[0].done = 6;
    rank->groups[0].now = call;
    strcpy(rank->groups[0].name, "world");
    for (int i = 0; i < 7; i++) {
        call.seq = (uint64_t)i + 1;
        control_note_call(rank, (uint64_t)i, &call);
    }
}

static size_t write_page(void *memory)
{
    struct control_head *head = memory;

    memset(memory, 0, control_bytes(LOCAL, WORLD));
    *head = (struct control_head){ .magic = CONTROL_MAGIC,
                                   .version = CONTROL_VERSION,
                                   .nodes = 2,
                                   .local = LOCAL,
                                   .world = WORLD,
                                   .launcher = 999,
                                   .run_id = "job7",
                                   .host = "node-a",
                                   .program = "train" };
    for (int i = 0; i < LOCAL; i++)
        write_rank(control_rank_at(head, i), i);
    head->deaths = 1;
    *control_death_at(head, 0) = (struct control_death){
        .rank = 3, .how = CONTROL_HOST_LOST, .tombs = 1, .tomb = { { 77, 7, 6, 1 } }
    };
    return control_bytes(LOCAL, WORLD);
}

/* One change; its place lies within what it says. */
static void change(struct control_head *head, struct fuzz_input *in)
{
    const unsigned what = take(in) % 5, which = take(in);
    const size_t where = take(in);
    struct control_rank *rank = control_rank_at(head, (int)which % LOCAL);
    size_t bytes = take(in), size = sizeof *head;
    unsigned char *at = (unsigned char *)head;

    if (what == 1) {
        at = (unsigned char *)rank;
        size = offsetof(struct control_rank, groups);
    } else if (what == 2) {
        at = (unsigned char *)&rank->groups[which / LOCAL % CONTROL_GROUPS];
        size = sizeof rank->groups[0];
    } else if (what == 3) {
        at = (unsigned char *)&rank->ring[which / LOCAL % CONTROL_CALLS];
        size = sizeof rank->ring[0];
    } else if (what == 4) {
        at = (unsigned char *)head + control_bytes(LOCAL, (int)which % WORLD);
        size = sizeof(struct control_death);
    }
    at += where % size;
    size -= where % size;
    bytes = bytes < in->left ? bytes : in->left;
    bytes = bytes < size ? bytes : size;
    memcpy(at, in->data, bytes);
    in->data += bytes;
    in->left -= bytes;
}

/* ---- What must hold ---------------------------------------------------------------- */

/* It ends, and has no control characters. */
static void is_text(const char *text, size_t size)
{
    const size_t length = strnlen(text, size);

    holds(length < size);
    for (size_t i = 0; i < length; i++)
        holds((unsigned char)text[i] >= ' ' && text[i] != 127);
}

static void check(const struct job_snapshot *job)
{
    is_text(job->run_id, sizeof job->run_id);
    is_text(job->host, sizeof job->host);
    is_text(job->program, sizeof job->program);
    holds(job->ranks <= SNAPSHOT_LOCAL && job->world >= 0 && job->world <= SNAPSHOT_RANKS);
    for (int i = 0; i < job->ranks; i++) {
        const struct rank_snapshot *rank = &job->rank[i];

        holds(rank->rank >= 0 && rank->rank < SNAPSHOT_RANKS && rank->state <= CONTROL_OUTSIDE);
        holds(rank->ring_used >= 0 && rank->ring_used <= CONTROL_CALLS);
        is_text(rank->waiting_for, sizeof rank->waiting_for);
        for (int g = 0; g < CONTROL_GROUPS; g++)
            is_text(rank->group[g].name, sizeof rank->group[g].name);
    }
    for (int i = 0; i < job->deaths; i++)
        is_text(job->death[i].host, sizeof job->death[i].host);
}

static void judge(const struct job_snapshot *job, uint64_t least_ns)
{
    struct verdict_list list;
    struct verdict_parts parts;
    enum rank_stage *stage;
    struct text out = { 0 };
    struct json_text json = { .to = &out, .gap = "" };
    char text[VERDICT_TEXT];

    holds(verdict_list_make(&list, job, least_ns) == 0);
    holds(list.stuck >= 0 && list.stuck <= list.count && *list.state);
    for (int i = 0; i < list.count; i++) {
        verdict_text(&list.verdict[i], job, text, sizeof text);
        holds(*text && list.verdict[i].sets > 0);
        is_text(text, sizeof text);
        verdict_parts(&list.verdict[i], job, &parts);
        is_text(parts.waiting.data ? parts.waiting.data : "", parts.waiting.used + 1);
        is_text(parts.awaited.data ? parts.awaited.data : "", parts.awaited.used + 1);
        is_text(parts.call, sizeof parts.call);
        is_text(parts.culprits, sizeof parts.culprits);
        verdict_parts_free(&parts);
        is_text(list.verdict[i].group, sizeof list.verdict[i].group);
        verdict_json(&json, &list.verdict[i], job, "seconds");
    }
    holds((stage = calloc((size_t)job->ranks + 1, sizeof *stage)) != NULL);
    rank_stages(job, &list, stage);
    for (int i = 0; i < job->ranks; i++)
        holds(*rank_stage_name(stage[i]) && rank_stage_order(stage[i]) < STAGES);
    free(stage);
    free(out.data);
    verdict_list_free(&list);
}

/* ---- One input ------------------------------------------------------------------------ */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char states[] = { 'S', 'R', 'T', 0 };
    static _Alignas(4096) unsigned char page[65536];
    static int file = -1;
    struct fuzz_input in = { data, size };
    const size_t cut = take(&in);
    const unsigned doing = take(&in);
    size_t bytes = write_page(page);
    struct job_snapshot job;

    if (file < 0)
        holds((file = memfd_create("page", MFD_CLOEXEC)) >= 0);
    while (in.left > 0)
        change((struct control_head *)(void *)page, &in);
    bytes -= bytes * cut / 256;
    holds(ftruncate(file, 0) == 0 && pwrite(file, page, bytes, 0) == (ssize_t)bytes);
    if (page_read(file, &job) < 0)
        return 0;
    check(&job);
    job.now_ns = 160 * SECOND;
    for (int i = 0; i < job.ranks; i++) {
        job.rank[i].process.pid = job.rank[i].pid;
        job.rank[i].process.state = states[doing >> 2 * (i % LOCAL) & 3];
    }
    judge(&job, 0);
    judge(&job, 10 * SECOND);
    snapshot_free(&job);
    return 0;
}
