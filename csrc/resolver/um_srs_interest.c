/* Interest of the SRS's clients in topics, and what routers are told about all
 * interest. */
#include "base/um_hash.h"
#include "base/um_intern.h"
#include "base/um_mem.h"
#include "resolver/um_srs_private.h"

#define INTEREST_CHARGE (sizeof(struct srs_interest) + sizeof(struct srs_context))
#define FORWARD_STEP 128

uint32_t srs_want_hash(const void *what, const struct srs_session *session)
{
    const void *key[2] = {what, session};
    return um_hash_bytes(key, sizeof(key));
}

const struct srs_context *srs_context_of(const struct um_lbmsrs_record *record)
{
    struct srs_context context;
    memset(&context, 0, sizeof(context)); /* padding counts */
    context.domain_id = record->domain_id;
    context.version = record->version;
    context.version_flags = record->version_flags;
    context.type = record->context_type;
    memcpy(context.instance, record->context_instance, sizeof(context.instance));
    return um_intern(&context, sizeof(context));
}

struct srs_interest *srs_interest_find(const struct um_srs_engine *engine, const struct srs_topic *topic,
                                       const struct srs_session *session)
{
    struct um_table_link *link = um_table_find(&engine->interest, srs_want_hash(topic, session));
    for (; link != NULL; link = um_table_find_next(link)) {
        struct srs_interest *interest = UM_CONTAINER_OF(link, struct srs_interest, want.link);
        if (interest->topic == topic && interest->want.session == session) {
            return interest;
        }
    }
    return NULL;
}

/* ---- both kinds of wants ------------------------------------------------------------ */

void srs_want_count(struct um_srs_engine *engine, const struct srs_want *want, int active, int inactive)
{
    struct um_srs_stats *stats = &engine->stats;
    uint64_t *is_active = want->is_pattern ? &stats->active_patterns : &stats->active_interest;
    uint64_t *is_inactive = want->is_pattern ? &stats->inactive_patterns : &stats->inactive_interest;
    *is_active += (uint64_t)(int64_t)active;
    *is_inactive += (uint64_t)(int64_t)inactive;
}

void srs_want_begin(struct um_srs_peer *peer, struct srs_want *want)
{
    if (want->state == SRS_INACTIVE) {
        srs_want_count(peer->engine, want, 0, -1);
    }
    srs_want_count(peer->engine, want, 1, 0);
    want->state = SRS_WAITING;
    um_list_remove(&want->of_session);
    um_list_push_back(&peer->session->wants, &want->of_session);
    um_list_push_back(&peer->waiting, &want->waiting);
    srs_peer_ready(peer);
}

static void uncount(struct um_srs_engine *engine, const struct srs_want *want)
{
    if (want->state == SRS_INACTIVE) {
        srs_want_count(engine, want, 0, -1);
    } else if (want->state != SRS_ENDED) {
        srs_want_count(engine, want, -1, 0);
    }
}

void srs_want_free(struct um_srs_engine *engine, struct srs_want *want)
{
    if (want->is_pattern) {
        srs_subscription_free(engine, UM_CONTAINER_OF(want, struct srs_subscription, want));
    } else {
        srs_interest_free(engine, UM_CONTAINER_OF(want, struct srs_interest, want));
    }
}

void srs_interest_free(struct um_srs_engine *engine, struct srs_interest *interest)
{
    struct srs_topic *topic = interest->topic;
    uncount(engine, &interest->want);
    um_list_remove(&interest->want.waiting);
    um_list_remove(&interest->want.of_session);
    um_list_remove(&interest->of_topic);
    um_table_remove(&engine->interest, &interest->want.link);
    um_intern_drop(interest->want.context);
    srs_state_free(engine, interest->want.session->address, interest, INTEREST_CHARGE);
    srs_topic_try_free(engine, topic);
}

/* ---- RIR and RDR ---------------------------------------------------------------------- */

static struct srs_interest *make(struct um_srs_peer *peer, struct srs_topic *topic,
                                 const struct um_lbmsrs_record *record)
{
    struct um_srs_engine *engine = peer->engine;
    const struct srs_context *context = srs_context_of(record);
    struct srs_interest *interest =
        context != NULL ? srs_state_alloc(engine, peer->session->address, sizeof(*interest), INTEREST_CHARGE) : NULL;
    if (interest == NULL ||
        um_table_add(&engine->interest, &interest->want.link, srs_want_hash(topic, peer->session)) != 0) {
        if (interest != NULL) {
            srs_state_free(engine, peer->session->address, interest, INTEREST_CHARGE);
        }
        um_intern_drop(context);
        return NULL;
    }
    interest->topic = topic;
    interest->want.session = peer->session;
    interest->want.context = context;
    um_list_init(&interest->want.of_session);
    um_list_init(&interest->want.waiting);
    um_list_push_back(&topic->interest, &interest->of_topic);
    return interest;
}

void srs_on_rir(struct um_srs_peer *peer, const struct um_lbmsrs_record *record)
{
    struct um_srs_engine *engine = peer->engine;
    struct srs_topic *topic = srs_topic_get(engine, record->topic);
    if (topic == NULL) {
        srs_refused(peer);
        return;
    }
    struct srs_interest *interest = srs_interest_find(engine, topic, peer->session);
    if (interest != NULL && (interest->want.state == SRS_WAITING || interest->want.state == SRS_TOLD)) {
        engine->stats.duplicate_interest++;
        peer->stats.duplicate_rir++;
        return;
    }
    bool is_new = interest == NULL || interest->want.state == SRS_ENDED;
    interest = interest != NULL ? interest : make(peer, topic, record);
    if (interest == NULL) {
        srs_topic_try_free(engine, topic);
        srs_refused(peer);
        return;
    }
    srs_want_begin(peer, &interest->want);
    if (is_new) {
        srs_forward(engine, &interest->want, false);
    }
}

void srs_on_rdr(struct um_srs_peer *peer, const struct um_lbmsrs_record *record)
{
    struct um_srs_engine *engine = peer->engine;
    struct srs_topic *topic = srs_topic_find(engine, record->topic);
    struct srs_interest *interest = topic != NULL ? srs_interest_find(engine, topic, peer->session) : NULL;
    if (interest == NULL || interest->want.state == SRS_ENDED) {
        peer->stats.invalid_messages++;
        return;
    }
    srs_forward(engine, &interest->want, true);
    if (interest->want.state == SRS_TOLD) {
        interest->until = engine->last_number;
    }
    if (interest->until > 0 && !um_list_empty(&topic->sources)) {
        uncount(engine, &interest->want);
        um_list_remove(&interest->want.waiting);
        interest->want.state = SRS_ENDED;
    } else {
        srs_interest_free(engine, interest);
    }
}

/* ---- routers ------------------------------------------------------------------------------ */

static struct srs_note *note_of(struct um_srs_peer *router, const struct srs_want *want, bool end)
{
    struct um_lbmsrs_record record = {.domain_id = want->context->domain_id,
                                      .context_instance = want->context->instance,
                                      .context_type = want->context->type,
                                      .version = want->context->version,
                                      .version_flags = want->context->version_flags};
    if (want->is_pattern) {
        const struct srs_pattern *pattern = UM_CONTAINER_OF(want, struct srs_subscription, want)->pattern;
        record.id = end ? UM_LBMSRS_WER : UM_LBMSRS_WIR;
        record.topic = (struct um_slice){(const uint8_t *)pattern->text, pattern->len};
    } else {
        const struct srs_topic *topic = UM_CONTAINER_OF(want, struct srs_interest, want)->topic;
        record.id = end ? UM_LBMSRS_RER : UM_LBMSRS_RIR;
        record.topic = (struct um_slice){(const uint8_t *)topic->name, topic->len};
    }
    size_t len = um_lbmsrs_len(&record);
    struct srs_note *note = srs_note_alloc(router, len);
    if (note != NULL) {
        um_lbmsrs_put(&record, note->bytes, len);
        note->id = record.id;
    }
    return note;
}

static void forward_to(struct um_srs_peer *router, const struct srs_want *want, bool end)
{
    if (want->session == router->session) {
        return;
    }
    struct srs_note *note = note_of(router, want, end);
    if (note != NULL) {
        srs_push_note(router, note);
    } else {
        router->doomed = true; /* it would not know: it is to begin anew */
        srs_peer_ready(router);
    }
}

void srs_forward(struct um_srs_engine *engine, const struct srs_want *want, bool end)
{
    struct um_list *it;
    UM_LIST_FOREACH(it, &engine->forwarded)
    {
        forward_to(UM_CONTAINER_OF(it, struct um_srs_peer, forwarded), want, end);
    }
}

static bool forward_some(struct um_srs_peer *peer, const struct um_table *table, struct um_table_scan *scan)
{
    struct um_table_link *links[FORWARD_STEP];
    size_t count = um_table_scan(table, scan, links, FORWARD_STEP);
    for (size_t i = 0; i < count; i++) {
        const struct srs_want *want = UM_CONTAINER_OF(links[i], struct srs_want, link);
        if (want->state != SRS_ENDED) {
            forward_to(peer, want, false);
        }
    }
    return scan->done;
}

void srs_forward_list(struct um_srs_peer *peer)
{
    struct um_srs_engine *engine = peer->engine;
    if ((peer->forward_interest.done || forward_some(peer, &engine->interest, &peer->forward_interest)) &&
        forward_some(peer, &engine->subscriptions, &peer->forward_patterns)) {
        peer->forwarding = false;
    }
}
