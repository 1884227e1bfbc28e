/* A long generation is steady: 1,000 tokens grow the process by the cache that they fill and by nothing else. */
#include "base/cpu.h"
#include "engine_case.h"

enum { TOKENS = 1000, WARM = 100, LONG_CTX = 1024 };

/* Sampled tokens, one at a time, until the sequence holds n. */
static bool generate_to(pinch_session *s, pinch_sampler *sampler, int32_t n)
{
    pinch_error err = {0};
    while (pinch_session_position(s, 0) < n) {
        const pinch_token token = pinch_sampler_choose(sampler, pinch_session_logits(s));
        pinch_sampler_accept(sampler, token);
        if (!CHECK("a token is fed", pinch_session_feed(s, 0, &token, 1, &err) == PINCH_OK, "%s", err.message)) return false;
    }
    return true;
}

static void steady(const golden_case *c)
{
    pinch_error err = {0};
    pinch_session_options o = pinch_session_options_default();
    o.n_ctx = LONG_CTX;
    o.n_threads = 2;
    pinch_model *m = case_model(c, PINCH_ACTIVATIONS_Q8);
    pinch_memory_plan plan = {0};
    pinch_session *s = NULL;
    pinch_sampler *sampler = NULL;
    const bool ready = m && pinch_session_plan(m, &o, &plan, &err) == PINCH_OK && pinch_session_open(&s, m, &o, &err) == PINCH_OK &&
                       pinch_sampler_open(&sampler, m, NULL, &err) == PINCH_OK && pinch_session_feed(s, 0, c->prompt, c->n_prompt, &err) == PINCH_OK;
    CHECK("model, session and sampler open", ready, "%s: %s", c->name, err.message);
    if (ready && generate_to(s, sampler, WARM)) {
        const uint64_t before = pn_memory_resident();
        const bool done = generate_to(s, sampler, TOKENS);
        const uint64_t after = pn_memory_resident(), allowed = plan.kv + (128 << 10);
        CHECK("1,000 tokens grow memory by the cache they fill at most", done && after <= before + allowed, "%s: %llu bytes, %llu allowed", c->name, (unsigned long long)(after - before),
              (unsigned long long)allowed);
    }
    pinch_sampler_close(sampler);
    pinch_session_close(s);
    pinch_model_close(m);
}

int main(void)
{
#if defined(__SANITIZE_THREAD__)
    const char *const blind = "the thread sanitizer keeps several bytes for each that is touched";
#else
    const char *const blind = pn_memory_resident() ? NULL : "the system does not tell the resident set";
#endif
    if (blind) {
        pn_skip("steady memory", blind);
        return pn_done();
    }
    for (size_t i = 0; i < PN_COUNT(golden_names); i++) {
        golden_case c;
        if (case_load(&c, golden_names[i])) steady(&c);
        case_free(&c);
    }
    return pn_done();
}
