/* The window of numbers seen. See um_sqn_window.h. */
#include "delivery/um_sqn_window.h"

#include <string.h>

#include "base/um_mem.h"

int um_sqn_window_init(struct um_sqn_window *window, size_t size, size_t step)
{
    bool whole = size > UM_SQN_WINDOW_MAX;
    *window = (struct um_sqn_window){.size = whole ? UM_SQN_WINDOW_MAX : (uint32_t)size};
    window->step = whole ? UM_SQN_WINDOW_MAX / 2 : (uint32_t)step;
    window->bits = um_calloc(1, window->size / 8);
    return window->bits != NULL ? 0 : -1;
}

void um_sqn_window_free(struct um_sqn_window *window)
{
    um_free(window->bits);
    window->bits = NULL;
}

/* The oldest `count` numbers, a multiple of 8 below the size, make room for as many new ones. */
static void slide(struct um_sqn_window *window, uint32_t count)
{
    uint32_t tail = window->size - window->start, first = count < tail ? count : tail;
    memset(window->bits + window->start / 8, 0, first / 8);
    memset(window->bits, 0, (count - first) / 8);
    window->start = (window->start + count) % window->size;
    window->base += count;
}

/* The newest number is `ahead` of the base. */
static void make_room(struct um_sqn_window *window, uint32_t ahead)
{
    uint32_t beyond = ahead - window->size + 1;
    uint64_t count = ((uint64_t)beyond + window->step - 1) / window->step * window->step;
    if (count < window->size) {
        slide(window, (uint32_t)count);
        return;
    }
    memset(window->bits, 0, window->size / 8);
    window->start = 0;
    window->base += (uint32_t)count;
}

enum um_sqn_taken um_sqn_window_take(struct um_sqn_window *window, uint32_t sqn)
{
    if (!window->begun) { /* as if it had just slid: what was sent before may still come */
        window->begun = true;
        window->base = sqn - (window->size - window->step);
    }
    uint32_t ahead = sqn - window->base;
    if (ahead > INT32_MAX) {
        return UM_SQN_BEHIND;
    }
    if (ahead >= window->size) {
        make_room(window, ahead);
        ahead = sqn - window->base;
    }
    uint32_t at = (uint32_t)(((uint64_t)window->start + ahead) % window->size);
    uint8_t bit = (uint8_t)(1u << (at % 8));
    bool seen = (window->bits[at / 8] & bit) != 0;
    window->bits[at / 8] |= bit;
    return seen ? UM_SQN_SEEN : UM_SQN_NEW;
}
