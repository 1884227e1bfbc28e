/* embed.c MODEL [PROMPT] - completes a text with the library: cc examples/embed.c -lpinch -lm -lpthread. C99 and C++. */
#include <pinch.h>
#include <stdio.h>
#include <string.h>

static bool show(void *user, pinch_token token, const char *text, size_t n)
{
    (void)token;
    return fwrite(text, 1, n, (FILE *)user) != n;
}

int main(int argc, char **argv)
{
    const char *prompt = argc > 2 ? argv[2] : "Once upon a time";
    pinch_model *model = NULL;
    pinch_session *session = NULL;
    pinch_sampler *sampler = NULL;
    pinch_token tokens[1024];
    size_t n = 0;
    pinch_error err;
    pinch_generate_options options = pinch_generate_options_default();
    options.max_tokens = 64;
    options.on_token = show;
    options.user = stdout;

    bool ok = argc > 1 && !pinch_model_open(&model, argv[1], NULL, &err) && !pinch_session_open(&session, model, NULL, &err) &&
              !pinch_tokenize(model, prompt, strlen(prompt), true, true, tokens, 1024, &n, &err) &&
              !pinch_session_feed(session, 0, tokens, n, &err) && !pinch_sampler_open(&sampler, model, NULL, &err) &&
              !pinch_generate(session, 0, sampler, &options, NULL, &err);
    if (!ok) fprintf(stderr, "%s\n", argc > 1 ? err.message : "usage: embed MODEL [PROMPT]");
    pinch_sampler_close(sampler);
    pinch_session_close(session);
    pinch_model_close(model);
    return !ok;
}
