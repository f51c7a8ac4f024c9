/* The common part of the receiving engines. See um_lbtr_rcv_engine.h. */
#include "transport/lbtr/um_lbtr_rcv_engine.h"

/* ---- outputs of the reception ---- */

static void send_nak(void *user, const uint32_t *sqns, size_t count)
{
    struct um_lbtr_rcv_engine *engine = user;
    uint8_t packet[UM_LBTR_LIST_BYTES_MAX];
    engine->out->send(engine->io, packet, engine->protocol->put_nak(engine, packet, sqns, count));
}

static void on_lost(void *user, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why)
{
    struct um_lbtr_rcv_engine *engine = user;
    engine->out->lost(engine->io, now_ns, first, count, why);
}

static void on_taken_back(void *user, uint64_t now_ns, uint32_t next)
{
    struct um_lbtr_rcv_engine *engine = user;
    if (engine->out->taken_back != NULL) {
        engine->out->taken_back(engine->io, now_ns, next);
    }
}

static const struct um_lbtr_reception_ops reception_ops = {send_nak, on_lost, on_taken_back};

/* ---- life ---- */

void um_lbtr_rcv_engine_init(struct um_lbtr_rcv_engine *engine, const struct um_lbtr_rcv_protocol *protocol,
                             const struct um_lbtr_nak_config *naks, struct um_rng *rng,
                             const struct um_lbtr_rcv_outputs *out, void *io, uint64_t now_ns)
{
    engine->protocol = protocol;
    engine->out = out;
    engine->io = io;
    engine->state = UM_LBTR_RCV_JOINING;
    engine->last_heard_ns = now_ns;
    engine->armed_ns = UM_NEVER;
    um_lbtr_reception_init(&engine->rx, naks, &reception_ops, engine, rng, protocol->nak_list_max);
}

void um_lbtr_rcv_engine_destroy(struct um_lbtr_rcv_engine *engine)
{
    um_lbtr_reception_free(&engine->rx);
    um_free(engine);
}

void um_lbtr_rcv_engine_begin(struct um_lbtr_rcv_engine *engine, uint64_t now_ns)
{
    engine->state = UM_LBTR_RCV_BEGUN;
    engine->out->begin(engine->io, now_ns);
}

void um_lbtr_rcv_engine_end(struct um_lbtr_rcv_engine *engine, uint64_t now_ns, enum um_lbtr_end why)
{
    engine->state = UM_LBTR_RCV_ENDED;
    engine->out->end(engine->io, now_ns, why);
}

/* ---- time ---- */

void um_lbtr_rcv_engine_on_timer(struct um_lbtr_rcv_engine *engine, uint64_t now_ns)
{
    if (engine->state != UM_LBTR_RCV_ENDED) {
        engine->armed_ns = UM_NEVER;
        engine->protocol->on_timer(engine, now_ns);
    }
}

void um_lbtr_rcv_engine_set_nak_cutoff(struct um_lbtr_rcv_engine *engine, uint64_t now_ns, bool cutoff)
{
    um_lbtr_reception_set_cutoff(&engine->rx, now_ns, cutoff);
    um_lbtr_rcv_engine_arm(engine, engine->rx.due_ns);
}
