/* What um_tcp_accept.c and um_tcp_client.c offer the session and each other. Everything
 * is [loop]; "lock" where the session lock must be held. */
#ifndef UM_TRANSPORT_TCP_CLIENT_H
#define UM_TRANSPORT_TCP_CLIENT_H

#include "transport/tcp/um_tcp_src_session.h"

/* um_tcp_accept.c */
int um_tcp_src_session_listen(struct um_tcp_src_session *session, int fd);
void um_tcp_src_session_end_opening(struct um_tcp_src_session *session);
/* Goes on opening the stream. True: it is open and a client of the session. False: not yet, or the client is gone. */
bool um_tcp_client_opens(struct um_tcp_client *client);

/* um_tcp_client.c */
void um_tcp_client_on_ready(struct um_fd *ufd, uint32_t ready, uint64_t now_ns);
void um_tcp_src_session_report(struct um_tcp_src_session *session, const char *client, bool connected);
void um_tcp_src_session_announce(struct um_src_session *base, struct um_src_stream *stream);
void um_tcp_src_session_on_command(struct um_src_session *base);
void um_tcp_client_close(struct um_tcp_client *client);                                /* reports DISCONNECT */
void um_tcp_client_discard(struct um_tcp_client *client, enum um_stream_closing how);  /* the same without a word */
void um_tcp_client_put_tsni(struct um_tcp_client *client, struct um_src_stream *only); /* lock; NULL: all it wants */

#endif
