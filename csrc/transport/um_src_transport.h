/* The transports a source can choose from: one table of operations for each, and the
 * set of them that a context owns. core picks by the option `transport`; a transport
 * is created with the first source that wants it, except where its options must be
 * checked with the context. Everything is [loop]. */
#ifndef UM_TRANSPORT_SRC_TRANSPORT_H
#define UM_TRANSPORT_SRC_TRANSPORT_H

#include "transport/um_src_session.h"

struct um_src_transport;

struct um_src_transport_ops {
    int type;         /* LBM_SRC_TOPIC_ATTR_TRANSPORT_* */
    const char *name; /* as the option spells it */
    /* Are the context's options consistent? 0, or -1 + error. May be NULL. Asked when the context is created. */
    int (*check)(const struct um_context_options *opts);
    struct um_src_transport *(*create)(struct um_transport_env *env); /* NULL + error */
    void (*destroy)(struct um_src_transport *transport);              /* no streams are left */
    /* Map the stream to a session by the rules of docs/architecture.md, creating it when needed (the first source
     * decides its options, with warnings). `stream->events` and `tidx` are set by the caller. On success CONNECT is
     * reported for clients already there: posted, not inside this call. 0, or -1 + error. */
    int (*attach)(struct um_src_transport *transport, const struct um_source_options *opts, const char *topic,
                  struct um_src_stream *stream);
    /* A source-side-filtering request that arrived at the request port. False: nothing of this transport is meant. May
     * be NULL. */
    bool (*on_ssf_creq)(struct um_src_transport *transport, const struct um_lbmc_ssf_creq *creq);
    /* One entry for each session: returns the number there are, fills up to max. */
    int (*stats)(struct um_src_transport *transport, lbm_src_transport_stats_t *out, int max);
    void (*stats_reset)(struct um_src_transport *transport);
    void (*flush)(struct um_src_transport *transport); /* the batches of all sessions */
};

/* First member of every transport's own structure. */
struct um_src_transport {
    const struct um_src_transport_ops *ops;
};

extern const struct um_src_transport_ops um_tcp_src_transport, um_lbtrm_src_transport, um_lbtru_src_transport;
extern const struct um_src_transport_ops um_smx_src_transport, um_ipc_src_transport;
extern const struct um_src_transport_ops um_ipc_src_transport;

/* The transports of a context. */
struct um_src_transports;
struct um_src_transports *um_src_transports_create(struct um_transport_env *env);
void um_src_transports_destroy(struct um_src_transports *set); /* NULL is fine */
bool um_src_transports_have(int type);                         /* is it implemented? any thread */
const char *um_src_transports_name(int type);                  /* any thread */
int um_src_transports_attach(struct um_src_transports *set, const struct um_source_options *opts, const char *topic,
                             struct um_src_stream *stream);
bool um_src_transports_on_ssf_creq(struct um_src_transports *set, const struct um_lbmc_ssf_creq *creq);
int um_src_transports_stats(struct um_src_transports *set, lbm_src_transport_stats_t *out, int max);
void um_src_transports_stats_reset(struct um_src_transports *set);
void um_src_transports_flush(struct um_src_transports *set);

#endif
