/* The receive sessions of a loop, of every transport: one place looks them up, joins them, counts them, and ends them.
 * What differs between transports it asks of their tables (um_rcv_transports.h). Private to transport/session.
 * Everything is [loop]. */
#ifndef UM_TRANSPORT_SESSION_RCV_POOL_H
#define UM_TRANSPORT_SESSION_RCV_POOL_H

#include "transport/session/um_rcv_transport.h"

struct um_rcv_sessions {
    struct um_transport_env *env;
    struct um_unicast *unicast;
    struct um_unicast_listener unicast_listener;
    struct um_map by_key;
    struct um_list list;
    struct um_list failures;       /* struct failure, oldest first */
    struct um_map failures_by_key; /* the same */
    struct um_rcv_transports *transports;
    struct um_timer filter_timer; /* armed while a session's filter requests are to be repeated */
    unsigned unavailable_logged;  /* bit per transport type */
};

/* Nobody works on the session, which has ended. */
void um_rcv_pool_free(struct um_rcv_session *session);
void um_rcv_session_wanted(struct um_rcv_session *session); /* one of those that paused it does not any more */

/* um_rcv_session.c */
void um_rcv_session_on_bos_command(struct um_command *command); /* streams that joined later have their BOS due */
void um_rcv_session_fill_stats(const struct um_rcv_session *session, lbm_rcv_transport_stats_t *out);
void um_rcv_session_reset_stats(struct um_rcv_session *session);

#endif
