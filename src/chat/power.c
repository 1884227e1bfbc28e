/* chat/power.c - x ** y in double precision by our own arithmetic: the system's libm may differ in the last bit.
 *
 * Works on unevaluated sums of two doubles (about 104 bits), so that the one rounding at the end is nearly always the right one. */
#include "chat/numbers.h"

#include "base/math.h"

#include <math.h>

typedef struct pair { /* high + low, |low| <= ulp(high) / 2 */
    double high, low;
} pair;

static const pair ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

static pair two_sum(double a, double b)
{
    double s = a + b, other = s - a;
    return (pair){s, (a - (s - other)) + (b - other)};
}

static pair add(pair a, pair b)
{
    pair s = two_sum(a.high, b.high);
    return two_sum(s.high, s.low + (a.low + b.low));
}

static pair multiply(pair a, pair b)
{
    double p = a.high * b.high;
    return two_sum(p, fma(a.high, b.high, -p) + (a.high * b.low + a.low * b.high));
}

static pair divide(pair a, double b)
{
    double q = a.high / b, rest = fma(-q, b, a.high) + a.low;
    return two_sum(q, rest / b);
}

enum { HALVINGS = 8, TERMS = 12 }; /* |r| <= ln2 / 512: the 13th term is below 2^-150 */

/* e^x - 2^k: returns e^x / 2^k and sets k. Finite x of at most some thousands. */
static pair exponential(pair x, int *k)
{
    double steps = rint(x.high / ln2.high);
    pair r = add(x, multiply((pair){-steps, 0}, ln2)), sum = {0, 0};
    r.high = ldexp(r.high, -HALVINGS);
    r.low = ldexp(r.low, -HALVINGS);
    for (int n = TERMS; n > 1; n--) sum = multiply(divide(add(sum, (pair){1, 0}), n), r); /* Horner on e^r - 1 = r(1 + r/2(1 + r/3(...))) */
    sum = multiply(add(sum, (pair){1, 0}), r);
    for (int i = 0; i < HALVINGS; i++) sum = add(add(sum, sum), multiply(sum, sum)); /* (1 + s)^2 - 1 */
    *k = (int)steps;
    return add(sum, (pair){1, 0});
}

/* One Newton step from the double logarithm doubles its digits. */
static pair logarithm(double x)
{
    int k, own;
    double m = frexp(x, &own), guess = pn_log(m);
    pair inverse = exponential((pair){-guess, 0}, &k);
    inverse.high = ldexp(inverse.high, k);
    inverse.low = ldexp(inverse.low, k);
    pair rest = add(multiply(inverse, (pair){m, 0}), (pair){-1, 0});
    pair log_m = add((pair){guess, 0}, rest);
    return add(log_m, multiply((pair){own, 0}, ln2));
}

double pn_j_power(double x, double y)
{
    bool whole = rint(y) == y, odd = whole && fabs(y) < 0x1p53 && fmod(y, 2) != 0;
    double infinity = HUGE_VAL, sign = odd && (x < 0 || (x == 0 && 1 / x < 0)) ? -1 : 1, size = fabs(x);
    if (y == 0 || x == 1) return 1;
    if (x != x || y != y) return x + y;
    if (x < 0 && !whole && size != infinity) return x - x == 0 ? (0 * infinity) : x;
    if (y - y != 0) return size == 1 ? 1 : (size > 1) == (y > 0) ? infinity : 0;
    if (size == 0 || size == infinity) return sign * ((size == 0) == (y > 0) ? 0 : infinity);
    pair exponent = multiply(logarithm(size), (pair){y, 0});
    if (exponent.high > 710) return sign * infinity;
    if (exponent.high < -746) return sign * 0;
    int k;
    pair r = exponential(exponent, &k);
    return sign * ldexp(r.high, k);
}
