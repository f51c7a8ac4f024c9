/* Multicast groups joined by a context: opening and closing, and finding the
 * session of each datagram. Everything runs on the loop. */
#include "transport/udp/um_lbtrm_channel.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "net/um_link_watch.h"
#include "transport/um_local_addr.h"
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
    struct um_lbtrm_rcv *last; /* of last_key; NULL: unknown */
    bool reading;              /* a read pass is on the stack: it frees the channel */
    bool closed;
    char name[32]; /* "a.b.c.d:port" */
};

static bool same_key(const struct um_lbtrm_channel_key *a, const struct um_lbtrm_channel_key *b)
{
    return a->session_id == b->session_id && a->ip == b->ip && a->port == b->port;
}

/* ---- finding the session ---- */

static struct um_lbtrm_rcv *find_session(struct um_lbtrm_channel *channel, const struct um_lbtrm_channel_key *key)
{
    if (channel->last != NULL && same_key(&channel->last_key, key)) {
        return channel->last;
    }
    struct um_lbtrm_rcv *session = um_map_get(&channel->sessions, key, sizeof *key);
    if (session != NULL) {
        channel->last_key = *key;
        channel->last = session;
    }
    return session;
}

/* The session that a broken packet is put down to: the only one there is, or the only one of that sender. */
struct suspect {
    uint32_t ip;
    struct um_lbtrm_rcv *session;
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
        um_lbtrm_rcv_malformed(suspect.session, rc);
    } else {
        receivers->counts.lbtrm_unknown++;
        um_udp_tell_unknown(receivers, channel->name);
    }
}

static void on_datagram(void *user, uint64_t now_ns)
{
    struct um_lbtrm_channel *channel = user;
    struct um_udp_receivers *receivers = channel->owner;
    const struct um_udp_datagram *datagram = &receivers->datagram;
    struct um_lbtrm_session header;
    struct um_lbtrm_rcv *session = NULL;
    if (!channel->closed && um_lbtrm_peek(datagram->data, datagram->len, &header)) {
        struct um_lbtrm_channel_key key = {
            .ip = datagram->from_ip, .port = header.ucast_port, .session_id = header.session_id};
        session = find_session(channel, &key);
    }
    if (__builtin_expect(session != NULL && !datagram->oversized, 1)) {
        um_lbtrm_rcv_datagram(session, now_ns);
    } else if (session != NULL) {
        um_lbtrm_rcv_malformed(session, UM_LBTR_SIZE);
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
    const struct um_context_options *opts = receivers->env->opts;
    struct in_addr group = {.s_addr = channel->group};
    struct um_iface iface;
    struct um_udp_config config = {
        .datagram_max = um_udp_receive_size(opts->transport_lbtrm_receiver_datagram_max_size,
                                            opts->transport_lbtrm_datagram_max_size),
        .socket_buffer = opts->transport_lbtrm_receiver_socket_buffer,
        .socket_buffer_option = "transport_lbtrm_receiver_socket_buffer",
        .socket_buffer_log = "Core-5688-3274",
        .timestamps = opts->transport_lbtrm_receiver_timestamp != 0,
    };
    if (um_multicast_iface(opts, &iface) != 0 || um_udp_receivers_open_reader(receivers) != 0 ||
        um_udp_open_group(receivers->reader, &channel->sock, &config, group, channel->port, &iface, false) != 0) {
        return -1;
    }
    um_fd_init(&channel->ufd, channel->sock.fd, on_readable);
    channel->ufd.arrivals = &channel->sock.packets;
    if (um_loop_add_fd(receivers->env->loop, &channel->ufd, UM_FD_READ) != 0) {
        um_udp_close(&channel->sock);
        return -1;
    }
    um_link_watch_add(&receivers->env->links, receivers->env->loop, iface.addr.s_addr);
    return 0;
}

struct um_lbtrm_channel *um_lbtrm_channel_get(struct um_udp_receivers *receivers, uint32_t group, uint16_t port)
{
    struct um_list *node;
    UM_LIST_FOREACH(node, &receivers->channels)
    {
        struct um_lbtrm_channel *channel = UM_CONTAINER_OF(node, struct um_lbtrm_channel, node);
        if (channel->group == group && channel->port == port) {
            return channel;
        }
    }
    struct um_lbtrm_channel *channel = um_calloc(1, sizeof *channel);
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

int um_lbtrm_channel_add(struct um_lbtrm_channel *channel, const struct um_lbtrm_channel_key *key,
                         struct um_lbtrm_rcv *session)
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
    if (channel->closed || um_map_count(&channel->sessions) != 0) {
        return;
    }
    um_udp_bank_socket(channel->owner, &channel->sock);
    um_list_remove(&channel->node);
    um_loop_remove_fd(channel->owner->env->loop, &channel->ufd);
    um_udp_close(&channel->sock);
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
