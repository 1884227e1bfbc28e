"""Mutants of model files under address and undefined sanitizers: a sentence or a run; never a crash, a hang or memory out of proportion.

Most go through tests/fuzz/engine_fuzz.c in one process (open, metadata, text, plan, session, tokens), some through `pinch info` and `pinch run`.
A failure names model and seed: MUTANT=model:seed python3 tests/hostile_models.py FILE writes that mutant."""
import functools
import os
import random
import struct
import subprocess
import sys

import pytest

import drive

N_ENGINE = int(os.environ.get("PINCH_MUTANTS", "10000"))
N_COMMAND = N_ENGINE // 20
SHARES = 8          # test functions that split the mutants, so that two cores share them
MOST_MS = 1000      # processor time of one mutant, sanitizers included
MOST_KIB = 256 << 10  # resident memory of a process under the sanitizers; the inputs are below 1 MiB
SANITIZER = {"ASAN_OPTIONS": "max_allocation_size_mb=96:quarantine_size_mb=8:detect_leaks=1:allocator_may_return_null=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
ENGINE = os.path.join(drive.ROOT, "build/asan/fuzz/engine_fuzz")
COMMAND = os.path.join(drive.ROOT, "build/asan/pinch")
SIZE = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
INTEGERS = [0, 1, 2, 3, 7, 31, 32, 33, 255, 256, 257, 65535, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 60) + 1, (1 << 61) + 1, (1 << 62) + 3, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
FLOATS = [0.0, -0.0, 1.0, -1.0, 1e-45, 1e38, -1e38, float("inf"), float("-inf"), float("nan"), 0.5, 1e6]


def models():
    """-> name: path of every tiny model there is: those of a clone, and of ../shared."""
    found = {}
    for folder in (os.path.join(drive.ROOT, "tests/golden"), os.path.join(drive.SHARED, "golden")):
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            path = os.path.join(folder, name, "model.gguf")
            if os.path.exists(path):
                found.setdefault(name, path)
    return found


@functools.lru_cache(maxsize=None)
def fields(path):
    """-> (bytes, {kind: [(offset, size)]}) of every length, type, count, value and string in a GGUF header."""
    data, found = drive.load_bytes(path), {"count": [], "length": [], "type": [], "integer": [], "float": [], "text": [], "dims": [], "offset": []}
    at = 8

    def take(kind, size):
        nonlocal at
        found[kind].append((at, size))
        at += size
        return int.from_bytes(data[at - size:at], "little")

    def text():
        nonlocal at
        n = take("length", 8)
        if n:
            found["text"].append((at, n))
        at += n

    def value(kind):
        nonlocal at
        if kind == 8:
            text()
        elif kind == 9:
            inner, n = take("type", 4), take("count", 8)
            for i in range(n):
                if inner in (8, 9) or i < 4:
                    value(inner)
                else:
                    at += SIZE[inner]
        else:
            take("float" if kind in (6, 12) else "integer", SIZE[kind])

    n_tensors, n_values = take("count", 8), take("count", 8)
    for _ in range(n_values):
        text()
        value(take("type", 4))
    for _ in range(n_tensors):
        text()
        for _ in range(take("count", 4)):
            take("dims", 8)
        take("type", 4)
        take("offset", 8)
    return data, found, at


def put(data, at, size, value):
    data[at:at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def mutate_once(r, data, found, header):
    kind = r.choice(["bit", "bit", "length", "count", "type", "integer", "integer", "float", "text", "dims", "offset", "weight", "swap"])
    if kind == "bit":
        at = r.randrange(header)
        data[at] ^= 1 << r.randrange(8)
    elif kind == "weight":
        for _ in range(r.randrange(1, 200)):
            data[r.randrange(len(data))] = r.choice([0, 255, 127, 128, 124, 252, r.randrange(256)])
    elif kind == "swap":
        a, b = r.randrange(header), r.randrange(header)
        n = r.randrange(1, 32)
        data[a:a + n], data[b:b + n] = data[b:b + n][:n].ljust(n, b"\0"), data[a:a + n]
    elif kind == "text":
        at, n = r.choice(found["text"])
        data[at + r.randrange(n)] = r.choice([0, 32, 0x2E, 0x80, 0xFF, 0xC3, r.randrange(256)])
    elif kind == "float":
        at, size = r.choice(found["float"])
        data[at:at + size] = struct.pack("<f" if size == 4 else "<d", r.choice(FLOATS))
    else:
        at, size = r.choice(found[kind])
        now = int.from_bytes(data[at:at + size], "little")
        put(data, at, size, r.choice([r.choice(INTEGERS), now + 1, now - 1, now * 2, now // 2, r.randrange(45), now ^ 1 << r.randrange(8 * size)]))


def mutant(path, seed):
    """-> bytes; the same for the same seed."""
    r = random.Random(f"{os.path.basename(os.path.dirname(path))}:{seed}")
    data, found, header = fields(path)
    data = bytearray(data)
    for _ in range(r.choice([1, 1, 1, 2, 3, 8])):
        mutate_once(r, data, found, header)
    if r.random() < 0.06:
        del data[r.randrange(len(data)):]
    return bytes(data)


def plan(n, share):
    """-> (model, path, seed) of the mutants of one share."""
    names = list(models().items())
    return [(*names[i % len(names)], i // len(names)) for i in range(share, n, SHARES)]


class Engine:
    """The replay process: one mutant in, one line out. Restarted after a crash."""

    def __init__(self):
        self.process = None

    def start(self):
        self.log = drive.temporary_file()
        self.process = subprocess.Popen([ENGINE, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env={**os.environ, **SANITIZER})

    def run(self, data):
        """-> (milliseconds, KiB), or the sanitizer's report."""
        if not self.process:
            self.start()
        try:
            self.process.stdin.write(struct.pack("<I", len(data)) + data)
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if line:
            ms, kib = line.split()
            return float(ms), int(kib)
        self.process.wait()
        report = drive.load_bytes(self.log.name).decode("utf-8", "replace")
        self.process = None
        return report[:3000]

    def end(self):
        """-> the report of leaks, or nothing."""
        if not self.process:
            return ""
        self.process.stdin.close()
        status = self.process.wait(timeout=120)
        return drive.load_bytes(self.log.name).decode("utf-8", "replace")[:3000] if status else ""


def needs(program):
    if not os.path.exists(program):
        pytest.skip(f"{os.path.relpath(program, drive.ROOT)} is not built")


@pytest.mark.parametrize("share", range(SHARES))
def test_mutants_in_the_engine(share):
    needs(ENGINE)
    engine, bad = Engine(), []
    for name, path, seed in plan(N_ENGINE, share):
        out = engine.run(mutant(path, seed))
        if isinstance(out, str):
            bad.append(f"{name}:{seed}: {out}")
        elif out[0] > MOST_MS or out[1] > MOST_KIB:
            bad.append(f"{name}:{seed}: {out[0]} ms, {out[1]} KiB")
            engine.end()
            engine.process = None
        if len(bad) > 4:
            break
    leaks = engine.end()
    assert not bad, "\n".join(bad)
    assert not leaks, leaks


def command(args):
    """-> a complaint, or nothing."""
    try:
        p = subprocess.run([COMMAND, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=20, env={**os.environ, **SANITIZER})
    except subprocess.TimeoutExpired:
        return "more than 20 s"
    sentence = p.stderr.decode("utf-8", "replace")
    if p.returncode not in (0, 1) or "Sanitizer" in sentence:
        return f"status {p.returncode}: {sentence[:3000]}"
    return "status 1 without a sentence" if p.returncode == 1 and not sentence.strip() else None


@pytest.mark.parametrize("share", range(SHARES))
def test_mutants_in_the_commands(share):
    needs(COMMAND)
    bad = []
    for name, path, seed in plan(N_COMMAND, share):
        with drive.temporary_file(mutant(path, 1_000_000 + seed), ".gguf") as f:
            for args in (["info", "-m", f.name], ["info", "-m", f.name, "--json", "--plan", "-c", "64"], ["run", "-m", f.name, "-p", "the hat", "-n", "2", "-c", "64", "--temp", "0"]):
                complaint = command(args)
                if complaint:
                    bad.append(f"{name}:{1_000_000 + seed} {args[0]}: {complaint}")
        if len(bad) > 4:
            break
    assert not bad, "\n".join(bad)


if __name__ == "__main__":
    chosen, number = os.environ["MUTANT"].rsplit(":", 1)
    with open(sys.argv[1], "wb") as out:
        out.write(mutant(models()[chosen], int(number)))
