/* The option string of the transport module `lbm`, and the configuration of the contexts that carry records. Owns the
 * attributes until they are cleared. Called when an end of the module begins, on any thread. */
#include <string.h>

#include <lbm/lbmaux.h>

#include "core/um_monitored.h"
#include "lbmmon/um_mon_error.h"
#include "lbmmon/um_mon_lbm.h"
#include "lbmmon/um_mon_options.h"

static int fail_lbm(const char *what)
{
    return um_mon_module_error(UM_MON_LBM, "%s: %s", what, lbm_errmsg());
}

/* What suits such a context, unless it is configured otherwise: no multicast immediate messages, no port for requests;
 * a reader that has stopped does not hold up the others. */
static int set_defaults(const struct um_mon_lbm_options *options)
{
    return lbm_context_attr_str_setopt(options->context, "mim_incoming_address", "0.0.0.0") == 0 &&
                   lbm_context_attr_str_setopt(options->context, "request_tcp_bind_request_port", "0") == 0 &&
                   lbm_src_topic_attr_str_setopt(options->source, "transport_tcp_multiple_receiver_behavior",
                                                 "bounded_latency") == 0
               ? 0
               : fail_lbm("options");
}

/* It has a thread of its own, and is not monitored itself. */
static int set_fixed(const struct um_mon_lbm_options *options)
{
    return lbm_context_attr_str_setopt(options->context, "operational_mode", "embedded") == 0 &&
                   lbm_context_attr_str_setopt(options->context, "monitor_interval", "0") == 0 &&
                   lbm_rcv_topic_attr_str_setopt(options->receiver, "monitor_interval", "0") == 0 &&
                   lbm_wildcard_rcv_attr_str_setopt(options->wildcard, "monitor_interval", "0") == 0
               ? 0
               : fail_lbm("options");
}

/* An XML configuration may have the context under either name; the usual one wins. */
static int apply_xml(const struct um_mon_lbm_options *options)
{
    bool other = lbm_context_attr_set_from_xml(options->context, "infa_statistics_context") == 0;
    bool usual = lbm_context_attr_set_from_xml(options->context, UM_MONITORING_CONTEXT_NAME) == 0;
    if (!other && !usual) {
        return fail_lbm("the context for monitoring");
    }
    return usual || lbm_context_attr_str_setopt(options->context, "context_name", "infa_statistics_context") == 0
               ? 0
               : fail_lbm("context_name");
}

static int apply_file(const struct um_mon_lbm_options *options, const char *file)
{
    return lbmaux_context_attr_setopt_from_file(options->context, file) == 0 &&
                   lbmaux_src_topic_attr_setopt_from_file(options->source, file) == 0 &&
                   lbmaux_rcv_topic_attr_setopt_from_file(options->receiver, file) == 0 &&
                   lbmaux_wildcard_rcv_attr_setopt_from_file(options->wildcard, file) == 0
               ? 0
               : fail_lbm("config");
}

/* `scope|option`; other names are those of other modules. */
static int apply_scoped(const struct um_mon_lbm_options *options, char *name, const char *value)
{
    char *bar = strchr(name, '|');
    int rc = 0;
    if (bar == NULL) {
        return 0;
    }
    *bar = '\0';
    if (strcmp(name, "context") == 0) {
        rc = lbm_context_attr_str_setopt(options->context, bar + 1, value);
    } else if (strcmp(name, "source") == 0) {
        rc = lbm_src_topic_attr_str_setopt(options->source, bar + 1, value);
    } else if (strcmp(name, "receiver") == 0) {
        rc = lbm_rcv_topic_attr_str_setopt(options->receiver, bar + 1, value);
    } else if (strcmp(name, "wildcard_receiver") == 0) {
        rc = lbm_wildcard_rcv_attr_str_setopt(options->wildcard, bar + 1, value);
    } else {
        return um_mon_module_error(UM_MON_LBM,
                                   "scope \"%.60s\": must be context, source, receiver or wildcard_receiver", name);
    }
    return rc == 0 ? 0 : fail_lbm(bar + 1);
}

static int copy_name(char *out, size_t room, const struct um_mon_option *option)
{
    if (strlen(option->value) >= room) {
        return um_mon_module_error(UM_MON_LBM, "%s: must be shorter than %zu characters", option->name, room);
    }
    strcpy(out, option->value);
    return 0;
}

static int apply(struct um_mon_lbm_options *options, struct um_mon_option *option)
{
    if (strcmp(option->name, "topic") == 0) {
        return copy_name(options->topic, sizeof options->topic, option);
    }
    if (strcmp(option->name, "wctopic") == 0) {
        return copy_name(options->pattern, sizeof options->pattern, option);
    }
    if (strcmp(option->name, "allow_debug") == 0) {
        return um_mon_switch(option->value, &options->allow_debug)
                   ? 0
                   : um_mon_module_error(UM_MON_LBM, "allow_debug \"%.40s\": must be on or off", option->value);
    }
    return strcmp(option->name, "config") == 0 ? 0 : apply_scoped(options, option->name, option->value);
}

/* Files first, wherever they stand: what the string says itself is more particular. */
static int apply_all(struct um_mon_lbm_options *options, const char *text)
{
    struct um_mon_option option;
    const char *rest = text;
    while ((rest = um_mon_option_next(rest, &option)) != NULL) {
        if (strcmp(option.name, "config") == 0 && apply_file(options, option.value) != 0) {
            return -1;
        }
    }
    rest = text;
    while ((rest = um_mon_option_next(rest, &option)) != NULL) {
        if (apply(options, &option) != 0) {
            return -1;
        }
    }
    return 0;
}

int um_mon_lbm_options_read(struct um_mon_lbm_options *out, const char *text)
{
    *out = (struct um_mon_lbm_options){.topic = UM_MON_LBM_TOPIC};
    if (lbm_context_attr_create(&out->context) == 0 && lbm_src_topic_attr_create(&out->source) == 0 &&
        lbm_rcv_topic_attr_create(&out->receiver) == 0 && lbm_wildcard_rcv_attr_create(&out->wildcard) == 0) {
        if (set_defaults(out) == 0 && apply_xml(out) == 0 && apply_all(out, text) == 0 && set_fixed(out) == 0) {
            return 0;
        }
    } else {
        fail_lbm("options");
    }
    um_mon_lbm_options_clear(out);
    return -1;
}

void um_mon_lbm_options_clear(struct um_mon_lbm_options *options)
{
    if (options->context != NULL) {
        lbm_context_attr_delete(options->context);
    }
    if (options->source != NULL) {
        lbm_src_topic_attr_delete(options->source);
    }
    if (options->receiver != NULL) {
        lbm_rcv_topic_attr_delete(options->receiver);
    }
    if (options->wildcard != NULL) {
        lbm_wildcard_rcv_attr_delete(options->wildcard);
    }
    memset(options, 0, sizeof *options);
}
