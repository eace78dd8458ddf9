"""A Scheme: everything that decides how a text becomes a fingerprint, and its stable id."""

import json
import os
import re
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from simdup.files import whole
from simdup.idf import IdfTable
from simdup.mask import VERSION, Noise, check_noise

Unit = Literal["word", "char"]
Weight = Literal["tf", "set", "idf"]
Hash = Literal["xxh64", "blake2b"]

# How an id names the two ways to read a text. Another Unicode table would be another name.
_NORMALIZED, _RAW = "nfkc14", "raw"
_MASK = f"-mask{VERSION}"

_LONGEST_NGRAM = 1_000
_FORMAT = 1


@dataclass(frozen=True)
class Scheme:
    """How a text becomes a fingerprint.

    Parameters
    ----------
    unit
        What a token is: a "word", or a "char" of a word with its combining marks.
    ngram
        How many consecutive tokens make a feature, 1 or more. A text of fewer tokens is one feature.
    bits
        Width of the fingerprint: 64, 128 or 256.
    weight
        "tf": a feature counts as often as it occurs; "set": once; "idf": as often as it occurs times its
        weight in `idf`.
    hash
        "xxh64", or "blake2b" as in the article (about half as fast).
    normalize
        Whether texts are normalised and split into words (`simdup.text`), or only split on white space.
    idf
        The table for ``weight="idf"``, from `simdup.fit_idf` or `simdup.idf_table`.
    mask
        Which noise does not count (`simdup.mask`): any of "counter", "date", "epoch", "hex", "jwt", "uuid".

    Raises
    ------
    ValueError, TypeError
        For a value outside the above.

    Notes
    -----
    The defaults are what finds most near-duplicates of real pages before the first false pair, in English, German,
    Chinese and Japanese: docs/defaults.md has the measurements. Mean recall in per cent over eleven collections, of
    main text, 64 / 128 / 256 bits:

    ============  ===================  ===================  ===================
    features      tf                   set                  idf
    ============  ===================  ===================  ===================
    words         81.6 / 94.6 / 97.9   94.1 / 98.6 / 99.4   75.9 / 80.6 / 84.2
    word 2-grams  94.6 / 98.3 / 98.7   97.8 / 99.5 / 99.6   96.6 / 98.2 / 98.5
    word 3-grams  95.8 / 98.4 / 98.9   98.4 / 99.5 / 99.6   97.8 / 99.5 / 99.6
    word 4-grams  94.3 / 97.6 / 99.1   97.8 / 99.5 / 99.6   96.6 / 99.1 / 99.6
    ============  ===================  ===================  ===================

    2-grams keep more of it than 3-grams under one threshold for all collections, and on the article's synthetic
    corpus; 256 bits give at most 2 points more. "idf" needs a fitted table, and is best where a site's template
    stays in the text. "tf" is better where unrelated pages share half of their phrases and differ in what they
    repeat, such as manual pages. XXH64 is the faster hash. Measure your own pages before you choose: `simdup study`.
    """

    unit: Unit = "word"
    ngram: int = 2
    bits: int = 128
    weight: Weight = "set"
    hash: Hash = "xxh64"
    normalize: bool = True
    idf: IdfTable | None = None
    mask: tuple[Noise, ...] = ()

    def __post_init__(self) -> None:
        for name, choices in (("unit", get_args(Unit)), ("weight", get_args(Weight)), ("hash", get_args(Hash))):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name}={getattr(self, name)!r}: choose one of {', '.join(map(repr, choices))}")
        for name in ("ngram", "bits"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise TypeError(f"{name}={value!r}: give an int")
            object.__setattr__(self, name, int(value))
        if self.bits not in (64, 128, 256):
            raise ValueError(f"bits={self.bits}: choose 64, 128 or 256")
        if not 1 <= self.ngram <= _LONGEST_NGRAM:
            raise ValueError(f"ngram={self.ngram}: choose 1 to {_LONGEST_NGRAM}")
        if not isinstance(self.normalize, bool):
            raise TypeError(f"normalize={self.normalize!r}: give True or False")
        if self.idf is not None and not isinstance(self.idf, IdfTable):
            raise TypeError(f"idf={self.idf!r}: give what simdup.fit_idf or simdup.idf_table made")
        if self.idf is not None and self.weight != "idf":
            raise ValueError(f"weight={self.weight!r} takes no idf table: say weight='idf'")
        object.__setattr__(self, "mask", check_noise(self.mask))

    @property
    def id(self) -> str:
        """A short, stable string that names everything a fingerprint depends on, such as ``word3-64-tf-xxh64-nfkc14``.

        Equal ids mean equal fingerprints, under every Python version and platform. With ``weight="idf"`` it
        holds a digest of the table, or ``unfitted``; with masks their names and the version of their patterns, such
        as ``-mask1.date.uuid``.
        """
        table = f".{self.idf.digest if self.idf else 'unfitted'}" if self.weight == "idf" else ""
        form = _NORMALIZED if self.normalize else _RAW
        masks = ".".join((_MASK, *self.mask)) if self.mask else ""
        return f"{self.unit}{self.ngram}-{self.bits}-{self.weight}{table}-{self.hash}-{form}{masks}"

    @classmethod
    def from_id(cls, text: str) -> "Scheme":
        """The scheme that an `id` names; of an idf scheme the table is not in the id, so use `save` and `load`."""
        if "-idf." in text:
            raise ValueError(f"the table of {text!r} is not in its id: keep the scheme with save, read it with load")
        plain, masked, names = text.partition(f"{_MASK}.")
        match = re.fullmatch(r"(word|char)([1-9][0-9]*)-(64|128|256)-(tf|set)-(\w+)-(\w+)", plain)
        if match and match[6] in (_NORMALIZED, _RAW):
            unit, ngram, bits, weight, name, form = match.groups()
            masks = names.split(".") if masked else ()
            scheme = cls(unit, int(ngram), int(bits), weight, name, form == _NORMALIZED, mask=masks)  # type: ignore[arg-type]
            if scheme.id == text:
                return scheme
        raise ValueError(f"{text!r} is no scheme id of this version: give one such as {Scheme().id!r}")

    @property
    def words(self) -> int:
        """How many 64-bit words a fingerprint has."""
        return self.bits // 64

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the scheme, with its idf table if it has one, to a Parquet file (whole or not at all)."""
        options = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "idf"}
        table = self.idf or IdfTable(np.empty(0, np.uint64), np.empty(0, np.int64), 0)
        about = {"format": _FORMAT, "id": self.id, "scheme": options, "fitted": self.idf is not None}
        columns = pa.table({"feature": table.features, "weight": table.weights})
        about["unseen"] = table.unseen
        with whole(path) as temporary:
            pq.write_table(columns.replace_schema_metadata({"simdup": json.dumps(about)}), temporary)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Scheme":
        """Read a scheme that `save` wrote.

        Raises
        ------
        ValueError
            If the file is damaged, is none of ours, or was written by a newer version.
        """
        where = os.fspath(path)
        try:
            columns = pq.read_table(path)
            metadata = columns.schema.metadata or {}
            if b"simdup" not in metadata:
                raise ValueError("not a scheme that simdup saved")
            about = json.loads(metadata[b"simdup"])
            if about["format"] > _FORMAT:
                raise ValueError(f"written by a newer simdup (format {about['format']}): upgrade simdup")
            scheme = cls(**about["scheme"])
            if about["fitted"]:
                table = IdfTable(columns["feature"].to_numpy(), columns["weight"].to_numpy(), about["unseen"])
                scheme = replace(scheme, idf=table)
            if scheme.id != about["id"]:
                raise ValueError(f"damaged: it says {about['id']} and holds {scheme.id}")
        except FileNotFoundError:
            raise
        except ValueError as error:
            raise ValueError(f"{where}: {' '.join(str(error).split())}") from error
        except Exception as error:
            # Arrow raises many sorts of errors for damaged bytes; whatever it is, this is no file of ours.
            raise ValueError(f"{where}: not a scheme that simdup saved, or damaged ({error!r})") from error
        return scheme


def as_scheme(scheme: Any) -> Scheme:
    """The scheme that it is, or TypeError."""
    if not isinstance(scheme, Scheme):
        raise TypeError(f"scheme={scheme!r:.60}: give a simdup.Scheme")
    return scheme


def same_scheme(left: Scheme, right: Scheme) -> Scheme:
    """The one scheme of two things that are to meet, or ValueError: different schemes never meet."""
    if left is not right and left.id != right.id:
        raise ValueError(f"fingerprints of different schemes cannot be compared: {left.id} and {right.id}")
    return left


ARTICLE = Scheme("word", 1, 64, "tf", "blake2b", normalize=False)
"""The article's scheme: words split on white space, unnormalised, 64 bits, term frequency, BLAKE2b."""
