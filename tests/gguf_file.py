"""GGUF files as Python values, read and written without the engine: what tests compute from, and what they make mutants of."""
import struct

FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
INTEGERS, FLOATS, BOOL, STRING, ARRAY = (0, 1, 2, 3, 4, 5, 10, 11), (6, 12), 7, 8, 9


class Value:
    """kind; of an array: the items' kind too, else None."""

    def __init__(self, kind, item, value):
        self.kind, self.item, self.value = kind, item, value

    def copy(self):
        return Value(self.kind, self.item, list(self.value) if self.kind == ARRAY else self.value)


class Tensor:
    def __init__(self, name, shape, kind, offset):
        self.name, self.shape, self.kind, self.offset = name, shape, kind, offset

    def copy(self):
        return Tensor(self.name, list(self.shape), self.kind, self.offset)


class File:
    """values: {key: Value}; tensors: [Tensor]; data: what follows the header. Strings are bytes."""

    def __init__(self, data=None):
        self.version, self.values, self.tensors, self.data = 3, {}, [], b""
        if data is not None:
            self._data, self._at = data, 4
            self._read()

    def copy(self):
        other = File()
        other.version, other.data = self.version, self.data
        other.values = {k: v.copy() for k, v in self.values.items()}
        other.tensors = [t.copy() for t in self.tensors]
        return other

    def get(self, key, default=None):
        """A value of the architecture, or of the file where `key` has no such prefix."""
        arch = self.values["general.architecture"].value.decode()
        hit = self.values.get(f"{arch}.{key}") or self.values.get(key)
        return hit.value if hit else default

    def has(self, name):
        return any(t.name == name.encode() for t in self.tensors)

    # ---- reading ----

    def _take(self, code):
        found = struct.unpack_from("<" + code, self._data, self._at)[0]
        self._at += struct.calcsize("<" + code)
        return found

    def _text(self):
        n = self._take("Q")
        self._at += n
        return self._data[self._at - n:self._at]

    def _value(self, kind):
        return self._text() if kind == STRING else self._take(FORMATS[kind])

    def _read(self):
        self.version, n_tensors, n_values = self._take("I"), self._take("Q"), self._take("Q")
        for _ in range(n_values):
            key, kind = self._text().decode(), self._take("I")
            item = self._take("I") if kind == ARRAY else None
            value = [self._value(item) for _ in range(self._take("Q"))] if kind == ARRAY else self._value(kind)
            self.values[key] = Value(kind, item, value)
        for _ in range(n_tensors):
            name = self._text()
            shape = [self._take("Q") for _ in range(self._take("I"))]
            self.tensors.append(Tensor(name, shape, self._take("I"), self._take("Q")))
        self.data = self._data[self._aligned(self._at):]

    def _aligned(self, at):
        alignment = self.values["general.alignment"].value if "general.alignment" in self.values else 32
        return (at + alignment - 1) // alignment * alignment

    # ---- writing: numbers wrap to what their kind can hold ----

    @staticmethod
    def _encode(kind, value):
        if kind == STRING:
            return struct.pack("<Q", len(value)) + value
        if kind in INTEGERS:
            return (value & ((1 << 8 * struct.calcsize(FORMATS[kind])) - 1)).to_bytes(struct.calcsize(FORMATS[kind]), "little")
        return struct.pack("<" + FORMATS[kind], value)

    def bytes(self, data=True):
        out = [b"GGUF", struct.pack("<IQQ", self.version, len(self.tensors), len(self.values))]
        for key, v in self.values.items():
            out += [self._encode(STRING, key.encode()), struct.pack("<I", v.kind)]
            if v.kind == ARRAY:
                out.append(struct.pack("<IQ", v.item, len(v.value)))
            out += [self._encode(v.item, x) for x in v.value] if v.kind == ARRAY else [self._encode(v.kind, v.value)]
        for t in self.tensors:
            out += [self._encode(STRING, t.name), struct.pack(f"<I{len(t.shape)}QIQ", len(t.shape), *t.shape, t.kind, t.offset)]
        header = b"".join(out)
        header += bytes(self._aligned(len(header)) - len(header))
        return header + self.data if data else header
