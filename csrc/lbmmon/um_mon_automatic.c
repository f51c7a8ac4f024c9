/* Automatic monitoring: what the options monitor_* ask for, without a call of the application. Owns the one controller
 * of the process that serves it, from the first such object to the last. Called by core where objects are made and
 * deleted, on any thread; nothing waits but deletions, and these only for a look at the object under way. */
#include <string.h>

#include "base/um_fork.h"
#include "base/um_mem.h"
#include "lbmmon/um_mon_error.h"
#include "lbmmon/um_mon_sctl.h"
#include "net/um_loop.h"

static lbmmon_sctl_t *automatic; /* um_mon_lock */
static int transport_kind;       /* um_mon_lock: options of `automatic` */
static int format_kind;          /* um_mon_lock */
static bool difference_told;     /* um_mon_lock: said once for each `automatic` */

static const lbmmon_transport_func_t *transport_of(int kind)
{
    return kind == LBM_CTX_ATTR_MON_TRANSPORT_LBMSNMP ? lbmmon_transport_lbmsnmp_module()
                                                      : lbmmon_transport_lbm_module();
}

static const lbmmon_format_func_t *format_of(int kind)
{
    return kind == 2 ? lbmmon_format_pb_module() : lbmmon_format_csv_module();
}

static const char *text_of(const char *option)
{
    return option != NULL ? option : "";
}

/* um_mon_lock held. NULL: as the controller was begun; else the first option that is not. */
static const char *difference(const struct um_monitor_settings *settings)
{
    return settings->transport != transport_kind                                       ? "monitor_transport"
           : settings->format != format_kind                                           ? "monitor_format"
           : strcmp(text_of(settings->transport_opts), automatic->transport_opts) != 0 ? "monitor_transport_opts"
           : strcmp(text_of(settings->format_opts), automatic->format_opts) != 0       ? "monitor_format_opts"
                                                                                       : NULL;
}

/* um_mon_lock held. A controller that was inherited through fork has no thread, and its objects are of no use. */
static bool is_running(void)
{
    return automatic != NULL && automatic->fork_generation == um_fork_generation();
}

static enum um_mon_what what_of(enum um_monitored_kind kind)
{
    switch (kind) {
    case UM_MONITORED_CONTEXT:
        return UM_MON_CONTEXT;
    case UM_MONITORED_RECEIVER:
        return UM_MON_TOPIC;
    case UM_MONITORED_WILDCARD:
        return UM_MON_PATTERN;
    case UM_MONITORED_EVENT_QUEUE:
        return UM_MON_EVENT_QUEUE;
    case UM_MONITORED_SOURCE:
    case UM_MONITORED_SMART_SOURCE:
        break;
    }
    return UM_MON_SOURCE;
}

/* Adds the object to the controller; `fresh` becomes it if there is none yet, and is then NULL. */
static int add(void *object, enum um_monitored_kind kind, const struct um_monitor_settings *settings,
               lbmmon_sctl_t **fresh, const char **differs)
{
    unsigned seconds = settings->interval_sec < UINT32_MAX ? (unsigned)settings->interval_sec : UINT32_MAX;
    pthread_mutex_lock(&um_mon_lock);
    if (!is_running() && *fresh != NULL) {
        automatic = *fresh;
        transport_kind = settings->transport;
        format_kind = settings->format;
        difference_told = false;
        *fresh = NULL;
    }
    int rc = 1;
    if (is_running()) {
        *differs = difference_told ? NULL : difference(settings);
        difference_told |= *differs != NULL;
        rc = um_mon_sctl_add(automatic, object, what_of(kind), settings->appid, seconds);
        rc = rc == 0 ? 0 : um_mon_error_nomem("a monitored object", sizeof(struct um_mon_entry));
    }
    pthread_mutex_unlock(&um_mon_lock);
    return rc;
}

static void created(enum um_monitored_kind kind, void *object, const struct um_monitor_settings *settings)
{
    lbmmon_sctl_t *fresh = NULL;
    const char *differs = NULL;
    int rc = add(object, kind, settings, &fresh, &differs);
    if (rc > 0) { /* nothing is monitored yet */
        fresh = um_mon_sctl_new(format_of(settings->format), settings->format_opts, transport_of(settings->transport),
                                settings->transport_opts, true);
        rc = fresh != NULL ? add(object, kind, settings, &fresh, &differs) : -1;
        if (fresh != NULL) {
            um_mon_sctl_end(fresh, false); /* somebody else was faster */
        }
    }
    if (rc != 0) {
        um_log(UM_LOG_ERR, "OpenUM-9060-3", "automatic monitoring: an object is not monitored: %s", lbmmon_errmsg());
    }
    if (differs != NULL) {
        um_log(UM_LOG_WARNING, "OpenUM-9060-4",
               "%s: differs from that of what is monitored already: a process has one controller for automatic "
               "monitoring, and that of its first object acts (said once)",
               differs);
    }
}

static void closing(void *handle)
{
    pthread_mutex_lock(&um_mon_lock);
    struct um_mon_object *object = um_mon_object_find(handle);
    if (object != NULL) {
        object->closing = true;
        um_mon_object_wait_unused(handle);
    }
    pthread_mutex_unlock(&um_mon_lock);
}

/* um_mon_lock held. The last automatically monitored object is gone: the controller goes, too. */
static lbmmon_sctl_t *take_idle_controller(void)
{
    lbmmon_sctl_t *idle = is_running() && um_list_empty(&automatic->entries) ? automatic : NULL;
    automatic = idle != NULL ? NULL : automatic;
    return idle;
}

static void closed(void *handle, bool gone)
{
    struct um_list *node;
    pthread_mutex_lock(&um_mon_lock);
    struct um_mon_object *object = um_mon_object_find(handle);
    if (object == NULL) {
        pthread_mutex_unlock(&um_mon_lock);
        return;
    }
    while (gone && (node = um_list_first(&object->entries)) != NULL) {
        um_mon_entry_remove(UM_CONTAINER_OF(node, struct um_mon_entry, object_node));
    }
    um_mon_object_reopen(object);
    lbmmon_sctl_t *idle = take_idle_controller();
    pthread_mutex_unlock(&um_mon_lock);
    if (idle != NULL) {
        um_mon_sctl_end(idle, !um_loop_in_any() && !pthread_equal(idle->thread, pthread_self()));
    }
}

const struct um_monitor um_monitor = {.created = created, .closing = closing, .closed = closed};
