/* chat/filters.h - what the files of filters share: each has a table, filters.c finds the row. */
#ifndef PN_CHAT_FILTERS_H
#define PN_CHAT_FILTERS_H

#include "chat/texts.h"

typedef struct filter_table { const builtin *rows; size_t n; } filter_table;
extern const filter_table pn_j_text_filters, pn_j_markup_filters, pn_j_sequence_filters, pn_j_lazy_filters, pn_j_order_filters, pn_j_number_filters, pn_j_wrap_filters;

/* item.attribute by a path such as "a.0.b" or a number; `otherwise` (may be NULL) stands for what is undefined. */
bool pn_j_path(render *st, const value *item, const value *path, const value *otherwise, value *out);
bool pn_j_fold_case(render *st, const value *v, value *out); /* a str in lower case, anything else as it is */
bool pn_j_soft_text(render *st, const value *v, value *out); /* str(v), keeping a mark */
bool pn_j_plain_text(render *st, const value *v, value *out); /* str(v) without a mark */
bool pn_j_own_attribute(render *st, const value *self, const text *name_of, value *out, bool *found); /* not the keys of a dict */

/* Stable; by keys[i] for items[i]; both are reordered. */
bool pn_j_sort(render *st, value *keys, value *items, size_t n, bool reverse);

#endif
