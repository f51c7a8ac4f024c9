/* Pools of receive buffers. The pool counts its owner and every buffer that is
 * out; the last of them frees it. Getting is the owner's thread, the last
 * um_buf_unref may come from any. */
#include "base/um_buf.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/um_mem.h"

struct um_buf_pool {
    pthread_mutex_t lock;
    struct um_buf *free_list; /* lock */
    size_t free_count;        /* lock */
    size_t users;             /* lock: buffers out, plus 1 for the owner */
    size_t keep_max;
    size_t capacity;
};

struct um_buf_pool *um_buf_pool_create(size_t capacity, size_t keep_max)
{
    struct um_buf_pool *pool = um_calloc(1, sizeof *pool);
    if (pool == NULL) {
        return NULL;
    }
    pthread_mutex_init(&pool->lock, NULL);
    pool->users = 1;
    pool->keep_max = keep_max;
    pool->capacity = capacity;
    return pool;
}

static void um_buf_pool_free(struct um_buf_pool *pool)
{
    while (pool->free_list != NULL) {
        struct um_buf *next = pool->free_list->next_free;
        um_free(pool->free_list);
        pool->free_list = next;
    }
    pthread_mutex_destroy(&pool->lock);
    um_free(pool);
}

void um_buf_pool_release(struct um_buf_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    bool last = --pool->users == 0;
    pool->keep_max = 0; /* what comes back from now on is freed */
    pthread_mutex_unlock(&pool->lock);
    if (last) {
        um_buf_pool_free(pool);
    }
}

struct um_buf *um_buf_get(struct um_buf_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    struct um_buf *buf = pool->free_list;
    if (buf != NULL) {
        pool->free_list = buf->next_free;
        pool->free_count--;
    }
    pool->users++;
    pthread_mutex_unlock(&pool->lock);
    if (buf == NULL) {
        buf = um_buf_alloc(pool->capacity);
        if (buf == NULL) {
            pthread_mutex_lock(&pool->lock);
            pool->users--;
            pthread_mutex_unlock(&pool->lock);
            return NULL;
        }
        buf->pool = pool;
    }
    buf->next_free = NULL;
    atomic_store_explicit(&buf->refs, 1, memory_order_relaxed);
    return buf;
}

struct um_buf *um_buf_alloc(size_t capacity)
{
    if (capacity > UINT32_MAX) {
        return NULL;
    }
    struct um_buf *buf = um_malloc(sizeof *buf + capacity);
    if (buf != NULL) {
        atomic_init(&buf->refs, 1);
        buf->capacity = (uint32_t)capacity;
        buf->pool = NULL;
        buf->next_free = NULL;
    }
    return buf;
}

void um_buf_free_last(struct um_buf *buf)
{
    struct um_buf_pool *pool = buf->pool;
    if (pool == NULL) {
        um_free(buf);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    bool keep = pool->free_count < pool->keep_max;
    if (keep) {
        buf->next_free = pool->free_list;
        pool->free_list = buf;
        pool->free_count++;
    }
    bool last = --pool->users == 0;
    pthread_mutex_unlock(&pool->lock);
    if (!keep) {
        um_free(buf);
    }
    if (last) {
        um_buf_pool_free(pool);
    }
}
