/* kernels/x86/q4_k_avx512.c - Q4_K with AVX-512 VNNI. Layout: q4_k_x86.h; order of sums: kernels.h. */
#include "kernels/x86/avx512.h"
#include "kernels/x86/q4_k_x86.h"
#include "kernels/x86/layout_x86.h"
#include "kernels/x86/dots_avx512.h"
#include "kernels/x86/act256_x86.h"

PN_KERNEL_X86(q4_k, avx512vnni)
PN_PANELS_X86(q4_k, avx512vnni)
