/** lbmmontrlbmsnmp.h - the monitoring transport module that feeds an SNMP agent. */
#ifndef LBM_LBMMONTRLBMSNMP_H_INCLUDED
#define LBM_LBMMONTRLBMSNMP_H_INCLUDED

#include <stdlib.h>
#include "lbm/lbmmon.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Function table of the module; static. */
LBMExpDLL const lbmmon_transport_func_t *lbmmon_transport_lbmsnmp_module(void);

/** Starts the module. */
LBMExpDLL int lbmmon_transport_lbmsnmp_initsrc(void **TransportClientData, const void *TransportOptions);

/** Starts the module. */
LBMExpDLL int lbmmon_transport_lbmsnmp_initrcv(void **TransportClientData, const void *TransportOptions);

/** Sends a packet. */
LBMExpDLL int lbmmon_transport_lbmsnmp_send(const char *Data, size_t Length, void *TransportClientData);

/** Waits for a packet. */
LBMExpDLL int lbmmon_transport_lbmsnmp_receive(char *Data, size_t *Length, unsigned int TimeoutMS,
                                               void *TransportClientData);

/** Ends the module. */
LBMExpDLL int lbmmon_transport_lbmsnmp_src_finish(void *TransportClientData);

/** Ends the module. */
LBMExpDLL int lbmmon_transport_lbmsnmp_rcv_finish(void *TransportClientData);

/** Last error of the module. */
LBMExpDLL const char *lbmmon_transport_lbmsnmp_errmsg(void);

#ifdef __cplusplus
}
#endif

#endif
