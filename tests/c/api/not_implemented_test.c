/* Calls of later features fail with LBM_EOPNOTSUPP and a text that names the call and the feature; the modules with
 * errors of their own report them there too. Also the small calls that need no object. */
#include <lbm/lbm.h>
#include <lbm/lbmmon.h>
#include <lbm/lbmmonfmtcsv.h>
#include <lbm/lbmmonfmtpb.h>
#include <lbm/lbmmontrlbm.h>
#include <lbm/lbmmontrlbmsnmp.h>
#include <lbm/lbmmontrudp.h>
#include <lbm/um.h>

#include "um_test.h"

TEST(call_of_a_later_feature_names_itself_and_the_feature)
{
    CHECK_EQ(lbm_ssrc_ume_deregister(NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOPNOTSUPP);
    CHECK_CONTAINS(lbm_errmsg(), "lbm_ssrc_ume_deregister: persistence (UMP) is not implemented in this version");
    CHECK_CONTAINS(lbm_errmsg(), "docs/roadmap.md");
}

TEST(call_that_returns_a_pointer_returns_null)
{
    CHECK(lbm_msg_extract_ume_ack(NULL) == NULL);
    CHECK_EQ(lbm_errnum(), LBM_EOPNOTSUPP);
}

/* A program that monitors calls through the tables without asking whether there is one: every member is set unless the
 * module's header has no function for it. */
TEST(f34_module_tables_of_lbmmon_are_complete)
{
    void (*const *member)(void) = (void (*const *)(void))(const void *)lbmmon_format_pb_module();
    for (size_t i = 0; i < sizeof(lbmmon_format_func_t) / sizeof *member; i++) {
        CHECK(member[i] != NULL);
    }
    member = (void (*const *)(void))(const void *)lbmmon_transport_lbm_module();
    for (size_t i = 0; i < sizeof(lbmmon_transport_func_t) / sizeof *member; i++) {
        CHECK(member[i] != NULL);
    }
}

/* Called without anything to work on, they fail with a text that names what is missing. */
TEST(f34_module_tables_of_lbmmon_have_functions_that_refuse_nothing_at_all)
{
    const lbmmon_format_func_t *format = lbmmon_format_csv_module();
    CHECK_EQ(format->mInit(NULL, NULL), -1);
    CHECK_CONTAINS(format->mErrorMessage(), "lbmmon_format_csv_init: FormatClientData: must not be NULL");
    CHECK_EQ(format->mCtxSerialize(NULL, NULL, NULL, NULL, NULL, NULL), -1);
    CHECK_EQ(format->mRcvDeserialize(NULL, NULL, NULL, 0, 0, NULL), -1);
    CHECK_EQ(format->mGatewayDeserialize(NULL, NULL, NULL, 0, 0, NULL), -1);
    CHECK_CONTAINS(format->mErrorMessage(), "lbmmon_gateway_format_");
    const lbmmon_transport_func_t *const transports[] = {lbmmon_transport_lbm_module(), lbmmon_transport_udp_module(),
                                                         lbmmon_transport_lbmsnmp_module()};
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++) {
        const lbmmon_transport_func_t *transport = transports[i];
        size_t length = 0;
        CHECK_EQ(transport->mInitSource(NULL, NULL), -1);
        CHECK_CONTAINS(transport->mErrorMessage(), "_initsrc: TransportClientData: must not be NULL");
        CHECK_EQ(transport->mInitReceiver(NULL, NULL), -1);
        CHECK_EQ(transport->mSend("", 0, NULL), -1);
        CHECK_EQ(transport->mReceive(NULL, &length, 0, NULL), -1);
        CHECK_EQ(transport->mFinishReceiver(NULL), -1);
        CHECK_EQ(transport->mFinishSource(NULL), -1);
        CHECK_CONTAINS(transport->mErrorMessage(), "_src_finish: ");
    }
    CHECK_EQ(transports[0]->mAllowDebug(NULL), 0);
    CHECK(transports[0]->mControlMessageTarget() == NULL);
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
    lbm_authstorage_close_storage_xml();
    lbm_log(NULL, NULL);
    CHECK_EQ(log_lines, 1);
    CHECK_CONTAINS(log_text, "lbm_authstorage_close_storage_xml: ");
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
