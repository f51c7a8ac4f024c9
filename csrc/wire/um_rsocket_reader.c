/* Cutting a TCP byte stream into RSocket frames: whole frames are decoded where
 * they lie in the input, only a partial one at its end is copied and kept. */
#include "base/um_mem.h"
#include "wire/um_rsocket.h"

#define FIRST_CAPACITY 256
#define KEPT_CAPACITY 65536 /* a buffer that grew beyond is given back after its frame */

void um_rsocket_reader_init(struct um_rsocket_reader *reader, size_t frame_max)
{
    *reader =
        (struct um_rsocket_reader){.frame_max = frame_max < UM_RSOCKET_FRAME_MAX ? frame_max : UM_RSOCKET_FRAME_MAX};
}

void um_rsocket_reader_free(struct um_rsocket_reader *reader)
{
    um_free(reader->data);
    *reader = (struct um_rsocket_reader){.frame_max = reader->frame_max};
}

static bool reserve(struct um_rsocket_reader *reader, size_t len)
{
    size_t capacity = reader->capacity != 0 ? reader->capacity : FIRST_CAPACITY;
    while (capacity < len) {
        capacity *= 2;
    }
    if (capacity != reader->capacity) {
        uint8_t *data = um_realloc(reader->data, capacity);
        if (data == NULL) {
            return false;
        }
        reader->data = data;
        reader->capacity = capacity;
    }
    return true;
}

/* Moves up to `want - reader->len` bytes of the input behind what is kept. */
static bool keep(struct um_rsocket_reader *reader, struct um_slice *input, size_t want)
{
    size_t count = want - reader->len < input->len ? want - reader->len : input->len;
    if (count == 0) {
        return true;
    }
    if (!reserve(reader, reader->len + count)) {
        return false;
    }
    memcpy(reader->data + reader->len, input->ptr, count);
    reader->len += count;
    input->ptr += count;
    input->len -= count;
    return true;
}

static size_t length_of(const uint8_t *p)
{
    return (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];
}

static enum um_rsocket_rc decode(const uint8_t *body, size_t len, struct um_rsocket_frame *frame)
{
    return um_rsocket_decode(body, len, frame) ? UM_RSOCKET_FRAME : UM_RSOCKET_CORRUPT;
}

static void forget_used(struct um_rsocket_reader *reader)
{
    reader->used = false;
    reader->len = 0;
    if (reader->capacity > KEPT_CAPACITY) {
        um_free(reader->data);
        reader->data = NULL;
        reader->capacity = 0;
    }
}

/* A frame that began in an earlier input. */
static enum um_rsocket_rc read_kept(struct um_rsocket_reader *reader, struct um_slice *input,
                                    struct um_rsocket_frame *frame)
{
    if (!keep(reader, input, reader->len < UM_RSOCKET_PREFIX_LEN ? UM_RSOCKET_PREFIX_LEN : reader->len)) {
        return UM_RSOCKET_NO_MEMORY;
    }
    if (reader->len < UM_RSOCKET_PREFIX_LEN) {
        return UM_RSOCKET_MORE;
    }
    size_t len = length_of(reader->data);
    if (len > reader->frame_max) {
        return UM_RSOCKET_TOO_LONG;
    }
    if (!keep(reader, input, UM_RSOCKET_PREFIX_LEN + len)) {
        return UM_RSOCKET_NO_MEMORY;
    }
    if (reader->len < UM_RSOCKET_PREFIX_LEN + len) {
        return UM_RSOCKET_MORE;
    }
    reader->used = true;
    return decode(reader->data + UM_RSOCKET_PREFIX_LEN, len, frame);
}

enum um_rsocket_rc um_rsocket_read(struct um_rsocket_reader *reader, struct um_slice *input,
                                   struct um_rsocket_frame *frame)
{
    if (reader->used) {
        forget_used(reader);
    }
    if (reader->len == 0 && input->len >= UM_RSOCKET_PREFIX_LEN) {
        size_t len = length_of(input->ptr);
        if (len > reader->frame_max) {
            return UM_RSOCKET_TOO_LONG;
        }
        if (len <= input->len - UM_RSOCKET_PREFIX_LEN) {
            const uint8_t *body = input->ptr + UM_RSOCKET_PREFIX_LEN;
            input->ptr = body + len;
            input->len -= UM_RSOCKET_PREFIX_LEN + len;
            return decode(body, len, frame);
        }
    }
    return read_kept(reader, input, frame);
}
