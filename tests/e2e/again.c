/* SPDX-License-Identifier: Apache-2.0 */
/* again N [leaves] - meets the others and sums, then becomes itself with N - 1; without "leaves"
 * it does not destroy its group first. */
#include <ct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const int left = argc > 1 ? atoi(argv[1]) : 0, leaves = argc > 2;
    int32_t sum = 1;
    char next[16];

    if (ct_init_process_group(NULL) != CT_OK
        || ct_all_reduce(NULL, &sum, &sum, 1, CT_I32, CT_SUM, NULL) != CT_OK
        || (leaves && ct_destroy_process_group(CT_WORLD) != CT_OK)) {
        printf("%s\n", ct_last_error());
        return 1;
    }
    snprintf(next, sizeof next, "%d", left - 1);
    if (left > 0)
        execl("/proc/self/exe", argv[0], next, leaves ? "leaves" : NULL, NULL);
    printf("%d\n", sum);
    return left > 0;
}
