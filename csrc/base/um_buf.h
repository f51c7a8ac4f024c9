/* Reference-counted receive buffers from a pool. A message keeps its buffer
 * alive (um_buf_ref); the last release returns it to the pool from any thread.
 * A pool outlives its owner until the last buffer comes back. */
#ifndef UM_BASE_BUF_H
#define UM_BASE_BUF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct um_buf_pool;

struct um_buf {
    atomic_int refs; /* any thread */
    uint32_t capacity;
    struct um_buf_pool *pool; /* NULL: plain heap buffer */
    struct um_buf *next_free; /* pool lock */
    uint8_t data[];
};

struct um_buf_pool *um_buf_pool_create(size_t capacity, size_t keep_max); /* keep_max: free buffers retained */
void um_buf_pool_release(struct um_buf_pool *pool);                       /* drops the owner's reference */
struct um_buf *um_buf_get(struct um_buf_pool *pool);                      /* refs 1; NULL out of memory */
struct um_buf *um_buf_alloc(size_t capacity);                             /* pool-less, refs 1 */
void um_buf_free_last(struct um_buf *buf);                                /* internal: refs reached 0 */

static inline void um_buf_ref(struct um_buf *buf)
{
    atomic_fetch_add_explicit(&buf->refs, 1, memory_order_relaxed);
}

/* Nobody else has a reference, and what they did with the bytes is over. */
static inline bool um_buf_is_ours(const struct um_buf *buf)
{
    return atomic_load_explicit(&buf->refs, memory_order_acquire) == 1;
}

static inline void um_buf_unref(struct um_buf *buf)
{
    if (atomic_fetch_sub_explicit(&buf->refs, 1, memory_order_acq_rel) == 1) {
        um_buf_free_last(buf);
    }
}

#endif
