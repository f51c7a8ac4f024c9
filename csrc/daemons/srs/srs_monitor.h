/* The monitor of the SRS daemon: publishes its statistics, options and events on
 * a topic, and answers commands. It has a context and a thread of its own; of the
 * daemon's loop it takes the time to copy counters. */
#ifndef UM_DAEMONS_SRS_MONITOR_H
#define UM_DAEMONS_SRS_MONITOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "net/um_loop.h"
#include "resolver/um_srs_engine.h"
#include "srs_settings.h"

struct srs_monitor;

/* Do its options (lbm-attributes) exist, with values that are taken? False: said in `errors`. Before there are threads.
 */
bool srs_monitor_check(const struct srs_settings *settings, FILE *errors);

/* These on the thread that runs the loop, outside of it. NULL: the settings ask for none, or said in the log; then the
 * service goes on without. The settings must outlive it. */
struct srs_monitor *srs_monitor_create(struct um_loop *loop, const struct srs_settings *settings);
void srs_monitor_start(struct srs_monitor *monitor, const struct um_srs_engine *engine); /* which outlives its end */
/* Nothing is published or answered any more; events are taken still. May be NULL. */
void srs_monitor_stop(struct srs_monitor *monitor);
void srs_monitor_destroy(struct srs_monitor *monitor); /* of one that was stopped; may be NULL */

/* Events of the engine, for um_srs_config.event; `arg` is the monitor. On the loop: never waits. */
void srs_monitor_event(void *arg, const char *type, uint32_t ip, uint16_t port, uint32_t session_id, const char *topic,
                       const char *source);

#endif
