/* The way back to a requester: lbm_response_t. Made where a request is received, it
 * holds the connection to the requester until it is deleted. It refers to the
 * responder of its context, which outlives the context while responses do. Any thread
 * unless noted. */
#ifndef UM_CORE_RESPONSE_H
#define UM_CORE_RESPONSE_H

#include <stdint.h>

#include <lbm/lbm.h>

#include "core/um_context.h"
#include "wire/um_lbmc.h"

struct um_responder; /* of a context */

/* The response of a received message with a REQUEST header. `from_ip` (network order; 0: this host) is where it came
 * from, and where the answer goes when the request names no address. Connects to the requester. NULL: out of memory; no
 * error is set, it is logged. On the loop of whoever received it. */
lbm_response_t *um_response_create(lbm_context_t *ctx, const struct um_lbmc_msg *msg, uint32_t from_ip);
/* Another one for the same request, of another receiver; their sequence numbers are common. NULL: out of memory. */
lbm_response_t *um_response_again(lbm_response_t *resp);
void um_response_free(lbm_response_t *resp); /* NULL: nothing */

/* 0, or -1 + UM_EINVAL (not a live response; the context is gone; the requester has no request port), UM_EWOULDBLOCK,
 * UM_ENOMEM, UM_EOS: the requester cannot be reached. */
int um_response_send(lbm_response_t *resp, const void *data, size_t len, int flags, const char *api);
int um_response_delete(lbm_response_t *resp, const char *api);
int um_response_serialize(lbm_response_t *resp, lbm_serialized_response_t *out, const char *api);
lbm_response_t *um_response_deserialize(lbm_context_t *ctx, const lbm_serialized_response_t *in, const char *api);

/* ---- of a context [loop] ---- */

struct um_responder *um_responder_create(lbm_context_t *ctx); /* NULL + error */
/* Before the unicast layer is destroyed. Sends that wait fail; what is queued for requesters is not waited for. */
void um_responder_close(struct um_responder *responder);

#endif
