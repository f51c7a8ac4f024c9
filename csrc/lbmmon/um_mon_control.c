/* Control messages, at the process that is monitored: what an operator asks of its source controller. Owns nothing.
 * Called by the sampling thread between samples. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/um_debug.h"
#include "base/um_clock.h"
#include "base/um_mem.h"
#include "base/um_timer.h"
#include "lbmmon/um_mon_error.h"
#include "lbmmon/um_mon_filter.h"
#include "lbmmon/um_mon_pb_module.h"
#include "lbmmon/um_mon_sctl.h"

/* A sample on command costs this process, and its network, all its objects. */
enum { MESSAGES_AT_ONCE = 16, REPLY_MAX = 512, SAMPLES_A_SECOND = 10 };

static bool is_possible(const lbmmon_sctl_t *control)
{
    const lbmmon_transport_func_t *transport = control->transport;
    return transport->mControlMessageReceive != NULL && transport->mControlMessageTarget != NULL &&
           transport->mControlMessageTarget() != NULL;
}

/* A message and what is answered. */
struct command {
    lbmmon_sctl_t *control;
    const Lbmmon__UMMonControlMsg *message;
    struct um_mon_selection selection;
    char reply[REPLY_MAX];
};

/* The objects a node type stands for; 0: none that a library has. */
static unsigned whats_of(Lbmmon__UMMonControlMsg__NodeType type)
{
    switch (type) {
    case LBMMON__UMMON_CONTROL_MSG__NODE_TYPE__ALL_NODES:
        return ~0u;
    case LBMMON__UMMON_CONTROL_MSG__NODE_TYPE__CONTEXT:
        return 1u << UM_MON_CONTEXT;
    case LBMMON__UMMON_CONTROL_MSG__NODE_TYPE__RECEIVER:
        return 1u << UM_MON_RECEIVER;
    case LBMMON__UMMON_CONTROL_MSG__NODE_TYPE__SOURCE:
        return 1u << UM_MON_SOURCE;
    case LBMMON__UMMON_CONTROL_MSG__NODE_TYPE__EVENT_QUEUE:
        return 1u << UM_MON_EVENT_QUEUE;
    case LBMMON__UMMON_CONTROL_MSG__NODE_TYPE__RECEIVER_TOPIC:
        return 1u << UM_MON_TOPIC;
    case LBMMON__UMMON_CONTROL_MSG__NODE_TYPE__WILDCARD_RECEIVER:
        return 1u << UM_MON_PATTERN;
    default:
        return 0;
    }
}

static void reply(struct command *c, const char *text)
{
    snprintf(c->reply, sizeof c->reply, "%s", text);
}

/* Selected entries get the interval; `own`: the one they were given first. */
static void set_intervals(struct command *c, bool own, unsigned seconds)
{
    lbmmon_sctl_t *control = c->control;
    uint64_t now_ns = um_clock_ns();
    struct um_list *node;
    unsigned changed = 0;
    pthread_mutex_lock(&um_mon_lock);
    control->soonest_ns = UINT64_MAX;
    UM_LIST_FOREACH(node, &control->entries)
    {
        struct um_mon_entry *entry = UM_CONTAINER_OF(node, struct um_mon_entry, node);
        if (um_mon_selected(&c->selection, entry)) {
            entry->interval_sec = own ? entry->own_interval_sec : seconds;
            entry->due_ns = entry->interval_sec > 0 ? now_ns + entry->interval_sec * UM_NS_PER_SEC : 0;
            changed++;
        }
        if (entry->due_ns != 0 && entry->due_ns < control->soonest_ns) {
            control->soonest_ns = entry->due_ns;
        }
    }
    pthread_mutex_unlock(&um_mon_lock);
    snprintf(c->reply, sizeof c->reply, "ok: %u objects", changed);
}

/* The whole text is a number of seconds. */
static bool read_seconds(const char *text, unsigned long *out)
{
    char *end;
    errno = 0;
    *out = strtoul(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *out <= UINT32_MAX;
}

static void set_interval(struct command *c)
{
    unsigned long seconds;
    if (read_seconds(c->message->data, &seconds)) {
        set_intervals(c, false, (unsigned)seconds);
    } else {
        snprintf(c->reply, sizeof c->reply, "error: interval \"%.40s\": must be a number of seconds", c->message->data);
    }
}

static bool has_budget(lbmmon_sctl_t *control)
{
    uint64_t second = um_clock_ns() / UM_NS_PER_SEC;
    if (second != control->commanded_second) {
        control->commanded_second = second;
        control->commanded = 0;
    }
    return control->commanded++ < SAMPLES_A_SECOND;
}

static void sample(struct command *c)
{
    if (!has_budget(c->control)) {
        snprintf(c->reply, sizeof c->reply, "error: at most %d samples a second: ask again later", SAMPLES_A_SECOND);
        return;
    }
    pthread_mutex_lock(&um_mon_lock);
    um_mon_sctl_pass(c->control, &c->selection);
    pthread_mutex_unlock(&um_mon_lock);
    reply(c, "ok");
}

static void apply_filter(struct command *c, const char *options)
{
    const lbmmon_format_func_t *format = c->control->format;
    if (format->mApplyOptions == NULL) {
        reply(c, "error: the format of this process has no filters");
    } else if (format->mApplyOptions(c->control->format_data, options) != 0) {
        const char *why = format->mErrorMessage != NULL ? format->mErrorMessage() : NULL;
        snprintf(c->reply, sizeof c->reply, "error: %.400s", why != NULL ? why : "refused by the format");
    } else if (format == lbmmon_format_pb_module()) {
        um_mon_pb_describe_rules(c->control->format_data, c->reply, sizeof c->reply);
    } else {
        reply(c, "ok");
    }
}

/* A wrong rule is one, which the format refuses. Other formats have rules of their own. */
static bool has_rule(const lbmmon_format_func_t *format, const char *text)
{
    if (format != lbmmon_format_pb_module()) {
        return text[strspn(text, " \t\r\n;")] != '\0';
    }
    struct um_mon_rules *rules = um_mon_rules_read(text);
    bool has = rules == NULL || rules->given;
    um_mon_rules_free(rules);
    return has;
}

/* A command without a rule is a mistake, which must not clear those that hold. Filters are the format's, not of
 * objects. */
static void set_filter(struct command *c)
{
    if (!has_rule(c->control->format, c->message->data)) {
        reply(c, "error: SET_FILTER_OPTIONS needs rules as its data");
    } else {
        apply_filter(c, c->message->data);
    }
}

/* The mask of the debug log: who may set it could fill the disk of this process. */
static void set_debug(struct command *c, const char *mask)
{
    const lbmmon_transport_func_t *transport = c->control->transport;
    char *end;
    unsigned long long bits = strtoull(mask, &end, 0);
    if (transport->mAllowDebug == NULL || transport->mAllowDebug(c->control->transport_data) != 1) {
        reply(c, "error: debug commands are not allowed: the process must be started with allow_debug=on");
    } else if (*end != '\0' || mask[0] == '\0') {
        snprintf(c->reply, sizeof c->reply, "error: debug mask \"%.40s\": must be a number", mask);
    } else {
        lbm_debug_mask(bits);
        reply(c, "ok");
    }
}

static void obey(struct command *c)
{
    const char *appid = c->message->application_id;
    c->selection.whats = whats_of(c->message->node_type);
    c->selection.only_appid = appid[0] != '\0' ? appid : NULL;
    if (c->selection.whats == 0) {
        reply(c, "error: this process has no objects of that node type");
        return;
    }
    switch (c->message->command) {
    case LBMMON__UMMON_CONTROL_MSG__COMMAND__SET_INTERVAL:
        set_interval(c);
        break;
    case LBMMON__UMMON_CONTROL_MSG__COMMAND__CLEAR_INTERVAL:
        set_intervals(c, true, 0);
        break;
    case LBMMON__UMMON_CONTROL_MSG__COMMAND__SAMPLE:
    case LBMMON__UMMON_CONTROL_MSG__COMMAND__SNAP:
        sample(c);
        break;
    case LBMMON__UMMON_CONTROL_MSG__COMMAND__SET_FILTER_OPTIONS:
        set_filter(c);
        break;
    case LBMMON__UMMON_CONTROL_MSG__COMMAND__CLEAR_FILTER_OPTIONS:
        apply_filter(c, "");
        break;
    case LBMMON__UMMON_CONTROL_MSG__COMMAND__SET_DEBUG_INFO:
        set_debug(c, c->message->data);
        break;
    case LBMMON__UMMON_CONTROL_MSG__COMMAND__CLEAR_DEBUG_INFO:
        set_debug(c, "0");
        break;
    default:
        reply(c, "error: unknown command");
        break;
    }
}

static void serve_one(lbmmon_sctl_t *control, const char *bytes, size_t len)
{
    struct command c = {.control = control};
    struct um_mon_packet packet;
    Lbmmon__UMMonControlMsg *message = NULL;
    if (um_mon_packet_read(bytes, len, &packet) == 0 && packet.type == LBMMON_PACKET_TYPE_CONTROL_MESSAGE) {
        message = lbmmon__ummon_control_msg__unpack(NULL, packet.data_len, packet.data);
    }
    if (message != NULL) {
        c.message = message;
        obey(&c);
        lbmmon__ummon_control_msg__free_unpacked(message, NULL);
    } else {
        reply(&c, "error: not a control message");
    }
    UM_DEBUG(UM_DEBUG_MONITOR, "source controller %p: a command of %zu bytes was answered: %s", (void *)control, len,
             c.reply);
    if (control->transport->mControlMessageResponse != NULL &&
        control->transport->mControlMessageResponse(c.reply, strlen(c.reply) + 1, control->transport_data) != 0) {
        um_mon_complain(control, "a control message was not answered", control->transport->mErrorMessage);
    }
}

/* A few at a time: between them, what is due is sampled. */
bool um_mon_control_serve(lbmmon_sctl_t *control)
{
    bool possible = is_possible(control);
    for (int i = 0; i < MESSAGES_AT_ONCE && possible; i++) {
        size_t len = UM_MON_PACKET_ROOM; /* the room of a packet: what is read of a message outlives it */
        int rc = control->transport->mControlMessageReceive((char *)control->packet, &len, control->transport_data);
        if (rc < 0) {
            um_mon_complain(control, "a control message was not received", control->transport->mErrorMessage);
        }
        if (rc != 0) {
            break;
        }
        serve_one(control, (const char *)control->packet, len);
    }
    return possible;
}
