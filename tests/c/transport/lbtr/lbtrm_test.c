/* LBT-RM packets: byte for byte as on the wire, every length checked, nothing read past the end. */
#include "base/um_random.h"
#include "um_test.h"
#include "um_test_packets.h"
#include "wire/um_lbtrm.h"

static const struct um_lbtrm_session session = {14390, 0xe0679abb};

static const char hello[] = "00003836e0679abb0000000000000000800300000000"
                            "00115bc8f9a10000000068656c6c6f";
static const char batch[] = "00003836e0679abb0000000100000000800300000000"
                            "00105bc8f9a100000001414141410000000e5bc8f9a2000000004242";
static const char sm[] = "02003836e0679abb00000000000000050000000080030000";
static const char nak[] = "03003836e0679abb000200000000000300000004";
static const char repair[] = "00003836e0679abb0000000300000000a00300000000"
                             "00105bc8f9a1000000036c6f7374";
static const char ncf_ignored[] = "04003836e0679abb000000000001001000000003";
static const char ncf_delay[] = "04003836e0679abb000000000001002000000004";
static const char ncf_shed[] = "04003836e0679abb000000000001003000000004";
static const char ncf_gone[] = "04003836e0679abb000000640001000000000004";
static const char *const all[] = {hello, batch, sm, nak, repair, ncf_ignored, ncf_delay, ncf_shed, ncf_gone};

TEST(data_is_written_as_on_the_wire)
{
    uint8_t out[64], want[64];
    CHECK_EQ(um_lbtrm_put_data(out, &session, 0, 0, 3, false), UM_LBTRM_DATA_HDR);
    packet_bytes(hello, want);
    CHECK(memcmp(out, want, UM_LBTRM_DATA_HDR) == 0);
    um_lbtrm_put_data(out, &session, 1, 0, 3, false);
    packet_bytes(batch, want);
    CHECK(memcmp(out, want, UM_LBTRM_DATA_HDR) == 0);
    um_lbtrm_put_data(out, &session, 3, 0, 3, true);
    packet_bytes(repair, want);
    CHECK(memcmp(out, want, UM_LBTRM_DATA_HDR) == 0);
}

TEST(control_packets_are_written_as_on_the_wire)
{
    uint8_t out[64];
    CHECK_PACKET(out, um_lbtrm_put_sm(out, &session, 0, 5, 0, 3), sm);
    CHECK_PACKET(out, um_lbtrm_put_nak(out, &session, (uint32_t[]){3, 4}, 2), nak);
    CHECK_PACKET(out, um_lbtrm_put_ncf(out, &session, 0, UM_LBTR_NAK_IGNORED, (uint32_t[]){3}, 1), ncf_ignored);
    CHECK_PACKET(out, um_lbtrm_put_ncf(out, &session, 0, UM_LBTR_RX_DELAY, (uint32_t[]){4}, 1), ncf_delay);
    CHECK_PACKET(out, um_lbtrm_put_ncf(out, &session, 0, UM_LBTR_NAK_SHED, (uint32_t[]){4}, 1), ncf_shed);
    CHECK_PACKET(out, um_lbtrm_put_ncf(out, &session, 100, UM_LBTR_DO_NOT_RETRY, (uint32_t[]){4}, 1), ncf_gone);
}

TEST(fields_come_out_of_the_packets)
{
    uint8_t bytes[64];
    struct um_lbtrm_packet p;
    CHECK_EQ(um_lbtrm_decode(bytes, packet_bytes(repair, bytes), &p), UM_LBTR_OK);
    CHECK(p.type == UM_LBTRM_DATA && p.sqn == 3 && p.trail == 0 && p.retransmission);
    CHECK(p.session.ucast_port == 14390 && p.session.session_id == 0xe0679abb && p.payload.len == 16);
    CHECK(p.payload.ptr == bytes + 20 && p.tgsz == 3);
    CHECK_EQ(um_lbtrm_decode(bytes, packet_bytes(sm, bytes), &p), UM_LBTR_OK);
    CHECK(p.type == UM_LBTRM_SM && p.sqn == 0 && p.lead == 5 && p.trail == 0);
    CHECK_EQ(um_lbtrm_decode(bytes, packet_bytes(nak, bytes), &p), UM_LBTR_OK);
    CHECK(p.type == UM_LBTRM_NAK && p.list.count == 2);
    CHECK(um_lbtr_list_at(&p.list, 0) == 3 && um_lbtr_list_at(&p.list, 1) == 4);
    CHECK_EQ(um_lbtrm_decode(bytes, packet_bytes(ncf_gone, bytes), &p), UM_LBTR_OK);
    CHECK(p.type == UM_LBTRM_NCF && p.trail == 100 && p.reason == UM_LBTR_DO_NOT_RETRY && p.list.count == 1);
    CHECK_EQ(um_lbtrm_decode(bytes, packet_bytes(ncf_shed, bytes), &p), UM_LBTR_OK);
    CHECK(p.reason == UM_LBTR_NAK_SHED && um_lbtr_list_at(&p.list, 0) == 4);
}

/* Bytes a packet cannot be shortened below: the payload of DATA may have any length. */
static size_t least(const uint8_t *bytes, size_t len)
{
    return (bytes[0] & 0x0f) == UM_LBTRM_DATA ? UM_LBTRM_DATA_HDR : len;
}

TEST(every_truncation_is_refused)
{
    uint8_t bytes[64];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t len = packet_bytes(all[i], bytes);
        for (size_t cut = 0; cut < len; cut++) {
            uint8_t *exact = malloc(cut + 1); /* the sanitizer sees a read past the end */
            struct um_lbtrm_packet p;
            memcpy(exact + 1, bytes, cut);
            enum um_lbtr_rc rc = um_lbtrm_decode(exact + 1, cut, &p);
            free(exact);
            CHECK_EQ(rc, cut < least(bytes, len) ? UM_LBTR_SIZE : UM_LBTR_OK);
        }
    }
}

TEST(every_truncation_with_an_option_is_refused)
{
    uint8_t bytes[64];
    for (size_t i = 2; i < sizeof all / sizeof *all; i++) {
        size_t len = packet_bytes(all[i], bytes);
        if (least(bytes, len) != len) {
            continue;
        }
        bytes[1] = 9;
        memcpy(bytes + len, (uint8_t[]){0, 8, 0x80, 0, 1, 2, 3, 4}, 8);
        for (size_t cut = 0; cut <= len + 8; cut++) {
            uint8_t *exact = malloc(cut + 1);
            struct um_lbtrm_packet p;
            memcpy(exact + 1, bytes, cut);
            enum um_lbtr_rc rc = um_lbtrm_decode(exact + 1, cut, &p);
            free(exact);
            CHECK_EQ(rc, cut < len ? UM_LBTR_SIZE : cut < len + 8 ? UM_LBTR_HEADER : UM_LBTR_OK);
        }
    }
}

TEST(list_longer_than_the_packet_is_refused)
{
    uint8_t bytes[64];
    struct um_lbtrm_packet p;
    for (uint32_t count = 3; count < 65536; count += 97) {
        size_t len = packet_bytes(nak, bytes);
        um_put16(bytes + 8, (uint16_t)count);
        CHECK_EQ(um_lbtrm_decode(bytes, len, &p), UM_LBTR_SIZE);
        len = packet_bytes(ncf_shed, bytes);
        um_put16(bytes + 12, (uint16_t)count);
        CHECK_EQ(um_lbtrm_decode(bytes, len, &p), UM_LBTR_SIZE);
    }
}

TEST(what_has_no_meaning_is_told_apart)
{
    uint8_t bytes[64];
    struct um_lbtrm_packet p;
    size_t len = packet_bytes(hello, bytes);
    for (unsigned type = 0; type < 16; type++) {
        bytes[0] = (uint8_t)type;
        enum um_lbtr_rc rc = um_lbtrm_decode(bytes, len, &p);
        CHECK((rc == UM_LBTR_TYPE) == (type == 1 || type > 4));
    }
    bytes[0] = 0x10;
    CHECK_EQ(um_lbtrm_decode(bytes, len, &p), UM_LBTR_VERSION);
    CHECK_EQ(um_lbtrm_decode(bytes, 7, &p), UM_LBTR_SIZE);
    bytes[0] = 0;
    bytes[1] = 0x7f;
    CHECK_EQ(um_lbtrm_decode(bytes, len, &p), UM_LBTR_HEADER);
    len = packet_bytes(nak, bytes);
    bytes[11] = 1;
    CHECK_EQ(um_lbtrm_decode(bytes, len, &p), UM_LBTR_OTHER);
    len = packet_bytes(ncf_shed, bytes);
    bytes[15] |= 1;
    CHECK_EQ(um_lbtrm_decode(bytes, len, &p), UM_LBTR_OTHER);
}

TEST(ignorable_options_are_skipped_and_the_payload_follows)
{
    uint8_t bytes[64];
    struct um_lbtrm_packet p;
    um_lbtrm_put_data(bytes, &session, 7, 1, 3, false);
    bytes[1] = 5;
    memcpy(bytes + 20, (uint8_t[]){6, 4, 0x80, 0, 0, 6, 0x80, 0, 1, 2, 'x'}, 11);
    CHECK_EQ(um_lbtrm_decode(bytes, 31, &p), UM_LBTR_OK);
    CHECK(p.payload.len == 1 && p.payload.ptr[0] == 'x');
    bytes[21] = 3;
    CHECK_EQ(um_lbtrm_decode(bytes, 31, &p), UM_LBTR_HEADER);
    bytes[21] = 4;
    bytes[26] = 0;
    CHECK_EQ(um_lbtrm_decode(bytes, 31, &p), UM_LBTR_HEADER);
}

TEST(random_bytes_never_crash_the_decoder)
{
    struct um_rng rng;
    um_rng_seed(&rng, 11);
    for (int round = 0; round < 200000; round++) {
        uint8_t bytes[48];
        size_t len = (size_t)um_rng_range(&rng, 0, sizeof bytes);
        struct um_lbtrm_packet p;
        for (size_t i = 0; i < sizeof bytes; i += 8) {
            um_put64(bytes + i, um_rng_u64(&rng));
        }
        bytes[0] &= um_rng_range(&rng, 0, 3) != 0 ? 0x07 : 0xff;
        bytes[1] &= um_rng_range(&rng, 0, 3) != 0 ? 0 : 0xff;
        if (um_lbtrm_decode(bytes, len, &p) == UM_LBTR_OK) {
            CHECK(p.list.count == 0 || p.list.bytes + 4 * p.list.count <= bytes + len);
            CHECK(p.payload.ptr + p.payload.len <= bytes + len);
        }
    }
}
