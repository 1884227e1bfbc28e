/* kernels/x86/q5_0_avx2.c - Q5_0 with AVX2. Layout: q5_0_x86.h; order of sums: kernels.h. */
#include "kernels/x86/avx2.h"
#include "kernels/x86/q5_0_x86.h"
#include "kernels/x86/layout_x86.h"
#include "kernels/x86/dots_avx2.h"
#include "kernels/x86/act32_x86.h"

PN_KERNEL_X86(q5_0, avx2)
PN_PANELS_X86(q5_0, avx2)
