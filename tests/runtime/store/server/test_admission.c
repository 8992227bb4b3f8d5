/* SPDX-License-Identifier: Apache-2.0 */
/* test_admission.c - which connections become clients: the uid of a connection, the secret, and its
 * proof.
 *
 * All connections here come from this host with our uid and are admitted without a proof.  So the
 * server refuses only wrong hellos and sockets of another uid. */
#include "tests/harness.h"

#include <event2/event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/net/socket.h"
#include "runtime/store/server/launcher_peers.h"
#include "runtime/net/peer_uid.h"
#include "runtime/store/server/server.h"
#include "runtime/net/shared_secret.h"
#include "runtime/util/clock.h"

enum { LIMIT_MS = 30000, NOBODY = 65534 };

static const struct secret ours = { "0123456789abcdef", 16 };
static const struct secret another = { "0123456789abcdeg", 16 };

static int64_t limit(void)
{
    return deadline_after(LIMIT_MS);
}

/* ---- The uid of a peer ---------------------------------------------------------- */

/* The ends of a connection as its server sees them. */
struct ends {
    int listener, client, accepted;
    struct sockaddr_storage peer, self;
};

static struct ends ends_of(const char *host, const char *to)
{
    struct ends e = { .listener = -1 };
    socklen_t peer_size = sizeof e.peer, self_size = sizeof e.self;

    EXPECT_OK(socket_listen(host, 0, &e.listener));
    EXPECT_OK(socket_connect(to, socket_port(e.listener), limit(), &e.client));
    EXPECT_OK(socket_accept(e.listener, limit(), &e.accepted));
    assert_int_equal(getpeername(e.accepted, (struct sockaddr *)&e.peer, &peer_size), 0);
    assert_int_equal(getsockname(e.accepted, (struct sockaddr *)&e.self, &self_size), 0);
    return e;
}

/* PEER_HERE with our uid while it is open, PEER_ELSEWHERE when it is closed, by both functions. */
static void has_our_uid_until_it_closes(const char *host, const char *to, int family)
{
    const struct ends e = ends_of(host, to);
    uid_t uid = 4711, proc_uid = 4711;
    int netlink = peer_uid_open();

    assert_int_equal(e.peer.ss_family, family);
    assert_int_equal(peer_uid(netlink, &e.peer, &e.self, &uid), PEER_HERE);
    assert_int_equal(peer_uid_proc(&e.peer, &e.self, &proc_uid), PEER_HERE);
    assert_int_equal(uid, geteuid());
    assert_int_equal(proc_uid, geteuid());
    close(e.client);
    assert_int_equal(peer_uid(netlink, &e.peer, &e.self, &uid), PEER_ELSEWHERE);
    assert_int_equal(peer_uid_proc(&e.peer, &e.self, &uid), PEER_ELSEWHERE);
    close(e.accepted);
    close(e.listener);
    if (netlink >= 0)
        close(netlink);
}

static int there_is_ipv6(void)
{
    int fd;

    if (socket_listen("::1", 0, &fd) != CT_OK)
        return 0;
    close(fd);
    return 1;
}

static void an_ipv4_peer_is_known_by_its_uid(void **state)
{
    (void)state;
    has_our_uid_until_it_closes("127.0.0.1", "127.0.0.1", AF_INET);
}

static void an_ipv6_peer_is_known_by_its_uid(void **state)
{
    (void)state;
    if (!there_is_ipv6())
        skip();
    has_our_uid_until_it_closes("::1", "::1", AF_INET6);
}

/* Its address is ::ffff:127.0.0.1 to the server, and 127.0.0.1 to the kernel. */
static void a_mapped_peer_is_known_by_its_uid(void **state)
{
    (void)state;
    if (!there_is_ipv6())
        skip();
    has_our_uid_until_it_closes(NULL, "127.0.0.1", AF_INET6);
}

static void the_uid_is_that_of_the_socket(void **state)
{
    struct ends e;
    uid_t uid = 4711, proc_uid = 4711;
    int netlink = peer_uid_open();

    (void)state;
    if (geteuid() != 0)
        skip();
    setfsuid(NOBODY); /* of this thread alone: the owner of the sockets it makes */
    e = ends_of("127.0.0.1", "127.0.0.1");
    setfsuid(0);
    assert_int_equal(peer_uid(netlink, &e.peer, &e.self, &uid), PEER_HERE);
    assert_int_equal(peer_uid_proc(&e.peer, &e.self, &proc_uid), PEER_HERE);
    assert_int_equal(uid, NOBODY);
    assert_int_equal(proc_uid, NOBODY);
    close(e.client);
    close(e.accepted);
    close(e.listener);
    if (netlink >= 0)
        close(netlink);
}

/* A client queries its server's uid, and the server may be slow to accept. */
static void a_connection_is_pending_until_it_is_accepted(void **state)
{
    struct sockaddr_storage server = { 0 }, self = { 0 };
    socklen_t server_size = sizeof server, self_size = sizeof self;
    const int netlink = peer_uid_open();
    int listener, client, accepted;
    uid_t uid = 4711;

    (void)state;
    EXPECT_OK(socket_listen("127.0.0.1", 0, &listener));
    EXPECT_OK(socket_connect("127.0.0.1", socket_port(listener), limit(), &client));
    assert_int_equal(getpeername(client, (struct sockaddr *)&server, &server_size), 0);
    assert_int_equal(getsockname(client, (struct sockaddr *)&self, &self_size), 0);
    assert_int_equal(peer_uid(netlink, &server, &self, &uid), PEER_PENDING);
    assert_int_equal(peer_uid_proc(&server, &self, &uid), PEER_PENDING);
    EXPECT_OK(socket_accept(listener, limit(), &accepted));
    assert_int_equal(peer_uid(netlink, &server, &self, &uid), PEER_HERE);
    assert_int_equal(uid, geteuid());
    assert_int_equal(peer_uid_proc(&server, &self, &uid), PEER_HERE);
    close(accepted);
    assert_int_equal(peer_uid(netlink, &server, &self, &uid), PEER_ELSEWHERE);
    assert_int_equal(peer_uid_proc(&server, &self, &uid), PEER_ELSEWHERE);
    close(client);
    close(listener);
    if (netlink >= 0)
        close(netlink);
}

/* The kernel gives a listener if it finds no connection.  A listener is not the other end. */
static void a_listener_is_not_taken_for_a_connection(void **state)
{
    struct sockaddr_in stranger = { .sin_family = AF_INET, .sin_addr = { htonl(0x0a090909) } };
    struct ends e = ends_of("127.0.0.1", "127.0.0.1");
    struct sockaddr_storage peer = { 0 };
    const int netlink = peer_uid_open();
    uid_t uid = 4711;
    int everywhere;

    (void)state;
    EXPECT_OK(socket_listen("0.0.0.0", 0, &everywhere));
    stranger.sin_port = htons((uint16_t)socket_port(everywhere));
    memcpy(&peer, &stranger, sizeof stranger);
    assert_int_equal(peer_uid(netlink, &peer, &e.self, &uid), PEER_ELSEWHERE);
    assert_int_equal(peer_uid_proc(&peer, &e.self, &uid), PEER_ELSEWHERE);
    close(everywhere);
    close(e.client);
    close(e.accepted);
    close(e.listener);
    if (netlink >= 0)
        close(netlink);
}

/* ---- Reading the secret ----------------------------------------------------------- */

static char directory[64], path[96];

static int secret_file(void **state)
{
    (void)state;
    unsetenv("CT_STORE_SECRET");
    unsetenv("CT_STORE_SECRET_FILE");
    snprintf(directory, sizeof directory, "/tmp/ct-door-XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    snprintf(path, sizeof path, "%s/secret", directory);
    return 0;
}

static int no_secret_file(void **state)
{
    (void)state;
    unsetenv("CT_STORE_SECRET");
    unsetenv("CT_STORE_SECRET_FILE");
    unlink(path);
    return rmdir(directory);
}

static void write_secret(const char *text, mode_t mode)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

static void reads_as_ours(const char *from)
{
    struct secret secret;

    EXPECT_OK(secret_read(&secret, from));
    assert_int_equal(secret.size, ours.size);
    assert_memory_equal(secret.bytes, ours.bytes, ours.size);
}

static void a_secret_comes_from_the_environment_or_a_file(void **state)
{
    struct secret secret = { .size = 1 };

    (void)state;
    EXPECT_OK(secret_read(&secret, NULL)); /* there is none */
    assert_int_equal(secret.size, 0);
    write_secret("0123456789abcdef\n", 0600); /* with an editor's newline */
    reads_as_ours(path);
    setenv("CT_STORE_SECRET_FILE", path, 1);
    reads_as_ours(NULL);
    setenv("CT_STORE_SECRET", "0123456789abcdef", 1);
    setenv("CT_STORE_SECRET_FILE", "/nowhere", 1); /* CT_STORE_SECRET goes first */
    reads_as_ours(NULL);
}

static void a_secret_has_from_16_to_256_characters(void **state)
{
    struct secret secret;
    char text[258];

    (void)state;
    memset(text, 's', sizeof text - 1);
    for (size_t size = 1; size < sizeof text; size++) {
        text[size] = 0;
        setenv("CT_STORE_SECRET", text, 1);
        if (size >= 16 && size <= 256) {
            EXPECT_OK(secret_read(&secret, NULL));
            assert_int_equal(secret.size, size);
        } else {
            EXPECT_ERROR(secret_read(&secret, NULL), CT_ERR_INVALID, "CT_STORE_SECRET|16|256");
            assert_int_equal(secret.size, 0);
        }
        text[size] = 's';
    }
    unsetenv("CT_STORE_SECRET");
    write_secret("too_short\n", 0600);
    EXPECT_ERROR(secret_read(&secret, path), CT_ERR_INVALID, "CT_STORE_SECRET_FILE|secret|9");
}

static void a_secret_with_a_space_inside_is_refused(void **state)
{
    struct secret secret;

    (void)state;
    setenv("CT_STORE_SECRET", "01234567 9abcdef0", 1);
    EXPECT_ERROR(secret_read(&secret, NULL), CT_ERR_INVALID, "CT_STORE_SECRET|character 9");
    unsetenv("CT_STORE_SECRET");
    write_secret("0123456789abcdef\nanother line\n", 0600);
    EXPECT_ERROR(secret_read(&secret, path), CT_ERR_INVALID, "CT_STORE_SECRET_FILE|character 17");
}

static void a_secret_that_others_may_read_is_refused(void **state)
{
    static const mode_t modes[] = { 0640, 0604, 0644, 0660, 0610 };
    struct secret secret;

    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        write_secret("0123456789abcdef", modes[i]);
        EXPECT_ERROR(secret_read(&secret, path), CT_ERR_INVALID,
                     "other users may read the file; run chmod 600");
        assert_int_equal(secret.size, 0);
    }
}

/* A FIFO without a writer: open() must not wait for one. */
static void a_secret_file_that_is_no_regular_file_is_refused(void **state)
{
    struct secret secret;

    (void)state;
    EXPECT_ERROR(secret_read(&secret, path), CT_ERR_INVALID, "CT_STORE_SECRET_FILE|no such file");
    EXPECT_ERROR(secret_read(&secret, directory), CT_ERR_INVALID, " is not a regular file");
    assert_int_equal(mkfifo(path, 0600), 0);
    EXPECT_ERROR(secret_read(&secret, path), CT_ERR_INVALID, " is not a regular file");
}

static void each_generated_secret_is_different(void **state)
{
    struct secret one, two;

    (void)state;
    EXPECT_OK(secret_make(&one));
    EXPECT_OK(secret_make(&two));
    assert_int_equal(one.size, 64);
    assert_int_equal(two.size, 64);
    assert_memory_not_equal(one.bytes, two.bytes, 64);
    assert_int_equal(strspn((char *)one.bytes, "0123456789abcdef"), 64);
}

/* ---- The proof ---------------------------------------------------------------------- */

/* By Python's hmac: the secret 0123456789abcdef over "ct store client" or "...server",
 * padded to 16, the bytes 0 to 39 and the bytes 100 to 131. */
static const char client_proof[] =
    "9f1a9bb47ab68a183ad35afa02a8a1fdd840b8b86ffbe73dfe8a1123e0f9c8d5";
static const char server_proof[] =
    "47c267d636ef713272eb1311e3616d111e9b62fe3b568414cba24d23c741001d";

static void proof_is(const char *who, const char *wanted)
{
    unsigned char hello[HELLO_BYTES], nonce[NONCE_BYTES], proof[PROOF_BYTES];
    char text[2 * PROOF_BYTES + 1];

    for (int i = 0; i < HELLO_BYTES; i++)
        hello[i] = (unsigned char)i;
    for (int i = 0; i < NONCE_BYTES; i++)
        nonce[i] = (unsigned char)(100 + i);
    EXPECT_OK(proof_make(&ours, who, hello, nonce, proof));
    for (int i = 0; i < PROOF_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", proof[i]);
    assert_string_equal(text, wanted);
    EXPECT(proof_equal(proof, proof));
    EXPECT_OK(proof_make(&another, who, hello, nonce, nonce));
    EXPECT(!proof_equal(proof, nonce));
}

static void the_proofs_of_client_and_server_are_hmacs_of_different_words(void **state)
{
    (void)state;
    proof_is("client", client_proof);
    proof_is("server", server_proof);
}

/* ---- A server with a policy ----------------------------------------------------------- */

static struct {
    struct event_base *base;
    struct event *stop;
    struct store_server *server;
    pthread_t thread;
    int stop_fd, port, open_before;
    _Atomic int messages;    /* messages of agents that the server read */
    _Atomic int agents_gone; /* agents that disconnected */
} served;

static void on_stop(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    event_base_loopbreak(arg);
}

static void *serve(void *arg)
{
    event_base_dispatch(arg);
    return NULL;
}

enum { CLEAR = 200, REFUSE = 202 }; /* a message of this type clears the server, ends the agent */

/* A message of an agent is echoed with the next type. */
static void on_message(void *arg, struct store_agent *agent, int type, const void *data,
                       size_t bytes)
{
    (void)arg;
    served.messages++;
    if (type == CLEAR)
        store_server_clear(served.server);
    store_agent_send(agent, type + 1, data, bytes);
    if (type == REFUSE)
        store_agent_end(agent);
}

static void on_left(void *arg, struct store_agent *agent, int error)
{
    (void)arg;
    (void)agent;
    (void)error;
    served.agents_gone++;
}

static const struct store_agent_hooks hooks = { on_message, on_left };

static int serve_with(const struct store_policy *policy)
{
    int fd;

    served.open_before = open_descriptors();
    served.agents_gone = 0;
    served.messages = 0;
    if (socket_listen("127.0.0.1", 0, &fd) != CT_OK)
        return -1;
    served.port = socket_port(fd);
    served.stop_fd = eventfd(0, EFD_CLOEXEC);
    served.base = event_base_new();
    served.stop = event_new(served.base, served.stop_fd, EV_READ, on_stop, served.base);
    event_add(served.stop, NULL);
    if (store_server_create(served.base, fd, policy, &served.server) != CT_OK)
        return -1;
    store_server_on_agents(served.server, &hooks, NULL);
    return pthread_create(&served.thread, NULL, serve, served.base);
}

static int serve_with_our_secret(void **state)
{
    struct store_policy policy = STORE_POLICY_INIT;

    (void)state;
    policy.secret = ours;
    return serve_with(&policy);
}

static int serve_and_encrypt(void **state)
{
    struct store_policy policy = STORE_POLICY_INIT;

    (void)state;
    policy.secret = ours;
    policy.encrypts = 1;
    return serve_with(&policy);
}

static int serve_without_a_secret(void **state)
{
    const struct store_policy policy = STORE_POLICY_INIT;

    (void)state;
    return serve_with(&policy);
}

static int stop_serving(void **state)
{
    const uint64_t one = 1;

    (void)state;
    if (write(served.stop_fd, &one, sizeof one) != (ssize_t)sizeof one)
        return -1;
    pthread_join(served.thread, NULL);
    store_server_destroy(served.server);
    event_free(served.stop);
    event_base_free(served.base);
    close(served.stop_fd);
    return open_descriptors() == served.open_before ? 0 : -1;
}

/* ---- Connections ------------------------------------------------------------------------ */

#define MAGIC "\x00\xce\xf7\x85\x3c"
#define PING "\x0dnonc"
/* SET "/k" "v", DELETE_KEY "/k" and CHECK of "/k". */
#define SET_K "\x01\x02\0\0\0\0\0\0\0/k\x01\0\0\0\0\0\0\0v"
#define DELETE_K "\x08\x02\0\0\0\0\0\0\0/k"
#define CHECK_K "\x05\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0/k"

static void send_bytes(int fd, const void *data, size_t bytes)
{
    EXPECT_OK(socket_write_all(fd, data, bytes, limit()));
}

static void receive_bytes(int fd, void *data, size_t bytes)
{
    EXPECT_OK(socket_read_all(fd, data, bytes, limit()));
}

static int new_client(void)
{
    int fd;

    EXPECT_OK(socket_connect("127.0.0.1", served.port, limit(), &fd));
    return fd;
}

static void is_served(int fd)
{
    char echo[4];

    send_bytes(fd, PING, 5);
    receive_bytes(fd, echo, 4);
    assert_memory_equal(echo, "nonc", 4);
}

static void is_closed(int fd)
{
    char byte;

    EXPECT_STATUS(socket_read_all(fd, &byte, 1, limit()), CT_ERR_PEER);
    close(fd);
}

/* Checks as a client that is admitted by its uid. */
static int k_is_there(void)
{
    const int fd = new_client();
    char missing;

    send_bytes(fd, MAGIC CHECK_K, sizeof MAGIC CHECK_K - 1);
    receive_bytes(fd, &missing, 1);
    close(fd);
    return !missing;
}

/* The hello and the proof that a client sent. */
struct sent_proof {
    unsigned char bytes[HELLO_BYTES + PROOF_BYTES];
};

static struct sent_proof send_proof(int fd, const struct secret *secret, enum hello_role role)
{
    unsigned char nonce[NONCE_BYTES];
    struct sent_proof proof;

    EXPECT_OK(hello_make(proof.bytes, role));
    send_bytes(fd, proof.bytes, HELLO_BYTES);
    receive_bytes(fd, nonce, NONCE_BYTES);
    EXPECT_OK(proof_make(secret, "client", proof.bytes, nonce, proof.bytes + HELLO_BYTES));
    send_bytes(fd, proof.bytes + HELLO_BYTES, PROOF_BYTES);
    return proof;
}

static void a_client_of_our_uid_is_admitted_without_a_proof(void **state)
{
    const int fd = new_client();

    (void)state;
    send_bytes(fd, MAGIC, 5);
    is_served(fd);
    close(fd);
}

/* ---- CT_ENCRYPT --------------------------------------------------------------------- */

static ct_status connect_encrypted(int fd, const struct secret *secret,
                                   struct secure_channel **channel)
{
    struct secure_context *context;
    ct_status status;

    EXPECT_OK(secret_context(secret, "store", &context));
    status = secure_channel_connect(context, fd, "the-test", limit(), channel);
    secure_context_destroy(context);
    return status;
}

static void an_encrypted_client_is_served(void **state)
{
    struct secure_channel *channel = NULL;
    const int fd = new_client();
    char missing;

    (void)state;
    EXPECT_OK(connect_encrypted(fd, &ours, &channel));
    EXPECT_OK(secret_prove(&ours, channel, fd, HELLO_CLIENT, "the test", limit()));
    EXPECT_OK(secure_write_all(channel, fd, MAGIC SET_K CHECK_K, sizeof MAGIC SET_K CHECK_K - 1,
                               limit()));
    EXPECT_OK(secure_read_all(channel, fd, &missing, 1, limit()));
    EXPECT(!missing);
    secure_channel_destroy(channel);
    close(fd);
    EXPECT(k_is_there()); /* a plain client, as PyTorch's on this host is */
}

/* Many records come with one recv(): no request may be left in the channel. */
static void requests_that_the_channel_has_read_ahead_are_served(void **state)
{
    enum { PINGS = 5000 };
    struct secure_channel *channel = NULL;
    const int fd = new_client();
    char echo[4];

    (void)state;
    EXPECT_OK(connect_encrypted(fd, &ours, &channel));
    EXPECT_OK(secure_write_all(channel, fd, MAGIC, 5, limit()));
    for (int i = 0; i < PINGS; i++)
        EXPECT_OK(secure_write_all(channel, fd, PING, 5, limit()));
    for (int i = 0; i < PINGS; i++) {
        EXPECT_OK(secure_read_all(channel, fd, echo, 4, limit()));
        assert_memory_equal(echo, "nonc", 4);
    }
    secure_channel_destroy(channel);
    close(fd);
}

/* A value that no socket buffer takes, to a client that reads late. */
static void a_large_value_goes_out_encrypted(void **state)
{
    enum { SIZE = 20 << 20 };
    const uint64_t size = SIZE;
    struct secure_channel *channel = NULL;
    const int fd = new_client();
    unsigned char *value = malloc(SIZE), *got = malloc(SIZE);
    uint64_t length = 0;

    (void)state;
    for (size_t i = 0; i < SIZE; i++)
        value[i] = (unsigned char)(i * 31 >> 3);
    EXPECT_OK(connect_encrypted(fd, &ours, &channel));
    EXPECT_OK(secure_write_all(channel, fd, MAGIC "\x01\x02\0\0\0\0\0\0\0/k", 16, limit()));
    EXPECT_OK(secure_write_all(channel, fd, &size, 8, limit()));
    EXPECT_OK(secure_write_all(channel, fd, value, SIZE, limit()));
    EXPECT_OK(secure_write_all(channel, fd, "\x03\x02\0\0\0\0\0\0\0/k" PING, 16, limit()));
    usleep(50000);
    EXPECT_OK(secure_read_all(channel, fd, &length, 8, limit()));
    assert_int_equal(length, SIZE);
    EXPECT_OK(secure_read_all(channel, fd, got, SIZE, limit()));
    EXPECT(!memcmp(value, got, SIZE));
    EXPECT_OK(secure_read_all(channel, fd, got, 4, limit()));
    assert_memory_equal(got, "nonc", 4);
    secure_channel_destroy(channel);
    close(fd);
    free(value);
    free(got);
}

static void an_encrypted_client_with_another_secret_is_closed(void **state)
{
    struct secure_channel *channel = NULL;
    const int fd = new_client();

    (void)state;
    EXPECT_ERROR(connect_encrypted(fd, &another, &channel), CT_ERR_INVALID,
                 "the-test|another secret");
    is_closed(fd);
}

static void a_store_that_does_not_encrypt_says_so(void **state)
{
    struct secure_channel *channel = NULL;
    const int fd = new_client();

    (void)state;
    EXPECT_ERROR(connect_encrypted(fd, &ours, &channel), CT_ERR_INVALID,
                 "the-test|does not encrypt|CT_ENCRYPT=1");
    is_closed(fd);
}

/* A handshake that stops, or is cut at any byte, keeps no one else from being served. */
static void a_handshake_that_stops_blocks_no_other_client(void **state)
{
    struct secure_context *context;
    int silent[30];

    (void)state;
    EXPECT_OK(secret_context(&ours, "store", &context));
    for (int i = 0; i < 30; i++) {
        struct secure_channel *channel;
        unsigned char hello[1024];
        int pair[2];
        ssize_t bytes;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        channel = secure_channel_create(context, pair[0], CHANNEL_CLIENT);
        secure_channel_handshake(channel);
        bytes = recv(pair[1], hello, sizeof hello, 0);
        silent[i] = new_client();
        send_bytes(silent[i], hello, (size_t)bytes * (size_t)i / 29);
        secure_channel_destroy(channel);
        close(pair[0]);
        close(pair[1]);
    }
    an_encrypted_client_is_served(state);
    for (int i = 0; i < 30; i++)
        close(silent[i]);
    secure_context_destroy(context);
}

static void a_client_of_another_uid_is_closed(void **state)
{
    int fd;

    (void)state;
    if (geteuid() != 0)
        skip();
    setfsuid(NOBODY);
    fd = new_client();
    setfsuid(0);
    send_bytes(fd, MAGIC SET_K, sizeof MAGIC SET_K - 1);
    is_closed(fd);
    EXPECT(!k_is_there());
}

/* The secret admits a client of any uid. */
static void a_client_that_knows_the_secret_is_served(void **state)
{
    const int fd = new_client();

    (void)state;
    EXPECT_OK(secret_prove(&ours, NULL, fd, HELLO_CLIENT, "the test", limit()));
    send_bytes(fd, MAGIC SET_K, sizeof MAGIC SET_K - 1);
    is_served(fd);
    EXPECT(k_is_there());
    close(fd);
}

static void a_hello_may_come_a_byte_at_a_time_with_the_requests_behind(void **state)
{
    unsigned char hello[HELLO_BYTES], nonce[NONCE_BYTES], theirs[PROOF_BYTES], wanted[PROOF_BYTES];
    unsigned char rest[PROOF_BYTES + 10];
    const int fd = new_client();
    char echo[4];

    (void)state;
    EXPECT_OK(hello_make(hello, HELLO_CLIENT));
    for (int i = 0; i < HELLO_BYTES; i++)
        send_bytes(fd, hello + i, 1);
    receive_bytes(fd, nonce, NONCE_BYTES);
    EXPECT_OK(proof_make(&ours, "client", hello, nonce, rest));
    memcpy(rest + PROOF_BYTES, MAGIC PING, 10);
    send_bytes(fd, rest, sizeof rest); /* the proof, VALIDATE and PING in one */
    receive_bytes(fd, theirs, PROOF_BYTES);
    EXPECT_OK(proof_make(&ours, "server", hello, nonce, wanted));
    EXPECT(proof_equal(theirs, wanted));
    receive_bytes(fd, echo, 4);
    assert_memory_equal(echo, "nonc", 4);
    close(fd);
}

static void a_client_with_another_secret_is_closed(void **state)
{
    int fd = new_client();

    (void)state;
    EXPECT_ERROR(secret_prove(&another, NULL, fd, HELLO_CLIENT, "the-test", limit()),
                 CT_ERR_INVALID, "the-test|another secret");
    close(fd);
    fd = new_client();
    send_proof(fd, &another, HELLO_CLIENT);
    socket_write_all(fd, MAGIC SET_K, sizeof MAGIC SET_K - 1, limit()); /* it may be closed */
    is_closed(fd); /* without the server's proof */
    EXPECT(!k_is_there());
}

/* No bit of the proof may differ. */
static void a_proof_with_one_bit_wrong_is_closed(void **state)
{
    (void)state;
    for (int bit = 0; bit < 8 * PROOF_BYTES; bit += 5) {
        unsigned char hello[HELLO_BYTES], nonce[NONCE_BYTES], proof[PROOF_BYTES];
        const int fd = new_client();

        EXPECT_OK(hello_make(hello, HELLO_CLIENT));
        send_bytes(fd, hello, HELLO_BYTES);
        receive_bytes(fd, nonce, NONCE_BYTES);
        EXPECT_OK(proof_make(&ours, "client", hello, nonce, proof));
        proof[bit / 8] ^= (unsigned char)(1 << bit % 8);
        send_bytes(fd, proof, PROOF_BYTES);
        is_closed(fd);
    }
}

/* The server's own proof, sent back to it, is refused. */
static void the_proof_of_a_server_is_not_accepted_from_a_client(void **state)
{
    unsigned char hello[HELLO_BYTES], nonce[NONCE_BYTES], proof[PROOF_BYTES];
    const int fd = new_client();

    (void)state;
    EXPECT_OK(hello_make(hello, HELLO_CLIENT));
    send_bytes(fd, hello, HELLO_BYTES);
    receive_bytes(fd, nonce, NONCE_BYTES);
    EXPECT_OK(proof_make(&ours, "server", hello, nonce, proof));
    send_bytes(fd, proof, PROOF_BYTES);
    is_closed(fd);
}

/* The server answers a whole hello with the nonce, and nothing before a whole proof. */
static void a_proof_cut_at_any_byte_ends_the_connection(void **state)
{
    (void)state;
    for (size_t cut = 0; cut < HELLO_BYTES + PROOF_BYTES; cut++) {
        unsigned char hello[HELLO_BYTES], nonce[NONCE_BYTES], proof[PROOF_BYTES];
        const int fd = new_client();

        EXPECT_OK(hello_make(hello, HELLO_CLIENT));
        send_bytes(fd, hello, cut < HELLO_BYTES ? cut : HELLO_BYTES);
        if (cut >= HELLO_BYTES) {
            receive_bytes(fd, nonce, NONCE_BYTES);
            EXPECT_OK(proof_make(&ours, "client", hello, nonce, proof));
            send_bytes(fd, proof, cut - HELLO_BYTES);
        }
        shutdown(fd, SHUT_WR);
        is_closed(fd);
    }
}

/* The bytes that a client sent, sent again by another. */
static void a_replayed_proof_is_closed(void **state)
{
    unsigned char answer[PROOF_BYTES];
    struct sent_proof sent;
    int fd = new_client();

    (void)state;
    sent = send_proof(fd, &ours, HELLO_CLIENT);
    receive_bytes(fd, answer, PROOF_BYTES);
    send_bytes(fd, MAGIC SET_K, sizeof MAGIC SET_K - 1);
    is_served(fd);
    send_bytes(fd, DELETE_K, sizeof DELETE_K - 1);
    receive_bytes(fd, answer, 8);
    close(fd);
    EXPECT(!k_is_there());
    fd = new_client();
    send_bytes(fd, sent.bytes, HELLO_BYTES);
    receive_bytes(fd, answer, NONCE_BYTES);
    send_bytes(fd, sent.bytes + HELLO_BYTES, PROOF_BYTES);
    socket_write_all(fd, MAGIC SET_K, sizeof MAGIC SET_K - 1, limit()); /* it may be closed */
    is_closed(fd);
    EXPECT(!k_is_there());
}

/* The first seven bytes are fixed, the eighth is the role. */
static void a_hello_with_a_wrong_byte_is_closed(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 8; wrong++) {
        unsigned char hello[HELLO_BYTES];
        const int fd = new_client();

        EXPECT_OK(hello_make(hello, HELLO_CLIENT));
        hello[wrong] ^= 1;
        send_bytes(fd, hello, HELLO_BYTES);
        is_closed(fd);
    }
}

static void a_server_without_a_secret_takes_none(void **state)
{
    const int fd = new_client();
    unsigned char hello[HELLO_BYTES];

    (void)state;
    EXPECT_OK(hello_make(hello, HELLO_CLIENT));
    send_bytes(fd, hello, HELLO_BYTES);
    is_closed(fd);
}

/* ---- Launchers ---------------------------------------------------------------------------- */

static int new_agent(void)
{
    const int fd = new_client();

    EXPECT_OK(secret_prove(&ours, NULL, fd, HELLO_AGENT, "the test", limit()));
    return fd;
}

static void agents_left(int wanted)
{
    const int64_t deadline = limit();

    while (served.agents_gone != wanted && clock_ms() < deadline)
        nap(2);
    assert_int_equal(served.agents_gone, wanted);
}

/* The header of a message: its size, the type's byte included, and the type. */
static void header(unsigned char to[5], uint32_t size, int type)
{
    memcpy(to, &size, 4);
    to[4] = (unsigned char)type;
}

static void echo_is(int fd, int type, const unsigned char *data, uint32_t bytes)
{
    unsigned char wanted[5], got[AGENT_MOST_BYTES];

    header(wanted, bytes + 1, type);
    receive_bytes(fd, got, 5);
    assert_memory_equal(got, wanted, 5);
    receive_bytes(fd, got, bytes);
    assert_int_equal(memcmp(got, data, bytes), 0);
}

/* Cut anywhere, several at once, and of every size up to the largest. */
static void an_agent_s_messages_come_framed(void **state)
{
    static unsigned char message[AGENT_MOST_BYTES];
    const uint32_t largest = AGENT_MOST_BYTES - 4 - 1;
    const int fd = new_agent();

    (void)state;
    for (uint32_t i = 0; i < largest; i++)
        message[5 + i] = (unsigned char)(i % 251);
    header(message, 1, AGENT_FIRST);
    send_bytes(fd, message, 5); /* no data at all */
    echo_is(fd, AGENT_FIRST + 1, message + 5, 0);
    header(message, 1 + 3, AGENT_FIRST);
    for (int i = 0; i < 8; i++)
        send_bytes(fd, message + i, 1);
    echo_is(fd, AGENT_FIRST + 1, message + 5, 3);
    for (int i = 0; i < 3; i++)
        send_bytes(fd, message, 8);
    for (int i = 0; i < 3; i++)
        echo_is(fd, AGENT_FIRST + 1, message + 5, 3);
    header(message, 1 + largest, 255 - 1);
    send_bytes(fd, message, 5 + largest);
    echo_is(fd, 255, message + 5, largest);
    close(fd);
    agents_left(1);
}

/* Types below AGENT_FIRST belong to the server; an answer without a query does no harm. */
static void an_answer_without_a_query_is_ignored(void **state)
{
    unsigned char message[10] = { 0 };
    const int fd = new_agent();

    (void)state;
    header(message, 6, AGENT_OURS);
    send_bytes(fd, message, 10);
    message[5] = 7, message[9] = 1;
    send_bytes(fd, message, 10);
    header(message, 1, AGENT_WHO);
    send_bytes(fd, message, 5);
    header(message, 1, AGENT_FIRST);
    send_bytes(fd, message, 5);
    echo_is(fd, AGENT_FIRST + 1, message, 0);
    close(fd);
    agents_left(1);
}

static void a_message_of_an_invalid_size_closes_the_agent(void **state)
{
    static const uint32_t sizes[] = { 0, AGENT_MOST_BYTES - 3, (uint32_t)1 << 31, UINT32_MAX };
    const int other = new_agent();
    unsigned char message[5];

    (void)state;
    for (int i = 0; i < 4; i++) {
        const int fd = new_agent();

        header(message, sizes[i], AGENT_FIRST);
        send_bytes(fd, message, 5);
        is_closed(fd);
        agents_left(i + 1);
    }
    header(message, 1, AGENT_FIRST);
    send_bytes(other, message, 5);
    echo_is(other, AGENT_FIRST + 1, message, 0);
    close(other);
    agents_left(5);
}

/* Else each of the thousands of messages that are read with it would be refused, and reported. */
static void of_an_agent_that_was_refused_no_more_is_taken(void **state)
{
    unsigned char messages[4096 * 5];
    const int fd = new_agent();

    (void)state;
    for (int i = 0; i < 4096; i++)
        header(messages + 5 * (size_t)i, 1, REFUSE);
    send_bytes(fd, messages, sizeof messages);
    echo_is(fd, REFUSE + 1, messages, 0);
    is_closed(fd);
    agents_left(1);
    assert_int_equal(served.messages, 1);
}

static void an_agent_needs_the_secret(void **state)
{
    unsigned char message[5];
    const int fd = new_client();

    (void)state;
    send_proof(fd, &another, HELLO_AGENT);
    header(message, 1, AGENT_FIRST);
    socket_write_all(fd, message, 5, limit()); /* it may be closed */
    is_closed(fd);
    assert_int_equal(served.agents_gone, 0);
}

static void ping_agent(int fd, int type)
{
    unsigned char message[5];

    header(message, 1, type);
    send_bytes(fd, message, 5);
    echo_is(fd, type + 1, message, 0);
}

/* A new round forgets the programs of the one before.  Launchers belong to no round. */
static void a_clear_closes_clients_and_spares_launchers(void **state)
{
    const int client = new_client(), fd = new_agent();

    (void)state;
    send_bytes(client, MAGIC SET_K, sizeof MAGIC SET_K - 1);
    is_served(client);
    ping_agent(fd, CLEAR);
    is_closed(client);
    EXPECT(!k_is_there());
    ping_agent(fd, AGENT_FIRST);
    close(fd);
    agents_left(1);
}

/* Its hello says that it is a launcher, and it has the nonce; its proof is missing. */
static void a_clear_spares_a_launcher_that_proves_itself(void **state)
{
    unsigned char hello[HELLO_BYTES], nonce[NONCE_BYTES], proof[PROOF_BYTES], theirs[PROOF_BYTES];
    const int fd = new_client(), other = new_agent();

    (void)state;
    EXPECT_OK(hello_make(hello, HELLO_AGENT));
    send_bytes(fd, hello, HELLO_BYTES);
    receive_bytes(fd, nonce, NONCE_BYTES);
    ping_agent(other, CLEAR);
    EXPECT_OK(proof_make(&ours, "client", hello, nonce, proof));
    send_bytes(fd, proof, PROOF_BYTES);
    receive_bytes(fd, theirs, PROOF_BYTES);
    ping_agent(fd, AGENT_FIRST);
    close(fd);
    close(other);
    agents_left(2);
}

static void messages_taken(int wanted)
{
    const int64_t deadline = limit();

    while (served.messages != wanted && clock_ms() < deadline)
        nap(2);
    assert_int_equal(served.messages, wanted);
}

/* It broke the protocol while answers to it wait, so its connection ends once they are sent.
 * left() may come only then: until then the owner may use the agent. */
static void a_clear_spares_a_launcher_that_is_about_to_end(void **state)
{
    enum { MESSAGES = 300 }; /* 19 MB: more than the two sockets hold */
    static unsigned char message[AGENT_MOST_BYTES];
    const uint32_t largest = AGENT_MOST_BYTES - 4 - 1;
    const int fd = new_agent(), other = new_agent();

    (void)state;
    header(message, 1 + largest, AGENT_FIRST);
    for (int i = 0; i < MESSAGES; i++)
        send_bytes(fd, message, 5 + largest);
    messages_taken(MESSAGES);
    header(message, 1, AGENT_FIRST);
    header(message + 5, 0, AGENT_FIRST); /* of no size: the mistake, read together with the ping */
    send_bytes(fd, message, 10);
    messages_taken(MESSAGES + 1);
    ping_agent(other, CLEAR);
    assert_int_equal(served.agents_gone, 0);
    memset(message, 0, sizeof message);
    for (int i = 0; i < MESSAGES; i++)
        echo_is(fd, AGENT_FIRST + 1, message, largest);
    echo_is(fd, AGENT_FIRST + 1, message, 0);
    is_closed(fd);
    agents_left(1);
    close(other);
    agents_left(2);
}

#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, secret_file, no_secret_file)
#define ENCRYPTED(test) cmocka_unit_test_setup_teardown(test, serve_and_encrypt, stop_serving)
#define WITH_SECRET(test) cmocka_unit_test_setup_teardown(test, serve_with_our_secret, stop_serving)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ipv4_peer_is_known_by_its_uid),
        cmocka_unit_test(an_ipv6_peer_is_known_by_its_uid),
        cmocka_unit_test(a_mapped_peer_is_known_by_its_uid),
        cmocka_unit_test(the_uid_is_that_of_the_socket),
        cmocka_unit_test(a_connection_is_pending_until_it_is_accepted),
        cmocka_unit_test(a_listener_is_not_taken_for_a_connection),
        WITH_FILE(a_secret_comes_from_the_environment_or_a_file),
        WITH_FILE(a_secret_has_from_16_to_256_characters),
        WITH_FILE(a_secret_with_a_space_inside_is_refused),
        WITH_FILE(a_secret_that_others_may_read_is_refused),
        WITH_FILE(a_secret_file_that_is_no_regular_file_is_refused),
        cmocka_unit_test(each_generated_secret_is_different),
        cmocka_unit_test(the_proofs_of_client_and_server_are_hmacs_of_different_words),
        WITH_SECRET(a_client_of_our_uid_is_admitted_without_a_proof),
        ENCRYPTED(an_encrypted_client_is_served),
        ENCRYPTED(requests_that_the_channel_has_read_ahead_are_served),
        ENCRYPTED(a_large_value_goes_out_encrypted),
        ENCRYPTED(an_encrypted_client_with_another_secret_is_closed),
        ENCRYPTED(a_handshake_that_stops_blocks_no_other_client),
        WITH_SECRET(a_store_that_does_not_encrypt_says_so),
        WITH_SECRET(a_client_of_another_uid_is_closed),
        WITH_SECRET(a_client_that_knows_the_secret_is_served),
        WITH_SECRET(a_hello_may_come_a_byte_at_a_time_with_the_requests_behind),
        WITH_SECRET(a_client_with_another_secret_is_closed),
        WITH_SECRET(a_proof_with_one_bit_wrong_is_closed),
        WITH_SECRET(the_proof_of_a_server_is_not_accepted_from_a_client),
        WITH_SECRET(a_proof_cut_at_any_byte_ends_the_connection),
        WITH_SECRET(a_replayed_proof_is_closed),
        WITH_SECRET(a_hello_with_a_wrong_byte_is_closed),
        cmocka_unit_test_setup_teardown(a_server_without_a_secret_takes_none,
                                        serve_without_a_secret, stop_serving),
        WITH_SECRET(an_agent_s_messages_come_framed),
        WITH_SECRET(an_answer_without_a_query_is_ignored),
        WITH_SECRET(a_message_of_an_invalid_size_closes_the_agent),
        WITH_SECRET(of_an_agent_that_was_refused_no_more_is_taken),
        WITH_SECRET(an_agent_needs_the_secret),
        WITH_SECRET(a_clear_closes_clients_and_spares_launchers),
        WITH_SECRET(a_clear_spares_a_launcher_that_proves_itself),
        WITH_SECRET(a_clear_spares_a_launcher_that_is_about_to_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
