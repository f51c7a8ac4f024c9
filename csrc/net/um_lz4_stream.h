/* Compression of byte streams by LZ4: a filter as um_stream.h describes them. Each piece
 * that is written becomes a frame of its own (net/um_lz4_frame.h), so that a datagram
 * is never cut; what does not become smaller is stored. liblz4 is looked for only when
 * the first filter is made. */
#ifndef UM_NET_LZ4_STREAM_H
#define UM_NET_LZ4_STREAM_H

#include "net/um_stream.h"

/* The library, and memory for frames that streams use while they are on their way. Covering is for any thread. */
struct um_lz4;

struct um_lz4 *um_lz4_create(void);      /* NULL + error: not installed, no memory */
void um_lz4_destroy(struct um_lz4 *lz4); /* when no stream is covered any more; NULL: no effect */
/* Covers a stream, whichever side connected: both begin with the same hello. 0, or -1 + error: then it is as it was. */
int um_lz4_cover(struct um_lz4 *lz4, struct um_stream *stream);

#endif
