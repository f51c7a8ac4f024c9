/* The common part of LBT-RM and LBT-RU receive sessions. See um_udp_session.h. */
#include "transport/udp/um_udp_session.h"

#define LOG_INTERVAL_NS UM_NS_PER_SEC
#define LOST_LOG_INTERVAL_NS (10 * UM_NS_PER_SEC)

static struct um_timer_wheel *wheel_of(const struct um_udp_session *session)
{
    return um_loop_wheel(session->owner->env->loop);
}

static void on_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_udp_session *session = UM_CONTAINER_OF(timer, struct um_udp_session, timer);
    session->due_ns = UM_NEVER;
    um_rcv_session_begin(&session->base);
    session->engine->on_timer(session, now_ns);
    um_rcv_session_end(&session->base, now_ns);
}

void um_udp_session_init(struct um_udp_session *session, struct um_udp_receivers *receivers,
                         const struct um_receiver_options *opts, const struct um_udp_engine *engine,
                         const struct um_rcv_transport_ops *ops)
{
    session->base.ops = ops;
    session->first = *opts;
    session->owner = receivers;
    session->engine = engine;
    session->due_ns = UM_NEVER;
    um_list_init(&session->pass_node);
    um_timer_init(&session->timer, on_timer);
    um_list_push_back(&receivers->sessions, &session->node);
}

void um_udp_session_stop(struct um_udp_session *session)
{
    um_timer_cancel(wheel_of(session), &session->timer);
    um_list_remove(&session->node);
}

void um_udp_session_set_timer(void *io, uint64_t due_ns)
{
    struct um_udp_session *session = io;
    if (session->base.state != UM_RCV_ENDED) {
        session->due_ns = due_ns;
        um_timer_arm(wheel_of(session), &session->timer, due_ns);
    }
}

/* ---- passes ---- */

void um_udp_session_enter(struct um_udp_session *session)
{
    if (um_list_empty(&session->pass_node)) {
        um_rcv_session_begin(&session->base);
        um_list_push_back(&session->owner->pass, &session->pass_node);
    }
}

/* NAKs without delay are due as soon as the read is over: what was merely out of order in it is not asked for. */
void um_udp_sessions_end_pass(struct um_udp_receivers *receivers, uint64_t now_ns)
{
    struct um_list *node;
    while ((node = um_list_first(&receivers->pass)) != NULL) {
        struct um_udp_session *session = UM_CONTAINER_OF(node, struct um_udp_session, pass_node);
        um_list_remove(node);
        if (session->due_ns <= now_ns && session->base.state != UM_RCV_ENDED) {
            um_timer_cancel(wheel_of(session), &session->timer);
            session->due_ns = UM_NEVER;
            session->engine->on_timer(session, now_ns);
        }
        um_rcv_session_end(&session->base, now_ns);
    }
}

/* ---- what engines put out ---- */

static bool drop_message(struct um_udp_session *session, uint64_t now_ns, const char *what)
{
    um_log_limited(&session->malformed_log, now_ns, LOG_INTERVAL_NS, UM_LOG_WARNING, "Core-9006-6", "%s: dropped %s",
                   session->base.source, what);
    return um_rcv_session_malformed(&session->base);
}

void um_udp_session_deliver(void *io, uint64_t now_ns, const struct um_slice *payload, uint32_t sqn,
                            bool retransmission)
{
    struct um_udp_session *session = io;
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

void um_udp_session_lost(void *io, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why)
{
    struct um_udp_session *session = io;
    session->lost_datagrams += count;
    um_log_limited(&session->lost_log, now_ns, LOST_LOG_INTERVAL_NS, UM_LOG_WARNING, "Core-9006-7",
                   "%s: %u datagrams from number %u on are lost for good: %s; %llu of this session so far",
                   session->base.source, count, first,
                   why == UM_LBTR_LOSS_WINDOW ? "the source does not keep them any more (transmission window)"
                                              : session->engine->generation_option,
                   (unsigned long long)session->lost_datagrams);
}

void um_udp_session_heard(void *io, uint64_t now_ns)
{
    um_rcv_session_activity(&((struct um_udp_session *)io)->base);
}

uint64_t um_udp_interval_ns(lbm_ulong_t ms, lbm_ulong_t us)
{
    return us != 0 ? us * (UM_NS_PER_MS / 1000) : ms * UM_NS_PER_MS;
}

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

void um_lbtrm_receiver_compare(const struct um_rcv_session *session, const struct um_receiver_options *opts)
{
    const struct um_receiver_options *first = &um_udp_session_of((struct um_rcv_session *)session)->first;
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

void um_lbtru_receiver_compare(const struct um_rcv_session *session, const struct um_receiver_options *opts)
{
    const struct um_receiver_options *first = &um_udp_session_of((struct um_rcv_session *)session)->first;
    const struct compared list[] = {
        COMPARED("Core-5688-3432", transport_lbtru_nak_backoff_interval),
        COMPARED("Core-5688-3433", transport_lbtru_nak_suppress_interval),
        COMPARED("Core-5688-3434", transport_lbtru_nak_generation_interval),
        COMPARED("Core-5688-3435", transport_lbtru_activity_timeout),
        COMPARED("Core-10327-10", transport_lbtru_send_naks),
    };
    warn(session, list, sizeof list / sizeof list[0]);
}
