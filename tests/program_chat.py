"""Conversations through a pseudo-terminal, a dumb one and a pipe: commands, editing, Ctrl-C, Ctrl-D, colours."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

import drive

MODEL = os.path.join(drive.ROOT, "tests/golden/llama-f32/model.gguf")
PROMPT = b"> "


class Chat:
    """A chat whose keyboard and screen are ours. `with Chat(...)` ends it, whatever happens."""

    def __init__(self, *options, term="xterm", no_color=True, shell=None):
        """`shell`: a bash script that runs the program as "$@"."""
        env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
        env.update({"TERM": term} if term else {})
        env.update({"NO_COLOR": "1"} if no_color else {})
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            command = [drive.PINCH, "chat", "-m", MODEL, "--seed", "3", *options]
            command = ["/bin/bash", "-c", shell, "chat", *command] if shell else command
            os.execve(command[0], command, env)
        self.screen = self.raw = b""
        self.status = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def read(self, timeout):
        """False at the end."""
        if select.select([self.fd], [], [], timeout)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return False
            self.raw += data
            self.screen = re.sub(rb"\033\[[0-9;?]*[A-Za-ln-z]", b"", self.screen + data) # all but colours
            return bool(data)
        return True

    def wait(self, what, timeout=20):
        """Reads until `what` (a regular expression) is on the screen; returns and forgets what came up to it."""
        end = time.monotonic() + timeout
        while True:
            hit = re.search(what, self.screen, re.S)
            if hit:
                seen, self.screen = self.screen[:hit.end()], self.screen[hit.end():]
                return seen
            assert time.monotonic() < end and self.read(0.2), f"no {what!r} in {self.screen!r}"

    def type(self, text):
        os.write(self.fd, text.encode() if isinstance(text, str) else text)

    def say(self, line):
        self.type(line + "\r")

    def settle(self, seconds=0.3):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.read(0.05):
            pass
        seen, self.screen = self.screen, b""
        return seen

    def end(self):
        """-> exit status."""
        for _ in range(200):
            if not self.read(0.1):
                break
        _, status = os.waitpid(self.pid, 0)
        self.status = os.waitstatus_to_exitcode(status)
        return self.status


def system_text(chat):
    chat.settle()
    chat.say("/system")
    return chat.wait(rb"/system\s*\n(.*?)\r\n")


@pytest.mark.parametrize("term", ["xterm", "dumb", None])
def test_a_conversation(term):
    with Chat("-n", "6", term=term) as chat:
        chat.wait(rb"/help shows")
        chat.wait(PROMPT)
        chat.say("/help")
        chat.wait(rb"/undo +takes")
        chat.say("the cat")
        chat.wait(rb"the cat.*\n.*> ")
        chat.settle()
        chat.say("/stats")
        chat.wait(rb"2 messages, \d+ of 512 tokens")
        chat.wait(rb"seed 3")
        chat.say("/undo")
        chat.wait(rb"\(taken back\)")
        chat.say("/undo")
        chat.wait(rb"\(there is nothing to take back\)")
        chat.say("/reste")
        chat.wait(rb"did you mean /reset")
        chat.say("/system be brief")
        chat.wait(rb"\(set;")
        assert b"be brief" in system_text(chat)
        chat.say("/reset")
        chat.wait(rb"\(forgotten\)")
        chat.settle()
        chat.say("/exit")
        assert chat.end() == 0


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_control_d_leaves(term):
    with Chat(term=term) as chat:
        chat.wait(PROMPT)
        chat.settle()
        chat.type(b"\x04")
        assert chat.end() == 0


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_control_c_stops_the_answer_and_not_the_program(term):
    with Chat("-c", "200000", "--logit-bias", "2-inf", "--logit-bias", "5-inf", term=term) as chat:
        chat.wait(PROMPT)
        chat.settle()
        chat.say("the cat")
        chat.wait(rb"the cat\s")
        chat.settle(1)
        chat.type(b"\x03")
        chat.wait(rb"\(stopped\)")
        chat.settle()
        chat.say("/stats")
        chat.wait(rb"2 messages")
        chat.settle()
        chat.type(b"abandoned\x03")
        chat.wait(rb"\(Ctrl-D leaves\)")
        chat.settle()
        chat.say("/stats")
        chat.wait(rb"2 messages")
        chat.settle()
        chat.type(b"\x04")
        assert chat.end() == 0


def test_a_remark_does_not_break_the_line_of_an_answer():
    """Drafts of random weights are soon given up, and that is told behind the answer."""
    def answer(*options):
        with Chat("-m", drive.golden("qwen35-mtp", "model.gguf"), "-n", "300", "--temp", "0", "--logit-bias", "2-inf", "--logit-bias", "5-inf", *options, term="dumb") as chat:
            chat.wait(PROMPT)
            chat.settle()
            chat.say("the cat")
            chat.wait(rb"the cat\r\n")
            return chat.wait(rb"\r\n> ")
    assert re.sub(rb"\r\n\(drafts are given up: [^\r]*\)", b"", answer("--spec", "mtp")) == answer()


@pytest.mark.parametrize("keys, text", [
    (b"/system acb\x1b[D\x7f\x1b[Cd\r", b"abd"),                        # left, backspace, right
    (b"cde\x01/system ab\x05f\r", b"abcdef"),                          # Ctrl-A, Ctrl-E
    (b"/system one two\x17three\r", b"one three"),                     # Ctrl-W
    (b"nonsense\x15/system clean\r", b"clean"),                        # Ctrl-U
    (b"/system end tail\x1b[D\x1b[D\x1b[D\x1b[D\x1b[D\x0b\r", b"end"), # Ctrl-K
    (b"/system a\xc3\xa9\xe6\xbc\xa2\x1b[D\x1b[D\x7fe\r", "eé漢".encode()[0:1] + "é漢".encode()),  # whole characters
    (b"/system x\xf0\x9f\x98\x80y\x1b[D\x7f\r", b"xy"),                # an emoji is erased at once
    (b"\x1b[Hsystem home\x1b[1~/\r", b"home"),                         # Home
    (b"/system del\x1b[D\x1b[D\x1b[3~\r", b"dl"),                      # Delete
    (b"/system known\r\x1b[A\x1b[A\x1b[B\r", b"known"),                # history
])
def test_the_line_editor(keys, text):
    with Chat() as chat:
        chat.wait(PROMPT)
        chat.settle()
        chat.type(keys)
        chat.wait(rb"\(set;")
        assert text + b"\r\n" in system_text(chat)


def test_messages_of_several_lines():
    with Chat("-n", "2") as chat:
        chat.wait(PROMPT)
        chat.say("/system first\\")
        chat.wait(rb"\. ")
        chat.say("second")
        chat.wait(rb"\(set;")
        chat.settle()
        chat.say("/system")
        chat.wait(rb"first\r\nsecond\r\n")
        chat.say('"""')
        chat.say("/stats is text here")
        chat.say('"""')
        chat.wait(rb"is text here")
        chat.settle(1)
        assert b"messages" not in chat.screen
        chat.say("/exit")
        assert chat.end() == 0


@pytest.mark.parametrize("pasted, text", [
    (b"one\rtwo\rthree", b"one\r\ntwo\r\nthree"),             # as terminals send newlines
    (b"one\r\ntwo\nthree", b"one\r\ntwo\r\nthree"),         # and as programs may
    (b"if x:\r\treturn \\\r\"\"\"\r", b"if x:\r\n\treturn \\\r\n\"\"\"\r\n"), # a tab, a backslash, a fence: text
    (b"a\x1b[31mb\x07\x00\x7fc\x1b[20", b"a[31mbc[20"),      # controls are dropped, half a mark is text
    (b"x" * 5000 + b"\r" + b"y" * 5000, b"x" * 5000 + b"\r\n" + b"y" * 5000),
])
def test_pasted_lines_are_one_message(pasted, text):
    with Chat() as chat:
        chat.wait(PROMPT)
        chat.settle()
        chat.type(b"/system <>\x1b[D\x1b[200~" + pasted + b"\x1b[201~")
        seen = chat.settle()
        assert b"\n" not in seen, "one row while it is edited"
        chat.type(b"\r")
        chat.wait(rb"\(set;")
        assert b"\n<" + text + b">\r\n" in system_whole(chat, b">\r\n")


def system_whole(chat, last):
    """What /system shows, up to `last`."""
    chat.settle()
    chat.say("/system")
    return chat.wait(rb"/system\s*\n.*?" + re.escape(last))


def test_a_pasted_message_is_shown_in_lines_and_remembered():
    with Chat() as chat:
        chat.wait(PROMPT)
        chat.settle()
        chat.type(b"\x1b[200~/system one\rtwo\x1b[201~")
        chat.wait("one\u21b5two".encode())
        chat.type(b"\r")
        chat.wait(rb"> /system one\r\n  two\r\n.*\(set;")
        chat.settle()
        chat.type(b"\x1b[A\x17three\r") # history, Ctrl-W
        chat.wait(rb"\(set;")
        assert b"\none\r\nthree\r\n" in system_whole(chat, b"three\r\n")


def test_a_paste_is_asked_for_only_while_a_line_is_read():
    with Chat("-n", "2") as chat:
        chat.wait(PROMPT)
        chat.say("the cat")
        chat.wait(rb"the cat.*\n.*> ")
        chat.settle()
        chat.type(b"half\x03")
        chat.wait(rb"\(Ctrl-D leaves\)")
        chat.settle()
        chat.type(b"\x1b[200~lost\x03") # no end mark: Ctrl-C is still Ctrl-C
        chat.wait(rb"\(Ctrl-D leaves\)")
        chat.settle()
        chat.type(b"\x04")
        assert chat.end() == 0
        assert re.findall(rb"\033\[\?2004[hl]", chat.raw) == [b"\033[?2004h", b"\033[?2004l"] * 4
    for options in {"term": "dumb"}, {"term": None}:
        with Chat(**options) as chat:
            chat.wait(PROMPT)
            chat.settle()
            chat.type(b"\x04")
            assert chat.end() == 0 and b"2004" not in chat.raw
    assert b"2004" not in piped(b"the cat\n")[1]


@pytest.mark.parametrize("stop", [lambda chat, pid: chat.type(b"\x1a"), lambda chat, pid: os.kill(pid, signal.SIGTSTP)], ids=["key", "signal"])
def test_a_stopped_program_leaves_the_terminal_as_it_was(stop):
    with Chat(shell='set -m; echo "($$)"; stty -a | md5sum; "$@"; echo STOPPED; stty -a | md5sum; read -r; fg; echo "status $?"') as chat:
        before = re.findall(rb"[0-9a-f]{32}", chat.wait(PROMPT))
        chat.settle()
        chat.type("/system ab")
        chat.settle()
        stop(chat, child_of(chat.pid))
        after = re.findall(rb"[0-9a-f]{32}", chat.wait(rb"STOPPED.*?  -"))
        assert before == after and chat.raw.rstrip().rpartition(b"\033[?2004")[2].startswith(b"l")
        chat.settle()
        chat.type("\r")
        chat.wait(rb"> /system ab")
        chat.say("c")
        chat.wait(rb"\(set;")
        assert b"abc\r\n" in system_text(chat)
        chat.settle()
        chat.type(b"\x04")
        chat.wait(rb"status 0")


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return int(f.read().split()[0])


def test_a_program_that_is_ended_leaves_the_terminal_as_it_was():
    with Chat(shell='stty -a | md5sum; "$@"; echo "status $?"; stty -a | md5sum') as chat:
        chat.wait(PROMPT)
        chat.settle()
        os.kill(child_of(chat.pid), signal.SIGTERM)
        chat.wait(rb"status 143.*  -")
        sums = re.findall(rb"[0-9a-f]{32}", chat.raw)
        assert len(sums) == 2 and sums[0] == sums[1] and chat.raw.count(b"\033[?2004h") == chat.raw.count(b"\033[?2004l") == 1


def test_a_long_line_stays_on_one_row():
    with Chat() as chat:
        chat.wait(PROMPT)
        chat.settle()
        chat.type("/system " + "abcdefghij" * 30)
        seen = chat.settle(0.5)
        assert b"\n" not in seen and all(len(row) <= 110 for row in seen.split(b"\r"))
        chat.type("\r")
        chat.wait(rb"\(set;")
        assert b"abcdefghij" * 30 in system_text(chat)


@pytest.mark.parametrize("term, no_color, colours", [("xterm", False, True), ("xterm", True, False), ("dumb", False, False)])
def test_colours(term, no_color, colours):
    with Chat(term=term, no_color=no_color) as chat:
        chat.wait(rb">")
        chat.settle()
        chat.type(b"\x04")
        assert chat.end() == 0
    with Chat(term=term, no_color=no_color) as chat:
        assert (re.search(rb"\033\[[0-9;]*m", chat.settle(0.5)) is not None) == colours


# ---- from a pipe ----

def piped(lines, *options):
    p = subprocess.run([drive.PINCH, "chat", "-m", MODEL, "-n", "6", "--seed", "3", *options], input=lines, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    return p.returncode, p.stdout, p.stderr


def test_a_pipe_sees_answers_only():
    status, out, err = piped(b"the cat\n")
    assert status == 0 and err == b"" and out and PROMPT not in out[:2] and b"\033[" not in out
    assert piped(b"the cat") == (status, out, err) == piped(b"the cat\r\n")
    assert piped(b"") == (0, b"", b"") == piped(b"\n\n")


def test_json_answers():
    status, out, err = piped(b"the cat\nand then\n/undo\nand then\n", "--json")
    answers = [json.loads(line) for line in out.splitlines()]
    assert status == 0 and len(answers) == 3 and all(a["role"] == "assistant" and a["tokens"] <= 6 for a in answers)
    assert answers[0]["reused_tokens"] == 0 and answers[1]["reused_tokens"] > 0
    assert answers[1]["prompt_tokens"] == answers[2]["prompt_tokens"]


def test_the_first_message_may_be_an_option():
    assert piped(b"", "-p", "the cat")[1] == piped(b"the cat\n")[1]


def test_a_full_context_forgets_the_oldest_turns():
    status, out, err = piped(b"".join(b"%d " % i * 10 + b"\n" for i in range(12)), "--json", "-c", "256")
    assert status == 0 and len(out.splitlines()) == 12 and all(json.loads(line)["prompt_tokens"] <= 224 for line in out.splitlines())


def test_a_message_that_cannot_fit_is_refused():
    status, out, err = piped(b"word " * 400 + b"\n", "-c", "256")
    assert status == 1 and out == b"" and b"the context holds 256" in err
