/* um_collector_*, um_batch_release and um_object_counts: argument checks in front
 * of core/um_collector.c. The header says per call which threads may use it. */
#include <lbm/um.h>

#include "api/um_sized.h"
#include "base/um_error.h"
#include "core/um_collector.h"
#include "core/um_collector_store.h"
#include "core/um_object_counts.h"
#include "core/um_record_tail.h"

static int check_given(const void *arg, const char *api, const char *name)
{
    return arg != NULL ? 0 : um_error(UM_EINVAL, "CoreApi-20208-1", "%s: %s: must not be NULL", api, name);
}

static int check_sized(const void *arg, size_t size, const char *api, const char *name)
{
    return arg != NULL && size > 0
               ? 0
               : um_error(UM_EINVAL, "CoreApi-20208-3", "%s: %s: must not be NULL, nor its size 0", api, name);
}

int um_collector_create(um_collector_t **collectorp, size_t max_bytes)
{
    return check_given(collectorp, "um_collector_create", "collectorp") == 0
               ? um_collector_open(collectorp, max_bytes, UM_ON_FULL_PAUSE)
               : -1;
}

int um_collector_create_ex(um_collector_t **collectorp, size_t max_bytes, int on_full)
{
    return check_given(collectorp, "um_collector_create_ex", "collectorp") == 0
               ? um_collector_open(collectorp, max_bytes, on_full)
               : -1;
}

int um_collector_delete(um_collector_t *collector)
{
    return um_collector_check(collector, "um_collector_delete") == 0 ? um_collector_close(collector) : -1;
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

int um_record_tail_sized(const um_record_t *record, const void *payload, um_record_tail_t *tail, size_t size)
{
    static const char api[] = "um_record_tail";
    if (check_given(record, api, "record") != 0 || check_given(payload, api, "payload") != 0 ||
        check_sized(tail, size, api, "tail") != 0) {
        return -1;
    }
    um_record_tail_t all;
    um_tail_get(&all, record, payload);
    um_sized_copy(tail, size, &all, sizeof all);
    return 0;
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

int um_collector_keep_readable(um_collector_t *collector, int keep)
{
    if (um_collector_check(collector, "um_collector_keep_readable") != 0) {
        return -1;
    }
    um_collector_keep(collector, keep != 0);
    return 0;
}

int um_collector_see_numbers(um_collector_t *collector)
{
    if (um_collector_check(collector, "um_collector_see_numbers") != 0) {
        return -1;
    }
    um_collector_look_for_numbers(collector);
    return 0;
}

int um_collector_stats_sized(um_collector_t *collector, um_collector_stats_t *stats, size_t size)
{
    static const char api[] = "um_collector_stats";
    if (um_collector_check(collector, api) != 0 || check_sized(stats, size, api, "stats") != 0) {
        return -1;
    }
    um_collector_stats_t all;
    um_collector_counts(collector, &all);
    um_sized_copy(stats, size, &all, sizeof all);
    return 0;
}

int um_collector_dropped(um_collector_t *collector, const char *source, uint64_t *count)
{
    static const char api[] = "um_collector_dropped";
    if (um_collector_check(collector, api) != 0 || check_given(source, api, "source") != 0 ||
        check_given(count, api, "count") != 0) {
        return -1;
    }
    *count = um_collector_tally_of(collector, source);
    return 0;
}

int um_object_counts_sized(um_object_counts_t *counts, size_t size)
{
    if (check_sized(counts, size, "um_object_counts", "counts") != 0) {
        return -1;
    }
    um_object_counts_t all = {
        .contexts = um_object_count_of(UM_OBJECT_CONTEXT),
        .sources = um_object_count_of(UM_OBJECT_SOURCE),
        .receivers = um_object_count_of(UM_OBJECT_RECEIVER),
        .messages = um_object_count_of(UM_OBJECT_MESSAGE),
        .batches = um_object_count_of(UM_OBJECT_BATCH),
        .collectors = um_object_count_of(UM_OBJECT_COLLECTOR),
        .requests = um_object_count_of(UM_OBJECT_REQUEST),
        .responses = um_object_count_of(UM_OBJECT_RESPONSE),
    };
    um_sized_copy(counts, size, &all, sizeof all);
    return 0;
}
