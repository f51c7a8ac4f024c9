/* Fuzz target: the LBMC decoder on one buffer holding a datagram of messages. */
#include <stdlib.h>

#include "wire/um_lbmc.h"

static void check(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void check_inside(const uint8_t *data, size_t len, struct um_slice slice)
{
    check(slice.ptr >= data && slice.ptr <= data + len && slice.len <= (size_t)(data + len - slice.ptr));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct um_lbmc_msg msg;
    while (len >= UM_LBMC_CONTROL_HDR_LEN) {
        enum um_lbmc_rc rc = um_lbmc_decode(data, len, &msg);
        if (rc == UM_LBMC_SHORT || rc == UM_LBMC_FRAMING) {
            break;
        }
        check(msg.msglen >= UM_LBMC_CONTROL_HDR_LEN && msg.msglen <= len);
        if (rc == UM_LBMC_OK) {
            struct um_lbmc_tsni_iter iter = {0, 0};
            uint32_t tidx, sqn;
            check_inside(data, msg.msglen, msg.payload);
            if ((msg.present & UM_LBMC_HAS_TOPICNAME) != 0) {
                check_inside(data, msg.msglen, msg.topic_name);
            }
            if ((msg.present & UM_LBMC_HAS_APPHDR_CHAIN) != 0) {
                check_inside(data, msg.msglen, msg.apphdr_chain);
            }
            if ((msg.present & UM_LBMC_HAS_FRAG) != 0 && msg.type != UM_LBMC_CONTROL && msg.type != UM_LBMC_EOT) {
                check(msg.frag.len != 0 && (uint64_t)msg.frag.offset + msg.payload.len <= msg.frag.len);
            }
            while (um_lbmc_tsni_next(&msg, &iter, &tidx, &sqn)) {
            }
        }
        data += msg.msglen;
        len -= msg.msglen;
    }
    return 0;
}
