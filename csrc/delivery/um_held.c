/* Held messages. The decoded structure is several times as large as what delivery uses of it, and a stream may hold
 * hundreds of thousands. */
#include "delivery/um_held.h"

#include <assert.h>
#include <string.h>

#define KEPT                                                                                                           \
    (UM_LBMC_HAS_FRAG | UM_LBMC_HAS_BATCH | UM_LBMC_HAS_REQUEST | UM_LBMC_HAS_CTXINSTR | UM_LBMC_HAS_APPHDR_CHAIN |    \
     UM_LBMC_HAS_APPHDR | UM_LBMC_HAS_TOPICNAME | UM_LBMC_HAS_STAMP | UM_LBMC_OFF_TRANSPORT)
/* Room is for one: immediate messages have the topic name, what sources send has the chain, or one header of old. */
#define PARTS ((uint32_t)(UM_LBMC_HAS_TOPICNAME | UM_LBMC_HAS_APPHDR_CHAIN | UM_LBMC_HAS_APPHDR))
#define PARTS_OF_SOURCES (PARTS & ~(uint32_t)UM_LBMC_HAS_TOPICNAME)
#define CHAIN_AT 3u /* where they begin in their headers */
#define APPHDR_AT 2u
#define INSTANCE_LEN 8u

static_assert(sizeof(struct um_held) == 64, "one cache line");

/* They lie in front of the payload, in the same message. 0: not so. */
static uint16_t back_to(const struct um_lbmc_msg *msg, const uint8_t *header)
{
    uintptr_t back = (uintptr_t)msg->payload.ptr - (uintptr_t)header;
    return back > UINT16_MAX ? 0 : (uint16_t)back;
}

static uint32_t part_of(uint32_t present)
{
    static const uint32_t order[] = {UM_LBMC_HAS_TOPICNAME, UM_LBMC_HAS_APPHDR_CHAIN, UM_LBMC_HAS_APPHDR};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if ((present & order[i]) != 0) {
            return order[i];
        }
    }
    return 0;
}

static void keep_places(struct um_held *held, const struct um_lbmc_msg *msg)
{
    uint32_t part = part_of(held->present);
    const uint8_t *at = part == UM_LBMC_HAS_TOPICNAME      ? msg->topic_name.ptr
                        : part == UM_LBMC_HAS_APPHDR_CHAIN ? msg->apphdr_chain.ptr
                                                           : msg->apphdr.ptr;
    held->present = (held->present & ~PARTS) | part;
    if (part != 0 && (held->part_back = back_to(msg, at)) == 0) {
        held->present &= ~PARTS;
    }
    if ((held->present & UM_LBMC_HAS_CTXINSTR) != 0 && (held->instance_back = back_to(msg, msg->ctxinstr)) == 0) {
        held->present &= ~(uint32_t)UM_LBMC_HAS_CTXINSTR;
    }
}

/* The whole header of the part, which holds its length. */
static struct um_slice header_of_part(const struct um_lbmc_msg *msg, uint32_t part)
{
    struct um_slice none = {0};
    return part == UM_LBMC_HAS_APPHDR_CHAIN
               ? (struct um_slice){msg->apphdr_chain.ptr - CHAIN_AT, msg->apphdr_chain.len + CHAIN_AT}
           : part == UM_LBMC_HAS_APPHDR ? (struct um_slice){msg->apphdr.ptr - APPHDR_AT, msg->apphdr.len + APPHDR_AT}
                                        : none;
}

/* Out of shared memory, which carries no topic names: the part, the payload, the instance. */
static bool keep_copy(struct um_held *held, const struct um_lbmc_msg *msg)
{
    bool has_instance = (held->present & UM_LBMC_HAS_CTXINSTR) != 0;
    uint32_t part = part_of(held->present & PARTS_OF_SOURCES);
    struct um_slice header = header_of_part(msg, part);
    held->present = (held->present & ~PARTS) | part;
    held->buf = um_buf_alloc(header.len + msg->payload.len + (has_instance ? INSTANCE_LEN : 0));
    if (held->buf == NULL) {
        return false;
    }
    held->data = held->buf->data + header.len;
    if (header.len > 0) {
        memcpy(held->buf->data, header.ptr, header.len);
        held->part_back = (uint16_t)(header.len - (part == UM_LBMC_HAS_APPHDR ? APPHDR_AT : CHAIN_AT));
    }
    if (msg->payload.len > 0) {
        memcpy(held->buf->data + header.len, msg->payload.ptr, msg->payload.len);
    }
    if (has_instance) {
        memcpy(held->buf->data + header.len + msg->payload.len, msg->ctxinstr, INSTANCE_LEN);
    }
    return true;
}

bool um_held_keep(struct um_held *held, const struct um_lbmc_msg *msg, struct um_buf *buf)
{
    *held = (struct um_held){
        .buf = buf,
        .data = msg->payload.ptr,
        .len = (uint32_t)msg->payload.len,
        .sqn = msg->sqn,
        .present = msg->present & KEPT,
    };
    if ((held->present & UM_LBMC_HAS_STAMP) != 0) {
        held->stamp_ns = msg->stamp_ns;
    }
    if ((held->present & UM_LBMC_HAS_FRAG) != 0) {
        held->frag.first_sqn = msg->frag.first_sqn;
        held->frag.offset = msg->frag.offset;
        held->frag.len = msg->frag.len;
    }
    if ((held->present & UM_LBMC_HAS_BATCH) != 0) {
        held->batch_flags = msg->batch_flags;
    }
    if ((held->present & UM_LBMC_HAS_REQUEST) != 0) {
        held->request_qidx = msg->request.qidx;
        held->request_ip = msg->request.ip;
        held->request_port = msg->request.port;
    }
    if (buf == NULL) {
        return keep_copy(held, msg);
    }
    if ((held->present & (PARTS | UM_LBMC_HAS_CTXINSTR)) != 0) {
        keep_places(held, msg);
    }
    um_buf_ref(buf);
    return true;
}

/* By the length of its header, without the NULs behind it, as the decoder reads it. */
static struct um_slice topic_at(const uint8_t *name)
{
    size_t len = (size_t)name[-3] - 4;
    while (len > 0 && name[len - 1] == '\0') {
        len--;
    }
    return (struct um_slice){name, len};
}

void um_held_view(const struct um_held *held, struct um_lbmc_msg *out)
{
    out->type = (held->present & UM_LBMC_OFF_TRANSPORT) != 0 ? UM_LBMC_RETRANS : UM_LBMC_MESSAGE;
    out->next_hdr = UM_LBMC_HDR_DATA;
    out->msglen = 0;
    out->tidx = 0; /* the stream knows it */
    out->sqn = held->sqn;
    out->present = held->present;
    out->payload = (struct um_slice){held->data, held->len};
    out->stamp_ns = held->stamp_ns;
    out->frag.first_sqn = held->frag.first_sqn;
    out->frag.offset = held->frag.offset;
    out->frag.len = held->frag.len;
    out->batch_flags = held->batch_flags;
    out->request.qidx = held->request_qidx;
    out->request.ip = held->request_ip;
    out->request.port = held->request_port;
    if ((held->present & UM_LBMC_HAS_APPHDR_CHAIN) != 0) {
        const uint8_t *chain = held->data - held->part_back;
        out->apphdr_chain = (struct um_slice){chain, (size_t)chain[-2] - CHAIN_AT}; /* by the length of its header */
        um_chain_summarise(out->apphdr_chain, &out->chain_summary);                 /* it was well-formed as it came */
    }
    if ((held->present & UM_LBMC_HAS_APPHDR) != 0) {
        const uint8_t *apphdr = held->data - held->part_back;
        out->apphdr = (struct um_slice){apphdr, (size_t)apphdr[-1] - APPHDR_AT};
    }
    if ((held->present & UM_LBMC_HAS_TOPICNAME) != 0) {
        out->topic_name = topic_at(held->data - held->part_back);
    }
    if ((held->present & UM_LBMC_HAS_CTXINSTR) != 0) {
        out->ctxinstr = held->instance_back != 0 ? held->data - held->instance_back : held->data + held->len;
    }
}

void um_held_release(struct um_held *held)
{
    um_buf_unref(held->buf);
}
