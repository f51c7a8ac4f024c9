/* One sample of one object: what was read of it, and how that becomes records. Belongs to a sampling thread, which uses
 * it again and again. */
#ifndef UM_LBMMON_SAMPLE_H
#define UM_LBMMON_SAMPLE_H

#include "core/um_monitored.h"
#include "lbmmon/um_mon_objects.h"

/* An array that keeps its room. */
struct um_mon_sessions {
    void *stats; /* lbm_rcv_transport_stats_t or lbm_src_transport_stats_t */
    int count, room;
};

struct um_mon_sample {
    void *handle;
    enum um_mon_what what;
    uint64_t object_id;
    char appid[UM_MON_APPID_MAX + 1];
    bool has_facts;
    struct um_monitored_facts facts;
    lbm_context_stats_t context;
    lbm_event_queue_stats_t event_queue;
    lbm_wildcard_rcv_stats_t pattern;
    struct um_monitored_topic topic;
    struct um_mon_sessions sources, receivers, im_sources, im_receivers;
};

/* Reads what handle, what and appid ask for; the object must be in use. 0, or -1 + an error of the messaging calls. */
int um_mon_sample_read(struct um_mon_sample *sample);
/* Gives back what belongs to one sample; `all`: its room, too. */
void um_mon_sample_clear(struct um_mon_sample *sample, bool all);
/* What packets say of the sender. `ip`: where the object has no context. */
void um_mon_sample_attributes(const struct um_mon_sample *sample, uint32_t ip, lbmmon_packet_attributes_t *out);

#endif
