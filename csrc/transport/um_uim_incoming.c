/* The request port: accepts connections, cuts their streams into LBMC messages
 * and hands these to the context. Nothing is ever sent back on them. Everything
 * runs on the loop. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "net/um_socket.h"
#include "transport/um_uim_parts.h"
#include "wire/um_lbttcp.h"

#define ACCEPTS_PER_PASS 16
#define RECEIVES_PER_PASS 4
#define CONNECTION_BUFFER_SIZE 65536u        /* one message of the largest size */
#define ACCEPT_PAUSE_NS (100 * UM_NS_PER_MS) /* after accept() ran out of descriptors or memory */
#define LOG_INTERVAL_NS UM_NS_PER_SEC

struct um_uim_incoming {
    struct um_uim_incoming_config config;
    struct um_fd listener;
    struct um_timer accept_timer; /* armed while accepting is suspended */
    struct um_list connections;
    struct um_log_limit accept_limit, message_limit, corrupt_limit;
};

struct connection {
    struct um_list node;
    struct um_uim_incoming *incoming;
    struct um_fd ufd;
    struct sockaddr_in peer;
    struct um_lbttcp_reader reader;
    uint8_t buffer[CONNECTION_BUFFER_SIZE];
};

struct peer_name {
    char text[INET_ADDRSTRLEN + 8];
};

static struct peer_name name_of(const struct sockaddr_in *peer)
{
    struct peer_name name;
    char ip[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &peer->sin_addr, ip, sizeof ip);
    snprintf(name.text, sizeof name.text, "%s:%u", ip, ntohs(peer->sin_port));
    return name;
}

static void close_connection(struct connection *connection)
{
    um_loop_remove_fd(connection->incoming->config.loop, &connection->ufd);
    um_fd_close(connection->ufd.fd);
    um_list_remove(&connection->node);
    connection->incoming->config.stats->incoming--;
    um_free(connection);
}

static void on_message(struct connection *connection, const struct um_lbmc_msg *msg, uint64_t now_ns)
{
    const struct um_uim_incoming_config *config = &connection->incoming->config;
    config->stats->msgs_rcved++;
    if (msg->type == UM_LBMC_EOT || (msg->present & UM_LBMC_HAS_TCP_SID) != 0) {
        return; /* legal here, and nothing to do */
    }
    if ((msg->present & UM_LBMC_HAS_CTXINSTD) != 0 && memcmp(msg->ctxinstd, config->ctxinst, 8) != 0) {
        config->stats->msgs_foreign++;
        um_log_limited(&connection->incoming->message_limit, now_ns, LOG_INTERVAL_NS, UM_LOG_INFO, "Core-9003-2",
                       "request port: message from %s is for another context that used this port before: dropped",
                       name_of(&connection->peer).text);
        return;
    }
    config->events->on_message(config->user, msg, &connection->peer, now_ns);
}

/* False: the stream is corrupt. */
static bool parse(struct connection *connection, uint64_t now_ns)
{
    struct um_uim_incoming *incoming = connection->incoming;
    struct um_lbmc_msg msg;
    for (;;) {
        switch (um_lbttcp_next(&connection->reader, &msg)) {
        case UM_LBTTCP_MESSAGE:
            on_message(connection, &msg, now_ns);
            break;
        case UM_LBTTCP_DROPPED:
            incoming->config.stats->msgs_malformed++;
            um_log_limited(&incoming->message_limit, now_ns, LOG_INTERVAL_NS, UM_LOG_WARNING, "Core-9003-3",
                           "request port: dropped a message with a malformed or unknown header from %s",
                           name_of(&connection->peer).text);
            break;
        case UM_LBTTCP_MORE:
            return true;
        case UM_LBTTCP_CORRUPT:
            incoming->config.stats->corrupt_connections++;
            um_log_limited(&incoming->corrupt_limit, now_ns, LOG_INTERVAL_NS, UM_LOG_ERR, "Core-6036-1",
                           "request port: the stream from %s is corrupt (no valid message header): connection closed",
                           name_of(&connection->peer).text);
            return false;
        }
    }
}

static void on_readable(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct connection *connection = UM_CONTAINER_OF(ufd, struct connection, ufd);
    struct um_lbttcp_reader *reader = &connection->reader;
    for (int i = 0; i < RECEIVES_PER_PASS; i++) {
        if (um_lbttcp_must_move(reader)) {
            um_lbttcp_move(reader, connection->buffer, sizeof connection->buffer);
        }
        size_t room = um_lbttcp_room(reader);
        ssize_t got = recv(ufd->fd, reader->data + reader->end, room, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (got <= 0) {
            close_connection(connection);
            return;
        }
        um_lbttcp_received(reader, (size_t)got);
        if (!parse(connection, now_ns)) {
            close_connection(connection);
            return;
        }
        if ((size_t)got < room) {
            return;
        }
    }
}

static void add_connection(struct um_uim_incoming *incoming, int fd, const struct sockaddr_in *peer, uint64_t now_ns)
{
    struct um_uim_stats *stats = incoming->config.stats;
    struct connection *connection = NULL;
    if (stats->incoming < UM_UIM_MAX_INCOMING) {
        connection = um_malloc(sizeof *connection);
    }
    if (connection != NULL) {
        um_fd_init(&connection->ufd, fd, on_readable);
        if (um_loop_add_fd(incoming->config.loop, &connection->ufd, UM_FD_READ) != 0) {
            um_free(connection);
            connection = NULL;
        }
    }
    if (connection == NULL) {
        stats->refused++;
        um_log_limited(&incoming->accept_limit, now_ns, LOG_INTERVAL_NS, UM_LOG_WARNING, "Core-9003-4",
                       "request port: connection from %s refused: %llu connections are open (at most %u) or no memory",
                       name_of(peer).text, (unsigned long long)stats->incoming, UM_UIM_MAX_INCOMING);
        um_fd_close(fd);
        return;
    }
    connection->incoming = incoming;
    connection->peer = *peer;
    um_lbttcp_start(&connection->reader, connection->buffer, sizeof connection->buffer);
    um_list_push_back(&incoming->connections, &connection->node);
    stats->accepted++;
    stats->incoming++;
    if (incoming->config.keepalive_ms != 0) {
        um_socket_set_keepalive(fd, incoming->config.keepalive_ms);
    }
}

/* Level-triggered readiness would spin while accept() keeps failing. */
static void suspend_accepting(struct um_uim_incoming *incoming, int err, uint64_t now_ns)
{
    um_log_limited(&incoming->accept_limit, now_ns, LOG_INTERVAL_NS, UM_LOG_ERR, "Core-9003-5",
                   "request port: accept failed: %s; accepting pauses for %llu ms", strerror(err),
                   (unsigned long long)(ACCEPT_PAUSE_NS / UM_NS_PER_MS));
    um_loop_remove_fd(incoming->config.loop, &incoming->listener);
    um_timer_arm(um_loop_wheel(incoming->config.loop), &incoming->accept_timer, now_ns + ACCEPT_PAUSE_NS);
}

static void on_acceptable(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct um_uim_incoming *incoming = UM_CONTAINER_OF(ufd, struct um_uim_incoming, listener);
    for (int i = 0; i < ACCEPTS_PER_PASS; i++) {
        struct sockaddr_in peer;
        socklen_t len = sizeof peer;
        int fd = um_fd_own(accept4(ufd->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd >= 0) {
            add_connection(incoming, fd, &peer, now_ns);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            suspend_accepting(incoming, errno, now_ns);
            return;
        }
    }
}

static void on_accept_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_uim_incoming *incoming = UM_CONTAINER_OF(timer, struct um_uim_incoming, accept_timer);
    if (um_loop_add_fd(incoming->config.loop, &incoming->listener, UM_FD_READ) != 0) {
        um_timer_arm(um_loop_wheel(incoming->config.loop), timer, now_ns + ACCEPT_PAUSE_NS);
    }
}

struct um_uim_incoming *um_uim_incoming_create(const struct um_uim_incoming_config *config, int listen_fd)
{
    struct um_uim_incoming *incoming = um_calloc(1, sizeof *incoming);
    if (incoming == NULL) {
        um_fd_close(listen_fd);
        um_error_nomem("request port", sizeof *incoming);
        return NULL;
    }
    incoming->config = *config;
    um_list_init(&incoming->connections);
    um_timer_init(&incoming->accept_timer, on_accept_timer);
    um_fd_init(&incoming->listener, listen_fd, on_acceptable);
    if (um_loop_add_fd(config->loop, &incoming->listener, UM_FD_READ) != 0) {
        um_fd_close(listen_fd);
        um_free(incoming);
        return NULL;
    }
    return incoming;
}

void um_uim_incoming_destroy(struct um_uim_incoming *incoming)
{
    if (incoming == NULL) {
        return;
    }
    struct um_list *it, *tmp;
    UM_LIST_FOREACH_SAFE(it, tmp, &incoming->connections)
    {
        close_connection(UM_CONTAINER_OF(it, struct connection, node));
    }
    if (um_timer_armed(&incoming->accept_timer)) {
        um_timer_cancel(um_loop_wheel(incoming->config.loop), &incoming->accept_timer);
    } else {
        um_loop_remove_fd(incoming->config.loop, &incoming->listener);
    }
    um_fd_close(incoming->listener.fd);
    um_free(incoming);
}
