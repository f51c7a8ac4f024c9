/* The transports of the receive sessions of one loop: those that exist, the state of each that a session has wanted,
 * and what is asked of one of them or of all. Called by um_rcv_pool.c on the loop, unless marked. */
#ifndef UM_TRANSPORT_SESSION_RCV_TRANSPORTS_H
#define UM_TRANSPORT_SESSION_RCV_TRANSPORTS_H

#include "transport/session/um_rcv_transport.h"

struct um_rcv_transports;

struct um_rcv_transports *um_rcv_transports_create(struct um_transport_env *env); /* NULL + error */
void um_rcv_transports_destroy(struct um_rcv_transports *set);                    /* after all sessions */
bool um_rcv_transports_have(int type);                                            /* is it implemented? any thread */
/* The state of a transport that exists, made now if it has not been. NULL + error. */
struct um_rcv_transport *um_rcv_transports_get(struct um_rcv_transports *set, int type);

struct um_rcv_session_key um_rcv_transports_key(const lbm_transport_source_info_t *info); /* any thread */
enum um_rcv_join_kind um_rcv_transports_join_kind(const struct um_rcv_transports *set,
                                                  const struct um_rcv_session_key *key);
bool um_rcv_transports_nobody_there(const struct um_rcv_session_key *key);
void um_rcv_transports_set_nak_cutoff(struct um_rcv_transports *set, bool cutoff); /* of those to come, too */
void um_rcv_transports_in_force(const struct um_transport_env *env, struct um_receiver_options *out);
void um_rcv_transports_add_counts(const struct um_rcv_transports *set, int type, struct um_rcv_datagram_counts *sum);
void um_rcv_transports_counts_reset(struct um_rcv_transports *set);
/* As um_rcv_sessions_process() and um_rcv_sessions_unblock(). Any thread. */
int um_rcv_transports_process(struct um_rcv_transports *set, int type, uint64_t wait_ms, uint64_t rounds);
int um_rcv_transports_unblock(struct um_rcv_transports *set, int type);

#endif
