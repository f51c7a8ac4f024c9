/* What headers do not cost: messages with a channel, properties that nobody looks at, application headers or hot
 * failover numbers of two sources are sent and delivered without an allocation for each; and what is sent by the short
 * way has the bytes of the long one. */
#include <lbm/um.h>
#include <stdatomic.h>

#include "base/um_bytes.h"
#include "base/um_mem.h"
#include "core/um_source.h"
#include "um_test.h"
#include "um_test_rcv.h"

#define MESSAGES 20000
#define FEW 1000 /* of other work meanwhile: advertisements, timers, buffers */

enum kind { CHANNEL, PROPERTIES, APPHDR };

static atomic_int arrived, wrong;
static atomic_ulong allocations;

static bool count_allocation(size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return false;
}

/* Nothing but its lengths is looked at. */
static int on_msg(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    if (msg->type == LBM_MSG_DATA) {
        atomic_fetch_add(&wrong, msg->len != 64 || (msg->properties != NULL) != (clientd != NULL));
        atomic_fetch_add(&arrived, 1);
    }
    return 0;
}

static bool wait_arrived(int count)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(&arrived) < count; i++) {
        usleep(1000);
    }
    return atomic_load(&arrived) == count;
}

static lbm_src_t *source(lbm_context_t *ctx, bool hf)
{
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_alloc(&topic, ctx, "T", NULL));
    MUST((hf ? lbm_hf_src_create : lbm_src_create)(&src, ctx, topic, NULL, NULL, NULL));
    return src;
}

static void begin_counting(void)
{
    atomic_store(&allocations, 0);
    um_mem_set_fail_hook(count_allocation);
}

static void end_counting(void)
{
    um_mem_set_fail_hook(NULL);
    CHECK(atomic_load(&allocations) < FEW);
    CHECK_EQ(atomic_load(&wrong), 0);
}

static lbm_src_send_ex_info_t info_of(enum kind kind, lbm_src_t *src)
{
    lbm_src_send_ex_info_t info = {0};
    lbm_int32_t value = 7;
    char bytes[] = "abc";
    lbm_apphdr_chain_elem_t elem = {.type = LBM_CHAIN_ELEM_USER_DATA, .len = sizeof bytes, .data = bytes};
    if (kind == CHANNEL) {
        info.flags = LBM_SRC_SEND_EX_FLAG_CHANNEL;
        MUST(lbm_src_channel_create(&info.channel_info, src, 7));
    } else if (kind == PROPERTIES) {
        info.flags = LBM_SRC_SEND_EX_FLAG_PROPERTIES;
        MUST(lbm_msg_properties_create(&info.properties));
        MUST(lbm_msg_properties_set(info.properties, "value", &value, LBM_MSG_PROPERTY_INT, sizeof value));
        MUST(lbm_msg_properties_set(info.properties, "name", "text", LBM_MSG_PROPERTY_STRING, 5));
    } else {
        info.flags = LBM_SRC_SEND_EX_FLAG_APPHDR_CHAIN;
        MUST(lbm_apphdr_chain_create(&info.apphdr_chain));
        MUST(lbm_apphdr_chain_append_elem(info.apphdr_chain, &elem));
    }
    return info;
}

static void free_info(lbm_src_send_ex_info_t *info)
{
    if (info->channel_info != NULL) {
        MUST(lbm_src_channel_delete(info->channel_info));
    }
    if (info->properties != NULL) {
        MUST(lbm_msg_properties_delete(info->properties));
    }
    if (info->apphdr_chain != NULL) {
        MUST(lbm_apphdr_chain_delete(info->apphdr_chain));
    }
}

static void costs_no_allocation(enum kind kind)
{
    static char message[64];
    lbm_context_t *sending = net_context(), *receiving = net_context();
    lbm_src_t *src = source(sending, false);
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    MUST(lbm_rcv_topic_lookup(&topic, receiving, "T", NULL));
    MUST(lbm_rcv_create(&rcv, receiving, topic, on_msg, kind == PROPERTIES ? message : NULL, NULL));
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    lbm_src_send_ex_info_t info = info_of(kind, src);
    atomic_store(&arrived, 0);
    atomic_store(&wrong, 0);
    MUST(lbm_src_send_ex(src, message, sizeof message, LBM_MSG_FLUSH, &info)); /* the first gets the memory for all */
    CHECK(wait_arrived(1));
    begin_counting();
    for (int i = 0; i < MESSAGES; i++) {
        MUST(lbm_src_send_ex(src, message, sizeof message, 0, &info));
    }
    MUST(lbm_src_flush(src));
    CHECK(wait_arrived(MESSAGES + 1));
    end_counting();
    free_info(&info);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(receiving));
    MUST(lbm_context_delete(sending));
}

TEST(messages_with_a_channel_allocate_nothing)
{
    TEST_NEEDS_NET();
    costs_no_allocation(CHANNEL);
}

TEST(properties_that_nobody_looks_at_allocate_nothing)
{
    TEST_NEEDS_NET();
    costs_no_allocation(PROPERTIES);
}

TEST(application_headers_that_nobody_looks_at_allocate_nothing)
{
    TEST_NEEDS_NET();
    costs_no_allocation(APPHDR);
}

TEST(the_merge_of_two_sources_in_step_allocates_nothing)
{
    TEST_NEEDS_NET();
    static char message[64];
    lbm_context_t *sending[2] = {net_context(), net_context()}, *receiving = net_context();
    lbm_src_t *src[2] = {source(sending[0], true), source(sending[1], true)};
    lbm_topic_t *topic;
    lbm_hf_rcv_t *hf;
    MUST(lbm_rcv_topic_lookup(&topic, receiving, "T", NULL));
    MUST(lbm_hf_rcv_create(&hf, receiving, topic, on_msg, NULL, NULL));
    atomic_store(&arrived, 0);
    atomic_store(&wrong, 0);
    for (int k = 0; k < 2; k++) {
        MUST(um_src_wait_receivers(src[k], 1, HANG_SECONDS * 1000));
    }
    for (unsigned i = 1; i <= MESSAGES; i++) {
        for (int k = 0; k < 2; k++) {
            MUST(lbm_hf_src_send(src[k], message, sizeof message, i, i == 1 ? LBM_MSG_FLUSH : 0));
        }
        if (i == 1) {
            CHECK(wait_arrived(1));
            begin_counting();
        }
    }
    for (int k = 0; k < 2; k++) {
        MUST(lbm_src_flush(src[k]));
    }
    CHECK(wait_arrived(MESSAGES));
    end_counting();
    MUST(lbm_hf_rcv_delete(hf));
    for (int k = 0; k < 2; k++) {
        MUST(lbm_src_delete(src[k]));
        MUST(lbm_context_delete(sending[k]));
    }
    MUST(lbm_context_delete(receiving));
}

TEST(the_counter_of_the_test_counts)
{
    atomic_store(&allocations, 0);
    um_mem_set_fail_hook(count_allocation);
    um_free(um_malloc(1));
    um_mem_set_fail_hook(NULL);
    CHECK_EQ(atomic_load(&allocations), 1);
}

/* ---- bytes ---- */

#define KEPT_MAX 4096

struct kept {
    struct um_src_keeper keeper;
    size_t len, headers;
    uint8_t bytes[KEPT_MAX];
};

static void keep(struct um_src_keeper *keeper, struct um_src_stream *stream, uint32_t sqn, const uint8_t *message,
                 size_t headers, size_t len)
{
    struct kept *kept = UM_CONTAINER_OF(keeper, struct kept, keeper);
    kept->len = len < KEPT_MAX ? len : 0;
    kept->headers = headers;
    memcpy(kept->bytes, message, kept->len);
}

/* Three pieces never take the short way. */
static void has_the_same_bytes(lbm_src_t *src, struct kept *kept, size_t len, lbm_src_send_ex_info_t *info)
{
    static char message[2048];
    lbm_iovec_t pieces[3] = {{message, 0}, {message, len}, {message, 0}};
    memset(message, 'm', sizeof message);
    MUST(lbm_src_sendv_ex(src, pieces, 3, LBM_MSG_IOV_GATHER, info));
    struct kept longer = *kept;
    MUST(lbm_src_send_ex(src, message, len, 0, info));
    CHECK(kept->len > 0 && kept->len == longer.len && kept->headers == longer.headers);
    CHECK_EQ(um_get32(kept->bytes + 8), um_get32(longer.bytes + 8) + 1);
    memcpy(longer.bytes + 8, kept->bytes + 8, 4);
    CHECK(memcmp(kept->bytes, longer.bytes, kept->len) == 0);
}

TEST(the_short_way_writes_the_bytes_of_the_long_one)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = source(ctx, false);
    struct kept kept = {.keeper.keep = keep};
    MUST(um_src_stream_set_keeper(&src->stream, &kept.keeper));
    for (enum kind kind = CHANNEL; kind <= APPHDR; kind++) {
        lbm_src_send_ex_info_t info = info_of(kind, src);
        for (size_t len = 0; len <= 2048; len += 256) {
            has_the_same_bytes(src, &kept, len, &info);
        }
        free_info(&info);
    }
    MUST(um_src_stream_set_keeper(&src->stream, NULL));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}
