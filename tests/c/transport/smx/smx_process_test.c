/* LBT-SMX between processes: every message reaches three receivers in order, also
 * with more spinners than cores; a killed receiver or source never hangs or
 * corrupts the other and leaves nothing behind; a full file system is an error.
 * UM_SOAK=1 in the environment runs the full counts. Judged by counts; clocks only
 * catch hangs. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/um_clock.h"
#include "base/um_timer.h"
#include "transport/shm/um_shm_segment.h"
#include "um_test_child.h"
#include "um_test_rcv.h"
#include "um_test_shm.h"

#define RECEIVERS_MAX 6
#define WINDOW "8388608"

/* What the processes of a test tell each other. */
struct shared {
    _Atomic uint64_t received[RECEIVERS_MAX], wrong[RECEIVERS_MAX];
    atomic_int bos[RECEIVERS_MAX], eos[RECEIVERS_MAX], losses[RECEIVERS_MAX];
    _Atomic uint64_t sent;
    atomic_int stop;
};

static struct shared *told;               /* also in children */
static struct um_test_shared told_memory; /* not in children */
static int my_number;

static void told_make(void)
{
    if (told == NULL) {
        told_memory = um_test_shared_make(sizeof *told);
        told = told_memory.memory;
    }
    memset(told, 0, sizeof *told);
}

static int silent(int level, const char *message, void *clientd)
{
    (void)clientd;
    return level <= LBM_LOG_ERR ? fprintf(stderr, "%s\n", message) : 0;
}

static lbm_src_t *smx_source(lbm_context_t *ctx, const char *name, const char *window)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", "lbtsmx"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtsmx_transmission_window_size", window));
    MUST(lbm_src_topic_alloc(&topic, ctx, name, attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    return src;
}

/* The number the source goes on with, 0 before its first. A new source may begin before the end of a killed one shows.
 */
static uint64_t *expected_of(const char *source)
{
    static struct {
        char source[128];
        uint64_t expected;
    } known[64];
    static unsigned last, next;
    for (unsigned i = 0; i < 64; i++) {
        unsigned at = (last + i) % 64;
        if (strcmp(known[at].source, source) == 0) {
            last = at;
            return &known[at].expected;
        }
    }
    last = next++ % 64;
    snprintf(known[last].source, sizeof known[last].source, "%s", source);
    known[last].expected = 0;
    return &known[last].expected;
}

/* Messages are their own number: consecutive from the first one on. */
static int count_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    (void)clientd;
    int me = my_number;
    uint64_t value, *expected = expected_of(msg->source);
    switch (msg->type) {
    case LBM_MSG_DATA:
        memcpy(&value, msg->data, sizeof value);
        if (msg->len != 8 || (*expected != 0 && value != *expected)) {
            atomic_fetch_add(&told->wrong[me], 1);
        }
        *expected = value + 1;
        atomic_store_explicit(&told->received[me], atomic_load_explicit(&told->received[me], memory_order_relaxed) + 1,
                              memory_order_relaxed);
        break;
    case LBM_MSG_BOS:
        atomic_fetch_add(&told->bos[me], 1);
        break;
    case LBM_MSG_EOS:
        atomic_fetch_add(&told->eos[me], 1);
        break;
    default:
        atomic_fetch_add(&told->losses[me], 1);
        break;
    }
    return 0;
}

static void until_stopped(void)
{
    while (!atomic_load(&told->stop)) {
        usleep(1000);
    }
}

/* "number topic" */
ROLE(receiver)
{
    char topic[64];
    told = shared;
    if (sscanf(text, "%d %63s", &my_number, topic) != 2) {
        return 1;
    }
    lbm_log(silent, NULL);
    lbm_context_t *ctx = net_lean_context();
    lbm_rcv_t *rcv = net_receiver(ctx, topic, NULL, count_message, NULL, NULL);
    until_stopped();
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(ctx));
    return 0;
}

static pid_t start_receiver(int number, const char *topic)
{
    return um_test_child("receiver", &told_memory, 0, "%d %s", number, topic);
}

static bool wait_until(_Atomic uint64_t *word, uint64_t value)
{
    uint64_t last = 0;
    for (int quiet = 0; quiet < HANG_SECONDS * 1000; quiet++) {
        uint64_t now = atomic_load(word);
        if (now >= value) {
            return true;
        }
        quiet = now == last ? quiet : 0; /* slow is no hang */
        last = now;
        usleep(1000);
    }
    return false;
}

static bool wait_count(atomic_int *word, int value)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && atomic_load(word) < value; i++) {
        usleep(1000);
    }
    return atomic_load(word) >= value;
}

static bool reap(pid_t pid)
{
    return um_test_child_end(pid) == 0;
}

/* "receivers messages" */
ROLE(stress_source)
{
    int receivers;
    unsigned long long messages;
    told = shared;
    if (sscanf(text, "%d %llu", &receivers, &messages) != 2) {
        return 1;
    }
    lbm_log(silent, NULL);
    lbm_context_t *ctx = net_lean_context();
    lbm_src_t *src = smx_source(ctx, "smx/stress", WINDOW);
    MUST(um_src_wait_receivers(src, receivers, HANG_SECONDS * 1000));
    for (uint64_t i = 1; i <= messages; i++) {
        void *buffer;
        MUST(lbm_src_buff_acquire(src, &buffer, sizeof i, 0));
        memcpy(buffer, &i, sizeof i);
        if (i % 3 != 0 || i == messages) { /* single messages and batches of two */
            MUST(lbm_src_buffs_complete(src));
        }
    }
    until_stopped();
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    return 0;
}

/* One source in a process of its own, `receivers` receiving processes, nothing lost and nothing out of order. */
static void stress(int receivers, uint64_t messages)
{
    told_make();
    pid_t pids[RECEIVERS_MAX],
        source = um_test_child("stress_source", &told_memory, 0, "%d %llu", receivers, (unsigned long long)messages);
    for (int i = 0; i < receivers; i++) {
        pids[i] = start_receiver(i, "smx/stress");
    }
    bool all = true;
    for (int i = 0; i < receivers; i++) {
        all = wait_until(&told->received[i], messages) && all;
    }
    atomic_store(&told->stop, 1);
    CHECK(reap(source));
    for (int i = 0; i < receivers; i++) {
        CHECK(reap(pids[i]));
        CHECK_EQ(atomic_load(&told->received[i]), messages);
        CHECK_EQ(atomic_load(&told->wrong[i]), 0);
        CHECK_EQ(atomic_load(&told->losses[i]), 0);
    }
    CHECK(all);
    CHECK_EQ(um_test_shm_count(), 0);
    printf("LBT-SMX, %llu messages of 8 bytes to %d receivers: none lost, none out of order\n",
           (unsigned long long)messages, receivers);
}

TEST(three_receivers_get_ten_million_messages_in_order)
{
    TEST_NEEDS_NET();
    stress(3, um_test_soak() ? 1000000000 : UM_TEST_SANITIZED ? 300000 : 10000000);
}

TEST(more_spinners_than_cores_lose_nothing)
{
    TEST_NEEDS_NET();
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    stress(cores + 2 > RECEIVERS_MAX ? RECEIVERS_MAX : cores + 2, um_test_soak()      ? 100000000
                                                                  : UM_TEST_SANITIZED ? 100000
                                                                                      : 2000000);
}

/* ---- kills ---- */

static int kills(void)
{
    return um_test_soak() ? 1000 : UM_TEST_SANITIZED ? 10 : 50;
}

static void random_pause(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    usleep((*seed >> 16) % 60000);
}

/* A source that sends as it can, blocked by whatever a dying receiver does. */
static void *send_always(void *arg)
{
    lbm_src_t *src = arg;
    for (uint64_t i = 1; !atomic_load(&told->stop); i++) {
        MUST(lbm_src_send(src, (const char *)&i, sizeof i, LBM_SRC_BLOCK));
        atomic_store_explicit(&told->sent, i, memory_order_relaxed);
        if (i % 1024 == 0) {
            sched_yield();
        }
    }
    return NULL;
}

TEST(a_receiver_killed_at_any_instant_never_stops_the_source_or_other_receivers)
{
    TEST_NEEDS_NET();
    told_make();
    unsigned seed = 7;
    pid_t steady = start_receiver(0, "smx/kill/rcv");
    lbm_log(silent, NULL);
    lbm_context_t *ctx = net_lean_context();
    lbm_src_t *src = smx_source(ctx, "smx/kill/rcv", "131072");
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    pthread_t thread;
    pthread_create(&thread, NULL, send_always, src);
    for (int k = 0; k < kills(); k++) {
        pid_t victim = start_receiver(1, "smx/kill/rcv");
        random_pause(&seed);
        if (k % 3 == 0) { /* some surely while they receive */
            CHECK(wait_until(&told->received[1], atomic_load(&told->received[1]) + 1));
        }
        um_test_child_kill(victim);
        uint64_t sent = atomic_load(&told->sent);
        CHECK(wait_until(&told->sent, sent + 10000)); /* more than the window: the dead one holds nobody up */
    }
    for (int i = 0; i < HANG_SECONDS * 1000 && um_src_receivers(src) > 1; i++) {
        usleep(1000);
    }
    CHECK_EQ(um_src_receivers(src), 1);
    atomic_store(&told->stop, 1);
    pthread_join(thread, NULL);
    CHECK(reap(steady));
    CHECK_EQ(atomic_load(&told->wrong[0]), 0);
    CHECK_EQ(atomic_load(&told->losses[0]), 0);
    CHECK_EQ(atomic_load(&told->eos[0]), 0);
    um_src_stats_t stats;
    MUST(um_src_stats(src, &stats));
    CHECK(stats.receivers_lost > 0);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    um_shm_reclaim_dead(UM_SHM_SMX); /* as the resource manager does: a receiver killed before it had a slot */
    CHECK_EQ(um_test_shm_count(), 0);
    printf("LBT-SMX, %d receivers killed: source and other receivers went on, nothing left behind\n", kills());
}

/* topic */
ROLE(source)
{
    told = shared;
    lbm_log(silent, NULL);
    lbm_context_t *ctx = net_lean_context();
    lbm_src_t *src = smx_source(ctx, text, "131072");
    send_always(src);
    return 0;
}

static pid_t start_source(const char *topic)
{
    return um_test_child("source", &told_memory, 0, "%s", topic);
}

TEST(a_source_killed_at_any_instant_ends_at_its_receivers_and_can_come_again)
{
    TEST_NEEDS_NET();
    told_make();
    unsigned seed = 11;
    my_number = 0;
    lbm_log(silent, NULL);
    int rounds = kills();
    pid_t victim = 0;
    pid_t receiver = start_receiver(0, "smx/kill/src");
    for (int k = 0; k < rounds; k++) {
        int bos = atomic_load(&told->bos[0]);
        victim = start_source("smx/kill/src");
        if (k % 5 == 0) { /* others are killed while they start or join */
            CHECK(wait_count(&told->bos[0], bos + 1));
        }
        random_pause(&seed);
        um_test_child_kill(victim);
    }
    CHECK(wait_count(&told->eos[0], atomic_load(&told->bos[0])));
    victim = start_source("smx/kill/src");
    uint64_t before = atomic_load(&told->received[0]);
    CHECK(wait_until(&told->received[0], before + 1000));
    um_test_child_kill(victim);
    CHECK(wait_count(&told->eos[0], atomic_load(&told->bos[0])));
    atomic_store(&told->stop, 1);
    CHECK(reap(receiver));
    CHECK_EQ(atomic_load(&told->wrong[0]), 0);
    CHECK_EQ(atomic_load(&told->losses[0]), 0);
    um_shm_reclaim_dead(UM_SHM_SMX);
    CHECK_EQ(um_test_shm_count(), 0);
    printf("LBT-SMX, %d sources killed: receivers saw each end, a new source was received, nothing left behind\n",
           rounds + 1);
}

/* H1: kills while segments and contexts are set up: the next start finds nothing in its way and sweeps up. */
TEST(h1_kills_during_set_up_leave_nothing_that_stops_a_restart)
{
    TEST_NEEDS_NET();
    told_make();
    unsigned seed = 3;
    lbm_log(silent, NULL);
    int rounds = um_test_soak() ? 1000 : UM_TEST_SANITIZED ? 10 : 100;
    for (int k = 0; k < rounds; k++) {
        pid_t victim = k % 2 == 0 ? start_source("smx/h1") : start_receiver(1, "smx/h1");
        random_pause(&seed);
        um_test_child_kill(victim);
    }
    uint64_t begun_ns = um_clock_ns();
    lbm_context_t *ctx = net_lean_context();
    lbm_src_t *src = smx_source(ctx, "smx/h1", "131072");
    pid_t receiver = start_receiver(0, "smx/h1");
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    CHECK_EQ(um_test_shm_count(), 2); /* this session, and the control object of the receiving context */
    uint64_t value = 1;
    MUST(lbm_src_send(src, (const char *)&value, sizeof value, 0));
    CHECK(wait_until(&told->received[0], 1));
    unsigned long long took_ms = (um_clock_ns() - begun_ns) / UM_NS_PER_MS;
    atomic_store(&told->stop, 1);
    CHECK(reap(receiver));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    CHECK_EQ(um_test_shm_count(), 0);
    printf("LBT-SMX, %d processes killed while they set up: the next source and receiver had their first message after "
           "%llu ms, nothing left\n",
           rounds, took_ms);
    CHECK(took_ms <= SURVIVOR_MS);
}

/* Exit status 77: not permitted to mount. */
ROLE(full_file_system)
{
    char directory[96];
    snprintf(directory, sizeof directory, "%s/small", getenv("UM_SHM_DIR"));
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mkdir(directory, 0700) != 0 || mount("tmpfs", directory, "tmpfs", 0, "size=1m") != 0) {
        return 77;
    }
    setenv("UM_SHM_DIR", directory, 1);
    lbm_log(silent, NULL);
    lbm_context_t *ctx = net_lean_context();
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", "lbtsmx"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtsmx_transmission_window_size", WINDOW));
    MUST(lbm_src_topic_alloc(&topic, ctx, "smx/h2", attr));
    int rc = lbm_src_create(&src, ctx, topic, NULL, NULL, NULL);
    fprintf(stderr, "%s\n", rc == -1 ? lbm_errmsg() : "created");
    bool said = rc == -1 && strstr(lbm_errmsg(), directory) != NULL && strstr(lbm_errmsg(), "84") != NULL &&
                strstr(lbm_errmsg(), "enlarge") != NULL;
    bool empty = um_test_shm_count() == 0;
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtsmx_transmission_window_size", "131072"));
    MUST(lbm_src_topic_alloc(&topic, ctx, "smx/h2/small", attr));
    bool fits = lbm_src_create(&src, ctx, topic, NULL, NULL, NULL) == 0;
    lbm_src_topic_attr_delete(attr);
    if (fits) {
        MUST(lbm_src_delete(src));
    }
    MUST(lbm_context_delete(ctx));
    return said && empty && fits ? 0 : 1;
}

/* H2: with a tmpfs of 1 MiB the creation fails with size, path and remedy, and nothing is left; no SIGBUS later. */
TEST(h2_a_full_file_system_fails_the_creation_with_size_path_and_remedy)
{
    TEST_NEEDS_NET();
    int end = um_test_child_end(um_test_child("full_file_system", NULL, 0, "%s", ""));
    char directory[96];
    snprintf(directory, sizeof directory, "%s/small", getenv("UM_SHM_DIR"));
    rmdir(directory);
    if (end == 77) {
        TEST_SKIP("needs permission to mount a file system (CAP_SYS_ADMIN)");
    }
    CHECK_EQ(end, 0);
}
