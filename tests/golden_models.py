"""The golden tiny models: logits against the reference, greedy text, and the great equality (golden/README.md section 1)."""
import functools
import os
import re

import numpy as np
import pytest

import drive

# What this version runs; a case of another architecture has to be refused with a sentence.
with open(os.path.join(drive.ROOT, "src/models/arch.def"), encoding="utf-8") as arch_def:
    RUNS = set(re.findall(r"^ARCH(?:_AS\(\w+, \"|\()([\w-]+)", arch_def.read(), re.M))
KV = {"f32": ("f32", "f32"), "f16": ("f16", "f16"), "q8_0": ("q8_0", "f16")}
EXACT = ("--activations", "f32")
GOLDEN = drive.golden()


class Case:
    """One folder of the golden set."""

    def __init__(self, name):
        self.name, self.folder = name, os.path.join(GOLDEN, name)
        self.__dict__.update(drive.load(os.path.join(self.folder, "case.json")))
        self.path = os.path.join(self.folder, self.__dict__.get("model", "model.gguf"))
        self.k, self.v = KV[self.kv]
        self.options = ("-c", 512, "-ctk", self.k, "-ctv", self.v)
        self.quantised = os.path.exists(os.path.join(self.folder, "logits_ideal.f32"))

    def golden(self):
        name = "logits_ideal.f32" if self.quantised else "logits.f32"
        return np.fromfile(os.path.join(self.folder, name), dtype="<f4").reshape(len(self.prompt), self.n_vocab)

    @functools.lru_cache(maxsize=None)
    def rows(self, *options):
        return drive.logits(self.path, self.prompt, self.n_vocab, *self.options, *options)


def cases(runs):
    paths = {n: os.path.join(GOLDEN, n, "case.json") for n in sorted(os.listdir(GOLDEN))}
    return [n for n, path in paths.items() if os.path.exists(path) and (drive.load(path)["arch"] in RUNS) == runs]


@functools.lru_cache(maxsize=None)
def case_of(name):
    return Case(name)


every_case = pytest.mark.parametrize("name", cases(True))


def gaps(ours, golden):
    return float(np.abs(ours - golden).max()), float(np.sqrt(np.mean((ours.astype(np.float64) - golden) ** 2)))


def top_tokens(ours, golden, tolerance):
    """-> rows whose top token differs although golden's first two are farther apart than twice the tolerance."""
    order = np.sort(golden, axis=1)
    clear = order[:, -1] - order[:, -2] >= 2 * tolerance
    return np.flatnonzero(clear & (ours.argmax(axis=1) != golden.argmax(axis=1)))


@every_case
def test_logits(name):
    case = case_of(name)
    ours, golden = case.rows(), case.golden()
    assert np.isfinite(ours).all()
    gap, rms = gaps(ours, golden)
    assert gap <= case.tolerance, f"gap {gap:.6f}, rms {rms:.6f}"
    assert rms <= getattr(case, "tolerance_rms", np.inf), f"rms {rms:.6f}, gap {gap:.6f}"
    assert top_tokens(ours, golden, case.tolerance).size == 0


@every_case
def test_logits_without_rounding_activations(name):
    case = case_of(name)
    ours, golden = case.rows(*EXACT), case.golden()
    tolerance = getattr(case, "tolerance_without_activation_rounding", case.tolerance)
    gap, rms = gaps(ours, golden)
    assert gap <= tolerance, f"gap {gap:.6f}, rms {rms:.6f}"
    assert top_tokens(ours, golden, tolerance).size == 0


def fed_greedy(case, *options):
    """-> (ids chosen at each step when golden's own text is fed, margins golden had there)."""
    ids = case.prompt + case.greedy[:-1]
    rows = drive.logits(case.path, ids, case.n_vocab, *case.options, *options)[len(case.prompt) - 1:]
    return rows.argmax(axis=1), np.array(case.greedy_margins)


@every_case
@pytest.mark.parametrize("path", ["default", "exact"])
def test_greedy_fed(name, path):
    case = case_of(name)
    chosen, margins = fed_greedy(case, *(EXACT if path == "exact" else ()))
    missed = [i for i in range(len(margins)) if margins[i] >= 2 * case.tolerance and chosen[i] != case.greedy[i]]
    assert not missed, f"steps {missed}"


@every_case
def test_greedy_run(name):
    case = case_of(name)
    with drive.ids_file(case.prompt) as tokens:
        out = drive.pinch_json("run", "-m", case.path, "--prompt-tokens", tokens.name, "-n", len(case.greedy), "--temp", 0, "--ignore-eos", *case.options)
    assert len(out["ids"]) == len(case.greedy) and out["stop"] == "length" and out["prompt_tokens"] == len(case.prompt)
    for i, margin in enumerate(case.greedy_margins):
        if margin < 2 * case.tolerance:
            break
        assert out["ids"][i] == case.greedy[i], f"step {i}, margin {margin}"


@every_case
def test_same_bits_for_batches_and_threads(name):
    case = case_of(name)
    # long enough that 1, 7, 64 and 512 differ, and that windows of the sliding cases wrap
    ids = ((case.prompt + case.greedy) * 8)[:300]

    def rows(*options):
        return drive.logits(case.path, ids, case.n_vocab, *case.options, *options)

    first = rows("-b", 512, "-t", 1)
    assert np.isfinite(first).all()
    for options in [("-b", 512, "-t", 2), ("-b", 512, "-t", 3), ("-b", 64, "-t", 2), ("-b", 7, "-t", 3), ("-b", 1, "-t", 1), ("-b", 1, "-t", 2), ("-b", 7, "-t", 1, "-tb", 2)]:
        assert drive.same_bits(first, rows(*options)), f"{options} differ from -b 512 -t 1"
    assert drive.same_bits(first[:len(case.prompt)], case.rows()), "the prompt alone differs from the prompt as a beginning"
    exact = rows(*EXACT, "-b", 512, "-t", 1)
    assert drive.same_bits(exact, rows(*EXACT, "-b", 7, "-t", 3)) and drive.same_bits(exact, rows(*EXACT, "-b", 1, "-t", 2))


@every_case
def test_last_row_alone(name):
    case = case_of(name)
    last = drive.logits(case.path, case.prompt, case.n_vocab, *case.options, last=True)
    assert drive.same_bits(last, case.rows()[-1:])


@every_case
def test_same_bits_from_scalar_kernels(name):
    case = case_of(name)
    types = drive.pinch_json("info", "-m", case.path)["kernels"]
    forced = [x for t in types for x in ("--kernel", f"{t}=scalar")]
    assert drive.same_bits(case.rows(), case.rows(*forced))


@every_case
@pytest.mark.parametrize("cpu", ["cortex-a53", "max"])
def test_same_bits_on_aarch64(name, cpu):
    case = case_of(name)
    arm = drive.logits(case.path, case.prompt, case.n_vocab, *case.options, "-t", 2, **drive.emulated(cpu))
    assert drive.same_bits(arm, case.rows())


@every_case
def test_same_bits_on_32_bit_x86(name):
    case, program = case_of(name), os.path.join(drive.ROOT, "build/i686/pinch")
    if not os.path.exists(program):
        pytest.skip("no build/i686/pinch")
    assert drive.same_bits(drive.logits(case.path, case.prompt, case.n_vocab, *case.options, program=program), case.rows())


def drafts(name):
    """-> file with the logits of a case's block that drafts tokens, None without one."""
    paths = [os.path.join(GOLDEN, name, f) for f in ("draft.f32", "mtp_logits.f32")]
    return next((p for p in paths if os.path.exists(p)), None)


@pytest.mark.parametrize("name", [n for n in cases(True) if drafts(n)])
def test_block_that_drafts(name):
    case = case_of(name)
    golden = np.fromfile(drafts(name), dtype="<f4").reshape(-1, case.n_vocab)[:len(case.prompt)]
    tolerance = getattr(case, "draft", case.__dict__).get("tolerance", case.tolerance)
    for options in ((), EXACT):
        gap, _ = gaps(case.rows("--mtp", *options), golden)
        assert gap <= tolerance, f"gap {gap:.6f}"
    for options in (("-b", 1, "-t", 1), ("-b", 7, "-t", 3)):
        assert drive.same_bits(case.rows("--mtp", *options), case.rows("--mtp"))
    spoken = [drive.pinch_json("run", "-m", case.path, "-p", "the cat", "-n", 30, "--temp", 1, "--seed", 7, "--ignore-eos", *options)["ids"] for options in ((), ("--spec", "mtp:3"))]
    assert spoken[0] == spoken[1]


@pytest.mark.parametrize("name", [n for n in cases(True) if "tokenize" in drive.load(os.path.join(GOLDEN, n, "case.json"))])
def test_own_tokenizer(name):
    case = case_of(name)
    for row in case.tokenize:
        out = drive.pinch_json("tokenize", "-m", case.path, "--no-bos", "--no-parse-special", stdin=row["text"].encode())
        assert out["ids"] == row["ids"], row["text"]


@pytest.mark.parametrize("name", cases(False))
def test_other_architectures_open_for_info_and_are_refused_by_name(name):
    case = case_of(name)
    assert drive.pinch_json("info", "-m", case.path)["arch"] == case.arch
    with pytest.raises(drive.Failed) as refused:
        drive.logits(case.path, case.prompt[:2], case.n_vocab)
    assert refused.value.status == 1 and case.arch in refused.value.stderr and len(refused.value.stderr.strip().splitlines()) == 1
