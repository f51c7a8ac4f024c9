/* Reading and writing of message properties. See um_lbmc_props.h. */
#include "wire/um_lbmc_props.h"

#include <string.h>

static uint16_t load16(const uint8_t *p, bool swapped)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return swapped ? __builtin_bswap16(v) : v;
}

static uint32_t load32(const uint8_t *p, bool swapped)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return swapped ? __builtin_bswap32(v) : v;
}

uint32_t um_prop_hash(const char *name, size_t len)
{
    uint32_t h = 5381;
    for (size_t i = 0; i < len; i++) {
        h = h * 33 + (uint8_t)name[i];
    }
    return h;
}

uint32_t um_prop_size(uint8_t type)
{
    static const uint8_t sizes[] = {[UM_PROP_BOOLEAN] = 1, [UM_PROP_BYTE] = 1,  [UM_PROP_SHORT] = 2, [UM_PROP_INT] = 4,
                                    [UM_PROP_LONG] = 8,    [UM_PROP_FLOAT] = 4, [UM_PROP_DOUBLE] = 8};
    return type < sizeof sizes ? sizes[type] : 0;
}

bool um_props_open(struct um_props_reader *r, struct um_slice blob)
{
    *r = (struct um_props_reader){.blob = blob};
    if (blob.len < UM_PROPS_HDR_LEN) {
        return false;
    }
    uint32_t magic = load32(blob.ptr, false);
    r->swapped = magic == __builtin_bswap32(UM_PROPS_MAGIC);
    r->count = load16(blob.ptr + 4, r->swapped);
    return (magic == UM_PROPS_MAGIC || r->swapped) && blob.ptr[6] == UM_PROPS_VERSION_AND_TYPE &&
           r->count * UM_PROPS_RECORD_LEN <= blob.len - UM_PROPS_HDR_LEN;
}

/* A text at this offset that ends inside the blob. The sum of all is at most what there is: what many records share
 * would be read many times. 0: not so; else its length with the NUL. */
static size_t text_at(struct um_props_reader *r, uint32_t offset, const char **out)
{
    if (offset >= r->blob.len) {
        return 0;
    }
    const uint8_t *text = r->blob.ptr + offset;
    const uint8_t *end =
        memchr(text, 0, r->blob.len - r->texts < r->blob.len - offset ? r->blob.len - r->texts : r->blob.len - offset);
    if (end == NULL) {
        return 0;
    }
    size_t len = (size_t)(end - text) + 1;
    r->texts += len;
    *out = (const char *)text;
    return len;
}

static bool read_number(const struct um_props_reader *r, uint32_t offset, struct um_prop *out)
{
    if (out->size == 0 || offset >= r->blob.len || out->size > r->blob.len - offset) {
        return false;
    }
    const uint8_t *from = r->blob.ptr + offset;
    for (uint32_t i = 0; i < out->size; i++) {
        out->value.bytes[i] = from[r->swapped ? out->size - 1 - i : i];
    }
    if (out->type == UM_PROP_BOOLEAN) {
        out->value.bytes[0] = out->value.bytes[0] != 0;
    }
    return true;
}

bool um_props_next(struct um_props_reader *r, struct um_prop *out)
{
    if (r->next >= r->count) {
        return false;
    }
    const uint8_t *record = r->blob.ptr + UM_PROPS_HDR_LEN + (size_t)r->next * UM_PROPS_RECORD_LEN;
    uint32_t value_offset = load32(record + 4, r->swapped), type = load32(record + 12, r->swapped);
    size_t name_room = text_at(r, load32(record, r->swapped), &out->name);
    if (name_room < 2 || name_room - 1 > UM_PROP_NAME_MAX || type > UM_PROP_STRING) {
        return false;
    }
    out->name_len = (uint8_t)(name_room - 1);
    out->hash = um_prop_hash(out->name, out->name_len);
    out->type = (uint8_t)type;
    memset(&out->value, 0, sizeof out->value);
    if (type == UM_PROP_STRING) {
        out->size = (uint32_t)text_at(r, value_offset, &out->value.text);
        if (out->size == 0) {
            return false;
        }
    } else {
        out->size = um_prop_size(out->type);
        if (!read_number(r, value_offset, out)) {
            return false;
        }
    }
    r->next++;
    return true;
}

void um_props_begin(struct um_props_writer *w, uint8_t *blob, uint32_t count)
{
    uint32_t magic = UM_PROPS_MAGIC;
    uint16_t fields = (uint16_t)count;
    memcpy(blob, &magic, sizeof magic);
    memcpy(blob + 4, &fields, sizeof fields);
    blob[6] = UM_PROPS_VERSION_AND_TYPE;
    blob[7] = 0;
    *w = (struct um_props_writer){blob, UM_PROPS_HDR_LEN, um_props_len(count, 0)};
}

void um_props_put(struct um_props_writer *w, const struct um_prop *prop)
{
    uint32_t record[4] = {(uint32_t)w->at, (uint32_t)(w->at + prop->name_len + 1), prop->hash, prop->type};
    memcpy(w->blob + w->record, record, sizeof record);
    memcpy(w->blob + w->at, prop->name, (size_t)prop->name_len + 1);
    memcpy(w->blob + record[1], prop->type == UM_PROP_STRING ? (const void *)prop->value.text : prop->value.bytes,
           prop->size);
    w->record += sizeof record;
    w->at += um_prop_room(prop);
}

void um_props_put_int(uint8_t *blob, uint32_t index, int32_t value)
{
    uint32_t at;
    memcpy(&at, blob + UM_PROPS_HDR_LEN + index * UM_PROPS_RECORD_LEN + sizeof at, sizeof at);
    memcpy(blob + at, &value, sizeof value);
}
