#!/usr/bin/env python3
"""The house, checked by machine: which room may include which, headers that stand alone, what leaves the library, lengths of files and functions.

Needs build/libpinch.a and .so. Prints each breach and the counts last."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.chdir(ROOT)

# Arrows of docs/DESIGN.md: a room includes itself and what stands here.
BELOW = {"base": []}
BELOW["quant"] = ["base"]
BELOW["gguf"] = ["base", "quant"]
BELOW["sched"] = ["base"]
BELOW["kernels"] = ["base", "quant"]
BELOW["token"] = ["base", "gguf", "quant"]
BELOW["chat"] = ["base"]
BELOW["sample"] = ["base"]
BELOW["state"] = BELOW["pager"] = BELOW["stream"] = ["base", "quant", "gguf", "sched", "kernels"]
BELOW["graph"] = [*BELOW["state"], "state", "pager", "stream"]
BELOW["models"] = [*BELOW["graph"], "graph"]
BELOW["engine"] = [*BELOW["models"], "models", "token", "chat", "sample"]
BELOW["net"] = BELOW["server"] = BELOW["tools"] = [*BELOW["engine"], "engine"]
BELOW["cli"] = [*BELOW["engine"], "engine", "net", "server", "tools"]
# The one header of a room that others may include is <room>/<room>.h, but for these.
PUBLIC = {"sched": {"pool.h"}, "kernels": {"kernels.h", "kernels.def", "prove.h"}, "quant": {"quant.h", "codes.h", "types.def"}}
OPEN_ROOMS = {"base"}

WARN = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
C11 = ["-std=c11", "-O2", "-D_GNU_SOURCE", "-DPINCH_BUILD", "-Iinclude", "-Isrc", *WARN]
MAX_FILE, MAX_FUNCTION = 1000, 70

# What no library room may call: it ends the process, prints, installs handlers, or depends on the locale or on the system's libm.
FORBIDDEN = re.compile(
    r"^(_?exit|_Exit|quick_exit|abort|atexit|raise|kill|__assert_fail|signal|sigaction|__sysv_signal|"
    r"v?printf|vf?printf|fprintf|__(v|f|vf)?printf_chk|puts|fputs|putchar|putc|fputc|perror|stdout|stderr|stdin|"
    r"setlocale|strtod|strtof|strtold|atof|__isoc\d+_strto[dfl]+|"
    r"(exp|exp2|exp10|expm1|log|log2|log10|log1p|sin|cos|tan|sincos|tanh|sinh|cosh|atan|atan2|asin|acos|pow|cbrt|erf|tgamma|lgamma)[fl]?)$")
# Sections whose contents may not change after the program is linked and relocated.
CONSTANT = (".text", ".rodata", ".data.rel.ro", ".eh_frame", ".note", ".debug", ".comment", "*UND*", "*ABS*", ".group")

passed, failed, skipped = 0, 0, 0


def check(what, breaches):
    global passed, failed
    if not breaches:
        passed += 1
        return
    failed += 1
    for b in breaches[:20]:
        print(f"FAILED {what}: {b}")


def skip(what, why):
    global skipped
    skipped += 1
    print(f"SKIPPED {what}: {why}")


def sources(folders, endings):
    found = []
    for folder in folders:
        for at, dirs, names in os.walk(folder):
            dirs[:] = [d for d in dirs if d not in ("__pycache__", "golden", "corpus", "bad")]
            found += [os.path.join(at, n) for n in names if n.endswith(endings)]
    return sorted(found)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def run(command):
    """-> the first error that a command prints, or nothing."""
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if p.returncode == 0:
        return ""
    lines = p.stdout.strip().splitlines() or [f"status {p.returncode}"]
    return next((line for line in lines if "error" in line or "undefined" in line), lines[0])


def room_of(path):
    return path.split(os.sep)[1]


def arrows():
    breaches = []
    for path in sources(["src"], (".c", ".h", ".def")):
        room = room_of(path)
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', read(path), re.M):
            other, _, rest = name.partition("/")
            if name == "pinch.h" or other == room:
                continue
            if other not in BELOW:
                breaches.append(f'{path} includes "{name}": not "<room>/<header>"')
            elif other not in BELOW.get(room, []):
                breaches.append(f'{path} includes "{name}": {room} may not know {other}')
            elif other not in OPEN_ROOMS and rest not in PUBLIC.get(other, {other + ".h"}):
                breaches.append(f'{path} includes "{name}": a header that {other} keeps to itself')
    check("rooms include only rooms below", breaches)
    check("every room has its place in the arrows", [r for r in sorted(os.listdir("src")) if r not in BELOW])


def compiler_for(path):
    """-> (command, flags) for a header's instruction set, or None where this machine has no such compiler."""
    x86_host = os.uname().machine == "x86_64"
    if "/x86/" in path:
        return ["gcc", "-mavx2", "-mfma", "-mf16c", "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni"] if x86_host else None
    if "/neon/" in path:
        cc = "aarch64-linux-gnu-gcc" if x86_host else "gcc"
        return [cc, "-march=armv8.2-a+dotprod"] if shutil.which(cc) else None
    return ["gcc"]


def headers():
    breaches, absent = [], []
    for path in sources(["src"], (".h",)):
        if "#ifndef PN_" not in read(path):
            if "template" not in read(path)[:1500].lower():
                breaches.append(f"{path}: no include guard, and does not call itself a template")
            continue
        cc = compiler_for(path)
        if not cc:
            absent.append(path)
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".c") as f:
            f.write(f'#include "{path[4:]}"\ntypedef int pn_not_empty;\n')
            f.flush()
            message = run([*cc, *C11, "-Wno-unused-function", "-fsyntax-only", f.name])
        if message:
            breaches.append(f"{path}: {message}")
    check("every header but templates compiles alone", breaches)
    if absent:
        skip("headers for another instruction set", "no compiler for " + ", ".join(absent))
    with tempfile.NamedTemporaryFile("w", suffix=".c") as f:
        f.write('#include "pinch.h"\nint main(void) { return (int)pinch_model_options_default().n_threads; }\n')
        f.flush()
        check("pinch.h compiles as C99", [m for m in [run(["gcc", "-std=c99", "-Iinclude", *WARN, "-fsyntax-only", f.name])] if m])
        if shutil.which("g++"):
            check("pinch.h compiles as C++", [m for m in [run(["g++", "-x", "c++", "-std=c++11", "-Iinclude", *WARN, "-fsyntax-only", f.name])] if m])
        else:
            skip("pinch.h compiles as C++", "no g++")


def symbols(library):
    """-> (member, binding, section, name) of every symbol of an archive."""
    member = ""
    for line in subprocess.run(["objdump", "-t", library], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        hit = re.match(r"^(\S+\.o):\s+file format", line)
        if hit:
            member = hit[1]
        hit = re.match(r"^[0-9a-f]+ (.{7}) (\S+)\s+[0-9a-f]+\s+(?:\.hidden |\.protected |\.internal )?(\S+)$", line)
        if hit:
            yield member, hit[1], hit[2], hit[3]


def library():
    found = list(symbols("build/libpinch.a"))
    writable = [f"{m}: {name} in {section}" for m, flags, section, name in found
                if not section.startswith(CONSTANT) and "d" not in flags[5:6] and not name.startswith((".", "__gcov"))]
    check("no writable global data in the library", writable)
    check("nothing in the library ends the process, prints, or asks the locale or the system's libm",
          [f"{m} calls {name}" for m, flags, section, name in found if section == "*UND*" and FORBIDDEN.match(name)])
    check("global names begin with pinch_ or pn_",
          [f"{m}: {name}" for m, flags, section, name in found if flags[0] in "gu!" and section != "*UND*" and not name.startswith(("pinch_", "pn_"))])
    exported = subprocess.run(["nm", "-D", "--defined-only", "build/libpinch.so"], stdout=subprocess.PIPE, text=True, check=True).stdout
    names = [line.split()[-1] for line in exported.splitlines()]
    check("only pinch_ leaves libpinch.so", [n for n in names if not n.startswith("pinch_")])
    declared = re.findall(r"^PINCH_API[^;(]*?\b(pinch_\w+)\(", read("include/pinch.h"), re.M)
    missing = [d for d in declared if d not in names]
    check("libpinch.so holds all of pinch.h", missing)


def example():
    """examples/embed.c as C99 and as C++, against both libraries, answers from a golden model."""
    ways = [("C99", ["gcc", "-std=c99", "examples/embed.c", "build/libpinch.a"]), ("C99, shared", ["gcc", "-std=c99", "examples/embed.c", "-Lbuild", "-lpinch", "-Wl,-rpath,build"])]
    if shutil.which("g++"):
        ways.append(("C++", ["g++", "-std=c++11", "-x", "c++", "examples/embed.c", "-x", "none", "build/libpinch.a"]))
    for name, command in ways:
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "embed")
            message = run([*command, "-Iinclude", *WARN, "-o", program, "-lm", "-lpthread"])
            p = None if message else subprocess.run([program, "tests/golden/llama-f32/model.gguf", "the cat"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            check(f"examples/embed.c compiles and runs as {name}", [message] if message else [] if p.returncode == 0 and p.stdout else [f"status {p.returncode}: {p.stderr.decode()[:300]}"])


def long_functions(path):
    start, name, previous = 0, "", ""
    for at, line in enumerate(read(path).splitlines(), 1):
        if re.match(r"^[A-Za-z_].*\)[ \t]*\{[ \t]*$", line):
            start, name = at, line
        elif line.startswith("{") and not start:
            start, name = at, previous
        elif line.startswith("}"):
            if start and at - start > MAX_FUNCTION:
                yield f"{path}:{start}: {at - start} lines: {name}"
            start = 0
        previous = line


def lengths():
    files = sources(["src", "include", "tests", "examples", "bench", "tools"], (".c", ".h", ".py", ".sh"))
    check(f"no file above {MAX_FILE} lines", [f"{p}: {n} lines" for p in files for n in [read(p).count("\n")] if n > MAX_FILE])
    check(f"no function above {MAX_FUNCTION} lines", [b for p in files if p.endswith(".c") for b in long_functions(p)])
    check("every file of a room says what it owns", [p for p in files if p.startswith(("src", "include")) and not read(p).startswith("/*")])


def readme():
    names = re.findall(r"^ARCH(?:_AS\(\w+, \"|\()([\w-]+)", read("src/models/arch.def"), re.M)
    rows = [line for line in read("README.md").splitlines() if line.startswith("| `")]
    check("README.md lists every architecture", [f"no row for `{n}`" for n in names if not any(f"`{n}`" in row for row in rows)] if names else ["arch.def names none"])


def android():
    """README's line for the NDK, as far as it can be seen without one: Android's C library holds the threads, and there is no libpthread."""
    p = subprocess.run(["make", "-n", "CC=clang --target=aarch64-linux-android29", "B=build/android", "build/android/pinch"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    links = [line for line in p.stdout.splitlines() if " -o build/android/pinch " in line]
    check("the program links where there is no libpthread", [line[-200:] for line in links if "-lpthread" in line] if links else [p.stdout[-200:] or "make printed nothing"])


def keys():
    """models/keys.def bounds every number that a file's metadata gives, and nothing else."""
    listed = set(re.findall(r'^(?:INT|REAL)\("([^"]+)"', read("src/models/keys.def"), re.M))
    numbers = re.compile(r"\b(?:pn_meta_(?:int|int_within|layer_int|item_int|float|float_required|layer_float)|limit)\(b, ([^;]*?)[,)]")
    asked = {key for path in sources(["src/models"], (".c",)) for call in numbers.findall(read(path)) for key in re.findall(r'"([^"]+)"', call)}
    check("metadata that is read has bounds, and bounds are of metadata that is read", sorted(asked ^ listed))


def words():
    places = re.compile("/(wo" + "rk|fa" + "rm|ro" + "ot|tmp/ba" + "sh_jobs)/|/ho" + "me/[a-z]")
    open_ends = re.compile(r"\b(TO" + "DO|FIX" + "ME|XX" + r"X)\b|not impl" + "emented|unimpl" + "emented")
    files = sources([f for f in ("src", "include", "tests", "examples", "bench", "tools", "docs") if os.path.isdir(f)], (".c", ".h", ".def", ".py", ".sh", ".md"))
    files += [f for f in ("Makefile", "README.md", "CONTRIBUTING.md") if os.path.exists(f)]
    lines = [(p, at, line) for p in files for at, line in enumerate(read(p).splitlines(), 1)]
    check("no path of one machine", [f"{p}:{at}: {line.strip()}" for p, at, line in lines if places.search(line)])
    check("nothing is left open in the code", [f"{p}:{at}: {line.strip()}" for p, at, line in lines if not p.endswith(".md") and open_ends.search(line)])


def main():
    arrows()
    headers()
    if os.path.exists("build/libpinch.a") and os.path.exists("build/libpinch.so"):
        library()
        example()
    else:
        check("the library is built", ["build/libpinch.a or .so is missing"])
    lengths()
    readme()
    android()
    keys()
    words()
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
