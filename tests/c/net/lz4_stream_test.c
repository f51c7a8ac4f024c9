/* The filter that compresses: against itself, against hand-made peers, and over an awkward stream as encryption is. */
#include "net/um_lz4_stream.h"

#include "base/um_error.h"
#include "base/um_random.h"
#include "um_test_awkward.h"
#include "um_test_streams.h"
#include "net/um_lz4_frame.h"

static struct um_lz4 *lz4;

static int cover(const struct um_stream_layer *layer, struct um_stream *stream, enum um_stream_role role)
{
    return um_lz4_cover(lz4, stream);
}

static int cover_over_awkward(const struct um_stream_layer *layer, struct um_stream *stream, enum um_stream_role role)
{
    return awkward_cover(layer, stream, role) == 0 ? um_lz4_cover(lz4, stream) : -1;
}

static const struct um_stream_layer layer = {.cover = cover};
static const struct um_stream_layer over_awkward = {.cover = cover_over_awkward};
static const uint8_t hello[UM_LZ4_HELLO_LEN] = {0x55, 0x4d, 0x5a, 0x31, 1, 0, 0, 0};

/* A stream under the filter, and the descriptor of its peer, which is in the hand of the test. */
struct end {
    struct um_stream stream;
    int fd, listener;
};

static bool end_start(struct end *end)
{
    struct in_addr loopback = {.s_addr = htonl(INADDR_LOOPBACK)}, any = {0};
    uint16_t port = 0;
    lz4 = um_lz4_create();
    end->listener = test_listen(&port);
    if (lz4 == NULL || um_stream_connect(&end->stream, any, loopback, port, &layer) != 0) {
        return false;
    }
    while ((end->fd = accept(end->listener, NULL, NULL)) < 0) {
    }
    fcntl(end->fd, F_SETFL, O_NONBLOCK);
    um_socket_set_nodelay(end->fd, true);
    um_socket_set_nodelay(end->stream.fd, true);
    return true;
}

static bool put(const struct end *end, const void *data, size_t len)
{
    const uint8_t *at = data, *stop = at + len;
    while (at < stop) {
        ssize_t n = send(end->fd, at, (size_t)(stop - at), MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) {
            return false;
        }
        at += n > 0 ? n : 0;
    }
    return true;
}

/* Exactly `len` bytes that the stream has written. */
static bool get(const struct end *end, void *data, size_t len)
{
    uint64_t give_up = um_clock_ns() + HANG_LIMIT_NS;
    for (size_t have = 0; have < len;) {
        ssize_t n = recv(end->fd, (uint8_t *)data + have, len - have, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN) || um_clock_ns() > give_up) {
            return false;
        }
        have += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static int open_on(struct um_stream *stream)
{
    uint64_t give_up = um_clock_ns() + HANG_LIMIT_NS;
    int rc = 0;
    while (rc == 0 && um_clock_ns() < give_up) {
        rc = um_stream_open(stream);
    }
    return rc;
}

static bool end_open(struct end *end)
{
    uint8_t theirs[UM_LZ4_HELLO_LEN];
    return end_start(end) && put(end, hello, sizeof hello) && open_on(&end->stream) == 1 &&
           get(end, theirs, sizeof theirs) && memcmp(theirs, hello, sizeof hello) == 0;
}

static void end_close(struct end *end)
{
    um_stream_close(&end->stream, UM_STREAM_NOW);
    close(end->fd);
    close(end->listener);
    um_lz4_destroy(lz4);
    lz4 = NULL;
}

/* The next bytes, however long they take; -1: the end. */
static ssize_t read_on(struct um_stream *stream, void *data, size_t len)
{
    uint64_t give_up = um_clock_ns() + HANG_LIMIT_NS;
    ssize_t n = 0;
    while (n == 0 && um_clock_ns() < give_up) {
        n = um_stream_read(stream, data, len);
    }
    return n;
}

static size_t put_stored(uint8_t *at, const void *data, size_t len)
{
    um_lz4_put_frame(at, len, len);
    memcpy(at + UM_LZ4_FRAME_HDR_LEN, data, len);
    return UM_LZ4_FRAME_HDR_LEN + len;
}

/* Bytes that LZ4 makes shorter, not all alike. */
static void fill_text(uint8_t *data, size_t len, struct um_rng *rng)
{
    static const char *const words[] = {"bid ", "ask ", "price=", "100.25 ", "size=", "7 ", "IBM ", "symbol "};
    for (size_t at = 0; at < len;) {
        const char *word = words[um_rng_range(rng, 0, 7)];
        size_t part = strlen(word) < len - at ? strlen(word) : len - at;
        memcpy(data + at, word, part);
        at += part;
    }
}

static void fill_noise(uint8_t *data, size_t len, struct um_rng *rng)
{
    for (size_t i = 0; i < len; i++) {
        data[i] = (uint8_t)um_rng_range(rng, 0, 255);
    }
}

/* Carries `data` from one side to the other in pieces and reads of any length. */
static bool carry_any(struct um_stream *from, struct um_stream *to, const uint8_t *data, size_t len, struct um_rng *rng)
{
    static uint8_t in[70000];
    size_t sent = 0, got = 0;
    uint64_t give_up = um_clock_ns() + HANG_LIMIT_NS;
    while (got < len && um_clock_ns() < give_up) {
        struct iovec iov[3];
        size_t at = sent, most = (size_t)um_rng_range(rng, 1, um_rng_range(rng, 0, 3) == 0 ? 66000 : 300);
        for (int i = 0; i < 3; i++) {
            size_t part = (size_t)um_rng_range(rng, 0, most);
            part = part < len - at ? part : len - at;
            iov[i] = (struct iovec){(void *)(data + at), part};
            at += part;
        }
        ssize_t n = um_stream_writev(from, iov, 3), room;
        if (n < 0 || (size_t)n > at - sent) {
            return false;
        }
        sent += (size_t)n;
        room = (ssize_t)um_rng_range(rng, 1, um_rng_range(rng, 0, 1) == 0 ? sizeof in : 200);
        if (um_stream_read(from, in, 1) != 0 || (n = um_stream_read(to, in, (size_t)room)) < 0 || n > room) {
            return false;
        }
        if ((size_t)n > sent - got || memcmp(in, data + got, (size_t)n) != 0) {
            return false;
        }
        got += (size_t)n;
    }
    return got == len;
}

static uint8_t big[1 << 20];

static void everything_is_carried_over(const struct um_stream_layer *under, size_t len, int rounds)
{
    struct um_rng rng;
    for (int seed = 0; seed < rounds; seed++) {
        struct pair pair;
        um_rng_seed(&rng, (uint64_t)seed);
        lz4 = um_lz4_create();
        CHECK(lz4 != NULL);
        CHECK(pair_start(&pair, under));
        CHECK(pair_open(&pair));
        fill_text(big, len / 2, &rng);
        fill_noise(big + len / 2, len - len / 2, &rng);
        CHECK(carry_any(&pair.a, &pair.b, big, len, &rng));
        CHECK(carry_any(&pair.b, &pair.a, big, len, &rng));
        CHECK(!pair.a.unsent && !pair.b.pending);
        pair_close(&pair);
        um_lz4_destroy(lz4);
    }
}

TEST(everything_is_carried_in_pieces_of_any_length)
{
    everything_is_carried_over(&layer, sizeof big, 3);
}

TEST(everything_is_carried_over_an_awkward_stream)
{
    everything_is_carried_over(&over_awkward, 12000, 2);
    CHECK_EQ(awkward_live, 0);
}

TEST(who_waits_by_the_rules_is_never_stuck)
{
    const struct um_stream_layer *const layers[] = {&layer, &over_awkward};
    for (int i = 0; i < 2; i++) {
        struct pair pair;
        lz4 = um_lz4_create();
        CHECK(pair_start(&pair, layers[i]));
        CHECK(pair_open(&pair));
        CHECK(carry(&pair, 5000));
        pair_close(&pair);
        um_lz4_destroy(lz4);
    }
}

/* ---- the hello ---- */

TEST(each_side_sends_its_hello_and_waits_for_the_other_ones)
{
    struct end end;
    uint8_t theirs[UM_LZ4_HELLO_LEN];
    CHECK(end_start(&end));
    CHECK(ready(&end.stream, UM_FD_WRITE));
    CHECK_EQ(um_stream_open(&end.stream), 0);
    CHECK(get(&end, theirs, sizeof theirs));
    CHECK_EQ(memcmp(theirs, hello, sizeof hello), 0);
    CHECK_EQ(um_stream_interest(&end.stream, UM_FD_READ | UM_FD_WRITE), UM_FD_READ);
    for (size_t i = 0; i < sizeof hello; i++) { /* in any pieces */
        CHECK_EQ(um_stream_open(&end.stream), 0);
        CHECK(put(&end, hello + i, 1));
        CHECK(poll(&(struct pollfd){.fd = end.stream.fd, .events = POLLIN}, 1, -1) == 1);
    }
    CHECK_EQ(um_stream_open(&end.stream), 1);
    CHECK(test_silent(end.fd));
    end_close(&end);
}

TEST(what_follows_the_hello_at_once_is_not_lost)
{
    struct end end;
    uint8_t bytes[64], got[8];
    CHECK(end_start(&end));
    memcpy(bytes, hello, sizeof hello);
    size_t len = sizeof hello + put_stored(bytes + sizeof hello, "at once", 7);
    CHECK(put(&end, bytes, len));
    CHECK_EQ(open_on(&end.stream), 1);
    CHECK_EQ(read_on(&end.stream, got, sizeof got), 7);
    CHECK_EQ(memcmp(got, "at once", 7), 0);
    end_close(&end);
}

TEST(another_hello_is_refused_at_its_first_wrong_byte)
{
    static const uint8_t wrong[][8] = {
        {0x16, 0x03, 0x01, 0x02}, {0x21, 0x00, 0x00, 0x0c}, {0x55, 0x4d, 0x5a, 0x32, 1}, {0x55, 0x4d, 0x5a, 0x31, 2}};
    static const size_t lens[] = {1, 1, 4, 5};
    for (size_t i = 0; i < 4; i++) {
        struct end end;
        CHECK(end_start(&end));
        CHECK(put(&end, wrong[i], lens[i]));
        CHECK_EQ(open_on(&end.stream), -1);
        CHECK_EQ(end.stream.end, UM_STREAM_FAILED);
        CHECK_CONTAINS(um_stream_reason(&end.stream), "Core-9565-38");
        end_close(&end);
    }
}

TEST(reserved_bytes_of_the_hello_are_left_to_later_versions)
{
    struct end end;
    CHECK(end_start(&end));
    CHECK(put(&end, "UMZ1\1abc", 8));
    CHECK_EQ(open_on(&end.stream), 1);
    end_close(&end);
}

TEST(end_during_the_hello_is_the_end_of_the_stream)
{
    struct end end;
    CHECK(end_start(&end));
    CHECK(put(&end, hello, 3));
    shutdown(end.fd, SHUT_WR);
    CHECK_EQ(open_on(&end.stream), -1);
    CHECK_EQ(end.stream.end, UM_STREAM_EOF);
    end_close(&end);
}

/* ---- what is written ---- */

TEST(each_piece_becomes_a_frame_of_its_own)
{
    struct end end;
    struct um_rng rng;
    struct um_lz4_frame frame;
    uint8_t hdr[UM_LZ4_FRAME_HDR_LEN], block[200];
    static uint8_t text[3000];
    CHECK(end_open(&end));
    um_rng_seed(&rng, 1);
    fill_text(text, sizeof text, &rng);
    struct iovec iov[4] = {{text, 100}, {NULL, 0}, {text + 100, 12}, {text + 112, 2888}};
    CHECK_EQ(um_stream_writev(&end.stream, iov, 4), sizeof text);
    size_t lens[3] = {100, 12, 2888};
    for (int i = 0; i < 3; i++) {
        CHECK(get(&end, hdr, sizeof hdr));
        CHECK(um_lz4_get_frame(hdr, sizeof hdr, &frame) == UM_LZ4_MORE);
        CHECK_EQ(frame.orig_len, lens[i]);
        CHECK(i == 1 ? um_lz4_is_stored(&frame) : frame.comp_len < frame.orig_len);
        for (size_t left = frame.comp_len; left > 0;) {
            size_t part = left < sizeof block ? left : sizeof block;
            CHECK(get(&end, block, part));
            left -= part;
        }
    }
    CHECK(test_silent(end.fd));
    end_close(&end);
}

TEST(what_does_not_become_smaller_is_stored)
{
    struct end end;
    struct um_rng rng;
    static uint8_t noise[UM_LZ4_BLOCK_MAX], got[UM_LZ4_FRAME_MAX];
    static const size_t lens[] = {1, 12, 13, 700, 65535};
    CHECK(end_open(&end));
    um_rng_seed(&rng, 2);
    fill_noise(noise, sizeof noise, &rng);
    for (size_t i = 0; i < 5; i++) {
        CHECK_EQ(um_stream_write(&end.stream, noise, lens[i]), lens[i]);
        uint64_t give_up = um_clock_ns() + HANG_LIMIT_NS;
        for (size_t have = 0; have < UM_LZ4_FRAME_HDR_LEN + lens[i] && um_clock_ns() < give_up;) {
            ssize_t n = recv(end.fd, got + have, sizeof got - have, 0);
            have += n > 0 ? (size_t)n : 0;
            CHECK(um_stream_flush(&end.stream));
        }
        CHECK_EQ(um_get16(got), lens[i]);
        CHECK_EQ(um_get16(got + 2), lens[i]);
        CHECK_EQ(memcmp(got + UM_LZ4_FRAME_HDR_LEN, noise, lens[i]), 0);
    }
    end_close(&end);
}

TEST(a_stream_that_takes_no_more_holds_one_buffer_back_and_says_so)
{
    struct pair pair;
    struct um_rng rng;
    static uint8_t in[65536];
    size_t sent = 0, got = 0;
    ssize_t n;
    lz4 = um_lz4_create();
    CHECK(pair_start(&pair, &layer));
    CHECK(pair_open(&pair));
    um_rng_seed(&rng, 3);
    fill_noise(big, 50000, &rng);
    while ((n = um_stream_write(&pair.a, big, 50000)) > 0) {
        CHECK_EQ(n, 50000); /* a piece is taken whole or not at all */
        sent += (size_t)n;
    }
    CHECK_EQ(n, 0);
    CHECK(pair.a.unsent);
    CHECK_EQ(um_stream_interest(&pair.a, 0), UM_FD_WRITE);
    CHECK_EQ(um_stream_write(&pair.a, big, 1), 0);
    uint64_t give_up = um_clock_ns() + HANG_LIMIT_NS;
    while (got < sent && um_clock_ns() < give_up) {
        CHECK((n = um_stream_read(&pair.b, in, sizeof in)) >= 0);
        for (ssize_t i = 0; i < n; i++, got++) {
            CHECK_EQ(in[i], big[got % 50000]);
        }
        CHECK(um_stream_flush(&pair.a));
    }
    CHECK_EQ(got, sent);
    CHECK(!pair.a.unsent);
    pair_close(&pair);
    um_lz4_destroy(lz4);
}

TEST(closing_moves_on_what_is_held_back_as_far_as_that_does_not_wait)
{
    struct pair pair;
    static uint8_t in[4096];
    size_t sent = 0, got = 0;
    ssize_t n;
    lz4 = um_lz4_create();
    CHECK(pair_start(&pair, &layer));
    CHECK(pair_open(&pair));
    struct um_rng rng;
    um_rng_seed(&rng, 4);
    fill_noise(big, 3000, &rng);
    while ((n = um_stream_write(&pair.a, big, 3000)) > 0) {
        sent += (size_t)n;
    }
    uint64_t give_up = um_clock_ns() + HANG_LIMIT_NS;
    /* Room for what is held, without anybody having asked for it. */
    while (!ready(&pair.a, UM_FD_WRITE) && um_clock_ns() < give_up) {
        CHECK((n = um_stream_read(&pair.b, in, sizeof in)) >= 0);
        got += (size_t)n;
    }
    CHECK(pair.a.unsent);
    um_stream_close(&pair.a, UM_STREAM_NOW);
    while ((n = read_on(&pair.b, in, sizeof in)) > 0) {
        got += (size_t)n;
    }
    CHECK_EQ(got, sent);
    CHECK_EQ(pair.b.end, UM_STREAM_EOF);
    pair_close(&pair);
    um_lz4_destroy(lz4);
}

/* ---- what is read ---- */

TEST(frames_are_read_in_splits_of_any_length)
{
    static uint8_t wire[300000], text[400000], in[70000];
    for (int seed = 0; seed < 5; seed++) {
        struct end writer, reader;
        struct um_rng rng;
        size_t made = 0, len = 0, put_bytes = 0, got = 0;
        um_rng_seed(&rng, (uint64_t)seed);
        CHECK(end_open(&writer));
        for (int i = 0; i < 12; i++) { /* what the filter makes of pieces of any length */
            size_t part = (size_t)um_rng_range(&rng, 1, i % 4 == 0 ? 65535 : 2000);
            (i % 3 == 0 ? fill_noise : fill_text)(text + len, part < 20000 ? part : 20000, &rng);
            CHECK_EQ(um_stream_write(&writer.stream, text + len, part), part);
            uint8_t *at = wire + made;
            CHECK(get(&writer, at, UM_LZ4_FRAME_HDR_LEN) && get(&writer, at + 4, um_get16(at + 2)));
            made += UM_LZ4_FRAME_HDR_LEN + um_get16(at + 2);
            len += part;
        }
        end_close(&writer);
        CHECK(end_open(&reader));
        while (got < len) {
            size_t part = (size_t)um_rng_range(&rng, 0, um_rng_range(&rng, 0, 2) == 0 ? 40000 : 50);
            part = part < made - put_bytes ? part : made - put_bytes;
            ssize_t n = part > 0 ? send(reader.fd, wire + put_bytes, part, MSG_NOSIGNAL) : 0;
            put_bytes += n > 0 ? (size_t)n : 0;
            size_t room = (size_t)um_rng_range(&rng, 1, um_rng_range(&rng, 0, 1) == 0 ? sizeof in : 100);
            CHECK((n = um_stream_read(&reader.stream, in, room)) >= 0);
            CHECK((size_t)n <= room && (size_t)n <= len - got);
            CHECK_EQ(memcmp(in, text + got, (size_t)n), 0);
            got += (size_t)n;
        }
        CHECK(!reader.stream.pending);
        end_close(&reader);
    }
}

TEST(more_is_pending_while_a_frame_lies_there_that_was_not_read_whole)
{
    struct end end;
    uint8_t bytes[64], got[16];
    CHECK(end_open(&end));
    size_t len = put_stored(bytes, "first", 5);
    len += put_stored(bytes + len, "second", 6);
    CHECK(put(&end, bytes, len + 2)); /* and the beginning of a third */
    CHECK_EQ(read_on(&end.stream, got, 7), 5);
    CHECK(end.stream.pending);
    CHECK_EQ(um_stream_read(&end.stream, got, 4), 4);
    CHECK(end.stream.pending);
    CHECK_EQ(um_stream_read(&end.stream, got + 4, 4), 2);
    CHECK_EQ(memcmp(got, "second", 6), 0);
    CHECK(!end.stream.pending);
    CHECK_EQ(um_stream_read(&end.stream, got, 4), 0);
    end_close(&end);
}

/* Good bytes before it are handed out first. */
static void wrong_frame_ends_the_stream(const uint8_t *frame, size_t len)
{
    struct end end;
    uint8_t bytes[300];
    static uint8_t got[70000];
    CHECK(end_open(&end));
    size_t good = put_stored(bytes, "good", 4);
    memcpy(bytes + good, frame, len);
    CHECK(put(&end, bytes, good + len));
    CHECK_EQ(read_on(&end.stream, got, sizeof got), 4);
    CHECK_EQ(read_on(&end.stream, got, sizeof got), -1);
    CHECK_EQ(end.stream.end, UM_STREAM_FAILED);
    CHECK_CONTAINS(um_stream_reason(&end.stream), "CoreApi-9565-23");
    end_close(&end);
}

TEST(lengths_that_cannot_be_end_the_stream)
{
    wrong_frame_ends_the_stream((const uint8_t[]){0, 0, 0, 0}, 4);
    wrong_frame_ends_the_stream((const uint8_t[]){0, 9, 0, 0}, 4);
    wrong_frame_ends_the_stream((const uint8_t[]){0, 9, 0, 10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 14);
    wrong_frame_ends_the_stream((const uint8_t[]){0, 0, 0, 1, 7}, 5);
}

/* Blocks of LZ4 by hand: 0x1f 'a' 1 0, then length bytes: one 'a', repeated. */
TEST(blocks_that_expand_to_another_length_end_the_stream)
{
    static const uint8_t block[] = {0x1f, 'a', 1, 0, 255, 255, 100, 0x50, 'a', 'a', 'a', 'a', 'a'};
    enum { EXPANDED = 1 + 4 + 15 + 255 + 255 + 100 + 5 };
    uint8_t frame[UM_LZ4_FRAME_HDR_LEN + sizeof block];
    struct end end;
    uint8_t got[1000];
    memcpy(frame + UM_LZ4_FRAME_HDR_LEN, block, sizeof block);
    um_lz4_put_frame(frame, EXPANDED, sizeof block);
    CHECK(end_open(&end));
    CHECK(put(&end, frame, sizeof frame));
    CHECK_EQ(read_on(&end.stream, got, sizeof got), EXPANDED);
    CHECK(got[0] == 'a' && memcmp(got, got + 1, EXPANDED - 1) == 0);
    end_close(&end);
    static const uint16_t lies[] = {sizeof block + 1, EXPANDED - 1, EXPANDED + 1, 65535};
    for (int i = 0; i < 4; i++) { /* a bomb is one that says less than it holds */
        um_lz4_put_frame(frame, lies[i], sizeof block);
        wrong_frame_ends_the_stream(frame, sizeof frame);
    }
}

TEST(garbage_in_blocks_does_no_harm)
{
    struct um_rng rng;
    um_rng_seed(&rng, 5);
    for (int i = 0; i < 100; i++) {
        struct end end;
        static uint8_t got[1000];
        uint8_t bytes[64];
        CHECK(end_open(&end));
        fill_noise(bytes, sizeof bytes, &rng);
        um_lz4_put_frame(bytes, (size_t)um_rng_range(&rng, 1, 900), (size_t)um_rng_range(&rng, 1, 60));
        CHECK(put(&end, bytes, sizeof bytes));
        shutdown(end.fd, SHUT_WR);
        ssize_t n;
        while ((n = read_on(&end.stream, got, (size_t)um_rng_range(&rng, 1, sizeof got))) > 0) {
        }
        CHECK_EQ(n, -1);
        CHECK(end.stream.end != UM_STREAM_LIVES);
        end_close(&end);
    }
}

TEST(end_within_a_frame_is_not_an_end_in_order)
{
    for (size_t len = 0; len <= 9; len++) {
        struct end end;
        uint8_t bytes[16], got[16];
        put_stored(bytes, "12345", 5);
        CHECK(end_open(&end));
        CHECK(put(&end, bytes, len));
        shutdown(end.fd, SHUT_WR);
        CHECK_EQ(read_on(&end.stream, got, sizeof got), len == 9 ? 5 : -1);
        CHECK_EQ(read_on(&end.stream, got, sizeof got), -1);
        CHECK_EQ(end.stream.end, len == 0 || len == 9 ? UM_STREAM_EOF : UM_STREAM_FAILED);
        end_close(&end);
    }
}

/* ---- memory ---- */

static size_t most_asked; /* for at one time */
static int asked;

static bool see_size(size_t size)
{
    most_asked = size > most_asked ? size : most_asked;
    asked++;
    return false;
}

/* A stream that expands all it is given takes the same two buffers again and again. */
TEST(memory_does_not_grow_with_what_a_peer_sends)
{
    struct end end;
    static uint8_t got[100];
    uint8_t frame[300] = {0}, *block = frame + UM_LZ4_FRAME_HDR_LEN;
    size_t expanded = 0;
    const size_t orig = 1 + 4 + 15 + 255 * 255 + 5;
    CHECK(end_open(&end));
    memcpy(block, (const uint8_t[]){0x1f, 'a', 1, 0}, 4);
    memset(block + 4, 255, 255);
    memcpy(block + 4 + 255, (const uint8_t[]){0, 0x50, 'a', 'a', 'a', 'a', 'a'}, 7);
    um_lz4_put_frame(frame, orig, 4 + 255 + 7);
    most_asked = 0;
    asked = 0;
    um_mem_set_fail_hook(see_size);
    for (int i = 0; i < 200; i++) {
        bool sent = put(&end, frame, UM_LZ4_FRAME_HDR_LEN + 4 + 255 + 7);
        while (sent && expanded < (size_t)(i + 1) * orig) {
            ssize_t n = um_stream_read(&end.stream, got, sizeof got);
            expanded += n > 0 ? (size_t)n : 0;
            if (n < 0) {
                break;
            }
        }
    }
    um_mem_set_fail_hook(NULL);
    CHECK_EQ(expanded, 200 * orig);
    CHECK(most_asked < 2 * UM_LZ4_FRAME_MAX);
    CHECK(asked <= 2);
    end_close(&end);
}

TEST(want_of_memory_ends_the_stream_and_leaves_nothing_behind)
{
    for (long n = 0;; n++) {
        struct end end;
        uint8_t bytes[1024] = {0}, got[8];
        ssize_t rc;
        CHECK(end_open(&end));
        CHECK(put(&end, bytes, put_stored(bytes, "longer than the room", 20)));
        test_fail_start(n);
        if ((rc = um_stream_write(&end.stream, bytes, sizeof bytes)) > 0) {
            rc = read_on(&end.stream, got, sizeof got);
        }
        bool reached = test_fail_stop();
        CHECK_EQ(rc, reached ? -1 : (ssize_t)sizeof got);
        CHECK(!reached || end.stream.err == ENOMEM);
        end_close(&end);
        if (!reached) {
            CHECK(n > 0);
            break;
        }
    }
}

TEST(want_of_memory_at_the_beginning_is_told)
{
    for (long n = 0; n < 2; n++) {
        test_fail_start(n);
        lz4 = um_lz4_create();
        CHECK(test_fail_stop());
        CHECK(lz4 == NULL);
        CHECK_CONTAINS(um_errmsg(), "out of memory");
    }
    struct um_stream stream;
    struct in_addr loopback = {.s_addr = htonl(INADDR_LOOPBACK)}, any = {0};
    uint16_t port = 0;
    int listener = test_listen(&port);
    lz4 = um_lz4_create();
    test_fail_start(0);
    int rc = um_stream_connect(&stream, any, loopback, port, &layer);
    CHECK(test_fail_stop());
    CHECK_EQ(rc, -1);
    close(listener);
    um_lz4_destroy(lz4);
}
