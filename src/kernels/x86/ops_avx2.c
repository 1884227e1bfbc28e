/* kernels/x86/ops_avx2.c - the table of vector operations with AVX2, bit-equal to scalar. */
#include "kernels/x86/lanes_avx2.h"

#include "kernels/x86/ops_x86.h"

#include "kernels/x86/attention_x86.h"

PN_OPS_X86(avx2);
