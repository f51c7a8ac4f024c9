/* Rules that involve several options of one object, and the once-per-process warnings about options that do not act.
 * Called when an object is created, with its final options. Any thread; the only state is the warned flags. */
#include "config/um_option_checks.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "config/um_option_value.h"

/* ---- once per option and process ---- */

enum warning { WARNED_INACTIVE = 1, WARNED_DEPRECATED = 2, WARNED_RAISED = 4 };
enum { MOST_ROWS = 512 };

static atomic_uchar warned[UM_SCOPE_COUNT][MOST_ROWS];

/* True the first time only. */
static bool first_time(const struct um_option *option, enum warning warning)
{
    size_t row = um_option_index(option);
    return row < MOST_ROWS &&
           (atomic_fetch_or(&warned[option->scope][row], (unsigned char)warning) & (unsigned char)warning) == 0;
}

/* ---- once per value and process ---- */

enum { MOST_TOLD = 64 };

static _Atomic uint64_t told[MOST_TOLD]; /* hashes of id and values; 0: free */
static atomic_uint next_told;

/* True the first time that the notice `id` is about these values, so that a thousand objects made alike say it once.
 * More than 64 combinations replace the oldest ones. */
static bool first_with(const char *id, uint64_t a, uint64_t b)
{
    const uint64_t values[] = {a, b};
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (const char *c = id; *c != '\0'; c++) {
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    }
    for (size_t i = 0; i < sizeof values; i++) {
        hash = (hash ^ ((const unsigned char *)values)[i]) * 0x100000001b3u;
    }
    for (int i = 0; i < MOST_TOLD; i++) {
        if (atomic_load_explicit(&told[i], memory_order_relaxed) == hash) {
            return false;
        }
    }
    unsigned slot = atomic_fetch_add_explicit(&next_told, 1, memory_order_relaxed) % MOST_TOLD;
    atomic_store_explicit(&told[slot], hash, memory_order_relaxed);
    return true;
}

void um_option_warnings_reset(void)
{
    for (int i = 0; i < MOST_TOLD; i++) {
        atomic_store(&told[i], 0);
    }
    for (int scope = 0; scope < UM_SCOPE_COUNT; scope++) {
        for (size_t row = 0; row < MOST_ROWS; row++) {
            atomic_store(&warned[scope][row], 0);
        }
    }
}

void um_option_warn_no_effect(const struct um_option *option)
{
    if (option->status == UM_STATUS_NO_EFFECT && first_time(option, WARNED_INACTIVE)) {
        um_log(UM_LOG_NOTICE, "Core-9020-1", "%s option %s is accepted for existing programs and has no effect",
               um_scope_name(option->scope), option->name);
    }
}

void um_option_warn_raised(const struct um_option *option)
{
    if (first_time(option, WARNED_RAISED)) {
        um_log(UM_LOG_WARNING, "Core-9020-3", "%s option %s: set below its documented minimum; %s %s is used",
               um_scope_name(option->scope), option->name, option->minimum, option->units);
    }
}

static void warn_not_yet(enum um_option_scope scope, const char *names)
{
    um_log(UM_LOG_WARNING, "Core-9020-2",
           "%s options set whose features are not part of this version; the values are kept and not used: %s",
           um_scope_name(scope), names);
}

void um_option_warn_not_yet(const struct um_option *option)
{
    if (first_time(option, WARNED_INACTIVE)) {
        warn_not_yet(option->scope, option->name);
    }
}

/* Names joined to lines that the log does not cut. */
struct name_line {
    enum um_option_scope scope;
    char text[1600];
    size_t len;
    bool news; /* one of them is named for the first time */
};

static void end_line(struct name_line *line)
{
    if (line->news) {
        warn_not_yet(line->scope, line->text);
    }
    line->len = 0;
    line->news = false;
}

static void add_name(struct name_line *line, const struct um_option *option)
{
    if (line->len + strlen(option->name) + 3 > sizeof line->text) {
        end_line(line);
    }
    line->len += (size_t)snprintf(line->text + line->len, sizeof line->text - line->len, "%s%s",
                                  line->len > 0 ? ", " : "", option->name);
    line->news |= first_time(option, WARNED_INACTIVE);
}

void um_options_warn_inactive(enum um_option_scope scope, const void *options, const void *defaults)
{
    struct name_line line = {.scope = scope};
    size_t rows;
    const struct um_option *table = um_option_table(scope, &rows);
    for (size_t i = 0; i < rows; i++) {
        const struct um_option *option = &table[i];
        if (option->alias_of != NULL || option->status == UM_STATUS_ACTS ||
            um_option_equal(option, um_option_const_field(option, options), um_option_const_field(option, defaults))) {
            continue;
        }
        um_option_warn_no_effect(option);
        if (option->status == UM_STATUS_NOT_YET) {
            add_name(&line, option);
        }
    }
    end_line(&line);
}

void um_option_warn_deprecated(const struct um_option *option)
{
    if ((option->flags & UM_OPT_DEPRECATED) == 0 || !first_time(option, WARNED_DEPRECATED)) {
        return;
    }
    const char *successor = um_option_successor(option);
    if (successor != NULL) {
        um_log(UM_LOG_WARNING, "Core-5688-27", "WARNING: %s config variable %s is deprecated. Use %s instead.",
               um_scope_name(option->scope), option->name, successor);
    } else {
        um_log(UM_LOG_WARNING, "Core-5688-28", "WARNING: %s config variable %s is deprecated.%s",
               um_scope_name(option->scope), option->name, option->status == UM_STATUS_ACTS ? "" : " Has no effect.");
    }
}

/* ---- contradictions ---- */

struct range {
    const char *id;
    const char *label;
    const char *low_name;
    const char *high_name;
    uint32_t low;
    uint32_t high;
};

static int check_range(const struct range *range)
{
    if (range->low <= range->high) {
        return 0;
    }
    return um_error(UM_EINVAL, range->id,
                    "%s: Configured %s (%u) is greater than configured %s (%u): lower the first or raise the second",
                    range->label, range->low_name, range->low, range->high_name, range->high);
}

#define UM_RANGE(id, label, options, name)                                                                             \
    {                                                                                                                  \
        id, label, #name "_low", #name "_high", (options)->name##_low, (options)->name##_high                          \
    }

static int check_context_ranges(const struct um_context_options *o)
{
    const struct range ranges[] = {
        UM_RANGE("CoreApi-8812-1", "TCP request port", o, request_tcp_port),
        UM_RANGE("CoreApi-8812-2", "TCP transport", o, transport_tcp_port),
        UM_RANGE("CoreApi-8812-3", "Unicast resolver", o, resolver_unicast_port),
        UM_RANGE("CoreApi-8812-4", "LBT-RM transport", o, transport_lbtrm_source_port),
        UM_RANGE("CoreApi-8812-6", "LBT-RU transport", o, transport_lbtru_port),
        UM_RANGE("CoreApi-8812-7", "LBT-IPC transport", o, transport_lbtipc_id),
        UM_RANGE("CoreApi-8812-8", "LBT-RDMA transport", o, transport_lbtrdma_port),
        UM_RANGE("CoreApi-6976-119", "LBT-SMX transport", o, transport_lbtsmx_id),
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (check_range(&ranges[i]) != 0) {
            return -1;
        }
    }
    if (ntohl(o->transport_lbtrm_multicast_address_low.s_addr) >
        ntohl(o->transport_lbtrm_multicast_address_high.s_addr)) {
        char low[INET_ADDRSTRLEN], high[INET_ADDRSTRLEN];
        inet_ntop(AF_INET, &o->transport_lbtrm_multicast_address_low, low, sizeof low);
        inet_ntop(AF_INET, &o->transport_lbtrm_multicast_address_high, high, sizeof high);
        return um_error(UM_EINVAL, "CoreApi-8812-5",
                        "LBT-RM transport: Configured transport_lbtrm_multicast_address_low (%s) is greater than "
                        "configured transport_lbtrm_multicast_address_high (%s)",
                        low, high);
    }
    return 0;
}

static int check_context(const struct um_context_options *o)
{
    if (check_context_ranges(o) != 0) {
        return -1;
    }
    if (o->mim_sqn_window_size % o->mim_sqn_window_increment != 0) {
        return um_error(UM_EINVAL, "CoreApi-9020-18",
                        "context option mim_sqn_window_increment %lu: must divide mim_sqn_window_size %lu",
                        o->mim_sqn_window_increment, o->mim_sqn_window_size);
    }
    if (o->request_tcp_reuseaddr == 1 && o->request_tcp_exclusiveaddr == 1 &&
        first_with("Core-5688-3228", UM_SCOPE_CONTEXT, 0)) {
        um_log(
            UM_LOG_WARNING, "Core-5688-3228",
            "WARNING: request_tcp_reuseaddr and request_tcp_exclusiveaddr are both 1; the second has no effect here");
    }
    return 0;
}

/* Every group needs as many stores as it says. */
static int check_store_groups(const struct um_source_options *o)
{
    const lbm_ume_store_group_entry_t *groups = o->ume_store_group.items;
    const lbm_ume_store_entry_t *stores = o->ume_store.items;
    const lbm_ume_store_name_entry_t *names = o->ume_store_name.items;
    for (size_t g = 0; g < o->ume_store_group.count; g++) {
        size_t members = 0;
        for (size_t s = 0; s < o->ume_store.count; s++) {
            members += stores[s].group_index == groups[g].index;
        }
        for (size_t s = 0; s < o->ume_store_name.count; s++) {
            members += names[s].group_index == groups[g].index;
        }
        if (groups[g].group_size > members) {
            return um_error(UM_EINVAL, "CoreApi-5688-3151",
                            "source option ume_store_group %d:%d: only %zu stores are configured for the group",
                            groups[g].index, groups[g].group_size, members);
        }
    }
    return 0;
}

static int check_source(const struct um_source_options *o)
{
    if (o->ume_receiver_paced_persistence == 1 && o->ume_flight_size_bytes == 0) {
        return um_error(UM_EINVAL, "CoreApi-6020-14",
                        "source option ume_receiver_paced_persistence 1: needs ume_flight_size_bytes greater than 0");
    }
    if (o->retransmit_retention_size_limit < 8192 &&
        first_with("Core-5688-538", o->retransmit_retention_size_limit, 0)) {
        um_log(UM_LOG_WARNING, "Core-5688-538",
               "source option retransmit_retention_size_limit %zu is below 8192: at least one message is kept all the "
               "same",
               o->retransmit_retention_size_limit);
    }
    if (o->ume_flight_size > 1000000 && first_with("Core-11087-1", o->ume_flight_size, 0)) {
        um_log(UM_LOG_NOTICE, "Core-11087-1", "source option ume_flight_size %u is above 1000000", o->ume_flight_size);
    }
    if (o->transport_tcp_reuseaddr == 1 && o->transport_tcp_exclusiveaddr == 1 &&
        first_with("Core-5688-3228", UM_SCOPE_SOURCE, 0)) {
        um_log(UM_LOG_WARNING, "Core-5688-3228",
               "WARNING: transport_tcp_reuseaddr and transport_tcp_exclusiveaddr are both 1; the second has no effect "
               "here");
    }
    return check_store_groups(o);
}

static void warn_silent_loss(const char *id, const char *transport, lbm_ulong_t activity, lbm_ulong_t generation)
{
    if (activity < generation && first_with(id, activity, generation)) {
        um_log(UM_LOG_WARNING, id,
               "WARNING: %s_activity_timeout %lu is below %s_nak_generation_interval %lu: loss may go unreported",
               transport, activity, transport, generation);
    }
}

static int check_receiver(const struct um_receiver_options *o)
{
    const struct range ports = UM_RANGE("CoreApi-8812-9", "LBT-RU transport receiver", o, transport_lbtru_port);
    bool keepalive = o->transport_tcp_activity_method == 1;
    if (check_range(&ports) != 0) {
        return -1;
    }
    if (keepalive && o->transport_tcp_activity_timeout != 0 && o->transport_tcp_activity_timeout < 20000) {
        return um_error(
            UM_EINVAL, "CoreApi-9020-19",
            "receiver option transport_tcp_activity_timeout %lu: with transport_tcp_activity_method SO_KEEPALIVE "
            "it must be 0 or at least 20000",
            o->transport_tcp_activity_timeout);
    }
    warn_silent_loss("Core-5688-587", "transport_lbtrm", o->transport_lbtrm_activity_timeout,
                     o->transport_lbtrm_nak_generation_interval);
    warn_silent_loss("Core-5688-1795", "transport_lbtru", o->transport_lbtru_activity_timeout,
                     o->transport_lbtru_nak_generation_interval);
    if (o->ordered_delivery == 0 && o->ume_explicit_ack_only == 1 && first_with("Core-5688-3101", 0, 0)) {
        um_log(UM_LOG_NOTICE, "Core-5688-3101", "ordered_delivery 0 together with ume_explicit_ack_only 1");
    }
    return 0;
}

int um_options_check(enum um_option_scope scope, const void *options)
{
    switch (scope) {
    case UM_SCOPE_CONTEXT:
        return check_context(options);
    case UM_SCOPE_SOURCE:
        return check_source(options);
    case UM_SCOPE_RECEIVER:
        return check_receiver(options);
    default:
        return 0;
    }
}
