/* Hot failover sources through the public interface: widths of numbers, wrong arguments, refused combinations, and
 * that receivers without hot failover get every message. */
#include "um_test_rcv.h"

#define HF_32 LBM_SRC_SEND_EX_FLAG_HF_32
#define HF_64 LBM_SRC_SEND_EX_FLAG_HF_64

static lbm_src_t *hf_source(lbm_context_t *ctx, const char *name)
{
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_alloc(&topic, ctx, name, NULL));
    MUST(lbm_hf_src_create(&src, ctx, topic, NULL, NULL, NULL));
    return src;
}

static bool refused(int rc, int errnum, const char *text)
{
    return rc == -1 && lbm_errnum() == errnum && strstr(lbm_errmsg(), text) != NULL;
}

TEST(a_source_keeps_to_the_width_of_its_first_number)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *narrow = hf_source(ctx, "narrow"), *wide = hf_source(ctx, "wide");
    lbm_src_send_ex_info_t info = {.flags = HF_64, .hf_sqn.u64 = 1};
    MUST(lbm_hf_src_send(narrow, "a", 1, 1, 0));
    CHECK(refused(lbm_hf_src_send_ex(narrow, "a", 1, 2, 0, &info), LBM_EOP,
                  "32 bit hf src cannot send non-32bit sequence number"));
    MUST(lbm_hf_src_send_ex(wide, "a", 1, 0, 0, &info));
    CHECK(refused(lbm_hf_src_send(wide, "a", 1, 2, 0), LBM_EOP, "64 bit hf src cannot send non-64bit sequence number"));
    CHECK(refused(lbm_hf_src_send_rcv_reset(narrow, 0, &info), LBM_EOP, "32 bit hf src"));
    info.flags = HF_32 | HF_64;
    CHECK(refused(lbm_hf_src_send_ex(wide, "a", 1, 2, 0, &info), LBM_EINVAL, "exclude each other"));
    MUST(lbm_src_delete(narrow));
    MUST(lbm_src_delete(wide));
    MUST(lbm_context_delete(ctx));
}

TEST(a_send_that_fails_decides_no_width)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = hf_source(ctx, "undecided");
    char bytes[240] = {0};
    lbm_apphdr_chain_elem_t elem = {.type = LBM_CHAIN_ELEM_USER_DATA, .len = sizeof bytes, .data = bytes};
    lbm_apphdr_chain_t *chain;
    MUST(lbm_apphdr_chain_create(&chain));
    MUST(lbm_apphdr_chain_append_elem(chain, &elem));
    lbm_src_send_ex_info_t info = {
        .flags = HF_64 | LBM_SRC_SEND_EX_FLAG_APPHDR_CHAIN, .hf_sqn.u64 = 1, .apphdr_chain = chain};
    CHECK(refused(lbm_hf_src_send_ex(src, "a", 1, 0, 0, &info), LBM_EINVAL, "have at most"));
    CHECK_EQ(lbm_hf_src_send(src, "a", 1, 1, 0), 0);
    MUST(lbm_apphdr_chain_delete(chain));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(wrong_arguments_of_numbered_sends_are_refused)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = hf_source(ctx, "wrong"), *plain = net_source(ctx, "plain");
    lbm_iovec_t iov[1] = {{NULL, 5}};
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_HF_OPTIONAL};
    CHECK(refused(lbm_hf_src_send(NULL, "x", 1, 0, 0), LBM_EINVAL, "src must be valid"));
    CHECK(refused(lbm_hf_src_send(plain, "x", 1, 0, 0), LBM_EINVAL, "lbm_hf_src_create"));
    CHECK(refused(lbm_src_send_ex(src, "x", 1, 0, &info), LBM_EINVAL, "lbm_hf_src_"));
    CHECK(refused(lbm_hf_src_sendv(src, iov, 1, 0, 0), LBM_EINVAL, "iov_base"));
    CHECK(refused(lbm_hf_src_sendv(src, iov, 0, 0, 0), LBM_EINVAL, "iov must be valid"));
    CHECK(refused(lbm_hf_src_send(src, "x", 1, 0, LBM_MSG_BUFF_ALLOC), LBM_EOPNOTSUPP, "BUFF_ALLOC"));
    CHECK(refused(lbm_hf_src_send_rcv_reset(src, 0, NULL), LBM_EINVAL, "exinfo must hold"));
    CHECK(refused(lbm_hf_src_send_rcv_reset(src, 0, &info), LBM_EINVAL, "exinfo must hold"));
    MUST(lbm_src_delete(src));
    MUST(lbm_src_delete(plain));
    MUST(lbm_context_delete(ctx));
}

static bool creation_refused(lbm_context_t *ctx, const char *option, const char *value, const char *text)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src = NULL;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, option, value));
    MUST(lbm_src_topic_alloc(&topic, ctx, "refused", attr));
    MUST(lbm_src_topic_attr_delete(attr));
    return refused(lbm_hf_src_create(&src, ctx, topic, NULL, NULL, NULL), LBM_EOPNOTSUPP, text) && src == NULL;
}

TEST(shared_memory_in_place_and_hot_links_are_refused)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    CHECK(creation_refused(ctx, "transport", "lbtsmx", "LBT-SMX carries no hot failover numbers"));
    CHECK(creation_refused(ctx, "use_hotlink", "1", "use_hotlink 1: must be 0"));
    MUST(lbm_context_delete(ctx));
}

TEST(receivers_without_hot_failover_get_every_message_with_its_topic_number)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = hf_source(ctx, "copies");
    struct recorder r = RECORDER_INIT;
    lbm_rcv_t *rcv = net_recording_receiver(ctx, "copies", &r);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    lbm_iovec_t iov[2] = {{"c", 1}, {"d", 1}};
    lbm_src_send_ex_info_t info = {.flags = HF_32 | LBM_SRC_SEND_EX_FLAG_HF_OPTIONAL, .hf_sqn.u32 = 7};
    MUST(lbm_hf_src_send(src, "a", 1, 5, 0));
    MUST(lbm_hf_src_send(src, "a", 1, 5, 0));
    MUST(lbm_hf_src_send_ex(src, "b", 1, 0, 0, &info));
    MUST(lbm_hf_src_sendv(src, iov, 2, 8, 0));
    MUST(lbm_hf_src_sendv_ex(src, iov, 2, 8, 0, &info));
    MUST(lbm_src_send(src, "e", 1, LBM_MSG_FLUSH));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 6));
    CHECK(recorder_reads(&r, "BOS 0=a 1=a 2=b 3=cd 4=cd 5=e "));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}
