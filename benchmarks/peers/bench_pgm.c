/* OpenPGM over multicast on a veth cable, PGM in UDP: repair by NAK, as LBT-RM does. It has no batching of messages:
 * one is one datagram. Blocks in poll(), or polls with --spin. */
#include <poll.h>
#define CONFIG_HAVE_POLL 1
#define HAVE_POLL 1
#include <netinet/in.h>
#include <pgm/pgm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../bench_veth.h"
#include "peer_sides.h"

enum { CABLE_MTU = 9500, PGM_DATAGRAM = 9200, WINDOW = 20000, PORT = 18500, TAKE = 20, DRAIN_EVERY = 64 };

struct pgm_side {
    pgm_sock_t *sender, *receiver;
    struct pgm_msgv_t taken[TAKE];
    unsigned sent;
};

static void fail(const char *what, pgm_error_t *error)
{
    bench_die("%s: %s", what, error != NULL && error->message != NULL ? error->message : "refused");
}

static void set(pgm_sock_t *sock, int option, const void *value, socklen_t len)
{
    if (!pgm_setsockopt(sock, IPPROTO_PGM, option, value, len)) {
        bench_die("PGM socket option %d is refused", option);
    }
}

static void set_int(pgm_sock_t *sock, int option, int value)
{
    set(sock, option, &value, sizeof value);
}

static void set_sender(pgm_sock_t *sock)
{
    static const int heartbeats_us[] = {4000, 4000, 8000, 16000, 32000, 64000, 128000, 256000};
    set_int(sock, PGM_SEND_ONLY, 1);
    set_int(sock, PGM_TXW_SQNS, WINDOW);
    set_int(sock, PGM_AMBIENT_SPM, 200000);
    set(sock, PGM_HEARTBEAT_SPM, heartbeats_us, sizeof heartbeats_us);
}

static void set_receiver(pgm_sock_t *sock)
{
    set_int(sock, PGM_RECV_ONLY, 1);
    set_int(sock, PGM_PASSIVE, 0);
    set_int(sock, PGM_RXW_SQNS, WINDOW);
    set_int(sock, PGM_PEER_EXPIRY, 30000000);
    set_int(sock, PGM_SPMR_EXPIRY, 250000);
    set_int(sock, PGM_NAK_BO_IVL, 1000);
    set_int(sock, PGM_NAK_RPT_IVL, 20000);
    set_int(sock, PGM_NAK_RDATA_IVL, 20000);
    set_int(sock, PGM_NAK_DATA_RETRIES, 50);
    set_int(sock, PGM_NAK_NCF_RETRIES, 50);
}

static void bind_to(pgm_sock_t *sock, const struct pgm_addrinfo_t *addresses, int port, const char *who)
{
    pgm_error_t *error = NULL;
    struct pgm_sockaddr_t address = {.sa_port = (uint16_t)port};
    struct pgm_interface_req_t interface = {.ir_interface = addresses->ai_recv_addrs[0].gsr_interface};
    memcpy(&interface.ir_address, &addresses->ai_send_addrs[0].gsr_addr, sizeof(struct sockaddr_in));
    if (!pgm_gsi_create_from_data(&address.sa_addr.gsi, (const uint8_t *)who, strlen(who)) ||
        !pgm_bind3(sock, &address, sizeof address, &interface, sizeof interface, &interface, sizeof interface,
                   &error)) {
        fail("pgm_bind3", error);
    }
}

static pgm_sock_t *open_socket(int role, int channel, bool sends)
{
    pgm_error_t *error = NULL;
    struct pgm_addrinfo_t *addresses = NULL;
    pgm_sock_t *sock = NULL;
    char network[64], who[64];
    int port = PORT + channel, buffer = 4 << 20;
    snprintf(network, sizeof network, "%s;239.192.9.%d", BENCH_VETH_ADDRESS(role), channel + 1);
    if (!pgm_getaddrinfo(network, NULL, &addresses, &error)) {
        fail(network, error);
    }
    if (!pgm_socket(&sock, addresses->ai_send_addrs[0].gsr_group.ss_family, SOCK_SEQPACKET, IPPROTO_UDP, &error)) {
        fail("pgm_socket", error);
    }
    set_int(sock, PGM_UDP_ENCAP_UCAST_PORT, port);
    set_int(sock, PGM_UDP_ENCAP_MCAST_PORT, port);
    set_int(sock, PGM_MTU, PGM_DATAGRAM);
    (void)pgm_setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    (void)pgm_setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    (sends ? set_sender : set_receiver)(sock);
    snprintf(who, sizeof who, "bench-%d-%d-%d", (int)getpid(), channel, sends);
    bind_to(sock, addresses, port, who);
    for (uint32_t i = 0; i < addresses->ai_recv_addrs_len; i++) {
        set(sock, PGM_JOIN_GROUP, &addresses->ai_recv_addrs[i], sizeof(struct group_req));
    }
    set(sock, PGM_SEND_GROUP, &addresses->ai_send_addrs[0], sizeof(struct group_req));
    set_int(sock, PGM_MULTICAST_LOOP, 0);
    set_int(sock, PGM_MULTICAST_HOPS, 1);
    set_int(sock, PGM_NOBLOCK, 1);
    if (!pgm_connect(sock, &error)) {
        fail("pgm_connect", error);
    }
    pgm_freeaddrinfo(addresses);
    return sock;
}

static void *pgm_side_open(int role, bool both)
{
    pgm_error_t *error = NULL;
    struct pgm_side *side = calloc(1, sizeof *side);
    if (!pgm_init(&error)) {
        fail("pgm_init", error);
    }
    side->sender = both || role == 0 ? open_socket(role, role, true) : NULL;
    side->receiver = both || role == 1 ? open_socket(role, 1 - role, false) : NULL;
    return side;
}

/* NAKs are answered only inside calls of the sender's socket. */
static void answer_naks(pgm_sock_t *sender)
{
    char nothing[2048];
    size_t len;
    pgm_error_t *error = NULL;
    int status = pgm_recv(sender, nothing, sizeof nothing, MSG_DONTWAIT, &len, &error);
    if (status == PGM_IO_STATUS_ERROR && error != NULL) {
        pgm_error_free(error);
    }
}

static void pgm_side_send(void *peer_side, const void *data, size_t len)
{
    struct pgm_side *side = peer_side;
    size_t written;
    if (++side->sent % DRAIN_EVERY == 0) {
        answer_naks(side->sender);
    }
    for (int status; (status = pgm_send(side->sender, data, len, &written)) != PGM_IO_STATUS_NORMAL;) {
        if (status == PGM_IO_STATUS_ERROR) {
            bench_die("pgm_send");
        }
        answer_naks(side->sender);
    }
}

static void pgm_side_flush(void *peer_side)
{
    (void)peer_side; /* every message has been sent */
}

static int take(struct pgm_side *side, void (*on_message)(const void *data), int *status)
{
    size_t bytes = 0, seen = 0;
    int count = 0;
    pgm_error_t *error = NULL;
    *status = pgm_recvmsgv(side->receiver, side->taken, TAKE, MSG_DONTWAIT, &bytes, &error);
    if (error != NULL) {
        pgm_error_free(error);
    }
    for (; *status == PGM_IO_STATUS_NORMAL && seen < bytes; count++) {
        const struct pgm_msgv_t *message = &side->taken[count];
        for (uint32_t i = 0; i < message->msgv_len; i++) {
            seen += message->msgv_skb[i]->len;
        }
        on_message(message->msgv_skb[0]->data);
    }
    return count;
}

static int wait_ms(struct pgm_side *side, int status, int timeout_ms)
{
    struct timeval left;
    socklen_t len = sizeof left;
    int option = status == PGM_IO_STATUS_TIMER_PENDING ? PGM_TIME_REMAIN : PGM_RATE_REMAIN;
    if ((status != PGM_IO_STATUS_TIMER_PENDING && status != PGM_IO_STATUS_RATE_LIMITED) ||
        !pgm_getsockopt(side->receiver, IPPROTO_PGM, option, &left, &len)) {
        return timeout_ms;
    }
    int ms = (int)(left.tv_sec * 1000 + (left.tv_usec + 999) / 1000);
    return ms < timeout_ms ? ms : timeout_ms;
}

static void pgm_side_poll(void *peer_side, void (*on_message)(const void *data), int timeout_ms)
{
    struct pgm_side *side = peer_side;
    uint64_t end = bench_now() + (uint64_t)timeout_ms * 1000000u;
    int status;
    if (side->sender != NULL) {
        answer_naks(side->sender);
    }
    while (take(side, on_message, &status) == 0 && bench_now() < end) {
        if (!bench_options.spin) {
            struct pollfd fds[4] = {{0}};
            int used = 4;
            pgm_poll_info(side->receiver, fds, &used, POLLIN);
            (void)poll(fds, (nfds_t)used, wait_ms(side, status, timeout_ms));
        }
    }
}

static void side(int role)
{
    static const struct peer peer = {pgm_side_open, pgm_side_send, pgm_side_flush, pgm_side_poll};
    bench_veth(role, CABLE_MTU);
    peer_run(&peer, role);
}

int main(int argc, char **argv)
{
    bench_options.impl = "pgm";
    return bench_main(argc, argv, side);
}
