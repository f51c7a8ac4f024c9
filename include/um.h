/**
 * Extensions of libum beyond the lbm_* interface: readiness, so that a program knows when publisher and subscriber have
 * found each other, and the library's own version. Everything here returns 0 or a count on success and -1 on failure
 * with the reason in lbm_errnum() and lbm_errmsg().
 */
#ifndef UM_H_INCLUDED
#define UM_H_INCLUDED

#include <stddef.h>
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
    uint64_t blocked_by_pid;  /**< shared memory: process whose receiver holds the session up now; 0: nobody does */
    uint64_t blocked_ns;      /**< shared memory: nanoseconds senders of the session have waited for receivers */
    uint64_t receivers_lost;  /**< shared memory: receivers that died, or wrote positions no receiver writes */
    uint64_t session_refused; /**< LBT-RM, LBT-RU: datagrams the system did not send (interface down, no route, no
                                   room); receivers ask for them again */
} um_src_stats_t;

/** Returns 0, or -1 with LBM_EINVAL. May be called in a context-thread callback: yes. */
LBMExpDLL int um_src_stats(lbm_src_t *src, um_src_stats_t *stats);

/** Repairs that one receiving context asked a session of LBT-RM or LBT-RU for. */
typedef struct um_src_naks_stct {
    char receiver[32];    /**< "a.b.c.d:port" it sends NAKs from; "others": beyond 256 receivers, added up */
    uint64_t nak_packets; /**< NAK packets received from it */
    uint64_t naks;        /**< datagrams asked for in these */
    uint64_t idle_ms;     /**< milliseconds since the last one */
} um_src_naks_t;

/**
 * Who asks for repairs of the source's session and how much, since the session began or since the last
 * lbm_src_reset_transport_stats(): the receiver with the most NAKs first. `count`: in, room in `naks`; out, how many
 * there are (at most 257), of which those that fit are filled in. Other transports have none.
 * Returns 0, or -1 with LBM_EINVAL. May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_src_naks(lbm_src_t *src, um_src_naks_t *naks, int *count);

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
    uint64_t kernel_drops;      /**< datagrams the kernel threw away at the UDP sockets of the sessions joined now, most
                                     often because the receive buffer was full */
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
    uint64_t udp_unknown;               /**< LBT-RM and LBT-RU datagrams of sessions not joined */
    uint64_t udp_foreign;               /**< datagrams for a multicast group that is not joined */
    uint64_t udp_oversized;             /**< datagrams longer than transport_*_receiver_datagram_max_size */
    uint64_t udp_kernel_drops; /**< datagrams the kernel threw away at receivers' sockets, gone ones included */
    uint64_t udp_read_errors;  /**< receives that failed, or for which there was no memory */
    uint64_t udp_unsent;       /**< NAKs, acknowledgements and requests the kernel did not take */
    uint64_t udp_injected;     /**< datagrams lost on purpose (lbm_set_lbtrm_loss_rate and its like) */
} um_context_stats_t;

/** Returns 0, or -1 with LBM_EINVAL. May be called in a context-thread callback: yes. */
LBMExpDLL int um_context_stats(lbm_context_t *ctx, um_context_stats_t *stats);

/* ---- batch receive: messages gathered in C while the application is busy ---- */

/**
 * A collector gathers what receivers are given into contiguous batches. Use um_collector_rcv_cb as the callback of any
 * number of receivers and wildcard receivers (without event queue), with the collector as clientd. Receivers that use a
 * collector are deleted before it. Thread-safe; one thread at a time takes.
 */
typedef struct um_collector_stct um_collector_t;

/** In um_record_t.flags beside LBM_MSG_FLAG_*: timestamp_ns was taken by the network card or the kernel. */
#define UM_MSG_FLAG_HR_TIMESTAMP 0x40000000

/** One message, event or loss of a batch. 40 bytes, no padding; little-endian as the host. */
typedef struct um_record_stct {
    uint64_t offset;          /**< of the payload in um_batch_t.data, bytes */
    uint32_t length;          /**< of the payload, bytes; 0 for events */
    uint32_t sequence_number; /**< as lbm_msg_t.sequence_number; first missing number of a loss */
    int32_t flags;            /**< LBM_MSG_FLAG_*, UM_MSG_FLAG_HR_TIMESTAMP */
    int32_t type;             /**< LBM_MSG_* */
    uint32_t topic;           /**< index into um_batch_t.topics */
    uint32_t source;          /**< index into um_batch_t.sources */
    int64_t timestamp_ns;     /**< arrival, wall clock, nanoseconds since 1970: lbm_msg_t.hr_timestamp where the message
                                   has one, otherwise when its socket was read */
} um_record_t;

/** A batch owns its bytes until um_batch_release(), also after the collector and its receivers are gone. */
typedef struct um_batch_stct {
    const unsigned char *data;
    size_t data_len; /**< bytes */
    const um_record_t *records;
    size_t count;              /**< of records */
    const char *const *topics; /**< every name the collector has seen so far; indexes never change meaning */
    size_t topic_count;
    const char *const *sources; /**< source strings, likewise */
    size_t source_count;
} um_batch_t;

/** What a collector has done so far. */
typedef struct um_collector_stats_stct {
    uint64_t messages;        /**< payload messages gathered */
    uint64_t bytes;           /**< of payload gathered */
    uint64_t taken;           /**< records handed out */
    uint64_t dropped;         /**< newest messages dropped because the collector was full (transports other than TCP)
                                   or memory was short; one loss record stands for those dropped in a row */
    uint64_t pauses;          /**< times a TCP session was left unread because the collector was full */
    uint64_t queued_messages; /**< waiting now, events included */
    uint64_t queued_bytes;    /**< waiting now, records included */
} um_collector_stats_t;

/**
 * max_bytes bounds what waits (payload and records; 0 = 64 MiB). When full, TCP sessions are not read until half of it
 * is taken (their source feels it); other transports drop the newest message, count it, and leave an
 * LBM_MSG_UNRECOVERABLE_LOSS record. Returns 0, or -1 with LBM_EINVAL or LBM_ENOMEM. May be called in a callback: yes.
 */
LBMExpDLL int um_collector_create(um_collector_t **collectorp, size_t max_bytes);

/** Wakes a waiting taker (it gets 0) and frees the collector; batches taken stay valid. -1 LBM_EOP while receivers use
 * it. */
LBMExpDLL int um_collector_delete(um_collector_t *collector);

/** The lbm_rcv_cb_proc to give to lbm_rcv_create() or lbm_wildcard_rcv_create(). */
LBMExpDLL int um_collector_rcv_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd);

/**
 * Takes up to max_messages records (0 = as many as there are), waiting up to timeout_ms for the first (-1 without
 * bound, 0 not at all). A batch may hold less than there is when an earlier one was cut by max_messages: the next call
 * gives the rest. Returns 1 and a batch to be released; 0 when the time passed or um_collector_wake() was called; -1 on
 * error: LBM_EOP when another thread is taking, or in a callback on a context thread with a timeout; LBM_EINVAL,
 * LBM_ENOMEM. Not on a context thread when waiting.
 */
LBMExpDLL int um_collector_take(um_collector_t *collector, size_t max_messages, int timeout_ms, um_batch_t **batchp);

/** Frees a batch; any thread. */
LBMExpDLL void um_batch_release(um_batch_t *batch);

/** Makes the running or next um_collector_take() return 0. */
LBMExpDLL int um_collector_wake(um_collector_t *collector);

/**
 * A descriptor for event loops: readable when records wait. um_collector_take() that leaves the collector empty clears
 * it. Owned by the collector; do not read or close it.
 */
LBMExpDLL int um_collector_fd(um_collector_t *collector);

LBMExpDLL int um_collector_stats(um_collector_t *collector, um_collector_stats_t *stats);

/* ---- sending many messages with one call ---- */

/**
 * Sends count messages that lie in one buffer: message i is base + offsets[i], lengths[i] bytes. The loop is in C and
 * the messages enter the batch many under one lock. flags as for lbm_src_send(); LBM_MSG_START_BATCH applies to the
 * first, LBM_MSG_END_BATCH and LBM_MSG_FLUSH to the last. *sent (if not NULL) gets how many were accepted, also on
 * failure. Returns 0, or -1 as lbm_src_send(); with LBM_SRC_NONBLOCK it stops at the first message refused. May be
 * called in a context-thread callback: with LBM_SRC_NONBLOCK.
 */
LBMExpDLL int um_src_send_many(lbm_src_t *src, const void *base, const uint64_t *offsets, const uint32_t *lengths,
                               size_t count, int flags, size_t *sent);

/** As um_src_send_many() for messages of equal length that follow each other every `stride` bytes. */
LBMExpDLL int um_src_send_array(lbm_src_t *src, const void *base, size_t stride, size_t length, size_t count, int flags,
                                size_t *sent);

/** Objects alive in this process, for leak checks: contexts, sources, receivers, messages retained, batches. */
typedef struct um_object_counts_stct {
    int64_t contexts, sources, receivers, messages, batches, collectors;
} um_object_counts_t;
LBMExpDLL int um_object_counts(um_object_counts_t *counts);

#ifdef __cplusplus
}
#endif

#endif
