/** libum public header lbmmontrlbmsnmp.h */
#ifndef LBM_LBMMONTRLBMSNMP_H_INCLUDED
#define LBM_LBMMONTRLBMSNMP_H_INCLUDED

#include <stdlib.h>
#include "lbm/lbmmon.h"

#ifdef __cplusplus
extern "C" {
#endif

LBMExpDLL const lbmmon_transport_func_t *lbmmon_transport_lbmsnmp_module(void);
LBMExpDLL int lbmmon_transport_lbmsnmp_initsrc(void **TransportClientData, const void *TransportOptions);
LBMExpDLL int lbmmon_transport_lbmsnmp_initrcv(void **TransportClientData, const void *TransportOptions);
LBMExpDLL int lbmmon_transport_lbmsnmp_send(const char *Data, size_t Length, void *TransportClientData);
LBMExpDLL int lbmmon_transport_lbmsnmp_receive(char *Data, size_t *Length, unsigned int TimeoutMS,
                                               void *TransportClientData);
LBMExpDLL int lbmmon_transport_lbmsnmp_src_finish(void *TransportClientData);
LBMExpDLL int lbmmon_transport_lbmsnmp_rcv_finish(void *TransportClientData);
LBMExpDLL const char *lbmmon_transport_lbmsnmp_errmsg(void);

#ifdef __cplusplus
}
#endif

#endif
