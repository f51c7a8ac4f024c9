/* LBT-RM engines on a virtual network: losses of every kind, bursts, slow links, outages,
 * joins, restarts, jumping clocks, wraps of the numbers. UM_SIM_SEEDS sets how many seeds
 * run, UM_SIM_SEED replays one. What must hold at every step is in sim_lbtrm.c. */
#include "um_test.h"

#include "sim_lbtrm.h"

static double percent(struct um_rng *rng, uint64_t most)
{
    return (double)um_rng_range(rng, 0, most) / 100;
}

/* Anything a network does, in random measure. */
static struct rm_options any_weather(uint64_t seed)
{
    struct rm_options o = rm_plain();
    struct um_rng rng;
    um_rng_seed(&rng, seed);
    o.net.loss = percent(&rng, 20);
    o.net.shared_loss = percent(&rng, 5);
    o.net.duplication = percent(&rng, 10);
    o.net.reordering = um_rng_range(&rng, 0, 1) ? percent(&rng, 25) : 0;
    o.net.delay_min_ns = um_rng_range(&rng, 20000, 5 * SIM_MS);
    o.first_sqn = 0u - (uint32_t)um_rng_range(&rng, 0, 200); /* many wrap */
    return o;
}

TEST(one_receiver_recovers_from_random_loss)
{
    EACH_SEED(2000)
    {
        struct rm_options o = any_weather(seed);
        o.count = 150;
        CHECK(rm_scenario("one_receiver_recovers_from_random_loss", seed, &o, true));
    }
}

TEST(ten_receivers_with_independent_and_shared_loss)
{
    EACH_SEED(2000)
    {
        struct rm_options o = any_weather(seed);
        o.receivers = 10;
        o.count = 60;
        CHECK(rm_scenario("ten_receivers_with_independent_and_shared_loss", seed, &o, true));
    }
}

TEST(bursts_on_each_link_are_repaired)
{
    EACH_SEED(2000)
    {
        struct rm_options o = rm_plain();
        o.receivers = 3;
        o.count = 200;
        o.net.burst_begin = 0.02;
        o.net.burst_end = 0.1; /* ten datagrams on average */
        CHECK(rm_scenario("bursts_on_each_link_are_repaired", seed, &o, true));
    }
}

/* One of four has a bad link: the others lose nothing and wait for nothing. */
TEST(bad_link_of_one_receiver_is_its_own_trouble)
{
    EACH_SEED(2000)
    {
        struct rm_options o = rm_plain();
        o.receivers = 4;
        o.count = 150;
        struct rm_world *w = rm_create("bad_link_of_one_receiver_is_its_own_trouble", seed, &o);
        sim_impair_node(w->sim, w->receivers[0].node,
                        &(struct sim_impairment){.loss = 0.3,
                                                 .duplication = 0.1,
                                                 .reordering = 0.1,
                                                 .delay_min_ns = SIM_MS,
                                                 .delay_max_ns = 20 * SIM_MS});
        rm_run(w, SIM_SEC);
        sim_impair_node(w->sim, w->receivers[0].node, NULL);
        rm_run(w, 25 * SIM_SEC);
        rm_settled(w, true);
        for (int i = 1; i < 4; i++) {
            if (w->receivers[i].naks != 0 || w->receivers[i].worst_ns != o.net.delay_min_ns) {
                rm_broken(w, "the others were disturbed");
            }
        }
        CHECK(rm_finish(w));
    }
}

/* A link that carries less than is sent drops what its queue does not hold; it recovers when the source is silent. */
TEST(slow_link_catches_up_when_the_source_is_silent)
{
    EACH_SEED(2000)
    {
        struct rm_options o = rm_plain();
        o.receivers = 2;
        o.count = 300;
        o.len = 500; /* 4.2 Mb/s */
        struct rm_world *w = rm_create("slow_link_catches_up_when_the_source_is_silent", seed, &o);
        sim_impair_node(w->sim, w->receivers[0].node,
                        &(struct sim_impairment){.delay_min_ns = SIM_MS, .rate_bps = 3000000, .queue_bytes = 16384});
        rm_run(w, 40 * SIM_SEC);
        rm_settled(w, true);
        const struct um_lbtr_receiver_counters *c = um_lbtr_rcv_engine_counters(w->receivers[0].engine);
        if (c->lost == 0 || w->receivers[1].naks != 0) {
            rm_broken(w, "the link was not too slow, or the other one was");
        }
        CHECK(rm_finish(w));
    }
}

static void outage(const char *name, uint64_t seed, size_t window, bool all)
{
    struct rm_options o = rm_plain();
    o.receivers = 3;
    o.count = 600;
    o.len = 500;
    o.window = window;
    struct rm_world *w = rm_create(name, seed, &o);
    struct rm_receiver *cut = &w->receivers[0];
    rm_run(w, 100 * SIM_MS + seed % 50 * SIM_MS);
    sim_island(w->sim, cut->node, 1);
    rm_run(w, 300 * SIM_MS);
    sim_island(w->sim, cut->node, 0);
    rm_run(w, 30 * SIM_SEC);
    rm_settled(w, all);
    if (!all && (cut->lost < 100 || cut->lost > 300 || w->receivers[1].lost != 0)) {
        rm_broken(w, "the wrong receiver lost datagrams, or too many");
    }
    CHECK(rm_finish(w));
}

TEST(outage_within_the_window_is_repaired)
{
    EACH_SEED(2000)
    {
        outage("outage_within_the_window_is_repaired", seed, 25165824, true);
    }
}

TEST(window_that_is_overrun_is_reported_and_the_stream_goes_on)
{
    EACH_SEED(2000)
    {
        outage("window_that_is_overrun_is_reported_and_the_stream_goes_on", seed, 65536, false); /* 131 datagrams */
    }
}

TEST(repairs_cut_off_for_longer_than_the_generation_interval_are_reported)
{
    EACH_SEED(2000)
    {
        struct rm_options o = rm_plain();
        o.count = 200;
        o.naks.generation_ns = 2 * SIM_SEC;
        struct rm_world *w =
            rm_create("repairs_cut_off_for_longer_than_the_generation_interval_are_reported", seed, &o);
        struct rm_receiver *r = &w->receivers[0];
        rm_run(w, 50 * SIM_MS);
        w->lose_until_ns = sim_now(w->sim) + 20 * SIM_MS + 1;
        rm_run(w, 21 * SIM_MS);
        sim_stop_node(w->sim, w->source_node, true); /* hears no NAK */
        rm_run(w, 5 * SIM_SEC);
        sim_stop_node(w->sim, w->source_node, false);
        rm_run(w, 15 * SIM_SEC);
        rm_settled(w, false);
        if (r->delivered + r->lost != o.count || r->lost > 21 || r->late != 0) {
            rm_broken(w, "not exactly the missing ones are reported");
        }
        CHECK(rm_finish(w));
    }
}

TEST(receiver_that_joins_mid_stream_gets_everything_from_then_on)
{
    EACH_SEED(2000)
    {
        struct rm_options o = any_weather(seed);
        o.receivers = 2;
        o.count = 200;
        struct rm_world *w = rm_create("receiver_that_joins_mid_stream_gets_everything_from_then_on", seed, &o);
        struct rm_receiver *late = &w->receivers[1];
        rm_leave(late);
        rm_run(w, 100 * SIM_MS);
        rm_join(late);
        rm_run(w, 300 * SIM_MS);
        w->options.net.loss = w->options.net.shared_loss = 0;
        rm_impair(w);
        rm_run(w, 25 * SIM_SEC);
        rm_settled(w, true);
        if (late->origin < 75 || late->origin > 130) {
            rm_broken(w, "joined at the wrong place");
        }
        CHECK(rm_finish(w));
    }
}

TEST(restarted_sender_is_another_session)
{
    EACH_SEED(2000)
    {
        struct rm_options o = rm_plain();
        o.receivers = 2;
        o.count = 150;
        o.net.loss = 0.02;
        o.activity_ns = 5 * SIM_SEC;
        struct rm_world *w = rm_create("restarted_sender_is_another_session", seed, &o);
        rm_run(w, 80 * SIM_MS);
        unsigned first = w->handed;
        rm_restart_source(w);
        rm_run(w, SIM_SEC); /* packets of the new session do not reach the old engines */
        for (int i = 0; i < 2; i++) {
            if (w->receivers[i].ended || w->receivers[i].delivered > first) {
                rm_broken(w, "ended early, or took the new session for the old one");
            }
        }
        rm_run(w, 5 * SIM_SEC);
        for (int i = 0; i < 2; i++) {
            rm_broken(w, !w->receivers[i].ended || !w->receivers[i].begun ? "no end after the silence" : NULL);
            rm_leave(&w->receivers[i]);
            rm_join(&w->receivers[i]);
        }
        w->app_due = sim_now(w->sim);
        sim_set_timer(w->sim, w->source_node, w->app_due);
        rm_run(w, 200 * SIM_MS);
        w->options.net.loss = 0;
        rm_impair(w);
        rm_run(w, 4 * SIM_SEC);
        rm_settled(w, true);
        CHECK(rm_finish(w));
    }
}

/* Clocks of the source and of the receivers jump, ahead and back, asleep or awake. */
TEST(jumping_clocks_lose_nothing_that_can_be_repaired)
{
    EACH_SEED(2000)
    {
        struct rm_options o = rm_plain();
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        o.receivers = 2;
        o.count = 300;
        o.net.loss = 0.05;
        o.hostile = true; /* intervals seen from outside mean nothing */
        o.naks.generation_ns = 60 * SIM_SEC;
        o.activity_ns = 600 * SIM_SEC;
        struct rm_world *w = rm_create("jumping_clocks_lose_nothing_that_can_be_repaired", seed, &o);
        w->timing.backoff_ns = w->timing.ignore_ns = w->timing.sm_min_ns = w->timing.suppress_ns = 0;
        for (int i = 0; i < 5; i++) {
            rm_run(w, um_rng_range(&rng, 1, 50) * SIM_MS);
            int64_t by_ns = (int64_t)um_rng_range(&rng, 0, 3150) - 150;
            int node = um_rng_range(&rng, 0, 1) ? w->source_node : w->receivers[0].node;
            sim_jump_clock(w->sim, node, by_ns * (int64_t)SIM_MS);
        }
        sim_stop_node(w->sim, w->receivers[1].node, true); /* asleep: what comes meanwhile is lost */
        rm_run(w, 20 * SIM_MS);
        sim_stop_node(w->sim, w->receivers[1].node, false);
        sim_jump_clock(w->sim, w->receivers[1].node, 3 * SIM_SEC);
        rm_run(w, SIM_SEC);
        w->options.net.loss = 0;
        rm_impair(w);
        rm_run(w, 60 * SIM_SEC);
        rm_settled(w, true);
        CHECK(rm_finish(w));
    }
}
