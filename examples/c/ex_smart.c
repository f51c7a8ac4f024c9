/* Buffers of smart sources for the example programs. See ex_smart.h. */
#include "ex_smart.h"

#include <stdio.h>
#include <stdlib.h>

#include "ex_options.h"

void ex_apply_smart_transport(lbm_src_topic_attr_t *sattr)
{
    int transport = 0;
    size_t length = sizeof(transport);
    EX_TRY(lbm_src_topic_attr_getopt, sattr, "transport", &transport, &length);
    if (transport == LBM_SRC_TOPIC_ATTR_TRANSPORT_TCP) {
        EX_TRY(lbm_src_topic_attr_str_setopt, sattr, "transport", "LBTRM");
    }
}

void ex_smart_buffer_get(struct ex_smart_buffer *buffer, lbm_ssrc_t *ssrc, int supplied, size_t length)
{
    int space = 0;
    *buffer = (struct ex_smart_buffer){NULL, NULL, NULL, 0};
    EX_TRY(lbm_ssrc_buff_get, ssrc, &buffer->library, 0);
    EX_TRY(lbm_ssrc_get_available_data_space, ssrc, &space);
    buffer->data = buffer->library;
    if (supplied) {
        buffer->supplied = calloc(1, length + 1);
        buffer->data = buffer->supplied;
        buffer->flags = LBM_SSRC_SEND_EX_FLAG_USER_SUPPLIED_BUFFER;
    } else if (length > (size_t)space) {
        fprintf(stderr, "messages of %zu bytes: a buffer has %d (smart_src_max_message_length): use -b\n", length,
                space);
        exit(1);
    }
    if (buffer->data == NULL) {
        fprintf(stderr, "no memory for a message of %zu bytes\n", length);
        exit(1);
    }
}

void ex_smart_buffer_put(struct ex_smart_buffer *buffer, lbm_ssrc_t *ssrc)
{
    EX_TRY(lbm_ssrc_buff_put, ssrc, buffer->library);
    free(buffer->supplied);
}

void ex_print_available_space(lbm_ssrc_t *ssrc)
{
    int space = 0;
    EX_TRY(lbm_ssrc_get_available_data_space, ssrc, &space);
    printf("The length of available data space: %d.\n", space);
    fflush(stdout);
}
