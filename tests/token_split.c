/* Pre-tokenizers: the reference's splits of seven texts, parity of the automata with backtracking, and the syntax of expressions. */
#include "token_make.h"

/* Pieces are separated by '|'; '_' is a space, '~U' and such are the characters themselves. */
#define A0 "\xc2\xa0"
#define WIDE "\xe3\x80\x80"
#define ACUTE "\xcc\x81"
static const char *const inputs[] = {
    "Hello  world\n\n  I'LL pay $12345.67 ~ ok", "x=foo_bar(3);\t// don't\r\n", "\xed\x95\x9c\xea\xb5\xad\xec\x96\xb4 \xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x83\x86\xe3\x82\xb9\xe3\x83\x88 "
    "\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82 caf\xc3\xa9", "ab'Sx  \n \n", "HTTPServer3 iPhone12Pro", "a" A0 "b" WIDE WIDE "c e" ACUTE "x", "1234 567",
};
#define KOREAN "\xed\x95\x9c\xea\xb5\xad\xec\x96\xb4"
#define KANJI "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e"
#define KANA "\xe3\x83\x86\xe3\x82\xb9\xe3\x83\x88"
#define REST "| \xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82| caf\xc3\xa9"
#define C_WORDS KOREAN "| " KANJI KANA REST
#define C_CJK KOREAN "| |" KANJI KANA REST
#define A_LLAMA(pay) "Hello| | world|\n\n| | I|'LL| pay| $|" pay "| ~| ok"
#define DIGITS "1|2|3|4|5|.|6|7"
#define B_USUAL "x|=foo|_bar|(|3|);|\t|//| don|'t|\r\n"
#define B_GPT2 "x|=|foo|_|bar|(|3|);|\t|//| don|'t|\r\n"
#define B_APART "x|=|foo|_|bar|(|3|);|\t|//| don|'|t|\r\n"
#define D_DEFAULT "ab|'|Sx|  \n \n"
#define D_LLAMA "ab|'S|x|  \n \n"
#define D_JOINED "ab|'Sx|  \n \n"
#define E_GROUP "HTTPServer|3| iPhone|12|Pro"
#define E_SINGLE "HTTPServer|3| iPhone|1|2|Pro"
#define F_GPT2 "a|" A0 "|b|" WIDE "|" WIDE "|c| e|" ACUTE "|x"
#define F_LLAMA "a|" A0 "b|" WIDE "|" WIDE "c| e|" ACUTE "x"
#define F_MARKS "a|" A0 "b|" WIDE "|" WIDE "c| e" ACUTE "x"
#define G_GROUP "123|4| |567"
#define G_SINGLE "1|2|3|4| |5|6|7"

static const struct {
    const char *pre, *want[7]; /* NULL: not known */
} golden[] = {
    {"default", {"Hello| | world|\n\n | I|'|LL| pay| |$|123|45|.|67| |~| ok", B_APART, C_WORDS, D_DEFAULT, E_GROUP, F_GPT2, "123|4| |567"}},
    {"gpt-2", {"Hello| | world|\n\n | I|'|LL| pay| $|12345|.|67| ~| ok", B_GPT2, C_WORDS, D_DEFAULT, E_GROUP, F_GPT2, "1234| 567"}},
    {"smollm", {"Hello| | world|\n\n | I|'|LL| pay| $|" DIGITS "| ~| ok", B_GPT2, C_WORDS, D_DEFAULT, E_SINGLE, F_GPT2, G_SINGLE}},
    {"llama-bpe", {A_LLAMA("123|45|.|67"), B_USUAL, C_WORDS, D_LLAMA, E_GROUP, F_LLAMA, G_GROUP}},
    {"qwen2", {A_LLAMA(DIGITS), B_USUAL, C_WORDS, D_LLAMA, E_SINGLE, F_LLAMA, G_SINGLE}},
    {"qwen35", {A_LLAMA(DIGITS), B_USUAL, C_WORDS, D_LLAMA, E_SINGLE, F_MARKS, G_SINGLE}},
    {"deepseek-v3", {A_LLAMA("123|45|.|67"), B_USUAL, C_CJK, D_JOINED, E_GROUP, F_MARKS, G_GROUP}},
    {"tekken", {A_LLAMA(DIGITS), B_USUAL, NULL, D_JOINED, "HTTPServer|3| i|Phone|1|2|Pro", F_LLAMA, G_SINGLE}},
    {"gpt-4o",
     {"Hello| | world|\n\n| | I'LL| pay| $|123|45|.|67| ~| ok", "x|=foo|_bar|(|3|);|\t|//| don't|\r\n", NULL, "ab'S|x|  \n \n", "HTTPServer|3| i|Phone|12|Pro", F_LLAMA, G_GROUP}},
    {"bailingmoe2", {A_LLAMA(DIGITS), B_USUAL, NULL, D_LLAMA, E_SINGLE, F_LLAMA, G_SINGLE}},
    {"kimi-k2",
     {"Hello| | world|\n\n| | I'LL| pay| $|123|45|.|67| ~| ok", "x|=foo|_bar|(|3|);|\t|//| don't|\r\n", KOREAN "| |" KANJI "|" KANA REST, "ab'S|x|  \n \n", E_GROUP, F_LLAMA, G_GROUP}},
    {"falcon", {NULL, B_APART, C_WORDS, D_DEFAULT, E_GROUP, F_GPT2, "123|4| |567"}},
    {"deepseek-coder",
     {"Hello| | world|\n|\n| | I|'|LL| pay| $|" DIGITS "| ~| ok", NULL, C_CJK, "ab|'|Sx|  |\n| |\n", E_SINGLE, "a|" A0 "b|" WIDE "|" WIDE "c| e|" ACUTE "|x", G_SINGLE}},
};

typedef struct pieces { char text[1024]; size_t n; } pieces;
/* By the automata of all passes, or by backtracking. */
static void split(const pn_pre *pre, pn_pattern *const *passes, int pass, const char *s, size_t start, size_t end, pieces *out)
{
    if (pass == PN_MAX_PASSES || !pre->passes[pass]) {
        if (out->n) out->text[out->n++] = '|';
        memcpy(out->text + out->n, s + start, end - start);
        out->n += end - start;
        return;
    }
    pn_program program;
    if (!passes) pn_pattern_parse(&program, pre->passes[pass], NULL);
    while (start < end) {
        size_t from = end, to = end;
        if (passes) {
            pn_pattern_find(passes[pass], s, start, end, &from, &to);
        } else {
            uint32_t c;
            for (from = start; from < end && (to = slow_run(&program, 0, s, from, end)) == SIZE_MAX;) from += slow_char(s + from, end - from, &c);
            if (from == end) to = end;
        }
        if (from > start) split(pre, passes, pass + 1, s, start, from, out);
        if (to > from) split(pre, passes, pass + 1, s, from, to, out);
        start = to;
    }
}
static bool compile(const pn_pre *pre, pn_pattern **passes)
{
    pinch_error err = {0};
    for (int i = 0; i < PN_MAX_PASSES; i++) passes[i] = NULL;
    for (int i = 0; i < PN_MAX_PASSES && pre->passes[i]; i++)
        if (!CHECK("an expression of the table compiles", pn_pattern_compile(&passes[i], pre->passes[i], &err) == PINCH_OK, "%s: %s", pre->names, err.message)) return false;
    return true;
}
static void release(pn_pattern **passes)
{
    for (int i = 0; i < PN_MAX_PASSES; i++) pn_pattern_free(passes[i]);
}

static void against_golden(void)
{
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        const pn_pre *pre = pn_pre_find((pn_str){golden[i].pre, strlen(golden[i].pre)});
        pn_pattern *passes[PN_MAX_PASSES];
        if (!CHECK("the table has the name", pre != NULL, "%s", golden[i].pre) || !compile(pre, passes)) continue;
        for (int k = 0; k < 7; k++) {
            pieces out = {.n = 0};
            split(pre, passes, 0, inputs[k], 0, strlen(inputs[k]), &out);
            const char *want = golden[i].want[k];
            CHECK("golden split", !want || (strlen(want) == out.n && memcmp(want, out.text, out.n) == 0), "%s %c: %.*s", golden[i].pre, 'a' + k, (int)out.n, out.text);
        }
        release(passes);
    }
}
static void against_backtracking(void)
{
    static const char *const atoms[] = {"a", "B", " ", "  ", "\n", "\r", "1", "2", ".", "'", "s", "LL", "\xc3\xa9", "\xe6\x97\xa5", "\xe3\x81\x82", ACUTE, WIDE, A0, "\xe0\xa5\xa6", "$", "\xff", "/"};
    const int rounds = getenv("PINCH_LONG") ? 20000 : 300;
    unsigned long long r = 11;
    for (size_t i = 0; pn_pre_at(i); i++) {
        pn_pattern *passes[PN_MAX_PASSES];
        if (!compile(pn_pre_at(i), passes)) continue;
        for (int round = 0; round < rounds; round++) {
            char text[64];
            size_t n = 0;
            for (size_t k = (size_t)(pn_random(&r) >> 13) % 16; k > 0; k--) {
                const char *atom = atoms[(size_t)(pn_random(&r) >> 13) % (sizeof atoms / sizeof *atoms)];
                memcpy(text + n, atom, strlen(atom));
                n += strlen(atom);
            }
            pieces fast = {.n = 0}, tried = {.n = 0};
            split(pn_pre_at(i), passes, 0, text, 0, n, &fast);
            split(pn_pre_at(i), NULL, 0, text, 0, n, &tried);
            CHECK("the automaton splits as backtracking does", fast.n == tried.n && memcmp(fast.text, tried.text, fast.n) == 0, "%s: \"%.*s\": %.*s instead of %.*s", pn_pre_at(i)->names,
                  (int)n, text, (int)fast.n, fast.text, (int)tried.n, tried.text);
        }
        release(passes);
    }
}
static void syntax(void)
{
    static const char *const wrong[] = {"(?:a", "[a", "\\p{Q}", "\\x{}", "\\x{5-}", "a{0,2}", "a{3,1}", "\xc3\xa9", "a)", "\\x{41"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pn_pattern *p = NULL;
        pinch_error err = {0};
        CHECK("a wrong expression is refused with a sentence", pn_pattern_compile(&p, wrong[i], &err) != PINCH_OK && err.message[0], "%s", wrong[i]);
    }
}
static void names(void)
{
    for (size_t i = 0; pn_pre_at(i); i++)
        for (const char *at = pn_pre_at(i)->names; *at; at += strcspn(at, " "), at += *at == ' ')
            CHECK("a name stands in one row", pn_pre_find((pn_str){at, strcspn(at, " ")}) == pn_pre_at(i), "%s", at);
    CHECK("a part of a name is no name", !pn_pre_find((pn_str){"llama", 5}) && !pn_pre_find((pn_str){"", 0}) && !pn_pre_find((pn_str){"gpt-2 phi-2", 11}), "found");
}

int main(void)
{
    against_golden();
    against_backtracking();
    syntax();
    names();
    return pn_done();
}
