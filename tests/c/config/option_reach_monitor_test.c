/* Options monitor_* reach the controller of automatic monitoring (F25). See um_test_options.h. */
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

#include "lbmmon/um_mon_sctl.h"
#include "um_test_options.h"

/* What automatic monitoring has noted for an object; NULL: it is not monitored. */
static const struct um_mon_entry *entry_of(void *handle)
{
    pthread_mutex_lock(&um_mon_lock);
    struct um_mon_object *object = um_mon_object_find(handle);
    struct um_list *node = object != NULL ? um_list_first(&object->entries) : NULL;
    pthread_mutex_unlock(&um_mon_lock);
    return node != NULL ? UM_CONTAINER_OF(node, struct um_mon_entry, object_node) : NULL;
}

static long long interval_of(void *handle)
{
    const struct um_mon_entry *entry = entry_of(handle);
    return entry != NULL ? entry->interval_sec : -1;
}

static const lbmmon_sctl_t *control_of(void *handle)
{
    return UM_CONTAINER_OF(entry_of(handle)->list, lbmmon_sctl_t, entries);
}

static void monitored_context(struct world *w)
{
    SET_context(w, "monitor_interval", "3600");
    context_only(w);
}

static void event_queue(struct world *w)
{
    MUST(lbm_event_queue_create(&w->evq, NULL, NULL, w->event_queue));
}

static void monitored_event_queue(struct world *w)
{
    SET_event_queue(w, "monitor_interval", "3600");
    event_queue(w);
}

static void receiver(struct world *w)
{
    context_only(w);
    receiver_only(w);
}

static void wildcard(struct world *w)
{
    wildcard_on(w, "^option");
}

REACHES(context, monitor_interval, "1234", context_only, interval_of(w->ctx), 1234);
REACHES(context, monitor_appid, "mine", monitored_context, strcmp(entry_of(w->ctx)->appid, "mine"), 0);
REACHES(context, monitor_format, "pb", monitored_context, control_of(w->ctx)->format == lbmmon_format_pb_module(),
        true);
REACHES(context, monitor_format_opts, "separator=:", monitored_context,
        strcmp(control_of(w->ctx)->format_opts, "separator=:"), 0);
REACHES(context, monitor_transport, "lbmsnmp", monitored_context,
        control_of(w->ctx)->transport == lbmmon_transport_lbmsnmp_module(), true);
REACHES(context, monitor_transport_opts, "topic=mine", monitored_context,
        strcmp(control_of(w->ctx)->transport_opts, "topic=mine"), 0);

REACHES(event_queue, monitor_interval, "1234", event_queue, interval_of(w->evq), 1234);
REACHES(event_queue, monitor_appid, "mine", monitored_event_queue, strcmp(entry_of(w->evq)->appid, "mine"), 0);
REACHES(event_queue, monitor_format, "pb", monitored_event_queue,
        control_of(w->evq)->format == lbmmon_format_pb_module(), true);
REACHES(event_queue, monitor_format_opts, "separator=:", monitored_event_queue,
        strcmp(control_of(w->evq)->format_opts, "separator=:"), 0);
REACHES(event_queue, monitor_transport, "lbmsnmp", monitored_event_queue,
        control_of(w->evq)->transport == lbmmon_transport_lbmsnmp_module(), true);
REACHES(event_queue, monitor_transport_opts, "topic=mine", monitored_event_queue,
        strcmp(control_of(w->evq)->transport_opts, "topic=mine"), 0);

REACHES(receiver, monitor_interval, "1234", receiver, interval_of(w->rcv), 1234);
REACHES(wildcard_receiver, monitor_interval, "1234", wildcard, interval_of(w->wildcard), 1234);
