/* The SRS engine: its beginning and end, connections, timers, statistics. */
#include "resolver/um_srs_engine.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "base/um_mem.h"
#include "resolver/um_srs_private.h"

#define BATCH_BYTES_MIN 1024        /* the longest record fits */
#define STANDSTILL_NS UM_NS_PER_SEC /* a timer that is so late: the process stood still, and clients were not read */
#define PATIENCE_NS (2 * UM_NS_PER_SEC) /* to read what they have said meanwhile */

void um_srs_config_default(struct um_srs_config *config)
{
    *config = (struct um_srs_config){.source_lifetime_ns = 86400 * UM_NS_PER_SEC,
                                     .interest_lifetime_ns = 86400 * UM_NS_PER_SEC,
                                     .leave_backoff_ns = 500 * UM_NS_PER_MS,
                                     .service_interval_ns = 10 * UM_NS_PER_MS,
                                     .batch_records = 100,
                                     .batch_bytes = 65536,
                                     .turn_batches = 128,
                                     .register_ns = 10 * UM_NS_PER_SEC,
                                     .max_connections = UM_SRS_MAX_CONNECTIONS,
                                     .max_address_connections = UM_SRS_MAX_ADDRESS_CONNECTIONS,
                                     .max_unregistered = UM_SRS_MAX_UNREGISTERED,
                                     .max_address_unregistered = UM_SRS_MAX_ADDRESS_UNREGISTERED,
                                     .max_queue = UM_SRS_MAX_QUEUE,
                                     .max_sessions = UM_SRS_MAX_SESSIONS,
                                     .max_address_sessions = UM_SRS_MAX_ADDRESS_SESSIONS,
                                     .max_patterns = UM_SRS_MAX_PATTERNS,
                                     .max_address_patterns = UM_SRS_MAX_ADDRESS_PATTERNS,
                                     .max_session_patterns = UM_SRS_MAX_SESSION_PATTERNS,
                                     .max_leaves = UM_SRS_MAX_LEAVES,
                                     .max_state_bytes = UM_SRS_MAX_STATE_BYTES,
                                     .max_address_bytes = UM_SRS_MAX_ADDRESS_BYTES};
}

struct um_srs_engine *um_srs_engine_create(const struct um_srs_config *config, uint64_t now_ns)
{
    struct um_srs_engine *engine = um_calloc(1, sizeof(*engine));
    if (engine == NULL) {
        return NULL;
    }
    engine->config = *config;
    engine->config.batch_bytes = config->batch_bytes > BATCH_BYTES_MIN ? config->batch_bytes : BATCH_BYTES_MIN;
    engine->config.batch_records = config->batch_records > 0 ? config->batch_records : 1;
    engine->config.turn_batches = config->turn_batches > 0 ? config->turn_batches : 1;
    engine->wheel = um_timer_wheel_create(now_ns);
    engine->batch = um_malloc(engine->config.batch_bytes);
    if (engine->wheel == NULL || engine->batch == NULL) {
        if (engine->wheel != NULL) {
            um_timer_wheel_destroy(engine->wheel);
        }
        um_free(engine->batch);
        um_free(engine);
        return NULL;
    }
    engine->start_ns = engine->now_ns = now_ns;
    engine->stats.next_client_id = 1;
    um_timer_init(&engine->service, srs_on_service);
    um_list_init(&engine->peers);
    um_list_init(&engine->ready);
    um_list_init(&engine->flooded);
    um_list_init(&engine->forwarded);
    um_list_init(&engine->all_patterns);
    return engine;
}

static void free_session(struct um_srs_engine *engine, struct srs_session *session)
{
    struct um_list *first;
    session->address->refs++; /* the last record may free the session, not its address */
    struct srs_address *address = session->address;
    while ((first = um_list_first(&session->inactive_sources)) != NULL) {
        srs_source_end(engine, UM_CONTAINER_OF(first, struct srs_source, of_session));
    }
    while ((first = um_list_first(&session->inactive_wants)) != NULL) {
        srs_want_free(engine, UM_CONTAINER_OF(first, struct srs_want, of_session));
    }
    srs_session_try_free(session);
    srs_address_drop(engine, address);
}

void um_srs_engine_destroy(struct um_srs_engine *engine)
{
    struct um_list *first;
    struct um_table_link *link;
    size_t cursor;
    engine->config.event = NULL;
    while ((first = um_list_first(&engine->peers)) != NULL) {
        srs_peer_free(UM_CONTAINER_OF(first, struct um_srs_peer, all));
    }
    while (cursor = 0, (link = um_table_next(&engine->sessions, &cursor, NULL)) != NULL) {
        free_session(engine, UM_CONTAINER_OF(link, struct srs_session, link));
    }
    um_table_free(&engine->addresses);
    um_table_free(&engine->sessions);
    um_table_free(&engine->sources);
    um_table_free(&engine->topics);
    um_table_free(&engine->interest);
    um_table_free(&engine->subscriptions);
    um_table_free(&engine->patterns);
    um_timer_wheel_destroy(engine->wheel);
    um_free(engine->batch);
    um_free(engine);
}

/* ---- connections --------------------------------------------------------------------- */

static bool has_room(const struct um_srs_engine *engine, const struct srs_address *address)
{
    const struct um_srs_config *config = &engine->config;
    return engine->connections < config->max_connections && engine->unregistered < config->max_unregistered &&
           address->connections < config->max_address_connections &&
           address->unregistered < config->max_address_unregistered;
}

struct um_srs_peer *um_srs_engine_connect(struct um_srs_engine *engine, uint64_t now_ns, void *handle, uint32_t ip,
                                          uint16_t port)
{
    engine->now_ns = now_ns;
    struct srs_address *address = srs_address_take(engine, ip);
    struct um_srs_peer *peer = address != NULL && has_room(engine, address) ? um_calloc(1, sizeof(*peer)) : NULL;
    if (peer == NULL) {
        char name[INET_ADDRSTRLEN];
        engine->stats.refused_connections++;
        um_log_limited(um_log_of_ip(ip), now_ns, UM_LOG_WARNING, "SRS-um-7",
                       "connection of %s:%u refused: too many, of this address or in all",
                       inet_ntop(AF_INET, &ip, name, sizeof(name)), port);
        if (address != NULL) {
            srs_address_drop(engine, address);
        }
        return NULL;
    }
    peer->engine = engine;
    peer->handle = handle;
    peer->address = address;
    peer->port = port;
    um_list_init(&peer->ready);
    um_list_init(&peer->flooded);
    um_list_init(&peer->forwarded);
    um_list_init(&peer->waiting);
    um_list_push_back(&engine->peers, &peer->all);
    um_timer_init(&peer->leave_timer, srs_on_leave_timer);
    srs_peer_watch(peer);
    engine->connections++;
    engine->unregistered++;
    address->connections++;
    address->unregistered++;
    return peer;
}

void um_srs_engine_close_all(struct um_srs_engine *engine, uint64_t now_ns)
{
    struct um_list *first;
    engine->now_ns = now_ns;
    while ((first = um_list_first(&engine->peers)) != NULL) {
        srs_peer_close(UM_CONTAINER_OF(first, struct um_srs_peer, all), UM_RSOCKET_CONNECTION_CLOSE);
    }
}

/* ---- timers and statistics --------------------------------------------------------------- */

uint64_t um_srs_engine_next_timer(const struct um_srs_engine *engine)
{
    return um_timer_next(engine->wheel);
}

void um_srs_engine_on_timer(struct um_srs_engine *engine, uint64_t now_ns)
{
    uint64_t due_ns = um_timer_next(engine->wheel);
    engine->now_ns = now_ns;
    if (due_ns < now_ns && now_ns - due_ns > STANDSTILL_NS) {
        engine->patient_until_ns = now_ns + PATIENCE_NS;
    }
    um_timer_run(engine->wheel, now_ns);
}

const struct um_srs_stats *um_srs_engine_stats(const struct um_srs_engine *engine)
{
    return &engine->stats;
}

uint64_t um_srs_engine_bytes(const struct um_srs_engine *engine)
{
    return engine->bytes;
}

size_t um_srs_engine_topics(const struct um_srs_engine *engine)
{
    return engine->topics.count;
}

struct um_srs_peer *um_srs_engine_next_client(const struct um_srs_engine *engine, const struct um_srs_peer *after)
{
    const struct um_list *it = after != NULL ? after->all.next : engine->peers.next;
    for (; it != &engine->peers; it = it->next) {
        struct um_srs_peer *peer = UM_CONTAINER_OF((struct um_list *)it, struct um_srs_peer, all);
        if (peer->state == SRS_REGISTERED) {
            return peer;
        }
    }
    return NULL;
}

void um_srs_peer_stats(const struct um_srs_peer *peer, struct um_srs_client_stats *out)
{
    *out = peer->stats;
    out->queue_depth = peer->queue.count;
    out->active_sources = peer->session != NULL ? peer->session->source_count : 0;
}

uint64_t um_srs_peer_id(const struct um_srs_peer *peer)
{
    return peer->id;
}

uint32_t um_srs_peer_ip(const struct um_srs_peer *peer)
{
    return peer->address->ip;
}

uint16_t um_srs_peer_port(const struct um_srs_peer *peer)
{
    return peer->port;
}

uint32_t um_srs_peer_session(const struct um_srs_peer *peer)
{
    return peer->session != NULL ? peer->session->id : 0;
}
