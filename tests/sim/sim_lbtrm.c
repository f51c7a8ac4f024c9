/* The world of LBT-RM engines. See sim_lbtrm.h. */
#include "sim_lbtrm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_INTERVAL_NS (10 * SIM_MS)

struct rm_options rm_plain(void)
{
    return (struct rm_options){.receivers = 1,
                               .count = 300,
                               .every_ns = SIM_MS,
                               .len = 100,
                               .data_bps = 10000000,
                               .rx_bps = 5000000,
                               .window = 25165824,
                               .net = {.delay_min_ns = SIM_MS},
                               .naks = {50 * SIM_MS, 200 * SIM_MS, SIM_SEC, 10 * SIM_SEC, true, 0},
                               .activity_ns = 60 * SIM_SEC};
}

void rm_broken(struct rm_world *w, const char *what)
{
    if (what != NULL && w->broken == NULL) {
        w->broken = what;
    }
}

/* ---- the source ---- */

static void rearm(struct rm_world *w)
{
    sim_set_timer(w->sim, w->source_node, w->engine_due < w->app_due ? w->engine_due : w->app_due);
}

static void source_set_timer(void *io, uint64_t due_ns)
{
    struct rm_world *w = io;
    w->engine_due = due_ns;
    rearm(w);
}

static void source_kick(void *io)
{
    struct rm_world *w = io;
    source_set_timer(w, sim_node_now(w->sim, w->source_node));
}

static void account(struct rm_world *w, uint64_t now_ns, size_t len, bool retransmission)
{
    w->repairs += retransmission;
    w->repair_bytes += retransmission ? len : 0;
    rm_broken(w, sim_lbtr_rated(&w->rates, &w->limiter, now_ns, len, retransmission));
}

/* The source's own packets, as they leave it. */
static void check_sent(struct rm_world *w, const uint8_t *packet, size_t len)
{
    uint64_t now_ns = sim_node_now(w->sim, w->source_node);
    struct um_lbtrm_packet p;
    if (um_lbtrm_decode(packet, len, &p) != UM_LBTR_OK || p.session.session_id != w->session.session_id ||
        p.session.ucast_port != w->session.ucast_port) {
        rm_broken(w, "a packet that cannot be understood");
        return;
    }
    switch (p.type) {
    case UM_LBTRM_DATA:
        account(w, now_ns, len, p.retransmission);
        rm_broken(w, sim_lbtr_data(&w->stream, &w->timing, now_ns, p.sqn, p.trail, p.retransmission, p.payload.ptr,
                                   p.payload.len));
        break;
    case UM_LBTRM_SM:
        rm_broken(w, w->stream.last_data_ns == 0
                         ? "a session message before the first datagram"
                         : sim_lbtr_sm(&w->stream, &w->timing, now_ns, p.sqn, p.lead, p.trail, false));
        break;
    case UM_LBTRM_NCF:
        w->ncf_packets++;
        w->ncf_bytes += len;
        rm_broken(w, sim_lbtr_ncf(&w->stream, &w->timing, now_ns, p.trail, p.reason, &p.list));
        break;
    case UM_LBTRM_NAK:
        rm_broken(w, "a source that sends NAKs");
        break;
    }
}

static void source_send(void *io, const uint8_t *head, size_t head_len, const uint8_t *body, size_t body_len)
{
    struct rm_world *w = io;
    static uint8_t packet[70000];
    memcpy(packet, head, head_len);
    if (body_len > 0) {
        memcpy(packet + head_len, body, body_len);
    }
    check_sent(w, packet, head_len + body_len);
    bool spared = w->lose_originals_only && (packet[16] & UM_LBTRM_FLAG_RETRANSMISSION) != 0;
    if (sim_now(w->sim) >= w->lose_until_ns || spared) {
        sim_multicast(w->sim, RM_GROUP, w->source_node, packet, head_len + body_len);
    }
}

static void send_backlog(struct rm_world *w)
{
    while (w->backlog > 0 && um_lbtr_src_engine_may_send(w->source, true)) {
        size_t room;
        uint8_t *payload = um_lbtr_src_engine_acquire(w->source, &room);
        memset(payload, (int)(w->handed * 7), w->options.len);
        um_put32(payload, w->options.first_sqn + w->handed);
        w->sent_ns[w->handed++] = sim_now(w->sim);
        w->backlog--;
        um_lbtr_src_engine_commit(w->source, sim_node_now(w->sim, w->source_node), w->options.len, w->options.len);
    }
}

static void source_relieved(void *io)
{
    send_backlog(io);
}

static void check_window(struct rm_world *w)
{
    lbm_src_transport_stats_lbtrm_t stats;
    um_lbtrm_src_engine_stats(w->source, &stats);
    if (stats.txw_bytes > w->options.window + stats.rctlr_data_msgs * w->options.len) {
        rm_broken(w, "window larger than its size");
    }
}

static void source_on_timer(void *arg, uint64_t now_ns)
{
    struct rm_world *w = arg;
    if (now_ns >= w->engine_due) {
        w->engine_due = UINT64_MAX;
        um_lbtr_src_engine_on_timer(w->source, now_ns);
    }
    if (now_ns >= w->app_due) {
        w->backlog++;
        w->app_due = w->handed + w->backlog < w->options.count ? now_ns + w->options.every_ns : UINT64_MAX;
        send_backlog(w);
        check_window(w);
    }
    rearm(w);
}

static void source_on_packet(void *arg, uint64_t now_ns, const uint8_t *data, size_t len, int from)
{
    um_lbtrm_src_engine_on_packet(((struct rm_world *)arg)->source, now_ns, data, len);
}

static const struct um_lbtrm_src_engine_ops source_ops = {.send = source_send,
                                                          .common.set_timer = source_set_timer,
                                                          .common.kick = source_kick,
                                                          .common.relieved = source_relieved};

/* ---- receivers ---- */

static void rcv_nak(void *io, const uint8_t *data, size_t len)
{
    struct rm_receiver *r = io;
    struct rm_world *w = r->world;
    struct um_lbtrm_packet p;
    if (um_lbtrm_decode(data, len, &p) != UM_LBTR_OK || p.type != UM_LBTRM_NAK) {
        rm_broken(w, "a NAK that cannot be understood");
    } else if (w->options.net.corruption == 0 && p.session.session_id == w->session.session_id) {
        rm_broken(w, sim_lbtr_nak(&r->asked, &w->stream, &w->timing, sim_node_now(w->sim, r->node), &p.list,
                                  w->options.hostile));
    }
    r->naks++;
    r->nak_numbers += p.list.count;
    w->nak_packets++;
    w->nak_numbers += p.list.count;
    sim_unicast(w->sim, r->node, w->source_node, data, len);
}

static void rcv_deliver(void *io, uint64_t now_ns, const struct um_slice *payload, uint32_t sqn, bool retransmission)
{
    struct rm_receiver *r = io;
    struct rm_world *w = r->world;
    uint32_t n = sqn - w->options.first_sqn;
    if (w->options.hostile && payload->len == 4 && um_get32(payload->ptr) == SIM_FORGED) {
        return;
    }
    if (payload->len != w->options.len || n >= w->handed || um_get32(payload->ptr) != sqn ||
        (payload->len > 4 && payload->ptr[payload->len - 1] != (uint8_t)(n * 7))) {
        rm_broken(w, w->options.net.corruption == 0 ? "delivered something that was not sent" : NULL);
        return;
    }
    rm_broken(w, !r->begun ? "delivered before the beginning" : NULL);
    rm_broken(w, r->ended ? "delivered after the end" : NULL);
    rm_broken(w, r->fate[n] == RM_DELIVERED ? "delivered twice" : NULL);
    sim_lbtr_arrived(&r->asked, &w->stream, sqn);
    r->late += r->fate[n] == RM_LOST;
    r->fate[n] = RM_DELIVERED;
    r->delivered_ns[n] = sim_now(w->sim);
    r->delivered++;
    r->last_delivery_ns = sim_now(w->sim);
    r->origin = r->any && r->origin < n ? r->origin : n;
    r->any = true;
    uint64_t took = sim_now(w->sim) - w->sent_ns[n];
    r->worst_ns = took > r->worst_ns ? took : r->worst_ns;
}

static void rcv_lost(void *io, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why)
{
    struct rm_receiver *r = io;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = first + i - r->world->options.first_sqn;
        if (n < r->world->handed) {
            rm_broken(r->world, r->fate[n] == RM_DELIVERED ? "reported lost after it was delivered" : NULL);
            rm_broken(r->world, r->fate[n] == RM_LOST && !r->world->options.hostile ? "reported lost twice" : NULL);
            r->lost += r->fate[n] == RM_UNKNOWN;
            r->fate[n] = RM_LOST;
        }
    }
}

static void rcv_begin(void *io, uint64_t now_ns)
{
    struct rm_receiver *r = io;
    rm_broken(r->world, r->begun ? "began twice" : NULL);
    r->begun = true;
}

static void rcv_end(void *io, uint64_t now_ns, enum um_lbtr_end why)
{
    struct rm_receiver *r = io;
    rm_broken(r->world, r->ended ? "ended twice" : NULL);
    r->ended = true;
}

static void rcv_set_timer(void *io, uint64_t due_ns)
{
    struct rm_receiver *r = io;
    sim_set_timer(r->world->sim, r->node, due_ns);
}

static void rcv_on_packet(void *arg, uint64_t now_ns, const uint8_t *data, size_t len, int from)
{
    struct rm_receiver *r = arg;
    struct rm_world *w = r->world;
    struct um_lbtrm_session session;
    struct um_lbtrm_packet p;
    if (r->engine == NULL || !um_lbtrm_peek(data, len, &session) ||
        (session.session_id != w->session.session_id && !w->options.hostile)) {
        return;
    }
    um_lbtrm_rcv_engine_on_packet(r->engine, now_ns, data, len, RM_SOURCE_IP);
    if ((data[0] & 0x0f) == UM_LBTRM_NCF && from == w->source_node && um_lbtrm_decode(data, len, &p) == UM_LBTR_OK) {
        sim_lbtr_refused(&r->asked, &w->stream, &w->timing, now_ns, &p.list);
    }
}

static void rcv_on_timer(void *arg, uint64_t now_ns)
{
    struct rm_receiver *r = arg;
    if (r->engine != NULL) {
        um_lbtr_rcv_engine_on_timer(r->engine, now_ns);
    }
}

static const struct um_lbtr_rcv_outputs receiver_ops = {.send = rcv_nak,
                                                        .deliver = rcv_deliver,
                                                        .lost = rcv_lost,
                                                        .begin = rcv_begin,
                                                        .end = rcv_end,
                                                        .set_timer = rcv_set_timer};

void rm_join(struct rm_receiver *r)
{
    struct rm_world *w = r->world;
    r->begun = r->ended = r->any = false;
    r->delivered = r->lost = r->late = r->naks = r->nak_numbers = 0;
    memset(r->fate, RM_UNKNOWN, w->options.count);
    sim_lbtr_asked_free(&r->asked);
    sim_lbtr_asked_init(&r->asked, w->options.count);
    r->engine = um_lbtrm_rcv_engine_create(
        &(struct um_lbtrm_rcv_engine_config){RM_SOURCE_IP, w->session, w->options.naks, w->options.activity_ns, 0},
        &w->rng, &receiver_ops, r, sim_node_now(w->sim, r->node));
}

void rm_leave(struct rm_receiver *r)
{
    um_lbtr_rcv_engine_destroy(r->engine);
    r->engine = NULL;
    sim_set_timer(r->world->sim, r->node, UINT64_MAX);
}

/* ---- worlds ---- */

static bool invariant(void *arg, uint64_t now_ns)
{
    return ((struct rm_world *)arg)->broken == NULL;
}

void rm_impair(struct rm_world *w)
{
    sim_lbtr_impair(w->sim, &w->options.net);
}

static void start_source(struct rm_world *w)
{
    const struct rm_options *o = &w->options;
    w->source = um_lbtrm_src_engine_create(&(struct um_lbtrm_src_engine_config){.session = w->session,
                                                                                .tgsz = 8,
                                                                                .datagram_max = 8192,
                                                                                .window_size = o->window,
                                                                                .ignore_ns = w->timing.ignore_ns,
                                                                                .sm_min_ns = w->timing.sm_min_ns,
                                                                                .sm_max_ns = 10 * SIM_SEC,
                                                                                .first_sqn = o->first_sqn},
                                           &w->limiter, &source_ops, w);
    w->engine_due = UINT64_MAX;
    sim_lbtr_stream_free(&w->stream);
    sim_lbtr_stream_init(&w->stream, o->first_sqn, o->count);
}

void rm_restart_source(struct rm_world *w)
{
    um_lbtr_src_engine_destroy(w->source);
    w->session.session_id ^= 0xffff;
    w->handed = w->backlog = 0;
    w->app_due = UINT64_MAX;
    start_source(w);
    rearm(w);
}

struct rm_world *rm_create(const char *name, uint64_t seed, const struct rm_options *options)
{
    struct rm_world *w = calloc(1, sizeof *w);
    w->options = *options;
    w->name = name;
    w->seed = seed;
    w->sim = sim_create(seed);
    um_rng_seed(&w->rng, seed ^ 0x5eed);
    w->session = (struct um_lbtrm_session){14390, 0x10000000u + (uint32_t)seed};
    uint64_t ignore_ns = 2 * options->naks.backoff_ns < 500 * SIM_MS ? 2 * options->naks.backoff_ns : 500 * SIM_MS;
    w->timing = (struct sim_lbtr_timing){.ignore_ns = options->ignore_ns != 0 ? options->ignore_ns : ignore_ns,
                                         .sm_min_ns = 200 * SIM_MS,
                                         .backoff_ns = options->naks.backoff_ns,
                                         .suppress_ns = options->naks.suppress_ns,
                                         .generation_ns = options->naks.generation_ns,
                                         .slack_ns = SIM_MS};
    um_lbtr_limiter_init(&w->limiter,
                         &(struct um_lbtr_limiter_config){options->data_bps, options->rx_bps, RATE_INTERVAL_NS, true});
    w->source_node = sim_add_node(w->sim, source_on_packet, source_on_timer, w);
    w->sent_ns = calloc(options->count + 1, sizeof *w->sent_ns);
    start_source(w);
    w->app_due = sim_now(w->sim) + 10 * SIM_MS;
    w->receivers = calloc((size_t)options->receivers, sizeof *w->receivers);
    for (int i = 0; i < options->receivers; i++) {
        struct rm_receiver *r = &w->receivers[i];
        r->world = w;
        r->fate = calloc(options->count + 1, 1);
        r->delivered_ns = calloc(options->count + 1, sizeof *r->delivered_ns);
        r->node = sim_add_node(w->sim, rcv_on_packet, rcv_on_timer, r);
        sim_join(w->sim, RM_GROUP, r->node);
        rm_join(r);
    }
    w->stranger_node = sim_lbtr_add_stranger(w->sim);
    rm_impair(w);
    sim_invariant(w->sim, invariant, w);
    rearm(w);
    return w;
}

bool rm_finish(struct rm_world *w)
{
    bool good = w->broken == NULL;
    if (!good && !w->quiet) {
        fprintf(stderr, "%s\n", w->broken);
        sim_report(w->name, w->seed);
    }
    um_lbtr_src_engine_destroy(w->source);
    for (int i = 0; i < w->options.receivers; i++) {
        if (w->receivers[i].engine != NULL) {
            um_lbtr_rcv_engine_destroy(w->receivers[i].engine);
        }
        sim_lbtr_asked_free(&w->receivers[i].asked);
        free(w->receivers[i].fate);
        free(w->receivers[i].delivered_ns);
    }
    sim_lbtr_stream_free(&w->stream);
    sim_destroy(w->sim);
    free(w->receivers);
    free(w->sent_ns);
    free(w);
    return good;
}

bool rm_run(struct rm_world *w, uint64_t ns)
{
    sim_run(w->sim, sim_now(w->sim) + ns);
    return w->broken == NULL;
}

static void check_counters(struct rm_world *w, struct rm_receiver *r)
{
    rm_broken(w,
              sim_lbtr_counted(um_lbtr_rcv_engine_counters(r->engine), r->delivered, r->lost, r->nak_numbers, r->naks));
}

bool rm_settled(struct rm_world *w, bool all)
{
    for (int i = 0; i < w->options.receivers; i++) {
        struct rm_receiver *r = &w->receivers[i];
        for (uint32_t n = r->origin; r->any && n < w->handed; n++) {
            rm_broken(w, r->fate[n] == RM_UNKNOWN ? "neither delivered nor reported lost" : NULL);
            rm_broken(w, all && r->fate[n] != RM_DELIVERED ? "lost for good" : NULL);
        }
        rm_broken(w, all && !r->any ? "nothing was delivered" : NULL);
        if (w->options.net.corruption == 0 && !w->options.hostile && r->engine != NULL) {
            check_counters(w, r);
        }
    }
    rm_broken(w, w->handed != w->options.count ? "the application could not send everything" : NULL);
    return w->broken == NULL;
}

bool rm_scenario(const char *name, uint64_t seed, const struct rm_options *options, bool all)
{
    struct rm_world *w = rm_create(name, seed, options);
    rm_run(w, options->count * options->every_ns + SIM_SEC);
    w->options.net.loss = w->options.net.shared_loss = w->options.net.burst_begin = 0;
    rm_impair(w);
    rm_run(w, 25 * SIM_SEC);
    rm_settled(w, all);
    return rm_finish(w);
}
