/* The resolver on real sockets, in a private network namespace: multicast on
 * loopback, unicast through a stand-in for lbmrd, and the errors of set-up. */
#include "um_test.h"

#include <arpa/inet.h>
#include <poll.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "net/um_socket.h"
#include "resolver/um_resolver.h"
#include "um_test_net.h"
#include "wire/um_lbmr.h"

#define HANG_NS (60 * UM_NS_PER_SEC)

struct found {
    unsigned sources;
    lbm_transport_source_info_t info;
};

static void on_source(void *topic_user, const struct um_tr_source *source)
{
    struct found *found = topic_user;
    found->sources++;
    found->info = source->info;
}

static const struct um_resolver_events events = {.on_source = on_source};

struct end {
    struct um_loop *loop;
    struct um_context_options opts;
    struct um_resolver *resolver;
};

static bool end_options(struct end *end)
{
    memset(end, 0, sizeof *end);
    end->loop = um_loop_create(false, UM_LOOP_PEND, "test");
    if (end->loop == NULL || um_context_options_resolve(NULL, &end->opts) != 0) {
        return false;
    }
    end->opts.default_interface.addr = htonl(INADDR_LOOPBACK);
    end->opts.default_interface.bits = 32;
    return true;
}

struct start {
    struct end *end;
    uint8_t instance[8];
};

static int start_resolver(void *arg)
{
    struct start *start = arg;
    start->end->resolver =
        um_resolver_create(start->end->loop, &start->end->opts, start->instance, &events, start->end);
    return start->end->resolver == NULL ? -1 : 0;
}

static int end_start(struct end *end, uint8_t instance)
{
    struct start start = {.end = end, .instance = {instance}};
    return um_loop_call(end->loop, start_resolver, &start);
}

static int stop_resolver(void *arg)
{
    um_resolver_destroy(((struct end *)arg)->resolver);
    return 0;
}

static void end_close(struct end *end)
{
    um_loop_call(end->loop, stop_resolver, end);
    um_options_clear(UM_SCOPE_CONTEXT, &end->opts);
    um_loop_destroy(end->loop);
}

static int advertise(void *arg)
{
    struct end *end = arg;
    struct um_source_options opts;
    if (um_source_options_resolve(NULL, NULL, 0, "orders", &opts) != 0) {
        return -1;
    }
    struct um_tr_advert_spec spec = {.topic = "orders"};
    spec.info.type = LBM_TRANSPORT_TYPE_TCP;
    spec.info.src_port = 14371;
    spec.info.session_id = 77;
    spec.info.topic_idx = 5;
    bool ok = um_resolver_advertise(end->resolver, &spec, &opts) != NULL;
    um_options_clear(UM_SCOPE_SOURCE, &opts);
    return ok ? 0 : -1;
}

struct subscription {
    struct end *end;
    struct found *found;
};

static int subscribe(void *arg)
{
    struct subscription *subscription = arg;
    struct um_receiver_options opts;
    if (um_receiver_options_resolve(NULL, NULL, 0, "orders", &opts) != 0) {
        return -1;
    }
    struct um_resolver *resolver = subscription->end->resolver;
    struct um_tr_topic *topic = um_resolver_lookup(resolver, "orders", &opts, subscription->found);
    um_options_clear(UM_SCOPE_RECEIVER, &opts);
    if (topic == NULL) {
        return -1;
    }
    um_resolver_receive(resolver, topic, false);
    return 0;
}

TEST(two_contexts_resolve_over_multicast_on_loopback)
{
    TEST_NEEDS_NET();
    struct end a, b;
    struct found found = {0};
    CHECK(end_options(&a) && end_options(&b));
    CHECK_EQ(end_start(&a, 1), 0);
    CHECK_EQ(end_start(&b, 2), 0);
    CHECK_EQ(um_loop_call(a.loop, advertise, &a), 0);
    struct subscription subscription = {&b, &found};
    CHECK_EQ(um_loop_call(b.loop, subscribe, &subscription), 0);
    for (uint64_t end = um_clock_ns() + HANG_NS; found.sources == 0 && um_clock_ns() < end;) {
        um_loop_run_once(a.loop, 5, 0);
        um_loop_run_once(b.loop, 5, 0);
    }
    CHECK(found.sources > 0);
    CHECK_EQ(found.info.src_ip, htonl(INADDR_LOOPBACK));
    CHECK_EQ(found.info.src_port, 14371);
    CHECK_EQ(found.info.topic_idx, 5);
    lbm_context_stats_t stats = {0};
    um_resolver_stats(b.resolver, &stats);
    CHECK(stats.tr_dgrams_rcved > 0);
    CHECK_EQ(stats.tr_dgrams_dropped_malformed, 0);
    CHECK_EQ(stats.tr_rcv_topics, 1);
    end_close(&a);
    end_close(&b);
}

TEST(incoming_address_0_listens_to_nothing_but_still_sends)
{
    TEST_NEEDS_NET();
    struct end a;
    lbm_context_stats_t stats = {0};
    CHECK(end_options(&a));
    a.opts.resolver_multicast_incoming_address.s_addr = 0;
    CHECK_EQ(end_start(&a, 1), 0);
    CHECK_EQ(um_loop_call(a.loop, advertise, &a), 0);
    for (uint64_t end = um_clock_ns() + HANG_NS; stats.tr_dgrams_sent < 3 && um_clock_ns() < end;) {
        um_loop_run_once(a.loop, 5, 0);
        um_resolver_stats(a.resolver, &stats);
    }
    CHECK(stats.tr_dgrams_sent >= 3);
    CHECK_EQ(stats.tr_dgrams_rcved, 0);
    end_close(&a);
}

/* Answers keepalives and sends everything else back, as an lbmrd with one client does. */
static void stand_in_for_lbmrd(int fd, unsigned *keepalives)
{
    uint8_t bytes[9000];
    struct sockaddr_in from;
    socklen_t from_len = sizeof from;
    ssize_t len;
    while ((len = recvfrom(fd, bytes, sizeof bytes, MSG_DONTWAIT, (struct sockaddr *)&from, &from_len)) > 0) {
        if (bytes[0] == UM_LBMR_UCAST_SRC_ALIVE || bytes[0] == UM_LBMR_UCAST_RCV_ALIVE) {
            (*keepalives)++;
            len = (ssize_t)um_lbmr_encode_keepalive(bytes, sizeof bytes, UM_LBMR_NORMAL);
        } else {
            um_lbmr_substitute_address(bytes, (size_t)len, from.sin_addr.s_addr);
        }
        sendto(fd, bytes, (size_t)len, MSG_NOSIGNAL, (struct sockaddr *)&from, from_len);
    }
}

TEST(d5_a_context_resolves_through_lbmrd_without_multicast)
{
    TEST_NEEDS_NET();
    struct end a;
    struct found found = {0};
    unsigned keepalives = 0;
    int err = 0;
    int daemon = um_socket_udp((struct in_addr){htonl(INADDR_LOOPBACK)}, 0, false, &err);
    CHECK(daemon >= 0);
    lbm_ucast_resolver_entry_t entry = {.resolver_ip = htonl(INADDR_LOOPBACK),
                                        .destination_port = htons(um_socket_local_port(daemon))};
    CHECK(end_options(&a));
    struct um_option_list before = a.opts.resolver_unicast_daemon;
    a.opts.resolver_unicast_daemon = (struct um_option_list){1, sizeof entry, &entry};
    CHECK_EQ(end_start(&a, 1), 0);
    CHECK_EQ(um_loop_call(a.loop, advertise, &a), 0);
    struct subscription subscription = {&a, &found};
    CHECK_EQ(um_loop_call(a.loop, subscribe, &subscription), 0);
    for (uint64_t end = um_clock_ns() + HANG_NS; (found.sources == 0 || keepalives == 0) && um_clock_ns() < end;) {
        um_loop_run_once(a.loop, 5, 0);
        stand_in_for_lbmrd(daemon, &keepalives);
    }
    CHECK(found.sources > 0);
    CHECK(keepalives > 0);
    CHECK_EQ(found.info.src_ip, htonl(INADDR_LOOPBACK));
    a.opts.resolver_unicast_daemon = before;
    end_close(&a);
    close(daemon);
}

TEST(datagrams_from_another_port_than_the_lbmrds_are_dropped_and_logged)
{
    TEST_NEEDS_NET();
    struct end a;
    lbm_context_stats_t stats = {0};
    int err = 0;
    struct in_addr lo = {htonl(INADDR_LOOPBACK)};
    int stranger = um_socket_udp(lo, 0, false, &err);
    lbm_ucast_resolver_entry_t entry = {.resolver_ip = lo.s_addr, .destination_port = htons(9)};
    CHECK(end_options(&a));
    struct um_option_list before = a.opts.resolver_unicast_daemon;
    a.opts.resolver_unicast_daemon = (struct um_option_list){1, sizeof entry, &entry};
    a.opts.resolver_unicast_port_low = a.opts.resolver_unicast_port_high = 14499;
    CHECK_EQ(end_start(&a, 1), 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = lo, .sin_port = htons(14499)};
    sendto(stranger, "\0\0\0\0", 4, 0, (struct sockaddr *)&to, sizeof to);
    for (int i = 0; i < 5; i++) {
        um_loop_run_once(a.loop, 10, 0);
    }
    um_resolver_stats(a.resolver, &stats);
    CHECK_EQ(stats.tr_dgrams_rcved, 0);
    a.opts.resolver_unicast_daemon = before;
    end_close(&a);
    close(stranger);
}

TEST(an_exhausted_unicast_port_range_is_an_error_that_names_it)
{
    TEST_NEEDS_NET();
    struct end a;
    int err = 0;
    struct in_addr lo = {htonl(INADDR_LOOPBACK)};
    int taken = um_socket_udp(lo, 14498, false, &err);
    lbm_ucast_resolver_entry_t entry = {.resolver_ip = lo.s_addr, .destination_port = htons(9)};
    CHECK(taken >= 0);
    CHECK(end_options(&a));
    struct um_option_list before = a.opts.resolver_unicast_daemon;
    a.opts.resolver_unicast_daemon = (struct um_option_list){1, sizeof entry, &entry};
    a.opts.resolver_unicast_port_low = a.opts.resolver_unicast_port_high = 14498;
    CHECK_EQ(end_start(&a, 1), -1);
    CHECK_EQ(um_errnum(), UM_EOP);
    CHECK_CONTAINS(um_errmsg(), "14498");
    a.opts.resolver_unicast_daemon = before;
    end_close(&a);
    close(taken);
}

TEST(joining_something_that_is_no_group_is_an_error_with_a_remedy)
{
    TEST_NEEDS_NET();
    struct end a;
    CHECK(end_options(&a));
    a.opts.resolver_multicast_incoming_address.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(end_start(&a, 1), -1);
    CHECK_CONTAINS(um_errmsg(), "resolver_multicast_incoming_address");
    CHECK_CONTAINS(um_errmsg(), "resolver_unicast_daemon");
    end_close(&a);
}

TEST(udp_topic_resolution_can_be_switched_off)
{
    TEST_NEEDS_NET();
    struct end a;
    lbm_context_stats_t stats = {0};
    CHECK(end_options(&a));
    a.opts.resolver_disable_udp_topic_resolution = 1;
    CHECK_EQ(end_start(&a, 1), 0);
    CHECK_EQ(um_loop_call(a.loop, advertise, &a), 0);
    um_loop_run_once(a.loop, 30, 0);
    um_resolver_stats(a.resolver, &stats);
    CHECK_EQ(stats.tr_dgrams_sent, 0);
    CHECK_EQ(stats.tr_src_topics, 1);
    end_close(&a);
}
