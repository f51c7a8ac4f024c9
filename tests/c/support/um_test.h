/* A minimal test harness: one executable per file, tests register themselves,
 * tests read as sentences. Usage:
 *
 *     #include "um_test.h"
 *     TEST(list_is_empty_after_init) { ...; CHECK(um_list_empty(&l)); CHECK_EQ(1, 1); CHECK_STR(a, b); }
 *
 * main() is provided. `prog` runs all, `prog name` those whose name contains it. Children: um_test_child.h.
 * Last line: "N passed, M failed, K skipped". CHECK failures mark the test failed and return from it. */
#ifndef UM_SUPPORT_TEST_H
#define UM_SUPPORT_TEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For functions that write or read bytes of their own thread alone, such as a pattern that shows damage: the thread
 * sanitizer looks at each access by itself, which takes longer than all that is tested. */
#define UM_TEST_OWN_BYTES __attribute__((no_sanitize("thread")))

struct um_test {
    const char *name;
    void (*fn)(void);
    struct um_test *next;
};

extern struct um_test *um_tests_head;
extern atomic_bool um_test_failed; /* checks may run in several threads */
extern const char *um_test_skip_reason;
void um_test_register(struct um_test *test);

#define TEST(test_name)                                                                                                \
    static void test_fn_##test_name(void);                                                                             \
    static struct um_test test_node_##test_name = {#test_name, test_fn_##test_name, NULL};                             \
    __attribute__((constructor)) static void test_reg_##test_name(void)                                                \
    {                                                                                                                  \
        um_test_register(&test_node_##test_name);                                                                      \
    }                                                                                                                  \
    static void test_fn_##test_name(void)

/* What a child of the test does, see um_test_child.h. */
struct um_test_role {
    const char *name;
    int (*fn)(const char *text, void *shared);
    struct um_test_role *next;
};

#define UM_TEST_ROLE_ARGUMENT "--role" /* name, text, descriptor and size of the shared memory */
void um_test_role_register(struct um_test_role *role);

#define ROLE(role_name)                                                                                                \
    static int role_fn_##role_name(const char *text, void *shared);                                                    \
    static struct um_test_role role_node_##role_name = {#role_name, role_fn_##role_name, NULL};                        \
    __attribute__((constructor)) static void role_reg_##role_name(void)                                                \
    {                                                                                                                  \
        um_test_role_register(&role_node_##role_name);                                                                 \
    }                                                                                                                  \
    static int role_fn_##role_name(const char *text, void *shared)

#define TEST_FAIL(...)                                                                                                 \
    do {                                                                                                               \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                                                \
        fprintf(stderr, __VA_ARGS__);                                                                                  \
        fputc('\n', stderr);                                                                                           \
        um_test_failed = true;                                                                                         \
        return;                                                                                                        \
    } while (0)

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) {                                                                                                 \
            TEST_FAIL("CHECK(%s) failed", #cond);                                                                      \
        }                                                                                                              \
    } while (0)

#define CHECK_EQ(a, b)                                                                                                 \
    do {                                                                                                               \
        long long check_a_ = (long long)(a), check_b_ = (long long)(b);                                                \
        if (check_a_ != check_b_) {                                                                                    \
            TEST_FAIL("CHECK_EQ(%s, %s) failed: %lld != %lld", #a, #b, check_a_, check_b_);                            \
        }                                                                                                              \
    } while (0)

#define CHECK_STR(a, b)                                                                                                \
    do {                                                                                                               \
        const char *check_a_ = (a), *check_b_ = (b);                                                                   \
        if (check_a_ == NULL || check_b_ == NULL || strcmp(check_a_, check_b_) != 0) {                                 \
            TEST_FAIL("CHECK_STR(%s, %s) failed: \"%s\" != \"%s\"", #a, #b, check_a_ ? check_a_ : "(null)",            \
                      check_b_ ? check_b_ : "(null)");                                                                 \
        }                                                                                                              \
    } while (0)

#define CHECK_CONTAINS(text, part)                                                                                     \
    do {                                                                                                               \
        const char *check_t_ = (text), *check_p_ = (part);                                                             \
        if (check_t_ == NULL || strstr(check_t_, check_p_) == NULL) {                                                  \
            TEST_FAIL("CHECK_CONTAINS(%s, \"%s\") failed: \"%s\"", #text, check_p_, check_t_ ? check_t_ : "(null)");   \
        }                                                                                                              \
    } while (0)

#define TEST_SKIP(reason)                                                                                              \
    do {                                                                                                               \
        um_test_skip_reason = (reason);                                                                                \
        return;                                                                                                        \
    } while (0)

#endif
