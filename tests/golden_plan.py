"""What `pinch info --plan` says of a sequence's memory and of the places where a plan can be cut, against the formulas of the architectures.

The formulas are computed here from the files' metadata alone (gguf_file.py). What a layer remembers: keys and values of all positions, of a window (a ring of
window - 1 + batch positions, so that no row of a batch overwrites what another still reads), one latent row for all heads, or recurrent floats; else nothing."""
import functools
import os
import re

import pytest

import drive
import gguf_file
import golden_models

MAMBA = ("granitehybrid", "falcon-h1", "nemotron_h", "nemotron_h_moe")
LATENT = ("deepseek2", "mistral4", "xing4_0")
PERIODS = {"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "olmo2": 4}  # of sliding layers; the last of each period sees all
TYPE_BYTES = {"f32": 4.0, "f16": 2.0, "q8_0": 34 / 32}


def up(n, to):
    return (n + to - 1) // to * to


class Model:
    """The numbers of a file that the formulas need."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.file = gguf_file.File(f.read())
        self.get = self.file.get
        self.arch = self.get("general.architecture").decode()
        self.n_layers = self.get("block_count") - self.get("nextn_predict_layers", 0)
        if not self.file.has(f"blk.{self.n_layers}.nextn.eh_proj.weight") and self.file.has(f"blk.{self.n_layers}.attn_norm.weight"):
            self.n_layers = self.get("block_count")  # the key counts blocks that the file lacks
        self.n_embd = self.get("embedding_length")
        self.heads = self.get_at("attention.head_count", 0)

    def get_at(self, key, il, default=None):
        value = self.get(key, default)
        return value[il] if isinstance(value, list) else value

    def heads_kv(self, il):
        return self.get_at("attention.head_count_kv", il, self.get_at("attention.head_count", il))

    def window(self, il):
        """Positions that the layer sees, 0: all."""
        window, pattern = self.get("attention.sliding_window", 4096 if self.arch == "gemma2" else 0), self.get("attention.sliding_window_pattern")
        if self.arch == "lfm2":
            return window
        if self.arch not in (*PERIODS, "gemma4", "lfm3"):
            return 0
        slides = pattern[il] if isinstance(pattern, list) else il % (pattern or PERIODS[self.arch]) < (pattern or PERIODS[self.arch]) - 1
        return window if slides else 0

    # ---- floats of a layer ----

    def delta(self, il):
        """models-deltanet-bailing.md section 6: windows of the convolutions, then a matrix a value head, here with its value channels rounded up to 16."""
        if self.arch in ("qwen35", "qwen35moe", "qwen3next"):
            listed = self.get("attention.recurrent_layers")
            if (not listed[il]) if listed else (il + 1) % self.get("full_attention_interval", 4) == 0:
                return None
            d, n_k, n_v = self.get("ssm.state_size"), self.get("ssm.group_count"), self.get("ssm.time_step_rank")
            return (self.get("ssm.conv_kernel") - 1) * (2 * n_k * d + n_v * d), n_v * d * up(d, 16)
        if self.arch in ("bailingmoe3", "kimi-linear") and self.heads_kv(il) == 0:
            d = self.get("kda.head_dim")
            return 3 * (self.get("ssm.conv_kernel") - 1) * self.heads * d, self.heads * d * up(d, 16)
        return None

    def mamba(self, il):
        """models-lfm-mla.md section 11: the window of the convolution, then channels x states, here with a head's channels rounded up to 16."""
        if self.arch not in MAMBA or (self.arch != "falcon-h1" and self.heads_kv(il) > 0) or (self.arch.startswith("nemotron") and self.get_at("feed_forward_length", il) > 0):
            return None
        inner, states, heads, groups = (self.get(f"ssm.{k}") for k in ("inner_size", "state_size", "time_step_rank", "group_count"))
        return (self.get("ssm.conv_kernel") - 1) * (inner + 2 * groups * states), heads * up(inner // heads, 16) * states

    def recurrent(self, il):
        """Floats, the second part on a cache line of its own (16 floats)."""
        parts = self.delta(il) or self.mamba(il)
        if parts:
            return up(parts[0], 16) + parts[1]
        short = self.arch in ("lfm2", "lfm2moe", "lfm3") and self.heads_kv(il) == 0
        return self.n_embd * (self.get("shortconv.l_cache") - 1) if short else 0

    def keys_values(self, il):
        """(heads, channels of a key, of a value), None: the layer keeps none. Latent attention: one row for all heads, whose first channels are the values."""
        latent = self.arch in LATENT or (self.arch in ("bailingmoe3", "kimi-linear") and self.heads_kv(il) > 0)
        if latent:
            return 1, self.get("attention.kv_lora_rank") + self.get("rope.dimension_count"), 0
        if self.delta(il) or self.heads_kv(il) == 0 or il >= self.n_layers - self.get("attention.shared_kv_layers", 0):
            return None
        slid = "_swa" if self.arch == "gemma4" and self.window(il) else ""
        d = self.n_embd // self.heads
        return self.heads_kv(il), self.get("attention.key_length" + slid, d), self.get("attention.value_length" + slid, d)

    def layer(self, il, n_ctx, n_batch, type_k, type_v):
        """As `info` says it. Bytes of keys, of values and of recurrent floats are each rounded up to 64, positions to tiles of 16."""
        window, shape = self.window(il), self.keys_values(il)
        row = {"layer": il, "positions": 0, "window": 0, "position_bytes": 0, "kv_bytes": 0, "recurrent_bytes": up(4 * self.recurrent(il), 64)}
        if shape:
            heads, k, v = shape[0], shape[1] * TYPE_BYTES[type_k], shape[2] * TYPE_BYTES[type_v]
            positions = up(min(n_ctx, window - 1 + n_batch) if window else n_ctx, 16)
            row.update(positions=positions, window=window, position_bytes=heads * (k + v), kv_bytes=up(heads * positions * k, 64) + up(heads * positions * v, 64))
        return row

    def shares(self, behind, of):
        """Whether layers behind a cut read what layer `of`, before it, stores: gemma4's last ones, the last of their kind that has keys and values."""
        first = self.n_layers - self.get("attention.shared_kv_layers", 0)
        readers = [il for il in range(first, self.n_layers) if first - (2 if self.window(il) else 1) == of]
        return of <= behind < max(readers, default=-1)


@functools.lru_cache(maxsize=None)
def model_of(name):
    return Model(golden_models.case_of(name).path)


def info(name, *options):
    return drive.pinch_json("info", "-m", golden_models.case_of(name).path, "--plan", *options)


@golden_models.every_case
@pytest.mark.parametrize("n_ctx, n_batch, type_k, type_v", [(200, 7, "f16", "f16"), (512, 64, "f32", "f16")])
def test_memory_of_a_sequence_is_the_formula(name, n_ctx, n_batch, type_k, type_v):
    m = model_of(name)
    want = [m.layer(il, n_ctx, n_batch, type_k, type_v) for il in range(m.n_layers)]
    out = info(name, "-c", n_ctx, "-b", n_batch, "-ctk", type_k, "-ctv", type_v)
    said = out["sequence"]
    assert said["layers"] == want
    assert said["bytes"] == out["plan"]["kv"] == sum(row["kv_bytes"] + row["recurrent_bytes"] for row in want)
    assert said["position_bytes"] == sum(row["position_bytes"] for row in want if not row["window"])
    assert said["fixed_bytes"] == sum(row["recurrent_bytes"] + (row["kv_bytes"] if row["window"] else 0) for row in want)


@pytest.mark.parametrize("name", [n for n in golden_models.cases(True) if golden_models.drafts(n)])
def test_a_block_that_drafts_counts_when_it_is_asked_for(name):
    """One layer more, like the trunk's attention; it carries the trunk's last result."""
    m, plain, out = model_of(name), info(name), info(name, "--spec", "mtp:2")
    layers = plain["sequence"]["layers"]
    like = next(row for row in layers if row["position_bytes"])
    assert len(layers) == m.n_layers
    assert out["sequence"]["layers"] == layers + [{**like, "layer": m.n_layers, "recurrent_bytes": up(4 * m.n_embd, 64)}]
    assert out["cuts"] == plain["cuts"]
    kept = sum(row["recurrent_bytes"] for row in out["sequence"]["layers"])
    assert plain["plan"]["drafts"] == 0 and out["plan"]["drafts"] == 2 * kept
    assert all(out["plan"][k] > plain["plan"][k] for k in ("weights_resident", "kv", "scratch", "total_bytes"))


def test_every_kind_of_memory_is_among_the_cases():
    """What the test above proves nothing about without such a case."""
    rows = [(m.arch, m.layer(il, 200, 7, "f16", "f16")) for m in map(model_of, golden_models.cases(True)) for il in range(m.n_layers)]
    assert {arch for arch, _ in rows} == golden_models.RUNS
    assert {arch for arch, row in rows if row["recurrent_bytes"]} == {*MAMBA, "qwen35", "qwen35moe", "qwen3next", "bailingmoe3", "kimi-linear", "lfm2", "lfm2moe", "lfm3"}
    assert {arch for arch, row in rows if row["window"]} >= {"gemma2", "gemma3", "gemma4", "gpt-oss", "olmo2", "lfm2", "lfm3"}
    assert {arch for arch, row in rows if row["recurrent_bytes"] and row["positions"]} == {"falcon-h1"}


DEEPSEEK_LITE = {"deepseek2.embedding_length": 2048, "deepseek2.attention.head_count": 16, "deepseek2.attention.kv_lora_rank": 512, "deepseek2.rope.dimension_count": 64,
                 "deepseek2.attention.key_length": 576, "deepseek2.attention.value_length": 512, "deepseek2.attention.key_length_mla": 192, "deepseek2.attention.value_length_mla": 128,
                 "deepseek2.feed_forward_length": 256, "deepseek2.expert_feed_forward_length": 64, "deepseek2.attention.q_lora_rank": 256}


def test_latent_rows_of_real_shape_have_576_values():
    """The golden model without experts, its widths those of DeepSeek V2 Lite; the weights are a hole in the file."""
    case = golden_models.case_of("deepseek2-dense-f32")
    with open(case.path, "rb") as f:
        big = gguf_file.File(f.read())
    for key in DEEPSEEK_LITE.keys() & big.values.keys():
        big.values[key].value = DEEPSEEK_LITE[key]
    E, H, F, r_q, n_layers, offset = 2048, 16, 256, 256, big.get("block_count"), 0
    shapes = {"attn_norm": [E], "ffn_norm": [E], "attn_q": [E, H * 192], "attn_q_a": [E, r_q], "attn_q_a_norm": [r_q], "attn_q_b": [r_q, H * 192], "attn_kv_a_mqa": [E, 576], "attn_kv_a_norm": [512],
              "attn_k_b": [128, 512, H], "attn_v_b": [512, 128, H], "attn_output": [H * 128, E], "ffn_gate": [E, F], "ffn_up": [E, F], "ffn_down": [F, E], "output_norm": [E],
              "token_embd": [E, case.n_vocab], "output": [E, case.n_vocab]}
    for t in big.tensors:
        t.shape, t.kind, t.offset = shapes[re.sub(r"^blk\.\d+\.|\.weight$", "", t.name.decode())], 0, offset
        size = 4
        for n in t.shape:
            size *= n
        offset += up(size, 32)
    with drive.temporary_file(big.bytes(data=False), ".gguf") as f:
        os.truncate(f.name, os.path.getsize(f.name) + offset)
        out = drive.pinch_json("info", "-m", f.name, "-c", 4096)
    assert out["runs"], out.get("why_not")
    assert [row["position_bytes"] for row in out["sequence"]["layers"]] == [576 * 2] * n_layers
    assert out["sequence"]["bytes"] == n_layers * 4096 * 576 * 2


# ---- where a plan can be cut ----

@golden_models.every_case
def test_a_plan_can_be_cut_behind_every_layer_but_the_last(name):
    m, cuts = model_of(name), info(name)["cuts"]
    assert [cut["layer"] for cut in cuts] == list(range(m.n_layers - 1))
    for cut in cuts:
        keys = [of for of in range(m.n_layers) if m.shares(cut["layer"], of)]
        assert cut["keys_and_values_of"] == keys
        assert ("stream" in cut["alive"]) != ("streams" in cut["alive"])
        assert cut["row_bytes"] == 4 * sum(cut["alive"].values()) + sum(m.layer(of, 64, 64, "f16", "f16")["position_bytes"] for of in keys)


def block_result(m, il):
    """What the layer's last block adds to the stream, which the step behind the cut does: a row, or those of the chosen experts with their weights."""
    if il < m.get("leading_dense_block_count", 0) or not m.get("expert_count", 0):
        return {"value": m.n_embd}
    used = m.get("expert_used_count")
    shared = {"value": m.n_embd} if m.get("expert_shared_count", 0) else {}
    return {"expert weights": used, "expert value": used * m.n_embd, **shared}


@pytest.mark.parametrize("name", ["llama-f32", "llama-moe", "bailingmoe2-f32", "qwen3moe-f32"])
def test_alive_at_a_cut(name):
    m = model_of(name)
    assert [cut["alive"] for cut in info(name)["cuts"]] == [{"stream": m.n_embd, **block_result(m, il)} for il in range(m.n_layers - 1)]


def test_alive_at_a_cut_of_gemma4():
    """Every layer reads its own part of what the token brings beside the stream; the last ones read keys and values of earlier ones."""
    m, cuts = model_of("gemma4-f32"), info("gemma4-f32")["cuts"]
    inputs = m.n_layers * m.get("embedding_length_per_layer_input")
    assert inputs and [cut["alive"] for cut in cuts] == [{"stream": m.n_embd, "layer inputs": inputs, "value": m.n_embd}] * (m.n_layers - 1)
    assert [cut["keys_and_values_of"] for cut in cuts] == [[], [1], [1, 2], [1, 2], [2]]


def test_alive_at_a_cut_of_xing4_0():
    """Four streams; what a block's result is worth to each, and how they mix (4 + 16 floats)."""
    m = model_of("xing4_0-f32")
    want = [{"streams": 4 * m.n_embd, "stream weights": 4 + 16, **block_result(m, il)} for il in range(m.n_layers - 1)]
    assert [cut["alive"] for cut in info("xing4_0-f32")["cuts"]] == want


def text_of(name, *options):
    return drive.pinch("info", "-m", golden_models.case_of(name).path, "--plan", *options).decode()


def test_text_puts_layers_that_are_alike_in_a_line():
    """The README shows it for gemma4-f32, and names the options."""
    text = text_of("gemma4-f32", "-c", 256, "-b", 16)
    shown = text[text.index("\na sequence of it:"):]
    assert f"with `-c 256 -b 16`,\n\n```{shown}```" in drive.load_bytes(os.path.join(drive.ROOT, "README.md")).decode()
    assert re.search(r"^ +512  behind layer 0-1: stream 256, value 256$", text_of("llama-f32"), re.M)
    assert re.search(r"^ +0 +0 +0 +14208  0-1, 3$", text_of("qwen35-long", "-c", 256), re.M)


@pytest.mark.parametrize("options", [[], ["--json"]])
@pytest.mark.parametrize("name, more, sentence", [("llama-f32", ["-c", 500_000_000], "needed"), ("llama-f32", ["--spec", "mtp"], "has no block that drafts tokens")])
def test_a_plan_that_fails_is_a_failure(name, more, sentence, options):
    with pytest.raises(drive.Failed) as refused:
        text_of(name, *more, *options)
    assert refused.value.status == 1 and sentence in refused.value.stderr and len(refused.value.stderr.strip().splitlines()) == 1
