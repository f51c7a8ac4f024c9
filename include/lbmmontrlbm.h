/** libum public header lbmmontrlbm.h */
#ifndef LBM_LBMMONTRLBM_H_INCLUDED
#define LBM_LBMMONTRLBM_H_INCLUDED

#include <stdlib.h>
#include "lbm/lbmmon.h"

#ifdef __cplusplus
extern "C" {
#endif

LBMExpDLL const lbmmon_transport_func_t *lbmmon_transport_lbm_module(void);
LBMExpDLL int lbmmon_transport_lbm_initsrc(void **TransportClientData, const void *TransportOptions);
LBMExpDLL int lbmmon_transport_lbm_initrcv(void **TransportClientData, const void *TransportOptions);
LBMExpDLL int lbmmon_transport_lbm_send(const char *Data, size_t Length, void *TransportClientData);
LBMExpDLL int lbmmon_transport_lbm_receive(char *Data, size_t *Length, unsigned int TimeoutMS,
                                           void *TransportClientData);
LBMExpDLL int lbmmon_transport_lbm_src_finish(void *TransportClientData);
LBMExpDLL int lbmmon_transport_lbm_rcv_finish(void *TransportClientData);
LBMExpDLL int lbmmon_transport_allow_debug(void *TransportClientData);
LBMExpDLL const char *lbmmon_transport_lbm_errmsg(void);
LBMExpDLL const char *lbmmon_transport_lbm_ctrlmsgtarget(void);
LBMExpDLL int lbmmon_transport_lbm_ctrlmsg_receive(char *Data, size_t *Length, void *TransportClientData);
LBMExpDLL int lbmmon_transport_lbm_ctrlmsg_response(const char *Data, size_t Length, void *TransportClientData);

#ifdef __cplusplus
}
#endif

#endif
