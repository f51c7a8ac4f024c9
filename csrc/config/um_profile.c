/* The profiles as a table. See um_profile.h. */
#include "config/um_profile.h"

#include <string.h>

struct setting {
    enum um_option_scope scope;
    const char *name;
    const char *text;
};

/* Nothing is held back by a rate limit, and a lost datagram is asked for after a tenth of a millisecond. A repeated NAK
 * waits for more than twice the time in which sources ignore it, and half of the interval before that is still more
 * than a round trip on a local network. */
static const struct setting low_latency[] = {
    {UM_SCOPE_CONTEXT, "transport_lbtrm_data_rate_limit", "10000000000"},
    {UM_SCOPE_CONTEXT, "transport_lbtrm_retransmit_rate_limit", "5000000000"},
    {UM_SCOPE_CONTEXT, "transport_lbtru_data_rate_limit", "10000000000"},
    {UM_SCOPE_CONTEXT, "transport_lbtru_retransmit_rate_limit", "5000000000"},
    {UM_SCOPE_CONTEXT, "transport_lbtru_rate_interval", "10"},
    {UM_SCOPE_SOURCE, "transport_lbtrm_ignore_interval", "1"},
    {UM_SCOPE_SOURCE, "transport_lbtru_ignore_interval", "1"},
    {UM_SCOPE_SOURCE, "transport_lbtrm_sm_minimum_interval", "10"},
    {UM_SCOPE_SOURCE, "transport_lbtru_sm_minimum_interval", "10"},
    {UM_SCOPE_RECEIVER, "um_transport_lbtrm_nak_initial_backoff_interval_us", "100"},
    {UM_SCOPE_RECEIVER, "um_transport_lbtrm_nak_backoff_interval_us", "4000"},
    {UM_SCOPE_RECEIVER, "um_transport_lbtrm_nak_suppress_interval_us", "2000"},
    {UM_SCOPE_RECEIVER, "um_transport_lbtru_nak_backoff_interval_us", "4000"},
    {UM_SCOPE_RECEIVER, "um_transport_lbtru_nak_suppress_interval_us", "2000"},
};

static bool has_initial_value(const struct um_attr *attr, const struct um_option *option, const struct um_attr *initial)
{
    return !um_attr_is_modified(attr, option) &&
           memcmp(um_option_const_field(option, attr->options), um_option_const_field(option, initial->options),
                  option->size) == 0;
}

/* Milliseconds that were set by name are not to be overruled by the profile's microseconds. */
static bool milliseconds_set(const struct um_attr *attr, const struct um_option *option, const struct um_attr *initial)
{
    char name[128];
    size_t len = strlen(option->name);
    if (len < 6 || len >= sizeof name || strncmp(option->name, "um_", 3) != 0 ||
        strcmp(option->name + len - 3, "_us") != 0) {
        return false;
    }
    memcpy(name, option->name + 3, len - 6);
    name[len - 6] = '\0';
    const struct um_option *milliseconds = um_option_find(option->scope, name);
    return milliseconds != NULL && !has_initial_value(attr, milliseconds, initial);
}

int um_profile_apply(struct um_attr *attr, enum um_profile profile, const struct um_attr *initial)
{
    if (profile != UM_PROFILE_LOW_LATENCY) {
        return 0;
    }
    for (size_t i = 0; i < sizeof low_latency / sizeof low_latency[0]; i++) {
        const struct setting *setting = &low_latency[i];
        const struct um_option *option = um_option_find(setting->scope, setting->name);
        enum um_option_note note;
        if (setting->scope == attr->scope && has_initial_value(attr, option, initial) &&
            !milliseconds_set(attr, option, initial) &&
            um_attr_assign(attr, option, setting->text, NULL, 0, UM_ORIGIN_XML, &note) != 0) {
            return -1;
        }
    }
    return 0;
}
