/* quant/search.c - searches for scales and codes. Every product and sum is rounded to float in the order written, as ggml's reference
 * does when it is compiled without contraction; so the codes are the same. */
#include "quant/quantise.h"

#include <math.h>

#define SMALLEST 1e-15f /* a group whose largest magnitude is below this becomes zeros */

float pn_largest(const float *x, int n)
{
    float magnitude = 0, largest = 0;
    for (int i = 0; i < n; i++) {
        if (!(fabsf(x[i]) > magnitude)) continue;
        magnitude = fabsf(x[i]);
        largest = x[i];
    }
    return largest;
}

void pn_weigh(float *w, const float *importance, const float *x, int n, float variance)
{
    for (int i = 0; i < n; i++) w[i] = importance[i] * sqrtf(variance + x[i] * x[i]);
}

float pn_mean_square(const float *x, int64_t n, float factor)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    return factor * sum / (float)n;
}

static void clear(uint8_t *codes, int n)
{
    for (int i = 0; i < n; i++) codes[i] = 0;
}

/* The two sums of a least-squares fit of x by scale * l: the best scale is xl / ll. */
typedef struct fit {
    float xl, ll;
} fit;

static void fit_add(fit *f, float w, float x, int l)
{
    f->xl += w * x * (float)l;
    f->ll += w * (float)l * (float)l;
}

static float fit_scale(const fit *f) { return f->ll > 0 ? f->xl / f->ll : 0; }

static fit fit_symmetric(int n, int N, const float *x, const float *w, float k)
{
    fit f = {0, 0};
    for (int i = 0; i < n; i++) fit_add(&f, w ? w[i] : x[i] * x[i], x[i], pn_clamp(pn_nearest(k * x[i]), -N, N - 1));
    return f;
}

float pn_search_symmetric(int n, int N, const float *x, const float *w, uint8_t *codes)
{
    const float largest = pn_largest(x, n);
    clear(codes, n);
    if (fabsf(largest) < SMALLEST) return 0;
    float best_k = -(float)N / largest;
    fit f = fit_symmetric(n, N, x, w, best_k);
    float scale = fit_scale(&f), best = scale * f.xl;
    for (int step = -9; step <= 9; step++) {
        if (step == 0) continue;
        const float k = -((float)N + 0.1f * (float)step) / largest;
        f = fit_symmetric(n, N, x, w, k);
        if (!(f.ll > 0 && f.xl * f.xl > best * f.ll)) continue;
        scale = f.xl / f.ll;
        best = scale * f.xl;
        best_k = k;
    }
    for (int i = 0; i < n; i++) codes[i] = (uint8_t)(pn_clamp(pn_nearest(best_k * x[i]), -N, N - 1) + N);
    return scale;
}

/* Passes over the codes; each may move to where the fit of all others wants it, if the whole fit gains. At most five. */
static void improve(int n, int low, int high, const float *x, const float *w, int *l, fit *f)
{
    for (int pass = 0, changed = 1; pass < 5 && changed; pass++) {
        changed = 0;
        for (int i = 0; i < n; i++) {
            const float weight = w ? w[i] : x[i] * x[i];
            fit g = {f->xl - weight * x[i] * (float)l[i], f->ll - weight * (float)l[i] * (float)l[i]};
            if (!(g.xl > 0) || (w && !(g.ll > 0))) continue;
            const int moved = pn_clamp(pn_nearest(x[i] * g.ll / g.xl), low, high);
            if (moved == l[i]) continue;
            fit_add(&g, weight, x[i], moved);
            if (!(g.ll > 0 && g.xl * g.xl * f->ll > f->xl * f->xl * g.ll)) continue;
            l[i] = moved;
            *f = g;
            changed = 1;
        }
    }
}

float pn_search_coordinate(int n, int N, const float *x, uint8_t *codes)
{
    const float largest = pn_largest(x, n);
    int l[32];
    clear(codes, n);
    if (fabsf(largest) < SMALLEST) return 0;
    const float k = -(float)N / largest;
    fit f = fit_symmetric(n, N, x, NULL, k);
    for (int i = 0; i < n; i++) l[i] = pn_clamp(pn_nearest(k * x[i]), -N, N - 1);
    improve(n, -N, N - 1, x, NULL, l, &f);
    for (int i = 0; i < n; i++) codes[i] = (uint8_t)(l[i] + N);
    return fit_scale(&f);
}

static float error_positive(int n, int N, const float *x, const float *w, float k)
{
    const float scale = 1 / k;
    float error = 0;
    for (int i = 0; i < n; i++) {
        const float difference = x[i] - scale * (float)pn_clamp(pn_nearest(k * x[i]), 0, N);
        error += w[i] * difference * difference;
    }
    return error;
}

float pn_search_positive(int n, int N, const float *x, const float *w, uint8_t *codes)
{
    const float largest = pn_largest(x, n);
    int l[32];
    clear(codes, n);
    if (!(largest >= SMALLEST)) return 0;
    float k = (float)N / largest, best = error_positive(n, N, x, w, k);
    for (int step = -4; step <= 4; step++) {
        if (step == 0) continue;
        const float other = (0.1f * (float)step + (float)N) / largest, error = error_positive(n, N, x, w, other);
        if (!(error < best)) continue;
        best = error;
        k = other;
    }
    fit f = {0, 0};
    for (int i = 0; i < n; i++) {
        l[i] = pn_clamp(pn_nearest(k * x[i]), 0, N);
        fit_add(&f, w[i], x[i], l[i]);
    }
    improve(n, 0, N, x, w, l, &f);
    for (int i = 0; i < n; i++) codes[i] = (uint8_t)l[i];
    return fit_scale(&f);
}

static float error_minimum(const pn_min_search *s, const float *x, const float *w, const uint8_t *codes, float scale, float low)
{
    float error = 0;
    for (int i = 0; i < s->n; i++) {
        const float difference = scale * (float)codes[i] + low - x[i];
        error += w[i] * (s->absolute ? fabsf(difference) : difference * difference);
    }
    return error;
}

static void codes_from(const pn_min_search *s, const float *x, float k, float low, uint8_t *codes)
{
    for (int i = 0; i < s->n; i++) codes[i] = (uint8_t)pn_clamp(pn_nearest(k * (x[i] - low)), 0, s->N);
}

/* Weighted sums for the line x = scale * l + low through codes l. */
static bool fit_line(const pn_min_search *s, const float *x, const float *w, const uint8_t *codes, float *scale, float *low)
{
    float sum_w = 0, sum_x = 0, sum_l = 0, sum_ll = 0, sum_xl = 0;
    for (int i = 0; i < s->n; i++) {
        const float l = (float)codes[i];
        sum_w += w[i];
        sum_x += w[i] * x[i];
        sum_l += w[i] * l;
        sum_ll += w[i] * l * l;
        sum_xl += w[i] * l * x[i];
    }
    const float determinant = sum_w * sum_ll - sum_l * sum_l;
    if (!(determinant > 0)) return false;
    *scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
    *low = (sum_ll * sum_x - sum_l * sum_xl) / determinant;
    if (*low > 0) {
        *low = 0;
        *scale = sum_xl / sum_ll;
    }
    return true;
}

float pn_search_minimum(const pn_min_search *s, const float *x, const float *w, uint8_t *codes, float *min)
{
    float low = x[0], high = x[0];
    for (int i = 1; i < s->n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    low = low > 0 ? 0 : low;
    *min = -low;
    clear(codes, s->n);
    if (!(high > low)) return 0;
    const float k = (float)s->N / (high - low);
    float scale = 1 / k;
    codes_from(s, x, k, low, codes);
    float best = error_minimum(s, x, w, codes, scale, low);
    for (int step = 0; step <= s->n_steps; step++) {
        uint8_t trial[32];
        float trial_scale, trial_low;
        codes_from(s, x, (s->first + s->step * (float)step + (float)s->N) / (high - low), low, trial);
        if (!fit_line(s, x, w, trial, &trial_scale, &trial_low)) continue;
        const float error = error_minimum(s, x, w, trial, trial_scale, trial_low);
        if (!(error < best)) continue;
        memcpy(codes, trial, (size_t)s->n);
        best = error;
        scale = trial_scale;
        low = trial_low; /* later trials start from the better minimum; `high` stays */
    }
    *min = -low;
    return scale;
}
