/* SPDX-License-Identifier: Apache-2.0 */
/* header.cc - what a C++ program writes with ct.h's macros, for the compiler alone (scripts/check
 * warns of what a user's own compiler may). */
#include <ct.h>

ct_status everywhere();

ct_status everywhere()
{
    ct_init_options options = CT_INIT_OPTIONS_INIT;
    ct_group_options group_options = CT_GROUP_OPTIONS_INIT;
    ct_group *world = CT_WORLD, *group = nullptr;
    int x = ct_rank(CT_WORLD), from;

    ct_status status = ct_init_process_group(&options);
    if (status == CT_OK)
        status = ct_all_reduce(CT_WORLD, &x, &x, 1, CT_I32, CT_SUM, nullptr);
    if (status == CT_OK)
        status = ct_recv(world, &x, 1, CT_I32, CT_ANY_SOURCE, 0, &from);
    if (status == CT_OK)
        status = ct_new_group_with(nullptr, 0, &group_options, &group);
    return status == CT_OK ? ct_destroy_process_group(CT_WORLD) : status;
}
