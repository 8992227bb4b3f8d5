/* SPDX-License-Identifier: Apache-2.0 */
/* frame.h - the frames that the user's ctrun and the relays on the hosts send each other through
 * ssh.  A frame has a type, the number of a node, another number, and data. */
#ifndef LAUNCHER_REMOTE_FRAME_H
#define LAUNCHER_REMOTE_FRAME_H

#include <event2/bufferevent.h>
#include <stddef.h>

enum frame_type {
    /* Frames from the user's ctrun to the hosts. */
    FRAME_START = 1, /* the first frame; data: a struct start (start.h) */
    FRAME_PORT,      /* number: the port of node 0; the other nodes start now */
    FRAME_INPUT,     /* data: standard input for the node; no data: the input ends */
    FRAME_SIGNAL,    /* number: a signal for the node's ctrun */
    FRAME_BEAT,      /* sent every BEAT_SECONDS to show that the user's ctrun still runs */
    /* Frames from a node to the user's ctrun. */
    FRAME_STARTED, /* the node's relay runs; data: the version of ctrun */
    FRAME_LISTENS, /* node 0's ctrun listens; number: the port */
    FRAME_OUTPUT,  /* data: output of the node's ctrun; number: 1 (stdout) or 2 (stderr) */
    FRAME_TAKEN,   /* number: bytes of input written to ctrun's pipe, or dropped */
    FRAME_LOST,    /* data: why the node is lost; number: 1 if ctrun can't be started */
    FRAME_ENDED,   /* the node's ctrun has ended; number: the exit code */
    FRAME_TYPES
};

#define FRAME_MOST (64u << 20) /* most bytes of data in a frame; a start needs far fewer */
#define BEAT_SECONDS 10        /* seconds between two FRAME_BEATs */
#define SILENCE_SECONDS 60     /* seconds without a frame after which the connection is lost */
#define FRAME_ALL (-1)         /* in place of a node's number: all nodes */

struct relay_frame {
    enum frame_type type;
    int node, number;
    const char *data; /* inside the buffer, valid until frame_drop() */
    size_t size;
};

/* Queues a frame for sending.  Returns 0, or -1 if memory runs out. */
int frame_send(struct bufferevent *to, enum frame_type type, int node, int number, const void *data,
               size_t size);

/* Returns 1 and sets *frame if a complete frame is at the start of the buffer, 0 if the first frame
 * is not complete yet, and -1 if the bytes are not a frame. */
int frame_peek(struct evbuffer *from, struct relay_frame *frame);
void frame_drop(struct evbuffer *from, const struct relay_frame *frame);

/* Compares the version in a FRAME_STARTED with this program's version.  Returns 1 if they are
 * equal, else 0.  Writes the sender's version into `version` in both cases. */
int frame_is_own_version(const struct relay_frame *frame, char version[24]);

#endif
