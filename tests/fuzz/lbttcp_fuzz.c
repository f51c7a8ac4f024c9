/* Fuzz target: the stream reader. The first 8 bytes choose the segmentation and
 * when the buffer is exchanged; the result must be the same as in one piece. */
#include <stdlib.h>
#include <string.h>

#include "base/um_random.h"
#include "wire/um_lbttcp.h"

#define CAPACITY (UM_LBMC_MAX_MSGLEN + 1u)

struct outcome {
    uint64_t messages, dropped, hash;
    bool corrupt;
};

static void note(struct outcome *out, const struct um_lbmc_msg *msg)
{
    out->messages++;
    out->hash = out->hash * 1099511628211u + msg->msglen;
    for (size_t i = 0; i < msg->payload.len; i++) {
        out->hash = (out->hash ^ msg->payload.ptr[i]) * 1099511628211u;
    }
}

static void drain(struct um_lbttcp_reader *reader, struct outcome *out)
{
    struct um_lbmc_msg msg;
    for (;;) {
        switch (um_lbttcp_next(reader, &msg)) {
        case UM_LBTTCP_MESSAGE:
            note(out, &msg);
            break;
        case UM_LBTTCP_DROPPED:
            out->dropped++;
            break;
        case UM_LBTTCP_CORRUPT:
            out->corrupt = true;
            return;
        case UM_LBTTCP_MORE:
            return;
        }
    }
}

static void feed(const uint8_t *data, size_t len, struct um_rng *rng, struct outcome *out)
{
    static uint8_t buffers[2][CAPACITY];
    struct um_lbttcp_reader reader;
    unsigned which = 0;
    um_lbttcp_start(&reader, buffers[0], CAPACITY);
    while (len > 0 && !out->corrupt) {
        if (um_lbttcp_must_move(&reader) || (rng != NULL && um_rng_range(rng, 0, 7) == 0)) {
            which ^= rng != NULL ? 1u : 0u;
            um_lbttcp_move(&reader, buffers[which], CAPACITY);
        }
        size_t step = rng != NULL ? (size_t)um_rng_range(rng, 1, 64) : len;
        step = step < len ? step : len;
        step = step < um_lbttcp_room(&reader) ? step : um_lbttcp_room(&reader);
        if (step == 0) {
            abort(); /* the reader may never be stuck */
        }
        memcpy(reader.data + reader.end, data, step);
        um_lbttcp_received(&reader, step);
        data += step;
        len -= step;
        drain(&reader, out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct outcome whole = {0, 0, 0, false}, pieces = {0, 0, 0, false};
    struct um_rng rng;
    if (len < 8) {
        return 0;
    }
    um_rng_seed(&rng, um_get64(data));
    feed(data + 8, len - 8, NULL, &whole);
    feed(data + 8, len - 8, &rng, &pieces);
    if (whole.messages != pieces.messages || whole.dropped != pieces.dropped || whole.hash != pieces.hash ||
        whole.corrupt != pieces.corrupt) {
        abort();
    }
    return 0;
}
