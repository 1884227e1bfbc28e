/* Any options and any logits, NaN and infinities included: a sentence, or an id of the vocabulary, not suppressed and no NaN where there is
 * another, the best where greedy; the same again after a reset. Vocabularies are shorter and longer than a sampler's list of candidates. */
#include "fuzz.h"

#include "base/math.h"
#include "sample/sample.h"

#include <math.h>

enum { READ = 24, VOCAB = 3000, STEPS = 12, SUPPRESSED = 3 };

static size_t piece(const void *ctx, pinch_token id, char *out, size_t capacity)
{
    (void)ctx;
    if (capacity) out[0] = (char)('a' + id % 4);
    return 1;
}

static float any_float(const uint8_t **data, size_t *size)
{
    static const float odd[] = {0, 1, -1, 0.5f, 2, 1e30f, -1e30f, 1e-30f, 1e-45f, 40};
    const uint8_t b = fuzz_byte(data, size);
    if (b < sizeof odd / sizeof *odd) return odd[b];
    if (b < 128) return (float)(b - 64) / 16;
    uint32_t bits = (uint32_t)b << 24;
    for (int i = 0; i < 3; i++) bits |= (uint32_t)fuzz_byte(data, size) << 8 * i;
    return pn_bits_float(bits);
}

static int32_t any_int(const uint8_t **data, size_t *size)
{
    const uint8_t b = fuzz_byte(data, size);
    return b < 250 ? (int32_t)b - 8 : b == 250 ? INT32_MAX : b == 251 ? INT32_MIN : (int32_t)b << 20;
}

static pinch_sampler_options any_options(const uint8_t **data, size_t *size)
{
    pinch_sampler_options o = pinch_sampler_options_default();
    float *const floats[] = {&o.temperature, &o.top_p, &o.min_p, &o.typical_p, &o.top_n_sigma, &o.xtc_probability, &o.xtc_threshold, &o.repeat_penalty,
                             &o.frequency_penalty, &o.presence_penalty, &o.dry_multiplier, &o.dry_base, &o.mirostat_tau, &o.mirostat_eta};
    int32_t *const ints[] = {&o.top_k, &o.repeat_last_n, &o.dry_allowed_length, &o.dry_penalty_last_n, &o.mirostat};
    o.seed = fuzz_byte(data, size);
    /* few at a time, so that most inputs are valid */
    for (uint8_t n = fuzz_byte(data, size) % 6; n; n--) *floats[fuzz_byte(data, size) % (sizeof floats / sizeof *floats)] = any_float(data, size);
    for (uint8_t n = fuzz_byte(data, size) % 4; n; n--) *ints[fuzz_byte(data, size) % (sizeof ints / sizeof *ints)] = any_int(data, size);
    return o;
}

/* Where no option changes single logits. */
static void check_choice(const pinch_sampler_options *o, const float *logits, int32_t n_vocab, pinch_token id)
{
    const bool changed = o->repeat_penalty != 1 || o->frequency_penalty != 0 || o->presence_penalty != 0 || o->dry_multiplier != 0;
    float best = -INFINITY;
    for (int32_t i = 0; i < n_vocab; i++) {
        if (i != SUPPRESSED && logits[i] > best) best = logits[i];
    }
    if ((changed && !o->mirostat) || !(best > -INFINITY)) return;
    MUST(id != SUPPRESSED && logits[id] > -INFINITY);
    const bool keeps_best = o->mirostat || (o->typical_p >= 1 && o->xtc_probability <= 0);
    if (o->temperature <= 0 && keeps_best) MUST(logits[id] >= best);
}

static void run(pn_sampler *s, const pinch_sampler_options *o, const float *logits, int32_t n_vocab, pinch_token *out)
{
    for (int i = 0; i < STEPS; i++) {
        float row[VOCAB];
        memcpy(row, logits, (size_t)n_vocab * sizeof *row);
        out[i] = pn_sampler_choose(s, row);
        MUST(out[i] >= 0 && out[i] < n_vocab);
        check_choice(o, logits, n_vocab, out[i]);
        pn_sampler_accept(s, out[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const pinch_sampler_options options = any_options(&data, &size);
    const pinch_token suppressed = SUPPRESSED;
    float logits[VOCAB];
    for (int i = 0; i < READ; i++) logits[i] = any_float(&data, &size);
    const uint8_t kind = fuzz_byte(&data, &size); /* the rest repeats what was read, exactly or not */
    const int32_t n_vocab = kind % 2 ? VOCAB : READ;
    for (int i = READ; i < n_vocab; i++) logits[i] = kind % 4 == 1 ? logits[i % READ] : logits[i % READ] - (float)(i % 97) * 0.125f;
    pn_sampler *s = NULL;
    pinch_error err = {0};
    const pinch_status status = pn_sampler_open(&s, &options, n_vocab, 64, piece, NULL, &suppressed, 1, &err);
    MUST((status == PINCH_OK) == (s != NULL));
    MUST(status == PINCH_OK || err.message[0]);
    if (!s) return 0;
    pinch_token first[STEPS], again[STEPS];
    run(s, &options, logits, n_vocab, first);
    pn_sampler_reset(s);
    run(s, &options, logits, n_vocab, again);
    MUST(memcmp(first, again, sizeof first) == 0);
    pn_sampler_close(s);
    return 0;
}
