/* The process's configuration: built-in and current defaults of every scope, the XML table, and how they are filled
 * (environment, plain-text files, XML). The functions that make an object's effective options are in um_options.h.
 * Any thread; one mutex guards the current defaults and the XML table, and is never held while anything is logged. */
#ifndef UM_CONFIG_CONFIG_H
#define UM_CONFIG_CONFIG_H

#include <stddef.h>

#include "config/um_attr.h"

/* Ready for use: as um_config_start, but tells. 0, or -1 + error (out of memory; the next call tries again). */
int um_config_ready(void);

/* A new attribute object with the current defaults, or with the built-in ones. 0, or -1 + error. */
int um_config_attr_current(struct um_attr *attr, enum um_option_scope scope);
int um_config_attr_initial(struct um_attr *attr, enum um_option_scope scope);

/* One assignment to the current defaults; what the lines of a file do. */
int um_config_assign(const struct um_option *option, const char *text, enum um_option_note *note);

/* Apply a plain-text file to the current defaults, or, when `only` is not NULL, the lines of its scope to that
 * object. Every bad line is logged, all good ones are applied. 0, or -1 + the last error. */
int um_config_file(const char *name, struct um_attr *only);
/* The same for text in memory; `name` is what messages call it. */
int um_config_text(const char *name, const char *data, size_t len, struct um_attr *only);

/* The whole of a file in a new buffer with a terminating zero (um_free). Refuses URLs and more than 64 MiB.
 * 0, or -1 + error. */
int um_config_read_file(const char *name, char **data, size_t *len);

/* Effective options of an hfx or xsp object, as the functions of um_options.h for the other scopes. */
int um_hfx_options_resolve(const lbm_hfx_attr_t *attr, const char *topic, struct um_hfx_options *out);
int um_xsp_options_resolve(const lbm_xsp_attr_t *attr, struct um_xsp_options *out);

/* Tests and fuzz targets only: as if the process had just started, without reading the environment again. */
void um_config_reset(void);

#endif
