/* The source controller of a program; it is made when the first object is to be monitored. */
#include "ex_monitor.h"

#include "ex_mon.h"

struct ex_monitor ex_monitor;
static lbmmon_sctl_t *controller;

static lbmmon_sctl_t *get_controller(void)
{
    if (controller == NULL) {
        const lbmmon_transport_func_t *transport = ex_mon_transport(ex_monitor.transport);
        const lbmmon_format_func_t *format = ex_mon_format(ex_monitor.format);
        if (transport == NULL || format == NULL) {
            fprintf(stderr, "--monitor-transport must be lbm, udp or lbmsnmp, --monitor-format csv or pb\n");
            exit(1);
        }
        if (lbmmon_sctl_create(&controller, format, ex_monitor.format_opts, transport, ex_monitor.transport_opts) !=
            0) {
            ex_mon_fail("lbmmon_sctl_create");
        }
    }
    return controller;
}

#define MONITOR(function, object, seconds)                                                                             \
    do {                                                                                                               \
        if (seconds > 0 && function(get_controller(), object, ex_monitor.application, (unsigned)(seconds)) != 0) {     \
            ex_mon_fail(#function);                                                                                    \
        }                                                                                                              \
    } while (0)

void ex_monitor_context(lbm_context_t *ctx)
{
    MONITOR(lbmmon_context_monitor, ctx, ex_monitor.context);
}

static unsigned long object_seconds(void)
{
    return ex_monitor.context > 0 ? 0 : ex_monitor.object;
}

void ex_monitor_source(lbm_src_t *src)
{
    MONITOR(lbmmon_src_monitor, src, object_seconds());
}

void ex_monitor_smart_source(lbm_ssrc_t *ssrc)
{
    MONITOR(lbmmon_ssrc_monitor, ssrc, object_seconds());
}

void ex_monitor_receiver(lbm_rcv_t *rcv)
{
    MONITOR(lbmmon_rcv_monitor, rcv, object_seconds());
}

void ex_monitor_queue(lbm_event_queue_t *evq)
{
    MONITOR(lbmmon_evq_monitor, evq, ex_monitor.queue);
}

void ex_monitor_stop(void)
{
    if (controller != NULL && lbmmon_sctl_destroy(controller) != 0) {
        ex_mon_fail("lbmmon_sctl_destroy");
    }
    controller = NULL;
}
