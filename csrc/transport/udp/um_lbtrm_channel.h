/* The socket of a multicast group and port, shared by the LBT-RM sessions of a context on it, which are told apart by
 * source address, unicast port and session id. [loop] */
#ifndef UM_TRANSPORT_LBTRM_CHANNEL_H
#define UM_TRANSPORT_LBTRM_CHANNEL_H

#include "base/um_map.h"
#include "net/um_loop.h"
#include "transport/udp/um_udp_session.h"

struct um_lbtrm_channel;
struct um_lbtrm_rcv;

/* What a packet says of its session; words, no padding. */
struct um_lbtrm_channel_key {
    uint32_t ip, port, session_id;
};

/* The one that exists, or a new one. NULL + error. */
struct um_lbtrm_channel *um_lbtrm_channel_get(struct um_udp_receivers *receivers, uint32_t group, uint16_t port);
int um_lbtrm_channel_add(struct um_lbtrm_channel *channel, const struct um_lbtrm_channel_key *key,
                         struct um_lbtrm_rcv *session); /* 0, or -1 + error */
void um_lbtrm_channel_remove(struct um_lbtrm_channel *channel, const struct um_lbtrm_channel_key *key);
void um_lbtrm_channel_release(struct um_lbtrm_channel *channel);     /* closes it when nobody is on it */
struct um_udp_socket *um_lbtrm_channel_socket(struct um_list *node); /* of um_udp_receivers.channels */
struct um_udp_socket *um_lbtrm_channel_own_socket(struct um_lbtrm_channel *channel);

/* um_lbtrm_rcv.c: a datagram for the session; a malformed one that is put down to it. */
void um_lbtrm_rcv_datagram(struct um_lbtrm_rcv *session, uint64_t now_ns);
void um_lbtrm_rcv_malformed(struct um_lbtrm_rcv *session, enum um_lbtr_rc rc);

#endif
