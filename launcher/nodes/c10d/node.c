/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - two orders of nodes: one to find them by, one to number them by. */
#include "launcher/nodes/c10d/node.h"

#include <string.h>

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

int c10d_node_compare(const struct c10d_node *a, const struct c10d_node *b)
{
    int order = strcmp(a->addr, b->addr); /* as unsigned char: says the C standard */

    if (order == 0)
        order = compare_numbers(a->pid, b->pid);
    return order ? order : compare_numbers(a->local_id, b->local_id);
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Two rows of digits of any length, as numbers; both pointers go behind theirs. */
static int compare_digits(const char **a, const char **b)
{
    size_t digits_a, digits_b;
    int order;

    *a += strspn(*a, "0");
    *b += strspn(*b, "0");
    digits_a = strspn(*a, "0123456789");
    digits_b = strspn(*b, "0123456789");
    if (digits_a != digits_b)
        return digits_a < digits_b ? -1 : 1;
    order = memcmp(*a, *b, digits_a);
    *a += digits_a;
    *b += digits_b;
    return order;
}

static int compare_naturally(const char *a, const char *b)
{
    while (*a && *b) {
        if (is_digit(*a) && is_digit(*b)) {
            const int order = compare_digits(&a, &b);

            if (order)
                return order;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++, b++;
        }
    }
    return (*a != 0) - (*b != 0);
}

int c10d_node_natural(const struct c10d_node *a, const struct c10d_node *b)
{
    const int order = compare_naturally(a->addr, b->addr);

    return order ? order : c10d_node_compare(a, b);
}

int c10d_node_copy(struct c10d_node *to, const struct c10d_node *from)
{
    char *addr = strdup(from->addr);

    if (!addr)
        return -1;
    *to = (struct c10d_node){ addr, from->pid, from->local_id };
    return 0;
}
