/* chat/texts.h - Python's string operations, shared by methods and filters. Positions and widths count characters. */
#ifndef PN_CHAT_TEXTS_H
#define PN_CHAT_TEXTS_H

#include "chat/value.h"

typedef enum strip_side { STRIP_LEFT = 1, STRIP_RIGHT = 2, STRIP_BOTH = 3 } strip_side;
typedef enum case_change { CASE_UPPER, CASE_LOWER, CASE_CAPITALIZE, CASE_TITLE, CASE_SWAP, CASE_FOLD, CASE_WORDS /* the title filter */ } case_change;
typedef enum pad_mode { PAD_LEFT, PAD_RIGHT, PAD_CENTER } pad_mode; /* where the text stays: ljust, rjust, center */

/* All results keep the mark of `self` unless said otherwise. */
bool pn_j_strip(render *st, const value *self, const value *chars, strip_side side, value *out); /* chars: str, or NULL or none for white space */
bool pn_j_case(render *st, const value *self, case_change how, value *out);
bool pn_j_replace(render *st, const value *self, const text *old, const text *new_text, int64_t count, value *out); /* count < 0: all */
bool pn_j_split(render *st, const value *self, const text *separator, int64_t limit, bool from_right, list **out); /* separator NULL: white space */
bool pn_j_splitlines(render *st, const value *self, bool keep_ends, list **out);
bool pn_j_pad(render *st, const value *self, int64_t width, const text *fill, pad_mode mode, value *out);
bool pn_j_join(render *st, const text *separator, list *parts, value *out); /* of str; unmarked */
bool pn_j_reverse_text(render *st, const value *self, value *out);
size_t pn_j_char_index(const text *t, size_t offset); /* of a byte offset */
bool pn_j_all_chars(const text *t, unsigned classes); /* every character has one of the classes, and there is one */
bool pn_j_is_cased(const text *t, unsigned wanted);   /* islower, isupper */

/* arguments of builtins */
bool pn_j_want_int(render *st, const value *v, const char *what, int64_t *out);
bool pn_j_want_str(render *st, const value *v, const char *what);
bool pn_j_given(const parameters *p, int i); /* given and not none */

#endif
