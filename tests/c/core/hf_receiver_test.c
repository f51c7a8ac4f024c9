/* Hot failover through the public interface: two sources in contexts of their own, one receiver. */
#include <inttypes.h>

#include <lbm/um.h>

#include "um_test_log.h"
#include "um_test_rcv.h"

#define HF_32 LBM_SRC_SEND_EX_FLAG_HF_32
#define HF_64 LBM_SRC_SEND_EX_FLAG_HF_64
#define OPTIONAL LBM_SRC_SEND_EX_FLAG_HF_OPTIONAL

/* What came, as text: "10 11o 12dup pass RESET5 ". */
struct heard {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char text[4096];
    int bos, eos, data, resets, passed;
    bool wrong; /* flags or numbers that do not fit each other */
    lbm_msg_t *kept;
};

#define HEARD_INIT                                                                                                     \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                                         \
    }

static void note(struct heard *h, const char *text)
{
    size_t used = strlen(h->text);
    snprintf(h->text + used, sizeof h->text - used, "%s", text);
}

static void note_number(struct heard *h, const lbm_msg_t *msg)
{
    char text[64];
    bool wide = (msg->flags & LBM_MSG_FLAG_HF_64) != 0;
    uint64_t number = wide ? msg->hf_sequence_number.u64 : msg->hf_sequence_number.u32;
    snprintf(text, sizeof text, "%s%" PRIu64 "%s%s ", msg->type == LBM_MSG_HF_RESET ? "RESET" : "", number,
             (msg->flags & LBM_MSG_FLAG_HF_OPTIONAL) ? "o" : "", (msg->flags & LBM_MSG_FLAG_HF_DUPLICATE) ? "dup" : "");
    note(h, text);
    h->wrong |= msg->sequence_number != (wide ? 0 : (unsigned)number);
    h->wrong |= !wide && (msg->flags & LBM_MSG_FLAG_HF_32) == 0;
}

static int on_msg(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct heard *h = clientd;
    bool passed = (msg->flags & LBM_MSG_FLAG_HF_PASS_THROUGH) != 0;
    pthread_mutex_lock(&h->lock);
    h->wrong |= lbm_hf_rcv_from_rcv(rcv) == NULL;
    if (msg->type == LBM_MSG_BOS) {
        h->bos++;
        h->wrong |= passed;
    } else if (msg->type == LBM_MSG_EOS) {
        h->eos++;
        h->wrong |= !passed;
    } else if (passed) {
        h->passed++;
        note(h, "pass ");
    } else if (msg->type == LBM_MSG_DATA || msg->type == LBM_MSG_HF_RESET) {
        note_number(h, msg);
        h->data += msg->type == LBM_MSG_DATA;
        h->resets += msg->type == LBM_MSG_HF_RESET;
        if (h->kept == NULL && msg->type == LBM_MSG_DATA) {
            MUST(lbm_msg_retain(msg));
            h->kept = msg;
        }
    } else {
        note(h, "loss ");
    }
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return 0;
}

static bool heard_wait(struct heard *h, const int *count, int least)
{
    pthread_mutex_lock(&h->lock);
    bool ok = wait_for_count(&h->changed, &h->lock, count, least);
    if (!ok || h->wrong) {
        fprintf(stderr, "heard: %s%s\n", h->text, h->wrong ? ", with wrong flags" : "");
    }
    ok = ok && !h->wrong;
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

static void heard_forget(struct heard *h)
{
    if (h->kept != NULL) {
        MUST(lbm_msg_delete(h->kept));
    }
}

struct pair {
    lbm_context_t *ctx[2], *receiving;
    lbm_src_t *src[2];
    lbm_hf_rcv_t *hf;
    struct heard heard;
};

static lbm_src_t *hf_source(lbm_context_t *ctx, const char *name)
{
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_alloc(&topic, ctx, name, NULL));
    MUST(lbm_hf_src_create(&src, ctx, topic, NULL, NULL, NULL));
    return src;
}

static lbm_hf_rcv_t *hf_receiver(lbm_context_t *ctx, const char *name, const char *option, const char *value,
                                 struct heard *heard, lbm_event_queue_t *evq)
{
    lbm_rcv_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_hf_rcv_t *hf;
    MUST(lbm_rcv_topic_attr_create(&attr));
    if (option != NULL) {
        MUST(lbm_rcv_topic_attr_str_setopt(attr, option, value));
    }
    MUST(lbm_rcv_topic_lookup(&topic, ctx, name, attr));
    MUST(lbm_rcv_topic_attr_delete(attr));
    MUST(lbm_hf_rcv_create(&hf, ctx, topic, on_msg, heard, evq));
    return hf;
}

static void begin(struct pair *p, const char *option, const char *value)
{
    *p = (struct pair){.heard = HEARD_INIT};
    p->receiving = net_context();
    for (int i = 0; i < 2; i++) {
        p->ctx[i] = net_context();
        p->src[i] = hf_source(p->ctx[i], "hot");
    }
    p->hf = hf_receiver(p->receiving, "hot", option, value, &p->heard, NULL);
    MUST(um_rcv_wait_ready(lbm_rcv_from_hf_rcv(p->hf), 2, HANG_SECONDS * 1000));
}

static void end(struct pair *p)
{
    MUST(lbm_hf_rcv_delete(p->hf));
    for (int i = 0; i < 2; i++) {
        if (p->src[i] != NULL) {
            MUST(lbm_src_delete(p->src[i]));
        }
        MUST(lbm_context_delete(p->ctx[i]));
    }
    MUST(lbm_context_delete(p->receiving));
    heard_forget(&p->heard);
}

static void give(struct pair *p, int i, unsigned number)
{
    MUST(lbm_hf_src_send(p->src[i], "x", 1, number, LBM_MSG_FLUSH));
}

static void send_optional(struct pair *p, int i, unsigned number)
{
    lbm_src_send_ex_info_t info = {.flags = HF_32 | OPTIONAL, .hf_sqn.u32 = number};
    MUST(lbm_hf_src_send_ex(p->src[i], "x", 1, 0, LBM_MSG_FLUSH, &info));
}

static void send_wide(struct pair *p, int i, uint64_t number)
{
    lbm_src_send_ex_info_t info = {.flags = HF_64, .hf_sqn.u64 = number};
    MUST(lbm_hf_src_send_ex(p->src[i], "x", 1, 0, LBM_MSG_FLUSH, &info));
}

/* A message without a number is the last one of its source: when it has come, everything before it has. */
static bool all_came(struct pair *p)
{
    int passed = p->heard.passed;
    for (int i = 0; i < 2; i++) {
        if (p->src[i] != NULL) {
            MUST(lbm_src_send(p->src[i], "end", 3, LBM_MSG_FLUSH));
            passed++;
        }
    }
    return heard_wait(&p->heard, &p->heard.passed, passed);
}

TEST(gaps_that_both_sources_have_made_come_out_as_they_are)
{
    static const unsigned numbers[] = {10, 11, 12, 13, 25, 26, 38};
    TEST_NEEDS_NET();
    struct pair p;
    begin(&p, NULL, NULL);
    for (int i = 0; i < 7; i++) {
        give(&p, 0, numbers[i]);
        give(&p, 1, numbers[i]);
    }
    CHECK(heard_wait(&p.heard, &p.heard.data, 7));
    CHECK(heard_reads(&p.heard, "10 11 12 13 25 26 38 "));
    CHECK(all_came(&p));
    CHECK(strncmp(p.heard.text, "10 11 12 13 25 26 38 pass", 25) == 0);
    CHECK_EQ(p.heard.kept->hf_sequence_number.u32, 10); /* retained, and not what came after it */
    CHECK_EQ(p.heard.kept->sequence_number, 10);
    end(&p);
}

TEST(what_became_of_the_numbers_is_counted)
{
    TEST_NEEDS_NET();
    struct pair p;
    um_hf_stats_t stats;
    begin(&p, "hf_optional_messages", "0");
    lbm_hf_rcv_t *hf = p.hf;
    for (unsigned n = 1; n <= 3; n++) {
        give(&p, 0, n);
        give(&p, 1, n);
    }
    send_optional(&p, 0, 4);
    give(&p, 0, 8);
    CHECK(all_came(&p));
    MUST(um_hf_rcv_stats(hf, &stats));
    CHECK_EQ(stats.delivered, 4);
    CHECK_EQ(stats.duplicates, 3);
    CHECK_EQ(stats.optional, 1);
    CHECK_EQ(stats.meant, 1); /* from 5 to 7 */
    CHECK_EQ(stats.lost + stats.again + stats.waiting + stats.refused + stats.given_early + stats.resets, 0);
    uint64_t part[2] = {0, 77};
    MUST(um_hf_rcv_stats_sized(hf, (um_hf_stats_t *)(void *)part, sizeof part[0]));
    CHECK(part[0] == 4 && part[1] == 77);
    CHECK_EQ(um_hf_rcv_stats(hf, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(um_hf_rcv_stats(NULL, &stats), -1);
    end(&p);
}

static void send_with_optional(struct pair *p, int i)
{
    for (unsigned n = 10; n <= 20; n++) {
        if (n < 13 || n == 15 || n == 20) {
            give(p, i, n);
        } else {
            send_optional(p, i, n);
        }
    }
}

TEST(optional_messages_come_or_count_as_seen)
{
    TEST_NEEDS_NET();
    struct pair p;
    begin(&p, NULL, NULL);
    send_with_optional(&p, 0);
    CHECK(heard_wait(&p.heard, &p.heard.data, 11));
    send_with_optional(&p, 1);
    CHECK(all_came(&p));
    CHECK(heard_reads(&p.heard, "10 11 12 13o 14o 15 16o 17o 18o 19o 20 pass pass "));
    end(&p);
    begin(&p, "hf_optional_messages", "0");
    send_with_optional(&p, 0);
    CHECK(heard_wait(&p.heard, &p.heard.data, 5));
    send_with_optional(&p, 1);
    CHECK(all_came(&p));
    CHECK(heard_reads(&p.heard, "10 11 12 15 20 pass pass "));
    end(&p);
}

TEST(a_source_that_ends_loses_nothing)
{
    TEST_NEEDS_NET();
    struct pair p;
    begin(&p, NULL, NULL);
    for (unsigned n = 1; n <= 3; n++) {
        give(&p, 0, n);
    }
    CHECK(heard_wait(&p.heard, &p.heard.data, 3));
    MUST(lbm_src_delete(p.src[0]));
    p.src[0] = NULL;
    CHECK(heard_wait(&p.heard, &p.heard.eos, 1));
    for (unsigned n = 1; n <= 6; n++) {
        give(&p, 1, n);
    }
    CHECK(heard_wait(&p.heard, &p.heard.data, 6));
    CHECK(heard_reads(&p.heard, "1 2 3 4 5 6 "));
    CHECK_EQ(p.heard.bos, 2);
    end(&p);
}

TEST(copies_come_on_request)
{
    TEST_NEEDS_NET();
    struct pair p;
    begin(&p, "hf_duplicate_delivery", "1");
    give(&p, 0, 1);
    CHECK(heard_wait(&p.heard, &p.heard.data, 1));
    give(&p, 1, 1);
    CHECK(heard_wait(&p.heard, &p.heard.data, 2));
    CHECK(heard_reads(&p.heard, "1 1dup "));
    end(&p);
}

TEST(a_reset_lets_lower_numbers_through)
{
    TEST_NEEDS_NET();
    struct pair p;
    begin(&p, NULL, NULL);
    give(&p, 0, 100);
    give(&p, 0, 1);
    lbm_src_send_ex_info_t info = {.flags = HF_32, .hf_sqn.u32 = 1};
    MUST(lbm_hf_src_send_rcv_reset(p.src[0], LBM_MSG_FLUSH, &info));
    for (unsigned n = 1; n <= 3; n++) {
        give(&p, 0, n);
    }
    CHECK(heard_wait(&p.heard, &p.heard.data, 4));
    CHECK(heard_reads(&p.heard, "100 RESET1 1 2 3 "));
    end(&p);
}

TEST(numbers_of_64_bits_pass_2_to_the_32)
{
    TEST_NEEDS_NET();
    struct pair p;
    begin(&p, NULL, NULL);
    for (uint64_t n = 0xfffffffe; n <= 0x100000001; n++) {
        send_wide(&p, n % 2, n);
        CHECK(heard_wait(&p.heard, &p.heard.data, (int)(n - 0xfffffffe) + 1) || n > 0xfffffffe);
        send_wide(&p, (n + 1) % 2, n);
    }
    CHECK(heard_wait(&p.heard, &p.heard.data, 4));
    CHECK(heard_reads(&p.heard, "4294967294 4294967295 4294967296 4294967297 "));
    end(&p);
}

static bool log_seen(void)
{
    pthread_mutex_lock(&log_lock);
    bool seen = log_hits > 0;
    pthread_mutex_unlock(&log_lock);
    return seen;
}

TEST(another_width_is_dropped_and_told)
{
    TEST_NEEDS_NET();
    struct pair p;
    watch_log("Core-5402-1");
    begin(&p, NULL, NULL);
    give(&p, 0, 1);
    CHECK(heard_wait(&p.heard, &p.heard.data, 1));
    send_wide(&p, 1, 2);
    CHECK(all_came(&p));
    CHECK(log_seen());
    give(&p, 0, 2);
    CHECK(heard_wait(&p.heard, &p.heard.data, 2));
    end(&p);
}

TEST(a_message_of_many_fragments_comes_once)
{
    static char big[300000];
    TEST_NEEDS_NET();
    struct pair p;
    begin(&p, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        MUST(lbm_hf_src_send(p.src[i], big, sizeof big, 1, LBM_MSG_FLUSH));
        give(&p, i, 2);
    }
    CHECK(all_came(&p));
    CHECK_EQ(p.heard.data, 2);
    CHECK_EQ(p.heard.kept->len, sizeof big);
    end(&p);
}

TEST(receivers_with_and_without_hot_failover_share_a_topic)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context(), *sending = net_context();
    lbm_src_t *src = hf_source(sending, "shared");
    struct recorder r = RECORDER_INIT;
    struct heard heard = HEARD_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "shared", &r);
    lbm_hf_rcv_t *hf = hf_receiver(ctx, "shared", NULL, NULL, &heard, NULL);
    CHECK(lbm_hf_rcv_from_rcv(rcv) == NULL);
    CHECK(lbm_hf_rcv_from_rcv(lbm_rcv_from_hf_rcv(hf)) == hf);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    CHECK(heard_wait(&heard, &heard.bos, 1));
    MUST(lbm_hf_src_send(src, "a", 1, 7, 0));
    MUST(lbm_hf_src_send(src, "b", 1, 7, 0));
    MUST(lbm_hf_src_send(src, "c", 1, 8, 0));
    MUST(lbm_src_send(src, "d", 1, LBM_MSG_FLUSH));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 4));
    CHECK(recorder_reads(&r, "BOS 0=a 1=b 2=c 3=d "));
    CHECK_EQ(r.flags, 0);
    CHECK(heard_wait(&heard, &heard.passed, 1));
    CHECK(heard_reads(&heard, "7 8 pass "));
    int count = 1000;
    lbm_config_option_t options[1000];
    MUST(lbm_hf_rcv_topic_dump(hf, &count, options));
    CHECK(count > 50);
    CHECK_EQ(lbm_rcv_delete(lbm_rcv_from_hf_rcv(hf)), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    MUST(lbm_hf_rcv_delete(hf));
    CHECK_EQ(lbm_hf_rcv_delete(NULL), -1);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(sending));
    MUST(lbm_context_delete(ctx));
    heard_forget(&heard);
}

static int dispatch_until(lbm_event_queue_t *evq, const int *count, int least)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && *count < least; i++) {
        lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL);
        usleep(1000);
    }
    return *count;
}

TEST(through_an_event_queue_the_numbers_are_the_same)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context(), *sending = net_context();
    lbm_event_queue_t *evq;
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    lbm_src_t *src = hf_source(sending, "queued");
    struct heard heard = HEARD_INIT;
    lbm_hf_rcv_t *hf = hf_receiver(ctx, "queued", NULL, NULL, &heard, evq);
    CHECK_EQ(dispatch_until(evq, &heard.bos, 1), 1);
    for (unsigned n = 1; n <= 3; n++) {
        MUST(lbm_hf_src_send(src, "a", 1, n, LBM_MSG_FLUSH));
        MUST(lbm_hf_src_send(src, "a", 1, n, LBM_MSG_FLUSH));
    }
    CHECK_EQ(dispatch_until(evq, &heard.data, 3), 3);
    CHECK(heard_reads(&heard, "1 2 3 "));
    CHECK(!heard.wrong);
    MUST(lbm_hf_rcv_delete(hf));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(sending));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_event_queue_delete(evq));
    heard_forget(&heard);
}

TEST(receivers_of_a_wildcard_merge_their_topics)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context(), *sending[2] = {net_context(), net_context()};
    lbm_src_t *src[2];
    struct heard heard = HEARD_INIT;
    lbm_wildcard_rcv_attr_t *wattr;
    lbm_wildcard_rcv_t *wrcv;
    for (int i = 0; i < 2; i++) {
        src[i] = hf_source(sending[i], "wild.one");
    }
    MUST(lbm_wildcard_rcv_attr_create(&wattr));
    MUST(lbm_wildcard_rcv_attr_str_setopt(wattr, "hf_receiver", "1"));
    MUST(lbm_wildcard_rcv_create(&wrcv, ctx, "^wild", NULL, wattr, on_msg, &heard, NULL));
    MUST(lbm_wildcard_rcv_attr_delete(wattr));
    CHECK(heard_wait(&heard, &heard.bos, 2));
    for (int i = 0; i < 2; i++) {
        MUST(lbm_hf_src_send(src[i], "a", 1, 1, 0));
        MUST(lbm_hf_src_send(src[i], "a", 1, 2, 0));
        MUST(lbm_src_send(src[i], "a", 1, LBM_MSG_FLUSH));
    }
    CHECK(heard_wait(&heard, &heard.passed, 2));
    CHECK_EQ(heard.data, 2);
    MUST(lbm_wildcard_rcv_delete(wrcv));
    for (int i = 0; i < 2; i++) {
        MUST(lbm_src_delete(src[i]));
        MUST(lbm_context_delete(sending[i]));
    }
    MUST(lbm_context_delete(ctx));
    heard_forget(&heard);
}

static int property_of(const lbm_msg_t *msg, const char *name)
{
    int value = -1, type = LBM_MSG_PROPERTY_INT;
    size_t size = sizeof value;
    return msg->properties != NULL && lbm_msg_properties_get(msg->properties, name, &value, &type, &size) == 0 ? value
                                                                                                               : -1;
}

TEST(properties_go_through_the_merge)
{
    TEST_NEEDS_NET();
    struct pair p;
    lbm_msg_properties_t *properties;
    int value = 77;
    begin(&p, NULL, NULL);
    MUST(lbm_msg_properties_create(&properties));
    MUST(lbm_msg_properties_set(properties, "k", &value, LBM_MSG_PROPERTY_INT, sizeof value));
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_PROPERTIES, .properties = properties};
    for (int i = 0; i < 2; i++) {
        MUST(lbm_hf_src_send_ex(p.src[i], "x", 1, 1, LBM_MSG_FLUSH, &info));
        give(&p, i, 2);
    }
    MUST(lbm_msg_properties_delete(properties));
    CHECK(all_came(&p));
    CHECK_EQ(p.heard.data, 2);
    CHECK_EQ(p.heard.kept->len, 1);
    CHECK_EQ(property_of(p.heard.kept, "k"), 77); /* its own, after what came behind it */
    end(&p);
}
