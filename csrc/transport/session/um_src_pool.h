/* The source sessions of one context and transport: which of them a topic goes to, and what is done with all of them.
 * The rules are the same for every transport; um_src_transport_ops says what it has of its own. [loop], no lock held.
 */
#ifndef UM_TRANSPORT_SESSION_SRC_POOL_H
#define UM_TRANSPORT_SESSION_SRC_POOL_H

#include "transport/session/um_src_batch.h"
#include "transport/session/um_src_transport.h"

struct um_src_transport *um_src_pool_create(const struct um_src_transport_ops *ops,
                                            struct um_transport_env *env); /* NULL + error */
void um_src_pool_destroy(struct um_src_transport *pool);                   /* with the sessions that are left */

/* Options of a source that names no session lead to one of the pool: a new one while fewer are counted than the pool
 * allows, else the shared one whose turn it is, in order of creation. A source that names one gets that, new or not;
 * the first source of a session decides its options, and later ones are warned. CONNECT is reported for clients already
 * there: posted, not inside this call. 0, or -1 + error. */
int um_src_pool_attach(struct um_src_transport *pool, const struct um_source_options *opts, const char *topic,
                       struct um_src_stream *stream);
/* A session of its own for the stream, which no source finds, picks or shares: immediate messages. 0, or -1 + error. */
int um_src_pool_attach_apart(struct um_src_transport *pool, const struct um_source_options *opts, const char *name,
                             struct um_src_stream *stream);
/* The session is there under this id, or answers to it. NULL: none. */
struct um_src_session *um_src_pool_find(const struct um_src_transport *pool, uint32_t part, uint32_t id);
/* The lowest id of low..high at which no session is. False: there is none. */
bool um_src_pool_free_id(const struct um_src_transport *pool, uint32_t part, uint32_t low, uint32_t high, uint32_t *id);
/* Takes the session, whose last stream has left, out of the pool and ends it. */
void um_src_pool_close(struct um_src_session *session);

/* One entry for each session of sources, or of those apart: returns the number there are, fills up to max. */
int um_src_pool_stats(struct um_src_transport *pool, lbm_src_transport_stats_t *out, int max);
void um_src_pool_stats_reset(struct um_src_transport *pool);
int um_src_pool_apart_stats(struct um_src_transport *pool, lbm_src_transport_stats_t *out, int max);
void um_src_pool_apart_stats_reset(struct um_src_transport *pool);
void um_src_pool_flush(struct um_src_transport *pool);

/* An option of a session that its first source has decided. */
struct um_src_decided {
    const char *id, *option; /* of the warning, in whose text the option is named */
    uint64_t wanted, has;
};
/* One warning for each in which a later source asks for something else. `where` names the session: "on TCP port", and
 * its number. */
void um_src_pool_warn(const char *topic, const char *where, unsigned number, const struct um_src_decided *list,
                      size_t count);

/* The stream of a topic in a session; NULL: there is none. */
struct um_src_stream *um_src_session_stream(struct um_src_session *session, uint32_t tidx);

#endif
