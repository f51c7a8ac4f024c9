/* lbmrd: forwards topic resolution datagrams between its clients, for networks
 * without multicast. Log, socket and the loop around the engine in resolver/;
 * one thread. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_iface.h"
#include "lbmrd_settings.h"
#include "net/um_notify.h"
#include "net/um_socket.h"
#include "resolver/um_lbmrd_engine.h"

#define DATAGRAMS_PER_WAKE 256 /* then signals and the activity check get their turn */

static FILE *log_file;
static volatile sig_atomic_t stopping, reopening;

static void on_signal(int number)
{
    if (number == SIGHUP) {
        reopening = 1;
    } else {
        stopping = 1;
    }
}

/* Line format: date as date(1) prints it, severity, identifier, text. */
static int on_log(int level, const char *message, void *clientd)
{
    static const char *const names[] = {"",        "EMERGENCY", "ALERT", "CRITICAL", "ERROR",
                                        "WARNING", "NOTICE",    "INFO",  "DEBUG"};
    time_t now = time(NULL);
    struct tm local;
    char day[32], clock[48];
    localtime_r(&now, &local);
    strftime(day, sizeof(day), "%a %b", &local);
    strftime(clock, sizeof(clock), "%H:%M:%S %Z %Y", &local);
    fprintf(log_file, "%s %d %s [%s]: %s\n", day, local.tm_mday, clock,
            names[level >= 1 && level <= UM_LOG_DEBUG ? level : 0], message);
    fflush(log_file);
    return 0;
}

/* As many calls as there are errors, and one more. */
static void send_datagrams(void *arg, const struct um_lbmrd_peer *peers, size_t count, const uint8_t *data, size_t len,
                           int *errors)
{
    struct sockaddr_in to[UM_LBMRD_PEERS];
    struct mmsghdr messages[UM_LBMRD_PEERS];
    struct iovec bytes = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
    for (size_t i = 0; i < count; i++) {
        to[i] = (struct sockaddr_in){
            .sin_family = AF_INET, .sin_port = htons(peers[i].port), .sin_addr.s_addr = peers[i].ip};
        messages[i] = (struct mmsghdr){
            .msg_hdr = {.msg_name = &to[i], .msg_namelen = sizeof to[i], .msg_iov = &bytes, .msg_iovlen = 1}};
    }
    for (size_t i = 0; i < count;) {
        int sent = sendmmsg(*(int *)arg, messages + i, (unsigned)(count - i), MSG_NOSIGNAL | MSG_DONTWAIT);
        size_t done = sent > 0 ? (size_t)sent : 0;
        memset(errors + i, 0, done * sizeof *errors);
        i += done;
        if (sent <= 0) {
            errors[i++] = sent < 0 ? errno : EIO;
        }
    }
}

static uint64_t waited_ns; /* for datagrams, since the start */

static uint64_t used_ns(void *arg)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static uint64_t had_ns(void *arg)
{
    return used_ns(arg) + waited_ns;
}

/* 0.0.0.0 means the first interface that is up, one that leads out of the host if there is any. */
static bool first_interface(struct in_addr *out)
{
    struct um_iface *list = NULL;
    int count = um_iface_list(&list), best = -1;
    for (int i = 0; i < count; i++) {
        if (list[i].up && (best < 0 || (list[best].loopback && !list[i].loopback))) {
            best = i;
        }
    }
    if (best >= 0) {
        *out = list[best].addr;
    }
    um_free(list);
    return best >= 0;
}

static bool choose_interface(const char *text, struct in_addr *out)
{
    uint32_t addr = 0;
    int bits = 0;
    struct um_iface iface;
    char name[INET_ADDRSTRLEN];
    bool found = um_iface_parse(text, &addr, &bits) == 0;
    if (found && addr == INADDR_ANY) {
        found = first_interface(out);
    } else if (found) {
        found = um_iface_match(addr, bits, &iface) == 0;
        if (found) {
            *out = iface.addr;
        }
    }
    if (!found) {
        um_log(UM_LOG_CRIT, "Lbmrd-10729-1", "Invalid interface [%s] specified: [%s]", text, um_errmsg());
        return false;
    }
    um_log(UM_LOG_INFO, "Lbmrd-10492-1", "Using interface [%s]", inet_ntop(AF_INET, out, name, sizeof(name)));
    return true;
}

static void receive_some(int fd, struct um_lbmrd *engine, uint8_t *buffer)
{
    for (int i = 0; i < DATAGRAMS_PER_WAKE; i++) {
        struct sockaddr_in from;
        socklen_t from_len = sizeof(from);
        ssize_t len = recvfrom(fd, buffer, UM_LBMRD_DATAGRAM_MAX, MSG_DONTWAIT, (struct sockaddr *)&from, &from_len);
        if (len < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
            return;
        }
        if (len >= 0) { /* an error here is an ICMP answer to an earlier send: not ours to act on */
            um_lbmrd_on_datagram(engine, um_clock_ns(), buffer, (size_t)len, from.sin_addr.s_addr,
                                 ntohs(from.sin_port));
        }
    }
}

/* A new file of the same name, where somebody has moved the old one away; the old one goes on where that fails. */
static void reopen_log(const char *name)
{
    FILE *file = name != NULL ? fopen(name, "a") : NULL;
    reopening = 0;
    if (file != NULL) {
        fclose(log_file);
        log_file = file;
    } else if (name != NULL) {
        um_log(UM_LOG_ERR, "Lbmrd-um-13", "cannot open log file %s anew: %s", name, strerror(errno));
        return;
    }
    um_log(UM_LOG_INFO, "Lbmrd-um-14", "log opened anew");
}

static int run(int fd, struct um_lbmrd *engine, const char *log_name, const sigset_t *while_waiting)
{
    uint8_t *buffer = um_malloc(UM_LBMRD_DATAGRAM_MAX);
    if (buffer == NULL) {
        return 1;
    }
    while (!stopping) {
        if (reopening) {
            reopen_log(log_name);
        }
        uint64_t now = um_clock_ns(), due = um_lbmrd_next_timer(engine), left = due > now ? due - now : 0;
        struct timespec wait = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
        struct pollfd pfd = {fd, POLLIN, 0};
        int ready = ppoll(&pfd, 1, &wait, while_waiting);
        waited_ns += um_clock_ns() - now;
        if (ready > 0) {
            receive_some(fd, engine, buffer);
        }
        um_lbmrd_on_timer(engine, um_clock_ns());
    }
    um_free(buffer);
    return 0;
}

static int serve(const struct lbmrd_settings *settings, const sigset_t *while_waiting)
{
    struct in_addr addr;
    char name[INET_ADDRSTRLEN];
    int error = 0;
    if (!choose_interface(settings->interface, &addr)) {
        return 1;
    }
    int fd = um_socket_udp(addr, (uint16_t)settings->port, false, &error);
    if (fd < 0) {
        um_log(UM_LOG_CRIT, "Lbmrd-um-5", "cannot bind UDP port %u (--port) on %s: %s", (unsigned)settings->port,
               inet_ntop(AF_INET, &addr, name, sizeof(name)), strerror(error));
        return 1;
    }
    um_socket_set_rcvbuf(fd, settings->rcvbuf, UM_SIZE_SET, "--rcv-buf", "Lbmrd-um-6");
    um_socket_set_sndbuf(fd, settings->sndbuf, UM_SIZE_SET, "--snd-buf", "Lbmrd-um-6");
    struct um_lbmrd_config config = {.ttl_ns = settings->ttl_ms * 1000000ull,
                                     .activity_ns = settings->activity_ms * 1000000ull,
                                     .max_clients = UM_LBMRD_MAX_CLIENTS,
                                     .max_address_clients = UM_LBMRD_MAX_ADDRESS_CLIENTS,
                                     .output_rate = UM_LBMRD_OUTPUT_RATE,
                                     .output_burst = UM_LBMRD_OUTPUT_BURST,
                                     .max_output_rate = UM_LBMRD_MAX_OUTPUT_RATE,
                                     .start_burst = UM_LBMRD_START_BURST,
                                     .time_rate = UM_LBMRD_TIME_RATE,
                                     .time_burst = UM_LBMRD_TIME_BURST,
                                     .gather_clients = UM_LBMRD_GATHER_CLIENTS,
                                     .gather_client_ns = UM_LBMRD_GATHER_CLIENT_NS,
                                     .own_ip = addr.s_addr,
                                     .own_port = (uint16_t)settings->port,
                                     .nat = settings->file.nat,
                                     .cpu_ns = used_ns,
                                     .had_ns = had_ns,
                                     .send = send_datagrams,
                                     .arg = &fd};
    struct um_lbmrd *engine = um_lbmrd_create(&config, um_clock_ns());
    int status = 1;
    if (engine != NULL) {
        um_log(UM_LOG_INFO, "Lbmrd-um-7", "lbmrd started on %s:%u", inet_ntop(AF_INET, &addr, name, sizeof(name)),
               (unsigned)settings->port);
        um_notify("READY=1");
        status = run(fd, engine, settings->logfile, while_waiting);
        um_notify("STOPPING=1");
        const struct um_lbmrd_stats *stats = um_lbmrd_stats(engine);
        um_log(UM_LOG_INFO, "Lbmrd-um-8",
               "lbmrd ends: %" PRIu64 " datagrams received, %" PRIu64 " sent, %" PRIu64 " invalid, %" PRIu64
               " send errors, %" PRIu64 " from itself, %" PRIu64 " circling, %" PRIu64 " clients refused, %" PRIu64
               " evicted, %" PRIu64 " datagrams over budget, %" PRIu64 " ms of processor time for newcomers, %" PRIu64
               " addresses translated, %" PRIu64 " datagrams gathered",
               stats->received, stats->forwarded, stats->invalid, stats->send_errors, stats->from_self, stats->circling,
               stats->refused_clients, stats->evicted_clients, stats->over_budget, stats->newcomers_ns / 1000000,
               stats->translated, stats->gathered);
        um_lbmrd_destroy(engine);
    }
    close(fd);
    return status;
}

/* Signals are only taken while the daemon waits, so that none is missed between a check and the wait. */
static void take_signals(sigset_t *while_waiting)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGHUP);
    sigprocmask(SIG_BLOCK, &stop, while_waiting);
    sigdelset(while_waiting, SIGINT);
    sigdelset(while_waiting, SIGTERM);
    sigdelset(while_waiting, SIGHUP);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* a log on a pipe whose reader has gone */
}

static int run_daemon(const char *path, const struct lbmrd_settings *settings)
{
    sigset_t while_waiting;
    log_file = settings->logfile != NULL ? fopen(settings->logfile, "a") : stdout;
    if (log_file == NULL) {
        fprintf(stderr, "%s: cannot open log file %s: %s\n", path, settings->logfile, strerror(errno));
        return 1;
    }
    um_log_set_proc(on_log, NULL);
    take_signals(&while_waiting);
    int status = serve(settings, &while_waiting);
    if (log_file != stdout) {
        fclose(log_file);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct lbmrd_settings settings;
    int status = lbmrd_settings_read(argc, argv, &settings);
    if (status < 0) {
        status = run_daemon(argv[0], &settings);
    }
    lbmrd_settings_clear(&settings);
    return status;
}
