/* Calls that this version does not implement yet: message properties and their iterators.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbm.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "message properties are"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED(lbm_msg_properties_create, lbm_msg_properties_t **properties)
UM_NOT_IMPLEMENTED(lbm_msg_properties_delete, lbm_msg_properties_t *properties)
UM_NOT_IMPLEMENTED(lbm_msg_properties_set, lbm_msg_properties_t *properties, const char *name, const void *value,
                   int type, size_t size)
UM_NOT_IMPLEMENTED(lbm_msg_properties_clear, lbm_msg_properties_t *properties, const char *name)
UM_NOT_IMPLEMENTED(lbm_msg_properties_get, lbm_msg_properties_t *properties, const char *name, void *value, int *type,
                   size_t *size)
UM_NOT_IMPLEMENTED(lbm_msg_properties_iter_create, lbm_msg_properties_iter_t **iterp)
UM_NOT_IMPLEMENTED(lbm_msg_properties_iter_delete, lbm_msg_properties_iter_t *iter)
UM_NOT_IMPLEMENTED(lbm_msg_properties_iter_first, lbm_msg_properties_iter_t *iter, lbm_msg_properties_t *properties)
UM_NOT_IMPLEMENTED(lbm_msg_properties_iter_next, lbm_msg_properties_iter_t *iter)
