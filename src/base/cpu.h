/* base/cpu.h - what machine this is: features, cores, memory. Degrades to a sane answer where /proc or /sys cannot be read. */
#ifndef PN_CPU_H
#define PN_CPU_H

#include "base/base.h"

/* pn_cpu_feature bits (kernels/kernels.h) of this CPU, as CPUID/XGETBV or getauxval(AT_HWCAP) tell. No global state, cheap. */
uint32_t pn_cpu_features(void);
/* The CPU's name for reports; "unknown" when it cannot be read. */
void pn_cpu_name(char *buffer, size_t size);

typedef struct pn_topology {
    int n_online;   /* processors this process may run on (affinity and cgroup quota counted), at least 1 */
    int n_big;      /* of them, those of the highest capacity (all when unknown) */
    int n_physical; /* cores, SMT siblings counted once */
} pn_topology;
void pn_topology_read(pn_topology *out);
/* Threads for generation and for prompts on this machine, never simply all cores of a big one: see cpu.c for the rule. */
void pn_threads_default(const pn_topology *topology, int *generation, int *prompt);

/* Bytes that this process may still take: the least of MemAvailable and what cgroup v1/v2 limits leave. UINT64_MAX: unknown. */
uint64_t pn_memory_available(void);
/* Resident set of this process now, and its peak, in bytes; 0: unknown. */
uint64_t pn_memory_resident(void);
uint64_t pn_memory_peak(void);

/* Monotonic seconds. */
double pn_now(void);
/* Seconds since this process started (from /proc/self/stat; else since first asked by the caller's own clock: returns < 0 when unknown). */
double pn_process_age(void);

#endif
