/* LBMR encoding: trailer, information records, the datagram builder and the
 * extended messages a context sends. Never writes beyond the given capacity.
 * Pure functions, any thread. */
#include "wire/um_lbmr.h"

size_t um_lbmr_encode_trailer(uint8_t out[UM_LBMR_TRAILER_MAX], const struct um_lbmr_trailer *trailer)
{
    uint8_t *p = out;
    if (trailer->has_source_id) {
        p[0] = 0x81;
        p[1] = 12;
        um_put16(p + 2, UM_LBMR_IGNORE16);
        memcpy(p + 4, trailer->source_id, 8);
        p += 12;
    }
    if (trailer->has_source_type) {
        p[0] = 0x82;
        p[1] = 4;
        p[2] = UM_LBMR_IGNORE8;
        p[3] = trailer->source_type;
        p += 4;
    }
    if (trailer->has_version) {
        p[0] = 0x83;
        p[1] = 8;
        um_put16(p + 2, UM_LBMR_IGNORE16 | trailer->version_flags);
        um_put32(p + 4, trailer->version);
        p += 8;
    }
    if (trailer->has_domain) {
        p[0] = 0x84;
        p[1] = 8;
        um_put16(p + 2, UM_LBMR_IGNORE16);
        um_put32(p + 4, trailer->domain_id);
        p += 8;
    }
    p[0] = 0x80;
    p[1] = 4;
    um_put16(p + 2, (uint16_t)(p + 4 - out));
    return (size_t)(p + 4 - out);
}

void um_lbmr_tir_begin(struct um_lbmr_tir_writer *writer, uint8_t *buf, size_t capacity, const char *name,
                       uint32_t index)
{
    size_t name_len = strlen(name) + 1;
    memset(writer, 0, sizeof *writer);
    writer->buf = buf;
    writer->capacity = capacity;
    if (name_len + 8 > capacity) {
        writer->overflow = true;
        return;
    }
    memcpy(buf, name, name_len);
    memset(buf + name_len, 0, 4);
    um_put32(buf + name_len + 4, index);
    writer->fixed_at = name_len;
    writer->len = name_len + 8;
}

static uint8_t *tir_room(struct um_lbmr_tir_writer *writer, size_t len)
{
    if (writer->overflow || len > writer->capacity - writer->len) {
        writer->overflow = true;
        return NULL;
    }
    uint8_t *p = writer->buf + writer->len;
    memset(p, 0, len);
    writer->len += len;
    return p;
}

static size_t option_len(const struct um_lbmr_option *option)
{
    static const uint8_t lengths[] = {4, 32, 16, 8, 24, 8, 0, 8, 36, 12, 12, 28, 12, 8, 16};
    return option->type == UM_LBMR_OPT_QUEUE ? option->u.queue.len + 5 : lengths[option->type];
}

static void encode_option_body(uint8_t *p, const struct um_lbmr_option *option)
{
    switch (option->type) {
    case UM_LBMR_OPT_UME:
        um_put16(p + 4, option->u.ume.store_port);
        um_put16(p + 6, option->u.ume.src_port);
        memcpy(p + 8, &option->u.ume.store_ip, 4);
        memcpy(p + 12, &option->u.ume.src_ip, 4);
        um_put32(p + 16, option->u.ume.reg_id);
        um_put32(p + 20, option->u.ume.transport_idx);
        um_put32(p + 24, option->u.ume.high);
        um_put32(p + 28, option->u.ume.low);
        break;
    case UM_LBMR_OPT_STORE:
        p[3] = option->u.store.group;
        um_put16(p + 4, option->u.store.port);
        um_put16(p + 6, option->u.store.index);
        memcpy(p + 8, &option->u.store.ip, 4);
        um_put32(p + 12, option->u.store.reg_id);
        break;
    case UM_LBMR_OPT_STORE_GROUP:
        p[3] = option->u.store_group.group;
        um_put16(p + 4, option->u.store_group.size);
        break;
    case UM_LBMR_OPT_LATE_JOIN:
        um_put16(p + 4, option->u.late_join.src_port);
        memcpy(p + 8, &option->u.late_join.src_ip, 4);
        um_put32(p + 12, option->u.late_join.transport_idx);
        um_put32(p + 16, option->u.late_join.high);
        um_put32(p + 20, option->u.late_join.low);
        break;
    case UM_LBMR_OPT_RCR_INDEX:
        um_put32(p + 4, option->u.rcr_index);
        break;
    case UM_LBMR_OPT_QUEUE:
        memcpy(p + 4, option->u.queue.name, option->u.queue.len);
        break;
    case UM_LBMR_OPT_COST:
        p[3] = option->u.cost.hops;
        um_put32(p + 4, (uint32_t)option->u.cost.cost);
        break;
    case UM_LBMR_OPT_OTID:
        memcpy(p + 4, option->u.otid, 32);
        break;
    case UM_LBMR_OPT_CTXINST:
    case UM_LBMR_OPT_STORE_CTXINST:
    case UM_LBMR_OPT_QUEUE_CTXINST:
        p[3] = option->u.instance.index;
        memcpy(p + 4, option->u.instance.bytes, 8);
        break;
    case UM_LBMR_OPT_ULB:
        um_put32(p + 4, option->u.ulb.queue_id);
        memcpy(p + 8, option->u.ulb.reg_id, 8);
        um_put32(p + 16, option->u.ulb.src_id);
        memcpy(p + 20, &option->u.ulb.src_ip, 4);
        um_put16(p + 24, option->u.ulb.src_port);
        break;
    case UM_LBMR_OPT_DOMAIN:
        um_put32(p + 4, option->u.domain_id);
        break;
    case UM_LBMR_OPT_EXFUNC:
        um_put16(p + 4, option->u.exfunc.src_port);
        memcpy(p + 8, &option->u.exfunc.src_ip, 4);
        um_put32(p + 12, option->u.exfunc.functionality);
        break;
    default:
        break;
    }
}

static bool option_has_flags8(uint8_t type)
{
    return type == UM_LBMR_OPT_STORE || type == UM_LBMR_OPT_STORE_GROUP || type == UM_LBMR_OPT_COST ||
           type == UM_LBMR_OPT_CTXINST || type == UM_LBMR_OPT_STORE_CTXINST || type == UM_LBMR_OPT_QUEUE_CTXINST;
}

void um_lbmr_tir_option(struct um_lbmr_tir_writer *writer, const struct um_lbmr_option *option)
{
    if (writer->options_at == 0) {
        size_t at = writer->len;
        uint8_t *head = tir_room(writer, 4);
        if (head == NULL) {
            return;
        }
        head[1] = 4;
        writer->options_at = at;
    }
    size_t len = option_len(option);
    uint8_t *p = len > UINT8_MAX ? NULL : tir_room(writer, len);
    if (p == NULL) {
        writer->overflow = true;
        return;
    }
    p[0] = option->type;
    p[1] = (uint8_t)len;
    if (option_has_flags8(option->type)) {
        p[2] = (uint8_t)option->flags;
    } else {
        um_put16(p + 2, option->flags);
    }
    encode_option_body(p, option);
}

static size_t transport_len(const struct um_lbmr_transport *transport)
{
    if (transport->code == UM_LBMR_LBTRM) {
        return 16;
    }
    return transport->session_less ? 6 : 10;
}

static void encode_transport(uint8_t *p, const struct um_lbmr_transport *transport)
{
    switch (transport->code) {
    case UM_LBMR_LBTRM:
        memcpy(p, &transport->ip, 4);
        memcpy(p + 4, &transport->group, 4);
        um_put32(p + 8, transport->session_id);
        um_put16(p + 12, transport->dest_port);
        um_put16(p + 14, transport->port);
        break;
    case UM_LBMR_LBTIPC:
    case UM_LBMR_LBTSMX:
        um_put32(p, transport->host_id);
        um_put32(p + 4, transport->session_id);
        um_put16(p + 8, transport->transport_id);
        break;
    default:
        memcpy(p, &transport->ip, 4);
        if (transport->session_less) {
            um_put16(p + 4, transport->port);
        } else {
            um_put32(p + 4, transport->session_id);
            um_put16(p + 8, transport->port);
        }
        break;
    }
}

size_t um_lbmr_tir_end(struct um_lbmr_tir_writer *writer, const struct um_lbmr_transport *transport)
{
    size_t len = transport_len(transport);
    uint8_t *p = tir_room(writer, len);
    if (p == NULL) {
        return 0;
    }
    encode_transport(p, transport);
    uint8_t *fixed = writer->buf + writer->fixed_at;
    fixed[0] = (uint8_t)(transport->code | (writer->options_at != 0 ? 0x80 : 0));
    fixed[1] = (uint8_t)len;
    if (writer->options_at != 0) {
        um_put16(writer->buf + writer->options_at + 2, (uint16_t)(writer->len - len - writer->options_at));
    }
    return writer->len;
}

static size_t head_len(uint8_t type)
{
    return type == UM_LBMR_TOPIC_MGMT ? UM_LBMR_HEADER_LEN + 4 : UM_LBMR_HEADER_LEN;
}

void um_lbmr_begin(struct um_lbmr_builder *builder, uint8_t *buf, size_t capacity, size_t limit, uint8_t type,
                   const uint8_t *trailer, size_t trailer_len)
{
    *builder = (struct um_lbmr_builder){
        .buf = buf,
        .capacity = capacity,
        .limit = limit < capacity ? limit : capacity,
        .len = head_len(type),
        .type = type,
        .trailer = trailer,
        .trailer_len = trailer_len,
    };
}

bool um_lbmr_builder_empty(const struct um_lbmr_builder *builder)
{
    return builder->tqrs == 0 && builder->tirs == 0;
}

static uint8_t *record_room(struct um_lbmr_builder *builder, size_t len)
{
    size_t bound = um_lbmr_builder_empty(builder) ? builder->capacity : builder->limit;
    if (builder->len + len + builder->trailer_len > bound) {
        return NULL;
    }
    uint8_t *p = builder->buf + builder->len;
    builder->len += len;
    return p;
}

bool um_lbmr_add_tqr(struct um_lbmr_builder *builder, const char *name, size_t name_len)
{
    uint8_t *p = builder->tqrs == UINT8_MAX ? NULL : record_room(builder, name_len + 1);
    if (p == NULL) {
        return false;
    }
    memcpy(p, name, name_len);
    p[name_len] = 0;
    builder->tqrs++;
    return true;
}

bool um_lbmr_add_wildcard_tqr(struct um_lbmr_builder *builder, uint8_t pattern_type, const char *pattern, size_t len)
{
    uint8_t *p = builder->tqrs == UINT8_MAX ? NULL : record_room(builder, len + 2);
    if (p == NULL) {
        return false;
    }
    p[0] = pattern_type;
    memcpy(p + 1, pattern, len);
    p[len + 1] = 0;
    builder->tqrs++;
    return true;
}

bool um_lbmr_add_tir(struct um_lbmr_builder *builder, const uint8_t *record, size_t len)
{
    uint8_t *p = builder->tirs == UINT16_MAX ? NULL : record_room(builder, len);
    if (p == NULL) {
        return false;
    }
    memcpy(p, record, len);
    builder->tirs++;
    return true;
}

bool um_lbmr_add_tmr(struct um_lbmr_builder *builder, uint8_t type, uint8_t flags, const char *name, size_t name_len)
{
    size_t len = name_len + 5;
    uint8_t *p = builder->tirs == UINT16_MAX ? NULL : record_room(builder, len);
    if (p == NULL) {
        return false;
    }
    um_put16(p, (uint16_t)len);
    p[2] = type;
    p[3] = flags;
    memcpy(p + 4, name, name_len);
    p[4 + name_len] = 0;
    builder->tirs++;
    return true;
}

static size_t append_trailer(uint8_t *buf, size_t len, const uint8_t *trailer, size_t trailer_len)
{
    if (trailer_len == 0) {
        return len;
    }
    memcpy(buf + len, trailer, trailer_len);
    buf[0] |= UM_LBMR_OPTIONS_PRESENT;
    return len + trailer_len;
}

size_t um_lbmr_finish(struct um_lbmr_builder *builder)
{
    uint8_t *p = builder->buf;
    p[0] = builder->type;
    if (builder->type == UM_LBMR_TOPIC_MGMT) {
        p[1] = 0;
        um_put16(p + 2, 0);
        um_put16(p + 4, (uint16_t)(builder->len - UM_LBMR_HEADER_LEN));
        um_put16(p + 6, (uint16_t)builder->tirs);
    } else {
        p[1] = (uint8_t)builder->tqrs;
        um_put16(p + 2, (uint16_t)builder->tirs);
    }
    return append_trailer(p, builder->len, builder->trailer, builder->trailer_len);
}

size_t um_lbmr_encode_keepalive(uint8_t *out, size_t capacity, uint8_t type)
{
    if (capacity < UM_LBMR_HEADER_LEN) {
        return 0;
    }
    memset(out, 0, UM_LBMR_HEADER_LEN);
    out[0] = type;
    return UM_LBMR_HEADER_LEN;
}

size_t um_lbmr_encode_request(uint8_t *out, size_t capacity, uint16_t flags, const uint8_t *trailer, size_t trailer_len)
{
    if (capacity < UM_LBMR_HEADER_LEN + trailer_len) {
        return 0;
    }
    out[0] = UM_LBMR_EXT;
    out[1] = UM_LBMR_EXT_REQUEST;
    um_put16(out + 2, flags);
    return append_trailer(out, UM_LBMR_HEADER_LEN, trailer, trailer_len);
}

size_t um_lbmr_encode_ctxinfo(uint8_t *out, size_t capacity, const struct um_lbmr_ctxinfo *info, const uint8_t *trailer,
                              size_t trailer_len)
{
    size_t len = 20 + (info->name == NULL ? 0 : info->name_len + 1);
    if (len > UINT8_MAX || len + trailer_len > capacity) {
        return 0;
    }
    out[0] = UM_LBMR_EXT;
    out[1] = UM_LBMR_EXT_CTXINFO;
    out[2] = (uint8_t)len;
    out[3] = info->hop_count;
    um_put16(out + 4, info->flags);
    um_put16(out + 6, info->port);
    memcpy(out + 8, &info->ip, 4);
    memcpy(out + 12, info->instance, 8);
    if (info->name != NULL) {
        memcpy(out + 20, info->name, info->name_len);
        out[len - 1] = 0;
    }
    return append_trailer(out, len, trailer, trailer_len);
}

static size_t put_rctx_options(uint8_t *p, const struct um_lbmr_rctx *record)
{
    uint8_t *start = p;
    if (record->has_address) {
        memset(p, 0, 16);
        p[0] = 1;
        p[1] = 16;
        um_put32(p + 4, record->address_domain);
        memcpy(p + 8, &record->ip, 4);
        um_put16(p + 12, record->port);
        p += 16;
    }
    if (record->has_instance) {
        memset(p, 0, 4);
        p[0] = 2;
        p[1] = 12;
        memcpy(p + 4, record->instance, 8);
        p += 12;
    }
    if (record->has_origin_domain) {
        memset(p, 0, 4);
        p[0] = 3;
        p[1] = 8;
        um_put32(p + 4, record->origin_domain);
        p += 8;
    }
    if (record->name != NULL) {
        memset(p, 0, 4);
        p[0] = 4;
        p[1] = (uint8_t)(record->name_len + 5);
        memcpy(p + 4, record->name, record->name_len);
        p[4 + record->name_len] = 0;
        p += 5 + record->name_len;
    }
    return (size_t)(p - start);
}

size_t um_lbmr_encode_rctx(uint8_t *out, size_t capacity, const struct um_lbmr_rctx *record, const uint8_t *trailer,
                           size_t trailer_len)
{
    size_t most = 12 + 16 + 12 + 8 + 5 + record->name_len + trailer_len;
    if (record->name_len > UINT8_MAX - 5 || most > capacity) {
        return 0;
    }
    size_t options = put_rctx_options(out + 12, record);
    size_t len = 12 + options;
    out[0] = UM_LBMR_EXT;
    out[1] = UM_LBMR_EXT_RCTXINFO;
    um_put16(out + 2, (uint16_t)len);
    um_put16(out + 4, 1);
    um_put16(out + 6, 0);
    um_put16(out + 8, (uint16_t)(4 + options));
    um_put16(out + 10, record->query ? UM_LBMR_CTX_QUERY : 0);
    return append_trailer(out, len, trailer, trailer_len);
}
