/* Rules that involve several options of one object, and the once-per-process warnings about options that do not act.
 * Called when an object is created (um_config.c). Any thread. */
#ifndef UM_CONFIG_OPTION_CHECKS_H
#define UM_CONFIG_OPTION_CHECKS_H

#include "config/um_option_table.h"

/* 0, or -1 + error when the options contradict each other or ask for something that must not be ignored. Logs the
 * documented warnings. */
int um_options_check(enum um_option_scope scope, const void *options);
/* One warning per option and process for each option that differs from `defaults` and does not act. */
void um_options_warn_inactive(enum um_option_scope scope, const void *options, const void *defaults);

/* The same, for one option that old programs may set. */
void um_option_warn_no_effect(const struct um_option *option);
/* Once per option and process: the option of a configuration file is deprecated. */
void um_option_warn_deprecated(const struct um_option *option);

/* Tests only: the next warning of every option is logged again. */
void um_option_warnings_reset(void);

#endif
