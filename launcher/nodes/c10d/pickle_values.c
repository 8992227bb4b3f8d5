/* SPDX-License-Identifier: Apache-2.0 */
/* pickle_values.c - the operations that build plain values. */
#include "launcher/nodes/c10d/pickle_machine.h"

#include <string.h>

/* ---- What has no parts -------------------------------------------------------- */

int op_constant(struct machine *m, unsigned char code)
{
    const enum pickle_kind kind = code == 'N'   ? PICKLE_NONE
                                  : code == ')' ? PICKLE_TUPLE
                                                : PICKLE_BOOL;
    struct pickle_value *value = machine_push(m, kind);

    if (value && kind == PICKLE_BOOL)
        value->as.number = code == 0x88;
    return value ? 0 : -1;
}

int op_int(struct machine *m, unsigned char code)
{
    uint64_t number;
    struct pickle_value *value;

    if (machine_number(m,
                       code == 'K'   ? 1
                       : code == 'M' ? 2
                                     : 4,
                       &number)
            < 0
        || !(value = machine_push(m, PICKLE_INT)))
        return -1;
    value->as.number = code == 'J' ? (int32_t)(uint32_t)number : (int64_t)number;
    return 0;
}

/* Two's complement of any length; what has 8 bytes or less is an int like others. */
int op_long(struct machine *m, unsigned char code)
{
    uint64_t size, number = 0;
    const unsigned char *bytes;
    struct pickle_value *value;

    if (machine_number(m, code == 0x8a ? 1 : 4, &size) < 0 || !(bytes = machine_take(m, size))
        || !(value = machine_push(m, size > 8 ? PICKLE_LONG : PICKLE_INT)))
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

int op_text(struct machine *m, unsigned char code)
{
    const int is_string = code == 0x8c || code == 'X';
    uint64_t size = 8;
    const unsigned char *data;
    struct pickle_value *value;

    if (code != 'G' && machine_number(m, code == 0x8c || code == 'C' ? 1 : 4, &size) < 0)
        return -1;
    if (!(data = machine_take(m, size)))
        return -1;
    if (is_string && !is_utf8(data, size))
        return machine_refuse(m, "a string that is not UTF-8");
    value = machine_push(m, is_string ? PICKLE_STRING : code == 'G' ? PICKLE_FLOAT : PICKLE_BYTES);
    if (!value)
        return -1;
    value->as.text.data = data;
    value->as.text.size = size;
    return 0;
}

/* ---- What has items ----------------------------------------------------------- */

int op_empty(struct machine *m, unsigned char code)
{
    return machine_push(m, code == '}'   ? PICKLE_DICT
                           : code == ']' ? PICKLE_LIST
                                         : PICKLE_SET)
               ? 0
               : -1;
}

int op_mark(struct machine *m, unsigned char code)
{
    (void)code;
    return machine_append(m, &m->stack, NULL);
}

/* Puts the values from `first` on the stack up to its top into `to`. */
static int move_items(struct machine *m, struct pickle_value *to, size_t first)
{
    for (size_t i = first; i < m->stack.count; i++) {
        struct pickle_item *item = pickle_allocate(m->pickle, sizeof *item, m->why);

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
int op_add_all(struct machine *m, unsigned char code)
{
    const enum pickle_kind kind = code == 'u'   ? PICKLE_DICT
                                  : code == 'e' ? PICKLE_LIST
                                                : PICKLE_SET;
    const size_t first = behind_mark(m);
    struct pickle_value *to = first > 1 ? m->stack.list[first - 2] : NULL;

    if (!to || to->kind != kind || (kind == PICKLE_DICT && (m->stack.count - first) % 2))
        return machine_refuse(m, "items for nothing");
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
int op_add_one(struct machine *m, unsigned char code)
{
    const size_t items = code == 's' ? 2 : 1;
    struct pickle_value *to;

    if (!has_values(m, items + 1))
        return machine_refuse(m, "an item for nothing");
    to = m->stack.list[m->stack.count - items - 1];
    if (to->kind != (code == 's' ? PICKLE_DICT : PICKLE_LIST))
        return machine_refuse(m, "an item for nothing");
    return move_items(m, to, m->stack.count - items);
}

/* The values from `first` on become one. */
static int gather(struct machine *m, enum pickle_kind kind, size_t first)
{
    struct pickle_value *value = pickle_allocate(m->pickle, sizeof *value, m->why);

    if (!value)
        return -1;
    *value = (struct pickle_value){ .kind = kind };
    if (move_items(m, value, first) < 0)
        return -1;
    return machine_append(m, &m->stack, value);
}

int op_tuple(struct machine *m, unsigned char code)
{
    const size_t items = (size_t)(code - 0x84); /* 85 86 87 */

    if (!has_values(m, items))
        return machine_refuse(m, "a tuple of nothing");
    return gather(m, PICKLE_TUPLE, m->stack.count - items);
}

int op_marked(struct machine *m, unsigned char code)
{
    const size_t first = behind_mark(m);
    struct pickle_value *value;

    if (first == 0)
        return machine_refuse(m, "a tuple without a mark");
    if (gather(m, code == 't' ? PICKLE_TUPLE : PICKLE_FROZENSET, first) < 0)
        return -1;
    value = machine_top(m);
    m->stack.list[--m->stack.count - 1] = value; /* in the mark's place */
    return 0;
}
