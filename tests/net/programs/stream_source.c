/* Sends numbered messages on a topic ("stream") for the network tests.
 *
 *   stream_source -c FILE [-t TOPIC] [-n MESSAGES] [-s BYTES] [-f EVERY] [-r RATE] [-w RECEIVERS] [-g]
 *
 * -f N  LBM_MSG_FLUSH on every N-th message (1; 0: only on the last)    -r N  messages a second, in steps of 1 ms
 * -w N  first wait for so many connected receivers                     -g    first wait for SIGUSR1
 *
 * SIGUSR2 ends the sending early. Prints "created", then "sent" with a JSON text when all is sent; stays to repair
 * until SIGTERM and prints "final" with another: statistics and how long the calls took. */
#include <signal.h>
#include <lbm/um.h>
#include <unistd.h>

#include "stream.h"

static struct {
    const char *config, *topic;
    uint64_t messages, rate;
    size_t size;
    unsigned flush_every;
    int receivers;
    bool wait_for_signal;
} options = {.topic = STREAM_TOPIC, .messages = 1000, .size = 64, .flush_every = 1};

static volatile sig_atomic_t ended, sent_enough;
static struct stream_histogram calls;

static void on_signal(int number)
{
    sent_enough = 1;
    ended = number == SIGTERM;
}

static int on_event(lbm_src_t *src, int event, void *extra, void *clientd)
{
    (void)src;
    (void)clientd;
    if (event == LBM_SRC_EVENT_CONNECT || event == LBM_SRC_EVENT_DISCONNECT) {
        printf("%s %s\n", event == LBM_SRC_EVENT_CONNECT ? "connect" : "disconnect", (const char *)extra);
        fflush(stdout);
    }
    return 0;
}

static void parse(int argc, char **argv)
{
    for (int option; (option = getopt(argc, argv, "t:c:n:s:f:r:w:g")) != -1;) {
        switch (option) {
        case 'c':
            options.config = optarg;
            break;
        case 't':
            options.topic = optarg;
            break;
        case 'n':
            options.messages = strtoull(optarg, NULL, 10);
            break;
        case 's':
            options.size = strtoul(optarg, NULL, 10);
            break;
        case 'f':
            options.flush_every = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'r':
            options.rate = strtoull(optarg, NULL, 10);
            break;
        case 'w':
            options.receivers = atoi(optarg);
            break;
        case 'g':
            options.wait_for_signal = true;
            break;
        default:
            exit(2);
        }
    }
    if (options.config == NULL || options.size < sizeof(struct stream_header)) {
        fprintf(stderr, "-c FILE is needed, and at least -s %zu\n", sizeof(struct stream_header));
        exit(2);
    }
}

/* With a rate: sleeps until the schedule allows message `number`, and returns the time it was due; a late one is not
 * waited for. Latencies count from that time, so that a source that is held up shows in them. */
static uint64_t pace(uint64_t begin_ns, uint64_t number)
{
    uint64_t now = stream_now_ns();
    if (options.rate == 0) {
        return now;
    }
    uint64_t per_step = options.rate / 1000 != 0 ? options.rate / 1000 : 1;
    uint64_t due = begin_ns + (number - number % per_step) * 1000000000u / options.rate;
    if (due > now) {
        struct timespec wait = {(time_t)((due - now) / 1000000000u), (long)((due - now) % 1000000000u)};
        nanosleep(&wait, NULL);
    }
    return due;
}

static void send_all(lbm_src_t *src, uint64_t stream)
{
    char *message = malloc(options.size);
    uint64_t begin = stream_now_ns(), number = 0;
    for (; number < options.messages && !sent_enough; number++) {
        stream_fill(message, options.size, stream, number, pace(begin, number));
        bool flush =
            number + 1 == options.messages || (options.flush_every != 0 && (number + 1) % options.flush_every == 0);
        uint64_t before = stream_now_ns();
        stream_check(lbm_src_send(src, message, options.size, flush ? LBM_MSG_FLUSH : 0), "lbm_src_send");
        stream_histogram_add(&calls, stream_now_ns() - before);
    }
    flockfile(stdout); /* no log line of another thread in between */
    printf("sent {\"stream\": %lu, \"sent\": %lu, \"seconds\": %.3f, ", stream, number,
           (double)(stream_now_ns() - begin) / 1e9);
    stream_print_histogram("call_us", &calls);
    printf("}\n");
    fflush(stdout);
    funlockfile(stdout);
    free(message);
}

#define PRINT_COMMON(member)                                                                                           \
    printf("\"msgs_sent\": %lu, \"bytes_sent\": %lu, \"nak_pckts_rcved\": %lu, \"naks_rcved\": %lu, "                  \
           "\"naks_ignored\": %lu, \"naks_shed\": %lu, \"naks_rx_delay_ignored\": %lu, \"rxs_sent\": %lu",             \
           (member)->msgs_sent, (member)->bytes_sent, (member)->nak_pckts_rcved, (member)->naks_rcved,                 \
           (member)->naks_ignored, (member)->naks_shed, (member)->naks_rx_delay_ignored, (member)->rxs_sent)

static void print_final(lbm_src_t *src)
{
    lbm_src_transport_stats_t stats;
    stream_check(lbm_src_retrieve_transport_stats(src, &stats), "lbm_src_retrieve_transport_stats");
    flockfile(stdout);
    printf("final {\"source\": \"%s\", ", stats.source);
    if (stats.type == LBM_TRANSPORT_STAT_LBTRM) {
        PRINT_COMMON(&stats.transport.lbtrm);
    } else if (stats.type == LBM_TRANSPORT_STAT_LBTRU) {
        PRINT_COMMON(&stats.transport.lbtru);
    } else {
        printf("\"num_clients\": %lu", stats.transport.tcp.num_clients);
    }
    printf("}\n");
    fflush(stdout);
    funlockfile(stdout);
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    sigset_t waited;
    sigemptyset(&waited);
    sigaddset(&waited, SIGUSR1);
    sigprocmask(SIG_BLOCK, &waited, NULL);
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    uint64_t stream = stream_now_ns() * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid();
    lbm_context_t *ctx;
    lbm_topic_t *topic;
    lbm_src_t *src;
    stream_check(lbm_log(stream_log, NULL), "lbm_log");
    stream_check(lbm_config(options.config), "lbm_config");
    stream_check(lbm_context_create(&ctx, NULL, NULL, NULL), "lbm_context_create");
    stream_check(lbm_src_topic_alloc(&topic, ctx, options.topic, NULL), "lbm_src_topic_alloc");
    stream_check(lbm_src_create(&src, ctx, topic, on_event, NULL, NULL), "lbm_src_create");
    printf("created\n");
    fflush(stdout);
    if (options.receivers > 0) {
        stream_check(um_src_wait_receivers(src, options.receivers, 60000), "um_src_wait_receivers");
    }
    if (options.wait_for_signal) {
        int number;
        sigwait(&waited, &number);
    }
    send_all(src, stream);
    while (!ended) {
        usleep(10000);
    }
    print_final(src);
    stream_check(lbm_src_delete(src), "lbm_src_delete");
    stream_check(lbm_context_delete(ctx), "lbm_context_delete");
    return 0;
}
