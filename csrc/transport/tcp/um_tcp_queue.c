/* Output queues of TCP source sessions: direct sends, queues behind slow
 * clients, the three multiple-receiver behaviours, and senders that wait.
 * Everything here runs under the session lock, in a sender's thread or on the
 * loop, except the reporting of drops. */
#include "transport/tcp/um_tcp_src_session.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_mem.h"

#define UM_CUT_MAX 64u /* datagrams taken out of a queue at a time */
#define UM_POLL_FEW 32

static void ask_for_report(struct um_tcp_src_session *session)
{
    if (!session->report_wanted) {
        session->report_wanted = true;
        um_loop_post(session->base.env->loop, &session->base.command);
    }
}

/* The client's queue has changed since it had `before` bytes: so has what the session has queued in all. */
static void account(struct um_tcp_client *client, size_t before)
{
    client->session->queued_bytes += client->queue.bytes - before;
}

static void queue_push(struct um_tcp_client *client, struct um_datagram *datagram, size_t written)
{
    size_t before = client->queue.bytes;
    if (!um_datagram_queue_push(&client->queue, datagram, written)) {
        um_tcp_client_fail_no_memory(client); /* a hole in the stream would go unnoticed; the end does not */
        return;
    }
    account(client, before);
    client->full |= client->queue.bytes >= client->session->limit;
}

/* Bytes have gone to the receiver. What is taken out of the queue makes room too, but no receiver faster. */
static void queue_was_read(struct um_tcp_client *client)
{
    size_t limit = client->session->limit;
    if (client->queue.bytes < (client->cut ? limit / 2 + 1 : limit)) {
        client->full = client->cut = false;
    }
}

static void release(struct um_tcp_client *client, struct um_datagram *datagram)
{
    client->written_continues = datagram->continues;
    um_datagram_unref(&client->session->base, datagram);
}

static void queue_clear(struct um_tcp_client *client)
{
    size_t before = client->queue.bytes;
    struct um_datagram *datagram;
    while ((datagram = um_datagram_queue_pop(&client->queue)) != NULL) {
        release(client, datagram);
    }
    account(client, before);
}

void um_tcp_client_drop_queue(struct um_tcp_client *client)
{
    if (client->queue.bytes > 0) {
        client->session->base.drops.unsent_bytes += client->queue.bytes;
        ask_for_report(client->session);
    }
    queue_clear(client);
}

void um_tcp_client_fail(struct um_tcp_client *client)
{
    struct um_tcp_src_session *session = client->session;
    if (client->dead) {
        return;
    }
    client->dead = true;
    um_tcp_client_drop_queue(client);
    um_stream_abort(&client->stream);
    um_tcp_pressure(session);
}

void um_tcp_client_fail_no_memory(struct um_tcp_client *client)
{
    client->session->no_memory++;
    ask_for_report(client->session);
    um_tcp_client_fail(client);
}

/* Not while a waiting sender moves the queues: it hands them over when it leaves. It may sleep without watching this
 * socket, which had nothing to write when it began. */
void um_tcp_ask_loop_to_write(struct um_tcp_client *client)
{
    struct um_src_session *base = &client->session->base;
    if (base->polling) {
        if (client->queue.count <= 1) {
            um_tcp_interrupt(base);
        }
    } else if (!client->write_wanted) {
        client->write_wanted = true;
        um_loop_post(base->env->loop, &base->command);
    }
}

/* ---- flow control ---- */

static bool client_full(const struct um_tcp_client *client)
{
    return client->queue.bytes >= client->session->limit;
}

/* Is there a live client that is not full, with a queue at or below `bytes` (or no live client at all)? */
static bool some_client_below(const struct um_tcp_src_session *session, size_t bytes)
{
    int live = 0;
    for (int i = 0; i < session->base.clients; i++) {
        const struct um_tcp_client *client = session->clients[i];
        if (!client->dead) {
            live++;
            bool full = client->full && client->queue.count > 0;
            if (!full && client->queue.bytes <= bytes) {
                return true;
            }
        }
    }
    return live == 0;
}

bool um_tcp_relieved(const struct um_src_session *base)
{
    const struct um_tcp_src_session *session = UM_CONTAINER_OF(base, struct um_tcp_src_session, base);
    switch (session->behavior) {
    case LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_NORMAL:
        return session->queued_bytes <= session->limit / 2;
    case LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_BOUNDED_LATENCY:
        return some_client_below(session, session->limit / 2);
    default:
        return true;
    }
}

/* The queues changed: decide whether sends are blocked, let go on what may. */
void um_tcp_pressure(struct um_tcp_src_session *session)
{
    switch (session->behavior) {
    case LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_NORMAL:
        session->base.blocked = session->queued_bytes >= session->limit;
        break;
    case LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_BOUNDED_LATENCY:
        session->base.blocked = !some_client_below(session, session->limit - 1);
        break;
    default:
        break;
    }
    um_src_session_relieve(&session->base);
}

/* ---- dropping for slow clients ---- */

static void count_drop(struct um_tcp_src_session *session, const struct um_datagram *datagram)
{
    session->base.drops.datagrams++;
    session->base.drops.bytes += datagram->len;
    ask_for_report(session);
}

/* Take `count` datagrams out of the queue, from position `from` on. */
static void queue_cut(struct um_tcp_client *client, uint32_t from, uint32_t count)
{
    struct um_datagram *gone[UM_CUT_MAX];
    while (count > 0) {
        uint32_t part = count < UM_CUT_MAX ? count : UM_CUT_MAX;
        size_t before = client->queue.bytes;
        for (uint32_t i = 0; i < part; i++) {
            gone[i] = um_datagram_queue_at(&client->queue, from + i);
            count_drop(client->session, gone[i]);
        }
        um_datagram_queue_cut(&client->queue, from, part);
        account(client, before);
        for (uint32_t i = 0; i < part; i++) {
            um_datagram_unref(&client->session->base, gone[i]);
        }
        count -= part;
    }
}

/* Remove the oldest whole messages: from the first datagram that begins with a new message and of which nothing has
 * been written, through the datagram in which every message begun there has ended. False: there is none. */
static bool drop_oldest(struct um_tcp_client *client)
{
    uint32_t from = 0;
    bool inside = client->written_continues;
    if (client->queue.count > 0 && client->queue.head_written > 0) {
        inside = um_datagram_queue_at(&client->queue, 0)->continues;
        from = 1;
    }
    while (from < client->queue.count && inside) {
        inside = um_datagram_queue_at(&client->queue, from++)->continues;
    }
    if (from >= client->queue.count) {
        return false;
    }
    uint32_t end = from;
    while (end < client->queue.count && um_datagram_queue_at(&client->queue, end)->continues) {
        end++;
    }
    if (end < client->queue.count) {
        end++;
    } else {
        client->skipping = client->tail_continues; /* the message is still being sent */
    }
    client->cut = true;
    queue_cut(client, from, end - from);
    return true;
}

/* Full, and others are not: who paces the source is waited for, and gets all of what was accepted before that showed.
 */
static bool is_slow(const struct um_tcp_client *client)
{
    const struct um_tcp_src_session *session = client->session;
    bool paces = session->behavior == LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_BOUNDED_LATENCY && session->base.blocked;
    return client_full(client) && !paces;
}

/* Room for one more datagram in the queue of a slow client; false: it is not to be queued. */
static bool make_room(struct um_tcp_client *client, const struct um_datagram *datagram)
{
    while (client_full(client) && drop_oldest(client)) {
    }
    if (client->skipping) {
        client->skipping = datagram->continues;
        return false;
    }
    if (client_full(client)) {
        client->session->dropped_new++;
        client->skipping = datagram->continues;
        return false;
    }
    return true;
}

/* ---- output ---- */

/* A filter kept bytes that it took, or read some in order to write: the loop goes on with both. */
static void filter_holds_bytes(struct um_tcp_client *client)
{
    if (client->stream.unsent) {
        um_tcp_ask_loop_to_write(client);
    }
    if (client->stream.pending) {
        um_loop_post(client->session->base.env->loop, &client->session->base.command);
    }
}

void um_tcp_client_put(struct um_tcp_client *client, struct um_datagram *datagram)
{
    struct um_tcp_src_session *session = client->session;
    bool drops = session->behavior != LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_NORMAL;
    if (client->dead) {
        return;
    }
    if (drops) {
        bool skip = client->skipping;
        if (skip) {
            client->skipping = datagram->continues;
        } else {
            skip = is_slow(client) && !make_room(client, datagram);
        }
        client->tail_continues = datagram->continues;
        if (skip) {
            count_drop(session, datagram);
            return;
        }
    }
    ssize_t sent = 0;
    if (client->queue.count == 0) {
        client->full = client->cut = false;
        sent = um_stream_write(&client->stream, datagram->data, datagram->len);
        if (sent == (ssize_t)datagram->len) {
            client->written_continues = datagram->continues;
            if (client->stream.unsent || client->stream.pending) {
                filter_holds_bytes(client);
            }
            return;
        }
        if (sent < 0) {
            um_tcp_client_fail(client);
            return;
        }
    }
    queue_push(client, datagram, (size_t)sent);
    um_tcp_ask_loop_to_write(client);
}

/* What has just been queued moves to a buffer of its size, so that many small datagrams behind a slow client take the
 * memory of their bytes and not of as many full batches. The buffer of the batch is used again at once. */
static void queue_compact(struct um_tcp_src_session *session, struct um_datagram *datagram)
{
    if (datagram->refs == 1 || datagram->len > session->base.datagram_max / 2) {
        return;
    }
    struct um_datagram *copy = um_datagram_copy(datagram);
    if (copy == NULL) {
        return; /* it stays where it is */
    }
    for (int i = 0; i < session->base.clients; i++) {
        struct um_tcp_client *client = session->clients[i];
        if (um_datagram_queue_replace_last(&client->queue, datagram, copy)) {
            copy->refs++;
            datagram->refs--;
        }
    }
    um_datagram_unref(&session->base, copy);
}

/* Write the queue out as far as the stream takes it. */
void um_tcp_client_write(struct um_tcp_client *client)
{
    ssize_t taken = 1;
    while (client->queue.count > 0 && taken > 0) {
        size_t before = client->queue.bytes;
        taken = um_datagram_queue_write(&client->queue, &client->stream);
        account(client, before);
        if (taken > 0) {
            queue_was_read(client);
        }
        struct um_datagram *datagram;
        while ((datagram = um_datagram_queue_written(&client->queue)) != NULL) {
            release(client, datagram);
        }
    }
    if (taken < 0) {
        um_tcp_client_fail(client);
    }
    if (client->queue.count == 0 && !um_stream_flush(&client->stream)) {
        um_tcp_client_fail(client);
    }
    if (client->stream.pending) {
        um_loop_post(client->session->base.env->loop, &client->session->base.command);
    }
    um_tcp_pressure(client->session);
}

/* ---- filtering ---- */

static uint32_t message_topic(const uint8_t *message)
{
    return message[0] == UM_LBMC_CONTROL ? um_get32(message + 8) /* TSNI with one record */ : um_get32(message + 4);
}

static size_t wanted_bytes(const struct um_tcp_client *client, const struct um_datagram *datagram)
{
    size_t wanted = 0;
    for (size_t at = 0; at < datagram->len; at += um_get16(datagram->data + at + 2)) {
        if (um_tcp_client_wants(client, message_topic(datagram->data + at))) {
            wanted += um_get16(datagram->data + at + 2);
        }
    }
    return wanted;
}

static void put_filtered(struct um_tcp_client *client, struct um_datagram *datagram)
{
    struct um_src_session *base = &client->session->base;
    size_t wanted = wanted_bytes(client, datagram);
    base->drops.filtered_bytes += datagram->len - wanted;
    if (wanted == datagram->len) {
        um_tcp_client_put(client, datagram);
        return;
    }
    if (wanted == 0) {
        client->skipping = client->skipping && datagram->continues;
        client->tail_continues = datagram->continues;
        return;
    }
    struct um_datagram *part = um_datagram_get(base);
    if (part == NULL) {
        um_tcp_client_fail_no_memory(client);
        return;
    }
    for (size_t at = 0, len; at < datagram->len; at += len) {
        len = um_get16(datagram->data + at + 2);
        if (um_tcp_client_wants(client, message_topic(datagram->data + at))) {
            memcpy(part->data + part->len, datagram->data + at, len);
            part->len += (uint32_t)len;
        }
    }
    part->continues = datagram->continues;
    um_tcp_client_put(client, part);
    queue_compact(client->session, part);
    um_datagram_unref(base, part);
}

/* A new random order for every datagram. */
static void shuffle(struct um_tcp_src_session *session)
{
    for (int i = 0; i < session->base.clients; i++) {
        int j = (int)um_rng_range(&session->rng, 0, (uint64_t)i);
        session->order[i] = session->order[j];
        session->order[j] = i;
    }
}

void um_tcp_transmit(struct um_src_session *base, struct um_datagram *datagram)
{
    struct um_tcp_src_session *session = UM_CONTAINER_OF(base, struct um_tcp_src_session, base);
    int clients = base->clients;
    if (clients == 0) {
        base->drops.unheard_bytes += datagram->len;
    } else if (session->random_order && clients > 1) {
        shuffle(session);
    }
    for (int i = 0; i < clients; i++) {
        struct um_tcp_client *client = session->clients[session->random_order && clients > 1 ? session->order[i] : i];
        if (session->ssf != UM_TCP_SSF_NONE) {
            put_filtered(client, datagram);
        } else {
            um_tcp_client_put(client, datagram);
        }
    }
    queue_compact(session, datagram);
    um_datagram_unref(base, datagram);
    if (session->queued_bytes > 0 || base->blocked) {
        um_tcp_pressure(session);
    }
}

/* ---- waiting senders ---- */

static int gather_fds(struct um_tcp_src_session *session, struct pollfd *fds, int max)
{
    int count = 0;
    fds[count++] = (struct pollfd){.fd = session->wake_fd, .events = POLLIN};
    for (int i = 0; i < session->base.clients && count < max; i++) {
        struct um_tcp_client *client = session->clients[i];
        if (um_tcp_client_has_output(client)) {
            short events = client->stream.write_wants == UM_FD_WRITE ? POLLOUT : POLLIN;
            fds[count++] = (struct pollfd){.fd = client->stream.fd, .events = events};
        }
    }
    return count;
}

/* The waiting sender moves the queues itself, so that it needs no loop: it sleeps until a client takes bytes or
 * somebody interrupts. Clients beyond the room for descriptors (out of memory) are left to the loop. */
void um_tcp_wait(struct um_src_session *base)
{
    struct um_tcp_src_session *session = UM_CONTAINER_OF(base, struct um_tcp_src_session, base);
    struct pollfd few[UM_POLL_FEW], *fds = few;
    int max = base->clients + 1;
    if (max > UM_POLL_FEW) {
        fds = um_malloc((size_t)max * sizeof *fds);
        if (fds == NULL) {
            fds = few;
            max = UM_POLL_FEW;
        }
    }
    int count = gather_fds(session, fds, max);
    um_src_session_unlock(base);
    poll(fds, (nfds_t)count, -1);
    um_src_session_lock(base);
    if (fds[0].revents & POLLIN) {
        uint64_t value;
        ssize_t got = read(session->wake_fd, &value, sizeof value);
        (void)got; /* emptied is all that counts */
    }
    if (fds != few) {
        um_free(fds);
    }
    for (int i = 0; i < base->clients; i++) {
        if (um_tcp_client_has_output(session->clients[i])) {
            um_tcp_client_write(session->clients[i]);
        }
    }
}

void um_tcp_resume(struct um_src_session *base)
{
    struct um_tcp_src_session *session = UM_CONTAINER_OF(base, struct um_tcp_src_session, base);
    for (int i = 0; i < base->clients; i++) {
        if (um_tcp_client_has_output(session->clients[i])) {
            um_tcp_ask_loop_to_write(session->clients[i]);
        }
    }
}

void um_tcp_interrupt(struct um_src_session *base)
{
    struct um_tcp_src_session *session = UM_CONTAINER_OF(base, struct um_tcp_src_session, base);
    uint64_t one = 1;
    ssize_t put = write(session->wake_fd, &one, sizeof one);
    (void)put; /* full means: already interrupted */
}

/* ---- reports ---- */

void um_tcp_report_drops(struct um_tcp_src_session *session, uint64_t now_ns)
{
    struct um_src_session *base = &session->base;
    um_src_session_lock(base);
    bool wanted = session->report_wanted;
    session->report_wanted = false;
    struct um_src_drops drops = base->drops;
    uint64_t dropped_new = session->dropped_new, no_memory = session->no_memory;
    bool told_unsent = drops.unsent_bytes == session->unsent_told;
    bool told_dropped = drops.datagrams == session->dropped_told;
    session->unsent_told = drops.unsent_bytes;
    session->dropped_told = drops.datagrams;
    session->no_memory = 0;
    um_src_session_unlock(base);
    if (!wanted) {
        return;
    }
    char text[64];
    um_tcp_src_session_text(session, text, sizeof text);
    if (!told_dropped) {
        bool paced = session->behavior == LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_SOURCE_PACED;
        um_log_limited(
            um_log_of(text), now_ns, UM_LOG_WARNING, paced ? "Core-5688-3927" : "Core-5688-3928",
            "%s: %s: whole messages dropped for slow receivers, up to now %llu datagrams with %llu bytes (%llu of "
            "them new ones nothing could make room for); transport_session_maximum_buffer is %zu",
            text, paced ? "source_paced" : "bounded_latency", (unsigned long long)drops.datagrams,
            (unsigned long long)drops.bytes, (unsigned long long)dropped_new, session->limit);
    }
    if (!told_unsent) {
        um_log_limited(um_log_of(text), now_ns, UM_LOG_WARNING, "Core-5688-3929",
                       "%s: connections ended with data still queued for them, up to now %llu bytes", text,
                       (unsigned long long)drops.unsent_bytes);
    }
    if (no_memory > 0) {
        um_log(UM_LOG_ERR, "Core-5688-3930", "%s: out of memory, %llu receivers disconnected", text,
               (unsigned long long)no_memory);
    }
}
