/* The LBMR codec against packets verified with an independent dissector:
 * decode, re-encode, every truncation, every fault of the validation table. */
#include "um_test.h"

#include <arpa/inet.h>

#include "lbmr_golden.h"
#include "wire/um_lbmr.h"

#define CHECK_HEX(bytes, len, golden_name)                                                                             \
    do {                                                                                                               \
        uint8_t want_[1024];                                                                                           \
        size_t want_len_ = golden_bytes(golden_name, want_, sizeof want_);                                             \
        CHECK_EQ(len, want_len_);                                                                                      \
        CHECK(memcmp(bytes, want_, want_len_) == 0);                                                                   \
    } while (0)

static uint32_t ip4(const char *text)
{
    return inet_addr(text);
}

/* A heap copy of the exact size, so that the address sanitizer sees a read past the end. */
static uint8_t *exact_copy(const uint8_t *bytes, size_t len)
{
    uint8_t *copy = malloc(len == 0 ? 1 : len);
    if (copy != NULL && len > 0) {
        memcpy(copy, bytes, len);
    }
    return copy;
}

struct parsed {
    uint8_t bytes[1024];
    size_t len;
    struct um_lbmr_msg msg;
    struct um_lbmr_cursor cursor;
};

static bool parse_golden(const char *name, struct parsed *out)
{
    unsigned detail;
    out->len = golden_bytes(name, out->bytes, sizeof out->bytes);
    if (um_lbmr_parse(out->bytes, out->len, &out->msg, &detail) != UM_LBMR_OK) {
        return false;
    }
    um_lbmr_records(&out->msg, &out->cursor);
    return true;
}

static bool golden_tir(const char *name, struct parsed *parsed, struct um_lbmr_tir *tir)
{
    struct um_lbmr_tqr tqr;
    if (!parse_golden(name, parsed)) {
        return false;
    }
    while (um_lbmr_next_tqr(&parsed->cursor, &tqr)) {
    }
    return um_lbmr_next_tir(&parsed->cursor, tir);
}

TEST(every_golden_packet_is_valid)
{
    for (size_t i = 0; i < GOLDEN_COUNT; i++) {
        uint8_t bytes[1024];
        size_t len = golden_bytes(goldens[i].name, bytes, sizeof bytes);
        uint8_t *copy = exact_copy(bytes, len);
        enum um_lbmr_fault fault = um_lbmr_validate(copy, len, NULL);
        free(copy);
        if (fault != UM_LBMR_OK) {
            TEST_FAIL("%s: fault %d", goldens[i].name, fault);
        }
    }
}

TEST(x3_every_truncation_of_every_golden_packet_is_handled)
{
    for (size_t i = 0; i < GOLDEN_COUNT; i++) {
        uint8_t bytes[1024];
        size_t len = golden_bytes(goldens[i].name, bytes, sizeof bytes);
        for (size_t cut = 0; cut < len; cut++) {
            uint8_t *copy = exact_copy(bytes, cut);
            enum um_lbmr_fault fault = um_lbmr_validate(copy, cut, NULL);
            um_lbmr_substitute_address(copy, cut, ip4("10.1.1.5"));
            free(copy);
            if (fault == UM_LBMR_OK) {
                TEST_FAIL("%s cut to %zu of %zu bytes passed", goldens[i].name, cut, len);
            }
        }
    }
}

TEST(x2_counts_larger_than_the_datagram_end_in_a_fault)
{
    for (size_t i = 0; i < GOLDEN_COUNT; i++) {
        uint8_t bytes[1024];
        size_t len = golden_bytes(goldens[i].name, bytes, sizeof bytes);
        uint8_t type = bytes[0] & 7;
        if (type != UM_LBMR_NORMAL && type != UM_LBMR_WC_TQRS && type != UM_LBMR_QUEUE_RES) {
            continue;
        }
        bytes[1] = 0xFF;
        bytes[2] = 0xFF;
        bytes[3] = 0xFF;
        CHECK(um_lbmr_validate(bytes, len, NULL) != UM_LBMR_OK);
    }
}

TEST(random_bytes_never_read_out_of_bounds)
{
    uint32_t state = 0x12345678;
    uint8_t bytes[600];
    for (int round = 0; round < 20000; round++) {
        state = state * 1664525u + 1013904223u;
        size_t base_len = golden_bytes(goldens[state % GOLDEN_COUNT].name, bytes, sizeof bytes);
        for (int flips = 0; flips < 6; flips++) {
            state = state * 1664525u + 1013904223u;
            bytes[(state >> 16) % base_len] = (uint8_t)(state >> 8);
        }
        uint8_t *copy = exact_copy(bytes, base_len);
        enum um_lbmr_fault fault = um_lbmr_validate(copy, base_len, NULL);
        um_lbmr_substitute_address(copy, base_len, 1);
        CHECK(fault < UM_LBMR_FAULT_COUNT);
        CHECK_EQ(um_lbmr_validate(copy, base_len, NULL), fault);
        free(copy);
    }
}

/* ---- E1..E8: information records ---- */

static const uint8_t instance[8] = {0xa1, 0xb2, 0xc3, 0xd4, 0xe5, 0xf6, 0x07, 0x18};

static void tcp_otid(uint8_t otid[32])
{
    memset(otid, 0, 32);
    otid[0] = 1;
    memcpy(otid + 8, instance, 8);
    um_put32(otid + 16, 10);
    um_put32(otid + 20, 0x5eed0001);
    uint32_t ip = ip4("10.1.1.5");
    memcpy(otid + 24, &ip, 4);
    um_put16(otid + 28, 14371);
}

static size_t one_tir(uint8_t *out, size_t capacity, const uint8_t *record, size_t record_len)
{
    struct um_lbmr_builder builder;
    um_lbmr_begin(&builder, out, capacity, capacity, UM_LBMR_NORMAL, NULL, 0);
    return um_lbmr_add_tir(&builder, record, record_len) ? um_lbmr_finish(&builder) : 0;
}

static size_t simple_tir(uint8_t *out, size_t capacity, const char *topic, uint32_t index,
                         const struct um_lbmr_transport *transport)
{
    uint8_t record[UM_LBMR_TIR_MAX];
    struct um_lbmr_tir_writer writer;
    um_lbmr_tir_begin(&writer, record, sizeof record, topic, index);
    return one_tir(out, capacity, record, um_lbmr_tir_end(&writer, transport));
}

TEST(e1_tcp_advertisement_with_exfunc_otid_and_instance_encodes_byte_for_byte)
{
    uint8_t record[UM_LBMR_TIR_MAX], out[1024];
    struct um_lbmr_tir_writer writer;
    um_lbmr_tir_begin(&writer, record, sizeof record, "orders", 10);
    struct um_lbmr_option exfunc = {.type = UM_LBMR_OPT_EXFUNC, .flags = UM_LBMR_IGNORE16};
    exfunc.u.exfunc.src_port = 14391;
    exfunc.u.exfunc.src_ip = ip4("10.1.1.5");
    exfunc.u.exfunc.functionality = UM_LBMR_EXFUNC_LATE_JOIN;
    um_lbmr_tir_option(&writer, &exfunc);
    struct um_lbmr_option otid = {.type = UM_LBMR_OPT_OTID, .flags = UM_LBMR_IGNORE16};
    tcp_otid(otid.u.otid);
    um_lbmr_tir_option(&writer, &otid);
    struct um_lbmr_option ctx = {.type = UM_LBMR_OPT_CTXINST, .flags = UM_LBMR_IGNORE8};
    memcpy(ctx.u.instance.bytes, instance, 8);
    um_lbmr_tir_option(&writer, &ctx);
    struct um_lbmr_transport transport = {
        .code = UM_LBMR_TCP, .ip = ip4("10.1.1.5"), .session_id = 0x5eed0001, .port = 14371};
    size_t len = one_tir(out, sizeof out, record, um_lbmr_tir_end(&writer, &transport));
    CHECK_HEX(out, len, "E1");
}

TEST(e1_decodes_to_its_fields)
{
    struct parsed parsed;
    struct um_lbmr_tir tir;
    struct um_lbmr_option option;
    size_t offset = 0;
    uint8_t otid[32];
    CHECK(golden_tir("E1", &parsed, &tir));
    CHECK_STR(tir.name, "orders");
    CHECK_EQ(tir.name_len, 6);
    CHECK_EQ(tir.index, 10);
    CHECK_EQ(tir.transport.code, UM_LBMR_TCP);
    CHECK_EQ(tir.transport.ip, ip4("10.1.1.5"));
    CHECK_EQ(tir.transport.session_id, 0x5eed0001);
    CHECK_EQ(tir.transport.port, 14371);
    CHECK(um_lbmr_next_option(&tir, &offset, &option));
    CHECK_EQ(option.type, UM_LBMR_OPT_EXFUNC);
    CHECK_EQ(option.flags, 0x8000);
    CHECK_EQ(option.u.exfunc.src_port, 14391);
    CHECK_EQ(option.u.exfunc.functionality, 1);
    CHECK(um_lbmr_next_option(&tir, &offset, &option));
    tcp_otid(otid);
    CHECK(memcmp(option.u.otid, otid, 32) == 0);
    CHECK(um_lbmr_next_option(&tir, &offset, &option));
    CHECK(memcmp(option.u.instance.bytes, instance, 8) == 0);
    CHECK(!um_lbmr_next_option(&tir, &offset, &option));
    CHECK(!um_lbmr_next_tir(&parsed.cursor, &tir));
    CHECK_EQ(parsed.cursor.fault, UM_LBMR_OK);
}

TEST(e2_carries_the_older_late_join_option)
{
    struct parsed parsed;
    struct um_lbmr_tir tir;
    struct um_lbmr_option option;
    size_t offset = 0;
    CHECK(golden_tir("E2", &parsed, &tir));
    CHECK(um_lbmr_next_option(&tir, &offset, &option));
    CHECK_EQ(option.type, UM_LBMR_OPT_LATE_JOIN);
    CHECK_EQ(option.u.late_join.src_port, 14391);
    CHECK_EQ(option.u.late_join.transport_idx, 439041101);
    CHECK_EQ(option.u.late_join.high, 41);
    CHECK_EQ(option.u.late_join.low, 1);
}

TEST(e3_session_less_form_round_trips)
{
    struct parsed parsed;
    struct um_lbmr_tir tir;
    uint8_t out[256];
    CHECK(golden_tir("E3", &parsed, &tir));
    CHECK(tir.transport.session_less);
    CHECK_EQ(tir.transport.session_id, 0);
    CHECK_EQ(tir.transport.port, 14371);
    size_t len = simple_tir(out, sizeof out, "orders", 10, &tir.transport);
    CHECK_HEX(out, len, "E3");
}

TEST(e4_lbtrm_encodes_byte_for_byte)
{
    uint8_t out[256];
    struct um_lbmr_transport transport = {.code = UM_LBMR_LBTRM,
                                          .ip = ip4("10.1.1.5"),
                                          .group = ip4("224.10.10.14"),
                                          .session_id = 0x98765432,
                                          .dest_port = 14400,
                                          .port = 14390};
    size_t len = simple_tir(out, sizeof out, "quotes", 3, &transport);
    CHECK_HEX(out, len, "E4");
}

TEST(e5_lbtru_encodes_byte_for_byte)
{
    uint8_t out[256];
    struct um_lbmr_transport transport = {
        .code = UM_LBMR_LBTRU, .ip = ip4("10.1.1.5"), .session_id = 0x5eed0002, .port = 14380};
    size_t len = simple_tir(out, sizeof out, "quotes", 4, &transport);
    CHECK_HEX(out, len, "E5");
}

TEST(e6_and_e7_shared_memory_transports_encode_byte_for_byte)
{
    uint8_t out[256];
    struct um_lbmr_transport transport = {
        .code = UM_LBMR_LBTIPC, .host_id = 0x0a010105, .session_id = 0x6481f8d4, .transport_id = 20001};
    size_t len = simple_tir(out, sizeof out, "local", 5, &transport);
    CHECK_HEX(out, len, "E6");
    transport.code = UM_LBMR_LBTSMX;
    transport.session_id = 0x6481f8d5;
    transport.transport_id = 30001;
    len = simple_tir(out, sizeof out, "local", 6, &transport);
    CHECK_HEX(out, len, "E7");
}

TEST(e8_final_advertisement_has_cost_minus_one)
{
    uint8_t record[UM_LBMR_TIR_MAX], out[1024];
    struct um_lbmr_tir_writer writer;
    um_lbmr_tir_begin(&writer, record, sizeof record, "orders", 10);
    struct um_lbmr_option otid = {.type = UM_LBMR_OPT_OTID, .flags = UM_LBMR_IGNORE16};
    tcp_otid(otid.u.otid);
    um_lbmr_tir_option(&writer, &otid);
    struct um_lbmr_option cost = {.type = UM_LBMR_OPT_COST, .flags = UM_LBMR_IGNORE8};
    cost.u.cost.cost = -1;
    um_lbmr_tir_option(&writer, &cost);
    struct um_lbmr_transport transport = {
        .code = UM_LBMR_TCP, .ip = ip4("10.1.1.5"), .session_id = 0x5eed0001, .port = 14371};
    size_t len = one_tir(out, sizeof out, record, um_lbmr_tir_end(&writer, &transport));
    CHECK_HEX(out, len, "E8");
}

/* ---- E9..E14: queries and trailers ---- */

TEST(e9_query_encodes_byte_for_byte)
{
    uint8_t out[64];
    struct um_lbmr_builder builder;
    um_lbmr_begin(&builder, out, sizeof out, sizeof out, UM_LBMR_NORMAL, NULL, 0);
    CHECK(um_lbmr_add_tqr(&builder, "orders", 6));
    size_t len = um_lbmr_finish(&builder);
    CHECK_HEX(out, len, "E9");
}

TEST(e10_wildcard_query_encodes_byte_for_byte)
{
    uint8_t out[64];
    struct um_lbmr_builder builder;
    um_lbmr_begin(&builder, out, sizeof out, sizeof out, UM_LBMR_WC_TQRS, NULL, 0);
    CHECK(um_lbmr_add_wildcard_tqr(&builder, 1, "^ord.*$", 7));
    size_t len = um_lbmr_finish(&builder);
    CHECK_HEX(out, len, "E10");
}

TEST(e10_decodes_pattern_and_type)
{
    struct parsed parsed;
    struct um_lbmr_tqr tqr;
    CHECK(parse_golden("E10", &parsed));
    CHECK(um_lbmr_next_tqr(&parsed.cursor, &tqr));
    CHECK_EQ(tqr.pattern_type, 1);
    CHECK_STR(tqr.name, "^ord.*$");
    CHECK(!um_lbmr_next_tqr(&parsed.cursor, &tqr));
}

TEST(e11_mixes_queries_and_information)
{
    struct parsed parsed;
    struct um_lbmr_tqr tqr;
    struct um_lbmr_tir tir;
    CHECK(parse_golden("E11", &parsed));
    CHECK(um_lbmr_next_tqr(&parsed.cursor, &tqr));
    CHECK_STR(tqr.name, "orders");
    CHECK(um_lbmr_next_tqr(&parsed.cursor, &tqr));
    CHECK_STR(tqr.name, "quotes");
    CHECK(!um_lbmr_next_tqr(&parsed.cursor, &tqr));
    CHECK(um_lbmr_next_tir(&parsed.cursor, &tir));
    CHECK_EQ(tir.index, 10);
}

TEST(e12_two_records_and_a_trailer_rebuild_byte_for_byte)
{
    struct parsed parsed;
    struct um_lbmr_tir tir;
    uint8_t out[256], trailer[UM_LBMR_TRAILER_MAX];
    CHECK(parse_golden("E12", &parsed));
    CHECK(parsed.msg.trailer.has_source_id && parsed.msg.trailer.has_source_type && !parsed.msg.trailer.has_domain);
    CHECK(memcmp(parsed.msg.trailer.source_id, instance, 8) == 0);
    CHECK_EQ(parsed.msg.trailer.len, 20);
    size_t trailer_len = um_lbmr_encode_trailer(trailer, &parsed.msg.trailer);
    struct um_lbmr_builder builder;
    um_lbmr_begin(&builder, out, sizeof out, sizeof out, UM_LBMR_NORMAL, trailer, trailer_len);
    while (um_lbmr_next_tir(&parsed.cursor, &tir)) {
        uint8_t record[UM_LBMR_TIR_MAX];
        struct um_lbmr_tir_writer writer;
        um_lbmr_tir_begin(&writer, record, sizeof record, tir.name, tir.index);
        CHECK(um_lbmr_add_tir(&builder, record, um_lbmr_tir_end(&writer, &tir.transport)));
    }
    size_t len = um_lbmr_finish(&builder);
    CHECK_HEX(out, len, "E12");
}

TEST(e13_full_trailer_rebuilds_byte_for_byte)
{
    struct parsed parsed;
    uint8_t out[256], trailer[UM_LBMR_TRAILER_MAX];
    CHECK(parse_golden("E13", &parsed));
    CHECK_EQ(parsed.msg.trailer.version, 0x06110000);
    CHECK_EQ(parsed.msg.trailer.domain_id, 1);
    CHECK_EQ(parsed.msg.trailer.len, 36);
    size_t trailer_len = um_lbmr_encode_trailer(trailer, &parsed.msg.trailer);
    struct um_lbmr_builder builder;
    um_lbmr_begin(&builder, out, sizeof out, sizeof out, UM_LBMR_NORMAL, trailer, trailer_len);
    CHECK(um_lbmr_add_tqr(&builder, "orders", 6));
    size_t len = um_lbmr_finish(&builder);
    CHECK_HEX(out, len, "E13");
}

TEST(e14_carries_the_tls_bit_in_the_version_flags)
{
    struct parsed parsed;
    CHECK(parse_golden("E14", &parsed));
    CHECK_EQ(parsed.msg.trailer.version_flags, UM_LBMR_VERSION_TLS);
}

/* ---- E15..E27: extended messages, keepalives, topic management ---- */

TEST(e15_and_e16_context_name_messages_encode_byte_for_byte)
{
    uint8_t out[256];
    struct um_lbmr_rctx record = {.query = true, .name = "store-1", .name_len = 7};
    size_t len = um_lbmr_encode_rctx(out, sizeof out, &record, NULL, 0);
    CHECK_HEX(out, len, "E15");
    record.query = false;
    record.has_address = record.has_instance = record.has_origin_domain = true;
    record.address_domain = record.origin_domain = 3;
    record.ip = ip4("10.1.1.9");
    record.port = 14391;
    memcpy(record.instance, instance, 8);
    len = um_lbmr_encode_rctx(out, sizeof out, &record, NULL, 0);
    CHECK_HEX(out, len, "E16");
}

TEST(e16_decodes_to_its_fields)
{
    struct parsed parsed;
    struct um_lbmr_rctx record;
    CHECK(parse_golden("E16", &parsed));
    CHECK_EQ(um_lbmr_rctx_records(&parsed.msg, &parsed.cursor), UM_LBMR_OK);
    CHECK(um_lbmr_next_rctx(&parsed.cursor, &record));
    CHECK(!record.query);
    CHECK_EQ(record.address_domain, 3);
    CHECK_EQ(record.ip, ip4("10.1.1.9"));
    CHECK_EQ(record.port, 14391);
    CHECK_EQ(record.origin_domain, 3);
    CHECK_STR(record.name, "store-1");
    CHECK(!um_lbmr_next_rctx(&parsed.cursor, &record));
    CHECK_EQ(parsed.cursor.fault, UM_LBMR_OK);
}

TEST(e17_context_information_round_trips)
{
    static const char *const names[] = {"E17a", "E17b"};
    for (int i = 0; i < 2; i++) {
        struct parsed parsed;
        struct um_lbmr_ctxinfo info;
        uint8_t out[256];
        CHECK(parse_golden(names[i], &parsed));
        CHECK_EQ(um_lbmr_decode_ctxinfo(&parsed.msg, &info), UM_LBMR_OK);
        CHECK_STR(info.name, "store-1");
        CHECK_EQ((info.flags & UM_LBMR_CTX_QUERY) != 0, i == 0);
        size_t len = um_lbmr_encode_ctxinfo(out, sizeof out, &info, NULL, 0);
        CHECK_HEX(out, len, names[i]);
    }
}

TEST(e18_keepalives_and_e19_request_encode_byte_for_byte)
{
    uint8_t out[16];
    CHECK_EQ(um_lbmr_encode_keepalive(out, sizeof out, UM_LBMR_UCAST_RCV_ALIVE), 4);
    CHECK_HEX(out, 4, "E18a");
    um_lbmr_encode_keepalive(out, sizeof out, UM_LBMR_UCAST_SRC_ALIVE);
    CHECK_HEX(out, 4, "E18b");
    um_lbmr_encode_keepalive(out, sizeof out, UM_LBMR_NORMAL);
    CHECK_HEX(out, 4, "E18c");
    size_t len = um_lbmr_encode_request(out, sizeof out, 7, NULL, 0);
    CHECK_HEX(out, len, "E19");
}

TEST(e20_topic_management_blocks_round_trip)
{
    static const char *const names[] = {"E20a", "E20b"};
    for (int i = 0; i < 2; i++) {
        struct parsed parsed;
        struct um_lbmr_tmr record;
        struct um_lbmr_builder builder;
        uint8_t out[256];
        CHECK(parse_golden(names[i], &parsed));
        um_lbmr_begin(&builder, out, sizeof out, sizeof out, UM_LBMR_TOPIC_MGMT, NULL, 0);
        while (um_lbmr_next_tmr(&parsed.cursor, &record)) {
            CHECK(um_lbmr_add_tmr(&builder, record.type, record.flags, record.name, record.len));
        }
        CHECK_EQ(parsed.cursor.fault, UM_LBMR_OK);
        size_t len = um_lbmr_finish(&builder);
        CHECK_HEX(out, len, names[i]);
    }
}

TEST(e21_route_lists_its_domains)
{
    struct parsed parsed;
    struct um_lbmr_route route;
    CHECK(parse_golden("E21", &parsed));
    CHECK_EQ(um_lbmr_decode_route(&parsed.msg, &route), UM_LBMR_OK);
    CHECK_EQ(route.count, 2);
    CHECK_EQ(route.port, 14391);
    CHECK_EQ(route.ip, ip4("10.1.1.20"));
    CHECK_EQ(um_get32(route.domains + 4), 2);
}

TEST(e27_every_option_decodes_and_reencodes_identically)
{
    struct parsed parsed;
    struct um_lbmr_tir tir;
    struct um_lbmr_option option;
    struct um_lbmr_tir_writer writer;
    uint8_t record[UM_LBMR_TIR_MAX], out[1024];
    static const uint8_t order[] = {1, 3, 2, 2, 4, 5, 6, 0x0B, 7, 8, 9, 0x0A, 0x0C, 0x0D, 0x0E};
    size_t offset = 0, count = 0;
    CHECK(golden_tir("E27", &parsed, &tir));
    um_lbmr_tir_begin(&writer, record, sizeof record, tir.name, tir.index);
    while (um_lbmr_next_option(&tir, &offset, &option)) {
        CHECK(count < sizeof order);
        CHECK_EQ(option.type, order[count]);
        count++;
        um_lbmr_tir_option(&writer, &option);
    }
    CHECK_EQ(count, sizeof order);
    size_t len = one_tir(out, sizeof out, record, um_lbmr_tir_end(&writer, &tir.transport));
    CHECK_HEX(out, len, "E27");
}

/* ---- the validation table ---- */

struct bad_packet {
    const char *hex;
    enum um_lbmr_fault fault;
    const char *id;
    enum um_lbmr_counter counter;
};

#define TIR_HEAD                                                                                                       \
    "00000001"                                                                                                         \
    "6100"                                                                                                             \
    "80"                                                                                                               \
    "0a"                                                                                                               \
    "0000"                                                                                                             \
    "0000000a"
#define TCP_INFO "0a0101055eed00013823"
#define BAD UM_LBMR_COUNT_MALFORMED

static const struct bad_packet bad_packets[] = {
    {"000000", UM_LBMR_FAULT_SHORT, "Core-5688-3378", BAD},
    {"20000000", UM_LBMR_FAULT_VERSION, "Core-5688-3377", UM_LBMR_COUNT_VERSION},
    {"08000000"
     "82048000",
     UM_LBMR_FAULT_TRAILER_LAST, "Core-5688-3379", BAD},
    {"08000000"
     "80040003",
     UM_LBMR_FAULT_TRAILER_TOTAL, "Core-5688-3380", BAD},
    {"08000000"
     "80040009",
     UM_LBMR_FAULT_TRAILER_TOTAL, "Core-5688-3380", BAD},
    {"08000000"
     "82008000"
     "80040008",
     UM_LBMR_FAULT_TRAILER_ZERO, "Core-5937-1", BAD},
    {"08000000"
     "90040000"
     "80040008",
     UM_LBMR_FAULT_TRAILER_UNKNOWN, "Core-5688-3383", BAD},
    {"08000000"
     "84048000"
     "80040008",
     UM_LBMR_FAULT_TRAILER_DOMAIN, "Core-6259-6", BAD},
    {"05000000", UM_LBMR_FAULT_TYPE, "Core-5688-3384", UM_LBMR_COUNT_TYPE},
    {"07090000", UM_LBMR_FAULT_EXT_TYPE, "Core-5688-3387", UM_LBMR_COUNT_TYPE},
    {"00010000"
     "6f72",
     UM_LBMR_FAULT_TQR, "Core-5937-2", BAD},
    {"00000001"
     "6100"
     "000a0000",
     UM_LBMR_FAULT_TIR, "Core-5937-3", BAD},
    {TIR_HEAD "07088000"
              "00000000" TCP_INFO,
     UM_LBMR_FAULT_OPTION_FIRST, "Core-5688-3388", BAD},
    {TIR_HEAD "00050004" TCP_INFO, UM_LBMR_FAULT_OPTION_LENGTH, "Core-5688-3389", BAD},
    {TIR_HEAD "00040003" TCP_INFO, UM_LBMR_FAULT_OPTION_SMALL, "Core-5688-3390", BAD},
    {TIR_HEAD "000400ff" TCP_INFO, UM_LBMR_FAULT_OPTION_LARGE, "Core-5872-1", BAD},
    {TIR_HEAD "00040008"
              "07008000" TCP_INFO,
     UM_LBMR_FAULT_OPTION_ZERO, "Core-5937-6", BAD},
    {TIR_HEAD "0004000c"
              "0108800000000000" TCP_INFO,
     UM_LBMR_FAULT_OPTION_UME, "Core-5688-3391", BAD},
    {TIR_HEAD "0004000c"
              "0408800000000000" TCP_INFO,
     UM_LBMR_FAULT_OPTION_LATE_JOIN, "Core-5688-3392", BAD},
    {TIR_HEAD "0004000c"
              "0208800000000000" TCP_INFO,
     UM_LBMR_FAULT_OPTION_STORE, "Core-5688-3393", BAD},
    {TIR_HEAD "00040008"
              "03048000" TCP_INFO,
     UM_LBMR_FAULT_OPTION_STORE_GROUP, "Core-5688-3394", BAD},
    {TIR_HEAD "0004000c"
              "0e08800000000000" TCP_INFO,
     UM_LBMR_FAULT_OPTION_EXFUNC, "Core-6361-130", BAD},
    {TIR_HEAD "00040008"
              "70040000" TCP_INFO,
     UM_LBMR_FAULT_OPTION_UNKNOWN, "Core-5688-3397", BAD},
    {TIR_HEAD "0004000a"
              "70048000"
              "0000" TCP_INFO,
     UM_LBMR_FAULT_OPTION_ZERO, "Core-5937-6", BAD},
    {TIR_HEAD "00040008"
              "70058000" TCP_INFO,
     UM_LBMR_FAULT_OPTION_SUM, "Core-5688-3398", BAD},
    {"04000000"
     "000a0001"
     "000501006100",
     UM_LBMR_FAULT_TOPIC_MGMT, "Core-5688-3400", BAD},
    {"07070008"
     "0000",
     UM_LBMR_FAULT_RCTX, "Core-6759-1", BAD},
    {"07070020"
     "00010000",
     UM_LBMR_FAULT_RCTX_LEN, "Core-6759-2", BAD},
    {"0707000c"
     "00010000"
     "00030000",
     UM_LBMR_FAULT_RCTX_RECORD, "Core-6759-3", BAD},
    {"07070010"
     "00010000"
     "00080000"
     "01040000",
     UM_LBMR_FAULT_RCTX_ADDRESS, "Core-6759-4", BAD},
    {"07070010"
     "00010000"
     "00080000"
     "02040000",
     UM_LBMR_FAULT_RCTX_INSTANCE, "Core-6759-5", BAD},
    {"07070010"
     "00010000"
     "00080000"
     "03040000",
     UM_LBMR_FAULT_RCTX_DOMAIN, "Core-6759-6", BAD},
    {"07070010"
     "00010000"
     "00080000"
     "04040000",
     UM_LBMR_FAULT_RCTX_NAME, "Core-6759-7", BAD},
    {"07070010"
     "00010000"
     "00080000"
     "09040000",
     UM_LBMR_FAULT_RCTX_OPTION, "Core-6759-8", BAD},
    {"07060001"
     "0a010114"
     "38370000"
     "00000014"
     "00000000",
     UM_LBMR_FAULT_ROUTE_DOMAIN, "Core-10164-1", BAD},
    {"07060001"
     "0a010114"
     "38370000"
     "00000018"
     "00000001",
     UM_LBMR_FAULT_ROUTE_SHORT, "Core-6259-9", BAD},
    {"07060002"
     "0a010114"
     "38370000"
     "00000018"
     "00000001",
     UM_LBMR_FAULT_ROUTE_LEN, "Core-6259-10", BAD},
};

TEST(every_row_of_the_validation_table_has_its_fault_counter_and_log_id)
{
    for (size_t i = 0; i < sizeof bad_packets / sizeof bad_packets[0]; i++) {
        const struct bad_packet *bad = &bad_packets[i];
        size_t len = strlen(bad->hex) / 2;
        uint8_t *bytes = malloc(len);
        for (size_t k = 0; k < len; k++) {
            char pair[3] = {bad->hex[2 * k], bad->hex[2 * k + 1], 0};
            bytes[k] = (uint8_t)strtoul(pair, NULL, 16);
        }
        enum um_lbmr_fault fault = um_lbmr_validate(bytes, len, NULL);
        free(bytes);
        if (fault != bad->fault) {
            TEST_FAIL("%s: fault %d, want %d", bad->hex, fault, bad->fault);
        }
        CHECK_STR(um_lbmr_fault_id(fault), bad->id);
        CHECK_EQ(um_lbmr_fault_counter(fault), bad->counter);
    }
}

TEST(fault_texts_name_origin_and_value)
{
    char text[256];
    um_lbmr_fault_text(UM_LBMR_FAULT_SHORT, 0, "10.1.1.5", 12965, 3, text, sizeof text);
    CHECK_STR(text, "LBMR packet malformed. Dropping. Origin: 10.1.1.5:12965");
    um_lbmr_fault_text(UM_LBMR_FAULT_TRAILER_UNKNOWN, 144, "10.1.1.5", 12965, 12, text, sizeof text);
    CHECK_STR(text, "LBMR option invalid type [144]. Dropping packet. Origin: 10.1.1.5:12965");
    um_lbmr_fault_text(UM_LBMR_FAULT_VERSION, 2, "10.1.1.5", 12965, 4, text, sizeof text);
    CHECK_CONTAINS(text, "LBMR Version 0x2 incorrect (10.1.1.5:12965 len 4)");
}

/* ---- lengths, substitution, packing ---- */

TEST(unknown_transport_is_skipped_and_the_next_record_read)
{
    static const uint8_t bytes[] = {0,   0, 0, 2, 'a', 0, 0x33, 3, 0, 0, 0,  0, 0, 1, 1,    2,   3,
                                    'b', 0, 0, 6, 0,   0, 0,    0, 0, 2, 10, 1, 1, 5, 0x38, 0x23};
    struct um_lbmr_msg msg;
    struct um_lbmr_cursor cursor;
    struct um_lbmr_tir tir;
    unsigned detail;
    CHECK_EQ(um_lbmr_parse(bytes, sizeof bytes, &msg, &detail), UM_LBMR_OK);
    um_lbmr_records(&msg, &cursor);
    CHECK(um_lbmr_next_tir(&cursor, &tir));
    CHECK(!tir.transport.known);
    CHECK(um_lbmr_next_tir(&cursor, &tir));
    CHECK(tir.transport.known);
    CHECK_STR(tir.name, "b");
}

TEST(names_longer_than_255_are_refused)
{
    uint8_t bytes[300] = {0, 1, 0, 0};
    memset(bytes + 4, 'x', 255);
    CHECK_EQ(um_lbmr_validate(bytes, 4 + 256, NULL), UM_LBMR_OK);
    memset(bytes + 4, 'x', 256);
    CHECK_EQ(um_lbmr_validate(bytes, 4 + 257, NULL), UM_LBMR_FAULT_TQR);
}

TEST(substitution_fills_every_unbound_source_address_and_no_other)
{
    uint8_t bytes[1024];
    uint32_t ip = ip4("10.9.8.7");
    size_t len = golden_bytes("E27", bytes, sizeof bytes);
    CHECK_EQ(um_lbmr_substitute_address(bytes, len, ip), 0);
    uint32_t bound = ip4("10.1.1.5");
    for (size_t i = 0; i + 4 <= len; i++) {
        if (memcmp(bytes + i, &bound, 4) == 0) {
            memset(bytes + i, 0, 4);
        }
    }
    /* UME source, late join, ULB, EXFUNC, transport block. */
    CHECK_EQ(um_lbmr_substitute_address(bytes, len, ip), 5);
    for (size_t i = 0; i + 4 <= len; i++) {
        if (memcmp(bytes + i, &ip, 4) == 0) {
            memcpy(bytes + i, &bound, 4);
        }
    }
    CHECK_HEX(bytes, len, "E27");
}

TEST(builder_keeps_to_the_limit_and_counts_at_most_255_queries)
{
    uint8_t out[2048], trailer[UM_LBMR_TRAILER_MAX];
    struct um_lbmr_trailer spec = {.has_source_type = true};
    size_t trailer_len = um_lbmr_encode_trailer(trailer, &spec);
    struct um_lbmr_builder builder;
    um_lbmr_begin(&builder, out, sizeof out, 500, UM_LBMR_NORMAL, trailer, trailer_len);
    int added = 0;
    while (um_lbmr_add_tqr(&builder, "0123456789", 10)) {
        added++;
    }
    size_t len = um_lbmr_finish(&builder);
    CHECK_EQ(added, (500 - 4 - 8) / 11);
    CHECK(len <= 500);
    CHECK_EQ(um_lbmr_validate(out, len, NULL), UM_LBMR_OK);
    um_lbmr_begin(&builder, out, sizeof out, sizeof out, UM_LBMR_NORMAL, NULL, 0);
    for (added = 0; um_lbmr_add_tqr(&builder, "a", 1); added++) {
    }
    CHECK_EQ(added, 255);
}

TEST(a_record_larger_than_the_limit_goes_alone)
{
    uint8_t out[2048], record[UM_LBMR_TIR_MAX];
    char name[247];
    memset(name, 'n', 246);
    name[246] = 0;
    struct um_lbmr_transport transport = {.code = UM_LBMR_TCP};
    struct um_lbmr_tir_writer writer;
    um_lbmr_tir_begin(&writer, record, sizeof record, name, 1);
    size_t record_len = um_lbmr_tir_end(&writer, &transport);
    struct um_lbmr_builder builder;
    um_lbmr_begin(&builder, out, sizeof out, 100, UM_LBMR_NORMAL, NULL, 0);
    CHECK(um_lbmr_add_tir(&builder, record, record_len));
    CHECK(!um_lbmr_add_tir(&builder, record, record_len));
    CHECK_EQ(um_lbmr_finish(&builder), 4 + record_len);
}

TEST(a_record_that_does_not_fit_its_buffer_is_reported)
{
    uint8_t record[20];
    struct um_lbmr_transport transport = {.code = UM_LBMR_TCP};
    struct um_lbmr_tir_writer writer;
    um_lbmr_tir_begin(&writer, record, sizeof record, "orders", 1);
    CHECK_EQ(um_lbmr_tir_end(&writer, &transport), 0);
    um_lbmr_tir_begin(&writer, record, 4, "orders", 1);
    CHECK_EQ(um_lbmr_tir_end(&writer, &transport), 0);
}
