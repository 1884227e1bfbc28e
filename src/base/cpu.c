/* base/cpu.c - asks the CPU what it is and can do. Needs no /proc: phones and chroots have none. */
#include "base/cpu.h"

#include <stdio.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

typedef struct leaf { unsigned a, b, c, d; } leaf;

static leaf cpuid(unsigned number, unsigned sub)
{
    leaf l = {0};
    if (!__get_cpuid_count(number, sub, &l.a, &l.b, &l.c, &l.d)) l = (leaf){0};
    return l;
}

/* Register states that the system saves on a task switch: XCR0. Only valid where OSXSAVE is set. */
static unsigned saved_states(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

uint32_t pn_cpu_features(void)
{
    const unsigned osxsave = bit_OSXSAVE, basic = bit_AVX | bit_FMA | bit_F16C;
    const unsigned ymm = 0x06, zmm = 0xE6; /* XMM, YMM; and opmask, upper halves, upper registers */
    const unsigned avx512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
    leaf one = cpuid(1, 0), seven = cpuid(7, 0);
    unsigned saved = (one.c & osxsave) ? saved_states() : 0;
    uint32_t features = 0;
    if ((one.c & basic) == basic && (seven.b & bit_AVX2) && (saved & ymm) == ymm) features |= PN_CPU_AVX2;
    if ((features & PN_CPU_AVX2) && (seven.b & avx512) == avx512 && (seven.c & bit_AVX512VNNI) && (saved & zmm) == zmm) features |= PN_CPU_AVX512VNNI;
    return features;
}

void pn_cpu_name(char *buffer, size_t size)
{
    char brand[49] = {0};
    leaf highest = cpuid(0x80000000u, 0);
    for (unsigned i = 0; highest.a >= 0x80000004u && i < 3; i++) {
        leaf l = cpuid(0x80000002u + i, 0);
        memcpy(brand + 16 * i, &l, sizeof l);
    }
    size_t end = strlen(brand);
    while (end && brand[end - 1] == ' ') brand[--end] = 0;
    const char *start = brand;
    while (*start == ' ') start++;
    snprintf(buffer, size, "%s", *start ? start : "unknown");
}

#elif defined(__aarch64__)
#include <sys/auxv.h>

/* Bits of the arm64 Linux ABI (arch/arm64/include/uapi/asm/hwcap.h); spelt out because old headers lack the later ones. */
enum { HWCAP_BIT_ASIMD = 1, HWCAP_BIT_CPUID = 11, HWCAP_BIT_ASIMDDP = 20, HWCAP2_BIT_I8MM = 13 };

uint32_t pn_cpu_features(void)
{
    unsigned long caps = getauxval(AT_HWCAP), caps2 = getauxval(AT_HWCAP2);
    uint32_t features = 0;
    if (caps >> HWCAP_BIT_ASIMD & 1) features |= PN_CPU_NEON;
    if (caps >> HWCAP_BIT_ASIMDDP & 1) features |= PN_CPU_DOTPROD;
    if (caps2 >> HWCAP2_BIT_I8MM & 1) features |= PN_CPU_I8MM;
    return features;
}

void pn_cpu_name(char *buffer, size_t size)
{
    /* Part numbers of implementer 0x41 (Arm) in MIDR_EL1. */
    static const struct { unsigned part; const char *name; } parts[] = {
        {0xD03, "Cortex-A53"}, {0xD04, "Cortex-A35"}, {0xD05, "Cortex-A55"}, {0xD07, "Cortex-A57"}, {0xD08, "Cortex-A72"}, {0xD09, "Cortex-A73"},
        {0xD0A, "Cortex-A75"}, {0xD0B, "Cortex-A76"}, {0xD0C, "Neoverse-N1"}, {0xD0D, "Cortex-A77"}, {0xD40, "Neoverse-V1"}, {0xD41, "Cortex-A78"},
        {0xD44, "Cortex-X1"}, {0xD46, "Cortex-A510"}, {0xD47, "Cortex-A710"}, {0xD48, "Cortex-X2"}, {0xD49, "Neoverse-N2"}, {0xD4D, "Cortex-A715"},
        {0xD4E, "Cortex-X3"}, {0xD4F, "Neoverse-V2"}, {0xD80, "Cortex-A520"}, {0xD81, "Cortex-A720"}, {0xD82, "Cortex-X4"},
    };
    snprintf(buffer, size, "unknown");
    /* The kernel lets processes read this register (by trapping) only where it says so. */
    if (!(getauxval(AT_HWCAP) >> HWCAP_BIT_CPUID & 1)) return;
    unsigned long midr;
    __asm__("mrs %0, midr_el1" : "=r"(midr));
    unsigned implementer = (unsigned)(midr >> 24) & 0xFF, part = (unsigned)(midr >> 4) & 0xFFF;
    snprintf(buffer, size, "ARM implementer 0x%02x part 0x%03x", implementer, part);
    for (size_t i = 0; implementer == 0x41 && i < PN_COUNT(parts); i++)
        if (parts[i].part == part) snprintf(buffer, size, "%s", parts[i].name);
}

#else

uint32_t pn_cpu_features(void) { return 0; }
void pn_cpu_name(char *buffer, size_t size) { snprintf(buffer, size, "unknown"); }

#endif
