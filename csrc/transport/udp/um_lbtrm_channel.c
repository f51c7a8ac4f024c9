/* Multicast groups joined by a context: opening and closing, and finding the
 * session of each datagram. Everything runs on the loop. */
#include "transport/udp/um_lbtrm_channel.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "transport/lbtr/um_lbtrm_rcv_engine.h"
#include "transport/session/um_local_addr.h"
#include "wire/um_lbtrm.h"

struct um_lbtrm_channel {
    struct um_list node; /* um_udp_receivers.channels */
    struct um_udp_receivers *owner;
    uint32_t group;
    uint16_t port;
    struct um_udp_socket sock;
    struct um_fd ufd;
    struct um_map sessions; /* um_lbtrm_channel_key -> um_lbtrm_session */
    struct um_lbtrm_channel_key last_key;
    struct um_udp_rcv_session *last;  /* of last_key; NULL: unknown */
    struct um_rcv_listener *listener; /* hears of sessions that are not joined; NULL: nobody does */
    bool reading;                     /* a read pass is on the stack: it frees the channel */
    bool closed;
    bool heard;    /* one of its sessions has begun */
    char name[32]; /* "a.b.c.d:port" */
};

static bool same_key(const struct um_lbtrm_channel_key *a, const struct um_lbtrm_channel_key *b)
{
    return a->session_id == b->session_id && a->ip == b->ip && a->port == b->port;
}

/* ---- finding the session ---- */

static struct um_udp_rcv_session *find_session(struct um_lbtrm_channel *channel, const struct um_lbtrm_channel_key *key)
{
    if (channel->last != NULL && same_key(&channel->last_key, key)) {
        return channel->last;
    }
    struct um_udp_rcv_session *session = um_map_get(&channel->sessions, key, sizeof *key);
    if (session != NULL) {
        channel->last_key = *key;
        channel->last = session;
    }
    return session;
}

/* The session that a broken packet is put down to: the only one there is, or the only one of that sender. */
struct suspect {
    uint32_t ip;
    struct um_udp_rcv_session *session;
    unsigned count;
};

static void suspect_by_ip(const void *key, size_t len, void *value, void *arg)
{
    const struct um_lbtrm_channel_key *session_key = key;
    struct suspect *suspect = arg;
    if (session_key->ip == suspect->ip) {
        suspect->session = value;
        suspect->count++;
    }
}

static void suspect_any(const void *key, size_t len, void *value, void *arg)
{
    struct suspect *suspect = arg;
    suspect->session = value;
    suspect->count++;
}

static void on_stranger(struct um_lbtrm_channel *channel)
{
    struct um_udp_receivers *receivers = channel->owner;
    struct um_lbtrm_packet packet;
    enum um_lbtr_rc rc = um_lbtrm_decode(receivers->datagram.data, receivers->datagram.len, &packet);
    struct suspect suspect = {.ip = receivers->datagram.from_ip};
    if (rc != UM_LBTR_OK) {
        um_map_foreach(&channel->sessions, um_map_count(&channel->sessions) == 1 ? suspect_any : suspect_by_ip,
                       &suspect);
    }
    if (suspect.count == 1) {
        um_udp_rcv_session_malformed(suspect.session, rc);
    } else {
        receivers->counts.unjoined++;
        um_udp_tell_unknown(receivers, channel->name);
    }
}

/* A packet that tells where its session is: the listener may join it. */
static struct um_udp_rcv_session *ask_listener(struct um_lbtrm_channel *channel, const struct um_lbtrm_channel_key *key,
                                               uint64_t now_ns)
{
    const struct um_udp_datagram *datagram = &channel->owner->datagram;
    struct um_lbtrm_packet packet;
    if (datagram->oversized || um_lbtrm_decode(datagram->data, datagram->len, &packet) != UM_LBTR_OK ||
        (packet.type != UM_LBTRM_DATA && packet.type != UM_LBTRM_SM)) {
        return NULL;
    }
    const lbm_transport_source_info_t info = {.type = LBM_TRANSPORT_TYPE_LBTRM,
                                              .src_ip = key->ip,
                                              .src_port = (lbm_uint16_t)key->port,
                                              .session_id = key->session_id,
                                              .mc_group = channel->group,
                                              .dest_port = channel->port};
    channel->listener->on_stranger(channel->listener, &info, now_ns);
    return find_session(channel, key);
}

static void on_datagram(void *user, uint64_t now_ns)
{
    struct um_lbtrm_channel *channel = user;
    struct um_udp_receivers *receivers = channel->owner;
    const struct um_udp_datagram *datagram = &receivers->datagram;
    struct um_lbtrm_session header;
    struct um_udp_rcv_session *session = NULL;
    if (!channel->closed && um_lbtrm_peek(datagram->data, datagram->len, &header)) {
        struct um_lbtrm_channel_key key = {
            .ip = datagram->from_ip, .port = header.ucast_port, .session_id = header.session_id};
        session = find_session(channel, &key);
        if (__builtin_expect(session == NULL && channel->listener != NULL, 0)) {
            session = ask_listener(channel, &key, now_ns);
        }
    }
    if (__builtin_expect(session != NULL && !datagram->oversized, 1)) {
        um_udp_rcv_session_enter(session);
        um_lbtrm_rcv_engine_on_packet(session->engine, now_ns, datagram->data, datagram->len, datagram->from_ip);
    } else if (session != NULL) {
        um_udp_rcv_session_malformed(session, UM_LBTR_SIZE);
    } else {
        on_stranger(channel);
    }
}

/* ---- life ---- */

static void free_channel(struct um_lbtrm_channel *channel)
{
    um_map_clear(&channel->sessions);
    um_free(channel);
}

static void on_readable(struct um_fd *ufd, uint32_t ready, uint64_t now_ns)
{
    struct um_lbtrm_channel *channel = UM_CONTAINER_OF(ufd, struct um_lbtrm_channel, ufd);
    channel->reading = true;
    um_udp_read_pass(channel->owner, &channel->sock, now_ns, UM_LOSS_LBTRM_RCV, on_datagram, channel);
    channel->reading = false;
    if (channel->closed) {
        free_channel(channel);
    }
}

static int open_socket(struct um_lbtrm_channel *channel)
{
    struct um_udp_receivers *receivers = channel->owner;
    const struct um_context_options *opts = receivers->base.env->opts;
    struct in_addr group = {.s_addr = channel->group};
    struct um_iface iface;
    struct um_udp_config config = {
        .datagram_max = um_udp_receive_size(opts->transport_lbtrm_receiver_datagram_max_size,
                                            opts->transport_lbtrm_datagram_max_size),
        .socket_buffer = opts->transport_lbtrm_receiver_socket_buffer,
        .socket_buffer_origin = um_size_origin(opts->default_buffers.transport_lbtrm_receiver_socket_buffer),
        .socket_buffer_option = "transport_lbtrm_receiver_socket_buffer",
        .socket_buffer_log = "Core-5688-3274",
        .timestamps = opts->transport_lbtrm_receiver_timestamp != 0,
    };
    if (um_multicast_iface(opts, &iface) != 0 || um_udp_receivers_open_reader(receivers, config.datagram_max) != 0) {
        return -1;
    }
    int rc = um_udp_open_group(receivers->reader, &channel->sock, &config, group, channel->port, &iface, false);
    if (rc == UM_UDP_NOT_BOUND) {
        um_log_limited(um_log_of_ip(channel->group), um_loop_now(receivers->base.env->loop), UM_LOG_ERR,
                       "Core-5688-3267", "LBT-RM receiver: %s; does another program have the port for itself?",
                       um_errmsg());
    }
    if (rc != 0) {
        return -1;
    }
    return um_udp_watch(receivers, &channel->sock, &channel->ufd, on_readable, iface.addr);
}

static struct um_lbtrm_channel *find_channel(const struct um_udp_receivers *receivers, uint32_t group, uint16_t port)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &receivers->channels)
    {
        struct um_lbtrm_channel *channel = UM_CONTAINER_OF(node, struct um_lbtrm_channel, node);
        if (channel->group == group && channel->port == port) {
            return channel;
        }
    }
    return NULL;
}

bool um_lbtrm_channel_in_use(const struct um_udp_receivers *receivers, uint32_t group, uint16_t port)
{
    const struct um_lbtrm_channel *channel = find_channel(receivers, group, port);
    return channel != NULL && channel->heard;
}

void um_lbtrm_channel_heard(struct um_lbtrm_channel *channel)
{
    channel->heard = true;
}

struct um_lbtrm_channel *um_lbtrm_channel_get(struct um_udp_receivers *receivers, uint32_t group, uint16_t port)
{
    struct um_lbtrm_channel *channel = find_channel(receivers, group, port);
    if (channel != NULL) {
        return channel;
    }
    channel = um_calloc(1, sizeof *channel);
    if (channel == NULL) {
        um_error_nomem("LBT-RM group", sizeof *channel);
        return NULL;
    }
    struct in_addr addr = {.s_addr = group};
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &addr, text, sizeof text);
    snprintf(channel->name, sizeof channel->name, "%s:%u", text, port);
    channel->owner = receivers;
    channel->group = group;
    channel->port = port;
    um_map_init(&channel->sessions, NULL);
    if (open_socket(channel) != 0) {
        um_free(channel);
        return NULL;
    }
    um_list_push_back(&receivers->channels, &channel->node);
    return channel;
}

int um_lbtrm_channel_set_listener(struct um_lbtrm_channel *channel, struct um_rcv_listener *listener)
{
    if (channel->listener != NULL) {
        return um_error(UM_EINVAL, "Core-9006-17", "%s: this group and port has a listener already", channel->name);
    }
    channel->listener = listener;
    return 0;
}

void um_lbtrm_channel_remove_listener(struct um_udp_receivers *receivers, uint32_t group, uint16_t port,
                                      const struct um_rcv_listener *listener)
{
    struct um_lbtrm_channel *channel = find_channel(receivers, group, port);
    if (channel != NULL && channel->listener == listener) {
        channel->listener = NULL;
        um_lbtrm_channel_release(channel);
    }
}

int um_lbtrm_channel_add(struct um_lbtrm_channel *channel, const struct um_lbtrm_channel_key *key,
                         struct um_udp_rcv_session *session)
{
    return um_map_put(&channel->sessions, key, sizeof *key, session) == 0
               ? 0
               : um_error_nomem("LBT-RM session", sizeof *key);
}

void um_lbtrm_channel_remove(struct um_lbtrm_channel *channel, const struct um_lbtrm_channel_key *key)
{
    um_map_remove(&channel->sessions, key, sizeof *key);
    channel->last = NULL;
}

void um_lbtrm_channel_release(struct um_lbtrm_channel *channel)
{
    if (channel->closed || channel->listener != NULL || um_map_count(&channel->sessions) != 0) {
        return;
    }
    um_list_remove(&channel->node);
    um_udp_unwatch(channel->owner, &channel->sock, &channel->ufd);
    channel->closed = true;
    if (!channel->reading) {
        free_channel(channel);
    }
}

struct um_udp_socket *um_lbtrm_channel_socket(struct um_list *node)
{
    return &UM_CONTAINER_OF(node, struct um_lbtrm_channel, node)->sock;
}

struct um_udp_socket *um_lbtrm_channel_own_socket(struct um_lbtrm_channel *channel)
{
    return &channel->sock;
}
