/* LBMSRS: every example is produced byte for byte from its field values; what is cut or wrong is refused. */
#include "lbmsrs_golden.h"
#include "um_test.h"
#include "wire/um_lbmsrs.h"
#include "wire/um_rsocket.h"

static const uint8_t otid[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
static const uint8_t instance[8] = {0xa1, 0xb2, 0xc3, 0xd4, 0xe5, 0xf6, 0x07, 0x18};
static const uint8_t address[4] = {10, 1, 1, 5};

static struct um_slice text(const char *string)
{
    return (struct um_slice){(const uint8_t *)string, strlen(string)};
}

static struct um_slice data_of(const uint8_t *frame, size_t len)
{
    struct um_rsocket_frame out;
    return um_rsocket_decode(frame + 3, len - 3, &out) ? out.data : (struct um_slice){NULL, 0};
}

#define DATA(name) data_of(name, sizeof(name))

static struct um_lbmsrs_record context_record(uint16_t id, const char *topic)
{
    return (struct um_lbmsrs_record){
        .id = id, .topic = text(topic), .context_instance = instance, .version = 0x06110000};
}

static struct um_lbmsrs_record source_record(int32_t cost)
{
    struct um_lbmsrs_record record = context_record(UM_LBMSRS_SIR, "orders");
    record.otid = otid;
    record.source = text("TCP:10.1.1.5:14371:5eed0001");
    record.host_id = 0x0a010105;
    record.topic_index = 10;
    record.functionality_flags = UM_LBMSRS_FUNC_LATE_JOIN;
    memcpy(&record.request_ip, address, 4);
    record.request_port = 14391;
    record.cost = cost;
    return record;
}

static bool puts_exactly(const struct um_lbmsrs_record *records, size_t count, struct um_slice expected)
{
    uint8_t out[1024];
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        size_t len = um_lbmsrs_put(&records[i], out + at, sizeof(out) - at);
        if (len == 0 || len != um_lbmsrs_len(&records[i])) {
            return false;
        }
        at += len;
    }
    return at == expected.len && memcmp(out, expected.ptr, at) == 0;
}

TEST(registration_request_is_produced_and_read)
{
    struct um_lbmsrs_request request = {.client_port = 41873,
                                        .session_id = 0xaecbff98,
                                        .host_id = 0x0a010105,
                                        .protocol_version = 1,
                                        .interest_mode = UM_LBMSRS_FILTER};
    struct um_lbmsrs_request back;
    uint8_t out[UM_LBMSRS_REQUEST_LEN];
    memcpy(&request.client_addr, address, 4);
    um_lbmsrs_put_request(out, &request);
    CHECK_EQ(DATA(s2).len, sizeof(out));
    CHECK(memcmp(out, DATA(s2).ptr, sizeof(out)) == 0);
    CHECK(um_lbmsrs_decode_request(DATA(s2), &back));
    CHECK_EQ(back.session_id, request.session_id);
    CHECK_EQ(back.client_port, 41873);
    CHECK_EQ(back.client_addr, request.client_addr);
    CHECK_EQ(back.host_id, 0x0a010105);
    CHECK_EQ(back.interest_mode, 1);
    CHECK(!um_lbmsrs_decode_request(DATA(s3), &back));
    CHECK(!um_lbmsrs_decode_request((struct um_slice){out, sizeof(out) - 1}, &back));
}

TEST(registration_response_is_produced_and_read)
{
    struct um_lbmsrs_response response = {.client_id = 17, .protocol_version = 1}, back;
    uint8_t out[UM_LBMSRS_RESPONSE_LEN];
    um_lbmsrs_put_response(out, &response);
    CHECK_EQ(DATA(s3).len, sizeof(out));
    CHECK(memcmp(out, DATA(s3).ptr, sizeof(out)) == 0);
    CHECK(um_lbmsrs_decode_response(DATA(s3), &back));
    CHECK_EQ(back.client_id, 17);
    CHECK_EQ(back.protocol_version, 1);
    CHECK(!um_lbmsrs_decode_response(DATA(s2), &back));
}

TEST(stream_request_is_produced_and_read)
{
    uint8_t out[UM_LBMSRS_STREAM_REQUEST_LEN];
    um_lbmsrs_put_stream_request(out);
    CHECK_EQ(DATA(s4).len, sizeof(out));
    CHECK(memcmp(out, DATA(s4).ptr, sizeof(out)) == 0);
    CHECK(um_lbmsrs_is_stream_request(DATA(s4)));
    CHECK(!um_lbmsrs_is_stream_request(DATA(s2)));
}

TEST(every_record_is_produced_byte_for_byte)
{
    struct um_lbmsrs_record sir = source_record(0), ser = source_record(UM_LBMSRS_COST_END);
    struct um_lbmsrs_record interest[2] = {context_record(UM_LBMSRS_RIR, "quotes"),
                                           context_record(UM_LBMSRS_WIR, "^ord.*$")};
    struct um_lbmsrs_record deletes[2] = {context_record(UM_LBMSRS_RDR, "quotes"),
                                          context_record(UM_LBMSRS_WDR, "^ord.*$")};
    struct um_lbmsrs_record ends[3] = {context_record(UM_LBMSRS_RER, "quotes"),
                                       context_record(UM_LBMSRS_WER, "^ord.*$"), context_record(UM_LBMSRS_RIR, "x")};
    struct um_lbmsrs_record sdr = {.id = UM_LBMSRS_SDR, .otid = otid, .topic = text("orders")};
    struct um_lbmsrs_record slr = context_record(UM_LBMSRS_SLR, "orders");
    slr.otid = otid;
    slr.source = sir.source;
    CHECK(puts_exactly(&sir, 1, DATA(s5)));
    CHECK(puts_exactly(&sir, 1, DATA(s7)));
    CHECK(puts_exactly(interest, 2, DATA(s6)));
    CHECK(puts_exactly(&sdr, 1, DATA(s10)));
    CHECK(puts_exactly(&ser, 1, DATA(s11)));
    CHECK(puts_exactly(deletes, 2, DATA(s12)));
    CHECK(puts_exactly(ends, 3, DATA(s13)));
    CHECK(puts_exactly(&slr, 1, DATA(s14)));
    CHECK(um_lbmsrs_is_end(&ser) && !um_lbmsrs_is_end(&sir));
    CHECK_STR(um_lbmsrs_name(&ser), "SER");
    CHECK_STR(um_lbmsrs_name(&slr), "SLR");
}

TEST(every_field_of_a_source_record_survives_a_round_trip)
{
    struct um_lbmsrs_record in = source_record(7), out;
    uint8_t bytes[UM_LBMSRS_RECORD_MAX];
    in.domain_id = 0x01020304;
    in.encryption = 1;
    in.compression = 2;
    in.ulb_source_id = 3;
    in.ulb_queue_id = 4;
    in.ulb_registration_id = 0x0102030405060708;
    in.context_type = UM_LBMSRS_STORE;
    in.version_flags = 3;
    in.ttl = 9;
    struct um_slice batch = {bytes, um_lbmsrs_put(&in, bytes, sizeof(bytes))};
    CHECK_EQ(um_lbmsrs_next(&batch, &out), UM_LBMSRS_OK);
    CHECK(memcmp(out.otid, otid, 32) == 0 && memcmp(out.context_instance, instance, 8) == 0);
    CHECK_STR((const char *)out.topic.ptr, "orders");
    CHECK_STR((const char *)out.source.ptr, "TCP:10.1.1.5:14371:5eed0001");
    CHECK(out.host_id == in.host_id && out.topic_index == 10 && out.functionality_flags == 1);
    CHECK(out.request_ip == in.request_ip && out.request_port == 14391 && out.domain_id == 0x01020304);
    CHECK(out.encryption == 1 && out.compression == 2 && out.ulb_source_id == 3 && out.ulb_queue_id == 4);
    CHECK(out.ulb_registration_id == 0x0102030405060708 && out.context_type == 2 && out.version_flags == 3);
    CHECK(out.ttl == 9 && out.cost == 7 && out.version == 0x06110000);
    CHECK_EQ(um_lbmsrs_next(&batch, &out), UM_LBMSRS_DONE);
}

/* Every batch of the examples: read record by record, written again, the same bytes. Cut anywhere, it is short. */
TEST(x3_batches_are_read_whole_and_cut_ones_are_refused)
{
    const struct um_slice batches[] = {DATA(s5), DATA(s6), DATA(s10), DATA(s11), DATA(s12), DATA(s13), DATA(s14)};
    for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++) {
        for (size_t len = 0; len <= batches[i].len; len++) {
            uint8_t *copy = malloc(len > 0 ? len : 1), again[1024];
            struct um_slice batch = {copy, len};
            struct um_lbmsrs_record record;
            size_t at = 0;
            enum um_lbmsrs_rc rc;
            memcpy(copy, batches[i].ptr, len);
            while ((rc = um_lbmsrs_next(&batch, &record)) == UM_LBMSRS_OK) {
                at += um_lbmsrs_put(&record, again + at, sizeof(again) - at);
            }
            bool same = memcmp(again, batches[i].ptr, at) == 0;
            free(copy);
            CHECK(same);
            CHECK(rc == (at == len ? UM_LBMSRS_DONE : UM_LBMSRS_SHORT));
        }
    }
}

static enum um_lbmsrs_rc first_of(const uint8_t *bytes, size_t len)
{
    struct um_slice batch = {bytes, len};
    struct um_lbmsrs_record record;
    return um_lbmsrs_next(&batch, &record);
}

TEST(x3_strings_without_their_nul_or_with_one_inside_are_refused)
{
    uint8_t bytes[64] = {0, UM_LBMSRS_RIR, 4, 'a', 'b', 'c', 0};
    CHECK_EQ(first_of(bytes, 3 + 4 + 25), UM_LBMSRS_OK);
    bytes[6] = 'd';
    CHECK_EQ(first_of(bytes, 3 + 4 + 25), UM_LBMSRS_BAD_STRING);
    bytes[6] = 0;
    bytes[4] = 0;
    CHECK_EQ(first_of(bytes, 3 + 4 + 25), UM_LBMSRS_BAD_STRING);
    bytes[2] = 0;
    CHECK_EQ(first_of(bytes, 3 + 4 + 25), UM_LBMSRS_BAD_STRING);
    bytes[2] = 1;
    bytes[3] = 0;
    CHECK_EQ(first_of(bytes, 3 + 4 + 25), UM_LBMSRS_BAD_STRING);
    bytes[1] = 13;
    CHECK_EQ(first_of(bytes, 3 + 4 + 25), UM_LBMSRS_UNKNOWN);
    bytes[1] = 3;
    CHECK_EQ(first_of(bytes, 3 + 4 + 25), UM_LBMSRS_UNKNOWN);
}

TEST(longest_strings_fit_and_longer_ones_are_refused)
{
    char name[UM_LBMSRS_STRING_MAX + 2];
    uint8_t bytes[UM_LBMSRS_RECORD_MAX];
    struct um_lbmsrs_record record = source_record(0), out;
    memset(name, 'n', sizeof(name));
    record.topic = record.source = (struct um_slice){(uint8_t *)name, UM_LBMSRS_STRING_MAX};
    struct um_slice batch = {bytes, um_lbmsrs_put(&record, bytes, sizeof(bytes))};
    CHECK_EQ(batch.len, UM_LBMSRS_RECORD_MAX);
    CHECK_EQ(um_lbmsrs_next(&batch, &out), UM_LBMSRS_OK);
    CHECK_EQ(out.topic.len, UM_LBMSRS_STRING_MAX);
    record.topic.len++;
    CHECK_EQ(um_lbmsrs_put(&record, bytes, sizeof(bytes)), 0);
    record.topic.len = 0;
    CHECK_EQ(um_lbmsrs_put(&record, bytes, sizeof(bytes)), 0);
}

TEST(a_record_that_does_not_fit_is_not_written)
{
    struct um_lbmsrs_record record = source_record(0);
    uint8_t bytes[UM_LBMSRS_RECORD_MAX];
    size_t len = um_lbmsrs_len(&record);
    memset(bytes, 0xee, sizeof(bytes));
    CHECK_EQ(um_lbmsrs_put(&record, bytes, len - 1), 0);
    CHECK_EQ(bytes[0], 0xee);
    CHECK_EQ(um_lbmsrs_put(&record, bytes, len), len);
    CHECK_EQ(bytes[len], 0xee);
}

TEST(extension_records_survive_a_round_trip_and_cut_ones_are_refused)
{
    static const uint8_t domains[] = {0, 0, 0, 7, 0, 0, 1, 0};
    struct um_lbmsrs_ext records[] = {
        {.id = UM_LBMSRS_CNQR, .name = text("store-1"), .domain_id = 2},
        {.id = UM_LBMSRS_CNIR,
         .name = text("store-1"),
         .domain_id = 2,
         .ip = 0x05010a0a,
         .port = 14567,
         .origin_instance = instance},
        {.id = UM_LBMSRS_CNER, .name = text("store-1"), .origin_instance = instance},
        {.id = UM_LBMSRS_DIR, .domain_id = 9, .origin_instance = instance},
        {.id = UM_LBMSRS_RTIR,
         .route_index = 3,
         .ip = 1,
         .port = 2,
         .origin_instance = instance,
         .domains = {domains, sizeof(domains)}},
        {.id = UM_LBMSRS_RTER, .route_index = 3, .ip = 1, .port = 2, .origin_instance = instance}};
    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        uint8_t bytes[256], again[256];
        size_t len = um_lbmsrs_ext_put(&records[i], bytes, sizeof(bytes));
        struct um_slice batch = {bytes, len};
        struct um_lbmsrs_ext back;
        CHECK(len > 0 && len == um_lbmsrs_ext_len(&records[i]));
        CHECK_EQ(um_lbmsrs_ext_next(&batch, &back), UM_LBMSRS_OK);
        CHECK_EQ(batch.len, 0);
        CHECK_EQ(um_lbmsrs_ext_put(&back, again, sizeof(again)), len);
        CHECK(memcmp(bytes, again, len) == 0);
        for (size_t cut = 1; cut < len; cut++) {
            uint8_t *copy = malloc(cut);
            memcpy(copy, bytes, cut);
            batch = (struct um_slice){copy, cut};
            enum um_lbmsrs_rc rc = um_lbmsrs_ext_next(&batch, &back);
            free(copy);
            CHECK_EQ(rc, UM_LBMSRS_SHORT);
        }
    }
    CHECK_EQ(um_lbmsrs_ext_domain(&records[4], 1), 256);
}

TEST(x3_a_route_with_domain_zero_is_refused)
{
    static const uint8_t domains[] = {0, 0, 0, 7, 0, 0, 0, 0};
    struct um_lbmsrs_ext route = {
        .id = UM_LBMSRS_RTIR, .origin_instance = instance, .domains = {domains, sizeof(domains)}};
    struct um_lbmsrs_ext back;
    uint8_t bytes[64];
    struct um_slice batch = {bytes, um_lbmsrs_ext_put(&route, bytes, sizeof(bytes))};
    CHECK_EQ(um_lbmsrs_ext_next(&batch, &back), UM_LBMSRS_BAD_VALUE);
}
