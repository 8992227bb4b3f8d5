/* SPDX-License-Identifier: Apache-2.0 */
/* link_tcp.c - a TCP connection to a peer that shares no memory with us.
 *
 * Opened by whoever first has something to say; the hello carries the mesh's
 * token, which only those can know who met at the same store.  If both sides
 * open one at the same moment both stay: each direction keeps to the
 * connection it first used, so order holds. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/hello.h"
#include "runtime/link.h"
#include "runtime/mesh.h"
#include "runtime/socket.h"

static int can_reach(const struct mesh *mesh, int peer)
{
    return mesh->peers[peer].address[0] && peer != mesh->rank;
}

static ssize_t write_socket(struct link *link, const struct iovec *parts, int count)
{
    struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)parts,
                              .msg_iovlen = (size_t)count };
    ssize_t sent;

    do
        sent = sendmsg(link->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0 || errno == EAGAIN)
        return sent < 0 ? 0 : sent;
    ct_fail(CT_ERR_PEER, "its connection broke: %s", strerror(errno));
    return -1;
}

static ssize_t read_socket(struct link *link, void *data, size_t bytes)
{
    ssize_t got;

    do
        got = recv(link->fd, data, bytes, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got > 0)
        return got;
    if (got < 0 && errno == EAGAIN)
        return 0;
    ct_fail(CT_ERR_PEER, "it closed its connection%s%s", got < 0 ? ": " : "",
            got < 0 ? strerror(errno) : "");
    return -1;
}

static void close_socket(struct link *link)
{
    close(link->fd);
    free(link);
}

static ct_status open_socket(struct mesh *mesh, int peer, int64_t deadline, struct link **link);

const struct link_ops link_tcp = { .name = "tcp",
                                   .can_reach = can_reach,
                                   .open = open_socket,
                                   .write = write_socket,
                                   .read = read_socket,
                                   .close = close_socket };

struct link *link_tcp_accepted(int fd)
{
    struct link *link = malloc(sizeof *link);

    if (link)
        *link = (struct link){ &link_tcp, fd };
    return link;
}

static ct_status open_socket(struct mesh *mesh, int peer, int64_t deadline, struct link **link)
{
    struct hello hello = { .magic = HELLO_MAGIC, .from = mesh->rank, .to = peer };
    ct_status status;
    int fd;

    memcpy(hello.token, mesh->token, sizeof hello.token);
    /* It listened before its address was known, so who refuses has left. */
    status = socket_connect_once(mesh->peers[peer].address, mesh->peers[peer].port, deadline, &fd);
    if (status == CT_OK) {
        status = socket_write_all(fd, &hello, sizeof hello, deadline);
        if (status == CT_OK && !(*link = link_tcp_accepted(fd)))
            status = ct_fail(CT_ERR_NOMEM, "no memory for a link to rank %d", peer);
        if (status != CT_OK)
            close(fd);
    }
    return status;
}
