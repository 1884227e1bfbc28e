/* kernels/neon/nibbles_neon.h - the tiles of 4- and 5-bit formats with one scale per 32 columns, on cores without sdot. A packed block of
 * 8 rows x 32 columns: 8 half minima (Q4_1 only), 8 half scales, then the codes of half 0 and of half 1.
 *
 *   Q4_0   16 bytes a row, nibbles in two's complement: low ones are columns 0..15
 *   Q4_1   the same, nibbles are codes 0..15
 *   Q5_0   5 vectors for 4 rows: see nibbles_unpack_5
 *   MXFP4  as Q4_0, but nibbles are codes 0..15 that are looked up, and scales upper halves of floats
 *
 * `form` is a constant in every function here. */
#ifndef PN_NEON_NIBBLES_NEON_H
#define PN_NEON_NIBBLES_NEON_H

#include "kernels/neon/mxfp4.h"
#include "kernels/neon/rows.h"

typedef enum nibbles_form { NIBBLES_Q4_0, NIBBLES_Q4_1, NIBBLES_Q5_0, NIBBLES_MXFP4 } nibbles_form;

static inline int64_t nibbles_codes(nibbles_form form) { return form == NIBBLES_Q4_1 ? 32 : 16; }
static inline int64_t nibbles_half_bytes(nibbles_form form) { return form == NIBBLES_Q5_0 ? 80 : 64; }
static inline int64_t nibbles_bytes(nibbles_form form) { return nibbles_codes(form) + 2 * nibbles_half_bytes(form); }

/* 4 rows x 32 columns of 5-bit codes from 5 vectors: five codes stand in bits 3-7 of the vectors r[0..4]; three have their top three bits in
 * bits 0-2 of r[0], r[1], r[2] and the other two in bits 1-2 of r[3], in bits 1-2 of r[4], and in bit 0 of r[3] and of r[4]. */
#define NIBBLES_UNPACK_5(lo, hi, p)       \
    do {                                  \
        V_LDR((lo)[0], p, 0);             \
        V_LDR((lo)[1], p, 16);            \
        V_LDR((lo)[2], p, 32);            \
        V_LDR((lo)[3], p, 48);            \
        V_LDR((hi)[0], p, 64);            \
        V_SHL((hi)[1], (lo)[3], 2);       \
        V_SHL((hi)[2], (hi)[0], 2);       \
        V_SHL((hi)[3], (hi)[0], 3);       \
        V_SLI((hi)[1], (lo)[0], 5);       \
        V_SLI((hi)[3], (lo)[3], 4);       \
        V_SLI((hi)[2], (lo)[1], 5);       \
        V_SSHR((lo)[0], (lo)[0], 3);      \
        V_SLI((hi)[3], (lo)[2], 5);       \
        V_SSHR((lo)[1], (lo)[1], 3);      \
        V_SSHR((hi)[1], (hi)[1], 3);      \
        V_SSHR((lo)[2], (lo)[2], 3);      \
        V_SSHR((hi)[2], (hi)[2], 3);      \
        V_SSHR((lo)[3], (lo)[3], 3);      \
        V_SSHR((hi)[3], (hi)[3], 3);      \
        V_SSHR((hi)[0], (hi)[0], 3);      \
    } while (0)

static inline void nibbles_pack_5(uint8_t *dst, const pn_codes row[4])
{
    for (int i = 0; i < 16; i++) {
        unsigned lo[4], hi[4];
        for (int r = 0; r < 4; r++) {
            lo[r] = (unsigned)row[r].w[i] & 31u;
            hi[r] = (unsigned)row[r].w[16 + i] & 31u;
        }
        for (int r = 0; r < 3; r++) dst[16 * r + i] = (uint8_t)(lo[r] << 3 | hi[r + 1] >> 2);
        dst[48 + i] = (uint8_t)(lo[3] << 3 | (hi[1] & 3u) << 1 | (hi[3] >> 1 & 1u));
        dst[64 + i] = (uint8_t)(hi[0] << 3 | (hi[2] & 3u) << 1 | (hi[3] & 1u));
    }
}

static inline void nibbles_pack(uint8_t *dst, const tile_codes *t, nibbles_form form)
{
    if (form == NIBBLES_Q4_1) memcpy(dst, t->m, 16);
    dst += nibbles_codes(form);
    memcpy(dst - 16, t->d, 16);
    if (form != NIBBLES_Q5_0) rows_pack_nibbles(dst, t);
    else for (int h = 0; h < 2; h++) nibbles_pack_5(dst + 80 * h, t->row + 4 * h);
}

#define NIBBLES_LOW(d, raw)                            \
    do {                                               \
        if (form == NIBBLES_Q4_0) V_SHL(d, raw, 4);    \
        else V_AND(d, raw, mask);                      \
    } while (0)
#define NIBBLES_UNPACK(lo, hi, p)                                                              \
    do {                                                                                       \
        if (form == NIBBLES_Q5_0) NIBBLES_UNPACK_5(lo, hi, p);                                 \
        else if (form != NIBBLES_Q4_0) ROWS_UNPACK_NIBBLES(NIBBLES_LOW, V_USHR, lo, hi, p, 0);  \
        else {                                                                                 \
            ROWS_UNPACK_NIBBLES(NIBBLES_LOW, V_SSHR, lo, hi, p, 0);                             \
            V_SSHR((lo)[0], (lo)[0], 4);                                                       \
            V_SSHR((lo)[1], (lo)[1], 4);                                                       \
            V_SSHR((lo)[2], (lo)[2], 4);                                                       \
            V_SSHR((lo)[3], (lo)[3], 4);                                                       \
        }                                                                                      \
        if (form == NIBBLES_MXFP4) {                                                           \
            V_TBL((lo)[0], values, (lo)[0]);                                                   \
            V_TBL((lo)[1], values, (lo)[1]);                                                   \
            V_TBL((lo)[2], values, (lo)[2]);                                                   \
            V_TBL((lo)[3], values, (lo)[3]);                                                   \
            V_TBL((hi)[0], values, (hi)[0]);                                                   \
            V_TBL((hi)[1], values, (hi)[1]);                                                   \
            V_TBL((hi)[2], values, (hi)[2]);                                                   \
            V_TBL((hi)[3], values, (hi)[3]);                                                   \
        }                                                                                      \
    } while (0)

#define NIBBLES_SCALES(d, w, off)           \
    do {                            \
        uint8x16_t halves;          \
        V_LDR(halves, w, off);      \
        if (form == NIBBLES_MXFP4) V_SHLL((d)[0], halves); \
        else V_FCVTL((d)[0], halves);    \
        if (form == NIBBLES_MXFP4) V_SHLL2((d)[1], halves); \
        else V_FCVTL2((d)[1], halves);   \
    } while (0)

static inline __attribute__((always_inline)) void nibbles_tile_1(const uint8_t *w, const uint8_t *x, int64_t k, float *y, nibbles_form form)
{
    const uint8x16_t mask = vdupq_n_u8(15), values = vreinterpretq_u8_s8(vld1q_s8(mxfp4_doubled));
    uint8x16_t lo[4], hi[4], lo2[4], hi2[4], x0, x1;
    ROWS_VARIABLES(int16x8_t);
    float32x4_t y0 = vdupq_n_f32(0), y1 = y0, d[2], xs;
    w += nibbles_codes(form);
    (void)mask, (void)values; /* Q4_1 and MXFP4 need it, MXFP4 the other */
    for (int64_t b = 0; b < k / 32; b++, w += nibbles_bytes(form), x += sizeof(pn_act32)) {
        NIBBLES_UNPACK(lo, hi, w);
        NIBBLES_UNPACK(lo2, hi2, w + nibbles_half_bytes(form));
        V_LDR(x0, x, 0);
        V_LDR(x1, x, 16);
        ROWS_DOT_32(t, lo, hi, x0, x1, u, lo2, hi2, x0, x1);
        NIBBLES_SCALES(d, w, -16);
        ROWS_JOIN(t, u);
        ROWS_SCALE(y0, t, d[0], x, y1, u, d[1], x);
        if (form == NIBBLES_Q4_1) {
            NIBBLES_SCALES(d, w, -32);
            V_LDR_S(xs, x, 36);
            V_FMLA_LANE(y0, d[0], xs, 0);
            V_FMLA_LANE(y1, d[1], xs, 0);
        }
    }
    vst1q_f32(y, y0);
    vst1q_f32(y + 4, y1);
}

/* Columns c and c + 1 of a half. */
#define NIBBLES_COLUMNS_2(h, c)                                                                                      \
    do {                                                                                                     \
        V_LDR(x0, row[c], 0);                                                                                \
        V_LDR(z0, row[(c) + 1], 0);                                                                          \
        V_LDR(x1, row[c], 16);                                                                               \
        V_LDR(z1, row[(c) + 1], 16);                                                                         \
        ROWS_DOT_32(t, lo, hi, x0, x1, u, lo, hi, z0, z1);                                                   \
        ROWS_JOIN(t, u);                                                                                     \
        ROWS_SCALE(y[2 * (c) + (h)], t, d[h], row[c], y[2 * (c) + 2 + (h)], u, d[h], row[(c) + 1]);            \
    } while (0)

static inline __attribute__((always_inline)) void nibbles_tile_4(const uint8_t *w, const uint8_t *const x[TILE_COLS], int64_t k, float *out, nibbles_form form)
{
    const uint8x16_t mask = vdupq_n_u8(15), values = vreinterpretq_u8_s8(vld1q_s8(mxfp4_doubled));
    uint8x16_t lo[4], hi[4], x0, x1, z0, z1;
    ROWS_VARIABLES(int16x8_t);
    float32x4_t y[8], d[2], xs;
    const uint8_t *row[4] = {x[0], x[1], x[2], x[3]};
    for (int j = 0; j < 8; j++) y[j] = vdupq_n_f32(0);
    w += nibbles_codes(form);
    (void)mask, (void)values; /* Q4_1 and MXFP4 need it, MXFP4 the other */
    for (int64_t b = 0; b < k / 32; b++, w += nibbles_bytes(form)) {
        NIBBLES_SCALES(d, w, -16);
        NIBBLES_UNPACK(lo, hi, w);
        NIBBLES_COLUMNS_2(0, 0);
        NIBBLES_COLUMNS_2(0, 2);
        NIBBLES_UNPACK(lo, hi, w + nibbles_half_bytes(form));
        NIBBLES_COLUMNS_2(1, 0);
        NIBBLES_COLUMNS_2(1, 2);
        if (form == NIBBLES_Q4_1) {
            NIBBLES_SCALES(d, w, -32);
            for (int c = 0; c < 4; c++) {
                V_LDR_S(xs, row[c], 36);
                V_FMLA_LANE(y[2 * c], d[0], xs, 0);
                V_FMLA_LANE(y[2 * c + 1], d[1], xs, 0);
            }
        }
        for (int c = 0; c < 4; c++) row[c] += sizeof(pn_act32);
    }
    for (int j = 0; j < 8; j++) vst1q_f32(out + 4 * j, y[j]);
}

#endif
