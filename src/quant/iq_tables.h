/* quant/iq_tables.h - the grids that codes of the IQ types point into, and the tables of 4-bit values. Written out by tools/iq_tables.py. */
#ifndef PN_IQ_TABLES_H
#define PN_IQ_TABLES_H

#include <stdint.h>

/* Eight digits of 2 bits per entry, element 0 lowest. Digits 0, 1, 2 stand for 8, 25, 43; in pn_iq1s for -1, 0, 1. */
extern const uint16_t pn_iq2xxs[256], pn_iq2xs[512], pn_iq2s[1024], pn_iq1s[2048];
/* Four digits of 3 bits per entry. Digits stand for 4, 12, 20, 28, 36, 44, 52, 62 in pn_iq3xxs, for 2*digit + 1 in pn_iq3s. */
extern const uint16_t pn_iq3xxs[256], pn_iq3s[512];
/* Values of the codes of iq4_nl and iq4_xs; of mxfp4 and nvfp4 (twice the E2M1 value). */
extern const int8_t pn_iq4nl_values[16], pn_mxfp4_values[16];

#endif
