/* Life of messages: creation, hand-over of a retained template, holds counted
 * across threads. The payload is not copied, a message refers to the receive
 * buffer (or the reassembly buffer) it came in; except out of shared memory. */
#include "core/um_message.h"

#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "core/um_msg_extras.h"
#include "core/um_object_counts.h"
#include "core/um_response.h"

/* At most 246 characters (um_topic.h). */
void um_msg_set_topic(struct um_msg *msg, const char *topic)
{
    size_t len = strnlen(topic, sizeof msg->pub.topic_name - 1);
    memcpy(msg->pub.topic_name, topic, len);
    msg->pub.topic_name[len] = '\0';
}

struct um_msg *um_msg_create(const char *source, const char *topic)
{
    struct um_msg *msg = um_calloc(1, sizeof *msg);
    if (msg == NULL) {
        return NULL;
    }
    msg->magic = UM_MSG_MAGIC;
    atomic_init(&msg->holds, UM_MSG_LIBRARY_HOLD);
    snprintf(msg->pub.source, sizeof msg->pub.source, "%s", source);
    um_msg_set_topic(msg, topic);
    um_list_init(&msg->event.node);
    return msg;
}

/* From here on the payload outlives the delivery: by a reference on its buffer, or, out of shared memory, as a copy. */
static bool keep_payload(struct um_msg *msg)
{
    if (msg->buf != NULL) {
        um_buf_ref(msg->buf);
    } else if (msg->pub.data != NULL) {
        size_t len = msg->pub.len + um_msg_extras_behind(msg);
        msg->buf = um_buf_alloc(len);
        if (msg->buf == NULL) {
            return false;
        }
        memcpy(msg->buf->data, msg->pub.data, len);
        msg->pub.data = (const char *)msg->buf->data;
        um_msg_extras_moved(msg);
    }
    um_msg_mark(msg, UM_MSG_BUF_HELD, msg->buf != NULL);
    return true;
}

/* `buf` NULL: the payload is copied. */
static struct um_msg *clone_with(const struct um_msg *msg, struct um_buf *buf)
{
    struct um_msg *copy = um_malloc(sizeof *copy);
    if (copy == NULL) {
        return NULL;
    }
    memset(copy, 0, sizeof *copy);
    copy->pub = msg->pub;
    copy->magic = UM_MSG_MAGIC;
    atomic_init(&copy->holds, UM_MSG_LIBRARY_HOLD);
    um_msg_mark(copy, UM_MSG_FRAGMENT, um_msg_is(msg, UM_MSG_FRAGMENT));
    copy->lost = msg->lost;
    copy->frag = msg->frag;
    copy->channel = msg->channel;
    if (msg->pub.fragment_info != NULL) {
        copy->pub.fragment_info = &copy->frag;
    }
    if (msg->pub.channel_info != NULL) {
        copy->pub.channel_info = &copy->channel;
    }
    copy->buf = buf;
    if (!um_msg_extras_clone(copy, msg)) {
        um_free(copy);
        return NULL;
    }
    if (!keep_payload(copy)) {
        um_msg_extras_free(copy);
        um_free(copy);
        return NULL;
    }
    if (msg->pub.response != NULL) {
        copy->pub.response = um_response_again(msg->pub.response);
    }
    um_list_init(&copy->event.node);
    return copy;
}

struct um_msg *um_msg_clone(const struct um_msg *msg)
{
    return clone_with(msg, msg->buf);
}

/* At least half of its buffer is its own. */
static bool fills_buffer(const struct um_msg *msg)
{
    return msg->buf != NULL && msg->buf->capacity / 2 <= msg->pub.len + um_msg_extras_behind(msg);
}

struct um_msg *um_msg_clone_kept(const struct um_msg *msg)
{
    return clone_with(msg, fills_buffer(msg) ? msg->buf : NULL);
}

size_t um_msg_kept_size(const struct um_msg *msg)
{
    size_t payload = fills_buffer(msg) ? msg->buf->capacity : msg->pub.len + um_msg_extras_behind(msg);
    return sizeof *msg + sizeof(struct um_buf) + payload + (um_msg_extras_used(msg) ? sizeof *msg->extras : 0);
}

static void free_message(struct um_msg *msg)
{
    if (um_msg_is(msg, UM_MSG_BUF_HELD)) {
        um_buf_unref(msg->buf);
    }
    um_response_free(msg->pub.response);
    um_msg_extras_free(msg);
    msg->magic = 0;
    um_free(msg);
}

void um_msg_release(struct um_msg *msg)
{
    if (atomic_fetch_sub_explicit(&msg->holds, UM_MSG_LIBRARY_HOLD, memory_order_acq_rel) == UM_MSG_LIBRARY_HOLD) {
        um_free(msg->replacement);
        free_message(msg);
    }
}

struct um_msg *um_msg_template_next(struct um_msg *msg)
{
    struct um_msg *next = msg->replacement;
    if (next == NULL) {
        return msg;
    }
    msg->replacement = NULL;
    um_msg_mark(msg, UM_MSG_TEMPLATE, false);
    msg->origin = NULL;
    um_msg_release(msg);
    return next;
}

/* Called by lbm_msg_retain: the application keeps the very pointer it was given, so the controller gets a new template.
 */
static int hand_over(struct um_msg *msg)
{
    struct um_msg *next = um_msg_create(msg->pub.source, msg->pub.topic_name);
    if (next == NULL) {
        return um_error_nomem("lbm_msg_retain: message", sizeof *next);
    }
    if (!keep_payload(msg)) {
        um_free(next);
        return um_error_nomem("lbm_msg_retain: payload", msg->pub.len);
    }
    um_msg_mark(next, UM_MSG_TEMPLATE, true);
    next->origin = msg->origin;
    next->slot = msg->slot;
    msg->replacement = next;
    return 0;
}

/* One more for whoever has a hold of the application: any thread, which looks at nothing else, because the loop goes on
 * with what belongs to it. False: there is none. */
static bool hold_again(struct um_msg *msg)
{
    int holds = atomic_load_explicit(&msg->holds, memory_order_relaxed);
    while (holds % UM_MSG_LIBRARY_HOLD != 0) {
        if (atomic_compare_exchange_weak_explicit(&msg->holds, &holds, holds + 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

/* The first hold is taken inside the callback, where the library's fields stand still. */
int um_msg_retain(struct um_msg *msg)
{
    if (hold_again(msg)) {
        return 0;
    }
    if (um_msg_is(msg, UM_MSG_TEMPLATE)) {
        if (!um_msg_is(msg, UM_MSG_DELIVERING)) {
            return um_error(UM_EINVAL, "CoreApi-20201-1",
                            "lbm_msg_retain: the callback of this message has returned; retain it inside the callback");
        }
        if (msg->replacement == NULL && hand_over(msg) != 0) {
            return -1;
        }
    }
    if (atomic_fetch_add_explicit(&msg->holds, 1, memory_order_relaxed) % UM_MSG_LIBRARY_HOLD == 0) {
        um_object_count(UM_OBJECT_MESSAGE, 1);
    }
    return 0;
}

int um_msg_delete(struct um_msg *msg)
{
    int holds = atomic_load_explicit(&msg->holds, memory_order_relaxed);
    do {
        if (holds % UM_MSG_LIBRARY_HOLD == 0) {
            return um_error(UM_EINVAL, "CoreApi-20201-2",
                            "lbm_msg_delete: the message was not retained; the library deletes it after the callback");
        }
    } while (!atomic_compare_exchange_weak_explicit(&msg->holds, &holds, holds - 1, memory_order_acq_rel,
                                                    memory_order_relaxed));
    if (holds % UM_MSG_LIBRARY_HOLD == 1) {
        um_object_count(UM_OBJECT_MESSAGE, -1);
    }
    if (holds == 1) {
        free_message(msg);
    }
    return 0;
}
