/* chat/clock.c - strftime_now: the date and time in the C locale's words, whatever the process's locale is. */
#include "base/zone.h"
#include "chat/value.h"

#include <stdio.h>
#include <time.h>

static const char *const days[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"};

/* Seconds since 1970 to the calendar (proleptic Gregorian), without a zone. */
static void civil(int64_t seconds, struct tm *t)
{
    int64_t day = seconds / 86400, rest = seconds % 86400;
    if (rest < 0) {
        rest += 86400;
        day--;
    }
    int64_t shifted = day + 719468, era = (shifted >= 0 ? shifted : shifted - 146096) / 146097, of_era = shifted - era * 146097; /* eras of 400 years from 1 March 0 */
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365, of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
    *t = (struct tm){.tm_hour = (int)(rest / 3600), .tm_min = (int)(rest / 60 % 60), .tm_sec = (int)(rest % 60), .tm_mday = (int)(of_year - (153 * month + 2) / 5 + 1)};
    t->tm_mon = (int)(month < 10 ? month + 2 : month - 10);
    t->tm_year = (int)(year + era * 400 + (t->tm_mon <= 1) - 1900);
    t->tm_wday = (int)(((day + 4) % 7 + 7) % 7);
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int y = t->tm_year + 1900;
    t->tm_yday = before[t->tm_mon] + t->tm_mday - 1 + (t->tm_mon > 1 && ((y % 4 == 0 && y % 100 != 0) || y % 400 == 0));
}

static int iso_week(const struct tm *t, int *year)
{
    int weekday = (t->tm_wday + 6) % 7, week = (t->tm_yday - weekday + 10) / 7, y = t->tm_year + 1900;
    bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0, leap_before = ((y - 1) % 4 == 0 && (y - 1) % 100 != 0) || (y - 1) % 400 == 0;
    int rest = 365 + leap - t->tm_yday - 1; /* days left in the year */
    *year = y;
    if (week < 1) {
        *year = y - 1;
        return (t->tm_yday + 365 + leap_before - weekday + 10) / 7;
    }
    if (week == 53 && rest < 3 - weekday) {
        *year = y + 1;
        return 1;
    }
    return week;
}

typedef struct field { /* of a conversion that prints a number */
    char letter;
    int value, width;
    char pad;
} field;

static size_t put_number(char *out, int number, int width, char pad, char flag)
{
    if (flag == '-') width = 0;
    if (flag == '_') pad = ' ';
    if (flag == '0') pad = '0';
    return (size_t)(pad == '0' ? snprintf(out, 24, "%0*d", width, number) : snprintf(out, 24, "%*d", width, number));
}

static bool find_number(const struct tm *t, char letter, char flag, char *out, size_t *n)
{
    int iso_year, hour = t->tm_hour % 12 ? t->tm_hour % 12 : 12, week = iso_week(t, &iso_year), year = t->tm_year + 1900;
    const field fields[] = {
        {'d', t->tm_mday, 2, '0'}, {'e', t->tm_mday, 2, ' '}, {'m', t->tm_mon + 1, 2, '0'}, {'Y', year, 1, '0'}, {'y', (year % 100 + 100) % 100, 2, '0'}, {'C', year / 100, 2, '0'},
        {'H', t->tm_hour, 2, '0'}, {'k', t->tm_hour, 2, ' '}, {'I', hour, 2, '0'}, {'l', hour, 2, ' '}, {'M', t->tm_min, 2, '0'}, {'S', t->tm_sec, 2, '0'}, {'j', t->tm_yday + 1, 3, '0'},
        {'f', 0, 6, '0'}, {'w', t->tm_wday, 1, '0'}, {'u', t->tm_wday ? t->tm_wday : 7, 1, '0'}, {'U', (t->tm_yday + 7 - t->tm_wday) / 7, 2, '0'},
        {'W', (t->tm_yday + 7 - (t->tm_wday + 6) % 7) / 7, 2, '0'}, {'V', week, 2, '0'}, {'G', iso_year, 1, '0'}, {'g', iso_year % 100, 2, '0'},
    };
    for (size_t i = 0; i < PN_COUNT(fields); i++) {
        if (fields[i].letter != letter) continue;
        *n = put_number(out, fields[i].value, fields[i].width, fields[i].pad, flag);
        return true;
    }
    return false;
}

/* Words, and conversions that are short for others. NULL: none. */
static const char *find_word(const struct tm *t, char letter, char *room)
{
    static const struct { char letter; const char *same_as; } shorts[] = {
        {'D', "%m/%d/%y"}, {'F', "%Y-%m-%d"}, {'T', "%H:%M:%S"}, {'R', "%H:%M"}, {'r', "%I:%M:%S %p"}, {'c', "%a %b %e %H:%M:%S %Y"}, {'x', "%m/%d/%y"}, {'X', "%H:%M:%S"},
        {'n', "\n"}, {'t', "\t"}, {'%', "%"}, {'Z', ""}, {'z', ""},
    };
    bool afternoon = t->tm_hour >= 12;
    switch (letter) {
    case 'A': return days[t->tm_wday];
    case 'B': return months[t->tm_mon];
    case 'a':
    case 'b':
    case 'h':
        memcpy(room, letter == 'a' ? days[t->tm_wday] : months[t->tm_mon], 3);
        room[3] = 0;
        return room;
    case 'p': return afternoon ? "PM" : "AM";
    case 'P': return afternoon ? "pm" : "am";
    default: break;
    }
    for (size_t i = 0; i < PN_COUNT(shorts); i++) {
        if (shorts[i].letter == letter) return shorts[i].same_as;
    }
    return NULL;
}

static bool expand(render *st, buffer *b, const char *format, size_t n, const struct tm *t, int level)
{
    for (size_t at = 0; at < n; at++) {
        char number[24], room[4], flag = 0;
        size_t length;
        if (format[at] != '%' || at + 1 >= n) {
            if (!pn_j_put(st, b, format + at, 1)) return false;
            continue;
        }
        at++;
        if (format[at] && strchr("-_0^", format[at]) && at + 1 < n) flag = format[at++];
        if (find_number(t, format[at], flag, number, &length)) {
            if (!pn_j_put(st, b, number, length)) return false;
            continue;
        }
        const char *word = find_word(t, format[at], room);
        if (!word) { /* what no conversion is prints as it stands */
            size_t length_as_it_is = flag ? 3 : 2;
            if (!pn_j_put(st, b, format + at + 1 - length_as_it_is, length_as_it_is)) return false;
            continue;
        }
        bool shorthand = level == 0 && word[0] == '%' && word[1];
        if (!(shorthand ? expand(st, b, word, strlen(word), t, 1) : pn_j_put_cstr(st, b, word))) return false;
    }
    return true;
}

bool pn_j_strftime(render *st, const text *format, value *out)
{
    struct tm t;
    buffer b = {0};
    if (format->n > 64) return pn_j_fail(st, "a date format of %u bytes: at most 64 are allowed", (unsigned)format->n);
    if (st->now != INT64_MIN) {
        if (st->now < -62135596800 || st->now > 253402300799) return pn_j_fail(st, "the clock is outside of the years 1 to 9999");
        civil(st->now, &t);
    } else {
        const int64_t now = (int64_t)time(NULL);
        civil(now + pn_zone_offset(now), &t);
    }
    bool good = expand(st, &b, format->data, format->n, &t, 0);
    return pn_j_take(st, &b, out) && good;
}
