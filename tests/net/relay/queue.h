/* Frames of the relay: a pool of buffers with reference counts, and the queue of
 * those that leave later, ordered by time. The relay's only thread. */
#ifndef RELAY_QUEUE_H
#define RELAY_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUEUE_FRAME_BYTES 10240 /* jumbo frames fit */

struct queue_frame {
    struct queue_frame *next_free;
    unsigned references;
    uint32_t len;
    uint8_t data[QUEUE_FRAME_BYTES];
};

struct queue_entry {
    uint64_t due_ns;
    uint64_t order; /* frames of one time leave as they came */
    unsigned port;
    struct queue_frame *frame;
};

struct queue {
    struct queue_entry *heap;
    size_t used, room, longest;
    uint64_t orders;
    struct queue_frame *free_frames;
    size_t frames, frames_max;
};

void queue_init(struct queue *queue, size_t frames_max);
/* Frees what is not under way. */
void queue_close(struct queue *queue);

/* A frame with one reference; NULL: all frames_max are under way. */
struct queue_frame *queue_new_frame(struct queue *queue);
void queue_release(struct queue *queue, struct queue_frame *frame);

/* Takes one reference of the frame. */
void queue_put(struct queue *queue, uint64_t due_ns, unsigned port, struct queue_frame *frame);

/* The first frame that is due; its reference goes to the caller. */
bool queue_take_due(struct queue *queue, uint64_t now_ns, struct queue_entry *out);

#endif
