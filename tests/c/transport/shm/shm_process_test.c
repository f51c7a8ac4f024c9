/* Shared-memory transports between processes that are killed, stopped, restarted, or belong to another user: who is
 * left goes on within the documented time, delivers no damage and leaks nothing. Children report through a page they
 * share with the test. Killings mostly wait for clocks of the library, so that several run side by side. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "um_test_child.h"
#include "um_test_shm.h"

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "base/um_timer.h"
#include "transport/shm/um_shm_segment.h"
#include "um_test_rcv.h"

#define MESSAGE 1200u

/* ---- messages that show damage ---- */

UM_TEST_OWN_BYTES static void compose(char *bytes, uint64_t n)
{
    uint64_t sum = n;
    for (size_t i = 16; i < MESSAGE; i++) {
        bytes[i] = (char)(n * 31 + i);
        sum = sum * 1099511628211ull + (uint8_t)bytes[i];
    }
    memcpy(bytes, &n, 8);
    memcpy(bytes + 8, &sum, 8);
}

static bool intact(const char *bytes, size_t len)
{
    char expected[MESSAGE];
    uint64_t n;
    memcpy(&n, bytes, 8);
    compose(expected, n);
    return len == MESSAGE && memcmp(bytes, expected, len) == 0;
}

/* ---- what a process tells ---- */

#define SESSIONS 8 /* at the same time, for one receiver */

struct report {
    atomic_ulong created; /* the source or receiver exists */
    atomic_ulong sent, data, lost, bos, eos, bad, disordered;
    struct {
        char source[128]; /* empty: not begun, or ended */
        unsigned last;
        bool any;
    } sessions[SESSIONS]; /* receiving thread */
};

/* A session may begin before the end of one whose source was killed shows. SESSIONS: not known. */
static int session_of(const struct report *r, const char *source)
{
    int i = 0;
    while (i < SESSIONS && strcmp(r->sessions[i].source, source) != 0) {
        i++;
    }
    return i;
}

static void note_begin(struct report *r, const char *source)
{
    int i = session_of(r, "");
    bool twice = session_of(r, source) < SESSIONS;
    atomic_fetch_add(&r->disordered, twice || i == SESSIONS);
    if (i < SESSIONS) {
        snprintf(r->sessions[i].source, sizeof r->sessions[i].source, "%s", source);
        r->sessions[i].any = false;
    }
}

static void note_data(struct report *r, const char *source, unsigned sqn)
{
    int i = session_of(r, source);
    bool good = i < SESSIONS && (!r->sessions[i].any || sqn > r->sessions[i].last);
    atomic_fetch_add(&r->disordered, !good);
    if (i < SESSIONS) {
        r->sessions[i].last = sqn;
        r->sessions[i].any = true;
    }
}

static void note_end(struct report *r, const char *source)
{
    int i = session_of(r, source);
    atomic_fetch_add(&r->disordered, i == SESSIONS);
    if (i < SESSIONS) {
        r->sessions[i].source[0] = '\0';
    }
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct report *r = clientd;
    switch (msg->type) {
    case LBM_MSG_DATA:
        atomic_fetch_add(&r->bad, !intact(msg->data, msg->len));
        note_data(r, msg->source, msg->sequence_number);
        atomic_fetch_add(&r->data, 1);
        break;
    case LBM_MSG_BOS:
        note_begin(r, msg->source);
        atomic_fetch_add(&r->bos, 1);
        break;
    case LBM_MSG_EOS:
        note_end(r, msg->source);
        atomic_fetch_add(&r->eos, 1);
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS:
    case LBM_MSG_UNRECOVERABLE_LOSS_BURST:
        atomic_fetch_add(&r->lost, 1);
        break;
    }
    return 0;
}

/* ---- objects ---- */

struct shape {
    const char *transport; /* as the option spells it */
    bool paced;            /* LBT-IPC: receiver-paced */
    const char *name;      /* in figures */
};

static const struct shape PACED_IPC = {"lbt-ipc", true, "LBT-IPC"}, IPC = {"lbt-ipc", false, "LBT-IPC"},
                          SMX = {"lbt-smx", false, "LBT-SMX"};

static lbm_src_t *make_source(lbm_context_t *ctx, const char *topic_name, const struct shape *shape)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", shape->transport));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtipc_transmission_window_size", "1048576"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtsmx_transmission_window_size", "1048576"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtipc_behavior",
                                       shape->paced ? "receiver_paced" : "source_paced"));
    MUST(lbm_src_topic_alloc(&topic, ctx, topic_name, attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    return src;
}

static lbm_rcv_t *make_receiver(lbm_context_t *ctx, const char *topic, struct report *report)
{
    lbm_rcv_topic_attr_t *attr;
    MUST(lbm_rcv_topic_attr_create(&attr));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "delivery_control_maximum_burst_loss", "100000000"));
    lbm_rcv_t *rcv = net_receiver(ctx, topic, attr, on_message, report, NULL);
    lbm_rcv_topic_attr_delete(attr);
    return rcv;
}

static int send_one(lbm_src_t *src, uint64_t n)
{
    char bytes[MESSAGE];
    compose(bytes, n);
    return lbm_src_send(src, bytes, sizeof bytes, LBM_SRC_BLOCK | (n % 8 == 0 ? LBM_MSG_FLUSH : 0));
}

/* ---- children: "transport paced topic" ---- */

static int say_nothing(int level, const char *message, void *clientd)
{
    return 0;
}

struct part {
    char transport[16], topic[64];
    struct shape shape;
};

static void read_part(struct part *part, const char *text)
{
    int paced;
    if (sscanf(text, "%15s %d %63s", part->transport, &paced, part->topic) != 3) {
        abort();
    }
    part->shape = (struct shape){.transport = part->transport, .paced = paced != 0};
    lbm_log(say_nothing, NULL);
}

ROLE(receiver)
{
    struct report *report = shared;
    struct part part;
    read_part(&part, text);
    make_receiver(net_lean_context(), part.topic, report);
    atomic_store(&report->created, 1);
    return pause();
}

ROLE(source)
{
    struct report *report = shared;
    struct part part;
    read_part(&part, text);
    lbm_src_t *src = make_source(net_lean_context(), part.topic, &part.shape);
    atomic_store(&report->created, 1);
    for (uint64_t n = 0; send_one(src, n) == 0; n++) {
        atomic_fetch_add(&report->sent, 1);
        if (n % 64 == 0) {
            usleep(2000);
        }
    }
    return 1;
}

struct child {
    pid_t pid;
    struct um_test_shared memory;
    struct report *report;
};

static void child_start(struct child *c, const char *role, const struct shape *shape, const char *topic, uid_t uid)
{
    c->memory = um_test_shared_make(4096);
    c->report = c->memory.memory;
    c->pid = um_test_child(role, &c->memory, uid, "%s %d %s", shape->transport, shape->paced, topic);
}

/* False when it had already ended by itself, as it does when something fails. */
static bool child_kill(struct child *c)
{
    kill(c->pid, SIGKILL);
    int end = um_test_child_end(c->pid);
    um_test_shared_drop(&c->memory);
    return end == 128 + SIGKILL;
}

/* ---- waiting ---- */

static bool grows(atomic_ulong *value, unsigned long beyond)
{
    uint64_t until = um_clock_ns() + HANG_SECONDS * UM_NS_PER_SEC;
    while (atomic_load(value) <= beyond && um_clock_ns() < until) {
        usleep(200);
    }
    return atomic_load(value) > beyond;
}

static unsigned long clients_of(lbm_src_t *src)
{
    um_src_stats_t stats;
    MUST(um_src_stats(src, &stats));
    return (unsigned long)stats.receivers;
}

static bool clients_become(lbm_src_t *src, unsigned long count)
{
    uint64_t until = um_clock_ns() + HANG_SECONDS * UM_NS_PER_SEC;
    while (clients_of(src) != count && um_clock_ns() < until) {
        usleep(500);
    }
    return clients_of(src) == count;
}

static int count_fds(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

static int count_mappings(void)
{
    char line[512];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps) != NULL) {
        count += strstr(line, "/LBT") != NULL;
    }
    fclose(maps);
    return count;
}

static unsigned random_us(struct um_rng *rng, unsigned most)
{
    return (unsigned)um_rng_range(rng, 0, most);
}

/* A thread of ours that sends for ever. */
struct sending {
    lbm_src_t *src;
    atomic_ulong sent;
    atomic_bool stop;
    atomic_int failures;
    unsigned pause_us; /* after 64 messages */
    pthread_t thread;
};

static void *send_for_ever(void *arg)
{
    struct sending *s = arg;
    for (uint64_t n = 0; !atomic_load(&s->stop); n++) {
        if (send_one(s->src, n) != 0) {
            atomic_fetch_add(&s->failures, 1);
        }
        atomic_fetch_add(&s->sent, 1);
        if (n % 64 == 0) {
            usleep(s->pause_us);
        }
    }
    return NULL;
}

static void sending_start(struct sending *s, lbm_context_t *ctx, const char *topic, const struct shape *shape,
                          unsigned pause_us)
{
    *s = (struct sending){.src = make_source(ctx, topic, shape), .pause_us = pause_us};
    if (pthread_create(&s->thread, NULL, send_for_ever, s) != 0) {
        abort();
    }
}

static void sending_stop(struct sending *s)
{
    atomic_store(&s->stop, true);
    pthread_join(s->thread, NULL);
}

/* ---- killed at any instant ---- */

#define LANES 10

/* One of the threads that kill side by side, and what its victims talk to. */
struct lane {
    int rounds;
    void (*turn)(struct lane *lane, int round);
    struct um_rng rng;
    const struct shape *shape;
    char topic[32];
    lbm_context_t *ctx;
    struct sending sending; /* receivers are killed */
    lbm_rcv_t *rcv;         /* sources are killed */
    struct report report;
    int received;
    uint64_t slowest_ns;
    pthread_t thread;
};

static void *take_turns(void *arg)
{
    struct lane *lane = arg;
    for (int round = 0; round < lane->rounds && !um_test_failed; round++) {
        lane->turn(lane, round);
    }
    return NULL;
}

/* What needed most time, over all lanes. */
static unsigned long long side_by_side(struct lane *lanes, int rounds)
{
    uint64_t slowest = 0;
    for (int i = 0; i < LANES; i++) {
        lanes[i].rounds = rounds / LANES;
        um_rng_seed(&lanes[i].rng, (uint64_t)i + 1);
        if (pthread_create(&lanes[i].thread, NULL, take_turns, &lanes[i]) != 0) {
            abort();
        }
    }
    for (int i = 0; i < LANES; i++) {
        pthread_join(lanes[i].thread, NULL);
        slowest = lanes[i].slowest_ns > slowest ? lanes[i].slowest_ns : slowest;
    }
    return slowest / UM_NS_PER_MS;
}

static void note_time(struct lane *lane, uint64_t since)
{
    uint64_t took = um_clock_ns() - since;
    lane->slowest_ns = took > lane->slowest_ns ? took : lane->slowest_ns;
}

static void kill_receiver(struct lane *lane, int round)
{
    struct child c;
    struct sending *s = &lane->sending;
    child_start(&c, "receiver", lane->shape, lane->topic, 0);
    if (round % 2 == 0) {
        CHECK(grows(&c.report->data, 0));
    }
    usleep(random_us(&lane->rng, 30000));
    lane->received += atomic_load(&c.report->data) > 0;
    CHECK_EQ(atomic_load(&c.report->bad), 0);
    CHECK_EQ(atomic_load(&c.report->disordered), 0);
    uint64_t killed = um_clock_ns();
    CHECK(child_kill(&c));
    CHECK(grows(&s->sent, atomic_load(&s->sent) + 1000)); /* more than the window: it does not wait for the dead */
    CHECK(clients_become(s->src, 0));
    note_time(lane, killed);
}

static void kill_receivers(const struct shape *shape, const char *topic, int rounds)
{
    struct lane *lanes = calloc(LANES, sizeof *lanes);
    int received = 0;
    for (int i = 0; i < LANES; i++) {
        lanes[i] = (struct lane){.turn = kill_receiver, .shape = shape, .ctx = net_lean_context()};
        snprintf(lanes[i].topic, sizeof lanes[i].topic, "%s/%d", topic, i);
        sending_start(&lanes[i].sending, lanes[i].ctx, lanes[i].topic, shape, 4000);
    }
    int fds = count_fds(), mappings = count_mappings();
    unsigned long long slowest = side_by_side(lanes, rounds);
    int fds_left = count_fds() - fds, mappings_left = count_mappings() - mappings;
    um_shm_reclaim_dead(UM_SHM_IPC);
    int segments = um_test_shm_count();
    for (int i = 0; i < LANES; i++) {
        sending_stop(&lanes[i].sending);
        received += lanes[i].received;
        CHECK_EQ(atomic_load(&lanes[i].sending.failures), 0);
        MUST(lbm_src_delete(lanes[i].sending.src));
        MUST(lbm_context_delete(lanes[i].ctx));
    }
    free(lanes);
    printf("LBT-IPC, %s, %d receivers killed: the source sent a window and had freed the slot after at most %llu ms; "
           "nothing left\n",
           shape->paced ? "receiver-paced" : "source-paced", rounds, slowest);
    CHECK(received >= rounds / 2);
    CHECK(slowest <= SURVIVOR_MS);
    CHECK_EQ(fds_left, 0);
    CHECK_EQ(mappings_left, 0);
    CHECK_EQ(segments, LANES); /* our own */
    CHECK_EQ(um_test_shm_count(), 0);
}

TEST(receivers_killed_at_any_instant_do_not_hold_a_receiver_paced_source_up)
{
    TEST_NEEDS_NET();
    kill_receivers(&PACED_IPC, "kill/paced", um_test_soak() ? 1000 : 50);
}

TEST(receivers_killed_at_any_instant_leave_nothing_at_a_source_paced_source)
{
    TEST_NEEDS_NET();
    kill_receivers(&IPC, "kill/unpaced", um_test_soak() ? 1000 : 50);
}

static void kill_source(struct lane *lane, int round)
{
    struct child c;
    struct report *r = &lane->report;
    unsigned long before = atomic_load(&r->data);
    child_start(&c, "source", lane->shape, lane->topic, 0);
    if (round % 2 == 0) {
        CHECK(grows(&r->data, before));
    }
    usleep(random_us(&lane->rng, 30000));
    uint64_t killed = um_clock_ns(), until = killed + HANG_SECONDS * UM_NS_PER_SEC;
    CHECK(child_kill(&c));
    do {
        usleep(1000);
    } while (atomic_load(&r->bos) != atomic_load(&r->eos) && um_clock_ns() < until);
    CHECK_EQ(atomic_load(&r->bos), atomic_load(&r->eos));
    note_time(lane, killed);
}

static void kill_sources(const struct shape *shape, const char *topic, int rounds)
{
    struct lane *lanes = calloc(LANES, sizeof *lanes);
    unsigned long messages = 0;
    lbm_context_t *ctx = net_lean_context();
    for (int i = 0; i < LANES; i++) {
        lanes[i] = (struct lane){.turn = kill_source, .shape = shape};
        snprintf(lanes[i].topic, sizeof lanes[i].topic, "%s/%d", topic, i);
        lanes[i].rcv = make_receiver(ctx, lanes[i].topic, &lanes[i].report);
    }
    kill_source(&lanes[0], 0); /* the receive thread and its object are there then */
    int fds = count_fds(), mappings = count_mappings();
    unsigned long long slowest = side_by_side(lanes, rounds);
    uint64_t until = um_clock_ns() + HANG_SECONDS * UM_NS_PER_SEC;
    while (count_fds() != fds && um_clock_ns() < until) { /* those that were killed before their first message */
        usleep(10000);
    }
    CHECK_EQ(count_mappings(), mappings);
    CHECK_EQ(count_fds(), fds);
    for (int i = 0; i < LANES; i++) {
        messages += atomic_load(&lanes[i].report.data);
        CHECK_EQ(atomic_load(&lanes[i].report.bad), 0);
        CHECK_EQ(atomic_load(&lanes[i].report.disordered), 0);
        MUST(lbm_rcv_delete(lanes[i].rcv));
    }
    MUST(lbm_context_delete(ctx));
    free(lanes);
    um_shm_reclaim_dead(UM_SHM_IPC);
    CHECK_EQ(um_test_shm_count(), 0);
    printf("LBT-IPC, %d sources killed: EOS after at most %llu ms; %lu messages, none damaged, nothing left\n", rounds,
           slowest, messages);
    CHECK(slowest <= SURVIVOR_MS);
}

TEST(sources_killed_at_any_instant_end_in_eos_and_nothing_damaged_is_delivered)
{
    TEST_NEEDS_NET();
    kill_sources(&IPC, "kill/source", um_test_soak() ? 1000 : 50);
}

/* ---- the requirements H3, H4, H5 ---- */

static int entries(enum um_shm_kind kind, int *dead)
{
    struct um_shm_entry *list;
    int count = um_shm_list(kind, &list);
    *dead = 0;
    for (int i = 0; i < count; i++) {
        *dead += !list[i].alive;
    }
    um_free(list);
    return count;
}

/* As another user: tries to reclaim what is dead, then starts a source. Exit status 0: both went as they must. */
ROLE(other_user)
{
    struct part part;
    struct um_shm_entry *list;
    read_part(&part, text);
    enum um_shm_kind kind = strcmp(part.transport, IPC.transport) == 0 ? UM_SHM_IPC : UM_SHM_SMX;
    int count = um_shm_list(kind, &list);
    if (count != 1 || um_shm_reclaim(&list[0]) != -1 || um_errmsg()[0] == '\0') {
        return 11; /* it is not ours to remove, and this is said */
    }
    um_free(list);
    lbm_context_t *ctx = net_lean_context();
    lbm_src_t *src = make_source(ctx, part.topic, &part.shape); /* aborts when it cannot be made */
    lbm_src_delete(src);
    lbm_context_delete(ctx);
    return 0;
}

static void leftovers_of_another_user(const struct shape *shape, enum um_shm_kind kind)
{
    struct child c;
    int dead;
    child_start(&c, "source", shape, "h3/first", 65534);
    CHECK(grows(&c.report->created, 0));
    CHECK(child_kill(&c));
    CHECK_EQ(entries(kind, &dead), 1);
    CHECK_EQ(dead + (geteuid() == 0 ? 0 : 1), 1);
    CHECK_EQ(um_test_child_end(um_test_child("other_user", NULL, 65533, "%s 0 h3/again", shape->transport)), 0);
    CHECK_EQ(um_shm_reclaim_dead(kind), 1); /* the superuser may */
    CHECK_EQ(um_test_shm_count(), 0);
}

TEST(h3_leftovers_of_another_user_in_a_sticky_directory_stand_in_nobodys_way)
{
    TEST_NEEDS_NET();
    if (geteuid() != 0) {
        TEST_SKIP("needs the superuser, to become two other users");
    }
    CHECK_EQ(chmod(um_shm_directory(), 01777), 0);
    leftovers_of_another_user(&IPC, UM_SHM_IPC);
    leftovers_of_another_user(&SMX, UM_SHM_SMX);
}

/* What systemd does to the objects of a user who logs out (RemoveIPC). */
static void removed_while_alive(const struct shape *shape, const char *topic)
{
    struct report r = {0};
    char command[128];
    lbm_context_t *sctx = net_lean_context(), *rctx = net_lean_context();
    struct sending s;
    lbm_rcv_t *rcv = make_receiver(rctx, topic, &r);
    sending_start(&s, sctx, topic, shape, 500);
    CHECK(grows(&r.data, 0));
    snprintf(command, sizeof command, "rm -f %s/LBT*", um_shm_directory());
    CHECK_EQ(system(command), 0);
    usleep(2500000); /* both sides have looked after each other meanwhile */
    CHECK(grows(&r.data, atomic_load(&r.data) + 5000));
    CHECK_EQ(atomic_load(&r.eos), 0);
    CHECK_EQ(atomic_load(&r.lost) + atomic_load(&r.bad), 0);
    sending_stop(&s);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(s.src));
    lbm_src_t *again = make_source(sctx, topic, shape);
    MUST(lbm_src_delete(again));
    MUST(lbm_context_delete(rctx));
    MUST(lbm_context_delete(sctx));
    CHECK_EQ(um_test_shm_count(), 0);
}

TEST(h3_names_removed_under_living_sessions_do_not_end_them)
{
    TEST_NEEDS_NET();
    removed_while_alive(&PACED_IPC, "h3/removed/ipc");
    removed_while_alive(&SMX, "h3/removed/smx");
}

struct restarts {
    const struct shape *shape;
    enum um_shm_kind kind;
    int rounds, failures;
    uint64_t slowest_ns;
    pthread_t thread;
};

static void *kill_and_restart(void *arg)
{
    struct restarts *r = arg;
    struct um_rng rng;
    um_rng_seed(&rng, 4);
    for (int i = 0; i < r->rounds && r->failures == 0; i++) {
        struct child c;
        uint64_t begun = um_clock_ns();
        child_start(&c, i % 3 == 2 ? "receiver" : "source", r->shape, "h4", 0);
        if (i % 2 == 0) { /* every other one is killed while it sets up */
            r->failures += !grows(&c.report->created, 0);
            uint64_t took = um_clock_ns() - begun;
            r->slowest_ns = took > r->slowest_ns ? took : r->slowest_ns;
        } else {
            usleep(random_us(&rng, 12000));
        }
        r->failures += !child_kill(&c);
    }
    return NULL;
}

/* The next source has tidied up. */
static void tidied_up(const struct restarts *r)
{
    int dead;
    lbm_context_t *ctx = net_lean_context();
    lbm_src_t *src = make_source(ctx, "h4", r->shape);
    entries(r->kind, &dead);
    CHECK_EQ(dead, 0);
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
}

TEST(h4_kill_and_restart_loops_do_not_fail_once)
{
    TEST_NEEDS_NET();
    int rounds = um_test_soak() ? 10000 : 100;
    struct restarts r[2] = {{&IPC, UM_SHM_IPC, .rounds = rounds}, {&SMX, UM_SHM_SMX, .rounds = rounds}};
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&r[i].thread, NULL, kill_and_restart, &r[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(r[i].thread, NULL);
        printf("%s, %d kills and restarts: %d failures; the slowest start took %llu ms\n", r[i].shape->name,
               r[i].rounds, r[i].failures, (unsigned long long)(r[i].slowest_ns / UM_NS_PER_MS));
        tidied_up(&r[i]);
    }
    CHECK_EQ(r[0].failures + r[1].failures, 0);
    CHECK(r[0].slowest_ns <= SURVIVOR_MS * UM_NS_PER_MS && r[1].slowest_ns <= SURVIVOR_MS * UM_NS_PER_MS);
    CHECK_EQ(um_test_shm_count(), 0);
}

/* One of several that are stopped at the same time, each with a peer of its own. */
struct stopping {
    const struct shape *shape;
    const char *topic;
    void (*stop)(const struct stopping *stopping);
    bool waits; /* the source waits for the receiver that is stopped */
    pthread_t thread;
};

#define STOP_MS (um_test_soak() ? 30000 : 2500)

static void *stop_one(void *arg)
{
    const struct stopping *stopping = arg;
    stopping->stop(stopping);
    return NULL;
}

static void stop_all(struct stopping *all, int count)
{
    for (int i = 0; i < count; i++) {
        if (pthread_create(&all[i].thread, NULL, stop_one, &all[i]) != 0) {
            abort();
        }
    }
    for (int i = 0; i < count; i++) {
        pthread_join(all[i].thread, NULL);
    }
}

/* However late anybody is: a source that waits is never further ahead than its window and a batch. */
#define AHEAD_MAX (2 * 1048576ul / MESSAGE)

static void stop_receiver(const struct stopping *stopping)
{
    struct child c;
    struct sending s;
    lbm_context_t *ctx = net_lean_context();
    child_start(&c, "receiver", stopping->shape, stopping->topic, 0);
    sending_start(&s, ctx, stopping->topic, stopping->shape, 500);
    CHECK(grows(&c.report->data, 100));
    unsigned long data = atomic_load(&c.report->data);
    unsigned long missed = atomic_load(&s.sent) - data; /* before it joined, at most */
    kill(c.pid, SIGSTOP);
    usleep(STOP_MS * 1000);
    kill(c.pid, SIGSTOP); /* if somebody else has let it go on */
    unsigned long sent = atomic_load(&s.sent);
    data = atomic_load(&c.report->data);
    if (stopping->waits) {
        CHECK(sent <= data + missed + AHEAD_MAX); /* it is waited for: stopped is not dead */
        CHECK_EQ(clients_of(s.src), 1);
    } else {
        CHECK(grows(&s.sent, data + missed + 2 * AHEAD_MAX));
    }
    kill(c.pid, SIGCONT);
    CHECK(grows(&s.sent, atomic_load(&s.sent) + 2000));
    CHECK(grows(&c.report->data, data + 2000));
    CHECK_EQ(atomic_load(&c.report->bad) + atomic_load(&c.report->disordered), 0);
    CHECK_EQ(atomic_load(&c.report->eos), 0);
    if (stopping->waits) {
        CHECK_EQ(atomic_load(&c.report->lost), 0);
    } else {
        CHECK(grows(&c.report->lost, 0));
    }
    atomic_store(&s.stop, true);
    CHECK(child_kill(&c));
    sending_stop(&s);
    MUST(lbm_src_delete(s.src));
    MUST(lbm_context_delete(ctx));
}

TEST(h5_a_stopped_receiver_costs_only_itself_or_is_waited_for)
{
    TEST_NEEDS_NET();
    struct stopping all[] = {{.shape = &IPC, .topic = "h5/ipc", .stop = stop_receiver},
                             {.shape = &PACED_IPC, .topic = "h5/ipc/paced", .stop = stop_receiver, .waits = true},
                             {.shape = &SMX, .topic = "h5/smx", .stop = stop_receiver, .waits = true}};
    stop_all(all, 3);
    printf("LBT-IPC and LBT-SMX, receivers stopped for %d ms: waited for without a loss, or (source-paced) a loss for "
           "them alone\n",
           STOP_MS);
}

static void stop_source(const struct stopping *stopping)
{
    struct child c;
    struct report r = {0};
    lbm_context_t *ctx = net_lean_context();
    lbm_rcv_t *rcv = make_receiver(ctx, stopping->topic, &r);
    child_start(&c, "source", stopping->shape, stopping->topic, 0);
    CHECK(grows(&r.data, 100));
    kill(c.pid, SIGSTOP);
    usleep(STOP_MS * 1000);
    unsigned long data = atomic_load(&r.data);
    CHECK_EQ(atomic_load(&r.eos), 0);
    kill(c.pid, SIGCONT);
    CHECK(grows(&r.data, data + 2000));
    CHECK_EQ(atomic_load(&r.eos) + atomic_load(&r.bad), 0);
    CHECK(!stopping->waits || atomic_load(&r.lost) == 0); /* source-paced, it may overtake us at any time */
    CHECK(child_kill(&c));
    CHECK(grows(&r.eos, 0));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(ctx));
}

TEST(h5_a_stopped_source_does_not_end_its_session)
{
    TEST_NEEDS_NET();
    struct stopping all[] = {{.shape = &IPC, .topic = "h5/source/ipc", .stop = stop_source},
                             {.shape = &PACED_IPC, .topic = "h5/source/paced", .stop = stop_source, .waits = true},
                             {.shape = &SMX, .topic = "h5/source/smx", .stop = stop_source, .waits = true}};
    stop_all(all, 3);
    printf("LBT-IPC and LBT-SMX, sources stopped for %d ms: their sessions went on, without a loss where the source "
           "waits for its receivers\n",
           STOP_MS);
}
