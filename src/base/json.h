/* base/json.h - JSON: a strict bounded reader into an arena, and a writer. Locale-free. */
#ifndef PN_JSON_H
#define PN_JSON_H

#include "base/arena.h"

typedef enum pn_json_kind { PN_JSON_NULL, PN_JSON_BOOL, PN_JSON_INT, PN_JSON_FLOAT, PN_JSON_STRING, PN_JSON_ARRAY, PN_JSON_OBJECT } pn_json_kind;

/* 1 is INT, 1.0 and 1e3 are FLOAT; an integer beyond 64 bits is FLOAT. Objects keep their order; a repeated key keeps its first place and last value. */
typedef struct pn_json {
    pn_json_kind kind;
    bool boolean;
    int64_t integer;
    double number;
    const char *text; /* string bytes, NUL-terminated, may hold NULs */
    size_t n;         /* bytes of text, items of array, members of object */
    struct pn_json *items;       /* array items or object values */
    struct pn_json_key *keys;    /* object keys */
} pn_json;
typedef struct pn_json_key { const char *text; size_t n; } pn_json_key;

/* Everything lives in the arena. Depth at most 100. The sentence of an error names line and column. */
pinch_status pn_json_parse(pn_json *out, pn_arena *arena, const char *text, size_t n, pinch_error *err);
const pn_json *pn_json_member(const pn_json *object, const char *key); /* NULL: none */

/* A writer into a growing buffer; the first failure sticks in `failed`. */
typedef struct pn_json_writer {
    char *data;
    size_t n, capacity;
    bool failed;
    bool comma; /* a value was written at this level */
    int depth;
} pn_json_writer;
void pn_json_writer_free(pn_json_writer *w);
void pn_json_object(pn_json_writer *w);      /* { ... */
void pn_json_object_end(pn_json_writer *w);  /* } */
void pn_json_array(pn_json_writer *w);
void pn_json_array_end(pn_json_writer *w);
void pn_json_put_key(pn_json_writer *w, const char *key);
void pn_json_string(pn_json_writer *w, const char *text, size_t n); /* bytes that are part of no character become U+FFFD */
void pn_json_cstring(pn_json_writer *w, const char *text);
void pn_json_base64(pn_json_writer *w, const void *bytes, size_t n);
void pn_json_int(pn_json_writer *w, int64_t v);
void pn_json_uint(pn_json_writer *w, uint64_t v);
void pn_json_double(pn_json_writer *w, double v); /* shortest that reads back; not finite: null */
void pn_json_float(pn_json_writer *w, float v);
void pn_json_bool(pn_json_writer *w, bool v);
void pn_json_null(pn_json_writer *w);

#endif
