/* kernels/registry.h - prototypes of everything that kernels.def names, for the files that define them and for kernels.c. */
#ifndef PN_REGISTRY_H
#define PN_REGISTRY_H

#include "kernels/kernels.h"

#define KERNEL(weight, isa, rows, cols, promise, needs)                            \
    uint64_t pn_##weight##__##isa##_group_bytes(int64_t k);                        \
    void pn_##weight##__##isa##_pack(void *dst, const void *src, int64_t n_valid, int64_t k); \
    uint64_t pn_##weight##__##isa##_scratch(int64_t k);                            \
    KERNEL_PLAIN(weight, isa, rows, cols, promise, needs)
#define KERNEL_PLAIN(weight, isa, rows, cols, promise, needs)                                                   \
    void pn_##weight##__##isa##_gemv(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch);               \
    void pn_##weight##__##isa##_gemm(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch);
#define OPS(isa, needs) extern const pn_ops pn_ops_##isa;
#include "kernels/kernels.def"
#undef KERNEL
#undef KERNEL_PLAIN
#undef OPS

#endif
