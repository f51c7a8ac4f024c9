/* The output queue of a byte stream: a ring of datagrams written with as few system
 * calls as they need. */
#include "transport/stream/um_datagram_queue.h"

#include "base/um_mem.h"

#define UM_QUEUE_FIRST 16u
#define UM_WRITE_IOVECS 64

static bool queue_grow(struct um_datagram_queue *queue)
{
    uint32_t size = queue->size == 0 ? UM_QUEUE_FIRST : queue->size * 2;
    struct um_datagram **ring = um_malloc(size * sizeof *ring);
    if (ring == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < queue->count; i++) {
        ring[i] = um_datagram_queue_at(queue, i);
    }
    um_free(queue->ring);
    queue->ring = ring;
    queue->size = size;
    queue->head = 0;
    return true;
}

bool um_datagram_queue_push(struct um_datagram_queue *queue, struct um_datagram *datagram, size_t written)
{
    if (queue->count == queue->size && !queue_grow(queue)) {
        return false;
    }
    queue->ring[(queue->head + queue->count) & (queue->size - 1)] = datagram;
    queue->count++;
    datagram->refs++;
    if (queue->count == 1) {
        queue->head_written = written;
    }
    queue->bytes += datagram->len - written;
    return true;
}

ssize_t um_datagram_queue_write(struct um_datagram_queue *queue, struct um_stream *stream)
{
    struct iovec iov[UM_WRITE_IOVECS];
    int count = queue->count < UM_WRITE_IOVECS ? (int)queue->count : UM_WRITE_IOVECS;
    for (int i = 0; i < count; i++) {
        struct um_datagram *datagram = um_datagram_queue_at(queue, (uint32_t)i);
        size_t skip = i == 0 ? queue->head_written : 0;
        iov[i] = (struct iovec){datagram->data + skip, datagram->len - skip};
    }
    ssize_t taken = um_stream_writev(stream, iov, count);
    if (taken > 0) {
        queue->head_written += (size_t)taken;
        queue->bytes -= (size_t)taken;
    }
    return taken;
}

static struct um_datagram *take_head(struct um_datagram_queue *queue)
{
    struct um_datagram *datagram = um_datagram_queue_at(queue, 0);
    queue->head = (queue->head + 1) & (queue->size - 1);
    queue->count--;
    return datagram;
}

struct um_datagram *um_datagram_queue_written(struct um_datagram_queue *queue)
{
    if (queue->count == 0 || queue->head_written < um_datagram_queue_at(queue, 0)->len) {
        return NULL;
    }
    struct um_datagram *datagram = take_head(queue);
    queue->head_written -= datagram->len;
    return datagram;
}

struct um_datagram *um_datagram_queue_pop(struct um_datagram_queue *queue)
{
    if (queue->count == 0) {
        return NULL;
    }
    struct um_datagram *datagram = take_head(queue);
    queue->bytes -= datagram->len - queue->head_written;
    queue->head_written = 0;
    return datagram;
}

void um_datagram_queue_cut(struct um_datagram_queue *queue, uint32_t from, uint32_t count)
{
    uint32_t mask = queue->size - 1;
    for (uint32_t i = 0; i < count; i++) {
        queue->bytes -= um_datagram_queue_at(queue, from + i)->len;
    }
    for (uint32_t i = from; i + count < queue->count; i++) {
        queue->ring[(queue->head + i) & mask] = um_datagram_queue_at(queue, i + count);
    }
    queue->count -= count;
}

void um_datagram_queue_rewind(struct um_datagram_queue *queue)
{
    queue->bytes += queue->head_written;
    queue->head_written = 0;
}

void um_datagram_queue_free(struct um_datagram_queue *queue)
{
    um_free(queue->ring);
    *queue = (struct um_datagram_queue){0};
}
