/* SPDX-License-Identifier: Apache-2.0 */
/* frame.h - the frames that the user's ctrun and the ctruns on the hosts send each other through
 * ssh: a type, a node, a number and bytes. */
#ifndef LAUNCHER_REMOTE_FRAME_H
#define LAUNCHER_REMOTE_FRAME_H

#include <event2/bufferevent.h>
#include <stddef.h>

enum frame_type {
    /* Down, to the hosts. */
    FRAME_START = 1, /* first frame; the data is struct start: what to run */
    FRAME_PORT,      /* number: node 0's port; now the other nodes start */
    FRAME_INPUT,     /* for standard input of that node; no bytes: its end */
    FRAME_SIGNAL,    /* number: for ctrun on all nodes */
    FRAME_BEAT,      /* the user's ctrun still runs */
    /* Up, from a node. */
    FRAME_STARTED, /* its relay runs; data: the version of ctrun */
    FRAME_LISTENS, /* number: the port, of node 0 */
    FRAME_OUTPUT,  /* data from its ctrun; number: 1 (stdout) or 2 (stderr) */
    FRAME_TAKEN,   /* number: bytes of input that went into the pipe */
    FRAME_LOST,    /* data: why the node was lost; number 1: why ctrun can't start */
    FRAME_ENDED,   /* number: ctrun's exit code */
    FRAME_TYPES
};

#define FRAME_MOST (64u << 20) /* data of one frame; words and environment need much less */
#define BEAT_SECONDS 10        /* between two FRAME_BEATs */
#define SILENCE_SECONDS 60     /* without a frame for so long, the user's ctrun is lost */
#define FRAME_ALL (-1)         /* as a node: all nodes */

struct relay_frame {
    enum frame_type type;
    int node, number;
    const char *data; /* inside the buffer, until frame_drop() */
    size_t size;
};

/* -1: out of memory. */
int frame_send(struct bufferevent *to, enum frame_type type, int node, int number, const void *data,
               size_t size);

/* 1: *frame is the first frame; 0: it is not complete yet; -1: the bytes are not a frame. */
int frame_peek(struct evbuffer *from, struct relay_frame *frame);
void frame_drop(struct evbuffer *from, const struct relay_frame *frame);

/* Reads FRAME_STARTED.  1: the sender has this version; 0: `version` has the sender's, as text. */
int frame_is_own_version(const struct relay_frame *frame, char version[24]);

#endif
