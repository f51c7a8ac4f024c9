/* Profiles: values for many options at once, chosen with the context option um_profile. They replace defaults only;
 * whatever was set stays. Any thread. */
#ifndef UM_CONFIG_PROFILE_H
#define UM_CONFIG_PROFILE_H

#include "config/um_attr.h"

/* Values of the option um_profile. */
enum um_profile { UM_PROFILE_NONE = 0, UM_PROFILE_LOW_LATENCY = 1 };

/* `initial`: the built-in defaults of the scope. 0, or -1 + error (out of memory). */
int um_profile_apply(struct um_attr *attr, enum um_profile profile, const struct um_attr *initial);

#endif
