/* LBMC decoding and encoding: the table of header codes, the walk along a chain
 * of extension headers, and writers for the headers and control messages we send.
 * Pure functions; any thread. */
#include "wire/um_lbmc.h"

#include "base/um_sqn.h"
#include "wire/um_lbmc_chain.h"

#define MIN_HEADER_LEN 4u
#define FLAG_IGNORE 0x80u /* in byte 2 of every header */
#define TSNI_RECORD_LEN 8u
#define RXREQ_FLAG_TSNI 0x4000u

/* What is known of a header code: defined at all, and the shortest legal length. */
struct header_rule {
    uint8_t known;
    uint8_t min_len;
};

#define KNOWN(code, len) [code] = {1, len}
#define KNOWN_RANGE(first, last) [first... last] = {1, MIN_HEADER_LEN}

/* Headers we only step over need no more than the common minimum. */
static const struct header_rule rules[256] = {
    KNOWN_RANGE(0x03, 0x0B), /* TGIDX, and message-queue headers up to OTID */
    KNOWN_RANGE(0x0E, 0x0F), /* SRCIDX, UMQ_ULB_MSG */
    KNOWN_RANGE(0x12, 0x1E), /* UME registration .. UME_LJ_INFO */
    KNOWN_RANGE(0x30, 0x41), /* UMQ_REG .. UME_PSER */
    KNOWN_RANGE(0x43, 0x49), /* DOMAIN .. UMQ_IDX_CMD_RESP */
    KNOWN_RANGE(0x4C, 0x58), /* TOPIC_MD_INTEREST .. GATEWAY_NAME */
    KNOWN(0x60, 4),          /* AUTHENTICATION */
    KNOWN_RANGE(0x62, 0x63), /* HMAC, UMQ_SID */
    KNOWN(0x65, 4),          /* TOPIC_IDX */
    KNOWN_RANGE(0x67, 0x6A), /* TOPIC_SOURCE .. UME_PSRC_ELECTION_TOKEN */
    KNOWN(UM_LBMC_HDR_EXTOPT, 8),
    KNOWN(UM_LBMC_HDR_FRAG, 16),
    KNOWN(UM_LBMC_HDR_BATCH, 4),
    KNOWN(UM_LBMC_HDR_CTXINSTD, 12),
    KNOWN(UM_LBMC_HDR_CTXINSTR, 12),
    KNOWN(UM_LBMC_HDR_SSF_INIT, 20),
    KNOWN(UM_LBMC_HDR_SSF_CREQ, 16),
    KNOWN(UM_LBMC_HDR_TSNI, 4),
    KNOWN(UM_LBMC_HDR_CTXINST, 12),
    KNOWN(UM_LBMC_HDR_ODOMAIN, 8),
    KNOWN(UM_LBMC_HDR_STREAM, 20),
    KNOWN(UM_LBMC_HDR_DESTINATION, 28),
    KNOWN(UM_LBMC_HDR_TCP_SID, 8),
};

/* REQUEST, TOPICNAME, RXREQ, LJ_INFO and LJI_REQ lie inside a range above: their lengths are checked by their readers.
 */

static uint32_t get_ip(const uint8_t *p)
{
    uint32_t ip;
    memcpy(&ip, p, sizeof ip);
    return ip;
}

static bool read_topic_name(const uint8_t *h, size_t hdr_len, struct um_lbmc_msg *out)
{
    size_t len = hdr_len - MIN_HEADER_LEN;
    const uint8_t *name = h + MIN_HEADER_LEN;
    while (len > 0 && name[len - 1] == 0) {
        len--;
    }
    out->topic_name = (struct um_slice){name, len};
    out->present |= UM_LBMC_HAS_TOPICNAME;
    return len > 0;
}

static bool read_request(const uint8_t *h, size_t hdr_len, struct um_lbmc_msg *out)
{
    if (hdr_len < UM_LBMC_REQUEST_HDR_LEN) {
        return false;
    }
    out->request.qidx = um_get32(h + 4);
    out->request.port = um_get16(h + 8);
    out->request.ip = get_ip(h + 12);
    out->present |= UM_LBMC_HAS_REQUEST;
    return true;
}

static void read_ssf_init(const uint8_t *h, struct um_lbmc_msg *out)
{
    out->ssf_init.flags = h[2] & (uint8_t)~FLAG_IGNORE;
    out->ssf_init.transport = h[3];
    out->ssf_init.transport_idx = um_get32(h + 4);
    out->ssf_init.client_idx = um_get32(h + 8);
    out->ssf_init.port = um_get16(h + 12);
    out->ssf_init.ip = get_ip(h + 16);
    out->present |= UM_LBMC_HAS_SSF_INIT;
}

static void read_ssf_creq(const uint8_t *h, struct um_lbmc_msg *out)
{
    out->ssf_creq.mode = h[3];
    out->ssf_creq.transport_idx = um_get32(h + 4);
    out->ssf_creq.topic_idx = um_get32(h + 8);
    out->ssf_creq.client_idx = um_get32(h + 12);
    out->present |= UM_LBMC_HAS_SSF_CREQ;
}

static bool read_lji_req(const uint8_t *h, size_t hdr_len, struct um_lbmc_msg *out)
{
    if (hdr_len < UM_LBMC_LJI_REQ_LEN) {
        return false;
    }
    struct um_lbmc_lji_req *req = &out->lji_req;
    req->flags = um_get16(h + 2) & (UM_LBMC_LJI_LOW | UM_LBMC_LJI_MAX | UM_LBMC_LJI_OUTSTANDING);
    req->request_idx = um_get32(h + 4);
    req->transport_idx = um_get32(h + 8);
    req->topic_idx = um_get32(h + 12);
    req->ip = get_ip(h + 16);
    req->port = um_get16(h + 20);
    req->low_sqn = um_get32(h + 24);
    req->request_max = um_get32(h + 28);
    req->outstanding_max = um_get32(h + 32);
    out->present |= UM_LBMC_HAS_LJI_REQ;
    return true;
}

static bool read_lj_info(const uint8_t *h, size_t hdr_len, struct um_lbmc_msg *out)
{
    if (hdr_len < UM_LBMC_LJ_INFO_LEN) {
        return false;
    }
    out->lj_info.low = um_get32(h + 4);
    out->lj_info.high = um_get32(h + 8);
    out->lj_info.request_idx = um_get32(h + 12);
    out->present |= UM_LBMC_HAS_LJ_INFO;
    return true;
}

static bool read_rxreq(const uint8_t *h, size_t hdr_len, struct um_lbmc_msg *out)
{
    if (hdr_len < UM_LBMC_RXREQ_LEN) {
        return false;
    }
    out->rxreq.tsni = (um_get16(h + 2) & RXREQ_FLAG_TSNI) != 0;
    out->rxreq.marker = h[3];
    out->rxreq.request_idx = um_get32(h + 4);
    out->rxreq.transport_idx = um_get32(h + 8);
    out->rxreq.id = um_get32(h + 12);
    out->rxreq.sqn = um_get32(h + 16);
    out->rxreq.port = um_get16(h + 20);
    out->rxreq.ip = get_ip(h + 24);
    out->present |= UM_LBMC_HAS_RXREQ;
    return true;
}

static void read_destination(const uint8_t *h, struct um_lbmc_msg *out)
{
    out->destination.domain_id = um_get32(h + 4);
    out->destination.ip = get_ip(h + 8);
    out->destination.port = um_get16(h + 12);
    out->destination.hops_taken = um_get16(h + 14);
    out->destination.orig_domain_id = um_get32(h + 16);
    out->destination.orig_ip = get_ip(h + 20);
    out->destination.orig_port = um_get16(h + 24);
    out->present |= UM_LBMC_HAS_DESTINATION;
}

static bool read_tsni(const uint8_t *h, size_t hdr_len, const uint8_t *end, struct um_lbmc_msg *out)
{
    size_t records = (um_get16(h + 2) & 0x7fffu) * (size_t)TSNI_RECORD_LEN;
    if (records > hdr_len - MIN_HEADER_LEN) {
        return false;
    }
    if ((out->present & UM_LBMC_HAS_TSNI) == 0) {
        out->tsni = (struct um_slice){h + MIN_HEADER_LEN, records};
        out->tsni_chain = (struct um_slice){h, (size_t)(end - h)};
        out->present |= UM_LBMC_HAS_TSNI;
    }
    return true;
}

/* Read the header `code` at h, whose hdr_len bytes lie inside the message that stops at `end`. False: malformed. */
static bool read_header(uint8_t code, const uint8_t *h, size_t hdr_len, const uint8_t *end, struct um_lbmc_msg *out)
{
    if (hdr_len < rules[code].min_len) {
        return false;
    }
    switch (code) {
    case UM_LBMC_HDR_FRAG:
        out->frag.first_sqn = um_get32(h + 4);
        out->frag.offset = um_get32(h + 8);
        out->frag.len = um_get32(h + 12);
        out->present |= UM_LBMC_HAS_FRAG;
        return true;
    case UM_LBMC_HDR_BATCH:
        out->batch_flags = um_get16(h + 2) & (UM_LBMC_BATCH_START | UM_LBMC_BATCH_END);
        out->present |= UM_LBMC_HAS_BATCH;
        return true;
    case UM_LBMC_HDR_REQUEST:
        return read_request(h, hdr_len, out);
    case UM_LBMC_HDR_TOPICNAME:
        return read_topic_name(h, hdr_len, out);
    case UM_LBMC_HDR_APPHDR:
        out->apphdr = (struct um_slice){h + 2, hdr_len - 2};
        out->present |= UM_LBMC_HAS_APPHDR;
        return true;
    case UM_LBMC_HDR_APPHDR_CHAIN:
        out->apphdr_chain = (struct um_slice){h + 3, hdr_len - 3};
        out->present |= UM_LBMC_HAS_APPHDR_CHAIN;
        return um_chain_summarise(out->apphdr_chain, &out->chain_summary);
    case UM_LBMC_HDR_CTXINSTD:
        out->ctxinstd = h + 4;
        out->present |= UM_LBMC_HAS_CTXINSTD;
        return true;
    case UM_LBMC_HDR_CTXINSTR:
        out->ctxinstr = h + 4;
        out->present |= UM_LBMC_HAS_CTXINSTR;
        return true;
    case UM_LBMC_HDR_CTXINST:
        out->ctxinst = h + 4;
        out->present |= UM_LBMC_HAS_CTXINST;
        return true;
    case UM_LBMC_HDR_STREAM:
        out->stream.stream_id = um_get32(h + 4);
        out->stream.sqn = um_get32(h + 8);
        out->stream.ctxinst = h + 12;
        out->present |= UM_LBMC_HAS_STREAM;
        return true;
    case UM_LBMC_HDR_DESTINATION:
        read_destination(h, out);
        return true;
    case UM_LBMC_HDR_ODOMAIN:
        out->odomain = um_get32(h + 4);
        out->present |= UM_LBMC_HAS_ODOMAIN;
        return true;
    case UM_LBMC_HDR_TCP_SID:
        out->tcp_sid = um_get32(h + 4);
        out->present |= UM_LBMC_HAS_TCP_SID;
        return true;
    case UM_LBMC_HDR_SSF_INIT:
        read_ssf_init(h, out);
        return true;
    case UM_LBMC_HDR_SSF_CREQ:
        read_ssf_creq(h, out);
        return true;
    case UM_LBMC_HDR_TSNI:
        return read_tsni(h, hdr_len, end, out);
    case UM_LBMC_HDR_LJI_REQ:
        return read_lji_req(h, hdr_len, out);
    case UM_LBMC_HDR_LJ_INFO:
        return read_lj_info(h, hdr_len, out);
    case UM_LBMC_HDR_RXREQ:
        return read_rxreq(h, hdr_len, out);
    default:
        return rules[code].known || (h[2] & FLAG_IGNORE) != 0;
    }
}

static bool is_end(uint8_t code)
{
    return code == UM_LBMC_HDR_DATA || code == UM_LBMC_HDR_NONE;
}

static bool frag_is_valid(const struct um_lbmc_msg *msg)
{
    return msg->frag.len != 0 && msg->frag.offset <= msg->frag.len &&
           msg->payload.len <= msg->frag.len - msg->frag.offset && !um_sqn_newer(msg->frag.first_sqn, msg->sqn);
}

/* Length of the fixed header of this type, 0 for a version or type that does not exist. */
static size_t fixed_len(uint8_t ver_type)
{
    switch (ver_type) {
    case UM_LBMC_MESSAGE:
    case UM_LBMC_PRORX:
    case UM_LBMC_RETRANS:
        return UM_LBMC_DATA_HDR_LEN;
    case UM_LBMC_CONTROL:
    case UM_LBMC_EOT:
        return UM_LBMC_CONTROL_HDR_LEN;
    default:
        return 0;
    }
}

/* Walk the chain that starts at `pos`. A data message whose announced header is missing is malformed, a control message
 * just ends there. */
static bool walk_chain(const uint8_t *data, size_t pos, struct um_lbmc_msg *out)
{
    size_t msglen = out->msglen;
    bool full = pos == UM_LBMC_DATA_HDR_LEN;
    uint8_t code = out->next_hdr;
    while (!is_end(code)) {
        if (msglen - pos < MIN_HEADER_LEN) {
            if (full) {
                return false;
            }
            break;
        }
        const uint8_t *h = data + pos;
        size_t hdr_len = h[1];
        if (hdr_len < MIN_HEADER_LEN || hdr_len > msglen - pos || !read_header(code, h, hdr_len, data + msglen, out)) {
            return false;
        }
        code = h[0];
        pos += hdr_len;
    }
    out->payload = (struct um_slice){data + pos, msglen - pos};
    return !full || (out->present & UM_LBMC_HAS_FRAG) == 0 || frag_is_valid(out);
}

/* Nothing but a chain of elements in front of the payload: what messages with a channel, properties, a number of hot
 * failover or application headers are. False: it is something else, or malformed. */
static inline bool decode_chained(const uint8_t *data, size_t len, struct um_lbmc_msg *out)
{
    const uint8_t *chain = data + UM_LBMC_DATA_HDR_LEN;
    if (len < UM_LBMC_DATA_HDR_LEN + MIN_HEADER_LEN || data[0] != UM_LBMC_MESSAGE ||
        data[1] != UM_LBMC_HDR_APPHDR_CHAIN || !is_end(chain[0])) {
        return false;
    }
    size_t msglen = um_get16(data + 2), headers = UM_LBMC_DATA_HDR_LEN + (size_t)chain[1];
    out->apphdr_chain = (struct um_slice){chain + 3, (size_t)chain[1] - 3};
    if (msglen > len || headers > msglen || chain[1] < MIN_HEADER_LEN ||
        !um_chain_summarise(out->apphdr_chain, &out->chain_summary)) {
        return false;
    }
    out->type = UM_LBMC_MESSAGE;
    out->next_hdr = UM_LBMC_HDR_APPHDR_CHAIN;
    out->msglen = (uint16_t)msglen;
    out->tidx = um_get32(data + 4);
    out->sqn = um_get32(data + 8);
    out->present = UM_LBMC_HAS_APPHDR_CHAIN;
    out->payload = (struct um_slice){data + headers, msglen - headers};
    return true;
}

enum um_lbmc_rc um_lbmc_decode_chain(const uint8_t *data, size_t len, struct um_lbmc_msg *out)
{
    if (decode_chained(data, len, out)) {
        return UM_LBMC_OK;
    }
    if (len < UM_LBMC_CONTROL_HDR_LEN) {
        return UM_LBMC_SHORT;
    }
    size_t fixed = fixed_len(data[0]);
    uint16_t msglen = um_get16(data + 2);
    if (fixed == 0 || msglen < fixed) {
        return UM_LBMC_FRAMING;
    }
    if (msglen > len) {
        return UM_LBMC_SHORT;
    }
    out->type = data[0];
    out->next_hdr = data[1];
    out->msglen = msglen;
    out->present = 0;
    out->payload = (struct um_slice){data + msglen, 0};
    out->tidx = fixed == UM_LBMC_DATA_HDR_LEN ? um_get32(data + 4) : 0;
    out->sqn = fixed == UM_LBMC_DATA_HDR_LEN ? um_get32(data + 8) : 0;
    return walk_chain(data, fixed, out) ? UM_LBMC_OK : UM_LBMC_BAD;
}

static bool is_addressing(uint8_t code)
{
    switch (code) {
    case UM_LBMC_HDR_STREAM:
    case UM_LBMC_HDR_DESTINATION:
    case UM_LBMC_HDR_CTXINST:
    case UM_LBMC_HDR_CTXINSTD:
    case UM_LBMC_HDR_CTXINSTR:
    case UM_LBMC_HDR_ODOMAIN:
    case UM_LBMC_HDR_DOMAIN:
        return true;
    default:
        return false;
    }
}

uint8_t um_lbmc_subject(const struct um_lbmc_msg *msg)
{
    const uint8_t *end = msg->payload.ptr + msg->payload.len; /* of the message */
    const uint8_t *h = end - msg->msglen + fixed_len(msg->type);
    uint8_t code = msg->next_hdr;
    while (is_addressing(code) && end - h >= (ptrdiff_t)MIN_HEADER_LEN && h[1] >= MIN_HEADER_LEN) {
        code = h[0];
        h += h[1] <= end - h ? h[1] : end - h;
    }
    return code;
}

/* Offset of the next TSNI header behind the one at `pos`, or 0. The chain was checked by the decoder. */
static size_t next_tsni_header(const struct um_slice *chain, size_t pos)
{
    for (;;) {
        uint8_t code = chain->ptr[pos];
        pos += chain->ptr[pos + 1];
        if (is_end(code) || chain->len - pos < MIN_HEADER_LEN) {
            return 0;
        }
        if (code == UM_LBMC_HDR_TSNI) {
            return pos;
        }
    }
}

bool um_lbmc_tsni_next(const struct um_lbmc_msg *msg, struct um_lbmc_tsni_iter *iter, uint32_t *tidx,
                       uint32_t *last_sqn)
{
    if ((msg->present & UM_LBMC_HAS_TSNI) == 0) {
        return false;
    }
    const struct um_slice *chain = &msg->tsni_chain;
    while (iter->record >= (um_get16(chain->ptr + iter->header + 2) & 0x7fffu)) {
        size_t next = next_tsni_header(chain, iter->header);
        if (next == 0) {
            return false;
        }
        iter->header = next;
        iter->record = 0;
    }
    const uint8_t *p = chain->ptr + iter->header + MIN_HEADER_LEN + iter->record * TSNI_RECORD_LEN;
    *tidx = um_get32(p);
    *last_sqn = um_get32(p + 4);
    iter->record++;
    return true;
}

static void put_prefix(uint8_t *p, uint8_t next, uint8_t hdr_len, uint16_t flags)
{
    p[0] = next;
    p[1] = hdr_len;
    um_put16(p + 2, flags);
}

size_t um_lbmc_put_frag(uint8_t *p, uint8_t next, uint32_t first_sqn, uint32_t offset, uint32_t len)
{
    put_prefix(p, next, UM_LBMC_FRAG_HDR_LEN, 0);
    um_put32(p + 4, first_sqn);
    um_put32(p + 8, offset);
    um_put32(p + 12, len);
    return UM_LBMC_FRAG_HDR_LEN;
}

size_t um_lbmc_put_batch(uint8_t *p, uint8_t next, uint16_t flags)
{
    put_prefix(p, next, UM_LBMC_BATCH_HDR_LEN, flags);
    return UM_LBMC_BATCH_HDR_LEN;
}

size_t um_lbmc_put_stream(uint8_t *p, uint8_t next, uint32_t stream_id, uint32_t sqn, const uint8_t ctxinst[8])
{
    put_prefix(p, next, UM_LBMC_STREAM_HDR_LEN, 0);
    um_put32(p + 4, stream_id);
    um_put32(p + UM_LBMC_STREAM_SQN, sqn);
    memcpy(p + 12, ctxinst, 8);
    return UM_LBMC_STREAM_HDR_LEN;
}

size_t um_lbmc_put_destination(uint8_t *p, uint8_t next, uint32_t domain_id, uint32_t ip, uint16_t port,
                               uint32_t orig_domain_id, uint32_t orig_ip, uint16_t orig_port)
{
    put_prefix(p, next, UM_LBMC_DESTINATION_HDR_LEN, 0);
    um_put32(p + 4, domain_id);
    memcpy(p + 8, &ip, 4);
    um_put16(p + 12, port);
    um_put16(p + 14, 0);
    um_put32(p + 16, orig_domain_id);
    memcpy(p + 20, &orig_ip, 4);
    um_put16(p + 24, orig_port);
    um_put16(p + 26, 0);
    return UM_LBMC_DESTINATION_HDR_LEN;
}

size_t um_lbmc_put_request(uint8_t *p, uint8_t next, uint32_t qidx, uint32_t ip, uint16_t port)
{
    put_prefix(p, next, UM_LBMC_REQUEST_HDR_LEN, 0);
    um_put32(p + 4, qidx);
    um_put16(p + 8, port);
    um_put16(p + 10, 0);
    memcpy(p + 12, &ip, 4);
    return UM_LBMC_REQUEST_HDR_LEN;
}

size_t um_lbmc_put_topicname(uint8_t *p, uint8_t next, const char *topic, size_t len)
{
    size_t total = 4 + len + 1;
    put_prefix(p, next, (uint8_t)total, 0);
    memcpy(p + 4, topic, len);
    p[4 + len] = '\0';
    return total;
}

size_t um_lbmc_put_ctxinst(uint8_t *p, uint8_t next, const uint8_t ctxinst[8])
{
    put_prefix(p, next, UM_LBMC_CTXINST_HDR_LEN, 0);
    memcpy(p + 4, ctxinst, 8);
    return UM_LBMC_CTXINST_HDR_LEN;
}

size_t um_lbmc_put_lji_req(uint8_t *p, uint8_t next, const struct um_lbmc_lji_req *req)
{
    put_prefix(p, next, UM_LBMC_LJI_REQ_LEN, req->flags);
    um_put32(p + 4, req->request_idx);
    um_put32(p + 8, req->transport_idx);
    um_put32(p + 12, req->topic_idx);
    memcpy(p + 16, &req->ip, 4);
    um_put16(p + 20, req->port);
    um_put16(p + 22, 0);
    um_put32(p + 24, (req->flags & UM_LBMC_LJI_LOW) != 0 ? req->low_sqn : 0);
    um_put32(p + 28, (req->flags & UM_LBMC_LJI_MAX) != 0 ? req->request_max : 0);
    um_put32(p + 32, (req->flags & UM_LBMC_LJI_OUTSTANDING) != 0 ? req->outstanding_max : 0);
    return UM_LBMC_LJI_REQ_LEN;
}

size_t um_lbmc_put_lj_info(uint8_t *p, uint8_t next, const struct um_lbmc_lj_info *info)
{
    put_prefix(p, next, UM_LBMC_LJ_INFO_LEN, 0);
    um_put32(p + 4, info->low);
    um_put32(p + 8, info->high);
    um_put32(p + 12, info->request_idx);
    return UM_LBMC_LJ_INFO_LEN;
}

size_t um_lbmc_put_rxreq(uint8_t *p, uint8_t next, const struct um_lbmc_rxreq *req)
{
    put_prefix(p, next, UM_LBMC_RXREQ_LEN, (uint16_t)((req->tsni ? RXREQ_FLAG_TSNI : 0) | req->marker));
    um_put32(p + 4, req->request_idx);
    um_put32(p + 8, req->transport_idx);
    um_put32(p + 12, req->id);
    um_put32(p + 16, req->sqn);
    um_put16(p + 20, req->port);
    um_put16(p + 22, 0);
    memcpy(p + 24, &req->ip, 4);
    return UM_LBMC_RXREQ_LEN;
}

size_t um_lbmc_encode_tcp_sid(uint8_t out[12], uint32_t session_id)
{
    um_lbmc_put_control_hdr(out, UM_LBMC_HDR_TCP_SID, 12);
    put_prefix(out + 4, UM_LBMC_HDR_NONE, 8, 0);
    um_put32(out + 8, session_id);
    return 12;
}

size_t um_lbmc_encode_ssf_init(uint8_t out[24], const struct um_lbmc_ssf_init *init)
{
    um_lbmc_put_control_hdr(out, UM_LBMC_HDR_SSF_INIT, 24);
    out[4] = UM_LBMC_HDR_NONE;
    out[5] = 20;
    out[6] = init->flags;
    out[7] = init->transport;
    um_put32(out + 8, init->transport_idx);
    um_put32(out + 12, init->client_idx);
    um_put16(out + 16, init->port);
    um_put16(out + 18, 0);
    memcpy(out + 20, &init->ip, 4);
    return 24;
}

size_t um_lbmc_encode_ssf_creq(uint8_t out[20], const struct um_lbmc_ssf_creq *creq)
{
    um_lbmc_put_control_hdr(out, UM_LBMC_HDR_SSF_CREQ, 20);
    out[4] = UM_LBMC_HDR_NONE;
    out[5] = 16;
    out[6] = 0;
    out[7] = creq->mode;
    um_put32(out + 8, creq->transport_idx);
    um_put32(out + 12, creq->topic_idx);
    um_put32(out + 16, creq->client_idx);
    return 20;
}

size_t um_lbmc_encode_tsni(uint8_t *out, const uint32_t *tidx, const uint32_t *last_sqn, size_t count)
{
    size_t hdr_len = MIN_HEADER_LEN + TSNI_RECORD_LEN * count;
    um_lbmc_put_control_hdr(out, UM_LBMC_HDR_TSNI, (uint16_t)(UM_LBMC_CONTROL_HDR_LEN + hdr_len));
    put_prefix(out + 4, UM_LBMC_HDR_NONE, (uint8_t)hdr_len, (uint16_t)count);
    for (size_t i = 0; i < count; i++) {
        um_put32(out + 8 + TSNI_RECORD_LEN * i, tidx[i]);
        um_put32(out + 12 + TSNI_RECORD_LEN * i, last_sqn[i]);
    }
    return UM_LBMC_CONTROL_HDR_LEN + hdr_len;
}
