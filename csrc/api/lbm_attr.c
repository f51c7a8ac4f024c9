/* The attribute objects of all seven scopes: lbm_*_attr_create and its siblings. A handle is a struct um_attr; the
 * families differ in their types and in how XML names their objects, so one macro writes them.
 * Any thread; an object belongs to the thread that uses it. */
#include <lbm/lbm.h>

#include "base/um_error.h"
#include "config/um_attr.h"
#include "config/um_config.h"
#include "config/um_config_load.h"

static int no_argument(void)
{
    return um_error(UM_EINVAL, "CoreApi-9023-1", "attr must not be NULL");
}

static int create(void **handle, enum um_option_scope scope, enum um_attr_start start)
{
    if (handle == NULL) {
        return no_argument();
    }
    struct um_attr *attr = um_attr_create(scope, start);
    if (attr == NULL) {
        return -1;
    }
    *handle = attr;
    return 0;
}

static int create_from_xml(void **handle, enum um_option_scope scope, const struct um_xml_key *key)
{
    void *attr = NULL;
    if (handle == NULL) {
        return no_argument();
    }
    if (create(&attr, scope, UM_ATTR_CURRENT) != 0) {
        return -1;
    }
    if (um_config_attr_set_from_xml(attr, key) != 0) {
        um_attr_destroy(attr);
        return -1;
    }
    *handle = attr;
    return 0;
}

static int set_from_xml(struct um_attr *attr, const struct um_xml_key *key)
{
    return attr == NULL ? no_argument() : um_config_attr_set_from_xml(attr, key);
}

static int duplicate(void **handle, const struct um_attr *original)
{
    if (handle == NULL || original == NULL) {
        return no_argument();
    }
    struct um_attr *attr = um_attr_dup(original);
    if (attr == NULL) {
        return -1;
    }
    *handle = attr;
    return 0;
}

static int destroy(struct um_attr *attr)
{
    if (attr == NULL) {
        return no_argument();
    }
    um_attr_destroy(attr);
    return 0;
}

static int set(struct um_attr *attr, const char *name, const void *value, size_t len)
{
    return attr == NULL ? no_argument() : um_attr_set(attr, name, value, len);
}

static int str_set(struct um_attr *attr, const char *name, const char *text)
{
    return attr == NULL ? no_argument() : um_attr_str_set(attr, name, text);
}

static int get(const struct um_attr *attr, const char *name, void *value, size_t *len)
{
    return attr == NULL ? no_argument() : um_attr_get(attr, name, value, len);
}

static int str_get(const struct um_attr *attr, const char *name, char *text, size_t *len)
{
    return attr == NULL ? no_argument() : um_attr_str_get(attr, name, text, len);
}

static int dump(const struct um_attr *attr, int *size, lbm_config_option_t *opts)
{
    return attr == NULL ? no_argument() : um_attr_dump(attr, size, opts);
}

/* ---- XML names ---- */

/* Topics and patterns must be named; a context need not be. */
static int name_required(const char *name, const char *what)
{
    return name != NULL ? 0 : um_error(UM_EINVAL, "CoreApi-9023-2", "%s must not be NULL", what);
}

/* ---- the families ---- */

/* What every family has. */
#define UM_ATTR_FAMILY(prefix, type, scope)                                                                            \
    int prefix##_create(type **attr)                                                                                   \
    {                                                                                                                  \
        return create((void **)attr, scope, UM_ATTR_CURRENT);                                                          \
    }                                                                                                                  \
    int prefix##_delete(type *attr)                                                                                    \
    {                                                                                                                  \
        return destroy((struct um_attr *)attr);                                                                        \
    }                                                                                                                  \
    int prefix##_setopt(type *attr, const char *optname, const void *optval, size_t optlen)                            \
    {                                                                                                                  \
        return set((struct um_attr *)attr, optname, optval, optlen);                                                   \
    }                                                                                                                  \
    int prefix##_str_setopt(type *attr, const char *optname, const char *optval)                                       \
    {                                                                                                                  \
        return str_set((struct um_attr *)attr, optname, optval);                                                       \
    }                                                                                                                  \
    int prefix##_getopt(type *attr, const char *optname, void *optval, size_t *optlen)                                 \
    {                                                                                                                  \
        return get((struct um_attr *)attr, optname, optval, optlen);                                                   \
    }                                                                                                                  \
    int prefix##_str_getopt(type *attr, const char *optname, char *optval, size_t *optlen)                             \
    {                                                                                                                  \
        return str_get((struct um_attr *)attr, optname, optval, optlen);                                               \
    }                                                                                                                  \
    int prefix##_dump(type *attr, int *size, lbm_config_option_t *opts)                                                \
    {                                                                                                                  \
        return dump((struct um_attr *)attr, size, opts);                                                               \
    }                                                                                                                  \
    int prefix##_option_size(void)                                                                                     \
    {                                                                                                                  \
        return um_options_count(scope);                                                                                \
    }

/* What all but hfx and xsp have. */
#define UM_ATTR_FAMILY_COPIES(prefix, type, scope)                                                                     \
    int prefix##_create_default(type **attr)                                                                           \
    {                                                                                                                  \
        return create((void **)attr, scope, UM_ATTR_INITIAL);                                                          \
    }                                                                                                                  \
    int prefix##_dup(type **attr, const type *original)                                                                \
    {                                                                                                                  \
        return duplicate((void **)attr, (const struct um_attr *)original);                                             \
    }

UM_ATTR_FAMILY(lbm_context_attr, lbm_context_attr_t, UM_SCOPE_CONTEXT)
UM_ATTR_FAMILY(lbm_src_topic_attr, lbm_src_topic_attr_t, UM_SCOPE_SOURCE)
UM_ATTR_FAMILY(lbm_rcv_topic_attr, lbm_rcv_topic_attr_t, UM_SCOPE_RECEIVER)
UM_ATTR_FAMILY(lbm_wildcard_rcv_attr, lbm_wildcard_rcv_attr_t, UM_SCOPE_WILDCARD_RECEIVER)
UM_ATTR_FAMILY(lbm_event_queue_attr, lbm_event_queue_attr_t, UM_SCOPE_EVENT_QUEUE)
UM_ATTR_FAMILY(lbm_hfx_attr, lbm_hfx_attr_t, UM_SCOPE_HFX)
UM_ATTR_FAMILY(lbm_xsp_attr, lbm_xsp_attr_t, UM_SCOPE_XSP)

UM_ATTR_FAMILY_COPIES(lbm_context_attr, lbm_context_attr_t, UM_SCOPE_CONTEXT)
UM_ATTR_FAMILY_COPIES(lbm_src_topic_attr, lbm_src_topic_attr_t, UM_SCOPE_SOURCE)
UM_ATTR_FAMILY_COPIES(lbm_rcv_topic_attr, lbm_rcv_topic_attr_t, UM_SCOPE_RECEIVER)
UM_ATTR_FAMILY_COPIES(lbm_wildcard_rcv_attr, lbm_wildcard_rcv_attr_t, UM_SCOPE_WILDCARD_RECEIVER)
UM_ATTR_FAMILY_COPIES(lbm_event_queue_attr, lbm_event_queue_attr_t, UM_SCOPE_EVENT_QUEUE)

int lbm_context_attr_create_from_xml(lbm_context_attr_t **attr, const char *context_name)
{
    return create_from_xml((void **)attr, UM_SCOPE_CONTEXT, &(struct um_xml_key){.context_name = context_name});
}

int lbm_context_attr_set_from_xml(lbm_context_attr_t *attr, const char *context_name)
{
    return set_from_xml((struct um_attr *)attr, &(struct um_xml_key){.context_name = context_name});
}

int lbm_src_topic_attr_create_from_xml(lbm_src_topic_attr_t **attr, const char *context_name, const char *topicname)
{
    struct um_xml_key key = {.context_name = context_name, .name = topicname};
    return name_required(topicname, "topicname") != 0 ? -1 : create_from_xml((void **)attr, UM_SCOPE_SOURCE, &key);
}

int lbm_src_topic_attr_set_from_xml(lbm_src_topic_attr_t *attr, const char *context_name, const char *topicname)
{
    struct um_xml_key key = {.context_name = context_name, .name = topicname};
    return name_required(topicname, "topicname") != 0 ? -1 : set_from_xml((struct um_attr *)attr, &key);
}

int lbm_rcv_topic_attr_create_from_xml(lbm_rcv_topic_attr_t **attr, const char *context_name, const char *topicname)
{
    struct um_xml_key key = {.context_name = context_name, .name = topicname};
    return name_required(topicname, "topicname") != 0 ? -1 : create_from_xml((void **)attr, UM_SCOPE_RECEIVER, &key);
}

int lbm_rcv_topic_attr_set_from_xml(lbm_rcv_topic_attr_t *attr, const char *context_name, const char *topicname)
{
    struct um_xml_key key = {.context_name = context_name, .name = topicname};
    return name_required(topicname, "topicname") != 0 ? -1 : set_from_xml((struct um_attr *)attr, &key);
}

int lbm_wildcard_rcv_attr_create_from_xml(lbm_wildcard_rcv_attr_t **attr, const char *context_name, const char *pattern,
                                          int pattern_type)
{
    struct um_xml_key key = {.context_name = context_name, .name = pattern, .pattern_type = pattern_type};
    return name_required(pattern, "pattern") != 0 ? -1
                                                  : create_from_xml((void **)attr, UM_SCOPE_WILDCARD_RECEIVER, &key);
}

int lbm_wildcard_rcv_attr_set_from_xml(lbm_wildcard_rcv_attr_t *attr, const char *context_name, const char *pattern,
                                       int pattern_type)
{
    struct um_xml_key key = {.context_name = context_name, .name = pattern, .pattern_type = pattern_type};
    return name_required(pattern, "pattern") != 0 ? -1 : set_from_xml((struct um_attr *)attr, &key);
}

int lbm_event_queue_attr_create_from_xml(lbm_event_queue_attr_t **attr, const char *event_queue_name)
{
    return create_from_xml((void **)attr, UM_SCOPE_EVENT_QUEUE, &(struct um_xml_key){.name = event_queue_name});
}

int lbm_event_queue_attr_set_from_xml(lbm_event_queue_attr_t *attr, const char *event_queue_name)
{
    return set_from_xml((struct um_attr *)attr, &(struct um_xml_key){.name = event_queue_name});
}

int lbm_hfx_attr_create_from_xml(lbm_hfx_attr_t **attr, const char *topicname)
{
    struct um_xml_key key = {.name = topicname};
    return name_required(topicname, "topicname") != 0 ? -1 : create_from_xml((void **)attr, UM_SCOPE_HFX, &key);
}

int lbm_hfx_attr_set_from_xml(lbm_hfx_attr_t *attr, const char *topicname)
{
    struct um_xml_key key = {.name = topicname};
    return name_required(topicname, "topicname") != 0 ? -1 : set_from_xml((struct um_attr *)attr, &key);
}
