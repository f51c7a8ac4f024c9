/* Sources that ended here although a resolution server (SRS) still lists them: it
 * is told (SLR), and answers with the source if it is there, so that it is joined
 * again. A source that ends again and again is told ever more rarely, but it is
 * always told again. Driven by the timer wheel of the loop, or a test's.
 * Confined to the context's loop. */
#ifndef UM_RESOLVER_SRS_LEAVES_H
#define UM_RESOLVER_SRS_LEAVES_H

#include "base/um_timer.h"
#include "resolver/um_srs_journal.h"

#define UM_SRS_LEAVE_FIRST_NS UM_NS_PER_SEC       /* between the first two leaves of a source */
#define UM_SRS_LEAVE_MOST_NS (30 * UM_NS_PER_SEC) /* doubled each time up to this */
#define UM_SRS_LEAVE_KEPT_NS (60 * UM_NS_PER_SEC) /* after the last one it begins anew */
#define UM_SRS_LEAVES_MAX 65536u                  /* remembered; beyond, the one told longest ago is forgotten */

struct um_srs_leaves;

/* `changed`: the journal has news. */
struct um_srs_leaves *um_srs_leaves_create(struct um_srs_journal *journal, struct um_timer_wheel *wheel,
                                           void (*changed)(void *user), void *user); /* NULL + error */
void um_srs_leaves_destroy(struct um_srs_leaves *leaves);
/* This reader of the journal is to be told. */
void um_srs_leaves_ended(struct um_srs_leaves *leaves, uint64_t now_ns, const struct um_tr_source *source,
                         unsigned reader);
size_t um_srs_leaves_count(const struct um_srs_leaves *leaves);

#endif
