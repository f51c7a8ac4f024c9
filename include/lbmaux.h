/** lbmaux.h - attribute objects filled from a plain configuration file. */
#ifndef LBM_LBMAUX_H_INCLUDED
#define LBM_LBMAUX_H_INCLUDED

#include <stdlib.h>
#include "lbm/lbm.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Makes a context from the context options of a file. Context thread: no. */
LBMExpDLL int lbmaux_context_create_from_file(lbm_context_t **Context, const char *ConfigFile);

/** Sets the context options found in a file; lines of other scopes are skipped. Context thread: yes. */
LBMExpDLL int lbmaux_context_attr_setopt_from_file(lbm_context_attr_t *Attributes, const char *ConfigFile);

/** Sets the source options found in a file; lines of other scopes are skipped. Context thread: yes. */
LBMExpDLL int lbmaux_src_topic_attr_setopt_from_file(lbm_src_topic_attr_t *Attributes, const char *ConfigFile);

/** Sets the receiver options found in a file; lines of other scopes are skipped. Context thread: yes. */
LBMExpDLL int lbmaux_rcv_topic_attr_setopt_from_file(lbm_rcv_topic_attr_t *Attributes, const char *ConfigFile);

/** Sets the wildcard receiver options found in a file; lines of other scopes are skipped. Context thread: yes. */
LBMExpDLL int lbmaux_wildcard_rcv_attr_setopt_from_file(lbm_wildcard_rcv_attr_t *Attributes, const char *ConfigFile);

/** Sets the event queue options found in a file; lines of other scopes are skipped. Context thread: yes. */
LBMExpDLL int lbmaux_event_queue_attr_setopt_from_file(lbm_event_queue_attr_t *Attributes, const char *ConfigFile);

/**
 * Text of a file of monitoring options without comments and blank lines. The caller frees it with free(). ErrorString,
 * if given, has room for 256 bytes. Context thread: yes.
 */
LBMExpDLL int lbmaux_lbmmon_format_options_from_file(char **FormatOptionsBuffer, const char *FormatOptionsFile,
                                                     char *ErrorString);

#ifdef __cplusplus
}
#endif

#endif
