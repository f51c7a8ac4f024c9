/* lbmmon_rctl_*: receive controllers and their callbacks. Owns a controller from its creation to its end. Any thread;
 * callbacks run on the controller's receive thread. */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include <lbm/um.h>

#include "api/um_sized.h"
#include "base/um_debug.h"
#include "base/um_clock.h"
#include "base/um_fork.h"
#include "base/um_mem.h"
#include "base/um_thread.h"
#include "base/um_timer.h"
#include "lbmmon/um_mon_error.h"
#include "lbmmon/um_mon_lbm.h"
#include "lbmmon/um_mon_options.h"
#include "lbmmon/um_mon_rctl.h"
#include "net/um_loop.h"

enum { RECEIVE_MS = 100 }; /* that the thread may take to notice that it is to end */

/* ---- attributes ---- */

int lbmmon_rctl_attr_create(lbmmon_rctl_attr_t **Attributes)
{
    if (Attributes == NULL) {
        return um_mon_error(LBMMON_EINVAL, "lbmmon_rctl_attr_create: Attributes: must not be NULL");
    }
    lbmmon_rctl_attr_t *attributes = um_calloc(1, sizeof *attributes);
    if (attributes == NULL) {
        return um_mon_error_nomem("lbmmon_rctl_attr_create", sizeof *attributes);
    }
    *Attributes = attributes;
    return 0;
}

int lbmmon_rctl_attr_delete(lbmmon_rctl_attr_t *Attributes)
{
    if (Attributes == NULL) {
        return um_mon_error(LBMMON_EINVAL, "lbmmon_rctl_attr_delete: Attributes: must not be NULL");
    }
    um_free(Attributes);
    return 0;
}

/* Every option is a structure of one callback. NULL: there is no such option. */
static void *option_of(lbmmon_rctl_attr_t *attributes, int option)
{
    switch (option) {
    case LBMMON_RCTL_RECEIVER_CALLBACK:
        return &attributes->receiver;
    case LBMMON_RCTL_SOURCE_CALLBACK:
        return &attributes->source;
    case LBMMON_RCTL_EVENT_QUEUE_CALLBACK:
        return &attributes->event_queue;
    case LBMMON_RCTL_CONTEXT_CALLBACK:
        return &attributes->context;
    case LBMMON_RCTL_RECEIVER_TOPIC_CALLBACK:
        return &attributes->topic;
    case LBMMON_RCTL_WILDCARD_RECEIVER_CALLBACK:
        return &attributes->wildcard;
    case LBMMON_RCTL_UMESTORE_CALLBACK:
        return &attributes->store;
    case LBMMON_RCTL_GATEWAY_CALLBACK:
        return &attributes->gateway;
    case LBMMON_RCTL_PASSTHROUGH_CALLBACK:
        return &attributes->passthrough;
    default:
        return NULL;
    }
}

enum { OPTION_SIZE = sizeof(lbmmon_rcv_statistics_func_t) };

static void *check_option(lbmmon_rctl_attr_t *attributes, int option, const void *value, size_t len, const char *api)
{
    if (attributes == NULL || value == NULL) {
        um_mon_error(LBMMON_EINVAL, "%s: %s: must not be NULL", api, attributes == NULL ? "Attributes" : "Value");
        return NULL;
    }
    void *field = option_of(attributes, option);
    if (field == NULL) {
        um_mon_error(LBMMON_EINVAL, "%s: Option %d: must be one of LBMMON_RCTL_*_CALLBACK", api, option);
        return NULL;
    }
    if (len < OPTION_SIZE) {
        um_mon_error(LBMMON_EINVAL, "%s: Length %zu: must be %d", api, len, OPTION_SIZE);
        return NULL;
    }
    return field;
}

int lbmmon_rctl_attr_setopt(lbmmon_rctl_attr_t *Attributes, int Option, void *Value, size_t Length)
{
    void *field = check_option(Attributes, Option, Value, Length, "lbmmon_rctl_attr_setopt");
    if (field == NULL) {
        return -1;
    }
    memcpy(field, Value, OPTION_SIZE);
    return 0;
}

int lbmmon_rctl_attr_getopt(lbmmon_rctl_attr_t *Attributes, int Option, void *Value, size_t *Length)
{
    const char *api = "lbmmon_rctl_attr_getopt";
    if (Length == NULL) {
        return um_mon_error(LBMMON_EINVAL, "%s: Length: must not be NULL", api);
    }
    const void *field = check_option(Attributes, Option, Value, *Length, api);
    if (field == NULL) {
        return -1;
    }
    memcpy(Value, field, OPTION_SIZE);
    *Length = OPTION_SIZE;
    return 0;
}

/* ---- the receive thread ---- */

static void *thread_main(void *arg)
{
    lbmmon_rctl_t *control = arg;
    pthread_setname_np(pthread_self(), "um:monitored");
    while (!atomic_load(&control->stop)) {
        size_t len = UM_MON_PACKET_MAX;
        int rc = control->transport->mReceive(control->packet, &len, RECEIVE_MS, control->transport_data);
        if (rc == 0) {
            um_mon_deliver(control, control->packet, len);
        } else if (rc < 0) {
            const char *why = control->transport->mErrorMessage != NULL ? control->transport->mErrorMessage() : NULL;
            atomic_fetch_add(&control->counts.failures, 1);
            um_log_limited(um_log_of_all(), um_clock_ns(), UM_LOG_WARNING, "OpenUM-9060-7",
                           "monitoring: a packet was not received: %s", why != NULL ? why : "no reason given");
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
    }
    return NULL;
}

static int start_thread(lbmmon_rctl_t *control)
{
    int rc = um_thread_start(&control->thread, thread_main, control);
    return rc == 0 ? 0 : um_mon_error(LBMMON_EOP, "no thread for receiving: %s", strerror(rc));
}

/* ---- life ---- */

static void control_free(lbmmon_rctl_t *control)
{
    um_free(control->packet);
    um_free(control->converted);
    um_free(control->topics);
    um_free(control->format_opts);
    um_free(control);
}

static void finish_modules(lbmmon_rctl_t *control)
{
    if (control->transport->mFinishReceiver != NULL) {
        control->transport->mFinishReceiver(control->transport_data);
    }
    if (control->other.calls != NULL && control->other.calls->mFinish != NULL) {
        control->other.calls->mFinish(control->other.data);
    }
    if (control->format.calls->mFinish != NULL) {
        control->format.calls->mFinish(control->format.data);
    }
}

static int start_modules(lbmmon_rctl_t *control, const void *format_opts, const void *transport_opts)
{
    const lbmmon_format_func_t *format = control->format.calls;
    const lbmmon_transport_func_t *transport = control->transport;
    if (format->mInit != NULL && format->mInit(&control->format.data, format_opts) != 0) {
        return um_mon_error_module("lbmmon_rctl_create: the format module did not start", format->mErrorMessage);
    }
    if (transport->mInitReceiver != NULL && transport->mInitReceiver(&control->transport_data, transport_opts) != 0) {
        um_mon_error_module("lbmmon_rctl_create: the transport module did not start", transport->mErrorMessage);
        if (format->mFinish != NULL) {
            format->mFinish(control->format.data);
        }
        return -1;
    }
    return 0;
}

/* Options of a built-in format are text; those of an application's may be anything. */
static int note_format_options(lbmmon_rctl_t *control, const void *format_opts)
{
    const lbmmon_format_func_t *format = control->format.calls;
    if (format != lbmmon_format_csv_module() && format != lbmmon_format_pb_module()) {
        return 0;
    }
    struct um_mon_option option;
    const char *rest = format_opts;
    while ((rest = um_mon_option_next(rest, &option)) != NULL) {
        if (strcmp(option.name, "passthrough") == 0) {
            control->passthrough = um_mon_passthrough(option.value);
        }
    }
    control->format_opts = um_strdup(format_opts != NULL ? format_opts : "");
    return control->format_opts != NULL ? 0 : -1;
}

static lbmmon_rctl_t *control_new(const lbmmon_format_func_t *format, const void *format_opts,
                                  const lbmmon_transport_func_t *transport, const lbmmon_rctl_attr_t *attributes,
                                  void *clientd)
{
    um_debug_monitoring();
    lbmmon_rctl_t *control = um_calloc(1, sizeof *control);
    if (control == NULL) {
        um_mon_error_nomem("lbmmon_rctl_create", sizeof *control);
        return NULL;
    }
    control->fork_generation = um_fork_generation();
    control->format.calls = format;
    control->transport = transport;
    control->clientd = clientd;
    control->topic_room = UM_MON_TOPIC_ROOM;
    control->topics = um_malloc(UM_MON_TOPIC_ROOM * sizeof *control->topics);
    control->packet = um_malloc(UM_MON_PACKET_MAX);
    if (attributes != NULL) {
        control->callbacks = *attributes;
    }
    if (control->topics == NULL || control->packet == NULL || note_format_options(control, format_opts) != 0) {
        um_mon_error_nomem("lbmmon_rctl_create", UM_MON_PACKET_MAX);
        control_free(control);
        return NULL;
    }
    return control;
}

int lbmmon_rctl_create(lbmmon_rctl_t **Control, const lbmmon_format_func_t *Format, const void *FormatOptions,
                       const lbmmon_transport_func_t *Transport, const void *TransportOptions,
                       lbmmon_rctl_attr_t *Attributes, void *ClientData)
{
    const char *missing = Control == NULL               ? "Control"
                          : Format == NULL              ? "Format"
                          : Transport == NULL           ? "Transport"
                          : Transport->mReceive == NULL ? "Transport->mReceive"
                                                        : NULL;
    if (missing != NULL) {
        return um_mon_error(LBMMON_EINVAL, "lbmmon_rctl_create: %s: must not be NULL", missing);
    }
    lbmmon_rctl_t *control = control_new(Format, FormatOptions, Transport, Attributes, ClientData);
    if (control == NULL) {
        return -1;
    }
    if (start_modules(control, FormatOptions, TransportOptions) != 0) {
        control_free(control);
        return -1;
    }
    *Control = control; /* before the first callback */
    UM_DEBUG(UM_DEBUG_MONITOR, "receive controller %p begins", (void *)control);
    if (start_thread(control) != 0) {
        *Control = NULL;
        finish_modules(control);
        control_free(control);
        return -1;
    }
    return 0;
}

static int check(const lbmmon_rctl_t *control, const char *api)
{
    if (control == NULL) {
        return um_mon_error(LBMMON_EINVAL, "%s: Control: must not be NULL", api);
    }
    if (control->fork_generation != um_fork_generation()) {
        return um_mon_error(LBMMON_EINVAL,
                            "%s: the controller was inherited through fork; create a new one in the child", api);
    }
    return 0;
}

int lbmmon_rctl_destroy(lbmmon_rctl_t *Control)
{
    if (check(Control, "lbmmon_rctl_destroy") != 0) {
        return -1;
    }
    if (um_loop_in_any() || pthread_equal(Control->thread, pthread_self())) {
        return um_mon_error(LBMMON_EOP,
                            "lbmmon_rctl_destroy: must not be called in a callback of the controller or of a context; "
                            "call it from another thread");
    }
    atomic_store(&Control->stop, true);
    pthread_join(Control->thread, NULL);
    finish_modules(Control);
    control_free(Control);
    return 0;
}

/* ---- counts ---- */

int um_mon_rcv_stats_sized(struct lbmmon_rctl_t_stct *control, um_mon_rcv_stats_t *stats, size_t size)
{
    if (check(control, "um_mon_rcv_stats") != 0 || um_sized_check(stats, size, "um_mon_rcv_stats") != 0) {
        return -1;
    }
    bool is_lbm = control->transport->mReceive == lbmmon_transport_lbm_receive ||
                  control->transport->mReceive == lbmmon_transport_lbmsnmp_receive;
    const um_mon_rcv_stats_t all = {
        .packets = atomic_load(&control->counts.packets),
        .malformed = atomic_load(&control->counts.malformed),
        .unknown = atomic_load(&control->counts.unknown),
        .undecodable = atomic_load(&control->counts.undecodable),
        .dropped = is_lbm ? um_mon_lbm_dropped(control->transport_data) : 0,
        .not_received = atomic_load(&control->counts.failures),
    };
    um_sized_copy(stats, size, &all, sizeof all);
    return 0;
}
