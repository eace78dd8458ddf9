"""The article's algorithm in pure Python: the oracle for what is fast, and the yardstick of its speed.

`article` is written as the article's text says, and is what every speed is a ratio to. `fingerprint` is the same
for every `Scheme`, slow and plain, sharing nothing with the kernels but the frozen Unicode table.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from simdup.mask import mask
from simdup.scheme import Scheme
from simdup.text import encode, normalize
from simdup.unicode import MARK, SEPARATOR, SINGLE, load

_MASK = (1 << 64) - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def article(text: str, ngram: int = 1) -> int:
    """The article's fingerprint of a text: words or word n-grams, weighted by frequency, BLAKE2b, 64 bits."""
    words = text.split()
    # Fewer words than n are one feature, which the article leaves open.
    last = max(len(words) - ngram, 0)
    features = Counter(" ".join(words[i : i + ngram]) for i in range(last + 1)) if ngram > 1 else Counter(words)
    sums = [0] * 64
    for feature, weight in features.items():
        digest = int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=8).digest(), "big")
        for bit in range(64):
            sums[bit] += weight if digest >> bit & 1 else -weight
    return sum(1 << bit for bit in range(64) if sums[bit] > 0)


def article_distance(left: int, right: int) -> int:
    """The article's Hamming distance."""
    return bin(left ^ right).count("1")


def all_pairs(values: Sequence[int], k: int) -> Iterator[tuple[int, int, int]]:
    """Every (left, right, distance) with distance at most k, by the article's comparison of all pairs."""
    for (left, a), (right, b) in combinations(enumerate(values), 2):
        distance = article_distance(a, b)
        if distance <= k:
            yield left, right, distance


def tokens(text: str, scheme: Scheme) -> list[str]:
    """The canonical tokens of a text."""
    text = normalize(text) if scheme.normalize else text
    text = mask(text, scheme.mask) if scheme.mask else text
    if not scheme.normalize:
        words = text.split()
        return words if scheme.unit == "word" else list("".join(words))
    kinds = load()["kind"]
    found: list[str] = []
    open_kind = SEPARATOR
    for character in text:
        kind = int(kinds[ord(character)])
        if kind == SEPARATOR:
            open_kind = SEPARATOR
        elif kind == MARK and open_kind != SEPARATOR:
            found[-1] += character
        else:
            alone = kind == SINGLE or (scheme.unit == "char" and kind != MARK)
            if alone or open_kind in (SEPARATOR, SINGLE):
                found.append(character)
            else:
                found[-1] += character
            open_kind = SINGLE if alone else kind
    return found


def features(text: str, scheme: Scheme) -> list[str]:
    """The features of a text, each as often as it stands there."""
    words = tokens(text, scheme)
    if len(words) < scheme.ngram:
        return [" ".join(words)] if words else []
    return [" ".join(words[i : i + scheme.ngram]) for i in range(len(words) - scheme.ngram + 1)]


def feature_hash(feature: str, scheme: Scheme) -> int:
    """The hash of a feature, as wide as the fingerprint."""
    data = encode(feature)
    if scheme.hash == "blake2b":
        return int.from_bytes(hashlib.blake2b(data, digest_size=scheme.bits // 8).digest(), "big")
    value = 0
    for seed in range(scheme.words):
        value = value << 64 | xxh64(data, seed)
    return value


def fingerprint(text: str, scheme: Scheme) -> tuple[int, int]:
    """The fingerprint of a text, and how many different features it has."""
    counts = Counter(feature_hash(feature, scheme) for feature in features(text, scheme))
    # A feature is known by the first 64 bits of its hash.
    known: dict[int, tuple[int, int]] = {}
    for value, count in counts.items():
        known[value >> (scheme.bits - 64)] = value, count
    if scheme.weight == "set":
        known = {first: (value, 1) for first, (value, _) in known.items()}
    elif scheme.weight == "idf":
        if scheme.idf is None:
            raise ValueError("weight='idf' needs a table")
        table = dict(zip(scheme.idf.features.tolist(), scheme.idf.weights.tolist(), strict=True))
        known = {first: (value, count * table.get(first, scheme.idf.unseen)) for first, (value, count) in known.items()}
        known = {first: (value, weight) for first, (value, weight) in known.items() if weight}
    return vote(known.values(), scheme.bits), len(known)


def vote(weighted: Iterable[tuple[int, int]], bits: int) -> int:
    """The value whose bit is 1 where the weights of the hashes with that bit outweigh the others."""
    sums = [0] * bits
    for value, weight in weighted:
        for bit in range(bits):
            sums[bit] += weight if value >> bit & 1 else -weight
    return sum(1 << bit for bit in range(bits) if sums[bit] > 0)


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


def _lane(accumulator: int, word: int) -> int:
    return _rotate(accumulator + word * _P2 & _MASK, 31) * _P1 & _MASK


def xxh64(data: bytes, seed: int) -> int:
    """XXH64 as published (github.com/Cyan4973/xxHash, doc/xxhash_spec.md)."""
    at = 0
    if len(data) >= 32:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while at + 32 <= len(data):
            for i in range(4):
                word = int.from_bytes(data[at + 8 * i : at + 8 * i + 8], "little")
                lanes[i] = _lane(lanes[i] & _MASK, word)
            at += 32
        value = sum(_rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            value = ((value ^ _lane(0, lane)) * _P1 + _P4) & _MASK
    else:
        value = seed + _P5 & _MASK
    value = value + len(data) & _MASK
    while at + 8 <= len(data):
        value ^= _lane(0, int.from_bytes(data[at : at + 8], "little"))
        value = (_rotate(value, 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= len(data):
        value ^= int.from_bytes(data[at : at + 4], "little") * _P1 & _MASK
        value = (_rotate(value, 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        value = _rotate(value ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    value = (value ^ value >> 33) * _P2 & _MASK
    value = (value ^ value >> 29) * _P3 & _MASK
    return value ^ value >> 32
