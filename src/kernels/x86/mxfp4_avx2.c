/* kernels/x86/mxfp4_avx2.c - MXFP4 with AVX2. Layout: mxfp4_x86.h; order of sums: kernels.h. */
#define PANELS pn_q5_0__avx2_panels
#include "kernels/x86/avx2.h"
#include "kernels/x86/mxfp4_x86.h"
#include "kernels/x86/layout_x86.h"
#include "kernels/x86/dots_avx2.h"
#include "kernels/x86/act32_x86.h"

PN_KERNEL_X86(mxfp4, avx2)
