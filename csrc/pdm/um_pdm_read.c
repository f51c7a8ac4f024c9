/* Messages out of bytes: segments, which definition is used, where the values are. Every length is checked; the data
 * segment is copied once, and values of a fixed layout are not looked at. */
#include "pdm/um_pdm.h"

/* Values may share bytes. The elements of each are counted all the same, so that a short message with many entries
 * for one long value would cost much: the values together are at most this many times the data. */
#define OVERLAP_MAX 16

/* What is left of that. Nested messages together are not longer than the data: a reader who goes down would meet those
 * that share their bytes again at each level, 16 to the power of the levels in all. */
struct budget {
    uint64_t values;
    uint64_t nested;
};

struct parts {
    struct um_slice segments[3]; /* by type; ptr NULL: absent */
    int32_t id;
    uint8_t major, minor;
    bool swap;
};

static int invalid(const char *what)
{
    return um_pdm_error(PDM_ERR_MSG_INVALID, "not a valid message: %s", what);
}

static int read_header(const uint8_t *bytes, size_t *len, struct parts *out)
{
    uint32_t magic;
    if (*len < UM_PDM_HEADER_LEN) {
        return invalid("shorter than its header");
    }
    memcpy(&magic, bytes, sizeof magic);
    out->swap = magic != UM_PDM_MAGIC;
    if (out->swap && magic != __builtin_bswap32(UM_PDM_MAGIC)) {
        return invalid("it does not begin as one");
    }
    if (bytes[4] >> 4 != 1) {
        return invalid("unknown version");
    }
    if (bytes[5] > UM_PDM_SEGMENT_DEFN && bytes[5] != UM_PDM_SEGMENT_END) {
        return invalid("unknown first segment");
    }
    out->major = bytes[6];
    out->minor = bytes[7];
    out->id = (int32_t)um_pdm_read32(bytes + 8, out->swap);
    uint32_t total = um_pdm_read32(bytes + 12, out->swap);
    if (total < UM_PDM_HEADER_LEN || total > *len || total > UM_PDM_SIZE_MAX) {
        return invalid("wrong length");
    }
    *len = total;
    return PDM_SUCCESS;
}

static int read_segments(const uint8_t *bytes, size_t len, struct parts *out)
{
    uint8_t type = bytes[5];
    size_t at = UM_PDM_HEADER_LEN;
    while (type != UM_PDM_SEGMENT_END) {
        if (len - at < UM_PDM_SEGMENT_LEN) {
            return invalid("a segment is cut");
        }
        uint32_t size = um_pdm_read32(bytes + at + 4, out->swap);
        if (size > len - at - UM_PDM_SEGMENT_LEN) {
            return invalid("a segment is longer than the message");
        }
        if (type > UM_PDM_SEGMENT_DEFN) {
            if ((bytes[at + 1] & 0x80) == 0) {
                return invalid("unknown segment");
            }
        } else if (out->segments[type].ptr != NULL) {
            return invalid("two segments of one type");
        } else {
            out->segments[type] = (struct um_slice){bytes + at + UM_PDM_SEGMENT_LEN, size};
        }
        type = bytes[at];
        at += UM_PDM_SEGMENT_LEN + size;
    }
    if (out->segments[UM_PDM_SEGMENT_OFFSETS].len % 8 != 0) {
        return invalid("the offset table is cut");
    }
    return PDM_SUCCESS;
}

/* ---- which definition ---- */

static int adopt(lbmpdm_msg_t *msg, const struct parts *parts)
{
    struct um_slice bytes = parts->segments[UM_PDM_SEGMENT_DEFN];
    lbmpdm_defn_t *defn = um_pdm_defn_read(bytes.ptr, bytes.len, parts->swap);
    if (defn == NULL) {
        return PDM_FAILURE;
    }
    if (!um_pdm_defn_is(defn, parts->id, parts->major, parts->minor)) {
        um_pdm_defn_release(defn);
        return um_pdm_error(PDM_ERR_DEFN_INVALID, "the message and the definition in it differ in id or version");
    }
    atomic_fetch_add(&defn->references, 1);
    if (um_pdm_msg_use(msg, defn, true) != PDM_SUCCESS) {
        um_pdm_defn_release(defn);
        um_pdm_defn_release(defn);
        return PDM_FAILURE;
    }
    return PDM_SUCCESS;
}

/* 1: the cache has none. */
static int load(lbmpdm_msg_t *msg, const struct parts *parts, bool any)
{
    lbmpdm_defn_t *defn = um_pdm_cache_reference(parts->id, parts->major, parts->minor, any);
    if (defn == NULL) {
        return 1;
    }
    if (um_pdm_msg_use(msg, defn, false) != PDM_SUCCESS) {
        um_pdm_defn_release(defn);
        return PDM_FAILURE;
    }
    msg->borrowed = true;
    return PDM_SUCCESS;
}

static int choose_definition(lbmpdm_msg_t *msg, const struct parts *parts)
{
    bool included = parts->segments[UM_PDM_SEGMENT_DEFN].ptr != NULL;
    bool cached = (msg->flags & PDM_MSG_FLAG_TRY_LOAD_DEFN_FROM_CACHE) != 0;
    bool same_id = msg->defn != NULL && msg->defn->id == parts->id;
    int rc = 1;
    if (same_id && um_pdm_defn_is(msg->defn, parts->id, parts->major, parts->minor)) {
        return PDM_SUCCESS;
    }
    if (included && (!same_id || (msg->flags & PDM_MSG_FLAG_USE_MSG_DEFN_IF_NEEDED) != 0)) {
        return adopt(msg, parts);
    }
    if (cached) {
        rc = load(msg, parts, !same_id);
    }
    if (rc == 1 && !same_id) {
        return um_pdm_error(PDM_ERR_DEFN_INVALID, "no definition %d %u.%u is known", (int)parts->id,
                            (unsigned)parts->major, (unsigned)parts->minor);
    }
    return rc == PDM_FAILURE ? PDM_FAILURE : PDM_SUCCESS;
}

/* ---- values ---- */

/* The fixed-required section of another version is recognized by its length alone: it ends where the values begin. */
static bool section_fits(const lbmpdm_msg_t *msg, const struct parts *parts)
{
    struct um_slice data = parts->segments[UM_PDM_SEGMENT_DATA], table = parts->segments[UM_PDM_SEGMENT_OFFSETS];
    size_t lowest = data.len;
    if (um_pdm_defn_is(msg->defn, parts->id, parts->major, parts->minor)) {
        return true;
    }
    for (size_t i = 0; i < table.len; i += 8) {
        uint32_t offset = um_pdm_read32(table.ptr + i + 4, parts->swap);
        lowest = offset < lowest ? offset : lowest;
    }
    return lowest == msg->defn->fixed_len;
}

/* Bytes of the value at `at`, which has at most `room`; false when it does not fit. One length is all that most have.
 */
static bool value_total(const struct um_pdm_field *field, const uint8_t *at, size_t room, bool swap, uint32_t *total)
{
    struct um_pdm_value value;
    if (field->quick != UM_PDM_QUICK_VARIABLE && field->quick_vec != UM_PDM_QUICK_NUMBERS) {
        bool fits = um_pdm_value_read(field, at, room, swap, &value);
        *total = value.total;
        return fits;
    }
    if (room < 4) {
        return false;
    }
    uint32_t bytes = um_pdm_read32(at, swap), part = field->element == 0 ? 0 : field->element - 1; /* 1, 2, 4 or 8 */
    *total = 4 + bytes;
    return bytes <= room - 4 && (bytes & part) == 0;
}

static int read_entry(lbmpdm_msg_t *msg, uint32_t id, uint32_t offset, size_t len, struct budget *left)
{
    const struct um_pdm_field *field;
    uint32_t total;
    if (id > UM_PDM_SIZE_MAX || offset > UM_PDM_SIZE_MAX) {
        return invalid("an entry of the offset table is out of range");
    }
    if ((field = um_pdm_field(msg->defn, (int32_t)id)) == NULL) {
        return PDM_SUCCESS; /* of a newer sender */
    }
    if (field->plain || msg->slots[field->place].state != UM_PDM_UNSET) {
        return invalid("a field has two values");
    }
    if (offset < msg->defn->fixed_len || offset >= len ||
        !value_total(field, msg->data + offset, len - offset, msg->swap, &total)) {
        return invalid("a value is not inside the data");
    }
    uint64_t nested = field->type->kind == UM_PDM_NESTED ? total : 0;
    if (total > left->values || nested > left->nested) {
        return invalid("too many values share their bytes");
    }
    left->values -= total;
    left->nested -= nested;
    msg->slots[field->place].offset = offset;
    um_pdm_mark_slot(msg, field, UM_PDM_RECEIVED, total);
    return PDM_SUCCESS;
}

static void swap_section(lbmpdm_msg_t *msg)
{
    for (int32_t i = 0; i < msg->defn->count; i++) {
        const struct um_pdm_field *field = &msg->defn->fields[i];
        if (field->plain) {
            um_pdm_elements_swap(field, msg->data + field->place, field->count == 0 ? 1 : field->count);
        }
    }
}

static int read_values(lbmpdm_msg_t *msg, const struct parts *parts)
{
    struct um_slice data = parts->segments[UM_PDM_SEGMENT_DATA], table = parts->segments[UM_PDM_SEGMENT_OFFSETS];
    const lbmpdm_defn_t *defn = msg->defn;
    struct budget left = {(uint64_t)data.len * OVERLAP_MAX, data.len};
    if (data.len < defn->fixed_len || !section_fits(msg, parts)) {
        return invalid("its fixed fields are not those of the definition");
    }
    if (um_pdm_msg_room(msg, data.len) != PDM_SUCCESS) {
        return PDM_FAILURE;
    }
    if (data.len != 0) {
        memcpy(msg->data, data.ptr, data.len);
    }
    msg->swap = parts->swap;
    if (parts->swap) {
        swap_section(msg);
    }
    for (size_t i = 0; i < table.len; i += 8) {
        const uint8_t *entry = table.ptr + i;
        uint32_t id = um_pdm_read32(entry, parts->swap), offset = um_pdm_read32(entry + 4, parts->swap);
        if (read_entry(msg, id, offset, data.len, &left) != PDM_SUCCESS) {
            return PDM_FAILURE;
        }
    }
    if (msg->slots_unset != 0) {
        return um_pdm_error(PDM_ERR_REQ_FIELD_NOT_SET, "%u required fields have no value", (unsigned)msg->slots_unset);
    }
    if (msg->plain_unset != 0) {
        memset(msg->plain_set, 1, (size_t)defn->count);
        msg->plain_unset = 0;
    }
    return PDM_SUCCESS;
}

int um_pdm_msg_read(lbmpdm_msg_t *msg, const uint8_t *bytes, size_t len)
{
    struct parts parts = {0};
    int rc = read_header(bytes, &len, &parts);
    if (rc == PDM_SUCCESS) {
        rc = read_segments(bytes, len, &parts);
    }
    if (rc == PDM_SUCCESS) {
        rc = choose_definition(msg, &parts);
    }
    if (rc == PDM_SUCCESS) {
        um_pdm_msg_clear_slots(msg); /* fixed-required fields stay marked from one message to the next */
        rc = read_values(msg, &parts);
    }
    if (rc != PDM_SUCCESS) {
        um_pdm_msg_clear(msg);
    }
    return rc;
}
