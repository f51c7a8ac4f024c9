/* Sources and source topics. Everything is [loop] except the sends. */
#ifndef UM_CORE_SOURCE_H
#define UM_CORE_SOURCE_H

#include "core/um_context.h"

int um_sources_init(lbm_context_t *ctx);    /* called by core/context.c */
void um_sources_destroy(lbm_context_t *ctx); /* frees topic objects never used; no sources are left by then */

#endif
