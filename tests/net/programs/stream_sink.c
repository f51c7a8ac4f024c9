/* Receives what stream_source sends and checks every message, for the network tests.
 *
 *   stream_sink -c FILE [-t TOPIC] [-n MESSAGES] [-i MS] [-a] [-u US] [-x]
 *
 * -n N   end when numbers 0 to N-1 of a source have all been delivered or reported as lost
 * -i MS  print "progress SECONDS DELIVERED LOST AWAITED" at this interval (SECONDS of CLOCK_MONOTONIC; AWAITED: the
 *        next number of the source that spoke last)
 * -a     arrival order: messages may overtake each other
 * -u US  spend so long on every message
 * -x     receive on an XSP
 *
 * SIGUSR1: print "latency" with the percentiles since the last time, as a JSON text, at the next message.
 *
 * SIGUSR2: NAKs off (lbm_context_set_nak_cutoff), the next time on; prints "naks off" and "naks on".
 *
 * Prints "begin SOURCE" and "end SOURCE" for the events of sessions; at the end (SIGTERM too) "final" with a JSON text.
 * Every number must be delivered or reported, once, in order, except those "away" between the end of a session and its
 * next beginning: "unreported" counts numbers passed over without a word,
 * "misreported" loss events that name another number than the one that is missing, "repeated" and "disorder" deliveries
 * of numbers that had their turn (seen before, or not), "mixed" messages of another process in a session. */
#include <signal.h>
#include <lbm/um.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "stream.h"

enum { SOURCES = 8, RANGES = 4096 };

struct range {
    uint64_t first, last;
};

/* One session; written on the context's thread only, read by main() after it has been deleted. */
struct source_state {
    char name[256];
    uint64_t stream, next, delivered, lost_single, lost_burst, bursts;
    uint64_t away, unreported, misreported, repeated, disorder, mixed, corrupt, begins, ends;
    uint32_t sqn_of_number_0;
    bool started, in_burst, rejoined;
    uint64_t last_ns, longest_pause_ns;
    uint8_t *seen; /* bits */
    uint64_t seen_room;
    struct range missing[RANGES];
    size_t missing_used;
};

static struct {
    const char *config, *topic;
    uint64_t messages;
    unsigned progress_ms, spend_us;
    bool arrival_order, on_xsp;
} options = {.topic = STREAM_TOPIC};

static struct source_state *sources[SOURCES];
static size_t sources_used;
static struct stream_histogram latency;
static atomic_uint_fast64_t delivered, lost, awaited; /* awaited: the next number of whoever spoke last */
static atomic_int done, latency_wanted, cutoff_wanted;
static lbm_xsp_t *xsp;      /* with -x */
static unsigned xsp_begins; /* sessions that began on the thread of an XSP; written there */

static void on_usr1(int number)
{
    (void)number;
    atomic_store(&latency_wanted, 1);
}

static void on_usr2(int number)
{
    (void)number;
    atomic_store(&cutoff_wanted, 1);
}

static void on_term(int number)
{
    (void)number;
    atomic_store(&done, 1);
}

static struct source_state *state_of(const char *name)
{
    for (size_t i = 0; i < sources_used; i++) {
        if (strcmp(sources[i]->name, name) == 0) {
            return sources[i];
        }
    }
    if (sources_used == SOURCES) {
        fprintf(stderr, "more than %d sources\n", SOURCES);
        exit(1);
    }
    struct source_state *state = calloc(1, sizeof *state);
    snprintf(state->name, sizeof state->name, "%s", name);
    sources[sources_used++] = state;
    return state;
}

static bool mark_seen(struct source_state *state, uint64_t number)
{
    if (number >= state->seen_room) {
        uint64_t room = (number + 1) * 2 + 65536;
        state->seen = realloc(state->seen, room / 8 + 1);
        memset(state->seen + state->seen_room / 8, 0, room / 8 + 1 - state->seen_room / 8);
        state->seen_room = room / 8 * 8;
    }
    uint8_t bit = (uint8_t)(1u << number % 8), *byte = &state->seen[number / 8];
    bool before = (*byte & bit) != 0;
    *byte |= bit;
    return before;
}

static void add_missing(struct source_state *state, uint64_t first, uint64_t last)
{
    struct range *newest = state->missing_used > 0 ? &state->missing[state->missing_used - 1] : NULL;
    if (newest != NULL && newest->last + 1 == first) {
        newest->last = last;
    } else if (state->missing_used < RANGES) {
        state->missing[state->missing_used++] = (struct range){first, last};
    }
}

static void finish_if_complete(const struct source_state *state)
{
    atomic_store(&awaited, state->next);
    if (options.messages != 0 && state->next >= options.messages) {
        atomic_store(&done, 1);
    }
}

/* Numbers from next to before `number` were not delivered. */
static void pass_over(struct source_state *state, uint64_t number)
{
    uint64_t count = number - state->next;
    if (count == 0) {
        return;
    }
    add_missing(state, state->next, number - 1);
    if (state->rejoined) {
        state->away += count;
    } else if (state->in_burst) {
        state->lost_burst += count;
        atomic_fetch_add_explicit(&lost, count, memory_order_relaxed);
    } else {
        state->unreported += count;
    }
    state->next = number;
}

static void measure(struct source_state *state, uint64_t due_ns)
{
    uint64_t now = stream_now_ns();
    if (atomic_load_explicit(&latency_wanted, memory_order_relaxed) != 0) {
        atomic_store(&latency_wanted, 0);
        flockfile(stdout); /* no log line of another thread in between */
        printf("latency {\"messages\": %lu, ", latency.total);
        stream_print_histogram("latency_us", &latency);
        printf("}\n");
        fflush(stdout);
        funlockfile(stdout);
        latency = (struct stream_histogram){0};
    }
    stream_histogram_add(&latency, now > due_ns ? now - due_ns : 0);
    if (state->last_ns != 0 && now - state->last_ns > state->longest_pause_ns) {
        state->longest_pause_ns = now - state->last_ns;
    }
    state->last_ns = now;
    while (options.spend_us != 0 && stream_now_ns() < now + options.spend_us * 1000u) {
    }
}

static void on_data(struct source_state *state, const lbm_msg_t *msg)
{
    struct stream_header header;
    if (!stream_good(msg->data, msg->len, &header)) {
        state->corrupt++;
        return;
    }
    if (!state->started) {
        state->started = true;
        state->stream = header.stream;
        state->sqn_of_number_0 = msg->sequence_number - (uint32_t)header.number;
        state->next = options.messages != 0 ? state->next : header.number;
    }
    state->mixed +=
        header.stream != state->stream || msg->sequence_number - (uint32_t)header.number != state->sqn_of_number_0;
    state->delivered++;
    atomic_fetch_add_explicit(&delivered, 1, memory_order_relaxed);
    measure(state, header.due_ns);
    bool again = mark_seen(state, header.number);
    if (again) {
        state->repeated++;
    } else if (header.number < state->next) {
        state->disorder += !options.arrival_order;
    } else if (options.arrival_order) {
        state->next = header.number + 1;
    } else {
        pass_over(state, header.number);
        state->next = header.number + 1;
    }
    state->in_burst = false;
    state->rejoined = false;
    finish_if_complete(state);
}

static void on_loss(struct source_state *state, const lbm_msg_t *msg, bool burst)
{
    uint64_t number = msg->sequence_number - state->sqn_of_number_0;
    if (options.arrival_order) {
        state->lost_single++;
        return;
    }
    if (number != state->next) {
        state->misreported++;
        return;
    }
    if (burst) {
        state->bursts++;
        state->in_burst = true;
        return;
    }
    add_missing(state, number, number);
    state->lost_single++;
    state->next++;
    atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
    finish_if_complete(state);
}

static bool on_thread_of_xsp(void)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    return strncmp(name, "xsp:", 4) == 0;
}

static int on_message(lbm_rcv_t *rcv, lbm_msg_t *msg, void *clientd)
{
    struct source_state *state = state_of(msg->source);
    (void)rcv;
    (void)clientd;
    switch (msg->type) {
    case LBM_MSG_DATA:
        on_data(state, msg);
        break;
    case LBM_MSG_UNRECOVERABLE_LOSS:
    case LBM_MSG_UNRECOVERABLE_LOSS_BURST:
        on_loss(state, msg, msg->type == LBM_MSG_UNRECOVERABLE_LOSS_BURST);
        break;
    case LBM_MSG_BOS:
    case LBM_MSG_EOS:
        state->rejoined = msg->type == LBM_MSG_BOS && state->ends > 0;
        state->begins += msg->type == LBM_MSG_BOS;
        xsp_begins += msg->type == LBM_MSG_BOS && on_thread_of_xsp();
        state->ends += msg->type == LBM_MSG_EOS;
        printf("%s %s\n", msg->type == LBM_MSG_BOS ? "begin" : "end", msg->source);
        fflush(stdout);
        break;
    default:
        printf("event %d of %s\n", msg->type, msg->source);
        fflush(stdout);
        break;
    }
    return 0;
}

#define PRINT_COMMON(member)                                                                                           \
    printf("\"msgs_rcved\": %lu, \"nak_pckts_sent\": %lu, \"naks_sent\": %lu, \"lost\": %lu, \"ncfs_ignored\": %lu, "  \
           "\"ncfs_shed\": %lu, \"ncfs_rx_delay\": %lu, \"ncfs_unknown\": %lu, \"nak_stm_max\": %lu, "                 \
           "\"nak_tx_max\": %lu, \"duplicate_data\": %lu, \"unrecovered_txw\": %lu, \"unrecovered_tmo\": %lu",         \
           (member)->msgs_rcved, (member)->nak_pckts_sent, (member)->naks_sent, (member)->lost,                        \
           (member)->ncfs_ignored, (member)->ncfs_shed, (member)->ncfs_rx_delay, (member)->ncfs_unknown,               \
           (member)->nak_stm_max, (member)->nak_tx_max, (member)->duplicate_data, (member)->unrecovered_txw,           \
           (member)->unrecovered_tmo)

static void print_transport(const lbm_rcv_transport_stats_t *stats, int count)
{
    printf("\"transport\": [");
    for (int i = 0; i < count; i++) {
        printf("%s{\"source\": \"%s\", ", i == 0 ? "" : ", ", stats[i].source);
        if (stats[i].type == LBM_TRANSPORT_STAT_LBTRM) {
            PRINT_COMMON(&stats[i].transport.lbtrm);
            printf(", \"out_of_order\": %lu", stats[i].transport.lbtrm.out_of_order);
        } else if (stats[i].type == LBM_TRANSPORT_STAT_LBTRU) {
            PRINT_COMMON(&stats[i].transport.lbtru);
        } else {
            printf("\"bytes_rcved\": %lu", stats[i].transport.tcp.bytes_rcved);
        }
        printf("}");
    }
    printf("]");
}

static void print_sources(void)
{
    printf("\"sources\": [");
    for (size_t i = 0; i < sources_used; i++) {
        const struct source_state *state = sources[i];
        printf("%s{\"source\": \"%s\", \"delivered\": %lu, \"next\": %lu, \"lost_single\": %lu, \"lost_burst\": %lu, "
               "\"bursts\": %lu, \"away\": %lu, \"unreported\": %lu, \"misreported\": %lu, \"repeated\": %lu, "
               "\"disorder\": %lu, "
               "\"mixed\": %lu, \"corrupt\": %lu, \"begins\": %lu, \"ends\": %lu, \"longest_pause_ms\": %.1f, "
               "\"missing\": [",
               i == 0 ? "" : ", ", state->name, state->delivered, state->next, state->lost_single, state->lost_burst,
               state->bursts, state->away, state->unreported, state->misreported, state->repeated, state->disorder,
               state->mixed, state->corrupt, state->begins, state->ends, (double)state->longest_pause_ns / 1e6);
        for (size_t at = 0; at < state->missing_used; at++) {
            printf("%s[%lu, %lu]", at == 0 ? "" : ", ", state->missing[at].first, state->missing[at].last);
        }
        printf("]}");
    }
    printf("]");
}

static void parse(int argc, char **argv)
{
    for (int option; (option = getopt(argc, argv, "t:c:n:i:au:x")) != -1;) {
        switch (option) {
        case 'c':
            options.config = optarg;
            break;
        case 't':
            options.topic = optarg;
            break;
        case 'n':
            options.messages = strtoull(optarg, NULL, 10);
            break;
        case 'i':
            options.progress_ms = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'a':
            options.arrival_order = true;
            break;
        case 'x':
            options.on_xsp = true;
            break;
        case 'u':
            options.spend_us = (unsigned)strtoul(optarg, NULL, 10);
            break;
        default:
            exit(2);
        }
    }
    if (options.config == NULL) {
        fprintf(stderr, "-c FILE is needed\n");
        exit(2);
    }
}

static lbm_xsp_t *map_to_xsp(lbm_context_t *ctx, lbm_new_transport_info_t *info, void *clientd)
{
    (void)ctx, (void)info, (void)clientd;
    return xsp;
}

static lbm_context_t *open_context(void)
{
    lbm_context_t *ctx;
    lbm_context_attr_t *attr;
    lbm_transport_mapping_func_t mapping = {map_to_xsp, NULL};
    stream_check(lbm_context_attr_create(&attr), "lbm_context_attr_create");
    stream_check(lbm_context_attr_setopt(attr, "transport_mapping_function", &mapping, sizeof mapping), "mapping");
    stream_check(lbm_context_create(&ctx, attr, NULL, NULL), "lbm_context_create");
    stream_check(lbm_context_attr_delete(attr), "lbm_context_attr_delete");
    if (options.on_xsp) {
        stream_check(lbm_xsp_create(&xsp, ctx, NULL, NULL), "lbm_xsp_create");
    }
    return ctx;
}

static void change_cutoff(lbm_context_t *ctx)
{
    static bool off;
    off = !off;
    int flag = off ? LBM_NAK_CUTOFF_FLAG_DISABLE_NAKS : LBM_NAK_CUTOFF_FLAG_ENABLE_NAKS;
    stream_check(lbm_context_set_nak_cutoff(ctx, flag), "lbm_context_set_nak_cutoff");
    printf("naks %s\n", off ? "off" : "on");
    fflush(stdout);
}

static void wait_for_the_end(lbm_context_t *ctx)
{
    unsigned step_ms = options.progress_ms != 0 ? options.progress_ms : 10;
    while (!atomic_load(&done)) {
        usleep(step_ms * 1000);
        if (atomic_exchange(&cutoff_wanted, 0) != 0) {
            change_cutoff(ctx);
        }
        if (options.progress_ms != 0) {
            printf("progress %.3f %lu %lu %lu\n", (double)stream_now_ns() / 1e9, atomic_load(&delivered),
                   atomic_load(&lost), atomic_load(&awaited));
            fflush(stdout);
        }
    }
}

int main(int argc, char **argv)
{
    static um_rcv_stats_t stats;
    static lbm_rcv_transport_stats_t transport[SOURCES];
    int count = SOURCES;
    lbm_topic_t *topic;
    lbm_rcv_t *rcv;
    parse(argc, argv);
    struct sigaction action = {.sa_handler = on_term};
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = on_usr1;
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = on_usr2;
    sigaction(SIGUSR2, &action, NULL);
    stream_check(lbm_log(stream_log, NULL), "lbm_log");
    stream_check(lbm_config(options.config), "lbm_config");
    lbm_context_t *ctx = open_context();
    stream_check(lbm_rcv_topic_lookup(&topic, ctx, options.topic, NULL), "lbm_rcv_topic_lookup");
    stream_check(lbm_rcv_create(&rcv, ctx, topic, on_message, NULL, NULL), "lbm_rcv_create");
    printf("created\n");
    fflush(stdout);
    wait_for_the_end(ctx);
    stream_check(um_rcv_stats(rcv, NULL, &stats), "um_rcv_stats");
    stream_check(lbm_rcv_retrieve_all_transport_stats(rcv, &count, transport), "lbm_rcv_retrieve_all_transport_stats");
    stream_check(lbm_rcv_delete(rcv), "lbm_rcv_delete");
    stream_check(options.on_xsp ? lbm_xsp_delete(xsp) : 0, "lbm_xsp_delete");
    stream_check(lbm_context_delete(ctx), "lbm_context_delete"); /* from now on nobody else prints */
    printf("final {\"xsp_begins\": %u, \"um_missing\": %lu, \"um_lost\": %lu, \"um_discarded\": %lu, "
           "\"um_duplicates\": %lu, ",
           xsp_begins, stats.missing, stats.lost, stats.discarded, stats.duplicates);
    print_transport(transport, count);
    printf(", ");
    stream_print_histogram("latency_us", &latency);
    printf(", ");
    print_sources();
    printf("}\n");
    return 0;
}
