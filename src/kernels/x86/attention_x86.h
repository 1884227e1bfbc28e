/* kernels/x86/attention_x86.h - scores of queries with tiles of K, and weighted sums of V rows. Meaning and layouts: ops.def.
 *
 * A template over the words of lanes_avx512.h or lanes_avx2.h. A block of up to 6 queries x n_wide vectors (tiles of 16 positions for K, 16 channels
 * for V) keeps its sums in registers. K tiles, or chunks of V rows, stay in L1 while all queries pass over them. Few queries belong to
 * one token, whose keys come from memory: tile by tile, as four at once would be read at four places in turn. */

enum { v_chunk = 64, max_vectors = 4, few_queries = 8 };

typedef lanes (*load_vector_fn)(const uint8_t *p, int64_t i);

/* Vector i (16 elements) of an array. */
PN_INLINE lanes vector_f32(const uint8_t *p, int64_t i) { return l_load((const void *)(p + i * 64)); }
PN_INLINE lanes vector_f16(const uint8_t *p, int64_t i) { return l_load_f16(p + i * 32); }
PN_INLINE lanes vector_i8(const uint8_t *p, int64_t i) { return l_load_i8(p + i * 16); }
/* Vector i of a row of q8_0 blocks: code * scale, rounded. */
PN_INLINE lanes vector_q8_0(const uint8_t *row, int64_t i)
{
    const uint8_t *block = row + i / 2 * 34;
    uint16_t half;
    memcpy(&half, block, 2);
    return l_mul(l_load_i8(block + 2 + i % 2 * 16), l_set(_cvtsh_ss(half)));
}

/* One block of n queries x n_t tiles, or n queries x n_v vectors of channels, starting at what the struct says. */
typedef struct scores_at {
    float *scores;
    int64_t ld;
    const uint8_t *k;
    size_t tile_bytes;
    const float *const *q;
    int d;
} scores_at;
typedef void (*scores_fn)(int n, int n_t, load_vector_fn load, const scores_at *at);

/* sums[i*n_t + t] over n_d channels from c0 on; `k` holds them. */
PN_INLINE void dot_channels(int n, int n_t, load_vector_fn load, lanes *sums, const scores_at *at, const uint8_t *k, int c0, int n_d)
{
    PN_UNROLL for (int i = 0; i < n * n_t; i++) sums[i] = l_set(0);
    for (int c = 0; c < n_d; c++) {
        lanes kv[max_vectors];
        PN_UNROLL for (int t = 0; t < n_t; t++) kv[t] = load(k + (size_t)t * at->tile_bytes, c);
        PN_UNROLL for (int i = 0; i < n; i++)
        {
            const lanes qv = l_set(at->q[i][c0 + c]);
            PN_UNROLL for (int t = 0; t < n_t; t++) sums[i * n_t + t] = l_fma(qv, kv[t], sums[i * n_t + t]);
        }
    }
}

PN_INLINE void scores_float(int n, int n_t, load_vector_fn load, const scores_at *at)
{
    lanes acc[6 * max_vectors];
    dot_channels(n, n_t, load, acc, at, at->k, 0, at->d);
    PN_UNROLL for (int i = 0; i < n; i++)
    {
        PN_UNROLL for (int t = 0; t < n_t; t++) l_store(at->scores + i * at->ld + t * 16, acc[i * n_t + t]);
    }
}

/* Per 32 channels: 16 scales, then codes; the block's sum starts at +0 and meets the scale once. The running sums stay in `scores`. */
PN_INLINE void scores_blocks(int n, int n_t, load_vector_fn load, const scores_at *at)
{
    const uint8_t *k = at->k;
    for (int c = 0; c < at->d; c += 32, k += 32 + 32 * 16) {
        lanes u[6 * max_vectors];
        dot_channels(n, n_t, load, u, at, k + 32, c, 32);
        PN_UNROLL for (int t = 0; t < n_t; t++)
        {
            const lanes scales = l_load_f16(k + (size_t)t * at->tile_bytes);
            PN_UNROLL for (int i = 0; i < n; i++)
            {
                float *sum = at->scores + i * at->ld + t * 16;
                l_store(sum, l_fma(u[i * n_t + t], scales, c ? l_load(sum) : l_set(0)));
            }
        }
    }
}

/* All queries with n_t tiles: blocks of 6, then 4, then what is left. */
PN_INLINE void scores_of_queries(int n_t, scores_fn block, load_vector_fn load, scores_at at, int n_q)
{
    const int wide = n_t > n_wide ? n_wide : n_t; /* tiles beside more than 2 queries */
    while (n_q > 0) {
        const int n = n_q >= 6 ? 6 : n_q >= 4 ? 4 : n_q;
        scores_at part = at;
        if (n == 1) block(1, n_t, load, &at);
        for (int t = 0; n > 1 && t < n_t; t += wide, part.scores += wide * 16, part.k += (size_t)wide * at.tile_bytes) {
            if (n == 6) block(6, wide, load, &part);
            else if (n == 4) block(4, wide, load, &part);
            else if (n == 3) block(3, wide, load, &part);
            else block(2, wide, load, &part);
        }
        at.scores += n * at.ld;
        at.q += n;
        n_q -= n;
    }
}

PN_INLINE void qk(scores_fn block, load_vector_fn load, scores_at at, int64_t n_tiles, int n_q)
{
    int64_t t = 0;
    for (; n_q > few_queries && t + max_vectors <= n_tiles; t += max_vectors, at.k += max_vectors * at.tile_bytes, at.scores += max_vectors * 16)
        scores_of_queries(max_vectors, block, load, at, n_q);
    for (; t < n_tiles; t++, at.k += at.tile_bytes, at.scores += 16) scores_of_queries(1, block, load, at, n_q);
}

static void qk_f32(float *scores, int64_t ld, const void *k, size_t tile_bytes, int64_t n_tiles, const float *const *q, int n_q, int d)
{
    qk(scores_float, vector_f32, (scores_at){scores, ld, k, tile_bytes, q, d}, n_tiles, n_q);
}
static void qk_f16(float *scores, int64_t ld, const void *k, size_t tile_bytes, int64_t n_tiles, const float *const *q, int n_q, int d)
{
    qk(scores_float, vector_f16, (scores_at){scores, ld, k, tile_bytes, q, d}, n_tiles, n_q);
}
static void qk_q8_0(float *scores, int64_t ld, const void *k, size_t tile_bytes, int64_t n_tiles, const float *const *q, int n_q, int d)
{
    qk(scores_blocks, vector_i8, (scores_at){scores, ld, k, tile_bytes, q, d}, n_tiles, n_q);
}

/* ---- weighted sums ---- */

typedef struct weigh_at {
    float *const *o;
    const float *p; /* of the first query and row */
    int64_t ld;
    const uint8_t *v;
    size_t row_bytes;
    int64_t n_rows;
    int c; /* first channel */
} weigh_at;

/* o[i][c + 16 l ..] += p[i*ld + j] * V_j, rows ascending. */
PN_INLINE void weigh(int n, int n_v, load_vector_fn load, const weigh_at *at)
{
    lanes acc[6 * max_vectors];
    PN_UNROLL for (int i = 0; i < n; i++)
    {
        PN_UNROLL for (int l = 0; l < n_v; l++) acc[i * n_v + l] = l_load(at->o[i] + at->c + l * 16);
    }
    const uint8_t *v = at->v;
    for (int64_t j = 0; j < at->n_rows; j++, v += at->row_bytes) {
        lanes vv[max_vectors];
        PN_UNROLL for (int l = 0; l < n_v; l++) vv[l] = load(v, at->c / 16 + l);
        PN_UNROLL for (int i = 0; i < n; i++)
        {
            const lanes weight = l_set(at->p[i * at->ld + j]);
            PN_UNROLL for (int l = 0; l < n_v; l++) acc[i * n_v + l] = l_fma(weight, vv[l], acc[i * n_v + l]);
        }
    }
    PN_UNROLL for (int i = 0; i < n; i++)
    {
        PN_UNROLL for (int l = 0; l < n_v; l++) l_store(at->o[i] + at->c + l * 16, acc[i * n_v + l]);
    }
}

/* All queries with n_v vectors of channels. */
PN_INLINE void weigh_queries(int n_v, load_vector_fn load, weigh_at at, int n_q)
{
    const int wide = n_v > n_wide ? n_wide : n_v;
    while (n_q > 0) {
        const int n = n_q >= 6 ? 6 : n_q >= 4 ? 4 : n_q;
        weigh_at part = at;
        if (n == 1) weigh(1, n_v, load, &at);
        for (int l = 0; n > 1 && l < n_v; l += wide, part.c += wide * 16) {
            if (n == 6) weigh(6, wide, load, &part);
            else if (n == 4) weigh(4, wide, load, &part);
            else if (n == 3) weigh(3, wide, load, &part);
            else weigh(2, wide, load, &part);
        }
        at.o += n;
        at.p += n * at.ld;
        n_q -= n;
    }
}

/* Channels beyond the last multiple of 16, of f32 or f16 rows. */
static void weigh_rest(const weigh_at *at, int n_q, int d, bool half)
{
    const int64_t left = d - at->c;
    const lanes_part m = l_first(left);
    for (int i = 0; i < n_q; i++) {
        lanes acc = l_load_part(at->o[i] + at->c, m);
        const uint8_t *v = at->v;
        for (int64_t j = 0; j < at->n_rows; j++, v += at->row_bytes) {
            const lanes row = half ? l_load_f16_first(v + 2 * at->c, left) : l_load_part((const float *)(const void *)(v + 4 * at->c), m);
            acc = l_fma(l_set(at->p[i * at->ld + j]), row, acc);
        }
        l_store_part(at->o[i] + at->c, m, acc);
    }
}

PN_INLINE void pv(load_vector_fn load, weigh_at at, int64_t n_pos, int n_q, int d, bool half)
{
    for (int64_t j = 0; j < n_pos; j += v_chunk, at.p += v_chunk, at.v += v_chunk * at.row_bytes) {
        at.n_rows = pn_min64(v_chunk, n_pos - j);
        at.c = 0;
        for (; at.c + 16 * max_vectors <= d; at.c += 16 * max_vectors) weigh_queries(max_vectors, load, at, n_q);
        for (; at.c + 16 <= d; at.c += 16) weigh_queries(1, load, at, n_q);
        if (at.c < d) weigh_rest(&at, n_q, d, half);
    }
}

static void pv_f32(float *const *o, const float *p, int64_t ld, const void *v, size_t row_bytes, int64_t n_pos, int n_q, int d)
{
    pv(vector_f32, (weigh_at){.o = o, .p = p, .ld = ld, .v = v, .row_bytes = row_bytes}, n_pos, n_q, d, false);
}
static void pv_f16(float *const *o, const float *p, int64_t ld, const void *v, size_t row_bytes, int64_t n_pos, int n_q, int d)
{
    pv(vector_f16, (weigh_at){.o = o, .p = p, .ld = ld, .v = v, .row_bytes = row_bytes}, n_pos, n_q, d, true);
}
/* d is a multiple of 32: nothing is left over. */
static void pv_q8_0(float *const *o, const float *p, int64_t ld, const void *v, size_t row_bytes, int64_t n_pos, int n_q, int d)
{
    pv(vector_q8_0, (weigh_at){.o = o, .p = p, .ld = ld, .v = v, .row_bytes = row_bytes}, n_pos, n_q, d, true);
}

/* ---- a tile of K as rows ---- */

/* t: 16 channels of 16 positions each, to channels 0..15 of 16 rows. Long code: once for all types. */
static __attribute__((noinline)) void turn(float *y, int64_t ld, const float *t)
{
    PN_UNROLL for (int p = 0; p < 16; p += 4)
    {
        PN_UNROLL for (int c = 0; c < 16; c += 4)
        {
            __m128 a = _mm_loadu_ps(t + c * 16 + p), b = _mm_loadu_ps(t + (c + 1) * 16 + p), e = _mm_loadu_ps(t + (c + 2) * 16 + p), f = _mm_loadu_ps(t + (c + 3) * 16 + p);
            _MM_TRANSPOSE4_PS(a, b, e, f);
            _mm_storeu_ps(y + p * ld + c, a);
            _mm_storeu_ps(y + (p + 1) * ld + c, b);
            _mm_storeu_ps(y + (p + 2) * ld + c, e);
            _mm_storeu_ps(y + (p + 3) * ld + c, f);
        }
    }
}

/* A tile's channel c: its 16 positions. */
typedef lanes (*channel_fn)(const uint8_t *k, int c);
PN_INLINE lanes channel_f32(const uint8_t *k, int c) { return vector_f32(k, c); }
PN_INLINE lanes channel_f16(const uint8_t *k, int c) { return vector_f16(k, c); }
PN_INLINE lanes channel_q8_0(const uint8_t *k, int c)
{
    const uint8_t *block = k + (size_t)(c / 32) * 34 * 16;
    return l_mul(l_load_i8(block + 32 + c % 32 * 16), l_load_f16(block));
}

PN_INLINE void k_rows(channel_fn channel, float *y, int64_t ld, const uint8_t *k, int d)
{
    float t[16 * 16];
    for (int c = 0; c < d; c += 16) {
        const int n = d - c < 16 ? d - c : 16;
        for (int i = 0; i < n; i++) l_store(t + i * 16, channel(k, c + i));
        if (n == 16) turn(y + c, ld, t);
        for (int p = 0; n < 16 && p < 16; p++)
            for (int i = 0; i < n; i++) y[p * ld + c + i] = t[i * 16 + p];
    }
}

static void k_rows_f32(float *y, int64_t ld, const void *k, int d) { k_rows(channel_f32, y, ld, k, d); }
static void k_rows_f16(float *y, int64_t ld, const void *k, int d) { k_rows(channel_f16, y, ld, k, d); }
static void k_rows_q8_0(float *y, int64_t ld, const void *k, int d) { k_rows(channel_q8_0, y, ld, k, d); }
