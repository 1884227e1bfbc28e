/* quant/codes32.c - blocks of 32, 64 and 128 weights as integers and scales (docs/FORMATS.md, "Blocks of 32").
 *
 * Nothing here can index outside a block: codes are masked to their width. */
#include "quant/codes.h"
#include "quant/iq_tables.h"

/* d for every 16 elements of a block with one scale. */
static void one_scale(pn_codes *c, float d)
{
    for (int i = 0; i < 8; i++) c->part[i] = d;
    c->m = -0.0f;
}

/* Element i of 32 is the low (i < 16) or high nibble of byte i % 16. */
static int nibble(const uint8_t *q, int i) { return q[i % 16] >> (i / 16 * 4) & 15; }

void pn_codes_q4_0(pn_codes *c, const uint8_t *block)
{
    one_scale(c, pn_load_f16(block));
    for (int i = 0; i < 32; i++) c->w[i] = (int8_t)(nibble(block + 2, i) - 8);
}

void pn_codes_q4_1(pn_codes *c, const uint8_t *block)
{
    one_scale(c, pn_load_f16(block));
    c->m = pn_load_f16(block + 2);
    for (int i = 0; i < 32; i++) c->w[i] = (int8_t)nibble(block + 4, i);
}

/* Five bits: a nibble and bit i of the word before the nibbles. */
static int five(const uint8_t *high, int i) { return nibble(high + 4, i) | (int)(pn_load_u32(high) >> i & 1u) << 4; }

void pn_codes_q5_0(pn_codes *c, const uint8_t *block)
{
    one_scale(c, pn_load_f16(block));
    for (int i = 0; i < 32; i++) c->w[i] = (int8_t)(five(block + 2, i) - 16);
}

void pn_codes_q5_1(pn_codes *c, const uint8_t *block)
{
    one_scale(c, pn_load_f16(block));
    c->m = pn_load_f16(block + 2);
    for (int i = 0; i < 32; i++) c->w[i] = (int8_t)five(block + 4, i);
}

void pn_codes_q8_0(pn_codes *c, const uint8_t *block)
{
    one_scale(c, pn_load_f16(block));
    memcpy(c->w, block + 2, 32);
}

void pn_codes_iq4_nl(pn_codes *c, const uint8_t *block)
{
    one_scale(c, pn_load_f16(block));
    for (int i = 0; i < 32; i++) c->w[i] = pn_iq4nl_values[nibble(block + 2, i)];
}

void pn_codes_mxfp4(pn_codes *c, const uint8_t *block)
{
    one_scale(c, pn_e8m0_half(block[0]));
    for (int i = 0; i < 32; i++) c->w[i] = pn_mxfp4_values[nibble(block + 1, i)];
}

/* Four parts of 16 weights, each of 8 bytes and a scale of its own. */
void pn_codes_nvfp4(pn_codes *c, const uint8_t *block)
{
    one_scale(c, 0);
    for (int part = 0; part < 4; part++) {
        const uint8_t *q = block + 4 + 8 * part;
        c->part[part] = pn_ue4m3_half(block[part]);
        for (int i = 0; i < 16; i++) c->w[16 * part + i] = pn_mxfp4_values[q[i % 8] >> (i / 8 * 4) & 15];
    }
}

void pn_codes_q1_0(pn_codes *c, const uint8_t *block)
{
    one_scale(c, pn_load_f16(block));
    for (int i = 0; i < 128; i++) c->w[i] = (block[2 + i / 8] >> i % 8 & 1) ? 1 : -1;
}

void pn_codes_q2_0(pn_codes *c, const uint8_t *block)
{
    one_scale(c, pn_load_f16(block));
    for (int i = 0; i < 64; i++) c->w[i] = (int8_t)((block[2 + i / 4] >> i % 4 * 2 & 3) - 1);
}
