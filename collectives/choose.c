/* SPDX-License-Identifier: Apache-2.0 */
/* choose.c - which algorithm carries out a call.
 *
 * The first of the operation's rows that fits, or the one that the user named.  Only what all ranks
 * agree on decides, so all take the same; the number of the row travels in the signature, and
 * ranks that were told differently find out. */
#include "collectives/call.h"

#include <stdlib.h>
#include <string.h>

ct_status call_choose(struct call *c)
{
    const struct algorithm *const *rows = operation_algorithms(c->signature.operation);
    const int named = c->group->algorithm[c->signature.operation];

    if (named >= 0) {
        if (rows[named]->fits && !rows[named]->fits(c))
            return ct_fail(CT_ERR_UNSUPPORTED, "algorithm \"%s\" can't do this call",
                           rows[named]->name);
        c->signature.algorithm = (uint32_t)named;
    } else {
        while (rows[c->signature.algorithm]->fits && !rows[c->signature.algorithm]->fits(c))
            c->signature.algorithm++; /* the last row fits always */
    }
    c->algorithm = rows[c->signature.algorithm];
    return CT_OK;
}

ct_status algorithms_from_environment(ct_group *group)
{
    for (int operation = OPERATION_BROADCAST; operation < OPERATION_COUNT; operation++) {
        const struct algorithm *const *rows = operation_algorithms(operation);
        char variable[48] = "CT_";
        const char *name;

        for (size_t i = 0; operation_name(operation)[i] && i < sizeof variable - 4; i++)
            variable[3 + i] = operation_name(operation)[i] == '_'
                                  ? '_'
                                  : (char)(operation_name(operation)[i] - 'a' + 'A');
        name = getenv(variable);
        if (!name || !*name)
            continue;
        for (int row = 0; rows[row]; row++)
            if (!strcmp(rows[row]->name, name))
                group->algorithm[operation] = row;
        if (group->algorithm[operation] < 0)
            return ct_fail(CT_ERR_INVALID, "%s=%s names no algorithm of %s; the first is \"%s\"",
                           variable, name, operation_name(operation), rows[0]->name);
    }
    return CT_OK;
}
