/* LBT-TCP framing: the cold half of the stream reader, which moves the partial
 * message at the end of a buffer to where it can be completed.
 * Pure; one owner at a time. */
#include "wire/um_lbttcp.h"

bool um_lbttcp_must_move(const struct um_lbttcp_reader *reader)
{
    size_t have = reader->end - reader->start;
    size_t need = have >= UM_LBMC_CONTROL_HDR_LEN ? um_get16(reader->data + reader->start + 2) : UM_LBMC_MAX_MSGLEN;
    return need > reader->capacity - reader->start || um_lbttcp_room(reader) == 0;
}

void um_lbttcp_move(struct um_lbttcp_reader *reader, uint8_t *data, size_t capacity)
{
    size_t have = reader->end - reader->start;
    memmove(data, reader->data + reader->start, have);
    um_lbttcp_start(reader, data, capacity);
    reader->end = have;
}
