/* kernels/x86/ops_avx512.h - parts of pn_ops_avx512vnni that have files of their own. Meaning: pn_ops in kernels.h. */
#ifndef PN_X86_OPS_AVX512_H
#define PN_X86_OPS_AVX512_H

#include "kernels/kernels.h"

void pn_avx512_quantise_32(pn_act32 *dst, const float *x, int64_t n);
void pn_avx512_quantise_256(pn_act256 *dst, const float *x, int64_t n);

#define PN_AVX512_ATTENTION(type)                                                                                                                    \
    void pn_avx512_qk_##type(float *scores, int64_t ld, const void *k, size_t tile_bytes, int64_t n_tiles, const float *const *q, int n_q, int d);    \
    void pn_avx512_pv_##type(float *const *o, const float *p, int64_t ld, const void *v, size_t row_bytes, int64_t n_pos, int n_q, int d);
PN_AVX512_ATTENTION(f32)
PN_AVX512_ATTENTION(f16)
PN_AVX512_ATTENTION(q8_0)

#endif
