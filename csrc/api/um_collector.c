/* um_collector_*, um_batch_release and um_object_counts: argument checks in front
 * of core/collector.c. The header says per call which threads may use it. */
#include <lbm/um.h>

#include "base/um_error.h"
#include "core/collector.h"
#include "core/collector_store.h"
#include "core/um_object_counts.h"

static int check_given(const void *arg, const char *api, const char *name)
{
    return arg != NULL ? 0 : um_error(UM_EINVAL, "CoreApi-20208-1", "%s: %s: must not be NULL", api, name);
}

int um_collector_create(um_collector_t **collectorp, size_t max_bytes)
{
    return check_given(collectorp, "um_collector_create", "collectorp") == 0 ? um_collector_open(collectorp, max_bytes)
                                                                             : -1;
}

int um_collector_delete(um_collector_t *collector)
{
    return um_collector_check(collector, "um_collector_delete") == 0 ? um_collector_close(collector) : -1;
}

int um_collector_rcv_cb(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    um_collector_append(clientd, rcv, msg);
    return 0;
}

int um_collector_take(um_collector_t *collector, size_t max_messages, int timeout_ms, um_batch_t **batchp)
{
    static const char api[] = "um_collector_take";
    if (um_collector_check(collector, api) != 0 || check_given(batchp, api, "batchp") != 0) {
        return -1;
    }
    if (timeout_ms < -1) {
        return um_error(UM_EINVAL, "CoreApi-20208-2", "%s: timeout_ms %d: must be -1 or more", api, timeout_ms);
    }
    return um_collector_take_batch(collector, max_messages, timeout_ms, batchp);
}

void um_batch_release(um_batch_t *batch)
{
    if (batch != NULL) {
        um_batch_destroy(batch);
    }
}

int um_collector_wake(um_collector_t *collector)
{
    if (um_collector_check(collector, "um_collector_wake") != 0) {
        return -1;
    }
    um_collector_interrupt(collector);
    return 0;
}

int um_collector_fd(um_collector_t *collector)
{
    return um_collector_check(collector, "um_collector_fd") == 0 ? um_collector_descriptor(collector) : -1;
}

int um_collector_stats(um_collector_t *collector, um_collector_stats_t *stats)
{
    static const char api[] = "um_collector_stats";
    if (um_collector_check(collector, api) != 0 || check_given(stats, api, "stats") != 0) {
        return -1;
    }
    um_collector_counts(collector, stats);
    return 0;
}

int um_object_counts(um_object_counts_t *counts)
{
    if (check_given(counts, "um_object_counts", "counts") != 0) {
        return -1;
    }
    *counts = (um_object_counts_t){
        .contexts = um_object_count_of(UM_OBJECT_CONTEXT),
        .sources = um_object_count_of(UM_OBJECT_SOURCE),
        .receivers = um_object_count_of(UM_OBJECT_RECEIVER),
        .messages = um_object_count_of(UM_OBJECT_MESSAGE),
        .batches = um_object_count_of(UM_OBJECT_BATCH),
        .collectors = um_object_count_of(UM_OBJECT_COLLECTOR),
    };
    return 0;
}
