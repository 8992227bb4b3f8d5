/* SPDX-License-Identifier: Apache-2.0 */
/* libssl.c - loads OpenSSL 3 at the first use.  The library is never closed, since it keeps state
 * for the whole process. */
#include "runtime/net/libssl.h"

#include <dlfcn.h>
#include <pthread.h>

/* OPENSSL_INIT_NO_ATEXIT: OpenSSL frees nothing at exit(), since one of our threads may still use
 * a connection then. */
#define NO_ATEXIT 0x00080000u
#define TYPE_OF_BIO 0x0400 /* BIO_TYPE_SOURCE_SINK */

struct libssl libssl;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int is_found;

static const struct {
    const char *name;
    void **function;
} places[] = {
#define PLACE(result, name, parameters) { #name, (void **)&libssl.name },
    SSL_FUNCTIONS(PLACE)
#undef PLACE
};

static ct_status libssl_find(void)
{
    void *library = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);

    if (!library)
        return ct_fail(CT_ERR_UNSUPPORTED,
                       "CT_ENCRYPT=1 needs OpenSSL's libssl.so.3 (Debian: libssl3): %s", dlerror());
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) /* also libcrypto's functions */
        if (!(*places[i].function = dlsym(library, places[i].name)))
            return ct_fail(CT_ERR_UNSUPPORTED, "CT_ENCRYPT=1: libssl.so.3 has no %s",
                           places[i].name);
    libssl.OPENSSL_init_ssl(NO_ATEXIT, NULL);
    libssl.bio = libssl.BIO_meth_new(TYPE_OF_BIO, "ct socket");
    if (!libssl.bio)
        return ct_fail(CT_ERR_NOMEM, "no memory for TLS");
    libssl.BIO_meth_set_read(libssl.bio, secure_channel_bio.read);
    libssl.BIO_meth_set_write(libssl.bio, secure_channel_bio.write);
    libssl.BIO_meth_set_ctrl(libssl.bio, secure_channel_bio.ctrl);
    return CT_OK;
}

ct_status libssl_load(void)
{
    ct_status status = CT_OK;

    pthread_mutex_lock(&lock);
    if (!is_found) {
        status = libssl_find();
        is_found = status == CT_OK;
    }
    pthread_mutex_unlock(&lock);
    return status;
}
