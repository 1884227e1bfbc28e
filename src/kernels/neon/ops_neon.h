/* kernels/neon/ops_neon.h - the members of pn_ops_neon that live in files of their own. */
#ifndef PN_NEON_OPS_H
#define PN_NEON_OPS_H

#include "kernels/kernels.h"

void pn_neon_quantise_32(pn_act32 *dst, const float *x, int64_t n);
void pn_neon_quantise_256(pn_act256 *dst, const float *x, int64_t n);

typedef void pn_neon_qk_fn(float *scores, int64_t ld, const void *k, size_t tile_bytes, int64_t n_tiles, const float *const *q, int n_q, int d);
typedef void pn_neon_pv_fn(float *const *o, const float *p, int64_t ld, const void *v, size_t row_bytes, int64_t n_pos, int n_q, int d);
pn_neon_qk_fn pn_neon_qk_f32, pn_neon_qk_f16, pn_neon_qk_q8_0;
pn_neon_pv_fn pn_neon_pv_f32, pn_neon_pv_f16, pn_neon_pv_q8_0;

void pn_neon_exact(const pn_exact_mm *e, int64_t row0, int64_t row1, void *scratch);

#endif
