/* Requirement D1: a hundred real processes on one host, each with a source and twenty receivers of other processes'
 * topics, all resolve by multicast, and every message sent then arrives. Judged by counts; the clock only catches
 * hangs. Each process is forked before the library is used in it. */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PROCESSES 20 /* sanitized processes are large and slow; the full number runs without */
#else
#define PROCESSES 100
#endif
#define TOPICS_HEARD 19
#define HANG_MS 120000

struct report {
    int process, resolved, connected, received;
};

static atomic_int received;

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    (void)rcv;
    (void)clientd;
    if (msg->type == LBM_MSG_DATA) {
        atomic_fetch_add(&received, 1);
    }
    return 0;
}

static int quiet(int level, const char *message, void *clientd)
{
    (void)clientd;
    return level <= LBM_LOG_ERR ? fprintf(stderr, "%s\n", message) : 0;
}

static lbm_context_t *many_on_one_host(void)
{
    lbm_context_attr_t *attr = net_context_attr();
    lbm_context_t *ctx;
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_bind_request_port", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "transport_tcp_port_low", "0")); /* any free port: the range is small */
    MUST(lbm_context_attr_str_setopt(attr, "transport_tcp_port_high", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "resolver_unicast_port_low", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "resolver_unicast_port_high", "0"));
    MUST(lbm_context_attr_str_setopt(attr, "resolver_multicast_receiver_socket_buffer", "0"));
    MUST(lbm_context_create(&ctx, attr, NULL, NULL));
    lbm_context_attr_delete(attr);
    return ctx;
}

static void topic_name(char *out, size_t size, int process)
{
    snprintf(out, size, "d1/process/%d", process % PROCESSES);
}

/* Everything of one process; reports, then stays until all have reported. */
static void run_process(int process, int report_fd, int stay_fd)
{
    char name[32];
    struct report report = {.process = process};
    lbm_log(quiet, NULL);
    lbm_context_t *ctx = many_on_one_host();
    topic_name(name, sizeof name, process);
    lbm_src_t *src = net_source(ctx, name);
    lbm_rcv_t *receivers[TOPICS_HEARD];
    for (int i = 0; i < TOPICS_HEARD; i++) {
        topic_name(name, sizeof name, process + i + 1);
        receivers[i] = net_receiver(ctx, name, NULL, on_message, NULL, NULL);
    }
    for (int i = 0; i < TOPICS_HEARD; i++) {
        report.resolved += um_rcv_wait_ready(receivers[i], 1, HANG_MS) == 0;
    }
    if (um_src_wait_receivers(src, TOPICS_HEARD, HANG_MS) == 0) {
        net_send(src, "hello");
    }
    report.connected = um_src_receivers(src);
    for (int i = 0; i < HANG_MS / 10 && atomic_load(&received) < TOPICS_HEARD; i++) {
        poll(NULL, 0, 10);
    }
    report.received = atomic_load(&received);
    char end;
    bool told = write(report_fd, &report, sizeof report) == sizeof report;
    bool stayed = read(stay_fd, &end, 1) == 0;
    for (int i = 0; i < TOPICS_HEARD; i++) {
        lbm_rcv_delete(receivers[i]);
    }
    lbm_src_delete(src);
    lbm_context_delete(ctx);
    _exit(told && stayed ? 0 : 1);
}

/* None ends before all have reported, unless it failed. */
static bool a_process_ended(void)
{
    siginfo_t info = {0};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

static int read_reports(int fd, int count, struct report *sum, char *complaints, size_t size)
{
    int read_count = 0;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    while (read_count < count) {
        struct report report;
        if (poll(&ready, 1, 500) == 0) {
            if (a_process_ended()) {
                break;
            }
            continue;
        }
        if (read(fd, &report, sizeof report) != sizeof report) {
            break;
        }
        read_count++;
        sum->resolved += report.resolved;
        sum->connected += report.connected;
        sum->received += report.received;
        if (report.resolved != TOPICS_HEARD || report.received != TOPICS_HEARD) {
            size_t used = strlen(complaints);
            snprintf(complaints + used, size - used, "process %d resolved %d received %d; ", report.process,
                     report.resolved, report.received);
        }
    }
    return read_count;
}

/* So that a test beside this one can see what so many processes cost when all of them know each other. */
static void stay_together(void)
{
    const char *seconds = getenv("UM_TEST_D1_STAY_SECONDS");
    if (seconds != NULL) {
        poll(NULL, 0, atoi(seconds) * 1000);
    }
}

TEST(d1_a_hundred_processes_resolve_all_their_topics)
{
    TEST_NEEDS_NET();
    static pid_t pids[PROCESSES];
    int reports[2], stay[2];
    CHECK(pipe(reports) == 0 && pipe(stay) == 0);
    fflush(NULL);
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            close(reports[0]);
            close(stay[1]);
            run_process(i, reports[1], stay[0]);
        }
    }
    close(reports[1]);
    close(stay[0]);
    struct report sum = {0};
    char complaints[4096] = "";
    int heard = read_reports(reports[0], PROCESSES, &sum, complaints, sizeof complaints);
    stay_together();
    close(stay[1]); /* all may end now */
    int ended_well = 0;
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        if (heard < PROCESSES) {
            kill(pids[i], SIGKILL);
        }
        ended_well += pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i] && status == 0;
    }
    close(reports[0]);
    fprintf(stderr, "%d processes: %d of %d topics resolved, %d of %d messages received\n", heard, sum.resolved,
            PROCESSES * TOPICS_HEARD, sum.received, PROCESSES * TOPICS_HEARD);
    CHECK_STR(complaints, "");
    CHECK_EQ(heard, PROCESSES);
    CHECK_EQ(sum.resolved, PROCESSES * TOPICS_HEARD);
    CHECK_EQ(sum.connected, PROCESSES * TOPICS_HEARD);
    CHECK_EQ(sum.received, PROCESSES * TOPICS_HEARD);
    CHECK_EQ(ended_well, PROCESSES);
}
