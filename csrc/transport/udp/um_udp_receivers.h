/* Receive sessions over UDP of a context: LBT-RM and LBT-RU engines on real sockets. What the sessions share: the
 * reader, the sockets of groups, the socket NAKs are sent from, counts. Called by um_rcv_session.c on the loop. */
#ifndef UM_TRANSPORT_UDP_RECEIVERS_H
#define UM_TRANSPORT_UDP_RECEIVERS_H

#include "transport/um_rcv_transport.h"

struct um_udp_receivers;

/* No socket is opened before the first session. NULL + error. */
struct um_udp_receivers *um_udp_receivers_create(struct um_transport_env *env);
void um_udp_receivers_destroy(struct um_udp_receivers *receivers); /* after its sessions */

/* NULL + error: out of memory, the group cannot be joined, no free port. */
struct um_rcv_session *um_lbtrm_session_create(struct um_udp_receivers *receivers,
                                               const struct um_receiver_options *opts,
                                               const struct um_rcv_session_key *key);
struct um_rcv_session *um_lbtru_session_create(struct um_udp_receivers *receivers,
                                               const struct um_receiver_options *opts,
                                               const struct um_rcv_session_key *key);

/* LBT-RM sessions, those to come included. */
void um_udp_receivers_set_nak_cutoff(struct um_udp_receivers *receivers, bool cutoff);

/* Everything since the creation of the context or the last reset, closed sockets included. */
void um_udp_receivers_counts(const struct um_udp_receivers *receivers, struct um_udp_rcv_counts *out);
void um_udp_receivers_counts_reset(struct um_udp_receivers *receivers);
/* Datagrams the kernel threw away at the socket of the session, which others may share. */
uint64_t um_udp_session_kernel_drops(const struct um_rcv_session *session);

#endif
