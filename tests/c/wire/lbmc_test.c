/* LBMC codec: golden packets (each decoded, its fields checked, and encoded again where we send it), every truncation
 * of each, header-chain rules, round trips and random bytes. */
#include <ctype.h>

#include "base/um_random.h"
#include "um_test.h"
#include "wire/um_lbmc.h"
#include "wire/um_lbmc_hf.h"

struct golden {
    const char *name;
    const char *hex;
    uint32_t present;
    size_t payload_len;
};

/* Addresses and instances as in the packets below. */
static const uint8_t source_instance[8] = {0x1a, 0x2b, 0x3c, 0x4d, 0x5e, 0x6f, 0x70, 0x81};
static const uint8_t receiver_instance[8] = {0x90, 0xa1, 0xb2, 0xc3, 0xd4, 0xe5, 0xf6, 0x07};
#define TIDX 0x5bc8a1f1u

#define HELLO "00000011 5bc8a1f1 00000007 68656c6c6f"
#define TWO_TOPICS "0000000f 5bc8a1f1 00000008 616263 00000010 5bc8a1f2 00000000 78797a31"
#define FRAGMENT_1 "00010024 5bc8a1f1 00000009 00100000 00000009 00000000 00000014 4141414141414141"
#define FRAGMENT_2 "00010024 5bc8a1f1 0000000a 00100000 00000009 00000008 00000014 4242424242424242"
#define FRAGMENT_3 "00010020 5bc8a1f1 0000000b 00100000 00000009 00000010 00000014 43434343"
#define BATCH_START "00020015 5bc8a1f1 0000000c 00040002 6669727374"
#define BATCH_END "00020014 5bc8a1f1 0000000d 00040001 6c617374"
#define TSNI_TWO "08200018 ff140002 5bc8a1f1 0000000b 5bc8a1f2 00000000"
#define TSNI_NEVER_SENT "08200010 ff0c0001 5bc8a1f1 ffffffff"
#define REQUEST "000d002c 5bc8a1f1 0000000c 040c0000 1a2b3c4d5e6f7081 00100000 00000001 38380000 0a1d014e 70696e67"
#define RESPONSE                                                                                                       \
    "004b0030 00000001 00000000 0c140000 00000001 00000000 90a1b2c3d4e5f607 000c0000"                                  \
    "1a2b3c4d5e6f7081 706f6e67"
#define UIM_TOPIC                                                                                                      \
    "004b0053 00000000 00000000 64140000 00000001 00000000 90a1b2c3d4e5f607 051c0000 00000000 0a1d014e 3837"           \
    "0000 00000000 0a1d015a 38370000 000e0000 746f7069634e616d6500 68656c6c6f2075696d"
#define UIM_TOPICLESS                                                                                                  \
    "004b0044 00000000 00000001 64140000 00000001 00000001 90a1b2c3d4e5f607 001c0000 00000000 0a1d014e 3837"           \
    "0000 00000000 0a1d015a 38370000 6e6f20746f706963"
#define UIM_REQUEST                                                                                                    \
    "004b006a 00000000 00000002 64140000 00000001 00000002 90a1b2c3d4e5f607 051c0000 00000000 0a1d014e 3837"           \
    "0000 00000000 0a1d015a 38370000 0d0e0000 746f7069634e616d6500 040c0000 90a1b2c3d4e5f607 00100000"                 \
    "00000009 38370000 0a1d015a 736e6170"
#define PROPERTIES                                                                                                     \
    "00070052 5bc8a1f1 0000000d 000c0006 ff080000 00000035 6461746121 badaacab 02000000 28000000 2c000000"             \
    "8b5c880b 04000000 30000000 32000000 f8b50200 08000000 61626300 1d000000 5300 686900"
#define CHANNEL "0007001a 5bc8a1f1 0000000e 000c0001 ff080000 00003039 6368"
#define HOT_FAILOVER_32 "0007001a 5bc8a1f1 0000000f 000c0002 ff080000 000003e8 6866"
#define HOT_FAILOVER_OPTIONAL "00070019 5bc8a1f1 00000014 000c0002 ff080001 0000000d 6f"
#define ALL_ELEMENTS                                                                                                   \
    "00070048 5bc8a1f1 00000011 001c0006 01080000 0000001e 02080000 00000007 ff080000 00000009 6464 badaacab"          \
    "01000000 18000000 1a000000 10b60200 04000000 6b00 ffffffff"
#define HOT_FAILOVER_64 "0007001e 5bc8a1f1 00000010 00100002 ff0c0000 0000000100000001 6866"
#define HOT_FAILOVER_RESET "00070018 5bc8a1f1 00000015 000c0002 ff080002 00001388"
#define USER_HEADER "00070019 5bc8a1f1 00000013 000c0005 ff08004d 61626300 78"
#define MIM "0005002f 00000000 00000000 420e0000 746f7069634e616d6500 000c0000 1a2b3c4d5e6f7081 696d6d656469617465"
#define MIM_TOPICLESS "00420021 00000000 00000001 000c0000 1a2b3c4d5e6f7081 746f7069636c657373"
#define LJI_REQUEST "084e0028 ff240007 00000001 00000000 5bc8a1f1 0a1d015a 38370000 00000000 0000000a 0000000a"
#define LJI_REQUEST_UIM                                                                                                \
    "084b0058 64140000 00000001 00000000 90a1b2c3d4e5f607 4e1c0000 00000000 0a1d014e 38370000 00000000"                \
    "0a1d015a 38370000 ff240006 00000001 00000000 5bc8a1f1 0a1d015a 38370000 00000000 00000000 0000000a"
#define LJ_INFO "081e0014 ff100000 00000003 0000000c 00000001"
#define RX_REQUEST "08150020 ff1c0000 00000002 00000000 5bc8a1f1 00000003 38370000 0a1d015a"
#define LAST_REQUEST "08150020 ff1c4000 00000003 00000000 5bc8a1f1 00000000 38370000 0a1d015a"
#define RETRANSMISSION "0a000014 5bc8a1f1 00000003 7265746169 6e6564"
#define RETRANSMISSION_UIM                                                                                             \
    "0a4b0034 5bc8a1f1 00000003 0c140000 00000001 00000000 1a2b3c4d5e6f7081 000c0000 90a1b2c3d4e5f607"                 \
    "72657461696e6564"
#define SESSION_ID "086b000c ff080000 644c8862"
#define SSF_INIT "08100018 ff144000 00000001 00000004 38370000 0a1d014e"
#define SSF_INCLUDE "08110014 ff100000 00000001 5bc8a1f1 00000004"
#define SSF_EXCLUDE "08110014 ff100001 00000001 5bc8f9a1 00000001"
#define ULB                                                                                                            \
    "0008003b 5bc8a1f1 00000016 0f140000 0000000000000099 0000000000000001 00144000 0000000000000077"                  \
    "00001001 00000000 6f726465722d31"
#define SRI                                                                                                            \
    "0855003c 65100003 00000001 00000000 00000009 1c080000 5bc8a1f1 69080000 00010000 ff180000 38e70000"               \
    "0a1d013c dea86ad9 0000000000000001"
#define TCP_UIM_REQUEST "00040020 00000000 00000000 00100000 00000007 38380000 0a1d0479 7265713f"

static const struct golden golden[] = {
    {"hello", HELLO, 0, 5},
    {"fragment 1", FRAGMENT_1, UM_LBMC_HAS_FRAG, 8},
    {"fragment 2", FRAGMENT_2, UM_LBMC_HAS_FRAG, 8},
    {"fragment 3", FRAGMENT_3, UM_LBMC_HAS_FRAG, 4},
    {"batch start", BATCH_START, UM_LBMC_HAS_BATCH, 5},
    {"batch end", BATCH_END, UM_LBMC_HAS_BATCH, 4},
    {"tsni of two topics", TSNI_TWO, UM_LBMC_HAS_TSNI, 0},
    {"tsni of a silent source", TSNI_NEVER_SENT, UM_LBMC_HAS_TSNI, 0},
    {"request", REQUEST, UM_LBMC_HAS_CTXINSTR | UM_LBMC_HAS_REQUEST, 4},
    {"response", RESPONSE, UM_LBMC_HAS_STREAM | UM_LBMC_HAS_CTXINSTD, 4},
    {"uim with topic", UIM_TOPIC, UM_LBMC_HAS_STREAM | UM_LBMC_HAS_DESTINATION | UM_LBMC_HAS_TOPICNAME, 9},
    {"uim without topic", UIM_TOPICLESS, UM_LBMC_HAS_STREAM | UM_LBMC_HAS_DESTINATION, 8},
    {"uim request", UIM_REQUEST,
     UM_LBMC_HAS_STREAM | UM_LBMC_HAS_DESTINATION | UM_LBMC_HAS_TOPICNAME | UM_LBMC_HAS_CTXINSTR | UM_LBMC_HAS_REQUEST,
     4},
    {"properties", PROPERTIES, UM_LBMC_HAS_APPHDR_CHAIN, 58},
    {"channel", CHANNEL, UM_LBMC_HAS_APPHDR_CHAIN, 2},
    {"hot failover 64", HOT_FAILOVER_64, UM_LBMC_HAS_APPHDR_CHAIN, 2},
    {"hot failover reset", HOT_FAILOVER_RESET, UM_LBMC_HAS_APPHDR_CHAIN, 0},
    {"user header", USER_HEADER, UM_LBMC_HAS_APPHDR_CHAIN, 1},
    {"mim", MIM, UM_LBMC_HAS_TOPICNAME | UM_LBMC_HAS_CTXINST, 9},
    {"mim without topic", MIM_TOPICLESS, UM_LBMC_HAS_CTXINST, 9},
    {"late join request", LJI_REQUEST, UM_LBMC_HAS_LJI_REQ, 0},
    {"late join request over uim", LJI_REQUEST_UIM, UM_LBMC_HAS_STREAM | UM_LBMC_HAS_DESTINATION | UM_LBMC_HAS_LJI_REQ,
     0},
    {"late join info", LJ_INFO, UM_LBMC_HAS_LJ_INFO, 0},
    {"retransmission request", RX_REQUEST, UM_LBMC_HAS_RXREQ, 0},
    {"request for the last number", LAST_REQUEST, UM_LBMC_HAS_RXREQ, 0},
    {"retransmission", RETRANSMISSION, 0, 8},
    {"retransmission over uim", RETRANSMISSION_UIM, UM_LBMC_HAS_STREAM | UM_LBMC_HAS_CTXINSTD, 8},
    {"session id", SESSION_ID, UM_LBMC_HAS_TCP_SID, 0},
    {"filter init", SSF_INIT, UM_LBMC_HAS_SSF_INIT, 0},
    {"filter include", SSF_INCLUDE, UM_LBMC_HAS_SSF_CREQ, 0},
    {"filter exclude", SSF_EXCLUDE, UM_LBMC_HAS_SSF_CREQ, 0},
    {"ulb", ULB, 0, 7},
    {"source registration information", SRI, 0, 0},
    {"request at the request port", TCP_UIM_REQUEST, UM_LBMC_HAS_REQUEST, 4},
};
#define GOLDEN_COUNT (sizeof golden / sizeof golden[0])

static size_t from_hex(const char *hex, uint8_t *out)
{
    size_t len = 0;
    unsigned byte;
    for (; *hex != 0; hex++) {
        if (isxdigit((unsigned char)*hex) && sscanf(hex, "%2x", &byte) == 1) {
            out[len++] = (uint8_t)byte;
            hex++;
        }
    }
    return len;
}

static enum um_lbmc_rc decode_hex(const char *hex, struct um_lbmc_msg *msg, uint8_t *bytes, size_t *len)
{
    *len = from_hex(hex, bytes);
    memset(msg, 0xee, sizeof *msg);
    return um_lbmc_decode(bytes, *len, msg);
}

static uint32_t ip(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
    uint8_t bytes[4] = {a, b, c, d};
    uint32_t out;
    memcpy(&out, bytes, 4);
    return out;
}

static bool same_text(struct um_slice slice, const char *text)
{
    return slice.len == strlen(text) && memcmp(slice.ptr, text, slice.len) == 0;
}

/* Decode into a heap copy of exactly len bytes, so that the sanitizer sees any read beyond. */
static enum um_lbmc_rc decode_exact(const uint8_t *bytes, size_t len, struct um_lbmc_msg *msg)
{
    uint8_t *copy = malloc(len != 0 ? len : 1);
    memcpy(copy, bytes, len);
    memset(msg, 0xee, sizeof *msg);
    enum um_lbmc_rc rc = um_lbmc_decode(copy, len, msg);
    if (rc == UM_LBMC_OK) {
        struct um_lbmc_tsni_iter iter = {0, 0};
        uint32_t tidx, sqn;
        while (um_lbmc_tsni_next(msg, &iter, &tidx, &sqn)) {
        }
    }
    free(copy);
    return rc;
}

TEST(every_golden_packet_decodes_with_its_headers_and_payload)
{
    for (size_t i = 0; i < GOLDEN_COUNT; i++) {
        struct um_lbmc_msg msg;
        uint8_t bytes[256];
        size_t len;
        enum um_lbmc_rc rc = decode_hex(golden[i].hex, &msg, bytes, &len);
        if (rc != UM_LBMC_OK || msg.msglen != len || msg.present != golden[i].present ||
            msg.payload.len != golden[i].payload_len || msg.type != bytes[0]) {
            TEST_FAIL("%s: rc %d msglen %u/%zu present %x payload %zu", golden[i].name, rc, msg.msglen, len,
                      msg.present, msg.payload.len);
        }
    }
}

TEST(x3_every_truncation_of_every_golden_packet_asks_for_more_bytes)
{
    for (size_t i = 0; i < GOLDEN_COUNT; i++) {
        uint8_t bytes[256];
        size_t len = from_hex(golden[i].hex, bytes);
        for (size_t cut = 0; cut < len; cut++) {
            struct um_lbmc_msg msg;
            if (decode_exact(bytes, cut, &msg) != UM_LBMC_SHORT) {
                TEST_FAIL("%s cut at %zu", golden[i].name, cut);
            }
        }
    }
}

TEST(x3_every_golden_packet_with_a_shortened_msglen_is_handled)
{
    for (size_t i = 0; i < GOLDEN_COUNT; i++) {
        uint8_t bytes[256];
        size_t len = from_hex(golden[i].hex, bytes);
        size_t fixed = bytes[0] == UM_LBMC_CONTROL ? 4 : 12;
        for (size_t msglen = 0; msglen < len; msglen++) {
            struct um_lbmc_msg msg;
            um_put16(bytes + 2, (uint16_t)msglen);
            enum um_lbmc_rc rc = decode_exact(bytes, msglen < 4 ? 4 : msglen, &msg);
            if (msglen < fixed ? rc != UM_LBMC_FRAMING : rc != UM_LBMC_OK && rc != UM_LBMC_BAD) {
                TEST_FAIL("%s with msglen %zu: rc %d", golden[i].name, msglen, rc);
            }
        }
    }
}

TEST(data_message_has_its_topic_index_and_sequence_number)
{
    struct um_lbmc_msg msg;
    uint8_t bytes[64], again[64];
    size_t len;
    CHECK_EQ(decode_hex(HELLO, &msg, bytes, &len), UM_LBMC_OK);
    CHECK_EQ(msg.tidx, TIDX);
    CHECK_EQ(msg.sqn, 7);
    CHECK(same_text(msg.payload, "hello"));
    um_lbmc_put_data_hdr(again, UM_LBMC_HDR_DATA, 17, TIDX, 7);
    memcpy(again + 12, "hello", 5);
    CHECK(memcmp(bytes, again, len) == 0);
}

TEST(two_topics_in_one_datagram_are_walked_by_msglen)
{
    struct um_lbmc_msg msg;
    uint8_t bytes[64];
    size_t len;
    CHECK_EQ(decode_hex(TWO_TOPICS, &msg, bytes, &len), UM_LBMC_OK);
    CHECK(same_text(msg.payload, "abc"));
    CHECK_EQ(um_lbmc_decode(bytes + msg.msglen, len - msg.msglen, &msg), UM_LBMC_OK);
    CHECK_EQ(msg.tidx, 0x5bc8a1f2);
    CHECK(same_text(msg.payload, "xyz1"));
}

TEST(fragments_decode_and_encode)
{
    static const char *const hex[] = {FRAGMENT_1, FRAGMENT_2, FRAGMENT_3};
    for (uint32_t i = 0; i < 3; i++) {
        struct um_lbmc_msg msg;
        uint8_t bytes[64], again[64];
        size_t len;
        CHECK_EQ(decode_hex(hex[i], &msg, bytes, &len), UM_LBMC_OK);
        CHECK_EQ(msg.frag.first_sqn, 9);
        CHECK_EQ(msg.frag.offset, 8 * i);
        CHECK_EQ(msg.frag.len, 20);
        CHECK_EQ(msg.sqn, 9 + i);
        um_lbmc_put_data_hdr(again, UM_LBMC_HDR_FRAG, (uint16_t)len, TIDX, 9 + i);
        CHECK_EQ(um_lbmc_put_frag(again + 12, UM_LBMC_HDR_DATA, 9, 8 * i, 20), 16);
        CHECK(memcmp(bytes, again, 28) == 0);
    }
}

TEST(batch_marks_decode_and_encode)
{
    struct um_lbmc_msg msg;
    uint8_t bytes[64], again[64];
    size_t len;
    CHECK_EQ(decode_hex(BATCH_START, &msg, bytes, &len), UM_LBMC_OK);
    CHECK_EQ(msg.batch_flags, UM_LBMC_BATCH_START);
    CHECK_EQ(um_lbmc_put_batch(again, UM_LBMC_HDR_DATA, UM_LBMC_BATCH_START), 4);
    CHECK(memcmp(bytes + 12, again, 4) == 0);
    CHECK_EQ(decode_hex(BATCH_END, &msg, bytes, &len), UM_LBMC_OK);
    CHECK_EQ(msg.batch_flags, UM_LBMC_BATCH_END);
}

TEST(tsni_decodes_and_encodes)
{
    struct um_lbmc_msg msg;
    uint8_t bytes[64], again[64];
    size_t len;
    uint32_t tidx[2] = {0x5bc8a1f1, 0x5bc8a1f2}, sqn[2] = {11, 0}, t, s;
    struct um_lbmc_tsni_iter iter = {0, 0};
    CHECK_EQ(decode_hex(TSNI_TWO, &msg, bytes, &len), UM_LBMC_OK);
    CHECK_EQ(msg.tsni.len, 16);
    for (int i = 0; i < 2; i++) {
        CHECK(um_lbmc_tsni_next(&msg, &iter, &t, &s));
        CHECK_EQ(t, tidx[i]);
        CHECK_EQ(s, sqn[i]);
    }
    CHECK(!um_lbmc_tsni_next(&msg, &iter, &t, &s));
    CHECK_EQ(um_lbmc_encode_tsni(again, tidx, sqn, 2), len);
    CHECK(memcmp(bytes, again, len) == 0);
    sqn[0] = UM_LBMC_TSNI_NONE;
    CHECK_EQ(decode_hex(TSNI_NEVER_SENT, &msg, bytes, &len), UM_LBMC_OK);
    CHECK_EQ(um_lbmc_encode_tsni(again, tidx, sqn, 1), len);
    CHECK(memcmp(bytes, again, len) == 0);
}

TEST(records_of_chained_tsni_headers_are_all_seen)
{
    struct um_lbmc_msg msg;
    uint8_t bytes[128];
    size_t len, count = 0;
    uint32_t tidx, sqn, sum = 0;
    struct um_lbmc_tsni_iter iter = {0, 0};
    /* one record, an empty header, a header to skip, two records */
    CHECK_EQ(decode_hex("08200030 200c0001 00000001 00000010 65040000 20080000 0000abcd ff140002 00000002 00000020 "
                        "00000003 00000030",
                        &msg, bytes, &len),
             UM_LBMC_OK);
    CHECK_EQ(msg.msglen, len);
    while (um_lbmc_tsni_next(&msg, &iter, &tidx, &sqn)) {
        count++;
        sum += tidx * 0x10 == sqn ? tidx : 100;
    }
    CHECK_EQ(count, 3);
    CHECK_EQ(sum, 6);
}

TEST(request_decodes_and_encodes)
{
    struct um_lbmc_msg msg;
    uint8_t bytes[64], again[64];
    size_t len;
    CHECK_EQ(decode_hex(REQUEST, &msg, bytes, &len), UM_LBMC_OK);
    CHECK_EQ(msg.request.qidx, 1);
    CHECK_EQ(msg.request.port, 14392);
    CHECK_EQ(msg.request.ip, ip(10, 29, 1, 78));
    CHECK(memcmp(msg.ctxinstr, source_instance, 8) == 0);
    um_lbmc_put_data_hdr(again, UM_LBMC_HDR_CTXINSTR, (uint16_t)len, TIDX, 12);
    size_t at = 12 + um_lbmc_put_ctxinst(again + 12, UM_LBMC_HDR_REQUEST, source_instance);
    at += um_lbmc_put_request(again + at, UM_LBMC_HDR_DATA, 1, ip(10, 29, 1, 78), 14392);
    CHECK(memcmp(bytes, again, at) == 0);
}

TEST(unicast_headers_decode_and_encode)
{
    struct um_lbmc_msg msg;
    uint8_t bytes[128], again[128];
    size_t len;
    CHECK_EQ(decode_hex(UIM_TOPIC, &msg, bytes, &len), UM_LBMC_OK);
    CHECK_EQ(msg.stream.stream_id, 1);
    CHECK_EQ(msg.stream.sqn, 0);
    CHECK(memcmp(msg.stream.ctxinst, receiver_instance, 8) == 0);
    CHECK_EQ(msg.destination.ip, ip(10, 29, 1, 78));
    CHECK_EQ(msg.destination.port, 14391);
    CHECK_EQ(msg.destination.orig_ip, ip(10, 29, 1, 90));
    CHECK_EQ(msg.destination.orig_port, 14391);
    CHECK_EQ(msg.destination.hops_taken, 0);
    CHECK(same_text(msg.topic_name, "topicName"));
    size_t at = um_lbmc_put_stream(again, UM_LBMC_HDR_DESTINATION, 1, 0, receiver_instance);
    at += um_lbmc_put_destination(again + at, UM_LBMC_HDR_TOPICNAME, 0, ip(10, 29, 1, 78), 14391, 0, ip(10, 29, 1, 90),
                                  14391);
    CHECK_EQ(at, 48);
    CHECK(memcmp(bytes + 12, again, at) == 0);
    CHECK_EQ(decode_hex(LJI_REQUEST_UIM, &msg, bytes, &len), UM_LBMC_OK);
    at = 4 + um_lbmc_put_stream(again + 4, UM_LBMC_HDR_DESTINATION, 1, 0, receiver_instance);
    um_lbmc_put_control_hdr(again, UM_LBMC_HDR_STREAM, (uint16_t)len);
    at += um_lbmc_put_destination(again + at, 0x4e, 0, ip(10, 29, 1, 78), 14391, 0, ip(10, 29, 1, 90), 14391);
    CHECK(memcmp(bytes, again, at) == 0);
    CHECK_EQ(decode_hex(RESPONSE, &msg, bytes, &len), UM_LBMC_OK);
    CHECK(memcmp(msg.ctxinstd, source_instance, 8) == 0);
}

TEST(whole_control_messages_decode_and_encode)
{
    struct um_lbmc_msg msg;
    uint8_t bytes[64], again[64];
    size_t len;
    CHECK_EQ(decode_hex(SESSION_ID, &msg, bytes, &len), UM_LBMC_OK);
    CHECK_EQ(msg.tcp_sid, 0x644c8862);
    CHECK_EQ(um_lbmc_encode_tcp_sid(again, 0x644c8862), len);
    CHECK(memcmp(bytes, again, len) == 0);

    CHECK_EQ(decode_hex(SSF_INIT, &msg, bytes, &len), UM_LBMC_OK);
    CHECK_EQ(msg.ssf_init.flags, 0x40);
    CHECK_EQ(msg.ssf_init.transport_idx, 1);
    CHECK_EQ(msg.ssf_init.client_idx, 4);
    CHECK_EQ(msg.ssf_init.port, 14391);
    CHECK_EQ(msg.ssf_init.ip, ip(10, 29, 1, 78));
    CHECK_EQ(um_lbmc_encode_ssf_init(again, &msg.ssf_init), len);
    CHECK(memcmp(bytes, again, len) == 0);

    CHECK_EQ(decode_hex(SSF_INCLUDE, &msg, bytes, &len), UM_LBMC_OK);
    CHECK_EQ(msg.ssf_creq.mode, 0);
    CHECK_EQ(msg.ssf_creq.topic_idx, TIDX);
    CHECK_EQ(um_lbmc_encode_ssf_creq(again, &msg.ssf_creq), len);
    CHECK(memcmp(bytes, again, len) == 0);

    CHECK_EQ(decode_hex(SSF_EXCLUDE, &msg, bytes, &len), UM_LBMC_OK);
    CHECK_EQ(msg.ssf_creq.mode, 1);
    CHECK_EQ(um_lbmc_encode_ssf_creq(again, &msg.ssf_creq), len);
    CHECK(memcmp(bytes, again, len) == 0);
}

TEST(late_join_requests_and_information_decode_and_encode)
{
    struct um_lbmc_msg msg;
    uint8_t bytes[128], again[128];
    size_t len;
    CHECK_EQ(decode_hex(LJI_REQUEST, &msg, bytes, &len), UM_LBMC_OK);
    CHECK_EQ(msg.lji_req.flags, UM_LBMC_LJI_LOW | UM_LBMC_LJI_MAX | UM_LBMC_LJI_OUTSTANDING);
    CHECK_EQ(msg.lji_req.request_idx, 1);
    CHECK_EQ(msg.lji_req.topic_idx, TIDX);
    CHECK_EQ(msg.lji_req.ip, ip(10, 29, 1, 90));
    CHECK_EQ(msg.lji_req.port, 14391);
    CHECK_EQ(msg.lji_req.low_sqn, 0);
    CHECK_EQ(msg.lji_req.request_max, 10);
    CHECK_EQ(msg.lji_req.outstanding_max, 10);
    um_lbmc_put_control_hdr(again, UM_LBMC_HDR_LJI_REQ, (uint16_t)len);
    CHECK_EQ(4 + um_lbmc_put_lji_req(again + 4, UM_LBMC_HDR_NONE, &msg.lji_req), len);
    CHECK(memcmp(bytes, again, len) == 0);

    CHECK_EQ(decode_hex(LJI_REQUEST_UIM, &msg, bytes, &len), UM_LBMC_OK);
    CHECK_EQ(um_lbmc_subject(&msg), UM_LBMC_HDR_LJI_REQ);
    CHECK_EQ(msg.lji_req.flags, UM_LBMC_LJI_MAX | UM_LBMC_LJI_OUTSTANDING);

    CHECK_EQ(decode_hex(LJ_INFO, &msg, bytes, &len), UM_LBMC_OK);
    CHECK_EQ(um_lbmc_subject(&msg), UM_LBMC_HDR_LJ_INFO);
    CHECK_EQ(msg.lj_info.low, 3);
    CHECK_EQ(msg.lj_info.high, 12);
    CHECK_EQ(msg.lj_info.request_idx, 1);
    um_lbmc_put_control_hdr(again, UM_LBMC_HDR_LJ_INFO, (uint16_t)len);
    CHECK_EQ(4 + um_lbmc_put_lj_info(again + 4, UM_LBMC_HDR_NONE, &msg.lj_info), len);
    CHECK(memcmp(bytes, again, len) == 0);
}

TEST(requests_for_a_number_and_for_the_last_one_decode_and_encode)
{
    static const char *const hex[] = {RX_REQUEST, LAST_REQUEST};
    for (uint32_t i = 0; i < 2; i++) {
        struct um_lbmc_msg msg;
        uint8_t bytes[64], again[64];
        size_t len;
        CHECK_EQ(decode_hex(hex[i], &msg, bytes, &len), UM_LBMC_OK);
        CHECK_EQ(um_lbmc_subject(&msg), UM_LBMC_HDR_RXREQ);
        CHECK_EQ(msg.rxreq.tsni, i == 1);
        CHECK_EQ(msg.rxreq.request_idx, 2 + i);
        CHECK_EQ(msg.rxreq.id, TIDX);
        CHECK_EQ(msg.rxreq.sqn, i == 0 ? 3 : 0);
        CHECK_EQ(msg.rxreq.ip, ip(10, 29, 1, 90));
        CHECK_EQ(msg.rxreq.port, 14391);
        um_lbmc_put_control_hdr(again, UM_LBMC_HDR_RXREQ, (uint16_t)len);
        CHECK_EQ(4 + um_lbmc_put_rxreq(again + 4, UM_LBMC_HDR_NONE, &msg.rxreq), len);
        CHECK(memcmp(bytes, again, len) == 0);
    }
}

TEST(x3_recovery_headers_shorter_than_their_fields_are_malformed)
{
    static const char *const hex[] = {
        "084e0024 ff200007 00000001 00000000 5bc8a1f1 0a1d015a 38370000 00000000 0000000a",
        "081e0010 ff0c0000 00000003 0000000c",
        "0815001c ff180000 00000002 00000000 5bc8a1f1 00000003 38370000",
    };
    for (size_t i = 0; i < sizeof hex / sizeof hex[0]; i++) {
        struct um_lbmc_msg msg;
        uint8_t bytes[64];
        size_t len;
        CHECK_EQ(decode_hex(hex[i], &msg, bytes, &len), UM_LBMC_BAD);
        CHECK_EQ(msg.msglen, len);
    }
}

TEST(application_header_chain_is_given_with_its_first_type)
{
    struct um_lbmc_msg msg;
    uint8_t bytes[64];
    size_t len;
    CHECK_EQ(decode_hex(CHANNEL, &msg, bytes, &len), UM_LBMC_OK);
    CHECK_EQ(msg.apphdr_chain.len, 9);
    CHECK_EQ(msg.apphdr_chain.ptr[0], 1);
    CHECK_EQ(um_get32(msg.apphdr_chain.ptr + 5), 12345);
    CHECK_EQ(decode_hex("00060013 00000001 00000000 0007 004d 616263", &msg, bytes, &len), UM_LBMC_OK);
    CHECK_EQ(um_get16(msg.apphdr.ptr), 77);
    CHECK_EQ(msg.apphdr.len, 5);
}

TEST(hot_failover_numbers_decode_and_encode)
{
    static const struct {
        const char *hex;
        struct um_lbmc_hf hf;
    } numbers[] = {
        {HOT_FAILOVER_32, {1000, false, 0}},
        {HOT_FAILOVER_64, {0x100000001u, true, 0}},
        {HOT_FAILOVER_OPTIONAL, {13, false, UM_LBMC_HF_OPTIONAL}},
        {HOT_FAILOVER_RESET, {5000, false, UM_LBMC_HF_RESET}},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct um_lbmc_msg msg;
        struct um_lbmc_hf hf;
        uint8_t bytes[64], header[UM_LBMC_HF_HEADER_MAX];
        size_t len;
        CHECK_EQ(decode_hex(numbers[i].hex, &msg, bytes, &len), UM_LBMC_OK);
        CHECK(um_lbmc_get_hf(msg.apphdr_chain, &hf));
        CHECK(hf.sqn == numbers[i].hf.sqn && hf.wide == numbers[i].hf.wide && hf.flags == numbers[i].hf.flags);
        size_t written = um_lbmc_put_hf_header(header, UM_LBMC_HDR_DATA, &hf);
        CHECK_EQ(written, msg.payload.ptr - bytes - UM_LBMC_DATA_HDR_LEN);
        CHECK(memcmp(header, bytes + UM_LBMC_DATA_HDR_LEN, written) == 0);
    }
}

TEST(a_hot_failover_number_is_found_behind_other_elements_and_only_there)
{
    struct um_lbmc_msg msg;
    struct um_lbmc_hf hf;
    uint8_t bytes[128];
    size_t len;
    CHECK_EQ(decode_hex(ALL_ELEMENTS, &msg, bytes, &len), UM_LBMC_OK);
    CHECK(um_lbmc_get_hf(msg.apphdr_chain, &hf) && hf.sqn == 9 && !hf.wide);
    CHECK_EQ(decode_hex(CHANNEL, &msg, bytes, &len), UM_LBMC_OK);
    CHECK(!um_lbmc_get_hf(msg.apphdr_chain, &hf));
    CHECK(!um_lbmc_get_hf((struct um_slice){bytes, 0}, &hf));
}

TEST(x3_hot_failover_elements_of_other_lengths_than_their_two_are_no_numbers)
{
    for (unsigned room = 0; room <= 20; room++) {
        for (unsigned hdr_len = 0; hdr_len <= 24; hdr_len++) {
            uint8_t *chain = calloc(1, 1 + room); /* of this size, so that the sanitizer sees any read beyond */
            struct um_lbmc_hf hf;
            chain[0] = 2;
            if (room >= 2) {
                chain[1] = 0xff;
                chain[2] = (uint8_t)hdr_len;
            }
            bool fits = room >= 4 && hdr_len <= room && (hdr_len == 8 || hdr_len == 12);
            CHECK_EQ(um_lbmc_get_hf((struct um_slice){chain, 1 + room}, &hf), fits);
            free(chain);
        }
    }
}

TEST(impossible_framing_is_told_from_a_bad_header_chain)
{
    static const struct {
        const char *hex;
        enum um_lbmc_rc rc;
    } cases[] = {
        {"00000000 00000001 00000000", UM_LBMC_FRAMING}, /* msglen 0 */
        {"00000003 00000001 00000000", UM_LBMC_FRAMING},
        {"0000000b 00000001 00000000", UM_LBMC_FRAMING}, /* below the data header */
        {"08ff0003", UM_LBMC_FRAMING},
        {"10000010 00000001 00000000 61626364", UM_LBMC_FRAMING}, /* version 1 */
        {"05000010 00000001 00000000 61626364", UM_LBMC_FRAMING}, /* type 5 */
        {"01ff0004", UM_LBMC_OK},                                 /* end of transport */
        {"08ff0004", UM_LBMC_OK},
        {"086b0004", UM_LBMC_OK},                             /* control whose record is missing: nothing to do */
        {"00010010 00000001 00000000 00000000", UM_LBMC_BAD}, /* hdr_len 0 */
        {"00020010 00000001 00000000 00030000", UM_LBMC_BAD}, /* hdr_len 3 */
        {"00020010 00000001 00000000 00050000", UM_LBMC_BAD}, /* hdr_len past the message */
        {"0002000e 00000001 00000000 0004", UM_LBMC_BAD},     /* announced header is cut */
        {"00010018 00000001 00000000 000c0000 0000000000000000", UM_LBMC_BAD}, /* FRAG too short */
        {"00040018 00000001 00000000 000c0000 0000000000000000", UM_LBMC_BAD}, /* REQUEST too short */
        {"00050010 00000001 00000000 00040000", UM_LBMC_BAD},                  /* empty topic name */
        {"00050012 00000001 00000000 00060000 0000", UM_LBMC_BAD},             /* topic name of NULs */
        {"08200010 ff0c0002 00000001 00000002", UM_LBMC_BAD},                  /* more TSNI records than bytes */
        {"086b0008 ff040000", UM_LBMC_BAD},                                    /* session id of the wrong length */
        {"0000000c 00000001 00000000", UM_LBMC_OK},                            /* empty message */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct um_lbmc_msg msg;
        uint8_t bytes[64];
        size_t len = from_hex(cases[i].hex, bytes);
        enum um_lbmc_rc rc = decode_exact(bytes, len, &msg);
        if (rc != cases[i].rc || (rc == UM_LBMC_BAD && msg.msglen != len)) {
            TEST_FAIL("%s: rc %d, expected %d", cases[i].hex, rc, cases[i].rc);
        }
    }
}

TEST(fragment_headers_that_contradict_themselves_are_refused)
{
    static const struct {
        uint32_t sqn, first_sqn, offset, len;
        enum um_lbmc_rc rc;
    } cases[] = {
        {10, 9, 4, 8, UM_LBMC_OK},           {10, 9, 5, 8, UM_LBMC_BAD},  {10, 9, 0xffffffff, 8, UM_LBMC_BAD},
        {10, 9, 0xfffffffe, 1, UM_LBMC_BAD}, {10, 11, 4, 8, UM_LBMC_BAD}, {10, 9, 0, 0, UM_LBMC_BAD},
        {0, 0xffffffff, 4, 8, UM_LBMC_OK}, /* across the wrap */
        {0xffffffff, 0, 4, 8, UM_LBMC_BAD},  {9, 9, 0, 4, UM_LBMC_OK},    {9, 9, 0, 3, UM_LBMC_BAD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct um_lbmc_msg msg;
        uint8_t bytes[32] = {0};
        um_lbmc_put_data_hdr(bytes, UM_LBMC_HDR_FRAG, 32, 1, cases[i].sqn);
        um_lbmc_put_frag(bytes + 12, UM_LBMC_HDR_DATA, cases[i].first_sqn, cases[i].offset, cases[i].len);
        if (decode_exact(bytes, sizeof bytes, &msg) != cases[i].rc) {
            TEST_FAIL("case %zu", i);
        }
    }
}

TEST(unknown_header_is_skipped_only_when_it_may_be_ignored)
{
    struct um_lbmc_msg msg;
    uint8_t bytes[64];
    size_t len;
    CHECK_EQ(decode_hex("00770012 00000001 00000000 00048000 6162", &msg, bytes, &len), UM_LBMC_OK);
    CHECK(same_text(msg.payload, "ab"));
    CHECK_EQ(decode_hex("00770012 00000001 00000000 00040000 6162", &msg, bytes, &len), UM_LBMC_BAD);
    CHECK_EQ(msg.msglen, 18);
}

TEST(every_known_header_code_is_stepped_over)
{
    static const uint8_t unknown[] = {0x1f, 0x21, 0x2f, 0x59, 0x5f, 0x61, 0x66, 0x6c, 0x80, 0xfd};
    uint8_t bytes[12 + 64];
    struct um_lbmc_msg msg;
    size_t known = 0;
    for (unsigned code = 1; code < 0xff; code++) {
        memset(bytes, 0, sizeof bytes);
        um_lbmc_put_data_hdr(bytes, (uint8_t)code, sizeof bytes, 1, 5);
        bytes[13] = 64;
        bytes[12 + 4] = code == UM_LBMC_HDR_TOPICNAME ? 'x' : 0;
        bytes[12 + 15] = code == UM_LBMC_HDR_FRAG ? 1 : 0;                       /* a length */
        bytes[12 + 3] = code == UM_LBMC_HDR_APPHDR_CHAIN ? UM_LBMC_HDR_NONE : 0; /* no elements */
        known += um_lbmc_decode(bytes, sizeof bytes, &msg) == UM_LBMC_OK;
    }
    CHECK_EQ(known, 83); /* the size of the code table without its two ends */
    for (size_t i = 0; i < sizeof unknown; i++) {
        memset(bytes, 0, sizeof bytes);
        um_lbmc_put_data_hdr(bytes, unknown[i], sizeof bytes, 1, 5);
        bytes[13] = 64;
        CHECK_EQ(um_lbmc_decode(bytes, sizeof bytes, &msg), UM_LBMC_BAD);
    }
}

TEST(headers_in_any_order_and_with_appended_fields_decode)
{
    struct um_lbmc_msg msg;
    uint8_t bytes[128];
    size_t len;
    /* BATCH grown to 8, REQUEST grown to 20, FRAG last */
    CHECK_EQ(decode_hex("0002003a 00000001 00000009 04080003 deadbeef 01140000 00000005 00500000 7f000001 cafecafe "
                        "00100000 00000009 00000000 00000002 6869",
                        &msg, bytes, &len),
             UM_LBMC_OK);
    CHECK_EQ(msg.batch_flags, 3);
    CHECK_EQ(msg.request.qidx, 5);
    CHECK_EQ(msg.frag.len, 2);
    CHECK(same_text(msg.payload, "hi"));
}

TEST(random_chains_survive_the_round_trip)
{
    struct um_rng rng;
    um_rng_seed(&rng, 20);
    for (int i = 0; i < 20000; i++) {
        uint8_t bytes[512];
        struct um_lbmc_msg msg;
        uint32_t sqn = um_rng_u32(&rng), tidx = um_rng_u32(&rng), total = 1 + um_rng_u32(&rng) % 5000000;
        uint32_t payload = (uint32_t)um_rng_range(&rng, 0, total < 300 ? total : 300);
        uint32_t offset = (uint32_t)um_rng_range(&rng, 0, total - payload),
                 first = sqn - (uint32_t)um_rng_range(&rng, 0, 99);
        uint16_t flags = (uint16_t)um_rng_range(&rng, 0, 3);
        bool batch = (um_rng_u32(&rng) & 1) != 0, frag = (um_rng_u32(&rng) & 1) != 0;
        size_t at = 12;
        if (batch) {
            at += um_lbmc_put_batch(bytes + at, frag ? UM_LBMC_HDR_FRAG : UM_LBMC_HDR_DATA, flags);
        }
        if (frag) {
            at += um_lbmc_put_frag(bytes + at, UM_LBMC_HDR_DATA, first, offset, total);
        }
        memset(bytes + at, 'p', payload);
        uint8_t next = batch ? UM_LBMC_HDR_BATCH : frag ? UM_LBMC_HDR_FRAG : UM_LBMC_HDR_DATA;
        um_lbmc_put_data_hdr(bytes, next, (uint16_t)(at + payload), tidx, sqn);
        CHECK_EQ(um_lbmc_decode(bytes, sizeof bytes, &msg), UM_LBMC_OK);
        CHECK_EQ(msg.tidx, tidx);
        CHECK_EQ(msg.sqn, sqn);
        CHECK_EQ(msg.payload.len, payload);
        CHECK(msg.payload.ptr == bytes + at);
        CHECK_EQ(msg.present, (batch ? UM_LBMC_HAS_BATCH : 0u) | (frag ? UM_LBMC_HAS_FRAG : 0u));
        CHECK(!batch || msg.batch_flags == flags);
        CHECK(!frag || (msg.frag.first_sqn == first && msg.frag.offset == offset && msg.frag.len == total));
    }
}

TEST(random_bytes_and_damaged_packets_never_read_outside)
{
    struct um_rng rng;
    um_rng_seed(&rng, 7);
    for (int i = 0; i < 40000; i++) {
        uint8_t bytes[256];
        struct um_lbmc_msg msg;
        size_t len = from_hex(golden[um_rng_range(&rng, 0, GOLDEN_COUNT - 1)].hex, bytes);
        if (i % 4 == 0) {
            len = (size_t)um_rng_range(&rng, 0, 64);
            for (size_t j = 0; j < len; j++) {
                bytes[j] = (uint8_t)um_rng_u32(&rng);
            }
            bytes[0] &= 0x0a;
            bytes[2] = 0;
        }
        for (int hits = (int)um_rng_range(&rng, 1, 4); len > 0 && hits > 0; hits--) {
            bytes[um_rng_range(&rng, 0, len - 1)] = (uint8_t)um_rng_u32(&rng);
        }
        enum um_lbmc_rc rc = decode_exact(bytes, len, &msg);
        CHECK(rc != UM_LBMC_OK || (msg.msglen <= len && msg.payload.len <= msg.msglen));
    }
}

static bool reads_alike(const uint8_t *bytes, size_t len)
{
    struct um_lbmc_msg a = {0}, b = {0};
    enum um_lbmc_rc rc = um_lbmc_decode(bytes, len, &a);
    if (rc != um_lbmc_decode_chain(bytes, len, &b)) {
        return false;
    }
    if (rc != UM_LBMC_OK) {
        return true;
    }
    bool channel = (b.chain_summary.has & UM_CHAIN_HAS_CHANNEL) != 0;
    bool properties = (b.chain_summary.has & UM_CHAIN_HAS_PROPERTIES) != 0;
    return a.type == b.type && a.next_hdr == b.next_hdr && a.msglen == b.msglen && a.tidx == b.tidx && a.sqn == b.sqn &&
           a.present == b.present && a.payload.ptr == b.payload.ptr && a.payload.len == b.payload.len &&
           a.apphdr_chain.ptr == b.apphdr_chain.ptr && a.apphdr_chain.len == b.apphdr_chain.len &&
           a.chain_summary.has == b.chain_summary.has &&
           (!channel || a.chain_summary.channel == b.chain_summary.channel) &&
           (!properties || a.chain_summary.properties_len == b.chain_summary.properties_len);
}

/* What is sent most is read by a short way: of each such message with one byte changed, and of each part of it. */
TEST(the_short_way_of_a_single_element_reads_what_the_long_one_reads)
{
    static const uint8_t types[] = {UM_CHAIN_CHANNEL, UM_CHAIN_HF_SQN, UM_CHAIN_PROPERTIES_LEN, UM_CHAIN_APPHDR,
                                    UM_CHAIN_USER_DATA};
    uint8_t bytes[UM_LBMC_DATA_HDR_LEN + UM_CHAIN_SINGLE_U32 + 40];
    for (size_t t = 0; t < sizeof types; t++) {
        memset(bytes, 3, sizeof bytes);
        um_lbmc_put_data_hdr(bytes, UM_LBMC_HDR_APPHDR_CHAIN, sizeof bytes - 8, 7, 9);
        um_chain_put_single_u32(bytes + UM_LBMC_DATA_HDR_LEN, types[t], 5);
        for (size_t len = 0; len <= sizeof bytes; len++) {
            CHECK(reads_alike(bytes, len));
        }
        for (size_t at = 0; at < UM_LBMC_DATA_HDR_LEN + UM_CHAIN_SINGLE_U32; at++) {
            uint8_t before = bytes[at];
            for (unsigned value = 0; value < 256; value++) {
                bytes[at] = (uint8_t)value;
                CHECK(reads_alike(bytes, sizeof bytes));
            }
            bytes[at] = before;
        }
    }
}
