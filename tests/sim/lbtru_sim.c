/* LBT-RU engines on a virtual network: connecting, loss, many clients, silent clients,
 * resets, hostile packets. UM_SIM_SEEDS sets how many seeds run, UM_SIM_SEED replays
 * one. Invariants at every step: nothing delivered twice or altered, retransmissions
 * within the rate limit; at the end everything was delivered or reported lost. */
#include "um_test.h"

#include "base/um_bytes.h"
#include "sim_net.h"
#include "transport/lbtr/um_lbtru_receiver.h"
#include "transport/lbtr/um_lbtru_source.h"

#define SOURCE_IP 0x0100000au
#define SOURCE_PORT 14380
#define SID 0x263170a3u
#define RATE_INTERVAL (100 * SIM_MS)

struct options {
    int receivers;
    unsigned count;
    uint64_t every_ns;
    size_t len;
    uint64_t data_bps, rx_bps;
    size_t window;
    uint32_t first_sqn, sid;
    double loss, duplication, reordering, corruption;
    uint64_t delay_ns;
    uint64_t connect_attempts;
};

struct world;

struct receiver {
    struct world *world;
    int node;
    struct um_lbtru_receiver *engine;
    bool begun;
    unsigned begins, ends;
    enum um_lbtr_end why;
    uint8_t *fate; /* by number of the application: 1 delivered; losses are counted */
    uint32_t first;
    bool any;
    uint64_t delivered, lost, last_delivery_ns;
};

struct world {
    struct options options;
    const char *name;
    uint64_t seed;
    struct sim *sim;
    struct um_rng rng;
    struct um_lbtr_limiter limiter;
    struct um_lbtru_source *source;
    int source_node;
    struct receiver *receivers;
    uint64_t engine_due, app_due;
    unsigned handed, backlog, connects, disconnects;
    uint64_t interval, interval_rx_bytes;
    uint64_t types[16]; /* packets of the receivers, by type */
    uint64_t resets;
    bool deaf; /* the source hears nothing */
    const char *broken;
};

static struct options plain(void)
{
    return (struct options){.receivers = 1,
                            .count = 200,
                            .every_ns = SIM_MS,
                            .len = 100,
                            .data_bps = 10000000,
                            .rx_bps = 5000000,
                            .window = 25165824,
                            .sid = SID,
                            .delay_ns = SIM_MS,
                            .connect_attempts = 600};
}

static void broken(struct world *w, const char *what)
{
    w->broken = w->broken != NULL ? w->broken : what;
}

/* ---- source ---- */

static struct um_lbtru_address address_of(int node)
{
    return (struct um_lbtru_address){0x0200000au + ((uint32_t)node << 24), 14360};
}

static void rearm(struct world *w)
{
    sim_set_timer(w->sim, w->source_node, w->engine_due < w->app_due ? w->engine_due : w->app_due);
}

static void source_set_timer(void *io, uint64_t due_ns)
{
    struct world *w = io;
    w->engine_due = due_ns;
    rearm(w);
}

static void source_kick(void *io)
{
    source_set_timer(io, sim_now(((struct world *)io)->sim));
}

static void source_send(void *io, const struct um_lbtru_address *to, const uint8_t *head, size_t head_len,
                        const uint8_t *body, size_t body_len)
{
    struct world *w = io;
    static uint8_t packet[70000];
    memcpy(packet, head, head_len);
    if (body_len > 0) {
        memcpy(packet + head_len, body, body_len);
    }
    if ((head[0] & 0x0f) == UM_LBTRU_DATA && (head[2] & 0x40) != 0) {
        uint64_t interval = sim_now(w->sim) / RATE_INTERVAL;
        w->interval_rx_bytes = interval == w->interval ? w->interval_rx_bytes : 0;
        w->interval = interval;
        w->interval_rx_bytes += head_len + body_len;
        if (w->interval_rx_bytes > w->limiter.rx.allowance) {
            broken(w, "retransmission limit exceeded");
        }
    }
    w->resets += (head[0] & 0x0f) == UM_LBTRU_RST;
    int node = (int)((to->ip >> 24) - 0x02);
    if (to->ip != address_of(node).ip || node <= 0 || node > w->options.receivers) {
        return; /* an address that a forger invented */
    }
    sim_unicast(w->sim, w->source_node, node, packet, head_len + body_len);
}

static void send_backlog(struct world *w)
{
    while (w->backlog > 0 && um_lbtru_source_may_send(w->source, true)) {
        size_t room;
        uint8_t *payload = um_lbtru_source_acquire(w->source, &room);
        memset(payload, (int)(w->handed * 7), w->options.len);
        um_put32(payload, w->handed++);
        w->backlog--;
        um_lbtru_source_commit(w->source, sim_now(w->sim), w->options.len, w->options.len);
    }
}

static void source_relieved(void *io)
{
    send_backlog(io);
}

static void source_connected(void *io, const struct um_lbtru_address *client)
{
    ((struct world *)io)->connects++;
}

static void source_disconnected(void *io, const struct um_lbtru_address *client)
{
    ((struct world *)io)->disconnects++;
}

static void source_on_timer(void *arg, uint64_t now_ns)
{
    struct world *w = arg;
    if (now_ns >= w->engine_due) {
        w->engine_due = UINT64_MAX;
        um_lbtru_source_on_timer(w->source, now_ns);
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
    struct world *w = arg;
    struct um_lbtru_address address = address_of(from);
    if (w->deaf) {
        return;
    }
    uint8_t *exact = malloc(len + 1);
    memcpy(exact, data, len);
    um_lbtru_source_on_packet(w->source, now_ns, exact, len, &address);
    free(exact);
}

static const struct um_lbtru_source_ops source_ops = {
    source_send, source_set_timer, source_kick, source_relieved, source_connected, source_disconnected, NULL};

/* ---- receivers ---- */

static void rcv_send(void *io, const uint8_t *data, size_t len)
{
    struct receiver *r = io;
    r->world->types[data[0] & 0x0f]++;
    sim_unicast(r->world->sim, r->node, r->world->source_node, data, len);
}

static void rcv_deliver(void *io, uint64_t now_ns, const struct um_slice *payload, uint32_t sqn, bool retransmission)
{
    struct receiver *r = io;
    struct world *w = r->world;
    uint32_t n = payload->len >= 4 ? um_get32(payload->ptr) : UINT32_MAX;
    if (payload->len != w->options.len || n >= w->handed || payload->ptr[4] != (uint8_t)(n * 7)) {
        if (w->options.corruption == 0) {
            broken(w, "delivered something that was not sent");
        }
        return;
    }
    if (!r->begun) {
        broken(w, "delivered before the beginning");
    }
    if (r->fate[n]++ != 0 && w->options.corruption == 0) { /* a changed number makes it another datagram */
        broken(w, "delivered twice");
    }
    r->delivered++;
    r->last_delivery_ns = now_ns;
    r->first = r->any && r->first < n ? r->first : n;
    r->any = true;
}

static void rcv_lost(void *io, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why)
{
    ((struct receiver *)io)->lost += count;
}

static void rcv_begin(void *io, uint64_t now_ns)
{
    struct receiver *r = io;
    r->begun = true;
    r->begins++;
}

static void rcv_end(void *io, uint64_t now_ns, enum um_lbtr_end why)
{
    struct receiver *r = io;
    r->begun = false;
    r->ends++;
    r->why = why;
}

static void rcv_set_timer(void *io, uint64_t due_ns)
{
    struct receiver *r = io;
    sim_set_timer(r->world->sim, r->node, due_ns);
}

static void rcv_on_packet(void *arg, uint64_t now_ns, const uint8_t *data, size_t len, int from)
{
    struct receiver *r = arg;
    uint8_t *exact = malloc(len + 1);
    memcpy(exact, data, len);
    um_lbtru_receiver_on_packet(r->engine, now_ns, exact, len, SOURCE_IP, SOURCE_PORT);
    free(exact);
}

static void rcv_on_timer(void *arg, uint64_t now_ns)
{
    um_lbtru_receiver_on_timer(((struct receiver *)arg)->engine, now_ns);
}

static const struct um_lbtru_receiver_ops receiver_ops = {rcv_send,  rcv_deliver, rcv_lost,
                                                          rcv_begin, rcv_end,     rcv_set_timer};

static void join(struct receiver *r)
{
    struct world *w = r->world;
    r->engine =
        um_lbtru_receiver_create(&(struct um_lbtru_receiver_config){SOURCE_IP,
                                                                    SOURCE_PORT,
                                                                    w->options.sid,
                                                                    {0, 200 * SIM_MS, SIM_SEC, 10 * SIM_SEC, true, 0},
                                                                    100 * SIM_MS,
                                                                    w->options.connect_attempts,
                                                                    500 * SIM_MS,
                                                                    60 * SIM_SEC},
                                 &w->rng, &receiver_ops, r, sim_now(w->sim));
}

static void rejoin(struct receiver *r)
{
    um_lbtru_receiver_destroy(r->engine);
    join(r);
}

/* ---- worlds ---- */

static bool invariant(void *arg, uint64_t now_ns)
{
    return ((struct world *)arg)->broken == NULL;
}

static void impair(struct world *w)
{
    const struct options *o = &w->options;
    sim_impair(w->sim, &(struct sim_impairment){.loss = o->loss,
                                                .duplication = o->duplication,
                                                .corruption = o->corruption,
                                                .reordering = o->reordering,
                                                .delay_min_ns = o->reordering > 0 ? o->delay_ns / 2 : o->delay_ns,
                                                .delay_max_ns = o->delay_ns});
}

static void start_source(struct world *w)
{
    const struct options *o = &w->options;
    w->source =
        um_lbtru_source_create(&(struct um_lbtru_source_config){o->sid, 8192, o->window, 0, 400 * SIM_MS, 200 * SIM_MS,
                                                                10 * SIM_SEC, 10 * SIM_SEC, 7, 0, o->first_sqn},
                               &w->limiter, &source_ops, w);
}

static struct world *world_create(const char *name, uint64_t seed, const struct options *options)
{
    struct world *w = calloc(1, sizeof *w);
    w->options = *options;
    w->name = name;
    w->seed = seed;
    w->sim = sim_create(seed);
    um_rng_seed(&w->rng, seed ^ 0x5eed);
    um_lbtr_limiter_init(&w->limiter,
                         &(struct um_lbtr_limiter_config){options->data_bps, options->rx_bps, RATE_INTERVAL, false});
    w->source_node = sim_add_node(w->sim, source_on_packet, source_on_timer, w);
    w->engine_due = UINT64_MAX;
    w->app_due = sim_now(w->sim) + SIM_SEC; /* connected by then */
    start_source(w);
    impair(w);
    w->receivers = calloc((size_t)options->receivers, sizeof *w->receivers);
    for (int i = 0; i < options->receivers; i++) {
        struct receiver *r = &w->receivers[i];
        r->world = w;
        r->fate = calloc(options->count + 1, 1);
        r->node = sim_add_node(w->sim, rcv_on_packet, rcv_on_timer, r);
        join(r);
    }
    sim_invariant(w->sim, invariant, w);
    rearm(w);
    return w;
}

static bool run(struct world *w, uint64_t ns)
{
    sim_run(w->sim, sim_now(w->sim) + ns);
    return w->broken == NULL;
}

/* Every receiver connected once and got everything. */
static void all_delivered(struct world *w)
{
    for (int i = 0; i < w->options.receivers; i++) {
        struct receiver *r = &w->receivers[i];
        if (r->delivered != w->options.count || r->lost != 0 || r->begins != 1 || r->ends != 0) {
            broken(w, "not everything was delivered on one connection");
        }
    }
    if (w->handed != w->options.count) {
        broken(w, "the application could not send everything");
    }
}

static bool finish(struct world *w)
{
    bool ok = w->broken == NULL;
    if (!ok) {
        fprintf(stderr, "%s\n", w->broken);
        sim_report(w->name, w->seed);
    }
    um_lbtru_source_destroy(w->source);
    for (int i = 0; i < w->options.receivers; i++) {
        um_lbtru_receiver_destroy(w->receivers[i].engine);
        free(w->receivers[i].fate);
    }
    sim_destroy(w->sim);
    free(w->receivers);
    free(w);
    return ok;
}

#define EACH_SEED(count) for (uint64_t seed = sim_first_seed(); seed <= sim_last_seed(count); seed++)

TEST(one_client_recovers_from_random_loss)
{
    EACH_SEED(2000)
    {
        struct options o = plain();
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        o.count = 100;
        o.loss = (double)um_rng_range(&rng, 0, 20) / 100;
        o.duplication = (double)um_rng_range(&rng, 0, 10) / 100;
        o.reordering = (double)um_rng_range(&rng, 0, 25) / 100;
        o.first_sqn = 0u - (uint32_t)um_rng_range(&rng, 0, 200); /* many wrap */
        o.sid = um_rng_range(&rng, 0, 1) ? SID : 0;
        struct world *w = world_create("one_client_recovers_from_random_loss", seed, &o);
        run(w, 2 * SIM_SEC);
        w->options.loss = 0;
        impair(w);
        run(w, 25 * SIM_SEC);
        all_delivered(w);
        CHECK(finish(w));
    }
}

TEST(ten_clients_each_recover_what_they_lost)
{
    EACH_SEED(200)
    {
        struct options o = plain();
        o.receivers = 10;
        o.count = 60;
        o.loss = 0.05;
        struct world *w = world_create("ten_clients_each_recover_what_they_lost", seed, &o);
        run(w, 25 * SIM_SEC);
        all_delivered(w);
        if (um_lbtru_source_clients(w->source) != 10 || w->connects != 10 || w->disconnects != 0) {
            broken(w, "clients are not counted right");
        }
        CHECK(finish(w));
    }
}

TEST(a_hundred_clients_share_the_rate_limit)
{
    EACH_SEED(5)
    {
        struct options o = plain();
        o.receivers = 100;
        o.count = 100;
        o.len = 1000; /* 100 x 1020 bytes each: more than the limit carries at this pace */
        o.loss = 0.01;
        struct world *w = world_create("a_hundred_clients_share_the_rate_limit", seed, &o);
        run(w, 60 * SIM_SEC);
        all_delivered(w);
        CHECK(finish(w));
    }
}

TEST(absent_source_ends_the_attempts)
{
    EACH_SEED(5)
    {
        struct options o = plain();
        o.connect_attempts = 5;
        struct world *w = world_create("absent_source_ends_the_attempts", seed, &o);
        w->deaf = true;
        run(w, 5 * SIM_SEC);
        struct receiver *r = &w->receivers[0];
        if (w->types[UM_LBTRU_CREQ] != 5 || r->begins != 0 || r->ends != 1 || r->why != UM_LBTR_END_NO_ANSWER) {
            broken(w, "not five requests and one end");
        }
        CHECK(finish(w));
    }
}

TEST(silent_client_is_dropped_then_reset_and_connects_again)
{
    EACH_SEED(20)
    {
        struct options o = plain();
        o.receivers = 2;
        o.count = 20000;
        struct world *w = world_create("silent_client_is_dropped_then_reset_and_connects_again", seed, &o);
        struct receiver *r = &w->receivers[0];
        run(w, 2 * SIM_SEC);
        sim_island(w->sim, r->node, 1);
        run(w, 12 * SIM_SEC);
        if (w->disconnects != 1 || um_lbtru_source_clients(w->source) != 1) {
            broken(w, "the silent client was not dropped");
        }
        sim_island(w->sim, r->node, 0);
        run(w, SIM_SEC);
        if (r->ends != 1 || r->why != UM_LBTR_END_RESET || w->resets == 0) {
            broken(w, "the client was not reset");
        }
        rejoin(r);
        run(w, 2 * SIM_SEC);
        if (r->begins != 2 || w->connects != 3 || r->last_delivery_ns < sim_now(w->sim) - 100 * SIM_MS) {
            broken(w, "the client does not get data again");
        }
        run(w, 30 * SIM_SEC);
        if (w->receivers[1].delivered != o.count) {
            broken(w, "the other client was disturbed");
        }
        CHECK(finish(w));
    }
}

TEST(outage_longer_than_the_window_is_reported)
{
    EACH_SEED(20)
    {
        struct options o = plain();
        o.count = 4000;
        o.window = 65536; /* 655 datagrams */
        struct world *w = world_create("outage_longer_than_the_window_is_reported", seed, &o);
        struct receiver *r = &w->receivers[0];
        run(w, 1500 * SIM_MS);
        sim_island(w->sim, r->node, 1);
        run(w, 1500 * SIM_MS);
        sim_island(w->sim, r->node, 0);
        run(w, 30 * SIM_SEC);
        if (r->lost < 700 || r->delivered + r->lost != o.count) {
            broken(w, "neither delivered nor reported lost");
        }
        CHECK(finish(w));
    }
}

TEST(restarted_source_resets_its_old_clients)
{
    EACH_SEED(20)
    {
        struct options o = plain();
        o.sid = 0; /* with a session id the old clients are not answered at all */
        struct world *w = world_create("restarted_source_resets_its_old_clients", seed, &o);
        struct receiver *r = &w->receivers[0];
        run(w, 500 * SIM_MS);
        um_lbtru_source_destroy(w->source);
        w->engine_due = UINT64_MAX;
        start_source(w);
        rearm(w);
        run(w, 400 * SIM_MS);
        if (r->ends != 0 && r->why != UM_LBTR_END_RESET) {
            broken(w, "ended for another reason");
        }
        run(w, SIM_SEC);
        if (r->ends != 1 || r->why != UM_LBTR_END_RESET) {
            broken(w, "the old client was not reset");
        }
        rejoin(r);
        run(w, 5 * SIM_SEC);
        if (r->begins != 2 || um_lbtru_source_clients(w->source) != 1) {
            broken(w, "it did not connect again");
        }
        CHECK(finish(w));
    }
}

TEST(corrupted_packets_do_no_harm)
{
    EACH_SEED(200)
    {
        struct options o = plain();
        o.corruption = 0.05;
        struct world *w = world_create("corrupted_packets_do_no_harm", seed, &o);
        run(w, 40 * SIM_SEC);
        if (w->handed != o.count) {
            broken(w, "the application could not send everything");
        }
        CHECK(finish(w));
    }
}

TEST(m9_data_flows_again_after_the_link_was_down)
{
    static const uint64_t outages[] = {50 * SIM_MS, 9 * SIM_SEC};
    EACH_SEED(10)
    {
        for (int i = 0; i < 2; i++) {
            struct options o = plain();
            o.count = 14000;
            o.rx_bps = 20000000;
            struct world *w = world_create("m9_data_flows_again_after_the_link_was_down", seed, &o);
            struct receiver *r = &w->receivers[0];
            run(w, 2 * SIM_SEC);
            sim_island(w->sim, r->node, 1);
            run(w, outages[i]);
            sim_island(w->sim, r->node, 0);
            uint64_t up = sim_now(w->sim);
            run(w, 2 * SIM_SEC);
            if (r->last_delivery_ns < up + SIM_SEC) {
                broken(w, "no data after the link came up");
            }
            run(w, 60 * SIM_SEC);
            if (r->begins == 1) { /* not taken for dead meanwhile */
                all_delivered(w);
            }
            CHECK(finish(w));
        }
    }
}

TEST(s5_full_rate_again_within_a_second_after_congestion)
{
    EACH_SEED(10)
    {
        struct options o = plain();
        o.receivers = 3;
        o.count = 4000;
        o.len = 1000;
        o.every_ns = (uint64_t)(3 * 1020.0 * 8 / (0.9 * 1e7) * 1e9);
        struct world *w = world_create("s5_full_rate_again_within_a_second_after_congestion", seed, &o);
        run(w, 2 * SIM_SEC);
        w->options.loss = 0.4;
        impair(w);
        run(w, 2 * SIM_SEC);
        w->options.loss = 0;
        impair(w);
        run(w, SIM_SEC);
        unsigned before = w->handed;
        run(w, SIM_SEC);
        if ((double)(w->handed - before) < 0.95 * (double)SIM_SEC / (double)o.every_ns) {
            broken(w, "the rate does not come back");
        }
        run(w, 40 * SIM_SEC);
        all_delivered(w);
        CHECK(finish(w));
    }
}

/* Somebody who sends from any address, with or without the session id. */
static void forge(struct world *w, struct um_rng *rng)
{
    uint8_t packet[UM_LBTR_LIST_BYTES_MAX];
    uint32_t sqns[100], sid = um_rng_range(rng, 0, 1) ? SID : (uint32_t)um_rng_u64(rng);
    struct um_lbtru_address from = {(uint32_t)um_rng_u64(rng), (uint16_t)um_rng_u64(rng)};
    size_t len = 0;
    for (unsigned i = 0; i < 100; i++) {
        sqns[i] = (uint32_t)um_rng_u64(rng);
    }
    switch (um_rng_range(rng, 0, 2)) {
    case 0:
        len = um_lbtru_put_creq(packet, sid);
        break;
    case 1:
        len = um_lbtru_put_nak(packet, sid, sqns, 100);
        break;
    default:
        len = um_lbtru_put_ack(packet, sid, sqns[0]);
        break;
    }
    um_lbtru_source_on_packet(w->source, sim_now(w->sim), packet, len, &from);
    len = um_lbtru_put_sm(packet, sid, um_rng_range(rng, 0, 1), 5, sqns[0], sqns[0]);
    um_lbtru_receiver_on_packet(w->receivers[0].engine, sim_now(w->sim), packet, len, from.ip, from.port);
    len = um_lbtru_put_rst(packet);
    um_lbtru_receiver_on_packet(w->receivers[0].engine, sim_now(w->sim), packet, len, SOURCE_IP, from.port | 1);
    uint32_t lead = w->options.first_sqn + w->handed - 1;
    len = um_lbtru_put_sm(packet, SID, false, 6, lead + (uint32_t)um_rng_range(rng, 1, 1u << 22), lead + 1);
    um_lbtru_receiver_on_packet(w->receivers[0].engine, sim_now(w->sim), packet, len, SOURCE_IP, SOURCE_PORT);
    len = um_lbtru_put_ncf(packet, SID, lead + 1, UM_LBTR_DO_NOT_RETRY, (uint32_t[]){lead, lead - 1}, 2);
    um_lbtru_receiver_on_packet(w->receivers[0].engine, sim_now(w->sim), packet, len, SOURCE_IP, SOURCE_PORT);
}

TEST(x1_forged_packets_make_nobody_skip_data)
{
    EACH_SEED(20)
    {
        struct options o = plain();
        o.count = 15000;
        o.loss = 0.01;
        struct world *w = world_create("x1_forged_packets_make_nobody_skip_data", seed, &o);
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        run(w, 1500 * SIM_MS);
        for (int i = 0; i < 60; i++) {
            run(w, 100 * SIM_MS);
            forge(w, &rng);
        }
        run(w, 45 * SIM_SEC);
        if (w->receivers[0].delivered != o.count || w->receivers[0].ends != 0) {
            broken(w, "datagrams were skipped");
        }
        CHECK(finish(w));
    }
}
