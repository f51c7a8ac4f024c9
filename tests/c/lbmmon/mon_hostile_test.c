/* A receive controller and what strangers send it: counted, bounded, and what is good between it is delivered. */
#include <arpa/inet.h>
#include <malloc.h>
#include <unistd.h>

#include <lbm/lbmmon.h>
#include <lbm/um.h>

#include "um_test.h"
#include "um_test_net.h"
#include "um_test_mon.h"

#include "base/um_random.h"
#include "base/um_bytes.h"
#include "lbmmon/um_mon_lbm.h"
#include "lbmmon/um_mon_packet.h"

enum { PACKETS = 100000, GOOD_EACH = 100 };

/* A transport in memory: makes the packets itself, and then has none. */
struct attacker {
    struct um_rng rng;
    atomic_int sent;
    uint8_t good[2048];
    size_t good_len;
};

static struct attacker attacker;

/* A context record in CSV. */
static void make_good(void)
{
    uint8_t *at = attacker.good;
    lbm_context_stats_t stats = {0};
    lbmmon_packet_attributes_t attributes;
    size_t size = 1024;
    um_mon_attributes_init(&attributes);
    attributes.mFlags = UM_MON_HAS(LBMMON_ATTR_FORMAT_MODULEID) | UM_MON_HAS(LBMMON_ATTR_APPSOURCEID);
    attributes.mModuleID = 0x0105;
    strcpy(attributes.mApplicationSourceID, "good");
    size_t block = um_mon_attributes_write(&attributes, at + UM_MON_HEAD_LEN, 256);
    unsigned short id;
    REQUIRE(lbmmon_ctx_format_csv_serialize((char *)at + UM_MON_HEAD_LEN + block, &size, &id, NULL, &stats, NULL) == 0);
    um_mon_head_write(at, LBMMON_PACKET_TYPE_CONTEXT, block, size);
    attacker.good_len = UM_MON_HEAD_LEN + block + size;
}

/* Noise, a cut, flipped bytes, another type, or a forged count of entries. */
static size_t make_bad(uint8_t *out)
{
    struct um_rng *rng = &attacker.rng;
    size_t len = attacker.good_len;
    memcpy(out, attacker.good, len);
    switch (um_rng_range(rng, 0, 4)) {
    case 0:
        len = um_rng_range(rng, 0, 512);
        for (size_t i = 0; i < len; i++) {
            out[i] = (uint8_t)um_rng_u32(rng);
        }
        return len;
    case 1:
        return um_rng_range(rng, 0, len - 1);
    case 2:
        out[um_rng_range(rng, 0, UM_MON_HEAD_LEN + 20)] ^= (uint8_t)um_rng_range(rng, 1, 255);
        return len;
    case 3:
        um_put16(out + 4, (uint16_t)um_rng_range(rng, 0, 20));
        return len;
    default:
        um_put16(out + UM_MON_HEAD_LEN, 0xffff);
        return len;
    }
}

static int attack(char *data, size_t *len, unsigned timeout_ms, void *clientd)
{
    int number = atomic_load(&attacker.sent);
    if (number == PACKETS) {
        sleep_ms(1);
        return 1;
    }
    if (number % GOOD_EACH == 0) {
        memcpy(data, attacker.good, attacker.good_len);
        *len = attacker.good_len;
    } else {
        *len = make_bad((uint8_t *)data);
    }
    atomic_store(&attacker.sent, number + 1);
    return 0;
}

TEST(a_hundred_thousand_forged_packets_are_counted_and_the_good_ones_delivered)
{
    static const lbmmon_transport_func_t transport = {.mReceive = attack};
    struct mon_seen seen = MON_SEEN_INIT;
    um_mon_rcv_stats_t stats = {0};
    um_rng_seed(&attacker.rng, 7);
    make_good();
    mon_listen(&seen, lbmmon_format_csv_module(), NULL, &transport, NULL);
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < HANG_SECONDS * 1000 && stats.packets < PACKETS; i++) {
        sleep_ms(1);
        CHECK_EQ(um_mon_rcv_stats(seen.control, &stats), 0);
    }
    CHECK_EQ(stats.packets, PACKETS);
    CHECK(mon_count(&seen, &seen.contexts) >= PACKETS / GOOD_EACH);
    unsigned long delivered = (unsigned long)(seen.contexts + seen.sources + seen.receivers + seen.event_queues +
                                              seen.topics + seen.patterns + seen.passed);
    unsigned long refused = stats.malformed + stats.unknown + stats.undecodable;
    CHECK(stats.malformed > 0 && stats.unknown > 0 && stats.undecodable > 0);
    CHECK(delivered + refused >= PACKETS - 1); /* all are accounted for; the last may be in its callback */
    CHECK(mallinfo2().uordblks < before + (4 << 20));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
}

/* The topic floods while nobody takes: what waits is bounded, the rest is counted. */
TEST(what_waits_is_bounded)
{
    TEST_NEEDS_NET();
    void *end;
    lbm_context_attr_t *attr = net_context_attr();
    lbm_context_t *ctx = net_context_with(attr);
    lbm_src_t *src = net_source(ctx, "/29west/statistics");
    static char big[60000];
    static char taken[UM_MON_PACKET_MAX];
    size_t len = sizeof taken;
    CHECK_EQ(lbmmon_transport_lbm_initrcv(&end, MON_NET), 0);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    for (int i = 0; i < 600; i++) { /* 36 MB */
        MUST(lbm_src_send(src, big, sizeof big, LBM_MSG_FLUSH));
    }
    uint64_t taken_count = 0;
    for (int i = 0; i < HANG_SECONDS * 10 && taken_count + um_mon_lbm_dropped(end) < 600; i++) {
        while (lbmmon_transport_lbm_receive(taken, &len, 100, end) == 0) {
            CHECK_EQ(len, sizeof big);
            len = sizeof taken;
            taken_count++;
        }
    }
    CHECK_EQ(taken_count + um_mon_lbm_dropped(end), 600);
    len = 10;
    MUST(lbm_src_send(src, big, 100, LBM_MSG_FLUSH));
    CHECK_EQ(lbmmon_transport_lbm_receive(taken, &len, HANG_SECONDS * 1000, end), -1);
    CHECK_CONTAINS(lbmmon_transport_lbm_errmsg(), "Length 10 is too small");
    CHECK_EQ(lbmmon_transport_lbm_rcv_finish(end), 0);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}
