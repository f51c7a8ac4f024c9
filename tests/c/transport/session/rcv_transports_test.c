/* The transports of the receive sessions of a loop: what their tables answer, when their state is made, and what is
 * asked of those that have none yet. */
#include "um_test.h"

#include "base/um_error.h"
#include "base/um_mem.h"
#include "net/um_loop.h"
#include "transport/session/um_rcv_transports.h"
#include "transport/shm/um_shm_thread.h"
#include "um_test_net.h"
#include "um_test_loop.h"

struct world {
    struct um_context_options opts;
    struct um_receiver_options rcv_opts;
    struct um_transport_env env;
    struct um_rcv_transports *set;
};

static size_t allocated;

static bool count_bytes(size_t size)
{
    allocated += size;
    return false;
}

static bool start(struct world *world, bool sequential)
{
    memset(world, 0, sizeof *world);
    if (um_context_options_resolve(NULL, &world->opts) != 0 ||
        um_receiver_options_resolve(NULL, NULL, 0, "topic", &world->rcv_opts) != 0) {
        return false;
    }
    if (sequential) {
        world->opts.transport_lbtipc_receiver_operational_mode = LBM_CTX_ATTR_OP_SEQUENTIAL;
    }
    world->env = (struct um_transport_env){.loop = um_loop_create(true, UM_LOOP_PEND, "test"), .opts = &world->opts};
    allocated = 0;
    um_mem_set_fail_hook(count_bytes);
    world->set = um_rcv_transports_create(&world->env);
    um_mem_set_fail_hook(NULL);
    return world->env.loop != NULL && world->set != NULL;
}

static void stop(struct world *world)
{
    um_rcv_transports_destroy(world->set);
    um_shm_threads_join(&world->env);
    um_loop_destroy(world->env.loop);
    um_options_clear(UM_SCOPE_CONTEXT, &world->opts);
    um_options_clear(UM_SCOPE_RECEIVER, &world->rcv_opts);
}

TEST(a_loop_pays_for_no_transport_before_a_session_wants_it)
{
    struct world world;
    CHECK(start(&world, false));
    CHECK(allocated < 256);
    struct um_rcv_transport *tcp = um_rcv_transports_get(world.set, LBM_TRANSPORT_TYPE_TCP);
    CHECK(tcp != NULL && tcp->ops == &um_tcp_rcv_transport && tcp->env == &world.env);
    CHECK(um_rcv_transports_get(world.set, LBM_TRANSPORT_TYPE_TCP) == tcp);
    CHECK(um_rcv_transports_get(world.set, LBM_TRANSPORT_TYPE_LBTRM) != NULL);
    CHECK(um_rcv_transports_get(world.set, LBM_TRANSPORT_TYPE_LBTRU) != NULL);
    CHECK(um_rcv_transports_get(world.set, LBM_TRANSPORT_TYPE_LBTSMX) != NULL);
    CHECK(um_rcv_transports_get(world.set, LBM_TRANSPORT_TYPE_LBTIPC) != NULL);
    stop(&world);
}

TEST(a_transport_that_cannot_be_made_is_made_by_the_next_session)
{
    struct world world;
    CHECK(start(&world, false));
    static const int types[] = {LBM_TRANSPORT_TYPE_TCP, LBM_TRANSPORT_TYPE_LBTRM, LBM_TRANSPORT_TYPE_LBTRU,
                                LBM_TRANSPORT_TYPE_LBTSMX, LBM_TRANSPORT_TYPE_LBTIPC};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        test_fail_start(0);
        CHECK(um_rcv_transports_get(world.set, types[i]) == NULL);
        CHECK_EQ(um_errnum(), UM_ENOMEM);
        CHECK(test_fail_stop());
        CHECK(um_rcv_transports_get(world.set, types[i]) != NULL);
    }
    stop(&world);
}

TEST(what_tells_sessions_apart_is_what_their_transport_says)
{
    lbm_transport_source_info_t info = {.src_ip = htonl(INADDR_LOOPBACK),
                                        .src_port = 14001,
                                        .session_id = 7,
                                        .topic_idx = 3,
                                        .mc_group = htonl(0xe0000a01u),
                                        .dest_port = 24400,
                                        .transport_id = 9};
    info.type = LBM_TRANSPORT_TYPE_TCP;
    struct um_rcv_session_key tcp = um_rcv_transports_key(&info);
    CHECK(tcp.ip == info.src_ip && tcp.port == 14001 && tcp.session_id == 7);
    CHECK(tcp.group == 0 && tcp.dest_port == 0 && tcp.transport_id == 0);
    info.type = LBM_TRANSPORT_TYPE_LBTRM;
    struct um_rcv_session_key lbtrm = um_rcv_transports_key(&info);
    CHECK(lbtrm.ip == info.src_ip && lbtrm.port == 14001 && lbtrm.session_id == 7);
    CHECK(lbtrm.group == info.mc_group && lbtrm.dest_port == 24400 && lbtrm.transport_id == 0);
    info.type = LBM_TRANSPORT_TYPE_LBTSMX;
    struct um_rcv_session_key smx = um_rcv_transports_key(&info);
    CHECK(smx.ip == 0 && smx.port == 0 && smx.session_id == 7 && smx.group == 0 && smx.transport_id == 9);
}

TEST(joins_cost_what_their_transport_says)
{
    struct world world;
    CHECK(start(&world, false));
    CHECK_EQ(um_rcv_transport_join_kind(LBM_TRANSPORT_TYPE_TCP), UM_RCV_JOIN_ASKS);
    CHECK_EQ(um_rcv_transport_join_kind(LBM_TRANSPORT_TYPE_LBTRU), UM_RCV_JOIN_ASKS);
    CHECK_EQ(um_rcv_transport_join_kind(LBM_TRANSPORT_TYPE_LBTRM), UM_RCV_JOIN_GROUP);
    CHECK_EQ(um_rcv_transport_join_kind(LBM_TRANSPORT_TYPE_LBTSMX), UM_RCV_JOIN_MEMORY);
    CHECK_EQ(um_rcv_transport_join_kind(LBM_TRANSPORT_TYPE_LBTIPC), UM_RCV_JOIN_MEMORY);
    struct um_rcv_session_key key = {.type = LBM_TRANSPORT_TYPE_LBTRM, .group = htonl(0xe0000a01u), .dest_port = 24400};
    CHECK_EQ(um_rcv_transports_join_kind(world.set, &key), UM_RCV_JOIN_GROUP); /* without its state */
    CHECK(um_rcv_transports_get(world.set, LBM_TRANSPORT_TYPE_LBTRM) != NULL);
    CHECK_EQ(um_rcv_transports_join_kind(world.set, &key), UM_RCV_JOIN_GROUP); /* a group that nobody has heard */
    stop(&world);
}

TEST(gaps_wait_as_long_as_their_transport_repairs)
{
    struct world world;
    CHECK(start(&world, false));
    world.rcv_opts.transport_lbtrm_nak_generation_interval = 11;
    world.rcv_opts.transport_lbtru_nak_generation_interval = 12;
    world.rcv_opts.um_transport_lbtru_nak_generation_interval_us = 500;
    world.rcv_opts.transport_lbtipc_dro_loss_recovery_timeout = 13;
    CHECK_EQ(um_rcv_transport_gap_timeout_ns(LBM_TRANSPORT_TYPE_LBTRM, &world.rcv_opts), um_ms_ns(11));
    CHECK_EQ(um_rcv_transport_gap_timeout_ns(LBM_TRANSPORT_TYPE_LBTRU, &world.rcv_opts), um_us_ns(500));
    CHECK_EQ(um_rcv_transport_gap_timeout_ns(LBM_TRANSPORT_TYPE_LBTIPC, &world.rcv_opts), um_ms_ns(13));
    CHECK_EQ(um_rcv_transport_gap_timeout_ns(LBM_TRANSPORT_TYPE_TCP, &world.rcv_opts), 0);
    CHECK_EQ(um_rcv_transport_gap_timeout_ns(LBM_TRANSPORT_TYPE_LBTSMX, &world.rcv_opts), 0);
    stop(&world);
}

TEST(a_transport_type_of_others_has_nobody_and_shared_memory_shows_who_is_there)
{
    struct um_rcv_session_key key = {.type = LBM_TRANSPORT_TYPE_LBTRDMA};
    CHECK(!um_rcv_transports_have(LBM_TRANSPORT_TYPE_LBTRDMA) && um_rcv_transports_nobody_there(&key));
    CHECK_EQ(um_rcv_transport_join_kind(LBM_TRANSPORT_TYPE_LBTRDMA), UM_RCV_JOIN_MEMORY);
    key = (struct um_rcv_session_key){.type = LBM_TRANSPORT_TYPE_LBTSMX, .session_id = 0x7ffffff1, .transport_id = 7};
    CHECK(um_rcv_transports_nobody_there(&key));
    key.type = LBM_TRANSPORT_TYPE_TCP;
    CHECK(!um_rcv_transports_nobody_there(&key)); /* silence proves nothing */
}

TEST(an_application_receives_by_itself_only_where_the_options_say_so)
{
    struct world world;
    CHECK(start(&world, false));
    CHECK_EQ(um_rcv_transports_process(world.set, LBM_TRANSPORT_TYPE_LBTIPC, 0, 1), -1);
    CHECK_EQ(um_errnum(), UM_EINVAL);
    CHECK_EQ(um_rcv_transports_unblock(world.set, LBM_TRANSPORT_TYPE_LBTIPC), -1);
    CHECK_EQ(um_rcv_transports_process(world.set, LBM_TRANSPORT_TYPE_TCP, 0, 1), -1);
    CHECK_EQ(um_errnum(), UM_EINVAL);
    stop(&world);
    CHECK(start(&world, true));
    CHECK_EQ(um_rcv_transports_process(world.set, LBM_TRANSPORT_TYPE_LBTIPC, 0, 1), 0); /* before any session */
    CHECK_EQ(um_rcv_transports_unblock(world.set, LBM_TRANSPORT_TYPE_LBTIPC), 0);
    CHECK_EQ(um_rcv_transports_process(world.set, LBM_TRANSPORT_TYPE_LBTIPC, 0, 0), 0); /* unblocked beforehand */
    stop(&world);
}

TEST(counts_of_all_transports_are_summed_and_of_one_are_its_own)
{
    struct world world;
    CHECK(start(&world, false));
    struct um_rcv_datagram_counts sum = {.unjoined = 5};
    um_rcv_transports_add_counts(world.set, UM_RCV_EVERY_TYPE, &sum); /* nothing is made, nothing is added */
    CHECK(um_rcv_transports_get(world.set, LBM_TRANSPORT_TYPE_LBTRM) != NULL);
    CHECK(um_rcv_transports_get(world.set, LBM_TRANSPORT_TYPE_TCP) != NULL);
    um_rcv_transports_add_counts(world.set, UM_RCV_EVERY_TYPE, &sum);
    um_rcv_transports_add_counts(world.set, LBM_TRANSPORT_TYPE_LBTRU, &sum);
    um_rcv_transports_counts_reset(world.set);
    CHECK_EQ(sum.unjoined, 5);
    stop(&world);
}
