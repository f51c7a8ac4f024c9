/* The virtual network of the simulator. See sim_net.h. */
#include "sim_net.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/um_hash.h"
#include "base/um_log.h"

#define GROUPS 16
#define NOBODY -1

/* Payload shared by the deliveries of one multicast datagram. */
struct sim_payload {
    size_t refs;
    size_t len;
    uint8_t data[];
};

struct sim_event {
    int node; /* NOBODY: every member of `group` whose link is like all others */
    int from; /* NOBODY: timer */
    int group;
    uint64_t timer_generation;
    struct sim_payload *payload;
    bool arriving; /* at the host, which may be busy with others */
};

/* The heap holds times and places; the events themselves stay where they are. */
struct sim_place {
    uint64_t at_ns;
    uint64_t order_index; /* order << 24 | index: equal times are first come, first served */
};
#define EVENTS_MAX (1u << 24)

struct sim_node {
    sim_packet_fn on_packet;
    sim_timer_fn on_timer;
    void *arg;
    int island;
    bool stopped;
    int64_t clock_ns;      /* offset */
    uint64_t timer_due_ns; /* by its own clock */
    uint64_t timer_generation;
    const struct sim_impairment *impairment; /* NULL: as all others */
    struct sim_impairment own;
    bool bad;            /* a burst of losses goes on */
    uint64_t idle_at_ns; /* when its link has carried what waits */
    uint64_t free_at_ns; /* when the host has taken what waits */
};

struct sim_group {
    int *nodes;
    size_t count;
};

struct sim {
    uint64_t now_ns;
    uint64_t next_order;
    struct um_rng rng;
    struct sim_impairment impairment;
    struct sim_node *nodes;
    size_t node_count;
    struct sim_group groups[GROUPS];
    struct sim_place *heap;
    size_t heap_count, heap_capacity;
    struct sim_event *events;
    uint32_t *free_events;
    size_t event_count, free_count;
    sim_tap_fn tap;
    void *tap_arg;
    sim_invariant_fn invariant;
    void *invariant_arg;
    bool failed;
    uint64_t datagrams, bytes;
};

static void *need(void *ptr)
{
    if (ptr == NULL) {
        fprintf(stderr, "simulator: out of memory\n");
        abort();
    }
    return ptr;
}

struct sim *sim_create(uint64_t seed)
{
    static bool tuned;
    if (!tuned) { /* worlds come and go by the thousand: their memory stays in the process */
        mallopt(M_MMAP_THRESHOLD, 1 << 30);
        mallopt(M_TRIM_THRESHOLD, 1 << 30);
        tuned = true;
    }
    struct sim *sim = need(calloc(1, sizeof *sim));
    um_rng_seed(&sim->rng, seed);
    um_hash_set_key(seed, ~seed); /* the order in which tables are walked replays, too */
    um_log_begin_anew();          /* as does what is logged */
    sim->now_ns = SIM_SEC;        /* engines may treat time 0 as "never" */
    sim->impairment.delay_min_ns = sim->impairment.delay_max_ns = 50000;
    return sim;
}

static void drop_payload(struct sim_payload *payload)
{
    if (payload != NULL && --payload->refs == 0) {
        free(payload);
    }
}

void sim_destroy(struct sim *sim)
{
    for (size_t i = 0; i < sim->heap_count; i++) {
        drop_payload(sim->events[sim->heap[i].order_index % EVENTS_MAX].payload);
    }
    for (int i = 0; i < GROUPS; i++) {
        free(sim->groups[i].nodes);
    }
    free(sim->heap);
    free(sim->events);
    free(sim->free_events);
    free(sim->nodes);
    free(sim);
}

uint64_t sim_now(const struct sim *sim)
{
    return sim->now_ns;
}

struct um_rng *sim_rng(struct sim *sim)
{
    return &sim->rng;
}

int sim_add_node(struct sim *sim, sim_packet_fn on_packet, sim_timer_fn on_timer, void *arg)
{
    sim->nodes = need(realloc(sim->nodes, (sim->node_count + 1) * sizeof *sim->nodes));
    sim->nodes[sim->node_count] =
        (struct sim_node){.on_packet = on_packet, .on_timer = on_timer, .arg = arg, .timer_due_ns = UINT64_MAX};
    return (int)sim->node_count++;
}

/* ---- event heap ---- */

static bool before(const struct sim_place *a, const struct sim_place *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order_index < b->order_index;
}

static void grow(struct sim *sim)
{
    sim->heap_capacity = sim->heap_capacity == 0 ? 1024 : sim->heap_capacity * 2;
    if (sim->heap_capacity > EVENTS_MAX) {
        need(NULL);
    }
    sim->heap = need(realloc(sim->heap, sim->heap_capacity * sizeof *sim->heap));
    sim->events = need(realloc(sim->events, sim->heap_capacity * sizeof *sim->events));
    sim->free_events = need(realloc(sim->free_events, sim->heap_capacity * sizeof *sim->free_events));
}

static void push(struct sim *sim, uint64_t at_ns, struct sim_event event)
{
    if (sim->heap_count == sim->heap_capacity) {
        grow(sim);
    }
    uint32_t index = sim->free_count > 0 ? sim->free_events[--sim->free_count] : (uint32_t)sim->event_count++;
    struct sim_place place = {at_ns, sim->next_order++ << 24 | index};
    size_t i = sim->heap_count++;
    sim->events[index] = event;
    while (i > 0 && before(&place, &sim->heap[(i - 1) / 2])) {
        sim->heap[i] = sim->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    sim->heap[i] = place;
}

static struct sim_event pop(struct sim *sim)
{
    uint32_t index = (uint32_t)(sim->heap[0].order_index % EVENTS_MAX);
    struct sim_place last = sim->heap[--sim->heap_count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < sim->heap_count; i = child) {
        if (child + 1 < sim->heap_count && before(&sim->heap[child + 1], &sim->heap[child])) {
            child++;
        }
        if (!before(&sim->heap[child], &last)) {
            break;
        }
        sim->heap[i] = sim->heap[child];
    }
    if (sim->heap_count > 0) {
        sim->heap[i] = last;
    }
    sim->free_events[sim->free_count++] = index;
    return sim->events[index];
}

/* ---- nodes and links ---- */

uint64_t sim_node_now(const struct sim *sim, int node)
{
    return sim->now_ns + (uint64_t)sim->nodes[node].clock_ns;
}

static void schedule(struct sim *sim, int node)
{
    struct sim_node *n = &sim->nodes[node];
    n->timer_generation++;
    if (n->timer_due_ns != UINT64_MAX) {
        uint64_t now_ns = sim_node_now(sim, node);
        uint64_t wait_ns = n->timer_due_ns > now_ns ? n->timer_due_ns - now_ns : 0;
        push(sim, sim->now_ns + wait_ns,
             (struct sim_event){.node = node, .from = NOBODY, .timer_generation = n->timer_generation});
    }
}

void sim_set_timer(struct sim *sim, int node, uint64_t due_ns)
{
    if (due_ns != sim->nodes[node].timer_due_ns) {
        sim->nodes[node].timer_due_ns = due_ns;
        schedule(sim, node);
    }
}

void sim_jump_clock(struct sim *sim, int node, int64_t by_ns)
{
    sim->nodes[node].clock_ns += by_ns;
    schedule(sim, node);
}

void sim_join(struct sim *sim, int group, int node)
{
    struct sim_group *g = &sim->groups[group];
    g->nodes = need(realloc(g->nodes, (g->count + 1) * sizeof *g->nodes));
    g->nodes[g->count++] = node;
}

static double chance(struct sim *sim)
{
    return (double)(um_rng_u64(&sim->rng) >> 11) / 9007199254740992.0;
}

static bool happens(struct sim *sim, double probability)
{
    return probability > 0 && chance(sim) < probability;
}

static struct sim_payload *new_payload(const uint8_t *data, size_t len)
{
    struct sim_payload *payload = need(malloc(sizeof *payload + len));
    payload->refs = 1;
    payload->len = len;
    memcpy(payload->data, data, len);
    return payload;
}

/* Does the link to this node lose the datagram? */
static bool lost(struct sim *sim, struct sim_node *node, const struct sim_impairment *impairment)
{
    if (impairment->burst_begin > 0) {
        node->bad = node->bad ? !happens(sim, impairment->burst_end) : happens(sim, impairment->burst_begin);
    }
    return (impairment->burst_begin > 0 && node->bad) || happens(sim, impairment->loss);
}

/* The payload as it arrives: another one when a byte changed. Either is to be dropped by the caller. */
static struct sim_payload *carried(struct sim *sim, const struct sim_impairment *impairment,
                                   struct sim_payload *payload)
{
    if (payload->len == 0 || !happens(sim, impairment->corruption)) {
        payload->refs++;
        return payload;
    }
    struct sim_payload *changed = new_payload(payload->data, payload->len);
    changed->data[um_rng_range(&sim->rng, 0, payload->len - 1)] ^= (uint8_t)um_rng_range(&sim->rng, 1, 255);
    return changed;
}

/* What a link of limited rate adds to the delay; UINT64_MAX: its queue is full. */
static uint64_t queueing(struct sim *sim, struct sim_node *node, const struct sim_impairment *impairment, size_t len)
{
    if (impairment->rate_bps == 0) {
        return 0;
    }
    uint64_t idle_at_ns = node->idle_at_ns > sim->now_ns ? node->idle_at_ns : sim->now_ns;
    if ((idle_at_ns - sim->now_ns) * impairment->rate_bps / 8 / SIM_SEC + len > impairment->queue_bytes) {
        return UINT64_MAX;
    }
    node->idle_at_ns = idle_at_ns + len * 8 * SIM_SEC / impairment->rate_bps;
    return node->idle_at_ns - sim->now_ns;
}

static void deliver(struct sim *sim, int from, int to, struct sim_payload *payload)
{
    struct sim_node *node = &sim->nodes[to];
    const struct sim_impairment *impairment = node->impairment != NULL ? node->impairment : &sim->impairment;
    if (sim->nodes[from].island != node->island || lost(sim, node, impairment)) {
        return;
    }
    int copies = happens(sim, impairment->duplication) ? 2 : 1;
    while (copies-- > 0) {
        uint64_t waits = queueing(sim, node, impairment, payload->len);
        if (waits == UINT64_MAX) {
            return;
        }
        uint64_t delay = impairment->delay_min_ns == impairment->delay_max_ns
                             ? impairment->delay_min_ns
                             : um_rng_range(&sim->rng, impairment->delay_min_ns, impairment->delay_max_ns);
        delay += happens(sim, impairment->reordering) ? impairment->delay_max_ns : 0;
        push(sim, sim->now_ns + waits + delay,
             (struct sim_event){
                 .node = to, .from = from, .arriving = true, .payload = carried(sim, impairment, payload)});
    }
}

/* All members whose link is like all others hear it at one time: one event, their losses are drawn then. */
static bool at_one_time(const struct sim *sim)
{
    const struct sim_impairment *i = &sim->impairment;
    return i->reordering == 0 && i->delay_min_ns == i->delay_max_ns && i->rate_bps == 0 && i->packet_ns == 0;
}

static bool sending(struct sim *sim, int from, const uint8_t *data, size_t len)
{
    if (sim->nodes[from].stopped) {
        return false;
    }
    sim->datagrams++;
    sim->bytes += len;
    if (sim->tap != NULL) {
        sim->tap(sim->tap_arg, sim->now_ns, from, data, len);
    }
    return true;
}

void sim_multicast(struct sim *sim, int group, int from, const uint8_t *data, size_t len)
{
    if (!sending(sim, from, data, len) || happens(sim, sim->impairment.shared_loss)) {
        return;
    }
    struct sim_payload *payload = new_payload(data, len);
    struct sim_group *g = &sim->groups[group];
    bool together = at_one_time(sim);
    if (together) {
        payload->refs++;
        push(sim, sim->now_ns + sim->impairment.delay_min_ns,
             (struct sim_event){.node = NOBODY, .from = from, .group = group, .payload = payload});
    }
    for (size_t i = 0; i < g->count; i++) {
        if (!together || sim->nodes[g->nodes[i]].impairment != NULL) {
            deliver(sim, from, g->nodes[i], payload);
        }
    }
    drop_payload(payload);
}

void sim_unicast(struct sim *sim, int from, int to, const uint8_t *data, size_t len)
{
    if (!sending(sim, from, data, len)) {
        return;
    }
    struct sim_payload *payload = new_payload(data, len);
    deliver(sim, from, to, payload);
    drop_payload(payload);
}

void sim_impair(struct sim *sim, const struct sim_impairment *impairment)
{
    sim->impairment = *impairment;
    if (sim->impairment.delay_max_ns < sim->impairment.delay_min_ns) {
        sim->impairment.delay_max_ns = sim->impairment.delay_min_ns;
    }
}

void sim_impair_node(struct sim *sim, int node, const struct sim_impairment *impairment)
{
    struct sim_node *n = &sim->nodes[node];
    n->impairment = NULL;
    n->bad = false;
    if (impairment != NULL) {
        n->own = *impairment;
        n->own.delay_max_ns = n->own.delay_max_ns < n->own.delay_min_ns ? n->own.delay_min_ns : n->own.delay_max_ns;
        n->impairment = &n->own;
    }
}

void sim_island(struct sim *sim, int node, int island)
{
    sim->nodes[node].island = island;
}

void sim_stop_node(struct sim *sim, int node, bool stopped)
{
    sim->nodes[node].stopped = stopped;
    if (!stopped) {
        schedule(sim, node); /* what came due meanwhile fires now */
    }
}

void sim_tap(struct sim *sim, sim_tap_fn tap, void *arg)
{
    sim->tap = tap;
    sim->tap_arg = arg;
}

void sim_invariant(struct sim *sim, sim_invariant_fn invariant, void *arg)
{
    sim->invariant = invariant;
    sim->invariant_arg = arg;
}

static void hear(struct sim *sim, int to, const struct sim_payload *payload, int from)
{
    struct sim_node *node = &sim->nodes[to];
    node->on_packet(node->arg, sim_node_now(sim, to), payload->data, payload->len, from);
}

static void run_group_event(struct sim *sim, const struct sim_event *event)
{
    struct sim_group *g = &sim->groups[event->group];
    const struct sim_impairment *impairment = &sim->impairment;
    for (size_t i = 0; i < g->count; i++) {
        struct sim_node *node = &sim->nodes[g->nodes[i]];
        if (node->stopped || node->impairment != NULL || node->island != sim->nodes[event->from].island ||
            lost(sim, node, impairment)) {
            continue;
        }
        for (int copies = happens(sim, impairment->duplication) ? 2 : 1; copies > 0; copies--) {
            struct sim_payload *payload = carried(sim, impairment, event->payload);
            hear(sim, g->nodes[i], payload, event->from);
            drop_payload(payload);
        }
    }
    drop_payload(event->payload);
}

/* Has the host more to do first? Then the packet waits, or is lost. */
static bool waits_for_host(struct sim *sim, struct sim_node *node, const struct sim_event *event)
{
    const struct sim_impairment *impairment = node->impairment != NULL ? node->impairment : &sim->impairment;
    if (impairment->packet_ns == 0) {
        return false;
    }
    uint64_t free_at_ns = node->free_at_ns > sim->now_ns ? node->free_at_ns : sim->now_ns;
    if ((free_at_ns - sim->now_ns) / impairment->packet_ns >= impairment->queue_packets) {
        drop_payload(event->payload);
        return true;
    }
    node->free_at_ns = free_at_ns + impairment->packet_ns;
    struct sim_event later = *event;
    later.arriving = false;
    push(sim, node->free_at_ns, later);
    return true;
}

static void run_event(struct sim *sim, const struct sim_event *event)
{
    if (event->node == NOBODY) {
        run_group_event(sim, event);
        return;
    }
    struct sim_node *node = &sim->nodes[event->node];
    if (event->from != NOBODY) {
        if (event->arriving && waits_for_host(sim, node, event)) {
            return;
        }
        if (!node->stopped) {
            hear(sim, event->node, event->payload, event->from);
        }
        drop_payload(event->payload);
    } else if (event->timer_generation == node->timer_generation && !node->stopped) {
        node->timer_due_ns = UINT64_MAX;
        node->timer_generation++;
        node->on_timer(node->arg, sim_node_now(sim, event->node));
    }
}

bool sim_run(struct sim *sim, uint64_t until_ns)
{
    while (!sim->failed && sim->heap_count > 0 && sim->heap[0].at_ns <= until_ns) {
        sim->now_ns = sim->heap[0].at_ns;
        struct sim_event event = pop(sim);
        run_event(sim, &event);
        if (sim->invariant != NULL && !sim->invariant(sim->invariant_arg, sim->now_ns)) {
            sim->failed = true;
        }
    }
    if (!sim->failed && sim->now_ns < until_ns) {
        sim->now_ns = until_ns;
    }
    return !sim->failed;
}

bool sim_failed(const struct sim *sim)
{
    return sim->failed;
}

uint64_t sim_datagrams(const struct sim *sim)
{
    return sim->datagrams;
}

uint64_t sim_bytes(const struct sim *sim)
{
    return sim->bytes;
}

/* ---- seeds ---- */

/* main() belongs to the test harness: the command line is read back from the system. */
static uint64_t seed_argument(void)
{
    char text[4096];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        close(fd);
    }
    for (ssize_t i = 0; i < len; i += (ssize_t)strnlen(text + i, (size_t)(len - i)) + 1) {
        if (strcmp(text + i, "--seed") == 0 && i + 7 < len) {
            text[len] = '\0';
            return strtoull(text + i + 7, NULL, 0);
        }
    }
    return 0;
}

static uint64_t fixed_seed(void)
{
    static uint64_t seed;
    static bool known;
    if (!known) {
        const char *text = getenv("UM_SIM_SEED");
        seed = text != NULL ? strtoull(text, NULL, 0) : seed_argument();
        known = true;
    }
    return seed;
}

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text != NULL ? strtoull(text, NULL, 0) : otherwise;
}

static uint64_t base_seed(void)
{
    return number_of("UM_SIM_BASE", 0);
}

uint64_t sim_first_seed(void)
{
    uint64_t fixed = fixed_seed();
    return fixed != 0 ? fixed : base_seed() + 1;
}

static uint64_t last_seed(uint64_t count, uint64_t share)
{
    uint64_t fixed = fixed_seed();
    if (fixed != 0) {
        return fixed;
    }
    if (getenv("UM_SIM_SEEDS") != NULL) {
        count = number_of("UM_SIM_SEEDS", 0) / share;
    } else {
        count /= number_of("UM_SIM_PART", 1);
    }
    return base_seed() + (count > 0 ? count : 1);
}

uint64_t sim_last_seed(uint64_t count)
{
    return last_seed(count, 1);
}

uint64_t sim_last_seed_of_crowd(uint64_t count)
{
    return last_seed(count, 100);
}

bool sim_report(const char *scenario, uint64_t seed)
{
    fprintf(stderr, "%s failed with seed %llu; replay with UM_SIM_SEED=%llu or \"<program> %s --seed %llu\"\n",
            scenario, (unsigned long long)seed, (unsigned long long)seed, scenario, (unsigned long long)seed);
    return false;
}
