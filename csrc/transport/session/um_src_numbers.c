/* Numbers that callers bring, and who keeps what was sent. See um_src_numbers.h. */
#include "transport/session/um_src_numbers.h"

#include "base/um_error.h"
#include "transport/session/um_src_batch.h"

int um_src_number_bring(struct um_src_stream *stream, uint32_t number)
{
    uint32_t next = stream->next_sqn;
    bool begun = stream->numbered || next != 0;
    if (begun && number - next > UM_SRC_NUMBERS_AHEAD) {
        return um_error(UM_EINVAL, "CoreApi-9004-8",
                        "send: sequence number %u: must be %u or up to %u after it: numbers do not go back", number,
                        next, UM_SRC_NUMBERS_AHEAD);
    }
    stream->next_sqn = number;
    return 0;
}

int um_src_stream_set_keeper(struct um_src_stream *stream, struct um_src_keeper *keeper)
{
    struct um_src_session *session = stream->session;
    if (session->ops->takeover != NULL) {
        return um_error(UM_EOPNOTSUPP, "CoreApi-9004-9",
                        "this transport hands its buffers to the application: what was sent cannot be kept");
    }
    um_src_session_lock(session);
    stream->keeper = keeper;
    stream->special = keeper != NULL ? stream->special | UM_STREAM_KEPT : stream->special & ~(unsigned)UM_STREAM_KEPT;
    um_src_session_unlock(session);
    return 0;
}
