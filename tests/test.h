/* tests/test.h - the whole test framework: named checks, counted; the program prints "N passed, N failed, N skipped" last. */
#ifndef PN_TEST_H
#define PN_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static int pn_passed, pn_failed, pn_skipped;

/* One named proof: `what` says what is proved; details (printf style) show only on failure. */
#define CHECK(what, condition, ...) pn_check(what, condition, __FILE__, __LINE__, __VA_ARGS__)
__attribute__((format(printf, 5, 6), unused)) static bool pn_check(const char *what, bool ok, const char *file, int line, const char *format, ...)
{
    if (ok) {
        pn_passed++;
        return true;
    }
    pn_failed++;
    printf("FAILED %s (%s:%d): ", what, file, line);
    __builtin_va_list args;
    __builtin_va_start(args, format);
    vprintf(format, args);
    __builtin_va_end(args);
    printf("\n");
    return false;
}
__attribute__((unused)) static void pn_skip(const char *what, const char *why)
{
    pn_skipped++;
    printf("SKIPPED %s: %s\n", what, why);
}
/* The folder of reference data beside the project; NULL when it is missing (then skip with one line). */
__attribute__((unused)) static const char *pn_shared(void)
{
    const char *path = getenv("PINCH_SHARED");
    if (!path) path = "../shared";
    FILE *f = NULL;
    char name[4096];
    snprintf(name, sizeof name, "%s/golden/README.md", path);
    f = fopen(name, "rb");
    if (!f) return NULL;
    fclose(f);
    return path;
}
__attribute__((unused)) static int pn_done(void)
{
    printf("%d passed, %d failed, %d skipped\n", pn_passed, pn_failed, pn_skipped);
    return pn_failed != 0;
}
/* A small generator for tests: xorshift64*, seeded by the test and printed on failure. */
__attribute__((unused)) static unsigned long long pn_random(unsigned long long *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717ull;
}

#endif
