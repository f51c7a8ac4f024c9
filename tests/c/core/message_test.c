/* Life of messages: retaining hands over the very pointer and keeps the buffer,
 * holds are counted across threads, forbidden deletes are refused. */
#include <pthread.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "core/um_message.h"
#include "um_test.h"

/* A template about to be delivered, as a delivery controller's owner keeps it. */
static struct um_msg *make_template(struct um_buf *buf)
{
    struct um_msg *msg = um_msg_create("TCP:127.0.0.1:14371:0000002a[7]", "Market/A");
    um_msg_mark(msg, UM_MSG_TEMPLATE, true);
    um_msg_mark(msg, UM_MSG_DELIVERING, true);
    msg->buf = buf;
    msg->pub.data = (const char *)buf->data;
    msg->pub.len = 5;
    return msg;
}

static struct um_buf *make_buf(void)
{
    struct um_buf *buf = um_buf_alloc(16);
    memcpy(buf->data, "hello", 6);
    return buf;
}

TEST(retained_message_keeps_pointer_and_payload_without_copying)
{
    struct um_buf *buf = make_buf();
    struct um_msg *msg = make_template(buf);
    CHECK_EQ(lbm_msg_retain(&msg->pub), 0);
    struct um_msg *next = um_msg_template_next(msg);
    CHECK(next != msg);
    CHECK(um_msg_is(next, UM_MSG_TEMPLATE));
    CHECK_STR(next->pub.source, msg->pub.source);
    CHECK_STR(next->pub.topic_name, "Market/A");
    um_buf_unref(buf); /* the transport is done with it */
    CHECK(msg->pub.data == (const char *)buf->data);
    CHECK_STR(msg->pub.data, "hello");
    CHECK_EQ(lbm_msg_delete(&msg->pub), 0);
    um_msg_release(next);
}

TEST(template_that_was_not_retained_is_used_again)
{
    struct um_buf *buf = make_buf();
    struct um_msg *msg = make_template(buf);
    CHECK(um_msg_template_next(msg) == msg);
    CHECK_EQ(atomic_load(&buf->refs), 1);
    um_msg_release(msg);
    um_buf_unref(buf);
}

TEST(deleting_a_message_that_was_not_retained_is_refused)
{
    struct um_buf *buf = make_buf();
    struct um_msg *msg = make_template(buf);
    CHECK_EQ(lbm_msg_delete(&msg->pub), -1);
    CHECK_EQ(um_errnum(), UM_EINVAL);
    CHECK_CONTAINS(um_errmsg(), "not retained");
    um_msg_release(msg);
    um_buf_unref(buf);
}

TEST(retaining_after_the_callback_is_refused)
{
    struct um_buf *buf = make_buf();
    struct um_msg *msg = make_template(buf);
    um_msg_mark(msg, UM_MSG_DELIVERING, false);
    CHECK_EQ(lbm_msg_retain(&msg->pub), -1);
    CHECK_EQ(um_errnum(), UM_EINVAL);
    um_msg_release(msg);
    um_buf_unref(buf);
}

TEST(retaining_n_times_needs_n_deletes)
{
    struct um_buf *buf = make_buf();
    struct um_msg *msg = make_template(buf);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(lbm_msg_retain(&msg->pub), 0);
    }
    um_msg_release(um_msg_template_next(msg));
    CHECK_EQ(lbm_msg_delete(&msg->pub), 0);
    CHECK_EQ(lbm_msg_delete(&msg->pub), 0);
    CHECK_STR(msg->pub.data, "hello");
    CHECK_EQ(lbm_msg_delete(&msg->pub), 0);
    CHECK_EQ(atomic_load(&buf->refs), 1);
    um_buf_unref(buf);
}

TEST(retained_and_deleted_inside_the_callback_leaves_nothing_behind)
{
    struct um_buf *buf = make_buf();
    struct um_msg *msg = make_template(buf);
    CHECK_EQ(lbm_msg_retain(&msg->pub), 0);
    CHECK_EQ(lbm_msg_delete(&msg->pub), 0);
    struct um_msg *next = um_msg_template_next(msg);
    CHECK(next != NULL);
    CHECK_EQ(atomic_load(&buf->refs), 1);
    um_msg_release(next);
    um_buf_unref(buf);
}

TEST(queued_copy_lives_on_its_own)
{
    struct um_buf *buf = make_buf();
    struct um_msg *msg = make_template(buf);
    struct um_msg *copy = um_msg_clone(msg);
    um_msg_release(msg);
    um_buf_unref(buf);
    CHECK_STR(copy->pub.data, "hello");
    CHECK_EQ(lbm_msg_retain(&copy->pub), 0);
    um_msg_release(copy);
    CHECK_STR(copy->pub.data, "hello");
    CHECK_EQ(lbm_msg_delete(&copy->pub), 0);
}

TEST(what_waits_for_long_holds_no_buffer_of_which_it_needs_little)
{
    struct um_buf *small = make_buf(), *large = um_buf_alloc(256 * 1024);
    memcpy(large->data, "hello", 6);
    struct um_msg *msg = make_template(large);
    struct um_msg *copy = um_msg_clone_kept(msg);
    CHECK_EQ(atomic_load(&large->refs), 1);
    CHECK(um_msg_kept_size(msg) < sizeof *msg + 256);
    memset(large->data, 0, 6);
    CHECK_EQ(memcmp(copy->pub.data, "hello", 5), 0);
    um_msg_release(copy);
    msg->pub.len = 200 * 1024; /* most of it: no copy, and the whole of it counts */
    copy = um_msg_clone_kept(msg);
    CHECK(copy->pub.data == msg->pub.data);
    CHECK_EQ(atomic_load(&large->refs), 2);
    CHECK(um_msg_kept_size(msg) >= 256 * 1024);
    um_msg_release(copy);
    um_msg_release(msg);
    um_buf_unref(large);
    msg = make_template(small);
    copy = um_msg_clone_kept(msg);
    CHECK_EQ(memcmp(copy->pub.data, "hello", 5), 0);
    um_msg_release(copy);
    um_msg_release(msg);
    um_buf_unref(small);
}

TEST(fragment_information_is_given_only_for_fragmented_messages)
{
    struct um_msg *msg = um_msg_create("", "t");
    lbm_msg_fragment_info_t info;
    CHECK_EQ(lbm_msg_is_fragment(&msg->pub), 0);
    CHECK_EQ(lbm_msg_retrieve_fragment_info(&msg->pub, &info), -1);
    CHECK_CONTAINS(um_errmsg(), "no fragment information");
    msg->frag = (lbm_msg_fragment_info_t){5, 100, 300};
    msg->pub.fragment_info = &msg->frag;
    um_msg_mark(msg, UM_MSG_FRAGMENT, true);
    CHECK_EQ(lbm_msg_is_fragment(&msg->pub), 1);
    CHECK_EQ(lbm_msg_retrieve_fragment_info(&msg->pub, &info), 0);
    CHECK_EQ(info.start_sequence_number, 5);
    CHECK_EQ(info.offset, 100);
    CHECK_EQ(info.total_message_length, 300);
    struct um_msg *copy = um_msg_clone(msg);
    um_msg_release(msg);
    CHECK_EQ(lbm_msg_retrieve_fragment_info(&copy->pub, &info), 0);
    CHECK_EQ(info.offset, 100);
    um_msg_release(copy);
}

static bool refuse(size_t size)
{
    (void)size;
    return true;
}

TEST(retain_without_memory_fails_and_changes_nothing)
{
    struct um_buf *buf = make_buf();
    struct um_msg *msg = make_template(buf);
    um_mem_set_fail_hook(refuse);
    int rc = lbm_msg_retain(&msg->pub);
    um_mem_set_fail_hook(NULL);
    CHECK_EQ(rc, -1);
    CHECK_EQ(um_errnum(), UM_ENOMEM);
    CHECK(um_msg_template_next(msg) == msg);
    CHECK_EQ(atomic_load(&buf->refs), 1);
    um_msg_release(msg);
    um_buf_unref(buf);
}

TEST(null_and_foreign_pointers_are_refused)
{
    static struct um_msg zero;
    lbm_msg_fragment_info_t info;
    CHECK_EQ(lbm_msg_retain(NULL), -1);
    CHECK_EQ(lbm_msg_delete(NULL), -1);
    CHECK_EQ(lbm_msg_retain(&zero.pub), -1);
    CHECK_EQ(lbm_msg_retrieve_fragment_info(NULL, &info), -1);
    CHECK_EQ(lbm_msg_retrieve_gateway_info(NULL, NULL), -1);
}

/* ---- across threads ---- */

/* The callback that retained it first has returned, the loop has not gone on yet. */
TEST(f4_who_holds_a_message_may_retain_it_again_at_any_time)
{
    struct um_buf *buf = make_buf();
    struct um_msg *msg = make_template(buf);
    CHECK_EQ(lbm_msg_retain(&msg->pub), 0);
    um_msg_mark(msg, UM_MSG_DELIVERING, false);
    CHECK_EQ(lbm_msg_retain(&msg->pub), 0);
    um_msg_release(um_msg_template_next(msg));
    CHECK_EQ(lbm_msg_retain(&msg->pub), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(lbm_msg_delete(&msg->pub), 0);
    }
    CHECK_EQ(atomic_load(&buf->refs), 1);
    um_buf_unref(buf);
}

static void *retain_again(void *arg)
{
    struct um_msg *msg = arg;
    for (int i = 0; i < 1000; i++) {
        if (lbm_msg_retain(&msg->pub) != 0 || lbm_msg_delete(&msg->pub) != 0) {
            abort();
        }
    }
    if (lbm_msg_delete(&msg->pub) != 0) { /* what the callback retained */
        abort();
    }
    return NULL;
}

/* The thread sanitizer watches: nothing orders the two threads but the count of holds. */
TEST(f4_a_message_is_retained_again_while_the_loop_goes_on)
{
    struct um_buf *buf = make_buf();
    for (int round = 0; round < 200; round++) {
        struct um_msg *msg = make_template(buf);
        pthread_t thread;
        CHECK_EQ(lbm_msg_retain(&msg->pub), 0);
        pthread_create(&thread, NULL, retain_again, msg);
        um_msg_mark(msg, UM_MSG_DELIVERING, false);
        struct um_msg *next = um_msg_template_next(msg);
        pthread_join(thread, NULL);
        um_msg_release(next);
    }
    CHECK_EQ(atomic_load(&buf->refs), 1);
    um_buf_unref(buf);
}

#define ROUNDS 20000

struct channel {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct um_msg *slots[64];
    int count;
    bool over;
};

static void *deleter(void *arg)
{
    struct channel *ch = arg;
    for (;;) {
        pthread_mutex_lock(&ch->lock);
        while (ch->count == 0 && !ch->over) {
            pthread_cond_wait(&ch->changed, &ch->lock);
        }
        struct um_msg *msg = ch->count > 0 ? ch->slots[--ch->count] : NULL;
        pthread_cond_broadcast(&ch->changed);
        pthread_mutex_unlock(&ch->lock);
        if (msg == NULL) {
            return NULL;
        }
        if (msg->pub.data[0] != 'h' || lbm_msg_delete(&msg->pub) != 0) {
            abort();
        }
    }
}

TEST(messages_retained_on_one_thread_are_deleted_on_others)
{
    static struct channel ch = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, deleter, &ch);
    }
    struct um_buf *buf = make_buf();
    struct um_msg *msg = make_template(buf);
    for (int i = 0; i < ROUNDS; i++) {
        um_msg_mark(msg, UM_MSG_DELIVERING, true);
        msg->buf = buf;
        msg->pub.data = (const char *)buf->data;
        for (int holds = 0; holds < 2; holds++) { /* two receivers keep the same message */
            CHECK_EQ(lbm_msg_retain(&msg->pub), 0);
            pthread_mutex_lock(&ch.lock);
            while (ch.count == 64) {
                pthread_cond_wait(&ch.changed, &ch.lock);
            }
            ch.slots[ch.count++] = msg;
            pthread_cond_broadcast(&ch.changed);
            pthread_mutex_unlock(&ch.lock);
        }
        um_msg_mark(msg, UM_MSG_DELIVERING, false);
        msg = um_msg_template_next(msg);
    }
    pthread_mutex_lock(&ch.lock);
    ch.over = true;
    pthread_cond_broadcast(&ch.changed);
    pthread_mutex_unlock(&ch.lock);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ(atomic_load(&buf->refs), 1);
    um_msg_release(msg);
    um_buf_unref(buf);
}
