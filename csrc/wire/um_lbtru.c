/* LBT-RU codec. See um_lbtru.h. */
#include "wire/um_lbtru.h"

static void put_common(uint8_t *out, enum um_lbtru_type type, uint32_t sid, uint16_t flags)
{
    out[0] = (uint8_t)type;
    out[1] = sid != 0 ? UM_LBTRU_OPTION_SID : 0;
    um_put16(out + 2, flags);
}

/* The session-id option behind `at` bytes; returns the new length. */
static size_t put_sid(uint8_t *out, size_t at, uint32_t sid)
{
    if (sid == 0) {
        return at;
    }
    out[at] = 0;
    out[at + 1] = UM_LBTRU_OPTION_LEN;
    um_put16(out + at + 2, 0);
    um_put32(out + at + 4, sid);
    return at + UM_LBTRU_OPTION_LEN;
}

size_t um_lbtru_put_data(uint8_t *out, uint32_t sid, uint32_t sqn, uint32_t trail, bool retransmission)
{
    put_common(out, UM_LBTRU_DATA, sid, retransmission ? UM_LBTRU_FLAG_RETRANSMISSION : 0);
    um_put32(out + 4, sqn);
    um_put32(out + 8, trail);
    return put_sid(out, 12, sid);
}

size_t um_lbtru_put_sm(uint8_t *out, uint32_t sid, bool syn, uint32_t sm_sqn, uint32_t lead, uint32_t trail)
{
    put_common(out, UM_LBTRU_SM, sid, syn ? UM_LBTRU_FLAG_SYN : 0);
    um_put32(out + 4, sm_sqn);
    um_put32(out + 8, lead);
    um_put32(out + 12, trail);
    return put_sid(out, 16, sid);
}

size_t um_lbtru_put_nak(uint8_t *out, uint32_t sid, const uint32_t *sqns, size_t count)
{
    put_common(out, UM_LBTRU_NAK, sid, 0);
    um_put16(out + 4, (uint16_t)count);
    um_put16(out + 6, 0);
    um_lbtr_put_list(out + 8, sqns, count);
    return put_sid(out, 8 + 4 * count, sid);
}

size_t um_lbtru_put_ncf(uint8_t *out, uint32_t sid, uint32_t trail, enum um_lbtr_reason reason, const uint32_t *sqns,
                        size_t count)
{
    put_common(out, UM_LBTRU_NCF, sid, 0);
    um_put32(out + 4, trail);
    um_put16(out + 8, (uint16_t)count);
    out[10] = 0;
    out[11] = (uint8_t)((unsigned)reason << 4);
    um_lbtr_put_list(out + 12, sqns, count);
    return put_sid(out, 12 + 4 * count, sid);
}

size_t um_lbtru_put_ack(uint8_t *out, uint32_t sid, uint32_t sqn)
{
    put_common(out, UM_LBTRU_ACK, sid, 0);
    um_put32(out + 4, sqn);
    return put_sid(out, 8, sid);
}

size_t um_lbtru_put_creq(uint8_t *out, uint32_t sid)
{
    put_common(out, UM_LBTRU_CREQ, sid, UM_LBTRU_REQUEST_SYN);
    return put_sid(out, UM_LBTRU_COMMON_HDR, sid);
}

size_t um_lbtru_put_rst(uint8_t *out)
{
    put_common(out, UM_LBTRU_RST, 0, 0);
    return UM_LBTRU_RST_LEN;
}

static bool take_options(const uint8_t *data, size_t len, size_t *at, struct um_lbtru_packet *out)
{
    uint8_t type = data[1];
    while (type != 0) {
        if (len - *at < UM_LBTR_OPTION_HEADER) {
            return false;
        }
        const uint8_t *option = data + *at;
        size_t option_len = option[1];
        if (option_len < UM_LBTR_OPTION_HEADER || option_len > len - *at) {
            return false;
        }
        bool known = type == UM_LBTRU_OPTION_SID || type == UM_LBTRU_OPTION_CID;
        if (known ? option_len != UM_LBTRU_OPTION_LEN : (um_get16(option + 2) & UM_LBTR_OPTION_IGNORABLE) == 0) {
            return false;
        }
        if (type == UM_LBTRU_OPTION_SID) {
            out->has_sid = true;
            out->sid = um_get32(option + 4);
        } else if (type == UM_LBTRU_OPTION_CID) {
            out->has_cid = true;
            out->cid = um_get32(option + 4);
        }
        type = option[0];
        *at += option_len;
    }
    return true;
}

static enum um_lbtr_rc take_list(const uint8_t *data, size_t len, size_t *at, size_t count, unsigned format,
                                 struct um_lbtru_packet *out)
{
    if ((len - *at) / 4 < count) {
        return UM_LBTR_SIZE;
    }
    if (format != 0) {
        return UM_LBTR_OTHER;
    }
    out->list = (struct um_lbtr_list){data + *at, count};
    *at += 4 * count;
    return UM_LBTR_OK;
}

static enum um_lbtr_rc decode_body(const uint8_t *data, size_t len, size_t *at, struct um_lbtru_packet *out)
{
    uint16_t flags = um_get16(data + 2);
    switch (out->type) {
    case UM_LBTRU_DATA:
        out->retransmission = (flags & UM_LBTRU_FLAG_RETRANSMISSION) != 0;
        out->sqn = um_get32(data + 4);
        out->trail = um_get32(data + 8);
        return UM_LBTR_OK;
    case UM_LBTRU_SM:
        out->syn = (flags & UM_LBTRU_FLAG_SYN) != 0;
        out->sqn = um_get32(data + 4);
        out->lead = um_get32(data + 8);
        out->trail = um_get32(data + 12);
        return UM_LBTR_OK;
    case UM_LBTRU_NAK:
        return take_list(data, len, at, um_get16(data + 4), um_get16(data + 6) & 0x0f, out);
    case UM_LBTRU_NCF:
        out->trail = um_get32(data + 4);
        out->reason = data[11] >> 4;
        return take_list(data, len, at, um_get16(data + 8), data[11] & 0x0f, out);
    case UM_LBTRU_ACK:
        out->sqn = um_get32(data + 4);
        return UM_LBTR_OK;
    case UM_LBTRU_CREQ:
    case UM_LBTRU_RST:
        out->code = flags;
        return UM_LBTR_OK;
    }
    return UM_LBTR_TYPE;
}

enum um_lbtr_rc um_lbtru_decode(const uint8_t *data, size_t len, struct um_lbtru_packet *out)
{
    static const uint8_t header_len[16] = {
        [UM_LBTRU_DATA] = 12, [UM_LBTRU_SM] = 16,  [UM_LBTRU_NAK] = 8, [UM_LBTRU_NCF] = 12,
        [UM_LBTRU_ACK] = 8,   [UM_LBTRU_CREQ] = 4, [UM_LBTRU_RST] = 4};
    *out = (struct um_lbtru_packet){0};
    if (len < UM_LBTRU_COMMON_HDR) {
        return UM_LBTR_SIZE;
    }
    if ((data[0] >> 4) != 0) {
        return UM_LBTR_VERSION;
    }
    size_t at = header_len[data[0] & 0x0f];
    if (at == 0) {
        return UM_LBTR_TYPE;
    }
    if (len < at) {
        return UM_LBTR_SIZE;
    }
    out->type = (enum um_lbtru_type)(data[0] & 0x0f);
    enum um_lbtr_rc rc = decode_body(data, len, &at, out);
    if (rc != UM_LBTR_OK) {
        return rc;
    }
    if (!take_options(data, len, &at, out)) {
        return UM_LBTR_HEADER;
    }
    out->payload = (struct um_slice){data + at, out->type == UM_LBTRU_DATA ? len - at : 0};
    return UM_LBTR_OK;
}
