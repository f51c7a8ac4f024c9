/* Application headers: chains and their iterators, and headers on their way from a source to receivers. */
#include "um_test.h"

#include <lbm/lbm.h>
#include <lbm/um.h>

#include "um_test_rcv.h"

static int append(lbm_apphdr_chain_t *chain, unsigned subtype, const char *data, size_t len)
{
    lbm_apphdr_chain_elem_t elem = {
        .type = LBM_CHAIN_ELEM_USER_DATA, .subtype = (lbm_ushort_t)subtype, .len = len, .data = (void *)data};
    return lbm_apphdr_chain_append_elem(chain, &elem);
}

static lbm_apphdr_chain_t *three_elements(void)
{
    lbm_apphdr_chain_t *chain;
    MUST(lbm_apphdr_chain_create(&chain));
    MUST(append(chain, 1, "one", 3));
    MUST(append(chain, 2, "", 0));
    MUST(append(chain, 3, "thr\0ee", 6));
    return chain;
}
#define THREE "1:3 2:0 3:6 "

/* "subtype:len " of each; afterwards the iterator stands on the last. */
static void listed(lbm_apphdr_chain_iter_t **it, char *out, size_t room)
{
    bool more;
    out[0] = '\0';
    MUST(lbm_apphdr_chain_iter_first(it));
    do {
        const lbm_apphdr_chain_elem_t *elem = lbm_apphdr_chain_iter_current(it);
        size_t used = strlen(out);
        snprintf(out + used, room - used, "%u:%zu ", elem->subtype, elem->len);
        more = lbm_apphdr_chain_iter_done(it) == 1;
    } while (lbm_apphdr_chain_iter_next(it) == 0 && more);
}

TEST(elements_come_back_in_the_order_in_which_they_were_appended)
{
    lbm_apphdr_chain_t *chain = three_elements();
    lbm_apphdr_chain_iter_t *it;
    char text[128];
    CHECK_EQ(lbm_apphdr_chain_iter_create(&it, chain), 0);
    CHECK_EQ(lbm_apphdr_chain_iter_current(&it)->subtype, 1);
    CHECK(memcmp(lbm_apphdr_chain_iter_current(&it)->data, "one", 3) == 0);
    MUST(lbm_apphdr_chain_delete(chain)); /* the iterator is a copy */
    listed(&it, text, sizeof text);
    CHECK_STR(text, THREE);
    CHECK_EQ(lbm_apphdr_chain_iter_next(&it), -1);
    CHECK_EQ(lbm_apphdr_chain_iter_done(&it), 0);
    CHECK_EQ(lbm_apphdr_chain_iter_current(&it)->subtype, 3);
    CHECK(memcmp(lbm_apphdr_chain_iter_current(&it)->data, "thr\0ee", 6) == 0);
    MUST(lbm_apphdr_chain_iter_delete(it));
}

TEST(a_chain_takes_251_bytes_and_only_what_applications_may_send)
{
    lbm_apphdr_chain_t *chain;
    lbm_apphdr_chain_iter_t *it = NULL;
    char data[300] = {0};
    MUST(lbm_apphdr_chain_create(&chain));
    CHECK_EQ(lbm_apphdr_chain_iter_create(&it, chain), -1);
    CHECK(it == NULL);
    CHECK_EQ(append(chain, 1, data, 248), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(append(chain, 1, data, 200), 0);
    CHECK_EQ(append(chain, 2, data, 44), -1);
    CHECK_EQ(append(chain, 2, data, 43), 0);
    lbm_apphdr_chain_elem_t inner = {.type = LBM_CHAIN_ELEM_CHANNEL_NUMBER, .len = 4, .data = data};
    CHECK_EQ(lbm_apphdr_chain_append_elem(chain, &inner), -1);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_apphdr_chain_append_elem(chain, NULL), -1);
    CHECK_EQ(lbm_apphdr_chain_append_elem(NULL, &inner), -1);
    CHECK_EQ(append(chain, 1, NULL, 1), -1);
    CHECK_EQ(lbm_apphdr_chain_create(NULL), -1);
    CHECK_EQ(lbm_apphdr_chain_delete(NULL), -1);
    CHECK_EQ(lbm_apphdr_chain_iter_create(NULL, chain), -1);
    CHECK_EQ(lbm_apphdr_chain_iter_create_from_msg(&it, NULL), -1);
    CHECK_EQ(lbm_apphdr_chain_iter_first(&it), -1);
    CHECK_EQ(lbm_apphdr_chain_iter_next(&it), -1);
    CHECK_EQ(lbm_apphdr_chain_iter_done(&it), 0);
    CHECK(lbm_apphdr_chain_iter_current(&it) == NULL);
    CHECK_EQ(lbm_apphdr_chain_iter_delete(NULL), -1);
    MUST(lbm_apphdr_chain_delete(chain));
}

/* ---- on their way ---- */

struct seen {
    struct recorder r;
    char text[1024]; /* of each data message its headers, "- " without */
    lbm_msg_t *kept; /* the first one */
};

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct seen *s = clientd;
    if (msg->type == LBM_MSG_DATA) {
        lbm_apphdr_chain_iter_t *it;
        size_t used = strlen(s->text);
        if (lbm_apphdr_chain_iter_create_from_msg(&it, msg) == 0) {
            listed(&it, s->text + used, sizeof s->text - used);
            MUST(lbm_apphdr_chain_iter_delete(it));
        } else {
            snprintf(s->text + used, sizeof s->text - used, "- ");
        }
        if (s->kept == NULL) {
            MUST(lbm_msg_retain(msg));
            s->kept = msg;
        }
    }
    return recorder_cb(rcv, msg, &s->r);
}

TEST(headers_travel_with_properties_and_numbers_and_stay_with_kept_messages)
{
    TEST_NEEDS_NET();
    static char big[200000];
    lbm_context_t *ctx = net_context();
    struct seen s = {.r = RECORDER_INIT}, queued = {.r = RECORDER_INIT};
    lbm_apphdr_chain_t *chain = three_elements(), *full;
    lbm_msg_properties_t *p;
    lbm_event_queue_t *evq;
    lbm_apphdr_chain_iter_t *it;
    lbm_topic_t *topic;
    lbm_src_t *src;
    char text[128];
    MUST(lbm_apphdr_chain_create(&full));
    MUST(append(full, 9, big, 247));
    MUST(lbm_msg_properties_create(&p));
    MUST(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    MUST(lbm_src_topic_alloc(&topic, ctx, "headers", NULL));
    MUST(lbm_hf_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_rcv_t *rcv = net_receiver(ctx, "headers", NULL, on_message, &s, NULL);
    lbm_rcv_t *later = net_receiver(ctx, "headers", NULL, on_message, &queued, evq);
    CHECK_EQ(um_rcv_wait_ready(rcv, 1, HANG_SECONDS * 1000), 0);
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_APPHDR_CHAIN, .apphdr_chain = chain};
    MUST(lbm_src_send_ex(src, "a", 1, LBM_MSG_FLUSH, &info));
    MUST(lbm_src_send(src, "b", 1, LBM_MSG_FLUSH));
    info.flags |= LBM_SRC_SEND_EX_FLAG_PROPERTIES;
    info.properties = p;
    MUST(lbm_hf_src_send_ex(src, big, sizeof big, 5, LBM_MSG_FLUSH, &info));
    info.apphdr_chain = full;
    CHECK_EQ(lbm_src_send_ex(src, "c", 1, LBM_MSG_FLUSH, &info), -1); /* no room for the length of properties */
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    info.flags = LBM_SRC_SEND_EX_FLAG_APPHDR_CHAIN;
    MUST(lbm_src_send_ex(src, "d", 1, LBM_MSG_FLUSH, &info));
    info.apphdr_chain = NULL;
    CHECK_EQ(lbm_src_send_ex(src, "e", 1, LBM_MSG_FLUSH, &info), -1);
    CHECK(recorder_wait(&s.r, LBM_MSG_DATA, 4));
    CHECK_STR(s.text, THREE "- " THREE "9:247 ");
    CHECK_EQ(s.r.bytes, sizeof big + 3);
    CHECK(recorder_dispatch(&queued.r, evq, LBM_MSG_DATA, 4));
    CHECK_STR(queued.text, s.text);
    CHECK_EQ(lbm_apphdr_chain_iter_create_from_msg(&it, s.kept), 0);
    listed(&it, text, sizeof text);
    CHECK_STR(text, THREE);
    MUST(lbm_apphdr_chain_iter_delete(it));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_rcv_delete(later));
    MUST(lbm_msg_delete(s.kept));
    MUST(lbm_msg_delete(queued.kept));
    MUST(lbm_src_delete(src));
    MUST(lbm_event_queue_delete(evq));
    MUST(lbm_context_delete(ctx));
    MUST(lbm_msg_properties_delete(p));
    MUST(lbm_apphdr_chain_delete(chain));
    MUST(lbm_apphdr_chain_delete(full));
}
