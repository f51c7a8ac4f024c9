/* Calls that this version does not implement yet: deliberate loss of unicast immediate messages, which do not exist yet
 * themselves. Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads.
 */
#include <lbm/lbm.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "loss injection for unicast immediate messages is"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED_VOID(lbm_set_uim_loss_rate, int rate)
