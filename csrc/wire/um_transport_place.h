/* Where the sources of each transport are found: what the type in an advertisement, an OTID or a source string says of
 * its other fields. The one place where types of transports are told apart outside the transports themselves. Pure
 * functions, any thread; used by the resolver and by core. */
#ifndef UM_WIRE_TRANSPORT_PLACE_H
#define UM_WIRE_TRANSPORT_PLACE_H

enum um_transport_place {
    UM_PLACE_UNKNOWN, /* no transport of this version */
    UM_PLACE_ADDRESS, /* an address and port of the source: TCP, LBT-RU */
    UM_PLACE_GROUP,   /* a multicast group and port, and the source's own: LBT-RM */
    UM_PLACE_MEMORY   /* memory of a host, by a transport id: LBT-IPC, LBT-SMX */
};

/* Of an LBM_TRANSPORT_TYPE_*, which is the code of the transport on the wire, too. */
enum um_transport_place um_transport_place(int type);

#endif
