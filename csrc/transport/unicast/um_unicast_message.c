/* Messages of unicast connections as they are queued: with room for the heading that is
 * filled in for the connection they go out on; several in one piece of memory when they
 * gather. Under the layer's lock once they are queued. */
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "transport/unicast/um_unicast_parts.h"

#define SHARED_BYTES 16384u /* for messages that gather */
#define SHARED_MOST 2048u   /* those that are longer have memory of their own */

static size_t heading_len(enum um_unicast_heading heading)
{
    switch (heading) {
    case UM_UNICAST_TO_ADDRESS:
        return UM_LBMC_STREAM_HDR_LEN + UM_LBMC_DESTINATION_HDR_LEN;
    case UM_UNICAST_TO_INSTANCE:
        return UM_LBMC_STREAM_HDR_LEN + UM_LBMC_CTXINST_HDR_LEN;
    default:
        return 0;
    }
}

static size_t fixed_len(uint8_t type)
{
    return type == UM_LBMC_CONTROL || type == UM_LBMC_EOT ? UM_LBMC_CONTROL_HDR_LEN : UM_LBMC_DATA_HDR_LEN;
}

static size_t body_len(const struct um_unicast_send *send)
{
    size_t len = 0;
    for (int i = 0; i < send->iovcnt; i++) {
        len += send->iov[i].iov_len;
    }
    return len;
}

static size_t fixed_len_of(const struct um_unicast_send *send)
{
    return send->iov[0].iov_len > 0 ? fixed_len(*(const uint8_t *)send->iov[0].iov_base) : UM_LBMC_DATA_HDR_LEN;
}

static bool is_valid(const struct um_unicast_send *send, size_t len)
{
    return send->ip != 0 && send->port != 0 && len <= UM_LBMC_MAX_MSGLEN - heading_len(send->heading) &&
           send->iov[0].iov_len >= fixed_len_of(send) &&
           (send->heading != UM_UNICAST_TO_INSTANCE || send->instance != NULL);
}

/* Codes of the headers that the heading announces, where um_unicast_message_stamp() keeps them. */
static void put_heading(uint8_t *data, size_t fixed, size_t len, const struct um_unicast_send *send)
{
    uint8_t *p = data + fixed;
    uint8_t first = data[1];
    memset(p, 0, heading_len(send->heading));
    data[1] = UM_LBMC_HDR_STREAM;
    um_put16(data + 2, (uint16_t)len);
    if (send->heading == UM_UNICAST_TO_ADDRESS) {
        p[0] = UM_LBMC_HDR_DESTINATION;
        p[UM_LBMC_STREAM_HDR_LEN] = first;
    } else {
        p[0] = UM_LBMC_HDR_CTXINSTD;
        um_lbmc_put_ctxinst(p + UM_LBMC_STREAM_HDR_LEN, first, send->instance);
    }
}

/* Behind what is in it; there is room. */
static void add(struct um_unicast_message *message, const struct um_unicast_send *send, size_t len)
{
    size_t fixed = fixed_len_of(send), before = heading_len(send->heading);
    uint8_t *data = message->data + message->datagram.len, *to = data + fixed + before;
    memcpy(data, send->iov[0].iov_base, fixed);
    for (int i = 0; i < send->iovcnt; i++) {
        size_t skip = i == 0 ? fixed : 0;
        memcpy(to, (const uint8_t *)send->iov[i].iov_base + skip, send->iov[i].iov_len - skip);
        to += send->iov[i].iov_len - skip;
    }
    if (send->heading != UM_UNICAST_BARE) {
        put_heading(data, fixed, before + len, send);
    }
    message->datagram.len += (uint32_t)(before + len);
    message->count++;
}

struct um_unicast_message *um_unicast_message_create(const struct um_unicast_send *send)
{
    size_t len = body_len(send), whole = heading_len(send->heading) + len;
    if (!is_valid(send, len)) {
        um_error(UM_EINVAL, "Core-9003-10",
                 "unicast message: address %s, port %u, length %zu (at most %zu): all must be valid",
                 send->ip == 0 ? "0.0.0.0" : "given", send->port, len,
                 (size_t)UM_LBMC_MAX_MSGLEN - heading_len(send->heading));
        return NULL;
    }
    bool shared = send->gathers && send->heading != UM_UNICAST_BARE && whole <= SHARED_MOST;
    size_t capacity = shared ? SHARED_BYTES : whole;
    struct um_unicast_message *message = um_malloc(sizeof *message + capacity);
    if (message == NULL) {
        um_error_nomem("unicast message", whole);
        return NULL;
    }
    memset(message, 0, sizeof *message);
    message->heading = send->heading;
    message->domain = send->domain;
    message->capacity = (uint32_t)capacity;
    message->datagram.data = message->data;
    add(message, send, len);
    return message;
}

size_t um_unicast_message_append(struct um_unicast_message *message, const struct um_unicast_send *send)
{
    size_t len = body_len(send), whole = heading_len(send->heading) + len;
    if (whole > message->capacity - message->datagram.len || message->heading != send->heading ||
        message->domain != send->domain || send->heading == UM_UNICAST_BARE || !is_valid(send, len)) {
        return 0;
    }
    add(message, send, len);
    return whole;
}

static void stamp_one(struct um_unicast_peer *peer, const struct um_unicast_message *message, uint8_t *data)
{
    const struct um_unicast_out_config *config = &peer->out->config;
    uint8_t *p = data + fixed_len(data[0]);
    uint8_t next = p[0];
    p += um_lbmc_put_stream(p, next, peer->stream_id, peer->stream_sqn++, config->ctxinst);
    if (message->heading == UM_UNICAST_TO_ADDRESS) {
        uint32_t orig_ip = config->request_addr.s_addr != INADDR_ANY ? config->request_addr.s_addr : peer->local_ip;
        um_lbmc_put_destination(p, p[0], message->domain, peer->address.ip, (uint16_t)peer->address.port, 0, orig_ip,
                                config->request_port);
    }
}

void um_unicast_message_stamp(struct um_unicast_peer *peer, struct um_unicast_message *message, size_t from)
{
    if (message->heading == UM_UNICAST_BARE) {
        return;
    }
    while (from < message->datagram.len) {
        stamp_one(peer, message, message->data + from);
        from += um_get16(message->data + from + 2);
    }
}

/* The next one is like that before it, but for its own numbers, its body and the number in its stream. */
static void repeat(struct um_unicast_peer *peer, struct um_unicast_message *message, const uint8_t *body, size_t len)
{
    size_t fixed = fixed_len(body[0]), headers = fixed + heading_len(message->heading), whole = headers - fixed + len;
    uint8_t *data = message->data + message->datagram.len;
    memcpy(data, data - whole, headers);
    memcpy(data + UM_LBMC_CONTROL_HDR_LEN, body + UM_LBMC_CONTROL_HDR_LEN, fixed - UM_LBMC_CONTROL_HDR_LEN);
    memcpy(data + headers, body + fixed, len - fixed);
    if (peer->state == UM_PEER_CONNECTED) { /* otherwise all are stamped when it is */
        um_put32(data + fixed + UM_LBMC_STREAM_SQN, peer->stream_sqn++);
    }
    message->datagram.len += (uint32_t)whole;
    message->count++;
}

uint32_t um_unicast_message_append_run(struct um_unicast_peer *peer, struct um_unicast_message *message,
                                       const struct um_unicast_send *send, const uint8_t *bodies, uint32_t count)
{
    size_t len = um_get16(bodies + 2), from = message->datagram.len;
    struct um_unicast_send first = *send;
    const struct iovec iov = {(void *)bodies, len};
    first.iov = &iov;
    size_t whole = um_unicast_message_append(message, &first);
    if (whole == 0) {
        return 0;
    }
    if (peer->state == UM_PEER_CONNECTED) {
        um_unicast_message_stamp(peer, message, from);
    }
    uint32_t done = 1;
    for (; done < count && message->capacity - message->datagram.len >= whole; done++) {
        repeat(peer, message, bodies + done * len, len);
    }
    return done;
}
