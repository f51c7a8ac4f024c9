/* Source sessions over TCP on loopback sockets: batching, fragmentation,
 * explicit batches, TSNI, flow control, dropping, hostile clients, filtering,
 * mapping. The receivers are plain sockets, read and decoded by the test. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "net/um_loop.h"
#include "transport/tcp/um_tcp_src_session.h"
#include "transport/session/um_src_batch.h"
#include "transport/session/um_src_session.h"
#include "transport/session/um_src_pool.h"
#include "um_test.h"

#define HANG_MS 20000
#define QUIET_MS 30

static struct um_context_options copts;
static struct um_source_options sopts;
static struct um_transport_env env;
static struct um_src_transport *pool;
static uint8_t instance[8] = {1};

struct source {
    struct um_src_stream stream;
    atomic_int connects, disconnects, wakeups;
    char client[64];
};

static char log_text[4096];
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static int on_log(int level, const char *message, void *clientd)
{
    pthread_mutex_lock(&log_lock);
    strncat(log_text, message, sizeof log_text - strlen(log_text) - 1);
    pthread_mutex_unlock(&log_lock);
    return 0;
}

static bool logged(const char *part)
{
    pthread_mutex_lock(&log_lock);
    bool found = strstr(log_text, part) != NULL;
    pthread_mutex_unlock(&log_lock);
    return found;
}

static void on_connect(struct um_src_stream *stream, const char *client)
{
    struct source *source = UM_CONTAINER_OF(stream, struct source, stream);
    snprintf(source->client, sizeof source->client, "%s", client);
    source->connects++;
}

static void on_disconnect(struct um_src_stream *stream, const char *client)
{
    UM_CONTAINER_OF(stream, struct source, stream)->disconnects++;
}

static void on_wakeup(struct um_src_stream *stream)
{
    UM_CONTAINER_OF(stream, struct source, stream)->wakeups++;
}

static const struct um_src_stream_events events = {on_connect, on_disconnect, on_wakeup, NULL, NULL};

/* ---- running things on the loop ---- */

static int do_create(void *arg)
{
    pool = um_src_pool_create(&um_tcp_src_transport, &env);
    return pool != NULL ? 0 : -1;
}

static int do_destroy(void *arg)
{
    um_src_pool_destroy(pool);
    return 0;
}

static int do_attach(void *arg)
{
    return um_src_pool_attach(pool, &sopts, "topic", &((struct source *)arg)->stream);
}

static int do_detach(void *arg)
{
    um_src_stream_detach(&((struct source *)arg)->stream);
    return 0;
}

static const char *creq_from = "127.0.0.1";

static int do_creq(void *arg)
{
    um_tcp_src_transport.on_ssf_creq(pool, arg, inet_addr(creq_from));
    return 0;
}

static int nothing(void *arg)
{
    return 0;
}

static void settle(void)
{
    um_loop_call(env.loop, nothing, NULL);
    um_loop_call(env.loop, nothing, NULL);
}

static void options_default(void)
{
    memset(&copts, 0, sizeof copts);
    memset(&sopts, 0, sizeof sopts);
    copts.transport_tcp_datagram_max_size = 65535;
    copts.transport_tcp_maximum_ports = 10;
    sopts.implicit_batching_interval = 60000;
    sopts.implicit_batching_minimum_length = 2048;
    sopts.transport_session_maximum_buffer = 65536;
    sopts.transport_tcp_interface.addr = inet_addr("127.0.0.1");
    sopts.transport_tcp_interface.bits = 32;
    sopts.transport_tcp_listen_backlog = 5;
    sopts.transport_tcp_nodelay = 1;
    sopts.transport_tcp_use_session_id = 1;
}

static void begin(void)
{
    log_text[0] = 0;
    um_log_set_proc(on_log, NULL);
    memset(&env, 0, sizeof env);
    env.loop = um_loop_create(true, UM_LOOP_PEND, "test");
    env.opts = &copts;
    env.ctxinst = instance;
    um_loop_call(env.loop, do_create, NULL);
}

static void end(void)
{
    um_loop_call(env.loop, do_destroy, NULL);
    um_loop_destroy(env.loop);
    um_log_set_proc(NULL, NULL);
}

static uint32_t next_tidx = 1000;

static int attach(struct source *source)
{
    memset(source, 0, sizeof *source);
    source->stream.events = &events;
    source->stream.tidx = next_tidx++;
    return um_loop_call(env.loop, do_attach, source);
}

static void detach(struct source *source)
{
    um_loop_call(env.loop, do_detach, source);
}

static uint16_t port_of(struct source *source)
{
    lbm_transport_source_info_t info;
    um_src_stream_source_info(&source->stream, &info);
    return info.src_port;
}

static uint32_t session_of(struct source *source)
{
    lbm_transport_source_info_t info;
    um_src_stream_source_info(&source->stream, &info);
    return info.session_id;
}

static int send_flags(struct source *source, const void *data, size_t len, int flags)
{
    bool waited;
    return um_src_stream_send_plain(&source->stream, data, len, flags, &waited);
}

static bool wait_for(atomic_int *counter, int value)
{
    for (int i = 0; i < HANG_MS && *counter < value; i++) {
        usleep(1000);
    }
    return *counter >= value;
}

/* ---- a receiver that is a plain socket ---- */

struct peer {
    int fd;
    uint8_t data[1 << 20];
    size_t len, at;
};

static struct peer peers[3];

static bool peer_connect(struct peer *peer, struct source *source, int rcvbuf)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port_of(source)), .sin_addr.s_addr = inet_addr("127.0.0.1")};
    int before = source->connects;
    peer->len = peer->at = 0;
    peer->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (rcvbuf > 0) {
        setsockopt(peer->fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof rcvbuf);
    }
    return connect(peer->fd, (struct sockaddr *)&to, sizeof to) == 0 && wait_for(&source->connects, before + 1);
}

/* Read what comes within `ms`; false at the end of the connection or when nothing comes. */
static bool peer_fill(struct peer *peer, int ms)
{
    struct pollfd pfd = {.fd = peer->fd, .events = POLLIN};
    if (poll(&pfd, 1, ms) <= 0) {
        return false;
    }
    if (peer->at > 0) {
        memmove(peer->data, peer->data + peer->at, peer->len - peer->at);
        peer->len -= peer->at;
        peer->at = 0;
    }
    ssize_t got = recv(peer->fd, peer->data + peer->len, sizeof peer->data - peer->len, 0);
    if (got <= 0) {
        return false;
    }
    peer->len += (size_t)got;
    return true;
}

static bool peer_next(struct peer *peer, struct um_lbmc_msg *msg, int ms)
{
    for (;;) {
        enum um_lbmc_rc rc = um_lbmc_decode(peer->data + peer->at, peer->len - peer->at, msg);
        if (rc == UM_LBMC_OK) {
            peer->at += msg->msglen;
            return true;
        }
        if (rc != UM_LBMC_SHORT || !peer_fill(peer, ms)) {
            return false;
        }
    }
}

/* The next data message; TSNIs are stepped over. */
static bool peer_data(struct peer *peer, struct um_lbmc_msg *msg, int ms)
{
    do {
        if (!peer_next(peer, msg, ms)) {
            return false;
        }
    } while (msg->type == UM_LBMC_CONTROL);
    return true;
}

/* Reads until the source was woken again: by then there may be nothing left to read. Messages come in order; with
   next, none is missing either. */
static bool read_until_wakeup(struct peer *peer, struct source *source, int wakeups, uint32_t *next)
{
    struct um_lbmc_msg msg;
    int64_t least = next == NULL ? 0 : *next;
    int idle_ms = 0;
    while (source->wakeups == wakeups) {
        if (!peer_data(peer, &msg, QUIET_MS)) {
            idle_ms += QUIET_MS;
            if (idle_ms >= HANG_MS) {
                return false;
            }
            continue;
        }
        idle_ms = 0;
        if (msg.sqn < least || (next != NULL && msg.sqn != least)) {
            return false;
        }
        least = (int64_t)msg.sqn + 1;
    }
    if (next != NULL) {
        *next = (uint32_t)least;
    }
    return true;
}

static bool peer_closed(struct peer *peer)
{
    uint8_t byte[4096];
    struct pollfd pfd = {.fd = peer->fd, .events = POLLIN};
    while (poll(&pfd, 1, HANG_MS) > 0) {
        ssize_t got = recv(peer->fd, byte, sizeof byte, 0);
        if (got <= 0) {
            return true;
        }
    }
    return false;
}

static uint8_t payload[300000];
static struct source a, b, c;
static struct um_lbmc_msg msg;

/* ---- batching ---- */

TEST(two_messages_leave_together_when_the_minimum_length_is_reached)
{
    options_default();
    sopts.implicit_batching_minimum_length = 2000;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    CHECK(peer_next(&peers[0], &msg, HANG_MS));
    CHECK_EQ(send_flags(&a, payload, 1900, 0), 0);
    CHECK(!peer_next(&peers[0], &msg, QUIET_MS));
    CHECK_EQ(send_flags(&a, payload, 1900, 0), 0);
    CHECK(peer_next(&peers[0], &msg, HANG_MS));
    CHECK_EQ(msg.sqn, 0);
    CHECK_EQ(msg.payload.len, 1900);
    CHECK_EQ(peers[0].len - peers[0].at, 1912); /* came in the same read */
    CHECK(peer_next(&peers[0], &msg, 0));
    CHECK_EQ(msg.sqn, 1);
    close(peers[0].fd);
    detach(&a);
    end();
}

/* A payload of 900 bytes with 1,500 bytes of properties behind it. */
static bool send_beside(struct source *source, size_t beside)
{
    const struct um_src_parts parts = {
        .data = payload, .len = 900, .behind = payload, .behind_len = 1500, .beside_len = beside};
    return um_src_stream_send_parts(&source->stream, &parts, 0);
}

TEST(properties_do_not_fill_a_batch)
{
    options_default();
    sopts.implicit_batching_minimum_length = 2000;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    CHECK(peer_next(&peers[0], &msg, HANG_MS));
    CHECK(send_beside(&a, 1500));
    CHECK(send_beside(&a, 1500));
    CHECK(!peer_next(&peers[0], &msg, QUIET_MS));
    CHECK(send_beside(&a, 1500));
    for (uint32_t sqn = 0; sqn < 3; sqn++) {
        CHECK(peer_next(&peers[0], &msg, HANG_MS));
        CHECK_EQ(msg.sqn, sqn);
        CHECK_EQ(msg.payload.len, 2400);
    }
    CHECK(send_beside(&a, 0)); /* pieces of the payload do, and the next batch counts anew */
    CHECK(peer_next(&peers[0], &msg, HANG_MS));
    CHECK_EQ(msg.sqn, 3);
    close(peers[0].fd);
    detach(&a);
    end();
}

TEST(the_interval_sends_what_waits_and_sources_share_a_batch)
{
    options_default();
    copts.transport_tcp_maximum_ports = 1;
    sopts.implicit_batching_interval = 2000; /* all three are sent within it */
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK_EQ(attach(&b), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    uint64_t start = um_clock_ns();
    CHECK_EQ(send_flags(&a, "one", 3, 0), 0);
    CHECK_EQ(send_flags(&b, "two", 3, 0), 0);
    CHECK_EQ(send_flags(&a, "three", 5, 0), 0);
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    CHECK(um_clock_ns() - start >= 1900 * UM_NS_PER_MS);
    CHECK_EQ(msg.tidx, a.stream.tidx);
    CHECK(peer_data(&peers[0], &msg, 0));
    CHECK_EQ(msg.tidx, b.stream.tidx);
    CHECK_EQ(msg.sqn, 0);
    CHECK(peer_data(&peers[0], &msg, 0));
    CHECK_EQ(msg.tidx, a.stream.tidx);
    CHECK_EQ(msg.sqn, 1);
    CHECK_EQ(send_flags(&a, "again", 5, 0), 0); /* the timer works a second time */
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    close(peers[0].fd);
    detach(&a);
    detach(&b);
    end();
}

TEST(the_flush_flag_sends_the_message_and_all_before_it_at_once)
{
    options_default();
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    CHECK_EQ(send_flags(&a, "one", 3, 0), 0);
    CHECK_EQ(send_flags(&a, "two", 3, LBM_MSG_FLUSH), 0);
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    CHECK_EQ(msg.sqn, 1);
    CHECK_EQ(send_flags(&a, "", 0, 0), 0);
    um_src_stream_flush(&a.stream);
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    CHECK_EQ(msg.payload.len, 0);
    close(peers[0].fd);
    detach(&a);
    end();
}

TEST(a_message_that_does_not_fit_sends_the_batch_before_it)
{
    options_default();
    copts.transport_tcp_datagram_max_size = 1000;
    sopts.implicit_batching_minimum_length = 100000;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    CHECK(peer_next(&peers[0], &msg, HANG_MS)); /* TSNI */
    CHECK_EQ(send_flags(&a, payload, 488, 0), 0);
    CHECK_EQ(send_flags(&a, payload, 488, 0), 0); /* exactly 1000 bytes */
    CHECK(!peer_next(&peers[0], &msg, QUIET_MS));
    CHECK_EQ(send_flags(&a, payload, 1, 0), 0);
    CHECK(peer_fill(&peers[0], HANG_MS));
    CHECK_EQ(peers[0].len - peers[0].at, 1000);
    close(peers[0].fd);
    detach(&a);
    end();
}

TEST(full_batches_of_a_burst_join_but_none_stays_behind)
{
    options_default();
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    for (uint32_t i = 0; i < 10000; i++) {
        CHECK_EQ(send_flags(&a, payload, 64, 0), 0);
    }
    for (uint32_t i = 0; i < 10000 - 32; i++) { /* what is less than the minimum length waits for the interval */
        CHECK(peer_data(&peers[0], &msg, HANG_MS));
        CHECK_EQ(msg.sqn, i);
    }
    close(peers[0].fd);
    detach(&a);
    end();
}

TEST(adaptive_batching_sends_at_once_when_the_session_was_idle)
{
    options_default();
    sopts.implicit_batching_type = LBM_SRC_TOPIC_ATTR_IMPLICIT_BATCH_TYPE_ADAPTIVE;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    usleep(3000);
    CHECK_EQ(send_flags(&a, "one", 3, 0), 0);
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    close(peers[0].fd);
    detach(&a);
    end();
}

/* ---- fragments ---- */

TEST(a_message_over_the_reserve_is_cut_into_full_fragments_and_a_rest)
{
    options_default();
    copts.transport_tcp_datagram_max_size = 8192;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    CHECK_EQ(send_flags(&a, payload, 7866, LBM_MSG_FLUSH), 0);
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    CHECK_EQ(msg.present & UM_LBMC_HAS_FRAG, 0);
    for (size_t i = 0; i < 7866 * 2 + 1; i++) {
        payload[i] = (uint8_t)(i * 7);
    }
    CHECK_EQ(send_flags(&a, payload, 7866 * 2 + 1, LBM_MSG_FLUSH), 0);
    size_t offset = 0;
    for (uint32_t k = 0; k < 3; k++) {
        CHECK(peer_data(&peers[0], &msg, HANG_MS));
        CHECK(msg.present & UM_LBMC_HAS_FRAG);
        CHECK_EQ(msg.sqn, 1 + k);
        CHECK_EQ(msg.frag.first_sqn, 1);
        CHECK_EQ(msg.frag.offset, offset);
        CHECK_EQ(msg.frag.len, 7866 * 2 + 1);
        CHECK_EQ(msg.payload.len, k < 2 ? 7866 : 1);
        CHECK(memcmp(msg.payload.ptr, payload + offset, msg.payload.len) == 0);
        offset += msg.payload.len;
    }
    CHECK_EQ(send_flags(&a, payload, 5, LBM_MSG_FLUSH), 0);
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    CHECK_EQ(msg.sqn, 4);
    close(peers[0].fd);
    detach(&a);
    end();
}

TEST(dynamic_reduction_subtracts_only_the_headers_there_are)
{
    options_default();
    copts.transport_tcp_datagram_max_size = 1472;
    copts.dynamic_fragmentation_reduction = 1;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    CHECK_EQ(send_flags(&a, payload, 1460, LBM_MSG_FLUSH), 0);
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    CHECK_EQ(msg.msglen, 1472);
    CHECK_EQ(msg.present & UM_LBMC_HAS_FRAG, 0);
    CHECK_EQ(send_flags(&a, payload, 1461, LBM_MSG_FLUSH), 0);
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    CHECK_EQ(msg.msglen, 1472);
    CHECK_EQ(msg.payload.len, 1444);
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    CHECK_EQ(msg.payload.len, 17);
    close(peers[0].fd);
    detach(&a);
    end();
}

TEST(gathered_pieces_with_extension_headers_make_one_message)
{
    options_default();
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    uint8_t request[16] = {0x00, 16, 0, 0, 0, 0, 0, 7, 0x38, 0x38, 0, 0, 127, 0, 0, 1};
    struct iovec iov[4] = {{"ab", 2}, {NULL, 0}, {"cde", 3}, {"f", 1}};
    struct um_send send = {.iov = iov,
                           .iovcnt = 4,
                           .len = 6,
                           .flags = LBM_MSG_FLUSH,
                           .headers = request,
                           .headers_len = sizeof request,
                           .first_header = UM_LBMC_HDR_REQUEST};
    CHECK_EQ(um_src_stream_send(&a.stream, &send), 0);
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    CHECK(msg.present & UM_LBMC_HAS_REQUEST);
    CHECK_EQ(msg.request.qidx, 7);
    CHECK_EQ(msg.payload.len, 6);
    CHECK(memcmp(msg.payload.ptr, "abcdef", 6) == 0);
    close(peers[0].fd);
    detach(&a);
    end();
}

/* ---- explicit batches ---- */

TEST(an_explicit_batch_is_held_until_its_end_and_marked_on_the_wire)
{
    options_default();
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    CHECK_EQ(send_flags(&a, "x", 1, LBM_MSG_END_BATCH), -1);
    CHECK_EQ(um_errnum(), UM_EOP);
    CHECK_EQ(send_flags(&a, "1", 1, LBM_MSG_START_BATCH), 0);
    CHECK_EQ(send_flags(&a, "2", 1, 0), 0);
    CHECK(!peer_data(&peers[0], &msg, QUIET_MS));
    CHECK_EQ(send_flags(&a, "3", 1, LBM_MSG_END_BATCH), 0);
    um_src_stream_flush(&a.stream);
    uint16_t marks[3] = {UM_LBMC_BATCH_START, 0, UM_LBMC_BATCH_END};
    for (uint32_t i = 0; i < 3; i++) {
        CHECK(peer_data(&peers[0], &msg, HANG_MS));
        CHECK_EQ(msg.sqn, i);
        CHECK_EQ(msg.payload.ptr[0], '1' + i);
        CHECK_EQ(msg.present & UM_LBMC_HAS_BATCH ? msg.batch_flags : 0, marks[i]);
    }
    CHECK_EQ(send_flags(&a, "4", 1, LBM_MSG_COMPLETE_BATCH | LBM_MSG_FLUSH), 0);
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    CHECK_EQ(msg.batch_flags, UM_LBMC_BATCH_START | UM_LBMC_BATCH_END);
    CHECK_EQ(send_flags(&a, "5", 1, LBM_MSG_START_BATCH), 0);
    CHECK_EQ(send_flags(&a, "6", 1, LBM_MSG_FLUSH), 0); /* releases what is held */
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    CHECK_EQ(msg.sqn, 4);
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    CHECK_EQ(msg.sqn, 5);
    CHECK_EQ(send_flags(&a, "7", 1, 0), 0); /* still inside: held, and sent when the source goes */
    detach(&a);
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    CHECK_EQ(msg.payload.ptr[0], '7');
    close(peers[0].fd);
    end();
}

TEST(the_batch_mark_of_a_fragmented_message_is_on_its_first_and_last_fragment)
{
    options_default();
    copts.transport_tcp_datagram_max_size = 500;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    CHECK_EQ(send_flags(&a, payload, 174 * 3, LBM_MSG_COMPLETE_BATCH | LBM_MSG_FLUSH), 0);
    uint16_t marks[3] = {UM_LBMC_BATCH_START, 0, UM_LBMC_BATCH_END};
    for (uint32_t i = 0; i < 3; i++) {
        CHECK(peer_data(&peers[0], &msg, HANG_MS));
        CHECK_EQ(msg.frag.offset, 174 * i);
        CHECK_EQ(msg.present & UM_LBMC_HAS_BATCH ? msg.batch_flags : 0, marks[i]);
    }
    close(peers[0].fd);
    detach(&a);
    end();
}

/* ---- TSNI, connections, events ---- */

TEST(a_new_client_gets_the_last_number_of_every_topic_before_connect_is_reported)
{
    options_default();
    copts.transport_tcp_maximum_ports = 1;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK_EQ(attach(&b), 0);
    CHECK_EQ(send_flags(&a, "unheard", 7, 0), 0);
    CHECK_EQ(send_flags(&a, "unheard", 7, 0), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    CHECK(strncmp(a.client, "TCP:127.0.0.1:", 14) == 0);
    CHECK(wait_for(&b.connects, 1)); /* told right after a */
    CHECK_EQ(send_flags(&a, "heard", 5, LBM_MSG_FLUSH), 0);
    CHECK(peer_next(&peers[0], &msg, HANG_MS));
    CHECK(msg.present & UM_LBMC_HAS_TSNI);
    CHECK_EQ(msg.tsni.len, 16);
    CHECK_EQ(um_get32(msg.tsni.ptr), a.stream.tidx);
    CHECK_EQ(um_get32(msg.tsni.ptr + 4), 1);
    CHECK_EQ(um_get32(msg.tsni.ptr + 12), 0xffffffffu);
    CHECK(peer_next(&peers[0], &msg, HANG_MS));
    CHECK_EQ(msg.sqn, 2);
    CHECK_EQ(attach(&c), 0); /* joins the session: CONNECT for the client already there */
    CHECK(wait_for(&c.connects, 1));
    CHECK_EQ(um_src_stream_clients(&c.stream), 1);
    close(peers[0].fd);
    CHECK(wait_for(&a.disconnects, 1));
    CHECK(wait_for(&c.disconnects, 1));
    CHECK_EQ(a.connects, 1);
    detach(&a);
    detach(&b);
    detach(&c);
    end();
}

TEST(idle_topics_send_tsnis_until_the_active_threshold_and_again_after_data)
{
    options_default();
    begin();
    memset(&a, 0, sizeof a);
    a.stream.events = &events;
    a.stream.tidx = next_tidx++;
    a.stream.tsni_interval_ns = 50 * UM_NS_PER_MS; /* the threshold outlasts a thread that is not run for a while */
    a.stream.tsni_active_ns = 1000 * UM_NS_PER_MS;
    CHECK_EQ(um_loop_call(env.loop, do_attach, &a), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    int count = 0;
    while (peer_next(&peers[0], &msg, 2000)) {
        CHECK(msg.present & UM_LBMC_HAS_TSNI);
        count++;
    }
    CHECK(count >= 2 && count <= 23); /* one at the connection, then at most one per interval */
    CHECK_EQ(send_flags(&a, "x", 1, LBM_MSG_FLUSH), 0);
    CHECK(peer_next(&peers[0], &msg, HANG_MS));
    CHECK(peer_next(&peers[0], &msg, HANG_MS));
    CHECK(msg.present & UM_LBMC_HAS_TSNI);
    CHECK_EQ(um_get32(msg.tsni.ptr + 4), 0);
    close(peers[0].fd);
    detach(&a);
    end();
}

/* ---- session id and hostile clients ---- */

static void peer_write(struct peer *peer, const void *data, size_t len)
{
    if (send(peer->fd, data, len, MSG_NOSIGNAL) != (ssize_t)len) {
        perror("send");
    }
}

TEST(the_right_session_id_is_served_and_a_wrong_one_closed)
{
    options_default();
    begin();
    CHECK_EQ(attach(&a), 0);
    uint8_t sid[12];
    um_lbmc_encode_tcp_sid(sid, session_of(&a));
    CHECK(session_of(&a) != 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    for (int i = 0; i < 12; i++) {
        peer_write(&peers[0], sid + i, 1);
    }
    CHECK(peer_connect(&peers[1], &a, 0));
    sid[11] ^= 1;
    peer_write(&peers[1], sid, 12);
    CHECK(peer_closed(&peers[1]));
    CHECK(wait_for(&a.disconnects, 1));
    settle();
    CHECK_EQ(um_src_stream_clients(&a.stream), 1);
    CHECK_EQ(send_flags(&a, "x", 1, LBM_MSG_FLUSH), 0);
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    close(peers[0].fd);
    close(peers[1].fd);
    detach(&a);
    end();
}

TEST(messages_from_a_client_are_ignored_counted_and_logged)
{
    options_default();
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    uint8_t data[17] = {0, 0, 0, 17, 1, 2, 3, 4, 0, 0, 0, 0, 'h', 'e', 'l', 'l', 'o'};
    uint8_t bad_sid[8] = {8, 0x6b, 0, 8, 0xff, 4, 0, 0};
    uint8_t control[20] = {8, 0x11, 0, 20, 0xff, 16};
    static uint8_t big[60000] = {0, 0, 60000 >> 8, 60000 & 0xff};
    peer_write(&peers[0], data, sizeof data);
    peer_write(&peers[0], bad_sid, sizeof bad_sid);
    peer_write(&peers[0], control, sizeof control);
    peer_write(&peers[0], big, sizeof big);
    peer_write(&peers[0], data, sizeof data);
    struct um_src_drops drops = {0};
    for (int i = 0; i < HANG_MS && drops.ignored_from_clients < 5; i++) {
        usleep(1000);
        um_src_stream_drops(&a.stream, &drops);
    }
    CHECK_EQ(drops.ignored_from_clients, 5);
    CHECK(logged("Core-6937-32"));
    CHECK(logged("Core-6937-33"));
    CHECK(logged("Core-6937-10"));
    CHECK_EQ(send_flags(&a, "x", 1, LBM_MSG_FLUSH), 0);
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    close(peers[0].fd);
    detach(&a);
    end();
}

TEST(a_stream_that_is_not_lbmc_is_closed_with_a_line_in_the_log)
{
    static const uint8_t bad[][12] = {{0, 0, 0, 0},     {0, 0, 0, 3},  {0, 0, 0, 11},
                                      {0x10, 0, 0, 12}, {5, 0, 0, 12}, {0x16, 3, 1, 2}};
    options_default();
    begin();
    CHECK_EQ(attach(&a), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK(peer_connect(&peers[0], &a, 0));
        peer_write(&peers[0], bad[i], 12);
        CHECK(peer_closed(&peers[0]));
        close(peers[0].fd);
        CHECK(wait_for(&a.disconnects, (int)i + 1));
    }
    CHECK(logged("Core-6036-1"));
    detach(&a);
    end();
}

TEST(random_bytes_from_clients_do_no_harm)
{
    options_default();
    begin();
    CHECK_EQ(attach(&a), 0);
    unsigned seed = 4711;
    for (int round = 0; round < 100; round++) {
        CHECK(peer_connect(&peers[0], &a, 0));
        uint8_t bytes[700];
        size_t len = 1 + (size_t)rand_r(&seed) % sizeof bytes;
        for (size_t i = 0; i < len; i++) {
            bytes[i] = rand_r(&seed) % 3 ? (uint8_t)(rand_r(&seed) % 24) : (uint8_t)rand_r(&seed);
        }
        bytes[0] = round & 1 ? 8 : 0;
        send(peers[0].fd, bytes, len, MSG_NOSIGNAL);
        close(peers[0].fd);
    }
    CHECK(wait_for(&a.disconnects, 100));
    detach(&a);
    end();
}

TEST(running_out_of_descriptors_pauses_accepting_and_recovers)
{
    options_default();
    begin();
    CHECK_EQ(attach(&a), 0);
    struct rlimit old, low;
    int spare = open("/dev/null", O_RDONLY);
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port_of(&a)), .sin_addr.s_addr = inet_addr("127.0.0.1")};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    getrlimit(RLIMIT_NOFILE, &old);
    low = old;
    low.rlim_cur = (rlim_t)fd + 1;
    setrlimit(RLIMIT_NOFILE, &low);
    CHECK_EQ(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    for (int i = 0; i < HANG_MS && !logged("Core-5688-3242"); i++) {
        usleep(1000);
    }
    setrlimit(RLIMIT_NOFILE, &old);
    CHECK(logged("Core-5688-3242"));
    CHECK(wait_for(&a.connects, 1));
    close(spare);
    close(fd);
    detach(&a);
    end();
}

/* ---- flow control ---- */

/* How many messages were taken until none has been for 100 ms: on a busy machine what the kernel has reaches its other
 * end late, and makes room once more. */
static uint32_t send_until_full(struct source *source)
{
    uint32_t accepted = 0;
    for (int quiet_ms = 0; quiet_ms < 100 && accepted < 1000000; quiet_ms++) {
        for (; send_flags(source, payload, 1000, LBM_SRC_NONBLOCK) == 0 && accepted < 1000000; accepted++) {
            quiet_ms = 0;
        }
        usleep(1000);
    }
    return accepted;
}

TEST(a_stopped_receiver_makes_non_blocking_sends_fail_and_one_wakeup_follows)
{
    options_default();
    sopts.transport_tcp_sender_socket_buffer = 16384;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 16384));
    uint32_t accepted = send_until_full(&a);
    int wakeups = a.wakeups;
    CHECK(accepted < 1000000);
    CHECK_EQ(um_errnum(), UM_EWOULDBLOCK);
    lbm_src_transport_stats_t stats;
    um_src_stream_stats(&a.stream, &stats);
    CHECK_EQ(stats.type, LBM_TRANSPORT_STAT_TCP);
    CHECK_EQ(stats.transport.tcp.num_clients, 1);
    CHECK(stats.transport.tcp.bytes_buffered > 32768 && stats.transport.tcp.bytes_buffered < 2 * 65536);
    CHECK_EQ(send_flags(&a, payload, 200000, LBM_SRC_NONBLOCK), -1); /* nothing of it goes */
    CHECK_EQ(a.wakeups, wakeups);
    uint32_t got = 0;
    CHECK(read_until_wakeup(&peers[0], &a, wakeups, &got));
    CHECK_EQ(send_flags(&a, payload, 200000, LBM_SRC_NONBLOCK | LBM_MSG_FLUSH), 0); /* all of it goes */
    while (got < accepted + 4 && peer_data(&peers[0], &msg, HANG_MS)) {
        CHECK_EQ(msg.sqn, got);
        got++;
    }
    CHECK_EQ(got, accepted + 4);
    settle();
    CHECK_EQ(a.wakeups, wakeups + 1);
    close(peers[0].fd);
    detach(&a);
    end();
}

static atomic_size_t allocated;

static bool count_allocated(size_t size)
{
    allocated += size;
    return false;
}

TEST(many_small_datagrams_behind_a_slow_receiver_take_the_memory_of_their_bytes)
{
    options_default();
    sopts.transport_tcp_sender_socket_buffer = 16384;
    sopts.transport_session_maximum_buffer = 1 << 20;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 16384));
    allocated = 0;
    um_mem_set_fail_hook(count_allocated);
    uint32_t accepted = 0;
    while (send_flags(&a, payload, 16, LBM_SRC_NONBLOCK | LBM_MSG_FLUSH) == 0) {
        accepted++;
    }
    um_mem_set_fail_hook(NULL);
    CHECK(accepted > (1 << 20) / 32);
    CHECK(allocated < (8 << 20)); /* one batch of 64 KiB for each would be more than 2 GB */
    uint32_t got = 0;
    while (got < accepted && peer_data(&peers[0], &msg, HANG_MS)) {
        CHECK_EQ(msg.sqn, got);
        CHECK_EQ(msg.payload.len, 16);
        got++;
    }
    CHECK_EQ(got, accepted);
    close(peers[0].fd);
    detach(&a);
    end();
}

static int do_set_batching(void *arg)
{
    um_src_stream_set_batching(arg, 60 * UM_NS_PER_SEC, 60000, false);
    return 0;
}

TEST(changed_batching_options_leave_no_message_behind)
{
    options_default();
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    CHECK_EQ(send_flags(&a, payload, 100, 0), 0);
    CHECK_EQ(um_loop_call(env.loop, do_set_batching, &a.stream), 0);
    CHECK(peer_data(&peers[0], &msg, HANG_MS));
    CHECK_EQ(msg.sqn, 0);
    close(peers[0].fd);
    detach(&a);
    end();
}

TEST(a_disconnecting_slow_receiver_wakes_the_source)
{
    options_default();
    sopts.transport_tcp_sender_socket_buffer = 16384;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 16384));
    while (send_flags(&a, payload, 1000, LBM_SRC_NONBLOCK) == 0) {
    }
    close(peers[0].fd);
    CHECK(wait_for(&a.wakeups, 1));
    CHECK(wait_for(&a.disconnects, 1));
    CHECK_EQ(send_flags(&a, payload, 1000, LBM_SRC_NONBLOCK), 0);
    for (int i = 0; i < HANG_MS && !logged("Core-5688-3929"); i++) {
        usleep(1000);
    }
    CHECK(logged("Core-5688-3929"));
    detach(&a);
    end();
}

/* The ring of a queue that has 16 datagrams and gets one more. */
static bool fail_second_ring(size_t size)
{
    return size == 32 * sizeof(struct um_datagram *);
}

TEST(a_receiver_whose_queue_finds_no_memory_is_disconnected_and_told_of)
{
    options_default();
    sopts.transport_tcp_sender_socket_buffer = 16384;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 16384));
    um_mem_set_fail_hook(fail_second_ring);
    int rc = 0;
    for (int i = 0; i < 1000 && rc == 0 && a.disconnects == 0; i++) {
        rc = send_flags(&a, payload, 1000, LBM_SRC_NONBLOCK | LBM_MSG_FLUSH);
    }
    um_mem_set_fail_hook(NULL);
    CHECK_EQ(rc, 0);
    CHECK(wait_for(&a.disconnects, 1));
    for (int i = 0; i < HANG_MS && !logged("Core-5688-3930"); i++) {
        usleep(1000);
    }
    CHECK(logged("out of memory, 1 receivers disconnected"));
    struct um_src_drops drops;
    um_src_stream_drops(&a.stream, &drops);
    CHECK(drops.unsent_bytes > 0);
    close(peers[0].fd);
    detach(&a);
    end();
}

struct sender {
    pthread_t thread;
    struct source *source;
    uint32_t count;
    size_t len;
    int rc, errnum;
    atomic_int sent, done;
};

static void *send_many(void *arg)
{
    struct sender *s = arg;
    for (uint32_t i = 0; i < s->count && s->rc == 0; i++) {
        s->rc = send_flags(s->source, payload, s->len, 0);
        s->errnum = s->rc ? um_errnum() : 0;
        s->sent += s->rc == 0;
    }
    s->done = 1;
    return NULL;
}

static struct sender senders[4];

static void start(struct sender *s, struct source *source, uint32_t count, size_t len)
{
    memset(s, 0, sizeof *s);
    s->source = source;
    s->count = count;
    s->len = len;
    pthread_create(&s->thread, NULL, send_many, s);
}

static int in_line(void)
{
    um_src_session_lock(a.stream.session);
    int waiters = a.stream.session->waiters;
    um_src_session_unlock(a.stream.session);
    return waiters;
}

/* Wait until so many senders are blocked at once. */
static bool blocked(int count)
{
    int waiting = in_line();
    for (int ms = 0; ms < HANG_MS && waiting < count; ms++) {
        usleep(1000);
        waiting = in_line();
    }
    return waiting >= count;
}

TEST(a_blocking_send_waits_for_the_receiver_and_loses_nothing)
{
    options_default();
    sopts.transport_tcp_sender_socket_buffer = 16384;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 16384));
    start(&senders[0], &a, 5000, 1000);
    CHECK(blocked(1));
    for (uint32_t i = 0; i < 4990; i++) { /* the last ones may stay in the batch */
        CHECK(peer_data(&peers[0], &msg, HANG_MS));
        CHECK_EQ(msg.sqn, i);
    }
    pthread_join(senders[0].thread, NULL);
    CHECK_EQ(senders[0].rc, 0);
    um_src_stream_flush(&a.stream);
    for (uint32_t i = 4990; i < 5000; i++) {
        CHECK(peer_data(&peers[0], &msg, HANG_MS));
        CHECK_EQ(msg.sqn, i);
    }
    close(peers[0].fd);
    detach(&a);
    end();
}

TEST(deleting_a_source_wakes_the_threads_that_wait_in_its_sends)
{
    options_default();
    copts.transport_tcp_maximum_ports = 1;
    sopts.transport_tcp_sender_socket_buffer = 16384;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK_EQ(attach(&b), 0);
    CHECK(peer_connect(&peers[0], &a, 16384));
    start(&senders[0], &a, 100000, 1000);
    CHECK(blocked(1));
    start(&senders[1], &a, 100000, 200000);
    CHECK(blocked(2));
    detach(&a);
    pthread_join(senders[0].thread, NULL);
    pthread_join(senders[1].thread, NULL);
    CHECK_EQ(senders[0].rc, -1);
    CHECK_EQ(senders[0].errnum, UM_EINVAL);
    CHECK_EQ(senders[1].errnum, UM_EINVAL);
    /* the other source's session goes on: the loop writes what the waiting threads left */
    for (int i = 0; i < senders[0].sent; i++) {
        CHECK(peer_data(&peers[0], &msg, HANG_MS));
        CHECK_EQ(msg.sqn, i);
    }
    CHECK_EQ(send_flags(&b, "x", 1, LBM_MSG_FLUSH), 0);
    do {
        CHECK(peer_data(&peers[0], &msg, HANG_MS));
    } while (msg.tidx != b.stream.tidx);
    close(peers[0].fd);
    detach(&b);
    end();
}

#define LINE 6

static struct sender line[LINE];

static int served(int count)
{
    int done = 0;
    for (int i = 0; i < count; i++) {
        done += line[i].done;
    }
    return done;
}

/* It waits behind all that came before. False: somebody has come through, because the kernels moved so much that the
 * session was not blocked for a moment; who comes then need not wait. */
static bool stands_in_line(int place)
{
    for (int ms = 0; ms < HANG_MS && in_line() <= place && served(place + 1) == 0; ms++) {
        usleep(1000);
    }
    return in_line() == place + 1;
}

/* Reads until `count` messages of those in line have come, in whatever order. */
static bool drain_line(int count)
{
    int seen = 0;
    for (int idle = 0; seen < count && idle < HANG_MS / 10;) {
        if (peer_data(&peers[0], &msg, 10)) {
            seen += msg.payload.len > 1000;
            idle = 0;
        } else {
            idle++;
            um_src_stream_flush(&a.stream);
        }
    }
    return seen == count;
}

/* The session is full, and somebody waits. The kernels may still move so much that a sender comes through: how many
 * did. */
static int first_in_line(void)
{
    for (int early = 0;; early++) {
        while (send_flags(&a, payload, 1000, LBM_SRC_NONBLOCK) == 0) {
        }
        start(&line[0], &a, 1, 2001);
        if (stands_in_line(0)) {
            return early;
        }
        pthread_join(line[0].thread, NULL);
    }
}

TEST(senders_that_wait_go_on_in_the_order_in_which_they_came)
{
    options_default();
    sopts.transport_tcp_sender_socket_buffer = 16384;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 16384));
    for (int round = 0, tries = 0; round < 5; round++, tries++) {
        CHECK(tries < 200);
        int early = first_in_line(), started = 1;
        bool whole = true;
        for (; started < LINE && whole; started++) { /* each knows itself by the length of its message */
            start(&line[started], &a, 1, 2001 + (size_t)started);
            whole = stands_in_line(started);
        }
        if (!whole) {
            CHECK(drain_line(early + started));
            for (int i = 0; i < started; i++) {
                pthread_join(line[i].thread, NULL);
            }
            round--;
            continue;
        }
        for (int next = 0; next < LINE;) {
            if (next == LINE - 1) {
                pthread_join(line[next].thread, NULL);
                um_src_stream_flush(&a.stream);
            }
            CHECK(peer_data(&peers[0], &msg, HANG_MS));
            if (msg.payload.len > 1000 && early-- <= 0) {
                CHECK_EQ(msg.payload.len, 2001 + next);
                next++;
            }
        }
        for (int i = 0; i < LINE - 1; i++) {
            pthread_join(line[i].thread, NULL);
        }
    }
    close(peers[0].fd);
    detach(&a);
    end();
}

static int send_on_loop(void *arg)
{
    int rc = send_flags(arg, payload, 1000, 0);
    while (rc == 0) {
        rc = send_flags(arg, payload, 1000, 0);
    }
    return rc;
}

TEST(a_blocking_send_on_the_loop_would_block_instead_of_waiting)
{
    options_default();
    sopts.transport_tcp_sender_socket_buffer = 16384;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 16384));
    CHECK_EQ(um_loop_call(env.loop, send_on_loop, &a), -1);
    CHECK_EQ(um_errnum(), UM_EWOULDBLOCK);
    close(peers[0].fd);
    detach(&a);
    end();
}

TEST(several_sending_threads_keep_the_order_of_every_source)
{
    options_default();
    copts.transport_tcp_maximum_ports = 1;
    copts.transport_tcp_datagram_max_size = 4000;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK_EQ(attach(&b), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    CHECK(peer_connect(&peers[1], &a, 0));
    start(&senders[0], &a, 20000, 64);
    start(&senders[1], &b, 1000, 9000); /* three fragments each */
    start(&senders[2], &a, 20000, 32);
    start(&senders[3], &b, 1000, 9000);
    uint32_t next[2][2] = {{0}};
    uint32_t total[2] = {40000, 6000};
    while (next[0][0] + next[0][1] + next[1][0] + next[1][1] < 2 * (total[0] + total[1])) {
        for (int p = 0; p < 2; p++) {
            if (next[p][0] + next[p][1] == total[0] + total[1]) {
                continue;
            }
            if (senders[0].done && senders[1].done && senders[2].done && senders[3].done) {
                um_src_stream_flush(&a.stream);
            }
            if (!peer_data(&peers[p], &msg, 10)) {
                continue;
            }
            int which = msg.tidx == b.stream.tidx;
            CHECK_EQ(msg.sqn, next[p][which]);
            if (which) {
                CHECK_EQ(msg.frag.first_sqn, msg.sqn - msg.sqn % 3);
            }
            next[p][which]++;
        }
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(senders[i].thread, NULL);
        CHECK_EQ(senders[i].rc, 0);
    }
    close(peers[0].fd);
    close(peers[1].fd);
    detach(&a);
    detach(&b);
    end();
}

/* ---- dropping ---- */

static uint64_t told_of_drops(struct source *source)
{
    struct um_src_session *base = source->stream.session;
    const struct um_tcp_src_session *session = UM_CONTAINER_OF(base, struct um_tcp_src_session, base);
    um_src_session_lock(base);
    uint64_t told = session->dropped_told + session->dropped_new + session->unsent_told;
    um_src_session_unlock(base);
    return told;
}

/* Send mixed small and fragmented messages to a running and a stopped receiver; then read the stopped one. */
static void drop_for_the_slow_one(int behavior)
{
    options_default();
    copts.transport_tcp_datagram_max_size = 4000;
    sopts.transport_tcp_sender_socket_buffer = 16384;
    sopts.transport_tcp_multiple_receiver_behavior = behavior;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 4096));
    CHECK(peer_connect(&peers[1], &a, 0));
    uint32_t expect = 0, sent = 0;
    for (int i = 0; i < 600; i++) {
        size_t len = i % 3 == 2 ? 9000 : 1500; /* 1, 1, 3 fragments */
        CHECK_EQ(send_flags(&a, payload, len, LBM_MSG_FLUSH), 0);
        sent += i % 3 == 2 ? 3 : 1;
        while (expect < sent) {
            CHECK(peer_data(&peers[1], &msg, HANG_MS));
            CHECK_EQ(msg.sqn, expect);
            expect++;
        }
    }
    struct um_src_drops drops;
    um_src_stream_drops(&a.stream, &drops);
    CHECK(drops.datagrams > 0 && drops.bytes > 0);
    for (int i = 0; i < HANG_MS && !logged(behavior == 2 ? "Core-5688-3927" : "Core-5688-3928"); i++) {
        usleep(1000);
    }
    CHECK(logged(behavior == 2 ? "Core-5688-3927" : "Core-5688-3928"));
    CHECK(told_of_drops(&a) > 0);
    um_src_stream_stats_reset(&a.stream); /* as many again are news again */
    CHECK_EQ(told_of_drops(&a), 0);
    uint32_t got = 0, next = 0, frags = 0;
    int64_t last = -1;
    while (last < (int64_t)sent - 1 && peer_data(&peers[0], &msg, HANG_MS)) {
        CHECK((int64_t)msg.sqn > last);
        if (msg.present & UM_LBMC_HAS_FRAG) {
            if (msg.frag.offset == 0) {
                CHECK_EQ(frags, 0);
                next = msg.sqn;
            }
            CHECK_EQ(msg.sqn, next); /* a message is whole or absent */
            next++;
            frags = (frags + 1) % 3;
        } else {
            CHECK_EQ(frags, 0);
        }
        last = msg.sqn;
        got++;
    }
    CHECK_EQ(last, (int64_t)sent - 1);
    CHECK_EQ(got + drops.datagrams, sent); /* every datagram here is one message */
    close(peers[0].fd);
    close(peers[1].fd);
    detach(&a);
    end();
}

TEST(requirement_S1_source_paced_drops_whole_messages_and_counts_and_reports_each)
{
    drop_for_the_slow_one(LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_SOURCE_PACED);
}

TEST(requirement_S1_bounded_latency_drops_whole_messages_and_counts_and_reports_each)
{
    drop_for_the_slow_one(LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_BOUNDED_LATENCY);
}

TEST(bounded_latency_blocks_when_the_only_receiver_is_slow)
{
    options_default();
    sopts.transport_tcp_sender_socket_buffer = 16384;
    sopts.transport_tcp_multiple_receiver_behavior = LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_BOUNDED_LATENCY;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 4096));
    uint32_t accepted = 0;
    while (accepted < 100000 && send_flags(&a, payload, 1000, LBM_SRC_NONBLOCK) == 0) {
        accepted++;
    }
    CHECK(accepted < 100000);
    for (uint32_t i = 0; i < accepted - 5; i++) {
        CHECK(peer_data(&peers[0], &msg, HANG_MS));
        CHECK_EQ(msg.sqn, i);
    }
    CHECK(wait_for(&a.wakeups, 1));
    close(peers[0].fd);
    detach(&a);
    end();
}

/* The fragments of a message that was accepted go to who paces the source, beyond its limit. */
TEST(bounded_latency_drops_nothing_for_the_only_receiver)
{
    options_default();
    copts.transport_tcp_datagram_max_size = 4000;
    sopts.transport_tcp_sender_socket_buffer = 16384;
    sopts.transport_tcp_multiple_receiver_behavior = LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_BOUNDED_LATENCY;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 4096));
    uint32_t next = 0;
    for (int round = 0; round < 20; round++) {
        uint32_t tries = 0;
        int wakeups = a.wakeups;
        while (tries < 100000 && send_flags(&a, payload, tries % 3 == 2 ? 9000 : 400, LBM_SRC_NONBLOCK) == 0) {
            tries++;
        }
        CHECK(tries < 100000);
        CHECK_EQ(um_errnum(), UM_EWOULDBLOCK);
        CHECK(read_until_wakeup(&peers[0], &a, wakeups, &next));
    }
    struct um_src_drops drops;
    um_src_stream_drops(&a.stream, &drops);
    CHECK_EQ(drops.datagrams, 0);
    close(peers[0].fd);
    detach(&a);
    end();
}

/* Also where messages of many lengths are dropped for the one that is full first. */
TEST(bounded_latency_blocks_when_no_receiver_reads)
{
    options_default();
    copts.transport_tcp_datagram_max_size = 4000;
    sopts.transport_tcp_sender_socket_buffer = 16384;
    sopts.transport_tcp_multiple_receiver_behavior = LBM_SRC_TOPIC_ATTR_TCP_MULTI_RECV_BOUNDED_LATENCY;
    begin();
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 4096));
    CHECK(peer_connect(&peers[1], &a, 65536));
    uint32_t accepted = 0;
    while (accepted < 100000 && send_flags(&a, payload, accepted % 3 == 2 ? 9000 : 400, LBM_SRC_NONBLOCK) == 0) {
        accepted++;
    }
    accepted += send_until_full(&a);
    CHECK(accepted < 100000);
    int wakeups = a.wakeups;
    close(peers[1].fd); /* the one with the room: the other is still full */
    CHECK(wait_for(&a.disconnects, 1));
    CHECK(read_until_wakeup(&peers[0], &a, wakeups, NULL));
    CHECK_EQ(send_flags(&a, payload, 400, LBM_SRC_NONBLOCK | LBM_MSG_FLUSH), 0);
    close(peers[0].fd);
    CHECK(wait_for(&a.disconnects, 2));
    CHECK_EQ(send_flags(&a, payload, 400, LBM_SRC_NONBLOCK), 0); /* to nobody */
    detach(&a);
    end();
}

/* With two, each is the first of about half of the datagrams. */
TEST(random_send_order_favours_nobody)
{
    options_default();
    sopts.transport_tcp_multiple_receiver_send_order = 1;
    begin();
    CHECK_EQ(attach(&a), 0);
    for (int p = 0; p < 2; p++) {
        CHECK(peer_connect(&peers[p], &a, 0));
    }
    struct um_tcp_src_session *session = UM_CONTAINER_OF(a.stream.session, struct um_tcp_src_session, base);
    int first = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        CHECK_EQ(send_flags(&a, payload, 100, LBM_MSG_FLUSH), 0);
        um_src_session_lock(&session->base);
        first += session->order[0] == 0;
        um_src_session_unlock(&session->base);
        for (int p = 0; p < 2; p++) {
            CHECK(peer_data(&peers[p], &msg, HANG_MS));
            CHECK_EQ(msg.sqn, i);
        }
    }
    CHECK(first >= 400 && first <= 600);
    close(peers[0].fd);
    close(peers[1].fd);
    detach(&a);
    end();
}

TEST(random_send_order_reaches_every_receiver_with_every_message)
{
    options_default();
    sopts.transport_tcp_multiple_receiver_send_order = 1;
    begin();
    CHECK_EQ(attach(&a), 0);
    for (int p = 0; p < 3; p++) {
        CHECK(peer_connect(&peers[p], &a, 0));
    }
    for (int i = 0; i < 500; i++) {
        CHECK_EQ(send_flags(&a, payload, 100, LBM_MSG_FLUSH), 0);
    }
    for (int p = 0; p < 3; p++) {
        for (uint32_t i = 0; i < 500; i++) {
            CHECK(peer_data(&peers[p], &msg, HANG_MS));
            CHECK_EQ(msg.sqn, i);
        }
        close(peers[p].fd);
    }
    detach(&a);
    end();
}

/* ---- filtering ---- */

TEST(with_inclusion_filtering_a_client_gets_only_the_topics_it_asked_for)
{
    options_default();
    copts.transport_tcp_maximum_ports = 1;
    sopts.transport_source_side_filtering_behavior = 1;
    begin();
    env.request_port = 14391;
    env.request_ip.s_addr = inet_addr("127.0.0.1");
    CHECK_EQ(attach(&a), 0);
    CHECK_EQ(attach(&b), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    CHECK(peer_next(&peers[0], &msg, HANG_MS));
    CHECK(msg.present & UM_LBMC_HAS_SSF_INIT);
    CHECK_EQ(msg.ssf_init.flags & 0x60, 0x40);
    CHECK_EQ(msg.ssf_init.port, 14391);
    CHECK(msg.ssf_init.transport_idx != 0);
    struct um_lbmc_ssf_creq creq = {0, msg.ssf_init.transport_idx, b.stream.tidx, msg.ssf_init.client_idx};
    CHECK_EQ(send_flags(&a, "a", 1, LBM_MSG_FLUSH), 0);
    CHECK_EQ(send_flags(&b, "b", 1, LBM_MSG_FLUSH), 0);
    CHECK(!peer_next(&peers[0], &msg, QUIET_MS));
    um_loop_call(env.loop, do_creq, &creq);
    CHECK(peer_next(&peers[0], &msg, HANG_MS));
    CHECK(msg.present & UM_LBMC_HAS_TSNI);
    CHECK_EQ(um_get32(msg.tsni.ptr), b.stream.tidx);
    CHECK_EQ(um_get32(msg.tsni.ptr + 4), 0);
    CHECK_EQ(send_flags(&a, "a", 1, 0), 0);
    CHECK_EQ(send_flags(&b, "b", 1, 0), 0);
    CHECK_EQ(send_flags(&a, "a", 1, LBM_MSG_FLUSH), 0);
    CHECK(peer_next(&peers[0], &msg, HANG_MS));
    CHECK_EQ(msg.tidx, b.stream.tidx);
    CHECK_EQ(msg.sqn, 1);
    creq.mode = 1;
    um_loop_call(env.loop, do_creq, &creq);
    CHECK_EQ(send_flags(&b, "b", 1, LBM_MSG_FLUSH), 0);
    creq.topic_idx = 77; /* unknown topics, sessions and clients are ignored */
    um_loop_call(env.loop, do_creq, &creq);
    creq.client_idx = 99;
    um_loop_call(env.loop, do_creq, &creq);
    creq.transport_idx = 99;
    um_loop_call(env.loop, do_creq, &creq);
    CHECK(!peer_next(&peers[0], &msg, QUIET_MS));
    close(peers[0].fd);
    detach(&a);
    detach(&b);
    end();
}

/* Who asks must have read the numbers on the client's connection, and ask from its address. */
TEST(f12_a_filter_request_of_another_address_or_with_guessed_numbers_has_no_effect)
{
    options_default();
    sopts.transport_source_side_filtering_behavior = 2; /* exclusion */
    begin();
    env.request_port = 14391;
    env.request_ip.s_addr = inet_addr("127.0.0.1");
    CHECK_EQ(attach(&a), 0);
    CHECK(peer_connect(&peers[0], &a, 0));
    CHECK(peer_next(&peers[0], &msg, HANG_MS));
    CHECK(msg.present & UM_LBMC_HAS_SSF_INIT);
    struct um_lbmc_ssf_creq known = {1, msg.ssf_init.transport_idx, a.stream.tidx, msg.ssf_init.client_idx};
    CHECK(peer_next(&peers[0], &msg, HANG_MS)); /* TSNI */
    for (uint32_t session = 1; session <= 4; session++) {
        for (uint32_t client = 1; client <= 1000; client++) {
            struct um_lbmc_ssf_creq guess = {1, session, a.stream.tidx, client};
            um_loop_call(env.loop, do_creq, &guess);
        }
    }
    for (uint32_t client = 1; client <= 1000; client++) {
        struct um_lbmc_ssf_creq guess = {1, known.transport_idx, a.stream.tidx, client};
        um_loop_call(env.loop, do_creq, &guess);
    }
    creq_from = "127.0.0.2";
    um_loop_call(env.loop, do_creq, &known);
    creq_from = "127.0.0.1";
    CHECK_EQ(send_flags(&a, "a", 1, LBM_MSG_FLUSH), 0);
    CHECK(peer_next(&peers[0], &msg, HANG_MS));
    CHECK_EQ(msg.tidx, a.stream.tidx);
    um_loop_call(env.loop, do_creq, &known);
    CHECK_EQ(send_flags(&a, "a", 1, LBM_MSG_FLUSH), 0);
    CHECK(!peer_next(&peers[0], &msg, QUIET_MS));
    close(peers[0].fd);
    detach(&a);
    end();
}

/* ---- mapping ---- */

static uint16_t free_ports(int count)
{
    for (int base = 20000; base < 60000; base += 97) {
        int fds[8], got = 0;
        for (; got < count; got++) {
            struct sockaddr_in at = {.sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)(base + got)),
                                     .sin_addr.s_addr = inet_addr("127.0.0.1")};
            fds[got] = socket(AF_INET, SOCK_STREAM, 0);
            if (bind(fds[got], (struct sockaddr *)&at, sizeof at) != 0) {
                close(fds[got]);
                break;
            }
        }
        for (int i = 0; i < got; i++) {
            close(fds[i]);
        }
        if (got == count) {
            return (uint16_t)base;
        }
    }
    return 0;
}

TEST(implicit_sources_fill_the_pool_then_share_it_round_robin)
{
    options_default();
    uint16_t base = free_ports(4);
    copts.transport_tcp_maximum_ports = 2;
    copts.transport_tcp_port_low = base;
    copts.transport_tcp_port_high = base + 2;
    begin();
    static struct source s[8];
    CHECK_EQ(attach(&s[0]), 0);
    CHECK_EQ(attach(&s[1]), 0);
    CHECK_EQ(attach(&s[2]), 0);
    CHECK_EQ(port_of(&s[0]), base);
    CHECK_EQ(port_of(&s[1]), base + 1);
    CHECK_EQ(port_of(&s[2]), base);
    sopts.transport_tcp_port = htons(base + 3);
    CHECK_EQ(attach(&s[3]), 0);
    CHECK_EQ(port_of(&s[3]), base + 3);
    CHECK_EQ(attach(&s[4]), 0); /* the same explicit port: the same session */
    CHECK_EQ(session_of(&s[4]), session_of(&s[3]));
    sopts.transport_tcp_port = 0;
    sopts.transport_session_maximum_buffer = 1000;
    for (int i = 5; i < 8; i++) {
        CHECK_EQ(attach(&s[i]), 0);
    }
    CHECK(logged("Core-5688-1279"));
    CHECK_EQ(port_of(&s[5]), base + 1);
    CHECK_EQ(port_of(&s[6]), base + 3); /* an explicit session joins the pool */
    CHECK_EQ(port_of(&s[7]), base);
    uint32_t before = session_of(&s[0]);
    detach(&s[0]);
    detach(&s[2]);
    detach(&s[7]);
    CHECK_EQ(attach(&s[0]), 0);
    CHECK_EQ(port_of(&s[0]), base);
    CHECK(session_of(&s[0]) != before);
    detach(&s[0]);
    detach(&s[1]);
    detach(&s[3]);
    detach(&s[4]);
    detach(&s[5]);
    detach(&s[6]);
    end();
}

TEST(ports_in_use_are_stepped_over_and_an_exhausted_range_names_itself)
{
    options_default();
    uint16_t base = free_ports(3);
    copts.transport_tcp_port_low = base;
    copts.transport_tcp_port_high = base + 1;
    begin();
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(base), .sin_addr.s_addr = inet_addr("127.0.0.1")};
    int other = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(bind(other, (struct sockaddr *)&at, sizeof at), 0);
    CHECK_EQ(listen(other, 1), 0);
    CHECK_EQ(attach(&a), 0);
    CHECK_EQ(port_of(&a), base + 1);
    CHECK_EQ(attach(&b), -1);
    CHECK_CONTAINS(um_errmsg(), "CoreApi-5688-3230");
    CHECK_CONTAINS(um_errmsg(), "transport_tcp_port_low");
    sopts.transport_tcp_port = htons(base);
    CHECK_EQ(attach(&b), -1);
    CHECK_CONTAINS(um_errmsg(), "CoreApi-5688-3231");
    close(other);
    detach(&a);
    end();
}

TEST(filtering_for_load_balancing_is_refused)
{
    options_default();
    sopts.transport_source_side_filtering_behavior = 3;
    begin();
    CHECK_EQ(attach(&a), -1);
    CHECK_EQ(um_errnum(), UM_EOPNOTSUPP);
    end();
}
