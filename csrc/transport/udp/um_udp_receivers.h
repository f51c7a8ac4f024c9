/* Receive sessions over UDP of a loop: LBT-RM or LBT-RU engines on real sockets. What the sessions of one transport
 * share: the reader, the sockets of groups, the socket NAKs are sent from, counts. These are operations of both
 * (um_rcv_transport_ops). [loop] */
#ifndef UM_TRANSPORT_UDP_RECEIVERS_H
#define UM_TRANSPORT_UDP_RECEIVERS_H

#include "transport/session/um_rcv_transport.h"

struct um_udp_receivers;

/* No socket is opened before the first session. NULL + error. */
struct um_rcv_transport *um_udp_receivers_create(struct um_transport_env *env);
void um_udp_receivers_destroy(struct um_rcv_transport *base);
void um_udp_receivers_counts(const struct um_rcv_transport *base, struct um_rcv_datagram_counts *sum);
void um_udp_receivers_counts_reset(struct um_rcv_transport *base);
/* The operation of their sessions. */
uint64_t um_udp_rcv_session_kernel_drops(const struct um_rcv_session *session);

#endif
