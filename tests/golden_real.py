"""Two real models against the reference: exact path, default path, perplexity (golden/README.md section 4)."""
import functools
import os

import numpy as np
import pytest

import drive

MODELS = {"smollm2": "smollm2-135m-q41.gguf", "gemma3": "gemma3-270m-q4km.gguf"}
EXACT = ("--activations", "f32", "-ctk", "f32", "-ctv", "f32")
CLEAR = 0.05  # a margin of the ideal that the exact path must not miss
DISAGREE, KL, LOGPROB, PERPLEXITY = 1.25, 1.15, 1.15, 0.003

FOLDER = drive.golden("real")
CACHE = drive.fetch(*MODELS)
# one process a model: its tests share cached results
every_model = pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in MODELS])


@functools.lru_cache(maxsize=None)
def expect(name):
    return drive.load(os.path.join(FOLDER, name, "expect.json"))


def model(name):
    return os.path.join(CACHE, MODELS[name])


def forced_rows(name, prompt, *options):
    """Logits on the prompt followed by the reference's own text: the rows of the prompt, and the 200 that choose that text."""
    ids = prompt["ids"] + prompt["reference"]["greedy"]
    rows = drive.logits(model(name), ids, expect(name)["n_vocab"], "-c", 2048, *options)
    return rows[:len(prompt["ids"])], rows[len(prompt["ids"]) - 1:-1]


def log_softmax(rows):
    x = rows.astype(np.float64)
    x -= x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


@functools.lru_cache(maxsize=None)
def compared(name):
    """-> a row of figures per prompt, from one pass of both paths over it."""
    want, found = expect(name), []
    for prompt in want["prompts"]:
        ideal, forced = prompt["ideal"], prompt["forced_ideal"]
        given, exact = forced_rows(name, prompt, *EXACT)
        _, default = forced_rows(name, prompt)
        probe = np.array([k * want["n_vocab"] // 64 for k in range(64)])
        wrong = [abs(float(given[at][i]) - value) for at, top in zip(prompt["at"], ideal["top10"]) for i, value in top]
        wrong += list(np.abs(given[-1][probe] - np.array(ideal["probe"])))
        top, margin, logprob = (np.array(forced[k]) for k in ("top", "margin", "logprob"))
        # row by row: 200 rows of 262,144 in double would be 400 MB
        kl, ours = [], []
        for p, q, token in zip(exact, default, prompt["reference"]["greedy"]):
            lp, lq = log_softmax(p[None])[0], log_softmax(q[None])[0]
            kl.append(float((np.exp(lp) * (lp - lq)).sum()))
            ours.append(lq[token])
        missed = default.argmax(axis=1) != top
        found.append({
            "id": prompt["id"], "gap": max(wrong), "exact_missed": int((margin > CLEAR)[exact.argmax(axis=1) != top].sum()),
            "disagree": int(missed.sum()), "widest": float(margin[missed].max(initial=0)), "kl": kl, "square": list((np.array(ours) - logprob) ** 2)})
    return found


@every_model
def test_exact_path_meets_the_ideal(name):
    limit = expect(name)["tolerance_without_activation_rounding"]["gap_max"]
    for row in compared(name):
        assert row["gap"] <= limit, f"{row['id']}: logits are off by {row['gap']:.5f}"
        assert row["exact_missed"] == 0, f"{row['id']}: {row['exact_missed']} top tokens with a margin above {CLEAR} missed"


@every_model
def test_default_path_is_as_near_as_the_reference(name):
    yardstick, rows = expect(name)["yardstick"]["reference"], compared(name)
    disagree = sum(r["disagree"] for r in rows)
    kl = float(np.mean([k for r in rows for k in r["kl"]]))
    logprob = float(np.sqrt(np.mean([s for r in rows for s in r["square"]])))
    widest = max(r["widest"] for r in rows)
    print(f"{name}: {disagree} disagreements (reference {yardstick['of'] - yardstick['top_agrees']}), mean KL {kl:.6f} ({yardstick['mean_kl']}), "
          f"logprob rms {logprob:.5f} ({yardstick['logprob_rms']}), widest miss {widest:.3f} ({yardstick['widest_margin_of_a_miss']})")
    assert widest <= 1.5 * yardstick["widest_margin_of_a_miss"]
    assert disagree <= DISAGREE * (yardstick["of"] - yardstick["top_agrees"])
    assert kl <= KL * yardstick["mean_kl"]
    assert logprob <= LOGPROB * yardstick["logprob_rms"]


@every_model
def test_exact_greedy_text(name):
    for prompt in expect(name)["prompts"]:
        ideal = prompt["ideal"]
        clear = next((i for i, margin in enumerate(ideal["margins"]) if margin < CLEAR), len(ideal["margins"]))
        with drive.ids_file(prompt["ids"]) as tokens:
            out = drive.pinch_json("run", "-m", model(name), "--prompt-tokens", tokens.name, "-n", max(clear, 1), "--temp", 0, "--ignore-eos", "-c", 2048, *EXACT)
        assert out["ids"][:clear] == ideal["greedy"][:clear], prompt["id"]


@every_model
def test_prompts_are_tokenised_alike(name):
    for prompt in expect(name)["prompts"]:
        ids = drive.pinch_json("tokenize", "-m", model(name), stdin=prompt["prompt"].encode())["ids"]
        assert ids == prompt["ids"], prompt["id"]


@every_model
@pytest.mark.parametrize("path", ["exact", "default"])
@pytest.mark.parametrize("text", ["gpl-2", "us-state"])
@pytest.mark.parametrize("scored", ["half", "full"])
def test_perplexity(name, path, text, scored):
    if (path, text, scored) == ("exact", "us-state", "full") and not drive.LONG:
        pytest.skip("PINCH_LONG=1 runs it: the same windows as half")
    want = expect(name)["perplexity"]["texts"][text]
    ideal, reference = want["ideal"][scored], want["reference"][scored]
    out = drive.pinch_json("perplexity", "-m", model(name), "-f", os.path.join(FOLDER, "texts", text + ".txt"), "-c", 512, *(["--all"] if scored == "full" else []),
                           *(EXACT if path == "exact" else ()))
    assert out["scored"] == ideal["scored"] and out["tokens"] == want["tokens"]
    off = abs(out["ppl"] - ideal["ppl"])
    print(f"{name} {text} {scored} {path}: {out['ppl']:.5f}, ideal {ideal['ppl']}, reference {reference['ppl']}")
    if path == "exact":
        assert off <= 0.0005 * ideal["ppl"]
        assert abs(out["bits_per_byte"] - ideal["bits_per_byte"]) <= 0.0005 * ideal["bits_per_byte"]
    else:
        assert off <= abs(reference["ppl"] - ideal["ppl"]) + PERPLEXITY * ideal["ppl"]


@every_model
def test_a_thousand_tokens_take_no_more_memory(name):
    def peak(n):
        out = drive.pinch_json("run", "-m", model(name), "-p", "Once upon a time", "-n", n, "--temp", 0, "--ignore-eos", "-c", 1100)
        assert len(out["ids"]) == n
        return out["memory"]
    short, long = peak(20), peak(1000)
    cache = 24 << 10  # bytes a token of either model: pages of the cache become resident as it fills
    assert long["peak_bytes"] <= short["peak_bytes"] * 1.01 + (1 << 20) + 980 * cache
    assert long["peak_bytes"] <= long["plan_bytes"] * 1.02


@every_model
def test_the_peak_of_a_full_batch_stays_within_the_plan(name):
    options = ("-m", model(name), "-p", 512, "-n", 128, "-r", 1)
    plan = drive.pinch_json("bench", *options, "--plan")
    assert drive.pinch_json("bench", *options)["peak_bytes"] <= plan["total_bytes"] * 1.02
