/* Which lane receives which transport session: the application's mapping function
 * is asked once for each session that is about to be joined, and its answer holds
 * until nothing of the session is left. Sessions of LBT-RM on one group and port
 * share a socket, so they share the answer. [loop] of the context. */
#ifndef UM_CORE_RCV_ROUTES_H
#define UM_CORE_RCV_ROUTES_H

#include <lbm/lbm.h>

#include "core/um_rcv_lane.h"

struct um_rcv_route;

/* For one source. *out NULL: nobody is asked for sessions like this, the context receives them. 0, or -1 + UM_ENOMEM.
 */
int um_rcv_route_take(lbm_context_t *ctx, const lbm_transport_source_info_t *info, struct um_rcv_route **out);
void um_rcv_route_release(struct um_rcv_route *route);
struct um_rcv_lane *um_rcv_route_lane(const struct um_rcv_route *route);
/* As um_rcv_sessions_join_kind(), whatever lane it is or would be. */
enum um_rcv_join_kind um_rcv_routes_join_kind(lbm_context_t *ctx, const lbm_transport_source_info_t *info);

#endif
