/* What programs that only know the documented interface do besides sending and receiving, through the public headers
 * only: handlers they register, flags they pass, options they set in a file, facts they read back. */
#include "um_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <lbm/lbm.h>
#include <lbm/um.h>

#include "um_test_log.h"
#include "um_test_rcv.h"

/* ---- immediate messages ---- */

static int on_immediate(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    return 0;
}

/* A program with a wildcard receiver and an event queue that registers handlers as well. */
TEST(f32_a_program_that_registers_immediate_handlers_starts_and_receives)
{
    TEST_NEEDS_NET();
    watch_log("Core-9020-2");
    lbm_context_t *ctx = net_context();
    lbm_event_queue_t *evq;
    lbm_wildcard_rcv_t *wrcv;
    struct recorder r = RECORDER_INIT;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    MUST(lbm_context_rcv_immediate_msgs(ctx, on_immediate, &r, evq));
    MUST(lbm_context_rcv_immediate_topic_msgs(ctx, on_immediate, &r, NULL));
    MUST(lbm_context_rcv_immediate_topic_msgs(ctx, on_immediate, NULL, NULL));
    CHECK_EQ(log_hits, 0); /* nothing is missing */
    MUST(lbm_log(NULL, NULL));

    MUST(lbm_wildcard_rcv_create(&wrcv, ctx, "^quote", NULL, NULL, recorder_cb, &r, evq));
    lbm_src_t *src = net_source(ctx, "quote.a");
    CHECK(recorder_dispatch(&r, evq, LBM_MSG_BOS, 1));
    net_send(src, "1");
    CHECK(recorder_dispatch(&r, evq, LBM_MSG_DATA, 1));
    MUST(lbm_src_delete(src));
    MUST(lbm_wildcard_rcv_delete(wrcv));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_event_queue_delete(evq));
}

/* A handler given by the call is where the option's would be: it reads back, and NULL removes it. */
TEST(f32_an_immediate_handler_replaces_that_of_the_option)
{
    TEST_NEEDS_NET();
    int here;
    lbm_context_attr_t *attr = net_context_attr();
    lbm_context_rcv_immediate_msgs_func_t option = {.func = on_immediate}, read;
    size_t len = sizeof read;
    MUST(lbm_context_attr_setopt(attr, "immediate_message_receiver_function", &option, sizeof option));
    lbm_context_t *ctx = net_context_with(attr);
    MUST(lbm_context_rcv_immediate_msgs(ctx, on_immediate, &here, NULL));
    MUST(lbm_context_getopt(ctx, "immediate_message_receiver_function", &read, &len));
    CHECK(read.func == on_immediate && read.clientd == &here && read.evq == NULL);
    MUST(lbm_context_rcv_immediate_msgs(ctx, NULL, NULL, NULL));
    MUST(lbm_context_getopt(ctx, "immediate_message_receiver_function", &read, &len));
    CHECK(read.func == NULL);
    CHECK_EQ(lbm_context_rcv_immediate_msgs(NULL, on_immediate, NULL, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    MUST(lbm_context_delete(ctx));
    lbm_context_t *timers_only;
    MUST(lbm_context_reactor_only_create(&timers_only, NULL));
    CHECK_EQ(lbm_context_rcv_immediate_topic_msgs(timers_only, on_immediate, NULL, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOP);
    MUST(lbm_context_delete(timers_only));
}

/* ---- flags of queuing ---- */

TEST(f39_flags_of_queuing_are_ignored_by_sources_that_do_not_queue)
{
    TEST_NEEDS_NET();
    watch_log("Core-5688-3263");
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_src_t *src = net_source(ctx, "queue.less");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "queue.less", &r);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    lbm_umq_index_info_t index = {.index = "1", .index_len = 1};
    lbm_umq_msg_total_lifetime_info_t lifetime = {.umq_msg_total_lifetime = 1000};
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_UMQ_INDEX | LBM_SRC_SEND_EX_FLAG_UMQ_MESSAGE_ID_INFO |
                                            LBM_SRC_SEND_EX_FLAG_UMQ_TOTAL_LIFETIME,
                                   .umq_index = &index,
                                   .umq_total_lifetime = &lifetime};
    lbm_iovec_t piece = {.iov_base = "b", .iov_len = 1};
    MUST(lbm_src_send_ex(src, "a", 1, LBM_MSG_FLUSH, &info));
    MUST(lbm_src_sendv_ex(src, &piece, 1, LBM_MSG_FLUSH, &info));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 2));
    CHECK(recorder_reads(&r, "BOS 0=a 1=b "));
    CHECK_EQ(log_hits, 1);
    CHECK_CONTAINS(log_line, "queue.less");
    MUST(lbm_log(NULL, NULL));
    info.flags |= LBM_SRC_SEND_EX_FLAG_CHANNEL; /* other flags are not ignored */
    CHECK_EQ(lbm_src_send_ex(src, "c", 1, LBM_MSG_FLUSH, &info), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

/* A source whose options ask for queuing is not served halfway. */
TEST(f39_flags_of_queuing_are_refused_where_queuing_is_asked_for)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "umq_ulb_application_set", "0:100"));
    MUST(lbm_src_topic_alloc(&topic, ctx, "balanced", attr));
    MUST(lbm_src_topic_attr_delete(attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_UMQ_MESSAGE_ID_INFO};
    CHECK_EQ(lbm_src_send_ex(src, "a", 1, LBM_MSG_FLUSH, &info), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOPNOTSUPP);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

/* ---- port ranges ---- */

/* Every port of a range on the loopback interface, taken by somebody else. */
struct taken {
    int fds[32];
    int count;
};

static bool take(struct taken *taken, int type, int low, int high)
{
    taken->count = 0;
    for (int port = low; port <= high; port++) {
        struct sockaddr_in addr = {
            .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, type, 0);
        if (bind(fd, (struct sockaddr *)&addr, sizeof addr) == 0 && (type != SOCK_STREAM || listen(fd, 1) == 0)) {
            taken->fds[taken->count++] = fd;
            continue;
        }
        int why = errno;
        close(fd);
        if (why != EADDRINUSE) { /* which is as good: the end of a connection lingers there */
            fprintf(stderr, "taking port %d: %s\n", port, strerror(why));
            return false;
        }
    }
    return true;
}

static void release(struct taken *taken)
{
    while (taken->count > 0) {
        close(taken->fds[--taken->count]);
    }
}

/* A context, a source and a receiver that bind a port of the range; `set`: somebody has set it, to the same ports. */
struct range_case {
    const char *transport, *name; /* of the source; options without their ends */
    int type, low, high;
    enum { CREATES_CONTEXT, CREATES_SOURCE, JOINS } where;
};

static const struct range_case range_cases[] = {
    {"tcp", "request_tcp_port", SOCK_STREAM, 14391, 14395, CREATES_CONTEXT},
    {"tcp", "resolver_unicast_port", SOCK_DGRAM, 14402, 14406, CREATES_CONTEXT},
    {"tcp", "transport_tcp_port", SOCK_STREAM, 14371, 14390, CREATES_SOURCE},
    {"lbtrm", "transport_lbtrm_source_port", SOCK_DGRAM, 14390, 14399, CREATES_SOURCE},
    {"lbtru", "transport_lbtru_port", SOCK_DGRAM, 14380, 14389, CREATES_SOURCE},
    {"lbtru", "transport_lbtru_port", SOCK_DGRAM, 14360, 14379, JOINS},
};

static void set_range(const struct range_case *c, lbm_context_attr_t *ctx_attr, lbm_rcv_topic_attr_t *rcv_attr)
{
    for (int i = 0; i < 2; i++) {
        char name[64], port[8];
        snprintf(name, sizeof name, "%s_%s", c->name, i == 0 ? "low" : "high");
        snprintf(port, sizeof port, "%d", i == 0 ? c->low : c->high);
        if (c->where == JOINS) {
            MUST(lbm_rcv_topic_attr_str_setopt(rcv_attr, name, port));
        } else {
            MUST(lbm_context_attr_str_setopt(ctx_attr, name, port));
        }
    }
}

/* 0: everything came up and a message arrived, else which step failed. */
static int run_in_range(const struct range_case *c, bool set)
{
    lbm_context_attr_t *ctx_attr = net_context_attr();
    lbm_src_topic_attr_t *src_attr;
    lbm_rcv_topic_attr_t *rcv_attr;
    lbm_context_t *ctx;
    lbm_topic_t *topic;
    lbm_src_t *src = NULL;
    struct recorder r = RECORDER_INIT;
    int result = CREATES_CONTEXT + 1;
    bool unicast = strcmp(c->name, "resolver_unicast_port") == 0;
    MUST(lbm_rcv_topic_attr_create(&rcv_attr));
    if (set) {
        set_range(c, ctx_attr, rcv_attr);
    }
    if (unicast) {
        MUST(lbm_context_attr_str_setopt(ctx_attr, "resolver_unicast_daemon", "127.0.0.1:15380"));
    }
    if (lbm_context_create(&ctx, ctx_attr, NULL, NULL) == 0) {
        MUST(lbm_src_topic_attr_create(&src_attr));
        MUST(lbm_src_topic_attr_str_setopt(src_attr, "transport", c->transport));
        MUST(lbm_src_topic_alloc(&topic, ctx, "ranges", src_attr));
        MUST(lbm_src_topic_attr_delete(src_attr));
        result = CREATES_SOURCE + 1;
        if (lbm_src_create(&src, ctx, topic, NULL, NULL, NULL) == 0) {
            result = 0;
        }
        if (result == 0 && !unicast && !(set && c->where == JOINS)) {
            lbm_rcv_t *rcv = net_receiver(ctx, "ranges", rcv_attr, recorder_cb, &r, NULL);
            MUST(um_src_wait_receivers(src, strcmp(c->transport, "lbtrm") != 0, HANG_SECONDS * 1000));
            for (int i = 0; i < HANG_SECONDS * 100 && recorder_count(&r, LBM_MSG_DATA) == 0; i++) {
                net_send(src, "x"); /* over LBT-RM nobody is waited for */
                nanosleep(&(struct timespec){0, 10000000}, NULL);
            }
            result = recorder_count(&r, LBM_MSG_DATA) > 0 ? 0 : JOINS + 1;
            MUST(lbm_rcv_delete(rcv));
        }
        if (src != NULL) {
            MUST(lbm_src_delete(src));
        }
        MUST(lbm_context_delete(ctx));
    }
    MUST(lbm_rcv_topic_attr_delete(rcv_attr));
    MUST(lbm_context_attr_delete(ctx_attr));
    return result;
}

TEST(a_default_port_range_that_is_used_up_gives_way_to_any_free_port)
{
    TEST_NEEDS_NET();
    for (size_t i = 0; i < sizeof range_cases / sizeof range_cases[0]; i++) {
        const struct range_case *c = &range_cases[i];
        struct taken taken;
        char option[64];
        CHECK(take(&taken, c->type, c->low, c->high));
        watch_log("Core-9007-1");
        CHECK_EQ(run_in_range(c, false), 0);
        MUST(lbm_log(NULL, NULL));
        release(&taken);
        snprintf(option, sizeof option, "%s_low", c->name);
        CHECK_EQ(log_hits, 1);
        CHECK_CONTAINS(log_line, option);
    }
}

TEST(a_port_range_that_somebody_set_and_that_is_used_up_is_an_error_with_option_range_and_remedy)
{
    TEST_NEEDS_NET();
    for (size_t i = 0; i < sizeof range_cases / sizeof range_cases[0]; i++) {
        const struct range_case *c = &range_cases[i];
        struct taken taken;
        char low[64], high[64], number[16];
        if (c->where == JOINS) {
            continue; /* a join fails later: tests/c/transport/udp/udp_receivers_test.c */
        }
        CHECK(take(&taken, c->type, c->low, c->high));
        CHECK_EQ(run_in_range(c, true), c->where + 1);
        release(&taken);
        snprintf(low, sizeof low, "%s_low", c->name);
        snprintf(high, sizeof high, "%s_high", c->name);
        snprintf(number, sizeof number, "%d", c->high);
        CHECK_CONTAINS(lbm_errmsg(), low);
        CHECK_CONTAINS(lbm_errmsg(), high);
        CHECK_CONTAINS(lbm_errmsg(), number);
        CHECK_CONTAINS(lbm_errmsg(), "set both to 0");
    }
}

/* ---- what is in force ---- */

static const char *ctx_text(lbm_context_t *ctx, const char *option)
{
    static char text[256];
    size_t len = sizeof text;
    MUST(lbm_context_str_getopt(ctx, option, text, &len));
    return text;
}

static const char *src_text(lbm_src_t *src, const char *option)
{
    static char text[256];
    size_t len = sizeof text;
    MUST(lbm_src_str_getopt(src, option, text, &len));
    return text;
}

static const char *rcv_text(lbm_rcv_t *rcv, const char *option)
{
    static char text[256];
    size_t len = sizeof text;
    MUST(lbm_rcv_str_getopt(rcv, option, text, &len));
    return text;
}

static bool can_connect(lbm_uint16_t network_port)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = network_port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool ok = connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0;
    close(fd);
    return ok;
}

/* Programs tell others this port as the address for immediate messages. */
TEST(f35_a_context_reads_back_its_request_port_and_interfaces)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "resolver_multicast_interface", "0.0.0.0"));
    MUST(lbm_context_attr_str_setopt(attr, "default_interface", "127.0.0.0/8"));
    MUST(lbm_context_attr_str_setopt(attr, "resolver_multicast_receiver_socket_buffer", "1099511627776"));
    lbm_context_t *ctx;
    MUST(lbm_context_create(&ctx, attr, NULL, NULL));
    lbm_uint16_t port = 0;
    size_t len = sizeof port;
    MUST(lbm_context_getopt(ctx, "request_tcp_port", &port, &len));
    CHECK(port != 0 && can_connect(port));
    CHECK_EQ(atoi(ctx_text(ctx, "request_tcp_port")), ntohs(port));
    CHECK_STR(ctx_text(ctx, "request_tcp_port_low"), "14391");
    CHECK_STR(ctx_text(ctx, "request_tcp_interface"), "127.0.0.1/32");
    CHECK_STR(ctx_text(ctx, "response_tcp_interface"), "127.0.0.1/32");
    CHECK_STR(ctx_text(ctx, "resolver_multicast_interface"), "127.0.0.1/32");
    CHECK(atoll(ctx_text(ctx, "resolver_multicast_receiver_socket_buffer")) < 1099511627776);

    /* The dump tells the same, the attribute object what was set. */
    int count = lbm_context_attr_option_size(), seen = 0;
    lbm_config_option_t *all = calloc((size_t)count, sizeof *all);
    MUST(lbm_context_dump(ctx, &count, all));
    for (int i = 0; i < count; i++) {
        seen += strcmp(all[i].oname, "request_tcp_port") == 0 && atoi(all[i].val) == ntohs(port);
    }
    free(all);
    CHECK_EQ(seen, 1);
    MUST(lbm_context_attr_getopt(attr, "request_tcp_port", &port, &len));
    CHECK_EQ(port, 0);
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_attr_delete(attr));
}

TEST(f35_a_context_without_a_request_port_reads_back_none)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_lean_context();
    CHECK_STR(ctx_text(ctx, "request_tcp_port"), "0");
    CHECK_STR(ctx_text(ctx, "request_tcp_interface"), "0.0.0.0/0");
    CHECK_STR(ctx_text(ctx, "resolver_multicast_receiver_socket_buffer"), "0");
    MUST(lbm_context_delete(ctx));
    lbm_context_t *timers_only;
    MUST(lbm_context_reactor_only_create(&timers_only, NULL));
    CHECK_STR(ctx_text(timers_only, "request_tcp_port"), "0");
    MUST(lbm_context_delete(timers_only));
}

TEST(f35_a_context_reads_back_the_ports_of_its_resolver_daemons)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "resolver_unicast_daemon", "127.0.0.1:15380,127.0.0.1:15381"));
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtrm_datagram_max_size", "65535"));
    lbm_context_t *ctx = net_context_with(attr);
    CHECK_STR(ctx_text(ctx, "resolver_unicast_daemon"),
              "127.0.0.1/32:14402->127.0.0.1:15380,127.0.0.1/32:14403->127.0.0.1:15381");
    CHECK_STR(ctx_text(ctx, "resolver_unicast_daemon"),
              "127.0.0.1/32:14402->127.0.0.1:15380,127.0.0.1/32:14403->127.0.0.1:15381");
    CHECK_STR(ctx_text(ctx, "resolver_unicast_interface"), "127.0.0.1/32");
    CHECK_STR(ctx_text(ctx, "transport_lbtrm_datagram_max_size"), "65507");
    MUST(lbm_context_delete(ctx));
}

static lbm_src_t *source_with(lbm_context_t *ctx, const char *topic_name, const char *transport, const char *option,
                              const char *value)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    if (option != NULL) {
        MUST(lbm_src_topic_attr_str_setopt(attr, option, value));
    }
    MUST(lbm_src_topic_alloc(&topic, ctx, topic_name, attr));
    MUST(lbm_src_topic_attr_delete(attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    return src;
}

TEST(f35_sources_read_back_ports_groups_and_ids_that_were_chosen)
{
    TEST_NEEDS_NET();
    static const struct {
        const char *transport, *option, *format; /* of the source string */
    } cases[] = {
        {"tcp", "transport_tcp_port", "TCP:127.0.0.1:%[0-9]"},
        {"lbtru", "transport_lbtru_port", "LBT-RU:127.0.0.1:%[0-9]"},
        {"lbtrm", "transport_lbtrm_multicast_address", "LBTRM:127.0.0.1:%*[0-9]:%*[0-9a-f]:%[0-9.]"},
        {"lbtipc", "transport_lbtipc_id", "LBT-IPC:%*[0-9a-f]:%[0-9]"},
        {"lbtsmx", "transport_lbtsmx_id", "LBT-SMX:%*[0-9a-f]:%[0-9]"},
    };
    lbm_context_t *ctx = net_context();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lbm_src_t *src = source_with(ctx, "chosen", cases[i].transport, NULL, NULL);
        lbm_src_transport_stats_t stats;
        char chosen[64] = "";
        MUST(lbm_src_retrieve_transport_stats(src, &stats));
        CHECK_EQ(sscanf(stats.source, cases[i].format, chosen), 1);
        CHECK_STR(src_text(src, cases[i].option), chosen);
        MUST(lbm_src_delete(src));
    }
    MUST(lbm_context_delete(ctx));
}

TEST(f35_sources_read_back_sizes_that_were_rounded)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *smx = source_with(ctx, "s", "lbtsmx", "transport_lbtsmx_transmission_window_size", "100000");
    CHECK_STR(src_text(smx, "transport_lbtsmx_transmission_window_size"), "131072");
    MUST(lbm_src_delete(smx));
    lbm_src_t *ipc = source_with(ctx, "i", "lbtipc", "transport_lbtipc_transmission_window_size", "200001");
    CHECK_STR(src_text(ipc, "transport_lbtipc_transmission_window_size"), "200704");
    MUST(lbm_src_delete(ipc));
    lbm_src_t *tcp = source_with(ctx, "t", "tcp", "implicit_batching_interval", "1");
    CHECK_STR(src_text(tcp, "implicit_batching_interval"), "3");
    CHECK_STR(src_text(tcp, "transport_tcp_interface"), "127.0.0.1/32");
    MUST(lbm_src_str_setopt(tcp, "implicit_batching_interval", "50"));
    MUST(lbm_src_str_setopt(tcp, "implicit_batching_minimum_length", "100"));
    CHECK_STR(src_text(tcp, "implicit_batching_interval"), "50");
    CHECK_STR(src_text(tcp, "implicit_batching_minimum_length"), "100");
    MUST(lbm_src_delete(tcp));
    MUST(lbm_context_delete(ctx));
}

/* A source that joins a session reads back what the first one has set for all. */
TEST(f35_a_source_reads_back_the_options_of_the_session_it_joined)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context_with(({
        lbm_context_attr_t *attr = net_context_attr();
        MUST(lbm_context_attr_str_setopt(attr, "transport_tcp_maximum_ports", "1"));
        attr;
    }));
    lbm_src_t *first = source_with(ctx, "first", "tcp", "transport_session_maximum_buffer", "100000");
    lbm_src_t *second = source_with(ctx, "second", "tcp", "transport_session_maximum_buffer", "200000");
    CHECK_STR(src_text(second, "transport_session_maximum_buffer"), "100000");
    int port = atoi(src_text(first, "transport_tcp_port"));
    CHECK(port != 0);
    CHECK_EQ(atoi(src_text(second, "transport_tcp_port")), port);
    MUST(lbm_src_delete(first));
    MUST(lbm_src_delete(second));
    lbm_src_t *rm = source_with(ctx, "rm", "lbtrm", "transport_lbtrm_ignore_interval", "300");
    lbm_src_t *rm2 = source_with(ctx, "rm2", "lbtrm", "transport_lbtrm_multicast_address",
                                 src_text(rm, "transport_lbtrm_multicast_address"));
    CHECK_STR(src_text(rm2, "transport_lbtrm_ignore_interval"), "300");
    CHECK_STR(src_text(rm2, "transport_tcp_nodelay"), "1"); /* another transport's: as set */
    MUST(lbm_src_delete(rm));
    MUST(lbm_src_delete(rm2));
    MUST(lbm_context_delete(ctx));
}

TEST(f35_receivers_read_back_their_interfaces_and_bounds)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "delivery_control_maximum_burst_loss", "2000000"));
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = net_receiver(ctx, "bounds", attr, recorder_cb, &r, NULL);
    CHECK_STR(rcv_text(rcv, "transport_tcp_interface"), "127.0.0.1/32");
    CHECK_STR(rcv_text(rcv, "transport_lbtru_interface"), "127.0.0.1/32");
    CHECK_STR(rcv_text(rcv, "delivery_control_maximum_burst_loss"), "1048576");
    CHECK_STR(rcv_text(rcv, "ordered_delivery"), "1");
    MUST(lbm_rcv_topic_attr_delete(attr));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(ctx));
}

/* ---- a program as a whole ---- */

/* The last test: the file stays in force for the process. */
TEST(f33_a_program_with_a_published_configuration_starts_and_publishes_its_request_port)
{
    TEST_NEEDS_NET();
    static const char text[] = "# as found in programs that others have written\n"
                               "receiver transport_lbtrm_nak_generation_interval 1\n"
                               "receiver transport_lbtru_nak_generation_interval 0\n"
                               "context mim_nak_generation_interval 4\n"
                               "context mim_incoming_address 0.0.0.0\n"
                               "context fd_management_type epoll\n"
                               "source transport_tcp_coalesce_threshold 100\n"
                               "source transport lbtru\n";
    char path[] = "/tmp/um_compat_XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0);
    CHECK(write(file, text, sizeof text - 1) == (ssize_t)sizeof text - 1);
    close(file);
    watch_log("Core-9020-3");
    int rc = lbm_config(path);
    unlink(path);
    MUST(rc);
    CHECK_EQ(log_hits, 3);
    MUST(lbm_log(NULL, NULL));
    lbm_context_t *ctx = net_context();
    struct recorder r = RECORDER_INIT;
    lbm_uint16_t port = 0;
    size_t len = sizeof port;
    MUST(lbm_context_rcv_immediate_msgs(ctx, on_immediate, NULL, NULL));
    MUST(lbm_context_getopt(ctx, "request_tcp_port", &port, &len));
    CHECK(can_connect(port));
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "program", &r);
    lbm_src_t *src = net_source(ctx, "program");
    CHECK_STR(rcv_text(rcv, "transport_lbtrm_nak_generation_interval"), "5");
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    net_send(src, "1");
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}
