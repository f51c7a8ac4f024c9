/* What loss does to latency (requirement M6): LBT-RM messages at a steady rate over a veth cable that drops a share of
 * the datagrams; B measures each message from the time it was due to be sent. Options of its own: --rate (messages a
 * second), --loss (datagrams in a million), --profile. */
#define _GNU_SOURCE
#include <lbm/lbm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_common.h"
#include "bench_veth.h"

static unsigned long rate = 50000, loss_ppm;
static const char *profile = "low_latency";

struct message {
    struct bench_header header;
    uint64_t due_ns;
};

static void check(int rc, const char *what)
{
    if (rc != 0) {
        bench_die("%s: %s", what, lbm_errmsg());
    }
}

/* netem is missing from many kernels; nftables is there. */
static void drop_some(void)
{
    char line[256];
    snprintf(line, sizeof line,
             "nft add table ip loss && nft 'add chain ip loss in { type filter hook input priority 0; }' && "
             "nft add rule ip loss in ip daddr 239.77.0.9 numgen random mod 1000000 '<' %lu drop",
             loss_ppm);
    if (loss_ppm > 0 && system(line) != 0) {
        bench_die("failed: %s", line);
    }
}

static lbm_context_t *make_context(void)
{
    lbm_context_attr_t *attr;
    lbm_context_t *ctx;
    check(lbm_context_attr_create(&attr), "lbm_context_attr_create");
    check(lbm_context_attr_str_setopt(attr, "um_profile", profile), "um_profile");
    check(lbm_context_attr_str_setopt(attr, "default_interface", BENCH_VETH_NETWORK), "default_interface");
    check(lbm_context_attr_str_setopt(attr, "resolver_multicast_interface", BENCH_VETH_NETWORK), "interface");
    if (bench_options.spin) {
        check(lbm_context_attr_str_setopt(attr, "file_descriptor_management_behavior", "busy_wait"), "busy_wait");
    }
    check(lbm_context_create(&ctx, attr, NULL, NULL), "lbm_context_create");
    lbm_context_attr_delete(attr);
    return ctx;
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct message message;
    (void)rcv, (void)clientd;
    if (msg->type == LBM_MSG_UNRECOVERABLE_LOSS || msg->type == LBM_MSG_UNRECOVERABLE_LOSS_BURST) {
        bench_die("unrecoverable loss");
    }
    if (msg->type != LBM_MSG_DATA) {
        return 0;
    }
    memcpy(&message, msg->data, sizeof message);
    if (message.header.kind == BENCH_HELLO) {
        atomic_store(&bench_shared->seen_b, 1);
    } else if (message.header.kind == BENCH_END) {
        atomic_store(&bench_shared->done, 1);
    } else if (message.header.kind == BENCH_MEASURED && bench_shared->sample_count < BENCH_SAMPLES_MAX) {
        bench_shared->samples[bench_shared->sample_count++] = (uint32_t)(bench_now() - message.due_ns);
    }
    return 0;
}

static void receive(lbm_context_t *ctx)
{
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    check(lbm_rcv_topic_lookup(&topic, ctx, "loss", NULL), "lbm_rcv_topic_lookup");
    check(lbm_rcv_create(&rcv, ctx, topic, on_message, NULL, NULL), "lbm_rcv_create");
    bench_meet();
    while (!bench_finished()) {
        bench_sleep_ms(5);
    }
}

static void send_one(lbm_src_t *src, enum bench_kind kind, uint64_t sequence, uint64_t due_ns)
{
    static char bytes[65536];
    struct message message = {{sequence, kind}, due_ns};
    memcpy(bytes, &message, sizeof message);
    check(lbm_src_send(src, bytes, bench_options.size, LBM_MSG_FLUSH), "lbm_src_send");
}

static void send_steadily(lbm_src_t *src, double seconds, enum bench_kind kind)
{
    uint64_t begin = bench_now(), count = (uint64_t)(seconds * (double)rate);
    for (uint64_t i = 0; i < count && !bench_finished(); i++) {
        uint64_t due = begin + i * 1000000000u / rate;
        while (bench_now() < due) {
        }
        send_one(src, kind, i, due);
    }
}

static void publish(lbm_context_t *ctx)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    check(lbm_src_topic_attr_create(&attr), "lbm_src_topic_attr_create");
    check(lbm_src_topic_attr_str_setopt(attr, "transport", "lbtrm"), "transport");
    check(lbm_src_topic_attr_str_setopt(attr, "transport_lbtrm_multicast_address", "239.77.0.9"), "group");
    check(lbm_src_topic_alloc(&topic, ctx, "loss", attr), "lbm_src_topic_alloc");
    check(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL), "lbm_src_create");
    lbm_src_topic_attr_delete(attr);
    bench_meet();
    while (!atomic_load(&bench_shared->seen_b) && !bench_finished()) {
        send_one(src, BENCH_HELLO, 0, 0);
        bench_sleep_ms(5);
    }
    send_steadily(src, bench_options.warm_seconds, BENCH_WARM);
    send_steadily(src, bench_options.seconds, BENCH_MEASURED);
    while (!bench_finished()) {
        send_one(src, BENCH_END, 0, 0);
        bench_sleep_ms(5);
    }
}

static void side(int role)
{
    bench_veth(role, 1500);
    if (role == 1) {
        drop_some();
        receive(make_context());
    } else {
        publish(make_context());
    }
}

static int take_options(int argc, char **argv)
{
    int kept = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--rate") == 0 && i + 1 < argc) {
            rate = strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--loss") == 0 && i + 1 < argc) {
            loss_ppm = strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--profile") == 0 && i + 1 < argc) {
            profile = argv[++i];
        } else {
            argv[kept++] = argv[i];
        }
    }
    return kept;
}

int main(int argc, char **argv)
{
    bench_options.mode = "paced";
    return bench_main(take_options(argc, argv), argv, side);
}
