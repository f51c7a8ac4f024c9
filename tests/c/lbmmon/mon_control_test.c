/* Control messages: an operator's request to the context that carries records, and what the process does. */
#include <unistd.h>

#include <lbm/lbmmon.h>

#include "um_test.h"
#include "um_test_net.h"
#include "um_test_mon.h"

#define WITH_PORT MON_NET ";context|request_tcp_bind_request_port=1;context|request_tcp_interface=127.0.0.1/32"

/* The operator: a context that sends requests, and the last answer. */
struct commander {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int answers;
    char text[512];
    lbm_context_t *ctx;
};

#define COMMANDER_INIT                                                                                                 \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                                         \
    }

static int on_answer(lbm_request_t *request, lbm_msg_t *msg, void *clientd)
{
    struct commander *me = clientd;
    if (msg->type == LBM_MSG_RESPONSE) {
        pthread_mutex_lock(&me->lock);
        snprintf(me->text, sizeof me->text, "%.*s", (int)msg->len, msg->data);
        me->answers++;
        pthread_cond_broadcast(&me->changed);
        pthread_mutex_unlock(&me->lock);
    }
    return 0;
}

/* Bytes as they are, to where the process takes commands; waits for the answer. */
static void request(struct commander *me, const char *bytes, size_t len)
{
    char target[80];
    lbm_request_t *request;
    snprintf(target, sizeof target, "TCP:%s", lbmmon_transport_lbm_ctrlmsgtarget());
    pthread_mutex_lock(&me->lock);
    int wanted = me->answers + 1;
    pthread_mutex_unlock(&me->lock);
    MUST(lbm_unicast_immediate_request(&request, me->ctx, target, NULL, bytes, len, on_answer, me, NULL, 0));
    pthread_mutex_lock(&me->lock);
    bool answered = wait_for_count(&me->changed, &me->lock, &me->answers, wanted);
    pthread_mutex_unlock(&me->lock);
    MUST(lbm_request_delete(request));
    REQUIRE(answered);
}

static const char *command(struct commander *me, const char *name, const char *data, const char *node,
                           const char *appid)
{
    char message[1024], packet[1100];
    size_t len = sizeof message;
    REQUIRE(lbmmon_control_serialize(message, &len, lbmmon_control_index_for_command((char *)name), (char *)data,
                                     lbmmon_control_index_for_node_type((char *)node), (char *)appid) == 0);
    lbmmon_add_header(packet, message, len, LBMMON_PACKET_TYPE_CONTROL_MESSAGE);
    request(me, packet, len + 12);
    return me->text;
}

TEST(an_operator_samples_and_changes_intervals)
{
    TEST_NEEDS_NET();
    struct mon_seen seen = MON_SEEN_INIT;
    struct commander me = COMMANDER_INIT;
    lbmmon_sctl_t *control;
    lbm_context_t *ctx = net_context();
    lbm_event_queue_t *evq;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    me.ctx = net_context();
    mon_listen(&seen, lbmmon_format_csv_module(), NULL, lbmmon_transport_lbm_module(), MON_NET);
    MON_MUST(lbmmon_sctl_create(&control, lbmmon_format_csv_module(), NULL, lbmmon_transport_lbm_module(), WITH_PORT));
    CHECK_CONTAINS(lbmmon_transport_lbm_ctrlmsgtarget(), "127.0.0.1:");
    MON_MUST(lbmmon_context_monitor(control, ctx, "first", 1));
    MON_MUST(lbmmon_evq_monitor(control, evq, "second", 0));
    CHECK(mon_wait(&seen, &seen.contexts, 1)); /* the topic is resolved */

    /* Interval off, for contexts; then samples by command alone. */
    CHECK_STR(command(&me, "set_interval", "0", "CONTEXT", NULL), "ok: 1 objects");
    CHECK_STR(command(&me, "SAMPLE", NULL, "EVENT_QUEUE", NULL), "ok");
    CHECK(mon_wait(&seen, &seen.event_queues, 1));
    CHECK_STR(command(&me, "SNAP", NULL, "ALL_NODES", "second"), "ok");
    CHECK(mon_wait(&seen, &seen.event_queues, 2));
    int before = mon_count(&seen, &seen.contexts);
    CHECK_STR(command(&me, "SAMPLE", NULL, "ALL_NODES", "first"), "ok");
    CHECK(mon_wait(&seen, &seen.contexts, before + 1));
    CHECK_EQ(mon_count(&seen, &seen.event_queues), 2);
    CHECK_STR(command(&me, "CLEAR_INTERVAL", NULL, "ALL_NODES", "first"), "ok: 1 objects");
    before = mon_count(&seen, &seen.contexts);
    CHECK(mon_wait(&seen, &seen.contexts, before + 1)); /* by itself again */

    CHECK_CONTAINS(command(&me, "SET_INTERVAL", "soon", "ALL_NODES", NULL), "error: interval \"soon\"");
    CHECK_CONTAINS(command(&me, "SAMPLE", NULL, "UMESTORE", NULL), "error: this process has no objects");
    CHECK_CONTAINS(command(&me, "SET_FILTER_OPTIONS", "x=1", "ALL_NODES", NULL), "error: the format");
    CHECK_CONTAINS(command(&me, "SET_DEBUG_INFO", "1", "ALL_NODES", NULL), "error: debug commands are not allowed");
    request(&me, "noise", 5);
    CHECK_STR(me.text, "error: not a control message");

    MON_MUST(lbmmon_sctl_destroy(control));
    CHECK(lbmmon_transport_lbm_ctrlmsgtarget() == NULL);
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    MUST(lbm_event_queue_delete(evq));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(me.ctx));
}

TEST(an_operator_sets_and_clears_filters)
{
    TEST_NEEDS_NET();
    struct mon_seen seen = MON_SEEN_INIT;
    struct commander me = COMMANDER_INIT;
    lbmmon_sctl_t *control;
    lbm_context_t *ctx = net_context();
    lbm_event_queue_t *evq;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    me.ctx = net_context();
    mon_listen(&seen, lbmmon_format_pb_module(), NULL, lbmmon_transport_lbm_module(), MON_NET);
    MON_MUST(lbmmon_sctl_create(&control, lbmmon_format_pb_module(), "filter|ums.stats.context.send_blocked=off",
                                lbmmon_transport_lbm_module(), WITH_PORT));
    MON_MUST(lbmmon_context_monitor(control, ctx, "first", 1));
    MON_MUST(lbmmon_evq_monitor(control, evq, "second", 0));
    CHECK(mon_wait(&seen, &seen.contexts, 1)); /* the topic is resolved */
    CHECK_STR(command(&me, "SET_INTERVAL", "0", "CONTEXT", NULL), "ok: 1 objects");

    CHECK_STR(command(&me, "SET_FILTER_OPTIONS", "filter|ums.stats.event_queues=off", "ALL_NODES", NULL),
              "ok: 1 rules, 1 of them about records of this process");
    for (int i = 0; i < 3; i++) {
        int before = mon_count(&seen, &seen.contexts);
        CHECK_STR(command(&me, "SAMPLE", NULL, "ALL_NODES", NULL), "ok");
        CHECK(mon_wait(&seen, &seen.contexts, before + 1)); /* sent after that of the queue would have been */
    }
    CHECK_EQ(mon_count(&seen, &seen.event_queues), 0);
    CHECK_CONTAINS(command(&me, "SET_FILTER_OPTIONS", "filter|ums.nothing=off", "ALL_NODES", NULL),
                   "error: ums.nothing: there is no field \"nothing\"");
    static const char *const without_a_rule[] = {" ;\n", "# a comment alone", "x=1", "passthrough=on", "nonsense"};
    for (size_t i = 0; i < sizeof without_a_rule / sizeof without_a_rule[0]; i++) {
        CHECK_CONTAINS(command(&me, "SET_FILTER_OPTIONS", without_a_rule[i], "ALL_NODES", NULL),
                       "error: SET_FILTER_OPTIONS needs");
    }
    CHECK_CONTAINS(command(&me, "SET_FILTER_OPTIONS", "filter|ump=off", "UMESTORE", NULL),
                   "error: this process has no objects of that node type");
    CHECK_CONTAINS(command(&me, "SET_FILTER_OPTIONS", "filter|ump.stats=off\nselect|dro.stats.portals.cost=gt 1",
                           "ALL_NODES", NULL),
                   "ok: 2 rules, kept, but this process has nothing for them to filter");
    CHECK_STR(command(&me, "SAMPLE", NULL, "ALL_NODES", NULL), "ok");
    CHECK(mon_wait(&seen, &seen.event_queues, 1));
    CHECK_STR(command(&me, "CLEAR_FILTER_OPTIONS", NULL, "ALL_NODES", NULL),
              "ok: 1 rules, 1 of them about records of this process"); /* that of the beginning */

    MON_MUST(lbmmon_sctl_destroy(control));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    MUST(lbm_event_queue_delete(evq));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(me.ctx));
}

TEST(without_a_request_port_there_is_no_target)
{
    TEST_NEEDS_NET();
    lbmmon_sctl_t *control;
    MON_MUST(lbmmon_sctl_create(&control, lbmmon_format_csv_module(), NULL, lbmmon_transport_lbm_module(), MON_NET));
    CHECK(lbmmon_transport_lbm_ctrlmsgtarget() == NULL);
    MON_MUST(lbmmon_sctl_destroy(control));
}

TEST(debug_commands_need_a_switch)
{
    TEST_NEEDS_NET();
    void *end;
    CHECK_EQ(lbmmon_transport_lbm_initsrc(&end, MON_NET), 0);
    CHECK_EQ(lbmmon_transport_allow_debug(end), 0);
    CHECK_EQ(lbmmon_transport_lbm_src_finish(end), 0);
    CHECK_EQ(lbmmon_transport_lbm_initsrc(&end, MON_NET ";allow_debug=on"), 0);
    CHECK_EQ(lbmmon_transport_allow_debug(end), 1);
    CHECK_EQ(lbmmon_transport_lbm_src_finish(end), 0);
    CHECK_EQ(lbmmon_transport_lbm_initsrc(&end, MON_NET ";allow_debug=perhaps"), -1);
    CHECK_CONTAINS(lbmmon_transport_lbm_errmsg(), "must be on or off");
}

/* A transport whose operator never stops asking. */
enum { ASKED = 100 };
static char asking[512];
static size_t asking_len;
static atomic_int asked, samples, refusals;

static int ask_again(char *data, size_t *len, void *clientd)
{
    if (asked == ASKED) {
        return 1;
    }
    memcpy(data, asking, asking_len);
    *len = asking_len;
    return 0;
}

static int take_answer(const char *data, size_t len, void *clientd)
{
    samples += strcmp(data, "ok") == 0;
    refusals += strstr(data, "at most 10 samples a second") != NULL;
    asked++;
    return 0;
}

static const char *anywhere(void)
{
    return "anywhere";
}

static int send_nowhere(const char *data, size_t len, void *clientd)
{
    return 0;
}

TEST(who_asks_for_samples_without_end_gets_ten_a_second)
{
    static const lbmmon_transport_func_t transport = {.mSend = send_nowhere,
                                                      .mControlMessageTarget = anywhere,
                                                      .mControlMessageReceive = ask_again,
                                                      .mControlMessageResponse = take_answer};
    lbmmon_sctl_t *control;
    char message[256];
    asking_len = sizeof message;
    REQUIRE(lbmmon_control_serialize(message, &asking_len, lbmmon_control_index_for_command((char *)"SNAP"), NULL,
                                     lbmmon_control_index_for_node_type((char *)"ALL_NODES"), NULL) == 0);
    lbmmon_add_header(asking, message, asking_len, LBMMON_PACKET_TYPE_CONTROL_MESSAGE);
    asking_len += 12;
    MON_MUST(lbmmon_sctl_create(&control, lbmmon_format_csv_module(), NULL, &transport, NULL));
    while (asked < ASKED) {
        sleep_ms(1);
    }
    MON_MUST(lbmmon_sctl_destroy(control));
    CHECK(samples >= 10);
    CHECK(refusals > 0);
    CHECK_EQ(samples + refusals, ASKED);
}

TEST(commands_and_node_types_have_names)
{
    char out[64];
    size_t len = 1;
    CHECK_EQ(lbmmon_control_index_for_command((char *)"SET_INTERVAL"), 0);
    CHECK_EQ(lbmmon_control_index_for_command((char *)"clear_debug_info"), 7);
    CHECK_EQ(lbmmon_control_index_for_command((char *)"explode"), -1);
    CHECK_CONTAINS(lbmmon_control_errmsg(), "SET_INTERVAL, CLEAR_INTERVAL, SAMPLE, SNAP");
    CHECK_EQ(lbmmon_control_index_for_node_type((char *)"GATEWAY"), 8);
    CHECK_EQ(lbmmon_control_index_for_node_type(NULL), -1);
    CHECK_CONTAINS(lbmmon_control_valid_node_types(), "ALL_NODES, CONTEXT");
    CHECK_EQ(lbmmon_control_serialize(out, &len, 2, NULL, 0, (char *)"app"), -1);
    CHECK(len > 1);
    CHECK_EQ(lbmmon_control_serialize(out, &len, 99, NULL, 0, NULL), -1);
    CHECK_CONTAINS(lbmmon_control_errmsg(), "Command 99");
}

TEST(data_of_commands_come_from_files)
{
    char name[] = "/tmp/um_mon_control_XXXXXX", *data;
    int fd = mkstemp(name);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, "a=1\n", 4), 4);
    close(fd);
    CHECK_EQ(lbmmon_control_load_data_from_filename(name, &data), 0);
    CHECK_STR(data, "a=1\n");
    free(data);
    unlink(name);
    CHECK_EQ(lbmmon_control_load_data_from_filename(name, &data), -1);
    CHECK_CONTAINS(lbmmon_control_errmsg(), name);
}

/* A daemon's own records: the packet names the format, so that a controller finds it. */
TEST(records_of_daemons_are_sent_with_a_head)
{
    TEST_NEEDS_NET();
    struct mon_seen seen = MON_SEEN_INIT;
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = net_source(ctx, "/29west/statistics");
    mon_listen(&seen, lbmmon_format_csv_module(), "passthrough=on", lbmmon_transport_lbm_module(), MON_NET);
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    MUST(lbm_src_send_lbmmon_stats(src, (char *)"protobuf", 8, LBMMON_PACKET_TYPE_SRS));
    MUST(lbm_src_flush(src));
    CHECK(mon_wait(&seen, &seen.passed, 1));
    CHECK_EQ(seen.passed_type, LBMMON_PACKET_TYPE_SRS);
    CHECK_EQ(seen.attributes.mModuleID, 0x0201);
    CHECK_EQ(seen.passed_len, 8);
    CHECK(memcmp(seen.passed_data, "protobuf", 8) == 0);
    CHECK_EQ(lbm_src_send_lbmmon_stats(src, NULL, 8, 6), -1);
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}
