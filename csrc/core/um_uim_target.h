/* Targets of unicast immediate messages as text: TCP:ip:port, TCP:domain:ip:port and
 * SOURCE:source-string. Pure functions, any thread; used by core/um_uim.c. */
#ifndef UM_CORE_UIM_TARGET_H
#define UM_CORE_UIM_TARGET_H

#include <stdint.h>

#include <lbm/lbm.h>

enum um_uim_target_kind {
    UM_UIM_TO_ADDRESS, /* a request port */
    UM_UIM_TO_SOURCE   /* the context that has a source; where its request port is, topic resolution knows */
};

struct um_uim_target {
    enum um_uim_target_kind kind;
    uint32_t domain;                    /* TO_ADDRESS: topic resolution domain, 0: this one */
    uint32_t ip;                        /* TO_ADDRESS: network order, never 0 */
    uint16_t port;                      /* TO_ADDRESS: host order, never 0 */
    lbm_transport_source_info_t source; /* TO_SOURCE: topic_idx 0 means any topic of the session */
};

/* 0, or -1 + UM_EINVAL with a text that shows the target and what it must be. `api` names the call. */
int um_uim_target_parse(const char *text, struct um_uim_target *out, const char *api);

#endif
