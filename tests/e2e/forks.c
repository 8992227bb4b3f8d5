/* SPDX-License-Identifier: Apache-2.0 */
/* forks - each rank forks a child that ends by exit(), and so by the program's atexit(), which
 * destroys the group; then all sum up, with a limit of argv[1] ms if it is given. */
#include <ct.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t parent;

static void leave(void)
{
    const ct_status status = ct_destroy_process_group(CT_WORLD);

    if (getpid() != parent && ct_rank(CT_WORLD) == 0)
        printf("the child's destroy: %s\n", ct_strerror(status));
}

int main(int argc, char **argv)
{
    int sum = 1;
    pid_t child;

    if (ct_init_process_group(NULL) != CT_OK)
        return 1;
    parent = getpid();
    atexit(leave);
    child = fork();
    if (child == 0)
        exit(0);
    waitpid(child, NULL, 0);
    if (ct_barrier(CT_WORLD, NULL) != CT_OK
        || (argc > 1 && ct_set_next_timeout(CT_WORLD, atoi(argv[1])) != CT_OK)
        || ct_all_reduce(CT_WORLD, &sum, &sum, 1, CT_I32, CT_SUM, NULL) != CT_OK) {
        printf("%s\n", ct_last_error());
        return 1;
    }
    printf("the sum is %d\n", sum);
    return 0;
}
