/* How many NAKs a crowd of receivers sends: a thousand that lose the same datagram, or
 * each its own ones, against the bound that follows from the rules of suppression
 * (docs/nak-report.md). With UM_SIM_FIGURES the figures go to that file, one row each.
 * UM_SIM_SEEDS sets how many seeds run (a hundredth of it), UM_SIM_SEED replays one. */
#include "um_test.h"

#include <math.h>

#include "sim_lbtrm.h"

#define SEEDS 20
#define EVENT_NS (400 * SIM_MS)
#define EVENTS 8u
#define EVENTS_OF_MANY 3u

struct crowd {
    const char *name; /* of the test */
    int receivers;
    uint64_t delay_ns; /* one way */
    double loss;       /* of each copy, of repairs and NAKs too */
    unsigned gaps;     /* at a time, that all receivers have; 0: only their own ones */
};

struct tally {
    double datagrams;        /* lost by somebody */
    double numbers, packets; /* asked for */
    double squares;          /* of the numbers, by seed */
    unsigned seeds;
};

/* NAKs expected for one datagram that m receivers miss when each waits for a time drawn evenly from an interval, and
 * all that have not asked when the repair arrives, a part u of the interval after the first NAK went out, do not ask.
 */
static double first_round(double m, double u)
{
    u = u < 1 ? u : 1;
    return m < 1 ? m : m * u + 1 - pow(u, m);
}

/* Those that the repair did not reach (p of them) ask again, once to be refused and suppressed, once to be repaired;
 * those that the refusal did not reach ask in any case. A NAK that is lost has another one follow. */
static double bound(double m, double u, double p)
{
    double sum = first_round(m, u) / (1 - p);
    for (double left = m * p; left > 1e-6; left *= p) {
        sum += 2 * first_round(left, u) / (1 - p) + left * p;
    }
    return sum;
}

static double bound_of(const struct crowd *c)
{
    double u = 2 * (double)c->delay_ns / (double)(50 * SIM_MS), p = c->loss;
    if (c->gaps > 0) {
        return bound(c->receivers, u, p);
    }
    double m = c->receivers * p; /* some receivers, or none at all */
    return (m * u + (1 - pow(1 - p, c->receivers))) / (1 - p) + bound(m, u, p) - first_round(m, u) / (1 - p);
}

/* Everybody misses `gaps` datagrams, with others between them; again and again. */
static void lose_together(struct rm_world *w, unsigned gaps)
{
    uint64_t every_ns = w->options.every_ns;
    for (unsigned i = 0; i < gaps; i++) {
        w->lose_until_ns = sim_now(w->sim) + every_ns;
        rm_run(w, every_ns);
        rm_run(w, every_ns);
    }
    rm_run(w, EVENT_NS - 2 * gaps * every_ns);
}

static void set_loss(struct rm_world *w, double loss)
{
    w->options.net.loss = loss;
    rm_impair(w);
}

/* Everybody misses a datagram, a session message tells of it, and from then on packets are lost, but no original. */
static void lose_together_and_then_repairs(struct rm_world *w, double loss)
{
    uint64_t every_ns = w->options.every_ns;
    set_loss(w, 0);
    w->lose_until_ns = sim_now(w->sim) + every_ns / 2 + SIM_MS;
    rm_run(w, every_ns / 2 + 210 * SIM_MS);
    set_loss(w, loss);
    rm_run(w, every_ns - 220 * SIM_MS);
    set_loss(w, 0);
    rm_run(w, 20 * SIM_MS);
    set_loss(w, loss);
    rm_run(w, every_ns / 2 - 10 * SIM_MS);
}

static bool measure(const struct crowd *c, uint64_t seed, struct tally *tally)
{
    struct rm_options o = rm_plain();
    o.receivers = c->receivers;
    bool lossy = c->gaps == 1 && c->loss > 0;
    unsigned events = c->gaps > 1 ? EVENTS_OF_MANY : EVENTS;
    o.every_ns = c->gaps > 1 ? 4 * SIM_MS : lossy ? 2 * SIM_SEC : 40 * SIM_MS;
    o.count = lossy ? 2 * events : (unsigned)(events * EVENT_NS / o.every_ns);
    o.len = 16;
    o.net.delay_min_ns = c->delay_ns;
    struct rm_world *w = rm_create(c->name, seed, &o);
    w->lose_originals_only = true;
    rm_run(w, 10 * SIM_MS + o.every_ns / 2);
    set_loss(w, c->loss);
    for (unsigned i = 0; i < events - 1; i++) {
        if (lossy) {
            lose_together_and_then_repairs(w, c->loss);
        } else {
            lose_together(w, c->gaps);
        }
    }
    rm_run(w, lossy ? 0 : 8 * SIM_SEC); /* repairs that are lost too take a second or so each time */
    set_loss(w, 0);
    rm_run(w, 30 * SIM_SEC);
    rm_settled(w, true);
    tally->datagrams += c->gaps > 0 ? (events - 1) * c->gaps : o.count - 1;
    tally->numbers += (double)w->nak_numbers;
    tally->packets += (double)w->nak_packets;
    tally->squares += (double)w->nak_numbers * (double)w->nak_numbers;
    tally->seeds++;
    return rm_finish(w);
}

static void record(const struct crowd *c, const struct tally *t, double most)
{
    const char *path = getenv("UM_SIM_FIGURES");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file == NULL) {
        return;
    }
    fprintf(file, "%s\t%d\t%g\t%g\t%u\t%.0f\t%.4f\t%.4f\t%.4f\t%.4f\n", c->gaps > 0 ? "shared" : "own", c->receivers,
            (double)c->delay_ns / 1e6, c->loss, c->gaps, t->datagrams, t->numbers / t->datagrams,
            t->packets / t->datagrams, most, c->gaps > 0 ? c->receivers : c->receivers * c->loss);
    fclose(file);
}

/* The mean over all seeds is within the bound, but for what chance does to a mean. */
static bool within_the_bound(const struct crowd *c)
{
    struct tally t = {0};
    EACH_SEED_OF_CROWD(SEEDS)
    {
        if (!measure(c, seed, &t)) {
            return false;
        }
    }
    double mean = t.numbers / t.datagrams, most = bound_of(c);
    double variance = (t.squares / t.seeds - pow(t.numbers / t.seeds, 2)) * t.seeds; /* of the sum */
    double chance = 4 * sqrt(variance > t.numbers ? variance : t.numbers) / t.datagrams;
    printf("     %d receivers, %g ms, %g %% lost, %u gaps: %.2f NAKs for each datagram, bound %.2f\n", c->receivers,
           (double)c->delay_ns / 1e6, c->loss * 100, c->gaps, mean, most);
    record(c, &t, most);
    return mean <= most + chance;
}

static bool each(const char *name, double loss, unsigned gaps)
{
    static const int crowds[] = {1, 10, 100, 1000};
    static const uint64_t delays[] = {100000, SIM_MS, 5 * SIM_MS};
    bool good = true;
    for (int i = 0; i < 4; i++) {
        for (int d = 0; d < 3; d++) {
            struct crowd crowd = {name, crowds[i], delays[d], loss, gaps};
            good = within_the_bound(&crowd) && good;
        }
    }
    return good;
}

TEST(naks_for_a_datagram_that_all_miss_stay_within_the_bound)
{
    CHECK(each("naks_for_a_datagram_that_all_miss_stay_within_the_bound", 0, 1));
}

TEST(naks_for_a_datagram_that_all_miss_stay_within_the_bound_when_repairs_are_lost_too)
{
    CHECK(each("naks_for_a_datagram_that_all_miss_stay_within_the_bound_when_repairs_are_lost_too", 0.01, 1));
}

TEST(naks_for_many_gaps_that_all_have_stay_within_the_bound)
{
    CHECK(each("naks_for_many_gaps_that_all_have_stay_within_the_bound", 0, 20));
}

TEST(naks_for_what_each_loses_on_its_own_stay_within_the_bound)
{
    CHECK(each("naks_for_what_each_loses_on_its_own_stay_within_the_bound", 0.01, 0));
}
