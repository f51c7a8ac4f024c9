/* Reads the statistics of an object by the public calls. Owns the arrays of a sample. Sampling threads only. */
#include "lbmmon/um_mon_sample.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/um_error.h"
#include "base/um_mem.h"

/* The calls for arrays of sessions are alike; the number of sessions may grow between two of them. */
typedef int (*retrieve_fn)(void *object, int *num, void *stats);

static int retrieve_all(struct um_mon_sessions *sessions, size_t element, retrieve_fn retrieve, void *object)
{
    for (int tries = 0; tries < 8; tries++) {
        int num = sessions->room;
        if (retrieve(object, &num, sessions->stats) == 0) {
            sessions->count = num;
            return 0;
        }
        if (num <= sessions->room) {
            return -1;
        }
        int room = num + num / 4 + 4;
        void *stats = um_realloc(sessions->stats, (size_t)room * element);
        if (stats == NULL) {
            return um_error_nomem("statistics of transport sessions", (size_t)room * element);
        }
        sessions->stats = stats;
        sessions->room = room;
    }
    return -1;
}

static int context_sources(void *object, int *num, void *stats)
{
    return lbm_context_retrieve_src_transport_stats_ex(object, num, sizeof(lbm_src_transport_stats_t), stats);
}

static int context_receivers(void *object, int *num, void *stats)
{
    return lbm_context_retrieve_rcv_transport_stats_ex(object, num, sizeof(lbm_rcv_transport_stats_t), stats);
}

static int context_im_sources(void *object, int *num, void *stats)
{
    return lbm_context_retrieve_im_src_transport_stats(object, num, sizeof(lbm_src_transport_stats_t), stats);
}

static int context_im_receivers(void *object, int *num, void *stats)
{
    return lbm_context_retrieve_im_rcv_transport_stats(object, num, sizeof(lbm_rcv_transport_stats_t), stats);
}

static int receiver_sessions(void *object, int *num, void *stats)
{
    return lbm_rcv_retrieve_all_transport_stats_ex(object, num, sizeof(lbm_rcv_transport_stats_t), stats);
}

static int read_context(struct um_mon_sample *sample)
{
    const size_t source = sizeof(lbm_src_transport_stats_t), receiver = sizeof(lbm_rcv_transport_stats_t);
    return lbm_context_retrieve_stats(sample->handle, &sample->context) == 0 &&
                   retrieve_all(&sample->sources, source, context_sources, sample->handle) == 0 &&
                   retrieve_all(&sample->receivers, receiver, context_receivers, sample->handle) == 0 &&
                   retrieve_all(&sample->im_sources, source, context_im_sources, sample->handle) == 0 &&
                   retrieve_all(&sample->im_receivers, receiver, context_im_receivers, sample->handle) == 0
               ? 0
               : -1;
}

static int read_source(struct um_mon_sample *sample)
{
    if (sample->sources.room == 0) {
        sample->sources.stats = um_malloc(sizeof(lbm_src_transport_stats_t));
        if (sample->sources.stats == NULL) {
            return um_error_nomem("statistics of a source", sizeof(lbm_src_transport_stats_t));
        }
        sample->sources.room = 1;
    }
    sample->sources.count = 1;
    return lbm_src_retrieve_transport_stats(sample->handle, sample->sources.stats);
}

/* The context of an object; NULL: it has none. */
static lbm_context_t *context_of(const struct um_mon_sample *sample)
{
    switch (sample->what) {
    case UM_MON_CONTEXT:
        return sample->handle;
    case UM_MON_SOURCE:
        return lbm_context_from_src(sample->handle);
    case UM_MON_RECEIVER:
    case UM_MON_TOPIC:
        return lbm_context_from_rcv(sample->handle);
    case UM_MON_PATTERN:
        return lbm_context_from_wildcard_rcv(sample->handle);
    case UM_MON_EVENT_QUEUE:
        break;
    }
    return NULL;
}

static int read_counters(struct um_mon_sample *sample)
{
    switch (sample->what) {
    case UM_MON_CONTEXT:
        return read_context(sample);
    case UM_MON_SOURCE:
        return read_source(sample);
    case UM_MON_RECEIVER:
        return retrieve_all(&sample->receivers, sizeof(lbm_rcv_transport_stats_t), receiver_sessions, sample->handle);
    case UM_MON_EVENT_QUEUE:
        return lbm_event_queue_retrieve_stats(sample->handle, &sample->event_queue);
    case UM_MON_TOPIC:
        return um_monitored_topic(sample->handle, &sample->topic);
    case UM_MON_PATTERN:
        um_monitored_pattern(sample->handle, &sample->pattern);
        break;
    }
    return 0;
}

int um_mon_sample_read(struct um_mon_sample *sample)
{
    lbm_context_t *ctx = context_of(sample);
    sample->has_facts = ctx != NULL && um_monitored_facts(ctx, &sample->facts) == 0;
    return read_counters(sample);
}

void um_mon_sample_clear(struct um_mon_sample *sample, bool all)
{
    struct um_mon_sessions *const arrays[] = {&sample->sources, &sample->receivers, &sample->im_sources,
                                              &sample->im_receivers};
    um_free(sample->topic.sources);
    sample->topic.sources = NULL;
    sample->topic.count = 0;
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        arrays[i]->count = 0;
        if (all) {
            um_free(arrays[i]->stats);
            *arrays[i] = (struct um_mon_sessions){0};
        }
    }
}

void um_mon_sample_attributes(const struct um_mon_sample *sample, uint32_t ip, lbmmon_packet_attributes_t *out)
{
    static const uint8_t none[sizeof sample->facts.instance];
    um_mon_attributes_init(out);
    out->mFlags = UM_MON_HAS(LBMMON_ATTR_SENDER_IPV4) | UM_MON_HAS(LBMMON_ATTR_TIMESTAMP) |
                  UM_MON_HAS(LBMMON_ATTR_APPSOURCEID) | UM_MON_HAS(LBMMON_ATTR_OBJECTID) |
                  UM_MON_HAS(LBMMON_ATTR_PROCESSID);
    out->mAddress = sample->has_facts && sample->facts.ip != 0 ? sample->facts.ip : ip;
    out->mTimestamp = time(NULL);
    snprintf(out->mApplicationSourceID, sizeof out->mApplicationSourceID, "%s", sample->appid);
    out->mObjectID = sample->object_id;
    out->mProcessID = (lbm_uint64_t)getpid();
    if (sample->has_facts && memcmp(sample->facts.instance, none, sizeof none) != 0) {
        memcpy(out->mContextInstance, sample->facts.instance, sizeof out->mContextInstance);
        out->mFlags |= UM_MON_HAS(LBMMON_ATTR_CTXINST);
    }
    if (sample->has_facts && sample->facts.domain_id != 0) {
        out->mDomainID = sample->facts.domain_id;
        out->mFlags |= UM_MON_HAS(LBMMON_ATTR_DOMAINID);
    }
}
