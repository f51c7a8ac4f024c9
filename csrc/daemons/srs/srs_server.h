/* TCP server of the SRS: accepts, reads and writes for the engine in resolver/,
 * in the loop of the daemon. Everything runs on the loop's owner. */
#ifndef UM_DAEMONS_SRS_SERVER_H
#define UM_DAEMONS_SRS_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "net/um_loop.h"
#include "resolver/um_srs_engine.h"
#include "srs_settings.h"

struct srs_server;

/* NULL: said in the log. `event` as in um_srs_config, with `arg`; may be NULL. */
struct srs_server *srs_server_start(struct um_loop *loop, const struct srs_settings *settings,
                                    void (*event)(void *arg, const char *type, uint32_t ip, uint16_t port,
                                                  uint32_t session_id, const char *topic, const char *source),
                                    void *arg);
/* Ends every connection and logs the sums. */
void srs_server_stop(struct srs_server *server);
struct um_srs_engine *srs_server_engine(struct srs_server *server);

#endif
