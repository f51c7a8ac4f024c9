/* Properties objects. See um_properties.h. */
#include "core/um_properties.h"

#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"

#define SIZE_MAX_BYTES ((size_t)INT32_MAX)
#define INDEX_FROM 32u /* properties; fewer are compared one after the other */
#define STEPS_MAX 8u   /* for each property, while they are put into the index */

int um_properties_check(const lbm_msg_properties_t *p, const char *api)
{
    if (p == NULL || p->magic != UM_PROPERTIES_MAGIC) {
        return um_error(UM_EINVAL, "CoreApi-6020-1", "%s: properties must be valid", api);
    }
    return 0;
}

lbm_msg_properties_t *um_properties_create(void)
{
    lbm_msg_properties_t *p = um_calloc(1, sizeof *p);
    if (p == NULL) {
        um_error_nomem("message properties", sizeof *p);
        return NULL;
    }
    p->magic = UM_PROPERTIES_MAGIC;
    p->state = UM_PROPERTIES_BUILT;
    return p;
}

static void forget_list(lbm_msg_properties_t *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        um_free(p->list[i].own);
    }
    p->count = 0;
    p->room = 0;
    p->indexed = 0;
}

void um_properties_empty(lbm_msg_properties_t *p)
{
    forget_list(p);
    um_free(p->list);
    um_free(p->slots);
    um_free(p->written);
    *p = (lbm_msg_properties_t){0};
}

void um_properties_destroy(lbm_msg_properties_t *p)
{
    um_properties_empty(p);
    um_free(p);
}

/* ---- of a message ---- */

/* The memory of the list stays for the next one. */
void um_properties_of_message(lbm_msg_properties_t *p, struct um_slice blob)
{
    forget_list(p);
    p->magic = UM_PROPERTIES_MAGIC;
    p->state = UM_PROPERTIES_UNREAD;
    p->of_message = true;
    p->received = p->blob = blob;
}

void um_properties_moved(lbm_msg_properties_t *p, const uint8_t *blob)
{
    const char *before = (const char *)p->received.ptr, *after = (const char *)blob;
    for (uint32_t i = 0; i < p->count; i++) {
        struct um_prop *prop = &p->list[i].prop;
        if (p->list[i].own != NULL) {
            continue;
        }
        prop->name = after + (prop->name - before);
        if (prop->type == UM_PROP_STRING) {
            prop->value.text = after + (prop->value.text - before);
        }
    }
    if (p->blob.ptr == p->received.ptr) {
        p->blob.ptr = blob;
    }
    p->received.ptr = blob;
}

/* NULL + error. */
static struct um_property *append(lbm_msg_properties_t *p, const struct um_prop *prop)
{
    if (p->count == p->capacity) {
        uint32_t capacity = p->capacity == 0 ? 8 : 2 * p->capacity;
        struct um_property *list = um_realloc(p->list, capacity * sizeof *list);
        if (list == NULL) {
            um_error_nomem("message properties", capacity * sizeof *list);
            return NULL;
        }
        p->list = list;
        p->capacity = capacity;
    }
    struct um_property *property = &p->list[p->count++];
    *property = (struct um_property){.prop = *prop};
    p->room += um_prop_room(prop);
    return property;
}

/* 0, or -1 + error. What is malformed is not there at all. */
static int read_all(lbm_msg_properties_t *p)
{
    struct um_props_reader r;
    struct um_prop prop;
    if (p->state == UM_PROPERTIES_UNREAD) {
        p->state = UM_PROPERTIES_BAD;
        if (um_props_open(&r, p->blob)) {
            while (um_props_next(&r, &prop)) {
                if (append(p, &prop) == NULL) {
                    forget_list(p);
                    p->state = UM_PROPERTIES_UNREAD;
                    return -1;
                }
            }
            p->state = r.next == r.count ? UM_PROPERTIES_READ : UM_PROPERTIES_BAD;
        }
        if (p->state == UM_PROPERTIES_BAD) {
            forget_list(p);
        }
    }
    return p->state == UM_PROPERTIES_BAD
               ? um_error(UM_EINVAL, "CoreApi-6020-2", "the properties of the message are malformed")
               : 0;
}

/* The text of a property gets memory of its own. */
static int own_text(struct um_property *property)
{
    struct um_prop *prop = &property->prop;
    size_t text = prop->type == UM_PROP_STRING ? prop->size : 0;
    property->own = um_malloc((size_t)prop->name_len + 1 + text);
    if (property->own == NULL) {
        return um_error_nomem("message property", (size_t)prop->name_len + 1 + text);
    }
    memcpy(property->own, prop->name, (size_t)prop->name_len + 1);
    prop->name = property->own;
    if (text > 0) {
        char *at = property->own + prop->name_len + 1;
        memcpy(at, prop->value.text, text - 1);
        at[text - 1] = '\0';
        prop->value.text = at;
    }
    return 0;
}

/* Before it changes: read, and nothing of it the message's any more. */
static int change(lbm_msg_properties_t *p)
{
    if (p->state == UM_PROPERTIES_BUILT) {
        p->blob.len = 0;
        return 0;
    }
    if (read_all(p) != 0) {
        return -1;
    }
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->list[i].own == NULL && own_text(&p->list[i]) != 0) {
            return -1;
        }
    }
    p->state = UM_PROPERTIES_BUILT;
    p->blob.len = 0;
    return 0;
}

lbm_msg_properties_t *um_properties_from(struct um_slice blob, const char *api)
{
    lbm_msg_properties_t *p = um_properties_create();
    if (p == NULL) {
        return NULL;
    }
    if ((p->written = um_malloc(blob.len + 1)) == NULL) {
        um_error_nomem("message properties", blob.len);
        um_properties_destroy(p);
        return NULL;
    }
    memcpy(p->written, blob.ptr, blob.len);
    p->written_capacity = blob.len;
    p->blob = (struct um_slice){p->written, blob.len};
    p->state = UM_PROPERTIES_UNREAD;
    if (read_all(p) != 0) {
        if (p->state == UM_PROPERTIES_BAD) {
            um_error(UM_EINVAL, "CoreApi-6020-2", "%s: %zu bytes: they are no properties, or malformed", api, blob.len);
        }
        um_properties_destroy(p);
        return NULL;
    }
    return p;
}

/* ---- as it travels ---- */

int um_properties_blob(lbm_msg_properties_t *p, struct um_slice *out, const char *api)
{
    if (p->state != UM_PROPERTIES_BUILT && read_all(p) != 0) {
        return um_error(UM_EINVAL, "CoreApi-6020-2", "%s: properties of a message that are malformed", api);
    }
    if (p->blob.len == 0) {
        size_t len = um_props_len(p->count, p->room);
        if (len > p->written_capacity) {
            uint8_t *written = um_realloc(p->written, len);
            if (written == NULL) {
                return um_error_nomem("message properties", len);
            }
            p->written = written;
            p->written_capacity = len;
        }
        struct um_props_writer w;
        um_props_begin(&w, p->written, p->count);
        for (uint32_t i = 0; i < p->count; i++) {
            um_props_put(&w, &p->list[i].prop);
        }
        p->blob = (struct um_slice){p->written, len};
    }
    *out = p->blob;
    return 0;
}

/* ---- one property ---- */

static bool is_named(const struct um_prop *prop, uint32_t hash, const char *name, size_t len)
{
    return prop->hash == hash && prop->name_len == len && memcmp(prop->name, name, len) == 0;
}

/* False: without memory for it, or because a sender has chosen names that share one hash; the list is walked then. Who
 * takes something out of the list sets `indexed` to 0. */
static bool index_list(lbm_msg_properties_t *p)
{
    if (p->slot_count < 2 * p->count) {
        uint32_t room = p->slot_count == 0 ? 4 * INDEX_FROM : p->slot_count;
        while (room < 4 * p->count) {
            room *= 2;
        }
        uint32_t *slots = um_malloc(room * sizeof *slots);
        if (slots == NULL) {
            return false;
        }
        um_free(p->slots);
        p->slots = slots;
        p->slot_count = room;
        p->indexed = 0;
    }
    if (p->indexed == 0) {
        memset(p->slots, 0, p->slot_count * sizeof *p->slots);
    }
    uint64_t steps = 0;
    for (; p->indexed < p->count; p->indexed++) {
        uint32_t at = p->list[p->indexed].prop.hash & (p->slot_count - 1);
        for (; p->slots[at] != 0; at = (at + 1) & (p->slot_count - 1)) {
            if (++steps > STEPS_MAX * (uint64_t)p->count) {
                p->indexed = 0;
                return false;
            }
        }
        p->slots[at] = p->indexed + 1;
    }
    return true;
}

/* Of two of the same name the first. */
static struct um_property *find(lbm_msg_properties_t *p, const char *name, size_t len)
{
    uint32_t hash = um_prop_hash(name, len);
    if (p->count >= INDEX_FROM && index_list(p)) {
        for (uint32_t at = hash & (p->slot_count - 1); p->slots[at] != 0; at = (at + 1) & (p->slot_count - 1)) {
            struct um_property *property = &p->list[p->slots[at] - 1];
            if (is_named(&property->prop, hash, name, len)) {
                return property;
            }
        }
        return NULL;
    }
    for (uint32_t i = 0; i < p->count; i++) {
        if (is_named(&p->list[i].prop, hash, name, len)) {
            return &p->list[i];
        }
    }
    return NULL;
}

/* 0 + its length, or -1 + error. */
static int name_len(const char *name, size_t *len, const char *api)
{
    if (name == NULL) {
        return um_error(UM_EINVAL, "CoreApi-6020-3", "%s: name must be valid", api);
    }
    *len = strnlen(name, UM_PROP_NAME_MAX + 1);
    if (*len == 0 || *len > UM_PROP_NAME_MAX) {
        return um_error(UM_EINVAL, "CoreApi-6020-4", "%s: name of %s%zu bytes: must have 1..%u", api,
                        *len == 0 ? "" : "more than ", *len == 0 ? *len : *len - 1, UM_PROP_NAME_MAX);
    }
    return 0;
}

/* Fills type, size and value of `prop`; a text ends at its first NUL. */
static int take_value(struct um_prop *prop, const void *value, int type, size_t size)
{
    static const char api[] = "lbm_msg_properties_set";
    if (type < UM_PROP_BOOLEAN || type > UM_PROP_STRING) {
        return um_error(UM_EINVAL, "CoreApi-6020-5", "%s: [%s]: type %d: must be LBM_MSG_PROPERTY_BOOLEAN..STRING", api,
                        prop->name, type);
    }
    if (value == NULL && size > 0) {
        return um_error(UM_EINVAL, "CoreApi-6020-6", "%s: [%s]: value must be valid", api, prop->name);
    }
    prop->type = (uint8_t)type;
    if (type == UM_PROP_STRING) {
        size_t len = size == 0 ? 0 : strnlen(value, size);
        if (len >= SIZE_MAX_BYTES) {
            return um_error(UM_EINVAL, "CoreApi-6020-7", "%s: [%s]: size %zu: must be below %zu", api, prop->name, size,
                            SIZE_MAX_BYTES);
        }
        prop->size = (uint32_t)len + 1;
        prop->value.text = len == 0 ? "" : value;
        return 0;
    }
    prop->size = um_prop_size(prop->type);
    if (size != prop->size) {
        return um_error(UM_EINVAL, "CoreApi-6020-7", "%s: [%s]: size %zu: must be %u for this type", api, prop->name,
                        size, prop->size);
    }
    memcpy(prop->value.bytes, value, size);
    if (type == UM_PROP_BOOLEAN) {
        prop->value.bytes[0] = prop->value.bytes[0] != 0;
    }
    return 0;
}

int um_properties_set(lbm_msg_properties_t *p, const char *name, const void *value, int type, size_t size)
{
    static const char api[] = "lbm_msg_properties_set";
    struct um_property property = {.prop.name = name};
    size_t len;
    if (name_len(name, &len, api) != 0 || take_value(&property.prop, value, type, size) != 0 || change(p) != 0) {
        return -1;
    }
    property.prop.name_len = (uint8_t)len;
    property.prop.hash = um_prop_hash(name, len);
    struct um_property *known = find(p, name, len);
    size_t room = p->room - (known != NULL ? um_prop_room(&known->prop) : 0) + um_prop_room(&property.prop);
    if (known == NULL && p->count == UM_PROPS_MAX) {
        return um_error(UM_EINVAL, "CoreApi-6020-9", "%s: [%s]: %u properties are the most", api, name, UM_PROPS_MAX);
    }
    if (um_props_len(UM_PROPS_MAX, room) > SIZE_MAX_BYTES) {
        return um_error(UM_EINVAL, "CoreApi-6020-10", "%s: [%s]: the properties of a message are below 2^31 bytes", api,
                        name);
    }
    if (own_text(&property) != 0) {
        return -1;
    }
    if (known != NULL) {
        um_free(known->own);
        *known = property;
        p->room = room;
        return 0;
    }
    struct um_property *added = append(p, &property.prop);
    if (added == NULL) {
        um_free(property.own);
        return -1;
    }
    added->own = property.own;
    return 0;
}

int um_properties_get(lbm_msg_properties_t *p, const char *name, void *value, int *type, size_t *size)
{
    static const char api[] = "lbm_msg_properties_get";
    size_t len;
    if (name_len(name, &len, api) != 0 || (p->state != UM_PROPERTIES_BUILT && read_all(p) != 0)) {
        return -1;
    }
    if (type == NULL || size == NULL || (value == NULL && *size > 0)) {
        return um_error(UM_EINVAL, "CoreApi-6020-11", "%s: [%s]: value, type and size must be valid", api, name);
    }
    const struct um_property *property = find(p, name, len);
    if (property == NULL) {
        return um_error(UM_EINVAL, "CoreApi-6020-12", "%s: [%s]: there is no property of this name", api, name);
    }
    const struct um_prop *prop = &property->prop;
    if (*type != prop->type) {
        int asked = *type;
        *type = prop->type;
        return um_error(UM_EINVAL, "CoreApi-6020-13", "%s: [%s]: type %d: the property has type %d", api, name, asked,
                        prop->type);
    }
    if (*size < prop->size) {
        size_t room = *size;
        *size = prop->size;
        return um_error(UM_EINVAL, "CoreApi-6020-20", "%s: [%s]: size %zu: the value needs %u bytes", api, name, room,
                        prop->size);
    }
    memcpy(value, prop->type == UM_PROP_STRING ? (const void *)prop->value.text : prop->value.bytes, prop->size);
    *size = prop->size;
    return 0;
}

int um_properties_clear(lbm_msg_properties_t *p, const char *name)
{
    static const char api[] = "lbm_msg_properties_clear";
    size_t len;
    if ((name != NULL && name_len(name, &len, api) != 0) || change(p) != 0) {
        return -1;
    }
    if (name == NULL) {
        forget_list(p);
        return 0;
    }
    struct um_property *property = find(p, name, len);
    if (property == NULL) {
        return um_error(UM_EINVAL, "CoreApi-6020-12", "%s: [%s]: there is no property of this name", api, name);
    }
    size_t index = (size_t)(property - p->list);
    p->room -= um_prop_room(&property->prop);
    um_free(property->own);
    memmove(property, property + 1, (p->count - index - 1) * sizeof *property);
    p->count--;
    p->indexed = 0; /* others have moved */
    return 0;
}

int um_properties_at(lbm_msg_properties_t *p, size_t index, const struct um_prop **out)
{
    if (p->state != UM_PROPERTIES_BUILT && read_all(p) != 0) {
        return -1;
    }
    if (index >= p->count) {
        return 1;
    }
    *out = &p->list[index].prop;
    return 0;
}
