/* kernels/x86/q4_1_avx2.c - Q4_1 with AVX2. Layout: q4_1_x86.h; order of sums: kernels.h. */
#include "kernels/x86/avx2.h"
#include "kernels/x86/q4_1_x86.h"
#include "kernels/x86/layout_x86.h"
#include "kernels/x86/dots_avx2.h"
#include "kernels/x86/act32_x86.h"

PN_KERNEL_X86(q4_1, avx2)
