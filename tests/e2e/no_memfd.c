/* SPDX-License-Identifier: Apache-2.0 */
/* no_memfd.c - runs COMMAND in a sandbox whose memfd_create() fails with ENOSYS, as on an old
 * kernel.  Exit code 77: the kernel does not allow the filter. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { sizeof rules / sizeof *rules, rules };

    if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        return 77;
    execvp(argv[1], argv + 1);
    return 127;
}
