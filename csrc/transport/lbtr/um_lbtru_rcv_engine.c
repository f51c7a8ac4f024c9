/* LBT-RU receiver engine. See um_lbtru_rcv_engine.h. */
#include "transport/lbtr/um_lbtru_rcv_engine.h"

#include "base/um_mem.h"
#include "base/um_sqn.h"

#define ANSWER_NEARBY 65536u /* numbers that may be sent or lost between data and the answer to a request */

struct um_lbtru_rcv_engine {
    struct um_lbtr_rcv_engine common;
    struct um_lbtru_rcv_engine_config config;
    bool answered;       /* a session message answered a request; data alone may be forged */
    bool served;         /* data, or a session message of its own accord: the source takes us for a client */
    uint64_t attempts;   /* connection requests sent */
    uint64_t request_ns; /* when the next one is due */
    uint64_t ack_ns;     /* when the next acknowledgement is due */
    uint64_t acked_ns;   /* when the last one was sent; 0: none yet */
    uint64_t pause_ns;   /* the longest time between two of them */
};

static struct um_lbtru_rcv_engine *ru_of(const struct um_lbtr_rcv_engine *engine)
{
    return UM_CONTAINER_OF((struct um_lbtr_rcv_engine *)engine, struct um_lbtru_rcv_engine, common);
}

static void send_packet(struct um_lbtru_rcv_engine *receiver, const uint8_t *packet, size_t len)
{
    receiver->common.out->send(receiver->common.io, packet, len);
}

static size_t put_nak(const struct um_lbtr_rcv_engine *engine, uint8_t *packet, const uint32_t *sqns, size_t count)
{
    return um_lbtru_put_nak(packet, ru_of(engine)->config.session_id, sqns, count);
}

/* Until a session message answers, even where data comes already: the source may want to hear its number. */
static bool may_request(const struct um_lbtru_rcv_engine *receiver)
{
    return !receiver->answered && receiver->attempts < receiver->config.connect_attempts;
}

static uint64_t next_due(const struct um_lbtru_rcv_engine *receiver)
{
    const struct um_lbtr_rcv_engine *engine = &receiver->common;
    if (engine->state == UM_LBTR_RCV_JOINING) {
        return receiver->request_ns;
    }
    uint64_t due_ns = engine->last_heard_ns + receiver->config.activity_ns;
    due_ns = receiver->ack_ns < due_ns ? receiver->ack_ns : due_ns;
    due_ns = may_request(receiver) && receiver->request_ns < due_ns ? receiver->request_ns : due_ns;
    return engine->rx.due_ns < due_ns ? engine->rx.due_ns : due_ns;
}

static void arm(struct um_lbtru_rcv_engine *receiver)
{
    um_lbtr_rcv_engine_arm(&receiver->common, next_due(receiver));
}

static void request(struct um_lbtru_rcv_engine *receiver, uint64_t now_ns)
{
    uint8_t packet[UM_LBTRU_CREQ_MAX];
    receiver->attempts++;
    receiver->request_ns = now_ns + receiver->config.connect_ns;
    send_packet(receiver, packet, um_lbtru_put_creq(packet, receiver->config.session_id));
}

static uint64_t longest_pause_ns(const struct um_lbtru_rcv_engine *receiver, uint64_t now_ns)
{
    uint64_t last_ns = receiver->acked_ns != 0 ? now_ns - receiver->acked_ns : 0;
    return last_ns > receiver->pause_ns ? last_ns : receiver->pause_ns;
}

static void acknowledge(struct um_lbtru_rcv_engine *receiver, uint64_t now_ns, uint32_t sqn)
{
    uint8_t packet[UM_LBTRU_ACK_MAX];
    receiver->pause_ns = longest_pause_ns(receiver, now_ns);
    receiver->acked_ns = now_ns;
    receiver->ack_ns = now_ns + receiver->config.ack_ns;
    send_packet(receiver, packet, um_lbtru_put_ack(packet, receiver->config.session_id, sqn));
}

/* The options allow 0, but nothing must be sent without end. */
static uint64_t at_least_ms(uint64_t interval_ns)
{
    return interval_ns < UM_NS_PER_MS ? UM_NS_PER_MS : interval_ns;
}

/* Not answered yet: another request, or the end. */
static void try_again(struct um_lbtru_rcv_engine *receiver, uint64_t now_ns)
{
    if (now_ns >= receiver->request_ns && receiver->attempts >= receiver->config.connect_attempts) {
        um_lbtr_rcv_engine_end(&receiver->common, now_ns, UM_LBTR_END_NO_ANSWER);
        return;
    }
    if (now_ns >= receiver->request_ns) {
        request(receiver, now_ns);
    }
    arm(receiver);
}

static void on_timer(struct um_lbtr_rcv_engine *engine, uint64_t now_ns)
{
    struct um_lbtru_rcv_engine *receiver = ru_of(engine);
    if (engine->state == UM_LBTR_RCV_JOINING) {
        try_again(receiver, now_ns);
        return;
    }
    um_lbtr_reception_on_timer(&engine->rx, now_ns);
    if (now_ns >= engine->last_heard_ns + receiver->config.activity_ns) {
        um_lbtr_rcv_engine_end(engine, now_ns, UM_LBTR_END_SILENCE);
        return;
    }
    if (may_request(receiver) && now_ns >= receiver->request_ns) {
        request(receiver, now_ns);
    }
    if (now_ns >= receiver->ack_ns) {
        acknowledge(receiver, now_ns, engine->rx.expected - 1);
        if (!receiver->served && receiver->attempts < receiver->config.connect_attempts) {
            request(receiver, now_ns); /* perhaps it was another one's answer, and this is not its number */
        }
    }
    arm(receiver);
}

static const struct um_lbtr_rcv_protocol protocol = {
    .nak_list_max = UM_LBTRU_LIST_MAX, .put_nak = put_nak, .on_timer = on_timer};

struct um_lbtr_rcv_engine *um_lbtru_rcv_engine_create(const struct um_lbtru_rcv_engine_config *config,
                                                      struct um_rng *rng, const struct um_lbtr_rcv_outputs *out,
                                                      void *io, uint64_t now_ns)
{
    struct um_lbtru_rcv_engine *receiver = um_calloc(1, sizeof *receiver);
    if (receiver == NULL) {
        return NULL;
    }
    receiver->config = *config;
    receiver->config.connect_ns = at_least_ms(config->connect_ns);
    receiver->config.ack_ns = at_least_ms(config->ack_ns);
    um_lbtr_rcv_engine_init(&receiver->common, &protocol, &config->naks, rng, out, io, now_ns);
    request(receiver, now_ns);
    arm(receiver);
    return &receiver->common;
}

/* ---- packets ---- */

static void connected(struct um_lbtru_rcv_engine *receiver, uint64_t now_ns, uint32_t expected)
{
    um_lbtr_reception_start(&receiver->common.rx, expected);
    receiver->common.last_heard_ns = now_ns;
    acknowledge(receiver, now_ns, expected - 1);
    um_lbtr_rcv_engine_begin(&receiver->common, now_ns);
}

static void on_data(struct um_lbtru_rcv_engine *receiver, uint64_t now_ns, const struct um_lbtru_packet *packet,
                    size_t len)
{
    struct um_lbtr_rcv_engine *engine = &receiver->common;
    if (engine->state == UM_LBTR_RCV_JOINING) {
        if (packet->retransmission || !um_lbtr_trail_is_sane(packet->trail, packet->sqn)) {
            engine->rx.counters.dropped_other++; /* where the stream is, only an original tells */
            return;
        }
        connected(receiver, now_ns, packet->sqn);
    }
    if (um_lbtr_rcv_engine_data(engine, now_ns, packet->sqn, packet->trail, packet->retransmission, &packet->payload,
                                len) == UM_LBTR_ACCEPTED) {
        receiver->served = true;
    }
}

/* The answer to a request comes after data. The source takes us for a client when it hears the number it told; and if
 * what came before is far from there, that was no data of this source. One that serves us has heard it: then somebody
 * else asked in our name, and must not be helped to make another client of us. */
static void on_late_answer(struct um_lbtru_rcv_engine *receiver, uint64_t now_ns, uint32_t lead)
{
    struct um_lbtr_reception *rx = &receiver->common.rx;
    int32_t ahead = um_sqn_diff(lead + 1, rx->expected);
    if (!receiver->answered && (ahead < -(int32_t)ANSWER_NEARBY || ahead > (int32_t)ANSWER_NEARBY)) {
        um_lbtr_reception_restart(rx, lead + 1);
    }
    acknowledge(receiver, now_ns, receiver->answered && receiver->served ? rx->expected - 1 : lead);
}

static void on_sm(struct um_lbtru_rcv_engine *receiver, uint64_t now_ns, const struct um_lbtru_packet *packet)
{
    struct um_lbtr_rcv_engine *engine = &receiver->common;
    bool sane = um_lbtr_trail_is_sane(packet->trail, packet->lead);
    if (engine->state == UM_LBTR_RCV_BEGUN && packet->syn && sane) {
        on_late_answer(receiver, now_ns, packet->lead);
    }
    receiver->answered = receiver->answered || packet->syn;
    receiver->served = receiver->served || !packet->syn;
    if (engine->state == UM_LBTR_RCV_JOINING && sane) {
        connected(receiver, now_ns, packet->lead + 1);
    } else if (engine->state == UM_LBTR_RCV_BEGUN &&
               um_lbtr_reception_sm(&engine->rx, now_ns, packet->lead, packet->trail)) {
        engine->last_heard_ns = now_ns;
    } else {
        engine->rx.counters.dropped_other++;
    }
}

/* Is it from this session? A reset needs no session id. */
static bool of_session(struct um_lbtru_rcv_engine *receiver, const struct um_lbtru_packet *packet)
{
    uint32_t sid = receiver->config.session_id;
    if (packet->type == UM_LBTRU_RST && !packet->has_sid) {
        return true;
    }
    if (sid == 0 || (packet->has_sid && packet->sid == sid)) {
        return true;
    }
    receiver->common.rx.counters.dropped_sid++;
    return false;
}

void um_lbtru_rcv_engine_on_packet(struct um_lbtr_rcv_engine *engine, uint64_t now_ns, const uint8_t *data, size_t len,
                                   uint32_t from_ip, uint16_t from_port)
{
    struct um_lbtru_rcv_engine *receiver = ru_of(engine);
    struct um_lbtru_packet packet;
    if (engine->state == UM_LBTR_RCV_ENDED) {
        return;
    }
    if (from_ip != receiver->config.source_ip || from_port != receiver->config.source_port) {
        engine->rx.counters.dropped_other++;
        return;
    }
    enum um_lbtr_rc rc = um_lbtru_decode(data, len, &packet);
    if (rc != UM_LBTR_OK) {
        um_lbtr_counters_drop(&engine->rx.counters, rc);
        return;
    }
    if (!of_session(receiver, &packet)) {
        return;
    }
    switch (packet.type) {
    case UM_LBTRU_DATA:
        on_data(receiver, now_ns, &packet, len);
        break;
    case UM_LBTRU_SM:
        on_sm(receiver, now_ns, &packet);
        break;
    case UM_LBTRU_NCF:
        if (engine->state == UM_LBTR_RCV_BEGUN) {
            um_lbtr_reception_ncf(&engine->rx, now_ns, packet.trail, packet.reason, &packet.list);
        } else {
            engine->rx.counters.dropped_other++;
        }
        break;
    case UM_LBTRU_RST:
        um_lbtr_rcv_engine_end(engine, now_ns, UM_LBTR_END_RESET);
        return;
    case UM_LBTRU_NAK: /* what receivers send means nothing here */
    case UM_LBTRU_ACK:
    case UM_LBTRU_CREQ:
        engine->rx.counters.dropped_type++;
        break;
    }
    arm(receiver);
}

/* ---- statistics ---- */

uint64_t um_lbtru_rcv_engine_pause_ns(const struct um_lbtr_rcv_engine *engine, uint64_t now_ns)
{
    return longest_pause_ns(ru_of(engine), now_ns);
}

void um_lbtru_rcv_engine_stats(const struct um_lbtr_rcv_engine *engine, lbm_rcv_transport_stats_lbtru_t *out)
{
    const struct um_lbtr_receiver_counters *c = &engine->rx.counters;
    *out = (lbm_rcv_transport_stats_lbtru_t){
        UM_LBTR_RECEIVER_STATS(c),
        .dgrams_dropped_sid = c->dropped_sid,
    };
}
