/* The request port of a context and the cache of outgoing unicast connections
 * (UIM layer): source-side filtering now, requests, responses, late join later.
 * Everything is [loop] except where noted. Connections are closed
 * response_tcp_deletion_timeout after the last message. */
#ifndef UM_TRANSPORT_UIM_H
#define UM_TRANSPORT_UIM_H

#include <netinet/in.h>
#include <stdint.h>

#include "config/um_options.h"
#include "net/um_loop.h"
#include "wire/um_lbmc.h"

struct um_uim;

struct um_uim_events {
    /* A message arrived at the request port. */
    void (*on_message)(void *user, const struct um_lbmc_msg *msg, const struct sockaddr_in *from, uint64_t now_ns);
};

/* Binds the request port when request_tcp_bind_request_port is 1 (error when the range is exhausted). */
struct um_uim *um_uim_create(struct um_loop *loop, const struct um_context_options *opts, const uint8_t ctxinst[8],
                             const struct um_uim_events *events, void *user);
void um_uim_destroy(struct um_uim *uim);
uint16_t um_uim_port(const struct um_uim *uim); /* host order; 0 = not bound */

/* Queue one LBMC control record for ip:port (network order ip, host order port): STREAM and DESTINATION headers are put in front
 * of `record` (an extension header chain ending in 0xFF whose first code is `first_header`). Connects when needed. -1 when the
 * connection's queue is over response_session_maximum_buffer (UM_EWOULDBLOCK) or on a failed connect. */
int um_uim_send_control(struct um_uim *uim, uint32_t ip, uint16_t port, uint8_t first_header, const uint8_t *record,
                        size_t record_len);
/* Called once each time the connection to ip:port was re-established after a loss, so that state can be sent again. */
void um_uim_on_reconnect(struct um_uim *uim, void (*fn)(void *user, uint32_t ip, uint16_t port), void *user);

#endif
