/* Names of acceleration stacks reach Onload's extension library, for the time in which
 * sockets are made. A library made by the test stands in for Onload's. */
#include <dlfcn.h>
#include <unistd.h>

#include "um_test.h"
#include "um_test_net.h"
#include "um_test_rcv.h"

static const char *(*calls)(void); /* of the stand-in: "who/scope/name;" for each call */

static bool make_library(void)
{
    static const char code[] =
        "#include <stdio.h>\n#include <string.h>\n"
        "static char text[4096];\n"
        "const char *calls(void) { return text; }\n"
        "int onload_set_stackname(int who, int scope, const char *name) {\n"
        "    snprintf(text + strlen(text), sizeof text - strlen(text), \"%d/%d/%s;\", who, scope, name);\n"
        "    return 0; }\n";
    char dir[] = "/tmp/um_onloadXXXXXX", command[256], path[64];
    if (mkdtemp(dir) == NULL) {
        return false;
    }
    snprintf(command, sizeof command, "cc -shared -fPIC -x c -o %s/lib.so -", dir);
    FILE *compiler = popen(command, "w");
    fputs(code, compiler);
    bool made = pclose(compiler) == 0;
    snprintf(path, sizeof path, "%s/lib.so", dir);
    void *library = made ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    unlink(path);
    rmdir(dir);
    if (library != NULL) {
        *(void **)&calls = dlsym(library, "calls");
    }
    return calls != NULL;
}

TEST(names_of_stacks_are_set_while_sockets_are_made)
{
    TEST_NEEDS_NET();
    if (!make_library()) {
        TEST_SKIP("no C compiler at hand to make a stand-in for Onload's library");
    }
    lbm_context_t *ctx = net_context();
    lbm_src_topic_attr_t *attr;
    lbm_topic_t *topic;
    lbm_src_t *src;
    MUST(lbm_src_topic_attr_create(&attr));
    MUST(lbm_src_topic_attr_str_setopt(attr, "transport", "lbtrm"));
    MUST(lbm_src_topic_attr_str_setopt(attr, "onload_acceleration_stack_name", "feed"));
    MUST(lbm_src_topic_alloc(&topic, ctx, "onload", attr));
    CHECK_STR(calls(), "");
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL));
    CHECK_STR(calls(), "0/4/feed;1/0/;");
    lbm_src_delete(src);
    lbm_context_delete(ctx);

    lbm_context_attr_t *ctx_attr = net_context_attr();
    MUST(lbm_context_attr_str_setopt(ctx_attr, "onload_acceleration_stack_name", "all"));
    ctx = net_context_with(ctx_attr);
    MUST(lbm_src_topic_alloc(&topic, ctx, "onload", attr));
    MUST(lbm_src_create(&src, ctx, topic, NULL, NULL, NULL)); /* the name of the context comes first */
    CHECK_STR(calls(), "0/4/feed;1/0/;0/4/all;1/0/;0/4/all;1/0/;");
    lbm_src_topic_attr_delete(attr);
    lbm_src_delete(src);
    lbm_context_delete(ctx);
}
