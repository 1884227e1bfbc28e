/* kernels/x86/delta_x86.h - the delta rule of ops.def, bit-equal to scalar.
 *
 * A template over the words of lanes_avx512.h or lanes_avx2.h, included after one of them. n_strips strips of 16 value channels go through all tokens
 * together, so that they stay in the first-level cache; a token's update and the next token's sums share one pass over them. A single token's come from memory,
 * which is nearly twice as fast strip by strip. */

typedef struct delta_sums {
    lanes p[n_strips], r[n_strips];
} delta_sums;

/* What the pass does to each value of the state: `update` with the token's delta, then the sums of `next`. Either may be missing. */
PN_INLINE void delta_pass(int n, float *state, const float *update, const lanes *delta, const float *next, delta_sums *sums, int d_k)
{
    PN_UNROLL for (int j = 0; j < n; j++) sums->p[j] = sums->r[j] = l_set(0);
    for (int64_t i = 0; i < d_k; i++) {
        float *at = state + i * 16;
        lanes s[n_strips];
        PN_UNROLL for (int j = 0; j < n; j++) s[j] = l_load(at + j * (int64_t)d_k * 16); /* all before a store: strips are often whole pages apart */
        if (update) {
            PN_UNROLL for (int j = 0; j < n; j++) s[j] = l_fma(l_set(update[2 * d_k + i]), delta[j], l_mul(s[j], l_set(update[3 * d_k + i])));
            PN_UNROLL for (int j = 0; j < n; j++) l_store(at + j * (int64_t)d_k * 16, s[j]);
        }
        if (!next) continue;
        PN_UNROLL for (int j = 0; j < n; j++)
        {
            sums->p[j] = l_fma(s[j], l_set(next[i]), sums->p[j]);
            sums->r[j] = l_fma(s[j], l_set(next[d_k + i]), sums->r[j]);
        }
    }
}

/* Value channels j .. of `whole` strips, or of one strip of which m are there. */
PN_INLINE void delta_strips(int n, float *state, const pn_delta_token *tokens, int64_t n_tokens, int d_k, int64_t channel, lanes_part m, bool whole)
{
    delta_sums sums;
    lanes delta[n_strips];
    delta_pass(n, state, NULL, NULL, tokens[0].keys, &sums, d_k);
    for (int64_t t = 0; t < n_tokens; t++) {
        const pn_delta_token *token = &tokens[t];
        PN_UNROLL for (int j = 0; j < n; j++)
        {
            const float *v = token->v + channel + j * 16;
            float *out = token->out + channel + j * 16;
            delta[j] = l_mul(l_sub(whole ? l_load(v) : l_load_part(v, m), sums.p[j]), l_set(token->beta));
            const lanes o = l_mul(l_fma(l_set(token->key_query), delta[j], sums.r[j]), l_set(token->scale));
            if (whole) l_store(out, o);
            else l_store_part(out, m, o);
        }
        if (t + 1 < n_tokens) delta_pass(n, state, token->keys, delta, token[1].keys, &sums, d_k);
        else delta_pass(n, state, token->keys, delta, NULL, &sums, d_k);
    }
}

static void delta_rule(float *state, const pn_delta_token *tokens, int64_t n_tokens, int d_k, int d_v)
{
    int64_t j = 0;
    if (n_tokens == 0) return;
    for (; n_tokens > 1 && j + n_strips * 16 <= d_v; j += n_strips * 16) delta_strips(n_strips, state + j * d_k, tokens, n_tokens, d_k, j, l_first(16), true);
    for (; j < d_v; j += 16) delta_strips(1, state + j * d_k, tokens, n_tokens, d_k, j, l_first(d_v - j), false);
}
