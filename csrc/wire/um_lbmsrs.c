/* LBMSRS: registration, stream request and the records 4 to 12. Pure; any thread. */
#include "wire/um_lbmsrs_cut.h"

/* ---- messages 1, 2, 3 ----------------------------------------------------- */

bool um_lbmsrs_decode_request(struct um_slice data, struct um_lbmsrs_request *out)
{
    struct um_lbmsrs_cut cut = um_lbmsrs_cut(data);
    if (data.len != UM_LBMSRS_REQUEST_LEN || um_lbmsrs_take16(&cut) != UM_LBMSRS_REGISTRATION_REQUEST) {
        return false;
    }
    out->app_type = um_lbmsrs_take8(&cut);
    out->client_addr = um_lbmsrs_take_ip(&cut);
    out->client_port = um_lbmsrs_take16(&cut);
    out->session_id = um_lbmsrs_take32(&cut);
    out->host_id = um_lbmsrs_take32(&cut);
    out->protocol_version = um_lbmsrs_take8(&cut);
    out->interest_mode = um_lbmsrs_take8(&cut);
    out->local_domain_id = um_lbmsrs_take32(&cut);
    return true;
}

bool um_lbmsrs_decode_response(struct um_slice data, struct um_lbmsrs_response *out)
{
    struct um_lbmsrs_cut cut = um_lbmsrs_cut(data);
    if (data.len != UM_LBMSRS_RESPONSE_LEN || um_lbmsrs_take16(&cut) != UM_LBMSRS_REGISTRATION_RESPONSE) {
        return false;
    }
    out->client_id = um_lbmsrs_take64(&cut);
    out->local_domain_id = um_lbmsrs_take32(&cut);
    out->protocol_version = um_lbmsrs_take8(&cut);
    return true;
}

bool um_lbmsrs_is_stream_request(struct um_slice data)
{
    return data.len == UM_LBMSRS_STREAM_REQUEST_LEN && um_get16(data.ptr) == UM_LBMSRS_STREAM_REQUEST;
}

void um_lbmsrs_put_request(uint8_t *out, const struct um_lbmsrs_request *request)
{
    uint8_t *p = um_lbmsrs_put16(out, UM_LBMSRS_REGISTRATION_REQUEST);
    p = um_lbmsrs_put8(p, request->app_type);
    p = um_lbmsrs_put_bytes(p, &request->client_addr, 4);
    p = um_lbmsrs_put16(p, request->client_port);
    p = um_lbmsrs_put32(p, request->session_id);
    p = um_lbmsrs_put32(p, request->host_id);
    p = um_lbmsrs_put8(p, request->protocol_version);
    p = um_lbmsrs_put8(p, request->interest_mode);
    um_lbmsrs_put32(p, request->local_domain_id);
}

void um_lbmsrs_put_response(uint8_t *out, const struct um_lbmsrs_response *response)
{
    uint8_t *p = um_lbmsrs_put16(out, UM_LBMSRS_REGISTRATION_RESPONSE);
    p = um_lbmsrs_put64(p, response->client_id);
    p = um_lbmsrs_put32(p, response->local_domain_id);
    um_lbmsrs_put8(p, response->protocol_version);
}

void um_lbmsrs_put_stream_request(uint8_t *out)
{
    um_lbmsrs_put8(um_lbmsrs_put16(out, UM_LBMSRS_STREAM_REQUEST), 0);
}

/* ---- records: decoding ---------------------------------------------------- */

static void take_context(struct um_lbmsrs_cut *cut, struct um_lbmsrs_record *out)
{
    out->context_instance = um_lbmsrs_take(cut, UM_LBMSRS_INSTANCE_LEN);
    out->context_type = um_lbmsrs_take8(cut);
    out->version = um_lbmsrs_take32(cut);
    out->version_flags = um_lbmsrs_take32(cut);
}

static void take_source_info(struct um_lbmsrs_cut *cut, struct um_lbmsrs_record *out)
{
    out->otid = um_lbmsrs_take(cut, UM_LBMSRS_OTID_LEN);
    out->topic = um_lbmsrs_take_string(cut, false);
    out->source = um_lbmsrs_take_string(cut, true);
    out->host_id = um_lbmsrs_take32(cut);
    out->topic_index = um_lbmsrs_take32(cut);
    out->functionality_flags = um_lbmsrs_take32(cut);
    out->request_ip = um_lbmsrs_take_ip(cut);
    out->request_port = um_lbmsrs_take16(cut);
    out->domain_id = um_lbmsrs_take32(cut);
    out->encryption = um_lbmsrs_take8(cut);
    out->compression = um_lbmsrs_take8(cut);
    out->ulb_source_id = um_lbmsrs_take32(cut);
    out->ulb_queue_id = um_lbmsrs_take32(cut);
    out->ulb_registration_id = um_lbmsrs_take64(cut);
    take_context(cut, out);
    out->ttl = um_lbmsrs_take16(cut);
    out->cost = (int32_t)um_lbmsrs_take32(cut);
}

static void take_record(struct um_lbmsrs_cut *cut, struct um_lbmsrs_record *out)
{
    switch (out->id) {
    case UM_LBMSRS_SIR:
        take_source_info(cut, out);
        break;
    case UM_LBMSRS_SDR:
        out->otid = um_lbmsrs_take(cut, UM_LBMSRS_OTID_LEN);
        out->topic = um_lbmsrs_take_string(cut, false);
        break;
    case UM_LBMSRS_RIR:
    case UM_LBMSRS_RDR:
    case UM_LBMSRS_RER:
    case UM_LBMSRS_WIR:
    case UM_LBMSRS_WDR:
    case UM_LBMSRS_WER:
        out->topic = um_lbmsrs_take_string(cut, false);
        out->domain_id = um_lbmsrs_take32(cut);
        take_context(cut, out);
        um_lbmsrs_take(cut, 4);
        break;
    case UM_LBMSRS_SLR:
        out->otid = um_lbmsrs_take(cut, UM_LBMSRS_OTID_LEN);
        out->topic = um_lbmsrs_take_string(cut, false);
        out->source = um_lbmsrs_take_string(cut, true);
        take_context(cut, out);
        um_lbmsrs_take(cut, 4);
        break;
    default:
        cut->rc = UM_LBMSRS_UNKNOWN;
    }
}

enum um_lbmsrs_rc um_lbmsrs_next(struct um_slice *batch, struct um_lbmsrs_record *out)
{
    if (batch->len == 0) {
        return UM_LBMSRS_DONE;
    }
    struct um_lbmsrs_cut cut = um_lbmsrs_cut(*batch);
    *out = (struct um_lbmsrs_record){0};
    out->id = um_lbmsrs_take16(&cut);
    if (cut.rc == UM_LBMSRS_OK) {
        take_record(&cut, out);
    }
    if (cut.rc == UM_LBMSRS_OK) {
        batch->ptr = cut.at;
        batch->len = (size_t)(cut.end - cut.at);
    }
    return cut.rc;
}

/* ---- records: encoding ---------------------------------------------------- */

static bool string_fits(struct um_slice text, bool may_be_empty)
{
    return text.len <= UM_LBMSRS_STRING_MAX && (may_be_empty || text.len > 0);
}

size_t um_lbmsrs_len(const struct um_lbmsrs_record *record)
{
    size_t topic = record->topic.len + 1, source = record->source.len + 1;
    if (!string_fits(record->topic, false) || !string_fits(record->source, true)) {
        return 0;
    }
    switch (record->id) {
    case UM_LBMSRS_SIR:
        return record->otid != NULL && record->context_instance != NULL ? 99 + topic + source : 0;
    case UM_LBMSRS_SDR:
        return record->otid != NULL ? 35 + topic : 0;
    case UM_LBMSRS_RIR:
    case UM_LBMSRS_RDR:
    case UM_LBMSRS_RER:
    case UM_LBMSRS_WIR:
    case UM_LBMSRS_WDR:
    case UM_LBMSRS_WER:
        return record->context_instance != NULL ? 28 + topic : 0;
    case UM_LBMSRS_SLR:
        return record->otid != NULL && record->context_instance != NULL ? 57 + topic + source : 0;
    default:
        return 0;
    }
}

static uint8_t *put_context(uint8_t *p, const struct um_lbmsrs_record *record)
{
    p = um_lbmsrs_put_bytes(p, record->context_instance, UM_LBMSRS_INSTANCE_LEN);
    p = um_lbmsrs_put8(p, record->context_type);
    p = um_lbmsrs_put32(p, record->version);
    return um_lbmsrs_put32(p, record->version_flags);
}

static uint8_t *put_source_info(uint8_t *p, const struct um_lbmsrs_record *record)
{
    p = um_lbmsrs_put_string(p, record->source);
    p = um_lbmsrs_put32(p, record->host_id);
    p = um_lbmsrs_put32(p, record->topic_index);
    p = um_lbmsrs_put32(p, record->functionality_flags);
    p = um_lbmsrs_put_bytes(p, &record->request_ip, 4);
    p = um_lbmsrs_put16(p, record->request_port);
    p = um_lbmsrs_put32(p, record->domain_id);
    p = um_lbmsrs_put8(p, record->encryption);
    p = um_lbmsrs_put8(p, record->compression);
    p = um_lbmsrs_put32(p, record->ulb_source_id);
    p = um_lbmsrs_put32(p, record->ulb_queue_id);
    p = um_lbmsrs_put64(p, record->ulb_registration_id);
    p = put_context(p, record);
    p = um_lbmsrs_put16(p, record->ttl);
    return um_lbmsrs_put32(p, (uint32_t)record->cost);
}

size_t um_lbmsrs_put(const struct um_lbmsrs_record *record, uint8_t *out, size_t room)
{
    size_t len = um_lbmsrs_len(record);
    if (len == 0 || len > room) {
        return 0;
    }
    uint8_t *p = um_lbmsrs_put16(out, record->id);
    if (record->id == UM_LBMSRS_SIR || record->id == UM_LBMSRS_SDR || record->id == UM_LBMSRS_SLR) {
        p = um_lbmsrs_put_bytes(p, record->otid, UM_LBMSRS_OTID_LEN);
    }
    p = um_lbmsrs_put_string(p, record->topic);
    switch (record->id) {
    case UM_LBMSRS_SIR:
        put_source_info(p, record);
        break;
    case UM_LBMSRS_SDR:
        break;
    case UM_LBMSRS_SLR:
        p = um_lbmsrs_put_string(p, record->source);
        um_lbmsrs_put32(put_context(p, record), 0);
        break;
    default:
        p = um_lbmsrs_put32(p, record->domain_id);
        um_lbmsrs_put32(put_context(p, record), 0);
    }
    return len;
}

const char *um_lbmsrs_name(const struct um_lbmsrs_record *record)
{
    static const char *const names[] = {"SIR", "SDR", "RIR", "RDR", "RER", "WIR", "WDR", "WER", "SLR"};
    if (um_lbmsrs_is_end(record)) {
        return "SER";
    }
    return record->id >= UM_LBMSRS_SIR && record->id <= UM_LBMSRS_SLR ? names[record->id - UM_LBMSRS_SIR] : "unknown";
}
