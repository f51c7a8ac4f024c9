/* srs: the resolution service. Contexts tell it their sources and what they want
 * to receive by TCP, and it tells them of the sources they want. Command line,
 * configuration, log, pid file and signals; the server in srs_server.c runs in
 * the loop of the main thread, the monitor in srs_monitor.c beside it. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <lbm/lbm.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "net/um_loop.h"
#include "net/um_notify.h"
#include "srs_log.h"
#include "srs_monitor.h"
#include "srs_server.h"
#include "srs_settings.h"

#define PASS_MS 1000

static void print_usage(FILE *out, const char *path)
{
    fprintf(out,
            "%s, libum version %s\n"
            "Resolution service: contexts with the option resolver_service find each other's sources through it.\n"
            "Usage: %s [options] [configfile]\n"
            "  -d, --dump             print the configuration in force, exit\n"
            "  -D, --Debug=PATH:MASK  debug file, and which lines it has, see lbm_debug_mask()\n"
            "  -h, --help             show this text\n"
            "  -j, --java             accepted and ignored\n"
            "  -v, --validate         check configfile, exit 0 if it is good\n"
            "  -x, --xsd              print the XML schema of configuration files, exit\n"
            "Without a configuration file: 127.0.0.1:27000, log on standard output. SIGINT and SIGTERM end it,\n"
            "SIGHUP opens the log file anew.\n",
            path, UM_VERSION, path);
}

struct arguments {
    bool dump, validate;
    const char *file;
};

static const struct option long_options[] = {{"dump", no_argument, NULL, 'd'},
                                             {"Debug", required_argument, NULL, 'D'},
                                             {"help", no_argument, NULL, 'h'},
                                             {"java", no_argument, NULL, 'j'},
                                             {"validate", no_argument, NULL, 'v'},
                                             {"xsd", no_argument, NULL, 'x'},
                                             {NULL, 0, NULL, 0}};

/* PATH:MASK; the path may have colons. */
static bool take_debug(const char *program, char *text)
{
    char *colon = strrchr(text, ':'), *end = NULL;
    errno = 0;
    unsigned long long mask = colon != NULL ? strtoull(colon + 1, &end, 0) : 0;
    if (colon == NULL || colon == text || colon[1] < '0' || colon[1] > '9' || *end != '\0' || errno != 0) {
        fprintf(stderr, "%s: --Debug %s: must be PATH:MASK, as in /tmp/srs.debug:0x1f\n", program, text);
        return false;
    }
    *colon = '\0';
    lbm_debug_filename(text);
    lbm_debug_mask(mask);
    return true;
}

/* -1: go on; else the exit status. */
static int parse_arguments(int argc, char **argv, struct arguments *arguments)
{
    int letter;
    while ((letter = getopt_long(argc, argv, "dD:hjvx", long_options, NULL)) != -1) {
        switch (letter) {
        case 'd':
            arguments->dump = true;
            break;
        case 'D':
            if (!take_debug(argv[0], optarg)) {
                return 1;
            }
            break;
        case 'j':
            break;
        case 'h':
            print_usage(stdout, argv[0]);
            return 0;
        case 'v':
            arguments->validate = true;
            break;
        case 'x':
            fputs(srs_schema, stdout);
            return 0;
        default:
            print_usage(stderr, argv[0]);
            return 1;
        }
    }
    if (argc - optind > 1) {
        fprintf(stderr, "%s: %s: must be the only configuration file\n", argv[0], argv[optind + 1]);
        return 1;
    }
    arguments->file = argv[optind];
    if (arguments->validate && arguments->file == NULL) {
        fprintf(stderr, "SRS-10386-1306: %s: --validate needs the configuration file to check as an argument\n",
                argv[0]);
        return 1;
    }
    return -1;
}

/* ---- pid file ------------------------------------------------------------------------ */

static bool write_pid_file(const char *path)
{
    FILE *file = path != NULL ? fopen(path, "we") : NULL;
    bool good = path == NULL || (file != NULL && fprintf(file, "%ld\n", (long)getpid()) > 0);
    int error = errno;
    if (file != NULL && fclose(file) != 0) { /* a full disk shows here */
        error = good ? errno : error;
        good = false;
    }
    if (!good) {
        um_log(UM_LOG_CRIT, "SRS-10386-1305", "pid-file %s cannot be written: %s", path, strerror(error));
    }
    return good;
}

/* ---- signals -------------------------------------------------------------------------- */

struct stopper {
    struct um_loop *loop;
    struct um_fd ufd;
    bool stopping;
};

static void on_signal(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct stopper *stopper = (struct stopper *)((char *)ufd - offsetof(struct stopper, ufd));
    struct signalfd_siginfo info;
    if (read(ufd->fd, &info, sizeof(info)) != sizeof(info)) {
        return;
    }
    if (info.ssi_signo == SIGHUP) {
        srs_log_reopen();
        um_log(UM_LOG_INFO, "SRS-um-17", "log opened anew because of signal %u", info.ssi_signo);
    } else {
        um_log(UM_LOG_INFO, "SRS-um-12", "ends because of signal %u", info.ssi_signo);
        stopper->stopping = true;
        um_loop_unblock(stopper->loop);
    }
}

static int watch_signals(void *arg)
{
    struct stopper *stopper = arg;
    return um_loop_add_fd(stopper->loop, &stopper->ufd, UM_FD_READ);
}

static int forget_signals(void *arg)
{
    struct stopper *stopper = arg;
    um_loop_remove_fd(stopper->loop, &stopper->ufd);
    return 0;
}

/* Blocked from before the first thread, so that they only come through the descriptor. */
static int block_signals(void)
{
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGHUP);
    signal(SIGPIPE, SIG_IGN); /* a log on a pipe whose reader has gone */
    sigprocmask(SIG_BLOCK, &stop, NULL);
    return signalfd(-1, &stop, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* ---- running ---------------------------------------------------------------------------- */

static int run(struct stopper *stopper, const struct srs_settings *settings)
{
    if (settings->debug_monitor) {
        um_log(UM_LOG_WARNING, "SRS-um-13", "debug-monitor is not supported by this version: it is ignored");
    }
    struct srs_monitor *monitor = srs_monitor_create(stopper->loop, settings);
    struct srs_server *server =
        srs_server_start(stopper->loop, settings, monitor != NULL ? srs_monitor_event : NULL, monitor);
    if (server == NULL) {
        srs_monitor_stop(monitor);
        srs_monitor_destroy(monitor);
        return 1;
    }
    if (monitor != NULL) {
        srs_monitor_start(monitor, srs_server_engine(server));
    }
    /* Not before the port is its own: a second start that fails leaves the file of the first alone. */
    bool written = write_pid_file(settings->pid_file);
    if (written) {
        um_notify("READY=1");
    }
    while (written && !stopper->stopping) {
        um_loop_run_once(stopper->loop, PASS_MS, 0);
    }
    um_notify("STOPPING=1");
    if (written && settings->pid_file != NULL) {
        unlink(settings->pid_file);
    }
    srs_monitor_stop(monitor);
    srs_server_stop(server);
    srs_monitor_destroy(monitor);
    return written ? 0 : 1;
}

static int serve(const struct srs_settings *settings)
{
    struct stopper stopper = {.loop = um_loop_create(false, UM_LOOP_PEND, "srs")};
    int fd = block_signals(), status = 1;
    if (stopper.loop == NULL || fd < 0) {
        um_log(UM_LOG_CRIT, "SRS-um-15", "srs cannot start: %s", stopper.loop == NULL ? um_errmsg() : strerror(errno));
    } else {
        um_fd_init(&stopper.ufd, fd, on_signal);
        if (um_loop_call(stopper.loop, watch_signals, &stopper) == 0) {
            status = run(&stopper, settings);
            um_loop_call(stopper.loop, forget_signals, &stopper);
        }
    }
    if (stopper.loop != NULL) {
        um_loop_destroy(stopper.loop);
    }
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

static int with_settings(const struct arguments *arguments, struct srs_settings *settings, const char *path)
{
    if (arguments->file != NULL && !srs_settings_load(settings, arguments->file, stderr)) {
        fprintf(stderr, "%s: %s: not a valid configuration file (its schema: %s --xsd)\n", path, arguments->file, path);
        return 1;
    }
    if (settings->monitor.topic != NULL && !srs_monitor_check(settings, stderr)) {
        return 1;
    }
    if (arguments->validate) {
        return 0;
    }
    if (arguments->dump) {
        srs_settings_dump(settings, stdout);
        return 0;
    }
    if (!srs_log_open(&settings->log)) {
        return 1;
    }
    int status = serve(settings);
    srs_log_close();
    return status;
}

int main(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct srs_settings settings;
    int status = parse_arguments(argc, argv, &arguments);
    if (status >= 0) {
        return status;
    }
    if (!srs_settings_default(&settings)) {
        fprintf(stderr, "%s: out of memory\n", argv[0]);
        return 1;
    }
    status = with_settings(&arguments, &settings, argv[0]);
    srs_settings_free(&settings);
    return status;
}
