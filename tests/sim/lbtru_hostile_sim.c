/* LBT-RU engines among strangers: corrupted and random packets, forged requests,
 * acknowledgements, NAKs, session messages, confirmations and resets. UM_SIM_SEEDS sets
 * how many seeds run, UM_SIM_SEED replays one. */
#include "um_test.h"

#include "sim_lbtru.h"

TEST(corrupted_packets_do_no_harm)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.count = 100;
        o.net.corruption = 0.05;
        o.hostile = true;
        struct ru_world *w = ru_create("corrupted_packets_do_no_harm", seed, &o);
        w->timing.generation_ns = 600 * SIM_SEC;
        ru_run(w, 30 * SIM_SEC);
        if (w->handed != o.count) {
            ru_broken(w, "the application could not send everything");
        }
        CHECK(ru_finish(w));
    }
}

/* Somebody who sends from any address, with or without the session id. */
static void forge(struct ru_world *w, struct um_rng *rng)
{
    uint8_t packet[UM_LBTR_LIST_BYTES_MAX];
    uint32_t sqns[100], sid = um_rng_range(rng, 0, 1) ? RU_SID : (uint32_t)um_rng_u64(rng);
    struct um_lbtru_address from = {(uint32_t)um_rng_u64(rng), (uint16_t)um_rng_u64(rng)};
    uint64_t now_ns = sim_now(w->sim);
    struct um_lbtr_rcv_engine *receiver = w->receivers[0].engine;
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
    um_lbtru_src_engine_on_packet(w->source, now_ns, packet, len, &from);
    len = um_lbtru_put_sm(packet, sid, um_rng_range(rng, 0, 1), 5, sqns[0], sqns[0]);
    um_lbtru_rcv_engine_on_packet(receiver, now_ns, packet, len, from.ip, from.port);
    len = um_lbtru_put_rst(packet);
    um_lbtru_rcv_engine_on_packet(receiver, now_ns, packet, len, RU_SOURCE_IP, from.port | 1);
    uint32_t lead = w->options.first_sqn + w->handed - 1;
    len = um_lbtru_put_sm(packet, RU_SID, false, 6, lead + (uint32_t)um_rng_range(rng, 1, 1u << 22), lead + 1);
    um_lbtru_rcv_engine_on_packet(receiver, now_ns, packet, len, RU_SOURCE_IP, RU_SOURCE_PORT);
    len = um_lbtru_put_ncf(packet, RU_SID, lead + 1, UM_LBTR_DO_NOT_RETRY, (uint32_t[]){lead, lead - 1}, 2);
    um_lbtru_rcv_engine_on_packet(receiver, now_ns, packet, len, RU_SOURCE_IP, RU_SOURCE_PORT);
}

TEST(x1_forged_packets_make_nobody_skip_data)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        /* The source answers a number once in half a second and then tells the receiver to wait, so a lost repair costs
         * more than a second: time for several rounds, all of which the network spoils less than once in 100,000 times.
         * The stream is longer than the forger and than what it claims is waited for. */
        o.naks.generation_ns = 6 * SIM_SEC;
        o.count = 850;
        o.every_ns = 10 * SIM_MS;
        o.net.loss = 0.01;
        o.hostile = true;
        struct ru_world *w = ru_create("x1_forged_packets_make_nobody_skip_data", seed, &o);
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        ru_run(w, 1100 * SIM_MS);
        for (int i = 0; i < 20; i++) {
            ru_run(w, 100 * SIM_MS);
            forge(w, &rng);
        }
        ru_run(w, 45 * SIM_SEC);
        if (w->receivers[0].delivered != o.count || w->receivers[0].ends != 0) {
            ru_broken(w, "datagrams were skipped");
        }
        CHECK(ru_finish(w));
    }
}

/* NAKs for everything from a client, and acknowledgements from ever new addresses: what they cause is bounded. */
TEST(forged_naks_and_addresses_cause_no_more_than_the_limits_allow)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.count = 150;
        o.len = 1000;
        o.window = 65536; /* much has left it */
        o.rx_bps = 1000000;
        o.hostile = true;
        struct ru_world *w = ru_create("forged_naks_and_addresses_cause_no_more_than_the_limits_allow", seed, &o);
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        ru_run(w, 1050 * SIM_MS);
        uint64_t begin = sim_now(w->sim);
        struct um_lbtru_address client = ru_address(w->receivers[0].node);
        for (int i = 0; i < 300; i++) {
            uint8_t packet[UM_LBTR_LIST_BYTES_MAX];
            uint32_t sqns[UM_LBTRU_LIST_MAX], base = w->handed - (uint32_t)um_rng_range(&rng, 0, 500);
            for (unsigned n = 0; n < UM_LBTRU_LIST_MAX; n++) {
                sqns[n] = um_rng_range(&rng, 0, 1) ? base + n : (uint32_t)um_rng_u64(&rng);
            }
            size_t len = um_lbtru_put_nak(packet, RU_SID, sqns, UM_LBTRU_LIST_MAX);
            um_lbtru_src_engine_on_packet(w->source, sim_now(w->sim), packet, len, &client);
            for (int a = 0; a < 5; a++) {
                struct um_lbtru_address from = {(uint32_t)um_rng_u64(&rng), (uint16_t)um_rng_u64(&rng)};
                len = um_lbtru_put_ack(packet, RU_SID, 0);
                um_lbtru_src_engine_on_packet(w->source, sim_now(w->sim), packet, len, &from);
            }
            ru_run(w, SIM_MS);
        }
        uint64_t ns = sim_now(w->sim) - begin;
        if (w->repair_bytes > (ns / (100 * SIM_MS) + 2) * w->limiter.rx.allowance ||
            w->ncf_bytes > (ns / SIM_SEC + 2) * (o.rx_bps / 8 / 4) || w->resets > 64) {
            ru_broken(w, "forged packets cause more than the limits allow");
        }
        ru_run(w, 10 * SIM_SEC);
        if (w->receivers[0].delivered != o.count) {
            ru_broken(w, "the client did not get everything");
        }
        CHECK(ru_finish(w));
    }
}

TEST(forged_session_ids_and_random_packets_change_nothing)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.count = 100;
        struct ru_world *w = ru_create("forged_session_ids_and_random_packets_change_nothing", seed, &o);
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        ru_run(w, SIM_SEC);
        for (int i = 0; i < 100; i++) {
            uint8_t packet[64];
            size_t len = um_rng_range(&rng, 0, sizeof packet);
            for (size_t b = 0; b < len; b++) {
                packet[b] = (uint8_t)um_rng_u64(&rng);
            }
            if (len > 0 && (packet[0] & 0x0f) == UM_LBTRU_RST) { /* needs no id by design */
                packet[0] ^= 0x0f;
            }
            if (um_rng_range(&rng, 0, 1)) { /* right but for the id */
                len = um_lbtru_put_sm(packet, RU_SID + 1, um_rng_range(&rng, 0, 1), 7, w->handed + 50, w->handed);
            }
            sim_unicast(w->sim, w->stranger_node, w->receivers[0].node, packet, len);
            sim_unicast(w->sim, w->stranger_node, w->source_node, packet, len);
            ru_run(w, SIM_MS);
        }
        ru_run(w, 5 * SIM_SEC);
        ru_all_delivered(w);
        const struct um_lbtr_receiver_counters *c = um_lbtr_rcv_engine_counters(w->receivers[0].engine);
        if (w->repair_bytes != 0 || w->ncf_bytes != 0 || w->connects != 1 || w->to_strangers != 0 ||
            c->dropped_sid == 0 || w->receivers[0].worst_ns != o.net.delay_min_ns ||
            um_lbtr_src_engine_counters(w->source)->packets_ignored != 100) {
            ru_broken(w, "packets of strangers were believed, or not counted");
        }
        CHECK(ru_finish(w));
    }
}

/* ---- data with the right identity and wrong numbers ---- */

/* What a lie had given up is asked for anew, and no rule of timing holds over both times. */
static void expect_lies(struct ru_world *w)
{
    w->timing.backoff_ns = w->timing.suppress_ns = 0;
    w->timing.generation_ns = 600 * SIM_SEC;
}

static void tell_lie(struct ru_world *w, struct um_rng *rng, enum sim_lbtr_lie lie, uint32_t spare)
{
    struct sim_lbtr_forged forged[SIM_FORGED_MAX];
    const struct sim_lbtr_stream *stream = &w->receivers[0].stream;
    size_t count = sim_lbtr_forge(rng, lie, stream->trail, stream->next - 1, spare, forged);
    for (size_t i = 0; i < count; i++) {
        uint8_t packet[UM_LBTRU_DATA_HDR_MAX + 4];
        size_t len = um_lbtru_put_data(packet, RU_SID, forged[i].sqn, forged[i].trail, forged[i].retransmission);
        um_put32(packet + len, SIM_FORGED);
        um_lbtru_rcv_engine_on_packet(w->receivers[0].engine, sim_now(w->sim), packet, len + 4, RU_SOURCE_IP,
                                      RU_SOURCE_PORT);
    }
}

static void judge_truth(struct ru_world *w, enum sim_lbtr_lie lie)
{
    const struct um_lbtr_receiver_counters *c = um_lbtr_rcv_engine_counters(w->receivers[0].engine);
    ru_all_delivered_late(w);
    if (c->naks_sent > 100000 && lie != SIM_LIE_MIXED) { /* that has answers as well */
        ru_broken(w, "a flood of NAKs for what a lie told");
    }
}

TEST(f9_raised_numbers_and_trails_cost_the_stream_nothing)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        enum sim_lbtr_lie lie = (enum sim_lbtr_lie)(seed % SIM_LIES);
        o.count = 500;
        o.every_ns = 5 * SIM_MS;
        o.naks.generation_ns = 6 * SIM_SEC;
        o.first_sqn =
            seed / SIM_LIES % 3 == 0 ? 0u - 200 : 0; /* the wrap is in the stream, or what is told is beyond */
        o.net.reordering = seed / SIM_LIES % 2 * 0.05;
        o.hostile = true;
        struct ru_world *w = ru_create("f9_raised_numbers_and_trails_cost_the_stream_nothing", seed, &o);
        expect_lies(w);
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        ru_run(w, 1100 * SIM_MS);
        w->options.net.loss = w->options.net.duplication = seed / SIM_LIES % 2 * 0.01;
        ru_impair(w);
        ru_run(w, um_rng_range(&rng, 300, 1000) * SIM_MS);
        tell_lie(w, &rng, lie, 48);
        ru_run(w, 30 * SIM_SEC);
        judge_truth(w, lie);
        CHECK(ru_finish(w));
    }
}

/* What the lie told is long given up when the source goes on; also a source that sends less often than that. */
TEST(f9_a_source_that_was_silent_for_minutes_after_the_lie_is_heard)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.count = 30;
        o.every_ns = seed / SIM_LIES % 2 == 0 ? 100 * SIM_MS : 15 * SIM_SEC;
        o.first_sqn = seed / SIM_LIES % 3 == 0 ? 0u - 15 : 0;
        o.hostile = true;
        struct ru_world *w = ru_create("f9_a_source_that_was_silent_for_minutes_after_the_lie_is_heard", seed, &o);
        expect_lies(w);
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        ru_run(w, SIM_SEC + 10 * o.every_ns);
        w->app_due += 120 * SIM_SEC;
        tell_lie(w, &rng, (enum sim_lbtr_lie)(seed % SIM_LIES), 8);
        ru_run(w, 900 * SIM_SEC);
        judge_truth(w, (enum sim_lbtr_lie)(seed % SIM_LIES));
        CHECK(ru_finish(w));
    }
}

/* A forged datagram comes before the answer to the connection request. */
TEST(f9_forged_first_datagram_gives_way_to_the_stream)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.count = 300;
        o.hostile = true;
        struct ru_world *w = ru_create("f9_forged_first_datagram_gives_way_to_the_stream", seed, &o);
        expect_lies(w);
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        tell_lie(w, &rng, (enum sim_lbtr_lie)(seed % SIM_LIES), 350);
        ru_run(w, 30 * SIM_SEC);
        ru_all_delivered_late(w);
        CHECK(ru_finish(w));
    }
}

/* ---- requests in the name of others ---- */

/* Requests, and acknowledgements with guessed numbers, from ever new addresses, some of them of one host. Returns how
 * many bytes. */
static size_t ask_in_the_name_of_others(struct ru_world *w, struct um_rng *rng, unsigned count)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        uint8_t packet[UM_LBTRU_ACK_MAX + UM_LBTRU_CREQ_MAX];
        uint32_t ip = um_rng_range(rng, 0, 3) == 0 ? 0x0100007fu : (uint32_t)um_rng_u64(rng) | 0x80000000u;
        struct um_lbtru_address from = {ip, (uint16_t)um_rng_range(rng, 1, 65535)};
        size_t len = um_lbtru_put_creq(packet, RU_SID);
        um_lbtru_src_engine_on_packet(w->source, sim_now(w->sim), packet, len, &from);
        bytes += len;
        len = um_lbtru_put_ack(packet, RU_SID, (uint32_t)um_rng_u64(rng));
        um_lbtru_src_engine_on_packet(w->source, sim_now(w->sim), packet, len, &from);
        bytes += len;
    }
    return bytes;
}

TEST(f8_requests_in_the_name_of_others_bring_them_no_data_and_cost_the_client_nothing)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.count = 300;
        o.len = 1000;
        o.data_bps = 4000000; /* for one of them and little more */
        o.every_ns = 4 * SIM_MS;
        o.first_sqn = 0xffffffffu - 100;
        o.hostile = true;
        struct ru_world *w =
            ru_create("f8_requests_in_the_name_of_others_bring_them_no_data_and_cost_the_client_nothing", seed, &o);
        struct um_rng rng;
        size_t bytes = 0;
        um_rng_seed(&rng, seed);
        ru_run(w, 1050 * SIM_MS);
        for (int i = 0; i < 50; i++) {
            bytes += ask_in_the_name_of_others(w, &rng, 10);
            ru_run(w, 20 * SIM_MS);
        }
        ru_run(w, 10 * SIM_SEC);
        ru_all_delivered(w);
        if (w->bytes_to_strangers > 2 * bytes || w->connects != 1 || w->receivers[0].worst_ns > 120 * SIM_MS) {
            ru_broken(w, "strangers got more than answers, or the client less than all");
        }
        CHECK(ru_finish(w));
    }
}

/* A flood of requests while a receiver connects over a network that loses a fifth. */
TEST(f8_receivers_connect_while_others_are_impersonated)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.count = 50;
        o.every_ns = 20 * SIM_MS;
        o.hostile = true;
        o.net.loss = 0.2;
        struct ru_world *w = ru_create("f8_receivers_connect_while_others_are_impersonated", seed, &o);
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        w->app_due = 20 * SIM_SEC; /* connected by then */
        for (int i = 0; i < 100; i++) {
            ask_in_the_name_of_others(w, &rng, 20);
            ru_run(w, 50 * SIM_MS);
        }
        ru_run(w, 15 * SIM_SEC);
        w->options.net.loss = 0;
        ru_impair(w);
        ru_run(w, 30 * SIM_SEC);
        struct ru_receiver *r = &w->receivers[0];
        if (r->delivered != o.count || r->ends != r->begins - 1 || um_lbtru_src_engine_clients(w->source) != 1) {
            ru_broken(w, "a real receiver did not connect, or lost something");
        }
        CHECK(ru_finish(w));
    }
}
