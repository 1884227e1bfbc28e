/* token/pattern.h - the regular expressions of pre-tokenizers, compiled to automata: one table step a character, linear time.
 *
 * Knows code points and Unicode categories, no vocabulary. Immutable after compilation.
 * Syntax: literals; \r \n \s \S \p{L} and the other major categories; [...] with ranges, ^, \x{41-5A B5} (hexadecimal code points) and -- (what follows
 * is taken out again); (?:...), |, ?, *, +, {m,n}, (?!\S). Greedy, first alternative first, as in Perl. \s is White_Space. */
#ifndef PN_TOKEN_PATTERN_H
#define PN_TOKEN_PATTERN_H

#include "base/base.h"

typedef struct pn_pattern pn_pattern;

pinch_status pn_pattern_compile(pn_pattern **out, const char *expression, pinch_error *err);
void pn_pattern_free(pn_pattern *p); /* NULL is fine */
uint64_t pn_pattern_bytes(const pn_pattern *p);
/* The leftmost match in text[at .. end), where the text ends at `end` and is not looked at before `at`. False: none. Matches are never empty. */
bool pn_pattern_find(const pn_pattern *p, const char *text, size_t at, size_t end, size_t *from, size_t *to);

#endif
