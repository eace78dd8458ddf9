"""Fresh processes: the same values and ids whatever Python's hash seed, and objects that travel."""

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from simdup import ARTICLE, Scheme, fingerprint, fit_idf
from tests.properties import strategies as some

TEXTS = [" ".join(some.PIECES[at : at + 9]) for at in range(0, len(some.PIECES), 5)]
SCHEMES = [
    ARTICLE,
    Scheme(),
    Scheme("char", 3, 256, "set", "blake2b"),
    fit_idf(TEXTS, Scheme("word", 1, 64)),
    fit_idf(TEXTS, Scheme("word", 2, 128, "tf", "blake2b")),
]

# It is given schemes and texts, and writes what it makes of them, in every order of a set.
SCRIPT = """
import pickle, sys
from simdup import fingerprint, fit_idf, idf_table
schemes, texts, features, columns = pickle.load(sys.stdin.buffer)
assert all(fingerprint(texts, scheme) == column for scheme, column in zip(schemes, columns))
assert len({*schemes, *(column.scheme for column in columns)}) == len(schemes)
fitted = fit_idf(set(texts), schemes[1])
given = idf_table(dict.fromkeys(set(features), 2.0), schemes[1], 1.0)
for scheme in (*schemes, fitted, given):
    column = fingerprint(texts, scheme)
    print(scheme.id, *column.hex(), *column.features.tolist())
print(hash("a text"))
"""


def _run(seed: str) -> list[str]:
    columns = [fingerprint(TEXTS, scheme) for scheme in SCHEMES]
    sent = pickle.dumps((SCHEMES, TEXTS, ["the", "page", "a"], columns))
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", SCRIPT], input=sent, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()


def test_values_and_ids_do_not_depend_on_the_process() -> None:
    with ThreadPoolExecutor(2) as pool:
        zero, one, random = pool.map(_run, ("0", "1", "random"))
    # Python's own hashes differ, so the seeds were at work.
    assert len({zero.pop(), one.pop(), random.pop()}) == 3
    assert zero == one == random
    assert len(zero) == len(SCHEMES) + 2
    for scheme, line in zip(SCHEMES, zero, strict=False):
        column = fingerprint(TEXTS, scheme)
        assert line == " ".join([scheme.id, *column.hex(), *map(str, column.features.tolist())])


def test_threads_share_nothing() -> None:
    """Many calls at once, of schemes and texts in turn, give what each gives alone."""
    jobs = [(text, scheme) for text in TEXTS for scheme in SCHEMES] * 3
    alone = [fingerprint(text, scheme) for text, scheme in jobs]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda job: fingerprint(*job), jobs))
    assert together == alone
    assert [one.features for one in together] == [one.features for one in alone]


def test_the_import_does_not_wait_for_what_few_need() -> None:
    """SciPy's graphs and statistics take longer to import than all the rest."""
    code = "import sys, simdup; print([name for name in sys.modules if name in ('scipy.sparse', 'scipy.stats')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
