/* Replays a fuzz target's corpus without libFuzzer: every file of the folders given, then all truncations of small ones.
 *
 * A target is tests/fuzz/<room>_fuzz.c: LLVMFuzzerTestOneInput of any bytes, which aborts when a meaning it asserts does not hold. */
#include <dirent.h>
#include <stdint.h>
#include <string.h>

#include "../test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TRUNCATE_BELOW = 512 };

static void replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!CHECK("corpus file opens", f != NULL, "%s", path)) return;
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    /* exactly as large as the input, so that a byte read past its end is found */
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    const bool whole = data && size >= 0 && fread(data, 1, (size_t)size, f) == (size_t)size;
    fclose(f);
    if (CHECK("corpus file is read", whole, "%s", path)) LLVMFuzzerTestOneInput(data, (size_t)size);
    for (long n = 0; whole && size <= TRUNCATE_BELOW && n < size; n++) {
        uint8_t *head = malloc(n ? (size_t)n : 1);
        if (!head) break;
        memcpy(head, data, (size_t)n);
        LLVMFuzzerTestOneInput(head, (size_t)n);
        free(head);
    }
    free(data);
}

int main(int argc, char **argv)
{
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (!CHECK("corpus folder opens", folder != NULL, "%s", argv[i])) continue;
        for (const struct dirent *e; (e = readdir(folder)) != NULL;) {
            char path[4096];
            if (e->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
            replay(path);
        }
        closedir(folder);
    }
    return pn_done();
}
