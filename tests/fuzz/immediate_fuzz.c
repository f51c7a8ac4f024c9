/* Fuzz: immediate messages from bytes to the application, as a hostile peer would send them: unicast ones as they come
 * out of a connection to the request port, requests and responses among them, and multicast ones of senders that come,
 * fall silent and are heard again. The context is real and runs in time of the target; its sockets are unused, and who
 * asks is answered on loopback alone. */
#include <stdlib.h>
#include <string.h>

#include "core/um_mim_receiver.c" /* for senders and what they send */
#include "core/um_request.h"
#include "core/um_uim.h"
#include "net/um_loop.h"
#include "transport/session/um_rcv_transport.h"

#define HEADER 3u /* of a step: what, length */
#define SENDERS 5u

static volatile uint8_t sink;
static lbm_context_t *ctx;
static lbm_request_t *request; /* the one that responses may be for */
static uint64_t now_ns = UM_NS_PER_SEC, unicast_given;

static void touch(const lbm_msg_t *msg)
{
    for (size_t i = 0; i < msg->len; i++) {
        sink ^= (uint8_t)msg->data[i];
    }
    sink ^= (uint8_t)(strlen(msg->topic_name) + strlen(msg->source));
    if ((msg->type == LBM_MSG_REQUEST) != (msg->response != NULL)) {
        abort();
    }
    if (msg->response != NULL && msg->len > 0 && (msg->data[0] & 1) != 0) {
        lbm_send_response(msg->response, msg->data, msg->len, LBM_SRC_NONBLOCK);
    }
}

static int on_receiver(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv, (void)clientd;
    if (msg->type == LBM_MSG_DATA || msg->type == LBM_MSG_REQUEST) {
        touch(msg);
    }
    return 0;
}

static int on_immediate(lbm_context_t *context, lbm_msg_t *msg, void *clientd)
{
    (void)context, (void)clientd;
    touch(msg);
    return 0;
}

static int on_response(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    (void)req, (void)clientd;
    for (size_t i = 0; i < msg->len; i++) {
        sink ^= (uint8_t)msg->data[i];
    }
    return 0;
}

static int discard(int level, const char *message, void *clientd)
{
    (void)level, (void)message, (void)clientd;
    return 0;
}

static void must(int rc)
{
    if (rc != 0) {
        abort();
    }
}

static void open_context(void)
{
    static const char *const options[][2] = {
        {"operational_mode", "sequential"},
        {"default_interface", "127.0.0.1/32"},
        {"resolver_multicast_interface", "127.0.0.1/32"},
        {"resolver_multicast_receiver_socket_buffer", "0"},
        {"transport_lbtrm_receiver_socket_buffer", "0"},
        {"request_tcp_port_low", "0"},
        {"request_tcp_port_high", "0"},
        {"mim_incoming_address", "224.0.10.98"},
        {"mim_incoming_destination_port", "24498"},
        {"mim_send_naks", "0"},
        {"mim_sqn_window_size", "64"},
        {"mim_sqn_window_increment", "32"},
        {"mim_delivery_control_activity_timeout", "500"},
        {"mim_delivery_control_activity_check_interval", "100"},
    };
    lbm_context_attr_t *attr;
    must(lbm_context_attr_create(&attr));
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        must(lbm_context_attr_str_setopt(attr, options[i][0], options[i][1]));
    }
    must(lbm_context_create(&ctx, attr, NULL, NULL));
    lbm_context_attr_delete(attr);
}

static void open_receivers(void)
{
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    lbm_wildcard_rcv_t *wildcard;
    const struct um_request_call call = {.reqp = &request, .proc = on_response};
    must(lbm_rcv_topic_lookup(&topic, ctx, "t", NULL));
    must(lbm_rcv_create(&rcv, ctx, topic, on_receiver, NULL, NULL));
    must(lbm_wildcard_rcv_create(&wildcard, ctx, "^w", NULL, NULL, on_receiver, NULL, NULL));
    must(lbm_context_rcv_immediate_msgs(ctx, on_immediate, NULL, NULL));
    must(lbm_context_rcv_immediate_topic_msgs(ctx, on_immediate, NULL, NULL));
    must(um_request_open(ctx, &call, "fuzz", "Core-0-0", "fuzz"));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    lbm_log(discard, NULL);
    open_context();
    open_receivers();
    return 0;
}

/* Nothing is sent anywhere but to a port of this host where nobody listens. */
static void tame(struct um_lbmc_msg *msg)
{
    if ((msg->present & UM_LBMC_HAS_REQUEST) != 0) {
        msg->request.ip = htonl(INADDR_LOOPBACK);
        msg->request.port = msg->request.port != 0 ? 9 : 0;
    }
}

static void give_unicast(struct um_lbmc_msg *msg, struct um_buf *buf)
{
    const struct sockaddr_in from = {
        .sin_family = AF_INET, .sin_port = htons(999), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (um_request_is_response(msg)) {
        um_requests_on_response(ctx, msg, buf, &from, um_loop_now(ctx->loop));
    } else {
        um_uim_on_message(ctx->uim, msg, buf, &from, um_loop_now(ctx->loop));
        unicast_given++;
    }
}

static struct sender *sender_of(uint32_t session_id)
{
    struct um_list *const lists[] = {&ctx->mim_receiver->unproved, &ctx->mim_receiver->proved};
    struct um_list *node;
    for (int i = 0; i < 2; i++) {
        UM_LIST_FOREACH(node, lists[i])
        {
            if (sender_at(node)->stream.session->key.session_id == session_id) {
                return sender_at(node);
            }
        }
    }
    return NULL;
}

/* Heard for the first time, it may be refused. */
static void give_multicast(struct um_lbmc_msg *msg, struct um_buf *buf, uint32_t session_id)
{
    const lbm_transport_source_info_t info = {.type = LBM_TRANSPORT_TYPE_LBTRM,
                                              .src_ip = htonl(INADDR_LOOPBACK),
                                              .src_port = 9,
                                              .session_id = session_id,
                                              .mc_group = inet_addr("224.0.10.98"),
                                              .dest_port = 24498};
    if (sender_of(session_id) == NULL) {
        on_stranger(&ctx->mim_receiver->listener, &info, um_loop_now(ctx->loop));
    }
    struct sender *sender = sender_of(session_id);
    if (sender != NULL) {
        on_data(&sender->stream, msg, buf, um_loop_now(ctx->loop));
    }
}

/* Messages one behind the other, in memory of exact size. */
static void give_all(uint8_t what, const uint8_t *data, size_t len)
{
    struct um_buf *buf = um_buf_alloc(len);
    struct um_lbmc_msg msg;
    if (buf == NULL) {
        abort();
    }
    memcpy(buf->data, data, len);
    for (size_t at = 0; at < len; at += msg.msglen) {
        enum um_lbmc_rc rc = um_lbmc_decode(buf->data + at, len - at, &msg);
        if (rc != UM_LBMC_OK && rc != UM_LBMC_BAD) {
            break;
        }
        if (rc == UM_LBMC_OK && msg.type == UM_LBMC_MESSAGE) {
            tame(&msg);
            msg.stamp_ns = 0;
            if ((what & 1) != 0) {
                give_multicast(&msg, buf, 1 + (what >> 4) % SENDERS);
            } else {
                give_unicast(&msg, buf);
            }
        }
    }
    um_buf_unref(buf);
}

static void pass(uint64_t time_ns)
{
    now_ns += time_ns;
    um_loop_run_once(ctx->loop, 0, now_ns);
}

/* Whatever came. */
static void check_bounds(void)
{
    struct um_mim_receiver_counts counts;
    struct um_uim_stats stats;
    um_mim_receiver_counts(ctx->mim_receiver, &counts);
    um_uim_stats(ctx->uim, &stats);
    if (counts.senders + counts.unproved > SENDERS || stats.rcved + stats.uim_fragments != unicast_given) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct um_list *node;
    for (size_t at = 0; at + HEADER <= size;) {
        uint8_t what = data[at];
        size_t len = um_get16(data + at + 1), left = size - at - HEADER;
        at += HEADER;
        if ((what & 8) != 0) {
            pass((uint64_t)len * UM_NS_PER_MS / 8);
            continue;
        }
        len = len < left ? len : left;
        give_all(what, data + at, len);
        at += len;
        check_bounds();
    }
    while ((node = um_list_first(&ctx->mim_receiver->unproved)) != NULL ||
           (node = um_list_first(&ctx->mim_receiver->proved)) != NULL) {
        forget(sender_at(node), true);
    }
    pass(2 * UM_NS_PER_SEC);
    return 0;
}
