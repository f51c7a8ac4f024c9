/* The common part of LBT-RM and LBT-RU receive sessions. See um_udp_rcv_session.h. */
#include "transport/udp/um_udp_rcv_session.h"

#include <stdio.h>

#include "base/um_error.h"

static struct um_timer_wheel *wheel_of(const struct um_udp_rcv_session *session)
{
    return um_loop_wheel(session->owner->base.env->loop);
}

static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_udp_rcv_session *session = UM_CONTAINER_OF(timer, struct um_udp_rcv_session, timer);
    session->due_ns = UM_NEVER;
    um_rcv_session_begin(&session->base);
    um_lbtr_rcv_engine_on_timer(session->engine, now_ns);
    um_rcv_session_end(&session->base, now_ns);
}

/* ---- life ---- */

void um_udp_rcv_session_init(struct um_udp_rcv_session *session, struct um_udp_receivers *receivers,
                             const struct um_receiver_options *opts, const struct um_rcv_session_key *key,
                             const struct um_udp_rcv_kind *kind, const struct um_rcv_session_ops *ops)
{
    session->base.ops = ops;
    session->first = *opts;
    session->owner = receivers;
    session->kind = kind;
    session->source_ip = key->ip;
    session->source_port = (uint16_t)key->port;
    session->due_ns = UM_NEVER;
    um_list_init(&session->pass_node);
    um_timer_init(&session->timer, on_timer);
}

struct um_rcv_session *um_udp_rcv_session_joined(struct um_udp_rcv_session *session, struct um_lbtr_rcv_engine *engine)
{
    struct um_udp_receivers *receivers = session->owner;
    if (engine == NULL) {
        um_udp_rcv_session_destroy(&session->base);
        um_error_nomem("UDP receive session", sizeof *session);
        return NULL;
    }
    session->engine = engine;
    if (receivers->nak_cutoff) {
        um_lbtr_rcv_engine_set_nak_cutoff(engine, um_loop_now(receivers->base.env->loop), true);
    }
    return &session->base;
}

void um_udp_rcv_session_stop(struct um_rcv_session *base)
{
    struct um_udp_rcv_session *session = um_udp_rcv_session_of(base);
    if (!session->stopped) {
        session->stopped = true;
        um_timer_cancel(wheel_of(session), &session->timer);
        session->kind->close(session);
    }
}

void um_udp_rcv_session_destroy(struct um_rcv_session *base)
{
    struct um_udp_rcv_session *session = um_udp_rcv_session_of(base);
    um_udp_rcv_session_stop(base);
    if (session->engine != NULL) {
        um_lbtr_rcv_engine_destroy(session->engine);
    }
    um_free(session); /* the first member of what was allocated */
}

/* ---- what is asked of a session ---- */

bool um_udp_rcv_session_complete_before(struct um_rcv_session *base, uint32_t position)
{
    return um_lbtr_rcv_engine_complete_before(um_udp_rcv_session_of(base)->engine, position);
}

void um_udp_rcv_session_reset_stats(struct um_rcv_session *base)
{
    um_lbtr_counters_reset(um_lbtr_rcv_engine_counters(um_udp_rcv_session_of(base)->engine));
}

void um_udp_rcv_session_malformed(struct um_udp_rcv_session *session, enum um_lbtr_rc rc)
{
    um_lbtr_counters_drop(um_lbtr_rcv_engine_counters(session->engine), rc);
}

/* ---- passes ---- */

void um_udp_rcv_session_enter(struct um_udp_rcv_session *session)
{
    if (um_list_empty(&session->pass_node)) {
        um_rcv_session_begin(&session->base);
        um_list_push_back(&session->owner->pass, &session->pass_node);
    }
}

/* NAKs without delay are due as soon as the read is over: what was merely out of order in it is not asked for. */
void um_udp_rcv_sessions_end_pass(struct um_udp_receivers *receivers, uint64_t now_ns)
{
    struct um_list *node;
    while ((node = um_list_first(&receivers->pass)) != NULL) {
        struct um_udp_rcv_session *session = UM_CONTAINER_OF(node, struct um_udp_rcv_session, pass_node);
        um_list_remove(node);
        if (session->due_ns <= now_ns && session->base.state != UM_RCV_ENDED) {
            um_timer_cancel(wheel_of(session), &session->timer);
            session->due_ns = UM_NEVER;
            um_lbtr_rcv_engine_on_timer(session->engine, now_ns);
        }
        um_rcv_session_end(&session->base, now_ns);
    }
}

/* ---- what engines put out ---- */

static void set_timer(void *io, uint64_t due_ns)
{
    struct um_udp_rcv_session *session = io;
    if (!session->stopped) {
        session->due_ns = due_ns;
        um_timer_arm(wheel_of(session), &session->timer, due_ns);
    }
}

static void send_packet(void *io, const uint8_t *data, size_t len)
{
    struct um_udp_rcv_session *session = io;
    if (!session->stopped) { /* else nothing that was missing is wanted any more */
        um_udp_send(session->owner, session->kind->out(session), data, len, session->source_ip, session->source_port);
        um_udp_watch_drops(session, um_loop_now(session->owner->base.env->loop));
    }
}

static void begin(void *io, uint64_t now_ns)
{
    struct um_udp_rcv_session *session = io;
    if (session->kind->begun != NULL && !session->stopped) {
        session->kind->begun(session);
    }
    um_rcv_session_activity(&session->base);
}

void um_udp_rcv_describe_silence(const struct um_udp_rcv_session *session, const char *option, lbm_ulong_t limit_ms,
                                 uint64_t now_ns, struct um_udp_text *out)
{
    snprintf(out->text, sizeof out->text, "nothing heard for %llu ms (%s %lu)",
             (unsigned long long)((now_ns - session->engine->last_heard_ns) / UM_NS_PER_MS), option, limit_ms);
}

static void end(void *io, uint64_t now_ns, enum um_lbtr_end why)
{
    struct um_udp_rcv_session *session = io;
    const struct um_udp_rcv_kind *kind = session->kind;
    struct um_udp_text reason;
    kind->describe_end(session, why, now_ns, &reason);
    if (session->base.state == UM_RCV_JOINING) {
        um_rcv_session_tell_failure(&session->base, UM_LOG_INFO, kind->end_log, "session ended", reason.text, now_ns);
    } else {
        um_log_limited(um_log_of(session->base.source), now_ns, UM_LOG_INFO, kind->end_log, "%s: %s: session ended",
                       session->base.source, reason.text);
    }
    um_rcv_session_lost(&session->base, now_ns);
}

static bool drop_message(struct um_udp_rcv_session *session, uint64_t now_ns, const char *what)
{
    um_log_limited(um_log_of(session->base.source), now_ns, UM_LOG_WARNING, "Core-9006-6", "%s: dropped %s",
                   session->base.source, what);
    return um_rcv_session_malformed(&session->base);
}

static void deliver(void *io, uint64_t now_ns, const struct um_slice *payload, uint32_t sqn, bool retransmission)
{
    struct um_udp_rcv_session *session = io;
    const struct um_udp_datagram *datagram = &session->owner->datagram;
    const uint8_t *at = payload->ptr;
    size_t left = payload->len;
    struct um_lbmc_msg msg;
    session->base.position = sqn;
    msg.stamp_ns = datagram->stamp_ns;
    while (left > 0) {
        enum um_lbmc_rc rc = um_lbmc_decode(at, left, &msg);
        bool go_on;
        if (__builtin_expect(rc == UM_LBMC_OK, 1)) {
            msg.present |= msg.stamp_ns != 0 ? UM_LBMC_HAS_STAMP : 0;
            go_on = um_rcv_session_message(&session->base, &msg, datagram->buf, now_ns);
        } else if (rc == UM_LBMC_BAD) {
            go_on = drop_message(session, now_ns, "a message with a malformed or unknown header");
        } else {
            drop_message(session, now_ns, "the rest of a datagram in which no message header was found");
            return;
        }
        if (!go_on) {
            return;
        }
        at += msg.msglen;
        left -= msg.msglen;
    }
}

static void lost(void *io, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why)
{
    struct um_udp_rcv_session *session = io;
    bool of_window = why == UM_LBTR_LOSS_WINDOW;
    session->lost_datagrams += count;
    um_log_limited(um_log_of(session->base.source), now_ns, UM_LOG_WARNING, "Core-9006-7",
                   "%s: %u datagrams from number %u on are lost for good: %s (%s); %llu of this session so far",
                   session->base.source, count, first,
                   of_window ? "the source does not keep them any more" : "no repair came in time",
                   of_window ? "transmission window" : um_udp_rcv_names_of(session)->generation,
                   (unsigned long long)session->lost_datagrams);
}

static void taken_back(void *io, uint64_t now_ns, uint32_t next)
{
    struct um_udp_rcv_session *session = io;
    session->owner->counts.false_leads++;
    um_log_limited(um_log_of(session->base.source), now_ns, UM_LOG_WARNING, "Core-9006-16",
                   "%s: the source has not got beyond number %u: datagrams with higher numbers were forged or damaged; "
                   "what was reported lost from there on is still to come",
                   session->base.source, next);
}

const struct um_lbtr_rcv_outputs um_udp_rcv_outputs = {.send = send_packet,
                                                       .deliver = deliver,
                                                       .lost = lost,
                                                       .begin = begin,
                                                       .end = end,
                                                       .set_timer = set_timer,
                                                       .taken_back = taken_back};

size_t um_udp_receive_size(lbm_uint_t own, lbm_uint_t common)
{
    size_t size = own != 0 ? own : common;
    return size < UM_LBTR_DATAGRAM_MAX ? size : UM_LBTR_DATAGRAM_MAX;
}

/* ---- the first receiver of a session decides ---- */

#define COMPARED(id, field)                                                                                            \
    {                                                                                                                  \
        id, #field, (unsigned long)opts->field, (unsigned long)first->field                                            \
    }

struct compared {
    const char *id, *option;
    unsigned long wanted, has;
};

static void warn(const struct um_rcv_session *session, const struct compared *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].wanted != list[i].has) {
            um_log(UM_LOG_WARNING, list[i].id,
                   "%s: %s %lu of a further receiver is ignored: the session was joined by its first one with %lu",
                   session->source, list[i].option, list[i].wanted, list[i].has);
        }
    }
}

void um_lbtrm_rcv_engine_compare(const struct um_rcv_session *session, const struct um_receiver_options *opts)
{
    const struct um_receiver_options *first = &um_udp_rcv_session_of((struct um_rcv_session *)session)->first;
    const struct compared list[] = {
        COMPARED("Core-5688-3426", transport_lbtrm_nak_backoff_interval),
        COMPARED("Core-5688-3427", transport_lbtrm_nak_suppress_interval),
        COMPARED("Core-5688-3428", transport_lbtrm_nak_generation_interval),
        COMPARED("Core-5688-3429", transport_lbtrm_preactivity_timeout),
        COMPARED("Core-5688-3430", transport_lbtrm_activity_timeout),
        COMPARED("Core-5688-3431", transport_lbtrm_send_naks),
    };
    warn(session, list, sizeof list / sizeof list[0]);
}

void um_lbtru_rcv_engine_compare(const struct um_rcv_session *session, const struct um_receiver_options *opts)
{
    const struct um_receiver_options *first = &um_udp_rcv_session_of((struct um_rcv_session *)session)->first;
    const struct compared list[] = {
        COMPARED("Core-5688-3432", transport_lbtru_nak_backoff_interval),
        COMPARED("Core-5688-3433", transport_lbtru_nak_suppress_interval),
        COMPARED("Core-5688-3434", transport_lbtru_nak_generation_interval),
        COMPARED("Core-5688-3435", transport_lbtru_activity_timeout),
        COMPARED("Core-10327-10", transport_lbtru_send_naks),
    };
    warn(session, list, sizeof list / sizeof list[0]);
}
