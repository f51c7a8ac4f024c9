/* Clients of an LBT-RU source session, as events and filters see them. See
 * um_lbtru_peers.h. */
#include "transport/udp/um_lbtru_peers.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/um_random.h"

void um_lbtru_peers_init(struct um_lbtru_peers *peers)
{
    memset(peers, 0, sizeof *peers);
    um_map_init(&peers->by_address, NULL);
    um_list_init(&peers->all);
    um_list_init(&peers->changes);
    um_u32_map_init(&peers->by_idx);
    um_list_init(&peers->ungreeted);
}

static void peer_free(struct um_lbtru_peer *peer)
{
    um_list_remove(&peer->node);
    um_u32_map_clear(&peer->topics);
    um_free(peer);
}

void um_lbtru_peers_free(struct um_lbtru_peers *peers)
{
    while (!um_list_empty(&peers->all)) {
        peer_free(UM_CONTAINER_OF(peers->all.next, struct um_lbtru_peer, node));
    }
    um_map_clear(&peers->by_address);
    um_u32_map_clear(&peers->by_idx);
}

/* Bytes without padding, for the map. */
struct address_key {
    uint8_t bytes[6];
};

static struct address_key key_of(const struct um_lbtru_address *address)
{
    struct address_key key;
    memcpy(key.bytes, &address->ip, 4);
    memcpy(key.bytes + 4, &address->port, 2);
    return key;
}

struct um_lbtru_peer *um_lbtru_peers_find(const struct um_lbtru_peers *peers, const struct um_lbtru_address *address)
{
    struct address_key key = key_of(address);
    return um_map_get(&peers->by_address, key.bytes, sizeof key.bytes);
}

struct um_lbtru_peer *um_lbtru_peers_by_idx(const struct um_lbtru_peers *peers, uint32_t idx)
{
    return um_u32_map_get(&peers->by_idx, idx);
}

/* Both maps, or none. */
static bool enter(struct um_lbtru_peers *peers, struct um_lbtru_peer *peer)
{
    struct address_key key = key_of(&peer->address);
    do {
        peer->idx = um_random_u32_nonzero();
    } while (um_lbtru_peers_by_idx(peers, peer->idx) != NULL);
    if (um_map_put(&peers->by_address, key.bytes, sizeof key.bytes, peer) != 0) {
        return false;
    }
    if (um_u32_map_put(&peers->by_idx, peer->idx, peer) != 0) {
        um_map_remove(&peers->by_address, key.bytes, sizeof key.bytes);
        return false;
    }
    return true;
}

static void change(struct um_lbtru_peers *peers, struct um_lbtru_peer *peer)
{
    if (!peer->changed) {
        peer->changed = true;
        um_list_push_back(&peers->changes, &peer->change_node);
    }
}

bool um_lbtru_peers_add(struct um_lbtru_peers *peers, const struct um_lbtru_address *address)
{
    struct um_lbtru_peer *peer = um_calloc(1, sizeof *peer);
    if (peer != NULL) {
        peer->address = *address;
    }
    if (peer == NULL || !enter(peers, peer)) {
        um_free(peer);
        peers->no_memory++;
        return false;
    }
    char ip[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &address->ip, ip, sizeof ip);
    snprintf(peer->text, sizeof peer->text, "LBT-RU:%s:%u", ip, address->port);
    um_u32_map_init(&peer->topics);
    um_list_push_back(&peers->all, &peer->node);
    um_list_push_back(&peers->ungreeted, &peer->greet_node);
    change(peers, peer);
    return true;
}

void um_lbtru_peers_remove(struct um_lbtru_peers *peers, const struct um_lbtru_address *address, uint64_t silent_ns)
{
    struct address_key key = key_of(address);
    struct um_lbtru_peer *peer = um_map_remove(&peers->by_address, key.bytes, sizeof key.bytes);
    if (peer != NULL) {
        um_u32_map_remove(&peers->by_idx, peer->idx);
        peer->gone = true;
        peer->silent_ns = silent_ns;
        um_list_remove(&peer->greet_node);
        change(peers, peer);
    }
}

struct um_lbtru_peer *um_lbtru_peers_ungreeted(const struct um_lbtru_peers *peers)
{
    struct um_list *first = um_list_first(&peers->ungreeted);
    return first != NULL ? UM_CONTAINER_OF(first, struct um_lbtru_peer, greet_node) : NULL;
}

static void report_to_all(struct um_src_session *session, const struct um_lbtru_peer *peer, bool connected)
{
    struct um_list *it, *tmp;
    UM_LIST_FOREACH_SAFE(it, tmp, &session->streams)
    {
        struct um_src_stream *stream = UM_CONTAINER_OF(it, struct um_src_stream, node);
        if (stream->announce_pending) {
            continue; /* the announcement lists the clients there are then */
        }
        if (connected) {
            stream->events->on_connect(stream, peer->text);
        } else {
            stream->events->on_disconnect(stream, peer->text);
        }
    }
}

static void log_silence(struct um_lbtru_peers *peers, const struct um_src_session *session,
                        const struct um_lbtru_peer *peer)
{
    um_log_limited(um_log_of_ip(peer->address.ip), um_loop_now(session->env->loop), UM_LOG_NOTICE, "Core-9004-6",
                   "%s: disconnected: nothing was heard of this receiver for %llu ms "
                   "(transport_lbtru_client_activity_timeout %lu)",
                   peer->text, (unsigned long long)(peer->silent_ns / UM_NS_PER_MS),
                   session->first.transport_lbtru_client_activity_timeout);
}

void um_lbtru_peers_report(struct um_lbtru_peers *peers, struct um_src_session *session)
{
    for (;;) {
        um_src_session_lock(session);
        struct um_list *first = um_list_first(&peers->changes);
        struct um_lbtru_peer *peer = first != NULL ? UM_CONTAINER_OF(first, struct um_lbtru_peer, change_node) : NULL;
        bool gone = peer != NULL && peer->gone;
        if (peer != NULL) {
            um_list_remove(&peer->change_node);
            peer->changed = false;
        }
        um_src_session_unlock(session);
        if (peer == NULL) {
            return;
        }
        if (!peer->announced && !gone) {
            peer->announced = true;
            report_to_all(session, peer, true);
        } else if (gone) {
            if (peer->silent_ns != 0) {
                log_silence(peers, session, peer);
            }
            if (peer->announced) {
                report_to_all(session, peer, false);
            }
            peer_free(peer);
        }
    }
}

void um_lbtru_peers_announce(struct um_lbtru_peers *peers, struct um_src_stream *stream)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &peers->all)
    {
        struct um_lbtru_peer *peer = UM_CONTAINER_OF(it, struct um_lbtru_peer, node);
        if (peer->announced) {
            stream->events->on_connect(stream, peer->text);
        }
    }
}
