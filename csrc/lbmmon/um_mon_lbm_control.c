/* Control messages of the transport module `lbm`. Owns those that wait and the response of the one taken last. Messages
 * come on the context's thread; the rest is the sampling thread's. */
#include "lbmmon/um_mon_lbm_control.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/um_fork.h"
#include "base/um_mem.h"
#include "lbmmon/um_mon_error.h"

enum { WAITING_MESSAGES = 64, WAITING_BYTES = 1 << 20 };

struct um_mon_lbm_control {
    lbm_context_t *ctx;
    bool allow_debug;          /* fixed */
    char target[64];           /* fixed: "a.b.c.d:port"; empty: no request port */
    struct um_mon_inbox inbox; /* tags: responses */
    lbm_response_t *response;  /* sampling thread: of the message taken last */
};

/* The one whose target is told: there is one for automatic monitoring, and those of the application beside it. */
static struct um_mon_lbm_control *latest;                       /* latest_lock */
static pthread_mutex_t latest_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf */
UM_FORK_GUARD(latest_lock)

/* Only requests wait: who does not want an answer is no operator. */
static int on_message(lbm_context_t *ctx, lbm_msg_t *msg, void *clientd)
{
    struct um_mon_lbm_control *control = clientd;
    if (msg->type == LBM_MSG_REQUEST && um_mon_inbox_put(&control->inbox, msg->data, msg->len, msg->response)) {
        msg->response = NULL; /* ours from here on */
    }
    return 0;
}

static void forget(void *response)
{
    lbm_response_delete(response);
}

/* The address of the request port, as the context has chosen it. */
static int read_target(struct um_mon_lbm_control *control)
{
    int bound;
    lbm_uint16_t port;
    lbm_ipv4_address_mask_t interface;
    size_t bound_len = sizeof bound, port_len = sizeof port, interface_len = sizeof interface;
    if (lbm_context_getopt(control->ctx, "request_tcp_bind_request_port", &bound, &bound_len) != 0 ||
        lbm_context_getopt(control->ctx, "request_tcp_port", &port, &port_len) != 0 ||
        lbm_context_getopt(control->ctx, "request_tcp_interface", &interface, &interface_len) != 0) {
        return um_mon_module_error(UM_MON_LBM, "request port: %s", lbm_errmsg());
    }
    if (bound) {
        const unsigned char *ip = (const unsigned char *)&interface.addr;
        snprintf(control->target, sizeof control->target, "%d.%d.%d.%d:%d", ip[0], ip[1], ip[2], ip[3], ntohs(port));
    }
    return 0;
}

struct um_mon_lbm_control *um_mon_lbm_control_open(lbm_context_t *ctx, const struct um_mon_lbm_options *options)
{
    struct um_mon_lbm_control *control = um_calloc(1, sizeof *control);
    if (control == NULL) {
        um_mon_module_error(UM_MON_LBM, "control messages: out of memory");
        return NULL;
    }
    control->ctx = ctx;
    control->allow_debug = options->allow_debug;
    if (read_target(control) != 0) {
        um_free(control);
        return NULL;
    }
    um_mon_inbox_init(&control->inbox, WAITING_BYTES, WAITING_MESSAGES);
    if (control->target[0] != '\0' && lbm_context_rcv_immediate_msgs(ctx, on_message, control, NULL) != 0) {
        um_mon_module_error(UM_MON_LBM, "control messages: %s", lbm_errmsg());
        um_mon_inbox_clear(&control->inbox, NULL);
        um_free(control);
        return NULL;
    }
    pthread_mutex_lock(&latest_lock);
    latest = control->target[0] != '\0' ? control : latest;
    pthread_mutex_unlock(&latest_lock);
    return control;
}

void um_mon_lbm_control_close(struct um_mon_lbm_control *control)
{
    if (control == NULL) {
        return;
    }
    pthread_mutex_lock(&latest_lock);
    latest = latest == control ? NULL : latest;
    pthread_mutex_unlock(&latest_lock);
    lbm_context_rcv_immediate_msgs(control->ctx, NULL, NULL, NULL);
    um_mon_inbox_clear(&control->inbox, forget);
    if (control->response != NULL) {
        lbm_response_delete(control->response);
    }
    um_free(control);
}

const char *lbmmon_transport_lbm_ctrlmsgtarget(void)
{
    static _Thread_local char text[64];
    pthread_mutex_lock(&latest_lock);
    snprintf(text, sizeof text, "%s", latest != NULL ? latest->target : "");
    pthread_mutex_unlock(&latest_lock);
    return text[0] != '\0' ? text : NULL;
}

bool um_mon_lbm_control_allows_debug(const struct um_mon_lbm_control *control)
{
    return control->allow_debug;
}

int um_mon_lbm_control_receive(struct um_mon_lbm_control *control, char *data, size_t *len)
{
    void *response;
    size_t room = *len;
    int rc = um_mon_inbox_take(&control->inbox, data, len, 0, &response);
    if (rc > 0) {
        return rc;
    }
    if (control->response != NULL) {
        lbm_response_delete(control->response);
    }
    control->response = response;
    return rc == 0
               ? 0
               : um_mon_module_error(UM_MON_LBM, "a control message of %zu bytes: must have at most %zu", *len, room);
}

int um_mon_lbm_control_respond(struct um_mon_lbm_control *control, const char *data, size_t len)
{
    if (control->response == NULL) {
        return um_mon_module_error(UM_MON_LBM, "no control message waits for a response");
    }
    int rc = lbm_send_response(control->response, data, len, LBM_SRC_NONBLOCK);
    if (rc != 0) {
        um_mon_module_error(UM_MON_LBM, "the response to a control message: %s", lbm_errmsg());
    }
    lbm_response_delete(control->response);
    control->response = NULL;
    return rc;
}
