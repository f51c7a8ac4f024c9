/* The resolved options of live objects: objects whose options are equal share one copy. Immutable from the moment it is
 * handed out; whoever has a reference reads it without a lock, on any thread. References are counted by atomics, the
 * table of what there is belongs to the process and has a lock that nothing else is taken under. Any thread. */
#ifndef UM_CONFIG_SHARED_OPTIONS_H
#define UM_CONFIG_SHARED_OPTIONS_H

#include "config/um_options.h"

/* Sources and receivers only. Takes `options` over, whose strings and lists belong to the shared copy or are freed. One
 * reference. NULL + error: out of memory, `options` is the caller's as before. */
const void *um_options_share(enum um_option_scope scope, void *options);
/* A copy of `shared` as `change` makes it, shared in its turn: one reference. Others that share see nothing of it.
 * NULL + error: `change` failed, or out of memory. */
const void *um_options_share_changed(const void *shared, int (*change)(void *options, void *arg), void *arg);
void um_options_hold(const void *shared); /* one more reference, for whoever has one */
void um_options_drop(const void *shared); /* NULL: nothing */
size_t um_options_shared_count(void);     /* different ones in the process now */

#endif
