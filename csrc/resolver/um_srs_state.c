/* State of the SRS: memory and its bounds, addresses, topics, sessions, and the
 * expiry of what clients left behind. */
#include "base/um_hash.h"
#include "base/um_intern.h"
#include "base/um_mem.h"
#include "resolver/um_srs_private.h"

#define EXPIRED_IN_A_TURN 2000
#define LINES_A_SECOND 100

/* ---- memory ------------------------------------------------------------------ */

void *srs_state_alloc(struct um_srs_engine *engine, struct srs_address *address, size_t size, size_t charge)
{
    const struct um_srs_config *config = &engine->config;
    bool room = engine->bytes + charge <= config->max_state_bytes &&
                (address == NULL || address->bytes + charge <= config->max_address_bytes);
    void *ptr = room ? um_calloc(1, size) : NULL;
    if (ptr == NULL) {
        engine->stats.refused_records++;
        um_log_limited(address != NULL ? um_log_of_ip(address->ip) : um_log_of_all(), engine->now_ns, UM_LOG_ERR,
                       "SRS-um-1", "state refused to a client: %s",
                       room ? "out of memory" : "its address or all have their bound");
        return NULL;
    }
    engine->bytes += charge;
    if (address != NULL) {
        address->bytes += charge;
    }
    return ptr;
}

void srs_state_free(struct um_srs_engine *engine, struct srs_address *address, void *ptr, size_t charge)
{
    engine->bytes -= charge;
    if (address != NULL) {
        address->bytes -= charge;
    }
    um_free(ptr);
}

bool srs_is(struct um_slice text, const char *name, size_t len)
{
    return text.len == len && memcmp(text.ptr, name, len) == 0;
}

uint32_t srs_tick(const struct um_srs_engine *engine)
{
    return (uint32_t)((engine->now_ns - engine->start_ns) / SRS_TICK_NS) & SRS_TICK_MASK;
}

bool srs_may_log(struct um_srs_engine *engine)
{
    uint64_t second = engine->now_ns / UM_NS_PER_SEC;
    if (engine->lines_second != second) {
        engine->lines_second = second;
        engine->lines = 0;
    }
    if (engine->lines >= LINES_A_SECOND) {
        engine->stats.held_back_lines++;
        return false;
    }
    engine->lines++;
    return true;
}

/* ---- addresses ---------------------------------------------------------------- */

struct srs_address *srs_address_take(struct um_srs_engine *engine, uint32_t ip)
{
    uint32_t hash = um_hash_u32(ip);
    struct srs_address *address;
    for (struct um_table_link *link = um_table_find(&engine->addresses, hash); link != NULL;
         link = um_table_find_next(link)) {
        address = UM_CONTAINER_OF(link, struct srs_address, link);
        if (address->ip == ip) {
            address->refs++;
            return address;
        }
    }
    address = um_calloc(1, sizeof(*address));
    if (address == NULL || um_table_add(&engine->addresses, &address->link, hash) != 0) {
        um_free(address);
        return NULL;
    }
    address->ip = ip;
    address->refs = 1;
    return address;
}

void srs_address_drop(struct um_srs_engine *engine, struct srs_address *address)
{
    if (--address->refs == 0) {
        um_table_remove(&engine->addresses, &address->link);
        um_free(address);
    }
}

/* ---- topics --------------------------------------------------------------------- */

struct srs_topic *srs_topic_find(const struct um_srs_engine *engine, struct um_slice name)
{
    struct um_table_link *link = um_table_find(&engine->topics, um_hash_bytes(name.ptr, name.len));
    for (; link != NULL; link = um_table_find_next(link)) {
        struct srs_topic *topic = UM_CONTAINER_OF(link, struct srs_topic, link);
        if (srs_is(name, topic->name, topic->len)) {
            return topic;
        }
    }
    return NULL;
}

struct srs_topic *srs_topic_get(struct um_srs_engine *engine, struct um_slice name)
{
    struct srs_topic *topic = srs_topic_find(engine, name);
    if (topic != NULL) {
        return topic;
    }
    size_t size = sizeof(*topic) + name.len + 1;
    topic = srs_state_alloc(engine, NULL, size, size);
    if (topic == NULL) {
        return NULL;
    }
    um_list_init(&topic->sources);
    um_list_init(&topic->interest);
    um_list_init(&topic->matches);
    topic->len = (uint8_t)name.len;
    memcpy(topic->name, name.ptr, name.len);
    if (um_table_add(&engine->topics, &topic->link, um_hash_bytes(name.ptr, name.len)) != 0) {
        srs_state_free(engine, NULL, topic, size);
        return NULL;
    }
    return topic;
}

/* Who has deleted its interest need be told of no end any more once all sources have ended. Each of these interests
 * asks for the topic to be freed, too: the hold keeps it until the last of them has gone. */
static void free_ended_interest(struct um_srs_engine *engine, struct srs_topic *topic)
{
    struct um_list *it, *tmp;
    topic->holds++;
    UM_LIST_FOREACH_SAFE(it, tmp, &topic->interest)
    {
        struct srs_interest *interest = UM_CONTAINER_OF(it, struct srs_interest, of_topic);
        if (interest->want.state == SRS_ENDED) {
            srs_interest_free(engine, interest);
        }
    }
    topic->holds--;
}

void srs_topic_try_free(struct um_srs_engine *engine, struct srs_topic *topic)
{
    if (!um_list_empty(&topic->sources) || topic->holds > 0) {
        return;
    }
    free_ended_interest(engine, topic);
    if (!um_list_empty(&topic->interest)) {
        return;
    }
    srs_topic_unmatch(engine, topic);
    um_table_remove(&engine->topics, &topic->link);
    srs_state_free(engine, NULL, topic, sizeof(*topic) + topic->len + 1);
}

/* ---- sessions --------------------------------------------------------------------- */

/* When the tick was that a record remembers, of which it has the low bits: they come again after 3.4 years, records do
 * not stay as long. */
static uint64_t tick_time(const struct um_srs_engine *engine, uint32_t tick)
{
    uint64_t now = (engine->now_ns - engine->start_ns) / SRS_TICK_NS;
    uint64_t ago = (now - tick) & SRS_TICK_MASK;
    return engine->start_ns + (now - ago) * SRS_TICK_NS;
}

/* Due one tick later than the lifetime says: never too early. */
static uint64_t source_due(const struct srs_session *session)
{
    struct um_list *first = um_list_first(&session->inactive_sources);
    uint64_t lifetime = session->engine->config.source_lifetime_ns;
    return first == NULL || lifetime == 0
               ? UM_NEVER
               : tick_time(session->engine, UM_CONTAINER_OF(first, struct srs_source, of_session)->away_tick) +
                     SRS_TICK_NS + lifetime;
}

static uint64_t want_due(const struct srs_session *session)
{
    struct um_list *first = um_list_first(&session->inactive_wants);
    uint64_t lifetime = session->engine->config.interest_lifetime_ns;
    return first == NULL || lifetime == 0
               ? UM_NEVER
               : tick_time(session->engine, UM_CONTAINER_OF(first, struct srs_want, of_session)->away_tick) +
                     SRS_TICK_NS + lifetime;
}

static void expire_source(struct srs_session *session)
{
    struct um_list *first = um_list_first(&session->inactive_sources);
    session->engine->stats.expired_sources++;
    srs_source_end(session->engine, UM_CONTAINER_OF(first, struct srs_source, of_session));
}

static void expire_want(struct srs_session *session)
{
    struct um_srs_engine *engine = session->engine;
    struct srs_want *want = UM_CONTAINER_OF(um_list_first(&session->inactive_wants), struct srs_want, of_session);
    if (want->is_pattern) {
        engine->stats.expired_patterns++;
    } else {
        engine->stats.expired_interest++;
    }
    srs_forward(engine, want, true);
    srs_want_free(engine, want);
}

static void arm_expiry(struct srs_session *session)
{
    uint64_t sources = source_due(session), wants = want_due(session);
    uint64_t due = sources < wants ? sources : wants;
    if (due == UM_NEVER) {
        um_timer_cancel(session->engine->wheel, &session->expiry);
    } else {
        um_timer_arm(session->engine->wheel, &session->expiry, due);
    }
}

static void on_expiry(struct um_timer *timer, uint64_t now_ns)
{
    struct srs_session *session = UM_CONTAINER_OF(timer, struct srs_session, expiry);
    for (int i = 0; i < EXPIRED_IN_A_TURN && source_due(session) <= now_ns; i++) {
        expire_source(session);
    }
    for (int i = 0; i < EXPIRED_IN_A_TURN && want_due(session) <= now_ns; i++) {
        expire_want(session);
    }
    arm_expiry(session);
    srs_session_try_free(session);
}

struct srs_session *srs_session_find(const struct um_srs_engine *engine, uint32_t id)
{
    struct um_table_link *link = um_table_find(&engine->sessions, um_hash_u32(id));
    for (; link != NULL; link = um_table_find_next(link)) {
        struct srs_session *session = UM_CONTAINER_OF(link, struct srs_session, link);
        if (session->id == id) {
            return session;
        }
    }
    return NULL;
}

struct srs_session *srs_session_get(struct um_srs_engine *engine, uint32_t id, struct srs_address *address)
{
    struct srs_session *session = srs_session_find(engine, id);
    if (session != NULL) {
        return session;
    }
    if (engine->sessions.count >= engine->config.max_sessions ||
        address->sessions >= engine->config.max_address_sessions) {
        return NULL;
    }
    session = srs_state_alloc(engine, address, sizeof(*session), sizeof(*session));
    if (session == NULL || um_table_add(&engine->sessions, &session->link, um_hash_u32(id)) != 0) {
        if (session != NULL) {
            srs_state_free(engine, address, session, sizeof(*session));
        }
        return NULL;
    }
    session->id = id;
    session->engine = engine;
    session->address = address;
    address->refs++;
    address->sessions++;
    um_list_init(&session->sources);
    um_list_init(&session->inactive_sources);
    um_list_init(&session->wants);
    um_list_init(&session->inactive_wants);
    um_timer_init(&session->expiry, on_expiry);
    return session;
}

void srs_session_try_free(struct srs_session *session)
{
    struct um_srs_engine *engine = session->engine;
    if (session->peer != NULL || !um_list_empty(&session->sources) || !um_list_empty(&session->inactive_sources) ||
        !um_list_empty(&session->wants) || !um_list_empty(&session->inactive_wants)) {
        return;
    }
    struct srs_address *address = session->address;
    um_timer_cancel(engine->wheel, &session->expiry);
    um_table_remove(&engine->sessions, &session->link);
    srs_state_free(engine, address, session, sizeof(*session));
    address->sessions--;
    srs_address_drop(engine, address);
}

static void source_away(struct um_srs_engine *engine, struct srs_source *source)
{
    source->inactive = 1;
    source->away_tick = srs_tick(engine);
    um_list_remove(&source->of_session);
    um_list_push_back(&source->session->inactive_sources, &source->of_session);
    engine->stats.active_sources--;
    engine->stats.inactive_sources++;
}

static void want_away(struct um_srs_engine *engine, struct srs_want *want)
{
    um_list_remove(&want->waiting);
    if (want->state == SRS_ENDED) {
        srs_want_free(engine, want);
        return;
    }
    if (want->state == SRS_TOLD && !want->is_pattern) {
        UM_CONTAINER_OF(want, struct srs_interest, want)->until = engine->last_number;
    }
    want->state = SRS_INACTIVE;
    want->away_tick = srs_tick(engine);
    um_list_remove(&want->of_session);
    um_list_push_back(&want->session->inactive_wants, &want->of_session);
    srs_want_count(engine, want, -1, 1);
}

void srs_session_away(struct srs_session *session)
{
    struct um_srs_engine *engine = session->engine;
    struct um_list *it, *tmp;
    session->peer = NULL;
    UM_LIST_FOREACH_SAFE(it, tmp, &session->sources)
    {
        source_away(engine, UM_CONTAINER_OF(it, struct srs_source, of_session));
    }
    UM_LIST_FOREACH_SAFE(it, tmp, &session->wants)
    {
        want_away(engine, UM_CONTAINER_OF(it, struct srs_want, of_session));
    }
    arm_expiry(session);
    srs_session_try_free(session);
}
