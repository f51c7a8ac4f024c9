/* Clients of TCP source sessions: accepting them, what they send (the session
 * id and nothing else of use), and their end. Everything here runs on the loop. */
#define _GNU_SOURCE
#include "transport/tcp/um_tcp_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_fork.h"
#include "base/um_mem.h"
#include "net/um_socket.h"

#define UM_ACCEPT_BURST 64
#define UM_READS_PER_PASS 16
#define UM_ACCEPT_PAUSE_NS (100 * UM_NS_PER_MS)

/* ---- what a client sends ---- */

static void ignore_message(struct um_tcp_client *client, uint8_t type, uint8_t next_hdr, uint64_t now_ns)
{
    struct um_tcp_session *session = client->session;
    um_src_session_lock(&session->base);
    session->base.drops.ignored_from_clients++;
    um_src_session_unlock(&session->base);
    if (type != UM_LBMC_CONTROL && type != UM_LBMC_EOT) {
        um_log_limited(&session->data_log, now_ns, UM_NS_PER_SEC, UM_LOG_WARNING, "Core-6937-32",
                       "%s sent a data message to a source: ignored", client->text);
    } else if (next_hdr == UM_LBMC_HDR_TCP_SID) {
        um_log_limited(&session->sid_log, now_ns, UM_NS_PER_SEC, UM_LOG_WARNING, "Core-6937-10",
                       "%s sent a session id header that is not well formed: ignored", client->text);
    } else {
        um_log_limited(&session->control_log, now_ns, UM_NS_PER_SEC, UM_LOG_WARNING, "Core-6937-33",
                       "%s sent a control message (header 0x%02x) that a source does not know: ignored", client->text,
                       next_hdr);
    }
}

/* False: the client means another session. */
static bool take_message(struct um_tcp_client *client, const struct um_lbmc_msg *msg, bool well_formed, uint64_t now_ns)
{
    if (well_formed && msg->type == UM_LBMC_CONTROL && (msg->present & UM_LBMC_HAS_TCP_SID)) {
        return msg->tcp_sid == client->session->session_id;
    }
    ignore_message(client, client->in[0] & 0x0f, client->in[1], now_ns);
    return true;
}

/* Use up the messages at the start of `in`. False: close. */
static bool parse(struct um_tcp_client *client, uint64_t now_ns)
{
    size_t at = 0;
    bool keep = true;
    while (keep && at < client->in_len) {
        struct um_lbmc_msg msg;
        size_t left = client->in_len - at;
        enum um_lbmc_rc rc = um_lbmc_decode(client->in + at, left, &msg);
        if (rc == UM_LBMC_FRAMING) {
            um_log_limited(&client->session->corrupt_log, now_ns, UM_NS_PER_SEC, UM_LOG_WARNING, "Core-6036-1",
                           "%s: the stream is not LBMC (starts with %02x %02x): closing the connection", client->text,
                           client->in[at], left > 1 ? client->in[at + 1] : 0);
            return false;
        }
        if (rc == UM_LBMC_SHORT) {
            size_t need = left >= UM_LBMC_CONTROL_HDR_LEN ? um_get16(client->in + at + 2) : 0;
            if (need > sizeof client->in) {
                ignore_message(client, client->in[at] & 0x0f, client->in[at + 1], now_ns);
                client->in_skip = need - left;
                at = client->in_len;
            }
            break;
        }
        memmove(client->in, client->in + at, left); /* take_message looks at the start */
        client->in_len = left;
        at = msg.msglen;
        keep = take_message(client, &msg, rc == UM_LBMC_OK, now_ns);
    }
    memmove(client->in, client->in + at, client->in_len - at);
    client->in_len -= at;
    return keep;
}

static bool feed(struct um_tcp_client *client, const uint8_t *data, size_t len, uint64_t now_ns)
{
    while (len > 0) {
        size_t part = client->in_skip < len ? client->in_skip : len;
        client->in_skip -= part;
        data += part;
        len -= part;
        part = sizeof client->in - client->in_len < len ? sizeof client->in - client->in_len : len;
        memcpy(client->in + client->in_len, data, part);
        client->in_len += part;
        data += part;
        len -= part;
        if (part > 0 && !parse(client, now_ns)) {
            return false;
        }
    }
    return true;
}

static void client_read(struct um_tcp_client *client, uint64_t now_ns)
{
    uint8_t data[4096];
    for (int i = 0; i < UM_READS_PER_PASS; i++) {
        ssize_t got = recv(client->ufd.fd, data, sizeof data, MSG_DONTWAIT);
        if (got > 0) {
            if (!feed(client, data, (size_t)got, now_ns)) {
                um_tcp_client_close(client);
                return;
            }
        } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return;
        } else if (got == 0 || errno != EINTR) {
            um_tcp_client_close(client);
            return;
        }
    }
}

/* The socket has room. A waiting sender that polls it too goes first. */
static void client_writable(struct um_tcp_client *client)
{
    struct um_src_session *base = &client->session->base;
    um_src_session_lock(base);
    if (!base->polling) {
        um_tcp_client_write(client);
    }
    bool done = base->polling || client->ring_count == 0;
    if (done) {
        client->write_wanted = false;
    }
    um_src_session_unlock(base);
    if (done) {
        um_loop_set_interest(base->env->loop, &client->ufd, UM_FD_READ);
    }
}

static void on_client_ready(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct um_tcp_client *client = UM_CONTAINER_OF(ufd, struct um_tcp_client, ufd);
    if (ready & UM_FD_WRITE) {
        client_writable(client);
    }
    if (ready & (UM_FD_READ | UM_FD_HANGUP | UM_FD_EXCEPT)) {
        client_read(client, now_ns);
    }
}

/* ---- beginning and end ---- */

static void report_all(struct um_tcp_session *session, const char *text, bool connected)
{
    struct um_list *it, *tmp;
    UM_LIST_FOREACH_SAFE(it, tmp, &session->base.streams)
    {
        struct um_src_stream *stream = UM_CONTAINER_OF(it, struct um_src_stream, node);
        if (stream->announce_pending) {
            continue; /* the announcement lists the clients there are then */
        }
        if (connected) {
            stream->events->on_connect(stream, text);
        } else {
            stream->events->on_disconnect(stream, text);
        }
    }
}

static void client_free(struct um_tcp_client *client)
{
    struct um_src_session *base = &client->session->base;
    um_src_session_lock(base);
    if (!client->dead) {
        client->dead = true;
        um_tcp_client_drop_queue(client);
    }
    um_src_session_unlock(base);
    um_u32_map_clear(&client->topics);
    um_free(client->ring);
    um_free(client);
}

void um_tcp_client_discard(struct um_tcp_client *client)
{
    struct um_tcp_session *session = client->session;
    um_src_session_lock(&session->base);
    int at = 0;
    while (at < session->base.clients && session->clients[at] != client) {
        at++;
    }
    if (at < session->base.clients) {
        session->base.clients--;
        memmove(session->clients + at, session->clients + at + 1,
                (size_t)(session->base.clients - at) * sizeof *session->clients);
    }
    if (session->base.polling) {
        um_tcp_interrupt(&session->base); /* a poll holds on to the socket */
    }
    um_src_session_unlock(&session->base);
    um_loop_remove_fd(session->base.env->loop, &client->ufd);
    int fd = client->ufd.fd;
    client_free(client);
    shutdown(fd, SHUT_RDWR);
    um_fd_close(fd);
    um_src_session_lock(&session->base);
    um_tcp_pressure(session);
    um_src_session_unlock(&session->base);
}

void um_tcp_client_close(struct um_tcp_client *client)
{
    struct um_tcp_session *session = client->session;
    char text[sizeof client->text];
    memcpy(text, client->text, sizeof text);
    um_tcp_client_discard(client);
    um_tcp_report_drops(session, um_loop_now(session->base.env->loop));
    report_all(session, text, false);
}

bool um_tcp_client_wants(const struct um_tcp_client *client, uint32_t tidx)
{
    bool listed = um_u32_map_get(&client->topics, tidx) != NULL;
    return client->session->ssf == UM_TCP_SSF_EXCLUSION ? !listed : listed;
}

static bool room_for_client(struct um_tcp_session *session)
{
    if (session->base.clients < session->clients_size) {
        return true;
    }
    int size = session->clients_size == 0 ? 8 : session->clients_size * 2;
    struct um_tcp_client **clients = um_malloc((size_t)size * sizeof *clients);
    int *order = um_malloc((size_t)size * sizeof *order);
    if (clients == NULL || order == NULL) {
        um_free(clients);
        um_free(order);
        return false;
    }
    um_src_session_lock(&session->base);
    if (session->base.clients > 0) {
        memcpy(clients, session->clients, (size_t)session->base.clients * sizeof *clients);
    }
    um_free(session->clients);
    um_free(session->order);
    session->clients = clients;
    session->order = order;
    session->clients_size = size;
    um_src_session_unlock(&session->base);
    return true;
}

static void put_ssf_init(struct um_tcp_client *client)
{
    struct um_tcp_session *session = client->session;
    struct um_lbmc_ssf_init init = {
        .flags = session->ssf == UM_TCP_SSF_INCLUSION ? 0x40 : 0x20,
        .transport = LBM_TRANSPORT_TYPE_TCP,
        .transport_idx = session->transport_idx,
        .client_idx = client->idx,
        .port = session->base.env->request_port,
        .ip = session->base.env->request_ip.s_addr,
    };
    struct um_datagram *datagram = um_datagram_get(&session->base);
    if (datagram == NULL) {
        um_tcp_client_fail_no_memory(client);
        return;
    }
    datagram->len = (uint32_t)um_lbmc_encode_ssf_init(datagram->data, &init);
    datagram->continues = session->base.open_messages > 0;
    um_tcp_client_put(client, datagram);
    um_datagram_unref(&session->base, datagram);
}

/* Tell a client the last number of the topics it will get (or of one of them), so that it is ready. */
void um_tcp_client_put_tsni(struct um_tcp_client *client, struct um_src_stream *only)
{
    struct um_src_session *base = &client->session->base;
    uint32_t tidx[UM_LBMC_TSNI_MAX], sqn[UM_LBMC_TSNI_MAX];
    size_t count = 0;
    struct um_datagram *datagram = NULL;
    struct um_list *it;
    for (it = base->streams.next;; it = it->next) {
        bool end = it == &base->streams;
        struct um_src_stream *stream = end ? NULL : UM_CONTAINER_OF(it, struct um_src_stream, node);
        if (count == UM_LBMC_TSNI_MAX || (end && count > 0)) {
            if (datagram != NULL && datagram->len + 8 + 8 * count > base->datagram_max) {
                um_tcp_client_put(client, datagram);
                um_datagram_unref(base, datagram);
                datagram = NULL;
            }
            if (datagram == NULL && (datagram = um_datagram_get(base)) == NULL) {
                um_tcp_client_fail_no_memory(client);
                return;
            }
            datagram->len += (uint32_t)um_lbmc_encode_tsni(datagram->data + datagram->len, tidx, sqn, count);
            datagram->continues = base->open_messages > 0;
            count = 0;
        }
        if (end) {
            break;
        }
        bool wanted = only != NULL
                          ? stream == only
                          : client->session->ssf == UM_TCP_SSF_NONE || um_tcp_client_wants(client, stream->tidx);
        if (wanted) {
            tidx[count] = stream->tidx;
            sqn[count++] = um_src_stream_last_sqn(stream);
        }
    }
    if (datagram != NULL) {
        um_tcp_client_put(client, datagram);
        um_datagram_unref(base, datagram);
    }
}

static void set_socket_options(struct um_tcp_session *session, int fd)
{
    if (session->nodelay) {
        um_socket_set_nodelay(fd, true);
    }
    um_socket_set_sndbuf(fd, session->sndbuf, "transport_tcp_sender_socket_buffer", "Core-5688-3290");
    if (session->keepalive_ms > 0) {
        um_socket_set_keepalive(fd, session->keepalive_ms);
    }
}

/* The new client begins at a datagram boundary: what was batched before it came is not for it. */
static void join(struct um_tcp_session *session, struct um_tcp_client *client)
{
    um_src_session_lock(&session->base);
    um_src_session_flush(&session->base);
    session->clients[session->base.clients++] = client;
    if (session->ssf != UM_TCP_SSF_NONE) {
        put_ssf_init(client);
    }
    um_tcp_client_put_tsni(client, NULL);
    um_tcp_pressure(session);
    um_src_session_unlock(&session->base);
}

static void take_client(struct um_tcp_session *session, int fd, const struct sockaddr_in *peer)
{
    struct um_tcp_client *client = um_calloc(1, sizeof *client);
    if (client == NULL || !room_for_client(session)) {
        um_free(client);
        um_fd_close(fd);
        um_log(UM_LOG_ERR, "Core-5688-3931", "out of memory: a receiver's connection was closed");
        return;
    }
    char ip[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &peer->sin_addr, ip, sizeof ip);
    snprintf(client->text, sizeof client->text, "TCP:%s:%u", ip, ntohs(peer->sin_port));
    client->session = session;
    client->idx = session->next_client_idx++;
    um_u32_map_init(&client->topics);
    um_fd_init(&client->ufd, fd, on_client_ready);
    set_socket_options(session, fd);
    if (um_loop_add_fd(session->base.env->loop, &client->ufd, UM_FD_READ) != 0) {
        um_log(UM_LOG_ERR, "Core-5688-3931", "%s: cannot be watched, connection closed", client->text);
        um_free(client);
        um_fd_close(fd);
        return;
    }
    join(session, client);
    report_all(session, client->text, true);
}

static void on_listen_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_tcp_session *session = UM_CONTAINER_OF(timer, struct um_tcp_session, listen_timer);
    if (um_loop_set_interest(session->base.env->loop, &session->listen_fd, UM_FD_READ) != 0) {
        um_timer_arm(um_loop_wheel(session->base.env->loop), timer, now_ns + UM_ACCEPT_PAUSE_NS);
    }
}

/* Out of descriptors or memory: the waiting connection would make the loop spin, so accepting pauses. */
static void pause_accepting(struct um_tcp_session *session, int err, uint64_t now_ns)
{
    um_log_limited(&session->accept_log, now_ns, 10 * UM_NS_PER_SEC, UM_LOG_ERR, "Core-5688-3242",
                   "TCP source port %u: accept failed: %s; trying again (raise the limit of open files?)",
                   session->port, strerror(err));
    um_loop_set_interest(session->base.env->loop, &session->listen_fd, 0);
    um_timer_arm(um_loop_wheel(session->base.env->loop), &session->listen_timer, now_ns + UM_ACCEPT_PAUSE_NS);
}

static void on_listen_ready(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct um_tcp_session *session = UM_CONTAINER_OF(ufd, struct um_tcp_session, listen_fd);
    for (int i = 0; i < UM_ACCEPT_BURST; i++) {
        struct sockaddr_in peer;
        socklen_t len = sizeof peer;
        int fd = um_fd_own(accept4(ufd->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd >= 0) {
            take_client(session, fd, &peer);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno != EINTR && errno != ECONNABORTED && errno != EPROTO) {
            pause_accepting(session, errno, now_ns);
            return;
        }
    }
}

int um_tcp_session_listen(struct um_tcp_session *session, int fd)
{
    um_fd_init(&session->listen_fd, fd, on_listen_ready);
    um_timer_init(&session->listen_timer, on_listen_timer);
    return um_loop_add_fd(session->base.env->loop, &session->listen_fd, UM_FD_READ);
}

void um_tcp_session_announce(struct um_src_session *base, struct um_src_stream *stream)
{
    struct um_tcp_session *session = UM_CONTAINER_OF(base, struct um_tcp_session, base);
    for (int i = 0; i < base->clients; i++) { /* only the loop changes the array */
        stream->events->on_connect(stream, session->clients[i]->text);
    }
}

/* A client whose queue nobody would write out is not kept. */
static void watch_output(struct um_tcp_client *client)
{
    struct um_src_session *base = &client->session->base;
    if (um_loop_set_interest(base->env->loop, &client->ufd, UM_FD_READ | UM_FD_WRITE) == 0) {
        return;
    }
    um_log(UM_LOG_ERR, "Core-5688-3932", "%s: cannot be written to, connection closed: %s", client->text, um_errmsg());
    um_src_session_lock(base);
    um_tcp_client_fail(client);
    um_src_session_unlock(base);
}

/* Senders asked for the loop's help with queues, and for lines in the log. */
void um_tcp_session_on_command(struct um_src_session *base)
{
    struct um_tcp_session *session = UM_CONTAINER_OF(base, struct um_tcp_session, base);
    for (int i = 0; i < base->clients; i++) {
        struct um_tcp_client *client = session->clients[i];
        um_src_session_lock(base);
        bool wanted = client->write_wanted && !client->dead;
        um_src_session_unlock(base);
        if (wanted) {
            watch_output(client);
        }
    }
    um_tcp_report_drops(session, um_loop_now(base->env->loop));
}
