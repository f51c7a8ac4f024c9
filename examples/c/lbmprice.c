/* lbmprice: a simulated price feed of self-describing messages. The source (-s) sends
 * prices on the topic "price" and, when receivers ask on "price.request", the book: last,
 * lowest and highest price. It answers many requests with one book and sends no more
 * books than one in a while. With -H a source relays what it hears on "price" to
 * "price.hf" under hot failover numbers, and a receiver takes that instead: it hears each
 * price once, from whichever relay is alive. All callbacks come by an event queue that
 * main() serves, so that they may make and delete what they like. */
#include <lbm/lbm.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ex_options.h"
#include "ex_price.h"

#define TOPIC "price"
#define TOPIC_HF "price.hf"
#define TOPIC_REQUEST "price.request"
#define PRICE_MS 100
#define SQUELCH_MS 100    /* behind a book: who asks now has heard it, or asks again */
#define RATE_LIMIT_MS 400 /* behind that: what is asked now is answered at its end */
#define DELAY_MS 50       /* before the first request: at most, by chance, so that not all ask at once */
#define REQUEST_MS 1000   /* until it is repeated */
#define NO_SOURCE_QUERIES "5"
#define TICK_MS 100 /* an event queue without events keeps who serves it: main() looks at `end` so often */
#define MESSAGE_MAX 512

static struct {
    unsigned long loss, nak_ms, ttl;
    int source, hot_failover, verbose, ordered;
} opt = {.ordered = 1};

static const struct ex_option options[] = {
    {'c', NULL, EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'h', NULL, EX_HELP, NULL, NULL, "show this text"},
    {'H', NULL, EX_FLAG, &opt.hot_failover, NULL, "relay under hot failover numbers (-s), or receive them"},
    {'l', NULL, EX_UNSIGNED, &opt.loss, "PCT", "lose so many percent of what comes by LBT-RM or LBT-RU"},
    {'n', NULL, EX_UNSIGNED, &opt.nak_ms, "MS", "NAK generation interval"},
    {'o', NULL, EX_INT, &opt.ordered, "MODE", "ordered delivery of the receiver: 1 or 0 (1)"},
    {'s', NULL, EX_FLAG, &opt.source, NULL, "be a source of prices"},
    {'t', NULL, EX_UNSIGNED, &opt.ttl, "TTL", "TTL of topic resolution and multicast"},
    {'v', NULL, EX_COUNTER, &opt.verbose, NULL, "print more"},
    EX_END,
};

static const struct ex_program program = {"Sends simulated prices, or keeps a book of them.", "", 0, options};

static lbm_context_t *ctx;
static lbm_event_queue_t *evq;
static lbm_src_topic_attr_t *sattr;
static volatile sig_atomic_t end;

static void on_signal(int number)
{
    end = 1;
}

/* ---- what all roles need ---- */

static lbm_src_t *make_source(const char *name, bool hot_failover)
{
    lbm_topic_t *topic;
    lbm_src_t *src;
    EX_TRY(lbm_src_topic_alloc, &topic, ctx, name, sattr);
    if (hot_failover) {
        EX_TRY(lbm_hf_src_create, &src, ctx, topic, NULL, NULL, NULL);
    } else {
        EX_TRY(lbm_src_create, &src, ctx, topic, NULL, NULL, NULL);
    }
    return src;
}

static lbm_topic_t *look_up(const char *name)
{
    lbm_rcv_topic_attr_t *attr;
    lbm_topic_t *topic;
    char text[32];
    EX_TRY(lbm_rcv_topic_attr_create, &attr);
    EX_TRY(lbm_rcv_topic_attr_str_setopt, attr, "resolution_no_source_notification_threshold", NO_SOURCE_QUERIES);
    snprintf(text, sizeof text, "%d", opt.source ? 1 : opt.ordered);
    EX_TRY(lbm_rcv_topic_attr_str_setopt, attr, "ordered_delivery", text);
    if (opt.nak_ms > 0) {
        snprintf(text, sizeof text, "%lu", opt.nak_ms);
        EX_TRY(lbm_rcv_topic_attr_str_setopt, attr, "transport_lbtrm_nak_generation_interval", text);
        EX_TRY(lbm_rcv_topic_attr_str_setopt, attr, "transport_lbtru_nak_generation_interval", text);
    }
    EX_TRY(lbm_rcv_topic_lookup, &topic, ctx, name, attr);
    EX_TRY(lbm_rcv_topic_attr_delete, attr);
    return topic;
}

static lbm_rcv_t *make_receiver(const char *name, lbm_rcv_cb_proc proc)
{
    lbm_rcv_t *rcv;
    EX_TRY(lbm_rcv_create, &rcv, ctx, look_up(name), proc, NULL, evq);
    return rcv;
}

static int start_timer(lbm_timer_cb_proc proc, unsigned long ms)
{
    int id = lbm_schedule_timer(ctx, proc, NULL, evq, ms);
    if (id == LBM_FAILURE) {
        ex_fail("lbm_schedule_timer");
    }
    return id;
}

static int start_recurring(lbm_timer_cb_proc proc, unsigned long ms)
{
    int id = lbm_schedule_timer_recurring(ctx, proc, NULL, evq, ms);
    if (id == LBM_FAILURE) {
        ex_fail("lbm_schedule_timer_recurring");
    }
    return id;
}

static void send_price(lbm_src_t *src, const struct ex_price *price)
{
    char message[MESSAGE_MAX];
    size_t length = ex_price_put(price, message, sizeof message);
    EX_TRY(lbm_src_send, src, message, length, LBM_MSG_FLUSH | LBM_SRC_BLOCK);
}

static void unhandled(const char *where, const lbm_msg_t *msg)
{
    printf("Unhandled receiver event [%d] for %s from source [%s]\n", msg->type, where, msg->source);
}

static int tick(lbm_context_t *context, const void *clientd)
{
    return 0;
}

static void serve_once(void)
{
    lbm_event_dispatch(evq, TICK_MS);
    fflush(stdout);
}

static void serve_queue(void)
{
    while (!end) {
        serve_once();
    }
}

/* ---- the source ---- */

static struct {
    enum { SRC_READY, SQUELCH, RATE_LIMIT } state;
    lbm_src_t *src;
    struct ex_price newest; /* number, last, low and high */
    int pending;            /* requests that wait for the end of RATE_LIMIT */
    int received, sent, squelched, rate_limited;
} feed;

static int book_timer_action(lbm_context_t *context, const void *clientd);

static void send_book(void)
{
    struct ex_price book = feed.newest;
    book.type = EX_BOOK;
    printf("Sending book.\n");
    send_price(feed.src, &book);
    feed.sent++;
    feed.pending = 0;
    feed.state = SQUELCH;
    printf("Entering SQUELCH state\n");
    start_timer(book_timer_action, SQUELCH_MS);
}

static void print_requests(void)
{
    printf("Requests:  received %d, sent %d, squelched %d, rate limited %d\n", feed.received, feed.sent, feed.squelched,
           feed.rate_limited);
}

static int book_timer_action(lbm_context_t *context, const void *clientd)
{
    switch (feed.state) {
    case SQUELCH:
        printf("Entering RATE_LIMIT state\n");
        feed.state = RATE_LIMIT;
        start_timer(book_timer_action, RATE_LIMIT_MS);
        break;
    case RATE_LIMIT:
        printf("Exiting RATE_LIMIT state with %d requests pending\n", feed.pending);
        if (feed.pending > 0) {
            send_book();
        } else {
            printf("Entering SRC_READY state\n");
            feed.state = SRC_READY;
        }
        print_requests();
        break;
    case SRC_READY:
        printf("book_timer_action: In state %d.  Should not happen!\n", feed.state);
    }
    return 0;
}

static void book_req_action(const char *from)
{
    feed.received++;
    switch (feed.state) {
    case SRC_READY:
        send_book();
        break;
    case SQUELCH:
        feed.squelched++;
        printf("Squelched request from %s\n", from);
        break;
    case RATE_LIMIT:
        feed.rate_limited++;
        feed.pending++;
        printf("Rate limited request from %s\n", from);
        break;
    }
}

static void on_request(const lbm_msg_t *msg)
{
    struct ex_price request;
    if (opt.verbose > 1) {
        printf("Received %zu bytes on topic %s: '%.*s'\n", msg->len, msg->topic_name, (int)msg->len, msg->data);
    }
    if (!ex_price_parse(msg->data, msg->len, &request)) {
        return;
    }
    printf(request.type == EX_BOOK_FIRST ? "Initial book request from %s\n" : "Book refresh request from %s\n",
           msg->source);
    book_req_action(msg->source);
}

static int req_rcv_action(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    switch (msg->type) {
    case LBM_MSG_DATA:
        on_request(msg);
        break;
    case LBM_MSG_NO_SOURCE_NOTIFICATION:
        printf("No price receivers found.  Try running lbmprice\n");
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS:
        printf("Unrecoverable loss from %s\n", msg->source);
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS_BURST:
        printf("Unrecoverable burst loss from %s\n", msg->source);
        break;
    case LBM_MSG_BOS:
        printf("Beginning of stream from %s\n", msg->source);
        printf("New price receiver discovered: %s\n", msg->source);
        break;
    case LBM_MSG_EOS:
        printf("End of stream from %s\n", msg->source);
        break;
    default:
        unhandled("req_rcv_action", msg);
    }
    return 0;
}

/* A step up or down, and now and then none. */
static int price_timer_action(lbm_context_t *context, const void *clientd)
{
    struct ex_price *newest = &feed.newest;
    double price = newest->last + (double)(rand() % 3 - 1) * 0.125;
    newest->type = EX_PRICE;
    newest->number++;
    newest->last = price > 1 ? price : 1;
    newest->low = newest->last < newest->low ? newest->last : newest->low;
    newest->high = newest->last > newest->high ? newest->last : newest->high;
    send_price(feed.src, newest);
    return 0;
}

static void be_source(void)
{
    feed.newest = (struct ex_price){.last = 100, .low = 100, .high = 100};
    feed.src = make_source(TOPIC, false);
    lbm_rcv_t *requests = make_receiver(TOPIC_REQUEST, req_rcv_action);
    int timer = start_recurring(price_timer_action, PRICE_MS);
    printf("Entering SRC_READY state\n");
    serve_queue();
    EX_TRY(lbm_cancel_timer, ctx, timer, NULL);
    print_requests();
    EX_TRY(lbm_rcv_delete, requests);
    EX_TRY(lbm_src_delete, feed.src);
}

/* ---- the receiver ---- */

static struct {
    enum { INIT, WAITING, RCV_READY } state; /* no request sent; sent; answered */
    lbm_src_t *requests;
    lbm_hf_rcv_t *hf_rcv;
    struct ex_book book;
    int sources, timer; /* timer -1: none */
    bool begin_again;   /* the hot failover receiver: its last source is gone, and numbers may begin anew */
    double began, asked;
} desk = {.timer = -1};

static int req_timer_action(lbm_context_t *context, const void *clientd);

static void ask_for_book(enum ex_price_type type)
{
    const struct ex_price request = {.type = (uint8_t)type};
    desk.state = WAITING;
    printf("Entering state WAITING.  Sending book request.  Setting request timer.\n");
    desk.asked = desk.asked == 0 ? ex_now() : desk.asked;
    send_price(desk.requests, &request);
    desk.timer = start_timer(req_timer_action, REQUEST_MS);
}

static int req_timer_action(lbm_context_t *context, const void *clientd)
{
    desk.timer = -1;
    switch (desk.state) {
    case INIT:
        printf("Request timer expired in state INIT.\n");
        ask_for_book(EX_BOOK_FIRST);
        break;
    case WAITING:
        printf("Request timer expired in state WAITING.\n");
        ask_for_book(EX_BOOK_AGAIN);
        break;
    case RCV_READY:
        printf("req_timer_action: In state %d.  Should not happen!\n", desk.state);
    }
    return 0;
}

static void cancel_request(void)
{
    if (desk.timer != -1) {
        printf("Canceling pending request timer.\n");
        lbm_cancel_timer(ctx, desk.timer, NULL);
        desk.timer = -1;
    }
}

static void on_book(const struct ex_price *price)
{
    if (!ex_book_on_book(&desk.book, price) || desk.state == RCV_READY) {
        return;
    }
    if (desk.asked != 0) {
        printf("Book request was serviced in %7.3f ms.\n", (ex_now() - desk.asked) * 1e3);
    }
    desk.asked = 0;
    desk.state = RCV_READY;
    printf("Entering state RCV_READY.  Book %d received.\n", (int)price->number);
    cancel_request();
}

static void data_msg_action(const lbm_msg_t *msg)
{
    struct ex_price price;
    if (!ex_price_parse(msg->data, msg->len, &price)) {
        return;
    }
    if (price.type == EX_PRICE) {
        ex_book_on_price(&desk.book, &price);
    } else if (price.type == EX_BOOK) {
        on_book(&price);
    }
}

static void on_loss(const char *text)
{
    printf("%s", text);
    ex_book_invalidate(&desk.book);
    if (desk.state == RCV_READY) {
        ask_for_book(EX_BOOK_AGAIN);
    }
}

static void ask_soon(void)
{
    if (desk.state == INIT && desk.timer == -1) {
        int delay = rand() % DELAY_MS + 1;
        printf("Delaying initial book request by %d ms\n", delay);
        desk.timer = start_timer(req_timer_action, (unsigned long)delay);
    }
}

static void on_source(const lbm_msg_t *msg)
{
    desk.sources++;
    printf(opt.hot_failover ? "New HF price source discovered: %s\n" : "New price source discovered: %s\n",
           msg->source);
    printf("Source was discovered in %7.3f ms.\n", (ex_now() - desk.began) * 1e3);
    printf(desk.sources == 1 ? "Found our first source.\n" : "Found a source.\n");
    if (opt.hot_failover) {
        printf("Now know of %d HF source%s.\n", desk.sources, desk.sources == 1 ? "" : "s");
    }
    ask_soon();
}

/* What the numbers meant is over. */
static void begin_anew(void)
{
    cancel_request();
    memset(&desk.book, 0, sizeof desk.book);
    desk.state = INIT;
    desk.asked = 0;
    desk.began = ex_now();
}

/* A relay has found that the source was started again, while others still relay the run before. */
static void on_reset(const lbm_msg_t *msg)
{
    printf("The source behind %s has begun anew with msg %d.\n", msg->source, (int)msg->sequence_number);
    begin_anew();
    ask_soon();
}

static void on_source_gone(const lbm_msg_t *msg)
{
    desk.sources--;
    printf("End of transport session from %s\nLost a source.\n", msg->source);
    if (desk.sources > 0) {
        printf("Still have %d source%s left.\n", desk.sources, desk.sources == 1 ? "" : "s");
        return;
    }
    desk.begin_again = opt.hot_failover != 0;
    begin_anew();
}

static int data_rcv_event_action(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    switch (msg->type) {
    case LBM_MSG_DATA:
        data_msg_action(msg);
        break;
    case LBM_MSG_NO_SOURCE_NOTIFICATION:
        printf("No price sources found.  Try running lbmprice -s\n");
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS:
        on_loss("Unrecoverable loss.  Invalidating book.\n");
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS_BURST:
        on_loss("Unrecoverable burst loss.  Invalidating book.\n");
        break;
    case LBM_MSG_BOS:
        on_source(msg);
        break;
    case LBM_MSG_EOS:
        on_source_gone(msg);
        break;
    case LBM_MSG_HF_RESET:
        on_reset(msg);
        break;
    default:
        unhandled("data_rcv_event_action", msg);
    }
    return 0;
}

static void serve_hot_failover(void)
{
    EX_TRY(lbm_hf_rcv_create, &desk.hf_rcv, ctx, look_up(TOPIC_HF), data_rcv_event_action, NULL, evq);
    while (!end) {
        serve_once();
        if (desk.begin_again) {
            desk.begin_again = false;
            printf("Lost our last source.  Deleting receiver & recreating it.\n");
            EX_TRY(lbm_hf_rcv_delete, desk.hf_rcv);
            EX_TRY(lbm_hf_rcv_create, &desk.hf_rcv, ctx, look_up(TOPIC_HF), data_rcv_event_action, NULL, evq);
        }
    }
    EX_TRY(lbm_hf_rcv_delete, desk.hf_rcv);
}

static void be_receiver(void)
{
    desk.requests = make_source(TOPIC_REQUEST, false);
    desk.began = ex_now();
    if (opt.hot_failover) {
        serve_hot_failover();
    } else {
        lbm_rcv_t *rcv = make_receiver(TOPIC, data_rcv_event_action);
        serve_queue();
        EX_TRY(lbm_rcv_delete, rcv);
    }
    EX_TRY(lbm_src_delete, desk.requests);
}

/* ---- the relay ---- */

static lbm_src_t *relay_src; /* NULL: there is none: something was lost that others may have */

/* The run of the source that is relayed. */
static struct {
    bool fresh; /* nothing of the present session was relayed yet */
    bool known; /* `newest` is a number of this run, or while fresh of the run before */
    lbm_uint_t newest;
} run;

/* Receivers that still hear another relay of the run before would take lower numbers for copies. */
static void tell_of_new_run(lbm_uint_t first)
{
    lbm_src_send_ex_info_t info = {.flags = LBM_SRC_SEND_EX_FLAG_HF_32, .hf_sqn.u32 = first};
    printf("The source has begun anew with msg %d.\n", (int)first);
    if (lbm_hf_src_send_rcv_reset(relay_src, LBM_SRC_BLOCK, &info) != 0) {
        printf("data_relay_event_action: lbm_hf_src_send_rcv_reset() failed.  Trudging on.\n");
    }
}

static void relay(const lbm_msg_t *msg)
{
    if (relay_src == NULL) {
        printf("No HF source.  Msg %d not relayed\n", (int)msg->sequence_number);
        return;
    }
    if (run.fresh && run.known && (int32_t)(msg->sequence_number - run.newest) <= 0) {
        tell_of_new_run(msg->sequence_number);
    }
    run.fresh = false;
    run.known = true;
    run.newest = msg->sequence_number;
    if (opt.verbose) {
        printf("Relaying %d\n", (int)msg->sequence_number);
    }
    if (lbm_hf_src_send(relay_src, msg->data, msg->len, msg->sequence_number, LBM_MSG_FLUSH | LBM_SRC_BLOCK) != 0) {
        printf("data_relay_event_action: lbm_hf_src_send() failed.  Trudging on.\n");
    }
}

static void end_relaying(const char *why)
{
    printf("%s", why);
    if (relay_src != NULL) {
        printf("Deleting HF source.\n");
        EX_TRY(lbm_src_delete, relay_src);
        relay_src = NULL;
    }
}

/* Numbers are those of the one source, which every relay hears. */
static int data_relay_event_action(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    switch (msg->type) {
    case LBM_MSG_DATA:
        relay(msg);
        break;
    case LBM_MSG_NO_SOURCE_NOTIFICATION:
        printf("No price sources found.  Try running lbmprice -s\n");
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS:
        end_relaying("Unrecoverable loss.\n");
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS_BURST:
        end_relaying("Unrecoverable burst loss.\n");
        break;
    case LBM_MSG_BOS:
        printf("New price source discovered: %s\n", msg->source);
        run.fresh = true;
        if (relay_src == NULL) {
            relay_src = make_source(TOPIC_HF, true);
        }
        break;
    case LBM_MSG_EOS:
        printf("End of transport session from %s\n", msg->source);
        end_relaying("");
        break;
    default:
        unhandled("data_relay_event_action", msg);
    }
    return 0;
}

static void be_relay(void)
{
    lbm_rcv_t *rcv = make_receiver(TOPIC, data_relay_event_action);
    serve_queue();
    EX_TRY(lbm_rcv_delete, rcv);
    end_relaying("");
}

/* ---- the program ---- */

static void set_ttl(lbm_context_attr_t *cattr)
{
    char text[32];
    snprintf(text, sizeof text, "%lu", opt.ttl);
    EX_TRY(lbm_context_attr_str_setopt, cattr, "resolver_multicast_ttl", text);
}

int main(int argc, char **argv)
{
    lbm_context_attr_t *cattr;
    ex_parse(argc, argv, &program);
    if (opt.loss > 100 || opt.ttl > 255 || (opt.ordered != 0 && opt.ordered != 1)) {
        ex_usage(argv[0], &program, 1);
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    srand((unsigned)(ex_now() * 1e6));
    lbm_set_lbtrm_loss_rate((int)opt.loss);
    lbm_set_lbtru_loss_rate((int)opt.loss);
    EX_TRY(lbm_context_attr_create, &cattr);
    EX_TRY(lbm_src_topic_attr_create, &sattr);
    if (opt.ttl > 0) {
        set_ttl(cattr);
    }
    EX_TRY(lbm_event_queue_create, &evq, NULL, NULL, NULL);
    EX_TRY(lbm_context_create, &ctx, cattr, NULL, NULL);
    int ticks = start_recurring(tick, TICK_MS);
    (!opt.source ? be_receiver : opt.hot_failover ? be_relay : be_source)();
    EX_TRY(lbm_cancel_timer, ctx, ticks, NULL);
    EX_TRY(lbm_context_delete, ctx);
    EX_TRY(lbm_event_queue_delete, evq);
    EX_TRY(lbm_context_attr_delete, cattr);
    EX_TRY(lbm_src_topic_attr_delete, sattr);
    return 0;
}
