/* Monitors objects of its own with the module `pb` and a transport module of its own that keeps the packets, and prints
 * them beside the counters that the API reads at that moment: for tests that decode them by other means.
 *
 *     mon_sampler CONFIG TRANSPORT
 *
 * Lines: "packet HEX", "source N...", "receiver N...", "context N...", "queue N..." with the counters in the order of
 * their structure. A sample during which a counter has changed is taken again. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <lbm/lbmmon.h>
#include <lbm/um.h>

enum { MESSAGES = 10, PACKETS = 32, PACKET_MAX = 4096, TRIES = 2000 };

static struct {
    size_t length;
    unsigned char bytes[PACKET_MAX];
} packets[PACKETS];
static size_t packet_count;

static void must(int rc, const char *what)
{
    if (rc == -1) {
        fprintf(stderr, "%s: %s / %s\n", what, lbm_errmsg(), lbmmon_errmsg());
        exit(1);
    }
}
#define MUST(call) must((call), #call)

/* ---- a transport module that keeps what it is given ---- */

static int init_source(void **data, const void *options)
{
    *data = packets;
    return 0;
}

static int keep(const char *data, size_t length, void *clientd)
{
    if (packet_count == PACKETS || length > PACKET_MAX) {
        return -1;
    }
    memcpy(packets[packet_count].bytes, data, length);
    packets[packet_count++].length = length;
    return 0;
}

static int finish(void *data)
{
    return 0;
}

static const char *no_error(void)
{
    return "no room for another packet";
}

static const lbmmon_transport_func_t keeper = {
    .mInitSource = init_source, .mSend = keep, .mFinishSource = finish, .mErrorMessage = no_error};

/* ---- objects ---- */

static struct {
    lbm_context_t *ctx;
    lbm_event_queue_t *evq;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    int received;
} it;

static int on_event(lbm_src_t *src, int event, void *ed, void *clientd)
{
    return 0;
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    it.received += msg->type == LBM_MSG_DATA; /* main() dispatches */
    return 0;
}

static void make_objects(const char *transport)
{
    lbm_topic_t *topic;
    lbm_src_topic_attr_t *attr;
    MUST(lbm_context_create(&it.ctx, NULL, NULL, NULL));
    MUST(lbm_event_queue_create(&it.evq, NULL, NULL, NULL));
    MUST(lbm_rcv_topic_lookup(&topic, it.ctx, "t", NULL));
    MUST(lbm_rcv_create(&it.rcv, it.ctx, topic, on_message, NULL, it.evq));
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    MUST(lbm_src_topic_alloc(&topic, it.ctx, "t", attr));
    MUST(lbm_src_topic_attr_delete(attr));
    MUST(lbm_src_create(&it.src, it.ctx, topic, on_event, NULL, NULL));
}

static void short_pause(void)
{
    struct timespec pause = {0, 5000000};
    nanosleep(&pause, NULL);
}

static void exchange(void)
{
    MUST(um_rcv_wait_ready(it.rcv, 1, 30000));
    while (it.received < MESSAGES) { /* the first ones may be sent before the receiver has joined */
        MUST(lbm_src_send(it.src, "message", 7, LBM_MSG_FLUSH));
        MUST(lbm_event_dispatch(it.evq, LBM_EVENT_QUEUE_POLL));
        short_pause();
    }
}

/* ---- counters ---- */

struct counters {
    lbm_src_transport_stats_t source;
    lbm_rcv_transport_stats_t receiver;
    lbm_context_stats_t context;
    lbm_event_queue_stats_t queue;
};

static void read_counters(struct counters *out)
{
    int one = 1;
    memset(out, 0, sizeof(*out));
    MUST(lbm_src_retrieve_transport_stats(it.src, &out->source));
    MUST(lbm_rcv_retrieve_all_transport_stats(it.rcv, &one, &out->receiver));
    MUST(lbm_context_retrieve_stats(it.ctx, &out->context));
    MUST(lbm_event_queue_retrieve_stats(it.evq, &out->queue));
}

static void print_counters(const char *name, const void *from, size_t size)
{
    const lbm_ulong_t *counters = from;
    printf("%s", name);
    for (size_t i = 0; i < size / sizeof(lbm_ulong_t); i++) {
        printf(" %lu", (unsigned long)counters[i]);
    }
    printf("\n");
}

static void print_all(const struct counters *counters)
{
    for (size_t i = 0; i < packet_count; i++) {
        printf("packet ");
        for (size_t n = 0; n < packets[i].length; n++) {
            printf("%02x", packets[i].bytes[n]);
        }
        printf("\n");
    }
    printf("names %s %s\n", counters->source.source, counters->receiver.source);
    print_counters("source", &counters->source.transport, sizeof(counters->source.transport));
    print_counters("receiver", &counters->receiver.transport, sizeof(counters->receiver.transport));
    print_counters("context", &counters->context, sizeof(counters->context));
    print_counters("queue", &counters->queue, sizeof(counters->queue));
}

int main(int argc, char **argv)
{
    static struct counters before, after;
    lbmmon_sctl_t *control;
    int tries = 0;
    MUST(argc == 3 ? lbm_config(argv[1]) : -1);
    make_objects(argv[2]);
    exchange();
    MUST(lbmmon_sctl_create(&control, lbmmon_format_pb_module(), NULL, &keeper, NULL));
    MUST(lbmmon_context_monitor(control, it.ctx, "sampler", 0));
    MUST(lbmmon_rcv_monitor(control, it.rcv, "sampler", 0));
    MUST(lbmmon_src_monitor(control, it.src, "sampler", 0));
    MUST(lbmmon_evq_monitor(control, it.evq, "sampler", 0));
    do {
        short_pause();
        packet_count = 0;
        read_counters(&before);
        MUST(lbmmon_sctl_sample(control));
        read_counters(&after);
        must(++tries < TRIES ? 0 : -1, "counters that rest");
    } while (memcmp(&before, &after, sizeof(before)) != 0);
    print_all(&after);
    MUST(lbmmon_sctl_destroy(control));
    MUST(lbm_src_delete(it.src));
    MUST(lbm_rcv_delete(it.rcv));
    MUST(lbm_event_queue_delete(it.evq));
    MUST(lbm_context_delete(it.ctx));
    return 0;
}
