/* LBT-RM codec. See um_lbtrm.h. */
#include "wire/um_lbtrm.h"

static size_t put_common(uint8_t *out, enum um_lbtrm_type type, const struct um_lbtrm_session *session)
{
    out[0] = (uint8_t)type;
    out[1] = 0;
    um_put16(out + 2, session->ucast_port);
    um_put32(out + 4, session->session_id);
    return UM_LBTRM_COMMON_HDR;
}

size_t um_lbtrm_put_data(uint8_t *out, const struct um_lbtrm_session *session, uint32_t sqn, uint32_t trail,
                         uint8_t tgsz, bool retransmission)
{
    put_common(out, UM_LBTRM_DATA, session);
    um_put32(out + 8, sqn);
    um_put32(out + 12, trail);
    out[16] = (uint8_t)(UM_LBTRM_FLAG_UNICAST_NAKS | (retransmission ? UM_LBTRM_FLAG_RETRANSMISSION : 0));
    out[17] = tgsz & 0x0f;
    um_put16(out + 18, 0);
    return UM_LBTRM_DATA_HDR;
}

size_t um_lbtrm_put_sm(uint8_t *out, const struct um_lbtrm_session *session, uint32_t sm_sqn, uint32_t lead,
                       uint32_t trail, uint8_t tgsz)
{
    put_common(out, UM_LBTRM_SM, session);
    um_put32(out + 8, sm_sqn);
    um_put32(out + 12, lead);
    um_put32(out + 16, trail);
    out[20] = UM_LBTRM_FLAG_UNICAST_NAKS;
    out[21] = tgsz & 0x0f;
    um_put16(out + 22, 0);
    return UM_LBTRM_SM_LEN;
}

size_t um_lbtrm_put_nak(uint8_t *out, const struct um_lbtrm_session *session, const uint32_t *sqns, size_t count)
{
    put_common(out, UM_LBTRM_NAK, session);
    um_put16(out + 8, (uint16_t)count);
    um_put16(out + 10, 0);
    um_lbtr_put_list(out + UM_LBTRM_NAK_HDR, sqns, count);
    return UM_LBTRM_NAK_HDR + 4 * count;
}

size_t um_lbtrm_put_ncf(uint8_t *out, const struct um_lbtrm_session *session, uint32_t trail,
                        enum um_lbtr_reason reason, const uint32_t *sqns, size_t count)
{
    put_common(out, UM_LBTRM_NCF, session);
    um_put32(out + 8, trail);
    um_put16(out + 12, (uint16_t)count);
    out[14] = 0;
    out[15] = (uint8_t)((unsigned)reason << 4);
    um_lbtr_put_list(out + UM_LBTRM_NCF_HDR, sqns, count);
    return UM_LBTRM_NCF_HDR + 4 * count;
}

bool um_lbtrm_peek(const uint8_t *data, size_t len, struct um_lbtrm_session *out)
{
    if (len < UM_LBTRM_COMMON_HDR) {
        return false;
    }
    out->ucast_port = um_get16(data + 2);
    out->session_id = um_get32(data + 4);
    return true;
}

/* Skip the options of a packet; `*at` moves behind the last one. None is defined: only ignorable ones are let through.
 */
static bool skip_options(const uint8_t *data, size_t len, size_t *at)
{
    uint8_t next = data[1];
    while (next != 0) {
        if (len - *at < UM_LBTR_OPTION_HEADER) {
            return false;
        }
        const uint8_t *option = data + *at;
        size_t option_len = option[1];
        if (option_len < UM_LBTR_OPTION_HEADER || option_len > len - *at ||
            (um_get16(option + 2) & UM_LBTR_OPTION_IGNORABLE) == 0) {
            return false;
        }
        next = option[0];
        *at += option_len;
    }
    return true;
}

/* The list of a NAK or NCF behind a header of `at` bytes. */
static bool take_list(const uint8_t *data, size_t len, size_t *at, size_t count, struct um_lbtr_list *out)
{
    if ((len - *at) / 4 < count) {
        return false;
    }
    *out = (struct um_lbtr_list){data + *at, count};
    *at += 4 * count;
    return true;
}

static enum um_lbtr_rc decode_body(const uint8_t *data, size_t len, size_t *at, struct um_lbtrm_packet *out)
{
    unsigned format = 0;
    switch (out->type) {
    case UM_LBTRM_DATA:
        out->sqn = um_get32(data + 8);
        out->trail = um_get32(data + 12);
        out->retransmission = (data[16] & UM_LBTRM_FLAG_RETRANSMISSION) != 0;
        out->tgsz = data[17];
        return UM_LBTR_OK;
    case UM_LBTRM_SM:
        out->sqn = um_get32(data + 8);
        out->lead = um_get32(data + 12);
        out->trail = um_get32(data + 16);
        out->tgsz = data[21];
        return UM_LBTR_OK;
    case UM_LBTRM_NAK:
        format = um_get16(data + 10) & 0x0f;
        return !take_list(data, len, at, um_get16(data + 8), &out->list) ? UM_LBTR_SIZE
               : format != 0                                             ? UM_LBTR_OTHER
                                                                         : UM_LBTR_OK;
    case UM_LBTRM_NCF:
        out->trail = um_get32(data + 8);
        out->reason = data[15] >> 4;
        format = data[15] & 0x0f;
        return !take_list(data, len, at, um_get16(data + 12), &out->list) ? UM_LBTR_SIZE
               : format != 0                                              ? UM_LBTR_OTHER
                                                                          : UM_LBTR_OK;
    }
    return UM_LBTR_TYPE;
}

enum um_lbtr_rc um_lbtrm_decode(const uint8_t *data, size_t len, struct um_lbtrm_packet *out)
{
    static const uint8_t header_len[16] = {[UM_LBTRM_DATA] = UM_LBTRM_DATA_HDR,
                                           [UM_LBTRM_SM] = UM_LBTRM_SM_LEN,
                                           [UM_LBTRM_NAK] = UM_LBTRM_NAK_HDR,
                                           [UM_LBTRM_NCF] = UM_LBTRM_NCF_HDR};
    *out = (struct um_lbtrm_packet){0};
    if (!um_lbtrm_peek(data, len, &out->session)) {
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
    out->type = (enum um_lbtrm_type)(data[0] & 0x0f);
    enum um_lbtr_rc rc = decode_body(data, len, &at, out);
    if (rc != UM_LBTR_OK) {
        return rc;
    }
    if (!skip_options(data, len, &at)) {
        return UM_LBTR_HEADER;
    }
    out->payload = (struct um_slice){data + at, out->type == UM_LBTRM_DATA ? len - at : 0};
    return UM_LBTR_OK;
}
