/* What became of the messages of a receiver: delivered, lost, late, discarded. The delivery controllers of its sources
 * count; here the counts of the sources of a topic, present and gone, are added up and handed to the application
 * (um.h). Runs on the loop. */
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "core/um_rcv_private.h"
#include "wire/um_source_string.h"

/* Lock. Is there anything to count, and memory for it? Most receivers never need it. */
static bool has_counts(lbm_rcv_t *rcv, const struct um_dc_stats *counts)
{
    static const struct um_dc_stats nothing;
    if (rcv->counted == NULL && memcmp(counts, &nothing, sizeof nothing) != 0) {
        rcv->counted = um_calloc(1, sizeof *rcv->counted);
        rcv->uncounted += rcv->counted == NULL;
    }
    return rcv->counted != NULL;
}

void um_rcv_count(lbm_rcv_t *rcv, const struct um_dc_stats *counts, enum um_rcv_count when)
{
    um_lock_take(&rcv->ctx->counts_lock);
    rcv->ctx->counts_changes++;
    if (has_counts(rcv, counts)) {
        if (when == UM_RCV_COUNT_FROM) {
            um_dc_stats_subtract(rcv->counted, counts);
        } else {
            um_dc_stats_add(rcv->counted, counts);
        }
    }
    um_lock_give(&rcv->ctx->counts_lock);
}

void um_rcv_counted(lbm_rcv_t *rcv, struct um_dc_stats *out)
{
    um_lock_take(&rcv->ctx->counts_lock);
    *out = rcv->counted == NULL ? (struct um_dc_stats){0} : *rcv->counted;
    out->discards[UM_DC_NO_ROOM] += rcv->uncounted;
    um_lock_give(&rcv->ctx->counts_lock);
}

static void add_counts(um_rcv_stats_t *out, const struct um_dc_stats *counts, uint64_t not_queued)
{
    const uint64_t *discards = counts->discards;
    out->delivered += counts->delivered;
    out->missing += counts->missing;
    out->lost += counts->lost;
    out->openings_cut += counts->openings_cut;
    out->late += discards[UM_DC_LATE];
    out->duplicates += discards[UM_DC_DUPLICATE] + discards[UM_DC_UNASKED];
    out->malformed += discards[UM_DC_MALFORMED];
    out->headless += discards[UM_DC_HEADLESS] + discards[UM_DC_BEFORE];
    out->not_assembled += discards[UM_DC_REASSEMBLY];
    out->no_room += discards[UM_DC_NO_ROOM] + discards[UM_DC_DEFERRED];
    out->unfinished += discards[UM_DC_UNFINISHED];
    out->not_queued += not_queued;
    for (int i = 0; i < UM_DC_DISCARD_COUNT; i++) {
        out->discarded += discards[i];
    }
    out->discarded += not_queued;
}

/* What a source joined now adds beside its delivery controller's counts. */
static void add_source(um_rcv_stats_t *out, const struct um_rcv_flow *flow)
{
    out->sources++;
    out->session_malformed += um_rcv_stream_malformed(&flow->stream);
    out->kernel_drops += um_rcv_stream_kernel_drops(&flow->stream);
    out->session_unsupported += um_rcv_stream_unsupported(&flow->stream);
}

struct counts_call {
    lbm_rcv_t *rcv;
    lbm_wildcard_rcv_t *wildcard;
    const char *source;
    um_rcv_stats_t *out;
};

/* ---- what flows count now [loop] of each ---- */

static int receiver_on_lane(struct um_rcv_lane *lane, void *arg)
{
    struct counts_call *call = arg;
    struct um_rcv_flow *flow = NULL;
    while ((flow = um_rcv_flow_next(lane, call->rcv->topic, flow)) != NULL) {
        char source[UM_SOURCE_STRING_MAX];
        bool is_source = call->source != NULL && strcmp(um_rcv_flow_source(flow, source), call->source) == 0;
        if (is_source || (call->source == NULL && um_rcv_audience_has(flow->audience, call->rcv))) {
            struct um_dc_stats counts = um_dc_stats(flow->dc);
            add_counts(call->out, &counts, 0);
        }
        if (call->source == NULL || is_source) {
            add_source(call->out, flow);
        }
    }
    return 0;
}

/* Once for each of its receivers, which are on different topics. */
static int wildcard_on_lane(struct um_rcv_lane *lane, void *arg)
{
    struct counts_call *call = arg;
    struct um_rcv_flow *flow = NULL;
    while ((flow = um_rcv_flow_next(lane, NULL, flow)) != NULL) {
        for (unsigned i = 0; i < flow->audience->count; i++) {
            if (flow->audience->receivers[i]->wildcard == call->wildcard) {
                struct um_dc_stats counts = um_dc_stats(flow->dc);
                add_counts(call->out, &counts, 0);
                add_source(call->out, flow);
            }
        }
    }
    return 0;
}

/* ---- what is over [loop] of the context ---- */

static void add_counted(um_rcv_stats_t *out, lbm_rcv_t *rcv)
{
    struct um_dc_stats counts;
    um_rcv_counted(rcv, &counts);
    add_counts(out, &counts, atomic_load_explicit(&rcv->not_queued, memory_order_relaxed));
}

static int receiver_on_loop(void *arg)
{
    struct counts_call *call = arg;
    add_counted(call->out, call->rcv);
    return 0;
}

static int wildcard_on_loop(void *arg)
{
    struct counts_call *call = arg;
    const struct um_list *node;
    add_counts(call->out, &call->wildcard->ended, call->wildcard->ended_not_queued);
    UM_LIST_FOREACH(node, &call->wildcard->matches)
    {
        add_counted(call->out, UM_CONTAINER_OF(node, struct um_rcv_match, node)->rcv);
    }
    return 0;
}

/* ---- together ---- */

#define ATTEMPTS                                                                                                       \
    8 /* to look at all loops while no source comes or goes; after that a count may be off by one source's */

static unsigned changes(lbm_context_t *ctx)
{
    um_lock_take(&ctx->counts_lock);
    unsigned now = ctx->counts_changes;
    um_lock_give(&ctx->counts_lock);
    return now;
}

static int gather(lbm_context_t *ctx, struct counts_call *call, int (*on_lane)(struct um_rcv_lane *lane, void *arg),
                  int (*on_loop)(void *arg))
{
    unsigned before;
    int attempts = 0;
    do {
        before = changes(ctx);
        memset(call->out, 0, sizeof *call->out);
        if (um_rcv_lanes_each(ctx, on_lane, call) != 0 ||
            (on_loop != NULL && um_loop_call(ctx->loop, on_loop, call) != 0)) {
            return -1;
        }
    } while (changes(ctx) != before && ++attempts < ATTEMPTS);
    return 0;
}

int um_receiver_counts(lbm_rcv_t *rcv, const char *source, um_rcv_stats_t *out)
{
    struct counts_call call = {.rcv = rcv, .source = source, .out = out};
    if (gather(rcv->ctx, &call, receiver_on_lane, source == NULL ? receiver_on_loop : NULL) != 0) {
        return -1;
    }
    if (source != NULL && out->sources == 0) {
        return um_error(UM_EINVAL, "CoreApi-20209-2",
                        "um_rcv_stats: source [%s]: must be a source this receiver has joined, as msg->source names it",
                        source);
    }
    return 0;
}

int um_wildcard_counts(lbm_wildcard_rcv_t *wrcv, um_rcv_stats_t *out)
{
    struct counts_call call = {.wildcard = wrcv, .out = out};
    return gather(wrcv->ctx, &call, wildcard_on_lane, wildcard_on_loop);
}
