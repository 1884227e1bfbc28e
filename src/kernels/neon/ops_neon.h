/* kernels/neon/ops_neon.h - the members of pn_ops_neon, which live in several files. */
#ifndef PN_NEON_OPS_H
#define PN_NEON_OPS_H

#include "kernels/kernels.h"

#define OP(result, name, ...) result pn_neon_##name(__VA_ARGS__);
#define OP_OF_CACHE(result, name, ...)                  \
    typedef result pn_neon_##name##_fn(__VA_ARGS__);    \
    pn_neon_##name##_fn pn_neon_##name##_f32, pn_neon_##name##_f16, pn_neon_##name##_q8_0;
#include "kernels/ops.def"
#undef OP
#undef OP_OF_CACHE

#endif
