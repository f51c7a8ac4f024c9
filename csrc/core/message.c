/* Life of messages: creation, hand-over of a retained template, holds counted
 * across threads. The payload is not copied, a message refers to the receive
 * buffer (or the reassembly buffer) it came in; except out of shared memory. */
#include "core/um_message.h"

#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "core/um_object_counts.h"

struct um_msg *um_msg_create(const char *source, const char *topic)
{
    struct um_msg *msg = um_calloc(1, sizeof *msg);
    if (msg == NULL) {
        return NULL;
    }
    msg->magic = UM_MSG_MAGIC;
    atomic_init(&msg->holds, UM_MSG_LIBRARY_HOLD);
    snprintf(msg->pub.source, sizeof msg->pub.source, "%s", source);
    snprintf(msg->pub.topic_name, sizeof msg->pub.topic_name, "%s", topic);
    um_list_init(&msg->event.node);
    return msg;
}

/* From here on the payload outlives the delivery: by a reference on its buffer, or, out of shared memory, as a copy. */
static bool keep_payload(struct um_msg *msg)
{
    if (msg->buf != NULL) {
        um_buf_ref(msg->buf);
    } else if (msg->pub.data != NULL) {
        msg->buf = um_buf_alloc(msg->pub.len);
        if (msg->buf == NULL) {
            return false;
        }
        memcpy(msg->buf->data, msg->pub.data, msg->pub.len);
        msg->pub.data = (const char *)msg->buf->data;
    }
    msg->buf_held = msg->buf != NULL;
    return true;
}

struct um_msg *um_msg_clone(const struct um_msg *msg)
{
    struct um_msg *copy = um_malloc(sizeof *copy);
    if (copy == NULL) {
        return NULL;
    }
    memset(copy, 0, sizeof *copy);
    copy->pub = msg->pub;
    copy->magic = UM_MSG_MAGIC;
    atomic_init(&copy->holds, UM_MSG_LIBRARY_HOLD);
    copy->is_fragment = msg->is_fragment;
    copy->frag = msg->frag;
    if (msg->pub.fragment_info != NULL) {
        copy->pub.fragment_info = &copy->frag;
    }
    copy->buf = msg->buf;
    if (!keep_payload(copy)) {
        um_free(copy);
        return NULL;
    }
    um_list_init(&copy->event.node);
    return copy;
}

static void free_message(struct um_msg *msg)
{
    if (msg->buf_held) {
        um_buf_unref(msg->buf);
    }
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
    msg->is_template = false;
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
    next->is_template = true;
    next->origin = msg->origin;
    msg->replacement = next;
    return 0;
}

int um_msg_retain(struct um_msg *msg)
{
    if (msg->is_template) {
        if (!msg->delivering) {
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
