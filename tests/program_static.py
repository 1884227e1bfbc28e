"""The single-file programs as pushed to a phone: small, needing nothing, in an empty environment."""
import os
import platform
import shutil
import subprocess
import tempfile

import pytest

import drive

MOST_BYTES = 1_500_000
MODEL = os.path.join(drive.ROOT, "tests/golden/llama-f32/model.gguf")
PROGRAMS = {
    "x86-64": ("build/pinch-static", ()),
    "aarch64": ("build/pinch-arm64", ("qemu-aarch64", "-cpu", "cortex-a53")),
}
every_program = pytest.mark.parametrize("machine", PROGRAMS)


def program(machine):
    """-> absolute command; skips where it is not built or cannot run."""
    path, runner = PROGRAMS[machine]
    path = os.path.join(drive.ROOT, path)
    if machine == "x86-64" and platform.machine() != "x86_64":
        pytest.skip("not an x86-64 machine")
    if not os.path.exists(path):
        pytest.skip(f"{PROGRAMS[machine][0]} is not built")
    if runner and not shutil.which(runner[0]):
        pytest.skip(f"{runner[0]} is missing")
    return [shutil.which(runner[0]), *runner[1:], path] if runner else [path]


@every_program
def test_one_small_file_that_needs_nothing(machine):
    path = program(machine)[-1]
    assert os.path.getsize(path) <= MOST_BYTES
    headers = subprocess.run(["readelf", "-lS", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "INTERP" not in headers and ".symtab" not in headers


def generate(command, env, prefix=()):
    """Eight tokens in an empty, read-only working directory."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o555)
        p = subprocess.run([*prefix, *command, "run", "-m", MODEL, "-p", "the cat", "-n", "8", "--temp", "0", "--ignore-eos", "--json"], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        assert os.listdir(folder) == []
    assert p.returncode == 0, p.stderr.decode()
    return p.stdout


@every_program
@pytest.mark.parametrize("env", [{}, {"LC_ALL": "de_DE.UTF-8", "LANG": "tr_TR"}, {"LC_ALL": "no such locale", "HOME": "/nowhere", "TERM": "dumb"}], ids=["empty", "comma", "odd"])
def test_runs_in_any_environment(machine, env):
    import json
    out = json.loads(generate(program(machine), env))
    assert len(out["ids"]) == 8 and out["ids"] == drive.pinch_json("run", "-m", MODEL, "-p", "the cat", "-n", 8, "--temp", 0, "--ignore-eos")["ids"]


@every_program
@pytest.mark.parametrize("hidden", ["/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu"])
def test_runs_without(machine, hidden):
    """The path is covered by something empty in a mount namespace of our own."""
    command = program(machine)
    cover = f'mount {"-t tmpfs none" if os.path.isdir(hidden) else "--bind /dev/null"} {hidden} && exec "$@"'
    prefix = ["unshare", "-m", "sh", "-c", cover, "sh"]
    if subprocess.run([*prefix, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no mount namespaces here")
    generate(command, {"PATH": os.environ["PATH"]}, prefix)
