/* SPDX-License-Identifier: Apache-2.0 */
/* after - the last rank dies, the others shrink; then each prints what the old world says, as ct.h
 * has it, and what is possible in the new group. */
#include <ct.h>
#include <signal.h>
#include <stdio.h>

int main(void)
{
    const int ranks[] = { 0, 1 };
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    ct_group *left, *pair = NULL;
    int sum = 1, of_world, of_parent;

    if (ct_init_process_group(NULL) != CT_OK || ct_barrier(CT_WORLD, NULL) != CT_OK)
        return 1;
    if (ct_rank(CT_WORLD) == ct_size(CT_WORLD) - 1)
        raise(SIGKILL);
    while (ct_barrier(CT_WORLD, NULL) == CT_OK)
        ;
    if (ct_shrink_group(CT_WORLD, 20000, &left) != CT_OK)
        return 2;
    of_world = ct_new_group(ranks, 2, &pair);
    options.parent = left;
    of_parent = ct_new_group_with(ranks, 2, &options, &pair);
    printf(
        "%d of %d is %d of %d; world: stop %s, new group %s, sum %s; left: new group %s, stop %d, "
        "sum %s\n",
        ct_rank(CT_WORLD), ct_size(CT_WORLD), ct_rank(left), ct_size(left),
        ct_should_stop(CT_WORLD) >= 0 ? "answered" : "refused",
        of_world == CT_OK ? "made" : "refused",
        ct_all_reduce(CT_WORLD, &sum, &sum, 1, CT_I32, CT_SUM, NULL) == CT_OK ? "made" : "refused",
        of_parent == CT_OK ? "made" : "refused", ct_should_stop(left),
        ct_all_reduce(left, &sum, &sum, 1, CT_I32, CT_SUM, NULL) == CT_OK ? "made" : "refused");
    fflush(stdout);
    ct_destroy_process_group(left);
    ct_destroy_process_group(CT_WORLD);
    return 0;
}
