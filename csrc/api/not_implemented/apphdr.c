/* Calls that this version does not implement yet: application header chains.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbm.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "application headers are"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED(lbm_apphdr_chain_create, lbm_apphdr_chain_t **chain)
UM_NOT_IMPLEMENTED(lbm_apphdr_chain_delete, lbm_apphdr_chain_t *chain)
UM_NOT_IMPLEMENTED(lbm_apphdr_chain_append_elem, lbm_apphdr_chain_t *chain, lbm_apphdr_chain_elem_t *elem)
UM_NOT_IMPLEMENTED(lbm_apphdr_chain_iter_create, lbm_apphdr_chain_iter_t **chain_iter, lbm_apphdr_chain_t *chain)
UM_NOT_IMPLEMENTED(lbm_apphdr_chain_iter_create_from_msg, lbm_apphdr_chain_iter_t **chain_iter, lbm_msg_t *msg)
UM_NOT_IMPLEMENTED(lbm_apphdr_chain_iter_delete, lbm_apphdr_chain_iter_t *chain_iter)
UM_NOT_IMPLEMENTED(lbm_apphdr_chain_iter_first, lbm_apphdr_chain_iter_t **chain_iter)
UM_NOT_IMPLEMENTED_VALUE(int, 0, lbm_apphdr_chain_iter_done, lbm_apphdr_chain_iter_t **chain_iter)
UM_NOT_IMPLEMENTED(lbm_apphdr_chain_iter_next, lbm_apphdr_chain_iter_t **chain_iter)
UM_NOT_IMPLEMENTED_VALUE(lbm_apphdr_chain_elem_t *, NULL, lbm_apphdr_chain_iter_current,
                         lbm_apphdr_chain_iter_t **chain_iter)
