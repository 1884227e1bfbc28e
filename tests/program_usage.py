"""The command line as a person meets it: help, examples, slips, statuses, what goes to standard output and what does not."""
import json
import os
import pty
import re
import shutil
import signal
import subprocess

import pytest

import drive

MODEL = os.path.join(drive.ROOT, "tests/golden/llama-f32/model.gguf")
COMMANDS = ["run", "chat", "bench", "perplexity", "info", "check", "tokenize", "detokenize", "template", "logits"]
TEXT = "the cat sat on the mat, and the rain in spain fell on the plain. " * 40


def pinch(*args, stdin=b"", **more):
    return subprocess.run([drive.PINCH, *map(str, args)], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, **more)


def refused(status, *args):
    """One sentence on standard error, nothing on standard output."""
    p = pinch(*args)
    assert p.returncode == status, p
    assert p.stdout == b"" and len(p.stderr.splitlines()) == 1, p
    return p.stderr.decode()


# ---- slips ----

def test_no_command_shows_the_commands():
    p = pinch()
    assert p.returncode == 2 and p.stdout == b""
    assert all(f"\n  {c} " in p.stderr.decode() for c in COMMANDS)


@pytest.mark.parametrize("slip, meant", [("rn", "run"), ("chta", "chat"), ("infos", "info"), ("perplexty", "perplexity")])
def test_unknown_command_names_the_nearest(slip, meant):
    assert f"did you mean {meant}?" in refused(2, slip)


def test_a_word_far_from_all_commands():
    assert "did you mean" not in refused(2, "xyzzyplugh")


@pytest.mark.parametrize("command, slip, meant", [
    ("run", "--tmp", "--temp"), ("run", "--temprature", "--temperature"), ("run", "--top_k", "--top-k"), ("run", "--repeat-penlaty", "--repeat-penalty"), ("chat", "--sytem-prompt", "--system-prompt"),
    ("bench", "--repetition", "--repetitions"), ("tokenize", "--no-bso", "--no-bos"), ("perplexity", "--al", "--all"), ("logits", "--token", "--tokens"), ("template", "--imput", "--input")])
def test_unknown_option_names_the_nearest(command, slip, meant):
    assert f"unknown option {slip}; did you mean {meant}?" in refused(2, command, slip, "1")


@pytest.mark.parametrize("command, option", [("tokenize", "-t"), ("check", "-c"), ("template", "-ctv")])
def test_an_option_of_other_letters_is_no_slip(command, option):
    assert "did you mean" not in refused(2, command, option)


@pytest.mark.parametrize("args, sentence", [
    (["run"], "-m FILE is missing"),
    (["run", "-m"], "-m wants a value: -m FILE"),
    (["run", "-m", MODEL], "what shall be continued?"),
    (["run", "-m", MODEL, "-p", "a", "-f", "b"], "what shall be continued?"),
    (["run", "word"], "takes options only"),
    (["run", "-n", "many"], "-n many: a whole number"),
    (["run", "-n", "12x"], "-n 12x: a whole number"),
    (["run", "-n", ""], "-n : a whole number"),
    (["run", "-c", "0"], "-c 0: a whole number from 1 to"),
    (["run", "-c", "99999999999999999999"], "-c 99999999999999999999: a whole number"),
    (["run", "-t", "65"], "-t 65: a whole number from 1 to 64"),
    (["run", "--temp", "warm"], "--temp warm: a number is wanted"),
    (["run", "--temp", "0,8"], "--temp 0,8: a number is wanted"),
    (["run", "--seed", "-2"], "-s -2: -1 or a whole number"),
    (["run", "-ctk", "q4_0"], "-ctk q4_0: f32, f16 or q8_0 is wanted"),
    (["run", "--spec", "guess"], "--spec guess: none, lookup or mtp is wanted"),
    (["run", "--spec", "look:3"], "--spec look:3: none, lookup or mtp is wanted"),
    (["run", "--spec", "lookup:8"], "N is 8: a whole number from 1 to 7"),
    (["chat", "--spec", "lookup:"], "a whole number from 1 to 7"),
    (["run", "--json=yes"], "--json takes no value"),
    (["run", "-m", MODEL, "-p", "a", "--logit-bias", "five"], "--logit-bias five"),
    (["run", "-m", MODEL, "-p", "a", "--logit-bias", "99999+1"], "names token 99999"),
    (["run", "-m", MODEL, "-p", "a", "--top-p", "-1"], "top_p is -1.0"),
    (["logits", "-m", MODEL], "--tokens FILE and -o FILE"),
    (["perplexity", "-m", MODEL], "-f FILE is missing"),
    (["template"], "which template?"),
    (["template", "--template", "x", "--now", "2026-02-30T00:00:00"], "--now 2026-02-30T00:00:00"),
    (["bench", "-m", MODEL, "-p", "0", "-n", "0"], "nothing to measure"),
    (["bench", "-m", MODEL, "--csv", "--json"], "exclude each other"),
])
def test_misuse_is_told_in_a_sentence(args, sentence):
    assert sentence in refused(2, *args)


@pytest.mark.parametrize("args, sentence", [
    (["run", "-m", "absent.gguf", "-p", "a"], "absent.gguf"),
    (["run", "-m", MODEL, "-f", "absent.txt"], "absent.txt: cannot be opened"),
    (["run", "-m", MODEL, "--kernel", "f32=absent", "-p", "a"], "absent"),
    (["run", "-m", MODEL, "-p", "a", "--spec", "mtp"], "architecture 'llama' has no block that drafts tokens"),
    (["logits", "-m", MODEL, "--mtp", "--tokens", "-", "-o", os.devnull], "architecture 'llama' has no block that drafts tokens"),
    (["detokenize", "-m", MODEL, "--tokens", MODEL], "not a token id"),
    (["check", "--kernel", "absent"], "no kernel of this build"),
    (["template", "--template", os.devnull, "--input", MODEL], "line 1"),
])
def test_failures_are_told_in_a_sentence(args, sentence):
    assert sentence in refused(1, *args)


def test_an_unknown_tokenizer_is_told_once(tmp_path):
    model = tmp_path / "model.gguf"
    model.write_bytes(drive.load_bytes(MODEL).replace(b"gpt2", b"bert", 1))
    for command in ["tokenize"], ["run", "-p", "the cat", "-n", 1]:
        assert 'no tokenizer "bert"' in refused(1, *command, "-m", model)
    p = pinch("info", "-m", model)
    assert p.returncode == 0 and p.stderr == b"" and b'no tokenizer "bert"' in p.stdout


# ---- help ----

@pytest.mark.parametrize("command", COMMANDS)
def test_help(command):
    p = pinch(command, "--help")
    assert p.returncode == 0 and p.stderr == b""
    text = p.stdout.decode()
    assert text == pinch("help", command).stdout.decode() == pinch(command, "-h").stdout.decode()
    assert text.startswith(f"pinch {command}: ") and "\nExamples\n" in text
    assert max(map(len, text.split("\nExamples\n")[0].splitlines())) <= 100
    options = re.findall(r"^  (-\S+)", text, re.M)
    assert "-h," in options and len(options) == len(set(options))


def examples():
    if not os.path.exists(drive.PINCH):
        return []
    found = []
    for command in COMMANDS:
        text = subprocess.run([drive.PINCH, command, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout.split("\nExamples\n")[1]
        found += [line.strip() for line in text.splitlines() if not line.startswith("  #")]
    return found


@pytest.mark.parametrize("example", examples())
def test_an_example_runs_as_printed(example, tmp_path):
    shutil.copyfile(MODEL, tmp_path / "model.gguf")
    os.symlink(drive.PINCH, tmp_path / "pinch")
    (tmp_path / "text.txt").write_text(TEXT[:800].replace(", ", "\n") + "\n")
    (tmp_path / "tokens.txt").write_text("1, 265 284\n275\n")
    (tmp_path / "template.jinja").write_text("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")
    (tmp_path / "chat.json").write_text('{"messages": [{"role": "user", "content": "Hello"}]}')
    p = subprocess.run(["sh", "-c", example], cwd=tmp_path, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=120)
    assert p.returncode == 0 and p.stderr == b"", p
    if "--json" in example:
        for line in p.stdout.splitlines():
            json.loads(line)


# ---- output ----

def test_data_goes_to_standard_output_and_nothing_else_on_a_pipe():
    p = pinch("run", "-m", MODEL, "-p", "the cat", "-n", 8, "--temp", 0, "--ignore-eos")
    out = drive.pinch_json("run", "-m", MODEL, "-p", "the cat", "-n", 8, "--temp", 0, "--ignore-eos")
    assert p.returncode == 0 and p.stderr == b"" and p.stdout.decode("utf-8", "replace") == out["text"]
    assert len(out["ids"]) == 8 and out["stop"] == "length"
    assert set(out) >= {"prompt_tokens", "ids", "text", "stop", "timings", "memory"}
    assert set(out["timings"]) >= {"load_ms", "prompt_ms", "first_token_ms", "generate_ms", "prompt_tps", "tps"}
    assert set(out["memory"]) >= {"plan_bytes", "peak_bytes"}


def test_long_work_is_silent_on_a_pipe():
    with drive.temporary_file((TEXT * 30).encode(), ".txt") as f:
        p = pinch("perplexity", "-m", MODEL, "-f", f.name, "-c", 512)
    assert p.returncode == 0 and p.stderr == b"" and p.stdout.startswith(b"perplexity ")


def on_a_terminal(*args):
    """-> standard error, which is a terminal, and standard output, which is not."""
    master, slave = pty.openpty()
    p = subprocess.Popen([drive.PINCH, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=slave, env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"})
    os.close(slave)
    seen, open_end = b"", True
    while open_end:
        try:
            data = os.read(master, 65536)
        except OSError:
            data = b""
        seen, open_end = seen + data, bool(data)
    out, _ = p.communicate(timeout=60)
    os.close(master)
    assert p.returncode == 0, seen
    return seen, out


def test_long_work_shows_progress_on_a_terminal():
    with drive.temporary_file((TEXT * 60).encode(), ".txt") as f:
        seen, out = on_a_terminal("perplexity", "-m", MODEL, "-f", f.name, "-c", 512)
    assert re.search(rb"\rperplexity +\d+ %", seen) and b"%" not in out and b"\033[" not in seen
    assert re.search(rb" \r\d+\.\d tokens/s\r\n$", seen), seen[-100:]


def test_short_work_shows_none():
    seen, out = on_a_terminal("run", "-m", MODEL, "-p", "the cat", "-n", 4)
    assert b"%" not in seen and seen.startswith(b"prompt: 4 tokens")


def run_ids(*options):
    return drive.pinch_json("run", "-m", MODEL, "-p", "the cat", "-n", 20, "--ignore-eos", *options)["ids"]


def test_a_seed_gives_the_same_text():
    assert run_ids("--seed", 7) == run_ids("-s", "7") == run_ids("--seed=7")
    assert run_ids("--seed", 7) != run_ids("--seed", 8)
    assert run_ids() != run_ids()


def test_logit_bias():
    assert run_ids("--logit-bias", "33+1000") == [33] * 20
    greedy = run_ids("--temp", 0)
    assert greedy[0] not in run_ids("--temp", 0, "--logit-bias", f"{greedy[0]}-inf")


def test_prompt_forms_agree(tmp_path):
    (tmp_path / "text").write_bytes(b"a\tb\n")
    ids = drive.pinch_json("tokenize", "-m", MODEL, "-f", tmp_path / "text")["ids"]
    (tmp_path / "ids").write_text(",\n".join(map(str, ids)))
    wanted = ["-n", 5, "--temp", 0, "--ignore-eos"]
    forms = [["-f", tmp_path / "text"], ["-p", "a\tb\n"], ["-e", "-p", "a\\tb\\n"], ["-e", "-p", "\\x61\\t\\x62\\n"], ["--prompt-tokens", tmp_path / "ids"]]
    outs = [drive.pinch_json("run", "-m", MODEL, *form, *wanted) for form in forms]
    assert all(o["ids"] == outs[0]["ids"] and o["prompt_tokens"] == len(ids) for o in outs)
    assert drive.pinch_json("run", "-m", MODEL, "-f", "-", *wanted, stdin=b"a\tb\n")["ids"] == outs[0]["ids"]


def test_a_stop_ends_before_its_text():
    text = drive.pinch_json("run", "-m", MODEL, "-p", "the cat", "-n", 40, "--logit-bias", "265+1000", "--stop", "hethe")
    assert text["stop"] == "string" and text["text"] == "t"


def test_a_prompt_cache(tmp_path):
    """Written once, read by prompts that begin alike, replaced when damaged; never another text."""
    kept = tmp_path / "state.bin"
    run = ("run", "-m", MODEL, "-n", 12, "--temp", 0, "-p")
    for prompt in TEXT[:300], TEXT[:300], TEXT[:400], TEXT[:100]:
        assert drive.pinch_json(*run, prompt, "--prompt-cache", kept)["ids"] == drive.pinch_json(*run, prompt)["ids"]
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2])
    assert drive.pinch_json(*run, TEXT[:400], "--prompt-cache", kept)["ids"] == drive.pinch_json(*run, TEXT[:400])["ids"]
    assert kept.read_bytes() == whole and os.listdir(tmp_path) == ["state.bin"]


def test_csv_and_json_of_bench():
    rows = drive.pinch("bench", "-m", MODEL, "-p", 16, "-n", 4, "-d", 7, "-r", 2, "--csv").decode().splitlines()
    assert rows[0] == "test,repetition,position,tokens,milliseconds,tokens_per_second" and len(rows) == 1 + 2 * 5
    assert [r.split(",")[2] for r in rows[1:6]] == ["7", "7", "8", "9", "10"], "prompt and generation both begin at the depth"
    assert all(float(r.split(",")[4]) >= 0 for r in rows[1:])
    out = drive.pinch_json("bench", "-m", MODEL, "-p", 16, "-n", 4, "-r", 3)
    assert out["prompt"]["n"] == 16 and out["generate"]["n"] == 4
    for part in out["prompt"], out["generate"]:
        assert part["tps_min"] <= part["tps_p25"] <= part["tps_median"] <= part["tps_p75"] <= part["tps_max"]


def test_spec_changes_no_token_and_says_what_it_did():
    plain, drafted = (drive.pinch_json("run", "-m", MODEL, "-p", "the cat", "-n", 100, "--temp", 0, "--ignore-eos", *options) for options in ((), ("--spec", "lookup:4")))
    assert drafted["ids"] == plain["ids"] and len(plain["ids"]) == 100
    assert plain["spec"] is None
    spec = drafted["spec"]
    assert spec["kind"] == "lookup" and 0 <= spec["accepted"] <= spec["drafted"] and spec["drafted"] > 0 and spec["plain_token_ms"] > 0
    p = pinch("run", "-m", MODEL, "-p", "the cat", "-n", 8, "--temp", 0, "--ignore-eos", "--spec", "lookup")
    assert p.returncode == 0 and p.stderr == b"", "remarks are for terminals"


def memory_of_a_token(model):
    """-> what bench says, and the tensors by name, of weights that all lie as in the file."""
    options = ("-m", model, "--kernel", "f32=scalar")
    return drive.pinch_json("bench", *options, "-p", 4, "-n", 4, "-r", 2, "-t", 1, "--bandwidth"), {t["name"]: t for t in drive.pinch_json("info", *options)["tensors"]}


def matrices(tensors, part=""):
    return sum(t["bytes"] for name, t in tensors.items() if part in name and len(t["shape"]) > 1 and "conv1d" not in name and "ssm_a" not in name and "ssm_d" not in name and "norm" not in name)


def test_bench_counts_the_bytes_of_a_token():
    """Matrices once, experts by the share used, one row of the embeddings; recurrent state read and written."""
    out, tensors = memory_of_a_token(MODEL)
    embedding = tensors["token_embd.weight"]
    assert out["token_weight_bytes"] == matrices(tensors) - embedding["bytes"] + embedding["shape"][0] * 4 and out["token_state_bytes"] == 0
    assert out["bandwidth_gbs"] > 0 and 0 < out["bandwidth_share"] < 2 and out["bandwidth_share_with_state"] == out["bandwidth_share"]
    out, tensors = memory_of_a_token(os.path.join(drive.golden("qwen3moe-f32"), "model.gguf"))
    meta = drive.pinch_json("info", "-m", os.path.join(drive.golden("qwen3moe-f32"), "model.gguf"))["metadata"]
    experts, embedding = matrices(tensors, "_exps"), tensors["token_embd.weight"]
    rest = matrices(tensors) - experts - embedding["bytes"] + embedding["shape"][0] * 4
    assert out["token_weight_bytes"] == rest + experts * meta["qwen3moe.expert_used_count"] // meta["qwen3moe.expert_count"]


def test_bench_counts_recurrent_state():
    model = os.path.join(drive.golden("granitehybrid-f32"), "model.gguf")
    out, tensors = memory_of_a_token(model)
    meta = {k.split(".", 1)[1]: v for k, v in drive.pinch_json("info", "-m", model)["metadata"].items() if k.startswith("granitehybrid.")}
    layers = sum("ssm_in" in name for name in tensors)
    channels = meta["ssm.inner_size"] + 2 * meta["ssm.group_count"] * meta["ssm.state_size"]
    heads = meta["ssm.time_step_rank"]
    strips = -(-meta["ssm.inner_size"] // heads // 16) * 16 * heads
    tail = -(-channels * (meta["ssm.conv_kernel"] - 1) // 16) * 16
    assert layers > 0 and out["token_state_bytes"] == 2 * 4 * layers * (tail + strips * meta["ssm.state_size"])
    assert out["bandwidth_share_with_state"] == pytest.approx(out["bandwidth_share"] * (1 + out["token_state_bytes"] / out["token_weight_bytes"]))


def test_json_of_logits_says_their_shape(tmp_path):
    for options, rows in ([], 3), (["--last"], 1):
        out = tmp_path / "logits"
        shape = drive.pinch_json("logits", "-m", MODEL, "--tokens", "-", "-o", out, *options, stdin=b"1 5 6")
        assert shape == {"tokens": 3, "rows": rows, "n_vocab": 320} and out.stat().st_size == rows * 320 * 4
    raw = drive.pinch("logits", "-m", MODEL, "--tokens", "-", "-o", "-", "--json", stdin=b"1 5 6")
    assert len(raw) == 3 * 320 * 4, "standard output holds the numbers alone"


def test_info():
    out = drive.pinch_json("info", "-m", MODEL)
    assert out["arch"] == "llama" and out["runs"] and out["kernels"]["f32"].startswith("f32_")
    assert out["params"] == sum(np_product(t["shape"]) for t in out["tensors"])
    assert out["metadata"]["llama.block_count"] == 3 and out["metadata"]["tokenizer.ggml.tokens"]["count"] == 320
    assert out["plan"]["total_bytes"] > 0


def np_product(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def test_the_plan_is_printed_and_grows_with_the_context():
    plans = [drive.pinch_json("run", "-m", MODEL, "-c", c, "--plan") for c in (128, 512)]
    assert plans[0]["kv"] < plans[1]["kv"] and plans[1]["n_ctx"] == 512
    assert pinch("run", "-m", MODEL, "--plan").stdout.startswith(b"memory for a context of")


def test_a_context_beyond_what_the_model_was_trained_for_is_told():
    def remarks(context):
        return pinch("run", "-m", MODEL, "-p", "the cat", "-n", 1, "-c", context, "-v").stderr.decode()
    trained = drive.pinch_json("info", "-m", MODEL)["metadata"]["llama.context_length"]
    assert f"longer than the {trained} that the model was trained for" in remarks(trained + 1) and "longer" not in remarks(trained)


@pytest.mark.parametrize("batch", [1, 64, 256])
@pytest.mark.parametrize("name", ["llama-f32", "llama-mix32", "qwen3-q4km", "gemma3-q8"])
def test_the_peak_stays_within_the_plan(name, batch):
    model = os.path.join(drive.ROOT, "tests/golden", name, "model.gguf")
    for context in (40, 1024):  # the program and little else; full batches and a full cache
        out = drive.pinch_json("run", "-m", model, "-p", "the cat " * (context // 8), "-n", context, "-c", context, "-b", batch, "--temp", 0, "--ignore-eos")
        assert out["stop"] == "length" and out["memory"]["peak_bytes"] <= out["memory"]["plan_bytes"] * 1.02


# ---- signals ----

@pytest.mark.parametrize("options", [[], ["--json"]])
def test_control_c_ends_a_run_with_130(options):
    p = subprocess.Popen([drive.PINCH, "run", "-m", MODEL, "-p", "the cat", "-c", "200000", "--ignore-eos", *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if options:
        with pytest.raises(subprocess.TimeoutExpired):
            p.wait(1)
    else:
        assert p.stdout.read(1)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=20)
    assert p.returncode == 130 and err == b"", (p.returncode, err)
    if options:
        assert json.loads(out)["stop"] == "abort"


@pytest.mark.parametrize("kernels", ["q", "mul"])  # among kernels, among operations
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_control_c_ends_the_proofs_with_130(kernels, options):
    p = subprocess.Popen([drive.PINCH, "check", "--kernel", kernels, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.stdout.read(1)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=20)
    assert p.returncode == 130 and err == b"", (p.returncode, err)


def test_a_reader_that_leaves_ends_the_program():
    p = subprocess.Popen([drive.PINCH, "run", "-m", MODEL, "-p", "the cat", "-c", "200000", "--ignore-eos"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.read(1)
    p.stdout.close()
    assert p.wait(20) in (1, -signal.SIGPIPE)


# ---- make demo ----

def test_a_damaged_model_of_the_demo_is_not_used(tmp_path):
    (tmp_path / "pinch").mkdir()
    (tmp_path / "pinch/smollm2-135m-instruct-q4_1.gguf").write_bytes(b"GGUF, cut short")
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PINCH_PIP_ARGS": "--no-index"}
    p = subprocess.run(["sh", os.path.join(drive.ROOT, "tools/demo.sh"), drive.PINCH], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    assert p.returncode == 1 and p.stdout == b"" and b"make demo: cannot fetch" in p.stderr
