/* lbm_msg_properties_*: argument checks in front of core/um_properties.c, and the
 * iterators. Any thread, one at a time for an object. */
#include <string.h>

#include <lbm/lbm.h>

#include "base/um_error.h"
#include "base/um_mem.h"
#include "core/um_properties.h"

#define ITER_MAGIC 0x554d5049u /* "UMPI" */

struct properties_iter {
    lbm_msg_properties_iter_t pub; /* first */
    uint32_t magic;
    lbm_msg_properties_t *properties; /* NULL: it has not begun */
    size_t index;
};

int lbm_msg_properties_create(lbm_msg_properties_t **properties)
{
    if (properties == NULL) {
        return um_error(UM_EINVAL, "CoreApi-6020-19", "lbm_msg_properties_create: properties must be valid");
    }
    *properties = um_properties_create();
    return *properties == NULL ? -1 : 0;
}

int lbm_msg_properties_delete(lbm_msg_properties_t *properties)
{
    static const char api[] = "lbm_msg_properties_delete";
    if (um_properties_check(properties, api) != 0) {
        return -1;
    }
    if (properties->of_message) {
        return um_error(UM_EINVAL, "CoreApi-6020-15", "%s: properties of a message are deleted with the message", api);
    }
    um_properties_destroy(properties);
    return 0;
}

int lbm_msg_properties_set(lbm_msg_properties_t *properties, const char *name, const void *value, int type, size_t size)
{
    return um_properties_check(properties, "lbm_msg_properties_set") == 0
               ? um_properties_set(properties, name, value, type, size)
               : -1;
}

int lbm_msg_properties_clear(lbm_msg_properties_t *properties, const char *name)
{
    return um_properties_check(properties, "lbm_msg_properties_clear") == 0 ? um_properties_clear(properties, name)
                                                                            : -1;
}

int lbm_msg_properties_get(lbm_msg_properties_t *properties, const char *name, void *value, int *type, size_t *size)
{
    return um_properties_check(properties, "lbm_msg_properties_get") == 0
               ? um_properties_get(properties, name, value, type, size)
               : -1;
}

/* ---- iterators ---- */

static struct properties_iter *check_iter(lbm_msg_properties_iter_t *iter, const char *api)
{
    struct properties_iter *it = (struct properties_iter *)iter;
    if (it == NULL || it->magic != ITER_MAGIC) {
        um_error(UM_EINVAL, "CoreApi-6020-16", "%s: iter must be valid", api);
        return NULL;
    }
    return it;
}

int lbm_msg_properties_iter_create(lbm_msg_properties_iter_t **iterp)
{
    if (iterp == NULL) {
        return um_error(UM_EINVAL, "CoreApi-6020-16", "lbm_msg_properties_iter_create: iterp must be valid");
    }
    struct properties_iter *it = um_calloc(1, sizeof *it);
    if (it == NULL) {
        return um_error_nomem("iterator of message properties", sizeof *it);
    }
    it->magic = ITER_MAGIC;
    *iterp = &it->pub;
    return 0;
}

int lbm_msg_properties_iter_delete(lbm_msg_properties_iter_t *iter)
{
    struct properties_iter *it = check_iter(iter, "lbm_msg_properties_iter_delete");
    if (it == NULL) {
        return -1;
    }
    it->magic = 0;
    um_free(it);
    return 0;
}

/* A value that is at hand; or the end, where the type is NONE; or, with a type left as it is, malformed properties. */
static int show(struct properties_iter *it, const char *api)
{
    const struct um_prop *prop;
    int rc = um_properties_at(it->properties, it->index, &prop);
    if (rc < 0) {
        it->pub.type = -1;
        return -1;
    }
    if (rc > 0) {
        it->pub = (lbm_msg_properties_iter_t){.type = LBM_MSG_PROPERTY_NONE};
        return um_error(UM_EINVAL, "CoreApi-6020-17", "%s: there are no more properties", api);
    }
    it->pub.name = prop->name;
    it->pub.data = prop->type == UM_PROP_STRING ? (char *)prop->value.text : (char *)prop->value.bytes;
    it->pub.size = prop->size;
    it->pub.type = prop->type;
    return 0;
}

int lbm_msg_properties_iter_first(lbm_msg_properties_iter_t *iter, lbm_msg_properties_t *properties)
{
    static const char api[] = "lbm_msg_properties_iter_first";
    struct properties_iter *it = check_iter(iter, api);
    if (it == NULL || um_properties_check(properties, api) != 0) {
        return -1;
    }
    it->properties = properties;
    it->index = 0;
    return show(it, api);
}

int lbm_msg_properties_iter_next(lbm_msg_properties_iter_t *iter)
{
    static const char api[] = "lbm_msg_properties_iter_next";
    struct properties_iter *it = check_iter(iter, api);
    if (it == NULL) {
        return -1;
    }
    if (it->properties == NULL) {
        return um_error(UM_EINVAL, "CoreApi-6020-18", "%s: begin with lbm_msg_properties_iter_first", api);
    }
    it->index += it->index < UM_PROPS_MAX;
    return show(it, api);
}
