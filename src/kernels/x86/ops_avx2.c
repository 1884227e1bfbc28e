/* kernels/x86/ops_avx2.c - the table of vector operations with AVX2, bit-equal to scalar. */
#include "kernels/x86/lanes_avx2.h"

#include "kernels/x86/ops_x86.h"

#include "kernels/x86/attention_x86.h"
#include "kernels/x86/recurrent_x86.h"
#include "kernels/x86/delta_x86.h"

const pn_ops pn_ops_avx2 = {
    .isa = "avx2",
#include "kernels/ops_members.h"
};
