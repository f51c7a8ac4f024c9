/* The protocols of LBT-IPC under weak memory: publishing and overrun of the ring, receiver pacing with joining, going
 * to sleep on either side. Each is explored as written in csrc/transport/ipc, which must hold, and with one ordering
 * taken away at a time, which must fail: that proves that the ordering is needed, and that the model can tell. */
#include "mutants.h"

#define RING 2 /* records in the ring */

enum variant {
    AS_WRITTEN,
    /* source-paced */
    TAIL_STORED_RELAXED,
    TAIL_LOADED_RELAXED,
    NO_RELEASE_FENCE,
    NO_ACQUIRE_FENCE,
    OLDEST_STORED_LATE,
    OLDEST_NOT_CHECKED,
    RESYNC_STORED_RELAXED,
    RESYNC_LOADED_RELAXED,
    /* receiver-paced */
    NO_FENCE_IN_JOIN,
    TAIL_NOT_READ_AGAIN,
    NO_FENCE_IN_SCAN,
    NO_PERIODIC_SCAN,
    READ_POS_RELAXED,
    /* sleeping */
    NO_FENCE_BEFORE_LOOKING_FOR_SLEEPERS,
    NO_FENCE_BEFORE_SECOND_LOOK,
    NO_SECOND_LOOK,
    FUTEX_READ_TOO_LATE,
};

/* ---- source-paced: publish, overtake, notice ---- */

#define PUBLISHED 5

enum { TAIL, OLDEST, RESYNC, CELLS }; /* then three words of each cell: position + 1, payload twice */

static int cell(int record, int word)
{
    return CELLS + 3 * (record % RING) + word;
}

/* Registers of both sides. */
enum { R_POS, R_A, R_B, R_STAMP, R_VALUE };

static enum wm_result publish(struct wm *wm, int me)
{
    struct wm_thread *t = &wm->threads[me];
    int n = t->r[R_POS];
    bool late = variant == OLDEST_STORED_LATE;
    /* Given up in steps of two records, as the ring does. */
    bool give_up = n + 1 > RING && n % 2 == 0;
    if (n == PUBLISHED) {
        return WM_FINISHED;
    }
    switch (t->pc++) {
    case 0:
        if (give_up && !late) {
            wm_store(wm, me, OLDEST, (uint8_t)n, WM_RELAXED);
        }
        break;
    case 1:
        if (give_up) {
            wm_fence(wm, me, order_unless(NO_RELEASE_FENCE, WM_RELEASE));
        }
        break;
    case 2:
    case 3:
    case 4:
        wm_store(wm, me, cell(n, t->pc - 3), (uint8_t)(n + 1), WM_RELAXED);
        break;
    case 5:
        if (give_up && late) {
            wm_store(wm, me, OLDEST, (uint8_t)n, WM_RELAXED);
        }
        break;
    case 6:
        wm_store(wm, me, TAIL, (uint8_t)(n + 1), order_unless(TAIL_STORED_RELAXED, WM_RELEASE));
        break;
    default:
        wm_store(wm, me, RESYNC, (uint8_t)n, order_unless(RESYNC_STORED_RELAXED, WM_RELEASE));
        t->r[R_POS]++;
        t->pc = 0;
    }
    return WM_RAN;
}

enum { LOOK, COPY_STAMP, COPY_A, COPY_B, FENCE, CHECK_OLDEST, JUDGE, RESUME, RESUME_OLDEST, RESUME_TAIL };

static void judge(struct wm *wm, struct wm_thread *t)
{
    uint8_t expected = (uint8_t)(t->r[R_POS] + 1);
    if (t->r[R_STAMP] != expected || t->r[R_A] != expected || t->r[R_B] != expected) {
        wm_fail("a damaged record passes");
    }
    t->r[R_POS]++;
    t->r[R_STAMP] = t->r[R_A] = t->r[R_B] = 0;
    t->pc = LOOK;
}

static enum wm_result overtaken(struct wm *wm, int me)
{
    struct wm_thread *t = &wm->threads[me];
    t->r[R_STAMP] = t->r[R_A] = t->r[R_B] = 0;
    switch (t->pc) {
    case RESUME:
        t->r[R_VALUE] = wm_load(wm, me, RESYNC, order_unless(RESYNC_LOADED_RELAXED, WM_ACQUIRE));
        t->pc = RESUME_OLDEST;
        return WM_RAN;
    case RESUME_OLDEST:
        t->pc = wm_load(wm, me, OLDEST, WM_RELAXED) > t->r[R_VALUE] || t->r[R_VALUE] < t->r[R_POS] ? RESUME_TAIL : LOOK;
        break;
    default:
        t->r[R_VALUE] = wm_load(wm, me, TAIL, WM_RELAXED);
        t->pc = LOOK;
    }
    if (t->pc == LOOK) {
        if (t->r[R_VALUE] < t->r[R_POS]) {
            wm_fail("the reader goes back");
        }
        t->r[R_POS] = t->r[R_VALUE];
    }
    return WM_RAN;
}

static enum wm_result read_overtaken(struct wm *wm, int me)
{
    struct wm_thread *t = &wm->threads[me];
    int pos = t->r[R_POS];
    switch (t->pc) {
    case LOOK: {
        uint8_t tail = wm_load(wm, me, TAIL, order_unless(TAIL_LOADED_RELAXED, WM_ACQUIRE));
        if (pos == PUBLISHED) {
            return WM_FINISHED;
        }
        if (tail < pos) {
            wm_fail("the tail is behind the reader");
        }
        t->pc = tail == pos ? LOOK : tail - pos > RING ? RESUME : COPY_STAMP;
        return WM_RAN;
    }
    case COPY_STAMP:
    case COPY_A:
    case COPY_B: {
        static const int reg[] = {R_STAMP, R_A, R_B};
        int word = t->pc - COPY_STAMP;
        wm_load_late(wm, me, cell(pos, word), reg[word]);
        t->pc++;
        return WM_RAN;
    }
    case FENCE:
        if (wm_must_settle(wm, me, order_unless(NO_ACQUIRE_FENCE, WM_ACQUIRE))) {
            return WM_BLOCKED;
        }
        wm_fence(wm, me, order_unless(NO_ACQUIRE_FENCE, WM_ACQUIRE));
        t->pc = variant == OLDEST_NOT_CHECKED ? JUDGE : CHECK_OLDEST;
        return WM_RAN;
    case CHECK_OLDEST:
        t->pc = wm_load(wm, me, OLDEST, WM_RELAXED) > pos ? RESUME : JUDGE;
        return WM_RAN;
    default:
        if (wm_is_late(wm, me)) {
            return WM_BLOCKED; /* a mutant without fence: the values are needed now */
        }
        if (t->pc == JUDGE) {
            judge(wm, t);
            return WM_RAN;
        }
        return overtaken(wm, me);
    }
}

static void init_nothing(struct wm *wm)
{
}

static enum wm_result step_overtaken(struct wm *wm, int thread)
{
    return thread == 0 ? publish(wm, thread) : read_overtaken(wm, thread);
}

static const struct wm_model source_paced = {2, CELLS + 3 * RING, init_nothing, step_overtaken};

/* ---- receiver-paced: wait for the slowest, join at any time ---- */

enum { P_TAIL, P_IN_USE, P_READ_POS, P_CELLS };
enum { R_LIMIT = R_VALUE, R_READ, R_SCANNED };

#define TO_READ 2 /* the receiver leaves after so many */

static int paced_cell(int record, int word)
{
    return P_CELLS + 2 * (record % RING) + word;
}

enum { W_ROOM, W_FENCE, W_IN_USE, W_READ_POS, W_A, W_B, W_TAIL };

static enum wm_result publish_paced(struct wm *wm, int me)
{
    struct wm_thread *t = &wm->threads[me];
    int n = t->r[R_POS], end = n + 1;
    if (n == PUBLISHED) {
        return WM_FINISHED;
    }
    switch (t->pc) {
    case W_ROOM:
        t->pc = end <= t->r[R_LIMIT] || (variant == NO_PERIODIC_SCAN && t->r[R_SCANNED]) ? W_A : W_FENCE;
        break;
    case W_FENCE:
        wm_fence(wm, me, order_unless(NO_FENCE_IN_SCAN, WM_SEQ_CST));
        t->r[R_SCANNED] = 1;
        t->pc = W_IN_USE;
        break;
    case W_IN_USE:
        t->r[R_LIMIT] = (uint8_t)(n + RING); /* the next look at the latest a ring length ahead */
        t->pc = wm_load(wm, me, P_IN_USE, WM_ACQUIRE) == 2 ? W_READ_POS : W_ROOM;
        break;
    case W_READ_POS: {
        uint8_t limit = (uint8_t)(wm_load(wm, me, P_READ_POS, WM_ACQUIRE) + RING);
        t->r[R_LIMIT] = limit < t->r[R_LIMIT] ? limit : t->r[R_LIMIT];
        t->pc = W_ROOM;
        break;
    }
    case W_A:
    case W_B:
        wm_store(wm, me, paced_cell(n, t->pc - W_A), (uint8_t)(n + 1), WM_RELAXED);
        t->pc++;
        break;
    default:
        wm_store(wm, me, P_TAIL, (uint8_t)end, order_unless(TAIL_STORED_RELAXED, WM_RELEASE));
        t->r[R_POS]++;
        t->pc = W_ROOM;
    }
    return WM_RAN;
}

enum { P_LOOK = J_JOINED, P_COPY_A, P_COPY_B, P_RELEASE, P_JUDGE, P_LEAVE };

static enum wm_result join_paced(struct wm *wm, int me)
{
    struct join_rule rule = {.tail = P_TAIL,
                             .in_use = P_IN_USE,
                             .read_pos = P_READ_POS,
                             .pos = R_POS,
                             .look = WM_ACQUIRE,
                             .fence = order_unless(NO_FENCE_IN_JOIN, WM_SEQ_CST),
                             .again = variant != TAIL_NOT_READ_AGAIN};
    return join(wm, me, &rule);
}

static enum wm_result read_paced(struct wm *wm, int me)
{
    struct wm_thread *t = &wm->threads[me];
    int pos = t->r[R_POS];
    switch (t->pc) {
    case P_LOOK: {
        uint8_t tail = wm_load(wm, me, P_TAIL, order_unless(TAIL_LOADED_RELAXED, WM_ACQUIRE));
        bool over = t->r[R_READ] == TO_READ || pos == PUBLISHED;
        t->pc = over ? P_LEAVE : tail > pos ? P_COPY_A : P_LOOK;
        return WM_RAN;
    }
    case P_COPY_A:
    case P_COPY_B:
        wm_load_late(wm, me, paced_cell(pos, t->pc - P_COPY_A), t->pc == P_COPY_A ? R_A : R_B);
        t->pc++;
        return WM_RAN;
    case P_RELEASE:
        if (wm_must_settle(wm, me, order_unless(READ_POS_RELAXED, WM_RELEASE))) {
            return WM_BLOCKED;
        }
        wm_store(wm, me, P_READ_POS, (uint8_t)(pos + 1), order_unless(READ_POS_RELAXED, WM_RELEASE));
        t->pc = P_JUDGE;
        return WM_RAN;
    case P_JUDGE:
        if (wm_is_late(wm, me)) {
            return WM_BLOCKED;
        }
        if (t->r[R_A] != pos + 1 || t->r[R_B] != pos + 1) {
            wm_fail("a record is not what it should be");
        }
        t->r[R_A] = t->r[R_B] = 0;
        t->r[R_POS]++;
        t->r[R_READ]++;
        t->pc = P_LOOK;
        return WM_RAN;
    case P_LEAVE:
        wm_store(wm, me, P_IN_USE, 0, WM_RELEASE);
        t->pc++;
        return WM_RAN;
    default:
        return t->pc > P_LEAVE ? WM_FINISHED : join_paced(wm, me);
    }
}

static enum wm_result step_paced(struct wm *wm, int thread)
{
    return thread == 0 ? publish_paced(wm, thread) : read_paced(wm, thread);
}

static const struct wm_model receiver_paced = {2, P_CELLS + 2 * RING, init_nothing, step_paced};

/* ---- sleeping: the one who waits for a word to grow, and the one who makes it grow ----
 * A pending receiver waits for the tail (words: tail, waiting of its slot, its futex); a receiver-paced source waits
 * for read_pos (read_pos, src_waiting, space_futex). The steps are the same. */

enum { S_WORD, S_WAITING, S_FUTEX };
enum { G_GROW, G_FENCE, G_LOOK, G_TAKE, G_BUMP, G_WAKE };

#define GROWTH 2

static enum wm_result grow(struct wm *wm, int me)
{
    struct wm_thread *t = &wm->threads[me];
    if (t->r[R_POS] == GROWTH) {
        return WM_FINISHED;
    }
    switch (t->pc++) {
    case G_GROW:
        wm_store(wm, me, S_WORD, (uint8_t)(t->r[R_POS] + 1), WM_RELEASE);
        break;
    case G_FENCE:
        wm_fence(wm, me, order_unless(NO_FENCE_BEFORE_LOOKING_FOR_SLEEPERS, WM_SEQ_CST));
        break;
    case G_LOOK:
        t->r[R_VALUE] = wm_load(wm, me, S_WAITING, WM_RELAXED);
        break;
    case G_TAKE:
        if (t->r[R_VALUE] != 0) {
            t->r[R_VALUE] = wm_exchange(wm, me, S_WAITING, 0);
        }
        break;
    case G_BUMP:
        if (t->r[R_VALUE] != 0) {
            wm_add(wm, me, S_FUTEX, 1);
        }
        break;
    default:
        if (t->r[R_VALUE] != 0) {
            wm_futex_wake(wm, 1 - me);
        }
        t->r[R_VALUE] = 0;
        t->r[R_POS]++;
        t->pc = G_GROW;
    }
    return WM_RAN;
}

enum { S_LOOK, S_READ_FUTEX, S_ANNOUNCE, S_FENCE, S_LOOK_AGAIN, S_READ_FUTEX_LATE, S_SLEEP, S_AWAKE };

/* What the word says now; true: the sleeper need not sleep. */
static bool grown(struct wm *wm, int me)
{
    struct wm_thread *t = &wm->threads[me];
    uint8_t value = wm_load(wm, me, S_WORD, WM_ACQUIRE);
    bool more = value > t->r[R_POS];
    t->r[R_POS] = value;
    return more;
}

static enum wm_result sleeper(struct wm *wm, int me)
{
    struct wm_thread *t = &wm->threads[me];
    switch (t->pc) {
    case S_LOOK:
        if (t->r[R_POS] == GROWTH) {
            return WM_FINISHED;
        }
        t->pc = grown(wm, me) ? S_LOOK : S_READ_FUTEX;
        break;
    case S_READ_FUTEX:
    case S_READ_FUTEX_LATE:
        if ((t->pc == S_READ_FUTEX) != (variant == FUTEX_READ_TOO_LATE)) {
            t->r[R_VALUE] = wm_load(wm, me, S_FUTEX, WM_ACQUIRE);
        }
        t->pc++;
        break;
    case S_ANNOUNCE:
        wm_store(wm, me, S_WAITING, 1, WM_RELAXED);
        t->pc++;
        break;
    case S_FENCE:
        wm_fence(wm, me, order_unless(NO_FENCE_BEFORE_SECOND_LOOK, WM_SEQ_CST));
        t->pc = variant == NO_SECOND_LOOK ? S_READ_FUTEX_LATE : S_LOOK_AGAIN;
        break;
    case S_LOOK_AGAIN:
        t->pc = grown(wm, me) ? S_AWAKE : S_READ_FUTEX_LATE;
        break;
    case S_SLEEP:
        wm_futex_wait(wm, me, S_FUTEX, t->r[R_VALUE]);
        t->pc++;
        break;
    default:
        wm_store(wm, me, S_WAITING, 0, WM_RELAXED);
        t->r[R_VALUE] = 0;
        t->pc = S_LOOK;
    }
    return WM_RAN;
}

static enum wm_result step_sleep(struct wm *wm, int thread)
{
    return thread == 0 ? grow(wm, thread) : sleeper(wm, thread);
}

static const struct wm_model sleeping = {2, 3, init_nothing, step_sleep};

/* ---- the tests ---- */

static void fails_without_each(const struct wm_model *model, const enum variant *mutants, size_t count)
{
    char name[32];
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "variant %d", (int)mutants[i]);
        CHECK(fails_without(model, mutants[i], name));
    }
}

TEST(source_paced_no_execution_delivers_damage)
{
    holds(&source_paced);
}

TEST(source_paced_every_ordering_is_needed)
{
    static const enum variant mutants[] = {TAIL_STORED_RELAXED,   TAIL_LOADED_RELAXED,  NO_RELEASE_FENCE,
                                           NO_ACQUIRE_FENCE,      OLDEST_STORED_LATE,   OLDEST_NOT_CHECKED,
                                           RESYNC_STORED_RELAXED, RESYNC_LOADED_RELAXED};
    fails_without_each(&source_paced, mutants, sizeof mutants / sizeof mutants[0]);
}

TEST(receiver_paced_nothing_is_overwritten_before_it_is_read)
{
    holds(&receiver_paced);
}

TEST(receiver_paced_every_ordering_is_needed)
{
    static const enum variant mutants[] = {TAIL_STORED_RELAXED, TAIL_LOADED_RELAXED, NO_FENCE_IN_JOIN,
                                           TAIL_NOT_READ_AGAIN, NO_FENCE_IN_SCAN,    NO_PERIODIC_SCAN,
                                           READ_POS_RELAXED};
    fails_without_each(&receiver_paced, mutants, sizeof mutants / sizeof mutants[0]);
}

TEST(sleeping_no_wake_up_is_lost)
{
    holds(&sleeping);
}

TEST(sleeping_every_ordering_is_needed)
{
    static const enum variant mutants[] = {NO_FENCE_BEFORE_LOOKING_FOR_SLEEPERS, NO_FENCE_BEFORE_SECOND_LOOK,
                                           NO_SECOND_LOOK, FUTEX_READ_TOO_LATE};
    fails_without_each(&sleeping, mutants, sizeof mutants / sizeof mutants[0]);
}
