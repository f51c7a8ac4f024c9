/* LBT-RU packets: byte for byte as on the wire, every length checked, nothing read past the end. */
#include "base/um_random.h"
#include "um_test.h"
#include "um_test_packets.h"
#include "wire/um_lbtru.h"

#define SID 0x263170a3u

static const char creq[] = "0601000000080000263170a3";
static const char syn[] = "0201800000000000ffffffff0000000000080000263170a3";
static const char ack[] = "05010000ffffffff00080000263170a3";
static const char hello[] = "00010000000000000000000000080000263170a3"
                            "000000115bc8f9a10000000068656c6c6f";
static const char sm[] = "0201000000000001000000020000000000080000263170a3";
static const char nak[] = "0301000000020000000000010000000200080000263170a3";
static const char repair[] = "00014000000000010000000000080000263170a3"
                             "000000105bc8f9a1000000016c6f7374";
static const char ncf[] = "0401000000000000000100100000000100080000263170a3";
static const char ack_2[] = "050100000000000200080000263170a3";
static const char rst[] = "07000000";
static const char creq_cid[] = "0601000002080000263170a30008800001020304";
static const char plain[] = "000000000000000000000000000000115bc8f9a10000000068656c6c6f";
static const char init[] = "00010000000000000000000000080000263170a3"
                           "08100018ff144000000000010000000138370000"
                           "0a1d0358";
static const char *const all[] = {creq, syn, ack, hello, sm, nak, repair, ncf, ack_2, rst, creq_cid, plain, init};

TEST(packets_are_written_as_on_the_wire)
{
    uint8_t out[64], want[64];
    CHECK_PACKET(out, um_lbtru_put_creq(out, SID), creq);
    CHECK_PACKET(out, um_lbtru_put_sm(out, SID, true, 0, 0xffffffff, 0), syn);
    CHECK_PACKET(out, um_lbtru_put_ack(out, SID, 0xffffffff), ack);
    CHECK_PACKET(out, um_lbtru_put_sm(out, SID, false, 1, 2, 0), sm);
    CHECK_PACKET(out, um_lbtru_put_nak(out, SID, (uint32_t[]){1, 2}, 2), nak);
    CHECK_PACKET(out, um_lbtru_put_ncf(out, SID, 0, UM_LBTR_NAK_IGNORED, (uint32_t[]){1}, 1), ncf);
    CHECK_PACKET(out, um_lbtru_put_ack(out, SID, 2), ack_2);
    CHECK_PACKET(out, um_lbtru_put_rst(out), rst);
    CHECK_EQ(um_lbtru_put_data(out, SID, 0, 0, false), UM_LBTRU_DATA_HDR_MAX);
    packet_bytes(hello, want);
    CHECK(memcmp(out, want, UM_LBTRU_DATA_HDR_MAX) == 0);
    CHECK_EQ(um_lbtru_put_data(out, SID, 1, 0, true), UM_LBTRU_DATA_HDR_MAX);
    packet_bytes(repair, want);
    CHECK(memcmp(out, want, UM_LBTRU_DATA_HDR_MAX) == 0);
    CHECK_EQ(um_lbtru_put_data(out, 0, 0, 0, false), 12);
    packet_bytes(plain, want);
    CHECK(memcmp(out, want, 12) == 0);
}

TEST(fields_come_out_of_the_packets)
{
    uint8_t bytes[64];
    struct um_lbtru_packet p;
    CHECK_EQ(um_lbtru_decode(bytes, packet_bytes(creq_cid, bytes), &p), UM_LBTR_OK);
    CHECK(p.type == UM_LBTRU_CREQ && p.code == 0 && p.has_sid && p.sid == SID && p.has_cid && p.cid == 0x01020304);
    CHECK_EQ(um_lbtru_decode(bytes, packet_bytes(syn, bytes), &p), UM_LBTR_OK);
    CHECK(p.type == UM_LBTRU_SM && p.syn && p.sqn == 0 && p.lead == 0xffffffff && p.trail == 0 && p.sid == SID);
    CHECK_EQ(um_lbtru_decode(bytes, packet_bytes(repair, bytes), &p), UM_LBTR_OK);
    CHECK(p.type == UM_LBTRU_DATA && p.retransmission && p.sqn == 1 && p.payload.len == 16);
    CHECK(p.payload.ptr == bytes + 20);
    CHECK_EQ(um_lbtru_decode(bytes, packet_bytes(plain, bytes), &p), UM_LBTR_OK);
    CHECK(!p.has_sid && !p.retransmission && p.payload.len == 17 && p.payload.ptr == bytes + 12);
    CHECK_EQ(um_lbtru_decode(bytes, packet_bytes(init, bytes), &p), UM_LBTR_OK);
    CHECK_EQ(p.payload.len, 24);
    CHECK_EQ(um_lbtru_decode(bytes, packet_bytes(nak, bytes), &p), UM_LBTR_OK);
    CHECK(p.list.count == 2 && um_lbtr_list_at(&p.list, 1) == 2 && p.sid == SID);
    CHECK_EQ(um_lbtru_decode(bytes, packet_bytes(ncf, bytes), &p), UM_LBTR_OK);
    CHECK(p.type == UM_LBTRU_NCF && p.reason == UM_LBTR_NAK_IGNORED && um_lbtr_list_at(&p.list, 0) == 1);
    CHECK_EQ(um_lbtru_decode(bytes, packet_bytes(ack_2, bytes), &p), UM_LBTR_OK);
    CHECK(p.type == UM_LBTRU_ACK && p.sqn == 2);
    CHECK_EQ(um_lbtru_decode(bytes, packet_bytes(rst, bytes), &p), UM_LBTR_OK);
    CHECK(p.type == UM_LBTRU_RST && p.code == 0 && !p.has_sid);
}

TEST(every_truncation_is_refused)
{
    uint8_t bytes[64];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t len = packet_bytes(all[i], bytes);
        size_t least = (bytes[0] & 0x0f) != UM_LBTRU_DATA ? len : bytes[1] != 0 ? 20 : 12;
        for (size_t cut = 0; cut < len; cut++) {
            uint8_t *exact = malloc(cut + 1); /* the sanitizer sees a read past the end */
            struct um_lbtru_packet p;
            memcpy(exact + 1, bytes, cut);
            enum um_lbtr_rc rc = um_lbtru_decode(exact + 1, cut, &p);
            free(exact);
            CHECK((rc == UM_LBTR_OK) == (cut >= least));
            CHECK(rc == UM_LBTR_OK || rc == UM_LBTR_SIZE || rc == UM_LBTR_HEADER);
        }
    }
}

TEST(list_longer_than_the_packet_is_refused)
{
    uint8_t bytes[64];
    struct um_lbtru_packet p;
    for (uint32_t count = 5; count < 65536; count += 97) {
        size_t len = packet_bytes(nak, bytes);
        um_put16(bytes + 4, (uint16_t)count);
        CHECK_EQ(um_lbtru_decode(bytes, len, &p), UM_LBTR_SIZE);
        len = packet_bytes(ncf, bytes);
        um_put16(bytes + 8, (uint16_t)count);
        CHECK_EQ(um_lbtru_decode(bytes, len, &p), UM_LBTR_SIZE);
    }
}

TEST(what_has_no_meaning_is_told_apart)
{
    uint8_t bytes[64];
    struct um_lbtru_packet p;
    size_t len = packet_bytes(hello, bytes);
    for (unsigned type = 0; type < 16; type++) {
        bytes[0] = (uint8_t)type;
        CHECK((um_lbtru_decode(bytes, len, &p) == UM_LBTR_TYPE) == (type == 1 || type > 7));
    }
    bytes[0] = 0x10;
    CHECK_EQ(um_lbtru_decode(bytes, len, &p), UM_LBTR_VERSION);
    packet_bytes(hello, bytes);
    bytes[1] = 0x7f; /* an unknown option that must be known */
    CHECK_EQ(um_lbtru_decode(bytes, len, &p), UM_LBTR_HEADER);
    um_put16(bytes + 14, 0x8000);
    CHECK_EQ(um_lbtru_decode(bytes, len, &p), UM_LBTR_OK);
    CHECK(!p.has_sid);
    packet_bytes(hello, bytes);
    for (unsigned option_len = 0; option_len < 256; option_len++) {
        bytes[13] = (uint8_t)option_len;
        CHECK((um_lbtru_decode(bytes, len, &p) == UM_LBTR_OK) == (option_len == 8));
    }
}

TEST(random_bytes_never_crash_the_decoder)
{
    struct um_rng rng;
    um_rng_seed(&rng, 12);
    for (int round = 0; round < 200000; round++) {
        uint8_t bytes[48];
        size_t len = (size_t)um_rng_range(&rng, 0, sizeof bytes);
        struct um_lbtru_packet p;
        for (size_t i = 0; i < sizeof bytes; i += 8) {
            um_put64(bytes + i, um_rng_u64(&rng));
        }
        bytes[0] &= um_rng_range(&rng, 0, 3) != 0 ? 0x07 : 0xff;
        bytes[1] &= um_rng_range(&rng, 0, 3) != 0 ? 0x03 : 0xff;
        if (um_lbtru_decode(bytes, len, &p) == UM_LBTR_OK) {
            CHECK(p.list.count == 0 || p.list.bytes + 4 * p.list.count <= bytes + len);
            CHECK(p.payload.ptr + p.payload.len <= bytes + len);
        }
    }
}
