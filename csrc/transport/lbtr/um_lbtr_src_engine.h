/* What the source engines of LBT-RM and LBT-RU have in common, and the type by which whoever does their I/O knows
 * either: the transmission window, the place in the line for the rate limit, repairs, the timer, counters. Any thread,
 * one at a time (the session lock); times are given by the caller. */
#ifndef UM_TRANSPORT_LBTR_LBTR_SRC_ENGINE_H
#define UM_TRANSPORT_LBTR_LBTR_SRC_ENGINE_H

#include "base/um_mem.h"
#include "base/um_timer.h"
#include "transport/lbtr/um_lbtr_answer.h"
#include "transport/lbtr/um_lbtr_limiter.h"

struct um_lbtr_src_engine;

/* Outputs that both have. */
struct um_lbtr_src_outputs {
    void (*set_timer)(void *io, uint64_t due_ns); /* replaces the earlier one */
    /* May be called by another session's thread, with locks held: have on_timer() called soon. */
    void (*kick)(void *io);
    /* After um_lbtr_src_engine_may_send() said no: ask again. From on_timer(). */
    void (*relieved)(void *io);
    /* May be NULL. Does the socket take no more for now? Then data and repairs wait as they do for the rate limit; call
     * on_timer() when there is room again. */
    bool (*full)(void *io);
};

/* One table for each protocol. */
struct um_lbtr_src_protocol {
    enum um_lbtr_commit (*commit)(struct um_lbtr_src_engine *engine, uint64_t now_ns, size_t len, size_t user_bytes);
    void (*on_timer)(struct um_lbtr_src_engine *engine, uint64_t now_ns);
    size_t (*held)(const struct um_lbtr_src_engine *engine);
    void (*fini)(struct um_lbtr_src_engine *engine); /* what it has beside the common part */
};

/* First member of either engine. */
struct um_lbtr_src_engine {
    const struct um_lbtr_src_protocol *protocol;
    const struct um_lbtr_src_outputs *out;
    void *io;
    struct um_lbtr_limiter *limiter;
    uint32_t header_len;   /* fixed: of a DATA packet */
    uint32_t datagram_max; /* fixed */
    struct um_lbtr_window window;
    struct um_lbtr_answer answer;
    struct um_lbtr_turn turn;
    atomic_bool relief_due; /* set by the turn's function */
    bool relief_wanted;
    bool insist;     /* nothing held went out since the last timer */
    uint64_t pinned; /* index: the oldest datagram whose body is still to be sent by the socket */
    uint64_t armed_ns;
    struct um_lbtr_source_counters counters;
};

void um_lbtr_src_engine_destroy(struct um_lbtr_src_engine *engine);
/* Where the next datagram's payload is to be written, and how much fits. NULL: out of memory. */
uint8_t *um_lbtr_src_engine_acquire(struct um_lbtr_src_engine *engine, size_t *capacity);
/* The payload is complete. Accepted always: callers ask may_send() first, except for what must not be refused. Without
 * clients a datagram of LBT-RU goes nowhere and is not kept. */
static inline enum um_lbtr_commit um_lbtr_src_engine_commit(struct um_lbtr_src_engine *engine, uint64_t now_ns,
                                                            size_t len, size_t user_bytes)
{
    return engine->protocol->commit(engine, now_ns, len, user_bytes);
}
/* False: a session of this context and transport holds datagrams back. With `tell`, relieved() follows. */
bool um_lbtr_src_engine_may_send(struct um_lbtr_src_engine *engine, bool tell);
/* Datagrams from this index (um_lbtr_slot_index()) on stay in the window: their bodies are still to be sent.
 * UINT64_MAX: none. */
static inline void um_lbtr_src_engine_pin(struct um_lbtr_src_engine *engine, uint64_t index)
{
    engine->pinned = index;
}
void um_lbtr_src_engine_on_timer(struct um_lbtr_src_engine *engine, uint64_t now_ns);
/* Datagrams not sent yet, of all clients. */
static inline size_t um_lbtr_src_engine_held(const struct um_lbtr_src_engine *engine)
{
    return engine->protocol->held(engine);
}
static inline const struct um_lbtr_source_counters *um_lbtr_src_engine_counters(const struct um_lbtr_src_engine *engine)
{
    return &engine->counters;
}
void um_lbtr_src_engine_stats_reset(struct um_lbtr_src_engine *engine);

/* What lbm_src_transport_stats_lbtrm_t and ..._lbtru_t have in common, as initializers. */
#define UM_LBTR_SOURCE_STATS(c)                                                                                        \
    .msgs_sent = (c)->msgs_sent, .bytes_sent = (c)->bytes_sent, .nak_pckts_rcved = (c)->nak_pckts_rcved,               \
    .naks_rcved = (c)->naks_rcved, .naks_ignored = (c)->naks_ignored, .naks_shed = (c)->naks_shed,                     \
    .naks_rx_delay_ignored = (c)->naks_rx_delay_ignored, .rxs_sent = (c)->rxs_sent,                                    \
    .rx_bytes_sent = (c)->rx_bytes_sent

/* ---- for the engines ---- */

void um_lbtr_src_engine_init(struct um_lbtr_src_engine *engine, const struct um_lbtr_src_protocol *protocol,
                             const struct um_lbtr_src_outputs *out, void *io, struct um_lbtr_limiter *limiter,
                             uint32_t header_len, size_t datagram_max);
/* Its window: of `buffers` datagrams whose memory is there from the beginning, or, with 0, one that grows up to the two
 * sizes. False: out of memory. */
bool um_lbtr_src_engine_window(struct um_lbtr_src_engine *engine, uint32_t buffers, size_t size, size_t limit);
/* With room for so many numbers a number space begins. */
static inline uint32_t um_lbtr_src_engine_numbers(uint32_t buffers)
{
    uint32_t capacity = 1024;
    while (capacity <= buffers) { /* one more than the window, which makes room after the number is given */
        capacity *= 2;
    }
    return capacity;
}
/* It could not send all: the datagrams wait for the limit. */
enum um_lbtr_commit um_lbtr_src_engine_hold(struct um_lbtr_src_engine *engine, uint64_t now_ns);
/* Nothing is held back any more. */
void um_lbtr_src_engine_caught_up(struct um_lbtr_src_engine *engine);

/* Something is due then, and perhaps earlier than the timer. */
static inline void um_lbtr_src_engine_arm(struct um_lbtr_src_engine *engine, uint64_t due_ns)
{
    if (due_ns < engine->armed_ns) {
        engine->armed_ns = due_ns;
        engine->out->set_timer(engine->io, due_ns);
    }
}

static inline bool um_lbtr_src_engine_is_full(const struct um_lbtr_src_engine *engine)
{
    return engine->out->full != NULL && engine->out->full(engine->io);
}

/* May a datagram of so many bytes go out now? */
static inline bool um_lbtr_src_engine_take(struct um_lbtr_src_engine *engine, uint64_t now_ns, uint32_t bytes,
                                           bool insist)
{
    return !um_lbtr_src_engine_is_full(engine) &&
           um_lbtr_limiter_take_data(engine->limiter, now_ns, bytes, &engine->turn, insist);
}

#endif
