/* The --monitor-... options: statistics of a program's own objects are sent as monitoring
 * records. One source controller in a program. Called by main(). */
#ifndef EX_MONITOR_H
#define EX_MONITOR_H

#include <lbm/lbm.h>

/* Seconds between records, 0: not monitored. With a context its sources and receivers are part of it. */
struct ex_monitor {
    unsigned long context, object, queue;
    const char *transport, *transport_opts, *format, *format_opts, *application;
};
extern struct ex_monitor ex_monitor;

/* Each does nothing where the command line does not ask for it. */
void ex_monitor_context(lbm_context_t *ctx);
void ex_monitor_source(lbm_src_t *src);
void ex_monitor_smart_source(lbm_ssrc_t *ssrc);
void ex_monitor_receiver(lbm_rcv_t *rcv);
void ex_monitor_queue(lbm_event_queue_t *evq);
/* Before any of them is deleted. */
void ex_monitor_stop(void);

#endif
