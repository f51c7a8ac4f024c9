/* The context object. Each group of fields names the module that owns it. */
#ifndef UM_CORE_CONTEXT_H
#define UM_CORE_CONTEXT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <lbm/lbm.h>

#include "base/um_list.h"
#include "base/um_lock.h"
#include "base/um_log.h"
#include "base/um_map.h"
#include "base/um_table.h"
#include "config/um_options.h"
#include "core/um_rcv_lane.h"
#include "net/um_loop.h"
#include "resolver/um_resolver.h"
#include "transport/session/um_rcv_session.h"
#include "transport/session/um_src_transport.h"
#include "transport/stream/um_stream_filters.h"
#include "transport/unicast/um_unicast.h"

#define UM_CONTEXT_MAGIC 0x554d4358u /* "UMCX" */

struct lbm_context_t_stct {
    _Atomic uint32_t magic;         /* any thread reads, also while the object is deleted */
    unsigned fork_generation;       /* base/um_fork.h: calls in a child of fork are refused */
    bool reactor_only;              /* lbm_context_reactor_only_create */
    struct um_context_options opts; /* fixed after creation except live options [loop] */
    struct um_loop *loop;
    bool sources_ready, receivers_ready; /* core/um_context.c [loop]: initialised, to be destroyed */
    uint8_t instance[8];                 /* random, never all zero */
    struct um_list name_node;            /* core/um_context.c, its lock: contexts with a name */
    struct um_stream_filters filters;    /* of its TCP connections; fixed after creation */
    struct um_transport_env env;
    struct um_unicast *unicast;                 /* [loop] */
    struct um_resolver *resolver;               /* [loop] */
    struct um_src_transports *src_transports;   /* [loop] */
    struct um_retransmissions *retransmissions; /* core/um_retransmission.c [loop]; NULL: nothing is retained */
    struct um_immediates *immediates;           /* core/um_immediate.c [loop] */
    struct um_requests *requests;               /* core/um_request.c: own lock */
    struct um_responder *responder;             /* core/um_response.c: own lock */
    struct um_uim *uim;                         /* core/um_uim.c: any thread sends */
    struct um_context_events *events;           /* core/um_context_events.c [loop] */
    struct um_mim_sender *mim_sender;           /* core/um_mim_sender.c: fixed, own lock */
    struct um_mim_receiver *mim_receiver;       /* core/um_mim_receiver.c [loop]; NULL: switched off */
    struct um_rcv_sessions *rcv_sessions;       /* [loop] */
    struct um_rcv_lane rcv_lane;                /* [loop] what receives on the context's own loop */
    struct um_rcv_lanes lanes;                  /* own lock: the receive sides of its XSPs */
    struct um_map routes;                       /* core/um_rcv_routes.c [loop] */
    unsigned mapping, zero_transports;          /* [loop] inside these functions of the application */
    atomic_bool nak_cutoff;                     /* any thread */
    struct um_lock counts_lock;                 /* core/um_rcv_counts.c: a leaf */
    unsigned counts_changes;                    /* counts_lock: receivers that came to or went from flows */
    struct um_rcv_joins *rcv_joins;             /* core/um_receiver.c [loop] */
    struct um_rcv_hearsay *rcv_hearsay;         /* core/um_receiver.c [loop] */
    struct um_user_timers *timers;              /* core/um_user_timers.c: own lock */
    struct um_user_fds *fds;                    /* core/um_user_fds.c [loop] */
    struct um_table rcv_topics;                 /* core/um_receiver.c [loop]: um_rcv_topic, by name */
    struct um_list idle_topics;                 /* core/um_receiver.c [loop]: um_rcv_topic.idle_node, oldest first */
    unsigned idle_topic_count;
    struct um_list src_topics;         /* core/um_source.c [loop] */
    struct um_list sources;            /* core/um_source.c [loop] */
    struct um_list receivers;          /* core/um_receiver.c [loop] */
    struct um_list wildcard_receivers; /* core/um_wildcard.c [loop] */
    struct um_list silent_matches;     /* core/um_wildcard.c [loop]: um_rcv_match.silent_node, oldest first */
    unsigned silent_match_count;
    uint64_t matches_deferred;            /* core/um_wildcard.c [loop]: topics for whose receivers there was no room */
    struct um_join_retries *join_retries; /* core/um_rcv_source.c [loop] */
    atomic_bool blocking_send_told;       /* core/um_source.c, any thread: said once that a callback sends blocking */
    atomic_bool queuing_flags_told;       /* api/lbm_source.c, any thread: said once that they are ignored */
    atomic_uint next_request_idx;         /* of requests to other contexts, from 1 */
    atomic_uint next_topic_idx;           /* the first is random, then +1: none is used again before the wrap */
    atomic_int live_objects;              /* sources, receivers, wildcard receivers: must be 0 at delete */
    struct um_context_counters {          /* any thread */
        atomic_ulong send_blocked, send_would_block, resp_blocked, resp_would_block;
        atomic_ulong fragments_lost, fragments_unrecoverably_lost;
        atomic_ulong unicast_unsupported, unicast_unmatched;  /* messages at the request port without effect */
        uint64_t uim_duplicates_before, uim_no_stream_before; /* [loop] when lbm_context_reset_stats was called last */
        atomic_ulong rcv_cb_svc_time_min, rcv_cb_svc_time_max, rcv_cb_svc_time_mean;
    } counters;
};

/* -1 + UM_EINVAL when ctx is NULL, not a live context, or inherited through fork. `api` names the call in the text. */
int um_context_check(const lbm_context_t *ctx, const char *api);
/* As above, and -1 + UM_EOP for a context made by lbm_context_reactor_only_create. */
int um_context_check_messaging(const lbm_context_t *ctx, const char *api);

/* [loop] A copy of the options with what is in force: ports, addresses and sizes that were chosen or rounded. Its
 * strings and lists are the context's, except the list of lbmrd, which um_context_in_force_clear gives back. 0, or -1 +
 * error. */
int um_context_in_force(const lbm_context_t *ctx, struct um_context_options *out);
void um_context_in_force_clear(const lbm_context_t *ctx, struct um_context_options *out);

/* core/um_context.c, for csrc/api/lbm_context.c. */
int um_context_create(lbm_context_t **out, const lbm_context_attr_t *attr, bool reactor_only, const char *api);
int um_context_delete(lbm_context_t *ctx, lbm_event_queue_cancel_cb_info_t *cbinfo, const char *api);
int um_context_process_events(lbm_context_t *ctx, lbm_ulong_t msec, uint64_t user_time_ns);
int um_context_check_options(const struct um_context_options *opts); /* 0, or -1: they cannot be had */

#endif
