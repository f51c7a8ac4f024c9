/* Messages: their storage, and writing them as bytes. Fixed-required fields stand in `data` as they do in the data
 * segment, so that a message of these alone is written by one copy; all others have a slot each. */
#include "pdm/um_pdm.h"

#include "base/um_mem.h"

static void drop_values(lbmpdm_msg_t *msg)
{
    for (uint32_t i = 0; msg->slots != NULL && i < msg->defn->slot_count; i++) {
        um_free(msg->slots[i].own);
    }
    um_free(msg->slots);
    um_free(msg->plain_set);
}

/* What the message's going does to its definition. */
static void leave_definition(lbmpdm_msg_t *msg, bool disown)
{
    lbmpdm_defn_t *defn = msg->defn;
    if (defn != NULL) {
        if (disown && !msg->borrowed && !atomic_load(&defn->in_cache)) {
            (void)um_pdm_defn_disown(defn);
        }
        um_pdm_defn_release(defn);
    }
}

int um_pdm_msg_use(lbmpdm_msg_t *msg, lbmpdm_defn_t *defn, bool adopted)
{
    struct um_pdm_slot *slots = NULL;
    uint8_t *plain_set = NULL;
    if (defn != NULL) {
        slots = um_calloc(defn->slot_count == 0 ? 1 : defn->slot_count, sizeof *slots);
        plain_set = um_calloc((size_t)defn->count, 1);
        if (slots == NULL || plain_set == NULL) {
            um_free(slots);
            um_free(plain_set);
            return um_pdm_error(PDM_ERR_NOMEM, "message: out of memory");
        }
    }
    drop_values(msg);
    leave_definition(msg, msg->adopted || (msg->flags & PDM_MSG_FLAG_DEL_DEFN_WHEN_REPLACED) != 0);
    msg->defn = defn;
    msg->adopted = adopted;
    msg->borrowed = false;
    msg->slots = slots;
    msg->plain_set = plain_set;
    msg->swap = false;
    msg->plain_unset = defn == NULL ? 0 : defn->plain_count;
    msg->slots_unset = defn == NULL ? 0 : defn->needed_slots;
    msg->slots_set = 0;
    msg->slots_bytes = 0;
    return PDM_SUCCESS;
}

void um_pdm_msg_clear_slots(lbmpdm_msg_t *msg)
{
    for (uint32_t i = 0; msg->slots_set != 0 && i < msg->defn->slot_count; i++) {
        msg->slots[i].state = UM_PDM_UNSET;
    }
    msg->slots_set = 0;
    msg->slots_bytes = 0;
    msg->slots_unset = msg->defn->needed_slots;
    msg->swap = false;
}

void um_pdm_msg_clear(lbmpdm_msg_t *msg)
{
    const lbmpdm_defn_t *defn = msg->defn;
    if (defn == NULL) {
        return;
    }
    if (msg->plain_unset != defn->plain_count) {
        memset(msg->plain_set, 0, (size_t)defn->count);
        msg->plain_unset = defn->plain_count;
    }
    um_pdm_msg_clear_slots(msg);
}

int um_pdm_msg_room(lbmpdm_msg_t *msg, size_t len)
{
    if (len > msg->room) {
        uint8_t *data = um_realloc(msg->data, len);
        if (data == NULL) {
            return um_pdm_error(PDM_ERR_NOMEM, "message: out of memory (%zu bytes)", len);
        }
        memset(data + msg->room, 0, len - msg->room);
        msg->data = data;
        msg->room = len;
    }
    return PDM_SUCCESS;
}

lbmpdm_msg_t *um_pdm_msg_new(lbmpdm_defn_t *defn, uint32_t flags)
{
    lbmpdm_msg_t *msg = um_calloc(1, sizeof *msg);
    if (msg == NULL) {
        (void)um_pdm_error(PDM_ERR_NOMEM, "message: out of memory");
        return NULL;
    }
    if (defn != NULL) {
        if (um_pdm_msg_use(msg, defn, false) != PDM_SUCCESS) {
            um_free(msg);
            return NULL;
        }
        atomic_fetch_add(&defn->references, 1);
    }
    msg->flags = flags;
    return msg;
}

void um_pdm_msg_free(lbmpdm_msg_t *msg, bool and_defn)
{
    drop_values(msg);
    leave_definition(msg, and_defn);
    um_free(msg->data);
    um_free(msg->out);
    um_free(msg);
}

bool um_pdm_msg_is_set(const lbmpdm_msg_t *msg, int32_t handle)
{
    const struct um_pdm_field *field = msg->defn == NULL ? NULL : um_pdm_field(msg->defn, handle);
    return field != NULL && um_pdm_has_value(msg, handle, field);
}

const struct um_pdm_field *um_pdm_msg_field(const lbmpdm_msg_t *msg, int32_t handle)
{
    const struct um_pdm_field *field = msg == NULL || msg->defn == NULL ? NULL : um_pdm_field(msg->defn, handle);
    if (field == NULL) {
        (void)(msg == NULL ? um_pdm_error(PDM_ERR_EINVAL, "no message was given")
                           : um_pdm_error(PDM_ERR_FIELD_NOT_FOUND, "the message has no field %d", (int)handle));
    }
    return field;
}

/* ---- writing ---- */

static bool writes_table(const lbmpdm_msg_t *msg)
{
    return msg->slots_set != 0 || (msg->flags & UM_PDM_NO_EMPTY_TABLE) == 0;
}

uint32_t um_pdm_msg_length(const lbmpdm_msg_t *msg)
{
    if (msg->defn == NULL) {
        (void)um_pdm_error(PDM_ERR_DEFN_INVALID, "the message has no definition");
        return 0;
    }
    if ((msg->plain_unset | msg->slots_unset) != 0) {
        (void)um_pdm_error(PDM_ERR_REQ_FIELD_NOT_SET, "%u required fields are not set",
                           (unsigned)(msg->plain_unset + msg->slots_unset));
        return 0;
    }
    uint64_t len = UM_PDM_HEADER_LEN + UM_PDM_SEGMENT_LEN + msg->defn->fixed_len + msg->slots_bytes;
    len += writes_table(msg) ? UM_PDM_SEGMENT_LEN + 8ull * msg->slots_set : 0;
    if ((msg->flags & PDM_MSG_FLAG_INCL_DEFN) != 0) {
        len += UM_PDM_SEGMENT_LEN + um_pdm_defn_length(msg->defn);
    }
    if (len > UM_PDM_SIZE_MAX) {
        (void)um_pdm_error(PDM_ERR_CREATE_BUFFER, "the message is longer than 2^31-1 bytes");
        return 0;
    }
    return (uint32_t)len;
}

static uint8_t *write_segment(uint8_t *at, uint8_t next, uint32_t len)
{
    const uint8_t head[4] = {next};
    memcpy(at, head, sizeof head);
    um_pdm_write32(at + 4, len);
    return at + UM_PDM_SEGMENT_LEN;
}

/* The values of the slots and their table. Values received in the other order are turned in the output. */
static void write_slots(const lbmpdm_msg_t *msg, uint8_t *table, uint8_t *data)
{
    const lbmpdm_defn_t *defn = msg->defn;
    uint32_t offset = defn->fixed_len;
    for (uint32_t i = 0; i < defn->slot_count; i++) {
        const struct um_pdm_slot *slot = &msg->slots[i];
        if (slot->state == UM_PDM_UNSET) {
            continue;
        }
        bool received = slot->state == UM_PDM_RECEIVED;
        um_pdm_copy(data + offset, received ? msg->data + slot->offset : slot->own, slot->len);
        if (received && msg->swap) {
            um_pdm_value_swap(&defn->fields[defn->slot_fields[i]], data + offset, slot->len);
        }
        um_pdm_write32(table, (uint32_t)defn->slot_fields[i]);
        um_pdm_write32(table + 4, offset);
        table += 8;
        offset += slot->len;
    }
}

int um_pdm_msg_write(const lbmpdm_msg_t *msg, uint8_t *out, uint32_t length)
{
    const lbmpdm_defn_t *defn = msg->defn;
    bool with_defn = (msg->flags & PDM_MSG_FLAG_INCL_DEFN) != 0, with_table = writes_table(msg);
    uint8_t first = with_table ? UM_PDM_SEGMENT_OFFSETS : UM_PDM_SEGMENT_DATA, *at = out + UM_PDM_HEADER_LEN;
    um_pdm_write32(out, UM_PDM_MAGIC);
    out[4] = 0x10;
    out[5] = with_defn ? UM_PDM_SEGMENT_DEFN : first;
    out[6] = (uint8_t)defn->major;
    out[7] = (uint8_t)defn->minor;
    um_pdm_write32(out + 8, (uint32_t)defn->id);
    um_pdm_write32(out + 12, length);
    if (with_defn) {
        at = write_segment(at, first, um_pdm_defn_length(defn));
        um_pdm_defn_write(defn, at);
        at += um_pdm_defn_length(defn);
    }
    uint8_t *table = at + UM_PDM_SEGMENT_LEN;
    if (with_table) {
        at = write_segment(at, UM_PDM_SEGMENT_DATA, msg->slots_set * 8) + (size_t)msg->slots_set * 8;
    }
    at = write_segment(at, UM_PDM_SEGMENT_END, (uint32_t)(out + length - at) - UM_PDM_SEGMENT_LEN);
    if (defn->fixed_len != 0) {
        memcpy(at, msg->data, defn->fixed_len);
    }
    if (msg->slots_set != 0) {
        write_slots(msg, table, at);
    }
    return PDM_SUCCESS;
}
