/* lbmmonudp: passes monitoring records on as datagrams, one line of decimal numbers in each.
 * The receive controller's thread sends; main() waits for a signal and counts. */
#include <arpa/inet.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ex_mon_csv.h"
#include "ex_options.h"

static struct ex_mon_options receive;
static struct {
    int narrow;
    const char *address, *broadcast, *multicast, *interface;
    unsigned long port, ttl;
} opt = {.port = 1234, .ttl = 1};

static const struct ex_option options[] = {
    {'3', "force-32bit", EX_FLAG, &opt.narrow, NULL, "no number above 32 bits"},
    {'a', "address", EX_TEXT, &opt.address, "IP", "send to this address"},
    {'b', "broadcast", EX_TEXT, &opt.broadcast, "IP", "send to this broadcast address"},
    {'c', "config", EX_CONFIG, NULL, "FILE", "load a configuration file; may be repeated"},
    {'f', "format", EX_TEXT, &receive.format, "NAME", "format module, csv or pb (csv); both are read in any case"},
    {0, "format-opts", EX_TEXT, &receive.format_opts, "TEXT", "options of the format module"},
    {'h', "help", EX_HELP, NULL, NULL, "show this text"},
    {'i', "interface", EX_TEXT, &opt.interface, "IP", "send multicast from this interface"},
    {'m', "multicast", EX_TEXT, &opt.multicast, "GROUP", "send to this multicast group"},
    {'p', "port", EX_UNSIGNED, &opt.port, "PORT", "send to this port (1234)"},
    {'t', "transport", EX_TEXT, &receive.transport, "NAME", "transport module, lbm or udp (lbm)"},
    {0, "transport-opts", EX_TEXT, &receive.transport_opts, "TEXT", "options of the transport module"},
    {'T', "ttl", EX_UNSIGNED, &opt.ttl, "NUM", "TTL of multicast (1)"},
    EX_END,
};

static const struct ex_program program = {"Passes monitoring records on as lines of CSV over UDP.", "", 0, options};

/* The socket belongs to the controller's thread while records come. */
static struct {
    int fd;
    struct sockaddr_in to;
    atomic_ulong received, sent;
} out;

static void on_record(const struct ex_mon_record *record, void *clientd)
{
    char *line = NULL;
    size_t length = 0;
    int kind = ex_mon_csv_kind(record);
    atomic_fetch_add(&out.received, 1);
    FILE *text = kind != 0 ? open_memstream(&line, &length) : NULL;
    if (text == NULL) {
        return;
    }
    fprintf(text, "%d,", kind);
    ex_mon_csv_about(text, record);
    ex_mon_csv_counters(text, record, opt.narrow);
    fclose(text);
    if (sendto(out.fd, line, length, 0, (const struct sockaddr *)&out.to, sizeof(out.to)) == (ssize_t)length) {
        atomic_fetch_add(&out.sent, 1);
    }
    free(line);
}

static void must(int rc, const char *what)
{
    if (rc != 0) {
        perror(what);
        exit(1);
    }
}

static struct in_addr address_of(const char *text)
{
    struct in_addr address;
    if (inet_pton(AF_INET, text, &address) != 1) {
        fprintf(stderr, "%s: must be an address like 10.1.2.3\n", text);
        exit(1);
    }
    return address;
}

static void open_socket(const char *path)
{
    int given = (opt.address != NULL) + (opt.broadcast != NULL) + (opt.multicast != NULL);
    if (given != 1 || opt.port == 0 || opt.port > 65535 || opt.ttl > 255) {
        fprintf(stderr, "one of -a, -b and -m must be given; ports go to 65535, a TTL to 255\n");
        ex_usage(path, &program, 1);
    }
    out.to.sin_family = AF_INET;
    out.to.sin_port = htons((in_port_t)opt.port);
    out.to.sin_addr = address_of(opt.address != NULL     ? opt.address
                                 : opt.broadcast != NULL ? opt.broadcast
                                                         : opt.multicast);
    out.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    must(out.fd < 0, "socket");
    if (opt.broadcast != NULL) {
        int on = 1;
        must(setsockopt(out.fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)), "broadcast");
    }
    if (opt.multicast != NULL) {
        unsigned char ttl = (unsigned char)opt.ttl;
        must(setsockopt(out.fd, IPPROTO_IP, IP_MULTICAST_TTL, &ttl, sizeof(ttl)), "TTL");
    }
    if (opt.interface != NULL) {
        struct in_addr from = address_of(opt.interface);
        must(setsockopt(out.fd, IPPROTO_IP, IP_MULTICAST_IF, &from, sizeof(from)), "interface");
    }
}

int main(int argc, char **argv)
{
    ex_parse(argc, argv, &program);
    sigset_t ends = ex_mon_ends();
    open_socket(argv[0]);
    lbmmon_rctl_t *controller = ex_mon_start(&receive, on_record, NULL);
    const struct timespec pause = {5, 0};
    unsigned long shown = 0;
    while (sigtimedwait(&ends, NULL, &pause) < 0) {
        if (atomic_load(&out.received) != shown) {
            shown = atomic_load(&out.received);
            printf("Stat msgs received/sent %lu/%lu\n", shown, atomic_load(&out.sent));
            fflush(stdout);
        }
    }
    if (lbmmon_rctl_destroy(controller) != 0) {
        ex_mon_fail("lbmmon_rctl_destroy");
    }
    printf("Stat msgs received/sent %lu/%lu\n", atomic_load(&out.received), atomic_load(&out.sent));
    close(out.fd);
    return 0;
}
