/* base/unicode.h - properties of code points (Unicode 15.1): major category, White_Space, simple lower case.
 *
 * Full case mapping is casemap.h's; characters as bytes are utf8.h's. */
#ifndef PN_UNICODE_H
#define PN_UNICODE_H

#include "base/base.h"

/* Major general category. All of Z is White_Space, and of C only what is CONTROL_SPACE, so a kind answers both questions. */
typedef enum pn_kind {
    PN_KIND_NONE = 0, /* unassigned, and beyond U+10FFFF */
    PN_KIND_L = 1, PN_KIND_N = 2, PN_KIND_P = 3, PN_KIND_S = 4, PN_KIND_M = 5, PN_KIND_Z = 6, PN_KIND_C = 7,
    PN_KIND_CONTROL_SPACE = 8, /* category C and White_Space: U+0009 .. U+000D, U+0085 */
    PN_N_KINDS = 9
} pn_kind;

pn_kind pn_unicode_kind(uint32_t c);
static inline bool pn_unicode_is_space(uint32_t c)
{
    const pn_kind kind = pn_unicode_kind(c);
    return kind == PN_KIND_Z || kind == PN_KIND_CONTROL_SPACE;
}
/* Simple lower case mapping: one code point, itself where there is none. */
uint32_t pn_unicode_lower(uint32_t c);

#endif
