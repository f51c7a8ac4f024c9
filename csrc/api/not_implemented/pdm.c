/* Calls that this version does not implement yet: the whole of lbmpdm.h.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbmpdm.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "pre-defined messages (PDM) are"
#define MODULE UM_MODULE_PDM

UM_NOT_IMPLEMENTED(lbmpdm_cache_init, uint32_t cache_size)
UM_NOT_IMPLEMENTED(lbmpdm_cache_struct_add, lbmpdm_defn_t *defn)
UM_NOT_IMPLEMENTED(lbmpdm_cache_struct_remove, int32_t id)
UM_NOT_IMPLEMENTED(lbmpdm_cache_struct_remove_by_version, int32_t id, uint8_t vers_major, uint8_t vers_minor)
UM_NOT_IMPLEMENTED(lbmpdm_cache_struct_find, lbmpdm_defn_t **defn, int32_t id)
UM_NOT_IMPLEMENTED(lbmpdm_cache_struct_find_by_version, lbmpdm_defn_t **defn, int32_t id, uint8_t vers_major,
                   uint8_t vers_minor)
UM_NOT_IMPLEMENTED(lbmpdm_cache_clear_all, void)
UM_NOT_IMPLEMENTED_VALUE(lbmpdm_field_handle_t, -1, lbmpdm_defn_get_field_handle_by_str_name, lbmpdm_defn_t *defn,
                         const char *str_name)
UM_NOT_IMPLEMENTED_VALUE(lbmpdm_field_handle_t, -1, lbmpdm_defn_get_field_handle_by_int_name, lbmpdm_defn_t *defn,
                         int32_t int_name)
UM_NOT_IMPLEMENTED(lbmpdm_defn_create, lbmpdm_defn_t **defn, int32_t num_fields, int32_t id, int8_t vrs_mjr,
                   int8_t vrs_mnr, uint8_t field_names_type)
UM_NOT_IMPLEMENTED(lbmpdm_defn_delete, lbmpdm_defn_t *defn)
UM_NOT_IMPLEMENTED(lbmpdm_defn_finalize, lbmpdm_defn_t *defn)
UM_NOT_IMPLEMENTED_VALUE(lbmpdm_field_handle_t, -1, lbmpdm_defn_add_field_info_by_str_name, lbmpdm_defn_t *defn,
                         const char *str_name, int16_t type, lbmpdm_field_info_attr_t *info_attr)
UM_NOT_IMPLEMENTED_VALUE(lbmpdm_field_handle_t, -1, lbmpdm_defn_add_field_info_by_int_name, lbmpdm_defn_t *defn,
                         int32_t int_name, int16_t type, lbmpdm_field_info_attr_t *info_attr)
UM_NOT_IMPLEMENTED_VALUE(uint32_t, 0, lbmpdm_defn_get_length, lbmpdm_defn_t *defn)
UM_NOT_IMPLEMENTED_VALUE(int32_t, -1, lbmpdm_defn_get_id, lbmpdm_defn_t *defn)
UM_NOT_IMPLEMENTED_VALUE(int32_t, -1, lbmpdm_defn_get_num_fields, lbmpdm_defn_t *defn)
UM_NOT_IMPLEMENTED_VALUE(int8_t, -1, lbmpdm_defn_get_msg_vers_major, lbmpdm_defn_t *defn)
UM_NOT_IMPLEMENTED_VALUE(int8_t, -1, lbmpdm_defn_get_msg_vers_minor, lbmpdm_defn_t *defn)
UM_NOT_IMPLEMENTED_VALUE(uint8_t, 0, lbmpdm_defn_get_field_names_type, lbmpdm_defn_t *defn)
UM_NOT_IMPLEMENTED_VALUE(uint8_t, PDM_FALSE, lbmpdm_defn_is_finalized, lbmpdm_defn_t *defn)
UM_NOT_IMPLEMENTED_VALUE(const char *, NULL, lbmpdm_defn_get_field_info_str_name, lbmpdm_defn_t *defn,
                         lbmpdm_field_handle_t handle)
UM_NOT_IMPLEMENTED_VALUE(int32_t, -1, lbmpdm_defn_get_field_info_int_name, lbmpdm_defn_t *defn,
                         lbmpdm_field_handle_t handle)
UM_NOT_IMPLEMENTED_VALUE(int16_t, PDM_INTERNAL_TYPE_INVALID, lbmpdm_defn_get_field_info_type, lbmpdm_defn_t *defn,
                         lbmpdm_field_handle_t handle)
UM_NOT_IMPLEMENTED(lbmpdm_defn_serialize, lbmpdm_defn_t *defn, char *buffer, uint32_t *defn_len)
UM_NOT_IMPLEMENTED(lbmpdm_defn_deserialize, lbmpdm_defn_t *defn, const char *bufptr, uint32_t buflen,
                   uint8_t swap_bytes)
UM_NOT_IMPLEMENTED(lbmpdm_msg_create, lbmpdm_msg_t **message, lbmpdm_defn_t *defn, uint32_t flags)
UM_NOT_IMPLEMENTED(lbmpdm_msg_delete, lbmpdm_msg_t *message)
UM_NOT_IMPLEMENTED(lbmpdm_msg_and_defn_delete, lbmpdm_msg_t *message)
UM_NOT_IMPLEMENTED_VALUE(uint32_t, 0, lbmpdm_msg_get_length, const lbmpdm_msg_t *message)
UM_NOT_IMPLEMENTED_VALUE(lbmpdm_defn_t *, NULL, lbmpdm_msg_get_defn, const lbmpdm_msg_t *message)
UM_NOT_IMPLEMENTED_VALUE(uint8_t, PDM_FALSE, lbmpdm_msg_is_field_set, lbmpdm_msg_t *message,
                         lbmpdm_field_handle_t handle)
UM_NOT_IMPLEMENTED(lbmpdm_msg_get_field_value_stct, lbmpdm_msg_t *message, lbmpdm_field_handle_t handle,
                   lbmpdm_field_value_t *field_value)
UM_NOT_IMPLEMENTED(lbmpdm_msg_get_field_value, lbmpdm_msg_t *message, lbmpdm_field_handle_t handle, void *value,
                   size_t *len)
UM_NOT_IMPLEMENTED(lbmpdm_msg_get_field_value_vec, lbmpdm_msg_t *message, lbmpdm_field_handle_t handle, void *value,
                   size_t len[], size_t *num_arr_elem)
UM_NOT_IMPLEMENTED(lbmpdm_msg_set_field_value, lbmpdm_msg_t *message, lbmpdm_field_handle_t handle, void *value,
                   size_t len)
UM_NOT_IMPLEMENTED(lbmpdm_msg_set_field_value_vec, lbmpdm_msg_t *message, lbmpdm_field_handle_t handle, void *value,
                   size_t len[], size_t num_arr_elem)
UM_NOT_IMPLEMENTED(lbmpdm_msg_remove_field_value, lbmpdm_msg_t *message, lbmpdm_field_handle_t handle)
UM_NOT_IMPLEMENTED(lbmpdm_msg_set_incl_defn_flag, lbmpdm_msg_t *message)
UM_NOT_IMPLEMENTED(lbmpdm_msg_unset_incl_defn_flag, lbmpdm_msg_t *message)
UM_NOT_IMPLEMENTED(lbmpdm_field_value_stct_delete, lbmpdm_field_value_t *field_value)
UM_NOT_IMPLEMENTED(lbmpdm_msg_serialize, lbmpdm_msg_t *message, char *buffer)
UM_NOT_IMPLEMENTED(lbmpdm_msg_deserialize, lbmpdm_msg_t *message, const char *bufptr, uint32_t buflen)
UM_NOT_IMPLEMENTED_VALUE(char *, NULL, lbmpdm_msg_get_data, lbmpdm_msg_t *message)
UM_NOT_IMPLEMENTED(lbmpdm_iter_create, lbmpdm_iter_t **iter, lbmpdm_msg_t *message)
UM_NOT_IMPLEMENTED(lbmpdm_iter_create_from_field_handle, lbmpdm_iter_t **iter, lbmpdm_msg_t *message,
                   lbmpdm_field_handle_t field_handle)
UM_NOT_IMPLEMENTED(lbmpdm_iter_delete, lbmpdm_iter_t *iter)
UM_NOT_IMPLEMENTED_VALUE(lbmpdm_field_handle_t, -1, lbmpdm_iter_get_current, lbmpdm_iter_t *iter)
UM_NOT_IMPLEMENTED(lbmpdm_iter_first, lbmpdm_iter_t *iter)
UM_NOT_IMPLEMENTED(lbmpdm_iter_next, lbmpdm_iter_t *iter)
UM_NOT_IMPLEMENTED_VALUE(uint8_t, PDM_FALSE, lbmpdm_iter_has_next, lbmpdm_iter_t *iter)
UM_NOT_IMPLEMENTED_VALUE(uint8_t, PDM_FALSE, lbmpdm_iter_is_current_set, lbmpdm_iter_t *iter)
UM_NOT_IMPLEMENTED(lbmpdm_iter_set_msg, lbmpdm_iter_t *iter, lbmpdm_msg_t *message)
UM_NOT_IMPLEMENTED(lbmpdm_iter_set_current_field_value, lbmpdm_iter_t *iter, void *value, size_t len)
UM_NOT_IMPLEMENTED(lbmpdm_iter_set_current_field_value_vec, lbmpdm_iter_t *iter, void *value, size_t len[],
                   size_t num_arr_elem)
UM_NOT_IMPLEMENTED(lbmpdm_iter_get_current_field_value, lbmpdm_iter_t *iter, void *value, size_t *len)
UM_NOT_IMPLEMENTED(lbmpdm_iter_get_current_field_value_vec, lbmpdm_iter_t *iter, void *value, size_t len[],
                   size_t *num_arr_elem)

int lbmpdm_errnum(void)
{
    return um_module_errnum(UM_MODULE_PDM);
}

const char *lbmpdm_errmsg(void)
{
    return um_module_errmsg(UM_MODULE_PDM);
}
