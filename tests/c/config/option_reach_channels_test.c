/* Options of channels reach what they rule (F25). See um_test_options.h. */
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

#include "um_test_options.h"

static void subscriber(struct world *w)
{
    context_only(w);
    receiver_only(w);
    MUST(lbm_rcv_subscribe_channel(w->rcv, 1, NULL, NULL));
}

REACHES(receiver, channel_map_tablesz, "17", subscriber, atomic_load(&w->rcv->channels)->buckets, 17);
REACHES(receiver, null_channel_behavior, "discard", subscriber, w->rcv->wants_channels_only, true);
REACHES(receiver, unrecognized_channel_behavior, "discard", subscriber, w->rcv->wants_subscribed_only, true);
