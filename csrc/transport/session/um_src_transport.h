/* The transports a source can choose from: one table of operations for each, and the
 * set of them that a context owns. core picks by the option `transport`; a transport
 * is created with the first source that wants it, except where its options must be
 * checked with the context. Everything is [loop]. */
#ifndef UM_TRANSPORT_SESSION_SRC_TRANSPORT_H
#define UM_TRANSPORT_SESSION_SRC_TRANSPORT_H

#include "base/um_lock.h"
#include "transport/session/um_src_session.h"

struct um_src_transport;
struct um_src_place;

struct um_src_transport_ops {
    int type;         /* LBM_SRC_TOPIC_ATTR_TRANSPORT_* */
    const char *name; /* as the option spells it */
    /* Are the context's options consistent? 0, or -1 + error. May be NULL. Asked when the context is created. */
    int (*check)(const struct um_context_options *opts);
    /* NULL, both: it keeps nothing of its own. */
    struct um_src_transport *(*create)(struct um_transport_env *env); /* zeroed but for what is its own; NULL + error */
    void (*destroy)(struct um_src_transport *transport);              /* no sessions are left */

    /* Tells in the log which options of a source mean nothing here. NULL: none. Any thread. */
    void (*notices)(const struct um_source_options *opts, const char *topic);

    /* The rules of its pool, see um_src_pool.h. */
    /* Can a source have these options? 0, or -1 + error. NULL: yes. */
    int (*accepts)(const struct um_source_options *opts);
    /* Fills in `named`, `id` if that is set, and `part`. */
    void (*place)(const struct um_source_options *opts, struct um_src_place *place);
    /* So many sessions are made for sources that name none. */
    uint64_t (*limit)(const struct um_context_options *opts);
    /* Makes the session that the place names, or one at a free id, and fills in the place: `counted` is set for
     * sessions that nobody has named, `shared` for all. NULL + error. */
    struct um_src_session *(*open)(struct um_src_transport *transport, const struct um_source_options *opts,
                                   const char *topic, struct um_src_place *place);
    /* A further source joins a session: warns of options that its first one has decided otherwise. */
    void (*compare)(const struct um_src_session *session, const struct um_source_options *opts, const char *topic);
    /* May what its sources send be kept for late joiners? */
    bool retains;
    bool streams;           /* over byte streams, which the filters of the context cover? */
    bool smart;             /* are there smart sources on it? */
    bool msg_buffs;         /* may messages be written into buffers of the source first? */
    size_t retention_least; /* bytes: no source keeps less */
    /* Bits in a second that its sources may send again; 0: not limited. NULL: not limited. */
    uint64_t (*retransmit_limit)(const struct um_context_options *opts);
    void (*close)(struct um_src_session *session); /* ends and frees it; it is out of the pool */

    /* A source-side-filtering request that arrived at the request port from `from_ip` (network order). It counts only
     * with the numbers that the client was told on its own connection, and from that client's address. False: nothing
     * of this transport is meant. May be NULL. */
    bool (*on_ssf_creq)(struct um_src_transport *transport, const struct um_lbmc_ssf_creq *creq, uint32_t from_ip);
};

/* First member of every transport's own structure. */
struct um_src_transport {
    const struct um_src_transport_ops *ops;
    struct um_transport_env *env;
    struct um_lock lock;     /* taken before a session's lock */
    struct um_list sessions; /* um_src_session.pool_node, in order of creation; changed by the loop under the lock */
    struct um_list *next;    /* round robin: the node of the next one to be shared; NULL: the first */
    bool range_told;         /* um_port_range.told of its sessions */
};

extern const struct um_src_transport_ops um_tcp_src_transport, um_lbtrm_src_transport, um_lbtru_src_transport;
extern const struct um_src_transport_ops um_smx_src_transport, um_ipc_src_transport;

/* The transports of a context. */
struct um_src_transports;
struct um_src_transports *um_src_transports_create(struct um_transport_env *env);
void um_src_transports_destroy(struct um_src_transports *set); /* NULL is fine */
bool um_src_transports_have(int type);                         /* is it implemented? any thread */
const char *um_src_transports_name(int type);                  /* any thread */
void um_src_transports_notices(const struct um_source_options *opts, const char *topic); /* any thread */
int um_src_transports_attach(struct um_src_transports *set, const struct um_source_options *opts, const char *topic,
                             struct um_src_stream *stream);
/* As um_src_pool_attach_apart(), and what is counted of such sessions, of every transport. */
int um_src_transports_attach_apart(struct um_src_transports *set, const struct um_source_options *opts,
                                   const char *name, struct um_src_stream *stream);
int um_src_transports_apart_stats(struct um_src_transports *set, lbm_src_transport_stats_t *out, int max);
void um_src_transports_apart_stats_reset(struct um_src_transports *set);
/* See struct um_src_transport_ops; any thread. */
bool um_src_transports_retains(int type);
size_t um_src_transports_retention_least(int type);
bool um_src_transports_smart(int type);
bool um_src_transports_msg_buffs(int type);
#define UM_SRC_TRANSPORTS_MAX 16u
unsigned um_src_transports_index(int type); /* its place in the table */
void um_src_transports_retransmit_limits(const struct um_context_options *opts, uint64_t out[UM_SRC_TRANSPORTS_MAX]);
bool um_src_transports_on_ssf_creq(struct um_src_transports *set, const struct um_lbmc_ssf_creq *creq,
                                   uint32_t from_ip);
int um_src_transports_stats(struct um_src_transports *set, lbm_src_transport_stats_t *out, int max);
void um_src_transports_stats_reset(struct um_src_transports *set);
void um_src_transports_flush(struct um_src_transports *set);

#endif
