/* How many messages a collector dropped of each source that lost some. Names come from the network: the sources that
 * lost something last are remembered, a bounded number of them. Under the collector's lock; called by
 * core/um_collector_drops.c when something is dropped, and by who asks. */
#ifndef UM_CORE_COLLECTOR_TALLY_H
#define UM_CORE_COLLECTOR_TALLY_H

#include <stdint.h>

#include "base/um_list.h"
#include "base/um_map.h"

#define UM_TALLY_SOURCES_MAX 1024u

struct um_tally {
    struct um_map sources; /* name -> struct um_tally_source */
    struct um_list order;  /* the same, the one that lost something last at the end */
};

void um_tally_init(struct um_tally *tally);
void um_tally_clear(struct um_tally *tally);
/* One more message of the source. Without memory for its name it is not counted here. */
void um_tally_add(struct um_tally *tally, const char *source);
uint64_t um_tally_of(const struct um_tally *tally, const char *source);

#endif
