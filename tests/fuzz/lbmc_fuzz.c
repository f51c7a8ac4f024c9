/* Fuzz target: the LBMC decoder on one buffer holding a datagram of messages. */
#include <stdlib.h>

#include "wire/um_lbmc.h"
#include "wire/um_lbmc_chain.h"
#include "wire/um_lbmc_hf.h"
#include "wire/um_lbmc_props.h"

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

/* What is read comes out of what is written. */
static void check_number(struct um_slice chain)
{
    struct um_lbmc_hf hf, again;
    if (um_lbmc_get_hf(chain, &hf)) {
        uint8_t header[UM_LBMC_HF_HEADER_MAX];
        size_t written = um_lbmc_put_hf_header(header, UM_LBMC_HDR_DATA, &hf);
        check(written <= sizeof header && written <= chain.len + 3);
        check(um_lbmc_get_hf((struct um_slice){header + 3, written - 3}, &again));
        check(again.sqn == hf.sqn && again.wide == hf.wide && again.flags == hf.flags);
    }
}

/* Names and texts end inside. */
static void check_properties(struct um_slice blob)
{
    struct um_props_reader reader;
    struct um_prop prop;
    if (!um_props_open(&reader, blob)) {
        return;
    }
    while (um_props_next(&reader, &prop)) {
        check_inside(blob.ptr, blob.len, (struct um_slice){(const uint8_t *)prop.name, prop.name_len + 1u});
        check(prop.name[prop.name_len] == '\0' && prop.size > 0);
        if (prop.type == UM_PROP_STRING) {
            check_inside(blob.ptr, blob.len, (struct um_slice){(const uint8_t *)prop.value.text, prop.size});
            check(prop.value.text[prop.size - 1] == '\0');
        }
    }
}

/* Every element of a chain that was accepted lies in it; the properties it tells of are the end of the payload. */
static void check_chain(const struct um_lbmc_msg *msg)
{
    struct um_chain_iter iter;
    struct um_chain_elem elem;
    check(um_chain_valid(msg->apphdr_chain));
    um_chain_begin(&iter, msg->apphdr_chain);
    while (um_chain_next(&iter, &elem)) {
        check_inside(msg->apphdr_chain.ptr, msg->apphdr_chain.len, elem.data);
    }
    uint32_t channel;
    bool has_channel = um_chain_channel(msg->apphdr_chain, &channel);
    check(has_channel == um_chain_find(msg->apphdr_chain, UM_CHAIN_CHANNEL, 4, &elem));
    check(!has_channel || um_get32(elem.data.ptr) == channel);
    const struct um_chain_summary *told = &msg->chain_summary;
    check(((told->has & UM_CHAIN_HAS_CHANNEL) != 0) == has_channel && (!has_channel || told->channel == channel));
    check(((told->has & UM_CHAIN_HAS_USER_DATA) != 0) ==
          um_chain_find(msg->apphdr_chain, UM_CHAIN_USER_DATA, 0, &elem));
    check(((told->has & UM_CHAIN_HAS_PROPERTIES) != 0) ==
          um_chain_find(msg->apphdr_chain, UM_CHAIN_PROPERTIES_LEN, 4, &elem));
    check((told->has & UM_CHAIN_HAS_PROPERTIES) == 0 || told->properties_len == um_get32(elem.data.ptr));
    if (um_chain_find(msg->apphdr_chain, UM_CHAIN_PROPERTIES_LEN, 4, &elem)) {
        size_t len = um_get32(elem.data.ptr) < msg->payload.len ? um_get32(elem.data.ptr) : msg->payload.len;
        check_properties((struct um_slice){msg->payload.ptr + msg->payload.len - len, len});
    }
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
                check_number(msg.apphdr_chain);
                check_chain(&msg);
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
