/* The socket of a multicast group and port, shared by the LBT-RM sessions of a context on it, which are told apart by
 * source address, unicast port and session id. [loop] */
#ifndef UM_TRANSPORT_LBTRM_CHANNEL_H
#define UM_TRANSPORT_LBTRM_CHANNEL_H

#include "base/um_map.h"
#include "net/um_loop.h"
#include "transport/udp/um_udp_rcv_session.h"

struct um_lbtrm_channel;

/* What a packet says of its session; words, no padding. */
struct um_lbtrm_channel_key {
    uint32_t ip, port, session_id;
};

/* Is there one, and was anything received on it from a session that was joined? */
bool um_lbtrm_channel_in_use(const struct um_udp_receivers *receivers, uint32_t group, uint16_t port);
void um_lbtrm_channel_heard(struct um_lbtrm_channel *channel); /* something was */
/* The one that exists, or a new one. NULL + error. */
struct um_lbtrm_channel *um_lbtrm_channel_get(struct um_udp_receivers *receivers, uint32_t group, uint16_t port);
/* From here on sessions that nobody has joined are the listener's to judge. -1 + error: it has one. */
int um_lbtrm_channel_set_listener(struct um_lbtrm_channel *channel, struct um_rcv_listener *listener);
/* That listener no more, on the channel if there is one; closes it when nobody is on it. */
void um_lbtrm_channel_remove_listener(struct um_udp_receivers *receivers, uint32_t group, uint16_t port,
                                      const struct um_rcv_listener *listener);
int um_lbtrm_channel_add(struct um_lbtrm_channel *channel, const struct um_lbtrm_channel_key *key,
                         struct um_udp_rcv_session *session); /* 0, or -1 + error */
void um_lbtrm_channel_remove(struct um_lbtrm_channel *channel, const struct um_lbtrm_channel_key *key);
void um_lbtrm_channel_release(struct um_lbtrm_channel *channel);     /* closes it when nobody is on it */
struct um_udp_socket *um_lbtrm_channel_socket(struct um_list *node); /* of um_udp_receivers.channels */
struct um_udp_socket *um_lbtrm_channel_own_socket(struct um_lbtrm_channel *channel);

#endif
