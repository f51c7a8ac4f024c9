/* What the options say about the TCP connections of a context. See um_stream_settings.h. */
#include "config/um_stream_settings.h"

#include "base/um_error.h"

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
