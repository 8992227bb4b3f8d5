/* @NAME@: each rank contributes a number.  All ranks get the sum, and rank 0 prints it.
 *
 * A program that uses libct first calls ct_init_process_group().  Then every rank calls the same
 * collectives in the same order.  `man ct` lists all functions. */
#include <ct.h>

#include <stdio.h>
#include <stdlib.h>

/* Every call can fail.  Then the error message tells which rank failed, in which call, and what to
 * do. */
static void check(ct_status status)
{
    if (status == CT_OK)
        return;
    fprintf(stderr, "@NAME@: %s\n", ct_last_error());
    exit(1);
}

int main(void)
{
    double sum;

    check(ct_init_process_group(NULL)); /* runs alone, or under ctrun, torchrun, mpirun or srun */
    sum = ct_rank(CT_WORLD) + 1;
    check(ct_all_reduce(CT_WORLD, &sum, &sum, 1, CT_F64, CT_SUM, NULL));
    if (ct_rank(CT_WORLD) == 0)
        printf("the sum of 1 to %d is %g\n", ct_size(CT_WORLD), sum);
    check(ct_destroy_process_group(CT_WORLD));
    return 0;
}
