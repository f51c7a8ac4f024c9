/* LBT-RU receiver engine. See um_lbtru_receiver.h. */
#include "transport/lbtr/um_lbtru_receiver.h"

#include "base/um_mem.h"

enum state { CONNECTING, CONNECTED, CLOSED };

struct um_lbtru_receiver {
    struct um_lbtru_receiver_config config;
    const struct um_lbtru_receiver_ops *ops;
    void *io;
    enum state state;
    struct um_lbtr_reception rx;
    uint64_t attempts;      /* connection requests sent */
    uint64_t request_ns;    /* when the next one is due */
    uint64_t ack_ns;        /* when the next acknowledgement is due */
    uint64_t last_heard_ns; /* DATA or session message */
    uint64_t armed_ns;
};

static void send_nak(void *user, const uint32_t *sqns, size_t count)
{
    struct um_lbtru_receiver *receiver = user;
    uint8_t packet[UM_LBTR_LIST_BYTES_MAX];
    receiver->ops->send(receiver->io, packet, um_lbtru_put_nak(packet, receiver->config.session_id, sqns, count));
}

static void on_lost(void *user, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why)
{
    struct um_lbtru_receiver *receiver = user;
    receiver->ops->lost(receiver->io, now_ns, first, count, why);
}

static const struct um_lbtr_reception_ops reception_ops = {send_nak, on_lost};

static uint64_t next_due(const struct um_lbtru_receiver *receiver)
{
    if (receiver->state == CONNECTING) {
        return receiver->request_ns;
    }
    uint64_t due_ns = receiver->last_heard_ns + receiver->config.activity_ns;
    due_ns = receiver->ack_ns < due_ns ? receiver->ack_ns : due_ns;
    return receiver->rx.due_ns < due_ns ? receiver->rx.due_ns : due_ns;
}

static void arm(struct um_lbtru_receiver *receiver)
{
    uint64_t due_ns = next_due(receiver);
    if (due_ns < receiver->armed_ns) {
        receiver->armed_ns = due_ns;
        receiver->ops->set_timer(receiver->io, due_ns);
    }
}

static void request(struct um_lbtru_receiver *receiver, uint64_t now_ns)
{
    uint8_t packet[UM_LBTRU_CREQ_MAX];
    receiver->attempts++;
    receiver->request_ns = now_ns + receiver->config.connect_ns;
    receiver->ops->send(receiver->io, packet, um_lbtru_put_creq(packet, receiver->config.session_id));
}

static void acknowledge(struct um_lbtru_receiver *receiver, uint64_t now_ns)
{
    uint8_t packet[UM_LBTRU_ACK_MAX];
    receiver->ack_ns = now_ns + receiver->config.ack_ns;
    receiver->ops->send(receiver->io, packet,
                        um_lbtru_put_ack(packet, receiver->config.session_id, receiver->rx.expected - 1));
}

/* The options allow 0, but nothing must be sent without end. */
static uint64_t at_least_ms(uint64_t interval_ns)
{
    return interval_ns < UM_NS_PER_MS ? UM_NS_PER_MS : interval_ns;
}

struct um_lbtru_receiver *um_lbtru_receiver_create(const struct um_lbtru_receiver_config *config, struct um_rng *rng,
                                                   const struct um_lbtru_receiver_ops *ops, void *io, uint64_t now_ns)
{
    struct um_lbtru_receiver *receiver = um_calloc(1, sizeof *receiver);
    if (receiver == NULL) {
        return NULL;
    }
    receiver->config = *config;
    receiver->config.connect_ns = at_least_ms(config->connect_ns);
    receiver->config.ack_ns = at_least_ms(config->ack_ns);
    receiver->ops = ops;
    receiver->io = io;
    receiver->armed_ns = UM_NEVER;
    um_lbtr_reception_init(&receiver->rx, &config->naks, &reception_ops, receiver, rng, UM_LBTRU_LIST_MAX);
    request(receiver, now_ns);
    arm(receiver);
    return receiver;
}

void um_lbtru_receiver_destroy(struct um_lbtru_receiver *receiver)
{
    um_lbtr_reception_free(&receiver->rx);
    um_free(receiver);
}

/* ---- packets ---- */

static void connected(struct um_lbtru_receiver *receiver, uint64_t now_ns, uint32_t expected)
{
    receiver->state = CONNECTED;
    um_lbtr_reception_start(&receiver->rx, expected);
    receiver->last_heard_ns = now_ns;
    acknowledge(receiver, now_ns);
    receiver->ops->begin(receiver->io, now_ns);
}

static void on_data(struct um_lbtru_receiver *receiver, uint64_t now_ns, const struct um_lbtru_packet *packet,
                    size_t len)
{
    struct um_lbtr_receiver_counters *counters = &receiver->rx.counters;
    if (receiver->state == CONNECTING) {
        if (packet->retransmission || !um_lbtr_trail_is_sane(packet->trail, packet->sqn)) {
            counters->dropped_other++; /* where the stream is, only an original tells */
            return;
        }
        connected(receiver, now_ns, packet->sqn);
    }
    switch (um_lbtr_reception_data(&receiver->rx, now_ns, packet->sqn, packet->trail, packet->retransmission)) {
    case UM_LBTR_ACCEPTED:
        receiver->last_heard_ns = now_ns;
        counters->msgs_rcved++;
        counters->bytes_rcved += len;
        if (packet->payload.len > 0) {
            receiver->ops->deliver(receiver->io, now_ns, &packet->payload, packet->sqn, packet->retransmission);
        }
        break;
    case UM_LBTR_DUPLICATE:
        receiver->last_heard_ns = now_ns;
        counters->duplicate_data++;
        break;
    case UM_LBTR_INSANE:
        counters->dropped_other++;
        break;
    }
}

static void on_sm(struct um_lbtru_receiver *receiver, uint64_t now_ns, const struct um_lbtru_packet *packet)
{
    if (receiver->state == CONNECTING && um_lbtr_trail_is_sane(packet->trail, packet->lead)) {
        connected(receiver, now_ns, packet->lead + 1);
    } else if (receiver->state == CONNECTED &&
               um_lbtr_reception_sm(&receiver->rx, now_ns, packet->lead, packet->trail)) {
        receiver->last_heard_ns = now_ns;
    } else {
        receiver->rx.counters.dropped_other++;
    }
}

/* Is it from this session? A reset needs no session id. */
static bool of_session(struct um_lbtru_receiver *receiver, const struct um_lbtru_packet *packet)
{
    uint32_t sid = receiver->config.session_id;
    if (packet->type == UM_LBTRU_RST && !packet->has_sid) {
        return true;
    }
    if (sid == 0 || (packet->has_sid && packet->sid == sid)) {
        return true;
    }
    receiver->rx.counters.dropped_sid++;
    return false;
}

static void close_session(struct um_lbtru_receiver *receiver, uint64_t now_ns, enum um_lbtr_end why)
{
    receiver->state = CLOSED;
    receiver->ops->end(receiver->io, now_ns, why);
}

void um_lbtru_receiver_on_packet(struct um_lbtru_receiver *receiver, uint64_t now_ns, const uint8_t *data, size_t len,
                                 uint32_t from_ip, uint16_t from_port)
{
    struct um_lbtru_packet packet;
    if (receiver->state == CLOSED) {
        return;
    }
    if (from_ip != receiver->config.source_ip || from_port != receiver->config.source_port) {
        receiver->rx.counters.dropped_other++;
        return;
    }
    enum um_lbtr_rc rc = um_lbtru_decode(data, len, &packet);
    if (rc != UM_LBTR_OK) {
        um_lbtr_counters_drop(&receiver->rx.counters, rc);
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
        if (receiver->state == CONNECTED) {
            um_lbtr_reception_ncf(&receiver->rx, now_ns, packet.trail, packet.reason, &packet.list);
        } else {
            receiver->rx.counters.dropped_other++;
        }
        break;
    case UM_LBTRU_RST:
        close_session(receiver, now_ns, UM_LBTR_END_RESET);
        return;
    case UM_LBTRU_NAK: /* what receivers send means nothing here */
    case UM_LBTRU_ACK:
    case UM_LBTRU_CREQ:
        receiver->rx.counters.dropped_type++;
        break;
    }
    arm(receiver);
}

void um_lbtru_receiver_on_timer(struct um_lbtru_receiver *receiver, uint64_t now_ns)
{
    if (receiver->state == CLOSED) {
        return;
    }
    receiver->armed_ns = UM_NEVER;
    if (receiver->state == CONNECTING) {
        if (now_ns >= receiver->request_ns) {
            if (receiver->attempts >= receiver->config.connect_attempts) {
                close_session(receiver, now_ns, UM_LBTR_END_NO_ANSWER);
                return;
            }
            request(receiver, now_ns);
        }
    } else {
        um_lbtr_reception_on_timer(&receiver->rx, now_ns);
        if (now_ns >= receiver->last_heard_ns + receiver->config.activity_ns) {
            close_session(receiver, now_ns, UM_LBTR_END_SILENCE);
            return;
        }
        if (now_ns >= receiver->ack_ns) {
            acknowledge(receiver, now_ns);
        }
    }
    arm(receiver);
}

bool um_lbtru_receiver_complete_before(const struct um_lbtru_receiver *receiver, uint32_t sqn)
{
    return um_lbtr_reception_complete_before(&receiver->rx, sqn);
}

/* ---- statistics ---- */

struct um_lbtr_receiver_counters *um_lbtru_receiver_counters(struct um_lbtru_receiver *receiver)
{
    return &receiver->rx.counters;
}

void um_lbtru_receiver_stats(const struct um_lbtru_receiver *receiver, lbm_rcv_transport_stats_lbtru_t *out)
{
    const struct um_lbtr_receiver_counters *c = &receiver->rx.counters;
    *out = (lbm_rcv_transport_stats_lbtru_t){
        UM_LBTR_RECEIVER_STATS(c),
        .dgrams_dropped_sid = c->dropped_sid,
    };
}

void um_lbtru_receiver_stats_reset(struct um_lbtru_receiver *receiver)
{
    um_lbtr_counters_reset(&receiver->rx.counters);
}
