/* Arguments of every implemented lbm_* call, through the public headers only: NULL is LBM_EINVAL with a text, never a
 * crash, and nothing is written; what the documentation bounds is bounded. */
#include "um_test.h"

#include <lbm/lbm.h>
#include <lbm/lbmaux.h>
#include <lbm/um.h>

#include "um_test_rcv.h"

static int refused, accepted;

/* Each call must fail with LBM_EINVAL and a text; all that do not are listed before the test fails. */
static void expect_refusal(const char *call, int rc)
{
    if (rc == -1 && lbm_errnum() == LBM_EINVAL && lbm_errmsg()[0] != '\0') {
        refused++;
    } else {
        accepted++;
        fprintf(stderr, "%s: returned %d, error %d: %s\n", call, rc, lbm_errnum(), lbm_errmsg());
    }
    lbm_seterr(0, "");
}
#define REFUSED(call) expect_refusal(#call, (call))
#define REFUSED_NULL(call) expect_refusal(#call, (call) == NULL ? -1 : 0)

struct objects {
    lbm_context_t *ctx;
    lbm_event_queue_t *evq;
    lbm_topic_t *src_topic, *rcv_topic;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    lbm_wildcard_rcv_t *wrcv;
};

static int ignore(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    return 0;
}

static int on_timer(lbm_context_t *ctx, const void *clientd)
{
    return 0;
}

static int on_fd(lbm_context_t *ctx, lbm_handle_t handle, lbm_ulong_t ev, void *clientd)
{
    return 0;
}

static struct objects make_objects(void)
{
    struct objects o = {.ctx = net_context()};
    MUST(lbm_event_queue_create(&o.evq, NULL, NULL, NULL));
    MUST(lbm_src_topic_alloc(&o.src_topic, o.ctx, "arguments", NULL));
    MUST(lbm_src_create(&o.src, o.ctx, o.src_topic, NULL, NULL, NULL));
    MUST(lbm_rcv_topic_lookup(&o.rcv_topic, o.ctx, "arguments", NULL));
    MUST(lbm_rcv_create(&o.rcv, o.ctx, o.rcv_topic, ignore, NULL, NULL));
    MUST(lbm_wildcard_rcv_create(&o.wrcv, o.ctx, "^none$", NULL, NULL, ignore, NULL, NULL));
    return o;
}

static void delete_objects(struct objects *o)
{
    MUST(lbm_wildcard_rcv_delete(o->wrcv));
    MUST(lbm_rcv_delete(o->rcv));
    MUST(lbm_src_delete(o->src));
    MUST(lbm_context_delete(o->ctx));
    MUST(lbm_event_queue_delete(o->evq));
}

/* What every family of attribute objects has. `option` exists in the scope. */
#define FAMILY(prefix, option)                                                                                         \
    do {                                                                                                               \
        prefix##_t *attr;                                                                                              \
        char text[256];                                                                                                \
        size_t len = sizeof text;                                                                                      \
        int entries = 1;                                                                                               \
        lbm_config_option_t entry;                                                                                     \
        MUST(prefix##_create(&attr));                                                                                  \
        REFUSED(prefix##_create(NULL));                                                                                \
        REFUSED(prefix##_delete(NULL));                                                                                \
        REFUSED(prefix##_setopt(NULL, option, text, 4));                                                               \
        REFUSED(prefix##_setopt(attr, NULL, text, 4));                                                                 \
        REFUSED(prefix##_setopt(attr, option, NULL, 4));                                                               \
        REFUSED(prefix##_setopt(attr, option, text, 3));                                                               \
        REFUSED(prefix##_str_setopt(NULL, option, "1"));                                                               \
        REFUSED(prefix##_str_setopt(attr, NULL, "1"));                                                                 \
        REFUSED(prefix##_str_setopt(attr, option, NULL));                                                              \
        REFUSED(prefix##_str_setopt(attr, "no_such_option", "1"));                                                     \
        REFUSED(prefix##_getopt(NULL, option, text, &len));                                                            \
        REFUSED(prefix##_getopt(attr, NULL, text, &len));                                                              \
        REFUSED(prefix##_getopt(attr, option, NULL, &len));                                                            \
        REFUSED(prefix##_getopt(attr, option, text, NULL));                                                            \
        len = 1;                                                                                                       \
        REFUSED(prefix##_getopt(attr, option, text, &len));                                                            \
        len = sizeof text;                                                                                             \
        REFUSED(prefix##_str_getopt(NULL, option, text, &len));                                                        \
        REFUSED(prefix##_str_getopt(attr, NULL, text, &len));                                                          \
        REFUSED(prefix##_str_getopt(attr, option, NULL, &len));                                                        \
        REFUSED(prefix##_str_getopt(attr, option, text, NULL));                                                        \
        len = 79;                                                                                                      \
        REFUSED(prefix##_str_getopt(attr, option, text, &len));                                                        \
        REFUSED(prefix##_dump(NULL, &entries, &entry));                                                                \
        REFUSED(prefix##_dump(attr, NULL, &entry));                                                                    \
        REFUSED(prefix##_dump(attr, &entries, NULL));                                                                  \
        MUST(prefix##_delete(attr));                                                                                   \
    } while (0)

#define FAMILY_COPIES(prefix)                                                                                          \
    do {                                                                                                               \
        prefix##_t *attr, *copy;                                                                                       \
        MUST(prefix##_create(&attr));                                                                                  \
        REFUSED(prefix##_create_default(NULL));                                                                        \
        REFUSED(prefix##_dup(NULL, attr));                                                                             \
        REFUSED(prefix##_dup(&copy, NULL));                                                                            \
        MUST(prefix##_delete(attr));                                                                                   \
    } while (0)

TEST(attribute_calls_refuse_null_and_wrong_sizes)
{
    refused = accepted = 0;
    FAMILY(lbm_context_attr, "resolver_cache");
    FAMILY(lbm_src_topic_attr, "ume_flight_size_behavior");
    FAMILY(lbm_rcv_topic_attr, "ordered_delivery");
    FAMILY(lbm_wildcard_rcv_attr, "pattern_type");
    FAMILY(lbm_event_queue_attr, "queue_age_enabled");
    FAMILY(lbm_hfx_attr, "ordered_delivery");
    FAMILY(lbm_xsp_attr, "operational_mode");
    FAMILY_COPIES(lbm_context_attr);
    FAMILY_COPIES(lbm_src_topic_attr);
    FAMILY_COPIES(lbm_rcv_topic_attr);
    FAMILY_COPIES(lbm_wildcard_rcv_attr);
    FAMILY_COPIES(lbm_event_queue_attr);
    CHECK_EQ(accepted, 0);
}

TEST(attributes_from_xml_need_the_object_and_the_names_of_topics_and_patterns)
{
    refused = accepted = 0;
    lbm_src_topic_attr_t *src = NULL;
    lbm_rcv_topic_attr_t *rcv = NULL;
    lbm_wildcard_rcv_attr_t *wrcv = NULL;
    lbm_hfx_attr_t *hfx = NULL;
    REFUSED(lbm_context_attr_create_from_xml(NULL, "c"));
    REFUSED(lbm_context_attr_set_from_xml(NULL, "c"));
    REFUSED(lbm_src_topic_attr_create_from_xml(NULL, "c", "t"));
    REFUSED(lbm_src_topic_attr_create_from_xml(&src, "c", NULL));
    REFUSED(lbm_src_topic_attr_set_from_xml(NULL, "c", "t"));
    REFUSED(lbm_rcv_topic_attr_create_from_xml(NULL, "c", "t"));
    REFUSED(lbm_rcv_topic_attr_create_from_xml(&rcv, "c", NULL));
    REFUSED(lbm_rcv_topic_attr_set_from_xml(NULL, "c", "t"));
    REFUSED(lbm_wildcard_rcv_attr_create_from_xml(NULL, "c", "p", LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE));
    REFUSED(lbm_wildcard_rcv_attr_create_from_xml(&wrcv, "c", NULL, LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE));
    REFUSED(lbm_wildcard_rcv_attr_set_from_xml(NULL, "c", "p", LBM_WILDCARD_RCV_PATTERN_TYPE_PCRE));
    REFUSED(lbm_event_queue_attr_create_from_xml(NULL, "q"));
    REFUSED(lbm_event_queue_attr_set_from_xml(NULL, "q"));
    REFUSED(lbm_hfx_attr_create_from_xml(NULL, "t"));
    REFUSED(lbm_hfx_attr_create_from_xml(&hfx, NULL));
    REFUSED(lbm_hfx_attr_set_from_xml(NULL, "t"));
    CHECK_EQ(accepted, 0);
    CHECK(src == NULL && rcv == NULL && wrcv == NULL && hfx == NULL);
}

/* Options and dump of a living object. */
#define LIVE(prefix, dump, object, option)                                                                             \
    do {                                                                                                               \
        char text[256];                                                                                                \
        size_t len = sizeof text;                                                                                      \
        int entries = 1;                                                                                               \
        lbm_config_option_t entry;                                                                                     \
        REFUSED(prefix##_setopt(NULL, option, text, 4));                                                               \
        REFUSED(prefix##_setopt(object, NULL, text, 4));                                                               \
        REFUSED(prefix##_setopt(object, option, NULL, 4));                                                             \
        REFUSED(prefix##_str_setopt(NULL, option, "1"));                                                               \
        REFUSED(prefix##_str_setopt(object, NULL, "1"));                                                               \
        REFUSED(prefix##_str_setopt(object, option, NULL));                                                            \
        REFUSED(prefix##_getopt(NULL, option, text, &len));                                                            \
        REFUSED(prefix##_getopt(object, NULL, text, &len));                                                            \
        REFUSED(prefix##_getopt(object, option, NULL, &len));                                                          \
        REFUSED(prefix##_getopt(object, option, text, NULL));                                                          \
        REFUSED(prefix##_str_getopt(NULL, option, text, &len));                                                        \
        REFUSED(prefix##_str_getopt(object, NULL, text, &len));                                                        \
        REFUSED(prefix##_str_getopt(object, option, NULL, &len));                                                      \
        REFUSED(prefix##_str_getopt(object, option, text, NULL));                                                      \
        REFUSED(dump(NULL, &entries, &entry));                                                                         \
        REFUSED(dump(object, NULL, &entry));                                                                           \
        REFUSED(dump(object, &entries, NULL));                                                                         \
    } while (0)

TEST(options_of_living_objects_refuse_null)
{
    TEST_NEEDS_NET();
    refused = accepted = 0;
    struct objects o = make_objects();
    LIVE(lbm_context, lbm_context_dump, o.ctx, "resolver_cache");
    LIVE(lbm_src, lbm_src_topic_dump, o.src, "ume_flight_size_behavior");
    LIVE(lbm_rcv, lbm_rcv_topic_dump, o.rcv, "ordered_delivery");
    LIVE(lbm_wildcard_rcv, lbm_wildcard_rcv_dump, o.wrcv, "pattern_type");
    LIVE(lbm_event_queue, lbm_event_queue_dump, o.evq, "queue_age_enabled");
    delete_objects(&o);
    CHECK_EQ(accepted, 0);
}

/* Where a program has cast them, or exchanged the two of a wildcard receiver. */
TEST(attribute_objects_of_another_scope_are_refused)
{
    TEST_NEEDS_NET();
    refused = accepted = 0;
    lbm_context_t *ctx = net_context(), *other;
    lbm_topic_t *topic;
    lbm_wildcard_rcv_t *wrcv;
    lbm_event_queue_t *evq;
    lbm_event_queue_attr_t *small;
    lbm_rcv_topic_attr_t *rcv;
    lbm_wildcard_rcv_attr_t *wildcard;
    MUST(lbm_event_queue_attr_create(&small));
    MUST(lbm_rcv_topic_attr_create(&rcv));
    MUST(lbm_wildcard_rcv_attr_create(&wildcard));
    REFUSED(lbm_context_create(&other, (void *)small, NULL, NULL));
    REFUSED(lbm_src_topic_alloc(&topic, ctx, "t", (void *)small));
    CHECK_EQ(lbm_rcv_topic_lookup(&topic, ctx, "t", (void *)wildcard), -1);
    CHECK_CONTAINS(lbm_errmsg(), "scope wildcard_receiver: must be of scope receiver");
    REFUSED(lbm_wildcard_rcv_create(&wrcv, ctx, "t", (void *)wildcard, (void *)rcv, recorder_cb, NULL, NULL));
    REFUSED(lbm_wildcard_rcv_create(&wrcv, ctx, "t", (void *)wildcard, NULL, recorder_cb, NULL, NULL));
    REFUSED(lbm_event_queue_create(&evq, NULL, NULL, (void *)rcv));
    CHECK_EQ(accepted, 0);
    lbm_event_queue_attr_delete(small);
    lbm_rcv_topic_attr_delete(rcv);
    lbm_wildcard_rcv_attr_delete(wildcard);
    MUST(lbm_context_delete(ctx));
}

TEST(creating_and_deleting_refuses_null)
{
    TEST_NEEDS_NET();
    refused = accepted = 0;
    struct objects o = make_objects();
    lbm_topic_t *topic = NULL;
    lbm_src_t *src = NULL;
    lbm_rcv_t *rcv = NULL;
    lbm_wildcard_rcv_t *wrcv = NULL;
    lbm_event_queue_cancel_cb_info_t not_enabled = {o.evq, NULL, NULL};
    REFUSED(lbm_context_create(NULL, NULL, NULL, NULL));
    REFUSED(lbm_context_reactor_only_create(NULL, NULL));
    REFUSED(lbm_context_delete(NULL));
    REFUSED(lbm_context_delete_ex(NULL, NULL));
    REFUSED(lbm_context_delete_ex(o.ctx, &not_enabled));
    REFUSED(lbm_event_queue_create(NULL, NULL, NULL, NULL));
    REFUSED(lbm_event_queue_delete(NULL));
    REFUSED(lbm_event_queue_shutdown(NULL));
    REFUSED(lbm_src_topic_alloc(NULL, o.ctx, "t", NULL));
    REFUSED(lbm_src_topic_alloc(&topic, NULL, "t", NULL));
    REFUSED(lbm_src_topic_alloc(&topic, o.ctx, NULL, NULL));
    REFUSED(lbm_src_topic_alloc(&topic, o.ctx, "", NULL));
    REFUSED(lbm_src_create(NULL, o.ctx, o.src_topic, NULL, NULL, NULL));
    REFUSED(lbm_src_create(&src, NULL, o.src_topic, NULL, NULL, NULL));
    REFUSED(lbm_src_create(&src, o.ctx, NULL, NULL, NULL, NULL));
    REFUSED(lbm_src_create(&src, o.ctx, o.rcv_topic, NULL, NULL, NULL));
    REFUSED(lbm_src_create(&src, o.ctx, o.src_topic, NULL, NULL, NULL)); /* has a source */
    REFUSED(lbm_src_delete(NULL));
    REFUSED(lbm_src_delete_ex(NULL, NULL));
    REFUSED(lbm_src_delete_ex(o.src, &not_enabled));
    REFUSED(lbm_rcv_topic_lookup(NULL, o.ctx, "t", NULL));
    REFUSED(lbm_rcv_topic_lookup(&topic, NULL, "t", NULL));
    REFUSED(lbm_rcv_topic_lookup(&topic, o.ctx, NULL, NULL));
    REFUSED(lbm_rcv_topic_lookup(&topic, o.ctx, "", NULL));
    REFUSED(lbm_rcv_create(NULL, o.ctx, o.rcv_topic, ignore, NULL, NULL));
    REFUSED(lbm_rcv_create(&rcv, NULL, o.rcv_topic, ignore, NULL, NULL));
    REFUSED(lbm_rcv_create(&rcv, o.ctx, NULL, ignore, NULL, NULL));
    REFUSED(lbm_rcv_create(&rcv, o.ctx, o.src_topic, ignore, NULL, NULL));
    REFUSED(lbm_rcv_create(&rcv, o.ctx, o.rcv_topic, NULL, NULL, NULL));
    REFUSED(lbm_rcv_delete(NULL));
    REFUSED(lbm_rcv_delete_ex(NULL, NULL));
    REFUSED(lbm_rcv_delete_ex(o.rcv, &not_enabled));
    REFUSED(lbm_wildcard_rcv_create(NULL, o.ctx, "p", NULL, NULL, ignore, NULL, NULL));
    REFUSED(lbm_wildcard_rcv_create(&wrcv, NULL, "p", NULL, NULL, ignore, NULL, NULL));
    REFUSED(lbm_wildcard_rcv_create(&wrcv, o.ctx, NULL, NULL, NULL, ignore, NULL, NULL));
    REFUSED(lbm_wildcard_rcv_create(&wrcv, o.ctx, "p", NULL, NULL, NULL, NULL, NULL));
    REFUSED(lbm_wildcard_rcv_create(&wrcv, o.ctx, "(", NULL, NULL, ignore, NULL, NULL));
    REFUSED(lbm_wildcard_rcv_delete(NULL));
    REFUSED(lbm_wildcard_rcv_delete_ex(NULL, NULL));
    REFUSED(lbm_wildcard_rcv_delete_ex(o.wrcv, &not_enabled));
    delete_objects(&o);
    CHECK_EQ(accepted, 0);
    CHECK(topic == NULL && src == NULL && rcv == NULL && wrcv == NULL);
}

TEST(contexts_queues_timers_and_descriptors_refuse_null)
{
    TEST_NEEDS_NET();
    refused = accepted = 0;
    struct objects o = make_objects();
    lbm_event_queue_cancel_cb_info_t not_enabled = {o.evq, NULL, NULL};
    lbm_process_events_info_t info = {.flags = 0};
    lbm_event_queue_stats_t stats;
    REFUSED(lbm_context_process_events(NULL, 0));
    REFUSED(lbm_context_process_events(o.ctx, 0)); /* embedded */
    REFUSED(lbm_context_process_events_ex(NULL, 0, &info));
    REFUSED(lbm_context_process_events_ex(o.ctx, 0, &info));
    REFUSED(lbm_context_unblock(NULL));
    REFUSED(lbm_context_process_lbtipc_messages(NULL, 0, 1));
    REFUSED(lbm_context_lbtipc_unblock(NULL));
    REFUSED(lbm_context_topic_resolution_request(NULL, LBM_TOPIC_RES_REQUEST_QUERY, 1000, 0));
    REFUSED(lbm_context_topic_resolution_request(o.ctx, 0, 1000, 0));
    REFUSED(lbm_context_topic_resolution_request(o.ctx, 0x8000, 1000, 0));
    REFUSED(lbm_context_set_nak_cutoff(NULL, LBM_NAK_CUTOFF_FLAG_DISABLE_NAKS));
    REFUSED(lbm_context_set_nak_cutoff(o.ctx, 0));
    REFUSED(lbm_context_set_nak_cutoff(o.ctx, LBM_NAK_CUTOFF_FLAG_DISABLE_NAKS | LBM_NAK_CUTOFF_FLAG_ENABLE_NAKS));
    REFUSED(lbm_flush_all(NULL));
    REFUSED(lbm_event_dispatch(NULL, LBM_EVENT_QUEUE_POLL));
    REFUSED(lbm_event_dispatch_unblock(NULL));
    REFUSED(lbm_event_queue_size(NULL));
    REFUSED(lbm_event_queue_size(o.evq)); /* queue_size_warning 0 */
    REFUSED(lbm_event_queue_retrieve_stats(NULL, &stats));
    REFUSED(lbm_event_queue_retrieve_stats(o.evq, NULL));
    REFUSED(lbm_event_queue_reset_stats(NULL));
    REFUSED(lbm_schedule_timer(NULL, on_timer, NULL, NULL, 1));
    REFUSED(lbm_schedule_timer(o.ctx, NULL, NULL, NULL, 1));
    REFUSED(lbm_schedule_timer_recurring(NULL, on_timer, NULL, NULL, 1));
    REFUSED(lbm_schedule_timer_recurring(o.ctx, NULL, NULL, NULL, 1));
    REFUSED(lbm_cancel_timer(NULL, 1, NULL));
    REFUSED(lbm_cancel_timer_ex(NULL, 1, NULL, NULL));
    REFUSED(lbm_cancel_timer_ex(o.ctx, 1, NULL, &not_enabled));
    REFUSED(lbm_register_fd(NULL, 0, on_fd, NULL, NULL, LBM_FD_EVENT_READ));
    REFUSED(lbm_register_fd(o.ctx, 0, NULL, NULL, NULL, LBM_FD_EVENT_READ));
    REFUSED(lbm_register_fd(o.ctx, -1, on_fd, NULL, NULL, LBM_FD_EVENT_READ));
    REFUSED(lbm_register_fd(o.ctx, 0, on_fd, NULL, NULL, 0));
    REFUSED(lbm_register_fd(o.ctx, 0, on_fd, NULL, NULL, 0x40));
    REFUSED(lbm_cancel_fd(NULL, 0, LBM_FD_EVENT_READ));
    REFUSED(lbm_cancel_fd(o.ctx, 0, LBM_FD_EVENT_READ)); /* not registered */
    REFUSED(lbm_cancel_fd_ex(NULL, 0, LBM_FD_EVENT_READ, NULL));
    REFUSED(lbm_cancel_fd_ex(o.ctx, 0, LBM_FD_EVENT_READ, &not_enabled));
    delete_objects(&o);
    CHECK_EQ(accepted, 0);
}

TEST(sends_and_statistics_refuse_null)
{
    TEST_NEEDS_NET();
    refused = accepted = 0;
    struct objects o = make_objects();
    lbm_iovec_t iov = {(char *)"m", 1}, bad = {NULL, 1};
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_PROPERTIES, .properties = NULL};
    lbm_context_stats_t context_stats;
    lbm_src_transport_stats_t src_stats;
    lbm_rcv_transport_stats_t rcv_stats;
    int num = 1;
    REFUSED(lbm_src_send(NULL, "m", 1, 0));
    REFUSED(lbm_src_send(o.src, NULL, 1, 0));
    REFUSED(lbm_src_send_ex(NULL, "m", 1, 0, NULL));
    REFUSED(lbm_src_send_ex(o.src, NULL, 1, 0, NULL));
    REFUSED(lbm_src_send_ex(o.src, "m", 1, 0, &info));
    REFUSED(lbm_src_sendv(NULL, &iov, 1, 0));
    REFUSED(lbm_src_sendv(o.src, NULL, 1, 0));
    REFUSED(lbm_src_sendv(o.src, &iov, 0, 0));
    REFUSED(lbm_src_sendv(o.src, &iov, -1, 0));
    REFUSED(lbm_src_sendv(o.src, &bad, 1, 0));
    REFUSED(lbm_src_sendv_ex(NULL, &iov, 1, 0, NULL));
    REFUSED(lbm_src_sendv_ex(o.src, NULL, 1, 0, NULL));
    REFUSED(lbm_src_sendv_ex(o.src, &iov, 0, 0, NULL));
    REFUSED(lbm_src_flush(NULL));
    REFUSED_NULL(lbm_context_from_src(NULL));
    REFUSED_NULL(lbm_topic_from_src(NULL));
    REFUSED_NULL(lbm_event_queue_from_src(NULL));
    REFUSED_NULL(lbm_context_from_rcv(NULL));
    REFUSED_NULL(lbm_event_queue_from_rcv(NULL));
    REFUSED_NULL(lbm_context_from_wildcard_rcv(NULL));
    REFUSED_NULL(lbm_event_queue_from_wildcard_rcv(NULL));
    REFUSED(lbm_context_retrieve_stats(NULL, &context_stats));
    REFUSED(lbm_context_retrieve_stats(o.ctx, NULL));
    REFUSED(lbm_context_reset_stats(NULL));
    REFUSED(lbm_context_retrieve_src_transport_stats(NULL, &num, &src_stats));
    REFUSED(lbm_context_retrieve_src_transport_stats(o.ctx, NULL, &src_stats));
    REFUSED(lbm_context_retrieve_src_transport_stats(o.ctx, &num, NULL));
    REFUSED(lbm_context_retrieve_src_transport_stats_ex(o.ctx, &num, 0, &src_stats));
    REFUSED(lbm_context_retrieve_rcv_transport_stats(NULL, &num, &rcv_stats));
    REFUSED(lbm_context_retrieve_rcv_transport_stats(o.ctx, NULL, &rcv_stats));
    REFUSED(lbm_context_retrieve_rcv_transport_stats(o.ctx, &num, NULL));
    REFUSED(lbm_context_retrieve_im_src_transport_stats(NULL, &num, sizeof src_stats, &src_stats));
    REFUSED(lbm_context_retrieve_im_src_transport_stats(o.ctx, NULL, sizeof src_stats, &src_stats));
    REFUSED(lbm_context_retrieve_im_src_transport_stats(o.ctx, &num, sizeof src_stats, NULL));
    REFUSED(lbm_context_retrieve_im_src_transport_stats(o.ctx, &num, 0, &src_stats));
    REFUSED(lbm_context_retrieve_im_rcv_transport_stats(NULL, &num, sizeof rcv_stats, &rcv_stats));
    REFUSED(lbm_context_retrieve_im_rcv_transport_stats(o.ctx, NULL, sizeof rcv_stats, &rcv_stats));
    REFUSED(lbm_context_retrieve_im_rcv_transport_stats(o.ctx, &num, sizeof rcv_stats, NULL));
    REFUSED(lbm_context_reset_src_transport_stats(NULL));
    REFUSED(lbm_context_reset_rcv_transport_stats(NULL));
    REFUSED(lbm_context_reset_im_src_transport_stats(NULL));
    REFUSED(lbm_context_reset_im_rcv_transport_stats(NULL));
    REFUSED(lbm_src_retrieve_transport_stats(NULL, &src_stats));
    REFUSED(lbm_src_retrieve_transport_stats(o.src, NULL));
    REFUSED(lbm_src_reset_transport_stats(NULL));
    REFUSED(lbm_rcv_retrieve_transport_stats(NULL, "TCP:1.2.3.4:5", &rcv_stats));
    REFUSED(lbm_rcv_retrieve_transport_stats(o.rcv, NULL, &rcv_stats));
    REFUSED(lbm_rcv_retrieve_transport_stats(o.rcv, "TCP:1.2.3.4:5", NULL));
    REFUSED(lbm_rcv_retrieve_transport_stats(o.rcv, "TCP:1.2.3.4:5", &rcv_stats)); /* unknown */
    REFUSED(lbm_rcv_reset_transport_stats(NULL, "TCP:1.2.3.4:5"));
    REFUSED(lbm_rcv_reset_transport_stats(o.rcv, NULL));
    REFUSED(lbm_rcv_retrieve_all_transport_stats(NULL, &num, &rcv_stats));
    REFUSED(lbm_rcv_retrieve_all_transport_stats(o.rcv, NULL, &rcv_stats));
    REFUSED(lbm_rcv_retrieve_all_transport_stats(o.rcv, &num, NULL));
    REFUSED(lbm_rcv_retrieve_all_transport_stats_ex(o.rcv, &num, 0, &rcv_stats));
    REFUSED(lbm_rcv_reset_all_transport_stats(NULL));
    REFUSED(lbm_rcv_msg_source_clientd(NULL, "TCP:1.2.3.4:5", NULL));
    REFUSED(lbm_rcv_msg_source_clientd(o.rcv, NULL, NULL));
    REFUSED(lbm_rcv_msg_source_clientd(o.rcv, "TCP:1.2.3.4:5", NULL)); /* unknown */
    delete_objects(&o);
    CHECK_EQ(accepted, 0);
}

TEST(messages_files_and_texts_refuse_null)
{
    refused = accepted = 0;
    lbm_transport_source_info_t source = {.type = LBM_TRANSPORT_TYPE_TCP};
    lbm_msg_fragment_info_t fragment;
    lbm_context_t *ctx = NULL;
    char text[256];
    char error[512];
    char *options = NULL;
    size_t size = sizeof text;
    REFUSED(lbm_msg_retain(NULL));
    REFUSED(lbm_msg_delete(NULL));
    REFUSED(lbm_msg_retrieve_fragment_info(NULL, &fragment));
    REFUSED(lbm_msg_retrieve_gateway_info(NULL, NULL));
    REFUSED(lbm_msg_retrieve_delivery_latency(NULL, NULL));
    CHECK_EQ(lbm_msg_is_fragment(NULL), 0);
    REFUSED(lbm_config(NULL));
    REFUSED(lbm_config_xml_file(NULL, "app"));
    REFUSED(lbm_config_xml_string(NULL, "app"));
    REFUSED(lbm_transport_source_parse(NULL, &source, sizeof source));
    REFUSED(lbm_transport_source_parse("TCP:1.2.3.4:5", NULL, sizeof source));
    REFUSED(lbm_transport_source_parse("TCP:1.2.3.4:5", &source, 4));
    REFUSED(lbm_transport_source_parse("TCP:1.2.3.4", &source, sizeof source));
    REFUSED(lbm_transport_source_format(NULL, sizeof source, text, &size));
    REFUSED(lbm_transport_source_format(&source, sizeof source, NULL, &size));
    REFUSED(lbm_transport_source_format(&source, sizeof source, text, NULL));
    size = 3;
    REFUSED(lbm_transport_source_format(&source, sizeof source, text, &size));
    REFUSED_NULL(lbm_get_jms_msg_id(1, 2, NULL));
    REFUSED(lbmaux_context_create_from_file(NULL, "no_such_file"));
    REFUSED(lbmaux_context_create_from_file(&ctx, NULL));
    REFUSED(lbmaux_context_attr_setopt_from_file(NULL, "no_such_file"));
    REFUSED(lbmaux_lbmmon_format_options_from_file(NULL, "no_such_file", error));
    REFUSED(lbmaux_lbmmon_format_options_from_file(&options, NULL, error));
    REFUSED(um_src_receivers(NULL));
    REFUSED(um_src_wait_receivers(NULL, 1, 0));
    REFUSED(um_rcv_ready(NULL));
    REFUSED(um_rcv_wait_ready(NULL, 1, 0));
    CHECK_EQ(accepted, 0);
    CHECK(ctx == NULL && options == NULL);
    /* Documented as accepting anything. */
    CHECK_EQ(lbm_license_file(NULL), 0);
    CHECK_EQ(lbm_license_str(NULL), 0);
    lbm_logf(LBM_LOG_INFO, NULL);
    lbm_seterr(0, NULL);
    lbm_seterrf(0, NULL);
}

TEST(calls_on_a_reactor_only_context_that_need_messaging_name_the_remedy)
{
    lbm_context_t *ctx;
    lbm_topic_t *topic = NULL;
    lbm_wildcard_rcv_t *wrcv = NULL;
    lbm_context_stats_t stats;
    lbm_src_transport_stats_t src_stats;
    lbm_rcv_transport_stats_t rcv_stats;
    int num = 1;
    MUST(lbm_context_reactor_only_create(&ctx, NULL));
#define NO_MESSAGING(call)                                                                                             \
    do {                                                                                                               \
        lbm_seterr(0, "");                                                                                             \
        CHECK_EQ(call, -1);                                                                                            \
        CHECK_EQ(lbm_errnum(), LBM_EOP);                                                                               \
        CHECK_CONTAINS(lbm_errmsg(), "lbm_context_reactor_only_create");                                               \
    } while (0)
    NO_MESSAGING(lbm_src_topic_alloc(&topic, ctx, "t", NULL));
    NO_MESSAGING(lbm_rcv_topic_lookup(&topic, ctx, "t", NULL));
    NO_MESSAGING(lbm_wildcard_rcv_create(&wrcv, ctx, "p", NULL, NULL, ignore, NULL, NULL));
    NO_MESSAGING(lbm_context_topic_resolution_request(ctx, LBM_TOPIC_RES_REQUEST_QUERY, 1000, 0));
    NO_MESSAGING(lbm_context_set_nak_cutoff(ctx, LBM_NAK_CUTOFF_FLAG_DISABLE_NAKS));
    NO_MESSAGING(lbm_context_retrieve_stats(ctx, &stats));
    NO_MESSAGING(lbm_context_reset_stats(ctx));
    NO_MESSAGING(lbm_context_retrieve_src_transport_stats(ctx, &num, &src_stats));
    NO_MESSAGING(lbm_context_retrieve_rcv_transport_stats(ctx, &num, &rcv_stats));
    NO_MESSAGING(lbm_context_retrieve_im_src_transport_stats(ctx, &num, sizeof src_stats, &src_stats));
    NO_MESSAGING(lbm_context_retrieve_im_rcv_transport_stats(ctx, &num, sizeof rcv_stats, &rcv_stats));
    NO_MESSAGING(lbm_context_reset_src_transport_stats(ctx));
    NO_MESSAGING(lbm_context_reset_rcv_transport_stats(ctx));
    NO_MESSAGING(lbm_context_reset_im_src_transport_stats(ctx));
    NO_MESSAGING(lbm_context_reset_im_rcv_transport_stats(ctx));
    CHECK(topic == NULL && wrcv == NULL);
    CHECK_EQ(lbm_context_delete(ctx), 0);
}

TEST(texts_of_options_have_at_least_80_bytes_of_room_and_tell_their_length)
{
    lbm_context_attr_t *attr;
    char text[256];
    size_t len = 80;
    MUST(lbm_context_attr_create(&attr));
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "context_name", "trading-desk_1"), 0);
    CHECK_EQ(lbm_context_attr_str_getopt(attr, "context_name", text, &len), 0);
    CHECK_STR(text, "trading-desk_1");
    CHECK_EQ(len, strlen("trading-desk_1"));
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "context_name", "no blanks"), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    char long_name[129];
    memset(long_name, 'x', 128);
    long_name[128] = '\0';
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "context_name", long_name), -1);
    long_name[127] = '\0';
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "context_name", long_name), 0);
    /* Callbacks have no text. */
    CHECK_EQ(lbm_context_attr_str_setopt(attr, "resolver_source_notification_function", "f"), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOPNOTSUPP);
    CHECK_EQ(lbm_context_attr_delete(attr), 0);
}
