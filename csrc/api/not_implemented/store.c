/* Calls that this version does not implement yet: umestored_main.h and umeprofile.h.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/umestored_main.h>
#include <lbm/umeprofile.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "the persistent store is"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED(lbm_srp_create, const char *state_pathname, const char *cache_pathname, const int check_checksum,
                   const lbm_srp_t **srp_handle)
UM_NOT_IMPLEMENTED(lbm_srp_delete, const lbm_srp_t **srp_handle)
UM_NOT_IMPLEMENTED(lbm_srp_get_repo_state, const lbm_srp_t **srp_handle, int repo_idx, lbm_srp_repo_t **srp_repo)
UM_NOT_IMPLEMENTED(lbm_srp_get_repo_message, lbm_srp_repo_t *srp_repo, int sqn, lbm_srp_repo_msg_t *repo_msg)
UM_NOT_IMPLEMENTED(lbm_srp_free_repo_state, lbm_srp_repo_t *srp_repo)
UM_NOT_IMPLEMENTED(umestored_main, int argc, char **argv)
UM_NOT_IMPLEMENTED_VOID(umestored_main_shutdown, void)
