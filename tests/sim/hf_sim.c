/* Hot failover of two and three sources over channels that lose, repair, delay
 * and reorder under a seed (2000; see sim_net.h), with sources that end and
 * begin again, resets, numbers around 2^32 and 2^64, gaps that are meant,
 * optional messages, which some sources' receivers may leave out (members of an
 * HFX), and messages without a number. Invariants: no number twice, except as a
 * copy on request; in order in ordered mode; every number of which a copy came
 * is delivered, and no other one; what is missing before something delivered is
 * told as lost; nothing told as lost was or is delivered; what waited is let
 * go; memory within its bounds.
 */
#include <inttypes.h>

#include "base/um_mem.h"
#include "base/um_random.h"
#include "base/um_timer.h"
#include "delivery/um_hf.h"
#include "sim_net.h"
#include "um_test.h"

#define MS UM_NS_PER_MS
#define MESSAGES 300
#define SOURCES 3
#define COPIES (MESSAGES * SOURCES * 2)
#define EPOCHS 4
#define DELAY_MAX (300 * MS) /* of a repair */
#define LAG_MAX (50 * MS)    /* of a source behind the others */
#define TIMEOUT                                                                                                        \
    (2 * (DELAY_MAX + LAG_MAX)) /* nothing comes later than this behind what was                                       \
                                   sent after it */
#define UNDER_WAY 50            /* messages that are not older than the slowest repair */
#define GAP_MAX 30
#define RESET_EVERY                                                                                                    \
    90 /* messages: all copies of a count have come long before the next one                                           \
          ends */

struct message {
    uint64_t number; /* of a reset: the one that comes next */
    unsigned epoch;
    uint16_t flags;
    int arrived, delivered, copies;
    int left; /* of `arrived`: by sources whose receiver leaves out what is
                 optional */
    bool lost;
};

struct copy {
    uint64_t at;
    uint32_t order, topic;
    int source, message; /* message -1: one without a number */
};

struct sim {
    struct um_rng rng;
    struct um_hf hf;
    struct um_hf_source sources[SOURCES];
    bool joined[SOURCES];
    bool leaves[SOURCES]; /* optional messages */
    int source_count;
    bool wide, passed, lossy;
    struct message messages[MESSAGES];
    struct copy copies[COPIES];
    int copy_count;
    uint64_t timer;
    int held;
    unsigned epoch; /* of the resets delivered */
    int first;      /* message: the first one delivered of the epoch */
    int last;       /* ordered: the last one delivered */
    const char *broken;
    uint64_t broken_number;
};

static void broken(struct sim *sim, const char *what, uint64_t number)
{
    if (sim->broken == NULL) {
        sim->broken = what;
        sim->broken_number = number;
    }
}

static bool chance(struct sim *sim, unsigned percent)
{
    return um_rng_range(&sim->rng, 0, 99) < percent;
}

static uint64_t cut(const struct sim *sim, uint64_t number)
{
    return sim->wide ? number : (uint32_t)number;
}

static int find(const struct sim *sim, uint64_t number)
{
    for (int i = 0; i < MESSAGES; i++) {
        const struct message *m = &sim->messages[i];
        if (m->epoch == sim->epoch && (m->flags & UM_LBMC_HF_RESET) == 0 && m->number == number) {
            return i;
        }
    }
    return -1;
}

/* ---- what the engine says ---- */

static void on_deliver(void *user, void *msg, const struct um_lbmc_hf *hf, bool duplicate)
{
    struct sim *sim = user;
    int i = find(sim, hf->sqn);
    struct message *m = &sim->messages[i < 0 ? 0 : i];
    if (i < 0 || *(int *)msg != i || hf->flags != m->flags || hf->wide != sim->wide) {
        broken(sim, "delivery of what was not sent under this number", hf->sqn);
        return;
    }
    if (duplicate) {
        m->copies++;
        bool left = m->left > 0; /* the first one came where it was not wanted */
        if (m->delivered == 0 && !m->lost && !left && sim->first >= 0 && i >= sim->first) {
            broken(sim, "copy before the first", hf->sqn);
        }
        return;
    }
    if (m->delivered++ != 0 || m->lost) {
        broken(sim, m->lost ? "delivered after it was told as lost" : "delivered twice", hf->sqn);
    }
    if (sim->hf.config.ordered && i <= sim->last) {
        broken(sim, "delivered out of order", hf->sqn);
    }
    sim->last = i;
    sim->first = sim->first < 0 ? i : sim->first;
}

static void on_reset(void *user, void *msg, const struct um_lbmc_hf *hf)
{
    struct sim *sim = user;
    struct message *m = &sim->messages[*(int *)msg];
    if (m->epoch != sim->epoch + 1 || m->number != hf->sqn || (m->flags & UM_LBMC_HF_RESET) == 0) {
        broken(sim, "reset of another count", hf->sqn);
    }
    sim->epoch++;
    sim->first = sim->last = *(int *)msg;
}

static void tell_lost(struct sim *sim, uint64_t number)
{
    int i = find(sim, number);
    if (i >= 0 && sim->messages[i].delivered != 0) {
        broken(sim, "told as lost after it was delivered", number);
    }
    if (i >= 0 && sim->messages[i].lost) {
        broken(sim, "told as lost twice", number);
    }
    if (i >= 0) {
        sim->messages[i].lost = true;
    }
    if (!sim->lossy) {
        broken(sim, "told as lost, and nothing is", number);
    }
}

static void on_loss(void *user, uint64_t number)
{
    tell_lost(user, number);
}

static void on_burst(void *user, uint64_t first, uint64_t count)
{
    struct sim *sim = user;
    for (int i = 0; i < MESSAGES; i++) {
        const struct message *m = &sim->messages[i];
        if (m->epoch == sim->epoch && (m->flags & UM_LBMC_HF_RESET) == 0 && cut(sim, m->number - first) < count) {
            tell_lost(sim, m->number);
        }
    }
}

static void *on_hold(void *user, void *msg)
{
    int *held = um_malloc(sizeof *held);
    *held = *(int *)msg;
    ((struct sim *)user)->held++;
    return held;
}

static void on_let_go(void *user, void *held)
{
    ((struct sim *)user)->held--;
    um_free(held);
}

static void on_set_timer(void *user, uint64_t due_ns)
{
    ((struct sim *)user)->timer = due_ns;
}

static const struct um_hf_ops OPS = {.deliver = on_deliver,
                                     .reset = on_reset,
                                     .loss = on_loss,
                                     .burst_loss = on_burst,
                                     .hold = on_hold,
                                     .let_go = on_let_go,
                                     .set_timer = on_set_timer};

/* ---- what is sent ---- */

static uint64_t first_number(struct sim *sim)
{
    uint64_t back = um_rng_range(&sim->rng, 0, 2 * MESSAGES);
    switch (um_rng_range(&sim->rng, 0, 3)) {
    case 0:
        return back;
    case 1:
        return cut(sim, (uint64_t)0xffffffff - back);
    case 2:
        return cut(sim, UINT64_MAX - back);
    default:
        return cut(sim, ((uint64_t)1 << 31) - back);
    }
}

static uint64_t step(struct sim *sim, bool gaps, bool with_resets)
{
    if (!gaps || !chance(sim, 20)) {
        return 1;
    }
    if (with_resets && sim->lossy) {
        return um_rng_range(&sim->rng, 2, GAP_MAX);
    }
    return chance(sim, 10) ? um_rng_range(&sim->rng, 2, 100000) : um_rng_range(&sim->rng, 2, GAP_MAX);
}

static void make_messages(struct sim *sim, bool with_resets, bool gaps)
{
    uint64_t number = first_number(sim);
    unsigned epoch = 0;
    for (int i = 0; i < MESSAGES; i++) {
        struct message *m = &sim->messages[i];
        if (with_resets && i % RESET_EVERY == RESET_EVERY - 1) {
            number = sim->lossy ? cut(sim, sim->messages[i - UNDER_WAY].number -
                                               um_rng_range(&sim->rng, GAP_MAX * RESET_EVERY, 100000))
                                : first_number(sim);
            *m = (struct message){.number = number, .epoch = ++epoch, .flags = UM_LBMC_HF_RESET};
            continue;
        }
        *m = (struct message){.number = number, .epoch = epoch, .flags = chance(sim, 10) ? UM_LBMC_HF_OPTIONAL : 0};
        number = cut(sim, number + step(sim, gaps, with_resets));
    }
}

/* What a source is like. */
struct channel {
    unsigned loss;    /* percent */
    unsigned forever; /* percent of what is lost */
    uint64_t lag, jitter;
    int dies, returns; /* messages between which it is not there */
};

static uint64_t sent_at(int message)
{
    return (uint64_t)message * 10 * MS;
}

static void add_copy(struct sim *sim, const struct channel *c, int source, int message, uint32_t topic, uint64_t at)
{
    bool keeps = message >= 0 && (sim->messages[message].flags & UM_LBMC_HF_RESET) != 0;
    at += c->lag + (c->jitter > 0 ? um_rng_range(&sim->rng, 0, c->jitter) : 0);
    if (chance(sim, c->loss)) {
        if (!keeps && chance(sim, c->forever)) {
            return;
        }
        at += um_rng_range(&sim->rng, 20 * MS, DELAY_MAX);
    }
    sim->copies[sim->copy_count] = (struct copy){
        .at = at, .order = (uint32_t)sim->copy_count, .topic = topic, .source = source, .message = message};
    sim->copy_count++;
}

static void send_all(struct sim *sim, const struct channel *c, int source)
{
    uint32_t topic = um_rng_u32(&sim->rng);
    for (int i = 0; i < MESSAGES; i++) {
        if (i >= c->dies && i < c->returns) {
            continue;
        }
        if (sim->passed && chance(sim, 5)) {
            add_copy(sim, c, source, -1, topic++, sent_at(i));
        }
        add_copy(sim, c, source, i, topic++, sent_at(i));
    }
}

static int by_time(const void *a, const void *b)
{
    const struct copy *x = a, *y = b;
    return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : (x->order > y->order) - (x->order < y->order);
}

/* ---- the run ---- */

static void run_timers(struct sim *sim, uint64_t until)
{
    while (sim->timer <= until) {
        uint64_t now = sim->timer;
        sim->timer = UM_NEVER;
        um_hf_on_timer(&sim->hf, now);
    }
}

static void arrive(struct sim *sim, const struct copy *c)
{
    struct um_hf_source *source = &sim->sources[c->source];
    if (c->message < 0) {
        um_hf_on_passed(&sim->hf, source, c->topic, c->topic, c->at);
        return;
    }
    struct message *m = &sim->messages[c->message];
    int id = c->message;
    const struct um_hf_message message = {.hf = {.sqn = m->number, .wide = sim->wide, .flags = m->flags},
                                          .first_sqn = c->topic,
                                          .last_sqn = c->topic,
                                          .size = 10,
                                          .leaves_optional = sim->leaves[c->source],
                                          .msg = &id};
    m->arrived++;
    m->left += sim->leaves[c->source] && (m->flags & UM_LBMC_HF_OPTIONAL) != 0;
    bool short_way = c->topic % 2 == 0; /* as a flow does that sees an old number */
    if (!short_way || !um_hf_on_copy(&sim->hf, source, c->topic, &message.hf)) {
        um_hf_on_message(&sim->hf, source, &message, c->at);
    }
    if (sim->hf.config.entries_max != 0 && um_hf_waiting(&sim->hf) > sim->hf.config.entries_max) {
        broken(sim, "more waits than may", m->number);
    }
}

static void check_message(struct sim *sim, int i, bool bounded)
{
    const struct message *m = &sim->messages[i];
    bool optional = (m->flags & UM_LBMC_HF_OPTIONAL) != 0;
    bool unwanted = optional && (!sim->hf.config.optional || (m->left > 0 && m->left == m->arrived));
    bool either = optional && !unwanted && m->left > 0; /* the copy that came first rules */
    if ((m->flags & UM_LBMC_HF_RESET) != 0 || m->epoch != sim->epoch || i < sim->first) {
        return;
    }
    if (m->arrived > 0 && m->delivered != !unwanted && !(bounded && m->lost) && !(either && m->delivered == 0)) {
        broken(sim, unwanted ? "optional, and delivered" : "came, and was not delivered", m->number);
    }
    if (m->arrived == 0 && !m->lost && i < sim->last) {
        broken(sim, "neither came nor was told as lost", m->number);
    }
    if (sim->hf.config.duplicates && !unwanted && !either && !bounded && m->arrived > 0 &&
        m->copies != m->arrived - 1) {
        broken(sim, "copies missing", m->number);
    }
    if (!sim->hf.config.duplicates && m->copies != 0) {
        broken(sim, "a copy that nobody wants", m->number);
    }
}

/* A reset to higher numbers that is lost cannot be told from a gap: where there
 * is loss, resets go back, so far that no number is sent before and behind one
 * within what is under way. */
enum kind { PLAIN, WITH_RESETS, WITH_RESTARTS, WITH_BOUNDS, WITHOUT_LOSS, RESETS_WITHOUT_LOSS };

static bool resets(enum kind kind)
{
    return kind == WITH_RESETS || kind == RESETS_WITHOUT_LOSS;
}

static void choose_channel(struct sim *sim, enum kind kind, int source, struct channel *c)
{
    *c = (struct channel){.lag = um_rng_range(&sim->rng, 0, LAG_MAX), .dies = MESSAGES, .returns = MESSAGES};
    if (kind == WITHOUT_LOSS || kind == RESETS_WITHOUT_LOSS) {
        return;
    }
    c->loss = um_rng_range(&sim->rng, 0, 30);
    c->forever = chance(sim, 50) ? um_rng_range(&sim->rng, 0, 100) : 0;
    c->jitter = chance(sim, 50) ? 0 : um_rng_range(&sim->rng, 1, 20 * MS);
    if (kind == WITH_RESTARTS && source > 0) {
        c->dies = (int)um_rng_range(&sim->rng, 20, 150);
        c->returns = c->dies + (int)um_rng_range(&sim->rng, 60, 120);
    }
}

static void leave(struct sim *sim, int source, uint64_t now)
{
    if (sim->joined[source]) {
        um_hf_leave(&sim->hf, &sim->sources[source], now);
        sim->joined[source] = false;
    }
}

static void join(struct sim *sim, int source)
{
    if (!sim->joined[source]) {
        um_hf_join(&sim->hf, &sim->sources[source]);
        sim->joined[source] = true;
    }
}

/* A source that begins again is another one: its topic sequence numbers are,
 * too. */
static void run_copies(struct sim *sim, const struct channel *channels)
{
    for (int k = 0; k < sim->copy_count; k++) {
        const struct copy *c = &sim->copies[k];
        const struct channel *ch = &channels[c->source];
        run_timers(sim, c->at);
        if (c->message >= ch->returns && ch->returns < MESSAGES && ch->dies < MESSAGES) {
            leave(sim, c->source, c->at);
            join(sim, c->source);
            ((struct channel *)ch)->dies = MESSAGES;
        }
        arrive(sim, c);
    }
}

static bool run_seed(uint64_t seed, enum kind kind)
{
    static struct sim the_sim;
    struct sim *sim = &the_sim;
    struct channel channels[SOURCES];
    memset(sim, 0, sizeof *sim);
    um_rng_seed(&sim->rng, seed);
    sim->wide = chance(sim, 50);
    sim->lossy = kind != WITHOUT_LOSS && kind != RESETS_WITHOUT_LOSS;
    sim->passed = chance(sim, 30);
    sim->source_count = chance(sim, 50) ? 2 : 3;
    sim->first = sim->last = -1;
    sim->timer = UM_NEVER;
    const struct um_hf_config config = {.ordered = kind == WITHOUT_LOSS || chance(sim, 60),
                                        .duplicates = !resets(kind) && chance(sim, 30),
                                        .optional = chance(sim, 70),
                                        .gap_timeout_ns = TIMEOUT,
                                        .maximum_burst_loss = (uint32_t)um_rng_range(&sim->rng, 2, 100),
                                        .entries_max =
                                            kind == WITH_BOUNDS ? (uint32_t)um_rng_range(&sim->rng, 1, 20) : 0};
    um_hf_init(&sim->hf, &config, &OPS, sim);
    make_messages(sim, resets(kind), chance(sim, 70));
    for (int i = 0; i < sim->source_count; i++) {
        choose_channel(sim, kind, i, &channels[i]);
        join(sim, i);
        send_all(sim, &channels[i], i);
    }
    for (int i = 0; i < sim->source_count; i++) {
        sim->leaves[i] = (seed >> i) % 8 == 0; /* no draw: seeds stay what they were */
    }
    qsort(sim->copies, (size_t)sim->copy_count, sizeof sim->copies[0], by_time);
    run_copies(sim, channels);
    uint64_t end = sent_at(MESSAGES) + DELAY_MAX + LAG_MAX + 100 * TIMEOUT;
    run_timers(sim, end);
    if (um_hf_waiting(&sim->hf) != 0 || sim->timer != UM_NEVER) {
        broken(sim, "something waits for ever", sim->hf.due);
    }
    for (int i = 0; i < MESSAGES; i++) {
        check_message(sim, i, kind == WITH_BOUNDS);
    }
    if (resets(kind) && sim->epoch != MESSAGES / RESET_EVERY) {
        broken(sim, "a reset is missing", sim->epoch);
    }
    if (kind == WITHOUT_LOSS && sim->hf.stats.held > (uint64_t)sim->source_count) {
        broken(sim, "a slower source costs time", sim->hf.stats.held);
    }
    for (int i = 0; i < sim->source_count; i++) {
        leave(sim, i, end);
    }
    um_hf_fini(&sim->hf, end);
    if (sim->held != 0 || sim->hf.bytes != 0) {
        broken(sim, "something is not let go", (uint64_t)sim->held);
    }
    if (sim->broken != NULL) {
        fprintf(stderr, "UM_SIM_SEED=%" PRIu64 ": %s (number %" PRIu64 "; %s, %d sources, %d bits, loss %u %u %u)\n",
                seed, sim->broken, sim->broken_number, config.ordered ? "ordered" : "arrival", sim->source_count,
                sim->wide ? 64 : 32, channels[0].loss, channels[1].loss, sim->source_count > 2 ? channels[2].loss : 0);
    }
    return sim->broken == NULL;
}

static int failures(enum kind kind)
{
    int count = 0;
    for (uint64_t seed = sim_first_seed(); seed <= sim_last_seed(2000) && count < 5; seed++) {
        count += !run_seed(seed, kind);
    }
    return count;
}

TEST(every_number_that_came_is_delivered_once_under_all_seeds)
{
    CHECK_EQ(failures(PLAIN), 0);
}

TEST(sources_that_end_and_begin_again_change_nothing_under_all_seeds)
{
    CHECK_EQ(failures(WITH_RESTARTS), 0);
}

TEST(after_each_reset_every_number_that_came_is_delivered_once_under_all_seeds)
{
    CHECK_EQ(failures(WITH_RESETS), 0);
}

TEST(resets_to_any_number_without_loss_under_all_seeds)
{
    CHECK_EQ(failures(RESETS_WITHOUT_LOSS), 0);
}

TEST(what_waits_is_bounded_and_what_is_given_up_is_told_under_all_seeds)
{
    CHECK_EQ(failures(WITH_BOUNDS), 0);
}

TEST(a_slower_source_costs_nothing_under_all_seeds)
{
    CHECK_EQ(failures(WITHOUT_LOSS), 0);
}
