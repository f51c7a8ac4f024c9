/* LBMR extended messages: context information, requests, routes, gateway,
 * and the length checks of the formats that are only skipped.
 * Pure functions, any thread. */
#include "wire/um_lbmr.h"

enum um_lbmr_fault um_lbmr_decode_ctxinfo(const struct um_lbmr_msg *msg, struct um_lbmr_ctxinfo *out)
{
    const uint8_t *p = msg->bytes.ptr;
    memset(out, 0, sizeof *out);
    if (msg->bytes.len < 20 || p[2] < 20 || p[2] > msg->bytes.len) {
        return UM_LBMR_FAULT_SHORT;
    }
    out->hop_count = p[3];
    out->flags = um_get16(p + 4);
    out->port = um_get16(p + 6);
    memcpy(&out->ip, p + 8, 4);
    memcpy(out->instance, p + 12, 8);
    if ((out->flags & UM_LBMR_CTX_NAME) != 0) {
        size_t room = p[2] - 20u;
        const uint8_t *nul = room == 0 ? NULL : memchr(p + 20, 0, room);
        if (nul == NULL || nul == p + 20) {
            return UM_LBMR_FAULT_SHORT;
        }
        out->name = (const char *)p + 20;
        out->name_len = (size_t)(nul - (p + 20));
    }
    return UM_LBMR_OK;
}

enum um_lbmr_fault um_lbmr_decode_request(const struct um_lbmr_msg *msg, uint16_t *flags)
{
    *flags = um_get16(msg->bytes.ptr + 2);
    return UM_LBMR_OK;
}

enum um_lbmr_fault um_lbmr_rctx_records(const struct um_lbmr_msg *msg, struct um_lbmr_cursor *cursor)
{
    const uint8_t *p = msg->bytes.ptr;
    memset(cursor, 0, sizeof *cursor);
    cursor->type = msg->type;
    if (msg->bytes.len < 8) {
        return cursor->fault = UM_LBMR_FAULT_RCTX;
    }
    size_t len = um_get16(p + 2);
    if (len < 8 || len > msg->bytes.len) {
        return cursor->fault = UM_LBMR_FAULT_RCTX_LEN;
    }
    cursor->ptr = p + 8;
    cursor->end = p + len;
    cursor->tirs_left = um_get16(p + 4);
    return UM_LBMR_OK;
}

static enum um_lbmr_fault take_rctx_option(const uint8_t *p, size_t len, struct um_lbmr_rctx *out)
{
    switch (p[0]) {
    case 1:
        if (len != 16) {
            return UM_LBMR_FAULT_RCTX_ADDRESS;
        }
        out->has_address = true;
        out->address_domain = um_get32(p + 4);
        memcpy(&out->ip, p + 8, 4);
        out->port = um_get16(p + 12);
        return UM_LBMR_OK;
    case 2:
        if (len != 12) {
            return UM_LBMR_FAULT_RCTX_INSTANCE;
        }
        out->has_instance = true;
        memcpy(out->instance, p + 4, 8);
        return UM_LBMR_OK;
    case 3:
        if (len != 8) {
            return UM_LBMR_FAULT_RCTX_DOMAIN;
        }
        out->has_origin_domain = true;
        out->origin_domain = um_get32(p + 4);
        return UM_LBMR_OK;
    case 4:
        if (len < 6 || memchr(p + 4, 0, len - 4) != p + len - 1) {
            return UM_LBMR_FAULT_RCTX_NAME;
        }
        out->name = (const char *)p + 4;
        out->name_len = len - 5;
        return UM_LBMR_OK;
    default:
        return (p[2] & UM_LBMR_IGNORE8) != 0 ? UM_LBMR_OK : UM_LBMR_FAULT_RCTX_OPTION;
    }
}

bool um_lbmr_next_rctx(struct um_lbmr_cursor *cursor, struct um_lbmr_rctx *out)
{
    if (cursor->tirs_left == 0 || cursor->fault != UM_LBMR_OK) {
        return false;
    }
    size_t left = (size_t)(cursor->end - cursor->ptr);
    size_t len = left < 4 ? 0 : um_get16(cursor->ptr);
    if (len < 4 || len > left) {
        cursor->fault = UM_LBMR_FAULT_RCTX_RECORD;
        return false;
    }
    memset(out, 0, sizeof *out);
    out->query = (um_get16(cursor->ptr + 2) & UM_LBMR_CTX_QUERY) != 0;
    size_t at = 4;
    while (at < len) {
        const uint8_t *p = cursor->ptr + at;
        if (len - at < 4 || p[1] < 4 || p[1] > len - at) {
            cursor->fault = UM_LBMR_FAULT_RCTX_RECORD;
            return false;
        }
        enum um_lbmr_fault fault = take_rctx_option(p, p[1], out);
        if (fault != UM_LBMR_OK) {
            cursor->fault = fault;
            cursor->detail = p[0];
            return false;
        }
        at += p[1];
    }
    cursor->ptr += len;
    cursor->tirs_left--;
    return true;
}

enum um_lbmr_fault um_lbmr_decode_route(const struct um_lbmr_msg *msg, struct um_lbmr_route *out)
{
    const uint8_t *p = msg->bytes.ptr;
    memset(out, 0, sizeof *out);
    if (msg->bytes.len < 16) {
        return UM_LBMR_FAULT_SHORT;
    }
    uint16_t count = um_get16(p + 2);
    uint32_t len = um_get32(p + 12);
    if (len != 16u + 4u * count) {
        return UM_LBMR_FAULT_ROUTE_SHORT;
    }
    if (len > msg->bytes.len) {
        return UM_LBMR_FAULT_ROUTE_LEN;
    }
    memcpy(&out->ip, p + 4, 4);
    out->port = um_get16(p + 8);
    out->count = count;
    out->domains = p + 16;
    for (unsigned i = 0; i < count; i++) {
        if (um_get32(out->domains + 4 * i) == 0) {
            return UM_LBMR_FAULT_ROUTE_DOMAIN;
        }
    }
    return UM_LBMR_OK;
}

/* Options of a gateway message: type, len, flags, data, up to `len`. */
static bool gateway_options_fit(const uint8_t *p, size_t len)
{
    size_t at = 0;
    while (at < len) {
        if (len - at < 4 || p[at + 1] < 4 || p[at + 1] > len - at) {
            return false;
        }
        at += p[at + 1];
    }
    return true;
}

static bool gateway_records_fit(const uint8_t *p, size_t len, unsigned count)
{
    size_t at = 0;
    while (count-- > 0) {
        size_t record = len - at < 10 ? 0 : um_get16(p + at);
        if (record < 10 || record > len - at || memchr(p + at + 8, 0, record - 8) != p + at + record - 1) {
            return false;
        }
        at += record;
    }
    return at == len;
}

static enum um_lbmr_fault validate_gateway(const struct um_slice *bytes)
{
    const uint8_t *p = bytes->ptr;
    if (bytes->len < 10) {
        return UM_LBMR_FAULT_SHORT;
    }
    size_t message = um_get16(p + 2);
    size_t part = um_get16(p + 8);
    if (message < 10 || message > bytes->len || part > message - 8) {
        return UM_LBMR_FAULT_SHORT;
    }
    bool fits;
    switch (um_get16(p + 4)) {
    case 0:
        fits = part >= 4 && gateway_records_fit(p + 12, part - 4, um_get16(p + 10));
        break;
    case 1:
        fits = part >= 12 && gateway_options_fit(p + 20, part - 12);
        break;
    case 2:
        fits = part >= 2 && gateway_options_fit(p + 10, part - 2);
        break;
    default:
        fits = true;
        break;
    }
    return fits ? UM_LBMR_OK : UM_LBMR_FAULT_SHORT;
}

static enum um_lbmr_fault validate_pser(const struct um_slice *bytes)
{
    const uint8_t *p = bytes->ptr;
    size_t len = bytes->len < 28 ? 0 : um_get16(p + 4);
    if (len < 29 || len > bytes->len || memchr(p + 28, 0, len - 28) != p + len - 1) {
        return UM_LBMR_FAULT_SHORT;
    }
    if ((um_get16(p + 6) & 0x8000) == 0) {
        return UM_LBMR_OK;
    }
    const uint8_t *options = p + len;
    size_t left = bytes->len - len;
    size_t total = left < 4 ? 0 : um_get16(options + 2);
    return total >= 4 && total <= left && (total - 4) % 10 == 0 ? UM_LBMR_OK : UM_LBMR_FAULT_SHORT;
}

static enum um_lbmr_fault validate_queue_mgmt(const struct um_slice *bytes)
{
    const uint8_t *p = bytes->ptr;
    static const uint8_t body_len[] = {0, 4, 0, 0, 0, 4, 8, 0, 4};
    if (bytes->len < 44 || p[3] >= sizeof body_len) {
        return UM_LBMR_FAULT_SHORT;
    }
    size_t need = 44u + body_len[p[3]] + (p[3] == 1 ? 14u * um_get16(p + 42) : 0u);
    if (need > bytes->len) {
        return UM_LBMR_FAULT_SHORT;
    }
    if ((p[2] & 0x40) != 0 && (need == bytes->len || memchr(p + need, 0, bytes->len - need) == NULL)) {
        return UM_LBMR_FAULT_SHORT;
    }
    return UM_LBMR_OK;
}

static bool skip_text(const uint8_t **ptr, const uint8_t *end)
{
    const uint8_t *nul = *ptr == end ? NULL : memchr(*ptr, 0, (size_t)(end - *ptr));
    if (nul == NULL) {
        return false;
    }
    *ptr = nul + 1;
    return true;
}

static bool skip_qir(const uint8_t **ptr, const uint8_t *end)
{
    if (!skip_text(ptr, end) || !skip_text(ptr, end) || end - *ptr < 16) {
        return false;
    }
    uint16_t groups = um_get16(*ptr + 12);
    size_t queues = um_get16(*ptr + 14);
    *ptr += 16;
    if ((groups & 0x8000) != 0) {
        size_t total = end - *ptr < 4 ? 0 : um_get16(*ptr + 2);
        if (total < 4 || total > (size_t)(end - *ptr)) {
            return false;
        }
        *ptr += total;
    }
    size_t need = 4u * (groups & 0x7FFFu) + 12u * queues;
    if (need > (size_t)(end - *ptr)) {
        return false;
    }
    *ptr += need;
    return true;
}

static enum um_lbmr_fault validate_queue_res(const struct um_lbmr_msg *msg)
{
    const uint8_t *p = msg->bytes.ptr + UM_LBMR_HEADER_LEN;
    const uint8_t *end = msg->bytes.ptr + msg->bytes.len;
    for (unsigned i = 0; i < msg->tqrs; i++) {
        if (!skip_text(&p, end)) {
            return UM_LBMR_FAULT_SHORT;
        }
    }
    for (unsigned i = 0; i < msg->tirs; i++) {
        if (!skip_qir(&p, end)) {
            return UM_LBMR_FAULT_SHORT;
        }
    }
    return UM_LBMR_OK;
}

static enum um_lbmr_fault validate_ext(const struct um_lbmr_msg *msg, unsigned *detail)
{
    struct um_lbmr_cursor cursor;
    struct um_lbmr_rctx rctx;
    struct um_lbmr_ctxinfo info;
    struct um_lbmr_route route;
    switch (msg->ext_type) {
    case UM_LBMR_EXT_PSER:
        return validate_pser(&msg->bytes);
    case UM_LBMR_EXT_QUEUE_MGMT:
        return validate_queue_mgmt(&msg->bytes);
    case UM_LBMR_EXT_CTXINFO:
        return um_lbmr_decode_ctxinfo(msg, &info);
    case UM_LBMR_EXT_GATEWAY:
        return validate_gateway(&msg->bytes);
    case UM_LBMR_EXT_ROUTE:
        return um_lbmr_decode_route(msg, &route);
    case UM_LBMR_EXT_RCTXINFO:
        um_lbmr_rctx_records(msg, &cursor);
        while (um_lbmr_next_rctx(&cursor, &rctx)) {
        }
        *detail = cursor.detail;
        return cursor.fault;
    default:
        return UM_LBMR_OK;
    }
}

static enum um_lbmr_fault validate_records(const struct um_lbmr_msg *msg, unsigned *detail)
{
    struct um_lbmr_cursor cursor;
    struct um_lbmr_tir tir;
    struct um_lbmr_tmr tmr;
    um_lbmr_records(msg, &cursor);
    um_lbmr_skip_tqrs(&cursor);
    while (um_lbmr_next_tir(&cursor, &tir)) {
    }
    if (msg->type == UM_LBMR_TOPIC_MGMT) {
        while (um_lbmr_next_tmr(&cursor, &tmr)) {
        }
    }
    *detail = cursor.detail;
    return cursor.fault;
}

enum um_lbmr_fault um_lbmr_validate_message(const struct um_lbmr_msg *msg, unsigned *detail)
{
    if (msg->type == UM_LBMR_EXT) {
        return validate_ext(msg, detail);
    }
    return msg->type == UM_LBMR_QUEUE_RES ? validate_queue_res(msg) : validate_records(msg, detail);
}

enum um_lbmr_fault um_lbmr_validate(const uint8_t *data, size_t len, unsigned *detail)
{
    unsigned unused;
    struct um_lbmr_msg msg;
    if (detail == NULL) {
        detail = &unused;
    }
    enum um_lbmr_fault fault = um_lbmr_parse(data, len, &msg, detail);
    if (fault == UM_LBMR_OK) {
        fault = um_lbmr_check_type(&msg, detail);
    }
    return fault == UM_LBMR_OK ? um_lbmr_validate_message(&msg, detail) : fault;
}
