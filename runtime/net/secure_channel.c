/* SPDX-License-Identifier: Apache-2.0 */
/* secure_channel.c - a TLS connection between a caller's bytes and a socket.
 *
 * OpenSSL reads from the socket through bio_read(), READ_BYTES at a time.  Encrypted bytes for the
 * socket gather in channel->out, and one send() takes several records.  A record holds 16 KiB, and
 * the small parts of a write share a record.
 *
 * If the socket does not take a write, OpenSSL requires the caller to repeat it with the
 * same bytes.  That does not suit callers that may have other bytes to write next.  So a
 * write reports all bytes but the last one as written, and the last one when the socket has
 * taken everything (channel->owed).
 *
 * Any TLS failure ends the connection, for example a record that was changed on its way.  The
 * socket is then shut down, so that a caller that waits for the socket wakes. */
#include "runtime/net/secure_channel.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/net/libssl.h"
#include "runtime/net/socket.h"
#include "runtime/util/clock.h"

#define RECORD_BYTES ((size_t)16 << 10)
#define RECORDS_AT_ONCE 4
#define RECORD_OVERHEAD 64 /* TLS 1.3 adds 22 bytes */
#define OUT_BYTES (RECORDS_AT_ONCE * (RECORD_BYTES + RECORD_OVERHEAD))
#define WRITE_BYTES ((size_t)512 << 10) /* limit of one write: the caller may have to read, too */
#define READ_BYTES (64 << 10)
#define READ_AT_ONCE ((size_t)512 << 10) /* limit of one read: the caller has deadlines */
/* RFC 8446, 5.5: a key of AES-GCM is good for 2^24.5 records, about 380 GiB if the
 * records are full. */
#define RECORDS_OF_A_KEY (UINT64_C(1) << 22)

/* Macros of <openssl/ssl.h> and other headers of OpenSSL. */
enum {
    TLS1_3 = 0x0304,
    CTRL_MODE = 33,
    CTRL_SESSION_CACHE = 44,
    CTRL_LEAST_VERSION = 123,
    CTRL_MOST_VERSION = 124,
    MODE_AUTO_RETRY = 4,
    MODE_RELEASE_BUFFERS = 16,
    VERIFY_PEER = 1,
    ERROR_WANT_READ = 2,
    KEY_UPDATE_OURS = 0,
    BIO_FLUSH = 11,
    BIO_RETRY_READ = 0x1 | 0x8,
    BIO_RETRY_ANY = 0x1 | 0x2 | 0x4 | 0x8,
    ALERT_REASONS = 1000, /* an error's reason is this plus the number of the alert */
    ALERT_INSUFFICIENT_SECURITY = 71,
};

struct secure_context {
    atomic_int holders; /* one for its creator, one for each channel */
    struct ssl_ctx_st *tls;
    unsigned char key[CHANNEL_KEY_BYTES];
    char purpose[32];
    uint64_t records_of_a_key;
};

struct secure_channel {
    struct secure_context *context;
    struct ssl_st *tls;
    int fd;
    enum channel_side side;
    unsigned char *out; /* encrypted bytes for the socket; NULL if there are none */
    size_t out_from, out_to, out_room;
    size_t owed;      /* 1 if the last write's last byte is encrypted but not reported */
    uint64_t records; /* number of records written with the present key */
    int no_recv;      /* true while OpenSSL may get no more from the socket */
    int short_recv;   /* true if the last recv() did not fill its buffer */
    int ended;        /* true if the other end closed the connection */
    int error;        /* errno of the socket, or EPROTO; 0 without an error */
    ct_status status; /* of a failed handshake */
    char why[192];
};

const unsigned char secure_channel_refusal[CHANNEL_REFUSAL_BYTES] = {
    0x15, 3, 3, 0, 2, 2, ALERT_INSUFFICIENT_SECURITY
};

/* ---- The socket --------------------------------------------------------------- */

/* Sends the encrypted bytes in channel->out.  Returns 0 if all are sent, else -1 with errno. */
static int tls_flush(struct secure_channel *c)
{
    while (c->out_from < c->out_to) {
        const ssize_t n =
            send(c->fd, c->out + c->out_from, c->out_to - c->out_from, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            if (errno != EAGAIN)
                c->error = errno;
            return -1;
        }
        c->out_from += (size_t)n;
    }
    c->out_from = c->out_to = 0;
    return 0;
}

/* Frees the buffer when it is empty, so that idle connections hold no memory for bytes. */
static void free_out(struct secure_channel *c)
{
    if (c->out_to > 0)
        return;
    free(c->out);
    c->out = NULL;
    c->out_room = 0;
}

static int bio_read(struct bio_st *bio, char *data, int bytes)
{
    struct secure_channel *c = libssl.BIO_get_data(bio);
    ssize_t n;

    libssl.BIO_clear_flags(bio, BIO_RETRY_ANY);
    if (c->no_recv) {
        libssl.BIO_set_flags(bio, BIO_RETRY_READ);
        return -1;
    }
    do
        n = recv(c->fd, data, (size_t)bytes, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    c->short_recv = n < bytes;
    if (n == 0)
        c->ended = 1;
    else if (n < 0 && errno == EAGAIN)
        libssl.BIO_set_flags(bio, BIO_RETRY_READ);
    else if (n < 0)
        c->error = errno;
    return (int)n;
}

/* Appends all bytes to channel->out, so that OpenSSL never has to repeat a write.
 * tls_flush() sends them. */
static int bio_write(struct bio_st *bio, const char *data, int bytes)
{
    struct secure_channel *c = libssl.BIO_get_data(bio);
    const size_t need = c->out_to + (size_t)bytes;

    if (need > c->out_room) {
        const size_t room = need > OUT_BYTES ? need : need > 4096 ? OUT_BYTES : 4096;
        unsigned char *out = realloc(c->out, room);

        if (!out) {
            c->error = ENOMEM;
            return -1;
        }
        c->out = out;
        c->out_room = room;
    }
    memcpy(c->out + c->out_to, data, (size_t)bytes);
    c->out_to = need;
    return bytes;
}

static long bio_ctrl(struct bio_st *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_FLUSH;
}

const struct bio_functions secure_channel_bio = { bio_read, bio_write, bio_ctrl };

/* ---- The key ------------------------------------------------------------------ */

static struct ssl_session_st *session_of(const struct secure_context *context, struct ssl_st *tls)
{
    static const unsigned char aes_128_gcm_sha256[] = { 0x13, 0x01 };
    const struct ssl_cipher_st *cipher = libssl.SSL_CIPHER_find(tls, aes_128_gcm_sha256);
    struct ssl_session_st *session = libssl.SSL_SESSION_new();

    if (session && cipher
        && libssl.SSL_SESSION_set1_master_key(session, context->key, sizeof context->key)
        && libssl.SSL_SESSION_set_cipher(session, cipher)
        && libssl.SSL_SESSION_set_protocol_version(session, TLS1_3))
        return session;
    libssl.SSL_SESSION_free(session);
    return NULL;
}

static const struct secure_context *context_of(struct ssl_st *tls)
{
    return ((const struct secure_channel *)libssl.SSL_get_ex_data(tls, 0))->context;
}

static int use_key(struct ssl_st *tls, const struct evp_md_st *hash, const unsigned char **name,
                   size_t *length, struct ssl_session_st **session)
{
    const struct secure_context *context = context_of(tls);

    (void)hash; /* the hash of the only cipher that we offer */
    *session = session_of(context, tls);
    *name = (const unsigned char *)context->purpose;
    *length = strlen(context->purpose);
    return *session != NULL;
}

/* An unknown name is not an error here: the handshake then fails by itself, since it has neither a
 * key nor a certificate. */
static int find_key(struct ssl_st *tls, const unsigned char *name, size_t length,
                    struct ssl_session_st **session)
{
    const struct secure_context *context = context_of(tls);

    *session = NULL;
    if (length != strlen(context->purpose) || memcmp(name, context->purpose, length) != 0)
        return 1;
    *session = session_of(context, tls);
    return *session != NULL;
}

/* ---- Contexts ----------------------------------------------------------------- */

/* Allows one cipher and one TLS version.  Returns 0 if OpenSSL refuses them. */
static int set_up(struct ssl_ctx_st *tls)
{
    libssl.SSL_CTX_ctrl(tls, CTRL_MODE, MODE_AUTO_RETRY | MODE_RELEASE_BUFFERS, NULL);
    libssl.SSL_CTX_ctrl(tls, CTRL_SESSION_CACHE, 0, NULL);
    libssl.SSL_CTX_set_default_read_buffer_len(tls, READ_BYTES);
    libssl.SSL_CTX_set_psk_use_session_callback(tls, use_key);
    libssl.SSL_CTX_set_psk_find_session_callback(tls, find_key);
    return libssl.SSL_CTX_ctrl(tls, CTRL_LEAST_VERSION, TLS1_3, NULL) == 1
           && libssl.SSL_CTX_ctrl(tls, CTRL_MOST_VERSION, TLS1_3, NULL) == 1
           && libssl.SSL_CTX_set_ciphersuites(tls, "TLS_AES_128_GCM_SHA256") == 1
           && libssl.SSL_CTX_set_num_tickets(tls, 0) == 1;
}

ct_status secure_context_create(const unsigned char key[CHANNEL_KEY_BYTES], const char *purpose,
                                struct secure_context **context)
{
    ct_status status = libssl_load();
    struct secure_context *made;

    if (status != CT_OK)
        return status;
    made = calloc(1, sizeof *made);
    if (!made || !(made->tls = libssl.SSL_CTX_new(libssl.TLS_method()))) {
        free(made);
        return ct_fail(CT_ERR_NOMEM, "no memory for TLS");
    }
    made->holders = 1;
    memcpy(made->key, key, sizeof made->key);
    made->records_of_a_key = RECORDS_OF_A_KEY;
    snprintf(made->purpose, sizeof made->purpose, "%s", purpose);
    if (!set_up(made->tls)) {
        secure_context_destroy(made);
        return ct_fail(CT_ERR_UNSUPPORTED,
                       "CT_ENCRYPT=1 needs TLS 1.3 with TLS_AES_128_GCM_SHA256, which this host's "
                       "OpenSSL does not have or does not allow (openssl.cnf)");
    }
    *context = made;
    return CT_OK;
}

void secure_context_destroy(struct secure_context *context)
{
    if (!context || atomic_fetch_sub(&context->holders, 1) > 1)
        return;
    libssl.SSL_CTX_free(context->tls);
    libssl.OPENSSL_cleanse(context->key, sizeof context->key);
    free(context);
}

void secure_context_new_key_after(struct secure_context *context, uint64_t records)
{
    context->records_of_a_key = records;
}

/* ---- Channels ----------------------------------------------------------------- */

struct secure_channel *secure_channel_create(struct secure_context *context, int fd,
                                             enum channel_side side)
{
    struct secure_channel *c = calloc(1, sizeof *c);
    struct bio_st *bio = c ? libssl.BIO_new(libssl.bio) : NULL;

    if (!bio || !(c->tls = libssl.SSL_new(context->tls))) {
        if (bio)
            libssl.BIO_free(bio);
        free(c);
        return NULL;
    }
    c->context = context;
    atomic_fetch_add(&context->holders, 1);
    c->fd = fd;
    c->side = side;
    libssl.BIO_set_data(bio, c);
    libssl.BIO_set_init(bio, 1);
    libssl.SSL_set_bio(c->tls, bio, bio); /* the SSL object frees bio */
    libssl.SSL_set_ex_data(c->tls, 0, c);
    if (side == CHANNEL_SERVER) {
        libssl.SSL_set_accept_state(c->tls);
    } else {
        /* No certificate authority is set, so no certificate is accepted. */
        libssl.SSL_set_verify(c->tls, VERIFY_PEER, NULL);
        libssl.SSL_set_connect_state(c->tls);
    }
    return c;
}

void secure_channel_destroy(struct secure_channel *channel)
{
    if (!channel)
        return;
    libssl.SSL_free(channel->tls);
    secure_context_destroy(channel->context);
    free(channel->out);
    free(channel);
}

/* ---- The handshake ------------------------------------------------------------ */

static void tls_note_failure(struct secure_channel *c, ct_status status, const char *why)
{
    if (c->why[0])
        return;
    c->status = status;
    snprintf(c->why, sizeof c->why, "%s", why);
}

/* Records in words why the last call of OpenSSL failed.  A server sends an alert to a client that
 * has another secret.  A server that does not encrypt sends secure_channel_refusal. */
static void tls_explain(struct secure_channel *c)
{
    const unsigned long reason = libssl.ERR_peek_error() & 0x7FFFFF;
    char text[sizeof c->why];

    if (reason == ALERT_REASONS + ALERT_INSUFFICIENT_SECURITY) {
        tls_note_failure(
            c, CT_ERR_INVALID,
            "does not encrypt, but this process does; set CT_ENCRYPT=1 on all hosts or on "
            "none");
    } else if (reason > ALERT_REASONS || (c->side == CHANNEL_SERVER && !c->ended && !c->error)) {
        tls_note_failure(c, CT_ERR_INVALID,
                         "has another secret than this process (CT_STORE_SECRET, "
                         "CT_STORE_SECRET_FILE)");
    } else if (c->error) {
        snprintf(text, sizeof text, "broke the TLS handshake off: %s", strerror(c->error));
        tls_note_failure(c, CT_ERR_PEER, text);
    } else if (c->ended) {
        tls_note_failure(
            c, CT_ERR_PEER,
            "closed the connection in the TLS handshake; set CT_ENCRYPT=1 and the same "
            "secret on all hosts");
    } else {
        tls_note_failure(
            c, CT_ERR_PEER,
            "answers the TLS handshake with something else; set CT_ENCRYPT=1 on all hosts "
            "or on none");
    }
}

/* The handshake writes so few bytes before the first answer that a new socket always takes them. */
enum channel_step secure_channel_handshake(struct secure_channel *c)
{
    int done, waits;

    if (c->why[0])
        return CHANNEL_FAILED;
    libssl.ERR_clear_error();
    done = libssl.SSL_do_handshake(c->tls);
    waits = done != 1 && libssl.SSL_get_error(c->tls, done) == ERROR_WANT_READ;
    if (tls_flush(c) < 0 && (waits || done == 1))
        tls_note_failure(c, CT_ERR_PEER, "does not take the bytes of the TLS handshake");
    /* The session is reused only if both ends had the key. */
    else if (done == 1 && !libssl.SSL_session_reused(c->tls))
        tls_note_failure(c, CT_ERR_INVALID, "made a TLS connection without the job's secret");
    else if (done != 1 && !waits)
        tls_explain(c);
    libssl.ERR_clear_error();
    free_out(c);
    return c->why[0] ? CHANNEL_FAILED : waits ? CHANNEL_WAITS : CHANNEL_OPEN;
}

const char *secure_channel_why(const struct secure_channel *channel)
{
    return channel->why;
}

ct_status secure_channel_status(const struct secure_channel *channel)
{
    return channel->status;
}

/* Returns 1 if the socket is ready, 0 if the deadline passed. */
static int tls_wait_for(int fd, short events, int64_t deadline)
{
    struct pollfd ready = { .fd = fd, .events = events };
    int polled;

    do
        polled = poll(&ready, 1, time_left_ms(deadline, 60000));
    while ((polled < 0 && errno == EINTR) || (polled == 0 && clock_ms() < deadline));
    return polled != 0;
}

ct_status secure_channel_connect(struct secure_context *context, int fd, const char *other_end,
                                 int64_t deadline, struct secure_channel **channel)
{
    const int64_t start = clock_ms();
    struct secure_channel *c = secure_channel_create(context, fd, CHANNEL_CLIENT);
    enum channel_step step = CHANNEL_WAITS;
    ct_status status = CT_OK;

    if (!c)
        return ct_fail(CT_ERR_NOMEM, "no memory for TLS");
    while (status == CT_OK && (step = secure_channel_handshake(c)) == CHANNEL_WAITS)
        if (!tls_wait_for(fd, POLLIN, deadline))
            status = ct_fail(CT_ERR_TIMEOUT,
                             "%s did not answer the TLS handshake in %lld ms; is CT_ENCRYPT=1 set "
                             "there, too?",
                             other_end, (long long)(clock_ms() - start));
    if (step == CHANNEL_FAILED)
        status = ct_fail(c->status, "%s %s", other_end, c->why);
    if (status != CT_OK) {
        secure_channel_destroy(c);
        return status;
    }
    secure_channel_read_ahead(c);
    *channel = c;
    return CT_OK;
}

/* ---- Reading ------------------------------------------------------------------ */

/* Returns what recv() would return (0, or -1 with errno) after OpenSSL returned `result` <= 0. */
static ssize_t no_bytes(struct secure_channel *c, int result)
{
    if (!c->ended && !c->error && libssl.SSL_get_error(c->tls, result) == ERROR_WANT_READ) {
        errno = EAGAIN;
        return -1;
    }
    libssl.ERR_clear_error();
    if (c->ended)
        return 0;
    if (!c->error) {  /* e.g. a record was changed on its way */
        tls_flush(c); /* sends TLS's alert */
        c->error = EPROTO;
        shutdown(c->fd, SHUT_RDWR);
    }
    errno = c->error;
    return -1;
}

/* Receives up to `most` bytes from the socket, and then decrypts what was received. */
static ssize_t tls_read_some(struct secure_channel *c, void *data, size_t bytes, size_t most)
{
    size_t got = 0;
    int n;

    libssl.ERR_clear_error();
    do {
        const size_t left = bytes - got;

        c->no_recv = got >= most;
        n = libssl.SSL_read(c->tls, (char *)data + got, left < READ_BYTES ? (int)left : READ_BYTES);
        got += n > 0 ? (size_t)n : 0;
    } while (n > 0 && got < bytes
             && (libssl.SSL_has_pending(c->tls) || (!c->short_recv && got < most)));
    c->no_recv = 0;
    return got > 0 ? (ssize_t)got : no_bytes(c, n);
}

ssize_t secure_channel_read(struct secure_channel *c, void *data, size_t bytes)
{
    return tls_read_some(c, data, bytes, READ_AT_ONCE);
}

ssize_t secure_channel_read_rest(struct secure_channel *c, void *data, size_t bytes)
{
    return tls_read_some(c, data, bytes, 0);
}

void secure_channel_read_ahead(struct secure_channel *channel)
{
    libssl.SSL_set_read_ahead(channel->tls, 1);
}

int secure_channel_has_more(struct secure_channel *c)
{
    char byte;
    int n;

    if (c->ended || c->error || libssl.SSL_pending(c->tls) > 0)
        return 1;
    if (!libssl.SSL_has_pending(c->tls)) /* perhaps only a part of a record has come */
        return 0;
    libssl.ERR_clear_error();
    c->no_recv = 1;
    n = libssl.SSL_peek(c->tls, &byte, 1);
    c->no_recv = 0;
    return n > 0 || no_bytes(c, n) == 0 || errno != EAGAIN;
}

int secure_channel_is_dry(const struct secure_channel *c)
{
    return c->short_recv && !libssl.SSL_has_pending(c->tls);
}

/* ---- Writing ------------------------------------------------------------------ */

/* The position of a write in its parts. */
struct source {
    const struct iovec *part, *end;
    size_t at; /* offset in that part */
};

static void skip_empty(struct source *from)
{
    while (from->part < from->end && from->at == from->part->iov_len) {
        from->part++;
        from->at = 0;
    }
}

/* Returns the bytes of the next record.  If the current part has enough bytes for a record, the
 * result points into the part; else the bytes are copied to `record`.  A part of several bytes is
 * begun with at least two of them.  So even if the last byte is owed, another byte of that part is
 * reported as written, and the caller must continue with that part. */
static const unsigned char *next_record(struct source *from, unsigned char *record, size_t *bytes)
{
    size_t size = 0;

    skip_empty(from);
    if (from->part < from->end && from->part->iov_len - from->at >= RECORD_BYTES) {
        const unsigned char *data = (const unsigned char *)from->part->iov_base + from->at;

        from->at += *bytes = RECORD_BYTES;
        return data;
    }
    while (from->part < from->end && size < RECORD_BYTES) {
        const size_t left = from->part->iov_len - from->at;
        const size_t n = left < RECORD_BYTES - size ? left : RECORD_BYTES - size;

        if (n == 1 && left > 1 && from->at == 0 && size > 0)
            break;
        memcpy(record + size, (const char *)from->part->iov_base + from->at, n);
        size += n;
        from->at += n;
        skip_empty(from);
    }
    *bytes = size;
    return record;
}

/* Encrypts up to RECORDS_AT_ONCE records into channel->out.  Returns the number of bytes taken;
 * -1 with errno. */
static ssize_t encrypt(struct secure_channel *c, struct source *from)
{
    unsigned char record[RECORD_BYTES];
    size_t taken = 0, bytes;

    libssl.ERR_clear_error();
    for (int i = 0; i < RECORDS_AT_ONCE; i++) {
        const unsigned char *data = next_record(from, record, &bytes);

        if (bytes == 0)
            break;
        if (++c->records % c->context->records_of_a_key == 0)
            libssl.SSL_key_update(c->tls, KEY_UPDATE_OURS); /* sent before this record */
        if (libssl.SSL_write(c->tls, data, (int)bytes) != (int)bytes) {
            c->error = c->error ? c->error : c->ended ? EPIPE : EPROTO;
            errno = c->error;
            return -1;
        }
        taken += bytes;
    }
    return (ssize_t)taken;
}

/* Returns 0, or -1 with errno. */
static int fail_if_broken(const struct secure_channel *c)
{
    errno = c->error;
    return c->error ? -1 : 0;
}

ssize_t secure_channel_write(struct secure_channel *c, const struct iovec *parts, int count)
{
    struct source from = { parts, parts + count, 0 };
    int is_sent = tls_flush(c) == 0;
    size_t taken = 0;
    ssize_t n = 1;

    if (is_sent && c->owed) { /* the caller's first byte was encrypted before, and is sent now */
        skip_empty(&from);
        from.at++;
        taken = 1;
        c->owed = 0;
    }
    while (is_sent && taken < WRITE_BYTES && (n = encrypt(c, &from)) > 0) {
        taken += (size_t)n;
        is_sent = tls_flush(c) == 0;
    }
    free_out(c);
    if (n < 0 || fail_if_broken(c) < 0)
        return -1;
    if (is_sent)
        return (ssize_t)taken;
    if (taken > 0) {
        c->owed = 1;
        taken--;
    }
    errno = EAGAIN;
    return taken > 0 ? (ssize_t)taken : -1;
}

/* ---- Reading and writing all bytes ------------------------------------------ */

ct_status secure_write_all(struct secure_channel *channel, int fd, const void *data, size_t bytes,
                           int64_t deadline)
{
    struct iovec part = { (void *)(uintptr_t)data, bytes };

    if (!channel)
        return socket_write_all(fd, data, bytes, deadline);
    while (part.iov_len > 0) {
        const ssize_t n = secure_channel_write(channel, &part, 1);

        if (n < 0 && errno != EAGAIN)
            return ct_fail(CT_ERR_PEER, "the connection broke: %s", strerror(errno));
        if (n < 0 && !tls_wait_for(fd, POLLOUT, deadline))
            return ct_fail(CT_ERR_TIMEOUT, "the other side does not read");
        part.iov_base = (char *)part.iov_base + (n > 0 ? n : 0);
        part.iov_len -= n > 0 ? (size_t)n : 0;
    }
    return CT_OK;
}

ct_status secure_read_all(struct secure_channel *channel, int fd, void *data, size_t bytes,
                          int64_t deadline)
{
    char *at = data;

    if (!channel)
        return socket_read_all(fd, data, bytes, deadline);
    while (bytes > 0) {
        const ssize_t n = secure_channel_read(channel, at, bytes);

        if (n == 0)
            return ct_fail(CT_ERR_PEER, "the other side closed the connection");
        if (n < 0 && errno != EAGAIN)
            return ct_fail(CT_ERR_PEER, "the connection broke: %s", strerror(errno));
        if (n < 0 && !tls_wait_for(fd, POLLIN, deadline))
            return ct_fail(CT_ERR_TIMEOUT, "the other side does not answer");
        at += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return CT_OK;
}
