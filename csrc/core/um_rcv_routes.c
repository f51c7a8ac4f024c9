/* Sessions and their lanes. See um_rcv_routes.h. */
#include "core/um_rcv_routes.h"

#include <string.h>

#include "base/um_error.h"
#include "base/um_log.h"
#include "base/um_map.h"
#include "base/um_mem.h"
#include "core/um_context.h"
#include "core/um_xsp.h"
#include "wire/um_source_string.h"
#include "wire/um_transport_place.h"

/* Words only, no padding. Of a channel, the group and port of LBT-RM, everything else is 0. */
struct route_key {
    uint32_t type, ip, port, session_id, group, dest_port;
};

struct um_rcv_route {
    struct route_key key;
    struct um_rcv_lane *lane;
    struct um_rcv_route *channel; /* of a session over LBT-RM */
    unsigned uses;
};

/* What comes from memory is received by threads of its own, what nobody knows by none. */
static bool asked_for(const lbm_context_t *ctx, int type)
{
    enum um_transport_place place = um_transport_place(type);
    return ctx->opts.transport_mapping_function.mapping_func != NULL &&
           (place == UM_PLACE_ADDRESS || place == UM_PLACE_GROUP);
}

/* Sessions of one group come by one socket, so one loop receives them all. */
static bool shares_channel(const lbm_transport_source_info_t *info)
{
    return um_transport_place(info->type) == UM_PLACE_GROUP;
}

static struct route_key session_key(const lbm_transport_source_info_t *info)
{
    struct route_key key = {
        .type = (uint32_t)info->type, .ip = info->src_ip, .port = info->src_port, .session_id = info->session_id};
    if (shares_channel(info)) {
        key.group = info->mc_group;
        key.dest_port = info->dest_port;
    }
    return key;
}

static struct route_key channel_key(const lbm_transport_source_info_t *info)
{
    return (struct route_key){.type = (uint32_t)info->type, .group = info->mc_group, .dest_port = info->dest_port};
}

static struct um_rcv_route *add(lbm_context_t *ctx, const struct route_key *key)
{
    struct um_rcv_route *route = um_calloc(1, sizeof *route);
    if (route == NULL || um_map_put(&ctx->routes, key, sizeof *key, route) != 0) {
        um_free(route);
        um_error_nomem("transport session of an XSP", sizeof *route);
        return NULL;
    }
    route->key = *key;
    route->lane = &ctx->rcv_lane;
    return route;
}

static void drop(lbm_context_t *ctx, struct um_rcv_route *route)
{
    um_map_remove(&ctx->routes, &route->key, sizeof route->key);
    um_free(route);
}

/* ---- asking ---- */

static struct um_rcv_lane *ask(lbm_context_t *ctx, const lbm_transport_source_info_t *info)
{
    const lbm_transport_mapping_func_t *mapping = &ctx->opts.transport_mapping_function;
    lbm_new_transport_info_t what;
    memset(&what, 0, sizeof what);
    what.src_info = *info;
    what.src_info.topic_idx = 0;
    if (um_source_string_format(&what.src_info, what.source, sizeof what.source) < 0) {
        return &ctx->rcv_lane;
    }
    ctx->mapping++;
    lbm_xsp_t *xsp = mapping->mapping_func(ctx, &what, mapping->clientd);
    ctx->mapping--;
    struct um_rcv_lane *lane = xsp == NULL ? &ctx->rcv_lane : um_xsp_lane(ctx, xsp);
    if (lane == NULL) {
        um_log_limited(um_log_of_all(), um_loop_now(ctx->loop), UM_LOG_WARNING, "Core-10138-51",
                       "%s: the xsp returned from the transport mapping callback was created on a different context, "
                       "or is deleted: the context receives the session itself",
                       what.source);
        return &ctx->rcv_lane;
    }
    return lane;
}

/* The session's route is in the table; it gets its lane. 0, or -1 + error. */
static int choose(lbm_context_t *ctx, const lbm_transport_source_info_t *info, struct um_rcv_route *route)
{
    if (!shares_channel(info)) {
        route->lane = ask(ctx, info);
        return 0;
    }
    struct route_key key = channel_key(info);
    struct um_rcv_route *channel = um_map_get(&ctx->routes, &key, sizeof key);
    if (channel == NULL) {
        channel = add(ctx, &key);
        if (channel == NULL) {
            return -1;
        }
        channel->lane = ask(ctx, info);
    }
    channel->uses++;
    route->channel = channel;
    route->lane = channel->lane;
    return 0;
}

int um_rcv_route_take(lbm_context_t *ctx, const lbm_transport_source_info_t *info, struct um_rcv_route **out)
{
    *out = NULL;
    if (!asked_for(ctx, info->type)) {
        return 0;
    }
    struct route_key key = session_key(info);
    struct um_rcv_route *route = um_map_get(&ctx->routes, &key, sizeof key);
    if (route == NULL) {
        route = add(ctx, &key);
        if (route == NULL) {
            return -1;
        }
        if (choose(ctx, info, route) != 0) {
            drop(ctx, route);
            return -1;
        }
        route->lane->routes++;
    }
    route->uses++;
    *out = route;
    return 0;
}

void um_rcv_route_release(struct um_rcv_route *route)
{
    struct um_rcv_lane *lane = route->lane;
    struct um_rcv_route *channel = route->channel;
    if (--route->uses > 0) {
        return;
    }
    drop(lane->ctx, route);
    if (channel != NULL && --channel->uses == 0) {
        drop(lane->ctx, channel);
    }
    if (--lane->routes == 0 && lane->on_unused != NULL) {
        lane->on_unused(lane);
    }
}

struct um_rcv_lane *um_rcv_route_lane(const struct um_rcv_route *route)
{
    return route->lane;
}

enum um_rcv_join_kind um_rcv_routes_join_kind(lbm_context_t *ctx, const lbm_transport_source_info_t *info)
{
    if (asked_for(ctx, info->type)) {
        struct route_key key = session_key(info), group = channel_key(info);
        const struct um_rcv_route *route = um_map_get(&ctx->routes, &key, sizeof key);
        if (route != NULL && route->lane != &ctx->rcv_lane) {
            return UM_RCV_JOIN_FREE;
        }
        const struct um_rcv_route *channel =
            shares_channel(info) && route == NULL ? um_map_get(&ctx->routes, &group, sizeof group) : NULL;
        if (channel != NULL && channel->lane != &ctx->rcv_lane) {
            return UM_RCV_JOIN_MEMORY;
        }
    }
    return um_rcv_sessions_join_kind(ctx->rcv_sessions, info);
}
