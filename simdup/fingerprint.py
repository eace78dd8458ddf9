"""Texts to fingerprints: tokens, hashes, and one vote per bit.

Each bit of a fingerprint sums the weights of the features whose hash has the bit set and subtracts the others;
it is 1 if the sum is above zero, so a tie gives 0 (Charikar 2002; the article's recipe).
"""

import math
import secrets
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any, Self, overload

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from simdup.batches import Batch, batches, one_text
from simdup.hashing import hash_ngrams, hash_sets, hash_strings
from simdup.idf import IdfTable, weight_steps
from simdup.jit import kernel
from simdup.scheme import Scheme, Weight, as_scheme
from simdup.text import tokenize

Words = NDArray[np.uint64]
Counts = NDArray[np.int64]

UNKNOWN = -1
"""The feature count of a fingerprint that was restored without one."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """One fingerprint; two are equal if value and scheme are."""

    value: int
    features: int = field(compare=False)
    """How many different features the text has; 0 for a text without any, -1 if unknown."""
    scheme: Scheme

    def __post_init__(self) -> None:
        natural(self.value, as_scheme(self.scheme).bits)

    def __int__(self) -> int:
        return self.value

    def hex(self) -> str:
        """The value in bits / 4 hexadecimal digits, the most significant first."""
        return f"{self.value:0{self.scheme.bits // 4}x}"

    def to_signed(self) -> int:
        """The value in two's complement, as SQL's BIGINT holds it; only for 64 bits."""
        if self.scheme.bits != 64:
            raise ValueError(f"{self.scheme.bits} bits are no single BIGINT: Fingerprints.to_signed gives one per word")
        return self.value - (self.value >> 63 << 64)


@dataclass(frozen=True, eq=False)
class Fingerprints:
    """A column of fingerprints of one scheme.

    Two are equal if words and scheme are. Indexing with an int gives a `Fingerprint`, with a slice or an array
    a part of the column.
    """

    words: Words
    """uint64, shape (n, bits // 64), read-only; bit 63 of word 0 is the most significant bit."""
    features: Counts
    """int64, shape (n,), read-only: how many different features each text has, 0 for none, -1 if unknown."""
    scheme: Scheme

    def __post_init__(self) -> None:
        words = uint64(self.words)
        as_scheme(self.scheme)
        if words.ndim == 1 and self.scheme.words == 1:
            words = words[:, np.newaxis]
        features = np.asarray(self.features)
        if features.size and features.dtype.kind not in "iu":
            raise TypeError(f"feature counts are integers, not {features.dtype}")
        if features.size and not UNKNOWN <= int(features.min()) <= int(features.max()) < 1 << 63:
            raise ValueError(f"feature counts are 0 or more, and {UNKNOWN} if unknown, not {features.min()}")
        features = np.ascontiguousarray(features, np.int64)
        if features.ndim != 1 or words.shape != (len(features), self.scheme.words):
            raise ValueError(
                f"words of shape {words.shape} and feature counts of shape {features.shape} do not make fingerprints "
                f"of {self.scheme.bits} bits: words takes shape (n, {self.scheme.words}), features (n,)"
            )
        for name, array in (("words", words), ("features", features)):
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    @classmethod
    def from_ints(cls, values: Iterable[int], scheme: Scheme, features: ArrayLike | None = None) -> Self:
        """Fingerprints from integers in [0, 2^bits), with unknown feature counts unless they are given."""
        numbers_ = [natural(value, scheme.bits) for value in values]
        raw = b"".join(value.to_bytes(scheme.bits // 8, "big") for value in numbers_)
        return cls.from_words(np.frombuffer(raw, ">u8").reshape(-1, scheme.words), scheme, features)

    @classmethod
    def from_hex(cls, values: Iterable[str], scheme: Scheme, features: ArrayLike | None = None) -> Self:
        """Fingerprints from strings of bits / 4 hexadecimal digits each, as `hex` gives them."""
        digits = list(values)
        for text in digits:
            if not isinstance(text, str):
                raise TypeError(f"{text!r:.80} is no string of hexadecimal digits")
            if len(text) != scheme.bits // 4 or not set(text) <= set("0123456789abcdefABCDEF"):
                raise ValueError(
                    f"{text!r:.80} is no fingerprint of {scheme.bits} bits: give {scheme.bits // 4} hexadecimal digits"
                )
        return cls.from_ints([int(text, 16) for text in digits], scheme, features)

    @classmethod
    def from_signed(cls, values: ArrayLike, scheme: Scheme, features: ArrayLike | None = None) -> Self:
        """Fingerprints from int64 in two's complement: shape (n,) for 64 bits, else (n, bits // 64)."""
        signed = np.asarray(values)
        if signed.size and signed.dtype.kind != "i":
            raise TypeError(f"signed fingerprints are integers in [-2^63, 2^63), not {signed.dtype}")
        words = signed.astype(np.int64).view(np.uint64)
        return cls.from_words(words, scheme, features)

    @classmethod
    def from_words(cls, words: ArrayLike, scheme: Scheme, features: ArrayLike | None = None) -> Self:
        """Fingerprints from uint64 words as `words` holds them."""
        columns = uint64(words)
        return cls(columns, np.full(len(columns), UNKNOWN) if features is None else np.asarray(features), scheme)

    def hex(self) -> list[str]:
        """Every fingerprint in bits / 4 hexadecimal digits, the most significant first."""
        digits = self.words.astype(">u8").tobytes().hex()
        step = self.scheme.bits // 4
        return [digits[at : at + step] for at in range(0, len(digits), step)]

    def to_signed(self) -> NDArray[np.int64]:
        """The words in two's complement, as SQL's BIGINT holds them: shape (n,) for 64 bits, else (n, bits // 64)."""
        signed = self.words.view(np.int64)
        return signed[:, 0] if self.scheme.words == 1 else signed

    def __len__(self) -> int:
        return len(self.words)

    @overload
    def __getitem__(self, at: int) -> Fingerprint: ...
    @overload
    def __getitem__(self, at: slice | NDArray[Any] | Sequence[int]) -> "Fingerprints": ...
    def __getitem__(self, at: int | slice | NDArray[Any] | Sequence[int]) -> "Fingerprint | Fingerprints":
        if isinstance(at, int | np.integer):
            return Fingerprint(_to_int(self.words[int(at)]), int(self.features[at]), self.scheme)
        return Fingerprints(self.words[at], self.features[at], self.scheme)

    def __iter__(self) -> Iterator[Fingerprint]:
        return (self[at] for at in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fingerprints):
            return NotImplemented
        return self.scheme.id == other.scheme.id and np.array_equal(self.words, other.words)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.words, self.features, self.scheme)  # read-only again

    def __repr__(self) -> str:
        shown = ", ".join(self[:3].hex() if len(self) > 4 else self.hex())
        return f"<{len(self)} Fingerprints {self.scheme.id}: {shown}{', …' if len(self) > 4 else ''}>"


def _to_int(words: Words) -> int:
    return int.from_bytes(words.astype(">u8").tobytes(), "big")


def natural(value: Any, bits: int) -> int:
    """An int in [0, 2^bits), or the error that says what it is instead."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(
            f"{value!r:.80} is no fingerprint: give an int in [0, 2^{bits}); from_hex and from_signed make one"
        )
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{value!r} is no fingerprint of {bits} bits: give an int in [0, 2^{bits})")
    return int(value)


def uint64(words: ArrayLike) -> Words:
    """An array of unsigned words as it is, or TypeError for one of anything else."""
    array = np.asarray(words)
    if array.size and array.dtype.kind != "u":
        raise TypeError(f"fingerprint words are uint64, not {array.dtype}: from_signed takes int64, from_ints any int")
    return np.ascontiguousarray(array, np.uint64)


def check_threads(threads: int) -> None:
    """Raise ValueError unless it is a number of threads."""
    if type(threads) is not int or threads < 1:
        raise ValueError(f"threads={threads!r}: give an int of 1 or more")


# Where a hash goes in a table of those seen is nobody's to foresee, so that no text can crowd all into one place
# (multiply-shift, Dietzfelbinger et al. 1997). No result depends on it.
_MULTIPLIER = np.uint64(secrets.randbits(64) | 1)

_MODES: dict[Weight, int] = {"tf": 0, "set": 1, "idf": 2}
_SET, _IDF = 1, 2
_NO_WEIGHTS = np.empty(0, np.int64)


@njit(inline="always")
def _add(one, two, four):  # type: ignore[no-untyped-def]
    """A full adder of 64 one-bit columns: sum and carry."""
    half = one ^ two
    return half ^ four, one & two | half & four


@kernel
def _different(hashes, multiplier, seen, rows):  # type: ignore[no-untyped-def]
    """Put the row of each different first hash word into `rows` and return how many there are.

    `seen` is scratch for a hash table, of four times as many slots as rows or more.
    """
    slots, shift = 64, np.uint64(58)
    while slots < 4 * len(hashes):
        slots *= 2
        shift -= np.uint64(1)
    empty = np.uint64(0)  # the mark of an empty slot: a number that none of the hashes is
    clashes = True
    while clashes:
        clashes = False
        for row in range(len(hashes)):
            clashes |= hashes[row, 0] == empty
        empty += np.uint64(clashes)
    seen[:slots] = empty
    mask = np.uint64(slots - 1)
    different = 0
    for row in range(len(hashes)):
        key = hashes[row, 0]
        slot = key * multiplier >> shift
        there = seen[slot]
        while (there != empty) & (there != key):
            slot = slot + np.uint64(1) & mask
            there = seen[slot]
        seen[slot] = key
        rows[different] = row
        different += int(there == empty)
    return different


@kernel
def _count(hashes, word, rows, planes):  # type: ignore[no-untyped-def]
    """The bits that more than half of the rows have set, counted in 64 columns at once.

    Plane p holds bit p of every column's count: to add a hash is to add one bit to each column, and eight are added
    in one go. The comparison with half the number of votes runs down the planes, again in all columns at once.
    """
    none, votes = np.uint64(0), len(rows)
    planes[:] = none
    for i in range(0, votes, 8):
        a = hashes[rows[i], word]
        b = hashes[rows[i + 1], word] if i + 1 < votes else none
        c = hashes[rows[i + 2], word] if i + 2 < votes else none
        d = hashes[rows[i + 3], word] if i + 3 < votes else none
        e = hashes[rows[i + 4], word] if i + 4 < votes else none
        f = hashes[rows[i + 5], word] if i + 5 < votes else none
        g = hashes[rows[i + 6], word] if i + 6 < votes else none
        h = hashes[rows[i + 7], word] if i + 7 < votes else none
        ones, twos_a = _add(planes[0], a, b)
        ones, twos_b = _add(ones, c, d)
        twos, fours_a = _add(planes[1], twos_a, twos_b)
        ones, twos_a = _add(ones, e, f)
        ones, twos_b = _add(ones, g, h)
        twos, fours_b = _add(twos, twos_a, twos_b)
        planes[0], planes[1] = ones, twos
        planes[2], carry = _add(planes[2], fours_a, fours_b)
        plane = 3
        while carry:
            planes[plane], carry = planes[plane] ^ carry, planes[plane] & carry
            plane += 1
    above, equal = none, ~none
    for plane in range(len(planes) - 1, -1, -1):
        if votes >> 1 >> plane & 1:
            equal &= planes[plane]
        else:
            above |= equal & planes[plane]
            equal &= ~planes[plane]
    return above


@kernel
def _weigh(hashes, word, weights, sums):  # type: ignore[no-untyped-def]
    """The bits whose rows weigh more than the other rows do."""
    sums[:] = 0
    total = np.int64(0)
    for row in range(len(weights)):
        weight, hash_ = weights[row], hashes[row, word]
        total += weight
        for bit in range(64):
            sums[bit] += weight if hash_ & np.uint64(1) << np.uint64(bit) else np.int64(0)
    result = np.uint64(0)
    for bit in range(64):
        result |= np.uint64(sums[bit] > total - sums[bit]) << np.uint64(bit)
    return result


@kernel
def _vote(hashes, weights, offsets, mode, multiplier, words, features):  # type: ignore[no-untyped-def]
    """Fingerprint every text from the hashes of its features, and count the different ones."""
    most = 0
    for text in range(len(features)):
        most = max(most, offsets[text + 1] - offsets[text])
    slots = 64
    while slots < 4 * most:
        slots *= 2
    seen, rows = np.empty(slots, np.uint64), np.empty(most + 1, np.int64)
    every_row = np.arange(most)
    planes, sums = np.empty(64, np.uint64), np.empty(64, np.int64)
    for text in range(len(features)):
        start, stop = offsets[text], offsets[text + 1]
        own = hashes[start:stop]
        features[text] = _different(own, multiplier, seen, rows)
        voters = rows[: features[text]] if mode == _SET else every_row[: stop - start]
        for word in range(words.shape[1]):
            if mode == _IDF:
                words[text, word] = _weigh(own, word, weights[start:stop], sums)
            else:
                words[text, word] = _count(own, word, voters, planes)


def _fingerprint_batch(batch: Batch, scheme: Scheme) -> tuple[Words, Counts]:
    hashes, offsets = hash_ngrams(tokenize(batch.data, batch.offsets, scheme), scheme)
    weights = _NO_WEIGHTS
    if scheme.idf is not None:
        weights = scheme.idf.lookup(hashes[:, 0])
        present = np.flatnonzero(weights)
        offsets = np.searchsorted(present, offsets)
        hashes, weights = hashes[present], weights[present]
    words = np.empty((len(offsets) - 1, scheme.words), np.uint64)
    features = np.empty(len(words), np.int64)
    _vote(hashes, weights, offsets, _MODES[scheme.weight], _MULTIPLIER, words, features)
    return words, features


def _in_order(batches_: Iterator[Batch], scheme: Scheme, threads: int) -> Iterator[tuple[Words, Counts]]:
    """Fingerprint batches on several threads, in order, holding at most two batches per thread."""
    if threads == 1:
        yield from (_fingerprint_batch(batch, scheme) for batch in batches_)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[tuple[Words, Counts]]] = deque()
        for batch in batches_:
            waiting.append(pool.submit(_fingerprint_batch, batch, scheme))
            if len(waiting) == 2 * threads:
                yield waiting.popleft().result()
        yield from (future.result() for future in waiting)


@overload
def fingerprint(texts: str, scheme: Scheme = ..., *, threads: int = 1) -> Fingerprint: ...  # type: ignore[overload-overlap]
@overload
def fingerprint(texts: Iterable[str], scheme: Scheme = ..., *, threads: int = 1) -> Fingerprints: ...
def fingerprint(
    texts: str | Iterable[str], scheme: Scheme = Scheme(), *, threads: int = 1
) -> Fingerprint | Fingerprints:
    """Fingerprint one text, or many.

    Parameters
    ----------
    texts
        A string; or any iterable of strings, read once; or a column: a PyArrow string array (chunked or not),
        a pandas or polars series. A call takes some 10 microseconds beside the work, so give many texts at once.
    scheme
        How a text becomes a fingerprint.
    threads
        How many threads work at once. They read up to two batches of a million characters each ahead.

    Returns
    -------
    Fingerprint
        For a string.
    Fingerprints
        For many texts, in their order. A text without any token has ``features == 0`` and the value 0.

    Raises
    ------
    TypeError
        For what is no text (bytes, None, a number, a table), naming its position.
    ValueError
        For an idf scheme without its table, or a column with nulls or invalid UTF-8.
    """
    as_scheme(scheme)
    check_threads(threads)
    if scheme.weight == "idf" and scheme.idf is None:
        raise ValueError("weight='idf' needs a table: scheme = simdup.fit_idf(texts, scheme), or simdup.idf_table")
    if isinstance(texts, str):
        words, features = _fingerprint_batch(one_text(texts), scheme)
        return Fingerprint(_to_int(words[0]), int(features[0]), scheme)
    parts = list(_in_order(batches(texts), scheme, threads))
    if not parts:
        return Fingerprints(np.empty((0, scheme.words), np.uint64), np.empty(0, np.int64), scheme)
    words_, features_ = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Fingerprints(words_, features_, scheme)


def fit_idf(texts: Iterable[str], scheme: Scheme) -> Scheme:
    """Count on how many texts each feature stands, and return the scheme with weights ln(n / count).

    Parameters
    ----------
    texts
        The corpus, as `fingerprint` takes it. Texts without a token do not count.
    scheme
        Its `weight` becomes "idf"; a table that it has is replaced.

    Returns
    -------
    Scheme
        With the fitted table: a feature on every text weighs nothing, an unseen one as much as one that stands
        on a single text. `Scheme.save` keeps it.
    """
    features, counts, texts_seen = _texts_of_each(texts, replace(as_scheme(scheme), weight="tf", idf=None))
    if not texts_seen:
        raise ValueError("there is no text with a token to fit an idf table on")
    weights = np.empty(counts.max() + 1, np.int64)
    for count in np.flatnonzero(np.bincount(counts)).tolist():
        weights[count] = weight_steps(math.log(texts_seen / count))
    return replace(scheme, weight="idf", idf=IdfTable(features, weights[counts], weight_steps(math.log(texts_seen))))


def _texts_of_each(texts: Iterable[str], scheme: Scheme) -> tuple[Words, Counts, int]:
    """Every feature, ascending, and on how many texts it stands; and how many texts have any."""
    features, counts, texts_seen = np.empty(0, np.uint64), np.empty(0, np.int64), 0
    waiting: list[Words] = []

    def merged() -> tuple[Words, Counts]:
        every = np.concatenate([features, *waiting])
        order = np.argsort(every)
        every = every[order]
        firsts = np.flatnonzero(np.diff(every, prepend=~every[:1]))
        ones = np.ones(len(every) - len(features), np.int64)
        return every[firsts], np.add.reduceat(np.append(counts, ones)[order], firsts)

    for hashes, sizes in hash_sets(texts, scheme):
        texts_seen += int(np.count_nonzero(sizes))
        waiting.append(hashes)
        # To merge takes as long as the table is, so as much waits for it: the whole then takes n log n.
        if sum(map(len, waiting)) > len(features):
            features, counts = merged()
            waiting.clear()
    return *merged(), texts_seen


def idf_table(weights: Mapping[str, float], scheme: Scheme, unseen: float) -> Scheme:
    """Give a scheme idf weights that come from elsewhere.

    Parameters
    ----------
    weights
        The weight of each feature: of each canonical token, or of `ngram` of them joined by one space. Finite,
        0 to 2^10, kept in steps of 2^-20; 0 makes a feature absent. One that is written as no text's is
        ("The", where texts are normalised) is never met: `simdup.tokens` shows how tokens are written.
    scheme
        Its `weight` becomes "idf".
    unseen
        The weight of every feature that is not in `weights`.
    """
    if not isinstance(weights, Mapping):
        raise TypeError(f"idf weights come as a mapping from feature to weight, not as {type(weights).__name__}")
    hashes = hash_strings(weights, scheme)[:, 0]
    steps = np.array([weight_steps(value) for value in weights.values()], np.int64)
    order = np.argsort(hashes)
    return replace(scheme, weight="idf", idf=IdfTable(hashes[order], steps[order], weight_steps(unseen)))


def fingerprint_features(documents: Iterable[Mapping[str, float]], scheme: Scheme = Scheme()) -> Fingerprints:
    """Fingerprint documents given as weighted features, which are hashed just as they are.

    Parameters
    ----------
    documents
        For each document a mapping from feature to weight: a finite int or float, 0 or more. 0 is absent. Sums
        are exact, whatever the order and the magnitudes.
    scheme
        Its `hash` and `bits` are used; the rest names where the features come from.

    Raises
    ------
    TypeError, ValueError
        For a feature or weight that is none, naming the document's position.
    """
    words, features = [], []
    for position, document in enumerate(documents):
        if not isinstance(document, Mapping):
            raise TypeError(f"document {position} is {document!r:.80}: give a mapping from feature to weight")
        present: dict[str, Any] = {}
        for feature, weight in document.items():
            if not isinstance(feature, str):
                raise TypeError(f"document {position}: feature {feature!r:.80} is no str")
            if isinstance(weight, bool) or not isinstance(weight, int | float | np.integer | np.floating):
                raise TypeError(f"document {position}: weight {weight!r} of {feature!r} is no int or float")
            if not 0 <= weight < math.inf:
                raise ValueError(f"document {position}: weight {weight!r} of {feature!r} is negative or not finite")
            if weight:
                present[feature] = weight
        hashes = hash_strings(present, scheme)
        words.append(_exact_vote(hashes, list(present.values())))
        features.append(len(present))
    return Fingerprints(np.array(words, np.uint64).reshape(-1, scheme.words), np.array(features, np.int64), scheme)


def _exact_vote(hashes: Words, weights: list[Any]) -> list[int]:
    """The words that the weighted hashes vote for, exact for any finite weights."""
    ratios = [(int(weight), 1) if isinstance(weight, np.integer) else weight.as_integer_ratio() for weight in weights]
    finest = max((below for _, below in ratios), default=1)
    steps = [above * (finest // below) for above, below in ratios]
    total = sum(steps)
    # Floating-point sums decide all bits but those too near a tie, which are summed again in whole steps.
    shares = np.array([step / total for step in steps])
    doubt = 4 * (len(steps) + 2) * np.finfo(np.float64).eps
    words = []
    for column in hashes.T:
        votes = column[:, np.newaxis] >> np.arange(64, dtype=np.uint64) & np.uint64(1) == 1
        margins = shares @ (votes * 2.0 - 1)
        word = 0
        for bit in np.flatnonzero(margins > -doubt).tolist():
            if margins[bit] > doubt or 2 * sum(compress(steps, votes[:, bit])) > total:
                word |= 1 << bit
        words.append(word)
    return words
