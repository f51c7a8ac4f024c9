/* Outgoing datagrams of one UDP socket: sent one by one, or several with one system
 * call (segmentation offload for datagrams of one size to one address, sendmmsg for
 * the rest). What a full socket does not take waits here, within bounds.
 * One thread at a time: the lock of the session that owns it. */
#ifndef UM_NET_UDP_SEND_H
#define UM_NET_UDP_SEND_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UM_UDP_TRAIN 64u    /* datagrams that go or wait together */
#define UM_UDP_HEAD_MAX 24u /* of a datagram that is kept: its head is copied, its body stays where it is */

struct um_udp_kept {
    const uint8_t *body;
    uint32_t head_len, body_len;
    struct sockaddr_in to;
    uint8_t head[UM_UDP_HEAD_MAX];
};

struct um_udp_out_counters {
    uint64_t datagrams, system_calls;
    uint64_t full;    /* times that the socket took no more */
    uint64_t dropped; /* datagrams: the socket was full and so were these places */
    uint64_t failed;  /* datagrams the system refused: no route, interface down, a firewall */
};

struct um_udp_out {
    int fd;
    bool connected;        /* to the one address everything goes to */
    bool segment;          /* offload is wanted and has not failed for good */
    bool lean;             /* set by the owner: mostly one datagram at a time, in one piece: the shortest system call */
    bool blocked;          /* the socket is full: um_udp_out_push() when it can be written to */
    int last_error;        /* errno of the last failure */
    uint32_t segment_max;  /* datagrams longer than this do not fit the device */
    uint64_t oldest;       /* smallest tag of those kept, or smaller; UINT64_MAX: none is kept */
    unsigned first, count; /* kept[first .. first + count) */
    struct um_udp_out_counters counters;
    struct um_udp_kept kept[UM_UDP_TRAIN];
};

/* `fd` is non-blocking and remains the caller's. */
void um_udp_out_init(struct um_udp_out *out, int fd, bool connected, bool segment);
/* Send, or keep if `hold` or if the socket is full. A body that is kept must stay until none is kept any more; `tag`
 * lets the owner know which (out->oldest). Heads longer than UM_UDP_HEAD_MAX are never kept: dropped if the socket is
 * full. */
void um_udp_out_put(struct um_udp_out *out, const struct sockaddr_in *to, const uint8_t *head, size_t head_len,
                    const uint8_t *body, size_t body_len, uint64_t tag, bool hold);
/* Send what is kept. False: the socket is full. */
bool um_udp_out_push(struct um_udp_out *out);

static inline bool um_udp_out_empty(const struct um_udp_out *out)
{
    return out->count == 0;
}

#endif
