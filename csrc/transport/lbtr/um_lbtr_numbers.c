/* Number space of a source. See um_lbtr_numbers.h. */
#include "transport/lbtr/um_lbtr_numbers.h"

#include <string.h>

#include "base/um_mem.h"
#include "base/um_sqn.h"

bool um_lbtr_numbers_init(struct um_lbtr_numbers *numbers, uint32_t capacity, uint32_t first)
{
    memset(numbers, 0, sizeof *numbers);
    numbers->entries = um_malloc(capacity * sizeof *numbers->entries);
    numbers->capacity = capacity;
    numbers->trail = numbers->unsent = numbers->next = first;
    return numbers->entries != NULL;
}

void um_lbtr_numbers_touch(struct um_lbtr_numbers *numbers)
{
    memset(numbers->entries, 0, numbers->capacity * sizeof *numbers->entries);
}

void um_lbtr_numbers_free(struct um_lbtr_numbers *numbers)
{
    um_free(numbers->entries);
    um_free(numbers->queue);
    memset(numbers, 0, sizeof *numbers);
}

static bool grow(struct um_lbtr_numbers *numbers)
{
    uint32_t capacity = numbers->capacity * 2;
    struct um_lbtr_sent *entries = um_malloc(capacity * sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    for (uint32_t sqn = numbers->trail; sqn != numbers->next; sqn++) {
        entries[sqn & (capacity - 1)] = *um_lbtr_numbers_at(numbers, sqn);
    }
    um_free(numbers->entries);
    numbers->entries = entries;
    numbers->capacity = capacity;
    return true;
}

/* ---- heap of waiting repairs ---- */

static void heap_down(struct um_lbtr_numbers *numbers, size_t i)
{
    uint32_t *heap = numbers->queue, moved = heap[i];
    for (size_t child; (child = 2 * i + 1) < numbers->queue_count; i = child) {
        if (child + 1 < numbers->queue_count && um_sqn_older(heap[child + 1], heap[child])) {
            child++;
        }
        if (!um_sqn_older(heap[child], moved)) {
            break;
        }
        heap[i] = heap[child];
    }
    heap[i] = moved;
}

void um_lbtr_numbers_pop(struct um_lbtr_numbers *numbers)
{
    struct um_lbtr_sent *sent = um_lbtr_numbers_at(numbers, numbers->queue[0]);
    sent->queued = false;
    numbers->queue_bytes -= sent->len;
    numbers->queue[0] = numbers->queue[--numbers->queue_count];
    if (numbers->queue_count > 0) {
        heap_down(numbers, 0);
    }
}

bool um_lbtr_numbers_queue(struct um_lbtr_numbers *numbers, uint32_t sqn)
{
    if (numbers->queue_count == numbers->queue_capacity) {
        size_t capacity = numbers->queue_capacity == 0 ? 64 : numbers->queue_capacity * 2;
        uint32_t *queue = um_realloc(numbers->queue, capacity * sizeof *queue);
        if (queue == NULL) {
            return false;
        }
        numbers->queue = queue;
        numbers->queue_capacity = capacity;
    }
    size_t i = numbers->queue_count++;
    for (; i > 0 && um_sqn_older(sqn, numbers->queue[(i - 1) / 2]); i = (i - 1) / 2) {
        numbers->queue[i] = numbers->queue[(i - 1) / 2];
    }
    numbers->queue[i] = sqn;
    struct um_lbtr_sent *sent = um_lbtr_numbers_at(numbers, sqn);
    sent->queued = true;
    numbers->queue_bytes += sent->len;
    return true;
}

struct um_lbtr_sent *um_lbtr_numbers_peek(const struct um_lbtr_numbers *numbers, uint32_t *sqn)
{
    if (numbers->queue_count == 0) {
        return NULL;
    }
    *sqn = numbers->queue[0];
    return um_lbtr_numbers_at(numbers, *sqn);
}

/* ---- numbers ---- */

static void drop_oldest(struct um_lbtr_numbers *numbers)
{
    if (um_lbtr_numbers_at(numbers, numbers->trail)->queued) { /* the heap's first: nothing older can wait */
        um_lbtr_numbers_pop(numbers);
    }
    if (numbers->unsent == numbers->trail) {
        numbers->unsent++;
    }
    numbers->trail++;
}

uint32_t um_lbtr_numbers_add(struct um_lbtr_numbers *numbers, struct um_lbtr_slot *slot)
{
    if (numbers->next - numbers->trail == numbers->capacity && !grow(numbers)) {
        drop_oldest(numbers);
    }
    uint32_t sqn = numbers->next++;
    *um_lbtr_numbers_at(numbers, sqn) = (struct um_lbtr_sent){.slot = slot, .index = slot->index, .len = slot->len};
    return sqn;
}

void um_lbtr_numbers_trim(struct um_lbtr_numbers *numbers, uint64_t first)
{
    while (numbers->trail != numbers->next && um_lbtr_numbers_at(numbers, numbers->trail)->index < first) {
        drop_oldest(numbers);
    }
}
