"""Write ``golden.json``, the vectors that must never change: ``python -m tests.properties.make_golden [--replace]``.

The fingerprints come from `simdup.reference`, for schemes of every sort over texts in many scripts. A vector that is
there is kept: one that comes out differently under the same scheme id is an error, unless ``--replace`` says that it
is meant. New schemes and texts are added without it. The digests are those of the frozen Unicode table.

An idf scheme stands with the weights of its table, so that anybody's implementation can be held against the file.
"""

import argparse
import hashlib
import json
import pathlib
from itertools import product
from typing import Any

import numpy as np

from simdup import ARTICLE, Scheme, idf_table, normalize, reference
from simdup.mask import NOISE
from simdup.text import encode
from simdup.unicode import load

FILE = pathlib.Path(__file__).with_name("golden.json")

TABLE = {"the": 0.0, "page": 2.5, "a": 0.125, "of": 0.3, "the page": 1.7, "中": 3.0, "c a f": 0.9, "unsere": 1e-6}
UNSEEN = 1.1

UUID = "550e8400-E29B-41d4-a716-446655440000"

TEXTS = [
    "",
    " \t\n",
    "!!! ??? 😀🚀",
    "a",
    "The quick brown fox jumps over the lazy dog.",
    "the page of the page of the page",
    "the\tpage\nof the\r\npage",
    "apple " * 300 + "banana",
    "Don't stop: x86_64, C++20 & 3.14 per cent",
    "Straße, STRASSE und ﬁne Ligaturen",
    "Größe café naïve — NFC",
    "Gro\u0308\u00dfe cafe\u0301 nai\u0308ve — NFD",
    "ΟΔΥΣΣΕΎΣ, Ὀδυσσεὺς καὶ ᾼδης",
    "Съешь ещё этих мягких французских булок",
    "q\u0307\u0323 q\u0323\u0307 a\u0316\u0301 a\u0301\u0316",
    "한국어 문장 \u1112\u1161\u11ab\u1100\u116e\u11a8",
    "ＦＵＬＬ　ｗｉｄｔｈ １２３ ｶﾞｷﾞｸﾞ ﾊﾟﾝ",
    "東京都は日本の首都であり、人口は約1400万人です。",
    "ภาษาไทยไม่มีช่องว่างระหว่างคำ กิน กีน กุน",
    "काला कीला कूला हिन्दी में लिखा हुआ वाक्य",
    "العَرَبِيَّةُ لُغَةٌ جَمِيلَةٌ ومكتوبة من اليمين",
    "שָׁלוֹם עֲלֵיכֶם, ភាសាខ្មែរ ສະບາຍດີ မြန်မာဘာသာ",
    "zero\u200bwidth so\u00adft \ufeffmark no\u00a0break e\u200d\u0301",
    "new \U0001fae8 signs \U00031350\U0003134a a\u0378b \U0001e030\u0301",
    "lone \ud800 half a\udfffb and nul\x00byte",
    f"{'w' * 65} {'x' * 129} {'ä' * 130} {'語' * 22} end",
    "Ⅷ ½ ℃ ㌔ ① ﷺ Å K Ω",
    f"Thu, 03 Dec 2026 09:03:26 GMT\u00a0id={UUID} at 1764752606, 1,234 views, $12.99 in 2026",
    f"２０２６年１２月３日（木）１４：０５　閲覧数：１２　{UUID[:8] * 4}, le 3 de\u0301cembre 2026 à 14h05",
]


def schemes() -> list[Scheme]:
    """Each value of each option, and the shorter n-grams with each."""
    chosen = [ARTICLE, Scheme("word", 1, 64, "tf"), Scheme("word", 2, 128, "tf"), Scheme("word", 3, 64, "tf"), Scheme()]
    for place, (bits, weight, name) in enumerate(product((64, 128, 256), ("tf", "set", "idf"), ("xxh64", "blake2b"))):
        unit, ngram = ("word", "char")[place % 4 == 3], (1, 2, 3, 5)[place // 2 % 4]
        chosen.append(Scheme(unit, ngram, bits, weight, name, normalize=place % 5 != 1))  # type: ignore[arg-type]
    chosen += [Scheme("char", 5, 64, "tf"), Scheme("char", 3, 128, "set", "blake2b", normalize=False)]
    chosen += [Scheme("word", 2, 256, "tf", "blake2b", normalize=False), Scheme("word", 1, 64, "set")]
    chosen += [Scheme(mask=NOISE), Scheme("word", 2, 128, "tf", mask=NOISE)]
    chosen += [Scheme("word", 1, 64, "tf", "blake2b", normalize=False, mask=("date", "hex"))]
    chosen += [Scheme("word", 1, 64, "idf"), Scheme("char", 2, 64, "tf", "xxh64", normalize=False)]
    return [idf_table(TABLE, scheme, UNSEEN) if scheme.weight == "idf" else scheme for scheme in chosen]


def digests() -> dict[str, str]:
    """What the frozen Unicode table holds, and what every character that it knows is normalised to."""
    found = {}
    for name, values in sorted(load().items()):
        wide = np.ascontiguousarray(values, "<i4")
        found[name] = hashlib.sha256(wide.tobytes()).hexdigest()
    assigned = np.flatnonzero(load()["assigned"]).tolist()
    normal = "\n".join(normalize(chr(code)) for code in assigned)
    return found | {"normalize": hashlib.sha256(encode(normal)).hexdigest()}


def make() -> dict[str, Any]:
    """All that the file holds."""
    vectors = {}
    for scheme in schemes():
        values = [reference.fingerprint(text, scheme) for text in TEXTS]
        vectors[scheme.id] = {
            "options": {
                name: getattr(scheme, name) for name in ("unit", "ngram", "bits", "weight", "hash", "normalize")
            }
            | ({"mask": list(scheme.mask)} if scheme.mask else {}),
            "hex": [f"{value:0{scheme.bits // 4}x}" for value, _ in values],
            "features": [count for _, count in values],
        }
    return {"idf": {"weights": TABLE, "unseen": UNSEEN}, "unicode": digests(), "texts": TEXTS, "vectors": vectors}


def changed(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """The vectors and digests of `old` that are missing from `new` or differ there."""
    found = [f"unicode.{name}" for name, digest in old["unicode"].items() if new["unicode"].get(name) != digest]
    places = {text: place for place, text in enumerate(new["texts"])}
    for name, vector in old["vectors"].items():
        other = new["vectors"].get(name)
        for place, text in enumerate(old["texts"]):
            now = places.get(text)
            if (
                other is None
                or now is None
                or any(vector[kind][place] != other[kind][now] for kind in ("hex", "features"))
            ):
                found.append(f"{name}, text {place}: {text[:40]!a}")
    return found


def main() -> None:
    """Write the file, or say why not."""
    parser = argparse.ArgumentParser(description="Write the golden vectors.")
    parser.add_argument("--replace", action="store_true", help="replace vectors that differ")
    replace = parser.parse_args().replace
    new = make()
    if FILE.exists() and not replace:
        differ = changed(json.loads(FILE.read_text("ascii")), new)
        if differ:
            listed = "\n  ".join(differ[:20])
            raise SystemExit(f"{len(differ)} vectors have changed; say --replace if that is meant:\n  {listed}")
    FILE.write_text(json.dumps(new, indent=1) + "\n", "ascii")


if __name__ == "__main__":
    main()
