/* SPDX-License-Identifier: Apache-2.0 */
/* sums.c - sums 8 bytes over all ranks until a call fails, and exits with 40 then.  Once the
 * ranks have met it writes its pid to pid.<rank>. */
#include <ct.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    int64_t one = 1, sum;
    char name[32], new[40];
    ct_status status = ct_init_process_group(NULL);
    FILE *file;

    if (status == CT_OK)
        status = ct_barrier(NULL, NULL);
    snprintf(name, sizeof name, "pid.%d", ct_rank(NULL));
    snprintf(new, sizeof new, ".%s", name);
    if (status == CT_OK && (file = fopen(new, "w"))) {
        fprintf(file, "%d\n", (int)getpid());
        fclose(file);
        rename(new, name);
    }
    while (status == CT_OK) {
        status = ct_all_reduce(NULL, &one, &sum, 1, CT_I64, CT_SUM, NULL);
        usleep(500);
    }
    fprintf(stderr, "%s\n", ct_last_error());
    return 40;
}
