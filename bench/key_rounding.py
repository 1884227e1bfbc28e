#!/usr/bin/env python3
"""How far logits move when a cache keeps its keys in 34 bytes for 32 values, by what rounds them (docs/SPEED.md, Keys of 8 bits).

  python3 bench/key_rounding.py [MODELS]        random models beside golden's case, for each of the two head sizes (30)

Knows the golden cases llama-kv-q8_0 and llama-kv-q8_0-64 and the builder of their models (../shared or $PINCH_SHARED; needs numpy, gguf). The model is
written anew in float64 and agrees with logits_ideal.f32 to 1e-5; what "today" gives is what the program gives. Gaps are against its own logits with exact
keys and values; values are kept as halves."""
import hashlib
import json
import os
import sys
import tempfile

import numpy as np

SHARED = os.path.abspath(os.environ.get("PINCH_SHARED") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../shared"))
sys.path.insert(0, os.path.join(SHARED, "tools/refmodel"))
import gguf  # noqa: E402
from family_llama import llama  # noqa: E402

KINDS = {"llama-kv-q8_0": {"H": 4, "Hkv": 2, "d": 32, "qk_gain": 1.0}, "llama-kv-q8_0-64": {"H": 2, "Hkv": 1, "d": 64, "F": 64, "L": 2, "qk_gain": 1.0}}
BAR = 0.025
HORIZON = 40  # later positions that a metric looks at
SCALES = np.linspace(0.995, 1.1, 33)  # tried, in units of the one that the largest magnitude asks for; smaller ones lose by clipping
rng = np.random.default_rng(7)


def norm(x, w):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w


def half(x):
    return x.astype(np.float32).astype(np.float16).astype(float)


class Model:
    def __init__(self, path, dims, prompt):
        self.w = {t.name: np.array(t.data, float) for t in gguf.GGUFReader(path).tensors}
        self.layers = sum(name.endswith("attn_q.weight") for name in self.w)
        self.heads, self.kv_heads, self.d, self.prompt = dims["H"], dims["Hkv"], dims["d"], prompt
        angles = np.arange(len(prompt) + HORIZON)[:, None] * 10000.0 ** (-2 * np.arange(self.d // 2) / self.d)
        self.turns = np.zeros((len(angles), self.d, self.d))  # rotations as matrices
        even = np.arange(0, self.d, 2)
        self.turns[:, even, even] = self.turns[:, even + 1, even + 1] = np.cos(angles)
        self.turns[:, even + 1, even] = np.sin(angles)
        self.turns[:, even, even + 1] = -np.sin(angles)
        self.metrics = {}
        self.exact = self.logits(None)

    def rope(self, x):
        return np.einsum("pab,phb->pha", self.turns[:len(x)], x)

    def logits(self, rounding):
        n, x = len(self.prompt), self.w["token_embd.weight"][self.prompt]
        hidden = np.triu(np.full((n, n), -np.inf), 1)
        for i in range(self.layers):
            w = {name.split(".")[2]: t for name, t in self.w.items() if name.startswith(f"blk.{i}.")}
            y = norm(x, w["attn_norm"])
            q, k, v = ((y @ w[name].T).reshape(n, -1, self.d) for name in ("attn_q", "attn_k", "attn_v"))
            keys, q = self.rope(k), self.rope(q)
            if rounding:
                keys = rounding(Keys(self, i, k, keys, q, v))
                v = half(v)
            keys, v = (np.repeat(t, self.heads // self.kv_heads, 1) for t in (keys, v))
            p = np.exp((scores := np.einsum("ihd,jhd->hij", q, keys) / np.sqrt(self.d) + hidden) - scores.max(-1, keepdims=True))
            x = x + np.einsum("hij,jhd->ihd", p / p.sum(-1, keepdims=True), v).reshape(n, -1) @ w["attn_output"].T
            y = norm(x, w["ffn_norm"])
            gate = y @ w["ffn_gate"].T
            x = x + (gate / (1 + np.exp(-gate)) * (y @ w["ffn_up"].T)) @ w["ffn_down"].T
        return norm(x, self.w["output_norm.weight"]) @ self.w["output.weight"].T

    def gap(self, rounding):
        e = self.logits(rounding) - self.exact
        return np.abs(e).max(), np.sqrt((e * e).mean())

    def covariance(self, i, name):
        w = (self.w[f"blk.{i}.{name}.weight"] * self.w[f"blk.{i}.attn_norm.weight"]).reshape(self.kv_heads, -1, self.d, self.w["token_embd.weight"].shape[1])
        return np.einsum("kgax,kgbx->kab", w, w)

    def metric(self, i):
        """What an error of a key costs, in the frame of the key's position: mean of q q^T over positions that follow, queries made of white noise by W_q."""
        if i not in self.metrics:
            m = np.einsum("pab,kbc,pdc->kad", self.turns[:HORIZON], self.covariance(i, "attn_q"), self.turns[:HORIZON], optimize=True)
            self.metrics[i] = m / np.trace(m, axis1=1, axis2=2)[:, None, None] * self.d
        return self.metrics[i]


class Keys:
    """What a rounding sees: keys before and after rotation, and (for oracles) all queries and values of the prompt, [position][head][channel]."""

    def __init__(self, model, layer, plain, keys, q, v):
        self.model, self.layer, self.plain, self.keys, self.q, self.v = model, layer, plain, keys, q, v


# ---- roundings of blocks [..., 32] ----

def largest(b):
    return np.abs(b).max(-1, keepdims=True)


def codes(b, step, low, high):
    step = np.where(step == 0, 1, step)
    return np.clip(np.rint(b / step), low, high) * step


def today(b):
    """As src/state/state.c: codes by the float scale, which then is kept as a half."""
    return np.rint(b * (127 / largest(b))) * half(largest(b) / 127)


def plain(b, bits=8):
    high = 2 ** (bits - 1) - 1
    return codes(b, half(largest(b) / high), -high, high)


def searched(b):
    """The scale of least square error among SCALES; the largest magnitude may become -128."""
    at = np.take_along_axis(b, np.abs(b).argmax(-1)[..., None], -1)
    tries = [codes(b, half(-at / 128 * f), -128, 127) for f in SCALES]
    errors = np.stack([((t - b) ** 2).sum(-1) for t in tries])
    return np.take_along_axis(np.stack(tries), errors.argmin(0)[None, ..., None], 0)[0]


def asymmetric(b):
    low, high = half(b.min(-1, keepdims=True)), b.max(-1, keepdims=True)
    return low + codes(b - low, half((high - low) / 255), 0, 255)


def byte_scale(step):
    """A scale of 8 bits: powers of 2^(1/16), rounded up."""
    return 2.0 ** (np.ceil(np.log2(np.maximum(step, 1e-30)) * 16) / 16)


def two_scales(b):
    b16 = b.reshape(*b.shape[:-1], 2, 16)
    return codes(b16, byte_scale(largest(b16) / 127.5), -128, 127).reshape(b.shape)


def cosets(b):
    """A scale of 8 bits; the other 8 shift four values each by half a step (the lattice D4*)."""
    step, fours = byte_scale(largest(b) / 127.5)[..., None], b.reshape(*b.shape[:-1], 8, 4)
    both = np.stack([codes(fours - s * step, step, -128, 127) + s * step for s in (0, 0.5)])
    best = ((both - fours) ** 2).sum(-1).argmin(0)
    return np.take_along_axis(both, best[None, ..., None], 0)[0].reshape(b.shape)


def dithered(b):
    step = half(largest(b) / 126.5)
    u = rng.uniform(-0.5, 0.5, b.shape) * step
    return codes(b + u, step, -127, 127) - u


# ---- roundings of keys ----

def in_blocks(rounding, x):
    return rounding(x.reshape(*x.shape[:-1], -1, 32)).reshape(x.shape)


def of(rounding):
    return lambda c: in_blocks(rounding, c.keys)


def turned(rounding, matrix):
    return lambda c: in_blocks(rounding, c.keys @ matrix(c.model.d)) @ matrix(c.model.d).T


def hadamard(d, of=None):
    n, h = of or d, np.ones((1, 1))
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    return np.kron(np.eye(d // n), h / np.sqrt(n))


def one_rotation(d):
    q, r = np.linalg.qr(rng.standard_normal((d, d)))
    return q * np.sign(np.diag(r))


def random_rotation():
    made = {}
    return lambda d: made.setdefault(d, one_rotation(d))


def before_rope(c):
    return c.model.rope(in_blocks(plain, c.plain))


def centred(c):
    mean = c.keys.mean(0, keepdims=True)
    return in_blocks(plain, c.keys - mean) + mean


def under_metric(x, m):
    """Codes of least (x-y)^T m (x-y): nearest plane, then coordinate descent, for every other of SCALES."""
    upper, best, least = np.swapaxes(np.linalg.cholesky(m), -1, -2), x * 0, np.full((*x.shape[:-1], 1), np.inf)
    for f in SCALES[::2]:
        step = np.repeat(half(largest(x.reshape(*x.shape[:-1], -1, 32))[..., 0] * f / 127), 32, -1)
        y = np.zeros(x.shape)
        for c in reversed(range(x.shape[-1])):
            ahead = (upper[..., c, c + 1:] * (x - y)[..., c + 1:]).sum(-1) / upper[..., c, c]
            y[..., c] = codes(x[..., c] + ahead, step[..., c], -127, 127)
        for c in list(range(x.shape[-1])) * 3:
            pull = (m[..., c, :] * (x - y)).sum(-1) / m[..., c, c]
            y[..., c] = codes(y[..., c] + pull, step[..., c], -127, 127)
        cost = np.einsum("...a,...ab,...b->...", x - y, m, x - y)[..., None]
        best, least = np.where(cost < least, y, best), np.minimum(cost, least)
    return best


def placed(c, m):
    """A metric [head] or [position][head] in the frame of each key's position."""
    turns = c.model.turns[:len(c.keys), None]
    return turns @ m @ np.swapaxes(turns, -1, -2)


def by_weights(c):
    return under_metric(c.keys, placed(c, c.model.metric(c.layer)))


def by_past(c):
    """By the queries up to the key's own, as if they came again at each of the positions that follow, and by the weights as long as there are few."""
    model, n = c.model, len(c.keys)
    q = np.einsum("pba,phb->pha", model.turns[:n], c.q).reshape(n, model.kv_heads, -1, model.d)  # not rotated
    seen = np.cumsum(np.einsum("pkga,pkgb->pkab", q, q), 0)
    m = sum(t @ seen @ t.T for t in model.turns[:HORIZON:4])
    m *= model.d / np.trace(m, axis1=2, axis2=3)[..., None, None]
    share = np.arange(1, n + 1)[:, None, None, None] * q.shape[2]
    share = share / (share + model.d)
    return under_metric(c.keys, placed(c, share * m + (1 - share) * model.metric(c.layer)))


def oracle(c):
    """By the true queries that follow, each weighted by what an error of its score does: nobody knows them when a key is stored."""
    n, heads, d = c.v.shape
    q = c.q.reshape(n, heads, -1, d)
    s = np.einsum("ikgd,jkd->kgij", q, c.keys) / np.sqrt(d) + np.triu(np.full((n, n), -np.inf), 1)
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    out = np.einsum("kgij,jkd->kgid", p, c.v)
    cost = p ** 2 * ((c.v.transpose(1, 0, 2)[:, None, None] - out[..., None, :]) ** 2).sum(-1)
    m = np.einsum("kgij,ikga,ikgb->jkab", cost, q, q, optimize=True)
    return under_metric(c.keys, m / np.trace(m, axis1=2, axis2=3)[..., None, None] * d + 0.01 * np.eye(d))


def bound(c):
    """Noise of the least mean square, weighted by the metric, that any code of 8.5 bits a value can have for Gaussian keys (rate-distortion theory)."""
    d, m, s = c.model.d, c.model.metric(c.layer), c.model.covariance(c.layer, "attn_k")
    volume = np.exp((np.linalg.slogdet(m)[1] + np.linalg.slogdet(s)[1]) / d) * 2.0 ** (-2 * 8.5)
    shape = np.linalg.cholesky(np.linalg.inv(m) * volume[:, None, None])
    return c.keys + c.model.rope(np.einsum("kab,pkb->pka", shape, rng.standard_normal(c.keys.shape)))


WAYS = {
    "exact keys": lambda c: c.keys,
    "today": of(today),
    "codes by the scale as kept": of(plain),
    "scale of least error of 33, -128 used": of(searched),
    "smallest and largest (36 bytes)": of(asymmetric),
    "two scales of 8 bits, 16 channels each": of(two_scales),
    "scale of 8 bits, half steps for fours": of(cosets),
    "Hadamard, 32 channels": turned(plain, lambda d: hadamard(d, 32)),
    "Hadamard, whole head": turned(plain, hadamard),
    "less the mean key (oracle)": centred,
    "rounded before rope": before_rope,
    "metric of W_q": by_weights,
    "metric of W_q and past queries": by_past,
    "metric of the queries to come (oracle)": oracle,
    "9 bits": of(lambda b: plain(b, 9)),
    "10 bits": of(lambda b: plain(b, 10)),
    "11 bits": of(lambda b: plain(b, 11)),
    "theory's least noise at 34 bytes": bound,
}


def golden(kind):
    folder = os.path.join(SHARED, "golden", kind)
    with open(os.path.join(folder, "case.json"), encoding="utf-8") as f:
        prompt = json.load(f)["prompt"]
    model = Model(os.path.join(folder, "model.gguf"), KINDS[kind], prompt)
    ideal = np.fromfile(os.path.join(folder, "logits_ideal.f32"), "<f4").reshape(model.exact.shape)
    assert np.abs(model.exact - ideal).max() < 1e-5, "the model here is not golden's"
    return model


def another(kind, i):
    name = f"{kind} {i}"
    seed = np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little"))
    with tempfile.NamedTemporaryFile(suffix=".gguf") as f:
        llama.build(f.name, name, **KINDS[kind])
        return Model(f.name, KINDS[kind], [1, *(int(t) for t in seed.integers(8, 300, 39))])


def show(name, gaps):
    first, rest = gaps[0], np.array(gaps[1:])
    median, most, met = np.median(rest[:, 0]), rest[:, 0].max(), 100 * (rest[:, 0] <= BAR).mean()
    print(f"{name:39} {first[0]:.4f} {first[1]:.5f} | {median:.4f} {most:.4f} {rest[:, 1].mean():.5f} {met:4.0f} %", flush=True)


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    for kind in KINDS:
        models = [golden(kind), *(another(kind, i) for i in range(n))]
        print(f"{kind}: largest and rms gap | of {n} other models: median and largest of the largest gaps, mean rms, largest gap <= {BAR}")
        for name, way in WAYS.items():
            show(name, [m.gap(way) for m in models])
        for name, way in ("100 random rotations of golden's", lambda: turned(plain, random_rotation())), ("100 dithers of golden's", lambda: of(dithered)):
            show(name, [models[0].gap(way()) for _ in range(101)])


if __name__ == "__main__":
    main()
