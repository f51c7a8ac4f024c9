/* Calls of later features fail with LBM_EOPNOTSUPP and a text that names the call and the feature; the modules with
 * errors of their own report them there too. Also the small calls that need no object. */
#include <lbm/lbm.h>
#include <lbm/lbmmon.h>
#include <lbm/lbmpdm.h>
#include <lbm/lbmsdm.h>
#include <lbm/um.h>

#include "um_test.h"

TEST(call_of_a_later_feature_names_itself_and_the_feature)
{
    lbm_ssrc_t *smart = (lbm_ssrc_t *)&smart;
    lbm_ssrc_t *before = smart;
    CHECK_EQ(lbm_ssrc_create(&smart, NULL, NULL, NULL, NULL, NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOPNOTSUPP);
    CHECK_CONTAINS(lbm_errmsg(), "lbm_ssrc_create: smart sources are not implemented in this version");
    CHECK_CONTAINS(lbm_errmsg(), "docs/roadmap.md");
    CHECK(smart == before);
}

TEST(call_that_returns_a_pointer_returns_null)
{
    CHECK(lbm_msg_extract_ume_ack(NULL) == NULL);
    CHECK_EQ(lbm_errnum(), LBM_EOPNOTSUPP);
}

TEST(loops_over_application_headers_end)
{
    CHECK_EQ(lbm_apphdr_chain_iter_done(NULL), 0);
    CHECK_EQ(lbm_errnum(), LBM_EOPNOTSUPP);
}

TEST(modules_report_in_their_own_error_state_as_well)
{
    CHECK_EQ(lbmsdm_errnum(), 0);
    CHECK_STR(lbmsdm_errmsg(), "");
    lbmsdm_msg_t *message;
    CHECK_EQ(lbmsdm_msg_create(&message), LBMSDM_FAILURE);
    CHECK_EQ(lbmsdm_errnum(), LBMSDM_ERR_TYPE_NOT_SUPPORTED);
    CHECK_CONTAINS(lbmsdm_errmsg(), "lbmsdm_msg_create: self-describing messages (SDM) are not implemented");
    CHECK_EQ(lbmpdm_cache_init(1), PDM_FAILURE);
    CHECK_EQ(lbmpdm_errnum(), PDM_ERR_EINVAL);
    CHECK_CONTAINS(lbmpdm_errmsg(), "lbmpdm_cache_init: ");
    CHECK_EQ(lbmmon_sctl_sample(NULL), -1);
    CHECK_EQ(lbmmon_errnum(), LBMMON_EOP);
    CHECK_CONTAINS(lbmmon_errmsg(), "lbmmon_sctl_sample: monitoring (lbmmon) is not implemented");
    CHECK_CONTAINS(lbmsdm_errmsg(), "lbmsdm_msg_create");
    CHECK_CONTAINS(lbmmon_format_csv_errmsg(), "lbmmon");
}

static int log_lines;
static char log_text[512];

static int keep_line(int level, const char *message, void *clientd)
{
    log_lines++;
    snprintf(log_text, sizeof log_text, "%d %s", level, message);
    return 0;
}

TEST(call_without_a_result_warns_in_the_log)
{
    log_lines = 0;
    lbm_log(keep_line, NULL);
    lbm_set_uim_loss_rate(10);
    lbm_log(NULL, NULL);
    CHECK_EQ(log_lines, 1);
    CHECK_CONTAINS(log_text, "lbm_set_uim_loss_rate: loss injection for unicast immediate messages is not implemented");
    CHECK_EQ(log_text[0], '0' + LBM_LOG_WARNING);
}

TEST(capabilities_that_are_not_built_in_are_denied)
{
    CHECK_EQ(lbm_is_ume_capable(), 0);
    CHECK_EQ(lbm_is_umq_capable(), 0);
}

TEST(licences_are_accepted_and_version_is_told)
{
    CHECK_EQ(lbm_license_file("/no/such/file"), 0);
    CHECK_EQ(lbm_license_str("anything"), 0);
    CHECK_EQ(lbm_license_ummnm_valid(), 0);
    CHECK_EQ(lbm_license_vds_valid(), 0);
    CHECK_CONTAINS(lbm_version(), "UM 6.17 (libum ");
    CHECK_CONTAINS(lbm_version(), um_version());
}

TEST(random_ids_differ)
{
    CHECK(lbm_create_random_id() != lbm_create_random_id());
}

TEST(jms_message_id_is_built_from_its_parts)
{
    char topic[] = "A/B";
    char *text = lbm_get_jms_msg_id(0xabcdef0123456789u, 0x10, topic);
    CHECK_STR(text, "ID:abcdef0123456789:10:A/B");
    free(text);
    CHECK(lbm_get_jms_msg_id(1, 2, NULL) == NULL);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
}
