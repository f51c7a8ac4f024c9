/* The last record of each source and receiver transport, in a table of fixed size: what is
 * not renewed goes after a time, and the oldest when there is no room. Not thread-safe. */
#ifndef EX_MON_CACHE_H
#define EX_MON_CACHE_H

#include "ex_mon.h"

struct ex_mon_cached {
    int type; /* LBMMON_PACKET_TYPE_SOURCE or _RECEIVER */
    struct ex_mon_about about;
    union {
        lbm_src_transport_stats_t source;
        lbm_rcv_transport_stats_t receiver;
    } stats;
    double seen;                                /* ex_now() */
    struct ex_mon_cached *newer, *older, *next; /* by age; in the same bucket */
};

struct ex_mon_cache;

struct ex_mon_cache *ex_mon_cache_create(size_t most); /* NULL: no memory */
void ex_mon_cache_delete(struct ex_mon_cache *cache);
size_t ex_mon_cache_count(const struct ex_mon_cache *cache);

/* Keeps a copy. Returns 1: it is new, 0: it takes the place of an older one, -1: of another kind, or no memory. */
int ex_mon_cache_put(struct ex_mon_cache *cache, const struct ex_mon_record *record, double now);
/* Removes what has not been renewed since then; how many. */
size_t ex_mon_cache_expire(struct ex_mon_cache *cache, double before);

/* The oldest, then each newer one; NULL at the end. */
const struct ex_mon_cached *ex_mon_cache_next(const struct ex_mon_cache *cache, const struct ex_mon_cached *after);
struct ex_mon_record ex_mon_cache_record(const struct ex_mon_cached *cached);

#endif
