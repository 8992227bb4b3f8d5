/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_timer_request.c - a line that a worker writes to its TORCHELASTIC_TIMER_FILE: ctrun
 * sends its signal to its pid, so what is read must be able to be one. */
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/health/timer_request.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct timer_request request;
    char *line = malloc(size + 1);

    holds(line != NULL);
    memcpy(line, data, size);
    line[size] = '\0';
    memset(&request, 0xee, sizeof request);
    if (timer_request_read(&request, line) == 0) {
        holds(request.pid > 0 && request.signal >= 0 && request.signal < NSIG);
        holds(isfinite(request.expires));
        holds(memchr(request.scope, '\0', sizeof request.scope) != NULL);
    }
    free(line);
    return 0;
}
