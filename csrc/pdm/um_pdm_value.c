/* Values as they stand in the data of a message: where their elements are, and the order of their bytes. */
#include "pdm/um_pdm.h"

/* Elements of a fixed count, with a length before each: the total before them is not believed, the walk is. */
static bool read_counted(struct um_pdm_value *value, uint32_t count, size_t room, bool swap)
{
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (room - at < 4) {
            return false;
        }
        uint32_t len = um_pdm_read32(value->elements + at, swap);
        if (len > room - at - 4) {
            return false;
        }
        at += 4 + len;
    }
    value->count = count;
    value->bytes = (uint32_t)at;
    return true;
}

/* As many elements as fill the bytes. */
static bool read_all(struct um_pdm_value *value, uint32_t bytes, bool swap)
{
    size_t at = 0;
    for (value->count = 0; at < bytes; value->count++) {
        if (bytes - at < 4) {
            return false;
        }
        uint32_t len = um_pdm_read32(value->elements + at, swap);
        if (len > bytes - at - 4) {
            return false;
        }
        at += 4 + len;
    }
    value->bytes = bytes;
    return true;
}

bool um_pdm_value_read(const struct um_pdm_field *field, const uint8_t *at, size_t room, bool swap,
                       struct um_pdm_value *out)
{
    *out = (struct um_pdm_value){.elements = at, .count = 1, .swap = swap};
    if (field->fixed) {
        out->bytes = out->total = field->len;
        out->count = field->count == 0 ? 1 : field->count;
        return room >= field->len;
    }
    if (room < 4) {
        return false;
    }
    uint32_t bytes = um_pdm_read32(at, swap);
    if (!field->type->array) { /* the length is that of the element */
        out->bytes = out->total = 4 + bytes;
        return bytes <= room - 4;
    }
    out->elements = at + 4;
    if (field->count != 0) {
        bool fits = read_counted(out, field->count, room - 4, swap);
        out->total = 4 + out->bytes;
        return fits;
    }
    if (bytes > room - 4 || (field->element != 0 && bytes % field->element != 0)) {
        return false;
    }
    out->total = 4 + bytes;
    if (field->element == 0) {
        return read_all(out, bytes, swap);
    }
    out->bytes = bytes;
    out->count = bytes / field->element;
    return true;
}

struct um_slice um_pdm_value_next(const uint8_t **at, bool swap)
{
    struct um_slice element = {*at + 4, um_pdm_read32(*at, swap)};
    *at = element.ptr + element.len;
    return element;
}

static void turn(uint8_t *at, uint32_t width)
{
    for (uint32_t i = 0; i < width / 2; i++) {
        uint8_t byte = at[i];
        at[i] = at[width - 1 - i];
        at[width - 1 - i] = byte;
    }
}

void um_pdm_elements_swap(const struct um_pdm_field *field, uint8_t *at, size_t count)
{
    for (size_t i = 0; i < count; i++, at += field->element) {
        switch (field->type->kind) {
        case UM_PDM_NUMBER:
            turn(at, field->element);
            break;
        case UM_PDM_DECIMAL:
            turn(at + 1, 8);
            break;
        case UM_PDM_TIMESTAMP:
            turn(at, 4);
            turn(at + 4, 4);
            break;
        default: /* characters */
            return;
        }
    }
}

/* A nested message has an order of its own. */
void um_pdm_value_swap(const struct um_pdm_field *field, uint8_t *at, size_t len)
{
    struct um_pdm_value value;
    if (!um_pdm_value_read(field, at, len, true, &value)) {
        return; /* not possible: it has been read before */
    }
    uint8_t *elements = at + (value.elements - at);
    if (field->element != 0) {
        um_pdm_elements_swap(field, elements, value.count);
    } else {
        for (uint32_t i = 0; i < value.count; i++) {
            uint32_t bytes = um_pdm_read32(elements, true);
            um_pdm_write32(elements, bytes);
            elements += 4 + bytes;
        }
    }
    if (field->type->array && !field->fixed) {
        um_pdm_write32(at, value.total - 4);
    }
}
