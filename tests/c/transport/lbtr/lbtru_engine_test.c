/* LBT-RU engines in virtual time: connecting, liveness, clients with number spaces of their own. */
#include "um_test.h"

#include "base/um_mem.h"
#include "transport/lbtr/um_lbtru_rcv_engine.h"
#include "transport/lbtr/um_lbtru_src_engine.h"
#include "transport/lbtr/um_lbtru_strangers.h"

#define MS UM_NS_PER_MS
#define SEC UM_NS_PER_SEC
#define T0 (100 * SEC)
#define IP 0x0100000au
#define PORT 14380
#define SID 0x263170a3u

static struct {
    unsigned types[16], syns, repairs, delivered, begins, ends, connects, disconnects, kicks;
    uint32_t first_sqn[3]; /* of the last original sent to each address */
    unsigned to[3], repairs_to[3];
    struct um_lbtru_packet last;
    uint8_t bytes[9000];
    uint64_t due;
    enum um_lbtr_end why;
} out;

static void note(const uint8_t *head, size_t head_len, const uint8_t *body, size_t body_len)
{
    memcpy(out.bytes, head, head_len);
    if (body_len > 0) {
        memcpy(out.bytes + head_len, body, body_len);
    }
    um_lbtru_decode(out.bytes, head_len + body_len, &out.last);
    out.types[out.last.type]++;
    out.syns += out.last.syn;
}

static void on_receiver_send(void *io, const uint8_t *data, size_t len)
{
    note(data, len, NULL, 0);
}

static void on_deliver(void *io, uint64_t now_ns, const struct um_slice *payload, uint32_t sqn, bool retransmission)
{
    out.delivered++;
}

static void on_lost(void *io, uint64_t now_ns, uint32_t first, uint32_t count, enum um_lbtr_loss why)
{
}

static void on_begin(void *io, uint64_t now_ns)
{
    out.begins++;
}

static void on_end(void *io, uint64_t now_ns, enum um_lbtr_end why)
{
    out.ends++;
    out.why = why;
}

static void set_timer(void *io, uint64_t due_ns)
{
    out.due = due_ns;
}

static void on_send(void *io, const struct um_lbtru_address *to, const uint8_t *head, size_t head_len,
                    const uint8_t *body, size_t body_len)
{
    note(head, head_len, body, body_len);
    unsigned which = to->port - 14360u;
    if (which < 3 && out.last.type == UM_LBTRU_DATA) {
        out.to[which]++;
        out.repairs_to[which] += out.last.retransmission;
        out.first_sqn[which] = out.last.sqn;
    }
}

static void on_kick(void *io)
{
    out.kicks++;
    out.due = 0;
}

static void on_connected(void *io, const struct um_lbtru_address *client)
{
    out.connects++;
}

static void on_disconnected(void *io, const struct um_lbtru_address *client, uint64_t silent_ns)
{
    out.disconnects++;
}

/* Clients with an odd port want datagrams of odd length only. */
static bool wanted(void *io, const struct um_lbtru_address *client, const uint8_t *payload, size_t len)
{
    return client == NULL || client->port % 2 == 0 || len % 2 != 0;
}

static const struct um_lbtr_rcv_outputs receiver_ops = {on_receiver_send, on_deliver, on_lost, on_begin,
                                                        on_end,           set_timer,  NULL};
static const struct um_lbtru_src_engine_ops source_ops = {.send = on_send,
                                                          .common.set_timer = set_timer,
                                                          .common.kick = on_kick,
                                                          .common.relieved = on_kick,
                                                          .connected = on_connected,
                                                          .disconnected = on_disconnected,
                                                          .wanted = wanted};

/* ---- receiver ---- */

static struct um_rng rng;

static struct um_lbtr_rcv_engine *new_receiver(uint32_t sid, uint64_t attempts)
{
    memset(&out, 0, sizeof out);
    um_rng_seed(&rng, 5);
    return um_lbtru_rcv_engine_create(
        &(struct um_lbtru_rcv_engine_config){
            IP, PORT, sid, {0, 200 * MS, SEC, 10 * SEC, true, 0}, 100 * MS, attempts, 500 * MS, 60 * SEC},
        &rng, &receiver_ops, NULL, T0);
}

static void run_receiver(struct um_lbtr_rcv_engine *r, uint64_t until)
{
    while (out.due <= until && out.ends == 0) {
        uint64_t now = out.due;
        out.due = UM_NEVER;
        um_lbtr_rcv_engine_on_timer(r, now);
    }
}

static void give(struct um_lbtr_rcv_engine *r, uint64_t now, uint32_t sid, uint32_t sqn, bool retransmission)
{
    uint8_t packet[UM_LBTRU_DATA_HDR_MAX + 4] = {0};
    size_t len = um_lbtru_put_data(packet, sid, sqn, 0, retransmission) + 4;
    um_lbtru_rcv_engine_on_packet(r, now, packet, len, IP, PORT);
}

static void give_sm(struct um_lbtr_rcv_engine *r, uint64_t now, bool syn, uint32_t lead)
{
    uint8_t packet[UM_LBTRU_SM_MAX];
    um_lbtru_rcv_engine_on_packet(r, now, packet, um_lbtru_put_sm(packet, SID, syn, 0, lead, 0), IP, PORT);
}

TEST(requests_are_repeated_as_often_as_allowed)
{
    struct um_lbtr_rcv_engine *r = new_receiver(SID, 5);
    CHECK_EQ(out.types[UM_LBTRU_CREQ], 1);
    run_receiver(r, T0 + 499 * MS);
    CHECK(out.types[UM_LBTRU_CREQ] == 5 && out.ends == 0);
    run_receiver(r, T0 + SEC);
    CHECK(out.types[UM_LBTRU_CREQ] == 5 && out.ends == 1 && out.why == UM_LBTR_END_NO_ANSWER && out.begins == 0);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(answer_connects_and_acknowledgements_follow)
{
    struct um_lbtr_rcv_engine *r = new_receiver(SID, 600);
    give_sm(r, T0 + MS, true, 0xffffffff);
    CHECK(out.begins == 1 && out.types[UM_LBTRU_ACK] == 1 && out.last.sqn == 0xffffffff);
    give(r, T0 + MS, SID, 0, false);
    run_receiver(r, T0 + 2100 * MS);
    CHECK(out.types[UM_LBTRU_ACK] == 5 && out.last.sqn == 0 && out.types[UM_LBTRU_CREQ] == 1);
    run_receiver(r, T0 + 62 * SEC);
    CHECK(out.ends == 1 && out.why == UM_LBTR_END_SILENCE);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(data_connects_when_the_answer_was_lost)
{
    struct um_lbtr_rcv_engine *r = new_receiver(SID, 600);
    give(r, T0 + MS, SID, 6, true);
    CHECK_EQ(out.begins, 0);
    give(r, T0 + MS, SID, 7, false);
    give_sm(r, T0 + MS, true, 7);
    CHECK(out.begins == 1 && out.delivered == 1 && um_lbtr_rcv_engine_counters(r)->lost == 0);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(loss_is_asked_for_at_once)
{
    struct um_lbtr_rcv_engine *r = new_receiver(SID, 600);
    give_sm(r, T0, true, 0xffffffff);
    give(r, T0, SID, 0, false);
    give(r, T0, SID, 2, false);
    give(r, T0, SID, 3, false); /* same read batch: the NAK goes out behind it */
    CHECK_EQ(out.types[UM_LBTRU_NAK], 0);
    run_receiver(r, T0);
    CHECK(out.types[UM_LBTRU_NAK] == 1 && out.last.list.count == 1 && um_lbtr_list_at(&out.last.list, 0) == 1);
    give(r, T0 + MS, SID, 1, true);
    lbm_rcv_transport_stats_lbtru_t stats;
    um_lbtru_rcv_engine_stats(r, &stats);
    CHECK(stats.msgs_rcved == 4 && stats.lost == 1 && stats.naks_sent == 1 && stats.nak_tx_max == 1);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(packets_of_other_sessions_and_addresses_are_dropped_and_counted)
{
    struct um_lbtr_rcv_engine *r = new_receiver(SID, 600);
    uint8_t packet[UM_LBTRU_RST_LEN];
    give_sm(r, T0, true, 0xffffffff);
    give(r, T0, SID + 1, 0, false);
    give(r, T0, 0, 0, false);
    size_t len = um_lbtru_put_rst(packet);
    um_lbtru_rcv_engine_on_packet(r, T0, packet, len, IP, PORT + 1);
    um_lbtru_rcv_engine_on_packet(r, T0, packet, len, IP + 1, PORT);
    struct um_lbtr_receiver_counters *c = um_lbtr_rcv_engine_counters(r);
    CHECK(c->dropped_sid == 2 && c->dropped_other == 2 && out.delivered == 0 && out.ends == 0);
    um_lbtru_rcv_engine_on_packet(r, T0, packet, len, IP, PORT);
    CHECK(out.ends == 1 && out.why == UM_LBTR_END_RESET);
    um_lbtr_rcv_engine_destroy(r);
}

/* ---- source ---- */

static struct um_lbtr_limiter limiter;
static const struct um_lbtru_address a = {IP, 14360}, b = {IP, 14361}, c = {IP, 14362};

static struct um_lbtr_src_engine *source_with(uint32_t sid, uint64_t data_bps)
{
    memset(&out, 0, sizeof out);
    out.due = UM_NEVER;
    um_lbtr_limiter_init(&limiter, &(struct um_lbtr_limiter_config){data_bps, 5000000, 100 * MS, false});
    return um_lbtru_src_engine_create(
        &(struct um_lbtru_src_engine_config){sid, 8192, 65536, 0, 500 * MS, 200 * MS, 10 * SEC, 10 * SEC, 7, 0, 0, 0},
        &limiter, &source_ops, NULL);
}

static void creq(struct um_lbtr_src_engine *s, uint64_t now, uint32_t sid, const struct um_lbtru_address *from)
{
    uint8_t packet[UM_LBTRU_CREQ_MAX];
    um_lbtru_src_engine_on_packet(s, now, packet, um_lbtru_put_creq(packet, sid), from);
}

static void ack(struct um_lbtr_src_engine *s, uint64_t now, uint32_t sid, uint32_t sqn,
                const struct um_lbtru_address *from)
{
    uint8_t packet[UM_LBTRU_ACK_MAX];
    um_lbtru_src_engine_on_packet(s, now, packet, um_lbtru_put_ack(packet, sid, sqn), from);
}

static void join(struct um_lbtr_src_engine *s, uint64_t now, uint32_t sid, const struct um_lbtru_address *from)
{
    creq(s, now, sid, from);
    ack(s, now, sid, 0xffffffffu, from);
}

static void put(struct um_lbtr_src_engine *s, uint64_t now, size_t len)
{
    size_t room;
    memset(um_lbtr_src_engine_acquire(s, &room), 'x', len);
    um_lbtr_src_engine_commit(s, now, len, len);
}

static void run_source(struct um_lbtr_src_engine *s, uint64_t until)
{
    while (out.due <= until) {
        uint64_t now = out.due;
        out.due = UM_NEVER;
        um_lbtr_src_engine_on_timer(s, now);
    }
}

TEST(client_is_answered_and_counted_once)
{
    struct um_lbtr_src_engine *s = source_with(SID, 10000000);
    creq(s, T0, SID + 1, &a);
    creq(s, T0, 0, &a);
    CHECK(out.types[UM_LBTRU_SM] == 0 && out.types[UM_LBTRU_RST] == 0);
    creq(s, T0, SID, &a);
    CHECK(out.syns == 1 && out.last.lead == 0xffffffff && out.last.trail == 0 && out.last.sqn == 0);
    creq(s, T0, SID, &a);
    CHECK(out.syns == 2 && out.last.sqn == 1 && out.connects == 0 && um_lbtru_src_engine_clients(s) == 0);
    ack(s, T0, SID, 0xffffffffu, &a);
    ack(s, T0, SID, 0xffffffffu, &a);
    CHECK(out.connects == 1 && um_lbtru_src_engine_clients(s) == 1);
    creq(s, T0, SID, &a);
    CHECK(out.syns == 3 && out.last.sqn == 2 && out.connects == 1);
    um_lbtr_src_engine_destroy(s);
}

static unsigned strange_code;

static void on_unknown_request(void *io, const struct um_lbtru_address *from, uint16_t code)
{
    strange_code = code;
}

TEST(unknown_request_is_told_and_counted)
{
    struct um_lbtru_src_engine_ops ops = source_ops;
    ops.unknown_request = on_unknown_request;
    um_lbtr_limiter_init(&limiter, &(struct um_lbtr_limiter_config){10000000, 5000000, 100 * MS, false});
    struct um_lbtr_src_engine *s = um_lbtru_src_engine_create(
        &(struct um_lbtru_src_engine_config){SID, 8192, 65536, 0, 500 * MS, 200 * MS, 10 * SEC, 10 * SEC, 7, 0, 0, 0},
        &limiter, &ops, NULL);
    uint8_t packet[UM_LBTRU_CREQ_MAX];
    size_t len = um_lbtru_put_creq(packet, SID);
    um_put16(packet + 2, 9);
    um_lbtru_src_engine_on_packet(s, T0, packet, len, &a);
    CHECK(strange_code == 9 && um_lbtru_src_engine_clients(s) == 0 &&
          um_lbtr_src_engine_counters(s)->packets_ignored == 1);
    um_lbtr_src_engine_destroy(s);
}

TEST(data_that_nobody_hears_goes_nowhere)
{
    struct um_lbtr_src_engine *s = source_with(SID, 10000000);
    put(s, T0, 100);
    put(s, T0, 50);
    CHECK_EQ(um_lbtr_src_engine_counters(s)->msgs_sent, 0);
    CHECK_EQ(um_lbtr_src_engine_held(s), 0);
    join(s, T0, SID, &a);
    put(s, T0, 100);
    CHECK_EQ(um_lbtr_src_engine_counters(s)->msgs_sent, 1);
    um_lbtr_src_engine_destroy(s);
}

TEST(resets_are_bounded_whatever_addresses_ask_for_them)
{
    struct um_lbtr_src_engine *s = source_with(SID, 10000000);
    uint8_t packet[UM_LBTRU_ACK_MAX];
    size_t len = um_lbtru_put_ack(packet, SID, 77);
    for (uint32_t i = 0; i < 100000; i++) {
        um_lbtru_src_engine_on_packet(s, T0 + i, packet, len, &(struct um_lbtru_address){IP + i * 7919, (uint16_t)i});
    }
    CHECK(out.types[UM_LBTRU_RST] > 0 && out.types[UM_LBTRU_RST] <= 64);
    um_lbtr_src_engine_destroy(s);
}

static void creq_of(struct um_lbtr_src_engine *s, uint64_t now, uint8_t cid, const struct um_lbtru_address *from)
{
    uint8_t packet[20];
    um_lbtru_put_creq(packet, SID);
    packet[4] = UM_LBTRU_OPTION_CID;
    memcpy(packet + 12, (uint8_t[]){0, 8, 0x80, 0, 0, 0, 0, cid}, 8);
    um_lbtru_src_engine_on_packet(s, now, packet, sizeof packet, from);
}

TEST(client_that_was_started_again_is_another_one)
{
    struct um_lbtr_src_engine *s = source_with(SID, 10000000);
    for (uint8_t cid = 1; cid <= 2; cid++) {
        creq_of(s, T0, cid, &a);
        creq_of(s, T0, cid, &a);
        CHECK_EQ(out.disconnects, 0); /* anybody may have sent that */
        ack(s, T0, SID, 0xffffffffu, &a);
    }
    CHECK(out.connects == 2 && out.disconnects == 1 && um_lbtru_src_engine_clients(s) == 1);
    um_lbtr_src_engine_destroy(s);
}

TEST(clients_have_number_spaces_of_their_own)
{
    struct um_lbtr_src_engine *s = source_with(SID, 10000000);
    join(s, T0, SID, &a);
    put(s, T0, 10);
    join(s, T0, SID, &b); /* wants odd lengths */
    put(s, T0, 10);
    put(s, T0, 11);
    CHECK(out.to[0] == 3 && out.first_sqn[0] == 2 && out.to[1] == 1 && out.first_sqn[1] == 0);
    uint8_t packet[64];
    um_lbtru_src_engine_on_packet(s, T0 + MS, packet, um_lbtru_put_nak(packet, SID, (uint32_t[]){0}, 1), &b);
    CHECK(out.repairs_to[0] == 0 && out.repairs_to[1] == 1 && out.last.payload.len == 11);
    um_lbtru_src_engine_on_packet(s, T0 + MS, packet, um_lbtru_put_nak(packet, SID, (uint32_t[]){0}, 1), &a);
    CHECK(out.repairs_to[0] == 1 && out.last.payload.len == 10);
    lbm_src_transport_stats_lbtru_t stats;
    um_lbtru_src_engine_stats(s, &stats);
    CHECK(stats.msgs_sent == 4 && stats.num_clients == 2 && stats.rxs_sent == 2 && stats.naks_rcved == 2);
    um_lbtr_src_engine_destroy(s);
}

TEST(silent_client_is_dropped_and_then_reset)
{
    struct um_lbtr_src_engine *s = source_with(SID, 10000000);
    uint8_t packet[UM_LBTRU_ACK_MAX];
    size_t len = um_lbtru_put_ack(packet, SID, 77);
    join(s, T0, SID, &a);
    um_lbtru_src_engine_on_packet(s, T0 + 5 * SEC, packet, len, &a);
    run_source(s, T0 + 14999 * MS);
    CHECK_EQ(out.disconnects, 0);
    run_source(s, T0 + 15 * SEC);
    CHECK(out.disconnects == 1 && um_lbtru_src_engine_clients(s) == 0);
    put(s, T0 + 15 * SEC, 10);
    CHECK_EQ(out.types[UM_LBTRU_DATA], 0);
    for (unsigned i = 0; i < 10; i++) {
        um_lbtru_src_engine_on_packet(s, T0 + 16 * SEC + i * 100 * MS, packet, len, &a);
    }
    CHECK_EQ(out.types[UM_LBTRU_RST], 1);
    um_lbtru_src_engine_on_packet(s, T0 + 17 * SEC, packet, len, &a);
    CHECK_EQ(out.types[UM_LBTRU_RST], 2);
    um_lbtr_src_engine_destroy(s);
}

TEST(session_messages_go_to_each_client)
{
    struct um_lbtr_src_engine *s = source_with(SID, 10000000);
    join(s, T0, SID, &a);
    join(s, T0, SID, &c);
    run_source(s, T0 + 3100 * MS);
    CHECK_EQ(out.types[UM_LBTRU_SM], 2 + 2 * 4);
    CHECK(out.last.sqn == 4 && !out.last.syn);
    um_lbtr_src_engine_destroy(s);
}

TEST(a_request_without_a_port_to_answer_to_is_ignored)
{
    struct um_lbtr_src_engine *s = source_with(SID, 10000000);
    creq(s, T0, SID, &(struct um_lbtru_address){IP, 0});
    CHECK_EQ(um_lbtru_src_engine_clients(s), 0);
    CHECK_EQ(out.types[UM_LBTRU_SM], 0);
    CHECK_EQ(um_lbtr_src_engine_counters(s)->packets_ignored, 1);
    um_lbtr_src_engine_destroy(s);
}

TEST(intervals_of_nothing_do_not_make_a_flood)
{
    um_rng_seed(&rng, 5);
    memset(&out, 0, sizeof out);
    struct um_lbtr_rcv_engine *r = um_lbtru_rcv_engine_create(
        &(struct um_lbtru_rcv_engine_config){IP, PORT, SID, {0, 200 * MS, SEC, 10 * SEC, true, 0}, 0, 100, 0, 60 * SEC},
        &rng, &receiver_ops, NULL, T0);
    for (int i = 0; i < 50; i++) {
        um_lbtr_rcv_engine_on_timer(r, T0 + 2 * MS);
    }
    CHECK_EQ(out.types[UM_LBTRU_CREQ], 2);
    give_sm(r, T0 + 2 * MS, true, 0xffffffffu);
    for (int i = 0; i < 50; i++) {
        um_lbtr_rcv_engine_on_timer(r, T0 + 4 * MS);
    }
    CHECK_EQ(out.types[UM_LBTRU_ACK], 2);
    um_lbtr_rcv_engine_destroy(r);
    um_lbtr_limiter_init(&limiter, &(struct um_lbtr_limiter_config){10000000, 5000000, 100 * MS, false});
    struct um_lbtr_src_engine *s = um_lbtru_src_engine_create(
        &(struct um_lbtru_src_engine_config){SID, 8192, 65536, 0, 500 * MS, 0, 0, 10 * SEC, 7, 0, 0, 0}, &limiter,
        &source_ops, NULL);
    memset(&out, 0, sizeof out);
    join(s, T0, SID, &a);
    for (int i = 0; i < 50; i++) {
        um_lbtr_src_engine_on_timer(s, T0 + 2 * MS);
    }
    CHECK_EQ(out.types[UM_LBTRU_SM], 2); /* the answer and one more */
    um_lbtr_src_engine_destroy(s);
}

TEST(number_of_clients_is_bounded)
{
    struct um_lbtr_src_engine *s = source_with(0, 10000000);
    for (unsigned i = 0; i < UM_LBTRU_CLIENTS_MAX + 100; i++) {
        join(s, T0, 0, &(struct um_lbtru_address){IP + i / 60000, (uint16_t)(1 + i % 60000)});
    }
    CHECK_EQ(um_lbtru_src_engine_clients(s), UM_LBTRU_CLIENTS_MAX);
    um_lbtr_src_engine_destroy(s);
}

TEST(limit_blocks_all_sessions_and_gives_turns_in_order)
{
    struct um_lbtr_src_engine *s = source_with(SID, 80000); /* 1000 bytes per interval */
    struct um_lbtr_src_engine *other = um_lbtru_src_engine_create(
        &(struct um_lbtru_src_engine_config){SID, 8192, 65536, 0, 500 * MS, 200 * MS, 10 * SEC, 10 * SEC, 7, 0, 0, 0},
        &limiter, &source_ops, NULL);
    join(s, T0, SID, &a);
    join(other, T0, SID, &c);
    put(s, T0, 900);
    put(s, T0, 900);     /* held */
    put(other, T0, 900); /* must not be refused, but waits behind */
    CHECK(!um_lbtr_src_engine_may_send(s, false) && !um_lbtr_src_engine_may_send(other, false));
    um_lbtr_src_engine_on_timer(other, T0 + 100 * MS);
    CHECK(out.to[0] == 1 && out.to[2] == 0);
    um_lbtr_src_engine_on_timer(s, T0 + 100 * MS);
    CHECK(out.to[0] == 2 && out.to[2] == 0 && out.kicks == 1); /* the other one is told that it is its turn */
    um_lbtr_src_engine_on_timer(other, T0 + 200 * MS);
    CHECK(out.to[2] == 1 && um_lbtr_src_engine_may_send(s, false));
    um_lbtr_src_engine_destroy(s);
    um_lbtr_src_engine_destroy(other);
}

/* ---- requests in the name of others ---- */

static uint32_t secret_number(void *io, const struct um_lbtru_address *client, uint64_t epoch)
{
    return client->port * 2654435769u ^ (uint32_t)epoch * 40503u;
}

static struct um_lbtr_src_engine *source_with_secret(void)
{
    static struct um_lbtru_src_engine_ops ops;
    struct um_lbtru_src_engine_config config = {.session_id = SID,
                                                .datagram_max = 8192,
                                                .window_size = 65536,
                                                .ignore_ns = 500 * MS,
                                                .sm_min_ns = 200 * MS,
                                                .sm_max_ns = 10 * SEC,
                                                .client_activity_ns = 10 * SEC,
                                                .client_map_size = 7};
    um_lbtr_src_engine_destroy(source_with(SID, 10000000));
    ops = source_ops;
    ops.first_number = secret_number;
    return um_lbtru_src_engine_create(&config, &limiter, &ops, NULL);
}

TEST(f8_nothing_but_the_answer_goes_to_an_address_that_has_not_repeated_its_number)
{
    struct um_lbtr_src_engine *s = source_with_secret();
    creq(s, T0, SID, &a);
    CHECK(out.syns == 1 && out.last.lead == secret_number(NULL, &a, T0 / UM_LBTRU_EPOCH_NS) - 1);
    for (unsigned i = 0; i < 1000; i++) {
        put(s, T0 + i * MS, 50);
        ack(s, T0 + i * MS, SID, i, &a); /* guesses */
    }
    run_source(s, T0 + 20 * SEC);
    CHECK(out.syns == 1 && out.types[UM_LBTRU_SM] == 1 && out.types[UM_LBTRU_DATA] == 0 && out.connects == 0);
    CHECK(out.types[UM_LBTRU_RST] == 0); /* nor can anybody end what the owner of the address has begun */
    CHECK(um_lbtru_src_engine_strangers(s).answered == 1 && um_lbtru_src_engine_strangers(s).expired == 1);
    um_lbtr_src_engine_destroy(s);
}

TEST(f8_what_is_sent_after_the_answer_reaches_the_client_that_proves_itself_later)
{
    struct um_lbtr_src_engine *s = source_with_secret();
    put(s, T0, 50);
    creq(s, T0, SID, &a);
    uint32_t lead = out.last.lead;
    put(s, T0, 50);
    put(s, T0 + 500 * MS, 50);
    CHECK_EQ(out.to[0], 0);
    ack(s, T0 + 510 * MS, SID, lead, &a); /* the first one was lost */
    CHECK(out.connects == 1 && out.to[0] == 2 && out.first_sqn[0] == lead + 2);
    put(s, T0 + 520 * MS, 50);
    CHECK(out.to[0] == 3 && out.first_sqn[0] == lead + 3);
    um_lbtr_src_engine_destroy(s);
}

TEST(f8_strangers_are_bounded_by_address_and_in_all_and_a_real_one_connects_all_the_same)
{
    struct um_lbtr_src_engine *s = source_with_secret();
    for (unsigned i = 0; i < 100; i++) {
        creq(s, T0, SID, &(struct um_lbtru_address){IP + 9, (uint16_t)(1 + i)});
    }
    for (unsigned i = 0; i < 100000; i++) {
        creq(s, T0, SID, &(struct um_lbtru_address){IP + 10 + i, 7});
    }
    creq(s, T0, SID, &a);
    uint32_t lead = out.last.lead;
    put(s, T0, 50); /* not for those who are not remembered */
    ack(s, T0 + MS, SID, lead, &a);
    put(s, T0 + 2 * MS, 51);
    CHECK(out.connects == 1 && out.to[0] == 1 && out.first_sqn[0] == lead + 1 && out.last.payload.len == 51);
    CHECK_EQ(um_lbtru_src_engine_strangers(s).answered, 100101);
    run_source(s, T0 + 4 * SEC);
    CHECK_EQ(um_lbtru_src_engine_strangers(s).expired, 256);
    um_lbtr_src_engine_destroy(s);
}

TEST(f8_a_number_is_good_for_seconds_and_for_its_address_only)
{
    struct um_lbtr_src_engine *s = source_with_secret();
    creq(s, T0, SID, &a);
    uint32_t lead = out.last.lead;
    ack(s, T0, SID, lead, &c);
    CHECK_EQ(out.connects, 0);
    ack(s, T0 + 5 * SEC, SID, lead, &a);
    CHECK(out.connects == 0 && out.types[UM_LBTRU_RST] > 0);
    um_lbtr_src_engine_destroy(s);
}

TEST(f8_later_request_does_not_change_whose_connection_it_is)
{
    struct um_lbtr_src_engine *s = source_with_secret();
    creq_of(s, T0, 1, &a);
    uint32_t lead = out.last.lead;
    creq_of(s, T0 + MS, 2, &a); /* in its name */
    ack(s, T0 + 2 * MS, SID, lead, &a);
    creq_of(s, T0 + 3 * MS, 1, &a); /* the answer took long */
    ack(s, T0 + 4 * MS, SID, out.last.lead, &a);
    CHECK(out.connects == 1 && out.disconnects == 0);
    um_lbtr_src_engine_destroy(s);
}

TEST(f8_receiver_that_is_served_does_not_repeat_the_number_of_an_answer_it_did_not_ask_for)
{
    struct um_lbtr_rcv_engine *r = new_receiver(SID, 5);
    give_sm(r, T0 + MS, true, 6);
    CHECK_EQ(out.last.sqn, 6);
    give_sm(r, T0 + 2 * MS, true, 6); /* nothing but answers so far: perhaps the first one's proof was lost */
    CHECK(out.types[UM_LBTRU_ACK] == 2 && out.last.sqn == 6);
    give(r, T0 + 3 * MS, SID, 7, false);
    give_sm(r, T0 + 4 * MS, true, 99);
    CHECK(out.types[UM_LBTRU_ACK] == 3 && out.last.sqn == 7);
    um_lbtr_rcv_engine_destroy(r);
}

TEST(f8_what_waits_for_strangers_begins_with_the_oldest_that_is_left)
{
    static struct um_lbtr_slot slots[1000];
    static struct um_lbtru_strangers strangers;
    struct um_lbtr_numbers numbers;
    for (unsigned i = 0; i < 1000; i++) { /* one stranger each second, a hundred datagrams */
        slots[i].index = i;
        if (i % 100 == 0) {
            um_lbtru_strangers_add(&strangers, T0 + i / 100 * SEC, &(struct um_lbtru_address){IP + i, 7})->from_index =
                i;
        }
        um_lbtru_strangers_keep(&strangers, &slots[i], 0);
    }
    CHECK(strangers.count == 4 && strangers.items[0].from_index == 600);
    CHECK(strangers.waiting.next - strangers.waiting.trail == 400);
    CHECK(um_lbtr_numbers_init(&numbers, 64, 0u - 5));
    um_lbtru_strangers_hand_over(&strangers, &strangers.items[1], 0, &numbers);
    CHECK(numbers.next - numbers.trail == 300 && um_lbtr_numbers_at(&numbers, 0u - 5)->index == 700);
    um_lbtru_strangers_hand_over(&strangers, &strangers.items[1], 990, &numbers); /* the window keeps ten */
    CHECK(numbers.next - numbers.trail == 310 && um_lbtr_numbers_at(&numbers, 295)->index == 990);
    um_lbtr_numbers_free(&numbers);
    um_lbtru_strangers_free(&strangers);
}
