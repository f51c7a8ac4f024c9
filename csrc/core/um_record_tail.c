/* The tails of records. See um_record_tail.h. */
#include "core/um_record_tail.h"

#include <string.h>

size_t um_tail_len(int flags, const um_record_tail_t *tail)
{
    size_t len = (flags & UM_MSG_FLAG_ANSWERABLE) != 0 ? sizeof(lbm_serialized_response_t) : 0;
    len += (flags & UM_RECORD_HF) != 0 ? sizeof tail->hf_number : 0;
    len += (flags & UM_MSG_FLAG_CHANNEL) != 0 ? sizeof tail->channel : 0;
    return len + ((flags & UM_MSG_FLAG_PROPERTIES) != 0 ? sizeof(uint64_t) + tail->properties_len : 0);
}

void um_tail_put(unsigned char *at, int flags, const um_record_tail_t *tail)
{
    if ((flags & UM_MSG_FLAG_ANSWERABLE) != 0) {
        memcpy(at, tail->way_back, sizeof(lbm_serialized_response_t));
        at += sizeof(lbm_serialized_response_t);
    }
    if ((flags & UM_RECORD_HF) != 0) {
        memcpy(at, &tail->hf_number, sizeof tail->hf_number);
        at += sizeof tail->hf_number;
    }
    if ((flags & UM_MSG_FLAG_PROPERTIES) != 0) {
        uint64_t len = tail->properties_len;
        memcpy(at, &len, sizeof len);
        memcpy(at + sizeof len, tail->properties, tail->properties_len);
        at += sizeof len + tail->properties_len;
    }
    if ((flags & UM_MSG_FLAG_CHANNEL) != 0) {
        memcpy(at, &tail->channel, sizeof tail->channel);
    }
}

void um_tail_get(um_record_tail_t *tail, const um_record_t *record, const unsigned char *payload)
{
    const unsigned char *begin = payload + record->length, *at = begin;
    *tail = (um_record_tail_t){0};
    if ((record->flags & UM_MSG_FLAG_ANSWERABLE) != 0) {
        tail->way_back = at;
        at += sizeof(lbm_serialized_response_t);
    }
    if ((record->flags & UM_RECORD_HF) != 0) {
        memcpy(&tail->hf_number, at, sizeof tail->hf_number);
        at += sizeof tail->hf_number;
    }
    if ((record->flags & UM_MSG_FLAG_PROPERTIES) != 0) {
        uint64_t len;
        memcpy(&len, at, sizeof len);
        tail->properties = at + sizeof len;
        tail->properties_len = (size_t)len;
        at = (const unsigned char *)tail->properties + len;
    }
    if ((record->flags & UM_MSG_FLAG_CHANNEL) != 0) {
        memcpy(&tail->channel, at, sizeof tail->channel);
        at += sizeof tail->channel;
    }
    tail->len = (size_t)(at - begin);
}

size_t um_tail_len_of(const um_record_t *record, const unsigned char *payload)
{
    um_record_tail_t tail;
    um_tail_get(&tail, record, payload);
    return tail.len;
}
