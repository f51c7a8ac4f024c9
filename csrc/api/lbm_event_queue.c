/* lbm_event_queue_*: argument checks in front of core/um_event_queue.c.
 * Any thread; on dispatch threads there are no restrictions. */
#include <string.h>

#include <lbm/lbm.h>

#include "base/um_error.h"
#include "config/um_options.h"
#include "core/um_event_queue.h"
#include "net/um_loop.h"

int lbm_event_queue_create(lbm_event_queue_t **evqp, lbm_event_queue_monitor_proc proc, void *clientd,
                           const lbm_event_queue_attr_t *attr)
{
    um_config_start();
    if (evqp == NULL) {
        return um_error(UM_EINVAL, "CoreApi-1041-1", "lbm_event_queue_create: evqp must be valid");
    }
    return um_event_queue_create(evqp, proc, clientd, attr);
}

int lbm_event_dispatch(lbm_event_queue_t *evq, lbm_ulong_t tmo)
{
    if (um_event_queue_check(evq, "lbm_event_dispatch") < 0) {
        return -1;
    }
    if (um_loop_in_any()) {
        return um_error(UM_EOP, "CoreApi-1041-5",
                        "lbm_event_dispatch: must not be called in a callback that runs on a context thread; dispatch "
                        "on a thread of the application");
    }
    return um_event_queue_dispatch(evq, tmo);
}

int lbm_event_dispatch_unblock(lbm_event_queue_t *evq)
{
    return um_event_queue_check(evq, "lbm_event_dispatch_unblock") < 0 ? -1 : um_event_queue_unblock(evq);
}

int lbm_event_queue_size(lbm_event_queue_t *evq)
{
    return um_event_queue_check(evq, "lbm_event_queue_size") < 0 ? -1 : um_event_queue_size(evq);
}

int lbm_event_queue_shutdown(lbm_event_queue_t *evq)
{
    if (um_event_queue_check(evq, "lbm_event_queue_shutdown") < 0) {
        return -1;
    }
    um_event_queue_shutdown(evq);
    return LBM_OK;
}

int lbm_event_queue_delete(lbm_event_queue_t *evq)
{
    return um_event_queue_check(evq, "lbm_event_queue_delete") < 0 ? -1 : um_event_queue_delete(evq);
}

int lbm_event_queue_retrieve_stats(lbm_event_queue_t *evq, lbm_event_queue_stats_t *stats)
{
    if (um_event_queue_check(evq, "lbm_event_queue_retrieve_stats") < 0) {
        return -1;
    }
    if (stats == NULL) {
        return um_error(UM_EINVAL, "CoreApi-1041-2", "lbm_event_queue_retrieve_stats: stats must be valid");
    }
    um_event_queue_stats(evq, stats);
    return LBM_OK;
}

int lbm_event_queue_reset_stats(lbm_event_queue_t *evq)
{
    if (um_event_queue_check(evq, "lbm_event_queue_reset_stats") < 0) {
        return -1;
    }
    um_event_queue_stats_reset(evq);
    return LBM_OK;
}

/* One option access, carried into the queue's lock. */
struct um_event_queue_option {
    const char *name;
    const void *value;
    void *out;
    size_t len;
    size_t *len_out;
};

static int um_evq_setopt(struct um_event_queue_options *opts, void *arg)
{
    struct um_event_queue_option *option = arg;
    return um_options_set(UM_SCOPE_EVENT_QUEUE, opts, option->name, option->value, option->len, true);
}

static int um_evq_str_setopt(struct um_event_queue_options *opts, void *arg)
{
    struct um_event_queue_option *option = arg;
    return um_options_str_set(UM_SCOPE_EVENT_QUEUE, opts, option->name, option->value, true);
}

static int um_evq_getopt(struct um_event_queue_options *opts, void *arg)
{
    struct um_event_queue_option *option = arg;
    return um_options_get(UM_SCOPE_EVENT_QUEUE, opts, option->name, option->out, option->len_out);
}

static int um_evq_str_getopt(struct um_event_queue_options *opts, void *arg)
{
    struct um_event_queue_option *option = arg;
    return um_options_str_get(UM_SCOPE_EVENT_QUEUE, opts, option->name, option->out, option->len_out);
}

static int um_evq_check_option(const lbm_event_queue_t *evq, const char *api, const char *name, const void *value,
                               const size_t *len)
{
    if (um_event_queue_check(evq, api) < 0) {
        return -1;
    }
    const char *bad = name == NULL ? "optname" : value == NULL ? "optval" : len == NULL ? "optlen" : NULL;
    return bad == NULL ? 0 : um_error(UM_EINVAL, "CoreApi-1041-3", "%s: %s must be valid", api, bad);
}

int lbm_event_queue_setopt(lbm_event_queue_t *evq, const char *optname, const void *optval, size_t optlen)
{
    struct um_event_queue_option option = {.name = optname, .value = optval, .len = optlen};
    return um_evq_check_option(evq, "lbm_event_queue_setopt", optname, optval, &optlen) < 0
               ? -1
               : um_event_queue_with_options(evq, um_evq_setopt, &option);
}

int lbm_event_queue_str_setopt(lbm_event_queue_t *evq, const char *optname, const char *optval)
{
    struct um_event_queue_option option = {.name = optname, .value = optval};
    size_t none = 0;
    return um_evq_check_option(evq, "lbm_event_queue_str_setopt", optname, optval, &none) < 0
               ? -1
               : um_event_queue_with_options(evq, um_evq_str_setopt, &option);
}

int lbm_event_queue_getopt(lbm_event_queue_t *evq, const char *optname, void *optval, size_t *optlen)
{
    struct um_event_queue_option option = {.name = optname, .out = optval, .len_out = optlen};
    return um_evq_check_option(evq, "lbm_event_queue_getopt", optname, optval, optlen) < 0
               ? -1
               : um_event_queue_with_options(evq, um_evq_getopt, &option);
}

int lbm_event_queue_str_getopt(lbm_event_queue_t *evq, const char *optname, char *optval, size_t *optlen)
{
    struct um_event_queue_option option = {.name = optname, .out = optval, .len_out = optlen};
    return um_evq_check_option(evq, "lbm_event_queue_str_getopt", optname, optval, optlen) < 0
               ? -1
               : um_event_queue_with_options(evq, um_evq_str_getopt, &option);
}

struct um_event_queue_dump {
    int *size;
    lbm_config_option_t *opts;
};

static int um_evq_dump(struct um_event_queue_options *opts, void *arg)
{
    struct um_event_queue_dump *dump = arg;
    return um_options_dump(UM_SCOPE_EVENT_QUEUE, opts, dump->size, dump->opts);
}

int lbm_event_queue_dump(lbm_event_queue_t *evq, int *size, lbm_config_option_t *opts)
{
    struct um_event_queue_dump dump = {size, opts};
    if (um_event_queue_check(evq, "lbm_event_queue_dump") < 0) {
        return -1;
    }
    if (size == NULL || opts == NULL) {
        return um_error(UM_EINVAL, "CoreApi-1041-4", "lbm_event_queue_dump: %s must be valid",
                        size == NULL ? "size" : "opts");
    }
    return um_event_queue_with_options(evq, um_evq_dump, &dump);
}
