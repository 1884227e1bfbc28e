/* chat/chat.h - chat templates: a bounded Jinja renderer.
 *
 * Renders byte for byte what transformers renders (docs/FORMATS.md), within bounds of time, memory and depth: a template is model-file data
 * and hostile. Stands on base alone. Knows no tokens and no models. */
#ifndef PN_CHAT_H
#define PN_CHAT_H

#include "base/json.h"

typedef struct pn_template pn_template;

/* Parses. The source is copied. Errors name line and column. */
pinch_status pn_template_open(pn_template **out, const char *source, size_t n, pinch_error *err);
void pn_template_close(pn_template *t); /* NULL is fine */
/* Renders with the members of `context` (an object) as the variables. *out malloc'ed, the caller's. `now`: local seconds since 1970 (no zone is applied)
 * for strftime_now; INT64_MIN: the system's clock and zone. A template may be rendered by several threads at once. */
pinch_status pn_template_render(const pn_template *t, const pn_json *context, int64_t now, char **out, size_t *n_out, pinch_error *err);

extern const char pn_template_chatml[]; /* what models without a template get */

#endif
