/* SPDX-License-Identifier: Apache-2.0 */
/* pickle_read.c - a pickle is a program for a machine with a stack and a memo.
 *
 * operations[] is all that this machine can do; it only builds values.  None of
 * its operations loops longer than what it takes off the stack, so the time is that of
 * the bytes.  Values and their items lie in blocks, at most MOST_BYTES of them, and all
 * go with pickle_free(). */
#include "launcher/c10d/pickle.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 16, MOST_BYTES = 128 << 20, MOST_ON_STACK = 1 << 22 };

#define RENDEZVOUS "torch.distributed.elastic.rendezvous.dynamic_rendezvous"

const struct pickle_name pickle_names[PICKLE_GLOBALS] = {
    [STATE_CLASS] = { RENDEZVOUS, "_RendezvousState" },
    [NODE_CLASS] = { RENDEZVOUS, "_NodeDesc" },
    [DATETIME] = { "datetime", "datetime" },
    [TIMEZONE] = { "datetime", "timezone" },
    [TIMEDELTA] = { "datetime", "timedelta" },
};

int pickle_wrong(struct why *why, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    for (char *c = why->text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    return -1;
}

/* ---- Memory ------------------------------------------------------------------- */

struct pickle_block {
    struct pickle_block *next;
    size_t used;
    _Alignas(max_align_t) unsigned char bytes[BLOCK];
};

static void *allocate(struct pickle *pickle, size_t size, struct why *why)
{
    struct pickle_block *block = pickle->blocks;

    if (!block || block->used + size > BLOCK) {
        if (pickle->bytes + sizeof *block > MOST_BYTES) {
            pickle_wrong(why, "the rendezvous state takes more than %d MiB", MOST_BYTES >> 20);
            return NULL;
        }
        if (!(block = malloc(sizeof *block))) {
            pickle_wrong(why, "no memory for the rendezvous state");
            return NULL;
        }
        block->next = pickle->blocks;
        block->used = 0;
        pickle->blocks = block;
        pickle->bytes += sizeof *block;
    }
    block->used += size;
    return block->bytes + block->used - size;
}

void pickle_free(struct pickle *pickle)
{
    while (pickle->blocks) {
        struct pickle_block *block = pickle->blocks;

        pickle->blocks = block->next;
        free(block);
    }
    *pickle = (struct pickle){ 0 };
}

/* ---- The machine -------------------------------------------------------------- */

struct row {
    struct pickle_value **list;
    size_t count, room;
};

struct machine {
    const unsigned char *begin, *at, *end;
    struct pickle *pickle;
    struct row stack; /* NULL is a mark */
    struct row memo;
    struct why *why;
};

typedef int operation(struct machine *m, unsigned char code);

static int refuse(struct machine *m, const char *what)
{
    return pickle_wrong(m->why, "the rendezvous state is no pickle of one: %s before byte %zu",
                        what, (size_t)(m->at - m->begin));
}

static int append(struct machine *m, struct row *row, struct pickle_value *value)
{
    if (row->count == MOST_ON_STACK)
        return refuse(m, "too many values");
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

/* NULL: the sentence is written. */
static struct pickle_value *push_new(struct machine *m, enum pickle_kind kind)
{
    struct pickle_value *value = allocate(m->pickle, sizeof *value, m->why);

    if (!value || append(m, &m->stack, value) < 0)
        return NULL;
    memset(value, 0, sizeof *value);
    value->kind = kind;
    return value;
}

/* NULL: there is none, or a mark. */
static struct pickle_value *top(struct machine *m)
{
    return m->stack.count > 0 ? m->stack.list[m->stack.count - 1] : NULL;
}

static struct pickle_value *pop(struct machine *m, enum pickle_kind kind)
{
    struct pickle_value *value = top(m);

    if (!value || value->kind != kind)
        return NULL;
    m->stack.count--;
    return value;
}

static const unsigned char *take(struct machine *m, size_t size)
{
    if ((size_t)(m->end - m->at) < size) {
        refuse(m, "it is cut");
        return NULL;
    }
    m->at += size;
    return m->at - size;
}

/* Little-endian; size is at most 8. */
static int take_number(struct machine *m, int size, uint64_t *number)
{
    const unsigned char *bytes = take(m, (size_t)size);

    *number = 0;
    for (int i = 0; bytes && i < size; i++)
        *number |= (uint64_t)bytes[i] << (8 * i);
    return bytes ? 0 : -1;
}

/* ---- What has no parts -------------------------------------------------------- */

static int op_constant(struct machine *m, unsigned char code)
{
    const enum pickle_kind kind = code == 'N'   ? PICKLE_NONE
                                  : code == ')' ? PICKLE_TUPLE
                                                : PICKLE_BOOL;
    struct pickle_value *value = push_new(m, kind);

    if (value && kind == PICKLE_BOOL)
        value->as.number = code == 0x88;
    return value ? 0 : -1;
}

static int op_int(struct machine *m, unsigned char code)
{
    uint64_t number;
    struct pickle_value *value;

    if (take_number(m,
                    code == 'K'   ? 1
                    : code == 'M' ? 2
                                  : 4,
                    &number)
            < 0
        || !(value = push_new(m, PICKLE_INT)))
        return -1;
    value->as.number = code == 'J' ? (int32_t)(uint32_t)number : (int64_t)number;
    return 0;
}

/* Two's complement of any length; what has 8 bytes or less is an int like others. */
static int op_long(struct machine *m, unsigned char code)
{
    uint64_t size, number = 0;
    const unsigned char *bytes;
    struct pickle_value *value;

    if (take_number(m, code == 0x8a ? 1 : 4, &size) < 0 || !(bytes = take(m, size))
        || !(value = push_new(m, size > 8 ? PICKLE_LONG : PICKLE_INT)))
        return -1;
    if (size > 8) {
        value->as.text.data = bytes;
        value->as.text.size = size;
        return 0;
    }
    if (size > 0 && bytes[size - 1] & 0x80)
        number = UINT64_MAX;
    for (size_t i = size; i-- > 0;)
        number = number << 8 | bytes[i];
    value->as.number = (int64_t)number;
    return 0;
}

/* As Python's "surrogatepass": the code points of surrogates may stand alone. */
static int is_utf8(const unsigned char *text, size_t size)
{
    static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };

    for (size_t i = 0; i < size; i++) {
        const unsigned char c = text[i];
        const size_t more = c < 0x80 ? 0 : c < 0xc0 ? 4 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
        uint32_t point = more == 0 ? c : c & (0x3fu >> more);

        if (more == 4 || c > 0xf4 || more > size - 1 - i)
            return 0;
        for (size_t k = 1; k <= more; k++) {
            if ((text[i + k] & 0xc0) != 0x80)
                return 0;
            point = point << 6 | (text[i + k] & 0x3f);
        }
        if (point < least[more] || point > 0x10ffff)
            return 0;
        i += more;
    }
    return 1;
}

static int op_text(struct machine *m, unsigned char code)
{
    const int is_string = code == 0x8c || code == 'X';
    uint64_t size = 8;
    const unsigned char *data;
    struct pickle_value *value;

    if (code != 'G' && take_number(m, code == 0x8c || code == 'C' ? 1 : 4, &size) < 0)
        return -1;
    if (!(data = take(m, size)))
        return -1;
    if (is_string && !is_utf8(data, size))
        return refuse(m, "a string that is not UTF-8");
    value = push_new(m, is_string ? PICKLE_STRING : code == 'G' ? PICKLE_FLOAT : PICKLE_BYTES);
    if (!value)
        return -1;
    value->as.text.data = data;
    value->as.text.size = size;
    return 0;
}

/* ---- What has items ----------------------------------------------------------- */

static int op_empty(struct machine *m, unsigned char code)
{
    return push_new(m, code == '}' ? PICKLE_DICT : code == ']' ? PICKLE_LIST : PICKLE_SET) ? 0 : -1;
}

static int op_mark(struct machine *m, unsigned char code)
{
    (void)code;
    return append(m, &m->stack, NULL);
}

/* Puts the values from `first` on the stack up to its top into `to`. */
static int move_items(struct machine *m, struct pickle_value *to, size_t first)
{
    for (size_t i = first; i < m->stack.count; i++) {
        struct pickle_item *item = allocate(m->pickle, sizeof *item, m->why);

        if (!item)
            return -1;
        *item = (struct pickle_item){ m->stack.list[i], NULL };
        if (to->as.items.last)
            to->as.items.last->next = item;
        else
            to->as.items.first = item;
        to->as.items.last = item;
        to->as.items.count++;
    }
    m->stack.count = first;
    return 0;
}

/* The place behind the last mark; 0: there is none. */
static size_t behind_mark(const struct machine *m)
{
    size_t i = m->stack.count;

    while (i > 0 && m->stack.list[i - 1])
        i--;
    return i;
}

/* mark, items -> the container below the mark has them. */
static int op_add_all(struct machine *m, unsigned char code)
{
    const enum pickle_kind kind = code == 'u'   ? PICKLE_DICT
                                  : code == 'e' ? PICKLE_LIST
                                                : PICKLE_SET;
    const size_t first = behind_mark(m);
    struct pickle_value *to = first > 1 ? m->stack.list[first - 2] : NULL;

    if (!to || to->kind != kind || (kind == PICKLE_DICT && (m->stack.count - first) % 2))
        return refuse(m, "items for nothing");
    if (move_items(m, to, first) < 0)
        return -1;
    m->stack.count--; /* the mark */
    return 0;
}

/* The uppermost `count` values are there, and no mark among them. */
static int has_values(const struct machine *m, size_t count)
{
    if (m->stack.count < count)
        return 0;
    for (size_t i = 1; i <= count; i++)
        if (!m->stack.list[m->stack.count - i])
            return 0;
    return 1;
}

/* container, item (a dict: key, value) -> container */
static int op_add_one(struct machine *m, unsigned char code)
{
    const size_t items = code == 's' ? 2 : 1;
    struct pickle_value *to;

    if (!has_values(m, items + 1))
        return refuse(m, "an item for nothing");
    to = m->stack.list[m->stack.count - items - 1];
    if (to->kind != (code == 's' ? PICKLE_DICT : PICKLE_LIST))
        return refuse(m, "an item for nothing");
    return move_items(m, to, m->stack.count - items);
}

/* The values from `first` on become one. */
static int gather(struct machine *m, enum pickle_kind kind, size_t first)
{
    struct pickle_value *value = allocate(m->pickle, sizeof *value, m->why);

    if (!value)
        return -1;
    *value = (struct pickle_value){ .kind = kind };
    if (move_items(m, value, first) < 0)
        return -1;
    return append(m, &m->stack, value);
}

static int op_tuple(struct machine *m, unsigned char code)
{
    const size_t items = (size_t)(code - 0x84); /* 85 86 87 */

    if (!has_values(m, items))
        return refuse(m, "a tuple of nothing");
    return gather(m, PICKLE_TUPLE, m->stack.count - items);
}

static int op_marked(struct machine *m, unsigned char code)
{
    const size_t first = behind_mark(m);
    struct pickle_value *value;

    if (first == 0)
        return refuse(m, "a tuple without a mark");
    if (gather(m, code == 't' ? PICKLE_TUPLE : PICKLE_FROZENSET, first) < 0)
        return -1;
    value = top(m);
    m->stack.list[--m->stack.count - 1] = value; /* in the mark's place */
    return 0;
}

/* ---- What Python would make --------------------------------------------------- */

static int is_text(const struct pickle_value *value, const char *text)
{
    return value->as.text.size == strlen(text)
           && !memcmp(value->as.text.data, text, value->as.text.size);
}

static int op_global(struct machine *m, unsigned char code)
{
    const struct pickle_value *name = pop(m, PICKLE_STRING);
    const struct pickle_value *module = name ? pop(m, PICKLE_STRING) : NULL;

    (void)code;
    if (!module)
        return refuse(m, "a global without a name");
    for (int i = 0; i < PICKLE_GLOBALS; i++)
        if (is_text(module, pickle_names[i].module) && is_text(name, pickle_names[i].name)) {
            struct pickle_value *value = push_new(m, PICKLE_GLOBAL);

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
    const struct pickle_value *none = pop(m, PICKLE_TUPLE);
    const struct pickle_value *of = none ? pop(m, PICKLE_GLOBAL) : NULL;
    struct pickle_value *value;

    (void)code;
    if (!of || none->as.items.count > 0 || of->as.made.of > NODE_CLASS)
        return refuse(m, "an object of no class");
    if (!(value = push_new(m, PICKLE_OBJECT)))
        return -1;
    value->as.made.of = of->as.made.of;
    return 0;
}

/* object, dict -> object */
static int op_build(struct machine *m, unsigned char code)
{
    struct pickle_value *with = pop(m, PICKLE_DICT);
    struct pickle_value *object = with ? top(m) : NULL;

    (void)code;
    if (!object || object->kind != PICKLE_OBJECT || object->as.made.with)
        return refuse(m, "attributes of nothing");
    object->as.made.with = with;
    return 0;
}

/* callable, arguments -> what it would return */
static int op_call(struct machine *m, unsigned char code)
{
    struct pickle_value *with = pop(m, PICKLE_TUPLE);
    const struct pickle_value *of = with ? pop(m, PICKLE_GLOBAL) : NULL;
    struct pickle_value *value;

    (void)code;
    if (!of || of->as.made.of < DATETIME)
        return refuse(m, "a call of what is no time");
    if (!(value = push_new(m, PICKLE_CALL)))
        return -1;
    value->as.made.of = of->as.made.of;
    value->as.made.with = with;
    return 0;
}

/* ---- The memo, frames --------------------------------------------------------- */

static int op_memoize(struct machine *m, unsigned char code)
{
    struct pickle_value *value = top(m);

    (void)code;
    return value ? append(m, &m->memo, value) : refuse(m, "nothing to remember");
}

static int op_again(struct machine *m, unsigned char code)
{
    uint64_t memo;

    if (take_number(m, code == 'h' ? 1 : 4, &memo) < 0)
        return -1;
    if (memo >= m->memo.count)
        return refuse(m, "a value that was not remembered");
    return append(m, &m->stack, m->memo.list[memo]);
}

/* Where the writer flushed: says nothing about values. */
static int op_frame(struct machine *m, unsigned char code)
{
    (void)code;
    return take(m, 8) ? 0 : -1;
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
            if (m->at < m->end || m->stack.count != 1 || !top(m))
                return refuse(m, "it ends too early");
            m->pickle->root = top(m);
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
    return refuse(m, "it is cut");
}

int pickle_read(struct pickle *pickle, const unsigned char *data, size_t size, struct why *why)
{
    struct machine m = {
        .begin = data, .at = data, .end = data + size, .pickle = pickle, .why = why
    };
    int status;

    *pickle = (struct pickle){ 0 };
    if (size < 2 || data[0] != 0x80)
        return refuse(&m, "it has no protocol");
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
