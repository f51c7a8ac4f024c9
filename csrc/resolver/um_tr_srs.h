/* Agent of topic resolution over TCP: connections of a context to its resolution
 * servers (SRS), what it tells them and what it hears, put into its cache. Created,
 * used and closed by um_resolver.c on the context's loop. */
#ifndef UM_RESOLVER_TR_SRS_H
#define UM_RESOLVER_TR_SRS_H

#include "config/um_options.h"
#include "net/um_loop.h"
#include "resolver/um_srs_client.h"
#include "resolver/um_tr_engine.h"

struct um_tr_srs;
struct um_srs_item;

/* Connects by and by to every service of resolver_service, which is not empty. NULL + error. */
struct um_tr_srs *um_tr_srs_create(struct um_loop *loop, const struct um_context_options *opts,
                                   const uint8_t ctxinst[8], struct um_tr_engine *engine);
/* Tells what it can of what the services have not been told, and closes the connections. */
void um_tr_srs_close(struct um_tr_srs *srs);
void um_tr_srs_set_host_id(struct um_tr_srs *srs, uint32_t host_id);

/* The services are told of the source; topic resolution of this context, too. NULL + error: also when the source is not
 * bound to an address that others can be told. */
struct um_srs_item *um_tr_srs_add_source(struct um_tr_srs *srs, const struct um_tr_source *source);
void um_tr_srs_remove_source(struct um_tr_srs *srs, struct um_srs_item *item);

/* All connections together; `connected`: how many are registered now. */
void um_tr_srs_get_stats(const struct um_tr_srs *srs, struct um_srs_link_stats *out, unsigned *connected);
void um_tr_srs_reset_stats(struct um_tr_srs *srs);

#endif
