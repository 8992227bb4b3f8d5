/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_capture.h - the fake driver's captures, between libcuda_capture.c, which makes them, and
 * libcuda_capture_rules.c, which says what they forbid. */
#ifndef TESTS_FAKE_LIBCUDA_CAPTURE_H
#define TESTS_FAKE_LIBCUDA_CAPTURE_H

#include "tests/fake/libcuda.h"

#include <pthread.h>
#include <stdatomic.h>

struct seat {
    CUstream stream;
    uint64_t seen[CAPTURED_STREAMS]; /* of each seat's steps, its own too */
};

struct capture {
    struct capture *next;
    CUgraph graph;
    CUstreamCaptureMode mode;
    pthread_t thread; /* that began it */
    unsigned long long id;
    int is_void;
    int streams;
    struct seat seats[CAPTURED_STREAMS]; /* first: in which it began */
};

/* Those of this process. */
extern struct captures {
    pthread_mutex_t lock; /* of the list */
    struct capture *first;
    _Atomic int live; /* how many there are */
} captures;

/* All these with the lock held. */

/* NULL: the stream is not captured. */
struct capture *capture_of(CUstream stream, int *seat);
struct capture *capture_by_id(unsigned long long id);
/* Whoever is captured is void with this error; otherwise the legacy stream is looked at. */
CUresult capture_refuse(CUstream stream, CUresult error);
/* The legacy stream would wait for the blocking streams of its context, or they for it: those that
 * are captured.  void_them: then they are void. */
int capture_is_implied(CUstream stream, int void_them);

#endif
