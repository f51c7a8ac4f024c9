/* What csrc/transport/tcp/um_tcp_client.c offers the session. Everything is
 * [loop]; "lock" where the session lock must be held. */
#ifndef UM_TRANSPORT_TCP_CLIENT_H
#define UM_TRANSPORT_TCP_CLIENT_H

#include "transport/tcp/um_tcp_source.h"

int um_tcp_session_listen(struct um_tcp_session *session, int fd);
void um_tcp_session_announce(struct um_src_session *base, struct um_src_stream *stream);
void um_tcp_session_on_command(struct um_src_session *base);
void um_tcp_client_close(struct um_tcp_client *client);                                /* reports DISCONNECT */
void um_tcp_client_discard(struct um_tcp_client *client);                              /* the same without a word */
void um_tcp_client_put_tsni(struct um_tcp_client *client, struct um_src_stream *only); /* lock; NULL: all it wants */

#endif
