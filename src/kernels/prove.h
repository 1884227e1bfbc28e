/* kernels/prove.h - proves on this CPU what kernels.def promises, and measures it: the engine of `pinch check` and of the tests.
 *
 * Every kernel and every member of every table of operations is compared with its scalar definition over shapes, seeds and edge
 * fills, in buffers that end at an unreadable page: a kernel that touches what is not its own dies, after on_start named it.
 * Prints nothing; knows nothing of files, models or threads. */
#ifndef PN_PROVE_H
#define PN_PROVE_H

#include "kernels/kernels.h"

typedef struct pn_proof {
    const char *name; /* of the kernel, or of the operation: "silu_mul__avx2" */
    const char *isa;
    const pn_kernel *kernel; /* NULL: an operation */
    pn_promise promise;
    bool held;           /* the promise, in every case */
    uint64_t cases;
    uint64_t floats;     /* compared */
    uint64_t differing;  /* of them, those with other bits (any NaN equals any NaN) */
    double largest;      /* difference, relative to the largest value of its case */
    char failure[160];   /* the first case that broke the promise; "" if none */
    /* Thousand millions of weights (times columns; operations: of elements) a second on one thread, and the ratio to scalar; 0: not measured. */
    double speed_one, ratio_one;   /* one column, or the operation */
    double speed_many, ratio_many; /* 16 columns; 0 for operations */
} pn_proof;

typedef struct pn_prove_options {
    uint32_t features;    /* what this CPU has */
    uint64_t seed;
    const char *filter;   /* part of the name, any case; NULL: everything */
    bool thorough;        /* about ten times as many cases */
    double seconds;       /* spent on measuring each speed; 0: none is measured */
    void (*on_start)(void *user, const char *name); /* may be NULL */
    bool (*on_proof)(void *user, const pn_proof *proof); /* true: stop */
    void *user;
} pn_prove_options;

/* Proves one kernel, of kernels.def or not; fills *proof. `seconds` 0: no speed. */
pinch_status pn_prove_kernel(pn_proof *proof, const pn_prove_options *options, const pn_kernel *kernel, pinch_error *err);
/* Calls on_proof for each kernel, then for each operation, in the order of kernels.def. PINCH_ABORTED when stopped. A promise that is
 * broken is no error here: proof->held says so. */
pinch_status pn_prove(const pn_prove_options *options, pinch_error *err);

#endif
