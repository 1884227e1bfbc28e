#!/usr/bin/env python3
"""Writes src/quant/iq_tables.c from the lists of grid entries: tools/iq_tables.py ../shared/spec/iq-grids > src/quant/iq_tables.c"""
import sys

# name, file, alphabet in the order of its digits, bits per digit
GRIDS = [
    ("pn_iq2xxs", "iq2xxs_grid", [8, 25, 43], 2),
    ("pn_iq2xs", "iq2xs_grid", [8, 25, 43], 2),
    ("pn_iq2s", "iq2s_grid", [8, 25, 43], 2),
    ("pn_iq1s", "iq1s_grid", [-1, 0, 1], 2),
    ("pn_iq3xxs", "iq3xxs_grid", [4, 12, 20, 28, 36, 44, 52, 62], 3),
    ("pn_iq3s", "iq3s_grid", [1, 3, 5, 7, 9, 11, 13, 15], 3),
]
PER_LINE = 20


def entries(folder, name):
    with open(f"{folder}/{name}.txt") as f:
        return [[int(n) for n in line.split()] for line in f if not line.startswith("#")]


def main(folder):
    print("/* quant/iq_tables.c - grids of the IQ types, written by tools/iq_tables.py: do not edit. */")
    print('#include "quant/iq_tables.h"')
    for name, file, alphabet, bits in GRIDS:
        words = [sum(alphabet.index(v) << bits * i for i, v in enumerate(row)) for row in entries(folder, file)]
        print(f"\nconst uint16_t {name}[{len(words)}] = {{")
        for at in range(0, len(words), PER_LINE):
            print("    " + ", ".join(f"0x{w:04x}" for w in words[at:at + PER_LINE]) + ",")
        print("};")
    for name, file in (("pn_iq4nl_values", "kvalues_iq4nl"), ("pn_mxfp4_values", "kvalues_mxfp4")):
        values = [row[0] for row in entries(folder, file)]
        print(f"\nconst int8_t {name}[{len(values)}] = {{{', '.join(map(str, values))}}};")


main(sys.argv[1])
