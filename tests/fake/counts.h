/* SPDX-License-Identifier: Apache-2.0 */
/* counts.h - what a process has made the fake driver do; a test finds fake_counts by dlsym(). */
#ifndef TESTS_FAKE_COUNTS_H
#define TESTS_FAKE_COUNTS_H

#include <stdatomic.h>

enum fake_count {
    FAKE_CALLS,
    FAKE_QUERIES, /* and cuCtxSetCurrent(): waits make both, so their number depends on timing */
    FAKE_EVENTS,  /* recorded */
    FAKE_WORDS,   /* operations on words in memory, enqueued in a stream */
    FAKE_COUNTS
};

extern __attribute__((visibility("default"))) _Atomic int fake_counts[FAKE_COUNTS];

#endif
