/* Option strings of modules: `name=value;name=value`. Called when modules begin, any thread. */
#ifndef UM_LBMMON_OPTIONS_H
#define UM_LBMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum { UM_MON_OPTION_NAME_MAX = 256, UM_MON_OPTION_VALUE_MAX = 4096 };

struct um_mon_option {
    char name[UM_MON_OPTION_NAME_MAX];
    char value[UM_MON_OPTION_VALUE_MAX];
};

/* The next one; returns the rest of the text, NULL: there is none. */
const char *um_mon_option_next(const char *text, struct um_mon_option *out);

/* LBMMON_FORMAT_PASSTHROUGH_*; -1: another value. */
int um_mon_passthrough(const char *value);
/* on, 1, true, yes or off, 0, false, no. */
bool um_mon_switch(const char *value, bool *out);

#endif
