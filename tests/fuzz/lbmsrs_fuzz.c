/* Fuzz target: RSocket frames out of a byte stream and the LBMSRS messages in them. The first 8 bytes choose the
 * segmentation; the result must be the same as in one piece, and what decodes must encode to the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/um_random.h"
#include "wire/um_lbmsrs.h"
#include "wire/um_rsocket.h"

#define FRAME_MAX 8192

struct outcome {
    uint64_t frames, records, hash;
    enum um_rsocket_rc rc;
};

static void mix(struct outcome *out, struct um_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        out->hash = (out->hash ^ bytes.ptr[i]) * 1099511628211u;
    }
}

static void records(struct um_slice batch, struct outcome *out)
{
    struct um_lbmsrs_record record;
    const uint8_t *from = batch.ptr;
    uint8_t again[UM_LBMSRS_RECORD_MAX];
    while (um_lbmsrs_next(&batch, &record) == UM_LBMSRS_OK) {
        size_t len = um_lbmsrs_put(&record, again, sizeof(again));
        size_t reserved = record.id >= UM_LBMSRS_RIR ? 4 : 0; /* not kept */
        if (len != (size_t)(batch.ptr - from) || memcmp(again, from, len - reserved) != 0) {
            abort();
        }
        from = batch.ptr;
        out->records++;
    }
}

static void extensions(struct um_slice batch, struct outcome *out)
{
    struct um_lbmsrs_ext record;
    const uint8_t *from = batch.ptr;
    uint8_t again[64 + 256 + 4 * UM_LBMSRS_ROUTE_DOMAINS];
    while (um_lbmsrs_ext_next(&batch, &record) == UM_LBMSRS_OK) {
        size_t len = um_lbmsrs_ext_put(&record, again, sizeof(again));
        if (len != (size_t)(batch.ptr - from) || memcmp(again, from, len) != 0) {
            abort();
        }
        from = batch.ptr;
        out->records++;
    }
}

static void frame_is(const struct um_rsocket_frame *frame, struct outcome *out)
{
    uint8_t again[3 + FRAME_MAX];
    struct um_rsocket_frame back;
    struct um_lbmsrs_request request;
    struct um_lbmsrs_response response;
    size_t len = um_rsocket_encode(frame, again, sizeof(again));
    if (len == 0 || !um_rsocket_decode(again + 3, len - 3, &back) || back.data.len != frame->data.len ||
        back.metadata.len != frame->metadata.len) {
        abort();
    }
    out->frames++;
    mix(out, (struct um_slice){again, len});
    records(frame->data, out);
    extensions(frame->metadata, out);
    um_lbmsrs_decode_request(frame->data, &request);
    um_lbmsrs_decode_response(frame->data, &response);
    um_lbmsrs_is_stream_request(frame->data);
}

static void feed(const uint8_t *data, size_t len, struct um_rng *rng, struct outcome *out)
{
    struct um_rsocket_reader reader;
    struct um_rsocket_frame frame;
    um_rsocket_reader_init(&reader, FRAME_MAX);
    out->rc = UM_RSOCKET_MORE;
    while (len > 0 && out->rc == UM_RSOCKET_MORE) {
        size_t step = rng != NULL ? (size_t)um_rng_range(rng, 1, 64) : len;
        step = step < len ? step : len;
        struct um_slice input = {data, step};
        while ((out->rc = um_rsocket_read(&reader, &input, &frame)) == UM_RSOCKET_FRAME) {
            frame_is(&frame, out);
        }
        if ((out->rc == UM_RSOCKET_MORE && input.len != 0) || reader.capacity > 2 * (FRAME_MAX + 3)) {
            abort(); /* nothing is left behind, and the buffer has its bound */
        }
        data += step;
        len -= step;
    }
    um_rsocket_reader_free(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct outcome whole = {0}, pieces = {0};
    struct um_rng rng;
    if (len < 8) {
        return 0;
    }
    um_rng_seed(&rng, um_get64(data));
    feed(data + 8, len - 8, NULL, &whole);
    feed(data + 8, len - 8, &rng, &pieces);
    if (whole.frames != pieces.frames || whole.records != pieces.records || whole.hash != pieces.hash ||
        whole.rc != pieces.rc) {
        abort();
    }
    return 0;
}
