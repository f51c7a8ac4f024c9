/* RSocket framing: every example frame is produced byte for byte from its fields, the stream reader gives whole frames
 * whatever the segments, and its buffer grows only with what has come. */
#include "base/um_random.h"
#include "lbmsrs_golden.h"
#include "um_test.h"
#include "wire/um_rsocket.h"

struct whole {
    const uint8_t *bytes;
    size_t len;
};

#define WHOLE(name)                                                                                                    \
    {                                                                                                                  \
        name, sizeof(name)                                                                                             \
    }

static const struct whole examples[] = {WHOLE(s1),  WHOLE(s2),    WHOLE(s3),    WHOLE(s4),   WHOLE(s5),
                                        WHOLE(s6),  WHOLE(s7),    WHOLE(s8),    WHOLE(s9_1), WHOLE(s9_2),
                                        WHOLE(s10), WHOLE(s11),   WHOLE(s12),   WHOLE(s13),  WHOLE(s14),
                                        WHOLE(s15), WHOLE(s16_1), WHOLE(s16_2), WHOLE(s16_3)};
#define EXAMPLES (sizeof(examples) / sizeof(examples[0]))

static bool decode(struct whole whole, struct um_rsocket_frame *frame)
{
    return um_rsocket_decode(whole.bytes + UM_RSOCKET_PREFIX_LEN, whole.len - UM_RSOCKET_PREFIX_LEN, frame);
}

TEST(every_example_decodes_and_encodes_to_the_same_bytes)
{
    for (size_t i = 0; i < EXAMPLES; i++) {
        struct um_rsocket_frame frame;
        uint8_t out[256];
        CHECK(decode(examples[i], &frame));
        CHECK_EQ(um_rsocket_len(&frame), examples[i].len);
        CHECK_EQ(um_rsocket_encode(&frame, out, sizeof(out)), examples[i].len);
        CHECK(memcmp(out, examples[i].bytes, examples[i].len) == 0);
        CHECK_EQ(um_rsocket_encode(&frame, out, examples[i].len - 1), 0);
    }
}

TEST(setup_is_built_from_its_intervals_and_read_back)
{
    struct um_rsocket_frame frame, back;
    uint8_t out[128];
    um_rsocket_setup(&frame, 5000, 20000);
    CHECK_EQ(um_rsocket_encode(&frame, out, sizeof(out)), sizeof(s1));
    CHECK(memcmp(out, s1, sizeof(s1)) == 0);
    CHECK(decode((struct whole)WHOLE(s1), &back));
    CHECK_EQ(back.type, UM_RSOCKET_SETUP);
    CHECK_EQ(back.major, 1);
    CHECK_EQ(back.keepalive_ms, 5000);
    CHECK_EQ(back.lifetime_ms, 20000);
    CHECK_EQ(back.data_mime.len, 24);
}

TEST(frames_are_built_from_their_fields)
{
    struct um_rsocket_frame keepalive = {.type = UM_RSOCKET_KEEPALIVE, .flags = UM_RSOCKET_RESPOND};
    struct um_rsocket_frame more = {.type = UM_RSOCKET_REQUEST_N, .stream = 3, .request_n = 64};
    struct um_rsocket_frame error = {.type = UM_RSOCKET_ERROR, .error = UM_RSOCKET_REJECTED_SETUP};
    struct um_rsocket_frame cancel = {.type = UM_RSOCKET_CANCEL, .stream = 3};
    struct um_rsocket_frame end = {.type = UM_RSOCKET_PAYLOAD, .stream = 3, .flags = UM_RSOCKET_COMPLETE};
    uint8_t out[64];
    CHECK_EQ(um_rsocket_encode(&keepalive, out, sizeof(out)), sizeof(s9_1));
    CHECK(memcmp(out, s9_1, sizeof(s9_1)) == 0);
    CHECK_EQ(um_rsocket_encode(&more, out, sizeof(out)), sizeof(s8));
    CHECK(memcmp(out, s8, sizeof(s8)) == 0);
    CHECK_EQ(um_rsocket_encode(&error, out, sizeof(out)), sizeof(s16_1));
    CHECK(memcmp(out, s16_1, sizeof(s16_1)) == 0);
    CHECK_EQ(um_rsocket_encode(&cancel, out, sizeof(out)), sizeof(s16_2));
    CHECK(memcmp(out, s16_2, sizeof(s16_2)) == 0);
    CHECK_EQ(um_rsocket_encode(&end, out, sizeof(out)), sizeof(s16_3));
    CHECK(memcmp(out, s16_3, sizeof(s16_3)) == 0);
    um_rsocket_put_head(out, 5, UM_RSOCKET_REQUEST_FNF, 0, sizeof(s5) - UM_RSOCKET_HEAD_LEN);
    CHECK(memcmp(out, s5, UM_RSOCKET_HEAD_LEN) == 0);
}

TEST(metadata_before_data_survives_a_round_trip)
{
    struct um_rsocket_frame frame = {.type = UM_RSOCKET_REQUEST_FNF,
                                     .stream = 7,
                                     .flags = UM_RSOCKET_METADATA,
                                     .metadata = {(const uint8_t *)"meta", 4},
                                     .data = {(const uint8_t *)"data!", 5}};
    struct um_rsocket_frame back;
    uint8_t out[64];
    size_t len = um_rsocket_encode(&frame, out, sizeof(out));
    CHECK_EQ(len, 9 + 3 + 4 + 5);
    CHECK(decode((struct whole){out, len}, &back));
    CHECK_EQ(back.metadata.len, 4);
    CHECK(memcmp(back.metadata.ptr, "meta", 4) == 0);
    CHECK_EQ(back.data.len, 5);
    CHECK(memcmp(back.data.ptr, "data!", 5) == 0);
}

/* A copy of exact size: the address sanitizer sees a byte read beyond it. */
static bool decodes(const uint8_t *body, size_t len)
{
    struct um_rsocket_frame frame;
    uint8_t *copy = malloc(len > 0 ? len : 1);
    memcpy(copy, body, len);
    bool ok = um_rsocket_decode(copy, len, &frame);
    free(copy);
    return ok;
}

TEST(x3_frames_shorter_than_their_fields_are_refused)
{
    static const struct whole fixed[] = {WHOLE(s1), WHOLE(s8), WHOLE(s9_1), WHOLE(s16_1)};
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        for (size_t len = 0; len < fixed[i].len - UM_RSOCKET_PREFIX_LEN; len++) {
            CHECK(!decodes(fixed[i].bytes + UM_RSOCKET_PREFIX_LEN, len));
        }
    }
    for (size_t len = 0; len < 6; len++) {
        CHECK(!decodes(s5 + UM_RSOCKET_PREFIX_LEN, len));
    }
}

TEST(x3_impossible_frames_are_refused)
{
    static const struct {
        const char *what;
        uint8_t body[16];
        size_t len;
    } bad[] = {
        {"reserved bit of the stream", {0x80, 0, 0, 1, 0x14, 0}, 6},
        {"SETUP with a stream", {0, 0, 0, 1, 0x04, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0}, 16},
        {"fire and forget without a stream", {0, 0, 0, 0, 0x14, 0}, 6},
        {"KEEPALIVE with a stream", {0, 0, 0, 1, 0x0c, 0x80, 0, 0, 0, 0, 0, 0, 0, 0}, 14},
        {"request of no frames", {0, 0, 0, 3, 0x20, 0, 0, 0, 0, 0}, 10},
        {"request of too many frames", {0, 0, 0, 3, 0x20, 0, 0x80, 0, 0, 0}, 10},
        {"metadata beyond the frame", {0, 0, 0, 5, 0x15, 0, 0, 0, 2, 1}, 10},
        {"METADATA_PUSH without its flag", {0, 0, 0, 0, 0x30, 0, 1}, 7},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (decodes(bad[i].body, bad[i].len)) {
            TEST_FAIL("decoded: %s", bad[i].what);
        }
    }
}

TEST(x3_frames_come_out_whole_from_random_segments)
{
    struct um_rng rng;
    um_rng_seed(&rng, 11);
    enum { COUNT = 5000 };
    uint8_t *stream = malloc(COUNT * sizeof(s5));
    size_t total = 0;
    for (int i = 0; i < COUNT; i++) {
        struct whole next = examples[um_rng_range(&rng, 0, EXAMPLES - 1)];
        memcpy(stream + total, next.bytes, next.len);
        total += next.len;
    }
    for (int round = 0; round < 3; round++) {
        struct um_rsocket_reader reader;
        struct um_rsocket_frame frame;
        size_t at = 0, expected = 0, frames = 0;
        bool same = true;
        um_rsocket_reader_init(&reader, 4096);
        while (at < total) {
            size_t step = round == 0 ? 1 : (size_t)um_rng_range(&rng, 1, round == 1 ? 40 : 5000);
            step = step < total - at ? step : total - at;
            uint8_t *segment = malloc(step);
            memcpy(segment, stream + at, step);
            struct um_slice input = {segment, step};
            while (um_rsocket_read(&reader, &input, &frame) == UM_RSOCKET_FRAME) {
                uint8_t out[256];
                size_t len = um_rsocket_encode(&frame, out, sizeof(out));
                same = same && len > 0 && memcmp(out, stream + expected, len) == 0;
                expected += len;
                frames++;
            }
            same = same && input.len == 0 && reader.capacity <= 512;
            free(segment);
            at += step;
        }
        um_rsocket_reader_free(&reader);
        CHECK(same);
        CHECK_EQ(frames, COUNT);
        CHECK_EQ(expected, total);
    }
    free(stream);
}

TEST(x3_announcing_a_long_frame_costs_no_memory_until_it_comes)
{
    static const uint8_t announced[] = {0x0f, 0xff, 0xff, 0, 0, 0, 5, 0x14, 0};
    static const uint8_t filler[1000];
    struct um_rsocket_reader reader;
    struct um_rsocket_frame frame;
    struct um_slice input = {announced, sizeof(announced)};
    um_rsocket_reader_init(&reader, UM_RSOCKET_FRAME_MAX);
    CHECK_EQ(um_rsocket_read(&reader, &input, &frame), UM_RSOCKET_MORE);
    CHECK(reader.capacity <= 256);
    for (int i = 0; i < 100; i++) {
        input = (struct um_slice){filler, sizeof(filler)};
        CHECK_EQ(um_rsocket_read(&reader, &input, &frame), UM_RSOCKET_MORE);
    }
    CHECK(reader.capacity <= 2 * (100 * sizeof(filler) + sizeof(announced)));
    um_rsocket_reader_free(&reader);
}

TEST(x3_a_frame_beyond_the_bound_ends_the_stream_from_its_first_bytes)
{
    static const uint8_t prefix[] = {0x00, 0x10, 0x01};
    struct um_rsocket_reader reader;
    struct um_rsocket_frame frame;
    struct um_slice input = {prefix, sizeof(prefix)};
    um_rsocket_reader_init(&reader, 4096);
    CHECK_EQ(um_rsocket_read(&reader, &input, &frame), UM_RSOCKET_TOO_LONG);
    um_rsocket_reader_free(&reader);
    for (size_t i = 0; i < sizeof(prefix); i++) {
        input = (struct um_slice){prefix + i, 1};
        CHECK_EQ(um_rsocket_read(&reader, &input, &frame), i < 2 ? UM_RSOCKET_MORE : UM_RSOCKET_TOO_LONG);
    }
    um_rsocket_reader_free(&reader);
}

TEST(x3_what_is_no_frame_is_corrupt_also_when_it_comes_in_pieces)
{
    static const uint8_t junk[] = {0, 0, 6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    struct um_rsocket_reader reader;
    struct um_rsocket_frame frame;
    struct um_slice input = {junk, sizeof(junk)};
    um_rsocket_reader_init(&reader, 4096);
    CHECK_EQ(um_rsocket_read(&reader, &input, &frame), UM_RSOCKET_CORRUPT);
    um_rsocket_reader_free(&reader);
    enum um_rsocket_rc rc = UM_RSOCKET_MORE;
    for (size_t i = 0; i < sizeof(junk); i++) {
        input = (struct um_slice){junk + i, 1};
        CHECK_EQ(rc, UM_RSOCKET_MORE);
        rc = um_rsocket_read(&reader, &input, &frame);
    }
    um_rsocket_reader_free(&reader);
    CHECK_EQ(rc, UM_RSOCKET_CORRUPT);
}
