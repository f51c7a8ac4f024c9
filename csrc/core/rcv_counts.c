/* What became of the messages of a receiver: delivered, lost, late, discarded. The delivery controllers of its sources
 * count; here the counts of the sources of a topic, present and gone, are added up and handed to the application
 * (um.h). Runs on the loop. */
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "core/um_rcv_private.h"

void um_rcv_topic_counts(const struct um_rcv_topic *topic, struct um_dc_stats *out)
{
    const struct um_list *node;
    *out = topic->ended;
    UM_LIST_FOREACH(node, &topic->sources)
    {
        um_dc_stats_add(out, um_dc_stats(UM_CONTAINER_OF(node, struct um_rcv_source, node)->dc));
    }
}

void um_rcv_counts(const lbm_rcv_t *rcv, struct um_dc_stats *out)
{
    um_rcv_topic_counts(rcv->topic, out);
    um_dc_stats_subtract(out, &rcv->before);
}

static void add_counts(um_rcv_stats_t *out, const struct um_dc_stats *counts, uint64_t not_queued)
{
    const uint64_t *discards = counts->discards;
    out->delivered += counts->delivered;
    out->missing += counts->missing;
    out->lost += counts->lost;
    out->late += discards[UM_DC_LATE];
    out->duplicates += discards[UM_DC_DUPLICATE];
    out->malformed += discards[UM_DC_MALFORMED];
    out->headless += discards[UM_DC_HEADLESS];
    out->not_assembled += discards[UM_DC_REASSEMBLY];
    out->no_room += discards[UM_DC_NO_ROOM];
    out->unfinished += discards[UM_DC_UNFINISHED];
    out->not_queued += not_queued;
    for (int i = 0; i < UM_DC_DISCARD_COUNT; i++) {
        out->discarded += discards[i];
    }
    out->discarded += not_queued;
}

/* What the sources joined now add beside their delivery controllers' counts. */
static void add_source(um_rcv_stats_t *out, const struct um_rcv_source *source)
{
    out->sources++;
    out->session_malformed += um_rcv_stream_malformed(&source->stream);
    out->kernel_drops += um_rcv_stream_kernel_drops(&source->stream);
}

static void add_receiver(um_rcv_stats_t *out, const lbm_rcv_t *rcv)
{
    struct um_dc_stats counts;
    const struct um_list *node;
    um_rcv_counts(rcv, &counts);
    add_counts(out, &counts, rcv->not_queued);
    UM_LIST_FOREACH(node, &rcv->topic->sources)
    {
        add_source(out, UM_CONTAINER_OF(node, struct um_rcv_source, node));
    }
}

struct counts_call {
    lbm_rcv_t *rcv;
    lbm_wildcard_rcv_t *wildcard;
    const char *source;
    um_rcv_stats_t *out;
};

static int receiver_on_loop(void *arg)
{
    struct counts_call *call = arg;
    if (call->source == NULL) {
        add_receiver(call->out, call->rcv);
        return 0;
    }
    const struct um_list *node;
    UM_LIST_FOREACH(node, &call->rcv->topic->sources)
    {
        const struct um_rcv_source *source = UM_CONTAINER_OF(node, struct um_rcv_source, node);
        if (strcmp(source->msg->pub.source, call->source) == 0) {
            add_counts(call->out, um_dc_stats(source->dc), 0);
            add_source(call->out, source);
        }
    }
    if (call->out->sources == 0) {
        return um_error(UM_EINVAL, "CoreApi-20208-1",
                        "um_rcv_stats: source [%s]: must be a source this receiver has joined, as msg->source names it",
                        call->source);
    }
    return 0;
}

static int wildcard_on_loop(void *arg)
{
    struct counts_call *call = arg;
    const struct um_list *node;
    add_counts(call->out, &call->wildcard->ended, call->wildcard->ended_not_queued);
    UM_LIST_FOREACH(node, &call->wildcard->matches)
    {
        add_receiver(call->out, UM_CONTAINER_OF(node, lbm_rcv_t, wildcard_node));
    }
    return 0;
}

int um_receiver_counts(lbm_rcv_t *rcv, const char *source, um_rcv_stats_t *out)
{
    struct counts_call call = {.rcv = rcv, .source = source, .out = out};
    memset(out, 0, sizeof *out);
    return um_loop_call(rcv->ctx->loop, receiver_on_loop, &call);
}

int um_wildcard_counts(lbm_wildcard_rcv_t *wrcv, um_rcv_stats_t *out)
{
    struct counts_call call = {.wildcard = wrcv, .out = out};
    memset(out, 0, sizeof *out);
    return um_loop_call(wrcv->ctx->loop, wildcard_on_loop, &call);
}
