/* Calls that this version does not implement yet: message buffers handed out by a
 * source. Each one records LBM_EOPNOTSUPP with the name of the feature and fails.
 * Called from application threads. */
#include <lbm/lbm.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "zero-copy send buffers are"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED(lbm_src_alloc_msg_buff, lbm_src_t *const src, void **const usr_bufp, const size_t len,
                   void **const lbm_hdl, const int flags)
