/* Between the generic receive session and the transports below it: what a
 * transport embeds, reports and implements. Only um_rcv_session.c and the
 * receivers in transport/<name>/ include this. Everything is [loop]. */
#ifndef UM_TRANSPORT_RCV_TRANSPORT_H
#define UM_TRANSPORT_RCV_TRANSPORT_H

#include "base/um_map.h"
#include "transport/um_rcv_session.h"
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

struct um_rcv_transport_ops {
    /* The session is in the table and has its first stream. Failures are reported later, from the loop.
     * `not_before_ns`: earliest time of a connection. NULL: joining is complete when the session exists. */
    void (*start)(struct um_rcv_session *session, uint64_t not_before_ns, uint64_t now_ns);
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
};

/* Source-side filtering, as the source asked for it with SSF_INIT. */
struct um_rcv_filter {
    bool wanted;
    bool retry; /* a request could not be sent */
    uint32_t transport_idx, client_idx;
    uint32_t ip; /* network order */
    uint16_t port;
};

/* First member of a transport's session. */
struct um_rcv_session {
    const struct um_rcv_transport_ops *ops;
    struct um_rcv_sessions *owner;
    struct um_list node; /* owner's sessions */
    struct um_rcv_session_key key;
    enum um_rcv_session_state state;
    bool attention;    /* something besides plain data is to be done: first message, BOS due, ended */
    bool again;        /* made for a stream whose source ended a moment ago: that it is gone is no news */
    unsigned busy;     /* frames of this session's code on the stack; it is not freed meanwhile */
    unsigned paused;   /* streams that want it paused */
    unsigned openings; /* streams whose beginning is waited for */
    uint32_t position; /* of the datagram being handed on; transports with complete_before() set it */
    struct um_list streams;
    struct um_u32_map topics;          /* topic index -> stream */
    struct um_rcv_stream *last_stream; /* of the previous message */
    struct um_list touched, bos_due;   /* streams */
    struct um_command bos_command;
    struct um_rcv_filter filter;
    uint64_t bytes_rcved, msgs_rcved, msgs_no_topic, reqs_rcved;
    uint64_t msgs_malformed;
    uint64_t openings_cut; /* beginnings handed on before they were complete, for their size */
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

#endif
