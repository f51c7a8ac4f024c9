/* lbm_msg_* and um_msg_lost: argument checks in front of core/um_message.c, and
 * the facts kept in the message itself. Any thread. */
#include <lbm/um.h>

#include "base/um_error.h"
#include "core/um_message.h"

/* The message behind the pointer, or NULL with the error set. */
static struct um_msg *check(lbm_msg_t *msg, const char *api)
{
    struct um_msg *m = (struct um_msg *)msg;
    if (m == NULL || m->magic != UM_MSG_MAGIC) {
        um_error(UM_EINVAL, "CoreApi-20201-3", "%s: msg %p: must be a live message", api, (void *)msg);
        return NULL;
    }
    return m;
}

int lbm_msg_retain(lbm_msg_t *msg)
{
    struct um_msg *m = check(msg, "lbm_msg_retain");
    return m == NULL ? -1 : um_msg_retain(m);
}

int lbm_msg_delete(lbm_msg_t *msg)
{
    struct um_msg *m = check(msg, "lbm_msg_delete");
    return m == NULL ? -1 : um_msg_delete(m);
}

int lbm_msg_is_fragment(lbm_msg_t *msg)
{
    struct um_msg *m = check(msg, "lbm_msg_is_fragment");
    return m != NULL && um_msg_is(m, UM_MSG_FRAGMENT);
}

int lbm_msg_retrieve_fragment_info(lbm_msg_t *msg, lbm_msg_fragment_info_t *info)
{
    struct um_msg *m = check(msg, "lbm_msg_retrieve_fragment_info");
    if (m == NULL) {
        return -1;
    }
    if (info == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20201-4", "lbm_msg_retrieve_fragment_info: info: must not be NULL");
    }
    if (m->pub.fragment_info == NULL) {
        return um_error(UM_EINVAL, "CoreApi-6435-2",
                        "lbm_msg_retrieve_fragment_info: msg has no fragment information: it was sent in one piece");
    }
    *info = m->frag;
    return 0;
}

int lbm_msg_retrieve_gateway_info(lbm_msg_t *msg, lbm_msg_gateway_info_t *info)
{
    (void)info;
    if (check(msg, "lbm_msg_retrieve_gateway_info") == NULL) {
        return -1;
    }
    return um_error(UM_EINVAL, "CoreApi-20201-5", "lbm_msg_retrieve_gateway_info: msg has no gateway information");
}

int lbm_msg_retrieve_delivery_latency(lbm_msg_t *msg, lbm_int64_t *latency_nsecs)
{
    (void)latency_nsecs;
    if (check(msg, "lbm_msg_retrieve_delivery_latency") == NULL) {
        return -1;
    }
    return um_error(UM_EOPNOTSUPP, "CoreApi-20201-6",
                    "lbm_msg_retrieve_delivery_latency: not supported: the message carries no send time");
}

int um_msg_lost(lbm_msg_t *msg, uint64_t *count)
{
    const struct um_msg *m = check(msg, "um_msg_lost");
    if (m == NULL) {
        return -1;
    }
    if (count == NULL) {
        return um_error(UM_EINVAL, "CoreApi-20201-7", "um_msg_lost: count: must not be NULL");
    }
    *count = um_msg_losses(m);
    return 0;
}
