/* kernels/x86/words_x86.h - the words of avx2.h and avx512.h that differ in nothing but the width of a vector.
 *
 * A template, for those two headers only: vec and fvec are its types, MM(op) and SI(op) name intrinsics of numbers and of whole vectors. */
PN_INLINE vec v_load(const void *p) { return SI(load)(p); }
PN_INLINE void v_store(void *p, vec v) { SI(store)(p, v); }
PN_INLINE vec v_zero(void) { return SI(setzero)(); }
PN_INLINE vec v_bytes(int x) { return MM(set1_epi8)((char)x); }
PN_INLINE vec v_units(uint32_t x) { return MM(set1_epi32)((int)x); }
PN_INLINE vec v_splat(const void *p) { return MM(set1_epi32)(*(const pn_i32_alias *)p); }
PN_INLINE vec v_and(vec a, vec b) { return SI(and)(a, b); }
PN_INLINE vec v_or(vec a, vec b) { return SI(or)(a, b); }
PN_INLINE vec v_xor(vec a, vec b) { return SI(xor)(a, b); }
PN_INLINE vec v_add_bytes(vec a, vec b) { return MM(add_epi8)(a, b); }
PN_INLINE vec v_lookup(vec table, vec codes) { return MM(shuffle_epi8)(table, codes); } /* of 16 bytes, in each 4 rows */
PN_INLINE vec v_multiply(vec a, uint32_t b) { return MM(mullo_epi32)(a, v_units(b)); }

PN_INLINE fvec f_load(const void *p) { return MM(load_ps)(p); }
PN_INLINE void f_store(void *p, fvec v) { MM(store_ps)(p, v); }
PN_INLINE fvec f_zero(void) { return MM(setzero_ps)(); }
PN_INLINE fvec f_multiply(fvec a, fvec b) { return MM(mul_ps)(a, b); }
PN_INLINE fvec f_fma(fvec a, fvec b, fvec c) { return MM(fmadd_ps)(a, b, c); }
PN_INLINE fvec f_fnma(fvec a, fvec b, fvec c) { return MM(fnmadd_ps)(a, b, c); }
PN_INLINE fvec f_from_units(vec v) { return MM(cvtepi32_ps)(v); }
PN_INLINE fvec f_splat(const void *p) { return MM(set1_ps)(*(const pn_f32_alias *)p); }
