/* lbm_src_alloc_msg_buff() and LBM_MSG_BUFF_ALLOC: what is written into buffers of a source arrives, whatever else is
 * sent beside it; wrong uses are named. */
#include "um_test.h"

#include <lbm/lbm.h>
#include <lbm/um.h>

#include "um_test_rcv.h"

static lbm_src_t *source_with(lbm_context_t *ctx, const char *name, const char *transport, const char *late_join)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    MUST(lbm_src_topic_attr_str_setopt(attr, "late_join", late_join));
    MUST(lbm_src_topic_attr_str_setopt(attr, "retransmit_retention_size_threshold", "100000"));
    MUST(lbm_src_topic_alloc(&topic, ctx, name, attr));
    lbm_src_topic_attr_delete(attr);
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    return src;
}

static void *filled(lbm_src_t *src, const char *text, size_t room)
{
    void *buffer, *handle;
    MUST(lbm_src_alloc_msg_buff(src, &buffer, room, &handle, 0));
    memcpy(buffer, text, strlen(text));
    return handle;
}

static void send_filled(lbm_src_t *src, const char *text, int flags)
{
    void *handle = filled(src, text, strlen(text));
    MUST(lbm_src_send(src, handle, strlen(text), LBM_MSG_BUFF_ALLOC | LBM_SRC_BLOCK | flags));
}

static bool refused(int rc, int errnum, const char *text)
{
    bool ok = rc == -1 && lbm_errnum() == errnum && strstr(lbm_errmsg(), text) != NULL;
    if (!ok) {
        fprintf(stderr, "rc %d, error %d: %s\n", rc, lbm_errnum(), lbm_errmsg());
    }
    return ok;
}

TEST(messages_written_into_buffers_arrive_among_others)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = source_with(ctx, "buffers", "LBT-RM", "0");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "buffers", &r);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    send_filled(src, "a", 0); /* waits in the batch */
    net_send(src, "b");
    void *first = filled(src, "c....", 5), *second = filled(src, "d", 1);
    MUST(lbm_src_send(src, second, 1, LBM_MSG_BUFF_ALLOC));
    MUST(lbm_src_send(src, first, 1, LBM_MSG_BUFF_ALLOC)); /* less than there was room for, and in another order */
    send_filled(src, "", LBM_MSG_FLUSH);
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 5));
    CHECK(recorder_reads(&r, "BOS 0=a 1=b 2=d 3=c 4= "));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(a_buffer_holds_one_datagram)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    void *buffer, *handle;
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = source_with(ctx, "datagram", "LBT-RM", "0");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "datagram", &r);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    CHECK(refused(lbm_src_alloc_msg_buff(src, &buffer, 7867, &handle, 0), LBM_EINVAL, "has room for 7866"));
    CHECK(refused(lbm_src_alloc_msg_buff(src, &buffer, SIZE_MAX, &handle, 0), LBM_EINVAL, "has room for 7866"));
    MUST(lbm_src_alloc_msg_buff(src, &buffer, 7866, &handle, 0));
    memset(buffer, 'x', 7866);
    MUST(lbm_src_send(src, handle, 7866, LBM_MSG_BUFF_ALLOC | LBM_MSG_FLUSH));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    CHECK_EQ(r.bytes, 7866);
    CHECK_EQ(r.sqn, 0); /* one piece */
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(buffers_that_were_not_sent_go_with_their_source)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = source_with(ctx, "unsent", "LBT-RM", "0");
    for (int i = 0; i < 10; i++) {
        filled(src, "left", 1000);
    }
    send_filled(src, "sent", LBM_MSG_FLUSH);
    MUST(lbm_src_delete(src)); /* the address sanitizer counts */
    MUST(lbm_context_delete(ctx));
}

TEST(a_handle_outlives_wrong_sends_and_not_a_right_one)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = source_with(ctx, "handle", "LBT-RM", "0"), *other = source_with(ctx, "other", "LBT-RM", "0");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "handle", &r);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    lbm_src_send_ex_info_t info = {.flags = 0};
    void *handle = filled(src, "x", 1);
    const int alloc = LBM_MSG_BUFF_ALLOC | LBM_MSG_FLUSH;
    CHECK(refused(lbm_src_send(src, handle, 2, alloc), LBM_EINVAL, "length 2"));
    CHECK(refused(lbm_src_send(other, handle, 1, alloc), LBM_EINVAL, "handle"));
    CHECK(refused(lbm_src_send(src, "x", 1, alloc), LBM_EINVAL, "handle"));
    CHECK(refused(lbm_src_send(src, NULL, 0, alloc), LBM_EINVAL, "handle"));
    CHECK(refused(lbm_src_send(src, handle, 1, alloc | LBM_MSG_START_BATCH), LBM_EINVAL, "LBM_MSG_START_BATCH"));
    CHECK(refused(lbm_src_send(src, handle, 1, alloc | LBM_MSG_END_BATCH), LBM_EINVAL, "LBM_MSG_END_BATCH"));
    CHECK(refused(lbm_src_send_ex(src, handle, 1, alloc, &info), LBM_EINVAL, "only with lbm_src_send()"));
    MUST(lbm_src_send_ex(src, handle, 1, alloc, NULL)); /* that is lbm_src_send() */
    CHECK(refused(lbm_src_send(src, handle, 1, alloc), LBM_EINVAL, "not sent yet"));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    CHECK(recorder_reads(&r, "BOS 0=x "));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_src_delete(other));
    MUST(lbm_context_delete(ctx));
}

/* The limiter lets one datagram of this size through at once; the clock of the test plays no part: the second is
 * refused sooner or later, and the handle is sent when there is room again. */
TEST(a_handle_whose_send_would_block_is_sent_later)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtrm_data_rate_limit", "1000000"));
    lbm_context_t *ctx = net_context_with(attr);
    lbm_src_t *src = source_with(ctx, "limited", "LBT-RM", "0");
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "limited", &r);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    int sent = 0, blocked = 0;
    while (blocked == 0 && sent < 10000) {
        void *handle = filled(src, "x", 5000);
        while (lbm_src_send(src, handle, 5000, LBM_MSG_BUFF_ALLOC | LBM_MSG_FLUSH | LBM_SRC_NONBLOCK) != 0) {
            CHECK_EQ(lbm_errnum(), LBM_EWOULDBLOCK);
            blocked++;
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        }
        sent++;
    }
    CHECK(blocked > 0);
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(who_has_no_message_buffers_says_so)
{
    TEST_NEEDS_NET();
    static const char *const others[] = {"TCP", "LBT-RU", "LBT-IPC", "LBT-SMX"};
    void *buffer, *handle;
    lbm_topic_t *topic;
    lbm_src_topic_attr_t *attr;
    lbm_context_t *ctx = net_context();
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        lbm_src_t *src = source_with(ctx, others[i], others[i], "0");
        CHECK(refused(lbm_src_alloc_msg_buff(src, &buffer, 1, &handle, 0), LBM_EOPNOTSUPP, "only LBT-RM"));
        CHECK(refused(lbm_src_send(src, "x", 1, LBM_MSG_BUFF_ALLOC), LBM_EOPNOTSUPP, "only LBT-RM"));
        MUST(lbm_src_delete(src));
    }
    lbm_src_t *src = source_with(ctx, "late", "LBT-RM", "1");
    CHECK(refused(lbm_src_alloc_msg_buff(src, &buffer, 1, &handle, 0), LBM_EOPNOTSUPP, "late join"));
    MUST(lbm_src_delete(src));
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", "LBT-RM"));
    MUST(lbm_src_topic_alloc(&topic, ctx, "hot", attr));
    lbm_src_topic_attr_delete(attr);
    MUST(lbm_hf_src_create(&src, ctx, topic, NULL, NULL, NULL));
    CHECK(refused(lbm_src_alloc_msg_buff(src, &buffer, 1, &handle, 0), LBM_EOPNOTSUPP, "hot failover"));
    CHECK(refused(lbm_src_alloc_msg_buff(src, NULL, 1, &handle, 0), LBM_EINVAL, "usr_bufp"));
    CHECK(refused(lbm_src_alloc_msg_buff(src, &buffer, 1, NULL, 0), LBM_EINVAL, "lbm_hdl"));
    CHECK(refused(lbm_src_alloc_msg_buff(NULL, &buffer, 1, &handle, 0), LBM_EINVAL, "lbm_src_alloc_msg_buff"));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}
