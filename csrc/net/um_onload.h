/* Onload's extension library, used where it is there: sockets made between enter and
 * leave go to the named stack of acceleration. The calling thread. */
#ifndef UM_NET_ONLOAD_H
#define UM_NET_ONLOAD_H

#include <stdbool.h>

/* `stack` NULL or empty: nothing happens. The result is for um_onload_leave(). */
bool um_onload_enter(const char *stack);
void um_onload_leave(bool entered);

#endif
