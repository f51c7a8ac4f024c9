/** lbmmontrudp.h - the monitoring transport module that carries packets as plain UDP datagrams. */
#ifndef LBM_LBMMONTRUDP_H_INCLUDED
#define LBM_LBMMONTRUDP_H_INCLUDED

#include <stdlib.h>
#include "lbm/lbmmon.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Function table of the module; static. */
LBMExpDLL const lbmmon_transport_func_t *lbmmon_transport_udp_module(void);

/** Starts the module. */
LBMExpDLL int lbmmon_transport_udp_initsrc(void **TransportClientData, const void *TransportOptions);

/** Starts the module. */
LBMExpDLL int lbmmon_transport_udp_initrcv(void **TransportClientData, const void *TransportOptions);

/** Sends a packet. */
LBMExpDLL int lbmmon_transport_udp_send(const char *Data, size_t Length, void *TransportClientData);

/** Waits for a packet. */
LBMExpDLL int lbmmon_transport_udp_receive(char *Data, size_t *Length, unsigned int TimeoutMS,
                                           void *TransportClientData);

/** Ends the module. */
LBMExpDLL int lbmmon_transport_udp_src_finish(void *TransportClientData);

/** Ends the module. */
LBMExpDLL int lbmmon_transport_udp_rcv_finish(void *TransportClientData);

/** Last error of the module. */
LBMExpDLL const char *lbmmon_transport_udp_errmsg(void);

#ifdef __cplusplus
}
#endif

#endif
