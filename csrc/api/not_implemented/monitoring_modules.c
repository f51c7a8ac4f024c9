/* Calls that this version does not implement yet: filters of monitoring records.
 * Each one records LBM_EOPNOTSUPP with the name of the feature and fails. Called from application threads. */
#include <lbm/lbmmon.h>

#include "api/not_implemented/um_not_implemented.h"

#define FEATURE "filters of monitoring records (lbmmon) are"
#define MODULE UM_MODULE_LBM

UM_NOT_IMPLEMENTED(lbmmon_format_pb_default_filter_options, void *FormatClientData, char *FormatOptions, size_t Size)
UM_NOT_IMPLEMENTED(lbmmon_format_pb_default_store_filter_options, char *FormatOptions, size_t Size)
UM_NOT_IMPLEMENTED_VALUE(char *, NULL, lbmmon_store_format_pb_filter_options, const char *FormatOptions)
