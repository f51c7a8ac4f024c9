/* Control messages at the request port of a context that carries records: unicast immediate requests. Messages wait,
 * few of them, until the sampling thread takes them. */
#ifndef UM_LBMMON_LBM_CONTROL_H
#define UM_LBMMON_LBM_CONTROL_H

#include "lbmmon/um_mon_lbm.h"

struct um_mon_lbm_control;

/* NULL + the text of the module. Where the context has no request port, nothing comes. */
struct um_mon_lbm_control *um_mon_lbm_control_open(lbm_context_t *ctx, const struct um_mon_lbm_options *options);
void um_mon_lbm_control_close(struct um_mon_lbm_control *control); /* NULL: nothing */
bool um_mon_lbm_control_allows_debug(const struct um_mon_lbm_control *control);
/* 0: a message; 1: there is none; -1 + text. */
int um_mon_lbm_control_receive(struct um_mon_lbm_control *control, char *data, size_t *len);
/* Answers the message received last, once. */
int um_mon_lbm_control_respond(struct um_mon_lbm_control *control, const char *data, size_t len);

#endif
