/* Values of SDM messages read: copied out in the type of the field, or converted from one type of numbers to another.
 * A null field gives LBMSDM_FIELD_IS_NULL, a buffer that is too small LBMSDM_INSUFFICIENT_BUFFER_LENGTH. */
#include <limits.h>
#include <string.h>

#include "sdm/um_sdm.h"

static int is_null(const struct um_sdm_field *field)
{
    um_sdm_error(LBMSDM_ERR_FIELD_IS_NULL, "%s: the field is null", field->name);
    return LBMSDM_FIELD_IS_NULL;
}

/* Units that the caller's buffer needs; text with its NUL. */
static size_t needed(uint16_t type, const struct um_sdm_bytes *bytes)
{
    return bytes->len + (type == LBMSDM_TYPE_STRING ? 1 : 0);
}

static int copy_out(uint16_t type, const struct um_sdm_bytes *bytes, void *out, size_t *size)
{
    size_t units = needed(type, bytes), given = *size;
    *size = units;
    if (given < units) {
        return LBMSDM_INSUFFICIENT_BUFFER_LENGTH;
    }
    if (units == 0) {
        return LBMSDM_SUCCESS;
    }
    if (out == NULL) {
        return um_sdm_error(LBMSDM_ERR_EINVAL, "Value must not be NULL");
    }
    if (bytes->len == 0) {
        *(char *)out = '\0'; /* empty text */
    } else {
        memcpy(out, bytes->ptr, units * (type == LBMSDM_TYPE_UNICODE ? sizeof(wchar_t) : 1));
    }
    return LBMSDM_SUCCESS;
}

static int read_cell(const struct um_sdm_field *field, const void *cell, uint16_t type, void *out, size_t *size)
{
    uint16_t from = um_sdm_scalar(field->type);
    if (from != type && !(um_sdm_is_number(from) && um_sdm_is_number(type))) {
        return um_sdm_error(LBMSDM_ERR_CANNOT_CONVERT, "%s: a value of the type %s cannot be read as %s", field->name,
                            um_sdm_type_name(from), um_sdm_type_name(type));
    }
    if (type >= LBMSDM_TYPE_STRING) {
        return size == NULL ? um_sdm_error(LBMSDM_ERR_EINVAL, "Size must not be NULL")
                            : copy_out(type, cell, out, size);
    }
    if (out == NULL) {
        return um_sdm_error(LBMSDM_ERR_EINVAL, "Value must not be NULL");
    }
    if (from != type) {
        um_sdm_convert(from, cell, type, out);
        return LBMSDM_SUCCESS;
    }
    if (type == LBMSDM_TYPE_MESSAGE) {
        lbmsdm_msg_t *copy = um_sdm_msg_clone(*(lbmsdm_msg_t *const *)cell);
        if (copy == NULL) {
            return LBMSDM_FAILURE;
        }
        *(lbmsdm_msg_t **)out = copy;
        return LBMSDM_SUCCESS;
    }
    memcpy(out, cell, um_sdm_cell_size(type));
    return LBMSDM_SUCCESS;
}

int um_sdm_get(struct um_sdm_place at, uint16_t type, void *out, size_t *size)
{
    if (at.field == NULL) {
        return LBMSDM_FAILURE;
    }
    if (um_sdm_is_array(at.field)) {
        return um_sdm_error(LBMSDM_ERR_NOT_SCALAR, "%s: the field is an array, its elements are read", at.field->name);
    }
    return at.field->null ? is_null(at.field) : read_cell(at.field, &at.field->one, type, out, size);
}

const void *um_sdm_element(struct um_sdm_place at, size_t element)
{
    if (at.field == NULL) {
        return NULL;
    }
    if (!um_sdm_is_array(at.field)) {
        um_sdm_error(LBMSDM_ERR_NOT_ARRAY, "%s: the field is a scalar, it has no elements", at.field->name);
    } else if (at.field->null) {
        is_null(at.field);
    } else if (element >= at.field->count) {
        um_sdm_error(LBMSDM_ERR_ELEMENT_NOT_FOUND, "%s: there is no element %zu of %u", at.field->name, element,
                     at.field->count);
    } else {
        return at.field->cells + element * um_sdm_cell_size(um_sdm_scalar(at.field->type));
    }
    return NULL;
}

int um_sdm_get_elem(struct um_sdm_place at, size_t element, uint16_t type, void *out, size_t *size)
{
    const void *cell = um_sdm_element(at, element);
    if (cell == NULL) {
        return at.field != NULL && um_sdm_is_array(at.field) && at.field->null ? LBMSDM_FIELD_IS_NULL : LBMSDM_FAILURE;
    }
    return read_cell(at.field, cell, type, out, size);
}

/* Bytes of memory that a getter of the field's own type fills. */
static int memory_len(const struct um_sdm_field *field, const void *cell)
{
    uint16_t type = um_sdm_scalar(field->type);
    size_t len = type == LBMSDM_TYPE_MESSAGE  ? um_sdm_cell_len(type, cell)
                 : type < LBMSDM_TYPE_MESSAGE ? um_sdm_cell_size(type)
                                              : needed(type, cell);
    len *= type == LBMSDM_TYPE_UNICODE ? sizeof(wchar_t) : 1;
    if (len > INT_MAX) {
        return um_sdm_error(LBMSDM_ERR_EINVAL, "%s: the value has %zu bytes, more than an int can say", field->name,
                            len);
    }
    return (int)len;
}

int um_sdm_get_len(struct um_sdm_place at)
{
    if (at.field == NULL) {
        return LBMSDM_FAILURE;
    }
    if (um_sdm_is_array(at.field)) {
        return um_sdm_error(LBMSDM_ERR_NOT_SCALAR, "%s: the field is an array, its elements have a length",
                            at.field->name);
    }
    if (at.field->null) {
        (void)is_null(at.field);
        return LBMSDM_FAILURE;
    }
    return memory_len(at.field, &at.field->one);
}

int um_sdm_get_elemlen(struct um_sdm_place at, size_t element)
{
    const void *cell = um_sdm_element(at, element);
    return cell == NULL ? LBMSDM_FAILURE : memory_len(at.field, cell);
}
