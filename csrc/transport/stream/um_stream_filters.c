/* The filters of a context's TCP connections, put together. See um_stream_filters.h. */
#include "transport/stream/um_stream_filters.h"

#include <stdlib.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_mem.h"
#include "net/um_lz4_stream.h"
#include "net/um_tls.h"

static const struct um_stream_filters *filters_of(const struct um_stream_layer *layer)
{
    return UM_CONTAINER_OF((struct um_stream_layer *)layer, struct um_stream_filters, layer);
}

/* From the wire up. */
static int cover(const struct um_stream_layer *layer, struct um_stream *stream, enum um_stream_role role)
{
    const struct um_stream_filters *filters = filters_of(layer);
    if (filters->tls != NULL && um_tls_cover(filters->tls, stream, role) != 0) {
        return -1;
    }
    return filters->lz4 != NULL ? um_lz4_cover(filters->lz4, stream) : 0;
}

static bool busy(const struct um_stream_layer *layer, uint64_t now_ns)
{
    const struct um_stream_filters *filters = filters_of(layer);
    return filters->tls != NULL && um_tls_busy(filters->tls, now_ns);
}

static struct um_tls *create_tls(const struct um_context_options *opts)
{
    const struct um_tls_config config = {.certificate = opts->tls_certificate,
                                         .key = opts->tls_certificate_key,
                                         .password = opts->tls_certificate_key_password,
                                         .trusted = opts->tls_trusted_certificates,
                                         .suites = opts->tls_cipher_suites,
                                         .peer_names = opts->um_tls_peer_names,
                                         .overrides = getenv("LBM_OPENSSL_CONTEXT_OPTIONS")};
    return um_tls_create(&config);
}

int um_stream_filters_init(struct um_stream_filters *filters, const struct um_context_options *opts)
{
    int timeout_ms = opts->tls_compression_negotiation_timeout;
    *filters = (struct um_stream_filters){.layer = {.cover = cover, .busy = busy}};
    um_stream_settings_of(opts, &filters->settings);
    if (um_stream_settings_plain(&filters->settings)) {
        return 0;
    }
    if (timeout_ms < 1) {
        return um_error(UM_EINVAL, "CoreApi-9565-24", "tls_compression_negotiation_timeout %d: must be 1 or more",
                        timeout_ms);
    }
    filters->layer.timeout_ns = um_ms_ns((uint64_t)timeout_ms);
    bool good = (!filters->settings.encryption || (filters->tls = create_tls(opts)) != NULL) &&
                (!filters->settings.compression || (filters->lz4 = um_lz4_create()) != NULL);
    if (!good) {
        um_stream_filters_clear(filters);
    }
    return good ? 0 : -1;
}

void um_stream_filters_clear(struct um_stream_filters *filters)
{
    um_tls_destroy(filters->tls);
    filters->tls = NULL;
    um_lz4_destroy(filters->lz4);
    filters->lz4 = NULL;
}

const struct um_stream_layer *um_stream_filters_layer(const struct um_stream_filters *filters)
{
    return um_stream_settings_plain(&filters->settings) ? NULL : &filters->layer;
}
