/* Calls that this version does not implement yet: deliberate loss on LBT-RM, LBT-RU and unicast immediate messages.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbm.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "loss injection is"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED_VOID(lbm_set_uim_loss_rate, int rate)
UM_NOT_IMPLEMENTED_VOID(lbm_set_lbtrm_loss_rate, int rate)
UM_NOT_IMPLEMENTED_VOID(lbm_set_lbtrm_src_loss_rate, int rate)
UM_NOT_IMPLEMENTED_VOID(lbm_set_lbtru_loss_rate, int rate)
UM_NOT_IMPLEMENTED_VOID(lbm_set_lbtru_src_loss_rate, int rate)
