"""Nineteen public vocabularies over the hostile corpus, by the command line (golden/README.md section 3).

Every id of every string; bytes back for a part of the strings (one process each; PINCH_LONG=1: all)."""
import base64
import functools
import json
import os

import pytest

import drive

FOLDER = drive.golden("tokenizers")
CACHE = drive.fetch("vocab", "smollm2", "gemma3")
NOT_COUNTED = {"bert-bge", "nomic-bert-moe"}  # WordPiece and unigram: embedding models
VOCABS = sorted(n[4:-5] for n in os.listdir(FOLDER) if n.startswith("ids_") and n[4:-5] not in NOT_COUNTED)
every_vocab = pytest.mark.parametrize("name", VOCABS)


@functools.lru_cache(maxsize=None)
def corpus():
    with open(os.path.join(FOLDER, "corpus.jsonl"), "rb") as f:
        return f.read()


@functools.lru_cache(maxsize=1)
def expect(name):
    want = drive.load(os.path.join(FOLDER, f"ids_{name}.json"))
    places = [os.path.join(CACHE, folder, want["file"]) for folder in ("vocab", "")]
    return want, next(p for p in places if os.path.exists(p))


def strings():
    rows = [json.loads(line) for line in corpus().splitlines()]
    return {row["id"]: base64.b64decode(row["b64"]) for row in rows}


def encode(path, *options):
    lines = drive.pinch("tokenize", "-m", path, "--jsonl", *options, stdin=corpus()).splitlines()
    return {row["id"]: row["ids"] for row in map(json.loads, lines)}


@every_vocab
@pytest.mark.parametrize("form", ["plain", "special"])
def test_ids(name, form):
    want, path = expect(name)
    ours = encode(path, *(["--add-special", "--parse-special"] if form == "special" else []))
    assert len(ours) == len(corpus().splitlines())
    wrong = []
    for key, case in want["cases"].items():
        if "reference_dies" in case:
            continue
        ids = case["plain"] if form == "plain" or case["special"] == "=" else case["special"]
        if ours[key] != ids:
            wrong.append(key)
    assert not wrong, f"{len(wrong)} of {len(want['cases'])}: {wrong[:10]}"


@every_vocab
def test_bytes_back(name):
    want, path = expect(name)
    text = strings()
    for at, (key, case) in enumerate(want["cases"].items()):
        if "reference_dies" in case or (at % 16 and not drive.LONG):
            continue
        special = case["plain"] if case["special"] == "=" else case["special"]
        for ids, field, options in (case["plain"], "text_plain", []), (special, "text_shown", ["--special"]):
            with drive.ids_file(ids) as f:
                ours = drive.pinch("detokenize", "-m", path, "--tokens", f.name, *options)
            assert ours == (base64.b64decode(case[field]) if field in case else text[key]), f"{key} {field}"


@every_vocab
def test_pieces(name):
    want, path = expect(name)
    text = strings()["en-1"]
    out = drive.pinch_json("tokenize", "-m", path, "--no-bos", "--no-parse-special", stdin=text)
    assert out["ids"] == want["cases"]["en-1"]["plain"] and len(out["pieces"]) == len(out["ids"])
