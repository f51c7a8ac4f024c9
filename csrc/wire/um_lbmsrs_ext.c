/* LBMSRS: the extension records 13 to 18, about context names, domains and
 * routes. Pure; any thread. */
#include "wire/um_lbmsrs_cut.h"

static void take_domains(struct um_lbmsrs_cut *cut, struct um_lbmsrs_ext *out)
{
    size_t count = um_lbmsrs_take16(cut);
    const uint8_t *p = um_lbmsrs_take(cut, 4 * count);
    bool good = p != NULL && count <= UM_LBMSRS_ROUTE_DOMAINS;
    for (size_t i = 0; good && i < count; i++) {
        good = um_get32(p + 4 * i) != 0;
    }
    if (cut->rc == UM_LBMSRS_OK && !good) {
        cut->rc = UM_LBMSRS_BAD_VALUE;
    }
    out->domains = (struct um_slice){p, p != NULL ? 4 * count : 0};
}

static void take_place(struct um_lbmsrs_cut *cut, struct um_lbmsrs_ext *out)
{
    out->ip = um_lbmsrs_take_ip(cut);
    out->port = um_lbmsrs_take16(cut);
    out->origin_instance = um_lbmsrs_take(cut, UM_LBMSRS_INSTANCE_LEN);
}

static void take_ext(struct um_lbmsrs_cut *cut, struct um_lbmsrs_ext *out)
{
    switch (out->id) {
    case UM_LBMSRS_CNQR:
        out->name = um_lbmsrs_take_string(cut, false);
        out->domain_id = um_lbmsrs_take32(cut);
        break;
    case UM_LBMSRS_CNIR:
        out->name = um_lbmsrs_take_string(cut, false);
        out->domain_id = um_lbmsrs_take32(cut);
        take_place(cut, out);
        break;
    case UM_LBMSRS_CNER:
        out->name = um_lbmsrs_take_string(cut, false);
        out->origin_instance = um_lbmsrs_take(cut, UM_LBMSRS_INSTANCE_LEN);
        break;
    case UM_LBMSRS_DIR:
        out->domain_id = um_lbmsrs_take32(cut);
        out->origin_instance = um_lbmsrs_take(cut, UM_LBMSRS_INSTANCE_LEN);
        break;
    case UM_LBMSRS_RTIR:
        out->route_index = um_lbmsrs_take32(cut);
        take_place(cut, out);
        take_domains(cut, out);
        break;
    case UM_LBMSRS_RTER:
        out->route_index = um_lbmsrs_take32(cut);
        take_place(cut, out);
        break;
    default:
        cut->rc = UM_LBMSRS_UNKNOWN;
    }
}

enum um_lbmsrs_rc um_lbmsrs_ext_next(struct um_slice *batch, struct um_lbmsrs_ext *out)
{
    if (batch->len == 0) {
        return UM_LBMSRS_DONE;
    }
    struct um_lbmsrs_cut cut = um_lbmsrs_cut(*batch);
    *out = (struct um_lbmsrs_ext){0};
    out->id = um_lbmsrs_take16(&cut);
    if (cut.rc == UM_LBMSRS_OK) {
        take_ext(&cut, out);
    }
    if (cut.rc == UM_LBMSRS_OK) {
        batch->ptr = cut.at;
        batch->len = (size_t)(cut.end - cut.at);
    }
    return cut.rc;
}

static bool has_name(const struct um_lbmsrs_ext *record)
{
    return record->id >= UM_LBMSRS_CNQR && record->id <= UM_LBMSRS_CNER;
}

size_t um_lbmsrs_ext_len(const struct um_lbmsrs_ext *record)
{
    if (record->id < UM_LBMSRS_CNQR || record->id > UM_LBMSRS_RTER ||
        (record->id != UM_LBMSRS_CNQR && record->origin_instance == NULL) ||
        (has_name(record) && (record->name.len == 0 || record->name.len > UM_LBMSRS_STRING_MAX)) ||
        record->domains.len > 4 * UM_LBMSRS_ROUTE_DOMAINS) {
        return 0;
    }
    switch (record->id) {
    case UM_LBMSRS_CNQR:
        return 2 + 2 + record->name.len + 4;
    case UM_LBMSRS_CNIR:
        return 2 + 2 + record->name.len + 4 + 6 + UM_LBMSRS_INSTANCE_LEN;
    case UM_LBMSRS_CNER:
        return 2 + 2 + record->name.len + UM_LBMSRS_INSTANCE_LEN;
    case UM_LBMSRS_DIR:
        return 2 + 4 + UM_LBMSRS_INSTANCE_LEN;
    case UM_LBMSRS_RTIR:
        return 2 + 4 + 6 + UM_LBMSRS_INSTANCE_LEN + 2 + record->domains.len;
    default:
        return 2 + 4 + 6 + UM_LBMSRS_INSTANCE_LEN;
    }
}

static uint8_t *put_place(uint8_t *p, const struct um_lbmsrs_ext *record)
{
    p = um_lbmsrs_put_bytes(p, &record->ip, 4);
    return um_lbmsrs_put16(p, record->port);
}

size_t um_lbmsrs_ext_put(const struct um_lbmsrs_ext *record, uint8_t *out, size_t room)
{
    size_t len = um_lbmsrs_ext_len(record);
    if (len == 0 || len > room) {
        return 0;
    }
    uint8_t *p = um_lbmsrs_put16(out, record->id);
    p = has_name(record) ? um_lbmsrs_put_string(p, record->name) : p;
    if (record->id == UM_LBMSRS_CNQR || record->id == UM_LBMSRS_CNIR || record->id == UM_LBMSRS_DIR) {
        p = um_lbmsrs_put32(p, record->domain_id);
    } else if (record->id != UM_LBMSRS_CNER) {
        p = um_lbmsrs_put32(p, record->route_index);
    }
    if (record->id == UM_LBMSRS_CNIR || record->id == UM_LBMSRS_RTIR || record->id == UM_LBMSRS_RTER) {
        p = put_place(p, record);
    }
    if (record->id != UM_LBMSRS_CNQR) {
        p = um_lbmsrs_put_bytes(p, record->origin_instance, UM_LBMSRS_INSTANCE_LEN);
    }
    if (record->id == UM_LBMSRS_RTIR) {
        p = um_lbmsrs_put16(p, (uint16_t)(record->domains.len / 4));
        um_lbmsrs_put_bytes(p, record->domains.ptr, record->domains.len);
    }
    return len;
}
