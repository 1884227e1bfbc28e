/* kernels/x86/q4_0_avx512.c - Q4_0 with AVX-512 VNNI. Layout: q4_0_x86.h; order of sums: kernels.h. */
#define PANELS pn_q5_0__avx512vnni_panels
#define PANEL_ADDS 8
#include "kernels/x86/avx512.h"
#include "kernels/x86/q4_0_x86.h"
#include "kernels/x86/layout_x86.h"
#include "kernels/x86/dots_avx512.h"
#include "kernels/x86/act32_x86.h"

PN_KERNEL_X86(q4_0, avx512vnni)
