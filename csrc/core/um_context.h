/* The context object. Each group of fields names the module that owns it. */
#ifndef UM_CORE_CONTEXT_H
#define UM_CORE_CONTEXT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <lbm/lbm.h>

#include "base/um_list.h"
#include "base/um_log.h"
#include "base/um_map.h"
#include "config/um_options.h"
#include "net/um_loop.h"
#include "resolver/um_resolver.h"
#include "transport/um_rcv_session.h"
#include "transport/um_src_transport.h"
#include "transport/um_uim.h"

#define UM_CONTEXT_MAGIC 0x554d4358u /* "UMCX" */

struct lbm_context_t_stct {
    uint32_t magic;
    unsigned fork_generation;       /* base/um_fork.h: calls in a child of fork are refused */
    bool reactor_only;              /* lbm_context_reactor_only_create */
    struct um_context_options opts; /* fixed after creation except live options [loop] */
    struct um_loop *loop;
    bool sources_ready, receivers_ready; /* core/context.c [loop]: initialised, to be destroyed */
    struct um_log_limit unsupported_log; /* core/context.c [loop] */
    struct um_log_limit unmatched_log;   /* core/context.c [loop] */
    uint8_t instance[8];                 /* random, never all zero */
    struct um_list name_node;            /* core/context.c, its lock: contexts with a name */
    struct um_transport_env env;
    struct um_uim *uim;                       /* [loop] */
    struct um_resolver *resolver;             /* [loop] */
    struct um_src_transports *src_transports; /* [loop] */
    struct um_rcv_sessions *rcv_sessions;     /* [loop] */
    struct um_user_timers *timers;            /* core/timer.c: own lock */
    struct um_user_fds *fds;                  /* core/fd.c [loop] */
    struct um_map rcv_topics;                 /* core/receiver.c [loop]: name -> lbm_topic_t */
    struct um_list src_topics;                /* core/source.c [loop] */
    struct um_list sources;                   /* core/source.c [loop] */
    struct um_list receivers;                 /* core/receiver.c [loop] */
    struct um_list wildcard_receivers;        /* core/wildcard.c [loop] */
    struct um_list held_sources;              /* core/rcv_source.c [loop]: um_rcv_source.held_node */
    atomic_bool blocking_send_told;           /* core/source.c, any thread: said once that a callback sends blocking */
    atomic_uint next_topic_idx;               /* decision 6: random start, +1 */
    atomic_int live_objects;                  /* sources, receivers, wildcard receivers: must be 0 at delete */
    struct um_context_counters {              /* any thread */
        atomic_ulong send_blocked, send_would_block, resp_blocked, resp_would_block;
        atomic_ulong fragments_lost, fragments_unrecoverably_lost;
        atomic_ulong unicast_unsupported, unicast_unmatched; /* messages at the request port without effect */
        atomic_ulong rcv_cb_svc_time_min, rcv_cb_svc_time_max, rcv_cb_svc_time_mean;
    } counters;
};

/* -1 + UM_EINVAL when ctx is NULL, not a live context, or inherited through fork. `api` names the call in the text. */
int um_context_check(const lbm_context_t *ctx, const char *api);
/* As above, and -1 + UM_EOP for a context made by lbm_context_reactor_only_create. */
int um_context_check_messaging(const lbm_context_t *ctx, const char *api);

/* core/context.c, for csrc/api/lbm_context.c. */
int um_context_create(lbm_context_t **out, const lbm_context_attr_t *attr, bool reactor_only, const char *api);
int um_context_delete(lbm_context_t *ctx, lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api);
int um_context_process_events(lbm_context_t *ctx, lbm_ulong_t msec, uint64_t user_time_ns);

#endif
