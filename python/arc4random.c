/* SPDX-License-Identifier: Apache-2.0 */
/* arc4random.c - what libevent takes from glibc 2.36 and later, so that the wheel runs with 2.34.
 *
 * libevent mixes it into names and delays of its DNS client, which is not used here. */
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>

void arc4random_buf(void *to, size_t size);
uint32_t arc4random(void);

void arc4random_buf(void *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = getrandom((char *)to + done, size - done, 0);

        done += n > 0 ? (size_t)n : 0; /* else a signal came */
    }
}

uint32_t arc4random(void)
{
    uint32_t word;

    arc4random_buf(&word, sizeof word);
    return word;
}
