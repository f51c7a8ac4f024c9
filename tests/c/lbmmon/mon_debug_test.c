/* What the variable LBM_DEBUG_LBMMON makes the debug log tell of monitoring. It is read once in a process. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "um_test_net.h"
#include "um_test_mon.h"

#include "base/um_debug.h"

static char path[64] = "/tmp/um_mon_debug_XXXXXX", content[65536];

static bool file_has(const char *words)
{
    FILE *file = fopen(path, "r");
    size_t len = file != NULL ? fread(content, 1, sizeof(content) - 1, file) : 0;
    content[len] = '\0';
    if (file != NULL) {
        fclose(file);
    }
    return strstr(content, words) != NULL;
}

TEST(the_variable_makes_the_debug_log_tell_of_controllers_and_packets_whatever_the_mask)
{
    TEST_NEEDS_NET();
    struct mon_seen seen = MON_SEEN_INIT;
    static const char TO[] = "address=127.0.0.1;port=2933";
    lbmmon_sctl_t *control;
    int fd = mkstemp(path);
    REQUIRE(fd >= 0);
    close(fd);
    setenv("LBM_DEBUG_LBMMON", "1", 1);
    lbm_debug_filename(path);
    lbm_context_t *ctx = net_context();
    CHECK(!file_has("monitor: "));
    mon_listen(&seen, lbmmon_format_csv_module(), NULL, lbmmon_transport_udp_module(), TO);
    MON_MUST(lbmmon_sctl_create(&control, lbmmon_format_csv_module(), "", lbmmon_transport_udp_module(), TO));
    lbm_debug_mask(0); /* the kinds of the mask, not this one */
    MON_MUST(lbmmon_context_monitor(control, ctx, "app", 0));
    MON_MUST(lbmmon_sctl_sample(control));
    CHECK(mon_wait(&seen, &seen.contexts, 1));
    MON_MUST(lbmmon_sctl_destroy(control));
    MON_MUST(lbmmon_rctl_destroy(seen.control));
    CHECK(file_has("monitor: receive controller "));
    CHECK(file_has("monitor: source controller "));
    CHECK(file_has(": samples object "));
    CHECK(file_has(": sent a packet of type 3, "));
    CHECK(file_has(": a packet of type 3, "));
    CHECK(!file_has("object: "));
    MUST(lbm_context_delete(ctx));
    unlink(path);
}
