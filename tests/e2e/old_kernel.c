/* SPDX-License-Identifier: Apache-2.0 */
/* old_kernel.c - runs COMMAND in a sandbox that answers as Linux 4.18 does, and without
 * memfd_create(), which containers may forbid.  Exit code 77: the kernel does not allow the filter.
 * old_kernel COMMAND [ARG]... */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ANSWER(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* Skips `count` rules if the loaded word is not equal to the number, or is smaller than it. */
#define UNLESS_EQUAL(number, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, count)
#define IF_LESS(number, count) BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, number, 0, count)

enum {
    FIRST_NEW_CALL = 424,  /* pidfd_send_signal() of 5.1; all architectures count on from it */
    FIRST_NEW_ADVICE = 20, /* MADV_COLD of 5.4 */
    BY_PIDFD = 3           /* P_PIDFD of 5.4 */
};

int main(int argc, char **argv)
{
    struct sock_filter rules[] = {
        LOAD(nr),       IF_LESS(FIRST_NEW_CALL, 1),
        ANSWER(ENOSYS), UNLESS_EQUAL(SYS_memfd_create, 1),
        ANSWER(ENOSYS), UNLESS_EQUAL(SYS_madvise, 3),
        LOAD(args[2]),  IF_LESS(FIRST_NEW_ADVICE, 5),
        ANSWER(EINVAL), UNLESS_EQUAL(SYS_waitid, 3),
        LOAD(args[0]),  UNLESS_EQUAL(BY_PIDFD, 1),
        ANSWER(EINVAL), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { sizeof rules / sizeof *rules, rules };

    if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        return 77;
    execvp(argv[1], argv + 1);
    return 127;
}
