/* Requirement X2: hostile configuration is refused in little memory, not because memory ran out. Each case runs in a
 * process of its own, under a limit of 256 MB (not where a sanitizer needs more than that itself), and may make at most
 * a quarter of that resident. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lbm/lbm.h>

#include "um_test.h"

#define LIMIT_BYTES (256u << 20)
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMITED 0
#else
#define LIMITED 1
#endif

static int quiet(int level, const char *message, void *clientd)
{
    return 0;
}

static long resident_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Exit status of a process that loads the text: 0 refused, 1 accepted, 2 in too much memory; a signal is a negative. */
static int load(const char *text, int xml)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit limit = {LIMIT_BYTES, LIMIT_BYTES};
        if (LIMITED) {
            setrlimit(RLIMIT_DATA, &limit);
        }
        lbm_log(quiet, NULL);
        long before = resident_kib();
        int rc;
        if (xml) {
            rc = lbm_config_xml_string(text, NULL);
        } else {
            char path[] = "/tmp/um_x2_XXXXXX";
            int fd = mkstemp(path);
            size_t len = strlen(text);
            if (fd < 0 || write(fd, text, len) != (ssize_t)len) {
                _exit(3);
            }
            rc = lbm_config(path);
            unlink(path);
        }
        _exit(resident_kib() - before > (long)(LIMIT_BYTES >> (LIMITED ? 12 : 10)) ? 2 : rc == -1 ? 0 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static char *repeat(const char *head, const char *part, size_t times, const char *tail)
{
    size_t part_len = strlen(part), used = strlen(head);
    char *text = malloc(used + part_len * times + strlen(tail) + 1);
    memcpy(text, head, used);
    for (size_t i = 0; i < times; i++, used += part_len) {
        memcpy(text + used, part, part_len);
    }
    strcpy(text + used, tail);
    return text;
}

#define XML_HEAD "<?xml version=\"1.0\"?>"

TEST(x2_entities_that_would_expand_to_gigabytes_are_refused)
{
    char text[4096] = XML_HEAD "<!DOCTYPE um [<!ENTITY a0 \"aaaaaaaaaaaaaaaa\">";
    for (int i = 1; i < 10; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used,
                 "<!ENTITY a%d \"&a%d;&a%d;&a%d;&a%d;&a%d;&a%d;&a%d;&a%d;&a%d;&a%d;\">", i, i - 1, i - 1, i - 1, i - 1,
                 i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    }
    strcat(text, "]><um-configuration version=\"1.0\">&a9;</um-configuration>");
    CHECK_EQ(load(text, 1), 0);
}

TEST(x2_deeply_nested_elements_are_refused)
{
    char *text = repeat(XML_HEAD "<um-configuration version=\"1.0\">", "<templates>", 400000, "");
    int rc = load(text, 1);
    free(text);
    CHECK_EQ(rc, 0);
}

TEST(x2_many_unknown_attributes_are_refused)
{
    char *text = repeat(XML_HEAD "<um-configuration version=\"1.0\"", " a=\"\" b=\"\"", 100000, "/>");
    int rc = load(text, 1);
    free(text);
    CHECK_EQ(rc, 0);
}

TEST(x2_an_endless_text_line_is_refused)
{
    char *text = repeat("context resolver_unicast_daemon ", "127.0.0.1:1234,", 2000000, "x\n");
    int rc = load(text, 0);
    free(text);
    CHECK_EQ(rc, 0);
}

TEST(x2_many_wrong_text_lines_are_refused)
{
    char *text = repeat("", "context no_such_option 1\n", 200000, "");
    int rc = load(text, 0);
    free(text);
    CHECK_EQ(rc, 0);
}
