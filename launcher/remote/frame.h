/* SPDX-License-Identifier: Apache-2.0 */
/* frame.h - what the ctrun that the user started and those on the hosts send each other through
 * ssh: frames of a type, a node, a number and bytes. */
#ifndef LAUNCHER_REMOTE_FRAME_H
#define LAUNCHER_REMOTE_FRAME_H

#include <event2/bufferevent.h>
#include <stddef.h>

enum frame_type {
    /* Down, to the hosts. */
    FRAME_START = 1, /* struct start: what to run; the first frame */
    FRAME_PORT,      /* number: where node 0 listens; the other nodes start */
    FRAME_INPUT,     /* bytes for standard input of that node; none: its end */
    FRAME_SIGNAL,    /* number: for ctrun on all nodes */
    FRAME_BEAT,      /* the user's ctrun lives */
    /* Up, from a node. */
    FRAME_STARTED, /* its relay runs; the version of ctrun */
    FRAME_LISTENS, /* number: the port, of node 0 */
    FRAME_OUTPUT,  /* of its ctrun, and number is 1 or 2 */
    FRAME_TAKEN,   /* number: so many bytes of input went into the pipe */
    FRAME_LOST,    /* why the node can't be reached; number 1: why it can't start ctrun */
    FRAME_ENDED,   /* number: ctrun's exit code */
    FRAME_TYPES
};

#define FRAME_MOST (64u << 20) /* bytes of one; words and environment are far below */
#define BEAT_SECONDS 10        /* between two FRAME_BEATs */
#define SILENCE_SECONDS 60     /* without a frame the user's ctrun is lost: its host, or a cable */
#define FRAME_ALL (-1)         /* as a node: all of them */

struct relay_frame {
    enum frame_type type;
    int node, number;
    const char *data; /* inside the buffer, until frame_drop() */
    size_t size;
};

/* -1: out of memory. */
int frame_send(struct bufferevent *to, enum frame_type type, int node, int number, const void *data,
               size_t size);

/* 1: *frame is the first one; 0: it is not there as a whole; -1: this is none. */
int frame_peek(struct evbuffer *from, struct relay_frame *frame);
void frame_drop(struct evbuffer *from, const struct relay_frame *frame);

/* Of FRAME_STARTED: 1 if it is of this version.  0: `version` has the sender's, as text. */
int frame_is_own_version(const struct relay_frame *frame, char version[24]);

#endif
