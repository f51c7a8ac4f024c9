/** lbmmontrlbm.h - the monitoring transport module that carries packets as messages on a topic. */
#ifndef LBM_LBMMONTRLBM_H_INCLUDED
#define LBM_LBMMONTRLBM_H_INCLUDED

#include <stdlib.h>
#include "lbm/lbmmon.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Function table of the module; static. */
LBMExpDLL const lbmmon_transport_func_t *lbmmon_transport_lbm_module(void);

/** Starts the module. */
LBMExpDLL int lbmmon_transport_lbm_initsrc(void **TransportClientData, const void *TransportOptions);

/** Starts the module. */
LBMExpDLL int lbmmon_transport_lbm_initrcv(void **TransportClientData, const void *TransportOptions);

/** Sends a packet. */
LBMExpDLL int lbmmon_transport_lbm_send(const char *Data, size_t Length, void *TransportClientData);

/** Waits for a packet. */
LBMExpDLL int lbmmon_transport_lbm_receive(char *Data, size_t *Length, unsigned int TimeoutMS,
                                           void *TransportClientData);

/** Ends the module. */
LBMExpDLL int lbmmon_transport_lbm_src_finish(void *TransportClientData);

/** Ends the module. */
LBMExpDLL int lbmmon_transport_lbm_rcv_finish(void *TransportClientData);

/** 1 when remote debug commands are allowed, else 0. */
LBMExpDLL int lbmmon_transport_allow_debug(void *TransportClientData);

/** Last error of the module. */
LBMExpDLL const char *lbmmon_transport_lbm_errmsg(void);

/** Where control commands are to be sent; NULL when closed. */
LBMExpDLL const char *lbmmon_transport_lbm_ctrlmsgtarget(void);

/** Waits for a packet. */
LBMExpDLL int lbmmon_transport_lbm_ctrlmsg_receive(char *Data, size_t *Length, void *TransportClientData);

/** Control command. */
LBMExpDLL int lbmmon_transport_lbm_ctrlmsg_response(const char *Data, size_t Length, void *TransportClientData);

#ifdef __cplusplus
}
#endif

#endif
