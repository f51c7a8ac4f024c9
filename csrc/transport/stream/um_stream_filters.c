/* The filters of a context's TCP connections, put together. See um_stream_filters.h. */
#include "transport/stream/um_stream_filters.h"

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_mem.h"

void um_stream_settings_of(const struct um_context_options *opts, struct um_stream_settings *out)
{
    out->encryption = opts->use_tls != 0;
    out->compression = opts->compression != LBM_CTX_ATTR_COMPRESSION_NONE;
}

int um_stream_settings_allow(const struct um_stream_settings *settings, const char *what, const char *transport)
{
    if (settings->encryption) {
        return um_error(UM_EINVAL, "CoreApi-9565-11",
                        "%s: transport %s is not encrypted, and its context has use_tls 1; use transport tcp", what,
                        transport);
    }
    if (settings->compression) {
        return um_error(UM_EINVAL, "CoreApi-9727-01",
                        "%s: transport %s is not compressed, and its context has compression set; use transport tcp",
                        what, transport);
    }
    return 0;
}

/* From the wire up. */
static int cover(const struct um_stream_layer *layer, struct um_stream *stream, enum um_stream_role role)
{
    return 0;
}

int um_stream_filters_init(struct um_stream_filters *filters, const struct um_context_options *opts)
{
    *filters = (struct um_stream_filters){.layer = {.cover = cover}};
    um_stream_settings_of(opts, &filters->settings);
    filters->layer.timeout_ns = um_ms_ns((lbm_ulong_t)opts->tls_compression_negotiation_timeout);
    return 0;
}

void um_stream_filters_clear(struct um_stream_filters *filters)
{
}

const struct um_stream_layer *um_stream_filters_layer(const struct um_stream_filters *filters)
{
    return um_stream_settings_plain(&filters->settings) ? NULL : &filters->layer;
}
