/* SPDX-License-Identifier: Apache-2.0 */
/* shared_secret.c - reads the secret, and computes HMAC-SHA256 with OpenSSL's libcrypto.
 *
 * A process loads libcrypto at the first proof.  Processes of one uid on one host need no proof, so
 * a job on one host never loads it. */
#include "runtime/net/shared_secret.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/net/socket.h"

/* ---- The secret ------------------------------------------------------------ */

static ct_status secret_take(struct secret *secret, const char *from, const char *text, size_t size)
{
    while (size > 0 && isspace((unsigned char)text[size - 1])) /* e.g. the newline of an editor */
        size--;
    for (size_t i = 0; i < size; i++)
        if (!isgraph((unsigned char)text[i])) /* the workers get the secret in a variable */
            return ct_fail(CT_ERR_INVALID,
                           "%s: character %zu of the secret is a space or not printable", from,
                           i + 1);
    if (size < SECRET_LEAST || size > sizeof secret->bytes)
        return ct_fail(CT_ERR_INVALID,
                       "%s: the secret has %zu characters; it must have %d to %zu (openssl rand "
                       "-hex 32 prints a good one)",
                       from, size, SECRET_LEAST, sizeof secret->bytes);
    memcpy(secret->bytes, text, size);
    secret->size = size;
    return CT_OK;
}

static ct_status check_owner(int fd, const char *path)
{
    struct stat info;

    if (fstat(fd, &info) < 0)
        return ct_fail(CT_ERR_SYSTEM, "CT_STORE_SECRET_FILE=%s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return ct_fail(CT_ERR_INVALID, "CT_STORE_SECRET_FILE=%s is not a regular file", path);
    if ((info.st_uid != geteuid() && info.st_uid != 0) || (info.st_mode & (S_IRWXG | S_IRWXO)))
        return ct_fail(CT_ERR_INVALID,
                       "CT_STORE_SECRET_FILE=%s: other users may read the file; run chmod 600 %s",
                       path, path);
    return CT_OK;
}

static ct_status secret_read_file(struct secret *secret, const char *path)
{
    char text[sizeof secret->bytes + 64], from[320];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = 0;
    ct_status status;

    if (fd < 0)
        return ct_fail(CT_ERR_INVALID, "CT_STORE_SECRET_FILE=%s: %s", path, strerror(errno));
    status = check_owner(fd, path);
    if (status == CT_OK && (n = read(fd, text, sizeof text)) < 0)
        status = ct_fail(CT_ERR_INVALID, "CT_STORE_SECRET_FILE=%s: %s", path, strerror(errno));
    close(fd);
    snprintf(from, sizeof from, "CT_STORE_SECRET_FILE=%s", path);
    return status == CT_OK ? secret_take(secret, from, text, (size_t)n) : status;
}

ct_status secret_read(struct secret *secret, const char *path)
{
    const char *text = path ? NULL : getenv("CT_STORE_SECRET");

    if (!path)
        path = getenv("CT_STORE_SECRET_FILE");

    secret->size = 0;
    if (text && *text)
        return secret_take(secret, "CT_STORE_SECRET", text, strlen(text));
    return path && *path ? secret_read_file(secret, path) : CT_OK;
}

static ct_status random_bytes(unsigned char *bytes, size_t size)
{
    return getrandom(bytes, size, 0) == (ssize_t)size
               ? CT_OK
               : ct_fail(CT_ERR_SYSTEM, "getrandom: %s", strerror(errno));
}

ct_status secret_make(struct secret *secret)
{
    unsigned char bytes[32];
    const ct_status status = random_bytes(bytes, sizeof bytes);

    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf((char *)secret->bytes + 2 * i, 3, "%02x", bytes[i]);
    secret->size = status == CT_OK ? 2 * sizeof bytes : 0;
    return status;
}

/* ---- The proof -------------------------------------------------------------- */

static const unsigned char hello_start[7] = { HELLO_FIRST, 'c', 't', 'r', 'u', 'n', 1 };

ct_status hello_make(unsigned char hello[HELLO_BYTES], enum hello_role role)
{
    memcpy(hello, hello_start, sizeof hello_start);
    hello[7] = (unsigned char)role;
    return random_bytes(hello + 8, NONCE_BYTES);
}

int hello_role(const unsigned char hello[HELLO_BYTES])
{
    return memcmp(hello, hello_start, sizeof hello_start) ? -1 : hello[7];
}

/* The types of libcrypto's functions, the same in all its versions. */
typedef unsigned char *hmac_function(const void *hash, const void *key, int key_bytes,
                                     const unsigned char *data, size_t bytes, unsigned char *mac,
                                     unsigned *mac_bytes);
typedef const void *hash_function(void);
typedef int init_function(uint64_t options, const void *settings);

/* OPENSSL_INIT_NO_ATEXIT: OpenSSL frees nothing at exit(), since one of our threads may still use
 * OpenSSL then (secure_channel.h).  Only the first initialization in a process counts. */
#define NO_ATEXIT 0x00080000u

static ct_status secret_load(hmac_function **hmac, hash_function **sha256)
{
    static const char *const names[] = { "libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.so" };
    init_function *init = NULL;
    void *library = NULL;

    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    *hmac = NULL;
    *sha256 = NULL;
    if (library) { /* never closed: libcrypto keeps state for the whole process */
        *(void **)&init = dlsym(library, "OPENSSL_init_crypto");
        if (init)
            init(NO_ATEXIT, NULL);
        *(void **)hmac = dlsym(library, "HMAC");
        *(void **)sha256 = dlsym(library, "EVP_sha256");
    }
    return *hmac && *sha256 ? CT_OK
                            : ct_fail(CT_ERR_UNSUPPORTED,
                                      "the job's secret needs OpenSSL's libcrypto.so.3 (Debian: "
                                      "libssl3): %s",
                                      library ? "it has no HMAC()" : dlerror());
}

ct_status secret_hmac(const struct secret *secret, const void *data, size_t bytes,
                      unsigned char mac[PROOF_BYTES])
{
    hmac_function *hmac;
    hash_function *sha256;
    unsigned size = 0;
    const ct_status status = secret_load(&hmac, &sha256);

    if (status != CT_OK)
        return status;
    if (!hmac(sha256(), secret->bytes, (int)secret->size, data, bytes, mac, &size)
        || size != PROOF_BYTES)
        return ct_fail(CT_ERR_SYSTEM, "libcrypto's HMAC-SHA256 failed");
    return CT_OK;
}

ct_status proof_make(const struct secret *secret, const char *who,
                     const unsigned char hello[HELLO_BYTES], const unsigned char nonce[NONCE_BYTES],
                     unsigned char proof[PROOF_BYTES])
{
    unsigned char text[16 + HELLO_BYTES + NONCE_BYTES] = { 0 };

    snprintf((char *)text, 16, "ct store %s", who);
    memcpy(text + 16, hello, HELLO_BYTES);
    memcpy(text + 16 + HELLO_BYTES, nonce, NONCE_BYTES);
    return secret_hmac(secret, text, sizeof text, proof);
}

/* Compares in constant time, so that the time does not tell where the proofs differ. */
int proof_equal(const unsigned char a[PROOF_BYTES], const unsigned char b[PROOF_BYTES])
{
    unsigned char differs = 0;

    for (int i = 0; i < PROOF_BYTES; i++)
        differs |= a[i] ^ b[i];
    return differs == 0;
}

ct_status secret_prove(const struct secret *secret, struct secure_channel *channel, int fd,
                       enum hello_role role, const char *where, int64_t deadline)
{
    unsigned char hello[HELLO_BYTES], nonce[NONCE_BYTES], proof[PROOF_BYTES], theirs[PROOF_BYTES];
    ct_status status = hello_make(hello, role);

    if (status == CT_OK)
        status = secure_write_all(channel, fd, hello, sizeof hello, deadline);
    if (status == CT_OK)
        status = secure_read_all(channel, fd, nonce, sizeof nonce, deadline);
    if (status != CT_OK)
        return ct_fail(
            status,
            "the store at %s does not accept the job's secret (%s); if the store is PyTorch's or "
            "has no secret, unset CT_STORE_SECRET and CT_STORE_SECRET_FILE here",
            where, ct_last_error());
    status = encryption_check_notice(nonce, sizeof nonce, where);
    if (status == CT_OK)
        status = proof_make(secret, "client", hello, nonce, proof);
    if (status == CT_OK)
        status = secure_write_all(channel, fd, proof, sizeof proof, deadline);
    if (status == CT_OK
        && (status = secure_read_all(channel, fd, theirs, sizeof theirs, deadline)) != CT_OK)
        return ct_fail(status == CT_ERR_PEER ? CT_ERR_INVALID : status,
                       "the store at %s %s (CT_STORE_SECRET, CT_STORE_SECRET_FILE): %s", where,
                       secret->size > 0 ? "has another secret than this process"
                                        : "wants the job's secret, and this process has none",
                       ct_last_error());
    if (status == CT_OK)
        status = proof_make(secret, "server", hello, nonce, proof);
    if (status == CT_OK && !proof_equal(proof, theirs))
        status =
            ct_fail(CT_ERR_INVALID, "what answers at %s does not know the job's secret", where);
    return status;
}

/* ---- CT_ENCRYPT --------------------------------------------------------------- */

const unsigned char encryption_notice[NONCE_BYTES] = "ct store: set CT_ENCRYPT=1 here";

ct_status encryption_check_secret(const struct secret *secret)
{
    return secret->size > 0
               ? CT_OK
               : ct_fail(CT_ERR_INVALID,
                         "CT_ENCRYPT=1 needs the job's secret: put one into a file (openssl rand "
                         "-hex 32 >secret; chmod 600 secret) and set CT_STORE_SECRET_FILE to it on "
                         "all hosts");
}

ct_status encryption_asked(int *asked)
{
    const char *text = getenv("CT_ENCRYPT");

    *asked = text && !strcmp(text, "1");
    if (!text || !*text || *asked || !strcmp(text, "0"))
        return CT_OK;
    return ct_fail(CT_ERR_INVALID, "CT_ENCRYPT=%s is neither 0 nor 1", text);
}

ct_status encryption_wanted(const struct secret *secret, int *wanted)
{
    const ct_status status = encryption_asked(wanted);

    return status == CT_OK && *wanted ? encryption_check_secret(secret) : status;
}

ct_status secret_context(const struct secret *secret, const char *purpose,
                         struct secure_context **context)
{
    unsigned char key[CHANNEL_KEY_BYTES];
    char name[32];
    ct_status status = encryption_check_secret(secret);

    snprintf(name, sizeof name, "ct tls %s", purpose);
    if (status == CT_OK)
        status = secret_hmac(secret, name, strlen(name), key);
    return status == CT_OK ? secure_context_create(key, name, context) : status;
}

ct_status encryption_connect(const struct secret *secret, int fd, const char *where,
                             int64_t deadline, struct secure_channel **channel)
{
    struct secure_context *context = NULL;
    char name[330];
    ct_status status;

    if (socket_stays_here(fd))
        return CT_OK;
    snprintf(name, sizeof name, "the store at %s", where);
    status = secret_context(secret, "store", &context);
    if (status == CT_OK)
        status = secure_channel_connect(context, fd, name, deadline, channel);
    secure_context_destroy(context);
    return status;
}

ct_status encryption_check_notice(const void *answer, size_t bytes, const char *where)
{
    if (memcmp(answer, encryption_notice, bytes) != 0)
        return CT_OK;
    return ct_fail(CT_ERR_INVALID,
                   "the store at %s encrypts, but this process does not; set CT_ENCRYPT=1 on all "
                   "hosts or on none",
                   where);
}
