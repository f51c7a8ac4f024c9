/* Outgoing unicast connections, one per destination: connect on demand, queue,
 * reconnect after a loss, close when idle. Everything runs on the loop. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_log.h"
#include "base/um_map.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "net/um_socket.h"
#include "transport/um_uim_parts.h"

#define RETRY_INTERVAL_NS UM_NS_PER_SEC
/* How long a destination may stay unreachable at the least before what is queued for it is given up. */
#define GIVE_UP_MIN_NS (5 * UM_NS_PER_SEC)

enum peer_state {
    CONNECTING,
    CONNECTED,
    WAITING /* lost or never reached: the retry timer runs */
};

struct address {
    uint32_t ip; /* network order */
    uint32_t port;
};

struct peer {
    struct um_list node;
    struct um_uim_outgoing *outgoing;
    struct address address;
    enum peer_state state;
    struct um_fd ufd;
    struct um_timer retry_timer;
    struct um_timer idle_timer;
    uint64_t last_used_ns;
    bool lost; /* a connection failed or broke since the last success */
    uint32_t local_ip;
    uint32_t stream_id, stream_sqn;
    struct um_list queue; /* struct queued */
    size_t queued_bytes;
};

struct queued {
    struct um_list node;
    bool with_stream; /* STREAM and DESTINATION headers follow the 4-byte fixed header */
    bool stamped;     /* and are filled in for the present connection */
    size_t len, sent;
    uint8_t data[];
};

struct um_uim_outgoing {
    struct um_uim_outgoing_config config;
    struct um_map by_address;
    struct um_list peers;
    uint32_t next_stream_id;
    void (*reconnected)(void *user, uint32_t ip, uint16_t port);
    void *reconnected_user;
};

struct peer_name {
    char text[INET_ADDRSTRLEN + 8];
};

static struct peer_name name_of(const struct peer *peer)
{
    struct peer_name name;
    char ip[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &peer->address.ip, ip, sizeof ip);
    snprintf(name.text, sizeof name.text, "%s:%u", ip, peer->address.port);
    return name;
}

static struct um_timer_wheel *wheel_of(const struct peer *peer)
{
    return um_loop_wheel(peer->outgoing->config.loop);
}

/* --- the end of connections and peers --- */

static void disconnect(struct peer *peer)
{
    if (peer->ufd.fd >= 0) {
        um_loop_remove_fd(peer->outgoing->config.loop, &peer->ufd);
        um_fd_close(peer->ufd.fd);
        peer->ufd.fd = -1;
    }
}

static void free_peer(struct peer *peer)
{
    struct um_uim_outgoing *outgoing = peer->outgoing;
    struct um_list *it, *tmp;
    disconnect(peer);
    um_timer_cancel(wheel_of(peer), &peer->retry_timer);
    um_timer_cancel(wheel_of(peer), &peer->idle_timer);
    UM_LIST_FOREACH_SAFE(it, tmp, &peer->queue)
    {
        outgoing->config.stats->msgs_dropped++;
        um_free(UM_CONTAINER_OF(it, struct queued, node));
    }
    um_map_remove(&outgoing->by_address, &peer->address, sizeof peer->address);
    um_list_remove(&peer->node);
    outgoing->config.stats->outgoing--;
    um_free(peer);
}

/* The connection broke or could not be made. A message that the kernel did not take whole cannot have arrived: it is
 * sent again from its first byte. */
static void on_lost(struct peer *peer, const char *reason, uint64_t now_ns)
{
    um_log(UM_LOG_INFO, "Core-9003-6", "unicast connection to %s: %s", name_of(peer).text, reason);
    disconnect(peer);
    if (!um_list_empty(&peer->queue)) {
        struct queued *first = UM_CONTAINER_OF(peer->queue.next, struct queued, node);
        first->sent = 0;
        first->stamped = false;
    }
    peer->state = WAITING;
    peer->lost = true;
    um_timer_arm(wheel_of(peer), &peer->retry_timer, now_ns + RETRY_INTERVAL_NS);
}

/* --- writing --- */

/* Fill in what depends on the connection. */
static void stamp(struct peer *peer, struct queued *message)
{
    const struct um_uim_outgoing_config *config = &peer->outgoing->config;
    if (!message->with_stream || message->stamped) {
        return;
    }
    message->stamped = true;
    uint32_t orig_ip = config->request_addr.s_addr != INADDR_ANY ? config->request_addr.s_addr : peer->local_ip;
    uint8_t *p = message->data + UM_LBMC_CONTROL_HDR_LEN;
    p += um_lbmc_put_stream(p, UM_LBMC_HDR_DESTINATION, peer->stream_id, peer->stream_sqn++, config->ctxinst);
    uint8_t first_header = p[0];
    um_lbmc_put_destination(p, first_header, 0, peer->address.ip, (uint16_t)peer->address.port, 0, orig_ip,
                            config->request_port);
}

/* Write what the socket takes. 0, or the errno value that broke the connection. */
static int write_queue(struct peer *peer)
{
    struct um_list *it;
    uint32_t interest = UM_FD_READ;
    while ((it = um_list_first(&peer->queue)) != NULL) {
        struct queued *message = UM_CONTAINER_OF(it, struct queued, node);
        stamp(peer, message);
        ssize_t sent = send(peer->ufd.fd, message->data + message->sent, message->len - message->sent, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            return errno;
        }
        if (sent > 0) {
            message->sent += (size_t)sent;
        }
        if (message->sent < message->len) {
            interest |= UM_FD_WRITE;
            break;
        }
        um_list_remove(it);
        peer->queued_bytes -= message->len;
        um_free(message);
        peer->outgoing->config.stats->msgs_sent++;
    }
    return um_loop_set_interest(peer->outgoing->config.loop, &peer->ufd, interest) == 0 ? 0 : ENOMEM;
}

static void flush(struct peer *peer, uint64_t now_ns)
{
    int error = write_queue(peer);
    if (error != 0) {
        on_lost(peer, strerror(error), now_ns);
    }
}

/* --- connecting --- */

static void on_connected(struct peer *peer, uint64_t now_ns)
{
    struct um_uim_outgoing *outgoing = peer->outgoing;
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(peer->ufd.fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        error = errno;
    }
    if (error != 0) {
        on_lost(peer, strerror(error), now_ns);
        return;
    }
    bool was_lost = peer->lost;
    struct address address = peer->address;
    peer->state = CONNECTED;
    peer->lost = false;
    peer->local_ip = um_socket_local_addr(peer->ufd.fd).s_addr;
    peer->stream_id = outgoing->next_stream_id++;
    peer->stream_sqn = 0;
    flush(peer, now_ns);
    if (was_lost && peer->state == CONNECTED && outgoing->reconnected != NULL) {
        outgoing->reconnected(outgoing->reconnected_user, address.ip, (uint16_t)address.port);
    }
}

/* A peer sends nothing on this connection: a read tells when it is closed. Whatever comes is thrown away. */
static void on_readable(struct peer *peer, uint64_t now_ns)
{
    uint8_t scratch[4096];
    ssize_t got = recv(peer->ufd.fd, scratch, sizeof scratch, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        on_lost(peer, got == 0 ? "closed by the other side" : strerror(errno), now_ns);
    }
}

static void on_fd(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct peer *peer = UM_CONTAINER_OF(ufd, struct peer, ufd);
    if (peer->state == CONNECTING) {
        on_connected(peer, now_ns);
        return;
    }
    if ((ready & UM_FD_WRITE) != 0) {
        flush(peer, now_ns);
    }
    if (peer->state == CONNECTED && (ready & ~UM_FD_WRITE) != 0) {
        on_readable(peer, now_ns);
    }
}

static int start_connect(struct peer *peer)
{
    const struct um_uim_outgoing_config *config = &peer->outgoing->config;
    struct in_addr to = {.s_addr = peer->address.ip};
    int fd = um_socket_tcp_connect(config->local_addr, to, (uint16_t)peer->address.port);
    if (fd < 0) {
        return -1;
    }
    if (config->nodelay) {
        um_socket_set_nodelay(fd, true);
    }
    um_socket_set_sndbuf(fd, config->send_buffer, "response_session_sender_socket_buffer", "Core-5688-3309");
    if (config->keepalive_ms != 0) {
        um_socket_set_keepalive(fd, config->keepalive_ms);
    }
    um_fd_init(&peer->ufd, fd, on_fd);
    if (um_loop_add_fd(config->loop, &peer->ufd, UM_FD_WRITE) != 0) {
        um_fd_close(fd);
        peer->ufd.fd = -1;
        return -1;
    }
    peer->state = CONNECTING;
    return 0;
}

/* --- timers --- */

static void on_retry_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct peer *peer = UM_CONTAINER_OF(timer, struct peer, retry_timer);
    if (um_list_empty(&peer->queue) && peer->outgoing->reconnected == NULL) {
        free_peer(peer); /* nobody needs it before the next message */
    } else if (start_connect(peer) != 0) {
        on_lost(peer, um_errmsg(), now_ns);
    }
}

/* Due when the peer was not used for the deletion timeout. */
static void on_idle_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct peer *peer = UM_CONTAINER_OF(timer, struct peer, idle_timer);
    uint64_t timeout_ns = peer->outgoing->config.deletion_timeout_ns;
    bool connected = peer->state == CONNECTED;
    if (!connected && timeout_ns < GIVE_UP_MIN_NS) {
        timeout_ns = GIVE_UP_MIN_NS;
    }
    if (peer->last_used_ns + timeout_ns > now_ns) {
        um_timer_arm(wheel_of(peer), timer, peer->last_used_ns + timeout_ns);
    } else if (connected && !um_list_empty(&peer->queue)) {
        um_log(UM_LOG_INFO, "Core-9003-7", "unicast connection to %s: %zu bytes are still queued, it stays open",
               name_of(peer).text, peer->queued_bytes);
        peer->last_used_ns = now_ns;
        um_timer_arm(wheel_of(peer), timer, now_ns + (timeout_ns != 0 ? timeout_ns : UM_NS_PER_SEC));
    } else {
        if (!um_list_empty(&peer->queue)) {
            um_log(UM_LOG_WARNING, "Core-9003-8",
                   "unicast connection to %s: not reachable, %zu queued bytes are dropped", name_of(peer).text,
                   peer->queued_bytes);
        }
        free_peer(peer);
    }
}

/* --- peers --- */

static struct peer *create_peer(struct um_uim_outgoing *outgoing, const struct address *address)
{
    struct peer *peer = um_calloc(1, sizeof *peer);
    if (peer == NULL) {
        um_error_nomem("unicast connection", sizeof *peer);
        return NULL;
    }
    peer->outgoing = outgoing;
    peer->address = *address;
    um_list_init(&peer->node);
    um_list_init(&peer->queue);
    um_fd_init(&peer->ufd, -1, on_fd);
    um_timer_init(&peer->retry_timer, on_retry_timer);
    um_timer_init(&peer->idle_timer, on_idle_timer);
    if (um_map_put(&outgoing->by_address, address, sizeof *address, peer) != 0) {
        um_free(peer);
        um_error_nomem("unicast connection", sizeof *address);
        return NULL;
    }
    um_list_push_back(&outgoing->peers, &peer->node);
    outgoing->config.stats->outgoing++;
    if (start_connect(peer) != 0) {
        free_peer(peer);
        return NULL;
    }
    return peer;
}

static int enqueue(struct um_uim_outgoing *outgoing, uint32_t ip, uint16_t port, struct queued *message)
{
    struct address address = {.ip = ip, .port = port};
    struct peer *peer = um_map_get(&outgoing->by_address, &address, sizeof address);
    if (peer == NULL && (peer = create_peer(outgoing, &address)) == NULL) {
        um_free(message);
        return -1;
    }
    if (peer->queued_bytes >= outgoing->config.queue_limit && !um_list_empty(&peer->queue)) {
        um_free(message);
        return um_error(UM_EWOULDBLOCK, "Core-9003-9",
                        "unicast connection to %s: %zu bytes are queued (response_session_maximum_buffer %zu)",
                        name_of(peer).text, peer->queued_bytes, outgoing->config.queue_limit);
    }
    uint64_t now_ns = um_loop_now(outgoing->config.loop);
    um_list_push_back(&peer->queue, &message->node);
    peer->queued_bytes += message->len;
    peer->last_used_ns = now_ns;
    if (!um_timer_armed(&peer->idle_timer)) {
        um_timer_arm(wheel_of(peer), &peer->idle_timer, now_ns + outgoing->config.deletion_timeout_ns);
    }
    if (peer->state == CONNECTED && peer->queue.next == &message->node) {
        flush(peer, now_ns);
    }
    return 0;
}

static struct queued *create_message(size_t len)
{
    struct queued *message = um_malloc(sizeof *message + len);
    if (message == NULL) {
        um_error_nomem("unicast message", len);
        return NULL;
    }
    um_list_init(&message->node);
    message->with_stream = false;
    message->stamped = false;
    message->len = len;
    message->sent = 0;
    return message;
}

static int check_destination(uint32_t ip, uint16_t port, size_t len)
{
    if (ip == 0 || port == 0 || len > UM_LBMC_MAX_MSGLEN) {
        return um_error(UM_EINVAL, "Core-9003-10",
                        "unicast message: address %s, port %u, length %zu: all must be valid",
                        ip == 0 ? "0.0.0.0" : "given", port, len);
    }
    return 0;
}

int um_uim_outgoing_send(struct um_uim_outgoing *outgoing, uint32_t ip, uint16_t port, const uint8_t *bytes, size_t len)
{
    struct queued *message = check_destination(ip, port, len) == 0 ? create_message(len) : NULL;
    if (message == NULL) {
        return -1;
    }
    memcpy(message->data, bytes, len);
    return enqueue(outgoing, ip, port, message);
}

int um_uim_outgoing_send_control(struct um_uim_outgoing *outgoing, uint32_t ip, uint16_t port, uint8_t first_header,
                                 const uint8_t *record, size_t len)
{
    size_t before = UM_LBMC_CONTROL_HDR_LEN + UM_LBMC_STREAM_HDR_LEN + UM_LBMC_DESTINATION_HDR_LEN;
    struct queued *message = check_destination(ip, port, before + len) == 0 ? create_message(before + len) : NULL;
    if (message == NULL) {
        return -1;
    }
    memset(message->data, 0, before);
    um_lbmc_put_control_hdr(message->data, UM_LBMC_HDR_STREAM, (uint16_t)message->len);
    message->data[UM_LBMC_CONTROL_HDR_LEN + UM_LBMC_STREAM_HDR_LEN] = first_header; /* stamp() keeps it */
    memcpy(message->data + before, record, len);
    message->with_stream = true;
    return enqueue(outgoing, ip, port, message);
}

struct um_uim_outgoing *um_uim_outgoing_create(const struct um_uim_outgoing_config *config)
{
    struct um_uim_outgoing *outgoing = um_calloc(1, sizeof *outgoing);
    if (outgoing == NULL) {
        um_error_nomem("unicast connections", sizeof *outgoing);
        return NULL;
    }
    outgoing->config = *config;
    um_map_init(&outgoing->by_address, NULL);
    um_list_init(&outgoing->peers);
    outgoing->next_stream_id = um_random_u32_nonzero();
    return outgoing;
}

void um_uim_outgoing_destroy(struct um_uim_outgoing *outgoing)
{
    if (outgoing == NULL) {
        return;
    }
    struct um_list *it, *tmp;
    UM_LIST_FOREACH_SAFE(it, tmp, &outgoing->peers)
    {
        free_peer(UM_CONTAINER_OF(it, struct peer, node));
    }
    um_map_clear(&outgoing->by_address);
    um_free(outgoing);
}

void um_uim_outgoing_on_reconnect(struct um_uim_outgoing *outgoing, void (*fn)(void *user, uint32_t ip, uint16_t port),
                                  void *user)
{
    outgoing->reconnected = fn;
    outgoing->reconnected_user = user;
}
