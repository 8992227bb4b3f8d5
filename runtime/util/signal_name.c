/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/signal_name.h"

#include <stdio.h>

#include "config/values/parse_number.h"

const char *signal_name(int number, char *text, size_t size)
{
    const char *name = signal_abbreviation(number);

    if (name)
        snprintf(text, size, "SIG%s", name);
    else
        snprintf(text, size, "signal %d", number);
    return text;
}
