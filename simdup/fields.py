"""What readers of records share: batches of them, and what their fields must be."""

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa

LONGEST_TEXT = 1 << 27
"""So many bytes of a line or of a text are read."""


class Batch(NamedTuple):
    """Some records that stand one after the other."""

    texts: "list[str] | pa.Array"
    orders: list[Any] | None = None
    """The values that they are ordered by, if they are."""
    problems: Mapping[int, str] = MappingProxyType({})
    """By number: what is wrong with a record that could not be read, and so has no text, or with another."""
    names: Mapping[int, str] = MappingProxyType({})
    """By number: what a record is called besides, readable or not, if it is."""
    sites: list[str | None] | None = None
    """The site that each text is of, if that is known."""

    def with_sites(self) -> Iterator[tuple[str, str | None]]:
        """The texts as strings, each with its site."""
        return zip(self.as_list(), self.sites or itertools.repeat(None), strict=False)

    def as_list(self) -> list[str]:
        """The texts as strings."""
        return self.texts.to_pylist() if isinstance(self.texts, pa.Array) else self.texts


def decode(data: bytes) -> str:
    """A text in UTF-8, or ValueError."""
    if len(data) > LONGEST_TEXT:
        raise ValueError(f"longer than {LONGEST_TEXT >> 20} MiB")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}: convert it first") from None
    if 0 in data and data.count(0) > max(2, len(data) // 4):
        raise ValueError("not UTF-8: more than a quarter of its bytes are 0, as in UTF-16: convert it first")
    return text.removeprefix("\ufeff")


def check_names(names: Iterable[str], text_field: str, order_field: str | None = None) -> None:
    """Raise ValueError if there is no such field, and say by which option to name another."""
    for name, option in ((text_field, "--text-field"), (order_field, "--keep")):
        if name is not None and name not in names:
            has = ", ".join(map(repr, names))[:100] or "none"
            raise ValueError(f"no field {name!r} (it has {has}): name one with {option}")


def check_order(name: str, value: Any) -> Any:
    """The value, if records can be ordered by it."""
    if type(value) is str or (type(value) in (int, float) and abs(value) < math.inf):
        return value
    raise ValueError(wrong(name, value, "a finite number or a string"))


def wrong(name: str, value: Any, wanted: str) -> str:
    """Say that a field is not what was wanted."""
    return f"field {name!r} is {json.dumps(value, default=str)[:40]}, not {wanted}"
