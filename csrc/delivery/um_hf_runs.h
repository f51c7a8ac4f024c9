/* What came of one source, by its topic sequence numbers: runs without a hole,
 * each with the hot failover numbers at its two ends. It tells which message a
 * source has sent just before another one, also when what lies between two runs
 * comes late. Bounded; the oldest run is forgotten. Plain data; its owner's thread. */
#ifndef UM_DELIVERY_HF_RUNS_H
#define UM_DELIVERY_HF_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#define UM_HF_RUNS_MAX 32u

struct um_hf_run {
    uint32_t first, end; /* topic sequence numbers, `end` not included */
    bool numbered;       /* a message in it has a hot failover number: */
    uint64_t low, high;  /* that of the first and that of the last which has one */
};

struct um_hf_runs {
    unsigned count;
    struct um_hf_run list[UM_HF_RUNS_MAX]; /* oldest first */
};

/* One message: [first, last], `numbered` with `number`, or without one. */
struct um_hf_place {
    uint32_t first, last;
    bool numbered;
    uint64_t number;
};

/* What it is next to. */
struct um_hf_neighbours {
    bool newest;      /* nothing sent after it has come */
    bool after_hole;  /* the newest, and something between it and the last number before it is missing */
    bool has_before;  /* nothing lies between it and */
    uint64_t before;  /* this number */
    bool has_link;    /* and now nothing lies any more between */
    uint64_t lower;   /* this one */
    uint64_t follows; /* and this one, which had come before */
};

void um_hf_runs_add(struct um_hf_runs *runs, const struct um_hf_place *place, struct um_hf_neighbours *out);
void um_hf_runs_clear(struct um_hf_runs *runs);

#endif
