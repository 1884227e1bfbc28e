/* tests/gguf_bad.c - what a file must not be, and the sentence that each breach gives; what is odd but allowed opens. */
#include "gguf_bytes.h"

#include <sys/stat.h>

#define PREFIX(tensors, values) "GGUF u32:3 u64:" #tensors " u64:" #values " "
#define TENSOR1(name, d0, type, offset) "s:" name " u32:1 u64:" #d0 " u32:" #type " u64:" #offset " "
#define KEY(key, kind) "s:" key " u32:" #kind " "

static const struct { const char *recipe; pinch_status status; const char *sentence; } cases[] = {
    /* prefix */
    {"", PINCH_ERR_FORMAT, "is no GGUF file: it has 0 bytes, the prefix alone takes 24"},
    {"GGUF u32:3 u64:0 u32:0 u16:0 u8:0", PINCH_ERR_FORMAT, "is no GGUF file: it has 23 bytes, the prefix alone takes 24"},
    {"x:PK\x03\x04 zero:20", PINCH_ERR_FORMAT, "is no GGUF file but a zip or PyTorch file: convert the model to GGUF"},
    {"x:version zero:40", PINCH_ERR_FORMAT, "is no GGUF file but perhaps a Git LFS pointer: fetch the file itself with git lfs pull"},
    {"x:tjgg zero:40", PINCH_ERR_FORMAT, "is no GGUF file but a GGML (ggjt) file of 2023: convert the original model to GGUF"},
    {"x:GGUG zero:40", PINCH_ERR_FORMAT, "is no GGUF file: it begins with bytes 47 47 55 47"},
    {"GGUF u32:1 zero:40", PINCH_ERR_UNSUPPORTED, "GGUF version 1 (August 2023) is not read, versions 2 and 3 are: convert the original model again"},
    {"GGUF u32:0 zero:40", PINCH_ERR_UNSUPPORTED, "GGUF version 0 is unknown, versions 2 and 3 are read: it takes a newer version of this program"},
    {"GGUF u32:4 zero:40", PINCH_ERR_UNSUPPORTED, "GGUF version 4 is unknown, versions 2 and 3 are read: it takes a newer version of this program"},
    {"GGUF u32:0x03000000 zero:40", PINCH_ERR_UNSUPPORTED, "version 50331648 is 3 in big-endian order: convert the file to little-endian"},
    {PREFIX(0, -1), PINCH_ERR_FORMAT, "-1 metadata values cannot fit into 0 bytes"},
    {PREFIX(0x7fffffffffffffff, 0) "zero:100", PINCH_ERR_FORMAT, "9223372036854775807 tensors cannot fit into 100 bytes"},
    {PREFIX(0, 2) "zero:27", PINCH_ERR_FORMAT, "2 metadata values cannot fit into 27 bytes"},
    /* keys and values */
    {PREFIX(0, 1) "u64:0 zero:20", PINCH_ERR_FORMAT, "metadata value 0: the key is empty"},
    {PREFIX(0, 1) "u64:0x7fffffffffffffff zero:20", PINCH_ERR_FORMAT, "metadata value 0: the key has 9223372036854775807 bytes, at most 65535 are allowed"},
    {PREFIX(0, 1) "u64:30 zero:20", PINCH_ERR_FORMAT, "metadata value 0: the key needs 30 bytes, but only 20 are left in the file"},
    {PREFIX(0, 1) "u64:2 x:a u8:0 u32:4 u32:1", PINCH_ERR_FORMAT, "metadata value 0: the key holds a zero byte"},
    {PREFIX(0, 1) KEY("a.b", 13) "u64:1", PINCH_ERR_UNSUPPORTED, "metadata value 0 'a.b': a value of unknown kind 13"},
    {PREFIX(0, 1) KEY("a.b", -1) "u64:1", PINCH_ERR_UNSUPPORTED, "metadata value 0 'a.b': a value of unknown kind 4294967295"},
    {PREFIX(0, 1) KEY("a.b", 10) "u32:1", PINCH_ERR_FORMAT, "metadata value 0 'a.b': the value needs 8 bytes, but only 4 are left in the file"},
    {PREFIX(0, 1) KEY("a.b", 8) "u64:0x40000001", PINCH_ERR_FORMAT, "metadata value 0 'a.b': the string has 1073741825 bytes, at most 2^30 are allowed"},
    {PREFIX(0, 1) KEY("a.b", 8) "u64:9 x:12345678", PINCH_ERR_FORMAT, "metadata value 0 'a.b': the string needs 9 bytes, but only 8 are left in the file"},
    {PREFIX(0, 1) KEY("a.b", 9) "u32:9 u64:1 u32:4 u64:0", PINCH_ERR_UNSUPPORTED, "metadata value 0 'a.b': an array of arrays (1 items), which no known model uses"},
    {PREFIX(0, 1) KEY("a.b", 9) "u32:77 u64:1 u32:4", PINCH_ERR_UNSUPPORTED, "metadata value 0 'a.b': array items of unknown kind 77"},
    {PREFIX(0, 1) KEY("a.b", 9) "u32:0 u64:0x40000001", PINCH_ERR_FORMAT, "metadata value 0 'a.b': an array of 1073741825 items, at most 2^30 are allowed"},
    {PREFIX(0, 1) KEY("a.b", 9) "u32:4 u64:3 u64:0", PINCH_ERR_FORMAT, "metadata value 0 'a.b': the array needs 12 bytes, but only 8 are left in the file"},
    {PREFIX(0, 1) KEY("a.b", 9) "u32:8 u64:0x40000000 s:x", PINCH_ERR_FORMAT, "metadata value 0 'a.b': the string array needs 8589934592 bytes, but only 9 are left in the file"},
    {PREFIX(0, 1) KEY("a.b", 9) "u32:8 u64:2 s:xy u64:7", PINCH_ERR_FORMAT, "metadata value 0 'a.b': a string of the array needs 7 bytes, but only 0 are left in the file"},
    {PREFIX(0, 2) KEY("a.b", 4) "u32:1 " KEY("a.b", 4) "u32:1", PINCH_ERR_FORMAT, "metadata key 'a.b' stands there twice"},
    {PREFIX(0, 1) "u64:4 u8:0xff x:\n u8:0xc3 x:( u32:99 u64:0", PINCH_ERR_UNSUPPORTED, "metadata value 0 '?\?\?(': a value of unknown kind 99"},
    {PREFIX(0, 1) KEY("general.alignment", 10) "u64:32", PINCH_ERR_FORMAT, "metadata value 0 'general.alignment': is of kind u64, u32 is needed"},
    {PREFIX(0, 1) KEY("general.alignment", 4) "u32:0", PINCH_ERR_FORMAT, "metadata value 0 'general.alignment': 0 is no power of two up to 1048576"},
    {PREFIX(0, 1) KEY("general.alignment", 4) "u32:48", PINCH_ERR_FORMAT, "metadata value 0 'general.alignment': 48 is no power of two up to 1048576"},
    {PREFIX(0, 1) KEY("general.alignment", 4) "u32:0x80000000", PINCH_ERR_FORMAT, "metadata value 0 'general.alignment': 2147483648 is no power of two up to 1048576"},
    {PREFIX(0, 1) KEY("split.count", 6) "u32:0", PINCH_ERR_FORMAT, "split.count is of kind f32, an integer is needed"},
    {PREFIX(0, 2) KEY("split.no", 2) "u16:1 " KEY("split.count", 2) "u16:3", PINCH_ERR_UNSUPPORTED, "is part 2 of 3 of a split model, which opens only by its path"},
    {PREFIX(0, 2) KEY("split.no", 2) "u16:3 " KEY("split.count", 2) "u16:3", PINCH_ERR_FORMAT, "split.no 3 of split.count 3"},
    {PREFIX(0, 1) KEY("split.count", 5) "u32:-1", PINCH_ERR_FORMAT, "split.no 0 of split.count -1"},
    /* tensors */
    {PREFIX(1, 0) "u64:0 zero:40", PINCH_ERR_FORMAT, "tensor 0: the name is empty"},
    {PREFIX(1, 0) "s*64 zero:40", PINCH_ERR_FORMAT, "tensor 0: the name has 64 bytes, at most 63 are allowed"},
    {PREFIX(1, 0) "s:t u32:5 zero:60", PINCH_ERR_FORMAT, "tensor 0 't': has 5 dimensions, at most 4 are allowed"},
    {PREFIX(1, 0) "s:t u32:-1 zero:60", PINCH_ERR_FORMAT, "tensor 0 't': has 4294967295 dimensions, at most 4 are allowed"},
    {PREFIX(1, 0) "s:t u32:2 u64:1 u64:-5 zero:60", PINCH_ERR_FORMAT, "tensor 0 't': dimension 1 is -5"},
    {PREFIX(1, 0) "s:t u32:2 u64:0x100000000 u64:0x80000000 zero:60", PINCH_ERR_FORMAT, "tensor 0 't': dimension 1 of 2147483648 makes more than 2^63 elements"},
    {PREFIX(1, 0) TENSOR1("t", 0x7fffffffffffffff, 0, 0), PINCH_ERR_FORMAT, "tensor 0 't': its size overflows 63 bits (f32, rows of 9223372036854775807)"},
    {PREFIX(1, 0) TENSOR1("t", 33, 8, 0) "zero:99", PINCH_ERR_FORMAT, "tensor 0 't': rows of 33 elements are no multiple of q8_0's block of 32"},
    {PREFIX(1, 0) TENSOR1("t", 32, 4, 0), PINCH_ERR_UNSUPPORTED, "tensor 0 't': type 4 is Q4_2 or Q4_3, removed in 2023: quantise the original model again, as Q4_0 or Q4_K"},
    {PREFIX(1, 0) TENSOR1("t", 32, 31, 0), PINCH_ERR_UNSUPPORTED, "tensor 0 't': type 31 is Q4_0 interleaved for one CPU, removed in 2024: quantise the model as Q4_0, which is interleaved when it is loaded"},
    {PREFIX(1, 0) TENSOR1("t", 32, 36, 0), PINCH_ERR_UNSUPPORTED, "tensor 0 't': type 36 is IQ4_NL interleaved for one CPU (removed in 2024), or I2_S of the BitNet fork: quantise the model as IQ4_NL or TQ2_0"},
    {PREFIX(1, 0) TENSOR1("t", 32, 139, 0), PINCH_ERR_UNSUPPORTED, "tensor 0 't': type 139 is a type of the ik_llama.cpp fork: quantise the model with mainline llama.cpp"},
    {PREFIX(1, 0) TENSOR1("t", 32, 142, 0), PINCH_ERR_UNSUPPORTED, "tensor 0 't': type 142 is PQ2_0 of the PrismML fork (or a type of ik_llama.cpp): quantise the model as Q2_0"},
    {PREFIX(1, 0) TENSOR1("t", 32, 43, 0), PINCH_ERR_UNSUPPORTED, "tensor 0 't': type 43 is unknown; the newest known is 42: it takes a newer version of this program"},
    {PREFIX(1, 0) TENSOR1("t", 32, -1, 0), PINCH_ERR_UNSUPPORTED, "tensor 0 't': type 4294967295 is unknown; the newest known is 42: it takes a newer version of this program"},
    {PREFIX(1, 0) TENSOR1("t", 8, 0, 32) "zero:99", PINCH_ERR_FORMAT, "tensor 0 't': its offset is 32, the tensors before it end at 0: gaps, overlaps and other orders are not allowed"},
    {PREFIX(2, 0) TENSOR1("t", 8, 0, 0) TENSOR1("u", 8, 0, 0) "zero:99", PINCH_ERR_FORMAT, "tensor 1 'u': its offset is 0, the tensors before it end at 32: gaps, overlaps and other orders are not allowed"},
    {PREFIX(2, 0) TENSOR1("t", 8, 0, 0) TENSOR1("t", 8, 0, 32) "zero:99", PINCH_ERR_FORMAT, "tensor 't' stands there twice"},
    {PREFIX(1, 0) TENSOR1("t", 9, 0, 0) "zero:42", PINCH_ERR_FORMAT, "tensor 0 't': ends at byte 100, the file at 99: it is cut off"},
    {PREFIX(1, 0) TENSOR1("t", 0x1000000000000000, 0, 0), PINCH_ERR_FORMAT, "tensor 0 't': ends at byte 4611686018427387968, the file at 57: it is cut off"},
    {PREFIX(2, 0) TENSOR1("t", 0x1fffffffffffffff, 0, 0) TENSOR1("u", 8, 0, 0), PINCH_ERR_FORMAT, "tensor 0 't': offset 0 and 9223372036854775804 bytes overflow 63 bits"},
    {PREFIX(1, 0) "s:t u32:1 u64:32 u32:0", PINCH_ERR_FORMAT, "tensor 0 't': the offset needs 8 bytes, but only 0 are left in the file"},
    /* PrismML's old Q2_0: 1280 weights are 360 bytes (384 padded) in ours, 340 (352) in theirs */
    {PREFIX(2, 0) TENSOR1("t", 1280, 42, 0) TENSOR1("u", 8, 0, 352) "zero:500", PINCH_ERR_UNSUPPORTED,
     "tensor 1 'u': its offset 352 shows that the tensors before it are the PrismML fork's old Q2_0 (34 bytes for 128 weights): quantise the model again, as Q2_0"},
    {PREFIX(1, 0) TENSOR1("t", 1280, 42, 0) "zero:347", PINCH_ERR_UNSUPPORTED,
     "tensor 0 't': the file's 404 bytes fit the PrismML fork's old Q2_0 (34 bytes for 128 weights): quantise the model again, as Q2_0"},
};

static const struct { const char *what, *recipe; } allowed[] = {
    {"no values and no tensors", PREFIX(0, 0)},
    {"version 2", "GGUF u32:2 u64:0 u64:0"},
    {"bytes behind the end", PREFIX(0, 0) "zero:100"},
    {"a string with zero bytes", PREFIX(0, 1) KEY("a", 8) "u64:3 zero:3"},
    {"empty arrays", PREFIX(0, 2) KEY("a", 9) "u32:8 u64:0 " KEY("b", 9) "u32:4 u64:0"},
    {"a bool of 2", PREFIX(0, 1) KEY("a", 7) "u8:2"},
    {"a tensor without elements", PREFIX(2, 0) TENSOR1("t", 0, 0, 0) TENSOR1("u", 8, 0, 0) "zero:62"},
    {"a scalar tensor", PREFIX(1, 0) "s:t u32:0 u32:0 u64:0 zero:15 f32:0"},
    {"the last tensor's padding missing", PREFIX(1, 0) TENSOR1("t", 1, 0, 0) "zero:11"},
    {"a name of 63 bytes", PREFIX(1, 0) "s*63 u32:1 u64:1 u32:0 u64:0 zero:36"},
    {"alignment 8", PREFIX(2, 1) KEY("general.alignment", 4) "u32:8 " TENSOR1("t", 1, 0, 0) TENSOR1("u", 1, 0, 8) "zero:40"},
    {"a split of one", PREFIX(0, 1) KEY("split.count", 2) "u16:1"},
};

static void check_cases(int fd)
{
    for (size_t i = 0; i < PN_COUNT(cases); i++) {
        bytes b = bytes_of(cases[i].recipe);
        pn_gguf *g = NULL;
        pinch_error err = {0};
        char want[600];
        snprintf(want, sizeof want, "bad.gguf: %s", cases[i].sentence);
        if (!bytes_write(fd, &b)) exit(1);
        pinch_status status = pn_gguf_open_fd(&g, fd, "bad.gguf", &err);
        CHECK("a bad file is refused with its sentence", status == cases[i].status && strcmp(err.message, want) == 0, "%s\n  got  %d %s\n  want %d %s", cases[i].recipe, status,
              err.message, cases[i].status, want);
        CHECK("the status stands in the error too", err.status == status && (status || g), "%s", cases[i].recipe);
        if (!status) pn_gguf_close(g);
        free(b.p);
    }
    for (size_t i = 0; i < PN_COUNT(allowed); i++) {
        bytes b = bytes_of(allowed[i].recipe);
        pn_gguf *g = NULL;
        pinch_error err = {0};
        if (!bytes_write(fd, &b)) exit(1);
        CHECK("an odd file is allowed", pn_gguf_open_fd(&g, fd, "odd.gguf", &err) == PINCH_OK, "%s: %s", allowed[i].what, err.message);
        pn_gguf_close(g);
        free(b.p);
    }
}

/* ---- typed reads ------------------------------------------------------------------------------ */

static const char values_recipe[] = PREFIX(0, 14) KEY("u8", 0) "u8:200 " KEY("i8", 1) "u8:200 " KEY("u16", 2) "u16:60000 " KEY("i16", 3) "u16:60000 " KEY("u32", 4)
    "u32:4000000000 " KEY("i32", 5) "u32:4000000000 " KEY("f32", 6) "f32:0x3fc00000 " KEY("bool", 7) "u8:1 " KEY("s", 8) "s:text " KEY("a", 9)
    "u32:3 u64:2 u16:-7 u16:9 " KEY("u64", 10) "u64:-1 " KEY("i64", 11) "u64:-1 " KEY("f64", 12) "u64:0x3ff8000000000000 " KEY("as", 9) "u32:8 u64:2 s:one s:";

static void check_ints(const pn_gguf *g)
{
    static const struct { const char *key; int64_t want; } good[] = {{"u8", 200}, {"i8", -56}, {"u16", 60000}, {"i16", -5536}, {"u32", 4000000000}, {"i32", -294967296}, {"i64", -1}};
    static const struct { const char *key, *sentence; } bad[] = {
        {"f32", "v.gguf: metadata key 'f32' is of kind f32, an integer is needed"},       {"s", "v.gguf: metadata key 's' is of kind string, an integer is needed"},
        {"a", "v.gguf: metadata key 'a' is an array of i16, an integer is needed"},       {"u64", "v.gguf: metadata key 'u64' is 18446744073709551615, beyond 2^63"},
        {"bool", "v.gguf: metadata key 'bool' is of kind bool, an integer is needed"},
    };
    bool found;
    for (size_t i = 0; i < PN_COUNT(good); i++) {
        int64_t v = 0;
        double d = 0;
        pinch_status status = pn_gguf_get_int(g, good[i].key, &v, &found, NULL);
        CHECK("integers of every width are read", status == PINCH_OK && found && v == good[i].want, "%s: %" PRId64, good[i].key, v);
        status = pn_gguf_get_float(g, good[i].key, &d, &found, NULL);
        CHECK("integers serve for floats", status == PINCH_OK && found && d == (double)good[i].want, "%s: %g", good[i].key, d);
    }
    for (size_t i = 0; i < PN_COUNT(bad); i++) {
        int64_t v = 77;
        pinch_error err = {0};
        pinch_status status = pn_gguf_get_int(g, bad[i].key, &v, &found, &err);
        CHECK("what is no integer is refused", status == PINCH_ERR_FORMAT && found && v == 77 && strcmp(err.message, bad[i].sentence) == 0, "%s", err.message);
    }
    int64_t v = 77;
    CHECK("an absent key is no error", pn_gguf_get_int(g, "none", &v, &found, NULL) == PINCH_OK && !found && v == 77, "%" PRId64, v);
}

static void check_others(const pn_gguf *g)
{
    bool found, b = false;
    double d = 0;
    pn_str s = {0};
    pinch_error err = {0};
    CHECK("f32 is read", pn_gguf_get_float(g, "f32", &d, &found, NULL) == PINCH_OK && d == 1.5, "%g", d);
    CHECK("f64 is read", pn_gguf_get_float(g, "f64", &d, &found, NULL) == PINCH_OK && d == 1.5, "%g", d);
    CHECK("a bool is no number", pn_gguf_get_float(g, "bool", &d, &found, &err) == PINCH_ERR_FORMAT, "%s", err.message);
    CHECK("bool is read", pn_gguf_get_bool(g, "bool", &b, &found, NULL) == PINCH_OK && b, "%d", b);
    CHECK("a number is no bool", pn_gguf_get_bool(g, "u8", &b, &found, &err) == PINCH_ERR_FORMAT && strcmp(err.message, "v.gguf: metadata key 'u8' is of kind u8, a bool is needed") == 0, "%s", err.message);
    CHECK("string is read", pn_gguf_get_string(g, "s", &s, &found, NULL) == PINCH_OK && s.n == 4 && memcmp(s.p, "text", 4) == 0, "%zu", s.n);
    CHECK("an array is no string", pn_gguf_get_string(g, "as", &s, &found, &err) == PINCH_ERR_FORMAT && strcmp(err.message, "v.gguf: metadata key 'as' is an array of string, a string is needed") == 0, "%s", err.message);
    const pn_gguf_value *a = pn_gguf_find(g, "a"), *as = pn_gguf_find(g, "as");
    int64_t first = 0, second = 0, none = 5;
    CHECK("array items are read", pn_gguf_int_at(a, 0, &first) && pn_gguf_int_at(a, 1, &second) && first == -7 && second == 9, "%" PRId64 " %" PRId64, first, second);
    CHECK("there is no item beyond the last", !pn_gguf_int_at(a, 2, &none) && !pn_gguf_int_at(a, UINT64_MAX, &none) && none == 5, "%" PRId64, none);
    uint64_t cursor = 0;
    CHECK("strings of an array are walked", pn_gguf_next_string(as, &cursor, &s) && s.n == 3 && pn_gguf_next_string(as, &cursor, &s) && s.n == 0 && !pn_gguf_next_string(as, &cursor, &s), "%zu", s.n);
}

static void check_values(int fd)
{
    bytes b = bytes_of(values_recipe);
    pn_gguf *g = NULL;
    pinch_error err = {0};
    if (!bytes_write(fd, &b)) exit(1);
    if (CHECK("a file of every kind opens", pn_gguf_open_fd(&g, fd, "v.gguf", &err) == PINCH_OK, "%s", err.message)) {
        check_ints(g);
        check_others(g);
        pn_gguf_close(g);
    }
    free(b.p);
}

/* ---- paths ------------------------------------------------------------------------------------ */

/* Writes a file from a recipe, opens it by `name`, wants a sentence (after the folder's name). */
static void check_path(const char *folder, const char *name, const char *recipe, const char *sentence)
{
    char path[300], want[700];
    pinch_error err = {0};
    pn_gguf *g = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = recipe ? fopen(path, "wb") : NULL;
    if (f) {
        bytes b = bytes_of(recipe);
        fwrite(b.p, 1, b.n, f);
        fclose(f);
        free(b.p);
    }
    snprintf(want, sizeof want, "%s/%s", folder, sentence);
    const pinch_status status = pn_gguf_open(&g, path, &err);
    CHECK("a path is refused with its sentence", status && strcmp(err.message, want) == 0, "got  %s\n  want %s", err.message, want);
    if (!status) pn_gguf_close(g);
}

static void remove_all(const char *folder, const char *const *names, size_t n)
{
    char path[300];
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
    rmdir(folder);
}

#define SPLIT(no, count, total) PREFIX(1, 3) KEY("split.no", 2) "u16:" #no " " KEY("split.count", 2) "u16:" #count " " KEY("split.tensors.count", 5) "u32:" #total " "

static void check_paths(void)
{
    char folder[] = "/tmp/pinch-bad-XXXXXX", pipe_path[300];
    static const char *const names[] = {"wrong.gguf", "m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "pipe"};
    if (!CHECK("a folder for files", mkdtemp(folder) != NULL, "%s", folder)) return;
    check_path(folder, "none.gguf", NULL, "none.gguf: cannot be opened: there is no such file");
    check_path(folder, ".", NULL, ".: is a folder, not a regular file");
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", folder);
    if (mkfifo(pipe_path, 0600) == 0) check_path(folder, "pipe", NULL, "pipe: is a device, pipe or socket, not a regular file");
    check_path(folder, "wrong.gguf", SPLIT(0, 2, 2) TENSOR1("t", 1, 0, 0) "zero:99",
               "wrong.gguf: is part 1 of 2 of a split model, so its name must end in \"-00001-of-00002.gguf\" to find the others");
    check_path(folder, names[2], SPLIT(1, 2, 2) TENSOR1("u", 1, 0, 0) "zero:99", "m-00001-of-00002.gguf: cannot be opened: there is no such file");
    check_path(folder, names[1], SPLIT(0, 2, 3) TENSOR1("t", 1, 0, 0) "zero:99", "m-00001-of-00002.gguf: split.tensors.count is 3, the 2 files hold 2 tensors");
    check_path(folder, names[1], SPLIT(0, 2, 2) TENSOR1("u", 1, 0, 0) "zero:99", "m-00001-of-00002.gguf: tensor 'u' stands there twice");
    check_path(folder, names[2], SPLIT(1, 3, 2) TENSOR1("u", 1, 0, 0) "zero:99",
               "m-00002-of-00002.gguf: is part 2 of 3 of a split model, so its name must end in \"-00002-of-00003.gguf\" to find the others");
    check_path(folder, names[2], SPLIT(0, 2, 2) TENSOR1("u", 1, 0, 0) "zero:99",
               "m-00002-of-00002.gguf: is part 1 of 2 of a split model, so its name must end in \"-00001-of-00002.gguf\" to find the others");
    check_path(folder, names[1], NULL, "m-00002-of-00002.gguf: split.no 0 of split.count 2, but its name says 1 of 2 (from 0)");
    remove_all(folder, names, PN_COUNT(names));
}

/* A file that shrinks under the reader: a status, at the header and at the data. */
static void check_shrinking(int fd)
{
    bytes b = bytes_of(PREFIX(1, 0) TENSOR1("t", 64, 0, 0) "zero:300");
    pn_gguf *g = NULL;
    pinch_error err = {0};
    uint8_t data[256];
    if (!bytes_write(fd, &b)) exit(1);
    if (!CHECK("a file opens", pn_gguf_open_fd(&g, fd, "s.gguf", &err) == PINCH_OK, "%s", err.message)) return;
    const pn_tensor *t = pn_gguf_tensor_at(g, 0);
    CHECK("its data is read", pn_gguf_read(g, t, 0, data, 256, &err) == PINCH_OK, "%s", err.message);
    CHECK("data beyond a tensor is refused", pn_gguf_read(g, t, 1, data, 256, &err) == PINCH_ERR_ARGUMENT &&
          strcmp(err.message, "s.gguf: tensor 't' has 256 bytes, 256 at 1 are wanted") == 0, "%s", err.message);
    CHECK("an offset near 2^64 is refused", pn_gguf_read(g, t, UINT64_MAX, data, 2, &err) == PINCH_ERR_ARGUMENT, "%s", err.message);
    if (ftruncate(fd, 100) != 0) exit(1);
    CHECK("a file cut after opening gives a status", pn_gguf_read(g, t, 0, data, 256, &err) == PINCH_ERR_IO &&
          strcmp(err.message, "s.gguf: ends at byte 100, it had 357 when it was opened") == 0, "%s", err.message);
    pn_gguf_close(g);
    free(b.p);
}

int main(void)
{
    FILE *f = tmpfile();
    if (!CHECK("a temporary file", f != NULL, "%s", "tmpfile")) return pn_done();
    check_cases(fileno(f));
    check_values(fileno(f));
    check_shrinking(fileno(f));
    check_paths();
    fclose(f);
    return pn_done();
}
