/* Rules that involve several options of one object, and the once-per-process warnings about options that do not act.
 * Called when an object is created (um_config.c). Any thread. */
#ifndef UM_CONFIG_OPTION_CHECKS_H
#define UM_CONFIG_OPTION_CHECKS_H

#include "config/um_option_table.h"

/* 0, or -1 + error when the options contradict each other or ask for something that must not be ignored. Logs the
 * documented warnings. */
int um_options_check(enum um_option_scope scope, const void *options);
/* Tells of the options that differ from `defaults` and do not act. Those whose feature is missing share one line for
 * each object, left out when it would name nothing new; those without effect have a line each, once per process. */
void um_options_warn_inactive(enum um_option_scope scope, const void *options, const void *defaults);
/* Once per option and process: the line about missing features for one option. */
void um_option_warn_not_yet(const struct um_option *option);

/* Once per option and process: an option that old programs may set has no effect. */
void um_option_warn_no_effect(const struct um_option *option);
/* Once per option and process: a time was below the minimum, which is taken instead. */
void um_option_warn_raised(const struct um_option *option);
/* Once per option and process: the option of a configuration file is deprecated. */
void um_option_warn_deprecated(const struct um_option *option);

/* Tests only: the next warning of every option is logged again. */
void um_option_warnings_reset(void);

#endif
