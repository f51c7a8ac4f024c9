/* Reading a byte stream into pooled buffers, without touching bytes that a retained
 * message points to. */
#include "transport/stream/um_stream_reader.h"

void um_stream_reader_init(struct um_stream_reader *reader, struct um_buf_pool *pool)
{
    *reader = (struct um_stream_reader){.pool = pool};
}

void um_stream_reader_fini(struct um_stream_reader *reader)
{
    if (reader->buf != NULL) {
        um_buf_unref(reader->buf);
        reader->buf = NULL;
    }
}

bool um_stream_reader_reserve(struct um_stream_reader *reader)
{
    if (reader->buf == NULL) {
        reader->buf = um_buf_get(reader->pool);
        if (reader->buf == NULL) {
            return false;
        }
        um_lbttcp_start(&reader->frame, reader->buf->data, reader->buf->capacity);
    }
    return true;
}

void um_stream_reader_rest(struct um_stream_reader *reader)
{
    if (reader->buf != NULL && reader->frame.start == reader->frame.end) {
        um_stream_reader_fini(reader);
    }
}

/* Make place for the next read. */
static bool make_room(struct um_stream_reader *reader)
{
    struct um_lbttcp_reader *frame = &reader->frame;
    if (reader->buf == NULL) {
        return um_stream_reader_reserve(reader);
    }
    bool ours = um_buf_is_ours(reader->buf);
    if (ours && frame->start == frame->end) {
        um_lbttcp_start(frame, reader->buf->data, reader->buf->capacity);
        return true;
    }
    if (!um_lbttcp_must_move(frame)) {
        return true;
    }
    if (ours) {
        um_lbttcp_move(frame, reader->buf->data, reader->buf->capacity);
        return true;
    }
    struct um_buf *next = um_buf_get(reader->pool);
    if (next == NULL) {
        return false;
    }
    um_lbttcp_move(frame, next->data, next->capacity);
    um_buf_unref(reader->buf);
    reader->buf = next;
    return true;
}

enum um_stream_read_rc um_stream_reader_read(struct um_stream_reader *reader, struct um_stream *stream, size_t *got)
{
    *got = 0;
    if (!make_room(reader)) {
        return UM_STREAM_READ_NO_MEMORY;
    }
    size_t room = um_lbttcp_room(&reader->frame);
    ssize_t rc = um_stream_read(stream, reader->frame.data + reader->frame.end, room);
    if (rc <= 0) {
        return rc == 0 ? UM_STREAM_READ_NOTHING : UM_STREAM_READ_END;
    }
    *got = (size_t)rc;
    um_lbttcp_received(&reader->frame, (size_t)rc);
    return (size_t)rc < room && !stream->pending ? UM_STREAM_READ_LAST : UM_STREAM_READ_MORE;
}
