/* Changes of SDM messages: fields and elements are added, set and deleted. Each change is made whole or not at all, and
 * keeps the lengths on the wire of the field and the message. */
#include <string.h>

#include "base/um_mem.h"
#include "sdm/um_sdm.h"

/* Whether the message may grow by `more` bytes on the wire while `less` go. */
static int fits(const lbmsdm_msg_t *msg, size_t less, size_t more)
{
    if (msg->length - less + more > UM_SDM_LENGTH_MAX) {
        return um_sdm_error(LBMSDM_ERR_ADDING_FIELD, "a message would have %zu bytes, more than %u",
                            msg->length - less + more, UM_SDM_LENGTH_MAX);
    }
    return LBMSDM_SUCCESS;
}

static void resized(struct um_sdm_place at, size_t less, size_t more)
{
    at.field->value_len = at.field->value_len - less + more;
    at.msg->length = at.msg->length - less + more;
    at.msg->data_stale = true;
}

/* ---- adding fields ---- */

static int may_add(lbmsdm_msg_t *msg, const char *name, size_t len, uint32_t *hash)
{
    if (um_sdm_name_check(&msg->attr, name, len) != LBMSDM_SUCCESS) {
        return LBMSDM_FAILURE;
    }
    *hash = um_sdm_name_hash(name, len);
    if (msg->attr.name_tree != 0 && um_sdm_names_find(msg, name, len, *hash) != NULL) {
        return um_sdm_error(LBMSDM_ERR_DUPLICATE_FIELD, "%s: the message has a field of this name", name);
    }
    if (msg->count == UM_SDM_FIELDS_MAX) {
        return um_sdm_error(LBMSDM_ERR_ADDING_FIELD, "%s: a message has at most %d fields", name, UM_SDM_FIELDS_MAX);
    }
    return um_sdm_msg_grow(msg);
}

/* Appends `field`, whose value is there already; on failure the value stays the caller's. */
static int append(lbmsdm_msg_t *msg, const char *name, size_t len, struct um_sdm_field field)
{
    size_t more = UM_SDM_FIELD_HEADER_LEN + len + field.value_len;
    if (fits(msg, 0, more) != LBMSDM_SUCCESS) {
        return LBMSDM_FAILURE;
    }
    field.name_len = (uint8_t)len;
    field.name = um_strndup(name, len);
    if (field.name == NULL) {
        return um_sdm_no_memory(len + 1);
    }
    msg->fields[msg->count++] = field;
    msg->length += more;
    msg->data_stale = true;
    um_sdm_names_added(msg);
    return LBMSDM_SUCCESS;
}

static int no_argument(const lbmsdm_msg_t *msg, const char *name)
{
    if (msg != NULL && name != NULL) {
        return LBMSDM_SUCCESS;
    }
    return um_sdm_error(LBMSDM_ERR_EINVAL, "%s must not be NULL", msg == NULL ? "Message" : "Name");
}

int um_sdm_msg_add(lbmsdm_msg_t *msg, const char *name, uint16_t type, struct um_sdm_given given)
{
    struct um_sdm_field field = {.type = type};
    if (no_argument(msg, name) != LBMSDM_SUCCESS || may_add(msg, name, strlen(name), &field.hash) != LBMSDM_SUCCESS ||
        um_sdm_cell_make(type, &field.one, given) != LBMSDM_SUCCESS) {
        return LBMSDM_FAILURE;
    }
    field.value_len = um_sdm_cell_len(type, &field.one);
    if (append(msg, name, strlen(name), field) != LBMSDM_SUCCESS) {
        um_sdm_cell_free(type, &field.one);
        return LBMSDM_FAILURE;
    }
    return LBMSDM_SUCCESS;
}

int um_sdm_msg_add_array(lbmsdm_msg_t *msg, const char *name, uint16_t type)
{
    struct um_sdm_field field = {.type = (uint16_t)(type | LBMSDM_TYPE_MODIFIER_ARRAY), .value_len = 4};
    if (no_argument(msg, name) != LBMSDM_SUCCESS || may_add(msg, name, strlen(name), &field.hash) != LBMSDM_SUCCESS) {
        return LBMSDM_FAILURE;
    }
    return append(msg, name, strlen(name), field);
}

/* ---- elements ---- */

/* Bytes on the wire of an element, with the length before it. */
static size_t element_len(uint16_t type, const void *cell)
{
    return um_sdm_cell_len(type, cell) + (um_sdm_fixed_len(type) == 0 ? 4 : 0);
}

static int check_elements(struct um_sdm_place at, uint16_t type)
{
    if (at.field == NULL) {
        return LBMSDM_FAILURE;
    }
    if (!um_sdm_is_array(at.field)) {
        return um_sdm_error(LBMSDM_ERR_NOT_ARRAY, "%s: the field is a scalar, it has no elements", at.field->name);
    }
    if (um_sdm_scalar(at.field->type) != type) {
        return um_sdm_error(LBMSDM_ERR_TYPE_MISMATCH, "%s: the elements are of the type %s, not %s", at.field->name,
                            um_sdm_type_name(at.field->type), um_sdm_type_name(type));
    }
    return LBMSDM_SUCCESS;
}

static int reserve_element(struct um_sdm_field *field, size_t size)
{
    if (field->count < field->capacity) {
        return LBMSDM_SUCCESS;
    }
    size_t wanted = field->capacity == 0 ? 8 : (size_t)field->capacity * 2;
    void *cells = um_realloc(field->cells, wanted * size);
    if (cells == NULL) {
        return um_sdm_no_memory(wanted * size);
    }
    field->cells = cells;
    field->capacity = (uint32_t)wanted;
    return LBMSDM_SUCCESS;
}

int um_sdm_add_elem(struct um_sdm_place at, uint16_t type, struct um_sdm_given given)
{
    union um_sdm_cell cell;
    size_t size = um_sdm_cell_size(type);
    if (check_elements(at, type) != LBMSDM_SUCCESS || um_sdm_cell_make(type, &cell, given) != LBMSDM_SUCCESS) {
        return LBMSDM_FAILURE;
    }
    size_t more = element_len(type, &cell) + (at.field->null ? 4 : 0); /* a null array is without its count */
    if (fits(at.msg, 0, more) != LBMSDM_SUCCESS || reserve_element(at.field, size) != LBMSDM_SUCCESS) {
        um_sdm_cell_free(type, &cell);
        return LBMSDM_FAILURE;
    }
    memcpy(at.field->cells + at.field->count++ * size, &cell, size);
    at.field->null = false;
    resized(at, 0, more);
    return LBMSDM_SUCCESS;
}

int um_sdm_set_elem(struct um_sdm_place at, size_t element, uint16_t type, struct um_sdm_given given)
{
    union um_sdm_cell cell;
    if (check_elements(at, type) != LBMSDM_SUCCESS) {
        return LBMSDM_FAILURE;
    }
    void *old = (void *)um_sdm_element(at, element);
    if (old == NULL || um_sdm_cell_make(type, &cell, given) != LBMSDM_SUCCESS) {
        return LBMSDM_FAILURE;
    }
    size_t less = element_len(type, old), more = element_len(type, &cell);
    if (fits(at.msg, less, more) != LBMSDM_SUCCESS) {
        um_sdm_cell_free(type, &cell);
        return LBMSDM_FAILURE;
    }
    um_sdm_cell_free(type, old);
    memcpy(old, &cell, um_sdm_cell_size(type));
    resized(at, less, more);
    return LBMSDM_SUCCESS;
}

int um_sdm_del_elem(struct um_sdm_place at, size_t element)
{
    uint8_t *cell = (uint8_t *)um_sdm_element(at, element);
    if (cell == NULL) {
        return LBMSDM_FAILURE;
    }
    uint16_t type = um_sdm_scalar(at.field->type);
    size_t size = um_sdm_cell_size(type), less = element_len(type, cell);
    um_sdm_cell_free(type, cell);
    at.field->count--;
    memmove(cell, cell + size, (at.field->count - element) * size);
    resized(at, less, 0);
    return LBMSDM_SUCCESS;
}

/* ---- fields that exist ---- */

int um_sdm_set(struct um_sdm_place at, uint16_t type, struct um_sdm_given given)
{
    union um_sdm_cell cell = {.u64 = 0};
    if (at.field == NULL || um_sdm_cell_make(type, &cell, given) != LBMSDM_SUCCESS) {
        return LBMSDM_FAILURE;
    }
    size_t len = um_sdm_cell_len(type, &cell);
    if (fits(at.msg, at.field->value_len, len) != LBMSDM_SUCCESS) {
        um_sdm_cell_free(type, &cell);
        return LBMSDM_FAILURE;
    }
    um_sdm_field_drop(at.field);
    at.field->type = type;
    at.field->null = false;
    at.field->one = cell;
    resized(at, at.field->value_len, len);
    return LBMSDM_SUCCESS;
}

int um_sdm_set_array(struct um_sdm_place at, uint16_t type)
{
    if (at.field == NULL || fits(at.msg, at.field->value_len, 4) != LBMSDM_SUCCESS) {
        return LBMSDM_FAILURE;
    }
    um_sdm_field_drop(at.field);
    at.field->type = (uint16_t)(type | LBMSDM_TYPE_MODIFIER_ARRAY);
    at.field->null = false;
    resized(at, at.field->value_len, 4);
    return LBMSDM_SUCCESS;
}

int um_sdm_set_null(struct um_sdm_place at)
{
    if (at.field == NULL) {
        return LBMSDM_FAILURE;
    }
    um_sdm_field_drop(at.field);
    at.field->null = true;
    resized(at, at.field->value_len, 0);
    return LBMSDM_SUCCESS;
}

int um_sdm_del(struct um_sdm_place at)
{
    if (at.field == NULL) {
        return LBMSDM_FAILURE;
    }
    lbmsdm_msg_t *msg = at.msg;
    size_t index = (size_t)(at.field - msg->fields);
    msg->length -= UM_SDM_FIELD_HEADER_LEN + at.field->name_len + at.field->value_len;
    um_sdm_field_drop(at.field);
    um_free(at.field->name);
    msg->count--;
    memmove(at.field, at.field + 1, (msg->count - index) * sizeof *at.field);
    msg->slots_stale = msg->data_stale = true;
    return LBMSDM_SUCCESS;
}
