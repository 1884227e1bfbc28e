/* tests/chat_units.c - small templates and what they give: the language, its bounds and its sentences. Needs nothing beside the project. */
#include "chat/chat.h"

#include "test.h"

#define CLOCK 1767323045 /* 2026-01-02 03:04:05, a Friday */

typedef struct unit {
    const char *template, *context; /* NULL: none */
    const char *text;               /* what it renders; NULL: it fails */
    const char *error;              /* part of the sentence */
} unit;

static const unit units[] = {
    /* white space */
    {"a\n  {% if true %}\n  b\n  {% endif %}\nc\n", NULL, "a\n  b\nc", NULL},
    {"a\n  {%- if true -%}\n  b\n  {%- endif -%}\n  c", NULL, "abc", NULL},
    {"l\n    {%+ if true +%}\nk{% endif %}\r\n", NULL, "l\n    \nk", NULL},
    {"a {# c #} b {# d #}\nc{% raw %}{{ x }}{% endraw %}", NULL, "a  b c{{ x }}", NULL},
    {"a\xc2\xa0{%- if 1 -%}\xe2\x80\x83" "b{% endif %}", NULL, "ab", NULL},
    /* literals and operators */
    {"{{ 'a\\u00e9\\x41\\q' \"b\" }}{{ 1_000 }}{{ 0x1f }}{{ 1.50 }}{{ 123456789012345678901234567890 }}", NULL, "a\xc3\xa9" "A\\qb1000311.5123456789012345678901234567890", NULL},
    {"{{ 2**3**2 }} {{ -2**2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 4 / 2 }} {{ 7.5 // 2 }} {{ 2 ** 0.5 }}", NULL, "64 4 -4 2 2.0 3.0 1.4142135623730951", NULL},
    {"{{ 1 < 3 > 2 == 2 }} {{ 'a' not in 'bcd' }} {{ not 1 == 2 }} {{ '' or [] or 'z' }} {{ true + true }} {{ 'a' ~ 1.0 ~ none }}", NULL, "True True True z 2 a1.0None", NULL},
    {"{{ 1 + 2 ~ 3 }}", NULL, NULL, "line 1, column 6: '+' is not defined for a int and a str"},
    {"{{ 9223372036854775807 + 1 }}", NULL, NULL, "beyond 64 bits"},
    {"{{ 1 % 0 }}", NULL, NULL, "division by zero"},
    /* values */
    {"{{ [1, 'a', none, true, 1.0, (1,), {'it\\'s': \"\\n\"}] }}", NULL, "[1, 'a', None, True, 1.0, (1,), {\"it's\": '\\n'}]", NULL},
    {"{{ 1e16 }} {{ 0.00001 }} {{ 0.1 + 0.2 }} {{ x }}", "{\"x\": 1.0}", "1e+16 1e-05 0.30000000000000004 1.0", NULL},
    {"{{ d['items'] }}|{{ d.a.b }}|{{ d.missing is defined }}|{{ l[-1] }}|{{ l[9] }}|{{ s[::-1] }}|{{ s[1:3] }}", "{\"d\": {\"a\": 1, \"items\": 2}, \"l\": [1, 2], \"s\": \"h\\u00e9llo\"}", "2||False|2||oll\xc3\xa9h|\xc3\xa9l", NULL},
    {"{{ q }}{{ [q] }}{{ q is iterable }}{{ q | length }}{{ q == r }}", NULL, "[Undefined]True0True", NULL},
    {"a\n{{ q.r }}", NULL, NULL, "line 2, column 5: 'q' is undefined"},
    {"{{ d['a'].b.c }}", "{\"d\": {\"a\": {}}}", NULL, "a dict has no 'b'"},
    {"{{ ''.__class__.__mro__ }}", NULL, NULL, "not for templates"},
    /* scopes */
    {"{% set z = 1 %}{% for i in [1, 2] %}{{ z }}{% set z = z + 5 %}{{ z }},{% endfor %}{{ z }}", NULL, "16,16,1", NULL},
    {"{% for i in [1] %}{{ x }}{% endfor %}{% set x = 1 %}{{ x }}", "{\"x\": 7}", "1", NULL}, /* assigned anywhere: its own everywhere, also in inner scopes that come earlier */
    {"{% if false %}{% set x = 1 %}{% endif %}{{ x }}", "{\"x\": 7}", "7", NULL},
    {"{% set ns = namespace(a=0) %}{% for i in range(3) %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}", NULL, "3", NULL},
    {"{% set g = 1 %}{% macro m(a, b=a) %}{{ g }}{{ a }}{{ b }}{% endmacro %}{% set g = 2 %}{{ m(5) }}{{ m(b=1) }}", NULL, "25521", NULL},
    {"{% macro m() %}[{{ caller(1) }}]{% endmacro %}{% call(x) m() %}{{ x }}{% endcall %}", NULL, "[1]", NULL},
    {"{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, k=3) }}", NULL, "(1, 2){'k': 3}", NULL},
    {"{% set y = 1 %}{% generation %}{% set y = 2 %}{{ y }}{% endgeneration %}{{ y }}", NULL, "21", NULL},
    {"{% set t | upper %}a{{ 1 }}{% endset %}{{ t }}{% filter upper %}b{% endfilter %}{% with a = 3 %}{{ a }}{% endwith %}{{ a }}", NULL, "A1B3", NULL},
    {"{% for x in [1] %}{% set loop = 1 %}{% endfor %}", NULL, NULL, "special variable 'loop'"},
    /* loops */
    {"{% for x in [3, 1, 2] if x > 1 %}{{ loop.index }}:{{ x }}/{{ loop.length }}{{ loop.last }} {% else %}e{% endfor %}", NULL, "1:3/2False 2:2/2True ", NULL},
    {"{% for x in [1, 2] %}{% break %}{% else %}e{% endfor %}{% for x in [1, 2] %}{{ loop.previtem }}{{ loop.nextitem }}{% endfor %}", NULL, "e21", NULL},
    {"{% for n in t recursive %}{{ n.v }}{% if n.c %}({{ loop(n.c) }}){% endif %}{% endfor %}", "{\"t\": [{\"v\": 1, \"c\": [{\"v\": 2}, {\"v\": 3}]}, {\"v\": 4}]}", "1(23)4", NULL},
    {"{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", NULL, "123", NULL},
    {"{% for a, b in [[1, 2, 3]] %}{% endfor %}", NULL, NULL, "cannot be unpacked"},
    {"{% for x in 5 %}{% endfor %}", NULL, NULL, "a int cannot be iterated"},
    /* filters, tests, methods */
    {"{{ x | tojson }}{{ x | tojson(indent=1, sort_keys=true) }}{{ '\xc3\xa9\xf0\x9f\xa6\x8a<' | tojson(true) }}", "{\"x\": {\"b\": [1, 1.0], \"a\": null}}",
     "{\"b\": [1, 1.0], \"a\": null}{\n \"a\": null,\n \"b\": [\n  1,\n  1.0\n ]\n}\"\\u00e9\\ud83e\\udd8a<\"", NULL},
    {"{{ p | selectattr('k', '>', 1) | map(attribute='n') | join('+') }}{{ p | sort(attribute='k,n') | map(attribute='n') | list }}", "{\"p\": [{\"n\": \"b\", \"k\": 2}, {\"n\": \"a\", \"k\": 2}, {\"n\": \"c\", \"k\": 1}]}", "b+a['c', 'a', 'b']", NULL},
    {"{{ [1] | map('string') | length }}", NULL, NULL, "a generator has no length"},
    {"{{ 'T' if [] | select else 'F' }}{{ ['b', 'A', 'a'] | sort }}{{ {'b': 1, 'A': 2} | dictsort }}", NULL, "T['A', 'a', 'b'][('A', 2), ('b', 1)]", NULL},
    {"{{ 'stra\xc3\x9f" "e' | upper }} {{ '\xce\x91\xce\xa3' | lower }} {{ \"it's a-b\" | title }} {{ '\xc2\xa0x ' | trim }}", NULL, "STRASSE \xce\xb1\xcf\x82 It's A-B x", NULL},
    {"{{ ('<b>' | safe) + '<' }}{{ '<' | e }}{{ ('<%s>' | safe) % '\"' }}{{ '<' ~ ('<' | safe) }}", NULL, "<b>&lt;&lt;<&#34;><<", NULL},
    {"{{ '%05.1f|%-4s|%x' % (3.14159, 'a', 255) }}{{ '{:>6,}{!r:4}{a[0]}'.format(1234, 'x', a=[9]) }}", NULL, "003.1|a   |ff 1,234'x' 9", NULL},
    {"{{ ' a  b '.split() }}{{ 'a,b,c'.rsplit(',', 1) }}{{ 'ab'.replace('', '.') }}{{ 'aXbX'.strip('Xa') }}{{ 'ab'.startswith(('x', 'a')) }}", NULL, "['a', 'b']['a,b', 'c'].a.b.bTrue", NULL},
    {"{{ '12.7' | int }}{{ '0x1f' | int(base=16) }}{{ 2.5 | round }}{{ 'x' | int(7) }}{{ '1e3' | float }}{{ 1234567 | filesizeformat }}", NULL, "12312.071000.01.2 MB", NULL},
    {"{{ 'one two three' | wordwrap(7) }}|{{ 'long text here' | truncate(8) }}|{{ 'a\\nb' | indent(2, true) }}", NULL, "one two\nthree|long...|  a\n  b", NULL},
    {"{{ 9 is divisibleby 3 }}{{ 1 is in [1] }}{{ 'a' is string }}{{ {} is mapping }}{{ 3 is odd and 2 is even }}{{ 1 is not none }}", NULL, "TrueTrueTrueTrueTrueTrue", NULL},
    {"{{ 1 | nosuch }}", NULL, NULL, "no filter named 'nosuch'"},
    {"{% if false %}{{ 1 | nosuch }}{% endif %}ok", NULL, "ok", NULL},
    {"{% set l = [1] %}{% set _ = l.append(2) %}{{ l }}{{ l.pop(0) }}{{ l }}", NULL, "[1, 2]1[2]", NULL},
    {"{% set d = {} %}{{ d.update({'a': 1}) }}", NULL, NULL, "not for templates"},
    {"{{ strftime_now('%d %b %Y, %A %H:%M %j') }}", NULL, "02 Jan 2026, Friday 03:04 002", NULL},
    {"{{ raise_exception('Roles must alternate!') }}", NULL, NULL, "Roles must alternate!"},
    /* syntax */
    {"{{ [1, }}", NULL, NULL, "line 1, column 8: a closing bracket that closes nothing here"},
    {"x\n{% if a %}", NULL, NULL, "the template ends before {% endif %}"},
    {"{% nosuch %}", NULL, NULL, "line 1, column 4: a tag 'nosuch' that is unknown here"},
    {"{{ 'open }}", NULL, NULL, "line 1, column 4: a string that never ends"},
    {"{{ a b }}", NULL, NULL, "line 1, column 6: expected '}}', got 'b'"},
    {"{% break %}", NULL, NULL, "outside of a for block"},
    {"\xff", NULL, NULL, "a byte that is no UTF-8"},
    /* bounds */
    {"{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", NULL, NULL, "more than 5000000 steps"},
    {"{{ 'a' * 99999999 }}", NULL, NULL, "a text of more than 16 MiB"},
    {"{{ range(1000000) }}", NULL, NULL, "a range of more than 100000 items"},
    {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", NULL, NULL, "calls nested deeper than 64"},
    {"{{ '{:>9999}'.format(1) }}", NULL, NULL, "a width of more than 1024"},
    {"{% set ns = namespace(v=[]) %}{% for i in range(999) %}{% set ns.v = [ns.v] %}{% endfor %}{{ ns.v | tojson }}", NULL, NULL, "nested deeper than 100"},
    {"{% set ns = namespace(s='x') %}{% for i in range(90000) %}{% set ns.s = ns.s ~ 'yz' %}{% endfor %}{{ ns.s | length }}", NULL, "180001", NULL},
};

static void check_unit(const unit *u)
{
    pn_arena arena;
    pn_json context = {.kind = PN_JSON_OBJECT};
    pinch_error err = {0};
    pn_template *t = NULL;
    char *text = NULL;
    size_t n = 0;
    pn_arena_init(&arena, 1 << 20);
    if (u->context && !CHECK("the case's context is JSON", !pn_json_parse(&context, &arena, u->context, strlen(u->context), &err), "%s", err.message)) return;
    pinch_status st = pn_template_open(&t, u->template, strlen(u->template), &err);
    if (!st) st = pn_template_render(t, &context, CLOCK, &text, &n, &err);
    if (u->text) CHECK("a template renders", !st && n == strlen(u->text) && !memcmp(text, u->text, n), "%.80s: %.*s%s, not %s", u->template, (int)n, text ? text : "", err.message, u->text);
    else if (u->error) CHECK("a template fails with its sentence", st == PINCH_ERR_FORMAT && strstr(err.message, u->error), "%.80s: status %d, '%s', not '%s'", u->template, (int)st, err.message, u->error);
    free(text);
    pn_template_close(t);
    pn_arena_free(&arena);
}

static void check_chatml(void)
{
    static const char messages[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": \"assistant\", \"content\": \"Ho\"}], \"add_generation_prompt\": true}";
    static const char wanted[] = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHo<|im_end|>\n<|im_start|>assistant\n";
    pn_arena arena;
    pn_json context;
    pinch_error err = {0};
    pn_template *t = NULL;
    char *text = NULL;
    size_t n = 0;
    pn_arena_init(&arena, 1 << 20);
    pinch_status st = pn_json_parse(&context, &arena, messages, sizeof messages - 1, &err);
    if (!st) st = pn_template_open(&t, pn_template_chatml, strlen(pn_template_chatml), &err);
    for (int i = 0; !st && i < 2; i++) { /* a template renders any number of times */
        free(text);
        st = pn_template_render(t, &context, CLOCK, &text, &n, &err);
    }
    CHECK("the template of models without one is ChatML", !st && n == sizeof wanted - 1 && !memcmp(text, wanted, n), "%s %.*s", err.message, (int)n, text ? text : "");
    free(text);
    pn_template_close(t);
    pn_arena_free(&arena);
    pn_template_close(NULL);
}

int main(void)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) check_unit(&units[i]);
    check_chatml();
    return pn_done();
}
