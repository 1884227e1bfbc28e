#!/usr/bin/env python3
"""Runs every libFuzzer target in build/fuzz/fuzz for some minutes: python3 tests/fuzz/fuzz.py MINUTES [TARGET...]

Starts from tests/fuzz/corpus/<target>; new inputs go to build/fuzz/corpus, finds to build/fuzz/finds. The status is 1 if anything was found."""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def fuzz(name, seconds):
    new, finds = (os.path.join("build/fuzz", folder, name) for folder in ("corpus", "finds"))
    os.makedirs(os.path.join(ROOT, new), exist_ok=True)
    os.makedirs(os.path.join(ROOT, finds), exist_ok=True)
    seeds = f"tests/fuzz/corpus/{name[:-5]}"
    command = [f"build/fuzz/fuzz/{name}", new, *([seeds] if os.path.isdir(os.path.join(ROOT, seeds)) else []), f"-max_total_time={seconds}", "-timeout=10",
               "-rss_limit_mb=1024", f"-artifact_prefix={finds}/", "-print_final_stats=1", "-verbosity=0"]
    status = subprocess.run(command, cwd=ROOT).returncode
    print(f"{name}: {'clean' if status == 0 else 'FOUND, see ' + finds} after {seconds} s at most", flush=True)
    return status


def main(minutes, *names):
    names = names or sorted(n for n in os.listdir(os.path.join(ROOT, "build/fuzz/fuzz")) if n.endswith("_fuzz"))
    return any([fuzz(name, int(float(minutes) * 60)) for name in names])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
