/* Calls that this version does not implement yet: the debug log.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbm.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "the debug log is"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED_VOID(lbm_debug_filename, const char *filename)
UM_NOT_IMPLEMENTED_VOID(lbm_debug_mask, lbm_uint64_t mask)
UM_NOT_IMPLEMENTED_VOID(lbm_debugfile_maxsize, lbm_uint64_t size)
UM_NOT_IMPLEMENTED_VOID(lbm_debugfile_max_rollover, lbm_uint32_t size)
UM_NOT_IMPLEMENTED_VOID(lbm_debug_noflush, int on)
UM_NOT_IMPLEMENTED_VOID(lbm_log_debug, int on)
UM_NOT_IMPLEMENTED(lbm_debug_dump, const char *filename, int append)
UM_NOT_IMPLEMENTED_VOID(lbm_debug_ring_buffer, size_t maxsz)
UM_NOT_IMPLEMENTED_VOID(lbm_debug_ring_buffer_walltime, int use)
