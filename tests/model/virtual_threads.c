/* The machine behind virtual_threads.h. */
#include "virtual_threads.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define WORDS 256    /* that a run touches */
#define STORES 16384 /* in a run */
#define LOCKS 32
#define STACK (64 * 1024) /* the address sanitizer forgets all it knows of a stack with each switch to it */
#define STEPS_MAX 200000  /* a run that goes on for longer goes on for ever */

/* What a thread knows: of each word the oldest store it may read, and how far it is behind what every thread did. */
struct view {
    uint16_t at[WORDS];
    uint32_t clock[VT_THREADS];
};

struct store {
    uint64_t value;
    int word, index; /* index: among the stores of its word */
    struct view view;
};

struct word {
    const void *address;
    unsigned size;
    int count, newest;                                   /* stores; the newest of them */
    int writer;                                          /* of the newest; -1: there from the beginning */
    uint32_t written;                                    /* its clock then */
    bool plain;                                          /* that store was plain */
    uint32_t plain_reads[VT_THREADS], reads[VT_THREADS]; /* clock of the last one of each thread */
};

enum state { RUNNABLE, IDLE, ASLEEP, FINISHED };

struct thread {
    ucontext_t context;
    enum state state;
    bool refreshed; /* idle, although it saw everything that was stored */
    const void *futex;
    struct view now, on_acquire, on_release;
};

static struct {
    const struct vt_scenario *scenario;
    ucontext_t home;
    struct thread threads[VT_THREADS];
    int current;
    struct word words[WORDS];
    int word_count;
    int by_word[WORDS][512]; /* numbers of stores */
    int store_count;
    struct view fenced;
    int locks[LOCKS]; /* holder + 1 */
    struct view lock_views[LOCKS];
    const char *plain_from, *plain_to;
    const char *fault;
    unsigned stay; /* one in so many steps is followed by another thread's */
    unsigned steps;
    uint64_t random;
} vm;

static struct store stores[STORES];
static char stacks[VT_THREADS][STACK];

static struct thread *self(void)
{
    return &vm.threads[vm.current];
}

unsigned vt_random(unsigned below)
{
    vm.random ^= vm.random << 13;
    vm.random ^= vm.random >> 7;
    vm.random ^= vm.random << 17;
    return (unsigned)((vm.random >> 16) % below);
}

/* ---- scheduling ---- */

void vt_fail(const char *fault)
{
    vm.fault = fault;
    swapcontext(&self()->context, &vm.home);
}

static void switch_to(int next)
{
    int before = vm.current;
    vm.current = next;
    if (next != before) {
        swapcontext(&vm.threads[before].context, &vm.threads[next].context);
    }
}

static int pick(enum state state)
{
    int start = (int)vt_random((unsigned)vm.scenario->threads);
    for (int i = 0; i < vm.scenario->threads; i++) {
        int thread = (start + i) % vm.scenario->threads;
        if (vm.threads[thread].state == state) {
            return thread;
        }
    }
    return -1;
}

/* Stores become visible at last, also where nothing orders them. */
static void refresh(struct thread *thread)
{
    for (int i = 0; i < vm.word_count; i++) {
        thread->now.at[i] = (uint16_t)(vm.words[i].count - 1);
    }
    thread->refreshed = true;
}

/* The current thread cannot go on. */
static void give_way(void)
{
    int next = pick(RUNNABLE);
    if (next < 0) {
        for (int i = 0; i < vm.scenario->threads; i++) {
            if (vm.threads[i].state == IDLE && !vm.threads[i].refreshed) {
                next = i;
            }
        }
        if (next < 0) {
            vm.fault = pick(ASLEEP) >= 0 ? "a thread sleeps for ever" : pick(IDLE) >= 0 ? "nobody goes on" : NULL;
            swapcontext(&self()->context, &vm.home);
        }
        refresh(&vm.threads[next]);
        vm.threads[next].state = RUNNABLE;
    }
    switch_to(next);
}

static void step(void)
{
    if (++vm.steps > STEPS_MAX) {
        vt_fail("a run does not come to its end");
    }
    self()->now.clock[vm.current]++;
    if (vt_random(vm.stay) == 0) {
        int next = pick(RUNNABLE);
        switch_to(next < 0 ? vm.current : next);
    }
}

void vt_idle(void)
{
    self()->state = IDLE;
    give_way();
}

static void wake_idle(void)
{
    for (int i = 0; i < vm.scenario->threads; i++) {
        vm.threads[i].refreshed = false;
        if (vm.threads[i].state == IDLE) {
            vm.threads[i].state = RUNNABLE;
        }
    }
}

static void join(struct view *view, const struct view *other);

bool vt_lock_try(unsigned lock)
{
    step();
    if (vm.locks[lock] != 0 && vm.locks[lock] != vm.current + 1) {
        return false;
    }
    vm.locks[lock] = vm.current + 1;
    join(&self()->now, &vm.lock_views[lock]);
    return true;
}

void vt_lock_wait(unsigned lock)
{
    while (!vt_lock_try(lock)) {
        vt_idle();
    }
}

void vt_lock_give(unsigned lock)
{
    step();
    vm.locks[lock] = 0;
    vm.lock_views[lock] = self()->now;
    wake_idle();
}

/* ---- memory ---- */

static void join(struct view *view, const struct view *other)
{
    for (int i = 0; i < vm.word_count; i++) {
        view->at[i] = view->at[i] > other->at[i] ? view->at[i] : other->at[i];
    }
    for (int i = 0; i < VT_THREADS; i++) {
        view->clock[i] = view->clock[i] > other->clock[i] ? view->clock[i] : other->clock[i];
    }
}

static struct store *append(struct word *word, uint64_t value)
{
    int index = (int)(word - vm.words);
    if (vm.store_count == STORES || word->count == 512) {
        fprintf(stderr, "virtual_threads: a scenario stores too often\n");
        abort();
    }
    struct store *store = &stores[vm.store_count];
    memset(&store->view, 0, sizeof store->view);
    store->value = value;
    store->word = index;
    store->index = word->count;
    vm.by_word[index][word->count++] = vm.store_count;
    word->newest = vm.store_count++;
    return store;
}

static struct word *word_at(const void *address, unsigned size)
{
    for (int i = 0; i < vm.word_count; i++) {
        if (vm.words[i].address == address) {
            if (vm.words[i].size != size) {
                fprintf(stderr, "virtual_threads: a word is accessed in two sizes\n");
                abort();
            }
            return &vm.words[i];
        }
    }
    if (vm.word_count == WORDS) {
        fprintf(stderr, "virtual_threads: a scenario has too many words\n");
        abort();
    }
    struct word *word = &vm.words[vm.word_count++];
    memset(word, 0, sizeof *word);
    word->address = address;
    word->size = size;
    word->writer = -1;
    uint64_t value = 0;
    memcpy(&value, address, size);
    append(word, value);
    return word;
}

static bool acquires(int order)
{
    return order == memory_order_acquire || order == memory_order_acq_rel || order == memory_order_seq_cst;
}

static bool releases(int order)
{
    return order == memory_order_release || order == memory_order_acq_rel || order == memory_order_seq_cst;
}

/* Has the thread heard of what `other` did at `clock`? */
static bool after(int other, uint32_t clock)
{
    return other < 0 || other == vm.current || self()->now.clock[other] >= clock;
}

static void check_write(const struct word *word, bool plain)
{
    bool raced = (plain || word->plain) && !after(word->writer, word->written);
    for (int i = 0; i < vm.scenario->threads; i++) {
        raced |= !after(i, word->plain_reads[i]) || (plain && !after(i, word->reads[i]));
    }
    if (raced) {
        vt_fail("bytes are overwritten that somebody else may still read or write");
    }
}

static void wrote(struct word *word, bool plain)
{
    word->writer = vm.current;
    word->written = self()->now.clock[vm.current];
    word->plain = plain;
    self()->now.at[word - vm.words] = (uint16_t)(word->count - 1);
    wake_idle();
}

static void saw(const struct store *store, int order)
{
    struct thread *me = self();
    me->now.at[store->word] = (uint16_t)store->index;
    join(acquires(order) ? &me->now : &me->on_acquire, &store->view);
}

static bool is_plain(const void *at, int order)
{
    return order == memory_order_relaxed && (const char *)at >= vm.plain_from && (const char *)at < vm.plain_to;
}

static uint64_t plain_load(const void *at, unsigned size)
{
    struct word *word = word_at(at, size);
    step();
    if (!after(word->writer, word->written)) {
        vt_fail("bytes are read that somebody else may still write");
    }
    word->plain_reads[vm.current] = self()->now.clock[vm.current];
    return stores[word->newest].value;
}

static void plain_store(void *at, unsigned size, uint64_t value)
{
    struct word *word = word_at(at, size);
    step();
    check_write(word, true);
    append(word, value);
    wrote(word, true);
}

uint64_t vt_plain_load(const void *at)
{
    return plain_load(at, 8);
}

void vt_plain_store(void *at, uint64_t value)
{
    plain_store(at, 8, value);
}

void vt_plain_range(const void *from, const void *to)
{
    vm.plain_from = from;
    vm.plain_to = to;
}

uint64_t vt_load(const void *at, unsigned size, int order)
{
    if (is_plain(at, order)) {
        return plain_load(at, size);
    }
    struct word *word = word_at(at, size);
    step();
    if (word->plain && !after(word->writer, word->written)) {
        vt_fail("bytes are read that somebody else may still write");
    }
    unsigned oldest = self()->now.at[word - vm.words], count = (unsigned)word->count - oldest;
    unsigned choice = vt_random(4) < 2 ? count - 1 : vt_random(4) == 0 ? 0 : vt_random(count);
    const struct store *store = &stores[vm.by_word[word - vm.words][oldest + choice]];
    word->reads[vm.current] = self()->now.clock[vm.current];
    saw(store, order);
    return store->value;
}

void vt_store(void *at, unsigned size, uint64_t value, int order)
{
    if (is_plain(at, order)) {
        plain_store(at, size, value);
        return;
    }
    struct word *word = word_at(at, size);
    step();
    check_write(word, false);
    struct store *store = append(word, value);
    wrote(word, false);
    store->view = releases(order) ? self()->now : self()->on_release;
    store->view.at[store->word] = (uint16_t)store->index;
}

/* Reads the newest store, and goes on with what that released. */
static uint64_t change(void *at, unsigned size, uint64_t value, bool add, int order)
{
    struct word *word = word_at(at, size);
    step();
    check_write(word, false);
    const struct store *old = &stores[word->newest];
    if (order == memory_order_seq_cst) {
        vt_fence(order);
    }
    saw(old, order);
    struct store *store = append(word, add ? old->value + value : value);
    wrote(word, false);
    store->view = releases(order) ? self()->now : self()->on_release;
    store->view.at[store->word] = (uint16_t)store->index;
    join(&store->view, &old->view);
    return old->value;
}

uint64_t vt_exchange(void *at, unsigned size, uint64_t value, int order)
{
    return change(at, size, value, false, order);
}

uint64_t vt_add(void *at, unsigned size, uint64_t value, int order)
{
    return change(at, size, value, true, order);
}

void vt_fence(int order)
{
    struct thread *me = self();
    step();
    if (acquires(order)) {
        join(&me->now, &me->on_acquire);
    }
    if (order == memory_order_seq_cst) { /* what is visible, not what happened before: no clocks */
        for (int i = 0; i < vm.word_count; i++) {
            uint16_t newest = me->now.at[i] > vm.fenced.at[i] ? me->now.at[i] : vm.fenced.at[i];
            me->now.at[i] = vm.fenced.at[i] = newest;
        }
    }
    if (releases(order)) {
        me->on_release = me->now;
    }
}

/* ---- futex ---- */

void vt_futex_wait(const void *address, uint32_t seen)
{
    struct word *word = word_at(address, 4);
    step();
    if ((uint32_t)stores[word->newest].value == seen) {
        self()->state = ASLEEP;
        self()->futex = address;
        give_way();
    }
}

void vt_futex_wake(const void *address)
{
    step();
    for (int i = 0; i < vm.scenario->threads; i++) {
        if (vm.threads[i].state == ASLEEP && vm.threads[i].futex == address) {
            vm.threads[i].state = RUNNABLE;
        }
    }
}

/* ---- runs ---- */

static void thread_main(void)
{
    vm.scenario->body[vm.current]();
    self()->state = FINISHED;
    give_way();
}

static void run(const struct vt_scenario *scenario, unsigned number)
{
    vm.scenario = scenario;
    vm.word_count = vm.store_count = 0;
    vm.steps = 0;
    vm.fault = NULL;
    vm.plain_from = vm.plain_to = NULL;
    memset(&vm.fenced, 0, sizeof vm.fenced);
    memset(vm.locks, 0, sizeof vm.locks);
    memset(vm.lock_views, 0, sizeof vm.lock_views);
    vm.random = number * 0x9e3779b97f4a7c15ull;
    (void)vt_random(2);
    vm.stay = 1u << (1 + vt_random(5));
    scenario->begin();
    for (int i = 0; i < scenario->threads; i++) {
        struct thread *thread = &vm.threads[i];
        memset(&thread->now, 0, sizeof thread->now);
        memset(&thread->on_acquire, 0, sizeof thread->on_acquire);
        memset(&thread->on_release, 0, sizeof thread->on_release);
        thread->state = RUNNABLE;
        thread->refreshed = false;
        getcontext(&thread->context);
        thread->context.uc_stack.ss_sp = stacks[i];
        thread->context.uc_stack.ss_size = STACK;
        thread->context.uc_link = NULL;
        makecontext(&thread->context, thread_main, 0);
    }
    vm.current = (int)vt_random((unsigned)scenario->threads);
    swapcontext(&vm.home, &self()->context);
    if (vm.fault == NULL && scenario->end != NULL) {
        scenario->end();
    }
}

const char *vt_explore(const struct vt_scenario *scenario, unsigned runs)
{
    for (unsigned number = 1; number <= runs; number++) {
        run(scenario, number);
        if (vm.fault != NULL) {
            fprintf(stderr, "%s: run %u: %s\n", scenario->name, number, vm.fault);
            return vm.fault;
        }
    }
    return NULL;
}
