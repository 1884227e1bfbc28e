/* tests/base_json.c - what the JSON reader takes and refuses, and what the writer writes. */
#include "base/json.h"

#include "test.h"

static const struct { const char *text; const char *error; } refused[] = {
    {"", "JSON, line 1, column 1: expected a value, got the end"},
    {"[1,\n 2,]", "JSON, line 2, column 4: expected a value"},
    {"{\"a\" 1}", "JSON, line 1, column 6: expected ':' behind the key"},
    {"{a:1}", "JSON, line 1, column 2: expected a key in quotes"},
    {"[1 2]", "JSON, line 1, column 4: expected ',' or ']'"},
    {"{\"a\":1 \"b\":2}", "JSON, line 1, column 8: expected ',' or '}'"},
    {"\"abc", "JSON, line 1, column 1: a string that never ends"},
    {"\"a\\q\"", "JSON, line 1, column 4: an escape that JSON does not have"},
    {"\"a\nb\"", "JSON, line 1, column 3: a control character in a string"},
    {"\"\\u12g4\"", "JSON, line 1, column 4: \\u takes four hexadecimal digits"},
    {"\"\xc3\"", "JSON, line 1, column 2: a string that is not UTF-8"},
    {"\"\xed\xa0\x80\"", "JSON, line 1, column 2: a string that is not UTF-8"},
    {"01", "JSON, line 1, column 1: a number that begins with 0"},
    {"1.", "JSON, line 1, column 2: a point without digits behind it"},
    {"1e", "JSON, line 1, column 2: an exponent without digits"},
    {"+1", "JSON, line 1, column 1: expected a value"},
    {"NaN", "JSON, line 1, column 1: expected a value"},
    {"1 1", "JSON, line 1, column 3: text behind the value"},
    {"tru", "JSON, line 1, column 1: expected a value"},
};

static pinch_status parse(pn_json *out, pn_arena *arena, const char *text, size_t n, pinch_error *err)
{
    char *exact = malloc(n ? n : 1); /* one byte too far is caught */
    memcpy(exact, text, n);
    pinch_status st = pn_json_parse(out, arena, exact, n, err);
    free(exact);
    return st;
}

static void check_refused(void)
{
    for (size_t i = 0; i < PN_COUNT(refused); i++) {
        pn_arena arena;
        pn_arena_init(&arena, 1 << 20);
        pn_json v;
        pinch_error err = {0};
        pinch_status st = parse(&v, &arena, refused[i].text, strlen(refused[i].text), &err);
        CHECK("a broken text is refused in a sentence", st == PINCH_ERR_FORMAT && !strcmp(err.message, refused[i].error), "%s: %s, not %s", refused[i].text, err.message, refused[i].error);
        pn_arena_free(&arena);
    }
}

static void check_values(void)
{
    static const char text[] = " {\"a\": 1, \"b\": 1.0, \"c\": [true, null, -7, 1e3, 12345678901234567890], \"d\": \"x\\u00e9\\ud83e\\udd8a\\ud83e\\n\\u0000z\", \"a\": {\"z\": \"last\"}, \"e\": -9223372036854775808} ";
    pn_arena arena;
    pn_arena_init(&arena, 1 << 20);
    pn_json v;
    pinch_error err = {0};
    pinch_status st = parse(&v, &arena, text, sizeof text - 1, &err);
    if (!CHECK("a good text is read", st == PINCH_OK && v.kind == PN_JSON_OBJECT && v.n == 5, "%s, %zu members", err.message, v.n)) return;
    const pn_json *c = pn_json_member(&v, "c"), *d = pn_json_member(&v, "d"), *a = pn_json_member(&v, "a"), *b = pn_json_member(&v, "b"), *e = pn_json_member(&v, "e");
    CHECK("a repeated key keeps its first place and last value", !strcmp(v.keys[0].text, "a") && a->kind == PN_JSON_OBJECT && !strcmp(pn_json_member(a, "z")->text, "last"), "%s", v.keys[0].text);
    CHECK("1.0 stays apart from 1", b->kind == PN_JSON_FLOAT && b->number == 1.0, "kind %d", (int)b->kind);
    CHECK("array items keep their kinds", c->n == 5 && c->items[0].boolean && c->items[1].kind == PN_JSON_NULL && c->items[2].integer == -7 && c->items[3].kind == PN_JSON_FLOAT && c->items[3].number == 1000, "%zu", c->n);
    CHECK("an integer beyond 64 bits is a float", c->items[4].kind == PN_JSON_FLOAT && c->items[4].number == 12345678901234567890.0, "%g", c->items[4].number);
    CHECK("the smallest integer fits", e->kind == PN_JSON_INT && e->integer == INT64_MIN, "%" PRId64, e->integer);
    static const char want[] = "x\xc3\xa9\xf0\x9f\xa6\x8a\xef\xbf\xbd\n\0z";
    CHECK("escapes, pairs, a lone surrogate and NUL", d->n == sizeof want - 1 && !memcmp(d->text, want, sizeof want), "%zu bytes", d->n);
    CHECK("a missing member is NULL", !pn_json_member(&v, "q") && !pn_json_member(b, "q"), "found");
    pn_arena_free(&arena);
}

static void check_bounds(void)
{
    pn_arena arena;
    pn_arena_init(&arena, 1 << 24);
    pn_json v;
    pinch_error err = {0};
    char deep[202];
    for (int i = 0; i < 101; i++) deep[i] = '[', deep[201 - i] = ']';
    CHECK("depth 101 is refused", parse(&v, &arena, deep, 202, &err) == PINCH_ERR_FORMAT, "%s", err.message);
    CHECK("depth 100 is read", parse(&v, &arena, deep + 1, 200, &err) == PINCH_OK, "%s", err.message);
    size_t n = 0, capacity = 40 << 16;
    char *many = malloc(capacity);
    many[n++] = '{';
    for (int i = 0; i < 1 << 16; i++) n += (size_t)snprintf(many + n, capacity - n, "%s\"k%d\":%d", i ? "," : "", i % 50000, i);
    many[n++] = '}';
    pinch_status st = parse(&v, &arena, many, n, &err);
    CHECK("many keys, some twice, in linear time", !st && v.n == 50000 && v.items[0].integer == 50000 && v.items[49999].integer == 49999, "%s %zu", err.message, v.n);
    pn_arena_free(&arena);
    pn_arena_init(&arena, 1000);
    st = parse(&v, &arena, many, n, &err);
    CHECK("the arena's limit is a status", st == PINCH_ERR_MEMORY, "%d", (int)st);
    pn_arena_free(&arena);
    free(many);
}

static void check_writer(void)
{
    pn_json_writer w = {0};
    pn_json_object(&w);
    pn_json_put_key(&w, "a\"b");
    pn_json_array(&w);
    pn_json_int(&w, INT64_MIN);
    pn_json_uint(&w, UINT64_MAX);
    pn_json_double(&w, 0.1);
    pn_json_double(&w, __builtin_inf());
    pn_json_float(&w, 0.1f);
    pn_json_bool(&w, true);
    pn_json_null(&w);
    pn_json_object(&w);
    pn_json_object_end(&w);
    pn_json_array(&w);
    pn_json_array_end(&w);
    pn_json_array_end(&w);
    pn_json_put_key(&w, "s");
    pn_json_string(&w, "\x01\n\t\xc3\xa9\xc3(\xf0\x9f\xa6\0\x7f\\", 13);
    pn_json_put_key(&w, "b");
    pn_json_array(&w);
    pn_json_base64(&w, "", 0);
    pn_json_base64(&w, "f", 1);
    pn_json_base64(&w, "fo", 2);
    pn_json_base64(&w, "foo", 3);
    pn_json_base64(&w, "\xff\xff\xbe", 3);
    pn_json_array_end(&w);
    pn_json_object_end(&w);
    static const char want[] = "{\"a\\\"b\":[-9223372036854775808,18446744073709551615,0.1,null,0.1,true,null,{},[]],\"s\":\"\\u0001\\n\\t\xc3\xa9\xef\xbf\xbd(\xef\xbf\xbd\\u0000\x7f\\\\\",\"b\":[\"\",\"Zg==\",\"Zm8=\",\"Zm9v\",\"//++\"]}";
    CHECK("the writer's text", !w.failed && w.n == sizeof want - 1 && !memcmp(w.data, want, sizeof want), "%s, not %s", w.data, want);
    pn_json_writer_free(&w);
}

int main(void)
{
    check_refused();
    check_values();
    check_bounds();
    check_writer();
    return pn_done();
}
