"""The experiment on any pages: which say the same already, what is edited, what counts as unrelated."""

import random
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest

from simdup import ARTICLE, Scheme, distance, fingerprint, fit_idf, reference, tokens
from simdup.study.edits import Edit
from simdup.study.experiment import SAME, Experiment, experiment, same_pages
from simdup.study.measure import Measurement, measure

EDITS = [Edit("replace", 0.05), Edit("delete", 0.15), Edit("token")]
SCHEME = Scheme(bits=64, ngram=1)


def pages(count: int, words: int = 120, seed: int = 39) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(f"word{rng.randrange(800)}" for _ in range(words)) for _ in range(count)]


def near_copy(page: str, changed: int, rng: random.Random) -> str:
    words = page.split()
    for at in rng.sample(range(len(words)), changed):
        words[at] = f"other{rng.randrange(10**6)}"
    return " ".join(words)


def features(page: str) -> frozenset[str]:
    words = tokens(page, Scheme())
    n = min(3, len(words))
    return frozenset(" ".join(words[at : at + n]) for at in range(len(words) - n + 1)) if words else frozenset()


def brute_force(texts: list[str]) -> dict[tuple[int, int], float]:
    sets = [features(text) for text in texts]
    return {
        (i, j): len(sets[i] & sets[j]) / len(sets[i] | sets[j])
        for i, j in combinations(range(len(texts)), 2)
        if sets[i] or sets[j]
    }


def measured(trial: Experiment, scheme: Scheme = SCHEME) -> Measurement:
    return trial.under(scheme).measurement


class TestSamePages:
    def test_equals_brute_force(self) -> None:
        """Near copies on both sides of the limit, in 60 pages: each one above is found, none below."""
        rng = random.Random(7)
        originals = pages(60)
        copies = [near_copy(page, changed, rng) for changed in range(1, 9) for page in originals[::3]]
        texts = originals + copies
        similarity = brute_force(texts)
        expected = {pair for pair, value in similarity.items() if value >= SAME}
        found = {(int(i), int(j)) for i, j in same_pages(texts)}
        assert found == expected
        values = sorted(similarity.values())
        assert sum(SAME <= value < SAME + 0.05 for value in values) >= 20
        assert sum(SAME - 0.05 <= value < SAME for value in values) >= 20
        assert len(found) == len(same_pages(texts))

    @pytest.mark.parametrize("words", [6, 7, 10, 20, 40])
    def test_short_pages_are_not_missed(self, words: int) -> None:
        """Few features make distances wide: a word added to a short page must not hide that it says the same."""
        shorter = [" ".join(f"{number}x{at}" for at in range(words)) for number in range(1_000)]
        texts = [text for page in shorter for text in (page, f"{page} added")]
        assert (words - 2) / (words - 1) >= SAME
        assert same_pages(texts).tolist() == [[2 * number, 2 * number + 1] for number in range(1_000)]

    def test_equal_pages_and_pages_without_text(self) -> None:
        texts = ["", "one two three four", "!!!", "One, two; THREE four.", "five six", "", "five six"]
        assert same_pages(texts).tolist() == [[1, 3], [4, 6]]

    def test_many_equal_pages_are_as_many_pairs(self) -> None:
        """Not the square of their number; and each is linked with what another of them is linked with."""
        page = pages(1)[0]
        near = near_copy(page, 2, random.Random(1))
        found = same_pages([page] * 3_000 + [near] * 2_000 + ["five six"])
        assert len(found) == 2_999 + 1_999 + 1
        assert [0, 3_000] in found.tolist()
        trial = experiment([page] * 300 + [near] * 200 + ["five six seven"], EDITS[:1])
        assert len(set(trial.family[:500].tolist())) == 1

    def test_shape_where_there_is_none(self) -> None:
        assert same_pages(pages(3)).shape == (0, 2)
        assert same_pages([]).shape == (0, 2)


class TestExperiment:
    def test_rows(self) -> None:
        originals = pages(5)
        trial = experiment(originals, EDITS)
        assert trial.texts[:5] == originals
        assert len(trial.texts) == 20
        assert list(trial.edited) == ["replace 5 %", "delete 15 %", "token"]
        for place, rows in enumerate(trial.edited.values(), 1):
            assert rows.tolist() == [[page, 5 * place + page] for page in range(5)]
        assert trial.family.tolist() == [0, 1, 2, 3, 4] * 4
        assert trial.same.shape == (0, 2)

    def test_each_copy_is_of_its_page(self) -> None:
        trial = experiment(pages(5), EDITS)
        for page, copy in trial.edited["delete 15 %"]:
            rest = iter(trial.texts[page].split())
            assert all(word in rest for word in trial.texts[copy].split())
            assert len(trial.texts[copy].split()) < 120
        for page, copy in trial.edited["token"]:
            assert set(trial.texts[page].split()) < set(trial.texts[copy].split())

    def test_same_pages_and_their_copies_are_not_unrelated(self) -> None:
        """Also in a chain: first like second, second like third, first and third below the limit."""
        chain = [pages(1)[0]]
        rng = random.Random(3)
        for _ in range(2):
            chain.append(near_copy(chain[-1], 3, rng))
        texts = [chain[0], *pages(2, seed=5), chain[1], chain[2]]
        similarity = brute_force(texts)
        assert similarity[0, 3] >= SAME
        assert similarity[3, 4] >= SAME
        assert similarity[0, 4] < SAME
        trial = experiment(texts, EDITS)
        assert trial.same.tolist() == [[0, 3], [3, 4]]
        assert len({trial.family[row] for row in (0, 3, 4)}) == 1
        assert len(set(trial.family.tolist())) == 3
        assert measured(trial).unrelated.pairs == sum(a != b for a, b in combinations(trial.family.tolist(), 2))
        # Not one of the three and their nine copies is near another page: if one counted, the minimum would be small.
        assert measured(trial).unrelated.min > 10

    def test_without_the_families_they_would_be_unrelated(self) -> None:
        texts = [*pages(4), near_copy(pages(1)[0], 2, random.Random(1))]
        trial = experiment(texts, EDITS)
        assert measured(replace(trial, family=np.tile(np.arange(5), 4))).unrelated.min < measured(trial).unrelated.min

    @pytest.mark.parametrize(
        ("texts", "which"),
        [
            ([], "fewer than two pages with text"),
            (["one page"], "fewer than two pages with text"),
            (["", "!!!"], "fewer than two pages with text"),
            (["one page here", "", "…"], "fewer than two pages with text"),
            (["the same page"] * 5, "pages with text that all say the same"),
            (["a b c d", "A, B, c. D!", ""], "pages with text that all say the same"),
        ],
    )
    def test_nothing_unrelated(self, texts: list[str], which: str) -> None:
        """Pages without text are in no pair: they do not make the second page that the experiment needs."""
        with pytest.raises(ValueError, match=f"^{which}: give at least two that say different things$"):
            experiment(texts, EDITS)

    @pytest.mark.parametrize("noise", ["token", "advertisement"])
    def test_pages_without_text_do_not_become_pages_of_noise(self, noise: str) -> None:
        """Blank pages of a crawl with the same advertisement are no false pairs at distance 0."""
        edit = [Edit(noise)]
        blank = measured(experiment([*pages(8), *["", "!!!", "…", "\n"] * 3], edit))
        assert blank.unrelated.pairs == 8 * 7 * 2
        assert blank.at(0).false == 0
        assert blank.edited[noise].pairs == 8

    @pytest.mark.parametrize("texts", [["0.05", "0.050"], ["token", "token"], ["replace:0.1", "0.1"]])
    def test_the_same_edit_twice(self, texts: list[str]) -> None:
        with pytest.raises(ValueError, match="the same edit twice"):
            experiment(pages(3), [Edit.parse(text) for text in texts])

    def test_no_edit_at_all(self) -> None:
        with pytest.raises(ValueError, match="edit"):
            experiment(pages(3), [])

    def test_pinned_by_the_seed(self) -> None:
        originals = pages(5)
        assert experiment(originals, EDITS, 1).texts == experiment(originals, EDITS, 1).texts
        assert experiment(originals, EDITS, 1).texts[5:] != experiment(originals, EDITS, 2).texts[5:]

    def test_an_edit_does_not_depend_on_the_others(self) -> None:
        """So that a rate more or less leaves the numbers of the other rates as they were."""
        originals = pages(5)
        alone = experiment(originals, [EDITS[1]]).texts[5:10]
        assert experiment(originals, EDITS).texts[10:15] == alone
        assert experiment(originals, EDITS[::-1]).texts[10:15] == alone

    def test_the_pages_may_come_in_any_order(self) -> None:
        """The totals of unrelated pages do not know the order. Deletion takes nothing from the vocabulary."""
        originals = [*pages(12), near_copy(pages(1)[0], 2, random.Random(1)), ""]
        edits = [Edit("delete", 0.0)]
        straight, turned = experiment(originals, edits), experiment(originals[::-1], edits)
        assert len(straight.same) == len(turned.same) == 1
        a, b = measured(straight), measured(turned)
        assert a.unrelated.counts.tolist() == b.unrelated.counts.tolist()
        assert a.without_text == b.without_text == 2

    def test_any_iterable_of_pages(self) -> None:
        assert experiment(tuple(pages(3)), EDITS).texts == experiment(pages(3), EDITS).texts

    def test_copies_that_an_edit_made_equal_are_no_false_pairs(self) -> None:
        """Short pages that differ in a word: without it there is nothing to tell them apart by."""
        texts = [f"module number {name}" for name in ("one", "two", "three", "four", "five", "six", "seven")]
        edit = Edit("delete", 0.3)
        trial = experiment([*texts, *pages(5)], [edit])
        copies = [tuple(tokens(text, SCHEME)) for text in trial.texts[12:]]
        assert len(set(copies)) < 12
        found = measured(trial)
        assert found.at(0).false == 0
        for i, j in combinations(range(24), 2):
            equal = tokens(trial.texts[i], SCHEME) == tokens(trial.texts[j], SCHEME)
            assert not equal or trial.family[i] == trial.family[j]
        assert len(set(trial.family[7:12].tolist())) == 5

    def test_how_much_is_the_same_is_a_choice(self) -> None:
        page = pages(1)[0]
        texts = [*pages(4), near_copy(page, 10, random.Random(1))]
        shared = brute_force(texts)[0, 4]
        assert 0.5 < shared < 0.8
        assert len(experiment(texts, EDITS).same) == 0
        assert experiment(texts, EDITS, same=shared).same.tolist() == [[0, 4]]
        for same in (0.4, 1.1, float("nan")):
            with pytest.raises(ValueError, match=r"give a share from 0.5 to 1"):
                experiment(texts, EDITS, same=same)

    def test_replacements_come_from_the_whole_corpus(self) -> None:
        """Not from the page itself, nor from the first one: an edit adds words that stand elsewhere."""
        texts = [" ".join(f"p{page}w{word}" for word in range(60)) for page in range(6)]
        trial = experiment(texts, [Edit("replace", 0.5)])
        strange = {word.split("w")[0] for copy in trial.texts[6:7] for word in copy.split()}
        assert strange == {f"p{page}" for page in range(6)}

    def test_progress_names_every_step(self) -> None:
        steps: list[str] = []
        experiment(pages(3), EDITS, progress=steps.append)
        assert steps == ["replace 5 %", "delete 15 %", "token", "which pages say the same"]


class TestUnder:
    def test_idf_is_fitted_on_the_unedited_pages(self) -> None:
        trial = experiment(pages(9), EDITS)
        idf = replace(SCHEME, weight="idf")
        found = trial.under(idf, "menu")
        assert found.scheme == fit_idf([f"menu\n{text}" for text in trial.texts[:9]], SCHEME)
        given = fit_idf(pages(5, seed=1), SCHEME)
        assert trial.under(given).scheme == given

    def test_the_same_before_are_measured(self) -> None:
        """Real near-duplicates, if the corpus has any: in no other pair, and how far apart they are is told."""
        texts = [*pages(5), near_copy(pages(1)[0], 2, random.Random(1))]
        trial = experiment(texts, EDITS)
        found = measured(trial)
        apart = distance(fingerprint(texts[0], SCHEME), fingerprint(texts[5], SCHEME))
        assert np.flatnonzero(found.same.counts).tolist() == [apart]
        assert trial.jaccard()["the same before"] > 0.9
        assert measured(experiment(pages(5), EDITS)).same.pairs == 0


class TestTemplate:
    def test_stands_before_every_text(self) -> None:
        trial = experiment(pages(3), EDITS)
        found = trial.under(SCHEME, "MENU home").measurement
        values = fingerprint([f"MENU home\n{text}" for text in trial.texts], SCHEME)
        again = measure(values, trial.family, trial.edited, trial.same)
        assert found.by_family.tolist() == again.by_family.tolist() != measured(trial).by_family.tolist()

    @pytest.mark.parametrize("scheme", [SCHEME, Scheme(normalize=False)], ids=lambda scheme: scheme.id)
    def test_pages_without_text_do_not_become_pages_of_template(self, scheme: Scheme) -> None:
        """Blank pages of a crawl, all with the menu: no false pairs at distance 0, no copies that were found."""
        blank = ["", "!!!", "…", "!!!"]
        trial = experiment([*pages(8), *blank], EDITS)
        for template in (None, "menu home contact"):
            found = trial.under(scheme, template)
            assert found.measurement.without_text == 4 * 4
            assert found.measurement.at(0).false == 0
            assert found.measurement.edited["delete 15 %"].pairs == 8
            assert {row for pair in found.closest for row in pair[:2]} <= set(range(8))

    def test_pulls_unrelated_pages_together(self) -> None:
        """Field case 13: the longer the shared text, the nearer unrelated pages."""
        trial = experiment(pages(40), EDITS)
        template = pages(1, 600, seed=77)[0].split()
        medians, lowest = [], []
        for words in (0, 60, 240, 600):
            found = trial.under(SCHEME, " ".join(template[:words])).measurement
            medians.append(found.unrelated.median)
            lowest.append(found.unrelated.min)
        assert all(before > after + 2 for before, after in pairwise(medians))
        assert lowest[-1] < lowest[0]

    def test_does_not_change_what_is_related(self) -> None:
        """Families come from the pages: with the template all would be the same."""
        trial = experiment(pages(6), EDITS)
        template = pages(1, 4000, seed=5)[0]
        assert len(same_pages([f"{template}\n{text}" for text in trial.texts[:6]])) == 15
        assert trial.under(SCHEME, template).measurement.unrelated.pairs == 15 * 16


class TestJaccard:
    def test_keys(self) -> None:
        assert list(experiment(pages(5), EDITS).jaccard()) == ["replace 5 %", "delete 15 %", "token", "unrelated"]

    def test_equals_the_mean_over_python_sets(self) -> None:
        trial = experiment(pages(30), EDITS)
        sets = [set(text.split()) for text in trial.texts]

        def mean(pairs: list[tuple[int, int]]) -> float:
            return float(np.mean([len(sets[i] & sets[j]) / len(sets[i] | sets[j]) for i, j in pairs]))

        found = trial.jaccard()
        for name, rows in trial.edited.items():
            assert found[name] == pytest.approx(mean([(int(i), int(j)) for i, j in rows]))
        # 10,000 pairs are drawn of 435: their mean is near the mean of all.
        assert found["unrelated"] == pytest.approx(mean(list(combinations(range(30), 2))), abs=0.003)

    def test_related_pages_are_left_out(self) -> None:
        """Ten copies of one page beside two others: the copies would lift the mean to almost 1."""
        texts = [pages(1)[0]] * 10 + pages(2, seed=5)
        assert experiment(texts, [Edit("delete", 0.0)]).jaccard()["unrelated"] < 0.2

    def test_more_edits_less_similar(self) -> None:
        found = experiment(pages(30), [Edit("replace", rate) for rate in (0.0, 0.01, 0.05, 0.15, 0.5, 1)]).jaccard()
        values = list(found.values())[:-1]
        assert values[0] == 1
        assert values == sorted(values, reverse=True)
        assert len(set(values)) == 6


@pytest.mark.parametrize("scheme", [SCHEME, ARTICLE, Scheme(), Scheme(bits=256, ngram=3)], ids=lambda scheme: scheme.id)
def test_distances_grow_with_edits(scheme: Scheme) -> None:
    """In the median over 60 pages, under every scheme."""
    trial = experiment(pages(60), [Edit("replace", rate) for rate in (0.0, 0.02, 0.1, 0.4)])
    found = measured(trial, scheme)
    medians = [distances.median for distances in (*found.edited.values(), found.unrelated)]
    assert medians[0] == 0
    assert all(before < after for before, after in pairwise(medians))


class TestClosest:
    def test_the_nearest_of_different_pages(self) -> None:
        """Against all pairs; of two equal pages the first stands for both, and pages without text are in no pair."""
        words = pages(1)[0].split()
        near = " ".join([*words[: len(words) // 2], *pages(2)[1].split()[: len(words) // 2]])
        trial = experiment([*pages(6), near, "", pages(1)[0]], EDITS[:1])
        found, fingerprints = trial.under(Scheme()).closest, fingerprint(trial.texts, Scheme())
        rows = [row for row in range(7) if fingerprints.features[row]]
        apart = {(a, b): distance(fingerprints[a], fingerprints[b]) for a, b in combinations(rows, 2)}
        assert [pair.distance for pair in found] == sorted(apart.values())[:3]
        assert all(apart[pair.left, pair.right] == pair.distance for pair in found)
        assert (found[0].left, found[0].right) == (0, 6)
        sets = [set(reference.features(trial.texts[row], Scheme(ngram=3))) for row in (0, 6)]
        assert found[0].jaccard == len(sets[0] & sets[1]) / len(sets[0] | sets[1])

    def test_no_more_than_there_are(self) -> None:
        trial = experiment(["one two three", "four five six"], EDITS[:1])
        assert len(trial.under(Scheme()).closest) == 1
