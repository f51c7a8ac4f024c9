/* Exhaustive exploration of small concurrent protocols under weak memory, for
 * tests. A protocol is a step function per thread; every interleaving and every
 * value a load may return is tried, duplicates of a state are visited once.
 *
 * The memory is that of C11 with relaxed, release/acquire and sequentially
 * consistent fences, as an abstract machine: each word keeps the history of its
 * stores, each thread a view (how old a store it may still read), each store the
 * view it hands on. Loads may be stale, stores become visible out of order, and
 * a load marked late may take its value after later stores of its thread: all
 * that store buffers, write-combining and invalidation queues do. Stores to one
 * word are ordered as they are executed; no other restriction but the bounds. */
#ifndef UM_WEAK_MEMORY_H
#define UM_WEAK_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#define WM_THREADS 3
#define WM_WORDS 20   /* shared words of a model */
#define WM_HISTORY 14 /* stores of one word that somebody may still read */
#define WM_REGISTERS 12
#define WM_LATE 4

enum wm_order { WM_RELAXED, WM_ACQUIRE, WM_RELEASE, WM_ACQ_REL, WM_SEQ_CST };

enum wm_result {
    WM_RAN,     /* one step was made */
    WM_BLOCKED, /* nothing to do before another thread acts */
    WM_FINISHED
};

struct wm_view {
    uint8_t at[WM_WORDS];
};

struct wm_late {
    uint8_t word, reg, from; /* word + 1; 0: free */
};

struct wm_thread {
    struct wm_view now, on_acquire, on_release;
    uint8_t pc;
    uint8_t r[WM_REGISTERS];
    struct wm_late late[WM_LATE];
    bool asleep; /* in a futex */
};

struct wm_store {
    uint8_t value;
    struct wm_view view;
};

struct wm_word {
    uint8_t count;
    struct wm_store history[WM_HISTORY]; /* oldest first */
};

/* The whole state; compared and copied as bytes. */
struct wm {
    struct wm_thread threads[WM_THREADS];
    struct wm_word words[WM_WORDS];
    struct wm_view fenced; /* by sequentially consistent fences */
};

struct wm_model {
    int threads, words;
    void (*init)(struct wm *wm);
    enum wm_result (*step)(struct wm *wm, int thread); /* at most one memory operation that may vary */
};

struct wm_outcome {
    const char *fault;    /* NULL: none in any execution */
    unsigned long states; /* visited */
    unsigned long ends;   /* states in which all threads had finished */
};

/* Whether some execution fails, or ends with a thread that cannot go on. Prints the first one found when `verbose`. */
struct wm_outcome wm_explore(const struct wm_model *model, bool verbose);

/* For step functions. */
uint8_t wm_load(struct wm *wm, int thread, int word, enum wm_order order);
void wm_load_late(struct wm *wm, int thread, int word, int reg); /* relaxed; the register is set now or later */
bool wm_is_late(const struct wm *wm, int thread);                /* some late load has no value yet */
void wm_store(struct wm *wm, int thread, int word, uint8_t value, enum wm_order order);
uint8_t wm_exchange(struct wm *wm, int thread, int word, uint8_t value); /* sequentially consistent */
uint8_t wm_add(struct wm *wm, int thread, int word, uint8_t value);      /* the old value; sequentially consistent */
void wm_fence(struct wm *wm, int thread, enum wm_order order);           /* WM_RELAXED: none */
uint8_t wm_latest(const struct wm *wm, int word);                        /* not an access: for checks and the kernel */
void wm_futex_wait(struct wm *wm, int thread, int word, uint8_t expected); /* sets asleep unless the word differs */
void wm_futex_wake(struct wm *wm, int thread);                             /* that thread */
/* Operations that must wait for late loads of their thread: release stores, fences. True: return WM_BLOCKED without
 * doing anything; the explorer gives the loads their values. */
bool wm_must_settle(const struct wm *wm, int thread, enum wm_order order);
void wm_fail(const char *fault); /* this execution is wrong */

#endif
