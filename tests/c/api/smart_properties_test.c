/* Integer properties of smart sources: what receivers see of each use of a buffer, live and late, in one piece and in
 * many, with channels and in requests; that a send allocates nothing; wrong calls. */
#include <stdarg.h>

#include <lbm/lbm.h>
#include <lbm/um.h>

#include "base/um_mem.h"
#include "um_test.h"
#include "um_test_rcv.h"

#define PROPERTIES LBM_SSRC_SEND_EX_FLAG_PROPERTIES
#define UPDATE LBM_SSRC_SEND_EX_FLAG_UPDATE_PROPERTY_VALUES
#define REBUILD LBM_SSRC_SEND_EX_FLAG_REBUILD_BUFFER
#define CHANNEL LBM_SSRC_SEND_EX_FLAG_CHANNEL

/* All but the messages "first", as text: "a(x=1,y=2) "; "-" before what came on no channel where `channels`; of long
 * messages one character. */
struct heard {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char text[8192];
    int firsts, count;
};

#define HEARD_INIT                                                                                                     \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                                         \
    }

static void add(struct heard *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct heard *h, const char *format, ...)
{
    va_list args;
    size_t used = strlen(h->text);
    va_start(args, format);
    vsnprintf(h->text + used, sizeof h->text - used, format, args);
    va_end(args);
}

static void note_properties(struct heard *h, lbm_msg_properties_t *properties)
{
    lbm_msg_properties_iter_t *it;
    MUST(lbm_msg_properties_iter_create(&it));
    int rc = lbm_msg_properties_iter_first(it, properties);
    for (const char *between = "("; rc == 0; rc = lbm_msg_properties_iter_next(it), between = ",") {
        lbm_int32_t value = -1;
        if (it->type == LBM_MSG_PROPERTY_INT && it->size == sizeof value) {
            memcpy(&value, it->data, sizeof value);
        }
        add(h, "%s%s=%d", between, it->name, value);
    }
    MUST(lbm_msg_properties_iter_delete(it));
    add(h, ")");
}

static void note(struct heard *h, const lbm_msg_t *msg)
{
    if (msg->channel_info != NULL) {
        add(h, "%u:", msg->channel_info->channel_number);
    }
    add(h, "%s%.*s", msg->type == LBM_MSG_REQUEST ? "?" : "", msg->len < 8 ? (int)msg->len : 1, msg->data);
    if (msg->properties != NULL) {
        note_properties(h, msg->properties);
    }
    add(h, " ");
    h->count++;
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    struct heard *h = clientd;
    pthread_mutex_lock(&h->lock);
    if (msg->type == LBM_MSG_DATA && msg->len == 5 && memcmp(msg->data, "first", 5) == 0) {
        h->firsts++;
    } else if (msg->type == LBM_MSG_DATA || msg->type == LBM_MSG_REQUEST) {
        note(h, msg);
    }
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return 0;
}

static bool heard_wait(struct heard *h, int count)
{
    pthread_mutex_lock(&h->lock);
    bool ok = wait_for_count(&h->changed, &h->lock, &h->count, count);
    pthread_mutex_unlock(&h->lock);
    return ok;
}

static bool heard_reads(struct heard *h, const char *text)
{
    pthread_mutex_lock(&h->lock);
    bool same = strcmp(h->text, text) == 0;
    if (!same) {
        fprintf(stderr, "heard: %s\n", h->text);
    }
    pthread_mutex_unlock(&h->lock);
    return same;
}

static lbm_topic_t *smart_topic(lbm_context_t *ctx, const char *transport, const char *count, const char *channels)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    MUST(lbm_src_topic_attr_str_setopt(attr, "smart_src_message_property_int_count", count));
    MUST(lbm_src_topic_attr_str_setopt(attr, "smart_src_enable_spectrum_channel", channels));
    MUST(lbm_src_topic_attr_str_setopt(attr, "late_join", "1"));
    MUST(lbm_src_topic_alloc(&topic, ctx, "smart", attr));
    lbm_src_topic_attr_delete(attr);
    return topic;
}

static lbm_ssrc_t *smart_source(lbm_context_t *ctx, const char *transport, const char *count, const char *channels)
{
    lbm_ssrc_t *ssrc;
    MUST(lbm_ssrc_create(&ssrc, ctx, smart_topic(ctx, transport, count, channels), NULL, NULL, NULL));
    return ssrc;
}

static lbm_rcv_t *receiver(lbm_context_t *ctx, const char *late_join, struct heard *h)
{
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "use_late_join", late_join));
    lbm_rcv_t *rcv = net_receiver(ctx, "smart", attr, on_message, h, NULL);
    lbm_rcv_topic_attr_delete(attr);
    return rcv;
}

/* Two properties; `names` are two characters. */
static lbm_ssrc_send_ex_info_t info_of(int flags, char names[2][2], char *keys[2], lbm_int32_t values[2])
{
    keys[0] = names[0];
    keys[1] = names[1];
    return (lbm_ssrc_send_ex_info_t){
        .flags = flags, .mprop_int_cnt = 2, .mprop_int_keys = keys, .mprop_int_vals = values, .channel = 7};
}

static void send_with(lbm_ssrc_t *ssrc, char *buffer, const char *text, int flags, const char *names, int first)
{
    char own[2][2] = {{names[0]}, {names[1]}}, *keys[2];
    lbm_int32_t values[2] = {first, -first};
    lbm_ssrc_send_ex_info_t info = info_of(flags, own, keys, values);
    memcpy(buffer, text, strlen(text));
    MUST(lbm_ssrc_send_ex(ssrc, buffer, strlen(text), 0, &info));
}

/* The first messages of a session may come before its receivers are there. */
static bool until_heard(lbm_ssrc_t *ssrc, char *buffer, struct heard *h)
{
    int firsts = 0;
    for (int i = 0; i < HANG_SECONDS * 1000 && firsts == 0; i++) {
        memcpy(buffer, "first", 5);
        MUST(lbm_ssrc_send_ex(ssrc, buffer, 5, 0, NULL));
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        pthread_mutex_lock(&h->lock);
        firsts = h->firsts;
        pthread_mutex_unlock(&h->lock);
    }
    return firsts > 0;
}

/* A buffer keeps the properties of its first send, until it is told other ones. */
static void send_story(lbm_ssrc_t *ssrc, char *buffer)
{
    static char big[20000];
    char *other;
    memset(big, 'x', sizeof big);
    send_with(ssrc, buffer, "a", PROPERTIES, "xy", 1);
    send_with(ssrc, buffer, "b", PROPERTIES, "zz", 2);
    send_with(ssrc, buffer, "c", PROPERTIES | UPDATE, "zz", 2147483647);
    send_with(ssrc, buffer, "d", UPDATE, "zz", 4);
    send_with(ssrc, buffer, "e", PROPERTIES | REBUILD, "uv", 5);
    send_with(ssrc, buffer, "f", 0, "uv", 6);
    MUST(lbm_ssrc_send_ex(ssrc, buffer, 1, 0, NULL));
    MUST(lbm_ssrc_buff_get(ssrc, &other, 0));
    send_with(ssrc, other, "h", PROPERTIES, "pq", 8);
    char names[2][2] = {"p", "q"}, *keys[2];
    lbm_int32_t values[2] = {9, 10};
    lbm_ssrc_send_ex_info_t info = info_of(UPDATE | LBM_SSRC_SEND_EX_FLAG_USER_SUPPLIED_BUFFER, names, keys, values);
    info.usr_supplied_buffer = big;
    MUST(lbm_ssrc_send_ex(ssrc, other, sizeof big, 0, &info));
    MUST(lbm_ssrc_buff_put(ssrc, other));
    MUST(lbm_ssrc_buff_get(ssrc, &other, 0)); /* the same one, and new */
    send_with(ssrc, other, "j", PROPERTIES, "rs", 11);
    MUST(lbm_ssrc_buff_put(ssrc, other));
}
#define STORY                                                                                                          \
    "a(x=1,y=-1) b(x=1,y=-1) c(x=2147483647,y=-2147483647) d(x=4,y=-4) e(u=5,v=-5) f f h(p=8,q=-8) x(p=9,q=10) "       \
    "j(r=11,s=-11) "
#define STORY_MESSAGES 10

static void story_over(const char *transport)
{
    TEST_NEEDS_NET();
    struct heard live = HEARD_INIT, late = HEARD_INIT;
    char *buffer;
    lbm_context_t *sending = net_context(), *ctx = net_context(), *later = net_context();
    lbm_ssrc_t *ssrc = smart_source(sending, transport, "2", "0");
    MUST(lbm_ssrc_buff_get(ssrc, &buffer, 0));
    lbm_rcv_t *rcv = receiver(ctx, "0", &live);
    CHECK(until_heard(ssrc, buffer, &live));
    send_story(ssrc, buffer);
    CHECK(heard_wait(&live, STORY_MESSAGES));
    CHECK(heard_reads(&live, STORY));
    lbm_rcv_t *joiner = receiver(later, "1", &late);
    CHECK(heard_wait(&late, STORY_MESSAGES));
    CHECK(heard_reads(&late, STORY));
    MUST(lbm_rcv_delete(joiner));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(sending));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(later));
}

TEST(properties_of_buffers_come_over_lbtrm_live_and_to_late_joiners)
{
    story_over("LBT-RM");
}

TEST(properties_of_buffers_come_over_lbtru_live_and_to_late_joiners)
{
    story_over("LBT-RU");
}

static int on_response(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    (void)req, (void)msg, (void)clientd;
    return 0;
}

TEST(properties_and_channels_go_together_and_with_requests)
{
    TEST_NEEDS_NET();
    struct heard h = HEARD_INIT;
    char *buffer, names[2][2] = {"x", "y"}, *keys[2];
    lbm_int32_t values[2] = {1, 2};
    lbm_request_t *first, *second;
    lbm_context_t *sending = net_context(), *ctx = net_context();
    lbm_ssrc_t *ssrc = smart_source(sending, "LBT-RU", "2", "1");
    lbm_rcv_t *rcv = receiver(ctx, "0", &h);
    MUST(lbm_rcv_subscribe_channel(rcv, 7, NULL, NULL));
    MUST(lbm_ssrc_buff_get(ssrc, &buffer, 0));
    CHECK(until_heard(ssrc, buffer, &h));
    lbm_ssrc_send_ex_info_t info = info_of(PROPERTIES | CHANNEL, names, keys, values);
    memcpy(buffer, "a", 1);
    MUST(lbm_ssrc_send_ex(ssrc, buffer, 1, 0, &info));
    info.flags |= UPDATE | LBM_SSRC_SEND_EX_FLAG_UPDATE_CHANNEL;
    info.channel = 8;
    values[1] = 3;
    MUST(lbm_ssrc_send_request_ex(&first, ssrc, buffer, 1, on_response, NULL, NULL, 0, &info));
    MUST(lbm_ssrc_send_request_ex(&second, ssrc, buffer, 1, on_response, NULL, NULL, 0, NULL));
    CHECK(heard_wait(&h, 3));
    CHECK(heard_reads(&h, "7:a(x=1,y=2) 8:?a(x=1,y=3) ?a "));
    MUST(lbm_request_delete(first));
    MUST(lbm_request_delete(second));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(sending));
    MUST(lbm_context_delete(ctx));
}

/* ---- what a send costs ---- */

static _Thread_local int allocations;

static bool count_allocation(size_t size)
{
    (void)size;
    allocations++;
    return false;
}

TEST(sends_with_properties_allocate_nothing)
{
    TEST_NEEDS_NET();
    char *buffer;
    lbm_context_t *ctx = net_context();
    lbm_ssrc_t *ssrc = smart_source(ctx, "LBT-RM", "16", "0");
    MUST(lbm_ssrc_buff_get(ssrc, &buffer, 0));
    send_with(ssrc, buffer, "a", PROPERTIES, "xy", 1);
    um_mem_set_fail_hook(count_allocation);
    um_free(um_malloc(1));
    int counted = allocations;
    for (int i = 0; i < 10000; i++) {
        send_with(ssrc, buffer, "b", i % 7 == 0 ? PROPERTIES | REBUILD : UPDATE, "xy", i);
    }
    int made = allocations - counted;
    um_mem_set_fail_hook(NULL);
    CHECK_EQ(counted, 1); /* the counter counts */
    CHECK_EQ(made, 0);
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(ctx));
}

/* As many properties as there may be, with the longest names, beside the longest message of a buffer. */
TEST(a_full_buffer_with_all_properties_is_one_datagram)
{
    TEST_NEEDS_NET();
    enum { MOST = 16 };
    char *buffer, names[MOST][8], *keys[MOST];
    lbm_int32_t values[MOST];
    lbm_src_transport_stats_t before, after;
    int space;
    lbm_context_t *ctx = net_context();
    lbm_ssrc_t *ssrc = smart_source(ctx, "LBT-RM", "16", "0");
    for (int i = 0; i < MOST; i++) {
        snprintf(names[i], sizeof names[i], "name%03d", i);
        keys[i] = names[i];
        values[i] = i;
    }
    lbm_ssrc_send_ex_info_t info = {
        .flags = PROPERTIES, .mprop_int_cnt = MOST, .mprop_int_keys = keys, .mprop_int_vals = values};
    MUST(lbm_ssrc_get_available_data_space(ssrc, &space));
    CHECK_EQ(space, SSRC_DEFAULT_MAX_MSG_LEN);
    MUST(lbm_ssrc_buff_get(ssrc, &buffer, 0));
    memset(buffer, 'x', (size_t)space);
    MUST(lbm_ssrc_retrieve_transport_stats(ssrc, &before));
    MUST(lbm_ssrc_send_ex(ssrc, buffer, (size_t)space, 0, &info));
    MUST(lbm_ssrc_retrieve_transport_stats(ssrc, &after));
    CHECK_EQ(after.transport.lbtrm.msgs_sent - before.transport.lbtrm.msgs_sent, 1);
    for (int i = 0; i < space; i++) {
        CHECK_EQ(buffer[i], 'x'); /* the properties are beside it */
    }
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(ctx));
}

/* ---- wrong calls ---- */

static bool refused(int rc, const char *text)
{
    bool ok = rc == -1 && lbm_errnum() == LBM_EINVAL && strstr(lbm_errmsg(), text) != NULL;
    if (!ok) {
        fprintf(stderr, "rc %d, error %d: %s\n", rc, lbm_errnum(), lbm_errmsg());
    }
    return ok;
}

TEST(wrong_uses_of_properties_are_named)
{
    TEST_NEEDS_NET();
    char *buffer, own[8] = "own", *keys[] = {"x", "y", "z"};
    lbm_int32_t values[] = {1, 2, 3};
    lbm_context_t *ctx = net_context();
    lbm_ssrc_t *ssrc = smart_source(ctx, "LBT-RM", "2", "0");
    lbm_ssrc_send_ex_info_t info = {
        .flags = PROPERTIES, .mprop_int_cnt = 2, .mprop_int_keys = keys, .mprop_int_vals = values};
    MUST(lbm_ssrc_buff_get(ssrc, &buffer, 0));
    CHECK(refused(lbm_ssrc_send_ex(ssrc, own, 1, 0, &info), "with a buffer of the smart source"));
    info.flags = UPDATE;
    CHECK(refused(lbm_ssrc_send_ex(ssrc, buffer, 1, 0, &info), "was not sent with properties yet"));
    info.flags = PROPERTIES;
    for (int count = -1; count <= 3; count += count == 0 ? 3 : 1) {
        info.mprop_int_cnt = count;
        CHECK(refused(lbm_ssrc_send_ex(ssrc, buffer, 1, 0, &info), "must be 1 to 2"));
    }
    static char *const wrong[] = {"", "12345678", "gr\xc3\xbc", "x", NULL};
    static const char *const said[] = {"1 to 7 ASCII", "1 to 7 ASCII", "1 to 7 ASCII", "used once", "1 to 7 ASCII"};
    info.mprop_int_cnt = 2;
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        keys[1] = wrong[i];
        CHECK(refused(lbm_ssrc_send_ex(ssrc, buffer, 1, 0, &info), said[i]));
    }
    keys[1] = "1234567";
    info.mprop_int_vals = NULL;
    CHECK(refused(lbm_ssrc_send_ex(ssrc, buffer, 1, 0, &info), "mprop_int_vals must be valid"));
    info.mprop_int_vals = values;
    info.mprop_int_keys = NULL;
    CHECK(refused(lbm_ssrc_send_ex(ssrc, buffer, 1, 0, &info), "mprop_int_keys must be valid"));
    info.mprop_int_keys = keys;
    MUST(lbm_ssrc_send_ex(ssrc, buffer, 1, 0, &info));
    info.flags = UPDATE;
    info.mprop_int_cnt = 1;
    CHECK(refused(lbm_ssrc_send_ex(ssrc, buffer, 1, 0, &info), "must be 2"));
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_context_delete(ctx));
}

TEST(both_channel_and_properties_or_neither)
{
    TEST_NEEDS_NET();
    char *buffer, names[2][2] = {"x", "y"}, *keys[2];
    lbm_int32_t values[2] = {1, 2};
    lbm_context_t *ctx = net_context(), *other = net_context();
    lbm_ssrc_t *ssrc = smart_source(ctx, "LBT-RM", "2", "1"), *without = smart_source(other, "LBT-RM", "0", "0");
    lbm_ssrc_send_ex_info_t info = info_of(PROPERTIES, names, keys, values);
    MUST(lbm_ssrc_buff_get(ssrc, &buffer, 0));
    CHECK(refused(lbm_ssrc_send_ex(ssrc, buffer, 1, 0, &info), "both or neither"));
    info.flags = CHANNEL;
    CHECK(refused(lbm_ssrc_send_ex(ssrc, buffer, 1, 0, &info), "both or neither"));
    info.flags = 0;
    MUST(lbm_ssrc_send_ex(ssrc, buffer, 1, 0, &info));
    MUST(lbm_ssrc_buff_get(without, &buffer, 0));
    info.flags = PROPERTIES;
    CHECK(refused(lbm_ssrc_send_ex(without, buffer, 1, 0, &info), "smart_src_message_property_int_count"));
    MUST(lbm_ssrc_delete(ssrc));
    MUST(lbm_ssrc_delete(without));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_context_delete(other));
}

/* Datagrams of the session are as long as its first source has made them. */
TEST(a_later_source_of_a_session_has_no_more_properties_than_the_first)
{
    TEST_NEEDS_NET();
    lbm_ssrc_t *first, *second;
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtru_maximum_ports", "1"));
    lbm_context_t *ctx = net_context_with(attr);
    MUST(lbm_ssrc_create(&first, ctx, smart_topic(ctx, "LBT-RU", "2", "0"), NULL, NULL, NULL));
    CHECK(refused(lbm_ssrc_create(&second, ctx, smart_topic(ctx, "LBT-RU", "3", "0"), NULL, NULL, NULL),
                  "smart_src_message_property_int_count 3 at most 2"));
    MUST(lbm_ssrc_create(&second, ctx, smart_topic(ctx, "LBT-RU", "1", "0"), NULL, NULL, NULL));
    CHECK(refused(lbm_ssrc_create(&second, ctx, smart_topic(ctx, "LBT-RM", "2000000000", "0"), NULL, NULL, NULL),
                  "leave no room"));
    MUST(lbm_ssrc_delete(second));
    MUST(lbm_ssrc_delete(first));
    MUST(lbm_context_delete(ctx));
}
