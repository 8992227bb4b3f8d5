/* SPDX-License-Identifier: Apache-2.0 */
/* decode.c - one statement of a body: "@%p1 add.s32 %r3, %r2, -5".
 *
 * Its operands become slots and a shape, and with these it is looked for among the rows.  So an
 * instruction that exists with other operands is as unknown as one that does not exist. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/parts.h"

/* What is being made of a statement. */
struct reader {
    struct kernel *kernel;
    struct instruction *i;
    char shape[MOST_SHAPE];
    size_t letters, operands;
    int has_address;
    uint32_t address;
};

uint32_t slot_of(struct kernel *kernel, uint64_t constant)
{
    for (uint32_t k = kernel->constants; k < kernel->slots; k++)
        if (kernel->slot[k] == constant)
            return k;
    kernel->slot = one_more(kernel->slot, kernel->slots, sizeof *kernel->slot);
    kernel->slot[kernel->slots] = constant;
    return kernel->slots++;
}

/* ---- Names -------------------------------------------------------------------------- */

/* 0: no register that was declared. */
static char register_of(const struct kernel *kernel, const char *name, uint32_t *slot)
{
    static const char *const special[] = { "", "%tid.x", "%ntid.x", "%ctaid.x", "%nctaid.x" };
    const size_t letters = strcspn(name, "0123456789");
    unsigned number;
    int end;

    for (uint32_t k = TID; k < FIRST_SLOT; k++)
        if (!strcmp(name, special[k]))
            return *slot = k, 'w';
    if (sscanf(name + letters, "%u%n", &number, &end) != 1 || name[letters + (size_t)end])
        return 0;
    for (uint32_t k = 0; k < kernel->kinds; k++) {
        const struct registers *const kind = &kernel->registers[k];

        if (strlen(kind->prefix) == letters && !strncmp(kind->prefix, name, letters)
            && number < kind->count)
            return *slot = kind->first + number, kind->letter;
    }
    return 0;
}

/* 12, -5, 0f3F800000 */
static int is_immediate(const char *word, uint64_t *value)
{
    const int is_float = word[0] == '0' && (word[1] == 'f' || word[1] == 'd');
    char *end;

    if (!isdigit((unsigned char)word[word[0] == '-']))
        return 0;
    *value = is_float ? strtoull(word + 2, &end, 16) : strtoull(word, &end, 0);
    return *end == 0 && (!is_float || end - word == (word[1] == 'f' ? 10 : 18));
}

/* ---- Operands ------------------------------------------------------------------------- */

static int add_letter(struct reader *r, char letter)
{
    if (r->letters + 2 >= MOST_SHAPE)
        return 0;
    r->shape[r->letters++] = letter;
    return 1;
}

static int add_slot(struct reader *r, char letter, uint32_t slot)
{
    if (r->operands == MOST_OPERANDS || !add_letter(r, letter))
        return 0;
    r->i->at[r->operands++] = slot;
    return 1;
}

/* What stands between [ and ]: r, r+7, r+-7 */
static int read_address(struct reader *r, char *word)
{
    char *const plus = strchr(word, '+');
    uint64_t more = 0;

    if (plus)
        *plus = 0;
    if (r->has_address++ || (plus && !is_immediate(plus + 1, &more)))
        return 0;
    r->i->more = more;
    if (!strcmp(word, r->kernel->parameter))
        return r->address = slot_of(r->kernel, r->kernel->parameter_at), 1;
    return register_of(r->kernel, word, &r->address) == 'd';
}

static int read_operand(struct reader *r, char *word)
{
    uint32_t slot;
    uint64_t value;
    const size_t length = strlen(word);
    const char letter = register_of(r->kernel, word, &slot);

    if (letter)
        return add_slot(r, letter, slot);
    if (word[0] == '[' && word[length - 1] == ']') {
        word[length - 1] = 0;
        return read_address(r, word + 1);
    }
    if (is_immediate(word, &value))
        return add_slot(r, '#', slot_of(r->kernel, value));
    if (!strcmp(word, r->kernel->parameter))
        return add_slot(r, 'P', slot_of(r->kernel, r->kernel->parameter_at));
    for (uint32_t k = 0; k < r->kernel->labels && word[0] == '$'; k++)
        if (!strncmp(r->kernel->label[k].name, word, length)
            && r->kernel->label[k].name[length] == ':')
            return r->i->more = r->kernel->label[k].index, add_letter(r, 'L');
    return 0;
}

/* "%r1, {%r2, %r3}, [%rd4+8]": ended by commas, of which the last one may be missing. */
static int read_operands(struct reader *r, char *text)
{
    for (char *word = strtok(text, ", \t"); word; word = strtok(NULL, ", \t")) {
        const size_t length = strlen(word);
        const int closes = word[length - 1] == '}';

        if (*word == '{' && !add_letter(r, *word++))
            return 0;
        if (closes)
            word[strlen(word) - 1] = 0;
        if (!read_operand(r, word) || (closes && !add_letter(r, '}')))
            return 0;
    }
    if (r->has_address)
        return add_slot(r, 'm', r->address);
    return 1;
}

/* ---- Rows ------------------------------------------------------------------------------ */

static int fits(const char *shape, const char *row)
{
    for (; *shape && *row; shape++, row++)
        if (*shape != *row && !(*shape == '#' && strchr("hwdHW", *row))
            && !(*row == 'H' && strchr("hwd", *shape)) && !(*row == 'W' && strchr("wd", *shape)))
            return 0;
    return *shape == *row;
}

static int look_for(struct instruction *i, const char *name, const char *shape)
{
    const struct rows *const tables[] = { &integer_rows, &float_rows, &move_rows };

    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (size_t k = 0; k < tables[t]->count; k++)
            if (!strcmp(tables[t]->row[k].name, name) && fits(shape, tables[t]->row[k].shape))
                return i->act = tables[t]->row[k].act, 1;
    return decode_access(i, name, shape);
}

/* ---- Statements ------------------------------------------------------------------------- */

/* Behind the guard @%p1 or @!%p1, if there is one; NULL: it is none. */
static char *read_guard(const struct kernel *kernel, struct instruction *i, char *statement)
{
    const int is_negated = statement[0] == '@' && statement[1] == '!';
    char *end;

    i->guard = ALWAYS;
    i->wanted = !is_negated;
    if (*statement != '@')
        return statement;
    end = statement + strcspn(statement, " \t");
    if (*end)
        *end++ = 0;
    if (register_of(kernel, statement + 1 + is_negated, &i->guard) != 'p')
        return NULL;
    return end + strspn(end, " \t");
}

int decode(struct kernel *kernel, struct instruction *i, char *statement, char *why)
{
    struct reader reader = { .kernel = kernel, .i = i };
    char *const name = read_guard(kernel, i, statement);
    char *end = name ? name + strcspn(name, " \t") : NULL;

    if (!name) {
        snprintf(why, MOST_WHY, "its guard is no predicate that was declared");
        return 0;
    }
    if (*end)
        *end++ = 0;
    if (!read_operands(&reader, end)) {
        snprintf(why, MOST_WHY, "an operand of %.40s is not known", name);
        return 0;
    }
    if (!look_for(i, name, reader.shape)) {
        snprintf(why, MOST_WHY, "%.40s is not known with such operands (%s)", name, reader.shape);
        return 0;
    }
    return 1;
}
