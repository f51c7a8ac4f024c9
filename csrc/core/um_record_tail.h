/* The tail of a record of a batch: what lies behind its payload and is not counted in its length. The flags of the
 * record say what there is; the order is that of the fields of um_record_tail_t. Pure functions on bytes. Any thread.
 */
#ifndef UM_CORE_RECORD_TAIL_H
#define UM_CORE_RECORD_TAIL_H

#include <lbm/um.h>

#define UM_RECORD_HF (LBM_MSG_FLAG_HF_32 | LBM_MSG_FLAG_HF_64)
#define UM_RECORD_TAIL (UM_MSG_FLAG_ANSWERABLE | UM_RECORD_HF | UM_MSG_FLAG_PROPERTIES | UM_MSG_FLAG_CHANNEL)

/* Bytes of the tail that a record with these flags gets. */
size_t um_tail_len(int flags, const um_record_tail_t *tail);
void um_tail_put(unsigned char *at, int flags, const um_record_tail_t *tail);
/* What um_tail_put() wrote behind this payload; it points there. */
void um_tail_get(um_record_tail_t *tail, const um_record_t *record, const unsigned char *payload);
size_t um_tail_len_of(const um_record_t *record, const unsigned char *payload);

#endif
