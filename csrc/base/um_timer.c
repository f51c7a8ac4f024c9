/* Hierarchical timer wheel: eight levels of 64 slots over ticks of 2^20 ns (about
 * 1 ms). A timer sits on the level of the highest 6-bit digit in which its tick
 * differs from the wheel's, and moves down when the wheel reaches its slot, so
 * that arming and cancelling are O(1). Due times are kept exactly: a timer never
 * fires early. Confined to one thread. */
#include "base/um_timer.h"

#include <stddef.h>

#include "base/um_mem.h"

#define UM_TICK_SHIFT 20u
#define UM_DIGIT_BITS 6u
#define UM_SLOTS 64u
#define UM_LEVELS 8u /* 48 bits of tick cover 64 - 20 = 44 */

struct um_timer_wheel {
    uint64_t now_ns;
    uint64_t next_ns; /* answer of um_timer_next while next_valid */
    bool next_valid;
    uint64_t occupied[UM_LEVELS]; /* bit set: the slot may hold timers; cleared when found empty */
    struct um_list slots[UM_LEVELS][UM_SLOTS];
};

struct um_timer_wheel *um_timer_wheel_create(uint64_t now_ns)
{
    struct um_timer_wheel *wheel = um_calloc(1, sizeof *wheel);
    if (wheel == NULL) {
        return NULL;
    }
    wheel->now_ns = now_ns;
    for (unsigned level = 0; level < UM_LEVELS; level++) {
        for (unsigned slot = 0; slot < UM_SLOTS; slot++) {
            um_list_init(&wheel->slots[level][slot]);
        }
    }
    return wheel;
}

void um_timer_wheel_destroy(struct um_timer_wheel *wheel)
{
    if (wheel == NULL) {
        return;
    }
    for (unsigned level = 0; level < UM_LEVELS; level++) {
        for (unsigned slot = 0; slot < UM_SLOTS; slot++) {
            struct um_list *node;
            while ((node = um_list_first(&wheel->slots[level][slot])) != NULL) {
                um_list_remove(node);
            }
        }
    }
    um_free(wheel);
}

void um_timer_init(struct um_timer *timer, void (*fn)(struct um_timer *timer, uint64_t now_ns))
{
    um_list_init(&timer->node);
    timer->due_ns = UM_NEVER;
    timer->fn = fn;
}

bool um_timer_armed(const struct um_timer *timer)
{
    return !um_list_empty(&timer->node);
}

static uint64_t um_tick(uint64_t ns)
{
    return ns >> UM_TICK_SHIFT;
}

static void um_timer_place(struct um_timer_wheel *wheel, struct um_timer *timer)
{
    uint64_t tick = um_tick(timer->due_ns);
    uint64_t differs = tick ^ um_tick(wheel->now_ns);
    unsigned level = differs == 0 ? 0 : (63u - (unsigned)__builtin_clzll(differs)) / UM_DIGIT_BITS;
    unsigned slot = (unsigned)(tick >> (level * UM_DIGIT_BITS)) & (UM_SLOTS - 1);
    um_list_push_back(&wheel->slots[level][slot], &timer->node);
    wheel->occupied[level] |= 1ull << slot;
}

void um_timer_arm(struct um_timer_wheel *wheel, struct um_timer *timer, uint64_t due_ns)
{
    um_timer_cancel(wheel, timer);
    timer->due_ns = due_ns > wheel->now_ns ? due_ns : wheel->now_ns;
    um_timer_place(wheel, timer);
    if (wheel->next_valid && timer->due_ns < wheel->next_ns) {
        wheel->next_ns = timer->due_ns;
    }
}

void um_timer_cancel(struct um_timer_wheel *wheel, struct um_timer *timer)
{
    if (um_timer_armed(timer)) {
        um_list_remove(&timer->node);
        if (timer->due_ns == wheel->next_ns) {
            wheel->next_valid = false;
        }
    }
}

/* The occupied slot that comes first: on the lowest level that has one, because everything on a lower level lies
 * before the next slot of the level above. */
static bool um_timer_first_slot(struct um_timer_wheel *wheel, unsigned *level_out, unsigned *slot_out)
{
    for (unsigned level = 0; level < UM_LEVELS; level++) {
        while (wheel->occupied[level] != 0) {
            unsigned slot = (unsigned)__builtin_ctzll(wheel->occupied[level]);
            if (!um_list_empty(&wheel->slots[level][slot])) {
                *level_out = level;
                *slot_out = slot;
                return true;
            }
            wheel->occupied[level] &= ~(1ull << slot);
        }
    }
    return false;
}

static uint64_t um_timer_slot_start(const struct um_timer_wheel *wheel, unsigned level, unsigned slot)
{
    unsigned shift = UM_TICK_SHIFT + level * UM_DIGIT_BITS;
    unsigned above = shift + UM_DIGIT_BITS;
    uint64_t base = above >= 64 ? 0 : wheel->now_ns >> above << above;
    return base | (uint64_t)slot << shift;
}

uint64_t um_timer_next(const struct um_timer_wheel *const_wheel)
{
    struct um_timer_wheel *wheel = (struct um_timer_wheel *)const_wheel; /* only caches change */
    if (wheel->next_valid) {
        return wheel->next_ns;
    }
    unsigned level, slot;
    uint64_t next = UM_NEVER;
    if (um_timer_first_slot(wheel, &level, &slot)) {
        if (level > 0) {
            next = um_timer_slot_start(wheel, level, slot);
        } else {
            const struct um_list *node;
            UM_LIST_FOREACH(node, &wheel->slots[0][slot])
            {
                const struct um_timer *timer = UM_CONTAINER_OF(node, struct um_timer, node);
                next = timer->due_ns < next ? timer->due_ns : next;
            }
        }
    }
    wheel->next_ns = next;
    wheel->next_valid = true;
    return next;
}

/* Move the timers of a slot of the present tick that are due into `due`. */
static void um_timer_take_due(struct um_timer_wheel *wheel, unsigned slot, uint64_t now_ns, struct um_list *due)
{
    struct um_list *node, *next;
    UM_LIST_FOREACH_SAFE(node, next, &wheel->slots[0][slot])
    {
        if (UM_CONTAINER_OF(node, struct um_timer, node)->due_ns <= now_ns) {
            um_list_remove(node);
            um_list_push_back(due, node);
        }
    }
}

static void um_timer_cascade(struct um_timer_wheel *wheel, unsigned level, unsigned slot)
{
    struct um_list *node;
    while ((node = um_list_first(&wheel->slots[level][slot])) != NULL) {
        um_list_remove(node);
        um_timer_place(wheel, UM_CONTAINER_OF(node, struct um_timer, node));
    }
    wheel->occupied[level] &= ~(1ull << slot);
}

static void um_timer_advance(struct um_timer_wheel *wheel, uint64_t now_ns, struct um_list *due)
{
    unsigned level, slot;
    while (um_timer_first_slot(wheel, &level, &slot)) {
        uint64_t start = um_timer_slot_start(wheel, level, slot);
        if (start > now_ns) {
            break;
        }
        if (start > wheel->now_ns) {
            wheel->now_ns = start;
        }
        if (level > 0) {
            um_timer_cascade(wheel, level, slot);
        } else {
            um_timer_take_due(wheel, slot, now_ns, due);
            if (!um_list_empty(&wheel->slots[0][slot])) {
                break; /* the present tick, with timers due later in it */
            }
        }
    }
    wheel->now_ns = now_ns;
}

static struct um_list *um_timer_merge(struct um_list *a, struct um_list *b)
{
    struct um_list *head = NULL, **tail = &head;
    while (a != NULL && b != NULL) {
        bool from_b =
            UM_CONTAINER_OF(b, struct um_timer, node)->due_ns < UM_CONTAINER_OF(a, struct um_timer, node)->due_ns;
        struct um_list **source = from_b ? &b : &a;
        *tail = *source;
        tail = &(*source)->next;
        *source = (*source)->next;
    }
    *tail = a != NULL ? a : b;
    return head;
}

/* Stable bottom-up merge sort by due time; runs of 2^i nodes wait in run[i]. */
static void um_timer_sort(struct um_list *due)
{
    struct um_list *run[64] = {NULL};
    unsigned highest = 0;
    struct um_list *node = um_list_first(due);
    while (node != NULL) {
        struct um_list *next = node->next != due ? node->next : NULL;
        node->next = NULL;
        unsigned i = 0;
        for (; run[i] != NULL; i++) {
            node = um_timer_merge(run[i], node);
            run[i] = NULL;
        }
        run[i] = node;
        highest = i > highest ? i : highest;
        node = next;
    }
    struct um_list *sorted = NULL;
    for (unsigned i = 0; i <= highest; i++) {
        sorted = run[i] != NULL ? um_timer_merge(run[i], sorted) : sorted;
    }
    um_list_init(due);
    while (sorted != NULL) {
        struct um_list *next = sorted->next;
        um_list_push_back(due, sorted);
        sorted = next;
    }
}

int um_timer_run(struct um_timer_wheel *wheel, uint64_t now_ns)
{
    if (now_ns < wheel->now_ns) {
        return 0;
    }
    struct um_list due;
    um_list_init(&due);
    um_timer_advance(wheel, now_ns, &due);
    wheel->next_valid = false;
    um_timer_sort(&due);
    int fired = 0;
    struct um_list *node;
    while ((node = um_list_first(&due)) != NULL) {
        um_list_remove(node);
        struct um_timer *timer = UM_CONTAINER_OF(node, struct um_timer, node);
        timer->fn(timer, now_ns);
        fired++;
    }
    return fired;
}
