/* The source sessions of one context and transport, walked in the order of their list.
 * See um_src_sessions.h. */
#include "transport/um_src_sessions.h"

#include <string.h>

#include "base/um_mem.h"

int um_src_sessions_stats(struct um_list *sessions, um_src_session_at at, lbm_src_transport_stats_t *out, int max)
{
    struct um_list *it;
    int count = 0;
    UM_LIST_FOREACH(it, sessions)
    {
        if (count < max) {
            at(it)->ops->stats(at(it), &out[count]);
        }
        count++;
    }
    return count;
}

void um_src_sessions_stats_reset(struct um_list *sessions, um_src_session_at at)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, sessions)
    {
        struct um_src_session *session = at(it);
        um_src_session_lock(session);
        memset(&session->drops, 0, sizeof session->drops);
        if (session->ops->stats_reset != NULL) {
            session->ops->stats_reset(session);
        }
        um_src_session_unlock(session);
    }
}

void um_src_sessions_flush(struct um_list *sessions, um_src_session_at at)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, sessions)
    {
        struct um_src_session *session = at(it);
        um_src_session_lock(session);
        um_src_session_flush(session);
        um_src_session_unlock(session);
    }
}

struct um_src_stream *um_src_session_stream(struct um_src_session *session, uint32_t tidx)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &session->streams)
    {
        struct um_src_stream *stream = UM_CONTAINER_OF(it, struct um_src_stream, node);
        if (stream->tidx == tidx) {
            return stream;
        }
    }
    return NULL;
}
