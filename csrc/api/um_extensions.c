/* um.h: how many sources are ready and waiting for them; what became of the messages of sources, receivers and
 * contexts. No state; application threads. Readiness of sources is in lbm_source.c. */
#include <lbm/um.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "api/um_sized.h"
#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_timer.h"
#include "core/um_context.h"
#include "core/um_immediate.h"
#include "core/um_uim.h"
#include "core/um_join_retries.h"
#include "core/um_mim_receiver.h"
#include "core/um_receiver.h"
#include "core/um_request.h"
#include "core/um_rcv_hearsay.h"
#include "core/um_rcv_joins.h"
#include "core/um_retransmission.h"
#include "core/um_source.h"
#include "core/um_xsp.h"
#include "net/um_loop.h"

int um_rcv_ready(lbm_rcv_t *rcv)
{
    if (um_receiver_check(rcv, "um_rcv_ready") != 0) {
        return -1;
    }
    return um_receiver_ready_sources(rcv);
}

static int check_wait(const struct lbm_context_t_stct *ctx, int sources, int timeout_ms, const char *api)
{
    if (sources < 0 || timeout_ms < 0) {
        return um_error(UM_EINVAL, "CoreApi-9014-1", "%s: sources %d and timeout_ms %d: must be 0 or more", api,
                        sources, timeout_ms);
    }
    if (um_loop_in_family(ctx->loop)) {
        return um_error(UM_EOP, "CoreApi-9014-2",
                        "%s: must not be called on the context thread; call it from another thread", api);
    }
    return 0;
}

int um_rcv_wait_ready(lbm_rcv_t *rcv, int sources, int timeout_ms)
{
    static const char api[] = "um_rcv_wait_ready";
    if (um_receiver_check(rcv, api) != 0 || check_wait(um_receiver_context(rcv), sources, timeout_ms, api) != 0) {
        return -1;
    }
    return um_receiver_wait_ready(rcv, sources, timeout_ms);
}

int um_wildcard_rcv_ready(lbm_wildcard_rcv_t *wrcv)
{
    return um_wildcard_check(wrcv, "um_wildcard_rcv_ready") == 0 ? um_wildcard_ready_sources(wrcv) : -1;
}

int um_wildcard_rcv_wait_ready(lbm_wildcard_rcv_t *wrcv, int sources, int timeout_ms)
{
    static const char api[] = "um_wildcard_rcv_wait_ready";
    if (um_wildcard_check(wrcv, api) != 0 || check_wait(um_wildcard_context(wrcv), sources, timeout_ms, api) != 0) {
        return -1;
    }
    return um_wildcard_wait_ready(wrcv, sources, timeout_ms);
}

int um_src_stats_sized(lbm_src_t *src, um_src_stats_t *stats, size_t size)
{
    if (um_source_check(src, "um_src_stats") != 0 || um_sized_check(stats, size, "um_src_stats") != 0) {
        return -1;
    }
    struct um_src_counts counts;
    um_src_stream_counts(&src->stream, &counts);
    um_src_stats_t all = {
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
        .session_strangers = counts.drops.strangers,
        .session_unopened = counts.drops.unopened,
    };
    um_sized_copy(stats, size, &all, sizeof all);
    return 0;
}

#define NAKS_MAX 257 /* what a session remembers */

int um_src_naks_sized(lbm_src_t *src, um_src_naks_t *naks, size_t size, int *count)
{
    if (um_source_check(src, "um_src_naks") != 0) {
        return -1;
    }
    if (count == NULL || *count < 0 || (*count > 0 && (naks == NULL || size == 0))) {
        return um_error(UM_EINVAL, "CoreApi-9014-4",
                        "um_src_naks: count must be 0 or more, and naks have room for as many");
    }
    struct um_src_nak_count found[NAKS_MAX];
    int there = um_src_stream_naks(&src->stream, found, NAKS_MAX);
    uint64_t now = um_clock_ns();
    for (int i = 0; i < there && i < *count; i++) {
        char ip[INET_ADDRSTRLEN];
        um_src_naks_t row = {.nak_packets = found[i].packets,
                             .naks = found[i].naks,
                             .idle_ms = now > found[i].last_ns ? (now - found[i].last_ns) / UM_NS_PER_MS : 0};
        if (found[i].ip == 0) {
            snprintf(row.receiver, sizeof row.receiver, "others");
        } else {
            inet_ntop(AF_INET, &found[i].ip, ip, sizeof ip);
            snprintf(row.receiver, sizeof row.receiver, "%s:%u", ip, found[i].port);
        }
        um_sized_copy((char *)naks + (size_t)i * size, size, &row, sizeof row);
    }
    *count = there;
    return 0;
}

int um_rcv_stats_sized(lbm_rcv_t *rcv, const char *source, um_rcv_stats_t *stats, size_t size)
{
    if (um_receiver_check(rcv, "um_rcv_stats") != 0 || um_sized_check(stats, size, "um_rcv_stats") != 0) {
        return -1;
    }
    um_rcv_stats_t all;
    if (um_receiver_counts(rcv, source, &all) != 0) {
        return -1;
    }
    um_sized_copy(stats, size, &all, sizeof all);
    return 0;
}

int um_wildcard_rcv_stats_sized(lbm_wildcard_rcv_t *wrcv, um_rcv_stats_t *stats, size_t size)
{
    if (um_wildcard_check(wrcv, "um_wildcard_rcv_stats") != 0 ||
        um_sized_check(stats, size, "um_wildcard_rcv_stats") != 0) {
        return -1;
    }
    um_rcv_stats_t all;
    if (um_wildcard_counts(wrcv, &all) != 0) {
        return -1;
    }
    um_sized_copy(stats, size, &all, sizeof all);
    return 0;
}

int um_wildcard_rcv_transport_stats(lbm_wildcard_rcv_t *wrcv, int *num, lbm_rcv_transport_stats_t *stats)
{
    static const char api[] = "um_wildcard_rcv_transport_stats";
    if (um_wildcard_check(wrcv, api) != 0) {
        return -1;
    }
    if (num == NULL || *num < 0 || (stats == NULL && *num > 0)) {
        return um_error(UM_EINVAL, "CoreApi-9014-5",
                        "%s: num must point to a number that is 0 or more, and stats have room for as many", api);
    }
    return um_wildcard_stats_all(wrcv, num, stats);
}

static void add_retransmissions(const lbm_context_t *ctx, um_context_stats_t *out)
{
    struct um_retransmitter_stats stats = um_retransmissions_stats(ctx->retransmissions);
    out->retransmit_requests = stats.requests;
    out->retransmit_sent = stats.retransmitted;
    out->retransmit_bytes = stats.bytes;
    out->retransmit_waiting = stats.waiting;
    for (int why = 0; why < UM_RETRANSMITTER_DROPS; why++) {
        out->retransmit_refused += stats.drops[why];
    }
}

static void add_mim(const lbm_context_t *ctx, um_context_stats_t *out)
{
    struct um_mim_receiver_counts counts;
    if (ctx->mim_receiver == NULL) {
        return;
    }
    um_mim_receiver_counts(ctx->mim_receiver, &counts);
    out->mim_senders = counts.senders;
    out->mim_silent = counts.unproved;
    out->mim_replaced = counts.replaced;
    out->mim_refused = counts.refused;
    out->mim_foreign = counts.foreign;
    out->mim_duplicates = counts.duplicates;
    out->mim_ended = counts.ended;
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
    struct um_resolver_discards resolver;
    um_resolver_discards(ctx->resolver, &resolver);
    out->resolver_unknown_sender = resolver.unknown_sender;
    out->resolver_refused_patterns = resolver.refused_patterns;
    out->resolver_cache_full = resolver.cache_refused;
    out->resolver_cache_expired = resolver.cache_expired;
    out->resolver_answers_deferred = resolver.answers_deferred;
    struct um_resolver_service_stats services;
    um_resolver_service_stats(ctx->resolver, &services);
    out->services_connected = services.connected;
    out->services_lost = services.lost;
    out->services_failed = services.failed;
    out->service_records_sent = services.records_sent;
    out->service_sources = services.sources;
    out->service_ends = services.ends;
    out->service_ignored = services.ignored;
    out->service_invalid = services.invalid;
    out->unicast_unsupported = atomic_load(&ctx->counters.unicast_unsupported);
    out->unicast_unmatched = atomic_load(&ctx->counters.unicast_unmatched);
    out->immediate_dropped = um_immediate_dropped(ctx->immediates);
    struct um_uim_stats uim;
    um_uim_stats(ctx->uim, &uim);
    out->immediate_fragments = uim.uim_fragments;
    struct um_join_retries_stats retries;
    um_join_retries_stats(ctx->join_retries, &retries);
    out->joins_failed = retries.failed;
    out->joins_waiting = retries.waiting;
    out->joins_refused = retries.refused;
    struct um_rcv_joins_stats joins;
    um_rcv_joins_stats(ctx->rcv_joins, &joins);
    out->matches_deferred = ctx->matches_deferred;
    out->joins_under_way = joins.under_way;
    out->joins_deferred = joins.deferred;
    out->joins_forgotten = joins.forgotten;
    out->joins_yielded = joins.yielded;
    struct um_rcv_hearsay_stats hearsay;
    um_rcv_hearsay_stats(ctx->rcv_hearsay, &hearsay);
    out->joins_excess = joins.refused + hearsay.displaced;
    struct um_request_counts responses;
    um_requests_counts(ctx->requests, &responses);
    out->responses_delivered = responses.delivered;
    out->responses_unknown = responses.unknown;
    out->responses_malformed = responses.malformed;
    out->responses_unfinished = responses.unfinished;
    add_retransmissions(ctx, out);
    add_mim(ctx, out);
    return 0;
}

/* What the loops of its XSPs count as well. */
static int context_stats_on_lane(struct um_rcv_lane *lane, void *arg)
{
    um_context_stats_t *out = arg;
    struct um_unicast_stats unicast = {0};
    struct um_rcv_datagram_counts udp = {0};
    um_unicast_stats(um_xsp_unicast(lane), &unicast);
    um_rcv_sessions_add_counts(lane->sessions, UM_RCV_EVERY_TYPE, &udp);
    out->unicast_malformed += unicast.msgs_malformed;
    out->unicast_foreign += unicast.msgs_foreign;
    out->unicast_corrupt += unicast.corrupt_connections;
    out->unicast_refused += unicast.refused;
    out->unicast_unsent += unicast.msgs_dropped;
    out->unicast_displaced += unicast.displaced;
    out->unicast_expired += unicast.expired;
    out->unicast_no_destination += unicast.destinations_refused;
    out->unicast_duplicates += unicast.msgs_duplicate;
    out->udp_unknown += udp.unjoined;
    out->udp_foreign += udp.foreign;
    out->udp_oversized += udp.oversized;
    out->udp_kernel_drops += udp.kernel_drops;
    out->udp_read_errors += udp.read_errors;
    out->udp_unsent += udp.unsent;
    out->udp_injected += udp.injected;
    out->udp_false_leads += udp.false_leads;
    struct um_recovery_stats recovery = um_rcv_recoveries_stats(&lane->recoveries);
    out->recovery_requests += recovery.asked + recovery.repeated;
    out->recovery_received += recovery.recovered;
    out->recovery_unasked += lane->recoveries.unasked;
    out->recovery_timed_out += recovery.timed_out;
    return 0;
}

int um_context_stats_sized(lbm_context_t *ctx, um_context_stats_t *stats, size_t size)
{
    if (um_context_check_messaging(ctx, "um_context_stats") != 0 ||
        um_sized_check(stats, size, "um_context_stats") != 0) {
        return -1;
    }
    um_context_stats_t all = {0};
    struct context_call call = {ctx, &all};
    if (um_loop_call(ctx->loop, context_stats_on_loop, &call) != 0 ||
        um_rcv_lanes_each(ctx, context_stats_on_lane, &all) != 0) {
        return -1;
    }
    um_sized_copy(stats, size, &all, sizeof all);
    return 0;
}
