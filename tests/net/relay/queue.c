/* See queue.h. */
#include "queue.h"

#include <stdio.h>
#include <stdlib.h>

void queue_init(struct queue *queue, size_t frames_max)
{
    *queue = (struct queue){.frames_max = frames_max};
}

void queue_close(struct queue *queue)
{
    for (size_t i = 0; i < queue->used; i++) {
        queue_release(queue, queue->heap[i].frame);
    }
    for (struct queue_frame *frame = queue->free_frames; frame != NULL;) {
        struct queue_frame *next = frame->next_free;
        free(frame);
        frame = next;
    }
    free(queue->heap);
}

struct queue_frame *queue_new_frame(struct queue *queue)
{
    struct queue_frame *frame = queue->free_frames;
    if (frame != NULL) {
        queue->free_frames = frame->next_free;
    } else if (queue->frames == queue->frames_max || (frame = malloc(sizeof *frame)) == NULL) {
        return NULL;
    } else {
        queue->frames++;
    }
    frame->references = 1;
    return frame;
}

void queue_release(struct queue *queue, struct queue_frame *frame)
{
    if (--frame->references == 0) {
        frame->next_free = queue->free_frames;
        queue->free_frames = frame;
    }
}

static bool before(const struct queue_entry *a, const struct queue_entry *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

void queue_put(struct queue *queue, uint64_t due_ns, unsigned port, struct queue_frame *frame)
{
    if (queue->used == queue->room) {
        queue->room = queue->room != 0 ? 2 * queue->room : 1024;
        queue->heap = realloc(queue->heap, queue->room * sizeof *queue->heap);
        if (queue->heap == NULL) {
            fprintf(stderr, "no memory for %zu waiting frames\n", queue->room);
            abort();
        }
    }
    struct queue_entry entry = {due_ns, queue->orders++, port, frame};
    size_t at = queue->used++;
    for (; at > 0 && before(&entry, &queue->heap[(at - 1) / 2]); at = (at - 1) / 2) {
        queue->heap[at] = queue->heap[(at - 1) / 2];
    }
    queue->heap[at] = entry;
    queue->longest = queue->used > queue->longest ? queue->used : queue->longest;
}

bool queue_take_due(struct queue *queue, uint64_t now_ns, struct queue_entry *out)
{
    if (queue->used == 0 || queue->heap[0].due_ns > now_ns) {
        return false;
    }
    *out = queue->heap[0];
    struct queue_entry last = queue->heap[--queue->used];
    size_t at = 0;
    for (size_t child = 1; child < queue->used; child = 2 * at + 1) {
        if (child + 1 < queue->used && before(&queue->heap[child + 1], &queue->heap[child])) {
            child++;
        }
        if (!before(&queue->heap[child], &last)) {
            break;
        }
        queue->heap[at] = queue->heap[child];
        at = child;
    }
    if (queue->used > 0) {
        queue->heap[at] = last;
    }
    return true;
}
