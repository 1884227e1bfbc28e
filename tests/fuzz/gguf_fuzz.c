/* Any bytes as a GGUF file: every value and tensor that the reader lets through lies within the file. */
#include "fuzz.h"

#include "gguf/gguf.h"

static void walk_value(const pn_gguf_value *v)
{
    int64_t integer;
    double number;
    uint64_t cursor = 0, n = 0;
    pn_str text;
    uint8_t sum = 0;
    for (uint64_t i = 0; i < v->bytes; i++) sum = (uint8_t)(sum + v->data[i]); /* a sanitizer sees what is not there */
    (void)sum;
    pn_gguf_int_at(v, 0, &integer);
    pn_gguf_float_at(v, v->count, &number);
    while (pn_gguf_next_string(v, &cursor, &text)) n++;
    MUST(n <= v->count);
}

static void walk_tensor(const pn_gguf *g, const pn_tensor *t)
{
    uint64_t end, row;
    char bytes[64];
    pinch_error err;
    MUST(t->part >= 0 && t->part < pn_gguf_n_parts(g));
    MUST(pn_add(t->offset, t->bytes, &end) && end <= pn_file_size(pn_gguf_file(g, t->part)));
    MUST(pn_row_bytes(t->type, (uint64_t)t->ne[0], &row) && (row <= t->bytes || t->bytes == 0)); /* an empty tensor is allowed */
    for (int d = 0; d < 4; d++) MUST(t->ne[d] >= 0);
    if (t->bytes >= sizeof bytes) MUST(pn_gguf_read(g, t, t->bytes - sizeof bytes, bytes, sizeof bytes, &err) == PINCH_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int fd = fuzz_file(data, size);
    if (fd < 0) return 0;
    pn_gguf *g = NULL;
    pinch_error err = {0};
    const pinch_status status = pn_gguf_open_fd(&g, fd, "input", &err);
    close(fd);
    MUST((status == PINCH_OK) == (g != NULL));
    MUST(status == PINCH_OK || err.message[0]);
    for (size_t i = 0; g && i < pn_gguf_n_values(g); i++) walk_value(pn_gguf_value_at(g, i));
    for (size_t i = 0; g && i < pn_gguf_n_tensors(g); i++) walk_tensor(g, pn_gguf_tensor_at(g, i));
    if (g) MUST(pn_gguf_header_bytes(g) <= 16 * (uint64_t)size + (1 << 16));
    pn_gguf_close(g);
    return 0;
}
