/* lbmspike: how well a burst of messages is received. The source tells the receivers
 * (-R) what to expect, sends the messages of the spike as fast as it can, and asks for
 * the result until it has one. Topics beside that of the spike are TOPIC.control and
 * TOPIC.results. Callbacks run on the context's thread, or with -q on that of an event
 * queue; main() sends. */
#include <arpa/inet.h>
#include <lbm/lbm.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ex_options.h"
#include "ex_print.h"
#include "ex_receiver.h"

#define STAMPS_FILE "lbmspike.stamps"
#define STAMPS_MAX 10000000u
#define RESULT_MAX 256
#define ASK_AGAIN_SECONDS 0.2 /* until somebody has heard it */

static struct {
    unsigned long background, length, messages, buffer;
    int bounded, stamps, ordered, queue, receiver, recovery, ignored;
    struct ex_rate rate;
} opt = {.length = 25, .messages = 10000, .ordered = 2, .recovery = 1000};

static const struct ex_option options[] = {
    {'b', NULL, EX_FLAG, &opt.ignored, NULL, "no effect"},
    {'B', NULL, EX_UNSIGNED, &opt.background, "MS", "a background message every MS milliseconds (0: none)"},
    {'c', NULL, EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'d', NULL, EX_FLAG, &opt.stamps, NULL, "write arrival times and numbers to " STAMPS_FILE " (receiver)"},
    {'h', NULL, EX_HELP, NULL, NULL, "show this text"},
    {'L', NULL, EX_FLAG, &opt.bounded, NULL, "TCP with bounded latency: slow receivers lose messages"},
    {'l', NULL, EX_UNSIGNED, &opt.length, "BYTES", "length of messages (25, at least 4)"},
    {'M', NULL, EX_UNSIGNED, &opt.messages, "NUM", "messages of the spike (10000)"},
    {'o', NULL, EX_INT, &opt.ordered, "MODE", "ordered delivery of the receiver: 1, 0 or -1"},
    {'q', NULL, EX_FLAG, &opt.queue, NULL, "receive through an event queue"},
    {'r', NULL, EX_RATE, &opt.rate, "[U|M]DATA/RETR", "LBT-RU or LBT-RM with these rate limits"},
    {'R', NULL, EX_FLAG, &opt.receiver, NULL, "be a receiver"},
    {'u', NULL, EX_UNSIGNED, &opt.buffer, "BYTES", "socket buffers of LBT-RM"},
    {'v', NULL, EX_INT, &opt.recovery, "MS", "time for recovery behind the spike (1000)"},
    EX_END,
};

static const struct ex_program program = {"Sends a spike of messages, or receives it and tells how that went.",
                                          "[topic]", 0, options};

/* ---- what goes over the topic TOPIC.control, all in network order ---- */

enum { CONTROL_EXPECT = 1, CONTROL_DONE = 2 };

struct control {
    uint32_t type, spike, messages, length, recovery_ms;
};

static struct {
    pthread_mutex_t lock;
    uint32_t spike, messages, recovery_ms; /* of the receiver: what was announced last */
    size_t length;
    bool joined;             /* the session of the spike has begun */
    bool asked, over;        /* somebody waits for an answer; the spike is over */
    unsigned long received;  /* messages of the spike, */
    unsigned long backwards; /* those that came behind a later one, */
    unsigned long lost;      /* and those that were given up */
    uint32_t next;           /* number expected next */
    unsigned long *stamp_us; /* with -d */
    char answer[RESULT_MAX]; /* of the source: what came last */
    double first, last;      /* of messages of the spike, ex_now() */
    volatile int news, end;  /* something has come; the receiver is to end */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void on_signal(int number)
{
    state.end = 1;
}

static void unhandled(const char *where, const lbm_msg_t *msg)
{
    if (msg->type != LBM_MSG_BOS && msg->type != LBM_MSG_EOS) {
        printf("Unhandled receiver event [%d] for %s from source [%s] with topic [%s]\n", msg->type, where, msg->source,
               msg->topic_name);
    }
}

/* ---- the receiver's callbacks ---- */

/* Lock. */
static void count_message(uint32_t number)
{
    double now = ex_now();
    if (state.received == 0) {
        state.first = now;
    }
    state.last = now;
    state.backwards += number < state.next;
    state.next = number >= state.next ? number + 1 : state.next;
    if (state.stamp_us != NULL && state.received < STAMPS_MAX) {
        state.stamp_us[2 * state.received] = (unsigned long)(now * 1e6);
        state.stamp_us[2 * state.received + 1] = number;
    }
    state.received++;
}

static int handle_rcvd_msg(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    uint32_t number;
    pthread_mutex_lock(&state.lock);
    switch (msg->type) {
    case LBM_MSG_DATA:
        if (msg->len >= sizeof(number)) { /* shorter: of the background */
            memcpy(&number, msg->data, sizeof(number));
            count_message(ntohl(number));
        }
        break;
    case LBM_MSG_BOS:
        state.joined = true;
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS:
    case LBM_MSG_UNRECOVERABLE_LOSS_BURST:
        state.lost++;
        break;
    default:
        unhandled("handle_rcvd_msg", msg);
    }
    pthread_mutex_unlock(&state.lock);
    return 0;
}

/* Lock. */
static void begin_spike(const struct control *control)
{
    state.spike = control->spike;
    state.messages = ntohl(control->messages);
    state.length = ntohl(control->length);
    state.recovery_ms = ntohl(control->recovery_ms);
    state.over = false;
    state.received = state.backwards = state.lost = state.next = 0;
    printf("Expecting %u messages of length %lu\n", state.messages, (unsigned long)state.length);
}

static int handle_rcvc_msg(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct control control;
    if (msg->type != LBM_MSG_DATA || msg->len != sizeof(control)) {
        unhandled("handle_rcvc_msg", msg);
        return 0;
    }
    memcpy(&control, msg->data, sizeof(control));
    pthread_mutex_lock(&state.lock);
    switch (ntohl(control.type)) {
    case CONTROL_EXPECT:
        if (control.spike != state.spike) {
            begin_spike(&control);
        }
        state.asked = true;
        break;
    case CONTROL_DONE:
        if (control.spike == state.spike && !state.over) {
            state.over = true;
            printf("Allowing %ld ms for recovery before sending result\n", (long)state.recovery_ms);
        }
        state.asked = true;
        break;
    default:
        printf("Unknown control message %d\n", (int)ntohl(control.type));
    }
    fflush(stdout);
    state.news = 1;
    pthread_mutex_unlock(&state.lock);
    return 0;
}

/* ---- the source's callback ---- */

static int handle_rcvr_msg(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    switch (msg->type) {
    case LBM_MSG_DATA:
        pthread_mutex_lock(&state.lock);
        snprintf(state.answer, sizeof(state.answer), "%.*s", (int)(msg->len < RESULT_MAX ? msg->len : RESULT_MAX - 1),
                 msg->data);
        state.news = 1;
        pthread_mutex_unlock(&state.lock);
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS:
        printf("handle_rcvr_msg: unrecoverable loss\n");
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS_BURST:
        printf("handle_rcvr_msg: unrecoverable burst loss\n");
        break;
    case LBM_MSG_NO_SOURCE_NOTIFICATION:
        printf("handle_rcvr_msg: no source\n");
        break;
    default:
        unhandled("handle_rcvr_msg", msg);
    }
    return 0;
}

/* ---- both roles ---- */

static lbm_src_t *make_source(lbm_context_t *ctx, const char *root, const char *end, const lbm_src_topic_attr_t *attr)
{
    char name[LBM_MSG_MAX_TOPIC_LEN];
    lbm_topic_t *topic;
    lbm_src_t *src;
    snprintf(name, sizeof(name), "%s%s", root, end);
    EX_TRY(lbm_src_topic_alloc, &topic, ctx, name, attr);
    EX_TRY(lbm_src_create, &src, ctx, topic, NULL, NULL, NULL);
    return src;
}

static lbm_rcv_t *make_receiver(lbm_context_t *ctx, const char *root, const char *end, lbm_rcv_cb_proc proc,
                                lbm_event_queue_t *evq)
{
    char name[LBM_MSG_MAX_TOPIC_LEN], mode[16];
    lbm_rcv_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    snprintf(name, sizeof(name), "%s%s", root, end);
    EX_TRY(lbm_rcv_topic_attr_create, &attr);
    if (opt.ordered <= 1 && proc == handle_rcvd_msg) {
        snprintf(mode, sizeof(mode), "%d", opt.ordered);
        EX_TRY(lbm_rcv_topic_attr_str_setopt, attr, "ordered_delivery", mode);
    }
    EX_TRY(lbm_rcv_topic_lookup, &topic, ctx, name, attr);
    EX_TRY(lbm_rcv_create, &rcv, ctx, topic, proc, NULL, evq);
    EX_TRY(lbm_rcv_topic_attr_delete, attr);
    return rcv;
}

/* Lock, given up while waiting. Until something has come, or it is time to ask again. */
static void wait_for_news(void)
{
    pthread_mutex_unlock(&state.lock);
    ex_sleep_until(ASK_AGAIN_SECONDS, &state.news);
    pthread_mutex_lock(&state.lock);
    state.news = 0;
}

/* ---- the source ---- */

static int send_background(lbm_context_t *ctx, const void *clientd)
{
    lbm_src_send((lbm_src_t *)clientd, "A", 1, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK); /* in the background: or not */
    return 0;
}

/* Says it again and again, until an answer comes that begins with `word`. */
static void tell(lbm_src_t *src, uint32_t type, uint32_t spike, const char *word)
{
    struct control control = {htonl(type), spike, htonl((uint32_t)opt.messages), htonl((uint32_t)opt.length),
                              htonl((uint32_t)opt.recovery)};
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "%s %08x ", word, spike);
    pthread_mutex_lock(&state.lock);
    while (strncmp(state.answer, wanted, strlen(wanted)) != 0) {
        pthread_mutex_unlock(&state.lock);
        EX_TRY(lbm_src_send, src, (const char *)&control, sizeof(control), LBM_MSG_FLUSH | LBM_SRC_BLOCK);
        pthread_mutex_lock(&state.lock);
        wait_for_news();
    }
    if (strlen(state.answer) > strlen(wanted)) {
        printf("%s\n", state.answer + strlen(wanted));
    }
    pthread_mutex_unlock(&state.lock);
}

static void send_spike(lbm_src_t *src)
{
    char *data = calloc(1, opt.length);
    if (data == NULL) {
        fprintf(stderr, "no memory for messages of %lu bytes\n", opt.length);
        exit(1);
    }
    for (unsigned long i = 0; i < opt.messages; i++) {
        uint32_t number = htonl((uint32_t)i);
        memcpy(data, &number, sizeof(number));
        EX_TRY(lbm_src_send, src, data, opt.length, (i + 1 == opt.messages ? LBM_MSG_FLUSH : 0) | LBM_SRC_BLOCK);
    }
    free(data);
}

static void be_source(lbm_context_t *ctx, const char *root, const lbm_src_topic_attr_t *attr, lbm_event_queue_t *evq)
{
    uint32_t spike = (uint32_t)getpid() ^ (uint32_t)(ex_now() * 1e6);
    lbm_src_t *data = make_source(ctx, root, "", attr), *control = make_source(ctx, root, ".control", attr);
    lbm_rcv_t *results = make_receiver(ctx, root, ".results", handle_rcvr_msg, evq);
    int timer = opt.background > 0
                    ? lbm_schedule_timer_recurring(ctx, send_background, data, NULL, (lbm_ulong_t)opt.background)
                    : -1;
    tell(control, CONTROL_EXPECT, spike, "READY");
    send_spike(data);
    printf("Done sending spike.  Waiting for recovery and results . . .\n");
    fflush(stdout);
    tell(control, CONTROL_DONE, spike, "RESULT");
    if (timer != -1) {
        EX_TRY(lbm_cancel_timer, ctx, timer, NULL);
    }
    EX_TRY(lbm_rcv_delete, results);
    EX_TRY(lbm_src_delete, control);
    EX_TRY(lbm_src_delete, data);
}

/* ---- the receiver ---- */

static void write_stamps(void)
{
    FILE *file = fopen(STAMPS_FILE, "w");
    if (file == NULL) {
        perror(STAMPS_FILE);
        return;
    }
    for (unsigned long i = 0; i < state.received && i < STAMPS_MAX; i++) {
        fprintf(file, "%lu %d\n", state.stamp_us[2 * i], (int)state.stamp_us[2 * i + 1]);
    }
    fclose(file);
}

/* Lock. What is known now. */
static void put_result(char *out, size_t size)
{
    double seconds = state.received > 1 ? state.last - state.first : 0;
    snprintf(out, size, "RESULT %08x received %lu of %u messages in %.04g secs, %lu losses, %lu out of order",
             state.spike, state.received, state.messages, seconds, state.lost, state.backwards);
}

/* Lock, given up meanwhile. Waits for recovery where that has not been done. */
static void answer(lbm_src_t *src, uint32_t *recovered)
{
    char text[RESULT_MAX];
    if (state.over && *recovered != state.spike) {
        *recovered = state.spike;
        pthread_mutex_unlock(&state.lock);
        ex_sleep_ms(state.recovery_ms);
        pthread_mutex_lock(&state.lock);
        if (state.stamp_us != NULL) {
            write_stamps();
        }
    }
    if (state.over) {
        put_result(text, sizeof(text));
    } else {
        snprintf(text, sizeof(text), "READY %08x ", state.spike);
    }
    pthread_mutex_unlock(&state.lock);
    EX_TRY(lbm_src_send, src, text, strlen(text), LBM_MSG_FLUSH | LBM_SRC_BLOCK);
    pthread_mutex_lock(&state.lock);
}

static void be_receiver(lbm_context_t *ctx, const char *root, const lbm_src_topic_attr_t *attr, lbm_event_queue_t *evq)
{
    uint32_t recovered = 0;
    lbm_src_t *results = make_source(ctx, root, ".results", attr);
    lbm_rcv_t *data = make_receiver(ctx, root, "", handle_rcvd_msg, evq);
    lbm_rcv_t *control = make_receiver(ctx, root, ".control", handle_rcvc_msg, evq);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    if (opt.stamps && (state.stamp_us = calloc(2 * (size_t)STAMPS_MAX, sizeof(*state.stamp_us))) == NULL) {
        fprintf(stderr, "no memory for time stamps\n");
        exit(1);
    }
    printf("Receiving on topic %s\n", root);
    fflush(stdout);
    pthread_mutex_lock(&state.lock);
    while (!state.end) {
        wait_for_news();
        if (state.asked && state.joined) {
            state.asked = false;
            answer(results, &recovered);
        }
    }
    pthread_mutex_unlock(&state.lock);
    EX_TRY(lbm_rcv_delete, control);
    EX_TRY(lbm_rcv_delete, data);
    EX_TRY(lbm_src_delete, results);
    free(state.stamp_us);
}

static void set_options(lbm_context_attr_t *cattr, lbm_src_topic_attr_t *sattr)
{
    char bytes[32];
    ex_apply_rate(&opt.rate, cattr, sattr);
    if (opt.buffer > 0) {
        snprintf(bytes, sizeof(bytes), "%lu", opt.buffer);
        EX_TRY(lbm_context_attr_str_setopt, cattr, "transport_lbtrm_receiver_socket_buffer", bytes);
        EX_TRY(lbm_context_attr_str_setopt, cattr, "transport_lbtrm_source_socket_buffer", bytes);
    }
    if (opt.bounded) {
        EX_TRY(lbm_src_topic_attr_str_setopt, sattr, "transport", "tcp");
        EX_TRY(lbm_src_topic_attr_str_setopt, sattr, "transport_tcp_multiple_receiver_behavior", "bounded_latency");
    }
}

int main(int argc, char **argv)
{
    int first = ex_parse(argc, argv, &program);
    const char *root = first < argc ? argv[first] : "spike";
    lbm_context_attr_t *cattr;
    lbm_src_topic_attr_t *sattr;
    lbm_context_t *ctx;
    struct ex_queue queue = {0};
    if (opt.length < sizeof(uint32_t) || opt.recovery < 0 || strlen(root) > LBM_MSG_MAX_TOPIC_LEN - 16) {
        ex_usage(argv[0], &program, 1);
    }
    EX_TRY(lbm_context_attr_create, &cattr);
    EX_TRY(lbm_src_topic_attr_create, &sattr);
    set_options(cattr, sattr);
    if (opt.queue) {
        ex_queue_start(&queue, "event queue threshold exceeded - event 0x%x, sz %lu, delay %lu\n");
    }
    EX_TRY(lbm_context_create, &ctx, cattr, NULL, NULL);
    (opt.receiver ? be_receiver : be_source)(ctx, root, sattr, queue.evq);
    EX_TRY(lbm_context_delete, ctx);
    if (opt.queue) {
        ex_queue_stop(&queue);
    }
    EX_TRY(lbm_context_attr_delete, cattr);
    EX_TRY(lbm_src_topic_attr_delete, sattr);
    return 0;
}
