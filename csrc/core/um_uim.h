/* Unicast immediate messages: from any thread to the request port of another context,
 * and what comes to the request port of this one, which is [loop]. */
#ifndef UM_CORE_UIM_H
#define UM_CORE_UIM_H

#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>

#include <lbm/lbm.h>

#include "base/um_buf.h"
#include "wire/um_lbmc.h"

#define UM_UIM_MAX_LEN 65264u /* bytes of the application in one message */

struct um_uim;

struct um_uim *um_uim_create(lbm_context_t *ctx); /* [loop] NULL + error */
void um_uim_destroy(struct um_uim *uim);          /* [loop] after the unicast layer, which calls it */

/* MESSAGE at the request port that is not a response. [loop] */
void um_uim_on_message(struct um_uim *uim, const struct um_lbmc_msg *msg, struct um_buf *buf,
                       const struct sockaddr_in *from, uint64_t now_ns);

struct um_uim_send {
    const char *target, *topic; /* topic NULL: without */
    const void *data;
    size_t len;
    int flags;              /* LBM_SRC_NONBLOCK; other flags of sends mean nothing here */
    const uint8_t *headers; /* chain of extension headers to follow the topic (CTXINSTR, REQUEST), or NULL */
    size_t headers_len;
    uint8_t first_header; /* code of headers[0] */
};
/* 0: queued. -1 + UM_EINVAL (target, topic, length; a source that is not known or tells no request port), UM_EOPNOTSUPP
 * (another domain), UM_EWOULDBLOCK, UM_EOS, UM_ENOMEM. `api` names the call in texts. */
int um_uim_send(struct um_uim *uim, const struct um_uim_send *send, const char *api);

struct um_uim_stats {
    uint64_t sent, blocked, would_block;
    uint64_t rcved;         /* handed on to core/um_immediate.c */
    uint64_t uim_fragments; /* dropped: pieces of messages longer than any that may be */
};
void um_uim_stats(const struct um_uim *uim, struct um_uim_stats *out); /* any thread */

#endif
