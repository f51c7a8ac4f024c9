/* LBT-RM engines among strangers: corrupted and random packets, forged NAKs, session
 * messages and confirmations, forged session ids. Nobody crashes, skips data or sends
 * more than the limits allow. UM_SIM_SEEDS sets how many seeds run, UM_SIM_SEED replays
 * one. */
#include "um_test.h"

#include "sim_lbtrm.h"

/* Of NAK confirmations, a quarter of the retransmission limit in a second. */
static uint64_t ncf_bytes_allowed(const struct rm_options *o, uint64_t ns)
{
    return (ns / SIM_SEC + 2) * (o->rx_bps / 8 / 4);
}

TEST(corrupted_packets_do_no_harm)
{
    EACH_SEED(2000)
    {
        struct rm_options o = rm_plain();
        o.receivers = 2;
        o.count = 100;
        o.net.corruption = 0.05;
        struct rm_world *w = rm_create("corrupted_packets_do_no_harm", seed, &o);
        rm_run(w, 30 * SIM_SEC); /* a changed number or payload may look like anything: only the invariants count */
        if (w->handed != o.count) {
            rm_broken(w, "the application could not send everything");
        }
        CHECK(rm_finish(w));
    }
}

/* A stranger that knows the session: session messages and NCFs about numbers far ahead, and NAKs for everything. */
static void forge(struct rm_world *w, struct um_rng *rng)
{
    uint8_t packet[UM_LBTR_LIST_BYTES_MAX];
    uint32_t sqns[300], lead = w->options.first_sqn + w->handed - 1;
    uint32_t far = lead + (uint32_t)um_rng_range(rng, 1, 1u << 22);
    size_t len;
    switch (um_rng_range(rng, 0, 4)) {
    case 0:
        len = um_lbtrm_put_sm(packet, &w->session, 77, far, far - (uint32_t)um_rng_range(rng, 0, 1000), 3);
        break;
    case 1:
        len = um_lbtrm_put_sm(packet, &w->session, 78, far, lead + 1, 3);
        break;
    case 2:
        for (unsigned i = 0; i < 300; i++) {
            sqns[i] = lead - i;
        }
        len = um_lbtrm_put_ncf(packet, &w->session, um_rng_range(rng, 0, 1) ? lead + 1 : far,
                               um_rng_range(rng, 0, 1) ? UM_LBTR_DO_NOT_RETRY : UM_LBTR_NAK_SHED, sqns, 300);
        break;
    case 3: /* to split ranges, newest first */
        for (unsigned i = 0; i < 300; i++) {
            sqns[i] = far - 2 * i;
        }
        len = um_lbtrm_put_ncf(packet, &w->session, lead, UM_LBTR_NAK_IGNORED, sqns, 300);
        break;
    default:
        for (unsigned i = 0; i < 300; i++) {
            sqns[i] = far - i * 4096;
        }
        len = um_lbtrm_put_nak(packet, &w->session, sqns, 300);
        sim_unicast(w->sim, w->stranger_node, w->source_node, packet, len);
        return;
    }
    sim_multicast(w->sim, RM_GROUP, w->stranger_node, packet, len);
}

TEST(x1_forged_session_messages_and_ncfs_make_nobody_skip_data)
{
    EACH_SEED(2000)
    {
        struct rm_options o = rm_plain();
        o.receivers = 2;
        /* Forged NCFs cost a number a second or two, and the loss of a real NAK or repair as much again: time for three
         * rounds, all of which the network spoils once in 100,000 times. The stream is longer than the forger and than
         * what it claims is waited for. */
        o.naks.generation_ns = 6 * SIM_SEC;
        o.count = 850;
        o.every_ns = 10 * SIM_MS;
        o.net.loss = 0.01;
        o.hostile = true;
        struct rm_world *w = rm_create("x1_forged_session_messages_and_ncfs_make_nobody_skip_data", seed, &o);
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        for (int i = 0; i < 20; i++) {
            rm_run(w, 100 * SIM_MS);
            forge(w, &rng);
        }
        rm_run(w, 40 * SIM_SEC);
        rm_settled(w, true);
        CHECK(rm_finish(w));
    }
}

/* The first thing a receiver hears is forged: the stream still begins where data says. */
TEST(x1_forged_origin_gives_way_to_the_first_datagram)
{
    EACH_SEED(2000)
    {
        struct rm_options o = rm_plain();
        o.count = 50;
        o.hostile = true;
        struct rm_world *w = rm_create("x1_forged_origin_gives_way_to_the_first_datagram", seed, &o);
        uint8_t packet[UM_LBTRM_SM_LEN];
        uint32_t lead = (uint32_t)um_rng_u64(&w->rng);
        size_t len = um_lbtrm_put_sm(packet, &w->session, 0, lead, lead - 10, 3);
        sim_multicast(w->sim, RM_GROUP, w->stranger_node, packet, len);
        rm_run(w, 20 * SIM_SEC);
        rm_settled(w, true);
        if (w->receivers[0].delivered != o.count) {
            rm_broken(w, "data was taken for old");
        }
        CHECK(rm_finish(w));
    }
}

/* NAKs from anywhere for anything at any rate: repairs and confirmations stay within their limits, others get theirs.
 */
TEST(forged_naks_cause_no_more_than_the_limits_allow)
{
    EACH_SEED(2000)
    {
        struct rm_options o = rm_plain();
        o.count = 150;
        o.len = 1000;
        o.window = 65536; /* much has left it */
        o.rx_bps = 1000000;
        o.net.shared_loss = 0.02;
        o.hostile = true;
        struct rm_world *w = rm_create("forged_naks_cause_no_more_than_the_limits_allow", seed, &o);
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        uint64_t begin = sim_now(w->sim);
        for (int i = 0; i < 300; i++) {
            uint8_t packet[UM_LBTR_LIST_BYTES_MAX];
            uint32_t sqns[UM_LBTRM_NAK_MAX], base = o.first_sqn + w->handed - (uint32_t)um_rng_range(&rng, 0, 500);
            for (unsigned n = 0; n < UM_LBTRM_NAK_MAX; n++) {
                sqns[n] = um_rng_range(&rng, 0, 1) ? base + n : (uint32_t)um_rng_u64(&rng);
            }
            size_t len = um_lbtrm_put_nak(packet, &w->session, sqns, UM_LBTRM_NAK_MAX);
            sim_unicast(w->sim, w->stranger_node, w->source_node, packet, len);
            rm_run(w, SIM_MS);
        }
        uint64_t ns = sim_now(w->sim) - begin;
        if (w->repair_bytes > (ns / (10 * SIM_MS) + 1) * w->limiter.rx.allowance ||
            w->ncf_bytes > ncf_bytes_allowed(&o, ns)) {
            rm_broken(w, "NAKs cause more than the retransmission limit allows");
        }
        rm_run(w, 30 * SIM_SEC);
        rm_settled(w, false);
        CHECK(rm_finish(w));
    }
}

/* Packets of other sessions, of no session, and noise. Nothing changes, the counters tell. */
TEST(forged_session_ids_and_random_packets_change_nothing)
{
    EACH_SEED(2000)
    {
        struct rm_options o = rm_plain();
        o.count = 100;
        o.hostile = true;
        struct rm_world *w = rm_create("forged_session_ids_and_random_packets_change_nothing", seed, &o);
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        for (int i = 0; i < 100; i++) {
            uint8_t packet[64];
            size_t len = um_rng_range(&rng, 0, sizeof packet);
            for (size_t b = 0; b < len; b++) {
                packet[b] = (uint8_t)um_rng_u64(&rng);
            }
            if (um_rng_range(&rng, 0, 1) && len >= UM_LBTRM_COMMON_HDR) { /* right but for the id or the port */
                packet[0] = (uint8_t)um_rng_range(&rng, 0, 4);
                packet[1] = 0;
                um_put16(packet + 2, w->session.ucast_port ^ (uint16_t)um_rng_range(&rng, 0, 1));
                um_put32(packet + 4, w->session.session_id + 1);
            }
            sim_multicast(w->sim, RM_GROUP, w->stranger_node, packet, len);
            sim_unicast(w->sim, w->stranger_node, w->source_node, packet, len);
            rm_run(w, SIM_MS);
        }
        rm_run(w, 5 * SIM_SEC);
        rm_settled(w, true);
        const struct um_lbtr_receiver_counters *c = um_lbtr_rcv_engine_counters(w->receivers[0].engine);
        if (w->repairs != 0 || w->ncf_packets != 0 || w->nak_packets != 0 || c->dropped_other == 0 ||
            w->receivers[0].worst_ns != o.net.delay_min_ns ||
            um_lbtr_src_engine_counters(w->source)->packets_ignored != 100) {
            rm_broken(w, "packets of strangers were believed, or not counted");
        }
        CHECK(rm_finish(w));
    }
}

/* ---- data with the right identity and wrong numbers ---- */

/* What a lie had given up is asked for anew, and no rule of timing holds over both times. */
static void expect_lies(struct rm_world *w)
{
    w->timing.backoff_ns = w->timing.suppress_ns = 0;
    w->timing.generation_ns = 600 * SIM_SEC;
}

static void tell_lie(struct rm_world *w, struct um_rng *rng, enum sim_lbtr_lie lie, uint32_t spare)
{
    struct sim_lbtr_forged forged[SIM_FORGED_MAX];
    size_t count = sim_lbtr_forge(rng, lie, w->options.first_sqn, w->options.first_sqn + w->handed - 1, spare, forged);
    for (size_t i = 0; i < count; i++) {
        uint8_t packet[UM_LBTRM_DATA_HDR + 4];
        size_t len =
            um_lbtrm_put_data(packet, &w->session, forged[i].sqn, forged[i].trail, 3, forged[i].retransmission);
        um_put32(packet + len, SIM_FORGED);
        sim_multicast(w->sim, RM_GROUP, w->stranger_node, packet, len + 4);
    }
}

/* The stream goes on under the lie. With a network that loses nothing, nothing is reported lost or taken for old. */
static void judge_truth(struct rm_world *w, enum sim_lbtr_lie lie, bool strict)
{
    rm_settled(w, true);
    for (int i = 0; i < w->options.receivers; i++) {
        struct rm_receiver *r = &w->receivers[i];
        const struct um_lbtr_receiver_counters *c = um_lbtr_rcv_engine_counters(r->engine);
        if (r->delivered + r->origin != w->options.count || r->origin > 3 || r->ended) {
            rm_broken(w, "the lie cost data");
        }
        if (strict && (r->lost != 0 || c->duplicate_data > w->repairs)) {
            rm_broken(w, "the lie was believed");
        }
        if (c->naks_sent > 100000 && lie != SIM_LIE_MIXED) { /* that has answers as well */
            rm_broken(w, "a flood of NAKs for what a lie told");
        }
    }
}

TEST(f9_raised_numbers_and_trails_cost_the_stream_nothing)
{
    EACH_SEED(2000)
    {
        struct rm_options o = rm_plain();
        enum sim_lbtr_lie lie = (enum sim_lbtr_lie)(seed % SIM_LIES);
        /* so many datagrams are believed for a moment: what is under way then counts as lost, and comes */
        bool many = lie == SIM_LIE_RUN_BOTH || lie == SIM_LIE_FAR_STREAM || lie == SIM_LIE_MIXED;
        bool strict = seed / SIM_LIES % 2 == 0 && !many;
        o.receivers = 2;
        o.count = 500;
        o.every_ns = 5 * SIM_MS;
        o.naks.generation_ns = 6 * SIM_SEC;
        o.first_sqn =
            seed / SIM_LIES % 3 == 0 ? 0u - 200 : 0; /* the wrap is in the stream, or what is told is beyond */
        o.net.loss = strict ? 0 : 0.01;
        o.net.duplication = strict ? 0 : 0.01;
        o.net.reordering = strict ? 0 : 0.05;
        o.hostile = true;
        struct rm_world *w = rm_create("f9_raised_numbers_and_trails_cost_the_stream_nothing", seed, &o);
        expect_lies(w);
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        rm_run(w, um_rng_range(&rng, 300, 1000) * SIM_MS);
        tell_lie(w, &rng, lie, 48);
        rm_run(w, 30 * SIM_SEC);
        judge_truth(w, lie, strict);
        CHECK(rm_finish(w));
    }
}

/* What the lie told is long given up when the source goes on; also a source that sends less often than that. */
TEST(f9_a_source_that_was_silent_for_minutes_after_the_lie_is_heard)
{
    EACH_SEED(2000)
    {
        struct rm_options o = rm_plain();
        o.count = 30;
        o.every_ns = um_rng_range(&(struct um_rng){{seed, 1, 2, 3}}, 0, 1) ? 100 * SIM_MS : 15 * SIM_SEC;
        o.first_sqn = seed / SIM_LIES % 2 == 0 ? 0u - 15 : 0;
        o.activity_ns = 3600 * SIM_SEC;
        o.hostile = true;
        struct rm_world *w = rm_create("f9_a_source_that_was_silent_for_minutes_after_the_lie_is_heard", seed, &o);
        expect_lies(w);
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        rm_run(w, 10 * o.every_ns);
        uint64_t next = w->app_due;
        w->app_due = next + 120 * SIM_SEC;
        tell_lie(w, &rng, (enum sim_lbtr_lie)(seed % SIM_LIES), 8);
        rm_run(w, 900 * SIM_SEC);
        judge_truth(w, (enum sim_lbtr_lie)(seed % SIM_LIES), false);
        CHECK(rm_finish(w));
    }
}

/* The first datagram a receiver hears is forged. */
TEST(f9_forged_first_datagram_gives_way_to_the_stream)
{
    EACH_SEED(2000)
    {
        struct rm_options o = rm_plain();
        o.count = 300;
        o.net.loss = seed % 2 == 0 ? 0 : 0.01;
        o.hostile = true;
        struct rm_world *w = rm_create("f9_forged_first_datagram_gives_way_to_the_stream", seed, &o);
        expect_lies(w);
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        tell_lie(w, &rng, (enum sim_lbtr_lie)(seed % SIM_LIES), 300);
        rm_run(w, 30 * SIM_SEC);
        rm_settled(w, true);
        if (w->receivers[0].origin > 2) { /* what was lost before anything came is not known to be missing */
            rm_broken(w, "the beginning of the stream was taken for old");
        }
        CHECK(rm_finish(w));
    }
}

/* A real gap as large as those that are told: with one datagram behind it or many, and a session message or none. */
TEST(f9_real_outages_are_repaired_as_before)
{
    EACH_SEED(2000)
    {
        struct rm_options o = rm_plain();
        unsigned missed = (unsigned)um_rng_range(&(struct um_rng){{seed, 1, 2, 3}}, 1100, 2500);
        o.count = 200 + missed + (seed % 3 == 0 ? 1 : 200);
        o.every_ns = SIM_MS / 2;
        o.data_bps = o.rx_bps = 100000000;
        o.hostile = seed % 2 == 0;
        struct rm_world *w = rm_create("f9_real_outages_are_repaired_as_before", seed, &o);
        expect_lies(w);
        rm_run(w, 10 * SIM_MS + 200 * o.every_ns - SIM_MS / 4);
        w->lose_until_ns = sim_now(w->sim) + missed * o.every_ns;
        if (o.hostile) { /* and a lie in the midst of it */
            struct um_rng rng;
            um_rng_seed(&rng, seed);
            rm_run(w, missed * o.every_ns / 2);
            tell_lie(w, &rng, (enum sim_lbtr_lie)(seed / 2 % SIM_LIES), 3000);
        }
        rm_run(w, 30 * SIM_SEC);
        rm_settled(w, true);
        CHECK(rm_finish(w));
    }
}
