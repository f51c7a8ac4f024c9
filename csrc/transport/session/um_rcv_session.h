/* Receive side of transport sessions: joining, LBMC framing, topic demultiplexing.
 * Everything here is [loop]. A stream is the sink of one topic index on one
 * session; core embeds it in its delivery controller object. */
#ifndef UM_TRANSPORT_SESSION_RCV_SESSION_H
#define UM_TRANSPORT_SESSION_RCV_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <lbm/lbm.h>

#include "base/um_buf.h"
#include "base/um_list.h"
#include "config/um_options.h"
#include "transport/session/um_src_session.h"
#include "transport/unicast/um_unicast.h"
#include "wire/um_lbmc.h"

struct um_rcv_session;
struct um_rcv_sessions;
struct um_rcv_stream;

/* What became of datagrams that reached no session, and what the sockets that bring them report. */
struct um_rcv_datagram_counts {
    uint64_t unjoined;     /* of no session joined */
    uint64_t foreign;      /* for a group that is not joined */
    uint64_t oversized;    /* longer than the receivers' datagram_max_size */
    uint64_t kernel_drops; /* thrown away by the kernel, most often for a full receive buffer */
    uint64_t read_errors;  /* failed receives, or no memory for them */
    uint64_t unsent;       /* NAKs and the like that the kernel did not take */
    uint64_t injected;     /* lost on purpose (lbm_set_lbtrm_loss_rate and its like) */
    uint64_t false_leads;  /* raised numbers that the stream showed to be wrong */
};
#define UM_RCV_EVERY_TYPE (-1) /* in place of an LBM_TRANSPORT_TYPE_* */

struct um_msg; /* core */

/* How messages that lie in the transport's memory are handed on one after the other, with no more in their way than the
 * fields of `msg` that change. */
struct um_rcv_direct {
    lbm_msg_t *msg; /* data, len and sequence_number are to be written for each; the rest is ready */
    lbm_rcv_cb_proc proc;
    lbm_rcv_t *rcv;
    void *clientd;
    struct um_msg *const *kept;             /* not NULL after a call: `msg` is the application's now, it was the last */
    void (*not_zero)(const lbm_msg_t *msg); /* a call has returned something else than 0 */
    uint32_t next;                          /* the number that the first must have; the others follow it */
};

/* The callbacks may make any stream leave, this one included, and join others. */
struct um_rcv_stream_events {
    /* Data or request. `buf` holds the bytes; ref it to keep them. Hot path. */
    void (*on_data)(struct um_rcv_stream *stream, const struct um_lbmc_msg *msg, struct um_buf *buf, uint64_t now_ns);
    void (*on_tsni)(struct um_rcv_stream *stream, uint32_t last_sqn, uint64_t now_ns);
    void (*on_bos)(struct um_rcv_stream *stream);
    /* Session over (disconnect, failed connect, timeout). The stream is already detached; it may be freed inside. */
    void (*on_eos)(struct um_rcv_stream *stream);
    /* One read is over: deliver what was bundled (delivery_control_message_batching, batch receive). May be NULL. */
    void (*on_read_end)(struct um_rcv_stream *stream, uint64_t now_ns);
    /* The transport may have come further: at the end of each read while the stream watches it. */
    void (*on_progress)(struct um_rcv_stream *stream, uint64_t now_ns);
    /* May the next messages of this stream be handed on directly? False: the next one must come as on_data. `wall_ns`
     * is the time of day. May be NULL. Hot path. */
    bool (*direct)(struct um_rcv_stream *stream, uint64_t wall_ns, struct um_rcv_direct *out);
    /* So many were. After each direct() that said yes. */
    void (*direct_end)(struct um_rcv_stream *stream, unsigned count);
};

/* Set events and tidx and zero the rest before um_rcv_sessions_join(). */
struct um_rcv_stream {
    struct um_list node;            /* session's streams */
    struct um_rcv_session *session; /* NULL: not joined */
    const struct um_rcv_stream_events *events;
    uint32_t tidx;
    bool paused;
    bool no_read_end;    /* set by the caller: after direct_end it has no use for on_read_end */
    bool again : 1;      /* set by the caller: its source ended a moment ago and may be gone for good */
    bool immediate : 1;  /* set by the caller: of immediate messages; its session counts as one of those */
    bool from_start : 1; /* set by the caller: the source began while it was listened for, so that what it sent first is
                            wanted as well */
    bool filter_due : 1; /* um_rcv_filter.c: the source is still to be asked for the topic */
    bool over : 1; /* set before on_eos and by a join that fails: there is no such source (any more), trying again is
                      vain */
    struct um_list touched; /* session's list: on_read_end is due */
    struct um_list waiting; /* session's list: for its BOS; afterwards, while it watches, for progress */
};

/* The receive sessions of one loop, whose state for a transport is made with the first session of it. `unicast` carries
 * source-side-filtering requests; NULL: none are sent. NULL + error. */
struct um_rcv_sessions *um_rcv_sessions_create(struct um_transport_env *env, struct um_unicast *unicast);
void um_rcv_sessions_destroy(
    struct um_rcv_sessions *sessions); /* before um_unicast_destroy(); no events are reported */

/* What joining a source would cost until something is received. */
enum um_rcv_join_kind {
    UM_RCV_JOIN_ASKS,   /* a descriptor, and an answer within round-trip times: TCP, LBT-RU */
    UM_RCV_JOIN_GROUP,  /* a descriptor, and nothing comes before the source says something: LBT-RM on a group not heard
                           yet */
    UM_RCV_JOIN_MEMORY, /* a session without a descriptor of its own */
    UM_RCV_JOIN_KINDS,
    UM_RCV_JOIN_FREE = UM_RCV_JOIN_KINDS /* the session is there already */
};
enum um_rcv_join_kind um_rcv_sessions_join_kind(const struct um_rcv_sessions *sessions,
                                                const lbm_transport_source_info_t *info);
/* Facts about a transport, LBM_TRANSPORT_TYPE_*; any thread. What the first join at a place costs there: */
enum um_rcv_join_kind um_rcv_transport_join_kind(int type);
/* How long it may take to repair a gap in its streams; 0: it does not. */
uint64_t um_rcv_transport_gap_timeout_ns(int type, const struct um_receiver_options *opts);

/* Join the session named by `info` (starting the connection if this context is not on it yet) and attach the stream
 * under its topic index `stream->tidx`. The options of the first stream of a session decide. on_bos is reported after
 * this returns, from the loop, when the session is already active. A connection that cannot be made reports on_eos,
 * later. -1 + error: the transport is not available (logged once per transport), the topic index is already attached,
 * out of memory. */
int um_rcv_sessions_join(struct um_rcv_sessions *sessions, const lbm_transport_source_info_t *info,
                         const struct um_receiver_options *opts, struct um_rcv_stream *stream);
/* Someone who hears whatever is sent to a multicast group: senders whom nobody advertises. */
struct um_rcv_listener {
    /* A datagram of data, or a session message, of a session that is not joined here. It may be joined now, the
     * datagram is then the first one. `info` has no topic index. */
    void (*on_stranger)(struct um_rcv_listener *listener, const lbm_transport_source_info_t *info, uint64_t now_ns);
};
/* Joins group (network order) and port of LBT-RM, until unlisten, which comes before the end of the sessions; one
 * listener for each. -1 + error: no socket, or there is one. */
int um_rcv_sessions_listen(struct um_rcv_sessions *sessions, uint32_t group, uint16_t port,
                           struct um_rcv_listener *listener);
void um_rcv_sessions_unlisten(struct um_rcv_sessions *sessions, uint32_t group, uint16_t port,
                              struct um_rcv_listener *listener);
void um_rcv_stream_leave(struct um_rcv_stream *stream); /* no EOS; the session closes with its last stream */

/* How far the transport is, where what comes first need not have been sent first. The position of what is being handed
 * on; whether nothing sent before a position can come any more (off a session nobody knows: false); and on_progress
 * from now on, or not any more. A stream may ask from its first message on. */
uint32_t um_rcv_stream_position(const struct um_rcv_stream *stream);
bool um_rcv_stream_complete_before(const struct um_rcv_stream *stream, uint32_t position);
void um_rcv_stream_watch(struct um_rcv_stream *stream, bool on);

/* Back-pressure: stop reading the stream's session, until every stream that paused it has resumed or left. What is
 * already in the receive buffer still arrives. The activity timeout does not run meanwhile. */
void um_rcv_session_pause(struct um_rcv_stream *stream);
void um_rcv_session_resume(struct um_rcv_stream *stream);
bool um_rcv_session_paused(const struct um_rcv_stream *stream);      /* by this stream or another one */
unsigned um_rcv_session_resumed(const struct um_rcv_stream *stream); /* how often its session was read again */
/* Is it on a session that can be left unread? The others lose what their streams cannot take. */
bool um_rcv_stream_can_pause(const struct um_rcv_stream *stream);

/* NAKs of all LBT-RM sessions, those to come included, are stopped or flow again. */
void um_rcv_sessions_set_nak_cutoff(struct um_rcv_sessions *sessions, bool cutoff);
/* Writes the addresses from which sessions of such a receiver are joined: its interfaces, or the context's default. */
void um_rcv_sessions_in_force(const struct um_rcv_sessions *sessions, struct um_receiver_options *out);
/* Adds to `sum` what one transport, or UM_RCV_EVERY_TYPE, has counted since the creation or the last reset. */
void um_rcv_sessions_add_counts(const struct um_rcv_sessions *sessions, int type, struct um_rcv_datagram_counts *sum);
void um_rcv_sessions_counts_reset(struct um_rcv_sessions *sessions);
/* Transports of which the options say that the application receives by itself: `rounds` times (0: until unblocked) look
 * for messages, and when there are none wait up to `wait_ms` for some. Not on the loop. 0, or -1 + error: the library's
 * thread does that, or another caller is inside. */
int um_rcv_sessions_process(struct um_rcv_sessions *sessions, int type, uint64_t wait_ms, uint64_t rounds);
/* Makes the process call under way, or the next one, return. Any thread. -1 + error: as above. */
int um_rcv_sessions_unblock(struct um_rcv_sessions *sessions, int type);

/* Source string of the session without topic index (stable while joined), and statistics. */
const char *um_rcv_stream_source(const struct um_rcv_stream *stream);
int um_rcv_sessions_stats(struct um_rcv_sessions *sessions, lbm_rcv_transport_stats_t *out,
                          int max); /* returns count */
void um_rcv_sessions_stats_reset(struct um_rcv_sessions *sessions);
/* The same of the sessions of immediate messages, which those above leave out. */
int um_rcv_sessions_immediate_stats(struct um_rcv_sessions *sessions, lbm_rcv_transport_stats_t *out, int max);
void um_rcv_sessions_immediate_stats_reset(struct um_rcv_sessions *sessions);
int um_rcv_stream_stats(struct um_rcv_stream *stream, lbm_rcv_transport_stats_t *out);
void um_rcv_stream_stats_reset(struct um_rcv_stream *stream);
uint64_t um_rcv_stream_unsupported(const struct um_rcv_stream *stream);
uint64_t um_rcv_stream_kernel_drops(const struct um_rcv_stream *stream); /* at the socket of the session */
uint64_t um_rcv_stream_malformed(const struct um_rcv_stream *stream);    /* messages of the session with bad headers */

#endif
