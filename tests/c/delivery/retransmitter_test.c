/* Answers to late joiners: what is answered to whom, and what strangers can draw. */
#include "base/um_hash.h"
#include "base/um_timer.h"
#include "delivery/um_retransmitter.h"
#include "um_test.h"

#define TOPIC 77u
#define MESSAGE 1000u
#define REQUEST 88u

static struct {
    uint64_t sent, bytes;
    uint32_t low, high;
    struct um_retransmitter_answer to;
    uint8_t last[UM_LBMC_MAX_MSGLEN];
    bool blocked;
    uint64_t due_ns;
    void (*sent_to)(const struct um_retransmitter_answer *to, uint32_t sqn);
} world;

static bool range(void *user, uint32_t topic_idx, uint32_t *low, uint32_t *high)
{
    *low = world.low;
    *high = world.high;
    return topic_idx == TOPIC;
}

static size_t copy(void *user, uint32_t topic_idx, uint32_t sqn, uint8_t *out, unsigned *pace)
{
    if (topic_idx != TOPIC) {
        return UM_RETRANSMITTER_NO_TOPIC;
    }
    if (sqn - world.low > world.high - world.low) {
        return 0;
    }
    *pace = 1;
    memset(out, 0, MESSAGE);
    um_lbmc_put_data_hdr(out, UM_LBMC_HDR_DATA, MESSAGE, topic_idx, sqn);
    return MESSAGE;
}

static bool send(void *user, const struct um_retransmitter_answer *to, const uint8_t *message, size_t len)
{
    if (world.blocked) {
        return false;
    }
    world.sent++;
    world.bytes += len;
    world.to = *to;
    memcpy(world.last, message, len);
    if (world.sent_to != NULL) {
        world.sent_to(to, um_get32(message + 8));
    }
    return true;
}

static void dropped(void *user, enum um_retransmitter_drop why, const struct um_retransmitter_asker *asker,
                    uint32_t topic_idx, uint64_t now_ns)
{
}

static void set_timer(void *user, uint64_t due_ns)
{
    world.due_ns = due_ns;
}

static void run(struct um_retransmitter *retransmitter, uint64_t until_ns)
{
    while (world.due_ns <= until_ns) {
        uint64_t now_ns = world.due_ns;
        world.due_ns = UM_NEVER;
        um_retransmitter_on_timer(retransmitter, now_ns);
    }
}

static const struct um_retransmitter_ops OPS = {
    .range = range, .copy = copy, .send = send, .set_timer = set_timer, .dropped = dropped};
static const uint8_t INSTANCE[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static const struct um_retransmitter_asker PROVED = {.ip = 1, .len = REQUEST, .instance = INSTANCE};
static struct um_retransmitter_asker stranger = {.len = REQUEST}; /* shares no place with the one above */

/* Places are found by a hash with a key of the process. */
static unsigned share_of(uint32_t ip)
{
    return um_hash_u32(ip) % UM_RETRANSMITTER_PLACES;
}

static unsigned place_of(uint32_t ip)
{
    return um_hash_u32(ip ^ um_hash_u32(1)) % UM_RETRANSMITTER_PLACES; /* port 1 */
}

static struct um_retransmitter *with_pace(uint64_t bps)
{
    stranger.ip = 2;
    while (share_of(stranger.ip) == share_of(PROVED.ip) || place_of(stranger.ip) == place_of(PROVED.ip)) {
        stranger.ip++;
    }
    const uint64_t paces[UM_RETRANSMITTER_PACES] = {0, bps};
    memset(&world, 0, sizeof world);
    world.low = 10;
    world.high = 19;
    world.due_ns = UM_NEVER;
    return um_retransmitter_create(paces, &OPS, NULL);
}

static uint64_t drops(const struct um_retransmitter *retransmitter, enum um_retransmitter_drop why)
{
    return um_retransmitter_stats(retransmitter).drops[why];
}

TEST(information_tells_the_oldest_and_the_newest_number_kept)
{
    struct um_retransmitter *retransmitter = with_pace(0);
    struct um_lbmc_lji_req req = {.topic_idx = TOPIC, .request_idx = 5, .port = 14391};
    struct um_lbmc_msg msg;
    um_retransmitter_on_lji_req(retransmitter, 1, &req, &PROVED);
    CHECK_EQ(world.sent, 1);
    CHECK_EQ(world.to.ip, 1); /* 0.0.0.0: where the request came from */
    CHECK_EQ(world.to.port, 14391);
    CHECK(world.to.instance == INSTANCE);
    CHECK_EQ(um_lbmc_decode(world.last, 20, &msg), UM_LBMC_OK);
    CHECK_EQ(msg.lj_info.low, 10);
    CHECK_EQ(msg.lj_info.high, 19);
    CHECK_EQ(msg.lj_info.request_idx, 5);
    um_retransmitter_destroy(retransmitter);
}

TEST(a_retransmission_is_the_message_as_it_was_sent_with_a_type_of_its_own)
{
    struct um_retransmitter *retransmitter = with_pace(0);
    struct um_lbmc_rxreq req = {.id = TOPIC, .sqn = 12, .port = 14391, .ip = 1};
    struct um_lbmc_msg msg;
    um_retransmitter_on_rxreq(retransmitter, 1, &req, &PROVED);
    CHECK_EQ(um_lbmc_decode(world.last, MESSAGE, &msg), UM_LBMC_OK);
    CHECK_EQ(msg.type, UM_LBMC_RETRANS);
    CHECK_EQ(msg.tidx, TOPIC);
    CHECK_EQ(msg.sqn, 12);
    req.tsni = true;
    um_retransmitter_on_rxreq(retransmitter, 1, &req, &PROVED);
    struct um_lbmc_tsni_iter iter = {0, 0};
    uint32_t tidx, last;
    CHECK_EQ(um_lbmc_decode(world.last, 16, &msg), UM_LBMC_OK);
    CHECK(um_lbmc_tsni_next(&msg, &iter, &tidx, &last));
    CHECK_EQ(tidx, TOPIC);
    CHECK_EQ(last, 19);
    um_retransmitter_destroy(retransmitter);
}

TEST(what_is_not_kept_or_not_ours_or_has_nowhere_to_go_is_not_answered)
{
    struct um_retransmitter *retransmitter = with_pace(0);
    struct um_lbmc_rxreq req = {.id = TOPIC, .sqn = 20, .port = 1};
    um_retransmitter_on_rxreq(retransmitter, 1, &req, &PROVED);
    CHECK_EQ(drops(retransmitter, UM_RETRANSMITTER_NOT_KEPT), 1);
    req = (struct um_lbmc_rxreq){.id = 1, .sqn = 12, .port = 1};
    um_retransmitter_on_rxreq(retransmitter, 1, &req, &PROVED);
    req = (struct um_lbmc_rxreq){.id = TOPIC, .transport_idx = 9, .sqn = 12, .port = 1};
    um_retransmitter_on_rxreq(retransmitter, 1, &req, &PROVED);
    CHECK_EQ(drops(retransmitter, UM_RETRANSMITTER_NO_SOURCE), 2);
    req = (struct um_lbmc_rxreq){.id = TOPIC, .sqn = 12};
    um_retransmitter_on_rxreq(retransmitter, 1, &req, &PROVED);
    CHECK_EQ(drops(retransmitter, UM_RETRANSMITTER_NO_PORT), 1);
    CHECK_EQ(world.sent, 0);
    um_retransmitter_destroy(retransmitter);
}

/* A request names another address than it comes from: nobody is flooded with more than ten times what was sent. */
TEST(who_never_proved_its_address_draws_at_most_ten_times_what_it_sent)
{
    struct um_retransmitter *retransmitter = with_pace(0);
    uint64_t asked = 0;
    for (uint32_t len = 16; len < 200; len += 8) {
        struct um_retransmitter_asker asker = {.ip = 2, .len = len};
        struct um_lbmc_rxreq req = {.id = TOPIC, .sqn = 12, .port = 1, .ip = 9};
        struct um_lbmc_lji_req lji = {.topic_idx = TOPIC, .port = 1, .ip = 9};
        um_retransmitter_on_rxreq(retransmitter, 1, &req, &asker);
        um_retransmitter_on_lji_req(retransmitter, 1, &lji, &asker);
        req.tsni = true;
        um_retransmitter_on_rxreq(retransmitter, 1, &req, &asker);
        asked += (uint64_t)3 * len;
        CHECK(world.bytes + world.sent * 48 <= 10 * asked);
    }
    CHECK(drops(retransmitter, UM_RETRANSMITTER_UNPROVED) > 0);
    CHECK(world.sent > 0); /* what is short enough is answered */
    um_retransmitter_destroy(retransmitter);
}

#define WORK_NS 5000u /* of each request in the tests of floods */

static void ask_and_pay(struct um_retransmitter *retransmitter, uint64_t now_ns,
                        const struct um_retransmitter_asker *asker)
{
    const struct um_lbmc_rxreq req = {.id = TOPIC, .sqn = 12, .port = 1};
    uint64_t before = world.sent;
    um_retransmitter_on_rxreq(retransmitter, now_ns, &req, asker);
    um_retransmitter_worked(retransmitter, asker->ip, world.sent != before ? WORK_NS : 0);
}

TEST(a_flood_of_requests_from_one_address_leaves_others_their_share)
{
    struct um_retransmitter *retransmitter = with_pace(0);
    uint64_t now_ns = 10 * UM_NS_PER_SEC;
    uint64_t answered = 0;
    for (uint32_t second = 0; second < 3; second++) {
        for (uint32_t i = 0; i < 1000000; i++) {
            now_ns += 1000;
            ask_and_pay(retransmitter, now_ns, &stranger);
            if (i % 1000 == 0) {
                uint64_t before = world.sent;
                ask_and_pay(retransmitter, now_ns, &PROVED);
                answered += world.sent - before;
            }
        }
    }
    CHECK_EQ(answered, 3000);
    CHECK(world.sent < 4 * (uint64_t)UM_RETRANSMITTER_SHARE_NS / WORK_NS + 3100);
    CHECK(world.sent > 3 * (uint64_t)UM_RETRANSMITTER_SHARE_NS / WORK_NS); /* what refills a bit at a time refills */
    CHECK(drops(retransmitter, UM_RETRANSMITTER_OVER_BUDGET) > 2500000);
    um_retransmitter_destroy(retransmitter);
}

TEST(a_flood_of_requests_from_many_addresses_is_answered_within_the_budget_of_all)
{
    struct um_retransmitter *retransmitter = with_pace(0);
    uint64_t now_ns = 10 * UM_NS_PER_SEC;
    for (uint32_t i = 0; i < 1000000; i++, now_ns += 1000) {
        const struct um_retransmitter_asker asker = {.ip = 1 + i % 1000, .len = REQUEST};
        ask_and_pay(retransmitter, now_ns, &asker);
    }
    CHECK(world.sent > UM_RETRANSMITTER_WORK_NS / WORK_NS &&
          world.sent <= 2 * (uint64_t)UM_RETRANSMITTER_WORK_NS / WORK_NS + 1);
    um_retransmitter_destroy(retransmitter);
}

TEST(a_message_longer_than_a_second_of_the_rate_limit_goes_after_a_second_of_silence)
{
    struct um_retransmitter *retransmitter = with_pace(8 * MESSAGE / 2);
    struct um_lbmc_rxreq req = {.id = TOPIC, .sqn = 12, .port = 1};
    for (uint64_t now_ns = UM_NS_PER_SEC; now_ns < 11 * UM_NS_PER_SEC; now_ns += 100 * UM_NS_PER_MS) {
        run(retransmitter, now_ns);
        um_retransmitter_on_rxreq(retransmitter, now_ns, &req, &PROVED);
    }
    CHECK_EQ(world.sent, 10);
    um_retransmitter_destroy(retransmitter);
}

TEST(retransmissions_keep_the_rate_limit)
{
    struct um_retransmitter *retransmitter = with_pace(8 * 100 * MESSAGE); /* 100 messages a second */
    struct um_lbmc_rxreq req = {.id = TOPIC, .sqn = 12, .port = 1};
    for (uint64_t now_ns = UM_NS_PER_SEC; now_ns < 11 * UM_NS_PER_SEC; now_ns += UM_NS_PER_MS) {
        run(retransmitter, now_ns);
        um_retransmitter_on_rxreq(retransmitter, now_ns, &req, &PROVED);
    }
    CHECK(world.sent >= 1000 && world.sent <= 1101);
    CHECK(drops(retransmitter, UM_RETRANSMITTER_OVER_PACE) > 0);
    um_retransmitter_destroy(retransmitter);
}

/* Late joiners that keep ten requests under way and ask again after half a second, as the options have it. */
#define ASKERS 10u
#define OUTSTANDING 10u
static struct asker {
    uint32_t ip;
    uint32_t sqn[OUTSTANDING];
    uint64_t first_ns[OUTSTANDING], next_ns[OUTSTANDING];
    uint32_t next_sqn, answered;
    uint64_t longest_ns;
} askers[ASKERS];
static uint64_t asked_at_ns;

static void ask_next(struct asker *asker, unsigned i, uint64_t now_ns)
{
    asker->sqn[i] = asker->next_sqn++;
    asker->first_ns[i] = asker->next_ns[i] = now_ns;
}

static void answered(const struct um_retransmitter_answer *to, uint32_t sqn)
{
    struct asker *asker = askers;
    while (asker->ip != to->ip) {
        asker++;
    }
    for (unsigned i = 0; i < OUTSTANDING; i++) {
        if (asker->sqn[i] == sqn) {
            uint64_t waited_ns = asked_at_ns - asker->first_ns[i];
            asker->longest_ns = waited_ns > asker->longest_ns ? waited_ns : asker->longest_ns;
            asker->answered++;
            ask_next(asker, i, asked_at_ns);
            return;
        }
    }
}

static void ask_due(struct um_retransmitter *retransmitter, struct asker *asker, uint64_t now_ns)
{
    const struct um_retransmitter_asker from = {.ip = asker->ip, .len = REQUEST};
    for (unsigned i = 0; i < OUTSTANDING; i++) {
        if (now_ns >= asker->next_ns[i]) {
            struct um_lbmc_rxreq req = {.id = TOPIC, .sqn = asker->sqn[i], .port = 1};
            asker->next_ns[i] = now_ns + 500 * UM_NS_PER_MS;
            um_retransmitter_on_rxreq(retransmitter, now_ns, &req, &from);
        }
    }
}

/* Together they would have far more than the pace: nobody is left without until it gives up (10 s), and the pace is
 * used. */
TEST(late_joiners_beyond_the_pace_all_get_on)
{
    struct um_retransmitter *retransmitter = with_pace(8 * 100 * MESSAGE); /* 100 messages a second */
    uint64_t now_ns = UM_NS_PER_SEC;
    world.low = 0;
    world.high = 1u << 20;
    world.sent_to = answered;
    memset(askers, 0, sizeof askers);
    bool taken[UM_RETRANSMITTER_PLACES] = {false};
    for (unsigned a = 0, ip = 0; a < ASKERS; a++) {
        while (taken[place_of(++ip)]) {
        }
        taken[place_of(ip)] = true;
        askers[a].ip = ip;
        for (unsigned i = 0; i < OUTSTANDING; i++) {
            ask_next(&askers[a], i, now_ns + a * 7 * UM_NS_PER_MS);
        }
    }
    for (; now_ns < 61 * UM_NS_PER_SEC; now_ns += UM_NS_PER_MS) {
        asked_at_ns = now_ns;
        run(retransmitter, now_ns);
        for (unsigned a = 0; a < ASKERS; a++) {
            ask_due(retransmitter, &askers[a], now_ns);
        }
    }
    CHECK(world.sent >= 6000 && world.sent <= 6101);
    for (unsigned a = 0; a < ASKERS; a++) {
        CHECK(askers[a].answered >= 400);
        CHECK(askers[a].longest_ns < 5 * UM_NS_PER_SEC);
    }
    um_retransmitter_destroy(retransmitter);
}

TEST(requests_wait_for_the_pace_in_turn_and_give_way_to_those_who_have_fewer)
{
    struct um_retransmitter *retransmitter = with_pace(8 * 100 * MESSAGE); /* a line of 40 */
    struct um_lbmc_rxreq req = {.id = TOPIC, .sqn = 12, .port = 1};
    for (unsigned i = 0; i < 100 + 50; i++) {
        um_retransmitter_on_rxreq(retransmitter, UM_NS_PER_SEC, &req, &PROVED);
    }
    CHECK_EQ(world.sent, 100); /* a second's worth */
    CHECK_EQ(um_retransmitter_stats(retransmitter).waiting, 40);
    CHECK_EQ(drops(retransmitter, UM_RETRANSMITTER_OVER_PACE), 10);
    for (unsigned i = 0; i < 30; i++) {
        um_retransmitter_on_rxreq(retransmitter, UM_NS_PER_SEC, &req, &stranger);
    }
    CHECK_EQ(um_retransmitter_stats(retransmitter).waiting, 40); /* twenty of each */
    CHECK_EQ(drops(retransmitter, UM_RETRANSMITTER_OVER_PACE), 40);
    um_retransmitter_on_rxreq(retransmitter, UM_NS_PER_SEC, &req, &PROVED);
    CHECK_EQ(drops(retransmitter, UM_RETRANSMITTER_OVER_PACE), 41);
    run(retransmitter, UM_NS_PER_SEC + 100 * UM_NS_PER_MS + 10);
    CHECK_EQ(world.sent, 110);
    world.low = 13; /* 12 is not kept any more */
    run(retransmitter, 2 * UM_NS_PER_SEC);
    CHECK_EQ(world.sent, 110);
    CHECK_EQ(world.to.ip, 1);
    CHECK_EQ(drops(retransmitter, UM_RETRANSMITTER_NOT_KEPT), 30);
    CHECK_EQ(um_retransmitter_stats(retransmitter).waiting, 0);
    CHECK_EQ(um_retransmitter_stats(retransmitter).waited, 60);
    CHECK_EQ(world.due_ns, UM_NEVER);
    um_retransmitter_destroy(retransmitter);
}

TEST(a_full_connection_drops_the_answer)
{
    struct um_retransmitter *retransmitter = with_pace(0);
    struct um_lbmc_rxreq req = {.id = TOPIC, .sqn = 12, .port = 1};
    world.blocked = true;
    um_retransmitter_on_rxreq(retransmitter, 1, &req, &PROVED);
    CHECK_EQ(drops(retransmitter, UM_RETRANSMITTER_BLOCKED), 1);
    CHECK_EQ(um_retransmitter_stats(retransmitter).retransmitted, 0);
    um_retransmitter_destroy(retransmitter);
}
