/* Calls that this version does not implement yet: the configuration manager client.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbm.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "the client of the configuration manager is"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED(lbm_set_umm_info, lbm_umm_info_t *info)
