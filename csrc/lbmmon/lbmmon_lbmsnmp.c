/* The transport module `lbmsnmp`: another name for `lbm`. An agent for SNMP is not part of this library; whoever serves
 * one listens to the topic. Owns the line that says so. Threads are those of `lbm`. */
#include <stdatomic.h>

#include <lbm/lbmmon.h>

#include "base/um_log.h"
#include "lbmmon/um_mon_error.h"

static atomic_bool told;

static int with_text(int rc)
{
    return rc >= 0 ? rc : um_mon_module_error(UM_MON_LBMSNMP, "%s", lbmmon_transport_lbm_errmsg());
}

static void tell_once(void)
{
    if (!atomic_exchange(&told, true)) {
        um_log(UM_LOG_NOTICE, "OpenUM-9060-6",
               "monitoring transport lbmsnmp: it is the same as lbm: records are messages of the topic, and no SNMP "
               "agent is involved (said once)");
    }
}

int lbmmon_transport_lbmsnmp_initsrc(void **TransportClientData, const void *TransportOptions)
{
    tell_once();
    return with_text(lbmmon_transport_lbm_initsrc(TransportClientData, TransportOptions));
}

int lbmmon_transport_lbmsnmp_initrcv(void **TransportClientData, const void *TransportOptions)
{
    tell_once();
    return with_text(lbmmon_transport_lbm_initrcv(TransportClientData, TransportOptions));
}

int lbmmon_transport_lbmsnmp_send(const char *Data, size_t Length, void *TransportClientData)
{
    return with_text(lbmmon_transport_lbm_send(Data, Length, TransportClientData));
}

int lbmmon_transport_lbmsnmp_receive(char *Data, size_t *Length, unsigned int TimeoutMS, void *TransportClientData)
{
    return with_text(lbmmon_transport_lbm_receive(Data, Length, TimeoutMS, TransportClientData));
}

int lbmmon_transport_lbmsnmp_src_finish(void *TransportClientData)
{
    return with_text(lbmmon_transport_lbm_src_finish(TransportClientData));
}

int lbmmon_transport_lbmsnmp_rcv_finish(void *TransportClientData)
{
    return with_text(lbmmon_transport_lbm_rcv_finish(TransportClientData));
}

const char *lbmmon_transport_lbmsnmp_errmsg(void)
{
    return um_mon_module_errmsg(UM_MON_LBMSNMP);
}

const lbmmon_transport_func_t *lbmmon_transport_lbmsnmp_module(void)
{
    static const lbmmon_transport_func_t table = {
        .mInitSource = lbmmon_transport_lbmsnmp_initsrc,
        .mInitReceiver = lbmmon_transport_lbmsnmp_initrcv,
        .mSend = lbmmon_transport_lbmsnmp_send,
        .mReceive = lbmmon_transport_lbmsnmp_receive,
        .mFinishSource = lbmmon_transport_lbmsnmp_src_finish,
        .mFinishReceiver = lbmmon_transport_lbmsnmp_rcv_finish,
        .mErrorMessage = lbmmon_transport_lbmsnmp_errmsg,
        .mControlMessageTarget = lbmmon_transport_lbm_ctrlmsgtarget,
        .mControlMessageReceive = lbmmon_transport_lbm_ctrlmsg_receive,
        .mControlMessageResponse = lbmmon_transport_lbm_ctrlmsg_response,
        .mAllowDebug = lbmmon_transport_allow_debug,
    };
    return &table;
}
