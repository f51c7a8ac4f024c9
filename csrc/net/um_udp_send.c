/* Outgoing datagrams of one UDP socket. See um_udp_send.h. */
#define _GNU_SOURCE
#include "net/um_udp_send.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define SEND_FLAGS (MSG_NOSIGNAL | MSG_DONTWAIT)
#define SEGMENTED_BYTES_MAX 65000u /* of one send with segmentation */

void um_udp_out_init(struct um_udp_out *out, int fd, bool connected, bool segment)
{
    memset(out, 0, offsetof(struct um_udp_out, kept));
    out->fd = fd;
    out->connected = connected;
    out->segment = segment;
    out->segment_max = SEGMENTED_BYTES_MAX;
    out->oldest = UINT64_MAX;
}

/* ---- failures ---- */

/* The socket's buffer: poll tells when there is room. Nothing tells of the queue of a device (ENOBUFS): a failure. */
static bool is_full(int err)
{
    return err == EAGAIN || err == EWOULDBLOCK;
}

static void count_failed(struct um_udp_out *out, int err, unsigned datagrams)
{
    out->counters.failed += datagrams;
    out->last_error = err;
}

static void set_name(const struct um_udp_out *out, struct msghdr *msg, const struct sockaddr_in *to)
{
    if (!out->connected) {
        msg->msg_name = (void *)to;
        msg->msg_namelen = sizeof *to;
    }
}

/* An error that an earlier datagram met (ICMP) is reported once and says nothing about this one. */
static ssize_t send_once(struct um_udp_out *out, const struct msghdr *msg)
{
    ssize_t sent;
    int refused = 0;
    out->counters.system_calls++;
    do {
        sent = sendmsg(out->fd, msg, SEND_FLAGS);
    } while (sent < 0 && (errno == EINTR || (errno == ECONNREFUSED && refused++ == 0)));
    return sent;
}

/* ---- what is kept ---- */

static struct um_udp_kept *kept_at(struct um_udp_out *out, unsigned i)
{
    return &out->kept[(out->first + i) % UM_UDP_TRAIN];
}

static void forget(struct um_udp_out *out, unsigned count)
{
    out->first = (out->first + count) % UM_UDP_TRAIN;
    out->count -= count;
    if (out->count == 0) {
        out->oldest = UINT64_MAX;
    }
}

static void keep(struct um_udp_out *out, const struct sockaddr_in *to, const uint8_t *head, size_t head_len,
                 const uint8_t *body, size_t body_len, uint64_t tag)
{
    struct um_udp_kept *kept = kept_at(out, out->count++);
    memcpy(kept->head, head, head_len);
    kept->head_len = (uint32_t)head_len;
    kept->body = body;
    kept->body_len = (uint32_t)body_len;
    kept->to = *to;
    out->oldest = tag < out->oldest ? tag : out->oldest;
}

static uint32_t length_of(const struct um_udp_kept *kept)
{
    return kept->head_len + kept->body_len;
}

static void fill_iov(struct iovec *iov, struct um_udp_kept *kept)
{
    iov[0] = (struct iovec){kept->head, kept->head_len};
    iov[1] = (struct iovec){(void *)kept->body, kept->body_len};
}

/* How many of those kept can leave as segments of one send: all of one length, the last may be shorter. */
static unsigned segments(struct um_udp_out *out)
{
    struct um_udp_kept *first = kept_at(out, 0);
    uint32_t len = length_of(first), total = len;
    unsigned count = 1;
    if (!out->segment || len > out->segment_max) {
        return 1;
    }
    while (count < out->count) {
        struct um_udp_kept *next = kept_at(out, count);
        if (length_of(next) > len || total + length_of(next) > SEGMENTED_BYTES_MAX ||
            (!out->connected &&
             (next->to.sin_addr.s_addr != first->to.sin_addr.s_addr || next->to.sin_port != first->to.sin_port))) {
            break;
        }
        total += length_of(next);
        count++;
        if (length_of(next) < len) {
            break;
        }
    }
    return count;
}

/* ---- sending what is kept; each returns the number that went or failed for good, 0: the socket is full ---- */

static unsigned send_segmented(struct um_udp_out *out, unsigned count)
{
    struct iovec iov[2 * UM_UDP_TRAIN];
    char control[CMSG_SPACE(sizeof(uint16_t))] = {0};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2 * count, .msg_control = control};
    uint16_t size = (uint16_t)length_of(kept_at(out, 0));
    for (unsigned i = 0; i < count; i++) {
        fill_iov(iov + 2 * i, kept_at(out, i));
    }
    msg.msg_controllen = sizeof control;
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
    cmsg->cmsg_level = SOL_UDP;
    cmsg->cmsg_type = UDP_SEGMENT;
    cmsg->cmsg_len = CMSG_LEN(sizeof size);
    memcpy(CMSG_DATA(cmsg), &size, sizeof size);
    set_name(out, &msg, &kept_at(out, 0)->to);
    if (send_once(out, &msg) >= 0) {
        out->counters.datagrams += count;
        return count;
    }
    return 0;
}

static unsigned send_one(struct um_udp_out *out)
{
    struct iovec iov[2];
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
    fill_iov(iov, kept_at(out, 0));
    set_name(out, &msg, &kept_at(out, 0)->to);
    if (send_once(out, &msg) >= 0) {
        out->counters.datagrams++;
        return 1;
    }
    if (is_full(errno)) {
        return 0;
    }
    count_failed(out, errno, 1);
    return 1;
}

static unsigned send_many(struct um_udp_out *out, unsigned count)
{
    struct iovec iov[2 * UM_UDP_TRAIN];
    struct mmsghdr msgs[UM_UDP_TRAIN];
    memset(msgs, 0, count * sizeof *msgs);
    for (unsigned i = 0; i < count; i++) {
        fill_iov(iov + 2 * i, kept_at(out, i));
        msgs[i].msg_hdr.msg_iov = iov + 2 * i;
        msgs[i].msg_hdr.msg_iovlen = 2;
        set_name(out, &msgs[i].msg_hdr, &kept_at(out, i)->to);
    }
    out->counters.system_calls++;
    int sent = sendmmsg(out->fd, msgs, count, SEND_FLAGS);
    if (sent > 0) {
        out->counters.datagrams += (unsigned)sent;
        return (unsigned)sent;
    }
    return send_one(out); /* tells what is wrong with the first */
}

/* Offload refused: the device cannot (any more), or the datagrams do not fit into its packets. */
static bool segmentation_failed(struct um_udp_out *out, int err)
{
    if (err == EINVAL || err == EMSGSIZE) {
        out->segment_max = length_of(kept_at(out, 0)) - 1;
        return true;
    }
    if (err == EIO || err == EOPNOTSUPP || err == ENOPROTOOPT) {
        out->segment = false;
        return true;
    }
    return false;
}

/* Of one kind only: those that can be segmented, or those before the next that can. */
static unsigned send_some(struct um_udp_out *out)
{
    unsigned count = segments(out);
    if (count > 1) {
        unsigned sent = send_segmented(out, count);
        if (sent > 0 || is_full(errno)) {
            return sent;
        }
        if (!segmentation_failed(out, errno)) {
            count_failed(out, errno, count);
            return count;
        }
    }
    return out->count == 1 ? send_one(out) : send_many(out, out->count);
}

bool um_udp_out_push(struct um_udp_out *out)
{
    while (out->count > 0) {
        unsigned done = send_some(out);
        if (done == 0) {
            out->counters.full += !out->blocked;
            out->blocked = true;
            return false;
        }
        forget(out, done);
    }
    out->blocked = false;
    return true;
}

/* ---- one datagram ---- */

static bool has_room(const struct um_udp_out *out, size_t head_len)
{
    return out->count < UM_UDP_TRAIN && head_len <= UM_UDP_HEAD_MAX;
}

/* As send_once() for bytes that lie together: the system has no list of pieces to read. */
static ssize_t send_lean(struct um_udp_out *out, const struct sockaddr_in *to, const uint8_t *data, size_t len)
{
    ssize_t sent;
    int refused = 0;
    out->counters.system_calls++;
    do {
        sent = out->connected ? send(out->fd, data, len, SEND_FLAGS)
                              : sendto(out->fd, data, len, SEND_FLAGS, (const struct sockaddr *)to, sizeof *to);
    } while (sent < 0 && (errno == EINTR || (errno == ECONNREFUSED && refused++ == 0)));
    return sent;
}

/* False: the socket is full. */
static bool send_direct(struct um_udp_out *out, const struct sockaddr_in *to, const uint8_t *head, size_t head_len,
                        const uint8_t *body, size_t body_len)
{
    struct iovec iov[2] = {{(void *)head, head_len}, {(void *)body, body_len}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = body_len > 0 ? 2 : 1};
    bool one = body == head + head_len;
    if (one) {
        iov[0].iov_len += body_len;
        msg.msg_iovlen = 1;
    }
    set_name(out, &msg, to);
    if ((one && out->lean ? send_lean(out, to, head, iov[0].iov_len) : send_once(out, &msg)) >= 0) {
        out->counters.datagrams++;
        return true;
    }
    if (is_full(errno)) {
        return false;
    }
    count_failed(out, errno, 1);
    return true;
}

void um_udp_out_put(struct um_udp_out *out, const struct sockaddr_in *to, const uint8_t *head, size_t head_len,
                    const uint8_t *body, size_t body_len, uint64_t tag, bool hold)
{
    bool room = has_room(out, head_len);
    if (out->count > 0 && !out->blocked && (!hold || !room)) {
        um_udp_out_push(out); /* order is kept */
        room = has_room(out, head_len);
    }
    if (hold && room) {
        keep(out, to, head, head_len, body, body_len, tag);
        return;
    }
    if (!out->blocked && send_direct(out, to, head, head_len, body, body_len)) {
        return;
    }
    if (!out->blocked) {
        out->counters.full++;
        out->blocked = true;
    }
    if (has_room(out, head_len)) {
        keep(out, to, head, head_len, body, body_len, tag);
    } else {
        out->counters.dropped++;
    }
}
