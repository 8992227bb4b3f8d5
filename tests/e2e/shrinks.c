/* SPDX-License-Identifier: Apache-2.0 */
/* shrinks VICTIM... - all sum; a victim kills itself, the others shrink and go on, until the last
 * victim is dead.  Then each survivor prints how many are left and what their old ranks sum up to.
 * A victim "N!" dies in the middle of the others' shrinking; "N~" lives on but never comes to it.
 * LATER_FAULT becomes CT_FAULT for what is made by shrinking. */
#include <ct.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *what)
{
    printf("%s: %s\n", what, ct_last_error());
    return 1;
}

static int wait_until_over(void)
{
    while (access("over", F_OK) != 0)
        usleep(1000);
    return 0;
}

int main(int argc, char **argv)
{
    ct_group *group = CT_WORLD, *next;
    int64_t old, sum;
    ct_status status;
    int limit_ms = 10000;

    if (ct_init_process_group(NULL) != CT_OK)
        return fail("init");
    old = ct_rank(NULL);
    if (getenv("LATER_FAULT"))
        setenv("CT_FAULT", getenv("LATER_FAULT"), 1);
    for (int i = 1; i < argc; i++) {
        const int me = atoi(argv[i]) == old, late = strchr(argv[i], '!') != NULL;

        if (me && late && fork() == 0) { /* a moment later, wherever its parent is then */
            usleep((useconds_t)(rand() % 3000));
            kill(getppid(), SIGKILL);
            _exit(0);
        }
        if (me && strchr(argv[i], '~'))
            return wait_until_over();
        if (me && !late)
            raise(SIGKILL);
        if (strchr(argv[i], '~')) {
            limit_ms = 1500;
            ct_abort(group);
        }
        do
            status = ct_all_reduce(group, &old, &sum, 1, CT_I64, CT_SUM, NULL);
        while (status == CT_OK);
        if (status != CT_ERR_PEER && status != CT_ERR_ABORTED)
            return fail("all_reduce");
        if (ct_shrink_group(group, limit_ms, &next) != CT_OK)
            return fail("shrink");
        if (group != CT_WORLD)
            ct_destroy_process_group(group);
        group = next;
    }
    if (ct_all_reduce(group, &old, &sum, 1, CT_I64, CT_SUM, NULL) != CT_OK)
        return fail("the last all_reduce");
    printf("%d of %d, sum %lld\n", ct_rank(group), ct_size(group), (long long)sum);
    fflush(stdout);
    ct_barrier(group, NULL);
    close(open("over", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ct_destroy_process_group(group);
    ct_destroy_process_group(CT_WORLD);
    return 0;
}
