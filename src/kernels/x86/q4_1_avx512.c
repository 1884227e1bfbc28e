/* kernels/x86/q4_1_avx512.c - Q4_1 with AVX-512 VNNI. Layout: q4_1_x86.h; order of sums: kernels.h. */
#define PANELS pn_q5_1__avx512vnni_panels
#include "kernels/x86/avx512.h"
#include "kernels/x86/q4_1_x86.h"
#include "kernels/x86/layout_x86.h"
#include "kernels/x86/dots_avx512.h"
#include "kernels/x86/act32_x86.h"

PN_KERNEL_X86(q4_1, avx512vnni)
