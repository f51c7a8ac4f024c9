/* LBT-RM source engine. See um_lbtrm_src_engine.h. */
#include "transport/lbtr/um_lbtrm_src_engine.h"

#include "base/um_mem.h"
#include "base/um_sqn.h"
#include "transport/lbtr/um_lbtr_sm.h"

struct um_lbtrm_src_engine {
    struct um_lbtr_src_engine common;
    struct um_lbtrm_src_engine_config config;
    uint8_t tgsz; /* as on the wire */
    const struct um_lbtrm_src_engine_ops *ops;
    struct um_lbtr_numbers numbers;
    struct um_lbtr_sm sm;
};

static struct um_lbtrm_src_engine *rm_of(const struct um_lbtr_src_engine *engine)
{
    return UM_CONTAINER_OF((struct um_lbtr_src_engine *)engine, struct um_lbtrm_src_engine, common);
}

static void fini(struct um_lbtr_src_engine *engine)
{
    struct um_lbtrm_src_engine *source = rm_of(engine);
    um_lbtr_limiter_rx_waits_not(engine->limiter, source->numbers.queue_bytes);
    um_lbtr_numbers_free(&source->numbers);
}

/* ---- sending ---- */

static void send_data(struct um_lbtrm_src_engine *source, uint32_t sqn, struct um_lbtr_slot *slot, bool retransmission)
{
    uint8_t *head = slot->data - UM_LBTRM_DATA_HDR;
    um_lbtrm_put_data(head, &source->config.session, sqn, source->numbers.trail, source->tgsz, retransmission);
    source->ops->send(source->common.io, head, UM_LBTRM_DATA_HDR, slot->data, slot->len);
}

/* The oldest datagram that has not gone out. False: the limit does not allow it now. */
static bool send_next(struct um_lbtrm_src_engine *source, uint64_t now_ns, bool insist)
{
    struct um_lbtr_numbers *numbers = &source->numbers;
    struct um_lbtr_slot *slot = um_lbtr_numbers_at(numbers, numbers->unsent)->slot;
    uint32_t bytes = UM_LBTRM_DATA_HDR + slot->len;
    if (!um_lbtr_src_engine_take(&source->common, now_ns, bytes, insist)) {
        return false;
    }
    uint32_t sqn = numbers->unsent++;
    source->common.counters.msgs_sent++;
    source->common.counters.bytes_sent += bytes;
    um_lbtr_sm_restart(&source->sm, now_ns);
    send_data(source, sqn, slot, false);
    return true;
}

static void trim(struct um_lbtrm_src_engine *source)
{
    uint32_t before = source->numbers.queue_bytes;
    um_lbtr_numbers_trim(&source->numbers, source->common.window.first);
    um_lbtr_limiter_rx_waits_not(source->common.limiter, before - source->numbers.queue_bytes);
}

static enum um_lbtr_commit commit(struct um_lbtr_src_engine *engine, uint64_t now_ns, size_t len, size_t user_bytes)
{
    struct um_lbtrm_src_engine *source = rm_of(engine);
    struct um_lbtr_numbers *numbers = &source->numbers;
    uint64_t keep = engine->window.end - (numbers->next - numbers->unsent); /* what has not gone out is kept */
    keep = engine->pinned < keep ? engine->pinned : keep;
    um_lbtr_numbers_add(numbers, um_lbtr_window_commit(&engine->window, len, user_bytes, keep));
    if (engine->window.first != um_lbtr_numbers_at(numbers, numbers->trail)->index) {
        trim(source);
    }
    bool alone = numbers->next - numbers->unsent == 1;
    if (alone && send_next(source, now_ns, false)) {
        um_lbtr_src_engine_arm(engine, source->sm.due_ns);
        return UM_LBTR_SENT;
    }
    return um_lbtr_src_engine_hold(engine, now_ns);
}

/* ---- NAKs ---- */

static void send_repair(void *user, uint32_t sqn, struct um_lbtr_sent *sent)
{
    struct um_lbtrm_src_engine *source = user;
    source->common.counters.rxs_sent++;
    source->common.counters.rx_bytes_sent += UM_LBTRM_DATA_HDR + sent->len;
    send_data(source, sqn, sent->slot, true);
}

static void send_ncf(void *user, enum um_lbtr_reason reason, const uint32_t *sqns, size_t count)
{
    struct um_lbtrm_src_engine *source = user;
    uint8_t packet[UM_LBTR_LIST_BYTES_MAX];
    size_t len = um_lbtrm_put_ncf(packet, &source->config.session, source->numbers.trail, reason, sqns, count);
    source->ops->send(source->common.io, packet, len, NULL, 0);
}

static bool repairs_blocked(void *user)
{
    return um_lbtr_src_engine_is_full(user); /* the first member of the engine */
}

static const struct um_lbtr_answer_ops answer_ops = {send_repair, send_ncf, repairs_blocked};

void um_lbtrm_src_engine_on_packet(struct um_lbtr_src_engine *engine, uint64_t now_ns, const uint8_t *data, size_t len)
{
    struct um_lbtrm_src_engine *source = rm_of(engine);
    struct um_lbtrm_packet packet;
    if (um_lbtrm_decode(data, len, &packet) != UM_LBTR_OK || packet.type != UM_LBTRM_NAK ||
        packet.session.session_id != source->config.session.session_id ||
        packet.session.ucast_port != source->config.session.ucast_port) {
        source->common.counters.packets_ignored++;
        return;
    }
    um_lbtr_answer_naks(&source->common.answer, &source->numbers, source->common.limiter, &source->common.counters,
                        now_ns, &packet.list, UM_LBTRM_DATA_HDR, &answer_ops, source);
    if (source->numbers.queue_count > 0) {
        um_lbtr_src_engine_arm(engine, um_lbtr_limiter_next_interval(source->common.limiter, now_ns));
    }
}

/* ---- timer ---- */

static void send_sm(struct um_lbtrm_src_engine *source)
{
    uint8_t packet[UM_LBTRM_SM_LEN];
    size_t len = um_lbtrm_put_sm(packet, &source->config.session, source->sm.next_sqn++, source->numbers.unsent - 1,
                                 source->numbers.trail, source->tgsz);
    source->ops->send(source->common.io, packet, len, NULL, 0);
}

/* True: nothing is held back any more. */
static bool send_held(struct um_lbtrm_src_engine *source, uint64_t now_ns, bool insist)
{
    while (source->numbers.unsent != source->numbers.next) {
        if (!send_next(source, now_ns, insist)) {
            return false;
        }
        insist = false;
        source->common.insist = false;
    }
    um_lbtr_src_engine_caught_up(&source->common);
    return true;
}

/* Repairs come first; original data that found no room beside them in the last interval comes before them. */
static bool send_waiting(struct um_lbtrm_src_engine *source, uint64_t now_ns)
{
    bool insist = source->common.insist;
    source->common.insist = source->numbers.unsent != source->numbers.next;
    if (insist) {
        send_held(source, now_ns, true);
    }
    while (source->numbers.queue_count > 0 && um_lbtr_answer_drain_one(&source->numbers, source->common.limiter, now_ns,
                                                                       UM_LBTRM_DATA_HDR, &answer_ops, source)) {
    }
    return send_held(source, now_ns, false) && source->numbers.queue_count == 0;
}

static void on_timer(struct um_lbtr_src_engine *engine, uint64_t now_ns)
{
    struct um_lbtrm_src_engine *source = rm_of(engine);
    if (!send_waiting(source, now_ns)) {
        um_lbtr_src_engine_arm(engine, um_lbtr_limiter_next_interval(engine->limiter, now_ns));
    }
    if (um_lbtr_sm_take(&source->sm, now_ns)) {
        send_sm(source);
    }
    um_lbtr_src_engine_arm(engine, source->sm.due_ns);
}

/* ---- statistics ---- */

static size_t held(const struct um_lbtr_src_engine *engine)
{
    const struct um_lbtr_numbers *numbers = &rm_of(engine)->numbers;
    return numbers->next - numbers->unsent;
}

void um_lbtrm_src_engine_stats(const struct um_lbtr_src_engine *engine, lbm_src_transport_stats_lbtrm_t *out)
{
    *out = (lbm_src_transport_stats_lbtrm_t){
        UM_LBTR_SOURCE_STATS(&engine->counters),
        .txw_msgs = um_lbtr_window_count(&engine->window),
        .txw_bytes = engine->window.user_bytes,
        .rctlr_data_msgs = held(engine),
        .rctlr_rx_msgs = rm_of(engine)->numbers.queue_count,
    };
}

/* ---- life ---- */

static const struct um_lbtr_src_protocol protocol = {
    .commit = commit, .on_timer = on_timer, .held = held, .fini = fini};

struct um_lbtr_src_engine *um_lbtrm_src_engine_create(const struct um_lbtrm_src_engine_config *config,
                                                      struct um_lbtr_limiter *limiter,
                                                      const struct um_lbtrm_src_engine_ops *ops, void *io)
{
    struct um_lbtrm_src_engine *source = um_calloc(1, sizeof *source);
    if (source == NULL) {
        return NULL;
    }
    source->config = *config;
    while ((2u << source->tgsz) <= config->tgsz && source->tgsz < 15) {
        source->tgsz++;
    }
    source->ops = ops;
    um_lbtr_src_engine_init(&source->common, &protocol, &ops->common, io, limiter, UM_LBTRM_DATA_HDR,
                            config->datagram_max);
    um_lbtr_answer_init(&source->common.answer, config->ignore_ns, UM_LBTRM_NCF_MAX, UM_LBTRM_NCF_HDR);
    um_lbtr_sm_init(&source->sm, config->sm_min_ns, config->sm_max_ns);
    if (!um_lbtr_numbers_init(&source->numbers, um_lbtr_src_engine_numbers(config->buffers), config->first_sqn)) {
        um_free(source);
        return NULL;
    }
    if (config->buffers != 0) {
        um_lbtr_numbers_touch(&source->numbers);
    }
    if (!um_lbtr_src_engine_window(&source->common, config->buffers, config->window_size, config->window_limit)) {
        um_lbtr_numbers_free(&source->numbers);
        um_free(source);
        return NULL;
    }
    return &source->common;
}
