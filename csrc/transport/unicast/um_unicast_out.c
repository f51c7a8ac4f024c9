/* Sending over unicast connections, from any thread: finding or making the destination,
 * waiting for room, refusals and who is told about their end. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "transport/unicast/um_unicast_parts.h"

#define MESSAGE_SQN 8 /* offset of the sequence number in messages with data */

/* A waiting sender's place in the line; on its stack. */
struct place {
    struct um_list node;
};

static uint64_t time_now(const struct um_unicast_out *out)
{
    return um_loop_on_thread(out->config.loop) ? um_loop_now(out->config.loop) : um_clock_ns();
}

/* ---- destinations ---- */

/* Lock. Room for one more destination: the one unused for the longest time goes, if nothing is queued for it. */
static bool make_room(struct um_unicast_out *out)
{
    struct um_list *it;
    if (um_map_count(&out->by_address) < UM_UNICAST_MAX_OUTGOING) {
        return true;
    }
    UM_LIST_FOREACH(it, &out->peers)
    {
        struct um_unicast_peer *peer = UM_CONTAINER_OF(it, struct um_unicast_peer, node);
        if (peer->queue.count == 0 && peer->waiters == 0 && um_list_empty(&peer->holds)) {
            um_unicast_peer_die(peer, "");
            return true;
        }
    }
    atomic_fetch_add_explicit(&out->config.counters->destinations_refused, 1, memory_order_relaxed);
    return false;
}

/* Lock. Whoever sends much to one destination finds it at once. */
static struct um_unicast_peer *known_peer(struct um_unicast_out *out, const struct um_unicast_address *address)
{
    struct um_unicast_peer *peer = out->latest;
    if (peer == NULL || memcmp(&peer->address, address, sizeof *address) != 0) {
        peer = um_map_get(&out->by_address, address, sizeof *address);
        out->latest = peer;
    }
    return peer;
}

/* Lock. NULL + error. */
static struct um_unicast_peer *find_peer(struct um_unicast_out *out, uint32_t ip, uint16_t port, uint32_t from_ip,
                                         uint64_t now_ns)
{
    struct um_unicast_address address = {.ip = ip, .port = port, .from = from_ip};
    if (out->closing) {
        um_error(UM_EINVAL, "Core-9003-11", "unicast message: the context is being deleted");
        return NULL;
    }
    struct um_unicast_peer *peer = known_peer(out, &address);
    if (peer != NULL) {
        return peer;
    }
    if (!make_room(out)) {
        um_error(UM_ENOMEM, "Core-9003-12",
                 "unicast message: messages are queued for %u destinations, the most there may be",
                 UM_UNICAST_MAX_OUTGOING);
        return NULL;
    }
    return um_unicast_peer_create(out, &address, now_ns);
}

/* ---- waiting ---- */

/* Lock, released meanwhile. The waiting sender moves the queue itself, so that it needs no loop: it sleeps until the
 * stream is ready, the next attempt to connect is due, or somebody interrupts. */
static void poll_peer(struct um_unicast_peer *peer)
{
    struct um_unicast_out *out = peer->out;
    struct pollfd fds[2] = {{.fd = peer->wake_fd, .events = POLLIN}};
    nfds_t count = 1;
    uint64_t now_ns = um_clock_ns(), until_ns = um_unicast_peer_give_up_ns(peer);
    if (peer->link != NULL) {
        uint32_t interest = um_stream_interest(&peer->link->stream, UM_FD_WRITE);
        fds[count++] = (struct pollfd){
            .fd = peer->link->stream.fd,
            .events = (short)((interest & UM_FD_READ ? POLLIN : 0) | (interest & UM_FD_WRITE ? POLLOUT : 0))};
    } else if (peer->retry_ns < until_ns) {
        until_ns = peer->retry_ns;
    }
    int timeout_ms = -1;
    if (until_ns != UM_NEVER) {
        timeout_ms = until_ns > now_ns ? (int)((until_ns - now_ns) / UM_NS_PER_MS + 1) : 0;
    }
    um_lock_give(&out->lock);
    poll(fds, count, timeout_ms);
    um_lock_take(&out->lock);
    if (fds[0].revents & POLLIN) {
        uint64_t value;
        ssize_t got = read(peer->wake_fd, &value, sizeof value);
        (void)got; /* emptied is all that counts */
    }
    if (!out->closing && peer->state != UM_PEER_DEAD) {
        bool readable = count == 2 && (fds[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
        um_unicast_peer_service(peer, readable ? UM_FD_READ : 0, um_clock_ns());
    }
}

static void wait_for_change(struct um_unicast_peer *peer)
{
    struct um_unicast_out *out = peer->out;
    if (peer->polling) {
        um_condition_wait(&out->changed, &out->lock);
        return;
    }
    peer->polling = true;
    poll_peer(peer);
    peer->polling = false;
    um_condition_signal_all(&out->changed); /* another waiting thread takes over the polling */
}

/* Lock, released meanwhile. 0: there is room and it is this sender's turn. -1 + error. */
static int wait_for_room(struct um_unicast_peer *peer)
{
    struct um_unicast_out *out = peer->out;
    struct place place;
    if (peer->wake_fd < 0) {
        peer->wake_fd = um_fd_own(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
        if (peer->wake_fd < 0) {
            return um_error_os(errno, "Core-9003-13", "waiting to send a unicast message: eventfd");
        }
    }
    um_list_push_back(&peer->line, &place.node);
    peer->waiters++;
    out->waiters++;
    while (!out->closing && peer->state != UM_PEER_DEAD &&
           !(um_unicast_peer_relieved(peer) && peer->line.next == &place.node)) {
        wait_for_change(peer);
    }
    um_list_remove(&place.node);
    peer->waiters--;
    out->waiters--;
    um_condition_signal_all(&out->changed); /* the next one looks, or the one that destroys */
    um_unicast_peer_interrupt(peer);
    um_unicast_peer_mark(peer); /* the queue is the loop's again; a dead peer may be freed */
    if (out->closing) {
        return um_error(UM_EINVAL, "Core-9003-14", "unicast message: the context was deleted while the call waited");
    }
    if (peer->state == UM_PEER_DEAD) {
        return um_error(UM_EOS, "Core-9003-15",
                        "unicast message: the destination was given up while the call waited: not reachable");
    }
    return 0;
}

static int refuse(struct um_unicast_peer *peer, struct um_unicast_waker *waker)
{
    struct um_unicast_out *out = peer->out;
    peer->refused = true;
    if (waker != NULL && !waker->asked) {
        waker->asked = true;
        um_list_push_back(&out->wakers, &waker->node);
    }
    char ip[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &peer->address.ip, ip, sizeof ip);
    return um_error(UM_EWOULDBLOCK, "Core-9003-9",
                    "unicast connection to %s:%u: %zu bytes are queued (response_session_maximum_buffer %zu)", ip,
                    (unsigned)peer->address.port, peer->queue.bytes, out->config.queue_limit);
}

/* ---- sending ---- */

/* In a callback, with another pass to follow by itself. */
static bool in_embedded_pass(const struct um_unicast_out *out)
{
    return um_loop_on_thread(out->config.loop) && um_loop_embedded(out->config.loop);
}

/* Lock. */
static int send_message(struct um_unicast_out *out, const struct um_unicast_send *send,
                        struct um_unicast_message *message)
{
    uint64_t now_ns = time_now(out);
    struct um_unicast_peer *peer = find_peer(out, send->ip, send->port, send->from_ip, now_ns);
    if (peer == NULL) {
        return -1;
    }
    if (!send->unconditional && um_unicast_peer_full(peer)) {
        if (send->nonblocking || um_loop_in_family(out->config.loop)) {
            return refuse(peer, send->waker);
        }
        if (wait_for_room(peer) != 0) {
            return -1;
        }
        now_ns = time_now(out);
    }
    if (send->numbered) {
        um_put32(message->data + MESSAGE_SQN, peer->message_sqn);
    }
    bool gathers = send->gathers || (send->in_a_row && in_embedded_pass(out) &&
                                     um_unicast_peer_gathers_row(peer, message->datagram.len, now_ns));
    if (!um_unicast_peer_put(peer, message, gathers, now_ns)) {
        return -1;
    }
    peer->message_sqn += send->numbered;
    return 0;
}

/* Lock. Into the memory of what gathers already. False: the message needs its own, or is refused. */
static bool join_others(struct um_unicast_out *out, const struct um_unicast_send *send)
{
    const struct um_unicast_address address = {.ip = send->ip, .port = send->port, .from = send->from_ip};
    struct um_unicast_peer *peer = out->closing ? NULL : known_peer(out, &address);
    return peer != NULL && !um_unicast_peer_full(peer) && um_unicast_peer_join(peer, send, time_now(out));
}

/* Lock. */
static int gather(struct um_unicast_out *out, const struct um_unicast_send *send)
{
    if (join_others(out, send)) {
        return 0;
    }
    struct um_unicast_message *message = um_unicast_message_create(send);
    if (message == NULL) {
        return -1;
    }
    int rc = send_message(out, send, message);
    if (rc != 0) {
        um_free(message);
    }
    return rc;
}

/* How many messages from `data` on have the type, the first header and the length of the first. */
static uint32_t run_of(const uint8_t *data, const uint8_t *end)
{
    size_t len = um_get16(data + 2);
    const uint8_t *next = data + len;
    while (next < end && memcmp(next, data, UM_LBMC_CONTROL_HDR_LEN) == 0) {
        next += len;
    }
    return (uint32_t)((size_t)(next - data) / len);
}

/* Lock. As many of them as have room in the memory of what gathers already. Their bytes. */
static size_t join_run(struct um_unicast_out *out, const struct um_unicast_send *send, const uint8_t *data,
                       const uint8_t *end)
{
    const struct um_unicast_address address = {.ip = send->ip, .port = send->port, .from = send->from_ip};
    struct um_unicast_peer *peer = out->closing ? NULL : known_peer(out, &address);
    if (peer == NULL || um_unicast_peer_full(peer)) {
        return 0;
    }
    return um_get16(data + 2) * (size_t)um_unicast_peer_join_run(peer, send, data, run_of(data, end), time_now(out));
}

/* Up to the first that is refused. */
static int send_several(struct um_unicast_out *out, const struct um_unicast_send *send)
{
    const uint8_t *data = send->iov[0].iov_base, *end = data + send->iov[0].iov_len;
    struct iovec iov;
    struct um_unicast_send one = *send;
    int rc = 0;
    one.iov = &iov;
    um_lock_take(&out->lock);
    while (rc == 0 && data < end) {
        size_t joined = join_run(out, send, data, end);
        data += joined;
        if (joined == 0) {
            iov = (struct iovec){(void *)data, um_get16(data + 2)};
            data += iov.iov_len;
            rc = gather(out, &one);
        }
    }
    um_lock_give(&out->lock);
    return rc;
}

int um_unicast_out_send(struct um_unicast_out *out, const struct um_unicast_send *send)
{
    int rc;
    if (send->several) {
        return send_several(out, send);
    }
    if (send->gathers) {
        um_lock_take(&out->lock);
        rc = gather(out, send);
        um_lock_give(&out->lock);
        return rc;
    }
    struct um_unicast_message *message = um_unicast_message_create(send);
    if (message == NULL) {
        return -1;
    }
    um_lock_take(&out->lock);
    rc = send_message(out, send, message);
    um_lock_give(&out->lock);
    if (rc != 0) {
        um_free(message);
    }
    return rc;
}

/* ---- holds, listeners, wakers ---- */

int um_unicast_out_hold(struct um_unicast_out *out, uint32_t ip, uint16_t port, struct um_unicast_hold *hold)
{
    um_lock_take(&out->lock);
    uint64_t now_ns = time_now(out);
    struct um_unicast_peer *peer = find_peer(out, ip, port, 0, now_ns);
    if (peer != NULL) {
        um_unicast_peer_used(peer, now_ns);
        um_list_push_back(&peer->holds, &hold->node);
        hold->peer = peer;
        um_unicast_peer_mark(peer);
    }
    um_lock_give(&out->lock);
    return peer != NULL ? 0 : -1;
}

void um_unicast_out_release(struct um_unicast_out *out, struct um_unicast_hold *hold)
{
    um_lock_take(&out->lock);
    if (hold->peer != NULL) {
        um_list_remove(&hold->node);
        um_unicast_peer_used(hold->peer, time_now(out));
        hold->peer = NULL;
    }
    um_lock_give(&out->lock);
}

static void on_listener_command(struct um_command *command)
{
    struct um_unicast_listener *listener = UM_CONTAINER_OF(command, struct um_unicast_listener, command);
    struct um_unicast_out *out = listener->out;
    struct um_unicast_listener told;
    um_lock_take(&out->lock);
    memcpy(told.due, listener->due, sizeof told.due);
    told.due_count = listener->due_count;
    told.overflow = listener->overflow;
    listener->due_count = 0;
    listener->overflow = false;
    um_lock_give(&out->lock);
    for (int i = 0; i < told.due_count && !told.overflow; i++) {
        listener->fn(listener, told.due[i].ip, told.due[i].port);
    }
    if (told.overflow) {
        listener->fn(listener, 0, 0);
    }
}

void um_unicast_out_listen(struct um_unicast_out *out, struct um_unicast_listener *listener)
{
    listener->out = out;
    listener->due_count = 0;
    listener->overflow = false;
    um_command_init(&listener->command, on_listener_command);
    um_lock_take(&out->lock);
    um_list_push_back(&out->listeners, &listener->node);
    um_lock_give(&out->lock);
}

void um_unicast_out_unlisten(struct um_unicast_out *out, struct um_unicast_listener *listener)
{
    um_lock_take(&out->lock);
    um_list_remove(&listener->node);
    um_lock_give(&out->lock);
    um_loop_unpost(listener->loop, &listener->command);
}

void um_unicast_out_cancel_waker(struct um_unicast_out *out, struct um_unicast_waker *waker)
{
    um_lock_take(&out->lock);
    if (waker->asked) {
        waker->asked = false;
        um_list_remove(&waker->node);
    }
    um_lock_give(&out->lock);
}

/* ---- beginning and end ---- */

static void on_command(struct um_command *command)
{
    um_unicast_serve(UM_CONTAINER_OF(command, struct um_unicast_out, command));
}

struct um_unicast_out *um_unicast_out_create(const struct um_unicast_out_config *config)
{
    struct um_unicast_out *out = um_calloc(1, sizeof *out);
    if (out == NULL) {
        um_error_nomem("unicast connections", sizeof *out);
        return NULL;
    }
    out->config = *config;
    um_map_init(&out->by_address, NULL);
    um_list_init(&out->peers);
    um_list_init(&out->dead);
    um_list_init(&out->dirty);
    um_list_init(&out->graves);
    um_list_init(&out->listeners);
    um_list_init(&out->wakers);
    um_list_init(&out->ringing);
    um_command_init(&out->command, on_command);
    out->next_stream_id = um_random_u32_nonzero();
    return out;
}

/* Lock. Waiting senders leave. */
static void send_waiters_away(struct um_unicast_out *out)
{
    struct um_list *it;
    out->closing = true;
    UM_LIST_FOREACH(it, &out->peers)
    {
        um_unicast_peer_interrupt(UM_CONTAINER_OF(it, struct um_unicast_peer, node));
    }
    UM_LIST_FOREACH(it, &out->dead)
    {
        um_unicast_peer_interrupt(UM_CONTAINER_OF(it, struct um_unicast_peer, node));
    }
    um_condition_signal_all(&out->changed);
    while (out->waiters > 0) {
        um_condition_wait(&out->changed, &out->lock);
    }
}

void um_unicast_out_close(struct um_unicast_out *out)
{
    struct um_list *it, *tmp;
    um_lock_take(&out->lock);
    send_waiters_away(out);
    UM_LIST_FOREACH_SAFE(it, tmp, &out->peers)
    {
        struct um_unicast_peer *peer = UM_CONTAINER_OF(it, struct um_unicast_peer, node);
        um_unicast_peer_die(peer, "");
        peer->news = UM_PEER_NO_NEWS;
    }
    while ((it = um_list_first(&out->wakers)) != NULL) {
        um_list_remove(it);
        UM_CONTAINER_OF(it, struct um_unicast_waker, node)->asked = false;
    }
    while ((it = um_list_first(&out->listeners)) != NULL) {
        um_list_remove(it);
    }
    um_lock_give(&out->lock);
}

void um_unicast_out_destroy(struct um_unicast_out *out)
{
    if (out == NULL) {
        return;
    }
    um_unicast_out_close(out);
    um_unicast_serve(out);
    um_loop_unpost(out->config.loop, &out->command);
    um_map_clear(&out->by_address);
    um_free(out);
}
