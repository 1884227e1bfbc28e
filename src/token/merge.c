/* token/merge.c - merges the characters of a word pair by pair, best pair first: BPE by rank of the merge, SPM by score of the token.
 *
 * Symbols are linked; a heap holds (rank, left symbol). An entry counts only while the left symbol's pair still has that rank: when either side changes, the
 * pair's rank is looked up anew, so stale entries fall out by themselves. A pair of the same rank at the same place is the same pair to the order. */
#include "base/math.h"
#include "token/token_int.h"

#define NONE UINT32_MAX

bool pn_merger_put(pn_merger *m, pinch_token id)
{
    if (m->n_ids == m->id_capacity) {
        const size_t capacity = m->id_capacity ? 2 * m->id_capacity : 64;
        pinch_token *grown = capacity <= SIZE_MAX / sizeof *grown ? realloc(m->ids, capacity * sizeof *grown) : NULL;
        if (!grown) return false;
        m->ids = grown;
        m->id_capacity = capacity;
    }
    m->ids[m->n_ids++] = id;
    return true;
}
bool pn_merger_reserve(pn_merger *m, size_t n)
{
    if (n <= m->text_capacity) return true;
    const size_t capacity = n < 256 ? 256 : n + n / 2;
    char *grown = realloc(m->text, capacity);
    if (!grown) return false;
    m->text = grown;
    m->text_capacity = capacity;
    return true;
}
void pn_merger_free(pn_merger *m)
{
    free(m->text);
    free(m->symbols);
    free(m->heap.key);
}

static pn_symbol *new_symbol(pn_merger *m, size_t n)
{
    if (n == m->symbol_capacity) {
        const size_t capacity = n ? 2 * n : 64;
        pn_symbol *grown = capacity <= SIZE_MAX / sizeof *grown ? realloc(m->symbols, capacity * sizeof *grown) : NULL;
        if (!grown) return NULL;
        m->symbols = grown;
        m->symbol_capacity = capacity;
    }
    return &m->symbols[n];
}
/* Bytes of the character at text[at]; BPE text is well-formed, for it was written from characters. */
static size_t character(const pn_merger *m, size_t at)
{
    const size_t n = pn_lead_bytes((unsigned char)m->text[at]);
    return n < m->n - at ? n : m->n - at;
}
static pn_str symbol_text(const pn_merger *m, const pn_symbol *s)
{
    const size_t end = s->next == NONE ? m->n : m->symbols[s->next].start;
    return (pn_str){m->text + s->start, end - s->start};
}

/* A score as a rank: the higher the score, the lower; NaN last. */
static uint32_t score_rank(const pn_vocab *v, pinch_token id)
{
    double score = 0;
    if (v->scores) pn_gguf_float_at(v->scores, (uint64_t)id, &score);
    const float f = (float)score + 0.0f; /* -0 becomes 0 */
    const uint32_t bits = pn_float_bits(f);
    if (f != f) return NONE - 1;
    return bits >> 31 ? bits : ~(bits | 0x80000000u);
}
static uint32_t pair_rank(const pn_merger *m, const pn_symbol *left, const pn_symbol *right)
{
    const pn_str a = symbol_text(m, left), b = symbol_text(m, right);
    if (m->v->family == PN_BPE) {
        const pn_key key = pn_key_of_pair(a, left->hash, b, right->hash);
        return (uint32_t)pn_strings_find(&m->v->merges, &key); /* -1 is NONE */
    }
    const pinch_token id = pn_vocab_find(m->v, a.p, a.n + b.n);
    return id < 0 ? NONE : score_rank(m->v, id);
}
/* Looks up the pair that begins at symbol i and puts it into the heap. */
static bool consider(pn_merger *m, uint32_t i)
{
    pn_symbol *s = &m->symbols[i];
    s->rank = s->next == NONE ? NONE : pair_rank(m, s, &m->symbols[s->next]);
    return s->rank == NONE || pn_heap_push(&m->heap, pn_heap_key(s->rank, i));
}
static bool split_characters(pn_merger *m, uint32_t *n_symbols)
{
    uint32_t n = 0;
    for (size_t at = 0, length; at < m->n; at += length, n++) {
        pn_symbol *s = new_symbol(m, n);
        if (!s) return false;
        length = character(m, at);
        *s = (pn_symbol){.start = (uint32_t)at, .previous = n ? n - 1 : NONE, .next = at + length < m->n ? n + 1 : NONE};
        if (m->v->family == PN_BPE) s->hash = pn_text_hash(m->text + at, length);
    }
    *n_symbols = n;
    return true;
}
static bool merge_at(pn_merger *m, uint32_t i)
{
    pn_symbol *left = &m->symbols[i], *right = &m->symbols[left->next];
    left->next = right->next;
    right->rank = NONE;
    if (right->next != NONE) m->symbols[right->next].previous = i;
    if (m->v->family == PN_BPE) {
        const pn_str text = symbol_text(m, left);
        left->hash = pn_text_hash(text.p, text.n);
    }
    return consider(m, i) && (left->previous == NONE || consider(m, left->previous));
}
/* The token of a symbol, or of each of its bytes. */
static bool put_symbol(pn_merger *m, const pn_symbol *s)
{
    const pn_str text = symbol_text(m, s);
    const pn_key key = {text, {NULL, 0}, m->v->family == PN_BPE ? s->hash : pn_text_hash(text.p, text.n)};
    const pinch_token id = pn_strings_find(&m->v->texts, &key);
    if (id >= 0) return pn_merger_put(m, id);
    for (size_t i = 0; i < text.n; i++) {
        const pinch_token byte = m->v->byte_token[(unsigned char)text.p[i]];
        if (byte >= 0 && !pn_merger_put(m, byte)) return false;
    }
    return true;
}

bool pn_merge_word(pn_merger *m)
{
    uint32_t n = 0;
    m->heap.n = 0;
    if (!split_characters(m, &n)) return false;
    for (uint32_t i = 0; i + 1 < n; i++)
        if (!consider(m, i)) return false;
    if (n) m->symbols[n - 1].rank = NONE;
    while (m->heap.n) {
        const uint64_t key = pn_heap_pop(&m->heap);
        const uint32_t i = (uint32_t)key;
        if (m->symbols[i].rank == key >> 32 && !merge_at(m, i)) return false;
    }
    for (uint32_t i = 0; n && i != NONE; i = m->symbols[i].next)
        if (!put_symbol(m, &m->symbols[i])) return false;
    return true;
}
