/* One destination of the unicast layer: its connection, its queue, its end. The state
 * changes under the layer's lock, in whatever thread notices; what only the loop may do
 * (watch, time, close, call others) is marked and done by um_unicast_serve(). */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "net/um_socket.h"
#include "transport/unicast/um_unicast_parts.h"

#define RETRY_INTERVAL_NS UM_NS_PER_SEC
/* How long a destination may stay unreachable at the least before what is queued for it is given up. */
#define GIVE_UP_MIN_NS (5 * UM_NS_PER_SEC)
/* How long one that is connected may take nothing of it at the least: a minute, as others wait for our first message.
 */
#define STALL_MIN_NS UM_UNICAST_EXPIRY_NS
/* A row of messages that gather is written after so long, or with so many bytes. */
#define ROW_NS 50000u
#define ROW_BYTES 16384u

static struct um_timer_wheel *wheel_of(const struct um_unicast_peer *peer)
{
    return um_loop_wheel(peer->out->config.loop);
}

/* ---- marks for the loop and for waiting threads ---- */

void um_unicast_peer_mark(struct um_unicast_peer *peer)
{
    if (um_list_empty(&peer->dirty_node)) {
        um_list_push_back(&peer->out->dirty, &peer->dirty_node);
    }
    um_loop_post(peer->out->config.loop, &peer->out->command);
}

void um_unicast_peer_interrupt(struct um_unicast_peer *peer)
{
    if (peer->polling) {
        uint64_t one = 1;
        ssize_t put = write(peer->wake_fd, &one, sizeof one);
        (void)put; /* full means: already interrupted */
    }
}

static void wake_line(struct um_unicast_peer *peer)
{
    if (peer->waiters > 0) {
        um_condition_signal_all(&peer->out->changed);
        um_unicast_peer_interrupt(peer);
    }
}

bool um_unicast_peer_full(const struct um_unicast_peer *peer)
{
    return peer->queue.count > 0 && peer->queue.bytes >= peer->out->config.queue_limit;
}

bool um_unicast_peer_relieved(const struct um_unicast_peer *peer)
{
    return peer->queue.count == 0 || peer->queue.bytes <= peer->out->config.queue_limit / 2;
}

/* The queue shrank: let those go on who may. */
static void relieve(struct um_unicast_peer *peer)
{
    if (!um_unicast_peer_relieved(peer)) {
        return;
    }
    wake_line(peer);
    if (peer->refused) {
        peer->refused = false;
        peer->out->wake_due = true;
        um_unicast_peer_mark(peer);
    }
}

static void tell(struct um_unicast_peer *peer, enum um_unicast_news news, const char *reason)
{
    peer->news = news;
    snprintf(peer->reason, sizeof peer->reason, "%s", reason);
    um_unicast_peer_mark(peer);
}

/* ---- losing ---- */

static void bury_link(struct um_unicast_peer *peer)
{
    struct um_unicast_link *link = peer->link;
    if (link != NULL) {
        peer->link = NULL;
        link->peer = NULL;
        um_stream_abort(&link->stream);
        um_list_push_back(&peer->out->graves, &link->node);
    }
}

/* The connection broke or could not be made. A message that the stream did not take whole cannot have arrived: it is
 * sent again from its first byte. */
static void lose(struct um_unicast_peer *peer, const char *reason, uint64_t now_ns)
{
    bool reached = peer->state == UM_PEER_CONNECTED;
    if (reached) {
        peer->down_ns = now_ns;
    }
    if (reached || !peer->lost) {
        tell(peer, reached ? UM_PEER_LOST : UM_PEER_UNREACHED, reason);
    }
    bury_link(peer);
    um_datagram_queue_rewind(&peer->queue);
    peer->state = UM_PEER_WAITING;
    peer->lost = true;
    peer->retry_ns = now_ns + RETRY_INTERVAL_NS;
    um_unicast_peer_interrupt(peer); /* its poll() is for a connection that is none any more */
    um_unicast_peer_mark(peer);
}

static void drop_queue(struct um_unicast_peer *peer)
{
    struct um_datagram *datagram;
    peer->dropped_bytes = peer->queue.bytes;
    while ((datagram = um_datagram_queue_pop(&peer->queue)) != NULL) {
        struct um_unicast_message *message = UM_CONTAINER_OF(datagram, struct um_unicast_message, datagram);
        atomic_fetch_add_explicit(&peer->out->config.counters->msgs_dropped, message->count, memory_order_relaxed);
        um_free(message);
    }
}

void um_unicast_peer_die(struct um_unicast_peer *peer, const char *reason)
{
    struct um_unicast_out *out = peer->out;
    struct um_list *it;
    if (peer->state == UM_PEER_DEAD) {
        return;
    }
    um_map_remove(&out->by_address, &peer->address, sizeof peer->address);
    out->latest = NULL;
    um_list_remove(&peer->node);
    um_list_push_back(&out->dead, &peer->node);
    atomic_fetch_add_explicit(&out->config.counters->outgoing, (uint64_t)-1, memory_order_relaxed);
    bury_link(peer);
    peer->state = UM_PEER_DEAD;
    while ((it = um_list_first(&peer->holds)) != NULL) {
        um_list_remove(it);
        UM_CONTAINER_OF(it, struct um_unicast_hold, node)->peer = NULL;
    }
    bool loses = peer->queue.count > 0;
    drop_queue(peer);
    if (loses) {
        tell(peer, UM_PEER_GIVEN_UP, reason);
    }
    relieve(peer);
    um_unicast_peer_mark(peer);
}

/* ---- connecting ---- */

static void on_link_ready(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct um_unicast_link *link = UM_CONTAINER_OF(ufd, struct um_unicast_link, ufd);
    struct um_unicast_out *out = link->out;
    um_lock_take(&out->lock);
    if (link->peer != NULL) {
        uint32_t means = link->stream.opened ? um_stream_ready(&link->stream, ready) : UM_FD_READ;
        um_unicast_peer_service(link->peer, means, now_ns);
        if (link->peer != NULL) {
            um_unicast_peer_mark(link->peer);
        }
    }
    um_lock_give(&out->lock);
    um_unicast_serve(out);
}

static void set_socket_options(const struct um_unicast_out_config *config, int fd)
{
    if (config->nodelay) {
        um_socket_set_nodelay(fd, true);
    }
    if (config->keepalive_ms != 0) {
        um_socket_set_keepalive(fd, config->keepalive_ms);
    }
}

/* 0, or -1 + error. */
static int start_connect(struct um_unicast_peer *peer)
{
    const struct um_unicast_out_config *config = &peer->out->config;
    struct um_unicast_link *link = um_calloc(1, sizeof *link);
    if (link == NULL) {
        return um_error_nomem("unicast connection", sizeof *link);
    }
    struct in_addr to = {.s_addr = peer->address.ip};
    struct in_addr from = {.s_addr = peer->address.from != 0 ? peer->address.from : config->local_addr.s_addr};
    if (um_stream_connect(&link->stream, from, to, (uint16_t)peer->address.port, config->layer) != 0) {
        um_free(link);
        return -1;
    }
    set_socket_options(config, link->stream.fd);
    um_list_init(&link->node);
    um_fd_init(&link->ufd, link->stream.fd, on_link_ready);
    link->out = peer->out;
    link->peer = peer;
    peer->link = link;
    peer->state = UM_PEER_CONNECTING;
    um_unicast_peer_mark(peer);
    return 0;
}

void um_unicast_link_free(struct um_unicast_link *link)
{
    um_loop_remove_fd(link->out->config.loop, &link->ufd);
    um_stream_close(&link->stream, UM_STREAM_NOW);
    um_free(link);
}

/* ---- writing ---- */

/* False: the connection is lost. */
static bool write_queue(struct um_unicast_peer *peer, uint64_t now_ns)
{
    struct um_stream *stream = &peer->link->stream;
    ssize_t taken = 1;
    while (peer->queue.count > 0 && taken > 0) {
        taken = um_datagram_queue_write(&peer->queue, stream);
        peer->moved_ns = taken > 0 ? now_ns : peer->moved_ns;
        struct um_datagram *datagram;
        while ((datagram = um_datagram_queue_written(&peer->queue)) != NULL) {
            struct um_unicast_message *message = UM_CONTAINER_OF(datagram, struct um_unicast_message, datagram);
            atomic_fetch_add_explicit(&peer->out->config.counters->msgs_sent, message->count, memory_order_relaxed);
            um_free(message);
        }
    }
    if (taken < 0 || !um_stream_flush(stream)) {
        lose(peer, um_stream_reason(stream), now_ns);
        return false;
    }
    relieve(peer);
    return true;
}

bool um_unicast_peer_gathers_row(struct um_unicast_peer *peer, size_t len, uint64_t pass_ns)
{
    size_t half = peer->out->config.queue_limit / 2; /* what gathers leaves room for others */
    uint64_t clock_ns = um_clock_ns();
    bool goes_on = peer->row_pass_ns == pass_ns && clock_ns - peer->row_ns < ROW_NS &&
                   peer->queue.bytes + len <= (half < ROW_BYTES ? half : ROW_BYTES);
    if (!goes_on) {
        peer->row_pass_ns = pass_ns;
        peer->row_ns = clock_ns;
    }
    return goes_on;
}

bool um_unicast_peer_put(struct um_unicast_peer *peer, struct um_unicast_message *message, bool gathers,
                         uint64_t now_ns)
{
    bool first = peer->queue.count == 0;
    if (!um_datagram_queue_push(&peer->queue, &message->datagram, 0)) {
        um_error_nomem("unicast message", message->datagram.len);
        return false;
    }
    um_unicast_peer_used(peer, now_ns);
    if (first) {
        peer->waits_ns = peer->moved_ns = now_ns;
    }
    if (peer->state != UM_PEER_CONNECTED) {
        um_unicast_peer_mark(peer); /* a timer may have to be armed */
        return true;
    }
    um_unicast_message_stamp(peer, message, 0);
    if (gathers) {
        if (first) {
            peer->gathers = true;
            um_unicast_peer_mark(peer);
        }
        return true;
    }
    bool writes = first || peer->gathers; /* otherwise the socket took no more: the loop goes on when it does */
    peer->gathers = false;
    if (writes && !write_queue(peer, now_ns)) {
        return true;
    }
    const struct um_stream *stream = &peer->link->stream;
    if (writes && (peer->queue.count > 0 || stream->unsent || stream->pending)) {
        um_unicast_peer_mark(peer);
    }
    return true;
}

/* The newest of what gathers, if it is not in a write; NULL: there is none. */
static struct um_unicast_message *gathering(const struct um_unicast_peer *peer)
{
    const struct um_datagram_queue *queue = &peer->queue;
    bool begun = queue->count == 1 && (queue->head_written != 0 || !peer->gathers); /* it may be in a write */
    if (queue->count == 0 || begun) {
        return NULL;
    }
    return UM_CONTAINER_OF(um_datagram_queue_at(queue, queue->count - 1), struct um_unicast_message, datagram);
}

bool um_unicast_peer_join(struct um_unicast_peer *peer, const struct um_unicast_send *send, uint64_t now_ns)
{
    struct um_unicast_message *message = gathering(peer);
    if (message == NULL) {
        return false;
    }
    size_t from = message->datagram.len, added = um_unicast_message_append(message, send);
    if (added == 0) {
        return false;
    }
    peer->queue.bytes += added;
    um_unicast_peer_used(peer, now_ns);
    if (peer->state == UM_PEER_CONNECTED) {
        um_unicast_message_stamp(peer, message, from);
    }
    return true;
}

uint32_t um_unicast_peer_join_run(struct um_unicast_peer *peer, const struct um_unicast_send *send,
                                  const uint8_t *bodies, uint32_t count, uint64_t now_ns)
{
    struct um_unicast_message *message = gathering(peer);
    if (message == NULL) {
        return 0;
    }
    size_t from = message->datagram.len;
    uint32_t joined = um_unicast_message_append_run(peer, message, send, bodies, count);
    if (joined > 0) {
        peer->queue.bytes += message->datagram.len - from;
        um_unicast_peer_used(peer, now_ns);
    }
    return joined;
}

/* ---- what goes on by itself ---- */

static void tell_listeners(struct um_unicast_peer *peer)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &peer->out->listeners)
    {
        struct um_unicast_listener *listener = UM_CONTAINER_OF(it, struct um_unicast_listener, node);
        if (listener->due_count < (int)(sizeof listener->due / sizeof listener->due[0])) {
            listener->due[listener->due_count].ip = peer->address.ip;
            listener->due[listener->due_count++].port = (uint16_t)peer->address.port;
        } else {
            listener->overflow = true;
        }
        um_loop_post(listener->loop, &listener->command);
    }
}

static void on_connected(struct um_unicast_peer *peer, uint64_t now_ns)
{
    struct um_unicast_out *out = peer->out;
    bool again = peer->lost;
    peer->state = UM_PEER_CONNECTED;
    peer->moved_ns = now_ns;
    peer->lost = false;
    peer->local_ip = um_stream_local(&peer->link->stream).sin_addr.s_addr;
    peer->stream_id = out->next_stream_id++;
    peer->stream_sqn = 0;
    for (uint32_t i = 0; i < peer->queue.count; i++) {
        struct um_datagram *datagram = um_datagram_queue_at(&peer->queue, i);
        um_unicast_message_stamp(peer, UM_CONTAINER_OF(datagram, struct um_unicast_message, datagram), 0);
    }
    um_unicast_peer_mark(peer);
    if (again) {
        tell_listeners(peer);
    }
}

/* A peer sends nothing on this connection: a read tells when it is closed. Whatever comes is not looked at. */
static void read_away(struct um_unicast_peer *peer, uint64_t now_ns)
{
    struct um_stream *stream = &peer->link->stream;
    uint8_t scratch[4096];
    do {
        if (um_stream_read(stream, scratch, sizeof scratch) < 0) {
            lose(peer, um_stream_reason(stream), now_ns);
            return;
        }
    } while (stream->pending);
}

/* However often it is sent to meanwhile; but what was queued first had its time, too. A connection that takes what is
 * queued, be it slowly, stays. */
uint64_t um_unicast_peer_give_up_ns(const struct um_unicast_peer *peer)
{
    uint64_t timeout_ns = peer->out->config.deletion_timeout_ns;
    if (peer->state == UM_PEER_CONNECTED) {
        uint64_t stall_ns = timeout_ns < STALL_MIN_NS ? STALL_MIN_NS : timeout_ns;
        return peer->queue.count > 0 ? peer->moved_ns + stall_ns : UM_NEVER;
    }
    uint64_t down_ns = peer->down_ns + (timeout_ns < GIVE_UP_MIN_NS ? GIVE_UP_MIN_NS : timeout_ns);
    uint64_t waited_ns = peer->queue.count > 0 ? peer->waits_ns + GIVE_UP_MIN_NS : 0;
    return waited_ns > down_ns ? waited_ns : down_ns;
}

/* Says for how long, and what has set the limit to that. */
static void give_up(struct um_unicast_peer *peer, uint64_t now_ns)
{
    bool connected = peer->state == UM_PEER_CONNECTED;
    uint64_t since_ns = connected ? peer->moved_ns : peer->down_ns;
    char reason[sizeof peer->reason];
    snprintf(reason, sizeof reason, "%s for %llu ms (response_tcp_deletion_timeout %llu, here at least %llu)",
             connected ? "it takes nothing" : "not reachable", (unsigned long long)((now_ns - since_ns) / UM_NS_PER_MS),
             (unsigned long long)(peer->out->config.deletion_timeout_ns / UM_NS_PER_MS),
             (unsigned long long)((connected ? STALL_MIN_NS : GIVE_UP_MIN_NS) / UM_NS_PER_MS));
    um_unicast_peer_die(peer, reason);
}

/* When the filters of a stream must have opened it. */
static uint64_t negotiated_by_ns(const struct um_unicast_peer *peer)
{
    const struct um_unicast_link *link = peer->link;
    return link != NULL && link->negotiates_ns != 0
               ? link->negotiates_ns + um_stream_layer_timeout(peer->out->config.layer, UM_UNICAST_OPENING_NS)
               : UM_NEVER;
}

void um_unicast_peer_service(struct um_unicast_peer *peer, uint32_t ready, uint64_t now_ns)
{
    if (peer->state == UM_PEER_WAITING && now_ns >= peer->retry_ns && start_connect(peer) != 0) {
        lose(peer, um_errmsg(), now_ns);
    }
    if (peer->state == UM_PEER_CONNECTING) {
        struct um_unicast_link *link = peer->link;
        int rc = um_stream_open(&link->stream);
        if (rc == 0 && link->stream.negotiates && link->negotiates_ns == 0) {
            link->negotiates_ns = now_ns;
        }
        if (rc == 0 && now_ns >= negotiated_by_ns(peer)) {
            lose(peer, "negotiate timeout with peer (tls_compression_negotiation_timeout)", now_ns);
        } else if (rc < 0) {
            lose(peer, um_stream_reason(&peer->link->stream), now_ns);
        } else if (rc > 0) {
            on_connected(peer, now_ns);
        }
    }
    if (peer->state == UM_PEER_CONNECTED && ((ready & UM_FD_READ) || peer->link->stream.pending)) {
        read_away(peer, now_ns);
    }
    if (peer->state == UM_PEER_CONNECTED) {
        write_queue(peer, now_ns);
    }
    if (peer->state != UM_PEER_DEAD && now_ns >= um_unicast_peer_give_up_ns(peer)) {
        give_up(peer, now_ns);
    }
}

void um_unicast_peer_used(struct um_unicast_peer *peer, uint64_t now_ns)
{
    peer->last_used_ns = now_ns;
    um_list_remove(&peer->node);
    um_list_push_back(&peer->out->peers, &peer->node);
}

/* ---- timers [loop] ---- */

static void on_retry_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_unicast_peer *peer = UM_CONTAINER_OF(timer, struct um_unicast_peer, retry_timer);
    struct um_unicast_out *out = peer->out;
    um_lock_take(&out->lock);
    bool needed = peer->queue.count > 0 || peer->waiters > 0 || !um_list_empty(&peer->holds);
    if (peer->state == UM_PEER_WAITING && !needed && um_list_empty(&out->listeners)) {
        um_unicast_peer_die(peer, ""); /* nobody needs it before the next message */
    } else {
        um_unicast_peer_service(peer, 0, now_ns);
    }
    um_unicast_peer_mark(peer);
    um_lock_give(&out->lock);
    um_unicast_serve(out);
}

/* Due when the peer was not used for the deletion timeout. Lock. Bytes still queued then, which keep it. */
static size_t idle_expired(struct um_unicast_peer *peer, uint64_t now_ns)
{
    bool connected = peer->state == UM_PEER_CONNECTED;
    bool stalls = connected && now_ns >= um_unicast_peer_give_up_ns(peer);
    uint64_t timeout_ns = peer->out->config.deletion_timeout_ns;
    uint64_t due_ns = connected && !stalls ? peer->last_used_ns + timeout_ns : um_unicast_peer_give_up_ns(peer);
    size_t queued = 0;
    if (due_ns <= now_ns && connected && !stalls && (peer->queue.count > 0 || !um_list_empty(&peer->holds))) {
        queued = peer->queue.bytes;
        peer->last_used_ns = now_ns;
        due_ns = now_ns + (timeout_ns != 0 ? timeout_ns : UM_NS_PER_SEC);
    }
    if (due_ns > now_ns) {
        um_timer_arm(wheel_of(peer), &peer->idle_timer, due_ns);
    } else {
        give_up(peer, now_ns);
    }
    return queued;
}

static const char *peer_name(const struct um_unicast_peer *peer, char *out, size_t size)
{
    char ip[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &peer->address.ip, ip, sizeof ip);
    snprintf(out, size, "%s:%u", ip, (unsigned)peer->address.port);
    return out;
}

static void on_idle_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_unicast_peer *peer = UM_CONTAINER_OF(timer, struct um_unicast_peer, idle_timer);
    struct um_unicast_out *out = peer->out;
    char name[INET_ADDRSTRLEN + 8];
    um_lock_take(&out->lock);
    size_t queued = peer->state != UM_PEER_DEAD ? idle_expired(peer, now_ns) : 0;
    um_lock_give(&out->lock);
    if (queued > 0) {
        um_log_limited(um_log_of_ip(peer->address.ip), now_ns, UM_LOG_WARNING, "Core-5688-3702",
                       "unicast connection to %s: %zu bytes of responses or immediate messages are still queued when "
                       "its response_tcp_deletion_timeout is over; it stays open",
                       peer_name(peer, name, sizeof name), queued);
    }
    um_unicast_serve(out);
}

/* ---- the loop's share ---- */

/* Lock. Watch and time the peer as its state asks for. */
static void sync_peer(struct um_unicast_peer *peer)
{
    struct um_loop *loop = peer->out->config.loop;
    if (peer->link != NULL) {
        if (peer->link->stream.pending && peer->state == UM_PEER_CONNECTED) {
            read_away(peer, um_loop_now(loop));
        }
    }
    if (peer->link != NULL) {
        uint32_t wanted = UM_FD_READ | (peer->queue.count > 0 ? UM_FD_WRITE : 0);
        if (um_loop_set_interest(loop, &peer->link->ufd, um_stream_interest(&peer->link->stream, wanted)) != 0) {
            lose(peer, um_errmsg(), um_loop_now(loop));
        }
    }
    if (peer->state == UM_PEER_WAITING) {
        um_timer_arm(wheel_of(peer), &peer->retry_timer, peer->retry_ns);
    } else if (peer->state == UM_PEER_CONNECTING && negotiated_by_ns(peer) != UM_NEVER) {
        um_timer_arm(wheel_of(peer), &peer->retry_timer, negotiated_by_ns(peer));
    }
    if (peer->state != UM_PEER_DEAD && !um_timer_armed(&peer->idle_timer)) {
        uint64_t timeout_ns = peer->out->config.deletion_timeout_ns;
        um_timer_arm(wheel_of(peer), &peer->idle_timer, peer->last_used_ns + timeout_ns);
    }
}

/* What is known of a peer under the lock, to be said without it. */
struct saying {
    enum um_unicast_news news;
    char name[INET_ADDRSTRLEN + 8], reason[160];
    size_t dropped_bytes;
};

/* Where connections go, sources and requesters say; how often they fail, too. */
static void say(struct um_unicast_out *out, const struct saying *saying)
{
    uint64_t now_ns = um_loop_now(out->config.loop);
    switch (saying->news) {
    case UM_PEER_NO_NEWS:
        break;
    case UM_PEER_UNREACHED:
        um_log_limited(um_log_of(saying->name), now_ns, UM_LOG_ERR, "Core-5927-1",
                       "Couldn't establish immediate message channel for destination %s: %s", saying->name,
                       saying->reason);
        break;
    case UM_PEER_LOST:
        um_log_limited(um_log_of(saying->name), now_ns, UM_LOG_INFO, "Core-9003-6", "unicast connection to %s: %s",
                       saying->name, saying->reason);
        break;
    case UM_PEER_GIVEN_UP:
        um_log_limited(um_log_of(saying->name), now_ns, UM_LOG_WARNING, "Core-9003-8",
                       "unicast connection to %s: %s, %zu queued bytes are dropped", saying->name, saying->reason,
                       saying->dropped_bytes);
        break;
    }
}

/* Lock. */
static struct saying take_news(struct um_unicast_peer *peer)
{
    struct saying saying = {.news = peer->news, .dropped_bytes = peer->dropped_bytes};
    peer_name(peer, saying.name, sizeof saying.name);
    memcpy(saying.reason, peer->reason, sizeof saying.reason);
    peer->news = UM_PEER_NO_NEWS;
    return saying;
}

static void close_graves(struct um_unicast_out *out)
{
    struct um_list *it;
    um_lock_take(&out->lock);
    while ((it = um_list_first(&out->graves)) != NULL) {
        um_list_remove(it);
        um_lock_give(&out->lock);
        um_unicast_link_free(UM_CONTAINER_OF(it, struct um_unicast_link, node));
        um_lock_take(&out->lock);
    }
    um_lock_give(&out->lock);
}

static void serve_peers(struct um_unicast_out *out)
{
    struct um_list *it;
    um_lock_take(&out->lock);
    while ((it = um_list_first(&out->dirty)) != NULL) {
        struct um_unicast_peer *peer = UM_CONTAINER_OF(it, struct um_unicast_peer, dirty_node);
        um_list_remove(it);
        if (peer->gathers && peer->state == UM_PEER_CONNECTED) {
            write_queue(peer, um_loop_now(out->config.loop));
        }
        peer->gathers = false;
        sync_peer(peer);
        struct saying saying = take_news(peer);
        struct um_unicast_link *fresh = peer->link != NULL && !peer->link->sized ? peer->link : NULL;
        bool over = peer->state == UM_PEER_DEAD && peer->waiters == 0;
        if (over) {
            um_list_remove(&peer->dirty_node);
            um_list_remove(&peer->node);
        }
        um_lock_give(&out->lock);
        say(out, &saying);
        if (fresh != NULL) { /* only the loop closes it; this may write to the log */
            fresh->sized = true;
            um_socket_set_sndbuf(fresh->stream.fd, out->config.send_buffer, UM_SIZE_SET,
                                 "response_session_sender_socket_buffer", "Core-5688-3309");
        }
        if (over) {
            um_unicast_peer_free(peer);
        }
        um_lock_take(&out->lock);
    }
    um_lock_give(&out->lock);
}

static void ring(struct um_unicast_out *out)
{
    struct um_list *it;
    um_lock_take(&out->lock);
    while (out->wake_due && (it = um_list_first(&out->wakers)) != NULL) {
        um_list_remove(it);
        um_list_push_back(&out->ringing, it);
    }
    out->wake_due = false;
    while ((it = um_list_first(&out->ringing)) != NULL) {
        struct um_unicast_waker *waker = UM_CONTAINER_OF(it, struct um_unicast_waker, node);
        um_list_remove(it);
        waker->asked = false;
        um_lock_give(&out->lock);
        waker->fn(waker);
        um_lock_take(&out->lock);
    }
    um_lock_give(&out->lock);
}

void um_unicast_serve(struct um_unicast_out *out)
{
    serve_peers(out);
    close_graves(out);
    ring(out);
}

/* ---- beginning and end ---- */

void um_unicast_peer_free(struct um_unicast_peer *peer)
{
    um_timer_cancel(wheel_of(peer), &peer->retry_timer);
    um_timer_cancel(wheel_of(peer), &peer->idle_timer);
    um_datagram_queue_free(&peer->queue);
    if (peer->wake_fd >= 0) {
        um_fd_close(peer->wake_fd);
    }
    um_free(peer);
}

struct um_unicast_peer *um_unicast_peer_create(struct um_unicast_out *out, const struct um_unicast_address *address,
                                               uint64_t now_ns)
{
    struct um_unicast_peer *peer = um_calloc(1, sizeof *peer);
    if (peer == NULL) {
        um_error_nomem("unicast destination", sizeof *peer);
        return NULL;
    }
    peer->out = out;
    peer->address = *address;
    peer->last_used_ns = peer->down_ns = now_ns;
    peer->wake_fd = -1;
    um_list_init(&peer->node);
    um_list_init(&peer->dirty_node);
    um_list_init(&peer->holds);
    um_list_init(&peer->line);
    um_timer_init(&peer->retry_timer, on_retry_timer);
    um_timer_init(&peer->idle_timer, on_idle_timer);
    if (um_map_put(&out->by_address, address, sizeof *address, peer) != 0) {
        um_free(peer);
        um_error_nomem("unicast destination", sizeof *address);
        return NULL;
    }
    if (start_connect(peer) != 0) {
        um_map_remove(&out->by_address, address, sizeof *address);
        um_free(peer);
        return NULL;
    }
    um_list_push_back(&out->peers, &peer->node);
    atomic_fetch_add_explicit(&out->config.counters->outgoing, 1, memory_order_relaxed);
    return peer;
}
