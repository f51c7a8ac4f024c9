/* LBT-RU engines on a virtual network: connecting, losses of every kind, many clients,
 * silent clients, resets, outages, jumping clocks. UM_SIM_SEEDS sets how many seeds run,
 * UM_SIM_SEED replays one. What must hold at every step is in sim_lbtru.c. */
#include "um_test.h"

#include "sim_lbtru.h"

static double percent(struct um_rng *rng, uint64_t most)
{
    return (double)um_rng_range(rng, 0, most) / 100;
}

TEST(one_client_recovers_from_random_loss)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        o.count = 100;
        o.net.loss = percent(&rng, 20);
        o.net.duplication = percent(&rng, 10);
        o.net.reordering = um_rng_range(&rng, 0, 1) ? percent(&rng, 25) : 0;
        o.net.delay_min_ns = um_rng_range(&rng, 20000, 5 * SIM_MS);
        o.first_sqn = 0u - (uint32_t)um_rng_range(&rng, 0, 200); /* many wrap */
        o.sid = um_rng_range(&rng, 0, 1) ? RU_SID : 0;
        CHECK(ru_scenario("one_client_recovers_from_random_loss", seed, &o));
    }
}

TEST(ten_clients_each_recover_what_they_lost)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.receivers = 10;
        o.count = 40;
        o.net.loss = 0.05;
        o.net.burst_begin = seed % 2 ? 0.01 : 0;
        o.net.burst_end = 0.2;
        CHECK(ru_scenario("ten_clients_each_recover_what_they_lost", seed, &o));
    }
}

TEST(a_hundred_clients_share_the_rate_limit)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.receivers = 100;
        o.count = 8;
        o.len = 1000; /* 100 x 1020 bytes each: more than the limit carries at this pace */
        o.net.loss = 0.01;
        struct ru_world *w = ru_create("a_hundred_clients_share_the_rate_limit", seed, &o);
        ru_run(w, 3 * SIM_SEC);
        w->options.net.loss = 0; /* repairs lost again and again would take longer */
        ru_impair(w);
        ru_run(w, 5 * SIM_SEC);
        ru_all_delivered(w);
        CHECK(ru_finish(w));
    }
}

TEST(absent_source_ends_the_attempts)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.connect_attempts = 5;
        o.count = 1;
        struct ru_world *w = ru_create("absent_source_ends_the_attempts", seed, &o);
        w->deaf = true;
        ru_run(w, 5 * SIM_SEC);
        struct ru_receiver *r = &w->receivers[0];
        if (r->requests != 5 || r->begins != 0 || r->ends != 1 || r->why != UM_LBTR_END_NO_ANSWER) {
            ru_broken(w, "not five requests and one end");
        }
        CHECK(ru_finish(w));
    }
}

/* A lost answer costs nothing: the next request is answered again, or the first datagram connects. */
TEST(lost_answers_and_requests_delay_the_connection_only)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.count = 30;
        struct ru_world *w = ru_create("lost_answers_and_requests_delay_the_connection_only", seed, &o);
        w->options.net.loss = 0.6;
        ru_impair(w);
        ru_run(w, 900 * SIM_MS);
        w->options.net.loss = 0;
        ru_impair(w);
        ru_run(w, 5 * SIM_SEC);
        ru_all_delivered(w);
        if (w->connects != 1) {
            ru_broken(w, "one client was counted twice");
        }
        CHECK(ru_finish(w));
    }
}

TEST(silent_client_is_dropped_then_reset_and_connects_again)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.receivers = 2;
        o.count = 400;
        o.every_ns = 50 * SIM_MS;
        struct ru_world *w = ru_create("silent_client_is_dropped_then_reset_and_connects_again", seed, &o);
        struct ru_receiver *r = &w->receivers[0];
        ru_run(w, 2 * SIM_SEC + seed % 100 * SIM_MS);
        sim_island(w->sim, r->node, 1);
        ru_run(w, 12 * SIM_SEC);
        if (w->disconnects != 1 || um_lbtru_src_engine_clients(w->source) != 1) {
            ru_broken(w, "the silent client was not dropped");
        }
        sim_island(w->sim, r->node, 0);
        ru_run(w, SIM_SEC);
        if (r->ends != 1 || r->why != UM_LBTR_END_RESET || w->resets == 0) {
            ru_broken(w, "the client was not reset");
        }
        ru_rejoin(r);
        ru_run(w, 2 * SIM_SEC);
        if (r->begins != 2 || w->connects != 3 || r->last_delivery_ns < sim_now(w->sim) - 200 * SIM_MS) {
            ru_broken(w, "the client does not get data again");
        }
        ru_run(w, 30 * SIM_SEC);
        if (w->receivers[1].delivered != o.count) {
            ru_broken(w, "the other client was disturbed");
        }
        CHECK(ru_finish(w));
    }
}

TEST(outage_longer_than_the_window_is_reported)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.count = 600;
        o.len = 500;
        o.window = seed % 2 ? 25165824 : 65536; /* all, or 131 datagrams */
        struct ru_world *w = ru_create("outage_longer_than_the_window_is_reported", seed, &o);
        struct ru_receiver *r = &w->receivers[0];
        ru_run(w, 1200 * SIM_MS);
        sim_island(w->sim, r->node, 1);
        ru_run(w, 300 * SIM_MS);
        sim_island(w->sim, r->node, 0);
        ru_run(w, 30 * SIM_SEC);
        if (r->delivered + r->lost != o.count || (seed % 2 ? r->lost != 0 : r->lost < 100)) {
            ru_broken(w, "neither delivered nor reported lost");
        }
        CHECK(ru_finish(w));
    }
}

TEST(restarted_source_resets_its_old_clients)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.count = 50;
        o.sid = 0; /* with a session id the old clients are not answered at all */
        struct ru_world *w = ru_create("restarted_source_resets_its_old_clients", seed, &o);
        struct ru_receiver *r = &w->receivers[0];
        ru_run(w, 500 * SIM_MS);
        ru_restart_source(w);
        ru_run(w, SIM_SEC);
        if (r->ends != 1 || r->why != UM_LBTR_END_RESET) {
            ru_broken(w, "the old client was not reset");
        }
        ru_rejoin(r);
        ru_run(w, 5 * SIM_SEC);
        if (r->begins != 2 || um_lbtru_src_engine_clients(w->source) != 1) {
            ru_broken(w, "it did not connect again");
        }
        CHECK(ru_finish(w));
    }
}

TEST(jumping_clocks_lose_nothing_that_can_be_repaired)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        struct um_rng rng;
        um_rng_seed(&rng, seed);
        o.receivers = 2;
        o.naks.generation_ns = 60 * SIM_SEC;
        o.hostile = true; /* intervals seen from outside mean nothing */
        struct ru_world *w = ru_create("jumping_clocks_lose_nothing_that_can_be_repaired", seed, &o);
        w->timing = (struct sim_lbtr_timing){.generation_ns = 600 * SIM_SEC};
        ru_run(w, SIM_SEC - 50 * SIM_MS); /* connected: who is not yet is forgotten when clocks jump by seconds */
        w->options.net.loss = 0.05;
        ru_impair(w);
        ru_run(w, 50 * SIM_MS);
        for (int i = 0; i < 5; i++) {
            ru_run(w, um_rng_range(&rng, 1, 50) * SIM_MS);
            int64_t by_ns = (int64_t)um_rng_range(&rng, 0, 1650) - 150; /* five are shorter than the client timeout */
            int node = um_rng_range(&rng, 0, 1) ? w->source_node : w->receivers[0].node;
            sim_jump_clock(w->sim, node, by_ns * (int64_t)SIM_MS);
        }
        w->options.net.loss = 0;
        ru_impair(w);
        ru_run(w, 60 * SIM_SEC);
        ru_all_delivered(w);
        CHECK(ru_finish(w));
    }
}
