/* Any bytes through the tokenizers of two golden models (BPE, SPM): ids of the vocabulary; decoded, the stream decoder and the whole agree.
 *
 * The first byte chooses model and options; the rest is the text. */
#include "fuzz.h"

#include "token/token.h"

typedef struct opened {
    pn_gguf *g;
    pn_vocab *v;
} opened;

static opened open_vocab(const char *path)
{
    opened o = {0};
    pinch_error err = {0};
    if (pn_gguf_open(&o.g, path, &err) != PINCH_OK || pn_vocab_open(&o.v, o.g, &err) != PINCH_OK) {
        fprintf(stderr, "%s: %s (run from the repository's root)\n", path, err.message);
        exit(2);
    }
    return o;
}

/* The same bytes come out of the stream decoder, cut anywhere, as out of the pieces joined. */
static void check_stream(const pn_vocab *v, const pinch_token *ids, size_t n)
{
    pn_stream stream = {0};
    char piece[4096], out[4096 + 8], tail[8];
    uint64_t in = 0, through = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t bytes = pn_piece(v, ids[i], true, piece, sizeof piece);
        if (bytes > sizeof piece) return;
        in += bytes;
        through += pn_stream_put(&stream, piece, bytes, out);
    }
    MUST(through + pn_stream_end(&stream, tail) == in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static opened models[2];
    if (!models[0].v) {
        models[0] = open_vocab("tests/golden/llama-f32/model.gguf");
        models[1] = open_vocab("tests/golden/gemma3-q8/model.gguf");
    }
    const uint8_t how = fuzz_byte(&data, &size);
    const pn_vocab *v = models[how & 1].v;
    pinch_token *ids = NULL;
    char *text = NULL;
    size_t n = 0, n_text = 0;
    pinch_error err = {0};
    if (pn_encode(v, (const char *)data, size, how & 2, how & 4, &ids, &n, &err) != PINCH_OK) {
        MUST(err.message[0]);
        return 0;
    }
    for (size_t i = 0; i < n; i++) MUST(ids[i] >= 0 && ids[i] < pn_vocab_size(v));
    check_stream(v, ids, n);
    MUST(pn_decode(v, ids, n, how & 8, how & 16, &text, &n_text, &err) == PINCH_OK);
    free(text);
    free(ids);
    return 0;
}
