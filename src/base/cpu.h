/* base/cpu.h - what machine this is: features, cores, memory. Degrades to a sane answer where /proc or /sys cannot be read. */
#ifndef PN_CPU_H
#define PN_CPU_H

#include "base/base.h"

/* CPU features that kernels need. */
typedef enum pn_cpu_feature {
    PN_CPU_AVX2 = 1u << 0,       /* AVX2, FMA, F16C */
    PN_CPU_AVX512VNNI = 1u << 1, /* AVX-512 F, BW, VL, DQ, VNNI */
    PN_CPU_NEON = 1u << 2,
    PN_CPU_DOTPROD = 1u << 3,
    PN_CPU_I8MM = 1u << 4
} pn_cpu_feature;

/* pn_cpu_feature bits of this CPU that the system lets a process use, from CPUID/XGETBV or getauxval(AT_HWCAP). No global state, cheap. */
uint32_t pn_cpu_features(void);
/* The CPU's name for reports, from the CPU itself; "unknown" when it does not tell. */
void pn_cpu_name(char *buffer, size_t size);

typedef struct pn_topology {
    int n_online;   /* processors this process may run on (affinity and cgroup quota counted), at least 1 */
    int n_physical; /* of them, cores: SMT siblings counted once */
    int n_big;      /* of n_physical, those of at least 60 % of the highest capacity (all when unknown) */
} pn_topology;
void pn_topology_read(pn_topology *out);
/* Threads for generation and for prompts on this machine, never simply all cores of a big one: see machine.c for the rule. */
void pn_threads_default(const pn_topology *topology, int *generation, int *prompt);

/* Bytes that this process may still take: the least of MemAvailable and what cgroup v1/v2 limits leave. UINT64_MAX: unknown. */
uint64_t pn_memory_available(void);
/* Resident set of this process now, and its peak, in bytes; 0: unknown. */
uint64_t pn_memory_resident(void);
uint64_t pn_memory_peak(void);

/* Monotonic seconds. */
double pn_now(void);
/* Seconds since this process started, in steps of a clock tick (10 ms); below 0: unknown. */
double pn_process_age(void);

/* For tests: the same answers from a folder that holds copies of /proc and /sys. `allowed`: a flag per processor. */
void pn_topology_from(const char *root, const bool *allowed, int n_allowed, pn_topology *out);
uint64_t pn_memory_from(const char *root);

#endif
