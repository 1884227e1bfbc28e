/* tests/token_make.h - vocabularies made in memory, and a slow tokenizer that follows the definitions word by word, to compare with.
 *
 * The slow one shares no code with the fast one but the parser of expressions: special tokens one after the other over the whole text, words by
 * backtracking, the best pair by looking at all pairs. It knows none of the reference's patch-ups: texts in tests avoid the names that have them. */
#ifndef PN_TOKEN_MAKE_H
#define PN_TOKEN_MAKE_H

#include <sys/mman.h>
#include <unistd.h>

#include "base/utf8.h"
#include "test.h"
#include "token/pattern_int.h"
#include "token/pre.h"
#include "token/token.h"

enum { MAKE_TOKENS = 512, MAKE_MERGES = 512, MAKE_TEXT = 96 };
typedef struct make_text { char p[MAKE_TEXT]; size_t n; } make_text;
typedef struct make_vocab {
    const char *model, *pre, *name; /* NULL: left out */
    make_text text[MAKE_TOKENS], merge[MAKE_MERGES];
    int32_t type[MAKE_TOKENS];
    float score[MAKE_TOKENS];
    size_t n, n_merges;
    int bos, add_bos, space_prefix; /* -1: left out */
} make_vocab;

static inline int make_token(make_vocab *m, const char *p, size_t n, int type, float score)
{
    if (m->n == MAKE_TOKENS || n > MAKE_TEXT) return -1;
    memcpy(m->text[m->n].p, p, n);
    m->text[m->n].n = n;
    m->type[m->n] = type;
    m->score[m->n] = score;
    return (int)m->n++;
}
static inline int make_find(const make_vocab *m, const char *p, size_t n)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->text[i].n == n && memcmp(m->text[i].p, p, n) == 0) return (int)i;
    return -1;
}
static inline void make_merge(make_vocab *m, const char *left, size_t n_left, const char *right, size_t n_right)
{
    if (m->n_merges == MAKE_MERGES || n_left + 1 + n_right > MAKE_TEXT) return;
    make_text *t = &m->merge[m->n_merges++];
    memcpy(t->p, left, n_left);
    t->p[n_left] = ' ';
    memcpy(t->p + n_left + 1, right, n_right);
    t->n = n_left + 1 + n_right;
}

/* ---- a file of it ---------------------------------------------------------------------------- */

typedef struct make_bytes { char *p; size_t n, capacity; } make_bytes;
static inline void make_raw(make_bytes *b, const void *p, size_t n)
{
    if (b->n + n > b->capacity) {
        b->capacity = 2 * (b->n + n) + 64;
        b->p = realloc(b->p, b->capacity);
        if (!b->p) exit(1);
    }
    if (n) memcpy(b->p + b->n, p, n);
    b->n += n;
}
static inline void make_u32(make_bytes *b, uint32_t v) { make_raw(b, &v, 4); }
static inline void make_u64(make_bytes *b, uint64_t v) { make_raw(b, &v, 8); }
static inline void make_string(make_bytes *b, const char *p, size_t n)
{
    make_u64(b, n);
    make_raw(b, p, n);
}
static inline void make_key(make_bytes *b, uint64_t *count, const char *key, pn_gguf_kind kind)
{
    make_string(b, key, strlen(key));
    make_u32(b, (uint32_t)kind);
    ++*count;
}
static inline void make_array(make_bytes *b, uint64_t *count, const char *key, pn_gguf_kind item, size_t n)
{
    make_key(b, count, key, PN_GGUF_ARRAY);
    make_u32(b, (uint32_t)item);
    make_u64(b, n);
}
static inline void make_text_key(make_bytes *b, uint64_t *count, const char *key, const char *text)
{
    if (!text) return;
    make_key(b, count, key, PN_GGUF_STRING);
    make_string(b, text, strlen(text));
}
static inline void make_int_key(make_bytes *b, uint64_t *count, const char *key, pn_gguf_kind kind, int v)
{
    if (v < 0) return;
    make_key(b, count, key, kind);
    make_raw(b, &v, kind == PN_GGUF_BOOL ? 1 : 4);
}
/* NULL: the reader refuses it. */
static inline pn_gguf *make_open_bytes(const make_bytes *values, uint64_t n_values, pinch_error *err)
{
    make_bytes file = {0};
    make_raw(&file, "GGUF", 4);
    make_u32(&file, 3);
    make_u64(&file, 0);
    make_u64(&file, n_values);
    make_raw(&file, values->p, values->n);
    make_raw(&file, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32 - file.n % 32);
    pn_gguf *g = NULL;
    const int fd = memfd_create("vocabulary", 0);
    if (fd >= 0 && write(fd, file.p, file.n) == (ssize_t)file.n) pn_gguf_open_fd(&g, fd, "vocabulary", err);
    if (fd >= 0) close(fd);
    free(file.p);
    return g;
}
static inline pn_gguf *make_open(const make_vocab *m, pinch_error *err)
{
    make_bytes b = {0};
    uint64_t n = 0;
    make_text_key(&b, &n, "general.name", m->name);
    make_text_key(&b, &n, "tokenizer.ggml.model", m->model);
    make_text_key(&b, &n, "tokenizer.ggml.pre", m->pre);
    make_array(&b, &n, "tokenizer.ggml.tokens", PN_GGUF_STRING, m->n);
    for (size_t i = 0; i < m->n; i++) make_string(&b, m->text[i].p, m->text[i].n);
    make_array(&b, &n, "tokenizer.ggml.token_type", PN_GGUF_I32, m->n);
    make_raw(&b, m->type, m->n * sizeof *m->type);
    make_array(&b, &n, "tokenizer.ggml.scores", PN_GGUF_F32, m->n);
    make_raw(&b, m->score, m->n * sizeof *m->score);
    make_array(&b, &n, "tokenizer.ggml.merges", PN_GGUF_STRING, m->n_merges);
    for (size_t i = 0; i < m->n_merges; i++) make_string(&b, m->merge[i].p, m->merge[i].n);
    make_int_key(&b, &n, "tokenizer.ggml.bos_token_id", PN_GGUF_U32, m->bos);
    make_int_key(&b, &n, "tokenizer.ggml.add_bos_token", PN_GGUF_BOOL, m->add_bos);
    make_int_key(&b, &n, "tokenizer.ggml.add_space_prefix", PN_GGUF_BOOL, m->space_prefix);
    pn_gguf *g = make_open_bytes(&b, n, err);
    free(b.p);
    return g;
}

/* ---- the slow tokenizer ---------------------------------------------------------------------- */

typedef struct slow_piece { size_t start, end; int id; } slow_piece; /* id -1: text */
typedef struct slow {
    const make_vocab *m;
    const char *text;
    slow_piece *pieces;
    size_t n_pieces;
    int32_t *ids;
    size_t n_ids;
} slow;

static inline bool slow_is_special(int type) { return type >= 2 && type <= 4; }
static inline bool slow_space(char c) { return c == ' ' || (c >= 9 && c <= 13); }
/* Replaces piece i by what is left of it, the token, and what is right of it. */
static inline void slow_insert(slow *s, size_t i, size_t at, size_t length, int id, bool strip)
{
    const slow_piece old = s->pieces[i];
    size_t right = at + length;
    while (strip && right < old.end && slow_space(s->text[right])) right++;
    slow_piece with[3] = {{old.start, at, -1}, {at, right, id}, {right, old.end, -1}};
    slow_piece *out = with;
    size_t n = 3;
    if (with[2].start == with[2].end) n--;
    if (with[0].start == with[0].end) out++, n--;
    memmove(s->pieces + i + n, s->pieces + i + 1, (s->n_pieces - i - 1) * sizeof *out);
    memcpy(s->pieces + i, out, n * sizeof *out);
    s->n_pieces += n - 1;
}
static inline void slow_match(slow *s, int id, bool strip)
{
    const make_text *t = &s->m->text[id];
    for (size_t i = 0; i < s->n_pieces; i++) {
        const slow_piece p = s->pieces[i];
        for (size_t at = p.start; p.id < 0 && at + t->n <= p.end; at++) {
            if (memcmp(s->text + at, t->p, t->n) != 0) continue;
            slow_insert(s, i, at, t->n, id, strip);
            break; /* the right part is one of the next pieces */
        }
    }
}
static inline void slow_partition(slow *s, size_t n, bool parse_special)
{
    s->pieces = malloc((2 * n + 2) * sizeof *s->pieces);
    if (!s->pieces) exit(1);
    s->n_pieces = n ? 1 : 0;
    s->pieces[0] = (slow_piece){0, n, -1};
    const bool strip = s->m->name && strstr(s->m->name, "Phi-3");
    for (size_t length = MAKE_TEXT; length > 0; length--)
        for (size_t id = 0; id < s->m->n; id++)
            if (s->m->text[id].n == length && slow_is_special(s->m->type[id]) && (parse_special || s->m->type[id] == 4))
                slow_match(s, (int)id, strip && id > 1); /* the first two are <unk> and <s> */
}

/* One character of broken or sound UTF-8; returns its bytes. */
static inline size_t slow_char(const char *p, size_t n, uint32_t *c)
{
    const unsigned char *u = (const unsigned char *)p;
    const size_t length = u[0] < 0x80 ? 1 : u[0] < 0xc0 || u[0] > 0xf7 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
    bool whole = length > 0 && length <= n;
    *c = length <= 1 ? u[0] : u[0] & (0x7fu >> length);
    for (size_t i = 1; i < length && whole; i++) {
        whole = (u[i] & 0xc0) == 0x80;
        *c = *c << 6 | (u[i] & 0x3fu);
    }
    if (!whole || *c > 0x10ffff) *c = 0xfffd;
    return whole ? length : 1;
}
/* Backtracking, exactly as the code says. Returns where the match ends; SIZE_MAX: none. */
static inline size_t slow_run(const pn_program *p, int pc, const char *s, size_t at, size_t end)
{
    for (;;) {
        const pn_instruction *x = &p->code[pc];
        uint32_t c = 0;
        const size_t length = at < end ? slow_char(s + at, end - at, &c) : 0;
        const bool holds = length && (x->op == PN_OP_SET || x->op == PN_OP_BEFORE) && pn_set_holds(p, &p->sets[x->a], c, pn_unicode_kind(c));
        if (x->op == PN_OP_MATCH) return at;
        if (x->op == PN_OP_SET && !holds) return SIZE_MAX;
        if (x->op == PN_OP_BEFORE && length && !holds) return SIZE_MAX;
        if (x->op == PN_OP_SPLIT) {
            const size_t first = slow_run(p, pc + x->a, s, at, end);
            if (first != SIZE_MAX) return first;
        }
        if (x->op == PN_OP_SET) at += length;
        pc += x->op == PN_OP_JUMP ? x->a : x->op == PN_OP_SPLIT ? x->b : 1;
    }
}
static inline bool slow_is_itself(unsigned byte) { return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae; }
/* Canonical characters of a text; spaces escaped (raw), or each byte as a character of the byte alphabet. */
static inline make_bytes slow_word(const char *p, size_t n, bool raw)
{
    make_bytes b = {0};
    for (size_t i = 0; i < n;) {
        uint32_t c;
        i += slow_char(p + i, n - i, &c);
        char utf8[4] = {(char)0xed, (char)(0x80 | (c >> 6 & 0x3f)), (char)(0x80 | (c & 0x3f)), 0};
        const size_t bytes = c >= 0xd800 && c <= 0xdfff ? 3 : pn_utf8_encode(utf8, c == ' ' && raw ? 0x2581 : c);
        if (raw) make_raw(&b, utf8, bytes);
        for (size_t k = 0; k < bytes && !raw; k++) {
            unsigned mapped = (unsigned char)utf8[k];
            char two[4];
            if (!slow_is_itself(mapped)) {
                unsigned before = 0;
                for (unsigned x = 0; x < mapped; x++) before += !slow_is_itself(x);
                mapped = 0x100 + before;
            }
            make_raw(&b, two, pn_utf8_encode(two, mapped));
        }
    }
    return b;
}
/* The rank of a pair, lower is sooner; -1: no merge. */
static inline double slow_rank(const make_vocab *m, bool spm, const char *p, size_t left, size_t both)
{
    if (spm) {
        const int id = make_find(m, p, both);
        return id < 0 ? -1e300 : -(double)m->score[id];
    }
    for (size_t i = 0; i < m->n_merges; i++) {
        const make_text *t = &m->merge[i];
        if (t->n == both + 1 && memcmp(t->p, p, left) == 0 && t->p[left] == ' ' && memcmp(t->p + left + 1, p + left, both - left) == 0) return (double)i;
    }
    return -1e300;
}
static inline void slow_bytes(slow *s, const char *p, size_t n, bool hex, bool plain, int last)
{
    for (size_t i = 0; i < n; i++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", (unsigned)(unsigned char)p[i]);
        int id = hex ? make_find(s->m, text, 6) : -1;
        if (id < 0 && plain) id = make_find(s->m, p + i, 1);
        if (id < 0) id = last;
        if (id >= 0) s->ids[s->n_ids++] = id;
    }
}
static inline void slow_merge(slow *s, const char *p, size_t n, bool spm, bool raw)
{
    size_t *start = malloc((n + 1) * sizeof *start), count = 0;
    if (!start) exit(1);
    for (size_t at = 0; at < n; count++) {
        const unsigned char lead = (unsigned char)p[at];
        start[count] = at;
        at += lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    }
    start[count] = n;
    for (;;) {
        size_t best = SIZE_MAX;
        double best_rank = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            const double rank = slow_rank(s->m, spm, p + start[i], start[i + 1] - start[i], start[i + 2] - start[i]);
            if (rank > -1e299 && (best == SIZE_MAX || rank < best_rank)) best = i, best_rank = rank;
        }
        if (best == SIZE_MAX) break;
        memmove(start + best + 1, start + best + 2, (count - best - 1) * sizeof *start);
        count--;
    }
    for (size_t i = 0; i < count; i++) {
        const int id = make_find(s->m, p + start[i], start[i + 1] - start[i]);
        if (id >= 0) s->ids[s->n_ids++] = id;
        else slow_bytes(s, p + start[i], start[i + 1] - start[i], spm || raw, spm || !raw, spm ? 0 : -1);
    }
    free(start);
}
static inline void slow_words(slow *s, const pn_pre *pre, int pass, size_t start, size_t end)
{
    const bool raw = pre->flags & PN_PRE_RAW;
    if (pass == PN_MAX_PASSES || !pre->passes[pass]) {
        make_bytes word = slow_word(s->text + start, end - start, raw);
        bool newlines = raw;
        for (size_t i = start; i < end; i++) newlines &= s->text[i] == '\n';
        const int whole = newlines || pre->flags & PN_PRE_IGNORE_MERGES ? make_find(s->m, word.p, word.n) : -1;
        if (whole >= 0) s->ids[s->n_ids++] = whole;
        else slow_merge(s, word.p, word.n, false, raw);
        free(word.p);
        return;
    }
    static pn_program program[PN_MAX_PASSES];
    pn_pattern_parse(&program[pass], pre->passes[pass], NULL);
    size_t gap = start;
    for (size_t at = start; at < end;) {
        const size_t stop = slow_run(&program[pass], 0, s->text, at, end);
        if (stop == SIZE_MAX) {
            uint32_t c;
            at += slow_char(s->text + at, end - at, &c);
            continue;
        }
        if (at > gap) slow_words(s, pre, pass + 1, gap, at);
        slow_words(s, pre, pass + 1, at, stop);
        at = gap = stop;
    }
    if (end > gap) slow_words(s, pre, pass + 1, gap, end);
}
static inline void slow_spm(slow *s, size_t start, size_t end, bool prefix)
{
    make_bytes b = {0};
    if (prefix) make_raw(&b, "\xe2\x96\x81", 3);
    for (size_t i = start; i < end; i++) {
        if (s->text[i] == ' ') make_raw(&b, "\xe2\x96\x81", 3);
        else make_raw(&b, &s->text[i], 1);
    }
    slow_merge(s, b.p, b.n, true, false);
    free(b.p);
}
/* ids: malloc'ed, the caller's. */
static inline slow slow_encode(const make_vocab *m, const char *text, size_t n, bool add_special, bool parse_special)
{
    slow s = {.m = m, .text = text};
    const bool spm = strcmp(m->model, "llama") == 0;
    const pn_pre *pre = spm ? NULL : pn_pre_find((pn_str){m->pre, strlen(m->pre)});
    s.ids = malloc((8 * n + 16) * sizeof *s.ids);
    if (!s.ids) exit(1);
    slow_partition(&s, n, parse_special);
    if (add_special && m->add_bos == 1) s.ids[s.n_ids++] = m->bos;
    bool after_special = true;
    for (size_t i = 0; i < s.n_pieces; i++) {
        const slow_piece p = s.pieces[i];
        if (p.id >= 0) s.ids[s.n_ids++] = p.id;
        else if (spm) slow_spm(&s, p.start, p.end, m->space_prefix && after_special);
        else slow_words(&s, pre, 0, p.start, p.end);
        after_special = p.id >= 0;
    }
    free(s.pieces);
    return s;
}

#endif
