/* One LBMC message of a source session. See um_src_message.h. */
#include "transport/session/um_src_message.h"

#include <string.h>

#include "base/um_error.h"

static void gather(struct um_gather *from, uint8_t *to, size_t len)
{
    while (len > 0) {
        size_t part = from->iov->iov_len - from->skip;
        if (part > len) {
            part = len;
        }
        if (part > 0) {
            memcpy(to, (const uint8_t *)from->iov->iov_base + from->skip, part);
        }
        to += part;
        len -= part;
        from->skip += part;
        if (from->skip == from->iov->iov_len) {
            from->iov++;
            from->skip = 0;
        }
    }
}

size_t um_record_headers_len(const struct um_record_plan *plan)
{
    return UM_LBMC_DATA_HDR_LEN + plan->send->headers_len + plan->send->chain_len + (plan->batch_flags != 0 ? 4 : 0) +
           (plan->fragmented ? UM_LBMC_FRAG_HDR_LEN : 0);
}

/* The caller's headers; what follows them on this message is announced by the last. */
static size_t put_caller_headers(uint8_t *out, const struct um_send *send, uint8_t after)
{
    size_t last = 0;
    memcpy(out, send->headers, send->headers_len);
    while (last + out[last + 1] < send->headers_len) {
        last += out[last + 1];
    }
    out[last] = after;
    return send->headers_len;
}

void um_record_write(uint8_t *out, const struct um_record_plan *plan, uint32_t sqn, struct um_gather *from, size_t len)
{
    const struct um_send *send = plan->send;
    uint8_t chain = send->chain_len > 0 ? UM_LBMC_HDR_APPHDR_CHAIN : UM_LBMC_HDR_DATA;
    uint8_t frag = plan->fragmented ? UM_LBMC_HDR_FRAG : chain;
    uint8_t batch = plan->batch_flags != 0 ? UM_LBMC_HDR_BATCH : frag;
    uint8_t first = send->headers_len > 0 ? send->first_header : batch;
    um_lbmc_put_data_hdr(out, first, (uint16_t)(um_record_headers_len(plan) + len), plan->tidx, sqn);
    out += UM_LBMC_DATA_HDR_LEN;
    if (send->headers_len > 0) {
        out += put_caller_headers(out, send, batch);
    }
    if (plan->batch_flags != 0) {
        out += um_lbmc_put_batch(out, frag, plan->batch_flags);
    }
    if (plan->fragmented) {
        out += um_lbmc_put_frag(out, chain, plan->first_sqn, plan->offset, (uint32_t)send->len);
    }
    if (send->chain_len > 0) {
        memcpy(out, send->chain, send->chain_len);
        out += send->chain_len;
    }
    gather(from, out, len);
}

size_t um_fragment_size(const struct um_src_session *session, const struct um_send *send, bool marked,
                        size_t *whole_max)
{
    size_t headers = UM_LBMC_DATA_HDR_LEN + send->headers_len + send->chain_len + (marked ? 4 : 0);
    if (headers + UM_LBMC_FRAG_HDR_LEN >= session->datagram_max) {
        um_error(UM_EINVAL, "CoreApi-5688-3234",
                 "send: %zu bytes of message headers do not fit a datagram with room for %zu bytes (%s)",
                 send->headers_len + send->chain_len, session->datagram_max, session->ops->datagram_option);
        return 0;
    }
    size_t size = session->datagram_max - headers - UM_LBMC_FRAG_HDR_LEN;
    if (session->dynamic_reduction) {
        *whole_max = session->datagram_max - headers;
        return size;
    }
    if (size > session->datagram_max - session->header_reserve) {
        size = session->datagram_max - session->header_reserve;
    }
    *whole_max = size;
    return size;
}
