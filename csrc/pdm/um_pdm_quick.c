/* The calls that set and get one value, with short ways for what most fields are: the bytes go to their place with a
 * few instructions. Whatever is not as it should be (a field that does not exist, a wrong length, no room, no value) is
 * left to the long way, which also tells the error; so a short way either does the whole work or nothing. */
#include "pdm/um_pdm.h"

static inline const struct um_pdm_field *field_of(const lbmpdm_msg_t *msg, int32_t handle)
{
    return msg == NULL || msg->defn == NULL ? NULL : um_pdm_field(msg->defn, handle);
}

static inline void copy_booleans(uint8_t *to, const uint8_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i] != 0;
    }
}

/* ---- setting ---- */

/* The place of a fixed-required field, NULL before there is memory for them. */
static inline uint8_t *plain_place(const lbmpdm_msg_t *msg, const struct um_pdm_field *field)
{
    return msg->room >= msg->defn->fixed_len ? msg->data + field->place : NULL;
}

static inline bool text_fits(const struct um_pdm_field *field, const char *text, size_t len)
{
    return text != NULL && len != 0 && (len < field->element || (len == field->element && text[len - 1] == '\0'));
}

static inline void put_text(const struct um_pdm_field *field, uint8_t *at, const char *text, size_t len)
{
    um_pdm_copy(at, text, len);
    if (len != field->element) {
        memset(at + len, 0, field->element - len);
    }
}

static bool set_plain(lbmpdm_msg_t *msg, const struct um_pdm_field *field, const void *value, size_t len)
{
    uint8_t *at = plain_place(msg, field);
    if (at == NULL) {
        return false;
    }
    if (field->quick == UM_PDM_QUICK_TEXTS) {
        if (!text_fits(field, value, len)) {
            return false;
        }
        put_text(field, at, value, len);
        return true;
    }
    if (len != field->element && len != 0) {
        return false;
    }
    if (field->quick == UM_PDM_QUICK_BYTES) {
        um_pdm_copy(at, value, field->element);
    } else {
        copy_booleans(at, value, 1);
    }
    return true;
}

static bool set_variable(lbmpdm_msg_t *msg, const struct um_pdm_field *field, const void *value, size_t len)
{
    const struct um_pdm_slot *slot = &msg->slots[field->place];
    if (slot->room < 4 || len > slot->room - 4) {
        return false;
    }
    um_pdm_write32(slot->own, (uint32_t)len);
    um_pdm_copy(slot->own + 4, value, len);
    um_pdm_mark_slot(msg, field, UM_PDM_OWN, 4 + (uint32_t)len);
    return true;
}

int lbmpdm_msg_set_field_value(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle, void *value, size_t len)
{
    const struct um_pdm_field *field = field_of(message, handle);
    if (field != NULL && value != NULL && field->quick != UM_PDM_QUICK_NONE) {
        if (field->quick == UM_PDM_QUICK_VARIABLE) {
            if (set_variable(message, field, value, len)) {
                return PDM_SUCCESS;
            }
        } else if (set_plain(message, field, value, len)) {
            um_pdm_mark_plain(message, handle);
            return PDM_SUCCESS;
        }
    }
    return um_pdm_set(message, handle, value, len);
}

/* Whether each length is that of an element, or 0 for it. */
static inline bool lengths_fit(const struct um_pdm_field *field, const size_t *len, size_t count)
{
    for (size_t i = 0; len != NULL && i < count; i++) {
        if (len[i] != 0 && len[i] != field->element) {
            return false;
        }
    }
    return true;
}

static bool set_texts(lbmpdm_msg_t *msg, const struct um_pdm_field *field, const char *const *texts, const size_t *len)
{
    uint8_t *at = plain_place(msg, field);
    if (at == NULL || len == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < field->count; i++) {
        if (!text_fits(field, texts[i], len[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < field->count; i++) {
        put_text(field, at + (size_t)i * field->element, texts[i], len[i]);
    }
    return true;
}

static bool set_numbers(lbmpdm_msg_t *msg, const struct um_pdm_field *field, const void *value, size_t count)
{
    const struct um_pdm_slot *slot = &msg->slots[field->place];
    if (count == 0 || slot->room < 4 || count > slot->room || count * field->element > slot->room - 4) {
        return false; /* room is 31 bits, an element 8 bytes at most: no overflow */
    }
    size_t bytes = count * field->element;
    um_pdm_write32(slot->own, (uint32_t)bytes);
    um_pdm_copy(slot->own + 4, value, bytes);
    um_pdm_mark_slot(msg, field, UM_PDM_OWN, 4 + (uint32_t)bytes);
    return true;
}

static bool set_array(lbmpdm_msg_t *msg, int32_t handle, const struct um_pdm_field *field, const void *value,
                      const size_t *len, size_t count)
{
    if (field->quick_vec == UM_PDM_QUICK_NUMBERS) {
        return lengths_fit(field, len, count) && set_numbers(msg, field, value, count);
    }
    if (count != field->count) {
        return false;
    }
    if (field->quick_vec == UM_PDM_QUICK_TEXTS) {
        if (!set_texts(msg, field, value, len)) {
            return false;
        }
    } else {
        uint8_t *at = plain_place(msg, field);
        if (at == NULL || !lengths_fit(field, len, count)) {
            return false;
        }
        if (field->quick_vec == UM_PDM_QUICK_BYTES) {
            um_pdm_copy(at, value, field->len);
        } else {
            copy_booleans(at, value, count);
        }
    }
    um_pdm_mark_plain(msg, handle);
    return true;
}

int lbmpdm_msg_set_field_value_vec(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle, void *value, size_t len[],
                                   size_t num_arr_elem)
{
    const struct um_pdm_field *field = field_of(message, handle);
    if (field != NULL && value != NULL && field->quick_vec != UM_PDM_QUICK_NONE &&
        set_array(message, handle, field, value, len, num_arr_elem)) {
        return PDM_SUCCESS;
    }
    return um_pdm_set_vec(message, handle, value, len, num_arr_elem);
}

/* ---- getting ---- */

uint8_t lbmpdm_msg_is_field_set(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle)
{
    const struct um_pdm_field *field = field_of(message, handle);
    if (field == NULL) {
        (void)um_pdm_msg_field(message, handle); /* tells the error */
    }
    return field != NULL && um_pdm_has_value(message, handle, field) ? PDM_TRUE : PDM_FALSE;
}

/* The value of a variable field as it stands, NULL if it is not set or in the other order of bytes. */
static inline const uint8_t *slot_bytes(const lbmpdm_msg_t *msg, const struct um_pdm_slot *slot)
{
    if (slot->state == UM_PDM_RECEIVED) {
        return msg->swap ? NULL : msg->data + slot->offset;
    }
    return slot->state == UM_PDM_OWN ? slot->own : NULL;
}

static bool get_plain(const lbmpdm_msg_t *msg, const struct um_pdm_field *field, void *value, size_t *len)
{
    const uint8_t *at = msg->data + field->place;
    if (*len < field->element) {
        return false;
    }
    *len = field->element;
    if (field->quick == UM_PDM_QUICK_BOOLEANS) {
        copy_booleans(value, at, 1);
        return true;
    }
    um_pdm_copy(value, at, field->element);
    if (field->quick == UM_PDM_QUICK_TEXTS) {
        ((char *)value)[field->element - 1] = '\0'; /* whatever a peer sent */
    }
    return true;
}

static bool get_variable(const lbmpdm_msg_t *msg, const struct um_pdm_field *field, void *value, size_t *len)
{
    const struct um_pdm_slot *slot = &msg->slots[field->place];
    const uint8_t *at = slot_bytes(msg, slot);
    if (at == NULL || *len < slot->len - 4) {
        return false;
    }
    *len = slot->len - 4;
    um_pdm_copy(value, at + 4, slot->len - 4);
    return true;
}

int lbmpdm_msg_get_field_value(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle, void *value, size_t *len)
{
    const struct um_pdm_field *field = field_of(message, handle);
    if (field != NULL && value != NULL && len != NULL && field->quick != UM_PDM_QUICK_NONE) {
        if (field->quick == UM_PDM_QUICK_VARIABLE) {
            if (get_variable(message, field, value, len)) {
                return PDM_SUCCESS;
            }
        } else if (message->plain_set[handle] != 0 && get_plain(message, field, value, len)) {
            return PDM_SUCCESS;
        }
    }
    return um_pdm_get(message, handle, value, len);
}

/* Room for each element; then the lengths that they have. */
static bool take_lengths(size_t *len, size_t count, size_t element)
{
    for (size_t i = 0; i < count; i++) {
        if (len[i] < element) {
            return false;
        }
    }
    for (size_t i = 0; i < count; i++) {
        len[i] = element;
    }
    return true;
}

static bool get_texts(const struct um_pdm_field *field, const uint8_t *at, char *const *texts, size_t *len)
{
    for (uint32_t i = 0; i < field->count; i++) {
        if (texts[i] == NULL) {
            return false;
        }
    }
    if (len == NULL || !take_lengths(len, field->count, field->element)) {
        return false;
    }
    for (uint32_t i = 0; i < field->count; i++, at += field->element) {
        um_pdm_copy(texts[i], at, field->element);
        texts[i][field->element - 1] = '\0';
    }
    return true;
}

static bool get_plain_array(const lbmpdm_msg_t *msg, const struct um_pdm_field *field, void *value, size_t *len)
{
    const uint8_t *at = msg->data + field->place;
    if (field->quick_vec == UM_PDM_QUICK_TEXTS) {
        return get_texts(field, at, value, len);
    }
    if (len != NULL && !take_lengths(len, field->count, field->element)) {
        return false;
    }
    if (field->quick_vec == UM_PDM_QUICK_BYTES) {
        um_pdm_copy(value, at, field->len);
    } else {
        copy_booleans(value, at, field->count);
    }
    return true;
}

static bool get_numbers(const lbmpdm_msg_t *msg, const struct um_pdm_field *field, void *value, size_t *len,
                        size_t *room)
{
    const struct um_pdm_slot *slot = &msg->slots[field->place];
    const uint8_t *at = slot_bytes(msg, slot);
    if (at == NULL) {
        return false;
    }
    size_t bytes = slot->len - 4, count = bytes >> __builtin_ctz(field->element); /* 1, 2, 4 or 8 */
    if (count > *room || (len != NULL && !take_lengths(len, count, field->element))) {
        return false;
    }
    *room = count;
    um_pdm_copy(value, at + 4, bytes);
    return true;
}

int lbmpdm_msg_get_field_value_vec(lbmpdm_msg_t *message, lbmpdm_field_handle_t handle, void *value, size_t len[],
                                   size_t *num_arr_elem)
{
    const struct um_pdm_field *field = field_of(message, handle);
    if (field != NULL && value != NULL && num_arr_elem != NULL && field->quick_vec != UM_PDM_QUICK_NONE) {
        if (field->quick_vec == UM_PDM_QUICK_NUMBERS) {
            if (get_numbers(message, field, value, len, num_arr_elem)) {
                return PDM_SUCCESS;
            }
        } else if (message->plain_set[handle] != 0 && *num_arr_elem >= field->count &&
                   get_plain_array(message, field, value, len)) {
            *num_arr_elem = field->count;
            return PDM_SUCCESS;
        }
    }
    return um_pdm_get_vec(message, handle, value, len, num_arr_elem);
}
