"""Model files that change, end early or are no files: a sentence and status 1, never a signal."""
import os
import shutil
import signal
import subprocess
import time

import pytest

import drive

GOLDEN = os.path.join(drive.ROOT, "tests/golden")
MODELS = sorted(n for n in os.listdir(GOLDEN) if os.path.isdir(os.path.join(GOLDEN, n)))


def refused(*args):
    with pytest.raises(drive.Failed) as e:
        drive.pinch(*args)
    assert e.value.status == 1, e.value
    assert len(e.value.stderr.strip().splitlines()) == 1, e.value.stderr
    return e.value.stderr


@pytest.mark.parametrize("name", MODELS)
def test_truncated_while_in_use(name):
    """Weights read at load stay; a page of a mapping that is gone ends the program with a sentence."""
    with drive.temporary_file(suffix=".gguf") as copy:
        shutil.copyfile(os.path.join(GOLDEN, name, "model.gguf"), copy.name)
        p = subprocess.Popen([drive.PINCH, "run", "-m", copy.name, "-p", "the cat", "-n", "6000", "-c", "8000", "--ignore-eos"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        p.stdout.read(1)
        os.truncate(copy.name, 4096)
        time.sleep(0.5)
        if p.poll() is None:
            p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=60)
    assert p.returncode in (0, 1, 130), f"status {p.returncode}: {err.decode()}"
    assert p.returncode != 1 or len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("command", ["run", "info", "logits", "bench", "tokenize", "perplexity", "chat"])
def test_no_such_file(command):
    more = {"run": ["-p", "x"], "logits": ["--tokens", "/dev/null", "-o", "/dev/null"], "perplexity": ["-f", "/dev/null"]}.get(command, [])
    assert "no-such-file" in refused(command, "-m", "no-such-file.gguf", *more)


@pytest.mark.parametrize("what", ["empty", "folder", "text", "head"])
def test_not_a_model(what):
    if what == "folder":
        refused("info", "-m", GOLDEN)
        return
    with drive.temporary_file({"empty": b"", "text": b"hello\n" * 100, "head": b"GGUF\3\0\0\0"}[what], ".gguf") as f:
        assert os.path.basename(f.name) in refused("info", "-m", f.name)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_reported():
    model = os.path.join(GOLDEN, MODELS[0], "model.gguf")
    with open("/dev/full", "wb") as full:
        p = subprocess.run([drive.PINCH, "run", "-m", model, "-p", "the cat", "-n", "50", "--ignore-eos"], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE)
    assert p.returncode == 1 and p.stderr.strip()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_full_disk_ends_the_proofs(options):
    """At the first line, with one sentence: not after all kernels, and not for each of them."""
    with open("/dev/full", "wb") as full:
        p = subprocess.run([drive.PINCH, "check", "--kernel", "q4_", *options], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE)
    assert p.returncode == 1 and len(p.stderr.splitlines()) == 1, p
