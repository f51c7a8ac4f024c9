/* Properties, channel and application headers of messages. See um_msg_extras.h. */
#include "core/um_msg_extras.h"

#include <string.h>

#include "base/um_clock.h"
#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_mem.h"
#include "base/um_timer.h"

/* A chain, or a single header of old in the form of one. Application headers in it are kept. */
struct seen {
    struct um_slice chain;
    struct um_chain_writer single;
};

static void look(struct seen *seen, const struct um_lbmc_msg *msg)
{
    if ((msg->present & UM_LBMC_HAS_APPHDR_CHAIN) != 0) {
        seen->chain = msg->apphdr_chain;
        return;
    }
    size_t len = msg->apphdr.len - 2;
    um_chain_start(&seen->single);
    uint8_t *data = um_chain_add(&seen->single, UM_CHAIN_USER_DATA, um_get16(msg->apphdr.ptr) & 0x7fffu, len);
    seen->chain = (struct um_slice){0};
    if (data != NULL) {
        memcpy(data, msg->apphdr.ptr + 2, len);
        seen->chain = (struct um_slice){seen->single.bytes + 3, seen->single.len - 3u};
    }
}

static bool has_headers(struct um_slice chain)
{
    struct um_chain_elem elem;
    return um_chain_find(chain, UM_CHAIN_USER_DATA, 0, &elem);
}

/* Its end is properties of this length. False: it says so, and cannot be. */
static bool split(struct um_slice chain, const struct um_dc_delivery *d, size_t *len)
{
    struct um_chain_elem elem;
    *len = 0;
    if (!um_chain_find(chain, UM_CHAIN_PROPERTIES_LEN, 4, &elem) || um_get32(elem.data.ptr) > d->len) {
        return false;
    }
    *len = um_get32(elem.data.ptr);
    return true;
}

static struct um_msg_extras *extras_of(struct um_msg *msg)
{
    static struct um_log_limit limit;
    if (msg->extras == NULL && (msg->extras = um_calloc(1, sizeof *msg->extras)) == NULL) {
        um_log_limited(&limit, um_clock_ns(), UM_NS_PER_SEC, UM_LOG_ERR, "Core-20201-8",
                       "topic [%s]: out of memory for the properties and headers of a message: it is delivered without",
                       msg->pub.topic_name);
    }
    return msg->extras;
}

void um_msg_extras_begin(struct um_msg *msg, const struct um_dc_delivery *d, bool takes_properties)
{
    struct um_props_reader reader;
    struct seen seen;
    size_t len = 0;
    look(&seen, d->msg);
    bool properties = !d->fragment && split(seen.chain, d, &len);
    msg->pub.len = d->len - len;
    msg->channel.flags = um_chain_channel(seen.chain, &msg->channel.channel_number) ? LBM_MSG_FLAG_NUMBERED_CHANNEL : 0;
    bool shown = properties && takes_properties &&
                 um_props_open(&reader, (struct um_slice){d->data + msg->pub.len, len}); /* else: unusable */
    bool headers = has_headers(seen.chain);
    if ((!shown && !headers) || extras_of(msg) == NULL) {
        return;
    }
    struct um_msg_extras *extras = msg->extras;
    if (shown) {
        um_properties_of_message(&extras->properties, reader.blob);
        msg->pub.properties = &extras->properties;
    }
    extras->chain_len = headers ? (uint8_t)seen.chain.len : 0;
    memcpy(extras->chain, seen.chain.ptr, extras->chain_len);
}

void um_msg_extras_end(struct um_msg *msg)
{
    msg->pub.properties = NULL;
    msg->pub.channel_info = NULL;
    msg->channel.flags = 0;
    if (msg->extras != NULL) {
        msg->extras->chain_len = 0;
    }
}

bool um_msg_extras_clone(struct um_msg *copy, const struct um_msg *msg)
{
    const struct um_msg_extras *from = msg->extras;
    if (from == NULL || (msg->pub.properties == NULL && from->chain_len == 0)) {
        return true;
    }
    struct um_msg_extras *extras = um_calloc(1, sizeof *extras);
    if (extras == NULL) {
        return false;
    }
    copy->extras = extras;
    if (msg->pub.properties != NULL) {
        um_properties_of_message(&extras->properties, um_properties_received(&from->properties));
        copy->pub.properties = &extras->properties;
    }
    extras->chain_len = from->chain_len;
    memcpy(extras->chain, from->chain, from->chain_len);
    return true;
}

void um_msg_extras_free(struct um_msg *msg)
{
    if (msg->extras != NULL) {
        um_properties_empty(&msg->extras->properties);
        um_free(msg->extras);
        msg->extras = NULL;
    }
}

size_t um_msg_extras_behind(const struct um_msg *msg)
{
    return msg->pub.properties == NULL ? 0 : um_properties_received(&msg->extras->properties).len;
}

void um_msg_extras_moved(struct um_msg *msg)
{
    if (msg->pub.properties != NULL) {
        um_properties_moved(&msg->extras->properties, (const uint8_t *)msg->pub.data + msg->pub.len);
    }
}
