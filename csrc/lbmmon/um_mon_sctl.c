/* Source controllers and their sampling threads. Owns a controller from its beginning to its end. The thread reads an
 * object while it is in use, and formats and sends what was read when it is not: a slow transport holds up nobody. */
#define _GNU_SOURCE
#include "lbmmon/um_mon_sctl.h"

#include <errno.h>
#include <string.h>

#include "base/um_clock.h"
#include "base/um_debug.h"
#include "base/um_fork.h"
#include "base/um_iface.h"
#include "base/um_mem.h"
#include "base/um_thread.h"
#include "base/um_timer.h"
#include "base/um_wait.h"
#include "lbmmon/um_mon_error.h"

enum { CONTROL_POLL_MS = 200 };

#define RETRY_MAX_NS (60 * UM_NS_PER_SEC)

/* ---- modules ---- */

static int start_modules(lbmmon_sctl_t *control, const void *format_opts, const void *transport_opts)
{
    const lbmmon_format_func_t *format = control->format;
    const lbmmon_transport_func_t *transport = control->transport;
    if (format->mInit != NULL && format->mInit(&control->format_data, format_opts) != 0) {
        return um_mon_error_module("the format module did not start", format->mErrorMessage);
    }
    if (transport->mInitSource != NULL && transport->mInitSource(&control->transport_data, transport_opts) != 0) {
        um_mon_error_module("the transport module did not start", transport->mErrorMessage);
        if (format->mFinish != NULL) {
            format->mFinish(control->format_data);
        }
        return -1;
    }
    return 0;
}

static void finish_modules(lbmmon_sctl_t *control)
{
    if (control->transport->mFinishSource != NULL) {
        control->transport->mFinishSource(control->transport_data);
    }
    if (control->format->mFinish != NULL) {
        control->format->mFinish(control->format_data);
    }
}

/* The first interface that is up, rather another than loopback; 0: there is none. */
static uint32_t local_ip(void)
{
    struct um_iface *ifaces = NULL;
    int count = um_iface_list(&ifaces);
    uint32_t ip = 0;
    for (int loopback = 0; loopback < 2 && ip == 0; loopback++) {
        for (int i = 0; i < count && ip == 0; i++) {
            ip = ifaces[i].up && ifaces[i].loopback == (loopback != 0) ? ifaces[i].addr.s_addr : 0;
        }
    }
    um_free(ifaces);
    return ip;
}

/* ---- sampling ---- */

/* The lock is held, and given up while the object is looked at. */
static void sample_entry(lbmmon_sctl_t *control, const struct um_mon_entry *entry, const char *appid)
{
    struct um_mon_object *object = entry->object;
    struct um_mon_sample *sample = &control->sample;
    if (!um_mon_object_use(object)) {
        return;
    }
    UM_DEBUG(UM_DEBUG_MONITOR, "source controller %p: samples object %p of kind %u", (void *)control, object->handle,
             (unsigned)entry->what);
    sample->handle = object->handle;
    sample->what = entry->what;
    sample->object_id = object->id;
    strcpy(sample->appid, appid != NULL ? appid : entry->appid);
    pthread_mutex_unlock(&um_mon_lock);
    int rc = um_mon_sample_read(sample);
    pthread_mutex_lock(&um_mon_lock);
    um_mon_object_release(object);
    pthread_mutex_unlock(&um_mon_lock);
    if (rc == 0) {
        um_mon_send_sample(control, sample);
        um_mon_send_log(control, sample);
    } else {
        atomic_fetch_add(&control->counts.not_read, 1);
        um_mon_complain(control, "statistics were not read", lbm_errmsg);
    }
    um_mon_sample_clear(sample, false);
    pthread_mutex_lock(&um_mon_lock);
}

bool um_mon_selected(const struct um_mon_selection *selection, const struct um_mon_entry *entry)
{
    return (selection->whats & 1u << entry->what) != 0 &&
           (selection->only_appid == NULL || strcmp(selection->only_appid, entry->appid) == 0);
}

static void set_due(struct um_mon_entry *entry, uint64_t now_ns)
{
    uint64_t interval_ns = entry->interval_sec * UM_NS_PER_SEC;
    entry->due_ns += interval_ns;
    if (entry->due_ns <= now_ns) { /* the thread was late: nothing is made up for */
        entry->due_ns = now_ns + interval_ns;
    }
}

/* The lock is held, and given up in between. */
void um_mon_sctl_pass(lbmmon_sctl_t *control, const struct um_mon_selection *selection)
{
    uint64_t now_ns = um_clock_ns();
    struct um_list *node;
    control->pass++;
    control->soonest_ns = UINT64_MAX;
    while (!control->stop && (node = um_list_first(&control->entries)) != NULL) {
        struct um_mon_entry *entry = UM_CONTAINER_OF(node, struct um_mon_entry, node);
        if (entry->pass == control->pass) {
            return;
        }
        entry->pass = control->pass;
        um_list_remove(node);
        um_list_push_back(&control->entries, node);
        bool due = entry->due_ns != 0 && entry->due_ns <= now_ns;
        if (due && selection == NULL) {
            set_due(entry, now_ns);
        }
        if (entry->due_ns != 0 && entry->due_ns < control->soonest_ns) {
            control->soonest_ns = entry->due_ns;
        }
        if (selection == NULL ? due : um_mon_selected(selection, entry)) {
            /* The entry may be gone from here on. */
            sample_entry(control, entry, selection != NULL ? selection->appid : NULL);
        }
    }
}

static void serve_request(lbmmon_sctl_t *control)
{
    struct um_mon_request *request = &control->request;
    char appid[sizeof request->appid];
    const struct um_mon_selection all = {.whats = ~0u, .appid = request->has_appid ? appid : NULL};
    memcpy(appid, request->appid, sizeof appid);
    request->begun = request->asked;
    uint64_t serving = request->begun;
    um_mon_sctl_pass(control, &all);
    request->done = serving;
    pthread_cond_broadcast(&um_mon_changed);
}

/* Control messages are polled: modules have no other way to say that one has come. The lock is held, and given up. */
static void wait_for_work(lbmmon_sctl_t *control)
{
    pthread_mutex_unlock(&um_mon_lock);
    bool polls = um_mon_control_serve(control);
    pthread_mutex_lock(&um_mon_lock);
    if (!control->stop && control->request.begun == control->request.asked) {
        uint64_t until_ns = um_clock_ns() + CONTROL_POLL_MS * UINT64_C(1000000);
        until_ns = polls && until_ns < control->soonest_ns ? until_ns : control->soonest_ns;
        um_cond_wait_until(&control->wake, &um_mon_lock, until_ns);
    }
}

static void sample_until_stopped(lbmmon_sctl_t *control)
{
    pthread_mutex_lock(&um_mon_lock);
    while (!control->stop) {
        if (control->request.begun != control->request.asked) {
            serve_request(control);
        } else if (control->soonest_ns <= um_clock_ns()) {
            um_mon_sctl_pass(control, NULL);
        } else {
            wait_for_work(control);
        }
    }
    pthread_mutex_unlock(&um_mon_lock);
}

/* ---- life ---- */

static void control_free(lbmmon_sctl_t *control)
{
    um_mon_sample_clear(&control->sample, true);
    pthread_cond_destroy(&control->wake);
    um_free(control->packet);
    um_free(control->format_opts);
    um_free(control->transport_opts);
    um_free(control);
}

/* True: it is to stop. */
static bool wait_for_stop(lbmmon_sctl_t *control, uint64_t until_ns)
{
    pthread_mutex_lock(&um_mon_lock);
    while (!control->stop && um_clock_ns() < until_ns) {
        um_cond_wait_until(&control->wake, &um_mon_lock, until_ns);
    }
    bool stop = control->stop;
    pthread_mutex_unlock(&um_mon_lock);
    return stop;
}

/* Nobody else would try again where descriptors, an interface or a file were missing for a while. False: to stop. */
static bool start_deferred(lbmmon_sctl_t *control)
{
    uint64_t pause_ns = UM_NS_PER_SEC;
    bool failed = false;
    while (start_modules(control, control->format_opts, control->transport_opts) != 0) {
        if (!failed) {
            um_log(UM_LOG_ERR, "OpenUM-9060-2",
                   "automatic monitoring does not begin: %s; see the options monitor_*; it is tried again each minute",
                   lbmmon_errmsg());
        }
        failed = true;
        if (wait_for_stop(control, um_clock_ns() + pause_ns)) {
            return false;
        }
        pause_ns = 2 * pause_ns < RETRY_MAX_NS ? 2 * pause_ns : RETRY_MAX_NS;
    }
    if (failed) {
        um_log(UM_LOG_INFO, "OpenUM-9060-8", "automatic monitoring begins, now that it can");
    }
    return true;
}

static void *thread_main(void *arg)
{
    lbmmon_sctl_t *control = arg;
    pthread_setname_np(pthread_self(), "um:monitoring");
    control->ip = local_ip();
    if (!control->deferred || start_deferred(control)) {
        sample_until_stopped(control);
        finish_modules(control);
    }
    pthread_mutex_lock(&um_mon_lock);
    bool detached = control->detached;
    pthread_mutex_unlock(&um_mon_lock);
    if (detached) {
        control_free(control);
    }
    return NULL;
}

static int start_thread(lbmmon_sctl_t *control)
{
    int rc = um_thread_start(&control->thread, thread_main, control);
    return rc == 0 ? 0 : um_mon_error(LBMMON_EOP, "no thread for sampling: %s", strerror(rc));
}

static int copy_options(lbmmon_sctl_t *control, const char *format_opts, const char *transport_opts)
{
    control->format_opts = um_strdup(format_opts != NULL ? format_opts : "");
    control->transport_opts = um_strdup(transport_opts != NULL ? transport_opts : "");
    return control->format_opts != NULL && control->transport_opts != NULL
               ? 0
               : um_mon_error_nomem("options of monitoring modules", 1);
}

lbmmon_sctl_t *um_mon_sctl_new(const lbmmon_format_func_t *format, const void *format_opts,
                               const lbmmon_transport_func_t *transport, const void *transport_opts, bool deferred)
{
    um_debug_monitoring();
    lbmmon_sctl_t *control = um_calloc(1, sizeof *control);
    if (control == NULL) {
        um_mon_error_nomem("source controller", sizeof *control);
        return NULL;
    }
    control->fork_generation = um_fork_generation();
    control->format = format;
    control->transport = transport;
    control->deferred = deferred;
    control->tells_log = um_mon_tells_log(format, format_opts);
    control->soonest_ns = UINT64_MAX;
    um_list_init(&control->entries);
    um_cond_init(&control->wake);
    control->packet = um_malloc(UM_MON_PACKET_ROOM);
    if (control->packet == NULL) {
        um_mon_error_nomem("room for a packet", UM_MON_PACKET_ROOM);
        control_free(control);
        return NULL;
    }
    if ((deferred ? copy_options(control, format_opts, transport_opts)
                  : start_modules(control, format_opts, transport_opts)) != 0) {
        control_free(control);
        return NULL;
    }
    if (start_thread(control) != 0) {
        if (!deferred) {
            finish_modules(control);
        }
        control_free(control);
        return NULL;
    }
    UM_DEBUG(UM_DEBUG_MONITOR, "source controller %p begins", (void *)control);
    return control;
}

void um_mon_sctl_end(lbmmon_sctl_t *control, bool may_wait)
{
    UM_DEBUG(UM_DEBUG_MONITOR, "source controller %p ends", (void *)control);
    struct um_list *node;
    pthread_t thread = control->thread;
    pthread_mutex_lock(&um_mon_lock);
    while ((node = um_list_first(&control->entries)) != NULL) {
        um_mon_entry_remove(UM_CONTAINER_OF(node, struct um_mon_entry, node));
    }
    control->stop = true;
    control->detached = !may_wait;
    pthread_cond_signal(&control->wake);
    pthread_cond_broadcast(&um_mon_changed);
    while (may_wait && control->callers > 0) {
        pthread_cond_wait(&um_mon_changed, &um_mon_lock);
    }
    pthread_mutex_unlock(&um_mon_lock);
    if (may_wait) {
        pthread_join(thread, NULL);
        control_free(control);
    } else {
        pthread_detach(thread);
    }
}

int um_mon_sctl_add(lbmmon_sctl_t *control, void *handle, enum um_mon_what what, const char *appid, unsigned seconds)
{
    struct um_mon_entry *entry = um_calloc(1, sizeof *entry);
    if (entry == NULL) {
        return -1;
    }
    entry->what = what;
    entry->interval_sec = entry->own_interval_sec = seconds;
    entry->due_ns = seconds > 0 ? um_clock_ns() + seconds * UM_NS_PER_SEC : 0;
    size_t len = strnlen(appid != NULL && appid[0] != '\0' ? appid : program_invocation_short_name, UM_MON_APPID_MAX);
    memcpy(entry->appid, appid != NULL && appid[0] != '\0' ? appid : program_invocation_short_name, len);
    if (um_mon_entry_add(entry, &control->entries, handle) != 0) {
        um_free(entry);
        return -1;
    }
    if (entry->due_ns != 0 && entry->due_ns < control->soonest_ns) {
        control->soonest_ns = entry->due_ns;
        pthread_cond_signal(&control->wake);
    }
    return 0;
}
