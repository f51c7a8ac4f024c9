/* The daemon srs as a process: contexts find each other through it while its monitor publishes as often as it may and
 * answers commands. Its status is that of the sanitizer it was built with: its loop, the thread of the monitor and that
 * of the monitor's context meet under the thread sanitizer, too. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

enum { ROUNDS = 10 };

/* ---- the process ---- */

struct daemon {
    pid_t pid;
    FILE *log;
    char folder[64], config[80];
    char target[64]; /* of commands */
    unsigned port;
};

static void write_config(struct daemon *d)
{
    strcpy(d->folder, "/tmp/um-srs-XXXXXX");
    REQUIRE(mkdtemp(d->folder) != NULL);
    snprintf(d->config, sizeof d->config, "%s/srs.xml", d->folder);
    FILE *out = fopen(d->config, "w");
    REQUIRE(out != NULL);
    fputs("<um-srs><srs><interface>127.0.0.1</interface><port>0</port></srs>"
          "<daemon-monitor topic=\"srs.monitor\"><ping-interval>100</ping-interval>"
          "<publish-connection-events allow=\"true\"/><remote-snapshot-request allow=\"true\"/>"
          "<remote-config-changes-request allow=\"true\"/>"
          "<publishing-interval><default>200</default></publishing-interval><lbm-attributes>"
          "<option scope=\"context\" name=\"default_interface\" value=\"127.0.0.1\"/>"
          "<option scope=\"context\" name=\"resolver_multicast_interface\" value=\"127.0.0.1\"/>"
          "</lbm-attributes></daemon-monitor></um-srs>",
          out);
    REQUIRE(fclose(out) == 0);
}

/* Beside the folder of the tests. */
static void path_of_program(char *out, size_t room)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    REQUIRE(len > 0);
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    REQUIRE((size_t)snprintf(out, room, "%s/../bin/srs", self) < room);
}

/* Reads its log up to the lines that tell of its ports. */
static void start(struct daemon *d)
{
    char program[PATH_MAX], line[1024];
    int out[2];
    write_config(d);
    path_of_program(program, sizeof program);
    REQUIRE(pipe2(out, O_CLOEXEC) == 0);
    d->pid = fork(); /* there is no other thread yet */
    if (d->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(out[1], STDOUT_FILENO);
        execl(program, program, d->config, NULL);
        _exit(1);
    }
    REQUIRE(d->pid > 0);
    close(out[1]);
    d->log = fdopen(out[0], "r");
    while ((d->port == 0 || d->target[0] == '\0') && fgets(line, sizeof line, d->log) != NULL) {
        const char *target = strstr(line, "SRS-10386-1405") != NULL ? strstr(line, "TCP:") : NULL;
        const char *port = strstr(line, "srs started on 127.0.0.1:");
        if (target != NULL) {
            sscanf(target, "%63s", d->target);
        }
        if (port != NULL) {
            sscanf(port, "srs started on 127.0.0.1:%u", &d->port);
        }
    }
    REQUIRE(d->port != 0 && d->target[0] != '\0');
}

static void *drain(void *arg)
{
    struct daemon *d = arg;
    char line[1024];
    while (fgets(line, sizeof line, d->log) != NULL) {
        fputs(line, stderr);
    }
    return NULL;
}

/* ---- those who use it ---- */

static lbm_context_t *served(const struct daemon *d)
{
    char service[40];
    lbm_context_attr_t *attr = net_context_attr();
    snprintf(service, sizeof service, "127.0.0.1:%u", d->port);
    MUST(lbm_context_attr_str_setopt(attr, "resolver_service", service));
    MUST(lbm_context_attr_str_setopt(attr, "request_tcp_bind_request_port", "0"));
    return net_context_with(attr);
}

static int on_answer(lbm_request_t *req, lbm_msg_t *msg, void *clientd)
{
    recorder_cb(NULL, msg, clientd);
    return 0;
}

static void command(lbm_context_t *ctx, const struct daemon *d, const char *type, const char *category,
                    const char *rest)
{
    struct recorder answers = RECORDER_INIT;
    lbm_request_t *req;
    char text[200];
    int len = snprintf(text, sizeof text, "{\"commandMessageType\":\"%s\",\"monitorInfoCategory\":\"%s\"%s}", type,
                       category, rest);
    MUST(lbm_unicast_immediate_request(&req, ctx, d->target, NULL, text, (size_t)len, on_answer, &answers, NULL, 0));
    CHECK(recorder_wait(&answers, LBM_MSG_RESPONSE, 1));
    MUST(lbm_request_delete(req));
}

TEST(contexts_come_and_go_while_the_monitor_publishes_and_answers)
{
    TEST_NEEDS_NET();
    static const char *const categories[] = {"SRS_STATS",         "SRS_ERROR_STATS", "UM_CLIENT_STATS",
                                             "CONNECTION_EVENTS", "CONFIG_OPTS",     "INTERNAL_CONFIG_OPTS"};
    struct daemon d = {0};
    struct recorder records = RECORDER_INIT;
    pthread_t thread;
    start(&d);
    REQUIRE(pthread_create(&thread, NULL, drain, &d) == 0);
    lbm_context_t *watching = net_context();
    lbm_rcv_t *monitor = net_recording_receiver(watching, "srs.monitor", &records);
    CHECK_EQ(um_rcv_wait_ready(monitor, 1, HANG_SECONDS * 1000), 0);
    for (int round = 0; round < ROUNDS; round++) {
        struct recorder data = RECORDER_INIT;
        lbm_context_t *sends = served(&d), *receives = served(&d);
        lbm_src_t *src = net_source(sends, "served");
        lbm_rcv_t *rcv = net_recording_receiver(receives, "served", &data);
        command(watching, &d, "REPORT_MONITOR_INFO", categories[round % 6], "");
        command(watching, &d, "SET_PUBLISHING_INTERVAL", categories[round % 6], ",\"publishingInterval\":200");
        CHECK_EQ(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000), 0);
        net_send(src, "x");
        CHECK(recorder_wait(&data, LBM_MSG_DATA, 1));
        MUST(lbm_rcv_delete(rcv));
        MUST(lbm_src_delete(src));
        MUST(lbm_context_delete(sends));
        MUST(lbm_context_delete(receives));
    }
    CHECK(recorder_wait(&records, LBM_MSG_DATA, 2 * ROUNDS)); /* snapshots, and what the clients bring */
    MUST(lbm_rcv_delete(monitor));
    MUST(lbm_context_delete(watching));
    int status = -1;
    REQUIRE(kill(d.pid, SIGTERM) == 0 && waitpid(d.pid, &status, 0) == d.pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0); /* sanitizers have one of their own */
    pthread_join(thread, NULL);
    fclose(d.log);
    REQUIRE(unlink(d.config) == 0 && rmdir(d.folder) == 0);
}
