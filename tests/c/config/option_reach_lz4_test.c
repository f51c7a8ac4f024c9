/* The option of compressed connections reaches what it rules (F25). See um_test_options.h. */
#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

#include "um_test_options.h"

static void nothing(struct world *w)
{
    (void)w;
}

/* Resolution tells it to others, and both ends of the connection have the filter. */
static bool compressed(struct world *w)
{
    tcp_receiver(w);
    message_through(w);
    return seen.tr.streams.compression && w->ctx->filters.lz4 != NULL && seen.lz4_streams == 2;
}

REACHES(context, compression, "lz4", nothing, compressed(w), true);
