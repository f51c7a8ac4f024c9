/* lbtsmx_resource_manager [-reclaim]: what LBT-SMX has in shared memory, and removal
 * of what dead processes left. All of it is in resource_manager.c. */
#include "daemons/um_resource_manager.h"

int main(int argc, char **argv)
{
    return um_resource_manager(UM_SHM_SMX, argc, argv);
}
