/* The protocol of LBT-SMX under weak memory: commit words in the records, single records and batches, the lazy tail,
 * joining, pacing. It is explored as written in csrc/transport/smx/um_smx_ring.h and um_shm_slot_take(), which must
 * hold, and with one ordering or step taken away at a time, which must fail: that proves that it is needed, and that
 * the model can tell. */
#include "mutants.h"

#define RING 4 /* records in the ring, all of one size */
#define PUBLISHED 7
#define TO_READ 4 /* by a receiver before it leaves */

enum variant {
    AS_WRITTEN,
    COMMIT_STORED_RELAXED,
    COMMIT_LOADED_RELAXED,
    FOLLOWING_NOT_CLEARED,
    FOLLOWING_CLEARED_LATE,
    FIRST_OF_BATCH_COMMITTED_EARLY,
    NO_ROOM_FOR_THE_FOLLOWING,
    READ_POS_STORED_RELAXED,
    TAIL_STORED_RELAXED,
    TAIL_LOADED_RELAXED,
    NO_FENCE_IN_JOIN,
    TAIL_NOT_READ_AGAIN,
    NO_FENCE_IN_SCAN,
    NO_PERIODIC_SCAN,
    VARIANTS
};

static const char *const variant_names[VARIANTS] = {
    [COMMIT_STORED_RELAXED] = "the commit word is stored relaxed",
    [COMMIT_LOADED_RELAXED] = "the commit word is loaded relaxed",
    [FOLLOWING_NOT_CLEARED] = "the following commit word is not cleared",
    [FOLLOWING_CLEARED_LATE] = "the following commit word is cleared after the publication",
    [FIRST_OF_BATCH_COMMITTED_EARLY] = "the first record of a batch is committed first",
    [NO_ROOM_FOR_THE_FOLLOWING] = "no room is kept for the following commit word",
    [READ_POS_STORED_RELAXED] = "read_pos is stored relaxed",
    [TAIL_STORED_RELAXED] = "the tail is stored relaxed",
    [TAIL_LOADED_RELAXED] = "the tail is loaded relaxed",
    [NO_FENCE_IN_JOIN] = "no fence in the join",
    [TAIL_NOT_READ_AGAIN] = "the tail is not read again in the join",
    [NO_FENCE_IN_SCAN] = "no fence in the scan",
    [NO_PERIODIC_SCAN] = "no scan while nobody is there",
};

enum { TAIL, IN_USE, READ_POS, COMMIT, PAYLOAD = COMMIT + RING, WORDS = PAYLOAD + RING };
enum { R_POS, R_LIMIT, R_VALUE, R_VALUE_ON, R_COUNT, R_READ, R_TAIL };

static int commit_of(int record)
{
    return COMMIT + record % RING;
}

static int payload_of(int record)
{
    return PAYLOAD + record % RING;
}

static void init(struct wm *wm)
{
    wm->threads[0].r[R_LIMIT] = RING / 4;
}

/* ---- the source ---- */

enum { W_ROOM, W_TAIL, W_FENCE, W_SLOT, W_CURSOR, W_FIRST, W_SECOND, W_SECOND_COMMIT, W_CLEAR, W_COMMIT, W_LATER };

/* Every third publication has two records. */
static int batch_at(int n)
{
    return n % 3 == 1 && n + 1 < PUBLISHED ? 2 : 1;
}

static int end_of_claim(int n)
{
    return n + batch_at(n) + (variant == NO_ROOM_FOR_THE_FOLLOWING ? 0 : 1);
}

/* The argument for joining allows a whole ring between two scans: that is what is modelled. */
static uint8_t unhindered(int n)
{
    return (uint8_t)(variant == NO_PERIODIC_SCAN ? 100 : n + RING > end_of_claim(n) ? n + RING : end_of_claim(n));
}

static enum wm_result look_for_room(struct wm *wm, int me)
{
    struct wm_thread *t = &wm->threads[me];
    int n = t->r[R_POS];
    switch (t->pc) {
    case W_ROOM:
        t->pc = end_of_claim(n) <= t->r[R_LIMIT] ? W_FIRST : W_TAIL;
        return WM_RAN;
    case W_TAIL:
        if (t->r[R_TAIL] != n) {
            t->r[R_TAIL] = (uint8_t)n;
            wm_store(wm, me, TAIL, (uint8_t)n, order_unless(TAIL_STORED_RELAXED, WM_RELEASE));
        }
        break;
    case W_FENCE:
        wm_fence(wm, me, order_unless(NO_FENCE_IN_SCAN, WM_SEQ_CST));
        break;
    case W_SLOT:
        if (wm_load(wm, me, IN_USE, WM_ACQUIRE) == 0) {
            t->r[R_LIMIT] = unhindered(n);
            t->pc = W_ROOM;
            return WM_RAN;
        }
        break;
    default: {
        /* Acquire is what C11 asks for. No variant takes it away: in this machine no store runs ahead of the branch it
         * depends on, as in no processor. */
        uint8_t limit = (uint8_t)(wm_load(wm, me, READ_POS, WM_ACQUIRE) + RING);
        t->r[R_LIMIT] = limit < unhindered(n) ? limit : unhindered(n);
        t->pc = W_ROOM;
        return WM_RAN;
    }
    }
    t->pc++;
    return WM_RAN;
}

static enum wm_result publish(struct wm *wm, int me)
{
    struct wm_thread *t = &wm->threads[me];
    int n = t->r[R_POS], count = batch_at(n);
    bool early = variant == FIRST_OF_BATCH_COMMITTED_EARLY && count == 2;
    if (n == PUBLISHED) {
        return WM_FINISHED;
    }
    if (t->pc <= W_CURSOR) {
        return look_for_room(wm, me);
    }
    switch (t->pc++) {
    case W_FIRST:
        wm_store(wm, me, payload_of(n), (uint8_t)(n + 1), WM_RELAXED);
        break;
    case W_SECOND:
        if (count == 2) {
            wm_store(wm, me, payload_of(n + 1), (uint8_t)(n + 2), WM_RELAXED);
        }
        break;
    case W_SECOND_COMMIT:
        if (early) {
            wm_store(wm, me, commit_of(n), 1, WM_RELEASE);
        } else if (count == 2) {
            wm_store(wm, me, commit_of(n + 1), 1, WM_RELAXED);
        }
        break;
    case W_CLEAR:
        if (variant != FOLLOWING_NOT_CLEARED && variant != FOLLOWING_CLEARED_LATE) {
            wm_store(wm, me, commit_of(n + count), 0, WM_RELAXED);
        }
        break;
    case W_COMMIT:
        wm_store(wm, me, commit_of(early ? n + 1 : n), 1, order_unless(COMMIT_STORED_RELAXED, WM_RELEASE));
        break;
    default:
        if (variant == FOLLOWING_CLEARED_LATE) {
            wm_store(wm, me, commit_of(n + count), 0, WM_RELAXED);
        }
        t->r[R_POS] = (uint8_t)(n + count);
        t->pc = W_ROOM;
    }
    return WM_RAN;
}

/* ---- a receiver: joins, reads some, leaves ---- */

enum { P_LOOK = J_JOINED, P_COPY, P_LOOK_ON, P_COPY_ON, P_RELEASE, P_JUDGE, P_LEAVE };

static enum wm_result join_ring(struct wm *wm, int me)
{
    struct join_rule rule = {.tail = TAIL,
                             .in_use = IN_USE,
                             .read_pos = READ_POS,
                             .pos = R_POS,
                             .look = order_unless(TAIL_LOADED_RELAXED, WM_ACQUIRE),
                             .fence = order_unless(NO_FENCE_IN_JOIN, WM_SEQ_CST),
                             .again = variant != TAIL_NOT_READ_AGAIN};
    return join(wm, me, &rule);
}

static bool published(struct wm *wm, int me, int pos)
{
    return wm_load(wm, me, commit_of(pos), order_unless(COMMIT_LOADED_RELAXED, WM_ACQUIRE)) != 0;
}

static void judge(struct wm_thread *t)
{
    int pos = t->r[R_POS];
    if (t->r[R_VALUE] != pos + 1 || (t->r[R_COUNT] == 2 && t->r[R_VALUE_ON] != pos + 2)) {
        wm_fail("a record is not what it should be");
    }
    t->r[R_POS] += t->r[R_COUNT];
    t->r[R_READ] += t->r[R_COUNT];
    t->r[R_VALUE] = t->r[R_VALUE_ON] = t->r[R_COUNT] = 0;
    t->pc = P_LOOK;
}

/* One or two records, then their room is given back. */
static enum wm_result receive(struct wm *wm, int me)
{
    struct wm_thread *t = &wm->threads[me];
    int pos = t->r[R_POS];
    enum wm_order release = order_unless(READ_POS_STORED_RELAXED, WM_RELEASE);
    switch (t->pc) {
    case P_LOOK:
        if (t->r[R_READ] >= TO_READ || pos == PUBLISHED) {
            t->pc = P_LEAVE;
        } else if (published(wm, me, pos)) {
            t->pc = P_COPY;
        }
        return WM_RAN;
    case P_COPY:
        wm_load_late(wm, me, payload_of(pos), R_VALUE);
        t->r[R_COUNT] = 1;
        t->pc = pos + 1 < PUBLISHED ? P_LOOK_ON : P_RELEASE;
        return WM_RAN;
    case P_LOOK_ON:
        t->pc = published(wm, me, pos + 1) ? P_COPY_ON : P_RELEASE;
        return WM_RAN;
    case P_COPY_ON:
        wm_load_late(wm, me, payload_of(pos + 1), R_VALUE_ON);
        t->r[R_COUNT] = 2;
        t->pc = P_RELEASE;
        return WM_RAN;
    case P_RELEASE:
        if (wm_must_settle(wm, me, release)) {
            return WM_BLOCKED;
        }
        wm_store(wm, me, READ_POS, (uint8_t)(pos + t->r[R_COUNT]), release);
        t->pc = P_JUDGE;
        return WM_RAN;
    case P_JUDGE:
        if (wm_is_late(wm, me)) {
            return WM_BLOCKED;
        }
        judge(t);
        return WM_RAN;
    case P_LEAVE:
        wm_store(wm, me, IN_USE, 0, WM_RELEASE);
        t->pc++;
        return WM_RAN;
    default:
        return t->pc > P_LEAVE ? WM_FINISHED : join_ring(wm, me);
    }
}

static enum wm_result step(struct wm *wm, int thread)
{
    return thread == 0 ? publish(wm, thread) : receive(wm, thread);
}

static const struct wm_model smx = {2, WORDS, init, step};

TEST(no_execution_delivers_a_record_that_is_not_whole_or_loses_one)
{
    holds(&smx);
}

TEST(every_ordering_and_every_step_is_needed)
{
    for (int mutant = AS_WRITTEN + 1; mutant < VARIANTS; mutant++) {
        CHECK(fails_without(&smx, mutant, variant_names[mutant]));
    }
}
