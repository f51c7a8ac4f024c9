/* Joins that bring nothing, in virtual time: whatever the cause and however long it lasts, the join succeeds soon after
 * its end, and what strangers make up is bounded. The attempts are those of the transports, reduced to their times. */
#include "base/um_mem.h"
#include "base/um_random.h"
#include "core/um_join_retries.h"
#include "um_test.h"

#define HOUR_NS (3600 * UM_NS_PER_SEC)
#define JOIN_WITHIN_NS (10 * UM_NS_PER_SEC)
#define CAUSES 200 /* of each kind, with a length of their own */

/* How an attempt goes while the cause lasts, and when it would notice its end. */
enum kind {
    REFUSED,   /* at once: a slot taken, no descriptors; any transport */
    CONNECT,   /* TCP without an answer: asks at 0, 1 and 3 s, ends after 4 s */
    REQUESTS,  /* LBT-RU without an answer: asks every 100 ms, ends after 60 s */
    LISTENING, /* LBT-RM: hears the source every second, ends after 60 s of silence */
    KINDS
};

static const uint64_t attempt_ns[KINDS] = {0, 4 * UM_NS_PER_SEC, 60 * UM_NS_PER_SEC, 60 * UM_NS_PER_SEC};

struct source {
    lbm_transport_source_info_t info;
    struct um_join_retry_topic *topic;
    struct um_join_retry *retry; /* under way */
    struct um_timer outcome;
    enum kind kind;
    uint64_t cause_ends_ns, joined_ns, failed_ns;
    unsigned attempts;
};

static struct {
    struct um_timer_wheel *wheel;
    struct um_join_retries *retries;
    struct source *sources;
    size_t count;
    uint64_t now_ns;
    unsigned under_way, under_way_max, given_up;
} world;

/* When an attempt begun at `start_ns` reaches the source; UM_NEVER: not at all. */
static uint64_t answer_at(const struct source *source, uint64_t start_ns)
{
    static const uint64_t syn_ns[] = {0, UM_NS_PER_SEC, 3 * UM_NS_PER_SEC};
    uint64_t end_ns = start_ns + attempt_ns[source->kind];
    uint64_t step_ns = source->kind == REQUESTS ? UM_NS_PER_SEC / 10 : UM_NS_PER_SEC;
    switch (source->kind) {
    case REFUSED:
        return start_ns >= source->cause_ends_ns ? start_ns : UM_NEVER;
    case CONNECT:
        for (size_t i = 0; i < sizeof syn_ns / sizeof syn_ns[0]; i++) {
            if (start_ns + syn_ns[i] >= source->cause_ends_ns) {
                return start_ns + syn_ns[i];
            }
        }
        return UM_NEVER;
    default:
        for (uint64_t at_ns = start_ns; at_ns < end_ns; at_ns += step_ns) {
            if (at_ns >= source->cause_ends_ns) {
                return at_ns;
            }
        }
        return UM_NEVER;
    }
}

static void on_outcome(struct um_timer *timer, uint64_t now_ns)
{
    struct source *source = UM_CONTAINER_OF(timer, struct source, outcome);
    struct um_join_retry *retry = source->retry;
    source->retry = NULL;
    world.under_way--;
    if (now_ns < source->failed_ns) {
        source->joined_ns = now_ns;
        um_join_retry_forget(retry, true, now_ns);
    } else {
        um_join_retry_failed(retry, now_ns);
    }
}

static struct source *find(const lbm_transport_source_info_t *info)
{
    return &world.sources[info->topic_idx];
}

static void attempt(struct um_join_retry_topic *topic, struct um_join_retry *retry,
                    const lbm_transport_source_info_t *info, uint64_t now_ns)
{
    struct source *source = find(info);
    uint64_t answer_ns = answer_at(source, now_ns);
    source->attempts++;
    if (source->kind == REFUSED && answer_ns == UM_NEVER) {
        um_join_retry_failed(retry, now_ns);
        return;
    }
    source->retry = retry;
    source->failed_ns = answer_ns == UM_NEVER ? now_ns + attempt_ns[source->kind] : UM_NEVER;
    um_timer_arm(world.wheel, &source->outcome, answer_ns == UM_NEVER ? source->failed_ns : answer_ns);
    world.under_way++;
    world.under_way_max = world.under_way > world.under_way_max ? world.under_way : world.under_way_max;
}

static void given_up(struct um_join_retry_topic *topic, const lbm_transport_source_info_t *info, const char *why,
                     uint64_t now_ns)
{
    world.given_up++;
}

static const struct um_join_retry_ops ops = {attempt, given_up};

static void world_open(size_t count)
{
    memset(&world, 0, sizeof world);
    world.now_ns = UM_NS_PER_SEC;
    world.wheel = um_timer_wheel_create(world.now_ns);
    world.retries = um_join_retries_create(world.wheel, &ops);
    world.sources = calloc(count, sizeof *world.sources);
    world.count = count;
    for (size_t i = 0; i < count; i++) {
        struct source *source = &world.sources[i];
        source->info.type = LBM_TRANSPORT_TYPE_TCP;
        source->info.src_ip = 0x0100000au;
        source->info.src_port = (lbm_uint16_t)(10000 + i);
        source->info.session_id = (lbm_uint32_t)i;
        source->info.topic_idx = (lbm_uint32_t)i; /* find() */
        um_timer_init(&source->outcome, on_outcome);
    }
}

static void world_close(void)
{
    um_join_retries_destroy(world.retries);
    um_timer_wheel_destroy(world.wheel);
    free(world.sources);
}

static void run_until(uint64_t end_ns)
{
    uint64_t next_ns;
    while ((next_ns = um_timer_next(world.wheel)) <= end_ns) {
        world.now_ns = next_ns > world.now_ns ? next_ns : world.now_ns;
        um_timer_run(world.wheel, world.now_ns);
    }
    world.now_ns = end_ns;
}

static bool keep(size_t i, struct um_join_retry_topic *topic, bool proved)
{
    world.sources[i].topic = topic;
    return um_join_retries_keep(world.retries, topic, &world.sources[i].info, proved, world.now_ns);
}

static unsigned waiting(void)
{
    struct um_join_retries_stats stats;
    um_join_retries_stats(world.retries, &stats);
    return stats.waiting;
}

/* Nobody advertises: the first failure is all that is ever heard of the source. */
static void joins_after_a_cause_of(enum kind kind)
{
    struct um_rng rng;
    um_rng_seed(&rng, 13);
    for (int i = 0; i < CAUSES; i++) {
        struct um_join_retry_topic topic;
        world_open(1);
        um_join_retry_topic_init(&topic);
        struct source *source = &world.sources[0];
        source->kind = kind;
        source->cause_ends_ns = world.now_ns + um_rng_range(&rng, 1, i % 2 != 0 ? HOUR_NS : 200 * UM_NS_PER_SEC);
        CHECK(keep(0, &topic, false));
        run_until(source->cause_ends_ns + JOIN_WITHIN_NS);
        CHECK(source->joined_ns != 0);
        CHECK_EQ(topic.count, 0);
        CHECK_EQ(world.given_up, 0);
        world_close();
    }
}

TEST(f13_a_join_refused_for_up_to_an_hour_succeeds_within_ten_seconds_of_the_end_of_the_cause)
{
    joins_after_a_cause_of(REFUSED);
}

TEST(f13_a_tcp_source_unreachable_for_up_to_an_hour_is_joined_within_ten_seconds)
{
    joins_after_a_cause_of(CONNECT);
}

TEST(f13_an_lbtru_source_unreachable_for_up_to_an_hour_is_joined_within_ten_seconds)
{
    joins_after_a_cause_of(REQUESTS);
}

TEST(f13_an_lbtrm_source_unreachable_for_up_to_an_hour_is_joined_within_ten_seconds)
{
    joins_after_a_cause_of(LISTENING);
}

TEST(f13_a_source_that_was_never_heard_of_again_is_forgotten_after_two_hours)
{
    struct um_join_retry_topic topic;
    world_open(1);
    um_join_retry_topic_init(&topic);
    world.sources[0].cause_ends_ns = UM_NEVER;
    CHECK(keep(0, &topic, false));
    run_until(world.now_ns + HOUR_NS);
    struct um_join_retry *retry = um_join_retries_find(world.retries, &topic, &world.sources[0].info);
    CHECK(retry != NULL);
    CHECK(world.sources[0].attempts <= 3600 / 4);
    um_join_retry_heard(retry, world.now_ns);
    run_until(world.now_ns + UM_JOIN_RETRY_KEPT_NS - UM_NS_PER_SEC);
    CHECK_EQ(topic.count, 1);
    run_until(world.now_ns + 2 * JOIN_WITHIN_NS);
    CHECK_EQ(topic.count, 0);
    CHECK_EQ(world.given_up, 1);
    CHECK_EQ(um_timer_next(world.wheel), UM_NEVER);
    world_close();
}

/* A host with 5,000 topics on twenty sessions goes away for half an hour: one attempt for each session at a time. */
TEST(f13_topics_of_one_session_are_tried_together_and_joined_together)
{
    enum { TOPICS = 5000, SESSIONS = 20 };
    struct um_join_retry_topic *topics = calloc(TOPICS, sizeof *topics);
    world_open(TOPICS);
    uint64_t ends_ns = world.now_ns + HOUR_NS / 2;
    for (int i = 0; i < TOPICS; i++) {
        struct source *source = &world.sources[i];
        source->kind = CONNECT;
        source->cause_ends_ns = ends_ns;
        source->info.src_port = (lbm_uint16_t)(10000 + i % SESSIONS);
        source->info.session_id = 1;
        um_join_retry_topic_init(&topics[i]);
        CHECK(keep((size_t)i, &topics[i], false));
    }
    run_until(ends_ns + JOIN_WITHIN_NS);
    for (int i = 0; i < TOPICS; i++) {
        CHECK(world.sources[i].joined_ns >= ends_ns);
    }
    CHECK_EQ(waiting(), 0);
    world_close();
    free(topics);
}

/* What was received from once is kept; what only advertisements tell of gives way, and few are tried at a time. */
TEST(f13_forged_sources_are_bounded_and_do_not_displace_one_that_proved_itself)
{
    enum { FORGED = 20000 };
    struct um_join_retry_topic topic;
    world_open(FORGED + 1);
    um_join_retry_topic_init(&topic);
    struct source *real = &world.sources[FORGED];
    real->kind = REFUSED;
    real->cause_ends_ns = world.now_ns + 60 * UM_NS_PER_SEC;
    CHECK(keep(FORGED, &topic, true));
    for (size_t i = 0; i < FORGED; i++) {
        world.sources[i].kind = CONNECT;
        world.sources[i].cause_ends_ns = UM_NEVER;
        world.sources[i].info.src_ip = (lbm_uint32_t)i; /* no two at one address */
        keep(i, &topic, false);
    }
    CHECK_EQ(topic.count, UM_JOIN_RETRIES_TOPIC_MAX);
    CHECK_EQ(waiting(), UM_JOIN_RETRIES_TOPIC_MAX);
    run_until(real->cause_ends_ns + JOIN_WITHIN_NS);
    CHECK(real->joined_ns != 0);
    CHECK(world.under_way_max <= UM_JOIN_RETRIES_UNDER_WAY_MAX + 1);
    CHECK(world.under_way_max > 1);
    um_join_retries_forget_topic(world.retries, &topic, world.now_ns);
    CHECK_EQ(waiting(), 0);
    world_close();
}

TEST(f13_sessions_at_one_address_are_bounded)
{
    struct um_join_retry_topic *topics = calloc(4, sizeof *topics);
    world_open(UM_JOIN_RETRIES_ADDRESS_MAX + 100);
    for (size_t i = 0; i < 4; i++) {
        um_join_retry_topic_init(&topics[i]);
    }
    for (size_t i = 0; i < world.count; i++) {
        CHECK_EQ(keep(i, &topics[i % 4], false), i < UM_JOIN_RETRIES_ADDRESS_MAX);
    }
    struct um_join_retries_stats stats;
    um_join_retries_stats(world.retries, &stats);
    CHECK_EQ(stats.refused, 100);
    for (size_t i = 0; i < 4; i++) {
        um_join_retries_forget_topic(world.retries, &topics[i], world.now_ns);
    }
    CHECK(keep(0, &topics[0], false)); /* there is room again */
    um_join_retries_forget_topic(world.retries, &topics[0], world.now_ns);
    CHECK_EQ(um_timer_next(world.wheel), UM_NEVER);
    world_close();
    free(topics);
}

static void topics_forgotten(struct um_join_retry_topic *topics, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        um_join_retries_forget_topic(world.retries, &topics[i], world.now_ns);
    }
    CHECK_EQ(waiting(), 0);
    free(topics);
}

/* Sources 0..count-1 are forged for the topics from the second one on; the last source is the first topic's. */
static struct um_join_retry_topic *forged_fill_up(size_t count, size_t topic_count)
{
    struct um_join_retry_topic *topics = calloc(topic_count, sizeof *topics);
    for (size_t i = 0; i < topic_count; i++) {
        um_join_retry_topic_init(&topics[i]);
    }
    for (size_t i = 0; i < count; i++) {
        world.sources[i].cause_ends_ns = UM_NEVER;
        keep(i, &topics[1 + i % (topic_count - 1)], false);
    }
    return topics;
}

static void proved_one_is_joined(size_t i, struct um_join_retry_topic *topic)
{
    struct source *real = &world.sources[i];
    real->cause_ends_ns = world.now_ns + 60 * UM_NS_PER_SEC;
    CHECK(keep(i, topic, true));
    run_until(real->cause_ends_ns + JOIN_WITHIN_NS);
    CHECK(real->joined_ns != 0);
}

TEST(f13_forged_failures_at_its_address_do_not_keep_a_lost_session_from_being_tried_again)
{
    world_open(UM_JOIN_RETRIES_ADDRESS_MAX + 1);
    struct um_join_retry_topic *topics = forged_fill_up(UM_JOIN_RETRIES_ADDRESS_MAX, 4);
    CHECK(!keep(UM_JOIN_RETRIES_ADDRESS_MAX, &topics[0], false)); /* one more that only an advertisement tells of */
    proved_one_is_joined(UM_JOIN_RETRIES_ADDRESS_MAX, &topics[0]);
    topics_forgotten(topics, 4);
    run_until(world.now_ns + HOUR_NS);
    CHECK_EQ(um_timer_next(world.wheel), UM_NEVER);
    world_close();
}

TEST(f13_forged_failures_of_the_whole_context_do_not_keep_a_lost_session_from_being_tried_again)
{
    enum { TOPICS = 1 + UM_JOIN_RETRIES_MAX / UM_JOIN_RETRIES_TOPIC_MAX };
    world_open(UM_JOIN_RETRIES_MAX + 1);
    for (size_t i = 0; i < UM_JOIN_RETRIES_MAX; i++) {
        world.sources[i].info.src_ip = (lbm_uint32_t)(i / 100); /* a hundred sessions at each address */
    }
    struct um_join_retry_topic *topics = forged_fill_up(UM_JOIN_RETRIES_MAX, TOPICS);
    CHECK(!keep(UM_JOIN_RETRIES_MAX, &topics[0], false)); /* one more that only an advertisement tells of */
    CHECK_EQ(waiting(), UM_JOIN_RETRIES_MAX);
    proved_one_is_joined(UM_JOIN_RETRIES_MAX, &topics[0]);
    topics_forgotten(topics, TOPICS);
    world_close();
}
