/* What waits to be written to a byte stream: datagrams, of whose oldest a part may be
 * written already. Used by TCP source sessions and unicast connections under their
 * lock; knows neither. A queue holds one reference to each of its datagrams. */
#ifndef UM_TRANSPORT_STREAM_DATAGRAM_QUEUE_H
#define UM_TRANSPORT_STREAM_DATAGRAM_QUEUE_H

#include <stddef.h>

#include "net/um_stream.h"
#include "transport/stream/um_datagram.h"

/* Zeroed memory is an empty queue. */
struct um_datagram_queue {
    struct um_datagram **ring; /* `size` is a power of two, or 0 */
    uint32_t size, head, count;
    size_t head_written; /* bytes of the oldest datagram already in the stream */
    size_t bytes;        /* still to be written */
};

static inline struct um_datagram *um_datagram_queue_at(const struct um_datagram_queue *queue, uint32_t i)
{
    return queue->ring[(queue->head + i) & (queue->size - 1)];
}

/* Of a datagram that finds the queue empty, `written` bytes may be in the stream already. False: out of memory. */
bool um_datagram_queue_push(struct um_datagram_queue *queue, struct um_datagram *datagram, size_t written);
/* One writev() of as much as fits. Bytes the stream took; 0: none for now; -1: it ended. */
ssize_t um_datagram_queue_write(struct um_datagram_queue *queue, struct um_stream *stream);
/* The oldest datagram if the stream has all of it, with its reference; else NULL. Call it until then after a write. */
struct um_datagram *um_datagram_queue_written(struct um_datagram_queue *queue);
/* The oldest datagram, written or not, with its reference; NULL: empty. */
struct um_datagram *um_datagram_queue_pop(struct um_datagram_queue *queue);
/* Takes `count` datagrams out, from position `from` on, of which nothing is written; their references are the caller's,
 * who has looked at them before. */
void um_datagram_queue_cut(struct um_datagram_queue *queue, uint32_t from, uint32_t count);
/* The newest datagram gives way to a copy of it. False: it is another one. References are the caller's business. */
static inline bool um_datagram_queue_replace_last(struct um_datagram_queue *queue, const struct um_datagram *datagram,
                                                  struct um_datagram *copy)
{
    uint32_t last = (queue->head + queue->count - 1) & (queue->size - 1);
    if (queue->count == 0 || queue->ring[last] != datagram) {
        return false;
    }
    queue->ring[last] = copy;
    return true;
}
/* The stream was lost: the oldest datagram goes out again from its first byte. */
void um_datagram_queue_rewind(struct um_datagram_queue *queue);
void um_datagram_queue_free(struct um_datagram_queue *queue); /* empty */

#endif
