/* SPDX-License-Identifier: Apache-2.0 */
/* pickle.h - Python's pickles as data: read into a tree, written from one.
 *
 * Nothing is ever called or looked up.  A pickle may name five globals, those of a
 * rendezvous state, and what it would have Python make of them is a value here:
 * an object with its attributes, a call with its arguments.  The reader
 * takes bytes from anybody: it refuses what it does not know, and its memory
 * has a bound. */
#ifndef LAUNCHER_NODES_C10D_PICKLE_H
#define LAUNCHER_NODES_C10D_PICKLE_H

#include <stddef.h>
#include <stdint.h>

#include "config/parse_number.h"

enum pickle_global { STATE_CLASS, NODE_CLASS, DATETIME, TIMEZONE, TIMEDELTA, PICKLE_GLOBALS };

extern const struct pickle_name {
    const char *module, *name;
} pickle_names[PICKLE_GLOBALS];

enum pickle_kind {
    PICKLE_NONE,
    PICKLE_BOOL,   /* number */
    PICKLE_INT,    /* number */
    PICKLE_LONG,   /* text: little-endian, more than 8 bytes */
    PICKLE_FLOAT,  /* text: 8 bytes, as they stand in the pickle */
    PICKLE_STRING, /* text: UTF-8 */
    PICKLE_BYTES,  /* text */
    PICKLE_TUPLE,  /* items */
    PICKLE_LIST,
    PICKLE_DICT, /* items: key, value, key, value ... */
    PICKLE_SET,
    PICKLE_FROZENSET,
    PICKLE_GLOBAL, /* made.of */
    PICKLE_OBJECT, /* made.of a class, made.with a dict of attributes, or NULL */
    PICKLE_CALL    /* made.of, made.with a tuple of arguments */
};

struct pickle_value;

struct pickle_item {
    struct pickle_value *value;
    struct pickle_item *next;
};

/* A value may be in several places, and even within itself. */
struct pickle_value {
    enum pickle_kind kind;
    union {
        int64_t number;
        struct {
            const unsigned char *data; /* within the pickle */
            size_t size;
        } text;
        struct {
            struct pickle_item *first, *last;
            size_t count; /* a dict's are two for each key */
        } items;
        struct {
            enum pickle_global of;
            struct pickle_value *with;
        } made;
    } as;
};

/* ---- Reading ------------------------------------------------------------------ */

struct pickle_block;

struct pickle {
    struct pickle_value *root;
    struct pickle_block *blocks; /* hold all values */
    size_t bytes;                /* of all blocks */
};

/* Returns 0, or -1 and the sentence.  The values point into `data`. */
int pickle_read(struct pickle *pickle, const unsigned char *data, size_t size, struct why *why);
void pickle_free(struct pickle *pickle);

/* -1 and the sentence; what a stranger wrote in it cannot move a cursor. */
int pickle_wrong(struct why *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Writing ------------------------------------------------------------------ */

/* Once an allocation has failed or `most` is exceeded, nothing more is written. */
struct pickle_out {
    unsigned char *data;
    size_t size, room;
    size_t most; /* 0: no limit */
    int failed;
    uint32_t memos;
};

void put_bytes(struct pickle_out *out, const void *bytes, size_t size);
void put_byte(struct pickle_out *out, unsigned char byte);
void put_bool(struct pickle_out *out, int value);
void put_int(struct pickle_out *out, int64_t value);
void put_string(struct pickle_out *out, const char *text, size_t size);
void put_global(struct pickle_out *out, enum pickle_global global);
/* Remembers what was just written; put_again() writes it by its number. */
uint32_t put_memo(struct pickle_out *out);
void put_again(struct pickle_out *out, uint32_t memo);

/* Whole, with nothing remembered.  -1: it is nested too deep (or within itself) or
 * too large; out->failed says so too. */
int put_value(struct pickle_out *out, const struct pickle_value *value);

#endif
