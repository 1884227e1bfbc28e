/* base/casemap.h - what Python 3.11 knows of a character (Unicode 14.0): its classes and its full case mappings.
 *
 * Used where text must come out as Python would make it. Tokenizers have other tables, of other Unicode versions. */
#ifndef PN_CASEMAP_H
#define PN_CASEMAP_H

#include "base/base.h"

/* in the order of FLAGS in tools/casemap.py */
typedef enum pn_char_class {
    PN_CHAR_SPACE = 1 << 0, PN_CHAR_NAME_START = 1 << 1, PN_CHAR_NAME = 1 << 2, PN_CHAR_ALPHA = 1 << 3, PN_CHAR_DECIMAL = 1 << 4, PN_CHAR_DIGIT = 1 << 5,
    PN_CHAR_NUMERIC = 1 << 6, PN_CHAR_LOWER = 1 << 7, PN_CHAR_UPPER = 1 << 8, PN_CHAR_TITLE = 1 << 9, PN_CHAR_PRINTABLE = 1 << 10, PN_CHAR_IGNORABLE = 1 << 11, /* by case */
    PN_CHAR_CASED = PN_CHAR_LOWER | PN_CHAR_UPPER | PN_CHAR_TITLE,
    PN_CHAR_ALNUM = PN_CHAR_ALPHA | PN_CHAR_DECIMAL | PN_CHAR_DIGIT | PN_CHAR_NUMERIC
} pn_char_class;
typedef enum pn_case { PN_CASE_UPPER, PN_CASE_LOWER, PN_CASE_TITLE, PN_CASE_FOLD } pn_case;

unsigned pn_char_classes(uint32_t c); /* 0 for what is no character */
static inline bool pn_char_is(uint32_t c, unsigned any_of) { return (pn_char_classes(c) & any_of) != 0; }
/* Writes 1 .. 3 characters. The final sigma is the caller's business. */
size_t pn_char_case(uint32_t c, pn_case how, uint32_t out[3]);

#endif
