/* lbmaux.h: attribute objects from plain files, and the text of monitoring options. */
#include <lbm/lbm.h>
#include <lbm/lbmaux.h>

#include <unistd.h>

#include "um_test.h"

static char path[] = "/tmp/lbmaux_test.XXXXXX";

static const char *file_with(const char *text)
{
    strcpy(path + sizeof path - 7, "XXXXXX");
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        abort();
    }
    close(fd);
    return path;
}

TEST(only_lines_of_the_scope_of_the_object_are_applied)
{
    lbm_rcv_topic_attr_t *attr;
    char value[128];
    size_t size = sizeof value;
    CHECK_EQ(lbm_rcv_topic_attr_create_default(&attr), 0);
    file_with("# a comment\n"
              "source ordered_delivery 1\n"
              "context context_name shop\n"
              "receiver ordered_delivery 0\n");
    int result = lbmaux_rcv_topic_attr_setopt_from_file(attr, path);
    unlink(path);
    CHECK_EQ(result, 0);
    CHECK_EQ(lbm_rcv_topic_attr_str_getopt(attr, "ordered_delivery", value, &size), 0);
    CHECK_STR(value, "0");
    lbm_rcv_topic_attr_delete(attr);
}

TEST(a_bad_line_fails_and_names_file_and_line)
{
    lbm_src_topic_attr_t *attr;
    CHECK_EQ(lbm_src_topic_attr_create_default(&attr), 0);
    file_with("source transport tcp\nsource no_such_option 1\n");
    int result = lbmaux_src_topic_attr_setopt_from_file(attr, path);
    unlink(path);
    CHECK_EQ(result, -1);
    CHECK_CONTAINS(lbm_errmsg(), path);
    CHECK_CONTAINS(lbm_errmsg(), "no_such_option");
    lbm_src_topic_attr_delete(attr);
}

TEST(missing_file_and_null_arguments_are_errors)
{
    lbm_context_attr_t *attr;
    CHECK_EQ(lbm_context_attr_create(&attr), 0);
    CHECK_EQ(lbmaux_context_attr_setopt_from_file(attr, "/no/such/file"), -1);
    CHECK_CONTAINS(lbm_errmsg(), "/no/such/file");
    CHECK_EQ(lbmaux_context_attr_setopt_from_file(attr, NULL), -1);
    CHECK_CONTAINS(lbm_errmsg(), "ConfigFile must be valid");
    CHECK_EQ(lbmaux_wildcard_rcv_attr_setopt_from_file(NULL, "x"), -1);
    CHECK_CONTAINS(lbm_errmsg(), "Attributes must be valid");
    CHECK_EQ(lbmaux_context_create_from_file(NULL, "x"), -1);
    lbm_context_t *ctx = (lbm_context_t *)&attr;
    CHECK_EQ(lbmaux_context_create_from_file(&ctx, "/no/such/file"), -1);
    CHECK(ctx == (lbm_context_t *)&attr);
    lbm_context_attr_delete(attr);
}

TEST(monitoring_options_lose_comments_and_blank_lines)
{
    char *text = NULL, error[256];
    file_with("# filters\n\n  \t\npassthrough=on;\n   # more\nattributes=pb\n#last");
    int result = lbmaux_lbmmon_format_options_from_file(&text, path, error);
    unlink(path);
    CHECK_EQ(result, 0);
    CHECK_STR(text, "passthrough=on;\nattributes=pb\n");
    free(text);
}

TEST(monitoring_options_errors_are_put_into_the_callers_text)
{
    char *text = NULL, error[256] = "";
    CHECK_EQ(lbmaux_lbmmon_format_options_from_file(&text, "/no/such/file", error), -1);
    CHECK_CONTAINS(error, "/no/such/file");
    CHECK(text == NULL);
    CHECK_EQ(lbmaux_lbmmon_format_options_from_file(&text, "/no/such/file", NULL), -1);
    CHECK_EQ(lbm_errnum(), LBM_EOS);
    CHECK_EQ(lbmaux_lbmmon_format_options_from_file(NULL, "x", error), -1);
    CHECK_CONTAINS(error, "FormatOptionsBuffer must be valid");
}
