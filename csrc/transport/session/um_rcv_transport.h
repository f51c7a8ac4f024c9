/* Between the generic receive session and the transports below it: what a
 * transport embeds, reports and implements. Only transport/session and transport/<name>/
 * include this. Everything is [loop], unless marked. */
#ifndef UM_TRANSPORT_SESSION_RCV_TRANSPORT_H
#define UM_TRANSPORT_SESSION_RCV_TRANSPORT_H

#include "base/um_log.h"
#include "base/um_map.h"
#include "transport/session/um_rcv_session.h"
#include "wire/um_source_string.h"

/* What tells sessions apart; fields a transport does not use are 0. */
struct um_rcv_session_key {
    uint32_t type; /* LBM_TRANSPORT_TYPE_* */
    uint32_t ip;   /* network order */
    uint32_t session_id;
    uint32_t port;      /* of the source, host order */
    uint32_t group;     /* network order */
    uint32_t dest_port; /* of the group, host order */
    uint32_t transport_id;
};

enum um_rcv_session_state {
    UM_RCV_JOINING, /* connecting, or waiting to connect; nothing received */
    UM_RCV_ACTIVE,  /* a message was received: BOS is out */
    UM_RCV_ENDED    /* out of the table; freed as soon as nobody works on it */
};

/* What a transport keeps for the receive sessions of one loop. First member of every transport's own structure. */
struct um_rcv_transport {
    const struct um_rcv_transport_ops *ops;
    struct um_transport_env *env;
    struct um_list sessions; /* um_rcv_session.transport_node: those of the pool that are of this transport */
};

/* One table for each transport, listed in um_rcv_transports.c. Members that may be NULL say so. */
struct um_rcv_transport_ops {
    int type;                        /* LBM_TRANSPORT_TYPE_* */
    const char *name;                /* as source strings spell it */
    bool streams;                    /* over byte streams, which the filters of the context cover */
    enum um_rcv_join_kind join_kind; /* of the first session that is joined at a place */
    uint64_t retry_delay_ns;         /* a join that brought nothing is not begun again before; 0: at once */
    /* Made with the first session that wants it. NULL + error. */
    struct um_rcv_transport *(*create)(struct um_transport_env *env);
    void (*destroy)(struct um_rcv_transport *transport); /* after its sessions */
    /* Made with the loop's sessions instead? NULL: never. */
    bool (*wanted_at_once)(const struct um_context_options *opts);
    /* What tells the session apart; type and session_id are filled in. Any thread. */
    void (*key)(const lbm_transport_source_info_t *info, struct um_rcv_session_key *key);
    /* Nothing is reported before it is started. NULL + error. */
    struct um_rcv_session *(*join)(struct um_rcv_transport *transport, const struct um_receiver_options *opts,
                                   const struct um_rcv_session_key *key);
    /* UM_RCV_JOIN_GROUP: is the place of this session heard already, so that joining costs memory only? Else NULL. */
    bool (*place_heard)(const struct um_rcv_transport *transport, const struct um_rcv_session_key *key);
    /* A join has failed: is it plain that there is no source at this address? NULL: silence proves nothing. */
    bool (*nobody_there)(const struct um_rcv_session_key *key);
    /* How long the transport may take to repair a gap. NULL: its streams are ordered, gaps stay. Any thread. */
    uint64_t (*gap_timeout_ns)(const struct um_receiver_options *opts);
    /* Writes what is in force instead of what such a receiver's options say. NULL: nothing. */
    void (*in_force)(const struct um_transport_env *env, struct um_receiver_options *out);
    /* As um_rcv_sessions_listen() and its counterpart. NULL, both: it has no groups. */
    int (*listen)(struct um_rcv_transport *transport, uint32_t group, uint16_t port, struct um_rcv_listener *listener);
    void (*unlisten)(struct um_rcv_transport *transport, uint32_t group, uint16_t port,
                     struct um_rcv_listener *listener);
    void (*set_nak_cutoff)(struct um_rcv_transport *transport, bool cutoff); /* NULL: not that kind of NAKs */
    /* Adds everything since the creation or the last reset. NULL, both: there are no datagrams. */
    void (*counts)(const struct um_rcv_transport *transport, struct um_rcv_datagram_counts *sum);
    void (*counts_reset)(struct um_rcv_transport *transport);
    /* Receiving by the application's thread, as documented at um_rcv_sessions_process(); `transport` may be NULL. NULL,
     * both: there is no such thing. Any thread. */
    int (*process)(struct um_rcv_transport *transport, uint64_t wait_ms, uint64_t rounds);
    int (*unblock)(struct um_rcv_transport *transport);
};

extern const struct um_rcv_transport_ops um_tcp_rcv_transport, um_lbtrm_rcv_transport, um_lbtru_rcv_transport;
extern const struct um_rcv_transport_ops um_smx_rcv_transport, um_ipc_rcv_transport;

/* um_rcv_transport_ops.key of sessions that are found by address and port, and in shared memory. */
void um_rcv_key_by_address(const lbm_transport_source_info_t *info, struct um_rcv_session_key *key);
void um_rcv_key_by_transport_id(const lbm_transport_source_info_t *info, struct um_rcv_session_key *key);

struct um_rcv_session_ops {
    /* The session is in the table and has its first stream. Failures are reported later, from the loop.
     * `not_before_ns`: earliest time of a connection. NULL: joining is complete when the session exists. */
    void (*start)(struct um_rcv_session *session, uint64_t not_before_ns, uint64_t now_ns);
    /* Before anything is received: see um_rcv_stream.from_start. NULL: there is no such thing. */
    void (*from_start)(struct um_rcv_session *session);
    void (*stop)(struct um_rcv_session *session);                    /* close; no more reports. Once. */
    void (*destroy)(struct um_rcv_session *session);                 /* free the structure; with or without stop */
    void (*set_paused)(struct um_rcv_session *session, bool paused); /* only on real changes; NULL: cannot be paused */
    /* Is nothing missing any more, or nothing to come, of what was sent before `position` (um_rcv_session.position)?
     * NULL: the transport is ordered. */
    bool (*complete_before)(struct um_rcv_session *session, uint32_t position);
    void (*fill_stats)(const struct um_rcv_session *session, lbm_rcv_transport_stats_t *out); /* type and transport */
    void (*reset_stats)(struct um_rcv_session *session); /* NULL: nothing beside the counts of the base */
    /* A further receiver joins: one warning for each of its options that differs from what the first one decided.
     * NULL: there are none. */
    void (*compare)(const struct um_rcv_session *session, const struct um_receiver_options *opts);
    /* The address from which the source hears us (network order; 0: not known). NULL: the source hears nothing. */
    uint32_t (*local_ip)(const struct um_rcv_session *session);
    /* Datagrams the kernel threw away at the socket of the session, which others may share. NULL: none can be. */
    uint64_t (*kernel_drops)(const struct um_rcv_session *session);
};

/* What the statistics of every transport say of messages (`member` of lbm_rcv_transport_stats_t.transport). */
#define UM_RCV_LBM_COUNTS(session, member)                                                                             \
    ((member).lbm_msgs_rcved = (session)->msgs_rcved, (member).lbm_msgs_no_topic_rcved = (session)->msgs_no_topic,     \
     (member).lbm_reqs_rcved = (session)->reqs_rcved)

/* Source-side filtering, as the source asked for it with SSF_INIT. */
struct um_rcv_filter {
    bool wanted;
    bool retry; /* a request could not be sent */
    uint32_t transport_idx, client_idx;
    uint32_t ip; /* network order */
    uint16_t port;
    uint32_t from_ip; /* by which the source knows us: it takes requests from there only; 0: not known */
};

/* First member of a transport's session. */
struct um_rcv_session {
    const struct um_rcv_session_ops *ops;
    struct um_rcv_sessions *owner;
    struct um_rcv_transport *transport;
    struct um_list node;           /* owner's sessions */
    struct um_list transport_node; /* transport's sessions */
    struct um_rcv_session_key key;
    enum um_rcv_session_state state;
    bool attention;    /* something besides plain data is to be done: first message, BOS due, ended */
    bool immediate;    /* fixed: of immediate messages */
    bool again;        /* made for a stream whose source ended a moment ago: that it is gone is no news */
    bool over;         /* the source has closed, died, or sends what cannot be read: um_rcv_stream.over */
    unsigned busy;     /* frames of this session's code on the stack; it is not freed meanwhile */
    unsigned paused;   /* streams that want it paused */
    unsigned resumed;  /* how often it was read again */
    uint32_t position; /* of the datagram being handed on; transports with complete_before() set it */
    struct um_list streams;
    struct um_u32_map topics;                 /* topic index -> stream */
    struct um_rcv_stream *last_stream;        /* of the previous message */
    struct um_list touched, bos_due, watched; /* streams */
    struct um_command bos_command;
    struct um_rcv_filter filter;
    uint64_t bytes_rcved, msgs_rcved, msgs_no_topic, reqs_rcved;
    uint64_t msgs_malformed;
    uint64_t msgs_unsupported; /* of types this version has no use for */
    char source[UM_SOURCE_STRING_MAX];
};

/* A read pass: begin, one call per message, end. message() and end() return false when the session ended; after end()
 * has returned false it is freed. */
static inline void um_rcv_session_begin(struct um_rcv_session *session)
{
    session->busy++;
}
bool um_rcv_session_message(struct um_rcv_session *session, const struct um_lbmc_msg *msg, struct um_buf *buf,
                            uint64_t now_ns);
/* A well-framed message that was dropped: activity, nothing else. */
bool um_rcv_session_malformed(struct um_rcv_session *session);
/* The source was heard without a message (session message, segment joined): BOS if it is due. */
bool um_rcv_session_activity(struct um_rcv_session *session);
bool um_rcv_session_end(struct um_rcv_session *session, uint64_t now_ns);

/* Send the filter requests of this session again after a while. */
void um_rcv_session_retry_filter(struct um_rcv_session *session);

/* The session is over: EOS to every stream, stop, free (when no pass is on the stack). */
void um_rcv_session_lost(struct um_rcv_session *session, uint64_t now_ns);
/* The same, and joining it again is of no use (um_rcv_session.over). */
void um_rcv_session_over(struct um_rcv_session *session, uint64_t now_ns);
/* Log that a session is about to be lost that never brought anything. Limited: advertisements may be forged. */
void um_rcv_session_tell_failure(struct um_rcv_session *session, int level, const char *id, const char *what,
                                 const char *why, uint64_t now_ns);

#endif
