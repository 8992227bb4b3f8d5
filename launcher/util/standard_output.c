/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/util/standard_output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Detects every error.  An earlier write may have failed, the last write may fail now, and close()
 * reports errors that NFS has delayed. */
int standard_output_close(const char *program, int code)
{
    const int failed = ferror(stdout), cause = errno;

    errno = 0;
    if (fclose(stdout) == 0 && !failed)
        return code;
    fprintf(stderr, "%s: standard output: %s\n", program,
            strerror(errno   ? errno
                     : cause ? cause
                             : EIO));
    return 1;
}
