/* Model files with wrong hyper-parameters, shapes and lists, for every architecture: a sentence or a run; never a crash, a hang or memory out of proportion.
 *
 * Under the address sanitizer 2,000 mutants for each architecture, elsewhere fewer, the same on every machine. Children compute them, so that one that dies is
 * one failure. A failure names architecture and number: MUTANT=llama:17 build/tests/models_hostile uses that mutant alone, with FILE behind it writes it. */
#include "base/cpu.h"
#include "fuzz/engine_use.h"
#include "model_mutate.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__)
enum { MUTANTS = 2000, CHILDREN = 2, MOST_SECONDS = 2 };
/* An allocation above that fails as a crash does: files are below 2 MiB, and USE_LIMIT is what a model may plan for. */
__attribute__((visibility("default"), used)) const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "max_allocation_size_mb=96:quarantine_size_mb=8:allocator_may_return_null=0"; }
#elif defined(__x86_64__)
enum { MUTANTS = 100, CHILDREN = 2, MOST_SECONDS = 2 };
#else
enum { MUTANTS = 4, CHILDREN = 2, MOST_SECONDS = 100 }; /* emulated */
#endif
enum { MOST_FILES = 160, MOST_ARCHS = 64, MOST_CASES = 24, TOKENS = 19, MOST_DEATHS = 4, HANG_SECONDS = 300 };

typedef struct model_file {
    pn_gguf *g;
    uint8_t *bytes;
    size_t n, data_at;
    pn_str arch;
} model_file;

/* What a child tells while it works, in memory that it shares. */
typedef struct progress {
    int next;      /* mutant */
    int ran, refused, slow;
} progress;

typedef struct family { /* the files of an architecture */
    pn_str arch;
    const model_file *files[MOST_CASES];
    size_t n_files;
    progress *progress;
    int deaths;
} family;

static model_file files[MOST_FILES];
static size_t n_files;
static family families[MOST_ARCHS];
static size_t n_families;
static key_pool pool;

/* ---- the good files ----------------------------------------------------------------------------------------------- */

static void note_keys(const model_file *f)
{
    for (size_t i = 0; i < pn_gguf_n_values(f->g); i++) {
        entry e = entry_of(pn_gguf_value_at(f->g, i));
        bool known = !starts(e.key, f->arch.p, f->arch.n) || e.key.n < f->arch.n + 2 || pool.n == PN_COUNT(pool.entries);
        if (known) continue;
        e.key = (pn_str){e.key.p + f->arch.n + 1, e.key.n - f->arch.n - 1};
        for (size_t k = 0; k < pool.n && !known; k++) known = same_str(pool.entries[k].key, e.key);
        if (!known) pool.entries[pool.n++] = e;
    }
}

static void note_arch(const model_file *f)
{
    size_t i = 0;
    while (i < n_families && !same_str(families[i].arch, f->arch)) i++;
    if (i == n_families && n_families < MOST_ARCHS) {
        families[n_families++] = (family){.arch = f->arch};
        pool.archs[pool.n_archs++] = f->arch;
    }
    if (i < n_families && families[i].n_files < MOST_CASES) families[i].files[families[i].n_files++] = f;
}

static bool read_file(model_file *f, const char *path)
{
    pinch_error err = {0};
    bool found = false;
    if (pn_gguf_open(&f->g, path, &err)) return false;
    if (pn_gguf_get_string(f->g, "general.architecture", &f->arch, &found, NULL) || !found || pn_gguf_n_tensors(f->g) == 0) return false;
    f->data_at = (size_t)pn_gguf_tensor_at(f->g, 0)->offset;
    FILE *in = fopen(path, "rb");
    f->n = (size_t)pn_file_size(pn_gguf_file(f->g, 0));
    f->bytes = malloc(f->n);
    const bool whole = in && f->bytes && fread(f->bytes, 1, f->n, in) == f->n;
    if (in) fclose(in);
    return whole;
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* In the order of their names, on which mutants depend; without files of one tensor type each, and ternary ones, whose plain kernels are slow under sanitizers. */
static void read_folder(const char *folder)
{
    char *names[MOST_FILES], path[1024];
    size_t n = 0;
    DIR *dir = opendir(folder);
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e && n < MOST_FILES; e = readdir(dir))
        if (*e->d_name != '.' && strncmp(e->d_name, "type-", 5) && strncmp(e->d_name, "bitnet-tq", 9) && (names[n] = strdup(e->d_name)) != NULL) n++;
    if (dir) closedir(dir);
    qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s/model.gguf", folder, names[i]);
        free(names[i]);
        if (n_files == MOST_FILES || !read_file(&files[n_files], path)) continue;
        note_keys(&files[n_files]);
        note_arch(&files[n_files++]);
    }
}

static void free_files(void)
{
    for (size_t i = 0; i < n_files; i++) {
        pn_gguf_close(files[i].g);
        free(files[i].bytes);
    }
}

/* ---- mutants --------------------------------------------------------------------------------------------------------- */

/* For any mutant of any file. */
static sink sink_open(void)
{
    sink s = {.capacity = ARENA_BYTES};
    for (size_t i = 0; i < n_files; i++)
        if (files[i].n + ARENA_BYTES > s.capacity) s.capacity = files[i].n + ARENA_BYTES;
    s.p = malloc(s.capacity);
    if (!s.p) exit(1);
    return s;
}

/* -> how it is used. */
static use_how make_mutant(const family *f, int number, recipe *r, sink *out)
{
    unsigned long long seed = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < f->arch.n; i++) seed = (seed ^ (uint8_t)f->arch.p[i]) * 0x100000001b3ull;
    seed ^= ((unsigned long long)number + 1) * 0x9E3779B97F4A7C15ull;
    if (!seed) seed = 1;
    const model_file *file = f->files[(size_t)number % f->n_files];
    recipe_fill(r, file->g, file->bytes + file->data_at, file->n - file->data_at, f->arch);
    recipe_change(r, &pool, &seed);
    recipe_write(r, out, &seed);
    pn_arena_free(&r->arena);
    return use_how_of(pn_random(&seed) >> 20, TOKENS);
}

/* In a child: what is left of a family's mutants. */
static void work(const family *f)
{
    recipe *r = malloc(sizeof *r);
    sink out = sink_open();
    progress *p = f->progress;
    while (r && p->next < MUTANTS) {
        const int number = p->next++;
        const use_how how = make_mutant(f, number, r, &out);
        alarm(HANG_SECONDS);
        const clock_t start = clock();
        const bool ran = use_model_file(out.p, out.n, how);
        p->ran += ran;
        p->refused += !ran;
        const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (seconds > MOST_SECONDS) {
            p->slow++;
            printf("%.*s:%d takes %.1f s\n", (int)f->arch.n, f->arch.p, number, seconds);
        }
    }
    free(out.p);
    free(r);
    free_files();
    exit(0); /* leaks are found here */
}

/* A child that ended otherwise is replaced, to go on behind the mutant that it died of. */
static bool reap(family *f, int status)
{
    const bool died = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    CHECK("a mutant is a sentence or a run, and leaks nothing", !died, "MUTANT=%.*s:%d: status %d", (int)f->arch.n, f->arch.p, f->progress->next - 1, status);
    f->deaths += died;
    return died && f->deaths < MOST_DEATHS && f->progress->next < MUTANTS;
}

static pid_t start(const family *f)
{
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) work(f);
    return pid;
}

static void work_all(void)
{
    pid_t running[CHILDREN] = {0};
    family *of[CHILDREN] = {0};
    size_t next = 0;
    for (int busy = 0;;) {
        for (int i = 0; i < CHILDREN && next < n_families; i++) {
            if (running[i]) continue;
            of[i] = &families[next++];
            running[i] = start(of[i]);
            busy++;
        }
        if (busy == 0) return;
        int status = 0;
        const pid_t pid = wait(&status);
        for (int i = 0; i < CHILDREN; i++) {
            if (running[i] != pid) continue;
            running[i] = reap(of[i], status) ? start(of[i]) : 0;
            busy -= running[i] == 0;
        }
    }
}

static void report(const family *f)
{
    const progress *p = f->progress;
    const char *name = f->arch.p;
    const int n = (int)f->arch.n;
    CHECK("all mutants of an architecture are tried", p->ran + p->refused + f->deaths >= MUTANTS, "%.*s: %d", n, name, p->ran + p->refused);
    CHECK("no mutant takes long", p->slow == 0, "%.*s: %d", n, name, p->slow);
    if (MUTANTS >= 100) CHECK("some mutants run and some are refused", p->ran >= MUTANTS / 20 && p->refused >= MUTANTS / 20, "%.*s: %d and %d", n, name, p->ran, p->refused);
    pn_passed += p->ran + p->refused;
}

/* ---- one by hand -------------------------------------------------------------------------------------------------------- */

static int one_mutant(const char *which, const char *path)
{
    const char *colon = strchr(which, ':');
    size_t i = 0;
    while (colon && i < n_families && !same_str(families[i].arch, (pn_str){which, (size_t)(colon - which)})) i++;
    recipe *r = malloc(sizeof *r);
    if (!colon || i == n_families || !r) return 1;
    sink out = sink_open();
    const use_how how = make_mutant(&families[i], atoi(colon + 1), r, &out);
    FILE *f = path ? fopen(path, "wb") : NULL;
    const bool ok = path ? f && fwrite(out.p, 1, out.n, f) == out.n && !fclose(f) : use_model_file(out.p, out.n, how);
    printf("%s\n", ok ? path ? "written" : "runs" : path ? "cannot be written" : "is refused");
    free(out.p);
    free(r);
    free_files();
    return 0;
}

static void check_names(void)
{
#define ARCH_AS(name, text) text,
#define ARCH(name) #name,
    static const char *const names[] = {
#include "models/arch.def"
    };
#undef ARCH
#undef ARCH_AS
    for (size_t i = 0; i < PN_COUNT(names); i++) {
        size_t k = 0;
        while (k < n_families && !same_str(families[k].arch, (pn_str){names[i], strlen(names[i])})) k++;
        CHECK("every architecture has a golden file to make mutants of", k < n_families, "%s", names[i]);
    }
}

int main(int argc, char **argv)
{
    char folder[512];
    const char *shared = pn_shared();
    if (shared) snprintf(folder, sizeof folder, "%s/golden", shared);
    read_folder(shared ? folder : "tests/golden");
    if (getenv("MUTANT")) return one_mutant(getenv("MUTANT"), argc == 2 ? argv[1] : NULL);
    if (shared) check_names();
    else pn_skip("mutants of other architectures", "../shared is missing");
    progress *shared_memory = mmap(NULL, MOST_ARCHS * sizeof *shared_memory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared_memory == MAP_FAILED) return 1;
    for (size_t i = 0; i < n_families; i++) families[i].progress = &shared_memory[i];
    work_all();
    for (size_t i = 0; i < n_families; i++) report(&families[i]);
    munmap(shared_memory, MOST_ARCHS * sizeof *shared_memory);
    free_files();
    return pn_done();
}
