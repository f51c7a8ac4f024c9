/**
 * Extensions of libum beyond the lbm_* interface: readiness, so that a program knows when publisher and subscriber have
 * found each other; what became of the messages; receiving in batches; sending many messages with one call.
 *
 * Unless a function says otherwise:
 * - it returns 0 or a count on success, and -1 on failure with the reason in lbm_errnum() and lbm_errmsg();
 * - any thread may call it, also several at once, while the object lives: the caller sees to it that no other thread
 *   deletes the object meanwhile;
 * - what it is given remains the caller's, and is used only until it returns;
 * - contexts, sources, receivers and collectors inherited through fork() are refused with LBM_EINVAL.
 *
 * Structures that the library fills in may get further fields at their end in later versions. So the library is always
 * told how large the caller's structure is, and writes no more: fields that the caller does not know are left out,
 * those that the library does not know are 0. Functions that end in _sized have that size as an argument; beside each
 * is one without it, which gives the size with which the caller is compiled. Of an array it is the distance of its
 * elements.
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
 * Version of this library as "major.minor.patch". Cannot fail. Static text, never NULL; do not free. Any thread.
 * May be called in a context-thread callback: yes.
 */
LBMExpDLL const char *um_version(void);

/**
 * Number of sources from which the receiver has processed the beginning of the session (BOS) and whose session is still
 * alive. Over TCP and LBT-RU every message sent after the source's CONNECT event for this receiving context reaches the
 * receiver; over the other transports every message sent after the receiver counted the source does.
 * Returns the count, or -1 with LBM_EINVAL when rcv is not a live receiver. Any thread.
 * May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_rcv_ready(lbm_rcv_t *rcv);

/**
 * Number of receiving contexts of the transport session of the source: connected over TCP and LBT-RU, reading over
 * LBT-IPC and LBT-SMX. 0 over LBT-RM, whose sources do not know who listens: there the receiver knows, once
 * um_rcv_stats_t.sources counts the source.
 * A session carries many topics: a connected context may have joined for another topic of the same session.
 * Returns the count, or -1 with LBM_EINVAL when src is not a live source. Any thread. May be called in a context-thread
 * callback: yes.
 */
LBMExpDLL int um_src_receivers(lbm_src_t *src);

/**
 * Blocks until um_rcv_ready() is at least `sources`, or until timeout_ms milliseconds have passed (on the monotonic
 * clock; 0: looks once). The receiver must not be deleted meanwhile; in sequential mode another thread must run the
 * context. Returns 0 when ready; -1 with LBM_ETIMEDOUT at the end of the time, LBM_EINVAL for NULL or a negative
 * number, LBM_EOP on the context thread. Any other thread. May be called in a context-thread callback: no.
 */
LBMExpDLL int um_rcv_wait_ready(lbm_rcv_t *rcv, int sources, int timeout_ms);

/**
 * As um_rcv_ready(), added up over the topics the wildcard receiver matches now. The threads of the context and of its
 * XSPs are asked. Returns the number; -1 with LBM_EINVAL, or LBM_EOP in a callback of another context that this one
 * waits for. Any thread. May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_wildcard_rcv_ready(lbm_wildcard_rcv_t *wrcv);

/**
 * Blocks until um_wildcard_rcv_ready() is at least `sources`, or until timeout_ms milliseconds have passed. Results,
 * errors and threads are those of um_rcv_wait_ready(). May be called in a context-thread callback: no (LBM_EOP).
 */
LBMExpDLL int um_wildcard_rcv_wait_ready(lbm_wildcard_rcv_t *wrcv, int sources, int timeout_ms);

/**
 * Blocks until um_src_receivers() is at least `receivers`, or until timeout_ms milliseconds have passed. Results and
 * rules as for um_rcv_wait_ready(). May be called in a context-thread callback: no.
 */
LBMExpDLL int um_src_wait_receivers(lbm_src_t *src, int receivers, int timeout_ms);

/* ---- receivers that are subscribed to channels from their first message on ---- */

/** A subscription to a channel, as lbm_rcv_subscribe_channel() makes one. */
typedef struct um_channel_subscription_stct {
    lbm_uint32_t channel; /**< its number */
    lbm_rcv_cb_proc proc; /**< gets the messages of the channel; NULL: the receiver's, with the receiver's clientd */
    void *clientd;        /**< given to proc; the application's, until the receiver is deleted, or the subscription ends
                               (lbm_rcv_unsubscribe_channel()) and nothing of it is queued any more */
} um_channel_subscription_t;

/**
 * As lbm_rcv_create(), with `count` subscriptions to channels that hold for the very first message: those of a replay
 * of late join are in their places, too, and what unrecognized_channel_behavior discards does not come. (A call of
 * lbm_rcv_subscribe_channel() behind lbm_rcv_create() may come after some messages.) `channels` may be NULL when count
 * is 0. Returns 0 and the receiver, which is to be deleted with lbm_rcv_delete(); -1 as lbm_rcv_create(), and with
 * LBM_EINVAL when a channel is there twice: nothing has been created then. Any thread. May be called in a
 * context-thread callback: no (LBM_EOP).
 */
LBMExpDLL int um_rcv_create_on_channels(lbm_rcv_t **rcvp, lbm_context_t *ctx, lbm_topic_t *topic, lbm_rcv_cb_proc proc,
                                        void *clientd, lbm_event_queue_t *evq,
                                        const um_channel_subscription_t *channels, size_t count);

/**
 * As lbm_hf_rcv_create(), with subscriptions as of um_rcv_create_on_channels(): what the merge gives goes to channels.
 * The receiver is to be deleted with lbm_hf_rcv_delete(). Results and threads are the same. May be called in a
 * context-thread callback: no (LBM_EOP).
 */
LBMExpDLL int um_hf_rcv_create_on_channels(lbm_hf_rcv_t **hfrcvp, lbm_context_t *ctx, lbm_topic_t *topic,
                                           lbm_rcv_cb_proc proc, void *clientd, lbm_event_queue_t *evq,
                                           const um_channel_subscription_t *channels, size_t count);

/**
 * As lbm_wildcard_rcv_create(), with subscriptions as of um_rcv_create_on_channels(), on all topics that match, from
 * the first message of each. It is to be deleted with lbm_wildcard_rcv_delete(). Results and threads are the same. May
 * be called in a context-thread callback: no (LBM_EOP).
 */
LBMExpDLL int um_wildcard_rcv_create_on_channels(lbm_wildcard_rcv_t **wrcvp, lbm_context_t *ctx, const char *pattern,
                                                 const lbm_rcv_topic_attr_t *tattr,
                                                 const lbm_wildcard_rcv_attr_t *wattr, lbm_rcv_cb_proc proc,
                                                 void *clientd, lbm_event_queue_t *evq,
                                                 const um_channel_subscription_t *channels, size_t count);

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
    uint64_t blocked_by_pid;    /**< shared memory: process whose receiver holds the session up now; 0: nobody does */
    uint64_t blocked_ns;        /**< shared memory: nanoseconds senders of the session have waited for receivers */
    uint64_t receivers_lost;    /**< shared memory: receivers that died, or wrote positions no receiver writes */
    uint64_t session_refused;   /**< LBT-RM, LBT-RU: datagrams the system did not send (interface down, no route, no
                                     room); receivers ask for them again */
    uint64_t session_strangers; /**< LBT-RU: connection requests from addresses that had not shown yet that they sent
                                     them (each receiver begins with one). They are answered, and get no data */
    uint64_t session_unopened;  /**< TCP: connections whose byte streams did not open: a handshake that failed or took
                                     too long, too many at once, or no memory; receivers connect again */
} um_src_stats_t;

/**
 * Fills in *stats, which is the caller's and `size` bytes large. Returns 0, or -1 with LBM_EINVAL when src is not a
 * live source or stats is NULL. Any thread. May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_src_stats_sized(lbm_src_t *src, um_src_stats_t *stats, size_t size);

/** As um_src_stats_sized() with the size of the caller's structure. */
static inline int um_src_stats(lbm_src_t *src, um_src_stats_t *stats)
{
    return um_src_stats_sized(src, stats, sizeof *stats);
}

/** Repairs that one receiving context asked a session of LBT-RM or LBT-RU for. */
typedef struct um_src_naks_stct {
    char receiver[32];    /**< "a.b.c.d:port" it sends NAKs from; "others": beyond 256 receivers, added up */
    uint64_t nak_packets; /**< NAK packets received from it */
    uint64_t naks;        /**< datagrams asked for in these */
    uint64_t idle_ms;     /**< milliseconds since the last one */
} um_src_naks_t;

/**
 * Who asks for repairs of the source's session and how much, since the session began or since the last
 * lbm_src_reset_transport_stats(): the receiver with the most NAKs first. `naks` is an array of the caller's
 * whose elements are `size` bytes apart. `count`: in, room in `naks`; out, how many there are (at most 257), of which
 * those that fit are filled in; `naks` may be NULL when *count is 0. Other transports have none. Returns 0, or -1 with
 * LBM_EINVAL. Any thread. May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_src_naks_sized(lbm_src_t *src, um_src_naks_t *naks, size_t size, int *count);

/** As um_src_naks_sized() with the size of the caller's structure. */
static inline int um_src_naks(lbm_src_t *src, um_src_naks_t *naks, int *count)
{
    return um_src_naks_sized(src, naks, sizeof *naks, count);
}

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
    uint64_t session_unsupported; /**< messages of a type this version has no use for, on the sessions joined now */
    uint64_t openings_cut; /**< beginnings of sources that were delivered before it was sure that nothing earlier would
                                come, because too much was held meanwhile; what came later for them is late */
} um_rcv_stats_t;

/**
 * Counts of all sources of the receiver, those that ended included; or, when `source` is given (as in msg->source), of
 * that source alone since the context joined it. Receivers of one topic in one context share the sources of the topic.
 * The threads of the context and of its XSPs are asked; in sequential mode the call does their work itself while nobody
 * processes events. Returns 0; -1 with LBM_EINVAL (also when the receiver has no such source now), or LBM_EOP in a
 * callback of another context that this one waits for. Any thread. May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_rcv_stats_sized(lbm_rcv_t *rcv, const char *source, um_rcv_stats_t *stats, size_t size);

/** As um_rcv_stats_sized() with the size of the caller's structure. */
static inline int um_rcv_stats(lbm_rcv_t *rcv, const char *source, um_rcv_stats_t *stats)
{
    return um_rcv_stats_sized(rcv, source, stats, sizeof *stats);
}

/**
 * As um_rcv_stats_sized() without a source, added up over the topics the wildcard receiver has matched so far. Results,
 * errors and threads are the same. May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_wildcard_rcv_stats_sized(lbm_wildcard_rcv_t *wrcv, um_rcv_stats_t *stats, size_t size);

/** As um_wildcard_rcv_stats_sized() with the size of the caller's structure. */
static inline int um_wildcard_rcv_stats(lbm_wildcard_rcv_t *wrcv, um_rcv_stats_t *stats)
{
    return um_wildcard_rcv_stats_sized(wrcv, stats, sizeof *stats);
}

/** What the merge of a hot failover receiver, or of an HFX, has made of the numbers since its creation. */
typedef struct um_hf_stats_stct {
    uint64_t delivered;   /**< numbers: the first copy of each */
    uint64_t again;       /**< further copies that were delivered (hf_duplicate_delivery) */
    uint64_t duplicates;  /**< further copies that were not, and numbers that had been reported as lost */
    uint64_t optional;    /**< optional messages left out (hf_optional_messages 0) */
    uint64_t other_width; /**< numbers of 32 bits among those of 64, or the other way round: discarded */
    uint64_t far;         /**< numbers more than 2^30 ahead: discarded */
    uint64_t behind;      /**< of the count before the last reset: discarded */
    uint64_t no_room;     /**< messages for which there was no memory to wait; their numbers count as missing */
    uint64_t ended;       /**< messages that waited when a reset or the end came: discarded */
    uint64_t held;        /**< messages that had to wait for numbers before theirs */
    uint64_t meant;       /**< gaps that a source has made on purpose */
    uint64_t lost;        /**< numbers given up; each is covered by a loss event */
    uint64_t given_early; /**< gaps given up because too much waited; their numbers are in `lost` */
    uint64_t resets;      /**< counts that were begun anew */
    uint64_t waiting;     /**< messages and numbers that wait now */
    uint64_t refused;     /**< HFX: messages not taken because 64 MiB waited for the callback in progress; their numbers
                               count as missing unless another context brings them. Otherwise 0 */
} um_hf_stats_t;

/**
 * Counts of the merge of a hot failover receiver, into `stats`, which is the caller's. The thread of the context is
 * asked; in sequential mode the call does its work itself while nobody processes events. Returns 0; -1 with LBM_EINVAL,
 * or LBM_EOP in a callback of another context that this one waits for. Any thread. May be called in a context-thread
 * callback: yes.
 */
LBMExpDLL int um_hf_rcv_stats_sized(lbm_hf_rcv_t *hfrcv, um_hf_stats_t *stats, size_t size);

/** As um_hf_rcv_stats_sized() with the size of the caller's structure. */
static inline int um_hf_rcv_stats(lbm_hf_rcv_t *hfrcv, um_hf_stats_t *stats)
{
    return um_hf_rcv_stats_sized(hfrcv, stats, sizeof *stats);
}

/**
 * Counts of the merge of an HFX, of all its contexts together, into `stats`, which is the caller's. Returns 0, or -1
 * with LBM_EINVAL. Any thread. May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_hfx_stats_sized(lbm_hfx_t *hfx, um_hf_stats_t *stats, size_t size);

/** As um_hfx_stats_sized() with the size of the caller's structure. */
static inline int um_hfx_stats(lbm_hfx_t *hfx, um_hf_stats_t *stats)
{
    return um_hfx_stats_sized(hfx, stats, sizeof *stats);
}

/**
 * Statistics of the transport sessions that bring messages to the wildcard receiver, as
 * lbm_rcv_retrieve_all_transport_stats() gives them for a receiver: *num is the room in `stats`, which is the caller's,
 * and gets the number of sessions. Returns 0; -1 with LBM_EINVAL, also when there is not room enough, or LBM_EOP in a
 * callback of another context that this one waits for. Any thread. May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_wildcard_rcv_transport_stats(lbm_wildcard_rcv_t *wrcv, int *num, lbm_rcv_transport_stats_t *stats);

/** What a context discarded that belongs to no source or receiver; beside lbm_context_stats_t.tr_dgrams_dropped_*. */
typedef struct um_context_stats_stct {
    uint64_t resolver_unknown_sender;   /**< datagrams not from the lbmrd (resolver_unicast_ignore_unknown_source) */
    uint64_t resolver_refused_patterns; /**< wildcard queries of unknown type or with an unusable pattern */
    uint64_t resolver_cache_full;       /**< sources forgotten early because there were too many; never those in use */
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
    uint64_t udp_kernel_drops;       /**< datagrams the kernel threw away at receivers' sockets, gone ones included */
    uint64_t udp_read_errors;        /**< receives that failed, or for which there was no memory */
    uint64_t udp_unsent;             /**< NAKs, acknowledgements and requests the kernel did not take */
    uint64_t udp_injected;           /**< datagrams lost on purpose (lbm_set_lbtrm_loss_rate and its like) */
    uint64_t joins_failed;           /**< attempts to join a source that brought nothing */
    uint64_t joins_waiting;          /**< sources that are tried again every few seconds, now */
    uint64_t joins_refused;          /**< sources not tried again, as too many are, until they are advertised anew */
    uint64_t resolver_cache_expired; /**< sources forgotten because nothing was heard of them for long */
    uint64_t resolver_answers_deferred; /**< answers to queries that waited for the schedule, as there were too many */
    uint64_t matches_deferred; /**< topics matching a pattern that took the room of others or waited for room */
    uint64_t joins_under_way;  /**< transport sessions being joined of which nothing was received yet, now */
    uint64_t joins_deferred;   /**< sources that had to wait for their turn to be joined */
    uint64_t joins_forgotten;  /**< of those, the ones that were forgotten before it came */
    uint64_t joins_yielded;    /**< joins that brought nothing and were broken off for those who waited */
    uint64_t joins_excess; /**< sources beyond what a session may have: not joined, or ended for newer ones as nothing
                              of them was received */
    uint64_t udp_false_leads;   /**< LBT-RM, LBT-RU: times that forged or damaged datagrams had raised the numbers of a
                                     session, and its stream showed where it really was */
    uint64_t unicast_displaced; /**< connections to the request port that were closed to make room for others */
    uint64_t unicast_expired; /**< connections to the request port that were closed as they brought no message in their
                                   first minute, or their byte stream did not open in its first seconds */
    uint64_t unicast_no_destination; /**< messages refused with an error, as too many other targets were in use */
    uint64_t responses_delivered;    /**< responses handed to requests */
    uint64_t responses_unknown;      /**< responses to requests that were deleted, or never sent */
    uint64_t responses_malformed;    /**< fragments of responses that fit nothing, or found no memory */
    uint64_t responses_unfinished;   /**< large responses given up: the rest did not come, or they were too many or too
                                        large */
    uint64_t unicast_duplicates;     /**< messages that a connection to the request port had brought already */
    uint64_t immediate_dropped;      /**< immediate messages that nobody here asked for, or with an impossible topic */
    uint64_t immediate_fragments;    /**< pieces of unicast immediate messages longer than any that may be */
    uint64_t recovery_requests;   /**< messages asked for again by late join and recovery, repeated requests included */
    uint64_t recovery_received;   /**< answers to these that were handed on */
    uint64_t recovery_unasked;    /**< retransmissions that nobody waited for: answered twice, too late, or forged */
    uint64_t recovery_timed_out;  /**< messages that were asked for in vain until their time was over; also lost */
    uint64_t retransmit_requests; /**< requests of late joiners and recovery for what sources here retain */
    uint64_t retransmit_sent;     /**< messages retransmitted to them */
    uint64_t retransmit_bytes;    /**< bytes of these */
    uint64_t retransmit_waiting;  /**< requests that wait for the rate limit of retransmissions, now */
    uint64_t retransmit_refused;  /**< requests not answered: for what is not retained, too many, or of nobody known */
    uint64_t mim_senders;         /**< senders of multicast immediate messages that are remembered, now */
    uint64_t mim_silent;          /**< senders of which no message came yet, now */
    uint64_t mim_replaced;        /**< senders forgotten for new ones, as there were too many */
    uint64_t mim_refused;         /**< datagrams of new senders ignored, as there were too many */
    uint64_t mim_foreign;         /**< messages on the group that are no immediate ones */
    uint64_t mim_duplicates;      /**< multicast immediate messages that had come already */
    uint64_t mim_ended;           /**< senders forgotten as they fell silent */
    uint64_t services_connected;  /**< resolution servers (resolver_service) connected, now */
    uint64_t services_lost;       /**< connections to them that ended */
    uint64_t services_failed;     /**< attempts to connect to them that came to nothing */
    uint64_t service_records_sent; /**< records told to them: sources, topics and patterns wanted, their ends */
    uint64_t service_sources;      /**< sources they told of, repeated ones included */
    uint64_t service_ends;         /**< ends of sources they told of */
    uint64_t service_ignored;      /**< what they told that is of no use here: for routers, or of sources with other
                                      encryption      or compression or in the memory of another host */
    uint64_t service_invalid;      /**< what they sent that makes no sense */
} um_context_stats_t;

/* Controllers of lbmmon.h. */
struct lbmmon_rctl_t_stct;
struct lbmmon_sctl_t_stct;

/** What a controller of lbmmon (lbmmon_rctl_create()) has received, since its creation. */
typedef struct um_mon_rcv_stats_stct {
    uint64_t packets;      /**< packets of any kind */
    uint64_t malformed;    /**< of those, with a head or attributes that make no sense */
    uint64_t unknown;      /**< of those, of a type that this version or their format does not know */
    uint64_t undecodable;  /**< of those, refused by their format */
    uint64_t dropped;      /**< beside those, transport lbm: came while 16 MiB or 65,536 packets waited */
    uint64_t not_received; /**< times the transport failed to receive */
} um_mon_rcv_stats_t;

/**
 * Fills in *stats, which is the caller's and `size` bytes large, with the counts of a receive controller of lbmmon.h.
 * Returns 0, or -1 with LBMMON_EINVAL for a controller that is NULL or was inherited through fork, LBM_EINVAL when
 * stats is NULL. Any thread. May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_mon_rcv_stats_sized(struct lbmmon_rctl_t_stct *control, um_mon_rcv_stats_t *stats, size_t size);

/** As um_mon_rcv_stats_sized() with the size of the caller's structure. */
static inline int um_mon_rcv_stats(struct lbmmon_rctl_t_stct *control, um_mon_rcv_stats_t *stats)
{
    return um_mon_rcv_stats_sized(control, stats, sizeof *stats);
}

/** What a controller of lbmmon (lbmmon_sctl_create()) has sent, since its creation. */
typedef struct um_mon_src_stats_stct {
    uint64_t packets;     /**< packets given to the transport */
    uint64_t not_read;    /**< samples left out because the statistics of the object could not be read */
    uint64_t not_written; /**< records that the format refused */
    uint64_t not_sent;    /**< packets dropped because the transport did not take them in time, or at all */
    uint64_t filtered;    /**< records that a filter of the format keeps back */
} um_mon_src_stats_t;

/**
 * Fills in *stats, which is the caller's and `size` bytes large, with the counts of a source controller of lbmmon.h.
 * Results and threads as um_mon_rcv_stats_sized().
 */
LBMExpDLL int um_mon_src_stats_sized(struct lbmmon_sctl_t_stct *control, um_mon_src_stats_t *stats, size_t size);

/** As um_mon_src_stats_sized() with the size of the caller's structure. */
static inline int um_mon_src_stats(struct lbmmon_sctl_t_stct *control, um_mon_src_stats_t *stats)
{
    return um_mon_src_stats_sized(control, stats, sizeof *stats);
}

/**
 * Fills in *stats, which is the caller's and `size` bytes large. Returns 0; -1 with LBM_EINVAL, LBM_EOP for a context
 * of lbm_context_reactor_only_create(), or as um_rcv_stats_sized() when a thread cannot be asked. Any thread. May be
 * called in a context-thread callback: yes.
 */
LBMExpDLL int um_context_stats_sized(lbm_context_t *ctx, um_context_stats_t *stats, size_t size);

/** As um_context_stats_sized() with the size of the caller's structure. */
static inline int um_context_stats(lbm_context_t *ctx, um_context_stats_t *stats)
{
    return um_context_stats_sized(ctx, stats, sizeof *stats);
}

/** A source that a context knows by topic resolution, whether it receives it or not. */
typedef struct um_topic_source_stct {
    char topic[256];                     /**< its topic */
    char source[LBM_MSG_MAX_SOURCE_LEN]; /**< source string, as of the messages it sends */
    int transport;                       /**< LBM_TRANSPORT_TYPE_* */
    int in_use;                          /**< 1: received by this context, or on the list of a resolution server */
    uint64_t age_ms; /**< milliseconds since it was advertised last, to the second; 0 when in_use, which keeps it */
} um_topic_source_t;

/**
 * What the context knows of topics, from its cache of topic resolution, without joining anything: every source whose
 * topic matches `pattern` (PCRE, unanchored; NULL: all). Sources are known by their advertisements: a context that has
 * just been created knows none, and those of topics that nobody asks for advertise seldom after their first minute
 * (resolver_advertisement_*); lbm_context_topic_resolution_request() makes them tell again. With the context option
 * resolver_cache 0 only topics that are received are known. A source that ends is forgotten at once when it is received
 * here or sends final advertisements (resolver_send_final_advertisements), otherwise after a long silence: look at
 * age_ms. `sources` is an array of the caller's whose elements are `size` bytes apart, sizeof(um_topic_source_t) as the
 * caller was compiled: what a later version adds at the end is not filled for callers that do not know it. `count`: in,
 * room; out, how many there are, of which those that fit are filled in, in no order; `sources` may be NULL when *count
 * is 0. Returns 0; -1 with LBM_EINVAL (also for a pattern that does not compile or whose limits are reached),
 * LBM_ENOMEM, or as um_context_stats_sized(). The context's thread is asked, and looks at everything it knows, some
 * hundreds at a time, with its other work in between: what comes or goes meanwhile may be missing. Any thread. May be
 * called in a context-thread callback: yes, but then nothing else is done meanwhile.
 */
LBMExpDLL int um_context_topics(lbm_context_t *ctx, const char *pattern, um_topic_source_t *sources, size_t size,
                                size_t *count);

/**
 * How many messages, or fragments where these are what is delivered, an event of the type LBM_MSG_UNRECOVERABLE_LOSS or
 * LBM_MSG_UNRECOVERABLE_LOSS_BURST tells to be lost: 1 or more; 0 for everything else. Fills in *count, which is the
 * caller's. Returns 0, or -1 with LBM_EINVAL. Any thread that may use the message. May be called in a context-thread
 * callback: yes.
 */
LBMExpDLL int um_msg_lost(lbm_msg_t *msg, uint64_t *count);

/* ---- batch receive: messages gathered in C while the application is busy ---- */

/**
 * A collector gathers what receivers are given into contiguous batches. Use um_collector_rcv_cb as the callback of any
 * number of receivers and wildcard receivers (without event queue), with the collector as clientd, or
 * um_collector_immediate_cb for immediate messages. Receivers that use a collector are deleted before it. Thread-safe;
 * one thread at a time takes.
 */
typedef struct um_collector_stct um_collector_t;

/**
 * Makes properties of `len` bytes as they travel behind a message: those of a record (um_record_tail_t.properties), or
 * of um_msg_properties_bytes(). The bytes are copied; the object is to be deleted with lbm_msg_properties_delete().
 * Returns 0, or -1 with LBM_EINVAL (the bytes are malformed, or an argument is NULL) or LBM_ENOMEM. Any thread. May be
 * called in a context-thread callback: yes.
 */
LBMExpDLL int um_msg_properties_read(lbm_msg_properties_t **propertiesp, const void *bytes, size_t len);

/**
 * The bytes of properties as they travel behind a message, those of a received one as they came, not looked at: *bytesp
 * belongs to the object (do not free it) and is valid until that is changed or deleted. Afterwards sends only read an
 * object that is not a message's: as long as nobody changes it, several threads may send it. Returns 0, or -1 with
 * LBM_EINVAL or LBM_ENOMEM. Any thread, one at a time for an object. May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_msg_properties_bytes(lbm_msg_properties_t *properties, const void **bytesp, size_t *lenp);

/** In um_record_t.flags beside LBM_MSG_FLAG_*: timestamp_ns was taken by the network card or the kernel. */
#define UM_MSG_FLAG_HR_TIMESTAMP 0x40000000

/**
 * In um_record_t.flags of an LBM_MSG_REQUEST: directly behind its payload, not counted in `length`, lie the bytes of an
 * lbm_serialized_response_t (not aligned). A copy of them given to lbm_deserialize_response() is the way to answer.
 */
#define UM_MSG_FLAG_ANSWERABLE 0x20000000

/** In um_record_t.flags: the message has properties, in its tail, see um_record_tail_sized(). */
#define UM_MSG_FLAG_PROPERTIES 0x10000000

/**
 * In um_record_t.flags: the message came on a channel, to a receiver with subscriptions or after
 * um_collector_see_numbers(); its number is in its tail.
 */
#define UM_MSG_FLAG_CHANNEL 0x08000000

/**
 * In um_record_t.flags, after um_collector_see_numbers(): an empty message by which a source of hot failover tells that
 * the number in its tail comes next (lbm_hf_src_send_rcv_reset()).
 */
#define UM_MSG_FLAG_HF_RESET 0x04000000

/** For lbmpdm_msg_create() of lbmpdm.h: the serialized message has no offset table when that would be empty. */
#define UM_PDM_MSG_FLAG_NO_EMPTY_OFFSET_TABLE 0x100

/** One message, event or loss of a batch. 40 bytes, no padding; little-endian as the host. */
typedef struct um_record_stct {
    uint64_t offset;          /**< of the payload in um_batch_t.data, bytes */
    uint32_t length;          /**< of the payload, bytes; 0 for events, except LBM_MSG_UNRECOVERABLE_LOSS_BURST: its
                                   payload is the number of messages lost, a uint64_t of the host (8 bytes) */
    uint32_t sequence_number; /**< as lbm_msg_t.sequence_number; first missing number of a loss */
    int32_t flags;            /**< LBM_MSG_FLAG_*, UM_MSG_FLAG_* */
    int32_t type;             /**< LBM_MSG_* */
    uint32_t topic;           /**< index into um_batch_t.topics */
    uint32_t source;          /**< index into um_batch_t.sources */
    int64_t timestamp_ns;     /**< arrival, wall clock, nanoseconds since 1970: lbm_msg_t.hr_timestamp where the message
                                   has one, otherwise when its socket was read */
} um_record_t;

/**
 * The tail of a record: what lies behind its payload and is not counted in um_record_t.length. It points into the
 * batch, not aligned.
 */
typedef struct um_record_tail_stct {
    size_t len;             /**< of the whole tail, bytes; mostly 0 */
    const void *way_back;   /**< UM_MSG_FLAG_ANSWERABLE: the bytes of an lbm_serialized_response_t; otherwise NULL */
    uint64_t hf_number;     /**< LBM_MSG_FLAG_HF_32 or LBM_MSG_FLAG_HF_64: lbm_msg_t.hf_sequence_number; otherwise 0 */
    const void *properties; /**< UM_MSG_FLAG_PROPERTIES: as they came, for um_msg_properties_read(); otherwise NULL */
    size_t properties_len;  /**< bytes */
    uint32_t channel;       /**< UM_MSG_FLAG_CHANNEL: lbm_msg_channel_info_t.channel_number; otherwise 0 */
} um_record_tail_t;

/**
 * What lies behind the payload of a record of a batch; `payload` is batch->data + record->offset, where the tail lies
 * up to the next record. Of the structure `size` bytes are filled in. Returns 0, or -1 with LBM_EINVAL for NULL. Any
 * thread. May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_record_tail_sized(const um_record_t *record, const void *payload, um_record_tail_t *tail, size_t size);

/** As um_record_tail_sized() with the size of the caller's structure. */
static inline int um_record_tail(const um_record_t *record, const void *payload, um_record_tail_t *tail)
{
    return um_record_tail_sized(record, payload, tail, sizeof *tail);
}

/** A batch owns its bytes until um_batch_release(), also after the collector and its receivers are gone. */
typedef struct um_batch_stct {
    const unsigned char *data;
    size_t data_len; /**< bytes */
    const um_record_t *records;
    size_t count; /**< of records */
    const char *const
        *topics; /**< names; the same in all batches with the same `names`, of which later ones have more */
    size_t topic_count;
    const char *const *sources; /**< source strings, likewise */
    size_t source_count;
    uint64_t names; /**< counts the tables of names: a collector begins new ones after 16384 names */
} um_batch_t;

/** What a collector has done so far. */
typedef struct um_collector_stats_stct {
    uint64_t messages;        /**< payload messages gathered */
    uint64_t bytes;           /**< of payload gathered */
    uint64_t taken;           /**< records handed out */
    uint64_t dropped;         /**< messages dropped because the collector was full, or memory was short, and events
                                   for which there was no room either; bursts tell of the messages */
    uint64_t pauses;          /**< times a TCP session was left unread because the collector was full */
    uint64_t queued_messages; /**< waiting now, events included */
    uint64_t queued_bytes;    /**< waiting now, records included */
    uint64_t conflated;       /**< UM_ON_FULL_CONFLATE: messages replaced by newer ones of their topic; no losses */
} um_collector_stats_t;

/** What a collector does when it is full: on_full of um_collector_create_ex(). */
enum {
    UM_ON_FULL_PAUSE,       /**< TCP sessions are not read until half is taken; otherwise as UM_ON_FULL_DROP_NEWEST */
    UM_ON_FULL_DROP_NEWEST, /**< what comes is dropped until there is room */
    UM_ON_FULL_DROP_OLDEST, /**< what has waited longest is dropped to make room */
    UM_ON_FULL_CONFLATE     /**< full or not, at most the newest message of each topic waits; where all these are too
                                 many, what has waited longest is dropped */
};

/**
 * A new collector, to be deleted with um_collector_delete(). max_bytes bounds what waits, in bytes (payload and
 * records; 0 = 64 MiB). When full, TCP sessions are not read until half of it is taken (their source feels it); other
 * transports drop the newest message, count it, and leave an LBM_MSG_UNRECOVERABLE_LOSS_BURST record. Returns 0, or -1
 * with LBM_EINVAL or LBM_ENOMEM. Any thread. May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_collector_create(um_collector_t **collectorp, size_t max_bytes);

/**
 * As um_collector_create(), with UM_ON_FULL_* in on_full. Messages that are dropped are told of by records of the type
 * LBM_MSG_UNRECOVERABLE_LOSS_BURST, with the number of messages as payload: in their place, or before everything else
 * where they were the oldest; one without topic and source for those of which nothing more is known. A replaced message
 * (UM_ON_FULL_CONFLATE) gives its place to the newer one; events keep theirs, and batches hold messages or events,
 * never both. Returns 0, or -1 with LBM_EINVAL or LBM_ENOMEM. Any thread. May be called in a context-thread callback:
 * yes.
 */
LBMExpDLL int um_collector_create_ex(um_collector_t **collectorp, size_t max_bytes, int on_full);

/**
 * Wakes a waiting taker (it gets 0), waits until it has left, and frees the collector; batches taken stay valid.
 * Returns 0; -1 with LBM_EOP while receivers use it, LBM_EINVAL. Any thread; afterwards none may use the collector. May
 * be called in a context-thread callback: yes.
 */
LBMExpDLL int um_collector_delete(um_collector_t *collector);

/**
 * The lbm_rcv_cb_proc to give to lbm_rcv_create() or lbm_wildcard_rcv_create(), with the collector as `clientd`. The
 * library calls it on the thread that receives; it copies the message and never waits. Always returns 0: what finds no
 * room is counted (um_collector_stats_t.dropped), not an error. An application may call it with a message in a callback
 * of its own.
 */
LBMExpDLL int um_collector_rcv_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd);

/**
 * As um_collector_rcv_cb(), the lbm_immediate_msg_cb_proc to give to lbm_context_rcv_immediate_msgs() and
 * lbm_context_rcv_immediate_topic_msgs() (without event queue), with the collector as `clientd`. Before the collector
 * is deleted the function must have been replaced: nothing else keeps that from happening.
 */
LBMExpDLL int um_collector_immediate_cb(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd);

/**
 * From now on proc, which may be um_collector_immediate_cb(), is called for multicast immediate messages that are lost
 * for good: with a message of the type LBM_MSG_UNRECOVERABLE_LOSS, or LBM_MSG_UNRECOVERABLE_LOSS_BURST for many in a
 * row (um_msg_lost() tells how many), with the source string of their session, the (first) sequence number, no topic
 * and no data. Beside mim_unrecoverable_loss_function of the context's options, which is called as before. proc NULL:
 * no more. The message is valid until proc returns, or kept with lbm_msg_retain(). Returns 0; -1 with LBM_EINVAL,
 * LBM_ENOMEM (the function before stays). Any thread; proc is called on the context's thread, and not any more when a
 * call that replaces it has returned. May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_immediate_loss(lbm_context_t *ctx, lbm_immediate_msg_cb_proc proc, void *clientd);

/**
 * Takes up to max_messages records (0 = as many as there are), waiting up to timeout_ms milliseconds for the first (-1
 * without bound, 0 not at all). A batch may hold less than there is when an earlier one was cut by max_messages: the
 * next call gives the rest. Returns 1 and a batch, which is the caller's until um_batch_release(); 0 when the time
 * passed or um_collector_wake() was called; -1 on error: LBM_EOP when another thread is taking, or in a callback on a
 * context thread with a timeout; LBM_EINVAL, LBM_ENOMEM. One thread at a time. May be called in a context-thread
 * callback: with timeout_ms 0.
 */
LBMExpDLL int um_collector_take(um_collector_t *collector, size_t max_messages, int timeout_ms, um_batch_t **batchp);

/** Frees a batch and all it points to; NULL: nothing. Cannot fail. Any thread, also in a context-thread callback. */
LBMExpDLL void um_batch_release(um_batch_t *batch);

/**
 * Makes the running or next um_collector_take() return 0. Returns 0, or -1 with LBM_EINVAL. Any thread. May be called
 * in a context-thread callback: yes.
 */
LBMExpDLL int um_collector_wake(um_collector_t *collector);

/**
 * A descriptor for event loops: readable when records wait. um_collector_take() that leaves the collector empty clears
 * it. Owned by the collector, the same with every call; do not read or close it. Returns the descriptor, or -1 with
 * LBM_EINVAL, or LBM_EOS when the system has none left. Any thread. May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_collector_fd(um_collector_t *collector);

/**
 * Records of messages that have a number of hot failover bear it from now on (LBM_MSG_FLAG_HF_32 or LBM_MSG_FLAG_HF_64,
 * um_record_tail_t.hf_number), although the receiver is a plain one, which gets what every source sends;
 * sequence_number stays that of the source. So do those that came on a channel (UM_MSG_FLAG_CHANNEL), without a
 * subscription, and resets are marked (UM_MSG_FLAG_HF_RESET). For recorders. Before the collector is given to a
 * receiver. Returns 0, or -1 with LBM_EINVAL. Any thread. May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_collector_see_numbers(um_collector_t *collector);

/**
 * For who hands out what it took one by one: while `keep` is not 0 the descriptor is readable although the collector
 * may be empty. Returns 0, or -1 with LBM_EINVAL. Any thread. May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_collector_keep_readable(um_collector_t *collector, int keep);

/**
 * Fills in *stats, which is the caller's and `size` bytes large. Returns 0, or -1 with LBM_EINVAL. Any thread. May be
 * called in a context-thread callback: yes.
 */
LBMExpDLL int um_collector_stats_sized(um_collector_t *collector, um_collector_stats_t *stats, size_t size);

/** As um_collector_stats_sized() with the size of the caller's structure. */
static inline int um_collector_stats(um_collector_t *collector, um_collector_stats_t *stats)
{
    return um_collector_stats_sized(collector, stats, sizeof *stats);
}

/**
 * Of um_collector_stats_t.dropped, what came from one source (as in msg->source). Known of the 1024 sources that lost
 * something last; 0 for all others. Fills in *count, which is the caller's. Returns 0, or -1 with LBM_EINVAL. Any
 * thread. May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_collector_dropped(um_collector_t *collector, const char *source, uint64_t *count);

/* ---- sending many messages with one call ---- */

/**
 * Sends count messages that lie in one buffer: message i is base + offsets[i], lengths[i] bytes. Many messages enter
 * the batch under one lock; their bytes are copied, so that the buffer may be used again when the call returns. flags
 * as for lbm_src_send(); LBM_MSG_START_BATCH applies to the first, LBM_MSG_END_BATCH and LBM_MSG_FLUSH to the last.
 * *sent (if not NULL) gets how many were accepted, also on failure. Returns 0, or -1 as lbm_src_send() (LBM_EINVAL,
 * LBM_EWOULDBLOCK, LBM_ENOMEM and so on); with LBM_SRC_NONBLOCK it stops at the first message refused. Any thread;
 * messages of several threads mix. May be called in a context-thread callback: with LBM_SRC_NONBLOCK.
 */
LBMExpDLL int um_src_send_many(lbm_src_t *src, const void *base, const uint64_t *offsets, const uint32_t *lengths,
                               size_t count, int flags, size_t *sent);

/**
 * As um_src_send_many() for messages of `length` bytes each that follow each other every `stride` bytes. Results,
 * errors and threads are the same.
 */
LBMExpDLL int um_src_send_array(lbm_src_t *src, const void *base, size_t stride, size_t length, size_t count, int flags,
                                size_t *sent);

/** Objects alive in this process, for leak checks: contexts, sources, receivers, messages retained, batches. */
typedef struct um_object_counts_stct {
    int64_t contexts, sources, receivers, messages, batches, collectors;
    int64_t requests;  /**< sent and not deleted */
    int64_t responses; /**< handles not deleted, those of messages included */
} um_object_counts_t;

/**
 * Fills in *counts, which is the caller's and `size` bytes large. Returns 0, or -1 with LBM_EINVAL when it is NULL. Any
 * thread. May be called in a context-thread callback: yes.
 */
LBMExpDLL int um_object_counts_sized(um_object_counts_t *counts, size_t size);

/** As um_object_counts_sized() with the size of the caller's structure. */
static inline int um_object_counts(um_object_counts_t *counts)
{
    return um_object_counts_sized(counts, sizeof *counts);
}

#ifdef __cplusplus
}
#endif

#endif
