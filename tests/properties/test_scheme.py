"""Schemes: their ids, their files, and what they refuse."""

import json
import os
import pathlib
import pickle
import re
import stat
from dataclasses import FrozenInstanceError, replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from simdup import ARTICLE, IdfTable, Scheme, fingerprint, fit_idf, idf_table
from simdup.scheme import same_scheme
from tests.properties import strategies as some

FITTED = fit_idf(["a b", "b c", "c d e", "the page"], Scheme("word", 1, 64))

# Every way to say a scheme, with a few lengths of n-grams.
ALL = [
    Scheme(unit, ngram, bits, weight, name, form)  # type: ignore[arg-type]
    for unit, ngram, bits, weight, name, form in product(
        ("word", "char"), (1, 2, 3, 11, 1000), (64, 128, 256), ("tf", "set"), ("xxh64", "blake2b"), (True, False)
    )
]


def table(features: Any, weights: Any, unseen: Any = 0) -> IdfTable:
    return IdfTable(np.array(features, np.uint64), np.array(weights, np.int64), unseen)


class TestIds:
    def test_an_id_names_its_scheme(self) -> None:
        assert [Scheme.from_id(scheme.id) for scheme in ALL] == ALL

    def test_different_options_have_different_ids(self) -> None:
        fitted = [fit_idf(["a b c"], scheme) for scheme in ALL if scheme.weight == "tf"]
        unfitted = [replace(scheme, idf=None) for scheme in fitted]
        assert len({scheme.id for scheme in (*ALL, *fitted, *unfitted)}) == len(ALL) + len(fitted) + len(unfitted)

    def test_ids_are_these(self) -> None:
        """An id stands in files: it never changes for the same values."""
        assert ARTICLE.id == "word1-64-tf-blake2b-raw"
        assert Scheme().id == "word2-128-set-xxh64-nfkc14"
        assert Scheme("word", 3, 64, "tf").id == "word3-64-tf-xxh64-nfkc14"
        assert Scheme("char", 5, 256, "set", "blake2b").id == "char5-256-set-blake2b-nfkc14"
        assert Scheme(weight="idf", ngram=2, bits=128).id == "word2-128-idf.unfitted-xxh64-nfkc14"
        given_table = replace(Scheme("word", 1, 64, "idf"), idf=table([1, 2], [3, 4], 5))
        assert given_table.id == "word1-64-idf.159444605c5545fe-xxh64-nfkc14"

    @given(scheme=some.schemes())
    def test_an_id_is_short_and_plain(self, scheme: Scheme) -> None:
        assert re.fullmatch(r"[a-z0-9.-]{1,60}", scheme.id)

    @pytest.mark.parametrize("change", ["features", "weights", "unseen"])
    def test_an_idf_id_depends_on_the_whole_table(self, change: str) -> None:
        values: dict[str, Any] = {"features": [1, 2], "weights": [3, 4], "unseen": 5}
        other = values | {change: 6 if change == "unseen" else [values[change][0], 2**30]}
        one, two = (Scheme("word", 1, 64, "idf", idf=table(**kind)) for kind in (values, other))
        assert one.id != two.id
        assert one != two
        assert one == Scheme("word", 1, 64, "idf", idf=table(**values))

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "word3",
            "word3-64-tf-xxh64",
            "word3-64-tf-xxh64-nfkc15",
            "word3-64-tf-xxh64-nfkc14 ",
            "word3-64-tf-xxh64-nfkc14\n",
            "WORD3-64-tf-xxh64-nfkc14",
            "word-3-64-tf-xxh64-nfkc14",
            "word3-64-idf.0123456789abcdef-xxh64-nfkc14",
            "word3-64-idf.unfitted-xxh64-nfkc14",
            "word3-64-tf-xxh64-nfkc14-more",
            "word３-64-tf-xxh64-nfkc14",
            "word03-64-tf-xxh64-nfkc14",
            "word3-064-tf-xxh64-nfkc14",
        ],
    )
    def test_what_is_no_id(self, text: str) -> None:
        with pytest.raises(ValueError, match=re.escape(repr(text))):
            Scheme.from_id(text)

    @pytest.mark.parametrize(
        ("text", "part"),
        [
            ("word3-96-tf-xxh64-nfkc14", "word3-96-tf"),
            ("word0-64-tf-xxh64-nfkc14", "word0-64-tf"),
            ("word1001-64-tf-xxh64-nfkc14", "ngram=1001"),
            ("word3-64-tf-md5-nfkc14", "hash='md5'"),
        ],
    )
    def test_ids_of_impossible_schemes(self, text: str, part: str) -> None:
        with pytest.raises(ValueError, match=part):
            Scheme.from_id(text)

    @pytest.mark.parametrize("value", [None, 3, b"word3-64-tf-xxh64-nfkc14"])
    def test_an_id_is_a_string(self, value: Any) -> None:
        with pytest.raises(TypeError):
            Scheme.from_id(value)


class TestOptions:
    @pytest.mark.parametrize("name", ["unit", "weight", "hash"])
    @pytest.mark.parametrize("value", ["", "words", "TF", "md5", "Set", None, 1, True])
    def test_choices(self, name: str, value: Any) -> None:
        with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}: choose one of ")):
            Scheme(**{name: value})

    @pytest.mark.parametrize("value", [0, 1, 32, 63, 65, 96, 192, 512, -64, 2**64])
    def test_widths(self, value: int) -> None:
        with pytest.raises(ValueError, match=f"bits={value}: choose 64, 128 or 256"):
            Scheme(bits=value)

    @pytest.mark.parametrize("value", [0, -1, 1001, 2**70])
    def test_ngrams(self, value: int) -> None:
        with pytest.raises(ValueError, match=f"ngram={value}: choose 1 to 1000"):
            Scheme(ngram=value)

    @pytest.mark.parametrize("name", ["ngram", "bits"])
    @pytest.mark.parametrize("value", [True, 64.0, "64", None, np.float64(64), np.bool_(True)], ids=repr)
    def test_whole_numbers(self, name: str, value: Any) -> None:
        with pytest.raises(TypeError, match=re.escape(f"{name}={value!r}: give an int")):
            Scheme(**{name: value})

    @pytest.mark.parametrize("value", [1, 0, "nfkc", None, np.True_], ids=repr)
    def test_normalize(self, value: Any) -> None:
        with pytest.raises(TypeError, match=re.escape(f"normalize={value!r}: give True or False")):
            Scheme(normalize=value)

    @pytest.mark.parametrize("value", [{"a": 1.0}, 1.0, "table"], ids=repr)
    def test_what_is_no_table(self, value: Any) -> None:
        with pytest.raises(TypeError, match=re.escape(f"idf={value!r}: give what simdup.fit_idf")):
            Scheme(weight="idf", idf=value)

    @pytest.mark.parametrize("weight", ["tf", "set"])
    def test_a_table_needs_its_weight(self, weight: Any) -> None:
        with pytest.raises(ValueError, match=f"weight='{weight}' takes no idf table"):
            Scheme(weight=weight, idf=FITTED.idf)

    def test_numpy_integers_are_taken_as_ints(self) -> None:
        scheme = Scheme(ngram=np.int32(3), bits=np.uint16(64))  # type: ignore[arg-type]
        assert (type(scheme.ngram), type(scheme.bits)) == (int, int)
        assert scheme == Scheme(ngram=3, bits=64)
        assert scheme.id == Scheme(ngram=3, bits=64).id

    def test_a_scheme_does_not_change(self) -> None:
        with pytest.raises(FrozenInstanceError):
            Scheme().bits = 64  # type: ignore[misc]

    def test_schemes_are_equal_if_all_options_are(self) -> None:
        every = [*ALL, FITTED, replace(FITTED, idf=None), fit_idf(["a"], FITTED)]
        for at, one in enumerate(every):
            copy = pickle.loads(pickle.dumps(one))
            assert copy == one
            assert hash(copy) == hash(one)
            assert copy.id == one.id
            assert one != every[at - 1]
        assert len(set(every)) == len(every)

    def test_comparing_with_anything(self) -> None:
        name: object = Scheme().id
        assert Scheme() != name
        assert FITTED.idf != "table"
        assert (Scheme() == None) is False  # noqa: E711

    @pytest.mark.parametrize("scheme", ALL[:4], ids=lambda scheme: scheme.id)
    def test_words(self, scheme: Scheme) -> None:
        assert [replace(scheme, bits=bits).words for bits in (64, 128, 256)] == [1, 2, 4]

    def test_same_scheme(self) -> None:
        assert same_scheme(ARTICLE, replace(ARTICLE)) == ARTICLE
        with pytest.raises(ValueError, match=f"{ARTICLE.id} and {Scheme().id}"):
            same_scheme(ARTICLE, Scheme())


KEPT = [*ALL[::17], FITTED, Scheme("char", 2, 256, "idf", "blake2b"), idf_table({}, Scheme(), 2.0)]


class TestFiles:
    @pytest.mark.parametrize("scheme", KEPT, ids=lambda scheme: scheme.id)
    def test_a_saved_scheme_is_the_same(self, scheme: Scheme, tmp_path: pathlib.Path) -> None:
        scheme.save(tmp_path / "scheme")
        loaded = Scheme.load(str(tmp_path / "scheme"))
        assert loaded == scheme
        assert loaded.id == scheme.id
        assert list(tmp_path.iterdir()) == [tmp_path / "scheme"]
        if scheme.weight != "idf" or scheme.idf:
            assert fingerprint("a page the b", loaded) == fingerprint("a page the b", scheme)

    @given(scheme=some.schemes(weights=("idf",)))
    def test_any_table(self, scheme: Scheme, tmp_path_factory: pytest.TempPathFactory) -> None:
        path = tmp_path_factory.mktemp("any") / "scheme"
        scheme.save(path)
        assert Scheme.load(path) == scheme

    def test_a_file_is_replaced_whole_with_its_permissions(self, tmp_path: pathlib.Path) -> None:
        path = tmp_path / "scheme"
        ARTICLE.save(path)
        mask = os.umask(0o022)
        os.umask(mask)
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
        path.chmod(0o600)
        link = tmp_path / "link"
        link.symlink_to(path)
        FITTED.save(link)
        assert link.is_symlink()
        assert Scheme.load(path) == FITTED
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert sorted(tmp_path.iterdir()) == [link, path]

    def test_a_failing_write_leaves_the_old_file(self, tmp_path: pathlib.Path) -> None:
        path = tmp_path / "scheme"
        ARTICLE.save(path)
        before = path.read_bytes()

        def torn(_table: Any, where: pathlib.Path) -> None:
            where.write_bytes(b"PAR1 half of it")
            raise OSError("no space left")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pq, "write_table", torn)
            with pytest.raises(OSError, match="no space left"):
                FITTED.save(path)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]

    def test_saving_where_there_is_no_folder(self, tmp_path: pathlib.Path) -> None:
        with pytest.raises(FileNotFoundError):
            ARTICLE.save(tmp_path / "missing" / "scheme")
        with pytest.raises(OSError, match=re.escape(str(tmp_path))):
            ARTICLE.save(tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_a_missing_file(self, tmp_path: pathlib.Path) -> None:
        with pytest.raises(FileNotFoundError, match="missing"):
            Scheme.load(tmp_path / "missing")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
    def test_a_damaged_byte_is_refused_or_without_effect(self, flip: int, tmp_path: pathlib.Path) -> None:
        """Some bytes of the file mean nothing to us; with any other changed there is a ValueError with the path."""
        path = tmp_path / "scheme"
        FITTED.save(path)
        whole = path.read_bytes()
        problems: set[str] = set()
        for at in range(len(whole)):
            damaged = bytearray(whole)
            damaged[at] ^= flip
            path.write_bytes(damaged)
            try:
                if Scheme.load(path) != FITTED:
                    problems.add("another scheme")
            except ValueError as error:
                if str(path) not in str(error):
                    problems.add(f"no path: {error}")
            except Exception as error:
                problems.add(f"{type(error).__name__}: {error}")
            if path.read_bytes() != damaged:
                problems.add("the file was changed")
        assert problems == set()

    def test_a_file_cut_short_is_refused(self, tmp_path: pathlib.Path) -> None:
        path = tmp_path / "scheme"
        FITTED.save(path)
        whole = path.read_bytes()
        for length in range(0, len(whole), 13):
            path.write_bytes(whole[:length])
            with pytest.raises(ValueError, match=re.escape(str(path))):
                Scheme.load(path)
            assert path.read_bytes() == whole[:length]

    @pytest.mark.parametrize(
        "content", [b"", b"word1-64-tf-blake2b-raw", b"PAR1", bytes(64), b"{}", b"PAR1" + bytes(99) + b"PAR1"]
    )
    def test_foreign_bytes(self, content: bytes, tmp_path: pathlib.Path) -> None:
        path = tmp_path / "scheme"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=re.escape(str(path))):
            Scheme.load(path)
        assert path.read_bytes() == content
        assert list(tmp_path.iterdir()) == [path]

    def test_an_idf_scheme_is_not_read_from_its_id(self) -> None:
        with pytest.raises(ValueError, match=r"the table of .* is not in its id: keep the scheme with save"):
            Scheme.from_id(FITTED.id)

    def test_a_foreign_table(self, tmp_path: pathlib.Path) -> None:
        path = tmp_path / "scheme"
        pq.write_table(pa.table({"feature": [1], "weight": [1]}), path)
        with pytest.raises(ValueError, match=re.escape(f"{path}: not a scheme that simdup saved")):
            Scheme.load(path)

    @staticmethod
    def _rewritten(
        tmp_path: pathlib.Path, change: dict[str, Any], columns: Any = None, without: str = ""
    ) -> pathlib.Path:
        """The file of a fitted scheme with other metadata or other columns."""
        path = tmp_path / "scheme"
        FITTED.save(path)
        stored = pq.read_table(path)
        about = json.loads(stored.schema.metadata[b"simdup"]) | change
        about.pop(without, None)
        changed = stored if columns is None else columns(stored)
        pq.write_table(changed.replace_schema_metadata({"simdup": json.dumps(about)}), path)
        return path

    def test_rewriting_alone_does_no_harm(self, tmp_path: pathlib.Path) -> None:
        assert Scheme.load(self._rewritten(tmp_path, {})) == FITTED

    @pytest.mark.parametrize("change", [{"format": 2}, {"format": 99, "scheme": None}, {"format": 2, "fitted": "both"}])
    def test_a_newer_format(self, change: dict[str, Any], tmp_path: pathlib.Path) -> None:
        path = self._rewritten(tmp_path, change)
        with pytest.raises(
            ValueError, match=re.escape(f"{path}: written by a newer simdup (format {change['format']})")
        ):
            Scheme.load(path)

    @pytest.mark.parametrize("without", ["format", "id", "scheme", "fitted", "unseen"])
    def test_metadata_with_something_missing(self, without: str, tmp_path: pathlib.Path) -> None:
        path = self._rewritten(tmp_path, {}, without=without)
        with pytest.raises(ValueError, match=re.escape(str(path))):
            Scheme.load(path)

    @pytest.mark.parametrize(
        "change",
        [
            {"id": "word1-64-tf-xxh64-nfkc14"},
            {"scheme": {"unit": "word", "mask": "iso"}},
            {"scheme": ["word"]},
            {"scheme": {"bits": 96}},
            {"scheme": {"unit": "word", "ngram": 2, "bits": 64, "weight": "idf"}},
            {"unseen": 1.5},
            {"unseen": "1"},
            {"unseen": -1},
            {"unseen": 12345},
            {"unseen": 2**70},
            {"fitted": False},
            {"format": "one"},
            {"format": None},
        ],
        ids=repr,
    )
    def test_metadata_with_something_wrong(self, change: dict[str, Any], tmp_path: pathlib.Path) -> None:
        path = self._rewritten(tmp_path, change)
        with pytest.raises(ValueError, match=re.escape(str(path))):
            Scheme.load(path)

    @pytest.mark.parametrize(
        "columns",
        [
            lambda stored: stored.drop_columns(["feature"]),
            lambda stored: stored.rename_columns(["feature", "count"]),
            lambda stored: stored.slice(1),
            lambda stored: stored.take(list(reversed(range(stored.num_rows)))),
            lambda stored: stored.set_column(1, "weight", [["a"] * stored.num_rows]),
            lambda stored: stored.set_column(1, "weight", [pa.nulls(stored.num_rows, pa.int64())]),
            lambda stored: stored.set_column(1, "weight", [[0.5] * stored.num_rows]),
        ],
        ids=["no features", "no weights", "rows lost", "rows turned", "strings", "nulls", "floats"],
    )
    def test_other_columns(self, columns: Any, tmp_path: pathlib.Path) -> None:
        path = self._rewritten(tmp_path, {}, columns)
        with pytest.raises(ValueError, match=re.escape(str(path))):
            Scheme.load(path)
