/* tests/architectures.h - the architectures that a test has met: what takes long it does once for each. */
#ifndef PN_ARCHITECTURES_H
#define PN_ARCHITECTURES_H

#include "base/base.h"

#include <stdio.h>

typedef struct architectures {
    char names[64][64];
    size_t n;
} architectures;

/* True once for each name, as long as there is room. */
static bool first_of_its_kind(architectures *met, const char *name)
{
    for (size_t i = 0; i < met->n; i++)
        if (!strcmp(met->names[i], name)) return false;
    if (met->n == PN_COUNT(met->names)) return false;
    snprintf(met->names[met->n++], sizeof met->names[0], "%s", name);
    return true;
}

#endif
