/* LBT-TCP stream reader: messages come out whole whatever the segments, and only the partial message is ever moved. */
#include "base/um_random.h"
#include "um_test.h"
#include "wire/um_lbttcp.h"

#define CAPACITY (256u * 1024u)

static size_t put_message(uint8_t *p, uint32_t sqn, size_t payload)
{
    um_lbmc_put_data_hdr(p, UM_LBMC_HDR_DATA, (uint16_t)(12 + payload), 77, sqn);
    memset(p + 12, (int)(sqn & 0xff), payload);
    return 12 + payload;
}

TEST(ten_thousand_messages_come_out_whole_from_random_segments)
{
    struct um_rng rng;
    um_rng_seed(&rng, 3);
    enum { COUNT = 10000 };
    size_t *lengths = malloc(COUNT * sizeof *lengths), total = 0;
    for (int i = 0; i < COUNT; i++) {
        lengths[i] = (size_t)um_rng_range(&rng, 0, um_rng_range(&rng, 0, 20) == 0 ? 65523 : 400);
        total += 12 + lengths[i];
    }
    uint8_t *stream = malloc(total), *buffers[2] = {malloc(CAPACITY), malloc(CAPACITY)};
    size_t at = 0, which = 0, moved = 0;
    for (int i = 0; i < COUNT; i++) {
        at += put_message(stream + at, (uint32_t)i, lengths[i]);
    }
    struct um_lbttcp_reader reader;
    struct um_lbmc_msg msg;
    uint32_t expected = 0;
    bool ok = true;
    um_lbttcp_start(&reader, buffers[0], CAPACITY);
    for (at = 0; at < total && ok;) {
        if (um_lbttcp_must_move(&reader)) {
            which ^= 1;
            moved += reader.end - reader.start;
            um_lbttcp_move(&reader, buffers[which], CAPACITY);
        }
        size_t step = (size_t)um_rng_range(&rng, 1, um_rng_range(&rng, 0, 3) == 0 ? 3 : 65536);
        step = step < total - at ? step : total - at;
        step = step < um_lbttcp_room(&reader) ? step : um_lbttcp_room(&reader);
        memcpy(reader.data + reader.end, stream + at, step);
        um_lbttcp_received(&reader, step);
        at += step;
        enum um_lbttcp_rc rc;
        while ((rc = um_lbttcp_next(&reader, &msg)) == UM_LBTTCP_MESSAGE) {
            ok = ok && msg.sqn == expected && msg.payload.len == lengths[expected] &&
                 (msg.payload.len == 0 || (msg.payload.ptr[0] == (expected & 0xff) &&
                                           memcmp(msg.payload.ptr, msg.payload.ptr + 1, msg.payload.len - 1) == 0));
            expected++;
        }
        ok = ok && rc == UM_LBTTCP_MORE;
    }
    free(stream);
    free(buffers[0]);
    free(buffers[1]);
    free(lengths);
    CHECK(ok);
    CHECK_EQ(expected, COUNT);
    CHECK(moved < total / 2);
}

/* Cut at every byte, in a buffer that ends there: the messages before the cut, then a call for more. */
TEST(x3_a_stream_cut_at_every_byte_gives_whole_messages_and_asks_for_more)
{
    enum { MESSAGES = 4 };
    uint8_t stream[256];
    size_t ends[MESSAGES], total = 0;
    for (int i = 0; i < MESSAGES; i++) {
        total += put_message(stream + total, (uint32_t)i, (size_t)i * 9);
        ends[i] = total;
    }
    for (size_t cut = 0; cut < total; cut++) {
        struct um_lbttcp_reader reader;
        struct um_lbmc_msg msg;
        uint8_t *buffer = malloc(cut > 0 ? cut : 1);
        uint32_t whole = 0, got = 0;
        memcpy(buffer, stream, cut);
        um_lbttcp_start(&reader, buffer, cut);
        um_lbttcp_received(&reader, cut);
        enum um_lbttcp_rc rc;
        while ((rc = um_lbttcp_next(&reader, &msg)) == UM_LBTTCP_MESSAGE) {
            got += msg.sqn == got;
        }
        free(buffer);
        while (whole < MESSAGES && ends[whole] <= cut) {
            whole++;
        }
        CHECK_EQ(rc, UM_LBTTCP_MORE);
        CHECK_EQ(got, whole);
    }
}

TEST(partial_message_that_fits_is_not_moved)
{
    static uint8_t buffer[CAPACITY];
    struct um_lbttcp_reader reader;
    struct um_lbmc_msg msg;
    um_lbttcp_start(&reader, buffer, sizeof buffer);
    size_t len = put_message(buffer, 1, 100);
    um_lbttcp_received(&reader, len - 1);
    CHECK_EQ(um_lbttcp_next(&reader, &msg), UM_LBTTCP_MORE);
    CHECK(!um_lbttcp_must_move(&reader));
    um_lbttcp_received(&reader, 1);
    CHECK_EQ(um_lbttcp_next(&reader, &msg), UM_LBTTCP_MESSAGE);
    CHECK(msg.payload.ptr == buffer + 12);
}

TEST(message_with_a_bad_chain_is_dropped_and_the_next_one_survives)
{
    static uint8_t buffer[CAPACITY];
    struct um_lbttcp_reader reader;
    struct um_lbmc_msg msg;
    um_lbttcp_start(&reader, buffer, sizeof buffer);
    size_t len = put_message(buffer, 1, 10);
    buffer[1] = UM_LBMC_HDR_FRAG; /* the payload is no FRAG header */
    len += put_message(buffer + len, 2, 3);
    um_lbttcp_received(&reader, len);
    CHECK_EQ(um_lbttcp_next(&reader, &msg), UM_LBTTCP_DROPPED);
    CHECK_EQ(um_lbttcp_next(&reader, &msg), UM_LBTTCP_MESSAGE);
    CHECK_EQ(msg.sqn, 2);
    CHECK_EQ(um_lbttcp_next(&reader, &msg), UM_LBTTCP_MORE);
}

TEST(stream_that_is_not_lbmc_is_corrupt)
{
    static const char *const streams[] = {"GET / HTTP/1.1\r\n", "\x16\x03\x01\x02\x00\x01", "UMZ1\x01\0\0\0"};
    for (size_t i = 0; i < 3; i++) {
        static uint8_t buffer[CAPACITY];
        struct um_lbttcp_reader reader;
        struct um_lbmc_msg msg;
        um_lbttcp_start(&reader, buffer, sizeof buffer);
        memcpy(buffer, streams[i], 6);
        um_lbttcp_received(&reader, 6);
        CHECK_EQ(um_lbttcp_next(&reader, &msg), UM_LBTTCP_CORRUPT);
    }
}
