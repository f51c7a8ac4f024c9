/**
 * Extensions of libum beyond the lbm_* interface: readiness, so that a program knows when publisher and subscriber have
 * found each other, and the library's own version. Everything here returns 0 or a count on success and -1 on failure
 * with the reason in lbm_errnum() and lbm_errmsg().
 */
#ifndef UM_H_INCLUDED
#define UM_H_INCLUDED

#include <stdint.h>

#include "lbm/lbm.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Version of this library as "major.minor.patch". Static text, never NULL; do not free.
 * May be called in a context-thread callback: yes.
 */
LBMExpDLL const char *um_version(void);

/**
 * Number of sources from which the receiver has processed the beginning of the session (BOS) and whose session is still
 * alive. Over TCP and LBT-RU every message sent after the source's CONNECT event for this receiving context reaches the
 * receiver; over the other transports every message sent after the receiver counted the source does.
 * Returns the count, or -1 with LBM_EINVAL when rcv is NULL.
 * May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_rcv_ready(lbm_rcv_t *rcv);

/**
 * Number of receiving contexts connected to the transport session of the source. Defined for TCP and LBT-RU, where the
 * source keeps a list of its clients; on the other transports -1 with LBM_EOPNOTSUPP.
 * A session carries many topics: a connected context may have joined for another topic of the same session.
 * May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_src_receivers(lbm_src_t *src);

/**
 * Blocks until um_rcv_ready() is at least `sources`, or until timeout_ms milliseconds have passed. The receiver must
 * not be deleted meanwhile; in sequential mode another thread must run the context. Returns 0 when ready; -1 with
 * LBM_ETIMEDOUT at the end of the time, LBM_EINVAL for NULL or a negative number, LBM_EOP on the context thread. May be
 * called in a context-thread callback: no.
 */
LBMExpDLL int um_rcv_wait_ready(lbm_rcv_t *rcv, int sources, int timeout_ms);

/**
 * Blocks until um_src_receivers() is at least `receivers`, or until timeout_ms milliseconds have passed. Results and
 * rules as for um_rcv_wait_ready(). May be called in a context-thread callback: no.
 */
LBMExpDLL int um_src_wait_receivers(lbm_src_t *src, int receivers, int timeout_ms);

/* ---- what became of the messages: sent, delivered, lost, late, discarded ---- */

/** Counts of a source since its creation; those of its session since the last lbm_src_reset_transport_stats(). */
typedef struct um_src_stats_stct {
    uint64_t messages_sent;            /**< messages accepted by the sending calls */
    uint64_t bytes_sent;               /**< payload of these */
    uint64_t receivers;                /**< contexts connected to the session now */
    uint64_t session_dropped;          /**< datagrams dropped for slow receivers (source_paced, bounded_latency) */
    uint64_t session_dropped_bytes;    /**< bytes of these */
    uint64_t session_unsent_bytes;     /**< queued for a receiver when its connection ended */
    uint64_t session_ignored_messages; /**< sent by receivers, of no use to a source */
    uint64_t session_filtered_bytes;   /**< not wanted by a receiver (source-side filtering); no loss */
    uint64_t session_unheard_bytes;    /**< sent while no receiver was connected; no loss */
} um_src_stats_t;

/** Returns 0, or -1 with LBM_EINVAL. May be called in a context-thread callback: yes. */
LBMExpDLL int um_src_stats(lbm_src_t *src, um_src_stats_t *stats);

/** Counts of a receiver since its creation. */
typedef struct um_rcv_stats_stct {
    uint64_t sources;       /**< joined now */
    uint64_t delivered;     /**< messages, or fragments with ordered_delivery 0 */
    uint64_t missing;       /**< sequence numbers found missing; some of them may have arrived later */
    uint64_t lost;          /**< sequence numbers given up; each is covered by a loss event once data was delivered */
    uint64_t discarded;     /**< arrivals and messages thrown away: the sum of the following up to not_queued */
    uint64_t late;          /**< arrived after they had been given up */
    uint64_t duplicates;    /**< arrived again */
    uint64_t malformed;     /**< with a fragment header or sequence number that cannot be */
    uint64_t headless;      /**< fragments of a message whose beginning was lost or sent before the receiver joined */
    uint64_t not_assembled; /**< messages beyond um_reassembly_maximum_size or 64 partial ones; also lost */
    uint64_t no_room;       /**< arrivals for which there was no memory; their numbers count as missing */
    uint64_t unfinished;    /**< waited for something missing when their source went away */
    uint64_t not_queued;    /**< for which there was no memory in the event queue */
    uint64_t session_malformed; /**< messages with unusable headers on the sessions joined now, whatever their topic */
} um_rcv_stats_t;

/**
 * Counts of all sources of the receiver, those that ended included; or, when `source` is given (as in msg->source), of
 * that source alone since the context joined it. Receivers of one topic in one context share the sources of the topic.
 * Returns 0, or -1 with LBM_EINVAL (also when the receiver has no such source now).
 * May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_rcv_stats(lbm_rcv_t *rcv, const char *source, um_rcv_stats_t *stats);

/** The same, added up over the topics a wildcard receiver has matched so far. */
LBMExpDLL int um_wildcard_rcv_stats(lbm_wildcard_rcv_t *wrcv, um_rcv_stats_t *stats);

/** What a context discarded that belongs to no source or receiver; beside lbm_context_stats_t.tr_dgrams_dropped_*. */
typedef struct um_context_stats_stct {
    uint64_t resolver_unknown_sender;   /**< datagrams not from the lbmrd (resolver_unicast_ignore_unknown_source) */
    uint64_t resolver_refused_patterns; /**< wildcard queries of unknown type or with an unusable pattern */
    uint64_t resolver_cache_full;       /**< sources not remembered because the cache is full; never of own topics */
    uint64_t unicast_malformed;         /**< messages with unusable headers at the request port */
    uint64_t unicast_foreign;           /**< messages for another context at the request port */
    uint64_t unicast_unsupported;       /**< messages at the request port that this version has no use for */
    uint64_t unicast_unmatched;         /**< filter requests for a session, receiver or topic that is not there */
    uint64_t unicast_corrupt;           /**< connections closed because no message header could be found */
    uint64_t unicast_refused;           /**< connections refused for want of room */
    uint64_t unicast_unsent;            /**< outgoing messages given up because their target was not reachable */
} um_context_stats_t;

/** Returns 0, or -1 with LBM_EINVAL. May be called in a context-thread callback: yes. */
LBMExpDLL int um_context_stats(lbm_context_t *ctx, um_context_stats_t *stats);

#ifdef __cplusplus
}
#endif

#endif
