"""Documents with known truth, without end and seeded: for training, calibration, demos, tests and benchmarks.

sample = make_sample(seed=7, split="test", kind="invoice")
sample.pdf, sample.schema, sample.expected, sample.evidence
"""

from pagelift.evals.synthetic.kinds import KINDS, KindName
from pagelift.evals.synthetic.paint import Place
from pagelift.evals.synthetic.sample import Sample, make_sample, make_samples
from pagelift.evals.synthetic.splits import SPLITS, Split

__all__ = ["KINDS", "SPLITS", "KindName", "Place", "Sample", "Split", "make_sample", "make_samples"]
