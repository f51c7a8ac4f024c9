/* What LBT-RM and LBT-RU hand to the system, looked at from the system calls, which this
 * program puts its own in place of: a message is sent, and sent again, from the memory it
 * was written to; and sources are deleted while much is still to be sent. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/um_source.h"
#include "transport/session/um_src_batch.h"
#include "um_test_net.h"
#include "um_test_rcv.h"
#include "wire/um_lbtrm.h"
#include "wire/um_lbtru.h"

#define MARK "a payload that is looked for"

/* ---- the system calls: any thread ---- */

static atomic_int allowed = -1; /* datagrams that the system still takes; -1: all */
static atomic_int refusals;
static _Atomic(const void *) seen_at[8];
static atomic_int seen;

static void look(const struct msghdr *msg)
{
    for (size_t i = 0; i < msg->msg_iovlen; i++) {
        const struct iovec *iov = &msg->msg_iov[i];
        const void *at = iov->iov_len > 0 ? memmem(iov->iov_base, iov->iov_len, MARK, sizeof MARK) : NULL;
        if (at != NULL && seen < 8) {
            seen_at[seen] = at;
            seen++;
        }
    }
}

/* Of datagrams with much data; the short ones of topic resolution and of session messages always go. */
static bool taken(const struct msghdr *msg)
{
    size_t len = 0;
    for (size_t i = 0; i < msg->msg_iovlen; i++) {
        len += msg->msg_iov[i].iov_len;
    }
    if (len < 1000 || allowed < 0) {
        return true;
    }
    if (allowed > 0) {
        allowed--;
        return true;
    }
    refusals++;
    errno = EAGAIN;
    return false;
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    if (!taken(msg)) {
        return -1;
    }
    look(msg);
    return syscall(SYS_sendmsg, fd, msg, flags);
}

int sendmmsg(int fd, struct mmsghdr *msgs, unsigned count, int flags)
{
    if (!taken(&msgs[0].msg_hdr)) {
        return -1;
    }
    look(&msgs[0].msg_hdr);
    return (int)syscall(SYS_sendmmsg, fd, msgs, 1, flags); /* one of them: the rest must be asked for again */
}

/* ---- sources and what asks them for repairs ---- */

static lbm_context_t *context(const char *const *options)
{
    lbm_context_attr_t *attr = net_context_attr();
    for (; *options != NULL; options += 2) {
        MUST(lbm_context_attr_str_setopt(attr, options[0], options[1]));
    }
    return net_context_with(attr);
}

#define CONTEXT(...) context((const char *const[]){__VA_ARGS__, NULL})

static lbm_src_t *source(lbm_context_t *ctx, const char *transport, const char *batching)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    MUST(lbm_src_topic_attr_str_setopt(attr, "implicit_batching_minimum_length", batching));
    MUST(lbm_src_topic_attr_str_setopt(attr, "implicit_batching_interval", "600000"));
    MUST(lbm_src_topic_alloc(&topic, ctx, "window", attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    return src;
}

static lbm_src_transport_stats_t stats_of(lbm_src_t *src)
{
    lbm_src_transport_stats_t stats;
    MUST(lbm_src_retrieve_transport_stats(src, &stats));
    return stats;
}

static unsigned long naks_of(lbm_src_t *src)
{
    lbm_src_transport_stats_t stats = stats_of(src);
    return stats.type == LBM_TRANSPORT_STAT_LBTRM ? stats.transport.lbtrm.naks_rcved : stats.transport.lbtru.naks_rcved;
}

struct peer {
    int fd;
    bool ru;
    lbm_transport_source_info_t info;
    uint32_t first; /* number of the source's first datagram to it */
};

static void put(const struct peer *peer, const uint8_t *packet, size_t len)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(peer->info.src_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (sendto(peer->fd, packet, len, 0, (struct sockaddr *)&to, sizeof to) != (ssize_t)len) {
        abort();
    }
}

/* The answer to a request tells the numbers of the client; it repeats the lead to become one. */
static uint32_t repeat_answer(const struct peer *peer)
{
    uint8_t bytes[2048];
    struct um_lbtru_packet packet;
    struct pollfd readable = {.fd = peer->fd, .events = POLLIN};
    do {
        ssize_t len = poll(&readable, 1, HANG_SECONDS * 1000) == 1 ? recv(peer->fd, bytes, sizeof bytes, 0) : -1;
        if (len <= 0 || um_lbtru_decode(bytes, (size_t)len, &packet) != UM_LBTR_OK) {
            abort();
        }
    } while (packet.type != UM_LBTRU_SM);
    put(peer, bytes, um_lbtru_put_ack(bytes, peer->info.session_id, packet.lead));
    return packet.trail;
}

/* A plain socket; over LBT-RU a client of the source. */
static struct peer join(lbm_src_t *src, bool ru)
{
    struct peer peer = {.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), .ru = ru};
    lbm_src_transport_stats_t stats = stats_of(src);
    MUST(lbm_transport_source_parse(stats.source, &peer.info, sizeof peer.info));
    if (ru) {
        uint8_t packet[UM_LBTRU_CREQ_MAX];
        put(&peer, packet, um_lbtru_put_creq(packet, peer.info.session_id));
        peer.first = repeat_answer(&peer);
        MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    }
    return peer;
}

static void nak(const struct peer *peer, const uint32_t *sqns, size_t count)
{
    uint8_t packet[UM_LBTR_LIST_BYTES_MAX];
    struct um_lbtrm_session session = {peer->info.src_port, peer->info.session_id};
    put(peer, packet,
        peer->ru ? um_lbtru_put_nak(packet, peer->info.session_id, sqns, count)
                 : um_lbtrm_put_nak(packet, &session, sqns, count));
}

static bool wait_seen(int count)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && seen < count; i++) {
        usleep(1000);
    }
    return seen >= count;
}

static bool wait_naks(lbm_src_t *src, unsigned long count)
{
    for (int i = 0; i < HANG_SECONDS * 1000 && naks_of(src) < count; i++) {
        usleep(1000);
    }
    return naks_of(src) >= count;
}

/* ---- one copy ---- */

/* Where the batch has the message. */
static const uint8_t *written_to(lbm_src_t *src)
{
    struct um_src_session *session = src->stream.session;
    um_src_session_lock(session);
    const uint8_t *at = memmem(session->batch->data, session->batch->len, MARK, sizeof MARK);
    um_src_session_unlock(session);
    return at;
}

static void check_one_copy(const char *transport, bool ru)
{
    lbm_context_t *ctx = CONTEXT("transport_lbtru_data_rate_limit", "1000000000");
    lbm_src_t *src = source(ctx, transport, "8000");
    struct peer peer = join(src, ru);
    uint32_t sqn = peer.first + (ru ? 1 : 0); /* the first of a client tells it the last numbers */
    static const char payload[] = MARK;
    seen = 0;
    MUST(lbm_src_send(src, payload, sizeof payload, 0));
    const uint8_t *place = written_to(src);
    CHECK(place != NULL);
    CHECK_EQ(seen, 0);
    MUST(lbm_src_flush(src));
    CHECK_EQ(seen, 1);
    CHECK(seen_at[0] == place);
    nak(&peer, &sqn, 1);
    CHECK(wait_seen(2));
    CHECK(seen_at[1] == place);
    close(peer.fd);
    lbm_src_delete(src);
    lbm_context_delete(ctx);
}

TEST(a_message_is_sent_and_repaired_from_where_it_was_written)
{
    TEST_NEEDS_NET();
    check_one_copy("lbtrm", false);
    check_one_copy("lbtru", true);
}

/* ---- deleting ---- */

static void send_many(lbm_src_t *src, int count)
{
    static char payload[1000];
    for (int i = 0; i < count; i++) {
        MUST(lbm_src_send(src, payload, sizeof payload, LBM_MSG_FLUSH));
    }
}

static void delete_both(lbm_context_t *ctx, lbm_src_t *src, struct peer *peer)
{
    lbm_src_delete(src);
    lbm_context_delete(ctx);
    close(peer->fd);
    allowed = -1;
}

static void check_queued_naks(const char *transport, bool ru)
{
    lbm_context_t *ctx =
        CONTEXT("transport_lbtrm_retransmit_rate_limit", "8000", "transport_lbtru_retransmit_rate_limit", "8000",
                "transport_lbtrm_data_rate_limit", "1000000000", "transport_lbtru_data_rate_limit", "1000000000");
    lbm_src_t *src = source(ctx, transport, "2048");
    struct peer peer = join(src, ru);
    uint32_t sqns[8];
    send_many(src, 40);
    for (uint32_t i = 0; i < 8; i++) { /* 1000 bytes in a second: one goes, the others wait */
        sqns[i] = peer.first + 10 + i;
    }
    nak(&peer, sqns, 8);
    CHECK(wait_naks(src, 8));
    lbm_src_transport_stats_t stats = stats_of(src);
    CHECK((ru ? stats.transport.lbtru.rxs_sent : stats.transport.lbtrm.rxs_sent) < 8);
    delete_both(ctx, src, &peer);
}

TEST(a_source_may_be_deleted_while_repairs_wait)
{
    TEST_NEEDS_NET();
    check_queued_naks("lbtrm", false);
    check_queued_naks("lbtru", true);
}

/* `first` datagrams go before the socket is full. */
static void check_full(const char *transport, bool ru, int first)
{
    static char big[300000];
    lbm_context_t *ctx = CONTEXT("transport_lbtrm_data_rate_limit", "1000000000", "transport_lbtru_data_rate_limit",
                                 "1000000000", "um_udp_segmentation_offload", first == 1 ? "0" : "1");
    lbm_src_t *src = source(ctx, transport, "2048");
    struct peer peer = join(src, ru);
    uint32_t sqns[2] = {peer.first + (ru ? 1 : 0), peer.first + 2};
    send_many(src, 5);
    refusals = 0;
    allowed = first;
    MUST(lbm_src_send(src, big, sizeof big, LBM_MSG_FLUSH | LBM_SRC_NONBLOCK)); /* a train of fragments */
    send_many(src, 1);
    nak(&peer, sqns, 2);
    usleep(20000);
    CHECK(refusals > 0);
    delete_both(ctx, src, &peer);
}

TEST(a_source_may_be_deleted_while_its_socket_is_full)
{
    TEST_NEEDS_NET();
    check_full("lbtrm", false, 0);
    check_full("lbtru", true, 0);
}

TEST(a_source_may_be_deleted_while_a_train_is_half_sent)
{
    TEST_NEEDS_NET();
    check_full("lbtrm", false, 1);
    check_full("lbtru", true, 1);
    check_full("lbtrm", false, 2);
    check_full("lbtru", true, 2);
}

TEST(trains_are_whole_when_the_system_takes_them_one_by_one)
{
    TEST_NEEDS_NET();
    struct recorder r = RECORDER_INIT;
    static char big[300000];
    lbm_context_t *ctx = CONTEXT("um_udp_segmentation_offload", "0", "transport_lbtru_data_rate_limit", "1000000000");
    lbm_context_t *other = CONTEXT("um_udp_segmentation_offload", "0");
    lbm_rcv_t *rcv = net_recording_receiver(other, "window", &r);
    lbm_src_t *src = source(ctx, "lbtru", "2048");
    MUST(um_src_wait_receivers(src, 1, HANG_SECONDS * 1000));
    MUST(lbm_src_send(src, big, sizeof big, LBM_MSG_FLUSH));
    CHECK(recorder_wait(&r, LBM_MSG_DATA, 1));
    CHECK_EQ(r.bytes, sizeof big);
    lbm_rcv_delete(rcv);
    lbm_src_delete(src);
    lbm_context_delete(other);
    lbm_context_delete(ctx);
}
