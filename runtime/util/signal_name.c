/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/signal_name.h"

#include <stdio.h>
#include <string.h>

const char *signal_name(int number, char *text, size_t size)
{
    const char *name = sigabbrev_np(number);

    if (name)
        snprintf(text, size, "SIG%s", name);
    else
        snprintf(text, size, "signal %d", number);
    return text;
}
