/* SPDX-License-Identifier: Apache-2.0 */
/* pickle_read.c - a pickle is a program for a machine with a stack and a memo.
 *
 * operations[] is all that this machine can do; it only builds values.  None of
 * its operations loops longer than what it takes off the stack, so the time is that of
 * the bytes. */
#include "launcher/nodes/c10d/pickle_machine.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ON_STACK = 1 << 22 };

/* ---- The machine -------------------------------------------------------------- */

int machine_refuse(struct machine *m, const char *what)
{
    return pickle_wrong(m->why, "the rendezvous state is no pickle of one: %s before byte %zu",
                        what, (size_t)(m->at - m->begin));
}

int machine_append(struct machine *m, struct pickle_row *row, struct pickle_value *value)
{
    if (row->count == MOST_ON_STACK)
        return machine_refuse(m, "too many values");
    if (row->count == row->room) {
        const size_t room = row->room ? 2 * row->room : 64;
        struct pickle_value **list = realloc(row->list, room * sizeof *list);

        if (!list)
            return pickle_wrong(m->why, "no memory for the rendezvous state");
        row->list = list;
        row->room = room;
    }
    row->list[row->count++] = value;
    return 0;
}

struct pickle_value *machine_push(struct machine *m, enum pickle_kind kind)
{
    struct pickle_value *value = pickle_allocate(m->pickle, sizeof *value, m->why);

    if (!value || machine_append(m, &m->stack, value) < 0)
        return NULL;
    memset(value, 0, sizeof *value);
    value->kind = kind;
    return value;
}

/* A mark is no value. */
struct pickle_value *machine_top(struct machine *m)
{
    return m->stack.count > 0 ? m->stack.list[m->stack.count - 1] : NULL;
}

struct pickle_value *machine_pop(struct machine *m, enum pickle_kind kind)
{
    struct pickle_value *value = machine_top(m);

    if (!value || value->kind != kind)
        return NULL;
    m->stack.count--;
    return value;
}

const unsigned char *machine_take(struct machine *m, size_t size)
{
    if ((size_t)(m->end - m->at) < size) {
        machine_refuse(m, "it is cut");
        return NULL;
    }
    m->at += size;
    return m->at - size;
}

int machine_number(struct machine *m, int size, uint64_t *number)
{
    const unsigned char *bytes = machine_take(m, (size_t)size);

    *number = 0;
    for (int i = 0; bytes && i < size; i++)
        *number |= (uint64_t)bytes[i] << (8 * i);
    return bytes ? 0 : -1;
}

/* ---- What Python would make --------------------------------------------------- */

static int is_text(const struct pickle_value *value, const char *text)
{
    return value->as.text.size == strlen(text)
           && !memcmp(value->as.text.data, text, value->as.text.size);
}

static int op_global(struct machine *m, unsigned char code)
{
    const struct pickle_value *name = machine_pop(m, PICKLE_STRING);
    const struct pickle_value *module = name ? machine_pop(m, PICKLE_STRING) : NULL;

    (void)code;
    if (!module)
        return machine_refuse(m, "a global without a name");
    for (int i = 0; i < PICKLE_GLOBALS; i++)
        if (is_text(module, pickle_names[i].module) && is_text(name, pickle_names[i].name)) {
            struct pickle_value *value = machine_push(m, PICKLE_GLOBAL);

            if (value)
                value->as.made.of = (enum pickle_global)i;
            return value ? 0 : -1;
        }
    return pickle_wrong(m->why,
                        "the rendezvous state names %.*s.%.*s, which is no part of one; it would "
                        "have run in PyTorch's agents",
                        (int)(module->as.text.size < 60 ? module->as.text.size : 60),
                        (const char *)module->as.text.data,
                        (int)(name->as.text.size < 60 ? name->as.text.size : 60),
                        (const char *)name->as.text.data);
}

/* class, empty tuple -> object */
static int op_object(struct machine *m, unsigned char code)
{
    const struct pickle_value *none = machine_pop(m, PICKLE_TUPLE);
    const struct pickle_value *of = none ? machine_pop(m, PICKLE_GLOBAL) : NULL;
    struct pickle_value *value;

    (void)code;
    if (!of || none->as.items.count > 0 || of->as.made.of > NODE_CLASS)
        return machine_refuse(m, "an object of no class");
    if (!(value = machine_push(m, PICKLE_OBJECT)))
        return -1;
    value->as.made.of = of->as.made.of;
    return 0;
}

/* object, dict -> object */
static int op_build(struct machine *m, unsigned char code)
{
    struct pickle_value *with = machine_pop(m, PICKLE_DICT);
    struct pickle_value *object = with ? machine_top(m) : NULL;

    (void)code;
    if (!object || object->kind != PICKLE_OBJECT || object->as.made.with)
        return machine_refuse(m, "attributes of nothing");
    object->as.made.with = with;
    return 0;
}

/* callable, arguments -> what it would return */
static int op_call(struct machine *m, unsigned char code)
{
    struct pickle_value *with = machine_pop(m, PICKLE_TUPLE);
    const struct pickle_value *of = with ? machine_pop(m, PICKLE_GLOBAL) : NULL;
    struct pickle_value *value;

    (void)code;
    if (!of || of->as.made.of < DATETIME)
        return machine_refuse(m, "a call of what is no time");
    if (!(value = machine_push(m, PICKLE_CALL)))
        return -1;
    value->as.made.of = of->as.made.of;
    value->as.made.with = with;
    return 0;
}

/* ---- The memo, frames --------------------------------------------------------- */

static int op_memoize(struct machine *m, unsigned char code)
{
    struct pickle_value *value = machine_top(m);

    (void)code;
    return value ? machine_append(m, &m->memo, value) : machine_refuse(m, "nothing to remember");
}

static int op_again(struct machine *m, unsigned char code)
{
    uint64_t memo;

    if (machine_number(m, code == 'h' ? 1 : 4, &memo) < 0)
        return -1;
    if (memo >= m->memo.count)
        return machine_refuse(m, "a value that was not remembered");
    return machine_append(m, &m->stack, m->memo.list[memo]);
}

/* Where the writer flushed: says nothing about values. */
static int op_frame(struct machine *m, unsigned char code)
{
    (void)code;
    return machine_take(m, 8) ? 0 : -1;
}

/* Of those, ] a e G B t 91 and 8B occur in no state of today's: plain
 * data that an attribute of tomorrow's may have. */
static operation *const operations[256] = {
    ['N'] = op_constant, [')'] = op_constant, [0x88] = op_constant, [0x89] = op_constant,
    ['K'] = op_int,      ['M'] = op_int,      ['J'] = op_int,       [0x8a] = op_long,
    [0x8b] = op_long,    [0x8c] = op_text,    ['X'] = op_text,      ['C'] = op_text,
    ['B'] = op_text,     ['G'] = op_text,     ['}'] = op_empty,     [']'] = op_empty,
    [0x8f] = op_empty,   ['('] = op_mark,     ['u'] = op_add_all,   ['e'] = op_add_all,
    [0x90] = op_add_all, ['s'] = op_add_one,  ['a'] = op_add_one,   [0x85] = op_tuple,
    [0x86] = op_tuple,   [0x87] = op_tuple,   ['t'] = op_marked,    [0x91] = op_marked,
    [0x93] = op_global,  [0x81] = op_object,  ['b'] = op_build,     ['R'] = op_call,
    [0x94] = op_memoize, ['h'] = op_again,    ['j'] = op_again,     [0x95] = op_frame,
};

static int execute(struct machine *m)
{
    while (m->at < m->end) {
        const unsigned char code = *m->at++;

        if (code == '.') {
            if (m->at < m->end || m->stack.count != 1 || !machine_top(m))
                return machine_refuse(m, "it ends too early");
            m->pickle->root = machine_top(m);
            return 0;
        }
        if (!operations[code])
            return pickle_wrong(m->why,
                                "the rendezvous state has the opcode 0x%02x at byte %zu, "
                                "which occurs in none",
                                code, (size_t)(m->at - 1 - m->begin));
        if (operations[code](m, code) < 0)
            return -1;
    }
    return machine_refuse(m, "it is cut");
}

int pickle_read(struct pickle *pickle, const unsigned char *data, size_t size, struct why *why)
{
    struct machine m = {
        .begin = data, .at = data, .end = data + size, .pickle = pickle, .why = why
    };
    int status;

    *pickle = (struct pickle){ 0 };
    if (size < 2 || data[0] != 0x80)
        return machine_refuse(&m, "it has no protocol");
    if (data[1] != 4 && data[1] != 5)
        return pickle_wrong(why, "the rendezvous state is a pickle of protocol %d, not of 4 or 5",
                            data[1]);
    m.at += 2;
    status = execute(&m);
    free(m.stack.list);
    free(m.memo.list);
    if (status < 0)
        pickle_free(pickle);
    return status;
}
