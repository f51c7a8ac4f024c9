/* Values into messages. They are kept as they will stand in the data segment. */
#include "pdm/um_pdm.h"

#include "base/um_mem.h"

static void put_decimal(uint8_t *at, const void *value)
{
    lbmpdm_decimal_t decimal;
    memcpy(&decimal, value, sizeof decimal);
    at[0] = (uint8_t)decimal.exp;
    memcpy(at + 1, &decimal.mant, 8);
}

/* Elements of C of one size, into the message. */
static void put_elements(const struct um_pdm_field *field, uint8_t *at, const void *value, size_t count)
{
    const uint8_t *from = value;
    if (field->type->kind != UM_PDM_DECIMAL) {
        memcpy(at, from, count * field->element);
        for (size_t i = 0; (field->code == PDM_TYPE_BOOLEAN || field->code == PDM_TYPE_BOOLEAN_ARR) && i < count; i++) {
            at[i] = at[i] != 0;
        }
        return;
    }
    for (size_t i = 0; i < count; i++) {
        put_decimal(at + i * field->element, from + i * sizeof(lbmpdm_decimal_t));
    }
}

static void put_text(const struct um_pdm_field *field, uint8_t *at, const char *text, size_t len)
{
    len = len != 0 ? len : strnlen(text, field->element - 1);
    memcpy(at, text, len);
    memset(at + len, 0, field->element - len);
}

static int wrong_length(size_t len, size_t most)
{
    return um_pdm_error(PDM_ERR_EINVAL, "a value of %zu bytes: the field has %zu", len, most);
}

/* Whether elements of a fixed size may be taken; `len` NULL is zeros. */
static int check_sized(const struct um_pdm_field *field, const void *value, const size_t *len, size_t count)
{
    bool text = field->type->kind == UM_PDM_SLOT;
    const void *const *texts = value;
    for (size_t i = 0; i < count; i++) {
        size_t given = len == NULL ? 0 : len[i];
        if (text ? given > field->element : given != 0 && given != field->type->host) {
            return wrong_length(given, text ? field->element : field->type->host);
        }
        if (text && texts[i] == NULL) {
            return um_pdm_error(PDM_ERR_EINVAL, "a text is NULL");
        }
        if (text && given == field->element && ((const char *)texts[i])[given - 1] != '\0') {
            return um_pdm_error(PDM_ERR_EINVAL, "a text of %zu bytes without a NUL: the field has %u and the NUL",
                                given, (unsigned)field->element - 1);
        }
    }
    return PDM_SUCCESS;
}

static void put_sized(const struct um_pdm_field *field, uint8_t *at, const void *value, const size_t *len, size_t count)
{
    if (field->type->kind != UM_PDM_SLOT) {
        put_elements(field, at, value, count);
        return;
    }
    const char *const *texts = value;
    for (size_t i = 0; i < count; i++) {
        put_text(field, at + i * field->element, texts[i], len == NULL ? 0 : len[i]);
    }
}

/* Bytes of one element of variable length, without the word before it; -1 with the error recorded. */
static int64_t variable_length(const struct um_pdm_field *field, const void *value, size_t len)
{
    if (field->type->kind == UM_PDM_NESTED) {
        if (value == NULL || (len != 0 && len != sizeof(lbmpdm_msg_t *))) {
            return um_pdm_error(PDM_ERR_EINVAL, "a message and the size of its pointer are needed");
        }
        uint32_t length = um_pdm_msg_length(value);
        return length == 0 ? PDM_FAILURE : (int64_t)length;
    }
    if ((value == NULL && len != 0) || len > UM_PDM_SIZE_MAX) {
        return um_pdm_error(PDM_ERR_EINVAL, "a value of %zu bytes cannot be taken", len);
    }
    return (int64_t)len;
}

static uint8_t *put_variable(const struct um_pdm_field *field, uint8_t *at, const void *value, uint32_t len)
{
    um_pdm_write32(at, len);
    if (field->type->kind == UM_PDM_NESTED) {
        (void)um_pdm_msg_write(value, at + 4, len);
    } else if (len != 0) {
        memcpy(at + 4, value, len);
    }
    return at + 4 + len;
}

static int64_t variable_total(const struct um_pdm_field *field, const void *const *values, const size_t *len,
                              size_t count)
{
    int64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t bytes = variable_length(field, values[i], len == NULL ? 0 : len[i]);
        if (bytes < 0) {
            return bytes;
        }
        total += 4 + bytes;
        if (total > UM_PDM_SIZE_MAX) {
            return um_pdm_error(PDM_ERR_EINVAL, "an array of more than 2^31-1 bytes");
        }
    }
    return total;
}

/* The field's slot with room for a new value. The value may be in the message itself, so that the old bytes stay until
 * `commit` takes the new ones over. */
static uint8_t *new_bytes(lbmpdm_msg_t *msg, const struct um_pdm_field *field, size_t len, bool reuse)
{
    struct um_pdm_slot *slot = &msg->slots[field->place];
    if (len > UM_PDM_SIZE_MAX) {
        (void)um_pdm_error(PDM_ERR_EINVAL, "a value of more than 2^31-1 bytes");
        return NULL;
    }
    if (reuse && len <= slot->room) {
        return slot->own;
    }
    uint8_t *bytes = um_malloc(len == 0 ? 1 : len);
    if (bytes == NULL) {
        (void)um_pdm_error(PDM_ERR_NOMEM, "value: out of memory (%zu bytes)", len);
    }
    return bytes;
}

static void commit(lbmpdm_msg_t *msg, const struct um_pdm_field *field, uint8_t *bytes, size_t len)
{
    struct um_pdm_slot *slot = &msg->slots[field->place];
    if (bytes != slot->own) {
        um_free(slot->own);
        slot->own = bytes;
        slot->room = (uint32_t)len;
    }
    um_pdm_mark_slot(msg, field, UM_PDM_OWN, (uint32_t)len);
}

static int set_plain(lbmpdm_msg_t *msg, int32_t handle, const struct um_pdm_field *field, const void *value,
                     const size_t *len, size_t count)
{
    if (um_pdm_msg_room(msg, msg->defn->fixed_len) != PDM_SUCCESS) {
        return PDM_FAILURE;
    }
    put_sized(field, msg->data + field->place, value, len, count);
    um_pdm_mark_plain(msg, handle);
    return PDM_SUCCESS;
}

/* Elements of a fixed size, in number as the field wants them. */
static int set_sized(lbmpdm_msg_t *msg, int32_t handle, const struct um_pdm_field *field, const void *value,
                     const size_t *len, size_t count)
{
    if (check_sized(field, value, len, count) != PDM_SUCCESS) {
        return PDM_FAILURE;
    }
    if (field->plain) {
        return set_plain(msg, handle, field, value, len, count);
    }
    size_t before = field->fixed ? 0 : 4;
    if (count > UM_PDM_SIZE_MAX / field->element) {
        return um_pdm_error(PDM_ERR_EINVAL, "an array of more than 2^31-1 bytes");
    }
    size_t total = before + count * field->element;
    uint8_t *bytes = new_bytes(msg, field, total, true);
    if (bytes == NULL) {
        return PDM_FAILURE;
    }
    if (before != 0) {
        um_pdm_write32(bytes, (uint32_t)(total - before));
    }
    put_sized(field, bytes + before, value, len, count);
    commit(msg, field, bytes, total);
    return PDM_SUCCESS;
}

static int set_variable(lbmpdm_msg_t *msg, const struct um_pdm_field *field, const void *const *values,
                        const size_t *len, size_t count)
{
    int64_t total = variable_total(field, values, len, count);
    size_t before = field->type->array ? 4 : 0;
    /* A message inside itself is written from its old values. */
    uint8_t *bytes =
        total < 0 ? NULL : new_bytes(msg, field, before + (size_t)total, field->type->kind != UM_PDM_NESTED);
    if (bytes == NULL) {
        return PDM_FAILURE;
    }
    uint8_t *at = bytes + before;
    if (before != 0) {
        um_pdm_write32(bytes, (uint32_t)total);
    }
    for (size_t i = 0; i < count; i++) {
        at = put_variable(field, at, values[i], (uint32_t)variable_length(field, values[i], len == NULL ? 0 : len[i]));
    }
    commit(msg, field, bytes, before + (size_t)total);
    return PDM_SUCCESS;
}

int um_pdm_set(lbmpdm_msg_t *msg, int32_t handle, const void *value, size_t len)
{
    const struct um_pdm_field *field = um_pdm_msg_field(msg, handle);
    if (field == NULL) {
        return PDM_FAILURE;
    }
    if (field->type->array) {
        return um_pdm_error(PDM_ERR_EINVAL, "field %d is an array", (int)handle);
    }
    if (field->element == 0) {
        return set_variable(msg, field, &value, &len, 1);
    }
    if (value == NULL) {
        return um_pdm_error(PDM_ERR_EINVAL, "no value was given");
    }
    return set_sized(msg, handle, field, field->type->kind == UM_PDM_SLOT ? (const void *)&value : value, &len, 1);
}

int um_pdm_set_vec(lbmpdm_msg_t *msg, int32_t handle, const void *value, const size_t *len, size_t count)
{
    const struct um_pdm_field *field = um_pdm_msg_field(msg, handle);
    if (field == NULL) {
        return PDM_FAILURE;
    }
    if (!field->type->array || value == NULL) {
        return um_pdm_error(PDM_ERR_EINVAL, "field %d is no array, or no values were given", (int)handle);
    }
    if (field->count != 0 ? count != field->count : count == 0) {
        return um_pdm_error(PDM_ERR_EINVAL, "field %d cannot have %zu elements: it has %u (0: at least one)",
                            (int)handle, count, (unsigned)field->count);
    }
    return field->element == 0 ? set_variable(msg, field, value, len, count)
                               : set_sized(msg, handle, field, value, len, count);
}

static void unset(lbmpdm_msg_t *msg, int32_t handle, const struct um_pdm_field *field)
{
    if (!field->plain) {
        um_pdm_mark_slot(msg, field, UM_PDM_UNSET, 0);
    } else if (msg->plain_set[handle] != 0) {
        msg->plain_set[handle] = 0;
        msg->plain_unset++;
    }
}

/* ---- the API ---- */

int lbmpdm_msg_remove_field_value(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle)
{
    const struct um_pdm_field *field = um_pdm_msg_field(message, handle);
    if (field == NULL) {
        return PDM_FAILURE;
    }
    unset(message, handle, field);
    return PDM_SUCCESS;
}
