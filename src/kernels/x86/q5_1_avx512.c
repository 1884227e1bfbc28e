/* kernels/x86/q5_1_avx512.c - Q5_1 with AVX-512 VNNI. Layout: q5_1_x86.h; order of sums: kernels.h. */
#include "kernels/x86/avx512.h"
#include "kernels/x86/q5_1_x86.h"
#include "kernels/x86/layout_x86.h"
#include "kernels/x86/dots_avx512.h"
#include "kernels/x86/act32_x86.h"

PN_KERNEL_X86(q5_1, avx512vnni)
PN_PANELS_X86(q5_1, avx512vnni)
