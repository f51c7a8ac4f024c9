/* The world of LBT-RU engines. See sim_lbtru.h. */
#include "sim_lbtru.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_INTERVAL_NS (100 * SIM_MS)

struct ru_options ru_plain(void)
{
    return (struct ru_options){.receivers = 1,
                               .count = 200,
                               .every_ns = SIM_MS,
                               .len = 100,
                               .data_bps = 10000000,
                               .rx_bps = 5000000,
                               .window = 25165824,
                               .sid = RU_SID,
                               .net = {.delay_min_ns = SIM_MS},
                               .naks = {0, 200 * SIM_MS, SIM_SEC, 10 * SIM_SEC, true, 0},
                               .connect_attempts = 600};
}

void ru_broken(struct ru_world *w, const char *what)
{
    if (what != NULL && w->broken == NULL) {
        w->broken = what;
    }
}

/* ---- the source ---- */

struct um_lbtru_address ru_address(int node)
{
    return (struct um_lbtru_address){0x0200000au + ((uint32_t)node << 24), 14360};
}

static struct ru_receiver *receiver_at(struct ru_world *w, const struct um_lbtru_address *address)
{
    int node = (int)(address->ip >> 24) - 2;
    bool known = node > 0 && node <= w->options.receivers && address->ip == ru_address(node).ip &&
                 address->port == ru_address(node).port;
    return known ? &w->receivers[node - 1] : NULL;
}

static void rearm(struct ru_world *w)
{
    sim_set_timer(w->sim, w->source_node, w->engine_due < w->app_due ? w->engine_due : w->app_due);
}

static void source_set_timer(void *io, uint64_t due_ns)
{
    struct ru_world *w = io;
    w->engine_due = due_ns;
    rearm(w);
}

static void source_kick(void *io)
{
    struct ru_world *w = io;
    source_set_timer(w, sim_node_now(w->sim, w->source_node));
}

static void account(struct ru_world *w, uint64_t now_ns, size_t len, bool retransmission)
{
    w->repair_bytes += retransmission ? len : 0;
    ru_broken(w, sim_lbtr_rated(&w->rates, &w->limiter, now_ns, len, retransmission));
}

/* The source's own packets to a client, as they leave it. */
static void check_sent(struct ru_world *w, struct ru_receiver *r, const uint8_t *packet, size_t len)
{
    uint64_t now_ns = sim_node_now(w->sim, w->source_node);
    struct um_lbtru_packet p;
    if (um_lbtru_decode(packet, len, &p) != UM_LBTR_OK ||
        (p.type != UM_LBTRU_RST && (p.has_sid != (w->options.sid != 0) || p.sid != w->options.sid))) {
        ru_broken(w, "a packet that cannot be understood");
        return;
    }
    switch (p.type) {
    case UM_LBTRU_DATA:
        account(w, now_ns, len, p.retransmission);
        ru_broken(w, r == NULL ? NULL
                               : sim_lbtr_data(&r->stream, &w->timing, now_ns, p.sqn, p.trail, p.retransmission,
                                               p.payload.ptr, p.payload.len));
        break;
    case UM_LBTRU_SM:
        ru_broken(w, r == NULL ? NULL : sim_lbtr_sm(&r->stream, &w->timing, now_ns, p.sqn, p.lead, p.trail, p.syn));
        break;
    case UM_LBTRU_NCF:
        w->ncf_bytes += len;
        ru_broken(w, r == NULL ? NULL : sim_lbtr_ncf(&r->stream, &w->timing, now_ns, p.trail, p.reason, &p.list));
        break;
    case UM_LBTRU_RST:
        w->resets++;
        break;
    case UM_LBTRU_NAK:
    case UM_LBTRU_ACK:
    case UM_LBTRU_CREQ:
        ru_broken(w, "a source that sends what receivers send");
        break;
    }
}

static void source_send(void *io, const struct um_lbtru_address *to, const uint8_t *head, size_t head_len,
                        const uint8_t *body, size_t body_len)
{
    struct ru_world *w = io;
    static uint8_t packet[70000];
    struct ru_receiver *r = receiver_at(w, to);
    memcpy(packet, head, head_len);
    if (body_len > 0) {
        memcpy(packet + head_len, body, body_len);
    }
    check_sent(w, r, packet, head_len + body_len);
    w->to_strangers += r == NULL; /* an address that somebody invented */
    w->bytes_to_strangers += r == NULL ? head_len + body_len : 0;
    if (r != NULL) {
        sim_unicast(w->sim, w->source_node, r->node, packet, head_len + body_len);
    }
}

static void send_backlog(struct ru_world *w)
{
    while (w->backlog > 0 && um_lbtr_src_engine_may_send(w->source, true)) {
        size_t room;
        uint8_t *payload = um_lbtr_src_engine_acquire(w->source, &room);
        memset(payload, (int)(w->handed * 7), w->options.len);
        um_put32(payload, w->handed);
        w->sent_ns[w->handed++] = sim_now(w->sim);
        w->backlog--;
        um_lbtr_src_engine_commit(w->source, sim_node_now(w->sim, w->source_node), w->options.len, w->options.len);
    }
}

static void source_relieved(void *io)
{
    send_backlog(io);
}

static void source_connected(void *io, const struct um_lbtru_address *client)
{
    struct ru_world *w = io;
    w->connects++;
}

static void source_disconnected(void *io, const struct um_lbtru_address *client, uint64_t silent_ns)
{
    struct ru_world *w = io;
    struct ru_receiver *r = receiver_at(w, client);
    w->disconnects++; /* a new number space begins with the next connection */
    if (r != NULL) {
        sim_lbtr_stream_free(&r->stream);
        sim_lbtr_stream_init(&r->stream, w->first_sqn, w->options.count);
    }
}

static void source_on_timer(void *arg, uint64_t now_ns)
{
    struct ru_world *w = arg;
    if (now_ns >= w->engine_due) {
        w->engine_due = UINT64_MAX;
        um_lbtr_src_engine_on_timer(w->source, now_ns);
    }
    if (now_ns >= w->app_due) {
        w->backlog++;
        w->app_due = w->handed + w->backlog < w->options.count ? now_ns + w->options.every_ns : UINT64_MAX;
        send_backlog(w);
    }
    rearm(w);
}

static void source_on_packet(void *arg, uint64_t now_ns, const uint8_t *data, size_t len, int from)
{
    struct ru_world *w = arg;
    struct um_lbtru_address address = ru_address(from);
    if (!w->deaf) {
        um_lbtru_src_engine_on_packet(w->source, now_ns, data, len, &address);
    }
}

static const struct um_lbtru_src_engine_ops source_ops = {.send = source_send,
                                                          .common.set_timer = source_set_timer,
                                                          .common.kick = source_kick,
                                                          .common.relieved = source_relieved,
                                                          .connected = source_connected,
                                                          .disconnected = source_disconnected};

/* ---- receivers ---- */

static void rcv_send(void *io, const uint8_t *data, size_t len)
{
    struct ru_receiver *r = io;
    struct ru_world *w = r->world;
    struct um_lbtru_packet p;
    if (um_lbtru_decode(data, len, &p) != UM_LBTR_OK || p.has_sid != (w->options.sid != 0)) {
        ru_broken(w, "a receiver's packet that cannot be understood");
    } else if (p.type == UM_LBTRU_NAK && w->options.net.corruption == 0 && r->begins == 1 && w->disconnects == 0 &&
               r->ends == 0) {
        ru_broken(w, sim_lbtr_nak(&r->asked, &r->stream, &w->timing, sim_node_now(w->sim, r->node), &p.list,
                                  w->options.hostile));
    }
    r->naks += p.type == UM_LBTRU_NAK;
    r->nak_numbers += p.type == UM_LBTRU_NAK ? p.list.count : 0;
    r->acks += p.type == UM_LBTRU_ACK;
    r->requests += p.type == UM_LBTRU_CREQ;
    sim_unicast(w->sim, r->node, w->source_node, data, len);
}

static void rcv_deliver(void *io, uint64_t now_ns, const struct um_slice *payload, uint32_t sqn, bool retransmission)
{
    struct ru_receiver *r = io;
    struct ru_world *w = r->world;
    uint32_t n = payload->len >= 4 ? um_get32(payload->ptr) : UINT32_MAX;
    if (w->options.hostile && payload->len == 4 && n == SIM_FORGED) {
        return;
    }
    if (payload->len != w->options.len || n >= w->handed || payload->ptr[payload->len - 1] != (uint8_t)(n * 7)) {
        ru_broken(w, w->options.net.corruption == 0 ? "delivered something that was not sent" : NULL);
        return;
    }
    ru_broken(w, !r->begun ? "delivered before the beginning" : NULL);
    if (r->fate[n]++ != 0 && w->options.net.corruption == 0) { /* a changed number makes it another datagram */
        ru_broken(w, "delivered twice");
    }
    sim_lbtr_arrived(&r->asked, &r->stream, sqn);
    r->delivered++;
    r->last_delivery_ns = sim_now(w->sim);
    uint64_t took = sim_now(w->sim) - w->sent_ns[n];
    r->worst_ns = took > r->worst_ns ? took : r->worst_ns;
}

static void rcv_lost(void *io, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why)
{
    ((struct ru_receiver *)io)->lost += count;
}

static void rcv_begin(void *io, uint64_t now_ns)
{
    struct ru_receiver *r = io;
    ru_broken(r->world, r->begun ? "began twice" : NULL);
    r->begun = true;
    r->begins++;
}

static void rcv_end(void *io, uint64_t now_ns, enum um_lbtr_end why)
{
    struct ru_receiver *r = io;
    r->begun = false;
    r->ends++;
    r->why = why;
}

static void rcv_set_timer(void *io, uint64_t due_ns)
{
    struct ru_receiver *r = io;
    sim_set_timer(r->world->sim, r->node, due_ns);
}

static void rcv_on_packet(void *arg, uint64_t now_ns, const uint8_t *data, size_t len, int from)
{
    struct ru_receiver *r = arg;
    struct ru_world *w = r->world;
    struct um_lbtru_packet p;
    um_lbtru_rcv_engine_on_packet(r->engine, now_ns, data, len, RU_SOURCE_IP, RU_SOURCE_PORT);
    if (len > 0 && (data[0] & 0x0f) == UM_LBTRU_NCF && um_lbtru_decode(data, len, &p) == UM_LBTR_OK &&
        from == w->source_node) {
        sim_lbtr_refused(&r->asked, &r->stream, &w->timing, now_ns, &p.list);
    }
}

static void rcv_on_timer(void *arg, uint64_t now_ns)
{
    um_lbtr_rcv_engine_on_timer(((struct ru_receiver *)arg)->engine, now_ns);
}

static const struct um_lbtr_rcv_outputs receiver_ops = {.send = rcv_send,
                                                        .deliver = rcv_deliver,
                                                        .lost = rcv_lost,
                                                        .begin = rcv_begin,
                                                        .end = rcv_end,
                                                        .set_timer = rcv_set_timer};

static void join(struct ru_receiver *r)
{
    struct ru_world *w = r->world;
    sim_lbtr_asked_free(&r->asked);
    sim_lbtr_asked_init(&r->asked, w->options.count);
    r->engine =
        um_lbtru_rcv_engine_create(&(struct um_lbtru_rcv_engine_config){.source_ip = RU_SOURCE_IP,
                                                                        .source_port = RU_SOURCE_PORT,
                                                                        .session_id = w->options.sid,
                                                                        .naks = w->options.naks,
                                                                        .connect_ns = 100 * SIM_MS,
                                                                        .connect_attempts = w->options.connect_attempts,
                                                                        .ack_ns = 500 * SIM_MS,
                                                                        .activity_ns = 60 * SIM_SEC},
                                   &w->rng, &receiver_ops, r, sim_node_now(w->sim, r->node));
}

void ru_rejoin(struct ru_receiver *r)
{
    um_lbtr_rcv_engine_destroy(r->engine);
    join(r);
}

/* ---- worlds ---- */

static bool invariant(void *arg, uint64_t now_ns)
{
    return ((struct ru_world *)arg)->broken == NULL;
}

void ru_impair(struct ru_world *w)
{
    sim_lbtr_impair(w->sim, &w->options.net);
}

static void start_source(struct ru_world *w)
{
    const struct ru_options *o = &w->options;
    w->source = um_lbtru_src_engine_create(&(struct um_lbtru_src_engine_config){.session_id = o->sid,
                                                                                .datagram_max = 8192,
                                                                                .window_size = o->window,
                                                                                .ignore_ns = w->timing.ignore_ns,
                                                                                .sm_min_ns = w->timing.sm_min_ns,
                                                                                .sm_max_ns = 10 * SIM_SEC,
                                                                                .client_activity_ns = 10 * SIM_SEC,
                                                                                .client_map_size = 7,
                                                                                .first_sqn = w->first_sqn},
                                           &w->limiter, &source_ops, w);
    w->engine_due = UINT64_MAX;
    for (int i = 0; i < o->receivers; i++) {
        sim_lbtr_stream_free(&w->receivers[i].stream);
        sim_lbtr_stream_init(&w->receivers[i].stream, w->first_sqn, o->count);
    }
}

void ru_restart_source(struct ru_world *w)
{
    um_lbtr_src_engine_destroy(w->source);
    w->first_sqn += 123456789;
    start_source(w);
    rearm(w);
}

struct ru_world *ru_create(const char *name, uint64_t seed, const struct ru_options *options)
{
    struct ru_world *w = calloc(1, sizeof *w);
    w->options = *options;
    w->first_sqn = options->first_sqn;
    w->name = name;
    w->seed = seed;
    w->sim = sim_create(seed);
    um_rng_seed(&w->rng, seed ^ 0x5eed);
    w->timing = (struct sim_lbtr_timing){.ignore_ns = 2 * options->naks.backoff_ns,
                                         .sm_min_ns = 200 * SIM_MS,
                                         .backoff_ns = options->naks.backoff_ns,
                                         .suppress_ns = options->naks.suppress_ns,
                                         .generation_ns = options->naks.generation_ns,
                                         .slack_ns = SIM_MS};
    um_lbtr_limiter_init(&w->limiter,
                         &(struct um_lbtr_limiter_config){options->data_bps, options->rx_bps, RATE_INTERVAL_NS, false});
    w->source_node = sim_add_node(w->sim, source_on_packet, source_on_timer, w);
    w->sent_ns = calloc(options->count + 1, sizeof *w->sent_ns);
    w->receivers = calloc((size_t)options->receivers, sizeof *w->receivers);
    w->app_due = sim_now(w->sim) + SIM_SEC; /* connected by then */
    start_source(w);
    ru_impair(w);
    for (int i = 0; i < options->receivers; i++) {
        struct ru_receiver *r = &w->receivers[i];
        r->world = w;
        r->fate = calloc(options->count + 1, 1);
        r->node = sim_add_node(w->sim, rcv_on_packet, rcv_on_timer, r);
        join(r);
    }
    w->stranger_node = sim_lbtr_add_stranger(w->sim);
    sim_invariant(w->sim, invariant, w);
    rearm(w);
    return w;
}

bool ru_finish(struct ru_world *w)
{
    bool good = w->broken == NULL;
    if (!good) {
        fprintf(stderr, "%s\n", w->broken);
        sim_report(w->name, w->seed);
    }
    um_lbtr_src_engine_destroy(w->source);
    for (int i = 0; i < w->options.receivers; i++) {
        um_lbtr_rcv_engine_destroy(w->receivers[i].engine);
        sim_lbtr_stream_free(&w->receivers[i].stream);
        sim_lbtr_asked_free(&w->receivers[i].asked);
        free(w->receivers[i].fate);
    }
    sim_destroy(w->sim);
    free(w->receivers);
    free(w->sent_ns);
    free(w);
    return good;
}

bool ru_run(struct ru_world *w, uint64_t ns)
{
    sim_run(w->sim, sim_now(w->sim) + ns);
    return w->broken == NULL;
}

static void check_counters(struct ru_world *w, const struct ru_receiver *r)
{
    ru_broken(w,
              sim_lbtr_counted(um_lbtr_rcv_engine_counters(r->engine), r->delivered, r->lost, r->nak_numbers, r->naks));
}

void ru_all_delivered_late(struct ru_world *w)
{
    for (int i = 0; i < w->options.receivers; i++) {
        struct ru_receiver *r = &w->receivers[i];
        if (r->delivered != w->options.count || r->begins != 1 || r->ends != 0) {
            ru_broken(w, "not everything was delivered on one connection");
        }
    }
    if (w->handed != w->options.count) {
        ru_broken(w, "the application could not send everything");
    }
}

void ru_all_delivered(struct ru_world *w)
{
    ru_all_delivered_late(w);
    for (int i = 0; i < w->options.receivers; i++) {
        struct ru_receiver *r = &w->receivers[i];
        if (r->lost != 0) {
            ru_broken(w, "something was reported lost");
        }
        if (!w->options.hostile) {
            check_counters(w, r);
        }
    }
}

bool ru_scenario(const char *name, uint64_t seed, const struct ru_options *options)
{
    struct ru_world *w = ru_create(name, seed, options);
    w->options.net.burst_begin = 0; /* bursts last for datagrams, and there are few before the first data */
    ru_impair(w);
    ru_run(w, 900 * SIM_MS);
    w->options.net = options->net;
    ru_impair(w);
    ru_run(w, options->count * options->every_ns + 2 * SIM_SEC);
    w->options.net.loss = w->options.net.shared_loss = w->options.net.burst_begin = 0;
    ru_impair(w);
    ru_run(w, 25 * SIM_SEC);
    ru_all_delivered(w);
    return ru_finish(w);
}
