"""Near-duplicate page detection with SimHash, measured."""

from simdup.fingerprint import Fingerprint, Fingerprints, fingerprint, fingerprint_features, fit_idf, idf_table
from simdup.hamming import Pairs, all_pairs, distance
from simdup.idf import IdfTable
from simdup.scheme import ARTICLE, Scheme
from simdup.text import normalize, tokens

__all__ = [
    "ARTICLE",
    "Fingerprint",
    "Fingerprints",
    "IdfTable",
    "Pairs",
    "Scheme",
    "all_pairs",
    "distance",
    "fingerprint",
    "fingerprint_features",
    "fit_idf",
    "idf_table",
    "normalize",
    "tokens",
]
