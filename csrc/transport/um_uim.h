/* The request port of a context and the cache of outgoing unicast connections
 * (UIM layer): source-side filtering now, requests, responses, late join later.
 * Everything is [loop] except where noted. Connections are closed
 * response_tcp_deletion_timeout after the last message. */
#ifndef UM_TRANSPORT_UIM_H
#define UM_TRANSPORT_UIM_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include "config/um_options.h"
#include "net/um_loop.h"
#include "wire/um_lbmc.h"

/* Connections accepted at the request port at one time; each may hold one partial message (64 KiB). More are closed. */
#define UM_UIM_MAX_INCOMING 1024u

struct um_uim;

struct um_uim_events {
    /* A message arrived at the request port; its bytes are valid during the call. */
    void (*on_message)(void *user, const struct um_lbmc_msg *msg, const struct sockaddr_in *from, uint64_t now_ns);
};

/* Binds the request port when request_tcp_bind_request_port is 1 (error when the range is exhausted). */
struct um_uim *um_uim_create(struct um_loop *loop, const struct um_context_options *opts, const uint8_t ctxinst[8],
                             const struct um_uim_events *events, void *user);
void um_uim_destroy(struct um_uim *uim);        /* queued messages are dropped, nothing is reported */
uint16_t um_uim_port(const struct um_uim *uim); /* host order; 0 = not bound; any thread */
struct in_addr
um_uim_addr(const struct um_uim *uim); /* address the request port is bound to, INADDR_ANY: all; any thread */

/* Queue one LBMC control record for ip:port (network order ip, host order port): STREAM and DESTINATION headers are put
 * in front of `record` (an extension header chain ending in 0xFF whose first code is `first_header`). Connects when
 * needed. -1 when the connection's queue is over response_session_maximum_buffer (UM_EWOULDBLOCK), on a connect that
 * fails at once, out of memory. A queued message survives the loss of the connection; it is given up when no connection
 * was possible for response_tcp_deletion_timeout. */
int um_uim_send_control(struct um_uim *uim, uint32_t ip, uint16_t port, uint8_t first_header, const uint8_t *record,
                        size_t record_len);
/* As above for a complete LBMC message that goes without those headers: source-side filtering requests. */
int um_uim_send_bare(struct um_uim *uim, uint32_t ip, uint16_t port, const uint8_t *message, size_t len);
/* Called once each time the connection to ip:port was re-established after a loss, so that state can be sent again. One
 * listener; NULL removes it. */
void um_uim_on_reconnect(struct um_uim *uim, void (*fn)(void *user, uint32_t ip, uint16_t port), void *user);

/* Counters, cumulative. */
struct um_uim_stats {
    uint64_t msgs_rcved, msgs_malformed, msgs_foreign, corrupt_connections;
    uint64_t accepted, refused;       /* incoming connections; over UM_UIM_MAX_INCOMING */
    uint64_t msgs_sent, msgs_dropped; /* outgoing */
    uint64_t incoming, outgoing;      /* connections now */
};
void um_uim_stats(const struct um_uim *uim, struct um_uim_stats *out);

#endif
