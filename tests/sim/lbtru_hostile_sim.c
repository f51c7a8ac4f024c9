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
    struct um_lbtru_receiver *receiver = w->receivers[0].engine;
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
    um_lbtru_source_on_packet(w->source, now_ns, packet, len, &from);
    len = um_lbtru_put_sm(packet, sid, um_rng_range(rng, 0, 1), 5, sqns[0], sqns[0]);
    um_lbtru_receiver_on_packet(receiver, now_ns, packet, len, from.ip, from.port);
    len = um_lbtru_put_rst(packet);
    um_lbtru_receiver_on_packet(receiver, now_ns, packet, len, RU_SOURCE_IP, from.port | 1);
    uint32_t lead = w->options.first_sqn + w->handed - 1;
    len = um_lbtru_put_sm(packet, RU_SID, false, 6, lead + (uint32_t)um_rng_range(rng, 1, 1u << 22), lead + 1);
    um_lbtru_receiver_on_packet(receiver, now_ns, packet, len, RU_SOURCE_IP, RU_SOURCE_PORT);
    len = um_lbtru_put_ncf(packet, RU_SID, lead + 1, UM_LBTR_DO_NOT_RETRY, (uint32_t[]){lead, lead - 1}, 2);
    um_lbtru_receiver_on_packet(receiver, now_ns, packet, len, RU_SOURCE_IP, RU_SOURCE_PORT);
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
            um_lbtru_source_on_packet(w->source, sim_now(w->sim), packet, len, &client);
            for (int a = 0; a < 5; a++) {
                struct um_lbtru_address from = {(uint32_t)um_rng_u64(&rng), (uint16_t)um_rng_u64(&rng)};
                len = um_lbtru_put_ack(packet, RU_SID, 0);
                um_lbtru_source_on_packet(w->source, sim_now(w->sim), packet, len, &from);
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
        const struct um_lbtr_receiver_counters *c = um_lbtru_receiver_counters(w->receivers[0].engine);
        if (w->repair_bytes != 0 || w->ncf_bytes != 0 || w->connects != 1 || w->to_strangers != 0 ||
            c->dropped_sid == 0 || w->receivers[0].worst_ns != o.net.delay_min_ns ||
            um_lbtru_source_counters(w->source)->packets_ignored != 100) {
            ru_broken(w, "packets of strangers were believed, or not counted");
        }
        CHECK(ru_finish(w));
    }
}
