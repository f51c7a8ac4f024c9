/** libum public header lbmmontrudp.h */
#ifndef LBM_LBMMONTRUDP_H_INCLUDED
#define LBM_LBMMONTRUDP_H_INCLUDED

#include <stdlib.h>
#include "lbm/lbmmon.h"

#ifdef __cplusplus
extern "C" {
#endif

LBMExpDLL const lbmmon_transport_func_t *lbmmon_transport_udp_module(void);
LBMExpDLL int lbmmon_transport_udp_initsrc(void **TransportClientData, const void *TransportOptions);
LBMExpDLL int lbmmon_transport_udp_initrcv(void **TransportClientData, const void *TransportOptions);
LBMExpDLL int lbmmon_transport_udp_send(const char *Data, size_t Length, void *TransportClientData);
LBMExpDLL int lbmmon_transport_udp_receive(char *Data, size_t *Length, unsigned int TimeoutMS,
                                           void *TransportClientData);
LBMExpDLL int lbmmon_transport_udp_src_finish(void *TransportClientData);
LBMExpDLL int lbmmon_transport_udp_rcv_finish(void *TransportClientData);
LBMExpDLL const char *lbmmon_transport_udp_errmsg(void);

#ifdef __cplusplus
}
#endif

#endif
