/* Values out of messages, into the caller's space or into allocated copies. */
#include "pdm/um_pdm.h"

#include "base/um_mem.h"

/* The field's value, taken apart; false with the error recorded. */
static const struct um_pdm_field *find_value(lbmpdm_msg_t *msg, int32_t handle, struct um_pdm_value *out)
{
    const struct um_pdm_field *field = um_pdm_msg_field(msg, handle);
    if (field == NULL) {
        return NULL;
    }
    if (!um_pdm_msg_is_set(msg, handle)) {
        (void)um_pdm_error(PDM_ERR_FIELD_IS_NULL, "field %d is not set", (int)handle);
        return NULL;
    }
    if (field->plain) {
        (void)um_pdm_value_read(field, msg->data + field->place, field->len, false, out);
        return field;
    }
    const struct um_pdm_slot *slot = &msg->slots[field->place];
    bool received = slot->state == UM_PDM_RECEIVED;
    (void)um_pdm_value_read(field, received ? msg->data + slot->offset : slot->own, slot->len, received && msg->swap,
                            out);
    return field;
}

/* Elements of C from those of a message. A peer's booleans are PDM_TRUE or PDM_FALSE here. */
static void take_elements(const struct um_pdm_field *field, const struct um_pdm_value *value, void *out)
{
    uint8_t *to = out, turned[16];
    bool booleans = field->code == PDM_TYPE_BOOLEAN || field->code == PDM_TYPE_BOOLEAN_ARR;
    if (booleans || (!value->swap && field->type->kind != UM_PDM_DECIMAL)) {
        memcpy(to, value->elements, (size_t)value->count * field->element);
        for (uint32_t i = 0; booleans && i < value->count; i++) {
            to[i] = to[i] != 0;
        }
        return;
    }
    for (uint32_t i = 0; i < value->count; i++) {
        memcpy(turned, value->elements + (size_t)i * field->element, field->element);
        if (value->swap) {
            um_pdm_elements_swap(field, turned, 1);
        }
        if (field->type->kind == UM_PDM_DECIMAL) {
            lbmpdm_decimal_t decimal = {.exp = (int8_t)turned[0]};
            memcpy(&decimal.mant, turned + 1, 8);
            memcpy(to, &decimal, sizeof decimal);
        } else {
            memcpy(to, turned, field->element);
        }
        to += field->type->host;
    }
}

/* The bytes of the next element: text, blob or nested message. */
static struct um_slice next_bytes(const struct um_pdm_field *field, const struct um_pdm_value *value,
                                  const uint8_t **at)
{
    if (field->element == 0) {
        return um_pdm_value_next(at, value->swap);
    }
    struct um_slice element = {*at, field->element};
    *at += field->element;
    return element;
}

/* Bytes that the caller's space for an element must have. */
static size_t wanted(const struct um_pdm_field *field, struct um_slice element)
{
    return field->type->kind == UM_PDM_NESTED ? sizeof(lbmpdm_msg_t *) : element.len;
}

static int too_small(void)
{
    return um_pdm_error(PDM_ERR_INSUFFICIENT_BUFFER_LENGTH, "the space for the value is too small");
}

/* Text of a fixed length ends in a NUL, whatever a peer sent. */
static void copy_bytes(const struct um_pdm_field *field, struct um_slice element, void *out)
{
    if (element.len != 0) {
        memcpy(out, element.ptr, element.len);
        if (field->type->kind == UM_PDM_SLOT) {
            ((char *)out)[element.len - 1] = '\0';
        }
    }
}

static int take_bytes(const lbmpdm_msg_t *msg, const struct um_pdm_field *field, struct um_slice element, void *out)
{
    if (field->type->kind == UM_PDM_NESTED) {
        return out == msg ? um_pdm_error(PDM_ERR_EINVAL, "a message cannot be read into the one that it is in")
                          : um_pdm_msg_read(out, element.ptr, element.len);
    }
    copy_bytes(field, element, out);
    return PDM_SUCCESS;
}

int um_pdm_get(lbmpdm_msg_t *msg, int32_t handle, void *value, size_t *len)
{
    struct um_pdm_value found;
    const struct um_pdm_field *field = find_value(msg, handle, &found);
    if (field == NULL) {
        return PDM_FAILURE;
    }
    if (field->type->array || value == NULL || len == NULL) {
        return um_pdm_error(PDM_ERR_EINVAL, "field %d is an array, or no space was given", (int)handle);
    }
    const uint8_t *at = found.elements;
    struct um_slice bytes = {NULL, field->type->host};
    if (field->type->host == 0) {
        bytes = next_bytes(field, &found, &at);
    }
    size_t need = wanted(field, bytes), room = *len;
    *len = need;
    if (need > room) {
        return too_small();
    }
    if (field->type->host == 0) {
        return take_bytes(msg, field, bytes, value);
    }
    take_elements(field, &found, value);
    return PDM_SUCCESS;
}

/* The lengths that elements have; false when there was less space for one. `len` is NULL for numbers only. */
static bool measure(const struct um_pdm_field *field, const struct um_pdm_value *value, size_t *len)
{
    const uint8_t *at = value->elements;
    bool fits = true;
    for (uint32_t i = 0; i < value->count && len != NULL; i++) {
        size_t need = field->type->host != 0 ? field->type->host : wanted(field, next_bytes(field, value, &at));
        if (len[i] < need) {
            fits = false;
            len[i] = need;
        }
    }
    return fits;
}

static int take_all(const lbmpdm_msg_t *msg, const struct um_pdm_field *field, const struct um_pdm_value *value,
                    void *const *out, size_t *len)
{
    const uint8_t *at = value->elements;
    for (uint32_t i = 0; i < value->count; i++) {
        struct um_slice element = next_bytes(field, value, &at);
        if (out[i] == NULL) {
            return um_pdm_error(PDM_ERR_EINVAL, "no space was given for element %u", (unsigned)i);
        }
        if (take_bytes(msg, field, element, out[i]) != PDM_SUCCESS) {
            return PDM_FAILURE;
        }
        len[i] = wanted(field, element);
    }
    return PDM_SUCCESS;
}

int um_pdm_get_vec(lbmpdm_msg_t *msg, int32_t handle, void *value, size_t *len, size_t *count)
{
    struct um_pdm_value found;
    const struct um_pdm_field *field = find_value(msg, handle, &found);
    if (field == NULL) {
        return PDM_FAILURE;
    }
    bool number = field->type->host != 0;
    if (!field->type->array || value == NULL || count == NULL || (len == NULL && !number)) {
        return um_pdm_error(PDM_ERR_EINVAL, "field %d is no array, or no space was given", (int)handle);
    }
    size_t room = *count;
    *count = found.count;
    if (found.count > room) {
        return too_small();
    }
    if (!measure(field, &found, len)) {
        return too_small();
    }
    if (!number) {
        return take_all(msg, field, &found, value, len);
    }
    for (uint32_t i = 0; i < found.count && len != NULL; i++) {
        len[i] = field->type->host;
    }
    take_elements(field, &found, value);
    return PDM_SUCCESS;
}

/* ---- allocated copies ---- */

static size_t copy_size(const struct um_pdm_field *field, const struct um_pdm_value *value)
{
    return field->type->host != 0 ? (size_t)value->count * field->type->host : value->bytes;
}

static int copy_scalar(const struct um_pdm_field *field, const struct um_pdm_value *value, lbmpdm_field_value_t *out)
{
    const uint8_t *at = value->elements;
    size_t size = copy_size(field, value);
    out->value = um_malloc(size == 0 ? 1 : size);
    if (out->value == NULL) {
        return um_pdm_error(PDM_ERR_NOMEM, "value: out of memory");
    }
    if (field->type->host != 0) {
        take_elements(field, value, out->value);
        out->len = field->type->host;
    } else {
        struct um_slice bytes = next_bytes(field, value, &at);
        copy_bytes(field, bytes, out->value);
        out->len = bytes.len;
    }
    return PDM_SUCCESS;
}

/* The pointers and behind them, in the same allocation, the elements. */
static int copy_array(const struct um_pdm_field *field, const struct um_pdm_value *value, lbmpdm_field_value_t *out)
{
    const uint8_t *from = value->elements;
    size_t pointers = value->count * sizeof(char *), size = copy_size(field, value);
    out->value_arr = um_malloc(pointers + size + 1);
    out->len_arr = um_malloc(value->count * sizeof(size_t) + 1);
    if (out->value_arr == NULL || out->len_arr == NULL) {
        um_free(out->value_arr);
        um_free(out->len_arr);
        out->value_arr = NULL;
        out->len_arr = NULL;
        return um_pdm_error(PDM_ERR_NOMEM, "value: out of memory");
    }
    char *to = (char *)out->value_arr + pointers;
    if (field->type->host != 0) {
        take_elements(field, value, to);
    }
    for (uint32_t i = 0; i < value->count; i++) {
        struct um_slice bytes = {NULL, field->type->host};
        if (field->type->host == 0) {
            bytes = next_bytes(field, value, &from);
            copy_bytes(field, bytes, to);
        }
        out->value_arr[i] = to;
        out->len_arr[i] = bytes.len;
        to += bytes.len;
    }
    out->num_arr_elem = value->count;
    return PDM_SUCCESS;
}

/* ---- the API ---- */

int lbmpdm_msg_get_field_value_stct(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle,
                                    lbmpdm_field_value_t *field_value)
{
    struct um_pdm_value found;
    const struct um_pdm_field *field = find_value(message, handle, &found);
    if (field == NULL) {
        return PDM_FAILURE;
    }
    if (field_value == NULL) {
        return um_pdm_error(PDM_ERR_EINVAL, "no space was given");
    }
    memset(field_value, 0, sizeof *field_value);
    field_value->field_type = (uint16_t)field->code;
    field_value->is_array = field->type->array;
    field_value->is_fixed = field->fixed;
    return field->type->array ? copy_array(field, &found, field_value) : copy_scalar(field, &found, field_value);
}

int lbmpdm_field_value_stct_delete(lbmpdm_field_value_t *field_value)
{
    if (field_value == NULL) {
        return um_pdm_error(PDM_ERR_EINVAL, "no value was given");
    }
    um_free(field_value->value);
    um_free(field_value->value_arr);
    um_free(field_value->len_arr);
    memset(field_value, 0, sizeof *field_value);
    return PDM_SUCCESS;
}
