"""Feature hashes: XXH64 and BLAKE2b of byte slices, as published.

A feature of 64 bits has one hash word, of 256 bits four. XXH64 gives word j with seed j; BLAKE2b gives all of
them as one digest of ``bits // 8`` bytes, read big-endian. Bit 63 of word 0 is the most significant bit.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numba import njit
from numpy.typing import NDArray

from simdup.batches import batches
from simdup.jit import kernel
from simdup.scheme import Scheme, as_scheme
from simdup.text import SLACK, Tokens, encode, joined, tokenize

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)

# BLAKE2b's initial value (RFC 7693, 2.6) and message schedule (2.7); rounds 10 and 11 repeat 0 and 1.
_IV = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    np.uint64,
)  # fmt: skip
_SIGMA = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    ],
    np.int64,
)  # fmt: skip
_BLOCK = 128

# BLAKE2b costs twenty times a table look-up, and words repeat: each batch remembers what it hashed lately.
# A feature longer than this is not remembered.
_REMEMBERED_BYTES = 64
_MOST_REMEMBERED = 1 << 14
_PROBES = 4


@njit(inline="always")
def _rotate_left(x, by):  # type: ignore[no-untyped-def]
    return x << np.uint64(by) | x >> np.uint64(64 - by)


@njit(inline="always")
def _read64(data, at):  # type: ignore[no-untyped-def]
    """Eight bytes, little-endian."""
    word = np.uint64(0)
    for byte in range(8):
        word |= np.uint64(data[at + np.uint64(byte)]) << np.uint64(8 * byte)
    return word


@njit(inline="always")
def _round(accumulator, word):  # type: ignore[no-untyped-def]
    return _rotate_left(accumulator + word * _P2, 31) * _P1


@njit(inline="always")
def _last_byte(h, word, byte):  # type: ignore[no-untyped-def]
    return _rotate_left(h ^ (word >> np.uint64(8 * byte) & np.uint64(0xFF)) * _P5, 11) * _P1


@kernel
def _xxh64(data, start, stop, seed):  # type: ignore[no-untyped-def]
    """XXH64 of ``data[start:stop]``; may read up to eight bytes behind it."""
    at = start
    if stop - start >= np.uint64(32):
        a, b, c, d = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
        while at + np.uint64(32) <= stop:
            a = _round(a, _read64(data, at))
            b = _round(b, _read64(data, at + np.uint64(8)))
            c = _round(c, _read64(data, at + np.uint64(16)))
            d = _round(d, _read64(data, at + np.uint64(24)))
            at += np.uint64(32)
        h = _rotate_left(a, 1) + _rotate_left(b, 7) + _rotate_left(c, 12) + _rotate_left(d, 18)
        for lane in (a, b, c, d):
            h = (h ^ _round(np.uint64(0), lane)) * _P1 + _P4
    else:
        h = seed + _P5
    h += stop - start
    while at + np.uint64(8) <= stop:
        h = _rotate_left(h ^ _round(np.uint64(0), _read64(data, at)), 27) * _P1 + _P4
        at += np.uint64(8)
    # The last 0 to 7 bytes: every step is computed and chosen from, since a wrong guess costs more than a step.
    word, rest = _read64(data, at), stop - at
    four = rest >= np.uint64(4)
    step = _rotate_left(h ^ (word & np.uint64(0xFFFFFFFF)) * _P1, 23) * _P2 + _P3
    h = step if four else h
    word = word >> np.uint64(32) if four else word
    rest &= np.uint64(3)
    for byte in range(3):
        step = _last_byte(h, word, byte)
        h = step if rest > np.uint64(byte) else h
    h ^= h >> np.uint64(33)
    h *= _P2
    h ^= h >> np.uint64(29)
    h *= _P3
    return h ^ h >> np.uint64(32)


@njit(inline="always")
def _mix(a, b, c, d, x, y):  # type: ignore[no-untyped-def]
    """BLAKE2b's G (RFC 7693, 3.1)."""
    a = a + b + x
    d = _rotate_left(d ^ a, 32)
    c = c + d
    b = _rotate_left(b ^ c, 40)
    a = a + b + y
    d = _rotate_left(d ^ a, 48)
    c = c + d
    return a, _rotate_left(b ^ c, 1), c, d


@kernel
def _blake2b(data, start, stop, words, state, block):  # type: ignore[no-untyped-def]
    """BLAKE2b of ``data[start:stop]`` with a digest of so many 64-bit words into `state`, shape (8,).

    `block` is scratch, shape (16,).
    """
    for i in range(8):
        state[i] = _IV[i]
    state[0] ^= np.uint64(0x01010000 ^ 8 * words)
    at, last = start, False
    while not last:
        last = stop - at <= np.uint64(_BLOCK)
        for i in range(16):
            block[i] = np.uint64(0)
        length = stop - at if last else np.uint64(_BLOCK)
        for i in range(length):
            block[i >> 3] |= np.uint64(data[at + np.uint64(i)]) << np.uint64(8 * (i & 7))
        at += length
        v0, v1, v2, v3 = state[0], state[1], state[2], state[3]
        v4, v5, v6, v7 = state[4], state[5], state[6], state[7]
        v8, v9, v10, v11 = _IV[0], _IV[1], _IV[2], _IV[3]
        v12, v13, v14, v15 = _IV[4] ^ at - start, _IV[5], _IV[6], _IV[7]
        if last:
            v14 = ~v14
        for turn in range(12):
            s = _SIGMA[turn]
            v0, v4, v8, v12 = _mix(v0, v4, v8, v12, block[s[0]], block[s[1]])
            v1, v5, v9, v13 = _mix(v1, v5, v9, v13, block[s[2]], block[s[3]])
            v2, v6, v10, v14 = _mix(v2, v6, v10, v14, block[s[4]], block[s[5]])
            v3, v7, v11, v15 = _mix(v3, v7, v11, v15, block[s[6]], block[s[7]])
            v0, v5, v10, v15 = _mix(v0, v5, v10, v15, block[s[8]], block[s[9]])
            v1, v6, v11, v12 = _mix(v1, v6, v11, v12, block[s[10]], block[s[11]])
            v2, v7, v8, v13 = _mix(v2, v7, v8, v13, block[s[12]], block[s[13]])
            v3, v4, v9, v14 = _mix(v3, v4, v9, v14, block[s[14]], block[s[15]])
        state[0] ^= v0 ^ v8
        state[1] ^= v1 ^ v9
        state[2] ^= v2 ^ v10
        state[3] ^= v3 ^ v11
        state[4] ^= v4 ^ v12
        state[5] ^= v5 ^ v13
        state[6] ^= v6 ^ v14
        state[7] ^= v7 ^ v15
    for i in range(words):
        word = state[i]
        swapped = np.uint64(0)
        for byte in range(8):
            swapped = swapped << np.uint64(8) | word >> np.uint64(8 * byte) & np.uint64(0xFF)
        state[i] = swapped


@njit(inline="always")
def _last_ngram(first, last, ngram):  # type: ignore[no-untyped-def]
    """Behind the last token that starts an n-gram: tokens too few for one make one all the same."""
    return max(last - ngram + 1, min(first + 1, last))


@kernel
def _hash_xxh64(canonical, starts, offsets, ngram, feature_offsets, hashes):  # type: ignore[no-untyped-def]
    feature = 0
    for text in range(len(offsets) - 1):
        first, last = offsets[text], offsets[text + 1]
        feature_offsets[text] = feature
        for token in range(first, _last_ngram(first, last, ngram)):
            start = np.uint64(starts[token])
            stop = np.uint64(starts[min(token + ngram, last)] - 1)
            for word in range(hashes.shape[1]):
                hashes[feature, word] = _xxh64(canonical, start, stop, np.uint64(word))
            feature += 1
    feature_offsets[len(offsets) - 1] = feature
    return feature


@njit(inline="always")
def _same_bytes(left, i, right, j, length):  # type: ignore[no-untyped-def]
    """Whether ``left[i:]`` and ``right[j:]`` start with the same bytes; may read up to seven behind them."""
    done = np.uint64(0)
    while done + np.uint64(8) <= length:
        if _read64(left, i + done) != _read64(right, j + done):
            return False
        done += np.uint64(8)
    # Shifting by 64 is undefined, so the last 0 to 7 bytes are moved to the top in two steps.
    unused = np.uint64(8) * (np.uint64(7) - (length - done))
    return (_read64(left, i + done) ^ _read64(right, j + done)) << unused << np.uint64(8) == np.uint64(0)


@kernel
def _hash_blake2b(canonical, starts, offsets, ngram, feature_offsets, hashes):  # type: ignore[no-untyped-def]
    slots = 64
    while slots < len(hashes) and slots < _MOST_REMEMBERED:
        slots *= 2
    one = np.uint64(1)
    forgotten, mask = np.uint64(slots), np.uint64(slots - 1)  # the slot for what is not remembered, behind the others
    used = np.zeros(slots, np.uint64)  # one more than the length of what is remembered
    remembered = np.empty(slots * _REMEMBERED_BYTES + SLACK, np.uint8)
    digests = np.empty((slots + 1, hashes.shape[1]), np.uint64)
    state, block = np.empty(8, np.uint64), np.empty(16, np.uint64)
    feature = 0
    for text in range(len(offsets) - 1):
        first, last = offsets[text], offsets[text + 1]
        feature_offsets[text] = feature
        for token in range(first, _last_ngram(first, last, ngram)):
            start = np.uint64(starts[token])
            stop = np.uint64(starts[min(token + ngram, last)] - 1)
            length = stop - start
            slot, known = forgotten, False
            if length <= np.uint64(_REMEMBERED_BYTES):
                home = _xxh64(canonical, start, stop, np.uint64(0))
                for probe in range(_PROBES):
                    slot = home + np.uint64(probe) & mask
                    at = slot * np.uint64(_REMEMBERED_BYTES)
                    known = used[slot] == length + one and _same_bytes(canonical, start, remembered, at, length)
                    if known or used[slot] == np.uint64(0):
                        break
            if not known:
                _blake2b(canonical, start, stop, hashes.shape[1], state, block)
                for word in range(hashes.shape[1]):
                    digests[slot, word] = state[word]
                if slot != forgotten:
                    used[slot] = length + one
                    for byte in range(length):
                        at = slot * np.uint64(_REMEMBERED_BYTES) + np.uint64(byte)
                        remembered[at] = canonical[start + np.uint64(byte)]
            for word in range(hashes.shape[1]):
                hashes[feature, word] = digests[slot, word]
            feature += 1
    feature_offsets[len(offsets) - 1] = feature
    return feature


def hash_ngrams(tokens: Tokens, scheme: Scheme) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Hash every n-gram of a batch of texts, one for each place where it stands.

    Parameters
    ----------
    tokens
        The canonical tokens of n texts.
    scheme
        Its `ngram`, `hash` and `bits` are used.

    Returns
    -------
    hashes
        uint64, shape (features, bits // 64), in the order of the texts. A text of fewer than `ngram` tokens
        has one feature, all of it; one without tokens has none.
    offsets
        int64, shape (n + 1,): text d has the features ``offsets[d]`` to ``offsets[d + 1]``.
    """
    hashes = np.empty((tokens.offsets[-1], scheme.words), np.uint64)
    offsets = np.empty(len(tokens.offsets), np.int64)
    kernel = _hash_xxh64 if scheme.hash == "xxh64" else _hash_blake2b
    features = kernel(tokens.canonical, tokens.starts, tokens.offsets, scheme.ngram, offsets, hashes)
    return hashes[:features], offsets


def hash_sets(texts: Iterable[str], scheme: Scheme) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Hash the different n-grams of texts, batch by batch.

    Parameters
    ----------
    texts
        As `simdup.fingerprint` takes them.
    scheme
        What a feature is.

    Yields
    ------
    hashes
        uint64, shape (features,): the first 64 bits of each hash, ascending within a text.
    sizes
        int64, shape (n,): how many of them each text of the batch has.
    """
    for data, starts in batches(texts):
        hashes, offsets = hash_ngrams(tokenize(data, starts, scheme), scheme)
        first = hashes[:, 0].copy()
        new = np.ones(len(first), bool)
        for start, stop in pairwise(offsets.tolist()):
            part = first[start:stop]
            part.sort()
            np.not_equal(part[1:], part[:-1], out=new[start + 1 : stop])
        yield first[new], np.diff(np.append(0, np.cumsum(new))[offsets])


def hash_strings(strings: Iterable[str], scheme: Scheme) -> NDArray[np.uint64]:
    """Hash each string as a feature, just as it is.

    Returns
    -------
    hashes
        uint64, shape (n, bits // 64).
    """
    spaced = [encode(string) + b" " for string in strings]
    canonical, starts = joined([*spaced, bytes(SLACK)])
    return hash_ngrams(Tokens(canonical, starts, np.arange(len(spaced) + 1)), replace(as_scheme(scheme), ngram=1))[0]
