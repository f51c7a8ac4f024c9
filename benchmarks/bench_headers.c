/* What headers cost: messages with a channel, with three properties, with an
 * application header, beside plain ones, over TCP on loopback to a receiver in
 * another process, which looks at nothing or at the properties. In one run:
 * rounds of every kind by turns, over the same source, so that a disturbance
 * meets all; a round ends when its last message has arrived. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "bench_rounds.h"

#define ROUND_BYTES (8u << 20)

enum kind { PLAIN, CHANNEL, PROPERTIES, LOOKED, SET, APPHDR, KINDS };
static const char *const NAMES[KINDS] = {"plain", "channel", "properties", "looked", "set", "apphdr"};

static struct {
    size_t size;
    const char *batch; /* implicit_batching_minimum_length; NULL: as it is by default */
    double seconds;
    const char *only; /* one kind, for a profiler */
} run = {64, NULL, 0.5, NULL};

/* ---- the receiver ---- */

static void look(lbm_msg_properties_t *properties)
{
    char symbol[16];
    int32_t side;
    double price;
    int type = LBM_MSG_PROPERTY_STRING;
    size_t size = sizeof symbol;
    um_check(lbm_msg_properties_get(properties, "symbol", symbol, &type, &size), "symbol");
    type = LBM_MSG_PROPERTY_INT;
    size = sizeof side;
    um_check(lbm_msg_properties_get(properties, "side", &side, &type, &size), "side");
    type = LBM_MSG_PROPERTY_DOUBLE;
    size = sizeof price;
    um_check(lbm_msg_properties_get(properties, "price", &price, &type, &size), "price");
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    (void)clientd;
    if (msg->type != LBM_MSG_DATA) {
        return 0;
    }
    uint8_t kind = (uint8_t)msg->data[0];
    if ((msg->properties != NULL) != (kind == PROPERTIES || kind == LOOKED || kind == SET)) {
        bench_die("%s: properties %p", NAMES[kind], (void *)msg->properties);
    }
    if (kind == LOOKED) {
        look(msg->properties);
    }
    bench_count(&rounds->arrived);
    return 0;
}

static void receive(void)
{
    lbm_context_t *ctx = um_context_of(um_context_attr("127.0.0.1"));
    lbm_rcv_t *rcv = um_receiver(ctx, "bench/headers", on_message, NULL);
    bench_rounds_wait_end();
    um_end(rcv, NULL, ctx);
}

/* ---- the sender ---- */

struct sender {
    lbm_context_t *ctx;
    lbm_src_t *src;
    char *message;
    lbm_src_send_ex_info_t info[KINDS];
};

static void set_properties(lbm_msg_properties_t *properties, int32_t i)
{
    double price = 100.25 + i % 8;
    um_check(lbm_msg_properties_set(properties, "symbol", "ABCD", LBM_MSG_PROPERTY_STRING, 5), "set");
    um_check(lbm_msg_properties_set(properties, "side", &i, LBM_MSG_PROPERTY_INT, sizeof i), "set");
    um_check(lbm_msg_properties_set(properties, "price", &price, LBM_MSG_PROPERTY_DOUBLE, sizeof price), "set");
}

static void prepare(struct sender *s)
{
    lbm_src_channel_info_t *channel;
    lbm_msg_properties_t *properties;
    lbm_apphdr_chain_t *chain;
    lbm_apphdr_chain_elem_t header = {.type = LBM_CHAIN_ELEM_USER_DATA, .subtype = 1, .len = 8, .data = "eight..."};
    um_check(lbm_src_channel_create(&channel, s->src, 7), "lbm_src_channel_create");
    um_check(lbm_msg_properties_create(&properties), "lbm_msg_properties_create");
    set_properties(properties, 1);
    um_check(lbm_apphdr_chain_create(&chain), "lbm_apphdr_chain_create");
    um_check(lbm_apphdr_chain_append_elem(chain, &header), "lbm_apphdr_chain_append_elem");
    s->info[CHANNEL] = (lbm_src_send_ex_info_t){.flags = LBM_SRC_SEND_EX_FLAG_CHANNEL, .channel_info = channel};
    s->info[PROPERTIES] = (lbm_src_send_ex_info_t){.flags = LBM_SRC_SEND_EX_FLAG_PROPERTIES, .properties = properties};
    s->info[LOOKED] = s->info[SET] = s->info[PROPERTIES];
    s->info[APPHDR] = (lbm_src_send_ex_info_t){.flags = LBM_SRC_SEND_EX_FLAG_APPHDR_CHAIN, .apphdr_chain = chain};
}

static void send_round(void *arg, unsigned kind, unsigned count)
{
    struct sender *s = arg;
    s->message[0] = (char)kind;
    for (unsigned i = 0; i < count; i++) {
        if (kind == SET) {
            set_properties(s->info[SET].properties, (int32_t)i);
        }
        um_check(kind == PLAIN ? lbm_src_send(s->src, s->message, run.size, 0)
                               : lbm_src_send_ex(s->src, s->message, run.size, 0, &s->info[kind]),
                 "send");
    }
    um_check(lbm_src_flush(s->src), "lbm_src_flush");
}

static void send_all(void)
{
    struct sender s = {.ctx = um_context_of(um_context_attr("127.0.0.1")), .message = calloc(1, run.size)};
    lbm_src_topic_attr_t *attr = um_source_attr("tcp");
    if (run.batch != NULL) {
        um_check(lbm_src_topic_attr_str_setopt(attr, "implicit_batching_minimum_length", run.batch), "batching");
    }
    s.src = um_source_of(s.ctx, "bench/headers", attr);
    prepare(&s);
    um_check(um_src_wait_receivers(s.src, 1, 15000), "um_src_wait_receivers");
    bench_sleep_ms(50);
    const struct bench_rounds_plan plan = {.kinds = KINDS,
                                           .names = NAMES,
                                           .count = ROUND_BYTES / (unsigned)run.size,
                                           .seconds = run.seconds * KINDS,
                                           .only = run.only,
                                           .send = send_round,
                                           .arg = &s};
    printf("{\"bench\": \"headers\", \"size\": %zu, ", run.size);
    bench_rounds_run(&plan);
    printf("}\n");
    um_end(NULL, s.src, s.ctx);
}

int main(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--size") == 0) {
            run.size = strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--batch") == 0) {
            run.batch = argv[i + 1];
        } else if (strcmp(argv[i], "--only") == 0) {
            run.only = argv[i + 1];
        } else if (strcmp(argv[i], "--seconds") == 0) {
            run.seconds = strtod(argv[i + 1], NULL);
        } else {
            bench_die("unknown option %s", argv[i]);
        }
    }
    bench_rounds_sides(send_all, receive);
    return 0;
}
