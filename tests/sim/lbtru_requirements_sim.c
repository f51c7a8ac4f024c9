/* What users ask of reliable unicast, on the simulated network: one test for each
 * requirement, named after its id. UM_SIM_SEEDS sets how many seeds run, UM_SIM_SEED
 * replays one. */
#include "um_test.h"

#include "sim_lbtru.h"

/* Time between messages to all receivers that use this share of the data limit. */
static uint64_t pace(const struct ru_options *o, double share)
{
    return (uint64_t)(o->receivers * (double)(o->len + 20) * 8 / (share * (double)o->data_bps) * 1e9);
}

TEST(m1_ten_receivers_near_the_rate_limit_recover_everything)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.receivers = 10;
        o.count = 60;
        o.len = 1000;
        o.net.loss = 0.01;
        o.every_ns = pace(&o, 0.95);
        CHECK(ru_scenario("m1_ten_receivers_near_the_rate_limit_recover_everything", seed, &o));
    }
}

TEST(m5_a_hundred_gaps_are_repaired_within_three_intervals)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.count = 400;
        o.every_ns = 100000;
        o.rx_bps = o.data_bps = 100000000;
        struct ru_world *w = ru_create("m5_a_hundred_gaps_are_repaired_within_three_intervals", seed, &o);
        struct ru_receiver *r = &w->receivers[0];
        ru_run(w, SIM_SEC - 50000);
        for (int i = 0; i < 100; i++) { /* every fourth datagram, before repairs come */
            ru_run(w, 300000);
            sim_island(w->sim, r->node, i < 95);
            ru_run(w, 100000);
            sim_island(w->sim, r->node, 0);
        }
        ru_run(w, 20 * SIM_SEC);
        ru_all_delivered(w);
        uint64_t lost = um_lbtr_rcv_engine_counters(r->engine)->lost;
        if (lost < 90 || r->worst_ns > 3 * o.naks.backoff_ns || r->nak_numbers > 150 || r->naks > 150) {
            ru_broken(w, "gaps are repaired one after the other, or asked for too often");
        }
        CHECK(ru_finish(w));
    }
}

TEST(m7_goodput_falls_in_proportion_to_loss)
{
    static const double losses[] = {0.00001, 0.0001, 0.001, 0.003, 0.01, 0.03, 0.05, 0.1}, loads[] = {0.5, 0.9, 1.0};
    EACH_SEED(2000) /* each takes another step of the ladder */
    {
        struct ru_options o = ru_plain();
        double loss = losses[seed % 8], load = loads[seed / 8 % 3];
        o.count = 800;
        o.len = 1000;
        o.every_ns = pace(&o, load);
        struct ru_world *w = ru_create("m7_goodput_falls_in_proportion_to_loss", seed, &o);
        ru_run(w, SIM_SEC - 50 * SIM_MS); /* connected: how long that takes under loss is not the subject */
        w->options.net.loss = loss;
        ru_impair(w);
        ru_run(w, 50 * SIM_MS + o.count * o.every_ns / 2);
        if (w->handed < o.count / 2.0 * 0.95) { /* repairs have a limit of their own */
            ru_broken(w, "goodput falls more than in proportion to the loss");
        }
        w->options.net.loss = 0;
        ru_impair(w);
        ru_run(w, 30 * SIM_SEC);
        ru_all_delivered(w);
        CHECK(ru_finish(w));
    }
}

TEST(m8_without_naks_nothing_waits_and_only_what_was_lost_is_missing)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.count = 1000;
        o.naks.send_naks = false;
        struct ru_world *w = ru_create("m8_without_naks_nothing_waits_and_only_what_was_lost_is_missing", seed, &o);
        ru_run(w, 900 * SIM_MS);
        w->options.net.loss = 0.003;
        ru_impair(w);
        ru_run(w, 30 * SIM_SEC);
        struct ru_receiver *r = &w->receivers[0];
        if (r->worst_ns > o.net.delay_min_ns || r->lost > 15 || r->naks != 0 || r->delivered + r->lost != o.count) {
            ru_broken(w, "more is missing than was lost, or it waited");
        }
        CHECK(ru_finish(w));
    }
}

TEST(m9_data_flows_again_after_the_link_was_down)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        uint64_t down_ns = seed % 2 ? 50 * SIM_MS : 9 * SIM_SEC; /* shorter than the source takes a client for dead */
        o.every_ns = seed % 2 ? SIM_MS : 50 * SIM_MS;
        o.count = 300;
        struct ru_world *w = ru_create("m9_data_flows_again_after_the_link_was_down", seed, &o);
        struct ru_receiver *r = &w->receivers[0];
        ru_run(w, SIM_SEC + 50 * o.every_ns);
        sim_island(w->sim, r->node, 1);
        ru_run(w, down_ns);
        sim_island(w->sim, r->node, 0);
        uint64_t up = sim_now(w->sim);
        ru_run(w, 2 * SIM_SEC);
        if (r->last_delivery_ns <= up) {
            ru_broken(w, "no data after the link came up");
        }
        ru_run(w, 60 * SIM_SEC);
        ru_all_delivered(w);
        CHECK(ru_finish(w));
    }
}

/* The slow one asks for everything again; the others and the source do not wait for it. */
TEST(s3_a_stopped_receiver_delays_nobody)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.receivers = 4;
        o.count = 300;
        o.len = 1000;
        o.every_ns = 20 * SIM_MS;
        struct ru_world *w = ru_create("s3_a_stopped_receiver_delays_nobody", seed, &o);
        ru_run(w, 1500 * SIM_MS + seed % 100 * SIM_MS);
        sim_stop_node(w->sim, w->receivers[0].node, true);
        ru_run(w, 5 * SIM_SEC);
        sim_stop_node(w->sim, w->receivers[0].node, false);
        ru_run(w, 30 * SIM_SEC);
        ru_all_delivered(w);
        for (int i = 1; i < 4; i++) {
            if (w->receivers[i].worst_ns != o.net.delay_min_ns || w->receivers[i].naks != 0) {
                ru_broken(w, "the others waited");
            }
        }
        for (unsigned n = 1; n < o.count; n++) {
            ru_broken(w, w->sent_ns[n] - w->sent_ns[n - 1] != o.every_ns ? "the source waited" : NULL);
        }
        CHECK(ru_finish(w));
    }
}

/* One client lost a second's worth, another one datagram: the latter does not wait for the former. */
TEST(s3_repairs_for_one_client_do_not_wait_for_another)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.receivers = 2;
        o.count = 300;
        o.len = 1000;
        o.every_ns = 2 * SIM_MS;
        o.rx_bps = 1000000; /* 250 datagrams take two seconds */
        struct ru_world *w = ru_create("s3_repairs_for_one_client_do_not_wait_for_another", seed, &o);
        ru_run(w, 1050 * SIM_MS);
        sim_island(w->sim, w->receivers[seed % 2].node, 1);
        ru_run(w, 300 * SIM_MS);
        sim_island(w->sim, w->receivers[seed % 2].node, 0);
        ru_run(w, 100 * SIM_MS);
        sim_island(w->sim, w->receivers[1 - seed % 2].node, 1);
        ru_run(w, 3 * SIM_MS);
        sim_island(w->sim, w->receivers[1 - seed % 2].node, 0);
        ru_run(w, 30 * SIM_SEC);
        ru_all_delivered(w);
        if (w->receivers[1 - seed % 2].worst_ns > 500 * SIM_MS) {
            ru_broken(w, "one client's repairs waited for all of the other's");
        }
        CHECK(ru_finish(w));
    }
}

TEST(s5_full_rate_again_within_a_second_after_congestion)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.receivers = 3;
        o.count = 300;
        o.len = 4000;
        o.every_ns = pace(&o, 0.9);
        struct ru_world *w = ru_create("s5_full_rate_again_within_a_second_after_congestion", seed, &o);
        ru_run(w, SIM_SEC);
        if (seed % 3 == 0) { /* the application wants more than the limit allows ... */
            w->options.every_ns = o.every_ns / 2;
        } else if (seed % 3 == 1) { /* ... the network loses much ... */
            w->options.net.loss = 0.4;
        } else { /* ... or carries little */
            w->options.net.rate_bps = 1500000;
            w->options.net.queue_bytes = 65536;
        }
        ru_impair(w);
        ru_run(w, SIM_SEC);
        w->options.every_ns = o.every_ns;
        w->options.net.loss = 0;
        w->options.net.rate_bps = 0;
        ru_impair(w);
        ru_run(w, SIM_SEC);
        unsigned before = w->handed;
        ru_run(w, SIM_SEC / 2);
        if ((double)(w->handed - before) < 0.95 * 0.5 * (double)SIM_SEC / (double)o.every_ns - 1) {
            ru_broken(w, "the rate does not come back");
        }
        ru_run(w, 40 * SIM_SEC);
        ru_all_delivered(w);
        CHECK(ru_finish(w));
    }
}

/* Longer than the source waits for a client: dropped, reset when it comes back, and connected anew by the layer above.
 */
TEST(h5_a_receiver_paused_for_thirty_seconds_is_reset)
{
    EACH_SEED(2000)
    {
        struct ru_options o = ru_plain();
        o.receivers = 2;
        o.count = 400;
        o.every_ns = 100 * SIM_MS;
        struct ru_world *w = ru_create("h5_a_receiver_paused_for_thirty_seconds_is_reset", seed, &o);
        struct ru_receiver *paused = &w->receivers[0];
        ru_run(w, 2 * SIM_SEC);
        sim_stop_node(w->sim, paused->node, true);
        ru_run(w, 30 * SIM_SEC);
        if (w->disconnects != 1) {
            ru_broken(w, "it was not taken for dead");
        }
        sim_stop_node(w->sim, paused->node, false);
        ru_run(w, SIM_SEC);
        if (paused->ends != 1 || paused->why != UM_LBTR_END_RESET) {
            ru_broken(w, "it was not reset");
        }
        ru_rejoin(paused);
        ru_run(w, 40 * SIM_SEC);
        if (paused->begins != 2 || w->receivers[1].delivered != o.count ||
            w->receivers[1].worst_ns != o.net.delay_min_ns) {
            ru_broken(w, "it did not connect again, or the other one waited");
        }
        CHECK(ru_finish(w));
    }
}
