/* LBT-RU packets: DATA, session message, NAK, NAK confirmation, ACK, connection
 * request, reset, with their session-id and client-id options. Decoding checks
 * every length and never copies. Pure functions; any thread. */
#ifndef UM_WIRE_LBTRU_H
#define UM_WIRE_LBTRU_H

#include "wire/um_lbtr.h"

enum um_lbtru_type {
    UM_LBTRU_DATA = 0,
    UM_LBTRU_SM = 2,
    UM_LBTRU_NAK = 3,
    UM_LBTRU_NCF = 4,
    UM_LBTRU_ACK = 5,
    UM_LBTRU_CREQ = 6,
    UM_LBTRU_RST = 7
};

#define UM_LBTRU_COMMON_HDR 4u
#define UM_LBTRU_OPTION_LEN 8u    /* SID and CID */
#define UM_LBTRU_DATA_HDR_MAX 20u /* with SID */
#define UM_LBTRU_SM_MAX 24u
#define UM_LBTRU_ACK_MAX 16u
#define UM_LBTRU_CREQ_MAX 12u
#define UM_LBTRU_RST_LEN 4u
#define UM_LBTRU_NCF_HDR_MAX 20u /* with SID */
#define UM_LBTRU_LIST_MAX 360u   /* numbers per NAK or NCF packet sent */

#define UM_LBTRU_FLAG_RETRANSMISSION 0x4000u
#define UM_LBTRU_FLAG_SYN 0x8000u
#define UM_LBTRU_REQUEST_SYN 0u

enum um_lbtru_option { UM_LBTRU_OPTION_SID = 1, UM_LBTRU_OPTION_CID = 2 };

struct um_lbtru_packet {
    enum um_lbtru_type type;
    bool retransmission; /* DATA */
    bool syn;            /* SM */
    uint16_t code;       /* CREQ: request, RST: reason */
    uint8_t reason;      /* NCF: 0..15 */
    bool has_sid, has_cid;
    uint32_t sid, cid;
    uint32_t sqn;   /* DATA, ACK; SM: its own counter */
    uint32_t lead;  /* SM */
    uint32_t trail; /* DATA, SM, NCF */
    struct um_lbtr_list list;
    struct um_slice payload; /* DATA */
};

enum um_lbtr_rc um_lbtru_decode(const uint8_t *data, size_t len, struct um_lbtru_packet *out);

/* Each returns the number of bytes written. `sid` 0: the session has no session id, the option is left out. */
size_t um_lbtru_put_data(uint8_t *out, uint32_t sid, uint32_t sqn, uint32_t trail, bool retransmission);
size_t um_lbtru_put_sm(uint8_t *out, uint32_t sid, bool syn, uint32_t sm_sqn, uint32_t lead, uint32_t trail);
size_t um_lbtru_put_nak(uint8_t *out, uint32_t sid, const uint32_t *sqns, size_t count);
size_t um_lbtru_put_ncf(uint8_t *out, uint32_t sid, uint32_t trail, enum um_lbtr_reason reason, const uint32_t *sqns,
                        size_t count);
size_t um_lbtru_put_ack(uint8_t *out, uint32_t sid, uint32_t sqn);
size_t um_lbtru_put_creq(uint8_t *out, uint32_t sid);
size_t um_lbtru_put_rst(uint8_t *out);

#endif
