/* Smart sources through the public headers: what receivers see, what is refused, buffers, late join, requests, checks
 * asked for by the environment; and, by counting, that a send neither allocates nor waits for a lock nor for a page of
 * memory. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <lbm/lbm.h>
#include <lbm/um.h>

#include "base/um_lock.h"
#include "base/um_mem.h"
#include "core/um_smart_source.h"
#include "um_test.h"
#include "um_test_log.h"
#include "um_test_rcv.h"

#define WAIT_MS (HANG_SECONDS * 1000)

static lbm_context_t *context(const char *option, const char *value)
{
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtrm_data_rate_limit", "1000000000"));
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtru_data_rate_limit", "1000000000"));
    if (option != NULL) {
        MUST(lbm_context_attr_str_setopt(attr, option, value));
    }
    return net_context_with(attr);
}

/* options: name, value, ..., NULL. */
static lbm_topic_t *smart_topic(lbm_context_t *ctx, const char *name, const char *transport,
                                const char *const options[])
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    for (size_t i = 0; options != NULL && options[i] != NULL; i += 2) {
        MUST(lbm_src_topic_attr_str_setopt(attr, options[i], options[i + 1]));
    }
    MUST(lbm_src_topic_alloc(&topic, ctx, name, attr));
    lbm_src_topic_attr_delete(attr);
    return topic;
}

static lbm_ssrc_t *smart_source(lbm_context_t *ctx, const char *name, const char *transport,
                                const char *const options[])
{
    lbm_ssrc_t *ssrc;
    MUST(lbm_ssrc_create(&ssrc, ctx, smart_topic(ctx, name, transport, options), NULL, NULL, NULL));
    return ssrc;
}

static void send_text(lbm_ssrc_t *ssrc, const char *text)
{
    char *buffer;
    MUST(lbm_ssrc_buff_get(ssrc, &buffer, 0));
    memcpy(buffer, text, strlen(text));
    MUST(lbm_ssrc_send_ex(ssrc, buffer, strlen(text), 0, NULL));
    MUST(lbm_ssrc_buff_put(ssrc, buffer));
}

static bool wait_data(struct recorder *r, int count)
{
    return recorder_wait(r, LBM_MSG_DATA, count);
}

/* ---- what receivers see ---- */

/* The first messages of a multicast session may come before its receivers are there. */
static bool until_seen(lbm_ssrc_t *ssrc, struct recorder *r)
{
    for (int i = 0; i < WAIT_MS && recorder_count(r, LBM_MSG_DATA) == 0; i++) {
        send_text(ssrc, "first");
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return recorder_count(r, LBM_MSG_DATA) > 0;
}

/* Every byte of every length, with numbers in order. */
struct lengths {
    struct recorder seen;
    int good;
    size_t largest;
    bool wrong;
};

static int on_length(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct lengths *l = clientd;
    pthread_mutex_lock(&l->seen.lock);
    if (msg->type == LBM_MSG_DATA && !(msg->len == 5 && memcmp(msg->data, "first", 5) == 0)) {
        for (size_t i = 0; i < msg->len; i++) {
            l->wrong |= (unsigned char)msg->data[i] != (unsigned char)(msg->len + i);
        }
        l->good++;
        l->largest = msg->len > l->largest ? msg->len : l->largest;
    }
    pthread_mutex_unlock(&l->seen.lock);
    return recorder_cb(rcv, msg, &l->seen);
}

static void fill(char *to, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        to[i] = (char)(len + i);
    }
}

static bool delivers_every_length(const char *transport)
{
    lbm_context_t *sender = context(NULL, NULL), *ctx = context(NULL, NULL);
    lbm_ssrc_t *ssrc = smart_source(sender, "lengths", transport, NULL);
    struct lengths l = {.seen = RECORDER_INIT};
    lbm_rcv_t *rcv = net_receiver(ctx, "lengths", NULL, on_length, &l, NULL);
    int space = 0;
    char *buffer;
    bool ok = until_seen(ssrc, &l.seen);
    MUST(lbm_ssrc_get_available_data_space(ssrc, &space));
    ok = ok && space == SSRC_DEFAULT_MAX_MSG_LEN;
    int sent = 0;
    MUST(lbm_ssrc_buff_get(ssrc, &buffer, LBM_SRC_NONBLOCK));
    for (int len = 6; len <= space; len++, sent++) {
        fill(buffer, (size_t)len);
        ok = ok && lbm_ssrc_send_ex(ssrc, buffer, (size_t)len, 0, NULL) == 0;
    }
    /* Longer ones, in fragments, from memory of the application. */
    static char large[20000];
    for (size_t len = (size_t)space + 1; len <= sizeof large; len += 2777, sent++) {
        fill(large, len);
        lbm_ssrc_send_ex_info_t info = {.flags = LBM_SSRC_SEND_EX_FLAG_USER_SUPPLIED_BUFFER,
                                        .usr_supplied_buffer = large};
        ok = ok && lbm_ssrc_send_ex(ssrc, buffer, len, 0, &info) == 0;
    }
    for (int i = 0; i < WAIT_MS && ok; i++) { /* those called "first" may still come, too */
        pthread_mutex_lock(&l.seen.lock);
        bool all = l.good >= sent;
        pthread_mutex_unlock(&l.seen.lock);
        if (all) {
            break;
        }
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    lbm_src_transport_stats_t stats;
    MUST(lbm_ssrc_retrieve_transport_stats(ssrc, &stats));
    MUST(lbm_ssrc_reset_transport_stats(ssrc));
    MUST(lbm_rcv_delete(rcv));
    ok = ok && l.good == sent && !l.wrong && l.largest > 368 && stats.source[0] == 'L';
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
    return ok;
}

TEST(messages_of_every_length_come_as_from_other_sources_over_lbtrm)
{
    TEST_NEEDS_NET();
    CHECK(delivers_every_length("lbt-rm"));
}

TEST(messages_of_every_length_come_as_from_other_sources_over_lbtru)
{
    TEST_NEEDS_NET();
    CHECK(delivers_every_length("lbt-ru"));
}

TEST(what_was_lost_is_repaired_from_the_reserved_window)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = context(NULL, NULL), *ctx = context(NULL, NULL);
    lbm_ssrc_t *ssrc = smart_source(sender, "repairs", "lbt-rm", NULL);
    struct recorder r = RECORDER_INIT;
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "transport_lbtrm_nak_generation_interval", "60000"));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "transport_lbtrm_activity_timeout", "90000"));
    lbm_rcv_t *rcv = net_receiver(ctx, "repairs", attr, recorder_cb, &r, NULL);
    lbm_rcv_topic_attr_delete(attr);
    CHECK(until_seen(ssrc, &r));
    MUST(lbm_ssrc_reset_transport_stats(ssrc));
    int before = recorder_count(&r, LBM_MSG_DATA);
    lbm_set_lbtrm_src_loss_rate(30);
    for (int i = 0; i < 300; i++) {
        send_text(ssrc, "m");
    }
    lbm_set_lbtrm_src_loss_rate(0);
    CHECK(wait_data(&r, before + 300));
    CHECK_EQ(recorder_count(&r, LBM_MSG_UNRECOVERABLE_LOSS), 0);
    lbm_src_transport_stats_t stats;
    MUST(lbm_ssrc_retrieve_transport_stats(ssrc, &stats));
    CHECK(stats.transport.lbtrm.rxs_sent > 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

TEST(two_smart_sources_share_a_session)
{
    TEST_NEEDS_NET();
    static const char *const group[] = {"transport_lbtrm_multicast_address", "224.10.10.99", NULL};
    lbm_context_t *sender = context(NULL, NULL), *ctx = context(NULL, NULL);
    lbm_ssrc_t *a = smart_source(sender, "A", "lbt-rm", group), *b = smart_source(sender, "B", "lbt-rm", group);
    struct recorder of_a = RECORDER_INIT, of_b = RECORDER_INIT;
    lbm_rcv_t *rcv_a = net_recording_receiver(ctx, "A", &of_a), *rcv_b = net_recording_receiver(ctx, "B", &of_b);
    CHECK(until_seen(a, &of_a));
    CHECK(until_seen(b, &of_b));
    CHECK_EQ(strncmp(of_a.source, of_b.source, strcspn(of_a.source, "[") + 1), 0); /* but for the topic index */
    MUST(lbm_ssrc_delete(a));
    int before = recorder_count(&of_b, LBM_MSG_DATA);
    send_text(b, "on");
    CHECK(wait_data(&of_b, before + 1));
    MUST(lbm_rcv_delete(rcv_a));
    MUST(lbm_rcv_delete(rcv_b));
    MUST(lbm_ssrc_delete(b));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

/* ---- events ---- */

struct numbers {
    int events, others;
    unsigned first, last;
    void *clientd;
    pthread_t thread;
};

static int on_numbers(lbm_ssrc_t *ssrc, int event, void *ed, void *clientd)
{
    struct numbers *n = clientd;
    if (event != LBM_SRC_EVENT_SEQUENCE_NUMBER_INFO) {
        n->others++;
        return 0;
    }
    const lbm_src_event_sequence_number_info_t *info = ed;
    n->events++;
    n->first = info->first_sequence_number;
    n->last = info->last_sequence_number;
    n->clientd = info->msg_clientd;
    n->thread = pthread_self();
    return 0;
}

TEST(sequence_numbers_are_told_inside_the_send_that_asks)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = context(NULL, NULL);
    struct numbers n = {0};
    lbm_ssrc_t *ssrc;
    MUST(lbm_ssrc_create(&ssrc, ctx, smart_topic(ctx, "numbers", "lbt-rm", NULL), on_numbers, &n, NULL));
    char *buffer, large[1000] = {0};
    int mine;
    MUST(lbm_ssrc_buff_get(ssrc, &buffer, 0));
    lbm_ssrc_send_ex_info_t info = {.flags =
                                        LBM_SSRC_SEND_EX_FLAG_SEQUENCE_NUMBER_INFO | LBM_SSRC_SEND_EX_FLAG_UME_CLIENTD,
                                    .ume_msg_clientd = &mine};
    MUST(lbm_ssrc_send_ex(ssrc, buffer, 10, 0, NULL));
    CHECK_EQ(n.events, 0);
    MUST(lbm_ssrc_send_ex(ssrc, buffer, 10, 0, &info));
    CHECK_EQ(n.events, 1);
    CHECK(n.first == 1 && n.last == 1 && n.clientd == &mine && pthread_equal(n.thread, pthread_self()));
    info.flags = LBM_SSRC_SEND_EX_FLAG_SEQUENCE_NUMBER_INFO_FRAGONLY;
    MUST(lbm_ssrc_send_ex(ssrc, buffer, 10, 0, &info));
    CHECK_EQ(n.events, 1);
    info.flags |= LBM_SSRC_SEND_EX_FLAG_USER_SUPPLIED_BUFFER;
    info.usr_supplied_buffer = large;
    MUST(lbm_ssrc_send_ex(ssrc, buffer, sizeof large, 0, &info));
    CHECK_EQ(n.events, 2);
    CHECK(n.first == 3 && n.last == 5); /* 368 + 368 + 264 */
    CHECK_EQ(n.others, 0);
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(ctx));
}

/* ---- what is refused ---- */

static void check_refused(int rc, int errnum, const char *text)
{
    CHECK_EQ(rc, -1);
    CHECK_EQ(lbm_errnum(), errnum);
    CHECK_CONTAINS(lbm_errmsg(), text);
}

TEST(only_lbtrm_and_lbtru_have_smart_sources)
{
    TEST_NEEDS_NET();
    static const char *const others[] = {"tcp", "lbt-ipc", "lbt-smx"};
    lbm_context_t *ctx = context(NULL, NULL);
    lbm_event_queue_t *evq;
    lbm_ssrc_t *ssrc;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        lbm_topic_t *topic = smart_topic(ctx, "T", others[i], NULL);
        check_refused(lbm_ssrc_create(&ssrc, ctx, topic, NULL, NULL, NULL), LBM_EOPNOTSUPP, others[i]);
    }
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    check_refused(lbm_ssrc_create(&ssrc, ctx, smart_topic(ctx, "T", "lbt-rm", NULL), NULL, NULL, evq), LBM_EINVAL,
                  "evq must be NULL");
    check_refused(lbm_ssrc_create(NULL, ctx, smart_topic(ctx, "T", "lbt-rm", NULL), NULL, NULL, NULL), LBM_EINVAL,
                  "ssrcp");
    static const char *const nothing[] = {"smart_src_max_message_length", "0", NULL};
    check_refused(lbm_ssrc_create(&ssrc, ctx, smart_topic(ctx, "T", "lbt-rm", nothing), NULL, NULL, NULL), LBM_EINVAL,
                  "smart_src_max_message_length 0");
    check_refused(lbm_ssrc_delete(NULL), LBM_EINVAL, "ssrc must be valid");
    MUST(lbm_event_queue_delete(evq));
    MUST(lbm_context_delete(ctx));
}

static void refuses_to_share(const char *transport, const char *option, const char *value)
{
    const char *const same[] = {option, value, NULL};
    const char *const longer[] = {option, value, "smart_src_max_message_length", "369", NULL};
    lbm_context_t *ctx = context(NULL, NULL);
    lbm_src_t *src;
    lbm_ssrc_t *ssrc, *other;
    ssrc = smart_source(ctx, "smart", transport, same);
    check_refused(lbm_src_create(&src, ctx, smart_topic(ctx, "plain", transport, same), NULL, NULL, NULL), LBM_EINVAL,
                  "belongs to smart sources");
    check_refused(lbm_ssrc_create(&other, ctx, smart_topic(ctx, "longer", transport, longer), NULL, NULL, NULL),
                  LBM_EINVAL, "must be at most 368");
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_src_create(&src, ctx, smart_topic(ctx, "plain", transport, same), NULL, NULL, NULL));
    check_refused(lbm_ssrc_create(&other, ctx, smart_topic(ctx, "smart", transport, same), NULL, NULL, NULL),
                  LBM_EINVAL, "belongs to other sources");
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(smart_sources_and_others_never_share_a_session)
{
    TEST_NEEDS_NET();
    refuses_to_share("lbt-rm", "transport_lbtrm_multicast_address", "224.10.10.77");
    refuses_to_share("lbt-ru", "transport_lbtru_port", "14477");
}

TEST(sources_that_name_no_session_are_never_put_on_one_of_the_other_kind)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = context("transport_lbtru_maximum_ports", "2");
    lbm_ssrc_t *smart[2];
    lbm_src_t *src, *second;
    smart[0] = smart_source(ctx, "S0", "lbt-ru", NULL);
    MUST(lbm_src_create(&src, ctx, smart_topic(ctx, "P0", "lbt-ru", NULL), NULL, NULL, NULL));
    smart[1] = smart_source(ctx, "S1", "lbt-ru", NULL);
    MUST(lbm_src_create(&second, ctx, smart_topic(ctx, "P1", "lbt-ru", NULL), NULL, NULL, NULL));
    lbm_src_transport_stats_t of_smart[2], of_plain[2];
    MUST(lbm_ssrc_retrieve_transport_stats(smart[0], &of_smart[0]));
    MUST(lbm_ssrc_retrieve_transport_stats(smart[1], &of_smart[1]));
    MUST(lbm_src_retrieve_transport_stats(src, &of_plain[0]));
    MUST(lbm_src_retrieve_transport_stats(second, &of_plain[1]));
    CHECK_STR(of_smart[0].source, of_smart[1].source);
    CHECK_STR(of_plain[0].source, of_plain[1].source);
    CHECK(strcmp(of_smart[0].source, of_plain[0].source) != 0);
    MUST(lbm_src_delete(src));
    MUST(lbm_src_delete(second));
    lbm_ssrc_delete(smart[0]);
    lbm_ssrc_delete(smart[1]);
    MUST(lbm_context_delete(ctx));
    ctx = context("transport_lbtru_maximum_ports", "1");
    smart[0] = smart_source(ctx, "S0", "lbt-ru", NULL);
    check_refused(lbm_src_create(&src, ctx, smart_topic(ctx, "P0", "lbt-ru", NULL), NULL, NULL, NULL), LBM_EINVAL,
                  "allow more sessions");
    MUST(lbm_ssrc_delete(smart[0]));
    MUST(lbm_context_delete(ctx));
}

TEST(arguments_of_sends_are_checked)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = context(NULL, NULL);
    lbm_ssrc_t *ssrc = smart_source(ctx, "T", "lbt-rm", NULL);
    char *buffer;
    int length;
    MUST(lbm_ssrc_buff_get(ssrc, &buffer, 0));
    check_refused(lbm_ssrc_send_ex(NULL, buffer, 1, 0, NULL), LBM_EINVAL, "ssrc must be valid");
    check_refused(lbm_ssrc_send_ex(ssrc, NULL, 1, 0, NULL), LBM_EINVAL, "usr_bufp");
    check_refused(lbm_ssrc_send_ex(ssrc, buffer, 369, 0, NULL), LBM_EINVAL, "length 369: a buffer has 368");
    check_refused(lbm_ssrc_send_ex(ssrc, buffer, 1, LBM_MSG_FLUSH, NULL), LBM_EINVAL, "flags 0x4: must be 0");
    lbm_ssrc_send_ex_info_t info = {.flags = LBM_SSRC_SEND_EX_FLAG_USER_SUPPLIED_BUFFER};
    check_refused(lbm_ssrc_send_ex(ssrc, buffer, 1, 0, &info), LBM_EINVAL, "usr_supplied_buffer");
    info.flags = LBM_SSRC_SEND_EX_FLAG_PROPERTIES;
    check_refused(lbm_ssrc_send_ex(ssrc, buffer, 1, 0, &info), LBM_EINVAL, "smart_src_message_property_int_count");
    check_refused(lbm_ssrc_get_available_data_space(ssrc, NULL), LBM_EINVAL, "length");
    check_refused(lbm_ssrc_get_available_data_space(NULL, &length), LBM_EINVAL, "ssrc must be valid");
    check_refused(lbm_ssrc_buff_get(ssrc, NULL, 0), LBM_EINVAL, "usr_bufp");
    check_refused(lbm_ssrc_retrieve_transport_stats(ssrc, NULL), LBM_EINVAL, "stats");
    MUST(lbm_ssrc_send_ex(ssrc, buffer, 0, 0, NULL)); /* an empty message is one */
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(ctx));
}

/* ---- buffers ---- */

TEST(buffers_are_as_many_as_asked_for_and_come_back)
{
    TEST_NEEDS_NET();
    static const char *const four[] = {"smart_src_user_buffer_count", "3", "smart_src_max_message_length", "100", NULL};
    lbm_context_t *ctx = context(NULL, NULL);
    watch_log("Core-9941-1212");
    lbm_ssrc_t *ssrc = smart_source(ctx, "T", "lbt-rm", four);
    CHECK_EQ(log_hits, 1);
    CHECK_CONTAINS(log_line, "smart_src_user_buffer_count 3: 4 is used");
    char *buffers[5];
    for (int i = 0; i < 4; i++) {
        MUST(lbm_ssrc_buff_get(ssrc, &buffers[i], 0));
        memset(buffers[i], 'a' + i, 100); /* they do not overlap */
    }
    for (int i = 0; i < 4; i++) {
        CHECK(buffers[i][0] == 'a' + i && buffers[i][99] == 'a' + i);
        CHECK_EQ((uintptr_t)buffers[i] % 64, 0);
    }
    check_refused(lbm_ssrc_buff_get(ssrc, &buffers[4], 0), LBM_ENOMEM, "all 4 buffers");
    check_refused(lbm_ssrc_buff_put(ssrc, buffers[0] + 1), LBM_EINVAL, "no buffer of this smart source");
    check_refused(lbm_ssrc_buff_put(ssrc, NULL), LBM_EINVAL, "no buffer");
    MUST(lbm_ssrc_buff_put(ssrc, buffers[2]));
    check_refused(lbm_ssrc_buff_put(ssrc, buffers[2]), LBM_EINVAL, "not handed out");
    MUST(lbm_ssrc_buff_get(ssrc, &buffers[4], LBM_SRC_NONBLOCK));
    CHECK(buffers[4] == buffers[2]);
    MUST(lbm_ssrc_delete(ssrc)); /* with buffers that are handed out */
    MUST(lbm_log(NULL, NULL));
    MUST(lbm_context_delete(ctx));
}

static int blocks, given_back;

static void *own_malloc(size_t size, void *clientd)
{
    blocks += *(int *)clientd;
    return malloc(size);
}

static void *own_realloc(void *block, size_t size, void *clientd)
{
    return realloc(block, size);
}

static void own_free(void *block, void *clientd)
{
    given_back += *(int *)clientd;
    free(block);
}

TEST(buffers_come_from_the_memory_of_the_application)
{
    TEST_NEEDS_NET();
    int one = 1;
    lbm_mem_mgt_callbacks_t memory = {own_malloc, own_realloc, own_free, &one};
    lbm_context_t *ctx = context(NULL, NULL);
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_ssrc_t *ssrc;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", "lbt-rm"));
    MUST(lbm_src_topic_attr_setopt(attr, "mem_mgt_callbacks", &memory, sizeof memory));
    MUST(lbm_src_topic_alloc(&topic, ctx, "memory", attr));
    lbm_src_topic_attr_delete(attr);
    MUST(lbm_ssrc_create(&ssrc, ctx, topic, NULL, NULL, NULL));
    CHECK_EQ(blocks, 1);
    send_text(ssrc, "from there");
    CHECK_EQ(given_back, 0);
    MUST(lbm_ssrc_delete(ssrc));
    CHECK_EQ(given_back, 1);
    CHECK_EQ(blocks, 1);
    MUST(lbm_context_delete(ctx));
}

static const char *dumped(lbm_ssrc_t *ssrc, const char *name)
{
    static char value[128];
    static lbm_config_option_t options[400];
    int count = 400;
    MUST(lbm_ssrc_topic_dump(ssrc, &count, options));
    for (int i = 0; i < count; i++) {
        if (strcmp(options[i].oname, name) == 0) {
            snprintf(value, sizeof value, "%s", options[i].val);
            return value;
        }
    }
    return "";
}

TEST(the_dump_tells_the_counts_in_force)
{
    TEST_NEEDS_NET();
    static const char *const odd[] = {"smart_src_user_buffer_count",
                                      "5",
                                      "smart_src_retention_buffer_count",
                                      "9",
                                      "transport_lbtrm_smart_src_transmission_window_buffer_count",
                                      "100",
                                      "transport_lbtrm_multicast_address",
                                      "224.10.10.55",
                                      NULL};
    lbm_context_t *ctx = context(NULL, NULL);
    lbm_ssrc_t *ssrc = smart_source(ctx, "T", "lbt-rm", odd);
    CHECK_STR(dumped(ssrc, "smart_src_user_buffer_count"), "8");
    CHECK_STR(dumped(ssrc, "smart_src_retention_buffer_count"), "16");
    CHECK_STR(dumped(ssrc, "transport_lbtrm_smart_src_transmission_window_buffer_count"), "128");
    CHECK_STR(dumped(ssrc, "smart_src_max_message_length"), "368");
    static const char *const shorter[] = {"smart_src_max_message_length", "100", "transport_lbtrm_multicast_address",
                                          "224.10.10.55", NULL};
    lbm_ssrc_t *second = smart_source(ctx, "U", "lbt-rm", shorter);
    int space;
    MUST(lbm_ssrc_get_available_data_space(second, &space));
    CHECK_EQ(space, 100);
    MUST(lbm_ssrc_delete(second));
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(ctx));
}

/* The window keeps as many datagrams as it has buffers. */
TEST(the_window_holds_its_buffers_and_no_more)
{
    TEST_NEEDS_NET();
    static const char *const eight[] = {"transport_lbtrm_smart_src_transmission_window_buffer_count", "8", NULL};
    lbm_context_t *ctx = context(NULL, NULL);
    lbm_ssrc_t *ssrc = smart_source(ctx, "T", "lbt-rm", eight);
    lbm_src_transport_stats_t stats;
    for (int i = 0; i < 5; i++) {
        send_text(ssrc, "12345");
    }
    MUST(lbm_ssrc_retrieve_transport_stats(ssrc, &stats));
    CHECK_EQ(stats.transport.lbtrm.txw_msgs, 5);
    for (int i = 0; i < 1000; i++) {
        send_text(ssrc, "12345");
    }
    MUST(lbm_ssrc_retrieve_transport_stats(ssrc, &stats));
    CHECK(stats.transport.lbtrm.msgs_sent >= 1005);
    CHECK_EQ(stats.transport.lbtrm.txw_msgs, 8);
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(ctx));
}

/* ---- no limit of the rate, no allocation, no lock ---- */

TEST(smart_sources_have_no_data_rate_limit)
{
    TEST_NEEDS_NET();
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtrm_data_rate_limit", "8000"));
    MUST(lbm_context_attr_str_setopt(attr, "operational_mode", "sequential"));
    lbm_context_t *ctx = net_context_with(attr);
    lbm_ssrc_t *ssrc = smart_source(ctx, "T", "lbt-rm", NULL);
    lbm_src_t *src;
    MUST(lbm_src_create(&src, ctx, smart_topic(ctx, "P", "lbt-rm", NULL), NULL, NULL, NULL));
    int refused = 0;
    for (int i = 0; i < 300; i++) { /* 100 bytes are more than the limit allows in 100 ms */
        refused += lbm_src_send(src, "m", 1, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK) != 0;
        send_text(ssrc, "more than a hundred bytes with the headers of three layers under it");
    }
    lbm_src_transport_stats_t stats;
    MUST(lbm_ssrc_retrieve_transport_stats(ssrc, &stats));
    CHECK_EQ(stats.transport.lbtrm.msgs_sent, 300);
    CHECK_EQ(stats.transport.lbtrm.rctlr_data_msgs, 0);
    CHECK(refused > 0);
    MUST(lbm_src_delete(src));
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(ctx));
}

static pthread_t counted_thread;
static atomic_bool counting;
static atomic_ulong allocations, mutexes;

static bool count_allocation(size_t size)
{
    if (atomic_load(&counting) && pthread_equal(pthread_self(), counted_thread)) {
        atomic_fetch_add(&allocations, 1);
    }
    return false;
}

#if defined(__SANITIZE_THREAD__)
#define MUTEXES_ARE_COUNTED false
#else
#define MUTEXES_ARE_COUNTED true
/* In front of the C library's. */
int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static _Atomic(int (*)(pthread_mutex_t *)) original;
    int (*lock)(pthread_mutex_t *) = atomic_load(&original);
    if (lock == NULL) {
        void *symbol = dlsym(RTLD_NEXT, "pthread_mutex_lock");
        memcpy(&lock, &symbol, sizeof lock);
        atomic_store(&original, lock);
    }
    if (atomic_load(&counting) && pthread_equal(pthread_self(), counted_thread)) {
        atomic_fetch_add(&mutexes, 1);
    }
    return lock(mutex);
}
#endif

/* Sanitizers take memory for what they note. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define PAGES_ARE_COUNTED false
#else
#define PAGES_ARE_COUNTED true
#endif

static long page_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

/* In sequential mode nobody else looks at the session: no lock is ever found taken. The system may take a page away now
 * and then; a table or a buffer that is not there before the first send needs hundreds. */
static void sends_count_nothing(const char *transport, const char *const options[], int sends,
                                lbm_ssrc_send_ex_info_t *info)
{
    lbm_context_t *ctx = context("operational_mode", "sequential");
    lbm_ssrc_t *ssrc = smart_source(ctx, "counted", transport, options);
    char *buffer;
    MUST(lbm_ssrc_buff_get(ssrc, &buffer, 0));
    memset(buffer, 'x', 368);
    MUST(lbm_ssrc_send_ex(ssrc, buffer, 1, 0, info)); /* the first one has the loop arm a timer */
    counted_thread = pthread_self();
    um_mem_set_fail_hook(count_allocation);
    atomic_store(&allocations, 0);
    atomic_store(&mutexes, 0);
    unsigned long waits = um_lock_waits;
    atomic_store(&counting, true);
    int failed = 0;
    long faults = page_faults();
    for (int i = 0; i < sends; i++) {
        failed += lbm_ssrc_send_ex(ssrc, buffer, (size_t)(i % 369), 0, info) != 0;
        char *other;
        failed += lbm_ssrc_buff_get(ssrc, &other, 0) != 0 || lbm_ssrc_buff_put(ssrc, other) != 0;
    }
    faults = page_faults() - faults;
    atomic_store(&counting, false);
    um_mem_set_fail_hook(NULL);
    CHECK_EQ(failed, 0);
    CHECK(!PAGES_ARE_COUNTED || faults < 100);
    CHECK_EQ(atomic_load(&allocations), 0);
    CHECK_EQ(atomic_load(&mutexes), 0);
    CHECK_EQ(um_lock_waits - waits, 0);
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(ctx));
}

TEST(a_million_sends_allocate_nothing_and_wait_for_no_lock)
{
    TEST_NEEDS_NET();
    /* Where locks are not counted, one thread is left, and allocations: those of the first sends of every kind. */
    sends_count_nothing("lbt-rm", NULL, MUTEXES_ARE_COUNTED ? 1000000 : 100000, NULL);
}

TEST(sends_that_are_retained_allocate_nothing_and_wait_for_no_lock)
{
    TEST_NEEDS_NET();
    static const char *const late[] = {"late_join", "1", NULL};
    sends_count_nothing("lbt-rm", late, 200000, NULL);
}

TEST(sends_on_a_channel_allocate_nothing_and_wait_for_no_lock)
{
    TEST_NEEDS_NET();
    static const char *const channels[] = {"smart_src_enable_spectrum_channel", "1", NULL};
    lbm_ssrc_send_ex_info_t info = {.flags = LBM_SSRC_SEND_EX_FLAG_CHANNEL, .channel = 7};
    sends_count_nothing("lbt-rm", channels, 50000, &info);
}

TEST(the_counters_of_the_test_count)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    counted_thread = pthread_self();
    um_mem_set_fail_hook(count_allocation);
    atomic_store(&allocations, 0);
    atomic_store(&mutexes, 0);
    atomic_store(&counting, true);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    um_free(um_malloc(1));
    atomic_store(&counting, false);
    um_mem_set_fail_hook(NULL);
    CHECK_EQ(atomic_load(&allocations), 1);
    CHECK_EQ(atomic_load(&mutexes), MUTEXES_ARE_COUNTED ? 1 : 0);
}

/* A receiver is connected: the number space of a client is there as well. */
TEST(sends_to_a_client_of_lbtru_allocate_nothing)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = context(NULL, NULL), *ctx = context(NULL, NULL);
    lbm_ssrc_t *ssrc = smart_source(sender, "counted", "lbt-ru", NULL);
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "counted", &r);
    CHECK(until_seen(ssrc, &r));
    char *buffer;
    MUST(lbm_ssrc_buff_get(ssrc, &buffer, 0));
    memset(buffer, 'x', 368);
    counted_thread = pthread_self();
    um_mem_set_fail_hook(count_allocation);
    atomic_store(&allocations, 0);
    atomic_store(&counting, true);
    for (int i = 0; i < 40000; i++) {
        MUST(lbm_ssrc_send_ex(ssrc, buffer, (size_t)(i % 369), 0, NULL));
    }
    atomic_store(&counting, false);
    um_mem_set_fail_hook(NULL);
    CHECK_EQ(atomic_load(&allocations), 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

/* ---- late join ---- */

TEST(a_late_joiner_gets_what_the_retention_buffers_hold)
{
    TEST_NEEDS_NET();
    static const char *const eight[] = {"late_join", "1", "smart_src_retention_buffer_count", "8", NULL};
    lbm_context_t *sender = context(NULL, NULL), *ctx = context(NULL, NULL);
    lbm_ssrc_t *ssrc = smart_source(sender, "late", "lbt-rm", eight);
    char text[8];
    for (int i = 0; i < 20; i++) {
        snprintf(text, sizeof text, "%d", i);
        send_text(ssrc, text);
    }
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "late", &r);
    CHECK(wait_data(&r, 8));
    CHECK(recorder_reads(&r, "BOS 12=12 13=13 14=14 15=15 16=16 17=17 18=18 19=19 "));
    send_text(ssrc, "20");
    CHECK(wait_data(&r, 9));
    MUST(lbm_rcv_delete(rcv));
    CHECK_CONTAINS(r.text, "19=19 20=20 ");
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

/* ---- requests ---- */

static int on_request(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    if (msg->type == LBM_MSG_REQUEST) {
        MUST(lbm_send_response(msg->response, msg->data, msg->len, LBM_SRC_NONBLOCK));
        lbm_response_delete(msg->response);
        msg->response = NULL;
    }
    return recorder_cb(rcv, msg, clientd);
}

struct answers {
    pthread_mutex_t lock;
    int count;
    char text[64];
};

static int on_answer(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    struct answers *a = clientd;
    pthread_mutex_lock(&a->lock);
    if (msg->type == LBM_MSG_RESPONSE) {
        a->count++;
        snprintf(a->text, sizeof a->text, "%.*s", (int)msg->len, msg->data);
    }
    pthread_mutex_unlock(&a->lock);
    return 0;
}

static int answered(struct answers *a)
{
    pthread_mutex_lock(&a->lock);
    int count = a->count;
    pthread_mutex_unlock(&a->lock);
    return count;
}

TEST(a_request_of_a_smart_source_is_answered)
{
    TEST_NEEDS_NET();
    lbm_context_t *sender = context(NULL, NULL), *ctx = context(NULL, NULL);
    lbm_ssrc_t *ssrc = smart_source(sender, "ask", "lbt-rm", NULL);
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = net_receiver(ctx, "ask", NULL, on_request, &r, NULL);
    CHECK(until_seen(ssrc, &r));
    struct answers a = {.lock = PTHREAD_MUTEX_INITIALIZER};
    lbm_request_t *req = (lbm_request_t *)&req;
    char *buffer;
    lbm_event_queue_t *evq;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    MUST(lbm_ssrc_buff_get(ssrc, &buffer, 0));
    memcpy(buffer, "question", 8);
    check_refused(lbm_ssrc_send_request_ex(&req, ssrc, buffer, 8, on_answer, &a, evq, 0, NULL), LBM_EINVAL, "evq");
    check_refused(lbm_ssrc_send_request_ex(&req, ssrc, buffer, 369, on_answer, &a, NULL, 0, NULL), LBM_EINVAL,
                  "length 369");
    CHECK(req == (lbm_request_t *)&req); /* untouched, as lbm.h says */
    lbm_ssrc_send_ex_info_t info = {.flags = LBM_SSRC_SEND_EX_FLAG_USER_SUPPLIED_BUFFER, .usr_supplied_buffer = buffer};
    check_refused(lbm_ssrc_send_request_ex(&req, ssrc, buffer, 400, on_answer, &a, NULL, 0, &info), LBM_EINVAL,
                  "not fragmented");
    MUST(lbm_ssrc_send_request_ex(&req, ssrc, buffer, 8, on_answer, &a, NULL, 0, NULL));
    for (int i = 0; i < WAIT_MS && answered(&a) == 0; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    CHECK_EQ(answered(&a), 1);
    CHECK_STR(a.text, "question");
    MUST(lbm_request_delete(req));
    MUST(lbm_event_queue_delete(evq));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(sender));
}

/* ---- checks that are asked for ---- */

struct sending {
    lbm_ssrc_t *ssrc;
    char *buffer;
    int rc;
    char text[512];
};

static void *send_elsewhere(void *arg)
{
    struct sending *s = arg;
    s->rc = lbm_ssrc_send_ex(s->ssrc, s->buffer, 1, 0, NULL);
    if (s->rc != 0) {
        snprintf(s->text, sizeof s->text, "%s", lbm_errmsg());
    }
    return NULL;
}

static int from_another_thread(struct sending *s)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, send_elsewhere, s) == 0 ? 0 : -1);
    pthread_join(thread, NULL);
    return s->rc;
}

TEST(the_environment_turns_on_checks_of_threads_and_buffers)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = context(NULL, NULL);
    struct sending s = {0};
    /* Without it two threads may take turns, at their own risk. */
    s.ssrc = smart_source(ctx, "unchecked", "lbt-rm", NULL);
    MUST(lbm_ssrc_buff_get(s.ssrc, &s.buffer, 0));
    MUST(lbm_ssrc_send_ex(s.ssrc, s.buffer, 1, 0, NULL));
    CHECK_EQ(from_another_thread(&s), 0);
    MUST(lbm_ssrc_delete(s.ssrc));

    setenv("LBM_SMART_SOURCE_CHECK", "0xffffffff", 1);
    watch_log("Core-10160-2");
    s.ssrc = smart_source(ctx, "checked", "lbt-rm", NULL);
    unsetenv("LBM_SMART_SOURCE_CHECK");
    CHECK_EQ(log_hits, 1);
    MUST(lbm_ssrc_buff_get(s.ssrc, &s.buffer, 0));
    MUST(lbm_ssrc_send_ex(s.ssrc, s.buffer, 1, 0, NULL));
    CHECK_EQ(from_another_thread(&s), -1);
    CHECK_CONTAINS(s.text, "another thread sends");
    char own[16] = "mine";
    check_refused(lbm_ssrc_send_ex(s.ssrc, own, 4, 0, NULL), LBM_EINVAL, "no buffer of this smart source");
    char saved = s.buffer[-64];
    s.buffer[-64] = (char)~saved;
    check_refused(lbm_ssrc_send_ex(s.ssrc, s.buffer, 1, 0, NULL), LBM_EINVAL, "in front of its beginning");
    s.buffer[-64] = saved;
    MUST(lbm_ssrc_send_ex(s.ssrc, s.buffer, 1, 0, NULL));
    MUST(lbm_ssrc_buff_put(s.ssrc, s.buffer));
    check_refused(lbm_ssrc_send_ex(s.ssrc, s.buffer, 1, 0, NULL), LBM_EINVAL, "not handed out");
    MUST(lbm_ssrc_delete(s.ssrc));
    MUST(lbm_log(NULL, NULL));
    MUST(lbm_context_delete(ctx));
}

/* ---- memory ---- */

static int allocations_left;

static bool fail_one(size_t size)
{
    return __atomic_fetch_sub(&allocations_left, 1, __ATOMIC_RELAXED) == 0;
}

TEST(every_failing_allocation_while_creating_is_an_error_and_leaks_nothing)
{
    TEST_NEEDS_NET();
    static const char *const late[] = {"late_join", "1", "transport_lbtrm_smart_src_transmission_window_buffer_count",
                                       "64", NULL};
    lbm_context_t *ctx = context("operational_mode", "sequential");
    lbm_topic_t *topic = smart_topic(ctx, "T", "lbt-rm", late); /* usable again after each failure */
    bool created = false;
    for (int n = 0; n < 2000 && !created; n++) {
        lbm_ssrc_t *ssrc = NULL;
        __atomic_store_n(&allocations_left, n, __ATOMIC_RELAXED);
        um_mem_set_fail_hook(fail_one);
        int rc = lbm_ssrc_create(&ssrc, ctx, topic, NULL, NULL, NULL);
        um_mem_set_fail_hook(NULL);
        if (rc == 0) {
            created = __atomic_load_n(&allocations_left, __ATOMIC_RELAXED) >= 0;
            send_text(ssrc, "there");
            MUST(lbm_ssrc_delete(ssrc));
            topic = created ? NULL : smart_topic(ctx, "T", "lbt-rm", late);
        } else {
            CHECK_EQ(lbm_errnum(), LBM_ENOMEM);
            CHECK(ssrc == NULL);
        }
    }
    CHECK(created);
    MUST(lbm_context_delete(ctx));
}

/* Nobody knows of the source while its buffers are asked for; without them the topic is usable again. */
static int sources_seen, refusals_left;

static void *scarce_malloc(size_t size, void *clientd)
{
    um_object_counts_t counts;
    MUST(um_object_counts(&counts));
    sources_seen += (int)counts.sources;
    return refusals_left-- > 0 ? NULL : malloc(size);
}

TEST(a_source_without_buffers_was_never_there)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = context(NULL, NULL);
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_ssrc_t *ssrc = NULL;
    lbm_mem_mgt_callbacks_t scarce = {scarce_malloc, own_realloc, own_free, &(int){1}};
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", "lbt-ru"));
    MUST(lbm_src_topic_attr_setopt(attr, "mem_mgt_callbacks", &scarce, sizeof scarce));
    MUST(lbm_src_topic_alloc(&topic, ctx, "scarce", attr));
    lbm_src_topic_attr_delete(attr);
    sources_seen = 0;
    refusals_left = 3;
    for (int i = 0; i < 3; i++) {
        check_refused(lbm_ssrc_create(&ssrc, ctx, topic, NULL, NULL, NULL), LBM_ENOMEM, "buffers of a smart source");
        CHECK(ssrc == NULL);
    }
    MUST(lbm_ssrc_create(&ssrc, ctx, topic, NULL, NULL, NULL));
    CHECK_EQ(sources_seen, 0);
    send_text(ssrc, "there");
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(ctx));
}

TEST(more_reserved_memory_than_half_of_the_machine_is_refused)
{
    check_refused(um_src_smart_count(1u << 20, 1u << 20, (size_t)1 << 40, "some_buffer_count", "Core-0-0", "T") != 0
                      ? 0
                      : LBM_FAILURE,
                  LBM_EINVAL, "some_buffer_count 1048576: buffers of 1099511627776 bytes");
    CHECK_EQ(um_src_smart_count(1, 1u << 20, 64, "some_buffer_count", "Core-0-0", "T"), 1);
}

/* ---- later sources of a session ---- */

static void warns_of_what_the_first_has_decided(const char *transport, const char *port_option, const char *port,
                                                const char *buffers_option, const char *window_option)
{
    const char *const first[] = {port_option, port, buffers_option, "60", NULL};
    const char *const alike[] = {port_option, port, buffers_option, "64", window_option, "100000", NULL};
    const char *const other[] = {port_option, port, buffers_option, "128", NULL};
    lbm_context_t *ctx = context(NULL, NULL);
    lbm_ssrc_t *ssrc[3];
    ssrc[0] = smart_source(ctx, "first", transport, first);
    watch_log("Core-5688-1");
    ssrc[1] = smart_source(ctx, "alike", transport, alike); /* 60 are 64, and its window is not counted in bytes */
    CHECK_EQ(log_hits, 0);
    ssrc[2] = smart_source(ctx, "other", transport, other);
    CHECK_EQ(log_hits, 1);
    CHECK_CONTAINS(log_line, buffers_option);
    MUST(lbm_log(NULL, NULL));
    for (int i = 0; i < 3; i++) {
        MUST(lbm_ssrc_delete(ssrc[i]));
    }
    MUST(lbm_context_delete(ctx));
}

TEST(later_smart_sources_are_warned_of_another_count_of_buffers)
{
    TEST_NEEDS_NET();
    warns_of_what_the_first_has_decided("lbt-rm", "transport_lbtrm_multicast_address", "224.10.10.78",
                                        "transport_lbtrm_smart_src_transmission_window_buffer_count",
                                        "transport_lbtrm_transmission_window_size");
    warns_of_what_the_first_has_decided("lbt-ru", "transport_lbtru_port", "14478",
                                        "transport_lbtru_smart_src_transmission_window_buffer_count",
                                        "transport_lbtru_transmission_window_size");
}

static int on_wakeups(lbm_ssrc_t *ssrc, int event, void *ed, void *clientd)
{
    *(int *)clientd += event == LBM_SRC_EVENT_WAKEUP;
    return 0;
}

TEST(the_wakeup_after_a_refused_send_is_told)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = context(NULL, NULL);
    lbm_ssrc_t *ssrc;
    int wakeups = 0;
    MUST(lbm_ssrc_create(&ssrc, ctx, smart_topic(ctx, "T", "lbt-rm", NULL), on_wakeups, &wakeups, NULL));
    struct um_src_stream *stream = &ssrc->src.stream;
    stream->events->on_wakeup(stream); /* what the session does when its socket has room again */
    CHECK_EQ(wakeups, 1);
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(ctx));
}
