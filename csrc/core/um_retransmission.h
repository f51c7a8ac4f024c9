/* The sources' side of late join and recovery: what each retains, and who answers
 * those who ask for it at the request port of the context. */
#ifndef UM_CORE_RETRANSMISSION_H
#define UM_CORE_RETRANSMISSION_H

#include <stdbool.h>

#include "core/um_source.h"
#include "delivery/um_retransmitter.h"

struct um_retransmissions; /* of a context; [loop] */
struct um_src_retention;   /* of a source: kept under the lock of its session, read on the loop */

/* Creates it with the first source that retains something. */
void um_retransmissions_destroy(struct um_retransmissions *retransmissions); /* no source is left */
/* NULL: nothing so far. [loop] */
struct um_retransmitter_stats um_retransmissions_stats(const struct um_retransmissions *retransmissions);

/* Between the source's attachment to its session and its first message. 0: it retains, and *out is set, or its
 * transport has no late join, and *out is NULL. -1 + error. [loop] */
int um_src_retention_begin(lbm_src_t *src, struct um_src_retention **out);
/* After its detachment. Ends recovery from it. [loop] */
void um_src_retention_end(lbm_src_t *src, struct um_src_retention *retention);

#endif
