/* Receive side of transport sessions: joining, LBMC framing, topic demultiplexing.
 * Everything here is [loop]. A stream is the sink of one topic index on one
 * session; core embeds it in its delivery controller object. */
#ifndef UM_TRANSPORT_RCV_SESSION_H
#define UM_TRANSPORT_RCV_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <lbm/lbm.h>

#include "base/um_buf.h"
#include "base/um_list.h"
#include "config/um_options.h"
#include "transport/um_src_session.h"
#include "transport/um_uim.h"
#include "wire/um_lbmc.h"

struct um_rcv_session;
struct um_rcv_sessions;
struct um_rcv_stream;
struct um_rcv_opening;

/* What became of datagrams that reached no session, and what the sockets of LBT-RM and LBT-RU report. */
struct um_udp_rcv_counts {
    uint64_t lbtrm_unknown, lbtru_unknown; /* of no session joined */
    uint64_t foreign;                      /* for a group that is not joined */
    uint64_t oversized;                    /* longer than the receivers' datagram_max_size */
    uint64_t kernel_drops;                 /* thrown away by the kernel, most often for a full receive buffer */
    uint64_t read_errors;                  /* failed receives, or no memory for them */
    uint64_t unsent;                       /* NAKs and the like that the kernel did not take */
    uint64_t injected;                     /* lost on purpose (lbm_set_lbtrm_loss_rate and its like) */
};

struct um_smx_reader; /* transport/smx */

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
    /* LBT-SMX: deliver messages of this stream straight from the ring, at most `most`, and give their room back.
     * Returns how many, *bytes the payload; 0: the next one must come as on_data. `wall_ns` is the time of day. May be
     * NULL. Hot path. */
    unsigned (*on_ring)(struct um_rcv_stream *stream, struct um_smx_reader *reader, unsigned most, uint64_t wall_ns,
                        uint64_t *bytes);
};

/* Set events, tidx and in_order and zero the rest before um_rcv_sessions_join(). */
struct um_rcv_stream {
    struct um_list node;            /* session's streams */
    struct um_rcv_session *session; /* NULL: not joined */
    const struct um_rcv_stream_events *events;
    uint32_t tidx;
    bool paused;
    bool no_read_end;               /* set by the caller: after on_ring it has no use for on_read_end */
    bool in_order;                  /* set by the caller: hold back the beginning while the transport repairs */
    bool again;                     /* set by the caller: its source ended a moment ago and may be gone for good */
    bool open;                      /* data is handed on as it comes */
    struct um_rcv_opening *opening; /* what is held back; NULL: nothing */
    struct um_list touched;         /* session's list: on_read_end is due */
    struct um_list bos_due;         /* session's list: joined an active session, BOS not yet reported */
};

/* The receive sessions of a context. `uim` carries source-side-filtering requests; NULL: none are sent. NULL + error.
 */
struct um_rcv_sessions *um_rcv_sessions_create(struct um_transport_env *env, struct um_uim *uim);
void um_rcv_sessions_destroy(struct um_rcv_sessions *sessions); /* before um_uim_destroy(); no events are reported */

/* Join the session named by `info` (starting the connection if this context is not on it yet) and attach the stream
 * under its topic index `stream->tidx`. The options of the first stream of a session decide. on_bos is reported after
 * this returns, from the loop, when the session is already active. A connection that cannot be made reports on_eos,
 * later. -1 + error: the transport is not available (logged once per transport), the topic index is already attached,
 * out of memory. */
int um_rcv_sessions_join(struct um_rcv_sessions *sessions, const lbm_transport_source_info_t *info,
                         const struct um_receiver_options *opts, struct um_rcv_stream *stream);
void um_rcv_stream_leave(struct um_rcv_stream *stream); /* no EOS; the session closes with its last stream */

/* Back-pressure: stop reading the stream's session, until every stream that paused it has resumed or left. What is
 * already in the receive buffer still arrives. The activity timeout does not run meanwhile. */
void um_rcv_session_pause(struct um_rcv_stream *stream);
void um_rcv_session_resume(struct um_rcv_stream *stream);

/* NAKs of all LBT-RM sessions, those to come included, are stopped or flow again. */
void um_rcv_sessions_set_nak_cutoff(struct um_rcv_sessions *sessions, bool cutoff);
void um_rcv_sessions_udp_counts(const struct um_rcv_sessions *sessions, struct um_udp_rcv_counts *out);
void um_rcv_sessions_udp_counts_reset(struct um_rcv_sessions *sessions);

/* Source string of the session without topic index (stable while joined), and statistics. */
const char *um_rcv_stream_source(const struct um_rcv_stream *stream);
int um_rcv_sessions_stats(struct um_rcv_sessions *sessions, lbm_rcv_transport_stats_t *out,
                          int max); /* returns count */
void um_rcv_sessions_stats_reset(struct um_rcv_sessions *sessions);
struct um_ipc_receivers *um_rcv_sessions_ipc(struct um_rcv_sessions *sessions); /* transport/ipc; any thread */
int um_rcv_stream_stats(struct um_rcv_stream *stream, lbm_rcv_transport_stats_t *out);
void um_rcv_stream_stats_reset(struct um_rcv_stream *stream);
uint64_t um_rcv_stream_kernel_drops(const struct um_rcv_stream *stream); /* at the UDP socket of the session */
uint64_t um_rcv_stream_malformed(const struct um_rcv_stream *stream);    /* messages of the session with bad headers */

#endif
