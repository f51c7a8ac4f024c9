/* The sending side of multicast immediate messages. See um_mim_sender.h. */
#include "core/um_mim_sender.h"

#include <string.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_lock.h"
#include "base/um_mem.h"

#define HEADERS_MAX (4 + 246 + 1 + UM_LBMC_CTXINST_HDR_LEN + UM_MIM_HEADERS_MAX)

enum sender_state {
    SENDER_IDLE, /* no session */
    SENDER_OPEN,
    SENDER_CLOSED /* the context is being deleted */
};

struct um_mim_sender {
    lbm_context_t *ctx;
    struct um_context_events *events;
    struct um_lock lock;         /* taken before that of the session; not held while sending */
    struct um_condition changed; /* with lock */
    enum sender_state state;     /* lock; changed on the loop */
    unsigned users;              /* lock: threads in a send, which the session outlives */
    uint64_t last_send_ns;       /* lock */
    struct um_src_stream stream; /* attached while open */
    struct um_timer idle_timer;  /* [loop] */
};

static struct um_timer_wheel *wheel(const struct um_mim_sender *sender)
{
    return um_loop_wheel(sender->ctx->loop);
}

static uint64_t idle_ns(const struct um_mim_sender *sender)
{
    return um_ms_ns(sender->ctx->opts.mim_src_deletion_timeout);
}

/* ---- events of the session [loop] ---- */

/* Nobody connects to a multicast group. */
static void on_client(struct um_src_stream *stream, const char *client)
{
}

static void on_wakeup(struct um_src_stream *stream)
{
    struct um_mim_sender *sender = UM_CONTAINER_OF(stream, struct um_mim_sender, stream);
    um_context_event_wakeup(sender->events, LBM_SRC_EVENT_WAKEUP_FLAG_MIM);
}

static const struct um_src_stream_events stream_events = {
    .on_connect = on_client, .on_disconnect = on_client, .on_wakeup = on_wakeup};

/* ---- the session [loop] ---- */

/* What a source that sent to the group would have set; messages are flushed one by one. */
static void session_options(const struct um_context_options *ctx_opts, struct um_source_options *opts)
{
    opts->transport = LBM_SRC_TOPIC_ATTR_TRANSPORT_LBTRM;
    opts->transport_lbtrm_multicast_address = ctx_opts->mim_outgoing_address;
    opts->transport_lbtrm_destination_port = ctx_opts->mim_outgoing_destination_port;
    opts->transport_lbtrm_tgsz = ctx_opts->mim_tgsz;
    opts->transport_lbtrm_ignore_interval = ctx_opts->mim_ignore_interval;
    opts->transport_lbtrm_sm_minimum_interval = ctx_opts->mim_sm_minimum_interval;
    opts->transport_lbtrm_sm_maximum_interval = ctx_opts->mim_sm_maximum_interval;
    opts->transport_lbtrm_transmission_window_size = ctx_opts->mim_transmission_window_size;
    opts->transport_lbtrm_transmission_window_limit = ctx_opts->mim_transmission_window_limit;
    opts->implicit_batching_type = LBM_SRC_TOPIC_ATTR_IMPLICIT_BATCH_TYPE_DEFAULT;
    opts->implicit_batching_minimum_length = 1;
    opts->late_join = 0;
}

static int attach(struct um_mim_sender *sender)
{
    lbm_context_t *ctx = sender->ctx;
    struct um_source_options opts;
    if (um_source_options_resolve(NULL, ctx->opts.context_name, ctx->opts.um_profile, "", &opts) != 0) {
        return -1;
    }
    session_options(&ctx->opts, &opts);
    sender->stream = (struct um_src_stream){.events = &stream_events};
    int rc =
        um_src_transports_attach_apart(ctx->src_transports, &opts, "multicast immediate messages", &sender->stream);
    um_options_clear(UM_SCOPE_SOURCE, &opts);
    return rc;
}

static int open_on_loop(void *arg)
{
    struct um_mim_sender *sender = arg;
    if (sender->state == SENDER_OPEN) {
        return 0;
    }
    if (sender->state == SENDER_CLOSED) {
        return um_error(UM_EINVAL, "CoreApi-20223-2", "multicast immediate message: the context is being deleted");
    }
    if (!um_stream_settings_plain(&sender->ctx->filters.settings)) {
        return um_error(UM_EOPNOTSUPP, "CoreApi-20223-9",
                        "multicast immediate message: it would be neither encrypted nor compressed, and the context "
                        "has %s set; use unicast immediate messages",
                        sender->ctx->filters.settings.encryption ? "use_tls" : "compression");
    }
    if (attach(sender) != 0) {
        return -1;
    }
    um_lock_take(&sender->lock);
    sender->state = SENDER_OPEN;
    sender->last_send_ns = um_clock_ns();
    um_lock_give(&sender->lock);
    um_timer_arm(wheel(sender), &sender->idle_timer, um_loop_now(sender->ctx->loop) + idle_ns(sender));
    return 0;
}

/* Sends keep the session; one that comes now opens another. */
static void on_idle_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_mim_sender *sender = UM_CONTAINER_OF(timer, struct um_mim_sender, idle_timer);
    um_lock_take(&sender->lock);
    uint64_t due_ns = sender->last_send_ns + idle_ns(sender);
    bool over = sender->users == 0 && now_ns >= due_ns;
    if (over) {
        sender->state = SENDER_IDLE;
    }
    um_lock_give(&sender->lock);
    if (over) {
        um_src_stream_detach(&sender->stream);
    } else {
        um_timer_arm(wheel(sender), &sender->idle_timer, due_ns > now_ns ? due_ns : now_ns + idle_ns(sender));
    }
}

/* ---- sending ---- */

/* True: the session is there, and stays until leave(). */
static bool enter(struct um_mim_sender *sender)
{
    um_lock_take(&sender->lock);
    bool open = sender->state == SENDER_OPEN;
    sender->users += open;
    um_lock_give(&sender->lock);
    return open;
}

static void leave(struct um_mim_sender *sender)
{
    um_lock_take(&sender->lock);
    sender->last_send_ns = um_clock_ns();
    if (--sender->users == 0 && sender->state == SENDER_CLOSED) {
        um_condition_signal_all(&sender->changed);
    }
    um_lock_give(&sender->lock);
}

/* Of a chain written from its end to its beginning, since each header names the next one. */
static size_t put_headers(const struct um_mim_sender *sender, const struct um_mim_message *message, uint8_t *out,
                          uint8_t *first)
{
    size_t topic_len = message->topic != NULL ? strlen(message->topic) : 0, len = 0;
    *first = message->topic != NULL ? UM_LBMC_HDR_TOPICNAME : UM_LBMC_HDR_CTXINST;
    if (message->topic != NULL) {
        len += um_lbmc_put_topicname(out, UM_LBMC_HDR_CTXINST, message->topic, topic_len);
    }
    len += um_lbmc_put_ctxinst(out + len, message->headers_len > 0 ? message->first_header : UM_LBMC_HDR_DATA,
                               sender->ctx->instance);
    if (message->headers_len > 0) {
        memcpy(out + len, message->headers, message->headers_len);
        len += message->headers_len;
    }
    return len;
}

static int send_on_session(struct um_mim_sender *sender, const struct um_mim_message *message)
{
    uint8_t headers[HEADERS_MAX];
    struct iovec iov = {(void *)message->data, message->len};
    struct um_send send = {.iov = &iov,
                           .iovcnt = 1,
                           .len = message->len,
                           .flags = (message->flags & LBM_SRC_NONBLOCK) | LBM_MSG_FLUSH,
                           .headers = headers};
    send.headers_len = put_headers(sender, message, headers, &send.first_header);
    int rc = um_src_stream_send(&sender->stream, &send);
    if (rc == 0 && send.waited) {
        atomic_fetch_add_explicit(&sender->ctx->counters.send_blocked, 1, memory_order_relaxed);
    } else if (rc != 0 && um_errnum() == UM_EWOULDBLOCK) {
        atomic_fetch_add_explicit(&sender->ctx->counters.send_would_block, 1, memory_order_relaxed);
    }
    return rc;
}

int um_mim_send(struct um_mim_sender *sender, const struct um_mim_message *message)
{
    while (!enter(sender)) { /* again if it ended for idleness in between */
        if (um_loop_call(sender->ctx->loop, open_on_loop, sender) != 0) {
            return -1;
        }
    }
    int rc = send_on_session(sender, message);
    leave(sender);
    return rc;
}

/* ---- creation and deletion [loop] ---- */

struct um_mim_sender *um_mim_sender_create(lbm_context_t *ctx, struct um_context_events *events)
{
    struct um_mim_sender *sender = um_calloc(1, sizeof *sender);
    if (sender == NULL) {
        um_error_nomem("sender of multicast immediate messages", sizeof *sender);
        return NULL;
    }
    sender->ctx = ctx;
    sender->events = events;
    um_timer_init(&sender->idle_timer, on_idle_timer);
    return sender;
}

void um_mim_sender_destroy(struct um_mim_sender *sender)
{
    if (sender == NULL) {
        return;
    }
    um_timer_cancel(wheel(sender), &sender->idle_timer);
    um_lock_take(&sender->lock);
    bool open = sender->state == SENDER_OPEN;
    sender->state = SENDER_CLOSED;
    um_lock_give(&sender->lock);
    if (open) {
        um_src_stream_end_sends(&sender->stream);
        um_lock_take(&sender->lock);
        while (sender->users > 0) {
            um_condition_wait(&sender->changed, &sender->lock);
        }
        um_lock_give(&sender->lock);
        um_src_stream_detach(&sender->stream);
    }
    um_free(sender);
}
