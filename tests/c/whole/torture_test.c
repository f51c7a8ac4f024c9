/* Torture: scenarios in which the n-th allocation or system call fails, for every n where one thread does everything,
 * for sampled n with context threads. A failing call must say what failed and work when it is repeated; what fails
 * inside a context must be recovered from: the messages arrive in the end. Nothing may crash, hang or leak.
 * UM_TORTURE_FULL=1 takes more samples and more faults at a time; UM_TORTURE_TRACE=1 prints what each fault led to. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "base/um_clock.h"
#include "base/um_timer.h"
#include "config/um_config.h"
#include "core/um_context.h"
#include "resolver/um_lbmrd_engine.h"
#include "um_test_net.h"
#include "um_test_torture.h"
#include "wire/um_lbmr.h"

#define HANG_SECONDS 60 /* for one run of a scenario */
#define SAMPLES 30      /* per kind and scenario */
#define MESSAGES 20
#define BIG_MESSAGE 7000 /* fragments: the sources have datagrams of 2000 bytes */

/* In tests in which one thread does everything, and sequential contexts begin none: no race is possible. */
#if defined(__SANITIZE_THREAD__)
#define ONE_THREAD() TEST_SKIP("one thread: nothing for the thread sanitizer to see")
#else
#define ONE_THREAD() ((void)0)
#endif

/* What the scenarios set on their contexts; fixed for the time of a test. */
static struct {
    const char *mode;
    const char *unicast_daemon;
    const char *transport; /* NULL: TCP */
    bool wildcard, filtering, queue;
} with;

/* ---- how failures are judged ---- */

static char last_log[512]; /* fault.lock */

static int keep_log(int level, const char *message, void *clientd)
{
    pthread_mutex_lock(&fault.lock);
    if (atomic_load(&fault.hit) && last_log[0] == '\0' && level <= LBM_LOG_WARNING) {
        snprintf(last_log, sizeof last_log, "%s", message);
    }
    pthread_mutex_unlock(&fault.lock);
    return 0;
}

static bool full(void)
{
    const char *text = getenv("UM_TORTURE_FULL");
    return text != NULL && strcmp(text, "1") == 0;
}

static bool tracing(void)
{
    return getenv("UM_TORTURE_TRACE") != NULL;
}

static bool bad(const char *call, const char *why)
{
    fprintf(stderr, "%s, fault %ld (%s: %s): %s: %s [%d %s]\n", torture_name, fault.at,
            fault.what[0] != '\0' ? fault.what : "none", strerror(fault.errors[0]), call, why, lbm_errnum(),
            lbm_errmsg());
    return false;
}

static bool tells_the_reason(void)
{
    if (fault.kind == FAULT_MEMORY) {
        return lbm_errnum() == LBM_ENOMEM && strstr(lbm_errmsg(), "memory") != NULL;
    }
    bool told = false;
    pthread_mutex_lock(&fault.lock);
    for (int i = 0; i < fault.width; i++) {
        told |= fault.errors[i] != 0 && strstr(lbm_errmsg(), strerror(fault.errors[i])) != NULL;
    }
    pthread_mutex_unlock(&fault.lock);
    return told && lbm_errnum() == LBM_EOS;
}

/* A call has returned -1: is that a fault not seen before, and does the error say so? */
static bool failure_is_fine(const char *call)
{
    if (!atomic_load(&fault.hit) || fault.reported++ >= fault.width) {
        return bad(call, "fails without a fault");
    }
    if (!tells_the_reason()) {
        return bad(call, "the error does not tell the reason");
    }
    if (tracing()) {
        printf("  %ld %s: %s: %s\n", fault.at, fault.what, call, lbm_errmsg());
    }
    return true;
}

/* Repeats a call that failed because of the fault. */
#define TRY(call)                                                                                                      \
    while ((call) == -1) {                                                                                             \
        if (!failure_is_fine(#call)) {                                                                                 \
            return false;                                                                                              \
        }                                                                                                              \
    }

/* Without faults. */
#define CHECK_DONE(call)                                                                                               \
    do {                                                                                                               \
        if ((call) == -1) {                                                                                            \
            TEST_FAIL("%s: %s", #call, lbm_errmsg());                                                                  \
        }                                                                                                              \
    } while (0)

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            return bad(#condition, "is not so");                                                                       \
        }                                                                                                              \
    } while (0)

/* One run with one fault. *reached: there was an n-th candidate. */
static bool run_once(bool (*scenario)(void), enum fault_kind kind, long n, int width, int flavour, bool *reached)
{
    int before = open_descriptors();
    last_log[0] = '\0';
    hang_guard(HANG_SECONDS);
    uint64_t began_ns = um_clock_ns();
    fault_arm(kind, n, width, flavour);
    bool good = scenario();
    *reached = fault_disarm();
    hang_guard(0);
    int after = open_descriptors();
    if (tracing() && *reached && fault.reported == 0) {
        printf("  %ld %s: recovered in %u ms; log: %s\n", n, fault.what,
               (unsigned)((um_clock_ns() - began_ns) / UM_NS_PER_MS), last_log);
    }
    if (good && after != before) {
        fprintf(stderr, "%s, fault %ld (%s): %d descriptors became %d\n", torture_name, n, fault.what, before, after);
        good = false;
    }
    return good;
}

static bool torture(const char *name, bool (*scenario)(void), enum fault_kind kind, int width, int flavour)
{
    torture_name = name;
    lbm_log(keep_log, NULL);
    bool reached = true;
    bool good = run_once(scenario, kind, -1, width, flavour, &reached); /* what is made once per process; no fault */
    int started = (int)(um_clock_ns() / UM_NS_PER_MS);
    long n = 0;
    for (reached = true; good && reached; n++) {
        good = run_once(scenario, kind, n, width, flavour, &reached);
    }
    bool ignored;
    good = good && run_once(scenario, kind, -1, width, flavour, &ignored);
    if (leaks_found()) {
        fprintf(stderr, "%s: leaks\n", name);
        good = false;
    }
    printf("  %s: %ld %s, %d at a time, %d ms\n", name, n - 1, kind == FAULT_MEMORY ? "allocations" : "system calls",
           width, (int)(um_clock_ns() / UM_NS_PER_MS) - started);
    return good;
}

/* Every allocation and every system call, alone with each kind of error, and together with the next. */
static bool torture_all(const char *name, bool (*scenario)(void))
{
    bool good = true;
    for (int width = 1; good && width <= (full() ? FAULT_WIDTH_MAX : 2); width++) {
        good = torture(name, scenario, FAULT_MEMORY, width, 0);
        for (int flavour = 0; good && flavour < (width == 1 || full() ? 3 : 1); flavour++) {
            good = torture(name, scenario, FAULT_SYSTEM, width, flavour);
        }
    }
    return good;
}

/* ---- attribute objects and configuration ---- */

static const char XML[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\" ?>\n<um-configuration version=\"1.0\"><templates>"
    "<template name=\"t\"><options type=\"source\"><option name=\"transport\" default-value=\"tcp\"/></options>"
    "</template></templates><applications><application name=\"app\" template=\"t\"><contexts><context name=\"c\">"
    "<options type=\"context\"><option name=\"request_tcp_port_low\" default-value=\"14500\"/></options>"
    "<sources><topic topicname=\"a\"/></sources>"
    "<receivers><topic pattern=\"^b\"/></receivers></context></contexts></application></applications>"
    "</um-configuration>";

static char config_path[] = "/tmp/um_tortureXXXXXX";

static void write_config_file(void)
{
    static const char text[] = "# a file\ncontext request_tcp_port_low 14400\nsource transport tcp\n"
                               "receiver ordered_delivery 1\nwildcard_receiver pattern_type pcre\n"
                               "event_queue queue_size_warning 100\n";
    int fd = mkstemp(config_path);
    if (fd < 0 || write(fd, text, sizeof text - 1) != (ssize_t)(sizeof text - 1)) {
        abort();
    }
    close(fd);
}

static bool context_attributes(void)
{
    lbm_context_attr_t *attr, *copy;
    char value[256];
    size_t len = sizeof value;
    TRY(lbm_context_attr_create(&attr));
    TRY(lbm_context_attr_str_setopt(attr, "context_name", "torture"));
    TRY(lbm_context_attr_str_setopt(attr, "resolver_unicast_daemon", "127.0.0.1:15380"));
    TRY(lbm_context_attr_str_setopt(attr, "resolver_unicast_daemon", "127.0.0.2:15380"));
    TRY(lbm_context_attr_str_setopt(attr, "default_interface", "127.0.0.1/32"));
    TRY(lbm_context_attr_dup(&copy, attr));
    TRY(lbm_context_attr_delete(attr));
    TRY(lbm_context_attr_str_getopt(copy, "context_name", value, &len));
    EXPECT(strcmp(value, "torture") == 0);
    int size = lbm_context_attr_option_size();
    static lbm_config_option_t options[1024];
    EXPECT(size > 0 && size <= 1024);
    TRY(lbm_context_attr_dump(copy, &size, options));
    TRY(lbm_context_attr_delete(copy));
    return true;
}

static bool other_attributes(void)
{
    lbm_src_topic_attr_t *src;
    lbm_rcv_topic_attr_t *rcv;
    lbm_wildcard_rcv_attr_t *wildcard;
    lbm_event_queue_attr_t *evq;
    TRY(lbm_src_topic_attr_create(&src));
    TRY(lbm_src_topic_attr_str_setopt(src, "transport_tcp_interface", "127.0.0.1/32"));
    TRY(lbm_src_topic_attr_delete(src));
    TRY(lbm_rcv_topic_attr_create_default(&rcv));
    TRY(lbm_rcv_topic_attr_str_setopt(rcv, "ordered_delivery", "0"));
    TRY(lbm_rcv_topic_attr_delete(rcv));
    TRY(lbm_wildcard_rcv_attr_create(&wildcard));
    TRY(lbm_wildcard_rcv_attr_str_setopt(wildcard, "pattern_type", "pcre"));
    TRY(lbm_wildcard_rcv_attr_delete(wildcard));
    TRY(lbm_event_queue_attr_create(&evq));
    TRY(lbm_event_queue_attr_str_setopt(evq, "queue_size_warning", "5"));
    TRY(lbm_event_queue_attr_delete(evq));
    return true;
}

static bool configuration(void)
{
    lbm_context_attr_t *attr;
    lbm_src_topic_attr_t *src;
    lbm_uint16_t port;
    size_t len = sizeof port;
    um_config_reset();
    TRY(lbm_config(config_path));
    TRY(lbm_context_attr_create(&attr));
    TRY(lbm_context_attr_getopt(attr, "request_tcp_port_low", &port, &len));
    EXPECT(port == 14400);
    TRY(lbm_context_attr_delete(attr));
    TRY(lbm_config_xml_string(XML, "app"));
    TRY(lbm_context_attr_create_from_xml(&attr, "c"));
    TRY(lbm_context_attr_getopt(attr, "request_tcp_port_low", &port, &len));
    EXPECT(port == 14500);
    TRY(lbm_context_attr_delete(attr));
    TRY(lbm_src_topic_attr_create(&src));
    TRY(lbm_src_topic_attr_set_from_xml(src, "c", "a"));
    TRY(lbm_src_topic_attr_delete(src));
    um_config_reset();
    return context_attributes() && other_attributes();
}

TEST(attributes_and_configuration_survive_every_fault)
{
    ONE_THREAD();
    write_config_file();
    CHECK(torture_all("configuration", configuration));
    unlink(config_path);
    um_config_reset();
}

/* ---- contexts ---- */

static bool make_context_attr(lbm_context_attr_t **out)
{
    static const char *const options[][2] = {{"default_interface", "127.0.0.1/32"},
                                             {"resolver_multicast_interface", "127.0.0.1/32"},
                                             {"request_tcp_port_low", "0"},
                                             {"request_tcp_port_high", "0"},
                                             {"transport_tcp_port_low", "0"},
                                             {"transport_tcp_port_high", "0"},
                                             {"transport_tcp_datagram_max_size", "2000"},
                                             {"transport_lbtrm_datagram_max_size", "2000"},
                                             {"transport_lbtru_datagram_max_size", "2000"}};
    lbm_context_attr_t *attr;
    TRY(lbm_context_attr_create(&attr));
    TRY(lbm_context_attr_str_setopt(attr, "operational_mode", with.mode));
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        TRY(lbm_context_attr_str_setopt(attr, options[i][0], options[i][1]));
    }
    if (with.unicast_daemon != NULL) {
        TRY(lbm_context_attr_str_setopt(attr, "resolver_unicast_daemon", with.unicast_daemon));
    }
    *out = attr;
    return true;
}

static bool make_context(lbm_context_t **out)
{
    lbm_context_attr_t *attr;
    if (!make_context_attr(&attr)) {
        return false;
    }
    TRY(lbm_context_create(out, attr, NULL, NULL));
    TRY(lbm_context_attr_delete(attr));
    return true;
}

static bool context_cycle(void)
{
    lbm_context_t *ctx;
    if (!make_context(&ctx)) {
        return false;
    }
    for (int i = 0; i < 3 && strcmp(with.mode, "sequential") == 0; i++) {
        TRY(lbm_context_process_events(ctx, 1));
    }
    TRY(lbm_context_delete(ctx));
    return true;
}

TEST(contexts_survive_every_fault)
{
    ONE_THREAD();
    TEST_NEEDS_NET();
    memset(&with, 0, sizeof with);
    with.mode = "sequential";
    CHECK(torture_all("context with multicast", context_cycle));
    with.unicast_daemon = "127.0.0.1:15391";
    CHECK(torture_all("context with unicast", context_cycle));
}

/* ---- sources and receivers ---- */

/* What the receiver saw. */
static struct {
    pthread_mutex_t lock;
    int data, big, bos, eos, lost;
    long last; /* number in the newest message of the session, -1 before the first */
    char wrong[128];
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void on_data(const lbm_msg_t *msg)
{
    uint32_t number = 0;
    if (msg->len != sizeof number && msg->len != BIG_MESSAGE) {
        snprintf(seen.wrong, sizeof seen.wrong, "a message of %zu bytes", msg->len);
        return;
    }
    memcpy(&number, msg->data, sizeof number);
    for (size_t i = sizeof number; i < msg->len; i++) {
        if (msg->data[i] != (char)(number + i)) {
            snprintf(seen.wrong, sizeof seen.wrong, "byte %zu of message %u", i, number);
            return;
        }
    }
    bool told = seen.lost != 0 ||
                (with.queue && fault.kind == FAULT_MEMORY && atomic_load(&fault.hit)); /* logged and counted */
    if (seen.last >= 0 && (long)number != seen.last + 1 && ((long)number <= seen.last || !told)) {
        snprintf(seen.wrong, sizeof seen.wrong, "%u after %ld, %d reported lost", number, seen.last, seen.lost);
    }
    seen.last = number;
    seen.lost = 0;
    seen.data++;
    seen.big += msg->len == BIG_MESSAGE;
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    pthread_mutex_lock(&seen.lock);
    switch (msg->type) {
    case LBM_MSG_DATA:
        on_data(msg);
        break;
    case LBM_MSG_BOS:
        seen.bos++;
        seen.last = -1;
        break;
    case LBM_MSG_EOS:
        seen.eos++;
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS:
    case LBM_MSG_UNRECOVERABLE_LOSS_BURST:
        seen.lost++;
        break;
    default:
        break;
    }
    pthread_mutex_unlock(&seen.lock);
    return 0;
}

static bool connected(void)
{
    pthread_mutex_lock(&seen.lock);
    bool yes = seen.bos > 0;
    pthread_mutex_unlock(&seen.lock);
    return yes;
}

static bool enough_seen(void)
{
    pthread_mutex_lock(&seen.lock);
    bool enough = (seen.data >= MESSAGES && seen.big >= 1) || seen.wrong[0] != '\0';
    pthread_mutex_unlock(&seen.lock);
    return enough;
}

static bool make_source(lbm_context_t *ctx, lbm_src_t **out)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    TRY(lbm_src_topic_attr_create(&attr));
    TRY(lbm_src_topic_attr_str_setopt(attr, "resolver_advertisement_maximum_initial_interval", "20"));
    if (with.transport != NULL) {
        TRY(lbm_src_topic_attr_str_setopt(attr, "transport", with.transport));
        TRY(lbm_src_topic_attr_str_setopt(attr, "transport_lbtipc_transmission_window_size", "131072"));
    }
    if (with.filtering) {
        TRY(lbm_src_topic_attr_str_setopt(attr, "transport_source_side_filtering_behavior", "inclusion"));
    }
    TRY(lbm_src_topic_alloc(&topic, ctx, "torture.topic", attr));
    TRY(lbm_src_topic_attr_delete(attr));
    TRY(lbm_src_create(out, ctx, topic, NULL, NULL, NULL));
    return true;
}

/* Exactly one of the two is made. */
struct receiver {
    lbm_rcv_t *plain;
    lbm_wildcard_rcv_t *wildcard;
};

static bool make_receiver(lbm_context_t *ctx, lbm_event_queue_t *evq, struct receiver *out)
{
    memset(out, 0, sizeof *out);
    if (with.wildcard) {
        TRY(lbm_wildcard_rcv_create(&out->wildcard, ctx, "^torture\\.", NULL, NULL, on_message, NULL, evq));
        return true;
    }
    lbm_rcv_topic_attr_t *attr;
    lbm_topic_t *topic;
    TRY(lbm_rcv_topic_attr_create(&attr));
    TRY(lbm_rcv_topic_attr_str_setopt(attr, "resolver_query_maximum_initial_interval", "20"));
    TRY(lbm_rcv_topic_lookup(&topic, ctx, "torture.topic", attr));
    TRY(lbm_rcv_topic_attr_delete(attr));
    TRY(lbm_rcv_create(&out->plain, ctx, topic, on_message, NULL, evq));
    return true;
}

static bool delete_receiver(struct receiver *rcv)
{
    if (rcv->wildcard != NULL) {
        TRY(lbm_wildcard_rcv_delete(rcv->wildcard));
    } else {
        TRY(lbm_rcv_delete(rcv->plain));
    }
    return true;
}

/* Sends one message; what would have to wait is left out. */
static bool send_next(lbm_src_t *src, uint32_t *number)
{
    char data[BIG_MESSAGE];
    size_t len = *number % 7 == 6 ? sizeof data : sizeof *number;
    for (size_t i = sizeof *number; i < len; i++) {
        data[i] = (char)(*number + i);
    }
    memcpy(data, number, sizeof *number);
    int rc = lbm_src_send(src, data, len, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK);
    if (rc == -1 && lbm_errnum() == LBM_EWOULDBLOCK) {
        return true;
    }
    if (rc == -1) {
        return failure_is_fine("lbm_src_send");
    }
    ++*number;
    return true;
}

/* A sequential context gets a clock that runs fast, so that nobody waits for retries. */
static bool turn(lbm_context_t *ctx)
{
    static uint64_t clock_us = 1000000;
    if (strcmp(with.mode, "sequential") != 0) {
        fault_suspended = true;
        usleep(200);
        fault_suspended = false;
        return true;
    }
    clock_us += 2000;
    lbm_process_events_info_t now = {
        .flags = LBM_PROC_EVENT_EX_FLAG_USER_TIME,
        .time_val = {.tv_sec = (long)(clock_us / 1000000), .tv_usec = (long)(clock_us % 1000000)}};
    TRY(lbm_context_process_events_ex(ctx, 0, &now));
    return true;
}

static bool dispatch(lbm_event_queue_t *evq)
{
    if (evq != NULL) {
        TRY(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL));
    }
    return true;
}

static bool messages_flow(lbm_src_t *src, lbm_context_t *pub, lbm_context_t *sub, lbm_event_queue_t *evq)
{
    uint64_t until = um_clock_ns() + HANG_SECONDS / 2 * UM_NS_PER_SEC;
    uint32_t number = 0;
    while (!enough_seen()) {
        for (int i = 0; i < (connected() ? 5 : 1); i++) { /* the unheard ones wait for the receiver */
            if (!send_next(src, &number)) {
                return false;
            }
        }
        if (!turn(pub) || !turn(sub) || !dispatch(evq)) {
            return false;
        }
        if (um_clock_ns() > until) {
            return bad(last_log, "messages do not arrive");
        }
    }
    pthread_mutex_lock(&seen.lock);
    bool right = seen.wrong[0] == '\0' || bad(seen.wrong, "is wrong");
    pthread_mutex_unlock(&seen.lock);
    return right;
}

static void forget_seen(void)
{
    pthread_mutex_lock(&seen.lock);
    seen.data = seen.big = seen.bos = seen.eos = seen.lost = 0;
    seen.last = -1;
    seen.wrong[0] = '\0';
    pthread_mutex_unlock(&seen.lock);
}

static bool publish_and_subscribe(void)
{
    lbm_context_t *pub, *sub;
    lbm_event_queue_t *evq = NULL;
    lbm_src_t *src;
    struct receiver rcv;
    forget_seen();
    if (with.queue) {
        TRY(lbm_event_queue_create(&evq, NULL, NULL, NULL));
    }
    if (!make_context(&pub) || !make_context(&sub) || !make_receiver(sub, evq, &rcv) || !make_source(pub, &src) ||
        !messages_flow(src, pub, sub, evq)) {
        return false;
    }
    TRY(lbm_src_delete(src));
    if (!turn(pub) || !turn(sub) || !delete_receiver(&rcv)) {
        return false;
    }
    TRY(lbm_context_delete(sub));
    TRY(lbm_context_delete(pub));
    if (evq != NULL) {
        TRY(lbm_event_queue_delete(evq));
    }
    return true;
}

TEST(publishing_and_subscribing_survives_every_fault)
{
    ONE_THREAD();
    TEST_NEEDS_NET();
    memset(&with, 0, sizeof with);
    with.mode = "sequential";
    CHECK(torture_all("receiver", publish_and_subscribe));
}

TEST(wildcard_receiver_with_filtering_and_event_queue_survives_every_fault)
{
    ONE_THREAD();
    TEST_NEEDS_NET();
    memset(&with, 0, sizeof with);
    with.mode = "sequential";
    with.wildcard = with.filtering = with.queue = true;
    CHECK(torture_all("wildcard receiver with filtering and event queue", publish_and_subscribe));
}

TEST(lbtrm_survives_every_fault)
{
    ONE_THREAD();
    TEST_NEEDS_NET();
    memset(&with, 0, sizeof with);
    with.mode = "sequential";
    with.transport = "lbtrm";
    CHECK(torture_all("receiver over LBT-RM", publish_and_subscribe));
}

TEST(lbtru_survives_every_fault)
{
    ONE_THREAD();
    TEST_NEEDS_NET();
    memset(&with, 0, sizeof with);
    with.mode = "sequential";
    with.transport = "lbtru";
    CHECK(torture_all("receiver over LBT-RU", publish_and_subscribe));
    with.filtering = true;
    CHECK(torture("receiver over LBT-RU with filtering", publish_and_subscribe, FAULT_MEMORY, 1, 0));
}

/* ---- with context threads: sampled faults ---- */

static long count_candidates(bool (*scenario)(void), enum fault_kind kind)
{
    bool reached;
    return run_once(scenario, kind, -1, 1, 0, &reached) ? atomic_load(&fault.seen) : -1;
}

static bool torture_samples(const char *name, bool (*scenario)(void), enum fault_kind kind, int samples)
{
    torture_name = name;
    lbm_log(keep_log, NULL);
    long candidates = count_candidates(scenario, kind);
    bool good = candidates > 0, reached;
    unsigned seed = 20; /* of a plain generator, so that a run repeats */
    for (int i = 0; i < samples && good; i++) {
        seed = seed * 1664525u + 1013904223u;
        good = run_once(scenario, kind, (long)((seed >> 8) % (unsigned long)candidates), 1 + i % 2, i % 3, &reached);
    }
    good = good && run_once(scenario, kind, -1, 1, 0, &reached);
    if (leaks_found()) {
        fprintf(stderr, "%s: leaks\n", name);
        good = false;
    }
    return good;
}

TEST(lbtipc_survives_every_fault)
{
    TEST_NEEDS_NET();
    memset(&with, 0, sizeof with);
    with.mode = "sequential";
    with.transport = "lbtipc";
    CHECK(torture_all("receiver over LBT-IPC", publish_and_subscribe));
}

TEST(context_threads_survive_sampled_faults)
{
    TEST_NEEDS_NET();
    memset(&with, 0, sizeof with);
    with.mode = "embedded";
    int samples = full() ? 20 * SAMPLES : SAMPLES;
    CHECK(torture_samples("embedded receiver", publish_and_subscribe, FAULT_MEMORY, samples));
    CHECK(torture_samples("embedded receiver", publish_and_subscribe, FAULT_SYSTEM, samples));
    with.filtering = with.queue = true;
    CHECK(torture_samples("embedded filtering", publish_and_subscribe, FAULT_MEMORY, samples));
    CHECK(torture_samples("embedded filtering", publish_and_subscribe, FAULT_SYSTEM, samples));
    with.filtering = with.queue = false;
    with.transport = "lbtrm";
    CHECK(torture_samples("embedded LBT-RM", publish_and_subscribe, FAULT_MEMORY, samples / 2));
    CHECK(torture_samples("embedded LBT-RM", publish_and_subscribe, FAULT_SYSTEM, samples / 2));
    with.transport = "lbtru";
    CHECK(torture_samples("embedded LBT-RU", publish_and_subscribe, FAULT_MEMORY, samples / 2));
    CHECK(torture_samples("embedded LBT-RU", publish_and_subscribe, FAULT_SYSTEM, samples / 2));
}

/* ---- event queue, timers, descriptors ---- */

static int timers_fired, fds_ready;

static int on_timer(lbm_context_t *ctx, const void *clientd)
{
    timers_fired++;
    return 0;
}

static int on_fd(lbm_context_t *ctx, lbm_handle_t handle, lbm_ulong_t ev, void *clientd)
{
    char byte;
    fault_suspended = true;
    fds_ready += recv(handle, &byte, 1, MSG_DONTWAIT) == 1;
    fault_suspended = false;
    return 0;
}

static int on_queue(lbm_event_queue_t *evq, int event, size_t size, lbm_ulong_t delay_us, void *clientd)
{
    return 0;
}

static bool use_timers_and_descriptors(lbm_context_t *ctx, lbm_event_queue_t *evq, int pair[2])
{
    int recurring, cancelled;
    TRY(lbm_schedule_timer(ctx, on_timer, NULL, NULL, 1));
    TRY(lbm_schedule_timer(ctx, on_timer, NULL, evq, 1));
    TRY(recurring = lbm_schedule_timer_recurring(ctx, on_timer, NULL, evq, 1));
    TRY(cancelled = lbm_schedule_timer(ctx, on_timer, NULL, NULL, 60000));
    TRY(lbm_register_fd(ctx, pair[0], on_fd, NULL, NULL, LBM_FD_EVENT_READ));
    TRY(lbm_register_fd(ctx, pair[1], on_fd, NULL, evq, LBM_FD_EVENT_READ));
    uint64_t until = um_clock_ns() + HANG_SECONDS / 2 * UM_NS_PER_SEC;
    while (timers_fired < 5 || fds_ready < 2) {
        TRY(lbm_context_process_events(ctx, 1));
        TRY(lbm_event_dispatch(evq, LBM_EVENT_QUEUE_POLL));
        EXPECT(um_clock_ns() < until);
    }
    TRY(lbm_cancel_timer(ctx, recurring, NULL));
    TRY(lbm_cancel_timer(ctx, cancelled, NULL));
    TRY(lbm_cancel_fd(ctx, pair[0], LBM_FD_EVENT_READ));
    TRY(lbm_cancel_fd(ctx, pair[1], LBM_FD_EVENT_READ));
    TRY(lbm_event_dispatch_unblock(evq));
    TRY(lbm_event_dispatch(evq, 1000));
    return true;
}

static bool timers_and_descriptors(void)
{
    lbm_context_t *ctx;
    lbm_context_attr_t *attr;
    lbm_event_queue_t *evq;
    int pair[2];
    timers_fired = fds_ready = 0;
    fault_suspended = true;
    bool ready =
        socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 && send(pair[0], "a", 1, 0) == 1 && send(pair[1], "b", 1, 0) == 1;
    fault_suspended = false;
    EXPECT(ready);
    if (!make_context_attr(&attr)) {
        return false;
    }
    TRY(lbm_event_queue_create(&evq, on_queue, NULL, NULL));
    TRY(lbm_context_reactor_only_create(&ctx, attr));
    TRY(lbm_context_attr_delete(attr));
    if (!use_timers_and_descriptors(ctx, evq, pair)) {
        return false;
    }
    TRY(lbm_context_delete(ctx));
    TRY(lbm_event_queue_delete(evq));
    close(pair[0]);
    close(pair[1]);
    return true;
}

TEST(event_queues_timers_and_descriptors_survive_every_fault)
{
    ONE_THREAD();
    memset(&with, 0, sizeof with);
    with.mode = "sequential";
    CHECK(torture_all("timers and descriptors", timers_and_descriptors));
}

/* ---- lbmrd ---- */

static int lbmrd_sent;

static void lbmrd_send(void *arg, const struct um_lbmrd_peer *peers, size_t count, const uint8_t *data, size_t len,
                       int *errors)
{
    memset(errors, 0, count * sizeof *errors);
    lbmrd_sent += (int)count;
}

/* A client that could not be kept is one that comes again with its next keepalive. */
static bool lbmrd_engine(void)
{
    struct um_lbmrd_config config = {.ttl_ns = 2 * UM_NS_PER_SEC,
                                     .activity_ns = UM_NS_PER_SEC,
                                     .max_clients = 100,
                                     .max_address_clients = 100,
                                     .output_rate = UM_LBMRD_OUTPUT_RATE,
                                     .output_burst = UM_LBMRD_OUTPUT_BURST,
                                     .max_output_rate = UM_LBMRD_MAX_OUTPUT_RATE,
                                     .start_burst = UM_LBMRD_START_BURST,
                                     .own_ip = inet_addr("10.0.0.1"),
                                     .own_port = 15380,
                                     .send = lbmrd_send};
    struct um_lbmrd *engine = um_lbmrd_create(&config, 0);
    if (engine == NULL) {
        EXPECT(atomic_load(&fault.hit));
        engine = um_lbmrd_create(&config, 0);
    }
    EXPECT(engine != NULL);
    lbmrd_sent = 0;
    for (int round = 0; round < 2; round++) {
        for (uint16_t port = 1; port <= 50; port++) {
            uint8_t keepalive[4] = {0x02, 0, 0, 0};
            um_lbmrd_on_datagram(engine, 1, keepalive, sizeof keepalive, inet_addr("10.0.0.2"), port);
        }
    }
    EXPECT(um_lbmrd_clients(engine) == 50);
    uint8_t query[64];
    struct um_lbmr_builder builder;
    um_lbmr_begin(&builder, query, sizeof query, sizeof query, UM_LBMR_NORMAL, NULL, 0);
    um_lbmr_add_tqr(&builder, "orders", 6);
    size_t len = um_lbmr_finish(&builder);
    int before = lbmrd_sent;
    um_lbmrd_on_datagram(engine, 2, query, len, inet_addr("10.0.0.2"), 1);
    EXPECT(lbmrd_sent - before >= 49);
    um_lbmrd_on_timer(engine, 10 * UM_NS_PER_SEC);
    EXPECT(um_lbmrd_clients(engine) == 0);
    um_lbmrd_destroy(engine);
    return true;
}

TEST(lbmrd_survives_every_fault)
{
    ONE_THREAD();
    CHECK(torture("lbmrd", lbmrd_engine, FAULT_MEMORY, 1, 0));
}

/* ---- without descriptors ---- */

/* Room for `more` descriptors beyond those open now; -1: as many as there were. */
static void limit_descriptors(int more)
{
    static struct rlimit before;
    struct rlimit limit;
    if (more < 0) {
        setrlimit(RLIMIT_NOFILE, &before);
        return;
    }
    getrlimit(RLIMIT_NOFILE, &before);
    int lowest = dup(0); /* what is free below counts as room */
    close(lowest);
    limit = before;
    limit.rlim_cur = (rlim_t)(lowest + more);
    setrlimit(RLIMIT_NOFILE, &limit);
}

static bool names_the_reason(void)
{
    return lbm_errnum() == LBM_EOS && strstr(lbm_errmsg(), "open files") != NULL;
}

TEST(a_context_without_descriptors_is_an_error_that_leaves_none_open)
{
    TEST_NEEDS_NET();
    static const char *const modes[] = {"embedded", "sequential"};
    lbm_context_attr_t *attr;
    memset(&with, 0, sizeof with);
    torture_name = "few descriptors";
    for (int mode = 0; mode < 2; mode++) {
        with.mode = modes[mode];
        CHECK(make_context_attr(&attr));
        int before = open_descriptors(), rc = -1;
        for (int room = 0; rc != 0; room++) {
            lbm_context_t *ctx = NULL;
            CHECK(room < 50);
            limit_descriptors(room);
            rc = lbm_context_create(&ctx, attr, NULL, NULL);
            bool good = rc == 0 ? lbm_context_delete(ctx) == 0 : names_the_reason();
            limit_descriptors(-1);
            CHECK(good);
            CHECK_EQ(open_descriptors(), before);
        }
        CHECK_DONE(lbm_context_attr_delete(attr));
    }
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int connect_to(int fd, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return connect(fd, (struct sockaddr *)&to, sizeof to);
}

static uint16_t source_port(lbm_context_t *ctx)
{
    lbm_src_transport_stats_t stats;
    unsigned port = 0;
    int num = 1;
    if (lbm_context_retrieve_src_transport_stats(ctx, &num, &stats) == 0) {
        sscanf(stats.source, "TCP:%*[^:]:%u", &port);
    }
    return (uint16_t)port;
}

static unsigned long source_clients(lbm_context_t *ctx)
{
    lbm_src_transport_stats_t stats;
    int num = 1;
    return lbm_context_retrieve_src_transport_stats(ctx, &num, &stats) == 0 ? stats.transport.tcp.num_clients : 0;
}

TEST(a_source_without_descriptors_waits_for_them_without_spinning)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx;
    lbm_src_t *src;
    memset(&with, 0, sizeof with);
    with.mode = "embedded";
    torture_name = "accept without descriptors";
    int before = open_descriptors();
    hang_guard(60);
    CHECK(make_context(&ctx) && make_source(ctx, &src));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    uint16_t port = source_port(ctx);
    CHECK(port != 0 && fd >= 0);
    limit_descriptors(0);
    CHECK_EQ(connect_to(fd, port), 0); /* the kernel completes it; nobody can accept it */
    double cpu = cpu_seconds();
    usleep(1000000);
    cpu = cpu_seconds() - cpu;
    bool accepted = source_clients(ctx) != 0;
    limit_descriptors(-1);
    CHECK(!accepted);
    if (cpu > 0.3) {
        TEST_FAIL("%.2f seconds of processor time in a second of waiting", cpu);
    }
    while (source_clients(ctx) == 0) { /* bounded by the guard */
        usleep(10000);
    }
    hang_guard(0);
    close(fd);
    CHECK_DONE(lbm_src_delete(src));
    CHECK_DONE(lbm_context_delete(ctx));
    CHECK_EQ(open_descriptors(), before);
}

TEST(a_request_port_without_descriptors_waits_for_them_without_spinning)
{
    TEST_NEEDS_NET();
    lbm_context_t *ctx;
    memset(&with, 0, sizeof with);
    with.mode = "embedded";
    torture_name = "request port without descriptors";
    hang_guard(60);
    CHECK(make_context(&ctx));
    int fd = socket(AF_INET, SOCK_STREAM, 0), open_before = open_descriptors();
    limit_descriptors(0);
    CHECK_EQ(connect_to(fd, ctx->env.request_port), 0);
    double cpu = cpu_seconds();
    usleep(1000000);
    cpu = cpu_seconds() - cpu;
    limit_descriptors(-1);
    if (cpu > 0.3) {
        TEST_FAIL("%.2f seconds of processor time in a second of waiting", cpu);
    }
    while (open_descriptors() == open_before) { /* until it is accepted; bounded by the guard */
        usleep(10000);
    }
    hang_guard(0);
    close(fd);
    CHECK_DONE(lbm_context_delete(ctx));
}

/* Descriptors run out while messages flow and come back: no crash, and the messages flow again. */
TEST(receivers_recover_when_descriptors_come_back)
{
    TEST_NEEDS_NET();
    lbm_context_t *pub, *sub;
    lbm_src_t *src;
    struct receiver rcv;
    memset(&with, 0, sizeof with);
    with.mode = "embedded";
    torture_name = "receivers without descriptors";
    lbm_log(keep_log, NULL);
    int before = open_descriptors();
    hang_guard(60);
    for (int room = 0; room < 3; room++) {
        forget_seen();
        CHECK(make_context(&pub) && make_context(&sub) && make_source(pub, &src));
        limit_descriptors(room); /* one is enough to connect, two to accept as well */
        bool made = make_receiver(sub, NULL, &rcv);
        for (uint32_t number = 0; made && number < 100; number++) {
            made = send_next(src, &(uint32_t){number}) && turn(pub);
        }
        limit_descriptors(-1);
        CHECK(made);
        pthread_mutex_lock(&seen.lock);
        seen.last = -1;
        pthread_mutex_unlock(&seen.lock);
        CHECK(messages_flow(src, pub, sub, NULL));
        CHECK_DONE(lbm_src_delete(src));
        CHECK(delete_receiver(&rcv));
        CHECK_DONE(lbm_context_delete(sub));
        CHECK_DONE(lbm_context_delete(pub));
    }
    hang_guard(0);
    CHECK_EQ(open_descriptors(), before);
    CHECK(!leaks_found());
}

/* ---- other things that are missing ---- */

struct refusal {
    const char *option, *value; /* set on the attributes; NULL: none */
    const char *parts[3];       /* what the error says */
};

static bool refused(const struct refusal *refusal)
{
    lbm_context_attr_t *attr;
    lbm_context_t *ctx = NULL;
    if (!make_context_attr(&attr)) {
        return false;
    }
    int rc = refusal->option == NULL ? 0 : lbm_context_attr_str_setopt(attr, refusal->option, refusal->value);
    if (rc == 0) {
        rc = lbm_context_create(&ctx, attr, NULL, NULL);
    }
    bool good = rc == -1 && lbm_errnum() != 0;
    for (int i = 0; i < 3 && refusal->parts[i] != NULL; i++) {
        good = good && strstr(lbm_errmsg(), refusal->parts[i]) != NULL;
    }
    if (!good) {
        fprintf(stderr, "%s %s: %d %s\n", refusal->option, refusal->value, rc, lbm_errmsg());
    }
    return lbm_context_attr_delete(attr) == 0 && good;
}

TEST(what_a_context_cannot_have_is_refused_by_name_and_leaves_nothing)
{
    TEST_NEEDS_NET();
    int taken = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    CHECK(bind(taken, (struct sockaddr *)&addr, len) == 0 && listen(taken, 1) == 0 &&
          getsockname(taken, (struct sockaddr *)&addr, &len) == 0);
    char port[8];
    snprintf(port, sizeof port, "%u", ntohs(addr.sin_port));
    const struct refusal refusals[] = {
        {"request_tcp_port", port, {"request_tcp_port", port, "in use"}},
        {"no_such_option", "1", {"no_such_option"}},
        {"resolver_multicast_interface", "10.77.0.0/16", {"10.77.0.0", "no interfaces matching"}},
        {"resolver_unicast_daemon", "192.0.2.1:99999", {"resolver_unicast_daemon", "99999"}},
        {"request_tcp_interface", "192.0.2.1", {"192.0.2.1"}},
    };
    memset(&with, 0, sizeof with);
    with.mode = "sequential";
    torture_name = "refusals";
    int before = open_descriptors();
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        CHECK(refused(&refusals[i]));
        CHECK_EQ(open_descriptors(), before);
    }
    CHECK_EQ(lbm_config("/nowhere/um.cfg"), -1);
    CHECK_CONTAINS(lbm_errmsg(), "/nowhere/um.cfg");
    CHECK_EQ(lbm_config_xml_file("/nowhere/um.xml", NULL), -1);
    CHECK_CONTAINS(lbm_errmsg(), "/nowhere/um.xml");
    CHECK_EQ(lbm_config_xml_string("<um-configuration version=\"1.0\"><templates>", NULL), -1);
    CHECK(lbm_errmsg()[0] != '\0');
    CHECK_EQ(open_descriptors(), before);
    close(taken);
    CHECK(!leaks_found());
}

/* The resolver's datagrams and the receiver's connections have nowhere to go: the context lives on and says so. */
TEST(unreachable_hosts_are_counted_and_survived)
{
    TEST_NEEDS_NET();
    lbm_context_stats_t stats;
    lbm_context_t *ctx;
    lbm_src_t *src;
    struct receiver rcv;
    memset(&with, 0, sizeof with);
    with.mode = "sequential";
    with.unicast_daemon = "127.0.0.1->192.0.2.1:15380"; /* no route in the private network */
    torture_name = "unreachable lbmrd";
    int before = open_descriptors();
    hang_guard(60);
    CHECK(make_context(&ctx) && make_source(ctx, &src) && make_receiver(ctx, NULL, &rcv));
    do {
        CHECK_DONE(lbm_context_process_events(ctx, 20));
        CHECK_DONE(lbm_context_retrieve_stats(ctx, &stats));
    } while (stats.tr_dgrams_send_failed == 0); /* bounded by the guard */
    hang_guard(0);
    CHECK_DONE(lbm_src_delete(src));
    CHECK(delete_receiver(&rcv));
    CHECK_DONE(lbm_context_delete(ctx));
    CHECK_EQ(open_descriptors(), before);
}
