/* kernels/x86/q5_k_avx2.c - Q5_K with AVX2. Layout: q5_k_x86.h; order of sums: kernels.h. */
#include "kernels/x86/avx2.h"
#include "kernels/x86/q5_k_x86.h"
#include "kernels/x86/layout_x86.h"
#include "kernels/x86/dots_avx2.h"
#include "kernels/x86/act256_x86.h"

PN_KERNEL_X86(q5_k, avx2)
