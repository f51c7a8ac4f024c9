/* What is logged when a receiver cannot have the port that a source's session needs. On a private loopback network. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "um_test_log.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

/* A port that the system does not give to anybody. */
static atomic_int refused_port;

int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
    int refused = atomic_load(&refused_port);
    if (refused != 0 && len >= sizeof(*in) && in->sin_family == AF_INET && ntohs(in->sin_port) == refused) {
        errno = EACCES;
        return -1;
    }
    return (int)syscall(SYS_bind, fd, in, len);
}

/* Of an address, for itself. */
static int take_port(uint32_t ip, uint16_t *port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(ip), .sin_port = htons(*port)};
    socklen_t len = sizeof(in);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&in, len) == 0 &&
            getsockname(fd, (struct sockaddr *)&in, &len) == 0);
    *port = ntohs(in.sin_port);
    return fd;
}

static lbm_src_t *source_of(lbm_context_t *ctx, const char *transport, const char *option, const char *value)
{
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", transport));
    if (option != NULL) {
        MUST(lbm_src_topic_attr_str_setopt(attr, option, value));
    }
    MUST(lbm_src_topic_alloc(&topic, ctx, "ports", attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    lbm_src_topic_attr_delete(attr);
    return src;
}

static bool logged(const char *id, int level, const char *words)
{
    for (int i = 0; i < HANG_SECONDS * 100 && !log_shows(id); i++) {
        usleep(10000);
    }
    return log_shows(id) && log_shows(words) && log_level == level;
}

/* `port` 0: any. */
static bool receiver_logs(const char *transport, const char *src_option, uint16_t src_port, uint16_t port,
                          const char *id, int level, const char *words)
{
    struct recorder r = RECORDER_INIT;
    char text[16];
    lbm_rcv_topic_attr_t *attr;
    lbm_context_t *sending = net_lean_context(), *receiving = net_lean_context();
    snprintf(text, sizeof(text), "%u", src_port);
    lbm_src_t *src = source_of(sending, transport, src_option, text);
    MUST(lbm_rcv_topic_attr_create(&attr));
    snprintf(text, sizeof(text), "%u", port);
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "transport_lbtru_port_low", text));
    MUST(lbm_rcv_topic_attr_str_setopt(attr, "transport_lbtru_port_high", text));
    watch_log(id);
    lbm_rcv_t *rcv = net_receiver(receiving, "ports", attr, recorder_cb, &r, NULL);
    lbm_rcv_topic_attr_delete(attr);
    bool ok = logged(id, level, words);
    MUST(lbm_log(NULL, NULL));
    MUST(lbm_rcv_delete(rcv));
    MUST(lbm_src_delete(src));
    MUST(lbm_context_delete(receiving));
    MUST(lbm_context_delete(sending));
    return ok;
}

TEST(a_group_whose_port_another_program_has_for_itself_is_told_of)
{
    TEST_NEEDS_NET();
    uint16_t port = 0;
    int fd = take_port(INADDR_ANY, &port);
    CHECK(receiver_logs("lbtrm", "transport_lbtrm_destination_port", port, 0, "Core-5688-3267", LBM_LOG_ERR,
                        "Address already in use"));
    close(fd);
}

TEST(a_range_of_ports_without_a_free_one_is_told_of_by_a_receiver_over_lbtru)
{
    TEST_NEEDS_NET();
    uint16_t port = 0;
    int fd = take_port(INADDR_LOOPBACK, &port);
    CHECK(receiver_logs("lbtru", NULL, 0, port, "Core-5688-3300", LBM_LOG_WARNING, "no free port in this range"));
    close(fd);
}

TEST(a_port_that_cannot_be_had_is_told_of_by_a_receiver_over_lbtru)
{
    TEST_NEEDS_NET();
    uint16_t port = 0;
    close(take_port(INADDR_LOOPBACK, &port)); /* free */
    atomic_store(&refused_port, port);
    CHECK(receiver_logs("lbtru", NULL, 0, port, "Core-5688-3302", LBM_LOG_WARNING, "Permission denied"));
    atomic_store(&refused_port, 0);
}
