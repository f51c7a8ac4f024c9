/* Hot failover over several contexts through the public interface: paths that know nothing of each other, each with a
 * source and a context that receives, and one HFX over the receiving contexts. */
#include <inttypes.h>
#include <stdatomic.h>
#include <unistd.h>

#include "um_test_rcv.h"

#define PATHS 2
#define LENGTH_MAX (1u << 20)

/* What came, as text: "1:0 5:1 " is number 1 by path 0, then 5 by path 1. */
struct heard {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char text[4096];
    int bos, data, resets, lost, passed;
    bool wrong;        /* flags, fields, or two threads at a time */
    atomic_int inside; /* callbacks in progress */
    unsigned next;     /* counting: number that is to come next */
    bool counting;     /* numbers go up by one; text stays empty */
    unsigned gate_at;  /* its callback waits until the gate is open; 0: none */
    bool at_gate, open;
    int (*then)(lbm_rcv_t *rcv, lbm_msg_t *msg, void *arg);
    void *arg;
    lbm_msg_t *kept;
};

struct path {
    struct heard *heard;
    int index;
    lbm_context_t *sending, *receiving;
    lbm_src_t *src;
    lbm_hfx_rcv_t *member;
};

struct rig {
    struct path paths[PATHS];
    struct heard heard;
    lbm_hfx_t *hfx;
    lbm_event_queue_t *evq;
};

static void note(struct heard *h, const char *text)
{
    size_t used = strlen(h->text);
    snprintf(h->text + used, sizeof h->text - used, "%s", text);
}

static void note_number(struct heard *h, const struct path *path, const lbm_msg_t *msg)
{
    char text[64];
    bool wide = (msg->flags & LBM_MSG_FLAG_HF_64) != 0;
    uint64_t number = wide ? msg->hf_sequence_number.u64 : msg->hf_sequence_number.u32;
    const char *kind = msg->type == LBM_MSG_HF_RESET ? "RESET" : msg->type == LBM_MSG_DATA ? "" : "LOST";
    snprintf(text, sizeof text, "%s%" PRIu64 ":%d%s%s ", kind, number, path->index,
             (msg->flags & LBM_MSG_FLAG_HF_OPTIONAL) ? "o" : "", (msg->flags & LBM_MSG_FLAG_HF_DUPLICATE) ? "dup" : "");
    if (h->counting && msg->type == LBM_MSG_DATA) {
        if (number != h->next) {
            fprintf(stderr, "number %" PRIu64 " instead of %u by path %d\n", number, h->next, path->index);
            h->wrong = true;
        }
        h->next = (unsigned)number + 1;
    } else {
        note(h, text);
    }
    h->wrong |= msg->source[0] == '\0' || msg->tsp.tv_sec == 0 || msg->source_clientd != NULL;
    h->wrong |= msg->sequence_number != (wide ? 0 : (unsigned)number);
}

static void wait_at_gate(struct heard *h)
{
    h->at_gate = true;
    pthread_cond_broadcast(&h->changed);
    while (!h->open) {
        pthread_cond_wait(&h->changed, &h->lock);
    }
}

static void count(struct heard *h, const struct path *path, const lbm_msg_t *msg)
{
    bool passed = (msg->flags & LBM_MSG_FLAG_HF_PASS_THROUGH) != 0;
    bool loss = msg->type == LBM_MSG_UNRECOVERABLE_LOSS || msg->type == LBM_MSG_UNRECOVERABLE_LOSS_BURST;
    h->bos += msg->type == LBM_MSG_BOS;
    h->passed += passed && msg->type == LBM_MSG_DATA;
    if (!passed && (msg->type == LBM_MSG_DATA || msg->type == LBM_MSG_HF_RESET || loss)) {
        note_number(h, path, msg);
        h->lost += loss;
        h->data += msg->type == LBM_MSG_DATA;
        h->resets += msg->type == LBM_MSG_HF_RESET;
    }
}

static int on_msg(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    const struct path *path = clientd;
    struct heard *h = path->heard;
    pthread_mutex_lock(&h->lock);
    h->wrong |= atomic_fetch_add(&h->inside, 1) != 0;
    bool numbered = msg->type == LBM_MSG_DATA && (msg->flags & LBM_MSG_FLAG_HF_PASS_THROUGH) == 0;
    if (numbered && h->gate_at != 0 && msg->hf_sequence_number.u32 == h->gate_at) {
        wait_at_gate(h);
    }
    count(h, path, msg);
    if (numbered && h->kept == NULL) {
        MUST(lbm_msg_retain(msg));
        h->kept = msg;
    }
    pthread_mutex_unlock(&h->lock);
    int rc = numbered && h->then != NULL ? h->then(rcv, msg, h->arg) : 0;
    pthread_mutex_lock(&h->lock);
    atomic_fetch_sub(&h->inside, 1);
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return rc;
}

static bool heard_wait(struct heard *h, const int *value, int least)
{
    pthread_mutex_lock(&h->lock);
    bool ok = wait_for_count(&h->changed, &h->lock, value, least);
    if (!ok || h->wrong) {
        fprintf(stderr, "heard: %s%s\n", h->text, h->wrong ? ", with something wrong" : "");
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

static void wait_for_gate(struct heard *h)
{
    pthread_mutex_lock(&h->lock);
    while (!h->at_gate) {
        pthread_cond_wait(&h->changed, &h->lock);
    }
    pthread_mutex_unlock(&h->lock);
}

static void open_gate(struct heard *h)
{
    pthread_mutex_lock(&h->lock);
    h->open = true;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

/* ---- a rig ---- */

/* Of one path: others advertise elsewhere. */
static lbm_context_t *path_context(int index)
{
    char port[16];
    lbm_context_attr_t *attr = net_context_attr();
    snprintf(port, sizeof port, "%d", 13000 + index);
    MUST(lbm_context_attr_str_setopt(attr, "resolver_multicast_port", port));
    return net_context_with(attr);
}

static void open_member(struct rig *rig, int index, const char *option, const char *value)
{
    lbm_rcv_topic_attr_t *attr;
    struct path *path = &rig->paths[index];
    MUST(lbm_rcv_topic_attr_create(&attr));
    if (option != NULL) {
        MUST(lbm_rcv_topic_attr_str_setopt(attr, option, value));
    }
    MUST(lbm_hfx_rcv_create(&path->member, rig->hfx, path->receiving, attr, path));
    MUST(lbm_rcv_topic_attr_delete(attr));
    MUST(um_rcv_wait_ready(lbm_rcv_from_hfx_rcv(path->member), 1, HANG_SECONDS * 1000));
}

static void close_member(struct rig *rig, int index)
{
    MUST(lbm_hfx_rcv_delete(rig->paths[index].member));
    rig->paths[index].member = NULL;
}

/* `options`: name, value, and so on; NULL at the end. */
static void make_hfx(struct rig *rig, const char *const *options)
{
    lbm_hfx_attr_t *attr;
    MUST(lbm_hfx_attr_create(&attr));
    for (; options != NULL && options[0] != NULL; options += 2) {
        MUST(lbm_hfx_attr_str_setopt(attr, options[0], options[1]));
    }
    MUST(lbm_hfx_create(&rig->hfx, attr, "hot", on_msg, rig->evq));
    MUST(lbm_hfx_attr_delete(attr));
}

static void make_paths(struct rig *rig)
{
    for (int i = 0; i < PATHS; i++) {
        lbm_topic_t *topic;
        struct path *path = &rig->paths[i];
        *path = (struct path){.heard = &rig->heard, .index = i};
        path->sending = path_context(i);
        path->receiving = path_context(i);
        MUST(lbm_src_topic_alloc(&topic, path->sending, "hot", NULL));
        MUST(lbm_hf_src_create(&path->src, path->sending, topic, NULL, NULL, NULL));
    }
}

#define RIG_INIT                                                                                                       \
    {                                                                                                                  \
        .heard = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .next = 1 }                  \
    }

static void begin(struct rig *rig, const char *const *options)
{
    *rig = (struct rig)RIG_INIT;
    make_hfx(rig, options);
    make_paths(rig);
    for (int i = 0; i < PATHS; i++) {
        open_member(rig, i, NULL, NULL);
    }
}

static void end_paths(struct rig *rig)
{
    for (int i = 0; i < PATHS; i++) {
        MUST(lbm_src_delete(rig->paths[i].src));
        MUST(lbm_context_delete(rig->paths[i].sending));
        MUST(lbm_context_delete(rig->paths[i].receiving));
    }
}

static void end(struct rig *rig)
{
    for (int i = 0; i < PATHS; i++) {
        if (rig->paths[i].member != NULL) {
            close_member(rig, i);
        }
    }
    MUST(lbm_hfx_delete(rig->hfx));
    end_paths(rig);
    if (rig->heard.kept != NULL) {
        MUST(lbm_msg_delete(rig->heard.kept));
    }
}

static void give(struct rig *rig, int index, unsigned number)
{
    MUST(lbm_hf_src_send(rig->paths[index].src, "x", 1, number, LBM_MSG_FLUSH | LBM_SRC_BLOCK));
}

static void give_all(struct rig *rig, int index, unsigned first, unsigned last)
{
    for (unsigned n = first; n <= last; n++) {
        give(rig, index, n);
    }
}

static void give_optional(struct rig *rig, int index, unsigned number)
{
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_HF_32 | LBM_SRC_SEND_EX_FLAG_HF_OPTIONAL,
                                   .hf_sqn.u32 = number};
    MUST(lbm_hf_src_send_ex(rig->paths[index].src, "x", 1, 0, LBM_MSG_FLUSH, &info));
}

/* A message without a number passes the merge: when it has come, everything before it is there. */
static bool all_came(struct rig *rig, int index)
{
    pthread_mutex_lock(&rig->heard.lock);
    int passed = rig->heard.passed;
    pthread_mutex_unlock(&rig->heard.lock);
    MUST(lbm_src_send(rig->paths[index].src, "end", 3, LBM_MSG_FLUSH));
    return heard_wait(&rig->heard, &rig->heard.passed, passed + 1);
}

/* ---- the merge ---- */

TEST(each_number_comes_once_by_the_path_that_brought_it_first)
{
    TEST_NEEDS_NET();
    struct rig rig;
    begin(&rig, NULL);
    give_all(&rig, 0, 10, 13);
    CHECK(all_came(&rig, 0));
    give_all(&rig, 1, 10, 15);
    CHECK(all_came(&rig, 1));
    give_all(&rig, 0, 14, 16);
    CHECK(all_came(&rig, 0));
    CHECK(heard_reads(&rig.heard, "10:0 11:0 12:0 13:0 14:1 15:1 16:0 "));
    CHECK_EQ(rig.heard.bos, 2);
    CHECK_EQ(rig.heard.kept->hf_sequence_number.u32, 10); /* retained, and not what came after it */
    end(&rig);
}

TEST(gaps_that_a_source_has_made_cost_nothing)
{
    static const unsigned numbers[] = {10, 11, 12, 13, 25, 26, 38};
    TEST_NEEDS_NET();
    struct rig rig;
    begin(&rig, NULL);
    for (int i = 0; i < 7; i++) {
        give(&rig, 0, numbers[i]);
        give(&rig, 1, numbers[i]);
    }
    CHECK(all_came(&rig, 0));
    CHECK(all_came(&rig, 1));
    CHECK_EQ(rig.heard.data, 7);
    CHECK_EQ(rig.heard.lost, 0);
    end(&rig);
}

/* The first message of a source proves nothing of what was before it: 5 has to wait. */
TEST(what_one_path_brings_too_early_waits_for_the_other)
{
    TEST_NEEDS_NET();
    struct rig rig;
    begin(&rig, NULL);
    give(&rig, 0, 1);
    CHECK(all_came(&rig, 0));
    give(&rig, 1, 5);
    CHECK(all_came(&rig, 1));
    CHECK(heard_reads(&rig.heard, "1:0 "));
    give_all(&rig, 0, 2, 6);
    CHECK(all_came(&rig, 0));
    CHECK(heard_reads(&rig.heard, "1:0 2:0 3:0 4:0 5:1 6:0 "));
    end(&rig);
}

TEST(in_arrival_order_nothing_waits)
{
    TEST_NEEDS_NET();
    struct rig rig;
    begin(&rig, (const char *const[]){"ordered_delivery", "-1", NULL});
    give(&rig, 0, 1);
    CHECK(all_came(&rig, 0));
    give(&rig, 1, 5);
    CHECK(all_came(&rig, 1));
    give_all(&rig, 0, 2, 6);
    CHECK(all_came(&rig, 0));
    CHECK(heard_reads(&rig.heard, "1:0 5:1 2:0 3:0 4:0 6:0 "));
    end(&rig);
}

TEST(copies_come_on_request)
{
    TEST_NEEDS_NET();
    struct rig rig;
    begin(&rig, (const char *const[]){"duplicate_delivery", "1", NULL});
    give(&rig, 0, 1);
    CHECK(all_came(&rig, 0));
    give(&rig, 1, 1);
    CHECK(all_came(&rig, 1));
    CHECK(heard_reads(&rig.heard, "1:0 1:1dup "));
    end(&rig);
}

TEST(a_loss_is_told_with_its_source_when_the_interval_has_it_looked_for)
{
    TEST_NEEDS_NET();
    struct rig rig;
    begin(&rig,
          (const char *const[]){"delivery_control_max_delay", "1", "delivery_control_loss_check_interval", "5", NULL});
    give(&rig, 0, 1);
    CHECK(all_came(&rig, 0));
    give(&rig, 1, 3);
    CHECK(heard_wait(&rig.heard, &rig.heard.data, 2));
    CHECK_EQ(rig.heard.lost, 1); /* note_number() has looked at source and time */
    end(&rig);
}

TEST(without_an_interval_losses_are_looked_for_when_something_comes)
{
    TEST_NEEDS_NET();
    struct rig rig;
    begin(&rig, (const char *const[]){"delivery_control_max_delay", "1", NULL});
    give(&rig, 0, 1);
    CHECK(all_came(&rig, 0));
    give(&rig, 1, 3);
    for (int i = 0; i < HANG_SECONDS * 100; i++) {
        CHECK(all_came(&rig, 1));
        if (rig.heard.lost > 0) {
            break;
        }
        sleep_ms(1);
    }
    CHECK(heard_reads(&rig.heard, "1:0 LOST2:1 3:1 "));
    end(&rig);
}

TEST(a_long_gap_is_one_burst)
{
    TEST_NEEDS_NET();
    struct rig rig;
    begin(&rig, (const char *const[]){"delivery_control_max_delay", "1", "delivery_control_loss_check_interval", "5",
                                      "delivery_control_maximum_burst_loss", "10", NULL});
    give(&rig, 0, 1);
    CHECK(all_came(&rig, 0));
    give(&rig, 1, 12);
    CHECK(heard_wait(&rig.heard, &rig.heard.data, 2));
    CHECK(heard_wait(&rig.heard, &rig.heard.lost, 1));
    CHECK(strncmp(rig.heard.text, "1:0 LOST2:", 10) == 0);
    CHECK_EQ(rig.heard.lost, 1);
    end(&rig);
}

TEST(what_may_wait_is_bounded)
{
    TEST_NEEDS_NET();
    struct rig rig;
    begin(&rig, (const char *const[]){"delivery_control_maximum_total_map_entries", "2", NULL});
    give(&rig, 0, 1);
    CHECK(all_came(&rig, 0));
    give_all(&rig, 1, 3, 5);
    CHECK(all_came(&rig, 1));
    CHECK(heard_reads(&rig.heard, "1:0 LOST2:1 3:1 4:1 5:1 "));
    end(&rig);
}

TEST(optional_messages_are_left_out_where_a_member_does_not_want_them)
{
    TEST_NEEDS_NET();
    struct rig rig = RIG_INIT;
    make_hfx(&rig, NULL);
    make_paths(&rig);
    open_member(&rig, 0, NULL, NULL);
    open_member(&rig, 1, "hf_optional_messages", "0");
    give_optional(&rig, 0, 1);
    CHECK(all_came(&rig, 0));
    give_optional(&rig, 1, 1);
    give_optional(&rig, 1, 2); /* counts as seen */
    give(&rig, 1, 3);
    CHECK(all_came(&rig, 1));
    give_optional(&rig, 0, 2);
    give(&rig, 0, 3);
    give_optional(&rig, 0, 4);
    CHECK(all_came(&rig, 0));
    CHECK(heard_reads(&rig.heard, "1:0o 3:1 4:0o "));
    end(&rig);
}

static void reset_to(struct rig *rig, int index, unsigned number)
{
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_HF_32, .hf_sqn.u32 = number};
    MUST(lbm_hf_src_send_rcv_reset(rig->paths[index].src, LBM_MSG_FLUSH, &info));
}

TEST(the_first_reset_rules)
{
    TEST_NEEDS_NET();
    struct rig rig;
    begin(&rig, NULL);
    for (int i = 0; i < PATHS; i++) {
        give(&rig, i, 100);
        CHECK(all_came(&rig, i));
    }
    for (int i = 0; i < PATHS; i++) {
        reset_to(&rig, i, 1);
        give_all(&rig, i, 1, 2);
        CHECK(all_came(&rig, i));
    }
    CHECK(heard_reads(&rig.heard, "100:0 RESET1:0 1:0 2:0 "));
    end(&rig);
}

TEST(numbers_of_64_bits_are_merged_too)
{
    TEST_NEEDS_NET();
    struct rig rig;
    begin(&rig, NULL);
    for (int i = 0; i < PATHS; i++) {
        for (uint64_t n = 0xffffffff; n <= 0x100000001; n++) {
            lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_HF_64, .hf_sqn.u64 = n};
            MUST(lbm_hf_src_send_ex(rig.paths[i].src, "x", 1, 0, LBM_MSG_FLUSH, &info));
        }
        CHECK(all_came(&rig, i));
    }
    CHECK(heard_reads(&rig.heard, "4294967295:0 4294967296:0 4294967297:0 "));
    end(&rig);
}

/* ---- threads ---- */

TEST(a_callback_in_progress_holds_up_no_other_context)
{
    TEST_NEEDS_NET();
    struct rig rig;
    begin(&rig, NULL);
    rig.heard.gate_at = 1;
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *other = net_recording_receiver(rig.paths[1].receiving, "hot", &r);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    give(&rig, 0, 1);
    wait_for_gate(&rig.heard);
    give_all(&rig, 1, 1, 3);
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 3)); /* its context goes on: receives, */
    MUST(lbm_rcv_delete(other));               /* and is at our service */
    open_gate(&rig.heard);
    CHECK(heard_wait(&rig.heard, &rig.heard.data, 3));
    CHECK(heard_reads(&rig.heard, "1:0 2:1 3:1 "));
    end(&rig);
}

/* More than may wait for a callback is refused and counts as missing, and another path may bring it. */
TEST(what_waits_for_a_callback_is_bounded)
{
    static char big[LENGTH_MAX];
    const unsigned last = 80;
    TEST_NEEDS_NET();
    struct rig rig;
    begin(&rig, NULL);
    rig.heard.gate_at = 1;
    rig.heard.counting = true;
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *other = net_recording_receiver(rig.paths[1].receiving, "hot", &r);
    CHECK(recorder_wait(&r, LBM_MSG_BOS, 1));
    give(&rig, 0, 1);
    wait_for_gate(&rig.heard);
    for (unsigned n = 1; n <= last; n++) {
        MUST(lbm_hf_src_send(rig.paths[1].src, big, sizeof big, n, LBM_MSG_FLUSH | LBM_SRC_BLOCK));
    }
    CHECK(recorder_wait(&r, LBM_MSG_DATA, (int)last));
    MUST(lbm_rcv_delete(other)); /* after this the last one has been offered to the HFX */
    open_gate(&rig.heard);
    CHECK(heard_wait(&rig.heard, &rig.heard.data, 60));
    CHECK(all_came(&rig, 1));
    pthread_mutex_lock(&rig.heard.lock);
    int came = rig.heard.data;
    pthread_mutex_unlock(&rig.heard.lock);
    CHECK(came < (int)last);
    um_hf_stats_t stats;
    MUST(um_hfx_stats(rig.hfx, &stats));
    CHECK_EQ(stats.delivered, came);
    CHECK_EQ(stats.refused, (int)last - came);
    give_all(&rig, 0, 2, last);
    CHECK(heard_wait(&rig.heard, &rig.heard.data, (int)last));
    MUST(um_hfx_stats(rig.hfx, &stats));
    CHECK_EQ(stats.lost, 0);
    end(&rig);
}

struct sender {
    struct rig *rig;
    int index;
    unsigned last;
};

static void *send_all(void *arg)
{
    const struct sender *sender = arg;
    give_all(sender->rig, sender->index, 2, sender->last);
    return NULL;
}

TEST(with_all_paths_busy_and_members_that_come_and_go_each_number_comes_once_in_order)
{
    const unsigned last = 3000;
    TEST_NEEDS_NET();
    struct rig rig;
    begin(&rig, NULL);
    rig.heard.counting = true;
    give(&rig, 0, 1); /* whatever comes first is where numbers begin: not with what a member that comes back gets */
    CHECK(all_came(&rig, 0));
    pthread_t threads[PATHS];
    struct sender senders[PATHS];
    for (int i = 0; i < PATHS; i++) {
        senders[i] = (struct sender){&rig, i, last};
        CHECK_EQ(pthread_create(&threads[i], NULL, send_all, &senders[i]), 0);
    }
    for (int i = 0; i < 10; i++) {
        close_member(&rig, 1);
        open_member(&rig, 1, NULL, NULL);
    }
    for (int i = 0; i < PATHS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(heard_wait(&rig.heard, &rig.heard.data, (int)last));
    CHECK(all_came(&rig, 0));
    CHECK(all_came(&rig, 1));
    CHECK_EQ(rig.heard.data, (int)last);
    CHECK_EQ(rig.heard.lost, 0);
    end(&rig);
}

/* ---- life ---- */

TEST(what_came_by_a_member_that_is_deleted_comes_by_another_one)
{
    TEST_NEEDS_NET();
    struct rig rig;
    begin(&rig, NULL);
    give(&rig, 0, 1);
    CHECK(all_came(&rig, 0));
    give(&rig, 1, 5);
    CHECK(all_came(&rig, 1));
    close_member(&rig, 1);
    give_all(&rig, 0, 2, 4);
    CHECK(heard_wait(&rig.heard, &rig.heard.data, 5));
    CHECK(heard_reads(&rig.heard, "1:0 2:0 3:0 4:0 5:0 "));
    end(&rig);
}

TEST(a_gap_that_a_deleted_member_was_to_look_at_is_looked_at_by_another)
{
    TEST_NEEDS_NET();
    struct rig rig;
    begin(&rig, (const char *const[]){"delivery_control_max_delay", "100", "delivery_control_loss_check_interval", "5",
                                      NULL});
    give(&rig, 0, 1);
    CHECK(all_came(&rig, 0));
    give(&rig, 1, 3);
    CHECK(all_came(&rig, 1));
    close_member(&rig, 1); /* before that time, unless this machine is slow */
    CHECK(heard_wait(&rig.heard, &rig.heard.data, 2));
    CHECK_EQ(rig.heard.lost, 1);
    end(&rig);
}

TEST(objects_are_deleted_with_messages_that_wait_and_members_first)
{
    TEST_NEEDS_NET();
    for (int first = 0; first < PATHS; first++) {
        struct rig rig;
        begin(&rig, NULL);
        give(&rig, 0, 1);
        CHECK(all_came(&rig, 0));
        give(&rig, 1, 5);
        CHECK(all_came(&rig, 1));
        CHECK_EQ(lbm_hfx_delete(rig.hfx), -1);
        CHECK_EQ(lbm_errnum(), LBM_EOP);
        CHECK_EQ(lbm_context_delete(rig.paths[0].receiving), -1);
        CHECK_EQ(lbm_rcv_delete(lbm_rcv_from_hfx_rcv(rig.paths[0].member)), -1);
        CHECK_EQ(lbm_errnum(), LBM_EINVAL);
        close_member(&rig, first);
        end(&rig);
    }
}

static int delete_in_callback(lbm_rcv_t *rcv, lbm_msg_t *msg, void *arg)
{
    struct rig *rig = arg;
    lbm_hfx_rcv_t *made;
    REQUIRE(lbm_hfx_rcv_delete(rig->paths[1].member) == -1 && lbm_errnum() == LBM_EOP);
    REQUIRE(lbm_hfx_rcv_delete(rig->paths[0].member) == -1 && lbm_errnum() == LBM_EOP);
    REQUIRE(lbm_hfx_rcv_create(&made, rig->hfx, rig->paths[0].receiving, NULL, NULL) == -1 && lbm_errnum() == LBM_EOP);
    REQUIRE(lbm_hfx_delete(rig->hfx) == -1 && lbm_errnum() == LBM_EOP);
    return 0;
}

TEST(in_a_callback_of_a_context_nothing_is_deleted)
{
    TEST_NEEDS_NET();
    struct rig rig;
    begin(&rig, NULL);
    rig.heard.then = delete_in_callback;
    rig.heard.arg = &rig;
    give(&rig, 0, 1);
    CHECK(heard_wait(&rig.heard, &rig.heard.data, 1));
    CHECK(all_came(&rig, 0));
    end(&rig);
}

struct told {
    int calls, dispatching;
};

static void on_deleted(int dispatching, void *clientd)
{
    struct told *told = clientd;
    told->calls++;
    told->dispatching = dispatching;
}

TEST(deletions_are_told_without_a_queue_too)
{
    TEST_NEEDS_NET();
    struct rig rig;
    struct told member = {0}, whole = {0};
    begin(&rig, NULL);
    lbm_event_queue_cancel_cb_info_t info = {.cbproc = on_deleted, .clientd = &member};
    MUST(lbm_hfx_rcv_delete_ex(rig.paths[0].member, &info));
    CHECK_EQ(member.calls, 1);
    CHECK_EQ(member.dispatching, 0);
    close_member(&rig, 1);
    info.clientd = &whole;
    MUST(lbm_hfx_delete_ex(rig.hfx, &info));
    CHECK_EQ(whole.calls, 1);
    end_paths(&rig);
}

static int delete_while_dispatching(lbm_rcv_t *rcv, lbm_msg_t *msg, void *arg)
{
    struct rig *rig = arg;
    for (int i = 0; i < PATHS; i++) {
        close_member(rig, i);
    }
    MUST(lbm_hfx_delete(rig->hfx));
    rig->hfx = NULL;
    return 0;
}

static bool dispatch_until(struct rig *rig, const int *value, int least)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && *value < least; i++) {
        if (lbm_event_dispatch(rig->evq, LBM_EVENT_QUEUE_POLL) == 0) {
            sleep_ms(1);
        }
    }
    return *value >= least;
}

TEST(through_an_event_queue_numbers_are_the_same_and_all_may_be_deleted_there)
{
    TEST_NEEDS_NET();
    struct rig rig = RIG_INIT;
    MUST(lbm_event_queue_create(&rig.evq, NULL, NULL, NULL));
    make_hfx(&rig, NULL);
    make_paths(&rig);
    for (int i = 0; i < PATHS; i++) {
        open_member(&rig, i, NULL, NULL);
        give_all(&rig, i, 1, 4);
        MUST(lbm_src_send(rig.paths[i].src, "end", 3, LBM_MSG_FLUSH));
        CHECK(dispatch_until(&rig, &rig.heard.passed, i + 1));
    }
    CHECK(heard_reads(&rig.heard, "1:0 2:0 3:0 4:0 "));
    CHECK(!rig.heard.wrong);
    rig.heard.then = delete_while_dispatching;
    rig.heard.arg = &rig;
    give(&rig, 1, 5);
    CHECK(dispatch_until(&rig, &rig.heard.data, 5));
    CHECK(rig.hfx == NULL);
    end_paths(&rig);
    MUST(lbm_event_queue_delete(rig.evq));
    MUST(lbm_msg_delete(rig.heard.kept));
}

TEST(arguments_are_checked)
{
    TEST_NEEDS_NET();
    struct rig rig;
    lbm_hfx_t *hfx;
    lbm_hfx_rcv_t *member;
    char text[100], small[10];
    size_t room = sizeof text;
    lbm_config_option_t options[1000];
    int size = 1000;
    begin(&rig, (const char *const[]){"ordered_delivery", "-1", NULL});
    CHECK_EQ(lbm_hfx_create(&hfx, NULL, "hot", NULL, NULL), -1);
    CHECK_EQ(lbm_hfx_create(&hfx, NULL, "", on_msg, NULL), -1);
    CHECK_EQ(lbm_hfx_create(NULL, NULL, "hot", on_msg, NULL), -1);
    CHECK_EQ(lbm_hfx_rcv_create(&member, rig.hfx, NULL, NULL, NULL), -1);
    CHECK_EQ(lbm_hfx_rcv_create(NULL, rig.hfx, rig.paths[0].receiving, NULL, NULL), -1);
    CHECK_EQ(lbm_hfx_rcv_create(&member, rig.hfx, rig.paths[0].receiving, NULL, NULL), -1); /* has one */
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_hfx_rcv_delete(NULL), -1);
    CHECK_EQ(lbm_hfx_delete(NULL), -1);
    CHECK_EQ(um_hfx_stats(NULL, &(um_hf_stats_t){0}), -1);
    CHECK_EQ(um_hfx_stats(rig.hfx, NULL), -1);
    CHECK(lbm_rcv_from_hfx_rcv(NULL) == NULL);
    CHECK(lbm_hf_rcv_from_rcv(lbm_rcv_from_hfx_rcv(rig.paths[0].member)) == NULL);
    CHECK_EQ(lbm_rcv_subscribe_channel(lbm_rcv_from_hfx_rcv(rig.paths[0].member), 1, on_msg, NULL), -1);
    MUST(lbm_hfx_str_getopt(rig.hfx, "ordered_delivery", text, &room));
    CHECK(strcmp(text, "-1") == 0);
    CHECK_EQ(lbm_hfx_str_setopt(rig.hfx, "ordered_delivery", "1"), -1); /* not of a living object */
    CHECK_EQ(lbm_hfx_setopt(rig.hfx, "ordered_delivery", NULL, 4), -1);
    room = sizeof small;
    CHECK_EQ(lbm_hfx_getopt(NULL, "ordered_delivery", small, &room), -1);
    MUST(lbm_hfx_dump(rig.hfx, &size, options));
    CHECK_EQ(size, lbm_hfx_attr_option_size());
    size = 1000;
    MUST(lbm_hfx_rcv_topic_dump(rig.paths[0].member, &size, options));
    CHECK(size > 50);
    CHECK_EQ(lbm_hfx_rcv_topic_dump(rig.paths[0].member, NULL, options), -1);
    end(&rig);
}
