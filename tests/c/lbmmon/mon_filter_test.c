/* Filters of the format `pb`: which records and fields they keep back, which rules are refused, what is told about
 * them; and that they act on what a process sends, set at its start or by a command. */
#include <lbm/lbmmon.h>
#include <lbm/um.h>

#include "lbmmon/um_mon_packet.h"
#include "lbmmon/um_mon_pb.h"
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_mon.h"

enum { ROOM = 65535, KEPT_BACK = 1 };

static char packed[ROOM];
static size_t size;
static unsigned short id;

static void *with(const char *options)
{
    void *module = NULL;
    if (lbmmon_format_pb_init(&module, options) != 0) {
        fprintf(stderr, "%s: %s\n", options, lbmmon_format_pb_errmsg());
        abort();
    }
    return module;
}

/* A receiver's record over LBT-RM that has lost so many, as the rules leave it. */
static int write_receiver(const char *options, const char *source, unsigned long lost)
{
    void *module = with(options);
    lbm_rcv_transport_stats_t stats = {.type = LBM_TRANSPORT_STAT_LBTRM};
    lbmmon_packet_attributes_t attributes;
    um_mon_attributes_init(&attributes);
    attributes.mFlags = UM_MON_HAS(LBMMON_ATTR_APPSOURCEID) | UM_MON_HAS(LBMMON_ATTR_OBJECTID);
    strcpy(attributes.mApplicationSourceID, "Desk 7");
    attributes.mObjectID = 300;
    snprintf(stats.source, sizeof stats.source, "%s", source);
    stats.transport.lbtrm.lost = lost;
    stats.transport.lbtrm.msgs_rcved = 1000;
    stats.transport.lbtrm.out_of_order = 5;
    size = ROOM;
    int rc = lbmmon_rcv_format_pb_serialize(packed, &size, &id, &attributes, &stats, module);
    lbmmon_format_pb_finish(module);
    return rc;
}

static lbm_rcv_transport_stats_t read_receiver(void)
{
    lbm_rcv_transport_stats_t stats;
    lbmmon_packet_attributes_t attributes = {0};
    REQUIRE(lbmmon_rcv_format_pb_deserialize(&attributes, &stats, packed, size, id, NULL) == 0);
    return stats;
}

#define LBTRM "LBTRM:10.1.1.5:14400:a1b2c3d4:224.1.1.1:14400"
#define LOST "ums.stats.receiver_transports.lbtrm.lost"

TEST(filters_leave_fields_out_of_records)
{
    CHECK_EQ(write_receiver("", LBTRM, 7), 0);
    size_t whole = size;
    CHECK_EQ(write_receiver("filter|" LOST "=on", LBTRM, 7), 0);
    CHECK_EQ(size, whole);
    CHECK_EQ(write_receiver("filter|" LOST "=off", LBTRM, 7), 0);
    lbm_rcv_transport_stats_t stats = read_receiver();
    CHECK(size < whole);
    CHECK_EQ(stats.transport.lbtrm.lost, 0);
    CHECK_EQ(stats.transport.lbtrm.msgs_rcved, 1000);
    CHECK_EQ(stats.transport.lbtrm.out_of_order, 5);
    CHECK_STR(stats.source, LBTRM);

    static const struct {
        const char *rule;
        unsigned long lost;
        bool kept;
    } cases[] = {{"eq 7", 7, true},
                 {"eq 7", 8, false},
                 {"ne 7", 7, false},
                 {"ne 7", 8, true},
                 {"lt 7", 6, true},
                 {"lt 7", 7, false},
                 {"gt 7", 7, false},
                 {"gt 7", 8, true},
                 {"GT  7", 8, true},
                 {"on", 8, true},
                 {"gt 18446744073709551614", ULONG_MAX, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char rule[128];
        snprintf(rule, sizeof rule, "filter|%s=%s", LOST, cases[i].rule);
        CHECK_EQ(write_receiver(rule, LBTRM, cases[i].lost), 0);
        CHECK_EQ(read_receiver().transport.lbtrm.lost, cases[i].kept ? cases[i].lost : 0);
    }
    /* All of a receiver's counters but the source: the record is that of a receiver still. */
    CHECK_EQ(write_receiver("filter|" LOST "=off;filter|ums.stats.receiver_transports.lbtrm.msgs_rcved=off\n"
                            "filter|ums.stats.receiver_transports.lbtrm.out_of_order=off",
                            LBTRM, 7),
             0);
    CHECK_EQ(read_receiver().type, LBM_TRANSPORT_STAT_LBTRM);
    CHECK_EQ(read_receiver().transport.lbtrm.out_of_order, 0);
}

TEST(the_last_filter_of_a_field_holds)
{
    CHECK_EQ(write_receiver("filter|" LOST "=off;filter|" LOST "=on", LBTRM, 7), 0);
    CHECK_EQ(read_receiver().transport.lbtrm.lost, 7);
    CHECK_EQ(write_receiver("filter|" LOST "=on;filter|" LOST "=gt 9", LBTRM, 7), 0);
    CHECK_EQ(read_receiver().transport.lbtrm.lost, 0);
}

TEST(messages_that_are_left_out_keep_back_the_record)
{
    CHECK_EQ(write_receiver("filter|ums=off", LBTRM, 7), KEPT_BACK);
    CHECK_EQ(write_receiver("filter|ums.stats=off", LBTRM, 7), KEPT_BACK);
    CHECK_EQ(write_receiver("filter|ums.stats.receiver_transports=off", LBTRM, 7), KEPT_BACK);
    CHECK_EQ(write_receiver("filter|ums.stats.receiver_transports.lbtrm=off", LBTRM, 7), KEPT_BACK);
    CHECK_EQ(write_receiver("filter|ums.stats.receiver_transports.tcp=off", LBTRM, 7), 0);
    CHECK_EQ(write_receiver("filter|ums.stats.source_transports=off", LBTRM, 7), 0);
    CHECK_EQ(write_receiver("filter|ump=off;filter|dro=off", LBTRM, 7), 0);
    CHECK_EQ(write_receiver("filter|ums.attributes=off", LBTRM, 7), 0);
    CHECK_EQ(read_receiver().transport.lbtrm.lost, 7);
}

TEST(selections_decide_about_records)
{
    static const struct {
        const char *rule;
        bool kept;
    } cases[] = {
        {LOST "=gt 6", true},
        {LOST "=gt 7", false},
        {LOST "=lt 8", true},
        {LOST "=eq 7", true},
        {LOST "=ne 7", false},
        {"ums.stats.receiver_transports.lbtrm.naks_sent=eq 0", true}, /* zero is not in the message */
        {"ums.stats.receiver_transports.lbtrm.naks_sent=gt 0", false},
        {"ums.stats.receiver_transports.tcp.lbm_msgs_rcved=gt 5", true}, /* not about LBT-RM */
        {"ums.stats.context.send_blocked=gt 5", true},                   /* nor about receivers */
        {"ums.stats.receiver_transports.source_string=match " LBTRM, true},
        {"ums.stats.receiver_transports.source_string=match LBTRM", false},
        {"ums.stats.receiver_transports.source_string=match_regx ^LBTRM:10\\.1\\.", true},
        {"ums.stats.receiver_transports.source_string=match_regx ^TCP", false},
        {"ums.stats.receiver_transports.source_flag=eq SOURCE_NORMAL", true},
        {"ums.stats.receiver_transports.source_flag=eq SOURCE_IM", false},
        {"ums.attributes.application_id=match Desk 7", true},
        {"ums.attributes.application_id=match Desk 8", false},
        {"ums.attributes.object_id=gt 299", true},
        {"ums.attributes.object_id=lt 300", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char rule[256];
        snprintf(rule, sizeof rule, "select|%s", cases[i].rule);
        int rc = write_receiver(rule, LBTRM, 7);
        if (rc != (cases[i].kept ? 0 : KEPT_BACK)) {
            fprintf(stderr, "%s: %d\n", rule, rc);
        }
        CHECK_EQ(rc, cases[i].kept ? 0 : KEPT_BACK);
    }
    CHECK_EQ(write_receiver("select|" LOST "=gt 6\nselect|" LOST "=lt 7", LBTRM, 7), KEPT_BACK); /* both must hold */
    CHECK_EQ(write_receiver("select|" LOST "=gt 6\nselect|" LOST "=lt 8", LBTRM, 7), 0);
}

/* A store's message: two sources with receivers, and events. */
static int write_store(const char *options, Lbmmon__UMPMonMsg **out)
{
    void *module = with(options);
    Lbmmon__UMPMonMsg message = LBMMON__UMPMON_MSG__INIT;
    Lbmmon__UMPMonMsg__Stats stats = LBMMON__UMPMON_MSG__STATS__INIT;
    Lbmmon__UMPMonMsg__Stats__SrcRepoStat sources[2], *list[] = {&sources[0], &sources[1]};
    Lbmmon__UMPMonMsg__Stats__SrcRepoStat__RcvStat receivers[2], *inner[] = {&receivers[0], &receivers[1]};
    Lbmmon__UMPMonMsg__Events events = LBMMON__UMPMON_MSG__EVENTS__INIT;
    Lbmmon__UMPMonMsg__Events__Event event = LBMMON__UMPMON_MSG__EVENTS__EVENT__INIT, *all[] = {&event};
    for (unsigned i = 0; i < 2; i++) {
        lbmmon__umpmon_msg__stats__src_repo_stat__init(&sources[i]);
        lbmmon__umpmon_msg__stats__src_repo_stat__rcv_stat__init(&receivers[i]);
        sources[i].topic_name = (char *)(i == 0 ? "prices" : "orders");
        sources[i].src_regid = 100 + i;
        receivers[i].rcv_regid = 500 + i;
        receivers[i].high_ack_sqn = i;
    }
    sources[0].rcv_stats = inner;
    sources[0].n_rcv_stats = 2;
    stats.src_repo_stats = list;
    stats.n_src_repo_stats = 2;
    stats.src_count = 2;
    event.event_type = LBMMON__UMPMON_MSG__EVENTS__EVENT_TYPE__SOURCE_DELETED_EVENT;
    events.events = all;
    events.n_events = 1;
    message.stats = &stats;
    message.events = &events;
    size = ROOM;
    int rc =
        lbmmon_store_format_pb_serialize(packed, &size, &id, NULL, &message, LBMMON_SERIALIZE_PACK_MESSAGE, module);
    REQUIRE(stats.n_src_repo_stats == 2); /* the caller's message is as it was */
    REQUIRE(sources[0].n_rcv_stats == 2);
    lbmmon_format_pb_finish(module);
    if (rc == 0) {
        REQUIRE(lbmmon_store_format_pb_deserialize(NULL, out, packed, size, id, NULL) == 0);
    }
    return rc;
}

TEST(elements_of_lists_are_selected_one_by_one)
{
    Lbmmon__UMPMonMsg *store;
    CHECK_EQ(write_store("select|ump.stats.src_repo_stats.topic_name=match prices", &store), 0);
    CHECK_EQ(store->stats->n_src_repo_stats, 1);
    CHECK_EQ(store->stats->src_repo_stats[0]->src_regid, 100);
    CHECK_EQ(store->stats->src_repo_stats[0]->n_rcv_stats, 2);
    CHECK_EQ(store->stats->src_count, 2);
    CHECK_EQ(store->events->n_events, 1);
    lbmmon_store_free_unpacked(store);

    CHECK_EQ(write_store("select|ump.stats.src_repo_stats.rcv_stats.high_ack_sqn=gt 0", &store), 0);
    CHECK_EQ(store->stats->n_src_repo_stats, 2);
    CHECK_EQ(store->stats->src_repo_stats[0]->n_rcv_stats, 1);
    CHECK_EQ(store->stats->src_repo_stats[0]->rcv_stats[0]->rcv_regid, 501);
    lbmmon_store_free_unpacked(store);

    CHECK_EQ(write_store("select|ump.events.events.event_type=eq STORE_CREATED_EVENT", &store), 0);
    CHECK(store->events == NULL); /* nothing was left in it */
    CHECK_EQ(store->stats->n_src_repo_stats, 2);
    lbmmon_store_free_unpacked(store);

    CHECK_EQ(write_store("select|ump.events.events.event_type=eq 1;filter|ump.stats=off", &store), KEPT_BACK);
    CHECK_EQ(write_store("select|ums.stats.context.send_blocked=gt 1", &store), 0);
    lbmmon_store_free_unpacked(store);
}

TEST(wrong_rules_are_refused_by_name_and_change_nothing)
{
    static const char *const wrong[][2] = {
        {"filter", "must be filter|FIELD="},
        {"filters=1", "must be filter|FIELD="},
        {"select.ums=1", "must be filter|FIELD="},
        {"filter|ums.stats", "must be off, on, eq"},
        {"filter|ums.stats=perhaps", "must be off, on, eq"},
        {"filter|ums.stats=match x", "must be off, on, eq"},
        {"select|" LOST "=on", "must be eq, ne, lt, gt, match or match_regx"},
        {"filter|srs.stats=off", "must begin with ums, ump or dro"},
        {"filter|ums.stats.nothing=off", "no field \"nothing\""},
        {"filter|" LOST ".deeper=off", "no field \"deeper\""},
        {"filter|ums..stats=off", "no field \"\""},
        {"filter|" LOST "=off 1", "take no value"},
        {"filter|" LOST "=gt", "must be a number"},
        {"filter|" LOST "=gt x", "must be a number"},
        {"filter|" LOST "=gt -1", "must be a number"},
        {"filter|" LOST "=gt 18446744073709551616", "must be a number"},
        {"select|ums.stats.context=gt 1", "for numbers"},
        {"select|ums=gt 1", "for numbers"},
        {"select|ums.attributes.application_id=gt 1", "for numbers"},
        {"select|" LOST "=match 1", "for texts"},
        {"select|ums.attributes.application_id=match_regx (", "pattern \"(\": missing"},
    };
    void *module = with("passthrough=on;filter|" LOST "=off");
    char text[ROOM];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        void *none = NULL;
        CHECK_EQ(lbmmon_format_pb_init(&none, wrong[i][0]), -1);
        CHECK(none == NULL);
        CHECK_CONTAINS(lbmmon_format_pb_errmsg(), wrong[i][1]);
        CHECK_EQ(lbmmon_format_pb_apply_format_options(module, wrong[i][0]), -1);
        CHECK(lbmmon_store_format_pb_filter_options(wrong[i][0]) == NULL);
    }
    memset(text, 'x', sizeof text - 1);
    memcpy(text, "select|ums.attributes.application_id=match_regx ", 48);
    text[400] = '\0';
    CHECK_EQ(lbmmon_format_pb_apply_format_options(module, text), -1);
    CHECK_CONTAINS(lbmmon_format_pb_errmsg(), "too long");
    text[400] = 'x';
    text[1200] = '\0';
    CHECK_EQ(lbmmon_format_pb_apply_format_options(module, text), -1);
    size_t len = 0;
    for (int i = 0; i < 257; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "select|" LOST "=ne %d\n", i);
    }
    CHECK_EQ(lbmmon_format_pb_apply_format_options(module, text), -1);
    CHECK_CONTAINS(lbmmon_format_pb_errmsg(), "256 rules at most");

    lbm_rcv_transport_stats_t stats = {.type = LBM_TRANSPORT_STAT_LBTRM, .transport.lbtrm.lost = 3};
    size = ROOM;
    CHECK_EQ(lbmmon_rcv_format_pb_serialize(packed, &size, &id, NULL, &stats, module), 0);
    CHECK_EQ(read_receiver().transport.lbtrm.lost, 0); /* the first rule holds */
    lbmmon_format_pb_finish(module);
}

static unsigned long lost_with(void *module)
{
    lbm_rcv_transport_stats_t stats = {.type = LBM_TRANSPORT_STAT_LBTRM, .transport.lbtrm.lost = 3};
    stats.transport.lbtrm.naks_sent = 4;
    size = ROOM;
    REQUIRE(lbmmon_rcv_format_pb_serialize(packed, &size, &id, NULL, &stats, module) == 0);
    stats = read_receiver();
    return stats.transport.lbtrm.lost * 10 + stats.transport.lbtrm.naks_sent;
}

TEST(rules_replace_those_before_and_none_brings_back_the_first)
{
    void *module = with("filter|" LOST "=off");
    char defaults[ROOM];
    CHECK_EQ(lost_with(module), 4);
    CHECK_EQ(lbmmon_format_pb_apply_format_options(module,
                                                   "# a file has comments; filter|nothing=off\n\n"
                                                   "  filter|ums.stats.receiver_transports.lbtrm.naks_sent=off\r\n"),
             0);
    CHECK_EQ(lost_with(module), 30);
    CHECK_EQ(lbmmon_format_pb_default_filter_options(module, defaults, sizeof defaults), 0);
    CHECK_EQ(lbmmon_format_pb_apply_format_options(module, ""), 0);
    CHECK_EQ(lost_with(module), 4);
    CHECK_EQ(lbmmon_format_pb_apply_format_options(module, "filter|ums.stats=on"), 0);
    CHECK_EQ(lost_with(module), 34);
    CHECK_EQ(lbmmon_format_pb_apply_format_options(module, defaults), 0); /* the text says what the first rules were */
    CHECK_EQ(lost_with(module), 4);
    lbmmon_format_pb_finish(module);
}

TEST(the_defaults_are_every_field_and_can_be_given_back)
{
    static char text[ROOM], own[ROOM];
    CHECK_EQ(lbmmon_format_pb_default_filter_options(NULL, text, sizeof text), 0);
    CHECK_CONTAINS(text, "filter|ums.stats.context.rcv_cb_svc_time_mean=on;\n");
    CHECK_CONTAINS(text, "filter|" LOST "=on;\n");
    CHECK_CONTAINS(text, "filter|ums.events.wildcard_receivers.type=on;\n");
    void *module = with("select|" LOST "=gt 1");
    CHECK_EQ(lbmmon_format_pb_default_filter_options(module, own, sizeof own), 0);
    CHECK(strncmp(own, text, strlen(text)) == 0);
    CHECK_STR(own + strlen(text), "select|" LOST "=gt 1;\n");
    CHECK_EQ(lbmmon_format_pb_apply_format_options(module, text), 0);
    lbmmon_format_pb_finish(module);
    size_t len = strlen(text);
    CHECK_EQ(lbmmon_format_pb_default_filter_options(NULL, text, len), -1);
    CHECK_CONTAINS(lbmmon_format_pb_errmsg(), "Size at least");
    CHECK_EQ(lbmmon_format_pb_default_filter_options(NULL, text, len + 1), 0);
    CHECK_EQ(lbmmon_format_pb_default_filter_options(NULL, NULL, 0), -1);

    CHECK_EQ(lbmmon_format_pb_default_store_filter_options(text, sizeof text), 0);
    CHECK_CONTAINS(text, "filter|ump.stats.src_repo_stats.src_disk_stat.max_offset=on;\n");
    CHECK(strstr(text, "|ums.") == NULL);
    CHECK_EQ(lbmmon_format_pb_default_store_filter_options(text, 10), -1);
}

TEST(a_store_takes_its_part_of_the_options)
{
    char *part = lbmmon_format_pb_module()->mStoreFilterOptions(
        "passthrough=on;filter|ums.stats=off;filter|ump.stats.src_repo_stats.uls=GT 5;"
        "select|ump.stats.src_repo_stats.topic_name=match_regx ^a=b,c;filter|ump.configs=on;filter|ump.events=off");
    CHECK_STR(part, "filter|ump.stats.src_repo_stats.uls=gt 5;\n"
                    "select|ump.stats.src_repo_stats.topic_name=match_regx ^a=b,c;\nfilter|ump.events=off;\n");
    char *again = lbmmon_store_format_pb_filter_options(part);
    CHECK_STR(again, part);
    free(again);
    free(part);
    part = lbmmon_store_format_pb_filter_options("filter|ums.stats=off");
    CHECK_STR(part, "");
    free(part);
    part = lbmmon_store_format_pb_filter_options(NULL);
    CHECK_STR(part, "");
    free(part);
}

/* ---- what a process sends ---- */

static um_mon_src_stats_t counts_of(lbmmon_sctl_t *control)
{
    um_mon_src_stats_t counts;
    MUST(um_mon_src_stats(control, &counts));
    return counts;
}

TEST(filters_act_on_what_a_controller_sends)
{
    TEST_NEEDS_NET();
    struct mon_seen seen = MON_SEEN_INIT;
    lbmmon_sctl_t *control;
    lbm_context_t *ctx = net_context();
    lbm_event_queue_t *evq;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    const char *opts = "address=127.0.0.1;port=2947";
    mon_listen(&seen, lbmmon_format_pb_module(), NULL, lbmmon_transport_udp_module(), opts);
    MON_MUST(lbmmon_sctl_create(&control, lbmmon_format_pb_module(), "filter|ums.stats.event_queues=off",
                                lbmmon_transport_udp_module(), opts));
    MON_MUST(lbmmon_evq_monitor(control, evq, "first", 0));
    MON_MUST(lbmmon_context_monitor(control, ctx, "second", 0));
    for (int i = 1; i <= 3; i++) {
        MON_MUST(lbmmon_sctl_sample(control));
        CHECK(mon_wait(&seen, &seen.contexts, i)); /* the queue's record would have come before it */
    }
    CHECK_EQ(mon_count(&seen, &seen.event_queues), 0);
    CHECK_EQ(counts_of(control).filtered, 3);
    CHECK_EQ(counts_of(control).not_written, 0);
    CHECK_EQ(
        lbmmon_sctl_create(&control, lbmmon_format_pb_module(), "filter|x=off", lbmmon_transport_udp_module(), opts),
        -1);
    CHECK_EQ(lbmmon_errnum(), LBMMON_EMODFAIL);
    CHECK_CONTAINS(lbmmon_errmsg(), "must begin with ums, ump or dro");
    MON_MUST(lbmmon_sctl_destroy(control));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    MUST(lbm_event_queue_delete(evq));
    MUST(lbm_context_delete(ctx));
}
