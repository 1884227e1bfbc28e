"""Writes src/base/casemap_tables.h from Python's own character data (Python 3.11: Unicode 14.0).

  python3 tools/casemap.py > src/base/casemap_tables.h

What Python does with a single character is the definition: templates are rendered as Python renders them.
"""
import sys, unicodedata

LIMIT = 0x110000
SURROGATES = range(0xD800, 0xE000)
FLAGS = ["SPACE", "NAME_START", "NAME", "ALPHA", "DECIMAL", "DIGIT", "NUMERIC", "LOWER", "UPPER", "TITLE", "PRINTABLE", "IGNORABLE"]


def ignorable(c):
    """Case_Ignorable is not told, but the rule of the final sigma shows it: such a character is skipped on the way back to a cased one."""
    return ("A" + c + "\u03a3").lower().endswith("\u03c2") and (c + "\u03a3").lower().endswith("\u03c3")


def flags(c):
    has = [c.isspace(), c.isidentifier(), ("a" + c).isidentifier(), c.isalpha(), c.isdecimal(), c.isdigit(), c.isnumeric(), c.islower(), c.isupper(),
           unicodedata.category(c) == "Lt", c.isprintable(), ignorable(c)]
    return sum(1 << i for i, on in enumerate(has) if on)


def ranges(values):
    """[(start, value)] of the runs of equal values."""
    out = []
    for i, v in enumerate(values):
        if not out or out[-1][1] != v:
            out.append((i, v))
    return out


def pages(values):
    """{runs of equal values in 256 characters, as (first, value)...: number} and the number of each page."""
    found, index = {}, []
    for at in range(0, LIMIT, 256):
        index.append(found.setdefault(tuple(ranges(values[at:at + 256])), len(found)))
    assert len(found) <= 256
    return found, index


def page_tables(values):
    found, index = pages(values)
    groups, group_index = {}, []
    for at in range(0, len(index), 16):
        group_index.append(groups.setdefault(tuple(index[at:at + 16]), len(groups)))
    print("/* c >> 12 names a group of 16 pages; runs of page p: flag_starts[p] .. flag_starts[p + 1]; a run: first character, of the page's 256, << 8 | index in flag_sets */")
    show("flag_groups", "uint8_t", [str(g) for g in group_index], 40)
    show("flag_pages", "uint8_t", [str(p) for group in groups for p in group], 40)
    starts = [0]
    for page in found:
        starts.append(starts[-1] + len(page))
    show("flag_starts", "uint16_t", [str(s) for s in starts], 20)
    show("flag_runs", "uint16_t", [hex(start << 8 | v) for page in found for start, v in page])


def simple_runs(mapping):
    """{code: code} as [(first, last, stride, delta)]: equal differences, every character or every second, at most 512 apart."""
    runs = []
    for c in sorted(mapping):
        delta = mapping[c] - c
        if runs:
            first, last, stride, d = runs[-1]
            step = c - last
            if d == delta and step in (1, 2) and (stride == step or first == last) and c - first < 512:
                runs[-1] = (first, c, step, d)
                continue
        runs.append((c, c, 1, delta))
    return runs


def show(name, kind, rows, per_line=10):
    print(f"static const {kind} {name}[{len(rows)}] = {{")
    for i in range(0, len(rows), per_line):
        print("    " + ", ".join(rows[i:i + per_line]) + ",")
    print("};")


def case_tables(name, convert, base=None):
    """What `convert` changes; with a base only where it differs from that conversion."""
    simple, special = {}, {}
    for code in range(LIMIT):
        if code in SURROGATES:
            continue
        c = chr(code)
        to = convert(c)
        if to == (base(c) if base else c):
            continue
        if len(to) == 1:
            simple[code] = ord(to)
        else:
            special[code] = to
            assert max(code, *map(ord, to)) <= 0xFFFF
    show(f"{name}_runs", "case_run", [f"{{{a:#x}, {b - a}, {s}, {d}}}" for a, b, s, d in simple_runs(simple)], 6)
    rows = [f"{{{code:#x}, {{{', '.join(hex(ord(x)) for x in to)}}}}}" for code, to in sorted(special.items())]
    show(f"{name}_special", "case_special", rows or ["{0, {0}}"], 5)


def main():
    if unicodedata.unidata_version != "14.0.0":
        sys.exit(f"needs the character data of Unicode 14.0.0, has {unicodedata.unidata_version}")
    values = [0 if code in SURROGATES else flags(chr(code)) for code in range(LIMIT)]
    kinds = sorted(set(values))
    print("/* Made by tools/casemap.py from Python's data of Unicode 14.0; do not edit. A template: casemap.c alone includes it, after its types. */")
    show("flag_sets", "uint16_t", [hex(k) for k in kinds])
    show("ascii_flags", "uint16_t", [hex(v) for v in values[:128]])
    page_tables([kinds.index(v) for v in values])
    case_tables("upper", str.upper)
    case_tables("lower", str.lower)
    case_tables("title", lambda c: c.title(), str.upper)
    case_tables("fold", str.casefold, str.lower)


main()
