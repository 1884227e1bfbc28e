#!/usr/bin/env python3
"""Builds and runs the tests of one or more parts, one line a program, and adds up what they count.

  python3 tests/run.py PART...      parts: house native clang uchar asan ubsan tsan i686 qemu-a53 qemu-a76 qemu-max fuzz-replay python all

A test program prints "N passed, N failed, N skipped" last; one that does not has failed. The last line here is their sum."""
import collections
import concurrent.futures
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COUNTS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")
CORES = len(os.sched_getaffinity(0))
TIMEOUT_S = 900

# A part: the Makefile's CONFIG, its compiler, what runs its programs, and which programs (prefixes; empty: all).
Part = collections.namedtuple("Part", "config compiler runner only", defaults=((), ()))
ARM_CC = "gcc" if platform.machine() == "aarch64" else "aarch64-linux-gnu-gcc"
PARTS = {
    "native": Part("native", "gcc"),
    "clang": Part("clang", "clang"),
    "uchar": Part("uchar", "gcc"),
    "asan": Part("asan", "gcc"),
    "ubsan": Part("ubsan", "clang"),
    "tsan": Part("tsan", "gcc", only=("sched_", "graph_", "engine_")),
    "i686": Part("i686", "i686-linux-gnu-gcc"),
    "qemu-a53": Part("arm64", ARM_CC, runner=("qemu-aarch64", "-cpu", "cortex-a53")),
    "qemu-a76": Part("arm64", ARM_CC, runner=("qemu-aarch64", "-cpu", "cortex-a76")),
    "qemu-max": Part("arm64", ARM_CC, runner=("qemu-aarch64", "-cpu", "max")),
}
ALL = ["house", *PARTS, "fuzz-replay", "python"]
# Programs that measure time: nothing else runs beside them.
ALONE = ("sched_",)

total = collections.Counter()


def report(part, name, counts, seconds, output=""):
    """One line for a program; its output only when something failed."""
    total.update(passed=counts[0], failed=counts[1], skipped=counts[2])
    word = "FAILED" if counts[1] else "ok"
    print(f"{word:6} {part:11} {name:32} {seconds:6.1f} s  {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped", flush=True)
    if counts[1] and output:
        print("\n".join("       " + line for line in output.splitlines()[-40:]), flush=True)
    elif counts[2] and output:
        print("\n".join("       " + line for line in output.splitlines() if line.startswith("SKIPPED")), flush=True)


def run(command, env=None, timeout=TIMEOUT_S):
    """-> (counts, seconds, output). No count line, a crash, a wrong status or a timeout is one failure more."""
    start = time.monotonic()
    try:
        p = subprocess.run(command, cwd=ROOT, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
        status, output = p.returncode, p.stdout.decode("utf-8", "replace")
    except subprocess.TimeoutExpired as e:
        status, output = "timeout", (e.stdout or b"").decode("utf-8", "replace") + f"\nstopped after {timeout} s"
    except OSError as e:
        status, output = "not run", str(e)
    lines = [line for line in output.splitlines() if line.strip()]
    hit = COUNTS.match(lines[-1]) if lines else None
    counts = [int(n) for n in hit.groups()] if hit else [0, 0, 0]
    if not hit or (status != 0) != (counts[1] > 0):
        counts[1] += 1
        output += f"\nstatus {status}, " + ("a count line that does not agree" if hit else "no count line")
    return counts, time.monotonic() - start, output


def fetch():
    """Brings the public files that tests name, if the reference data lies beside the project, and tells the tests where."""
    cache = os.path.abspath(os.environ.get("PINCH_CACHE") or os.path.join(ROOT, "build/cache"))
    golden = os.path.join(os.environ.get("PINCH_SHARED") or os.path.join(ROOT, "../shared"), "golden")
    if not os.path.exists(golden):
        return
    texts = os.path.join(cache, "template-texts")
    os.makedirs(texts, exist_ok=True)
    for script, target in (f"{golden}/fetch.py", [cache]), (f"{golden}/templates/collect.py", [cache, texts]):
        p = subprocess.run([sys.executable, script, *target], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if p.returncode:
            print(f"{os.path.basename(script)}: {(p.stdout.strip().splitlines() or ['failed'])[-1]}", flush=True)
    os.environ.update(PINCH_CACHE=cache, PINCH_TEMPLATES=texts)


def missing_tools(part):
    tools = [part.compiler, *part.runner[:1]]
    return [t for t in tools if not shutil.which(t)]


def skip(part, why):
    report(part, "-", (0, 0, 1), 0, f"SKIPPED {why}")


def make(config, *targets):
    """Builds as far as possible: a program that does not build fails by itself."""
    start = time.monotonic()
    command = ["make", "--no-print-directory", "-s", "-k", f"-j{CORES}", f"CONFIG={config}", "WERROR=-Werror", *targets]
    p = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if p.returncode:
        print(p.stdout[-6000:], flush=True)
    return p.returncode == 0, time.monotonic() - start


def programs(folder, suffix, only=()):
    names = sorted(n[:-2] for n in os.listdir(os.path.join(ROOT, folder)) if n.endswith(suffix))
    return [n for n in names if not only or n.startswith(tuple(only))]


def run_programs(name, part):
    absent = missing_tools(part)
    if absent:
        return skip(name, f"{absent[0]} is missing")
    if name == "i686" and platform.machine() != "x86_64":
        return skip(name, "the machine does not run x86 programs")
    built, seconds = make(part.config, "programs")
    report(name, "build", (int(built), int(not built), 0), seconds)
    folder = "build" if part.config == "native" else f"build/{part.config}"
    slow = name not in ("native", "clang", "uchar")
    env = {"TSAN_OPTIONS": "halt_on_error=1", **({"PINCH_SLOW": "1"} if slow else {})}
    tests = programs("tests", ".c", part.only)

    def one(test):
        return test, run([*part.runner, f"{folder}/tests/{test}"], env)

    beside = [t for t in tests if not t.startswith(ALONE)]
    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        for test, result in pool.map(one, beside):
            report(name, test, *result)
    for test in tests:
        if test.startswith(ALONE):
            report(name, test, *one(test)[1])


def run_fuzz_replay(name):
    built, seconds = make("asan", "fuzzers")
    report(name, "build", (int(built), int(not built), 0), seconds)
    for target in programs("tests/fuzz", "_fuzz.c"):
        report(name, target, *run([f"build/asan/fuzz/{target}", f"tests/fuzz/corpus/{target[:-5]}"]))


def run_house(name):
    built, seconds = make("native", "all")
    report(name, "build", (int(built), int(not built), 0), seconds)
    report(name, "house", *run([sys.executable, "tests/house.py"]))


def run_python(name):
    python = os.path.join(ROOT, "build/venv/bin/python")
    if not os.path.exists(python) or subprocess.run([python, "-c", "import numpy, pytest, xdist"], stderr=subprocess.DEVNULL).returncode:
        return skip(name, "build/venv has no numpy, pytest, pytest-xdist (tools/test-needs.sh installs them)")
    for config, target in ("native", "all"), ("asan", "programs"), ("static", "static"), ("arm64", "arm64"):
        built, seconds = make(config, target) if shutil.which(ARM_CC) or config != "arm64" else (True, 0)
        report(name, f"build {config}", (int(built), int(not built), 0), seconds)
    run_pytest(name, "pytest", python, "-n", str(CORES), "--dist", "loadgroup", "-m", "not alone")
    run_pytest(name, "pytest, alone", python, "-m", "alone")


def run_pytest(name, label, python, *options):
    result = os.path.join(ROOT, "build/pytest.xml")
    if os.path.exists(result):
        os.unlink(result)
    start = time.monotonic()
    status = subprocess.run([python, "-m", "pytest", "-q", *options, "-rs", "--durations=10", "-c", "tests/pytest.ini", f"--junitxml={result}", "tests"], cwd=ROOT).returncode
    counts = [0, 0, 0]
    if os.path.exists(result):
        for suite in xml.etree.ElementTree.parse(result).getroot().iter("testsuite"):
            n, failures, errors, skipped = (int(suite.get(k, 0)) for k in ("tests", "failures", "errors", "skipped"))
            counts = [counts[0] + n - failures - errors - skipped, counts[1] + failures + errors, counts[2] + skipped]
    if status not in (0, 5) and not counts[1]:
        counts[1] += 1
    report(name, label, counts, time.monotonic() - start)


def main(names):
    start = time.monotonic()
    if names == ["all"]:
        names = ALL
        fetch()
    unknown = [n for n in names if n not in ALL]
    if unknown or not names:
        sys.exit(f"unknown part {unknown}\n{__doc__}")
    special = {"house": run_house, "fuzz-replay": run_fuzz_replay, "python": run_python}
    for name in names:
        if name in special:
            special[name](name)
        else:
            run_programs(name, PARTS[name])
    print(f"{time.monotonic() - start:.0f} s")
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped", flush=True)
    return total["failed"] > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
