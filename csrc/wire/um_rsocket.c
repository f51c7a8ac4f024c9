/* RSocket frames: what each type has before its data, decoded and encoded.
 * Pure; any thread. */
#include "wire/um_rsocket.h"

#define TYPE_SHIFT 10
#define FLAGS_MASK 0x03ffu
#define MIME_MAX 255

/* What is left to decode. A take that goes too far makes everything after it fail. */
struct cut {
    const uint8_t *at, *end;
    bool ok;
};

static const uint8_t *take(struct cut *cut, size_t len)
{
    if (!cut->ok || (size_t)(cut->end - cut->at) < len) {
        cut->ok = false;
        return NULL;
    }
    const uint8_t *from = cut->at;
    cut->at += len;
    return from;
}

static uint32_t take_number(struct cut *cut, size_t len)
{
    const uint8_t *p = take(cut, len);
    uint32_t value = 0;
    for (size_t i = 0; p != NULL && i < len; i++) {
        value = value << 8 | p[i];
    }
    return value;
}

static struct um_slice take_slice(struct cut *cut, size_t len)
{
    const uint8_t *p = take(cut, len);
    return (struct um_slice){p, p != NULL ? len : 0};
}

static void decode_setup(struct cut *cut, struct um_rsocket_frame *out)
{
    out->major = (uint16_t)take_number(cut, 2);
    out->minor = (uint16_t)take_number(cut, 2);
    out->keepalive_ms = take_number(cut, 4);
    out->lifetime_ms = take_number(cut, 4);
    if (out->flags & UM_RSOCKET_RESUMES) {
        out->token = take_slice(cut, take_number(cut, 2));
    }
    out->metadata_mime = take_slice(cut, take_number(cut, 1));
    out->data_mime = take_slice(cut, take_number(cut, 1));
}

/* The fields a type has before metadata and data. */
static void decode_fields(struct cut *cut, struct um_rsocket_frame *out)
{
    switch (out->type) {
    case UM_RSOCKET_SETUP:
        decode_setup(cut, out);
        break;
    case UM_RSOCKET_KEEPALIVE:
        out->position = (uint64_t)take_number(cut, 4) << 32;
        out->position |= take_number(cut, 4);
        break;
    case UM_RSOCKET_REQUEST_STREAM:
    case UM_RSOCKET_REQUEST_CHANNEL:
    case UM_RSOCKET_REQUEST_N:
        out->request_n = take_number(cut, 4);
        cut->ok = cut->ok && out->request_n != 0 && out->request_n <= UM_RSOCKET_STREAM_MAX;
        break;
    case UM_RSOCKET_ERROR:
        out->error = take_number(cut, 4);
        break;
    default:
        break;
    }
}

static bool stream_is_right(const struct um_rsocket_frame *frame)
{
    switch (frame->type) {
    case UM_RSOCKET_SETUP:
    case UM_RSOCKET_LEASE:
    case UM_RSOCKET_KEEPALIVE:
    case UM_RSOCKET_METADATA_PUSH:
    case UM_RSOCKET_RESUME:
    case UM_RSOCKET_RESUME_OK:
        return frame->stream == 0;
    case UM_RSOCKET_REQUEST_RESPONSE:
    case UM_RSOCKET_REQUEST_FNF:
    case UM_RSOCKET_REQUEST_STREAM:
    case UM_RSOCKET_REQUEST_CHANNEL:
    case UM_RSOCKET_REQUEST_N:
    case UM_RSOCKET_CANCEL:
    case UM_RSOCKET_PAYLOAD:
        return frame->stream != 0;
    default:
        return true;
    }
}

/* Types whose frames may have metadata with a length before them. */
static bool may_have_metadata(uint8_t type)
{
    return type == UM_RSOCKET_SETUP || type == UM_RSOCKET_REQUEST_RESPONSE || type == UM_RSOCKET_REQUEST_FNF ||
           type == UM_RSOCKET_REQUEST_STREAM || type == UM_RSOCKET_REQUEST_CHANNEL || type == UM_RSOCKET_PAYLOAD;
}

bool um_rsocket_decode(const uint8_t *body, size_t len, struct um_rsocket_frame *out)
{
    struct cut cut = {body, body + len, true};
    *out = (struct um_rsocket_frame){0};
    out->stream = take_number(&cut, 4);
    uint32_t word = take_number(&cut, 2);
    out->type = (uint8_t)(word >> TYPE_SHIFT);
    out->flags = (uint16_t)(word & FLAGS_MASK);
    if (!cut.ok || out->stream > UM_RSOCKET_STREAM_MAX || !stream_is_right(out)) {
        return false;
    }
    decode_fields(&cut, out);
    if (out->type == UM_RSOCKET_METADATA_PUSH) {
        out->metadata = take_slice(&cut, (size_t)(cut.end - cut.at));
        return cut.ok && (out->flags & UM_RSOCKET_METADATA) != 0;
    }
    if ((out->flags & UM_RSOCKET_METADATA) != 0 && may_have_metadata(out->type)) {
        out->metadata = take_slice(&cut, take_number(&cut, 3));
    }
    out->data = take_slice(&cut, (size_t)(cut.end - cut.at));
    return cut.ok;
}

/* ---- encoding ------------------------------------------------------------ */

static size_t fields_len(const struct um_rsocket_frame *frame)
{
    switch (frame->type) {
    case UM_RSOCKET_SETUP:
        return 12 + (frame->flags & UM_RSOCKET_RESUMES ? 2 + frame->token.len : 0) + 1 + frame->metadata_mime.len + 1 +
               frame->data_mime.len;
    case UM_RSOCKET_KEEPALIVE:
        return 8;
    case UM_RSOCKET_REQUEST_STREAM:
    case UM_RSOCKET_REQUEST_CHANNEL:
    case UM_RSOCKET_REQUEST_N:
    case UM_RSOCKET_ERROR:
        return 4;
    default:
        return 0;
    }
}

static bool has_metadata_length(const struct um_rsocket_frame *frame)
{
    return (frame->flags & UM_RSOCKET_METADATA) != 0 && may_have_metadata(frame->type);
}

size_t um_rsocket_len(const struct um_rsocket_frame *frame)
{
    if (frame->token.len > UINT16_MAX || frame->metadata_mime.len > MIME_MAX || frame->data_mime.len > MIME_MAX ||
        frame->metadata.len > UM_RSOCKET_FRAME_MAX || frame->data.len > UM_RSOCKET_FRAME_MAX) {
        return 0;
    }
    size_t len = UM_RSOCKET_HEAD_LEN + fields_len(frame) + (has_metadata_length(frame) ? 3 : 0) + frame->metadata.len +
                 frame->data.len;
    return len - UM_RSOCKET_PREFIX_LEN <= UM_RSOCKET_FRAME_MAX ? len : 0;
}

static uint8_t *put_number(uint8_t *p, uint32_t value, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        p[i] = (uint8_t)(value >> 8 * (len - 1 - i));
    }
    return p + len;
}

static uint8_t *put_slice(uint8_t *p, struct um_slice slice)
{
    if (slice.len > 0) {
        memcpy(p, slice.ptr, slice.len);
    }
    return p + slice.len;
}

static uint8_t *put_setup(uint8_t *p, const struct um_rsocket_frame *frame)
{
    p = put_number(p, frame->major, 2);
    p = put_number(p, frame->minor, 2);
    p = put_number(p, frame->keepalive_ms, 4);
    p = put_number(p, frame->lifetime_ms, 4);
    if (frame->flags & UM_RSOCKET_RESUMES) {
        p = put_slice(put_number(p, (uint32_t)frame->token.len, 2), frame->token);
    }
    p = put_slice(put_number(p, (uint32_t)frame->metadata_mime.len, 1), frame->metadata_mime);
    return put_slice(put_number(p, (uint32_t)frame->data_mime.len, 1), frame->data_mime);
}

static uint8_t *put_fields(uint8_t *p, const struct um_rsocket_frame *frame)
{
    switch (frame->type) {
    case UM_RSOCKET_SETUP:
        return put_setup(p, frame);
    case UM_RSOCKET_KEEPALIVE:
        return put_number(put_number(p, (uint32_t)(frame->position >> 32), 4), (uint32_t)frame->position, 4);
    case UM_RSOCKET_REQUEST_STREAM:
    case UM_RSOCKET_REQUEST_CHANNEL:
    case UM_RSOCKET_REQUEST_N:
        return put_number(p, frame->request_n, 4);
    case UM_RSOCKET_ERROR:
        return put_number(p, frame->error, 4);
    default:
        return p;
    }
}

void um_rsocket_put_head(uint8_t *out, uint32_t stream, enum um_rsocket_type type, uint16_t flags, size_t body_len)
{
    put_number(out, (uint32_t)(UM_RSOCKET_HEAD_LEN - UM_RSOCKET_PREFIX_LEN + body_len), UM_RSOCKET_PREFIX_LEN);
    um_put32(out + 3, stream);
    um_put16(out + 7, (uint16_t)((unsigned)type << TYPE_SHIFT | (flags & FLAGS_MASK)));
}

size_t um_rsocket_encode(const struct um_rsocket_frame *frame, uint8_t *out, size_t room)
{
    size_t len = um_rsocket_len(frame);
    if (len == 0 || len > room) {
        return 0;
    }
    um_rsocket_put_head(out, frame->stream, frame->type, frame->flags, len - UM_RSOCKET_HEAD_LEN);
    uint8_t *p = put_fields(out + UM_RSOCKET_HEAD_LEN, frame);
    if (has_metadata_length(frame)) {
        p = put_number(p, (uint32_t)frame->metadata.len, 3);
    }
    put_slice(put_slice(p, frame->metadata), frame->data);
    return len;
}

void um_rsocket_setup(struct um_rsocket_frame *out, uint32_t keepalive_ms, uint32_t lifetime_ms)
{
    static const char mime[] = "application/octet-stream";
    struct um_slice text = {(const uint8_t *)mime, sizeof(mime) - 1};
    *out = (struct um_rsocket_frame){.type = UM_RSOCKET_SETUP,
                                     .major = 1,
                                     .keepalive_ms = keepalive_ms,
                                     .lifetime_ms = lifetime_ms,
                                     .metadata_mime = text,
                                     .data_mime = text};
}
