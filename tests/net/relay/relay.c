/* The relay between hosts of network tests: joins the given interfaces like a switch, through packet sockets, and does
 * to the frames what its rules say (impair.h). One thread.
 *
 *   relay [--seed N] [--rm LOW-HIGH] [--ru LOW-HIGH] --control PATH INTERFACE...
 *   relay --no-offload INTERFACE     hand out whole datagrams with checksums; for the hosts' ends of the cables
 *
 * Ports are numbered as given, from 0. PATH is a SOCK_SEQPACKET socket that takes one command in each packet and
 * answers "ok" or "error: ...": those of impair.h, "down PORT" and "up PORT" (the interface itself), "counters" (a JSON
 * text), "quit". The counters are printed at the end too. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "impair.h"
#include "queue.h"

enum { BATCH = 64, STATIONS = 64, ETHERTYPE_ALL = 0x0003, FRAMES_MAX = 65536 };

struct port {
    const char *name;
    int fd;
    struct queue_frame *incoming[BATCH];
    struct mmsghdr headers[BATCH];
    struct iovec pieces[BATCH];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
    } control[BATCH];
    struct queue_frame *outgoing[BATCH];
    unsigned outgoing_used;
    uint64_t received, sent, send_failed, oversized, kernel_drops, no_frame;
};

struct flow { /* of one kind, from one port to another */
    uint64_t seen, lost, sent;
};

static struct {
    struct impair impair;
    struct queue queue;
    struct frame_ports lbt_ports;
    struct port ports[IMPAIR_PORTS];
    unsigned ports_used;
    struct {
        uint8_t address[6];
        unsigned port;
    } stations[STATIONS];
    unsigned stations_used;
    struct flow flows[IMPAIR_PORTS][IMPAIR_PORTS][FRAME_KINDS];
    uint64_t serial;
    int listener, client;
} relay = {.listener = -1, .client = -1, .lbt_ports = {14390, 14400, 14360, 14389}};

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
    (void)number;
    ended = 1;
}

static void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, ": %s\n", strerror(errno));
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- interfaces ---- */

static void ethtool_off(const char *name, uint32_t command)
{
    struct ethtool_value value = {.cmd = command};
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    request.ifr_data = (char *)&value;
    if (fd < 0 || (ioctl(fd, SIOCETHTOOL, &request) != 0 && errno != EOPNOTSUPP)) {
        die("%s: ethtool command %u", name, command);
    }
    close(fd);
}

/* Frames then carry their checksums and are no longer than the MTU. */
static void no_offload(const char *name)
{
    ethtool_off(name, ETHTOOL_SGSO);
    ethtool_off(name, ETHTOOL_STSO);
    ethtool_off(name, ETHTOOL_STXCSUM);
}

static bool set_interface(const char *name, bool up)
{
    struct ifreq request = {0};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool done = fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0;
    if (done) {
        request.ifr_flags = (short)(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
        done = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    }
    close(fd);
    return done;
}

static void port_open(struct port *port, const char *name)
{
    int one = 1, buffer = 64 << 20;
    unsigned index = if_nametoindex(name);
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = __builtin_bswap16(ETHERTYPE_ALL), .sll_ifindex = (int)index};
    struct packet_mreq everything = {.mr_ifindex = (int)index, .mr_type = PACKET_MR_PROMISC};
    port->name = name;
    port->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (index == 0 || port->fd < 0) {
        die("%s", name);
    }
    if (setsockopt(port->fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) != 0 ||
        setsockopt(port->fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer) != 0 ||
        setsockopt(port->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) != 0 ||
        setsockopt(port->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one) != 0 ||
        setsockopt(port->fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof one) != 0 ||
        bind(port->fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        setsockopt(port->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &everything, sizeof everything) != 0) {
        die("%s: packet socket", name);
    }
}

/* ---- leaving ---- */

static void flush_port(struct port *port)
{
    struct mmsghdr headers[BATCH];
    struct iovec pieces[BATCH];
    for (unsigned i = 0; i < port->outgoing_used; i++) {
        pieces[i] = (struct iovec){port->outgoing[i]->data, port->outgoing[i]->len};
        headers[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &pieces[i], .msg_iovlen = 1}};
    }
    for (unsigned at = 0; at < port->outgoing_used;) {
        int done = sendmmsg(port->fd, headers + at, port->outgoing_used - at, 0);
        if (done > 0) {
            port->sent += (uint64_t)done;
            at += (unsigned)done;
        } else { /* an interface that is down, or a full queue */
            port->send_failed++;
            at++;
        }
    }
    for (unsigned i = 0; i < port->outgoing_used; i++) {
        queue_release(&relay.queue, port->outgoing[i]);
    }
    port->outgoing_used = 0;
}

/* Takes one reference of the frame. */
static void leave(unsigned out, struct queue_frame *frame)
{
    struct port *port = &relay.ports[out];
    port->outgoing[port->outgoing_used++] = frame;
    if (port->outgoing_used == BATCH) {
        flush_port(port);
    }
}

static struct queue_frame *spoiled(const struct queue_frame *frame, const struct frame_info *info, uint32_t at,
                                   bool fix)
{
    struct queue_frame *copy = queue_new_frame(&relay.queue);
    if (copy != NULL) {
        copy->len = frame->len;
        memcpy(copy->data, frame->data, frame->len);
        copy->data[at] ^= 0x5a;
        if (fix) {
            frame_checksum(copy->data, info);
        }
    }
    return copy;
}

/* ---- arriving ---- */

static void pass(unsigned in, unsigned out, struct queue_frame *frame, const struct frame_info *info, uint64_t now)
{
    struct impair_fate fate;
    struct flow *flow = &relay.flows[in][out][info->kind];
    impair_frame(&relay.impair, now, relay.serial, in, out, info, frame->len, &fate);
    flow->seen++;
    flow->lost += fate.copies == 0;
    for (unsigned i = 0; i < fate.copies; i++) {
        struct queue_frame *leaving = frame;
        if (fate.copy[i].corrupt) {
            leaving = spoiled(frame, info, fate.copy[i].corrupt_at, fate.copy[i].fix_checksum);
        } else {
            frame->references++;
        }
        if (leaving == NULL) {
            relay.ports[in].no_frame++;
            continue;
        }
        flow->sent++;
        if (fate.copy[i].due_ns > now) {
            queue_put(&relay.queue, fate.copy[i].due_ns, out, leaving);
        } else {
            leave(out, leaving);
        }
    }
}

static void learn(const uint8_t *address, unsigned port)
{
    for (unsigned i = 0; i < relay.stations_used; i++) {
        if (memcmp(relay.stations[i].address, address, 6) == 0) {
            relay.stations[i].port = port;
            return;
        }
    }
    if (relay.stations_used < STATIONS) {
        memcpy(relay.stations[relay.stations_used].address, address, 6);
        relay.stations[relay.stations_used++].port = port;
    }
}

/* The port behind which an address was seen; ports_used: not known, all others are tried. */
static unsigned port_of(const uint8_t *address)
{
    for (unsigned i = 0; i < relay.stations_used; i++) {
        if (memcmp(relay.stations[i].address, address, 6) == 0) {
            return relay.stations[i].port;
        }
    }
    return relay.ports_used;
}

static void arrive(unsigned in, struct queue_frame *frame, bool checksum_missing, uint64_t now)
{
    struct frame_info info;
    frame_classify(frame->data, frame->len, &relay.lbt_ports, &info);
    if (checksum_missing) {
        frame_checksum(frame->data, &info);
    }
    relay.serial++;
    relay.ports[in].received++;
    if (frame->len < 14) {
        return;
    }
    learn(frame->data + 6, in);
    unsigned only = info.group ? relay.ports_used : port_of(frame->data);
    for (unsigned out = 0; out < relay.ports_used; out++) {
        if (out != in && (only == relay.ports_used || only == out)) {
            pass(in, out, frame, &info, now);
        }
    }
}

static bool checksum_is_missing(struct msghdr *header)
{
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(header);
    struct tpacket_auxdata data;
    if (cmsg == NULL || cmsg->cmsg_level != SOL_PACKET || cmsg->cmsg_type != PACKET_AUXDATA) {
        return false;
    }
    memcpy(&data, CMSG_DATA(cmsg), sizeof data);
    return (data.tp_status & TP_STATUS_CSUMNOTREADY) != 0;
}

static unsigned prepare_reading(struct port *port)
{
    for (unsigned i = 0; i < BATCH; i++) {
        if (port->incoming[i] == NULL && (port->incoming[i] = queue_new_frame(&relay.queue)) == NULL) {
            return i;
        }
        port->pieces[i] = (struct iovec){port->incoming[i]->data, QUEUE_FRAME_BYTES};
        port->headers[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &port->pieces[i],
                                                        .msg_iovlen = 1,
                                                        .msg_control = &port->control[i],
                                                        .msg_controllen = sizeof port->control[i]}};
    }
    return BATCH;
}

/* One batch. */
static void read_port(unsigned in)
{
    struct port *port = &relay.ports[in];
    unsigned room = prepare_reading(port);
    if (room == 0) { /* every frame waits somewhere: this one is lost here, and counted */
        uint8_t nothing[1];
        port->no_frame += recv(port->fd, nothing, sizeof nothing, MSG_TRUNC) > 0;
        return;
    }
    int got = recvmmsg(port->fd, port->headers, room, MSG_DONTWAIT, NULL);
    uint64_t now = now_ns();
    for (int i = 0; i < got; i++) {
        struct queue_frame *frame = port->incoming[i];
        struct mmsghdr *header = &port->headers[i];
        if ((header->msg_hdr.msg_flags & MSG_TRUNC) != 0) {
            port->oversized++;
            continue;
        }
        frame->len = header->msg_len;
        arrive(in, frame, checksum_is_missing(&header->msg_hdr), now);
        queue_release(&relay.queue, frame);
        port->incoming[i] = NULL;
    }
}

/* ---- counters and commands ---- */

static void print_kinds(FILE *out)
{
    bool first = true;
    for (unsigned from = 0; from < relay.ports_used; from++) {
        for (unsigned to = 0; to < relay.ports_used; to++) {
            for (unsigned kind = 0; kind < FRAME_KINDS; kind++) {
                const struct flow *flow = &relay.flows[from][to][kind];
                if (flow->seen == 0) {
                    continue;
                }
                fprintf(out,
                        "%s{\"from\": %u, \"to\": %u, \"kind\": \"%s\", \"seen\": %lu, \"lost\": %lu, \"sent\": %lu}",
                        first ? "" : ", ", from, to, frame_kind_names[kind], flow->seen, flow->lost, flow->sent);
                first = false;
            }
        }
    }
}

static void print_rules(FILE *out)
{
    for (size_t i = 0; i < relay.impair.rules_used; i++) {
        const struct impair_rule *rule = &relay.impair.rules[i];
        fprintf(out, "%s\"%s\": [", i == 0 ? "" : ", ", rule->name);
        for (unsigned port = 0; port < relay.ports_used; port++) {
            const struct impair_counts *counts = &rule->counts[port];
            fprintf(out,
                    "%s{\"matched\": %lu, \"lost\": %lu, \"duplicated\": %lu, \"delayed\": %lu, \"reordered\": %lu, "
                    "\"corrupted\": %lu, \"overflowed\": %lu}",
                    port == 0 ? "" : ", ", counts->matched, counts->lost, counts->duplicated, counts->delayed,
                    counts->reordered, counts->corrupted, counts->overflowed);
        }
        fputs("]", out);
    }
}

static void print_counters(FILE *out)
{
    fprintf(out, "{\"seed\": %lu, \"longest_queue\": %zu, \"ports\": [", relay.impair.seed, relay.queue.longest);
    for (unsigned i = 0; i < relay.ports_used; i++) {
        struct port *port = &relay.ports[i];
        struct tpacket_stats stats;
        socklen_t len = sizeof stats;
        if (getsockopt(port->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) == 0) {
            port->kernel_drops += stats.tp_drops; /* reading sets the kernel's count to 0 */
        }
        fprintf(out,
                "%s{\"name\": \"%s\", \"received\": %lu, \"sent\": %lu, \"send_failed\": %lu, \"oversized\": %lu, "
                "\"kernel_drops\": %lu, \"no_frame\": %lu}",
                i == 0 ? "" : ", ", port->name, port->received, port->sent, port->send_failed, port->oversized,
                port->kernel_drops, port->no_frame);
    }
    fputs("], \"rules\": {", out);
    print_rules(out);
    fputs("}, \"flows\": [", out);
    print_kinds(out);
    fputs("]}", out);
}

static bool interface_command(const char *line, bool *done)
{
    unsigned number;
    bool up = sscanf(line, "up %u", &number) == 1;
    if ((!up && sscanf(line, "down %u", &number) != 1) || number >= relay.ports_used) {
        return false;
    }
    *done = set_interface(relay.ports[number].name, up);
    return true;
}

static void answer(const char *line)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    char reason[256] = "the system refuses";
    bool done = true;
    if (out == NULL) {
        die("no memory for an answer");
    }
    if (strcmp(line, "counters") == 0) {
        print_counters(out);
    } else if (strcmp(line, "quit") == 0) {
        ended = 1;
        fputs("ok", out);
    } else {
        if (!interface_command(line, &done)) {
            done = impair_command(&relay.impair, line, reason, sizeof reason);
        }
        fprintf(out, done ? "ok" : "error: %s", reason);
    }
    fclose(out);
    (void)send(relay.client, text, len, MSG_NOSIGNAL);
    free(text);
}

static void read_commands(void)
{
    char line[512];
    ssize_t len = recv(relay.client, line, sizeof line - 1, MSG_DONTWAIT);
    if (len > 0) {
        line[len] = '\0';
        answer(line);
    } else if (len == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(relay.client);
        relay.client = -1;
    }
}

static void listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    relay.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (relay.listener < 0 || bind(relay.listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(relay.listener, 1) != 0) {
        die("%s", path);
    }
}

/* ---- the loop ---- */

static void release_due(void)
{
    struct queue_entry entry;
    uint64_t now = now_ns();
    while (queue_take_due(&relay.queue, now, &entry)) {
        leave(entry.port, entry.frame);
    }
}

static void wait_for_work(struct pollfd *fds, unsigned *count)
{
    struct timespec wait = {0}, *timeout = NULL;
    unsigned used = 0;
    if (relay.queue.used > 0) {
        uint64_t now = now_ns(), due = relay.queue.heap[0].due_ns;
        uint64_t ns = due > now ? due - now : 0;
        wait = (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
        timeout = &wait;
    }
    for (; used < relay.ports_used; used++) {
        fds[used] = (struct pollfd){relay.ports[used].fd, POLLIN, 0};
    }
    fds[used++] = (struct pollfd){relay.client >= 0 ? relay.client : relay.listener, POLLIN, 0};
    *count = used;
    sigset_t none;
    sigemptyset(&none);
    if (ppoll(fds, used, timeout, &none) < 0 && errno != EINTR) {
        die("ppoll");
    }
}

static void run(void)
{
    struct pollfd fds[IMPAIR_PORTS + 1];
    unsigned count;
    while (!ended) {
        wait_for_work(fds, &count);
        for (unsigned i = 0; i < relay.ports_used; i++) {
            if (fds[i].revents != 0) {
                read_port(i);
            }
        }
        release_due();
        for (unsigned i = 0; i < relay.ports_used; i++) {
            flush_port(&relay.ports[i]);
        }
        if (fds[count - 1].revents != 0 && relay.client >= 0) {
            read_commands();
        } else if (fds[count - 1].revents != 0) {
            relay.client = accept4(relay.listener, NULL, NULL, SOCK_CLOEXEC);
        }
    }
}

static bool port_range(const char *text, uint16_t *low, uint16_t *high)
{
    return sscanf(text, "%hu-%hu", low, high) == 2 && *low <= *high;
}

static const char *parse_arguments(int argc, char **argv, uint64_t *seed)
{
    const char *control = NULL;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (argv[i][0] != '-') {
            if (relay.ports_used == IMPAIR_PORTS) {
                fprintf(stderr, "%s: at most %d interfaces\n", argv[i], IMPAIR_PORTS);
                exit(2);
            }
            port_open(&relay.ports[relay.ports_used++], argv[i]);
            continue;
        }
        bool good = value != NULL;
        if (good && strcmp(argv[i], "--no-offload") == 0) {
            no_offload(value);
            exit(0);
        } else if (good && strcmp(argv[i], "--control") == 0) {
            control = value;
        } else if (good && strcmp(argv[i], "--seed") == 0) {
            *seed = strtoull(value, NULL, 0);
        } else if (good && strcmp(argv[i], "--rm") == 0) {
            good = port_range(value, &relay.lbt_ports.rm_low, &relay.lbt_ports.rm_high);
        } else if (good && strcmp(argv[i], "--ru") == 0) {
            good = port_range(value, &relay.lbt_ports.ru_low, &relay.lbt_ports.ru_high);
        } else {
            good = false;
        }
        if (!good) {
            fprintf(stderr, "%s: unknown, or its value is missing or wrong\n", argv[i]);
            exit(2);
        }
        i++;
    }
    return control;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1;
    queue_init(&relay.queue, FRAMES_MAX);
    const char *control = parse_arguments(argc, argv, &seed);
    if (control == NULL || relay.ports_used < 2) {
        fprintf(stderr, "--control and at least two interfaces are needed\n");
        return 2;
    }
    impair_init(&relay.impair, seed, relay.ports_used);
    listen_at(control);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGINT);
    sigprocmask(SIG_BLOCK, &blocked, NULL); /* let through while waiting only */
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    printf("relay of %u ports, seed %lu\n", relay.ports_used, seed);
    fflush(stdout);
    run();
    print_counters(stdout);
    fputc('\n', stdout);
    unlink(control);
    return 0;
}
