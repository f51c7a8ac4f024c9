/* Streams that begin while their transport still repairs. See um_rcv_opening.h. */
#include "transport/um_rcv_opening.h"

#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_sqn.h"

/* Then the beginning is not waited for any longer: messages (half a second at 130,000 a second: several rounds of NAKs
 * with the default intervals), and bytes of the receive buffers that they keep. */
#define HELD_MAX 65536u
#define HELD_BYTES_MAX (64u << 20)
#define LOG_INTERVAL_NS (10 * UM_NS_PER_SEC)

struct held {
    struct um_lbmc_msg msg; /* its slices point into buf */
    struct um_buf *buf;
};

struct um_rcv_opening {
    uint32_t position;  /* of the transport: what was sent before it is waited for */
    uint32_t first_sqn; /* of the message that came first */
    size_t count, capacity;
    size_t bytes;             /* of the buffers kept; one that arrives again behind another counts twice */
    struct um_buf *last_kept; /* by the message that came last */
    struct held *items;       /* in sequence order */
    bool complete;            /* everything sent before `position` has come or was given up */
    bool releasing;
    bool forgotten; /* the stream has left while its messages were handed on */
};

static void free_opening(struct um_rcv_opening *opening)
{
    for (size_t i = 0; i < opening->count; i++) {
        um_buf_unref(opening->items[i].buf);
    }
    um_free(opening->items);
    um_free(opening);
}

static bool insert(struct um_rcv_opening *opening, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    if (opening->count == opening->capacity) {
        size_t capacity = opening->capacity == 0 ? 16 : opening->capacity * 2;
        struct held *items = um_realloc(opening->items, capacity * sizeof *items);
        if (items == NULL) {
            return false;
        }
        opening->items = items;
        opening->capacity = capacity;
    }
    size_t at = opening->count++;
    while (at > 0 && um_sqn_older(msg->sqn, opening->items[at - 1].msg.sqn)) {
        opening->items[at] = opening->items[at - 1];
        at--;
    }
    opening->items[at] = (struct held){*msg, buf};
    um_buf_ref(buf);
    opening->bytes += buf != opening->last_kept ? buf->capacity : 0;
    opening->last_kept = buf;
    return true;
}

/* Where the stream begins: the oldest message from which everything up to the one that came first is here. What is
 * older was sent before the stream joined, and came only because others needed the datagram. */
static size_t beginning(const struct um_rcv_opening *opening)
{
    size_t at = 0;
    while (at < opening->count && opening->items[at].msg.sqn != opening->first_sqn) {
        at++;
    }
    while (at > 0 && at < opening->count && opening->items[at].msg.sqn - opening->items[at - 1].msg.sqn <= 1) {
        at--;
    }
    return at < opening->count ? at : 0;
}

bool um_rcv_opening_release(struct um_rcv_stream *stream, uint64_t now_ns)
{
    struct um_rcv_session *session = stream->session;
    struct um_rcv_opening *opening = stream->opening;
    opening->releasing = true;
    if (stream->events->on_read_end != NULL && um_list_empty(&stream->touched)) {
        um_list_push_back(&session->touched, &stream->touched);
    }
    size_t start = opening->complete ? beginning(opening) : 0; /* else what lies between may still come */
    session->msgs_no_topic += start;
    for (size_t i = start; i < opening->count && !opening->forgotten; i++) {
        stream->events->on_data(stream, &opening->items[i].msg, opening->items[i].buf, now_ns);
    }
    bool stays = !opening->forgotten;
    if (stays) {
        stream->opening = NULL;
        stream->open = true;
        session->openings--;
    }
    free_opening(opening);
    return stays;
}

void um_rcv_opening_forget(struct um_rcv_stream *stream)
{
    struct um_rcv_opening *opening = stream->opening;
    if (opening == NULL) {
        return;
    }
    stream->opening = NULL;
    stream->session->openings--;
    if (opening->releasing) {
        opening->forgotten = true;
    } else {
        free_opening(opening);
    }
}

bool um_rcv_opening_hold(struct um_rcv_session *session, struct um_rcv_stream *stream, const struct um_lbmc_msg *msg,
                         struct um_buf *buf, uint64_t now_ns)
{
    if (stream->opening == NULL) {
        bool complete = session->ops->complete_before(session, session->position);
        struct um_rcv_opening *opening = complete ? NULL : um_calloc(1, sizeof *opening);
        if (opening == NULL) {
            stream->open = true;
            return false;
        }
        opening->position = session->position;
        opening->first_sqn = msg->sqn;
        stream->opening = opening;
        session->openings++;
    }
    if (insert(stream->opening, msg, buf)) {
        return true;
    }
    return !um_rcv_opening_release(stream, now_ns);
}

static void tell_cut(struct um_rcv_session *session, const struct um_rcv_stream *stream, uint64_t now_ns)
{
    static struct um_log_limit limit;
    session->openings_cut++;
    um_log_limited(
        &limit, now_ns, LOG_INTERVAL_NS, UM_LOG_WARNING, "Core-9006-15",
        "%s: topic index %u: %zu messages in %zu bytes of receive buffers are handed on before what was sent "
        "before them is repaired; what comes later than this may count as old; %llu beginnings cut short",
        session->source, stream->tidx, stream->opening->count, stream->opening->bytes,
        (unsigned long long)session->openings_cut);
}

static struct um_rcv_stream *next_due(struct um_rcv_session *session)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &session->streams)
    {
        struct um_rcv_stream *stream = UM_CONTAINER_OF(it, struct um_rcv_stream, node);
        struct um_rcv_opening *opening = stream->opening;
        if (opening == NULL || opening->releasing) {
            continue;
        }
        opening->complete = session->ops->complete_before(session, opening->position);
        if (opening->complete || opening->count >= HELD_MAX || opening->bytes >= HELD_BYTES_MAX) {
            return stream;
        }
    }
    return NULL;
}

void um_rcv_openings_check(struct um_rcv_session *session, uint64_t now_ns)
{
    struct um_rcv_stream *stream;
    while (session->state == UM_RCV_ACTIVE && (stream = next_due(session)) != NULL) {
        if (!stream->opening->complete) {
            tell_cut(session, stream, now_ns);
        }
        um_rcv_opening_release(stream, now_ns);
    }
}
