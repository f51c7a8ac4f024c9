/* What a topic object of either side begins with. A source topic and a receiver
 * topic of one name are separate objects; each side puts its own structure
 * around this one (first member). Fixed after creation. */
#ifndef UM_CORE_TOPIC_H
#define UM_CORE_TOPIC_H

#include <stddef.h>
#include <stdint.h>

#include <lbm/lbm.h>

#define UM_TOPIC_MAGIC 0x554d5450u /* "UMTP" */
#define UM_TOPIC_NAME_MAX 246u

enum um_topic_kind { UM_TOPIC_SOURCE = 1, UM_TOPIC_RECEIVER };

struct lbm_topic_t_stct {
    _Atomic uint32_t magic; /* any thread reads, also while the object is deleted */
    enum um_topic_kind kind;
    lbm_context_t *ctx;
    const char *name; /* in the same memory, behind the structure around this one */
};

/* A structure of `size` bytes that begins with an lbm_topic_t, zero but for that; a copy of the name follows it. NULL +
 * UM_ENOMEM. */
void *um_topic_new(size_t size, lbm_context_t *ctx, enum um_topic_kind kind, const char *name);
void um_topic_free(lbm_topic_t *topic);
/* -1 + UM_EINVAL when the name is NULL, empty or longer than 246 characters. `api` names the call in the text. */
int um_topic_name_check(const char *name, const char *api);
/* -1 + UM_EINVAL when it is not a topic of this kind made in this context. */
int um_topic_check(const lbm_topic_t *topic, const lbm_context_t *ctx, enum um_topic_kind kind, const char *api);

#endif
