/* Message properties: the objects and their iterators, and properties on their way from a source to receivers, through
 * fragments, queues, retained messages, late join and requests. */
#include "um_test.h"

#include <limits.h>

#include <lbm/lbm.h>
#include <lbm/um.h>

#include "base/um_mem.h"
#include "um_test_rcv.h"

/* ---- objects ---- */

static lbm_msg_properties_t *properties(void)
{
    lbm_msg_properties_t *p;
    MUST(lbm_msg_properties_create(&p));
    return p;
}

static int set_int(lbm_msg_properties_t *p, const char *name, int value)
{
    return lbm_msg_properties_set(p, name, &value, LBM_MSG_PROPERTY_INT, sizeof value);
}

static int set_text(lbm_msg_properties_t *p, const char *name, const char *value)
{
    return lbm_msg_properties_set(p, name, value, LBM_MSG_PROPERTY_STRING, strlen(value));
}

TEST(values_of_all_types_come_back_as_they_were_set)
{
    lbm_msg_properties_t *p = properties();
    static const struct {
        const char *name;
        int type;
        size_t size;
        char bytes[9];
    } values[] = {{"bool", LBM_MSG_PROPERTY_BOOLEAN, 1, "\1"},       {"byte", LBM_MSG_PROPERTY_BYTE, 1, "\x80"},
                  {"short", LBM_MSG_PROPERTY_SHORT, 2, "\x34\x92"},  {"int", LBM_MSG_PROPERTY_INT, 4, "\1\2\3\x84"},
                  {"long", LBM_MSG_PROPERTY_LONG, 8, "abcdefgh"},    {"float", LBM_MSG_PROPERTY_FLOAT, 4, "wxyz"},
                  {"double", LBM_MSG_PROPERTY_DOUBLE, 8, "ABCDEFGH"}};
    size_t count = sizeof values / sizeof values[0];
    for (size_t i = 0; i < count; i++) {
        MUST(lbm_msg_properties_set(p, values[i].name, values[i].bytes, values[i].type, values[i].size));
    }
    MUST(set_text(p, "text", "grün"));
    for (size_t i = 0; i < count; i++) {
        char out[16];
        int type = values[i].type;
        size_t size = sizeof out;
        CHECK_EQ(lbm_msg_properties_get(p, values[i].name, out, &type, &size), 0);
        CHECK(size == values[i].size && memcmp(out, values[i].bytes, size) == 0);
    }
    char text[6];
    int type = LBM_MSG_PROPERTY_STRING;
    size_t size = sizeof text;
    CHECK_EQ(lbm_msg_properties_get(p, "text", text, &type, &size), 0);
    CHECK_STR(text, "grün");
    CHECK_EQ(size, 6);
    MUST(lbm_msg_properties_delete(p));
}

TEST(a_wrong_type_or_a_short_buffer_tells_what_is_needed)
{
    lbm_msg_properties_t *p = properties();
    char out[8];
    int type = LBM_MSG_PROPERTY_LONG;
    size_t size = sizeof out;
    MUST(set_int(p, "n", 5));
    MUST(set_text(p, "t", "12345"));
    CHECK_EQ(lbm_msg_properties_get(p, "n", out, &type, &size), -1);
    CHECK_EQ(type, LBM_MSG_PROPERTY_INT);
    size = 3;
    CHECK_EQ(lbm_msg_properties_get(p, "n", out, &type, &size), -1);
    CHECK_EQ(size, 4);
    type = LBM_MSG_PROPERTY_STRING;
    size = 5;
    CHECK_EQ(lbm_msg_properties_get(p, "t", out, &type, &size), -1);
    CHECK_EQ(size, 6); /* with its NUL */
    CHECK_EQ(lbm_msg_properties_get(p, "absent", out, &type, &size), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_msg_properties_get(p, "t", out, NULL, &size), -1);
    CHECK_EQ(lbm_msg_properties_get(p, "t", out, &type, NULL), -1);
    MUST(lbm_msg_properties_delete(p));
}

TEST(names_have_1_to_250_bytes_and_values_the_size_of_their_type)
{
    lbm_msg_properties_t *p = properties();
    char name[252];
    double d = 1;
    memset(name, 'n', sizeof name);
    name[250] = '\0';
    CHECK_EQ(set_int(p, name, 1), 0);
    name[250] = 'n';
    name[251] = '\0';
    CHECK_EQ(set_int(p, name, 1), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(set_int(p, "", 1), -1);
    CHECK_EQ(set_int(p, NULL, 1), -1);
    CHECK_EQ(lbm_msg_properties_set(p, "d", &d, LBM_MSG_PROPERTY_DOUBLE, 4), -1);
    CHECK_EQ(lbm_msg_properties_set(p, "d", &d, 0, 8), -1);
    CHECK_EQ(lbm_msg_properties_set(p, "d", &d, 9, 8), -1);
    CHECK_EQ(lbm_msg_properties_set(p, "d", NULL, LBM_MSG_PROPERTY_DOUBLE, 8), -1);
    CHECK_EQ(lbm_msg_properties_set(NULL, "d", &d, LBM_MSG_PROPERTY_DOUBLE, 8), -1);
    CHECK_EQ(lbm_msg_properties_set(p, "empty", NULL, LBM_MSG_PROPERTY_STRING, 0), 0);
    MUST(lbm_msg_properties_delete(p));
}

/* "a=1 b=text " */
static void listed(lbm_msg_properties_t *p, char *out, size_t room)
{
    lbm_msg_properties_iter_t *it;
    MUST(lbm_msg_properties_iter_create(&it));
    out[0] = '\0';
    for (int rc = lbm_msg_properties_iter_first(it, p); rc == 0; rc = lbm_msg_properties_iter_next(it)) {
        size_t used = strlen(out);
        if (it->type == LBM_MSG_PROPERTY_STRING) {
            snprintf(out + used, room - used, "%s=%s ", it->name, it->data);
        } else {
            snprintf(out + used, room - used, "%s=%d ", it->name, *(int *)it->data);
        }
    }
    if (it->type != LBM_MSG_PROPERTY_NONE) {
        snprintf(out, room, "ended with type %d", it->type);
    }
    MUST(lbm_msg_properties_iter_delete(it));
}

TEST(setting_again_replaces_and_clearing_removes)
{
    lbm_msg_properties_t *p = properties();
    char text[128];
    MUST(set_int(p, "a", 1));
    MUST(set_int(p, "b", 2));
    MUST(set_text(p, "c", "three"));
    MUST(set_text(p, "a", "one"));
    listed(p, text, sizeof text);
    CHECK_STR(text, "a=one b=2 c=three ");
    CHECK_EQ(lbm_msg_properties_clear(p, "b"), 0);
    CHECK_EQ(lbm_msg_properties_clear(p, "b"), -1);
    MUST(set_int(p, "d", 4));
    listed(p, text, sizeof text);
    CHECK_STR(text, "a=one c=three d=4 ");
    CHECK_EQ(lbm_msg_properties_clear(p, NULL), 0);
    listed(p, text, sizeof text);
    CHECK_STR(text, "");
    MUST(lbm_msg_properties_delete(p));
}

TEST(an_iterator_serves_several_objects_and_refuses_what_is_none)
{
    lbm_msg_properties_t *a = properties(), *b = properties();
    lbm_msg_properties_iter_t *it;
    MUST(lbm_msg_properties_iter_create(&it));
    CHECK_EQ(lbm_msg_properties_iter_next(it), -1);
    MUST(set_int(a, "x", 1));
    CHECK_EQ(lbm_msg_properties_iter_first(it, a), 0);
    CHECK_STR(it->name, "x");
    CHECK(it->size == 4 && it->type == LBM_MSG_PROPERTY_INT);
    CHECK_EQ(lbm_msg_properties_iter_first(it, b), -1);
    CHECK_EQ(it->type, LBM_MSG_PROPERTY_NONE);
    CHECK_EQ(lbm_msg_properties_iter_first(it, NULL), -1);
    CHECK_EQ(lbm_msg_properties_iter_first(NULL, a), -1);
    CHECK_EQ(lbm_msg_properties_iter_delete(NULL), -1);
    CHECK_EQ(lbm_msg_properties_iter_create(NULL), -1);
    CHECK_EQ(lbm_msg_properties_create(NULL), -1);
    CHECK_EQ(lbm_msg_properties_delete(NULL), -1);
    MUST(lbm_msg_properties_iter_delete(it));
    MUST(lbm_msg_properties_delete(a));
    MUST(lbm_msg_properties_delete(b));
}

/* Those of many are found by an index. `name` of property i; half of them are taken out, and one is added. */
static void check_many(void (*name_of)(char *name, int i), int count)
{
    lbm_msg_properties_t *p = properties();
    char name[32];
    for (int i = 0; i < count; i++) {
        name_of(name, i);
        CHECK_EQ(set_int(p, name, i), 0);
    }
    for (int i = 0; i < count; i += 2) {
        name_of(name, i);
        CHECK_EQ(lbm_msg_properties_clear(p, name), 0);
    }
    CHECK_EQ(set_int(p, "one more", count), 0);
    for (int i = 0; i < count; i++) {
        int32_t value = -1;
        int type = LBM_MSG_PROPERTY_INT;
        size_t size = sizeof value;
        name_of(name, i);
        CHECK_EQ(lbm_msg_properties_get(p, name, &value, &type, &size), i % 2 == 0 ? -1 : 0);
        CHECK_EQ(value, i % 2 == 0 ? -1 : i);
    }
    MUST(lbm_msg_properties_delete(p));
}

static void counted_name(char *name, int i)
{
    snprintf(name, 32, "p%d", i);
}

/* "Ez" and "FY" have the same hash, and so have all words of ten of them. */
static void colliding_name(char *name, int i)
{
    for (int bit = 0; bit < 10; bit++) {
        memcpy(name + 2 * bit, (i >> bit & 1) != 0 ? "Ez" : "FY", 2);
    }
    name[20] = '\0';
}

TEST(many_properties_are_found_whatever_was_taken_out)
{
    check_many(counted_name, 1000);
}

TEST(names_that_share_a_hash_are_found)
{
    check_many(colliding_name, 1000);
}

TEST(an_object_holds_65535_properties)
{
    lbm_msg_properties_t *p = properties();
    char name[16];
    for (int i = 0; i < 65535; i++) {
        snprintf(name, sizeof name, "p%d", i);
        if (set_int(p, name, i) != 0) {
            TEST_FAIL("%s: %s", name, lbm_errmsg());
        }
    }
    CHECK_EQ(set_int(p, "more", 1), -1);
    CHECK_EQ(set_int(p, "p7", 8), 0);
    MUST(lbm_msg_properties_delete(p));
}

/* ---- on their way ---- */

#define BIG 200000

struct seen {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int count;
    char text[8192]; /* "len:name=value .. | " of each data message or request; "-" without properties */
    int bad;         /* messages whose bytes are wrong, or properties that the application can delete */
    lbm_msg_t *kept; /* the first one, when asked for */
    bool keep;
    lbm_msg_properties_t *set; /* also changed in the callback */
};

#define SEEN_INIT                                                                                                      \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                                         \
    }

static bool counts_up(const lbm_msg_t *msg)
{
    for (size_t i = 0; i < msg->len; i++) {
        if (msg->data[i] != (char)(i * 7)) {
            return false;
        }
    }
    return true;
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    struct seen *s = clientd;
    if (msg->type != LBM_MSG_DATA && msg->type != LBM_MSG_REQUEST) {
        return 0;
    }
    char text[1024] = "-";
    if (msg->properties != NULL) {
        listed(msg->properties, text, sizeof text);
    }
    pthread_mutex_lock(&s->lock);
    size_t used = strlen(s->text);
    snprintf(s->text + used, sizeof s->text - used, "%zu:%s| ", msg->len, text);
    s->bad += !counts_up(msg) || (msg->properties != NULL && lbm_msg_properties_delete(msg->properties) != -1);
    if (s->keep && s->kept == NULL) {
        MUST(lbm_msg_retain(msg));
        s->kept = msg;
    }
    s->count++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static bool seen_wait(struct seen *s, int count)
{
    pthread_mutex_lock(&s->lock);
    bool ok = wait_for_count(&s->changed, &s->lock, &s->count, count);
    pthread_mutex_unlock(&s->lock);
    return ok;
}

static void seen_free(struct seen *s)
{
    if (s->kept != NULL) {
        MUST(lbm_msg_delete(s->kept));
    }
}

static char *pattern(void)
{
    static char bytes[BIG];
    for (size_t i = 0; i < BIG; i++) {
        bytes[i] = (char)(i * 7);
    }
    return bytes;
}

static void send_with(lbm_src_t *src, size_t len, lbm_msg_properties_t *p)
{
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_PROPERTIES, .properties = p};
    MUST(lbm_src_send_ex(src, pattern(), len, LBM_MSG_FLUSH | LBM_SRC_BLOCK, &info));
}

static lbm_src_t *source_over(lbm_context_t *ctx, const char *name, const char *transport)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    MUST(lbm_src_topic_attr_str_setopt(attr, "late_join", "1"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "retransmit_retention_size_threshold", "10000000"));
    MUST(lbm_src_topic_alloc(&topic, ctx, name, attr));
    lbm_src_topic_attr_delete(attr);
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    return src;
}

static lbm_rcv_t *receiver_with(lbm_context_t *ctx, const char *name, const char *option, const char *value,
                                struct seen *s, lbm_event_queue_t *evq)
{
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    if (option != NULL) {
        MUST(lbm_rcv_topic_attr_str_setopt(attr, option, value));
    }
    lbm_rcv_t *rcv = net_receiver(ctx, name, attr, on_message, s, evq);
    lbm_rcv_topic_attr_delete(attr);
    return rcv;
}

/* Plain, with properties, empty ones, fragmented, and plain again. */
static void send_story(lbm_src_t *src)
{
    lbm_msg_properties_t *p = properties(), *none = properties();
    MUST(set_int(p, "abc", 29));
    MUST(set_text(p, "S", "hi"));
    MUST(lbm_src_send(src, pattern(), 5, LBM_MSG_FLUSH | LBM_SRC_BLOCK));
    send_with(src, 5, p);
    send_with(src, 0, none);
    MUST(set_int(p, "abc", -1));
    send_with(src, BIG, p);
    MUST(lbm_src_send(src, pattern(), 6, LBM_MSG_FLUSH | LBM_SRC_BLOCK));
    MUST(lbm_msg_properties_delete(p));
    MUST(lbm_msg_properties_delete(none));
}
#define STORY "5:-| 5:abc=29 S=hi | 0:| 200000:abc=-1 S=hi | 6:-| "

static void story_over(const char *transport)
{
    lbm_context_t *ctx = net_context();
    struct seen live = SEEN_INIT, late = SEEN_INIT;
    lbm_src_t *src = source_over(ctx, "story", transport);
    lbm_rcv_t *rcv = receiver_with(ctx, "story", NULL, NULL, &live, NULL);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    send_story(src);
    CHECK(seen_wait(&live, 5));
    CHECK_STR(live.text, STORY);
    CHECK_EQ(live.bad, 0);
    lbm_context_t *other = net_context();
    lbm_rcv_t *joiner = receiver_with(other, "story", "use_late_join", "1", &late, NULL);
    CHECK(seen_wait(&late, 5));
    CHECK_STR(late.text, STORY);
    CHECK_EQ(late.bad, 0);
    MUST(lbm_rcv_delete(joiner));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(other));
    MUST(lbm_context_delete(ctx));
}

TEST(properties_come_with_their_messages_over_tcp_live_and_to_late_joiners)
{
    TEST_NEEDS_NET();
    story_over("TCP");
}

TEST(properties_come_with_their_messages_over_lbtrm)
{
    TEST_NEEDS_NET();
    story_over("LBT-RM");
}

TEST(properties_come_with_their_messages_over_ipc)
{
    TEST_NEEDS_NET();
    story_over("LBT-IPC");
}

TEST(retained_messages_keep_their_properties)
{
    TEST_NEEDS_NET();
    static const char *const transports[] = {"TCP", "LBT-IPC"};
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++) {
        lbm_context_t *ctx = net_context();
        struct seen first = SEEN_INIT, second = SEEN_INIT;
        lbm_msg_properties_t *p = properties();
        char text[128];
        first.keep = second.keep = true;
        lbm_src_t *src = source_over(ctx, "kept", transports[i]);
        lbm_rcv_t *a = receiver_with(ctx, "kept", NULL, NULL, &first, NULL);
        lbm_rcv_t *b = receiver_with(ctx, "kept", NULL, NULL, &second, NULL);
        CHECK_EQ(um_rcv_wait_ready(a, 1, HANG_SECONDS * 1000), 0);
        MUST(set_text(p, "t", "first"));
        MUST(set_int(p, "n", 7));
        send_with(src, 100, p);
        MUST(set_text(p, "t", "other"));
        for (int k = 0; k < 100; k++) {
            send_with(src, 100, p);
        }
        CHECK(seen_wait(&first, 101) && seen_wait(&second, 101));
        CHECK(first.kept != second.kept); /* each may read its properties on a thread of its own */
        listed(first.kept->properties, text, sizeof text);
        CHECK_STR(text, "t=first n=7 ");
        MUST(set_int(first.kept->properties, "more", 8)); /* it is the application's now */
        CHECK_EQ(lbm_msg_properties_clear(first.kept->properties, "n"), 0);
        listed(first.kept->properties, text, sizeof text);
        CHECK_STR(text, "t=first more=8 ");
        send_with(src, 100, first.kept->properties); /* and can be sent */
        CHECK(seen_wait(&first, 102) && seen_wait(&second, 102));
        CHECK_CONTAINS(first.text, "100:t=first more=8 | ");
        CHECK_EQ(first.bad + second.bad, 0);
        MUST(lbm_rcv_delete(a));
        MUST(lbm_rcv_delete(b));
        seen_free(&first);
        seen_free(&second);
        MUST(lbm_src_delete(src));
        MUST(lbm_context_delete(ctx));
        MUST(lbm_msg_properties_delete(p));
    }
}

TEST(properties_received_are_passed_on_as_they_came)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct seen s = SEEN_INIT;
    lbm_msg_properties_t *p = properties();
    s.keep = true;
    lbm_src_t *src = source_over(ctx, "forward", "TCP");
    lbm_rcv_t *rcv = receiver_with(ctx, "forward", NULL, NULL, &s, NULL);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    MUST(set_text(p, "t", "x"));
    send_with(src, 1, p);
    CHECK(seen_wait(&s, 1));
    send_with(src, 2, s.kept->properties);
    CHECK(seen_wait(&s, 2));
    CHECK_STR(s.text, "1:t=x | 2:t=x | ");
    MUST(lbm_rcv_delete(rcv));
    seen_free(&s);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_msg_properties_delete(p));
}

TEST(properties_go_through_event_queues)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct seen s = SEEN_INIT;
    lbm_event_queue_t *evq;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    lbm_src_t *src = source_over(ctx, "queued", "LBT-IPC");
    lbm_rcv_t *rcv = receiver_with(ctx, "queued", NULL, NULL, &s, evq);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    send_story(src);
    for (int i = 0; i < HANG_SECONDS * 1000 && s.count < 5; i++) { /* this thread dispatches */
        if (lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL) == 0) {
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        }
    }
    CHECK_STR(s.text, STORY);
    CHECK_EQ(s.bad, 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_event_queue_delete(evq));
}

TEST(a_receiver_of_fragments_gets_no_properties)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct seen s = SEEN_INIT;
    lbm_msg_properties_t *p = properties();
    lbm_src_t *src = source_over(ctx, "fragments", "TCP");
    lbm_rcv_t *rcv = receiver_with(ctx, "fragments", "ordered_delivery", "0", &s, NULL);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    MUST(set_int(p, "n", 1));
    send_with(src, 9, p);
    CHECK(seen_wait(&s, 1));
    CHECK_STR(s.text, "9:-| ");
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_msg_properties_delete(p));
}

static int on_response(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    (void)req, (void)msg, (void)clientd;
    return 0;
}

TEST(requests_pieces_and_explicit_batches_carry_properties)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct seen s = SEEN_INIT, second = SEEN_INIT;
    lbm_msg_properties_t *p = properties();
    lbm_request_t *req;
    lbm_src_t *src = source_over(ctx, "kinds", "TCP");
    lbm_rcv_t *rcv = receiver_with(ctx, "kinds", NULL, NULL, &s, NULL);
    lbm_rcv_t *another = receiver_with(ctx, "kinds", NULL, NULL, &second, NULL);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    MUST(set_int(p, "n", 1));
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_PROPERTIES, .properties = p};
    MUST(lbm_send_request_ex(&req, src, pattern(), 3, on_response, NULL, NULL, LBM_MSG_FLUSH, &info));
    lbm_iovec_t pieces[20];
    for (int i = 0; i < 20; i++) {
        pieces[i] = (lbm_iovec_t){pattern() + i, 1};
    }
    MUST(lbm_src_sendv_ex(src, pieces, 20, LBM_MSG_FLUSH, &info));
    MUST(lbm_src_sendv_ex(src, pieces, 2, LBM_MSG_START_BATCH, &info));
    MUST(lbm_src_send_ex(src, pattern(), BIG, LBM_MSG_END_BATCH | LBM_MSG_FLUSH, &info));
    CHECK(seen_wait(&s, 4) && seen_wait(&second, 4));
    CHECK_STR(s.text, "3:n=1 | 20:n=1 | 2:n=1 | 200000:n=1 | ");
    CHECK_STR(second.text, s.text);
    CHECK_EQ(s.bad + second.bad, 0);
    MUST(lbm_request_delete(req));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_rcv_delete(another));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_msg_properties_delete(p));
}

TEST(numbers_of_hot_failover_and_properties_share_a_message)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct seen s = SEEN_INIT;
    lbm_msg_properties_t *p = properties();
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_alloc(&topic, ctx, "hf", NULL));
    MUST(lbm_hf_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_rcv_t *rcv = receiver_with(ctx, "hf", NULL, NULL, &s, NULL);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    MUST(set_int(p, "n", 1));
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_PROPERTIES, .properties = p};
    MUST(lbm_hf_src_send_ex(src, pattern(), 10, 7, LBM_MSG_FLUSH, &info));
    MUST(lbm_hf_src_send(src, pattern(), BIG, 8, LBM_MSG_FLUSH));
    CHECK(seen_wait(&s, 2));
    CHECK_STR(s.text, "10:n=1 | 200000:-| ");
    CHECK_EQ(s.bad, 0);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_msg_properties_delete(p));
}

TEST(a_hundred_properties_travel_on_a_fragmented_message)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    struct seen s = SEEN_INIT;
    lbm_msg_properties_t *p = properties();
    char name[16];
    int type = LBM_MSG_PROPERTY_INT, value = 0, wrong = 0;
    size_t size = sizeof value;
    s.keep = true;
    lbm_src_t *src = source_over(ctx, "hundred", "LBT-RM");
    lbm_rcv_t *rcv = receiver_with(ctx, "hundred", NULL, NULL, &s, NULL);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "p%d", i);
        MUST(set_int(p, name, i * i));
    }
    send_with(src, 20000, p);
    CHECK(seen_wait(&s, 1));
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "p%d", i);
        wrong += lbm_msg_properties_get(s.kept->properties, name, &value, &type, &size) != 0 || value != i * i;
    }
    CHECK_EQ(wrong, 0);
    CHECK_EQ(s.kept->len, 20000);
    MUST(lbm_rcv_delete(rcv));
    seen_free(&s);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_msg_properties_delete(p));
}
