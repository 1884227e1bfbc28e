"""Drives the built programs as docs and scripts do; what every test in Python shares.

Knows the command line and the folder of reference data (../shared or $PINCH_SHARED), nothing of the library."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PINCH = os.path.join(ROOT, "build/pinch")
SHARED = os.path.abspath(os.environ.get("PINCH_SHARED") or os.path.join(ROOT, "../shared"))
CACHE = os.path.abspath(os.environ.get("PINCH_CACHE") or os.path.join(ROOT, "build/cache"))
LONG = bool(os.environ.get("PINCH_LONG"))


def golden(*path):
    """A path in the reference data; without it the whole module is one skip."""
    if not os.path.exists(os.path.join(SHARED, "golden/README.md")):
        pytest.skip("../shared is missing", allow_module_level=True)
    return os.path.join(SHARED, "golden", *path)


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def load_lines(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def load_bytes(path):
    with open(path, "rb") as f:
        return f.read()


def fetch(*what):
    """Fills the cache with public files, once for all test processes; skips where there is no network."""
    os.makedirs(CACHE, exist_ok=True)
    script = golden("fetch.py")
    with Lock(os.path.join(CACHE, "lock")):
        p = subprocess.run([sys.executable, script, CACHE, *what], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if p.returncode:
        pytest.skip(f"cannot fetch {' '.join(what)}: {(p.stdout.strip().splitlines() or [''])[-1]}", allow_module_level=True)
    return CACHE


class Lock:
    """One process at a time, released when the process ends."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        import fcntl
        self.file = open(self.path, "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


class Failed(Exception):
    def __init__(self, command, status, stderr):
        super().__init__(f"{' '.join(map(str, command))}: status {status}: {stderr.strip()[-1500:]}")
        self.status, self.stderr = status, stderr


def pinch(*args, stdin=b"", program=PINCH, runner=(), timeout=600, env=None):
    """-> stdout as bytes; raises Failed for any status but 0."""
    command = [*runner, program, *map(str, args)]
    p = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, env={**os.environ, **(env or {})})
    if p.returncode:
        raise Failed(command, p.returncode, p.stderr.decode("utf-8", "replace"))
    return p.stdout


# A small process between: what a program's largest resident set is said to be begins with that of the process that started it.
MEASURE = """
import json, os, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
_, status, used = os.wait4(os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ), 0)
with open(sys.argv[1], "w") as out:
    json.dump([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss], out)
"""


def measured(command, stdout, stderr):
    """-> status (20 s of processor time end it), seconds of processor time, KiB of the largest resident set."""
    with temporary_file() as out:
        subprocess.run([sys.executable, "-S", "-c", MEASURE, out.name, *command], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, check=True)
        return load(out.name)


def pinch_json(*args, **how):
    return json.loads(pinch(*args, "--json", **how))


def temporary_file(content=b"", suffix=""):
    """A file in the tests' own folder under build/, removed by the operating test's `with`."""
    folder = os.path.join(ROOT, "build/tmp")
    os.makedirs(folder, exist_ok=True)
    f = tempfile.NamedTemporaryFile(dir=folder, suffix=suffix)
    f.write(content)
    f.flush()
    return f


def ids_file(ids):
    return temporary_file(" ".join(map(str, ids)).encode(), ".ids")


def logits(model, ids, n_vocab, *options, last=False, program=PINCH, runner=(), timeout=600):
    """-> float32 [rows][n_vocab] of a fresh session fed exactly `ids`."""
    with ids_file(ids) as tokens, temporary_file(suffix=".f32") as out:
        pinch("logits", "-m", model, "--tokens", tokens.name, "-o", out.name, *(["--last"] if last else []), *options, program=program, runner=runner, timeout=timeout)
        rows = np.fromfile(out.name, dtype="<f4")
    assert rows.size == n_vocab * (1 if last else len(ids)), f"{rows.size} logits for {len(ids)} tokens of {n_vocab}"
    return rows.reshape(-1, n_vocab)


def same_bits(a, b):
    return a.shape == b.shape and np.array_equal(a.view(np.uint32), b.view(np.uint32))


def emulated(cpu):
    """-> program and runner for the aarch64 build on an emulated CPU; skips where there is none."""
    program = os.path.join(ROOT, "build/pinch-arm64")
    if not os.path.exists(program) or not shutil.which("qemu-aarch64"):
        pytest.skip("no build/pinch-arm64 or no qemu-aarch64")
    return {"program": program, "runner": ("qemu-aarch64", "-cpu", cpu)}
