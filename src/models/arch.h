/* models/arch.h - the architectures: one description function each, listed in arch.def. Only for models/. */
#ifndef PN_ARCH_H
#define PN_ARCH_H

#include "models/build.h"

#define ARCH(name) void pn_##name##_describe(pn_builder *b);
#define ARCH_AS(name, text) ARCH(name)
#include "models/arch.def"
#undef ARCH
#undef ARCH_AS

/* One table for every layer. */
void pn_rotate_all(pn_builder *b, pn_rope_want want);

#endif
