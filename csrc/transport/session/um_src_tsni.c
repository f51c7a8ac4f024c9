/* Topic sequence number information of a source session: which number was the last,
 * told after a while of silence. Timers and their work run on the loop; a send that
 * ends a long silence asks the loop to begin again. */
#include "base/um_clock.h"
#include "base/um_mem.h"
#include "transport/session/um_src_numbers.h"
#include "transport/session/um_src_parts.h"

uint32_t um_src_stream_last_sqn(const struct um_src_stream *stream)
{
    struct um_list *first = um_list_first(&stream->explicit_batch);
    if (first != NULL) { /* numbers held back have not been sent */
        return um_get32(UM_CONTAINER_OF(first, struct um_held, node)->data + 8) - 1;
    }
    return um_src_number_last(stream);
}

/* False: out of memory; the next interval tells it. */
static bool append_tsni(struct um_src_session *session, const uint32_t *tidx, const uint32_t *sqn, size_t count)
{
    uint8_t *out = um_src_batch_reserve(session, tidx[0], 8 + 8 * count);
    if (out != NULL) {
        um_lbmc_encode_tsni(out, tidx, sqn, count);
    }
    return out != NULL;
}

static void send_due_tsnis(struct um_src_session *session)
{
    uint32_t tidx[UM_LBMC_TSNI_MAX], sqn[UM_LBMC_TSNI_MAX];
    int count = session->due_count;
    session->due_count = 0;
    um_timer_cancel(um_loop_wheel(session->env->loop), &session->tsni_flush_timer);
    um_src_session_lock(session);
    for (int i = 0; i < count; i++) {
        tidx[i] = session->due[i]->tidx;
        sqn[i] = um_src_stream_last_sqn(session->due[i]);
        session->due[i]->tsni_due = false;
    }
    if (count > 0 && (session->clients > 0 || session->connectionless) && !um_src_session_blocked(session)) {
        size_t step = session->filtering ? 1 : (size_t)count;
        for (int i = 0; i < count; i += (int)step) {
            append_tsni(session, tidx + i, sqn + i, step);
        }
        um_src_session_flush(session);
    }
    um_src_session_unlock(session);
}

static void on_tsni_flush_timer(struct um_timer *timer, uint64_t now_ns)
{
    send_due_tsnis(UM_CONTAINER_OF(timer, struct um_src_session, tsni_flush_timer));
}

/* Topics whose timers are due in one pass of the loop share one TSNI message. */
static void on_tsni_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_src_stream *stream = UM_CONTAINER_OF(timer, struct um_src_stream, tsni_timer);
    struct um_src_session *session = stream->session;
    struct um_timer_wheel *wheel = um_loop_wheel(session->env->loop);
    um_src_session_lock(session);
    uint64_t clock = um_clock_ns();
    uint64_t idle = clock > stream->last_data_ns ? clock - stream->last_data_ns : 0;
    bool due = idle + UM_NS_PER_MS >= stream->tsni_interval_ns;
    bool quiet = stream->tsni_active_ns != 0 && idle > stream->tsni_active_ns + stream->tsni_interval_ns / 2;
    if (quiet) {
        stream->special |= UM_STREAM_TSNI_QUIET;
    }
    um_src_session_unlock(session);
    if (quiet) {
        return;
    }
    um_timer_arm(wheel, timer, now_ns + stream->tsni_interval_ns - (due ? 0 : idle));
    if (!due || stream->tsni_due) {
        return;
    }
    stream->tsni_due = true;
    session->due[session->due_count++] = stream;
    if (session->due_count == UM_LBMC_TSNI_MAX) {
        send_due_tsnis(session);
    } else if (!um_timer_armed(&session->tsni_flush_timer)) {
        um_timer_arm(wheel, &session->tsni_flush_timer, now_ns);
    }
}

/* ---- on and off ---- */

void um_src_tsni_resume(struct um_src_session *session, struct um_src_stream *stream)
{
    stream->special &= ~(unsigned)UM_STREAM_TSNI_QUIET;
    stream->tsni_resume = true;
    session->resume_wanted = true;
    um_loop_post(session->env->loop, &session->command);
}

void um_src_tsni_resume_streams(struct um_src_session *session)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &session->streams)
    {
        struct um_src_stream *stream = UM_CONTAINER_OF(it, struct um_src_stream, node);
        um_src_session_lock(session);
        bool resume = stream->tsni_resume;
        stream->tsni_resume = false;
        um_src_session_unlock(session);
        if (resume && stream->tsni_interval_ns != 0) {
            um_timer_arm(um_loop_wheel(session->env->loop), &stream->tsni_timer,
                         um_loop_now(session->env->loop) + stream->tsni_interval_ns);
        }
    }
}

bool um_src_session_tell_numbers(struct um_src_session *session, struct um_src_stream *only)
{
    uint32_t tidx[UM_LBMC_TSNI_MAX], sqn[UM_LBMC_TSNI_MAX];
    size_t count = 0, step = session->filtering ? 1 : UM_LBMC_TSNI_MAX;
    bool all = true;
    struct um_list *it;
    um_src_session_flush(session);
    UM_LIST_FOREACH(it, &session->streams)
    {
        struct um_src_stream *stream = UM_CONTAINER_OF(it, struct um_src_stream, node);
        if (only != NULL && stream != only) {
            continue;
        }
        tidx[count] = stream->tidx;
        sqn[count++] = um_src_stream_last_sqn(stream);
        if (count == step) {
            all = append_tsni(session, tidx, sqn, count) && all;
            count = 0;
        }
    }
    if (count > 0) {
        all = append_tsni(session, tidx, sqn, count) && all;
    }
    um_src_session_flush(session);
    return all;
}

void um_src_tsni_init(struct um_src_session *session)
{
    um_timer_init(&session->tsni_flush_timer, on_tsni_flush_timer);
}

void um_src_tsni_fini(struct um_src_session *session)
{
    um_timer_cancel(um_loop_wheel(session->env->loop), &session->tsni_flush_timer);
}

void um_src_tsni_add(struct um_src_session *session, struct um_src_stream *stream)
{
    stream->tsni_resume = false;
    stream->tsni_due = false;
    um_timer_init(&stream->tsni_timer, on_tsni_timer);
    if (stream->tsni_interval_ns != 0) {
        um_timer_arm(um_loop_wheel(session->env->loop), &stream->tsni_timer,
                     um_loop_now(session->env->loop) + stream->tsni_interval_ns);
    }
}

void um_src_tsni_remove(struct um_src_session *session, struct um_src_stream *stream)
{
    int kept = 0;
    um_timer_cancel(um_loop_wheel(session->env->loop), &stream->tsni_timer);
    for (int i = 0; i < session->due_count; i++) {
        if (session->due[i] != stream) {
            session->due[kept++] = session->due[i];
        }
    }
    session->due_count = kept;
}
