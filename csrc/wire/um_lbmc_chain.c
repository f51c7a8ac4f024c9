/* Reading and writing of element chains. See um_lbmc_chain.h. */
#include "wire/um_lbmc_chain.h"

void um_chain_begin(struct um_chain_iter *iter, struct um_slice chain)
{
    *iter = (struct um_chain_iter){.type = UM_CHAIN_NONE};
    if (chain.len > 0) {
        iter->type = chain.ptr[0];
        iter->left = (struct um_slice){chain.ptr + 1, chain.len - 1};
    }
}

bool um_chain_next(struct um_chain_iter *iter, struct um_chain_elem *out)
{
    const uint8_t *p = iter->left.ptr;
    if (iter->type == UM_CHAIN_NONE || iter->left.len < UM_CHAIN_ELEM_LEN || p[1] < UM_CHAIN_ELEM_LEN ||
        p[1] > iter->left.len) {
        return false;
    }
    *out = (struct um_chain_elem){iter->type, um_get16(p + 2), {p + UM_CHAIN_ELEM_LEN, p[1] - UM_CHAIN_ELEM_LEN}};
    iter->type = p[0];
    iter->left.len -= p[1];
    iter->left.ptr += p[1];
    return true;
}

bool um_chain_valid(struct um_slice chain)
{
    struct um_chain_iter iter;
    struct um_chain_elem elem;
    um_chain_begin(&iter, chain);
    while (um_chain_next(&iter, &elem)) {
    }
    return iter.type == UM_CHAIN_NONE;
}

bool um_chain_find(struct um_slice chain, uint8_t type, size_t min_len, struct um_chain_elem *out)
{
    struct um_chain_iter iter;
    um_chain_begin(&iter, chain);
    while (um_chain_next(&iter, out)) {
        if (out->type == type && out->data.len >= min_len) {
            return true;
        }
    }
    return false;
}

bool um_chain_channel(struct um_slice chain, uint32_t *number)
{
    struct um_chain_elem elem;
    if (!um_chain_find(chain, UM_CHAIN_CHANNEL, sizeof *number, &elem)) {
        return false;
    }
    *number = um_get32(elem.data.ptr);
    return true;
}

void um_chain_start(struct um_chain_writer *w)
{
    w->bytes[0] = 0; /* the data follow */
    w->bytes[1] = UM_CHAIN_HDR_LEN;
    w->bytes[2] = 0;
    w->bytes[3] = UM_CHAIN_NONE;
    w->len = UM_CHAIN_HDR_LEN;
    w->link = 3;
}

uint8_t *um_chain_add(struct um_chain_writer *w, uint8_t type, uint16_t res, size_t len)
{
    if (len > UM_CHAIN_MAX || UM_CHAIN_ELEM_LEN + len > UM_CHAIN_MAX - (size_t)w->len) {
        return NULL;
    }
    uint8_t *p = w->bytes + w->len;
    w->bytes[w->link] = type;
    w->link = w->len;
    p[0] = UM_CHAIN_NONE;
    p[1] = (uint8_t)(UM_CHAIN_ELEM_LEN + len);
    um_put16(p + 2, res);
    w->len = (uint8_t)(w->len + UM_CHAIN_ELEM_LEN + len);
    w->bytes[1] = w->len;
    return p + UM_CHAIN_ELEM_LEN;
}

bool um_chain_add_u32(struct um_chain_writer *w, uint8_t type, uint16_t res, uint32_t value)
{
    uint8_t *data = um_chain_add(w, type, res, sizeof value);
    if (data != NULL) {
        um_put32(data, value);
    }
    return data != NULL;
}
