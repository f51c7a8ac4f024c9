/* LBT-RM receiver engine. See um_lbtrm_rcv_engine.h. */
#include "transport/lbtr/um_lbtrm_rcv_engine.h"

#include "base/um_mem.h"

struct um_lbtrm_rcv_engine {
    struct um_lbtr_rcv_engine common; /* last_heard_ns before anything was: of the join */
    struct um_lbtrm_rcv_engine_config config;
    bool from_start; /* see um_lbtrm_rcv_engine_from_start() */
    bool heard;      /* DATA or a session message came */
};

static struct um_lbtrm_rcv_engine *rm_of(const struct um_lbtr_rcv_engine *engine)
{
    return UM_CONTAINER_OF((struct um_lbtr_rcv_engine *)engine, struct um_lbtrm_rcv_engine, common);
}

static size_t put_nak(const struct um_lbtr_rcv_engine *engine, uint8_t *packet, const uint32_t *sqns, size_t count)
{
    return um_lbtrm_put_nak(packet, &rm_of(engine)->config.session, sqns, count);
}

static uint64_t silence_ends(const struct um_lbtrm_rcv_engine *receiver)
{
    bool pre = !receiver->heard && receiver->config.preactivity_ns != 0;
    return receiver->common.last_heard_ns + (pre ? receiver->config.preactivity_ns : receiver->config.activity_ns);
}

static void arm(struct um_lbtrm_rcv_engine *receiver)
{
    uint64_t due_ns = silence_ends(receiver), rx_ns = receiver->common.rx.due_ns;
    um_lbtr_rcv_engine_arm(&receiver->common, rx_ns < due_ns ? rx_ns : due_ns);
}

static void on_timer(struct um_lbtr_rcv_engine *engine, uint64_t now_ns)
{
    struct um_lbtrm_rcv_engine *receiver = rm_of(engine);
    um_lbtr_reception_on_timer(&engine->rx, now_ns);
    if (now_ns >= silence_ends(receiver)) {
        um_lbtr_rcv_engine_end(engine, now_ns, UM_LBTR_END_SILENCE);
        return;
    }
    arm(receiver);
}

static const struct um_lbtr_rcv_protocol protocol = {
    .nak_list_max = UM_LBTRM_NAK_MAX, .put_nak = put_nak, .on_timer = on_timer};

struct um_lbtr_rcv_engine *um_lbtrm_rcv_engine_create(const struct um_lbtrm_rcv_engine_config *config,
                                                      struct um_rng *rng, const struct um_lbtr_rcv_outputs *out,
                                                      void *io, uint64_t now_ns)
{
    struct um_lbtrm_rcv_engine *receiver = um_calloc(1, sizeof *receiver);
    if (receiver == NULL) {
        return NULL;
    }
    receiver->config = *config;
    um_lbtr_rcv_engine_init(&receiver->common, &protocol, &config->naks, rng, out, io, now_ns);
    arm(receiver);
    return &receiver->common;
}

/* ---- packets ---- */

static void activate(struct um_lbtr_rcv_engine *engine, uint64_t now_ns)
{
    if (engine->state == UM_LBTR_RCV_JOINING) {
        um_lbtr_rcv_engine_begin(engine, now_ns);
    }
}

static void heard(struct um_lbtrm_rcv_engine *receiver, uint64_t now_ns)
{
    receiver->heard = true;
    receiver->common.last_heard_ns = now_ns;
}

void um_lbtrm_rcv_engine_from_start(struct um_lbtr_rcv_engine *engine)
{
    rm_of(engine)->from_start = true;
}

/* Where a session begins whose next number seems to be `next`. */
static uint32_t beginning(const struct um_lbtrm_rcv_engine *receiver, uint32_t next, uint32_t trail)
{
    return receiver->from_start && trail == 0 && next <= UM_LBTRM_START_MAX ? 0 : next;
}

static void on_data(struct um_lbtrm_rcv_engine *receiver, uint64_t now_ns, const struct um_lbtrm_packet *packet,
                    size_t len)
{
    struct um_lbtr_rcv_engine *engine = &receiver->common;
    activate(engine, now_ns);
    if (!engine->rx.synced) {
        if (packet->retransmission || !um_lbtr_trail_is_sane(packet->trail, packet->sqn)) {
            engine->rx.counters.dropped_other++; /* where the stream is, only an original tells */
            heard(receiver, now_ns);
            return;
        }
        um_lbtr_reception_start(&engine->rx, beginning(receiver, packet->sqn, packet->trail));
    }
    if (um_lbtr_rcv_engine_data(engine, now_ns, packet->sqn, packet->trail, packet->retransmission, &packet->payload,
                                len) != UM_LBTR_INSANE) {
        receiver->heard = true;
    }
}

static void on_sm(struct um_lbtrm_rcv_engine *receiver, uint64_t now_ns, const struct um_lbtrm_packet *packet)
{
    struct um_lbtr_reception *rx = &receiver->common.rx;
    bool begins = false;
    if (!rx->synced && um_lbtr_trail_is_sane(packet->trail, packet->lead)) {
        um_lbtr_reception_start(rx, beginning(receiver, packet->lead + 1, packet->trail));
        begins = rx->expected == packet->lead + 1; /* nothing is missing: the message has told all it can */
    }
    if (!begins && !um_lbtr_reception_sm(rx, now_ns, packet->lead, packet->trail)) {
        rx->counters.dropped_other++;
        return;
    }
    heard(receiver, now_ns);
    activate(&receiver->common, now_ns);
}

void um_lbtrm_rcv_engine_on_packet(struct um_lbtr_rcv_engine *engine, uint64_t now_ns, const uint8_t *data, size_t len,
                                   uint32_t from_ip)
{
    struct um_lbtrm_rcv_engine *receiver = rm_of(engine);
    struct um_lbtrm_packet packet;
    if (engine->state == UM_LBTR_RCV_ENDED) {
        return;
    }
    enum um_lbtr_rc rc = um_lbtrm_decode(data, len, &packet);
    if (rc != UM_LBTR_OK) {
        um_lbtr_counters_drop(&engine->rx.counters, rc);
        return;
    }
    if (from_ip != receiver->config.source_ip || packet.session.session_id != receiver->config.session.session_id ||
        packet.session.ucast_port != receiver->config.session.ucast_port) {
        engine->rx.counters.dropped_other++;
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
        activate(engine, now_ns);
        um_lbtr_reception_ncf(&engine->rx, now_ns, packet.trail, packet.reason, &packet.list);
        break;
    case UM_LBTRM_NAK: /* goes to the source; here it means nothing */
        engine->rx.counters.dropped_type++;
        break;
    }
    arm(receiver);
}

/* ---- statistics ---- */

void um_lbtrm_rcv_engine_stats(const struct um_lbtr_rcv_engine *engine, lbm_rcv_transport_stats_lbtrm_t *out)
{
    const struct um_lbtr_receiver_counters *c = &engine->rx.counters;
    *out = (lbm_rcv_transport_stats_lbtrm_t){
        UM_LBTR_RECEIVER_STATS(c),
        .out_of_order = c->out_of_order,
    };
}
