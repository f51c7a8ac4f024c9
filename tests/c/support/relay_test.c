/* The impairment relay of tests/net: classification of frames, and rules whose
 * counts are a matter of the seed. */
#include <string.h>

#include "frame.h"
#include "impair.h"
#include "queue.h"
#include "um_test.h"
#include "wire/um_lbtrm.h"
#include "wire/um_lbtru.h"

static const struct frame_ports lbt_ports = {14390, 14400, 14360, 14389};

/* A UDP datagram to port `port` with the given payload, in an Ethernet frame. */
static size_t make_frame(uint8_t *out, uint16_t port, const uint8_t *payload, size_t len)
{
    static const uint8_t group[6] = {0x01, 0x00, 0x5e, 0x0a, 0x0a, 0x0a};
    memset(out, 0, 42);
    memcpy(out, group, 6);
    um_put16(out + 12, 0x0800);
    uint8_t *ip = out + 14;
    ip[0] = 0x45;
    um_put16(ip + 2, (uint16_t)(28 + len));
    ip[8] = 16;
    ip[9] = 17;
    um_put32(ip + 12, 0x0a090701);
    um_put32(ip + 16, 0xe00a0a0a);
    um_put16(ip + 20, 40000);
    um_put16(ip + 22, port);
    um_put16(ip + 24, (uint16_t)(8 + len));
    memcpy(ip + 28, payload, len);
    return 42 + len;
}

static enum frame_kind kind_of(uint16_t port, const uint8_t *payload, size_t len, struct frame_info *info)
{
    uint8_t frame[2048];
    frame_classify(frame, make_frame(frame, port, payload, len), &lbt_ports, info);
    return info->kind;
}

TEST(relay_knows_every_packet_of_lbtrm_and_lbtru)
{
    struct um_lbtrm_session session = {14390, 7};
    struct frame_info info;
    uint8_t packet[64];
    uint32_t sqns[] = {5, 6};
    CHECK_EQ(kind_of(14400, packet, um_lbtrm_put_data(packet, &session, 77, 3, 8, false), &info), FRAME_RM_DATA);
    CHECK(info.numbered && info.sqn == 77 && info.group && info.dport == 14400);
    CHECK_EQ(kind_of(14400, packet, um_lbtrm_put_data(packet, &session, 78, 3, 8, true), &info), FRAME_RM_RX);
    CHECK_EQ(kind_of(14400, packet, um_lbtrm_put_sm(packet, &session, 1, 2, 3, 8), &info), FRAME_RM_SM);
    CHECK_EQ(kind_of(14390, packet, um_lbtrm_put_nak(packet, &session, sqns, 2), &info), FRAME_RM_NAK);
    CHECK_EQ(kind_of(14400, packet, um_lbtrm_put_ncf(packet, &session, 1, UM_LBTR_RX_DELAY, sqns, 2), &info),
             FRAME_RM_NCF);
    CHECK_EQ(kind_of(14360, packet, um_lbtru_put_data(packet, 9, 55, 3, false), &info), FRAME_RU_DATA);
    CHECK(info.numbered && info.sqn == 55);
    CHECK_EQ(kind_of(14360, packet, um_lbtru_put_data(packet, 9, 55, 3, true), &info), FRAME_RU_RX);
    CHECK_EQ(kind_of(14360, packet, um_lbtru_put_sm(packet, 9, true, 1, 2, 3), &info), FRAME_RU_SM);
    CHECK_EQ(kind_of(14380, packet, um_lbtru_put_nak(packet, 9, sqns, 2), &info), FRAME_RU_NAK);
    CHECK_EQ(kind_of(14360, packet, um_lbtru_put_ncf(packet, 9, 1, UM_LBTR_NAK_SHED, sqns, 2), &info), FRAME_RU_NCF);
    CHECK_EQ(kind_of(14380, packet, um_lbtru_put_ack(packet, 9, 4), &info), FRAME_RU_ACK);
    CHECK_EQ(kind_of(14380, packet, um_lbtru_put_creq(packet, 9), &info), FRAME_RU_CREQ);
    CHECK_EQ(kind_of(14380, packet, um_lbtru_put_rst(packet), &info), FRAME_RU_RST);
    CHECK_EQ(kind_of(12965, packet, um_lbtru_put_rst(packet), &info), FRAME_UDP);
}

TEST(relay_looks_at_no_byte_behind_a_short_frame)
{
    uint8_t frame[2048], packet[64];
    struct um_lbtrm_session session = {14390, 7};
    size_t len = make_frame(frame, 14400, packet, um_lbtrm_put_data(packet, &session, 77, 3, 8, false));
    for (size_t cut = 0; cut < len; cut++) {
        uint8_t exact[128];
        struct frame_info info;
        memcpy(exact, frame, cut);
        frame_classify(exact, cut, &lbt_ports, &info);
        CHECK_EQ(info.kind, FRAME_OTHER);
    }
}

TEST(relay_checksum_is_the_one_of_rfc_768)
{
    uint8_t frame[64], payload[] = {1, 2, 3};
    struct frame_info info;
    size_t len = make_frame(frame, 1, payload, sizeof payload);
    frame_classify(frame, len, &lbt_ports, &info);
    frame_checksum(frame, &info);
    /* 0a09+0701+e00a+0a0a+0011+000b + 9c40+0001+000b+0102+0300 = 19b88; folded 9b89; complement 6476 */
    CHECK_EQ(um_get16(frame + 40), 0x6476);
}

static void command(struct impair *impair, const char *line)
{
    char reply[128] = "";
    CHECK(impair_command(impair, line, reply, sizeof reply));
    CHECK_STR(reply, "");
}

/* Sends so many data datagrams from port 0 to ports 1 to 3. */
static void send_data(struct impair *impair, uint32_t count)
{
    for (uint32_t sqn = 0; sqn < count; sqn++) {
        struct frame_info info = {.kind = FRAME_RM_DATA, .group = true, .numbered = true, .sqn = sqn, .dport = 14400};
        struct impair_fate fate;
        for (unsigned out = 1; out < 4; out++) {
            impair_frame(impair, sqn * 1000u, sqn + 1u, 0, out, &info, 100, &fate);
        }
    }
}

static const struct impair_counts *counts_of(const struct impair *impair, size_t rule, unsigned port)
{
    return &impair->rules[rule].counts[port];
}

TEST(relay_counts_are_a_matter_of_the_seed)
{
    static const char *const rules[] = {"rule plain loss=5%", "rule bursts burst=1%/5", "rule more duplicate=0.1",
                                        "rule order reorder=25%/2ms jitter=10ms", "rule bytes corrupt=1%"};
    uint64_t lost[3] = {0}, fates[3] = {0};
    for (int run = 0; run < 3; run++) {
        struct impair impair;
        impair_init(&impair, run < 2 ? 42 : 43, 4);
        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
            command(&impair, rules[i]);
        }
        send_data(&impair, 20000);
        lost[run] = counts_of(&impair, 0, 1)->lost;
        fates[run] = impair.rules[0].state[1].random;
        uint64_t bursts = counts_of(&impair, 1, 1)->lost;
        CHECK(lost[run] > 900 && lost[run] < 1100);
        CHECK(bursts > 120 && bursts < 280);
        CHECK(counts_of(&impair, 0, 1)->lost != counts_of(&impair, 0, 2)->lost);
        CHECK(counts_of(&impair, 2, 1)->duplicated > 1700);
        CHECK(counts_of(&impair, 3, 1)->reordered > 4800 && counts_of(&impair, 3, 1)->reordered < 5500);
        CHECK(counts_of(&impair, 4, 1)->corrupted > 120);
    }
    CHECK_EQ(lost[0], lost[1]);
    CHECK_EQ(fates[0], fates[1]);
    CHECK(fates[0] != fates[2]);
}

TEST(relay_shared_loss_meets_every_receiver)
{
    struct impair impair;
    impair_init(&impair, 1, 4);
    command(&impair, "rule trunk shared=1 loss=10% from=0");
    send_data(&impair, 5000);
    CHECK(counts_of(&impair, 0, 1)->lost > 400);
    CHECK_EQ(counts_of(&impair, 0, 1)->lost, counts_of(&impair, 0, 2)->lost);
    CHECK_EQ(counts_of(&impair, 0, 1)->lost, counts_of(&impair, 0, 3)->lost);
}

TEST(relay_rules_meet_only_what_they_name)
{
    struct impair impair;
    impair_init(&impair, 1, 4);
    command(&impair, "rule repairs kinds=repair loss=100%");
    command(&impair, "rule some kinds=rm.data to=2 sqn=10-19 loss=100%");
    command(&impair, "rule first frames=3-4 to=3");
    command(&impair, "rule port port=9 loss=100%");
    command(&impair, "rule held frames=1-5 to=1 delay=1ms");
    send_data(&impair, 100);
    CHECK_EQ(counts_of(&impair, 0, 1)->matched, 0u);
    CHECK_EQ(counts_of(&impair, 1, 1)->lost, 0u);
    CHECK_EQ(counts_of(&impair, 1, 2)->lost, 10u);
    CHECK_EQ(counts_of(&impair, 2, 3)->lost, 2u);
    CHECK_EQ(counts_of(&impair, 3, 1)->matched, 0u);
    CHECK_EQ(counts_of(&impair, 4, 1)->delayed, 5u);
    CHECK_EQ(counts_of(&impair, 4, 1)->lost, 0u);
    command(&impair, "clear some");
    command(&impair, "cut 1");
    send_data(&impair, 100);
    CHECK_EQ(counts_of(&impair, 1, 2)->lost, 10u);
    CHECK_EQ(counts_of(&impair, 2, 3)->matched, 200u);
}

TEST(relay_refuses_commands_it_does_not_understand)
{
    static const char *const wrong[] = {"",
                                        "rule",
                                        "rule a loss",
                                        "rule a loss=101%",
                                        "rule a loss=1x",
                                        "rule a kinds=rm.nothing",
                                        "rule a from=9",
                                        "rule a reorder=1%",
                                        "rule a delay=3",
                                        "rule a sqn=5-4",
                                        "clear nobody",
                                        "cut",
                                        "burn 1"};
    struct impair impair;
    impair_init(&impair, 1, 4);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char reply[128] = "";
        CHECK(!impair_command(&impair, wrong[i], reply, sizeof reply));
        CHECK(reply[0] != '\0');
    }
    CHECK_EQ(impair.rules_used, 0u);
}

TEST(relay_link_of_limited_rate_delays_and_drops)
{
    struct impair impair;
    struct impair_fate fate;
    struct frame_info info = {.kind = FRAME_UDP};
    impair_init(&impair, 1, 4);
    command(&impair, "rule slow rate=8000000/2ms"); /* a byte each microsecond */
    uint64_t last = 0;
    unsigned passed = 0;
    for (unsigned i = 0; i < 10; i++) {
        impair_frame(&impair, 0, i + 1, 0, 1, &info, 1000, &fate);
        passed += fate.copies;
        last = fate.copies != 0 ? fate.copy[0].due_ns : last;
    }
    CHECK_EQ(passed, 3u);
    CHECK_EQ(last, 3000000u);
    CHECK_EQ(counts_of(&impair, 0, 1)->overflowed, 7u);
}

TEST(relay_queue_gives_frames_by_time_then_as_they_came)
{
    struct queue queue;
    queue_init(&queue, 8);
    static const uint64_t due[] = {30, 10, 20, 10, 40, 10};
    struct queue_entry entry;
    for (unsigned i = 0; i < 6; i++) {
        queue_put(&queue, due[i], i, queue_new_frame(&queue));
    }
    static const unsigned expected[] = {1, 3, 5, 2, 0, 4};
    CHECK(!queue_take_due(&queue, 9, &entry));
    for (unsigned i = 0; i < 6; i++) {
        CHECK(queue_take_due(&queue, 100, &entry));
        CHECK_EQ(entry.port, expected[i]);
        queue_release(&queue, entry.frame);
    }
    CHECK(!queue_take_due(&queue, 100, &entry));
    CHECK_EQ(queue.frames, 6u);
    queue_close(&queue);
}
