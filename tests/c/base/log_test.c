/* lbm_log, lbm_logf and the error calls of the public API. */
#include "um_test.h"

#include <errno.h>

#include <lbm/lbm.h>

#include "base/um_log.h"

static char line[4096];
static int line_level;
static void *line_clientd;

static int on_log(int level, const char *message, void *clientd)
{
    snprintf(line, sizeof line, "%s", message);
    line_level = level;
    line_clientd = clientd;
    return 0;
}

TEST(lbm_logf_reaches_the_callback_of_lbm_log)
{
    CHECK_EQ(lbm_log(on_log, &line_level), 0);
    lbm_logf(LBM_LOG_NOTICE, "%s %d", "value", 3);
    CHECK_EQ(lbm_log(NULL, NULL), 0);
    CHECK_STR(line, "value 3");
    CHECK_EQ(line_level, LBM_LOG_NOTICE);
    CHECK(line_clientd == &line_level);
}

TEST(lbm_errmsg_is_empty_before_the_first_error)
{
    CHECK_EQ(lbm_errnum(), 0);
    CHECK_STR(lbm_errmsg(), "");
}

TEST(lbm_seterr_sets_number_and_text_of_this_thread)
{
    lbm_seterr(LBM_EOP, "own text");
    CHECK_EQ(lbm_errnum(), LBM_EOP);
    CHECK_STR(lbm_errmsg(), "own text");
    lbm_seterrf(LBM_EINVAL, "%s!", lbm_errmsg());
    CHECK_STR(lbm_errmsg(), "own text!");
}

TEST(lbm_strerror_names_the_operating_system_error)
{
    CHECK_STR(lbm_strerror_errnum(ENOENT), "No such file or directory");
    errno = EACCES;
    CHECK_STR(lbm_strerror(), "Permission denied");
}

TEST(the_benign_error_flag_is_kept)
{
    CHECK_EQ(lbm_get_benign_error_flag(), 0);
    lbm_set_benign_error_flag();
    CHECK_EQ(lbm_get_benign_error_flag(), 1);
    lbm_clr_benign_error_flag();
    CHECK_EQ(lbm_get_benign_error_flag(), 0);
}

/* The library's own troubles only: what the application logs keeps its level, and so do other threads. */
TEST(f24_expected_errors_of_a_thread_are_logged_as_information)
{
    lbm_log(on_log, NULL);
    lbm_set_benign_error_flag();
    um_log(UM_LOG_WARNING, "Core-1", "expected");
    CHECK_EQ(line_level, LBM_LOG_INFO);
    um_log_limited(um_log_of_all(), 1, UM_LOG_ERR, "Core-2", "expected");
    CHECK_EQ(line_level, LBM_LOG_INFO);
    um_log(UM_LOG_NOTICE, "Core-3", "no trouble");
    CHECK_EQ(line_level, LBM_LOG_NOTICE);
    lbm_logf(LBM_LOG_ERR, "the application's own");
    CHECK_EQ(line_level, LBM_LOG_ERR);
    lbm_clr_benign_error_flag();
    um_log(UM_LOG_WARNING, "Core-4", "unexpected");
    CHECK_EQ(line_level, LBM_LOG_WARNING);
    lbm_log(NULL, NULL);
}
