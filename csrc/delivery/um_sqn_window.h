/* Which of the latest sequence numbers of a sender were seen: a window that slides in steps behind the newest number.
 * It outlives the delivery controllers of its sender, which do not remember what came before them. No I/O; its owner's
 * thread. */
#ifndef UM_DELIVERY_SQN_WINDOW_H
#define UM_DELIVERY_SQN_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UM_SQN_WINDOW_MAX (1u << 24) /* numbers; a larger size counts as this */

struct um_sqn_window {
    uint8_t *bits;  /* a ring: bit (start + n) % size is that of number base + n */
    uint32_t size;  /* numbers, a multiple of 8 */
    uint32_t step;  /* the same; divides size */
    uint32_t start; /* a multiple of 8 */
    uint32_t base;  /* oldest number in it */
    bool begun;     /* a number was taken */
};

enum um_sqn_taken {
    UM_SQN_NEW,    /* for the first time */
    UM_SQN_SEEN,   /* once more */
    UM_SQN_BEHIND, /* older than the window: nobody knows */
};

/* Size and step in numbers, multiples of 8. -1: no memory, no error text. */
int um_sqn_window_init(struct um_sqn_window *window, size_t size, size_t step);
void um_sqn_window_free(struct um_sqn_window *window);
enum um_sqn_taken um_sqn_window_take(struct um_sqn_window *window, uint32_t sqn);

#endif
