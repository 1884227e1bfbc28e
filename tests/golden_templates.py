"""Chat templates by the command line: renders byte for byte, errors, hostile templates within a second and 64 MiB (golden/templates/README.md)."""
import json
import os
import re
import subprocess
import sys

import pytest

import drive

NOW = ("--now", "2026-01-02T03:04:05")
FOLDER = drive.golden("templates")
CACHE = drive.fetch("vocab", "smollm2")
TEXTS = os.path.abspath(os.environ.get("PINCH_TEMPLATES") or os.path.join(CACHE, "template-texts"))
MARK = "CONTINUE_FINAL_MESSAGE_TAG "  # spec/chat-templates.md section 7


def collect():
    """Writes the templates' texts once for all test processes."""
    with drive.Lock(os.path.join(CACHE, "lock")):
        wanted = {t["name"] for t in drive.load(os.path.join(FOLDER, "index.json"))}
        if not os.path.isdir(TEXTS) or any(not os.path.exists(os.path.join(TEXTS, n + ".jinja")) for n in wanted):
            os.makedirs(TEXTS, exist_ok=True)
            subprocess.run([sys.executable, os.path.join(FOLDER, "collect.py"), CACHE, TEXTS], stdout=subprocess.DEVNULL)
    return sorted(n for n in wanted if os.path.exists(os.path.join(TEXTS, n + ".jinja")))


NAMES = collect()
CONVERSATIONS = {c["id"]: c for c in drive.load(os.path.join(FOLDER, "conversations.json"))}


def render(template, context):
    """-> bytes, or raises drive.Failed."""
    with drive.temporary_file(json.dumps(context).encode(), ".json") as f:
        return drive.pinch("template", "--template", template, "--input", f.name, *NOW, timeout=20)


def render_conversation(template, conversation):
    if not conversation.get("continue"):
        return render(template, conversation["context"]).decode()
    context = json.loads(json.dumps(conversation["context"]))
    context["messages"][-1]["content"] += MARK
    text = render(template, context).decode()
    if MARK.strip() not in text:
        raise drive.Failed(["template"], 1, "the final message does not appear in the rendered text")
    cut = text.rindex(MARK.strip())
    return text[:cut] if text[cut:cut + len(MARK)] == MARK else text[:cut].rstrip()


def check(row, rendered):
    """Compares one row of expectations with what `rendered()` gives."""
    text = row.get("text_if_mutable", row.get("text"))
    try:
        ours = rendered()
    except drive.Failed as e:
        assert e.status == 1 and e.stderr.strip(), f"status {e.status} without a sentence"
        assert text is None, f"failed: {e}"
        assert row["error"] != "raise_exception" or row["message"] in e.stderr
        return
    assert text is not None, f"the reference fails ({row['error']}: {row.get('message')}), we gave {ours[:200]!r}"
    assert ours == text


def failures(rows, label):
    found = []
    for row, rendered in rows:
        try:
            check(row, rendered)
        except AssertionError as e:
            found.append(f"{row[label]}: {str(e)[:300]}")
    return found


def test_all_templates_were_collected():
    assert len(NAMES) == len(drive.load(os.path.join(FOLDER, "index.json")))


@pytest.mark.parametrize("name", NAMES)
def test_template(name):
    template = os.path.join(TEXTS, name + ".jinja")
    rows = drive.load_lines(os.path.join(FOLDER, f"expect_{name}.jsonl"))
    found = failures([(row, lambda row=row: render_conversation(template, CONVERSATIONS[row["c"]])) for row in rows], "c")
    assert not found, f"{len(found)} of {len(rows)}:\n" + "\n".join(found[:8])


def printable(text):
    """A lone surrogate has no UTF-8 and shows as U+FFFD, in an escape too."""
    text = re.sub("[\ud800-\udfff]", "\ufffd", text)
    return re.sub(r"\\ud[89ab]..(?!\\ud[c-f])|(?<!\\ud[89ab]..)\\ud[c-f]..", r"\\ufffd", text)


@pytest.mark.parametrize("group", sorted({u["group"] for u in drive.load_lines(os.path.join(FOLDER, "units.jsonl"))}))
def test_units(group):
    units = [u for u in drive.load_lines(os.path.join(FOLDER, "units.jsonl")) if u["group"] == group]

    def rendered(unit):
        with drive.temporary_file(unit["template"].encode("utf-8", "surrogatepass"), ".jinja") as f:
            return render(f.name, unit["context"]).decode("utf-8", "replace")

    rows = []
    for unit in units:
        unit = {**unit, **{k: printable(unit[k]) for k in ("text", "text_if_mutable") if k in unit}}
        rows.append((unit, lambda unit=unit: rendered(unit)))
    found = failures(rows, "id")
    assert not found, f"{len(found)} of {len(rows)}:\n" + "\n".join(found[:8])


@pytest.mark.parametrize("row", drive.load_lines(os.path.join(FOLDER, "hostile.jsonl")), ids=lambda r: r["id"])
def test_hostile(row):
    source = "".join(p if isinstance(p, str) else p[0] * p[1] for p in row["parts"])
    with drive.temporary_file(source.encode("utf-8", "surrogatepass")) as f, drive.temporary_file(json.dumps(row.get("context", {})).encode()) as c, \
            drive.temporary_file() as out, drive.temporary_file() as err:
        status, seconds, kib = drive.measured([drive.PINCH, "template", "--template", f.name, "--input", c.name, *NOW], out, err)
        text, sentence = drive.load_bytes(out.name).decode("utf-8", "replace"), drive.load_bytes(err.name)
    assert status in (0, 1), f"status {status}: {sentence[-500:]}"
    assert seconds < 1 and kib < 64 << 10, f"{seconds:.2f} s of processor time, {kib} KiB"
    if status == 1:
        assert sentence.strip()
    else:
        assert row["expect"] == "error or text" and row.get("text") in (None, text)
