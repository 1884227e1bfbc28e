/* tests/fuzz/fuzz.h - what fuzz targets share: asserting a meaning, input as a file descriptor, bytes taken from the input. */
#ifndef PN_FUZZ_H
#define PN_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A meaning that holds for every input; a breach is a find, as a crash is. */
#define MUST(condition)                                                         \
    do {                                                                        \
        if (!(condition)) {                                                     \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                            \
        }                                                                       \
    } while (0)

/* A file in memory that holds the input; the caller closes it. -1: none to be had. */
__attribute__((unused)) static int fuzz_file(const uint8_t *data, size_t size)
{
    const int fd = memfd_create("input", 0);
    if (fd < 0) return -1;
    for (size_t done = 0; done < size;) {
        const ssize_t n = write(fd, data + done, size - done);
        if (n <= 0) {
            close(fd);
            return -1;
        }
        done += (size_t)n;
    }
    return fd;
}

/* Takes a byte from the front of the input; 0 when there is none. */
__attribute__((unused)) static uint8_t fuzz_byte(const uint8_t **data, size_t *size)
{
    if (!*size) return 0;
    --*size;
    return *(*data)++;
}

#endif
