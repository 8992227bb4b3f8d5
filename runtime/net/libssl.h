/* SPDX-License-Identifier: Apache-2.0 */
/* libssl.h - the functions of OpenSSL 3 that secure_channel.c calls.
 *
 * A process loads libssl when it first encrypts.  So a build needs no headers of OpenSSL, and a
 * process that does not encrypt loads nothing.  The prototypes are those of <openssl/ssl.h>; a test
 * compares them with that header.  To add a function, add a row. */
#ifndef RUNTIME_NET_LIBSSL_H
#define RUNTIME_NET_LIBSSL_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

struct ssl_st;
struct ssl_ctx_st;
struct ssl_method_st;
struct ssl_session_st;
struct ssl_cipher_st;
struct bio_st;
struct bio_method_st;
struct evp_md_st;
struct x509_store_ctx_st;
struct ossl_init_settings_st;

/* The types of the PSK callbacks: the client's callback names the key, the server's
 * callback finds it. */
typedef int ssl_use_session(struct ssl_st *ssl, const struct evp_md_st *hash,
                            const unsigned char **name, size_t *length,
                            struct ssl_session_st **session);
typedef int ssl_find_session(struct ssl_st *ssl, const unsigned char *name, size_t length,
                             struct ssl_session_st **session);
typedef int ssl_verify(int ok, struct x509_store_ctx_st *certificates);
typedef int bio_read_function(struct bio_st *bio, char *data, int bytes);
typedef int bio_write_function(struct bio_st *bio, const char *data, int bytes);
typedef long bio_ctrl_function(struct bio_st *bio, int command, long number, void *pointer);

/* clang-format off */
#define SSL_FUNCTIONS(X)                                                                           \
    X(int, OPENSSL_init_ssl, (uint64_t options, const struct ossl_init_settings_st *settings))     \
    X(const struct ssl_method_st *, TLS_method, (void))                                            \
    X(struct ssl_ctx_st *, SSL_CTX_new, (const struct ssl_method_st *method))                      \
    X(void, SSL_CTX_free, (struct ssl_ctx_st *context))                                            \
    X(long, SSL_CTX_ctrl, (struct ssl_ctx_st *context, int command, long number, void *pointer))   \
    X(int, SSL_CTX_set_ciphersuites, (struct ssl_ctx_st *context, const char *names))              \
    X(int, SSL_CTX_set_num_tickets, (struct ssl_ctx_st *context, size_t tickets))                  \
    X(void, SSL_CTX_set_default_read_buffer_len, (struct ssl_ctx_st *context, size_t bytes))       \
    X(void, SSL_CTX_set_psk_use_session_callback,                                                  \
      (struct ssl_ctx_st *context, ssl_use_session *use))                                          \
    X(void, SSL_CTX_set_psk_find_session_callback,                                                 \
      (struct ssl_ctx_st *context, ssl_find_session *find))                                        \
    X(struct ssl_st *, SSL_new, (struct ssl_ctx_st *context))                                      \
    X(void, SSL_free, (struct ssl_st *ssl))                                                        \
    X(void, SSL_set_read_ahead, (struct ssl_st *ssl, int yes))                                     \
    X(void, SSL_set_bio, (struct ssl_st *ssl, struct bio_st *read, struct bio_st *write))          \
    X(int, SSL_set_ex_data, (struct ssl_st *ssl, int place, void *data))                           \
    X(void *, SSL_get_ex_data, (const struct ssl_st *ssl, int place))                              \
    X(void, SSL_set_verify, (struct ssl_st *ssl, int mode, ssl_verify *verify))                    \
    X(void, SSL_set_connect_state, (struct ssl_st *ssl))                                           \
    X(void, SSL_set_accept_state, (struct ssl_st *ssl))                                            \
    X(int, SSL_do_handshake, (struct ssl_st *ssl))                                                 \
    X(int, SSL_session_reused, (const struct ssl_st *ssl))                                         \
    X(int, SSL_read, (struct ssl_st *ssl, void *data, int bytes))                                  \
    X(int, SSL_peek, (struct ssl_st *ssl, void *data, int bytes))                                  \
    X(int, SSL_write, (struct ssl_st *ssl, const void *data, int bytes))                           \
    X(int, SSL_pending, (const struct ssl_st *ssl))                                                \
    X(int, SSL_has_pending, (const struct ssl_st *ssl))                                            \
    X(int, SSL_get_error, (const struct ssl_st *ssl, int result))                                  \
    X(int, SSL_key_update, (struct ssl_st *ssl, int type))                                         \
    X(const struct ssl_cipher_st *, SSL_CIPHER_find,                                               \
      (struct ssl_st *ssl, const unsigned char *number))                                           \
    X(struct ssl_session_st *, SSL_SESSION_new, (void))                                            \
    X(void, SSL_SESSION_free, (struct ssl_session_st *session))                                    \
    X(int, SSL_SESSION_set1_master_key,                                                            \
      (struct ssl_session_st *session, const unsigned char *key, size_t bytes))                    \
    X(int, SSL_SESSION_set_cipher,                                                                 \
      (struct ssl_session_st *session, const struct ssl_cipher_st *cipher))                        \
    X(int, SSL_SESSION_set_protocol_version, (struct ssl_session_st *session, int version))        \
    X(struct bio_method_st *, BIO_meth_new, (int type, const char *name))                          \
    X(int, BIO_meth_set_read, (struct bio_method_st *method, bio_read_function *read))             \
    X(int, BIO_meth_set_write, (struct bio_method_st *method, bio_write_function *write))          \
    X(int, BIO_meth_set_ctrl, (struct bio_method_st *method, bio_ctrl_function *ctrl))             \
    X(struct bio_st *, BIO_new, (const struct bio_method_st *method))                              \
    X(int, BIO_free, (struct bio_st *bio))                                                         \
    X(void, BIO_set_data, (struct bio_st *bio, void *data))                                        \
    X(void *, BIO_get_data, (struct bio_st *bio))                                                  \
    X(void, BIO_set_init, (struct bio_st *bio, int is_ready))                                      \
    X(void, BIO_set_flags, (struct bio_st *bio, int flags))                                        \
    X(void, BIO_clear_flags, (struct bio_st *bio, int flags))                                      \
    X(unsigned long, ERR_peek_error, (void))                                                       \
    X(void, ERR_clear_error, (void))                                                               \
    X(void, OPENSSL_cleanse, (void *data, size_t bytes))
/* clang-format on */

struct libssl {
#define SSL_FIELD(result, name, parameters) __typeof__(result(*) parameters) name;
    SSL_FUNCTIONS(SSL_FIELD)
#undef SSL_FIELD
    struct bio_method_st *bio; /* the functions by which secure_channel.c moves bytes */
};

/* Filled in by the first libssl_load() that succeeds, and never changed again.  libssl_load()
 * returns CT_ERR_UNSUPPORTED if libssl.so.3 is missing. */
extern struct libssl libssl;
ct_status libssl_load(void);

/* The functions by which all our connections read and write. */
struct bio_functions {
    bio_read_function *read;
    bio_write_function *write;
    bio_ctrl_function *ctrl;
};
extern const struct bio_functions secure_channel_bio;

#endif
