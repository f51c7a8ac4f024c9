#include <sys/mman.h>

#include "um_test.h"

struct um_test *um_tests_head;
atomic_bool um_test_failed;
const char *um_test_skip_reason;
static struct um_test_role *roles;

void um_test_register(struct um_test *test)
{
    struct um_test **tail = &um_tests_head;
    while (*tail != NULL) {
        tail = &(*tail)->next;
    }
    *tail = test;
}

void um_test_role_register(struct um_test_role *role)
{
    role->next = roles;
    roles = role;
}

static int play(const char *name, const char *text, int fd, size_t size)
{
    void *shared = size == 0 ? NULL : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) {
        perror("shared memory of the test");
        return 98;
    }
    for (struct um_test_role *role = roles; role != NULL; role = role->next) {
        if (strcmp(role->name, name) == 0) {
            return role->fn(text, shared);
        }
    }
    fprintf(stderr, "no role %s\n", name);
    return 99;
}

/* Arguments are parts of names, or whole names behind '='; without one every test runs. What begins with "--" has a
 * value and is for the test itself. */
static bool wanted(const char *name, int argc, char **argv)
{
    bool all = true;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) == 0) {
            i++;
        } else if (argv[i][0] == '=' ? strcmp(argv[i] + 1, name) == 0 : strstr(name, argv[i]) != NULL) {
            return true;
        } else {
            all = false;
        }
    }
    return all;
}

static int list_tests(void)
{
    for (struct um_test *test = um_tests_head; test != NULL; test = test->next) {
        puts(test->name);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], UM_TEST_ROLE_ARGUMENT) == 0) {
        return play(argv[2], argv[3], atoi(argv[4]), strtoul(argv[5], NULL, 10));
    }
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        return list_tests();
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* who kills a program that hangs can see where */
    int passed = 0, failed = 0, skipped = 0;
    for (struct um_test *test = um_tests_head; test != NULL; test = test->next) {
        if (!wanted(test->name, argc, argv)) {
            continue;
        }
        um_test_failed = false;
        um_test_skip_reason = NULL;
        test->fn();
        if (um_test_failed) {
            failed++;
            printf("FAIL %s\n", test->name);
        } else if (um_test_skip_reason != NULL) {
            skipped++;
            printf("SKIP %s: %s\n", test->name, um_test_skip_reason);
        } else {
            passed++;
            printf("ok   %s\n", test->name);
        }
        fflush(stdout);
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed == 0 ? 0 : 1;
}
