/* JSON: what is read within its bounds, what is refused and why, what is written of any bytes. */
#include "um_test.h"

#include "base/um_json.h"

static struct um_json_object object;
static const char *why;

static bool reads(const char *text)
{
    return um_json_read(text, strlen(text), &object, &why);
}

static bool refuses(const char *text, const char *reason)
{
    bool refused = !reads(text);
    return refused && why != NULL && strcmp(why, reason) == 0;
}

TEST(members_are_texts_and_whole_numbers)
{
    CHECK(reads(" { \"type\" : \"SET\" , \"ms\":250,\"none\":\"\" } \n"));
    CHECK_EQ(object.count, 3);
    CHECK_STR(um_json_text(&object, "type"), "SET");
    CHECK_STR(um_json_text(&object, "none"), "");
    CHECK(um_json_text(&object, "ms") == NULL);
    CHECK(um_json_number(&object, "type") == NULL);
    CHECK_EQ(*um_json_number(&object, "ms"), 250);
    CHECK(reads("{}"));
    CHECK_EQ(object.count, 0);
    CHECK(reads("{\"n\":18446744073709551615}"));
    CHECK(*um_json_number(&object, "n") == UINT64_MAX);
}

TEST(escapes_are_their_characters)
{
    CHECK(reads("{\"t\":\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20ac\"}"));
    CHECK_STR(um_json_text(&object, "t"), "a\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac");
}

TEST(what_is_no_flat_object_is_refused_with_its_reason)
{
    CHECK(refuses("", "an object is expected"));
    CHECK(refuses("[]", "an object is expected"));
    CHECK(refuses("{\"a\"", "a colon is expected"));
    CHECK(refuses("{\"a\":1", "a comma or the end of the object is expected"));
    CHECK(refuses("{\"a\":1,}", "a text in quotes is expected"));
    CHECK(refuses("{\"a\":{}}", "a value that is neither a text nor a whole number"));
    CHECK(refuses("{\"a\":-1}", "a value that is neither a text nor a whole number"));
    CHECK(refuses("{\"a\":01}", "a value that is neither a text nor a whole number"));
    CHECK(refuses("{\"a\":18446744073709551616}", "a number of more than 64 bits"));
    CHECK(refuses("{\"a\":\"b", "a text without end"));
    CHECK(refuses("{\"a\":\"b\\", "a text without end"));
    CHECK(refuses("{\"a\":\"b\n\"}", "a control character in a text"));
    CHECK(refuses("{\"a\":\"\\x\"}", "an unknown escape"));
    CHECK(refuses("{\"a\":\"\\u00g0\"}", "\\u without four hexadecimal digits"));
    CHECK(refuses("{\"a\":\"\\u0000\"}", "a character that is not taken"));
    CHECK(refuses("{\"a\":\"\\ud800\"}", "a character that is not taken"));
    CHECK(refuses("{} {}", "something follows the object"));
}

TEST(texts_and_members_have_their_bounds)
{
    char text[400] = "{\"t\":\"";
    size_t head = strlen(text);
    memset(text + head, 'x', UM_JSON_MAX_TEXT);
    strcpy(text + head + UM_JSON_MAX_TEXT, "\"}");
    CHECK(reads(text));
    CHECK_EQ(strlen(um_json_text(&object, "t")), UM_JSON_MAX_TEXT);
    strcpy(text + head + UM_JSON_MAX_TEXT, "x\"}");
    CHECK(refuses(text, "a text of more than 255 bytes"));
    strcpy(text, "{");
    for (int i = 0; i < UM_JSON_MAX_MEMBERS; i++) {
        strcat(text, i > 0 ? ",\"a\":1" : "\"a\":1");
    }
    strcat(text, "}");
    CHECK(reads(text));
    strcpy(text + strlen(text) - 1, ",\"a\":1}");
    CHECK(refuses(text, "more than 16 members"));
}

static bool writes(const char *text, const char *wanted)
{
    char out[256] = "";
    FILE *file = fmemopen(out, sizeof(out), "w");
    um_json_put_text(file, text);
    fclose(file);
    return strcmp(out, wanted) == 0;
}

TEST(texts_of_any_bytes_are_written_as_json)
{
    CHECK(writes("plain", "\"plain\""));
    CHECK(writes("\"\\\n\x7f", "\"\\\"\\\\\\u000a\\u007f\""));
    CHECK(writes("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""));
    CHECK(writes("a\xff\xc3", "\"a\\ufffd\\ufffd\""));
    CHECK(writes("\xc0\x80", "\"\\ufffd\\ufffd\""));            /* too long a form */
    CHECK(writes("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"")); /* half of a pair */
    CHECK(writes("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""));
}
