/* chat/filters.c - filters on single values, and the tables of all filters. */
#include "chat/filters.h"
#include "chat/numbers.h"

#include "base/number.h"

#include <math.h>

bool pn_j_soft_text(render *st, const value *v, value *out)
{
    return pn_j_to_text(st, v, out);
}

bool pn_j_plain_text(render *st, const value *v, value *out)
{
    if (!pn_j_to_text(st, v, out)) return false;
    out->marked = false;
    return true;
}

/* ---- numbers ---------------------------------------------------------------------------------- */

static bool filter_abs(render *st, const value *self, const parameters *p, value *out)
{
    (void)p;
    if (!pn_j_is_number(self)) return pn_j_fail(st, "abs needs a number, not a %s", pn_j_type_name(self));
    if (self->kind == V_FLOAT) return ((*out = v_float(fabs(self->as.number))), true);
    if (pn_j_as_int(self) < 0) return pn_j_negate(st, self, out);
    *out = v_int(pn_j_as_int(self));
    return true;
}

/* A float cut off to an integer; *bad: it has none. */
static bool cut_off(render *st, double d, value *out, bool *bad)
{
    *bad = d - d != 0;
    if (*bad) return true;
    if (!(d > -9.2233720368547e18 && d < 9.2233720368547e18)) return pn_j_fail(st, "an integer beyond 64 bits");
    *out = v_int((int64_t)d);
    return true;
}

static bool text_to_int(render *st, const text *t, int64_t base, value *out, bool *bad)
{
    int64_t i;
    bool overflow;
    double d;
    *bad = false;
    if (base >= 0 && base <= 36 && base != 1 && pn_j_parse_int(t->data, t->n, (int)base, &i, &overflow)) {
        if (overflow) return pn_j_fail(st, "an integer beyond 64 bits");
        *out = v_int(i);
        return true;
    }
    *bad = !pn_j_parse_float(t->data, t->n, &d);
    return *bad || cut_off(st, d, out, bad);
}

static bool filter_int(render *st, const value *self, const parameters *p, value *out)
{
    int64_t base = 10;
    bool bad = true;
    if (p->has[1] && !pn_j_want_int(st, &p->at[1], "base", &base)) return false;
    if (self->kind == V_UNDEFINED) return pn_j_undefined_error(st, self);
    if (self->kind == V_STR && !text_to_int(st, self->as.text, base, out, &bad)) return false;
    if (self->kind == V_FLOAT && !cut_off(st, self->as.number, out, &bad)) return false;
    if (self->kind == V_INT || self->kind == V_BOOL || self->kind == V_BIG) {
        *out = self->kind == V_BOOL ? v_int(self->as.boolean) : *self;
        return true;
    }
    if (bad) *out = p->has[0] ? p->at[0] : v_int(0);
    return true;
}

static bool filter_float(render *st, const value *self, const parameters *p, value *out)
{
    double d;
    if (self->kind == V_UNDEFINED) return pn_j_undefined_error(st, self);
    if (pn_j_is_number(self)) *out = v_float(pn_j_as_double(self));
    else if ((self->kind == V_STR || self->kind == V_BIG) && pn_j_parse_float(self->as.text->data, self->as.text->n, &d)) return *out = v_float(d), pn_j_float_work(st, d);
    else *out = p->has[0] ? p->at[0] : v_float(0);
    return true;
}

static double power_of_ten(int64_t n)
{
    return pn_j_power(10, (double)n);
}

/* To a multiple of 10^places, half to even. */
static bool round_integer(render *st, int64_t v, int64_t places, value *out)
{
    int64_t unit = 1;
    for (int64_t i = 0; i < places; i++) {
        if (__builtin_mul_overflow(unit, (int64_t)10, &unit)) return ((*out = v_int(0)), true);
    }
    int64_t rest = v % unit, down = v - rest, half = rest < 0 ? -rest : rest;
    bool away = half > unit - half || (half == unit - half && (down / unit) % 2 != 0);
    if (away && __builtin_add_overflow(down, v < 0 ? -unit : unit, &down)) return pn_j_fail(st, "an integer beyond 64 bits");
    *out = v_int(down);
    return true;
}

static double round_float(double v, int64_t places)
{
    char line[400];
    double r = v;
    if (v - v != 0 || places > PN_FIXED_DECIMALS) return v;
    if (places < 0) return places < -308 ? copysign(0, v) : rint(v / power_of_ten(-places)) * power_of_ten(-places);
    pn_parse_double(line, pn_format_fixed(line, v, (int)places), &r);
    return r;
}

static bool filter_round(render *st, const value *self, const parameters *p, value *out)
{
    int64_t places = 0;
    bool up = p->has[1] && pn_j_is_text(&p->at[1], "ceil"), down = p->has[1] && pn_j_is_text(&p->at[1], "floor");
    if (p->has[1] && !up && !down && !pn_j_is_text(&p->at[1], "common")) return pn_j_fail(st, "the method of round is common, ceil or floor");
    if (p->has[0] && !pn_j_want_int(st, &p->at[0], "precision", &places)) return false;
    if (self->kind == V_UNDEFINED) return pn_j_undefined_error(st, self);
    if (!pn_j_is_number(self)) return pn_j_fail(st, "round needs a number, not a %s", pn_j_type_name(self));
    if (up || down) {
        double unit = power_of_ten(places), scaled = pn_j_as_double(self) * unit;
        if (scaled - scaled != 0) return pn_j_fail(st, "round needs a finite number");
        *out = v_float(((up ? ceil(scaled) : floor(scaled)) + 0.0) / unit);
        return true;
    }
    if (!pn_j_float_work(st, self->kind == V_FLOAT ? self->as.number : 0)) return false;
    if (self->kind == V_FLOAT) *out = v_float(round_float(self->as.number, places));
    else if (places >= 0) *out = v_int(pn_j_as_int(self));
    else return round_integer(st, pn_j_as_int(self), -places, out);
    return true;
}

static bool filter_filesize(render *st, const value *self, const parameters *p, value *out)
{
    static const char *const units[2][8] = {{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"}, {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}};
    bool binary = p->has[0] && pn_j_truth(&p->at[0]);
    double base = binary ? 1024 : 1000, unit = base * base, bytes = 0;
    char line[420];
    if (self->kind == V_UNDEFINED) return pn_j_undefined_error(st, self);
    if (pn_j_is_number(self)) bytes = pn_j_as_double(self);
    else if (self->kind != V_STR || !pn_j_parse_float(self->as.text->data, self->as.text->n, &bytes)) return pn_j_fail(st, "filesizeformat needs a number");
    if (bytes == 1) return pn_j_str_view(st, "1 Byte", 6, out);
    size_t n, i = 0;
    if (bytes < base) {
        n = pn_format_fixed(line, trunc(bytes) + 0.0, 0);
        memcpy(line + n, " Bytes", 6);
        return pn_j_str(st, line, n + 6, out);
    }
    for (; i < 7 && bytes >= unit; i++) unit *= base;
    n = pn_format_fixed(line, base * bytes / unit, 1);
    line[n++] = ' ';
    size_t length = strlen(units[binary][i]);
    memcpy(line + n, units[binary][i], length);
    return pn_j_str(st, line, n + length, out);
}

static bool random_place(render *st, int64_t n, value *out)
{
    st->random ^= st->random << 13;
    st->random ^= st->random >> 7;
    st->random ^= st->random << 17;
    *out = v_int((int64_t)(st->random % (uint64_t)n));
    return true;
}

static bool filter_random(render *st, const value *self, const parameters *p, value *out)
{
    int64_t n;
    value place;
    (void)p;
    if (self->kind == V_DICT || self->kind == V_VIEW) return pn_j_fail(st, "random needs a sequence, not a %s", pn_j_type_name(self));
    if (!pn_j_length(st, self, &n)) return false;
    if (!n) return ((*out = pn_j_undefined_hint(st, "no random item of an empty sequence")), true);
    return random_place(st, n, &place) && pn_j_item(st, self, &place, out);
}

/* ---- anything --------------------------------------------------------------------------------- */

static bool filter_default(render *st, const value *self, const parameters *p, value *out)
{
    bool replace = self->kind == V_UNDEFINED || (p->has[1] && pn_j_truth(&p->at[1]) && !pn_j_truth(self));
    if (!replace) *out = *self;
    else if (p->has[0]) *out = p->at[0];
    else return pn_j_str_view(st, "", 0, out);
    return true;
}

static bool filter_attr(render *st, const value *self, const parameters *p, value *out)
{
    bool found;
    if (!pn_j_want_str(st, &p->at[0], "an attribute's name")) return false;
    if (self->kind == V_UNDEFINED) return pn_j_undefined_error(st, self);
    if (!pn_j_own_attribute(st, self, p->at[0].as.text, out, &found)) return false;
    if (found && pn_j_is_change(out)) *out = pn_j_undefined(U_UNSAFE, p->at[0].as.text, (kind)self->kind);
    if (!found) *out = pn_j_undefined(U_ATTRIBUTE, p->at[0].as.text, (kind)self->kind);
    return true;
}

static bool filter_length(render *st, const value *self, const parameters *p, value *out)
{
    int64_t n;
    (void)p;
    if (!pn_j_length(st, self, &n)) return false;
    *out = v_int(n);
    return true;
}

static bool json_separators(render *st, const value *v, json_style *style)
{
    if (v->kind == V_NONE) return true;
    bool pair = (v->kind == V_TUPLE || v->kind == V_LIST) && v->as.list->n == 2;
    if (!pair || v->as.list->items[0].kind != V_STR || v->as.list->items[1].kind != V_STR) return pn_j_fail(st, "separators must be two str");
    const text *item = v->as.list->items[0].as.text, *key = v->as.list->items[1].as.text;
    style->item_separator = item->data;
    style->n_item = item->n;
    style->key_separator = key->data;
    style->n_key = key->n;
    return true;
}

static bool json_indent(render *st, const value *v, json_style *style)
{
    int64_t width;
    char *blanks;
    value held;
    style->pretty = v->kind != V_NONE;
    if (v->kind == V_NONE) return true;
    style->n_item = 1;
    if (v->kind == V_STR) {
        style->indent = v->as.text->data;
        style->n_indent = v->as.text->n;
        return true;
    }
    if (!pn_j_want_int(st, v, "indent", &width)) return false;
    if (width > J_MAX_WIDTH) return pn_j_fail(st, "an indent of %" PRId64 ": at most %d is allowed", width, J_MAX_WIDTH);
    style->n_indent = width > 0 ? (size_t)width : 0;
    if (!pn_j_str_room(st, style->n_indent, &blanks, &held)) return false;
    memset(blanks, ' ', style->n_indent);
    style->indent = blanks;
    return true;
}

static bool filter_tojson(render *st, const value *self, const parameters *p, value *out)
{
    json_style style = {.item_separator = ", ", .n_item = 2, .key_separator = ": ", .n_key = 2};
    buffer b = {0};
    style.ascii = p->has[0] && pn_j_truth(&p->at[0]);
    style.sort = p->has[3] && pn_j_truth(&p->at[3]);
    if (p->has[1] && !json_indent(st, &p->at[1], &style)) return false;
    if (p->has[2] && !json_separators(st, &p->at[2], &style)) return false;
    bool good = pn_j_tojson(st, &b, self, &style);
    return pn_j_take(st, &b, out) && good;
}

/* Only values whose text fits a line: longer ones are laid out in ways that templates do not use. */
static bool filter_pprint(render *st, const value *self, const parameters *p, value *out)
{
    (void)p;
    if (!pn_j_repr(st, self, out)) return false;
    return pn_j_chars(st, out->as.text) <= 80 || pn_j_fail(st, "pprint of more than one line");
}

static const builtin rows[] = {
    {"abs", filter_abs, "", 0}, {"attr", filter_attr, "name", 0}, {"count", filter_length, "", 0}, {"d", filter_default, "? default_value boolean", 0}, {"default", filter_default, "? default_value boolean", 0},
    {"filesizeformat", filter_filesize, "? binary", 0}, {"float", filter_float, "? default", 0}, {"int", filter_int, "? default base", 0}, {"length", filter_length, "", 0}, {"pprint", filter_pprint, "", 0},
    {"random", filter_random, "", 0}, {"round", filter_round, "? precision method", 0}, {"tojson", filter_tojson, "? ensure_ascii indent separators sort_keys", 0},
};
const filter_table pn_j_number_filters = {rows, PN_COUNT(rows)};

const builtin *pn_j_filter(const char *name_of, size_t n)
{
    static const filter_table *const tables[] = {&pn_j_number_filters, &pn_j_text_filters, &pn_j_markup_filters, &pn_j_sequence_filters, &pn_j_lazy_filters, &pn_j_order_filters, &pn_j_wrap_filters};
    for (size_t t = 0; t < PN_COUNT(tables); t++) {
        for (size_t i = 0; i < tables[t]->n; i++) {
            if (strlen(tables[t]->rows[i].name) == n && !memcmp(tables[t]->rows[i].name, name_of, n)) return &tables[t]->rows[i];
        }
    }
    return NULL;
}
