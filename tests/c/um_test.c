#include "um_test.h"

struct um_test *um_tests_head;
bool um_test_failed;
const char *um_test_skip_reason;

void um_test_register(struct um_test *test)
{
    struct um_test **tail = &um_tests_head;
    while (*tail != NULL) {
        tail = &(*tail)->next;
    }
    *tail = test;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0, skipped = 0;
    for (struct um_test *test = um_tests_head; test != NULL; test = test->next) {
        if (argc > 1 && strstr(test->name, argv[1]) == NULL) {
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
