/* What lbmssrc and lbmssrcreq have in common: their transport, and the buffer that
 * they send with. Called by main(), which is the thread that sends. */
#ifndef EX_SMART_H
#define EX_SMART_H

#include <lbm/lbm.h>
#include <stddef.h>

/* Smart sources send over LBT-RM and LBT-RU: where the configuration leaves TCP, LBT-RM it is. */
void ex_apply_smart_transport(lbm_src_topic_attr_t *sattr);

struct ex_smart_buffer {
    char *library;  /* a buffer of the source */
    char *supplied; /* memory of the application, or NULL */
    char *data;     /* the one of both that takes the payload */
    int flags;      /* LBM_SSRC_SEND_EX_FLAG_USER_SUPPLIED_BUFFER, or 0 */
};

/* `supplied`: payloads of `length` bytes are the application's. Ends the program when there is no memory, or when
 * payloads do not fit the buffers of the library. */
void ex_smart_buffer_get(struct ex_smart_buffer *buffer, lbm_ssrc_t *ssrc, int supplied, size_t length);
void ex_smart_buffer_put(struct ex_smart_buffer *buffer, lbm_ssrc_t *ssrc);

void ex_print_available_space(lbm_ssrc_t *ssrc);

#endif
