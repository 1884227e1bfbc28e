/* tests/hostile_numbers.h - numbers that break careless readers: limits of their kinds, neighbours of what stood there. */
#ifndef PN_HOSTILE_NUMBERS_H
#define PN_HOSTILE_NUMBERS_H

#include "base/base.h"
#include "test.h"

static uint64_t hostile_number(unsigned long long *seed, uint64_t old)
{
    static const uint64_t values[] = {0, 1, 2, 3, 7, 31, 32, 33, 255, 256, 65535, 65536, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x3fffffff, 0x40000001,
                                      UINT64_C(1) << 61, UINT64_C(1) << 62, INT64_MAX - 1, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX - 7, UINT64_MAX};
    const uint64_t r = pn_random(seed);
    switch (r % 8) {
    case 0: return old + 1;
    case 1: return old - 1;
    case 2: return old * 2;
    case 3: return old / 2;
    case 4: return pn_random(seed) >> (r >> 8) % 64;
    default: return values[(r >> 8) % PN_COUNT(values)];
    }
}

static uint64_t hostile_float(unsigned long long *seed, size_t width)
{
    static const double values[] = {0.0, -0.0, -1.0, 1e-45, 1e30, -1e30, 1e300, __builtin_inf(), -__builtin_inf(), __builtin_nan("")};
    const double d = values[pn_random(seed) % PN_COUNT(values)];
    const float f = d > 1e38 ? __builtin_inff() : (float)d;
    uint64_t v = 0;
    if (width == 4) memcpy(&v, &f, 4);
    else memcpy(&v, &d, 8);
    return v;
}

#endif
