/* Which counters a record has, by kind and transport, in the order of CSV. For the CSV module and for whoever shows
 * records. Any thread. */
#ifndef UM_LBMMON_FIELDS_H
#define UM_LBMMON_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include <lbm/lbmmon.h>

struct um_mon_field {
    const char *name; /* of the member */
    uint16_t offset;  /* in the structure of the counters */
};

struct um_mon_record {
    int transport;    /* LBM_TRANSPORT_STAT_*, of receivers and sources */
    const char *name; /* of the transport or the object */
    const struct um_mon_field *fields;
    size_t count;
};

/* Their fields lie in `transport` of the structures. NULL: no such transport. */
const struct um_mon_record *um_mon_rcv_record(int transport);
const struct um_mon_record *um_mon_src_record(int transport);
extern const struct um_mon_record um_mon_context_record; /* lbm_context_stats_t */
extern const struct um_mon_record um_mon_evq_record;     /* lbm_event_queue_stats_t */

lbm_ulong_t um_mon_field_get(const struct um_mon_field *field, const void *counters);
void um_mon_field_set(const struct um_mon_field *field, void *counters, lbm_ulong_t value);

#endif
