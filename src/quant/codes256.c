/* quant/codes256.c - super-blocks of 256 weights as integers and scales (docs/FORMATS.md, "Super-blocks").
 *
 * Nothing here can index outside a block or a grid: codes are masked to their width. */
#include "quant/codes.h"
#include "quant/iq_tables.h"

static void no_minimum(pn_codes *c, float unit)
{
    memset(c->min, 0, sizeof c->min);
    c->dmin = 0;
    c->unit = unit;
}

/* Two bits of element i: 32 bytes for each half, a pair of bits for each 32 of its elements. */
static int two_bits(const uint8_t *q, int i) { return q[32 * (i / 128) + i % 32] >> (i / 32 % 4 * 2) & 3; }
/* Four bits of element i: 32 bytes for each 64 elements, low nibbles first. */
static int four_bits(const uint8_t *q, int i) { return q[32 * (i / 64) + i % 32] >> (i / 32 % 2 * 4) & 15; }

void pn_codes_q2_k(pn_codes *c, const uint8_t *block)
{
    c->d = pn_load_f16(block + 80);
    c->unit = 1;
    c->dmin = pn_load_f16(block + 82);
    for (int j = 0; j < 16; j++) {
        c->scale[j] = block[j] & 15;
        c->min[j] = block[j] >> 4;
    }
    for (int i = 0; i < 256; i++) c->w[i] = (int8_t)two_bits(block + 16, i);
}

void pn_codes_q3_k(pn_codes *c, const uint8_t *block)
{
    const uint8_t *high = block, *low = block + 32, *scales = block + 96;
    no_minimum(c, 1);
    c->d = pn_load_f16(block + 108);
    for (int j = 0; j < 16; j++) {
        const int bits4 = j < 8 ? scales[j] & 15 : scales[j - 8] >> 4;
        const int bits2 = scales[8 + j % 4] >> (j / 4 * 2) & 3;
        c->scale[j] = (int16_t)((bits4 | bits2 << 4) - 32);
    }
    for (int i = 0; i < 256; i++) c->w[i] = (int8_t)(two_bits(low, i) - ((high[i % 32] >> i / 32 & 1) ? 0 : 4));
}

/* Scales and minima of q4_k and q5_k: eight of 6 bits each in 12 bytes. */
static void six_bit_pairs(pn_codes *c, const uint8_t *p)
{
    for (int j = 0; j < 8; j++) {
        const int scale = j < 4 ? p[j] & 63 : (p[j + 4] & 15) | p[j - 4] >> 6 << 4;
        const int min = j < 4 ? p[j + 4] & 63 : p[j + 4] >> 4 | p[j] >> 6 << 4;
        c->scale[2 * j] = c->scale[2 * j + 1] = (int16_t)scale;
        c->min[2 * j] = c->min[2 * j + 1] = (int16_t)min;
    }
}

void pn_codes_q4_k(pn_codes *c, const uint8_t *block)
{
    c->d = pn_load_f16(block);
    c->unit = 1;
    c->dmin = pn_load_f16(block + 2);
    six_bit_pairs(c, block + 4);
    for (int i = 0; i < 256; i++) c->w[i] = (int8_t)four_bits(block + 16, i);
}

void pn_codes_q5_k(pn_codes *c, const uint8_t *block)
{
    c->d = pn_load_f16(block);
    c->unit = 1;
    c->dmin = pn_load_f16(block + 2);
    six_bit_pairs(c, block + 4);
    for (int i = 0; i < 256; i++) c->w[i] = (int8_t)(four_bits(block + 48, i) | (block[16 + i % 32] >> i / 32 & 1) << 4);
}

void pn_codes_q6_k(pn_codes *c, const uint8_t *block)
{
    const uint8_t *low = block, *high = block + 128;
    no_minimum(c, 1);
    c->d = pn_load_f16(block + 208);
    for (int j = 0; j < 16; j++) c->scale[j] = (int8_t)block[192 + j];
    for (int i = 0; i < 256; i++) {
        const int quarter = i / 32 % 4;
        const int bits4 = low[64 * (i / 128) + 32 * (quarter % 2) + i % 32] >> quarter / 2 * 4 & 15;
        c->w[i] = (int8_t)((bits4 | two_bits(high, i) << 4) - 32);
    }
}

void pn_codes_iq4_xs(pn_codes *c, const uint8_t *block)
{
    const uint32_t high = pn_load_u16(block + 2);
    no_minimum(c, 1);
    c->d = pn_load_f16(block);
    for (int j = 0; j < 8; j++) {
        const int bits4 = block[4 + j / 2] >> j % 2 * 4 & 15, bits2 = (int)(high >> 2 * j & 3u);
        c->scale[2 * j] = c->scale[2 * j + 1] = (int16_t)((bits4 | bits2 << 4) - 32);
    }
    for (int i = 0; i < 256; i++) c->w[i] = pn_iq4nl_values[block[8 + 16 * (i / 32) + i % 16] >> i / 16 % 2 * 4 & 15];
}

static void unit_scales(pn_codes *c, float d)
{
    no_minimum(c, 1);
    c->d = d;
    for (int j = 0; j < 16; j++) c->scale[j] = 1;
}

/* Digit n (0..4, most significant first) of a byte that holds five ternary digits as a fraction of 256. */
static int trit(uint8_t byte, int n)
{
    static const uint8_t power[5] = {1, 3, 9, 27, 81};
    return (uint8_t)(byte * power[n]) * 3 >> 8;
}

void pn_codes_tq1_0(pn_codes *c, const uint8_t *block)
{
    unit_scales(c, pn_load_f16(block + 52));
    for (int i = 0; i < 160; i++) c->w[i] = (int8_t)(trit(block[i % 32], i / 32) - 1);
    for (int i = 0; i < 80; i++) c->w[160 + i] = (int8_t)(trit(block[32 + i % 16], i / 16) - 1);
    for (int i = 0; i < 16; i++) c->w[240 + i] = (int8_t)(trit(block[48 + i % 4], i / 4) - 1);
}

void pn_codes_tq2_0(pn_codes *c, const uint8_t *block)
{
    unit_scales(c, pn_load_f16(block + 64));
    for (int i = 0; i < 256; i++) c->w[i] = (int8_t)(two_bits(block, i) - 1);
}

/* ---- grids: parts of eight weights, their signs in eight bits ---- */

/* Signs of iq2_xxs, iq2_xs and iq3_xxs: seven bits, and an eighth that makes their number even. */
static uint32_t even_signs(uint32_t seven)
{
    seven &= 127;
    return seven | (uint32_t)(__builtin_popcount(seven) & 1) << 7;
}

static int8_t with_sign(int value, uint32_t signs, int e) { return (int8_t)((signs >> e & 1u) ? -value : value); }

static void put_grid2(int8_t *w, uint32_t entry, uint32_t signs)
{
    static const int8_t values[4] = {8, 25, 43, 0}; /* digit 3 is in no grid */
    for (int e = 0; e < 8; e++) w[e] = with_sign(values[entry >> 2 * e & 3u], signs, e);
}

/* Two entries of four weights. */
static void put_grid3(int8_t *w, const int8_t values[8], uint32_t first, uint32_t second, uint32_t signs)
{
    const uint32_t entry = first | second << 12;
    for (int e = 0; e < 8; e++) w[e] = with_sign(values[entry >> 3 * e & 7u], signs, e);
}

/* Multiplier 2s + 1 of the 32 weights of group j, or of its halves. */
static void group_scale(pn_codes *c, int j, uint32_t first, uint32_t second)
{
    c->scale[2 * j] = (int16_t)(2 * first + 1);
    c->scale[2 * j + 1] = (int16_t)(2 * second + 1);
}

void pn_codes_iq2_xxs(pn_codes *c, const uint8_t *block)
{
    no_minimum(c, 0.125f);
    c->d = pn_load_f16(block);
    for (int j = 0; j < 8; j++) {
        const uint8_t *q = block + 2 + 8 * j;
        const uint32_t a = pn_load_u32(q + 4);
        group_scale(c, j, a >> 28, a >> 28);
        for (int l = 0; l < 4; l++) put_grid2(c->w + 32 * j + 8 * l, pn_iq2xxs[q[l]], even_signs(a >> 7 * l));
    }
}

void pn_codes_iq2_xs(pn_codes *c, const uint8_t *block)
{
    no_minimum(c, 0.125f);
    c->d = pn_load_f16(block);
    for (int j = 0; j < 8; j++) {
        group_scale(c, j, block[66 + j] & 15u, block[66 + j] >> 4);
        for (int l = 0; l < 4; l++) {
            const uint32_t code = pn_load_u16(block + 2 + 8 * j + 2 * l);
            put_grid2(c->w + 32 * j + 8 * l, pn_iq2xs[code & 511u], even_signs(code >> 9));
        }
    }
}

void pn_codes_iq2_s(pn_codes *c, const uint8_t *block)
{
    const uint8_t *low = block + 2, *signs = block + 34, *high = block + 66;
    no_minimum(c, 0.125f);
    c->d = pn_load_f16(block);
    for (int j = 0; j < 8; j++) {
        group_scale(c, j, block[74 + j] & 15u, block[74 + j] >> 4);
        for (int l = 0; l < 4; l++) {
            const uint32_t code = low[4 * j + l] | (high[j] >> 2 * l & 3u) << 8;
            put_grid2(c->w + 32 * j + 8 * l, pn_iq2s[code], signs[4 * j + l]);
        }
    }
}

void pn_codes_iq3_xxs(pn_codes *c, const uint8_t *block)
{
    static const int8_t values[8] = {4, 12, 20, 28, 36, 44, 52, 62};
    no_minimum(c, 0.25f);
    c->d = pn_load_f16(block);
    for (int j = 0; j < 8; j++) {
        const uint8_t *q = block + 2 + 8 * j;
        const uint32_t a = pn_load_u32(block + 66 + 4 * j);
        group_scale(c, j, a >> 28, a >> 28);
        for (int l = 0; l < 4; l++)
            put_grid3(c->w + 32 * j + 8 * l, values, pn_iq3xxs[q[2 * l]], pn_iq3xxs[q[2 * l + 1]], even_signs(a >> 7 * l));
    }
}

void pn_codes_iq3_s(pn_codes *c, const uint8_t *block)
{
    static const int8_t values[8] = {1, 3, 5, 7, 9, 11, 13, 15};
    const uint8_t *high = block + 66, *signs = block + 74, *scales = block + 106;
    no_minimum(c, 1);
    c->d = pn_load_f16(block);
    for (int j = 0; j < 8; j++) {
        const uint8_t *q = block + 2 + 8 * j;
        const uint32_t scale = scales[j / 2] >> j % 2 * 4 & 15u;
        group_scale(c, j, scale, scale);
        for (int l = 0; l < 4; l++) {
            const uint32_t first = q[2 * l] | (high[j] >> 2 * l & 1u) << 8;
            const uint32_t second = q[2 * l + 1] | (high[j] >> (2 * l + 1) & 1u) << 8;
            put_grid3(c->w + 32 * j + 8 * l, values, pn_iq3s[first], pn_iq3s[second], signs[4 * j + l]);
        }
    }
}

/* Eight weights g +- 1/8, eightfold. */
static void put_grid1(int8_t *w, uint32_t entry, bool minus)
{
    for (int e = 0; e < 8; e++) w[e] = (int8_t)(8 * ((int)(entry >> 2 * e & 3u) - 1) + (minus ? -1 : 1));
}

void pn_codes_iq1_s(pn_codes *c, const uint8_t *block)
{
    no_minimum(c, 0.125f);
    c->d = pn_load_f16(block);
    for (int j = 0; j < 8; j++) {
        const uint32_t h = pn_load_u16(block + 34 + 2 * j);
        group_scale(c, j, h >> 12 & 7u, h >> 12 & 7u);
        for (int l = 0; l < 4; l++) {
            const uint32_t code = block[2 + 4 * j + l] | (h >> 3 * l & 7u) << 8;
            put_grid1(c->w + 32 * j + 8 * l, pn_iq1s[code], h >> 15);
        }
    }
}

void pn_codes_iq1_m(pn_codes *c, const uint8_t *block)
{
    const uint8_t *low = block, *high = block + 32, *scales = block + 48;
    uint32_t d = 0;
    no_minimum(c, 0.125f);
    for (int i = 0; i < 4; i++) d |= (uint32_t)(pn_load_u16(scales + 2 * i) >> 12) << 4 * i;
    c->d = pn_f16_to_f32((uint16_t)d);
    for (int j = 0; j < 8; j++) {
        const uint32_t s = pn_load_u16(scales + 2 * (j / 2)) >> j % 2 * 6;
        group_scale(c, j, s & 7u, s >> 3 & 7u);
        for (int l = 0; l < 4; l++) {
            const uint32_t n = high[2 * j + l / 2] >> l % 2 * 4 & 15u;
            put_grid1(c->w + 32 * j + 8 * l, pn_iq1s[low[4 * j + l] | (n & 7u) << 8], n >> 3);
        }
    }
}
