/* SDM messages as a whole: made, copied, emptied, freed; and where a field is: by index, by name, by iterator. */
#include <string.h>

#include "base/um_mem.h"
#include "sdm/um_sdm.h"

lbmsdm_msg_t *um_sdm_msg_create(const struct um_sdm_attr *attr)
{
    lbmsdm_msg_t *msg = um_calloc(1, sizeof *msg);
    if (msg == NULL) {
        um_sdm_no_memory(sizeof *msg);
        return NULL;
    }
    msg->attr = *attr;
    msg->length = UM_SDM_HEADER_LEN;
    msg->data_stale = true;
    return msg;
}

void um_sdm_field_drop(struct um_sdm_field *field)
{
    uint16_t type = um_sdm_scalar(field->type);
    if (um_sdm_is_array(field)) {
        for (uint32_t i = 0; i < field->count; i++) {
            um_sdm_cell_free(type, field->cells + i * um_sdm_cell_size(type));
        }
        um_free(field->cells);
    } else if (!field->null) {
        um_sdm_cell_free(type, &field->one);
    }
    field->cells = NULL;
    field->count = field->capacity = 0;
}

void um_sdm_msg_clear(lbmsdm_msg_t *msg)
{
    for (uint32_t i = 0; i < msg->count; i++) {
        um_sdm_field_drop(&msg->fields[i]);
        um_free(msg->fields[i].name);
    }
    msg->count = 0;
    msg->length = UM_SDM_HEADER_LEN;
    msg->slots_stale = msg->data_stale = true;
}

void um_sdm_msg_destroy(lbmsdm_msg_t *msg)
{
    um_sdm_msg_clear(msg);
    um_free(msg->fields);
    um_free(msg->slots);
    um_free(msg->data);
    um_free(msg);
}

/* Room for `count` fields and their names, and no more. */
int um_sdm_msg_reserve(lbmsdm_msg_t *msg, size_t count)
{
    if (count > msg->capacity) {
        struct um_sdm_field *fields = um_realloc(msg->fields, count * sizeof *fields);
        if (fields == NULL) {
            return um_sdm_no_memory(count * sizeof *fields);
        }
        msg->fields = fields;
        msg->capacity = (uint32_t)count;
    }
    return um_sdm_names_reserve(msg, count);
}

/* Room for one more field. Grows by the option field_array_allocation, and by half at least. */
int um_sdm_msg_grow(lbmsdm_msg_t *msg)
{
    if (msg->count == msg->capacity) {
        size_t step = msg->attr.field_array_allocation == 0 ? 1 : (size_t)msg->attr.field_array_allocation;
        size_t wanted = msg->capacity + (step > msg->capacity / 2 ? step : msg->capacity / 2);
        return um_sdm_msg_reserve(msg, wanted > UM_SDM_FIELDS_MAX ? UM_SDM_FIELDS_MAX : wanted);
    }
    return um_sdm_names_reserve(msg, msg->count + 1u);
}

static int copy_cells(struct um_sdm_field *to, const struct um_sdm_field *from)
{
    uint16_t type = um_sdm_scalar(from->type);
    size_t size = um_sdm_cell_size(type);
    if (from->count == 0) {
        return LBMSDM_SUCCESS;
    }
    to->cells = um_malloc(from->count * size);
    if (to->cells == NULL) {
        return um_sdm_no_memory(from->count * size);
    }
    to->capacity = from->count;
    for (; to->count < from->count; to->count++) {
        if (um_sdm_cell_copy(type, to->cells + to->count * size, from->cells + to->count * size) != 0) {
            um_sdm_field_drop(to);
            return LBMSDM_FAILURE;
        }
    }
    return LBMSDM_SUCCESS;
}

static int copy_field(struct um_sdm_field *to, const struct um_sdm_field *from)
{
    *to = *from;
    to->cells = NULL;
    to->count = to->capacity = 0;
    to->name = um_strndup(from->name, from->name_len);
    if (to->name == NULL) {
        return um_sdm_no_memory(from->name_len + 1u);
    }
    int done = um_sdm_is_array(from) ? copy_cells(to, from)
               : from->null          ? LBMSDM_SUCCESS
                                     : um_sdm_cell_copy(um_sdm_scalar(from->type), &to->one, &from->one);
    if (done != LBMSDM_SUCCESS) {
        um_free(to->name);
    }
    return done;
}

lbmsdm_msg_t *um_sdm_msg_clone(const lbmsdm_msg_t *original)
{
    lbmsdm_msg_t *msg = um_sdm_msg_create(&original->attr);
    if (msg == NULL) {
        return NULL;
    }
    if (original->count != 0 && um_sdm_msg_reserve(msg, original->count) != LBMSDM_SUCCESS) {
        um_sdm_msg_destroy(msg);
        return NULL;
    }
    for (; msg->count < original->count; msg->count++) {
        if (copy_field(&msg->fields[msg->count], &original->fields[msg->count]) != LBMSDM_SUCCESS) {
            um_sdm_msg_destroy(msg);
            return NULL;
        }
    }
    msg->length = original->length;
    msg->slots_stale = true;
    return msg;
}

static struct um_sdm_place nowhere(void)
{
    return (struct um_sdm_place){NULL, NULL};
}

struct um_sdm_place um_sdm_at_idx(lbmsdm_msg_t *msg, size_t index)
{
    if (msg == NULL) {
        um_sdm_error(LBMSDM_ERR_EINVAL, "Message must not be NULL");
        return nowhere();
    }
    if (index >= msg->count) {
        um_sdm_error(LBMSDM_ERR_FIELD_NOT_FOUND, "no field has the index %zu, there are %u fields", index, msg->count);
        return nowhere();
    }
    return (struct um_sdm_place){msg, &msg->fields[index]};
}

struct um_sdm_place um_sdm_at_name(lbmsdm_msg_t *msg, const char *name)
{
    if (msg == NULL || name == NULL) {
        um_sdm_error(LBMSDM_ERR_EINVAL, "%s must not be NULL", msg == NULL ? "Message" : "Name");
        return nowhere();
    }
    size_t len = strlen(name);
    struct um_sdm_field *field = len == 0 || len > LBMSDM_MAX_FIELD_NAME_LENGTH
                                     ? NULL
                                     : um_sdm_names_find(msg, name, len, um_sdm_name_hash(name, len));
    if (field == NULL) {
        um_sdm_error(LBMSDM_ERR_FIELD_NOT_FOUND, "no field has the name %.255s", name);
        return nowhere();
    }
    return (struct um_sdm_place){msg, field};
}

struct um_sdm_place um_sdm_at_iter(const lbmsdm_iter_t *iter)
{
    if (iter == NULL) {
        um_sdm_error(LBMSDM_ERR_EINVAL, "Iterator must not be NULL");
        return nowhere();
    }
    if (!iter->positioned || iter->index >= iter->msg->count) {
        um_sdm_error(LBMSDM_ERR_ITERATOR_INVALID, "the iterator is not on a field (%s)",
                     iter->positioned ? "past the end" : "before lbmsdm_iter_first");
        return nowhere();
    }
    return (struct um_sdm_place){iter->msg, &iter->msg->fields[iter->index]};
}
