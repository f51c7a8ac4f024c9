/* LBT-RM source engine. See um_lbtrm_source.h. */
#include "transport/lbtr/um_lbtrm_source.h"

#include <string.h>

#include "base/um_mem.h"
#include "base/um_sqn.h"
#include "transport/lbtr/um_lbtr_sm.h"

#define NUMBERS_INITIAL 1024u

struct um_lbtrm_source {
    struct um_lbtrm_source_config config;
    uint8_t tgsz; /* as on the wire */
    struct um_lbtr_limiter *limiter;
    const struct um_lbtrm_source_ops *ops;
    void *io;
    struct um_lbtr_window window;
    struct um_lbtr_numbers numbers;
    struct um_lbtr_answer answer;
    struct um_lbtr_sm sm;
    struct um_lbtr_turn turn;
    atomic_bool relief_due; /* set by the turn's function */
    bool relief_wanted;
    bool insist;     /* nothing held went out since the last timer */
    uint64_t pinned; /* index: the oldest datagram whose body is still to be sent by the socket */
    uint64_t armed_ns;
    struct um_lbtr_source_counters counters;
};

static void on_turn(struct um_lbtr_turn *turn)
{
    struct um_lbtrm_source *source = UM_CONTAINER_OF(turn, struct um_lbtrm_source, turn);
    atomic_store_explicit(&source->relief_due, true, memory_order_release);
    source->ops->kick(source->io);
}

struct um_lbtrm_source *um_lbtrm_source_create(const struct um_lbtrm_source_config *config,
                                               struct um_lbtr_limiter *limiter, const struct um_lbtrm_source_ops *ops,
                                               void *io)
{
    struct um_lbtrm_source *source = um_calloc(1, sizeof *source);
    if (source == NULL) {
        return NULL;
    }
    source->config = *config;
    if (source->config.datagram_max > UM_LBTR_DATAGRAM_MAX) {
        source->config.datagram_max = UM_LBTR_DATAGRAM_MAX;
    }
    while ((2u << source->tgsz) <= config->tgsz && source->tgsz < 15) {
        source->tgsz++;
    }
    source->limiter = limiter;
    source->ops = ops;
    source->io = io;
    source->armed_ns = UM_NEVER;
    source->pinned = UINT64_MAX;
    um_lbtr_window_init(&source->window, config->window_size, config->window_limit);
    um_lbtr_answer_init(&source->answer, config->ignore_ns, UM_LBTRM_NCF_MAX, UM_LBTRM_NCF_HDR);
    um_lbtr_sm_init(&source->sm, config->sm_min_ns, config->sm_max_ns);
    um_lbtr_turn_init(&source->turn, on_turn);
    if (!um_lbtr_numbers_init(&source->numbers, NUMBERS_INITIAL, config->first_sqn)) {
        um_free(source);
        return NULL;
    }
    return source;
}

void um_lbtrm_source_destroy(struct um_lbtrm_source *source)
{
    um_lbtr_turn_leave(source->limiter, &source->turn);
    um_lbtr_limiter_rx_waits_not(source->limiter, source->numbers.queue_bytes);
    um_lbtr_numbers_free(&source->numbers);
    um_lbtr_window_free(&source->window);
    um_free(source);
}

/* ---- sending ---- */

static void arm(struct um_lbtrm_source *source, uint64_t due_ns)
{
    if (due_ns < source->armed_ns) {
        source->armed_ns = due_ns;
        source->ops->set_timer(source->io, due_ns);
    }
}

static bool is_full(const struct um_lbtrm_source *source)
{
    return source->ops->full != NULL && source->ops->full(source->io);
}

static void send_data(struct um_lbtrm_source *source, uint32_t sqn, struct um_lbtr_slot *slot, bool retransmission)
{
    uint8_t *head = slot->data - UM_LBTRM_DATA_HDR;
    um_lbtrm_put_data(head, &source->config.session, sqn, source->numbers.trail, source->tgsz, retransmission);
    source->ops->send(source->io, head, UM_LBTRM_DATA_HDR, slot->data, slot->len);
}

/* The oldest datagram that has not gone out. False: the limit does not allow it now. */
static bool send_next(struct um_lbtrm_source *source, uint64_t now_ns, bool insist)
{
    struct um_lbtr_numbers *numbers = &source->numbers;
    struct um_lbtr_slot *slot = um_lbtr_numbers_at(numbers, numbers->unsent)->slot;
    uint32_t bytes = UM_LBTRM_DATA_HDR + slot->len;
    if (is_full(source) || !um_lbtr_limiter_take_data(source->limiter, now_ns, bytes, &source->turn, insist)) {
        return false;
    }
    uint32_t sqn = numbers->unsent++;
    source->counters.msgs_sent++;
    source->counters.bytes_sent += bytes;
    um_lbtr_sm_restart(&source->sm, now_ns);
    send_data(source, sqn, slot, false);
    return true;
}

static void trim(struct um_lbtrm_source *source)
{
    uint32_t before = source->numbers.queue_bytes;
    um_lbtr_numbers_trim(&source->numbers, source->window.first);
    um_lbtr_limiter_rx_waits_not(source->limiter, before - source->numbers.queue_bytes);
}

uint8_t *um_lbtrm_source_acquire(struct um_lbtrm_source *source, size_t *capacity)
{
    *capacity = source->config.datagram_max - UM_LBTRM_DATA_HDR;
    struct um_lbtr_slot *slot = um_lbtr_window_acquire(&source->window, *capacity);
    return slot != NULL ? slot->data : NULL;
}

enum um_lbtr_commit um_lbtrm_source_commit(struct um_lbtrm_source *source, uint64_t now_ns, size_t len,
                                           size_t user_bytes)
{
    struct um_lbtr_numbers *numbers = &source->numbers;
    uint64_t keep = source->window.end - (numbers->next - numbers->unsent); /* what has not gone out is kept */
    keep = source->pinned < keep ? source->pinned : keep;
    um_lbtr_numbers_add(numbers, um_lbtr_window_commit(&source->window, len, user_bytes, keep));
    if (source->window.first != um_lbtr_numbers_at(numbers, numbers->trail)->index) {
        trim(source);
    }
    bool alone = numbers->next - numbers->unsent == 1;
    if (alone && send_next(source, now_ns, false)) {
        arm(source, source->sm.due_ns);
        return UM_LBTR_SENT;
    }
    if (source->turn.kind != UM_LBTR_TURN_DATA) {
        um_lbtr_turn_join(source->limiter, &source->turn, UM_LBTR_TURN_DATA);
    }
    arm(source, um_lbtr_limiter_next_interval(source->limiter, now_ns));
    return UM_LBTR_HELD;
}

bool um_lbtrm_source_may_send(struct um_lbtrm_source *source, bool tell)
{
    return um_lbtr_turn_may_send(source->limiter, &source->turn, tell ? &source->relief_wanted : NULL);
}

/* ---- NAKs ---- */

static void send_repair(void *user, uint32_t sqn, struct um_lbtr_sent *sent)
{
    struct um_lbtrm_source *source = user;
    source->counters.rxs_sent++;
    source->counters.rx_bytes_sent += UM_LBTRM_DATA_HDR + sent->len;
    send_data(source, sqn, sent->slot, true);
}

static void send_ncf(void *user, enum um_lbtr_reason reason, const uint32_t *sqns, size_t count)
{
    struct um_lbtrm_source *source = user;
    uint8_t packet[UM_LBTR_LIST_BYTES_MAX];
    size_t len = um_lbtrm_put_ncf(packet, &source->config.session, source->numbers.trail, reason, sqns, count);
    source->ops->send(source->io, packet, len, NULL, 0);
}

static bool repairs_blocked(void *user)
{
    return is_full(user);
}

static const struct um_lbtr_answer_ops answer_ops = {send_repair, send_ncf, repairs_blocked};

void um_lbtrm_source_pin(struct um_lbtrm_source *source, uint64_t index)
{
    source->pinned = index;
}

void um_lbtrm_source_on_packet(struct um_lbtrm_source *source, uint64_t now_ns, const uint8_t *data, size_t len)
{
    struct um_lbtrm_packet packet;
    if (um_lbtrm_decode(data, len, &packet) != UM_LBTR_OK || packet.type != UM_LBTRM_NAK ||
        packet.session.session_id != source->config.session.session_id ||
        packet.session.ucast_port != source->config.session.ucast_port) {
        source->counters.packets_ignored++;
        return;
    }
    um_lbtr_answer_naks(&source->answer, &source->numbers, source->limiter, &source->counters, now_ns, &packet.list,
                        UM_LBTRM_DATA_HDR, &answer_ops, source);
    if (source->numbers.queue_count > 0) {
        arm(source, um_lbtr_limiter_next_interval(source->limiter, now_ns));
    }
}

/* ---- timer ---- */

static void send_sm(struct um_lbtrm_source *source)
{
    uint8_t packet[UM_LBTRM_SM_LEN];
    size_t len = um_lbtrm_put_sm(packet, &source->config.session, source->sm.next_sqn++, source->numbers.unsent - 1,
                                 source->numbers.trail, source->tgsz);
    source->ops->send(source->io, packet, len, NULL, 0);
}

/* True: nothing is held back any more. */
static bool send_held(struct um_lbtrm_source *source, uint64_t now_ns, bool insist)
{
    while (source->numbers.unsent != source->numbers.next) {
        if (!send_next(source, now_ns, insist)) {
            return false;
        }
        insist = false;
        source->insist = false;
    }
    if (source->turn.kind == UM_LBTR_TURN_DATA) {
        um_lbtr_turn_leave(source->limiter, &source->turn);
        atomic_store_explicit(&source->relief_due, true, memory_order_relaxed);
    }
    return true;
}

static void report_relief(struct um_lbtrm_source *source)
{
    if (source->relief_wanted && um_lbtrm_source_may_send(source, true)) {
        source->relief_wanted = false;
        source->ops->relieved(source->io);
    }
}

/* Repairs come first; original data that found no room beside them in the last interval comes before them. */
static bool send_waiting(struct um_lbtrm_source *source, uint64_t now_ns)
{
    bool insist = source->insist;
    source->insist = source->numbers.unsent != source->numbers.next;
    if (insist) {
        send_held(source, now_ns, true);
    }
    while (source->numbers.queue_count > 0 && um_lbtr_answer_drain_one(&source->numbers, source->limiter, now_ns,
                                                                       UM_LBTRM_DATA_HDR, &answer_ops, source)) {
    }
    return send_held(source, now_ns, false) && source->numbers.queue_count == 0;
}

void um_lbtrm_source_on_timer(struct um_lbtrm_source *source, uint64_t now_ns)
{
    source->armed_ns = UM_NEVER;
    if (!send_waiting(source, now_ns)) {
        arm(source, um_lbtr_limiter_next_interval(source->limiter, now_ns));
    }
    if (um_lbtr_sm_take(&source->sm, now_ns)) {
        send_sm(source);
    }
    arm(source, source->sm.due_ns);
    if (atomic_exchange_explicit(&source->relief_due, false, memory_order_acquire)) {
        report_relief(source);
    }
}

/* ---- statistics ---- */

void um_lbtrm_source_stats(const struct um_lbtrm_source *source, lbm_src_transport_stats_lbtrm_t *out)
{
    const struct um_lbtr_source_counters *c = &source->counters;
    *out = (lbm_src_transport_stats_lbtrm_t){
        .msgs_sent = c->msgs_sent,
        .bytes_sent = c->bytes_sent,
        .txw_msgs = um_lbtr_window_count(&source->window),
        .txw_bytes = source->window.user_bytes,
        .nak_pckts_rcved = c->nak_pckts_rcved,
        .naks_rcved = c->naks_rcved,
        .naks_ignored = c->naks_ignored,
        .naks_shed = c->naks_shed,
        .naks_rx_delay_ignored = c->naks_rx_delay_ignored,
        .rxs_sent = c->rxs_sent,
        .rctlr_data_msgs = source->numbers.next - source->numbers.unsent,
        .rctlr_rx_msgs = source->numbers.queue_count,
        .rx_bytes_sent = c->rx_bytes_sent,
    };
}

void um_lbtrm_source_stats_reset(struct um_lbtrm_source *source)
{
    memset(&source->counters, 0, sizeof source->counters);
}

const struct um_lbtr_source_counters *um_lbtrm_source_counters(const struct um_lbtrm_source *source)
{
    return &source->counters;
}
