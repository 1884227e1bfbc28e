/* models/arch.h - the architectures: one description function each, listed in arch.def. Only for models/. */
#ifndef PN_ARCH_H
#define PN_ARCH_H

#include "models/build.h"

#define ARCH(name) void pn_##name##_describe(pn_builder *b);
#define ARCH_AS(name, text) ARCH(name)
#include "models/arch.def"
#undef ARCH
#undef ARCH_AS

/* What deepseek2 and its like share: see deepseek.c for `own`. */
void pn_describe_deepseek(pn_builder *b, bool own);
/* One table for every layer. */
void pn_rotate_all(pn_builder *b, pn_rope_want want);
/* One table, NEOX; `rope.dimension_sections` says how many pairs go by time, height and width: in turns, or one after the other. For text these are one
 * position; pairs that are left over have position 0. */
void pn_rotate_sections(pn_builder *b, bool in_turns);

#endif
