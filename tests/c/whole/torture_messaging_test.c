/* Torture of late join, requests and immediate messages: the n-th allocation fails, for every n. A call that fails for
 * it says so and works when it is repeated; what is lost inside is asked for again, reported, or comes when the
 * application repeats it. Nothing may crash, hang or leak. Contexts are made without faults (torture_test.c), and their
 * clock runs fast, so that nobody waits for retries. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <sys/socket.h>

#include "base/um_clock.h"
#include "um_test_net.h"
#include "um_test_rcv.h"
#include "um_test_torture.h"

#define BIG 100000 /* bytes: fragments, also over TCP */
#define BEFORE 8u  /* messages before the receiver is there */
#define TURNS 20000

static lbm_context_t *first, *second;
static long run; /* counts, for names that were not used before */

static bool bad(const char *what)
{
    fprintf(stderr, "fault %ld (%s): %s [%d %s]\n", fault.at, fault.what[0] != '\0' ? fault.what : "none", what,
            lbm_errnum(), lbm_errmsg());
    return false;
}

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            return bad(#condition " is not so");                                                                       \
        }                                                                                                              \
    } while (0)

/* A call has returned -1: for the fault, for the first time, and the error says so? */
static bool is_the_fault(const char *call)
{
    return atomic_load(&fault.hit) && fault.reported++ == 0 && lbm_errnum() == LBM_ENOMEM ? true : bad(call);
}

/* Repeats a call that failed because of the fault. */
#define TRY(call)                                                                                                      \
    while ((call) == -1) {                                                                                             \
        if (!is_the_fault(#call)) {                                                                                    \
            return false;                                                                                              \
        }                                                                                                              \
    }

/* ---- contexts ---- */

static lbm_context_t *open_context(void)
{
    lbm_context_attr_t *attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(attr, "operational_mode", "sequential"));
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_port_low", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_port_high", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_interface", "127.0.0.1/32"));
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtrm_source_port_low", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "transport_lbtrm_source_port_high", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "mim_address", "224.0.10.29"));
    return net_context_with(attr);
}

/* Always ahead of the real clock, by which calls outside the contexts count. */
static void turn(void)
{
    static uint64_t clock_us = 1000000, real_ns;
    lbm_context_t *const both[] = {first, second};
    uint64_t now_ns = um_clock_ns();
    clock_us += 2000 + (real_ns != 0 ? (now_ns - real_ns) / 1000 : 0);
    real_ns = now_ns;
    for (int i = 0; i < 2; i++) {
        lbm_process_events_info_t now = {
            .flags = LBM_PROC_EVENT_EX_FLAG_USER_TIME,
            .time_val = {.tv_sec = (long)(clock_us / 1000000), .tv_usec = (long)(clock_us % 1000000)}};
        MUST(lbm_context_process_events_ex(both[i], 0, &now));
    }
}

/* ---- every n ---- */

static bool run_once(bool (*scenario)(void), long n, bool *reached)
{
    um_object_counts_t left;
    int before = open_descriptors();
    first = open_context();
    second = open_context();
    run++;
    hang_guard(60);
    fault_arm(FAULT_MEMORY, n, 1, 0);
    bool good = scenario();
    *reached = fault_disarm();
    hang_guard(0);
    MUST(lbm_context_delete(second));
    MUST(lbm_context_delete(first));
    MUST(um_object_counts(&left));
    if (good && (left.messages != 0 || left.requests != 0 || left.responses != 0)) {
        good = bad("messages, requests or responses are left");
    }
    if (good && open_descriptors() != before) {
        good = bad("descriptors are left");
    }
    return good;
}

static int quiet(int level, const char *message, void *clientd)
{
    (void)level;
    (void)message;
    (void)clientd;
    return 0;
}

static bool torture(const char *name, bool (*scenario)(void))
{
    bool reached = true;
    torture_name = name;
    MUST(lbm_log(quiet, NULL));
    bool good = run_once(scenario, -1, &reached); /* what is made once per process; no fault */
    long n = 0;
    for (reached = true; good && reached; n++) {
        good = run_once(scenario, n, &reached);
    }
    MUST(lbm_log(NULL, NULL));
    printf("  %s: %ld allocations\n", name, n - 1);
    return good && n > 10 && !leaks_found();
}

/* ---- late join ---- */

static struct {
    int data, replayed, lost;
    long last; /* number of the newest message, -1: none */
    bool wrong;
} seen;

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    (void)clientd;
    uint32_t number;
    if (msg->type == LBM_MSG_UNRECOVERABLE_LOSS || msg->type == LBM_MSG_UNRECOVERABLE_LOSS_BURST) {
        seen.lost++;
    }
    if (msg->type == LBM_MSG_DATA) {
        memcpy(&number, msg->data, sizeof number);
        seen.wrong |= (long)number <= seen.last || ((long)number != seen.last + 1 && seen.last >= 0 && seen.lost == 0);
        seen.last = (long)number;
        seen.lost = 0;
        seen.data++;
        seen.replayed += (msg->flags & LBM_MSG_FLAG_RETRANSMIT) != 0;
    }
    return 0;
}

static bool send_number(lbm_src_t *src, uint32_t *number)
{
    static char data[BIG];
    size_t len = *number == BEFORE / 2 ? sizeof data : sizeof *number;
    memcpy(data, number, sizeof *number);
    TRY(lbm_src_send(src, data, len, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK));
    ++*number;
    return true;
}

static bool make_source(lbm_src_t **out)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    char name[32];
    snprintf(name, sizeof name, "torture.%ld", run);
    TRY(lbm_src_topic_attr_create(&attr));
    TRY(lbm_src_topic_attr_str_setopt(attr, "late_join", "1"));
    TRY(lbm_src_topic_attr_str_setopt(attr, "retransmit_retention_size_threshold", "1000000"));
    TRY(lbm_src_topic_attr_str_setopt(attr, "resolver_advertisement_maximum_initial_interval", "20"));
    TRY(lbm_src_topic_alloc(&topic, first, name, attr));
    TRY(lbm_src_topic_attr_delete(attr));
    TRY(lbm_src_create(out, first, topic, NULL, NULL, NULL));
    return true;
}

static bool make_receiver(lbm_rcv_t **out, lbm_rcv_cb_proc proc)
{
    static const char *const options[][2] = {{"late_join_info_request_interval", "20"},
                                             {"retransmit_request_interval", "20"},
                                             {"retransmit_request_message_timeout", "300"},
                                             {"resolver_query_maximum_initial_interval", "20"}};
    lbm_rcv_topic_attr_t *attr;
    lbm_topic_t *topic;
    char name[32];
    snprintf(name, sizeof name, "torture.%ld", run);
    TRY(lbm_rcv_topic_attr_create(&attr));
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        TRY(lbm_rcv_topic_attr_str_setopt(attr, options[i][0], options[i][1]));
    }
    TRY(lbm_rcv_topic_lookup(&topic, second, name, attr));
    TRY(lbm_rcv_topic_attr_delete(attr));
    TRY(lbm_rcv_create(out, second, topic, proc, NULL, NULL));
    return true;
}

static bool join_late(void)
{
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    uint32_t number = 0;
    memset(&seen, 0, sizeof seen);
    seen.last = -1;
    if (!make_source(&src)) {
        return false;
    }
    while (number < BEFORE) {
        if (!send_number(src, &number)) {
            return false;
        }
    }
    if (!make_receiver(&rcv, on_message)) {
        return false;
    }
    for (int i = 0; i < TURNS && seen.last < (long)BEFORE + 3; i++) {
        turn();
        if (um_rcv_ready(rcv) > 0 && number < 1000 && !send_number(src, &number)) {
            return false;
        }
    }
    EXPECT(seen.last >= (long)BEFORE + 3);
    EXPECT(!seen.wrong);
    EXPECT(atomic_load(&fault.hit) || seen.replayed >= (int)BEFORE);
    TRY(lbm_rcv_delete(rcv));
    TRY(lbm_src_delete(src));
    return true;
}

TEST(late_join_survives_every_failing_allocation)
{
    TEST_NEEDS_NET();
    CHECK(torture("late join", join_late));
}

/* ---- requests and responses ---- */

static int answers, immediates;

static int on_request(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    (void)clientd;
    if (msg->type == LBM_MSG_REQUEST && msg->response != NULL) { /* NULL: there was no memory for it */
        lbm_send_response(msg->response, "answer", 6, LBM_SRC_NONBLOCK);
    }
    return 0;
}

static int on_immediate(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    (void)ctx;
    immediates++;
    return on_request(NULL, msg, clientd);
}

static int on_answer(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    (void)req;
    (void)clientd;
    answers += msg->len == 6;
    return 0;
}

static bool request_by_source(void)
{
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    answers = 0;
    if (!make_source(&src) || !make_receiver(&rcv, on_request)) {
        return false;
    }
    for (int i = 0; i < TURNS && answers == 0; i++) { /* until one was not lost for want of memory */
        lbm_request_t *req;
        TRY(lbm_send_request(&req, src, "question", 8, on_answer, NULL, NULL, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK));
        for (int k = 0; k < 20; k++) {
            turn();
        }
        TRY(lbm_request_delete(req));
    }
    EXPECT(answers > 0);
    TRY(lbm_rcv_delete(rcv));
    TRY(lbm_src_delete(src));
    return true;
}

TEST(requests_survive_every_failing_allocation)
{
    TEST_NEEDS_NET();
    CHECK(torture("request and response", request_by_source));
}

/* ---- immediate messages ---- */

static bool unicast(void)
{
    char target[64];
    lbm_uint16_t port;
    size_t len = sizeof port;
    answers = immediates = 0;
    TRY(lbm_context_getopt(second, "request_tcp_port", &port, &len));
    snprintf(target, sizeof target, "TCP:127.0.0.1:%u", ntohs(port));
    TRY(lbm_context_rcv_immediate_msgs(second, on_immediate, NULL, NULL));
    TRY(lbm_context_rcv_immediate_topic_msgs(second, on_immediate, NULL, NULL));
    for (int i = 0; i < TURNS && (answers == 0 || immediates < 3); i++) {
        lbm_request_t *req;
        TRY(lbm_unicast_immediate_message(first, target, i % 2 == 0 ? NULL : "topic", "x", 1, LBM_SRC_NONBLOCK));
        TRY(lbm_unicast_immediate_request(&req, first, target, NULL, "question", 8, on_answer, NULL, NULL,
                                          LBM_SRC_NONBLOCK));
        for (int k = 0; k < 20; k++) {
            turn();
        }
        TRY(lbm_request_delete(req));
    }
    EXPECT(answers > 0 && immediates >= 3);
    return true;
}

TEST(unicast_immediate_messages_survive_every_failing_allocation)
{
    TEST_NEEDS_NET();
    CHECK(torture("unicast immediate messages", unicast));
}

static bool multicast(void)
{
    answers = immediates = 0;
    TRY(lbm_context_rcv_immediate_msgs(second, on_immediate, NULL, NULL));
    TRY(lbm_context_rcv_immediate_topic_msgs(second, on_immediate, NULL, NULL));
    for (int i = 0; i < TURNS && (answers == 0 || immediates < 3); i++) {
        lbm_request_t *req;
        TRY(lbm_multicast_immediate_message(first, i % 2 == 0 ? NULL : "topic", "x", 1, LBM_SRC_NONBLOCK));
        TRY(lbm_multicast_immediate_request(&req, first, NULL, "question", 8, on_answer, NULL, NULL, LBM_SRC_NONBLOCK));
        for (int k = 0; k < 20; k++) {
            turn();
        }
        TRY(lbm_request_delete(req));
    }
    EXPECT(answers > 0 && immediates >= 3);
    return true;
}

TEST(multicast_immediate_messages_survive_every_failing_allocation)
{
    TEST_NEEDS_NET();
    CHECK(torture("multicast immediate messages", multicast));
}
