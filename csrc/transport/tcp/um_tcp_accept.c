/* How clients of TCP source sessions come: accepting, opening the stream (where a
 * filter has a handshake, before the client counts as one), joining. Everything here
 * runs on the loop. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "base/um_random.h"
#include "net/um_socket.h"
#include "transport/tcp/um_tcp_client.h"

#define UM_ACCEPT_BURST 64

static bool room_for_client(struct um_tcp_src_session *session)
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
    struct um_tcp_src_session *session = client->session;
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

static void set_socket_options(struct um_tcp_src_session *session, int fd)
{
    if (session->nodelay) {
        um_socket_set_nodelay(fd, true);
    }
    um_socket_set_sndbuf(fd, session->sndbuf, UM_SIZE_SET, "transport_tcp_sender_socket_buffer", "Core-5688-3290");
    if (session->keepalive_ms > 0) {
        um_socket_set_keepalive(fd, session->keepalive_ms);
    }
}

/* The new client begins at a datagram boundary: what was batched before it came is not for it. */
static void join(struct um_tcp_src_session *session, struct um_tcp_client *client)
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

static void tell_refused(struct um_tcp_src_session *session, uint32_t ip, const char *why, uint64_t now_ns)
{
    um_src_session_lock(&session->base);
    session->base.drops.unopened++;
    um_src_session_unlock(&session->base);
    um_log_limited(um_log_of_ip(ip), now_ns, UM_LOG_ERR, "Core-5688-3931",
                   "TCP source port %u: a receiver's connection was closed: %s", session->port, why);
}

/* ---- streams that are not open yet ---- */

static void free_unopened(struct um_tcp_client *client)
{
    struct um_tcp_src_session *session = client->session;
    um_timer_cancel(um_loop_wheel(session->base.env->loop), &client->timer);
    um_loop_remove_fd(session->base.env->loop, &client->ufd);
    um_list_remove(&client->node);
    session->opening_count--;
    um_stream_close(&client->stream, UM_STREAM_NOW);
    um_free(client);
}

static void count_unopened(struct um_tcp_client *client, const char *why, uint64_t now_ns)
{
    struct um_tcp_src_session *session = client->session;
    um_src_session_lock(&session->base);
    session->base.drops.unopened++;
    um_src_session_unlock(&session->base);
    um_log_limited(um_log_of_ip(client->ip), now_ns, UM_LOG_WARNING, "Core-5688-3934",
                   "%s: connection given up before its first byte: %s", client->text, why);
}

static void on_opening_timer(struct um_timer *timer, uint64_t now_ns)
{
    struct um_tcp_client *client = UM_CONTAINER_OF(timer, struct um_tcp_client, timer);
    count_unopened(client, "negotiate timeout with peer", now_ns);
    free_unopened(client);
}

/* Open: now it is a client. False: it is none. */
static bool admit(struct um_tcp_client *client)
{
    struct um_tcp_src_session *session = client->session;
    if (!room_for_client(session)) {
        tell_refused(session, client->ip, "out of memory", um_loop_now(session->base.env->loop));
        free_unopened(client);
        return false;
    }
    um_timer_cancel(um_loop_wheel(session->base.env->loop), &client->timer);
    um_list_remove(&client->node);
    session->opening_count--;
    do {
        client->idx = um_random_u32_nonzero();
    } while (um_tcp_src_session_client(session, client->idx) != NULL);
    join(session, client);
    um_tcp_src_session_report(session, client->text, true);
    return true;
}

bool um_tcp_client_opens(struct um_tcp_client *client)
{
    struct um_loop *loop = client->session->base.env->loop;
    int rc = um_stream_open(&client->stream);
    if (rc > 0) {
        return admit(client);
    }
    if (rc < 0) {
        count_unopened(client, um_stream_reason(&client->stream), um_loop_now(loop));
        free_unopened(client);
    } else if (um_loop_set_interest(loop, &client->ufd, um_stream_interest(&client->stream, UM_FD_READ)) != 0) {
        count_unopened(client, um_errmsg(), um_loop_now(loop));
        free_unopened(client);
    }
    return false;
}

void um_tcp_src_session_end_opening(struct um_tcp_src_session *session)
{
    struct um_list *it, *tmp;
    UM_LIST_FOREACH_SAFE(it, tmp, &session->opening)
    {
        free_unopened(UM_CONTAINER_OF(it, struct um_tcp_client, node));
    }
}

/* ---- accepting ---- */

static struct um_tcp_client *client_create(struct um_tcp_src_session *session, const struct um_stream *stream,
                                           const struct sockaddr_in *peer)
{
    struct um_tcp_client *client = um_calloc(1, sizeof *client);
    if (client == NULL) {
        return NULL;
    }
    char ip[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &peer->sin_addr, ip, sizeof ip);
    snprintf(client->text, sizeof client->text, "TCP:%s:%u", ip, ntohs(peer->sin_port));
    client->session = session;
    client->ip = peer->sin_addr.s_addr;
    client->stream = *stream;
    um_u32_map_init(&client->topics);
    um_fd_init(&client->ufd, stream->fd, um_tcp_client_on_ready);
    um_timer_init(&client->timer, on_opening_timer);
    um_list_push_back(&session->opening, &client->node);
    session->opening_count++;
    return client;
}

static unsigned unopened_of(const struct um_tcp_src_session *session, uint32_t ip)
{
    unsigned count = 0;
    struct um_list *it;
    UM_LIST_FOREACH(it, &session->opening)
    {
        count += UM_CONTAINER_OF(it, struct um_tcp_client, node)->ip == ip;
    }
    return count;
}

/* The oldest of the address with the most gives way, so that a stranger who opens none keeps nobody else out. */
static struct um_tcp_client *gives_way(const struct um_tcp_src_session *session)
{
    struct um_tcp_client *found = NULL;
    unsigned most = 0;
    struct um_list *it;
    UM_LIST_FOREACH(it, &session->opening)
    {
        struct um_tcp_client *client = UM_CONTAINER_OF(it, struct um_tcp_client, node);
        unsigned count = unopened_of(session, client->ip);
        if (count > most) {
            most = count;
            found = client;
        }
    }
    return found;
}

static void take_client(struct um_stream_listener *listener, struct um_stream *stream, const struct sockaddr_in *peer,
                        uint64_t now_ns)
{
    struct um_tcp_src_session *session = UM_CONTAINER_OF(listener, struct um_tcp_src_session, listener);
    const struct um_stream_layer *layer = session->base.env->stream_layer;
    struct um_tcp_client *client = NULL;
    /* A receiver does not wait for long where others wait for its place (core/um_rcv_joins.c). */
    if (um_stream_peer_has_left(stream)) {
        um_stream_close(stream, UM_STREAM_NOW);
        return;
    }
    if (layer == NULL || layer->cover(layer, stream, UM_STREAM_ACCEPTS) == 0) {
        client = client_create(session, stream, peer);
    }
    if (client == NULL) {
        um_stream_close(stream, UM_STREAM_NOW);
        tell_refused(session, peer->sin_addr.s_addr, "out of memory", now_ns);
        return;
    }
    set_socket_options(session, stream->fd);
    if (um_loop_add_fd(listener->loop, &client->ufd, um_stream_interest(stream, UM_FD_READ)) != 0) {
        tell_refused(session, client->ip, um_errmsg(), now_ns);
        free_unopened(client);
        return;
    }
    um_timer_arm(um_loop_wheel(listener->loop), &client->timer,
                 now_ns + um_stream_layer_timeout(layer, UM_TCP_OPENING_NS));
    if (um_tcp_client_opens(client) || session->opening_count <= UM_TCP_OPENING_MAX) {
        return;
    }
    client = gives_way(session);
    count_unopened(client, "too many are being opened", now_ns);
    free_unopened(client);
}

static void on_pause(struct um_stream_listener *listener, int err, uint64_t now_ns)
{
    struct um_tcp_src_session *session = UM_CONTAINER_OF(listener, struct um_tcp_src_session, listener);
    um_log_limited(um_log_of_all(), now_ns, UM_LOG_ERR, "Core-5688-3242",
                   "TCP source port %u: accept failed: %s; trying again (raise the limit of open files?)",
                   session->port, strerror(err));
}

int um_tcp_src_session_listen(struct um_tcp_src_session *session, int fd)
{
    um_list_init(&session->opening);
    session->listener.burst = UM_ACCEPT_BURST;
    session->listener.layer = session->base.env->stream_layer;
    session->listener.on_stream = take_client;
    session->listener.on_pause = on_pause;
    return um_stream_listener_start(&session->listener, session->base.env->loop, fd);
}
