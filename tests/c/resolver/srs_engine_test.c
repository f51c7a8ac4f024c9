/* The SRS engine in virtual time: who is told what, what a reconnect and a restart keep, what expires. */
#include "um_test_srs.h"

static const struct um_srs_stats *stats_of(const struct test_srs *srs)
{
    return um_srs_engine_stats(srs->engine);
}

static struct um_srs_client_stats client_stats(const struct test_client *client)
{
    struct um_srs_client_stats stats;
    um_srs_peer_stats(client->peer, &stats);
    return stats;
}

static void three_seconds(struct um_srs_config *config)
{
    config->source_lifetime_ns = 3 * SECONDS;
    config->interest_lifetime_ns = 3 * SECONDS;
}

TEST(clients_are_numbered_and_told_so)
{
    struct test_srs srs;
    struct test_client a = {0}, b = {0};
    test_srs_start(&srs, NULL);
    test_client_join(&a, &srs, 1, UM_LBMSRS_FILTER);
    test_client_join(&b, &srs, 2, UM_LBMSRS_FILTER);
    CHECK_EQ(a.client_id, 1);
    CHECK_EQ(b.client_id, 2);
    CHECK_EQ(stats_of(&srs)->active_clients, 2);
    test_client_leave(&b);
    CHECK_EQ(stats_of(&srs)->disconnects, 1);
    CHECK_EQ(stats_of(&srs)->max_concurrent, 2);
    um_srs_engine_destroy(srs.engine);
}

TEST(a_filter_client_is_told_of_its_topics_only_and_a_flood_client_of_all)
{
    struct test_srs srs;
    struct test_client source = {0}, filter = {0}, idle = {0}, flood = {0}, late = {0};
    test_srs_start(&srs, NULL);
    test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
    test_client_join(&filter, &srs, 2, UM_LBMSRS_FILTER);
    test_client_join(&idle, &srs, 3, UM_LBMSRS_FILTER);
    test_client_join(&flood, &srs, 4, UM_LBMSRS_FLOOD);
    test_client_sir(&source, 1, "orders");
    test_client_say(&filter, UM_LBMSRS_RIR, 0, "orders", "");
    test_client_say(&filter, UM_LBMSRS_RIR, 0, "quotes", "");
    test_srs_run(&srs, 20 * MS);
    test_client_sir(&source, 2, "quotes");
    test_client_sir(&source, 3, "other");
    test_srs_run(&srs, 20 * MS);
    CHECK_EQ(filter.sirs, 2);
    CHECK_STR(filter.last_topic, "quotes");
    CHECK_STR(filter.last_source, TEST_SOURCE);
    CHECK_EQ(idle.records, 0);
    CHECK_EQ(flood.sirs, 3);
    CHECK_EQ(source.records, 0); /* its own */
    test_client_join(&late, &srs, 5, UM_LBMSRS_FLOOD);
    test_srs_run(&srs, 20 * MS);
    CHECK_EQ(late.sirs, 3);
    CHECK_EQ(client_stats(&filter).sir_sent, 2);
    CHECK_EQ(stats_of(&srs)->active_sources, 3);
    CHECK_EQ(stats_of(&srs)->active_interest, 2);
    um_srs_engine_destroy(srs.engine);
}

TEST(a_deleted_source_is_ended_at_all_who_were_told_of_it_and_nobody_else)
{
    struct test_srs srs;
    struct test_client source = {0}, told = {0}, former = {0}, other = {0};
    test_srs_start(&srs, NULL);
    test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
    test_client_join(&told, &srs, 2, UM_LBMSRS_FILTER);
    test_client_join(&former, &srs, 3, UM_LBMSRS_FILTER);
    test_client_join(&other, &srs, 4, UM_LBMSRS_FILTER);
    test_client_say(&told, UM_LBMSRS_RIR, 0, "orders", "");
    test_client_say(&former, UM_LBMSRS_RIR, 0, "orders", "");
    test_client_say(&other, UM_LBMSRS_RIR, 0, "quotes", "");
    test_client_sir(&source, 1, "orders");
    test_srs_run(&srs, 20 * MS);
    test_client_say(&former, UM_LBMSRS_RDR, 0, "orders", ""); /* nothing ends by that, but it remembers the source */
    test_client_sir(&source, 2, "orders");
    test_srs_run(&srs, 20 * MS);
    CHECK_EQ(former.sers, 0);
    CHECK_EQ(former.sirs, 1);
    test_client_say(&source, UM_LBMSRS_SDR, 1, "orders", "");
    test_client_say(&source, UM_LBMSRS_SDR, 2, "orders", "");
    test_srs_run(&srs, 20 * MS);
    CHECK_EQ(told.sers, 2);
    CHECK_EQ(former.sers, 1);
    CHECK_EQ(other.records, 0);
    CHECK_EQ(stats_of(&srs)->active_sources, 0);
    CHECK_EQ(stats_of(&srs)->active_interest, 2);
    test_client_say(&told, UM_LBMSRS_RDR, 0, "orders", "");
    test_client_say(&other, UM_LBMSRS_RDR, 0, "quotes", "");
    CHECK_EQ(um_srs_engine_topics(srs.engine), 0);
    um_srs_engine_destroy(srs.engine);
}

TEST(patterns_match_sources_before_and_after_them_once_each)
{
    struct test_srs srs;
    struct test_client source = {0}, wild = {0}, second = {0};
    char topic[32];
    test_srs_start(&srs, NULL);
    test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
    test_client_join(&wild, &srs, 2, UM_LBMSRS_FILTER);
    test_client_join(&second, &srs, 3, UM_LBMSRS_FILTER);
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(topic, sizeof(topic), "%s.%u", i % 2 ? "ord" : "quo", i);
        test_client_sir(&source, i, topic);
    }
    test_client_say(&wild, UM_LBMSRS_RIR, 0, "ord.1", "");
    test_client_say(&wild, UM_LBMSRS_WIR, 0, "^ord", "");
    test_client_say(&wild, UM_LBMSRS_WIR, 0, "ord\\.[0-9]+$", ""); /* matches the same */
    test_srs_run(&srs, 100 * MS);
    CHECK_EQ(wild.sirs, 500);
    test_client_sir(&source, 2000, "ord.new");
    test_client_sir(&source, 2001, "quo.new");
    test_client_say(&second, UM_LBMSRS_WIR, 0, "^ord", "");
    test_srs_run(&srs, 100 * MS);
    CHECK_EQ(wild.sirs, 501);
    CHECK_EQ(second.sirs, 501);
    test_client_say(&source, UM_LBMSRS_SDR, 2000, "ord.new", "");
    test_srs_run(&srs, 20 * MS);
    CHECK_EQ(wild.sers, 1);
    CHECK_EQ(second.sers, 1);
    test_client_say(&wild, UM_LBMSRS_WDR, 0, "^ord", "");
    test_client_say(&wild, UM_LBMSRS_WDR, 0, "ord\\.[0-9]+$", "");
    test_client_sir(&source, 3000, "ord.newer");
    test_srs_run(&srs, 20 * MS);
    CHECK_EQ(wild.sirs, 501);
    CHECK_EQ(second.sirs, 502);
    CHECK_EQ(stats_of(&srs)->active_patterns, 1);
    um_srs_engine_destroy(srs.engine);
}

TEST(a_pattern_that_does_not_compile_is_refused_and_the_client_goes_on)
{
    struct test_srs srs;
    struct test_client source = {0}, wild = {0};
    test_srs_start(&srs, NULL);
    test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
    test_client_join(&wild, &srs, 2, UM_LBMSRS_FILTER);
    test_client_say(&wild, UM_LBMSRS_WIR, 0, "(", "");
    test_client_say(&wild, UM_LBMSRS_WIR, 0, ".*", "");
    test_client_sir(&source, 1, "orders");
    test_srs_run(&srs, 20 * MS);
    CHECK_EQ(stats_of(&srs)->refused_records, 1);
    CHECK_EQ(wild.sirs, 1);
    um_srs_engine_destroy(srs.engine);
}

TEST(a_changed_source_is_told_again_and_an_equal_one_is_counted)
{
    struct test_srs srs;
    struct test_client source = {0}, told = {0};
    test_srs_start(&srs, NULL);
    test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
    test_client_join(&told, &srs, 2, UM_LBMSRS_FILTER);
    test_client_say(&told, UM_LBMSRS_RIR, 0, "orders", "");
    test_client_sir(&source, 1, "orders");
    test_srs_run(&srs, 20 * MS);
    test_client_sir(&source, 1, "orders");
    test_srs_run(&srs, 20 * MS);
    CHECK_EQ(told.sirs, 1);
    CHECK_EQ(stats_of(&srs)->duplicate_sources, 1);
    test_client_say(&source, UM_LBMSRS_SIR, 1, "orders", "TCP:10.1.1.5:14372:5eed0002");
    test_srs_run(&srs, 20 * MS);
    CHECK_EQ(told.sirs, 2);
    CHECK_STR(told.last_source, "TCP:10.1.1.5:14372:5eed0002");
    um_srs_engine_destroy(srs.engine);
}

TEST(sources_of_a_killed_client_end_when_their_lifetime_is_over)
{
    struct test_srs srs;
    struct test_client source = {0}, told = {0};
    test_srs_start(&srs, three_seconds);
    test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
    test_client_join(&told, &srs, 2, UM_LBMSRS_FILTER);
    test_client_say(&told, UM_LBMSRS_RIR, 0, "orders", "");
    test_client_say(&source, UM_LBMSRS_RIR, 0, "quotes", "");
    test_client_say(&source, UM_LBMSRS_WIR, 0, "x", "");
    test_client_sir(&source, 1, "orders");
    test_srs_run(&srs, 20 * MS);
    test_client_leave(&source);
    CHECK_EQ(stats_of(&srs)->inactive_sources, 1);
    CHECK_EQ(stats_of(&srs)->inactive_interest, 1);
    CHECK_EQ(stats_of(&srs)->inactive_patterns, 1);
    test_srs_run(&srs, 2990 * MS);
    CHECK_EQ(told.sers, 0);
    test_srs_run(&srs, 200 * MS);
    CHECK_EQ(told.sers, 1);
    CHECK_EQ(stats_of(&srs)->inactive_sources, 0);
    CHECK_EQ(stats_of(&srs)->expired_sources, 1);
    CHECK_EQ(stats_of(&srs)->expired_interest, 1);
    CHECK_EQ(stats_of(&srs)->expired_patterns, 1);
    test_client_leave(&told);
    test_srs_run(&srs, 4 * SECONDS);
    CHECK_EQ(um_srs_engine_topics(srs.engine), 0);
    CHECK_EQ(um_srs_engine_bytes(srs.engine), 0);
    um_srs_engine_destroy(srs.engine);
}

TEST(a_client_that_comes_back_in_time_loses_nothing_and_is_told_everything_again)
{
    struct test_srs srs;
    struct test_client source = {0}, told = {0};
    test_srs_start(&srs, three_seconds);
    test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
    test_client_join(&told, &srs, 2, UM_LBMSRS_FILTER);
    test_client_say(&told, UM_LBMSRS_RIR, 0, "orders", "");
    test_client_sir(&source, 1, "orders");
    test_client_sir(&source, 2, "orders"); /* it does not tell this one again */
    test_srs_run(&srs, 20 * MS);
    test_client_leave(&source);
    test_srs_run(&srs, 2 * SECONDS);
    test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
    test_client_sir(&source, 1, "orders");
    test_srs_run(&srs, 500 * MS);
    CHECK_EQ(told.sirs, 2); /* equal ones are not told again */
    CHECK_EQ(told.sers, 0);
    CHECK_EQ(stats_of(&srs)->active_sources, 1);
    test_srs_run(&srs, 1 * SECONDS);
    CHECK_EQ(told.sers, 1);
    CHECK_EQ(stats_of(&srs)->expired_sources, 1);
    CHECK_EQ(stats_of(&srs)->active_sources, 1);
    test_client_leave(&told);
    test_client_join(&told, &srs, 2, UM_LBMSRS_FILTER);
    test_client_say(&told, UM_LBMSRS_RIR, 0, "orders", "");
    test_srs_run(&srs, 20 * MS);
    CHECK_EQ(told.sirs, 3);
    um_srs_engine_destroy(srs.engine);
}

TEST(a_second_connection_of_a_session_replaces_the_first)
{
    struct test_srs srs;
    struct test_client first = {0}, again = {0}, told = {0};
    test_srs_start(&srs, NULL);
    test_client_join(&told, &srs, 2, UM_LBMSRS_FLOOD);
    test_client_join(&first, &srs, 1, UM_LBMSRS_FILTER);
    test_client_sir(&first, 1, "orders");
    test_client_join(&again, &srs, 1, UM_LBMSRS_FILTER);
    CHECK(first.peer == NULL);
    CHECK_EQ(first.error, UM_RSOCKET_CONNECTION_CLOSE);
    CHECK_EQ(stats_of(&srs)->inactive_sources, 1);
    test_client_sir(&again, 1, "orders");
    test_srs_run(&srs, 20 * MS);
    CHECK_EQ(stats_of(&srs)->active_sources, 1);
    CHECK_EQ(told.sirs, 1);
    CHECK_EQ(told.sers, 0);
    um_srs_engine_destroy(srs.engine);
}

TEST(a_source_left_behind_is_taken_over_and_a_living_one_is_not)
{
    struct test_srs srs;
    struct test_client first = {0}, thief = {0};
    uint8_t otid[UM_LBMSRS_OTID_LEN], instance[UM_LBMSRS_INSTANCE_LEN];
    struct um_lbmsrs_record stolen = test_record(UM_LBMSRS_SIR, 1, 1, "orders", TEST_SOURCE, otid, instance);
    test_srs_start(&srs, NULL);
    test_client_join(&first, &srs, 1, UM_LBMSRS_FILTER);
    test_client_join(&thief, &srs, 2, UM_LBMSRS_FILTER);
    test_client_sir(&first, 1, "orders");
    test_client_put(&thief, &stolen);
    CHECK_EQ(stats_of(&srs)->refused_records, 1);
    stolen.id = UM_LBMSRS_SDR;
    test_client_put(&thief, &stolen);
    CHECK_EQ(stats_of(&srs)->delete_of_others, 1);
    CHECK_EQ(stats_of(&srs)->active_sources, 1);
    test_client_leave(&first);
    stolen.id = UM_LBMSRS_SIR;
    test_client_put(&thief, &stolen);
    CHECK_EQ(stats_of(&srs)->active_sources, 1);
    CHECK_EQ(client_stats(&thief).active_sources, 1);
    um_srs_engine_destroy(srs.engine);
}

TEST(wrong_deletes_and_topics_are_counted)
{
    struct test_srs srs;
    struct test_client client = {0};
    test_srs_start(&srs, NULL);
    test_client_join(&client, &srs, 1, UM_LBMSRS_FILTER);
    test_client_sir(&client, 1, "orders");
    test_client_say(&client, UM_LBMSRS_SDR, 9, "nowhere", "");
    test_client_say(&client, UM_LBMSRS_SDR, 9, "orders", "");
    test_client_sir(&client, 1, "another topic");
    test_client_say(&client, UM_LBMSRS_SLR, 9, "nowhere", TEST_SOURCE);
    test_client_say(&client, UM_LBMSRS_SLR, 9, "orders", TEST_SOURCE);
    test_client_say(&client, UM_LBMSRS_RER, 9, "orders", "");
    test_client_say(&client, UM_LBMSRS_RDR, 9, "orders", "");
    CHECK_EQ(stats_of(&srs)->delete_unknown_topic, 1);
    CHECK_EQ(stats_of(&srs)->delete_unknown_otid, 1);
    CHECK_EQ(stats_of(&srs)->leave_unknown_topic, 1);
    CHECK_EQ(stats_of(&srs)->leave_unknown_otid, 1);
    CHECK_EQ(stats_of(&srs)->active_sources, 1);
    CHECK_EQ(client_stats(&client).invalid_sdr, 2);
    CHECK_EQ(client_stats(&client).invalid_messages, 3);
    um_srs_engine_destroy(srs.engine);
}

static void no_backoff(struct um_srs_config *config)
{
    config->leave_backoff_ns = 0;
}

TEST(a_source_that_was_left_is_told_again_after_the_backoff)
{
    void (*const changes[])(struct um_srs_config *) = {NULL, no_backoff};
    for (int i = 0; i < 2; i++) {
        struct test_srs srs;
        struct test_client source = {0}, told = {0};
        test_srs_start(&srs, changes[i]);
        test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
        test_client_join(&told, &srs, 2, UM_LBMSRS_FILTER);
        test_client_say(&told, UM_LBMSRS_RIR, 0, "orders", "");
        test_client_sir(&source, 1, "orders");
        test_client_sir(&source, 2, "orders");
        test_srs_run(&srs, 20 * MS);
        uint8_t otid[UM_LBMSRS_OTID_LEN], instance[UM_LBMSRS_INSTANCE_LEN];
        struct um_lbmsrs_record leave = test_record(UM_LBMSRS_SLR, 1, 1, "orders", TEST_SOURCE, otid, instance);
        test_client_put(&told, &leave);
        test_client_put(&told, &leave); /* one answer for both */
        test_srs_run(&srs, i == 0 ? 490 * MS : 0);
        CHECK_EQ(told.sirs, 2);
        test_srs_run(&srs, 30 * MS);
        CHECK_EQ(told.sirs, 3);
        test_client_put(&told, &leave);
        test_client_say(&source, UM_LBMSRS_SDR, 1, "orders", "");
        test_srs_run(&srs, 1 * SECONDS);
        CHECK_EQ(told.sirs, 3);
        CHECK_EQ(told.sers, 1);
        um_srs_engine_destroy(srs.engine);
    }
}

TEST(routers_are_told_the_interest_of_all_others_and_its_end)
{
    struct test_srs srs;
    struct test_client before = {0}, router = {0}, after = {0};
    test_srs_start(&srs, three_seconds);
    test_client_join(&before, &srs, 1, UM_LBMSRS_FILTER);
    test_client_say(&before, UM_LBMSRS_RIR, 0, "orders", "");
    test_client_say(&before, UM_LBMSRS_WIR, 0, "^o", "");
    test_client_join(&router, &srs, 2, UM_LBMSRS_FILTER_FORWARD);
    test_client_say(&router, UM_LBMSRS_RIR, 0, "own", "");
    test_client_join(&after, &srs, 3, UM_LBMSRS_FILTER);
    test_srs_run(&srs, 20 * MS);
    CHECK_EQ(router.rirs, 1);
    CHECK_EQ(router.wirs, 1);
    test_client_say(&after, UM_LBMSRS_RIR, 0, "orders", "");
    test_client_say(&after, UM_LBMSRS_RDR, 0, "orders", "");
    test_srs_run(&srs, 20 * MS);
    CHECK_EQ(router.rirs, 2);
    CHECK_EQ(router.rers, 1);
    test_client_leave(&before);
    test_srs_run(&srs, 4 * SECONDS);
    CHECK_EQ(router.rers, 2);
    CHECK_EQ(router.wers, 1);
    CHECK_EQ(before.rirs, 0);
    um_srs_engine_destroy(srs.engine);
}

TEST(records_wait_for_others_in_a_batch_and_for_what_the_client_grants)
{
    struct test_srs srs;
    struct test_client source = {0}, told = {0};
    char topic[32];
    test_srs_start(&srs, NULL);
    test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
    test_client_connect(&told, &srs, 2);
    test_client_setup(&told);
    test_client_register(&told, UM_LBMSRS_APPLICATION, UM_LBMSRS_FLOOD);
    test_client_stream(&told, 2);
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(topic, sizeof(topic), "t.%u", i);
        test_client_sir(&source, i, topic);
    }
    CHECK_EQ(told.sirs, 0);
    test_srs_run(&srs, 1 * SECONDS);
    CHECK_EQ(told.consumed, 2);
    CHECK_EQ(told.sirs, 200);
    CHECK_EQ(client_stats(&told).queue_depth, 800);
    test_client_grant(&told, 3);
    test_srs_run(&srs, 1 * SECONDS);
    CHECK_EQ(told.sirs, 500);
    test_client_grant(&told, 128);
    test_srs_run(&srs, 1 * SECONDS);
    CHECK_EQ(told.sirs, 1000);
    CHECK_EQ(told.consumed, 10);
    um_srs_engine_destroy(srs.engine);
}

static void one_batch_a_turn(struct um_srs_config *config)
{
    config->turn_batches = 1;
}

TEST(long_lists_of_several_clients_go_on_side_by_side)
{
    struct test_srs srs;
    struct test_client source = {0}, told[4] = {0};
    char topic[32];
    test_srs_start(&srs, one_batch_a_turn);
    test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(topic, sizeof(topic), "t.%u", i);
        test_client_sir(&source, i, topic);
    }
    for (uint32_t c = 0; c < 4; c++) {
        test_client_join(&told[c], &srs, 2 + c, UM_LBMSRS_FILTER);
        for (uint32_t i = 0; i < 1000; i++) {
            snprintf(topic, sizeof(topic), "t.%u", i);
            test_client_say(&told[c], UM_LBMSRS_RIR, 0, topic, "");
        }
    }
    test_srs_run(&srs, 1 * SECONDS);
    for (int c = 0; c < 4; c++) {
        CHECK_EQ(told[c].sirs, 1000);
    }
    um_srs_engine_destroy(srs.engine);
}

TEST(a_blocked_connection_is_sent_nothing_until_it_is_writable)
{
    struct test_srs srs;
    struct test_client source = {0}, told = {0};
    test_srs_start(&srs, NULL);
    test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
    test_client_join(&told, &srs, 2, UM_LBMSRS_FLOOD);
    told.blocked = true;
    for (uint32_t i = 0; i < 1000; i++) {
        test_client_sir(&source, i, "orders");
    }
    test_client_keepalive(&told); /* answered, and blocked by that */
    unsigned frames = told.frames;
    for (int i = 0; i < 100; i++) {
        test_client_keepalive(&told);
    }
    test_srs_run(&srs, 1 * SECONDS);
    CHECK_EQ(told.frames, frames);
    told.blocked = false;
    um_srs_peer_on_writable(told.peer, srs.now);
    CHECK_EQ(told.keepalives, 2); /* one answer for all that waited */
    test_srs_run(&srs, 1 * SECONDS);
    CHECK_EQ(told.sirs, 1000);
    um_srs_engine_destroy(srs.engine);
}

TEST(a_topic_whose_interest_was_deleted_by_several_is_freed_once_with_its_last_source)
{
    struct test_srs srs;
    struct test_client source = {0}, former[3] = {{0}};
    test_srs_start(&srs, NULL);
    test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
    for (uint32_t i = 0; i < 3; i++) {
        test_client_join(&former[i], &srs, 2 + i, UM_LBMSRS_FILTER);
        test_client_say(&former[i], UM_LBMSRS_RIR, 0, "orders", "");
    }
    test_client_sir(&source, 1, "orders");
    test_srs_run(&srs, 20 * MS);
    for (int i = 0; i < 3; i++) {
        test_client_say(&former[i], UM_LBMSRS_RDR, 0, "orders", "");
    }
    test_client_say(&source, UM_LBMSRS_SDR, 1, "orders", "");
    test_srs_run(&srs, 20 * MS);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(former[i].sers, 1);
    }
    CHECK_EQ(um_srs_engine_topics(srs.engine), 0);
    um_srs_engine_destroy(srs.engine);
}

/* It remembers the source from before, whether or not the list of what there is now has come. */
TEST(who_deletes_interest_and_has_it_again_is_told_of_the_end_meanwhile)
{
    struct test_srs srs;
    struct test_client source = {0}, told = {0};
    test_srs_start(&srs, NULL);
    test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
    test_client_join(&told, &srs, 2, UM_LBMSRS_FILTER);
    test_client_say(&told, UM_LBMSRS_RIR, 0, "orders", "");
    test_client_sir(&source, 1, "orders");
    test_client_sir(&source, 2, "orders");
    test_srs_run(&srs, 20 * MS);
    test_client_say(&told, UM_LBMSRS_RDR, 0, "orders", "");
    test_client_say(&told, UM_LBMSRS_RIR, 0, "orders", "");
    test_client_say(&source, UM_LBMSRS_SDR, 1, "orders", ""); /* before it is listed again */
    test_client_say(&told, UM_LBMSRS_RDR, 0, "orders", "");
    test_client_say(&source, UM_LBMSRS_SDR, 2, "orders", "");
    test_srs_run(&srs, 20 * MS);
    CHECK_EQ(told.sers, 2);
    test_client_say(&told, UM_LBMSRS_RIR, 0, "orders", "");
    test_client_say(&told, UM_LBMSRS_RDR, 0, "orders", "");
    CHECK_EQ(um_srs_engine_topics(srs.engine), 0);
    um_srs_engine_destroy(srs.engine);
}

TEST(lifetimes_hold_also_after_years)
{
    struct test_srs srs;
    struct test_client source = {0}, told = {0};
    test_srs_start(&srs, three_seconds);
    srs.now += ((1ull << 30) - 5) * 100 * MS; /* what records remember of the time begins anew half of a second later */
    test_srs_run(&srs, 0);
    test_client_join(&source, &srs, 1, UM_LBMSRS_FILTER);
    test_client_join(&told, &srs, 2, UM_LBMSRS_FILTER);
    test_client_say(&told, UM_LBMSRS_RIR, 0, "orders", "");
    test_client_sir(&source, 1, "orders");
    test_srs_run(&srs, 20 * MS);
    test_client_leave(&source);
    test_srs_run(&srs, 2990 * MS);
    CHECK_EQ(told.sers, 0);
    test_srs_run(&srs, 200 * MS);
    CHECK_EQ(told.sers, 1);
    um_srs_engine_destroy(srs.engine);
}
