/* Wildcard interest of the SRS's clients: patterns, compiled once for all who
 * have them, and the topics each of them matches. */
#include "base/um_hash.h"
#include "base/um_intern.h"
#include "base/um_mem.h"
#include "resolver/um_srs_private.h"
#include "resolver/um_tr_cache.h"

#define SUBSCRIPTION_CHARGE (sizeof(struct srs_subscription) + sizeof(struct srs_context))
#define PATTERN_CHARGE (sizeof(struct srs_pattern) + 16384) /* with what the compiled one takes, about */
#define SCAN_STEP 256
#define TOPIC_COST_NS (2 * UM_NS_PER_MS) /* of processor time, for all patterns with one new topic */
#define COSTLY_NS (50 * 1000ull)         /* who takes less with a topic is not dropped */
#define STEP_COST_NS (20 * UM_NS_PER_MS) /* for one pattern with the topics of one step */

/* ---- matches ------------------------------------------------------------------------- */

static bool has_match(const struct srs_topic *topic, const struct srs_pattern *pattern)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &topic->matches)
    {
        if (UM_CONTAINER_OF(it, struct srs_match, of_topic)->pattern == pattern) {
            return true;
        }
    }
    return false;
}

static uint64_t cpu_ns(const struct um_srs_engine *engine)
{
    return engine->config.cpu_ns != NULL ? engine->config.cpu_ns(engine->config.arg) : 0;
}

/* A pattern that runs into a limit does not match. False: no room. */
static bool try_match(struct um_srs_engine *engine, struct srs_topic *topic, struct srs_pattern *pattern)
{
    if (um_pattern_match(pattern->compiled, topic->name, topic->len, NULL) != UM_PATTERN_YES) {
        return true;
    }
    struct srs_match *match = srs_state_alloc(engine, pattern->address, sizeof(*match), sizeof(*match));
    if (match == NULL) {
        return false;
    }
    match->pattern = pattern;
    match->topic = topic;
    um_list_push_back(&topic->matches, &match->of_topic);
    um_list_push_back(&pattern->matches, &match->of_pattern);
    return true;
}

static void free_match(struct um_srs_engine *engine, struct srs_match *match)
{
    um_list_remove(&match->of_topic);
    um_list_remove(&match->of_pattern);
    srs_state_free(engine, match->pattern->address, match, sizeof(*match));
}

void srs_topic_unmatch(struct um_srs_engine *engine, struct srs_topic *topic)
{
    struct um_list *it, *tmp;
    UM_LIST_FOREACH_SAFE(it, tmp, &topic->matches)
    {
        free_match(engine, UM_CONTAINER_OF(it, struct srs_match, of_topic));
    }
}

/* ---- patterns and subscriptions -------------------------------------------------------- */

static struct srs_pattern *find_pattern(const struct um_srs_engine *engine, struct um_slice text)
{
    struct um_table_link *link = um_table_find(&engine->patterns, um_hash_bytes(text.ptr, text.len));
    for (; link != NULL; link = um_table_find_next(link)) {
        struct srs_pattern *pattern = UM_CONTAINER_OF(link, struct srs_pattern, link);
        if (srs_is(text, pattern->text, pattern->len)) {
            return pattern;
        }
    }
    return NULL;
}

static void free_pattern(struct um_srs_engine *engine, struct srs_pattern *pattern)
{
    struct um_list *it, *tmp;
    UM_LIST_FOREACH_SAFE(it, tmp, &pattern->matches)
    {
        free_match(engine, UM_CONTAINER_OF(it, struct srs_match, of_pattern));
    }
    um_list_remove(&pattern->all);
    um_table_remove(&engine->patterns, &pattern->link);
    um_pattern_free(pattern->compiled);
    struct srs_address *address = pattern->address;
    srs_state_free(engine, address, pattern, PATTERN_CHARGE + pattern->len + 1);
    address->patterns--;
    srs_address_drop(engine, address);
}

static struct srs_pattern *make_pattern(struct um_srs_engine *engine, struct srs_address *address, struct um_slice text,
                                        struct um_pattern *compiled)
{
    size_t size = sizeof(struct srs_pattern) + text.len + 1, charge = PATTERN_CHARGE + text.len + 1;
    struct srs_pattern *pattern = srs_state_alloc(engine, address, size, charge);
    if (pattern == NULL || um_table_add(&engine->patterns, &pattern->link, um_hash_bytes(text.ptr, text.len)) != 0) {
        if (pattern != NULL) {
            srs_state_free(engine, address, pattern, charge);
        }
        um_pattern_free(compiled);
        return NULL;
    }
    um_list_init(&pattern->subscriptions);
    um_list_init(&pattern->matches);
    um_list_push_back(&engine->all_patterns, &pattern->all);
    pattern->compiled = compiled;
    pattern->address = address;
    address->refs++;
    address->patterns++;
    pattern->len = (uint8_t)text.len;
    memcpy(pattern->text, text.ptr, text.len);
    return pattern;
}

static void refuse_pattern(struct um_srs_engine *engine, uint32_t ip, struct um_slice text, const char *why)
{
    char shown[256];
    engine->stats.refused_records++;
    um_log_limited(um_log_of_ip(ip), engine->now_ns, UM_LOG_WARNING, "SRS-um-3", "pattern[%s] of a client refused: %s",
                   um_tr_printable((const char *)text.ptr, shown), why);
}

static struct srs_pattern *get_pattern(struct um_srs_peer *peer, struct um_slice text)
{
    struct um_srs_engine *engine = peer->engine;
    struct srs_pattern *pattern = find_pattern(engine, text);
    struct um_pattern_error error;
    if (peer->session->pattern_count >= engine->config.max_session_patterns) {
        refuse_pattern(engine, peer->session->address->ip, text, "its client has as many as are allowed");
        return NULL;
    }
    if (pattern != NULL) {
        return pattern;
    }
    if (engine->patterns.count >= engine->config.max_patterns ||
        peer->address->patterns >= engine->config.max_address_patterns) {
        refuse_pattern(engine, peer->session->address->ip, text,
                       "there are as many different ones as are allowed, of its address or in all");
        srs_refused(peer);
        return NULL;
    }
    struct um_pattern *compiled = um_pattern_compile((const char *)text.ptr, text.len, &error);
    if (compiled == NULL) {
        refuse_pattern(engine, peer->session->address->ip, text, error.text);
        if (error.no_memory) {
            srs_refused(peer);
        }
        return NULL;
    }
    pattern = make_pattern(engine, peer->address, text, compiled);
    if (pattern == NULL) {
        srs_refused(peer);
    }
    return pattern;
}

static struct srs_subscription *find(const struct um_srs_engine *engine, const struct srs_pattern *pattern,
                                     const struct srs_session *session)
{
    struct um_table_link *link = um_table_find(&engine->subscriptions, srs_want_hash(pattern, session));
    for (; link != NULL; link = um_table_find_next(link)) {
        struct srs_subscription *subscription = UM_CONTAINER_OF(link, struct srs_subscription, want.link);
        if (subscription->pattern == pattern && subscription->want.session == session) {
            return subscription;
        }
    }
    return NULL;
}

static struct srs_subscription *make(struct um_srs_peer *peer, struct srs_pattern *pattern,
                                     const struct um_lbmsrs_record *record)
{
    struct um_srs_engine *engine = peer->engine;
    struct srs_session *session = peer->session;
    const struct srs_context *context = srs_context_of(record);
    struct srs_subscription *subscription =
        context != NULL ? srs_state_alloc(engine, session->address, sizeof(*subscription), SUBSCRIPTION_CHARGE) : NULL;
    if (subscription == NULL ||
        um_table_add(&engine->subscriptions, &subscription->want.link, srs_want_hash(pattern, session)) != 0) {
        if (subscription != NULL) {
            srs_state_free(engine, session->address, subscription, SUBSCRIPTION_CHARGE);
        }
        um_intern_drop(context);
        return NULL;
    }
    subscription->pattern = pattern;
    subscription->want.session = session;
    subscription->want.context = context;
    subscription->want.is_pattern = true;
    um_list_init(&subscription->want.of_session);
    um_list_init(&subscription->want.waiting);
    um_list_push_back(&pattern->subscriptions, &subscription->of_pattern);
    session->pattern_count++;
    return subscription;
}

void srs_subscription_free(struct um_srs_engine *engine, struct srs_subscription *subscription)
{
    struct srs_pattern *pattern = subscription->pattern;
    struct srs_session *session = subscription->want.session;
    bool inactive = subscription->want.state == SRS_INACTIVE;
    srs_want_count(engine, &subscription->want, inactive ? 0 : -1, inactive ? -1 : 0);
    session->pattern_count--;
    um_list_remove(&subscription->want.waiting);
    um_list_remove(&subscription->want.of_session);
    um_list_remove(&subscription->of_pattern);
    um_table_remove(&engine->subscriptions, &subscription->want.link);
    um_intern_drop(subscription->want.context);
    srs_state_free(engine, session->address, subscription, SUBSCRIPTION_CHARGE);
    if (um_list_empty(&pattern->subscriptions)) {
        free_pattern(engine, pattern);
    }
}

void srs_on_wir(struct um_srs_peer *peer, const struct um_lbmsrs_record *record)
{
    struct um_srs_engine *engine = peer->engine;
    struct srs_pattern *pattern = find_pattern(engine, record->topic);
    struct srs_subscription *subscription = pattern != NULL ? find(engine, pattern, peer->session) : NULL;
    bool is_new = subscription == NULL;
    if (subscription != NULL && subscription->want.state != SRS_INACTIVE) {
        engine->stats.duplicate_patterns++;
        peer->stats.duplicate_wir++;
        return;
    }
    if (subscription == NULL) {
        pattern = get_pattern(peer, record->topic);
        subscription = pattern != NULL ? make(peer, pattern, record) : NULL;
    }
    if (subscription == NULL && pattern != NULL) {
        srs_refused(peer);
    }
    if (subscription != NULL) {
        subscription->scan = (struct um_table_scan){0};
        subscription->missed = false;
        srs_want_begin(peer, &subscription->want);
        if (is_new) {
            srs_forward(engine, &subscription->want, false);
        }
    } else if (pattern != NULL && um_list_empty(&pattern->subscriptions)) {
        free_pattern(engine, pattern);
    }
}

void srs_on_wdr(struct um_srs_peer *peer, const struct um_lbmsrs_record *record)
{
    struct srs_pattern *pattern = find_pattern(peer->engine, record->topic);
    struct srs_subscription *subscription = pattern != NULL ? find(peer->engine, pattern, peer->session) : NULL;
    if (subscription == NULL) {
        peer->stats.invalid_messages++;
        return;
    }
    srs_forward(peer->engine, &subscription->want, true);
    srs_subscription_free(peer->engine, subscription);
}

/* ---- what matching costs ------------------------------------------------------------------- */

/* Nobody's pattern may keep the others waiting. Its clients come again in a while: it may have been others' fault. */
static void drop_costly(struct um_srs_engine *engine, struct srs_pattern *pattern)
{
    struct um_slice text = {(const uint8_t *)pattern->text, pattern->len};
    refuse_pattern(engine, pattern->address->ip, text, "it takes too long to match");
    bool last = false;
    while (!last) { /* the pattern goes with its last subscription */
        struct um_list *first = um_list_first(&pattern->subscriptions);
        struct srs_subscription *subscription = UM_CONTAINER_OF(first, struct srs_subscription, of_pattern);
        last = first->next == &pattern->subscriptions;
        if (subscription->want.session->peer != NULL) {
            srs_refused(subscription->want.session->peer);
        }
        srs_forward(engine, &subscription->want, true);
        srs_subscription_free(engine, subscription);
    }
}

static void match_or_retry(struct um_srs_engine *engine, struct srs_topic *topic, struct srs_pattern *pattern)
{
    struct um_list *it;
    if (try_match(engine, topic, pattern)) {
        return;
    }
    pattern->complete = false;
    UM_LIST_FOREACH(it, &pattern->subscriptions)
    {
        struct um_srs_peer *peer = UM_CONTAINER_OF(it, struct srs_subscription, of_pattern)->want.session->peer;
        if (peer != NULL) {
            srs_refused(peer);
        }
    }
}

/* All patterns together have a budget for each topic; where they take more, those that are costly are dropped. */
void srs_topic_match_all(struct um_srs_engine *engine, struct srs_topic *topic)
{
    struct um_list *it, *tmp;
    if (topic->matched) {
        return;
    }
    topic->matched = true;
    uint64_t begin = um_list_empty(&engine->all_patterns) ? 0 : cpu_ns(engine), now = begin;
    UM_LIST_FOREACH(it, &engine->all_patterns)
    {
        struct srs_pattern *pattern = UM_CONTAINER_OF(it, struct srs_pattern, all);
        match_or_retry(engine, topic, pattern);
        pattern->cost_ns = cpu_ns(engine) - now;
        now += pattern->cost_ns;
    }
    if (now - begin <= TOPIC_COST_NS) {
        return;
    }
    uint64_t fair = TOPIC_COST_NS / engine->patterns.count;
    UM_LIST_FOREACH_SAFE(it, tmp, &engine->all_patterns)
    {
        struct srs_pattern *pattern = UM_CONTAINER_OF(it, struct srs_pattern, all);
        if (pattern->cost_ns > fair && pattern->cost_ns > COSTLY_NS) {
            drop_costly(engine, pattern);
        }
    }
}

/* ---- listing -------------------------------------------------------------------------------- */

bool srs_covered(const struct um_srs_peer *peer, const struct srs_topic *topic, const struct srs_want *except)
{
    const struct um_srs_engine *engine = peer->engine;
    const struct srs_interest *interest = srs_interest_find(engine, topic, peer->session);
    struct um_list *it;
    if (interest != NULL && &interest->want != except && interest->want.state == SRS_TOLD) {
        return true;
    }
    UM_LIST_FOREACH(it, &topic->matches)
    {
        const struct srs_subscription *subscription =
            find(engine, UM_CONTAINER_OF(it, struct srs_match, of_topic)->pattern, peer->session);
        if (subscription != NULL && &subscription->want != except && subscription->want.state == SRS_TOLD &&
            subscription->scan.done) {
            return true;
        }
    }
    return false;
}

/* While it goes on, changes are queued already: what it meets later is then told twice, never not at all. */
enum srs_listed srs_subscription_list(struct um_srs_peer *peer, struct srs_subscription *subscription)
{
    struct um_srs_engine *engine = peer->engine;
    struct srs_pattern *pattern = subscription->pattern;
    struct um_table_link *links[SCAN_STEP];
    uint64_t begin = cpu_ns(engine);
    subscription->want.state = SRS_TOLD;
    size_t count = um_table_scan(&engine->topics, &subscription->scan, links, SCAN_STEP);
    for (size_t i = 0; i < count; i++) {
        struct srs_topic *topic = UM_CONTAINER_OF(links[i], struct srs_topic, link);
        if (!topic->matched) {
            continue; /* it never had a source */
        }
        bool matches = has_match(topic, pattern);
        if (!matches && !pattern->complete) {
            subscription->missed = !try_match(engine, topic, pattern) || subscription->missed;
            matches = has_match(topic, pattern);
            if (cpu_ns(engine) - begin > STEP_COST_NS) {
                drop_costly(engine, pattern);
                return SRS_GONE;
            }
        }
        if (matches && !um_list_empty(&topic->sources) && !srs_covered(peer, topic, &subscription->want)) {
            srs_push_topic(peer, topic, UINT64_MAX);
        }
    }
    if (subscription->missed) {
        srs_refused(peer);
    } else {
        pattern->complete = pattern->complete || (subscription->scan.done && !subscription->scan.cut);
    }
    return subscription->scan.done ? SRS_DONE : SRS_MORE;
}
