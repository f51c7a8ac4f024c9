/* Calls that this version does not implement yet: the user and role file of the daemons.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbm.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "the user and role store of the daemons is"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED_VALUE(int, -3, lbm_authstorage_open_storage_xml, char *filename)
UM_NOT_IMPLEMENTED_VOID(lbm_authstorage_close_storage_xml, void)
UM_NOT_IMPLEMENTED_VALUE(int, 1, lbm_authstorage_checkpermission, char *username, char *command)
UM_NOT_IMPLEMENTED(lbm_authstorage_addtpnam, const char *username, const char *pass, unsigned char flags)
UM_NOT_IMPLEMENTED(lbm_authstorage_deltpnam, const char *username)
UM_NOT_IMPLEMENTED(lbm_authstorage_user_add_role, const char *username, const char *role)
UM_NOT_IMPLEMENTED(lbm_authstorage_user_del_role, const char *username, const char *role)
UM_NOT_IMPLEMENTED(lbm_authstorage_load_roletable, void)
UM_NOT_IMPLEMENTED(lbm_authstorage_unload_roletable, void)
UM_NOT_IMPLEMENTED(lbm_authstorage_roletable_add_role_action, const char *rolename, const char *action)
UM_NOT_IMPLEMENTED(lbm_authstorage_print_roletable, void)
