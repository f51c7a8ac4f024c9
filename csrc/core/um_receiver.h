/* Receivers, receiver topics and wildcard receivers; messages as applications
 * see them. Everything is [loop] except message retain/delete. */
#ifndef UM_CORE_RECEIVER_H
#define UM_CORE_RECEIVER_H

#include <lbm/lbm.h>

#include "base/um_buf.h"
#include "core/um_context.h"

/* Called by core/context.c [loop]. */
int um_receivers_init(lbm_context_t *ctx);    /* maps and lists; fills nothing else */
void um_receivers_destroy(lbm_context_t *ctx); /* frees cached receiver topics; no receivers are left by then */
/* The receiver half of the resolver's events. */
void um_receivers_on_source(void *topic_user, const struct um_tr_source *source);
void um_receivers_on_source_gone(void *topic_user, const struct um_tr_source *source);
void um_receivers_on_no_source(void *topic_user);
void um_wildcard_on_pattern_match(void *pattern_user, const char *topic);

#endif
