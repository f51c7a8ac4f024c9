/* The virtual network of the simulator. See sim_net.h. */
#include "sim_net.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUPS 16

/* Payload shared by the deliveries of one multicast datagram. */
struct sim_payload {
    size_t refs;
    size_t len;
    uint8_t data[];
};

struct sim_event {
    uint64_t at_ns;
    uint64_t order; /* equal times: first come, first served */
    int node;       /* -1: every member of `group` */
    int from;       /* -1: timer */
    int group;
    uint64_t timer_generation;
    struct sim_payload *payload;
};

struct sim_node {
    sim_packet_fn on_packet;
    sim_timer_fn on_timer;
    void *arg;
    int island;
    bool stopped;
    uint64_t timer_due_ns;
    uint64_t timer_generation;
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
    struct sim_event *heap;
    size_t heap_count, heap_capacity;
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
    struct sim *sim = need(calloc(1, sizeof *sim));
    um_rng_seed(&sim->rng, seed);
    sim->now_ns = SIM_SEC; /* engines may treat time 0 as "never" */
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
        drop_payload(sim->heap[i].payload);
    }
    for (int i = 0; i < GROUPS; i++) {
        free(sim->groups[i].nodes);
    }
    free(sim->heap);
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

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void push(struct sim *sim, struct sim_event event)
{
    if (sim->heap_count == sim->heap_capacity) {
        sim->heap_capacity = sim->heap_capacity == 0 ? 1024 : sim->heap_capacity * 2;
        sim->heap = need(realloc(sim->heap, sim->heap_capacity * sizeof *sim->heap));
    }
    event.order = sim->next_order++;
    size_t i = sim->heap_count++;
    while (i > 0 && before(&event, &sim->heap[(i - 1) / 2])) {
        sim->heap[i] = sim->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    sim->heap[i] = event;
}

static struct sim_event pop(struct sim *sim)
{
    struct sim_event top = sim->heap[0];
    struct sim_event last = sim->heap[--sim->heap_count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= sim->heap_count) {
            break;
        }
        if (child + 1 < sim->heap_count && before(&sim->heap[child + 1], &sim->heap[child])) {
            child++;
        }
        if (!before(&sim->heap[child], &last)) {
            break;
        }
        sim->heap[i] = sim->heap[child];
        i = child;
    }
    if (sim->heap_count > 0) {
        sim->heap[i] = last;
    }
    return top;
}

/* ---- nodes and links ---- */

void sim_set_timer(struct sim *sim, int node, uint64_t due_ns)
{
    struct sim_node *n = &sim->nodes[node];
    if (due_ns == n->timer_due_ns) {
        return;
    }
    n->timer_due_ns = due_ns;
    n->timer_generation++;
    if (due_ns != UINT64_MAX) {
        uint64_t at = due_ns > sim->now_ns ? due_ns : sim->now_ns;
        push(sim, (struct sim_event){.at_ns = at, .node = node, .from = -1, .timer_generation = n->timer_generation});
    }
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

static void deliver(struct sim *sim, int from, int to, struct sim_payload *payload)
{
    const struct sim_impairment *impairment = &sim->impairment;
    if (sim->nodes[from].island != sim->nodes[to].island || happens(sim, impairment->loss)) {
        return;
    }
    int copies = happens(sim, impairment->duplication) ? 2 : 1;
    while (copies-- > 0) {
        uint64_t delay = impairment->delay_min_ns == impairment->delay_max_ns
                             ? impairment->delay_min_ns
                             : um_rng_range(&sim->rng, impairment->delay_min_ns, impairment->delay_max_ns);
        delay += happens(sim, impairment->reordering) ? impairment->delay_max_ns : 0;
        struct sim_payload *carried = payload;
        if (payload->len > 0 && happens(sim, impairment->corruption)) {
            carried = new_payload(payload->data, payload->len);
            carried->data[um_rng_range(&sim->rng, 0, payload->len - 1)] ^= (uint8_t)um_rng_range(&sim->rng, 1, 255);
        } else {
            carried->refs++;
        }
        push(sim, (struct sim_event){.at_ns = sim->now_ns + delay, .node = to, .from = from, .payload = carried});
    }
}

/* Without impairment all members hear it at one time: one event. */
static bool unimpaired(const struct sim *sim)
{
    const struct sim_impairment *i = &sim->impairment;
    return i->loss == 0 && i->duplication == 0 && i->corruption == 0 && i->reordering == 0 &&
           i->delay_min_ns == i->delay_max_ns;
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
    if (!sending(sim, from, data, len)) {
        return;
    }
    struct sim_payload *payload = new_payload(data, len);
    struct sim_group *g = &sim->groups[group];
    if (unimpaired(sim)) {
        payload->refs++;
        push(sim, (struct sim_event){.at_ns = sim->now_ns + sim->impairment.delay_min_ns,
                                     .node = -1,
                                     .from = from,
                                     .group = group,
                                     .payload = payload});
        drop_payload(payload);
        return;
    }
    for (size_t i = 0; i < g->count; i++) {
        deliver(sim, from, g->nodes[i], payload);
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

void sim_island(struct sim *sim, int node, int island)
{
    sim->nodes[node].island = island;
}

void sim_stop_node(struct sim *sim, int node, bool stopped)
{
    struct sim_node *n = &sim->nodes[node];
    uint64_t due = n->timer_due_ns;
    n->stopped = stopped;
    if (!stopped && due != UINT64_MAX) {
        n->timer_due_ns = UINT64_MAX; /* what came due meanwhile fires now */
        sim_set_timer(sim, node, due);
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

static void run_group_event(struct sim *sim, const struct sim_event *event)
{
    struct sim_group *g = &sim->groups[event->group];
    for (size_t i = 0; i < g->count; i++) {
        struct sim_node *node = &sim->nodes[g->nodes[i]];
        if (!node->stopped && node->island == sim->nodes[event->from].island) {
            node->on_packet(node->arg, sim->now_ns, event->payload->data, event->payload->len, event->from);
        }
    }
    drop_payload(event->payload);
}

static void run_event(struct sim *sim, const struct sim_event *event)
{
    if (event->node < 0) {
        run_group_event(sim, event);
        return;
    }
    struct sim_node *node = &sim->nodes[event->node];
    if (event->from >= 0) {
        if (!node->stopped) {
            node->on_packet(node->arg, sim->now_ns, event->payload->data, event->payload->len, event->from);
        }
        drop_payload(event->payload);
    } else if (event->timer_generation == node->timer_generation && !node->stopped) {
        node->timer_due_ns = UINT64_MAX;
        node->timer_generation++;
        node->on_timer(node->arg, sim->now_ns);
    }
}

bool sim_run(struct sim *sim, uint64_t until_ns)
{
    while (!sim->failed && sim->heap_count > 0 && sim->heap[0].at_ns <= until_ns) {
        struct sim_event event = pop(sim);
        sim->now_ns = event.at_ns;
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
    const char *text = getenv("UM_SIM_SEED");
    return text != NULL ? strtoull(text, NULL, 0) : seed_argument();
}

uint64_t sim_first_seed(void)
{
    uint64_t fixed = fixed_seed();
    return fixed != 0 ? fixed : 1;
}

uint64_t sim_last_seed(uint64_t count)
{
    const char *text = getenv("UM_SIM_SEEDS");
    uint64_t fixed = fixed_seed();
    return fixed != 0 ? fixed : (text != NULL ? strtoull(text, NULL, 0) : count);
}

bool sim_report(const char *scenario, uint64_t seed)
{
    fprintf(stderr, "%s failed with seed %llu; replay with UM_SIM_SEED=%llu or \"<program> %s --seed %llu\"\n",
            scenario, (unsigned long long)seed, (unsigned long long)seed, scenario, (unsigned long long)seed);
    return false;
}
