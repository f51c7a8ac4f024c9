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
    struct um_chain_summary summary;
    struct um_chain_writer single;
};

static void look(struct seen *seen, const struct um_lbmc_msg *msg)
{
    if ((msg->present & UM_LBMC_HAS_APPHDR_CHAIN) != 0) {
        seen->chain = msg->apphdr_chain;
        seen->summary = msg->chain_summary;
        return;
    }
    size_t len = msg->apphdr.len - 2;
    um_chain_start(&seen->single);
    uint8_t *data = um_chain_add(&seen->single, UM_CHAIN_USER_DATA, um_get16(msg->apphdr.ptr) & 0x7fffu, len);
    seen->chain = (struct um_slice){0};
    seen->summary = (struct um_chain_summary){0};
    if (data != NULL) {
        memcpy(data, msg->apphdr.ptr + 2, len);
        seen->chain = (struct um_slice){seen->single.bytes + 3, seen->single.len - 3u};
        seen->summary.has = UM_CHAIN_HAS_USER_DATA;
    }
}

static struct um_msg_extras *extras_of(struct um_msg *msg)
{
    if (msg->extras == NULL && (msg->extras = um_calloc(1, sizeof *msg->extras)) == NULL) {
        um_log_limited(um_log_of(msg->pub.topic_name), um_clock_ns(), UM_LOG_ERR, "Core-20201-8",
                       "topic [%s]: out of memory for the properties and headers of a message: it is delivered without",
                       msg->pub.topic_name);
    }
    return msg->extras;
}

/* What needs memory of the message's own: properties of `len` bytes, application headers. */
static __attribute__((noinline)) void keep(struct um_msg *msg, const struct seen *seen, struct um_slice blob)
{
    struct um_props_reader reader;
    bool shown = blob.len > 0 && um_props_open(&reader, blob); /* else: unusable */
    bool headers = (seen->summary.has & UM_CHAIN_HAS_USER_DATA) != 0;
    if ((!shown && !headers) || extras_of(msg) == NULL) {
        return;
    }
    struct um_msg_extras *extras = msg->extras;
    if (shown) {
        um_properties_of_message(&extras->properties, blob);
        msg->pub.properties = &extras->properties;
    }
    extras->chain_len = headers ? (uint8_t)seen->chain.len : 0;
    memcpy(extras->chain, seen->chain.ptr, extras->chain_len);
}

void um_msg_extras_begin(struct um_msg *msg, const struct um_dc_delivery *d, bool takes_properties)
{
    struct seen seen;
    look(&seen, d->msg);
    const struct um_chain_summary *summary = &seen.summary;
    bool properties =
        !d->fragment && (summary->has & UM_CHAIN_HAS_PROPERTIES) != 0 && summary->properties_len <= d->len;
    size_t len = properties ? summary->properties_len : 0;
    msg->pub.len = d->len - len;
    msg->channel.flags = 0;
    if ((summary->has & UM_CHAIN_HAS_CHANNEL) != 0) {
        msg->channel.flags = LBM_MSG_FLAG_NUMBERED_CHANNEL;
        msg->channel.channel_number = summary->channel;
    }
    if ((properties && takes_properties) || (summary->has & UM_CHAIN_HAS_USER_DATA) != 0) {
        keep(msg, &seen, (struct um_slice){d->data + msg->pub.len, takes_properties ? len : 0});
    }
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

bool um_msg_extras_used(const struct um_msg *msg)
{
    return msg->extras != NULL && (msg->pub.properties != NULL || msg->extras->chain_len > 0);
}

bool um_msg_extras_clone(struct um_msg *copy, const struct um_msg *msg)
{
    const struct um_msg_extras *from = msg->extras;
    if (!um_msg_extras_used(msg)) {
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
