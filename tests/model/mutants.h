/* A model explored as the code is written, which must hold, and with one ordering or
 * step taken away at a time, which must fail: that proves that it is needed, and
 * that the model can tell. For the models of the shared-memory transports. */
#ifndef UM_MODEL_MUTANTS_H
#define UM_MODEL_MUTANTS_H

#include "um_test.h"

#include "weak_memory.h"

static int variant; /* 0: as written; else what is taken away, an enum of the model's own */

static inline enum wm_order order_unless(int mutant, enum wm_order order)
{
    return variant == mutant ? WM_RELAXED : order;
}

static inline void holds(const struct wm_model *model)
{
    variant = 0;
    struct wm_outcome outcome = wm_explore(model, true);
    fprintf(stderr, "%lu states, %lu ends\n", outcome.states, outcome.ends);
    CHECK(outcome.fault == NULL);
    CHECK(outcome.ends > 0);
}

static inline bool fails_without(const struct wm_model *model, int mutant, const char *name)
{
    variant = mutant;
    struct wm_outcome outcome = wm_explore(model, false);
    variant = 0;
    fprintf(stderr, "%s: %s (%lu states)\n", name, outcome.fault ? outcome.fault : "no fault", outcome.states);
    return outcome.fault != NULL;
}

/* ---- joining, the same for both transports: um_shm_slot_take() ---- */

enum join_step { J_TAIL, J_FIRST_POS, J_ACTIVE, J_FENCE, J_AGAIN, J_POS, J_JOINED };

struct join_rule {
    int tail, in_use, read_pos; /* words */
    int pos;                    /* register: where it begins to read */
    enum wm_order look, fence;
    bool again; /* the tail is read again behind the fence */
};

static inline enum wm_result join(struct wm *wm, int me, const struct join_rule *rule)
{
    struct wm_thread *t = &wm->threads[me];
    switch (t->pc++) {
    case J_TAIL:
        t->r[rule->pos] = wm_load(wm, me, rule->tail, rule->look);
        break;
    case J_FIRST_POS:
        wm_store(wm, me, rule->read_pos, t->r[rule->pos], WM_RELAXED);
        break;
    case J_ACTIVE:
        wm_store(wm, me, rule->in_use, 2, WM_RELEASE);
        break;
    case J_FENCE:
        wm_fence(wm, me, rule->fence);
        break;
    case J_AGAIN:
        if (rule->again) {
            t->r[rule->pos] = wm_load(wm, me, rule->tail, rule->look);
        }
        break;
    default:
        wm_store(wm, me, rule->read_pos, t->r[rule->pos], WM_RELEASE);
    }
    return WM_RAN;
}

#endif
