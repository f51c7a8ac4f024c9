/* LBT-RM receiver engine. See um_lbtrm_receiver.h. */
#include "transport/lbtr/um_lbtrm_receiver.h"

#include "base/um_mem.h"

enum state {
    WAITING, /* nothing heard of the session */
    ACTIVE,
    ENDED
};

struct um_lbtrm_receiver {
    struct um_lbtrm_receiver_config config;
    const struct um_lbtrm_receiver_ops *ops;
    void *io;
    enum state state;
    struct um_lbtr_reception rx;
    bool heard;             /* DATA or a session message came */
    uint64_t last_heard_ns; /* of DATA or a session message; before any: of the join */
    uint64_t armed_ns;
};

static void send_nak(void *user, const uint32_t *sqns, size_t count)
{
    struct um_lbtrm_receiver *receiver = user;
    uint8_t packet[UM_LBTR_LIST_BYTES_MAX];
    receiver->ops->nak(receiver->io, packet, um_lbtrm_put_nak(packet, &receiver->config.session, sqns, count));
}

static void on_lost(void *user, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why)
{
    struct um_lbtrm_receiver *receiver = user;
    receiver->ops->lost(receiver->io, now_ns, first, count, why);
}

static const struct um_lbtr_reception_ops reception_ops = {send_nak, on_lost};

static uint64_t silence_ends(const struct um_lbtrm_receiver *receiver)
{
    bool pre = !receiver->heard && receiver->config.preactivity_ns != 0;
    return receiver->last_heard_ns + (pre ? receiver->config.preactivity_ns : receiver->config.activity_ns);
}

static void arm(struct um_lbtrm_receiver *receiver)
{
    uint64_t due_ns = silence_ends(receiver);
    due_ns = receiver->rx.due_ns < due_ns ? receiver->rx.due_ns : due_ns;
    if (due_ns < receiver->armed_ns) {
        receiver->armed_ns = due_ns;
        receiver->ops->set_timer(receiver->io, due_ns);
    }
}

struct um_lbtrm_receiver *um_lbtrm_receiver_create(const struct um_lbtrm_receiver_config *config, struct um_rng *rng,
                                                   const struct um_lbtrm_receiver_ops *ops, void *io, uint64_t now_ns)
{
    struct um_lbtrm_receiver *receiver = um_calloc(1, sizeof *receiver);
    if (receiver == NULL) {
        return NULL;
    }
    receiver->config = *config;
    receiver->ops = ops;
    receiver->io = io;
    receiver->last_heard_ns = now_ns;
    receiver->armed_ns = UM_NEVER;
    um_lbtr_reception_init(&receiver->rx, &config->naks, &reception_ops, receiver, rng, UM_LBTRM_NAK_MAX);
    arm(receiver);
    return receiver;
}

void um_lbtrm_receiver_destroy(struct um_lbtrm_receiver *receiver)
{
    um_lbtr_reception_free(&receiver->rx);
    um_free(receiver);
}

/* ---- packets ---- */

static void activate(struct um_lbtrm_receiver *receiver, uint64_t now_ns)
{
    if (receiver->state == WAITING) {
        receiver->state = ACTIVE;
        receiver->ops->begin(receiver->io, now_ns);
    }
}

static void heard(struct um_lbtrm_receiver *receiver, uint64_t now_ns)
{
    receiver->heard = true;
    receiver->last_heard_ns = now_ns;
}

static void on_data(struct um_lbtrm_receiver *receiver, uint64_t now_ns, const struct um_lbtrm_packet *packet,
                    size_t len)
{
    struct um_lbtr_receiver_counters *counters = &receiver->rx.counters;
    activate(receiver, now_ns);
    if (!receiver->rx.synced) {
        if (packet->retransmission || !um_lbtr_trail_is_sane(packet->trail, packet->sqn)) {
            counters->dropped_other++; /* where the stream is, only an original tells */
            heard(receiver, now_ns);
            return;
        }
        um_lbtr_reception_start(&receiver->rx, packet->sqn);
    }
    switch (um_lbtr_reception_data(&receiver->rx, now_ns, packet->sqn, packet->trail, packet->retransmission)) {
    case UM_LBTR_ACCEPTED:
        heard(receiver, now_ns);
        counters->msgs_rcved++;
        counters->bytes_rcved += len;
        if (packet->payload.len > 0) {
            receiver->ops->deliver(receiver->io, now_ns, &packet->payload, packet->sqn, packet->retransmission);
        }
        break;
    case UM_LBTR_DUPLICATE:
        heard(receiver, now_ns);
        counters->duplicate_data++;
        break;
    case UM_LBTR_INSANE:
        counters->dropped_other++;
        break;
    }
}

static void on_sm(struct um_lbtrm_receiver *receiver, uint64_t now_ns, const struct um_lbtrm_packet *packet)
{
    if (!receiver->rx.synced && um_lbtr_trail_is_sane(packet->trail, packet->lead)) {
        um_lbtr_reception_start(&receiver->rx, packet->lead + 1);
    } else if (!um_lbtr_reception_sm(&receiver->rx, now_ns, packet->lead, packet->trail)) {
        receiver->rx.counters.dropped_other++;
        return;
    }
    heard(receiver, now_ns);
    activate(receiver, now_ns);
}

void um_lbtrm_receiver_on_packet(struct um_lbtrm_receiver *receiver, uint64_t now_ns, const uint8_t *data, size_t len,
                                 uint32_t from_ip)
{
    struct um_lbtrm_packet packet;
    if (receiver->state == ENDED) {
        return;
    }
    enum um_lbtr_rc rc = um_lbtrm_decode(data, len, &packet);
    if (rc != UM_LBTR_OK) {
        um_lbtr_counters_drop(&receiver->rx.counters, rc);
        return;
    }
    if (from_ip != receiver->config.source_ip || packet.session.session_id != receiver->config.session.session_id ||
        packet.session.ucast_port != receiver->config.session.ucast_port) {
        receiver->rx.counters.dropped_other++;
        return;
    }
    switch (packet.type) {
    case UM_LBTRM_DATA:
        on_data(receiver, now_ns, &packet, len);
        break;
    case UM_LBTRM_SM:
        on_sm(receiver, now_ns, &packet);
        break;
    case UM_LBTRM_NCF:
        activate(receiver, now_ns);
        um_lbtr_reception_ncf(&receiver->rx, now_ns, packet.trail, packet.reason, &packet.list);
        break;
    case UM_LBTRM_NAK: /* goes to the source; here it means nothing */
        receiver->rx.counters.dropped_type++;
        break;
    }
    arm(receiver);
}

void um_lbtrm_receiver_on_timer(struct um_lbtrm_receiver *receiver, uint64_t now_ns)
{
    if (receiver->state == ENDED) {
        return;
    }
    receiver->armed_ns = UM_NEVER;
    um_lbtr_reception_on_timer(&receiver->rx, now_ns);
    if (now_ns >= silence_ends(receiver)) {
        receiver->state = ENDED;
        receiver->ops->end(receiver->io, now_ns, UM_LBTR_END_SILENCE);
        return;
    }
    arm(receiver);
}

void um_lbtrm_receiver_set_nak_cutoff(struct um_lbtrm_receiver *receiver, uint64_t now_ns, bool cutoff)
{
    um_lbtr_reception_set_cutoff(&receiver->rx, now_ns, cutoff);
    arm(receiver);
}

bool um_lbtrm_receiver_complete_before(const struct um_lbtrm_receiver *receiver, uint32_t sqn)
{
    return um_lbtr_reception_complete_before(&receiver->rx, sqn);
}

/* ---- statistics ---- */

struct um_lbtr_receiver_counters *um_lbtrm_receiver_counters(struct um_lbtrm_receiver *receiver)
{
    return &receiver->rx.counters;
}

void um_lbtrm_receiver_stats(const struct um_lbtrm_receiver *receiver, lbm_rcv_transport_stats_lbtrm_t *out)
{
    const struct um_lbtr_receiver_counters *c = &receiver->rx.counters;
    *out = (lbm_rcv_transport_stats_lbtrm_t){
        UM_LBTR_RECEIVER_STATS(c),
        .out_of_order = c->out_of_order,
    };
}

void um_lbtrm_receiver_stats_reset(struct um_lbtrm_receiver *receiver)
{
    um_lbtr_counters_reset(&receiver->rx.counters);
}
