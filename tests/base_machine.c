/* tests/base_machine.c - cores and memory from folders that look like /proc and /sys of several machines, thread counts, and this machine itself. */
#include "base/cpu.h"
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILES = 80 };

typedef struct fake {
    char root[64];
    char made[MAX_FILES][256]; /* files and folders in order of making */
    int n;
} fake;

static void note(fake *f, const char *path)
{
    if (f->n == MAX_FILES) exit(1);
    snprintf(f->made[f->n++], sizeof f->made[0], "%s", path);
}

static void put(fake *f, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s%s", f->root, name);
    for (char *slash = strchr(path + strlen(f->root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(path, 0700) == 0) note(f, path);
        *slash = '/';
    }
    FILE *file = fopen(path, "wb");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) exit(1);
    note(f, path);
}

static void put_cpu(fake *f, int cpu, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, name);
    put(f, path, text);
}

static fake fake_new(void)
{
    fake f = {.root = "/tmp/pinch-machine-XXXXXX"};
    if (!mkdtemp(f.root)) exit(1);
    return f;
}

static void fake_end(fake *f)
{
    while (f->n) remove(f->made[--f->n]);
    CHECK("the folder is removed", rmdir(f->root) == 0, "%s", f->root);
}

static void want_cores(const char *what, const fake *f, int n_allowed, int online, int physical, int big)
{
    bool allowed[256];
    pn_topology t;
    for (int i = 0; i < n_allowed; i++) allowed[i] = true;
    pn_topology_from(f->root, allowed, n_allowed, &t);
    CHECK(what, t.n_online == online && t.n_physical == physical && t.n_big == big, "%d %d %d, want %d %d %d", t.n_online, t.n_physical, t.n_big, online, physical, big);
}

/* ---- cores ------------------------------------------------------------------------------------ */

static void nothing_readable(void)
{
    fake f = fake_new();
    want_cores("without /sys every allowed processor is a core", &f, 4, 4, 4, 4);
    want_cores("there is always one processor", &f, 0, 1, 1, 1);
    CHECK("without /proc memory is unknown", pn_memory_from(f.root) == UINT64_MAX, "%" PRIu64, pn_memory_from(f.root));
    fake_end(&f);
}

static void siblings(void)
{
    fake f = fake_new();
    static const char *const lists[] = {"0,4\n", "1,5\n", "2,6\n", "3,7\n"};
    for (int i = 0; i < 8; i++) put_cpu(&f, i, "topology/thread_siblings_list", lists[i % 4]);
    want_cores("SMT siblings are one core", &f, 8, 8, 4, 4);
    want_cores("a sibling that is not allowed does not hide a core", &f, 5, 5, 4, 4);
    bool odd[8] = {false, false, false, false, true, true, true, true};
    pn_topology t;
    pn_topology_from(f.root, odd, 8, &t);
    CHECK("upper siblings alone are cores", t.n_online == 4 && t.n_physical == 4, "%d %d", t.n_online, t.n_physical);
    put_cpu(&f, 0, "topology/thread_siblings_list", "0-9999999999999999999999,,x-");
    want_cores("a list that is none counts as unknown", &f, 1, 1, 1, 1);
    fake_end(&f);
}

static void capacities(void)
{
    fake f = fake_new();
    static const char *const phone[] = {"325\n", "325\n", "325\n", "325\n", "830\n", "830\n", "830\n", "1024\n"};
    for (int i = 0; i < 8; i++) put_cpu(&f, i, "cpu_capacity", phone[i]);
    want_cores("the middle and the prime cores of a phone are big", &f, 8, 8, 8, 4);
    want_cores("of little cores alone all count", &f, 4, 4, 4, 4);
    fake_end(&f);
    f = fake_new();
    for (int i = 0; i < 4; i++) put_cpu(&f, i, "cpufreq/cpuinfo_max_freq", i < 2 ? "850000\n" : "1800000\n");
    want_cores("without capacities frequencies tell", &f, 4, 4, 4, 2);
    fake_end(&f);
}

static void quotas(void)
{
    fake f = fake_new();
    put(&f, "/proc/self/cgroup", "0::/a/b\n");
    put(&f, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    want_cores("no quota", &f, 8, 8, 8, 8);
    put(&f, "/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
    want_cores("a quota of a group above, rounded down", &f, 8, 2, 2, 2);
    put(&f, "/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
    want_cores("half a processor is one", &f, 8, 1, 1, 1);
    put(&f, "/sys/fs/cgroup/a/b/cpu.max", "50000 0\n");
    want_cores("a period of 0 is no quota", &f, 8, 2, 2, 2);
    fake_end(&f);
    f = fake_new();
    put(&f, "/proc/self/cgroup", "5:cpuset:/x\n4:cpu,cpuacct:/docker/0123\n");
    put(&f, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000\n");
    put(&f, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    want_cores("cgroup v1 in a container, whose path is the host's", &f, 8, 3, 3, 3);
    put(&f, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    want_cores("-1 is no quota", &f, 8, 8, 8, 8);
    fake_end(&f);
}

static void threads(void)
{
    static const struct { const char *what; pn_topology t; int generation, prompt; } cases[] = {
        {"one core", {1, 1, 1}, 1, 1},
        {"two cores: both", {2, 2, 2}, 2, 2},
        {"a core with two siblings: one thread", {2, 1, 1}, 1, 1},
        {"a TV box of four like cores: three", {4, 4, 4}, 3, 3},
        {"a phone of 4 + 4: big ones generate, all read prompts", {8, 8, 4}, 4, 8},
        {"one prime core and no other big one: as if all were alike", {8, 8, 1}, 7, 7},
        {"a desktop of 8 cores with siblings", {16, 8, 8}, 7, 7},
        {"16 cores: half the bandwidth's worth for generation", {16, 16, 16}, 8, 15},
        {"a server of 64 cores", {128, 64, 64}, 16, 56},
        {"a server of 192 cores", {384, 192, 192}, 16, 64},
        {"nonsense", {0, 0, 0}, 1, 1},
    };
    for (size_t i = 0; i < PN_COUNT(cases); i++) {
        int generation = 0, prompt = 0;
        pn_threads_default(&cases[i].t, &generation, &prompt);
        CHECK("threads by default", generation == cases[i].generation && prompt == cases[i].prompt, "%s: %d and %d", cases[i].what, generation, prompt);
    }
}

/* ---- memory ----------------------------------------------------------------------------------- */

static void want_memory(const char *what, const fake *f, uint64_t want)
{
    const uint64_t got = pn_memory_from(f->root);
    CHECK(what, got == want, "%" PRIu64 ", want %" PRIu64, got, want);
}

static void memory_v2(void)
{
    fake f = fake_new();
    put(&f, "/proc/meminfo", "MemTotal:        7848960 kB\nMemFree:          100000 kB\nMemAvailable:    1907712 kB\nCached: 1 kB\n");
    want_memory("MemAvailable, not MemTotal", &f, UINT64_C(1907712) * 1024);
    put(&f, "/proc/self/cgroup", "0::/user/app\n");
    put(&f, "/sys/fs/cgroup/user/app/memory.max", "max\n");
    put(&f, "/sys/fs/cgroup/user/app/memory.current", "300000000\n");
    want_memory("a group without limit", &f, UINT64_C(1907712) * 1024);
    put(&f, "/sys/fs/cgroup/user/memory.max", "1000000000\n");
    put(&f, "/sys/fs/cgroup/user/memory.current", "700000000\n");
    want_memory("the limit of a group above, less its use", &f, 300000000);
    put(&f, "/sys/fs/cgroup/user/memory.stat", "anon 1\nfile 400000000\ninactive_file 100000000\nactive_file 300000000\n");
    want_memory("pages of files can be dropped", &f, 700000000);
    put(&f, "/sys/fs/cgroup/user/app/memory.high", "500000000\n");
    want_memory("the throttling limit counts", &f, 200000000);
    put(&f, "/sys/fs/cgroup/user/app/memory.current", "600000000\n");
    want_memory("a group above its limit has nothing left", &f, 0);
    fake_end(&f);
}

static void memory_v1(void)
{
    fake f = fake_new();
    put(&f, "/proc/meminfo", "MemTotal: 2000000 kB\nMemFree: 300000 kB\nBuffers: 5 kB\nCached: 200000 kB\n");
    want_memory("old kernels: free and half the cache", &f, UINT64_C(400000) * 1024);
    put(&f, "/proc/self/cgroup", "9:name=systemd:/\n7:memory:/docker/0123\n");
    put(&f, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put(&f, "/sys/fs/cgroup/memory/memory.usage_in_bytes", "100000000\n");
    want_memory("v1's number for no limit", &f, UINT64_C(400000) * 1024);
    put(&f, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n");
    put(&f, "/sys/fs/cgroup/memory/memory.stat", "cache 5\ninactive_file 1\ntotal_inactive_file 20000000\ntotal_active_file 30000000\n");
    want_memory("v1's limit, cache of the whole tree excepted", &f, 268435456 - 50000000);
    fake_end(&f);
}

static void hostile_files(void)
{
    fake f = fake_new();
    put(&f, "/proc/meminfo", "MemAvailable: 99999999999999999999999 kB");
    put(&f, "/proc/self/cgroup", "::\n\n:::::\n0:\n0::");
    put(&f, "/sys/fs/cgroup/memory.max", "");
    want_memory("numbers beyond 64 bits and broken lines are unknown", &f, UINT64_MAX);
    fake_end(&f);
}

static void this_machine(void)
{
    pn_topology t;
    char name[100], cut[4];
    int generation, prompt;
    pn_topology_read(&t);
    pn_cpu_name(name, sizeof name);
    pn_cpu_name(cut, sizeof cut);
    pn_threads_default(&t, &generation, &prompt);
    printf("%s, features %#x: %d processors, %d cores, %d big; %d threads to generate, %d for prompts\n", name, (unsigned)pn_cpu_features(), t.n_online, t.n_physical, t.n_big, generation, prompt);
    CHECK("cores are no more than processors", t.n_online >= t.n_physical && t.n_physical >= t.n_big && t.n_big >= 1, "%d %d %d", t.n_online, t.n_physical, t.n_big);
    CHECK("threads are no more than processors", generation >= 1 && generation <= t.n_online && prompt >= generation && prompt <= t.n_online, "%d %d", generation, prompt);
    CHECK("the name is text and fits", strlen(name) > 0 && strlen(cut) < sizeof cut, "%s %s", name, cut);
    const uint32_t f = pn_cpu_features();
    CHECK("features build on each other", (!(f & PN_CPU_AVX512VNNI) || (f & PN_CPU_AVX2)) && (!(f & PN_CPU_DOTPROD) || (f & PN_CPU_NEON)), "%#x", (unsigned)f);
#ifdef __aarch64__
    CHECK("64-bit ARM has NEON", f & PN_CPU_NEON, "%#x", (unsigned)f);
#endif
    const uint64_t resident = pn_memory_resident(), peak = pn_memory_peak();
    /* the kernel adds up a process's pages in batches */
    CHECK("peak memory is at least what is resident", peak + (1 << 20) >= resident, "%" PRIu64 " %" PRIu64, peak, resident);
    const double a = pn_now(), b = pn_now();
    CHECK("the clock does not go back", a >= 0 && b >= a, "%g %g", a, b);
    CHECK("this process is young", pn_process_age() < 3600, "%g", pn_process_age());
}

int main(void)
{
    nothing_readable();
    siblings();
    capacities();
    quotas();
    threads();
    memory_v2();
    memory_v1();
    hostile_files();
    this_machine();
    return pn_done();
}
