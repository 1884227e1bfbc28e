/* kernels/ops_members.h - a template: the members of a pn_ops as initialisers, each the function of its name, or OP_NAME(name) where that is defined. */
#ifndef OP_NAME
#define OP_NAME(name) name
#endif
#define OP(result, name, ...) .name = OP_NAME(name),
#define OP_OF_CACHE(result, name, ...) .name = {OP_NAME(name##_f32), OP_NAME(name##_f16), OP_NAME(name##_q8_0)},
#include "kernels/ops.def"
#undef OP
#undef OP_OF_CACHE
