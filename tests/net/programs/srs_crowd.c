/* A crowd of contexts resolved by the daemon srs, which is killed and restarted meanwhile; for
 * tests/net/test_srs_crowd.py and benchmarks/bench_srs.py, in a network namespace of its own.
 *
 *   srs_crowd SRS PROCESSES CONTEXTS TOPICS OUTAGE_MS    CONTEXTS and TOPICS: of each process, of each context
 *   srs_crowd multicast PROCESSES CONTEXTS TOPICS STAY_MS   without a server; stays so long after the resolution
 *
 * Each context has TOPICS sources, and receivers of all topics of the next one. When every receiver has heard the
 * beginning of its session, SRS is killed. While it is away each context gets one more source, a receiver of the one
 * that the next context gets, and a receiver of an old topic; and a newcomer comes who wants to be told of every source
 * there is. Prints a line of JSON; "segments" are the TCP segments that the server got and sent until all was resolved,
 * "datagrams" those that were sent in the namespace until then, "all_datagrams" with those sent while it stayed, and
 * "all_packets" what these are on an Ethernet. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <lbm/lbm.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES_MAX 64
#define CONTEXTS_MAX 512
#define HANG_SECONDS 1200.0 /* stretched tests end themselves before */

enum phase { PHASE_CONTEXTS, PHASE_TOPICS, PHASE_LATE, PHASE_END };

/* Between the processes. */
struct shared {
    atomic_int phase; /* begun by the parent */
    atomic_int ready; /* processes that have done what the phase asks */
    atomic_int failed;
    atomic_int resolved, late_resolved; /* receivers that heard a beginning */
    atomic_int ended;                   /* receivers that heard an end */
    atomic_int told;                    /* different topics that the newcomer was told of */
    atomic_uchar topics_told[];
};

static struct shared *shared;
static int processes, contexts, topics; /* contexts: of a process */
static const char *srs;                 /* NULL: by multicast */
static uint16_t port;

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void nap(unsigned milliseconds)
{
    struct timespec ts = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
    nanosleep(&ts, NULL);
}

static void check(int rc, const char *what)
{
    if (rc != 0) {
        fprintf(stderr, "%s: %s\n", what, lbm_errmsg());
        atomic_store(&shared->failed, 1);
        _exit(3);
    }
}

static int all_contexts(void)
{
    return processes * contexts;
}

/* ---- contexts ---- */

static int quiet(int level, const char *message, void *clientd)
{
    if (level <= LBM_LOG_ERR) {
        fprintf(stderr, "%s\n", message);
    }
    return 0;
}

static lbm_context_attr_t *make_attr(void)
{
    static const char *const options[][2] = {
        {"default_interface", "127.0.0.1"}, {"request_tcp_bind_request_port", "0"},
        {"transport_tcp_port_low", "0"},    {"transport_tcp_port_high", "0"},
        {"resolver_multicast_ttl", "0"},    {"resolver_multicast_interface", "127.0.0.1"},
    };
    lbm_context_attr_t *attr;
    char text[32];
    check(lbm_context_attr_create(&attr), "lbm_context_attr_create");
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        check(lbm_context_attr_str_setopt(attr, options[i][0], options[i][1]), options[i][0]);
    }
    if (srs != NULL) {
        snprintf(text, sizeof text, "127.0.0.1:%u", port);
        check(lbm_context_attr_str_setopt(attr, "resolver_service", text), "resolver_service");
        check(lbm_context_attr_str_setopt(attr, "resolver_disable_udp_topic_resolution", "1"), "without datagrams");
    }
    return attr;
}

static void make_source(lbm_context_t *ctx, int context, int topic)
{
    char name[64];
    lbm_topic_t *handle;
    lbm_src_t *src;
    snprintf(name, sizeof name, "crowd/%d/%d", context % all_contexts(), topic);
    check(lbm_src_topic_alloc(&handle, ctx, name, NULL), "lbm_src_topic_alloc");
    check(lbm_src_create(&src, ctx, handle, NULL, NULL, NULL), "lbm_src_create");
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *counter)
{
    if (msg->type == LBM_MSG_BOS) {
        atomic_fetch_add((atomic_int *)counter, 1);
    } else if (msg->type == LBM_MSG_EOS) {
        atomic_fetch_add(&shared->ended, 1);
    }
    return 0;
}

static void make_receiver(lbm_context_t *ctx, int context, int topic, atomic_int *counter)
{
    char name[64];
    lbm_topic_t *handle;
    lbm_rcv_t *rcv;
    snprintf(name, sizeof name, "crowd/%d/%d", context % all_contexts(), topic);
    check(lbm_rcv_topic_lookup(&handle, ctx, name, NULL), "lbm_rcv_topic_lookup");
    check(lbm_rcv_create(&rcv, ctx, handle, on_message, counter, NULL), "lbm_rcv_create");
}

static void wait_phase(enum phase phase)
{
    while (atomic_load(&shared->phase) < (int)phase) {
        if (getppid() == 1 || atomic_load(&shared->failed) != 0) {
            _exit(4);
        }
        nap(2);
    }
}

/* One of the processes; its contexts are first .. first + contexts - 1. Its end ends them. */
static void run_process(int first)
{
    static lbm_context_t *ctx[CONTEXTS_MAX];
    lbm_log(quiet, NULL);
    for (int i = 0; i < contexts; i++) {
        lbm_context_attr_t *attr = make_attr();
        check(lbm_context_create(&ctx[i], attr, NULL, NULL), "lbm_context_create");
        lbm_context_attr_delete(attr);
    }
    atomic_fetch_add(&shared->ready, 1);
    wait_phase(PHASE_TOPICS);
    for (int i = 0; i < contexts; i++) {
        for (int topic = 0; topic < topics; topic++) {
            make_source(ctx[i], first + i, topic);
        }
        for (int topic = 0; topic < topics; topic++) {
            make_receiver(ctx[i], first + i + 1, topic, &shared->resolved);
        }
    }
    atomic_fetch_add(&shared->ready, 1);
    wait_phase(PHASE_LATE);
    for (int i = 0; i < contexts; i++) {
        make_source(ctx[i], first + i, topics);
        make_receiver(ctx[i], first + i + 1, topics, &shared->late_resolved);
        make_receiver(ctx[i], first + i + 2, 0, &shared->late_resolved);
    }
    atomic_fetch_add(&shared->ready, 1);
    wait_phase(PHASE_END);
    _exit(0);
}

/* ---- the newcomer ---- */

static int on_notification(const char *topic, const char *source, void *clientd)
{
    int context, number;
    if (sscanf(topic, "crowd/%d/%d", &context, &number) == 2 && context >= 0 && context < all_contexts() &&
        number >= 0 && number <= topics) {
        size_t at = (size_t)context * (size_t)(topics + 1) + (size_t)number;
        if (atomic_exchange(&shared->topics_told[at], 1) == 0) {
            atomic_fetch_add(&shared->told, 1);
        }
    }
    return 0;
}

static void run_newcomer(void)
{
    lbm_src_notify_func_t notify = {.notifyfunc = on_notification};
    lbm_context_t *ctx;
    lbm_log(quiet, NULL);
    wait_phase(PHASE_LATE);
    lbm_context_attr_t *attr = make_attr();
    check(lbm_context_attr_str_setopt(attr, "resolver_service_interest_mode", "flood"), "interest mode");
    check(lbm_context_attr_setopt(attr, "resolver_source_notification_function", &notify, sizeof notify), "notify");
    check(lbm_context_create(&ctx, attr, NULL, NULL), "lbm_context_create");
    lbm_context_attr_delete(attr);
    atomic_fetch_add(&shared->ready, 1);
    wait_phase(PHASE_END);
    _exit(0);
}

/* ---- the server ---- */

static pid_t server;

static void choose_port(char config[64])
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof own;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    snprintf(config, 64, "/tmp/srs_crowd_XXXXXX");
    int file = mkstemp(config);
    FILE *out = file < 0 ? NULL : fdopen(file, "w");
    if (fd < 0 || out == NULL || bind(fd, (struct sockaddr *)&own, len) != 0 ||
        getsockname(fd, (struct sockaddr *)&own, &len) != 0) {
        perror("port and configuration of srs");
        exit(1);
    }
    port = ntohs(own.sin_port);
    close(fd);
    fprintf(out, "<um-srs><srs><interface>127.0.0.1</interface><port>%u</port></srs></um-srs>\n", port);
    fclose(out);
}

static bool listens(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool connected = connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
    close(fd);
    return connected;
}

/* Returns when it listens. */
static void start_server(const char *config)
{
    server = fork();
    if (server == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDOUT_FILENO);
        execl(srs, srs, config, (char *)NULL);
        _exit(127);
    }
    while (!listens()) {
        if (server < 0 || waitpid(server, NULL, WNOHANG) != 0) {
            fprintf(stderr, "%s does not start\n", srs);
            atomic_store(&shared->failed, 1);
            server = 0;
            return;
        }
        nap(1);
    }
}

static void stop_server(int number)
{
    if (server > 0) {
        kill(server, number);
        waitpid(server, NULL, 0);
        server = 0;
    }
}

/* Segments and bytes that the server got and sent, of the connections that are there. */
static void count_segments(double *segments, double *bytes)
{
    char command[128], word[128];
    snprintf(command, sizeof command, "ss -tinH sport = :%u", port);
    FILE *in = popen(command, "r");
    *segments = *bytes = 0;
    while (in != NULL && fscanf(in, "%127s", word) == 1) {
        double value = 0;
        if (sscanf(word, "segs_out:%lf", &value) == 1 || sscanf(word, "segs_in:%lf", &value) == 1) {
            *segments += value;
        } else if (sscanf(word, "bytes_sent:%lf", &value) == 1 || sscanf(word, "bytes_received:%lf", &value) == 1) {
            *bytes += value;
        }
    }
    if (in != NULL) {
        pclose(in);
    }
}

static double server_seconds(void)
{
    char path[64];
    double user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)server);
    FILE *in = fopen(path, "r");
    if (in != NULL) {
        if (fscanf(in, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lf %lf", &user, &system) != 2) {
            user = system = 0;
        }
        fclose(in);
    }
    return (user + system) / (double)sysconf(_SC_CLK_TCK);
}

struct sent {
    double datagrams, packets; /* packets: large datagrams are several */
};

/* By UDP in this network namespace, so far. */
static struct sent sent_so_far(void)
{
    char line[1024];
    double datagrams = 0, fragmented = 0, fragments = 0;
    FILE *in = fopen("/proc/net/snmp", "r");
    while (in != NULL && fgets(line, sizeof line, in) != NULL) {
        if (sscanf(line, "Udp: %*f %*f %*f %lf", &datagrams) != 1) {
            sscanf(line, "Ip: %*f %*f %*f %*f %*f %*f %*f %*f %*f %*f %*f %*f %*f %*f %*f %*f %lf %*f %lf", &fragmented,
                   &fragments);
        }
    }
    if (in != NULL) {
        fclose(in);
    }
    return (struct sent){datagrams, datagrams - fragmented + fragments};
}

/* ---- the course of events ---- */

static pid_t children[PROCESSES_MAX + 1];
static int child_count;

static void spawn(int first, bool newcomer)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (newcomer) {
            run_newcomer();
        }
        run_process(first);
    }
    children[child_count++] = pid;
}

static void end_all(void)
{
    atomic_store(&shared->phase, PHASE_END);
    for (int i = 0; i < child_count; i++) {
        if (atomic_load(&shared->failed) != 0) {
            kill(children[i], SIGKILL);
        }
        waitpid(children[i], NULL, 0);
    }
    stop_server(SIGKILL);
}

/* Seconds since `began` when the counter reached `wanted`. */
static double wait_for(const atomic_int *counter, int wanted, double began, const char *what)
{
    while (atomic_load(counter) < wanted) {
        if (atomic_load(&shared->failed) != 0 || now() - began > HANG_SECONDS) {
            fprintf(stderr, "%s: %d of %d\n", what, atomic_load(counter), wanted);
            atomic_store(&shared->failed, 1);
            end_all();
            exit(1);
        }
        nap(2);
    }
    return now() - began;
}

static void begin_phase(enum phase phase)
{
    atomic_store(&shared->ready, 0);
    atomic_store(&shared->phase, phase);
}

static void print_resolution(unsigned stay_ms)
{
    double began = now(), segments = 0, bytes = 0;
    struct sent before = sent_so_far();
    begin_phase(PHASE_TOPICS);
    double created = wait_for(&shared->ready, processes, began, "processes with their topics");
    double resolved = wait_for(&shared->resolved, all_contexts() * topics, began, "receivers with their source");
    if (srs != NULL) {
        count_segments(&segments, &bytes);
    }
    double datagrams = sent_so_far().datagrams - before.datagrams;
    if (srs == NULL) {
        nap(stay_ms);
    }
    struct sent after = sent_so_far();
    printf("{\"contexts\": %d, \"topics\": %d, \"created_s\": %.3f, \"resolved_s\": %.3f, \"segments\": %.0f, "
           "\"bytes\": %.0f, \"server_s\": %.2f, \"datagrams\": %.0f, \"all_datagrams\": %.0f, \"all_packets\": %.0f",
           all_contexts(), all_contexts() * topics, created, resolved, segments, bytes,
           srs != NULL ? server_seconds() : 0, datagrams, after.datagrams - before.datagrams,
           after.packets - before.packets);
}

static void print_outage(const char *config, unsigned outage_ms)
{
    stop_server(SIGKILL);
    double gone = now();
    begin_phase(PHASE_LATE);
    wait_for(&shared->ready, processes + 1, gone, "processes with late topics");
    while ((now() - gone) * 1000 < outage_ms) {
        nap(1);
    }
    int early = atomic_load(&shared->late_resolved) + atomic_load(&shared->told);
    start_server(config);
    double back = now();
    double late = wait_for(&shared->late_resolved, 2 * all_contexts(), back, "late receivers with their source");
    double told = wait_for(&shared->told, all_contexts() * (topics + 1), back, "sources that the newcomer is told of");
    printf(", \"early\": %d, \"late_s\": %.3f, \"told_s\": %.3f, \"ended\": %d", early, late, told,
           atomic_load(&shared->ended));
}

int main(int argc, char **argv)
{
    struct rlimit files = {0};
    char config[64] = "";
    if (argc != 6) {
        fprintf(stderr, "usage: %s SRS|multicast PROCESSES CONTEXTS TOPICS OUTAGE_MS\n", argv[0]);
        return 2;
    }
    srs = strcmp(argv[1], "multicast") == 0 ? NULL : argv[1];
    processes = atoi(argv[2]);
    contexts = atoi(argv[3]);
    topics = atoi(argv[4]);
    if (processes < 1 || processes > PROCESSES_MAX || contexts < 1 || contexts > CONTEXTS_MAX || topics < 1) {
        fprintf(stderr, "%s: 1..%d processes, 1..%d contexts\n", argv[0], PROCESSES_MAX, CONTEXTS_MAX);
        return 2;
    }
    size_t size = sizeof *shared + (size_t)all_contexts() * (size_t)(topics + 1);
    shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (srs != NULL) {
        choose_port(config);
        start_server(config);
    }
    for (int i = 0; i < processes; i++) {
        spawn(i * contexts, false);
    }
    if (srs != NULL) {
        spawn(0, true);
    }
    wait_for(&shared->ready, processes, now(), "processes with their contexts");
    print_resolution((unsigned)atoi(argv[5]));
    if (srs != NULL) {
        print_outage(config, (unsigned)atoi(argv[5]));
        unlink(config);
    }
    printf("}\n");
    fflush(stdout);
    end_all();
    return atomic_load(&shared->failed);
}
