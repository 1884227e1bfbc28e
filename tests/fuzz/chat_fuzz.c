/* Any text as a chat template over a fixed conversation: text within bounds, or a sentence; twice the same. */
#include "fuzz.h"

#include "chat/chat.h"

static const char conversation[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"be kind\"}, {\"role\": \"user\", \"content\": \"hi \\u00e9\"}, {\"role\": \"assistant\", \"content\": null, "
    "\"tool_calls\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": {\"a\": 1, \"b\": [1.5, true, null]}}}]}], "
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {}}}], \"add_generation_prompt\": true, \"bos_token\": \"<s>\"}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pn_arena arena;
    pn_arena_init(&arena, 1 << 20);
    pn_json context;
    pn_template *t = NULL;
    pinch_error err = {0};
    MUST(pn_json_parse(&context, &arena, conversation, sizeof conversation - 1, &err) == PINCH_OK);
    const pinch_status opened = pn_template_open(&t, (const char *)data, size, &err);
    MUST((opened == PINCH_OK) == (t != NULL));
    MUST(opened == PINCH_OK || err.message[0]);
    char *text[2] = {0};
    size_t n[2] = {0};
    pinch_status status[2] = {PINCH_OK, PINCH_OK};
    for (int i = 0; t && i < 2; i++) status[i] = pn_template_render(t, &context, 1767323045, &text[i], &n[i], &err);
    MUST(status[0] == status[1] && n[0] == n[1]);
    MUST(!n[0] || memcmp(text[0], text[1], n[0]) == 0);
    free(text[0]);
    free(text[1]);
    pn_template_close(t);
    pn_arena_free(&arena);
    return 0;
}
