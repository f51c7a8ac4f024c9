/* What a topic object of either side begins with. A source topic and a receiver
 * topic of one name are separate objects; each side puts its own structure
 * around this one (first member). Fixed after creation. */
#ifndef UM_CORE_TOPIC_H
#define UM_CORE_TOPIC_H

#include <stdint.h>

#include <lbm/lbm.h>

#define UM_TOPIC_MAGIC 0x554d5450u /* "UMTP" */
#define UM_TOPIC_NAME_MAX 246u

enum um_topic_kind { UM_TOPIC_SOURCE = 1, UM_TOPIC_RECEIVER };

struct lbm_topic_t_stct {
    uint32_t magic;
    enum um_topic_kind kind;
    lbm_context_t *ctx;
    char *name; /* owned */
};

/* Copies the name. 0, or -1 + UM_ENOMEM. */
int um_topic_init(lbm_topic_t *topic, lbm_context_t *ctx, enum um_topic_kind kind, const char *name);
void um_topic_fini(lbm_topic_t *topic);
/* -1 + UM_EINVAL when the name is NULL, empty or longer than 246 characters. `api` names the call in the text. */
int um_topic_name_check(const char *name, const char *api);
/* -1 + UM_EINVAL when it is not a topic of this kind made in this context. */
int um_topic_check(const lbm_topic_t *topic, const lbm_context_t *ctx, enum um_topic_kind kind, const char *api);

#endif
