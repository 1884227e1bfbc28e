/* Local offsets: the same as the C library's for every zone installed here, at many times; broken files give 0 and nothing worse. */
#include "base/zone.h"
#include "test.h"

#include <time.h>

static const char *const zones[] = {"UTC", "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/Sao_Paulo", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe", "Australia/Sydney",
                                    "Pacific/Auckland", "Pacific/Chatham", "Africa/Casablanca", "America/St_Johns", "Asia/Tokyo", "America/Santiago"};

static void against_libc(const char *zone)
{
    char path[128];
    snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", zone);
    FILE *f = fopen(path, "rb");
    if (!f) {
        pn_skip(zone, "its file is not installed");
        return;
    }
    fclose(f);
    setenv("TZ", zone, 1);
    tzset();
    int wrong = 0;
    int64_t first = 0;
    for (int64_t now = 1000; now < INT64_C(4000000000); now += 1234577) { /* until 2096: listed transitions, then the rule */
        const time_t t = (time_t)now;
        struct tm local;
        if ((int64_t)t != now || !localtime_r(&t, &local)) break; /* 32-bit time ends in 2038 */
        if (pn_zone_offset(now) == local.tm_gmtoff) continue;
        if (!wrong++) first = now;
    }
    CHECK("the C library's offsets", wrong == 0, "%s: %d times differ, first %lld", zone, wrong, (long long)first);
}

static void broken(void)
{
    uint8_t data[160] = {0};
    unsigned long long random = 77;
    for (int round = 0; round < 20000; round++) {
        const size_t n = (size_t)(pn_random(&random) % sizeof data);
        for (size_t i = 0; i < n; i++) data[i] = (uint8_t)(pn_random(&random) >> 40) & (round % 3 ? 3 : 255);
        memcpy(data, "TZif2", 5);
        if (n > 60) memcpy(data + 44 + data[59] % 8, "TZif2", 5);
        uint8_t *exact = malloc(n ? n : 1);
        memcpy(exact, data, n);
        pn_zone_offset_at(exact, n, (int64_t)pn_random(&random) >> (round % 40));
        free(exact);
    }
    CHECK("broken files are survived", true, "%d", 0);
    CHECK("no file is UTC", pn_zone_offset_at(data, 0, 5) == 0, "%d", 0);
    setenv("TZ", "../etc/localtime", 1);
    CHECK("a path out of the database is UTC", pn_zone_offset(0) == 0, "%d", 0);
}

int main(void)
{
    for (size_t i = 0; i < PN_COUNT(zones); i++) against_libc(zones[i]);
    broken();
    return pn_done();
}
