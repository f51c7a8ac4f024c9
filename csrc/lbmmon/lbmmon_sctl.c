/* lbmmon_sctl_* and lbmmon_*_monitor: the calls of applications that monitor their objects. Argument checks in front of
 * um_mon_sctl.c. Any thread; those that wait are refused in callbacks. */
#include <string.h>

#include <lbm/um.h>

#include "api/um_sized.h"
#include "base/um_fork.h"
#include "core/um_context.h"
#include "core/um_smart_source.h"
#include "lbmmon/um_mon_error.h"
#include "lbmmon/um_mon_sctl.h"
#include "net/um_loop.h"

static int check(const lbmmon_sctl_t *control, const char *api)
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

static int check_object(const lbmmon_sctl_t *control, const void *object, const char *name, const char *api)
{
    return check(control, api) != 0 ? -1
           : object == NULL         ? um_mon_error(LBMMON_EINVAL, "%s: %s: must not be NULL", api, name)
                                    : 0;
}

/* Inside a callback, or on the sampling thread itself, waiting for that thread could last for ever. */
static int check_waiting(const lbmmon_sctl_t *control, const char *api)
{
    return um_loop_in_any() || pthread_equal(control->thread, pthread_self())
               ? um_mon_error(LBMMON_EOP,
                              "%s: must not be called in a callback of a context or a module; call it from another "
                              "thread",
                              api)
               : 0;
}

int lbmmon_sctl_create(lbmmon_sctl_t **Control, const lbmmon_format_func_t *Format, const void *FormatOptions,
                       const lbmmon_transport_func_t *Transport, const void *TransportOptions)
{
    const char *missing = Control == NULL     ? "Control"
                          : Format == NULL    ? "Format"
                          : Transport == NULL ? "Transport"
                                              : NULL;
    if (missing == NULL && Transport->mSend == NULL) {
        missing = "Transport->mSend";
    }
    if (missing != NULL) {
        return um_mon_error(LBMMON_EINVAL, "lbmmon_sctl_create: %s: must not be NULL", missing);
    }
    lbmmon_sctl_t *control = um_mon_sctl_new(Format, FormatOptions, Transport, TransportOptions, false);
    if (control == NULL) {
        return -1;
    }
    *Control = control;
    return 0;
}

int lbmmon_sctl_destroy(lbmmon_sctl_t *Control)
{
    if (check(Control, "lbmmon_sctl_destroy") != 0 || check_waiting(Control, "lbmmon_sctl_destroy") != 0) {
        return -1;
    }
    um_mon_sctl_end(Control, true);
    return 0;
}

/* ---- samples on demand ---- */

/* Whoever destroys the controller waits until all have left here. -1: it is being destroyed. um_mon_lock held. */
static int wait_changed(lbmmon_sctl_t *control, const char *api)
{
    control->callers++;
    if (!control->stop) {
        pthread_cond_wait(&um_mon_changed, &um_mon_lock);
    }
    control->callers--;
    if (control->stop) {
        pthread_cond_broadcast(&um_mon_changed);
        return um_mon_error(LBMMON_EINVAL, "%s: the controller was destroyed meanwhile", api);
    }
    return 0;
}

/* The thread takes what it is asked before it begins: callers who ask for the same share a sample. */
static int ask(lbmmon_sctl_t *control, const char *appid, bool may_wait, const char *api)
{
    struct um_mon_request *request = &control->request;
    size_t len = appid != NULL ? strnlen(appid, UM_MON_APPID_MAX) : 0;
    bool has_appid = len > 0;
    while (request->asked != request->begun &&
           (request->has_appid != has_appid || strncmp(request->appid, appid != NULL ? appid : "", len + 1) != 0)) {
        if (!may_wait) {
            return um_mon_error(LBMMON_EAGAIN, "%s: a sample with another application id has not begun yet", api);
        }
        if (wait_changed(control, api) != 0) {
            return -1;
        }
    }
    request->asked += request->asked == request->begun;
    request->has_appid = has_appid;
    memcpy(request->appid, appid != NULL ? appid : "", len);
    request->appid[len] = '\0';
    return 0;
}

static int sample_now(lbmmon_sctl_t *control, const char *appid, const char *api)
{
    if (check(control, api) != 0) {
        return -1;
    }
    struct um_mon_request *request = &control->request;
    bool may_wait = !um_loop_in_any() && !pthread_equal(control->thread, pthread_self());
    pthread_mutex_lock(&um_mon_lock);
    int rc = ask(control, appid, may_wait, api);
    if (rc == 0) {
        uint64_t mine = request->asked;
        pthread_cond_signal(&control->wake);
        while (may_wait && request->done < mine && rc == 0) {
            rc = wait_changed(control, api);
        }
        rc = request->done >= mine ? 0 : rc;
    }
    pthread_mutex_unlock(&um_mon_lock);
    return rc;
}

int lbmmon_sctl_sample(lbmmon_sctl_t *Control)
{
    return sample_now(Control, NULL, "lbmmon_sctl_sample");
}

int lbmmon_sctl_sample_ex(lbmmon_sctl_t *Control, const char *ApplicationSourceID)
{
    return sample_now(Control, ApplicationSourceID, "lbmmon_sctl_sample_ex");
}

/* ---- objects ---- */

static int monitor(lbmmon_sctl_t *control, void *handle, enum um_mon_what what, const char *appid, unsigned seconds,
                   const char *api)
{
    pthread_mutex_lock(&um_mon_lock);
    bool already = um_mon_entry_find(handle, &control->entries) != NULL;
    int rc = already ? -1 : um_mon_sctl_add(control, handle, what, appid, seconds);
    pthread_mutex_unlock(&um_mon_lock);
    if (already) {
        return um_mon_error(LBMMON_EALREADY, "%s: the controller monitors this object already", api);
    }
    return rc == 0 ? 0 : um_mon_error_nomem(api, sizeof(struct um_mon_entry));
}

static int unmonitor(lbmmon_sctl_t *control, void *handle, const char *api)
{
    if (check(control, api) != 0 || check_waiting(control, api) != 0) {
        return -1;
    }
    pthread_mutex_lock(&um_mon_lock);
    struct um_mon_entry *entry = um_mon_entry_find(handle, &control->entries);
    if (entry != NULL) {
        um_mon_object_wait_unused(handle);
        entry = um_mon_entry_find(handle, &control->entries);
    }
    if (entry != NULL) {
        um_mon_entry_remove(entry);
    }
    pthread_mutex_unlock(&um_mon_lock);
    return entry != NULL ? 0 : um_mon_error(LBMMON_EINVAL, "%s: the controller does not monitor this object", api);
}

int lbmmon_context_monitor(lbmmon_sctl_t *Control, lbm_context_t *Context, const char *ApplicationSourceID,
                           unsigned int Seconds)
{
    const char *api = "lbmmon_context_monitor";
    if (check_object(Control, Context, "Context", api) != 0) {
        return -1;
    }
    return um_context_check_messaging(Context, api) != 0
               ? um_mon_error_lbm(api)
               : monitor(Control, Context, UM_MON_CONTEXT, ApplicationSourceID, Seconds, api);
}

int lbmmon_src_monitor(lbmmon_sctl_t *Control, lbm_src_t *Source, const char *ApplicationSourceID, unsigned int Seconds)
{
    const char *api = "lbmmon_src_monitor";
    if (check_object(Control, Source, "Source", api) != 0) {
        return -1;
    }
    return lbm_context_from_src(Source) == NULL
               ? um_mon_error_lbm(api)
               : monitor(Control, Source, UM_MON_SOURCE, ApplicationSourceID, Seconds, api);
}

/* A smart source begins with a source: its session is read as that of any other. */
int lbmmon_ssrc_monitor(lbmmon_sctl_t *Control, lbm_ssrc_t *SmartSource, const char *ApplicationSourceID,
                        unsigned int Seconds)
{
    const char *api = "lbmmon_ssrc_monitor";
    if (check_object(Control, SmartSource, "SmartSource", api) != 0) {
        return -1;
    }
    return um_smart_source_check(SmartSource, api) != 0
               ? um_mon_error_lbm(api)
               : monitor(Control, SmartSource, UM_MON_SOURCE, ApplicationSourceID, Seconds, api);
}

int lbmmon_rcv_monitor(lbmmon_sctl_t *Control, lbm_rcv_t *Receiver, const char *ApplicationSourceID,
                       unsigned int Seconds)
{
    const char *api = "lbmmon_rcv_monitor";
    if (check_object(Control, Receiver, "Receiver", api) != 0) {
        return -1;
    }
    return lbm_context_from_rcv(Receiver) == NULL
               ? um_mon_error_lbm(api)
               : monitor(Control, Receiver, UM_MON_RECEIVER, ApplicationSourceID, Seconds, api);
}

int lbmmon_evq_monitor(lbmmon_sctl_t *Control, lbm_event_queue_t *EventQueue, const char *ApplicationSourceID,
                       unsigned int Seconds)
{
    const char *api = "lbmmon_evq_monitor";
    lbm_event_queue_stats_t stats;
    if (check_object(Control, EventQueue, "EventQueue", api) != 0) {
        return -1;
    }
    return lbm_event_queue_retrieve_stats(EventQueue, &stats) != 0
               ? um_mon_error_lbm(api)
               : monitor(Control, EventQueue, UM_MON_EVENT_QUEUE, ApplicationSourceID, Seconds, api);
}

int lbmmon_context_unmonitor(lbmmon_sctl_t *Control, lbm_context_t *Context)
{
    return unmonitor(Control, Context, "lbmmon_context_unmonitor");
}

int lbmmon_src_unmonitor(lbmmon_sctl_t *Control, lbm_src_t *Source)
{
    return unmonitor(Control, Source, "lbmmon_src_unmonitor");
}

int lbmmon_ssrc_unmonitor(lbmmon_sctl_t *Control, lbm_ssrc_t *SmartSource)
{
    return unmonitor(Control, SmartSource, "lbmmon_ssrc_unmonitor");
}

int lbmmon_rcv_unmonitor(lbmmon_sctl_t *Control, lbm_rcv_t *Receiver)
{
    return unmonitor(Control, Receiver, "lbmmon_rcv_unmonitor");
}

int lbmmon_evq_unmonitor(lbmmon_sctl_t *Control, lbm_event_queue_t *EventQueue)
{
    return unmonitor(Control, EventQueue, "lbmmon_evq_unmonitor");
}

/* ---- counts ---- */

int um_mon_src_stats_sized(struct lbmmon_sctl_t_stct *control, um_mon_src_stats_t *stats, size_t size)
{
    if (check(control, "um_mon_src_stats") != 0 || um_sized_check(stats, size, "um_mon_src_stats") != 0) {
        return -1;
    }
    const um_mon_src_stats_t all = {
        .packets = atomic_load(&control->counts.packets),
        .not_read = atomic_load(&control->counts.not_read),
        .not_written = atomic_load(&control->counts.not_written),
        .not_sent = atomic_load(&control->counts.not_sent),
        .filtered = atomic_load(&control->counts.filtered),
    };
    um_sized_copy(stats, size, &all, sizeof all);
    return 0;
}
