/* Receiving UDP sockets: opened for a multicast group or a unicast port range, and read many datagrams at a time into
 * pooled buffers that messages may keep. A reader and its sockets belong to one loop; in order, reading allocates
 * nothing. */
#ifndef UM_NET_UDP_H
#define UM_NET_UDP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/um_buf.h"
#include "base/um_iface.h"
#include "net/um_port_range.h"
#include "net/um_socket.h"

struct um_udp_reader;

struct um_udp_config {
    size_t datagram_max; /* a longer datagram is counted and marked */
    size_t socket_buffer;
    enum um_size_origin socket_buffer_origin;
    const char *socket_buffer_option;
    const char *socket_buffer_log;
    bool timestamps; /* of the kernel, or of the network card where that is possible */
};

struct um_udp_socket {
    int fd; /* -1: closed */
    size_t datagram_max;
    struct in_addr group; /* 0: unicast */
    bool check_group;     /* bound to every address: the kernel may hand over what is not for the group */
    bool timestamps;
    uint32_t packets;     /* received; wraps. For um_fd.arrivals */
    uint64_t foreign;     /* datagrams for another address than the group: dropped unread */
    uint64_t oversized;   /* datagrams longer than datagram_max: to be dropped */
    uint64_t read_errors; /* failed receives other than "nothing there", and no memory to receive into */
    uint64_t drops_base;  /* of um_udp_kernel_drops(): what is not to be told */
};

struct um_udp_datagram {
    uint8_t *data; /* in `buf`: um_buf_ref() to keep; writable until handed on */
    size_t len;
    uint32_t from_ip;   /* network order */
    uint16_t from_port; /* host order */
    uint64_t stamp_ns;  /* wall clock of its arrival; 0: none */
    struct um_buf *buf;
    bool oversized; /* longer than datagram_max: only its beginning is here, for who wants to know whose it is */
};

/* `batch`: datagrams per system call, 0 = the reader's choice. `offload`: let the kernel hand over datagrams that were
 * sent as one (UDP_GRO). `datagram_max`: the largest of any of its sockets. NULL: out of memory (no error set). */
struct um_udp_reader *um_udp_reader_create(unsigned batch, size_t datagram_max, bool offload);
void um_udp_reader_destroy(struct um_udp_reader *reader);

/* Join `group` on the interface; several processes of a host may share group and port. The socket gets only what is
 * sent to its group through that interface, whatever others on the host have joined. `any_address`: bind to every
 * address, as systems need that cannot bind to a group (tried by itself after a failure). 0; UM_UDP_NOT_BOUND + error:
 * the socket cannot have group and port; -1 + error: anything else. */
int um_udp_open_group(struct um_udp_reader *reader, struct um_udp_socket *socket, const struct um_udp_config *config,
                      struct in_addr group, uint16_t port, const struct um_iface *iface, bool any_address);
#define UM_UDP_NO_PORT (-2)
#define UM_UDP_NOT_BOUND (-3)
/* The first free port of the range. 0; UM_UDP_NO_PORT + error: none is free; UM_UDP_NOT_BOUND + error: a port of this
 * address cannot be had for another reason; -1 + error: anything else. */
int um_udp_open_range(struct um_udp_reader *reader, struct um_udp_socket *socket, const struct um_udp_config *config,
                      struct in_addr addr, const struct um_port_range *range);
/* Ask the card for the times of every packet, received and sent. Needs rights and a driver that can; without either the
 * kernel's times remain. */
void um_udp_card_stamps(int fd, const struct um_iface *iface);
void um_udp_close(struct um_udp_socket *socket);
/* Datagrams beyond drops_base that the kernel threw away because the receive buffer was full (and others it could not
 * deliver). */
uint64_t um_udp_kernel_drops(const struct um_udp_socket *socket);
void um_udp_counts_reset(struct um_udp_socket *socket);

/* One system call: how many packets came; 0: none, or out of memory. Then um_udp_next() until false, which gives the
 * buffer back. One read at a time. `more`: the socket probably has more. */
int um_udp_read(struct um_udp_reader *reader, struct um_udp_socket *socket, bool *more);
bool um_udp_next(struct um_udp_reader *reader, struct um_udp_socket *socket, struct um_udp_datagram *out);

#endif
