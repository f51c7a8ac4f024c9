/* See um_lbmrd_gather.h. */
#include "resolver/um_lbmrd_gather.h"

#include <string.h>

#define TRAILER_LENGTH 0x80
#define TRAILER_SOURCE_ID 0x81
#define TQRS_MAX 255u

/* ---- what a datagram brings ---- */

/* The options but source ID and length, of a trailer that was parsed. */
static size_t common_options(const uint8_t *trailer, size_t len, uint8_t *out)
{
    size_t used = 0;
    for (size_t at = 0; at < len; at += trailer[at + 1]) {
        if (trailer[at] != TRAILER_SOURCE_ID && trailer[at] != TRAILER_LENGTH) {
            memcpy(out + used, trailer + at, trailer[at + 1]);
            used += trailer[at + 1];
        }
    }
    return used;
}

/* Nothing but the records that its header counts. */
static bool records_fill(const struct um_lbmr_msg *msg)
{
    struct um_lbmr_cursor cursor;
    struct um_lbmr_tqr tqr;
    struct um_lbmr_tir tir;
    um_lbmr_records(msg, &cursor);
    while (um_lbmr_next_tqr(&cursor, &tqr)) {
    }
    while (cursor.fault == UM_LBMR_OK && um_lbmr_next_tir(&cursor, &tir)) {
    }
    return cursor.fault == UM_LBMR_OK && cursor.ptr == msg->bytes.ptr + msg->bytes.len;
}

/* One without a source ID may have been gathered by another daemon, and has to come back to that as it was: how else
 * would it know that it circles? */
bool um_lbmrd_entries_of(const struct um_lbmr_msg *msg, size_t len, struct um_lbmrd_entries *out)
{
    const struct um_lbmr_trailer *trailer = &msg->trailer;
    bool queries = msg->type == UM_LBMR_NORMAL || msg->type == UM_LBMR_WC_TQRS;
    bool application = !trailer->has_source_type || trailer->source_type == UM_LBMR_SOURCE_APPLICATION;
    if (!queries || msg->version != 0 || len > UM_LBMRD_SHARED_MAX || (msg->tqrs > 0) == (msg->tirs > 0) ||
        !trailer->has_source_id || !application || trailer->len > UM_LBMRD_SHARED_TRAILER || !records_fill(msg)) {
        return false;
    }
    *out = (struct um_lbmrd_entries){.bytes = msg->bytes.ptr + UM_LBMR_HEADER_LEN,
                                     .len = msg->bytes.len - UM_LBMR_HEADER_LEN,
                                     .trailer = msg->bytes.ptr + msg->bytes.len,
                                     .trailer_len = trailer->len,
                                     .head = msg->bytes.ptr[0],
                                     .tqrs = msg->tqrs,
                                     .tirs = msg->tirs};
    out->common_len = common_options(out->trailer, out->trailer_len, out->common);
    return true;
}

/* ---- bundles ---- */

static void send_bundle(struct um_lbmrd_gather *gather, uint64_t now_ns, struct um_lbmrd_bundle *bundle)
{
    gather->send(gather->arg, now_ns, bundle);
    bundle->number = 0;
    gather->count--;
}

static struct um_lbmrd_bundle *oldest(struct um_lbmrd_gather *gather)
{
    struct um_lbmrd_bundle *found = NULL;
    for (size_t i = 0; i < UM_LBMRD_BUNDLES; i++) {
        struct um_lbmrd_bundle *bundle = &gather->bundles[i];
        if (bundle->number != 0 && (found == NULL || (int32_t)(bundle->number - found->number) < 0)) {
            found = bundle;
        }
    }
    return found;
}

static struct um_lbmrd_bundle *numbered(struct um_lbmrd_gather *gather, uint32_t number)
{
    for (size_t i = 0; number != 0 && i < UM_LBMRD_BUNDLES; i++) {
        if (gather->bundles[i].number == number) {
            return &gather->bundles[i];
        }
    }
    return NULL;
}

static bool are_alike(const struct um_lbmrd_entries *a, const struct um_lbmrd_entries *b)
{
    return a->head == b->head && (a->tqrs > 0) == (b->tqrs > 0) && a->alone == b->alone &&
           (!a->alone || a->ip == b->ip) && a->common_len == b->common_len &&
           memcmp(a->common, b->common, a->common_len) == 0;
}

static struct um_lbmrd_bundle *find_alike(struct um_lbmrd_gather *gather, const struct um_lbmrd_entries *entries)
{
    for (size_t i = 0; i < UM_LBMRD_BUNDLES; i++) {
        struct um_lbmrd_bundle *bundle = &gather->bundles[i];
        if (bundle->number != 0 && are_alike(&bundle->first, entries)) {
            return bundle;
        }
    }
    return NULL;
}

static struct um_lbmrd_bundle *begin(struct um_lbmrd_gather *gather, uint64_t now_ns,
                                     const struct um_lbmrd_entries *entries)
{
    if (gather->count == UM_LBMRD_BUNDLES) {
        send_bundle(gather, now_ns, oldest(gather));
    }
    struct um_lbmrd_bundle *bundle = gather->bundles;
    while (bundle->number != 0) {
        bundle++;
    }
    gather->last_number += gather->last_number == UINT32_MAX ? 2 : 1;
    gather->count++;
    bundle->number = gather->last_number;
    bundle->first = *entries;
    bundle->first.bytes = bundle->first.trailer = NULL; /* the sender's datagram is gone soon */
    bundle->datagrams = bundle->newcomers = bundle->tqrs = bundle->tirs = 0;
    bundle->several_trailers = false;
    bundle->len = UM_LBMR_HEADER_LEN;
    memcpy(bundle->trailer, entries->trailer, entries->trailer_len);
    return bundle;
}

/* The trailer of the first is the longest that may come behind the entries: those of others have the same options. */
static bool has_room(const struct um_lbmrd_bundle *bundle, const struct um_lbmrd_entries *entries)
{
    return bundle->len + entries->len + bundle->first.trailer_len <= UM_LBMRD_SHARED_MAX &&
           bundle->tqrs + entries->tqrs <= TQRS_MAX;
}

void um_lbmrd_gather_add(struct um_lbmrd_gather *gather, uint64_t now_ns, const struct um_lbmrd_entries *entries,
                         struct um_lbmrd_waiting *sender)
{
    uint32_t *waits_in = entries->tqrs > 0 ? &sender->questions : &sender->advertisements;
    struct um_lbmrd_bundle *bundle = find_alike(gather, entries), *earlier = numbered(gather, *waits_in);
    if (earlier != NULL && earlier != bundle) {
        send_bundle(gather, now_ns, earlier);
    }
    if (bundle != NULL && !has_room(bundle, entries)) {
        send_bundle(gather, now_ns, bundle);
        bundle = NULL;
    }
    if (bundle == NULL) {
        bundle = begin(gather, now_ns, entries);
    }
    bundle->several_trailers |= entries->trailer_len != bundle->first.trailer_len ||
                                memcmp(entries->trailer, bundle->trailer, entries->trailer_len) != 0;
    memcpy(bundle->bytes + bundle->len, entries->bytes, entries->len);
    bundle->len += entries->len;
    bundle->tqrs += entries->tqrs;
    bundle->tirs += entries->tirs;
    bundle->datagrams++;
    bundle->newcomers += entries->newcomer;
    *waits_in = bundle->number;
}

void um_lbmrd_gather_send_of(struct um_lbmrd_gather *gather, uint64_t now_ns, const struct um_lbmrd_waiting *sender)
{
    struct um_lbmrd_bundle *bundle;
    if ((bundle = numbered(gather, sender->questions)) != NULL) {
        send_bundle(gather, now_ns, bundle);
    }
    if ((bundle = numbered(gather, sender->advertisements)) != NULL) {
        send_bundle(gather, now_ns, bundle);
    }
}

void um_lbmrd_gather_send(struct um_lbmrd_gather *gather, uint64_t now_ns)
{
    while (gather->count > 0) {
        send_bundle(gather, now_ns, oldest(gather));
    }
}

size_t um_lbmrd_bundle_finish(struct um_lbmrd_bundle *bundle)
{
    const struct um_lbmrd_entries *first = &bundle->first;
    uint8_t *trailer = bundle->bytes + bundle->len;
    bundle->bytes[0] = first->head;
    bundle->bytes[1] = (uint8_t)bundle->tqrs;
    um_put16(bundle->bytes + 2, (uint16_t)bundle->tirs);
    if (!bundle->several_trailers) {
        memcpy(trailer, bundle->trailer, first->trailer_len);
        return bundle->len + first->trailer_len;
    }
    memcpy(trailer, first->common, first->common_len);
    trailer += first->common_len;
    trailer[0] = TRAILER_LENGTH;
    trailer[1] = 4;
    um_put16(trailer + 2, (uint16_t)(first->common_len + 4));
    return bundle->len + first->common_len + 4;
}
