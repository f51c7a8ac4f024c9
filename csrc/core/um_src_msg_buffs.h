/* Buffers of lbm_src_alloc_msg_buff(): memory of a source that the application
 * fills and sends by its handle. What was not sent goes with the source. Any
 * thread. */
#ifndef UM_CORE_SRC_MSG_BUFFS_H
#define UM_CORE_SRC_MSG_BUFFS_H

#include <stdbool.h>
#include <stddef.h>

#include <lbm/lbm.h>

#include "base/um_lock.h"

/* In each source; zeroed memory is an empty one. */
struct um_src_msg_buffs {
    struct um_lock lock;
    struct um_src_msg_buff *newest; /* lock */
};

/* `src` is usable. 0, or -1 + error. */
int um_src_msg_buff_alloc(lbm_src_t *src, void **buffer, size_t len, void **handle);
/* The message of `handle`; *waited as um_source_send_plain(). Its arguments wrong, or UM_EWOULDBLOCK: the handle is the
 * application's as before. Otherwise it is gone, whatever became of the message. */
int um_src_msg_buff_send(lbm_src_t *src, const void *handle, size_t len, int flags, bool *waited);
void um_src_msg_buffs_free(struct um_src_msg_buffs *buffs);

#endif
