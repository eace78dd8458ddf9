"""Near-duplicate page detection with SimHash, measured."""

from simdup.cluster import Clusters, cluster
from simdup.fingerprint import Fingerprint, Fingerprints, fingerprint, fingerprint_features, fit_idf, idf_table
from simdup.hamming import Pairs, all_pairs, distance
from simdup.idf import IdfTable
from simdup.index import Index
from simdup.join import Join, near_pairs
from simdup.mask import mask
from simdup.scheme import ARTICLE, Scheme
from simdup.similarity import verify
from simdup.text import normalize, tokens

__all__ = [
    "ARTICLE",
    "Clusters",
    "Fingerprint",
    "Fingerprints",
    "IdfTable",
    "Index",
    "Join",
    "Pairs",
    "Scheme",
    "all_pairs",
    "cluster",
    "distance",
    "fingerprint",
    "fingerprint_features",
    "fit_idf",
    "idf_table",
    "mask",
    "near_pairs",
    "normalize",
    "tokens",
    "verify",
]
