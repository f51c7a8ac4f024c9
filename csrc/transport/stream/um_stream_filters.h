/* What covers the TCP connections of a context: encryption first, as the bytes see it from
 * the wire up, compression on top of it. Made and freed with the context, fixed between;
 * any thread covers streams with it. */
#ifndef UM_TRANSPORT_STREAM_FILTERS_H
#define UM_TRANSPORT_STREAM_FILTERS_H

#include "config/um_stream_settings.h"
#include "net/um_stream.h"

struct um_tls;
struct um_lz4;

struct um_stream_filters {
    struct um_stream_layer layer;
    struct um_stream_settings settings;
    struct um_tls *tls; /* NULL: no encryption */
    struct um_lz4 *lz4; /* NULL: no compression */
};

/* Reads certificates and finds the libraries that are needed. 0, or -1 + error: then there is nothing to clear. */
int um_stream_filters_init(struct um_stream_filters *filters, const struct um_context_options *opts);
void um_stream_filters_clear(struct um_stream_filters *filters); /* no stream is covered any more; zeroed: no effect */
/* NULL: plain TCP. */
const struct um_stream_layer *um_stream_filters_layer(const struct um_stream_filters *filters);

#endif
