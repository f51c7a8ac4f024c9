/* Runs of topic sequence numbers of a source. See um_hf_runs.h. */
#include "delivery/um_hf_runs.h"

#include <string.h>

#include "base/um_sqn.h"

void um_hf_runs_clear(struct um_hf_runs *runs)
{
    runs->count = 0;
}

static struct um_hf_run run_of(const struct um_hf_place *place)
{
    return (struct um_hf_run){.first = place->first,
                              .end = place->last + 1,
                              .numbered = place->numbered,
                              .low = place->number,
                              .high = place->number};
}

static void append(struct um_hf_run *run, const struct um_hf_run *more)
{
    run->end = more->end;
    if (more->numbered) {
        run->low = run->numbered ? run->low : more->low;
        run->high = more->high;
        run->numbered = true;
    }
}

static void insert(struct um_hf_runs *runs, unsigned at, const struct um_hf_run *run)
{
    if (runs->count == UM_HF_RUNS_MAX) {
        if (at == 0) {
            return;
        }
        memmove(&runs->list[0], &runs->list[1], (--runs->count) * sizeof runs->list[0]);
        at--;
    }
    memmove(&runs->list[at + 1], &runs->list[at], (runs->count - at) * sizeof runs->list[0]);
    runs->list[at] = *run;
    runs->count++;
}

static void remove_at(struct um_hf_runs *runs, unsigned at)
{
    runs->count--;
    memmove(&runs->list[at], &runs->list[at + 1], (runs->count - at) * sizeof runs->list[0]);
}

static void link_runs(const struct um_hf_run *left, const struct um_hf_run *right, struct um_hf_neighbours *out)
{
    if (left->numbered && right->numbered) {
        out->has_link = true;
        out->lower = left->high;
        out->follows = right->low;
    }
}

/* Into a hole: before the run `at`, behind the one before that. */
static void fill(struct um_hf_runs *runs, unsigned at, const struct um_hf_place *place, struct um_hf_neighbours *out)
{
    struct um_hf_run run = run_of(place);
    bool joins_left = at > 0 && runs->list[at - 1].end == run.first;
    bool joins_right = run.end == runs->list[at].first;
    if (joins_left) {
        struct um_hf_run *left = &runs->list[at - 1];
        out->has_before = left->numbered;
        out->before = left->high;
        append(left, &run);
        run = *left;
    }
    if (!joins_right && !joins_left) {
        insert(runs, at, &run);
        return;
    }
    if (joins_right) {
        struct um_hf_run *right = &runs->list[at];
        link_runs(&run, right, out);
        append(&run, right);
        *right = run;
        if (joins_left) {
            remove_at(runs, at - 1);
        }
    }
}

void um_hf_runs_add(struct um_hf_runs *runs, const struct um_hf_place *place, struct um_hf_neighbours *out)
{
    struct um_hf_run *newest = runs->count > 0 ? &runs->list[runs->count - 1] : NULL;
    memset(out, 0, sizeof *out);
    if (newest != NULL && place->first == newest->end) {
        struct um_hf_run run = run_of(place);
        out->newest = true;
        out->after_hole = !newest->numbered && runs->count > 1;
        out->has_before = newest->numbered;
        out->before = newest->high;
        append(newest, &run);
        return;
    }
    if (newest == NULL || um_sqn_newer(place->first, newest->end)) {
        struct um_hf_run run = run_of(place);
        out->newest = true;
        out->after_hole = newest != NULL;
        insert(runs, runs->count, &run);
        return;
    }
    for (unsigned i = runs->count; i > 0; i--) {
        struct um_hf_run *run = &runs->list[i - 1];
        if (!um_sqn_older(place->first, run->first)) {
            return; /* it came before */
        }
        if (i == 1 || !um_sqn_older(place->first, runs->list[i - 2].end)) {
            fill(runs, i - 1, place, out);
            return;
        }
    }
}
