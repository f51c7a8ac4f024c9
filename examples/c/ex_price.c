/* Messages and book of lbmprice. See ex_price.h. */
#include "ex_price.h"

#include <inttypes.h>
#include <lbm/lbmsdm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define SKEW_SECONDS 10.0 /* later than that: the clocks are not those of one time */

/* ---- messages ---- */

static void fail(const char *function, int line)
{
    fprintf(stderr, "%s (line %d): %s\n", function, line, lbmsdm_errmsg());
    exit(1);
}

#define SDM_TRY(function, ...)                                                                                         \
    do {                                                                                                               \
        if (function(__VA_ARGS__) != LBMSDM_SUCCESS) {                                                                 \
            fail(#function, __LINE__);                                                                                 \
        }                                                                                                              \
    } while (0)

size_t ex_price_put(const struct ex_price *price, char *out, size_t size)
{
    lbmsdm_msg_t *msg;
    double wall = ex_price_wall();
    struct timeval now = {(time_t)wall, (suseconds_t)((wall - (double)(time_t)wall) * 1e6)};
    SDM_TRY(lbmsdm_msg_create, &msg);
    SDM_TRY(lbmsdm_msg_add_uint8, msg, "type", price->type);
    if (price->type == EX_PRICE || price->type == EX_BOOK) {
        SDM_TRY(lbmsdm_msg_add_uint32, msg, "number", price->number);
        SDM_TRY(lbmsdm_msg_add_double, msg, "last", price->last);
    }
    if (price->type == EX_BOOK) {
        SDM_TRY(lbmsdm_msg_add_double, msg, "low", price->low);
        SDM_TRY(lbmsdm_msg_add_double, msg, "high", price->high);
    }
    SDM_TRY(lbmsdm_msg_add_timestamp, msg, "sent", &now);
    size_t length = lbmsdm_msg_get_datalen(msg);
    if (length > size) {
        fprintf(stderr, "line %d: %d\n", __LINE__, (int)length);
        exit(1);
    }
    memcpy(out, lbmsdm_msg_get_data(msg), length);
    SDM_TRY(lbmsdm_msg_destroy, msg);
    return length;
}

/* The name of the getter that failed, NULL: none did. */
static const char *get(lbmsdm_msg_t *msg, struct ex_price *out)
{
    struct timeval sent;
    if (lbmsdm_msg_get_uint8_name(msg, "type", &out->type) != LBMSDM_SUCCESS) {
        return "lbmsdm_msg_get_uint8_name";
    }
    if (lbmsdm_msg_get_timestamp_name(msg, "sent", &sent) != LBMSDM_SUCCESS) {
        return "lbmsdm_msg_get_timestamp_name";
    }
    out->sent = (double)sent.tv_sec + (double)sent.tv_usec / 1e6;
    if ((out->type == EX_PRICE || out->type == EX_BOOK) &&
        lbmsdm_msg_get_uint32_name(msg, "number", &out->number) != LBMSDM_SUCCESS) {
        return "lbmsdm_msg_get_uint32_name";
    }
    if (((out->type == EX_PRICE || out->type == EX_BOOK) &&
         lbmsdm_msg_get_double_name(msg, "last", &out->last) != LBMSDM_SUCCESS) ||
        (out->type == EX_BOOK && (lbmsdm_msg_get_double_name(msg, "low", &out->low) != LBMSDM_SUCCESS ||
                                  lbmsdm_msg_get_double_name(msg, "high", &out->high) != LBMSDM_SUCCESS))) {
        return "lbmsdm_msg_get_double_name";
    }
    return NULL;
}

bool ex_price_parse(const char *data, size_t length, struct ex_price *out)
{
    lbmsdm_msg_t *msg;
    memset(out, 0, sizeof *out);
    if (lbmsdm_msg_parse(&msg, data, length) != LBMSDM_SUCCESS) {
        fprintf(stderr, "lbmsdm_msg_parse (line %d): %s\n", __LINE__, lbmsdm_errmsg());
        return false;
    }
    const char *failed = get(msg, out);
    if (failed != NULL) {
        fprintf(stderr, "%s (line %d): %s\n", failed, __LINE__, lbmsdm_errmsg());
    }
    SDM_TRY(lbmsdm_msg_destroy, msg);
    return failed == NULL;
}

double ex_price_wall(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- the book ---- */

static void print_latency(struct ex_book *book, const struct ex_price *price)
{
    double seconds = ex_price_wall() - price->sent;
    if (seconds < 0) {
        printf(" (incompatible clocks, latency not calculated");
    } else {
        book->latencies++;
        book->latency_sum += seconds;
        book->latency_max = seconds > book->latency_max ? seconds : book->latency_max;
        printf(" (%7.6f s", seconds);
        printf(", %7.6f avg., %7.6f max.", book->latency_sum / (double)book->latencies, book->latency_max);
    }
    printf(") \n");
    if (seconds > SKEW_SECONDS) {
        printf("unusually high latency, possible clock skew\n");
    }
}

static void print_book(struct ex_book *book, const struct ex_price *price)
{
    switch (book->state) {
    case EX_BOOK_VALID:
        printf("%4d %7.3f  %7.3f  %7.3f ", (int)price->number, book->low, price->last, book->high);
        break;
    case EX_BOOK_UNCERTAIN:
        printf("%4d %7.3f* %7.3f  %7.3f*", (int)price->number, book->low, price->last, book->high);
        break;
    case EX_BOOK_NONE:
        printf("%4d %7s  %7.3f  %7s ", (int)price->number, "", price->last, "");
        break;
    }
    print_latency(book, price);
    if (book->low > book->last) {
        printf("Low is higher than last!\n");
    }
    if (book->high < book->last) {
        printf("High is less than last!\n");
    }
}

/* Low and high hold for all prices seen, whatever their order. True: this one is lower or higher than all before. */
static bool widen(struct ex_book *book, double low, double high)
{
    bool wider = !book->any || low < book->low || high > book->high;
    book->low = !book->any || low < book->low ? low : book->low;
    book->high = !book->any || high > book->high ? high : book->high;
    return wider;
}

/* Older than the newest: it overtook nobody, but was overtaken. */
static void on_overtaken(struct ex_book *book, const struct ex_price *price)
{
    if (widen(book, price->last, price->last)) {
        printf("New high/low set by price %d received out of order.\n", (int)price->number);
    } else {
        printf("Completely ignoring price %d received out of order.\n", (int)price->number);
    }
    if (book->missing > 0 && --book->missing == 0 && book->state == EX_BOOK_UNCERTAIN) {
        book->state = EX_BOOK_VALID;
        printf("Book state is now VALID.\n");
    }
}

void ex_book_on_price(struct ex_book *book, const struct ex_price *price)
{
    if (book->any && (int32_t)(price->number - book->number) <= 0) {
        on_overtaken(book, price);
        return;
    }
    uint32_t skipped = book->any ? price->number - book->number - 1 : 0;
    widen(book, price->last, price->last);
    book->any = true;
    book->last = price->last;
    book->number = price->number;
    if (book->state != EX_BOOK_NONE && skipped > 0) {
        book->missing += skipped;
        if (book->state == EX_BOOK_VALID) {
            book->state = EX_BOOK_UNCERTAIN;
            printf("Book state is now UNCERTAIN due to arrival of msg %d.\n", (int)price->number);
        }
    }
    print_book(book, price);
}

static void check_consistency(const struct ex_book *book, const struct ex_price *price)
{
    if (price->low != book->low) {
        printf("Book consistency error: expecting low %7.3f, got %7.3f\n", book->low, price->low);
    }
    if (price->high != book->high) {
        printf("Book consistency error: expecting high %7.3f, got %7.3f\n", book->high, price->high);
    }
}

bool ex_book_on_book(struct ex_book *book, const struct ex_price *price)
{
    if (book->any && (int32_t)(price->number - book->number) < 0) {
        printf("Ignoring book %d since we've already seen %d\n", (int)price->number, (int)book->number);
        return false;
    }
    if (book->state == EX_BOOK_VALID && price->number == book->number) {
        check_consistency(book, price);
        return false;
    }
    widen(book, price->low, price->high);
    book->any = true;
    book->number = price->number;
    book->last = price->last;
    book->missing = 0;
    book->state = EX_BOOK_VALID;
    return true;
}

void ex_book_invalidate(struct ex_book *book)
{
    book->state = EX_BOOK_NONE;
    book->missing = 0;
}
