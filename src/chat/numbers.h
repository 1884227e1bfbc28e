/* chat/numbers.h - numbers in Python's format mini-language. */
#ifndef PN_CHAT_NUMBERS_H
#define PN_CHAT_NUMBERS_H

#include "chat/value.h"

typedef struct format_spec {
    char fill[4];
    uint8_t n_fill;
    char align;     /* 0: by kind; '<' '>' '^' '=' */
    char sign;      /* 0 or '-', '+', ' ' */
    bool alternate; /* '#' */
    char grouping;  /* 0, ',' or '_' */
    char type;      /* 0: none */
    int64_t width, precision; /* precision -1: none */
    bool minimum_digits;      /* "%5.3d": the precision of an integer pads with zeros */
} format_spec;

bool pn_j_put_number(render *st, buffer *b, const value *v, const format_spec *spec); /* bool, int, float; for "bcdoxXn" and "eEfFgG%" */
double pn_j_power(double x, double y); /* NaN where there is no real power */
bool pn_j_put_padded(render *st, buffer *b, const text *t, const format_spec *spec, char otherwise);

#endif
