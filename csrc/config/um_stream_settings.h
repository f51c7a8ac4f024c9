/* Whether the TCP connections of a context are encrypted or compressed, as topic resolution, sessions and the filters
 * of streams need to know. Pure functions, any thread. */
#ifndef UM_CONFIG_STREAM_SETTINGS_H
#define UM_CONFIG_STREAM_SETTINGS_H

#include <stdbool.h>

#include "config/um_options.h"

/* Contexts understand each other only where these are equal. */
struct um_stream_settings {
    bool encryption;  /* use_tls */
    bool compression; /* of any kind */
};

void um_stream_settings_of(const struct um_context_options *opts, struct um_stream_settings *out);
static inline bool um_stream_settings_plain(const struct um_stream_settings *settings)
{
    return !settings->encryption && !settings->compression;
}
/* Nothing but TCP carries encrypted or compressed messages. `what` is for the text: a source with its name. 0, or
 * -1 + UM_EINVAL. */
int um_stream_settings_allow(const struct um_stream_settings *settings, const char *what, const char *transport);

#endif
