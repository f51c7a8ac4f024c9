/* A program with sessions of every transport forks while messages flow: its child executes another program, ends, or
 * tries what it inherited. The parent's sessions go on, nothing of theirs is removed, left or kept by the child, and
 * the child can make contexts of its own. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include <lbm/um.h>

#include "base/um_mem.h"
#include "transport/shm/um_shm_segment.h"
#include "um_test_child.h"
#include "um_test_rcv.h"
#include "um_test_shm.h"

#define TRANSPORTS 5

static const char *const TRANSPORT[TRANSPORTS] = {"tcp", "lbt-rm", "lbt-ru", "lbt-ipc", "lbt-smx"};

static int errors_only(int level, const char *message, void *clientd)
{
    return level <= LBM_LOG_ERR ? fprintf(stderr, "%s\n", message) : 0;
}

/* ---- a program with a source and a receiver of each transport ---- */

struct flow {
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    atomic_ulong data, bos, eos, other, wrong;
    uint64_t expected; /* [receiving thread] */
};

struct program {
    lbm_context_t *sending, *receiving;
    struct flow flows[TRANSPORTS];
    pthread_t thread;
    atomic_bool stop;
    atomic_ulong failures;
};

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct flow *flow = clientd;
    uint64_t number = 0;
    switch (msg->type) {
    case LBM_MSG_DATA:
        memcpy(&number, msg->data, msg->len < sizeof number ? msg->len : sizeof number);
        if (number != flow->expected && flow->expected != 0) {
            atomic_fetch_add(&flow->wrong, 1);
        }
        flow->expected = number + 1;
        atomic_fetch_add(&flow->data, 1);
        break;
    case LBM_MSG_BOS:
        atomic_fetch_add(&flow->bos, 1);
        break;
    case LBM_MSG_EOS:
        atomic_fetch_add(&flow->eos, 1);
        break;
    default:
        atomic_fetch_add(&flow->other, 1);
        break;
    }
    return 0;
}

static lbm_src_t *source_over(lbm_context_t *ctx, const char *topic_name, const char *transport)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport_lbtipc_behavior", "receiver_paced"));
    MUST(lbm_src_topic_alloc(&topic, ctx, topic_name, attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    return src;
}

static void *send_always(void *arg)
{
    struct program *p = arg;
    for (uint64_t n = 1; !atomic_load(&p->stop); n++) {
        for (int i = 0; i < TRANSPORTS; i++) {
            int rc = lbm_src_send(p->flows[i].src, (const char *)&n, sizeof n, LBM_MSG_FLUSH | LBM_SRC_BLOCK);
            atomic_fetch_add(&p->failures, rc != 0);
        }
        usleep(500);
    }
    return NULL;
}

static void topic_of(char *out, size_t size, const char *prefix, int transport)
{
    snprintf(out, size, "%s/%s", prefix, TRANSPORT[transport]);
}

static void flows_make(struct program *p, const char *prefix)
{
    char topic[64];
    p->sending = net_lean_context();
    p->receiving = net_lean_context();
    for (int i = 0; i < TRANSPORTS; i++) {
        topic_of(topic, sizeof topic, prefix, i);
        p->flows[i].src = source_over(p->sending, topic, TRANSPORT[i]);
        p->flows[i].rcv = net_receiver(p->receiving, topic, NULL, on_message, &p->flows[i], NULL);
    }
}

static void flows_delete(struct program *p)
{
    for (int i = 0; i < TRANSPORTS; i++) {
        MUST(lbm_rcv_delete(p->flows[i].rcv));
        MUST(lbm_src_delete(p->flows[i].src));
    }
    MUST(lbm_context_delete(p->receiving));
    MUST(lbm_context_delete(p->sending));
}

/* Each transport delivers so many messages more. */
static bool all_flow(struct program *p, unsigned long more)
{
    unsigned long before[TRANSPORTS];
    for (int i = 0; i < TRANSPORTS; i++) {
        before[i] = atomic_load(&p->flows[i].data);
    }
    for (int i = 0; i < TRANSPORTS; i++) {
        for (int ms = 0; atomic_load(&p->flows[i].data) < before[i] + more; ms++) {
            if (ms == HANG_SECONDS * 1000) {
                fprintf(stderr, "%s: no more messages\n", TRANSPORT[i]);
                return false;
            }
            usleep(1000);
        }
    }
    return true;
}

static void program_start(struct program *p)
{
    memset(p, 0, sizeof *p);
    lbm_log(errors_only, NULL);
    flows_make(p, "fork");
    if (pthread_create(&p->thread, NULL, send_always, p) != 0) {
        abort();
    }
}

static void program_stop(struct program *p)
{
    atomic_store(&p->stop, true);
    pthread_join(p->thread, NULL);
    flows_delete(p);
}

/* Every message once and in order, and no session ended or began anew. */
static bool unharmed(struct program *p)
{
    bool good = atomic_load(&p->failures) == 0;
    for (int i = 0; i < TRANSPORTS; i++) {
        struct flow *f = &p->flows[i];
        unsigned long bos = atomic_load(&f->bos), eos = atomic_load(&f->eos), other = atomic_load(&f->other),
                      wrong = atomic_load(&f->wrong);
        if (bos != 1 || eos + other + wrong != 0) {
            fprintf(stderr, "%s: %lu BOS, %lu EOS, %lu losses, %lu out of order\n", TRANSPORT[i], bos, eos, other,
                    wrong);
            good = false;
        }
    }
    return good;
}

/* ---- what the process holds ---- */

/* Segments whose owner's lock is held. */
static int living_segments(void)
{
    int living = 0;
    for (int kind = UM_SHM_IPC; kind <= UM_SHM_SMX; kind++) {
        struct um_shm_entry *list;
        int count = um_shm_list((enum um_shm_kind)kind, &list);
        for (int i = 0; i < count; i++) {
            living += list[i].alive;
        }
        um_free(list);
    }
    return living;
}

/* Lines of a table of the kernel for this network that count. */
static int lines_of(const char *path, bool (*counts)(const char *line))
{
    char line[512];
    int count = 0;
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        count += counts(line);
    }
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

static bool is_group(const char *line)
{
    return strncmp(line, "\t\t\t\t", 4) == 0;
}

/* Nobody holds a socket in TIME_WAIT. */
static bool is_socket(const char *line)
{
    unsigned state;
    return sscanf(line, "%*d: %*s %*s %x", &state) == 1 && state != TCP_TIME_WAIT;
}

static int groups(void)
{
    return lines_of("/proc/thread-self/net/igmp", is_group);
}

static int tcp_sockets(void)
{
    return lines_of("/proc/thread-self/net/tcp", is_socket);
}

static int udp_sockets(void)
{
    return lines_of("/proc/thread-self/net/udp", is_socket);
}

static int open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = -1; /* the directory itself */
    for (struct dirent *e; directory != NULL && (e = readdir(directory)) != NULL;) {
        count += e->d_name[0] != '.';
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return count;
}

/* ---- children ---- */

/* The exit status of a child that does `play`; whoever hangs is ended by a signal. */
static pid_t child_that(int (*play)(struct program *p), struct program *p)
{
    pid_t pid = fork();
    if (pid == 0) {
        alarm(10 * HANG_SECONDS);
        _exit(play(p));
    }
    return pid;
}

static int end_of(pid_t pid)
{
    return um_test_child_end(pid);
}

static int just_ends(struct program *p)
{
    return 0;
}

static int ends_with_handlers(struct program *p)
{
    exit(0);
}

/* "descriptors": how many there may be */
ROLE(other_program)
{
    return open_descriptors() <= atoi(text) ? 0 : 1;
}

/* Says which call did not refuse. */
static bool refused(const char *call, int rc)
{
    bool good = rc == -1 && lbm_errnum() == LBM_EINVAL && strstr(lbm_errmsg(), "fork") != NULL;
    if (!good) {
        fprintf(stderr, "%s in a child: %d, %s\n", call, rc, rc == -1 ? lbm_errmsg() : "");
    }
    return good;
}

static int never_called(lbm_context_t *ctx, const void *clientd)
{
    return 0;
}

#define REFUSED(call) (good = refused(#call, (call)) && good)

/* Every call on what is the parent's fails with a text that says why; nothing waits. */
static int uses_what_it_inherited(struct program *p)
{
    bool good = true;
    lbm_context_stats_t stats;
    um_context_stats_t um_stats;
    um_src_stats_t src_stats;
    lbm_topic_t *topic;
    lbm_src_t *src;
    lbm_rcv_t *rcv;
    void *buffer;
    for (int i = 0; i < TRANSPORTS; i++) {
        lbm_src_t *inherited = p->flows[i].src;
        struct iovec piece = {"x", 1};
        REFUSED(lbm_src_send(inherited, "x", 1, LBM_SRC_BLOCK));
        REFUSED(lbm_src_sendv(inherited, (lbm_iovec_t *)&piece, 1, LBM_SRC_BLOCK));
        REFUSED(lbm_src_flush(inherited));
        REFUSED(um_src_stats(inherited, &src_stats));
        REFUSED(um_src_wait_receivers(inherited, 9, 1000));
        REFUSED(lbm_src_delete(inherited));
        REFUSED(um_rcv_wait_ready(p->flows[i].rcv, 9, 1000));
        REFUSED(lbm_rcv_delete(p->flows[i].rcv));
    }
    REFUSED(lbm_src_buff_acquire(p->flows[4].src, &buffer, 8, 0));
    REFUSED(lbm_src_buffs_complete(p->flows[4].src));
    REFUSED(lbm_context_retrieve_stats(p->sending, &stats));
    REFUSED(um_context_stats(p->receiving, &um_stats));
    REFUSED(lbm_src_topic_alloc(&topic, p->sending, "fork/new", NULL));
    REFUSED(lbm_rcv_topic_lookup(&topic, p->receiving, "fork/new", NULL));
    REFUSED(lbm_src_create(&src, p->sending, NULL, NULL, NULL, NULL));
    REFUSED(lbm_rcv_create(&rcv, p->receiving, NULL, on_message, NULL, NULL));
    REFUSED(lbm_schedule_timer(p->sending, never_called, NULL, NULL, 1));
    REFUSED(lbm_context_process_events(p->sending, 1));
    REFUSED(lbm_context_delete(p->sending));
    REFUSED(lbm_context_delete(p->receiving));
    return good ? 0 : 1;
}

/* Messages over every transport between two contexts of the child. */
static int works_for_itself(struct program *p)
{
    static struct program own;
    char prefix[32];
    memset(&own, 0, sizeof own);
    snprintf(prefix, sizeof prefix, "child/%d", (int)getpid());
    flows_make(&own, prefix);
    for (int i = 0; i < TRANSPORTS; i++) {
        uint64_t number = 1;
        for (int ms = 0; atomic_load(&own.flows[i].data) == 0;
             ms++, number++) { /* LBT-RM does not know its receivers */
            if (ms == HANG_SECONDS * 1000) {
                return 2;
            }
            MUST(lbm_src_send(own.flows[i].src, (const char *)&number, sizeof number, LBM_MSG_FLUSH));
            usleep(1000);
        }
    }
    flows_delete(&own);
    return 0;
}

/* ---- tests ---- */

static void fork_often(int (*play)(struct program *p), int times)
{
    struct program p;
    program_start(&p);
    CHECK(all_flow(&p, 20));
    int segments = um_test_shm_count(), living = living_segments(), joined = groups(), fds = open_descriptors();
    CHECK(living >= 2);
    for (int i = 0; i < times; i++) {
        CHECK_EQ(end_of(child_that(play, &p)), 0);
        CHECK(all_flow(&p, 5));
    }
    CHECK_EQ(um_test_shm_count(), segments);
    CHECK_EQ(living_segments(), living);
    CHECK_EQ(groups(), joined);
    CHECK_EQ(open_descriptors(), fds);
    CHECK(all_flow(&p, 500));
    CHECK(unharmed(&p));
    program_stop(&p);
    CHECK_EQ(um_test_shm_count(), 0);
}

TEST(children_that_end_at_once_leave_the_sessions_of_their_parent_alone)
{
    TEST_NEEDS_NET();
    fork_often(just_ends, UM_TEST_SANITIZED ? 10 : 50);
}

TEST(children_that_run_their_exit_handlers_do_so_too)
{
    TEST_NEEDS_NET();
    if (UM_TEST_SANITIZED) {
        TEST_SKIP("the sanitizers' own exit handlers need threads that a child of fork() does not have");
    }
    fork_often(ends_with_handlers, 20);
}

TEST(a_child_that_executes_another_program_takes_no_descriptor_along)
{
    TEST_NEEDS_NET();
    struct program p;
    int before = open_descriptors();
    program_start(&p);
    CHECK(all_flow(&p, 20));
    CHECK(open_descriptors() > before + 10);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(um_test_child_end(um_test_child("other_program", NULL, 0, "%d", before)), 0);
        CHECK(all_flow(&p, 5));
    }
    CHECK(all_flow(&p, 500));
    CHECK(unharmed(&p));
    program_stop(&p);
    CHECK_EQ(um_test_shm_count(), 0);
}

TEST(what_a_child_inherited_refuses_every_call_and_stays_as_it_is)
{
    TEST_NEEDS_NET();
    fork_often(uses_what_it_inherited, 10);
}

TEST(a_child_works_with_contexts_of_its_own)
{
    TEST_NEEDS_NET();
    if (UM_TEST_SANITIZED) {
        TEST_SKIP("allocators of the sanitizers do not survive a fork while threads run");
    }
    fork_often(works_for_itself, 10);
}

/* Threads that are often inside the process-wide locks, and one that waits under one. */
static void *log_always(void *arg)
{
    const struct program *p = arg;
    while (!atomic_load(&p->stop)) {
        lbm_logf(LBM_LOG_DEBUG, "busy");
    }
    return NULL;
}

static void *wait_in_vain(void *arg)
{
    const struct program *p = arg;
    while (!atomic_load(&p->stop)) {
        (void)um_src_wait_receivers(p->flows[0].src, 9, 50);
    }
    return NULL;
}

static int uses_the_locks(struct program *p)
{
    lbm_logf(LBM_LOG_DEBUG, "child");
    lbm_context_t *ctx = net_lean_context();
    lbm_src_t *src = source_over(ctx, "fork/locks", "tcp");
    lbm_rcv_t *rcv = net_receiver(ctx, "fork/locks", NULL, on_message, &p->flows[0], NULL);
    int rc = um_src_wait_receivers(src, 1, HANG_SECONDS * 1000);
    return rc == 0 && lbm_rcv_delete(rcv) == 0 && lbm_src_delete(src) == 0 && lbm_context_delete(ctx) == 0 ? 0 : 1;
}

TEST(a_child_finds_no_lock_taken_by_a_thread_of_its_parent)
{
    TEST_NEEDS_NET();
    if (UM_TEST_SANITIZED) {
        TEST_SKIP("allocators of the sanitizers do not survive a fork while threads run");
    }
    struct program p = {0};
    pthread_t busy[2], waiting;
    lbm_log(errors_only, NULL);
    lbm_context_t *ctx = net_lean_context();
    p.flows[0].src = source_over(ctx, "fork/nobody", "tcp");
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&busy[i], NULL, log_always, &p), 0);
    }
    CHECK_EQ(pthread_create(&waiting, NULL, wait_in_vain, &p), 0);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(end_of(child_that(uses_the_locks, &p)), 0);
    }
    atomic_store(&p.stop, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(busy[i], NULL);
    }
    pthread_join(waiting, NULL);
    MUST(lbm_src_delete(p.flows[0].src));
    MUST(lbm_context_delete(ctx));
}

/* The child lives on, as a worker of a pool does: what its parent gives up is given up. */
static int lives_on(struct program *p)
{
    return pause();
}

TEST(a_child_that_lives_on_keeps_nothing_its_parent_gives_up)
{
    TEST_NEEDS_NET();
    struct program p;
    int joined = groups(), tcp = tcp_sockets(), udp = udp_sockets();
    program_start(&p);
    CHECK(all_flow(&p, 20));
    CHECK(groups() > joined && tcp_sockets() > tcp && udp_sockets() > udp);
    pid_t child = child_that(lives_on, &p);
    CHECK(all_flow(&p, 20));
    CHECK(unharmed(&p));
    program_stop(&p);
    for (int i = 0; i < HANG_SECONDS * 100 && tcp_sockets() > tcp; i++) { /* a connection ends in its own time */
        usleep(10000);
    }
    int left_groups = groups() - joined, left_tcp = tcp_sockets() - tcp, left_udp = udp_sockets() - udp;
    int left_segments = um_test_shm_count();
    um_test_child_kill(child);
    CHECK_EQ(left_groups, 0);
    CHECK_EQ(left_udp, 0);
    CHECK_EQ(left_tcp, 0);
    CHECK_EQ(left_segments, 0);
}

/* ---- the first start-up ---- */

static void *make_attributes(void *arg)
{
    lbm_context_attr_t *attr;
    bool good = lbm_context_attr_create(&attr) == 0 && lbm_context_attr_delete(attr) == 0;
    atomic_store((atomic_bool *)arg, good);
    return NULL;
}

static int starts_anew(void)
{
    atomic_bool good = false;
    unsetenv("LBM_DEFAULT_CONFIG_FILE");
    make_attributes(&good);
    if (UM_TEST_SANITIZED) {
        return good ? 0 : 1; /* their children of fork() may start no threads */
    }
    lbm_context_t *ctx = good ? net_lean_context() : NULL;
    return ctx != NULL && lbm_context_delete(ctx) == 0 ? 0 : 1;
}

/* text: a pipe with a name, to be the configuration file. The start-up waits in it for its contents. */
ROLE(forks_in_start_up)
{
    pthread_t thread;
    atomic_bool good = false;
    if (!um_test_net_private()) {
        return 77;
    }
    setenv("LBM_DEFAULT_CONFIG_FILE", text, 1);
    if (pthread_create(&thread, NULL, make_attributes, &good) != 0) {
        return 2;
    }
    int fd = open(text, O_WRONLY | O_CLOEXEC); /* returns when the other thread has opened it */
    pid_t pid = fork();
    if (pid == 0) {
        alarm(HANG_SECONDS);
        _exit(starts_anew());
    }
    int end = um_test_child_end(pid);
    bool written = write(fd, "# nothing\n", 10) == 10;
    close(fd);
    pthread_join(thread, NULL);
    return end != 0 ? end : written && good ? 0 : 3;
}

static const char *temporary_name(const char *what)
{
    static char name[128];
    snprintf(name, sizeof name, "/tmp/um_fork_test_%d_%s", (int)getpid(), what);
    return name;
}

TEST(f16_a_child_that_was_forked_during_the_first_start_up_starts_by_itself)
{
    const char *name = temporary_name("pipe");
    CHECK_EQ(mkfifo(name, 0600), 0);
    int end = um_test_child_end(um_test_child("forks_in_start_up", NULL, 0, "%s", name));
    unlink(name);
    if (end == 77) {
        TEST_SKIP("needs permission to make a network namespace (CAP_SYS_ADMIN)");
    }
    CHECK_EQ(end, 0);
}

static int calls_and_forks(int level, const char *message, void *clientd)
{
    atomic_int *calls = clientd;
    atomic_bool good = false;
    make_attributes(&good);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    atomic_fetch_add(calls, good && um_test_child_end(pid) == 0 ? 1 : 100);
    return 0;
}

/* The interval is an option of two scopes: three lines in the log. */
ROLE(starts_with_a_talkative_log)
{
    atomic_int calls = 0;
    atomic_bool good = false;
    alarm(HANG_SECONDS);
    setenv("LBM_MONITOR_INTERVAL", "often", 1);
    setenv("LBM_UMM_INFO", "x", 1);
    lbm_log(calls_and_forks, &calls);
    make_attributes(&good);
    return good && calls == 3 ? 0 : 1;
}

TEST(f16_a_log_callback_of_the_start_up_may_call_the_library_and_fork)
{
    CHECK_EQ(um_test_child_end(um_test_child("starts_with_a_talkative_log", NULL, 0, "-")), 0);
}

/* ---- collectors ---- */

static struct {
    um_collector_t *collector;
    int fd;
} inherited;

static int uses_an_inherited_collector(struct program *p)
{
    bool good = fcntl(inherited.fd, F_GETFD) == -1; /* else its number is kept, and the parent's readiness with it */
    um_collector_stats_t stats;
    um_batch_t *batch;
    REFUSED(um_collector_take(inherited.collector, 1, 0, &batch));
    REFUSED(um_collector_fd(inherited.collector));
    REFUSED(um_collector_wake(inherited.collector));
    REFUSED(um_collector_keep_readable(inherited.collector, 1));
    REFUSED(um_collector_see_numbers(inherited.collector));
    REFUSED(um_collector_stats(inherited.collector, &stats));
    REFUSED(um_collector_delete(inherited.collector));
    return good ? 0 : 1;
}

TEST(a_child_holds_nothing_of_a_collector_of_its_parent)
{
    um_batch_t *batch;
    MUST(um_collector_create(&inherited.collector, 0));
    inherited.fd = um_collector_fd(inherited.collector);
    CHECK(inherited.fd >= 0);
    CHECK_EQ(end_of(child_that(uses_an_inherited_collector, NULL)), 0);
    CHECK(fcntl(inherited.fd, F_GETFD) != -1);
    CHECK_EQ(um_collector_take(inherited.collector, 1, 0, &batch), 0);
    MUST(um_collector_delete(inherited.collector));
    CHECK_EQ(fcntl(inherited.fd, F_GETFD), -1);
}
