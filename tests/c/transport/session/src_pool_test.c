/* Which session of a pool a topic goes to, by the rules that are the same for every transport: a transport that is
 * none, whose sessions are made at once and send nothing. */
#include "um_test.h"

#include "base/um_error.h"
#include "base/um_mem.h"
#include "net/um_loop.h"
#include "transport/session/um_src_pool.h"
#include "um_test_net.h"
#include "um_test_loop.h"

#define LOW 100
#define HIGH 102

/* ---- a transport ---- */

static uint64_t most = HIGH - LOW + 1;
static bool named_count, named_are_shared, ports_are_taken;
static int opened, closed, compared, told;

static void transmit(struct um_src_session *session, struct um_datagram *datagram)
{
    um_datagram_unref(session, datagram);
}

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

static void stats(struct um_src_session *session, lbm_src_transport_stats_t *out)
{
    snprintf(out->source, sizeof out->source, "%u", session->place.id);
}

static void stats_reset(struct um_src_session *session)
{
    told++;
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
                                                      .on_command = nothing,
                                                      .stats = stats,
                                                      .stats_reset = stats_reset};

/* The option in which the tests name sessions, and the one that tells pools apart. */
static void place_of(const struct um_source_options *opts, struct um_src_place *place)
{
    place->id = opts->transport_lbtsmx_id;
    place->named = place->id != 0;
    place->part = opts->transport_lbtrm_destination_port;
}

static uint64_t limit(const struct um_context_options *opts)
{
    return most;
}

static struct um_src_session *open_source(struct um_src_transport *pool, const struct um_source_options *opts,
                                          const char *topic, struct um_src_place *place)
{
    if (!place->named && !um_src_pool_free_id(pool, place->part, LOW, HIGH, &place->id)) {
        um_error(UM_EINVAL, "test", "no free id");
        return NULL;
    }
    if (place->named) {
        place->counted = named_count;
        place->shared = named_are_shared;
    }
    if (ports_are_taken) {
        place->alias = place->id;
        place->id += 1000;
    }
    const struct um_src_session_config config = {.datagram_max = 8192};
    struct um_src_session *session = um_calloc(1, sizeof *session);
    if (um_src_session_init(session, pool->env, &session_ops, &config, opts) != 0) {
        um_free(session);
        return NULL;
    }
    opened++;
    return session;
}

static void compare(const struct um_src_session *session, const struct um_source_options *opts, const char *topic)
{
    compared++;
}

static void close_source(struct um_src_session *session)
{
    closed++;
    um_src_session_fini(session);
    um_free(session);
}

static int accepts(const struct um_source_options *opts)
{
    return opts->transport_lbtsmx_id == 666 ? um_error(UM_EINVAL, "test", "no") : 0;
}

static const struct um_src_transport_ops transport_ops = {.name = "test",
                                                          .accepts = accepts,
                                                          .place = place_of,
                                                          .limit = limit,
                                                          .open = open_source,
                                                          .compare = compare,
                                                          .close = close_source};

/* ---- a context ---- */

struct world {
    struct um_context_options opts;
    struct um_source_options src_opts;
    struct um_transport_env env;
    struct um_src_transport *pool;
};

static void start(struct world *world)
{
    memset(world, 0, sizeof *world);
    if (um_context_options_resolve(NULL, &world->opts) != 0 ||
        um_source_options_resolve(NULL, NULL, 0, "topic", &world->src_opts) != 0) {
        abort();
    }
    world->src_opts.transport_lbtrm_destination_port = 0;
    world->env = (struct um_transport_env){.loop = um_loop_create(true, UM_LOOP_PEND, "test"), .opts = &world->opts};
    world->pool = um_src_pool_create(&transport_ops, &world->env);
    opened = closed = compared = told = 0;
    most = HIGH - LOW + 1;
    named_count = named_are_shared = ports_are_taken = false;
}

static void stop(struct world *world)
{
    um_src_pool_destroy(world->pool);
    um_loop_destroy(world->env.loop);
    um_options_clear(UM_SCOPE_CONTEXT, &world->opts);
    um_options_clear(UM_SCOPE_SOURCE, &world->src_opts);
}

struct call {
    struct world *world;
    struct um_src_stream *stream;
    int rc;
};

static int attach_on_loop(void *arg)
{
    struct call *call = arg;
    memset(call->stream, 0, sizeof *call->stream);
    return um_src_pool_attach(call->world->pool, &call->world->src_opts, "topic", call->stream);
}

static int detach_on_loop(void *arg)
{
    um_src_stream_detach(arg);
    return 0;
}

/* The id of the session, 0: refused. `name` 0: none is named. */
static uint32_t source(struct world *world, struct um_src_stream *stream, uint16_t name)
{
    struct call call = {world, stream, 0};
    world->src_opts.transport_lbtsmx_id = name;
    return um_loop_call(world->env.loop, attach_on_loop, &call) == 0 ? stream->session->place.id : 0;
}

static void leave(struct world *world, struct um_src_stream *stream)
{
    um_loop_call(world->env.loop, detach_on_loop, stream);
}

/* ---- the rules ---- */

TEST(sessions_are_made_at_the_lowest_free_ids_and_then_shared_in_turn)
{
    struct world world;
    struct um_src_stream streams[7];
    start(&world);
    static const uint32_t expected[] = {100, 101, 102, 100, 101, 102, 100};
    for (int i = 0; i < 7; i++) {
        CHECK_EQ(source(&world, &streams[i], 0), expected[i]);
    }
    CHECK_EQ(opened, 3);
    CHECK_EQ(compared, 4); /* with what the first source has decided */
    for (int i = 0; i < 7; i++) {
        leave(&world, &streams[i]);
    }
    CHECK_EQ(closed, 3);
    stop(&world);
    CHECK_EQ(closed, 3);
}

TEST(a_session_that_ended_gives_its_id_and_its_turn_back)
{
    struct world world;
    struct um_src_stream streams[6];
    start(&world);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(source(&world, &streams[i], 0), LOW + i);
    }
    CHECK_EQ(source(&world, &streams[3], 0), 100); /* the turn is at 101 */
    leave(&world, &streams[1]);
    CHECK_EQ(closed, 1);
    CHECK_EQ(source(&world, &streams[1], 0), 101); /* made anew, the youngest */
    CHECK_EQ(source(&world, &streams[4], 0), 102);
    CHECK_EQ(source(&world, &streams[5], 0), 101);
    for (int i = 0; i < 6; i++) {
        leave(&world, &streams[i]);
    }
    stop(&world);
}

TEST(a_session_that_is_named_is_joined_by_its_name_alone_unless_it_is_shared)
{
    struct world world;
    struct um_src_stream streams[7];
    start(&world);
    most = 1;
    CHECK_EQ(source(&world, &streams[0], 500), 500);
    CHECK_EQ(source(&world, &streams[1], 0), 100); /* the named one does not count */
    CHECK_EQ(source(&world, &streams[2], 0), 100); /* nor is it picked */
    CHECK_EQ(source(&world, &streams[3], 500), 500);
    named_are_shared = true;
    CHECK_EQ(source(&world, &streams[4], 501), 501);
    CHECK_EQ(source(&world, &streams[5], 0), 100);
    CHECK_EQ(source(&world, &streams[6], 0), 501);
    CHECK_EQ(opened, 3);
    for (int i = 0; i < 7; i++) {
        leave(&world, &streams[i]);
    }
    stop(&world);
}

TEST(a_named_session_that_counts_takes_the_place_of_another)
{
    struct world world;
    struct um_src_stream streams[3];
    start(&world);
    most = 1;
    named_count = named_are_shared = true;
    CHECK_EQ(source(&world, &streams[0], 101), 101);
    CHECK_EQ(source(&world, &streams[1], 0), 101);
    CHECK_EQ(opened, 1);
    most = 2;
    CHECK_EQ(source(&world, &streams[2], 0), 100); /* not the id that is taken */
    for (int i = 0; i < 3; i++) {
        leave(&world, &streams[i]);
    }
    stop(&world);
}

TEST(a_session_answers_to_the_name_it_could_not_have)
{
    struct world world;
    struct um_src_stream streams[2];
    start(&world);
    ports_are_taken = true;
    CHECK_EQ(source(&world, &streams[0], 500), 1500);
    CHECK_EQ(source(&world, &streams[1], 500), 1500);
    CHECK_EQ(opened, 1);
    leave(&world, &streams[0]);
    leave(&world, &streams[1]);
    stop(&world);
}

TEST(parts_of_a_pool_are_pools_of_their_own)
{
    struct world world;
    struct um_src_stream streams[4];
    start(&world);
    most = 1;
    for (int i = 0; i < 4; i++) {
        world.src_opts.transport_lbtrm_destination_port = (uint16_t)(7 + i % 2);
        CHECK_EQ(source(&world, &streams[i], 0), 100);
    }
    CHECK_EQ(opened, 2);
    CHECK(streams[0].session == streams[2].session && streams[1].session == streams[3].session);
    CHECK(streams[0].session != streams[1].session);
    for (int i = 0; i < 4; i++) {
        leave(&world, &streams[i]);
    }
    stop(&world);
}

TEST(a_pool_that_allows_none_makes_one_when_there_is_none_to_share)
{
    struct world world;
    struct um_src_stream streams[2];
    start(&world);
    most = 0;
    CHECK_EQ(source(&world, &streams[0], 0), 100);
    CHECK_EQ(source(&world, &streams[1], 0), 100);
    leave(&world, &streams[0]);
    leave(&world, &streams[1]);
    stop(&world);
}

TEST(what_a_transport_refuses_or_cannot_open_leaves_the_pool_as_it_was)
{
    struct world world;
    struct um_src_stream streams[4];
    start(&world);
    CHECK_EQ(source(&world, &streams[3], 666), 0);
    most = 10; /* more than there are ids */
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(source(&world, &streams[i], 0), LOW + i);
    }
    CHECK_EQ(source(&world, &streams[3], 0), 0);
    CHECK_EQ(um_errnum(), UM_EINVAL);
    CHECK_EQ(opened, 3);
    for (int i = 0; i < 3; i++) {
        leave(&world, &streams[i]);
    }
    stop(&world);
}

static int ask_all(void *arg)
{
    struct world *world = arg;
    static lbm_src_transport_stats_t list[2];
    int count = um_src_pool_stats(world->pool, list, 2);
    um_src_pool_stats_reset(world->pool);
    um_src_pool_flush(world->pool);
    return count == 3 && strcmp(list[0].source, "100") == 0 && strcmp(list[1].source, "101") == 0 ? 0 : -1;
}

TEST(all_sessions_are_asked_in_order_of_creation)
{
    struct world world;
    struct um_src_stream streams[3];
    start(&world);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(source(&world, &streams[i], 0), LOW + i);
    }
    CHECK_EQ(um_loop_call(world.env.loop, ask_all, &world), 0);
    CHECK_EQ(told, 3);
    for (int i = 0; i < 3; i++) {
        leave(&world, &streams[i]);
    }
    stop(&world);
}

TEST(a_later_source_is_told_of_each_option_that_does_not_count)
{
    test_log_start();
    const struct um_src_decided list[] = {{"Core-1", "first_option", 5, 5}, {"Core-2", "second_option", 6, 7}};
    um_src_pool_warn("prices", "on TCP port", 14371, list, 2);
    CHECK(strstr(test_log, "Core-2") != NULL && strstr(test_log, "Core-1") == NULL);
    CHECK(strstr(test_log,
                 "source \"prices\": second_option 6 is ignored: the session on TCP port 14371 was made by its "
                 "first source with 7") != NULL);
}

static int attach_apart_on_loop(void *arg)
{
    struct call *call = arg;
    memset(call->stream, 0, sizeof *call->stream);
    return um_src_pool_attach_apart(call->world->pool, &call->world->src_opts, "immediate", call->stream);
}

static int ask_apart(void *arg)
{
    struct world *world = arg;
    static lbm_src_transport_stats_t one;
    int sources = um_src_pool_stats(world->pool, NULL, 0);
    int apart = um_src_pool_apart_stats(world->pool, &one, 1);
    um_src_pool_apart_stats_reset(world->pool);
    return sources == 1 && apart == 1 && strcmp(one.source, "101") == 0 && told == 1 ? 0 : -1;
}

TEST(a_session_apart_is_not_found_picked_or_counted_by_sources)
{
    struct world world;
    struct um_src_stream apart, named, unnamed[4];
    start(&world);
    named_count = named_are_shared = true;
    world.src_opts.transport_lbtsmx_id = 101;
    struct call call = {&world, &apart, 0};
    CHECK_EQ(um_loop_call(world.env.loop, attach_apart_on_loop, &call), 0);
    CHECK_EQ(source(&world, &named, 101), 101);
    CHECK(named.session != apart.session);
    CHECK_EQ(um_loop_call(world.env.loop, ask_apart, &world), 0);
    static const uint32_t expected[] = {100, 102, 101, 100}; /* the third and fourth are shared, in turn */
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(source(&world, &unnamed[i], 0), expected[i]);
        CHECK(unnamed[i].session != apart.session);
    }
    leave(&world, &apart);
    CHECK_EQ(closed, 1);
    leave(&world, &named);
    for (int i = 0; i < 4; i++) {
        leave(&world, &unnamed[i]);
    }
    stop(&world);
}
