/* um.h: how many sources are ready and waiting for them; what became of the messages of sources, receivers and
 * contexts. No state; application threads. Readiness of sources is in lbm_source.c. */
#include <lbm/um.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_timer.h"
#include "core/um_context.h"
#include "core/um_receiver.h"
#include "core/um_source.h"
#include "net/um_loop.h"

int um_rcv_ready(lbm_rcv_t *rcv)
{
    if (um_receiver_check(rcv, "um_rcv_ready") != 0) {
        return -1;
    }
    return um_receiver_ready_sources(rcv);
}

int um_rcv_wait_ready(lbm_rcv_t *rcv, int sources, int timeout_ms)
{
    if (um_receiver_check(rcv, "um_rcv_wait_ready") != 0) {
        return -1;
    }
    if (sources < 0 || timeout_ms < 0) {
        return um_error(UM_EINVAL, "CoreApi-9014-1",
                        "um_rcv_wait_ready: sources %d and timeout_ms %d: must be 0 or more", sources, timeout_ms);
    }
    const struct lbm_context_t_stct *ctx = um_receiver_context(rcv);
    if (um_loop_on_thread(ctx->loop)) {
        return um_error(UM_EOP, "CoreApi-9014-2",
                        "um_rcv_wait_ready: must not be called on the context thread; call it from another thread");
    }
    return um_receiver_wait_ready(rcv, sources, timeout_ms);
}

static int check_stats(const void *stats, const char *api)
{
    return stats != NULL ? 0 : um_error(UM_EINVAL, "CoreApi-9014-3", "%s: stats: must not be NULL", api);
}

int um_src_stats(lbm_src_t *src, um_src_stats_t *stats)
{
    if (um_source_check(src, "um_src_stats") != 0 || check_stats(stats, "um_src_stats") != 0) {
        return -1;
    }
    struct um_src_counts counts;
    um_src_stream_counts(&src->stream, &counts);
    *stats = (um_src_stats_t){
        .messages_sent = counts.messages,
        .bytes_sent = counts.bytes,
        .receivers = (uint64_t)counts.clients,
        .session_dropped = counts.drops.datagrams,
        .session_dropped_bytes = counts.drops.bytes,
        .session_unsent_bytes = counts.drops.unsent_bytes,
        .session_ignored_messages = counts.drops.ignored_from_clients,
        .session_filtered_bytes = counts.drops.filtered_bytes,
        .session_unheard_bytes = counts.drops.unheard_bytes,
        .blocked_by_pid = counts.blocked_by,
        .blocked_ns = counts.blocked_ns,
        .receivers_lost = counts.receivers_lost,
        .session_refused = counts.drops.refused,
    };
    return 0;
}

#define NAKS_MAX 257 /* what a session remembers */

int um_src_naks(lbm_src_t *src, um_src_naks_t *naks, int *count)
{
    if (um_source_check(src, "um_src_naks") != 0) {
        return -1;
    }
    if (count == NULL || *count < 0 || (naks == NULL && *count > 0)) {
        return um_error(UM_EINVAL, "CoreApi-9014-4",
                        "um_src_naks: count must be 0 or more, and naks have room for as many");
    }
    struct um_src_nak_count found[NAKS_MAX];
    int there = um_src_stream_naks(&src->stream, found, NAKS_MAX);
    uint64_t now = um_clock_ns();
    for (int i = 0; i < there && i < *count; i++) {
        char ip[INET_ADDRSTRLEN];
        naks[i] = (um_src_naks_t){.nak_packets = found[i].packets,
                                  .naks = found[i].naks,
                                  .idle_ms = now > found[i].last_ns ? (now - found[i].last_ns) / UM_NS_PER_MS : 0};
        if (found[i].ip == 0) {
            snprintf(naks[i].receiver, sizeof naks[i].receiver, "others");
        } else {
            inet_ntop(AF_INET, &found[i].ip, ip, sizeof ip);
            snprintf(naks[i].receiver, sizeof naks[i].receiver, "%s:%u", ip, found[i].port);
        }
    }
    *count = there;
    return 0;
}

int um_rcv_stats(lbm_rcv_t *rcv, const char *source, um_rcv_stats_t *stats)
{
    if (um_receiver_check(rcv, "um_rcv_stats") != 0 || check_stats(stats, "um_rcv_stats") != 0) {
        return -1;
    }
    return um_receiver_counts(rcv, source, stats);
}

int um_wildcard_rcv_stats(lbm_wildcard_rcv_t *wrcv, um_rcv_stats_t *stats)
{
    if (um_wildcard_check(wrcv, "um_wildcard_rcv_stats") != 0 || check_stats(stats, "um_wildcard_rcv_stats") != 0) {
        return -1;
    }
    return um_wildcard_counts(wrcv, stats);
}

struct context_call {
    lbm_context_t *ctx;
    um_context_stats_t *stats;
};

static int context_stats_on_loop(void *arg)
{
    struct context_call *call = arg;
    um_context_stats_t *out = call->stats;
    const lbm_context_t *ctx = call->ctx;
    struct um_uim_stats uim = {0};
    um_uim_stats(ctx->uim, &uim);
    um_resolver_discards(ctx->resolver, &out->resolver_unknown_sender, &out->resolver_refused_patterns,
                         &out->resolver_cache_full);
    out->unicast_malformed = uim.msgs_malformed;
    out->unicast_foreign = uim.msgs_foreign;
    out->unicast_unsupported = atomic_load(&ctx->counters.unicast_unsupported);
    out->unicast_unmatched = atomic_load(&ctx->counters.unicast_unmatched);
    out->unicast_corrupt = uim.corrupt_connections;
    out->unicast_refused = uim.refused;
    out->unicast_unsent = uim.msgs_dropped;
    struct um_udp_rcv_counts udp;
    um_rcv_sessions_udp_counts(ctx->rcv_sessions, &udp);
    out->udp_unknown = udp.lbtrm_unknown + udp.lbtru_unknown;
    out->udp_foreign = udp.foreign;
    out->udp_oversized = udp.oversized;
    out->udp_kernel_drops = udp.kernel_drops;
    out->udp_read_errors = udp.read_errors;
    out->udp_unsent = udp.unsent;
    out->udp_injected = udp.injected;
    return 0;
}

int um_context_stats(lbm_context_t *ctx, um_context_stats_t *stats)
{
    if (um_context_check_messaging(ctx, "um_context_stats") != 0 || check_stats(stats, "um_context_stats") != 0) {
        return -1;
    }
    struct context_call call = {ctx, stats};
    memset(stats, 0, sizeof *stats);
    return um_loop_call(ctx->loop, context_stats_on_loop, &call);
}
