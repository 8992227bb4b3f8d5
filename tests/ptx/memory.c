/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - loads and stores: of the parameter, and of what the launch may reach.
 *
 * There are rows for none of them: a name says of how many bytes and from where it is
 * (ld.global.cs.v4.u32), and how it goes through caches, which does not matter here. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/parts.h"

/* ---- What a launch may reach -------------------------------------------------------- */

static int by_begin(const void *left, const void *right)
{
    const struct ptx_range *const a = left, *const b = right;

    return (a->begin > b->begin) - (a->begin < b->begin);
}

void ptx_sort(struct ptx_ranges *ranges)
{
    struct ptx_range *const range = ranges->range;
    size_t kept = 0;

    if (ranges->count == 0)
        return;
    qsort(range, ranges->count, sizeof *range, by_begin);
    for (size_t k = 1; k < ranges->count; k++)
        if (range[k].begin >= range[kept].end)
            range[++kept] = range[k];
        else if (range[k].end > range[kept].end)
            range[kept].end = range[k].end;
    ranges->count = kept + 1;
}

static int has(const struct ptx_ranges *ranges, uint64_t address, uint64_t bytes)
{
    size_t own = 0, behind = ranges->count;

    while (behind - own > 1) {
        const size_t middle = own + (behind - own) / 2;

        if (ranges->range[middle].begin <= address)
            own = middle;
        else
            behind = middle;
    }
    return ranges->count > 0 && address >= ranges->range[own].begin
           && address <= ranges->range[own].end && ranges->range[own].end - address >= bytes;
}

/* NULL: a fault. */
static void *reach(struct thread *thread, const struct instruction *i, int is_store)
{
    const struct ptx_launch *const launch = thread->launch;
    const struct kernel *const kernel = thread->kernel;
    const uint64_t address = IN(i->parts) + i->more, bytes = (uint64_t)i->bytes * i->parts;

    if (address % bytes != 0) {
        thread_fault(thread, i, "0x%" PRIx64 " is no multiple of %" PRIu64, address, bytes);
        return NULL;
    }
    if (i->is_parameter && address >= kernel->parameter_at
        && address - kernel->parameter_at + bytes <= kernel->parameter_bytes)
        return (char *)(uintptr_t)launch->parameter + (address - kernel->parameter_at);
    if (!i->is_parameter && has(is_store ? &launch->written : &launch->read, address, bytes))
        return (void *)(uintptr_t)address;
    thread_fault(thread, i, "%" PRIu64 " bytes at 0x%" PRIx64 " are none that it may %s", bytes,
                 address, is_store ? "write" : "read");
    return NULL;
}

/* ---- Loads and stores --------------------------------------------------------------- */

/* A register that is wider than what is loaded is filled with its sign, or zeros. */
static uint64_t extended(uint64_t value, const struct instruction *i)
{
    const unsigned rest = 64 - 8u * i->bytes;

    return i->is_signed ? (uint64_t)((int64_t)(value << rest) >> rest) : value;
}

static void load(struct thread *thread, const struct instruction *i)
{
    const char *const from = reach(thread, i, 0);

    for (unsigned part = 0; from && part < i->parts; part++) {
        uint64_t value = 0;

        memcpy(&value, from + part * i->bytes, i->bytes);
        thread->slot[i->at[part]] = extended(value, i);
    }
}

static void store(struct thread *thread, const struct instruction *i)
{
    char *const to = reach(thread, i, 1);

    for (unsigned part = 0; to && part < i->parts; part++)
        memcpy(to + part * i->bytes, &thread->slot[i->at[part]], i->bytes);
}

/* ---- Their names -------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint8_t bytes, parts, is_signed, is_parameter, is_ignored;
} words[] = {
    { ".global", .is_ignored = 1 },
    { ".cs", .is_ignored = 1 },
    { ".L1::no_allocate", .is_ignored = 1 },
    { ".param", .is_parameter = 1 },
    { ".v2", .parts = 2 },
    { ".v4", .parts = 4 },
    { ".u8", .bytes = 1 },
    { ".b8", .bytes = 1 },
    { ".s8", .bytes = 1, .is_signed = 1 },
    { ".u16", .bytes = 2 },
    { ".b16", .bytes = 2 },
    { ".s16", .bytes = 2, .is_signed = 1 },
    { ".u32", .bytes = 4 },
    { ".b32", .bytes = 4 },
    { ".f32", .bytes = 4 },
    { ".s32", .bytes = 4, .is_signed = 1 },
    { ".u64", .bytes = 8 },
    { ".b64", .bytes = 8 },
    { ".f64", .bytes = 8 },
    { ".s64", .bytes = 8, .is_signed = 1 },
};

/* So many registers that each has room, then the address: "{wwww}m". */
static int fits(const struct instruction *i, const char *shape)
{
    static const char of_bytes[][4] = { "", "hwd", "hwd", "", "wd", "", "", "", "d" };
    unsigned registers = 0;

    if ((*shape == '{') != (i->parts > 1))
        return 0;
    for (; *shape != 'm' && *shape; shape++)
        if (*shape != '{' && *shape != '}') {
            if (!strchr(of_bytes[i->bytes], *shape))
                return 0;
            registers++;
        }
    return registers == i->parts && !strcmp(shape, "m");
}

int decode_access(struct instruction *i, const char *name, const char *shape)
{
    const int is_store = name[0] == 's';

    if (strncmp(name, "ld.", 3) != 0 && strncmp(name, "st.", 3) != 0)
        return 0;
    i->act = is_store ? store : load;
    i->parts = 1;
    for (name += 2; *name; name += 1 + strcspn(name + 1, ".")) {
        const size_t length = 1 + strcspn(name + 1, ".");
        size_t k = 0;

        while (k < sizeof words / sizeof *words
               && (strlen(words[k].name) != length || memcmp(words[k].name, name, length) != 0))
            k++;
        if (k == sizeof words / sizeof *words || i->bytes > 0) /* a type is the last word */
            return 0;
        i->bytes = words[k].bytes;
        i->parts = words[k].parts ? words[k].parts : i->parts;
        i->is_signed = words[k].is_signed;
        i->is_parameter |= words[k].is_parameter;
    }
    return i->bytes > 0 && !(is_store && i->is_parameter) && fits(i, shape);
}
