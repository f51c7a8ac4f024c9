/* The two resource managers: list what the shared-memory transports have in the
 * directory of segments, and remove what dead processes left. Called by the main()
 * of lbtipc_resource_manager and lbtsmx_resource_manager; one thread. */
#ifndef UM_DAEMONS_RESOURCE_MANAGER_H
#define UM_DAEMONS_RESOURCE_MANAGER_H

#include "transport/shm/um_shm_segment.h"

/* The exit status: 0, or 1 when the directory cannot be read or something dead cannot be removed. */
int um_resource_manager(enum um_shm_kind kind, int argc, char **argv);

#endif
