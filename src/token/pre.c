/* token/pre.c - the table itself: what llama.cpp runs for each name.
 *
 * Rows follow llama.cpp where it differs from a model's own tokenizer (LFM2.5, ERNIE and others): files are made and tested against it. */
#include "token/pre.h"

#define SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CONTRACTION "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define LETTERS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define OTHERS " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define LLAMA3_WITH(numbers) CONTRACTION "|" LETTERS "|" numbers "|" OTHERS "|" SPACES
#define LLAMA3 LLAMA3_WITH("\\p{N}{1,3}")
#define QWEN2 LLAMA3_WITH("\\p{N}")
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
/* Letters outside ASCII have no case here: they are both. Marks are neither. */
#define UPPER "[\\p{L}--a-z]"
#define LOWER "[\\p{L}--A-Z]"
#define CASED(suffix) "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" suffix "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" suffix
#define OTHERS_SLASH " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
#define NEWLINE_ONCE "\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"
/* Ranges of white space are taken out: the reference hides it from expressions that name no category. */
#define CJK "[\\x{800-9FA5 AC00-D7FF}--\\s]+"
#define HAN "\\x{4E00-9FFF 3400-4DBF 20000-2A6DF 2A700-2B73F 2B740-2B81F 2B820-2CEAF 2CEB0-2EBEF F900-FAFF 2F800-2FA1F}"
/* The letters that deepseek-llm's expression lists one by one. */
#define LISTED_LETTERS \
    "\\x{41-5A 61-7A B5 C0-D6 D8-F6 F8-1BA 1BC-1BF 1C4-293 295-2AF 370-373 376 377 37B-37D 37F 386 388-38A 38C 38E-3A1 3A3-3F5 3F7-481 48A-52F 531-556 " \
    "10A0-10C5 13A0-13F5 13F8-13FD 1C90-1CBA 1CBD-1CBF 1D00-1D2B 1D6B-1D77 1D79-1D9A 1E00-1F15 1F18-1F1D 1F20-1F45 1F48-1F4D 1F50-1F57 1F59 1F5B 1F5D " \
    "1F5F-1F7D 1F80-1FB4 1FB6-1FBC 1FBE 1FC2-1FC4 1FC6-1FCC 1FD0-1FD3 1FD6-1FDB 1FE0-1FEC 1FF2-1FF4 1FF6-1FFC 2102 2107 210A-2113 2115 2119-211D 2124 " \
    "2126 2128 212A-212D 212F-2134 2139 213C-213F 2145-2149 214E 2183 2184 2C00-2C7B 2C7E-2CE4 2CEB-2CEE 2CF2 2CF3 A640-A66D A680-A69B A722-A76F " \
    "A771-A787 A78B-A78E AB70-ABBF FB00-FB06 FB13-FB17 FF21-FF3A FF41-FF5A 10400-1044F 104B0-104D3 104D8-104FB 10C80-10CB2 10CC0-10CF2 118A0-118DF " \
    "1E900-1E943}"
/* "\s+$" as a partition of the text: up to its last visible character, and the rest. Trying \s+$ at each space would take quadratic time. */
#define TRAILING_SPACES "(?:\\s*\\S)+|\\s+"

#define CLEAN PN_PRE_CLEAN
#define LLAMA3_FLAGS (PN_PRE_IGNORE_MERGES | PN_PRE_BOS)

static const pn_pre table[] = {
    {"default", {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}, CLEAN},
    {"llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", {LLAMA3}, LLAMA3_FLAGS | CLEAN},
    {"dbrx smaug-bpe glm4 chatglm-bpe", {LLAMA3}, CLEAN},
    {"qwen2 deepseek-r1-qwen kormo f2llmv2 hunyuan solar-open grok-2", {QWEN2}, 0},
    {"megrez stablelm2", {QWEN2}, CLEAN},
    {"qwen35", {CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES}, 0},
    {"gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de gigachat a.x-4.0 mellum modern-bert exaone4 mpt olmo jais", {GPT2}, CLEAN},
    {"trillion granite-docling", {GPT2}, 0},
    {"jina-v1-en jina-v2-code roberta-bpe", {GPT2}, CLEAN},
    {"starcoder refact codeshell exaone minerva-7b mellum2", {"\\p{N}", GPT2}, CLEAN},
    {"smollm command-r", {"\\p{N}", GPT2}, 0},
    {"falcon", {"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]"}, CLEAN},
    /* U+3000 is white space, so the range of ideographic punctuation begins at U+3001 */
    {"deepseek-llm",
     {"[\\r\\n]", "\\s?[" LISTED_LETTERS "]+", "\\s?[!-/:-~\\x{FF01-FF0F FF1A-FF5E 2018-201F 3001-3002}]+", TRAILING_SPACES, CJK, "\\p{N}+"}, 0},
    {"deepseek-coder", {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", CJK, "\\p{N}"}, 0},
    {"deepseek-v3 hunyuan-dense joyai-llm hy_v4",
     {"\\p{N}{1,3}", "[\\x{4E00-9FA5 3040-30FF}]+",
      "[!-/:-@\\[-`{-~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES}, 0},
    {"tekken", {CASED("") "|\\p{N}|" OTHERS_SLASH "|" SPACES}, LLAMA3_FLAGS},
    {"gpt-4o llama4 kanana2 talkie minimax-m2", {CASED(CONTRACTION "?") "|\\p{N}{1,3}|" OTHERS_SLASH "|" SPACES}, 0},
    {"bailingmoe bailingmoe2 llada-moe",
     {"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|" LETTERS "|\\p{N}|" OTHERS "|" NEWLINE_ONCE}, 0},
    {"seed-coder", {CONTRACTION "|" LETTERS "|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" SPACES}, 0},
    {"kimi-k2",
     {"[" HAN "]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}--" HAN "]+" CONTRACTION "?|\\p{N}{1,3}|" OTHERS "|" SPACES}, PN_PRE_NO_MERGES},
    {"exaone-moe",
     {CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|" NEWLINE_ONCE}, CLEAN},
    {"minicpm5", {"\\p{N}{1,3}", LLAMA3_WITH("\\p{N}+")}, PN_PRE_IGNORE_MERGES | CLEAN},
    {"laguna", {"[^\\n]+|[\\n]+", QWEN2}, 0},
    {"gemma4 granite-embed-multi-311m", {"[^\\n]+|[\\n]+"}, PN_PRE_RAW | PN_PRE_BOS | CLEAN},
};

static bool listed(const char *names, pn_str name)
{
    for (const char *at = names; *at;) {
        const size_t n = strcspn(at, " ");
        if (n == name.n && memcmp(at, name.p, n) == 0) return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

const pn_pre *pn_pre_find(pn_str name)
{
    for (size_t i = 0; i < PN_COUNT(table); i++)
        if (name.n && listed(table[i].names, name)) return &table[i];
    return NULL;
}

const pn_pre *pn_pre_at(size_t i) { return i < PN_COUNT(table) ? &table[i] : NULL; }
