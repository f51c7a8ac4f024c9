/* A TCP receive session: non-blocking connect, session id, and the read loop
 * from the byte stream into reference-counted buffers. Messages are handed on where
 * they lie. Everything runs on the loop. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "net/um_socket.h"
#include "net/um_stream.h"
#include "transport/session/um_local_addr.h"
#include "transport/session/um_rcv_transport.h"
#include "transport/stream/um_stream_reader.h"

/* Receives per wake-up: one session may move 1 MiB before the others get their turn. */
#define RECEIVES_PER_PASS 4
#define RECEIVES_PER_DELAYED_ACK 32 /* power of two: how often the wish for delayed acknowledgements is repeated */

/* Value of transport_tcp_activity_method; the other one is the library timer (2). */
#define ACTIVITY_METHOD_SO_KEEPALIVE 1

/* A connection that is not there by now is begun anew: the kernel would ask an address that does not answer ever more
 * rarely, up to every minute. It asks three times in this time. */
#define CONNECT_TIMEOUT_NS (4 * UM_NS_PER_SEC)

enum connection_state {
    IDLE,        /* not started, or waiting for the earliest time to connect */
    CONNECTING,  /* the stream is being opened: connection, */
    NEGOTIATING, /* and what a filter begins with */
    CONNECTED,
    FAILED, /* could not start; the loss is reported from the timer */
    STOPPED
};

/* One receive takes at most this much; a message (64 KiB) always fits, and 256 KiB is what one system call moves
 * efficiently while staying inside the second-level cache. */
#define RECEIVE_BUFFER_SIZE (256u * 1024u)
#define RECEIVE_BUFFERS_KEPT 16u

/* A connection that brought no message is not tried again before this. */
#define RETRY_DELAY_NS UM_NS_PER_SEC

/* What the TCP receive sessions of a loop share. */
struct tcp_receivers {
    struct um_rcv_transport base;
    struct um_buf_pool *pool;
};

struct tcp_receiver {
    struct um_rcv_session base;
    struct um_transport_env *env;
    enum connection_state state;
    struct in_addr local_addr;
    struct um_stream stream;
    struct um_fd ufd;
    struct um_command again; /* the stream has more, without its descriptor being ready */
    struct um_timer connect_timer;
    struct um_timer activity_timer;
    uint64_t activity_timeout_ns; /* 0 = off */
    uint64_t last_bytes_ns;
    uint32_t receives;     /* that brought bytes */
    unsigned keepalive_ms; /* 0 = off */
    struct um_stream_reader reader;
    uint8_t hello[12]; /* the session id, the first and only thing a receiver sends */
    uint8_t hello_len, hello_sent;
};

static struct tcp_receiver *receiver_of(struct um_rcv_session *session)
{
    return UM_CONTAINER_OF(session, struct tcp_receiver, base);
}

/* --- descriptor and timers --- */

static int watch_for(struct tcp_receiver *receiver, uint32_t interest)
{
    return um_loop_set_interest(receiver->env->loop, &receiver->ufd, interest);
}

/* What the stream waits for now. */
static int watch(struct tcp_receiver *receiver)
{
    uint32_t wanted = receiver->base.paused != 0 ? 0 : UM_FD_READ;
    if (receiver->hello_sent < receiver->hello_len) {
        wanted |= UM_FD_WRITE;
    }
    return watch_for(receiver, um_stream_interest(&receiver->stream, wanted));
}

/* Report the loss of the session from the loop, not from inside the caller. */
static void fail_later(struct tcp_receiver *receiver, uint64_t now_ns)
{
    watch_for(receiver, 0);
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
    um_log_limited(um_log_of(receiver->base.source), now_ns, UM_LOG_INFO, "Core-9002-5",
                   "%s: nothing received for %llu ms (transport_tcp_activity_timeout): session ended",
                   receiver->base.source, (unsigned long long)(receiver->activity_timeout_ns / UM_NS_PER_MS));
    um_rcv_session_lost(&receiver->base, now_ns);
}

/* --- reading --- */

/* Hand on every complete message. False: the session ended. */
static bool parse(struct tcp_receiver *receiver, uint64_t now_ns)
{
    struct um_rcv_session *session = &receiver->base;
    struct um_lbmc_msg msg;
    for (;;) {
        switch (um_stream_reader_next(&receiver->reader, &msg)) {
        case UM_LBTTCP_MESSAGE:
            if (!um_rcv_session_message(session, &msg, receiver->reader.buf, now_ns)) {
                return false;
            }
            break;
        case UM_LBTTCP_DROPPED:
            um_log_limited(um_log_of(session->source), now_ns, UM_LOG_WARNING, "Core-9002-6",
                           "%s: dropped a message with a malformed or unknown header", session->source);
            if (!um_rcv_session_malformed(session)) {
                return false;
            }
            break;
        case UM_LBTTCP_MORE:
            return session->state != UM_RCV_ENDED;
        case UM_LBTTCP_CORRUPT:
            if (session->state != UM_RCV_ENDED) {
                um_log_limited(um_log_of(session->source), now_ns, UM_LOG_ERR, "Core-6036-1",
                               "%s: the stream is corrupt (no valid message header): connection closed",
                               session->source);
                um_rcv_session_over(session, now_ns);
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
    size_t got;
    enum um_stream_read_rc rc = um_stream_reader_read(&receiver->reader, &receiver->stream, &got);
    if (rc == UM_STREAM_READ_MORE || rc == UM_STREAM_READ_LAST) {
        if ((receiver->receives++ & (RECEIVES_PER_DELAYED_ACK - 1)) == 0) {
            delay_acknowledgements(receiver->stream.fd);
        }
        session->bytes_rcved += got;
        receiver->last_bytes_ns = now_ns;
        if (!parse(receiver, now_ns)) {
            return RECEIVE_ENDED;
        }
        return rc == UM_STREAM_READ_LAST ? RECEIVE_DRAINED : RECEIVE_AGAIN;
    }
    if (rc == UM_STREAM_READ_NOTHING) {
        return RECEIVE_DRAINED;
    }
    if (rc == UM_STREAM_READ_NO_MEMORY) {
        um_log(UM_LOG_ERR, "Core-9002-7", "%s: out of memory for a receive buffer: session ended", session->source);
        um_rcv_session_lost(session, now_ns);
        return RECEIVE_ENDED;
    }
    bool in_order = receiver->stream.end == UM_STREAM_EOF;
    const char *why = in_order ? "closed by the source before its first message" : um_stream_reason(&receiver->stream);
    if (session->state == UM_RCV_JOINING) {
        um_rcv_session_tell_failure(session, UM_LOG_INFO, "Core-9002-8", "connection ended", why, now_ns);
    } else if (!in_order) {
        um_log_limited(um_log_of(session->source), now_ns, UM_LOG_INFO, "Core-9002-8", "%s: connection ended: %s",
                       session->source, why);
    } else {
        session->over = true;
    }
    um_rcv_session_lost(session, now_ns);
    return RECEIVE_ENDED;
}

static void read_pass(struct tcp_receiver *receiver, uint64_t now_ns)
{
    enum receive_rc rc = RECEIVE_AGAIN;
    um_rcv_session_begin(&receiver->base);
    for (int i = 0; i < RECEIVES_PER_PASS && receiver->base.paused == 0 && rc == RECEIVE_AGAIN; i++) {
        rc = receive_once(receiver, now_ns);
    }
    if (rc != RECEIVE_ENDED && receiver->state == CONNECTED) {
        if (receiver->stream.pending) {
            um_loop_post(receiver->env->loop, &receiver->again);
        }
        if (watch(receiver) != 0) {
            fail_later(receiver, now_ns);
        }
    }
    um_rcv_session_end(&receiver->base, now_ns);
}

static void on_again(struct um_command *command)
{
    struct tcp_receiver *receiver = UM_CONTAINER_OF(command, struct tcp_receiver, again);
    if (receiver->state == CONNECTED && receiver->base.paused == 0) {
        read_pass(receiver, um_loop_now(receiver->env->loop));
    }
}

/* --- connecting --- */

/* False: the stream ended. */
static bool send_hello(struct tcp_receiver *receiver)
{
    ssize_t sent = 1;
    while (receiver->hello_sent < receiver->hello_len && sent > 0) {
        sent = um_stream_write(&receiver->stream, receiver->hello + receiver->hello_sent,
                               (size_t)(receiver->hello_len - receiver->hello_sent));
        receiver->hello_sent = (uint8_t)(receiver->hello_sent + (sent > 0 ? sent : 0));
    }
    return sent >= 0 && um_stream_flush(&receiver->stream);
}

static void on_not_connected(struct tcp_receiver *receiver, const char *why, uint64_t now_ns)
{
    um_timer_cancel(um_loop_wheel(receiver->env->loop), &receiver->connect_timer);
    um_rcv_session_tell_failure(&receiver->base, UM_LOG_WARNING, "Core-5688-3247", "connection failed", why, now_ns);
    um_rcv_session_lost(&receiver->base, now_ns);
}

/* Go on opening the stream. */
static void connect_on(struct tcp_receiver *receiver, uint64_t now_ns)
{
    int rc = um_stream_open(&receiver->stream);
    if (rc < 0 || (rc > 0 && !send_hello(receiver))) {
        on_not_connected(receiver, um_stream_reason(&receiver->stream), now_ns);
        return;
    }
    if (watch(receiver) != 0) {
        on_not_connected(receiver, "out of memory", now_ns);
        return;
    }
    if (rc == 0 && receiver->state == CONNECTING && receiver->stream.negotiates) {
        receiver->state = NEGOTIATING;
        um_timer_arm(um_loop_wheel(receiver->env->loop), &receiver->connect_timer,
                     now_ns + um_stream_layer_timeout(receiver->env->stream_layer, CONNECT_TIMEOUT_NS));
    }
    if (rc > 0) {
        um_timer_cancel(um_loop_wheel(receiver->env->loop), &receiver->connect_timer);
        receiver->state = CONNECTED;
        receiver->last_bytes_ns = now_ns;
        if (receiver->stream.pending) {
            um_loop_post(receiver->env->loop, &receiver->again);
        }
    }
}

/* The rest of the session id, or what a filter held back. */
static void write_pass(struct tcp_receiver *receiver, uint64_t now_ns)
{
    if (!send_hello(receiver) || watch(receiver) != 0) {
        fail_later(receiver, now_ns);
    } else if (receiver->stream.pending) {
        um_loop_post(receiver->env->loop, &receiver->again);
    }
}

static void on_fd(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct tcp_receiver *receiver = UM_CONTAINER_OF(ufd, struct tcp_receiver, ufd);
    if (receiver->state == CONNECTING || receiver->state == NEGOTIATING) {
        connect_on(receiver, now_ns);
        return;
    }
    uint32_t means = um_stream_ready(&receiver->stream, ready);
    if ((means & UM_FD_WRITE) && receiver->state == CONNECTED) {
        write_pass(receiver, now_ns);
    }
    if ((means & UM_FD_READ) && receiver->state == CONNECTED) {
        read_pass(receiver, now_ns);
    }
}

static void start_connect(struct tcp_receiver *receiver, uint64_t now_ns)
{
    struct um_rcv_session *session = &receiver->base;
    struct in_addr to = {.s_addr = session->key.ip};
    if (um_stream_connect(&receiver->stream, receiver->local_addr, to, (uint16_t)session->key.port,
                          receiver->env->stream_layer) != 0) {
        um_rcv_session_tell_failure(session, UM_LOG_WARNING, "Core-5688-3245", "cannot connect", um_errmsg(), now_ns);
        fail_later(receiver, now_ns);
        return;
    }
    int fd = receiver->stream.fd;
    um_socket_set_rcvbuf(fd, receiver->env->opts->transport_tcp_receiver_socket_buffer, UM_SIZE_SET,
                         "transport_tcp_receiver_socket_buffer", "Core-5688-3309");
    if (receiver->keepalive_ms != 0) {
        um_socket_set_keepalive(fd, receiver->keepalive_ms);
    }
    um_fd_init(&receiver->ufd, fd, on_fd);
    receiver->hello_sent = receiver->hello_len = 0;
    if (session->key.session_id != 0) {
        receiver->hello_len = (uint8_t)um_lbmc_encode_tcp_sid(receiver->hello, session->key.session_id);
    }
    receiver->state = CONNECTING;
    if (watch(receiver) != 0) {
        um_rcv_session_tell_failure(session, UM_LOG_WARNING, "Core-5688-3245", "cannot connect", um_errmsg(), now_ns);
        fail_later(receiver, now_ns);
        return;
    }
    um_timer_arm(um_loop_wheel(receiver->env->loop), &receiver->connect_timer, now_ns + CONNECT_TIMEOUT_NS);
}

static void on_connect_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct tcp_receiver *receiver = UM_CONTAINER_OF(timer, struct tcp_receiver, connect_timer);
    if (receiver->state == CONNECTING) {
        um_rcv_session_tell_failure(&receiver->base, UM_LOG_WARNING, "Core-5688-3247", "connection failed",
                                    "no answer in four seconds", now_ns);
        um_rcv_session_lost(&receiver->base, now_ns);
    } else if (receiver->state == NEGOTIATING) {
        um_rcv_session_tell_failure(&receiver->base, UM_LOG_WARNING, "Core-5688-3247", "connection failed",
                                    "negotiate timeout with peer (tls_compression_negotiation_timeout)", now_ns);
        um_rcv_session_lost(&receiver->base, now_ns);
    } else if (receiver->state == FAILED) {
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
    um_loop_unpost(receiver->env->loop, &receiver->again);
    um_loop_remove_fd(receiver->env->loop, &receiver->ufd);
    um_stream_close(&receiver->stream, UM_STREAM_NOW);
    receiver->state = STOPPED;
}

static void op_destroy(struct um_rcv_session *session)
{
    struct tcp_receiver *receiver = receiver_of(session);
    um_stream_reader_fini(&receiver->reader);
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
    if (watch(receiver) != 0) {
        fail_later(receiver, now_ns);
    } else if (!paused && receiver->stream.pending) {
        um_loop_post(receiver->env->loop, &receiver->again);
    }
}

static void op_fill_stats(const struct um_rcv_session *session, lbm_rcv_transport_stats_t *out)
{
    out->type = LBM_TRANSPORT_STAT_TCP;
    out->transport.tcp.bytes_rcved = session->bytes_rcved;
    UM_RCV_LBM_COUNTS(session, out->transport.tcp);
}

static uint32_t op_local_ip(const struct um_rcv_session *session)
{
    return um_stream_local(&receiver_of((struct um_rcv_session *)session)->stream).sin_addr.s_addr;
}

static const struct um_rcv_session_ops ops = {.start = op_start,
                                              .stop = op_stop,
                                              .destroy = op_destroy,
                                              .set_paused = op_set_paused,
                                              .fill_stats = op_fill_stats,
                                              .local_ip = op_local_ip};

static void read_activity_options(struct tcp_receiver *receiver, const struct um_receiver_options *opts)
{
    if (opts->transport_tcp_activity_method == ACTIVITY_METHOD_SO_KEEPALIVE) {
        receiver->keepalive_ms = (unsigned)opts->transport_tcp_activity_timeout;
    } else {
        receiver->activity_timeout_ns = um_ms_ns(opts->transport_tcp_activity_timeout);
    }
}

/* ---- operations of the transport ---- */

static struct um_rcv_transport *create(struct um_transport_env *env)
{
    struct tcp_receivers *receivers = um_calloc(1, sizeof *receivers);
    struct um_buf_pool *pool = um_buf_pool_create(RECEIVE_BUFFER_SIZE, RECEIVE_BUFFERS_KEPT);
    if (receivers == NULL || pool == NULL) {
        if (pool != NULL) {
            um_buf_pool_release(pool);
        }
        um_free(receivers);
        um_error_nomem("TCP receive buffers", RECEIVE_BUFFER_SIZE);
        return NULL;
    }
    receivers->pool = pool;
    return &receivers->base;
}

static void destroy(struct um_rcv_transport *transport)
{
    struct tcp_receivers *receivers = UM_CONTAINER_OF(transport, struct tcp_receivers, base);
    um_buf_pool_release(receivers->pool);
    um_free(receivers);
}

static struct um_rcv_session *join(struct um_rcv_transport *transport, const struct um_receiver_options *opts,
                                   const struct um_rcv_session_key *key)
{
    struct um_transport_env *env = transport->env;
    struct um_buf_pool *pool = UM_CONTAINER_OF(transport, struct tcp_receivers, base)->pool;
    struct in_addr local_addr;
    if (um_local_addr(&opts->transport_tcp_interface, &env->opts->default_interface, &local_addr) != 0) {
        return NULL;
    }
    struct tcp_receiver *receiver = um_calloc(1, sizeof *receiver);
    if (receiver != NULL) {
        um_stream_reader_init(&receiver->reader, pool);
    }
    if (receiver == NULL || !um_stream_reader_reserve(&receiver->reader)) {
        um_free(receiver);
        um_error_nomem("TCP receive session", sizeof *receiver);
        return NULL;
    }
    receiver->base.ops = &ops;
    receiver->env = env;
    receiver->local_addr = local_addr;
    um_stream_init(&receiver->stream);
    um_fd_init(&receiver->ufd, -1, on_fd);
    um_command_init(&receiver->again, on_again);
    um_timer_init(&receiver->connect_timer, on_connect_timer);
    um_timer_init(&receiver->activity_timer, on_activity_timer);
    read_activity_options(receiver, opts);
    return &receiver->base;
}

static void in_force(const struct um_transport_env *env, struct um_receiver_options *out)
{
    um_local_addr_in_force(&out->transport_tcp_interface, &env->opts->default_interface);
}

const struct um_rcv_transport_ops um_tcp_rcv_transport = {
    .type = LBM_TRANSPORT_TYPE_TCP,
    .name = "TCP",
    .streams = true,
    .join_kind = UM_RCV_JOIN_ASKS,
    .retry_delay_ns = RETRY_DELAY_NS,
    .create = create,
    .destroy = destroy,
    .key = um_rcv_key_by_address,
    .join = join,
    .in_force = in_force,
};
