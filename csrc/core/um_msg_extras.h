/* What few messages have beside their payload: properties, a channel, application
 * headers. A message gets the memory for properties and headers with the first of
 * these and keeps it, as templates are used again. Of the thread that delivers, as the message. */
#ifndef UM_CORE_MSG_EXTRAS_H
#define UM_CORE_MSG_EXTRAS_H

#include "core/um_message.h"
#include "core/um_properties.h"
#include "delivery/um_dc.h"
#include "wire/um_lbmc_chain.h"

struct um_msg_extras {
    struct lbm_msg_properties_t_stct properties; /* pub.properties, or in no use */
    uint8_t chain_len;                           /* 0: no application headers */
    uint8_t chain[UM_CHAIN_MAX];                 /* as struct um_lbmc_msg has it */
};

/* pub.len, pub.properties, channel and so on of a delivery with a chain or an old header. Without memory the data is
 * what it is and the rest is missing: logged. `whole`: not a fragment of a receiver that takes them one by one. */
void um_msg_extras_begin(struct um_msg *msg, const struct um_dc_delivery *d, bool takes_properties);
/* The same in few steps for a message with properties and perhaps a channel, over a template that has had some before,
 * which nobody has looked at. False: nothing has happened. The end is um_msg_extras_end(), too. */
static inline bool um_msg_extras_follow(struct um_msg *msg, const struct um_dc_delivery *d)
{
    const struct um_chain_summary *summary = &d->msg->chain_summary;
    if (msg->extras == NULL || d->fragment || summary->properties_len > d->len) {
        return false;
    }
    size_t len = d->len - summary->properties_len;
    if (!um_properties_follow(&msg->extras->properties, (struct um_slice){d->data + len, summary->properties_len})) {
        return false;
    }
    msg->pub.len = len;
    msg->pub.properties = &msg->extras->properties;
    return true;
}
void um_msg_extras_end(struct um_msg *msg); /* the next message has none */

/* For um_message.c. */
bool um_msg_extras_clone(struct um_msg *copy, const struct um_msg *msg); /* false: no memory */
void um_msg_extras_free(struct um_msg *msg);
bool um_msg_extras_used(const struct um_msg *msg); /* by this message, not only by one before it */
/* Bytes behind the data that belong to the message; and that they have moved with the data. */
size_t um_msg_extras_behind(const struct um_msg *msg);
void um_msg_extras_moved(struct um_msg *msg);

#endif
