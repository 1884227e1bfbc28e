/* Replays inputs through a fuzz target without libFuzzer: every file of the folders given and all truncations of small ones; `-`: inputs from
 * stdin, each a little-endian u32 length and its bytes, each answered by one line with the milliseconds it took and the peak of resident memory in KiB.
 *
 * A target is tests/fuzz/<room>_fuzz.c: LLVMFuzzerTestOneInput of any bytes, which aborts when a meaning it asserts does not hold. */
#include "base/cpu.h"
#include "fuzz.h"

#include <dirent.h>
#include <time.h>

#include "../test.h"

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

static double milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int serve(void)
{
    uint8_t length[4];
    while (fread(length, 1, sizeof length, stdin) == sizeof length) {
        const size_t size = (size_t)length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 | (size_t)length[3] << 24;
        uint8_t *data = malloc(size ? size : 1);
        if (!data || fread(data, 1, size, stdin) != size) return 1;
        const double start = milliseconds();
        LLVMFuzzerTestOneInput(data, size);
        printf("%.1f %ld\n", milliseconds() - start, (long)(pn_memory_peak() >> 10));
        fflush(stdout);
        free(data);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "-") == 0) return serve();
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
