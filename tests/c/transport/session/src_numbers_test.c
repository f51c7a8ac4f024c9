/* Sequence numbers that callers bring, and the one who keeps what was sent: a source session whose datagrams are
 * recorded instead of sent. */
#include "um_test.h"

#include "base/um_error.h"
#include "base/um_mem.h"
#include "net/um_loop.h"
#include "transport/session/um_src_numbers.h"
#include "transport/session/um_src_pool.h"
#include "um_test_net.h"
#include "um_test_loop.h"

#define DATAGRAM 1000

/* ---- what goes out, and what is kept ---- */

struct message {
    uint32_t sqn;
    size_t headers, len;
    uint8_t bytes[DATAGRAM];
};

static uint8_t sent[100 * DATAGRAM];
static size_t sent_len;
static struct message kept[64];
static int kept_count;

static void transmit(struct um_src_session *session, struct um_datagram *datagram)
{
    memcpy(sent + sent_len, datagram->data, datagram->len);
    sent_len += datagram->len;
    um_datagram_unref(session, datagram);
}

static void keep(struct um_src_keeper *keeper, struct um_src_stream *stream, uint32_t sqn, const uint8_t *message,
                 size_t headers, size_t len)
{
    struct message *to = &kept[kept_count++];
    *to = (struct message){.sqn = sqn, .headers = headers, .len = len};
    memcpy(to->bytes, message, len);
}

static struct um_src_keeper keeper = {.keep = keep};

/* ---- a transport ---- */

static void nothing(struct um_src_session *session)
{
}

static bool always(const struct um_src_session *session)
{
    return true;
}

static void announce(struct um_src_session *session, struct um_src_stream *stream)
{
}

static const struct um_src_session_ops session_ops = {.options = "transport_tcp_",
                                                      .datagram_option = "none",
                                                      .blocked_by = "nothing",
                                                      .transmit = transmit,
                                                      .wait = nothing,
                                                      .resume = nothing,
                                                      .interrupt = nothing,
                                                      .relieved = always,
                                                      .announce = announce,
                                                      .on_command = nothing};

static void place_of(const struct um_source_options *opts, struct um_src_place *place)
{
}

static uint64_t limit(const struct um_context_options *opts)
{
    return 1;
}

static struct um_src_session *open_source(struct um_src_transport *pool, const struct um_source_options *opts,
                                          const char *topic, struct um_src_place *place)
{
    const struct um_src_session_config config = {.datagram_max = DATAGRAM};
    struct um_src_session *session = um_calloc(1, sizeof *session);
    if (um_src_session_init(session, pool->env, &session_ops, &config, opts) != 0) {
        um_free(session);
        return NULL;
    }
    return session;
}

static void compare(const struct um_src_session *session, const struct um_source_options *opts, const char *topic)
{
}

static void close_source(struct um_src_session *session)
{
    um_src_session_fini(session);
    um_free(session);
}

static const struct um_src_transport_ops transport_ops = {
    .name = "test", .place = place_of, .limit = limit, .open = open_source, .compare = compare, .close = close_source};

/* ---- a source ---- */

struct world {
    struct um_context_options opts;
    struct um_source_options src_opts;
    struct um_transport_env env;
    struct um_src_transport *pool;
    struct um_src_stream stream;
};

static int attach_on_loop(void *arg)
{
    struct world *world = arg;
    return um_src_pool_attach(world->pool, &world->src_opts, "topic", &world->stream);
}

static int detach_on_loop(void *arg)
{
    um_src_stream_detach(arg);
    return 0;
}

static bool start(struct world *world)
{
    memset(world, 0, sizeof *world);
    if (um_context_options_resolve(NULL, &world->opts) != 0 ||
        um_source_options_resolve(NULL, NULL, 0, "topic", &world->src_opts) != 0) {
        return false;
    }
    world->env = (struct um_transport_env){.loop = um_loop_create(true, UM_LOOP_PEND, "test"), .opts = &world->opts};
    world->pool = um_src_pool_create(&transport_ops, &world->env);
    world->stream.tidx = 7;
    sent_len = 0;
    kept_count = 0;
    return um_loop_call(world->env.loop, attach_on_loop, world) == 0;
}

static void stop(struct world *world)
{
    um_loop_call(world->env.loop, detach_on_loop, &world->stream);
    um_src_pool_destroy(world->pool);
    um_loop_destroy(world->env.loop);
    um_options_clear(UM_SCOPE_CONTEXT, &world->opts);
    um_options_clear(UM_SCOPE_SOURCE, &world->src_opts);
}

static uint8_t payload[4 * DATAGRAM];

static int plain(struct world *world, size_t len)
{
    bool waited;
    return um_src_stream_send_plain(&world->stream, payload, len, 0, &waited);
}

/* The number that was given, or -1. */
static int64_t numbered(struct world *world, uint32_t number, size_t len, int flags)
{
    struct iovec iov = {payload, len};
    struct um_send send = {
        .iov = &iov, .iovcnt = 1, .len = len, .flags = flags, .brings_number = true, .number = number};
    return um_src_stream_send(&world->stream, &send) == 0 ? (int64_t)send.first_sqn : -1;
}

static uint32_t next(struct world *world)
{
    return um_src_number_next(&world->stream);
}

/* ---- numbers ---- */

TEST(a_stream_may_begin_with_any_number_and_goes_on_from_there)
{
    struct world world;
    CHECK(start(&world));
    CHECK_EQ(numbered(&world, 4000000000u, 10, 0), 4000000000u);
    CHECK_EQ(plain(&world, 10), 0);
    CHECK_EQ(next(&world), 4000000002u);
    CHECK_EQ(um_src_number_last(&world.stream), 4000000001u);
    stop(&world);
}

TEST(numbers_may_leave_some_out_but_never_go_back_or_too_far)
{
    struct world world;
    CHECK(start(&world));
    CHECK_EQ(plain(&world, 10), 0);
    CHECK_EQ(numbered(&world, 1, 10, 0), 1);
    CHECK_EQ(numbered(&world, 5, 10, 0), 5);
    CHECK_EQ(numbered(&world, 5, 10, 0), -1); /* again */
    CHECK_EQ(um_errnum(), UM_EINVAL);
    CHECK_EQ(numbered(&world, 2, 10, 0), -1);
    CHECK_EQ(numbered(&world, 6 + UM_SRC_NUMBERS_AHEAD + 1, 10, 0), -1);
    CHECK_EQ(um_errnum(), UM_EINVAL);
    CHECK_EQ(next(&world), 6); /* what was refused took none */
    CHECK_EQ(numbered(&world, 6 + UM_SRC_NUMBERS_AHEAD, 10, 0), 6 + UM_SRC_NUMBERS_AHEAD);
    stop(&world);
}

TEST(numbers_go_over_the_wrap)
{
    struct world world;
    CHECK(start(&world));
    CHECK_EQ(numbered(&world, UINT32_MAX, 10, 0), UINT32_MAX);
    CHECK_EQ(next(&world), 0);
    CHECK_EQ(numbered(&world, UINT32_MAX, 10, 0), -1); /* 0 begins no stream here */
    CHECK_EQ(numbered(&world, 3, 10, 0), 3);
    stop(&world);
}

TEST(a_number_that_was_not_used_is_free_again)
{
    struct world world;
    CHECK(start(&world));
    test_fail_start(0);
    CHECK_EQ(numbered(&world, 100, 10, LBM_MSG_START_BATCH), -1); /* held, for which there is no memory */
    CHECK(test_fail_stop());
    CHECK_EQ(next(&world), 0);
    CHECK_EQ(numbered(&world, 3000000000u, 10, 0), 3000000000u);
    stop(&world);
}

TEST(fragments_follow_the_number_of_the_first)
{
    struct world world;
    CHECK(start(&world));
    CHECK_EQ(numbered(&world, 50, 3 * DATAGRAM, 0), 50);
    CHECK(next(&world) > 53);
    stop(&world);
}

/* ---- who keeps what was sent ---- */

/* Everything that went out is what was kept, in this order. */
static bool kept_is_sent(void)
{
    size_t at = 0;
    for (int i = 0; i < kept_count; i++) {
        struct um_lbmc_msg msg;
        if (at + kept[i].len > sent_len || memcmp(sent + at, kept[i].bytes, kept[i].len) != 0 ||
            um_lbmc_decode(sent + at, sent_len - at, &msg) != UM_LBMC_OK || msg.sqn != kept[i].sqn ||
            msg.payload.len != kept[i].len - kept[i].headers) {
            return false;
        }
        at += kept[i].len;
    }
    return at == sent_len;
}

TEST(what_is_kept_is_what_goes_out_whatever_way_it_was_sent)
{
    struct world world;
    CHECK(start(&world));
    CHECK_EQ(um_src_stream_set_keeper(&world.stream, &keeper), 0);
    for (size_t i = 0; i < sizeof payload; i++) {
        payload[i] = (uint8_t)(i * 7);
    }
    CHECK_EQ(plain(&world, 100), 0);
    CHECK_EQ(plain(&world, 0), 0);
    CHECK_EQ(plain(&world, 3 * DATAGRAM), 0); /* fragments */
    int so_far = kept_count;
    CHECK(so_far > 5);
    CHECK_EQ(numbered(&world, 20, 100, LBM_MSG_START_BATCH), 20);
    CHECK_EQ(kept_count, so_far); /* held ones are kept when they go */
    CHECK_EQ(numbered(&world, 21, 100, LBM_MSG_END_BATCH), 21);
    struct um_send_run run = {.base = payload, .stride = 10, .length = 10, .count = 20};
    CHECK_EQ(um_src_stream_send_run(&world.stream, &run), 0);
    um_src_stream_flush(&world.stream);
    CHECK_EQ(kept_count, so_far + 22);
    CHECK_EQ(kept[kept_count - 1].sqn, 41);
    CHECK(kept_is_sent());
    stop(&world);
}

TEST(nothing_is_kept_before_and_after_there_is_a_keeper)
{
    struct world world;
    CHECK(start(&world));
    CHECK_EQ(plain(&world, 10), 0);
    CHECK_EQ(um_src_stream_set_keeper(&world.stream, &keeper), 0);
    CHECK_EQ(plain(&world, 10), 0);
    CHECK_EQ(um_src_stream_set_keeper(&world.stream, NULL), 0);
    CHECK_EQ(plain(&world, 10), 0);
    CHECK_EQ(kept_count, 1);
    CHECK_EQ(kept[0].sqn, 1);
    stop(&world);
}
