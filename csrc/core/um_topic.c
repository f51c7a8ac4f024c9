/* The common part of topic objects: name rules and validity. Any thread. */
#include "core/um_topic.h"

#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"

void *um_topic_new(size_t size, lbm_context_t *ctx, enum um_topic_kind kind, const char *name)
{
    size_t len = strlen(name) + 1;
    lbm_topic_t *topic = um_calloc(1, size + len);
    if (topic == NULL) {
        um_error_nomem("topic", size + len);
        return NULL;
    }
    topic->name = memcpy((char *)topic + size, name, len);
    topic->ctx = ctx;
    topic->kind = kind;
    topic->magic = UM_TOPIC_MAGIC;
    return topic;
}

void um_topic_free(lbm_topic_t *topic)
{
    topic->magic = 0;
    um_free(topic);
}

int um_topic_name_check(const char *name, const char *api)
{
    if (name == NULL) {
        return um_error(UM_EINVAL, "CoreApi-5688-3240", "%s: topic name must be valid", api);
    }
    size_t len = strnlen(name, UM_TOPIC_NAME_MAX + 1);
    if (len == 0 || len > UM_TOPIC_NAME_MAX) {
        return um_error(UM_EINVAL, "CoreApi-5688-3240", "%s: topic name \"%.40s%s\": must have 1 to %u characters", api,
                        name, len > 40 ? "..." : "", UM_TOPIC_NAME_MAX);
    }
    return 0;
}

int um_topic_check(const lbm_topic_t *topic, const lbm_context_t *ctx, enum um_topic_kind kind, const char *api)
{
    if (topic == NULL || topic->magic != UM_TOPIC_MAGIC || topic->kind != kind) {
        return um_error(UM_EINVAL, "CoreApi-5688-3241", "%s: topic must be valid: use what %s gave", api,
                        kind == UM_TOPIC_SOURCE ? "lbm_src_topic_alloc" : "lbm_rcv_topic_lookup");
    }
    if (topic->ctx != ctx) {
        return um_error(UM_EINVAL, "CoreApi-5688-3241", "%s: topic [%s] belongs to another context", api, topic->name);
    }
    return 0;
}
