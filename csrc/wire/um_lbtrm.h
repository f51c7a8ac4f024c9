/* LBT-RM packets: DATA, session message, NAK, NAK confirmation. Decoding checks
 * every length and never copies; encoders write into buffers of sufficient size.
 * Pure functions; any thread. */
#ifndef UM_WIRE_LBTRM_H
#define UM_WIRE_LBTRM_H

#include "wire/um_lbtr.h"

enum um_lbtrm_type { UM_LBTRM_DATA = 0, UM_LBTRM_SM = 2, UM_LBTRM_NAK = 3, UM_LBTRM_NCF = 4 };

#define UM_LBTRM_COMMON_HDR 8u
#define UM_LBTRM_DATA_HDR 20u
#define UM_LBTRM_SM_LEN 24u
#define UM_LBTRM_NAK_HDR 12u
#define UM_LBTRM_NCF_HDR 16u
#define UM_LBTRM_NAK_MAX ((UM_LBTR_LIST_BYTES_MAX - UM_LBTRM_NAK_HDR) / 4) /* numbers per packet sent */
#define UM_LBTRM_NCF_MAX ((UM_LBTR_LIST_BYTES_MAX - UM_LBTRM_NCF_HDR) / 4)

#define UM_LBTRM_FLAG_UNICAST_NAKS 0x80u
#define UM_LBTRM_FLAG_RETRANSMISSION 0x20u

/* What every packet of a session carries. */
struct um_lbtrm_session {
    uint16_t ucast_port;
    uint32_t session_id;
};

struct um_lbtrm_packet {
    enum um_lbtrm_type type;
    struct um_lbtrm_session session;
    uint32_t sqn;   /* DATA; SM: its own counter */
    uint32_t lead;  /* SM */
    uint32_t trail; /* DATA, SM, NCF */
    bool retransmission;
    uint8_t tgsz;             /* DATA, SM: as received */
    uint8_t reason;           /* NCF: 0..15 */
    struct um_lbtr_list list; /* NAK, NCF */
    struct um_slice payload;  /* DATA */
};

enum um_lbtr_rc um_lbtrm_decode(const uint8_t *data, size_t len, struct um_lbtrm_packet *out);
/* Only the session of a packet, to find out whose it is. False: shorter than the common header. */
bool um_lbtrm_peek(const uint8_t *data, size_t len, struct um_lbtrm_session *out);

/* Each returns the number of bytes written. */
size_t um_lbtrm_put_data(uint8_t *out, const struct um_lbtrm_session *session, uint32_t sqn, uint32_t trail,
                         uint8_t tgsz, bool retransmission);
size_t um_lbtrm_put_sm(uint8_t *out, const struct um_lbtrm_session *session, uint32_t sm_sqn, uint32_t lead,
                       uint32_t trail, uint8_t tgsz);
size_t um_lbtrm_put_nak(uint8_t *out, const struct um_lbtrm_session *session, const uint32_t *sqns, size_t count);
size_t um_lbtrm_put_ncf(uint8_t *out, const struct um_lbtrm_session *session, uint32_t trail,
                        enum um_lbtr_reason reason, const uint32_t *sqns, size_t count);

#endif
