/* Command line and configuration file of lbmrd. See lbmrd_settings.h. */
#define _GNU_SOURCE
#include "lbmrd_settings.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "config/um_config.h"

static void print_usage(FILE *out, const char *path)
{
    fprintf(out,
            "%s, libum version %s\n"
            "Forwards topic resolution datagrams between its clients, and translates addresses in them.\n"
            "Usage: %s [options] [config-file]\n"
            "  config-file            XML; what the command line says comes first\n"
            "  -a, --activity=IVL     check clients every IVL milliseconds (60000)\n"
            "  -d, --dump-dtd         print the DTD of configuration files\n"
            "  -h, --help             show this text\n"
            "  -i, --interface=ADDR   listen here: address, network (10.0.0.0/8), \"\\\"eth0\\\"\" or host name\n"
            "                         (0.0.0.0: the first interface found)\n"
            "  -L, --logfile=FILE     append log lines to FILE (standard output)\n"
            "  -p, --port=PORT        UDP port (15380)\n"
            "  -t, --ttl=TTL          forget clients that are silent for TTL seconds (60)\n"
            "  -r, --rcv-buf=SIZE     receive buffer in bytes (1048576)\n"
            "  -s, --snd-buf=SIZE     send buffer in bytes (1048576)\n"
            "  -v, --validate         check the configuration file; exit status 0: valid, 1: not, or no file\n"
            "In the file <ttl> is in milliseconds; both are a minute by default. SIGINT and SIGTERM end the daemon,\n"
            "SIGHUP opens the log file anew.\n",
            path, UM_VERSION, path);
}

static bool parse_number(const char *path, const char *option, const char *text, uint64_t low, uint64_t high,
                         uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value < low || value > high) {
        fprintf(stderr, "%s: --%s %s: must be a number from %" PRIu64 " to %" PRIu64 "\n", path, option, text, low,
                high);
        return false;
    }
    *out = value;
    return true;
}

static const struct option long_options[] = {{"activity", required_argument, NULL, 'a'},
                                             {"dump-dtd", no_argument, NULL, 'd'},
                                             {"help", no_argument, NULL, 'h'},
                                             {"interface", required_argument, NULL, 'i'},
                                             {"logfile", required_argument, NULL, 'L'},
                                             {"port", required_argument, NULL, 'p'},
                                             {"ttl", required_argument, NULL, 't'},
                                             {"rcv-buf", required_argument, NULL, 'r'},
                                             {"snd-buf", required_argument, NULL, 's'},
                                             {"validate", no_argument, NULL, 'v'},
                                             {NULL, 0, NULL, 0}};

/* One option that has a value. */
static bool take_value(const char *path, int letter, struct lbmrd_settings *settings)
{
    switch (letter) {
    case 'a':
        return parse_number(path, "activity", optarg, 1, UM_LBMRD_MAX_ACTIVITY_MS, &settings->activity_ms);
    case 'p':
        return parse_number(path, "port", optarg, 1, 65535, &settings->port);
    case 'r':
        return parse_number(path, "rcv-buf", optarg, 1, UM_LBMRD_MAX_BUFFER, &settings->rcvbuf);
    case 's':
        return parse_number(path, "snd-buf", optarg, 1, UM_LBMRD_MAX_BUFFER, &settings->sndbuf);
    case 't':
        if (!parse_number(path, "ttl", optarg, 1, UM_LBMRD_MAX_TTL_MS / 1000, &settings->ttl_ms)) {
            return false;
        }
        settings->ttl_ms *= 1000;
        return true;
    case 'i':
        settings->interface = optarg;
        return true;
    default:
        settings->logfile = optarg;
        return true;
    }
}

/* -1: go on; else the exit status. Numbers that are not given stay 0. */
static int parse_arguments(int argc, char **argv, struct lbmrd_settings *settings, bool *validate)
{
    int letter;
    while ((letter = getopt_long(argc, argv, "a:dhi:L:p:t:r:s:v", long_options, NULL)) != -1) {
        switch (letter) {
        case 'd':
            fputs(um_lbmrd_dtd, stdout);
            return 0;
        case 'h':
            print_usage(stdout, argv[0]);
            return 0;
        case 'v':
            *validate = true;
            break;
        case '?':
            print_usage(stderr, argv[0]);
            return 1;
        default:
            if (!take_value(argv[0], letter, settings)) {
                return 1;
            }
        }
    }
    return -1;
}

static int read_file(const char *path, const char *name, struct um_lbmrd_file *out)
{
    char *data = NULL;
    size_t len = 0;
    int result = um_config_read_file(name, &data, &len);
    if (result == 0) {
        result = um_lbmrd_file_read(name, data, len, out);
        um_free(data);
    }
    if (result != 0) {
        fprintf(stderr, "%s: %s\n", path, um_errmsg());
    }
    return result;
}

/* The first that is given. */
static uint64_t choose(uint64_t argument, uint64_t file, uint64_t standard)
{
    return argument != 0 ? argument : file != 0 ? file : standard;
}

static void fill(struct lbmrd_settings *settings)
{
    const struct um_lbmrd_file *file = &settings->file;
    settings->activity_ms = choose(settings->activity_ms, file->activity_ms, 60000);
    settings->ttl_ms = choose(settings->ttl_ms, file->ttl_ms, 60000);
    settings->port = choose(settings->port, file->port, 15380);
    settings->rcvbuf = choose(settings->rcvbuf, file->rcvbuf, 1048576);
    settings->sndbuf = choose(settings->sndbuf, file->sndbuf, 1048576);
    if (settings->interface == NULL) {
        settings->interface = file->interface != NULL ? file->interface : "0.0.0.0";
    }
    if (settings->logfile == NULL) {
        settings->logfile = file->logfile;
    }
}

int lbmrd_settings_read(int argc, char **argv, struct lbmrd_settings *out)
{
    bool validate = false;
    *out = (struct lbmrd_settings){.interface = NULL};
    int status = parse_arguments(argc, argv, out, &validate);
    if (status >= 0) {
        return status;
    }
    if (argc - optind > 1) {
        fprintf(stderr, "%s: %s: one configuration file is read, not several\n", argv[0], argv[optind + 1]);
        return 1;
    }
    if (optind == argc && validate) {
        fprintf(stderr, "%s: --validate: name the configuration file\n", argv[0]);
        return 1;
    }
    if (optind < argc && read_file(argv[0], argv[optind], &out->file) != 0) {
        return 1;
    }
    if (validate) {
        printf("%s: valid\n", argv[optind]);
        return 0;
    }
    fill(out);
    return -1;
}

void lbmrd_settings_clear(struct lbmrd_settings *settings)
{
    um_lbmrd_file_clear(&settings->file);
}
