/* Hot failover: one topic from one source and from two that send the same numbers,
 * merged by a hot failover receiver in another process, over TCP on loopback. Both
 * sources are on one core, the receiver is on another one. In one run, by turns:
 * plain messages to a plain receiver, numbered messages of one source, numbered
 * messages of two. A number is counted once, when it is delivered. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "bench_rounds.h"

#define ROUND_BYTES (8u << 20)

enum kind { SINGLE, TWO, PLAIN, KINDS };
static const char *const NAMES[KINDS] = {"single", "two", "plain"};

static struct {
    size_t size;
    double seconds;
    const char *only; /* one kind, for a profiler */
} run = {64, 0.5, NULL};

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    static lbm_uint_t last;
    (void)rcv;
    if (msg->type == LBM_MSG_UNRECOVERABLE_LOSS || msg->type == LBM_MSG_UNRECOVERABLE_LOSS_BURST) {
        bench_die("a number was lost");
    }
    if (msg->type != LBM_MSG_DATA) {
        return 0;
    }
    if (clientd != NULL) {
        if (last != 0 && msg->sequence_number != last + 1) {
            bench_die("number %u was delivered after %u", msg->sequence_number, last);
        }
        last = msg->sequence_number;
    }
    bench_count(&rounds->arrived);
    return 0;
}

/* Of one stream: the second sessions of a transport are on ports of their own. */
static void receive(void)
{
    lbm_context_t *ctx = um_context_of(um_context_attr("127.0.0.1"));
    lbm_topic_t *topic;
    lbm_hf_rcv_t *hf;
    lbm_rcv_t *plain = um_receiver(ctx, "bench/plain", on_message, NULL);
    um_check(lbm_rcv_topic_lookup(&topic, ctx, "bench/hf", NULL), "lbm_rcv_topic_lookup");
    um_check(lbm_hf_rcv_create(&hf, ctx, topic, on_message, ctx, NULL), "lbm_hf_rcv_create");
    bench_rounds_wait_end();
    um_check(lbm_hf_rcv_delete(hf), "lbm_hf_rcv_delete");
    um_end(plain, NULL, ctx);
}

struct sender {
    lbm_context_t *ctx[2];
    lbm_src_t *plain, *hf[2];
    char *message;
    lbm_uint_t number;
};

static void send_round(void *arg, unsigned kind, unsigned count)
{
    struct sender *s = arg;
    for (unsigned i = 0; i < count; i++) {
        if (kind == PLAIN) {
            um_check(lbm_src_send(s->plain, s->message, run.size, 0), "lbm_src_send");
            continue;
        }
        s->number++;
        um_check(lbm_hf_src_send(s->hf[0], s->message, run.size, s->number, 0), "lbm_hf_src_send");
        if (kind == TWO) {
            um_check(lbm_hf_src_send(s->hf[1], s->message, run.size, s->number, 0), "lbm_hf_src_send");
        }
    }
    um_check(lbm_src_flush(kind == PLAIN ? s->plain : s->hf[0]), "lbm_src_flush");
    if (kind == TWO) {
        um_check(lbm_src_flush(s->hf[1]), "lbm_src_flush");
    }
}

static lbm_src_t *numbered(lbm_context_t *ctx)
{
    lbm_src_topic_attr_t *attr = um_source_attr("tcp");
    lbm_topic_t *topic;
    lbm_src_t *src;
    um_check(lbm_src_topic_alloc(&topic, ctx, "bench/hf", attr), "lbm_src_topic_alloc");
    um_check(lbm_hf_src_create(&src, ctx, topic, NULL, NULL, NULL), "lbm_hf_src_create");
    lbm_src_topic_attr_delete(attr);
    um_check(um_src_wait_receivers(src, 1, 15000), "um_src_wait_receivers");
    return src;
}

static void send_all(void)
{
    struct sender s = {.message = calloc(1, run.size)};
    for (int i = 0; i < 2; i++) {
        s.ctx[i] = um_context_of(um_context_attr("127.0.0.1"));
        s.hf[i] = numbered(s.ctx[i]);
    }
    s.plain = um_source_of(s.ctx[0], "bench/plain", um_source_attr("tcp"));
    um_check(um_src_wait_receivers(s.plain, 1, 15000), "um_src_wait_receivers");
    bench_sleep_ms(50);
    const struct bench_rounds_plan plan = {.kinds = KINDS,
                                           .names = NAMES,
                                           .count = ROUND_BYTES / (unsigned)run.size,
                                           .seconds = run.seconds * KINDS,
                                           .only = run.only,
                                           .send = send_round,
                                           .arg = &s};
    printf("{\"bench\": \"hot-failover\", \"size\": %zu, ", run.size);
    bench_rounds_run(&plan);
    printf("}\n");
    um_end(NULL, s.hf[1], s.ctx[1]);
    lbm_src_delete(s.hf[0]);
    um_end(NULL, s.plain, s.ctx[0]);
}

int main(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--size") == 0) {
            run.size = strtoul(argv[i + 1], NULL, 10);
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
