/* The abstract machine of weak_memory.h and a depth-first search through its
 * states. Used by the *_model.c tests; one exploration at a time. */
#include "weak_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- choices: a step is run again for every value its load may return ---- */

static int choice_wanted, choice_count;
static const char *failed;

static int choose(int count)
{
    choice_count = count;
    return choice_wanted < count ? choice_wanted : 0;
}

void wm_fail(const char *fault)
{
    if (failed == NULL) {
        failed = fault;
    }
}

/* ---- views ---- */

static int model_words;

static void join(struct wm_view *to, const struct wm_view *from)
{
    for (int i = 0; i < model_words; i++) {
        if (from->at[i] > to->at[i]) {
            to->at[i] = from->at[i];
        }
    }
}

/* ---- operations ---- */

static uint8_t read_from(struct wm *wm, int thread, int word, int index, enum wm_order order)
{
    struct wm_thread *t = &wm->threads[thread];
    const struct wm_store *store = &wm->words[word].history[index];
    if (t->now.at[word] < index) {
        t->now.at[word] = (uint8_t)index;
    }
    join(&t->on_acquire, &t->now);
    join(&t->on_acquire, &store->view);
    if (order != WM_RELAXED) {
        join(&t->now, &store->view);
    }
    return store->value;
}

uint8_t wm_load(struct wm *wm, int thread, int word, enum wm_order order)
{
    int oldest = wm->threads[thread].now.at[word], newest = wm->words[word].count - 1;
    return read_from(wm, thread, word, newest - choose(newest - oldest + 1), order);
}

void wm_load_late(struct wm *wm, int thread, int word, int reg)
{
    struct wm_thread *t = &wm->threads[thread];
    for (int i = 0; i < WM_LATE; i++) {
        if (t->late[i].word == 0) {
            t->late[i] = (struct wm_late){(uint8_t)(word + 1), (uint8_t)reg, t->now.at[word]};
            return;
        }
    }
    abort();
}

bool wm_is_late(const struct wm *wm, int thread)
{
    for (int i = 0; i < WM_LATE; i++) {
        if (wm->threads[thread].late[i].word != 0) {
            return true;
        }
    }
    return false;
}

static void settle(struct wm *wm, int thread, int which)
{
    struct wm_thread *t = &wm->threads[thread];
    struct wm_late late = t->late[which];
    int word = late.word - 1, newest = wm->words[word].count - 1;
    t->late[which] = (struct wm_late){0};
    t->r[late.reg] = read_from(wm, thread, word, newest - choose(newest - late.from + 1), WM_RELAXED);
}

bool wm_must_settle(const struct wm *wm, int thread, enum wm_order order)
{
    return order != WM_RELAXED && wm_is_late(wm, thread);
}

static void append(struct wm *wm, int thread, int word, uint8_t value, const struct wm_view *handed_on)
{
    struct wm_word *w = &wm->words[word];
    struct wm_thread *t = &wm->threads[thread];
    if (w->count == WM_HISTORY) {
        fprintf(stderr, "weak_memory: history of word %d is full: raise WM_HISTORY\n", word);
        abort();
    }
    int index = w->count++;
    t->now.at[word] = (uint8_t)index;
    if (t->on_acquire.at[word] < index) {
        t->on_acquire.at[word] = (uint8_t)index;
    }
    w->history[index].value = value;
    w->history[index].view = *handed_on;
    w->history[index].view.at[word] = (uint8_t)index;
}

void wm_store(struct wm *wm, int thread, int word, uint8_t value, enum wm_order order)
{
    struct wm_thread *t = &wm->threads[thread];
    struct wm_view handed_on = order == WM_RELAXED ? t->on_release : t->now;
    append(wm, thread, word, value, &handed_on);
}

void wm_fence(struct wm *wm, int thread, enum wm_order order)
{
    struct wm_thread *t = &wm->threads[thread];
    if (order == WM_ACQUIRE || order == WM_ACQ_REL || order == WM_SEQ_CST) {
        join(&t->now, &t->on_acquire);
    }
    if (order == WM_SEQ_CST) {
        join(&wm->fenced, &t->now);
        t->now = wm->fenced;
        join(&t->on_acquire, &t->now);
    }
    if (order == WM_RELEASE || order == WM_ACQ_REL || order == WM_SEQ_CST) {
        t->on_release = t->now;
    }
}

static uint8_t read_modify_write(struct wm *wm, int thread, int word, uint8_t value, bool add)
{
    wm_fence(wm, thread, WM_SEQ_CST);
    int newest = wm->words[word].count - 1;
    uint8_t old = read_from(wm, thread, word, newest, WM_ACQUIRE);
    append(wm, thread, word, add ? (uint8_t)(old + value) : value, &wm->threads[thread].now);
    wm_fence(wm, thread, WM_SEQ_CST);
    return old;
}

uint8_t wm_exchange(struct wm *wm, int thread, int word, uint8_t value)
{
    return read_modify_write(wm, thread, word, value, false);
}

uint8_t wm_add(struct wm *wm, int thread, int word, uint8_t value)
{
    return read_modify_write(wm, thread, word, value, true);
}

uint8_t wm_latest(const struct wm *wm, int word)
{
    return wm->words[word].history[wm->words[word].count - 1].value;
}

/* The kernel compares under its own lock: it sees the newest value. It orders nothing else for the caller. */
void wm_futex_wait(struct wm *wm, int thread, int word, uint8_t expected)
{
    if (wm_latest(wm, word) == expected) {
        wm->threads[thread].asleep = true;
    }
}

void wm_futex_wake(struct wm *wm, int thread)
{
    wm->threads[thread].asleep = false;
}

/* ---- forgetting what nobody can read any more, so that equal states look equal ---- */

static void lower(struct wm_view *view, const uint8_t *by)
{
    for (int i = 0; i < model_words; i++) {
        view->at[i] = view->at[i] > by[i] ? (uint8_t)(view->at[i] - by[i]) : 0;
    }
}

static void forget(struct wm *wm, int threads)
{
    uint8_t by[WM_WORDS] = {0};
    bool any = false;
    for (int word = 0; word < model_words; word++) {
        uint8_t oldest = UINT8_MAX;
        for (int t = 0; t < threads; t++) {
            const struct wm_thread *thread = &wm->threads[t];
            oldest = thread->now.at[word] < oldest ? thread->now.at[word] : oldest;
            for (int i = 0; i < WM_LATE; i++) {
                if (thread->late[i].word == word + 1 && thread->late[i].from < oldest) {
                    oldest = thread->late[i].from;
                }
            }
        }
        by[word] = oldest;
        any |= oldest != 0;
    }
    if (!any) {
        return;
    }
    for (int word = 0; word < model_words; word++) {
        struct wm_word *w = &wm->words[word];
        int kept = w->count - by[word];
        memmove(w->history, w->history + by[word], (size_t)kept * sizeof w->history[0]);
        memset(w->history + kept, 0, (size_t)(w->count - kept) * sizeof w->history[0]);
        w->count = (uint8_t)kept;
        for (int i = 0; i < kept; i++) {
            lower(&w->history[i].view, by);
        }
    }
    for (int t = 0; t < threads; t++) {
        struct wm_thread *thread = &wm->threads[t];
        lower(&thread->now, by);
        lower(&thread->on_acquire, by);
        lower(&thread->on_release, by);
        for (int i = 0; i < WM_LATE; i++) {
            if (thread->late[i].word != 0) {
                thread->late[i].from = (uint8_t)(thread->late[i].from - by[thread->late[i].word - 1]);
            }
        }
    }
    lower(&wm->fenced, by);
}

/* ---- the set of visited states: 128-bit digests ---- */

struct digest {
    uint64_t a, b;
};

static struct digest *seen;
static size_t seen_size, seen_count;

static uint64_t mix(uint64_t h, uint64_t v)
{
    h ^= v;
    h *= 0x9e3779b97f4a7c15ull;
    return h ^ (h >> 29);
}

static struct digest digest_of(const struct wm *wm)
{
    struct digest d = {0x243f6a8885a308d3ull, 0x13198a2e03707344ull};
    const uint8_t *bytes = (const uint8_t *)wm;
    for (size_t i = 0; i < sizeof *wm; i += 8) {
        uint64_t v = 0;
        memcpy(&v, bytes + i, sizeof *wm - i < 8 ? sizeof *wm - i : 8);
        d.a = mix(d.a, v);
        d.b = mix(d.b + i, v ^ 0xa4093822299f31d0ull);
    }
    d.a |= 1; /* never the empty mark */
    return d;
}

static bool insert(struct digest *table, size_t size, struct digest d)
{
    for (size_t i = d.b & (size - 1);; i = (i + 1) & (size - 1)) {
        if (table[i].a == 0) {
            table[i] = d;
            return true;
        }
        if (table[i].a == d.a && table[i].b == d.b) {
            return false;
        }
    }
}

/* True: not seen before. */
static bool remember(const struct wm *wm)
{
    if (seen_count * 2 >= seen_size) {
        size_t size = seen_size == 0 ? 1u << 16 : seen_size * 2;
        struct digest *table = calloc(size, sizeof *table);
        if (table == NULL) {
            abort();
        }
        for (size_t i = 0; i < seen_size; i++) {
            if (seen[i].a != 0) {
                insert(table, size, seen[i]);
            }
        }
        free(seen);
        seen = table;
        seen_size = size;
    }
    bool fresh = insert(seen, seen_size, digest_of(wm));
    seen_count += fresh;
    return fresh;
}

/* ---- search ---- */

struct frame {
    struct wm wm;
    int8_t thread, late; /* the step that led here; late: -1 for a step of the program */
    uint8_t choice, pc;
};

struct search {
    const struct wm_model *model;
    struct frame *stack;
    size_t depth, size;
    struct wm_outcome outcome;
};

static void push(struct search *search, const struct wm *wm, int thread, int late, int choice, int pc)
{
    if (search->depth == search->size) {
        search->size = search->size == 0 ? 1024 : search->size * 2;
        search->stack = realloc(search->stack, search->size * sizeof *search->stack);
        if (search->stack == NULL) {
            abort();
        }
    }
    search->stack[search->depth++] = (struct frame){*wm, (int8_t)thread, (int8_t)late, (uint8_t)choice, (uint8_t)pc};
}

/* One step of one thread (or of one of its late loads) for one choice. True: the state changed. */
static bool advance(struct search *search, struct wm *next, int thread, int late, enum wm_result *result)
{
    struct wm before = *next;
    *result = WM_RAN;
    choice_count = 1;
    if (late >= 0) {
        settle(next, thread, late);
    } else {
        *result = search->model->step(next, thread);
    }
    return *result == WM_RAN && memcmp(&before, next, sizeof before) != 0;
}

/* All successors of a state that were not seen before go onto the stack. False: none, not even known ones. */
static bool expand(struct search *search, const struct wm *wm, bool *finished)
{
    bool moved = false;
    *finished = true;
    for (int thread = 0; thread < search->model->threads; thread++) {
        if (wm->threads[thread].asleep) {
            *finished = false;
            continue;
        }
        for (int late = -1; late < WM_LATE; late++) {
            if (late >= 0 && wm->threads[thread].late[late].word == 0) {
                continue;
            }
            choice_count = 1;
            for (choice_wanted = 0; choice_wanted < choice_count && failed == NULL; choice_wanted++) {
                struct wm next = *wm;
                enum wm_result result;
                bool changed = advance(search, &next, thread, late, &result);
                *finished &= result == WM_FINISHED;
                if (changed || failed != NULL) {
                    moved = true;
                    forget(&next, search->model->threads);
                    if (failed != NULL || remember(&next)) {
                        push(search, &next, thread, late, choice_wanted, wm->threads[thread].pc);
                    }
                }
            }
        }
    }
    return moved;
}

static void print_path(const struct search *search, const bool *entered)
{
    fprintf(stderr, "weak_memory: %s, after (thread:pc/age of the value):", search->outcome.fault);
    for (size_t i = 0; i < search->depth; i++) {
        const struct frame *f = &search->stack[i];
        if (entered[i] && f->thread >= 0) {
            if (f->late < 0) {
                fprintf(stderr, " %d:%d/%d", f->thread, f->pc, f->choice);
            } else {
                fprintf(stderr, " %d:late/%d", f->thread, f->choice);
            }
        }
    }
    fputc('\n', stderr);
}

/* Frames below the top are either ancestors of it (entered) or siblings still to be visited. */
struct wm_outcome wm_explore(const struct wm_model *model, bool verbose)
{
    struct search search = {.model = model};
    struct wm first;
    bool *entered = NULL;
    size_t entered_size = 0;
    memset(&first, 0, sizeof first);
    model_words = model->words;
    for (int i = 0; i < model->words; i++) {
        first.words[i].count = 1;
    }
    failed = NULL;
    model->init(&first);
    remember(&first);
    push(&search, &first, -1, -1, 0, 0);
    while (search.depth > 0 && failed == NULL) {
        if (search.size > entered_size) {
            entered = realloc(entered, search.size * sizeof *entered);
            memset(entered + entered_size, 0, (search.size - entered_size) * sizeof *entered);
            entered_size = search.size;
        }
        size_t top = search.depth - 1;
        if (entered[top]) {
            entered[top] = false;
            search.depth--;
            continue;
        }
        entered[top] = true;
        search.outcome.states++;
        struct wm wm = search.stack[top].wm;
        bool finished;
        bool moved = expand(&search, &wm, &finished);
        search.outcome.ends += finished;
        if (!moved && !finished && failed == NULL) {
            failed = "a thread waits for ever";
        }
    }
    search.outcome.fault = failed;
    if (failed != NULL && verbose) {
        if (search.size > entered_size) {
            entered = realloc(entered, search.size * sizeof *entered);
            memset(entered + entered_size, 0, (search.size - entered_size) * sizeof *entered);
        }
        entered[search.depth - 1] = true;
        print_path(&search, entered);
    }
    free(entered);
    free(search.stack);
    free(seen);
    seen = NULL;
    seen_size = seen_count = 0;
    return search.outcome;
}
