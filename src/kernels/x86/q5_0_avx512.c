/* kernels/x86/q5_0_avx512.c - Q5_0 with AVX-512 VNNI. Layout: q5_0_x86.h; order of sums: kernels.h. */
#include "kernels/x86/avx512.h"
#include "kernels/x86/q5_0_x86.h"
#include "kernels/x86/layout_x86.h"
#include "kernels/x86/dots_avx512.h"
#include "kernels/x86/act32_x86.h"

PN_KERNEL_X86(q5_0, avx512vnni)
PN_PANELS_X86(q5_0, avx512vnni)
