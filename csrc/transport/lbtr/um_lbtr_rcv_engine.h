/* What the receiving engines of LBT-RM and LBT-RU have in common, and the type by which whoever does their I/O knows
 * either: outputs, reception, the timer, the end. Packets come by the function of the protocol, so that nothing stands
 * between a datagram in order and its engine. One thread; times are given by the caller. */
#ifndef UM_TRANSPORT_LBTR_LBTR_RCV_ENGINE_H
#define UM_TRANSPORT_LBTR_LBTR_RCV_ENGINE_H

#include "base/um_mem.h"
#include "transport/lbtr/um_lbtr_reception.h"

struct um_lbtr_rcv_engine;

/* Outputs. None may destroy the engine, except end(), which is the last call. */
struct um_lbtr_rcv_outputs {
    void (*send)(void *io, const uint8_t *data, size_t len); /* to the source */
    void (*deliver)(void *io, uint64_t now_ns, const struct um_slice *payload, uint32_t sqn, bool retransmission);
    void (*lost)(void *io, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why);
    void (*begin)(void *io, uint64_t now_ns); /* BOS, once, before the first delivery */
    void (*end)(void *io, uint64_t now_ns, enum um_lbtr_end why);
    void (*set_timer)(void *io, uint64_t due_ns);                 /* replaces the earlier one */
    void (*taken_back)(void *io, uint64_t now_ns, uint32_t next); /* as that of um_lbtr_reception_ops; may be NULL */
};

/* One table for each protocol. */
struct um_lbtr_rcv_protocol {
    uint32_t nak_list_max; /* numbers in a NAK */
    size_t (*put_nak)(const struct um_lbtr_rcv_engine *engine, uint8_t *packet, const uint32_t *sqns, size_t count);
    void (*on_timer)(struct um_lbtr_rcv_engine *engine, uint64_t now_ns); /* sets the timer anew, unless it has ended */
};

enum um_lbtr_rcv_state {
    UM_LBTR_RCV_JOINING, /* nothing heard of the session, or no answer yet */
    UM_LBTR_RCV_BEGUN,
    UM_LBTR_RCV_ENDED
};

/* First member of either engine. */
struct um_lbtr_rcv_engine {
    const struct um_lbtr_rcv_protocol *protocol;
    const struct um_lbtr_rcv_outputs *out;
    void *io;
    enum um_lbtr_rcv_state state;
    struct um_lbtr_reception rx;
    uint64_t last_heard_ns; /* data or a session message */
    uint64_t armed_ns;      /* when the timer is due */
};

void um_lbtr_rcv_engine_destroy(struct um_lbtr_rcv_engine *engine);
void um_lbtr_rcv_engine_on_timer(struct um_lbtr_rcv_engine *engine, uint64_t now_ns);
/* lbm_context_set_nak_cutoff() */
void um_lbtr_rcv_engine_set_nak_cutoff(struct um_lbtr_rcv_engine *engine, uint64_t now_ns, bool cutoff);

/* Is nothing missing any more, or nothing to come, of the datagrams before `sqn`? */
static inline bool um_lbtr_rcv_engine_complete_before(const struct um_lbtr_rcv_engine *engine, uint32_t sqn)
{
    return um_lbtr_reception_complete_before(&engine->rx, sqn);
}

/* The layer above adds to the three lbm_ counters. */
static inline struct um_lbtr_receiver_counters *um_lbtr_rcv_engine_counters(struct um_lbtr_rcv_engine *engine)
{
    return &engine->rx.counters;
}

/* ---- for the engines ---- */

void um_lbtr_rcv_engine_init(struct um_lbtr_rcv_engine *engine, const struct um_lbtr_rcv_protocol *protocol,
                             const struct um_lbtr_nak_config *naks, struct um_rng *rng,
                             const struct um_lbtr_rcv_outputs *out, void *io, uint64_t now_ns);
void um_lbtr_rcv_engine_begin(struct um_lbtr_rcv_engine *engine, uint64_t now_ns);
void um_lbtr_rcv_engine_end(struct um_lbtr_rcv_engine *engine, uint64_t now_ns, enum um_lbtr_end why);

/* Something is due then, and perhaps earlier than the timer. */
static inline void um_lbtr_rcv_engine_arm(struct um_lbtr_rcv_engine *engine, uint64_t due_ns)
{
    if (due_ns < engine->armed_ns) {
        engine->armed_ns = due_ns;
        engine->out->set_timer(engine->io, due_ns);
    }
}

/* A datagram of the stream, whose beginning is known; `len` with its header. Hot path. */
static inline enum um_lbtr_arrival um_lbtr_rcv_engine_data(struct um_lbtr_rcv_engine *engine, uint64_t now_ns,
                                                           uint32_t sqn, uint32_t trail, bool retransmission,
                                                           const struct um_slice *payload, size_t len)
{
    struct um_lbtr_receiver_counters *counters = &engine->rx.counters;
    enum um_lbtr_arrival arrival = um_lbtr_reception_data(&engine->rx, now_ns, sqn, trail, retransmission);
    switch (arrival) {
    case UM_LBTR_ACCEPTED:
        engine->last_heard_ns = now_ns;
        counters->msgs_rcved++;
        counters->bytes_rcved += len;
        if (payload->len > 0) {
            engine->out->deliver(engine->io, now_ns, payload, sqn, retransmission);
        }
        break;
    case UM_LBTR_DUPLICATE:
        engine->last_heard_ns = now_ns;
        counters->duplicate_data++;
        break;
    case UM_LBTR_INSANE:
        counters->dropped_other++;
        break;
    }
    return arrival;
}

#endif
