/* kernels/x86/ops_avx512.c - the table of vector operations with AVX-512, bit-equal to scalar. */
#include "kernels/x86/lanes_avx512.h"

#include "kernels/x86/ops_x86.h"

#include "kernels/x86/attention_x86.h"

PN_OPS_X86(avx512vnni);
