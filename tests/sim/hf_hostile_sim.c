/* Hot failover of three sources that send anything: numbers in any order and beyond any bound, of both widths, topic
 * sequence numbers that jump and go back, resets, sources that come and go, under a seed (1000; see sim_net.h).
 * Invariants: what waits is in order, beyond what is due and not too far from it; bounds hold; what was held is let go;
 * the timer is armed while something waits. */
#include "base/um_mem.h"
#include "base/um_random.h"
#include "base/um_timer.h"
#include "delivery/um_hf.h"
#include "sim_net.h"
#include "um_test.h"

#define SOURCES 3
#define MESSAGES 2000
#define TIMEOUT (1000 * UM_NS_PER_MS)

struct world {
    struct um_rng rng;
    struct um_hf hf;
    struct um_hf_source sources[SOURCES];
    uint32_t topic[SOURCES]; /* sequence number */
    uint64_t now, timer, base;
    int held;
    bool wide;
};

static void on_deliver(void *user, void *msg, const struct um_lbmc_hf *hf, bool duplicate)
{
}

static void on_reset(void *user, void *msg, const struct um_lbmc_hf *hf)
{
}

static void on_loss(void *user, uint64_t number)
{
}

static void on_burst(void *user, uint64_t first, uint64_t count)
{
}

static void *on_hold(void *user, void *msg)
{
    struct world *w = user;
    if (um_rng_range(&w->rng, 0, 999) == 0) {
        return NULL; /* no memory */
    }
    w->held++;
    return um_malloc(1);
}

static void on_let_go(void *user, void *held)
{
    ((struct world *)user)->held--;
    um_free(held);
}

static void on_set_timer(void *user, uint64_t due_ns)
{
    ((struct world *)user)->timer = due_ns;
}

static const struct um_hf_ops OPS = {.deliver = on_deliver,
                                     .reset = on_reset,
                                     .loss = on_loss,
                                     .burst_loss = on_burst,
                                     .hold = on_hold,
                                     .let_go = on_let_go,
                                     .set_timer = on_set_timer};

static unsigned dice(struct world *w, unsigned sides)
{
    return (unsigned)um_rng_range(&w->rng, 0, sides - 1);
}

/* Mostly near the others; sometimes at the edges of what may be left out, of old and new, or anywhere. */
static uint64_t any_number(struct world *w)
{
    uint64_t number = w->base + dice(w, 1000);
    switch (dice(w, 50)) {
    case 0:
        number = um_rng_u64(&w->rng);
        break;
    case 1:
        number = w->base + UM_HF_JUMP_MAX - 3 + dice(w, 6);
        break;
    case 2:
        number = w->base + 2 * (uint64_t)UM_HF_JUMP_MAX - 3 + dice(w, 6);
        break;
    default:
        break;
    }
    return w->wide ? number : (uint32_t)number;
}

static uint32_t any_topic(struct world *w, int source)
{
    uint32_t *topic = &w->topic[source];
    switch (dice(w, 20)) {
    case 0:
        *topic += dice(w, 10);
        break;
    case 1:
        *topic -= dice(w, 40);
        break;
    case 2:
        *topic = dice(w, 10) == 0 ? um_rng_u32(&w->rng) : *topic;
        break;
    default:
        break;
    }
    return (*topic)++;
}

static void step(struct world *w)
{
    char msg;
    int source = (int)dice(w, SOURCES);
    uint32_t first = any_topic(w, source);
    struct um_hf_message m = {.hf = {.sqn = any_number(w), .wide = w->wide != (dice(w, 200) == 0)},
                              .first_sqn = first,
                              .last_sqn = first + (dice(w, 30) == 0 ? dice(w, 5) : 0),
                              .size = dice(w, 300),
                              .msg = &msg};
    m.hf.flags = dice(w, 50) == 0 ? UM_LBMC_HF_RESET : dice(w, 10) == 0 ? UM_LBMC_HF_OPTIONAL : 0;
    if (dice(w, 15) == 0) {
        um_hf_on_passed(&w->hf, &w->sources[source], first, first, w->now);
    } else if (m.first_sqn != m.last_sqn || !um_hf_on_copy(&w->hf, &w->sources[source], first, &m.hf)) {
        um_hf_on_message(&w->hf, &w->sources[source], &m, w->now);
    }
    if (dice(w, 100) == 0) {
        um_hf_leave(&w->hf, &w->sources[source], w->now);
        um_hf_join(&w->hf, &w->sources[source]);
    }
    w->now += dice(w, 20) == 0 ? TIMEOUT / 4 : 0;
    if (w->timer <= w->now) {
        w->timer = UM_NEVER;
        um_hf_on_timer(&w->hf, w->now);
    }
}

static const char *entries_wrong(const struct um_hf *hf)
{
    const struct um_hf_entry *first = um_hf_entries_first(&hf->entries), *last = um_hf_entries_last(&hf->entries);
    uint64_t before = hf->due;
    for (uint64_t n = first->number;;
         before = n, n = um_hf_entries_at(&hf->entries, um_hf_entries_find(&hf->entries, n + 1, hf->wide))->number) {
        if (um_hf_number_diff(n, before, hf->wide) <= 0) {
            return "what waits is not in order beyond what is due";
        }
        if (n == last->number) {
            break;
        }
    }
    return um_hf_number_diff(last->number, hf->due, hf->wide) >= (int64_t)UM_HF_JUMP_MAX ? "it waits too far ahead"
                                                                                         : NULL;
}

/* NULL: nothing is. */
static const char *wrong(const struct world *w)
{
    const struct um_hf *hf = &w->hf;
    if ((hf->config.entries_max != 0 && um_hf_waiting(hf) > hf->config.entries_max) ||
        (hf->config.bytes_max != 0 && hf->bytes > hf->config.bytes_max)) {
        return "more waits than may";
    }
    if ((um_hf_waiting(hf) > 0) != (w->timer != UM_NEVER)) {
        return "the timer";
    }
    return hf->entries.count > 0 ? entries_wrong(hf) : NULL;
}

static struct um_hf_config config_of(uint64_t seed)
{
    return (struct um_hf_config){.ordered = seed % 4 != 0,
                                 .duplicates = seed % 3 == 0,
                                 .optional = seed % 5 != 0,
                                 .gap_timeout_ns = TIMEOUT,
                                 .maximum_burst_loss = 16,
                                 .entries_max = seed % 2 == 0 ? 50 : 0,
                                 .bytes_max = seed % 2 == 0 ? 0 : 20000};
}

static bool run_seed(uint64_t seed)
{
    struct world w = {.now = 1, .timer = UM_NEVER, .wide = seed % 7 == 0};
    struct um_hf_config config = config_of(seed);
    const char *what = NULL;
    w.base = w.wide ? UINT64_MAX - 500 : UINT32_MAX - 500;
    um_rng_seed(&w.rng, seed);
    um_hf_init(&w.hf, &config, &OPS, &w);
    for (int i = 0; i < SOURCES; i++) {
        um_hf_join(&w.hf, &w.sources[i]);
    }
    for (int i = 0; i < MESSAGES && what == NULL; i++) {
        step(&w);
        what = wrong(&w);
    }
    for (int i = 0; i < SOURCES; i++) {
        um_hf_leave(&w.hf, &w.sources[i], w.now);
    }
    um_hf_fini(&w.hf, w.now);
    if (what == NULL && (w.held != 0 || w.hf.bytes != 0)) {
        what = "something is still held";
    }
    if (what != NULL) {
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, what);
    }
    return what == NULL;
}

TEST(whatever_sources_send_the_merge_stays_in_order_and_within_its_bounds)
{
    for (uint64_t seed = sim_first_seed(); seed <= sim_last_seed(1000); seed++) {
        CHECK(run_seed(seed));
    }
}
