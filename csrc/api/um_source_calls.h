/* What the calls that send on a source share. Any thread. */
#ifndef UM_API_SOURCE_CALLS_H
#define UM_API_SOURCE_CALLS_H

#include <lbm/lbm.h>

#include "core/um_source.h"

#define UM_HF_FLAGS (LBM_SRC_SEND_EX_FLAG_HF_OPTIONAL | LBM_SRC_SEND_EX_FLAG_HF_32 | LBM_SRC_SEND_EX_FLAG_HF_64)

/* A live source, valid pieces, and with `info` (or NULL) nothing that is not there yet. 0, or -1 + error. */
int um_source_call_check(const lbm_src_t *src, const lbm_iovec_t *iov, int num, const lbm_src_send_ex_info_t *info,
                         const char *api);
/* All pieces of `send` as one message; its `len` is 0 and is filled in. Tells the numbers that `info` asks for. */
int um_source_call_send(lbm_src_t *src, struct um_send *send, const lbm_src_send_ex_info_t *info, const char *api);

#endif
