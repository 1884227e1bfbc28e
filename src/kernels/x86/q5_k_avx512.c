/* kernels/x86/q5_k_avx512.c - Q5_K with AVX-512 VNNI. Layout: q5_k_x86.h; order of sums: kernels.h. */
#define DIRECT_TURN 4 /* there are registers enough to shift the fifth bits once for four sub-blocks */
#define PANELS pn_q4_k__avx512vnni_panels
#include "kernels/x86/avx512.h"
#include "kernels/x86/q5_k_x86.h"
#include "kernels/x86/layout_x86.h"
#include "kernels/x86/dots_avx512.h"
#include "kernels/x86/act256_x86.h"

PN_KERNEL_X86(q5_k, avx512vnni)
