/* base/number.h - numbers to text and back, whatever the locale. */
#ifndef PN_NUMBER_H
#define PN_NUMBER_H

#include "base/base.h"

/* Shortest decimal that reads back to the same double / float, in Python's repr form ("1.0", "1e-05", "1e+16", "inf", "nan"). Returns the length; buffer >= 32. */
size_t pn_format_double(char *buffer, double v);
size_t pn_format_float(char *buffer, float v);
/* Fixed point, `decimals` digits (0 .. PN_FIXED_DECIMALS), correctly rounded, as printf("%.*f") in the C locale. buffer >= 400. */
#define PN_FIXED_DECIMALS 80
size_t pn_format_fixed(char *buffer, double v, int decimals);
/* `n` significant digits (1 .. PN_FIXED_DECIMALS) of |v|, correctly rounded, without a point: the first stands for 10^*exponent. buffer > n. */
size_t pn_format_digits(char *digits, double v, int n, int *exponent);
/* Correctly rounded; takes [+-]digits[.digits][e[+-]digits], inf, infinity, nan. Returns bytes read, 0: no number. Beyond the largest: inf. */
size_t pn_parse_double(const char *text, size_t n, double *out);
size_t pn_parse_int64(const char *text, size_t n, int64_t *out); /* 0: no number or beyond 64 bits */
size_t pn_parse_uint64(const char *text, size_t n, uint64_t *out);

#endif
