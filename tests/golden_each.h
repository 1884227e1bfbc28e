/* tests/golden_each.h - every golden tiny model that this build runs: those of tests/golden, and of ../shared where it is. */
#ifndef PN_GOLDEN_EACH_H
#define PN_GOLDEN_EACH_H

#include "pinch.h"
#include "test.h"

#include <dirent.h>

/* False: not counted, as the model is of an architecture or a tokenizer that comes later, or makes no difference to the test. */
typedef bool (*golden_fn)(const char *name, const char *path);

static int golden_each_in(const char *folder, golden_fn fn)
{
    char path[512];
    int n = 0;
    DIR *dir = opendir(folder);
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        snprintf(path, sizeof path, "%s/%s/model.gguf", folder, e->d_name);
        n += *e->d_name != '.' && fn(e->d_name, path);
    }
    if (dir) closedir(dir);
    return n;
}

static void golden_each(golden_fn fn)
{
    char folder[512];
    int n = golden_each_in("tests/golden", fn);
    CHECK("the golden models of this repository run", n == 4, "%d of 4", n);
    const char *shared = pn_shared();
    if (!shared) {
        pn_skip("the other golden models", "../shared is missing");
        return;
    }
    snprintf(folder, sizeof folder, "%s/golden", shared);
    n = golden_each_in(folder, fn);
    CHECK("many golden models run", n >= 40, "%d", n);
}

#endif
