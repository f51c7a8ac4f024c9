/* Shared-memory transports between processes that are killed, stopped, restarted, or belong to another user: who is
 * left goes on within the documented time, delivers no damage and leaks nothing. The children execute this program
 * again with a role in SHM_ROLE, and report through a page they share with it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "um_test_shm.h"

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "base/um_timer.h"
#include "transport/shm/um_shm_segment.h"
#include "um_test_rcv.h"

#define MESSAGE 1200u
#define REPORT_FD 9

static bool soak(void)
{
    return getenv("UM_SOAK") != NULL;
}

/* ---- messages that show damage ---- */

static void compose(char *bytes, uint64_t n)
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

struct report {
    atomic_ulong created; /* the source or receiver exists */
    atomic_ulong sent, data, lost, bos, eos, bad, disordered;
    unsigned last; /* receiving thread */
    bool any;
};

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct report *r = clientd;
    switch (msg->type) {
    case LBM_MSG_DATA:
        atomic_fetch_add(&r->bad, !intact(msg->data, msg->len));
        atomic_fetch_add(&r->disordered, r->any && msg->sequence_number <= r->last);
        r->last = msg->sequence_number;
        r->any = true;
        atomic_fetch_add(&r->data, 1);
        break;
    case LBM_MSG_BOS:
        r->any = false;
        atomic_fetch_add(&r->bos, 1);
        break;
    case LBM_MSG_EOS:
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
};

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

/* ---- children ---- */

static int say_nothing(int level, const char *message, void *clientd)
{
    return 0;
}

/* SHM_ROLE: "source|receiver transport paced topic" */
__attribute__((constructor(60000))) static void play_role(void)
{
    char role[16], transport[16], topic[64];
    int paced;
    const char *text = getenv("SHM_ROLE");
    if (text == NULL || sscanf(text, "%15s %15s %d %63s", role, transport, &paced, topic) != 4) {
        return;
    }
    struct report *report = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, REPORT_FD, 0);
    struct shape shape = {transport, paced != 0};
    lbm_log(say_nothing, NULL);
    lbm_context_t *ctx = net_context();
    if (strcmp(role, "receiver") == 0) {
        make_receiver(ctx, topic, report);
        atomic_store(&report->created, 1);
        for (;;) {
            pause();
        }
    }
    lbm_src_t *src = make_source(ctx, topic, &shape);
    atomic_store(&report->created, 1);
    for (uint64_t n = 0;; n++) {
        MUST(send_one(src, n));
        atomic_fetch_add(&report->sent, 1);
        if (n % 64 == 0) {
            usleep(1000);
        }
    }
}

struct child {
    pid_t pid;
    int fd;
    struct report *report;
};

static void child_start(struct child *c, const char *role, const struct shape *shape, const char *topic, uid_t uid)
{
    char text[128];
    snprintf(text, sizeof text, "%s %s %d %s", role, shape->transport, shape->paced, topic);
    c->fd = memfd_create("report", 0);
    if (c->fd < 0 || ftruncate(c->fd, 4096) != 0) {
        abort();
    }
    c->report = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
    setenv("SHM_ROLE", text, 1);
    setenv("UM_TEST_SHM_KEEP", "1", 1);
    setenv("UM_TEST_NET_READY", "1", 1);
    c->pid = um_test_fork();
    if (c->pid == 0) {
        dup2(c->fd, REPORT_FD);
        if (uid != 0 && (setgid(uid) != 0 || setuid(uid) != 0)) {
            _exit(3);
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl("/proc/self/exe", "child", (char *)NULL);
        _exit(2);
    }
    unsetenv("SHM_ROLE");
    unsetenv("UM_TEST_SHM_KEEP");
    unsetenv("UM_TEST_NET_READY");
}

static void child_kill(struct child *c)
{
    int status;
    kill(c->pid, SIGKILL);
    waitpid(c->pid, &status, 0);
    munmap(c->report, 4096);
    close(c->fd);
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
            usleep(500);
        }
    }
    return NULL;
}

static const struct shape PACED_IPC = {"lbt-ipc", true}, IPC = {"lbt-ipc", false}, SMX = {"lbt-smx", false};

/* ---- killed at any instant ---- */

static void kill_receivers(const struct shape *shape, const char *topic, int rounds, enum um_shm_kind kind)
{
    struct um_rng rng;
    um_rng_seed(&rng, 1);
    lbm_context_t *ctx = net_context();
    struct sending s = {.src = make_source(ctx, topic, shape)};
    int fds = count_fds(), mappings = count_mappings(), received = 0;
    uint64_t slowest = 0;
    CHECK_EQ(pthread_create(&s.thread, NULL, send_for_ever, &s), 0);
    for (int i = 0; i < rounds; i++) {
        struct child c;
        child_start(&c, "receiver", shape, topic, 0);
        if (i % 2 == 0) {
            CHECK(grows(&c.report->data, 0));
        }
        usleep(random_us(&rng, 30000));
        received += atomic_load(&c.report->data) > 0;
        CHECK_EQ(atomic_load(&c.report->bad), 0);
        CHECK_EQ(atomic_load(&c.report->disordered), 0);
        uint64_t killed = um_clock_ns();
        child_kill(&c);
        unsigned long sent = atomic_load(&s.sent);
        CHECK(grows(&s.sent, sent + 2000)); /* more than the window: it does not wait for the dead */
        uint64_t took = um_clock_ns() - killed;
        slowest = took > slowest ? took : slowest;
        CHECK(clients_become(s.src, 0));
    }
    atomic_store(&s.stop, true);
    pthread_join(s.thread, NULL);
    fprintf(stderr, "%d receivers killed (%d had messages); the source was back after at most %llu ms\n", rounds,
            received, (unsigned long long)(slowest / UM_NS_PER_MS));
    CHECK(received >= rounds / 2);
    CHECK_EQ(atomic_load(&s.failures), 0);
    CHECK_EQ(count_mappings(), mappings);
    CHECK_EQ(count_fds(), fds);
    um_shm_reclaim_dead(kind);
    CHECK_EQ(um_test_shm_count(), 1); /* our segment */
    MUST(lbm_src_delete(s.src));
    MUST(lbm_context_delete(ctx));
    CHECK_EQ(um_test_shm_count(), 0);
}

TEST(receivers_killed_at_any_instant_do_not_hold_a_receiver_paced_source_up)
{
    TEST_NEEDS_NET();
    kill_receivers(&PACED_IPC, "kill/paced", soak() ? 1000 : 50, UM_SHM_IPC);
}

TEST(receivers_killed_at_any_instant_leave_nothing_at_a_source_paced_source)
{
    TEST_NEEDS_NET();
    kill_receivers(&IPC, "kill/unpaced", soak() ? 1000 : 20, UM_SHM_IPC);
}

static void kill_sources(const struct shape *shape, const char *topic, int rounds, enum um_shm_kind kind)
{
    struct um_rng rng;
    um_rng_seed(&rng, 2);
    struct report r = {0};
    lbm_context_t *ctx = net_context();
    lbm_rcv_t *rcv = make_receiver(ctx, topic, &r);
    int fds = 0, mappings = 0;
    uint64_t slowest = 0;
    for (int i = 0; i < rounds; i++) {
        struct child c;
        unsigned long before = atomic_load(&r.data), bos = atomic_load(&r.bos);
        child_start(&c, "source", shape, topic, 0);
        if (i % 2 == 0) {
            CHECK(grows(&r.data, before));
        }
        usleep(random_us(&rng, 30000));
        child_kill(&c);
        uint64_t killed = um_clock_ns(), until = killed + HANG_SECONDS * UM_NS_PER_SEC;
        do {
            usleep(1000);
        } while (atomic_load(&r.bos) != atomic_load(&r.eos) && um_clock_ns() < until);
        CHECK_EQ(atomic_load(&r.bos), atomic_load(&r.eos));
        CHECK(i % 2 != 0 || atomic_load(&r.bos) > bos);
        uint64_t took = um_clock_ns() - killed;
        slowest = took > slowest ? took : slowest;
        if (i == 0) { /* the receive thread and its object are there now */
            fds = count_fds();
            mappings = count_mappings();
        }
    }
    fprintf(stderr, "%d sources killed; EOS after at most %llu ms; %lu messages\n", rounds,
            (unsigned long long)(slowest / UM_NS_PER_MS), atomic_load(&r.data));
    CHECK_EQ(atomic_load(&r.bad), 0);
    CHECK_EQ(atomic_load(&r.disordered), 0);
    uint64_t until = um_clock_ns() + HANG_SECONDS * UM_NS_PER_SEC;
    while (count_fds() != fds && um_clock_ns() < until) { /* one that was killed before its first message */
        usleep(10000);
    }
    CHECK_EQ(count_mappings(), mappings);
    CHECK_EQ(count_fds(), fds);
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(ctx));
    um_shm_reclaim_dead(kind);
    CHECK_EQ(um_test_shm_count(), 0);
}

TEST(sources_killed_at_any_instant_end_in_eos_and_nothing_damaged_is_delivered)
{
    TEST_NEEDS_NET();
    kill_sources(&IPC, "kill/source", soak() ? 1000 : 50, UM_SHM_IPC);
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

/* As another user, in a child: try to reclaim what is dead, then start a source. Exit status 0: both went as they
 * must. */
static int other_user(const struct shape *shape, enum um_shm_kind kind)
{
    pid_t pid = um_test_fork();
    if (pid != 0) {
        int status;
        waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
    }
    struct um_shm_entry *list;
    if (setgid(65533) != 0 || setuid(65533) != 0) {
        _exit(10);
    }
    int count = um_shm_list(kind, &list);
    if (count != 1 || um_shm_reclaim(&list[0]) != -1 || um_errmsg()[0] == '\0') {
        _exit(11); /* it is not ours to remove, and this is said */
    }
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = make_source(ctx, "h3/again", shape); /* aborts when it cannot be made */
    lbm_src_delete(src);
    lbm_context_delete(ctx);
    _exit(0);
}

static void leftovers_of_another_user(const struct shape *shape, enum um_shm_kind kind)
{
    struct child c;
    int dead;
    child_start(&c, "source", shape, "h3/first", 65534);
    CHECK(grows(&c.report->created, 0));
    child_kill(&c);
    CHECK_EQ(entries(kind, &dead), 1);
    CHECK_EQ(dead + (geteuid() == 0 ? 0 : 1), 1);
    CHECK_EQ(other_user(shape, kind), 0);
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
    lbm_context_t *sctx = net_context(), *rctx = net_context();
    struct sending s = {.src = make_source(sctx, topic, shape)};
    lbm_rcv_t *rcv = make_receiver(rctx, topic, &r);
    CHECK_EQ(pthread_create(&s.thread, NULL, send_for_ever, &s), 0);
    CHECK(grows(&r.data, 0));
    snprintf(command, sizeof command, "rm -f %s/LBT*", um_shm_directory());
    CHECK_EQ(system(command), 0);
    usleep(2500000); /* both sides have looked after each other meanwhile */
    CHECK(grows(&r.data, atomic_load(&r.data) + 5000));
    CHECK_EQ(atomic_load(&r.eos), 0);
    CHECK_EQ(atomic_load(&r.lost) + atomic_load(&r.bad), 0);
    atomic_store(&s.stop, true);
    pthread_join(s.thread, NULL);
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

static void kill_and_restart(const struct shape *shape, enum um_shm_kind kind, int rounds)
{
    struct um_rng rng;
    um_rng_seed(&rng, 4);
    int failures = 0;
    uint64_t slowest = 0;
    for (int i = 0; i < rounds; i++) {
        struct child c;
        uint64_t begun = um_clock_ns();
        child_start(&c, i % 3 == 2 ? "receiver" : "source", shape, "h4", 0);
        if (i % 2 == 0) { /* every other one is killed while it sets up */
            failures += !grows(&c.report->created, 0);
            uint64_t took = um_clock_ns() - begun;
            slowest = took > slowest ? took : slowest;
        } else {
            usleep(random_us(&rng, 12000));
        }
        child_kill(&c);
    }
    fprintf(stderr, "%s: %d kills and restarts, %d failures, the slowest start took %llu ms\n", shape->transport,
            rounds, failures, (unsigned long long)(slowest / UM_NS_PER_MS));
    CHECK_EQ(failures, 0);
    lbm_context_t *ctx = net_context();
    lbm_src_t *src = make_source(ctx, "h4", shape);
    int dead;
    entries(kind, &dead);
    CHECK_EQ(dead, 0); /* creating a source has tidied up */
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(ctx));
    CHECK_EQ(um_test_shm_count(), 0);
}

TEST(h4_kill_and_restart_loops_do_not_fail_once)
{
    TEST_NEEDS_NET();
    int rounds = soak() ? 5000 : 100; /* of each transport */
    kill_and_restart(&IPC, UM_SHM_IPC, rounds);
    kill_and_restart(&SMX, UM_SHM_SMX, rounds);
}

static void stop_for_a_while(const struct child *c)
{
    kill(c->pid, SIGSTOP);
    usleep(soak() ? 30000000 : 2500000);
}

static void stop_receiver(const struct shape *shape, const char *topic, bool waits)
{
    struct child c;
    lbm_context_t *ctx = net_context();
    struct sending s = {.src = make_source(ctx, topic, shape)};
    child_start(&c, "receiver", shape, topic, 0);
    CHECK_EQ(pthread_create(&s.thread, NULL, send_for_ever, &s), 0);
    CHECK(grows(&c.report->data, 100));
    kill(c.pid, SIGSTOP);
    usleep(500000); /* the window is full by now, if it is to fill up */
    unsigned long sent = atomic_load(&s.sent), data = atomic_load(&c.report->data);
    stop_for_a_while(&c);
    if (waits) {
        CHECK(atomic_load(&s.sent) - sent < 10); /* it is waited for: stopped is not dead */
        CHECK_EQ(clients_of(s.src), 1);
    } else {
        CHECK(atomic_load(&s.sent) - sent > 2000);
    }
    kill(c.pid, SIGCONT);
    CHECK(grows(&s.sent, atomic_load(&s.sent) + 2000));
    CHECK(grows(&c.report->data, data + 2000));
    CHECK_EQ(atomic_load(&c.report->bad) + atomic_load(&c.report->disordered), 0);
    CHECK_EQ(atomic_load(&c.report->eos), 0);
    if (waits) {
        CHECK_EQ(atomic_load(&c.report->lost), 0);
    } else {
        CHECK(atomic_load(&c.report->lost) > 0);
    }
    atomic_store(&s.stop, true);
    child_kill(&c);
    pthread_join(s.thread, NULL);
    MUST(lbm_src_delete(s.src));
    MUST(lbm_context_delete(ctx));
}

TEST(h5_a_stopped_receiver_costs_only_itself_or_is_waited_for)
{
    TEST_NEEDS_NET();
    stop_receiver(&IPC, "h5/ipc", false);
    stop_receiver(&PACED_IPC, "h5/ipc/paced", true);
    stop_receiver(&SMX, "h5/smx", true);
}

static void stop_source(const struct shape *shape, const char *topic)
{
    struct child c;
    struct report r = {0};
    lbm_context_t *ctx = net_context();
    lbm_rcv_t *rcv = make_receiver(ctx, topic, &r);
    child_start(&c, "source", shape, topic, 0);
    CHECK(grows(&r.data, 100));
    stop_for_a_while(&c);
    unsigned long data = atomic_load(&r.data);
    CHECK_EQ(atomic_load(&r.eos), 0);
    kill(c.pid, SIGCONT);
    CHECK(grows(&r.data, data + 2000));
    CHECK_EQ(atomic_load(&r.eos) + atomic_load(&r.lost) + atomic_load(&r.bad), 0);
    child_kill(&c);
    CHECK(grows(&r.eos, 0));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_context_delete(ctx));
}

TEST(h5_a_stopped_source_does_not_end_its_session)
{
    TEST_NEEDS_NET();
    stop_source(&IPC, "h5/source/ipc");
    stop_source(&SMX, "h5/source/smx");
}
