/* LBMR decoding: header, packet option trailer, query, information, topic
 * management and extended records. Every length is checked before use.
 * Pure functions, any thread. */
#include "wire/um_lbmr.h"

enum trailer_option { TRAILER_LENGTH = 0x80, TRAILER_SOURCE_ID, TRAILER_SOURCE_TYPE, TRAILER_VERSION, TRAILER_DOMAIN };

static enum um_lbmr_fault take_trailer_option(const uint8_t *p, size_t len, struct um_lbmr_trailer *out,
                                              unsigned *detail)
{
    switch (p[0]) {
    case TRAILER_SOURCE_ID:
        if (len != 12) {
            return UM_LBMR_FAULT_TRAILER_TOTAL;
        }
        out->has_source_id = true;
        memcpy(out->source_id, p + 4, 8);
        return UM_LBMR_OK;
    case TRAILER_SOURCE_TYPE:
        if (len != 4) {
            return UM_LBMR_FAULT_TRAILER_TOTAL;
        }
        out->has_source_type = true;
        out->source_type = p[3];
        return UM_LBMR_OK;
    case TRAILER_VERSION:
        if (len != 8) {
            return UM_LBMR_FAULT_TRAILER_TOTAL;
        }
        out->has_version = true;
        out->version_flags = um_get16(p + 2) & (uint16_t)~UM_LBMR_IGNORE16;
        out->version = um_get32(p + 4);
        return UM_LBMR_OK;
    case TRAILER_DOMAIN:
        if (len != 8) {
            *detail = (unsigned)len;
            return UM_LBMR_FAULT_TRAILER_DOMAIN;
        }
        out->has_domain = true;
        out->domain_id = um_get32(p + 4);
        return UM_LBMR_OK;
    default:
        if (len < 3 || (p[2] & UM_LBMR_IGNORE8) == 0) {
            *detail = p[0];
            return UM_LBMR_FAULT_TRAILER_UNKNOWN;
        }
        return UM_LBMR_OK;
    }
}

static enum um_lbmr_fault parse_trailer(const uint8_t *data, size_t len, struct um_lbmr_trailer *out, unsigned *detail)
{
    if (len < UM_LBMR_HEADER_LEN + 4 || data[len - 4] != TRAILER_LENGTH || data[len - 3] != 4) {
        return UM_LBMR_FAULT_TRAILER_LAST;
    }
    size_t total = um_get16(data + len - 2);
    if (total < 4 || total > len - UM_LBMR_HEADER_LEN) {
        return UM_LBMR_FAULT_TRAILER_TOTAL;
    }
    const uint8_t *p = data + len - total;
    const uint8_t *end = data + len - 4;
    while (p < end) {
        size_t left = (size_t)(end - p);
        if (left < 2) {
            return UM_LBMR_FAULT_TRAILER_TOTAL;
        }
        size_t option_len = p[1];
        if (option_len == 0) {
            return UM_LBMR_FAULT_TRAILER_ZERO;
        }
        if (option_len < 2 || option_len > left) {
            return UM_LBMR_FAULT_TRAILER_TOTAL;
        }
        enum um_lbmr_fault fault = take_trailer_option(p, option_len, out, detail);
        if (fault != UM_LBMR_OK) {
            return fault;
        }
        p += option_len;
    }
    out->present = true;
    out->len = (uint16_t)total;
    return UM_LBMR_OK;
}

enum um_lbmr_fault um_lbmr_parse(const uint8_t *data, size_t len, struct um_lbmr_msg *out, unsigned *detail)
{
    *detail = 0;
    memset(out, 0, sizeof *out);
    if (len < UM_LBMR_HEADER_LEN) {
        return UM_LBMR_FAULT_SHORT;
    }
    out->version = data[0] >> 4;
    out->type = data[0] & 7;
    out->tqrs = data[1];
    out->tirs = um_get16(data + 2);
    if (out->type == UM_LBMR_EXT) {
        out->ext_type = data[1];
    }
    if (out->version > 1) {
        *detail = out->version;
        return UM_LBMR_FAULT_VERSION;
    }
    if ((data[0] & UM_LBMR_OPTIONS_PRESENT) != 0) {
        enum um_lbmr_fault fault = parse_trailer(data, len, &out->trailer, detail);
        if (fault != UM_LBMR_OK) {
            return fault;
        }
    }
    out->bytes.ptr = data;
    out->bytes.len = len - out->trailer.len;
    return UM_LBMR_OK;
}

enum um_lbmr_fault um_lbmr_check_type(const struct um_lbmr_msg *msg, unsigned *detail)
{
    *detail = 0;
    if (msg->type == 5) {
        *detail = msg->type;
        return UM_LBMR_FAULT_TYPE;
    }
    if (msg->type == UM_LBMR_EXT && (msg->ext_type == 0 || msg->ext_type > UM_LBMR_EXT_RCTXINFO)) {
        *detail = msg->ext_type;
        return UM_LBMR_FAULT_EXT_TYPE;
    }
    return UM_LBMR_OK;
}

bool um_lbmr_is_keepalive(const struct um_lbmr_msg *msg)
{
    return msg->type == UM_LBMR_UCAST_RCV_ALIVE || msg->type == UM_LBMR_UCAST_SRC_ALIVE ||
           (msg->type == UM_LBMR_NORMAL && msg->tqrs == 0 && msg->tirs == 0);
}

static bool cursor_fault(struct um_lbmr_cursor *cursor, enum um_lbmr_fault fault, unsigned detail)
{
    cursor->fault = fault;
    cursor->detail = detail;
    cursor->tqrs_left = 0;
    cursor->tirs_left = 0;
    return false;
}

/* A NUL-terminated name of 1..UM_LBMR_NAME_MAX bytes; *len without the NUL. */
static bool take_name(const uint8_t **ptr, const uint8_t *end, const char **name, size_t *len)
{
    size_t left = (size_t)(end - *ptr);
    const uint8_t *nul = left == 0 ? NULL : memchr(*ptr, 0, left);
    if (nul == NULL || nul == *ptr || (size_t)(nul - *ptr) > UM_LBMR_NAME_MAX) {
        return false;
    }
    *name = (const char *)*ptr;
    *len = (size_t)(nul - *ptr);
    *ptr = nul + 1;
    return true;
}

void um_lbmr_records(const struct um_lbmr_msg *msg, struct um_lbmr_cursor *cursor)
{
    memset(cursor, 0, sizeof *cursor);
    cursor->type = msg->type;
    cursor->ptr = msg->bytes.ptr + UM_LBMR_HEADER_LEN;
    cursor->end = msg->bytes.ptr + msg->bytes.len;
    if (msg->type == UM_LBMR_NORMAL || msg->type == UM_LBMR_WC_TQRS) {
        cursor->tqrs_left = msg->tqrs;
        cursor->tirs_left = msg->tirs;
    } else if (msg->type == UM_LBMR_TOPIC_MGMT) {
        size_t left = (size_t)(cursor->end - cursor->ptr);
        size_t block = left < 4 ? 0 : um_get16(cursor->ptr);
        if (block < 4 || block > left) {
            cursor_fault(cursor, UM_LBMR_FAULT_TOPIC_MGMT, (unsigned)block);
            return;
        }
        cursor->tirs_left = um_get16(cursor->ptr + 2);
        cursor->end = cursor->ptr + block;
        cursor->ptr += 4;
    }
}

bool um_lbmr_next_tqr(struct um_lbmr_cursor *cursor, struct um_lbmr_tqr *out)
{
    if (cursor->tqrs_left == 0) {
        return false;
    }
    out->pattern_type = 0;
    if (cursor->type == UM_LBMR_WC_TQRS) {
        if (cursor->ptr == cursor->end) {
            return cursor_fault(cursor, UM_LBMR_FAULT_TQR, 0);
        }
        out->pattern_type = *cursor->ptr++;
    }
    if (!take_name(&cursor->ptr, cursor->end, &out->name, &out->len)) {
        return cursor_fault(cursor, UM_LBMR_FAULT_TQR, 0);
    }
    cursor->tqrs_left--;
    return true;
}

static void decode_transport(uint8_t code, const uint8_t *p, size_t len, struct um_lbmr_transport *out)
{
    memset(out, 0, sizeof *out);
    out->code = code;
    switch (code) {
    case UM_LBMR_TCP:
    case UM_LBMR_LBTRU:
    case UM_LBMR_LBTRDMA:
        out->session_less = len == 6 && code != UM_LBMR_LBTRDMA;
        out->known = len == 10 || out->session_less;
        if (out->known) {
            memcpy(&out->ip, p, 4);
            out->session_id = out->session_less ? 0 : um_get32(p + 4);
            out->port = um_get16(p + len - 2);
        }
        break;
    case UM_LBMR_LBTRM:
        out->known = len == 16;
        if (out->known) {
            memcpy(&out->ip, p, 4);
            memcpy(&out->group, p + 4, 4);
            out->session_id = um_get32(p + 8);
            out->dest_port = um_get16(p + 12);
            out->port = um_get16(p + 14);
        }
        break;
    case UM_LBMR_LBTIPC:
    case UM_LBMR_LBTSMX:
        out->known = len == 10;
        if (out->known) {
            out->host_id = um_get32(p);
            out->session_id = um_get32(p + 4);
            out->transport_id = um_get16(p + 8);
        }
        break;
    default:
        break;
    }
}

/* Exact length of a known option and the fault of its row; 0 for the queue option, which is variable. */
static bool known_option_len(uint8_t type, size_t *len, enum um_lbmr_fault *fault)
{
    static const uint8_t lengths[] = {4, 32, 16, 8, 24, 8, 0, 8, 36, 12, 12, 28, 12, 8, 16};
    static const enum um_lbmr_fault faults[] = {
        [UM_LBMR_OPT_UME] = UM_LBMR_FAULT_OPTION_UME,
        [UM_LBMR_OPT_STORE] = UM_LBMR_FAULT_OPTION_STORE,
        [UM_LBMR_OPT_STORE_GROUP] = UM_LBMR_FAULT_OPTION_STORE_GROUP,
        [UM_LBMR_OPT_LATE_JOIN] = UM_LBMR_FAULT_OPTION_LATE_JOIN,
        [UM_LBMR_OPT_EXFUNC] = UM_LBMR_FAULT_OPTION_EXFUNC,
    };
    if (type >= sizeof lengths) {
        return false;
    }
    *len = lengths[type];
    *fault = faults[type] == UM_LBMR_OK ? UM_LBMR_FAULT_OPTION_ZERO : faults[type];
    return true;
}

static enum um_lbmr_fault check_option(const uint8_t *p, size_t len)
{
    size_t exact;
    enum um_lbmr_fault fault;
    if (!known_option_len(p[0], &exact, &fault)) {
        return (p[2] & UM_LBMR_IGNORE8) != 0 ? UM_LBMR_OK : UM_LBMR_FAULT_OPTION_UNKNOWN;
    }
    if (p[0] == UM_LBMR_OPT_QUEUE) {
        /* One NUL, at the end. */
        bool proper = len > 5 && memchr(p + 4, 0, len - 4) == p + len - 1;
        return proper ? UM_LBMR_OK : fault;
    }
    return len == exact ? UM_LBMR_OK : fault;
}

/* Validates the option area at p; *total gets its length. */
static enum um_lbmr_fault check_options(const uint8_t *p, size_t left, size_t *total)
{
    if (left < 4 || p[0] != UM_LBMR_OPT_LENGTH) {
        return UM_LBMR_FAULT_OPTION_FIRST;
    }
    if (p[1] != 4) {
        return UM_LBMR_FAULT_OPTION_LENGTH;
    }
    *total = um_get16(p + 2);
    if (*total < 4) {
        return UM_LBMR_FAULT_OPTION_SMALL;
    }
    if (*total > left) {
        return UM_LBMR_FAULT_OPTION_LARGE;
    }
    size_t at = 4;
    while (at < *total) {
        size_t room = *total - at;
        if (room < 2) {
            return UM_LBMR_FAULT_OPTION_SUM;
        }
        size_t len = p[at + 1];
        if (len < 4) {
            return UM_LBMR_FAULT_OPTION_ZERO;
        }
        if (len > room) {
            return UM_LBMR_FAULT_OPTION_SUM;
        }
        enum um_lbmr_fault fault = check_option(p + at, len);
        if (fault != UM_LBMR_OK) {
            return fault;
        }
        at += len;
    }
    return UM_LBMR_OK;
}

bool um_lbmr_next_tir(struct um_lbmr_cursor *cursor, struct um_lbmr_tir *out)
{
    if (cursor->tirs_left == 0 || (cursor->type != UM_LBMR_NORMAL && cursor->type != UM_LBMR_WC_TQRS)) {
        return false;
    }
    const uint8_t *p = cursor->ptr;
    memset(out, 0, sizeof *out);
    if (!take_name(&p, cursor->end, &out->name, &out->name_len) || cursor->end - p < 8) {
        return cursor_fault(cursor, UM_LBMR_FAULT_TIR, 0);
    }
    uint8_t code = p[0] & 0x7F;
    size_t tlen = p[1];
    out->has_options = (p[0] & 0x80) != 0;
    out->ttl = um_get16(p + 2);
    out->index = um_get32(p + 4);
    p += 8;
    size_t left = (size_t)(cursor->end - p);
    size_t total = 0;
    if (out->has_options) {
        enum um_lbmr_fault fault = check_options(p, left, &total);
        if (fault != UM_LBMR_OK) {
            return cursor_fault(cursor, fault, 0);
        }
        out->options.ptr = p + 4;
        out->options.len = total - 4;
    }
    if (tlen > left - total) {
        return cursor_fault(cursor, UM_LBMR_FAULT_TIR, 0);
    }
    out->info.ptr = p + total;
    out->info.len = tlen;
    decode_transport(code, out->info.ptr, tlen, &out->transport);
    cursor->ptr = out->info.ptr + tlen;
    cursor->tirs_left--;
    return true;
}

static void decode_option(const uint8_t *p, size_t len, struct um_lbmr_option *out)
{
    switch (out->type) {
    case UM_LBMR_OPT_UME:
        out->u.ume.store_port = um_get16(p + 4);
        out->u.ume.src_port = um_get16(p + 6);
        memcpy(&out->u.ume.store_ip, p + 8, 4);
        memcpy(&out->u.ume.src_ip, p + 12, 4);
        out->u.ume.reg_id = um_get32(p + 16);
        out->u.ume.transport_idx = um_get32(p + 20);
        out->u.ume.high = um_get32(p + 24);
        out->u.ume.low = um_get32(p + 28);
        break;
    case UM_LBMR_OPT_STORE:
        out->u.store.group = p[3];
        out->u.store.port = um_get16(p + 4);
        out->u.store.index = um_get16(p + 6);
        memcpy(&out->u.store.ip, p + 8, 4);
        out->u.store.reg_id = um_get32(p + 12);
        break;
    case UM_LBMR_OPT_STORE_GROUP:
        out->u.store_group.group = p[3];
        out->u.store_group.size = um_get16(p + 4);
        break;
    case UM_LBMR_OPT_LATE_JOIN:
        out->u.late_join.src_port = um_get16(p + 4);
        memcpy(&out->u.late_join.src_ip, p + 8, 4);
        out->u.late_join.transport_idx = um_get32(p + 12);
        out->u.late_join.high = um_get32(p + 16);
        out->u.late_join.low = um_get32(p + 20);
        break;
    case UM_LBMR_OPT_RCR_INDEX:
        out->u.rcr_index = um_get32(p + 4);
        break;
    case UM_LBMR_OPT_QUEUE:
        out->u.queue.name = (const char *)p + 4;
        out->u.queue.len = len - 5;
        break;
    case UM_LBMR_OPT_COST:
        out->u.cost.hops = p[3];
        out->u.cost.cost = (int32_t)um_get32(p + 4);
        break;
    case UM_LBMR_OPT_OTID:
        memcpy(out->u.otid, p + 4, 32);
        break;
    case UM_LBMR_OPT_CTXINST:
    case UM_LBMR_OPT_STORE_CTXINST:
    case UM_LBMR_OPT_QUEUE_CTXINST:
        out->u.instance.index = p[3];
        memcpy(out->u.instance.bytes, p + 4, 8);
        break;
    case UM_LBMR_OPT_ULB:
        out->u.ulb.queue_id = um_get32(p + 4);
        memcpy(out->u.ulb.reg_id, p + 8, 8);
        out->u.ulb.src_id = um_get32(p + 16);
        memcpy(&out->u.ulb.src_ip, p + 20, 4);
        out->u.ulb.src_port = um_get16(p + 24);
        break;
    case UM_LBMR_OPT_DOMAIN:
        out->u.domain_id = um_get32(p + 4);
        break;
    case UM_LBMR_OPT_EXFUNC:
        out->u.exfunc.src_port = um_get16(p + 4);
        memcpy(&out->u.exfunc.src_ip, p + 8, 4);
        out->u.exfunc.functionality = um_get32(p + 12);
        break;
    default:
        break;
    }
}

/* Options whose flags field is one byte; the second holds data. */
static bool option_has_flags8(uint8_t type)
{
    return type == UM_LBMR_OPT_STORE || type == UM_LBMR_OPT_STORE_GROUP || type == UM_LBMR_OPT_COST ||
           type == UM_LBMR_OPT_CTXINST || type == UM_LBMR_OPT_STORE_CTXINST || type == UM_LBMR_OPT_QUEUE_CTXINST;
}

bool um_lbmr_next_option(const struct um_lbmr_tir *tir, size_t *offset, struct um_lbmr_option *out)
{
    while (*offset < tir->options.len) {
        const uint8_t *p = tir->options.ptr + *offset;
        size_t len = p[1];
        *offset += len;
        if (p[0] == UM_LBMR_OPT_LENGTH || p[0] > UM_LBMR_OPT_EXFUNC) {
            continue;
        }
        memset(out, 0, sizeof *out);
        out->type = p[0];
        out->flags = option_has_flags8(p[0]) ? p[2] : um_get16(p + 2);
        decode_option(p, len, out);
        return true;
    }
    return false;
}

bool um_lbmr_next_tmr(struct um_lbmr_cursor *cursor, struct um_lbmr_tmr *out)
{
    if (cursor->tirs_left == 0) {
        return false;
    }
    size_t left = (size_t)(cursor->end - cursor->ptr);
    size_t len = left < 4 ? 0 : um_get16(cursor->ptr);
    if (len < 6 || len > left) {
        return cursor_fault(cursor, UM_LBMR_FAULT_TOPIC_MGMT, (unsigned)len);
    }
    const uint8_t *p = cursor->ptr + 4;
    out->type = cursor->ptr[2];
    out->flags = cursor->ptr[3];
    if (!take_name(&p, cursor->ptr + len, &out->name, &out->len) || p != cursor->ptr + len) {
        return cursor_fault(cursor, UM_LBMR_FAULT_TOPIC_MGMT, (unsigned)len);
    }
    cursor->ptr = p;
    cursor->tirs_left--;
    return true;
}
