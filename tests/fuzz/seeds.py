#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets into tests/fuzz/corpus: small whole files, from which mutation finds its way.

  python3 tests/fuzz/seeds.py        finds (files named find-*) are left alone"""
import os
import random
import struct

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
F32, F16, Q8_0 = 0, 1, 8
ROW_BYTES = {F32: lambda n: 4 * n, F16: lambda n: 2 * n, Q8_0: lambda n: n // 32 * 34}


def save(room, name, data):
    folder = os.path.join(HERE, room)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


# ---- GGUF

def text(s):
    s = s.encode() if isinstance(s, str) else s
    return struct.pack("<Q", len(s)) + s


def value(v):
    """-> type and bytes of a metadata value; a list is an array of its first item's type."""
    if isinstance(v, bool):
        return 7, struct.pack("<?", v)
    if isinstance(v, int):
        return 4, struct.pack("<I", v)
    if isinstance(v, float):
        return 6, struct.pack("<f", v)
    if isinstance(v, str):
        return 8, text(v)
    if isinstance(v, tuple):  # (type, format, number)
        return v[0], struct.pack("<" + v[1], v[2])
    kind = value(v[0])[0] if v else 4
    return 9, struct.pack("<IQ", kind, len(v)) + b"".join(value(x)[1] for x in v)


def gguf(values, tensors, version=3, align=32):
    """tensors: name -> (type, dims, bytes)."""
    head, infos, data = [], [], b""
    for key, v in values.items():
        kind, raw = value(v)
        head.append(text(key) + struct.pack("<I", kind) + raw)
    for name, (kind, dims, raw) in tensors.items():
        infos.append(text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, len(data)))
        data += raw + b"\0" * (-len(raw) % align)
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values)) + b"".join(head + infos)
    return out + b"\0" * (-len(out) % align) + data


def weights(r, kind, *dims):
    n = 1
    for d in dims[1:]:
        n *= d
    if kind == F32:
        raw = struct.pack(f"<{n * dims[0]}f", *(r.gauss(0, 0.2) for _ in range(n * dims[0])))
    elif kind == F16:
        raw = struct.pack(f"<{n * dims[0]}e", *(r.gauss(0, 0.2) for _ in range(n * dims[0])))
    else:
        raw = b"".join(struct.pack("<e", 0.003) + bytes(r.randrange(256) for _ in range(32)) for _ in range(n * dims[0] // 32))
    assert len(raw) == ROW_BYTES[kind](dims[0]) * n
    return kind, dims, raw


def bpe_vocab():
    """All 256 bytes as GPT-2 writes them would be long: the letters used here, and a few merges."""
    letters = list("abcdefghijklmnopqrstuvwxyz.,'") + ["Ġ", "Ċ"]
    tokens = ["<s>", "</s>", "<|im_start|>", *letters, "th", "the", "Ġthe", "at"]
    return {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [(5, "i", 3 if t.startswith("<") else 1) for t in tokens],
        "tokenizer.ggml.merges": ["t h", "th e", "Ġ the", "a t"], "tokenizer.ggml.bos_token_id": 0, "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.chat_template": "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"}, len(tokens)


def spm_vocab():
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "▁", "t", "h", "e", "th", "the", "▁the"]
    kinds = [2, 3, 3] + [6] * 256 + [1] * 7
    return {
        "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.scores": [-float(i) for i in range(len(tokens))],
        "tokenizer.ggml.token_type": [(5, "i", k) for k in kinds], "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_bos_token": True}, len(tokens)


def llama(arch, vocab, kind, seed):
    """A model of one layer: E 32, two heads of 16, one for keys and values."""
    r = random.Random(seed)
    words, n_vocab = vocab
    e, heads, kv, d, f = 32, 2, 1, 16, 32
    values = {"general.architecture": arch, "general.name": "seed", f"{arch}.context_length": 64, f"{arch}.embedding_length": e, f"{arch}.block_count": 1,
              f"{arch}.feed_forward_length": f, f"{arch}.attention.head_count": heads, f"{arch}.attention.head_count_kv": kv,
              f"{arch}.attention.layer_norm_rms_epsilon": 1e-5, f"{arch}.rope.dimension_count": d, f"{arch}.rope.freq_base": 10000.0, f"{arch}.vocab_size": n_vocab, **words}
    tensors = {"token_embd.weight": weights(r, kind, e, n_vocab), "output_norm.weight": weights(r, F32, e)}
    for name, rows, columns in ("attn_q", heads * d, e), ("attn_k", kv * d, e), ("attn_v", kv * d, e), ("attn_output", e, heads * d), ("ffn_gate", f, e), ("ffn_up", f, e), ("ffn_down", e, f):
        tensors[f"blk.0.{name}.weight"] = weights(r, kind, columns, rows)
    for name in "attn_norm", "ffn_norm":
        tensors[f"blk.0.{name}.weight"] = weights(r, F32, e)
    return gguf(values, tensors)


def models():
    save("engine", "llama-bpe-q8_0", llama("llama", bpe_vocab(), Q8_0, 1))
    save("engine", "llama-spm-f16", llama("llama", spm_vocab(), F16, 2))
    save("engine", "unknown-architecture", llama("later", bpe_vocab(), Q8_0, 3))
    words = bpe_vocab()[0]
    save("gguf", "vocabulary", gguf({"general.architecture": "llama", **words}, {}))
    every = {"general.architecture": "x", "u8": (0, "B", 200), "i8": (1, "b", -3), "u16": (2, "H", 65535), "i16": (3, "h", -300), "i32": (5, "i", -70000), "b": True,
             "u64": (10, "Q", 1 << 63), "i64": (11, "q", -1), "f64": (12, "d", 0.1), "empty": [], "nested": [["a", "b"], ["c"]], "floats": [0.5, 1.5]}
    small = {"a": weights(random.Random(4), F32, 3), "b.weight": weights(random.Random(5), Q8_0, 32, 2), "c": weights(random.Random(6), F16, 2, 3, 2, 2)}
    for version in 2, 3:
        save("gguf", f"every-type-v{version}", gguf(every, small, version))
    save("gguf", "align-64", gguf({"general.alignment": 64, "general.architecture": "x"}, small, align=64))


# ---- the others

def templates():
    for i, source in enumerate([
            "{% for m in messages %}{{ '<|' + m.role + '|>' }}{% if m.content %}{{ m['content'] | trim }}{% else %}-{% endif %}{% endfor %}",
            "{%- set ns = namespace(n=0) -%}{%- for m in messages if loop.index0 % 2 == 0 recursive -%}{%- set ns.n = ns.n + loop.length -%}{%- endfor -%}{{ ns.n }}",
            "{% macro f(a, b='x', *c, **d) %}{{ a ~ b ~ (c | length) }}{{ caller() if caller else '' }}{% endmacro %}{{ f(1, b=2) }}{% call f(3) %}in{% endcall %}",
            "{{ messages[0].content[::-1] }}{{ messages[-1]['role'].upper().split('A') | join('-') }}{{ 7 // 2 ** 3 % 5 - -1 }}",
            "{{ tools | tojson(indent=2) }}{{ {'a': [1, 2.0, none, true], 'b': (1,)} }}",
            "{% raw %}{{ }}{% endraw %}{# note #}{{- bos_token -}}\n{{ strftime_now('%Y-%m-%d') }}",
            "{% if tools is defined and tools is iterable and not tools is string %}{{ messages | map(attribute='role') | list | unique | sort(reverse=true) | first }}{% endif %}",
            "{% for k, v in {'b': 1, 'a': 2} | dictsort %}{{ k }}={{ v }}{% if not loop.last %}, {% endif %}{% else %}none{% endfor %}",
            "{{ raise_exception('no ' ~ messages | length) }}", "{% generation %}{{ 'a' if 1 in [1] else 'b' }}{% endgeneration %}",
            "{% set x %}block{% endset %}{{ x | replace('b', 'B') | indent(2) }}{% break %}", "{{ range(3) | batch(2) | list }}{{ [1, 2, 3][1:] + [4] }}{{ 'é'.encode }}"]):
        save("chat", f"template-{i}", source.encode())


def texts():
    for i, data in enumerate([b"\x00the cat and the hat", b"\x02  the\n\n\tcat's 123 \xe2\x96\x81 \xf0\x9f\x98\x80\xf0\x9f", b"\x07<s>the</s>", b"\x1f<unk>\x00\xff\xc3", b"\x09\xe2\x80\x8d\xcc\x81a"]):
        save("token", f"text-{i}", data)


def vocabularies():
    """See tests/fuzz/vocab_fuzz.c: strings with a number from 0 to 15 beside the length."""
    def string(b, high):
        return bytes([high << 4 | len(b)]) + b

    def vocabulary(name, family, flags, tokens, merges, data):
        tokens = b"".join(string(t.encode(), high) for t, high in tokens)
        merges = b"".join(string((a + b).encode(), len(a.encode())) for a, b in merges)
        save("vocab", name, bytes([family, flags]) + tokens + b"\0" + merges + b"\0" + data)

    vocabulary("spm", 0, 3, [("a", 8), ("b", 8), ("ab", 9), ("▁", 8), ("▁a", 10), ("aa", 11), ("aaa", 4), ("<x", 3)], [], b"ab a aaaa<x b\xe2\x96")
    vocabulary("spm-strip", 32, 3, [("a", 8), ("aa", 3), (" a", 4), ("a a", 2)], [], b"aa a  a \n a a")
    vocabulary("gpt2", 9, 0, [("a", 8), ("b", 8), ("Ġ", 1), ("ab", 1), ("Ġab", 1)], [("a", "b"), ("Ġ", "ab"), ("b", "b")], b"ab abbb 12 'll\n\n x")
    vocabulary("llama-bpe", 5, 1, [("abc", 1), ("a", 8), ("zz", 4)], [("a", "b"), ("ab", "c")], b"abc abcabczz\r\n 1234 \xc3\xa9")
    vocabulary("gemma4", 2, 1, [("▁", 1), ("\n\n", 1), ("▁a", 1), ("a", 1), ("b", 1)], [("▁", "a"), ("a", "▁"), ("a", "b")], b"a a\n\n ab  b a\xe2\x96\x81")
    for i in range(8):
        vocabulary(f"pre-{i}", 1 | i << 2, 0, [("a", 1), ("A", 1), ("é", 1)], [("a", "A")], "aA'S Éé \u3000日本テ 12345 $~\r\n\n  x\u0301".encode())


def samplers():
    r = random.Random(7)
    for i in range(6):
        save("sample", f"options-{i}", bytes([i, i % 6]) + bytes(r.randrange(256) for _ in range(60)))


if __name__ == "__main__":
    models()
    templates()
    texts()
    vocabularies()
    samplers()
