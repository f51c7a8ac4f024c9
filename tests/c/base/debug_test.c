/* The debug log: kinds, files that roll, rings of threads, the environment; and what a context says when it begins. */
#include "um_test.h"

#include <fcntl.h>
#include <lbm/lbm.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/um_debug.h"
#include "base/um_error.h"
#include "base/um_log.h"

static char folder[64], path[96], content[65536];

static const char *file_of(const char *name)
{
    if (folder[0] == '\0') {
        snprintf(folder, sizeof(folder), "/tmp/um_debug_XXXXXX");
        mkdtemp(folder);
    }
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static const char *read_file(const char *name)
{
    FILE *file = fopen(file_of(name), "r");
    size_t len = file != NULL ? fread(content, 1, sizeof(content) - 1, file) : 0;
    content[len] = '\0';
    if (file != NULL) {
        fclose(file);
    }
    return content;
}

static bool exists(const char *name)
{
    return access(file_of(name), F_OK) == 0;
}

static char log_text[4096];
static int log_lines;

static int keep_line(int level, const char *message, void *clientd)
{
    (void)clientd;
    log_lines++;
    snprintf(log_text, sizeof(log_text), "%d %s", level, message);
    return 0;
}

static void begin(uint64_t mask, const char *name)
{
    lbm_log(keep_line, NULL);
    log_lines = 0;
    lbm_debug_filename(file_of(name));
    lbm_debugfile_maxsize(0);
    lbm_debug_mask(mask);
}

static void end(void)
{
    lbm_debug_mask(0);
    lbm_log_debug(0);
    lbm_debug_ring_buffer(0);
    lbm_debug_noflush(0);
    lbm_debug_filename(NULL);
    lbm_log(NULL, NULL);
}

static bool in_child(void (*prepare)(void), int (*run)(void))
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        prepare();
        _exit(run());
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void set_variables(void)
{
    setenv("LBM_DEBUG_FILENAME", file_of("environment"), 1);
    setenv("LBM_DEBUG_MASK", "0x2", 1);
    setenv("LBM_DEBUG_MAXSIZE", "5000000000", 1);
    setenv("LBM_DEBUG_MAX_ROLLOVER_FILES", "many", 1);
    lbm_log(keep_line, NULL);
}

static int variables_rule(void)
{
    um_debug_environment();
    bool told = log_lines == 2 && strstr(log_text, "Core-5688-1807: LBM_DEBUG_MAXSIZE 5000000000: ") != NULL;
    lbm_debug_mask(0); /* the environment beats both */
    lbm_debug_filename(file_of("not_this"));
    um_error(UM_EINVAL, "CoreApi-1-1", "from the environment");
    return told && !exists("not_this") && strstr(read_file("environment"), "from the environment\n") != NULL ? 0 : 1;
}

/* The first test: variables are read once, at the first call. */
TEST(the_environment_beats_the_calls)
{
    CHECK(in_child(set_variables, variables_rule));
}

static void make_context(void)
{
    lbm_context_attr_t *attr;
    lbm_context_t *ctx;
    lbm_context_attr_create(&attr);
    lbm_context_attr_str_setopt(attr, "default_interface", "127.0.0.1");
    lbm_context_attr_str_setopt(attr, "request_tcp_port_low", "0");
    lbm_context_attr_str_setopt(attr, "request_tcp_port_high", "0");
    lbm_context_attr_str_setopt(attr, "context_name", "desk");
    if (lbm_context_create(&ctx, attr, NULL, NULL) == 0) {
        lbm_context_delete(ctx);
    }
    lbm_context_attr_delete(attr);
}

TEST(only_the_kinds_of_the_mask_are_written)
{
    begin(UM_DEBUG_LOG, "kinds");
    um_log(UM_LOG_WARNING, "Core-1-1", "a line %d", 7);
    um_error(UM_EINVAL, "CoreApi-1-1", "an error");
    CHECK(strstr(read_file("kinds"), "] log: level 5: Core-1-1: a line 7\n") != NULL);
    CHECK(strstr(content, "an error") == NULL);
    lbm_debug_mask(UM_DEBUG_ERROR | UM_DEBUG_OBJECT | UM_DEBUG_RESOLVER);
    um_error(UM_EINVAL, "CoreApi-1-1", "an error");
    make_context();
    um_log(UM_LOG_WARNING, "Core-1-1", "another line");
    CHECK(strstr(read_file("kinds"), "] error: 1 CoreApi-1-1: an error\n") != NULL);
    CHECK(strstr(content, "] object: context ") != NULL);
    CHECK(strstr(content, " ends\n") != NULL);
    CHECK(strstr(content, "another line") == NULL);
    lbm_debug_mask(0);
    size_t len = strlen(content);
    um_error(UM_EINVAL, "CoreApi-1-1", "an error");
    CHECK_EQ(strlen(read_file("kinds")), len);
    end();
}

/* The child's first descriptor has the number that the parent's file has: nothing of the parent's goes there. */
static int child_keeps_its_own(void)
{
    int own = open(file_of("own"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    lbm_debug_noflush(0);
    lbm_debug_filename(file_of("of_the_child"));
    um_error(UM_EINVAL, "CoreApi-1-1", "of the child");
    bool good = own >= 0 && fcntl(own, F_GETFD) >= 0 && lseek(own, 0, SEEK_END) == 0;
    return good && strstr(read_file("of_the_child"), "of the child\n") != NULL &&
                   strstr(content, "of the parent") == NULL
               ? 0
               : 1;
}

static void prepare_nothing(void)
{
}

TEST(a_child_leaves_what_waits_to_its_parent)
{
    begin(UM_DEBUG_ERROR, "of_the_parent");
    lbm_debug_noflush(1);
    um_error(UM_EINVAL, "CoreApi-1-1", "of the parent");
    CHECK(in_child(prepare_nothing, child_keeps_its_own));
    lbm_debug_noflush(0);
    CHECK(strstr(read_file("of_the_parent"), "of the parent\n") != NULL);
    end();
}

static int full_disk_is_told_of(void)
{
    lbm_log(keep_line, NULL);
    log_lines = 0;
    lbm_debug_filename("/dev/full");
    um_debug_line(UM_DEBUG_OBJECT, "lost");
    return log_lines == 1 && strstr(log_text, "/dev/full: No space left on device: ") != NULL ? 0 : 1;
}

TEST(a_full_disk_is_told_of)
{
    CHECK(in_child(prepare_nothing, full_disk_is_told_of));
}

TEST(lines_that_a_wrong_name_loses_are_told_of_once_a_minute)
{
    begin(UM_DEBUG_OBJECT, "no_folder/name");
    um_debug_line(UM_DEBUG_OBJECT, "lost");
    CHECK_EQ(log_lines, 1);
    CHECK(strstr(log_text, "/no_folder/name: No such file or directory: ") != NULL);
    um_debug_line(UM_DEBUG_OBJECT, "lost, too");
    CHECK_EQ(log_lines, 1); /* once a minute */
    end();
}

TEST(a_file_rolls_at_its_size_and_so_many_are_kept)
{
    begin(UM_DEBUG_ERROR, "rolls");
    lbm_debugfile_maxsize(1000);
    lbm_debugfile_max_rollover(2);
    for (int i = 0; i < 100; i++) {
        um_error(UM_EINVAL, "CoreApi-1-1", "line %03d ----------------------------------------", i);
    }
    CHECK(strstr(read_file("rolls"), "line 099 ") != NULL);
    CHECK(strlen(content) <= 1000);
    CHECK(strlen(read_file("rolls.1")) <= 1000 && strlen(content) > 500);
    CHECK(strlen(read_file("rolls.2")) > 500);
    CHECK(!exists("rolls.3"));
    lbm_debugfile_max_rollover(0);
    for (int i = 0; i < 20; i++) {
        um_error(UM_EINVAL, "CoreApi-1-1", "later %03d ----------------------------------------", i);
    }
    CHECK(strlen(read_file("rolls")) <= 1000 && strstr(content, "later 019") != NULL);
    CHECK(strstr(read_file("rolls.1"), "later") == NULL);
    lbm_debugfile_maxsize(0x100000000ull);
    CHECK(strstr(log_text, "Core-5688-1807: lbm_debugfile_maxsize 4294967296: more than 4294967295") != NULL);
    lbm_debugfile_max_rollover(10);
    end();
}

/* Else /dev/null would be a file from then on, where root writes debug lines to it. */
TEST(what_is_no_file_does_not_roll)
{
    char target[256];
    CHECK_EQ(symlink("/dev/null", file_of("link")), 0);
    begin(UM_DEBUG_ERROR, "link");
    lbm_debugfile_maxsize(100);
    for (int i = 0; i < 10; i++) {
        um_error(UM_EINVAL, "CoreApi-1-1", "to nowhere");
    }
    end();
    CHECK(readlink(file_of("link"), target, sizeof(target)) > 0);
    CHECK(!exists("link.1"));
}

TEST(without_flushing_lines_wait_until_they_are_asked_for)
{
    begin(UM_DEBUG_ERROR, "waits");
    lbm_debug_noflush(1);
    um_error(UM_EINVAL, "CoreApi-1-1", "it waits");
    CHECK_STR(read_file("waits"), "");
    lbm_debug_noflush(0);
    CHECK(strstr(read_file("waits"), "it waits\n") != NULL);
    end();
}

static void *other_thread(void *arg)
{
    (void)arg;
    for (int i = 0; i < 500; i++) {
        um_error(UM_EINVAL, "CoreApi-1-1", "other %03d", i);
    }
    return NULL;
}

TEST(rings_hold_the_last_lines_of_each_thread_until_they_are_dumped)
{
    pthread_t thread;
    begin(UM_DEBUG_ERROR, "unused");
    lbm_debug_ring_buffer(4096);
    um_error(UM_EINVAL, "CoreApi-1-1", "mine");
    pthread_create(&thread, NULL, other_thread, NULL);
    pthread_join(thread, NULL);
    CHECK_EQ(lbm_debug_dump(file_of("dump"), 0), 0);
    CHECK(strstr(read_file("dump"), "error: 1 CoreApi-1-1: mine\n") != NULL);
    CHECK(strstr(content, ", which has ended\n") != NULL);
    CHECK(strstr(content, "other 499\n") != NULL && strstr(content, "other 000\n") == NULL);
    CHECK(strlen(content) < 2 * 4096);
    size_t len = strlen(content);
    lbm_debug_ring_buffer_walltime(1);
    um_error(UM_EINVAL, "CoreApi-1-1", "with a date");
    CHECK_EQ(lbm_debug_dump(file_of("dump"), 1), 0);
    CHECK(strlen(read_file("dump")) > 2 * len);
    CHECK(strstr(content, "-") != NULL && strstr(content, "with a date") != NULL);
    lbm_debug_ring_buffer_walltime(0);
    CHECK(!exists("unused")); /* the ring is in place of the file */
    CHECK_EQ(lbm_debug_dump(NULL, 0), LBM_FAILURE);
    CHECK_EQ(lbm_errnum(), LBM_EINVAL);
    CHECK_EQ(lbm_debug_dump("/nowhere/at/all", 0), LBM_FAILURE);
    CHECK(strstr(lbm_errmsg(), "CoreApi-9040-2: lbm_debug_dump: file /nowhere/at/all cannot be opened") != NULL);
    end();
}

TEST(debug_lines_are_lines_of_the_log_where_that_is_asked_for)
{
    begin(UM_DEBUG_OBJECT | UM_DEBUG_LOG | UM_DEBUG_ERROR, "both");
    lbm_log_debug(1);
    make_context();
    CHECK_EQ(log_text[0], '0' + LBM_LOG_DEBUG);
    CHECK(strstr(log_text, "object: context ") != NULL);
    log_lines = 0;
    um_log(UM_LOG_INFO, "Core-1-1", "once");
    um_error(UM_EINVAL, "CoreApi-1-1", "not there");
    CHECK_EQ(log_lines, 1);
    end();
}

TEST(a_child_of_a_fork_writes_to_the_file_as_well)
{
    begin(UM_DEBUG_ERROR, "forked");
    um_error(UM_EINVAL, "CoreApi-1-1", "parent");
    pid_t child = fork();
    if (child == 0) {
        um_error(UM_EINVAL, "CoreApi-1-1", "child");
        _exit(0);
    }
    waitpid(child, NULL, 0);
    um_error(UM_EINVAL, "CoreApi-1-1", "parent again");
    CHECK(strstr(read_file("forked"), ": parent\n") != NULL && strstr(content, ": child\n") != NULL);
    CHECK(strstr(content, ": parent again\n") != NULL);
    end();
}

TEST(a_context_says_what_it_is_when_it_begins)
{
    begin(0, "start");
    make_context();
    char *line = strstr(log_text, "7 Core-10403-150: context 0x");
    CHECK(line == log_text);
    CHECK(strstr(log_text, " created: name[desk] instance[") != NULL);
    CHECK(strstr(log_text, "embedded mode, request port 127.0.0.1:") != NULL);
    end();
}
