/* base/zone.c - reads zone files: transitions up to the last one listed, then the rule in the file's last line. Knows no calendar but what a rule needs. */
#include "base/zone.h"

#include "base/pages.h"

#include <stdio.h>
#include <stdlib.h>

enum { HEADER = 44, MOST_BYTES = 1 << 18, DAY = 86400 };

/* ---- the rule: STD offset [DST [offset] , Mm.w.d[/time] , Mm.w.d[/time]] ------------------------------------------------------------- */

typedef struct rule_text {
    const char *at, *end;
} rule_text;

static bool take(rule_text *t, char c)
{
    if (t->at == t->end || *t->at != c) return false;
    t->at++;
    return true;
}

static int64_t take_number(rule_text *t)
{
    int64_t v = 0;
    while (t->at < t->end && *t->at >= '0' && *t->at <= '9' && v < 10000) v = v * 10 + (*t->at++ - '0');
    return v;
}

/* [+-]h[:m[:s]] in seconds. */
static int64_t take_time(rule_text *t)
{
    const bool negative = take(t, '-');
    if (!negative) take(t, '+');
    int64_t v = take_number(t) * 3600;
    if (take(t, ':')) v += take_number(t) * 60;
    if (take(t, ':')) v += take_number(t);
    return negative ? -v : v;
}

static void skip_name(rule_text *t)
{
    if (take(t, '<')) {
        while (t->at < t->end && *t->at++ != '>') {}
        return;
    }
    while (t->at < t->end && ((*t->at >= 'A' && *t->at <= 'Z') || (*t->at >= 'a' && *t->at <= 'z'))) t->at++;
}

static bool leap_year(int64_t y) { return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0; }

/* Days from 1970 to 1 January of a year after it. */
static int64_t year_start(int64_t y) { return (y - 1970) * 365 + (y - 1969) / 4 - (y - 1901) / 100 + (y - 1601) / 400; }

/* ",Mm.w.d[/time]" of a year: local seconds since 1970. False: another form. */
static bool take_change(rule_text *t, int64_t year, int64_t *when)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    if (!take(t, ',') || !take(t, 'M')) return false;
    const int64_t month = take_number(t);
    if (!take(t, '.')) return false;
    const int64_t week = take_number(t);
    if (!take(t, '.')) return false;
    const int64_t weekday = take_number(t);
    if (month < 1 || month > 12 || week < 1 || week > 5 || weekday > 6) return false;
    const int64_t first = year_start(year) + before[month - 1] + (month > 2 && leap_year(year)), length = before[month] - before[month - 1] + (month == 2 && leap_year(year));
    int64_t day = (weekday - (first + 4) % 7 + 7) % 7 + (week - 1) * 7; /* 1 January 1970 was a Thursday */
    if (day >= length) day -= 7;
    *when = (first + day) * DAY + (take(t, '/') ? take_time(t) : 2 * 3600);
    return true;
}

static int64_t by_rule(rule_text t, int64_t now)
{
    skip_name(&t);
    const int64_t standard = -take_time(&t);
    if (t.at == t.end || now < 0) return standard;
    skip_name(&t);
    const int64_t summer = t.at < t.end && *t.at != ',' ? -take_time(&t) : standard + 3600;
    int64_t year = 1970 + (now + standard) / (365 * DAY + DAY / 4), begin, end;
    while (year_start(year + 1) * DAY <= now + standard) year++;
    while (year_start(year) * DAY > now + standard) year--;
    if (!take_change(&t, year, &begin) || !take_change(&t, year, &end)) return standard;
    begin -= standard; /* changes are given in the time that they end */
    end -= summer;
    const bool is_summer = begin < end ? now >= begin && now < end : now >= begin || now < end;
    return is_summer ? summer : standard;
}

/* ---- the file ------------------------------------------------------------------------------------------------------------------------- */

static int64_t big_endian(const uint8_t *p, int n)
{
    uint64_t v = n == 4 && p[0] & 0x80 ? UINT64_MAX : 0;
    for (int i = 0; i < n; i++) v = v << 8 | p[i];
    return (int64_t)v;
}

/* Counts of one header, and the bytes of the block behind it. */
typedef struct block {
    size_t transitions, types, bytes;
} block;

static bool read_header(const uint8_t *data, size_t n, size_t at, size_t time_bytes, block *b)
{
    if (n < HEADER || at > n - HEADER || memcmp(data + at, "TZif", 4)) return false;
    size_t count[6]; /* UTC and standard indicators, leap seconds, transitions, types, characters of names */
    for (int i = 0; i < 6; i++) {
        const int64_t v = big_endian(data + at + 20 + 4 * i, 4);
        if (v < 0 || v > MOST_BYTES) return false;
        count[i] = (size_t)v;
    }
    *b = (block){.transitions = count[3], .types = count[4]};
    b->bytes = count[3] * (time_bytes + 1) + count[4] * 6 + count[5] + count[2] * (time_bytes + 4) + count[1] + count[0];
    return b->types > 0 && b->bytes <= n - at - HEADER;
}

/* Offset of the type in force at `now`. *last: after every listed transition. */
static int64_t by_transitions(const uint8_t *p, const block *b, int64_t now, bool *last)
{
    size_t i = b->transitions;
    while (i > 0 && big_endian(p + (i - 1) * 8, 8) > now) i--;
    *last = i == b->transitions;
    const size_t type = i > 0 ? p[b->transitions * 8 + i - 1] : 0;
    return type < b->types ? big_endian(p + b->transitions * 9 + type * 6, 4) : 0;
}

int64_t pn_zone_offset_at(const uint8_t *data, size_t n, int64_t now)
{
    block old, b;
    if (!read_header(data, n, 0, 4, &old) || data[4] < '2') return 0; /* version 1 ends in 2038 and is no longer written */
    const size_t second = HEADER + old.bytes;
    if (!read_header(data, n, second, 8, &b)) return 0;
    bool last;
    const int64_t offset = by_transitions(data + second + HEADER, &b, now, &last);
    const size_t footer = second + HEADER + b.bytes;
    if (!last || n - footer < 2 || data[footer] != '\n') return offset;
    const char *rule = (const char *)data + footer + 1, *end = memchr(rule, '\n', n - footer - 1);
    return end && end > rule ? by_rule((rule_text){rule, end}, now) : offset;
}

int64_t pn_zone_offset(int64_t now)
{
    char path[256] = "/etc/localtime";
    const char *zone = getenv("TZ");
    if (zone && *zone == ':') zone++;
    if (zone && *zone == '/') snprintf(path, sizeof path, "%s", zone);
    else if (zone && *zone && !strstr(zone, "..")) snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", zone);
    else if (zone) return 0; /* TZ="" means UTC */
    pn_file *file = NULL;
    int64_t offset = 0;
    if (pn_file_open(&file, path, NULL)) return 0;
    const uint64_t n = pn_file_size(file) < MOST_BYTES ? pn_file_size(file) : MOST_BYTES;
    uint8_t *data = pn_alloc(n, 1);
    if (data && !pn_file_read(file, data, n, 0, NULL)) offset = pn_zone_offset_at(data, (size_t)n, now);
    free(data);
    pn_file_close(file);
    return offset;
}
