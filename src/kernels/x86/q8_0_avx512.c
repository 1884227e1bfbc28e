/* kernels/x86/q8_0_avx512.c - Q8_0 with AVX-512 VNNI. Layout: q8_0_x86.h; order of sums: kernels.h. */
#include "kernels/x86/avx512.h"
#include "kernels/x86/q8_0_x86.h"
#include "kernels/x86/layout_x86.h"
#include "kernels/x86/dots_avx512.h"
#include "kernels/x86/act32_x86.h"

PN_KERNEL_X86(q8_0, avx512vnni)
