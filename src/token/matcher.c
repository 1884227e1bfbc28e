/* token/matcher.c - an Aho-Corasick automaton finds, for each end in the text, the longest token that ends there; a heap takes these candidates in
 * the order of priority: rank of the token (longer first, then smaller id), then place.
 *
 * Why it gives what matching token after token over the whole text gives, in linear time. Taken regions are at least as long as any candidate that is
 * still waiting (white space that a token takes along lies against it). So a candidate [s, e) that meets a region meets it at s or at e - 1:
 *   e - 1 taken: no token can end at e any more; the candidate is gone.
 *   s taken, and that region ends at b < e: a token of at most e - b bytes may still end at e; it waits instead, with its own priority.
 *   neither: the candidate is the next match, for all that come before it in the order have been taken or cannot be.
 * A region of n bytes turns away only candidates of at most n bytes, so at most n ends after it, and regions are disjoint: all in all there
 * are at most as many new candidates as bytes. Finding the token of at most e - b bytes walks the chain of suffixes with jump pointers, in
 * logarithmic time. */
#include "token/matcher.h"

#include <stdlib.h>

#include "token/heap.h"

enum { ALL = 0, ALWAYS = 1, N_MODES = 2, MAX_BYTES = 1 << 20 };

typedef struct node {
    uint32_t child, sibling; /* 0: none */
    uint32_t suffix;         /* the longest proper suffix that is a node */
    uint32_t longest[N_MODES]; /* rank of the longest token that is a suffix of this node */
    unsigned char byte;
} node;
typedef struct entry {
    pinch_token id;
    uint32_t length;
    bool strips_left, strips_right;
    /* Tokens that are suffixes of this one, the longest first, down to the empty one; jump skips some: a skew-binary jump pointer. */
    struct { uint32_t shorter, jump, depth; } chain[N_MODES];
} entry;
struct pn_matcher {
    entry *entries; /* by rank; the last, of rank `none`, is the empty token, which ends every chain */
    uint32_t none;
    node *nodes; /* [0] is the root */
    uint32_t n_nodes;
    uint32_t root[256]; /* the root's children by byte */
    bool has[N_MODES];  /* there are tokens in this mode */
};

/* ---- making ---------------------------------------------------------------------------------- */

static int by_priority(const void *a, const void *b)
{
    const pn_special *x = a, *y = b;
    if (x->text.n != y->text.n) return x->text.n > y->text.n ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}
static uint32_t child_of(const pn_matcher *m, uint32_t at, unsigned char byte)
{
    if (at == 0) return m->root[byte];
    uint32_t child = m->nodes[at].child;
    while (child && m->nodes[child].byte != byte) child = m->nodes[child].sibling;
    return child;
}
static uint32_t next_node(const pn_matcher *m, uint32_t at, unsigned char byte)
{
    for (;;) {
        const uint32_t child = child_of(m, at, byte);
        if (child || at == 0) return child;
        at = m->nodes[at].suffix;
    }
}
static void insert(pn_matcher *m, uint32_t rank, const pn_special *token)
{
    uint32_t at = 0;
    for (size_t i = 0; i < token->text.n; i++) {
        const unsigned char byte = (unsigned char)token->text.p[i];
        uint32_t child = child_of(m, at, byte);
        if (!child) {
            child = m->n_nodes++;
            m->nodes[child] = (node){.sibling = m->nodes[at].child, .longest = {m->none, m->none}, .byte = byte};
            m->nodes[at].child = child;
            if (at == 0) m->root[byte] = child;
        }
        at = child;
    }
    m->nodes[at].longest[ALL] = rank;
    if (token->always) m->nodes[at].longest[ALWAYS] = rank;
}
/* Sets what depends on the node's suffix; the suffix is done already, as nodes come in order of depth. */
static void finish_node(pn_matcher *m, uint32_t at)
{
    node *x = &m->nodes[at];
    const uint32_t own = x->longest[ALL];
    for (int mode = 0; mode < N_MODES; mode++) {
        const uint32_t shorter = m->nodes[x->suffix].longest[mode];
        if (x->longest[mode] == m->none) x->longest[mode] = shorter;
        if (own == m->none) continue;
        const entry *e = m->entries;
        const uint32_t near = e[shorter].chain[mode].jump, far = e[near].chain[mode].jump;
        const uint32_t depth = e[shorter].chain[mode].depth, near_depth = e[near].chain[mode].depth, far_depth = e[far].chain[mode].depth;
        m->entries[own].chain[mode].shorter = shorter;
        m->entries[own].chain[mode].depth = depth + 1;
        m->entries[own].chain[mode].jump = depth - near_depth == near_depth - far_depth ? far : shorter;
    }
}
/* Nodes in order of depth; `queue` has room for all. */
static void finish_nodes(pn_matcher *m, uint32_t *queue)
{
    uint32_t n = 0;
    queue[n++] = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t child = m->nodes[queue[i]].child; child; child = m->nodes[child].sibling) {
            if (queue[i] != 0) m->nodes[child].suffix = next_node(m, m->nodes[queue[i]].suffix, m->nodes[child].byte);
            finish_node(m, child);
            queue[n++] = child;
        }
    }
}

pinch_status pn_matcher_make(pn_matcher **out, pn_special *list, size_t n, pinch_error *err)
{
    uint64_t bytes = 1; /* the root */
    for (size_t i = 0; i < n; i++) bytes += list[i].text.n;
    if (bytes > MAX_BYTES || n > MAX_BYTES)
        return pn_fail(err, PINCH_ERR_UNSUPPORTED, "tokenizer.ggml.tokens: the texts of special tokens have %" PRIu64 " bytes, at most %d are taken", bytes, MAX_BYTES);
    pn_matcher *m = pn_alloc_zero(1, sizeof *m);
    uint32_t *queue = pn_alloc(bytes, sizeof *queue);
    if (m) m->nodes = pn_alloc_zero(bytes, sizeof *m->nodes);
    if (m) m->entries = pn_alloc_zero(n + 1, sizeof *m->entries);
    if (!m || !queue || !m->nodes || !m->entries) {
        free(queue);
        pn_matcher_free(m);
        return pn_fail_memory(err, "the table of special tokens", bytes * sizeof(node));
    }
    if (n) qsort(list, n, sizeof *list, by_priority);
    m->none = (uint32_t)n;
    for (int mode = 0; mode < N_MODES; mode++) {
        m->nodes[0].longest[mode] = m->none;
        m->entries[n].chain[mode].shorter = m->entries[n].chain[mode].jump = m->none;
    }
    m->n_nodes = 1;
    for (uint32_t rank = 0; rank < m->none; rank++) {
        const pn_special *x = &list[rank];
        m->entries[rank] = (entry){.id = x->id, .length = (uint32_t)x->text.n, .strips_left = x->strips_left, .strips_right = x->strips_right};
        m->has[ALL] = true;
        m->has[ALWAYS] |= x->always;
        insert(m, rank, x);
    }
    finish_nodes(m, queue);
    free(queue);
    node *fitted = realloc(m->nodes, m->n_nodes * sizeof *fitted);
    if (fitted) m->nodes = fitted;
    *out = m;
    return PINCH_OK;
}

void pn_matcher_free(pn_matcher *m)
{
    if (!m) return;
    free(m->entries);
    free(m->nodes);
    free(m);
}

uint64_t pn_matcher_bytes(const pn_matcher *m) { return sizeof *m + (m->none + 1) * (uint64_t)sizeof *m->entries + m->n_nodes * (uint64_t)sizeof *m->nodes; }

/* ---- splitting ------------------------------------------------------------------------------- */

typedef struct splitter {
    const pn_matcher *m;
    const char *text;
    uint32_t n;
    int mode;
    pn_heap waiting;  /* (rank, end) */
    uint32_t *owner;  /* per byte: 1 + the region that holds it; 0: free */
    struct pn_fragment *region;
    uint32_t n_regions, capacity;
} splitter;

static bool find_candidates(splitter *s)
{
    const pn_matcher *m = s->m;
    uint32_t at = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        at = next_node(m, at, (unsigned char)s->text[i]);
        if (!at) continue; /* most bytes of most texts begin no token */
        const uint32_t rank = m->nodes[at].longest[s->mode];
        if (rank != m->none && !pn_heap_push(&s->waiting, pn_heap_key(rank, i + 1))) return false;
    }
    return true;
}
/* The longest token of at most `room` bytes on the chain of `rank`. */
static uint32_t shorter_within(const splitter *s, uint32_t rank, uint32_t room)
{
    const entry *e = s->m->entries;
    while (e[rank].length > room) {
        const uint32_t jump = e[rank].chain[s->mode].jump;
        rank = e[jump].length > room ? jump : e[rank].chain[s->mode].shorter;
    }
    return rank;
}
static bool is_c_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool take_region(splitter *s, const entry *e, uint32_t start, uint32_t end)
{
    while (e->strips_left && start > 0 && !s->owner[start - 1] && is_c_space(s->text[start - 1])) start--;
    while (e->strips_right && end < s->n && !s->owner[end] && is_c_space(s->text[end])) end++;
    if (s->n_regions == s->capacity) {
        const uint32_t capacity = s->capacity ? 2 * s->capacity : 16;
        struct pn_fragment *grown = realloc(s->region, capacity * sizeof *grown);
        if (!grown) return false;
        s->region = grown;
        s->capacity = capacity;
    }
    s->region[s->n_regions++] = (struct pn_fragment){start, end, e->id};
    for (uint32_t i = start; i < end; i++) s->owner[i] = s->n_regions;
    return true;
}
static bool take_candidates(splitter *s)
{
    while (s->waiting.n) {
        const uint64_t key = pn_heap_pop(&s->waiting);
        const uint32_t rank = (uint32_t)(key >> 32), end = (uint32_t)key;
        const entry *e = &s->m->entries[rank];
        const uint32_t start = end - e->length;
        if (s->owner[end - 1]) continue;
        if (s->owner[start]) {
            const uint32_t other = shorter_within(s, rank, end - s->region[s->owner[start] - 1].end);
            if (other != s->m->none && !pn_heap_push(&s->waiting, pn_heap_key(other, end))) return false;
        } else if (!take_region(s, e, start, end)) {
            return false;
        }
    }
    return true;
}
/* Regions in order of place with the text between them. */
static bool lay_out(const splitter *s, pn_piece_list *out)
{
    out->at = pn_alloc(2 * (uint64_t)s->n_regions + 1, sizeof *out->at);
    if (!out->at) return false;
    out->n = 0;
    for (uint32_t i = 0; i < s->n;) {
        struct pn_fragment f = {i, i, -1};
        if (s->owner && s->owner[i]) f = s->region[s->owner[i] - 1];
        else if (!s->owner) f.end = s->n;
        else while (f.end < s->n && !s->owner[f.end]) f.end++;
        out->at[out->n++] = f;
        i = f.end;
    }
    return true;
}

pinch_status pn_matcher_split(const pn_matcher *m, const char *text, size_t n, bool parse_special, pn_piece_list *out, pinch_error *err)
{
    splitter s = {.m = m, .text = text, .n = (uint32_t)n, .mode = parse_special ? ALL : ALWAYS};
    bool ok = !m->has[s.mode] || find_candidates(&s);
    if (ok && s.waiting.n) {
        s.owner = pn_alloc_zero(n, sizeof *s.owner);
        ok = s.owner && take_candidates(&s);
    }
    ok = ok && lay_out(&s, out);
    free(s.waiting.key);
    free(s.owner);
    free(s.region);
    return ok ? PINCH_OK : pn_fail_memory(err, "finding special tokens in a text", 4 * (uint64_t)n);
}
