/* base/machine.c - cores, memory and clocks as Linux shows them in /proc and /sys. Every file may be missing: then the answer is the
 * plain one (one processor, memory unknown). Knows nothing of what the answers are used for. */
#include "base/cpu.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PROCESSORS = 4096, MAX_PATH = 1024, TEXT = 8192 };

/* ---- small text files ------------------------------------------------------------------------- */

/* Reads at most TEXT - 1 bytes of a file; false (and an empty text) if there is no such file. */
static bool read_text(char text[TEXT], const char *root, const char *folder, const char *file)
{
    char name[4 * MAX_PATH];
    size_t n = 0;
    ssize_t got = 0;
    text[0] = 0;
    int length = snprintf(name, sizeof name, "%s%s/%s", root, folder, file);
    if (length < 0 || length >= (int)sizeof name) return false;
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return false;
    while (n < TEXT - 1 && (got = read(fd, text + n, TEXT - 1 - n)) > 0) n += (size_t)got;
    close(fd);
    text[n] = 0;
    return got >= 0;
}

/* Decimal digits after spaces; UINT64_MAX ("max", "-1" or anything else) when there are none or they overflow. Moves *text behind them. */
static uint64_t take_number(const char **text)
{
    const char *s = *text;
    uint64_t v = 0;
    bool fits = true;
    while (*s == ' ' || *s == '\t') s++;
    const char *start = s;
    for (; *s >= '0' && *s <= '9'; s++) fits = fits && pn_mul(v, 10, &v) && pn_add(v, (uint64_t)(*s - '0'), &v);
    *text = s;
    return s > start && fits ? v : UINT64_MAX;
}

static uint64_t read_number(const char *root, const char *folder, const char *file)
{
    char text[TEXT];
    const char *s = text;
    return read_text(text, root, folder, file) ? take_number(&s) : UINT64_MAX;
}

/* The number after `key` at the start of a line; UINT64_MAX: none. */
static uint64_t line_number(const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *s = text; s; s = strchr(s, '\n')) {
        if (*s == '\n') s++;
        if (strncmp(s, key, n) != 0) continue;
        s += n;
        return take_number(&s);
    }
    return UINT64_MAX;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ---- control groups ---------------------------------------------------------------------------
 * /proc/self/cgroup has a line "id:controllers:path" per hierarchy. The group's folder is mount + path; in a container the path may
 * belong to the host and not exist below the mount. Walking up to the mount meets every limit that applies, and the container's own. */

typedef struct hierarchy {
    const char *mount;
    const char *controller; /* v1; "" for the one of v2 */
} hierarchy;

/* A limit of one folder, UINT64_MAX: none. */
typedef uint64_t (*group_limit)(const char *root, const char *folder);

static bool lists_controller(const char *list, size_t n, const char *controller)
{
    size_t m = strlen(controller);
    if (!m) return n == 0;
    for (size_t i = 0; i + m <= n; i++)
        if ((i == 0 || list[i - 1] == ',') && memcmp(list + i, controller, m) == 0 && (i + m == n || list[i + m] == ',')) return true;
    return false;
}

/* Path of this process in the controller's hierarchy, "" when it is not told. */
static void group_path(char path[MAX_PATH], const char *groups, const char *controller)
{
    path[0] = 0;
    for (const char *line = groups; *line;) {
        const char *end = strchr(line, '\n');
        if (!end) end = line + strlen(line);
        const char *list = memchr(line, ':', (size_t)(end - line));
        const char *where = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;
        if (where && end - where - 1 < MAX_PATH && lists_controller(list + 1, (size_t)(where - list - 1), controller)) {
            memcpy(path, where + 1, (size_t)(end - where - 1));
            path[end - where - 1] = 0;
            return;
        }
        line = *end ? end + 1 : end;
    }
}

static uint64_t least_limit(const char *root, const hierarchy *h, size_t n, group_limit limit)
{
    char groups[TEXT], path[MAX_PATH], folder[2 * MAX_PATH];
    uint64_t found = UINT64_MAX;
    read_text(groups, root, "/proc/self", "cgroup");
    for (size_t i = 0; i < n; i++) {
        group_path(path, groups, h[i].controller);
        for (;;) {
            snprintf(folder, sizeof folder, "%s%s", h[i].mount, path);
            found = least(found, limit(root, folder));
            char *slash = strrchr(path, '/');
            if (!slash) break;
            *slash = 0;
        }
    }
    return found;
}

/* ---- memory ----------------------------------------------------------------------------------- */

/* What a memory group still has: its limit less what is used and cannot be dropped. Pages of files can. */
static uint64_t memory_left(const char *root, const char *folder)
{
    static const struct { const char *limit, *usage, *inactive, *active; } names[] = {
        {"memory.max", "memory.current", "inactive_file ", "active_file "},
        {"memory.high", "memory.current", "inactive_file ", "active_file "}, /* above it the kernel throttles to a crawl */
        {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ", "total_active_file "},
    };
    uint64_t left = UINT64_MAX;
    for (size_t i = 0; i < PN_COUNT(names); i++) {
        char stat[TEXT];
        uint64_t limit = read_number(root, folder, names[i].limit), used = read_number(root, folder, names[i].usage);
        if (limit == UINT64_MAX) continue;
        if (used == UINT64_MAX) used = 0;
        read_text(stat, root, folder, "memory.stat");
        uint64_t inactive = line_number(stat, names[i].inactive), active = line_number(stat, names[i].active), files;
        if (inactive == UINT64_MAX || active == UINT64_MAX || !pn_add(inactive, active, &files)) files = 0;
        used = used > files ? used - files : 0;
        left = least(left, limit > used ? limit - used : 0);
    }
    return left;
}

static uint64_t kilobytes(uint64_t n)
{
    uint64_t bytes;
    return n != UINT64_MAX && pn_mul(n, 1024, &bytes) ? bytes : UINT64_MAX;
}

uint64_t pn_memory_from(const char *root)
{
    static const hierarchy groups[] = {{"/sys/fs/cgroup", ""}, {"/sys/fs/cgroup/unified", ""}, {"/sys/fs/cgroup/memory", "memory"}};
    char text[TEXT];
    read_text(text, root, "/proc", "meminfo");
    uint64_t available = kilobytes(line_number(text, "MemAvailable:"));
    if (available == UINT64_MAX) { /* kernels before 3.14 */
        uint64_t unused = kilobytes(line_number(text, "MemFree:")), cached = kilobytes(line_number(text, "Cached:"));
        if (unused != UINT64_MAX && cached != UINT64_MAX) available = unused + cached / 2;
    }
    return least(available, least_limit(root, groups, PN_COUNT(groups), memory_left));
}

uint64_t pn_memory_available(void) { return pn_memory_from(""); }

static uint64_t own_status(const char *key)
{
    char text[TEXT];
    read_text(text, "", "/proc/self", "status");
    return kilobytes(line_number(text, key));
}

uint64_t pn_memory_resident(void)
{
    uint64_t bytes = own_status("VmRSS:");
    return bytes == UINT64_MAX ? 0 : bytes;
}

uint64_t pn_memory_peak(void)
{
    uint64_t bytes = own_status("VmHWM:");
    struct rusage usage;
    if (bytes != UINT64_MAX) return bytes;
    /* the next best: it also counts what the process was before exec */
    return getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_maxrss > 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

/* ---- cores ------------------------------------------------------------------------------------ */

/* Processors' worth of time that a group's quota allows, rounded down, at least 1. */
static uint64_t quota_processors(const char *root, const char *folder)
{
    char text[TEXT];
    read_text(text, root, folder, "cpu.max");
    const char *s = text;
    uint64_t quota = take_number(&s), period = quota == UINT64_MAX ? UINT64_MAX : take_number(&s);
    if (quota == UINT64_MAX) {
        quota = read_number(root, folder, "cpu.cfs_quota_us");
        period = read_number(root, folder, "cpu.cfs_period_us");
    }
    if (quota == UINT64_MAX || period == UINT64_MAX || period == 0) return UINT64_MAX;
    return quota < period ? 1 : quota / period;
}

/* The lowest allowed processor of a list such as "0-1" or "0,64"; -1: none. */
static int lowest_allowed(const char *list, const bool *allowed, int n)
{
    while (*list >= '0' && *list <= '9') {
        uint64_t first = take_number(&list), last = first;
        if (*list == '-') {
            list++;
            last = take_number(&list);
        }
        for (uint64_t i = first; i <= last && i < (uint64_t)n; i++)
            if (allowed[i]) return (int)i;
        if (*list == ',') list++;
    }
    return -1;
}

void pn_topology_from(const char *root, const bool *allowed, int n_allowed, pn_topology *out)
{
    static const hierarchy groups[] = {
        {"/sys/fs/cgroup", ""}, {"/sys/fs/cgroup/unified", ""}, {"/sys/fs/cgroup/cpu", "cpu"}, {"/sys/fs/cgroup/cpu,cpuacct", "cpu"}};
    uint64_t capacity[MAX_PROCESSORS], highest = 0;
    int online = 0, cores = 0, big = 0;
    for (int i = 0; i < n_allowed && i < MAX_PROCESSORS; i++) {
        char folder[64], list[TEXT];
        if (!allowed[i]) continue;
        online++;
        snprintf(folder, sizeof folder, "/sys/devices/system/cpu/cpu%d", i);
        read_text(list, root, folder, "topology/thread_siblings_list");
        int first = lowest_allowed(list, allowed, n_allowed);
        if (first >= 0 && first != i) continue;
        capacity[cores] = read_number(root, folder, "cpu_capacity");
        if (capacity[cores] == UINT64_MAX) capacity[cores] = read_number(root, folder, "cpufreq/cpuinfo_max_freq");
        if (capacity[cores] > (UINT64_C(1) << 40)) capacity[cores] = 0; /* unknown, or no sane number */
        if (capacity[cores] > highest) highest = capacity[cores];
        cores++;
    }
    /* 60 %: the middle cores of a 1+3+4 phone count as big, its little ones (25 to 50 %) do not. */
    for (int i = 0; i < cores; i++) big += capacity[i] * 10 >= highest * 6;
    uint64_t quota = least_limit(root, groups, PN_COUNT(groups), quota_processors);
    int limit = quota < MAX_PROCESSORS ? (int)quota : MAX_PROCESSORS;
    if (online < 1) online = cores = big = 1;
    *out = (pn_topology){.n_online = online < limit ? online : limit, .n_physical = cores < limit ? cores : limit, .n_big = big < limit ? big : limit};
}

void pn_topology_read(pn_topology *out)
{
    unsigned long mask[MAX_PROCESSORS / (8 * sizeof(unsigned long))] = {0};
    bool allowed[MAX_PROCESSORS] = {false};
    const int word = 8 * (int)sizeof mask[0];
    if (sched_getaffinity(0, sizeof mask, (cpu_set_t *)mask) == 0) {
        for (int i = 0; i < MAX_PROCESSORS; i++) allowed[i] = mask[i / word] >> (i % word) & 1;
    } else {
        long n = sysconf(_SC_NPROCESSORS_ONLN);
        for (long i = 0; i < n && i < MAX_PROCESSORS; i++) allowed[i] = true;
    }
    pn_topology_from("", allowed, MAX_PROCESSORS, out);
}

/* The rule, from measurements on the devices that Pinch is for:
 *   - one thread a core: SMT siblings share the units that mat-muls saturate;
 *   - 1 or 2 cores: all of them. More than that: one is left to the system, because a preempted thread stalls every barrier
 *     (4 threads on a 4-core TV box were 20 % slower than 3);
 *   - big and little cores: generation runs on the big ones alone, since a step ends when its slowest thread does; prompts run on all;
 *   - generation is bound by memory bandwidth, which half the cores of a big machine exhaust; prompts take more. */
void pn_threads_default(const pn_topology *t, int *generation, int *prompt)
{
    const int cores = t->n_physical > 1 ? t->n_physical : 1, spare = cores > 16 ? cores / 8 : cores > 2 ? 1 : 0;
    const bool mixed = t->n_big >= 2 && t->n_big < cores;
    int few = mixed ? t->n_big : cores - spare, many = mixed && cores <= 8 ? cores : cores - spare;
    if (few > 8) few = few / 2 > 8 ? few / 2 : 8;
    if (few > 16) few = 16;
    if (many > 64) many = 64;
    *generation = few;
    *prompt = many;
}

/* ---- clocks ----------------------------------------------------------------------------------- */

static double seconds(clockid_t clock)
{
    struct timespec t;
    return clock_gettime(clock, &t) == 0 ? (double)t.tv_sec + (double)t.tv_nsec * 1e-9 : -1.0;
}

double pn_now(void) { return seconds(CLOCK_MONOTONIC); }

double pn_process_age(void)
{
    char text[TEXT];
    long ticks = sysconf(_SC_CLK_TCK);
    double now = seconds(CLOCK_BOOTTIME);
    read_text(text, "", "/proc/self", "stat");
    /* the name, in parentheses, may hold anything; the start in ticks since boot is the 20th field after it */
    const char *s = strrchr(text, ')');
    for (int field = 0; s && field < 20; field++) {
        s = strchr(s, ' ');
        if (s) s++;
    }
    uint64_t start = s ? take_number(&s) : UINT64_MAX;
    if (start == UINT64_MAX || ticks <= 0 || now < 0) return -1.0;
    return now - (double)start / (double)ticks;
}
