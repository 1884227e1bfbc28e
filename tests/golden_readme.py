"""The table of models in the README: an architecture a row, its golden cases counted, the farthest logits measured."""
import os
import re

import numpy as np
import pytest

import drive
import golden_models


def rows():
    """-> {architecture: (cases, whether it drafts, [farthest logits])}"""
    with open(os.path.join(drive.ROOT, "README.md"), encoding="utf-8") as f:
        found = re.findall(r"^\| `([\w-]+)` \|[^|]*\| (\d+)(, drafts)? \| ([\d., ]+) \|$", f.read(), re.M)
    return {arch: (int(n), bool(drafts), [float(x) for x in gaps.split(", ")]) for arch, n, drafts, gaps in found}


ROWS = rows()


def is_rounded(case):
    """Weights or the cache are, so golden's own tolerance is that of rounding."""
    return getattr(case, "tolerance_without_activation_rounding", case.tolerance) > 0.02 or case.quantised


def cases_of(arch):
    cases = [golden_models.case_of(n) for n in golden_models.cases(True) if not n.startswith("type-")]
    return [c for c in cases if c.arch == arch]


def test_every_architecture_has_a_row():
    assert set(ROWS) == golden_models.RUNS


@pytest.mark.parametrize("arch", sorted(ROWS))
def test_cases_and_farthest_logits(arch):
    """What is said is what is measured, rounded up to a digit (at most twice it)."""
    n, _, said = ROWS[arch]
    cases = cases_of(arch)
    assert n == len(cases)
    measured = [max((golden_models.gaps(c.rows(*golden_models.EXACT), c.golden())[0] for c in cases if is_rounded(c) == rounded), default=None) for rounded in (False, True)]
    measured = [gap for gap in measured if gap is not None]
    assert len(said) == len(measured) and all(gap <= s <= 2 * gap for gap, s in zip(measured, said)), f"{arch}: measured {np.array(measured)}, said {said}"


def test_who_drafts():
    """Architectures with a golden draft, and those whose block a numpy model vouches for."""
    golden = {c.arch for c in map(golden_models.case_of, golden_models.cases(True)) if hasattr(c, "draft")}
    assert {arch for arch, row in ROWS.items() if row[1]} == golden | {"deepseek2", "xing4_0"}
