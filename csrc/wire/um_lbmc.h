/* LBMC: the message layer carried by every transport (docs/wire.md).
 * Pure functions on bytes; decoders check every length and never read beyond
 * the given slice. Encoding of the two fixed headers is inline because it is on
 * the send path. */
#ifndef UM_WIRE_LBMC_H
#define UM_WIRE_LBMC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/um_bytes.h"
#include "wire/um_lbmc_chain.h"

#define UM_LBMC_CONTROL_HDR_LEN 4u
#define UM_LBMC_DATA_HDR_LEN 12u
#define UM_LBMC_FRAG_HDR_LEN 16u
#define UM_LBMC_BATCH_HDR_LEN 4u
#define UM_LBMC_CTXINST_HDR_LEN 12u /* CTXINST, CTXINSTD, CTXINSTR */
#define UM_LBMC_REQUEST_HDR_LEN 16u
#define UM_LBMC_STREAM_HDR_LEN 20u
#define UM_LBMC_STREAM_SQN 8u /* where its number is */
#define UM_LBMC_DESTINATION_HDR_LEN 28u
#define UM_LBMC_MAX_MSGLEN 65535u
#define UM_LBMC_TSNI_MAX 31u          /* topics per TSNI header */
#define UM_LBMC_TSNI_NONE 0xFFFFFFFFu /* last sqn of a topic that sent nothing yet */

enum um_lbmc_type {
    UM_LBMC_MESSAGE = 0x0,
    UM_LBMC_EOT = 0x1,
    UM_LBMC_PRORX = 0x2,
    UM_LBMC_CONTROL = 0x8,
    UM_LBMC_RETRANS = 0xA
};

enum um_lbmc_header {
    UM_LBMC_HDR_DATA = 0x00,
    UM_LBMC_HDR_FRAG = 0x01,
    UM_LBMC_HDR_BATCH = 0x02,
    UM_LBMC_HDR_REQUEST = 0x04,
    UM_LBMC_HDR_TOPICNAME = 0x05,
    UM_LBMC_HDR_APPHDR = 0x06,
    UM_LBMC_HDR_APPHDR_CHAIN = 0x07,
    UM_LBMC_HDR_CTXINSTD = 0x0C,
    UM_LBMC_HDR_CTXINSTR = 0x0D,
    UM_LBMC_HDR_SRCIDX = 0x0E,
    UM_LBMC_HDR_SSF_INIT = 0x10,
    UM_LBMC_HDR_SSF_CREQ = 0x11,
    UM_LBMC_HDR_RXREQ = 0x15,
    UM_LBMC_HDR_LJ_INFO = 0x1E,
    UM_LBMC_HDR_TSNI = 0x20,
    UM_LBMC_HDR_CTXINST = 0x42,
    UM_LBMC_HDR_DOMAIN = 0x43,
    UM_LBMC_HDR_ODOMAIN = 0x4A,
    UM_LBMC_HDR_STREAM = 0x4B,
    UM_LBMC_HDR_LJI_REQ = 0x4E,
    UM_LBMC_HDR_DESTINATION = 0x64,
    UM_LBMC_HDR_TCP_SID = 0x6B,
    UM_LBMC_HDR_EXTOPT = 0xFE,
    UM_LBMC_HDR_NONE = 0xFF
    /* the rest of the code table is in um_lbmc.c: known codes are stepped over */
};

#define UM_LBMC_BATCH_START 0x0002u
#define UM_LBMC_BATCH_END 0x0001u

/* Which of the optional parts below are filled. */
enum um_lbmc_present {
    UM_LBMC_HAS_FRAG = 1u << 0,
    UM_LBMC_HAS_BATCH = 1u << 1,
    UM_LBMC_HAS_REQUEST = 1u << 2,
    UM_LBMC_HAS_TOPICNAME = 1u << 3,
    UM_LBMC_HAS_APPHDR = 1u << 4,
    UM_LBMC_HAS_APPHDR_CHAIN = 1u << 5,
    UM_LBMC_HAS_CTXINSTD = 1u << 6,
    UM_LBMC_HAS_CTXINSTR = 1u << 7,
    UM_LBMC_HAS_CTXINST = 1u << 8,
    UM_LBMC_HAS_STREAM = 1u << 9,
    UM_LBMC_HAS_DESTINATION = 1u << 10,
    UM_LBMC_HAS_ODOMAIN = 1u << 11,
    UM_LBMC_HAS_TCP_SID = 1u << 12,
    UM_LBMC_HAS_SSF_INIT = 1u << 13,
    UM_LBMC_HAS_SSF_CREQ = 1u << 14,
    UM_LBMC_HAS_TSNI = 1u << 15,
    UM_LBMC_HAS_STAMP = 1u << 16,   /* not of the decoder: the transport knows when it arrived */
    UM_LBMC_LATE_JOINED = 1u << 17, /* nor these: recovery brought it, for a late joiner */
    UM_LBMC_RECOVERED = 1u << 18,   /* or to fill a gap that the transport left */
    UM_LBMC_HAS_LJI_REQ = 1u << 19,
    UM_LBMC_HAS_LJ_INFO = 1u << 20,
    UM_LBMC_HAS_RXREQ = 1u << 21
};
#define UM_LBMC_OFF_TRANSPORT (UM_LBMC_LATE_JOINED | UM_LBMC_RECOVERED)

struct um_lbmc_ssf_init {
    uint8_t flags; /* 0x40 default inclusions, 0x20 default exclusions */
    uint8_t transport;
    uint32_t transport_idx, client_idx;
    uint16_t port;
    uint32_t ip; /* network order, as struct in_addr */
};
struct um_lbmc_ssf_creq {
    uint8_t mode; /* 0 include, 1 exclude */
    uint32_t transport_idx, topic_idx, client_idx;
};

/* Late join and recovery. What does the source have of a topic? */
struct um_lbmc_lji_req {
    uint16_t flags; /* enum um_lbmc_lji_flags: which of the last three are there */
    uint32_t request_idx, transport_idx, topic_idx;
    uint32_t ip;   /* network order: where the answer is to go; 0: where the request came from */
    uint16_t port; /* host order: request port */
    uint32_t low_sqn, request_max, outstanding_max;
};
enum um_lbmc_lji_flags { UM_LBMC_LJI_LOW = 1u, UM_LBMC_LJI_MAX = 2u, UM_LBMC_LJI_OUTSTANDING = 4u };
/* The answer: high is low - 1 when it has nothing. */
struct um_lbmc_lj_info {
    uint32_t low, high;
    uint32_t request_idx;
};
/* Send this number again, or tell the last one. */
struct um_lbmc_rxreq {
    bool tsni;
    uint8_t marker; /* to a store: which one it is; else 0 */
    uint32_t request_idx, transport_idx;
    uint32_t id; /* topic index; to a store: registration */
    uint32_t sqn;
    uint32_t ip;   /* as above */
    uint16_t port; /* host order */
};
#define UM_LBMC_LJI_REQ_LEN 36u
#define UM_LBMC_LJ_INFO_LEN 16u
#define UM_LBMC_RXREQ_LEN 28u
#define UM_LBMC_RXREQ_SQN 16u /* where its sequence number is */

/* One decoded message. Slices point into the input. */
struct um_lbmc_msg {
    uint8_t type; /* enum um_lbmc_type */
    uint8_t next_hdr;
    uint16_t msglen;
    uint32_t tidx, sqn; /* full header only */
    uint32_t present;   /* enum um_lbmc_present */
    struct um_slice payload;
    uint64_t stamp_ns; /* arrival at this host, wall clock */
    struct {
        uint32_t first_sqn, offset, len;
    } frag;
    uint16_t batch_flags;
    struct {
        uint32_t qidx;
        uint16_t port;
        uint32_t ip; /* network order */
    } request;
    struct um_slice topic_name;                   /* trailing NULs stripped */
    struct um_slice apphdr;                       /* 16-bit code (mask 0x7fff) and data */
    struct um_slice apphdr_chain;                 /* type of the first element (1 byte), then the elements */
    struct um_chain_summary chain_summary;        /* of it */
    const uint8_t *ctxinstd, *ctxinstr, *ctxinst; /* 8 bytes each */
    struct {
        uint32_t stream_id, sqn;
        const uint8_t *ctxinst;
    } stream;
    struct {
        uint32_t domain_id, ip;
        uint16_t port, hops_taken;
        uint32_t orig_domain_id, orig_ip;
        uint16_t orig_port;
    } destination; /* addresses in network order */
    uint32_t odomain;
    uint32_t tcp_sid;
    struct um_lbmc_ssf_init ssf_init;
    struct um_lbmc_ssf_creq ssf_creq;
    struct um_lbmc_lji_req lji_req;
    struct um_lbmc_lj_info lj_info;
    struct um_lbmc_rxreq rxreq;
    struct um_slice tsni;       /* 8-byte records of the first TSNI header: tidx, last sqn */
    struct um_slice tsni_chain; /* that header and all that follows it: for um_lbmc_tsni_next() */
};

enum um_lbmc_rc {
    UM_LBMC_OK = 0,
    UM_LBMC_SHORT,   /* fewer bytes than msglen (or than 4): a stream reader waits for more */
    UM_LBMC_FRAMING, /* version, type or msglen impossible: streams close, datagrams drop the rest */
    UM_LBMC_BAD      /* well framed but malformed or unknown header: drop this message, msglen is valid */
};

/* The whole decoder: any type, any chain of extension headers. Fills only what `present` names. */
enum um_lbmc_rc um_lbmc_decode_chain(const uint8_t *data, size_t len, struct um_lbmc_msg *out);

/* A message in front of whose payload is one element of 4 bytes: a channel, the length of properties or a number of hot
 * failover alone. False: it is something else, or malformed. Hot path. */
static inline bool um_lbmc_decode_single(const uint8_t *data, size_t len, struct um_lbmc_msg *out)
{
    const uint8_t *chain = data + UM_LBMC_DATA_HDR_LEN;
    const size_t headers = UM_LBMC_DATA_HDR_LEN + UM_CHAIN_SINGLE_U32;
    if (len < headers || data[0] != UM_LBMC_MESSAGE || data[1] != UM_LBMC_HDR_APPHDR_CHAIN ||
        !um_chain_is_single_u32(chain)) {
        return false;
    }
    uint16_t msglen = um_get16(data + 2);
    uint32_t value = um_get32(chain + UM_CHAIN_HDR_LEN + UM_CHAIN_ELEM_LEN);
    if (msglen > len || msglen < headers) {
        return false;
    }
    switch (chain[3]) {
    case UM_CHAIN_CHANNEL:
        out->chain_summary.has = UM_CHAIN_HAS_CHANNEL;
        out->chain_summary.channel = value;
        break;
    case UM_CHAIN_PROPERTIES_LEN:
        out->chain_summary.has = UM_CHAIN_HAS_PROPERTIES;
        out->chain_summary.properties_len = value;
        break;
    case UM_CHAIN_HF_SQN:
        out->chain_summary.has = 0;
        break;
    default:
        return false;
    }
    out->type = UM_LBMC_MESSAGE;
    out->next_hdr = UM_LBMC_HDR_APPHDR_CHAIN;
    out->msglen = msglen;
    out->tidx = um_get32(data + 4);
    out->sqn = um_get32(data + 8);
    out->present = UM_LBMC_HAS_APPHDR_CHAIN;
    out->payload = (struct um_slice){data + headers, msglen - headers};
    out->apphdr_chain = (struct um_slice){chain + 3, UM_CHAIN_SINGLE_U32 - 3};
    return true;
}

/* Decode the message at the start of data[0..len). out->msglen is set for OK and BAD. The common case (MESSAGE with no
 * extension header) touches only the first 12 bytes and the fields type..payload; `present` is then 0. */
static inline enum um_lbmc_rc um_lbmc_decode(const uint8_t *data, size_t len, struct um_lbmc_msg *out)
{
    if (len >= UM_LBMC_DATA_HDR_LEN && data[0] == UM_LBMC_MESSAGE && data[1] == UM_LBMC_HDR_DATA) {
        uint16_t msglen = um_get16(data + 2);
        if (msglen >= UM_LBMC_DATA_HDR_LEN && msglen <= len) {
            out->type = UM_LBMC_MESSAGE;
            out->next_hdr = UM_LBMC_HDR_DATA;
            out->msglen = msglen;
            out->tidx = um_get32(data + 4);
            out->sqn = um_get32(data + 8);
            out->present = 0;
            out->payload.ptr = data + UM_LBMC_DATA_HDR_LEN;
            out->payload.len = (size_t)msglen - UM_LBMC_DATA_HDR_LEN;
            return UM_LBMC_OK;
        }
    }
    return um_lbmc_decode_single(data, len, out) ? UM_LBMC_OK : um_lbmc_decode_chain(data, len, out);
}

/* Code of the first header of a message decoded OK that is not about its way (STREAM, DESTINATION, context instances,
 * domains): what a control message is about. UM_LBMC_HDR_NONE or _DATA: there is none. */
uint8_t um_lbmc_subject(const struct um_lbmc_msg *msg);

/* Walk the records of all TSNI headers of a message decoded OK. `iter` starts zeroed. False: no more. */
struct um_lbmc_tsni_iter {
    size_t header;   /* offset in tsni_chain of the present TSNI header */
    uint32_t record; /* next record in it */
};
bool um_lbmc_tsni_next(const struct um_lbmc_msg *msg, struct um_lbmc_tsni_iter *iter, uint32_t *tidx,
                       uint32_t *last_sqn);

static inline void um_lbmc_put_data_hdr(uint8_t *p, uint8_t next_hdr, uint16_t msglen, uint32_t tidx, uint32_t sqn)
{
    p[0] = UM_LBMC_MESSAGE;
    p[1] = next_hdr;
    um_put16(p + 2, msglen);
    um_put32(p + 4, tidx);
    um_put32(p + 8, sqn);
}

static inline void um_lbmc_put_control_hdr(uint8_t *p, uint8_t next_hdr, uint16_t msglen)
{
    p[0] = UM_LBMC_CONTROL;
    p[1] = next_hdr;
    um_put16(p + 2, msglen);
}

/* Extension headers: write at p, return the length. `next` is the code of the header that follows. */
size_t um_lbmc_put_frag(uint8_t *p, uint8_t next, uint32_t first_sqn, uint32_t offset, uint32_t len);
size_t um_lbmc_put_batch(uint8_t *p, uint8_t next, uint16_t flags);
size_t um_lbmc_put_stream(uint8_t *p, uint8_t next, uint32_t stream_id, uint32_t sqn, const uint8_t ctxinst[8]);
size_t um_lbmc_put_destination(uint8_t *p, uint8_t next, uint32_t domain_id, uint32_t ip, uint16_t port,
                               uint32_t orig_domain_id, uint32_t orig_ip, uint16_t orig_port);
size_t um_lbmc_put_request(uint8_t *p, uint8_t next, uint32_t qidx, uint32_t ip, uint16_t port);
size_t um_lbmc_put_topicname(uint8_t *p, uint8_t next, const char *topic, size_t len); /* a NUL is added; len <= 246 */
size_t um_lbmc_put_ctxinst(uint8_t *p, uint8_t next, const uint8_t ctxinst[8]); /* CTXINST, CTXINSTD and CTXINSTR */

/* Records of control messages, without the fixed header; the same. */
size_t um_lbmc_put_lji_req(uint8_t *p, uint8_t next, const struct um_lbmc_lji_req *req);
size_t um_lbmc_put_lj_info(uint8_t *p, uint8_t next, const struct um_lbmc_lj_info *info);
size_t um_lbmc_put_rxreq(uint8_t *p, uint8_t next, const struct um_lbmc_rxreq *req);

/* Whole control messages: return the length written (buffer sizes noted). */
size_t um_lbmc_encode_tcp_sid(uint8_t out[12], uint32_t session_id);
size_t um_lbmc_encode_ssf_init(uint8_t out[24], const struct um_lbmc_ssf_init *init);
size_t um_lbmc_encode_ssf_creq(uint8_t out[20], const struct um_lbmc_ssf_creq *creq);
/* count 1..UM_LBMC_TSNI_MAX; out has room for 8 + 8*count. */
size_t um_lbmc_encode_tsni(uint8_t *out, const uint32_t *tidx, const uint32_t *last_sqn, size_t count);

#endif
