/* A TCP receive session: non-blocking connect, session id, and the read loop
 * from the socket into reference-counted buffers. Messages are handed on where
 * they lie. Everything runs on the loop. */
#include "transport/tcp/um_tcp_receiver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "net/um_socket.h"
#include "transport/um_local_addr.h"
#include "wire/um_lbttcp.h"

/* Receives per wake-up: one session may move 1 MiB before the others get their turn. */
#define RECEIVES_PER_PASS 4
#define RECEIVES_PER_DELAYED_ACK 32 /* power of two: how often the wish for delayed acknowledgements is repeated */

/* Value of transport_tcp_activity_method; the other one is the library timer (2). */
#define ACTIVITY_METHOD_SO_KEEPALIVE 1

#define LOG_INTERVAL_NS UM_NS_PER_SEC

enum connection_state {
    IDLE,       /* not started, or waiting for the earliest time to connect */
    CONNECTING, /* the kernel is connecting */
    CONNECTED,
    FAILED, /* could not start; the loss is reported from the timer */
    STOPPED
};

struct tcp_receiver {
    struct um_rcv_session base;
    struct um_transport_env *env;
    struct um_buf_pool *pool;
    enum connection_state state;
    struct in_addr local_addr;
    struct um_fd ufd;
    struct um_timer connect_timer;
    struct um_timer activity_timer;
    uint64_t activity_timeout_ns; /* 0 = off */
    uint64_t last_bytes_ns;
    uint32_t receives;     /* that brought bytes */
    unsigned keepalive_ms; /* 0 = off */
    struct um_buf *buf;
    struct um_lbttcp_reader reader;
    struct um_log_limit malformed_limit;
};

static struct tcp_receiver *receiver_of(struct um_rcv_session *session)
{
    return UM_CONTAINER_OF(session, struct tcp_receiver, base);
}

/* --- descriptor and timers --- */

static int watch(struct tcp_receiver *receiver, uint32_t interest)
{
    return um_loop_set_interest(receiver->env->loop, &receiver->ufd, interest);
}

/* Report the loss of the session from the loop, not from inside the caller. */
static void fail_later(struct tcp_receiver *receiver, uint64_t now_ns)
{
    watch(receiver, 0);
    receiver->state = FAILED;
    um_timer_arm(um_loop_wheel(receiver->env->loop), &receiver->connect_timer, now_ns);
}

static void on_activity_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct tcp_receiver *receiver = UM_CONTAINER_OF(timer, struct tcp_receiver, activity_timer);
    uint64_t due_ns = receiver->last_bytes_ns + receiver->activity_timeout_ns;
    if (receiver->base.paused != 0) {
        due_ns = now_ns + receiver->activity_timeout_ns;
    }
    if (due_ns > now_ns) {
        um_timer_arm(um_loop_wheel(receiver->env->loop), timer, due_ns);
        return;
    }
    um_log(UM_LOG_INFO, "Core-9002-5",
           "%s: nothing received for %llu ms (transport_tcp_activity_timeout): session ended", receiver->base.source,
           (unsigned long long)(receiver->activity_timeout_ns / UM_NS_PER_MS));
    um_rcv_session_lost(&receiver->base, now_ns);
}

/* --- reading --- */

/* True when nobody but this session holds the buffer; acquires what other holders did before they let go. */
static bool buffer_is_ours(const struct tcp_receiver *receiver)
{
    return atomic_load_explicit(&receiver->buf->refs, memory_order_acquire) == 1;
}

/* Make place for the next receive without touching bytes that a retained message points to. */
static bool make_room(struct tcp_receiver *receiver)
{
    struct um_lbttcp_reader *reader = &receiver->reader;
    bool ours = buffer_is_ours(receiver);
    if (ours && reader->start == reader->end) {
        um_lbttcp_start(reader, receiver->buf->data, receiver->buf->capacity);
        return true;
    }
    if (!um_lbttcp_must_move(reader)) {
        return true;
    }
    if (ours) {
        um_lbttcp_move(reader, receiver->buf->data, receiver->buf->capacity);
        return true;
    }
    struct um_buf *next = um_buf_get(receiver->pool);
    if (next == NULL) {
        return false;
    }
    um_lbttcp_move(reader, next->data, next->capacity);
    um_buf_unref(receiver->buf);
    receiver->buf = next;
    return true;
}

/* Hand on every complete message. False: the session ended. */
static bool parse(struct tcp_receiver *receiver, uint64_t now_ns)
{
    struct um_rcv_session *session = &receiver->base;
    struct um_lbmc_msg msg;
    for (;;) {
        switch (um_lbttcp_next(&receiver->reader, &msg)) {
        case UM_LBTTCP_MESSAGE:
            if (!um_rcv_session_message(session, &msg, receiver->buf, now_ns)) {
                return false;
            }
            break;
        case UM_LBTTCP_DROPPED:
            um_log_limited(&receiver->malformed_limit, now_ns, LOG_INTERVAL_NS, UM_LOG_WARNING, "Core-9002-6",
                           "%s: dropped a message with a malformed or unknown header", session->source);
            if (!um_rcv_session_malformed(session)) {
                return false;
            }
            break;
        case UM_LBTTCP_MORE:
            return session->state != UM_RCV_ENDED;
        case UM_LBTTCP_CORRUPT:
            if (session->state != UM_RCV_ENDED) {
                um_log(UM_LOG_ERR, "Core-6036-1",
                       "%s: the stream is corrupt (no valid message header): connection closed", session->source);
                um_rcv_session_lost(session, now_ns);
            }
            return false;
        }
    }
}

/* The kernel acknowledges each small segment of a one-way stream at once, which costs a message a packet of its own on
 * both sides. Delayed acknowledgements leave that to the second full segment or to a timer; the kernel falls back to
 * immediate ones by itself, so the wish is repeated. Failure does not matter. */
static void delay_acknowledgements(int fd)
{
    int off = 0;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof off);
}

enum receive_rc { RECEIVE_AGAIN, RECEIVE_DRAINED, RECEIVE_ENDED };

static enum receive_rc receive_once(struct tcp_receiver *receiver, uint64_t now_ns)
{
    struct um_rcv_session *session = &receiver->base;
    if (!make_room(receiver)) {
        um_log(UM_LOG_ERR, "Core-9002-7", "%s: out of memory for a receive buffer: session ended", session->source);
        um_rcv_session_lost(session, now_ns);
        return RECEIVE_ENDED;
    }
    struct um_lbttcp_reader *reader = &receiver->reader;
    size_t room = um_lbttcp_room(reader);
    ssize_t got = recv(receiver->ufd.fd, reader->data + reader->end, room, 0);
    if (got > 0) {
        if ((receiver->receives++ & (RECEIVES_PER_DELAYED_ACK - 1)) == 0) {
            delay_acknowledgements(receiver->ufd.fd);
        }
        um_lbttcp_received(reader, (size_t)got);
        session->bytes_rcved += (uint64_t)got;
        receiver->last_bytes_ns = now_ns;
        if (!parse(receiver, now_ns)) {
            return RECEIVE_ENDED;
        }
        return (size_t)got < room ? RECEIVE_DRAINED : RECEIVE_AGAIN;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return RECEIVE_DRAINED;
    }
    if (session->state == UM_RCV_JOINING || got < 0) {
        um_log(UM_LOG_INFO, "Core-9002-8", "%s: connection ended: %s", session->source,
               got == 0 ? "closed by the source before its first message" : strerror(errno));
    }
    um_rcv_session_lost(session, now_ns);
    return RECEIVE_ENDED;
}

static void read_pass(struct tcp_receiver *receiver, uint64_t now_ns)
{
    um_rcv_session_begin(&receiver->base);
    for (int i = 0; i < RECEIVES_PER_PASS && receiver->base.paused == 0; i++) {
        if (receive_once(receiver, now_ns) != RECEIVE_AGAIN) {
            break;
        }
    }
    um_rcv_session_end(&receiver->base, now_ns);
}

/* --- connecting --- */

/* A free port of the ephemeral range can connect to itself. */
static bool connected_to_itself(int fd)
{
    struct sockaddr_in local, peer;
    socklen_t local_len = sizeof local, peer_len = sizeof peer;
    return getsockname(fd, (struct sockaddr *)&local, &local_len) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0 && local.sin_port == peer.sin_port &&
           local.sin_addr.s_addr == peer.sin_addr.s_addr;
}

/* The outcome of the connect: 0 or an errno value. */
static int connect_result(int fd)
{
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        return errno;
    }
    return error == 0 && connected_to_itself(fd) ? ECONNREFUSED : error;
}

/* The session id is the first and only thing a receiver sends; an empty socket buffer takes it whole. */
static int send_session_id(struct tcp_receiver *receiver)
{
    uint8_t message[12];
    if (receiver->base.key.session_id == 0) {
        return 0;
    }
    size_t len = um_lbmc_encode_tcp_sid(message, receiver->base.key.session_id);
    ssize_t sent = send(receiver->ufd.fd, message, len, MSG_NOSIGNAL);
    return sent == (ssize_t)len ? 0 : sent < 0 ? errno : EMSGSIZE;
}

static void on_connected(struct tcp_receiver *receiver, uint64_t now_ns)
{
    int error = connect_result(receiver->ufd.fd);
    if (error == 0) {
        error = send_session_id(receiver);
    }
    if (error == 0 && watch(receiver, receiver->base.paused != 0 ? 0 : UM_FD_READ) != 0) {
        error = ENOMEM;
    }
    if (error != 0) {
        um_log(receiver->base.again ? UM_LOG_INFO : UM_LOG_WARNING, "Core-5688-3247", "%s: connection failed: %s",
               receiver->base.source, strerror(error));
        um_rcv_session_lost(&receiver->base, now_ns);
        return;
    }
    receiver->state = CONNECTED;
    receiver->last_bytes_ns = now_ns;
}

static void on_fd(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct tcp_receiver *receiver = UM_CONTAINER_OF(ufd, struct tcp_receiver, ufd);
    if (receiver->state == CONNECTING) {
        on_connected(receiver, now_ns);
    } else if (receiver->state == CONNECTED) {
        read_pass(receiver, now_ns);
    }
}

static void start_connect(struct tcp_receiver *receiver, uint64_t now_ns)
{
    struct um_rcv_session *session = &receiver->base;
    struct in_addr to = {.s_addr = session->key.ip};
    int fd = um_socket_tcp_connect(receiver->local_addr, to, (uint16_t)session->key.port);
    if (fd < 0) {
        um_log(UM_LOG_WARNING, "Core-5688-3245", "%s: cannot connect: %s", session->source, um_errmsg());
        fail_later(receiver, now_ns);
        return;
    }
    um_socket_set_rcvbuf(fd, receiver->env->opts->transport_tcp_receiver_socket_buffer,
                         "transport_tcp_receiver_socket_buffer", "Core-5688-3309");
    if (receiver->keepalive_ms != 0) {
        um_socket_set_keepalive(fd, receiver->keepalive_ms);
    }
    um_fd_init(&receiver->ufd, fd, on_fd);
    receiver->state = CONNECTING;
    if (watch(receiver, UM_FD_WRITE) != 0) {
        um_log(UM_LOG_WARNING, "Core-5688-3245", "%s: cannot connect: %s", session->source, um_errmsg());
        fail_later(receiver, now_ns);
    }
}

static void on_connect_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct tcp_receiver *receiver = UM_CONTAINER_OF(timer, struct tcp_receiver, connect_timer);
    if (receiver->state == FAILED) {
        um_rcv_session_lost(&receiver->base, now_ns);
    } else {
        start_connect(receiver, now_ns);
    }
}

static void op_start(struct um_rcv_session *session, uint64_t not_before_ns, uint64_t now_ns)
{
    struct tcp_receiver *receiver = receiver_of(session);
    struct um_timer_wheel *wheel = um_loop_wheel(receiver->env->loop);
    receiver->last_bytes_ns = now_ns;
    if (receiver->activity_timeout_ns != 0) {
        um_timer_arm(wheel, &receiver->activity_timer, now_ns + receiver->activity_timeout_ns);
    }
    if (not_before_ns > now_ns) {
        receiver->last_bytes_ns = not_before_ns;
        um_timer_arm(wheel, &receiver->connect_timer, not_before_ns);
    } else {
        start_connect(receiver, now_ns);
    }
}

/* --- operations of the generic session --- */

static void op_stop(struct um_rcv_session *session)
{
    struct tcp_receiver *receiver = receiver_of(session);
    struct um_timer_wheel *wheel = um_loop_wheel(receiver->env->loop);
    um_timer_cancel(wheel, &receiver->connect_timer);
    um_timer_cancel(wheel, &receiver->activity_timer);
    um_loop_remove_fd(receiver->env->loop, &receiver->ufd);
    if (receiver->ufd.fd >= 0) {
        um_fd_close(receiver->ufd.fd);
        receiver->ufd.fd = -1;
    }
    receiver->state = STOPPED;
}

static void op_destroy(struct um_rcv_session *session)
{
    struct tcp_receiver *receiver = receiver_of(session);
    um_buf_unref(receiver->buf);
    um_free(receiver);
}

static void op_set_paused(struct um_rcv_session *session, bool paused)
{
    struct tcp_receiver *receiver = receiver_of(session);
    uint64_t now_ns = um_loop_now(receiver->env->loop);
    if (receiver->state != CONNECTED) {
        return;
    }
    receiver->last_bytes_ns = now_ns;
    if (watch(receiver, paused ? 0 : UM_FD_READ) != 0) {
        fail_later(receiver, now_ns);
    }
}

static void op_fill_stats(const struct um_rcv_session *session, lbm_rcv_transport_stats_t *out)
{
    out->type = LBM_TRANSPORT_STAT_TCP;
    out->transport.tcp.bytes_rcved = session->bytes_rcved;
    out->transport.tcp.lbm_msgs_rcved = session->msgs_rcved;
    out->transport.tcp.lbm_msgs_no_topic_rcved = session->msgs_no_topic;
    out->transport.tcp.lbm_reqs_rcved = session->reqs_rcved;
}

static const struct um_rcv_transport_ops ops = {.start = op_start,
                                                .stop = op_stop,
                                                .destroy = op_destroy,
                                                .set_paused = op_set_paused,
                                                .fill_stats = op_fill_stats};

static void read_activity_options(struct tcp_receiver *receiver, const struct um_receiver_options *opts)
{
    if (opts->transport_tcp_activity_method == ACTIVITY_METHOD_SO_KEEPALIVE) {
        receiver->keepalive_ms = (unsigned)opts->transport_tcp_activity_timeout;
    } else {
        receiver->activity_timeout_ns = opts->transport_tcp_activity_timeout * UM_NS_PER_MS;
    }
}

struct um_rcv_session *um_tcp_receiver_create(struct um_transport_env *env, const struct um_receiver_options *opts,
                                              const struct um_rcv_session_key *key, struct um_buf_pool *pool)
{
    struct in_addr local_addr;
    if (um_local_addr(&opts->transport_tcp_interface, &env->opts->default_interface, &local_addr) != 0) {
        return NULL;
    }
    struct tcp_receiver *receiver = um_calloc(1, sizeof *receiver);
    struct um_buf *buf = receiver != NULL ? um_buf_get(pool) : NULL;
    if (buf == NULL) {
        um_free(receiver);
        um_error_nomem("TCP receive session", sizeof *receiver);
        return NULL;
    }
    receiver->base.ops = &ops;
    receiver->env = env;
    receiver->pool = pool;
    receiver->local_addr = local_addr;
    receiver->buf = buf;
    um_lbttcp_start(&receiver->reader, buf->data, buf->capacity);
    um_fd_init(&receiver->ufd, -1, on_fd);
    um_timer_init(&receiver->connect_timer, on_connect_timer);
    um_timer_init(&receiver->activity_timer, on_activity_timer);
    read_activity_options(receiver, opts);
    return &receiver->base;
}
