/* The request port: accepts connections, cuts their streams into LBMC messages
 * and hands on those that are for this context. Nothing is ever sent back on them. What
 * an address that has proved nothing can take is bounded, expires and is counted.
 * Everything runs on the loop. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_log.h"
#include "base/um_map.h"
#include "base/um_mem.h"
#include "base/um_sqn.h"
#include "net/um_giving_way.h"
#include "net/um_socket.h"
#include "net/um_stream_listener.h"
#include "transport/stream/um_stream_reader.h"
#include "transport/unicast/um_unicast_parts.h"

#define ACCEPTS_PER_PASS 16
#define READS_PER_PASS 4
#define BUFFER_SIZE 65536u /* one message of the largest size */
#define BUFFERS_KEPT 4
/* How often connections are looked at that should bring something. */
#define SWEEP_MIN_NS (20 * UM_NS_PER_MS)
#define SWEEP_MAX_NS UM_NS_PER_SEC

struct um_unicast_in {
    struct um_unicast_in_config config;
    struct um_buf_pool *pool; /* lent to connections only while part of a message is in them */
    struct um_stream_listener listener;
    struct um_list connections; /* those that brought a message last are at the end */
    unsigned count, places, opening;
    struct um_map hosts;             /* address -> struct host */
    struct um_timer sweep_timer;     /* armed while there are connections */
    struct um_giving_way giving_way; /* while a replay comes */
};

/* What an address takes of the places. */
struct host {
    uint32_t ip;
    unsigned connections, opening;
};

struct connection {
    struct um_list node;
    struct um_unicast_in *incoming;
    struct host *host;
    struct um_stream stream;
    struct um_fd ufd;
    struct um_command again; /* the stream has more, without its descriptor being ready */
    struct sockaddr_in peer;
    struct um_stream_reader reader;
    uint64_t since_ns; /* it came, or brought a message */
    uint32_t replayed; /* messages of a replay in this read */
    bool opening;      /* the stream is not open yet */
    bool proven;       /* it has brought one */
    bool in_stream;    /* of the last message that was in a stream: */
    uint8_t stream_instance[8];
    uint32_t stream_id, stream_sqn;
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

/* ---- places ---- */

static unsigned count_places(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 2 >= UM_UNICAST_MAX_INCOMING) {
        return UM_UNICAST_MAX_INCOMING;
    }
    return limit.rlim_cur >= 2 ? (unsigned)(limit.rlim_cur / 2) : 1;
}

static void leave_host(struct um_unicast_in *incoming, struct host *host)
{
    if (--host->connections == 0) {
        um_map_remove(&incoming->hosts, &host->ip, sizeof host->ip);
        um_free(host);
    }
}

/* One more connection of this address; NULL: out of memory. */
static struct host *enter_host(struct um_unicast_in *incoming, uint32_t ip)
{
    struct host *host = um_map_get(&incoming->hosts, &ip, sizeof ip);
    if (host == NULL) {
        host = um_calloc(1, sizeof *host);
        if (host == NULL || um_map_put(&incoming->hosts, &ip, sizeof ip, host) != 0) {
            um_free(host);
            return NULL;
        }
        host->ip = ip;
    }
    host->connections++;
    return host;
}

static void has_opened(struct connection *connection)
{
    connection->opening = false;
    connection->incoming->opening--;
    connection->host->opening--;
}

static void close_connection(struct connection *connection)
{
    struct um_unicast_in *incoming = connection->incoming;
    um_loop_unpost(incoming->config.loop, &connection->again);
    um_loop_remove_fd(incoming->config.loop, &connection->ufd);
    um_stream_close(&connection->stream, UM_STREAM_NOW);
    um_stream_reader_fini(&connection->reader);
    um_list_remove(&connection->node);
    if (connection->opening) {
        has_opened(connection);
    }
    leave_host(incoming, connection->host);
    incoming->count--;
    atomic_fetch_add_explicit(&incoming->config.counters->incoming, (uint64_t)-1, memory_order_relaxed);
    um_free(connection);
}

/* All places are taken: the connection that should give way to one of `ip`, or NULL. The address that has the most
 * gives one up for another one, the one that was silent for the longest time; otherwise it goes by silence alone. */
static struct connection *to_displace(struct um_unicast_in *incoming, uint32_t ip, uint64_t now_ns)
{
    const struct host *newcomer = um_map_get(&incoming->hosts, &ip, sizeof ip);
    struct connection *found = NULL;
    struct um_list *it;
    UM_LIST_FOREACH(it, &incoming->connections)
    {
        struct connection *connection = UM_CONTAINER_OF(it, struct connection, node);
        if (found == NULL || connection->host->connections > found->host->connections) {
            found = connection;
        }
    }
    if (found != NULL && found->host->connections > (newcomer != NULL ? newcomer->connections : 0) + 1) {
        return found;
    }
    it = um_list_first(&incoming->connections);
    found = it != NULL ? UM_CONTAINER_OF(it, struct connection, node) : NULL;
    return found != NULL && now_ns >= found->since_ns + UM_UNICAST_SILENCE_NS ? found : NULL;
}

static bool have_place(struct um_unicast_in *incoming, uint32_t ip, uint64_t now_ns)
{
    if (incoming->count < incoming->places) {
        return true;
    }
    struct connection *gives_way = to_displace(incoming, ip, now_ns);
    if (gives_way == NULL) {
        return false;
    }
    atomic_fetch_add_explicit(&incoming->config.counters->displaced, 1, memory_order_relaxed);
    um_log_limited(um_log_of_ip(gives_way->peer.sin_addr.s_addr), now_ns, UM_LOG_INFO, "Core-9003-16",
                   "request port: all %u places are taken: the connection from %s gives way to a new one",
                   incoming->places, name_of(&gives_way->peer).text);
    close_connection(gives_way);
    return true;
}

/* ---- streams that are not open yet ---- */

static uint64_t opening_ns(const struct um_unicast_in *incoming)
{
    return um_stream_layer_timeout(incoming->config.layer, UM_UNICAST_OPENING_NS);
}

static uint64_t sweep_ns(const struct um_unicast_in *incoming)
{
    if (incoming->config.layer == NULL || incoming->config.layer->timeout_ns == 0) {
        return UM_UNICAST_OPENING_NS;
    }
    uint64_t quarter_ns = opening_ns(incoming) / 4;
    return quarter_ns < SWEEP_MIN_NS ? SWEEP_MIN_NS : quarter_ns > SWEEP_MAX_NS ? SWEEP_MAX_NS : quarter_ns;
}

static void tell_unopened(struct connection *connection, const char *why, uint64_t now_ns)
{
    struct um_unicast_in *incoming = connection->incoming;
    if (incoming->config.layer != NULL && !connection->stream.opened) {
        um_log_limited(um_log_of_ip(connection->peer.sin_addr.s_addr), now_ns, UM_LOG_WARNING, "Core-9003-19",
                       "request port: connection from %s given up before its first byte: %s",
                       name_of(&connection->peer).text, why);
    }
}

/* Too many are being opened: the oldest of the address that opens the most gives way. */
static void bound_openings(struct um_unicast_in *incoming, uint64_t now_ns)
{
    struct connection *found = NULL;
    struct um_list *it;
    if (incoming->config.layer == NULL || incoming->opening <= UM_UNICAST_MAX_OPENING) {
        return;
    }
    UM_LIST_FOREACH(it, &incoming->connections)
    {
        struct connection *connection = UM_CONTAINER_OF(it, struct connection, node);
        if (connection->opening && (found == NULL || connection->host->opening > found->host->opening)) {
            found = connection;
        }
    }
    tell_unopened(found, "too many are being opened", now_ns);
    atomic_fetch_add_explicit(&incoming->config.counters->displaced, 1, memory_order_relaxed);
    close_connection(found);
}

/* Who connects and says nothing does not stay. */
static void on_sweep_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_unicast_in *incoming = UM_CONTAINER_OF(timer, struct um_unicast_in, sweep_timer);
    struct um_list *it, *tmp;
    UM_LIST_FOREACH_SAFE(it, tmp, &incoming->connections)
    {
        struct connection *connection = UM_CONTAINER_OF(it, struct connection, node);
        uint64_t allowed_ns = connection->stream.opened ? UM_UNICAST_EXPIRY_NS : opening_ns(incoming);
        if (!connection->proven && now_ns >= connection->since_ns + allowed_ns) {
            tell_unopened(connection, "negotiate timeout with peer", now_ns);
            atomic_fetch_add_explicit(&incoming->config.counters->expired, 1, memory_order_relaxed);
            close_connection(connection);
        }
    }
    if (incoming->count > 0) {
        um_timer_arm(um_loop_wheel(incoming->config.loop), timer, now_ns + sweep_ns(incoming));
    }
}

/* ---- reading ---- */

/* A stream ends with its connection, so what it has brought is known here. */
static bool is_duplicate(struct connection *connection, const struct um_lbmc_msg *msg)
{
    bool same = connection->in_stream && msg->stream.stream_id == connection->stream_id &&
                memcmp(msg->stream.ctxinst, connection->stream_instance, sizeof connection->stream_instance) == 0;
    if (same && !um_sqn_newer(msg->stream.sqn, connection->stream_sqn)) {
        return true;
    }
    connection->in_stream = true;
    memcpy(connection->stream_instance, msg->stream.ctxinst, sizeof connection->stream_instance);
    connection->stream_id = msg->stream.stream_id;
    connection->stream_sqn = msg->stream.sqn;
    return false;
}

/* Of messages with data of the application; what serves recovery knows by itself what it has. False: not again. */
static bool is_new(struct connection *connection, const struct um_lbmc_msg *msg, uint64_t now_ns)
{
    struct um_unicast_in *incoming = connection->incoming;
    struct um_unicast_counters *counters = incoming->config.counters;
    if ((msg->present & UM_LBMC_HAS_STREAM) == 0) {
        atomic_fetch_add_explicit(&counters->msgs_no_stream, 1, memory_order_relaxed);
        return true;
    }
    if (!is_duplicate(connection, msg)) {
        return true;
    }
    atomic_fetch_add_explicit(&counters->msgs_duplicate, 1, memory_order_relaxed);
    um_log_limited(um_log_of_ip(connection->peer.sin_addr.s_addr), now_ns, UM_LOG_INFO, "Core-9003-17",
                   "request port: message from %s dropped: its stream has brought number %u already",
                   name_of(&connection->peer).text, msg->stream.sqn);
    return false;
}

static void on_message(struct connection *connection, const struct um_lbmc_msg *msg, uint64_t now_ns)
{
    struct um_unicast_in *incoming = connection->incoming;
    const struct um_unicast_in_config *config = &incoming->config;
    _Atomic uint64_t *count = &config->counters->msgs_rcved; /* no other thread counts it */
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_relaxed);
    if (msg->type == UM_LBMC_EOT || (msg->present & UM_LBMC_HAS_TCP_SID) != 0) {
        return; /* legal here, and nothing to do */
    }
    if ((msg->present & UM_LBMC_HAS_CTXINSTD) != 0 && memcmp(msg->ctxinstd, config->ctxinst, 8) != 0) {
        atomic_fetch_add_explicit(&config->counters->msgs_foreign, 1, memory_order_relaxed);
        um_log_limited(um_log_of_ip(connection->peer.sin_addr.s_addr), now_ns, UM_LOG_INFO, "Core-9003-2",
                       "request port: message from %s is for another context that used this port before: dropped",
                       name_of(&connection->peer).text);
        return;
    }
    if (msg->type == UM_LBMC_MESSAGE && !is_new(connection, msg, now_ns)) {
        return;
    }
    config->on_message(config->user, msg, connection->reader.buf, &connection->peer, now_ns);
}

static bool starts_with_tls(const struct um_stream_reader *reader)
{
    const struct um_lbttcp_reader *frame = &reader->frame;
    return frame->end > frame->start && frame->data[frame->start] == UM_STREAM_TLS_BYTE;
}

/* What is asked for or sent again is not in such a hurry as what is live. */
static bool is_replay(const struct um_lbmc_msg *msg)
{
    return msg->type == UM_LBMC_RETRANS || (msg->present & UM_LBMC_HAS_RXREQ) != 0;
}

/* False: the stream is corrupt. */
static bool parse(struct connection *connection, uint64_t now_ns)
{
    struct um_unicast_in *incoming = connection->incoming;
    struct um_lbmc_msg msg;
    for (;;) {
        switch (um_stream_reader_next(&connection->reader, &msg)) {
        case UM_LBTTCP_MESSAGE:
            connection->proven = true;
            connection->since_ns = now_ns;
            connection->replayed += is_replay(&msg);
            on_message(connection, &msg, now_ns);
            break;
        case UM_LBTTCP_DROPPED:
            atomic_fetch_add_explicit(&incoming->config.counters->msgs_malformed, 1, memory_order_relaxed);
            um_log_limited(um_log_of_ip(connection->peer.sin_addr.s_addr), now_ns, UM_LOG_WARNING, "Core-9003-3",
                           "request port: dropped a message with a malformed or unknown header from %s",
                           name_of(&connection->peer).text);
            break;
        case UM_LBTTCP_MORE:
            return true;
        case UM_LBTTCP_CORRUPT:
            atomic_fetch_add_explicit(&incoming->config.counters->corrupt_connections, 1, memory_order_relaxed);
            if (!connection->proven && starts_with_tls(&connection->reader)) {
                um_log_limited(um_log_of_ip(connection->peer.sin_addr.s_addr), now_ns, UM_LOG_WARNING, "Core-9565-38",
                               "request port: connection from %s: the other side uses TLS, this context has use_tls 0: "
                               "connection closed",
                               name_of(&connection->peer).text);
                return false;
            }
            um_log_limited(um_log_of_ip(connection->peer.sin_addr.s_addr), now_ns, UM_LOG_ERR, "Core-6036-1",
                           "request port: the stream from %s is corrupt (no valid message header): connection closed",
                           name_of(&connection->peer).text);
            return false;
        }
    }
}

static void move_to_end(struct connection *connection)
{
    um_list_remove(&connection->node);
    um_list_push_back(&connection->incoming->connections, &connection->node);
}

/* Who sends ends a connection between two messages, unless it will not wait any longer for one that takes too little.
 */
static void tell_cut(struct connection *connection, uint64_t now_ns)
{
    const struct um_lbttcp_reader *frame = &connection->reader.frame;
    struct um_unicast_in *incoming = connection->incoming;
    const struct um_stream *stream = &connection->stream;
    if (stream->end == UM_STREAM_FAILED && stream->reason != NULL) { /* in the words of a filter */
        atomic_fetch_add_explicit(&incoming->config.counters->corrupt_connections, 1, memory_order_relaxed);
        um_log_limited(um_log_of_ip(connection->peer.sin_addr.s_addr), now_ns, UM_LOG_WARNING, "Core-9003-20",
                       "request port: connection from %s closed: %s", name_of(&connection->peer).text, stream->reason);
    } else if (connection->reader.buf != NULL && frame->end > frame->start) {
        um_log_limited(um_log_of_ip(connection->peer.sin_addr.s_addr), now_ns, UM_LOG_NOTICE, "Core-9003-18",
                       "request port: the connection from %s ended within a message, %zu bytes of it had come: its "
                       "process has ended, or would not wait any longer for this context to read "
                       "(response_tcp_deletion_timeout there)",
                       name_of(&connection->peer).text, frame->end - frame->start);
    }
}

static void give_way(struct connection *connection, uint64_t now_ns)
{
    if (connection->replayed > 0) {
        um_giving_way_after(&connection->incoming->giving_way, connection->replayed, now_ns);
        connection->replayed = 0;
    }
}

/* False: the connection is over. */
static bool read_pass(struct connection *connection, uint64_t now_ns)
{
    enum um_stream_read_rc rc = UM_STREAM_READ_MORE;
    for (int i = 0; i < READS_PER_PASS && rc == UM_STREAM_READ_MORE; i++) {
        size_t got;
        rc = um_stream_reader_read(&connection->reader, &connection->stream, &got);
        if (rc == UM_STREAM_READ_END) {
            tell_cut(connection, now_ns);
        }
        if (rc == UM_STREAM_READ_END || rc == UM_STREAM_READ_NO_MEMORY || (got > 0 && !parse(connection, now_ns))) {
            return false;
        }
        give_way(connection, now_ns);
    }
    um_stream_reader_rest(&connection->reader);
    if (connection->since_ns == now_ns) {
        move_to_end(connection);
    }
    return true;
}

/* Go on with the stream, then wait for what it waits for. */
static void go_on(struct connection *connection, uint32_t ready, uint64_t now_ns)
{
    struct um_loop *loop = connection->incoming->config.loop;
    struct um_stream *stream = &connection->stream;
    bool was_open = stream->opened;
    bool lives = um_stream_open(stream) >= 0;
    if (!lives) {
        atomic_fetch_add_explicit(&connection->incoming->config.counters->expired, 1, memory_order_relaxed);
        tell_unopened(connection, um_stream_reason(stream), now_ns);
    } else if (stream->opened && connection->opening) {
        has_opened(connection);
    }
    if (lives && stream->opened) {
        uint32_t means = was_open ? um_stream_ready(stream, ready) : UM_FD_READ;
        lives =
            um_stream_flush(stream) && (!((means & UM_FD_READ) || stream->pending) || read_pass(connection, now_ns));
    }
    if (!lives || um_loop_set_interest(loop, &connection->ufd, um_stream_interest(stream, UM_FD_READ)) != 0) {
        close_connection(connection);
    } else if (stream->pending) {
        um_loop_post(loop, &connection->again);
    }
}

static void on_ready(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    go_on(UM_CONTAINER_OF(ufd, struct connection, ufd), ready, now_ns);
}

static void on_again(struct um_command *command)
{
    struct connection *connection = UM_CONTAINER_OF(command, struct connection, again);
    go_on(connection, UM_FD_READ, um_loop_now(connection->incoming->config.loop));
}

/* ---- accepting ---- */

/* NULL: out of memory; the stream is still the caller's. */
static struct connection *create_connection(struct um_unicast_in *incoming, struct um_stream *stream,
                                            const struct sockaddr_in *peer)
{
    const struct um_stream_layer *layer = incoming->config.layer;
    if (layer != NULL && layer->cover(layer, stream, UM_STREAM_ACCEPTS) != 0) {
        return NULL;
    }
    struct connection *connection = um_calloc(1, sizeof *connection);
    if (connection == NULL || (connection->host = enter_host(incoming, peer->sin_addr.s_addr)) == NULL) {
        um_free(connection);
        return NULL;
    }
    um_fd_init(&connection->ufd, stream->fd, on_ready);
    if (um_loop_add_fd(incoming->config.loop, &connection->ufd, um_stream_interest(stream, UM_FD_READ)) != 0) {
        leave_host(incoming, connection->host);
        um_free(connection);
        return NULL;
    }
    connection->incoming = incoming;
    connection->stream = *stream;
    connection->peer = *peer;
    um_command_init(&connection->again, on_again);
    um_stream_reader_init(&connection->reader, incoming->pool);
    connection->opening = true;
    connection->host->opening++;
    um_list_push_back(&incoming->connections, &connection->node);
    return connection;
}

static void on_stream(struct um_stream_listener *listener, struct um_stream *stream, const struct sockaddr_in *peer,
                      uint64_t now_ns)
{
    struct um_unicast_in *incoming = UM_CONTAINER_OF(listener, struct um_unicast_in, listener);
    struct um_unicast_counters *counters = incoming->config.counters;
    struct connection *connection = NULL;
    if (have_place(incoming, peer->sin_addr.s_addr, now_ns)) {
        connection = create_connection(incoming, stream, peer);
    }
    if (connection == NULL) {
        atomic_fetch_add_explicit(&counters->refused, 1, memory_order_relaxed);
        um_log_limited(um_log_of_ip(peer->sin_addr.s_addr), now_ns, UM_LOG_WARNING, "Core-9003-4",
                       "request port: connection from %s refused: %u connections are open (at most %u) or no memory",
                       name_of(peer).text, incoming->count, incoming->places);
        um_stream_close(stream, UM_STREAM_NOW);
        return;
    }
    connection->since_ns = now_ns;
    incoming->count++;
    incoming->opening++;
    atomic_fetch_add_explicit(&counters->accepted, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->incoming, 1, memory_order_relaxed);
    if (incoming->config.keepalive_ms != 0) {
        um_socket_set_keepalive(stream->fd, incoming->config.keepalive_ms);
    }
    if (!um_timer_armed(&incoming->sweep_timer)) {
        um_timer_arm(um_loop_wheel(incoming->config.loop), &incoming->sweep_timer, now_ns + sweep_ns(incoming));
    }
    if (stream->opened) {
        has_opened(connection);
    }
    bound_openings(incoming, now_ns);
}

static void on_pause(struct um_stream_listener *listener, int err, uint64_t now_ns)
{
    um_log_limited(um_log_of_all(), now_ns, UM_LOG_ERR, "Core-9003-5",
                   "request port: accept failed: %s; accepting pauses for %llu ms", strerror(err),
                   (unsigned long long)(UM_LISTENER_PAUSE_NS / UM_NS_PER_MS));
}

/* ---- beginning and end ---- */

struct um_unicast_in *um_unicast_in_create(const struct um_unicast_in_config *config, int listen_fd)
{
    struct um_unicast_in *incoming = um_calloc(1, sizeof *incoming);
    if (incoming != NULL) {
        incoming->pool = um_buf_pool_create(BUFFER_SIZE, BUFFERS_KEPT);
    }
    if (incoming == NULL || incoming->pool == NULL) {
        um_free(incoming);
        um_fd_close(listen_fd);
        um_error_nomem("request port", sizeof *incoming);
        return NULL;
    }
    incoming->config = *config;
    incoming->places = count_places();
    um_list_init(&incoming->connections);
    um_map_init(&incoming->hosts, NULL);
    um_timer_init(&incoming->sweep_timer, on_sweep_timer);
    um_giving_way_init(&incoming->giving_way, config->loop);
    incoming->listener.burst = ACCEPTS_PER_PASS;
    incoming->listener.on_stream = on_stream;
    incoming->listener.on_pause = on_pause;
    if (um_stream_listener_start(&incoming->listener, config->loop, listen_fd) != 0) {
        um_fd_close(listen_fd);
        um_buf_pool_release(incoming->pool);
        um_free(incoming);
        return NULL;
    }
    return incoming;
}

void um_unicast_in_set_layer(struct um_unicast_in *incoming, const struct um_stream_layer *layer)
{
    incoming->config.layer = incoming->listener.layer = layer;
}

void um_unicast_in_destroy(struct um_unicast_in *incoming)
{
    if (incoming == NULL) {
        return;
    }
    struct um_list *it, *tmp;
    UM_LIST_FOREACH_SAFE(it, tmp, &incoming->connections)
    {
        close_connection(UM_CONTAINER_OF(it, struct connection, node));
    }
    um_timer_cancel(um_loop_wheel(incoming->config.loop), &incoming->sweep_timer);
    um_giving_way_fini(&incoming->giving_way);
    um_stream_listener_stop(&incoming->listener);
    um_map_clear(&incoming->hosts);
    um_buf_pool_release(incoming->pool);
    um_free(incoming);
}
