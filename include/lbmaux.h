/** libum public header lbmaux.h */
#ifndef LBM_LBMAUX_H_INCLUDED
#define LBM_LBMAUX_H_INCLUDED

#include <stdlib.h>
#include "lbm/lbm.h"

#ifdef __cplusplus
extern "C" {
#endif

LBMExpDLL int lbmaux_context_create_from_file(lbm_context_t **Context, const char *ConfigFile);
LBMExpDLL int lbmaux_context_attr_setopt_from_file(lbm_context_attr_t *Attributes, const char *ConfigFile);
LBMExpDLL int lbmaux_src_topic_attr_setopt_from_file(lbm_src_topic_attr_t *Attributes, const char *ConfigFile);
LBMExpDLL int lbmaux_rcv_topic_attr_setopt_from_file(lbm_rcv_topic_attr_t *Attributes, const char *ConfigFile);
LBMExpDLL int lbmaux_wildcard_rcv_attr_setopt_from_file(lbm_wildcard_rcv_attr_t *Attributes, const char *ConfigFile);
LBMExpDLL int lbmaux_event_queue_attr_setopt_from_file(lbm_event_queue_attr_t *Attributes, const char *ConfigFile);
LBMExpDLL int lbmaux_lbmmon_format_options_from_file(char **FormatOptionsBuffer, const char *FormatOptionsFile,
                                                     char *ErrorString);

#ifdef __cplusplus
}
#endif

#endif
