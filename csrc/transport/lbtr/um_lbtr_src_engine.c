/* The common part of the source engines. See um_lbtr_src_engine.h. */
#include "transport/lbtr/um_lbtr_src_engine.h"

#include <string.h>

/* ---- life ---- */

static void on_turn(struct um_lbtr_turn *turn)
{
    struct um_lbtr_src_engine *engine = UM_CONTAINER_OF(turn, struct um_lbtr_src_engine, turn);
    atomic_store_explicit(&engine->relief_due, true, memory_order_release);
    engine->out->kick(engine->io);
}

void um_lbtr_src_engine_init(struct um_lbtr_src_engine *engine, const struct um_lbtr_src_protocol *protocol,
                             const struct um_lbtr_src_outputs *out, void *io, struct um_lbtr_limiter *limiter,
                             uint32_t header_len, size_t datagram_max)
{
    engine->protocol = protocol;
    engine->out = out;
    engine->io = io;
    engine->limiter = limiter;
    engine->header_len = header_len;
    engine->datagram_max = datagram_max < UM_LBTR_DATAGRAM_MAX ? (uint32_t)datagram_max : UM_LBTR_DATAGRAM_MAX;
    engine->armed_ns = UM_NEVER;
    engine->pinned = UINT64_MAX;
    um_lbtr_turn_init(&engine->turn, on_turn);
}

bool um_lbtr_src_engine_window(struct um_lbtr_src_engine *engine, uint32_t buffers, size_t size, size_t limit)
{
    if (buffers > 0) {
        return um_lbtr_window_init_reserved(&engine->window, buffers, engine->datagram_max - engine->header_len);
    }
    um_lbtr_window_init(&engine->window, size, limit);
    return true;
}

void um_lbtr_src_engine_destroy(struct um_lbtr_src_engine *engine)
{
    um_lbtr_turn_leave(engine->limiter, &engine->turn);
    engine->protocol->fini(engine);
    um_lbtr_window_free(&engine->window);
    um_free(engine); /* the first member of what was allocated */
}

/* ---- sending ---- */

uint8_t *um_lbtr_src_engine_acquire(struct um_lbtr_src_engine *engine, size_t *capacity)
{
    *capacity = engine->datagram_max - engine->header_len;
    struct um_lbtr_slot *slot = um_lbtr_window_acquire(&engine->window, *capacity);
    return slot != NULL ? slot->data : NULL;
}

bool um_lbtr_src_engine_may_send(struct um_lbtr_src_engine *engine, bool tell)
{
    return um_lbtr_turn_may_send(engine->limiter, &engine->turn, tell ? &engine->relief_wanted : NULL);
}

enum um_lbtr_commit um_lbtr_src_engine_hold(struct um_lbtr_src_engine *engine, uint64_t now_ns)
{
    if (engine->turn.kind != UM_LBTR_TURN_DATA) {
        um_lbtr_turn_join(engine->limiter, &engine->turn, UM_LBTR_TURN_DATA);
    }
    um_lbtr_src_engine_arm(engine, um_lbtr_limiter_next_interval(engine->limiter, now_ns));
    return UM_LBTR_HELD;
}

void um_lbtr_src_engine_caught_up(struct um_lbtr_src_engine *engine)
{
    if (engine->turn.kind == UM_LBTR_TURN_DATA) {
        um_lbtr_turn_leave(engine->limiter, &engine->turn);
        atomic_store_explicit(&engine->relief_due, true, memory_order_relaxed);
    }
}

/* ---- timer ---- */

void um_lbtr_src_engine_on_timer(struct um_lbtr_src_engine *engine, uint64_t now_ns)
{
    engine->armed_ns = UM_NEVER;
    engine->protocol->on_timer(engine, now_ns);
    if (atomic_exchange_explicit(&engine->relief_due, false, memory_order_acquire) && engine->relief_wanted &&
        um_lbtr_src_engine_may_send(engine, true)) {
        engine->relief_wanted = false;
        engine->out->relieved(engine->io);
    }
}

void um_lbtr_src_engine_stats_reset(struct um_lbtr_src_engine *engine)
{
    memset(&engine->counters, 0, sizeof engine->counters);
}
